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

static pg_desc desc;
static pg_stop stop;
static pg_report report;
static int n;
static size_t count, word;                  /* unknowns, bytes of each */
static void *host, *u, *f;                  /* u and f where the solver runs */
static double *sine;                        /* of the eigenvector: n values along x, n along y, n along z */

static double mode(size_t m) { return sine[m % n] * sine[n + m / n % n] * sine[2 * n + m / n / n]; }

static double noise(size_t m)               /* the splitmix64 generator, in -1..1 */
{
    uint64_t x = (m + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) / 4503599627370496.0 - 1;
}

static void allocate(unsigned flags, double (*value)(size_t), double scale)     /* f = scale * value */
{
    desc.flags = flags;
    word = flags & PG_F32 ? 4 : 8;
    host = malloc(count * word);
    sample_require(host != NULL, "malloc");
    for (size_t m = 0; m < count; m++) {
        if (word == 4) ((float *)host)[m] = (float)(scale * value(m));
        else ((double *)host)[m] = scale * value(m);
    }
    u = sample_alloc(count * word, desc.memory);
    f = sample_alloc(count * word, desc.memory);
    sample_copy(f, host, count * word, desc.memory);
}

static void release(void)
{
    free(host);
    sample_free(u, desc.memory);
    sample_free(f, desc.memory);
}

static void solve(void)
{
    pg_solver *solver;
    sample_check(pg_create(&desc, &solver), NULL);
    sample_check(pg_solve(solver, u, f, &stop), solver);
    sample_check(pg_get_report(solver, &report), solver);
    pg_destroy(solver);
}

/* GB/s of the words that have to pass memory. A sweep reads u and f and writes u: 3 words a point. A V-cycle passes
   over a level twice, down and up, and over coarser ones with 1/8, 1/64, ... of the points: 6 * 8/7. In a W-cycle a
   level is visited twice as often as the one above: 6 * 4/3. An FMG pass is a V-cycle on each level: 8/7 of one. A step
   of PG_MIXED is two f32 cycles, an f64 residual (u and f in, r in f32 out) and a correction (e in f32, u in and out),
   40 bytes. A check of the residual reads u and f. */
static double bandwidth(int sweeps_only)
{
    const double words = desc.flags & (PG_FMG | PG_VCYCLE) ? 6 * 8 / 7. : desc.flags & PG_WCYCLE ? 6 * 4 / 3. : 3;
    const double iteration = desc.flags & PG_MIXED ? 2 * 4 * words + 40 : word * words;
    const double iterations = report.iterations + (desc.flags & PG_FMG ? 1 / 7. : 0);
    const double checks = sweeps_only ? 0 : 2. * word * report.history_count;
    return count * (iteration * iterations + checks) / (1e6 * report.milliseconds);
}

static int progress_bar(void *target, const pg_report *so_far)
{
    const double all = log(so_far->first_residual / (*(double *)target * so_far->rhs_norm));
    const double done = log(so_far->first_residual / so_far->residual) / all;
    fprintf(stderr, "\r[%-40.*s] %d iterations, residual %.2e ", done > 0 ? (int)fmin(40, 40 * done) : 0,
            "########################################", so_far->iterations, so_far->residual);
    return 0;
}

static int table(double rtol)
{
    int sweeps[4], good = 1;
    printf("%d^3 unknowns, random f, rtol %g, %s arrays. GB/s: 3 words a point and sweep over the last time\n", n, rtol,
           desc.memory == PG_MEM_DEVICE ? "device" : "host");
    printf("method  precision   sweeps          ms   at least 34          ms    GB/s\n");
    for (int row = 0; row < 4; row++) {
        allocate((row < 2 ? PG_JACOBI : PG_RBGS) | (row % 2 ? PG_F64 : PG_F32), noise, 1);
        desc.omega = 1;
        stop = (pg_stop){.rtol = rtol, .check = 1, .guess = PG_GUESS_ZERO};
        solve();                            /* finds the number of sweeps, and warms up */
        good = good && report.outcome == PG_CONVERGED;
        stop.check = sweeps[row] = report.iterations;   /* from here on only the result is checked */
        solve();
        printf("%-6s  %-9s %8d  %10.2f", row < 2 ? "jacobi" : "rbgs", row % 2 ? "f64" : "f32", sweeps[row],
               report.milliseconds);
        stop.min_iter = stop.check = sweeps[row] > 34 ? sweeps[row] : 34;
        solve();
        printf("  %12d  %10.2f  %6.1f\n", report.iterations, report.milliseconds, bandwidth(1));
        good = good && report.outcome == PG_CONVERGED && report.iterations == stop.min_iter;
        release();
    }
    good = good && sweeps[0] == sweeps[1] && sweeps[2] == sweeps[3];
    good = good && abs(2 * sweeps[2] - sweeps[0]) <= 2 + sweeps[0] / 20;
    printf("one red-black sweep for two Jacobi sweeps: %s\n", good ? "as it should be" : "MISSED");
    return good;
}

static int single(unsigned flags, double rtol)
{
    double lambda = 0, lambda_h = 0, error = 0, top = 0;
    for (int a = 1; a <= 3; a++) {
        lambda += pow(a * pi, 2);
        lambda_h += pow(2 * (n + 1) * sin(a * pi / (2 * (n + 1))), 2);
        for (int i = 0; i < n; i++) sine[(a - 1) * n + i] = sin(a * pi * (i + 1) / (n + 1));
    }
    allocate(flags, mode, lambda);
    stop = (pg_stop){.rtol = rtol, .max_iter = rtol < 0 ? 1 : 10000000, .guess = PG_GUESS_ZERO};
    double target = rtol > 0 ? rtol : word == 4 ? 1e-5 : 1e-8;
    if (isatty(2) && rtol >= 0) {           /* with a monitor the host steers: not for the solve that is timed */
        stop.monitor = progress_bar;
        stop.user = &target;
        solve();
        fputs("\r\033[K", stderr);
        stop.monitor = NULL;
    }
    solve();
    sample_copy(host, u, count * word, desc.memory);
    for (size_t m = 0; m < count; m++) {
        error = fmax(error, fabs((word == 4 ? ((float *)host)[m] : ((double *)host)[m]) - mode(m)));
        top = fmax(top, fabs(mode(m)));
    }
    release();

    /* What the residual leaves undone is, relative to u, at most lambda / (lowest eigenvalue) = 14/3 times as large.
       f32 keeps 24 bits of u, which ends the fall of the residual near the floor that the header gives. */
    const double residual = rtol < 0 ? 0 : report.residual / report.rhs_norm, theory = top * (lambda / lambda_h - 1);
    const double f32_floor = 1e-7 * 4 * pow(n + 1, 2) / lambda;
    const int solved = report.outcome == (rtol < 0 ? PG_COMPLETED : PG_CONVERGED)
        || (report.outcome == PG_STAGNATED && word == 4 && residual < 2 * f32_floor);
    const double slack = rtol < 0 ? theory : 5 * residual + (word == 4 ? 1e-5 : 1e-11);
    const int good = solved && fabs(error - theory) <= slack;
    printf("%s after %d iterations", pg_outcome_string(report.outcome), report.iterations);
    printf(rtol < 0 ? "\n" : ", relative residual %.1e\n", residual);
    printf("%.2f ms, %.1f GB/s on %s, %s arrays\n", report.milliseconds, bandwidth(0),
           report.backend == PG_CUDA ? "CUDA" : "the CPU", desc.memory == PG_MEM_DEVICE ? "device" : "host");
    printf("largest error %.3e; theory: %.3e: %s\n", error, theory, good ? "as it should be" : "MISSED");
    return good;
}

int main(int argc, char **argv)
{
    unsigned method = PG_FMG, precision = PG_F64;
    double rtol = 0;
    int with_table = 0, usage = 0;
    n = -1;
    for (int a = 1; a < argc; a++) {
        const char *value = a + 1 < argc ? argv[a + 1] : "nothing";
        if (!strcmp(argv[a], "--table")) { with_table = 1; continue; }
        if (!strcmp(argv[a], "-n")) n = atoi(value);
        else if (!strcmp(argv[a], "-m")) method = sample_choose(methods, value);
        else if (!strcmp(argv[a], "-p")) precision = sample_choose(precisions, value);
        else if (!strcmp(argv[a], "-b")) desc.backend = (pg_backend)sample_choose(backends, value);
        else if (!strcmp(argv[a], "--rtol")) rtol = atof(value);
        else usage = 1;
        a++;
    }
    if (n < 0) n = with_table ? 512 : 127;
    if (usage || n == 0 || (rtol < 0 && method != PG_FMG)) {
        puts("cube [-n N] [-m METHOD] [-p PRECISION] [-b BACKEND] [--rtol R] [--table], --rtol -1 only with FMG");
        return 2;
    }
    count = (size_t)n * n * n;
    sine = malloc(3 * sizeof(double) * n);
    sample_require(sine != NULL, "malloc");
    desc.n[0] = desc.n[1] = desc.n[2] = n;
    desc.memory = sample_memory(desc.backend);
    const int good = with_table ? table(rtol > 0 ? rtol : 0.1) : single(method | precision, rtol);
    free(sine);
    return !good;
}
