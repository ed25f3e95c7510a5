/* What smoke.c solves: warm smoke in a box of air, du/dt + (u grad) u = buoyancy + confinement - grad p, div u = 0,
   with solid cells that no flow enters and an open top. Velocities are on faces, density and temperature of the smoke
   in cells (Harlow, Welch 1965). A step is a projection (Chorin 1968): forces, then the pressure that takes the
   divergence away, -lap p = -div(u)/dt with dp/dn = 0 at walls and solids and p = 0 at the top, then all values are
   carried along the flow: MacCormack's scheme of two semi-Lagrangian traces, limited to the values around (A. Selle, R.
   Fedkiw, B. Kim, Y. Liu, J. Rossignac, J. Sci. Comput. 35, 2008). Vorticity confinement: R. Fedkiw, J. Stam, H. W.
   Jensen 2001.

   Of several ranks each has arrays of the whole box, but works on a slab across the last axis. Beside it they have what
   that takes of the others' values: one plane, and where values are carried as many as the fastest air passes.

   Arrays are where the solver runs. Loops over the cells are kernels there: with PG_SAMPLE_CUDA this file is CUDA C++,
   without it C99. Its second half, the loops, is included by the first one, once a precision. */
#ifndef SMOKE_FLOW_H
#define SMOKE_FLOW_H

#include "ranks.h"

/* The values that are carried along: velocity component a is number a. */
enum { DENSITY = 3, TEMPERATURE, VALUES };

/* What a loop over the cells needs, as it is passed to a kernel. Face (i, j, k) across an axis is the one towards the
   cell's lower neighbour, so faces have one layer more. All velocities have the strides of n + 1 points an axis; arrays
   of cells, among them mask, p and f, are packed. ahead and next also serve as the vorticity and its force. */
struct fields {
    int dim, up, n[3], lo[3], hi[3];        /* this rank works on cells lo to hi - 1, one layer more than there are */
    size_t stride[3], below[3];             /* from face to face, from cell to cell */
    double h, dt, buoyancy, weight, confinement, cooling;
    double source[3], source_radius, keep;
    void *now[VALUES], *ahead[VALUES], *next[VALUES], *p, *f;
    unsigned char *mask;
    unsigned long long *largest;
};

#ifdef PG_SAMPLE_CUDA
#define ON_DEVICE __host__ __device__ inline
#else
#define ON_DEVICE inline
#endif

static ON_DEVICE size_t face_index(const struct fields *g, const int c[3])
{
    return (size_t)c[0] * g->stride[0] + (size_t)c[1] * g->stride[1] + (size_t)c[2] * g->stride[2];
}
static ON_DEVICE size_t cell_index(const struct fields *g, const int c[3])
{
    return (size_t)c[0] * g->below[0] + (size_t)c[1] * g->below[1] + (size_t)c[2] * g->below[2];
}
static ON_DEVICE int in_box(const struct fields *g, const int c[3])
{
    return c[0] < g->n[0] && c[1] < g->n[1] && c[2] < g->n[2];
}
/* Whether there is a cell c, less one along an axis if low, and it is fluid. */
static ON_DEVICE int is_fluid(const struct fields *g, const int c[3], int axis, int low)
{
    if (low ? c[axis] == 0 : c[axis] == g->n[axis]) return 0;
    return g->mask[cell_index(g, c) - (low ? g->below[axis] : 0)] == PG_FLUID;
}
/* Whether face c across an axis is one of the grid's. */
static ON_DEVICE int is_face(const struct fields *g, const int c[3], int axis)
{
    for (int a = 0; a < 3; a++)
        if (a != axis && c[a] >= g->n[a]) return 0;
    return axis < g->dim;
}
/* Whether air can flow through it: fluid on both sides, or the open top. */
static ON_DEVICE int is_open(const struct fields *g, const int c[3], int axis)
{
    return is_fluid(g, c, axis, 1) && (is_fluid(g, c, axis, 0) || (axis == g->up && c[axis] == g->n[axis]));
}
static ON_DEVICE unsigned long long bits_of(double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* LOOP makes a kernel and a loop of OpenMP threads of a function of one cell, for all of a rank's cells
   and, at the high sides of the box, one layer more. The function returns a number that is not negative, or NaN; the
   largest of all stays in *fields.largest until it is set to 0. Numbers are compared by their bits: the same order, in
   which NaN is larger than anything. Few threads of a kernel find the atomic operation worth its while: what they
   compare with may be too small, never too large. */
#ifdef PG_SAMPLE_CUDA
#define KERNEL(body)                                                                                                  \
    static __global__ void NAME(body##_kernel)(struct fields g)                                                       \
    {                                                                                                                 \
        const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), j = (int)(blockIdx.y * blockDim.y + threadIdx.y); \
        const int c[3] = {g.lo[0] + i, g.lo[1] + j, g.lo[2] + (int)blockIdx.z};                                       \
        if (c[0] >= g.hi[0] || c[1] >= g.hi[1]) return;                                                               \
        const unsigned long long bits = bits_of(NAME(body)(&g, c));                                                   \
        if (bits > *g.largest) atomicMax(g.largest, bits);                                                            \
    }
#define LAUNCH(body)                                                                                                  \
    if (memory == PG_MEM_DEVICE) {                                                                                    \
        const dim3 blocks((unsigned)(g->hi[0] - g->lo[0] + 31) / 32, (unsigned)(lines + 7) / 8, (unsigned)planes);    \
        NAME(body##_kernel)<<<blocks, dim3(32, 8)>>>(*g);                                                             \
        sample_require(cudaGetLastError() == cudaSuccess, "launching " #body);                                        \
        return;                                                                                                       \
    }
#else
#define KERNEL(body)
#define LAUNCH(body)
#endif
#ifdef _OPENMP
#define THREADS _Pragma("omp parallel for reduction(max : most) if (rows * g->n[0] > 8192)")
#else
#define THREADS
#endif
#define LOOP(body)                                                                                                    \
    KERNEL(body)                                                                                                      \
    static void NAME(each_##body)(const struct fields *g, pg_memory memory)                                           \
    {                                                                                                                 \
        const int lines = g->hi[1] - g->lo[1], planes = g->hi[2] - g->lo[2];                                          \
        (void)memory;                                                                                                 \
        LAUNCH(body)                                                                                                  \
        const int rows = lines * planes;                                                                              \
        unsigned long long most = *g->largest;                                                                        \
        THREADS                                                                                                       \
        for (int row = 0; row < rows; row++)                                                                          \
            for (int i = g->lo[0]; i < g->hi[0]; i++) {                                                               \
                const int c[3] = {i, g->lo[1] + row % lines, g->lo[2] + row / lines};                                 \
                const unsigned long long bits = bits_of(NAME(body)(g, c));                                            \
                most = bits > most ? bits : most;                                                                     \
            }                                                                                                         \
        *g->largest = most;                                                                                           \
    }

#define real double
#define NAME(x) x##_f64
#include "smoke_flow.h"
#undef real
#undef NAME
#define real float
#define NAME(x) x##_f32
#include "smoke_flow.h"
#undef real
#undef NAME

/* The largest numbers that a step's loops found, one place for each kind. */
enum { FOUND_ANY, FOUND_BEFORE, FOUND_AFTER, FOUND_SPEED, FOUND };

/* A flow, and the solver of its pressure. block holds all arrays. before, after, allowed: the largest divergence of a
   cell before and after the last projection, and the most that it may be after it. mass: of smoke in the box; emitted:
   by the source so far. Interpolation conserves no sums: what a step makes mass grow by, gained in all, the next one
   takes away, and gained_most is the largest share of mass that it was. */
struct smoke {
    struct fields g;
    struct ranks all;
    pg_desc desc;
    pg_solver *solver;
    pg_stop stop;
    pg_report report;
    char *block;
    double time, speed, most, before, after, allowed, mass, emitted, gained, gained_most;
};
#define EACH(w, body, found)                                                                                          \
    ((w)->g.largest = flow_found(w) + (found),                                                                        \
     ((w)->desc.flags & PG_F32 ? each_##body##_f32 : each_##body##_f64)(&(w)->g, (w)->desc.memory))

/* The block begins with the largest numbers found. */
static unsigned long long *flow_found(const struct smoke *w) { return (unsigned long long *)(void *)w->block; }

static void flow_zero(const struct smoke *w, void *array, size_t bytes)
{
#ifdef PG_SAMPLE_CUDA
    if (w->desc.memory == PG_MEM_DEVICE) sample_require(cudaMemset(array, 0, bytes) == cudaSuccess, "cudaMemset");
#endif
    if (w->desc.memory == PG_MEM_HOST) memset(array, 0, bytes);
}

static size_t flow_element(const struct smoke *w) { return w->desc.flags & PG_F32 ? sizeof(float) : sizeof(double); }

/* This rank's part of an array of cells. */
static void *flow_part(const struct smoke *w, void *cells)
{
    return (char *)cells + (size_t)w->g.lo[w->g.up] * w->g.below[w->g.up] * flow_element(w);
}

/* Other ranks' planes beside this one's, depth on either side, of so many arrays with the strides of faces or cells. */
static void flow_ghosts(const struct smoke *w, void *const *array, int count, const size_t *stride, int depth)
{
    const size_t plane = stride[w->g.up] * flow_element(w);
    for (int q = 0; q < count; q++)
        ranks_ghosts(&w->all, (char *)array[q] + (size_t)w->g.lo[w->g.up] * plane, plane, depth, w->desc.memory);
}

/* Of all values that are carried along. */
static void flow_ghosts_of_all(const struct smoke *w, void *const *value, int depth)
{
    flow_ghosts(w, value, w->g.dim, w->g.stride, depth);
    flow_ghosts(w, value + DENSITY, VALUES - DENSITY, w->g.below, depth);
}

/* How many planes beside a rank's own its traces can meet: those that the fastest air anywhere passes, one for the half
   cell from faces to centres, and one that values are interpolated with. All, where the speed is no number. */
static int flow_depth(const struct smoke *w)
{
    double speed;
    if (w->all.count == 1) return 0;
    sample_copy(&speed, flow_found(w) + FOUND_SPEED, sizeof speed, w->desc.memory);
    const double depth = 2.01 + ranks_largest(speed) * w->g.dt / w->g.h;
    return depth < w->g.n[w->g.up] ? (int)depth : w->g.n[w->g.up];
}

/* Pressure in cells, the last one as guess. The tolerance holds for the cell where the residual is largest: of f32 it
   is the default one, 1e-5 or what round-off of the pressure leaves. */
static void flow_describe(struct smoke *w, int dim, const int n[3], double h, unsigned flags, pg_backend backend)
{
    for (int a = 0; a < 3; a++) {
        w->desc.n[a] = n[a];
        w->desc.h[a] = h;
        w->desc.centring[a] = PG_CELL;
        w->desc.face[2 * a].kind = w->desc.face[2 * a + 1].kind = PG_NEUMANN;
    }
    w->desc.dim = dim;
    w->desc.face[2 * dim - 1].kind = PG_DIRICHLET;
    w->desc.flags = flags | PG_FMG;
    w->desc.backend = backend;
    w->all = ranks_join(&w->desc);
    w->desc.memory = sample_memory(backend);
    w->stop.guess = PG_GUESS_U;
    w->stop.norm = PG_NORM_MAX;
    w->stop.rtol = flags & PG_F32 ? 0 : 1e-5;
}

/* Still air in a box of n cells of this side length, solid where the mask, packed and on the host, says so. */
static void flow_create(struct smoke *w, int dim, const int n[3], double h, const unsigned char *mask, unsigned flags,
                        pg_backend backend)
{
    struct fields *g = &w->g;
    memset(w, 0, sizeof *w);
    flow_describe(w, dim, n, h, flags, backend);
    g->dim = dim, g->up = dim - 1, g->h = h, g->keep = 1;
    w->all.first[w->all.count]++;           /* faces across the last axis have one layer more than cells */
    const size_t size = flow_element(w);
    size_t faces = 1, cells = 1;
    for (int a = 0; a < 3; a++) {
        g->n[a] = n[a];
        g->lo[a] = a == g->up ? w->all.first[w->all.number] : 0;
        g->hi[a] = a == g->up ? w->all.first[w->all.number + 1] : a < dim ? n[a] + 1 : 1;
        g->stride[a] = a < dim ? faces : 0;
        g->below[a] = a < dim ? cells : 0;
        faces *= a < dim ? (size_t)n[a] + 1 : 1;
        cells *= (size_t)n[a];
    }
    const size_t array = (faces * size + 255) / 256 * 256, masks = (cells + 255) / 256 * 256;
    const size_t bytes = 256 + masks + (3 * VALUES + 2) * array;
    w->block = (char *)sample_alloc(bytes, w->desc.memory);
    flow_zero(w, w->block, bytes);
    g->mask = (unsigned char *)w->block + 256;
    sample_copy(g->mask, mask, cells, w->desc.memory);
    char *at = w->block + 256 + masks;
    for (int q = 0; q < VALUES; q++, at += 3 * array) {
        g->now[q] = at;
        g->ahead[q] = at + array;
        g->next[q] = at + 2 * array;
    }
    g->p = at;
    g->f = at + array;
    w->desc.cells.mask = g->mask + (size_t)g->lo[g->up] * g->below[g->up];
    sample_check(pg_create(&w->desc, &w->solver), NULL);
}

static void flow_free(struct smoke *w)
{
    pg_destroy(w->solver);
    sample_free(w->block, w->desc.memory);
}

static double flow_mass(struct smoke *w)
{
    double mass;
    sample_check(pg_dot(w->solver, flow_part(w, w->g.now[DENSITY]), NULL, &mass), w->solver);
    return mass;
}

/* Reads what the loops of this step found. The divergence that is left comes from the tolerance, from rounding the
   pressure, and from rounding 2 dim velocities a cell. */
static void flow_look(struct smoke *w)
{
    const double eps = w->desc.flags & PG_F32 ? 1.2e-7 : 2.2e-16;
    double found[FOUND];
    sample_copy(found, flow_found(w), sizeof found, w->desc.memory);
    flow_zero(w, flow_found(w), sizeof found);
    for (int q = 0; q < FOUND; q++) found[q] = ranks_largest(found[q]);
    w->most = found[FOUND_ANY], w->speed = found[FOUND_SPEED];
    w->before = found[FOUND_BEFORE], w->after = found[FOUND_AFTER];
    w->allowed = 1e-5 * w->before + 2 * w->report.floor * w->g.dt + 4 * w->g.dim * eps * w->speed / w->g.h;
}

/* One step of length g.dt. Returns whether the solver did what it was asked for. */
static int flow_step(struct smoke *w)
{
    struct fields *g = &w->g;
    EACH(w, emit, FOUND_ANY);
    const double mass = flow_mass(w);
    w->emitted += mass - w->mass;
    flow_ghosts(w, g->now + DENSITY, 2, g->below, 1);
    EACH(w, curl, FOUND_ANY);
    flow_ghosts(w, g->ahead + 3, 1, g->below, 1);
    EACH(w, confine, FOUND_ANY);
    flow_ghosts(w, g->next + g->up, 1, g->below, 1);
    EACH(w, force, FOUND_ANY);
    flow_ghosts(w, g->now + g->up, 1, g->stride, 1);
    EACH(w, divergence, FOUND_BEFORE);
    sample_check(pg_solve(w->solver, flow_part(w, g->p), flow_part(w, g->f), &w->stop), w->solver);
    flow_ghosts(w, &g->p, 1, g->below, 1);
    EACH(w, project, FOUND_SPEED);
    flow_ghosts(w, g->now, g->dim, g->stride, 1);
    EACH(w, divergence, FOUND_AFTER);
    EACH(w, extend, FOUND_ANY);
    const int depth = flow_depth(w);
    flow_ghosts_of_all(w, g->now, depth);
    EACH(w, trace_back, FOUND_ANY);
    flow_ghosts_of_all(w, g->ahead, depth);
    EACH(w, maccormack, FOUND_ANY);
    for (int q = 0; q < VALUES; q++) {
        void *next = g->next[q];
        g->next[q] = g->now[q], g->now[q] = next;
    }
    flow_ghosts(w, g->now, g->dim, g->stride, 1);
    sample_check(pg_get_report(w->solver, &w->report), w->solver);
    flow_look(w);
    w->mass = flow_mass(w);
    const double gained = fmax(0, w->mass - mass);
    w->gained += gained;
    w->gained_most = fmax(w->gained_most, gained / mass);
    g->keep = gained > 0 ? mass / w->mass : 1;
    w->mass -= gained;
    w->time += g->dt;
    return w->report.outcome == PG_CONVERGED || w->report.outcome == PG_COMPLETED;
}

#elif defined(NAME)

/* Points are in units of cells from the box's lower corner: cell (i, j, k) has its centre at (i, j, k) + 1/2. A point
   that is no number comes to lie at the lower limit, so that it is no array index out of bounds. */
static ON_DEVICE real NAME(limit)(real x, real low, real high) { return x > low ? x < high ? x : high : low; }

/* A value at a point, linear along each axis, and the lowest and highest of the eight it is made of. A velocity
   component has its axis, values of cells have -1 and count where there is fluid. */
static ON_DEVICE real NAME(value_at)(const struct fields *g, const real *array, int axis, const real x[3], real *low,
                                     real *high)
{
    real part[3], sum = 0, total = 0;
    size_t m = 0, step[3];
    for (int a = 0; a < 3; a++) {
        const int points = g->n[a] + (a == axis);
        const size_t stride = axis < 0 ? g->below[a] : g->stride[a];
        const real s = NAME(limit)(x[a] - (a == axis ? (real)0 : (real)0.5), 0, (real)(points - 1));
        const int base = (int)s;
        part[a] = s - (real)base;
        step[a] = base + 1 < points ? stride : 0;
        m += (size_t)base * stride;
    }
    *low = (real)1e30, *high = (real)-1e30;
    for (int q = 0; q < 8; q++) {
        const size_t at = m + (q & 1 ? step[0] : 0) + (q & 2 ? step[1] : 0) + (q & 4 ? step[2] : 0);
        if (axis < 0 && g->mask[at] != PG_FLUID) continue;
        const real weight = (q & 1 ? part[0] : 1 - part[0]) * (q & 2 ? part[1] : 1 - part[1]) *
                            (q & 4 ? part[2] : 1 - part[2]);
        const real value = array[at];
        sum += weight * value;
        total += weight;
        *low = value < *low ? value : *low;
        *high = value > *high ? value : *high;
    }
    return axis < 0 ? (total > 0 ? sum / total : 0) : sum;
}

/* Where a point that moves with the flow from x on is after cells times its velocity; the open top is the only side
   that it may leave through. Returns 0 if a solid is there. */
static ON_DEVICE int NAME(move)(const struct fields *g, const real x[3], const real through[3], real cells, real to[3])
{
    int c[3] = {0, 0, 0};
    real low, high;
    for (int a = 0; a < 3; a++) {
        to[a] = x[a];
        if (a >= g->dim) continue;
        to[a] += cells * NAME(value_at)(g, (const real *)g->now[a], a, through, &low, &high);
        to[a] = NAME(limit)(to[a], 0, (real)(a == g->up ? 2 * g->n[a] : g->n[a]));
        c[a] = to[a] < (real)g->n[a] ? (int)to[a] : g->n[a] - 1;
    }
    return g->mask[cell_index(g, c)] == PG_FLUID;
}

/* The same by the midpoint rule, and not into solids. */
static ON_DEVICE void NAME(trace)(const struct fields *g, const real x[3], real cells, real to[3])
{
    real middle[3];
    const int free = NAME(move)(g, x, x, cells / 2, middle);
    if (free && NAME(move)(g, x, middle, cells, to)) return;
    for (int a = 0; a < 3; a++) to[a] = free ? middle[a] : x[a];
}

/* A value at a point, but 0 of density and temperature above the top, where the air is clear. */
static ON_DEVICE real NAME(value_there)(const struct fields *g, const real *array, int q, const real x[3], real *low,
                                        real *high)
{
    if (q < 3 || x[g->up] < (real)g->n[g->up]) return NAME(value_at)(g, array, q < 3 ? q : -1, x, low, high);
    return *low = *high = 0;
}

/* Where value q of cell c is. Returns 0 if it has none, because there is no such face, or it does not change. */
static ON_DEVICE int NAME(place)(const struct fields *g, const int c[3], int q, real x[3])
{
    for (int a = 0; a < 3; a++) x[a] = (real)c[a] + (a == q ? (real)0 : (real)0.5);
    return q < 3 ? is_face(g, c, q) && is_open(g, c, q) : in_box(g, c) && is_fluid(g, c, 0, 0);
}

static ON_DEVICE real NAME(profile)(const struct fields *g, const real x[3])
{
    real square = 0;
    for (int a = 0; a < g->dim; a++) {
        const real off = x[a] * (real)g->h - (real)g->source[a];
        square += off * off;
    }
    return NAME(limit)(2 - 2 * square / (real)(g->source_radius * g->source_radius), 0, 1);
}

/* Of the smoke this share is kept, and the source fills a ball with warm smoke. */
static ON_DEVICE double NAME(emit)(const struct fields *g, const int c[3])
{
    real x[3];
    if (!NAME(place)(g, c, DENSITY, x)) return 0;
    const real least = NAME(profile)(g, x);
    ((real *)g->now[DENSITY])[cell_index(g, c)] *= (real)g->keep;
    for (int q = DENSITY; q <= TEMPERATURE; q++) {
        real *value = (real *)g->now[q] + cell_index(g, c);
        if (*value < least) *value = least;
    }
    return 0;
}
LOOP(emit)

/* The difference along an axis of component b in the middles of the two neighbours, or one of them at a wall. */
static ON_DEVICE real NAME(slope)(const struct fields *g, const int c[3], int b, int axis)
{
    if (b >= g->dim || axis >= g->dim) return 0;
    const size_t m = face_index(g, c), s = g->stride[axis], t = g->stride[b];
    const size_t high = c[axis] + 1 < g->n[axis] ? m + s : m, low = c[axis] > 0 ? m - s : m;
    const real *u = (const real *)g->now[b];
    return (u[high] + u[high + t] - u[low] - u[low + t]) / (real)(4 * g->h);
}

static ON_DEVICE double NAME(curl)(const struct fields *g, const int c[3])
{
    if (!in_box(g, c)) return 0;
    const size_t m = cell_index(g, c);
    const real x = NAME(slope)(g, c, 2, 1) - NAME(slope)(g, c, 1, 2);
    const real y = NAME(slope)(g, c, 0, 2) - NAME(slope)(g, c, 2, 0);
    const real z = NAME(slope)(g, c, 1, 0) - NAME(slope)(g, c, 0, 1);
    const int fluid = g->mask[m] == PG_FLUID;
    ((real *)g->ahead[0])[m] = fluid ? x : 0;
    ((real *)g->ahead[1])[m] = fluid ? y : 0;
    ((real *)g->ahead[2])[m] = fluid ? z : 0;
    ((real *)g->ahead[3])[m] = fluid ? (real)sqrt((double)(x * x + y * y + z * z)) : 0;
    return 0;
}
LOOP(curl)

/* Confinement: eps h N x curl u, N the direction in which |curl u| grows. */
static ON_DEVICE double NAME(confine)(const struct fields *g, const int c[3])
{
    if (!in_box(g, c)) return 0;
    const size_t m = cell_index(g, c);
    const real *size = (const real *)g->ahead[3];
    real to[3], square = 0;
    for (int a = 0; a < 3; a++) {
        const real high = size[c[a] + 1 < g->n[a] ? m + g->below[a] : m], low = size[c[a] > 0 ? m - g->below[a] : m];
        to[a] = a < g->dim ? high - low : 0;
        square += to[a] * to[a];
    }
    const real x = ((const real *)g->ahead[0])[m], y = ((const real *)g->ahead[1])[m];
    const real z = ((const real *)g->ahead[2])[m];
    const real factor = square > 0 ? (real)(g->confinement * g->h / sqrt((double)square)) : 0;
    ((real *)g->next[0])[m] = factor * (to[1] * z - to[2] * y);
    ((real *)g->next[1])[m] = factor * (to[2] * x - to[0] * z);
    ((real *)g->next[2])[m] = factor * (to[0] * y - to[1] * x);
    return 0;
}
LOOP(confine)

/* Forces, means of the cells on both sides of a face. At the top there is but one. */
static ON_DEVICE double NAME(force)(const struct fields *g, const int c[3])
{
    const size_t m = face_index(g, c), high = cell_index(g, c);
    const real *density = (const real *)g->now[DENSITY], *warm = (const real *)g->now[TEMPERATURE];
    for (int a = 0; a < 3; a++) {
        if (!is_face(g, c, a) || !is_open(g, c, a)) continue;
        const size_t low = high - g->below[a], last = c[a] < g->n[a] ? high : low;
        const real *confining = (const real *)g->next[a];
        real sum = confining[low] + confining[last];
        if (a == g->up)
            sum += (real)g->buoyancy * (warm[low] + warm[last]) - (real)g->weight * (density[low] + density[last]);
        ((real *)g->now[a])[m] += (real)(0.5 * g->dt) * sum;
    }
    return 0;
}
LOOP(force)

/* f = -div(velocity) / dt, 0 in solids */
static ON_DEVICE double NAME(divergence)(const struct fields *g, const int c[3])
{
    if (!in_box(g, c)) return 0;
    const size_t m = face_index(g, c), q = cell_index(g, c);
    real sum = 0;
    for (int a = 0; a < 3; a++) {
        if (a >= g->dim || g->mask[q] != PG_FLUID) continue;
        const real *u = (const real *)g->now[a];
        sum += u[m + g->stride[a]] - u[m];
    }
    ((real *)g->f)[q] = sum * (real)(-1 / (g->h * g->dt));
    return fabs((double)sum) / g->h;
}
LOOP(divergence)

/* velocity -= dt grad p; the top, where p is 0, is half a cell above the last centre. Returns the largest component. */
static ON_DEVICE double NAME(project)(const struct fields *g, const int c[3])
{
    const size_t m = face_index(g, c), high = cell_index(g, c);
    const real *p = (const real *)g->p, slope = (real)(g->dt / g->h);
    double most = 0;
    for (int a = 0; a < 3; a++) {
        if (!is_face(g, c, a)) continue;
        real *u = (real *)g->now[a] + m;
        if (!is_open(g, c, a)) {
            *u = 0;
            continue;
        }
        const real low = p[high - g->below[a]];
        *u -= slope * (c[a] < g->n[a] ? p[high] - low : -2 * low);
        const double size = fabs((double)*u);
        most = size > most || size != size ? size : most;
    }
    return most;
}
LOOP(project)

/* Faces within solids get the mean of the open ones beside them: air slips along solids, as it does along walls. */
static ON_DEVICE double NAME(extend)(const struct fields *g, const int c[3])
{
    for (int a = 0; a < 3; a++) {
        if (!is_face(g, c, a) || is_fluid(g, c, a, 0) || is_fluid(g, c, a, 1)) continue;
        const size_t m = face_index(g, c);
        real *u = (real *)g->now[a], sum = 0;
        int count = 0;
        for (int b = 0; b < 3; b++)
            for (int side = -1; side <= 1; side += 2) {
                int d[3] = {c[0], c[1], c[2]};
                d[b] += side;
                if (b >= g->dim || d[b] < 0 || d[b] > g->n[b] || !is_face(g, d, a) || !is_open(g, d, a)) continue;
                sum += u[face_index(g, d)];
                count++;
            }
        u[m] = count ? sum / (real)count : 0;
    }
    return 0;
}
LOOP(extend)

/* ahead: each value where the flow was a step ago. */
static ON_DEVICE double NAME(trace_back)(const struct fields *g, const int c[3])
{
    const real cells = (real)(g->dt / g->h);
    real x[3], from[3], low, high;
    for (int q = 0; q < VALUES; q++) {
        const int there = NAME(place)(g, c, q, x);
        if (q < 3 ? !is_face(g, c, q) : !in_box(g, c)) continue;
        if (there && q != TEMPERATURE) NAME(trace)(g, x, -cells, from);
        ((real *)g->ahead[q])[q < 3 ? face_index(g, c) : cell_index(g, c)] =
            there ? NAME(value_there)(g, (const real *)g->now[q], q, from, &low, &high) : 0;
    }
    return 0;
}
LOOP(trace_back)

/* next: ahead, less half of what a trace there and back again changes, within the values where the flow was. Smoke
   cools. Returns the largest value. */
static ON_DEVICE double NAME(maccormack)(const struct fields *g, const int c[3])
{
    const real cells = (real)(g->dt / g->h);
    real x[3], from[3], to[3], low, high, other;
    double most = 0;
    for (int q = 0; q < VALUES; q++) {
        const int there = NAME(place)(g, c, q, x);
        if (q < 3 ? !is_face(g, c, q) : !in_box(g, c)) continue;
        if (there && q != TEMPERATURE) {
            NAME(trace)(g, x, -cells, from);
            NAME(trace)(g, x, cells, to);
        }
        const size_t m = q < 3 ? face_index(g, c) : cell_index(g, c);
        const real *now = (const real *)g->now[q], *ahead = (const real *)g->ahead[q];
        real value = there ? ahead[m] : 0;
        if (there) {
            if (to[g->up] < (real)g->n[g->up])
                value += (now[m] - NAME(value_at)(g, ahead, q < 3 ? q : -1, to, &low, &other)) / 2;
            NAME(value_there)(g, now, q, from, &low, &high);
            value = value < low ? low : value > high ? high : value;    /* what is no number stays so, to be found */
        }
        ((real *)g->next[q])[m] = q == TEMPERATURE ? value * (real)(1 - g->cooling * g->dt) : value;
        const double size = fabs((double)value);
        most = size > most || size != size ? size : most;
    }
    return most;
}
LOOP(maccormack)

#endif
