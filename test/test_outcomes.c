/* How a solve ends, and that its report tells the truth: every residual is recomputed in long double. */
#include "ref.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* A problem with random f and u; packed unless the descriptor has strides. */
typedef struct problem {
    pg_desc desc;
    ref p;
    pg_solver *solver;
    void *u, *f, *f_before;
    size_t u_bytes, f_bytes;
    pg_report report;
} problem;

static void randomize(const ref *p, void *array, size_t elements, uint64_t seed)
{
    rng r = {seed};
    for (size_t q = 0; q < elements; q++) ref_store(p, array, (int64_t)q, (long double)rng_uniform(&r, -1, 1));
}

static problem problem_create(const pg_desc *desc)
{
    problem t = {0};
    t.desc = *desc;
    t.desc.coarsest = 8;                                 /* cycles on grids that would be solved exactly */
    ref_create(&t.p, desc);
    const size_t size = t.p.f32 ? sizeof(float) : sizeof(double);
    t.u_bytes = size * ref_extent_u(&t.p), t.f_bytes = size * ref_extent_f(&t.p);
    t.u = allocate(t.u_bytes), t.f = allocate(t.f_bytes), t.f_before = allocate(t.f_bytes);
    randomize(&t.p, t.u, ref_extent_u(&t.p), 1);
    randomize(&t.p, t.f, ref_extent_f(&t.p), 2);
    t.solver = create(&t.desc);
    return t;
}

static void problem_destroy(problem *t)
{
    pg_destroy(t->solver);
    ref_free(&t->p);
    free(t->u), free(t->f), free(t->f_before);
}

/* Solves, checks that f was not written, fetches the report. */
static void solve(problem *t, const pg_stop *stop)
{
    memcpy(t->f_before, t->f, t->f_bytes);
    OK(pg_solve(t->solver, t->u, t->f, stop), t->solver);
    OK(pg_get_report(t->solver, &t->report), t->solver);
    assert_memory_equal(t->f, t->f_before, t->f_bytes);
    assert_true(t->report.message[0]);
    assert_int_equal(t->report.backend, t->desc.backend);
    assert_true(t->report.milliseconds >= 0);
}

static void assert_outcome(const problem *t, pg_outcome outcome)
{
    if (t->report.outcome != outcome)
        fail_msg("%s, not %s, after %d iterations: %s (%s)", pg_outcome_string(t->report.outcome),
                 pg_outcome_string(outcome), t->report.iterations, t->report.message, describe(&t->desc));
}

static size_t history_bytes(const pg_report *report)
{
    return sizeof(double) * (size_t)(report->history_count < PG_HISTORY ? report->history_count : PG_HISTORY);
}

static void assert_close(double got, long double expected, double tolerance)
{
    if (!(fabsl((long double)got - expected) <= tolerance))
        fail_msg("%.17g is not %.17Lg within %g", got, expected, tolerance);
}

/* One norm of f + boundary - removed - A u; without u, of the right-hand side. */
static long double ref_norm(const problem *t, const void *u, double removed, pg_norm_kind kind)
{
    const ref *p = &t->p;
    long double sum = 0;
    REF_EACH(p, i, j, k) {
        long double r = ref_load(p, t->f, ref_f(p, i, j, k)) + ref_boundary(p, i, j, k) - (long double)removed;
        if (u) r -= ref_apply(p, u, i, j, k);
        const long double w = ref_weight(p, i, j, k);
        switch (kind) {
        case PG_NORM_L2: sum += w * r * r; break;
        case PG_NORM_L2_PLAIN: sum += r * r; break;
        case PG_NORM_MAX: sum = fmaxl(sum, fabsl(r)); break;
        case PG_NORM_L1: sum += w * fabsl(r); break;
        }
    }
    return kind == PG_NORM_L2 || kind == PG_NORM_L2_PLAIN ? sqrtl(sum) : sum;
}

/* Round-off of a residual computed in f64: an ulp of the terms that cancel; the largest is the diagonal times u. */
static double round_off(const problem *t, pg_norm_kind kind)
{
    const ref *p = &t->p;
    long double diagonal = p->alpha, u_max = 0, volume = 0, f_norm = ref_norm(t, NULL, 0, kind);
    for (int axis = 0; axis < 3; axis++) {
        long double largest = 0;
        for (int i = 0; i < p->n[axis]; i++)
            largest = fmaxl(largest, p->axis[axis].low[i] + p->axis[axis].high[i] + fabsl(p->axis[axis].end[0]) +
                                         fabsl(p->axis[axis].end[1]));
        diagonal += p->beta * 2 * largest;
    }
    REF_EACH(p, i, j, k) {
        u_max = fmaxl(u_max, fabsl(ref_load(p, t->u, ref_u(p, i, j, k))));
        volume += kind == PG_NORM_L2_PLAIN ? 1 : ref_weight(p, i, j, k);
    }
    if (kind == PG_NORM_MAX) volume = 1;
    if (kind == PG_NORM_L2 || kind == PG_NORM_L2_PLAIN) volume = sqrtl(volume);
    return (double)(8 * 0x1p-52L * (diagonal * u_max * volume + f_norm));
}

/* The report's norms are those of the u returned, whatever the outcome. */
static void assert_report_is_true(const problem *t, pg_norm_kind kind)
{
    const double tolerance = round_off(t, kind);
    assert_close(t->report.rhs_norm, ref_norm(t, NULL, t->report.removed_mean, kind), tolerance);
    assert_close(t->report.residual, ref_norm(t, t->u, t->report.removed_mean, kind), tolerance);
    const int last = t->report.history_count - 1;
    assert_true(last >= 0);
    assert_true(t->report.history[0] == t->report.first_residual);
    if (last < PG_HISTORY) assert_true(t->report.history[last] == t->report.residual);
}

/* Odd and unequal sizes, one axis of each centring, data on the faces: nothing here is a special case. */
static pg_desc mixed_box(pg_backend backend, unsigned flags)
{
    pg_desc desc = {0};
    desc.n[0] = full_or_small(15, 9), desc.n[1] = full_or_small(10, 8), desc.n[2] = full_or_small(7, 5);
    desc.centring[1] = PG_CELL;
    set_ends(&desc, 0, "DN");
    set_ends(&desc, 1, "RD");
    set_ends(&desc, 2, "PP");
    desc.face[PG_X_LOW].value = 0.5, desc.face[PG_X_HIGH].value = -2, desc.face[PG_Y_LOW].value = 1;
    desc.backend = backend, set_choice(&desc, flags);
    return desc;
}

static pg_desc singular_box(pg_backend backend, unsigned flags, int variant)
{
    static const double stretched[13] = {0, .04, .08, .12, .2, .28, .36, .44, .52, .64, .76, .88, 1},
                        radius[12] = {.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5},
                        edge[13] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    pg_desc desc = {0};
    desc.n[0] = 12, desc.n[1] = full_or_small(9, 6), desc.n[2] = full_or_small(7, 5);
    set_choice(&desc, flags), desc.backend = backend;
    for (int axis = 0; axis < 3; axis++) set_ends(&desc, axis, "NN");
    switch (variant) {
    case 0: break;
    case 1: set_ends(&desc, 1, "PP"), desc.centring[0] = desc.centring[2] = PG_CELL; break;
    case 2: desc.centring[0] = PG_CELL, desc.coord[0] = stretched; break;
    case 3: desc.centring[0] = PG_CELL, desc.weight[0] = radius, desc.conductance[0] = edge, desc.beta = 3; break;
    case 4: desc.n[2] = 1, set_ends(&desc, 0, "PP"), set_ends(&desc, 1, "PP"); break;
    case 5: desc.n[1] = desc.n[2] = 1; break;
    }
    if (desc.face[0].kind == PG_NEUMANN) desc.face[0].value = 0.75, desc.face[1].value = -0.25;
    if (desc.face[2].kind == PG_NEUMANN) desc.face[3].value = 2;
    return desc;
}
enum { SINGULAR_BOXES = 6 };

static pg_desc plain_box(pg_backend backend, int n, unsigned flags)
{
    pg_desc desc = {0};
    desc.n[0] = desc.n[1] = desc.n[2] = n;
    desc.backend = backend, set_choice(&desc, flags);
    return desc;
}

static const unsigned all_methods[] = {PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_WCYCLE, PG_FMG, PG_MIXED | PG_FMG,
                                       PG_MIXED | PG_VCYCLE, PG_VCYCLE | PG_SMOOTH_JACOBI, PG_FMG | PG_SMOOTH_CHEBYSHEV,
                                       PG_VCYCLE | PG_SYMMETRIC};
enum { ALL_METHODS = sizeof all_methods / sizeof *all_methods };

/* Checks see u after the first smoothing of the next cycle, where there are several levels; solves without checks end
   with the last cycle. */
static void smooth_as_before_a_check(problem *t)
{
    if (!(t->desc.flags & (PG_JACOBI | PG_RBGS | PG_SOR | PG_MIXED))) OK(pg_smooth(t->solver, t->u, t->f, 2), t->solver);
}

static int is_sweep(unsigned flags) { return (flags & (PG_JACOBI | PG_RBGS | PG_SOR)) != 0; }

/* The iterations at which the solver can stop, from the wanted one on: PG_MIXED goes in steps of inner_cycles = 2
   cycles, and full multigrid counts one in front of them. */
static int reached(unsigned flags, int wanted)
{
    if (!(flags & PG_MIXED)) return wanted;
    const int first = flags & PG_FMG ? 1 : 2;
    return wanted <= first ? first : first + (wanted - first + 1) / 2 * 2;
}

/* ---- The outcomes ------------------------------------------------------------------------------------------------ */

static void converged_means_that_the_residual_is_within_the_tolerance(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        const pg_desc desc = mixed_box(backend, all_methods[m]);
        problem t = problem_create(&desc);
        solve(&t, NULL);
        assert_outcome(&t, PG_CONVERGED);
        assert_report_is_true(&t, PG_NORM_L2);
        assert_true(t.report.residual <= 1e-8 * t.report.rhs_norm);
        assert_true(t.report.iterations > 0);
        const int interval = is_sweep(desc.flags) ? 10 : desc.flags & PG_MIXED ? 2 : 1;
        assert_int_equal(t.report.history_count, 1 + (t.report.iterations + interval - 1) / interval);
        assert_true(t.report.removed_mean == 0);
        problem_destroy(&t);
    }
}

static void single_precision_converges_to_its_own_default(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        if (all_methods[m] & PG_MIXED) continue;
        const pg_desc desc = mixed_box(backend, all_methods[m] | PG_F32);
        problem t = problem_create(&desc);
        solve(&t, NULL);
        assert_outcome(&t, PG_CONVERGED);
        assert_true(t.report.residual <= 1e-5 * t.report.rhs_norm);
        assert_true(ref_norm(&t, t.u, 0, PG_NORM_L2) <= 2e-5L * ref_norm(&t, NULL, 0, PG_NORM_L2));
        problem_destroy(&t);
    }
}

static void mixed_precision_reaches_a_tolerance_of_f64(void **state)
{
    const pg_desc desc = mixed_box(backend_or_skip(state), PG_MIXED);
    problem t = problem_create(&desc);
    pg_stop stop = {0};
    stop.rtol = 1e-11;
    solve(&t, &stop);
    assert_outcome(&t, PG_CONVERGED);
    assert_report_is_true(&t, PG_NORM_L2);
    problem_destroy(&t);
}

static void completed_means_exactly_max_iter_iterations(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++)
        for (int iterations = 0; iterations <= 3; iterations++) {
            const pg_desc desc = mixed_box(backend, all_methods[m]);
            problem t = problem_create(&desc);
            pg_stop stop = {0};
            stop.rtol = PG_NONE, stop.max_iter = iterations;
            solve(&t, &stop);
            assert_outcome(&t, PG_COMPLETED);
            assert_int_equal(t.report.iterations, reached(desc.flags, iterations ? iterations : 1));
            assert_true(isnan(t.report.residual));
            problem_destroy(&t);
        }
}

static void max_iter_is_kept_and_reported(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        const pg_desc desc = plain_box(backend, full_or_small(20, 12), all_methods[m]);
        problem t = problem_create(&desc);
        pg_stop stop = {0};
        stop.rtol = 1e-12, stop.max_iter = is_sweep(desc.flags) ? 13 : 2;
        solve(&t, &stop);
        assert_outcome(&t, PG_MAX_ITER);
        assert_int_equal(t.report.iterations, reached(desc.flags, stop.max_iter));
        assert_report_is_true(&t, PG_NORM_L2);
        problem_destroy(&t);
    }
}

/* Is there a number in the text within 10 % of the value? */
static int text_names(const char *text, double value)
{
    for (const char *s = text; *s; s++) {
        char *end;
        const double number = strtod(s, &end);
        if (end > s && fabs(number - value) <= 0.1 * fabs(value)) return 1;
    }
    return 0;
}

static void stagnation_is_found_and_its_floor_named(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const unsigned flags[] = {PG_VCYCLE, PG_FMG, PG_WCYCLE, PG_FMG | PG_F32, PG_VCYCLE | PG_F32, PG_MIXED, PG_SOR,
                              PG_SOR | PG_F32};
    const int n = full_or_small(20, 7);
    for (size_t q = 0; q < sizeof flags / sizeof *flags; q++) {
        const pg_desc desc = plain_box(backend, n, flags[q]);
        problem t = problem_create(&desc);
        pg_stop stop = {0};
        stop.rtol = 1e-30;
        solve(&t, &stop);
        assert_outcome(&t, PG_STAGNATED);
        assert_true(t.report.iterations < (is_sweep(flags[q]) ? 5000 : 50));
        if (!t.p.f32) assert_report_is_true(&t, PG_NORM_L2);
        /* The floor is that of the precision: an ulp of (4/h^2) |u| for each of three axes, and some. */
        long double u_norm = 0;
        REF_EACH(&t.p, i, j, k) {
            const long double v = ref_load(&t.p, t.u, ref_u(&t.p, i, j, k));
            u_norm += ref_weight(&t.p, i, j, k) * v * v;
        }
        const double ulp = t.p.f32 ? 0x1p-23 : 0x1p-52;
        const double terms = 3 * 4 * (n + 1) * (n + 1) * (double)sqrtl(u_norm);
        assert_true(t.report.residual <= ulp * (3 * terms + t.report.rhs_norm));
        if (!text_names(t.report.message, t.report.residual) &&
            !text_names(t.report.message, t.report.residual / t.report.rhs_norm))
            fail_msg("the floor %g of %g is not in: %s", t.report.residual, t.report.rhs_norm, t.report.message);
        problem_destroy(&t);
    }
}

/* Sweeps creep, and the residual of SOR rises before it falls: neither is the end. */
static void slow_sweeps_converge_in_their_time(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(24, 8);
    const struct { unsigned flags; pg_norm_kind norm; double rtol, alpha; const char *ends; } cases[] = {
        {PG_RBGS, PG_NORM_L2, 1e-4, 0, "DD"},      {PG_JACOBI, PG_NORM_MAX, 1e-4, 0, "DD"},
        {PG_RBGS, PG_NORM_L2, 1e-8, 1e-1, "NN"},   {PG_SOR, PG_NORM_L2, 1e-8, 1e-2, "NN"},
        {PG_SOR, PG_NORM_L2, 1e-8, 1e-4, "NN"},    {PG_SOR | PG_F32, PG_NORM_L2, 1e-3, 0, "DD"},
    };
    for (int q = 0; q < 6; q++) {
        pg_desc desc = plain_box(backend, n, cases[q].flags);
        desc.n[2] = 1;
        for (int axis = 0; axis < 2; axis++) set_ends(&desc, axis, cases[q].ends);
        desc.alpha = cases[q].alpha;
        problem t = problem_create(&desc);
        const double mean = desc.alpha > 0 ? (double)ref_mean(&t.p, t.f) : 0;    /* the slowest mode is not there */
        REF_EACH(&t.p, i, j, k) {
            const int64_t at = ref_u(&t.p, i, j, k);
            ref_store(&t.p, t.u, at, 0);
            ref_store(&t.p, t.f, at, desc.alpha > 0 ? ref_load(&t.p, t.f, at) - mean : 1);
        }
        const pg_stop stop = {.rtol = cases[q].rtol, .norm = cases[q].norm, .max_iter = 2000000};
        solve(&t, &stop);
        assert_outcome(&t, PG_CONVERGED);
        if (!t.p.f32) assert_report_is_true(&t, cases[q].norm);
        problem_destroy(&t);
    }
}

/* Round-off keeps the residual of these above 1e-8 and 1e-5: the default tolerance ends there, in as few cycles as that
   takes, and an explicit one says that it was not reached. */
static void the_default_tolerance_ends_at_round_off(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {PG_F32 | PG_FMG, PG_F32 | PG_VCYCLE, PG_FMG, PG_VCYCLE, PG_MIXED | PG_FMG};
    for (int q = 0; q < 5; q++) {
        pg_desc desc = plain_box(backend, q < 2 ? 500 : full_or_small(200000, 100000), flags[q]);
        desc.n[1] = desc.n[2] = desc.dim = 1;
        problem t = problem_create(&desc);
        REF_EACH(&t.p, i, j, k) {
            ref_store(&t.p, t.u, i, 0);
            ref_store(&t.p, t.f, i, 1 + (j + k));
        }
        solve(&t, NULL);
        assert_outcome(&t, PG_CONVERGED);
        assert_non_null(strstr(t.report.message, "to round-off"));
        assert_true(t.report.iterations <= (flags[q] & PG_FMG && !(flags[q] & PG_MIXED) ? 1 : 9));
        assert_true(t.report.residual <= t.report.floor);
        assert_true(t.report.residual >= t.report.floor / 100);
        assert_true(t.report.residual > (t.p.f32 ? 1e-5 : 1e-8) * t.report.rhs_norm);
        REF_EACH(&t.p, i, j, k) {       /* u = x (1 - x) / 2 */
            const double x = (i + 1 + j + k) / (desc.n[0] + 1.0), exact = x * (1 - x) / 2;
            assert_true(fabs((double)ref_load(&t.p, t.u, i) - exact) <= (t.p.f32 ? 1e-4 : 1e-8));
        }
        const pg_stop stop = {.rtol = t.p.f32 ? 1e-5 : 1e-8, .guess = PG_GUESS_ZERO};
        solve(&t, &stop);
        assert_outcome(&t, PG_STAGNATED);
        assert_true(t.report.iterations <= 13 && t.report.residual <= t.report.floor);
        problem_destroy(&t);
    }
}

/* The equation is linear: f times a power of two gives u times it, in every bit as long as all are normal numbers. */
static void tiny_and_huge_right_hand_sides_are_solved_alike(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++)
        for (int norm = small_run() ? m % 4 : 0; norm < 4; norm += full_or_small(1, 4)) {
            const pg_desc desc = mixed_box(backend, all_methods[m]);
            problem t = problem_create(&desc);
            const pg_stop stop = {.guess = PG_GUESS_ZERO, .norm = (pg_norm_kind)norm, .rtol = 1e-6};
            for (int face = 0; face < 6; face++) t.desc.face[face].array = NULL, t.desc.face[face].value = 0;
            OK(pg_set_faces(t.solver, t.desc.face), t.solver);
            solve(&t, &stop);
            assert_outcome(&t, PG_CONVERGED);
            const pg_report first = t.report;
            double *expected = allocate(t.u_bytes);
            memcpy(expected, t.u, t.u_bytes);
            double norm_of_u, scaled_norm;
            OK(pg_norm(t.solver, expected, (pg_norm_kind)norm, &norm_of_u), t.solver);
            static const int exponents[] = {-900, -664, -532, 532, 664, 900};
            for (int q = 0; q < 6; q += full_or_small(1, 5)) {
                const double scale = ldexp(1, exponents[q]);
                for (size_t i = 0; i < t.f_bytes / 8; i++) ((double *)t.f)[i] = ((double *)t.f_before)[i] * scale;
                double *const plain = allocate(t.f_bytes);
                memcpy(plain, t.f_before, t.f_bytes);
                solve(&t, &stop);
                memcpy(t.f, plain, t.f_bytes), memcpy(t.f_before, plain, t.f_bytes);
                free(plain);
                assert_outcome(&t, PG_CONVERGED);
                assert_int_equal(t.report.iterations, first.iterations);
                assert_close(t.report.residual / scale, first.residual, 1e-6 * first.residual);
                REF_EACH(&t.p, i, j, k) {
                    const int64_t at = ref_u(&t.p, i, j, k);
                    assert_true(((double *)t.u)[at] == expected[at] * scale);
                }
                OK(pg_norm(t.solver, t.u, (pg_norm_kind)norm, &scaled_norm), t.solver);
                assert_close(scaled_norm / scale, norm_of_u, 1e-12 * norm_of_u);
            }
            free(expected);
            problem_destroy(&t);
        }
}

static void divergence_is_found_and_u_is_the_last_iterate(void **state)
{
    pg_desc desc = plain_box(backend_or_skip(state), 9, PG_JACOBI);
    desc.omega = 1.9;
    problem t = problem_create(&desc);
    solve(&t, NULL);
    assert_outcome(&t, PG_DIVERGED);
    assert_true(t.report.iterations > 0 && t.report.iterations < 100);
    const double limit = 1e8 * fmax(t.report.first_residual, t.report.rhs_norm);
    assert_true(t.report.residual > limit);
    assert_true(t.report.history[t.report.history_count - 2] <= limit);   /* found at the first check that could */
    assert_report_is_true(&t, PG_NORM_L2);
    problem_destroy(&t);
}

static void slow_divergence_is_found_long_before_numbers_are_huge(void **state)
{
    pg_desc desc = plain_box(backend_or_skip(state), 9, PG_JACOBI);
    desc.omega = 1.1;
    problem t = problem_create(&desc);
    solve(&t, NULL);
    assert_outcome(&t, PG_DIVERGED);
    assert_true(t.report.residual < 1e6 * fmax(t.report.first_residual, t.report.rhs_norm));
    assert_true(t.report.factor > 1);
    assert_non_null(strstr(t.report.message, "PG_JACOBI"));
    problem_destroy(&t);
}

typedef struct witness {
    int calls, cancel_at, count;    /* cancel_at: the call that says stop; 0: never */
    double residual[400];
    int iterations[400];
    double milliseconds[400];
} witness;

static int watch(void *user, const pg_report *so_far)
{
    witness *w = user;
    if (w->calls == 400) return 1;
    w->residual[w->calls] = so_far->residual, w->iterations[w->calls] = so_far->iterations;
    w->milliseconds[w->calls] = so_far->milliseconds;
    w->count = so_far->history_count;
    w->calls++;
    return w->calls == w->cancel_at;
}

static void the_monitor_cancels_and_u_is_the_last_iterate(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        pg_desc desc = plain_box(backend, full_or_small(20, 10), all_methods[m]);
        desc.coarsest = 8;
        problem t = problem_create(&desc), again = problem_create(&desc);
        witness w = {0};
        w.cancel_at = 3;
        pg_stop stop = {0};
        stop.rtol = 1e-13, stop.monitor = watch, stop.user = &w;
        solve(&t, &stop);
        assert_outcome(&t, PG_CANCELLED);
        assert_int_equal(w.calls, 3);
        assert_int_equal(t.report.iterations, w.iterations[2]);
        assert_true(t.report.residual == w.residual[2]);
        assert_true(w.milliseconds[1] >= w.milliseconds[0] && w.milliseconds[2] >= w.milliseconds[1]);
        assert_true(w.milliseconds[2] > 0 && t.report.milliseconds >= w.milliseconds[2]);
        assert_report_is_true(&t, PG_NORM_L2);

        pg_stop blind = {0};                             /* the same iterations without looking */
        blind.rtol = PG_NONE, blind.max_iter = t.report.iterations;
        solve(&again, &blind);
        smooth_as_before_a_check(&again);
        assert_memory_equal(t.u, again.u, t.u_bytes);
        problem_destroy(&t), problem_destroy(&again);
    }
}

/* There is nothing left to cancel at the check that ends a solve; but problems of a batch may be left. */
static void a_verdict_that_is_there_is_not_cancelled(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++)
        for (int limited = 0; limited < 2; limited++) {
            pg_desc desc = plain_box(backend, full_or_small(12, 9), all_methods[m]);
            desc.coarsest = 8;
            problem t = problem_create(&desc);
            witness w = {0};
            pg_stop stop = {.rtol = limited ? 1e-14 : 1e-3, .max_iter = limited ? 1 : 0, .monitor = watch, .user = &w};
            stop.guess = PG_GUESS_ZERO;
            solve(&t, &stop);
            const pg_outcome outcome = t.report.outcome;
            if (!limited) assert_int_equal(outcome, PG_CONVERGED);
            void *const first = allocate(t.u_bytes);
            memcpy(first, t.u, t.u_bytes);
            w.cancel_at = w.calls, w.calls = 0;
            solve(&t, &stop);
            assert_outcome(&t, outcome);
            assert_int_equal(w.calls, w.cancel_at);
            assert_memory_equal(first, t.u, t.u_bytes);
            free(first);
            problem_destroy(&t);
        }
    static const unsigned methods[] = {PG_DIRECT, PG_FMG, PG_CG};
    for (int m = 0; m < 3; m++)
        for (int last = 0; last < 2; last++) {
            enum { SIDE = 8, POINTS = SIDE * SIDE };
            double u[2 * POINTS], f[2 * POINTS];
            pg_desc desc = {.n = {SIDE, SIDE}, .batch = 2, .backend = backend, .flags = methods[m]};
            witness w = {0};
            pg_stop stop = {.guess = PG_GUESS_ZERO, .monitor = watch, .user = &w};
            pg_report report;
            pg_solver *const solver = create(&desc);
            for (int q = 0; q < 2 * POINTS; q++) f[q] = q % POINTS % 7, u[q] = 7;
            OK(pg_solve(solver, u, f, &stop), solver);
            w.cancel_at = last ? w.calls : w.calls / 2, w.calls = 0;
            for (int q = 0; q < 2 * POINTS; q++) u[q] = 7;
            OK(pg_solve(solver, u, f, &stop), solver);
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(w.calls, w.cancel_at);
            assert_int_equal(report.outcome, last ? PG_CONVERGED : PG_CANCELLED);
            assert_true(u[0] != 7 && (u[POINTS] != 7) == last);
            pg_destroy(solver);
        }
}

static void a_handle_that_has_not_run_says_so(void **state)
{
    const pg_desc desc = mixed_box(backend_or_skip(state), 0);
    pg_solver *solver = create(&desc);
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_NOT_RUN);
    assert_int_equal(report.iterations, 0);
    pg_destroy(solver);
}

/* ---- What is not a number ---------------------------------------------------------------------------------------- */

static const double not_numbers[] = {NAN, INFINITY, -INFINITY};

/* Solves and expects u untouched bit for bit. */
static void expect_not_a_number(problem *t, const pg_stop *stop, const char *where)
{
    void *u_before = allocate(t->u_bytes);
    memcpy(u_before, t->u, t->u_bytes);
    solve(t, stop);
    if (t->report.outcome != PG_NOT_A_NUMBER)
        fail_msg("%s in %s (%s)", pg_outcome_string(t->report.outcome), where, describe(&t->desc));
    if (memcmp(t->u, u_before, t->u_bytes)) fail_msg("u was touched, bad value in %s (%s)", where, describe(&t->desc));
    assert_int_equal(t->report.iterations, 0);
    free(u_before);
}

static void a_bad_value_in_f_is_found_before_u_is_touched(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++)
        for (int single = 0; single < 2; single++) {
            if (single && (all_methods[m] & PG_MIXED)) continue;
            const pg_desc desc = mixed_box(backend, all_methods[m] | (single ? PG_F32 : 0));
            problem t = problem_create(&desc);
            const int nx = desc.n[0], ny = desc.n[1], nz = desc.n[2];
            const int64_t places[] = {0, 1, nx * ny * (nz / 2) + nx * (ny / 2) + nx / 2, nx * ny * nz - 1};
            for (size_t q = 0; q < sizeof places / sizeof *places; q++) {
                const long double before = ref_load(&t.p, t.f, places[q]);
                ref_store(&t.p, t.f, places[q], (long double)not_numbers[q % 3]);
                for (int guess = PG_GUESS_DEFAULT; guess <= PG_GUESS_U; guess++) {
                    if (small_run() && (guess + m + (int)q) % 3) continue;
                    pg_stop stop = {0};
                    stop.guess = (pg_guess)guess, stop.norm = (pg_norm_kind)((q + (size_t)guess) % 4);
                    expect_not_a_number(&t, &stop, "f");
                }
                ref_store(&t.p, t.f, places[q], before);
            }
            const pg_stop stop = {.rtol = small_run() ? 1e-4 : 0};
            solve(&t, &stop);                            /* and the handle is as good as ever */
            assert_outcome(&t, PG_CONVERGED);
            problem_destroy(&t);
        }
}

/* Without a tolerance nobody looks, but where the mean of u is subtracted it cannot be missed. */
static void without_a_tolerance_a_bad_value_goes_through(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int singular = 0; singular < 2; singular++) {
        const pg_desc desc = singular ? singular_box(backend, PG_VCYCLE, 0) : mixed_box(backend, PG_VCYCLE);
        problem t = problem_create(&desc);
        pg_stop stop = {0};
        stop.rtol = PG_NONE, stop.max_iter = 1;
        ref_store(&t.p, t.f, 100, (long double)NAN);
        solve(&t, &stop);
        assert_outcome(&t, singular ? PG_NOT_A_NUMBER : PG_COMPLETED);
        const char *const told = singular ? "NaN or Inf in u after iteration 1" : ": 1 iteration, no tolerance";
        if (!strstr(t.report.message, told)) fail_msg("%s", t.report.message);
        assert_true(isnan((double)ref_load(&t.p, t.u, ref_u(&t.p, 2, 2, 2))));
        problem_destroy(&t);
    }
}

static void a_bad_value_in_the_guess_is_found_before_u_is_touched(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < 2 * ALL_METHODS; m++) {
        const unsigned flags = all_methods[m / 2];
        const pg_desc desc = m % 2 ? singular_box(backend, flags, 0) : mixed_box(backend, flags);
        problem t = problem_create(&desc);
        const int64_t last = (int64_t)ref_extent_u(&t.p) - 1, places[] = {0, 2 * last / 3, last};
        pg_stop stop = {.rtol = small_run() ? 1e-4 : 0};
        for (int q = 0; q < 3; q++) {
            randomize(&t.p, t.u, ref_extent_u(&t.p), 1);
            ref_store(&t.p, t.u, places[q], (long double)not_numbers[q]);
            stop.guess = PG_GUESS_U;
            for (int kind = PG_NORM_L2; kind <= PG_NORM_L1; kind++) {    /* a maximum loses one easily */
                stop.norm = (pg_norm_kind)kind;
                expect_not_a_number(&t, &stop, "u");
            }
        }
        stop.norm = PG_NORM_L2;
        memset(t.u, 0xff, t.u_bytes);                    /* where u is not read, it may hold anything */
        stop.guess = PG_GUESS_ZERO;
        solve(&t, &stop);
        assert_outcome(&t, PG_CONVERGED);
        assert_report_is_true(&t, PG_NORM_L2);
        problem_destroy(&t);
    }
}

static void a_bad_value_on_a_face_is_found_before_u_is_touched(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++)
        for (int side = small_run() ? m % 6 : 0; side < 6; side += full_or_small(1, 6)) {
            pg_desc desc = mixed_box(backend, all_methods[m]);
            set_ends(&desc, 2, "RN");
            double plane[150] = {0};                     /* the largest face has 15 x 10 points at most */
            const int nx = desc.n[0], ny = desc.n[1], nz = desc.n[2], points[3] = {ny * nz, nx * nz, nx * ny},
                      last = points[side / 2] - 1;
            desc.face[side].array = plane;
            problem t = problem_create(&desc);
            for (int q = 0; q < 3; q++) {
                const int place = q == 0 ? 0 : q == 1 ? last : last / 2;
                plane[place] = not_numbers[q];
                expect_not_a_number(&t, NULL, "a face array");
                plane[place] = 0;
            }
            const pg_stop stop = {.rtol = small_run() ? 1e-4 : 0};
            solve(&t, &stop);
            assert_outcome(&t, PG_CONVERGED);
            problem_destroy(&t);
        }
}

/* Values beside the window are none of the solver's business. */
static void bad_values_beside_the_window_do_not_matter(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        pg_desc desc = mixed_box(backend, all_methods[m]);
        desc.stride_u[0] = 19, desc.stride_u[1] = 19 * 12 + 1, desc.stride_f[0] = 16, desc.stride_f[1] = 16 * 11 + 3;
        problem t = problem_create(&desc);
        void *u = allocate(t.u_bytes), *f = allocate(t.f_bytes);
        memcpy(u, t.u, t.u_bytes), memcpy(f, t.f, t.f_bytes);
        memset(t.u, 0xff, t.u_bytes), memset(t.f, 0xff, t.f_bytes);
        REF_EACH(&t.p, i, j, k) {
            ref_store(&t.p, t.u, ref_u(&t.p, i, j, k), ref_load(&t.p, u, ref_u(&t.p, i, j, k)));
            ref_store(&t.p, t.f, ref_f(&t.p, i, j, k), ref_load(&t.p, f, ref_f(&t.p, i, j, k)));
        }
        solve(&t, NULL);
        assert_outcome(&t, PG_CONVERGED);
        assert_report_is_true(&t, PG_NORM_L2);
        free(u), free(f);
        problem_destroy(&t);
    }
}

/* ---- Zero, solved already, first residual ------------------------------------------------------------------------ */

static void zero_right_hand_side_and_zero_guess_give_zero_at_once(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const char *const ends[] = {"DD", "NN", "PP", "RN"};
    for (int m = 0; m < ALL_METHODS; m++)
        for (int e = 0; e < 4; e++) {
            pg_desc desc = plain_box(backend, 8, all_methods[m]);
            for (int axis = 0; axis < 3; axis++) set_ends(&desc, axis, ends[e]);
            problem t = problem_create(&desc);
            memset(t.f, 0, t.f_bytes);
            for (int guess = PG_GUESS_ZERO; guess <= PG_GUESS_U; guess++) {
                pg_stop stop = {0};
                stop.guess = (pg_guess)guess;
                memset(t.u, guess == PG_GUESS_ZERO ? 0xff : 0, t.u_bytes);
                solve(&t, &stop);
                assert_outcome(&t, PG_CONVERGED);
                assert_int_equal(t.report.iterations, 0);
                REF_EACH(&t.p, i, j, k) assert_true(ref_load(&t.p, t.u, ref_u(&t.p, i, j, k)) == 0);
            }
            problem_destroy(&t);
        }
}

static void zero_right_hand_side_is_solved_relative_to_the_first_residual(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        const pg_desc desc = plain_box(backend, 9, all_methods[m]);
        problem t = problem_create(&desc);
        memset(t.f, 0, t.f_bytes);
        pg_stop stop = {0};
        stop.guess = PG_GUESS_U;
        solve(&t, &stop);
        assert_outcome(&t, PG_CONVERGED);
        assert_report_is_true(&t, PG_NORM_L2);
        assert_true(t.report.rhs_norm == 0 && t.report.iterations > 0);
        assert_true(t.report.residual <= 1e-8 * t.report.first_residual);
        problem_destroy(&t);
    }
}

static void tolerances_mean_what_the_header_says(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const pg_desc desc = mixed_box(backend, PG_VCYCLE);
    pg_stop stop = {0};
    problem t = problem_create(&desc);
    for (int64_t q = 0; q < (int64_t)ref_extent_u(&t.p); q++)
        ref_store(&t.p, t.u, q, 1e6L * ref_load(&t.p, t.u, q));
    void *far = allocate(t.u_bytes);                     /* a guess whose residual is far above the right-hand side */
    memcpy(far, t.u, t.u_bytes);

    stop.rtol = 1e-4;
    solve(&t, &stop);
    assert_outcome(&t, PG_CONVERGED);
    assert_true(t.report.residual <= 1e-4 * t.report.rhs_norm);
    assert_true(t.report.history[t.report.history_count - 2] > 1e-4 * t.report.rhs_norm);
    const int against_rhs = t.report.iterations;

    memcpy(t.u, far, t.u_bytes);
    stop.relative_to_first = 1;
    solve(&t, &stop);
    assert_outcome(&t, PG_CONVERGED);
    assert_true(t.report.residual <= 1e-4 * t.report.first_residual);
    assert_true(t.report.history[t.report.history_count - 2] > 1e-4 * t.report.first_residual);
    assert_true(t.report.iterations < against_rhs);

    memcpy(t.u, far, t.u_bytes);
    memset(&stop, 0, sizeof stop);
    stop.atol = 0.01 * t.report.first_residual;          /* atol alone: no relative tolerance */
    solve(&t, &stop);
    assert_outcome(&t, PG_CONVERGED);
    assert_true(t.report.residual <= stop.atol && t.report.residual > 1e-8 * t.report.rhs_norm);
    assert_true(t.report.history[t.report.history_count - 2] > stop.atol);

    memcpy(t.u, far, t.u_bytes);
    stop.rtol = 1e-4;                                    /* either of both is enough */
    solve(&t, &stop);
    assert_outcome(&t, PG_CONVERGED);
    assert_true(t.report.residual > 1e-4 * t.report.rhs_norm);
    free(far);
    problem_destroy(&t);
}

static void a_solved_problem_converges_in_no_iteration_and_u_stays(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        const pg_desc desc = mixed_box(backend, all_methods[m]);
        problem t = problem_create(&desc);
        solve(&t, NULL);
        void *solved = allocate(t.u_bytes);
        memcpy(solved, t.u, t.u_bytes);
        pg_stop stop = {0};
        stop.rtol = 1e-7, stop.guess = PG_GUESS_U;
        solve(&t, &stop);
        assert_outcome(&t, PG_CONVERGED);
        assert_int_equal(t.report.iterations, 0);
        assert_int_equal(t.report.history_count, 1);
        assert_memory_equal(t.u, solved, t.u_bytes);

        stop.min_iter = 3, stop.check = 1;               /* unless iterations were asked for */
        solve(&t, &stop);
        assert_outcome(&t, PG_CONVERGED);
        assert_int_equal(t.report.iterations, reached(desc.flags, 3));
        free(solved);
        problem_destroy(&t);
    }
}

/* ---- Checks, history, norms -------------------------------------------------------------------------------------- */

/* The iterations done at check number c: full multigrid is also checked after its one pass. */
static int iterations_at(unsigned flags, int check, int c)
{
    return flags & PG_FMG && c > 0 ? 1 + check * (c - 1) : check * c;
}

static void checks_come_at_their_interval_and_change_nothing(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const unsigned flags[] = {PG_VCYCLE, PG_SOR, PG_JACOBI, PG_MIXED | PG_VCYCLE, PG_FMG, PG_MIXED | PG_FMG};
    for (size_t q = 0; q < sizeof flags / sizeof *flags; q++) {
        pg_desc desc = plain_box(backend, full_or_small(12, 9), flags[q]);
        desc.inner_cycles = 1;
        problem every = problem_create(&desc), fourth = problem_create(&desc);
        pg_stop stop = {0};
        stop.rtol = is_sweep(flags[q]) ? 0.1 : 1e-11;
        stop.check = 4, stop.max_iter = 120;
        solve(&fourth, &stop);
        assert_outcome(&fourth, PG_CONVERGED);
        const int checks = fourth.report.history_count;
        assert_int_equal(fourth.report.iterations, iterations_at(flags[q], 4, checks - 1));

        stop.check = 1, stop.rtol = 1e-30, stop.max_iter = fourth.report.iterations;
        solve(&every, &stop);
        assert_int_equal(every.report.iterations, fourth.report.iterations);
        assert_int_equal(every.report.history_count, 1 + every.report.iterations);
        assert_memory_equal(every.u, fourth.u, every.u_bytes);
        for (int c = 0; c < checks; c++)
            assert_true(fourth.report.history[c] == every.report.history[iterations_at(flags[q], 4, c)]);

        stop.check = 6, stop.max_iter = 9;               /* the last check is at the end */
        randomize(&every.p, every.u, ref_extent_u(&every.p), 1);
        solve(&every, &stop);
        assert_int_equal(every.report.iterations, 9);
        assert_int_equal(every.report.history_count, flags[q] & PG_FMG ? 4 : 3);
        assert_report_is_true(&every, PG_NORM_L2);
        problem_destroy(&every), problem_destroy(&fourth);
    }
}

static void the_history_is_what_the_monitor_saw_and_what_pieces_recompute(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        pg_desc desc = mixed_box(backend, all_methods[m]);
        desc.inner_cycles = 1, desc.coarsest = 8;
        problem t = problem_create(&desc);
        witness w = {0};
        pg_stop stop = {0};
        const int checks = 4;
        stop.monitor = watch, stop.user = &w, stop.check = 2, stop.rtol = 1e-30, stop.guess = PG_GUESS_U;
        stop.max_iter = iterations_at(desc.flags, stop.check, checks - 1);
        solve(&t, &stop);
        assert_int_equal(t.report.iterations, stop.max_iter);
        assert_int_equal(t.report.history_count, checks);
        assert_int_equal(w.calls, checks);
        assert_int_equal(w.count, checks);
        const pg_report watched = t.report;
        randomize(&t.p, t.u, ref_extent_u(&t.p), 1);
        stop.monitor = NULL;
        solve(&t, &stop);
        void *r = allocate(t.f_bytes);
        for (int c = 0; c < checks; c++) {
            if (!(watched.history[c] == w.residual[c] && t.report.history[c] == w.residual[c])) fail_msg("method %d check %d: the monitor saw %.17g, reports have %.17g and %.17g", m, c, w.residual[c], watched.history[c], t.report.history[c]);
            assert_int_equal(w.iterations[c], iterations_at(desc.flags, stop.check, c));
            randomize(&t.p, t.u, ref_extent_u(&t.p), 1);
            if (c > 0) {
                pg_stop blind = {0};
                blind.rtol = PG_NONE, blind.max_iter = w.iterations[c], blind.guess = PG_GUESS_U;
                OK(pg_solve(t.solver, t.u, t.f, &blind), t.solver);
                smooth_as_before_a_check(&t);
            }
            double norm;
            const double tolerance = round_off(&t, PG_NORM_L2);
            assert_close(w.residual[c], ref_norm(&t, t.u, 0, PG_NORM_L2), tolerance);
            OK(pg_residual(t.solver, t.u, t.f, r), t.solver);
            OK(pg_norm(t.solver, r, PG_NORM_L2, &norm), t.solver);   /* packed: r has the layout of u too */
            assert_close(norm, (long double)w.residual[c], tolerance);
        }
        free(r);
        problem_destroy(&t);
    }
}

static void a_long_history_keeps_its_first_part(void **state)
{
    const pg_desc desc = plain_box(backend_or_skip(state), 10, PG_JACOBI);
    problem t = problem_create(&desc);
    witness w = {0};
    pg_stop stop = {0};
    stop.rtol = 1e-30, stop.check = 1, stop.max_iter = PG_HISTORY + 60, stop.monitor = watch, stop.user = &w;
    solve(&t, &stop);
    assert_outcome(&t, PG_MAX_ITER);
    assert_int_equal(t.report.history_count, PG_HISTORY + 61);
    assert_int_equal(w.calls, PG_HISTORY + 61);
    assert_memory_equal(t.report.history, w.residual, sizeof t.report.history);
    assert_true(t.report.residual == w.residual[w.calls - 1]);
    assert_report_is_true(&t, PG_NORM_L2);
    problem_destroy(&t);
}

static void every_norm_stops_by_itself(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double stretched[16] = {0, 1, 2, 3, 5, 7, 9, 12, 15, 18, 21, 24, 28, 32, 37, 42};
    const unsigned flags[] = {PG_FMG, PG_SOR, PG_MIXED | PG_VCYCLE};
    for (size_t q = 0; q < sizeof flags / sizeof *flags; q++)
        for (int kind = PG_NORM_L2; kind <= PG_NORM_L1; kind++) {
            pg_desc desc = mixed_box(backend, flags[q]);
            desc.coord[0] = stretched;
            problem t = problem_create(&desc);
            pg_stop stop = {0};
            stop.norm = (pg_norm_kind)kind, stop.rtol = 1e-6;
            solve(&t, &stop);
            assert_outcome(&t, PG_CONVERGED);
            assert_true(t.report.residual <= 1e-6 * t.report.rhs_norm);
            assert_report_is_true(&t, (pg_norm_kind)kind);
            problem_destroy(&t);
        }
}

/* ---- Singular problems ------------------------------------------------------------------------------------------- */

static void what_makes_a_singular_problem_solvable_is_removed_and_reported(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++)
        for (int variant = 0; variant < SINGULAR_BOXES; variant++)
            for (int guess = PG_GUESS_ZERO; guess <= PG_GUESS_U; guess++) {
                if (small_run() && (m + 3 * variant + 5 * guess) % 7 > 1) continue;
                const pg_desc desc = singular_box(backend, all_methods[m], variant);
                problem t = problem_create(&desc);
                const ref *p = &t.p;
                assert_true(p->singular);
                long double sum = 0, volume = 0, u_max = 0;
                REF_EACH(p, i, j, k) {
                    sum += ref_weight(p, i, j, k) * (ref_load(p, t.f, ref_f(p, i, j, k)) + ref_boundary(p, i, j, k));
                    volume += ref_weight(p, i, j, k);
                }
                pg_stop stop = {.rtol = small_run() ? 1e-4 : 0};
                stop.guess = (pg_guess)guess, stop.max_iter = 40000;
                solve(&t, &stop);
                assert_outcome(&t, PG_CONVERGED);
                assert_close(t.report.removed_mean, sum / volume, 1e-13 * (double)(1 + fabsl(sum / volume)));
                assert_report_is_true(&t, PG_NORM_L2);
                REF_EACH(p, i, j, k) u_max = fmaxl(u_max, fabsl(ref_load(p, t.u, ref_u(p, i, j, k))));
                assert_close((double)ref_mean(p, t.u), 0, 1e-13 * (double)u_max);
                problem_destroy(&t);
            }
}

static void nothing_is_removed_from_a_compatible_right_hand_side(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const pg_desc desc = singular_box(backend, PG_FMG, 3);
    problem t = problem_create(&desc);
    void *exact = allocate(t.u_bytes);
    memcpy(exact, t.u, t.u_bytes);
    const long double mean = ref_mean(&t.p, exact);
    REF_EACH(&t.p, i, j, k)
        ref_store(&t.p, t.f, ref_f(&t.p, i, j, k), ref_apply(&t.p, exact, i, j, k) - ref_boundary(&t.p, i, j, k));
    pg_stop stop = {0};
    stop.rtol = 1e-13;
    solve(&t, &stop);
    assert_close(t.report.removed_mean, 0, 1e-14 * t.report.rhs_norm);
    REF_EACH(&t.p, i, j, k) {
        const int64_t at = ref_u(&t.p, i, j, k);
        assert_close((double)ref_load(&t.p, t.u, at), ref_load(&t.p, exact, at) - mean, 1e-10);
    }
    free(exact);
    problem_destroy(&t);
}

/* ---- Changes between solves -------------------------------------------------------------------------------------- */

/* The second handle was made with what the first was changed to: both must give the same bits. */
static void expect_same(problem *changed, problem *fresh)
{
    randomize(&changed->p, changed->u, ref_extent_u(&changed->p), 5);
    memcpy(fresh->u, changed->u, fresh->u_bytes);
    memcpy(fresh->f, changed->f, fresh->f_bytes);
    pg_stop stop = {0};
    stop.max_iter = full_or_small(0, is_sweep(fresh->desc.flags) ? 12 : 3);
    solve(changed, &stop);
    solve(fresh, &stop);
    if (changed->report.outcome != fresh->report.outcome || changed->report.iterations != fresh->report.iterations)
        fail_msg("%s after %d iterations, but a fresh handle %s after %d: %s",
                 pg_outcome_string(changed->report.outcome), changed->report.iterations,
                 pg_outcome_string(fresh->report.outcome), fresh->report.iterations, describe(&fresh->desc));
    assert_true(changed->report.removed_mean == fresh->report.removed_mean);
    assert_true(changed->report.rhs_norm == fresh->report.rhs_norm);
    assert_memory_equal(changed->report.history, fresh->report.history, history_bytes(&fresh->report));
    if (memcmp(changed->u, fresh->u, fresh->u_bytes))
        fail_msg("other bits than a fresh handle's: %s", describe(&fresh->desc));
    assert_report_is_true(fresh, PG_NORM_L2);
}

static void set_alpha_gives_what_a_fresh_handle_gives(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const double alphas[] = {0, 40, 0, 1e-3, 0};
    for (int m = 0; m < ALL_METHODS; m++)
        for (int singular = 0; singular < 2; singular++) {
            pg_desc desc = singular ? singular_box(backend, all_methods[m], 1) : mixed_box(backend, all_methods[m]);
            problem changed = problem_create(&desc);
            for (size_t q = 0; q < sizeof alphas / sizeof *alphas; q++) {
                desc.alpha = alphas[q];
                problem fresh = problem_create(&desc);
                OK(pg_set_alpha(changed.solver, alphas[q]), changed.solver);
                expect_same(&changed, &fresh);
                assert_int_equal(fresh.report.removed_mean != 0, singular && alphas[q] == 0);
                pg_desc a, b;
                OK(pg_query_desc(changed.solver, &a), changed.solver);
                OK(pg_query_desc(fresh.solver, &b), fresh.solver);
                assert_true(a.alpha == alphas[q] && a.omega == b.omega);
                problem_destroy(&fresh);
            }
            problem_destroy(&changed);
        }
}

static void set_faces_gives_what_a_fresh_handle_gives(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double plane[105], other_plane[105];
    rng r = {11};
    for (int q = 0; q < 105; q++) plane[q] = rng_uniform(&r, -1, 1), other_plane[q] = rng_uniform(&r, -1, 1);
    for (int m = 0; m < ALL_METHODS; m++) {
        pg_desc desc = mixed_box(backend, all_methods[m]);
        problem changed = problem_create(&desc);
        for (int change = 0; change < 4; change++) {
            desc.face[PG_X_HIGH].value = change;
            desc.face[PG_Y_LOW].array = change == 1 ? plane : change == 2 ? other_plane : NULL;   /* 15 x 7 points */
            desc.face[PG_X_LOW].array = change == 2 ? plane : NULL;                               /* 10 x 7 points */
            problem fresh = problem_create(&desc);
            OK(pg_set_faces(changed.solver, desc.face), changed.solver);
            expect_same(&changed, &fresh);
            problem_destroy(&fresh);
        }
        problem_destroy(&changed);
    }
}

static void face_arrays_are_read_at_each_solve(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double plane[105] = {0};
    pg_desc desc = mixed_box(backend, PG_FMG);
    desc.face[PG_Y_HIGH].array = plane;
    problem t = problem_create(&desc);
    for (int time = 0; time < 3; time++) {
        rng r = {(uint64_t)time};
        for (int q = 0; q < 105; q++) plane[q] = rng_uniform(&r, -1, 1);
        solve(&t, NULL);
        assert_outcome(&t, PG_CONVERGED);
        assert_report_is_true(&t, PG_NORM_L2);
    }
    problem_destroy(&t);
}

/* ---- Repeatability ----------------------------------------------------------------------------------------------- */

static void assert_same_solve(const problem *a, const problem *b)
{
    assert_int_equal(a->report.outcome, b->report.outcome);
    assert_int_equal(a->report.iterations, b->report.iterations);
    assert_int_equal(a->report.history_count, b->report.history_count);
    assert_memory_equal(a->report.history, b->report.history, history_bytes(&a->report));
    assert_true(a->report.removed_mean == b->report.removed_mean);
    if (memcmp(a->u, b->u, a->u_bytes)) fail_msg("other bits: %s", describe(&a->desc));
}

static void two_runs_give_the_same_bits(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++)
        for (int single = 0; single < 2; single++)
            for (int singular = 0; singular < 2; singular++) {
                if (single && (all_methods[m] & PG_MIXED)) continue;
                const unsigned flags = all_methods[m] | (single ? PG_F32 : 0);
                const pg_desc desc = singular ? singular_box(backend, flags, 2) : mixed_box(backend, flags);
                problem one = problem_create(&desc), two = problem_create(&desc);
                pg_stop stop = {0};
                stop.max_iter = is_sweep(flags) ? full_or_small(40, 12) : full_or_small(8, 3);
                solve(&one, &stop);
                solve(&two, &stop);
                assert_same_solve(&one, &two);
                randomize(&one.p, one.u, ref_extent_u(&one.p), 1);   /* and the same handle once more */
                solve(&one, &stop);
                assert_same_solve(&one, &two);
                problem_destroy(&one), problem_destroy(&two);
            }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
#ifdef _OPENMP
    const unsigned flags[] = {PG_JACOBI, PG_RBGS, PG_VCYCLE, PG_FMG, PG_MIXED | PG_FMG, PG_DIRECT,
                              PG_VCYCLE | PG_SMOOTH_LINES};
    const int usual = omp_get_max_threads(), n = 61;     /* so many points that three threads get work */
    for (int m = 0; m < 7; m++)
        for (int two_d = 0; two_d < 2; two_d++) {
            pg_desc desc = mixed_box(PG_CPU, flags[m]);
            desc.n[0] = two_d ? 6 * n : n, desc.n[1] = two_d ? 5 * n : n - 1, desc.n[2] = two_d ? 1 : n / 2 + 1;
            problem one = problem_create(&desc), other = problem_create(&desc);
            const int counts[] = {2, 3};
            pg_stop stop = {0};
            stop.max_iter = 2, stop.check = 1;
            omp_set_num_threads(1);
            solve(&one, &stop);
            for (int q = small_run(); q < 2; q++) {
                omp_set_num_threads(counts[q]);
                randomize(&other.p, other.u, ref_extent_u(&other.p), 1);
                solve(&other, &stop);
                assert_same_solve(&one, &other);
            }
            omp_set_num_threads(usual);
            problem_destroy(&one), problem_destroy(&other);
        }
#else
    skip();
#endif
}

static void two_handles_do_not_affect_each_other(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++) {
        const pg_desc first = mixed_box(backend, all_methods[m]);
        const pg_desc second = singular_box(backend, all_methods[(m + 1) % ALL_METHODS], 1);
        problem a = problem_create(&first), b = problem_create(&second), alone = problem_create(&first);
        pg_stop stop = {0};
        stop.guess = PG_GUESS_U, stop.max_iter = 3, stop.rtol = 1e-30, stop.check = 1;
        for (int step = 0; step < 3; step++) solve(&alone, &stop);
        for (int step = 0; step < 3; step++) {
            OK(pg_solve(a.solver, a.u, a.f, &stop), a.solver);
            solve(&b, &stop);
            assert_int_equal(pg_set_alpha(b.solver, -1), PG_ERROR_ARGUMENT);
            assert_int_equal(pg_solve(b.solver, b.u, b.u, NULL), PG_ERROR_ARGUMENT);
            OK(pg_get_report(a.solver, &a.report), a.solver);
        }
        assert_same_solve(&a, &alone);
        pg_destroy(b.solver);
        b.solver = NULL;
        solve(&a, &stop);
        solve(&alone, &stop);
        assert_same_solve(&a, &alone);
        problem_destroy(&a), problem_destroy(&b), problem_destroy(&alone);
    }
}

/* ---- Windows ----------------------------------------------------------------------------------------------------- */

/* The window starts one element into an odd-strided array: never on the boundary of a vector or a cache line. */
static void unaligned_windows_give_the_same_answer(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int m = 0; m < ALL_METHODS; m++)
        for (int single = 0; single < 2; single++) {
            if (single && (all_methods[m] & PG_MIXED)) continue;
            const pg_desc packed = mixed_box(backend, all_methods[m] | (single ? PG_F32 : 0));
            pg_desc padded = packed;
            padded.stride_u[0] = 17, padded.stride_u[1] = 17 * 11;
            padded.stride_f[0] = 21, padded.stride_f[1] = 21 * 13 + 2;
            problem a = problem_create(&packed), b = problem_create(&padded);
            const size_t size = single ? sizeof(float) : sizeof(double);
            char *u_block = allocate(b.u_bytes + 2 * size), *f_block = allocate(b.f_bytes + 2 * size);
            memset(u_block, 0xff, b.u_bytes + 2 * size), memset(f_block, 0xff, b.f_bytes + 2 * size);
            void *u = u_block + size, *f = f_block + size;
            REF_EACH(&a.p, i, j, k) {
                ref_store(&b.p, u, ref_u(&b.p, i, j, k), ref_load(&a.p, a.u, ref_u(&a.p, i, j, k)));
                ref_store(&b.p, f, ref_f(&b.p, i, j, k), ref_load(&a.p, a.f, ref_f(&a.p, i, j, k)));
            }
            char *f_before = allocate(b.f_bytes + 2 * size);
            memcpy(f_before, f_block, b.f_bytes + 2 * size);

            pg_stop stop = {0};
            stop.rtol = PG_NONE, stop.max_iter = 3;
            solve(&a, &stop);
            OK(pg_solve(b.solver, u, f, &stop), b.solver);
            OK(pg_get_report(b.solver, &b.report), b.solver);
            assert_int_equal(b.report.outcome, PG_COMPLETED);
            long double largest = 0;
            REF_EACH(&a.p, i, j, k) largest = fmaxl(largest, fabsl(ref_load(&a.p, a.u, ref_u(&a.p, i, j, k))));
            size_t written = 0, changed = 0;
            REF_EACH(&a.p, i, j, k) {
                assert_close((double)ref_load(&b.p, u, ref_u(&b.p, i, j, k)), ref_load(&a.p, a.u, ref_u(&a.p, i, j, k)),
                             (single ? 1e-5 : 1e-13) * (double)largest);
                written++;
            }
            for (size_t q = 0; q < b.u_bytes / size + 2; q++)
                changed += !isnan((double)ref_load(&b.p, u_block, (int64_t)q));
            assert_true(changed == written);             /* nothing beside the window */
            assert_memory_equal(f_block, f_before, b.f_bytes + 2 * size);
            free(u_block), free(f_block), free(f_before);
            problem_destroy(&a), problem_destroy(&b);
        }
}

static void solve_once_is_create_solve_report_destroy(void **state)
{
    pg_desc desc = mixed_box(backend_or_skip(state), PG_FMG);
    desc.coarsest = 8;
    problem t = problem_create(&desc);
    double *u = allocate(t.u_bytes);
    pg_report report;
    memset(u, 0xff, t.u_bytes);
    OK(pg_solve_once(&desc, u, t.f, &report), NULL);
    solve(&t, NULL);
    assert_memory_equal(u, t.u, t.u_bytes);
    assert_int_equal(report.outcome, PG_CONVERGED);
    assert_int_equal(report.iterations, t.report.iterations);
    assert_true(report.residual == t.report.residual && report.rhs_norm == t.report.rhs_norm);
    memset(u, 0xff, t.u_bytes);
    OK(pg_solve_once(&desc, u, t.f, NULL), NULL);
    assert_memory_equal(u, t.u, t.u_bytes);
    free(u);
    problem_destroy(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(converged_means_that_the_residual_is_within_the_tolerance),
        ON_BOTH(single_precision_converges_to_its_own_default),
        ON_BOTH(mixed_precision_reaches_a_tolerance_of_f64),
        ON_BOTH(completed_means_exactly_max_iter_iterations),
        ON_BOTH(max_iter_is_kept_and_reported),
        ON_BOTH(stagnation_is_found_and_its_floor_named),
        ON_BOTH(slow_sweeps_converge_in_their_time),
        ON_BOTH(the_default_tolerance_ends_at_round_off),
        ON_BOTH(tiny_and_huge_right_hand_sides_are_solved_alike),
        ON_BOTH(divergence_is_found_and_u_is_the_last_iterate),
        ON_BOTH(slow_divergence_is_found_long_before_numbers_are_huge),
        ON_BOTH(the_monitor_cancels_and_u_is_the_last_iterate),
        ON_BOTH(a_verdict_that_is_there_is_not_cancelled),
        ON_BOTH(a_handle_that_has_not_run_says_so),
        ON_BOTH(a_bad_value_in_f_is_found_before_u_is_touched),
        ON_BOTH(a_bad_value_in_the_guess_is_found_before_u_is_touched),
        ON_BOTH(without_a_tolerance_a_bad_value_goes_through),
        ON_BOTH(a_bad_value_on_a_face_is_found_before_u_is_touched),
        ON_BOTH(bad_values_beside_the_window_do_not_matter),
        ON_BOTH(zero_right_hand_side_and_zero_guess_give_zero_at_once),
        ON_BOTH(zero_right_hand_side_is_solved_relative_to_the_first_residual),
        ON_BOTH(tolerances_mean_what_the_header_says),
        ON_BOTH(a_solved_problem_converges_in_no_iteration_and_u_stays),
        ON_BOTH(checks_come_at_their_interval_and_change_nothing),
        ON_BOTH(the_history_is_what_the_monitor_saw_and_what_pieces_recompute),
        ON_BOTH(a_long_history_keeps_its_first_part),
        ON_BOTH(every_norm_stops_by_itself),
        ON_BOTH(what_makes_a_singular_problem_solvable_is_removed_and_reported),
        ON_BOTH(nothing_is_removed_from_a_compatible_right_hand_side),
        ON_BOTH(set_alpha_gives_what_a_fresh_handle_gives),
        ON_BOTH(set_faces_gives_what_a_fresh_handle_gives),
        ON_BOTH(face_arrays_are_read_at_each_solve),
        ON_BOTH(two_runs_give_the_same_bits),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        ON_BOTH(two_handles_do_not_affect_each_other),
        ON_BOTH(unaligned_windows_give_the_same_answer),
        ON_BOTH(solve_once_is_create_solve_report_destroy),
    };
    return cmocka_run_group_tests_name("outcomes", tests, NULL, NULL);
}
