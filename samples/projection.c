/* Makes a velocity divergence-free around a disc in a closed box: v = v* - (dt/rho) grad p, A p = -(rho/dt) div v*. */
#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"

enum { N = 64 };                                                  /* cells; velocities are on their faces */
static unsigned char mask[N][N];                                  /* PG_FLUID, which is 0, or PG_SOLID */
static double vx[N][N + 1], vy[N + 1][N], gx[N][N + 1], gy[N + 1][N], f[N][N], p[N][N];

static double div(int j, int i) { return N * (vx[j][i + 1] - vx[j][i] + vy[j + 1][i] - vy[j][i]); }    /* 1/h = N */

int main(void)
{
    const double dt_over_rho = 0.01;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) mask[j][i] = hypot(i - 20, j - 31) < 9 ? PG_SOLID : PG_FLUID;
    for (int j = 0; j < N; j++)                                   /* a jet; nothing passes walls and the disc */
        for (int i = 1; i < N; i++) vx[j][i] = j > 20 && j < 44 && mask[j][i] == PG_FLUID && mask[j][i - 1] == PG_FLUID;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) f[j][i] = -div(j, i) / dt_over_rho;

    pg_desc desc = {0};
    desc.n[0] = desc.n[1] = N;
    desc.centring[0] = desc.centring[1] = PG_CELL;
    for (int side = 0; side < 4; side++) desc.face[side].kind = PG_NEUMANN;   // walls
    desc.cells.mask = &mask[0][0];
    const pg_stop stop = {.rtol = 1e-12};
    pg_solver *solver = NULL;
    pg_report report = {0};
    if (pg_create(&desc, &solver) || pg_solve(solver, p, f, &stop) ||
        pg_gradient(solver, p, 0, gx, PG_AT_FACES) ||
        pg_gradient(solver, p, 1, gy, PG_AT_FACES) || pg_get_report(solver, &report))
        return puts(pg_last_error(solver)), 1;
    for (int j = 0; j < N; j++)
        for (int i = 0; i <= N; i++)
            vx[j][i] -= dt_over_rho * gx[j][i], vy[i][j] -= dt_over_rho * gy[i][j];

    double most = 0;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) most = fmax(most, fabs(div(j, i)));
    printf("%s; largest divergence %.1e\n", report.message, most);
    pg_destroy(solver);
    return most > 1e-9;
}
