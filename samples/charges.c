#include <stdio.h>
#include "poisson_gpu.h"

enum { N = 63 };
static double u[N][N][N], f[N][N][N];       /* unknowns inside the unit box, spacing 1/64; f = charge density / eps0 */

int main(void)
{
    pg_desc desc = {0};                     /* zeros are defaults: u = 0 at all sides, f64, host arrays, the fastest method */
    desc.n[0] = desc.n[1] = desc.n[2] = N;
    f[31][31][15] = 64. * 64 * 64, f[31][31][47] = -64. * 64 * 64;    /* charges of 1 and -1 in a cell each */
    pg_report report;
    if (pg_solve_once(&desc, u, f, &report) != PG_OK) return puts(pg_last_error(NULL)), 1;
    printf("%s; the potential a quarter of the way between them is %.5f\n", report.message, u[31][31][23]);
    return !(u[31][31][23] > 0.3 && u[31][31][23] < 0.5);
}
