/* pg_bench - how fast every kernel and method of poisson_gpu.h is on this machine, and how far from what its memory
   allows. The copy bandwidth is measured first; every time is then also given over the time that the bytes which must
   move would take at that bandwidth. README.md beside this file says how each number is made.

       pg_bench [--quick] [--large] [--max N] [--backend auto|cpu|cuda] [--rows "words"] [--out FILE.json|FOLDER]

   Compiled with -DPG_BENCH_CUDA it times CUDA with events on device arrays; without it, the CPU back end alone.
   Linked with stages.cu, which is the library and more. */

#define _POSIX_C_SOURCE 200809L   /* clock_gettime, mkdir */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "poisson_gpu.h"
#include "scenes.h"
#include "stages.h"
#include "tools.h"

#ifdef PG_BENCH_CUDA
#include <cuda_runtime_api.h>
#include <cufft.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#define PARALLEL_FOR _Pragma("omp parallel for schedule(static)")
#else
#define PARALLEL_FOR
#endif

enum {
    SWEEPS_CUDA = 20,             /* in one pg_smooth: the launches of a call are queued while the last ones run */
    SWEEPS_CPU = 4,               /* a call costs nothing there */
    ITERATIONS = 40,              /* of a Krylov method in one pg_solve, which begins with a residual */
    TRIAD_POINTS = 256 * 256 * 256,
    COPY_BYTES = 1 << 30,
    LEAST_REPEATS = 7, MOST_REPEATS = 31, REPEATS_PAST_LIMIT = 3,
    MAX_ROWS = 1024, MAX_SCENE_ROWS = 128, MAX_BOXES = 16,
    SCENE_ITERATIONS = 300,       /* at most, as in test_masks.c */
    SOLVES_IN_GRAPH = 20          /* of the stages: what the host takes to launch them does not count */
};
static const double row_seconds = 1.0;          /* a row stops here, with fewer repeats than it should have */
static const double enough_seconds = 0.15;      /* and here if it has LEAST_REPEATS */
static const double bound_cuda = 1.30, bound_cpu = 2.0;
static const double slow_cuda = 1.0, slow_cpu = 0.3;   /* what takes longer is timed once, if it is of a scene */

/* ---------------------------------------------------------------------------------------------------------------
   The machine: arrays and a clock, on a CUDA stream or on the CPU. */

static struct machine {
    int cuda, threads;
    char name[128];
    double bytes_per_second;      /* copy (CUDA) or triad (CPU), reads and writes counted */
    double started;
#ifdef PG_BENCH_CUDA
    cudaStream_t stream;
    cudaEvent_t start, stop;
#endif
} here;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "pg_bench: %s: %s\n", what, why);
    exit(1);
}

static void fill_host(void *array, int64_t count, unsigned precision)
{
    if (precision == PG_F32) {
        float *a = array;
        PARALLEL_FOR
        for (int64_t i = 0; i < count; i++) a[i] = (float)noise(i);
    } else {
        double *a = array;
        PARALLEL_FOR
        for (int64_t i = 0; i < count; i++) a[i] = noise(i);
    }
}

#ifdef PG_BENCH_CUDA
static void cuda_check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) fail(what, cudaGetErrorString(error));
}
#define CUDA(call) cuda_check(call, #call)

static void fill_device(void *array, int64_t count, unsigned precision)
{
    enum { BLOCK = 1000003 };     /* prime, so that the repeated block does not line up from plane to plane */
    size_t word = precision == PG_F32 ? sizeof(float) : sizeof(double);
    int64_t done = count < BLOCK ? count : BLOCK;
    void *block = malloc((size_t)done * word);
    if (!block) fail("filling an array", "out of host memory");
    fill_host(block, done, precision);
    CUDA(cudaMemcpyAsync(array, block, (size_t)done * word, cudaMemcpyHostToDevice, here.stream));
    CUDA(cudaStreamSynchronize(here.stream));
    free(block);
    while (done < count) {
        int64_t next = done < count - done ? done : count - done;
        CUDA(cudaMemcpyAsync((char *)array + (size_t)done * word, array, (size_t)next * word, cudaMemcpyDeviceToDevice,
                             here.stream));
        done += next;
    }
}

static int open_cuda(void)
{
    struct cudaDeviceProp properties;
    int count = 0, device = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 0;
    CUDA(cudaGetDevice(&device));
    CUDA(cudaGetDeviceProperties(&properties, device));
    CUDA(cudaStreamCreateWithFlags(&here.stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&here.start));
    CUDA(cudaEventCreate(&here.stop));
    snprintf(here.name, sizeof here.name, "%.100s", properties.name);
    here.cuda = 1;
    return 1;
}
#endif

static void open_cpu(void)
{
    cpu_name(here.name, sizeof here.name);
    here.threads = 1;
#ifdef _OPENMP
    here.threads = omp_get_max_threads();
#endif
}

static void *array_new(size_t bytes)
{
    void *array = NULL;
#ifdef PG_BENCH_CUDA
    if (here.cuda) {
        if (cudaMalloc(&array, bytes) == cudaSuccess) return array;
        cudaGetLastError();       /* else the next launch would report this one */
        return NULL;
    }
#endif
    array = malloc(bytes);
    return array;
}

static void array_free(void *array)
{
#ifdef PG_BENCH_CUDA
    if (here.cuda) {
        CUDA(cudaFree(array));
        return;
    }
#endif
    free(array);
}

static void array_fill(void *array, int64_t count, unsigned precision)
{
#ifdef PG_BENCH_CUDA
    if (here.cuda) {
        fill_device(array, count, precision);
        return;
    }
#endif
    fill_host(array, count, precision);
}

/* A copy of what the host has, where solvers read it. NULL: out of memory. */
static void *array_from(const void *host, size_t bytes)
{
    void *array = array_new(bytes);
    if (!array) return NULL;
#ifdef PG_BENCH_CUDA
    if (here.cuda) {
        CUDA(cudaMemcpyAsync(array, host, bytes, cudaMemcpyHostToDevice, here.stream));
        CUDA(cudaStreamSynchronize(here.stream));
        return array;
    }
#endif
    memcpy(array, host, bytes);
    return array;
}

static void clock_start(void)
{
#ifdef PG_BENCH_CUDA
    if (here.cuda) CUDA(cudaEventRecord(here.start, here.stream));
#endif
    here.started = seconds();
}

static double clock_stop(void)
{
#ifdef PG_BENCH_CUDA
    if (here.cuda) {
        float ms = 0;
        CUDA(cudaEventRecord(here.stop, here.stream));
        CUDA(cudaEventSynchronize(here.stop));
        CUDA(cudaEventElapsedTime(&ms, here.start, here.stop));
        return 1e-3 * ms;
    }
#endif
    return seconds() - here.started;
}

/* ---------------------------------------------------------------------------------------------------------------
   What is timed. An operation is run once by operation->run; its floor is the words that must move for a point. */

typedef struct work {
    unsigned precision;           /* of run_padding */
    int n, dim;
    pg_solver *solver;
    void *u, *f, *r;
    size_t bytes;                 /* of one of the arrays */
    pg_stop stop;
    pg_solver *dense;              /* of run_dense */
    int kept, solves;             /* of run_stages */
    pg_cells cells;               /* of run_set_up */
#ifdef PG_BENCH_CUDA
    cudaGraphExec_t graph;        /* of run_graph */
#endif
} work;

static int sweeps(void) { return here.cuda ? SWEEPS_CUDA : SWEEPS_CPU; }

static pg_status run_smooth(work *w) { return pg_smooth(w->solver, w->u, w->f, sweeps()); }
static pg_status run_one_sweep(work *w) { return pg_smooth(w->solver, w->u, w->f, 1); }
static pg_status run_residual(work *w) { return pg_residual(w->solver, w->u, w->f, w->r); }
static pg_status run_apply(work *w) { return pg_apply(w->solver, w->u, w->r); }
static pg_status run_cycle(work *w) { return pg_cycle(w->solver, w->u, w->f, 1); }
enum { CYCLES_IN_CALL = 4 };
static pg_status run_preconditioner(work *w) { return stages_precondition(w->solver, CYCLES_IN_CALL); }
static pg_status run_iterations(work *w) { return pg_solve(w->solver, w->u, w->f, &w->stop); }
static pg_status run_solve(work *w) { return pg_solve(w->solver, w->u, w->f, &w->stop); }

static pg_status run_set_up(work *w)
{
    return pg_set_cells(w->solver, &w->cells);
}

static pg_status run_dense(work *w) { return pg_solve(w->dense, w->u, w->f, &w->stop); }

/* The stages that are kept, or with kept = 0 whole solves. */
static pg_status run_stages(work *w)
{
    pg_status status = PG_OK;
    if (w->kept) return stages_run(w->solver, w->kept, w->solves);
    for (int i = 0; i < w->solves && status == PG_OK; i++) status = run_solve(w);
    return status;
}

#ifdef PG_BENCH_CUDA
static pg_status run_graph(work *w)
{
    CUDA(cudaGraphLaunch(w->graph, here.stream));
    return PG_OK;
}
#endif

/* A solve that its first check ends. */
static pg_status run_check(work *w)
{
    pg_stop stop = {0};
    stop.atol = 1e300;
    stop.guess = PG_GUESS_U;
    return pg_solve(w->solver, w->u, w->f, &stop);
}

#ifdef PG_BENCH_CUDA
/* Free space as it is done by hand: f into a box of twice the length along each axis, its transform, and that back; not
   the product with the transform of a Green's function between. Needs eight grids; the plans of one shape are kept. */
static pg_status run_padding(work *w)
{
    static cufftHandle there, back;
    static void *box;
    static size_t kept[3], bytes;    /* points, dimensions and bytes of a number, of the plans */
    const size_t element = w->precision == PG_F32 ? sizeof(float) : sizeof(double), n = (size_t)w->n, twice = 2 * n;
    const size_t rows = w->dim == 3 ? twice : 1, pitch = (twice + 2) * element, here_rows = w->dim == 3 ? n : 1;
    if (!w->solver) return PG_ERROR_ARGUMENT;
    if (kept[0] != n || kept[1] != (size_t)w->dim || kept[2] != element) {
        int size[3] = {(int)twice, (int)twice, (int)twice};
        if (kept[0]) cufftDestroy(there), cufftDestroy(back), cudaFree(box);
        kept[0] = 0, bytes = rows * twice * pitch;
        if (cudaMalloc(&box, bytes) != cudaSuccess) return cudaGetLastError(), PG_ERROR_MEMORY;
        if (cufftPlanMany(&there, w->dim, size, NULL, 1, 0, NULL, 1, 0, element == 4 ? CUFFT_R2C : CUFFT_D2Z, 1) ||
            cufftPlanMany(&back, w->dim, size, NULL, 1, 0, NULL, 1, 0, element == 4 ? CUFFT_C2R : CUFFT_Z2D, 1))
            return PG_ERROR_MEMORY;
        cufftSetStream(there, here.stream), cufftSetStream(back, here.stream);
        kept[0] = n, kept[1] = (size_t)w->dim, kept[2] = element;
    }
    struct cudaMemcpy3DParms in = {0}, out = {0};
    in.srcPtr = (struct cudaPitchedPtr){w->f, n * element, n * element, n};
    in.dstPtr = out.srcPtr = (struct cudaPitchedPtr){box, pitch, twice * element, twice};
    out.dstPtr = (struct cudaPitchedPtr){w->u, n * element, n * element, n};
    in.extent = out.extent = (struct cudaExtent){n * element, n, here_rows};
    in.kind = out.kind = cudaMemcpyDeviceToDevice;
    CUDA(cudaMemsetAsync(box, 0, bytes, here.stream));
    CUDA(cudaMemcpy3DAsync(&in, here.stream));
    const int failed = element == 4 ? cufftExecR2C(there, box, box) || cufftExecC2R(back, box, box)
                                    : cufftExecD2Z(there, box, box) || cufftExecZ2D(back, box, box);
    CUDA(cudaMemcpy3DAsync(&out, here.stream));
    return failed ? PG_ERROR_CUDA : PG_OK;
}
#endif

static pg_status run_norm(work *w)
{
    double norm;
    return pg_norm(w->solver, w->r, PG_NORM_L2, &norm);
}

static pg_status run_dot(work *w)
{
    double dot;
    return pg_dot(w->solver, w->u, w->r, &dot);
}

/* The memory's own speed: a copy on the GPU, on the CPU a triad, which moves the 24 B a point of a sweep. */
static pg_status run_copy(work *w)
{
#ifdef PG_BENCH_CUDA
    if (here.cuda) {
        CUDA(cudaMemcpyAsync(w->r, w->f, w->bytes, cudaMemcpyDeviceToDevice, here.stream));
        return PG_OK;
    }
#endif
    double *a = w->r;
    const double *b = w->u, *c = w->f;
    int64_t count = (int64_t)(w->bytes / sizeof(double));
    PARALLEL_FOR
    for (int64_t i = 0; i < count; i++) a[i] = b[i] + 0.5 * c[i];
    return PG_OK;
}

/* The floors of cycles, in words for a point of the finest grid. A level is visited in two passes: [smooth, residual,
   restrict] reads u and f, writes u and the coarse f; [prolong, correct, smooth] reads u, f and the coarse correction,
   writes u. That is 6 + 2c words, c being the points of the next coarser level over those of this one; one less where
   the guess is zero, as it is the first time a visit of the finer level comes down. gamma: 1 V, 2 W (32 at most). */
static double cycle_words(double c, int gamma)
{
    double words = 6 + 2 * c;
    int visits = 1;
    for (double points = c; points > 1e-9; points *= c) {
        int from_zero = visits;
        visits = visits * gamma > 32 ? 32 : visits * gamma;
        words += points * (visits * (6 + 2 * c) - from_zero);
    }
    return words;
}

/* FMG: f is restricted through all levels (1 + c), then each level gets a cycle whose first pass reads the next
   coarser solution (c) in place of u. */
static double fmg_words(double c) { return (cycle_words(c, 1) - 1 + c + 1 + c) / (1 - c); }

enum { FIXED, V_WORDS, W_WORDS, FMG_WORDS, SOLVE_WORDS, MIXED_BYTES, CG_BYTES, DIRECT_WORDS, OPEN_WORDS };

typedef struct operation {
    const char *name;
    unsigned flags;               /* method; neighbours in the table with the same choices share a solver */
    pg_precond precond;
    unsigned precisions;
    int dims;                     /* bit d: run in d dimensions */
    pg_status (*run)(work *);
    int floor;
    double words;                 /* for FIXED */
    double rtol;                  /* for run_solve */
    int open;                     /* axes that are open: the last one, beside periodic ones; or all */
} operation;

enum { ANY = PG_F64 | PG_F32, D123 = 0xe, D23 = 0xc, D3 = 0x8 };

/* f32 solves run in 3D only, f64 ones not in 1D: there the round-off floor of large grids lies above the tolerance. */
static const operation operations[] = {
    {"jacobi sweep", PG_JACOBI, PG_PRECOND_DEFAULT, ANY, D123, run_smooth, FIXED, 3, 0, 0},
    {"residual", PG_JACOBI, PG_PRECOND_DEFAULT, ANY, D123, run_residual, FIXED, 3, 0, 0},
    {"apply", PG_JACOBI, PG_PRECOND_DEFAULT, ANY, D123, run_apply, FIXED, 2, 0, 0},
    {"residual norm", PG_JACOBI, PG_PRECOND_DEFAULT, ANY, D123, run_check, FIXED, 3, 0, 0},
    {"norm", PG_JACOBI, PG_PRECOND_DEFAULT, ANY, D123, run_norm, FIXED, 1, 0, 0},
    {"dot", PG_JACOBI, PG_PRECOND_DEFAULT, ANY, D123, run_dot, FIXED, 2, 0, 0},
    {"red-black sweep", PG_RBGS, PG_PRECOND_DEFAULT, ANY, D123, run_smooth, FIXED, 3, 0, 0},
    {"red-black 1 sweep", PG_RBGS, PG_PRECOND_DEFAULT, ANY, D123, run_one_sweep, FIXED, 3, 0, 0},
    {"SOR sweep", PG_SOR, PG_PRECOND_DEFAULT, ANY, D123, run_smooth, FIXED, 3, 0, 0},
    {"V(2,1) cycle", PG_VCYCLE, PG_PRECOND_DEFAULT, ANY, D123, run_cycle, V_WORDS, 0, 0, 0},
    {"W(2,1) cycle", PG_WCYCLE, PG_PRECOND_DEFAULT, ANY, D123, run_cycle, W_WORDS, 0, 0, 0},
    {"FMG pass", PG_FMG, PG_PRECOND_DEFAULT, ANY, D123, run_solve, FMG_WORDS, 0, PG_NONE, 0},
    {"solve 1e-8", PG_FMG, PG_PRECOND_DEFAULT, PG_F64, D23, run_solve, SOLVE_WORDS, 0, 1e-8, 0},
    {"solve 1e-5", PG_FMG, PG_PRECOND_DEFAULT, PG_F32, D3, run_solve, SOLVE_WORDS, 0, 1e-5, 0},
    {"mixed solve 1e-10", PG_FMG | PG_MIXED, PG_PRECOND_DEFAULT, PG_F64, D23, run_solve, MIXED_BYTES, 0, 1e-10, 0},
    {"direct solve", PG_DIRECT, PG_PRECOND_DEFAULT, ANY, D23, run_solve, DIRECT_WORDS, 0, PG_NONE, 0},
    {"slab solve", PG_DIRECT, PG_PRECOND_DEFAULT, ANY, D23, run_solve, DIRECT_WORDS, 0, PG_NONE, 1},
    {"open solve", PG_DIRECT, PG_PRECOND_DEFAULT, ANY, D23, run_solve, OPEN_WORDS, 0, PG_NONE, 3},
#ifdef PG_BENCH_CUDA
    {"padding by cuFFT", PG_JACOBI, PG_PRECOND_DEFAULT, ANY, D23, run_padding, OPEN_WORDS, 0, 0, 0},
#endif
    {"CG", PG_CG, PG_PRECOND_NONE, ANY, D23, run_iterations, FIXED, 8, PG_NONE, 0},
    {"CG, diagonal", PG_CG, PG_PRECOND_DIAGONAL, ANY, D23, run_iterations, FIXED, 10, PG_NONE, 0},
    {"pipelined CG", PG_PIPECG, PG_PRECOND_NONE, ANY, D23, run_iterations, FIXED, 14, PG_NONE, 0},
    {"pipelined CG, diagonal", PG_PIPECG, PG_PRECOND_DIAGONAL, ANY, D23, run_iterations, FIXED, 16, PG_NONE, 0},
    {"BiCGStab", PG_BICGSTAB, PG_PRECOND_NONE, ANY, D23, run_iterations, FIXED, 18, PG_NONE, 0},
    {"pipelined BiCGStab", PG_PIPEBICGSTAB, PG_PRECOND_NONE, ANY, D23, run_iterations, FIXED, 28, PG_NONE, 0},
    {"CG, cycle, mixed 1e-10", PG_CG | PG_MIXED, PG_PRECOND_DEFAULT, PG_F64, D23, run_solve, CG_BYTES, 0, 1e-10, 0},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* Bytes that must move for a point. A check of the residual rides along in the next cycle, and takes a pass over u and
   f at the end. A direct solve passes the grid once for each transform there and back, and once for the lines between.
   A mixed solve starts with FMG in f32; a refinement, one for two cycles, reads u, e, f and writes u, r
   (u and f in f64, e and r in f32). An iteration of CG around an f32 cycle moves 8 words in f64, with z in f32 in place
   of one of them, writes the cycle's r, and reads r and z once more for their product. */
static double floor_bytes(const operation *op, unsigned precision, int dim, int iterations)
{
    double word = precision == PG_F32 ? sizeof(float) : sizeof(double);
    double c = 1.0 / (1 << dim);
    switch (op->floor) {
    case V_WORDS: return word * cycle_words(c, 1);
    case W_WORDS: return word * cycle_words(c, 2);
    case FMG_WORDS: return word * fmg_words(c);
    case SOLVE_WORDS: return word * (fmg_words(c) + (iterations - 1) * cycle_words(c, 1) + 2);
    case MIXED_BYTES:
        return 4 * (fmg_words(c) + (iterations - 1) * cycle_words(c, 1)) + 32 * ((iterations + 1) / 2);
    case CG_BYTES: return iterations * (4 * (cycle_words(c, 1) - 1) + 7 * 8 + 4 + 4 + 8 + 4);
    case DIRECT_WORDS: return word * 2 * (2 * dim - 1);
    case OPEN_WORDS: return word * (dim == 3 ? 27 : 11);
    default: return word * op->words;
    }
}

/* ---------------------------------------------------------------------------------------------------------------
   Shapes: cubes, squares and a line with u = 0 at all sides. */

typedef struct shape {
    int dim, n;
    pg_centring centring;
    enum { ALWAYS, QUICK, LARGE, LARGE_F32 } when;   /* also with --quick; with --large, and then the FMG pass alone */
} shape;

static const shape shapes[] = {
    {3, 64, PG_CELL, ALWAYS}, {3, 128, PG_CELL, QUICK}, {3, 256, PG_CELL, ALWAYS}, {3, 512, PG_CELL, ALWAYS},
    {3, 33, PG_NODE, ALWAYS}, {3, 65, PG_NODE, ALWAYS}, {3, 129, PG_NODE, QUICK}, {3, 255, PG_NODE, ALWAYS},
    {3, 511, PG_NODE, ALWAYS},
    {2, 129, PG_NODE, ALWAYS}, {2, 257, PG_NODE, ALWAYS}, {2, 513, PG_NODE, QUICK}, {2, 1025, PG_NODE, ALWAYS},
    {2, 2049, PG_NODE, ALWAYS}, {2, 4097, PG_NODE, ALWAYS},
    {1, 1048577, PG_NODE, QUICK},
    {3, 257, PG_NODE, LARGE}, {3, 384, PG_CELL, LARGE}, {3, 513, PG_NODE, LARGE}, {3, 768, PG_CELL, LARGE},
    {3, 1023, PG_NODE, LARGE}, {3, 1024, PG_CELL, LARGE}, {3, 2048, PG_CELL, LARGE_F32},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static int64_t points_of(const shape *s)
{
    int64_t points = s->n;
    for (int d = 1; d < s->dim; d++) points *= s->n;
    return points;
}

/* On this machine and its stream. */
static void settle(pg_desc *desc)
{
    desc->memory = here.cuda ? PG_MEM_DEVICE : PG_MEM_HOST;
    desc->backend = here.cuda ? PG_CUDA : PG_CPU;
#ifdef PG_BENCH_CUDA
    desc->stream = here.stream;
#endif
}

static pg_desc describe(const shape *s, unsigned precision, unsigned flags, pg_precond precond)
{
    pg_desc desc = {0};
    desc.dim = s->dim;
    for (int d = 0; d < 3; d++) {
        desc.n[d] = d < s->dim ? s->n : 1;
        desc.centring[d] = s->centring;
    }
    desc.flags = flags & PG_MIXED ? flags : flags | precision;
    desc.precond = precond;
    settle(&desc);
    return desc;
}

/* ---------------------------------------------------------------------------------------------------------------
   Rows */

typedef struct timing {
    double min, median, max;      /* seconds of one run */
    int repeats, runs;            /* a repeat times so many runs together */
} timing;

typedef struct row {
    const operation *op;
    const shape *shape;
    unsigned precision;
    timing time;
    double bytes, over_floor, bound;
    double workspace;             /* bytes for an unknown */
    pg_report report;             /* of solves */
    char remark[200];             /* why there is no number, or what is wrong with it */
} row;

static row rows[MAX_ROWS];
static int row_count;

static struct options {
    int quick, large, max;
    pg_backend backend;
    const char *rows, *out;
} options;

static pg_status measure(pg_status (*run)(work *), work *w, int least, timing *t)
{
    double sample[MOST_REPEATS], once = 0;
    for (int warm = 0; warm < 2 && once < 0.1; warm++) {   /* the first run may load code and touch pages */
        clock_start();
        pg_status status = run(w);
        if (status != PG_OK) return status;
        once = clock_stop();
    }
    double sample_seconds = here.cuda ? 3e-3 : 10e-3;
    t->runs = once * 500 < sample_seconds ? 500 : once > sample_seconds ? 1 : (int)(sample_seconds / once);
    double begin = seconds();
    for (t->repeats = 0; t->repeats < MOST_REPEATS; t->repeats++) {
        double spent = seconds() - begin;
        if (t->repeats >= LEAST_REPEATS && spent > enough_seconds) break;
        if (t->repeats >= least && spent > row_seconds) break;
        clock_start();
        for (int i = 0; i < t->runs; i++) {
            pg_status status = run(w);
            if (status != PG_OK) return status;
        }
        sample[t->repeats] = clock_stop() / t->runs;
    }
    qsort(sample, (size_t)t->repeats, sizeof sample[0], ascending);
    t->min = sample[0];
    t->max = sample[t->repeats - 1];
    t->median = 0.5 * (sample[(t->repeats - 1) / 2] + sample[t->repeats / 2]);
    return PG_OK;
}

static const char *precision_name(const row *r) { return r->precision == PG_F32 ? "f32" : "f64"; }
static const char *centring_name(const shape *s) { return s->centring == PG_CELL ? "cell" : "node"; }

static void shape_name(const shape *s, char name[16])
{
    if (s->dim == 1) snprintf(name, 16, "%d", s->n);
    else snprintf(name, 16, "%d^%d", s->n, s->dim);
}

/* The two rows that are checked against a bound. */
static double bound_of(const operation *op, const shape *s, unsigned precision)
{
    if (s->dim != 3 || s->centring != PG_CELL || precision != PG_F64) return 0;
    if (here.cuda && s->n == 512 && !strcmp(op->name, "jacobi sweep")) return bound_cuda;
    if (!here.cuda && s->n == 256 && !strcmp(op->name, "red-black sweep")) return bound_cpu;
    return 0;
}

static int wanted(const operation *op, const shape *s, unsigned precision)
{
    char label[96], name[16];
    if (!(op->precisions & precision) || !(op->dims >> s->dim & 1)) return 0;
    if (s->when >= LARGE && (!options.large || op->floor != FMG_WORDS)) return 0;
    if (s->when == LARGE_F32 && precision != PG_F32) return 0;
    if (points_of(s) > (int64_t)options.max * options.max * options.max) return 0;
    if (options.quick && s->when != QUICK && bound_of(op, s, precision) == 0) return 0;
    shape_name(s, name);
    snprintf(label, sizeof label, "%s %dD %s %s %s", op->name, s->dim, centring_name(s), name,
             precision == PG_F32 ? "f32" : "f64");
    return has_words(label, options.rows);
}

static void print_head(const shape *s, unsigned precision)
{
    char name[16], head[40];
    shape_name(s, name);
    snprintf(head, sizeof head, "%dD %s %s %s", s->dim, centring_name(s), name, precision == PG_F32 ? "f32" : "f64");
    printf("\n%-24s%11s%11s%11s%9s%9s%9s%11s\n", head, "median ms", "min", "max", "GB/s", "x floor", "GDOF/s",
           "B/unknown");
}

static void print_row(const row *r)
{
    const timing *t = &r->time;
    printf("  %-22s", r->op->name);
    if (t->repeats)
        printf("%11.4g%11.4g%11.4g%9.1f%9.2f%9.3f%11.2f", 1e3 * t->median, 1e3 * t->min, 1e3 * t->max,
               1e-9 * r->bytes / t->median, r->over_floor, 1e-9 * (double)points_of(r->shape) / t->median,
               r->workspace);
    if (t->repeats && r->op->rtol > 0) printf("  %d iterations", r->report.iterations);
    if (r->remark[0]) printf("  %s", r->remark);
    putchar('\n');
    fflush(stdout);
}

/* One row: solver exists unless its creation failed, and then why says so. */
static void do_row(const operation *op, const shape *s, unsigned precision, work *w, double workspace, const char *why)
{
    if (row_count == MAX_ROWS) fail("too many rows", "raise MAX_ROWS");
    row *r = &rows[row_count++];
    r->op = op;
    r->shape = s;
    r->precision = precision;
    r->workspace = workspace;
    r->bound = bound_of(op, s, precision);
    if (why) {
        snprintf(r->remark, sizeof r->remark, "skipped: %s", why);
        print_row(r);
        return;
    }
    memset(&w->stop, 0, sizeof w->stop);
    w->stop.rtol = op->rtol;
    w->stop.max_iter = op->run == run_iterations ? ITERATIONS : op->rtol == PG_NONE ? 1 : 0;
    if (op->run == run_solve || op->run == run_iterations) w->stop.guess = PG_GUESS_ZERO;
    if (measure(op->run, w, r->bound > 0 ? LEAST_REPEATS : REPEATS_PAST_LIMIT, &r->time) != PG_OK) {
        r->time.repeats = 0;
        snprintf(r->remark, sizeof r->remark, "failed: %s", pg_last_error(w->solver));
        print_row(r);
        return;
    }
    if (op->run == run_solve) {
        if (pg_get_report(w->solver, &r->report) != PG_OK) fail("pg_get_report", pg_last_error(w->solver));
        if (r->report.outcome != (op->rtol > 0 ? PG_CONVERGED : PG_COMPLETED))
            snprintf(r->remark, sizeof r->remark, "%s", pg_outcome_string(r->report.outcome));
    }
    const int together = op->run == run_smooth ? sweeps() : op->run == run_iterations ? ITERATIONS : 1;
    r->time.min /= together;
    r->time.median /= together;
    r->time.max /= together;
    r->bytes = floor_bytes(op, precision, s->dim, r->report.iterations) * (double)points_of(s);
    r->over_floor = r->time.median / (r->bytes / here.bytes_per_second);
    print_row(r);
}

static void do_shape(const shape *s, unsigned precision)
{
    int64_t points = points_of(s);
    work w = {0};
    const char *no_arrays = NULL;
    const operation *created = NULL;    /* the one of w.solver, or of the failed attempt that why tells about */
    size_t workspace = 0;
    char why[160] = "";

    for (int o = 0; o < OPERATIONS; o++) {
        const operation *op = &operations[o];
        if (!wanted(op, s, precision)) continue;
        if (!w.bytes) {           /* the first wanted row of this shape */
            print_head(s, precision);
            w.bytes = (size_t)points * (precision == PG_F32 ? sizeof(float) : sizeof(double));
            w.u = array_new(w.bytes);
            w.f = array_new(w.bytes);
            w.r = s->when < LARGE ? array_new(w.bytes) : NULL;   /* the FMG pass takes no third array */
            if (!w.u || !w.f || (!w.r && s->when < LARGE)) no_arrays = "out of memory";
            else {
                array_fill(w.u, points, precision);
                array_fill(w.f, points, precision);
                if (w.r) array_fill(w.r, points, precision);
            }
        }
        if (!no_arrays &&
            !(created && created->flags == op->flags && created->precond == op->precond && created->open == op->open)) {
            pg_desc desc = describe(s, precision, op->flags, op->precond);
            for (int q = 0; q < 2 * s->dim && op->open; q++)
                desc.face[q].kind = q / 2 < s->dim - op->open ? PG_PERIODIC : PG_OPEN;
            w.precision = precision, w.n = s->n, w.dim = s->dim;
            pg_destroy(w.solver);
            created = op;
            workspace = 0;
            why[0] = 0;
            if (pg_workspace_bytes(&desc, &workspace) != PG_OK || pg_create(&desc, &w.solver) != PG_OK) {
                snprintf(why, sizeof why, "%.150s", pg_last_error(NULL));
                w.solver = NULL;
            }
        }
        do_row(op, s, precision, &w, (double)workspace / (double)points, no_arrays ? no_arrays : why[0] ? why : NULL);
    }
    pg_destroy(w.solver);
    array_free(w.u);
    array_free(w.f);
    array_free(w.r);
}

/* ---------------------------------------------------------------------------------------------------------------
   The stages of a direct solve, on this machine and, if that is a GPU, on its CPU too */

static const operation stages_of = {"direct solve stages", PG_DIRECT, PG_PRECOND_DEFAULT, PG_F64, D23, run_solve, DIRECT_WORDS, 0, PG_NONE, 0};

static const shape stage_shapes[] = {   /* all but 513 have n + 1 a power of two */
    {2, 63, PG_NODE, QUICK}, {2, 127, PG_NODE, ALWAYS}, {2, 255, PG_NODE, ALWAYS}, {2, 511, PG_NODE, QUICK},
    {2, 513, PG_NODE, ALWAYS}, {2, 1023, PG_NODE, ALWAYS},
    {3, 127, PG_NODE, QUICK}, {3, 255, PG_NODE, ALWAYS}, {3, 511, PG_NODE, ALWAYS},
};
enum { STAGE_SHAPES = sizeof stage_shapes / sizeof stage_shapes[0] };

/* Seconds; the last two are not parts of the whole. */
enum { TRANSFORM, MIDDLE, OTHER, PARTS, WHOLE = PARTS, IN_ONE, STAGE_TIMES };

typedef struct stage_table {
    const shape *shape;
    double time[STAGE_TIMES], cpu[STAGE_TIMES];   /* cpu: only beside a GPU */
    stages_plan plan;
    char why[160];                /* there are no times */
} stage_table;

static stage_table stage_tables[STAGE_SHAPES];
static int stage_table_count;
static struct machine stage_cpu;

/* Seconds of a solve of which so much is kept; negative if it fails. */
static double time_kept(work *w, int kept)
{
    timing t;
    pg_status status = PG_OK;
    w->kept = kept;
    w->solves = 1;
#ifdef PG_BENCH_CUDA
    if (here.cuda) {
        cudaGraph_t graph = NULL;
        w->solves = SOLVES_IN_GRAPH;
        CUDA(cudaStreamBeginCapture(here.stream, cudaStreamCaptureModeThreadLocal));
        status = run_stages(w);
        CUDA(cudaStreamEndCapture(here.stream, &graph));
        if (status == PG_OK) {
            CUDA(cudaGraphInstantiateWithFlags(&w->graph, graph, 0));
            status = measure(run_graph, w, REPEATS_PAST_LIMIT, &t);
            CUDA(cudaGraphExecDestroy(w->graph));
        }
        CUDA(cudaGraphDestroy(graph));
    } else
#endif
        status = measure(run_stages, w, REPEATS_PAST_LIMIT, &t);
    return status == PG_OK ? t.median / w->solves : -1;
}

/* A stage's time is what a solve takes longer with it. Returns why there is none, or NULL. */
static const char *time_stages(const shape *s, work *w, double time[STAGE_TIMES], stages_plan *plan)
{
    pg_desc desc = describe(s, PG_F64, PG_DIRECT, PG_PRECOND_DEFAULT);
    if (!w->u || !w->f) return "out of memory";
    array_fill(w->u, points_of(s), PG_F64);
    array_fill(w->f, points_of(s), PG_F64);
    w->stop.rtol = PG_NONE;
    w->stop.guess = PG_GUESS_ZERO;
    if (stages_create(&desc, &w->solver, plan) != PG_OK) return pg_last_error(NULL);
    if (run_solve(w) != PG_OK) return pg_last_error(w->solver);
    const double whole = time_kept(w, 0), transforms = time_kept(w, STAGE_TRANSFORM);
    const double all = here.cuda ? time_kept(w, STAGE_TRANSFORM | STAGE_MIDDLE) : whole;   /* a CPU does no more */
    if (whole < 0 || transforms < 0 || all < 0) return "a solve failed";
    time[TRANSFORM] = transforms;
    time[MIDDLE] = all - transforms;
    time[OTHER] = whole - all;
    time[WHOLE] = whole;
    if (!plan->in_one_kernel) return NULL;
    pg_destroy(w->solver);
    if (pg_create(&desc, &w->solver) != PG_OK) return pg_last_error(NULL);
    time[IN_ONE] = time_kept(w, 0);
    return time[IN_ONE] < 0 ? "a solve failed" : NULL;
}

static void do_stages_here(stage_table *t, double time[STAGE_TIMES], stages_plan *plan)
{
    work w = {0};
    w.u = array_new((size_t)points_of(t->shape) * sizeof(double));
    w.f = array_new((size_t)points_of(t->shape) * sizeof(double));
    const char *why = time_stages(t->shape, &w, time, plan);
    if (why) snprintf(t->why, sizeof t->why, "%s: %.130s", here.cuda ? "GPU" : "CPU", why);
    pg_destroy(w.solver);
    array_free(w.u);
    array_free(w.f);
}

static const char *stage_name(const stage_table *t, int stage)
{
    static const char *const names[] = {"transform", NULL, "other", "whole", "in one kernel"};
    return stage == MIDDLE ? t->plan.middle : names[stage];
}

/* Times of a stage on the CPU over those here; 0: there is nothing to compare. */
static double stage_speed_up(const stage_table *t, int stage)
{
    const double cpu = t->cpu[stage == IN_ONE ? WHOLE : stage];
    return stage == OTHER || cpu == 0 ? 0 : cpu / t->time[stage];
}

static void do_stages(const shape *s)
{
    char name[16], head[48];
    stages_plan cpu_plan;
    stage_table *t = &stage_tables[stage_table_count];
    if (!wanted(&stages_of, s, PG_F64)) return;
    stage_table_count++;
    t->shape = s;
    do_stages_here(t, t->time, &t->plan);
    if (here.cuda && !t->why[0]) {
        struct machine gpu = here;
        here.cuda = 0;
        open_cpu();
        stage_cpu = here;
        do_stages_here(t, t->cpu, &cpu_plan);
        here = gpu;
    }

    shape_name(s, name);
    snprintf(head, sizeof head, "stages %dD node %s f64", s->dim, name);
    printf("\n%-26s%11s%9s%s\n", head, "median ms", "share", here.cuda ? "     CPU ms    share  CPU/GPU" : "");
    if (t->why[0]) printf("  skipped: %s\n", t->why);
    for (int q = 0; q <= IN_ONE && !t->why[0]; q++) {
        if (t->time[q] == 0) continue;
        printf("  %-24s%11.4g%8.0f%%", stage_name(t, q), 1e3 * t->time[q], 100 * t->time[q] / t->time[WHOLE]);
        if (t->cpu[q] != 0) printf("%11.4g%8.0f%%", 1e3 * t->cpu[q], 100 * t->cpu[q] / t->cpu[WHOLE]);
        else if (stage_speed_up(t, q) > 0) printf("%20s", "");
        if (stage_speed_up(t, q) > 0) printf("%9.1f", stage_speed_up(t, q));
        putchar('\n');
    }
    fflush(stdout);
}

/* ---------------------------------------------------------------------------------------------------------------
   Sweeps over a dense matrix, on a GPU: it is read once a sweep, and that is nearly all that moves. */

typedef struct dense_row {
    const char *name;
    unsigned flags;
    int n;
    double bound;                 /* of the share, f64 */
    timing time;
    double share;                 /* of the copy bandwidth */
    char why[160];                /* there is no time */
} dense_row;

static dense_row dense_rows[] = {
    {.name = "jacobi", .flags = PG_F64 | PG_JACOBI, .n = 16384, .bound = 0.9},
    {.name = "jacobi", .flags = PG_F32 | PG_JACOBI, .n = 16384, .bound = 0},
    {.name = "gauss-seidel", .flags = PG_F64 | PG_GAUSS_SEIDEL, .n = 16384, .bound = 0.6},
    {.name = "gauss-seidel", .flags = PG_F32 | PG_GAUSS_SEIDEL, .n = 16384, .bound = 0},
    {.name = "gauss-seidel backward", .flags = PG_F64 | PG_GAUSS_SEIDEL | PG_BACKWARD, .n = 16384, .bound = 0},
    {.name = "jacobi", .flags = PG_F64 | PG_JACOBI, .n = 2000, .bound = 0},
    {.name = "gauss-seidel", .flags = PG_F64 | PG_GAUSS_SEIDEL, .n = 2000, .bound = 0},
};
enum { DENSE_ROWS = sizeof dense_rows / sizeof dense_rows[0] };

static unsigned dense_precision(const dense_row *r) { return r->flags & PG_F32 ? PG_F32 : PG_F64; }

static int dense_wanted(const dense_row *r)
{
    char label[96];
    if (!here.cuda || (options.quick && r->bound == 0)) return 0;
    snprintf(label, sizeof label, "dense %s %d %s", r->name, r->n, r->flags & PG_F32 ? "f32" : "f64");
    return has_words(label, options.rows);
}

/* Random numbers, and so large a diagonal that sweeps converge. Returns why there is no time, or NULL. */
static const char *time_dense(dense_row *r, work *w)
{
    const int64_t n = r->n;
    const unsigned precision = dense_precision(r);
    const size_t word = precision == PG_F32 ? sizeof(float) : sizeof(double);
    pg_dense_desc desc = {0};
    if (!w->u || !w->f || !w->r) return "out of memory";
    array_fill(w->r, n * n, precision);
    array_fill(w->u, n, precision);
    array_fill(w->f, n, precision);
#ifdef PG_BENCH_CUDA
    void *diagonal = malloc((size_t)n * word);
    if (!diagonal) return "out of host memory";
    for (int64_t i = 0; i < n; i++) {
        if (precision == PG_F32) ((float *)diagonal)[i] = (float)(2 * n);
        else ((double *)diagonal)[i] = 2.0 * (double)n;
    }
    CUDA(cudaMemcpy2DAsync(w->r, (size_t)(n + 1) * word, diagonal, word, word, (size_t)n, cudaMemcpyHostToDevice,
                           here.stream));
    CUDA(cudaStreamSynchronize(here.stream));
    free(diagonal);
    desc.stream = here.stream;
#endif
    desc.n = r->n;
    desc.A = w->r;
    desc.memory = PG_MEM_DEVICE;
    desc.backend = PG_CUDA;
    desc.flags = r->flags;
    if (pg_dense_create(&desc, &w->dense) != PG_OK) return pg_last_error(NULL);
    w->stop.rtol = PG_NONE;
    w->stop.max_iter = SWEEPS_CUDA;
    if (measure(run_dense, w, LEAST_REPEATS, &r->time) != PG_OK) return pg_last_error(w->dense);
    r->time.min /= SWEEPS_CUDA, r->time.median /= SWEEPS_CUDA, r->time.max /= SWEEPS_CUDA;
    r->share = (double)n * (double)n * (double)word / r->time.median / here.bytes_per_second;
    return NULL;
}

static void do_dense(void)
{
    int found = 0;
    for (int q = 0; q < DENSE_ROWS; q++) {
        dense_row *r = &dense_rows[q];
        if (!dense_wanted(r)) continue;
        if (!found++)
            printf("\n%-32s%11s%11s%11s%9s%9s\n", "dense sweep", "median ms", "min", "max", "GB/s", "of copy");
        const size_t word = r->flags & PG_F32 ? sizeof(float) : sizeof(double), vector = (size_t)r->n * word;
        work w = {0};
        w.u = array_new(vector);
        w.f = array_new(vector);
        w.r = array_new((size_t)r->n * vector);
        const char *why = time_dense(r, &w);
        if (why) snprintf(r->why, sizeof r->why, "%.150s", why);
        pg_destroy(w.dense);
        array_free(w.u);
        array_free(w.f);
        array_free(w.r);
        printf("  %-21s%5d %s", r->name, r->n, r->flags & PG_F32 ? "f32" : "f64");
        if (why) printf("  skipped: %s\n", r->why);
        else printf("%11.4g%11.4g%11.4g%9.1f%8.0f%%", 1e3 * r->time.median, 1e3 * r->time.min, 1e3 * r->time.max,
                    1e-9 * (double)r->n * (double)vector / r->time.median, 100 * r->share);
        if (!why && r->bound > 0)
            printf("   bound %.0f%%: %s", 100 * r->bound, r->share >= r->bound ? "holds" : "MISSED");
        if (!why) putchar('\n');
        fflush(stdout);
    }
}

static void json_dense(FILE *out)
{
    const char *comma = "";
    fprintf(out, "  \"dense\": [");
    for (int q = 0; q < DENSE_ROWS; q++) {
        const dense_row *r = &dense_rows[q];
        if (!r->time.repeats) continue;
        fprintf(out, "%s\n    {\"sweep\": \"%s\", \"n\": %d, \"precision\": \"%s\", \"milliseconds\": {\"min\": %.6g, "
                "\"median\": %.6g, \"max\": %.6g}, \"repeats\": %d, \"share_of_copy\": %.4g",
                comma, r->name, r->n, r->flags & PG_F32 ? "f32" : "f64", 1e3 * r->time.min, 1e3 * r->time.median,
                1e3 * r->time.max, r->time.repeats, r->share);
        if (r->bound > 0)
            fprintf(out, ", \"bound\": %.2f, \"holds\": %s", r->bound, r->share >= r->bound ? "true" : "false");
        fprintf(out, "}");
        comma = ",";
    }
    fprintf(out, "\n  ],\n");
}

static int dense_count(void)
{
    int count = 0;
    for (int q = 0; q < DENSE_ROWS; q++) count += dense_wanted(&dense_rows[q]);
    return count;
}

/* ---------------------------------------------------------------------------------------------------------------
   Scenes with obstacles and coefficients: conjugate gradients around one cycle, that cycle, what a new mask costs. */

typedef struct scene_row {
    const char *name;
    int n;
    unsigned precision;           /* PG_F64, PG_F32 or PG_MIXED */
    timing solve, cycle, set_up;
    double share;                 /* the cycle's time over the one of time_reference */
    double grids;                 /* workspace, in grids of u */
    pg_report report;
    char remark[160];             /* why there are no figures, or what is wrong with them */
} scene_row;

static scene_row scene_rows[MAX_SCENE_ROWS];
static int scene_row_count;

/* Two that scenes.h does not have: the dielectric with its coefficients on the faces, and a solid with a room in it. */
static const char faces_of_dielectric[] = "dielectric faces", ten_percent[] = "10 % fluid";

static const char *const few_scenes[] = {"box", "obstacle", "dielectric"};   /* with --quick, and at 129^3 on a CPU */
static const struct {
    const char *name;
    unsigned precisions;
} large_scenes[] = {{"box", PG_F64 | PG_F32},
                    {"obstacle", PG_F64 | PG_F32 | PG_MIXED},
                    {"dielectric", PG_F64 | PG_F32},
                    {faces_of_dielectric, PG_F64 | PG_F32 | PG_MIXED}};
enum {
    FEW_SCENES = sizeof few_scenes / sizeof few_scenes[0],
    LARGE_SCENES = sizeof large_scenes / sizeof large_scenes[0],
    QUICK_SCENE = 33, LARGE_SCENE = 512, LARGEST_SCENE_CPU = 129, TEN_PERCENT_CPU = 128
};

static const char *scene_precision(const scene_row *r)
{
    return r->precision == PG_MIXED ? "mixed" : r->precision == PG_F32 ? "f32" : "f64";
}

static size_t scene_word(const scene_row *r) { return r->precision == PG_F32 ? sizeof(float) : sizeof(double); }
static int64_t scene_points(const scene_row *r) { return (int64_t)r->n * r->n * r->n; }
static int is_scene(const scene_row *r, const char *name) { return !strcmp(r->name, name); }

static int scene_wanted(const scene_row *r)
{
    char label[96];
    int few = 0;
    for (int q = 0; q < FEW_SCENES; q++) few |= is_scene(r, few_scenes[q]);
    if (r->n > options.max || options.quick != (r->n == QUICK_SCENE)) return 0;
    if (options.quick && !few) return 0;
    if (!here.cuda && r->n > TEN_PERCENT_CPU && (r->n > LARGEST_SCENE_CPU || !few)) return 0;
    snprintf(label, sizeof label, "scenes %s 3D cell %d^3 %s", r->name, r->n, scene_precision(r));
    return has_words(label, options.rows);
}

/* The coefficients of the cells as those of faces: the harmonic mean of both sides, at an end the cell's own. */
static int scene_faces(const scene *s, double *face[3])
{
    const int n = s->n;
    const int64_t stride[3] = {1, n, (int64_t)n * n};
    for (int a = 0; a < 3; a++) {
        double *to = face[a] = malloc((size_t)n * (size_t)n * (size_t)(n + 1) * sizeof *to);
        if (!to) return 0;
        const int size[3] = {n + (a == 0), n + (a == 1), n + (a == 2)};
        PARALLEL_FOR
        for (int k = 0; k < size[2]; k++)
            for (int j = 0; j < size[1]; j++)
                for (int i = 0; i < size[0]; i++) {
                    const int along = a == 0 ? i : a == 1 ? j : k;
                    const int64_t high = i + j * stride[1] + k * stride[2], low = high - stride[a];
                    const double below = s->beta[along > 0 ? low : high], above = s->beta[along < n ? high : low];
                    to[i + size[0] * (j + (int64_t)size[1] * k)] = 2 * below * above / (below + above);
                }
    }
    return 1;
}

/* A cube of fluid, a tenth of all cells, in the middle below the top, where u is known; all else is solid. */
static int scene_ten_percent(scene *s, int n)
{
    const int side = (int)(cbrt(0.1) * n + 0.5), low = (n - side) / 2;
    if (!scene_create(s, "box", n, 3)) return 0;
    memset(s->mask, PG_SOLID, scene_cells(s));
    for (int k = n - side; k < n; k++)
        for (int j = low; j < low + side; j++) {
            const int at[3] = {low, j, k};
            memset(s->mask + scene_at(s, at), PG_FLUID, (size_t)side);
        }
    return 1;
}

/* The scene and, where it has coefficients of faces, these; on the host, in f64. */
static int scene_on_host(const char *name, int n, scene *s, double *face[3])
{
    if (!strcmp(name, ten_percent)) return scene_ten_percent(s, n);
    if (strcmp(name, faces_of_dielectric)) return scene_create(s, name, n, 3);
    if (!scene_create(s, "dielectric", n, 3)) return 0;
    const int done = scene_faces(s, face);
    free(s->beta);
    s->beta = NULL;
    return done;
}

/* A copy of coefficients where the solver reads them, in its precision. *missing: there was no memory for it. */
static const void *coefficients(const void *host, int64_t count, unsigned precision, int *missing)
{
    void *array;
    if (!host) return NULL;
    if (precision != PG_F32) array = array_from(host, (size_t)count * sizeof(double));
    else {
        const double *from = host;
        float *narrow = malloc((size_t)count * sizeof *narrow);
        PARALLEL_FOR
        for (int64_t i = 0; i < (narrow ? count : 0); i++) narrow[i] = (float)from[i];
        array = narrow ? array_from(narrow, (size_t)count * sizeof *narrow) : NULL;
        free(narrow);
    }
    *missing |= !array;
    return array;
}

/* Describes the scene with copies of its arrays, which drop_scene frees. Returns whether there was memory for them. */
static int place_scene(const scene_row *r, const scene *s, double *const face[3], pg_desc *desc)
{
    const int64_t cells = scene_points(r), faces = cells + (int64_t)r->n * r->n;
    int missing = 0;
    scene_describe(s, desc);
    if (s->mask) missing = !(desc->cells.mask = array_from(s->mask, (size_t)cells));
    desc->cells.beta_cell = coefficients(s->beta, cells, r->precision, &missing);
    for (int a = 0; a < 3; a++) {
        desc->cells.openness[a] = coefficients(s->openness[a], faces, r->precision, &missing);
        desc->cells.beta_face[a] = coefficients(face[a], faces, r->precision, &missing);
    }
    return !missing;
}

static void drop_scene(const pg_desc *desc)
{
    array_free((void *)desc->cells.mask);
    array_free((void *)desc->cells.beta_cell);
    for (int a = 0; a < 3; a++) {
        array_free((void *)desc->cells.openness[a]);
        array_free((void *)desc->cells.beta_face[a]);
    }
}

/* As measure, but what takes long is run once and not again, not even to warm up: on a CPU some scenes need so many
   iterations that all rows together would take far too long. */
static pg_status measure_scene(pg_status (*run)(work *), work *w, timing *t)
{
    clock_start();
    pg_status status = run(w);
    const double once = clock_stop();
    if (status != PG_OK || once < (here.cuda ? slow_cuda : slow_cpu))
        return status != PG_OK ? status : measure(run, w, REPEATS_PAST_LIMIT, t);
    *t = (timing){once, once, once, 1, 1};
    return PG_OK;
}

/* PG_CG from 0 with its default cycle. */
static pg_status create_scene_solver(const scene_row *r, pg_desc desc, work *w, int iterations)
{
    desc.flags = PG_CG | r->precision;
    settle(&desc);
    array_fill(w->u, scene_points(r), r->precision);
    array_fill(w->f, scene_points(r), r->precision);
    w->stop.rtol = r->precision == PG_F32 ? 1e-5 : 1e-8;
    w->stop.max_iter = iterations;
    w->stop.guess = PG_GUESS_ZERO;
    return pg_create(&desc, &w->solver);
}

/* The cycle that preconditions PG_CG, on its own, as the solver that has just solved has it. */
static const char *time_scene_cycle(work *w, timing *t)
{
    if (measure_scene(run_preconditioner, w, t) != PG_OK) return pg_last_error(w->solver);
    t->min /= CYCLES_IN_CALL, t->median /= CYCLES_IN_CALL, t->max /= CYCLES_IN_CALL;
    return NULL;
}

/* What the cycle is compared to: the cycle of the empty box without a mask, which is timed once for each size and
   precision; of ten_percent the one of a mask that is all fluid. */
static const char *time_reference(const scene_row *r, work *w, double *time)
{
    static struct {
        int n;
        unsigned precision;
        double time;
    } box[MAX_BOXES];
    static int boxes;
    const int masked = is_scene(r, ten_percent);
    double *const no_face[3] = {NULL};
    const char *why = "out of memory";
    scene s = {.name = "box", .n = r->n, .dim = 3, .outer = 'o'};
    pg_desc desc = {0};
    timing t;
    for (int q = 0; q < boxes && !masked; q++) {
        if (box[q].n != r->n || box[q].precision != r->precision) continue;
        *time = box[q].time;
        return NULL;
    }
    if (masked && !scene_create(&s, "box", r->n, 3)) return why;
    pg_destroy(w->solver);
    w->solver = NULL;
    if (place_scene(r, &s, no_face, &desc)) {
        if (create_scene_solver(r, desc, w, 1) != PG_OK || run_solve(w) != PG_OK)
            why = pg_last_error(w->solver);
        else
            why = time_scene_cycle(w, &t);
    }
    drop_scene(&desc);
    scene_free(&s);
    if (why) return why;
    *time = t.median;
    if (masked) return NULL;
    if (boxes == MAX_BOXES) fail("too many sizes of scenes", "raise MAX_BOXES");
    box[boxes].n = r->n, box[boxes].precision = r->precision, box[boxes++].time = t.median;
    return NULL;
}

/* Returns why there are no figures, or NULL. */
static const char *time_scene(scene_row *r, const pg_desc *scene_desc, work *w)
{
    pg_desc desc = *scene_desc;
    size_t bytes;
    double reference;
    desc.flags = PG_CG | r->precision;
    settle(&desc);
    w->cells = desc.cells;
    if (pg_workspace_bytes(&desc, &bytes) != PG_OK) return pg_last_error(NULL);
    r->grids = (double)bytes / ((double)scene_points(r) * (double)scene_word(r));
    if (create_scene_solver(r, *scene_desc, w, SCENE_ITERATIONS) != PG_OK) return pg_last_error(NULL);
    if (measure_scene(run_solve, w, &r->solve) != PG_OK || pg_get_report(w->solver, &r->report) != PG_OK ||
        measure_scene(run_set_up, w, &r->set_up) != PG_OK)
        return pg_last_error(w->solver);
    const char *why = time_scene_cycle(w, &r->cycle);
    if (!why) why = time_reference(r, w, &reference);
    if (why) return why;
    r->share = r->cycle.median / reference;
    return NULL;
}

static void print_scene(const scene_row *r, int head)
{
    char name[40];
    snprintf(name, sizeof name, "scenes 3D cell %d^3", r->n);
    if (head)
        printf("\n%-26s%6s%11s%11s%9s%11s%8s%8s%9s\n", name, "iter", "solve ms", "cycle ms", "of box", "set-up ms",
               "cycles", "grids", "pockets");
    snprintf(name, sizeof name, "%s %s", r->name, scene_precision(r));
    printf("  %-24s", name);
    if (r->solve.repeats)
        printf("%6d%11.4g%11.4g%9.2f%11.4g%8.2f%8.2f%9d", r->report.iterations, 1e3 * r->solve.median,
               1e3 * r->cycle.median, r->share, 1e3 * r->set_up.median, r->set_up.median / r->cycle.median, r->grids,
               r->report.singular_components);
    if (is_scene(r, ten_percent)) printf("  of box: of its cycle with a mask that is all fluid");
    if (r->remark[0]) printf("  %s", r->remark);
    putchar('\n');
    fflush(stdout);
}

static void do_scene_row(scene_row *r, const scene *s, double *const face[3])
{
    const size_t bytes = (size_t)scene_points(r) * scene_word(r);
    const char *why = "out of memory";
    pg_desc desc = {0};
    work w = {0};
    w.u = array_new(bytes);
    w.f = array_new(bytes);
    if (place_scene(r, s, face, &desc) && w.u && w.f) why = time_scene(r, &desc, &w);
    if (why) {
        r->solve.repeats = 0;
        snprintf(r->remark, sizeof r->remark, "skipped: %.140s", why);
    } else if (r->report.outcome != PG_CONVERGED)
        snprintf(r->remark, sizeof r->remark, "%s", pg_outcome_string(r->report.outcome));
    pg_destroy(w.solver);
    drop_scene(&desc);
    array_free(w.u);
    array_free(w.f);
}

/* The rows of one scene and size: random numbers and sorting are slow, so it is made once for all precisions. */
static void do_scene(const char *name, int n, unsigned precisions)
{
    static const unsigned each[] = {PG_F64, PG_F32, PG_MIXED};
    static int head_of;           /* the size of the last head */
    scene s = {0};
    double *face[3] = {NULL};
    int made = 0;
    for (int q = 0; q < 3; q++) {
        scene_row row = {.name = name, .n = n, .precision = each[q]};
        if (!(precisions & each[q]) || !scene_wanted(&row)) continue;
        if (scene_row_count == MAX_SCENE_ROWS) fail("too many scenes", "raise MAX_SCENE_ROWS");
        scene_row *r = &scene_rows[scene_row_count++];
        *r = row;
        made = made || scene_on_host(name, n, &s, face);
        if (made) do_scene_row(r, &s, face);
        else snprintf(r->remark, sizeof r->remark, "skipped: out of host memory");
        print_scene(r, head_of != n);
        head_of = n;
    }
    scene_free(&s);
    for (int a = 0; a < 3; a++) free(face[a]);
}

static void do_scenes(void)
{
    static const int sizes[] = {QUICK_SCENE, 65, 129, 257};
    for (size_t q = 0; q < sizeof sizes / sizeof sizes[0]; q++)
        for (int i = 0; i < SCENES; i++) do_scene(scene_names[i], sizes[q], PG_F64);
    for (int q = 0; q < LARGE_SCENES; q++) do_scene(large_scenes[q].name, LARGE_SCENE, large_scenes[q].precisions);
    do_scene(ten_percent, here.cuda ? LARGE_SCENE : TEN_PERCENT_CPU, PG_F64);
}

/* What a row is checked for; the bounds are those of the largest size, and of ten_percent at either. */
typedef struct scene_check {
    const char *what;
    double value, bound;
} scene_check;

static int scene_checks(const scene_row *r, scene_check check[3])
{
    const int faces = is_scene(r, faces_of_dielectric), mask = is_scene(r, "box") || is_scene(r, "obstacle");
    int count = 0;
    if (!r->solve.repeats) return 0;
    if (is_scene(r, ten_percent)) {
        check[0] = (scene_check){"cycle over all fluid", r->share, 0.35};
        return 1;
    }
    if (r->n != LARGE_SCENE) return 0;
    check[count++] = (scene_check){"set-up in cycles", r->set_up.median / r->cycle.median, 2};
    if (mask && r->precision != PG_MIXED)
        check[count++] = (scene_check){"cycle over empty box", r->share, r->precision == PG_F32 ? 2.4 : 1.6};
    if (faces && r->precision == PG_F64) check[count++] = (scene_check){"cycle over empty box", r->share, 2.2};
    if (is_scene(r, "obstacle") && r->precision == PG_MIXED)
        check[count++] = (scene_check){"solve to 1e-8 in ms", 1e3 * r->solve.median, 75};
    return count;
}

static void print_scene_checks(void)
{
    int found = 0;
    for (int i = 0; i < scene_row_count; i++) {
        const scene_row *r = &scene_rows[i];
        scene_check check[3];
        char label[64];
        const int count = scene_checks(r, check);
        if (count && !found++) printf("\nChecks: scenes\n");
        snprintf(label, sizeof label, "%s %d^3 %s", r->name, r->n, scene_precision(r));
        for (int q = 0; q < count; q++)
            printf("  %-30s%-22s%7.2f   bound %.2f   %s\n", label, check[q].what, check[q].value, check[q].bound,
                   check[q].value <= check[q].bound ? "holds" : "MISSED");
    }
}

/* ---------------------------------------------------------------------------------------------------------------
   The copy, the checks, the JSON file */

static timing measure_copy(size_t *bytes_moved)
{
    timing t;
    work w = {0};
    w.bytes = here.cuda ? (size_t)COPY_BYTES : TRIAD_POINTS * sizeof(double);
    for (;;) {                    /* a small GPU gets a smaller copy */
        w.u = here.cuda ? NULL : array_new(w.bytes);
        w.f = array_new(w.bytes);
        w.r = array_new(w.bytes);
        if (w.f && w.r && (here.cuda || w.u)) break;
        array_free(w.u);
        array_free(w.f);
        array_free(w.r);
        if ((w.bytes /= 2) < 1 << 20) fail("measuring the copy bandwidth", "out of memory");
    }
    int64_t count = (int64_t)(w.bytes / sizeof(double));
    if (w.u) array_fill(w.u, count, PG_F64);
    array_fill(w.f, count, PG_F64);
    array_fill(w.r, count, PG_F64);
    for (double begin = seconds(); seconds() - begin < 0.2;) {   /* until the clocks are up */
        clock_start();
        run_copy(&w);
        clock_stop();
    }
    if (measure(run_copy, &w, LEAST_REPEATS, &t) != PG_OK) fail("measuring the copy bandwidth", "failed");
    array_free(w.u);
    array_free(w.f);
    array_free(w.r);
    *bytes_moved = w.bytes * (here.cuda ? 2 : 3);
    return t;
}

static void label_of(const row *r, char *label, size_t size)
{
    char name[16];
    shape_name(r->shape, name);
    snprintf(label, size, "%s %s %s", r->op->name, name, precision_name(r));
}

static void print_checks(void)
{
    int found = 0;
    printf("\nChecks: time over the time of the bytes that must move\n");
    for (int i = 0; i < row_count; i++) {
        char label[64];
        const row *r = &rows[i];
        if (r->bound == 0 || r->time.repeats == 0) continue;
        label_of(r, label, sizeof label);
        printf("  %-30s%6.2f   bound %.2f   %s\n", label, r->over_floor, r->bound,
               r->over_floor <= r->bound ? "holds" : "MISSED");
        found = 1;
    }
    if (!found)
        printf("  none: %s was not measured\n", here.cuda ? "jacobi sweep 512^3 f64" : "red-black sweep 256^3 f64");
    print_scene_checks();
}

static void json_scene(FILE *out, const scene_row *r)
{
    scene_check check[3];
    const int count = scene_checks(r, check);
    fprintf(out, "    {\"scene\": \"%s\", \"n\": [%d, %d, %d], \"precision\": \"%s\"", r->name, r->n, r->n, r->n,
            scene_precision(r));
    if (r->solve.repeats) {
        fprintf(out, ", \"iterations\": %d, \"milliseconds\": {\"min\": %.6g, \"median\": %.6g, \"max\": %.6g}, "
                "\"repeats\": %d", r->report.iterations, 1e3 * r->solve.min, 1e3 * r->solve.median,
                1e3 * r->solve.max, r->solve.repeats);
        fprintf(out, ", \"cycle_milliseconds\": %.6g, \"%s\": %.4g, \"set_up_milliseconds\": %.6g, "
                "\"set_up_cycles\": %.4g", 1e3 * r->cycle.median,
                is_scene(r, ten_percent) ? "over_all_fluid" : "over_empty_box", r->share, 1e3 * r->set_up.median,
                r->set_up.median / r->cycle.median);
        fprintf(out, ", \"workspace_grids\": %.4g, \"pockets\": %d", r->grids, r->report.singular_components);
    }
    for (int q = 0; q < count; q++)
        fprintf(out, "%s{\"what\": \"%s\", \"value\": %.4g, \"bound\": %.2f, \"holds\": %s}%s",
                q ? ", " : ", \"checks\": [", check[q].what, check[q].value, check[q].bound,
                check[q].value <= check[q].bound ? "true" : "false", q + 1 < count ? "" : "]");
    if (r->remark[0]) {
        fprintf(out, ", ");
        json_string(out, "remark", r->remark);
    }
    fprintf(out, "}");
}

static void json_scenes(FILE *out)
{
    fprintf(out, "  \"scenes\": [\n");
    for (int i = 0; i < scene_row_count; i++) {
        json_scene(out, &scene_rows[i]);
        fprintf(out, i + 1 < scene_row_count ? ",\n" : "\n");
    }
    fprintf(out, "  ],\n");
}

static void json_row(FILE *out, const row *r)
{
    const timing *t = &r->time;
    int n[3] = {1, 1, 1};
    for (int d = 0; d < r->shape->dim; d++) n[d] = r->shape->n;
    fprintf(out, "    {\"row\": \"%s\", \"n\": [%d, %d, %d], \"centring\": \"%s\", \"precision\": \"%s\"", r->op->name,
            n[0], n[1], n[2], centring_name(r->shape), precision_name(r));
    fprintf(out, ", \"workspace_bytes_per_unknown\": %.6g", r->workspace);
    if (t->repeats) {
        fprintf(out, ", \"milliseconds\": {\"min\": %.6g, \"median\": %.6g, \"max\": %.6g}", 1e3 * t->min,
                1e3 * t->median, 1e3 * t->max);
        fprintf(out, ", \"repeats\": %d, \"runs_per_repeat\": %d, \"bytes\": %.0f", t->repeats, t->runs, r->bytes);
        fprintf(out, ", \"gb_per_s\": %.6g, \"over_floor\": %.4g, \"gdof_per_s\": %.6g", 1e-9 * r->bytes / t->median,
                r->over_floor, 1e-9 * (double)points_of(r->shape) / t->median);
        if (r->op->run == run_solve) fprintf(out, ", \"iterations\": %d", r->report.iterations);
        if (r->bound > 0)
            fprintf(out, ", \"bound\": %.2f, \"holds\": %s", r->bound, r->over_floor <= r->bound ? "true" : "false");
    }
    if (r->remark[0]) {
        fprintf(out, ", ");
        json_string(out, "remark", r->remark);
    }
    fprintf(out, "}");
}

static void json_stages(FILE *out, const stage_table *t)
{
    const char *comma = "";
    fprintf(out, "    {\"n\": [%d, %d, %d], \"centring\": \"node\", \"precision\": \"f64\"", t->shape->n, t->shape->n,
            t->shape->dim < 3 ? 1 : t->shape->n);
    if (t->why[0]) {
        fprintf(out, ", ");
        json_string(out, "remark", t->why);
    }
    fprintf(out, ", \"stages\": [");
    for (int q = 0; q <= IN_ONE && !t->why[0]; q++) {
        if (t->time[q] == 0) continue;
        fprintf(out, "%s\n      {\"stage\": \"%s\", \"milliseconds\": %.6g, \"share\": %.4g", comma, stage_name(t, q),
                1e3 * t->time[q], t->time[q] / t->time[WHOLE]);
        if (t->cpu[q] != 0)
            fprintf(out, ", \"cpu_milliseconds\": %.6g, \"cpu_share\": %.4g", 1e3 * t->cpu[q],
                    t->cpu[q] / t->cpu[WHOLE]);
        if (stage_speed_up(t, q) > 0) fprintf(out, ", \"speed_up\": %.4g", stage_speed_up(t, q));
        fprintf(out, "}");
        comma = ",";
    }
    fprintf(out, "]}");
}

static void write_json(const timing *copy, size_t copy_bytes)
{
    char path[512], date[16];
    today(date);
    result_path(options.out, here.name, "", date, path, sizeof path);

    FILE *out = fopen(path, "w");
    if (!out) fail("cannot write", path);
    fprintf(out, "{\n  ");
    json_string(out, "device", here.name);
    fprintf(out, ",\n  \"backend\": \"%s\",\n", here.cuda ? "cuda" : "cpu");
    if (!here.cuda) fprintf(out, "  \"threads\": %d,\n", here.threads);
    fprintf(out, "  \"date\": \"%s\",\n  ", date);
    json_string(out, "version", pg_version());
    fprintf(out, ",\n  \"copy\": {\"method\": \"%s\", \"bytes\": %.0f, \"repeats\": %d, \"gb_per_s\": %.6g, "
            "\"gb_per_s_min\": %.6g, \"gb_per_s_max\": %.6g},\n  \"rows\": [\n",
            here.cuda ? "cudaMemcpyAsync, device to device" : "triad", (double)copy_bytes, copy->repeats,
            1e-9 * here.bytes_per_second, 1e-9 * (double)copy_bytes / copy->max, 1e-9 * (double)copy_bytes / copy->min);
    for (int i = 0; i < row_count; i++) {
        json_row(out, &rows[i]);
        fprintf(out, i + 1 < row_count ? ",\n" : "\n");
    }
    fprintf(out, "  ],\n");
    if (dense_count()) json_dense(out);
    if (scene_row_count) json_scenes(out);
    if (stage_cpu.threads) {
        fprintf(out, "  ");
        json_string(out, "stages_cpu", stage_cpu.name);
        fprintf(out, ",\n  \"stages_cpu_threads\": %d,\n", stage_cpu.threads);
    }
    fprintf(out, "  \"direct_stages\": [\n");
    for (int i = 0; i < stage_table_count; i++) {
        json_stages(out, &stage_tables[i]);
        fprintf(out, i + 1 < stage_table_count ? ",\n" : "\n");
    }
    fprintf(out, "  ]\n}\n");
    if (fclose(out) != 0) fail("cannot write", path);
    printf("\nwritten: %s\n", path);
}

static void usage(void)
{
    fprintf(stderr,
            "pg_bench [--quick] [--large] [--max N] [--backend auto|cpu|cuda] [--rows \"words\"] [--out FILE.json|FOLDER]\n"
            "  --quick    a few sizes\n"
            "  --large    also FMG passes from 257^3 to 1024^3 unknowns, and of 2048^3 in f32\n"
            "  --max N    sizes of at most N^3 unknowns (default 512 on a GPU, 256 on a CPU; with --large 2048)\n"
            "  --rows     only rows whose name has all these words, as in \"sweep 3D cell 512^3 f64\"\n"
            "  --out      a file, or a folder (default bench/results); with --quick, --max or --rows\n"
            "             nothing is written unless --out is given\n");
    exit(2);
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--quick")) {
            options.quick = 1;
            continue;
        }
        if (!strcmp(argv[i], "--large")) {
            options.large = 1;
            continue;
        }
        if (!value) usage();
        if (!strcmp(argv[i], "--max")) {
            options.max = atoi(value);
            if (options.max < 1 || options.max > 2048) usage();
        } else if (!strcmp(argv[i], "--rows")) options.rows = value;
        else if (!strcmp(argv[i], "--out")) options.out = value;
        else if (!strcmp(argv[i], "--backend") && !strcmp(value, "auto")) options.backend = PG_AUTO;
        else if (!strcmp(argv[i], "--backend") && !strcmp(value, "cpu")) options.backend = PG_CPU;
        else if (!strcmp(argv[i], "--backend") && !strcmp(value, "cuda")) options.backend = PG_CUDA;
        else usage();
        i++;
    }
    if (!options.out && !options.quick && !options.max && !options.rows) options.out = "bench/results";
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
#ifdef PG_BENCH_CUDA
    if (options.backend != PG_CPU) open_cuda();
#endif
    if (!here.cuda && options.backend == PG_CUDA) fail("--backend cuda", "no CUDA device, or built without CUDA");
    if (!here.cuda) open_cpu();
    if (!options.max) options.max = options.large ? 2048 : here.cuda ? 512 : 256;

    size_t copy_bytes;
    timing copy = measure_copy(&copy_bytes);
    here.bytes_per_second = (double)copy_bytes / copy.median;
    printf("%s", here.name);
    if (!here.cuda) printf(", %d thread%s", here.threads, here.threads == 1 ? "" : "s");
    printf("\n%s\n%s: %.1f GB/s, read + write (%.1f to %.1f in %d repeats)\n", pg_version(),
           here.cuda ? "copy" : "triad", 1e-9 * here.bytes_per_second, 1e-9 * (double)copy_bytes / copy.max,
           1e-9 * (double)copy_bytes / copy.min, copy.repeats);

    for (int s = 0; s < SHAPES; s++) {
        do_shape(&shapes[s], PG_F64);
        do_shape(&shapes[s], PG_F32);
    }
    for (int s = 0; s < STAGE_SHAPES; s++) do_stages(&stage_shapes[s]);
    do_dense();
    do_scenes();
    if (!row_count && !stage_table_count && !dense_count() && !scene_row_count)
        fail("--rows", "no row has all these words");
    print_checks();
    if (options.out) write_json(&copy, copy_bytes);
    return 0;
}
