/* PG_DIRECT against test/ref.h in long double: every kind of axis, alpha of both signs, resonances, bounds. */
#include <float.h>
#ifdef PG_TEST_CUDA
#include <cuda_runtime.h>
#endif
#include "ref.h"

enum { LONGEST = 40, FACE = 1025 * 13, LONGEST_PLANE = 260 };

typedef struct problem {
    pg_desc desc;
    double coord[LONGEST_PLANE + 2], weight[LONGEST_PLANE], conductance[LONGEST_PLANE + 1];
    double face[6][FACE]; /* holds floats for PG_F32 */
} problem;

static problem box; /* the one under test */

static void begin(pg_backend backend, int dim)
{
    memset(&box.desc, 0, sizeof box.desc);
    box.desc.dim = dim;
    box.desc.backend = backend;
    set_choice(&box.desc, PG_DIRECT);
    for (int axis = 0; axis < 3; axis++) box.desc.n[axis] = 1;
}

/* Boundary data: on each face nothing, a constant or an array. */
static void random_faces(rng *r)
{
    const int64_t points = (int64_t)box.desc.n[0] * box.desc.n[1] * box.desc.n[2];
    int64_t values = LONGEST * LONGEST;
    for (int axis = 0; axis < box.desc.dim; axis++)
        if (points / box.desc.n[axis] > values) values = points / box.desc.n[axis];
    assert_true(values <= FACE);
    for (int q = 0; q < 6; q++) {
        pg_face *face = &box.desc.face[q];
        const int what = rng_int(r, 0, 2);
        face->value = what == 1 ? rng_uniform(r, -1, 1) : 0;
        face->array = what == 2 && face->kind != PG_PERIODIC ? box.face[q] : NULL;
        for (int64_t i = 0; i < values && face->array; i++) {
            const double g = rng_uniform(r, -1, 1);
            if (box.desc.flags & PG_F32)
                ((float *)box.face[q])[i] = (float)g;
            else
                box.face[q][i] = g;
        }
    }
}

static const char *const plain_ends[] = {"DD", "DN", "ND", "NN", "PP"};
static const char *const robin_ends[] = {"DR", "NR", "RD", "RN", "RR"};

/* An axis that can be transformed; its spacing such that the three axes couple alike. */
static void plain_axis(rng *r, int axis, int n)
{
    box.desc.n[axis] = n;
    box.desc.centring[axis] = rng_int(r, 0, 1) ? PG_CELL : PG_NODE;
    box.desc.h[axis] = rng_int(r, 0, 1) ? rng_uniform(r, 0.5, 1.5) / LONGEST : 0;
    set_ends(&box.desc, axis, plain_ends[rng_int(r, 0, 4)]);
}

static void random_strides(rng *r)
{
    const int *n = box.desc.n;
    int64_t *const strides[2] = {box.desc.stride_u, box.desc.stride_f};
    for (int q = 0; q < 2; q++) {
        if (rng_int(r, 0, 1)) continue;
        strides[q][0] = n[0] + rng_int(r, 0, 5);
        strides[q][1] = strides[q][0] * (n[1] + rng_int(r, 0, 2)) + rng_int(r, 0, 3);
    }
}

/* Coordinates with few bits have exact differences and midpoints: what is left is the error of the solver. */
static double exact_bits(double x) { return rint(x * 0x1p30) * 0x1p-30; }

/* Makes one axis one that cannot be transformed: stretched, with a metric, with Robin ends. */
static void special_axis(rng *r, int axis)
{
    const int n = box.desc.n[axis], periodic = box.desc.face[2 * axis].kind == PG_PERIODIC, what = rng_int(r, 0, 2);
    if (what == 0) {
        set_ends(&box.desc, axis, robin_ends[rng_int(r, 0, 4)]);
    } else if (what == 1 && n > 1) {
        const double phase = rng_uniform(r, 0, 6), strength = rng_uniform(r, 0.1, 0.95);
        box.desc.h[axis] = 0;
        box.desc.coord[axis] = box.coord;
        box.coord[0] = exact_bits(rng_uniform(r, -1, 1));
        for (int i = 0; i <= n; i++) {
            const double step = 1 + strength * sin(phase + 6.0 * i / (n + 1));
            box.coord[i + 1] = box.coord[i] + exact_bits(step / LONGEST);
        }
    } else {
        const double power = rng_int(r, 0, 1) ? 1 : -1;
        const int closed = !periodic && power > 0 && rng_int(r, 0, 1);
        const double h = 1.0 / n, origin = closed ? 0 : 0.3;
        if (closed) box.desc.centring[axis] = PG_CELL;
        box.desc.h[axis] = h;
        box.desc.weight[axis] = box.weight, box.desc.conductance[axis] = box.conductance;
        for (int i = 0; i < n; i++) box.weight[i] = pow(origin + (i + 0.5) * h, power);
        for (int i = 0; i <= n; i++) box.conductance[i] = pow(origin + i * h, power);
        if (periodic) box.conductance[n] = box.conductance[0];
    }
}

/* The element of padding and of unused memory: not a number, of a kind that no arithmetic makes. */
static void poison(void *array, size_t elements, int f32)
{
    const uint64_t nan64 = 0x7ff4deadbeef1234u;
    const uint32_t nan32 = 0x7fa12345u;
    for (size_t i = 0; i < elements; i++)
        memcpy((char *)array + i * (f32 ? 4 : 8), f32 ? (const void *)&nan32 : (const void *)&nan64, f32 ? 4 : 8);
}

typedef struct outcome {
    double error;    /* max |u - u*| / max |u*|, for singular problems up to the mean */
    double backward; /* max |f - A u| / (max |f| + |A| max |u|) */
    double norm;     /* |A| */
    pg_report report;
} outcome;

/* Solves f = A u* - boundary terms for a random u*. u holds NaN before, and the padding of u and f NaN throughout. */
static outcome solve(rng *r, const pg_stop *stop)
{
    const pg_desc *desc = &box.desc;
    ref p;
    ref_create(&p, desc);
    const size_t size = p.f32 ? 4 : 8, extent_u = ref_extent_u(&p), extent_f = ref_extent_f(&p);
    char *exact = allocate(extent_u * size), *u = allocate(extent_u * size), *before = allocate(extent_u * size);
    char *f = allocate(extent_f * size);
    poison(exact, extent_u, p.f32), poison(u, extent_u, p.f32), poison(f, extent_f, p.f32);
    memcpy(before, u, extent_u * size);
    REF_EACH(&p, i, j, k) ref_store(&p, exact, ref_u(&p, i, j, k), rng_uniform(r, -1, 1));
    REF_EACH(&p, i, j, k)
    ref_store(&p, f, ref_f(&p, i, j, k), ref_apply(&p, exact, i, j, k) - ref_boundary(&p, i, j, k));

    outcome result;
    memset(&result, 0, sizeof result);
    pg_solver *solver = NULL;
    const pg_status status = pg_create(desc, &solver);
    if (status != PG_OK) fail_msg("%s: %s", describe(desc), pg_last_error(NULL));
    OK(pg_solve(solver, u, f, stop), solver);
    OK(pg_get_report(solver, &result.report), solver);
    pg_destroy(solver);

    const int singular = p.singular && desc->alpha == 0;
    const long double shift = singular ? ref_mean(&p, exact) : 0;
    long double error = 0, largest = 0, residual = 0, largest_f = 0;
    REF_EACH(&p, i, j, k)
    {
        const long double value = ref_load(&p, exact, ref_u(&p, i, j, k));
        const long double e = fabsl(ref_load(&p, u, ref_u(&p, i, j, k)) - (value - shift));
        if (!(e <= error)) error = e; /* lets a NaN in, and no later value out */
        largest = fmaxl(largest, fabsl(value));
        const long double d = fabsl(ref_residual(&p, u, f, i, j, k) - (long double)result.report.removed_mean);
        if (!(d <= residual)) residual = d;
        largest_f = fmaxl(largest_f, fabsl(ref_load(&p, f, ref_f(&p, i, j, k))));
        largest_f = fmaxl(largest_f, fabsl(ref_boundary(&p, i, j, k)));
    }
    result.norm = (double)ref_largest_row(&p);
    result.error = (double)(error / largest);
    result.backward = largest_f > 0 || result.norm > 0 ? (double)(residual / (largest_f + result.norm * largest)) : 0;
    REF_EACH(&p, i, j, k)
    {
        const size_t at = (size_t)ref_u(&p, i, j, k) * size;
        memcpy(u + at, before + at, size);
    }
    if (memcmp(u, before, extent_u * size) != 0) fail_msg("%s: wrote between the rows of u", describe(desc));
    free(exact), free(u), free(before), free(f);
    ref_free(&p);
    return result;
}

static int largest_n(void)
{
    const int *n = box.desc.n, m = n[0] > n[1] ? n[0] : n[1];
    return m > n[2] ? m : n[2];
}

static double backward_bound(double epsilon_ratio)
{
    const int n = largest_n();
    return 2e-15 * epsilon_ratio * (n > 2 ? log2(n) : 1);
}

/* max A^-1 1, which is the maximum norm of the inverse where alpha >= 0: A is an M-matrix. */
static double norm_of_inverse_of(pg_desc desc)
{
    memset(desc.stride_u, 0, sizeof desc.stride_u), memset(desc.stride_f, 0, sizeof desc.stride_f);
    for (int q = 0; q < 6; q++) desc.face[q].value = 0, desc.face[q].array = NULL;
    const int points = desc.n[0] * desc.n[1] * desc.n[2];
    double *v = allocate((size_t)points * sizeof *v), *one = allocate((size_t)points * sizeof *one), largest = 0;
    for (int i = 0; i < points; i++) one[i] = 1;
    pg_solver *solver = create(&desc);
    OK(pg_solve(solver, v, one, NULL), solver);
    pg_destroy(solver);
    for (int i = 0; i < points; i++) largest = fmax(largest, v[i]);
    free(v), free(one);
    return largest;
}

/* A singular problem is as sensitive as one that is held at one end of its longest axis. */
static double norm_of_inverse(void)
{
    int singular = box.desc.alpha == 0;
    double largest = 0;
    for (int q = 0; q < 2 * box.desc.dim; q++) {
        const pg_face_kind kind = box.desc.face[q].kind;
        singular = singular && (kind == PG_NEUMANN || kind == PG_PERIODIC);
    }
    if (!singular) return norm_of_inverse_of(box.desc);
    for (int axis = 0; axis < box.desc.dim; axis++) {
        pg_desc desc = box.desc;
        desc.face[2 * axis].kind = PG_DIRICHLET;
        if (desc.face[2 * axis + 1].kind == PG_PERIODIC) desc.face[2 * axis + 1].kind = PG_DIRICHLET;
        largest = fmax(largest, norm_of_inverse_of(desc));
    }
    return largest;
}

/* 1e-12, or 1e-15 times the condition number where that is larger. */
static void must_be_exact(rng *r)
{
    const outcome result = solve(r, NULL);
    double bound = 1e-12;
    if (result.error > bound) bound = fmax(bound, 1e-15 * result.norm * norm_of_inverse());
    if (!(result.error <= bound)) fail_msg("%s: relative error %.2e > %.0e", describe(&box.desc), result.error, bound);
    if (!(result.backward <= backward_bound(1)))
        fail_msg("%s: backward error %.2e > %.2e", describe(&box.desc), result.backward, backward_bound(1));
    if (result.report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(&box.desc), result.report.message);
    assert_int_equal(result.report.iterations, 1);
}

/* In 1D, 2D and 3D; with plain axes beside it an axis is transformed or eliminated as it comes. */
static void every_end_pair_and_centring_at_every_size(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {1};
    for (int dim = 1; dim <= 3; dim++)
        for (int axis = 0; axis < dim; axis++) /* 22 and 29 have large prime factors */
            for (int n = 1; n <= LONGEST; n += full_or_small(1, n < 9 ? 1 : n == 16 ? 6 : 7))
                for (int pair = 0; pair < 10; pair++)
                    for (int cell = 0; cell < 2; cell++) {
                        begin(backend, dim);
                        for (int q = 0; q < dim; q++) plain_axis(&r, q, rng_int(&r, 1, 6));
                        box.desc.n[axis] = n, box.desc.h[axis] = 0;
                        box.desc.centring[axis] = cell ? PG_CELL : PG_NODE;
                        set_ends(&box.desc, axis, pair < 5 ? plain_ends[pair] : robin_ends[pair - 5]);
                        random_faces(&r);
                        must_be_exact(&r);
                    }
}

static void random_box(pg_backend backend, rng *r)
{
    begin(backend, rng_int(r, 1, 3));
    const int most = full_or_small(LONGEST, 17);
    for (int axis = 0; axis < box.desc.dim; axis++) plain_axis(r, axis, rng_int(r, 1, most));
    if (rng_int(r, 0, 1)) special_axis(r, rng_int(r, 0, box.desc.dim - 1));
    box.desc.alpha = rng_int(r, 0, 1) ? 0 : rng_uniform(r, 0.1, 50);
    box.desc.beta = rng_int(r, 0, 1) ? 0 : rng_uniform(r, 0.2, 5);
    random_strides(r);
    random_faces(r);
}

static void random_boxes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {2};
    for (int count = 0; count < full_or_small(600, 60); count++) {
        random_box(backend, &r);
        must_be_exact(&r);
    }
}

/* Planes that one kernel solves on a GPU, and some that are a little too large for it. */
static void random_planes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {12};
    for (int count = 0; count < full_or_small(120, 12); count++) {
        begin(backend, 2);
        const int most = count % 3 ? 132 : LONGEST_PLANE;
        for (int axis = 0; axis < 2; axis++) plain_axis(&r, axis, rng_int(&r, LONGEST, most));
        if (count % 2) special_axis(&r, rng_int(&r, 0, 1));
        box.desc.alpha = rng_int(&r, 0, 1) ? 0 : rng_uniform(&r, 0.1, 50);
        random_strides(&r);
        random_faces(&r);
        must_be_exact(&r);
    }
}

/* The bound on the error grows with the condition number, which a refinement step in f64 does not see. */
static void single_and_mixed_precision(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {3};
    for (int count = 0; count < full_or_small(200, 40); count++) {
        random_box(backend, &r);
        set_choice(&box.desc, choice_of(&box.desc) | (count % 2 ? PG_F32 : PG_MIXED));
        random_faces(&r);
        const pg_stop stop = {.rtol = count % 2 ? 1e-6 : 1e-13};
        const outcome result = solve(&r, &stop);
        const double bound = count % 2 ? backward_bound(FLT_EPSILON / DBL_EPSILON) : 1e-12;
        if (!(result.backward <= bound))
            fail_msg("%s: backward error %.2e > %.2e", describe(&box.desc), result.backward, bound);
        if (result.report.outcome != PG_CONVERGED && result.report.outcome != PG_STAGNATED)
            fail_msg("%s: %s", describe(&box.desc), result.report.message);
        if (result.report.iterations > (count % 2 ? 1 : 6))
            fail_msg("%s: %d iterations", describe(&box.desc), result.report.iterations);
    }
}

/* Larger boxes, every pair of ends and centring on all axes; primes too. */
static void backward_error_of_large_boxes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[][3] = {{513, 513, 1}, {512, 300, 1}, {65, 65, 65},
                                   {61, 72, 49},  {257, 129, 1}, {97, 211, 1}};
    static const int small[][3] = {{65, 33, 1}, {64, 31, 1}, {17, 17, 17}, {13, 16, 11}, {129, 35, 1}, {19, 257, 1}};
    rng r = {4};
    for (int size = 0; size < 6; size++)
        for (int pair = 0; pair < 5; pair++)
            for (int cell = 0; cell < 2; cell++) {
                const int *n = small_run() ? small[size] : sizes[size];
                begin(backend, n[2] > 1 ? 3 : 2);
                for (int axis = 0; axis < box.desc.dim; axis++) {
                    box.desc.n[axis] = n[axis];
                    box.desc.centring[axis] = cell ? PG_CELL : PG_NODE;
                    set_ends(&box.desc, axis, plain_ends[(pair + (size % 2) * axis) % 5]);
                }
                const outcome result = solve(&r, NULL);
                if (!(result.backward <= backward_bound(1)))
                    fail_msg("%s: backward error %.2e > %.2e", describe(&box.desc), result.backward, backward_bound(1));
                assert_int_equal(result.report.outcome, PG_CONVERGED);
            }
}

/* Lengths that a GPU transforms in one kernel, every pair of ends and centring along each axis, with boundary data; the
   other axes make rows that are whole words, or not. */
static void lengths_of_the_transforms(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int lengths[] = {16,  32,  48,  50,  64,  80,  96,  100, 128, 150, 192, 200,
                                  240, 250, 256, 300, 320, 384, 400, 448, 500, 512, 640, 1024};
    rng r = {31};
    for (int q = 0; q < full_or_small(24, 9); q++)
        for (int axis = 0; axis < 3; axis++)
            for (int pair = 0; pair < 5; pair++)
                for (int cell = 0; cell < 2; cell++) {
                    if (small_run() && (q + axis + cell) % 2) continue;
                    begin(backend, 3);
                    if ((pair + q) % 2) set_choice(&box.desc, choice_of(&box.desc) | PG_F32);
                    for (int a = 0; a < 3; a++) plain_axis(&r, a, a == axis ? lengths[q] : rng_int(&r, 5, 13));
                    box.desc.centring[axis] = cell ? PG_CELL : PG_NODE;
                    set_ends(&box.desc, axis, plain_ends[pair]);
                    if (!cell && plain_ends[pair][0] == plain_ends[pair][1] && plain_ends[pair][0] != 'P')
                        box.desc.n[axis] += plain_ends[pair][0] == 'D' ? -1 : 1;    /* as many intervals */
                    random_strides(&r);
                    random_faces(&r);
                    const outcome result = solve(&r, NULL);
                    const double bound = backward_bound(1) * (box.desc.flags & PG_F32 ? 5e8 : 1);
                    if (!(result.backward <= bound))
                        fail_msg("%s: backward error %.2e > %.2e", describe(&box.desc), result.backward, bound);
                }
}

/* Problems of a batch, nodes and cells, have the solutions that each of them has alone. */
static void batches_of_the_transforms(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { BATCH = 3, MOST = 129 * 13 * 13 };
    static const int lengths[] = {32, 128};
    static double f[BATCH * MOST], u[BATCH * MOST], alone[MOST];
    const pg_stop once = {.rtol = PG_NONE};
    rng r = {43};
    for (int round = 0; round < 5 * 2 * 2 * 3; round++) {
        const char *ends = plain_ends[round % 5];
        const int cell = round / 5 % 2, length = lengths[round / 10 % 2], axis = round / 20;
        if (small_run() && length == 128 && (round + axis) % 3) continue;
        begin(backend, 3);
        for (int a = 0; a < 3; a++) {
            box.desc.n[a] = a == axis ? length : rng_int(&r, 7, 13);
            box.desc.centring[a] = cell ? PG_CELL : PG_NODE;
            set_ends(&box.desc, a, ends);
            box.desc.face[2 * a].value = rng_uniform(&r, -1, 1);
            box.desc.face[2 * a + 1].value = rng_uniform(&r, -1, 1);
        }
        if (!cell && ends[0] == ends[1] && ends[0] != 'P')
            box.desc.n[axis] += ends[0] == 'D' ? -1 : 1; /* as many intervals */
        const int points = box.desc.n[0] * box.desc.n[1] * box.desc.n[2];
        for (int i = 0; i < BATCH * points; i++) f[i] = rng_uniform(&r, -1, 1);
        box.desc.batch = BATCH;
        pg_solver *solver = create(&box.desc);
        OK(pg_solve(solver, u, f, &once), solver);
        pg_destroy(solver);
        box.desc.batch = 1;
        solver = create(&box.desc);
        for (int q = 0; q < BATCH; q++) {
            OK(pg_solve(solver, alone, f + q * points, &once), solver);
            double largest = 0, difference = 0;
            for (int i = 0; i < points; i++) {
                const double e = fabs(u[q * points + i] - alone[i]);
                largest = fmax(largest, fabs(alone[i]));
                if (!(e <= difference)) difference = e;
            }
            if (!(difference <= 1e-11 * largest)) /* round-off times the condition of up to 129 values */
                fail_msg("%s: problem %d differs by %.2e of %.2e", describe(&box.desc), q, difference, largest);
        }
        pg_destroy(solver);
    }
}

/* In units of 2^58 and 2^-58, near the ends of the coefficients that f32 takes, where eigenvalues or their inverses are no
   normal floats, the solution is the same. */
static void units_far_from_one(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int units[] = {58, -58};
    static const int n[] = {9, 14, 96};
    enum { POINTS = 9 * 14 * 97 };
    static float f[POINTS], scaled[POINTS], u[POINTS], v[POINTS];
    const pg_stop once = {.rtol = PG_NONE};
    rng r = {41};
    for (int pair = 0; pair < 5; pair++)
        for (int q = 0; q < 4; q++) {
            const int cell = q % 2, unit = units[q / 2];
            begin(backend, 3);
            set_choice(&box.desc, choice_of(&box.desc) | PG_F32);
            for (int axis = 0; axis < 3; axis++) {
                box.desc.n[axis] = n[axis];
                box.desc.h[axis] = 1;
                box.desc.centring[axis] = cell ? PG_CELL : PG_NODE;
                set_ends(&box.desc, axis, plain_ends[pair]);
            }
            if (!cell && pair == 3) box.desc.n[2]++; /* as many intervals */
            if (!cell && pair == 0) box.desc.n[2]--;
            for (int i = 0; i < POINTS; i++) {
                f[i] = (float)rng_uniform(&r, -1, 1);
                scaled[i] = ldexpf(f[i], -unit);
            }
            pg_solver *solver = create(&box.desc);
            OK(pg_solve(solver, u, f, &once), solver);
            pg_destroy(solver);
            for (int axis = 0; axis < 3; axis++) box.desc.h[axis] = ldexp(1, unit);
            solver = create(&box.desc);
            OK(pg_solve(solver, v, scaled, &once), solver);
            pg_destroy(solver);
            const int points = box.desc.n[0] * box.desc.n[1] * box.desc.n[2];
            for (int i = 0; i < points; i++)
                if (ldexpf(v[i], -unit) != u[i])
                    fail_msg("%s, unit 2^%d: %g, not %g", describe(&box.desc), unit, ldexpf(v[i], -unit), u[i]);
        }
}

/* alpha < 0, between the eigenvalues or near some. The condition number is not known, so the backward error decides. */
static void negative_alpha(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {5};
    int close = 0;
    const int counts = full_or_small(600, 60);
    for (int count = 0; count < counts; count++) {
        random_box(backend, &r);
        box.desc.alpha = -pow(10, rng_uniform(&r, 0, 4));
        for (int axis = 0; axis < box.desc.dim; axis++) {
            const int periodic = box.desc.face[2 * axis].kind == PG_PERIODIC;
            if (periodic && (box.desc.coord[axis] || box.desc.weight[axis])) set_ends(&box.desc, axis, "DN");
        }
        const outcome result = solve(&r, NULL);
        if (!(result.backward <= backward_bound(1)))
            fail_msg("%s: backward error %.2e > %.2e", describe(&box.desc), result.backward, backward_bound(1));
        close += result.error <= 1e-11;
    }
    assert_true(close > counts * 9 / 10);
}

/* One axis has a length with a large prime factor: it is eliminated, whichever it is and whatever its ends, with alpha
   of either sign, also where that changes and where -alpha is an eigenvalue. */
static void awkward_lengths(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double alphas[] = {0, 7, -33.3, -2500};
    static const struct {
        const char *ends;
        pg_centring centring;
        int n;
    } axes[] = {
        {"DD", PG_NODE, 130}, {"NN", PG_NODE, 132}, {"DN", PG_CELL, 131}, {"PP", PG_CELL, 131}, {"PP", PG_CELL, 262}};
    rng r = {21};
    for (int dim = 1; dim <= 3; dim++)
        for (int axis = 0; axis < dim; axis++)
            for (int q = 0; q < 20; q += full_or_small(1, 3)) {
                begin(backend, dim);
                for (int a = 0; a < dim; a++)
                    box.desc.n[a] = 6, box.desc.centring[a] = PG_CELL, set_ends(&box.desc, a, q % 2 ? "PP" : "NN");
                box.desc.n[axis] = axes[q / 4].n, box.desc.centring[axis] = axes[q / 4].centring;
                set_ends(&box.desc, axis, axes[q / 4].ends);
                box.desc.alpha = alphas[q % 4];
                const outcome result = solve(&r, NULL);
                if (!(result.backward <= backward_bound(1)))
                    fail_msg("%s: backward error %.2e > %.2e", describe(&box.desc), result.backward, backward_bound(1));
                if (result.report.warning[0]) fail_msg("%s: %s", describe(&box.desc), result.report.warning);
                if (axes[q / 4].ends[0] != 'P' || box.desc.alpha >= 0) continue;
                const double n = box.desc.n[axis];
                box.desc.alpha = -4 * n * n * sin(PI * 3 / n) * sin(PI * 3 / n);
                assert_int_equal(solve(&r, NULL).report.outcome, PG_RESONANCE);
            }
}

/* Two such axes: one has to be transformed, and the report says so, with a length that would be better. */
static void slow_lengths_are_warned_of(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct {
        pg_centring centring;
        const char *ends, *text;
        int n;
    } cases[] = {{PG_CELL, "PP", "263 unknowns along x need transforms with the large prime factor 263", 263},
                 {PG_NODE, "DD", "262 unknowns along x need transforms with the large prime factor 263", 262},
                 {PG_NODE, "NN", "264 unknowns along x need transforms with the large prime factor 263", 264}};
    rng r = {22};
    for (int q = 0; q < 3; q++) {
        begin(backend, 2);
        for (int axis = 0; axis < 2; axis++) {
            box.desc.n[axis] = cases[q].n, box.desc.centring[axis] = cases[q].centring;
            set_ends(&box.desc, axis, cases[q].ends);
        }
        const outcome result = solve(&r, NULL);
        assert_non_null(strstr(result.report.warning, cases[q].text));
        assert_non_null(strstr(result.report.warning, q == 0 ? "; 270 would" : q == 1 ? "; 269 would" : "; 271 would"));
        box.desc.n[0] = q == 0 ? 270 : q == 1 ? 269 : 271;
        assert_string_equal(solve(&r, NULL).report.warning, "");
    }
}

/* -alpha is an eigenvalue of a sum of sines and cosines: the outcome says so, u is finite, and the rest of the solution
   is there. A little beside it the problem is solved. */
static void resonances_are_reported(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {6};
    for (int count = 0; count < full_or_small(100, 30); count++) {
        begin(backend, rng_int(&r, 1, 3));
        double eigenvalue = 0;
        for (int axis = 0; axis < box.desc.dim; axis++) {
            plain_axis(&r, axis, rng_int(&r, 2, 16));
            box.desc.h[axis] = 0;
            const int n = box.desc.n[axis], cell = box.desc.centring[axis] == PG_CELL;
            const int low = box.desc.face[2 * axis].kind == PG_DIRICHLET,
                      high = box.desc.face[2 * axis + 1].kind == PG_DIRICHLET,
                      periodic = box.desc.face[2 * axis].kind == PG_PERIODIC;
            const int m = rng_int(&r, 0, n - 1);
            const double intervals = cell || periodic ? n : n - 1 + low + high;
            const double turn = periodic ? (double)m / n : (m + 0.5 * (low + high)) / (2 * intervals);
            eigenvalue += 4 * intervals * intervals * sin(PI * turn) * sin(PI * turn);
        }
        if (eigenvalue < 1) continue;
        box.desc.alpha = -eigenvalue;
        const outcome at = solve(&r, NULL);
        if (at.report.outcome != PG_RESONANCE) fail_msg("%s: %s", describe(&box.desc), at.report.message);
        assert_true(at.error < 1e3); /* not divided by round-off */
        const pg_stop unchecked = {.rtol = PG_NONE};
        assert_int_equal(solve(&r, &unchecked).report.outcome, PG_RESONANCE);
        box.desc.alpha = -eigenvalue * (1 + 1e-7);
        const outcome beside = solve(&r, NULL);
        if (beside.report.outcome == PG_RESONANCE) fail_msg("%s: %s", describe(&box.desc), beside.report.message);
        assert_true(beside.backward <= backward_bound(1));
    }
}

/* One handle, many alphas: the solution is that of a new handle each time, bit for bit. */
static void alpha_may_change_its_sign(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 12 };
    static double f[N][N][N], u[N][N][N], fresh[N][N][N];
    static const double alphas[] = {0, -37, 3, -2500, 0};
    static const char *const ends[] = {"NN", "PP", "DN"};
    rng r = {7};
    for (int q = 0; q < N * N * N; q++) (&f[0][0][0])[q] = rng_uniform(&r, -1, 1);
    for (int pair = 0; pair < 3; pair++) {
        begin(backend, 3);
        for (int axis = 0; axis < 3; axis++) {
            box.desc.n[axis] = N;
            box.desc.centring[axis] = PG_CELL;
            set_ends(&box.desc, axis, ends[pair]);
        }
        pg_solver *solver = create(&box.desc);
        for (int q = 0; q < 5; q++) {
            OK(pg_set_alpha(solver, alphas[q]), solver);
            OK(pg_solve(solver, u, f, NULL), solver);
            pg_report report;
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.outcome, PG_CONVERGED);
            box.desc.alpha = alphas[q];
            pg_solver *other = create(&box.desc);
            OK(pg_solve(other, fresh, f, NULL), other);
            pg_destroy(other);
            assert_memory_equal(u, fresh, sizeof u);
        }
        pg_destroy(solver);
    }
}

/* f with a mean that no solution has: it is removed and reported, and u has mean zero. Every other solve has no
   tolerance, and every third box has axes that are transformed there and back on a GPU. */
static void singular_problems(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {8};
    for (int count = 0; count < full_or_small(100, 30); count++) {
        begin(backend, count % 3 ? rng_int(&r, 1, 3) : 3);
        const pg_stop once = {.rtol = PG_NONE};
        for (int axis = 0; axis < box.desc.dim; axis++) {
            plain_axis(&r, axis, rng_int(&r, 1, 20));
            set_ends(&box.desc, axis, rng_int(&r, 0, 2) ? "NN" : "PP");
            if (count % 3 == 0 && axis == 2)
                box.desc.n[2] = 96 + (box.desc.centring[2] == PG_NODE && box.desc.face[4].kind != PG_PERIODIC);
        }
        if (rng_int(&r, 0, 1)) {
            const int axis = rng_int(&r, 0, box.desc.dim - 1), n = box.desc.n[axis];
            if (n > 1 && count % 3) {
                box.desc.h[axis] = 0;
                box.desc.coord[axis] = box.coord;
                for (int i = 0; i <= n; i++) box.coord[i] = (i + 1.0) * (i + 1.0);
            }
        }
        ref p;
        ref_create(&p, &box.desc);
        const size_t points = ref_points(&p);
        double *u = allocate(points * sizeof *u), *f = allocate(points * sizeof *f);
        for (size_t q = 0; q < points; q++) f[q] = rng_uniform(&r, 0, 2);
        pg_solver *solver = create(&box.desc);
        OK(pg_solve(solver, u, f, count % 2 ? NULL : &once), solver);
        pg_report report;
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, count % 2 ? PG_CONVERGED : PG_COMPLETED);
        const double mean = (double)ref_mean(&p, f);
        if (!(fabs(report.removed_mean - mean) <= 1e-14)) fail_msg("%s: %g", describe(&box.desc), report.removed_mean);
        long double largest = 0, residual = 0;
        REF_EACH(&p, i, j, k)
        {
            largest = fmaxl(largest, fabsl(u[ref_u(&p, i, j, k)]));
            residual = fmaxl(residual, fabsl(ref_residual(&p, u, f, i, j, k) - report.removed_mean));
        }
        if (!(residual <= backward_bound(1) * (2 + ref_largest_row(&p) * largest)))
            fail_msg("%s: residual %.2Le", describe(&box.desc), residual);
        if (!(fabsl(ref_mean(&p, u)) <= 1e-14L * largest))
            fail_msg("%s: mean %.2Le", describe(&box.desc), ref_mean(&p, u));
        pg_destroy(solver);
        ref_free(&p);
        free(u), free(f);
    }
}

/* The mean that a singular problem loses is the same with and without a tolerance, which find it in different ways: in
   planes that one kernel solves and others, in f32, in lines too long for registers, in rows that are not packed. */
static void means_without_a_tolerance(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int shapes[][3] = {{61, 67, 1}, {127, 131, 1}, {311, 13, 1}, {13, 3001, 1}, {5, 7, 2503}, {53, 29, 31}};
    const pg_stop once = {.rtol = PG_NONE};
    rng r = {47};
    for (int count = 0; count < full_or_small(48, 12); count++) {
        const int *shape = shapes[count % 6], dim = shape[2] > 1 ? 3 : 2, f32 = count / 6 % 2;
        const int varied = (count + count / 6 + count / 12) % 2;
        begin(backend, dim);
        if (f32) set_choice(&box.desc, choice_of(&box.desc) | PG_F32);
        for (int axis = 0; axis < dim; axis++) {
            box.desc.n[axis] = shape[axis];
            box.desc.h[axis] = 0;
            box.desc.centring[axis] = (count / 24 + axis) % 2 ? PG_NODE : PG_CELL;
            set_ends(&box.desc, axis, axis ? "NN" : "PP");
            box.desc.face[2 * axis].value = axis ? 0.25 : 0;
        }
        const int last = dim - 1, edges = shape[last] - (box.desc.centring[last] == PG_NODE);
        double *const edge = allocate((size_t)(edges + 1) * sizeof *edge);
        for (int i = 0; i <= edges; i++) edge[i] = (double)i / edges * (1 + 0.4 * i / edges);
        if (varied) box.desc.coord[last] = edge;
        const size_t stride = (size_t)shape[0] + 3, elements = stride * (size_t)shape[1] * (size_t)shape[2];
        box.desc.stride_u[0] = box.desc.stride_f[0] = (int64_t)stride;
        void *const u = allocate(elements * sizeof(double)), *const f = allocate(elements * sizeof(double));
        for (size_t i = 0; i < elements; i++) {
            const double value = rng_uniform(&r, -1, 2);
            if (f32)
                ((float *)f)[i] = (float)value;
            else
                ((double *)f)[i] = value;
        }
        pg_solver *solver = create(&box.desc);
        pg_report without, with;
        OK(pg_solve(solver, u, f, &once), solver);
        OK(pg_get_report(solver, &without), solver);
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_get_report(solver, &with), solver);
        assert_int_equal(with.outcome, PG_CONVERGED);
        if (!(fabs(without.removed_mean - with.removed_mean) <= (f32 ? 2e-6 : 4e-14)))
            fail_msg("%s: mean %.17g, with a tolerance %.17g", describe(&box.desc), without.removed_mean,
                     with.removed_mean);
        pg_destroy(solver);
        free(u), free(f), free(edge);
    }
}

/* Two clusters of nodes, a gap between them and a closed end: the constant is the null mode to the last bit, else some
   of the mean of f is left in u and in the residual. */
static void the_constant_is_left_out_of_a_stretched_line(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 120, BATCH = 3 };
    static double edge[N], conductance[N + 1], u[BATCH][2 * N], f[BATCH][2 * N];
    rng r = {20};
    for (int across = 1; across <= 2; across++)
        for (int end = 0; end < 2; end++) {
            begin(backend, 2);
            box.desc.n[0] = N, box.desc.n[1] = across, box.desc.batch = BATCH;
            set_ends(&box.desc, 0, "NN"), set_ends(&box.desc, 1, "PP");
            for (int i = 1; i < N; i++) edge[i] = edge[i - 1] + (i == N / 2 ? 2000 : 1) / 100.0 / N;
            for (int i = 0; i <= N; i++) conductance[i] = i != end * N;
            box.desc.coord[0] = edge, box.desc.conductance[0] = conductance;
            for (int i = 0; i < BATCH * 2 * N; i++) (&f[0][0])[i] = rng_uniform(&r, 0, 2);
            pg_solver *solver = create(&box.desc);
            const pg_stop stop = {.rtol = PG_NONE};
            const double *const packed = &f[0][0];
            OK(pg_solve(solver, u, packed, &stop), solver);
            pg_destroy(solver);
            ref p;
            ref_create(&p, &box.desc);
            for (int q = 0; q < BATCH; q++) {
                const double *const uq = &u[0][0] + q * N * across, *const fq = packed + q * N * across;
                const long double mean = ref_mean(&p, fq);
                long double largest = 0, residual = 0;
                REF_EACH(&p, i, j, k)
                {
                    largest = fmaxl(largest, fabsl(uq[ref_u(&p, i, j, k)]));
                    residual = fmaxl(residual, fabsl(ref_residual(&p, uq, fq, i, j, k) - mean));
                }
                if (!(residual <= 1e-14 * (2 + ref_largest_row(&p) * largest)))
                    fail_msg("problem %d of %s: residual %.2Le, round-off %.2Le", q, describe(&box.desc), residual,
                             1e-14 * (2 + ref_largest_row(&p) * largest));
                if (!(fabsl(ref_mean(&p, uq)) <= 1e-13L * largest))
                    fail_msg("problem %d of %s: mean %.2Le of %.2Le", q, describe(&box.desc), ref_mean(&p, uq),
                             largest);
            }
            ref_free(&p);
        }
}

/* Arrays as the back end takes them, so that nothing is copied on the way. */
static void *to_backend(const void *host, size_t bytes)
{
    void *p = NULL;
#ifdef PG_TEST_CUDA
    if (box.desc.memory == PG_MEM_DEVICE) {
        assert_int_equal(cudaMalloc(&p, bytes), cudaSuccess);
        assert_int_equal(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
        return p;
    }
#endif
    p = allocate(bytes);
    return memcpy(p, host, bytes);
}
static void from_backend(void *host, void *p, size_t bytes)
{
#ifdef PG_TEST_CUDA
    if (box.desc.memory == PG_MEM_DEVICE) {
        assert_int_equal(cudaMemcpy(host, p, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
        assert_int_equal(cudaFree(p), cudaSuccess);
        return;
    }
#endif
    memcpy(host, p, bytes);
    free(p);
}

/* f becomes u in its place, to the bit, on every route; all of f is there when it is read. */
static void u_and_f_may_be_the_same_array(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const pg_stop stop = {.rtol = PG_NONE};
    rng r = {14};
    for (int count = 0; count < full_or_small(240, 60); count++) {
        if (count % 4) {
            random_box(backend, &r);
        } else {
            begin(backend, 2);
            for (int axis = 0; axis < 2; axis++) plain_axis(&r, axis, rng_int(&r, LONGEST, full_or_small(150, 70)));
            if (count % 8) special_axis(&r, rng_int(&r, 0, 1));
            random_strides(&r);
        }
        memset(box.desc.stride_f, 0, sizeof box.desc.stride_f);
        for (int q = 0; q < 6; q++) box.desc.face[q].array = NULL; /* they would have to be on the device too */
        if (count % 3 == 0) set_choice(&box.desc, choice_of(&box.desc) | PG_F32);
        if (count % 5 == 0) box.desc.batch = 3;
        const size_t size = box.desc.flags & PG_F32 ? 4 : 8;
        if (backend == PG_CUDA) box.desc.memory = PG_MEM_DEVICE;
        pg_solver *solver = create(&box.desc);
        pg_desc query;
        OK(pg_query_desc(solver, &query), solver);
        pg_destroy(solver);
        memcpy(box.desc.stride_f, query.stride_u, sizeof query.stride_u);
        memcpy(box.desc.stride_u, query.stride_u, sizeof query.stride_u);
        solver = create(&box.desc);
        const int64_t *stride = query.stride_u;
        const size_t elements = (size_t)(query.n[0] + (query.n[1] - 1) * stride[0] + (query.n[2] - 1) * stride[1] +
                                         (query.batch - 1) * stride[2]);
        char *f = allocate(elements * size), *apart = allocate(elements * size), *same = allocate(elements * size);
        for (size_t q = 0; q < elements; q++) {
            const double value = rng_uniform(&r, -1, 1);
            if (size == 4)
                ((float *)f)[q] = (float)value;
            else
                ((double *)f)[q] = value;
        }
        void *df = to_backend(f, elements * size), *du = to_backend(f, elements * size);
        void *both = to_backend(f, elements * size);
        OK(pg_solve(solver, du, df, &stop), solver);
        OK(pg_solve(solver, both, both, &stop), solver);
        pg_report report;
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(pg_solve(solver, both, both, NULL), PG_ERROR_ARGUMENT);
        assert_non_null(strstr(pg_last_error(solver), "PG_NONE"));
        from_backend(apart, du, elements * size), from_backend(same, both, elements * size);
        if (memcmp(apart, same, elements * size)) fail_msg("batch %d: %s", query.batch, describe(&box.desc));
        from_backend(apart, df, elements * size);
        assert_memory_equal(apart, f, elements * size);
        pg_destroy(solver);
        free(f), free(apart), free(same);
    }
}

/* In place rows and planes have to lie alike; other methods read f until the end. */
static void u_and_f_are_the_same_array_only_where_that_works(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double both[12 * 8] = {0};
    for (int q = 0; q < 3; q++) {
        const pg_stop stop = {.rtol = PG_NONE};
        begin(backend, 2);
        box.desc.n[0] = box.desc.n[1] = 8;
        set_choice(&box.desc, q == 0 ? PG_DIRECT : q == 1 ? PG_DIRECT | PG_MIXED : PG_FMG);
        if (q == 0) box.desc.stride_f[0] = 12;
        pg_solver *solver = create(&box.desc);
        assert_int_equal(pg_solve(solver, both, both, &stop), PG_ERROR_ARGUMENT);
        assert_non_null(strstr(pg_last_error(solver), q == 0 ? "stride_f[0] 12" : "overlap"));
        pg_destroy(solver);
    }
}

/* Tanh-stretched, and r dr from the axis on: long lines, in which recomputed pivots and marks matter. */
static void long_lines(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { MOST = 700 };
    static double coord[MOST + 1], weight[MOST], conductance[MOST + 1];
    rng r = {9};
    for (int count = 0; count < full_or_small(40, 12); count++) {
        const int dim = rng_int(&r, 1, 3), axis = rng_int(&r, 0, dim - 1), n = rng_int(&r, 15, full_or_small(MOST, 90));
        begin(backend, dim);
        for (int q = 0; q < dim; q++) plain_axis(&r, q, rng_int(&r, 1, 6));
        box.desc.n[axis] = n;
        box.desc.centring[axis] = PG_CELL;
        const char *const ends[] = {"DD", "NN", "PP", "ND"};
        set_ends(&box.desc, axis, ends[count % 4]);
        box.desc.h[axis] = 0;
        if (count % 3) {
            for (int i = 0; i <= n; i++) coord[i] = exact_bits(tanh(2.5 * (2.0 * i / n - 1)));
            box.desc.coord[axis] = coord;
        } else if (count % 4 != 2) {
            for (int i = 0; i < n; i++) weight[i] = (i + 0.5) / n;
            for (int i = 0; i <= n; i++) conductance[i] = (double)i / n;
            box.desc.weight[axis] = weight, box.desc.conductance[axis] = conductance;
        }
        box.desc.alpha = count % 4 != 2 && count % 5 == 0 ? -300.3 : 0;
        const outcome result = solve(&r, NULL);
        if (!(result.backward <= backward_bound(1)))
            fail_msg("%s: backward error %.2e > %.2e", describe(&box.desc), result.backward, backward_bound(1));
    }
}

/* One line alone, in many parts on a GPU; prime lengths. */
static void very_long_lines(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {13};
    for (int pair = 0; pair < 5; pair++)
        for (int cell = 0; cell < 2; cell++) {
            begin(backend, 1);
            box.desc.n[0] = pair == 4 ? 2003 : 20011;
            box.desc.centring[0] = cell ? PG_CELL : PG_NODE;
            set_ends(&box.desc, 0, plain_ends[pair]);
            const pg_stop stop = {.rtol = PG_NONE};
            const outcome result = solve(&r, &stop);
            if (!(result.backward <= backward_bound(1)))
                fail_msg("%s: backward error %.2e > %.2e", describe(&box.desc), result.backward, backward_bound(1));
        }
}

static void what_cannot_be_solved_is_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double edge[] = {0, 1, 3, 6, 10};
    pg_solver *solver = NULL;
    begin(backend, 3);
    for (int axis = 0; axis < 3; axis++) box.desc.n[axis] = 4, box.desc.centring[axis] = PG_CELL;
    box.desc.coord[0] = edge;
    set_ends(&box.desc, 2, "RD");
    assert_int_equal(pg_create(&box.desc, &solver), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(NULL), "x and z"));
    assert_non_null(strstr(pg_last_error(NULL), "PG_FMG"));

    begin(backend, 2); /* 2D: the second axis is y */
    for (int axis = 0; axis < 2; axis++) box.desc.n[axis] = 4, box.desc.centring[axis] = PG_CELL;
    box.desc.coord[0] = box.desc.coord[1] = edge;
    assert_int_equal(pg_create(&box.desc, &solver), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(NULL), "x and y"));

    box.desc.coord[1] = NULL; /* a periodic stretched axis and alpha < 0 */
    set_ends(&box.desc, 0, "PP");
    box.desc.alpha = -1;
    assert_int_equal(pg_create(&box.desc, &solver), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(NULL), "periodic axis x"));
    box.desc.alpha = 0;
    solver = create(&box.desc);
    assert_int_equal(pg_set_alpha(solver, -1), PG_ERROR_UNSUPPORTED);
    double u[16] = {0}, f[16] = {0};
    assert_int_equal(pg_smooth(solver, u, f, 1), PG_ERROR_UNSUPPORTED);
    assert_int_equal(pg_cycle(solver, u, f, 1), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(solver), "PG_DIRECT"));
    OK(pg_solve(solver, u, f, NULL), solver);
    pg_destroy(solver);
    solver = NULL;

    begin(backend, 1);
    box.desc.n[0] = 4;
    box.desc.alpha = -1;
    set_choice(&box.desc, PG_VCYCLE); /* alpha < 0 is for PG_DIRECT */
    assert_int_equal(pg_create(&box.desc, &solver), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(NULL), "PG_DIRECT"));
    static const unsigned refused[] = {PG_DIRECT | PG_FMG, PG_DIRECT | PG_SMOOTH_JACOBI, PG_DIRECT | PG_SYMMETRIC};
    box.desc.alpha = 0;
    for (int q = 0; q < 3; q++) {
        set_choice(&box.desc, refused[q]);
        assert_int_not_equal(pg_create(&box.desc, &solver), PG_OK);
    }
    set_choice(&box.desc, PG_DIRECT);
    box.desc.omega = 1;
    assert_int_equal(pg_create(&box.desc, &solver), PG_ERROR_UNSUPPORTED);
    assert_null(solver);
}

/* PG_FASTEST: directly where that is possible, else by multigrid, and it says so; alpha < 0 only directly. */
static void the_fastest_method_is_direct_where_it_can_be(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct {
        const char *ends;
        int special, more, n;
        double alpha;
        unsigned flags, method;
    } cases[] = {{"DD", 0, 0, 150, 0, 0, PG_DIRECT},
                 {"NN", 1, 0, 144, 0, 0, PG_DIRECT},
                 {"PP", 1, 1, 9, 0, 0, PG_FMG},
                 {"DN", 1, 1, 9, 2, PG_F32, PG_FMG},
                 {"PP", 0, 0, 16, -3.3, 0, PG_DIRECT},
                 {"DD", 1, 0, 11, -3.3, 0, PG_DIRECT},
                 {"DD", 0, 0, 140, 0, PG_MIXED, PG_DIRECT},
                 {"NN", 1, 1, 14, 1, PG_MIXED, PG_FMG}};
    double coord[2][LONGEST_PLANE + 1];
    rng r = {13};
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        begin(backend, 2);
        set_choice(&box.desc, PG_FASTEST | cases[q].flags), box.desc.alpha = cases[q].alpha;
        for (int axis = 0; axis < 2; axis++) {
            box.desc.n[axis] = cases[q].n, box.desc.centring[axis] = PG_CELL;
            set_ends(&box.desc, axis, cases[q].ends);
            if (!(axis ? cases[q].more : cases[q].special)) continue;
            box.desc.coord[axis] = coord[axis];
            for (int i = 0; i <= cases[q].n; i++) coord[axis][i] = exact_bits((i + 0.2 * sin(i)) / cases[q].n);
        }
        pg_solver *solver = create(&box.desc);
        pg_desc resolved;
        OK(pg_query_desc(solver, &resolved), solver);
        pg_destroy(solver);
        assert_int_equal(resolved.flags & (PG_DIRECT | PG_FMG | PG_FASTEST), cases[q].method);
        const pg_stop stop = {.rtol = cases[q].flags == PG_F32 ? 1e-4 : 1e-9};
        const outcome result = solve(&r, &stop);
        if (result.report.outcome != PG_CONVERGED) fail_msg("case %zu: %s", q, result.report.message);
    }
    box.desc.alpha = -1; /* both axes stretched */
    pg_solver *solver;
    pg_desc long_box = {0}, resolved; /* of a length that transforms are slow at, 4099, which none need */
    long_box.backend = backend, long_box.n[0] = 4098, long_box.n[1] = 15, set_choice(&long_box, PG_FASTEST);
    solver = create(&long_box);
    OK(pg_query_desc(solver, &resolved), solver);
    assert_true(resolved.flags & PG_DIRECT);
    pg_destroy(solver);
    assert_int_equal(pg_create(&box.desc, &solver), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(NULL), "alpha is -1"));
    static const unsigned refused[] = {PG_FASTEST | PG_FMG, PG_FASTEST | PG_SMOOTH_RBGS, PG_FASTEST | PG_SYMMETRIC};
    for (int q = 0; q < 3; q++) {
        begin(backend, 1);
        box.desc.n[0] = 9, set_choice(&box.desc, refused[q]);
        assert_int_not_equal(pg_create(&box.desc, &solver), PG_OK);
        assert_non_null(strstr(pg_last_error(NULL), q ? "PG_FASTEST" : "method"));
    }
}

/* A solve is one iteration, whatever stop asks for; a tolerance that round-off forbids is told from one that holds;
   what is not a number is found before u is touched. */
static void outcomes_of_a_solve(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 20 };
    double u[N][N], f[N][N];
    rng r = {10};
    for (int q = 0; q < N * N; q++) (&f[0][0])[q] = rng_uniform(&r, -1, 1);
    begin(backend, 2);
    box.desc.n[0] = box.desc.n[1] = N;
    pg_solver *solver = create(&box.desc);
    static const struct {
        pg_stop stop;
        pg_outcome outcome;
        int history;
    } cases[] = {
        {{0}, PG_CONVERGED, 2},
        {{.rtol = PG_NONE}, PG_COMPLETED, 0},
        {{.rtol = PG_NONE, .max_iter = 9}, PG_COMPLETED, 0},
        {{.rtol = 1e-30}, PG_STAGNATED, 2},
        {{.rtol = 1e-8, .max_iter = 1, .guess = PG_GUESS_U}, PG_CONVERGED, 2},
        {{.atol = 1e9}, PG_CONVERGED, 2},
    };
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        for (int i = 0; i < N * N; i++) (&u[0][0])[i] = NAN;
        OK(pg_solve(solver, u, f, &cases[q].stop), solver);
        pg_report report;
        OK(pg_get_report(solver, &report), solver);
        if (report.outcome != cases[q].outcome) fail_msg("case %zu: %s", q, report.message);
        assert_int_equal(report.iterations, 1);
        assert_int_equal(report.history_count, cases[q].history);
        for (int i = 0; i < N * N; i++) assert_true(isfinite((&u[0][0])[i]));
    }
    f[3][4] = NAN;
    u[5][6] = 7;
    OK(pg_solve(solver, u, f, NULL), solver);
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_NOT_A_NUMBER);
    assert_true(u[5][6] == 7);
    pg_desc resolved;
    OK(pg_query_desc(solver, &resolved), solver);
    assert_true(resolved.flags == (PG_DIRECT | PG_F64));
    pg_destroy(solver);
}

/* The monitor sees the guess and the solution; what it says about the guess counts. */
static int seen;
static int watch(void *user, const pg_report *so_far)
{
    (void)so_far;
    return seen++ == *(int *)user;
}
static void the_monitor_sees_guess_and_solution(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double u[9], f[9];
    for (int i = 0; i < 9; i++) u[i] = 7, f[i] = i;
    begin(backend, 1);
    box.desc.n[0] = 9;
    pg_solver *solver = create(&box.desc);
    int cancel_at = 5;
    const pg_stop stop = {.monitor = watch, .user = &cancel_at};
    pg_report report;
    seen = 0;
    OK(pg_solve(solver, u, f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_CONVERGED);
    assert_int_equal(seen, 2);
    for (int i = 0; i < 9; i++) u[i] = 7;
    seen = cancel_at = 0;
    OK(pg_solve(solver, u, f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_CANCELLED);
    for (int i = 0; i < 9; i++) assert_true(u[i] == 0); /* the guess */
    pg_destroy(solver);
}

/* Device arrays, and a captured solve that is replayed with another f: the bits of host arrays. */
static void device_arrays_and_capture(void **state)
{
    const pg_backend backend = backend_or_skip(state);
#ifndef PG_TEST_CUDA
    (void)backend;
    skip();
#else
    enum { NX = 15, NY = 12, NZ = 9, PITCH = 17, BYTES = NZ * NY * PITCH * (int)sizeof(double) };
    static double f[2][NZ][NY][PITCH], u[NZ][NY][PITCH], expected[2][NZ][NY][PITCH];
    rng r = {12};
    for (int q = 0; q < 2 * NZ * NY * PITCH; q++) (&f[0][0][0][0])[q] = rng_uniform(&r, -1, 1);
    static const char *const ends[][3] = {{"DD", "NN", "ND"}, {"PP", "DN", "PP"}, {"NN", "PP", "NN"}};
    for (int kind = 0; kind < 3; kind++)
        for (int checked = 0; checked < 2; checked++) {
            begin(backend, 3);
            const int n[3] = {NX, NY, NZ};
            for (int axis = 0; axis < 3; axis++) {
                box.desc.n[axis] = n[axis];
                box.desc.centring[axis] = kind == 1 ? PG_CELL : PG_NODE;
                set_ends(&box.desc, axis, ends[kind][axis]);
            }
            box.desc.stride_u[0] = box.desc.stride_f[0] = PITCH;
            const pg_stop stop = {.rtol = checked ? 0 : PG_NONE};
            pg_solver *host = create(&box.desc);
            for (int q = 0; q < 2; q++) {
                memset(expected[q], 0, BYTES);
                OK(pg_solve(host, expected[q], f[q], &stop), host);
            }
            pg_destroy(host);
            cudaStream_t stream;
            cudaGraph_t graph;
            cudaGraphExec_t exec;
            void *device_u, *device_f;
            assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
            assert_int_equal(cudaMalloc(&device_u, BYTES), cudaSuccess);
            assert_int_equal(cudaMalloc(&device_f, BYTES), cudaSuccess);
            box.desc.memory = PG_MEM_DEVICE;
            box.desc.stream = stream;
            pg_solver *solver = create(&box.desc);
            memset(u, 0, BYTES);
            cudaMemcpy(device_u, u, BYTES, cudaMemcpyHostToDevice);
            cudaMemcpy(device_f, f[0], BYTES, cudaMemcpyHostToDevice);
            OK(pg_solve(solver, device_u, device_f, &stop), solver);
            cudaStreamSynchronize(stream);
            cudaMemcpy(u, device_u, BYTES, cudaMemcpyDeviceToHost);
            assert_memory_equal(u, expected[0], BYTES);
            assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
            const pg_status status = pg_solve(solver, device_u, device_f, &stop);
            assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
            OK(status, solver);
            assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
            cudaMemcpy(device_f, f[1], BYTES, cudaMemcpyHostToDevice);
            assert_int_equal(cudaGraphLaunch(exec, stream), cudaSuccess);
            cudaStreamSynchronize(stream);
            cudaMemcpy(u, device_u, BYTES, cudaMemcpyDeviceToHost);
            assert_memory_equal(u, expected[1], BYTES);
            cudaGraphExecDestroy(exec);
            cudaGraphDestroy(graph);
            pg_destroy(solver);
            cudaFree(device_u);
            cudaFree(device_f);
            cudaStreamDestroy(stream);
        }
#endif
}

/* At most 1.2 grids beyond u and f, where the grid is not tiny; host arrays on the GPU add their copies. */
static void workspace_is_small(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[][3] = {{511, 511, 1}, {300, 700, 1}, {1021, 1021, 1}, {100, 101, 103}, {128, 128, 128}};
    rng r = {11};
    for (size_t q = 0; q < sizeof sizes / sizeof *sizes; q++)
        for (int count = 0; count < 5; count++) {
            begin(backend, sizes[q][2] > 1 ? 3 : 2);
            box.desc.memory = backend == PG_CUDA ? PG_MEM_DEVICE : PG_MEM_HOST;
            if (count == 4) set_choice(&box.desc, choice_of(&box.desc) | PG_F32);
            double grid = count == 4 ? 4 : 8;
            for (int axis = 0; axis < box.desc.dim; axis++) {
                plain_axis(&r, axis, sizes[q][axis]);
                grid *= sizes[q][axis];
            }
            size_t bytes;
            OK(pg_workspace_bytes(&box.desc, &bytes), NULL);
            if (!((double)bytes <= 1.2 * grid)) fail_msg("%s: %.2f grids", describe(&box.desc), (double)bytes / grid);
        }
    begin(backend, 1); /* a single line: mostly tables */
    box.desc.n[0] = 100000, box.desc.memory = backend == PG_CUDA ? PG_MEM_DEVICE : PG_MEM_HOST;
    for (int periodic = 0; periodic < 2; periodic++) {
        size_t bytes;
        set_ends(&box.desc, 0, periodic ? "PP" : "DD");
        OK(pg_workspace_bytes(&box.desc, &bytes), NULL);
        if (!((double)bytes <= (periodic ? 7.1 : 3.2) * 8e5)) fail_msg("1D: %.2f grids", (double)bytes / 8e5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(every_end_pair_and_centring_at_every_size),
        ON_BOTH(random_boxes),
        ON_BOTH(random_planes),
        ON_BOTH(single_and_mixed_precision),
        ON_BOTH(backward_error_of_large_boxes),
        ON_BOTH(lengths_of_the_transforms),
        ON_BOTH(batches_of_the_transforms),
        ON_BOTH(units_far_from_one),
        ON_BOTH(negative_alpha),
        ON_BOTH(awkward_lengths),
        ON_BOTH(slow_lengths_are_warned_of),
        ON_BOTH(resonances_are_reported),
        ON_BOTH(alpha_may_change_its_sign),
        ON_BOTH(singular_problems),
        ON_BOTH(means_without_a_tolerance),
        ON_BOTH(the_constant_is_left_out_of_a_stretched_line),
        ON_BOTH(u_and_f_may_be_the_same_array),
        ON_BOTH(u_and_f_are_the_same_array_only_where_that_works),
        ON_BOTH(long_lines),
        ON_BOTH(very_long_lines),
        ON_BOTH(what_cannot_be_solved_is_refused_by_name),
        ON_BOTH(the_fastest_method_is_direct_where_it_can_be),
        ON_BOTH(outcomes_of_a_solve),
        ON_BOTH(the_monitor_sees_guess_and_solution),
        ON_CUDA(device_arrays_and_capture),
        ON_BOTH(workspace_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
