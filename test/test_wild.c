/* Problems that nobody chose: random descriptors with wild axes (stretched, axisymmetric, layered, random metric, closed
   ends), and some that were found by accident. Cycles must contract where one axis is wild, the default options must
   solve all, and what a report says must hold when the residual is worked out in long double.

   PG_TEST_COUNT in the environment: so many random problems a test. */
#ifdef PG_TEST_CUDA
#include <cuda_runtime.h>
#endif
#include "ref.h"

typedef struct wild {
    pg_desc desc;
    double *coord[3], *weight[3], *conductance[3];      /* by axis */
    char kind[120];
} wild;

static double power(rng *r, double low, double high) { return pow(10, rng_uniform(r, low, high)); }
static int chance(rng *r, double p) { return rng_uniform(r, 0, 1) < p; }

static int intervals(const pg_desc *desc, int axis)
{
    const pg_face *face = &desc->face[2 * axis];
    if (face->kind == PG_PERIODIC || desc->centring[axis] == PG_CELL) return desc->n[axis];
    return desc->n[axis] - 1 + (face[0].kind == PG_DIRICHLET) + (face[1].kind == PG_DIRICHLET);
}

static void random_faces(pg_desc *desc, int axis, rng *r)
{
    const int periodic = chance(r, 0.25);
    for (int side = 0; side < 2; side++) {
        pg_face *face = &desc->face[2 * axis + side];
        face->kind = periodic ? PG_PERIODIC : (pg_face_kind)rng_int(r, PG_DIRICHLET, PG_ROBIN);
        if (face->kind == PG_ROBIN) face->a = power(r, -2, 2), face->b = power(r, -2, 2);
        if (!periodic && chance(r, 0.3)) face->value = rng_uniform(r, -1, 1);
    }
}

/* Interval ends whose distances vary by `spread`: at random, from one side to the other, towards the middle, or by a
   jump. */
static void stretch(wild *p, int axis, double spread, rng *r)
{
    const int m = intervals(&p->desc, axis), how = rng_int(r, 0, 3);
    const double jump = rng_uniform(r, 0, 1);
    double *const coord = p->coord[axis] = allocate(((size_t)m + 1) * sizeof(double)), x = 0;
    for (int q = 0; q <= m; q++) {
        const double t = (double)q / m;
        coord[q] = x;
        x += pow(spread, how == 0 ? rng_uniform(r, 0, 1) : how == 1 ? t : how == 2 ? fabs(2 * t - 1) : t < jump) / m;
    }
    p->desc.coord[axis] = coord;
    p->desc.h[axis] = 0;
}

/* w = k = radius^exponent, from `inner` box lengths on. */
static void make_radial(wild *p, int axis, double inner, int exponent)
{
    const pg_desc *d = &p->desc;
    const int n = d->n[axis], m = intervals(d, axis), node = d->centring[axis] == PG_NODE;
    const int periodic = d->face[2 * axis].kind == PG_PERIODIC, first = node && d->face[2 * axis].kind == PG_DIRICHLET;
    const double length = d->coord[axis] ? d->coord[axis][m] : d->h[axis] > 0 ? m * d->h[axis] : 1, h = length / m;
    const double from = periodic && inner < 1 ? length : inner * length;
    for (int i = 0; i <= n; i++) {
        const int edge = node ? i + first : i;        /* the interval end at or above conductance i */
        const double above = d->coord[axis] ? d->coord[axis][edge < m ? edge : m] : h * (edge < m ? edge : m);
        const double below = d->coord[axis] ? d->coord[axis][edge > 0 ? edge - 1 : 0] : h * (edge > 0 ? edge - 1 : 0);
        const double centre = d->coord[axis] && edge < m ? (above + d->coord[axis][edge + 1]) / 2 : above + h / 2;
        const double at_k = from + (node ? (above + below) / 2 : above), at_w = from + (node ? above : centre);
        p->conductance[axis][i] = pow(exponent < 0 && at_k < h / 4 ? h / 4 : at_k, exponent);
        if (i < n) p->weight[axis][i] = pow(at_w < h / 4 ? h / 4 : at_w, exponent);
    }
    if (periodic) p->conductance[axis][n] = p->conductance[axis][0];
}

static void make_layered(wild *p, int axis, double eps, int begin, int end)
{
    const int n = p->desc.n[axis];
    double *w = p->weight[axis], *k = p->conductance[axis];
    for (int i = 0; i < n; i++) w[i] = i >= begin && i < end ? eps : 1;
    for (int i = 1; i < n; i++) k[i] = 2 * w[i - 1] * w[i] / (w[i - 1] + w[i]);
    k[0] = w[0], k[n] = w[n - 1];
    if (p->desc.face[2 * axis].kind == PG_PERIODIC) k[0] = k[n] = 2 * w[0] * w[n - 1] / (w[0] + w[n - 1]);
}

static void random_metric(wild *p, int axis, double w, double k, rng *r)
{
    const int n = p->desc.n[axis];
    for (int i = 0; i < n; i++) p->weight[axis][i] = pow(w, rng_uniform(r, 0, 1));
    for (int i = 0; i <= n; i++) p->conductance[axis][i] = pow(k, rng_uniform(r, 0, 1));
    if (p->desc.face[2 * axis].kind == PG_PERIODIC) p->conductance[axis][n] = p->conductance[axis][0];
}

/* What makes an axis wild, and ends that are closed or conduct badly. */
static void make_wild(wild *p, int axis, rng *r)
{
    pg_desc *d = &p->desc;
    const int kind = intervals(d, axis) > 0 ? rng_int(r, 0, 6) : 0, n = d->n[axis];
    static const char *const names[] = {"plain", "stretched", "r", "1/R", "random metric", "stretched r", "layered"};
    const size_t used = strlen(p->kind);
    snprintf(p->kind + used, sizeof p->kind - used, "%s%c is %s", used ? ", " : "", "xyz"[axis], names[kind]);
    if (kind == 0) return;
    if (kind == 1 || kind == 5) stretch(p, axis, power(r, 0, 3), r);
    p->weight[axis] = allocate((size_t)n * sizeof(double));
    p->conductance[axis] = allocate(((size_t)n + 1) * sizeof(double));
    const double inner = chance(r, 0.3) ? 0 : power(r, -4, 1);
    switch (kind) {
    case 2: case 5: make_radial(p, axis, inner, 1); break;
    case 3: make_radial(p, axis, inner, -1); break;
    case 4: random_metric(p, axis, chance(r, 0.3) ? 1 : power(r, 0, 3), chance(r, 0.3) ? 1 : power(r, 0, 3), r); break;
    case 6: make_layered(p, axis, power(r, 0, 4), rng_int(r, 0, n), rng_int(r, 0, n)); break;
    default: random_metric(p, axis, 1, 1, r);
    }
    d->weight[axis] = p->weight[axis], d->conductance[axis] = p->conductance[axis];
    for (int side = 0; side < 2 && d->face[2 * axis].kind != PG_PERIODIC; side++) {
        double *end = &p->conductance[axis][side ? n : 0];
        if (chance(r, 0.15)) *end = 0;
        else if (chance(r, 0.1)) *end *= power(r, -4, 0);
    }
}

/* Axes are wild with probability `all`; 0: one of them may be. */
static void wild_create_with(wild *p, pg_backend backend, uint64_t seed, int most_2d, int most_3d, double all)
{
    rng r = {seed};
    memset(p, 0, sizeof *p);
    pg_desc *d = &p->desc;
    d->dim = rng_int(&r, 1, 3);
    d->backend = backend;
    const int most = d->dim == 1 ? 20 * most_2d : d->dim == 2 ? most_2d : most_3d;
    for (int axis = 0; axis < 3; axis++) d->n[axis] = 1;
    for (int axis = 0; axis < d->dim; axis++) {
        d->n[axis] = chance(&r, 0.15) ? rng_int(&r, 1, 6) : 1 + (int)(pow(rng_uniform(&r, 0, 1), 0.7) * most);
        d->centring[axis] = chance(&r, 0.5) ? PG_CELL : PG_NODE;
        random_faces(d, axis, &r);
        if (chance(&r, 0.5)) d->h[axis] = power(&r, -1, 1) / d->n[axis];
        if (all > 0 && chance(&r, all)) make_wild(p, axis, &r);
    }
    if (all == 0) make_wild(p, rng_int(&r, 0, d->dim - 1), &r);
    d->alpha = chance(&r, 0.5) ? 0 : power(&r, -4, 4);
}
static void wild_create(wild *p, pg_backend backend, uint64_t seed, int most_2d, int most_3d)
{
    wild_create_with(p, backend, seed, most_2d, most_3d, 0);
}

static void wild_destroy(wild *p)
{
    for (int axis = 0; axis < 3; axis++) free(p->coord[axis]), free(p->weight[axis]), free(p->conductance[axis]);
}

static const char *wild_text(const wild *p, uint64_t seed)
{
    static char text[400];
    snprintf(text, sizeof text, "problem %llu (%s, %s)", (unsigned long long)seed, describe(&p->desc), p->kind);
    return text;
}

static int count_of(int full, int small)
{
    const char *count = getenv("PG_TEST_COUNT");
    return count ? atoi(count) : full_or_small(full, small);
}

/* The norm of the residual, and of eps (D u + f), in long double; f without its mean. */
typedef struct truth { double residual, floor, rhs; } truth;

static truth truth_of(const pg_desc *desc, const void *u, const void *f, double removed)
{
    ref p;
    ref_create(&p, desc);
    long double sums[3] = {0, 0, 0};
    REF_EACH(&p, i, j, k) {
        const int at[3] = {i, j, k};
        const long double w = ref_weight(&p, i, j, k), r = ref_residual(&p, u, f, i, j, k) - removed;
        const long double right = ref_load(&p, f, ref_f(&p, i, j, k)) + ref_boundary(&p, i, j, k) - removed;
        long double diagonal = 0;
        for (int axis = 0; axis < 3; axis++) {
            const ref_axis *t = &p.axis[axis];
            diagonal += t->low[at[axis]] + t->high[at[axis]];
            if (at[axis] == 0) diagonal += t->end[0] * t->a[0];
            if (at[axis] == t->n - 1) diagonal += t->end[1] * t->a[1];
        }
        const long double du = (p.alpha + p.beta * diagonal) * fabsl(ref_load(&p, u, ref_u(&p, i, j, k)));
        const long double size = du + fabsl(right) + fabs(removed);
        sums[0] += w * r * r, sums[1] += w * size * size, sums[2] += w * right * right;
    }
    const double eps = p.f32 ? 0x1p-23 : 0x1p-52;
    const truth t = {(double)sqrtl(sums[0]), eps * (double)sqrtl(sums[1]), (double)sqrtl(sums[2])};
    ref_free(&p);
    return t;
}

/* u and f of a problem: f random or smooth, u zero. */
static void make_fields(const pg_desc *desc, uint64_t seed, void **u, void **f)
{
    ref p;
    ref_create(&p, desc);
    const size_t element = p.f32 ? sizeof(float) : sizeof(double);
    rng r = {~seed};
    const int smooth = chance(&r, 0.5);
    *u = allocate(ref_points(&p) * element), *f = allocate(ref_points(&p) * element);
    memset(*u, 0, ref_points(&p) * element);
    REF_EACH(&p, i, j, k) {
        const double wave = sin(3 * (i + 0.5) / p.n[0]) * cos(5 * (j + 0.5) / p.n[1]) * cos(2 * (k + 0.5) / p.n[2]);
        ref_store(&p, *f, ref_f(&p, i, j, k), smooth ? wave : rng_uniform(&r, -1, 1));
    }
    ref_free(&p);
}

static pg_report solve_to(const pg_desc *desc, void *u, const void *f, const pg_stop *stop)
{
    pg_report report;
    pg_solver *solver = create(desc);
    OK(pg_solve(solver, u, f, stop), solver);
    OK(pg_get_report(solver, &report), solver);
    pg_destroy(solver);
    return report;
}

/* The default tolerance holds, or round-off of u leaves nothing of the right-hand side. */
static int ends_well(const pg_report *report)
{
    return report->outcome == PG_CONVERGED ||
           (report->outcome == PG_STAGNATED && report->residual > 0.1 * report->rhs_norm);
}

/* With the default options every problem converges, to the default tolerance or to round-off. */
static void default_options_solve(void **state, unsigned precision, double rtol)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < count_of(400, 40); q++) {
        wild p;
        void *u, *f;
        wild_create(&p, backend, (uint64_t)q, full_or_small(150, 40), full_or_small(36, 12));
        set_choice(&p.desc, precision);
        make_fields(&p.desc, (uint64_t)q, &u, &f);
        const pg_report report = solve_to(&p.desc, u, f, NULL);
        const truth t = truth_of(&p.desc, u, f, report.removed_mean);
        if (!ends_well(&report)) fail_msg("%s: %s", wild_text(&p, (uint64_t)q), report.message);
        if (!(t.residual <= 1.001 * rtol * t.rhs + 20 * t.floor))
            fail_msg("%s: %s, but the residual is %g (rhs %g, round-off %g)", wild_text(&p, (uint64_t)q),
                     report.message, t.residual, t.rhs, t.floor);
        free(u), free(f);
        wild_destroy(&p);
    }
}
static void default_options_solve_in_f64(void **state) { default_options_solve(state, PG_F64, 1e-8); }
static void default_options_solve_in_f32(void **state) { default_options_solve(state, PG_F32, 1e-5); }
static void default_options_solve_in_mixed_precision(void **state)
{
    default_options_solve(state, PG_MIXED | PG_FMG, 1e-8);
}

/* Full multigrid where every axis is wild: few iterations, however many axes vary. */
static void several_axes_vary(void **state, unsigned flags, double rtol)
{
    const pg_backend backend = backend_or_skip(state);
    const int count = count_of(250, 40);
    int exact = 0, many = 0;
    for (int q = 0; q < count; q++) {
        wild p;
        void *u, *f;
        wild_create_with(&p, backend, (uint64_t)q, full_or_small(300, 110), full_or_small(60, 24), 0.8);
        set_choice(&p.desc, flags);
        make_fields(&p.desc, (uint64_t)q, &u, &f);
        const pg_report report = solve_to(&p.desc, u, f, NULL);
        const truth t = truth_of(&p.desc, u, f, report.removed_mean);
        const int is_exact = strstr(report.method, "solved exactly") != NULL;
        if (!ends_well(&report) || report.iterations > (is_exact ? 8 : 40))
            fail_msg("%s: %s (%s)", wild_text(&p, (uint64_t)q), report.message, report.method);
        if (!(t.residual <= 1.001 * rtol * t.rhs + 20 * t.floor))
            fail_msg("%s: %s, but the residual is %g (rhs %g, round-off %g)", wild_text(&p, (uint64_t)q),
                     report.message, t.residual, t.rhs, t.floor);
        exact += is_exact;
        many += report.iterations > 12;
        free(u), free(f);
        wild_destroy(&p);
    }
    if (20 * many > count) fail_msg("%d of %d take more than 12 iterations", many, count);
    assert_true(exact > 0 || small_run());   /* small ones are exact as a matter of course */
}
static void several_axes_vary_in_f64(void **state) { several_axes_vary(state, PG_FMG, 1e-8); }
static void several_axes_vary_in_f32(void **state) { several_axes_vary(state, PG_FMG | PG_F32, 1e-5); }
static void several_axes_vary_in_mixed_precision(void **state) { several_axes_vary(state, PG_FMG | PG_MIXED, 1e-8); }

/* Cells whose widths along every axis are random, from 1 to 1000; Neumann ends, or mixed ones. */
enum { NOISY = 140 };
static double noise[3][NOISY + 1];
static pg_desc noisy_box(pg_backend backend, int nx, int ny, int nz, int singular)
{
    static const char *const ends[] = {"NN", "PP", "NN", "DN", "PP", "RD"};
    rng r = {99};
    pg_desc desc = {0};
    desc.backend = backend;
    for (int axis = 0; axis < 3; axis++) {
        desc.n[axis] = axis == 0 ? nx : axis == 1 ? ny : nz;
        desc.centring[axis] = PG_CELL;
        set_ends(&desc, axis, ends[axis + 3 * !singular]);
        for (int i = 0; i < NOISY; i++) noise[axis][i + 1] = noise[axis][i] + power(&r, -3, 0);
        desc.coord[axis] = noise[axis];
    }
    return desc;
}

/* The handle has as much workspace as pg_workspace_bytes says. */
static pg_report solve_in_the_promised_workspace(const pg_desc *desc, void *u, const void *f, const pg_stop *stop)
{
    size_t bytes;
    pg_desc resolved;
    pg_report report;
    OK(pg_workspace_bytes(desc, &bytes), NULL);
    pg_solver *solver = create(desc);
    OK(pg_query_desc(solver, &resolved), solver);
    assert_int_equal(resolved.workspace_bytes, bytes);
    OK(pg_solve(solver, u, f, stop), solver);
    OK(pg_get_report(solver, &report), solver);
    pg_destroy(solver);
    return report;
}

static void exact_where_cycles_would_be_slow(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {PG_FMG, PG_VCYCLE, PG_WCYCLE, PG_CG, PG_FASTEST, PG_FMG | PG_MIXED,
                                       PG_VCYCLE | PG_SYMMETRIC, PG_CG | PG_MIXED};
    static const unsigned cycles[] = {PG_KEEP_CYCLES, PG_WCYCLE | PG_KEEP_CYCLES, PG_SMOOTH_RBGS,
                                      PG_VCYCLE | PG_SMOOTH_LINES};
    pg_desc desc = noisy_box(backend, 133, 65, 1, 0);
    double *u = allocate(133 * 65 * sizeof *u), *f = allocate(133 * 65 * sizeof *f);
    rng r = {3};
    for (int i = 0; i < 133 * 65; i++) u[i] = 0, f[i] = rng_uniform(&r, -1, 1);
    for (int q = 0; q < 8; q++) {
        set_choice(&desc, methods[q]);
        const pg_report report = solve_in_the_promised_workspace(&desc, u, f, &(pg_stop){.guess = PG_GUESS_ZERO});
        assert_int_equal(report.outcome, PG_CONVERGED);
        if (report.iterations > 4 || !strstr(report.method, "solved exactly"))
            fail_msg("flags 0x%x: %s (%s)", methods[q], report.message, report.method);
    }
    for (int q = 0; q < 4; q++) {
        set_choice(&desc, cycles[q]);
        const pg_report report = solve_to(&desc, u, f, &(pg_stop){.rtol = PG_NONE, .max_iter = 1});
        assert_null(strstr(report.method, "exactly"));
    }
    static const unsigned without[] = {PG_DIRECT, PG_SOR, PG_CG | PG_PRECOND_NONE};
    for (int q = 0; q < 3; q++) {
        pg_solver *solver = NULL;
        set_choice(&desc, without[q] | PG_KEEP_CYCLES);
        assert_int_equal(pg_create(&desc, &solver), PG_ERROR_UNSUPPORTED);
        assert_null(solver);
        assert_non_null(strstr(pg_last_error(NULL), "PG_KEEP_CYCLES"));
    }
    free(u), free(f);
}

/* One wild axis, or a size beyond the limit, is no reason. */
static void not_exact_where_cycles_will_do(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static double far[1200];
    pg_desc desc = noisy_box(backend, 133, 65, 1, 0);
    double *u = allocate(1100 * 65 * sizeof *u), *f = allocate(1100 * 65 * sizeof *f);
    rng r = {3};
    for (int i = 0; i < 1100 * 65; i++) u[i] = 0, f[i] = rng_uniform(&r, -1, 1);
    for (int i = 0; i < 1199; i++) far[i + 1] = far[i] + power(&r, -1, 0);
    desc.coord[1] = NULL;
    assert_null(strstr(solve_to(&desc, u, f, NULL).method, "exactly"));
    desc = noisy_box(backend, 1100, 65, 1, 0), desc.coord[0] = far;
    assert_null(strstr(solve_to(&desc, u, f, NULL).method, "exactly"));
    free(u), free(f);
}

/* PG_FMG is conjugate gradients then, from 0 unless told, and cycles are what was asked for. */
static void accelerated_where_it_is_too_large_to_be_exact(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {0, PG_FMG, PG_FMG | PG_MIXED, PG_FMG | PG_F32};
    static const unsigned cycles[] = {PG_KEEP_CYCLES, PG_VCYCLE, PG_FMG | PG_SMOOTH_LINES, PG_CG};
    enum { LONG = 1030, POINTS = LONG * 12 * 10 };
    static double far[LONG + 1];
    rng r = {5};
    double *u = allocate(POINTS * sizeof *u), *f = allocate(POINTS * sizeof *f);
    float *u32 = allocate(POINTS * sizeof *u32), *f32 = allocate(POINTS * sizeof *f32);
    for (int i = 0; i < POINTS; i++) f[i] = rng_uniform(&r, -1, 1), f32[i] = (float)f[i];
    for (int i = 0; i < LONG; i++) far[i + 1] = far[i] + power(&r, -2, 0);
    for (int q = 0; q < 16; q += full_or_small(1, 5)) {
        const int singular = q / 4 % 2, single = methods[q % 4] & PG_F32 ? 1 : 0;
        pg_desc desc = q < 8 ? noisy_box(backend, LONG, 12, 10, singular) : noisy_box(backend, LONG, 40, 1, singular);
        desc.coord[0] = far;
        set_choice(&desc, methods[q % 4]);
        desc.dim = q < 8 ? 3 : 2;
        for (int i = 0; i < POINTS; i++) u[i] = NAN, u32[i] = NAN;
        const pg_report report =
            solve_in_the_promised_workspace(&desc, single ? (void *)u32 : u, single ? (void *)f32 : f, NULL);
        if (report.outcome != PG_CONVERGED || report.iterations > 40 || !report.accelerated ||
            !strstr(report.method, "PG_CG"))
            fail_msg("flags 0x%x, %d: %s (%s)", desc.flags, q, report.message, report.method);
        if (single) continue;
        const truth t = truth_of(&desc, u, f, report.removed_mean);
        if (!(t.residual <= 1.001e-8 * t.rhs + 20 * t.floor)) fail_msg("residual %g of %g", t.residual, t.rhs);
        set_choice(&desc, cycles[q % 4]);
        assert_int_equal(solve_to(&desc, u, f, &(pg_stop){.rtol = PG_NONE, .max_iter = 1}).accelerated, 0);
    }
    free(u), free(f), free(u32), free(f32);
}

static void *place(const pg_desc *desc, size_t bytes, const void *data)
{
    void *p = NULL;
#ifdef PG_TEST_CUDA
    if (desc->memory == PG_MEM_DEVICE) {
        assert_int_equal(cudaMalloc(&p, bytes), cudaSuccess);
        assert_int_equal(cudaMemcpy(p, data, bytes, cudaMemcpyHostToDevice), cudaSuccess);
        return p;
    }
#endif
    p = allocate(bytes);
    (void)desc;
    return memcpy(p, data, bytes);
}
static void fetch(const pg_desc *desc, void *to, void *from, size_t bytes)
{
#ifdef PG_TEST_CUDA
    if (desc->memory == PG_MEM_DEVICE) {
        assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
        cudaFree(from);
        return;
    }
#endif
    (void)desc;
    memcpy(to, from, bytes);
    free(from);
}

/* Batches and rows with gaps, from zero and from a guess, singular or not: every problem as if it were alone, twice the
   same bits, and nothing between the rows is touched. */
static void exact_in_batches_with_gaps(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[][3] = {{133, 65, 1}, {17, 64, 66}, {70, 3, 137}, {1, 139, 140}, {33, 40, 35}};
    for (int q = 0; q < 10; q += full_or_small(1, 3)) {
        const int *const n = sizes[q / 2], zero = q % 2;
        pg_desc desc = noisy_box(backend, n[0], n[1], n[2], q % 4 < 2), alone;
        desc.dim = n[2] > 1 ? 3 : 2;
        set_choice(&desc, q % 3 ? PG_FMG : PG_VCYCLE);
        if (backend == PG_CUDA && q % 4) desc.memory = PG_MEM_DEVICE;
        alone = desc;
        desc.batch = 3;
        desc.stride_u[0] = n[0] + 3, desc.stride_u[1] = desc.stride_u[0] * n[1] + 5;
        desc.stride_u[2] = desc.stride_u[1] * n[2] + 7;
        const size_t points = (size_t)n[0] * n[1] * n[2], extent = (size_t)desc.stride_u[2] * 3;
        double *u = allocate(extent * sizeof *u), *f = allocate(3 * points * sizeof *f);
        double *one = calloc(points, sizeof *one), *again = allocate(extent * sizeof *again);
        rng r = {(uint64_t)q};
        for (size_t i = 0; i < extent; i++) u[i] = 0.25;
        for (size_t i = 0; i < 3 * points; i++) f[i] = rng_uniform(&r, -1, 1);
        const pg_stop stop = {.guess = zero ? PG_GUESS_ZERO : PG_GUESS_U, .rtol = zero ? 0 : PG_NONE, .max_iter = 3};
        for (int turn = 0; turn < 2; turn++) {
            void *on_u = place(&desc, extent * sizeof *u, u), *on_f = place(&desc, 3 * points * sizeof *f, f);
            const pg_report report = solve_to(&desc, on_u, on_f, &stop);
            if (zero && (report.outcome != PG_CONVERGED || report.iterations > 2)) fail_msg("%s", report.message);
            assert_non_null(strstr(report.method, "exactly"));
            fetch(&desc, turn ? again : u, on_u, extent * sizeof *u), fetch(&desc, f, on_f, 3 * points * sizeof *f);
            for (size_t i = 0; turn == 0 && i < extent; i++) again[i] = u[i];
            if (turn && zero) assert_memory_equal(u, again, extent * sizeof *u);
        }
        for (int problem = 0; problem < 3 && zero; problem++) {
            const size_t bytes = points * sizeof *one;
            void *on_u = place(&desc, bytes, one), *on_f = place(&desc, bytes, f + problem * points);
            solve_to(&alone, on_u, on_f, &stop);
            fetch(&desc, one, on_u, bytes), fetch(&desc, f + problem * points, on_f, bytes);
            for (size_t i = 0; i < points; i++) {
                const size_t at = i % n[0] + i / n[0] % n[1] * desc.stride_u[0] + i / n[0] / n[1] * desc.stride_u[1];
                const double value = u[problem * desc.stride_u[2] + at];
                if (value != one[i])
                    fail_msg("%s, problem %d, point %zu: %g, alone %g", describe(&desc), problem, i, value, one[i]);
            }
        }
        for (size_t i = 0; i < extent; i++) {
            const int64_t at = (int64_t)i % desc.stride_u[2], row = at % desc.stride_u[1];
            const int gap = at / desc.stride_u[1] >= n[2] || row / desc.stride_u[0] >= n[1] ||
                            row % desc.stride_u[0] >= n[0];
            if (gap && u[i] != 0.25) fail_msg("%s: element %zu is no unknown, but %g", describe(&desc), i, u[i]);
        }
        free(u), free(f), free(one), free(again);
    }
}

/* The factor of V(2,1) on A u = 0 from a random start, the average of cycles 5 to 10. */
static double factor(const pg_desc *desc, uint64_t seed)
{
    pg_desc homogeneous = *desc;
    for (int face = 0; face < 6; face++) homogeneous.face[face].value = 0;
    ref p;
    ref_create(&p, &homogeneous);
    const size_t points = ref_points(&p);
    double *u = allocate(points * sizeof *u), *f = allocate(points * sizeof *f), *r = allocate(points * sizeof *r);
    double first = 0, norm = 0, before = 0;
    rng random = {seed};
    for (size_t i = 0; i < points; i++) u[i] = rng_uniform(&random, -1, 1), f[i] = 0;
    pg_solver *solver = create(&homogeneous);
    int cycles = 0;
    for (; cycles <= 10; cycles++) {
        if (cycles) OK(pg_cycle(solver, u, f, 1), solver);
        const double mean = p.singular ? (double)ref_mean(&p, u) : 0;
        for (size_t i = 0; i < points; i++) u[i] -= mean;
        OK(pg_residual(solver, u, f, r), solver);
        OK(pg_norm(solver, r, PG_NORM_L2, &norm), solver);
        if (cycles == 0) first = norm;
        if (cycles == 5) before = norm;
        if (norm <= 1e-12 * first) break;
    }
    pg_destroy(solver);
    ref_free(&p);
    free(u), free(f), free(r);
    return cycles <= 5 ? 0 : pow(norm / before, 1.0 / ((cycles > 10 ? 10 : cycles) - 5));
}

static void cycles_contract(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int count = count_of(600, 60);
    int above = 0;
    for (int q = 0; q < count; q++) {
        wild p;
        wild_create(&p, backend, (uint64_t)q, full_or_small(120, 40), full_or_small(30, 12));
        set_choice(&p.desc, PG_VCYCLE), p.desc.coarsest = 8;
        const double rate = factor(&p.desc, (uint64_t)q);
        if (!(rate <= 0.3)) fail_msg("%s: factor %.3f", wild_text(&p, (uint64_t)q), rate);
        above += rate > 0.2;
        wild_destroy(&p);
    }
    if (above > count / 1000 + 1) fail_msg("%d of %d above 0.2", above, count);
}

/* What every method says of its result, at every tolerance, is so. */
static void verdicts_are_true(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {PG_FMG, PG_VCYCLE, PG_WCYCLE, PG_DIRECT, PG_FASTEST, PG_SOR, PG_RBGS, PG_JACOBI,
                                       PG_MIXED | PG_FMG, PG_MIXED | PG_VCYCLE, PG_MIXED | PG_DIRECT};
    int said[PG_OUTCOME_COUNT] = {0};
    for (int q = 0; q < count_of(500, 60); q++) {
        wild p;
        void *u, *f;
        rng r = {(uint64_t)q + 77};
        wild_create(&p, backend, (uint64_t)q, full_or_small(40, 20), full_or_small(12, 8));
        set_choice(&p.desc, methods[rng_int(&r, 0, 10)]);
        if (!(p.desc.flags & PG_MIXED) && chance(&r, 0.4)) set_choice(&p.desc, choice_of(&p.desc) | PG_F32);
        if (chance(&r, 0.5)) p.desc.coarsest = 8;
        pg_solver *solver = NULL;
        if (pg_create(&p.desc, &solver) == PG_ERROR_UNSUPPORTED) {      /* PG_DIRECT and two axes with tables */
            wild_destroy(&p);
            continue;
        }
        pg_destroy(solver);
        make_fields(&p.desc, (uint64_t)q, &u, &f);
        const int sweeps = (p.desc.flags & (PG_SOR | PG_RBGS | PG_JACOBI)) != 0;
        const pg_stop stop = {.rtol = power(&r, -14, -2), .max_iter = sweeps ? 2000 : 0};
        const pg_report report = solve_to(&p.desc, u, f, &stop);
        const truth t = truth_of(&p.desc, u, f, report.removed_mean);
        const double asked = stop.rtol * t.rhs;
        said[report.outcome]++;
        const int wrong = report.outcome == PG_CONVERGED    ? !(t.residual <= 1.001 * asked + t.floor)
                          : report.outcome == PG_STAGNATED  ? !(t.residual <= 100 * t.floor) || t.residual <= asked / 2
                          : report.outcome == PG_MAX_ITER   ? !(t.residual >= 0.999 * asked - t.floor)
                                                            : 1;
        if (wrong || fabs(report.residual - t.residual) > 0.01 * t.residual + 2 * t.floor)
            fail_msg("%s to %g: %s; the residual is %g, the right-hand side %g, round-off %g",
                     wild_text(&p, (uint64_t)q), stop.rtol, report.message, t.residual, t.rhs, t.floor);
        free(u), free(f);
        wild_destroy(&p);
    }
    assert_true(said[PG_CONVERGED] > 0 && said[PG_STAGNATED] > 0);
}

/* A 2D or 1D problem with a wild x axis: from its low end Dirichlet to its high end Neumann; y periodic. */
static pg_desc half_open(pg_backend backend, int nx, int ny, pg_centring centring)
{
    pg_desc desc = {0};
    desc.n[0] = nx, desc.n[1] = ny;
    desc.dim = ny > 1 ? 2 : 1;
    desc.centring[0] = centring, desc.centring[1] = PG_CELL;
    set_ends(&desc, 0, "DN"), set_ends(&desc, 1, "PP");
    desc.backend = backend, set_choice(&desc, PG_VCYCLE), desc.coarsest = 8;
    return desc;
}

static void must_contract(const pg_desc *desc, double bound, const char *what, double value)
{
    const double rate = factor(desc, 5);
    if (!(rate <= bound)) fail_msg("%s, %s %g: factor %.3f > %.2f", describe(desc), what, value, rate, bound);
}

static void ends_that_conduct_less_than_the_inside(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(128, 32);
    double k[129], w[128];
    for (int ny = 1; ny <= n; ny += n - 1)
        for (double end = 1; end > 1e-6; end /= 100)
            for (int kind = 0; kind < 4; kind++) {      /* a coating on cells or nodes, a Robin one, w = k = r */
                pg_desc desc = half_open(backend, n, ny, kind % 2 ? PG_NODE : PG_CELL);
                for (int i = 0; i <= n; i++) k[i] = kind == 3 ? end + i + 0.5 : 1;
                for (int i = 0; i < n; i++) w[i] = kind == 3 ? end + i + 1 : 1;
                if (kind < 3) k[0] = end;
                if (kind == 2) set_ends(&desc, 0, "RN");
                desc.weight[0] = w, desc.conductance[0] = k;
                must_contract(&desc, 0.12, "end conductance", end);
            }
}

static void a_closed_end_of_a_dirichlet_node_axis(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(128, 31);
    double k[129];
    for (int q = 0; q < 2; q++) {
        pg_desc desc = half_open(backend, n - q, n, PG_NODE);
        for (int i = 0; i <= n; i++) k[i] = i > 0;
        set_ends(&desc, 0, "DD");
        desc.conductance[0] = k;
        must_contract(&desc, 0.1, "closed end, size", n - q);
        set_ends(&desc, 1, "DD");
        must_contract(&desc, 0.1, "closed end, size", n - q);
    }
}

static void jumps_at_any_cell(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(128, 32);
    wild p = {0};
    p.weight[0] = allocate((size_t)n * sizeof(double)), p.conductance[0] = allocate(((size_t)n + 1) * sizeof(double));
    for (double eps = 2; eps < 1e4; eps *= 9)
        for (int begin = n / 2; begin < n / 2 + 4; begin++)
            for (int ny = 1; ny <= n; ny += n - 1) {
                p.desc = half_open(backend, n, ny, PG_CELL);
                make_layered(&p, 0, eps, begin, n);
                p.desc.weight[0] = p.weight[0], p.desc.conductance[0] = p.conductance[0];
                must_contract(&p.desc, 0.12, "jump to", eps);
                set_choice(&p.desc, choice_of(&p.desc) | PG_SMOOTH_RBGS);         /* by points where the default is lines, too */
                must_contract(&p.desc, 0.2, "by points, jump to", eps);
            }
    wild_destroy(&p);
}

static void two_points_of_a_periodic_node_axis(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double coord[] = {0, 0.99, 1};
    for (int cell = 0; cell < 2; cell++) {
        pg_desc desc = half_open(backend, 2, 60, cell ? PG_CELL : PG_NODE);
        set_ends(&desc, 0, "PP"), set_ends(&desc, 1, "DD");
        desc.coord[0] = coord;
        desc.h[1] = 0.3;                /* couples more than the gap of 0.99, less than the one of 0.01 */
        must_contract(&desc, 0.1, "gap", 0.01);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(ends_that_conduct_less_than_the_inside),
        ON_BOTH(a_closed_end_of_a_dirichlet_node_axis),
        ON_BOTH(jumps_at_any_cell),
        ON_BOTH(two_points_of_a_periodic_node_axis),
        ON_BOTH(cycles_contract),
        ON_BOTH(default_options_solve_in_f64),
        ON_BOTH(default_options_solve_in_f32),
        ON_BOTH(default_options_solve_in_mixed_precision),
        ON_BOTH(several_axes_vary_in_f64),
        ON_BOTH(several_axes_vary_in_f32),
        ON_BOTH(several_axes_vary_in_mixed_precision),
        ON_BOTH(exact_where_cycles_would_be_slow),
        ON_BOTH(not_exact_where_cycles_will_do),
        ON_BOTH(accelerated_where_it_is_too_large_to_be_exact),
        ON_BOTH(exact_in_batches_with_gaps),
        ON_BOTH(verdicts_are_true),
    };
    return cmocka_run_group_tests_name("wild problems", tests, NULL, NULL);
}
