/* Makes a velocity divergence-free around a disc in a closed box: v = v* - (dt/rho) grad p, A p = -(rho/dt) div v*. */
#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"

enum { NX = 96, NY = 64 };                                        /* cells; velocities are on their faces */
static unsigned char mask[NY * NX];                               /* PG_FLUID, which is 0, or PG_SOLID */
static double vx[NY * (NX + 1)], vy[(NY + 1) * NX], gx[NY * (NX + 1)], gy[(NY + 1) * NX], f[NY * NX], p[NY * NX];
static const double h = 1.0 / NY, dt_over_rho = 0.01;

static double div(int q)                                          /* of cell q: the face at its left is q + q / NX */
{
    return (vx[q + q / NX + 1] - vx[q + q / NX] + vy[q + NX] - vy[q]) / h;
}

int main(void)
{
    for (int q = 0; q < NY * NX; q++) mask[q] = hypot(q % NX - 30, q / NX - 31) < 9 ? PG_SOLID : PG_FLUID;
    for (int j = 21; j < 44; j++)                                 /* a jet; nothing passes walls and the disc */
        for (int i = 1; i < NX; i++) vx[i + (NX + 1) * j] = !mask[i + NX * j] && !mask[i - 1 + NX * j];
    for (int q = 0; q < NY * NX; q++) f[q] = -div(q) / dt_over_rho;

    pg_desc desc = {0};
    desc.n[0] = NX, desc.n[1] = NY, desc.h[0] = desc.h[1] = h;
    desc.centring[0] = desc.centring[1] = PG_CELL;
    for (int side = 0; side < 4; side++) desc.face[side].kind = PG_NEUMANN;   // walls
    desc.cells.mask = mask;
    const pg_stop stop = {.rtol = 1e-12};
    pg_solver *solver = NULL;
    if (pg_create(&desc, &solver) || pg_solve(solver, p, f, &stop) ||
        pg_gradient(solver, p, 0, gx, PG_AT_FACES) || pg_gradient(solver, p, 1, gy, PG_AT_FACES))
        return puts(pg_last_error(solver)), 1;
    for (int q = 0; q < NY * (NX + 1); q++) vx[q] -= dt_over_rho * gx[q];
    for (int q = 0; q < (NY + 1) * NX; q++) vy[q] -= dt_over_rho * gy[q];

    double most = 0;
    for (int q = 0; q < NY * NX; q++) most = fmax(most, fabs(div(q)));
    pg_report report;
    if (pg_get_report(solver, &report)) return puts(pg_last_error(solver)), 1;
    printf("%s; largest divergence %.1e\n", report.message, most);
    pg_destroy(solver);
    return most > 1e-9;
}
