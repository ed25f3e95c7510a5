/* PG_MIXED reaches f64 accuracy with hardly more cycles than f64 needs. */
#include "manufactured.h"

static int cycles_to_1e_11(const manufactured *m, unsigned flags)
{
    pg_desc desc = m->desc;
    desc.flags = flags;
    const size_t points = ref_points(&m->p);
    double *u = allocate(points * sizeof *u);
    memset(u, 0, points * sizeof *u);
    pg_solver *solver = create(&desc);
    const pg_stop stop = {.rtol = 1e-11};
    OK(pg_solve(solver, u, m->f, &stop), solver);
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    if (report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(&desc), report.message);
    pg_destroy(solver);

    /* What the report says of the residual is so. */
    const ref *p = &m->p;
    const long double removed = report.removed_mean;
    long double residual = 0, rhs = 0;
    REF_EACH(p, i, j, k) {
        const int64_t at = ref_f(p, i, j, k);
        const long double r = ref_residual(p, u, m->f, i, j, k) - removed;
        const long double b = m->f[at] + ref_boundary(p, i, j, k) - removed;
        residual += ref_weight(p, i, j, k) * r * r;
        rhs += ref_weight(p, i, j, k) * b * b;
    }
    if (!(sqrtl(residual / rhs) <= 1.1e-11L))
        fail_msg("%s: residual %.2Le of the right-hand side", describe(&desc), sqrtl(residual / rhs));
    free(u);
    return report.iterations;
}

static void must_cost_at_most_three_cycles_more(const pg_desc *desc)
{
    static const unsigned methods[] = {PG_VCYCLE, PG_FMG};
    const int shape[3] = {PLAIN, PLAIN, PLAIN};
    manufactured m;
    manufactured_create(&m, desc, shape);
    for (int method = 0; method < 2; method++) {
        const int f64 = cycles_to_1e_11(&m, methods[method]);
        const int mixed = cycles_to_1e_11(&m, methods[method] | PG_MIXED);
        if (mixed > f64 + 3)
            fail_msg("%s, method 0x%x: %d f32 cycles, %d in f64", describe(desc), methods[method], mixed, f64);
    }
    manufactured_free(&m);
}

static void mixed_precision(pg_backend backend, int dim, int n, const char *const *pairs, int count)
{
    for (int pair = 0; pair < count; pair++)
        for (int cell = 0; cell < 2; cell++) {
            if (small_run() && (pair + cell + n) % 2) continue;
            pg_desc desc = {0};
            desc.coarsest = 8;      /* what is solved exactly takes one cycle in f64 */
            for (int axis = 0; axis < 3; axis++) {
                desc.n[axis] = axis < dim ? n + axis : 1;
                desc.centring[axis] = cell ? PG_CELL : PG_NODE;
                set_ends(&desc, axis, pairs[pair]);
            }
            desc.backend = backend;
            must_cost_at_most_three_cycles_more(&desc);
        }
}

static const char *const regular[] = {"DD", "DN", "RD", "NR", "RR"}, *const singular[] = {"NN", "PP"};

static void cubes_with_data_on_all_faces(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    mixed_precision(backend, 3, full_or_small(30, 11), regular, 5);
    if (!small_run()) mixed_precision(backend, 3, backend == PG_CUDA ? 127 : 44, regular, 2);
}

static void squares_with_data_on_all_sides(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    mixed_precision(backend, 2, 31, regular, 5);
    mixed_precision(backend, 2, full_or_small(100, 40), regular, 5);
}

static void singular_problems(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    mixed_precision(backend, 2, full_or_small(100, 32), singular, 2);
    mixed_precision(backend, 3, full_or_small(32, 13), singular, 2);
}

/* alpha alone holds the constant, and is so small that f32 cannot tell the rest of u from it; f64 can. */
static void nearly_singular_problems(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {PG_DIRECT, PG_VCYCLE, PG_FMG};
    static const double alphas[] = {1e-12, 1e-5, 0.3};
    enum { N = 20 };
    static double u[N * N * N], f[N * N * N];
    const int n = full_or_small(N, 11);
    for (int method = 0; method < 3; method++)
        for (int q = 0; q < 3; q++)
            for (int free = 0; free < 2; free++) {      /* of a mean */
                if (small_run() && (method + q + free) % 2) continue;
                pg_desc desc = {0};
                rng r = {3};
                desc.backend = backend, desc.flags = methods[method] | PG_MIXED, desc.alpha = alphas[q];
                desc.coarsest = method ? 8 : 0;
                for (int axis = 0; axis < 3; axis++) {
                    desc.n[axis] = n - axis, desc.centring[axis] = axis == 1 ? PG_NODE : PG_CELL;
                    set_ends(&desc, axis, axis == 2 ? "PP" : "NN");
                }
                ref p;
                ref_create(&p, &desc);
                REF_EACH(&p, i, j, k) u[ref_u(&p, i, j, k)] = 0, f[ref_f(&p, i, j, k)] = rng_uniform(&r, -1, 1);
                const double mean = (double)ref_mean(&p, f) - (free ? 0 : alphas[q]);
                REF_EACH(&p, i, j, k) f[ref_f(&p, i, j, k)] -= mean;
                pg_solver *solver = create(&desc);
                const pg_stop stop = {.rtol = 1e-11};
                OK(pg_solve(solver, u, f, &stop), solver);
                pg_report report;
                OK(pg_get_report(solver, &report), solver);
                if (report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(&desc), report.message);
                const long double level = ref_mean(&p, u);      /* 1, or 0 */
                if (!(fabsl(level - !free) <= 1e-3L)) fail_msg("%s: level %.9Lf", describe(&desc), level);
                pg_destroy(solver);
                ref_free(&p);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(cubes_with_data_on_all_faces),
        ON_BOTH(squares_with_data_on_all_sides),
        ON_BOTH(singular_problems),
        ON_BOTH(nearly_singular_problems),
    };
    return cmocka_run_group_tests_name("mixed precision", tests, NULL, NULL);
}
