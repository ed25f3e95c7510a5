/* One program, several ranks, a thread each, which solve one problem together: -lap u = f on the unit cube, u = 0 on its
   sides, N^3 unknowns, by full multigrid.

       many_gpus [-n N] [-r RANKS] [-b cpu|cuda]

   Each rank has a slab of the cube, a solver of its own, and calls the library as if it were alone; what ranks send each
   other goes through the two functions of a pg_transport, here those of thread_ranks.h, by way of memory that all threads
   see. With -b cuda rank r has GPU r, and there are as many ranks as GPUs.
   u = sin(pi x) sin(2 pi y) sin(3 pi z) is an eigenvector of the discrete Laplacian too, so the answer is known. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include "sample.h"
#include "thread_ranks.h"

struct rank {
    struct thread_rank place;
    pthread_t thread;
    double error;
    pg_report report;
    char refused[512];                      /* why there is no answer */
};

static struct thread_ranks all = THREAD_RANKS(0);
static const double pi = 3.14159265358979323846;
static int n;
static pg_backend backend;

static double mode(int i, int j, int k)
{
    const double h = pi / (n + 1);
    return sin((i + 1) * h) * sin(2 * (j + 1) * h) * sin(3 * (k + 1) * h);
}

/* Whether a call has succeeded. A thread that ended the program would end the others in the middle of their calls. */
static int done(struct rank *me, pg_status status, const pg_solver *solver)
{
    if (status != PG_OK) snprintf(me->refused, sizeof me->refused, "%s", pg_last_error(solver));
    return status == PG_OK;
}

static void *solve(void *argument)
{
    struct rank *const me = argument;
    const pg_transport transport = thread_transport(&me->place);
    pg_desc desc = {.n = {n, n, n}, .flags = PG_FMG, .backend = backend};
    int lo[3], hi[3];
    desc.comm.kind = PG_COMM_OWN;
    desc.comm.handle = &transport;
    if (backend == PG_CUDA) desc.device = PG_DEVICE(me->place.number);
    if (!done(me, pg_query_part(&desc, lo, hi), NULL)) return NULL;

    const size_t count = (size_t)n * n * (hi[2] - lo[2]);
    double *const u = sample_alloc(2 * count * sizeof *u, PG_MEM_HOST), *const f = u + count, h = pi / (n + 1);
    double lambda = 0;                      /* the eigenvalue of the discrete Laplacian */
    for (int a = 1; a <= 3; a++) lambda += pow(2 * (n + 1) * sin(a * h / 2), 2);
    for (size_t m = 0; m < count; m++) f[m] = lambda * mode(m % n, m / n % n, lo[2] + m / n / n);

    pg_solver *solver;
    const pg_stop stop = {.rtol = 1e-10, .guess = PG_GUESS_ZERO};
    if (done(me, pg_create(&desc, &solver), NULL) && done(me, pg_solve(solver, u, f, &stop), solver))
        done(me, pg_get_report(solver, &me->report), solver);
    pg_destroy(solver);
    for (size_t m = 0; m < count; m++)
        me->error = fmax(me->error, fabs(u[m] - mode(m % n, m / n % n, lo[2] + m / n / n)));
    free(u);
    return NULL;
}

/* How many GPUs there are: those that a solver can be planned for. */
static int gpus(void)
{
    int count = 0;
    for (size_t bytes; count < MOST_THREAD_RANKS; count++) {
        const pg_desc probe = {.n = {1}, .backend = PG_CUDA, .device = PG_DEVICE(count)};
        if (pg_workspace_bytes(&probe, &bytes) != PG_OK) break;
    }
    return count;
}

int main(int argc, char **argv)
{
    static const struct sample_choice backends[] = {{"cpu", PG_CPU}, {"cuda", PG_CUDA}, {NULL, 0}};
    static struct rank rank[MOST_THREAD_RANKS];
    double error = 0;
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);    /* ranks that are threads need it, see SEVERAL RANKS */
    n = (int)sample_number(&argc, argv, "-n", 95, 1, 2048);
    backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "cpu"));
    const int found = backend == PG_CUDA ? gpus() : 3;
    all.ranks = (int)sample_number(&argc, argv, "-r", found ? found : 1, 1, MOST_THREAD_RANKS);
    if (argc > 1) return puts("many_gpus [-n N] [-r RANKS] [-b cpu|cuda]"), 2;
    for (int r = 0; r < all.ranks; r++) {
        rank[r].place.all = &all, rank[r].place.number = r;
        sample_require(pthread_create(&rank[r].thread, NULL, solve, &rank[r]) == 0, "pthread_create");
    }
    for (int r = 0; r < all.ranks; r++) {
        pthread_join(rank[r].thread, NULL);
        error = fmax(error, rank[r].error);
    }
    int refused = 0;
    for (int r = 0; r < all.ranks; r++)
        if (*rank[r].refused) refused = fprintf(stderr, "rank %d: %s\n", r, rank[r].refused);
    if (refused) return 2;
    const pg_report *const report = &rank[0].report;
    const int good = report->outcome == PG_CONVERGED && error < 1e-8;
    printf("%d ranks, %d^3 unknowns: %s after %d iteration%s, %.2f ms\n", all.ranks, n, pg_outcome_string(report->outcome),
           report->iterations, report->iterations == 1 ? "" : "s", report->milliseconds);
    printf("largest error %.1e against the exact discrete solution: %s\n", error, good ? "as it should be" : "MISSED");
    return !good;
}
