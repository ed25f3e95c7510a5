/* Open boundaries: u is that of a larger box, whatever its size; what nothing holds has the constant and the slope that
   the header gives it; residual and gradient know what is outside. */
#include "common.h"

enum { LONGEST = 2200 };

/* A box with open faces, and the same with more points beyond them. */
typedef struct open_box {
    pg_desc desc;
    int axis, beyond[3][2];    /* axis: an open one */
    double coord[LONGEST];
} open_box;

static size_t points_of(const pg_desc *d)
{
    return (size_t)d->n[0] * (size_t)d->n[1] * (size_t)d->n[2] * (size_t)(d->batch ? d->batch : 1);
}

static double spacing(const pg_desc *d, int axis) { return d->h[axis] > 0 ? d->h[axis] : 1.0 / d->n[axis]; }

/* Coordinates of an axis that is open at some end: those of cells are edges, those of nodes have the ghosts. */
static int coordinates(const pg_desc *d, int axis)
{
    int outside = 0;
    for (int e = 0; e < 2; e++) {
        const pg_face_kind kind = d->face[2 * axis + e].kind;
        outside += kind == PG_OPEN || kind == PG_DIRICHLET;
    }
    return d->centring[axis] == PG_CELL ? d->n[axis] + 1 : d->n[axis] + outside;
}

static void stretch(open_box *b, rng *r)
{
    const int m = coordinates(&b->desc, b->axis);
    double x = rng_uniform(r, -1, 1);
    for (int i = 0; i < m; i++, x += rng_uniform(r, 0.02, 0.1)) b->coord[i] = x;
    b->desc.coord[b->axis] = b->coord;
    b->desc.h[b->axis] = 0;
}

/* One open axis, whose other end may be anything and which may be stretched; or more, all even. */
static void random_box(open_box *b, rng *r, pg_backend backend, int longest)
{
    static const char *const closed[] = {"DD", "NN", "PP", "DN", "ND"},
                      *const open[] = {"OO", "OO", "OD", "DO", "ON", "NO", "OR", "RO"};
    memset(b, 0, sizeof *b);
    pg_desc *const d = &b->desc;
    const int dim = rng_int(r, 1, 3), several = dim > 1 && rng_int(r, 0, 1);
    d->backend = backend, d->dim = dim, d->flags = PG_DIRECT | (rng_int(r, 0, 3) ? PG_F64 : PG_F32);
    b->axis = rng_int(r, 0, dim - 1);
    const int all = several && (dim == 2 || rng_int(r, 0, 1)), second = (b->axis + rng_int(r, 1, dim > 1 ? dim - 1 : 1)) % dim;
    for (int a = 0; a < 3; a++) {
        const int is_open = a < dim && (a == b->axis || all || (several && a == second));
        d->n[a] = a < dim ? rng_int(r, 1, is_open && !several ? longest : dim == 3 ? 12 : 24) : 1;
        d->centring[a] = rng_int(r, 0, 1) ? PG_CELL : PG_NODE;
        if (a < dim) set_ends(d, a, is_open ? open[rng_int(r, 0, several ? 5 : 7)] : closed[rng_int(r, 0, 4)]);
        if (a < dim) d->h[a] = rng_uniform(r, 0.05, 0.2);
    }
    if (rng_int(r, 0, 1)) d->alpha = pow(10, rng_uniform(r, -3, 2));
    if (rng_int(r, 0, 1)) d->beta = rng_uniform(r, 0.5, 3);
    d->batch = rng_int(r, 0, 2) ? 1 : 3;
    if (!several && rng_int(r, 0, 2) == 0) stretch(b, r);
    for (int q = 0; q < 2 * dim; q++)
        if (d->face[q].kind == PG_OPEN) b->beyond[q / 2][q % 2] = rng_int(r, 1, several ? 5 : 20);
}

static int64_t place(const pg_desc *d, int i, int j, int k, int q)
{
    return i + (int64_t)d->n[0] * (j + (int64_t)d->n[1] * (k + (int64_t)d->n[2] * q));
}
static double load(const pg_desc *d, const void *array, int64_t at)
{
    return d->flags & PG_F32 ? (double)((const float *)array)[at] : ((const double *)array)[at];
}
static void store(const pg_desc *d, void *array, int64_t at, double value)
{
    if (d->flags & PG_F32) ((float *)array)[at] = (float)value;
    else ((double *)array)[at] = value;
}

/* More points at open ends, whose spacing goes on. */
static void widen(const open_box *b, open_box *wide)
{
    const int a = b->axis, m = coordinates(&b->desc, a), low = b->beyond[a][0], high = b->beyond[a][1];
    *wide = *b;
    for (int c = 0; c < 3; c++) wide->desc.n[c] += b->beyond[c][0] + b->beyond[c][1];
    if (!b->desc.coord[a]) return;
    for (int i = 0; i < m; i++) wide->coord[low + i] = b->coord[i];
    for (int i = low - 1; i >= 0; i--) wide->coord[i] = wide->coord[i + 1] - (b->coord[1] - b->coord[0]);
    for (int i = low + m; i < low + m + high; i++)
        wide->coord[i] = wide->coord[i - 1] + (b->coord[m - 1] - b->coord[m - 2]);
    wide->desc.coord[a] = wide->coord;
}

static void *solve(const pg_desc *desc, const void *f, pg_report *report)
{
    const size_t bytes = points_of(desc) * (desc->flags & PG_F32 ? sizeof(float) : sizeof(double));
    void *u = allocate(bytes);
    pg_solver *solver = create(desc);
    memset(u, 0, bytes);
    OK(pg_solve(solver, u, f, NULL), solver);
    OK(pg_get_report(solver, report), solver);
    pg_destroy(solver);
    return u;
}

/* In the modes that nothing holds u depends on where the closed end or the charges are, but not on how far away the open
   ends are; a gauge in the plane does not depend on the box either. */
static void more_points_outside_change_nothing(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {391};
    for (int trial = 0; trial < full_or_small(200, 40); trial++) {
        static open_box b, wide;
        random_box(&b, &r, backend, trial % 10 ? 40 : 200);
        widen(&b, &wide);
        const pg_desc *const d = &b.desc, *const w = &wide.desc;
        void *f = allocate(points_of(d) * sizeof(double)), *g = allocate(points_of(w) * sizeof(double));
        memset(g, 0, points_of(w) * sizeof(double));
        const int shift[3] = {b.beyond[0][0], b.beyond[1][0], b.beyond[2][0]};
        for (int q = 0; q < d->batch; q++)
            for (int k = 0; k < d->n[2]; k++)
                for (int j = 0; j < d->n[1]; j++)
                    for (int i = 0; i < d->n[0]; i++) {
                        const double value = rng_uniform(&r, -1, 1.2);
                        store(d, f, place(d, i, j, k, q), value);
                        store(d, g, place(w, i + shift[0], j + shift[1], k + shift[2], q), value);
                    }
        pg_report report;
        void *const u = solve(d, f, &report);
        if (report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(d), report.message);
        void *const v = solve(w, g, &report);
        if (report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(w), report.message);
        double error = 0, most = 0;
        for (int q = 0; q < d->batch; q++)
            for (int k = 0; k < d->n[2]; k++)
                for (int j = 0; j < d->n[1]; j++)
                    for (int i = 0; i < d->n[0]; i++) {
                        const double x = load(d, u, place(d, i, j, k, q)),
                                     y = load(d, v, place(w, i + shift[0], j + shift[1], k + shift[2], q));
                        error = fmax(error, fabs(x - y)), most = fmax(most, fabs(y));
                    }
        const double limit = d->flags & PG_F32 ? 1e-5 : 1e-12;
        if (!(error <= limit * (most + 1e-3))) fail_msg("%s: error %g of %g", describe(d), error, most);    /* h^2 f */
        free(u), free(v), free(f), free(g);
    }
}

/* One point along an axis: u = f / (2/h^2 + alpha) decays along the others as any mode does; a node with a closed end has a
   control length of h/2, so u_0 = f r / (1 - r^2) twice, r + 1/r = 2 + alpha h^2. */
static void a_single_point_is_a_line_of_its_own(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    pg_desc d = {0};
    d.backend = backend, d.dim = 1, d.n[0] = d.n[1] = d.n[2] = 1, d.h[0] = 1, d.alpha = 1;
    set_ends(&d, 0, "NO");
    const double one = 1, e = d.alpha / 2 + sqrt(d.alpha * (1 + d.alpha / 4)), kept = 1 / (1 + e);
    double u;
    pg_solver *solver = create(&d);
    OK(pg_solve(solver, &u, &one, NULL), solver);
    assert_true(fabs(u - kept / (1 - kept * kept)) < 1e-15);
    pg_destroy(solver);
    double f[9] = {0}, v[9] = {0}, w[27] = {0}, g[27] = {0};
    pg_desc thin = {0}, tall = {0};
    thin.backend = tall.backend = backend, thin.dim = tall.dim = 3;
    for (int a = 0; a < 3; a++)
        thin.n[a] = tall.n[a] = 3, thin.h[a] = tall.h[a] = 1, set_ends(&thin, a, a ? "OO" : "DD"), set_ends(&tall, a, a ? "OO" : "DD");
    thin.n[0] = 1, f[4] = 1;    /* odd about the middle of three points is what one has on either side of it */
    tall.h[0] = 1, g[12] = 1, g[14] = -1;
    pg_report report;
    solver = create(&thin);
    OK(pg_solve(solver, v, f, NULL), solver);
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_CONVERGED);
    pg_destroy(solver);
    solver = create(&tall);
    OK(pg_solve(solver, w, g, NULL), solver);
    for (int m = 0; m < 9; m++) assert_true(fabs(v[m] - w[3 * m]) < 1e-15);
    pg_destroy(solver);
}

/* A row whose sides have values, between axes that are open: the values are part of what it solves for. */
static void a_row_between_walls_has_their_values(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double *u[2];
    enum { N = 40, M = 36 };
    double *f = allocate(N * M * sizeof *f);
    memset(f, 0, N * M * sizeof *f);
    for (int q = 0; q < 2; q++) {
        pg_desc d = {0};
        d.backend = q ? PG_CPU : backend, d.dim = 3, d.n[0] = N, d.n[1] = 1, d.n[2] = M;
        for (int a = 0; a < 3; a++) d.h[a] = 0.1, d.centring[a] = PG_CELL, set_ends(&d, a, a == 1 ? "DD" : "OO");
        d.face[2].value = 1, d.face[3].value = 3;
        pg_report report;
        u[q] = solve(&d, f, &report);
        assert_int_equal(report.outcome, PG_CONVERGED);
    }
    assert_true(fabs(u[0][N / 2 + N * (M / 2)] - 2) < 1e-3);    /* far from the sides, beyond which they are 0 */
    for (int m = 0; m < N * M; m++) assert_true(fabs(u[0][m] - u[1][m]) < 1e-12);
    free(u[0]), free(u[1]), free(f);
}

/* Many small boxes are not padded to the length that suits one alone. */
static void a_batch_of_small_boxes_stays_small(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    pg_desc d = {0};
    d.backend = backend, d.batch = 4096;
    for (int a = 0; a < 3; a++) d.n[a] = 8, d.h[a] = 1, set_ends(&d, a, "OO");
    size_t bytes;
    OK(pg_workspace_bytes(&d, &bytes), NULL);
    assert_true(bytes < 100 * points_of(&d) * sizeof(double));
}

/* What holds u makes it decay: far walls are not noticed. */
static void walls_far_away_are_the_same(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const ends[][3] = {{"DD", "NN", "OO"}, {"OO", "DD", "PP"}, {"NN", "OD", "DN"}};
    rng r = {392};
    for (int c = 0; c < 3; c++)
        for (int alone = 0; alone < 2; alone++) {    /* alpha alone, or the sides alone */
            open_box b, wide;
            memset(&b, 0, sizeof b);
            b.desc.backend = backend, b.desc.flags = PG_DIRECT;
            for (int a = 0; a < 3; a++) {
                const char *const own = ends[c][a];
                const int open = own[0] == 'O' || own[1] == 'O';
                b.desc.n[a] = 6 + a, b.desc.h[a] = 0.1 + 0.05 * a;
                b.desc.centring[a] = a == 1 ? PG_NODE : PG_CELL;
                set_ends(&b.desc, a, open || !alone ? own : "NN");
                for (int e = 0; e < 2 && open; e++) b.axis = a, b.beyond[a][e] = own[e] == 'O' ? 120 : 0;
            }
            b.desc.alpha = alone ? 40 : 0;
            widen(&b, &wide);
            for (int e = 0; e < 2; e++)
                if (b.beyond[b.axis][e]) wide.desc.face[2 * b.axis + e].kind = PG_DIRICHLET;
            const size_t n = points_of(&b.desc), m = points_of(&wide.desc);
            double *f = allocate(n * sizeof *f), *g = allocate(m * sizeof *g), error = 0, most = 0;
            const int shift[3] = {b.beyond[0][0], b.beyond[1][0], b.beyond[2][0]};
            for (size_t q = 0; q < m; q++) g[q] = 0;
            for (int pass = 0; pass < 2; pass++) {
                pg_report report;
                double *const u = pass ? solve(&b.desc, f, &report) : NULL, *const v = pass ? solve(&wide.desc, g, &report) : NULL;
                for (int k = 0; k < b.desc.n[2]; k++)
                    for (int j = 0; j < b.desc.n[1]; j++)
                        for (int i = 0; i < b.desc.n[0]; i++) {
                            const int64_t p = place(&b.desc, i, j, k, 0),
                                          q = place(&wide.desc, i + shift[0], j + shift[1], k + shift[2], 0);
                            if (!pass) g[q] = f[p] = rng_uniform(&r, 0, 1);
                            else error = fmax(error, fabs(u[p] - v[q])), most = fmax(most, fabs(v[q]));
                        }
                free(u), free(v);
            }
            if (!(error <= 1e-12 * most)) fail_msg("%s: error %g of %g", describe(&b.desc), error, most);
            free(f), free(g);
        }
}

/* 1 at one point gives the integral over t of exp(-alpha t) times exp(-x) I_n(x), x = 2 t / h^2, of all axes, here to 18
   digits; in the plane without alpha sums along the diagonal, and the gauge. */
static void a_single_charge_gives_the_lattice_function(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct { int dim; double h[3], alpha; int at[3]; double value; } points[] = {
        {3, {1, 1, 1}, 0, {0, 0, 0}, 0.252731009858663003},
        {3, {1, 1, 1}, 0, {3, 2, 1}, 0.0211576619678961269},
        {3, {1, 1.5, 2.5}, 0, {0, 0, 0}, 0.555632956472925096},
        {3, {1, 1.5, 2.5}, 0, {5, 3, 2}, 0.0353205938555614068},
        {3, {1, 1.5, 2.5}, 0.01, {5, 3, 2}, 0.0150997377837384919},
        {3, {1, 1.5, 2.5}, 3, {2, 1, 1}, 0.000136148794709061144},
        {3, {1, 10, 1}, 0, {7, 1, 3}, 0.0604423467484095773},
        {2, {1, 1.5, 0}, 0.01, {4, 6, 0}, 0.102431016371331528},
        {2, {1, 1.5, 0}, 2, {1, 2, 0}, 0.00179909837958284105},
    };
    for (int q = 0; q < (int)(sizeof points / sizeof *points); q++)
        for (int single = 0; single < 2; single++) {
            pg_desc d = {0};
            d.backend = backend, d.dim = points[q].dim, d.alpha = points[q].alpha;
            d.flags = PG_DIRECT | (single ? PG_F32 : PG_F64);
            for (int a = 0; a < 3; a++) d.n[a] = a < d.dim ? 9 + a : 1;
            for (int a = 0; a < d.dim; a++) d.h[a] = points[q].h[a], set_ends(&d, a, "OO");
            const size_t n = points_of(&d);
            double *f = allocate(n * sizeof *f);
            memset(f, 0, n * sizeof *f);
            store(&d, f, 0, 1);
            pg_report report;
            void *const u = solve(&d, f, &report);
            assert_int_equal(report.outcome, PG_CONVERGED);
            const double got = load(&d, u, place(&d, points[q].at[0], points[q].at[1], points[q].at[2], 0)), at_source = load(&d, u, 0);
            if (!(fabs(got - points[q].value) <= (single ? 1e-6 : 1e-15) * at_source))
                fail_msg("%s: %.17g, not %.17g", describe(&d), got, points[q].value);
            free(f), free(u);
        }
    double f[17 * 17] = {1}, sum = 0;
    pg_desc d = {0};
    d.backend = backend, d.n[0] = d.n[1] = 17, d.n[2] = 1, d.h[0] = d.h[1] = 0.5;
    set_ends(&d, 0, "OO"), set_ends(&d, 1, "OO");
    pg_report report;
    double *const u = solve(&d, f, &report);
    const double area = 0.25, gauge = area / (2 * PI) * (0.57721566490153286061 + log(4 / sqrt(0.5)));
    for (int m = 0; m < 17; m++) {
        assert_true(fabs(u[18 * m] - (gauge - area * sum / PI)) < 1e-14);
        sum += 1.0 / (2 * m + 1);
    }
    assert_true(fabs(u[18 * 16] + area / (2 * PI) * log(0.5 * 16 * sqrt(2))) < 1e-4);
    free(u);
}

/* A flat film: its solver is made in about as many steps as a solve takes, and has all digits 8000 points from a charge,
   where the lattice function of the plane is -log(r) / (2 pi) + cos(4 phi) / (24 pi r^2) + O(r^-4). */
static void a_flat_film_has_all_digits(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int axis = 0; axis < 2; axis++) {
        pg_desc d = {0};
        d.backend = backend, d.n[axis] = full_or_small(8000, 2200), d.n[1 - axis] = 5, d.n[2] = 1;
        for (int a = 0; a < 2; a++) d.h[a] = 1, set_ends(&d, a, "OO");
        double *f = allocate(points_of(&d) * sizeof *f), error = 0;
        memset(f, 0, points_of(&d) * sizeof *f);
        f[0] = 1;
        pg_report report;
        double *const u = solve(&d, f, &report);
        assert_int_equal(report.outcome, PG_CONVERGED);
        for (int j = 0; j < d.n[1]; j++)
            for (int i = 0; i < d.n[0]; i++) {
                const double r = hypot(i, j), phi = atan2(j, i);
                if (r < 2000) continue;
                error = fmax(error, fabs(u[i + d.n[0] * j] + log(r) / (2 * PI) - cos(4 * phi) / (24 * PI * r * r)));
            }
        if (!(error < 4e-14)) fail_msg("%s: error %g", describe(&d), error);
        free(f), free(u);
    }
}

/* A batch that is watched, or has a NaN in one problem: the others have their own ghosts. On a CPU odd counts of columns
   make the NaN spoil the next problem, which is solved once more by itself. */
static int watch(void *user, const pg_report *so_far)
{
    (void)so_far;
    ++*(int *)user;
    return 0;
}
static void each_problem_of_a_batch_has_its_ghosts(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {396};
    for (int several = 0; several < 2; several++) {
        const int ny = backend == PG_CPU ? 5 : 4;
        pg_desc d = {0};
        d.backend = backend, d.batch = 3, d.n[0] = 6, d.n[1] = ny, d.n[2] = 7;
        for (int a = 0; a < 3; a++) d.centring[a] = PG_CELL, set_ends(&d, a, several || a == 2 ? "OO" : "PP");
        const size_t one = 6 * (size_t)ny * 7, faces = 6 * (size_t)ny * 8;
        double *f = allocate(3 * one * sizeof *f), *u = allocate(3 * one * sizeof *u), *slope = allocate(3 * faces * sizeof *slope),
               *again = allocate(3 * faces * sizeof *again);
        for (size_t q = 0; q < 3 * one; q++) f[q] = rng_uniform(&r, -1, 1.2), u[q] = 0;
        pg_solver *solver = create(&d);
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_gradient(solver, u, 2, slope, PG_AT_FACES), solver);
        int calls = 0;
        const pg_stop watched = {.monitor = watch, .user = &calls};
        pg_report report;
        OK(pg_solve(solver, u, f, &watched), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_CONVERGED);
        assert_true(calls > 0);
        OK(pg_gradient(solver, u, 2, again, PG_AT_FACES), solver);
        for (size_t q = 0; q < 3 * faces; q++) assert_true(fabs(slope[q] - again[q]) < 1e-12);
        f[one + 3] = NAN;
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_gradient(solver, u, 2, again, PG_AT_FACES), solver);
        for (size_t q = 0; q < 3 * faces; q++)
            if (q < faces || q >= 2 * faces) assert_true(fabs(slope[q] - again[q]) < 1e-12);
        pg_destroy(solver);
        free(f), free(u), free(slope), free(again);
    }
}

/* A box that is open on all sides, of sizes that are and are not those of fast transforms, with rows that are not packed:
   u, and slopes at faces, which know the ghosts, are those that the CPU finds with a point more beyond every side. */
static void a_box_may_have_any_size(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int size[][3] = {{64, 64, 1}, {33, 70, 1}, {260, 500, 1}, {130, 5, 1}, {40, 34, 47}, {64, 33, 64}, {36, 65, 40}};
    rng r = {397};
    for (int c = 0; c < full_or_small(7, 5); c++)
        for (int single = 0; single < 2; single++) {
            static open_box b, wide;
            memset(&b, 0, sizeof b);
            pg_desc *const d = &b.desc, *const w = &wide.desc;
            const int batch = c % 3 == 0 && !single ? 2 : 1;
            d->backend = backend, d->dim = size[c][2] > 1 ? 3 : 2, d->batch = batch;
            d->flags = PG_DIRECT | (single ? PG_F32 : PG_F64), d->alpha = c % 2 ? 0.7 : 0;
            for (int a = 0; a < 3; a++) d->n[a] = size[c][a];
            for (int a = 0; a < d->dim; a++) {
                d->h[a] = 0.1 + 0.03 * a, d->centring[a] = PG_CELL, set_ends(d, a, "OO");
                b.beyond[a][0] = b.beyond[a][1] = 1;
            }
            widen(&b, &wide);
            w->backend = PG_CPU;
            const int beyond_z = d->dim == 3;
            const int64_t sj = d->n[0] + c % 3, sk = sj * d->n[1] + 5 * (c % 2), problem = sk * d->n[2];
            const int64_t stride[3] = {sj, sk, problem};
            memcpy(d->stride_u, stride, sizeof stride), memcpy(d->stride_f, stride, sizeof stride);
            double *f = allocate((size_t)(problem * batch) * sizeof *f), *u = allocate((size_t)(problem * batch) * sizeof *u),
                   *g = allocate(points_of(w) * sizeof *g), *v = allocate(points_of(w) * sizeof *v), error = 0, most = 0, steep = 0,
                   wrong = 0;
            memset(f, 0, (size_t)(problem * batch) * sizeof *f), memset(u, 0, (size_t)(problem * batch) * sizeof *u);
            memset(g, 0, points_of(w) * sizeof *g), memset(v, 0, points_of(w) * sizeof *v);
            for (int q = 0; q < batch; q++)
                for (int k = 0; k < d->n[2]; k++)
                    for (int j = 0; j < d->n[1]; j++)
                        for (int i = 0; i < d->n[0]; i++) {
                            const double value = rng_uniform(&r, -1, 1.2);
                            store(d, f, i + j * sj + k * sk + q * problem, value);
                            store(d, g, place(w, i + 1, j + 1, k + beyond_z, q), value);
                        }
            pg_solver *const solver = create(d), *const reference = create(w);
            OK(pg_solve(solver, u, f, NULL), solver);
            OK(pg_solve(reference, v, g, NULL), reference);
            for (int a = 0; a < d->dim; a++) {
                int m[3] = {d->n[0], d->n[1], d->n[2]};
                m[a]++;
                const int64_t faces = (int64_t)m[0] * m[1] * m[2];
                double *const slope = allocate((size_t)(faces * batch) * sizeof *slope);
                OK(pg_gradient(solver, u, a, slope, PG_AT_FACES), solver);
                for (int q = 0; q < batch; q++)
                    for (int k = 0; k < m[2]; k++)
                        for (int j = 0; j < m[1]; j++)
                            for (int i = 0; i < m[0]; i++) {
                                const int up[3] = {i + 1, j + 1, k + beyond_z}, low[3] = {up[0] - (a == 0), up[1] - (a == 1), up[2] - (a == 2)};
                                const double above = load(d, v, place(w, up[0], up[1], up[2], q)),
                                             exact = (above - load(d, v, place(w, low[0], low[1], low[2], q))) / d->h[a],
                                             got = load(d, slope, i + m[0] * (j + (int64_t)m[1] * k) + faces * q);
                                wrong = fmax(wrong, fabs(got - exact)), steep = fmax(steep, fabs(exact));
                                if (i == d->n[0] || j == d->n[1] || k == d->n[2]) continue;
                                error = fmax(error, fabs(load(d, u, i + j * sj + k * sk + q * problem) - above));
                                most = fmax(most, fabs(above));
                            }
                free(slope);
            }
            const double limit = single ? 1e-5 : 1e-12;
            if (!(error <= limit * most)) fail_msg("%s: error %g of %g", describe(d), error, most);
            if (!(wrong <= limit * (steep + most / d->h[0]))) fail_msg("%s: slopes are off by %g of %g", describe(d), wrong, steep);
            pg_destroy(solver), pg_destroy(reference);
            free(f), free(u), free(g), free(v);
        }
}

/* A charge like exp(-r^2/(2 s^2)) has u = Q erf(r/(s sqrt(2)))/(4 pi beta r) in space, and in the plane one whose derivative
   is -Q (1 - exp(-r^2/(2 s^2)))/(2 pi beta r); with alpha, coarse and fine grids agree. */
static double of_a_charge(int dim, double r, double s)
{
    if (dim == 3) return r > 0 ? erf(r / (s * sqrt(2))) / (4 * PI * r) : sqrt(2 / PI) / (4 * PI * s);
    const double x = r * r / (2 * s * s);    /* -log(r) - E1(x)/2: by its series, or by its continued fraction */
    double sum = -0.57721566490153286061, term = 1, fraction = 0;
    for (int k = 1; k < 60; k++) term *= -x / k, sum -= term / k;
    for (int k = 200; k > 0; k--) fraction = k * k / (x + 2 * k + 1 - fraction);
    return x < 2 ? -(log(2 * s * s) + sum) / (4 * PI) : -(log(r) + exp(-x) / (x + 1 - fraction) / 2) / (2 * PI);
}
static void a_smooth_charge_has_all_digits(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    /* bound: for waves beyond pi/h, and f at the sides */
    static const struct { int dim, n[3]; double h[3], s, bound; } boxes[] = {
        {3, {64, 64, 64}, {1, 1, 1}, 3.84, 1e-12}, {3, {48, 40, 36}, {0.02, 0.03, 0.025}, 0.065, 1e-11},
        {3, {20, 16, 18}, {1, 1, 1}, 1.1, 2e-5}, {2, {64, 64, 1}, {1, 1, 0}, 3.84, 1e-12},
        {2, {60, 90, 1}, {0.03, 0.02, 0}, 0.12, 1e-12}, {2, {300, 200, 1}, {0.01, 0.02, 0}, 0.18, 1e-12}};
    for (int c = 0; c < 6; c++)
        for (int single = 0; single < 2; single++) {
            pg_desc d = {0};
            d.backend = backend, d.dim = boxes[c].dim, d.flags = PG_DIRECT | (single ? PG_F32 : PG_F64), d.beta = 1.5;
            for (int a = 0; a < 3; a++) d.n[a] = boxes[c].n[a];
            for (int a = 0; a < d.dim; a++)
                d.h[a] = boxes[c].h[a], d.centring[a] = PG_CELL, d.face[2 * a].kind = d.face[2 * a + 1].kind = PG_OPEN_SPECTRAL;
            const double s = boxes[c].s, q = pow(s * sqrt(2 * PI), d.dim);
            const size_t n = points_of(&d);
            double *f = allocate(n * sizeof *f), *r = allocate(n * sizeof *r), error = 0, most = 0;
            for (int k = 0; k < d.n[2]; k++)
                for (int j = 0; j < d.n[1]; j++)
                    for (int i = 0; i < d.n[0]; i++) {
                        const double x = (i + 0.5 - 0.5 * d.n[0]) * d.h[0], y = (j + 0.5 - 0.5 * d.n[1]) * d.h[1],
                                     z = d.dim == 3 ? (k + 0.5 - 0.5 * d.n[2]) * d.h[2] : 0;
                        const int64_t at = place(&d, i, j, k, 0);
                        r[at] = sqrt(x * x + y * y + z * z);
                        store(&d, f, at, exp(-r[at] * r[at] / (2 * s * s)));
                    }
            pg_report report;
            void *const u = solve(&d, f, &report);
            assert_int_equal(report.outcome, PG_CONVERGED);
            for (size_t m = 0; m < n; m++) {
                const double exact = q * of_a_charge(d.dim, r[m], s) / d.beta;
                error = fmax(error, fabs(load(&d, u, (int64_t)m) - exact)), most = fmax(most, fabs(exact));
            }
            if (!(error <= fmax(single ? 1e-5 : 0, boxes[c].bound) * most)) fail_msg("%s: error %g of %g", describe(&d), error, most);
            free(f), free(r), free(u);
        }
    double *answer[2];
    for (int fine = 0; fine < 2; fine++) {
        pg_desc d = {0};
        d.backend = backend, d.dim = 3, d.flags = PG_DIRECT, d.alpha = 30;
        for (int a = 0; a < 3; a++) d.n[a] = 32 << fine, d.h[a] = 1.0 / d.n[a], d.face[2 * a].kind = d.face[2 * a + 1].kind = PG_OPEN_SPECTRAL;
        double *f = allocate(points_of(&d) * sizeof *f);
        for (int k = 0; k < d.n[2]; k++)
            for (int j = 0; j < d.n[1]; j++)
                for (int i = 0; i < d.n[0]; i++) {
                    const double x = i * d.h[0] - 0.5, y = j * d.h[1] - 0.5, z = k * d.h[2] - 0.5;
                    f[place(&d, i, j, k, 0)] = exp(-(x * x + y * y + z * z) / (2 * 0.065 * 0.065));
                }
        pg_report report;
        answer[fine] = solve(&d, f, &report);
        free(f);
    }
    double error = 0;
    for (int m = 0; m < 32 * 32 * 32; m++) {
        const int i = m % 32, j = m / 32 % 32, k = m / 1024;
        error = fmax(error, fabs(answer[0][m] - answer[1][2 * (i + 64 * (j + (int64_t)64 * k))]));
    }
    assert_true(error < 1e-10 * answer[0][16 + 32 * (16 + 32 * 16)]);
    free(answer[0]), free(answer[1]);
}

/* Axes that are too long for transforms in shared memory: one of them first, then the other. */
/* The default ends well where f and u are finite, though no residual is worked out; without a tolerance nothing is looked
   at. A batch has the worst of its problems. */
static void a_spectral_solve_is_told_as_converged(void **state)
{
    enum { POINTS = 8 * 6 * 5 };
    static double f[3 * POINTS], u[3 * POINTS], again[3 * POINTS];
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < 2 * 3 * 4; q++) {
        const int batch = q % 2 ? 3 : 1, bad = q / 2 % 3, norm = q / 6;    /* bad: 1 a NaN, 2 an f of 0 */
        pg_desc d = {.n = {8, 6, 5}, .h = {0.2, 0.2, 0.2}, .batch = batch, .backend = backend};
        for (int side = 0; side < 6; side++) d.face[side].kind = PG_OPEN_SPECTRAL;
        for (int m = 0; m < batch * POINTS; m++) f[m] = bad == 2 ? 0 : sin(1.0 + m), u[m] = 7;
        if (bad == 1) f[batch / 2 * POINTS + 5] = NAN;
        const pg_stop stop = {.norm = (pg_norm_kind)norm, .min_iter = 2, .guess = PG_GUESS_U}, none = {.rtol = PG_NONE};
        pg_solver *const solver = create(&d);
        pg_report report;
        OK(pg_solve(solver, u, f, norm ? &stop : NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, bad == 1 ? PG_NOT_A_NUMBER : PG_CONVERGED);
        if (bad != 2) assert_true(isnan(report.residual) && isnan(report.floor) && report.iterations == (bad == 0));
        if (bad == 0 && !strstr(report.message, "no residual")) fail_msg("%s", report.message);
        for (int m = 0; m < batch * POINTS && bad != 1; m++) assert_true(isfinite(u[m]) && u[m] != 7);
        if (bad == 1 && batch == 1) assert_true(u[0] == 7 && u[POINTS - 1] == 7);
        OK(pg_solve(solver, again, f, &none), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_COMPLETED);
        if (bad != 1) assert_memory_equal(again, u, (size_t)batch * POINTS * sizeof *u);
        pg_destroy(solver);
    }
}

static void a_long_box_is_the_same_turned(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { LONG = 2100, SHORT = 3 };
    rng r = {395};
    pg_desc d = {0}, turned = {0};
    d.backend = turned.backend = backend;
    d.n[0] = turned.n[1] = LONG, d.n[1] = turned.n[0] = SHORT, d.n[2] = turned.n[2] = 1;
    d.h[0] = turned.h[1] = 0.01, d.h[1] = turned.h[0] = 0.02;
    for (int a = 0; a < 2; a++) set_ends(&d, a, "OO"), set_ends(&turned, a, "OO");
    double *f = allocate(2 * LONG * SHORT * sizeof *f), *g = f + LONG * SHORT, most = 0;
    for (int i = 0; i < LONG; i++)
        for (int j = 0; j < SHORT; j++) f[i + LONG * j] = g[j + SHORT * i] = rng_uniform(&r, -1, 1.2);
    pg_report report;
    double *const u = solve(&d, f, &report);
    assert_int_equal(report.outcome, PG_CONVERGED);
    double *const v = solve(&turned, g, &report);
    assert_int_equal(report.outcome, PG_CONVERGED);
    for (int i = 0; i < LONG * SHORT; i++) most = fmax(most, fabs(u[i]));
    for (int i = 0; i < LONG; i++)
        for (int j = 0; j < SHORT; j++) assert_true(fabs(u[i + LONG * j] - v[j + SHORT * i]) < 1e-12 * most);
    free(f), free(u), free(v);
}

/* u = - sum w f |x - x_j| / (2 beta) between open ends, - sum w f max(x, x_j) / beta from a closed one at x = 0. */
static void what_nothing_holds_has_its_constant(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const open[] = {"OO", "NO", "ON"};
    static const int sizes[] = {1, 2, 7, 64, 300, LONGEST - 10};
    rng r = {393};
    for (int c = 0; c < 3; c++)
        for (int q = 0; q < (small_run() ? 5 : 6); q++)
            for (int cells = 0; cells < 2; cells++)
                for (int stretched = 0; stretched < 2; stretched++) {
                    static open_box b;
                    memset(&b, 0, sizeof b);
                    const int n = sizes[q], across = q % 2 ? 4 : 1;    /* constant along y */
                    pg_desc *const d = &b.desc;
                    d->dim = across > 1 ? 2 : 1;
                    d->n[0] = n, d->n[1] = across, d->n[2] = 1;
                    d->centring[0] = d->centring[1] = cells ? PG_CELL : PG_NODE;
                    d->backend = backend, d->flags = PG_DIRECT, d->beta = 2;
                    set_ends(d, 0, open[c]);
                    if (across > 1) set_ends(d, 1, "PP");
                    if (stretched) stretch(&b, &r);
                    const double h = stretched ? 0 : spacing(d, 0);
                    const int first = d->face[0].kind == PG_OPEN;
                    double *x = allocate(4 * (size_t)n * sizeof *x), *w = x + n, *f = w + n, *exact = f + n, total = 0, most = 0;
                    for (int i = 0; i < n; i++) {
                        const double *const e = b.coord;
                        const int at = i + first;    /* nodes */
                        x[i] = !stretched ? (i + (cells ? 0.5 : 0)) * h : cells ? (e[i] + e[i + 1]) / 2 : e[at];
                        w[i] = !stretched ? h : cells ? e[i + 1] - e[i]
                                          : ((at > 0 ? e[at] - e[at - 1] : 0) + (i < n - 1 || d->face[1].kind == PG_OPEN ? e[at + 1] - e[at] : 0)) / 2;
                        if (!stretched && !cells && ((c == 1 && i == 0) || (c == 2 && i == n - 1))) w[i] = h / 2;
                        f[i] = rng_uniform(&r, -1, 1.5);
                    }
                    const double wall = cells ? (stretched ? b.coord[c == 1 ? 0 : n] : c == 1 ? 0 : n * h) : x[c == 1 ? 0 : n - 1];
                    for (int i = 0; i < n; i++) {
                        exact[i] = 0;
                        for (int j = 0; j < n; j++) {
                            const double far = fmax(fabs(x[i] - wall), fabs(x[j] - wall));
                            exact[i] -= w[j] * f[j] * (c == 0 ? fabs(x[i] - x[j]) / 2 : far) / d->beta;
                        }
                        total += w[i] * f[i];
                        most = fmax(most, fabs(exact[i]));
                    }
                    double *rhs = allocate((size_t)(n * across) * sizeof *rhs);
                    for (int i = 0; i < n * across; i++) rhs[i] = f[i % n];
                    pg_report report;
                    double *const u = solve(d, rhs, &report);
                    assert_true(report.removed_mean == 0);
                    if (n > 1) most = fmax(most, fabs(total) * fabs(x[n - 1] - x[0]));
                    for (int i = 0; i < n * across; i++)
                        if (!(fabs(u[i] - exact[i % n]) <= 2e-12 * most + 1e-300))
                            fail_msg("%s: u[%d] is %.17g, not %.17g", describe(d), i, u[i], exact[i % n]);
                    free(u), free(x), free(rhs);
                }
}

/* Of cells the divergence of the slopes at all faces, those at open ones among them, gives f back. */
static void slopes_at_open_faces_are_those_of_the_solution(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {394};
    static const char *const ends[][3] = {{"OO", "PP", "NN"}, {"NN", "OO", "PP"}, {"PP", "NN", "NO"}, {"OO", "OO", "OO"},
                                          {"OO", "PP", "OO"}, {"NO", "OO", "DO"}, {"OO", "ON", "DN"}, {"PP", "OD", "OO"}};
    for (int c = 0; c < 8; c++) {
        pg_desc d = {0};
        d.backend = backend, d.flags = PG_DIRECT, d.alpha = c % 2 ? 0 : 3;
        for (int a = 0; a < 3; a++) {
            d.n[a] = 9 + 2 * a, d.h[a] = 0.1 + 0.03 * a, d.centring[a] = PG_CELL;
            set_ends(&d, a, ends[c][a]);
        }
        const size_t n = points_of(&d);
        double *f = allocate(n * sizeof *f), *u = allocate(n * sizeof *u), *div = allocate(n * sizeof *div);
        for (size_t q = 0; q < n; q++) f[q] = rng_uniform(&r, -1, 1.5), u[q] = 0;
        pg_solver *solver = create(&d);
        OK(pg_solve(solver, u, f, NULL), solver);
        for (size_t q = 0; q < n; q++) div[q] = d.alpha * u[q];
        for (int a = 0; a < 3; a++) {
            const int m[3] = {d.n[0] + (a == 0), d.n[1] + (a == 1), d.n[2] + (a == 2)};
            const int64_t step = a == 0 ? 1 : a == 1 ? m[0] : (int64_t)m[0] * m[1];
            double *slope = allocate((size_t)m[0] * (size_t)m[1] * (size_t)m[2] * sizeof *slope);
            OK(pg_gradient(solver, u, a, slope, PG_AT_FACES), solver);
            for (int k = 0; k < d.n[2]; k++)
                for (int j = 0; j < d.n[1]; j++)
                    for (int i = 0; i < d.n[0]; i++) {
                        const double *const s = slope + i + m[0] * (j + (int64_t)m[1] * k);
                        div[place(&d, i, j, k, 0)] -= (s[step] - s[0]) / d.h[a];
                    }
            free(slope);
        }
        for (size_t q = 0; q < n; q++)
            if (!(fabs(div[q] - f[q]) < 1e-10)) fail_msg("%s: %g, not %g", describe(&d), div[q], f[q]);
        assert_int_equal(pg_residual(solver, u, f, div), PG_ERROR_UNSUPPORTED);
        assert_non_null(strstr(pg_last_error(solver), "PG_OPEN"));
        assert_int_equal(pg_apply(solver, u, div), PG_ERROR_UNSUPPORTED);
        pg_destroy(solver);
        free(f), free(u), free(div);
    }
}

static void refuses(const pg_desc *desc, const char *word)
{
    pg_solver *solver = NULL;
    const pg_status status = pg_create(desc, &solver);
    if (status == PG_OK || !strstr(pg_last_error(NULL), word)) fail_msg("%s: %s", word, status == PG_OK ? "taken" : pg_last_error(NULL));
    assert_null(solver);
}

static void what_open_faces_do_not_go_with_is_named(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    pg_desc plain = {0};
    plain.backend = backend;
    plain.n[0] = plain.n[1] = plain.n[2] = 8;
    set_ends(&plain, 2, "OO");
    pg_desc d = plain;
    d.flags = PG_FMG;
    refuses(&d, "PG_OPEN, which PG_FMG does not take; use PG_DIRECT");
    d.flags = PG_MIXED;
    refuses(&d, "PG_MIXED");
    d = plain, d.alpha = -1;
    refuses(&d, "alpha is -1");
    d = plain, d.face[4].value = 1;
    refuses(&d, "z low");
    d = plain, d.velocity[0] = 1;
    refuses(&d, "velocity");
    d = plain, set_ends(&d, 0, "PO");
    refuses(&d, "PG_PERIODIC");
    d = plain, d.face[4].kind = d.face[5].kind = PG_OPEN_SPECTRAL;
    refuses(&d, "face z high is PG_OPEN_SPECTRAL, but face y high is not");
    for (int q = 0; q < 6; q++) d.face[q].kind = PG_OPEN_SPECTRAL;
    d.face[1].value = 1;
    refuses(&d, "face x high is PG_OPEN_SPECTRAL, beyond which");
    d.face[1].value = 0;
    pg_solver *spectral = create(&d);
    const pg_stop tolerance = {.rtol = 1e-6};
    double room[1024] = {0};
    assert_int_equal(pg_solve(spectral, room, room + 512, &tolerance), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(spectral), "PG_OPEN_SPECTRAL"));
    OK(pg_solve(spectral, room, room + 512, NULL), spectral);
    pg_destroy(spectral);
    static unsigned char mask[512];
    d = plain, d.cells.mask = mask;
    d.centring[0] = d.centring[1] = d.centring[2] = PG_CELL;
    refuses(&d, "mask");
    double end[9] = {1, 1, 1, 1, 1, 1, 1, 1, 0};
    d = plain, d.conductance[2] = end;
    refuses(&d, "conductance[2][8] is 0");
    double coord[9] = {0, 1, 2, 3, 4, 5, 6, 7, 9};
    d = plain, d.centring[0] = PG_CELL, d.coord[0] = coord;
    refuses(&d, "x");
    d = plain, set_ends(&d, 1, "OO"), set_ends(&d, 0, "NR");
    refuses(&d, "face x high is PG_ROBIN");
    d = plain, set_ends(&d, 1, "OO"), d.centring[2] = PG_CELL, d.coord[2] = coord;
    refuses(&d, "z has coord");
    d = plain, set_ends(&d, 1, "OO"), d.alpha = 1e-40;
    refuses(&d, "alpha is 1e-40");
    pg_solver *solver = create(&plain);
    pg_face faces[6];
    memcpy(faces, plain.face, sizeof faces);
    faces[5].value = 3;
    assert_int_equal(pg_set_faces(solver, faces), PG_ERROR_ARGUMENT);
    assert_int_equal(pg_set_alpha(solver, -1), PG_ERROR_UNSUPPORTED);
    OK(pg_set_alpha(solver, 2), solver);
    pg_destroy(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(more_points_outside_change_nothing),
        ON_BOTH(a_single_point_is_a_line_of_its_own),
        ON_BOTH(a_row_between_walls_has_their_values),
        ON_BOTH(a_batch_of_small_boxes_stays_small),
        ON_BOTH(walls_far_away_are_the_same),
        ON_BOTH(a_single_charge_gives_the_lattice_function),
        ON_BOTH(a_flat_film_has_all_digits),
        ON_BOTH(each_problem_of_a_batch_has_its_ghosts),
        ON_BOTH(a_box_may_have_any_size),
        ON_BOTH(a_smooth_charge_has_all_digits),
        ON_BOTH(a_spectral_solve_is_told_as_converged),
        ON_BOTH(a_long_box_is_the_same_turned),
        ON_BOTH(what_nothing_holds_has_its_constant),
        ON_BOTH(slopes_at_open_faces_are_those_of_the_solution),
        ON_BOTH(what_open_faces_do_not_go_with_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
