/* Random problems by number, each assembled once more from the words of poisson_gpu.h, in long double, and judged:

       campaign [-v] [-d] [-b cpu|cuda] [-k cells|velocity|boxes|surfaces] FIRST COUNT

   Problem number q of a kind is the same everywhere. cells: masks and coefficients of cells. surfaces: also nodes,
   metrics, and surfaces between the unknowns. boxes: none. velocity: boxes with a velocity. A fault is a line that
   begins with "FAULT" and the class of the fault, and makes the exit status 1; what is worth a look, but breaks no
   promise, begins with "note", and is only counted without -v. Judged are the verdict and
   the residual of the u that is returned, what is outside of the fluid and between rows, and iterations.
   -d: all of them by the default method in f64, to the default tolerance, with robust 0.
   -v prints reports, -vv all data. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "poisson_gpu.h"
#include "choice.h"

typedef long double real;

enum { CELLS, VELOCITY, BOXES, SURFACES, KINDS };
static const char *const kind_names[KINDS] = {"cells", "velocity", "boxes", "surfaces"};

/* ---- Random numbers: splitmix64 (Steele, Lea, Flood 2014) ---- */

static uint64_t state_of_random;

static uint64_t next_random(void)
{
    uint64_t z = (state_of_random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static double uniform(double low, double high) { return low + (high - low) * (double)(next_random() >> 11) * 0x1p-53; }
static int whole(int low, int high) { return low + (int)(next_random() % (uint64_t)(high - low + 1)); }   /* both included */
static int chance(double share) { return uniform(0, 1) < share; }
static double decades(double low, double high) { return pow(10, uniform(low, high)); }

/* ---- A problem ---- */

typedef struct problem {
    long number;
    int kind, f32, guess;           /* guess: 0, random or a large constant */
    int weak;                       /* some faces are almost closed */
    double contrast;                /* of the coefficients, in decades */
    pg_desc desc;
    pg_stop stop;
    int blocks;
    void *block[64];
    size_t count_u, count_f;
    void *u, *f, *u_before, *f_before;
} problem;

static int plain;    /* -d */
static int has_cells(const problem *p) { return p->kind == CELLS || p->kind == SURFACES; }
static const double padding = 12345.678;    /* between rows and planes of u */

static void *reserve(size_t bytes)
{
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p) exit((puts("not enough memory"), 2));
    return p;
}
static void *keep(problem *p, size_t bytes) { return p->block[p->blocks++] = reserve(bytes); }

static double get(const problem *p, const void *array, size_t at)
{
    return p->f32 ? (double)((const float *)array)[at] : ((const double *)array)[at];
}
static void put(const problem *p, void *array, size_t at, double value)
{
    if (p->f32) ((float *)array)[at] = (float)value;
    else ((double *)array)[at] = value;
}
static double rounded(const problem *p, double x) { return p->f32 ? (double)(float)x : x; }

static size_t points_of(const pg_desc *d) { return (size_t)d->n[0] * (size_t)d->n[1] * (size_t)d->n[2]; }

static void place(const pg_desc *d, size_t point, int at[3])
{
    at[0] = (int)(point % (size_t)d->n[0]);
    at[1] = (int)(point / (size_t)d->n[0] % (size_t)d->n[1]);
    at[2] = (int)(point / (size_t)d->n[0] / (size_t)d->n[1]);
}
static size_t packed(const pg_desc *d, const int at[3])
{
    return (size_t)at[0] + (size_t)d->n[0] * ((size_t)at[1] + (size_t)d->n[1] * (size_t)at[2]);
}
static size_t element(const pg_desc *d, const int64_t *stride, const int at[3])
{
    const int64_t row = stride[0] ? stride[0] : d->n[0], plane = stride[1] ? stride[1] : row * d->n[1];
    return (size_t)(at[0] + at[1] * row + at[2] * plane);
}
static size_t to_next_problem(const pg_desc *d, const int64_t stride[3])
{
    const int64_t row = stride[0] ? stride[0] : d->n[0], plane = stride[1] ? stride[1] : row * d->n[1];
    return (size_t)(stride[2] ? stride[2] : plane * d->n[2]);
}
static int kind_of(const pg_desc *d, const int at[3])
{
    return d->cells.mask ? d->cells.mask[element(d, d->cells.stride_mask, at)] : PG_FLUID;
}

/* What is beside a side; 0: a face of the box. */
static int beside(const pg_desc *d, const int at[3], int axis, int end, int to[3])
{
    memcpy(to, at, 3 * sizeof *to);
    to[axis] += end ? 1 : -1;
    if (to[axis] >= 0 && to[axis] < d->n[axis]) return 1;
    to[axis] = (to[axis] + d->n[axis]) % d->n[axis];
    return d->face[2 * axis].kind == PG_PERIODIC;
}

/* ---- Drawing ---- */

static int face_number;    /* of axes drawn: all closed, or any kind */

static void draw_ends(problem *p, int a, int closed)
{
    static const pg_face_kind any[] = {PG_DIRICHLET, PG_NEUMANN, PG_ROBIN, PG_NEUMANN};
    pg_face *face = &p->desc.face[2 * a];
    const int periodic = chance(0.2);
    face_number += 2;
    for (int end = 0; end < 2; end++) {
        face[end].kind = periodic ? PG_PERIODIC : closed ? PG_NEUMANN : any[whole(0, 3)];
        if (face[end].kind != PG_ROBIN) continue;
        const double sign = chance(0.2) ? -1 : 1;
        face[end].a = sign * decades(-2, 2), face[end].b = sign * decades(-2, 2);
    }
}

/* Intervals of one axis: how many coordinates there are but one. */
static int intervals_of(const pg_desc *d, int a)
{
    const pg_face *face = &d->face[2 * a];
    if (d->centring[a] == PG_CELL || face[0].kind == PG_PERIODIC) return d->n[a];
    return d->n[a] - 1 + (face[0].kind == PG_DIRICHLET) + (face[1].kind == PG_DIRICHLET);
}

static void draw_spacing(problem *p, int a)
{
    pg_desc *d = &p->desc;
    const int m = intervals_of(d, a), choice = whole(0, 5);
    if (choice == 1) d->h[a] = decades(-2, 1);
    if (choice < 4 || m < 1) return;
    double *coord = keep(p, sizeof *coord * (size_t)(m + 1));
    const double ratio = choice == 5 ? decades(0, 2.0 / m) : 1;    /* 1 to 100 over the axis */
    double h = decades(-1, 0) / m;
    coord[0] = uniform(-1, 1);
    for (int i = 0; i < m; i++, h *= ratio) coord[i + 1] = coord[i] + h * (choice == 4 ? uniform(0.6, 1.6) : 1);
    d->coord[a] = coord;
}

static void draw_metric(problem *p, int a)
{
    pg_desc *d = &p->desc;
    const int n = d->n[a], jumps = chance(0.3);
    double *w = keep(p, sizeof *w * (size_t)n), *k = keep(p, sizeof *k * (size_t)(n + 1)), layer = 1;
    for (int i = 0; i <= n; i++) {
        if (jumps && chance(0.2)) layer = decades(-2, 2);
        k[i] = layer * uniform(0.7, 1.4);
        if (i < n) w[i] = layer * uniform(0.7, 1.4);
    }
    if (d->face[2 * a].kind == PG_PERIODIC) k[n] = k[0];
    else if (p->kind != VELOCITY && chance(0.3)) k[0] = 0;
    if (chance(0.9)) d->weight[a] = w;
    if (chance(0.9)) d->conductance[a] = k;
}

static void draw_shape(problem *p)
{
    static const int most[] = {200, 28, 12};
    pg_desc *d = &p->desc;
    d->dim = whole(0, 9) < 1 ? 1 : whole(0, 8) < 5 ? 2 : 3;
    const int closed = chance(p->kind == VELOCITY ? 0.2 : 0.5), small = chance(0.25);
    for (int a = 0; a < 3; a++) {
        const int largest = small ? 6 : most[d->dim - 1];
        d->n[a] = a >= d->dim ? 1 : chance(0.05) ? whole(1, 3) : whole(1, largest);
        d->centring[a] = p->kind == CELLS || chance(0.5) ? PG_CELL : PG_NODE;
        if (a >= d->dim) continue;
        draw_ends(p, a, closed);
        draw_spacing(p, a);
        if (p->kind != CELLS && chance(0.15)) draw_metric(p, a);
    }
    const int alpha = whole(0, 9);
    d->alpha = alpha < 5 ? 0 : alpha == 5 ? decades(-9, -4) : alpha < 9 ? decades(-2, 2) : decades(2, 6);
    d->beta = chance(0.4) ? 0 : decades(-3, 3);
    d->batch = chance(0.1) ? whole(2, 3) : chance(0.5);
    d->coarsest = chance(0.6) ? 8 : chance(0.3) ? whole(8, 40) : 0;
}

static void draw_strides(problem *p, int64_t stride[3])
{
    const pg_desc *d = &p->desc;
    if (chance(0.6)) return;
    stride[0] = d->n[0] + whole(0, 3);
    stride[1] = stride[0] * d->n[1] + whole(0, 5);
    stride[2] = stride[1] * d->n[2] + whole(0, 7);
}

static void set_cells(problem *p, unsigned char *mask, const int lo[3], const int hi[3], pg_cell_kind kind)
{
    int at[3];
    for (at[2] = lo[2]; at[2] <= hi[2]; at[2]++)
        for (at[1] = lo[1]; at[1] <= hi[1]; at[1]++)
            for (at[0] = lo[0]; at[0] <= hi[0]; at[0]++)
                mask[element(&p->desc, p->desc.cells.stride_mask, at)] = (unsigned char)kind;
}

static void draw_block(problem *p, unsigned char *mask, double air)
{
    int lo[3], hi[3];
    for (int a = 0; a < 3; a++) {
        lo[a] = whole(0, p->desc.n[a] - 1), hi[a] = lo[a] + whole(0, p->desc.n[a] / 3);
        if (hi[a] >= p->desc.n[a]) hi[a] = p->desc.n[a] - 1;
    }
    set_cells(p, mask, lo, hi, chance(air) ? PG_AIR : PG_SOLID);
}

/* Across the box, mostly with a hole. */
static void draw_wall(problem *p, unsigned char *mask)
{
    const pg_desc *d = &p->desc;
    const int axis = whole(0, d->dim - 1), where = whole(0, d->n[axis] - 1);
    int lo[3] = {0, 0, 0}, hi[3] = {d->n[0] - 1, d->n[1] - 1, d->n[2] - 1};
    lo[axis] = hi[axis] = where;
    set_cells(p, mask, lo, hi, PG_SOLID);
    if (chance(0.3)) return;
    for (int a = 0; a < 3; a++)
        if (a != axis) lo[a] = hi[a] = whole(0, d->n[a] - 1);
    set_cells(p, mask, lo, hi, PG_FLUID);
}

static void draw_mask(problem *p)
{
    static const double shares[] = {0, 0.1, 0.3, 0.5};
    pg_desc *d = &p->desc;
    int64_t stride[3] = {0, 0, 0};
    draw_strides(p, stride);
    memcpy(d->cells.stride_mask, stride, sizeof d->cells.stride_mask);
    const size_t count = to_next_problem(d, stride);
    unsigned char *mask = keep(p, count);
    memset(mask, 99, count);
    const int lo[3] = {0, 0, 0}, hi[3] = {d->n[0] - 1, d->n[1] - 1, d->n[2] - 1}, style = whole(0, 5);
    const double solid = style == 0 ? shares[whole(0, 3)] : 0, air = style < 2 ? shares[whole(0, 2)] / 3 : 0;
    set_cells(p, mask, lo, hi, PG_FLUID);
    int at[3], fluid = 0;
    for (size_t c = 0; c < points_of(d) && solid + air > 0; c++) {
        const double x = uniform(0, 1);
        place(d, c, at);
        mask[element(d, stride, at)] = x < solid ? PG_SOLID : x < solid + air ? PG_AIR : PG_FLUID;
    }
    const double of_air = chance(0.5) ? 0 : 0.3;
    for (int q = whole(1, 6); q > 0 && (style == 1 || style == 2 || style == 4); q--) draw_block(p, mask, of_air);
    for (int q = whole(1, 4); q > 0 && (style == 3 || style == 4); q--) draw_wall(p, mask);
    for (size_t c = 0; c < points_of(d); c++) place(d, c, at), fluid += mask[element(d, stride, at)] == PG_FLUID;
    place(d, (size_t)whole(0, (int)points_of(d) - 1), at);
    if (!fluid && chance(0.8)) mask[element(d, stride, at)] = PG_FLUID;
    d->cells.mask = mask;
}

/* Values of a field of this size: random, in layers, or of two values in blocks. */
static void draw_field(problem *p, void *array, const int n[3])
{
    const int style = whole(0, 2), axis = whole(0, p->desc.dim - 1), size = whole(1, 6);
    const double half = p->contrast / 2;
    double *const layer = reserve(sizeof *layer * (size_t)(n[axis] + 1));
    for (int i = 0; i < n[axis]; i++) layer[i] = decades(-half, half);
    const uint64_t salt = next_random();
    for (int k = 0; k < n[2]; k++)
        for (int j = 0; j < n[1]; j++)
            for (int i = 0; i < n[0]; i++) {
                const int at[3] = {i, j, k};
                const uint64_t block = (uint64_t)(i / size) * 73856093u ^ (uint64_t)(j / size) * 19349663u ^
                                       (uint64_t)(k / size) * 83492791u ^ salt;
                const double x = style == 0   ? decades(-half, half)
                                 : style == 1 ? layer[at[axis]]
                                              : pow(10, block * 0x9e3779b97f4a7c15u >> 63 ? half : -half);
                put(p, array, (size_t)i + (size_t)n[0] * ((size_t)j + (size_t)n[1] * (size_t)k), x);
            }
    free(layer);
}

static void draw_openness(problem *p, void *array, size_t count)
{
    const double closed = chance(0.5) ? 0 : uniform(0, 0.5), cut = uniform(0, 0.5), weak = p->weak ? uniform(0, 0.3) : 0;
    for (size_t q = 0; q < count; q++) {
        const double x = uniform(0, 1), value = x < closed                ? 0
                                                : x < closed + cut        ? uniform(0.01, 1)
                                                : x < closed + cut + weak ? decades(-10, -4)
                                                                          : 1;
        put(p, array, q, value);
    }
}

static void draw_coefficients(problem *p)
{
    pg_desc *d = &p->desc;
    const size_t points = points_of(d);
    const int beta = whole(0, 3), openness = chance(0.35), shift = chance(0.15);
    p->weak = openness && chance(0.4);
    p->contrast = p->weak ? uniform(0, 2) : chance(0.4) ? 6 : uniform(0, 6);
    for (int a = 0; a < d->dim; a++) {
        int n[3] = {d->n[0], d->n[1], d->n[2]};
        n[a]++;
        const size_t faces = points / (size_t)d->n[a] * (size_t)n[a];
        if (beta == 1) draw_field(p, (void *)(d->cells.beta_face[a] = keep(p, faces * sizeof(double))), n);
        if (openness) draw_openness(p, (void *)(d->cells.openness[a] = keep(p, faces * sizeof(double))), faces);
    }
    if (beta == 2) draw_field(p, (void *)(d->cells.beta_cell = keep(p, points * sizeof(double))), d->n);
    if (shift) {
        void *array = keep(p, points * sizeof(double));
        const double none = uniform(0, 1.2);
        for (size_t q = 0; q < points; q++) put(p, array, q, chance(none) ? 0 : decades(-3, 3));
        d->cells.alpha_cell = array;
    }
    if (!(beta == 1 || beta == 2 || openness || shift) || chance(0.8)) draw_mask(p);
    static const int robust[] = {0, 0, 0, 0, 0, PG_NONE, 1, 2, 3};
    d->robust = robust[whole(0, 8)];
}

/* Values on some of the sides where fluid meets this kind; some twice. */
static pg_cell_value *draw_values(problem *p, int kind, int *count)
{
    const pg_desc *d = &p->desc;
    const double share = uniform(0, 1);
    const int surface = p->kind == SURFACES && kind == PG_AIR ? whole(0, 2) : 0;
    pg_cell_value *list = keep(p, 12 * points_of(d) * sizeof *list);
    int at[3], to[3];
    for (size_t c = 0; c < points_of(d); c++) {
        place(d, c, at);
        for (int face = 0; face < 2 * d->dim && kind_of(d, at) == PG_FLUID; face++) {
            if (!beside(d, at, face / 2, face % 2, to) || kind_of(d, to) != kind || !chance(share)) continue;
            const double theta = surface == 0 ? 0 : surface == 1 ? uniform(0, 1) : decades(-4.5, 0);
            for (int q = chance(0.1) ? 2 : 1; q > 0; q--)
                list[(*count)++] = (pg_cell_value){{at[0], at[1], at[2]}, face, rounded(p, uniform(-1, 1)), theta};
        }
    }
    return list;
}

static void draw_face_values(problem *p)
{
    pg_desc *d = &p->desc;
    for (int q = 0; q < 2 * d->dim; q++) {
        pg_face *face = &d->face[q];
        const int what = whole(0, 2);
        const size_t count = points_of(d) / (size_t)d->n[q / 2] * (size_t)(d->batch > 1 ? d->batch : 1);
        if (face->kind == PG_PERIODIC || what == 0) continue;
        if (what == 1) {
            face->value = rounded(p, uniform(-1, 1));
            continue;
        }
        void *array = keep(p, count * sizeof(double));
        for (size_t i = 0; i < count; i++) put(p, array, i, uniform(-1, 1));
        face->array = array;
    }
}

static void draw_arrays(problem *p)
{
    pg_desc *d = &p->desc;
    draw_strides(p, d->stride_u), draw_strides(p, d->stride_f);
    const size_t batch = d->batch > 1 ? (size_t)d->batch : 1;
    const size_t next_u = to_next_problem(d, d->stride_u), next_f = to_next_problem(d, d->stride_f);
    p->count_u = next_u * batch, p->count_f = next_f * batch;
    p->u = keep(p, p->count_u * sizeof(double)), p->f = keep(p, p->count_f * sizeof(double));
    p->u_before = keep(p, p->count_u * sizeof(double)), p->f_before = keep(p, p->count_f * sizeof(double));
    for (size_t q = 0; q < p->count_u; q++) put(p, p->u, q, padding);
    for (size_t q = 0; q < p->count_f; q++) put(p, p->f, q, NAN);
    const int form = whole(0, 9);
    const double size = chance(0.8) ? 1 : decades(-3, 3), constant = (chance(0.5) ? 1 : -1) * decades(0, 4);
    p->guess = chance(0.45) ? 0 : chance(0.8) || plain ? 1 : 2;
    int at[3];
    for (size_t q = 0; q < batch; q++) {
        const size_t single = (size_t)whole(0, (int)points_of(d) - 1);
        for (size_t c = 0; c < points_of(d); c++) {
            place(d, c, at);
            const int fluid = kind_of(d, at) == PG_FLUID;
            double f = uniform(-1, 1), u = uniform(-1, 1);
            if (form == 0) f = 0;
            if (form == 1) f = c == single;
            if (form == 2) f = cos(0.3 * at[0] + 0.2 * at[1] - 0.25 * at[2]);
            if (form == 3) f = 1 + 0.1 * f;
            u = p->guess == 0 ? 0 : p->guess == 1 ? u : constant + u;
            put(p, p->f, q * next_f + element(d, d->stride_f, at), fluid ? size * f : NAN);
            put(p, p->u, q * next_u + element(d, d->stride_u, at), fluid ? u : NAN);
        }
    }
    memcpy(p->u_before, p->u, p->count_u * sizeof(double));
    memcpy(p->f_before, p->f, p->count_f * sizeof(double));
}

static const unsigned preconditioners[] = {0, PG_PRECOND_CYCLE, PG_PRECOND_DIAGONAL, PG_PRECOND_NONE,
                                           PG_PRECOND_AINV, PG_PRECOND_AINV2, PG_PRECOND_DIRECT};

static unsigned draw_method(const problem *p)
{
    static const unsigned krylov[] = {PG_CG, PG_PIPECG, PG_BICGSTAB, PG_PIPEBICGSTAB};
    static const unsigned cycles[] = {PG_FMG, PG_FMG, PG_VCYCLE, PG_WCYCLE};
    static const unsigned sweeps[] = {PG_RBGS, PG_SOR, PG_JACOBI};
    static const unsigned smoothers[] = {0, 0, 0, PG_SMOOTH_RBGS, PG_SMOOTH_JACOBI, PG_SMOOTH_CHEBYSHEV, PG_SMOOTH_LINES};
    const int choice = whole(0, 99), velocity = p->kind == VELOCITY;
    if (choice < (velocity ? 15 : 35)) return chance(0.8) ? 0 : p->kind == BOXES ? PG_FASTEST : 0;
    if (choice < (velocity ? 90 : 75)) {
        const unsigned method = krylov[velocity ? whole(2, 3) : whole(0, 3)];
        unsigned with = preconditioners[velocity && chance(0.9) ? whole(2, 6) : whole(0, 6)];
        if (method == PG_PIPEBICGSTAB && with == PG_PRECOND_CYCLE) with = PG_PRECOND_AINV;
        if (method == PG_PIPEBICGSTAB && with == 0 && has_cells(p)) with = PG_PRECOND_DIAGONAL;
        if (p->desc.flags & PG_MIXED) return (chance(0.5) ? PG_CG : chance(0.5) ? PG_PIPECG : PG_BICGSTAB) | PG_PRECOND_CYCLE;
        return method | with;
    }
    if (velocity || (choice >= 93 && !(p->desc.flags & PG_MIXED))) return sweeps[whole(0, 2)];
    if (p->kind == BOXES && chance(0.3)) return PG_DIRECT;
    const unsigned method = cycles[whole(0, 3)];
    if (has_cells(p)) return method;
    return method | smoothers[whole(0, 6)] | (chance(0.2) ? PG_SYMMETRIC : 0) | (chance(0.2) ? PG_KEEP_CYCLES : 0);
}

static void draw_velocity(problem *p)
{
    pg_desc *d = &p->desc;
    double size = decades(-1, 2) * (d->beta > 0 ? d->beta : 1);
    for (int a = 0; a < d->dim; a++) d->velocity[a] = chance(0.2) ? 0 : size * uniform(-1, 1);
    if (d->velocity[0] == 0) d->velocity[0] = size;
    if (d->alpha == 0 && chance(0.6)) d->alpha = decades(-2, 2);
    if (chance(0.5)) set_choice(d, choice_of(d) | PG_UPWIND);
}

static void draw_stop(problem *p)
{
    pg_stop *s = &p->stop;
    s->norm = (pg_norm_kind)(chance(0.4) ? 0 : whole(0, 3));
    s->check = chance(0.5) ? 0 : whole(1, 10);
    s->guess = chance(0.7) ? PG_GUESS_DEFAULT : chance(0.5) ? PG_GUESS_U : PG_GUESS_ZERO;
    if (chance(0.05)) s->min_iter = whole(1, 12);
    if (chance(0.85)) return;
    s->rtol = p->f32 ? decades(-7, -2) : decades(-14, -2);
    if (chance(0.2)) s->rtol = 0, s->atol = p->f32 ? decades(-6, -1) : decades(-12, -1);
    if (chance(0.2)) s->relative_to_first = 1;
}

static void draw_problem(problem *p, int kind, long number, pg_backend backend)
{
    static const unsigned precisions[] = {0, PG_F64, PG_F64, PG_F64, PG_F32, PG_F32, PG_F32, PG_MIXED};
    memset(p, 0, sizeof *p);
    p->kind = kind, p->number = number;
    state_of_random = (uint64_t)number * 0x2545f4914f6cdd1du + (uint64_t)kind;
    next_random();
    p->desc.backend = backend;
    set_choice(&p->desc, precisions[whole(0, kind == VELOCITY ? 6 : 7)]);
    if (plain) set_choice(&p->desc, 0);
    p->f32 = p->desc.flags == PG_F32;
    draw_shape(p);
    draw_face_values(p);
    if (has_cells(p)) draw_coefficients(p);
    if (p->desc.cells.mask && chance(0.5)) p->desc.cells.air_value = draw_values(p, PG_AIR, &p->desc.cells.air_values);
    if (p->desc.cells.mask && chance(0.5)) p->desc.cells.solid_flux = draw_values(p, PG_SOLID, &p->desc.cells.solid_fluxes);
    draw_arrays(p);
    set_choice(&p->desc, choice_of(&p->desc) | draw_method(p));
    if (kind == VELOCITY) draw_velocity(p);
    draw_stop(p);
    if (!plain) return;
    set_choice(&p->desc, p->desc.flags & PG_UPWIND), p->desc.robust = 0;
    memset(&p->stop, 0, sizeof p->stop);
}

static void free_problem(problem *p)
{
    while (p->blocks) free(p->block[--p->blocks]);
}

/* ---- The same once more: rows of a sparse matrix ---- */

/* One axis: row i has low[i] (u_i - u_(i-1)) + high[i] (u_i - u_(i+1)), and beside a face end (a u - g); of the velocity
   flow[e][i] (what is beside - u_i), and beside a face flow[e][i] (g - a u). flux[e][i] du/dn leaves through a side. */
typedef struct axis {
    real *w, *link[2], *flow[2], *flux[2], end[2], a[2], geometry;
} axis;

static void axis_flow(axis *t, const pg_desc *d, int a, const real *gap, const real b[2])
{
    const int n = d->n[a], periodic = d->face[2 * a].kind == PG_PERIODIC;
    const real v = d->velocity[a];
    for (int i = 0; i < n && v != 0 && !(periodic && n == 1); i++) {
        real way[2], share;
        int at_end[2];
        for (int e = 0; e < 2; e++) {
            at_end[e] = !periodic && i == (e ? n - 1 : 0);
            way[e] = gap[i + e] * (at_end[e] && b[e] != 0 ? 1 : 0.5L);    /* where the difference is of second order */
        }
        for (int e = 0; e < 2; e++) {
            share = way[0] + way[1] > 0 ? way[1 - e] / (way[0] + way[1]) : 0.5L;
            if (d->flags & PG_UPWIND) share = (v > 0) == (e == 0);
            const real closed = at_end[e] && d->conductance[a] && d->conductance[a][i + e] == 0;
            const real per = at_end[e] ? t->a[e] * gap[i + e] + b[e] : gap[i + e];
            t->flow[e][i] = closed ? 0 : (e ? v : -v) * share / per;
        }
    }
}

static void axis_create(axis *t, const pg_desc *d, int a)
{
    const int n = d->n[a], absent = a >= d->dim, cell = d->centring[a] == PG_CELL, m = absent ? 1 : intervals_of(d, a);
    const pg_face *face = &d->face[2 * a];
    const int periodic = !absent && face[0].kind == PG_PERIODIC;
    memset(t, 0, sizeof *t);
    t->w = reserve(7 * (size_t)n * sizeof *t->w);
    for (int e = 0; e < 2; e++) t->link[e] = t->w + n * (1 + e), t->flow[e] = t->w + n * (3 + e), t->flux[e] = t->w + n * (5 + e);
    t->w[0] = 1;
    if (absent) return;
    real *edge = reserve((size_t)(m + 1) * sizeof *edge), *x = reserve((size_t)n * sizeof *x),
         *gap = reserve((size_t)(n + 1) * sizeof *gap);
    const real h = d->h[a] != 0 ? (real)d->h[a] : m ? 1.0L / m : 0;
    for (int i = 0; i <= m; i++) edge[i] = d->coord[a] ? (real)d->coord[a][i] : i * h;
    const int first = !periodic && face[0].kind == PG_DIRICHLET;
    for (int i = 0; i < n; i++) x[i] = cell ? (edge[i] + edge[i + 1]) / 2 : edge[i + first];
    for (int i = 1; i < n; i++) gap[i] = x[i] - x[i - 1];
    for (int i = 1; i < n && d->coord[a]; i++) t->geometry = fmaxl(t->geometry, fabsl(x[i]) / gap[i]);
    gap[0] = x[0] - edge[0], gap[n] = edge[m] - x[n - 1];
    if (periodic) gap[0] = gap[n] = gap[0] + gap[n];
    for (int i = 0; i < n; i++) {
        t->w[i] = cell ? edge[i + 1] - edge[i] : (gap[i] + gap[i + 1]) / 2;
        if (m == 0) t->w[i] = h > 0 ? h : 1;
        if (d->weight[a]) t->w[i] *= d->weight[a][i];
    }
    const double *k = d->conductance[a];
    real b[2] = {0, 0};
    for (int e = 0; e < 2; e++) {
        for (int i = 0; i < n; i++) t->flux[e][i] = (k ? k[i + e] : 1) / t->w[i];
        for (int i = 0; i < n; i++)
            if (periodic ? n > 1 : i != (e ? n - 1 : 0)) t->link[e][i] = (k ? k[i + e] : 1) / (t->w[i] * gap[i + e]);
        if (periodic) continue;
        t->a[e] = face[e].kind == PG_DIRICHLET ? 1 : face[e].kind == PG_NEUMANN ? 0 : (real)face[e].a;
        b[e] = face[e].kind == PG_DIRICHLET ? 0 : face[e].kind == PG_NEUMANN ? 1 : (real)face[e].b;
        t->end[e] = (k ? k[e ? n : 0] : 1) / (t->w[e ? n - 1 : 0] * (t->a[e] * gap[e ? n : 0] + b[e]));
    }
    axis_flow(t, d, a, gap, b);
    free(edge), free(x), free(gap);
}

typedef struct row {
    int at[3], to[6], part;
    real diagonal, factor[6], volume;
} row;

typedef struct matrix {
    int rows, batch, parts;
    row *row;
    real *load, *terms;             /* [problem][row] f and boundary terms, means removed; sums of moduli of terms */
    real *extra;                    /* [row] the part of load that norms of f leave out: of surfaces, see pg_cell_value */
    char *singular;                 /* the part */
    real *removed, *largest;        /* of a problem: largest mean that was removed, and value of f before that */
    int loose;                      /* nothing but an alpha below its rounding holds a part */
    real geometry;                  /* by how many units of f64 distances between rounded positions are off */
} matrix;

/* Of the face at one side, without its distance. */
static real coefficient(const problem *p, const int at[3], int a, int end)
{
    const pg_desc *d = &p->desc;
    int n[3] = {d->n[0], d->n[1], d->n[2]}, face[3] = {at[0], at[1], at[2]}, to[3];
    n[a]++, face[a] += end;
    if (d->face[2 * a].kind == PG_PERIODIC && face[a] == d->n[a]) face[a] = 0;
    const size_t q = (size_t)face[0] + (size_t)n[0] * ((size_t)face[1] + (size_t)n[1] * (size_t)face[2]);
    real c = d->beta != 0 ? d->beta : 1;
    if (d->cells.beta_face[a]) c *= get(p, d->cells.beta_face[a], q);
    if (d->cells.openness[a]) c *= get(p, d->cells.openness[a], q);
    if (!d->cells.beta_cell) return c;
    const real own = get(p, d->cells.beta_cell, packed(d, at));
    if (!beside(d, at, a, end, to)) return c * own;
    return c * 2 / (1 / own + 1 / (real)get(p, d->cells.beta_cell, packed(d, to)));
}

/* Adds up what the list gives sides where fluid meets this kind. cut: 1/theta - 1, of the theta that counts */
static void add_listed(const pg_desc *d, const pg_cell_value *list, int count, int kind, real *of_side, real *cut)
{
    const real least = d->flags & PG_F32 ? 1e-3L : 1e-4L;
    int to[3];
    for (int q = 0; q < count; q++)
        if (beside(d, list[q].cell, list[q].face / 2, list[q].face % 2, to) && kind_of(d, to) == kind) {
            const size_t side = 6 * packed(d, list[q].cell) + (size_t)list[q].face;
            of_side[side] += list[q].value;
            if (list[q].theta != 0) cut[side] = 1 / fmaxl(list[q].theta, least) - 1;
        }
}

static real face_value(const problem *p, const int at[3], int a, int end, int q)
{
    const pg_desc *d = &p->desc;
    const pg_face *face = &d->face[2 * a + end];
    if (!face->array) return face->value;
    const int low = a == 0 ? 1 : 0, high = a == 2 ? 1 : 2;
    const size_t count = points_of(d) / (size_t)d->n[a];
    return get(p, face->array, (size_t)q * count + (size_t)at[low] + (size_t)d->n[low] * (size_t)at[high]);
}

static void add_load(matrix *m, int q, int number, real value)
{
    m->load[q * m->rows + number] += value, m->terms[q * m->rows + number] += fabsl(value);
}

/* Returns whether the side holds u. */
static int add_side(matrix *m, const problem *p, const axis *t, int number, int side, const int *number_of,
                    const real *of_side, const real *cut)
{
    const pg_desc *d = &p->desc;
    row *const r = &m->row[number];
    const int a = side / 2, e = side % 2, i = r->at[a];
    const real c = coefficient(p, r->at, a, e), link = c * t[a].link[e][i], flow = t[a].flow[e][i];
    int to[3];
    if (!beside(d, r->at, a, e, to)) {
        const real end = c * t[a].end[e] - flow, shift = end * t[a].a[e];
        for (int q = 0; q < m->batch; q++) add_load(m, q, number, end * face_value(p, r->at, a, e, q));
        r->diagonal += shift;
        return c * t[a].end[e] * t[a].a[e] > 0;
    }
    const int kind = kind_of(d, to), other = number_of[packed(d, to)];
    if (kind == PG_FLUID && other != number)
        r->diagonal += link - flow, r->to[side] = other, r->factor[side] = flow - link;
    const size_t own = 6 * packed(d, r->at) + (size_t)side;
    const real near = kind == PG_AIR ? link * (1 + cut[own]) : 0, value = (kind == PG_AIR ? near : c * t[a].flux[e][i]) * of_side[own];
    r->diagonal += near, m->extra[number] += near > 0 ? (near - link) * of_side[own] : 0;
    for (int q = 0; q < m->batch; q++) add_load(m, q, number, value);
    return kind == PG_AIR && link > 0;
}

/* held: 2 by more than an alpha near the round-off of the diagonal, 1 by that */
static void find_parts(matrix *m, const char *held)
{
    int *const stack = reserve(sizeof *stack * (size_t)m->rows);
    for (int first = 0; first < m->rows; first++) {
        if (m->row[first].part >= 0) continue;
        const int part = m->parts++;
        int waiting = 1, most = 0;
        stack[0] = first, m->row[first].part = part;
        while (waiting) {
            const int number = stack[--waiting];
            if (held[number] > most) most = held[number];
            for (int side = 0; side < 6; side++) {
                const int to = m->row[number].to[side];
                if (to >= 0 && m->row[number].factor[side] != 0 && m->row[to].part < 0)
                    m->row[to].part = part, stack[waiting++] = to;
            }
        }
        m->singular[part] = most == 0;
        if (most == 1) m->loose = 1;
    }
    free(stack);
}

/* Weighted means of each part of a field of rows. */
static real *means_of(const matrix *m, const real *field)
{
    real *const sum = reserve(2 * (size_t)m->parts * sizeof *sum), *const volume = sum + m->parts;
    for (int q = 0; q < m->rows; q++)
        sum[m->row[q].part] += m->row[q].volume * field[q], volume[m->row[q].part] += m->row[q].volume;
    for (int part = 0; part < m->parts; part++) sum[part] /= volume[part];
    return sum;
}

static void remove_means(matrix *m)
{
    for (int q = 0; q < m->batch; q++) {
        real *const load = m->load + q * m->rows, *const mean = means_of(m, load);
        for (int i = 0; i < m->rows; i++) {
            const int part = m->row[i].part;
            m->largest[q] = fmaxl(m->largest[q], fabsl(load[i]));
            if (!m->singular[part]) continue;
            load[i] -= mean[part];
            m->removed[q] = fmaxl(m->removed[q], fabsl(mean[part]));
        }
        free(mean);
    }
}

static void matrix_create(matrix *m, const problem *p)
{
    const pg_desc *d = &p->desc;
    const size_t points = points_of(d);
    axis t[3];
    memset(m, 0, sizeof *m);
    for (int a = 0; a < 3; a++) axis_create(&t[a], d, a), m->geometry += t[a].geometry;
    m->batch = d->batch > 1 ? d->batch : 1;
    m->row = reserve(points * sizeof *m->row), m->singular = reserve(points);
    m->load = reserve((2 * (size_t)m->batch + 1) * points * sizeof *m->load), m->terms = m->load + points * (size_t)m->batch;
    m->extra = m->terms + points * (size_t)m->batch;
    m->removed = reserve(2 * (size_t)m->batch * sizeof *m->removed), m->largest = m->removed + m->batch;
    int *const number_of = reserve(points * sizeof *number_of), at[3];
    char *const held = reserve(points);
    real *const of_side = reserve(12 * points * sizeof *of_side), *const cut = of_side + 6 * points;
    add_listed(d, d->cells.air_value, d->cells.air_values, PG_AIR, of_side, cut);
    add_listed(d, d->cells.solid_flux, d->cells.solid_fluxes, PG_SOLID, of_side, cut);
    for (size_t c = 0; c < points; c++) {
        place(d, c, at);
        number_of[c] = kind_of(d, at) == PG_FLUID ? m->rows : -1;
        if (number_of[c] >= 0) memcpy(m->row[m->rows++].at, at, sizeof at);
    }
    for (int i = 0; i < m->rows; i++) {
        row *const r = &m->row[i];
        r->part = -1, r->diagonal = d->alpha;
        if (d->cells.alpha_cell) r->diagonal += get(p, d->cells.alpha_cell, packed(d, r->at));
        const real alpha = r->diagonal, eps = p->f32 ? 0x1p-23L : 0x1p-52L;
        char by_side = 0;
        r->volume = t[0].w[r->at[0]] * t[1].w[r->at[1]] * t[2].w[r->at[2]];
        for (int q = 0; q < m->batch; q++)
            add_load(m, q, i, get(p, p->f, (size_t)q * to_next_problem(d, d->stride_f) + element(d, d->stride_f, r->at)));
        for (int side = 0; side < 6; side++) r->to[side] = -1;
        for (int side = 0; side < 2 * d->dim; side++)
            if (add_side(m, p, t, i, side, number_of, of_side, cut)) by_side = 2;
        held[i] = by_side ? by_side : alpha <= 0 ? 0 : alpha < eps * r->diagonal ? 1 : 2;
    }
    find_parts(m, held);
    remove_means(m);
    for (int a = 0; a < 3; a++) free(t[a].w);
    free(number_of), free(held), free(of_side);
}

static void matrix_free(matrix *m) { free(m->row), free(m->load), free(m->singular), free(m->removed); }

static real norm_of(const matrix *m, const real *field, pg_norm_kind kind)
{
    real squares = 0, plain = 0, most = 0, sum = 0;
    for (int i = 0; i < m->rows; i++) {
        const real x = fabsl(field[i]), w = m->row[i].volume;
        if (x != x) return NAN;
        squares += w * x * x, plain += x * x, sum += w * x, most = fmaxl(most, x);
    }
    return kind == PG_NORM_L2 ? sqrtl(squares) : kind == PG_NORM_L2_PLAIN ? sqrtl(plain) : kind == PG_NORM_MAX ? most : sum;
}

/* ---- Judging ---- */

enum { LABELS = 24 };
static struct label { const char *name; int count, fault; long example; } labels[LABELS];
static int verbosity, faults;

typedef struct truth { real residual, first, rhs, floor, noise, mean, largest; int is_nan; } truth;   /* noise: of terms that cancel, and of distances */

static const char *method_of(const problem *p)
{
    static char text[80];
    static const struct { unsigned flag; const char *name; } names[] = {
        {PG_JACOBI, "JACOBI"}, {PG_RBGS, "RBGS"}, {PG_SOR, "SOR"}, {PG_VCYCLE, "VCYCLE"}, {PG_WCYCLE, "WCYCLE"},
        {PG_FMG, "FMG"}, {PG_DIRECT, "DIRECT"}, {PG_FASTEST, "FASTEST"}, {PG_CG, "CG"}, {PG_PIPECG, "PIPECG"},
        {PG_BICGSTAB, "BICGSTAB"}, {PG_PIPEBICGSTAB, "PIPEBICGSTAB"}, {PG_PRECOND_CYCLE, "+cycle"},
        {PG_PRECOND_DIAGONAL, "+diagonal"}, {PG_PRECOND_NONE, "+none"}, {PG_PRECOND_AINV, "+ainv"},
        {PG_PRECOND_AINV2, "+ainv2"}, {PG_PRECOND_DIRECT, "+direct"}, {PG_SMOOTH_JACOBI, " jacobi"},
        {PG_SMOOTH_CHEBYSHEV, " chebyshev"}, {PG_SMOOTH_LINES, " lines"}, {PG_SYMMETRIC, " symmetric"},
        {PG_KEEP_CYCLES, " levels"}, {PG_UPWIND, " upwind"}};
    const unsigned flags = choice_of(&p->desc);
    int used = snprintf(text, sizeof text, "%s ", flags & PG_F32 ? "f32" : flags & PG_MIXED ? "mixed" : "f64");
    for (size_t q = 0; q < sizeof names / sizeof *names; q++)
        if (flags & names[q].flag && used < (int)sizeof text - 16)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s", names[q].name);
    if (text[used - 1] == ' ') snprintf(text + used, sizeof text - (size_t)used, "default");
    return text;
}

static void say(const problem *p, const pg_report *r, const truth *t, int fault, const char *label, const char *what)
{
    struct label *l = labels;
    while (l->name && strcmp(l->name, label)) l++;
    if (!l->name) l->name = label, l->example = p->number, l->fault = fault;
    l->count++, faults += fault;
    if (!fault && !verbosity) return;
    printf("%s %s: %s %ld: %s; %s, norm %d, check %d%s%s, guess %d, contrast %.1f, alpha %g: \"%s\", true residual %.3Lg, "
           "floor %.3Lg, rhs %.3Lg; reported %.3g, %.3g, %.3g; %d iterations\n",
           fault ? "FAULT" : "note", label, kind_names[p->kind], p->number, what, method_of(p), p->stop.norm, p->stop.check,
           p->stop.rtol != 0 || p->stop.atol != 0 ? ", own tolerance" : "", p->weak ? ", weak links" : "", p->guess,
           p->contrast, p->desc.alpha, pg_outcome_string(r->outcome), t->residual, t->floor, t->rhs, r->residual, r->floor,
           r->rhs_norm, r->iterations);
}

/* The residual of u, and what else is to be known, of problem q. */
static truth truth_of(const problem *p, const matrix *m, const void *u, int q, const pg_report *r)
{
    const pg_desc *d = &p->desc;
    const real eps = p->f32 ? 0x1p-23L : 0x1p-52L, *load = m->load + q * m->rows;
    const size_t from = (size_t)q * to_next_problem(d, d->stride_u);
    real *const x = reserve(5 * (size_t)m->rows * sizeof *x), *const residual = x + m->rows,
               *const size = residual + m->rows, *const first = size + m->rows, *const before = first + m->rows;
    truth t = {0};
    for (int i = 0; i < m->rows; i++) {
        x[i] = get(p, u, from + element(d, d->stride_u, m->row[i].at));
        before[i] = p->stop.guess == PG_GUESS_ZERO ? 0 : get(p, p->u_before, from + element(d, d->stride_u, m->row[i].at));
        if (!(fabsl(x[i]) <= 1e300L)) t.is_nan = 1;
        t.largest = fmaxl(t.largest, fabsl(x[i]));
    }
    for (int i = 0; i < m->rows; i++) {
        const row *o = &m->row[i];
        real sum = load[i] - o->diagonal * x[i], of_first = load[i] - o->diagonal * before[i];
        for (int side = 0; side < 6; side++)
            if (o->to[side] >= 0) sum -= o->factor[side] * x[o->to[side]], of_first -= o->factor[side] * before[o->to[side]];
        residual[i] = sum, first[i] = of_first, size[i] = o->diagonal * x[i];
    }
    real *const mean = means_of(m, x);
    for (int part = 0; part < m->parts; part++)
        if (m->singular[part]) t.mean = fmaxl(t.mean, fabsl(mean[part]));
    free(mean);
    t.residual = norm_of(m, residual, p->stop.norm), t.first = norm_of(m, first, p->stop.norm);
    for (int i = 0; i < m->rows; i++) residual[i] = load[i] - m->extra[i];
    t.rhs = norm_of(m, residual, p->stop.norm);
    for (int i = 0; i < m->rows; i++) residual[i] = 1;
    const real unit = norm_of(m, residual, p->stop.norm);
    const int direct = strstr(r->method, "PG_DIRECT") && !(d->flags & (PG_CG | PG_PIPECG | PG_BICGSTAB | PG_PIPEBICGSTAB));
    const real spread = direct ? 16 : d->flags & PG_SOR ? 3 : 1;
    t.floor = eps * (spread * norm_of(m, size, p->stop.norm) + t.rhs + 8 * m->removed[q] * unit);
    t.noise = 0x1p-52L * m->geometry * norm_of(m, size, p->stop.norm) +
              eps * norm_of(m, m->terms + q * m->rows, p->stop.norm);
    if (t.rhs <= 8 * eps * m->removed[q] * unit) t.rhs = 0;
    free(x);
    return t;
}

static real tolerance_of(const problem *p, const truth *t)
{
    const pg_stop *s = &p->stop;
    const real reference = s->relative_to_first || t->rhs == 0 ? t->first : t->rhs;
    const real rtol = s->rtol != 0 ? s->rtol : s->atol != 0 ? 0 : p->f32 ? 1e-5L : 1e-8L;
    return fmaxl(s->atol, rtol * reference);
}

static int is_default(const problem *p)
{
    const unsigned chosen = choice_of(&p->desc) & ~(unsigned)(PG_F64 | PG_F32 | PG_MIXED | PG_FASTEST);
    return chosen == 0;
}

static void judge_arrays(const problem *p, const pg_report *r, const truth *t)
{
    const pg_desc *d = &p->desc;
    const size_t size = p->f32 ? sizeof(float) : sizeof(double);
    char *const known = reserve(p->count_u);
    int at[3], outside = 0, touched = 0;
    for (int q = 0; q < (d->batch > 1 ? d->batch : 1); q++)
        for (size_t c = 0; c < points_of(d); c++) {
            place(d, c, at);
            const size_t e = (size_t)q * to_next_problem(d, d->stride_u) + element(d, d->stride_u, at);
            known[e] = 1;
            outside += kind_of(d, at) != PG_FLUID && r->outcome != PG_NOT_A_NUMBER && get(p, p->u, e) != 0;
        }
    for (size_t e = 0; e < p->count_u; e++)
        if (!known[e]) touched += memcmp((char *)p->u + e * size, (char *)p->u_before + e * size, size) != 0;
    if (outside) say(p, r, t, 1, "outside", "u is not 0 in cells that are not fluid");
    if (touched) say(p, r, t, 1, "padding", "elements of u between rows were touched");
    if (memcmp(p->f, p->f_before, p->count_f * size)) say(p, r, t, 1, "f", "f was touched");
    free(known);
}

static void judge_convergence(const problem *p, const pg_report *r, const truth *t)
{
    const real tolerance = tolerance_of(p, t), allowed = 2 * fmaxl(tolerance, t->floor) + t->noise;
    const int own = p->stop.rtol != 0 || p->stop.atol != 0, converged = r->outcome == PG_CONVERGED;
    if (converged && t->residual > allowed) say(p, r, t, 1, "converged", "not within two tolerances or floors");
    else if (converged && !own && t->rhs > 0 && t->residual > 0.3L * fminl(t->rhs, fmaxl(t->first, t->rhs)) &&
             t->residual > 2 * tolerance)
        say(p, r, t, 1, "hollow", "converged at a residual like the right-hand side's");
    if (r->outcome == PG_STAGNATED && t->residual > 100 * t->floor) say(p, r, t, 1, "stagnated", "far above round-off");
    else if (r->outcome == PG_STAGNATED && t->residual > 2 * fmaxl(t->first, t->rhs) + 2 * t->floor)
        say(p, r, t, 1, "blown up", "stagnated above where it began");
    if (r->outcome == PG_DIVERGED && t->residual <= 0.9L * fminl(t->floor, 1e5L * fmaxl(t->first, t->rhs)))
        say(p, r, t, 1, "not diverged", "the residual is that of round-off");
    else if (r->outcome == PG_STAGNATED && !own && t->floor < 0.01L * t->rhs)
        say(p, r, t, 0, "stagnated early", "with the default tolerance, and a floor far below f");
    if (is_default(p) && !p->f32 && !own && !converged && !(t->floor > 0.01L * t->rhs && r->outcome == PG_STAGNATED) &&
        p->kind != VELOCITY)
        say(p, r, t, p->desc.robust == 0, p->desc.robust == 0 ? "default" : "robust chosen", "the default did not converge");
}

static void judge(const problem *p, const matrix *m, const pg_report *r)
{
    int q = r->problem;
    const truth t = truth_of(p, m, p->u, q, r);
    judge_arrays(p, r, &t);
    if (r->outcome == PG_NOT_A_NUMBER) {
        const int sweeps = p->kind == VELOCITY && p->desc.flags & (PG_JACOBI | PG_RBGS | PG_SOR);    /* grow until they overflow */
        say(p, r, &t, !m->loose && !sweeps, m->loose || sweeps ? "lost" : "not a number", "of a problem without NaN");
        return;
    }
    if (t.is_nan) {
        say(p, r, &t, 1, "NaN", "u has NaN, and the outcome is another one");
        return;
    }
    judge_convergence(p, r, &t);
    const real off = fabsl(t.residual - r->residual);
    if (!(off <= 3 * t.floor + t.noise + 0.02L * t.residual)) say(p, r, &t, 1, "report", "the residual reported is not that of u");
    if (!(fabsl(t.rhs - r->rhs_norm) <= 3 * t.floor + 1e-4L * t.rhs)) say(p, r, &t, 1, "rhs", "another norm of f");
    if (t.mean > 1e-3L * t.largest && t.rhs > 0 && !p->weak)
        say(p, r, &t, r->outcome == PG_CONVERGED, "mean", "u of a singular part has a mean");
    if (r->outcome == PG_DIVERGED && !(p->desc.flags & (PG_VCYCLE | PG_WCYCLE | PG_JACOBI | PG_FMG)))
        say(p, r, &t, 0, "diverged", "");
    if (r->outcome == PG_MAX_ITER && !(p->desc.flags & (PG_VCYCLE | PG_WCYCLE | PG_JACOBI | PG_RBGS | PG_SOR)))
        say(p, r, &t, 0, "iteration limit", "");
    if (r->outcome == PG_BREAKDOWN) say(p, r, &t, 0, "breakdown", "");
    for (q = 0; q < m->batch && r->outcome == PG_CONVERGED; q++) {
        if (q == r->problem) continue;
        const truth other = truth_of(p, m, p->u, q, r);
        if (!(other.residual <= 2 * fmaxl(tolerance_of(p, &other), other.floor)) || other.is_nan)
            say(p, r, &other, 1, "batch", "another problem of the batch has not converged");
    }
}

/* ---- Printing ---- */

static void print_array(const problem *p, const char *name, const void *array, size_t count)
{
    if (!array) return;
    printf("    %s[%zu] =", name, count);
    for (size_t q = 0; q < count; q++) printf(" %.17g", get(p, array, q));
    puts("");
}

static void print_doubles(const char *name, int a, const double *array, int count)
{
    if (!array) return;
    printf("    %s[%d] =", name, a);
    for (int q = 0; q < count; q++) printf(" %.17g", array[q]);
    puts("");
}

static void print_values(const char *name, const pg_cell_value *list, int count)
{
    if (count) printf("    %s[%d] =", name, count);
    for (int q = 0; q < count; q++)
        printf(" {%d,%d,%d; %d; %.17g}", list[q].cell[0], list[q].cell[1], list[q].cell[2], list[q].face, list[q].value);
    if (count) puts("");
}

static void print_problem(const problem *p)
{
    const pg_desc *d = &p->desc;
    printf("%s %ld: %d x %d x %d, dim %d, %s, alpha %.17g, beta %.17g, batch %d, robust %d, coarsest %d, flags 0x%x\n",
           kind_names[p->kind], p->number, d->n[0], d->n[1], d->n[2], d->dim, method_of(p), d->alpha, d->beta, d->batch,
           (int)d->robust, d->coarsest, choice_of(d));
    for (int q = 0; q < 2 * d->dim; q++)
        printf("    face %d: %s, %s, a %g, b %g, centring %d, h %.17g, velocity %g\n", q,
               d->face[q].kind == PG_PERIODIC    ? "periodic"
               : d->face[q].kind == PG_DIRICHLET ? "Dirichlet"
               : d->face[q].kind == PG_NEUMANN   ? "Neumann"
                                                 : "Robin",
               d->face[q].array ? "array" : d->face[q].value != 0 ? "constant" : "0", d->face[q].a, d->face[q].b,
               d->centring[q / 2], d->h[q / 2], d->velocity[q / 2]);
    printf("   %s%s%s%s%s%s weak %d, contrast %g, %d air values, %d solid fluxes, strides u %ld %ld %ld f %ld %ld %ld\n",
           d->cells.mask ? " mask," : "", d->cells.beta_face[0] ? " beta_face," : "", d->cells.beta_cell ? " beta_cell," : "",
           d->cells.openness[0] ? " openness," : "", d->cells.alpha_cell ? " alpha_cell," : "", d->coord[0] || d->coord[1] ? " coord," : "",
           p->weak, p->contrast, d->cells.air_values, d->cells.solid_fluxes, (long)d->stride_u[0], (long)d->stride_u[1],
           (long)d->stride_u[2], (long)d->stride_f[0], (long)d->stride_f[1], (long)d->stride_f[2]);
    printf("    stop: rtol %g, atol %g, relative_to_first %d, min_iter %d, max_iter %d, check %d, norm %d, guess %d; u %s\n",
           p->stop.rtol, p->stop.atol, p->stop.relative_to_first, p->stop.min_iter, p->stop.max_iter, p->stop.check,
           p->stop.norm, p->stop.guess, p->guess == 0 ? "0" : p->guess == 1 ? "random" : "large");
}

static void print_data(const problem *p)
{
    const pg_desc *d = &p->desc;
    const size_t points = points_of(d), batch = d->batch > 1 ? (size_t)d->batch : 1;
    int at[3];
    for (int a = 0; a < d->dim; a++) {
        print_doubles("coord", a, d->coord[a], intervals_of(d, a) + 1);
        print_doubles("weight", a, d->weight[a], d->n[a]);
        print_doubles("conductance", a, d->conductance[a], d->n[a] + 1);
        print_array(p, "beta_face", d->cells.beta_face[a], points / (size_t)d->n[a] * (size_t)(d->n[a] + 1));
        print_array(p, "openness", d->cells.openness[a], points / (size_t)d->n[a] * (size_t)(d->n[a] + 1));
        for (int e = 0; e < 2; e++) {
            print_array(p, e ? "face high" : "face low", d->face[2 * a + e].array, points / (size_t)d->n[a] * batch);
            if (d->face[2 * a + e].value != 0) printf("    face %d = %.17g\n", 2 * a + e, d->face[2 * a + e].value);
        }
    }
    print_array(p, "beta_cell", d->cells.beta_cell, points), print_array(p, "alpha_cell", d->cells.alpha_cell, points);
    print_values("air_value", d->cells.air_value, d->cells.air_values), print_values("solid_flux", d->cells.solid_flux, d->cells.solid_fluxes);
    for (size_t c = 0; c < points && d->cells.mask; c++) {
        place(d, c, at);
        printf("%s%c", at[0] == 0 ? at[1] == 0 ? "\n    " : "\n    " : "", ".#o"[kind_of(d, at)]);
    }
    if (d->cells.mask) puts("");
    print_array(p, "f", p->f, p->count_f), print_array(p, "u before", p->u_before, p->count_u);
    print_array(p, "u", p->u, p->count_u);
}

/* ---- Running ---- */

/* What the default takes with robust 0. */
static struct { int count, most, histogram[1001]; long worst; } iterations;
static int outcomes[PG_OUTCOME_COUNT], refused, solved;

static void count_iterations(const problem *p, const pg_report *r)
{
    if (!is_default(p) || p->desc.robust != 0 || !has_cells(p) || r->outcome != PG_CONVERGED || p->f32) return;
    if (p->stop.rtol != 0 || p->stop.atol != 0 || p->guess == 2 || p->weak || p->stop.check > 1) return;
    iterations.count++, iterations.histogram[r->iterations < 1000 ? r->iterations : 1000]++;
    if (r->iterations > iterations.most) iterations.most = r->iterations, iterations.worst = p->number;
    const truth none = {0};
    const int to_round_off = r->residual > 1e-8 * r->rhs_norm;
    if (r->iterations > 150)
        say(p, r, &none, !to_round_off, to_round_off ? "slow, round-off" : "slow", "more than 150 iterations");
}

/* What the library says of u afterwards, means left in. */
static void print_piece(const problem *p, pg_solver *solver)
{
    const pg_desc *d = &p->desc;
    const size_t next_u = to_next_problem(d, d->stride_u), next_f = to_next_problem(d, d->stride_f);
    void *r = reserve(p->count_f * sizeof(double)), *x = reserve(p->count_u * sizeof(double));    /* laid out like u */
    double norm = NAN;
    if (pg_residual(solver, p->u, p->f, r) == PG_OK) {
        int at[3];
        for (size_t q = 0; q < p->count_u / next_u; q++)
            for (size_t c = 0; c < points_of(d); c++) {
                place(d, c, at);
                put(p, x, q * next_u + element(d, d->stride_u, at), get(p, r, q * next_f + element(d, d->stride_f, at)));
            }
        pg_norm(solver, x, p->stop.norm, &norm);
    }
    printf("    pg_residual: %.6g\n", norm);
    free(r), free(x);
}

static int run(int kind, long number, pg_backend backend)
{
    problem p;
    draw_problem(&p, kind, number, backend);
    if (verbosity) print_problem(&p);
    if (verbosity > 1) print_data(&p);
    fflush(stdout);
    pg_solver *solver = NULL;
    pg_report report;
    memset(&report, 0, sizeof report);
    pg_status status = pg_create(&p.desc, &solver);
    if (status == PG_OK) status = pg_solve(solver, p.u, p.f, &p.stop);
    if (status == PG_OK) status = pg_get_report(solver, &report);
    if (status == PG_OK) {
        solved++, outcomes[report.outcome]++;
        if (verbosity) printf("    %s\n    %s\n    %s\n", report.message, report.method, report.warning);
        for (int q = 0; verbosity && q < report.history_count && q < PG_HISTORY; q++)
            printf("%s%.2g", q ? " " : "    history: ", report.history[q]);
        if (verbosity) puts(""), print_piece(&p, solver);
        matrix m;
        matrix_create(&m, &p);
        judge(&p, &m, &report);
        count_iterations(&p, &report);
        matrix_free(&m);
    } else {
        refused++;
        if (verbosity) printf("    %s: %s\n", pg_status_string(status), pg_last_error(solver));
        if (status != PG_ERROR_UNSUPPORTED && status != PG_ERROR_ARGUMENT && status != PG_ERROR_NO_DEVICE) {
            const truth none = {0};
            say(&p, &report, &none, 1, "status", pg_status_string(status));
        }
    }
    pg_destroy(solver);
    free_problem(&p);
    return status == PG_ERROR_NO_DEVICE;
}

static void print_summary(void)
{
    printf("%d solved, %d refused:", solved, refused);
    for (int q = 0; q < PG_OUTCOME_COUNT; q++)
        if (outcomes[q]) printf(" %d %s,", outcomes[q], pg_outcome_string((pg_outcome)q));
    puts("");
    for (const struct label *l = labels; l->name; l++)
        printf("    %s %-16s %5d, first %ld\n", l->fault ? "FAULT" : "note ", l->name, l->count, l->example);
    if (!iterations.count) return;
    int below = 0, percentile = -1;
    while (below < 0.95 * iterations.count) below += iterations.histogram[++percentile];
    printf("default, robust 0: %d solves, 95 %% of them within %d iterations, most %d (%ld)\n", iterations.count, percentile,
           iterations.most, iterations.worst);
}

int main(int argc, char **argv)
{
    pg_backend backend = PG_CPU;
    int kind = CELLS, numbers = 0;
    long number[2] = {0, 1};
    for (int q = 1; q < argc; q++) {
        if (!strncmp(argv[q], "-v", 2)) {
            verbosity += (int)strlen(argv[q]) - 1;
        } else if (!strcmp(argv[q], "-d")) {
            plain = 1;
        } else if (!strcmp(argv[q], "-b") && q + 1 < argc) {
            backend = strcmp(argv[++q], "cuda") ? PG_CPU : PG_CUDA;
        } else if (!strcmp(argv[q], "-k") && q + 1 < argc) {
            for (kind = 0, q++; kind < KINDS && strcmp(argv[q], kind_names[kind]); kind++) {}
        } else if (numbers < 2) {
            number[numbers++] = atol(argv[q]);
        }
    }
    if (!numbers || kind == KINDS) return puts("campaign [-v] [-d] [-b cpu|cuda] [-k cells|velocity|boxes] FIRST COUNT"), 2;
    for (long q = 0; q < number[1]; q++)
        if (run(kind, number[0] + q, backend)) return puts("no device"), 77;
    print_summary();
    return faults > 0;
}
