/* What test/checks.sh builds in the ways that README tells: it solves, and the library has threads. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "poisson_gpu.h"

enum { N = 63 };
static double u[N], f[N];

int main(void)
{
    pg_desc desc = {0};
    desc.n[0] = N, desc.h[0] = 1. / (N + 1);
    for (int i = 0; i < N; i++) f[i] = 8;                  /* u = 4 x (1 - x), at nodes to round-off */
    pg_report report;
    if (pg_solve_once(&desc, u, f, &report) != PG_OK) return puts(pg_last_error(NULL)), 1;
    printf("%s; %s\n", report.message, pg_version());
    return !(fabs(u[N / 2] - 1) < 1e-12) || !strstr(pg_version(), ", OpenMP");
}
