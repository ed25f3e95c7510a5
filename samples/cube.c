/* -lap u = f on the unit cube, u = 0 on its sides, N^3 unknowns, h = 1/(N+1): time, bandwidth, error.

       cube [-n N] [-m fmg|v|w|sor|rbgs|jacobi] [-p f64|f32|mixed] [-b auto|cuda|cpu] [--rtol R] [--table]

   Alone: u = sin(pi x) sin(2 pi y) sin(3 pi z), an eigenvector of the discrete Laplacian too: the discrete
   solution is lambda / lambda_h times as large. --rtol 0.5 stops FMG after its first pass: about as good.
   With MPI (-DPG_USE_MPI, mpicc) ranks solve together, on the CPU: mpirun -n 4 cube -n 255 -b cpu. With -b cuda rank r
   takes GPU r of its host, as far as SEVERAL RANKS in poisson_gpu.h goes.
   --table: Jacobi and red-black Gauss-Seidel in f32 and f64 for random f, N = 512 and rtol = 0.1 unless told:
   noise is what sweeps are good at. One red-black sweep does what two Jacobi sweeps do (Young). */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>
#include "ranks.h"

static const double pi = 3.14159265358979323846;
static const struct sample_choice
    methods[] = {{"fmg", PG_FMG}, {"v", PG_VCYCLE}, {"w", PG_WCYCLE}, {"sor", PG_SOR}, {"rbgs", PG_RBGS},
                 {"jacobi", PG_JACOBI}, {NULL, 0}},
    precisions[] = {{"f64", PG_F64}, {"f32", PG_F32}, {"mixed", PG_MIXED}, {NULL, 0}},
    backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};

static int n;
static size_t count, first;                 /* unknowns of this rank, and those of ranks before; alone: n^3, 0 */
static double *host, *sine[3];              /* f, later u, on the host; its factors along x, y, z */
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

/* GB/s of the words that have to pass memory. A sweep reads u and f and writes u: 3 words a point. A V-cycle
   passes a level twice, and coarser ones have 1/8, 1/64, ... of the points: 6 * 8/7. A W-cycle visits a level
   twice as often as the one above: 6 * 4/3. An FMG pass is a V-cycle on each level: 8/7 of one. PG_MIXED: two
   cycles share 40 bytes for an f64 residual and the correction. A check of the residual reads u and f. */
static double bandwidth(int checks)
{
    const double word = desc.flags & PG_F32 ? 4 : 8;
    const double words = desc.flags & PG_WCYCLE ? 8 : desc.flags & (PG_FMG | PG_VCYCLE) ? 6 * 8 / 7. : 3;
    const double iteration = desc.flags & PG_MIXED ? 4 * words + 40 / 2 : word * words;
    const double iterations = report.iterations + (desc.flags & PG_FMG ? 1 / 7. : 0);
    return (double)n * n * n * (iteration * iterations + 2 * word * checks) / (1e6 * report.milliseconds);
}

static int table(double rtol)
{
    int sweeps[4], good = 1;
    desc.omega = 1;
    for (size_t m = 0; m < count; m++) host[m] = sample_noise(first + m);
    printf("%d^3 unknowns, random f, rtol %g, %s arrays. GB/s: 3 words a point and sweep in the last ms\n",
           n, rtol, desc.memory == PG_MEM_DEVICE ? "device" : "host");
    printf("method  precision   sweeps          ms   at least 34          ms    GB/s\n");
    for (int row = 0; row < 4; row++) {
        desc.flags = (row < 2 ? PG_JACOBI : PG_RBGS) | (row % 2 ? PG_F64 : PG_F32);
        sample_put(f, host, count, &desc);
        pg_stop stop = {.rtol = rtol, .check = 1, .guess = PG_GUESS_ZERO};
        solve(&stop);                       /* finds the number of sweeps, and warms up */
        stop.check = sweeps[row] = report.iterations;       /* from here on only the result is checked */
        solve(&stop);
        printf("%-6s  %-9s", row < 2 ? "jacobi" : "rbgs", row % 2 ? "f64" : "f32");
        printf(" %8d  %10.2f", sweeps[row], report.milliseconds);
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

static double mode(size_t m) { return sine[0][m % n] * sine[1][m / n % n] * sine[2][m / n / n]; }

static int single(double rtol)
{
    double lambda = 0, lambda_h = 0, error = 0, off_theory = 0;
    for (int a = 0; a < 3; a++) {
        const double w = (a + 1) * pi / (n + 1);
        lambda += pow(w * (n + 1), 2);
        lambda_h += pow(sin(w / 2) * 2 * (n + 1), 2);
        sine[a] = sample_alloc(n * sizeof(double), PG_MEM_HOST);
        for (int i = 0; i < n; i++) sine[a][i] = sin(w * (i + 1));
    }
    for (size_t m = 0; m < count; m++) host[m] = lambda * mode(first + m);
    sample_put(f, host, count, &desc);
    pg_stop stop = {.rtol = rtol, .max_iter = 10000000, .guess = PG_GUESS_ZERO};
    if (isatty(2) && count == (size_t)n * n * n) {                    /* with a monitor the host steers: not for the solve that is timed */
        stop.monitor = sample_progress;
        stop.user = &rtol;
        solve(&stop);
        fputs("\r\033[K", stderr);
        stop.monitor = NULL;
    }
    solve(&stop);
    sample_get(host, u, count, &desc);
    for (size_t m = 0; m < count; m++) {
        error = fmax(error, fabs(host[m] - mode(first + m)));
        off_theory = fmax(off_theory, fabs(host[m] - lambda / lambda_h * mode(first + m)));
    }
    error = ranks_largest(error), off_theory = ranks_largest(off_theory);
    for (int a = 0; a < 3; a++) free(sine[a]);

    /* What the residual leaves undone is, relative to u, at most lambda / (lowest eigenvalue) = 14/3 times as
       large. In f32 its fall ends at the floor that the header gives or a few times, SOR 20 times, above. */
    const int f32 = (desc.flags & PG_F32) != 0;
    const double residual = report.residual / report.rhs_norm;
    const double f32_floor = (desc.flags & PG_SOR ? 20e-7 : 5e-7) * 4 * pow(n + 1, 2) / lambda;
    const int solved = report.outcome == PG_CONVERGED || (f32 && residual < f32_floor);
    const int good = solved && off_theory <= 5 * residual + (f32 ? 1e-5 : 1e-11);
    printf("%s after %d iteration%s, relative residual %.1e\n", pg_outcome_string(report.outcome), report.iterations,
           report.iterations == 1 ? "" : "s", residual);
    printf("%.2f ms, %.1f GB/s on %s, %s arrays\n", report.milliseconds, bandwidth(report.history_count),
           report.backend == PG_CUDA ? "CUDA" : "the CPU", desc.memory == PG_MEM_DEVICE ? "device" : "host");
    printf("largest error %.3e, everywhere within %.1e of the theory: %s\n", error, off_theory,
           good ? "as it should be" : "MISSED");
    return good;
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    const int with_table = sample_take(&argc, argv, "--table", 1) != NULL;
    const unsigned method = sample_choose(methods, sample_option(&argc, argv, "-m", "fmg"));
    const unsigned precision = sample_choose(precisions, sample_option(&argc, argv, "-p", "f64"));
    const char *usual = with_table ? "0.1" : precision == PG_F32 ? "1e-5" : "1e-8";
    const double rtol = atof(sample_option(&argc, argv, "--rtol", usual));
    n = atoi(sample_option(&argc, argv, "-n", with_table ? "512" : "127"));
    desc.backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    if (argc > 1 || n < 1 || !(rtol > 0)) {
        puts("cube [-n N] [-m METHOD] [-p PRECISION] [-b BACKEND] [--rtol R] [--table]");
        return ranks_end(2);
    }
    desc.n[0] = desc.n[1] = desc.n[2] = n;
    desc.flags = method | precision;
    const struct ranks all = ranks_join(&desc);
    first = (size_t)n * n * all.first[all.number];
    count = (size_t)n * n * all.first[all.number + 1] - first;
    desc.memory = sample_memory(desc.backend);
    const size_t word = precision == PG_F32 && !with_table ? 4 : 8;
    u = sample_alloc(count * word, desc.memory);
    f = sample_alloc(count * word, desc.memory);
    host = sample_alloc(count * sizeof *host, PG_MEM_HOST);
    const int good = with_table ? table(rtol) : single(rtol);
    sample_free(u, desc.memory);
    sample_free(f, desc.memory);
    free(host);
    return ranks_end(!good);
}
