/* The field of an electrode in a grounded can, in cylindrical coordinates: the box is z along x, r along y.

   -(1/r) d/dr (r beta du/dr) - d/dz (beta du/dz) = f, multiplied by r: the coefficient of a face is beta times its
   radius, f is multiplied by the radius of the cell. The electrode is a disc of air cells, in which u is given: 1 volt.
   Known answer: what flows out of the electrode flows into the can. */
#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"

enum { NZ = 96, NR = 64 };
static double along[NR][NZ + 1], across[NR + 1][NZ];          // beta r of the faces along z and r
static double u[NR][NZ], f[NR][NZ], ez[NR][NZ + 1], er[NR + 1][NZ];
static unsigned char mask[NR][NZ];

int main(void)
{
    static pg_cell_value one_volt[4 * NR];
    const double h = 1.0 / NR;                                // the can has radius 1 and length 1.5
    int count = 0;
    for (int j = 0; j < NR; j++)
        for (int i = 0; i < NZ; i++) mask[j][i] = j < 20 && i >= 40 && i < 44 ? PG_AIR : PG_FLUID;
    for (int j = 0; j < 20; j++) {                            // both sides of the disc, and its rim
        one_volt[count++] = (pg_cell_value){{39, j, 0}, PG_X_HIGH, 1};
        one_volt[count++] = (pg_cell_value){{44, j, 0}, PG_X_LOW, 1};
    }
    for (int i = 40; i < 44; i++) one_volt[count++] = (pg_cell_value){{i, 20, 0}, PG_Y_LOW, 1};

    pg_desc desc = {0};
    desc.n[0] = NZ, desc.n[1] = NR;
    desc.h[0] = desc.h[1] = h;
    desc.centring[0] = desc.centring[1] = PG_CELL;
    for (int j = 0; j <= NR; j++)
        for (int i = 0; i < NZ; i++) across[j][i] = fmax(j * h, 1e-20);   // r of the face
    for (int j = 0; j < NR; j++)
        for (int i = 0; i <= NZ; i++) along[j][i] = (j + 0.5) * h;   // of the cell, as in f
    desc.face[PG_Y_LOW].kind = PG_NEUMANN;   // the axis r = 0
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
    double out = 0, in = 0;                                   // fluxes times 2 pi h are capacitances
    for (int j = 0; j < 20; j++) out += along[j][0] * (ez[j][40] - ez[j][44]);
    for (int i = 40; i < 44; i++) out -= across[20][i] * er[20][i];
    for (int j = 0; j < NR; j++) in += along[j][0] * (ez[j][0] - ez[j][NZ]);
    for (int i = 0; i < NZ; i++) in -= across[NR][i] * er[NR][i];
    printf("%s; capacitance / (2 pi eps0 R) %.6f, at the can %.6f\n", report.message, out * h, in * h);
    pg_destroy(solver);
    return fabs(out - in) > 1e-6 * out || !(out * h > 0.1 && out * h < 1);
}
