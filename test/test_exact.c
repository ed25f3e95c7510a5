/* Solves of f = A u* - boundary terms, with u* random and A from test/ref.h in long double, give u* back. */
#include <float.h>
#include "ref.h"

enum { LONGEST = 40, FACE = LONGEST * LONGEST };

/* A descriptor with the arrays it points to. */
typedef struct problem {
    pg_desc desc;
    double coord[3][LONGEST + 2], weight[3][LONGEST], conductance[3][LONGEST + 1];
    double face[6][FACE];           /* holds floats for PG_F32 */
} problem;

static problem box;                 /* the one under test */

static void begin(pg_backend backend, int nx, int ny, int nz)
{
    static int boxes;
    memset(&box.desc, 0, sizeof box.desc);
    box.desc.coarsest = boxes++ % 2 ? 8 : 0;      /* cycles, or one exact solve */
    box.desc.n[0] = nx, box.desc.n[1] = ny, box.desc.n[2] = nz;
    box.desc.backend = backend;
    for (int axis = 0; axis < 3; axis++) set_ends(&box.desc, axis, "DD");
}

/* Boundary data: on each face nothing, a constant or an array. */
static void random_faces(rng *r)
{
    for (int q = 0; q < 6; q++) {
        pg_face *face = &box.desc.face[q];
        const int what = rng_int(r, 0, 2);
        face->value = what == 1 ? rng_uniform(r, -1, 1) : 0;
        face->array = what == 2 && face->kind != PG_PERIODIC ? box.face[q] : NULL;
        for (int i = 0; i < FACE && face->array; i++) {
            const double g = rng_uniform(r, -1, 1);
            if (box.desc.flags & PG_F32) ((float *)box.face[q])[i] = (float)g;
            else box.face[q][i] = g;
        }
    }
}

static const pg_stop to_round_off = {.rtol = 1e-15, .max_iter = 100000};

/* The element of padding and of unused memory: not a number, of a kind that no arithmetic makes. */
static void poison(void *array, size_t elements, int f32)
{
    const uint64_t nan64 = 0x7ff4deadbeef1234u;
    const uint32_t nan32 = 0x7fa12345u;
    for (size_t i = 0; i < elements; i++)
        memcpy((char *)array + i * (f32 ? 4 : 8), f32 ? (const void *)&nan32 : (const void *)&nan64, f32 ? 4 : 8);
}

/* Solves for a random u*, and returns max |u - u*| / max |u*|, for singular problems up to the weighted mean. Where the
   start is zero by choice, u holds NaN before; the padding of u and f holds NaN too, and must still afterwards. */
static double solve_error(rng *r, const pg_stop *stop)
{
    const pg_desc *desc = &box.desc;
    ref p;
    ref_create(&p, desc);
    const size_t size = p.f32 ? 4 : 8, extent_u = ref_extent_u(&p), extent_f = ref_extent_f(&p);
    char *exact = allocate(extent_u * size), *u = allocate(extent_u * size), *before = allocate(extent_u * size);
    char *f = allocate(extent_f * size);
    poison(exact, extent_u, p.f32), poison(u, extent_u, p.f32), poison(f, extent_f, p.f32);
    memcpy(before, u, extent_u * size);
    const int from_zero = stop->guess == PG_GUESS_ZERO ||
                          (stop->guess == PG_GUESS_DEFAULT && (!(desc->flags & 0x1f0) || (desc->flags & PG_FMG)));
    REF_EACH(&p, i, j, k) {
        ref_store(&p, exact, ref_u(&p, i, j, k), rng_uniform(r, -1, 1));
        if (!from_zero) ref_store(&p, u, ref_u(&p, i, j, k), 0);
    }
    REF_EACH(&p, i, j, k)
        ref_store(&p, f, ref_f(&p, i, j, k), ref_apply(&p, exact, i, j, k) - ref_boundary(&p, i, j, k));

    pg_solver *solver = NULL;
    const pg_status status = pg_create(desc, &solver);
    if (status != PG_OK) fail_msg("%s: %s", describe(desc), pg_last_error(NULL));
    OK(pg_solve(solver, u, f, stop), solver);
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    if (report.outcome != PG_CONVERGED && report.outcome != PG_STAGNATED)
        fail_msg("%s: %s", describe(desc), report.message);
    pg_destroy(solver);

    const long double shift = p.singular ? ref_mean(&p, exact) : 0;
    long double error = 0, largest = 0;
    REF_EACH(&p, i, j, k) {
        const int64_t at = ref_u(&p, i, j, k);
        const long double value = ref_load(&p, exact, at), e = fabsl(ref_load(&p, u, at) - (value - shift));
        if (!(e <= error)) error = e;           /* lets a NaN in, and no later value out */
        largest = fmaxl(largest, fabsl(value));
        memcpy(u + (size_t)at * size, before + (size_t)at * size, size);
    }
    if (memcmp(u, before, extent_u * size) != 0) fail_msg("%s: wrote between the rows of u", describe(desc));
    free(exact), free(u), free(before), free(f);
    ref_free(&p);
    return (double)(error / largest);
}

static void must_be_exact(rng *r, double bound)
{
    const double error = solve_error(r, &to_round_off);
    if (!(error <= bound)) fail_msg("%s: relative error %.2e > %.0e", describe(&box.desc), error, bound);
}

static const char *const end_pairs[] = {"DD", "DN", "DR", "ND", "NN", "NR", "RD", "RN", "RR", "PP"};

/* In 1D, 2D and 3D. The other axes alternate between two plain ones: singular is the problem only now and then. */
static void every_end_pair_and_centring_at_every_size(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {1};
    for (int dim = 1; dim <= 3; dim++)
        for (int axis = 0; axis < dim; axis++)
            for (int n = 1; n <= LONGEST; n += full_or_small(1, n < 9 ? 1 : 7))
                for (int pair = 0; pair < 10; pair++)
                    for (int cell = 0; cell < 2; cell++) {
                        const int other = (n + pair) % 2;
                        begin(backend, 1, 1, 1);
                        box.desc.dim = dim;
                        for (int q = 0; q < dim; q++) {
                            box.desc.n[q] = other ? 4 : 5;
                            box.desc.centring[q] = other ? PG_CELL : PG_NODE;
                            set_ends(&box.desc, q, other ? "NN" : "DN");
                            box.desc.h[q] = 0.25;
                        }
                        box.desc.n[axis] = n, box.desc.h[axis] = n % 3 ? 0 : 0.2;
                        box.desc.centring[axis] = cell ? PG_CELL : PG_NODE;
                        set_ends(&box.desc, axis, end_pairs[pair]);
                        random_faces(&r);
                        must_be_exact(&r, 1e-11);
                    }
}

static void random_box(pg_backend backend, rng *r)
{
    begin(backend, 1, 1, 1);
    const int dim = box.desc.dim = rng_int(r, 1, 3);
    for (int axis = 0; axis < dim; axis++) {
        const int periodic = rng_int(r, 0, 4) == 0;
        box.desc.n[axis] = rng_int(r, 1, LONGEST);
        box.desc.centring[axis] = rng_int(r, 0, 1) ? PG_CELL : PG_NODE;
        box.desc.h[axis] = rng_int(r, 0, 2) ? rng_uniform(r, 0.5, 1.5) / LONGEST : 0;
        set_ends(&box.desc, axis, periodic ? "PP" : "DD");
        for (int side = 0; side < 2 && !periodic; side++) {
            pg_face *face = &box.desc.face[2 * axis + side];
            const double sign = rng_int(r, 0, 1) ? 1 : -1;
            face->kind = (pg_face_kind)rng_int(r, 0, 2);
            if (face->kind != PG_ROBIN) continue;
            face->a = sign * rng_uniform(r, 0.3, 2);
            face->b = sign * rng_uniform(r, 0.3, 2);
        }
    }
    box.desc.alpha = rng_int(r, 0, 1) ? 0 : rng_uniform(r, 0.1, 50);
    box.desc.beta = rng_int(r, 0, 1) ? 0 : rng_uniform(r, 0.2, 5);
    const int *n = box.desc.n;
    if (rng_int(r, 0, 1)) {
        box.desc.stride_u[0] = n[0] + rng_int(r, 0, 5);
        box.desc.stride_u[1] = box.desc.stride_u[0] * (n[1] + rng_int(r, 0, 2)) + rng_int(r, 0, 3);
    }
    if (rng_int(r, 0, 1)) {
        box.desc.stride_f[0] = n[0] + rng_int(r, 0, 5);
        box.desc.stride_f[1] = box.desc.stride_f[0] * (n[1] + rng_int(r, 0, 2)) + rng_int(r, 0, 3);
    }
    random_faces(r);
}

static void two_thousand_random_boxes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {2};
    for (int count = 0; count < full_or_small(2000, 60); count++) {
        random_box(backend, &r);
        must_be_exact(&r, 1e-11);
    }
}

/* Steps that vary smoothly by a factor of up to 3. */
static void stretch(int axis, rng *r)
{
    const pg_face *face = &box.desc.face[2 * axis];
    if (box.desc.centring[axis] == PG_NODE && box.desc.n[axis] == 1 && face[0].kind != PG_DIRICHLET &&
        face[1].kind != PG_DIRICHLET && face[0].kind != PG_PERIODIC)
        return;                     /* there is no interval to stretch */
    const double phase = rng_uniform(r, 0, 6);
    box.desc.h[axis] = 0;
    box.desc.coord[axis] = box.coord[axis];
    box.coord[axis][0] = rng_uniform(r, -1, 1);
    for (int i = 0; i <= box.desc.n[axis]; i++) {
        const double step = 1 + 0.5 * sin(phase + 6.0 * i / (box.desc.n[axis] + 1));
        box.coord[axis][i + 1] = box.coord[axis][i] + step / LONGEST;
    }
}

static void stretched_axes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {3};
    for (int count = 0; count < full_or_small(300, 30); count++) {
        random_box(backend, &r);
        for (int axis = 0; axis < box.desc.dim; axis++)
            if (rng_int(&r, 0, 1)) stretch(axis, &r);
        must_be_exact(&r, 1e-11);
    }
}

/* w = k = r from the axis on (cells; k = 0 there, so what the face says has no effect) or from 0.3, and w = k = 1/R. */
static void axisymmetric_and_grad_shafranov_metrics(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {4};
    for (int count = 0; count < full_or_small(300, 30); count++) {
        random_box(backend, &r);
        const int axis = rng_int(&r, 0, box.desc.dim - 1), kind = rng_int(&r, 0, 2), n = box.desc.n[axis];
        if (box.desc.face[2 * axis].kind == PG_PERIODIC) set_ends(&box.desc, axis, "ND");
        if (kind == 0) box.desc.centring[axis] = PG_CELL;
        const double h = 1.0 / n, origin = kind == 0 ? 0 : 0.3;
        box.desc.h[axis] = h;
        box.desc.weight[axis] = box.weight[axis], box.desc.conductance[axis] = box.conductance[axis];
        for (int i = 0; i < n; i++) box.weight[axis][i] = pow(origin + (i + 0.5) * h, kind == 2 ? -1 : 1);
        for (int i = 0; i <= n; i++) box.conductance[axis][i] = pow(origin + i * h, kind == 2 ? -1 : 1);
        must_be_exact(&r, 1e-11);
    }
}

/* The modes of the operator on uniform axes are sines and cosines, with the eigenvalues (2 - 2 cos(theta)) / h^2. */
static void sines_and_cosines_have_their_eigenvalues(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const ends[] = {"DD", "DN", "ND", "NN", "PP"};
    rng r = {5};
    for (int count = 0; count < full_or_small(600, 60); count++) {
        begin(backend, rng_int(&r, 2, 24), rng_int(&r, 2, 24), rng_int(&r, 2, 24));
        const int *n = box.desc.n;
        double mode[3][24], eigenvalue = box.desc.alpha = rng_int(&r, 0, 1) ? 2.5 : 0;
        int constant = 1;
        for (int axis = 0; axis < 3; axis++) {
            const int pair = rng_int(&r, 0, 4), cell = rng_int(&r, 0, 1), m = rng_int(&r, 0, n[axis] - 1);
            double theta = 0, shift = cell ? 0.5 : 0;       /* the mode is sin or cos(theta (i + shift)) */
            switch (pair) {
            case 0: theta = PI * (m + 1) / (cell ? n[axis] : n[axis] + 1); break;
            case 1: theta = PI * (m + 0.5) / n[axis]; break;
            case 2: theta = PI * (m + 0.5) / n[axis]; break;
            case 3: theta = PI * m / (cell ? n[axis] : n[axis] - 1); break;
            case 4: theta = 2 * PI * (m / 2) / n[axis]; break;
            }
            if (!cell && pair <= 1) shift = 1;
            set_ends(&box.desc, axis, ends[pair]);
            box.desc.centring[axis] = cell ? PG_CELL : PG_NODE;
            const double h = 1.0 / (n[axis] + (cell ? 0 : pair == 0 ? 1 : pair == 3 ? -1 : 0));
            for (int i = 0; i < n[axis]; i++)
                mode[axis][i] = pair <= 1 ? sin(theta * (i + shift)) : cos(theta * (i + shift));
            eigenvalue += (2 - 2 * cos(theta)) / (h * h);
            constant = constant && theta == 0;
        }
        if (constant && box.desc.alpha == 0) continue;      /* in the null space */
        const size_t points = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
        double *exact = allocate(points * sizeof *exact), *u = allocate(points * sizeof *u);
        double *f = allocate(points * sizeof *f);
        size_t at = 0;
        double largest = 0;
        for (int k = 0; k < n[2]; k++)
            for (int j = 0; j < n[1]; j++)
                for (int i = 0; i < n[0]; i++, at++) {
                    exact[at] = mode[0][i] * mode[1][j] * mode[2][k];
                    f[at] = eigenvalue * exact[at];
                    largest = fmax(largest, fabs(exact[at]));
                }
        pg_solver *solver = create(&box.desc);
        OK(pg_solve(solver, u, f, &to_round_off), solver);
        pg_destroy(solver);
        for (at = 0; at < points; at++)
            if (!(fabs(u[at] - exact[at]) <= 1e-11 * largest))
                fail_msg("%s: error %.2e", describe(&box.desc), fabs(u[at] - exact[at]) / largest);
        free(exact), free(u), free(f);
    }
}

/* A is an M-matrix, so that the maximum norm of its inverse is max v where A v = 1. */
static double condition_number(void)
{
    pg_desc desc = box.desc;
    set_choice(&desc, 0);
    memset(desc.stride_u, 0, sizeof desc.stride_u), memset(desc.stride_f, 0, sizeof desc.stride_f);
    for (int q = 0; q < 6; q++) desc.face[q].value = 0, desc.face[q].array = NULL;
    ref p;
    ref_create(&p, &desc);
    const size_t points = ref_points(&p);
    double *v = allocate(points * sizeof *v), *one = allocate(points * sizeof *one);
    for (size_t i = 0; i < points; i++) one[i] = 1;
    pg_solver *solver = create(&desc);
    OK(pg_solve(solver, v, one, NULL), solver);
    pg_destroy(solver);
    double inverse = 0;
    long double norm = 0;
    for (size_t i = 0; i < points; i++) inverse = fmax(inverse, v[i]);
    for (int axis = 0; axis < 3; axis++) {
        const ref_axis *t = &p.axis[axis];
        long double row = 0;
        for (int i = 0; i < t->n; i++)
            row = fmaxl(row, 2 * (t->low[i] + t->high[i]) + (i == 0 ? t->end[0] * t->a[0] : 0) +
                                 (i == t->n - 1 ? t->end[1] * t->a[1] : 0));
        norm += row;
    }
    ref_free(&p);
    free(v), free(one);
    return inverse * (double)(p.alpha + p.beta * norm);
}

/* Rounding f and u to 24 bits gives half an epsilon times the condition number each; the residual that the solver sees
   is itself a sum of 8 rounded terms. */
static void single_precision_is_as_good_as_its_condition_number_allows(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {6};
    for (int count = 0, tried = 0; count < full_or_small(150, 25); tried++) {
        random_box(backend, &r);
        ref p;
        ref_create(&p, &box.desc);
        const int singular = p.singular;
        ref_free(&p);
        if (singular) continue;
        set_choice(&box.desc, PG_F32);
        for (int q = 0; q < 6; q++) box.desc.face[q].array = NULL;
        random_faces(&r);
        const pg_stop stop = {.rtol = 1e-7, .max_iter = 1000};
        const double error = solve_error(&r, &stop), bound = 3 * FLT_EPSILON * condition_number();
        if (!(error <= bound)) fail_msg("%s: relative error %.2e > %.2e", describe(&box.desc), error, bound);
        count++;
    }
}

static void every_method_finds_the_same_solution(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {
        PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_WCYCLE, PG_FMG, PG_VCYCLE | PG_SYMMETRIC,
        PG_VCYCLE | PG_SMOOTH_JACOBI, PG_VCYCLE | PG_SMOOTH_CHEBYSHEV, PG_WCYCLE | PG_SMOOTH_CHEBYSHEV,
        PG_FMG | PG_SMOOTH_JACOBI, PG_FMG | PG_SMOOTH_CHEBYSHEV, PG_FMG | PG_SYMMETRIC,
        PG_MIXED, PG_MIXED | PG_VCYCLE, PG_MIXED | PG_WCYCLE};
    static const int sizes[][3] = {{9, 1, 1}, {8, 7, 1}, {6, 5, 7}, {1, 1, 1}, {2, 1, 5}, {4, 4, 4}};
    rng r = {7};
    for (size_t method = 0; method < sizeof methods / sizeof *methods; method++)
        for (int pair = 0; pair < 10; pair++)
            for (int size = 0; size < full_or_small(6, 3); size++)
                for (int cell = 0; cell < 2; cell++) {
                    begin(backend, sizes[size][0], sizes[size][1], sizes[size][2]);
                    for (int axis = 0; axis < 3; axis++) {
                        box.desc.centring[axis] = cell ? PG_CELL : PG_NODE;
                        box.desc.h[axis] = 0.1;
                        set_ends(&box.desc, axis, end_pairs[axis == size % 3 ? pair : 4]);
                    }
                    set_choice(&box.desc, methods[method]);
                    random_faces(&r);
                    must_be_exact(&r, 1e-11);
                }
}

/* u and f are windows in the middle of larger arrays that hold nothing but NaN elsewhere. */
static void windows_of_larger_arrays_leave_the_rest_alone(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {0, PG_VCYCLE, PG_RBGS, PG_SOR, PG_JACOBI, PG_MIXED,
                                     PG_VCYCLE | PG_SMOOTH_CHEBYSHEV};
    rng r = {8};
    for (size_t method = 0; method < sizeof flags / sizeof *flags; method++)
        for (int pair = 0; pair < 10; pair++) {
            begin(backend, 7, 6, 5);
            for (int axis = 0; axis < 3; axis++) {
                box.desc.centring[axis] = (pair + axis) % 2 ? PG_CELL : PG_NODE;
                set_ends(&box.desc, axis, end_pairs[axis == pair % 3 ? pair : 0]);
            }
            set_choice(&box.desc, flags[method]);
            box.desc.stride_u[0] = 11, box.desc.stride_u[1] = 11 * 9;
            box.desc.stride_f[0] = 13, box.desc.stride_f[1] = 13 * 8 + 1;
            random_faces(&r);
            ref p;
            ref_create(&p, &box.desc);
            enum { ELEMENTS = 13 * 12 * 11 };
            double u[ELEMENTS], before[ELEMENTS], f[ELEMENTS], f_before[ELEMENTS];
            double *const u0 = u + 250, *const exact = before + 250, *const f0 = f + 270;
            poison(u, ELEMENTS, 0), poison(before, ELEMENTS, 0), poison(f, ELEMENTS, 0);
            REF_EACH(&p, i, j, k) exact[ref_u(&p, i, j, k)] = rng_uniform(&r, -1, 1);
            REF_EACH(&p, i, j, k) {
                u0[ref_u(&p, i, j, k)] = 0;
                f0[ref_f(&p, i, j, k)] = (double)(ref_apply(&p, exact, i, j, k) - ref_boundary(&p, i, j, k));
            }
            memcpy(f_before, f, sizeof f);
            pg_solver *solver = create(&box.desc);
            OK(pg_solve(solver, u0, f0, &to_round_off), solver);
            pg_destroy(solver);
            assert_memory_equal(f, f_before, sizeof f);
            REF_EACH(&p, i, j, k) {
                const int64_t at = ref_u(&p, i, j, k);
                if (!(fabs(u0[at] - exact[at]) <= 1e-11)) fail_msg("%s: at %d %d %d", describe(&box.desc), i, j, k);
                u0[at] = exact[at];
            }
            assert_memory_equal(u, before, sizeof u);
            ref_free(&p);
        }
}

static void a_zero_guess_never_reads_u(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_WCYCLE, PG_FMG, PG_MIXED | PG_VCYCLE,
                                       PG_MIXED | PG_FMG};
    pg_stop stop = to_round_off;
    stop.guess = PG_GUESS_ZERO;
    rng r = {9};
    for (size_t method = 0; method < sizeof methods / sizeof *methods; method++)
        for (int pair = 0; pair < 10; pair++) {
            begin(backend, 6, 5, 4);
            set_ends(&box.desc, 1, end_pairs[pair]);
            set_choice(&box.desc, methods[method]);
            random_faces(&r);
            const double error = solve_error(&r, &stop);        /* u is full of NaN there */
            if (!(error <= 1e-11)) fail_msg("%s: relative error %.2e", describe(&box.desc), error);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(every_end_pair_and_centring_at_every_size),
        ON_BOTH(two_thousand_random_boxes),
        ON_BOTH(stretched_axes),
        ON_BOTH(axisymmetric_and_grad_shafranov_metrics),
        ON_BOTH(sines_and_cosines_have_their_eigenvalues),
        ON_BOTH(single_precision_is_as_good_as_its_condition_number_allows),
        ON_BOTH(every_method_finds_the_same_solution),
        ON_BOTH(windows_of_larger_arrays_leave_the_rest_alone),
        ON_BOTH(a_zero_guess_never_reads_u),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
