/* The field of an electrode in a grounded can, in cylindrical coordinates: the box is z along x, r along y.

   -(1/r) d/dr (r beta du/dr) - d/dz (beta du/dz) = f, multiplied by r: the coefficient of a face is beta times its
   radius, f is multiplied by the radius of the cell. The electrode is a disc of air cells, cells in which u is given: 1
   volt. Its surface is a face of cells, half a cell from the centre beside it: twice the coefficient there.
   Known answers: what flows out of the electrode flows into the can; the capacitance converges with the
   order 4/3 that the sharp edge of the disc allows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "poisson_gpu.h"

enum { NZ = 96, NR = 64 };                                    /* the can has radius 1 and length 1.5 */
static double along[NR][NZ + 1], across[NR + 1][NZ];          /* beta r of the faces across z and across r */
static double u[NR][NZ], f[NR][NZ], ez[NR][NZ + 1], er[NR + 1][NZ];
static unsigned char mask[NR][NZ];

static int in_electrode(int i, int j) { return j >= 0 && j < 20 && i >= 40 && i < 44; }

int main(void)
{
    static pg_cell_value one_volt[4 * NR];
    const double h = 1.0 / NR;
    int count = 0;
    for (int j = 0; j < NR; j++)
        for (int i = 0; i < NZ; i++) mask[j][i] = in_electrode(i, j) ? PG_AIR : PG_FLUID;
    for (int j = 0; j <= NR; j++)
        for (int i = 0; i < NZ; i++) across[j][i] = fmax(j * h, 1e-20);   // r, above 0
    for (int j = 0; j < NR; j++)
        for (int i = 0; i <= NZ; i++) along[j][i] = (j + 0.5) * h;        // f has it, too
    for (int j = 0; j < NR; j++)
        for (int i = 0; i < NZ; i++)
            for (int side = 0; side < 4 && !in_electrode(i, j); side++) {       // of every cell i, j
                const int x = side == 0 ? -1 : side == 1, y = side == 2 ? -1 : side == 3;
                if (!in_electrode(i + x, j + y)) continue;
                one_volt[count++] = (pg_cell_value){{i, j, 0}, side, 1, 0};
                *(x ? &along[j][i + (x > 0)] : &across[j + (y > 0)][i]) *= 2;   // closer
            }

    pg_desc desc = {0};
    desc.n[0] = NZ, desc.n[1] = NR;
    desc.h[0] = desc.h[1] = h;
    desc.centring[0] = desc.centring[1] = PG_CELL;
    desc.face[PG_Y_LOW].kind = PG_NEUMANN;                                // the axis r = 0
    desc.cells.beta_face[0] = along, desc.cells.beta_face[1] = across;
    desc.cells.mask = &mask[0][0];
    desc.cells.air_value = one_volt, desc.cells.air_values = count;

    pg_solver *solver = NULL;
    pg_report report = {0};
    if (pg_create(&desc, &solver) || pg_solve(solver, u, f, NULL) || pg_get_report(solver, &report) ||
        pg_gradient(solver, u, 0, ez, PG_AT_FACES) || pg_gradient(solver, u, 1, er, PG_AT_FACES)) {
        puts(pg_last_error(solver));
        return 1;
    }
    double out = 0, in = 0;                                   /* coefficient times gradient is the flux */
    for (int j = 0; j < 20; j++) out += along[j][40] * ez[j][40] - along[j][44] * ez[j][44];
    for (int i = 40; i < 44; i++) out -= across[20][i] * er[20][i];
    for (int j = 0; j < NR; j++) in += along[j][0] * (ez[j][0] - ez[j][NZ]);
    for (int i = 0; i < NZ; i++) in -= across[NR][i] * er[NR][i];
    printf("%s; charge / (2 pi eps0 R) at 1 volt %.6f, at the can %.6f\n", report.message, out * h, in * h);
    pg_destroy(solver);
    return fabs(out - in) > 1e-6 * out || !(out * h > 0.5 && out * h < 0.7);
}
