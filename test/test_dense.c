/* Dense systems: that iterates are those of the plain loop, verdicts, refusals, and that u is written when it should
   be. */
#include "common.h"
#ifdef PG_TEST_CUDA
#include <cuda_runtime.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

/* A system on the host, in double; what lies between the rows is NaN. kind: 0 dominated by its diagonal and not
   symmetric, 1 symmetric and positive definite but not dominated, 2 a line of second differences. */
typedef struct system {
    int n;
    int64_t lda;
    double *a, *u, *f;
} system_of;

static size_t elements(const system_of *s) { return (size_t)(s->n - 1) * (size_t)s->lda + (size_t)s->n; }

static system_of make_system(int n, int64_t lda, int kind, uint64_t seed)
{
    system_of s = {n, lda, NULL, allocate((size_t)n * sizeof(double)), allocate((size_t)n * sizeof(double))};
    rng r = {seed};
    s.a = allocate(elements(&s) * sizeof(double));
    for (size_t q = 0; q < elements(&s); q++) s.a[q] = NAN;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            const int far = abs(i - j);
            s.a[i * lda + j] = kind == 0   ? rng_uniform(&r, -1, 1)
                               : kind == 1 ? pow(0.8, far)
                                           : far == 1 ? -1 : far == 0 ? 2 : 0;
        }
        if (kind == 0) s.a[i * lda + i] = (i % 2 ? 1 : -1) * (0.75 * n + rng_uniform(&r, 0, 1));
        s.u[i] = rng_uniform(&r, -1, 1);
        s.f[i] = rng_uniform(&r, -1, 1) * n;
    }
    return s;
}

static void free_system(system_of *s) { free(s->a), free(s->u), free(s->f); }

/* ---- the plain loop, three lines a sweep ---- */

static double plain_residual(const system_of *s, const double *u)
{
    double sum = 0;
    for (int i = 0; i < s->n; i++) {
        double r = s->f[i];
        for (int j = 0; j < s->n; j++) r -= s->a[i * s->lda + j] * u[j];
        sum += r * r;
    }
    return sqrt(sum);
}

static void plain_sweep(const system_of *s, unsigned flags, double omega, double *u)
{
    double *old = allocate((size_t)s->n * sizeof *old);
    memcpy(old, u, (size_t)s->n * sizeof *old);
    const double *known = flags & PG_JACOBI ? old : u;
    for (int q = 0; q < s->n; q++) {
        const int i = flags & PG_BACKWARD ? s->n - 1 - q : q;
        double r = s->f[i];
        for (int j = 0; j < s->n; j++) r -= s->a[i * s->lda + j] * known[j];
        u[i] = old[i] + omega * r / s->a[i * s->lda + i];
    }
    free(old);
}

/* Sweeps until the residual is small enough, looked at after every `check` sweeps. */
static int plain_solve(const system_of *s, unsigned flags, double omega, double rtol, int check, int most, double *u)
{
    double norm = 0;
    int k = 0;
    for (int i = 0; i < s->n; i++) norm += s->f[i] * s->f[i];
    for (; k < most && !(k % check == 0 && plain_residual(s, u) <= rtol * sqrt(norm)); k++)
        plain_sweep(s, flags, omega, u);
    return k;
}

/* ---- the library's arrays: in its precision, where it wants them ---- */

static void *place(const double *values, size_t count, const pg_dense_desc *desc)
{
    const int f32 = (desc->flags & PG_F32) != 0;
    const size_t bytes = count * (f32 ? sizeof(float) : sizeof(double));
    void *host = allocate(bytes);
    for (size_t q = 0; q < count; q++) {
        if (f32) ((float *)host)[q] = (float)values[q];
        else ((double *)host)[q] = values[q];
    }
    if (desc->memory == PG_MEM_HOST) return host;
    void *device = NULL;
#ifdef PG_TEST_CUDA
    assert_int_equal(cudaMalloc(&device, bytes), cudaSuccess);
    assert_int_equal(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
#endif
    free(host);
    return device;
}

static void release(void *array, const pg_dense_desc *desc)
{
    if (desc->memory == PG_MEM_HOST) free(array);
#ifdef PG_TEST_CUDA
    else cudaFree(array);
#endif
}

static void fetch(double *values, const void *array, size_t count, const pg_dense_desc *desc)
{
    const int f32 = (desc->flags & PG_F32) != 0;
    const size_t bytes = count * (f32 ? sizeof(float) : sizeof(double));
    void *host = allocate(bytes);
    if (desc->memory == PG_MEM_HOST) memcpy(host, array, bytes);
#ifdef PG_TEST_CUDA
    else assert_int_equal(cudaMemcpy(host, array, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
#endif
    for (size_t q = 0; q < count; q++) values[q] = f32 ? (double)((float *)host)[q] : ((double *)host)[q];
    free(host);
}

static pg_solver *create_dense(const pg_dense_desc *desc)
{
    pg_solver *solver = NULL;
    OK(pg_dense_create(desc, &solver), NULL);
    assert_non_null(solver);
    return solver;
}

/* Solves from s->u; answer may be NULL. */
static pg_report solve_dense(const pg_dense_desc *wanted, const system_of *s, const pg_stop *stop, double *answer)
{
    pg_dense_desc desc = *wanted;
    desc.n = s->n, desc.lda = s->lda;
    const size_t n = (size_t)s->n;
    void *a = place(s->a, elements(s), &desc), *u = place(s->u, n, &desc), *f = place(s->f, n, &desc);
    desc.A = a;
    pg_solver *solver = create_dense(&desc);
    pg_report report;
    OK(pg_solve(solver, u, f, stop), solver);
    OK(pg_get_report(solver, &report), solver);
    if (answer) fetch(answer, u, (size_t)s->n, &desc);
    pg_destroy(solver);
    release(a, &desc), release(u, &desc), release(f, &desc);
    return report;
}

static pg_dense_desc on(pg_backend backend, unsigned flags)
{
    pg_dense_desc desc = {0};
    desc.backend = backend, desc.flags = flags;
    return desc;
}

static const struct method { unsigned flags; double omega; } methods[] = {
    {PG_JACOBI, 1}, {PG_JACOBI, 0.8}, {PG_GAUSS_SEIDEL, 1}, {PG_GAUSS_SEIDEL | PG_BACKWARD, 1},
    {PG_SOR, 1.2}, {PG_SOR | PG_BACKWARD, 1.2}, {PG_SOR | PG_BACKWARD, 0.7},
};
enum { METHODS = sizeof methods / sizeof *methods };

static pg_dense_desc with_method(pg_backend backend, int q)
{
    pg_dense_desc desc = on(backend, methods[q].flags);
    if (!(desc.flags & PG_GAUSS_SEIDEL)) desc.omega = methods[q].omega;
    return desc;
}

static double difference(const double *x, const double *y, int n)
{
    double most = 0, largest = 0;
    for (int i = 0; i < n; i++) {
        if (!(fabs(x[i]) <= 1e300)) return INFINITY;
        largest = fmax(largest, fabs(x[i])), most = fmax(most, fabs(x[i] - y[i]));
    }
    return largest > 0 ? most / largest : most;
}

/* Counts to the tolerance, and u, with gaps between rows of every remainder. */
static void counts_are_those_of_the_plain_loop(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[] = {1, 2, 10, 31, 32, 33, 63, 64, 100, 257, 516, 1000, 2000};
    const int last = full_or_small(13, 10);
    for (int z = 0; z < last; z++)
        for (int q = 0; q < METHODS; q++)
            for (int kind = 0; kind < 2; kind++) {
                if (kind == 1 && methods[q].flags & PG_JACOBI) continue;    /* diverges */
                if (sizes[z] > 600 && kind == 1) continue;                   /* the plain loop takes too long */
                if (small_run() && kind == 1 && sizes[z] != 33) continue;
                if (small_run() && sizes[z] > 33 && q != 2 && q != 5) continue;
                system_of s = make_system(sizes[z], sizes[z] + (z + q) % 4, kind, (uint64_t)(10 * z + q));
                const pg_dense_desc desc = with_method(backend, q);
                const pg_stop stop = {.rtol = kind ? 1e-4 : 1e-10, .check = 1};
                double *u = allocate((size_t)s.n * sizeof *u), *v = allocate((size_t)s.n * sizeof *v);
                memcpy(v, s.u, (size_t)s.n * sizeof *v);
                const int count = plain_solve(&s, methods[q].flags, methods[q].omega, stop.rtol, 1, 10000, v);
                const pg_report report = solve_dense(&desc, &s, &stop, u);
                if (report.outcome != PG_CONVERGED || report.iterations != count)
                    fail_msg("n %d, flags 0x%x, kind %d: %d sweeps, the plain loop takes %d (%s)", s.n, desc.flags,
                             kind, report.iterations, count, report.message);
                if (!(difference(v, u, s.n) <= 1e-11))
                    fail_msg("n %d, flags 0x%x, kind %d: u differs by %g", s.n, desc.flags, kind,
                             difference(v, u, s.n));
                const double residual = plain_residual(&s, u);
                if (!(fabs(report.residual - residual) <= 1e-4 * residual + 1e-14 * report.rhs_norm))
                    fail_msg("n %d, flags 0x%x: reports a residual of %g, has %g", s.n, desc.flags, report.residual,
                             residual);
                free(u), free(v);
                free_system(&s);
            }
}

/* So many sweeps, no more: without a tolerance, and with checks that are rare. f32 too; device arrays where there
   are. */
static void sweeps_are_those_of_the_plain_loop(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[] = {1, 7, 33, 129, 300, 777};
    const int last = full_or_small(6, 4);
    for (int z = 0; z < last; z++)
        for (int q = 0; q < METHODS; q++)
            for (int variant = 0; variant < 4; variant++) {
                system_of s = make_system(sizes[z], sizes[z] + (z + variant) % 5, 0, (uint64_t)z);
                pg_dense_desc desc = with_method(backend, q);
                if (variant & 1) desc.flags |= PG_F32;
#ifdef PG_TEST_CUDA
                if (backend == PG_CUDA && variant & 2) desc.memory = PG_MEM_DEVICE;
#endif
                const int sweeps = 1 + (z + q) % 5;
                const pg_stop stop = {.rtol = PG_NONE, .max_iter = sweeps},
                              late = {.atol = 1e-300, .max_iter = sweeps, .check = 3};
                double *u = allocate((size_t)s.n * sizeof *u), *v = allocate((size_t)s.n * sizeof *v);
                memcpy(v, s.u, (size_t)s.n * sizeof *v);
                for (int k = 0; k < sweeps; k++) plain_sweep(&s, methods[q].flags, methods[q].omega, v);
                for (int checked = 0; checked < 2; checked++) {
                    const pg_report report = solve_dense(&desc, &s, checked ? &late : &stop, u);
                    if (s.n > 1) assert_int_equal(report.outcome, checked ? PG_MAX_ITER : PG_COMPLETED);
                    if (s.n > 1) assert_int_equal(report.iterations, sweeps);
                    if (!(difference(v, u, s.n) <= (variant & 1 ? 2e-5 : 1e-12)))
                        fail_msg("n %d, flags 0x%x, memory %d: u differs by %g after %d sweeps", s.n, desc.flags,
                                 (int)desc.memory, difference(v, u, s.n), sweeps);
                }
                free(u), free(v);
                free_system(&s);
            }
}

/* Default tolerances, in both precisions; of f32 to what it can resolve. The zero guess does not read u. */
static void default_tolerances_are_reached(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < METHODS; q++)
        for (int single = 0; single < 2; single++)
            for (int zero = 0; zero < 2; zero++) {
                system_of s = make_system(full_or_small(300, 70), 300, 0, 5);
                pg_dense_desc desc = with_method(backend, q);
                if (single) desc.flags |= PG_F32;
                const pg_stop stop = {.guess = zero ? PG_GUESS_ZERO : PG_GUESS_DEFAULT};
                double *u = allocate((size_t)s.n * sizeof *u);
                for (int i = 0; zero && i < s.n; i++) s.u[i] = NAN;
                const pg_report report = solve_dense(&desc, &s, &stop, u);
                if (report.outcome != PG_CONVERGED) fail_msg("flags 0x%x: %s", desc.flags, report.message);
                const double residual = plain_residual(&s, u) / report.rhs_norm;
                if (!(residual <= (single ? 2e-5 : 1.01e-8))) fail_msg("flags 0x%x: residual %g", desc.flags, residual);
                assert_int_equal(report.backend, backend);
                free(u);
                free_system(&s);
            }
}

/* A line of second differences: rho = cos(pi / (n+1)), and Young's formula holds. */
static void omega_is_chosen_by_youngs_formula(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    system_of s = make_system(12, 12, 2, 3);
    pg_dense_desc desc = on(backend, PG_SOR);
    desc.n = s.n, desc.A = s.a;
    pg_solver *solver = create_dense(&desc);
    pg_report report;
    const double rho = cos(PI / 13), omega = 2 / (1 + sqrt(1 - rho * rho));
    pg_dense_desc known;
    OK(pg_dense_query_desc(solver, &known), solver);
    if (!(fabs(known.omega - omega) < 0.01)) fail_msg("omega is %g, should be about %g", known.omega, omega);
    OK(pg_solve(solver, s.u, s.f, NULL), solver);
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_CONVERGED);
    char text[32];
    snprintf(text, sizeof text, "omega %.6g", known.omega);
    assert_non_null(strstr(report.method, text));
    assert_non_null(strstr(report.method, "spectral radius"));
    const int sor = report.iterations;
    desc.flags = PG_GAUSS_SEIDEL;
    for (int i = 0; i < s.n; i++) s.u[i] = 0;
    report = solve_dense(&desc, &s, NULL, NULL);
    assert_true(sor * 2 < report.iterations);

    for (int i = 0; i < s.n; i++) s.a[i * s.lda + i] = 0.5;    /* rho is 4 cos(pi/13): there is no formula */
    OK(pg_dense_update(solver), solver);
    OK(pg_dense_query_desc(solver, &known), solver);
    assert_true(known.omega == 1);
    pg_destroy(solver);
    free_system(&s);
}

static void a_solve_that_diverges_says_so(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < METHODS; q++)
        for (int restore = 0; restore < 2; restore++) {
            system_of s = make_system(40, 41, 0, 9);
            for (int i = 0; i < s.n; i++) s.a[i * s.lda + i] = i % 2 ? 1 : -1;
            pg_dense_desc desc = with_method(backend, q);
            if (restore) desc.flags |= PG_RESTORE;
            double u[40];
            const pg_report report = solve_dense(&desc, &s, NULL, u);
            assert_int_equal(report.outcome, PG_DIVERGED);
            assert_true(report.residual > 1e7 * report.first_residual);
            if (restore) assert_memory_equal(u, s.u, sizeof u);
            else assert_true(memcmp(u, s.u, sizeof u) != 0);
            free_system(&s);
        }
}

/* In A (on the diagonal and off), f or u: found before anything is written, wherever it is. */
static void not_a_number_is_found(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < METHODS; q++)
        for (int where = 0; where < 5; where++)
            for (int infinite = 0; infinite < 2; infinite++) {
                system_of s = make_system(70, 72, 0, 9);
                const double bad = infinite ? INFINITY : NAN;
                if (where == 0) s.a[69 * 72 + 0] = bad;
                if (where == 1) s.a[31 * 72 + 31] = bad;
                if (where == 2) s.a[0 * 72 + 69] = bad;
                if (where == 3) s.f[33] = bad;
                if (where == 4) s.u[69] = bad;
                pg_dense_desc desc = with_method(backend, q);
                double u[70];
                const pg_report report = solve_dense(&desc, &s, NULL, u);
                if (report.outcome != PG_NOT_A_NUMBER)
                    fail_msg("place %d, flags 0x%x: %s", where, desc.flags, report.message);
                assert_memory_equal(u, s.u, sizeof u);
                free_system(&s);
            }
}

static int cancel_at(void *user, const pg_report *so_far)
{
    return ++*(int *)user >= 3 || so_far->outcome != PG_RUNNING;
}

static void a_monitor_sees_every_check_and_can_cancel(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < METHODS; q++) {
        system_of s = make_system(50, 50, 0, 4);
        const pg_dense_desc desc = with_method(backend, q);
        int calls = 0;
        const pg_stop stop = {.rtol = 1e-14, .check = 1, .monitor = cancel_at, .user = &calls};
        double u[50], v[50];
        const pg_report report = solve_dense(&desc, &s, &stop, u);
        assert_int_equal(report.outcome, PG_CANCELLED);
        assert_int_equal(calls, 3);
        memcpy(v, s.u, sizeof v);
        for (int k = 0; k < report.iterations; k++) plain_sweep(&s, methods[q].flags, methods[q].omega, v);
        assert_true(difference(v, u, 50) < 1e-12);
        free_system(&s);
    }
}

static void two_solves_give_the_same_bits(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < METHODS; q++) {
        system_of s = make_system(full_or_small(900, 200), 900, 0, 4);
        const pg_dense_desc desc = with_method(backend, q);
        const pg_stop stop = {.rtol = PG_NONE, .max_iter = 3};
        const size_t bytes = (size_t)s.n * sizeof(double);
        double *u = allocate(bytes), *v = allocate(bytes);
#ifdef _OPENMP
        const int usual = omp_get_max_threads();
        omp_set_num_threads(1);
#endif
        solve_dense(&desc, &s, &stop, u);
        for (int threads = 2; threads < 6; threads++) {
#ifdef _OPENMP
            omp_set_num_threads(threads);
#endif
            solve_dense(&desc, &s, &stop, v);
            assert_memory_equal(u, v, bytes);
        }
#ifdef _OPENMP
        omp_set_num_threads(usual);
#endif
        free(u), free(v);
        free_system(&s);
    }
}

/* A right-hand side of 0, an exact guess: nothing to do. */
static void nothing_to_do_is_done(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < METHODS; q++)
        for (int n = 1; n < 5; n += 3) {
            system_of s = make_system(n, n, 0, 8);
            const pg_dense_desc desc = with_method(backend, q);
            const pg_stop zero = {.guess = PG_GUESS_ZERO};
            double u[4];
            for (int i = 0; i < n; i++) s.f[i] = 0;
            pg_report report = solve_dense(&desc, &s, &zero, u);
            assert_int_equal(report.outcome, PG_CONVERGED);
            assert_int_equal(report.iterations, 0);
            for (int i = 0; i < n; i++) assert_true(u[i] == 0);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) s.f[i] += s.a[i * n + j] * s.u[j];
            report = solve_dense(&desc, &s, NULL, u);
            assert_int_equal(report.outcome, PG_CONVERGED);
            assert_int_equal(report.iterations, 0);
            assert_memory_equal(u, s.u, (size_t)n * sizeof(double));
            free_system(&s);
        }
}

static void a_workspace_handed_in_is_enough(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int n = 1; n < 200; n += 37) {
        system_of s = make_system(n, n, 0, 8);
        pg_dense_desc desc = on(backend, 0);
        desc.n = n;
        size_t bytes = 0;
        OK(pg_dense_workspace_bytes(&desc, &bytes), NULL);
        desc.A = s.a;
        char *block = NULL;
#ifdef PG_TEST_CUDA
        if (backend == PG_CUDA) assert_int_equal(cudaMalloc((void **)&block, bytes + 512), cudaSuccess);
#endif
        if (backend == PG_CPU) memset(block = allocate(bytes + 512), 0x5a, bytes + 512);
        desc.workspace = block + (256 - (uintptr_t)block % 256) % 256, desc.workspace_bytes = bytes - 1;
        pg_solver *solver = NULL;
        assert_int_equal(pg_dense_create(&desc, &solver), PG_ERROR_MEMORY);
        assert_null(solver);
        desc.workspace_bytes = bytes;
        solver = create_dense(&desc);
        OK(pg_solve(solver, s.u, s.f, NULL), solver);
        pg_destroy(solver);
        for (char *p = (char *)desc.workspace + bytes; backend == PG_CPU && p < block + bytes + 512; p++)
            assert_int_equal(*p, 0x5a);
#ifdef PG_TEST_CUDA
        if (backend == PG_CUDA) cudaFree(block);
#endif
        if (backend == PG_CPU) free(block);
        free_system(&s);
    }
}

static void new_values_are_read_again(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    system_of s = make_system(30, 30, 0, 8);
    pg_dense_desc desc = on(backend, PG_GAUSS_SEIDEL);
    desc.n = 30, desc.A = s.a;
    pg_solver *solver = create_dense(&desc);
    const double value = s.a[17 * 31];
    double u[30];
    memcpy(u, s.u, sizeof u);
    s.a[17 * 31] = 0;
    assert_int_equal(pg_dense_update(solver), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(solver), "A[17][17] is 0"));
    assert_int_equal(pg_solve(solver, u, s.f, NULL), PG_ERROR_UNSUPPORTED);
    assert_memory_equal(u, s.u, sizeof u);
    for (int j = 0; j < 30; j++) s.a[17 * 30 + j] *= 2;
    s.a[17 * 31] = 2 * value;
    OK(pg_dense_update(solver), solver);
    const pg_stop stop = {.rtol = 1e-10, .check = 1};
    OK(pg_solve(solver, u, s.f, &stop), solver);
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    const int count = plain_solve(&s, PG_GAUSS_SEIDEL, 1, 1e-10, 1, 1000, s.u);
    assert_int_equal(report.iterations, count);
    assert_true(difference(s.u, u, 30) < 1e-12);
    pg_destroy(solver);
    free_system(&s);
}

static void refuse_create(const pg_dense_desc *desc, const char *word)
{
    pg_solver *solver = (pg_solver *)desc;    /* not NULL */
    const pg_status status = pg_dense_create(desc, &solver);
    if (status == PG_OK || solver || !strstr(pg_last_error(NULL), word))
        fail_msg("status %d, \"%s\" has no \"%s\"", (int)status, pg_last_error(NULL), word);
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    system_of s = make_system(4, 4, 0, 8);
    pg_dense_desc good = on(backend, PG_SOR), bad;
    pg_solver *never = NULL;
    good.n = 4, good.A = s.a, good.omega = 1.5;
#define BAD(change, word) bad = good, (void)(change), refuse_create(&bad, word)
    BAD(bad.struct_size = 3, "struct_size is 3");
    BAD(bad.n = 0, "n is 0");
    BAD(bad.n = -5, "n is -5");
    BAD(bad.lda = 3, "lda is 3");
    BAD(bad.lda = INT64_MAX, "lda is 9223372036854775807");
    BAD(bad.A = NULL, "A is NULL");
    BAD(bad.A = (char *)s.a + 1, "not aligned");
    BAD(bad.omega = 2, "omega is 2");
    BAD(bad.omega = -0.5, "omega is -0.5");
    BAD(bad.omega = NAN, "omega is");
    BAD((bad.flags = PG_JACOBI, bad.omega = 2.5), "omega is 2.5");
    BAD(bad.flags = PG_GAUSS_SEIDEL, "use PG_SOR");
    BAD(bad.flags = PG_SOR | PG_JACOBI, "method");
    BAD(bad.flags = PG_F32 | PG_F64, "precision");
    BAD(bad.flags = PG_FMG, "0x200");
    BAD((bad.flags = PG_JACOBI | PG_BACKWARD), "PG_BACKWARD");
    BAD(bad.memory = (pg_memory)7, "memory is 7");
    BAD(bad.backend = (pg_backend)9, "backend is 9");
    BAD(bad.memory = PG_MEM_DEVICE, backend == PG_CPU ? "PG_MEM_HOST" : "A is a host pointer");
    BAD(bad.allocator.alloc = (void *(*)(void *, size_t, pg_memory, pg_stream))0x1, "allocator");
    BAD(bad.device = -1, "device is -1");
    assert_int_equal(pg_dense_create(NULL, &never), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(NULL), "desc is NULL"));
    size_t bytes = 7;
    bad = good, bad.n = 0;
    assert_int_equal(pg_dense_workspace_bytes(&bad, &bytes), PG_ERROR_ARGUMENT);
    assert_int_equal(bytes, 0);
    assert_int_equal(pg_dense_create(&good, NULL), PG_ERROR_ARGUMENT);
    s.a[2 * 5] = 0;
    BAD(0, "A[2][2] is 0");
    s.a[2 * 5] = 4e-320;
    BAD(0, "row 2");
    s.a[2 * 5] = 9;
#undef BAD
    pg_solver *solver = create_dense(&good);
    double u[4];
    memcpy(u, s.u, sizeof u);
#define BAD(u, f, stop, word)                                                                                         \
    do {                                                                                                              \
        assert_int_equal(pg_solve(solver, u, f, stop), PG_ERROR_ARGUMENT);                                      \
        if (!strstr(pg_last_error(solver), word)) fail_msg("\"%s\"", pg_last_error(solver));              \
    } while (0)
    BAD(NULL, s.f, NULL, "u is NULL");
    BAD(u, NULL, NULL, "f is NULL");
    BAD(u, u, NULL, "overlap");
    BAD(s.a + 12, s.f, NULL, "A (");
    BAD((double *)((char *)u + 4), s.f, NULL, "aligned");
    const pg_stop worse = {.rtol = -3};
    BAD(u, s.f, &worse, "rtol is -3");
    assert_memory_equal(u, s.u, sizeof u);
    assert_int_equal(pg_get_report(solver, NULL), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_solve(NULL, u, s.f, NULL), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(NULL), "pg_dense_create"));
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_NOT_RUN);
    OK(pg_solve(solver, u, s.f, NULL), solver);
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_CONVERGED);
    pg_destroy(solver);
    pg_destroy(NULL);
    pg_desc grid = {0};
    grid.n[0] = 8, grid.backend = backend;
    pg_solver *box = NULL;
    double v[8] = {0}, number;
    OK(pg_create(&grid, &box), NULL);
    solver = NULL;
    OK(pg_dense_create(&good, &solver), NULL);
#define OTHER(call, of, name)                                                                                        \
    do {                                                                                                             \
        assert_int_equal(call, PG_ERROR_UNSUPPORTED);                                                                \
        assert_non_null(strstr(pg_last_error(of), name));                                                            \
        assert_non_null(strstr(pg_last_error(of), of == box ? "pg_dense_create" : "a solver of pg_create"));         \
    } while (0)
    OTHER(pg_dense_update(box), box, "pg_dense_update");
    OTHER(pg_set_faces(solver, grid.face), solver, "pg_set_faces");
    OTHER(pg_set_alpha(solver, 1), solver, "pg_set_alpha");
    OTHER(pg_set_cells(solver, &grid.cells), solver, "pg_set_cells");
    OTHER(pg_smooth(solver, u, s.f, 1), solver, "pg_smooth");
    OTHER(pg_cycle(solver, u, s.f, 1), solver, "pg_cycle");
    OTHER(pg_apply(solver, u, v), solver, "pg_apply");
    OTHER(pg_residual(solver, u, s.f, v), solver, "pg_residual");
    OTHER(pg_gradient(solver, u, 0, v, PG_AT_UNKNOWNS), solver, "pg_gradient");
    OTHER(pg_norm(solver, u, PG_NORM_L2, &number), solver, "pg_norm");
    OTHER(pg_dot(solver, u, NULL, &number), solver, "pg_dot");
    int parts = 0;
    OTHER(pg_get_parts(solver, NULL, NULL, &parts, NULL, NULL), solver, "pg_get_parts");
    assert_int_equal(pg_query_desc(solver, &grid), PG_ERROR_UNSUPPORTED);
    assert_int_equal(pg_dense_query_desc(box, &bad), PG_ERROR_UNSUPPORTED);
    OK(pg_solve(solver, u, s.f, NULL), solver);
    pg_destroy(solver), pg_destroy(box);
    grid.n[0] = 8, grid.flags = PG_BACKWARD, grid.backend = backend;
    pg_solver *other = NULL;
    assert_int_equal(pg_create(&grid, &other), PG_ERROR_ARGUMENT);
    free_system(&s);
}

/* Captured into a graph of the caller's and replayed with other data: the same bits as a call. */
static void a_captured_solve_is_that_of_a_call(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    if (backend == PG_CPU) skip();
#ifdef PG_TEST_CUDA
    for (int q = 0; q < METHODS; q++) {
        system_of s = make_system(90, 92, 0, 4);
        pg_dense_desc desc = with_method(backend, q);
        const size_t bytes = 90 * sizeof(double);
        cudaStream_t stream;
        cudaGraph_t graph;
        cudaGraphExec_t replay;
        assert_int_equal(cudaStreamCreate(&stream), cudaSuccess);
        desc.memory = PG_MEM_DEVICE, desc.n = s.n, desc.lda = s.lda, desc.stream = stream;
        void *a = place(s.a, elements(&s), &desc), *u = place(s.u, 90, &desc), *f = place(s.f, 90, &desc);
        desc.A = a;
        pg_solver *solver = create_dense(&desc), *never = NULL;
        const pg_stop stop = {.rtol = 1e-9, .max_iter = 200};
        pg_report called, replayed;
        double result[90], again[90];
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &called), solver);
        assert_int_equal(called.outcome, PG_CONVERGED);
        fetch(result, u, 90, &desc);
        assert_int_equal(cudaMemcpy(u, s.u, bytes, cudaMemcpyHostToDevice), cudaSuccess);
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        OK(pg_solve(solver, u, f, &stop), solver);
        assert_int_equal(pg_dense_update(solver), PG_ERROR_UNSUPPORTED);
        assert_int_equal(pg_dense_create(&desc, &never), PG_ERROR_UNSUPPORTED);
        assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
        OK(pg_dense_update(solver), solver);
        assert_int_equal(cudaGraphInstantiateWithFlags(&replay, graph, 0), cudaSuccess);
        for (int time = 0; time < 2; time++) {
            assert_int_equal(cudaMemcpy(u, s.u, bytes, cudaMemcpyHostToDevice), cudaSuccess);
            assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
            assert_int_equal(cudaGraphLaunch(replay, stream), cudaSuccess);
            assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
            fetch(again, u, 90, &desc);
            assert_memory_equal(result, again, bytes);
            OK(pg_get_report(solver, &replayed), solver);
            assert_int_equal(replayed.iterations, called.iterations);
        }
        cudaGraphExecDestroy(replay);
        cudaGraphDestroy(graph);
        pg_destroy(solver);
        release(a, &desc), release(u, &desc), release(f, &desc);
        cudaStreamDestroy(stream);
        free_system(&s);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(counts_are_those_of_the_plain_loop),
        ON_BOTH(sweeps_are_those_of_the_plain_loop),
        ON_BOTH(default_tolerances_are_reached),
        ON_BOTH(omega_is_chosen_by_youngs_formula),
        ON_BOTH(a_solve_that_diverges_says_so),
        ON_BOTH(not_a_number_is_found),
        ON_BOTH(a_monitor_sees_every_check_and_can_cancel),
        ON_BOTH(two_solves_give_the_same_bits),
        ON_BOTH(nothing_to_do_is_done),
        ON_BOTH(a_workspace_handed_in_is_enough),
        ON_BOTH(new_values_are_read_again),
        ON_BOTH(what_cannot_be_is_refused_by_name),
        ON_CUDA(a_captured_solve_is_that_of_a_call),
    };
    return cmocka_run_group_tests_name("dense systems", tests, NULL, NULL);
}
