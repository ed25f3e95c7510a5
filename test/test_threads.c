/* Handles of many threads at the same time: each creates, solves with and destroys solvers of all kinds, and must find
   what a thread alone finds, bit for bit. Under ThreadSanitizer (test/checks.sh) races show that do no harm here. */
#define _POSIX_C_SOURCE 200809L
#include "common.h"

#include <pthread.h>

enum { MOST = 40 * 40 * 40, MOST_LINE = 900, DENSE = 40 };

static unsigned char walls[MOST];
static double coord[2][MOST_LINE + 2], beta_cell[MOST], matrix[DENSE][DENSE];

static void plain(pg_desc *d) { (void)d; }
static void flat(pg_desc *d) { d->n[0] = 66, d->n[1] = 40, d->n[2] = 1, set_choice(d, PG_FMG); }
static void direct(pg_desc *d) { set_choice(d, PG_DIRECT); }
static void direct_in_f32(pg_desc *d) { set_choice(d, PG_DIRECT | PG_F32), d->n[0] = 30; }
static void direct_mixed(pg_desc *d) { set_choice(d, PG_DIRECT | PG_MIXED), d->n[1] = 22; }
static void direct_odd(pg_desc *d) { set_choice(d, PG_DIRECT), d->n[0] = 36, d->n[1] = 40, d->n[2] = 33; }
static void direct_with_coord(pg_desc *d) { set_choice(d, PG_DIRECT), d->coord[1] = coord[0]; }
static void direct_along(pg_desc *d, int n)
{
    d->n[0] = 60, d->n[1] = n, d->n[2] = 1;
    set_choice(d, PG_DIRECT), d->coord[1] = coord[0];
}
static void direct_along_short_lines(pg_desc *d) { direct_along(d, 200); }
static void direct_along_long_lines(pg_desc *d) { direct_along(d, MOST_LINE); }
static void lines(pg_desc *d) { set_choice(d, PG_VCYCLE), d->coord[1] = coord[1]; }
static void cycles(pg_desc *d) { set_choice(d, PG_FMG), d->n[0] = d->n[1] = d->n[2] = 40; }
static void cycles_in_f32(pg_desc *d) { set_choice(d, PG_FMG | PG_F32), d->n[0] = d->n[1] = d->n[2] = 36; }
static void jacobi(pg_desc *d) { set_choice(d, PG_VCYCLE | PG_SMOOTH_JACOBI), d->n[0] = 40; }
static void sor(pg_desc *d) { set_choice(d, PG_SOR); }
static void conjugate(pg_desc *d) { set_choice(d, PG_PIPECG | PG_PRECOND_AINV); }
static void nearby(pg_desc *d) { set_choice(d, PG_CG | PG_PRECOND_DIRECT), d->coord[1] = coord[0]; }
static void flow(pg_desc *d) { d->velocity[0] = 3, d->alpha = 1; }
static void batch(pg_desc *d) { d->batch = 3, d->n[2] = 1, set_choice(d, PG_DIRECT); }
static void among_walls(pg_desc *d)
{
    for (int a = 0; a < 3; a++) d->centring[a] = PG_CELL;
    d->cells.mask = walls;
}
static void layers(pg_desc *d)
{
    for (int a = 0; a < 3; a++) d->centring[a] = PG_CELL;
    d->cells.beta_cell = beta_cell;
}

/* The first two take kernels with much and with little shared memory: in the harness of test/simt, which is slow, they
   are all. */
static void (*const kinds[])(pg_desc *) = {
    direct_along_long_lines, direct_along_short_lines, plain, flat, direct, direct_in_f32, direct_mixed, direct_odd,
    direct_with_coord, lines, cycles, cycles_in_f32, jacobi, sor, conjugate, nearby, flow, batch, among_walls, layers,
};
#ifdef PGI_SIMT
enum { KINDS = 2, THREADS = 3 };
#else
enum { KINDS = sizeof kinds / sizeof *kinds, THREADS = 8 };
#endif

static pg_desc descriptor(int kind, pg_backend backend)
{
    pg_desc d = {.n = {21, 18, 16}, .backend = backend};
    kinds[kind](&d);
    return d;
}

/* Solves once; 0: as it should be. Nothing here may leave by cmocka's jump, for this is a thread. */
static int solve(int kind, pg_backend backend, double *u, double *f)
{
    const pg_desc d = descriptor(kind, backend);
    const pg_stop stop = {.rtol = d.flags & PG_F32 ? 1e-3 : 1e-6, .max_iter = 6, .guess = PG_GUESS_ZERO};
    const int64_t count = (int64_t)d.n[0] * d.n[1] * d.n[2] * (d.batch ? d.batch : 1);
    pg_solver *solver = NULL;
    for (int64_t m = 0; m < count; m++)
        if (d.flags & PG_F32) ((float *)f)[m] = (float)sin(3.0 * (double)m);
        else f[m] = sin(3.0 * (double)m);
    memset(u, 0, (size_t)count * sizeof *u);
    if (pg_create(&d, &solver) != PG_OK) return fprintf(stderr, "kind %d: %s\n", kind, pg_last_error(NULL));
    const int failed = pg_solve(solver, u, f, &stop) != PG_OK;
    if (failed) fprintf(stderr, "kind %d: %s\n", kind, pg_last_error(solver));
    pg_destroy(solver);
    return failed;
}

static int solve_dense(pg_backend backend, double *u, double *f)
{
    const pg_dense_desc d = {.n = DENSE, .A = matrix, .flags = PG_SOR, .backend = backend};
    pg_solver *solver = NULL;
    for (int m = 0; m < DENSE; m++) f[m] = cos(m), u[m] = 0;
    if (pg_dense_create(&d, &solver) != PG_OK) return fprintf(stderr, "dense: %s\n", pg_last_error(NULL));
    const int failed = pg_solve(solver, u, f, NULL) != PG_OK;
    pg_destroy(solver);
    return failed;
}

static int solve_any(int kind, pg_backend backend, double *u, double *f)
{
    return kind < KINDS ? solve(kind, backend, u, f) : solve_dense(backend, u, f);
}

struct worker {
    pthread_t thread;
    pg_backend backend;
    int number, rounds, failed;
    double *const *expected;
};

/* Each thread begins with another kind, so that all kinds are made at the same time as all others. */
static void *work(void *argument)
{
    struct worker *const w = (struct worker *)argument;
    double *const u = (double *)malloc(2 * MOST * sizeof *u), *const f = u + MOST;
    for (int round = 0; round < w->rounds * (KINDS + 1) && u; round++) {
        const int kind = (round + w->number) % (KINDS + 1);
        const pg_desc d = descriptor(kind < KINDS ? kind : 0, w->backend);
        const size_t values = kind < KINDS ? (size_t)d.n[0] * (size_t)d.n[1] * (size_t)d.n[2] : DENSE;
        if (solve_any(kind, w->backend, u, f) || memcmp(u, w->expected[kind], values * (d.flags & PG_F32 ? 4 : 8))) {
            fprintf(stderr, "thread %d: kind %d is not what one thread finds\n", w->number, kind);
            w->failed = 1;
        }
    }
    w->failed = w->failed || !u;
    free(u);
    return NULL;
}

static void handles_of_threads_do_not_touch_each_other(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double *expected[KINDS + 1], *const f = (double *)allocate(MOST * sizeof *f);
    struct worker worker[THREADS];
    for (int m = 0; m < MOST; m++) walls[m] = m % 11 == 3 && m / 21 % 5 != 2 ? PG_SOLID : PG_FLUID;
    for (int m = 0; m < MOST; m++) beta_cell[m] = m / 21 % 18 < 9 ? 1 : 100;
    for (int i = 1; i <= MOST_LINE + 1; i++) {
        coord[0][i] = coord[0][i - 1] + 1 + 0.2 * sin(i);
        coord[1][i] = coord[1][i - 1] + pow(1.3, i % 30);
    }
    for (int i = 0; i < DENSE; i++)
        for (int j = 0; j < DENSE; j++) matrix[i][j] = i == j ? 4 : i == j + 1 || j == i + 1 ? -1 : 0;
    for (int kind = 0; kind <= KINDS; kind++) {
        expected[kind] = (double *)allocate(MOST * sizeof *f);
        assert_int_equal(solve_any(kind, backend, expected[kind], f), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        const struct worker begin = {.backend = backend, .number = t, .expected = expected,
                                     .rounds = backend == PG_CUDA ? 1 : full_or_small(4, 1)};
        worker[t] = begin;
        assert_int_equal(pthread_create(&worker[t].thread, NULL, work, &worker[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) pthread_join(worker[t].thread, NULL);
    for (int t = 0; t < THREADS; t++) assert_int_equal(worker[t].failed, 0);
    for (int kind = 0; kind <= KINDS; kind++) free(expected[kind]);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(handles_of_threads_do_not_touch_each_other),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
