/* What cavity.c solves: du/dt + div(u u) = lap(u)/Re - grad p, div u = 0 in the unit box, at rest at first, whose side
   at y = 1 moves along x with speed 1. Staggered grid (Harlow, Welch 1965), central differences of second order,
   Adams-Bashforth in time. A step is a projection (Chorin 1968): velocities without the pressure, the pressure that
   takes their divergence away, -lap p = -div(u*)/dt with dp/dn = 0 on all sides, and its gradient.

   Of several ranks each has a slab across the last axis, and the cells of its neighbours beside it as ghosts.

   Arrays are where the solver runs. Loops over the cells are kernels there: with PG_SAMPLE_CUDA this file is CUDA C++,
   without it C99. */
#ifndef CAVITY_FLOW_H
#define CAVITY_FLOW_H

#include "ranks.h"

/* What a loop over the cells needs, as it is passed to a kernel. Velocities and rates are those of cavity_loops.h. */
struct fields {
    int dim, n[3], lo[3];                   /* n cells of the box, from cell lo on, are this rank's */
    size_t stride[3];                       /* of arrays with a ring; 0 along an absent axis */
    double h, re, dt, now, before;          /* now, before: dt times the weights of this step's rate and the last */
    void *velocity[3], *rate[3], *next[3], *p, *f;
    unsigned long long *largest;
};

#ifdef PG_SAMPLE_CUDA
#define ON_DEVICE __host__ __device__ inline
#else
#define ON_DEVICE inline
#endif

static ON_DEVICE size_t ring_index(const struct fields *g, int i, int j, int k)
{
    return (size_t)(i + 1) * g->stride[0] + (size_t)(j + 1) * g->stride[1] + (size_t)(k + 1) * g->stride[2];
}
static ON_DEVICE size_t cell_index(const struct fields *g, int i, int j, int k)
{
    return (size_t)i + (size_t)g->n[0] * ((size_t)j + (size_t)g->n[1] * (size_t)k);
}
static ON_DEVICE unsigned long long bits_of(double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* LOOP makes a kernel and a loop of OpenMP threads of a function of one cell. Few threads of a kernel find the atomic
   operation worth its while: the number that they compare with may be too small by then, never too large. */
#ifdef PG_SAMPLE_CUDA
#define KERNEL(body)                                                                                                  \
    static __global__ void NAME(body##_kernel)(struct fields g)                                                       \
    {                                                                                                                 \
        const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), j = (int)(blockIdx.y * blockDim.y + threadIdx.y); \
        if (i >= g.n[0] || j >= g.n[1]) return;                                                                       \
        const unsigned long long bits = bits_of(NAME(body)(&g, i, j, (int)blockIdx.z));                               \
        if (bits > *g.largest) atomicMax(g.largest, bits);                                                            \
    }
#define LAUNCH(body)                                                                                                  \
    if (memory == PG_MEM_DEVICE) {                                                                                    \
        const dim3 blocks((unsigned)(g->n[0] + 31) / 32, (unsigned)(g->n[1] + 7) / 8, (unsigned)g->n[2]);             \
        NAME(body##_kernel)<<<blocks, dim3(32, 8)>>>(*g);                                                             \
        sample_require(cudaGetLastError() == cudaSuccess, "launching " #body);                                        \
        return;                                                                                                       \
    }
#else
#define KERNEL(body)
#define LAUNCH(body)
#endif
#ifdef _OPENMP
#define THREADS _Pragma("omp parallel for reduction(max : most) if (rows * g->n[0] > 32768)")
#else
#define THREADS
#endif
#define LOOP(body)                                                                                                    \
    KERNEL(body)                                                                                                      \
    static void NAME(each_##body)(const struct fields *g, pg_memory memory)                                           \
    {                                                                                                                 \
        (void)memory;                                                                                                 \
        LAUNCH(body)                                                                                                  \
        const int rows = g->n[1] * g->n[2];                                                                           \
        unsigned long long most = *g->largest;                                                                        \
        THREADS                                                                                                       \
        for (int row = 0; row < rows; row++)                                                                          \
            for (int i = 0; i < g->n[0]; i++) {                                                                       \
                const unsigned long long bits = bits_of(NAME(body)(g, i, row % g->n[1], row / g->n[1]));              \
                most = bits > most ? bits : most;                                                                     \
            }                                                                                                         \
        *g->largest = most;                                                                                           \
    }

#define real double
#define NAME(x) x##_f64
#include "cavity_loops.h"
#undef real
#undef NAME
#define real float
#define NAME(x) x##_f32
#include "cavity_loops.h"
#undef real
#undef NAME

/* A flow, and the solver of its pressure. block holds all arrays, first those that the next step depends on. */
struct flow {
    struct fields g;
    struct ranks all;
    size_t plane, ring_plane;               /* bytes of p and of a velocity from cell to cell along the last axis */
    pg_desc desc;
    pg_solver *solver;
    pg_stop stop;
    pg_report report;
    double rtol;
    char *block;
    size_t state_bytes, bytes;
};
#define EACH(w, body)                                                                                                 \
    ((w)->desc.flags & PG_F32 ? each_##body##_f32 : each_##body##_f64)(&(w)->g, (w)->desc.memory)

static void flow_zero(const struct flow *w, void *array, size_t bytes)
{
#ifdef PG_SAMPLE_CUDA
    if (w->desc.memory == PG_MEM_DEVICE) sample_require(cudaMemset(array, 0, bytes) == cudaSuccess, "cudaMemset");
#endif
    if (w->desc.memory == PG_MEM_HOST) memset(array, 0, bytes);
}

static void flow_wait(const struct flow *w)
{
#ifdef PG_SAMPLE_CUDA
    if (w->desc.memory == PG_MEM_DEVICE) sample_require(cudaDeviceSynchronize() == cudaSuccess, "a kernel");
#endif
    (void)w;
}

/* The neighbours' planes beside this rank's, of so many arrays with a ring. */
static void flow_ghosts(const struct flow *w, void *const *array, int count)
{
    for (int a = 0; a < count; a++)
        ranks_ghosts(&w->all, (char *)array[a] + w->ring_plane, w->ring_plane, 1, w->desc.memory);
}

/* The largest change of a velocity in one step since the last call, or since the start. */
static double flow_change(struct flow *w)
{
    double value;
    sample_copy(&value, w->g.largest, sizeof value, w->desc.memory);
    flow_zero(w, w->g.largest, sizeof value);
    return ranks_largest(value);
}

/* PG_DIRECT solves to round-off; it is not asked for a tolerance, for which it would work out the residual too. */
static void flow_choose(struct flow *w, unsigned method, pg_precond precond)
{
    pg_destroy(w->solver);
    w->desc.flags = (w->desc.flags & (PG_F32 | PG_F64)) | method;
    w->desc.precond = precond;
    w->stop.rtol = method & PG_DIRECT ? PG_NONE : w->rtol;
    sample_check(pg_create(&w->desc, &w->solver), NULL);
}

static void flow_describe(struct flow *w, int dim, int n, unsigned flags, pg_backend backend)
{
    for (int a = 0; a < 3; a++) {
        w->desc.n[a] = a < dim ? n : 1;
        w->desc.h[a] = 1.0 / n;
        w->desc.centring[a] = PG_CELL;
        w->desc.face[2 * a].kind = w->desc.face[2 * a + 1].kind = PG_NEUMANN;
    }
    w->desc.dim = dim;
    w->desc.flags = flags & (PG_F32 | PG_F64);
    w->desc.backend = backend;
    w->all = ranks_join(&w->desc);
    w->desc.memory = sample_memory(backend);
    w->stop.guess = PG_GUESS_U;             /* the last pressure, */
    w->stop.min_iter = 1;                   /* or steps with and without an iteration would take turns for ever */
}

/* Fluid at rest. Steps have nine tenths of the length at which Adams-Bashforth would be unstable for diffusion alone,
   and at most a Courant number of 0.4 with the lid's speed. */
static void flow_create(struct flow *w, int dim, int n, double re, unsigned flags, pg_precond precond, pg_backend backend, double rtol)
{
    struct fields *g = &w->g;
    memset(w, 0, sizeof *w);
    flow_describe(w, dim, n, flags, backend);
    g->dim = dim, g->h = 1.0 / n, g->re = re;
    g->dt = fmin(0.4 * g->h, 0.9 * re * g->h * g->h / (4 * dim));
    g->now = g->dt;                         /* the first step has no rate of a step before it: Euler's */
    size_t ring = flags & PG_F32 ? sizeof(float) : sizeof(double), cells = ring;
    const size_t element = ring;
    for (int a = 0; a < 3; a++) {
        g->lo[a] = a == dim - 1 ? w->all.first[w->all.number] : 0;
        g->n[a] = a == dim - 1 ? w->all.first[w->all.number + 1] - g->lo[a] : w->desc.n[a];
        g->stride[a] = a < dim ? ring / element : 0;
        if (a == dim - 1) w->plane = cells, w->ring_plane = ring;
        ring *= a < dim ? (size_t)g->n[a] + 2 : 1;
        cells *= (size_t)g->n[a];
    }
    const size_t ghost = (w->plane + 255) / 256 * 256;
    ring = (ring + 255) / 256 * 256;
    cells = ghost + (cells + w->plane + 255) / 256 * 256;
    w->state_bytes = 2 * (size_t)dim * ring + cells;
    w->bytes = 3 * (size_t)dim * ring + 2 * cells + 256;
    w->block = (char *)sample_alloc(w->bytes, w->desc.memory);
    flow_zero(w, w->block, w->bytes);
    for (int a = 0; a < dim; a++) {
        g->velocity[a] = w->block + (size_t)a * ring;
        g->rate[a] = w->block + (size_t)(dim + a) * ring;
        g->next[a] = w->block + w->state_bytes + (size_t)a * ring;
    }
    g->p = w->block + 2 * (size_t)dim * ring + ghost;
    g->f = w->block + w->state_bytes + (size_t)dim * ring;
    g->largest = (unsigned long long *)(w->block + w->bytes - 256);
    EACH(w, correct);                       /* sets the lid in motion */
    flow_ghosts(w, g->velocity, dim);
    w->rtol = rtol;
    flow_choose(w, flags, precond);
}

static void flow_free(struct flow *w)
{
    pg_destroy(w->solver);
    sample_free(w->block, w->desc.memory);
}

static void flow_step(struct flow *w)
{
    EACH(w, predict);
    flow_ghosts(w, &w->g.next[w->g.dim - 1], 1);
    EACH(w, divergence);
    sample_check(pg_solve(w->solver, w->g.p, w->g.f, &w->stop), w->solver);
    ranks_ghosts(&w->all, w->g.p, w->plane, 1, w->desc.memory);
    EACH(w, correct);
    flow_ghosts(w, w->g.velocity, w->g.dim);
    w->g.now = 1.5 * w->g.dt, w->g.before = -0.5 * w->g.dt;
}

/* Whether the last solve did what it was asked for; waits for it. */
static int flow_solved(struct flow *w)
{
    sample_check(pg_get_report(w->solver, &w->report), w->solver);
    return w->report.outcome == PG_CONVERGED || w->report.outcome == PG_COMPLETED;
}

/* What the last step left of the divergence that it found, both by their mean squares, and the most that it may leave:
   the solver's tolerance, and that velocities, 1 at most, are rounded, 2 dim of them a cell. */
static double flow_divergence(struct flow *w, double *allowed)
{
    const double eps = w->desc.flags & PG_F32 ? 1.2e-7 : 2.2e-16;
    double before, after;
    sample_check(pg_norm(w->solver, w->g.f, PG_NORM_L2, &before), w->solver);
    struct flow now = *w;
    for (int a = 0; a < 3; a++) now.g.next[a] = now.g.velocity[a];
    EACH(&now, divergence);
    sample_check(pg_norm(w->solver, w->g.f, PG_NORM_L2, &after), w->solver);
    *allowed = w->rtol + 2 * w->g.dim * eps / (w->g.h * w->g.dt * before);
    return after / before;
}

#endif
