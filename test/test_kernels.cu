// The static parts of poisson_gpu.cu: lines, transfers, interpolation, the coarsest solver, and every operation of the
// GPU against the same one of the CPU on random boxes whose sizes divide nothing.
//
// This is also the library that other tests are linked with, which need what is chosen here; main is in test_kernels.c.
#define PGI_PASS_POINTS 0    // passes and tiles on the smallest grids too
#define PGI_MASK_POINTS 0
#define PGI_CACHED_POINTS 700
#define PGI_MODES_WORK test_modes_work
#define PGI_SHARED_POINTS 150    // ranks split small levels too
static long test_modes_work = 20000;    // cycles on small grids, which are solved exactly by default
#ifdef PG_USE_NCCL
int test_may_join = 1;    // 0: NCCL carries all, as where GPUs do not reach each other
#define PGI_JOINS test_may_join
#endif
#include "../poisson_gpu.cu"

#include "common.h"

static const char *const all_ends[] = {"DD", "DN", "ND", "NN", "PP", "DR", "RN", "RR"};
enum { END_KINDS = sizeof all_ends / sizeof *all_ends };

// A random problem: sizes, centrings, kinds, constant face data, and (where coords is set) unequal spacing and a
// metric.
typedef struct problem {
    pg_desc desc;
    double coord[3][200], weight[3][200], conductance[3][200];
} problem;

static void random_problem(problem *p, rng *r, int largest, int tables)
{
    memset(p, 0, sizeof *p);
    p->desc.dim = rng_int(r, 1, 3);
    p->desc.coarsest = 8;    // so that there are levels
    for (int a = 0; a < 3; a++) {
        const int present = a < p->desc.dim;
        p->desc.n[a] = present ? rng_int(r, 1, largest) : 1;
        p->desc.centring[a] = rng_int(r, 0, 1) ? PG_CELL : PG_NODE;
        set_ends(&p->desc, a, all_ends[rng_int(r, 0, END_KINDS - 1)]);
        p->desc.h[a] = rng_uniform(r, 0.5, 2);
        for (int e = 0; e < 2; e++)
            if (p->desc.face[2 * a + e].kind != PG_PERIODIC) p->desc.face[2 * a + e].value = rng_uniform(r, -1, 1);
        const int n = p->desc.n[a];
        double x = 0;
        for (int q = 0; q < 200; q++, x += rng_uniform(r, 0.5, 1.5)) {
            p->coord[a][q] = x;
            p->weight[a][q] = rng_uniform(r, 0.5, 2);
            p->conductance[a][q] = rng_uniform(r, 0.5, 2);
        }
        p->conductance[a][n] = p->conductance[a][0];
        const int nodes_only = p->desc.centring[a] == PG_NODE && n == 1 && p->desc.face[2 * a].kind != PG_PERIODIC &&
                               p->desc.face[2 * a].kind != PG_DIRICHLET && p->desc.face[2 * a + 1].kind != PG_DIRICHLET;
        if (!tables || nodes_only || !rng_int(r, 0, 2)) continue;
        p->desc.coord[a] = p->coord[a];
        p->desc.h[a] = 0;
        if (rng_int(r, 0, 1)) {
            p->desc.weight[a] = p->weight[a];
            p->desc.conductance[a] = p->conductance[a];
        }
    }
    p->desc.alpha = rng_int(r, 0, 1) ? rng_uniform(r, 0, 3) : 0;
}

// The lines of all levels of a problem, as pg_create makes them.
static pgi_hierarchy *lines_of(const pg_desc *desc)
{
    pg_desc resolved;
    int device;
    char warning[160];
    pg_desc cpu = *desc;
    cpu.backend = PG_CPU;
    assert_int_equal(pgi_resolve(&cpu, 0, 1, &resolved, &device, warning), PG_OK);
    pg_desc work;
    pgi_turn(&resolved, &work);
    pgi_hierarchy *h = pgi_hierarchy_create(&work, 1);
    assert_non_null(h);
    return h;
}

static void floor_division_is_exact_for_all_signs(void **)
{
    rng r = {1};
    for (int q = 0; q < 100000; q++) {
        const int64_t b = rng_int(&r, 1, q % 2 ? 7 : 1 << 30), quotient = rng_int(&r, -3, q % 3 ? 9 : 1 << 30);
        const int64_t remainder = rng_int(&r, 0, 2) ? rng_int(&r, 0, (int)b - 1) : rng_int(&r, 0, 1) ? b - 1 : 0;
        int64_t rest;
        assert_true(pgi_floor_divide(quotient * b + remainder, b, 1.0 / (double)b, &rest) == quotient);
        assert_true(rest == remainder);
    }
}

static void coarse_lines_keep_length_weight_and_resistance(void **)
{
    rng r = {2};
    for (int q = 0; q < 300; q++) {
        problem p;
        random_problem(&p, &r, 60, 1);
        pgi_hierarchy *h = lines_of(&p.desc);
        for (int l = 0; l + 1 < h->levels; l++) {
            for (int a = 0; a < 3; a++) {
                const pgi_line *f = h->line[l][a], *c = h->line[l + 1][a];
                double fine = 0, coarse = 0;
                for (int i = 0; i < f->n; i++) fine += pgi_line_w(f, i);
                for (int i = 0; i < c->n; i++) coarse += pgi_line_w(c, i);
                const int ends_are_unknowns =
                    !f->node || f->periodic || (!pgi_is_dirichlet(f, 0) && !pgi_is_dirichlet(f, 1));
                if (ends_are_unknowns) assert_true(fabs(fine - coarse) <= 1e-12 * fine);
                assert_true(pgi_line_edge(c, 0) == pgi_line_edge(f, 0) &&
                            pgi_line_edge(c, c->m) == pgi_line_edge(f, f->m));
                if (c != f) assert_true(c->n < f->n && c->n >= 1);
                assert_int_equal(pgi_line_singular(f), pgi_line_singular(c));
            }
        }
        pgi_hierarchy_free(h);
    }
}

// Transfers of one axis, with their tables in host memory.
typedef struct transfers {
    pgi_transfer<double> t;
    pgi_axis<double> fine, coarse;
    char *tables;
} transfers;

static void make_transfers(transfers *x, const pgi_line *f, const pgi_line *c, int adjoint)
{
    pgi_line *const fine[3] = {(pgi_line *)f, (pgi_line *)f, (pgi_line *)f}, *const coarse[3] = {(pgi_line *)c,
                                                                                                 (pgi_line *)c,
                                                                                                 (pgi_line *)c};
    pgi_box<double> bf, bc;
    pgi_arena measure = {NULL, NULL, 0};
    pgi_layout_transfer(&measure, &x->t, f, c, adjoint, 1, 0);
    pgi_layout_box(&measure, &bf, fine, 1);
    pgi_layout_box(&measure, &bc, coarse, 1);
    x->tables = (char *)calloc(1, measure.used + PGI_ALIGN);
    pgi_arena arena = {x->tables, x->tables, 0};
    pgi_layout_transfer(&arena, &x->t, f, c, adjoint, 1, 0);
    pgi_layout_box(&arena, &bf, fine, 1);
    pgi_layout_box(&arena, &bc, coarse, 1);
    x->fine = bf.axis[0];
    x->coarse = bc.axis[0];
}

static void restriction_is_the_weighted_adjoint_or_the_average(void **)
{
    rng r = {3};
    for (int q = 0; q < 600; q++) {
        problem p;
        random_problem(&p, &r, 40, q % 2);
        pgi_hierarchy *h = lines_of(&p.desc);
        const int a = rng_int(&r, 0, p.desc.dim - 1);
        for (int l = 0; l + 1 < h->levels; l++) {
            const pgi_line *f = h->line[l][a], *c = h->line[l + 1][a];
            if (f == c) continue;
            for (int adjoint = 0; adjoint < 2; adjoint++) {
                transfers x;
                make_transfers(&x, f, c, adjoint);
                double *dense = (double *)calloc((size_t)f->n * (size_t)c->n, sizeof(double));
                for (int i = 0; i < f->n; i++) {
                    const pgi_pair<double> pair = pgi_prolongation(x.t, i);
                    assert_true(pair.j0 >= 0 && pair.j0 < c->n && pair.j1 >= 0 && pair.j1 < c->n);
                    assert_true(pair.w0 >= -1e-14 && pair.w1 >= -1e-14 && pair.w0 + pair.w1 <= 1 + 1e-14);
                    if (pgi_line_singular(f)) assert_true(fabs(pair.w0 + pair.w1 - 1) <= 1e-14);
                    dense[pair.j0 * f->n + i] += pair.w0;
                    dense[pair.j1 * f->n + i] += pair.w1;
                }
                for (int J = 0; J < c->n; J++) {
                    pgi_window<double> w;
                    pgi_restriction(x.t, x.fine, x.coarse, J, 0, &w);
                    assert_true(w.count >= 1 && w.count <= PGI_WINDOW && w.first >= 0 && w.first < f->n);
                    double sum = 0, *row = (double *)calloc((size_t)f->n, sizeof(double));
                    for (int e = 0; e < w.count; e++) row[(w.first + e) % f->n] += w.w[e], sum += w.w[e];
                    if (x.t.adjoint)
                        for (int i = 0; i < f->n; i++)
                            assert_true(fabs(row[i] - dense[J * f->n + i] * pgi_line_w(f, i) / pgi_line_w(c, J)) <=
                                        1e-13 * (1 + fabs(row[i])));
                    else
                        assert_true(fabs(sum - 1) <= 1e-13);
                    pgi_restriction(x.t, x.fine, x.coarse, J, 1, &w);
                    sum = 0;
                    for (int e = 0; e < w.count; e++) sum += w.w[e];
                    assert_true(fabs(sum - 1) <= 1e-13);
                    free(row);
                }
                free(dense);
                free(x.tables);
            }
        }
        pgi_hierarchy_free(h);
    }
}

// With enough coarse points a cubic that satisfies the face conditions is reproduced; without face conditions any cubic
// is.
static void interpolation_reproduces_cubics(void **)
{
    rng r = {4};
    for (int q = 0; q < 600; q++) {
        problem p;
        random_problem(&p, &r, 90, q % 2);
        pgi_hierarchy *h = lines_of(&p.desc);
        const int a = rng_int(&r, 0, p.desc.dim - 1);
        const pgi_line *f = h->line[0][a], *c = h->levels > 1 ? h->line[1][a] : f;
        if (f != c && c->n >= 4 && !f->periodic) {
            transfers x;
            make_transfers(&x, f, c, 0);
            const double length = pgi_line_edge(f, f->m) - pgi_line_edge(f, 0),
                         k[4] = {rng_uniform(&r, -1, 1), rng_uniform(&r, -1, 1), rng_uniform(&r, -1, 1),
                                 rng_uniform(&r, -1, 1)};
            const auto value = [&](double y) {
                return k[0] + y / length * (k[1] + y / length * (k[2] + y / length * k[3]));
            };
            const auto slope = [&](double y) {
                return (k[1] + y / length * (2 * k[2] + 3 * k[3] * y / length)) / length;
            };
            for (int faces = 0; faces < 2; faces++) {
                for (int i = 0; i < f->n; i++) {
                    pgi_cubic<double> w;
                    pgi_cubic_of(x.t, i, faces, &w);
                    double sum = 0;
                    for (int e = 0; e < 4; e++) {
                        const int end = w.j[e] == -2;
                        const double at = end ? pgi_line_edge(c, c->m) : pgi_line_edge(c, 0);
                        const double g = c->end_a[end] * value(at) + c->end_b[end] * slope(at) * (end ? 1 : -1);
                        if (w.w[e] != 0 && !faces) assert_true(w.j[e] >= 0);
                        sum += w.w[e] * (w.j[e] >= 0 ? value(pgi_line_x(c, w.j[e])) : g);
                    }
                    assert_true(fabs(sum - value(pgi_line_x(f, i))) <= 1e-11);
                }
            }
            free(x.tables);
        }
        pgi_hierarchy_free(h);
    }
}

static void eigenvectors_diagonalise_lines(void **)
{
    rng r = {5};
    for (int q = 0; q < 400; q++) {
        problem p;
        random_problem(&p, &r, q % 20 == 0 ? (int)PGI_MODES : q % 4 == 0 ? 40 : 8, 1);
        pgi_hierarchy *h = lines_of(&p.desc);
        for (int a = 0; a < 3; a++) {
            const pgi_line *l = h->line[0][a];
            const int n = l->n;
            double *lambda = (double *)allocate((size_t)n * 8), top = 1e-300, largest = 0;
            double *work = (double *)allocate(pgi_eigen_work(n) * 8);
            const double *mode = pgi_line_eigen(l, 1, lambda, work);
            for (int e = 0; e < n; e++) top = fmax(top, fabs(lambda[e]));
            for (int i = 0; i < n; i++) largest = fmax(largest, 1 / sqrt(pgi_line_w(l, i)));
            int zeros = 0;
            for (int e = 0; e < n; e++) {
                zeros += lambda[e] == 0;
                for (int i = 0; i < n; i++) {
                    const int below = i > 0 ? i - 1 : n - 1, above = i < n - 1 ? i + 1 : 0;
                    double row[4], product = 0;
                    pgi_line_row(l, i, row);
                    const double here = mode[e * n + i] / sqrt(pgi_line_w(l, i));
                    const double av = row[0] * mode[e * n + below] / sqrt(pgi_line_w(l, below)) +
                                      row[1] * mode[e * n + above] / sqrt(pgi_line_w(l, above)) + row[3] * here;
                    assert_true(fabs(av - lambda[e] * here) <= 1e-13 * n * top * largest);
                    for (int k = 0; k < n; k++) product += mode[e * n + k] * mode[i * n + k];
                    assert_true(fabs(product - (i == e)) <= 1e-13 * n);
                }
            }
            if (pgi_line_singular(l)) assert_true(zeros >= 1);
            free(lambda);
            free(work);
        }
        pgi_hierarchy_free(h);
    }
}

// The cells of a line grow by powers: eigenvalues range over up to 24 decades, and the small ones are right.
static void small_eigenvalues_of_stretched_lines_are_right(void **)
{
    for (int q = 0; q < 5; q++) {
        enum { N = 40 };
        double coord[N + 1];
        pg_desc d = {};
        d.n[0] = N;
        d.centring[0] = PG_CELL;
        coord[0] = 0;
        for (int i = 1; i <= N; i++) coord[i] = coord[i - 1] + pow(10, 0.075 * (q + 1) * i - 0.075 * (q + 1) * N);
        d.coord[0] = coord;
        pgi_hierarchy *h = lines_of(&d);
        double lambda[N], *work = (double *)allocate(pgi_eigen_work(N) * 8), smallest = DBL_MAX;
        pgi_line_eigen(h->line[0][0], 1, lambda, work);
        for (int e = 0; e < N; e++) smallest = fmin(smallest, lambda[e]);
        const double wanted = pgi_line_eigenvalue(h->line[0][0], 0);
        if (!(fabs(smallest - wanted) <= 1e-8 * wanted)) fail_msg("%d: %.15g, not %.15g", q, smallest, wanted);
        free(work);
        pgi_hierarchy_free(h);
    }
}

// Long uniform lines have a formula: Sturm's sequence counts one eigenvalue more just above what it gives.
static void eigenvalues_of_long_uniform_lines_are_right(void **)
{
    static const char *const ends[] = {"DD", "NN", "RR", "DN", "ND", "DR", "RN"};
    for (int q = 0; q < 7 * 2 * 4; q++) {
        const int sizes[] = {65, 66, 200, 3001};
        pg_desc d = {};
        d.n[0] = sizes[q % 4];
        d.centring[0] = q / 4 % 2 ? PG_CELL : PG_NODE;
        d.h[0] = 0.37;
        set_ends(&d, 0, ends[q / 8]);
        pgi_hierarchy *h = lines_of(&d);
        const pgi_line *l = h->line[0][0];
        for (int which = pgi_line_singular(l); which < 2; which++) {
            const double value = pgi_line_eigenvalue(l, which);
            assert_int_equal(pgi_line_count_below(l, value * (1 - 1e-8)), which);
            assert_int_equal(pgi_line_count_below(l, value * (1 + 1e-8)), which + 1);
        }
        pgi_hierarchy_free(h);
    }
}

static void clauses_of_a_message_are_whole_or_left_out(void **)
{
    char text[16] = "";
    pgi_add_text(text, sizeof text, "%s", "converged");
    pgi_add_text(text, sizeof text, "; %s", "alone");    // a byte too long
    assert_string_equal(text, "converged");
    pgi_add_text(text, sizeof text, "; %d", 123);
    pgi_add_text(text, sizeof text, "; ");    // that leaves no room
    assert_string_equal(text, "converged; 123");
    text[0] = 0;
    pgi_add_text(text, sizeof text, "a sentence by itself");
    assert_string_equal(text, "a sentence by i");
}

// What a line that is evenly spaced has in tables, where it has a metric, is what it works out without.
static void uniform_lines_need_no_tables(void **)
{
    static const char *const ends[] = {"DD", "NN", "RR", "DN", "PP"};
    const double ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int q = 0; q < 5 * 2 * 9; q++) {
        pg_desc d = {};
        d.n[0] = 1 + q % 9;
        d.n[1] = d.n[2] = 1;
        d.centring[0] = q / 9 % 2 ? PG_CELL : PG_NODE;
        d.h[0] = 0.37;
        set_ends(&d, 0, ends[q / 18]);
        pgi_line even, own;
        assert_true(pgi_line_create(&even, &d, 0, 0));
        d.weight[0] = ones;
        assert_true(pgi_line_create(&own, &d, 0, 0));
        assert_true(!even.own.w && own.own.w);
        for (int i = 0; i <= even.m; i++) assert_true(pgi_line_edge(&even, i) == own.own.edge[i]);
        for (int i = 0; i < even.n; i++)
            assert_true(pgi_line_x(&even, i) == own.own.x[i] && pgi_line_w(&even, i) == own.own.w[i]);
        for (int i = 0; i <= even.n; i++) {
            assert_true(pgi_line_bound(&even, i) == own.own.bound[i] && pgi_line_gap(&even, i) == own.own.gap[i]);
            assert_true(pgi_line_k(&even, i) == own.own.k[i]);
        }
        assert_true(fabs(pgi_line_volume(&even) - pgi_line_volume(&own)) <= 1e-15 * pgi_line_volume(&own));
        assert_true(pgi_line_equal(&even, &own));
        pgi_line_free(&own);
    }
}

static void windows_overlap_exactly_when_they_share_an_element(void **)
{
    rng r = {6};
    for (int q = 0; q < 20000; q++) {
        pg_desc d = {};
        for (int a = 0; a < 3; a++) d.n[a] = d.hi[a] = rng_int(&r, 1, 4);
        d.batch = rng_int(&r, 0, 1) ? 1 : rng_int(&r, 2, 3);
        // Rows, planes and problems, nested in a random order
        static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        const int *order = orders[rng_int(&r, 0, 5)];
        const int64_t count[3] = {d.n[1], d.n[2], d.batch};
        int64_t s[3], span = d.n[0];
        for (int a = 0; a < 3; a++) {
            s[order[a]] = span + rng_int(&r, 0, a ? 20 : 5);
            span += (count[order[a]] - 1) * s[order[a]];
        }
        const int64_t distance = rng_int(&r, -200, 200);
        int shared = 0;
        for (int p = -2; p <= 2; p++)
            for (int k = -3; k <= 3; k++)
                for (int j = -3; j <= 3; j++)
                    for (int i = -3; i <= 3; i++)
                        shared |= abs(i) < d.n[0] && abs(j) < d.n[1] && abs(k) < d.n[2] && abs(p) < d.batch &&
                                  i + j * s[0] + k * s[1] + p * s[2] == distance;
        double *base = (double *)(uintptr_t)0x100000;
        const int found = pgi_overlap(&d, base, s, (double *)((intptr_t)base + distance * 8), s, 8);
        if (shared != found)
            fail_msg("%d %d %d batch %d strides %ld %ld %ld distance %ld: %d, not %d", d.n[0], d.n[1], d.n[2], d.batch,
                     (long)s[0], (long)s[1], (long)s[2], (long)distance, found, shared);
    }
}

// A handle with its own random data in u, f and scratch of every level, on one back end.
static pg_solver *solver_with_data(const pg_desc *desc, pg_backend backend, int stop_check)
{
    pg_desc d = *desc;
    d.backend = backend;
    pg_solver *s = create(&d);
    pg_stop stop;
    assert_int_equal(pgi_check_stop(s, NULL, &stop), PG_OK);
    stop.check = stop_check;
    return s;
}

// Copies a grid of a level to the host, packed, or from there; what lies between rows is NaN then.
static void copy_grid(pg_solver *s, const pgi_level *l, pgi_grid g, size_t element, void *host, int from_host)
{
    const size_t bytes = (size_t)(g.sk * l->n[2]) * element, row = (size_t)l->n[0] * element;
    char *const rows = (char *)allocate(bytes);
    memset(rows, 255, bytes);
    const auto copy = [&](void *to, const void *from) {
#if PGI_GPU
        if (s->cuda) {
            cudaDeviceSynchronize();
            assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), cudaSuccess);
            return;
        }
#endif
        (void)s;
        memcpy(to, from, bytes);
    };
    if (!from_host) copy(rows, g.base);
    for (int64_t q = 0; q < (int64_t)l->n[1] * l->n[2]; q++) {
        char *const at = rows + (size_t)(q % l->n[1] * g.sj + q / l->n[1] * g.sk) * element, *const packed =
                                                                                                 (char *)host +
                                                                                                 (size_t)q * row;
        memcpy(from_host ? at : packed, from_host ? packed : at, row);
    }
    if (from_host) copy(g.base, rows);
    free(rows);
}
static void grid_to_host(pg_solver *s, const pgi_level *l, pgi_grid g, size_t element, void *host)
{
    copy_grid(s, l, g, element, host, 0);
}
static void grid_from_host(pg_solver *s, const pgi_level *l, pgi_grid g, size_t element, const void *host)
{
    copy_grid(s, l, g, element, (void *)host, 1);
}

// Every operation that works on level 1 and its transfers to level 2, on both back ends: equal to round-off. Level 1 is
// in the workspace of either, so the operations can be called directly.
// state.seek = 1
static void ask_for_the_floor(pg_solver *s)
{
    const int yes = 1;
#if PGI_GPU
    if (s->cuda) {
        assert_int_equal(cudaMemcpy(&s->state->seek, &yes, sizeof yes, cudaMemcpyHostToDevice), cudaSuccess);
        return;
    }
#endif
    s->state->seek = yes;
}

template <class T> static void compare_operations(const pg_desc *desc, rng *r)
{
    pg_solver *s[2] = {solver_with_data(desc, PG_CPU, 1), solver_with_data(desc, PG_CUDA, 1)};
    const double limit = sizeof(T) == 4 ? 2e-5 : 2e-13;
    const int64_t most = s[0]->level[1].points;
    T *u = (T *)allocate((size_t)most * sizeof(T)), *f = (T *)allocate((size_t)most * sizeof(T));
    T *out[2] = {(T *)allocate((size_t)most * sizeof(T)), (T *)allocate((size_t)most * sizeof(T))};
    for (int64_t q = 0; q < most; q++) u[q] = (T)rng_uniform(r, -1, 1), f[q] = (T)rng_uniform(r, -1, 1);
    enum {
        JACOBI,
        RED_BLACK,
        BLACK_RED,
        RESIDUAL,
        APPLY,
        REDUCE_RESIDUAL,
        REDUCE_RHS,
        MAGNITUDE,
        RESTRICT,
        AVERAGE,
        PROLONG,
        INTERPOLATE,
        INTERPOLATE_ADD,
        COARSEST,
        STEPS
    };
    for (int step = 0; step < STEPS; step++) {
        double sums[2][4] = {{0}};
        int64_t count = most;
        for (int b = 0; b < 2; b++) {
            pg_solver *x = s[b];
            const pgi_level *fine = &x->level[1], *coarse = fine + 1, *last = &x->level[x->levels - 1];
            if (step < COARSEST && x->levels < 3) continue;
            double dummy[2] = {0, 0};
            assert_int_equal(pgi_enter_call(x, dummy, dummy, 0, 0), PG_OK);
            pgi_enter_problem(x, dummy, dummy, NULL, 0);
            const pgi_rhs full = pgi_level_rhs(fine, 1);
            const pgi_grid none = pgi_no_grid();
            const pgi_omega uneven = {1.2, 1.1};
            grid_from_host(x, fine, fine->u, sizeof(T), u);
            grid_from_host(x, fine, fine->f, sizeof(T), f);
            if (fine->t.base) grid_from_host(x, fine, fine->t, sizeof(T), f);
            pgi_grid result = fine->u;
            const pgi_level *where = fine;
            switch (step) {
            case JACOBI: x->ops->jacobi(x, fine, fine->u, full, 0.8, result = fine->t); break;
            case RED_BLACK: x->ops->red_black(x, fine, fine->u, full, uneven, 0); break;
            case BLACK_RED: x->ops->red_black(x, fine, fine->u, full, uneven, 1); break;
            case RESIDUAL: x->ops->residual(x, fine, fine->u, full, result = fine->t); break;
            case APPLY: x->ops->apply(x, fine, fine->u, result = fine->t); break;
            case REDUCE_RESIDUAL: x->ops->reduce(x, fine, PGI_RESIDUAL, PGI_SELF, fine->u, none, full, 0); break;
            case REDUCE_RHS: x->ops->reduce(x, fine, PGI_RHS, PGI_ONE, none, none, full, 0); break;
            case MAGNITUDE: ask_for_the_floor(x), x->ops->magnitude(x, fine, fine->u); break;
            case RESTRICT:
            case AVERAGE:
                x->ops->restrict_full(x, fine, fine->t, coarse, coarse->f, step == AVERAGE), result = coarse->f,
                                                                                             where = coarse;
                break;
            case PROLONG:
            case INTERPOLATE:
            case INTERPOLATE_ADD:
                grid_from_host(x, coarse, coarse->u, sizeof(T), f);
                if (step == PROLONG)
                    x->ops->prolong_add(x, fine, fine->u, coarse, coarse->u);
                else
                    x->ops->interpolate(x, fine, fine->u, coarse, coarse->u, 1, step == INTERPOLATE_ADD);
                break;
            default:
                grid_from_host(x, last, last->u, sizeof(T), u);
                grid_from_host(x, last, last->f, sizeof(T), f);
                x->ops->solve_coarsest(x, last, last->u, pgi_rhs_of(last->f), 1);
                result = last->u;
                where = last;
            }
            assert_int_equal(x->failed, PG_OK);
            count = where->points;
            grid_to_host(x, where, result, sizeof(T), out[b]);
#if PGI_GPU
            if (x->cuda)
                pgi_cuda_read_state(x, x->state);
            else
#endif
                x->host = *x->state;
            const double *const of = step == MAGNITUDE ? x->host.magnitude : x->host.sums;
            for (int e = 0; e < 4; e++)    // of these there is but the norm that is asked for
                sums[b][e] = step == REDUCE_RHS ? of[e] : pgi_norm_of(of, x->host.stop.norm);
        }
        if (step < COARSEST && s[0]->levels < 3) continue;
        double scale = 1e-300, error = 0;
        for (int64_t q = 0; q < count; q++) {
            scale = fmax(scale, fabs((double)out[0][q]));
            error = pgi_max_nan(error, fabs((double)out[0][q] - (double)out[1][q]));
        }
        if (!(error <= limit * scale)) fail_msg("step %d differs by %g of %g: %s", step, error, scale, describe(desc));
        if (step != REDUCE_RESIDUAL && step != REDUCE_RHS && step != MAGNITUDE) continue;
        for (int q = 0; q < 4; q++)
            if (!(fabs(sums[0][q] - sums[1][q]) <= limit * 10 * fabs(sums[0][step == REDUCE_RHS && q == 0 ? 2 : q])))
                fail_msg("step %d sum %d: %.17g, %.17g: %s", step, q, sums[0][q], sums[1][q], describe(desc));
    }
    pg_destroy(s[0]);
    pg_destroy(s[1]);
    free(u);
    free(f);
    free(out[0]);
    free(out[1]);
}

static void every_operation_on_the_gpu_equals_the_one_on_the_cpu(void **)
{
    if (!cuda_is_usable()) skip();
    rng r = {7};
    for (int q = 0; q < full_or_small(300, 60); q++) {
        problem p;
        const int coarsest = q % 3 ? 8 : rng_int(&r, 9, 30);
        do random_problem(&p, &r, p.desc.dim == 1 ? 150 : q % 10 ? 45 : 80, 1);
        while (p.desc.n[0] <= coarsest && p.desc.n[1] <= coarsest && p.desc.n[2] <= coarsest);
        p.desc.coarsest = coarsest;
        set_choice(&p.desc, PG_FMG | PG_SMOOTH_RBGS | (q % 2 ? PG_F32 : PG_F64) | (q % 3 == 0 ? PG_SYMMETRIC : 0));
        if (q % 2)
            compare_operations<float>(&p.desc, &r);
        else
            compare_operations<double>(&p.desc, &r);
    }
}

// What passes leave in u, and nothing else written, against the plain operations. run(solver, level, right-hand side,
// passes or not) works on grids of random data, pitch and alignment, and returns where u is; limit: of the difference.
#if PGI_GPU
template <class T, class RUN> static void compare_passes(const pg_desc *desc, rng *r, double limit, RUN run)
{
    enum { U, OTHER, F, GRIDS };
    pg_solver *s = solver_with_data(desc, PG_CUDA, 1);
    const int *n = s->level[0].n;
    const size_t points = (size_t)s->level[0].points;
    const double mean = rng_int(r, 0, 1) ? 0.25 : 0;
    double dummy[2] = {0, 0};
    pgi_grid grid[GRIDS];
    size_t count[GRIDS];
    T *host[GRIDS], *device[GRIDS];
    for (int g = 0; g < GRIDS; g++) {
        const int aligned = rng_int(r, 0, 1);
        grid[g].indirect = 0;
        grid[g].sj = aligned ? (n[0] + 3) / 4 * 4 : n[0] + rng_int(r, 0, 5);
        grid[g].sk = grid[g].sj * n[1] + (aligned ? 0 : rng_int(r, 0, 5));
        count[g] = (size_t)(grid[g].sk * n[2]) + 8;
        host[g] = (T *)allocate(count[g] * sizeof(T));
        for (size_t q = 0; q < count[g]; q++) host[g][q] = (T)rng_uniform(r, -1, 1);
        assert_int_equal(cudaMalloc((void **)&device[g], count[g] * sizeof(T)), cudaSuccess);
        grid[g].base = device[g] + (aligned ? 0 : rng_int(r, 0, 3));
    }
    pgi_level level = s->level[0];
    level.u = grid[U];
    level.t = grid[OTHER];
    const pgi_rhs rhs = {grid[F], rng_int(r, 0, 2) ? s->level[0].faces : NULL};
    T *result[2] = {(T *)allocate(points * sizeof(T)), (T *)allocate(points * sizeof(T))};
    for (int passes = 0; passes < 2; passes++) {
        assert_int_equal(pgi_enter_call(s, dummy, dummy, 0, 0), PG_OK);
        pgi_enter_problem(s, dummy, dummy, NULL, 0);
        cudaDeviceSynchronize();
        assert_int_equal(cudaMemcpy(&s->state->mean, &mean, sizeof mean, cudaMemcpyHostToDevice), cudaSuccess);
        for (int g = 0; g < GRIDS; g++)
            assert_int_equal(cudaMemcpy(device[g], host[g], count[g] * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
        const pgi_grid end = run(s, &level, rhs, passes);
        assert_int_equal(s->failed, PG_OK);
        cudaDeviceSynchronize();
        for (int g = U; g <= OTHER; g++) {
            T *const now = (T *)allocate(count[g] * sizeof(T));
            assert_int_equal(cudaMemcpy(now, device[g], count[g] * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
            const int64_t shift = (T *)grid[g].base - device[g];
            for (int64_t q = 0; q < (int64_t)count[g]; q++) {
                const int64_t p = q - shift, k = p / grid[g].sk, j = p % grid[g].sk / grid[g].sj,
                              i = p % grid[g].sk % grid[g].sj;
                const int inside = p >= 0 && k < n[2] && j < n[1] && i < n[0];
                if (inside && end.base == grid[g].base) result[passes][i + n[0] * (j + n[1] * k)] = now[q];
                if (!inside && now[q] != host[g][q]) fail_msg("something is written beside u: %s", describe(desc));
            }
            free(now);
        }
    }
    double scale = 1e-300, error = 0;
    for (size_t q = 0; q < points; q++) {
        scale = fmax(scale, fabs((double)result[0][q]));
        error = pgi_max_nan(error, fabs((double)result[0][q] - (double)result[1][q]));
    }
    if (rhs.faces) limit = fmax(limit, sizeof(T) == 4 ? 1e-5 : 1e-13);    // boundary data are added in another order
    if (!(error <= limit * scale)) fail_msg("u differs by %g of %g: %s", error, scale, describe(desc));
    for (int g = 0; g < GRIDS; g++) {
        cudaFree(device[g]);
        free(host[g]);
    }
    free(result[0]);
    free(result[1]);
    pg_destroy(s);
}

// Jacobi sweeps in passes give the bits of single sweeps.
template <class T> static void compare_jacobi_passes(const pg_desc *desc, rng *r)
{
    const int sweeps = rng_int(r, 1, 9);
    double weight[3];
    for (int q = 0; q < 3; q++) weight[q] = rng_uniform(r, 0.3, 0.9);
    compare_passes<T>(desc, r, 0, [&](pg_solver *s, const pgi_level *l, pgi_rhs rhs, int passes) {
        return (passes ? s->ops->jacobi_sweeps : pgi_jacobi_one_by_one)(s, l, l->u, rhs, weight, 3, sweeps);
    });
}

// The norm that came with a restriction, which is in the state, against a reduction of its own.
template <class T> static void compare_norm(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, int kind)
{
    double norm[2];
    for (int q = 0; q < 2; q++) {
        double sums[4];
        if (q > 0) s->ops->reduce(s, l, PGI_RESIDUAL, PGI_SELF, u, pgi_no_grid(), rhs, 0);
        cudaDeviceSynchronize();
        assert_int_equal(cudaMemcpy(sums, s->state->sums, sizeof sums, cudaMemcpyDeviceToHost), cudaSuccess);
        norm[q] = pgi_norm_of(sums, kind);
    }
    if (!(fabs(norm[0] - norm[1]) <= (sizeof(T) == 4 ? 1e-4 : 1e-11) * norm[1]))
        fail_msg("norm %d is %.17g with a restriction, %.17g without: %s", kind, norm[0], norm[1], describe(&s->desc));
}

static int know_clusters, residuals_of_passes, residuals_of_clusters;

// Red-black sweeps from every guess, then the restriction of the residual: by passes, or by what smaller levels take.
template <class T> static void compare_red_black_passes(const pg_desc *desc, rng *r)
{
    const int all_in_one = rng_int(r, 0, 1), sweeps = all_in_one ? 2 : rng_int(r, 0, 3),
              reversed = all_in_one ? 0 : rng_int(r, 0, 1),
              head = rng_int(r, PGI_FROM_U, all_in_one ? PGI_FROM_ZERO : PGI_CORRECTED);
    const double weight = rng_uniform(r, 0.8, 1.4), limit = sizeof(T) == 4 ? 1e-5 : 1e-13;
    const pgi_omega omega = {weight, all_in_one || rng_int(r, 0, 1) ? weight : rng_uniform(r, 0.8, 1.4)};
    const int smaller = !all_in_one && rng_int(r, 0, 1),
              with_norm = !(all_in_one && head == PGI_FROM_ZERO) && rng_int(r, 0, 1);
    const pg_norm_kind kind = (pg_norm_kind)rng_int(r, 0, 3);
    T *data[2] = {NULL, NULL};
    compare_passes<T>(desc, r, limit, [&](pg_solver *s, const pgi_level *level, pgi_rhs rhs, int passes) {
        pgi_level *const coarse = s->level + 1, own = *level, *const l = &own;
        if (smaller) l->points = -1;
        if (s->levels < 2) return l->u;
        const int clusters = all_in_one && s->clusters && l->n[1] > 48;    // of blocks, though one might do
        if (clusters) s->together_in[1] = 0;
        if (smaller || clusters) pgi_plan_level<T>(s, l);
        know_clusters = s->clusters;
        const size_t points = (size_t)(coarse->u.sk * coarse->n[2]);    // with what lies between rows
        const auto inside = [&](size_t q) { return (int64_t)q % coarse->u.sj < coarse->n[0]; };
        if (!data[0]) {
            data[0] = (T *)allocate(points * sizeof(T)), data[1] = (T *)allocate(points * sizeof(T));
            for (size_t q = 0; q < points; q++) data[0][q] = (T)rng_uniform(r, -1, 1);
        }
        assert_int_equal(cudaMemcpy(coarse->u.base, data[0], points * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
        cudaMemset(coarse->f.base, 255, points * sizeof(T));
        assert_int_equal(cudaMemcpy(&s->state->stop.norm, &kind, sizeof kind, cudaMemcpyHostToDevice), cudaSuccess);
        pgi_wanted residual = {with_norm, 0};
        const pgi_grid u = (passes ? s->ops->relax : pgi_relax_in_place)(s, l, l->u, rhs, omega, reversed, sweeps, head,
                                                                         coarse, coarse->u, &residual);
        const pgi_grid other = pgi_other_grid(l, u);
        if (passes) {
            residuals_of_passes += residual.done;
            residuals_of_clusters += residual.done && clusters && pgi_transfers_of(l, T()).axis[1].regular == 3;
            if (!residual.done) s->ops->restrict_residual(s, l, u, rhs, coarse, with_norm);
            if (with_norm) compare_norm<T>(s, l, u, rhs, kind);
        } else {
            s->ops->residual(s, l, u, rhs, other);
            s->ops->restrict_full(s, l, other, coarse, coarse->f, 0);
        }
        cudaDeviceSynchronize();
        T *const now = (T *)allocate(points * sizeof(T));
        assert_int_equal(cudaMemcpy(now, coarse->f.base, points * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        if (passes) {
            double scale = 1, error = 0;    // the right-hand side's, which a good iterate nearly cancels
            for (size_t q = 0; q < points; q++) {
                if (!inside(q)) continue;
                scale = fmax(scale, fabs((double)data[1][q]));
                error = pgi_max_nan(error, fabs((double)now[q] - (double)data[1][q]));
            }
            if (!(error <= 10 * limit * scale))
                fail_msg("the coarse right-hand side differs by %g of %g: %s", error, scale, describe(desc));
        } else {
            memcpy(data[1], now, points * sizeof(T));
        }
        free(now);
        return u;
    });
    free(data[0]);
    free(data[1]);
}
#endif

#if PGI_GPU
static void compare_random_passes(unsigned method)
{
    static double face[90 * 90];
    static float face_single[90 * 90];
    rng r = {12};
    for (int q = 0; q < 90 * 90; q++) face_single[q] = (float)(face[q] = rng_uniform(&r, -1, 1));
    for (int q = 0; q < full_or_small(400, 80); q++) {
        problem p;
        do random_problem(&p, &r, q % 8 ? 40 : 80, 1);
        while (p.desc.dim == 1);
        if (p.desc.dim == 3 && q % 5 == 1) {    // one plane, beside itself
            p.desc.n[2] = 1;
            set_ends(&p.desc, 2, "PP");
            p.desc.coord[2] = p.desc.weight[2] = p.desc.conductance[2] = NULL;
            p.desc.h[2] = 1;
        }
        if (q % 2) {    // every coarse point has a fine one, or two, to itself
            if (q % 4 == 1 && p.desc.dim == 3) p.desc.centring[1] = PG_NODE;
            for (int a = 0; a < p.desc.dim; a++) {
                const int node = p.desc.centring[a] == PG_NODE;
                p.desc.n[a] = (p.desc.n[a] + 4) / 2 * 2 + node + (q % 4 == 1 && p.desc.dim == 3 && a < 2 ? 40 : 0);
                if (node) set_ends(&p.desc, a, "DD");
                p.desc.coord[a] = p.desc.weight[a] = p.desc.conductance[a] = NULL;
                p.desc.h[a] = 1;
            }
        }
        if (p.desc.n[0] * p.desc.n[1] * p.desc.n[2] == 1) p.desc.alpha = 1;    // or there is no diagonal
        const int single = rng_int(&r, 0, 1);
        set_choice(&p.desc, method | (single ? PG_F32 : PG_F64));
        for (int e = 0; e < 2 * p.desc.dim; e++)
            if (p.desc.face[e].kind != PG_PERIODIC && rng_int(&r, 0, 1))
                p.desc.face[e].array = single ? (void *)face_single : (void *)face;
        const auto compare = method == PG_JACOBI
                                 ? (single ? compare_jacobi_passes<float> : compare_jacobi_passes<double>)
                             : single ? compare_red_black_passes<float>
                                      : compare_red_black_passes<double>;
        compare(&p.desc, &r);
    }
}
#endif

static void every_jacobi_pass_on_the_gpu_equals_single_sweeps(void **)
{
    if (!cuda_is_usable()) skip();
#if PGI_GPU
    compare_random_passes(PG_JACOBI);
#endif
}

static void every_red_black_pass_on_the_gpu_equals_the_plain_operations(void **)
{
    if (!cuda_is_usable()) skip();
#if PGI_GPU
    compare_random_passes(PG_VCYCLE);
    if (residuals_of_passes < 5 || (know_clusters && !residuals_of_clusters))
        fail_msg("only %d residuals came with sweeps, %d of clusters of blocks", residuals_of_passes,
                 residuals_of_clusters);
#endif
}

// Full multigrid's transfers between the two finest levels, residuals and sums, of grids of any pitch and alignment, on
// the GPU against the CPU; nothing beside u may be written.
#if PGI_GPU
template <class T> static void compare_transfers_and_sums(const pg_desc *desc, rng *r)
{
    pg_solver *s[2] = {solver_with_data(desc, PG_CPU, 1), solver_with_data(desc, PG_CUDA, 1)};
    const double limit = sizeof(T) == 4 ? 2e-5 : 2e-13;
    const int *n = s[0]->level[0].n;
    const size_t points = s[0]->levels > 1 ? (size_t)s[0]->level[1].points : 0;
    double dummy[2] = {0, 0};
    pgi_grid grid = {NULL, 0, n[0] + rng_int(r, 0, 3), 0};
    grid.sk = grid.sj * n[1] + rng_int(r, 0, 3);
    const size_t count = (size_t)(grid.sk * n[2]) + 8, shift = (size_t)rng_int(r, 0, 3), most = count + points;
    T *fine = (T *)allocate(count * sizeof(T)), *coarse = (T *)allocate(points * sizeof(T)), *device;
    T *result[2] = {(T *)allocate(most * sizeof(T)), (T *)allocate(most * sizeof(T))};
    for (size_t q = 0; q < count; q++) fine[q] = (T)rng_uniform(r, -1, 1);
    for (size_t q = 0; q < points; q++) coarse[q] = (T)rng_uniform(r, -1, 1);
    assert_int_equal(cudaMalloc((void **)&device, count * sizeof(T)), cudaSuccess);
    for (int step = 0; step < 6 && points; step++) {    // restriction and average; interpolation: full, added
        const int to_coarse = step < 2;
        for (int b = 0; b < 2; b++) {
            assert_int_equal(pgi_enter_call(s[b], dummy, dummy, 0, 0), PG_OK);
            pgi_enter_problem(s[b], dummy, dummy, NULL, 0);
            pgi_level level = s[b]->level[0], *next = &s[b]->level[1];
            T *const base = b ? device : (T *)allocate(count * sizeof(T));
            grid.base = base + shift;
            if (b)
                assert_int_equal(cudaMemcpy(base, fine, count * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
            else
                memcpy(base, fine, count * sizeof(T));
            grid_from_host(s[b], next, next->u, sizeof(T), coarse);
            s[b]->ops->restrict_faces(s[b], &level, next);
            if (to_coarse)
                s[b]->ops->restrict_full(s[b], &level, grid, next, next->f, step);
            else
                s[b]->ops->interpolate(s[b], &level, grid, next, next->u, step & 1, step >= 4);
            assert_int_equal(s[b]->failed, PG_OK);
            if (b) cudaDeviceSynchronize();
            if (b)
                assert_int_equal(cudaMemcpy(result[b], base, count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
            else
                memcpy(result[b], base, count * sizeof(T));
            grid_to_host(s[b], next, next->f, sizeof(T), result[b] + count);
            if (!b) free(base);
        }
        const T *const was = to_coarse ? result[0] + count : result[0],
                       *now = to_coarse ? result[1] + count : result[1];
        double scale = 1e-300, error = 0;
        for (size_t q = 0; q < (to_coarse ? points : count); q++) {
            scale = fmax(scale, fabs((double)was[q]));
            error = pgi_max_nan(error, fabs((double)now[q] - (double)was[q]));
            const int64_t at = (int64_t)q - (int64_t)shift;
            const int inside =
                at >= 0 && at / grid.sk < n[2] && at % grid.sk / grid.sj < n[1] && at % grid.sk % grid.sj < n[0];
            if (!to_coarse && !inside && now[q] != fine[q])
                fail_msg("something is written beside u: %s", describe(desc));
        }
        if (!(error <= limit * scale)) fail_msg("step %d differs by %g of %g: %s", step, error, scale, describe(desc));
    }
    double sums[2][5][4];    // of f, of f with its partner 1, of the residual, of u, of u with partner t
    const size_t all = (size_t)s[0]->level[0].points;
    const double mean = rng_int(r, 0, 1) ? 0.25 : 0;
    pg_stop stop = {};
    stop.norm = (pg_norm_kind)rng_int(r, 0, 3);
    for (int b = 0; b < 2 && points; b++) {
        pg_solver *const x = s[b];
        const pgi_level *const l = &x->level[0];
        const pgi_grid none = pgi_no_grid();
        assert_int_equal(pgi_enter_call(x, dummy, dummy, 0, 0), PG_OK);
        pgi_enter_problem(x, dummy, dummy, &stop, 0);
        grid.base = (b ? device : fine) + shift;
        if (b) {
            cudaDeviceSynchronize();
            assert_int_equal(cudaMemcpy(&x->state->mean, &mean, sizeof mean, cudaMemcpyHostToDevice), cudaSuccess);
            assert_int_equal(cudaMemcpy(device, fine, count * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
        } else {
            x->state->mean = mean;
        }
        const pgi_rhs rhs = {grid, l->faces};
        x->ops->residual(x, l, grid, rhs, l->t);
        assert_int_equal(x->failed, PG_OK);
        grid_to_host(x, l, l->t, sizeof(T), result[b]);
        for (int e = 0; e < 5; e++) {
            x->ops->reduce(x, l,
                           e < 2    ? PGI_RHS
                           : e == 2 ? PGI_RESIDUAL
                                    : PGI_FIELD,
                           e == 1   ? PGI_ONE
                           : e == 4 ? PGI_OTHER
                                    : PGI_SELF,
                           grid, e == 4 ? l->t : none, rhs, 0);
            assert_int_equal(x->failed, PG_OK);
            if (b)
                pgi_cuda_read_state(x, x->state);
            else
                x->host = *x->state;
            memcpy(sums[b][e], x->host.sums, sizeof sums[b][e]);
            if (e == 2)    // it has but the norm that is asked for
                for (int p = 0; p < 4; p++) sums[b][e][p] = pgi_norm_of(x->host.sums, x->host.stop.norm);
        }
    }
    double scale = 1e-300, error = 0;
    for (size_t q = 0; q < all && points; q++) {
        scale = fmax(scale, fabs((double)result[0][q]));
        error = pgi_max_nan(error, fabs((double)result[0][q] - (double)result[1][q]));
    }
    if (!(error <= limit * scale)) fail_msg("the residual differs by %g of %g: %s", error, scale, describe(desc));
    for (int e = 0; e < 5 && points; e++) {
        for (int q = 0; q < 4; q++) {
            const double of = e == 4 && q == 0 ? sums[0][4][2] * scale : sums[0][e][e == 1 && q == 0 ? 2 : q];
            if (!(fabs(sums[0][e][q] - sums[1][e][q]) <= 10 * limit * fabs(of)))
                fail_msg("sum %d of %d: %.17g, %.17g: %s", q, e, sums[0][e][q], sums[1][e][q], describe(desc));
        }
    }
    cudaFree(device);
    for (int b = 0; b < 2; b++) {
        free(result[b]);
        pg_destroy(s[b]);
    }
    free(fine);
    free(coarse);
}
#endif

static void transfers_and_sums_on_the_gpu_equal_those_on_the_cpu(void **)
{
    if (!cuda_is_usable()) skip();
#if PGI_GPU
    static double face[200 * 200];
    static float face_single[200 * 200];
    rng r = {13};
    for (int q = 0; q < 200 * 200; q++) face_single[q] = (float)(face[q] = rng_uniform(&r, -1, 1));
    for (int q = 0; q < full_or_small(600, 100); q++) {
        problem p;
        do random_problem(&p, &r, q % 2 ? 50 : 190, 1);
        while (p.desc.dim == 1 || p.desc.n[0] * p.desc.n[1] * p.desc.n[2] > 80000);
        const int single = rng_int(&r, 0, 1);
        set_choice(&p.desc, PG_FMG | (single ? PG_F32 : PG_F64) | (rng_int(&r, 0, 3) ? 0 : PG_SYMMETRIC));
        for (int e = 0; e < 2 * p.desc.dim; e++)
            if (p.desc.face[e].kind != PG_PERIODIC && rng_int(&r, 0, 1))
                p.desc.face[e].array = single ? (void *)face_single : (void *)face;
        if (single)
            compare_transfers_and_sums<float>(&p.desc, &r);
        else
            compare_transfers_and_sums<double>(&p.desc, &r);
    }
#endif
}

// The red-black sweep of the CPU is cut into slabs: any number of them gives the same bits.
// Threads that have little to do wait for busy cores; teams that change in size are made anew.
static void every_thread_has_its_share_of_the_points(void **)
{
#ifdef _OPENMP
    const int before = omp_get_max_threads(), sizes[][3] = {{5, 5, 5}, {33, 33, 33}, {70, 70, 70}, {700, 900, 1}};
    omp_set_num_threads(64);
    for (int q = 0; q < 4; q++) {
        pg_desc desc = {0};
        for (int a = 0; a < 3; a++) desc.n[a] = sizes[q][a];
        set_choice(&desc, PG_VCYCLE);
        desc.backend = PG_CPU;
        pg_solver *s = create(&desc);
        const int64_t points = s->level[0].points;
        s->crowd = {0, 0, 0};    // whatever else this machine does
        const int team = pgi_cpu_threads(&s->level[0], points), expected[] = {1, 4, 10, 19};
        assert_int_equal(team, expected[q]);    // of 33^3 are the products of the exact solver
        for (int l = 0; l < s->levels; l++) {
            const int threads = pgi_cpu_threads(&s->level[l], s->level[l].points);
            assert_int_equal(threads, s->level[l].points > PGI_SERIAL ? team : 1);
        }
        s->crowd = {0, 21, ~(uint64_t)0};    // other programs have some of the cores
        assert_int_equal(pgi_cpu_threads(&s->level[0], points), team == 1 ? 1 : 21);
        pg_destroy(s);
    }
    omp_set_num_threads(before);
#else
    skip();
#endif
}

static void cpu_sweeps_do_not_depend_on_the_slabs(void **)
{
#ifdef _OPENMP
    rng r = {8};
    for (int q = 0; q < 40; q++) {
        problem p;
        random_problem(&p, &r, 45, 1);
        p.desc.dim = rng_int(&r, 2, 3);
        p.desc.n[0] = rng_int(&r, 20, 60), p.desc.n[1] = rng_int(&r, 20, 60),
        p.desc.n[2] = p.desc.dim == 3 ? rng_int(&r, 10, 40) : 1;
        for (int a = 0; a < 3; a++) p.desc.coord[a] = p.desc.weight[a] = p.desc.conductance[a] = NULL, p.desc.h[a] = 1;
        p.desc.n[1] *= p.desc.dim == 2 ? 10 : 1;
        set_choice(&p.desc, PG_SOR);
        p.desc.omega = 1.3;
        p.desc.backend = PG_CPU;
        pg_solver *s = create(&p.desc);
        const size_t points = (size_t)s->level[0].points;
        s->outer.team = s->level[0].team = 7;    // as if there were many more points
        double *u[2] = {(double *)allocate(points * 8), (double *)allocate(points * 8)},
               *f = (double *)allocate(points * 8);
        for (size_t i = 0; i < points; i++) u[0][i] = u[1][i] = rng_uniform(&r, -1, 1), f[i] = rng_uniform(&r, -1, 1);
        const int before = omp_get_max_threads();
        for (int b = 0; b < 2; b++) {
            omp_set_num_threads(b ? 1 + q % 7 : 1);
            if (q % 2) s->crowd = {0, 9, ~(uint64_t)0};    // more threads than pieces
            OK(pg_smooth(s, u[b], f, 3), s);
        }
        omp_set_num_threads(before);
        assert_memory_equal(u[0], u[1], points * 8);
        free(u[0]);
        free(u[1]);
        free(f);
        pg_destroy(s);
    }
#else
    skip();
#endif
}

// Problems that are one level: a cycle solves them from any u, on either back end, in windows of padded arrays where
// they lie, and nothing beside the windows is touched.
template <class T> static void compare_exact_solves(const pg_desc *desc, rng *r)
{
    pg_desc d = *desc;
    for (int q = 0; q < 2; q++) {
        int64_t *const stride = q ? d.stride_f : d.stride_u;
        stride[0] = d.n[0] + rng_int(r, 0, 5);
        stride[1] = stride[0] * d.n[1] + rng_int(r, 0, 3);
    }
    const size_t u_size = (size_t)(d.stride_u[1] * d.n[2]) * sizeof(T),
                 f_size = (size_t)(d.stride_f[1] * d.n[2]) * sizeof(T);
    T *const f = (T *)allocate(f_size), *const before = (T *)allocate(u_size), *u[2];
    for (size_t q = 0; q < f_size / sizeof(T); q++) f[q] = (T)rng_uniform(r, -1, 1);
    for (size_t q = 0; q < u_size / sizeof(T); q++) before[q] = (T)rng_uniform(r, -1, 1);
    for (int b = 0; b < 2; b++) {
        u[b] = (T *)allocate(u_size);
        memcpy(u[b], before, u_size);
        void *there[2] = {u[b], f};
        d.backend = b ? PG_CUDA : PG_CPU;
        d.memory = b ? PG_MEM_DEVICE : PG_MEM_HOST;
#if PGI_GPU
        for (int q = 0; b && q < 2; q++) {
            const size_t size = q ? f_size : u_size;
            assert_int_equal(cudaMalloc(&there[q], size), cudaSuccess);
            assert_int_equal(cudaMemcpy(there[q], q ? f : u[b], size, cudaMemcpyHostToDevice), cudaSuccess);
        }
#endif
        pg_solver *s = create(&d);
        assert_int_equal(s->levels, 1);
        OK(pg_cycle(s, there[0], there[1], 1), s);
        pg_destroy(s);
#if PGI_GPU
        if (b) {
            assert_int_equal(cudaMemcpy(u[b], there[0], u_size, cudaMemcpyDeviceToHost), cudaSuccess);
            cudaFree(there[0]), cudaFree(there[1]);
        }
#endif
    }
    double scale = 1e-300, error = 0;
    for (int64_t q = 0; q < (int64_t)(u_size / sizeof(T)); q++) {
        const int64_t row = q % d.stride_u[1], inside = row / d.stride_u[0] < d.n[1] && row % d.stride_u[0] < d.n[0];
        if (!inside) assert_true(u[0][q] == before[q] && u[1][q] == before[q]);
        scale = fmax(scale, fabs((double)u[0][q]));
        error = pgi_max_nan(error, fabs((double)u[0][q] - (double)u[1][q]));
    }
    if (!(error <= (sizeof(T) == 4 ? 2e-4 : 2e-12) * scale))
        fail_msg("exact solves differ by %g of %g: %s", error, scale, describe(desc));
    free(u[0]), free(u[1]), free(f), free(before);
}

static void exact_solves_on_the_gpu_equal_those_on_the_cpu(void **)
{
    if (!cuda_is_usable()) skip();
    rng r = {14};
    for (int q = 0; q < full_or_small(300, 30); q++) {
        problem p;
        do random_problem(&p, &r, q % 3 ? 34 : full_or_small(PGI_MODES, 60), 1);
        while (p.desc.n[0] * p.desc.n[1] * p.desc.n[2] > full_or_small(33000, 3000) ||
               (p.desc.dim == 3 && p.desc.n[0] * p.desc.n[1] > PGI_MODES_PLANE) || p.desc.n[0] + p.desc.n[1] > 260 ||
               (p.desc.dim == 3 && p.desc.n[0] + p.desc.n[1] + p.desc.n[2] > 110));
        p.desc.coarsest = 0;
        set_choice(&p.desc, PG_VCYCLE | PG_SMOOTH_RBGS | (q % 2 ? PG_F32 : PG_F64));
        if (q % 2)
            compare_exact_solves<float>(&p.desc, &r);
        else
            compare_exact_solves<double>(&p.desc, &r);
    }
}

// A plan that could not be made is made anew by the next exchange, and one that was made only once.
static int plans;
static void a_plan_that_failed_is_made_again(void **)
{
    pgi_transport_ops ops = {};
    pgi_comm c = {};
    pg_solver *const s = (pg_solver *)calloc(1, sizeof *s);
    pgi_message message = {};
    ops.plan = [](pgi_comm *comm, pgi_message *, int) {
        return plans++ ? PG_OK : pgi_refuse(comm->error, PG_ERROR_MEMORY, "no memory for it");
    };
    c.ops = &ops, c.ranks = 2, s->comm = &c;
    assert_null(pgi_planned_messages(s, &message, NULL, 8, &message, 1));
    assert_int_equal(s->failed, PG_ERROR_MEMORY);
    s->failed = PG_OK;
    for (int again = 0; again < 2; again++) {
        assert_non_null(pgi_planned_messages(s, &message, NULL, 8, &message, 1));
        assert_int_equal(plans, 2);
    }
    free(c.plans);
    free(s);
}

extern "C" int test_kernels(void);
int test_kernels(void)
{
    test_modes_work = 4500000;    // as it is by default
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floor_division_is_exact_for_all_signs),
        cmocka_unit_test(coarse_lines_keep_length_weight_and_resistance),
        cmocka_unit_test(restriction_is_the_weighted_adjoint_or_the_average),
        cmocka_unit_test(interpolation_reproduces_cubics),
        cmocka_unit_test(eigenvectors_diagonalise_lines),
        cmocka_unit_test(small_eigenvalues_of_stretched_lines_are_right),
        cmocka_unit_test(eigenvalues_of_long_uniform_lines_are_right),
        cmocka_unit_test(uniform_lines_need_no_tables),
        cmocka_unit_test(clauses_of_a_message_are_whole_or_left_out),
        cmocka_unit_test(windows_overlap_exactly_when_they_share_an_element),
        cmocka_unit_test(every_operation_on_the_gpu_equals_the_one_on_the_cpu),
        cmocka_unit_test(every_jacobi_pass_on_the_gpu_equals_single_sweeps),
        cmocka_unit_test(every_red_black_pass_on_the_gpu_equals_the_plain_operations),
        cmocka_unit_test(transfers_and_sums_on_the_gpu_equal_those_on_the_cpu),
        cmocka_unit_test(cpu_sweeps_do_not_depend_on_the_slabs),
        cmocka_unit_test(every_thread_has_its_share_of_the_points),
        cmocka_unit_test(exact_solves_on_the_gpu_equal_those_on_the_cpu),
        cmocka_unit_test(a_plan_that_failed_is_made_again),
    };
    (void)backend_or_skip;
    (void)face_letter;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
