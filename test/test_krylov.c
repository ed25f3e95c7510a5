/* Krylov methods: what they solve, that they are what they are called, and what they refuse. */
#include "manufactured.h"

static const unsigned preconditioners[] = {PG_PRECOND_NONE, PG_PRECOND_DIAGONAL, PG_PRECOND_CYCLE};
static const char *const all_pairs[] = {"DD", "DN", "RD", "NR", "RR", "NN", "PP"};
enum { PAIRS = sizeof all_pairs / sizeof *all_pairs };

/* A box of mixed centring; pair q of ends along x, the next ones along y and z; strides with gaps. */
static pg_desc mixed_box(pg_backend backend, int dim, int n, int pair)
{
    pg_desc desc = {0};
    desc.backend = backend, desc.coarsest = 8;
    for (int axis = 0; axis < dim; axis++) {
        desc.n[axis] = n + axis - 1;
        desc.centring[axis] = (pair + axis) % 2 ? PG_CELL : PG_NODE;
        set_ends(&desc, axis, pair >= 5 ? all_pairs[pair] : all_pairs[(pair + axis) % 5]);
        for (int end = 0; end < 2; end++)
            if (desc.face[2 * axis + end].kind != PG_PERIODIC) desc.face[2 * axis + end].value = 0.3 * axis - 0.2 * end + 0.1;
    }
    desc.stride_u[0] = desc.n[0] + 3, desc.stride_u[1] = desc.stride_u[0] * (dim > 1 ? desc.n[1] : 1) + 5;
    return desc;
}

/* Relative, of what is left when the mean has been removed. */
static long double true_residual(const ref *p, const void *u, const void *f, long double removed)
{
    long double residual = 0, rhs = 0;
    REF_EACH(p, i, j, k) {
        const long double r = ref_residual(p, u, f, i, j, k) - removed;
        const long double b = ref_load(p, f, ref_f(p, i, j, k)) + ref_boundary(p, i, j, k) - removed;
        residual += ref_weight(p, i, j, k) * r * r;
        rhs += ref_weight(p, i, j, k) * b * b;
    }
    return sqrtl(residual / rhs);
}

static pg_report solve_random(const pg_desc *desc, const pg_stop *stop, long double *residual)
{
    ref p;
    ref_create(&p, desc);
    const size_t size = p.f32 ? sizeof(float) : sizeof(double);
    void *u = allocate(size * ref_extent_u(&p)), *f = allocate(size * ref_extent_f(&p));
    rng r = {7};
    REF_EACH(&p, i, j, k) {
        ref_store(&p, u, ref_u(&p, i, j, k), 0);
        ref_store(&p, f, ref_f(&p, i, j, k), rng_uniform(&r, -1, 1));
    }
    pg_solver *solver = create(desc);
    pg_report report;
    OK(pg_solve(solver, u, f, stop), solver);
    OK(pg_get_report(solver, &report), solver);
    *residual = true_residual(&p, u, f, report.removed_mean);
    pg_destroy(solver);
    ref_free(&p);
    free(u), free(f);
    return report;
}

/* The report's residual is that of u, though the method has it from a recurrence. */
static void conjugate_gradients_reach_the_tolerance(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned precisions[] = {PG_F64, PG_F32, PG_MIXED};
    for (int dim = 1; dim <= 3; dim++)
        for (int pair = 0; pair < PAIRS; pair++)
            for (int precision = 0; precision < 3; precision++)
                for (int method = 0; method < 3; method++) {
                    if (precisions[precision] == PG_MIXED && preconditioners[method] != PG_PRECOND_CYCLE) continue;
                    pg_desc desc = mixed_box(backend, dim, dim == 3 ? full_or_small(21, 10) : full_or_small(40, 20), pair);
                    desc.flags = PG_CG | preconditioners[method] | precisions[precision];
                    const int f32 = precisions[precision] == PG_F32;
                    const pg_stop stop = {.rtol = f32 ? 1e-4 : 1e-10};
                    long double residual;
                    const pg_report report = solve_random(&desc, &stop, &residual);
                    if (report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(&desc), report.message);
                    if (!(residual <= (f32 ? 1.05e-4L : 1.001e-10L)))
                        fail_msg("%s: residual %.3Le of the right-hand side", describe(&desc), residual);
                    if (!(fabsl(residual * report.rhs_norm - report.residual) <= 1e-3L * report.residual + report.floor))
                        fail_msg("%s: reports a residual of %g, has %Lg", describe(&desc), report.residual,
                                 residual * report.rhs_norm);
                    if (preconditioners[method] == PG_PRECOND_CYCLE && report.iterations > 12)
                        fail_msg("%s: %d iterations", describe(&desc), report.iterations);
                }
}

/* The iterates of so many steps are those of the method as the textbook has it, in the weighted inner product. */
static void iterates_are_those_of_the_textbook(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int pair = 0; pair < 5; pair++)
        for (int diagonal = 0; diagonal < 2; diagonal++) {
            enum { STEPS = 7 };
            pg_desc desc = mixed_box(backend, 3, 8, pair);
            memset(desc.stride_u, 0, sizeof desc.stride_u);
            for (int face = 0; face < 6; face++) desc.face[face].value = 0;
            desc.flags = PG_CG | (diagonal ? PG_PRECOND_DIAGONAL : PG_PRECOND_NONE);
            ref p;
            ref_create(&p, &desc);
            const size_t points = ref_points(&p), bytes = points * sizeof(double);
            double *u = allocate(bytes), *f = allocate(bytes), *x = allocate(bytes), *r = allocate(bytes),
                   *z = allocate(bytes), *d = allocate(bytes), *q = allocate(bytes), *one = allocate(bytes);
            rng random = {11};
            for (size_t i = 0; i < points; i++) u[i] = x[i] = d[i] = one[i] = 0, f[i] = r[i] = rng_uniform(&random, -1, 1);
            long double before = 0;
            for (int step = 0; step < STEPS; step++) {
                long double rz = 0, pq = 0;
                REF_EACH(&p, i, j, k) {
                    const int64_t at = ref_u(&p, i, j, k);
                    one[at] = 1;
                    z[at] = diagonal ? (double)(r[at] / ref_apply(&p, one, i, j, k)) : r[at];
                    one[at] = 0;
                    rz += ref_weight(&p, i, j, k) * r[at] * z[at];
                }
                for (size_t i = 0; i < points; i++) d[i] = z[i] + (step ? (double)(rz / before) : 0) * d[i];
                REF_EACH(&p, i, j, k) {
                    q[ref_u(&p, i, j, k)] = (double)ref_apply(&p, d, i, j, k);
                    pq += ref_weight(&p, i, j, k) * d[ref_u(&p, i, j, k)] * q[ref_u(&p, i, j, k)];
                }
                for (size_t i = 0; i < points; i++) x[i] += (double)(rz / pq) * d[i], r[i] -= (double)(rz / pq) * q[i];
                before = rz;
            }
            pg_solver *solver = create(&desc);
            const pg_stop stop = {.rtol = PG_NONE, .max_iter = STEPS};
            OK(pg_solve(solver, u, f, &stop), solver);
            pg_report report;
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.iterations, STEPS);
            double largest = 0, difference = 0;
            for (size_t i = 0; i < points; i++) {
                largest = fmax(largest, fabs(x[i]));
                difference = fmax(difference, fabs(x[i] - u[i]));
            }
            if (!(largest > 0 && difference <= 1e-11 * largest))
                fail_msg("%s: differs by %g, of %g", describe(&desc), difference, largest);
            pg_destroy(solver);
            ref_free(&p);
            free(u), free(f), free(x), free(r), free(z), free(d), free(q), free(one);
        }
}

/* A line of n unknowns has n eigenvalues: the method ends after as many steps, but for round-off. */
static void it_ends_after_as_many_steps_as_there_are_eigenvalues(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    pg_desc desc = {0};
    desc.n[0] = 24, desc.backend = backend, desc.flags = PG_CG | PG_PRECOND_NONE;
    const pg_stop stop = {.rtol = 1e-11};
    long double residual;
    const pg_report report = solve_random(&desc, &stop, &residual);
    assert_int_equal(report.outcome, PG_CONVERGED);
    assert_in_range(report.iterations, 20, 26);
}

/* A right-hand side of 0, an exact guess, one unknown: nothing to divide by. */
static void nothing_to_do_is_done(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int method = 0; method < 3; method++)
        for (int n = 1; n <= 5; n += 4) {
            pg_desc desc = {0};
            desc.n[0] = n, desc.backend = backend, desc.flags = PG_CG | preconditioners[method];
            double u[5] = {0}, f[5] = {0};
            pg_solver *solver = create(&desc);
            pg_report report;
            OK(pg_solve(solver, u, f, NULL), solver);
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.outcome, PG_CONVERGED);
            assert_int_equal(report.iterations, 0);
            const pg_stop steps = {.rtol = PG_NONE, .max_iter = 3};
            OK(pg_solve(solver, u, f, &steps), solver);
            for (int i = 0; i < n; i++) assert_true(u[i] == 0);
            f[n / 2] = 1;
            OK(pg_solve(solver, u, f, NULL), solver);
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.outcome, PG_CONVERGED);
            pg_destroy(solver);
        }
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct {
        unsigned flags;
        const char *word;
    } refused[] = {
        {PG_VCYCLE | PG_PRECOND_DIAGONAL, "preconditioner"}, {PG_DIRECT | PG_PRECOND_CYCLE, "preconditioner"},
        {PG_CG | PG_PRECOND_CYCLE | PG_PRECOND_NONE, "preconditioner"}, {PG_CG | PG_MIXED | PG_PRECOND_DIAGONAL, "PG_MIXED"},
        {PG_CG | PG_PRECOND_NONE | PG_SMOOTH_JACOBI, "smoother"}, {PG_CG | PG_PRECOND_DIAGONAL | PG_SYMMETRIC, "PG_SYMMETRIC"},
        {PG_CG | PG_VCYCLE, "method"},
    };
    for (size_t q = 0; q < sizeof refused / sizeof *refused; q++) {
        pg_desc desc = {0};
        desc.n[0] = 8, desc.n[1] = 8, desc.backend = backend, desc.flags = refused[q].flags;
        pg_solver *solver = NULL;
        const pg_status status = pg_create(&desc, &solver);
        if (status == PG_OK || solver || !strstr(pg_last_error(NULL), refused[q].word))
            fail_msg("flags 0x%x: status %d, \"%s\"", desc.flags, (int)status, pg_last_error(NULL));
    }
    pg_desc desc = {0};
    desc.n[0] = 8, desc.n[1] = 8, desc.backend = backend, desc.flags = PG_CG;
    double u[64] = {0}, f[64] = {0};
    pg_solver *solver = create(&desc);
    assert_int_equal(pg_cycle(solver, u, f, 1), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(solver), "PG_CG"));
    assert_int_equal(pg_smooth(solver, u, f, 1), PG_ERROR_UNSUPPORTED);
    OK(pg_solve(solver, u, f, NULL), solver);
    pg_destroy(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(conjugate_gradients_reach_the_tolerance),
        ON_BOTH(iterates_are_those_of_the_textbook),
        ON_BOTH(it_ends_after_as_many_steps_as_there_are_eigenvalues),
        ON_BOTH(nothing_to_do_is_done),
        ON_BOTH(what_cannot_be_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("Krylov methods", tests, NULL, NULL);
}
