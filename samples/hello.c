#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"

enum { N = 63 };                            // unknowns along each axis of the unit cube
static double u[N][N][N], f[N][N][N];       // u = 0 on the cube's sides

static double sine(int i) { return sin(3.14159265358979323846 * (i + 1) / (N + 1)); }

int main(void)
{
    const double c = 3 * 3.14159265358979323846 * 3.14159265358979323846;
    for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) f[k][j][i] = c * sine(i) * sine(j) * sine(k);

    pg_desc desc = {0};                     // zeros: unit box, u = 0 at its sides, f64, host arrays
    desc.n[0] = desc.n[1] = desc.n[2] = N;
    pg_report report;
    if (pg_solve_once(&desc, u, f, &report) != PG_OK) {
        puts(pg_last_error(NULL));
        return 1;
    }
    double error = 0;                       // the exact solution is sine(i) sine(j) sine(k)
    for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++)
                error = fmax(error, fabs(u[k][j][i] - sine(i) * sine(j) * sine(k)));
    printf("%s; largest error %.1e\n", report.message, error);
    return report.outcome != PG_CONVERGED || error > 3e-4;
}
