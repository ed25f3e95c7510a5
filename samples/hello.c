#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"
enum { N = 63 };                            // unknowns along each axis of the unit cube
static double u[N][N][N], f[N][N][N];       // u = 0 on the cube's sides
int main(void)
{
    const double pi = 3.14159265358979323846, w = pi / (N + 1);
    for (int k = 0; k < N; k++)             // the f of u = sin(pi x) sin(pi y) sin(pi z)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++)
                f[k][j][i] = 3 * pi * pi * sin(w * (i + 1)) * sin(w * (j + 1)) * sin(w * (k + 1));
    pg_desc desc = {0};                     // zeros: unit box, u = 0 at its sides, f64, host arrays
    desc.n[0] = desc.n[1] = desc.n[2] = N;
    pg_report report;
    if (pg_solve_once(&desc, u, f, &report) != PG_OK) return puts(pg_last_error(NULL)), 1;
    const double error = fabs(u[N / 2][N / 2][N / 2] - 1);
    printf("%s; error in the middle %.1e\n", report.message, error);
    return report.outcome != PG_CONVERGED || error > 3e-4;
}
