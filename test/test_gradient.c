/* pg_gradient: the differences of A's rows, exact for linear functions, of second order for what pg_solve finds. */
#include "manufactured.h"
#ifdef PG_TEST_CUDA
#include <cuda_runtime.h>
#endif

static const char *const all_ends[] = {"DD", "DN", "ND", "NN", "DR", "RD", "RR", "NR", "RN", "PP"};
enum { ENDS = sizeof all_ends / sizeof *all_ends, LONGEST = 9, BATCH = 2 };

static double *poisoned(size_t count)
{
    double *p = allocate(count * sizeof *p);
    memset(p, 0xff, count * sizeof *p);
    return p;
}

/* The place of value q along an axis, at (i,j,k) along the others, of an array of faces. */
static int64_t face_at(const int n[3], int axis, int problem, int i, int j, int k)
{
    const int64_t nx = n[0] + (axis == 0), ny = n[1] + (axis == 1), nz = n[2] + (axis == 2);
    return i + nx * (j + ny * (k + nz * problem));
}
static size_t face_count(const int n[3], int axis, int batch)
{
    return (size_t)batch * (size_t)face_at(n, axis, 1, 0, 0, 0);
}

/* ---- Against the rows of A --------------------------------------------------------------------------------------- */

/* A box of any kind, with the storage of its arrays. */
typedef struct box {
    pg_desc desc;
    double coord[3][LONGEST + 2], weight[3][LONGEST], conductance[3][LONGEST + 1], g[6][BATCH * LONGEST * LONGEST];
    float g_f32[6][BATCH * LONGEST * LONGEST];
} box;

static void random_axis(box *b, int axis, rng *r)
{
    pg_desc *desc = &b->desc;
    const int n = desc->n[axis] = rng_int(r, 1, LONGEST);
    const char *ends = all_ends[rng_int(r, 0, ENDS - 1)];
    desc->centring[axis] = rng_int(r, 0, 1) ? PG_CELL : PG_NODE;
    set_ends(desc, axis, ends);
    if (rng_int(r, 0, 1) && (n > 1 || desc->centring[axis] == PG_CELL || strpbrk(ends, "DP"))) {
        for (int i = 0; i <= n; i++) b->coord[axis][i + 1] = b->coord[axis][i] + rng_uniform(r, 0.5, 1.5) / n;
        desc->coord[axis] = b->coord[axis];
    }
    if (rng_int(r, 1, 3) == 1) {
        for (int i = 0; i < n; i++) b->weight[axis][i] = rng_uniform(r, 0.5, 2);
        for (int i = 0; i <= n; i++) b->conductance[axis][i] = rng_uniform(r, 0.5, 2);
        if (ends[0] == 'P') b->conductance[axis][n] = b->conductance[axis][0];
        else if (rng_int(r, 0, 1)) b->conductance[axis][0] = 0;
        desc->weight[axis] = b->weight[axis], desc->conductance[axis] = b->conductance[axis];
    }
    for (int face = 2 * axis; face < 2 * axis + 2 && ends[0] != 'P'; face++) {
        desc->face[face].value = rng_uniform(r, -1, 1);
        for (size_t q = 0; q < sizeof b->g[0] / sizeof b->g[0][0]; q++)
            b->g_f32[face][q] = (float)(b->g[face][q] = rng_uniform(r, -1, 1));
        if (rng_int(r, 0, 1))
            desc->face[face].array = desc->flags & PG_F32 ? (void *)b->g_f32[face] : (void *)b->g[face];
    }
}

static void random_box(box *b, rng *r, pg_backend backend, unsigned flags)
{
    memset(b, 0, sizeof *b);
    pg_desc *desc = &b->desc;
    desc->backend = backend, desc->flags = flags, desc->dim = rng_int(r, 1, 3);
    for (int axis = 0; axis < 3; axis++) desc->n[axis] = 1;
    for (int axis = 0; axis < desc->dim; axis++) random_axis(b, axis, r);
    desc->alpha = rng_uniform(r, 0, 10), desc->beta = rng_uniform(r, 0.1, 10), desc->batch = rng_int(r, 1, BATCH);
    for (int q = 0; q < 2; q++) {
        int64_t *stride = q ? desc->stride_f : desc->stride_u;
        stride[0] = desc->n[0] + rng_int(r, 0, 3);
        stride[1] = stride[0] * desc->n[1] + rng_int(r, 0, 3);
        stride[2] = stride[1] * desc->n[2] + rng_int(r, 0, 3);
    }
}

static double get(const pg_desc *desc, const void *array, int64_t at)
{
    return desc->flags & PG_F32 ? (double)((const float *)array)[at] : ((const double *)array)[at];
}

/* The sum of beta/w (k v above - k v below) of one problem's point against the residual of f = 0. */
static void check_rows(const box *b, const ref *p, void *const v[3], const void *u, const void *residual, double eps)
{
    const pg_desc *desc = &b->desc;
    const double bound = eps * (double)ref_largest_row(p) * 30;
    for (int q = 0; q < desc->batch; q++) {
        REF_EACH(p, i, j, k) {
            const int at[3] = {i, j, k};
            double sum = -desc->alpha * get(desc, u, ref_u(p, i, j, k) + q * desc->stride_u[2]);
            for (int axis = 0; axis < desc->dim; axis++) {
                const double *conductance = desc->conductance[axis];
                const int next[3] = {i + (axis == 0), j + (axis == 1), k + (axis == 2)};
                const double below = get(desc, v[axis], face_at(desc->n, axis, q, i, j, k));
                const double above = get(desc, v[axis], face_at(desc->n, axis, q, next[0], next[1], next[2]));
                if (p->axis[axis].periodic && desc->n[axis] == 1) assert_true(below == 0 && above == 0);
                sum += desc->beta / (double)p->axis[axis].w[at[axis]] *
                       (above * (conductance ? conductance[at[axis] + 1] : 1) -
                        below * (conductance ? conductance[at[axis]] : 1));
            }
            const double r = get(desc, residual, ref_f(p, i, j, k) + q * desc->stride_f[2]);
            if (!(fabs(sum - r) <= bound))
                fail_msg("%s: %g, not %g at %d %d %d of %d", describe(desc), sum, r, i, j, k, q);
        }
    }
}

/* At unknowns: between the two values beside; the same number where these are equal. */
static void check_unknowns(const box *b, const ref *p, int axis, const void *v, const void *centre, double eps)
{
    const pg_desc *desc = &b->desc;
    for (int q = 0; q < desc->batch; q++) {
        REF_EACH(p, i, j, k) {
            const double x = get(desc, v, face_at(desc->n, axis, q, i, j, k));
            const double y =
                get(desc, v, face_at(desc->n, axis, q, i + (axis == 0), j + (axis == 1), k + (axis == 2)));
            const double c = get(desc, centre, ref_f(p, i, j, k) + q * desc->stride_f[2]);
            const double room = eps * (fabs(x) + fabs(y)) * 4;
            if (!(c >= fmin(x, y) - room && c <= fmax(x, y) + room))
                fail_msg("%s: %g between %g and %g along %d at %d %d %d", describe(desc), c, x, y, axis, i, j, k);
            if (desc->centring[axis] == PG_CELL && fabs(c - (x + y) / 2) > room) fail_msg("%s", describe(desc));
        }
    }
}

static void faces_are_the_differences_of_the_rows(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    rng r = {20};
    for (int trial = 0; trial < full_or_small(300, 60); trial++) {
        const unsigned flags = trial % 3 == 2 ? PG_F32 : PG_F64;
        const double eps = flags == PG_F32 ? 1.2e-7 : 2.3e-16;
        box b;
        random_box(&b, &r, backend, flags | PG_CG);
        ref p;
        ref_create(&p, &b.desc);
        pg_solver *solver = create(&b.desc);
        const size_t most = (size_t)BATCH * 1000 * (LONGEST + 4) * sizeof(double);
        void *u = allocate(most), *f = allocate(most), *v[4] = {NULL, NULL, NULL, allocate(most)};
        memset(f, 0, most), memset(u, 0xff, most);
        for (int q = 0; q < b.desc.batch; q++)
            REF_EACH(&p, i, j, k)
                ref_store(&p, u, ref_u(&p, i, j, k) + q * b.desc.stride_u[2], rng_uniform(&r, -1, 1));
        for (int axis = 0; axis < b.desc.dim; axis++) {
            const size_t count = face_count(b.desc.n, axis, b.desc.batch);
            v[axis] = poisoned(count + 8);
            OK(pg_gradient(solver, u, axis, v[axis], PG_AT_FACES), solver);
            const unsigned char *behind = (unsigned char *)v[axis] + count * (flags == PG_F32 ? 4 : 8);
            for (int q = 0; q < 16; q++) assert_int_equal(behind[q], 0xff);
            memset(v[3], 0xff, most);
            OK(pg_gradient(solver, u, axis, v[3], PG_AT_UNKNOWNS), solver);
            check_unknowns(&b, &p, axis, v[axis], v[3], eps);
        }
        OK(pg_residual(solver, u, f, f), solver);
        check_rows(&b, &p, v, u, f, eps);
        for (int q = 0; q < 4; q++) free(v[q]);
        free(u), free(f);
        pg_destroy(solver);
        ref_free(&p);
    }
}

/* ---- Linear functions -------------------------------------------------------------------------------------------- */

enum { N = 6 };
static const double slope[3] = {2, -3, 0.5};

static double linear(const ref *p, int i, int j, int k)
{
    const int at[3] = {i, j, k};
    double sum = 1;
    for (int axis = 0; axis < 3; axis++)
        if (!p->axis[axis].periodic) sum += slope[axis] * (double)p->axis[axis].x[at[axis]];
    return sum;
}

/* The boundary data of a linear function. */
static void linear_faces(pg_desc *desc, const ref *p)
{
    static double g[6][LONGEST * LONGEST];
    for (int face = 0; face < 2 * p->dim; face++) {
        const int axis = face / 2, one = axis == 0, two = axis == 2 ? 1 : 2;
        pg_face *own = &desc->face[face];
        if (own->kind == PG_PERIODIC) continue;
        const double a = own->kind == PG_DIRICHLET ? 1 : own->kind == PG_NEUMANN ? 0 : own->a;
        const double b = own->kind == PG_DIRICHLET ? 0 : own->kind == PG_NEUMANN ? 1 : own->b;
        for (int q = 0; q < p->n[one] * p->n[two]; q++) {
            int at[3] = {0, 0, 0};
            at[one] = q % p->n[one], at[two] = q / p->n[one];
            const double wall = linear(p, at[0], at[1], at[2]) +
                                slope[axis] * (double)(p->axis[axis].face[face % 2] - p->axis[axis].x[0]);
            g[face][q] = a * wall + b * (face % 2 ? 1 : -1) * slope[axis];
        }
        own->array = g[face];
    }
}

static void linear_functions_are_exact(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double even[] = {0, 0.25, 0.5, 0.75, 1, 1.25, 1.5}, uneven[] = {0, 0.25, 0.375, 0.5, 1, 1.125, 2};
    static double u[N * N * N], v[N * N * (N + 1)];
    for (int q = 0; q < ENDS * ENDS * 4; q++) {
        pg_desc desc = {0};
        const double *coord[3] = {NULL, NULL, NULL};
        for (int axis = 0; axis < 3; axis++) {
            const char *ends = all_ends[axis == 0 ? q % ENDS : axis == 1 ? q / ENDS % ENDS : 4];
            desc.n[axis] = 5, desc.centring[axis] = q / (ENDS * ENDS) % 2 ? PG_CELL : PG_NODE;
            desc.coord[axis] = coord[axis] = q / (ENDS * ENDS) / 2 ? uneven : even;
            set_ends(&desc, axis, ends);
        }
        desc.backend = backend, desc.alpha = 1, desc.flags = PG_CG;
        ref p;
        ref_create(&p, &desc);
        REF_EACH(&p, i, j, k) u[ref_u(&p, i, j, k)] = linear(&p, i, j, k);
        linear_faces(&desc, &p);
        pg_solver *solver = create(&desc);
        for (int axis = 0; axis < 3; axis++) {
            const double want = p.axis[axis].periodic ? 0 : slope[axis];
            for (int where = 0; where < 2; where++) {
                const size_t count = where ? ref_points(&p) : face_count(desc.n, axis, 1);
                OK(pg_gradient(solver, u, axis, v, where ? PG_AT_UNKNOWNS : PG_AT_FACES), solver);
                for (size_t i = 0; i < count; i++)
                    if (!(fabs(v[i] - want) < 1e-13)) fail_msg("%s: %.17g, not %g", describe(&desc), v[i], want);
            }
        }
        pg_destroy(solver);
        ref_free(&p);
    }
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

/* The errors of the gradient of the solution along x, at faces and at unknowns: the largest ones, or the mean square. */
static void errors_of(const pg_desc *desc, int shape_x, int largest, double error[2])
{
    const int shape[3] = {shape_x, PLAIN, PLAIN};
    manufactured m;
    manufactured_create(&m, desc, shape);
    const ref *p = &m.p;
    const ref_axis *x = &p->axis[0];
    double *u = allocate(ref_points(p) * sizeof *u), *v = poisoned(face_count(p->n, 0, 1));
    memset(u, 0, ref_points(p) * sizeof *u);
    pg_solver *solver = create(&m.desc);
    OK(pg_solve(solver, u, m.f, NULL), solver);
    error[0] = error[1] = 0;
    for (int where = 0; where < 2; where++) {
        OK(pg_gradient(solver, u, 0, v, where ? PG_AT_UNKNOWNS : PG_AT_FACES), solver);
        for (int j = 0; j < p->n[1]; j++)
            for (int i = 0; i < p->n[0] + !where; i++) {
                const double low = (double)x->face[0], high = (double)x->face[1];
                const double below = i > 0 ? (double)x->x[i - 1] : x->periodic ? (double)x->x[x->n - 1] - high : low;
                const double above = i < x->n ? (double)x->x[i] : x->periodic ? (double)x->x[0] + high : high;
                const int wall = desc->centring[0] == PG_CELL && !x->periodic && (i == 0 || i == x->n);
                const double at = where  ? (double)x->x[i]
                                  : wall ? (i ? high : low)
                                         : (below + above) / 2;
                double fx[3], fy[3];
                manufactured_factor(&m, 0, at, fx);
                manufactured_factor(&m, 1, (double)p->axis[1].x[j], fy);
                const double e = fabs(v[where ? ref_f(p, i, j, 0) : face_at(p->n, 0, 0, i, j, 0)] - fx[1] * fy[0]);
                error[where] = largest ? fmax(error[where], e) : hypot(error[where], e / sqrt((double)ref_points(p)));
            }
    }
    pg_destroy(solver);
    free(u), free(v);
    manufactured_free(&m);
}

static void it_is_of_second_order_at_every_kind_of_face(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < ENDS * 8; q++) {
        double error[2][2];
        /* The largest error, of order h^2 log h; where two Dirichlet faces of cells meet it is of order h: the mean. */
        const int largest = q / ENDS / 4;
        for (int fine = 0; fine < 2; fine++) {
            pg_desc desc = {0};
            const char *ends = all_ends[q % ENDS];
            const int cell = q / ENDS % 2, m = full_or_small(32, 16) << fine;
            for (int axis = 0; axis < 2; axis++) {
                desc.centring[axis] = cell ? PG_CELL : PG_NODE;
                set_ends(&desc, axis, axis == 0 ? ends : largest ? "NN" : "DN");
                const int known = (axis ? !largest : (ends[0] == 'D') + (ends[1] == 'D'));
                desc.n[axis] = cell || (axis == 0 && ends[0] == 'P') ? m : m + 1 - known;
            }
            desc.backend = backend, desc.dim = 2, desc.alpha = 1;
            errors_of(&desc, q / ENDS / 2 % 2 ? STRETCHED : PLAIN, largest, error[fine]);
        }
        for (int where = 0; where < 2; where++)
            if (!(error[0][where] > (largest ? 2.5 : 3.2) * error[1][where]))
                fail_msg("%s, %s, %s, at %s: %s error %g becomes %g", all_ends[q % ENDS], q / ENDS % 2 ? "cell" : "node",
                         q / ENDS / 2 % 2 ? "stretched" : "uniform", where ? "unknowns" : "faces",
                         largest ? "largest" : "mean", error[0][where], error[1][where]);
    }
}

/* ---- Obstacles --------------------------------------------------------------------------------------------------- */

enum { MASKED = 7, CELLS = MASKED * MASKED * MASKED };

/* Values on the sides of all fluid cells beside air or solids, of a linear function. With surfaces, those of air are at
   any part of the way to the next unknown. */
static void list_values(const ref *p, const unsigned char *mask, int surfaces, rng *r, pg_cell_value *list[2], int number[2])
{
    number[0] = number[1] = 0;
    REF_EACH(p, i, j, k) {
        if (mask[ref_u(p, i, j, k)] != PG_FLUID) continue;
        for (int face = 0; face < 2 * p->dim; face++) {
            int to[3] = {i, j, k};
            const int axis = face / 2, n = p->n[axis];
            to[axis] += face % 2 ? 1 : -1;
            if (p->axis[axis].periodic) to[axis] = (to[axis] + n) % n;
            if (to[axis] < 0 || to[axis] >= n) continue;
            const int kind = mask[ref_u(p, to[0], to[1], to[2])], solid = kind == PG_SOLID;
            const double along = p->axis[axis].periodic ? 0 : slope[axis];
            if (kind == PG_FLUID) continue;
            const double theta = solid || !surfaces ? 0 : rng_uniform(r, 0.05, 1), part = theta > 0 ? theta : 1;
            const double beyond = linear(p, to[0], to[1], to[2]), own_value = linear(p, i, j, k);
            const double value = solid ? (face % 2 ? along : -along) : own_value + part * (beyond - own_value);
            for (int half = 0; half < 2; half++) {                        /* values of a side add up */
                const pg_cell_value own = {{i, j, k}, face, value / 2, theta};
                list[solid][number[solid]++] = own;
            }
        }
    }
}

/* Every face beside fluid has the slope; other faces, closed ones, and cells that are not fluid have 0. */
static void check_masked(const pg_desc *desc, const ref *p, pg_solver *solver, const double *u, int closed)
{
    static double v[CELLS / MASKED * (MASKED + 1)];
    const unsigned char *mask = desc->cells.mask;
    for (int axis = 0; axis < p->dim; axis++) {
        const double along = p->axis[axis].periodic ? 0 : slope[axis];
        const int n = p->n[axis];
        OK(pg_gradient(solver, u, axis, v, PG_AT_FACES), solver);
        const int m[3] = {p->n[0] + (axis == 0), p->n[1] + (axis == 1), p->n[2] + (axis == 2)};
        for (int at = 0; at < m[0] * m[1] * m[2]; at++) {
            int low[3] = {at % m[0], at / m[0] % m[1], at / m[0] / m[1]}, high[3], fluid = 0;
            memcpy(high, low, sizeof high);
            low[axis]--;
            if (p->axis[axis].periodic) low[axis] = (low[axis] + n) % n, high[axis] = high[axis] % n;
            if (low[axis] >= 0) fluid |= mask[ref_u(p, low[0], low[1], low[2])] == PG_FLUID;
            if (high[axis] < n) fluid |= mask[ref_u(p, high[0], high[1], high[2])] == PG_FLUID;
            const double want = fluid && at != closed ? along : 0;
            if (!(fabs(v[at] - want) < 5e-12))
                fail_msg("%s: %.17g, not %g along %d at %d", describe(desc), v[at], want, axis, at);
        }
        if (closed >= 0) continue;
        OK(pg_gradient(solver, u, axis, v, PG_AT_UNKNOWNS), solver);
        REF_EACH(p, i, j, k) {
            const double want = mask[ref_u(p, i, j, k)] == PG_FLUID ? along : 0, got = v[ref_f(p, i, j, k)];
            if (!(fabs(got - want) < 5e-12)) fail_msg("%s: %.17g, not %g along %d", describe(desc), got, want, axis);
        }
    }
}

/* An axis of nodes or cells, with spacings and a metric that vary, or without. */
static void masked_axis(pg_desc *desc, int axis, const char *ends, int varies, rng *r)
{
    static const double uneven[] = {0, 0.25, 0.375, 0.5, 1, 1.125, 2, 2.25, 2.75};
    static double weight[3][MASKED], conductance[3][MASKED + 1];
    desc->n[axis] = MASKED, desc->centring[axis] = rng_int(r, 0, 1) ? PG_CELL : PG_NODE;
    desc->coord[axis] = varies ? uneven : NULL;
    set_ends(desc, axis, ends);
    if (rng_int(r, 0, 2)) return;
    for (int i = 0; i < MASKED; i++) weight[axis][i] = rng_uniform(r, 0.5, 2);
    for (int i = 0; i <= MASKED; i++) conductance[axis][i] = rng_uniform(r, 0.5, 2);
    if (ends[0] == 'P') conductance[axis][MASKED] = conductance[axis][0];
    desc->weight[axis] = weight[axis], desc->conductance[axis] = conductance[axis];
}

static void air_and_solids_are_what_their_lists_say(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static unsigned char mask[CELLS];
    static double u[CELLS], open[3][CELLS / MASKED * (MASKED + 1)];
    static pg_cell_value lists[2][12 * CELLS];
    pg_cell_value *list[2] = {lists[0], lists[1]};
    rng r = {7};
    for (int trial = 0; trial < full_or_small(180, 40); trial++) {
        pg_desc desc = {0};
        const int dim = 1 + trial % 3, closed = trial % 5 == 4 ? 1 : -1;
        desc.n[1] = desc.n[2] = 1;
        for (int axis = 0; axis < dim; axis++) masked_axis(&desc, axis, all_ends[(trial + 3 * axis) % ENDS], trial % 2, &r);
        desc.backend = backend, desc.cells.mask = mask, desc.alpha = 1, desc.dim = dim;
        ref p;
        ref_create(&p, &desc);
        REF_EACH(&p, i, j, k) {
            const int64_t at = ref_u(&p, i, j, k);
            const int draw = rng_int(&r, 0, 5);
            mask[at] = (unsigned char)(draw == 1 ? PG_SOLID : draw == 2 ? PG_AIR : PG_FLUID);
            u[at] = mask[at] == PG_FLUID ? linear(&p, i, j, k) : NAN;
        }
        mask[0] = PG_FLUID, u[0] = linear(&p, 0, 0, 0);
        linear_faces(&desc, &p);
        for (int axis = 0; axis < 3; axis++) {
            for (size_t q = 0; q < sizeof open[0] / sizeof open[0][0]; q++) open[axis][q] = 0.5;
            if (closed >= 0 && axis < dim) open[axis][closed] = 0, desc.cells.openness[axis] = open[axis];
        }
        int number[2];
        list_values(&p, mask, trial / 3 % 3 > 0, &r, list, number);
        desc.cells.air_value = list[0], desc.cells.air_values = number[0];
        desc.cells.solid_flux = list[1], desc.cells.solid_fluxes = number[1];
        pg_solver *solver = create(&desc);
        check_masked(&desc, &p, solver, u, closed);
        pg_destroy(solver);
        ref_free(&p);
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static void what_makes_no_sense_is_refused(void **state)
{
    static double u[2 * N * N], v[2 * N * N], g[N];
    pg_desc desc = {0};
    desc.n[0] = desc.n[1] = N, desc.backend = backend_or_skip(state), desc.face[0].array = g;
    pg_solver *solver = create(&desc);
    for (int q = 0; q < 2 * N * N; q++) v[q] = 7;
    const struct { const void *u; int axis; void *out; int where; const char *says; } cases[] = {
        {u, -1, v, PG_AT_FACES, "axis is -1"},   {u, 2, v, PG_AT_FACES, "axis is 2"},
        {u, 0, v, 2, "where is 2"},              {NULL, 0, v, PG_AT_FACES, "u is NULL"},
        {u, 0, NULL, PG_AT_FACES, "out is NULL"}, {u, 0, u, PG_AT_UNKNOWNS, "overlap"},
        {u, 0, u + N * N - 1, PG_AT_FACES, "overlap"}, {u, 0, g, PG_AT_FACES, "face array"},
    };
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        assert_int_equal(pg_gradient(solver, cases[q].u, cases[q].axis, cases[q].out, (pg_where)cases[q].where),
                         PG_ERROR_ARGUMENT);
        if (!strstr(pg_last_error(solver), cases[q].says)) fail_msg("%s", pg_last_error(solver));
    }
    for (int q = 0; q < 2 * N * N; q++) assert_true(v[q] == 7 && u[q] == 0);
    OK(pg_gradient(solver, u, 1, v, PG_AT_UNKNOWNS), solver);
    pg_destroy(solver);
    assert_int_equal(pg_gradient(NULL, u, 0, v, PG_AT_FACES), PG_ERROR_ARGUMENT);
}

static void device_arrays_give_the_same_bits(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    (void)backend;
#ifdef PG_TEST_CUDA
    enum { POINTS = 2 * N * N * N, MOST = 2 * N * N * (N + 1) };
    static double u[POINTS], host[MOST], back[MOST];
    rng r = {3};
    for (int q = 0; q < POINTS; q++) u[q] = rng_uniform(&r, -1, 1);
    double *device_u, *device_v;
    assert_int_equal(cudaMalloc((void **)&device_u, sizeof u), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&device_v, sizeof back), cudaSuccess);
    assert_int_equal(cudaMemcpy(device_u, u, sizeof u, cudaMemcpyHostToDevice), cudaSuccess);
    pg_desc desc = {0};
    desc.n[0] = desc.n[1] = desc.n[2] = N, desc.batch = 2, desc.backend = backend, desc.face[1].value = 3;
    pg_solver *on_host = create(&desc);
    desc.memory = PG_MEM_DEVICE;
    pg_solver *on_device = create(&desc);
    for (int q = 0; q < 6; q++) {
        const pg_where where = q % 2 ? PG_AT_UNKNOWNS : PG_AT_FACES;
        OK(pg_gradient(on_host, u, q / 2, host, where), on_host);
        OK(pg_gradient(on_device, device_u, q / 2, device_v, where), on_device);
        assert_int_equal(cudaMemcpy(back, device_v, sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
        assert_memory_equal(host, back, q % 2 ? sizeof u : sizeof back);
    }
    pg_destroy(on_host), pg_destroy(on_device);
    cudaFree(device_u), cudaFree(device_v);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(faces_are_the_differences_of_the_rows),
        ON_BOTH(linear_functions_are_exact),
        ON_BOTH(it_is_of_second_order_at_every_kind_of_face),
        ON_BOTH(air_and_solids_are_what_their_lists_say),
        ON_BOTH(what_makes_no_sense_is_refused),
        ON_CUDA(device_arrays_give_the_same_bits),
    };
    return cmocka_run_group_tests_name("gradient", tests, NULL, NULL);
}
