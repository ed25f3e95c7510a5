/* The pieces against the plain operator of ref.h, on random boxes in poisoned memory with guard zones around arrays. */
#include "ref.h"

/* ---- Random boxes ------------------------------------------------------------------------------------------------ */

enum { LONGEST = 13, FACE = LONGEST * LONGEST };

/* A descriptor with the storage that its pointers need. */
typedef struct box {
    pg_desc desc;
    double coord[3][LONGEST + 2], weight[3][LONGEST], conductance[3][LONGEST + 1];
    double face_f64[6][FACE];
    float face_f32[6][FACE];
} box;

static int rng_chance(rng *r, int one_in) { return rng_int(r, 1, one_in) == 1; }

static void random_axis(box *b, int axis, rng *r)
{
    static const char *const kinds[] = {"DD", "DN", "DR", "ND", "NN", "NR", "RD", "RN", "RR", "PP", "PP"};
    pg_desc *desc = &b->desc;
    const int n = desc->n[axis] = rng_chance(r, 4) ? rng_int(r, 1, 3) : rng_int(r, 1, LONGEST);
    const char *ends = kinds[rng_int(r, 0, 10)];
    desc->centring[axis] = rng_chance(r, 2) ? PG_CELL : PG_NODE;
    set_ends(desc, axis, ends);

    if (rng_chance(r, 2)) {
        desc->h[axis] = rng_chance(r, 2) ? rng_uniform(r, 0.05, 0.5) : 0;
    } else if (n > 1 || desc->centring[axis] == PG_CELL || strpbrk(ends, "DP")) {   /* where there is an interval */
        b->coord[axis][0] = rng_uniform(r, -1, 1);
        for (int i = 0; i <= n; i++) b->coord[axis][i + 1] = b->coord[axis][i] + rng_uniform(r, 0.5, 1.5) / n;
        desc->coord[axis] = b->coord[axis];
    }
    if (rng_chance(r, 3)) {
        for (int i = 0; i < n; i++) b->weight[axis][i] = rng_uniform(r, 0.5, 2);
        desc->weight[axis] = b->weight[axis];
    }
    if (rng_chance(r, 3)) {
        for (int i = 0; i <= n; i++) b->conductance[axis][i] = rng_uniform(r, 0.5, 2);
        if (ends[0] != 'P' && rng_chance(r, 3)) b->conductance[axis][0] = 0;
        if (ends[0] == 'P') b->conductance[axis][n] = b->conductance[axis][0];
        desc->conductance[axis] = b->conductance[axis];
    }
    for (int face = 2 * axis; face < 2 * axis + 2 && ends[0] != 'P'; face++) {
        if (desc->face[face].kind == PG_ROBIN) {
            const double sign = rng_chance(r, 2) ? 1 : -1;
            desc->face[face].a = sign * rng_uniform(r, 0, 2), desc->face[face].b = sign * rng_uniform(r, 0.5, 2);
        }
        if (!rng_chance(r, 3)) desc->face[face].value = rng_uniform(r, -1, 1);
        if (rng_chance(r, 3)) {
            for (int q = 0; q < FACE; q++) b->face_f32[face][q] = (float)(b->face_f64[face][q] = rng_uniform(r, -1, 1));
            desc->face[face].array = desc->flags & PG_F32 ? (void *)b->face_f32[face] : (void *)b->face_f64[face];
        }
    }
}

static void random_box(box *b, rng *r, pg_backend backend, unsigned flags)
{
    memset(b, 0, sizeof *b);
    pg_desc *desc = &b->desc;
    desc->backend = backend, set_choice(desc, flags);
    desc->dim = rng_int(r, 1, 3);
    for (int axis = 0; axis < desc->dim; axis++) random_axis(b, axis, r);
    if (rng_chance(r, 2)) desc->alpha = rng_uniform(r, 0, 10);
    if (rng_chance(r, 2)) desc->beta = rng_uniform(r, 0.1, 10);
    const int ny = desc->dim > 1 ? desc->n[1] : 1;
    if (rng_chance(r, 2)) desc->stride_u[0] = desc->n[0] + rng_int(r, 0, 5);
    if (rng_chance(r, 2)) desc->stride_f[0] = desc->n[0] + rng_int(r, 0, 5);
    if (rng_chance(r, 2))
        desc->stride_u[1] = (desc->stride_u[0] ? desc->stride_u[0] : desc->n[0]) * ny + rng_int(r, 0, 7);
    if (rng_chance(r, 2))
        desc->stride_f[1] = (desc->stride_f[0] ? desc->stride_f[0] : desc->n[0]) * ny + rng_int(r, 0, 7);
}

static int boxes(void) { return full_or_small(400, 40); }

/* ---- Windows in poisoned memory ---------------------------------------------------------------------------------- */

enum { GUARD = 67, U_LAYOUT = 0, F_LAYOUT = 1 };   /* GUARD is odd: no window is aligned to more than an element */

/* at points to the window's first element; everything outside the window, gaps between rows included, is 0xff (NaN). */
typedef struct window {
    const ref *p;
    int layout;
    size_t size, elements;
    unsigned char *block, *was;
    void *at;
} window;

static int64_t window_offset(const window *w, int i, int j, int k)
{
    return w->layout == F_LAYOUT ? ref_f(w->p, i, j, k) : ref_u(w->p, i, j, k);
}
static long double window_get(const window *w, int i, int j, int k)
{
    return ref_load(w->p, w->at, window_offset(w, i, j, k));
}
static void window_set(const window *w, int i, int j, int k, long double value)
{
    ref_store(w->p, w->at, window_offset(w, i, j, k), value);
}

static window window_poisoned(const ref *p, int layout)
{
    window w = {0};
    w.p = p, w.layout = layout, w.size = p->f32 ? sizeof(float) : sizeof(double);
    w.elements = (layout == F_LAYOUT ? ref_extent_f(p) : ref_extent_u(p)) + 2 * GUARD;
    w.block = allocate(w.elements * w.size), w.was = allocate(w.elements * w.size);
    memset(w.block, 0xff, w.elements * w.size);
    memset(w.was, 0xff, w.elements * w.size);
    w.at = w.block + GUARD * w.size;
    return w;
}

static void window_keep(const window *w) { memcpy(w->was, w->block, w->elements * w->size); }

static window window_random(const ref *p, int layout, rng *r)
{
    const window w = window_poisoned(p, layout);
    REF_EACH(p, i, j, k) window_set(&w, i, j, k, (long double)rng_uniform(r, -1, 1));
    window_keep(&w);
    return w;
}

static void window_free(window *w) { free(w->block), free(w->was); }

static void assert_window_unchanged(const window *w, const char *name)
{
    if (memcmp(w->block, w->was, w->elements * w->size)) fail_msg("%s was written", name);
}

static void assert_surroundings_unchanged(const window *w, const char *name)
{
    unsigned char *inside = allocate(w->elements);
    memset(inside, 0, w->elements);
    REF_EACH(w->p, i, j, k) inside[GUARD + window_offset(w, i, j, k)] = 1;
    for (size_t q = 0; q < w->elements; q++)
        if (!inside[q] && memcmp(w->block + q * w->size, w->was + q * w->size, w->size))
            fail_msg("element %ld of %s, outside of the window, was written", (long)q - GUARD, name);
    free(inside);
}

static double ulp(const ref *p) { return p->f32 ? 0x1p-23 : 0x1p-52; }

static long double ref_diagonal(const ref *p, int i, int j, int k)
{
    const int at[3] = {i, j, k};
    long double sum = 0;
    for (int axis = 0; axis < 3; axis++) {
        const ref_axis *t = &p->axis[axis];
        const int q = at[axis];
        sum += t->low[q] + t->high[q];
        if (q == 0) sum += t->end[0] * t->a[0];
        if (q == t->n - 1) sum += t->end[1] * t->a[1];
    }
    return p->alpha + p->beta * sum;
}

/* What of a row's terms can cancel: |u| <= 1 and |f| <= 1 here. */
static double row_size(const ref *p, int i, int j, int k)
{
    long double boundary = 0;
    const int at[3] = {i, j, k};
    for (int face = 0; face < 6; face++) {
        const ref_axis *t = &p->axis[face / 2];
        if (at[face / 2] == (face % 2 ? t->n - 1 : 0))
            boundary += fabsl(t->end[face % 2] * ref_face_value(p, face, i, j, k));
    }
    return (double)(2 * ref_diagonal(p, i, j, k) + p->beta * boundary + 1);
}

/* The tables hold differences of coordinates; 2 against a spacing of 1/26 costs six bits of the mantissa. */
static double table_error(const pg_desc *desc)
{
    return desc->coord[0] || desc->coord[1] || desc->coord[2] ? 64 * 0x1p-52 : 0;
}

static void fail_at(const box *b, const char *what, int i, int j, int k, long double got, long double expected)
{
    fail_msg("%s(%d,%d,%d) = %.17Lg, not %.17Lg: %s", what, i, j, k, got, expected, describe(&b->desc));
}

static const unsigned precisions[] = {PG_F64, PG_F32, PG_MIXED};

/* ---- Operator and reductions ------------------------------------------------------------------------------------- */

static void apply_and_residual_are_the_operator(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {21};
    for (int q = 0; q < boxes(); q++) {
        box b;
        ref p;
        random_box(&b, &r, backend, precisions[q % 3]);
        ref_create(&p, &b.desc);
        pg_solver *solver = create(&b.desc);
        window u = window_random(&p, U_LAYOUT, &r), f = window_random(&p, F_LAYOUT, &r);
        window v = window_poisoned(&p, F_LAYOUT), res = window_poisoned(&p, F_LAYOUT);
        window in_place = window_poisoned(&p, F_LAYOUT);
        REF_EACH(&p, i, j, k) window_set(&in_place, i, j, k, window_get(&f, i, j, k));
        window_keep(&in_place);

        OK(pg_apply(solver, u.at, v.at), solver);
        OK(pg_residual(solver, u.at, f.at, res.at), solver);
        OK(pg_residual(solver, u.at, in_place.at, in_place.at), solver);
        assert_window_unchanged(&u, "u");
        assert_window_unchanged(&f, "f");
        assert_surroundings_unchanged(&v, "v");
        assert_surroundings_unchanged(&res, "r");
        assert_surroundings_unchanged(&in_place, "r");
        REF_EACH(&p, i, j, k) {
            const double tolerance = (16 * ulp(&p) + table_error(&b.desc)) * row_size(&p, i, j, k);
            const long double au = ref_apply(&p, u.at, i, j, k), ru = ref_residual(&p, u.at, f.at, i, j, k);
            const long double v_got = window_get(&v, i, j, k), r_got = window_get(&res, i, j, k);
            if (!(fabsl(v_got - au) <= tolerance)) fail_at(&b, "A u", i, j, k, v_got, au);
            if (!(fabsl(r_got - ru) <= tolerance)) fail_at(&b, "r", i, j, k, r_got, ru);
            assert_true(window_get(&in_place, i, j, k) == r_got);
        }
        pg_destroy(solver);
        window_free(&u), window_free(&f), window_free(&v), window_free(&res), window_free(&in_place);
        ref_free(&p);
    }
}

static void reductions_are_weighted_sums(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {22};
    for (int q = 0; q < boxes(); q++) {
        box b;
        ref p;
        random_box(&b, &r, backend, precisions[q % 3]);
        ref_create(&p, &b.desc);
        pg_solver *solver = create(&b.desc);
        window x = window_random(&p, U_LAYOUT, &r), y = window_random(&p, U_LAYOUT, &r);
        long double l2 = 0, plain = 0, largest = 0, l1 = 0, sum = 0, dot = 0, dot_size = 0;
        REF_EACH(&p, i, j, k) {
            const long double w = ref_weight(&p, i, j, k), xi = window_get(&x, i, j, k), yi = window_get(&y, i, j, k);
            l2 += w * xi * xi, plain += xi * xi, largest = fmaxl(largest, fabsl(xi)), l1 += w * fabsl(xi);
            sum += w * xi, dot += w * xi * yi, dot_size += w * fabsl(xi * yi);
        }
        const double tolerance = 16 * 0x1p-52 + table_error(&b.desc);   /* f64 also where the data is f32 */
        const struct { const char *name; pg_norm_kind kind; long double expected; } norms[] = {
            {"L2", PG_NORM_L2, sqrtl(l2)}, {"plain L2", PG_NORM_L2_PLAIN, sqrtl(plain)}, {"max", PG_NORM_MAX, largest},
            {"L1", PG_NORM_L1, l1}};
        double got = NAN;
        for (int kind = 0; kind < 4; kind++) {
            OK(pg_norm(solver, x.at, norms[kind].kind, &got), solver);
            const double allowed = norms[kind].kind == PG_NORM_MAX ? 0 : tolerance * (double)norms[kind].expected;
            if (!(fabsl((long double)got - norms[kind].expected) <= allowed))
                fail_msg("%s norm %.17g, not %.17Lg: %s", norms[kind].name, got, norms[kind].expected,
                         describe(&b.desc));
        }
        OK(pg_dot(solver, x.at, NULL, &got), solver);
        if (!(fabsl((long double)got - sum) <= tolerance * (double)l1))
            fail_msg("sum %.17g, not %.17Lg: %s", got, sum, describe(&b.desc));
        OK(pg_dot(solver, x.at, y.at, &got), solver);
        if (!(fabsl((long double)got - dot) <= tolerance * (double)dot_size))
            fail_msg("dot %.17g, not %.17Lg: %s", got, dot, describe(&b.desc));
        OK(pg_dot(solver, x.at, x.at, &got), solver);
        assert_true(fabsl((long double)got - l2) <= tolerance * (double)l2);
        assert_window_unchanged(&x, "x");
        assert_window_unchanged(&y, "y");
        pg_destroy(solver);
        window_free(&x), window_free(&y);
        ref_free(&p);
    }
}

/* Many blocks of a reduction, and a size that is a multiple of nothing. */
static pg_desc large_box(pg_backend backend, unsigned flags)
{
    pg_desc desc = {0};
    desc.n[0] = full_or_small(131, 37), desc.n[1] = full_or_small(67, 23), desc.n[2] = full_or_small(53, 19);
    desc.centring[1] = PG_CELL;
    set_ends(&desc, 0, "NN");
    desc.backend = backend, set_choice(&desc, flags);
    return desc;
}

static void sums_over_many_blocks_are_complete(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int single = 0; single < 2; single++) {
        const pg_desc desc = large_box(backend, single ? PG_F32 : PG_F64);
        ref p;
        ref_create(&p, &desc);
        pg_solver *solver = create(&desc);
        rng r = {5};
        window x = window_random(&p, U_LAYOUT, &r);
        long double l2 = 0, l1 = 0, sum = 0;
        REF_EACH(&p, i, j, k) {
            const long double w = ref_weight(&p, i, j, k), v = window_get(&x, i, j, k);
            l2 += w * v * v, l1 += w * fabsl(v), sum += w * v;
        }
        double got;
        OK(pg_norm(solver, x.at, PG_NORM_L2, &got), solver);
        assert_true(fabsl((long double)got - sqrtl(l2)) <= 1e-14L * sqrtl(l2));
        OK(pg_norm(solver, x.at, PG_NORM_L1, &got), solver);
        assert_true(fabsl((long double)got - l1) <= 1e-14L * l1);
        OK(pg_dot(solver, x.at, NULL, &got), solver);
        assert_true(fabsl((long double)got - sum) <= 1e-14L * l1);
        double again;
        OK(pg_dot(solver, x.at, NULL, &again), solver);
        assert_true(got == again);
        pg_destroy(solver);
        window_free(&x);
        ref_free(&p);
    }
}

static void not_a_number_is_never_lost(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int single = 0; single < 2; single++) {
        const pg_desc desc = large_box(backend, single ? PG_F32 : PG_F64);
        ref p;
        ref_create(&p, &desc);
        pg_solver *solver = create(&desc);
        rng r = {6};
        window x = window_random(&p, U_LAYOUT, &r), y = window_random(&p, U_LAYOUT, &r);
        for (int q = 0; q < full_or_small(20, 8); q++) {
            const int corner = q < 2, i = corner ? q * (p.n[0] - 1) : rng_int(&r, 0, p.n[0] - 1),
                      j = corner ? q * (p.n[1] - 1) : rng_int(&r, 0, p.n[1] - 1),
                      k = corner ? q * (p.n[2] - 1) : rng_int(&r, 0, p.n[2] - 1);
            const long double before = window_get(&x, i, j, k);
            double got = 0;
            window_set(&x, i, j, k, NAN);
            for (int kind = PG_NORM_L2; kind <= PG_NORM_L1; kind++) {
                OK(pg_norm(solver, x.at, (pg_norm_kind)kind, &got), solver);
                assert_true(isnan(got));
            }
            OK(pg_dot(solver, x.at, NULL, &got), solver);
            assert_true(isnan(got));
            OK(pg_dot(solver, y.at, x.at, &got), solver);
            assert_true(isnan(got));
            window_set(&x, i, j, k, -INFINITY);
            OK(pg_norm(solver, x.at, PG_NORM_MAX, &got), solver);
            assert_true(isinf(got) && got > 0);
            window_set(&x, i, j, k, before);
        }
        pg_destroy(solver);
        window_free(&x), window_free(&y);
        ref_free(&p);
    }
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------ */

/* Red is even i+j+k. On an odd periodic axis the last plane, the seam, has neighbours of both colours: it gets colours
   of its own, and its index along that axis does not count. */
static int colour_of(const ref *p, int i, int j, int k)
{
    const int at[3] = {i, j, k};
    int parity = 0, seam = 0;
    for (int axis = 0; axis < 3; axis++) {
        const int n = p->n[axis];
        if (p->axis[axis].periodic && n % 2 == 1 && n > 1 && at[axis] == n - 1) seam += 2 << axis;
        else parity += at[axis];
    }
    return parity % 2 + seam;
}

static void ref_gauss_seidel(const ref *p, const window *u, const window *f, double omega)
{
    for (int colour = 0; colour < 16; colour++)
        REF_EACH(p, i, j, k) {
            if (colour_of(p, i, j, k) != colour) continue;
            const long double step = ref_residual(p, u->at, f->at, i, j, k) / ref_diagonal(p, i, j, k);
            window_set(u, i, j, k, window_get(u, i, j, k) + omega * step);
        }
}

static void ref_jacobi(const ref *p, window *u, const window *f, double omega)
{
    window next = window_poisoned(p, U_LAYOUT);
    REF_EACH(p, i, j, k) {
        const long double step = ref_residual(p, u->at, f->at, i, j, k) / ref_diagonal(p, i, j, k);
        window_set(&next, i, j, k, window_get(u, i, j, k) + omega * step);
    }
    window_free(u);
    *u = next;
}

static void sweeps_are_the_textbook_ones(void **state)
{
    static const struct { unsigned flags; int jacobi; double omega; } sweeps[] = {
        {PG_RBGS, 0, 0}, {PG_SOR, 0, 0}, {PG_JACOBI, 1, 0}, {PG_VCYCLE, 0, 1.1}, {PG_FMG | PG_SMOOTH_JACOBI, 1, 0.8},
        {PG_SOR, 0, 0.7}, {PG_SOR, 0, 1.6}, {PG_JACOBI, 1, 0.9}, {PG_WCYCLE | PG_SMOOTH_RBGS, 0, 1.3},
        {PG_VCYCLE | PG_SMOOTH_JACOBI, 1, 0.5}};
    enum { SWEEPS = sizeof sweeps / sizeof *sweeps };
    const pg_backend backend = backend_or_skip(state);
    rng r = {23};
    for (int q = 0; q < boxes(); q++) {
        box b;
        ref p;
        const int kind = q % SWEEPS, count = rng_int(&r, 0, 4);
        random_box(&b, &r, backend, sweeps[kind].flags | (rng_chance(&r, 2) ? PG_F32 : PG_F64));
        b.desc.omega = sweeps[kind].omega;
        ref_create(&p, &b.desc);
        if (p.singular) {                                    /* sweeps alone do not make a problem solvable */
            p.alpha = b.desc.alpha = 0.5;
            p.singular = 0;
        }
        pg_solver *solver = create(&b.desc);
        pg_desc resolved;
        OK(pg_query_desc(solver, &resolved), solver);
        window u = window_random(&p, U_LAYOUT, &r), f = window_random(&p, F_LAYOUT, &r);
        window expected = window_poisoned(&p, U_LAYOUT);
        REF_EACH(&p, i, j, k) window_set(&expected, i, j, k, window_get(&u, i, j, k));
        for (int sweep = 0; sweep < count; sweep++) {
            if (sweeps[kind].jacobi) ref_jacobi(&p, &expected, &f, resolved.omega);
            else ref_gauss_seidel(&p, &expected, &f, resolved.omega);
        }
        OK(pg_smooth(solver, u.at, f.at, count), solver);
        assert_window_unchanged(&f, "f");
        assert_surroundings_unchanged(&u, "u");
        long double largest = 1;
        REF_EACH(&p, i, j, k) largest = fmaxl(largest, fabsl(window_get(&expected, i, j, k)));
        REF_EACH(&p, i, j, k) {
            const long double got = window_get(&u, i, j, k), want = window_get(&expected, i, j, k);
            if (!(fabsl(got - want) <= count * (32 * ulp(&p) + table_error(&b.desc)) * (double)largest))
                fail_at(&b, "u", i, j, k, got, want);
        }
        pg_destroy(solver);
        window_free(&u), window_free(&f), window_free(&expected);
        ref_free(&p);
    }
}

/* With f = 0 sweeps of any kind multiply an eigenmode of D^-1 A by a polynomial in its eigenvalue. What a coarse grid
   does not see has eigenvalues in [1/2, 2] in 2D, where the best polynomial of degree k is bounded by 1/T_k(5/3), T_k
   Chebyshev's. */
static void chebyshev_sweeps_are_the_best_polynomial_of_their_degree(void **state)
{
    enum { N = 15 };
    const pg_backend backend = backend_or_skip(state);
    static const double f[N * N];
    for (int sweeps = 1; sweeps <= 4; sweeps++) {
        pg_desc desc = {0};
        desc.n[0] = desc.n[1] = N, desc.backend = backend;
        set_choice(&desc, PG_VCYCLE | PG_SMOOTH_CHEBYSHEV), desc.nu_pre = sweeps;
        pg_solver *solver = create(&desc);
        const double bound = 1 / cosh(sweeps * acosh(5.0 / 3));
        double largest = 0;
        for (int a = 1; a <= N; a++)
            for (int b = 1; b <= N; b++) {
                double mode[N * N], u[N * N], across = 0, along = 0;
                for (int q = 0; q < N * N; q++)
                    mode[q] = u[q] = sin(PI * a * (q % N + 1) / (N + 1)) * sin(PI * b * (q / N + 1) / (N + 1));
                OK(pg_smooth(solver, u, f, sweeps), solver);
                for (int q = 0; q < N * N; q++) across += u[q] * mode[q], along += mode[q] * mode[q];
                const double factor = across / along, lambda = 1 - (cos(PI * a / (N + 1)) + cos(PI * b / (N + 1))) / 2;
                for (int q = 0; q < N * N; q++) assert_true(fabs(u[q] - factor * mode[q]) < 1e-13);
                assert_true(fabs(factor) < 1);
                if (lambda >= 0.5 && fabs(factor) > largest) largest = fabs(factor);
            }
        if (!(largest <= bound * (1 + 1e-9))) fail_msg("%d sweeps: %.4f, not %.4f", sweeps, largest, bound);
        pg_destroy(solver);
    }
}

/* ---- Cycles ------------------------------------------------------------------------------------------------------ */

static void a_cycle_is_one_iteration_of_solve(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const unsigned flags[] = {PG_VCYCLE, PG_WCYCLE, PG_VCYCLE | PG_F32, PG_VCYCLE | PG_MIXED, PG_WCYCLE | PG_MIXED,
                              PG_VCYCLE | PG_SMOOTH_JACOBI, PG_VCYCLE | PG_SMOOTH_CHEBYSHEV, PG_VCYCLE | PG_SYMMETRIC};
    rng r = {24};
    for (int q = 0; q < boxes() / 4; q++) {
        box b;
        ref p;
        random_box(&b, &r, backend, flags[q % 8]);
        ref_create(&p, &b.desc);
        if (p.singular) p.alpha = b.desc.alpha = 0.5;
        pg_solver *solver = create(&b.desc);
        window u = window_random(&p, U_LAYOUT, &r), f = window_random(&p, F_LAYOUT, &r);
        window v = window_poisoned(&p, U_LAYOUT), w = window_poisoned(&p, U_LAYOUT);
        memcpy(v.block, u.block, u.elements * u.size), memcpy(w.block, u.block, u.elements * u.size);
        pg_stop stop = {0};
        stop.rtol = PG_NONE, stop.max_iter = flags[q % 8] & PG_MIXED ? 4 : 2;   /* two steps of two inner cycles */
        stop.guess = PG_GUESS_U;
        OK(pg_solve(solver, v.at, f.at, &stop), solver);
        OK(pg_cycle(solver, u.at, f.at, 2), solver);
        OK(pg_cycle(solver, w.at, f.at, 1), solver);
        OK(pg_cycle(solver, w.at, f.at, 1), solver);
        if (memcmp(u.block, v.block, u.elements * u.size)) fail_msg("other bits than pg_solve: %s", describe(&b.desc));
        if (memcmp(u.block, w.block, u.elements * u.size))
            fail_msg("other bits than one by one: %s", describe(&b.desc));
        assert_surroundings_unchanged(&u, "u");
        assert_window_unchanged(&f, "f");
        pg_destroy(solver);
        window_free(&u), window_free(&v), window_free(&w), window_free(&f);
        ref_free(&p);
    }
}

static void a_cycle_reduces_the_residual(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    /* Chebyshev's 2 + 1 sweeps damp in 3D by 1/(T_2(1.4) T_1(1.4)) = 0.25, less than red-black ones do. */
    static const struct { unsigned flags; double factor; } cases[] = {
        {PG_VCYCLE, 0.13}, {PG_WCYCLE, 0.13}, {PG_FMG, 0.13}, {PG_FMG | PG_MIXED, 0.13 * 0.13},
        {PG_VCYCLE | PG_SMOOTH_CHEBYSHEV, 0.4}};
    for (int q = 0; q < 5; q++) {
        pg_desc desc = {0};
        desc.n[0] = 21, desc.n[1] = 16, desc.n[2] = 13, set_choice(&desc, cases[q].flags), desc.backend = backend;
        desc.coarsest = 8;
        desc.centring[1] = PG_CELL, desc.face[PG_Y_LOW].value = 1;
        set_ends(&desc, 2, "NN");
        ref p;
        ref_create(&p, &desc);
        pg_solver *solver = create(&desc);
        rng r = {25};
        window u = window_random(&p, U_LAYOUT, &r), f = window_random(&p, F_LAYOUT, &r);
        window res = window_poisoned(&p, F_LAYOUT);
        double before, after;
        OK(pg_residual(solver, u.at, f.at, res.at), solver);
        OK(pg_norm(solver, res.at, PG_NORM_L2, &before), solver);
        for (int cycle = 0; cycle < 4; cycle++, before = after) {
            OK(pg_cycle(solver, u.at, f.at, 1), solver);
            OK(pg_residual(solver, u.at, f.at, res.at), solver);
            OK(pg_norm(solver, res.at, PG_NORM_L2, &after), solver);
            if (!(after < cases[q].factor * before)) fail_msg("factor %.3f: %s", after / before, describe(&desc));
        }
        pg_destroy(solver);
        window_free(&u), window_free(&f), window_free(&res);
        ref_free(&p);
    }
}

/* B: one symmetric cycle from u = 0. <B x, y> = <x, B y> and <B x, x> > 0, and A likewise. */
static void a_symmetric_cycle_is_self_adjoint_and_positive_in_pg_dot(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const unsigned smoothers[] = {0, PG_SMOOTH_RBGS, PG_SMOOTH_JACOBI, PG_SMOOTH_CHEBYSHEV};
    rng r = {26};
    for (int q = 0; q < boxes() / 4; q++) {
        box b;
        ref p;
        random_box(&b, &r, backend, PG_VCYCLE | PG_SYMMETRIC | smoothers[q % 4]);
        for (int face = 0; face < 6; face++) b.desc.face[face].value = 0, b.desc.face[face].array = NULL;
        memset(b.desc.stride_u, 0, sizeof b.desc.stride_u), memset(b.desc.stride_f, 0, sizeof b.desc.stride_f);
        ref_create(&p, &b.desc);
        if (p.singular) p.alpha = b.desc.alpha = 0.5;
        pg_solver *solver = create(&b.desc);
        window x = window_random(&p, U_LAYOUT, &r), y = window_random(&p, U_LAYOUT, &r);
        window ax = window_poisoned(&p, U_LAYOUT), ay = window_poisoned(&p, U_LAYOUT);
        window bx = window_poisoned(&p, U_LAYOUT), by = window_poisoned(&p, U_LAYOUT);
        REF_EACH(&p, i, j, k) window_set(&bx, i, j, k, 0), window_set(&by, i, j, k, 0);
        OK(pg_apply(solver, x.at, ax.at), solver);
        OK(pg_apply(solver, y.at, ay.at), solver);
        OK(pg_cycle(solver, bx.at, x.at, 1), solver);
        OK(pg_cycle(solver, by.at, y.at, 1), solver);

        const struct { const char *name; const window *px, *py; } operators[] = {{"A", &ax, &ay}, {"B", &bx, &by}};
        for (int which = 0; which < 2; which++) {
            const window *px = operators[which].px, *py = operators[which].py;
            double px_y, x_py, px_x, py_y;
            OK(pg_dot(solver, px->at, y.at, &px_y), solver);
            OK(pg_dot(solver, x.at, py->at, &x_py), solver);
            OK(pg_dot(solver, px->at, x.at, &px_x), solver);
            OK(pg_dot(solver, py->at, y.at, &py_y), solver);
            if (!(px_x > 0 && py_y > 0)) fail_msg("%s is not positive: %s", operators[which].name, describe(&b.desc));
            if (!(fabs(px_y - x_py) <= 1e-12 * sqrt(px_x * py_y)))
                fail_msg("%s is not self-adjoint, %.15g and %.15g: %s", operators[which].name, px_y, x_py,
                         describe(&b.desc));
        }
        pg_destroy(solver);
        window_free(&x), window_free(&y), window_free(&ax), window_free(&ay), window_free(&bx), window_free(&by);
        ref_free(&p);
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static const unsigned all_flags[] = {
    PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_WCYCLE, PG_FMG, PG_MIXED, PG_MIXED | PG_VCYCLE, PG_F32,
    PG_F32 | PG_JACOBI, PG_VCYCLE | PG_SMOOTH_JACOBI, PG_FMG | PG_SMOOTH_CHEBYSHEV, PG_FMG | PG_SYMMETRIC};
enum { ALL_FLAGS = sizeof all_flags / sizeof *all_flags };

static void solve_writes_nothing_but_its_window(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {27};
    for (int q = 0; q < boxes() / 2; q++) {
        box b;
        ref p;
        random_box(&b, &r, backend, all_flags[q % ALL_FLAGS]);
        ref_create(&p, &b.desc);
        pg_solver *solver = create(&b.desc);
        window f = window_random(&p, F_LAYOUT, &r), u = window_poisoned(&p, U_LAYOUT);
        pg_stop stop = {0};
        stop.guess = PG_GUESS_ZERO, stop.max_iter = 3;   /* u is NaN everywhere and must not be read */
        OK(pg_solve(solver, u.at, f.at, &stop), solver);
        assert_surroundings_unchanged(&u, "u");
        assert_window_unchanged(&f, "f");
        REF_EACH(&p, i, j, k)
            if (!isfinite(window_get(&u, i, j, k))) fail_at(&b, "u", i, j, k, window_get(&u, i, j, k), 0);
        stop.guess = PG_GUESS_U;
        OK(pg_solve(solver, u.at, f.at, &stop), solver);
        assert_surroundings_unchanged(&u, "u");
        assert_window_unchanged(&f, "f");
        pg_destroy(solver);
        window_free(&u), window_free(&f);
        ref_free(&p);
    }
}

static void the_contents_of_the_workspace_do_not_matter(void **state)
{
    (void)state;
    rng r = {28};
    for (int q = 0; q < boxes() / 2; q++) {
        box b;
        ref p;
        random_box(&b, &r, PG_CPU, all_flags[q % ALL_FLAGS]);
        ref_create(&p, &b.desc);
        size_t bytes = 0;
        OK(pg_workspace_bytes(&b.desc, &bytes), NULL);
        unsigned char *block = allocate(bytes + 1024), *workspace = block + 256 + (256 - (uintptr_t)block % 256) % 256;
        window f = window_random(&p, F_LAYOUT, &r), first = window_random(&p, U_LAYOUT, &r);
        window u[2] = {window_poisoned(&p, U_LAYOUT), window_poisoned(&p, U_LAYOUT)};
        for (int fill = 0; fill < 2; fill++) {
            memset(block, fill ? 0xff : 0, bytes + 1024);
            memcpy(u[fill].block, first.block, first.elements * first.size);
            b.desc.workspace = workspace, b.desc.workspace_bytes = bytes;
            pg_solver *solver = create(&b.desc);
            pg_stop stop = {0};
            stop.max_iter = 4, stop.guess = PG_GUESS_U;
            OK(pg_solve(solver, u[fill].at, f.at, &stop), solver);
            double norm;
            OK(pg_norm(solver, u[fill].at, PG_NORM_L2, &norm), solver);
            assert_true(isfinite(norm));
            pg_destroy(solver);
            for (const unsigned char *c = block; c < block + bytes + 1024; c++)
                if ((c < workspace || c >= workspace + bytes) && *c != (fill ? 0xff : 0))
                    fail_msg("byte %ld of a workspace of %zu was written: %s", (long)(c - workspace), bytes,
                             describe(&b.desc));
        }
        if (memcmp(u[0].block, u[1].block, first.elements * first.size))
            fail_msg("the workspace was read before it was written: %s", describe(&b.desc));
        free(block);
        window_free(&f), window_free(&first), window_free(&u[0]), window_free(&u[1]);
        ref_free(&p);
    }
}

/* ---- What makes no sense ----------------------------------------------------------------------------------------- */

static void pieces_that_a_method_has_not_are_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 8, POINTS = N * N };
    double u[POINTS] = {0}, f[POINTS] = {1}, before[POINTS];
    u[3] = 2;
    memcpy(before, u, sizeof u);
    const struct { unsigned flags; const char *name; int cycle; } cases[] = {
        {PG_JACOBI, "PG_JACOBI", 1}, {PG_RBGS, "PG_RBGS", 1}, {PG_SOR, "PG_SOR", 1}, {PG_MIXED | PG_FMG, "PG_MIXED", 0},
        {PG_MIXED | PG_VCYCLE, "PG_MIXED", 0}};
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        pg_desc desc = {0};
        desc.n[0] = desc.n[1] = N, set_choice(&desc, cases[q].flags), desc.backend = backend;
        pg_solver *solver = create(&desc);
        const pg_status status = cases[q].cycle ? pg_cycle(solver, u, f, 1) : pg_smooth(solver, u, f, 1);
        assert_int_equal(status, PG_ERROR_UNSUPPORTED);
        if (!strstr(pg_last_error(solver), cases[q].name))
            fail_msg("%s is not named in: %s", cases[q].name, pg_last_error(solver));
        assert_memory_equal(u, before, sizeof u);
        if (cases[q].cycle) OK(pg_smooth(solver, u, f, 1), solver);   /* and what it has, works */
        else OK(pg_cycle(solver, u, f, 1), solver);
        assert_memory_not_equal(u, before, sizeof u);
        memcpy(u, before, sizeof u);
        pg_destroy(solver);
    }
}

static void bad_arguments_of_pieces_are_refused(void **state)
{
    enum { N = 8, POINTS = N * N };
    double u[POINTS] = {0}, f[POINTS] = {1}, before[POINTS], number = 5;
    u[3] = 2;
    memcpy(before, u, sizeof u);
    pg_desc desc = {0};
    desc.n[0] = desc.n[1] = N, desc.backend = backend_or_skip(state), set_choice(&desc, PG_FMG);
    pg_solver *solver = create(&desc);
    assert_int_equal(pg_smooth(solver, u, f, -2), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(solver), "-2"));
    assert_int_equal(pg_cycle(solver, u, f, -3), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(solver), "-3"));
    assert_int_equal(pg_norm(solver, u, (pg_norm_kind)17, &number), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(solver), "17"));
    assert_true(number == 5);
    OK(pg_smooth(solver, u, f, 0), solver);                /* nothing to do is no error */
    OK(pg_cycle(solver, u, f, 0), solver);
    assert_memory_equal(u, before, sizeof u);
    OK(pg_norm(solver, u, PG_NORM_MAX, &number), solver);
    assert_true(number == 2);
    pg_destroy(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(apply_and_residual_are_the_operator),
        ON_BOTH(reductions_are_weighted_sums),
        ON_BOTH(sums_over_many_blocks_are_complete),
        ON_BOTH(not_a_number_is_never_lost),
        ON_BOTH(sweeps_are_the_textbook_ones),
        ON_BOTH(chebyshev_sweeps_are_the_best_polynomial_of_their_degree),
        ON_BOTH(a_cycle_is_one_iteration_of_solve),
        ON_BOTH(a_cycle_reduces_the_residual),
        ON_BOTH(a_symmetric_cycle_is_self_adjoint_and_positive_in_pg_dot),
        ON_BOTH(solve_writes_nothing_but_its_window),
        cmocka_unit_test(the_contents_of_the_workspace_do_not_matter),
        ON_BOTH(pieces_that_a_method_has_not_are_refused_by_name),
        ON_BOTH(bad_arguments_of_pieces_are_refused),
    };
    return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
