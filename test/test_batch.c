/* Batches: every problem as if it were alone, whatever the method, the layout and the back end. */
#include <float.h>
#ifdef PG_TEST_CUDA
#include <cuda_runtime.h>
#endif
#include "ref.h"

enum { LONGEST = 24, MOST = 7, FACE = MOST * LONGEST * LONGEST };

typedef struct batch {
    pg_desc desc;
    pg_desc alone;                  /* one of its problems; its face arrays are set by alone_desc */
    double coord[LONGEST + 1], face[6][FACE];      /* face holds floats for PG_F32 */
    size_t element, extent_u, extent_f;            /* elements from the first to behind the last one */
} batch;

static size_t extent(const pg_desc *d, const int64_t stride[3])
{
    return (size_t)(d->n[0] + (d->n[1] - 1) * stride[0] + (d->n[2] - 1) * stride[1] + (d->batch - 1) * stride[2]);
}

/* Rows, planes and problems in a random order of nesting, with gaps. */
static void random_strides(rng *r, const pg_desc *d, int64_t stride[3])
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const int64_t count[3] = {d->n[1], d->n[2], d->batch};
    const int *order = orders[rng_int(r, 0, 5)];
    int64_t span = d->n[0] + rng_int(r, 0, 3);
    for (int q = 0; q < 3; q++) {
        stride[order[q]] = span;
        span = span * count[order[q]] + rng_int(r, 0, 3);
    }
}

static void random_batch(batch *b, rng *r, pg_backend backend, unsigned flags, int dim)
{
    static const char *const ends[] = {"DD", "DN", "ND", "NN", "PP", "DR"};
    memset(&b->desc, 0, sizeof b->desc);
    b->desc.backend = backend, b->desc.flags = flags, b->desc.dim = dim;
    b->desc.batch = rng_int(r, 2, MOST);
    const int most = flags & (PG_JACOBI | PG_RBGS | PG_SOR) ? 7 : dim == 3 ? 11 : LONGEST;
    const int singular = rng_int(r, 0, 3) == 0;
    for (int axis = 0; axis < 3; axis++) {
        b->desc.n[axis] = axis < dim ? rng_int(r, 1, most) : 1;
        b->desc.centring[axis] = rng_int(r, 0, 1) ? PG_CELL : PG_NODE;
        set_ends(&b->desc, axis, ends[singular ? rng_int(r, 3, 4) : rng_int(r, 0, axis == 0 ? 5 : 4)]);
    }
    if (rng_int(r, 0, 3) == 0 && b->desc.face[0].kind != PG_ROBIN) {       /* x stretched a little */
        b->desc.coord[0] = b->coord;
        for (int i = 0; i <= b->desc.n[0]; i++) b->coord[i] = (i + 0.1 * sin(i)) / b->desc.n[0];
        b->desc.centring[0] = PG_CELL;
    }
    if (!singular && rng_int(r, 0, 1)) b->desc.alpha = rng_uniform(r, 0.1, 30);
    b->element = flags & PG_F32 ? 4 : 8;
    const int packed = rng_int(r, 0, 1);
    pg_desc resolved = b->desc;
    random_strides(r, &b->desc, resolved.stride_u);
    random_strides(r, &b->desc, resolved.stride_f);
    for (int q = 0; q < 3 && !packed; q++)
        b->desc.stride_u[q] = resolved.stride_u[q], b->desc.stride_f[q] = resolved.stride_f[q];
    for (int q = 0; q < 3 && packed; q++) {
        resolved.stride_u[q] = q == 0 ? b->desc.n[0] : resolved.stride_u[q - 1] * b->desc.n[q];
        resolved.stride_f[q] = resolved.stride_u[q];
    }
    b->extent_u = extent(&resolved, resolved.stride_u), b->extent_f = extent(&resolved, resolved.stride_f);
    for (int q = 0; q < 2 * dim; q++) {
        pg_face *face = &b->desc.face[q];
        const int what = rng_int(r, 0, 2);
        if (what == 1) face->value = rng_uniform(r, -1, 1);
        if (what != 2 || face->kind == PG_PERIODIC) continue;
        face->array = b->face[q];
        for (int i = 0; i < FACE; i++) {
            const double g = rng_uniform(r, -1, 1);
            if (b->element == 4) ((float *)b->face[q])[i] = (float)g;
            else b->face[q][i] = g;
        }
    }
    b->alone = b->desc;
    for (int q = 0; q < 3; q++) b->alone.stride_u[q] = resolved.stride_u[q], b->alone.stride_f[q] = resolved.stride_f[q];
    b->alone.batch = 1;
}

static const pg_desc *alone_desc(batch *b, int problem)
{
    const int *n = b->desc.n, count[3] = {n[1] * n[2], n[0] * n[2], n[0] * n[1]};
    for (int q = 0; q < 6; q++)
        if (b->desc.face[q].array)
            b->alone.face[q].array = (char *)b->face[q] + (size_t)problem * (size_t)count[q / 2] * b->element;
    return &b->alone;
}

static char *random_array(rng *r, size_t count, size_t element)
{
    char *a = allocate(count * element);
    for (size_t i = 0; i < count; i++) {
        const double v = rng_uniform(r, -1, 1);
        if (element == 4) ((float *)a)[i] = (float)v;
        else ((double *)a)[i] = v;
    }
    return a;
}
static char *copy_of(const char *a, size_t bytes)
{
    char *c = allocate(bytes);
    memcpy(c, a, bytes);
    return c;
}
static double load(const char *a, size_t i, size_t element)
{
    return element == 4 ? (double)((const float *)a)[i] : ((const double *)a)[i];
}
static char *u_of(const batch *b, char *u, int q) { return u + (size_t)(q * b->alone.stride_u[2]) * b->element; }
static char *f_of(const batch *b, char *f, int q) { return f + (size_t)(q * b->alone.stride_f[2]) * b->element; }

/* What is equal to the last bit, padding included. PG_DIRECT may cut its lines otherwise for many: to round-off. */
static void must_be_alike(const batch *b, const char *a, const char *expected, size_t count)
{
    const int direct = b->desc.flags & PG_DIRECT ? 1 : 0;
    double largest = 0, difference = 0;
    for (size_t i = 0; i < count && direct; i++) {
        const double x = load(a, i, b->element), y = load(expected, i, b->element);
        largest = fmax(largest, fabs(y));
        if (!(fabs(x - y) <= difference)) difference = fabs(x - y);
    }
    if (direct ? !(difference <= (b->element == 4 ? 1e-4 : 1e-12) * (largest + 1))
               : memcmp(a, expected, count * b->element) != 0)
        fail_msg("%s, batch %d: not as alone, %.1e", describe(&b->desc), b->desc.batch, difference);
}

static const unsigned methods[] = {PG_DIRECT, PG_FMG, PG_VCYCLE, PG_JACOBI, PG_RBGS, PG_SOR, PG_WCYCLE};

static unsigned random_method(rng *r, int count)
{
    const unsigned method = methods[count % 7], precision = rng_int(r, 0, 2);
    return method | (precision == 1 ? PG_F32 : precision == 2 && !(method & (PG_JACOBI | PG_RBGS | PG_SOR)) ? PG_MIXED : 0);
}

/* With a tolerance and without. */
static void each_problem_is_solved_as_if_alone(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static batch b;
    rng r = {1};
    for (int count = 0; count < full_or_small(210, 21); count++) {
        random_batch(&b, &r, backend, random_method(&r, count), rng_int(&r, 1, 3));
        const pg_stop stop = {.rtol = rng_int(&r, 0, 1) ? 0 : PG_NONE};
        char *f = random_array(&r, b.extent_f, b.element), *u = random_array(&r, b.extent_u, b.element);
        char *expected = copy_of(u, b.extent_u * b.element);
        pg_report worst, report;
        pg_solver *solver = create(&b.desc);
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &worst), solver);
        pg_destroy(solver);
        double largest[2] = {0};    /* without and with a mean that was removed, which is worse */
        int same_outcome = 0, removed = 0;
        for (int q = 0; q < b.desc.batch; q++) {
            pg_solver *single = create(alone_desc(&b, q));
            OK(pg_solve(single, u_of(&b, expected, q), f_of(&b, f, q), &stop), single);
            OK(pg_get_report(single, &report), single);
            pg_destroy(single);
            const int told = strstr(report.warning, "f is not compatible") != NULL;
            removed = removed || told;
            largest[told] = fmax(largest[told], report.residual / (report.rhs_norm > 0 ? report.rhs_norm : 1));
            if (q == worst.problem) same_outcome = report.outcome == worst.outcome;
            if (q == worst.problem && !(b.desc.flags & PG_DIRECT)) {
                assert_int_equal(worst.iterations, report.iterations);
                assert_true(worst.residual == report.residual || report.residual != report.residual);
            }
        }
        must_be_alike(&b, u, expected, b.extent_u);
        assert_true(same_outcome);
        /* the worst: nearly so with PG_DIRECT, whose residuals are round-off */
        if (stop.rtol == 0 && worst.outcome == PG_CONVERGED && !(b.desc.flags & PG_DIRECT))
            assert_true(worst.residual / (worst.rhs_norm > 0 ? worst.rhs_norm : 1) >= largest[removed] * (1 - 1e-12));
        if (stop.rtol == 0 && worst.outcome == PG_CONVERGED)
            assert_int_equal(strstr(worst.warning, "f is not compatible") != NULL, removed);
        free(f), free(u), free(expected);
    }
}

/* One channel of an image whose f has no solution must not go unnoticed among the others. */
static void a_mean_that_is_removed_is_told_whichever_problem_it_is(void **state)
{
    enum { N = 32, BATCH = 3 };
    static double u[BATCH][N * N], f[BATCH][N * N];
    static const unsigned methods[] = {PG_DIRECT, PG_VCYCLE, PG_CG};
    for (int m = 0; m < 3; m++)
        for (int off = 0; off < BATCH; off++) {
            pg_desc desc = {0};
            pg_report report;
            rng r = {(uint64_t)off + 1};
            desc.backend = backend_or_skip(state);
            desc.n[0] = desc.n[1] = N, desc.batch = BATCH, desc.flags = methods[m];
            desc.centring[0] = desc.centring[1] = PG_CELL;
            for (int q = 0; q < 4; q++) desc.face[q].kind = PG_NEUMANN;
            for (int q = 0; q < BATCH; q++) {
                double sum = 0;
                for (int i = 0; i < N * N; i++) sum += f[q][i] = rng_uniform(&r, -1, 1);
                for (int i = 0; i < N * N; i++) f[q][i] -= sum / (N * N) - (q == off ? 0.5 : 0);
            }
            memset(u, 0, sizeof u);
            if (pg_solve_once(&desc, u, f, &report) != PG_OK) fail_msg("%s", pg_last_error(NULL));
            assert_int_equal(report.outcome, PG_CONVERGED);
            assert_int_equal(report.problem, off);
            assert_non_null(strstr(report.warning, "f is not compatible"));
            assert_true(fabs(report.removed_mean - 0.5) < 1e-9);
        }
}

static void pieces_act_on_every_problem(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static batch b;
    rng r = {2};
    for (int count = 0; count < full_or_small(70, 21); count++) {
        random_batch(&b, &r, backend, random_method(&r, count), rng_int(&r, 1, 3));
        b.desc.flags &= ~(unsigned)PG_MIXED, b.alone.flags = b.desc.flags;
        char *f = random_array(&r, b.extent_f, b.element), *u = random_array(&r, b.extent_u, b.element);
        char *y = random_array(&r, b.extent_u, b.element);
        char *res = random_array(&r, b.extent_f, b.element), *v = copy_of(res, b.extent_f * b.element);
        char *expected_u = copy_of(u, b.extent_u * b.element), *expected_r = copy_of(res, b.extent_f * b.element);
        char *expected_v = copy_of(res, b.extent_f * b.element);
        double norm[4], sum, dot, expected[6] = {0};
        pg_solver *solver = create(&b.desc);
        OK(pg_residual(solver, u, f, res), solver);
        OK(pg_apply(solver, u, v), solver);
        for (int kind = 0; kind < 4; kind++) OK(pg_norm(solver, u, (pg_norm_kind)kind, &norm[kind]), solver);
        OK(pg_dot(solver, u, NULL, &sum), solver);
        OK(pg_dot(solver, u, y, &dot), solver);
        const int sweeps = !(b.desc.flags & PG_DIRECT), cycles = b.desc.flags & (PG_FMG | PG_VCYCLE | PG_WCYCLE);
        if (sweeps) OK(pg_smooth(solver, u, f, 3), solver);
        if (cycles) OK(pg_cycle(solver, u, f, 2), solver);
        pg_destroy(solver);
        for (int q = 0; q < b.desc.batch; q++) {
            pg_solver *single = create(alone_desc(&b, q));
            char *uq = u_of(&b, expected_u, q), *fq = f_of(&b, f, q);
            double value;
            OK(pg_residual(single, uq, fq, f_of(&b, expected_r, q)), single);
            OK(pg_apply(single, uq, f_of(&b, expected_v, q)), single);
            for (int kind = 0; kind < 4; kind++) {
                OK(pg_norm(single, uq, (pg_norm_kind)kind, &value), single);
                if (kind == PG_NORM_MAX) expected[kind] = fmax(expected[kind], value);
                else expected[kind] += kind == PG_NORM_L1 ? value : value * value;
            }
            OK(pg_dot(single, uq, NULL, &value), single);
            expected[4] += value;
            OK(pg_dot(single, uq, u_of(&b, y, q), &value), single);
            expected[5] += value;
            if (sweeps) OK(pg_smooth(single, uq, fq, 3), single);
            if (cycles) OK(pg_cycle(single, uq, fq, 2), single);
            pg_destroy(single);
        }
        if (memcmp(res, expected_r, b.extent_f * b.element) || memcmp(v, expected_v, b.extent_f * b.element) ||
            memcmp(u, expected_u, b.extent_u * b.element))
            fail_msg("%s, batch %d: pieces differ", describe(&b.desc), b.desc.batch);
        expected[PG_NORM_L2] = sqrt(expected[PG_NORM_L2]), expected[PG_NORM_L2_PLAIN] = sqrt(expected[PG_NORM_L2_PLAIN]);
        const double scale = 1e-13 * (expected[PG_NORM_L1] + 1);
        for (int kind = 0; kind < 4; kind++) assert_true(fabs(norm[kind] - expected[kind]) <= 1e-13 * expected[kind]);
        assert_true(fabs(sum - expected[4]) <= scale && fabs(dot - expected[5]) <= scale);
        free(f), free(u), free(y), free(res), free(v), free(expected_u), free(expected_r), free(expected_v);
    }
}

/* One problem has a NaN in f: its u stays as it was, the others are solved, and the report names it. */
static void a_bad_problem_spoils_no_other(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static batch b;
    rng r = {3};
    for (int count = 0; count < full_or_small(70, 21); count++) {
        random_batch(&b, &r, backend, random_method(&r, count), rng_int(&r, 1, 3));
        const int bad = rng_int(&r, 0, b.desc.batch - 1);
        char *f = random_array(&r, b.extent_f, b.element), *u = random_array(&r, b.extent_u, b.element);
        char *expected = copy_of(u, b.extent_u * b.element);
        if (b.element == 4) *(float *)f_of(&b, f, bad) = NAN;
        else *(double *)f_of(&b, f, bad) = NAN;
        pg_report report;
        pg_solver *solver = create(&b.desc);
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        pg_destroy(solver);
        assert_int_equal(report.outcome, PG_NOT_A_NUMBER);
        assert_int_equal(report.problem, bad);
        for (int q = 0; q < b.desc.batch; q++) {
            pg_solver *single = create(alone_desc(&b, q));
            OK(pg_solve(single, u_of(&b, expected, q), f_of(&b, f, q), NULL), single);
            pg_destroy(single);
        }
        must_be_alike(&b, u, expected, b.extent_u);
        free(f), free(u), free(expected);
    }
}

/* Problems of very different sizes, zeros and NaN: each has the values that it has alone, to its own round-off; bit for
   bit where a batch is solved by the same code: on the CPU, of more than one line. */
static void problems_of_unlike_sizes_do_not_mix(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double sizes[] = {0, 1, 1e-10, 1e-30, 1e10, 1e30, 1e-300, 1e300, NAN};
    static batch b;
    rng r = {11};
    for (int count = 0; count < full_or_small(500, 60); count++) {
        const unsigned method = count % 3 == 0 ? 0 : count % 3 == 1 ? PG_DIRECT : methods[count / 3 % 7];
        random_batch(&b, &r, backend, method | (method ? random_method(&r, 0) & (PG_F32 | PG_MIXED) : 0), rng_int(&r, 1, 3));
        if (method & (PG_JACOBI | PG_RBGS | PG_SOR)) b.desc.flags &= ~(unsigned)PG_MIXED, b.alone.flags = b.desc.flags;
        for (int q = 0; q < 6; q++)        /* their data are no smaller in a small problem */
            b.desc.face[q].array = b.alone.face[q].array = NULL, b.desc.face[q].value = b.alone.face[q].value = 0;
        const pg_stop stop = {.rtol = rng_int(&r, 0, 1) ? 0 : PG_NONE, .max_iter = rng_int(&r, 0, 1) ? 3 : 0};
        char *f = random_array(&r, b.extent_f, b.element), *u = random_array(&r, b.extent_u, b.element);
        char *expected = copy_of(u, b.extent_u * b.element);
        const int *n = b.desc.n;
        for (int q = 0; q < b.desc.batch; q++) {
            const double size = sizes[rng_int(&r, 0, 8)];
            for (int m = 0; m < n[0] * n[1] * n[2]; m++) {
                const size_t at = (size_t)(m % n[0] + m / n[0] % n[1] * b.alone.stride_f[0] + m / n[0] / n[1] * b.alone.stride_f[1]);
                if (b.element == 4) ((float *)f_of(&b, f, q))[at] *= (float)size;
                else ((double *)f_of(&b, f, q))[at] *= size;
            }
        }
        pg_report worst, report;
        pg_solver *solver = create(&b.desc);
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &worst), solver);
        pg_destroy(solver);
        const int lines = (n[0] > 1) + (n[1] > 1) + (n[2] > 1) > 1;
        int same_outcome = 0;
        for (int q = 0; q < b.desc.batch; q++) {
            pg_solver *single = create(alone_desc(&b, q));
            OK(pg_solve(single, u_of(&b, expected, q), f_of(&b, f, q), &stop), single);
            OK(pg_get_report(single, &report), single);
            pg_destroy(single);
            same_outcome = same_outcome || report.outcome == worst.outcome;
            const int alike = backend == PG_CPU && lines && !strcmp(report.method, worst.method) &&
                              (stop.rtol == 0 || b.desc.alpha > 0);    /* else the mean is left out elsewhere */
            const double round_off = alike ? 0 : b.element == 4 ? 1e-4 : 1e-11;
            double largest = 0, difference = 0;
            for (int m = 0; m < n[0] * n[1] * n[2]; m++) {
                const size_t at = (size_t)(m % n[0] + m / n[0] % n[1] * b.alone.stride_u[0] + m / n[0] / n[1] * b.alone.stride_u[1]);
                const double x = load(u_of(&b, u, q), at, b.element), y = load(u_of(&b, expected, q), at, b.element);
                if (isfinite(y)) largest = fmax(largest, fabs(y));
                if (isfinite(x) && isfinite(y)) difference = fmax(difference, fabs(x - y));
                if (!isfinite(x) != !isfinite(y)) fail_msg("%s, problem %d: %g, alone %g", describe(&b.desc), q, x, y);
            }
            if (!(difference <= round_off * largest))
                fail_msg("%s, problem %d of %d: off by %g of %g", describe(&b.desc), q, b.desc.batch, difference, largest);
        }
        assert_true(same_outcome || stop.rtol == PG_NONE);
        free(f), free(u), free(expected);
    }
}

/* A batch of a large and a small problem, or 0, with default options, of every kind of face. */
static void a_small_problem_converges_beside_a_large_one(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { NX = 12, NY = 9 };
    static double u[2][NY][NX], f[2][NY][NX];
    static const double sizes[] = {0, 1e-10, 1e-30};
    for (int run = 0; run < 6 * 3; run++) {
        const pg_face_kind kind = (pg_face_kind)(run / 3);
        pg_desc desc = {.n = {NX, NY}, .batch = 2, .centring = {PG_CELL, PG_CELL}, .backend = backend};
        for (int side = 0; side < 4; side++) desc.face[side].kind = kind, desc.face[side].a = desc.face[side].b = 1;
        for (int j = 0; j < NY; j++)
            for (int i = 0; i < NX; i++)
                f[0][j][i] = (i * 7 + j * 5) % 11 - 5, f[1][j][i] = sizes[run % 3] * ((i * 3 + j * 8) % 13 - 6);
        pg_report report;
        assert_int_equal(pg_solve_once(&desc, u, f, &report), PG_OK);
        if (report.outcome != PG_CONVERGED)
            fail_msg("face kind %d, sizes %g: problem %d %s", (int)kind, sizes[run % 3], report.problem, report.message);
    }
}

/* Many small problems and few large ones, with and without own transforms, every precision. */
static void direct_batches_are_exact(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int shapes[][4] = {{31, 31, 1, 40}, {29, 13, 1, 50}, {64, 1, 1, 30}, {1, 17, 1, 9}, {12, 9, 10, 20}};
    rng r = {4};
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
        for (int kind = 0; kind < 6; kind++) {
            static const char *const ends[] = {"DD", "NN", "PP", "DN", "ND", "PP"};
            pg_desc desc = {0};
            memcpy(desc.n, shapes[shape], sizeof desc.n);
            desc.batch = shapes[shape][3], desc.flags = PG_DIRECT, desc.backend = backend;
            desc.alpha = kind == 1 || kind == 2 ? 0 : kind == 5 ? -3.7 : 1.5;
            for (int axis = 0; axis < 3; axis++) {
                desc.centring[axis] = kind % 2 ? PG_CELL : PG_NODE;
                set_ends(&desc, axis, ends[kind]);
            }
            pg_desc one = desc;
            one.batch = 1;
            ref p;
            ref_create(&p, &one);
            const size_t points = ref_points(&p), all = points * (size_t)desc.batch;
            double *exact = (double *)random_array(&r, all, 8), *f = allocate(all * 8), *u = allocate(all * 8);
            double worst = 0;
            for (int q = 0; q < desc.batch; q++)
                REF_EACH(&p, i, j, k)
                    f[(size_t)q * points + (size_t)ref_f(&p, i, j, k)] =
                        (double)ref_apply(&p, exact + (size_t)q * points, i, j, k);
            pg_solver *solver = create(&desc);
            OK(pg_solve(solver, u, f, NULL), solver);
            pg_report report;
            OK(pg_get_report(solver, &report), solver);
            pg_destroy(solver);
            for (int q = 0; q < desc.batch; q++) {
                const long double shift = p.singular && desc.alpha == 0 ? ref_mean(&p, exact + (size_t)q * points) : 0;
                REF_EACH(&p, i, j, k) {
                    const size_t at = (size_t)q * points + (size_t)ref_u(&p, i, j, k);
                    const double e = fabs((double)(u[at] - (exact[at] - shift)));
                    if (!(e <= worst)) worst = e;
                }
            }
            if (!(worst <= 1e-11)) fail_msg("%s, batch %d: %.1e", describe(&desc), desc.batch, worst);
            if (report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(&desc), report.message);
            ref_free(&p);
            free(exact), free(f), free(u);
        }
}

static int calls, cancel_in;
static int watch(void *user, const pg_report *so_far)
{
    (void)user;
    calls++;
    return so_far->problem == cancel_in;
}

/* The monitor sees which problem it is about; the rest of a cancelled batch stays as it was. */
static void a_monitor_cancels_the_rest_of_a_batch(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 9, BATCH = 5 };
    for (int q = 0; q < 7; q++) {
        double u[BATCH][N][N], f[BATCH][N][N];
        for (int i = 0; i < BATCH * N * N; i++) (&u[0][0][0])[i] = 7, (&f[0][0][0])[i] = 1 + i % 5;
        pg_desc desc = {0};
        desc.n[0] = desc.n[1] = N, desc.batch = BATCH, desc.flags = methods[q], desc.backend = backend;
        pg_solver *solver = create(&desc);
        const pg_stop stop = {.monitor = watch};
        pg_report report;
        calls = 0, cancel_in = 2;
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_CANCELLED);
        assert_int_equal(report.problem, 2);
        assert_true(calls > 2);
        assert_true(u[0][4][4] != 7 && u[1][4][4] != 7 && u[3][4][4] == 7 && u[4][4][4] == 7);
        cancel_in = -1;
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_CONVERGED);
        pg_destroy(solver);
    }
}

static void bad_batches_are_refused(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    pg_desc desc = {0};
    desc.n[0] = desc.n[1] = 8, desc.backend = backend;
    pg_solver *solver;
    static const int counts[] = {-1, 1 << 29};
    for (int q = 0; q < 2; q++) {
        desc.batch = counts[q];
        assert_int_equal(pg_create(&desc, &solver), PG_ERROR_ARGUMENT);
        assert_non_null(strstr(pg_last_error(NULL), "batch is "));
    }
    static const int64_t overlapping[][3] = {{8, 64, 63}, {16, 64, 4}, {8, 64, 8}, {8, 64, -64}, {8, 64, INT64_MAX / 8}};
    desc.batch = 3;
    for (int q = 0; q < 5; q++)
        for (int which = 0; which < 2; which++) {
            pg_desc bad = desc;
            memcpy(which ? bad.stride_f : bad.stride_u, overlapping[q], sizeof overlapping[q]);
            assert_int_equal(pg_create(&bad, &solver), PG_ERROR_ARGUMENT);
            assert_non_null(strstr(pg_last_error(NULL), which ? "stride_f" : "stride_u"));
        }
    /* windows of one array: interleaved rows are apart, the last problem of one in the other is not */
    double *array = allocate(2 * 3 * 64 * sizeof *array);
    for (int i = 0; i < 2 * 3 * 64; i++) array[i] = i % 7;
    desc.stride_u[0] = desc.stride_f[0] = 16, desc.stride_u[2] = desc.stride_f[2] = 128;
    solver = create(&desc);
    OK(pg_solve(solver, array, array + 8, NULL), solver);
    assert_int_equal(pg_solve(solver, array, array + 2 * 128 + 7, NULL), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(solver), "overlap"));
    pg_desc resolved;
    OK(pg_query_desc(solver, &resolved), solver);
    assert_int_equal(resolved.batch, 3);
    assert_int_equal(resolved.stride_u[2], 128);
    pg_destroy(solver);
    free(array);
}

/* Device arrays, and a captured solve replayed with another f: the bits of host arrays. */
static void captured_batches_give_the_same_bits(void **state)
{
    const pg_backend backend = backend_or_skip(state);
#ifndef PG_TEST_CUDA
    (void)backend;
    skip();
#else
    enum { N = 15, BATCH = 6, BYTES = BATCH * N * N * (int)sizeof(double) };
    static double f[2][BATCH][N][N], u[BATCH][N][N], expected[2][BATCH][N][N];
    rng r = {5};
    for (int q = 0; q < 2 * BATCH * N * N; q++) (&f[0][0][0][0])[q] = rng_uniform(&r, -1, 1);
    int runtime = 0, driver = 0;    /* solves to a tolerance need CUDA 12.4 */
    assert_int_equal(cudaRuntimeGetVersion(&runtime), cudaSuccess);
    assert_int_equal(cudaDriverGetVersion(&driver), cudaSuccess);
    const int ways = runtime < 12040 || driver < 12040 ? 1 : 2;
    for (int method = 0; method < 4; method++)
        for (int checked = 0; checked < ways; checked++) {
            pg_desc desc = {0};
            desc.n[0] = desc.n[1] = N, desc.batch = BATCH, desc.backend = backend;
            desc.flags = method == 3 ? PG_DIRECT | PG_MIXED : methods[method];
            const pg_stop stop = {.rtol = checked ? 0 : PG_NONE, .guess = PG_GUESS_ZERO};
            pg_solver *host = create(&desc);
            for (int q = 0; q < 2; q++) OK(pg_solve(host, expected[q], f[q], &stop), host);
            pg_destroy(host);
            cudaStream_t stream;
            cudaGraph_t graph;
            cudaGraphExec_t exec;
            void *device_u, *device_f;
            assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
            assert_int_equal(cudaMalloc(&device_u, BYTES), cudaSuccess);
            assert_int_equal(cudaMalloc(&device_f, BYTES), cudaSuccess);
            desc.memory = PG_MEM_DEVICE, desc.stream = stream;
            pg_solver *solver = create(&desc);
            assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
            const pg_status status = pg_solve(solver, device_u, device_f, &stop);
            assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
            OK(status, solver);
            assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
            for (int q = 0; q < 2; q++) {
                cudaMemcpy(device_f, f[q], BYTES, cudaMemcpyHostToDevice);
                assert_int_equal(cudaGraphLaunch(exec, stream), cudaSuccess);
                cudaStreamSynchronize(stream);
                cudaMemcpy(u, device_u, BYTES, cudaMemcpyDeviceToHost);
                assert_memory_equal(u, expected[q], BYTES);
            }
            pg_report report;
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.outcome, checked ? PG_CONVERGED : PG_COMPLETED);
            cudaGraphExecDestroy(exec);
            cudaGraphDestroy(graph);
            pg_destroy(solver);
            cudaFree(device_u);
            cudaFree(device_f);
            cudaStreamDestroy(stream);
        }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(each_problem_is_solved_as_if_alone),
        ON_BOTH(a_mean_that_is_removed_is_told_whichever_problem_it_is),
        ON_BOTH(pieces_act_on_every_problem),
        ON_BOTH(a_bad_problem_spoils_no_other),
        ON_BOTH(problems_of_unlike_sizes_do_not_mix),
        ON_BOTH(a_small_problem_converges_beside_a_large_one),
        ON_BOTH(direct_batches_are_exact),
        ON_BOTH(a_monitor_cancels_the_rest_of_a_batch),
        ON_BOTH(bad_batches_are_refused),
        ON_CUDA(captured_batches_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
