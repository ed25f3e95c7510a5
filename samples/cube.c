/* -lap u = f on the unit cube, u = 0 on its sides, N^3 unknowns, h = 1/(N+1): time, bandwidth, error of every method.

       cube [-n N] [-m fmg|v|w|sor|rbgs|jacobi] [-p f64|f32|mixed] [-b auto|cuda|cpu] [--rtol R] [--table]

   Alone: u = sin(pi x) sin(2 pi y) sin(3 pi z), an eigenvector of the discrete Laplacian too, so that the error of the
   discrete solution is known: lambda / lambda_h - 1. --rtol -1 asks for one pass of FMG, which is about as good.
   --table: Jacobi and red-black Gauss-Seidel in f32 and f64, N = 512 and rtol = 0.1 unless told, for random f: noise is
   what sweeps are good at. One red-black sweep does what two Jacobi sweeps do (Young), in either precision. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <unistd.h>
#include "sample.h"

static const double pi = 3.14159265358979323846;
static const struct sample_choice methods[] = {{"fmg", PG_FMG}, {"v", PG_VCYCLE}, {"w", PG_WCYCLE}, {"sor", PG_SOR},
                                               {"rbgs", PG_RBGS}, {"jacobi", PG_JACOBI}, {NULL, 0}};
static const struct sample_choice precisions[] = {{"f64", PG_F64}, {"f32", PG_F32}, {"mixed", PG_MIXED}, {NULL, 0}};
static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};

static int n;
static size_t count;                        /* n^3 */
static double *host;                        /* f, later u, on the host */
static void *u, *f;                         /* where the solver runs, in its precision */
static pg_desc desc;
static pg_report report;

static void solve(const pg_stop *stop)
{
    pg_solver *solver;
    sample_check(pg_create(&desc, &solver), NULL);
    sample_check(pg_solve(solver, u, f, stop), solver);
    sample_check(pg_get_report(solver, &report), solver);
    pg_destroy(solver);
}

static int progress_bar(void *stop, const pg_report *so_far)
{
    const double target = ((const pg_stop *)stop)->rtol * so_far->rhs_norm;
    const double done = log(so_far->first_residual / so_far->residual) / log(so_far->first_residual / target);
    fprintf(stderr, "\r[%-40.*s] %d iterations, residual %.2e ", done > 0 ? (int)fmin(40, 40 * done) : 0,
            "########################################", so_far->iterations, so_far->residual);
    return 0;
}

/* GB/s of the words that have to pass memory. A sweep reads u and f and writes u: 3 words a point. A V-cycle passes a
   level twice, down and up, and coarser ones have 1/8, 1/64, ... of the points: 6 * 8/7. A W-cycle visits a level twice
   as often as the one above: 6 * 4/3. An FMG pass is a V-cycle on each level: 8/7 of one. PG_MIXED: a step is two f32
   cycles and 40 bytes for the f64 residual and the correction. A check of the residual reads u and f. */
static double bandwidth(int checks)
{
    const double word = desc.flags & PG_F32 ? 4 : 8;
    const double words = desc.flags & (PG_FMG | PG_VCYCLE) ? 6 * 8 / 7. : desc.flags & PG_WCYCLE ? 6 * 4 / 3. : 3;
    const double iteration = desc.flags & PG_MIXED ? (2 * 4 * words + 40) / 2 : word * words;
    const double iterations = report.iterations + (desc.flags & PG_FMG ? 1 / 7. : 0);
    return count * (iteration * iterations + 2 * word * checks) / (1e6 * report.milliseconds);
}

static double noise(size_t m)               /* the splitmix64 generator, in -1..1 */
{
    uint64_t x = (m + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) / 4503599627370496.0 - 1;
}

static int table(double rtol)
{
    int sweeps[4], good = 1;
    for (size_t m = 0; m < count; m++) host[m] = noise(m);
    printf("%d^3 unknowns, random f, rtol %g, %s arrays. GB/s: 3 words a point and sweep over the last time\n", n, rtol,
           desc.memory == PG_MEM_DEVICE ? "device" : "host");
    printf("method  precision   sweeps          ms   at least 34          ms    GB/s\n");
    for (int row = 0; row < 4; row++) {
        desc.flags = (row < 2 ? PG_JACOBI : PG_RBGS) | (row % 2 ? PG_F64 : PG_F32);
        desc.omega = 1;
        sample_put(f, host, count, &desc);
        pg_stop stop = {.rtol = rtol, .check = 1, .guess = PG_GUESS_ZERO};
        solve(&stop);                       /* finds the number of sweeps, and warms up */
        good = good && report.outcome == PG_CONVERGED;
        stop.check = sweeps[row] = report.iterations;       /* from here on only the result is checked */
        solve(&stop);
        printf("%-6s  %-9s %8d  %10.2f", row < 2 ? "jacobi" : "rbgs", row % 2 ? "f64" : "f32", sweeps[row],
               report.milliseconds);
        stop.min_iter = stop.check = sweeps[row] > 34 ? sweeps[row] : 34;
        solve(&stop);
        printf("  %12d  %10.2f  %6.1f\n", report.iterations, report.milliseconds, bandwidth(0));
        good = good && report.outcome == PG_CONVERGED && report.iterations == stop.min_iter;
    }
    good = good && sweeps[0] == sweeps[1] && sweeps[2] == sweeps[3];
    good = good && abs(2 * sweeps[2] - sweeps[0]) <= 2 + sweeps[0] / 20;
    printf("one red-black sweep for two Jacobi sweeps: %s\n", good ? "as it should be" : "MISSED");
    return good;
}
