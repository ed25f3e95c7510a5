/* Time steps of a diffusion that something heats: implicit Euler, (1/dt - D lap) u' = u/dt + heat, the last u as guess. */
#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"

enum { N = 256, STEPS = 20 };
static double u[N * N], f[N * N], heat[N * N];

int main(void)
{
    const double dt = 1e-3, D = 1;
    for (int m = 0; m < N * N; m++) heat[m] = exp(-0.02 * (pow(m % N - 40, 2) + pow(m / N - 70, 2)));
    pg_desc desc = {0};
    desc.n[0] = desc.n[1] = N;
    desc.flags = PG_FMG;
    desc.alpha = 1 / dt, desc.beta = D;
    pg_solver *solver = NULL;
    if (pg_create(&desc, &solver)) return puts(pg_last_error(NULL)), 1;
    double total = 0;
    const pg_stop stop = {.guess = PG_GUESS_U, .rtol = 1e-6, .relative_to_first = 1};
    for (int step = 0; step < STEPS; step++) {
        for (int m = 0; m < N * N; m++) f[m] = u[m] / dt + heat[m];
        if (pg_solve(solver, u, f, &stop)) return puts(pg_last_error(solver)), 1;
    }
    pg_report report;
    if (pg_get_report(solver, &report) || pg_dot(solver, u, NULL, &total)) return puts(pg_last_error(solver)), 1;
    printf("%d steps; the last one: %s; heat in the box %.6f\n", STEPS, report.message, total);
    pg_destroy(solver);
    return report.outcome != PG_CONVERGED || !(total > 0);
}
