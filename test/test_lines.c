/* Line relaxation: where one axis is stretched it is chosen, converges at every ratio, and is the same on CPU and GPU. */
#include <float.h>
#include "ref.h"

enum { LONGEST = 2060 };

typedef struct stretched {
    pg_desc desc;
    double coord[LONGEST + 2];
} stretched;

/* b of tanh(b t), t from -1 to 1, whose spacing at the middle is `ratio` times that at the ends. */
static double steepness(double ratio) { return acosh(sqrt(ratio)); }

static void stretch(stretched *p, int axis, double ratio)
{
    const pg_desc *d = &p->desc;
    const int n = d->n[axis], nodes = d->centring[axis] == PG_NODE && d->face[2 * axis].kind != PG_PERIODIC;
    const int m = nodes ? n - 1 + (d->face[2 * axis].kind == PG_DIRICHLET) + (d->face[2 * axis + 1].kind == PG_DIRICHLET)
                        : n;
    const double b = steepness(ratio);
    for (int i = 0; i <= m; i++) p->coord[i] = 0.5 * tanh(b * (2.0 * i / m - 1)) / tanh(b);
    p->desc.coord[axis] = p->coord;
    p->desc.h[axis] = 0;
}

static void random_stretched(stretched *p, rng *r, pg_backend backend, int dim, int most)
{
    static const char *const ends[] = {"DD", "NN", "PP", "DN", "ND"};
    memset(p, 0, sizeof *p);
    p->desc.backend = backend, p->desc.dim = dim;
    for (int axis = 0; axis < 3; axis++) {
        p->desc.n[axis] = axis < dim ? rng_int(r, 1, most) : 1;
        p->desc.centring[axis] = rng_int(r, 0, 1) ? PG_CELL : PG_NODE;
        set_ends(&p->desc, axis, ends[rng_int(r, 0, 4)]);
    }
    const int axis = rng_int(r, 0, dim - 1);
    if (p->desc.n[axis] < 8) p->desc.n[axis] += 8;
    stretch(p, axis, pow(10, rng_uniform(r, 1, 3)));
    if (rng_int(r, 0, 2) == 0) p->desc.alpha = rng_uniform(r, 0.1, 20);
    for (int q = 0; q < 2; q++) {
        int64_t *stride = q ? p->desc.stride_f : p->desc.stride_u;
        if (rng_int(r, 0, 1)) continue;
        stride[0] = p->desc.n[0] + rng_int(r, 0, 3);
        stride[1] = stride[0] * p->desc.n[1] + rng_int(r, 0, 5);
    }
    for (int q = 0; q < 2 * dim; q++) p->desc.face[q].value = rng_uniform(r, -1, 1);
}

/* The largest factor of a V(2,1) cycle, until round-off, from u = 0 with a random f. */
static double worst_factor(const pg_desc *desc, rng *r)
{
    ref p;
    ref_create(&p, desc);
    const size_t points = ref_points(&p);
    double *u = allocate(points * sizeof *u), *f = allocate(points * sizeof *f), worst = 0;
    for (size_t i = 0; i < points; i++) u[i] = 0, f[i] = rng_uniform(r, -1, 1);
    pg_solver *solver = create(desc);
    const pg_stop stop = {.rtol = 1e-10, .max_iter = 30};
    pg_report report;
    OK(pg_solve(solver, u, f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    for (int q = 2; q < report.history_count; q++)
        if (report.history[q] > 1e-9 * report.rhs_norm) worst = fmax(worst, report.history[q] / report.history[q - 1]);
    if (report.outcome != PG_CONVERGED && report.outcome != PG_STAGNATED) worst = 1;
    if (report.residual > 1e-8 * report.rhs_norm) worst = 1;
    pg_destroy(solver);
    free(u), free(f);
    ref_free(&p);
    return worst;
}

static void every_ratio_converges(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const ends[][3] = {
        {"DD", "DD", "DD"}, {"NN", "NN", "NN"}, {"PP", "PP", "PP"}, {"DN", "ND", "DN"}, {"PP", "PP", "DD"}};
    static const int sizes[][3] = {{64, 64, 1}, {63, 47, 1}, {32, 32, 32}, {33, 31, 40}, {24, 37, 29}};
    static const int small[][3] = {{32, 32, 1}, {23, 17, 1}, {16, 16, 16}, {17, 15, 12}, {12, 13, 11}};
    const double ratios[] = {10, 100, 1000};
    rng r = {1};
    for (int size = 0; size < 5; size++)
        for (int kind = 0; kind < 5; kind++)
            for (int ratio = 0; ratio < full_or_small(3, 1); ratio++) {
                const int *n = small_run() ? small[size] : sizes[size], dim = n[2] > 1 ? 3 : 2;
                const int axis = (kind + size + ratio) % dim;
                stretched p;
                memset(&p, 0, sizeof p), p.desc.coarsest = 8;
                p.desc.backend = backend, p.desc.dim = dim, set_choice(&p.desc, PG_VCYCLE);
                for (int a = 0; a < 3; a++) {
                    p.desc.n[a] = n[a];
                    p.desc.centring[a] = (kind + size) % 2 ? PG_CELL : PG_NODE;
                    set_ends(&p.desc, a, ends[kind][a]);
                }
                stretch(&p, axis, ratios[small_run() ? 1 : ratio]);
                const double factor = worst_factor(&p.desc, &r);
                if (!(factor <= 0.12)) fail_msg("%s: factor %.3f", describe(&p.desc), factor);
            }
}

/* Tiny lines and planes, primes, strides, every method and precision: the answer, and only inside the window. */
static void random_stretched_boxes_are_solved(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {PG_VCYCLE, PG_FMG, PG_WCYCLE, PG_FMG | PG_F32, PG_FMG | PG_MIXED, PG_VCYCLE | PG_MIXED};
    rng r = {2};
    for (int count = 0; count < full_or_small(120, 30); count++) {
        stretched s;
        random_stretched(&s, &r, backend, rng_int(&r, 1, 3), full_or_small(30, 13));
        set_choice(&s.desc, flags[count % 6] | PG_SMOOTH_LINES);    /* also where all is solved exactly otherwise */
        ref p;
        ref_create(&p, &s.desc);
        const size_t size = p.f32 ? 4 : 8, extent_u = ref_extent_u(&p), extent_f = ref_extent_f(&p);
        char *u = allocate(extent_u * size), *f = allocate(extent_f * size), *exact = allocate(extent_u * size);
        memset(u, 0x7f, extent_u * size), memset(f, 0x7f, extent_f * size);
        REF_EACH(&p, i, j, k) ref_store(&p, u, ref_u(&p, i, j, k), 0);
        REF_EACH(&p, i, j, k) ref_store(&p, exact, ref_u(&p, i, j, k), rng_uniform(&r, -1, 1));
        REF_EACH(&p, i, j, k)
            ref_store(&p, f, ref_f(&p, i, j, k), ref_apply(&p, exact, i, j, k) - ref_boundary(&p, i, j, k));
        pg_solver *solver = create(&s.desc);
        pg_desc resolved;
        OK(pg_query_desc(solver, &resolved), solver);
        assert_true(resolved.smoother == PG_SMOOTH_LINES);
        const pg_stop stop = {.rtol = p.f32 ? 1e-4 : 1e-9};
        pg_report report;
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        pg_destroy(solver);
        if (report.outcome != PG_CONVERGED && !(p.f32 && report.outcome == PG_STAGNATED))
            fail_msg("%s: %s", describe(&s.desc), report.message);
        if (!p.f32 && report.iterations > 2 * 16) fail_msg("%s: %d cycles", describe(&s.desc), report.iterations);
        long double residual = 0, largest = 0;
        REF_EACH(&p, i, j, k) {
            residual = fmaxl(residual, fabsl(ref_residual(&p, u, f, i, j, k) - (long double)report.removed_mean));
            largest = fmaxl(largest, fabsl(ref_load(&p, f, ref_f(&p, i, j, k)) + ref_boundary(&p, i, j, k)));
        }
        REF_EACH(&p, i, j, k) memset(u + (size_t)ref_u(&p, i, j, k) * size, 0x7f, size);
        if (!(residual <= (p.f32 ? 3e-3 : 1e-7) * largest)) fail_msg("%s: %.1Le", describe(&s.desc), residual / largest);
        for (size_t i = 0; i < extent_u * size; i++) assert_true(u[i] == 0x7f);
        free(u), free(f), free(exact);
        ref_free(&p);
    }
}

/* A sweep solves for whole lines: with one line only, exactly; reversed colours make a cycle self-adjoint. */
static void a_single_line_is_solved_in_one_sweep(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {3};
    for (int axis = 0; axis < 3; axis++)
        for (int n = 3; n < 80; n += 19) {
            stretched s;
            memset(&s, 0, sizeof s), s.desc.coarsest = 8;
            s.desc.backend = backend, s.desc.dim = 3, set_choice(&s.desc, PG_VCYCLE | PG_SMOOTH_LINES);
            s.desc.n[0] = s.desc.n[1] = s.desc.n[2] = 1, s.desc.n[axis] = n;
            stretch(&s, axis, 50);
            double u[80] = {0}, f[80], first, after;
            for (int i = 0; i < n; i++) f[i] = rng_uniform(&r, -1, 1);
            double v[80];
            pg_solver *solver = create(&s.desc);
            OK(pg_residual(solver, u, f, v), solver);
            OK(pg_norm(solver, v, PG_NORM_MAX, &first), solver);
            OK(pg_smooth(solver, u, f, 1), solver);
            OK(pg_residual(solver, u, f, v), solver);
            OK(pg_norm(solver, v, PG_NORM_MAX, &after), solver);
            if (!(after <= 1e-11 * first)) fail_msg("%s: %.1e", describe(&s.desc), after / first);
            pg_destroy(solver);
        }
}

/* Lengths that leave parts of a line even, short by a row, or just too long, along every axis, beside lines of all kinds
   with boundary data: a sweep is the same whichever back end does it. */
static void a_sweep_is_the_same_on_both(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const ends[] = {"DD", "NN", "PP", "DN", "RR"};
    static const int lengths[] = {1,  2,  3,   5,   7,   8,   9,   15,  16,  17,   31,   32,   33,  47,
                                  61, 64, 127, 128, 130, 255, 257, 509, 512, 513, 1000, 1024, 1031, 2053};
    rng r = {6};
    for (int count = 0; count < full_or_small(420, 140); count++) {
        const int axis = count % 3, n = lengths[count / 3 % 28], most = n > 100 ? 4 : 9, single = rng_int(&r, 0, 3) == 0;
        stretched s;
        memset(&s, 0, sizeof s), s.desc.coarsest = 8;
        s.desc.dim = 3, set_choice(&s.desc, PG_VCYCLE | PG_SMOOTH_LINES | (single ? PG_F32 : 0));
        s.desc.alpha = rng_int(&r, 0, 2) ? rng_uniform(&r, 0.1, 20) : 0;
        for (int a = 0; a < 3; a++) {
            s.desc.n[a] = a == axis ? n : rng_int(&r, 1, most);
            s.desc.centring[a] = rng_int(&r, 0, 1) ? PG_CELL : PG_NODE;
            set_ends(&s.desc, a, ends[a == axis ? count / 84 % 5 : rng_int(&r, 0, 4)]);
        }
        if (s.desc.face[2 * axis].kind != PG_DIRICHLET) s.desc.alpha += 1;    /* or round-off of a constant differs */
        for (int q = 0; q < 6; q++) s.desc.face[q].value = rng_uniform(&r, -1, 1);
        s.desc.stride_u[0] = s.desc.n[0] + rng_int(&r, 0, 3), s.desc.stride_u[1] = s.desc.stride_u[0] * s.desc.n[1];
        if (n > 2) stretch(&s, axis, 20);
        ref p;
        ref_create(&p, &s.desc);
        const size_t size = p.f32 ? 4 : 8, extent_u = ref_extent_u(&p), extent_f = ref_extent_f(&p);
        char *u[2] = {allocate(extent_u * size), allocate(extent_u * size)}, *f = allocate(extent_f * size);
        for (size_t i = 0; i < extent_u; i++) ref_store(&p, u[0], (int64_t)i, rng_uniform(&r, -1, 1));
        for (size_t i = 0; i < extent_f; i++) ref_store(&p, f, (int64_t)i, rng_uniform(&r, -1, 1));
        memcpy(u[1], u[0], extent_u * size);
        for (int q = 0; q < 2; q++) {
            s.desc.backend = q ? backend : PG_CPU;
            pg_solver *solver = create(&s.desc);
            OK(pg_smooth(solver, u[q], f, 1), solver);
            pg_destroy(solver);
        }
        long double largest = 0, difference = 0;
        for (size_t i = 0; i < extent_u; i++) {
            const long double a = ref_load(&p, u[0], (int64_t)i), b = ref_load(&p, u[1], (int64_t)i);
            largest = fmaxl(largest, fabsl(a));
            if (!(fabsl(a - b) <= difference)) difference = fabsl(a - b);
        }
        /* Residuals are off by round-off of D u, sweeps by that times the inverse of the lines; in f32 the CPU's own are
           off from those in f64 by up to 0.03 of this product, and the GPU's by no more than twice that. */
        const long double round_off = p.f32 ? FLT_EPSILON : DBL_EPSILON, condition = ref_largest_row(&p) / (1 + s.desc.alpha);
        if (!(difference <= (64 + 0.1L * condition) * round_off * largest))
            fail_msg("%s, axis %d: %.1Le of %.1Le", describe(&s.desc), axis, difference, largest);
        free(u[0]), free(u[1]), free(f);
        ref_free(&p);
    }
}

static void a_symmetric_cycle_by_lines_is_self_adjoint(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {4};
    for (int count = 0; count < full_or_small(24, 8); count++) {
        stretched s;
        random_stretched(&s, &r, backend, 2 + count % 2, full_or_small(20, 11));
        for (int q = 0; q < 6; q++) s.desc.face[q].value = 0;
        memset(s.desc.stride_u, 0, sizeof s.desc.stride_u), memset(s.desc.stride_f, 0, sizeof s.desc.stride_f);
        set_choice(&s.desc, PG_VCYCLE | PG_SYMMETRIC);
        s.desc.alpha = 0.5;
        const size_t points = (size_t)s.desc.n[0] * (size_t)s.desc.n[1] * (size_t)s.desc.n[2];
        double *x = allocate(4 * points * sizeof *x), *y = x + points, *bx = y + points, *by = bx + points, a, b;
        for (size_t i = 0; i < points; i++)
            x[i] = rng_uniform(&r, -1, 1), y[i] = rng_uniform(&r, -1, 1), bx[i] = by[i] = 0;
        pg_solver *solver = create(&s.desc);
        OK(pg_cycle(solver, bx, x, 1), solver);
        OK(pg_cycle(solver, by, y, 1), solver);
        OK(pg_dot(solver, bx, y, &a), solver);
        OK(pg_dot(solver, x, by, &b), solver);
        double scale_x, scale_y;
        OK(pg_norm(solver, bx, PG_NORM_L2, &scale_x), solver);
        OK(pg_norm(solver, y, PG_NORM_L2, &scale_y), solver);
        if (!(fabs(a - b) <= 1e-11 * scale_x * scale_y)) fail_msg("%s: %.3e and %.3e", describe(&s.desc), a, b);
        pg_destroy(solver);
        free(x);
    }
}

/* Who chooses: an axis that varies by more than 2, unless a smoother or omega is given. */
static void the_smoother_is_chosen_by_the_spacing(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct { double ratio; unsigned flags; double omega; unsigned smoother; } cases[] = {
        {1.5, 0, 0, PG_SMOOTH_RBGS},        {2.5, 0, 0, PG_SMOOTH_LINES},
        {100, PG_SMOOTH_RBGS, 0, PG_SMOOTH_RBGS}, {100, 0, 1.1, PG_SMOOTH_RBGS},
        {100, PG_SMOOTH_JACOBI, 0, PG_SMOOTH_JACOBI}, {1.5, PG_SMOOTH_LINES, 0, PG_SMOOTH_LINES}};
    for (int q = 0; q < 6; q++)
        for (int cell = 0; cell < 2; cell++) {
            stretched s;
            memset(&s, 0, sizeof s), s.desc.coarsest = 8;
            s.desc.backend = backend, s.desc.n[0] = 20, s.desc.n[1] = 64, s.desc.centring[1] = cell ? PG_CELL : PG_NODE;
            set_ends(&s.desc, 1, cell ? "NN" : "DN");
            set_choice(&s.desc, cases[q].flags | PG_FMG), s.desc.omega = cases[q].omega;
            stretch(&s, 1, cases[q].ratio);
            pg_solver *solver = create(&s.desc);
            pg_desc resolved;
            OK(pg_query_desc(solver, &resolved), solver);
            const unsigned all = PG_SMOOTH_RBGS | PG_SMOOTH_JACOBI | PG_SMOOTH_CHEBYSHEV | PG_SMOOTH_LINES;
            assert_int_equal((unsigned)resolved.smoother & all, cases[q].smoother);
            pg_destroy(solver);
        }
    pg_desc desc = {0};
    desc.n[0] = 9, desc.backend = backend, set_choice(&desc, PG_SMOOTH_LINES), desc.omega = 1.1;
    pg_solver *solver;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(NULL), "PG_SMOOTH_LINES"));
    set_choice(&desc, PG_SMOOTH_LINES | PG_SMOOTH_RBGS), desc.omega = 0;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_ARGUMENT);
    set_choice(&desc, PG_SMOOTH_LINES | PG_DIRECT);
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_UNSUPPORTED);
}

/* Where the origin lies is nothing to the operator, and spacings count as they are given: a cell of one ulp too. */
static void a_large_offset_of_the_coordinates_changes_nothing(void **state)
{
    enum { N = 40 };
    static const char *const ends[] = {"DD", "NN", "PP", "DN", "RR"};
    const pg_backend backend = backend_or_skip(state);
    const double offsets[] = {1048576, -1048576, 100};
    for (int q = 0; q < 2 * 5 * 3; q++) {
        double coord[2][N + 2], u[2][N], f[N], v[2][N];
        pg_desc desc = {0};
        desc.n[0] = N, desc.centring[0] = q % 2 ? PG_CELL : PG_NODE, desc.backend = backend;
        set_choice(&desc, PG_VCYCLE), desc.coarsest = 8;
        set_ends(&desc, 0, ends[q / 6]);
        rng r = {5};
        for (int i = 0; i < N; i++) f[i] = rng_uniform(&r, -1, 1), u[0][i] = u[1][i] = rng_uniform(&r, -1, 1);
        for (int moved = 0; moved < 2; moved++) {
            for (int i = 0; i < N + 2; i++) coord[moved][i] = i * (i + 2) * 0x1p-32 + (moved ? offsets[q / 2 % 3] : 0);
            desc.coord[0] = coord[moved];
            pg_solver *solver = create(&desc);
            const pg_stop stop = {.rtol = PG_NONE, .max_iter = 2};
            OK(pg_apply(solver, u[moved], v[moved]), solver);
            OK(pg_solve(solver, u[moved], f, &stop), solver);
            pg_destroy(solver);
        }
        if (memcmp(v[0], v[1], sizeof v[0])) fail_msg("A u differs: %s, offset %g", describe(&desc), coord[1][0]);
        if (memcmp(u[0], u[1], sizeof u[0])) fail_msg("u differs: %s, offset %g", describe(&desc), coord[1][0]);
    }
}

/* -(u_1 - u_0)/d_1 + ... of three cells at 1, the middle one small: the distances are halves of sums of widths. */
static void small_cells_far_from_the_origin_have_their_widths(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double coord[] = {-3, 1 - 0x1p-53, 1, 1 + 0x1p-52}, u[] = {0, 1, 0}, v[3];
    pg_desc desc = {0};
    desc.n[0] = 3, desc.centring[0] = PG_CELL, desc.coord[0] = coord, desc.backend = backend;
    set_ends(&desc, 0, "NN");
    pg_solver *solver = create(&desc);
    OK(pg_apply(solver, u, v), solver);
    const double w = 0x1p-53, low = 1 / 2.0, high = 1 / ((w + 2 * w) / 2);
    assert_true(fabs(v[1] * w / (low + high) - 1) < 1e-15);
    assert_true(fabs(v[2] * 2 * w / -high - 1) < 1e-15);
    pg_destroy(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(every_ratio_converges),
        ON_BOTH(random_stretched_boxes_are_solved),
        ON_BOTH(a_single_line_is_solved_in_one_sweep),
        ON_CUDA(a_sweep_is_the_same_on_both),
        ON_BOTH(a_symmetric_cycle_by_lines_is_self_adjoint),
        ON_BOTH(the_smoother_is_chosen_by_the_spacing),
        ON_BOTH(a_large_offset_of_the_coordinates_changes_nothing),
        ON_BOTH(small_cells_far_from_the_origin_have_their_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
