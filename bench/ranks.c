/* pg_ranks - how solves of poisson_gpu.h grow with the number of ranks: the same problem on more GPUs (strong), and a
   problem that grows with them (weak). README.md beside this file says how each number is made.

       pg_ranks [--ranks 1,2,4] [--size N] [--threads T] [--quick] [--large] [--backend auto|cpu|cuda] [--rows "words"]
                [--out FILE.json|FOLDER]

   Ranks are threads of this program, rank r with GPU r, or on the CPU back end with OpenMP threads of its own; compiled
   with -DPG_USE_MPI and begun by mpirun they are processes; with -DPG_USE_NCCL GPUs are brought together by NCCL. Compiled
   with -DPG_BENCH_CUDA arrays are on the devices; without it there is the CPU back end alone. */

#define _POSIX_C_SOURCE 200809L   /* clock_gettime, mkdir, setenv */
#include <pthread.h>
#include "poisson_gpu.h"
#include "tools.h"
#include "../samples/thread_ranks.h"

#ifdef PG_BENCH_CUDA
#include <cuda_runtime_api.h>
#endif
#if defined(PG_USE_MPI)
#include <mpi.h>
#define TRANSPORT "MPI"
#elif defined(PG_USE_NCCL)
#include <nccl.h>
#define TRANSPORT "NCCL"
#else
#define TRANSPORT "threads"
#endif
#ifdef _OPENMP
#include <omp.h>
#define PARALLEL_FOR _Pragma("omp parallel for schedule(static)")
#else
#define PARALLEL_FOR
#endif

enum {
    LEAST_REPEATS = 3, MOST_REPEATS = 10,
    MOST_RANKS = MOST_THREAD_RANKS, MAX_ROWS = 512, WHY = 240,
    NOISE_PERIOD = 1000003,       /* prime, so that the repeated block does not line up from plane to plane */
    TIME_LIMIT = 20               /* seconds, after which a rank that fails does not hold up the others */
};
static const double repeat_cuda = 20e-3, repeat_cpu = 50e-3;   /* seconds that the runs of a repeat fill */

static struct machine {
    int cuda, threads;            /* threads: of each rank */
    char name[128];
} here;

static struct options {
    int quick, large, size, threads;
    int counts, count[MOST_RANKS];    /* the numbers of ranks */
    pg_backend backend;
    const char *rows, *out;
} options;

/* ---------------------------------------------------------------------------------------------------------------
   What is solved: cells, u = 0 at all sides. */

typedef struct problem {
    enum { WEAK, STRONG, LARGE } scaling;   /* LARGE: strong, with --large */
    const char *name;
    unsigned flags;
    pg_precond precond;
    int dim, side;                /* points along an axis, in halves of options.size */
    double rtol;                  /* of a solve; PG_NONE: without a tolerance */
    int iterations;               /* without a tolerance: so many of a solve or, rtol 0, of pg_cycle */
} problem;

static const problem problems[] = {
    {WEAK, "V(2,1) cycle", PG_VCYCLE | PG_F64, PG_PRECOND_DEFAULT, 3, 2, 0, 10},
    {WEAK, "V(2,1) cycle", PG_VCYCLE | PG_F32, PG_PRECOND_DEFAULT, 3, 2, 0, 10},
    {WEAK, "FMG pass", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 2, PG_NONE, 1},
    {STRONG, "V(2,1) cycle", PG_VCYCLE | PG_F64, PG_PRECOND_DEFAULT, 3, 1, 0, 10},
    {STRONG, "V(2,1) cycle", PG_VCYCLE | PG_F64, PG_PRECOND_DEFAULT, 3, 2, 0, 10},
    {STRONG, "V(2,1) cycle", PG_VCYCLE | PG_F64, PG_PRECOND_DEFAULT, 3, 4, 0, 10},
    {STRONG, "V(2,1) cycle", PG_VCYCLE | PG_F32, PG_PRECOND_DEFAULT, 3, 2, 0, 10},
    {STRONG, "V(2,1) cycle", PG_VCYCLE | PG_F32, PG_PRECOND_DEFAULT, 3, 4, 0, 10},
    {STRONG, "V(2,1) cycle", PG_VCYCLE | PG_F64, PG_PRECOND_DEFAULT, 2, 32, 0, 10},
    {STRONG, "FMG pass", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 1, PG_NONE, 1},
    {STRONG, "FMG pass", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 2, PG_NONE, 1},
    {STRONG, "FMG pass", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 4, PG_NONE, 1},
    {STRONG, "FMG pass", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 2, 32, PG_NONE, 1},
    {STRONG, "solve 1e-8", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 2, 1e-8, 0},
    {STRONG, "solve 1e-8", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 4, 1e-8, 0},
    {STRONG, "mixed solve 1e-10", PG_FMG | PG_MIXED, PG_PRECOND_DEFAULT, 3, 2, 1e-10, 0},
    {STRONG, "mixed solve 1e-10", PG_FMG | PG_MIXED, PG_PRECOND_DEFAULT, 3, 4, 1e-10, 0},
    {STRONG, "direct solve", PG_DIRECT | PG_F64, PG_PRECOND_DEFAULT, 3, 2, PG_NONE, 1},
    {STRONG, "direct solve", PG_DIRECT | PG_F64, PG_PRECOND_DEFAULT, 3, 4, PG_NONE, 1},
    {STRONG, "CG, cycle", PG_CG | PG_F64, PG_PRECOND_CYCLE, 3, 2, PG_NONE, 10},
    {STRONG, "CG", PG_CG | PG_F64, PG_PRECOND_NONE, 3, 2, PG_NONE, 40},
    {STRONG, "pipelined CG", PG_PIPECG | PG_F64, PG_PRECOND_NONE, 3, 2, PG_NONE, 40},
    {LARGE, "FMG pass", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 6, PG_NONE, 1},
    {LARGE, "FMG pass", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 8, PG_NONE, 1},
    {LARGE, "FMG pass", PG_FMG | PG_F64, PG_PRECOND_DEFAULT, 3, 10, PG_NONE, 1},
};
enum { PROBLEMS = sizeof problems / sizeof problems[0] };

static const char *scaling_name(const problem *p) { return p->scaling == WEAK ? "weak" : "strong"; }
static const char *precision_name(const problem *p) { return p->flags & PG_F32 ? "f32" : "f64"; }
static size_t word_of(const problem *p) { return p->flags & PG_F32 ? sizeof(float) : sizeof(double); }
static int side_of(const problem *p) { return p->side * options.size / 2; }

/* A weak problem is a cube for each rank, one upon the other. */
static void extent_of(const problem *p, int ranks, int n[3])
{
    for (int a = 0; a < 3; a++) n[a] = a < p->dim ? side_of(p) : 1;
    if (p->scaling == WEAK) n[p->dim - 1] *= ranks;
}

typedef struct timing {
    double min, median, max;      /* seconds of one run, or of one iteration */
    int repeats, runs;            /* a repeat times so many runs together */
} timing;

typedef struct row {
    const problem *p;
    int ranks;
    timing time;
    int iterations;               /* of a solve to a tolerance */
    double bytes;                 /* u, f and workspace of the rank that has most */
    double gain;                  /* speed-up, or of a weak problem the time of one rank over this one; 0: unknown */
    char remark[WHY];             /* why there is no number, or what is wrong with it */
} row;

static row rows[MAX_ROWS];
static int row_count;

/* ---------------------------------------------------------------------------------------------------------------
   Ranks: threads, or processes of MPI. */

typedef struct rank {
    int number;
    row *row;                     /* rank 0 fills it */
    pg_desc desc;
    pg_stop stop;
    pg_solver *solver;
    void *u, *f;
    int64_t first, count;         /* points of ranks before, and its own */
    double bytes;
    char why[WHY];                /* what failed, here or on another rank */
#ifdef PG_USE_MPI
    MPI_Comm comm;
#else
    pthread_t thread;
    struct thread_rank place, meeting;    /* where the library's calls meet, and where this program's do */
    pg_transport transport;
#ifdef PG_USE_NCCL
    ncclUniqueId id;
    ncclComm_t nccl;
#endif
#endif
#ifdef PG_BENCH_CUDA
    cudaStream_t stream;
#endif
} rank;

static void *work(void *argument);

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "pg_ranks: %s: %s\n", what, why);
    exit(1);
}

#ifdef PG_USE_MPI
static int own_number, world_ranks;

static void begin_ranks(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_number);
    MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
}

static void end_ranks(void) { MPI_Finalize(); }

static void gather(rank *r, const void *own, size_t bytes, void *all)
{
    MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, r->comm);
}

static void introduce(rank *r)
{
    r->desc.comm.kind = PG_COMM_MPI;
    r->desc.comm.handle = &r->comm;
}

static void let_go(rank *r) { (void)r; }    /* the library's time limit does */

/* Those that are too many wait for the next row. */
static void run_ranks(row *w)
{
    rank r = {.number = own_number, .row = w};
    MPI_Comm_split(MPI_COMM_WORLD, own_number < w->ranks ? 0 : MPI_UNDEFINED, own_number, &r.comm);
    if (own_number >= w->ranks) return;
    work(&r);
    MPI_Comm_free(&r.comm);
}
#else
static const int own_number = 0, world_ranks = 0;   /* as many as there shall be */

static void begin_ranks(int *argc, char ***argv) { (void)argc, (void)argv; }
static void end_ranks(void) {}
static void gather(rank *r, const void *own, size_t bytes, void *all) { thread_gather(&r->meeting, own, bytes, all); }

static void introduce(rank *r)
{
#ifdef PG_USE_NCCL
    if (ncclCommInitRank(&r->nccl, r->row->ranks, r->id, r->number) != ncclSuccess) r->nccl = NULL;
    r->desc.comm.kind = PG_COMM_NCCL;             /* which refuses NULL */
    r->desc.comm.handle = r->nccl;
#else
    r->transport = thread_transport(&r->place);
    r->desc.comm.kind = PG_COMM_OWN;
    r->desc.comm.handle = &r->transport;
#endif
}

static void let_go(rank *r) { thread_give_up(&r->place); }

static void run_ranks(row *w)
{
    struct thread_ranks library = THREAD_RANKS(w->ranks), bench = THREAD_RANKS(w->ranks);
    rank ranks[MOST_RANKS];
    memset(ranks, 0, sizeof ranks);
#ifdef PG_USE_NCCL
    ncclUniqueId id;
    if (ncclGetUniqueId(&id) != ncclSuccess) fail("ncclGetUniqueId", "no communicator");
#endif
    for (int q = 0; q < w->ranks; q++) {
        rank *r = &ranks[q];
#ifdef PG_USE_NCCL
        r->id = id;
#endif
        r->number = r->place.number = r->meeting.number = q;
        r->row = w;
        r->place.all = &library;
        r->meeting.all = &bench;
        if (pthread_create(&r->thread, NULL, work, r) != 0) fail("pthread_create", "no thread for a rank");
    }
    for (int q = 0; q < w->ranks; q++) pthread_join(ranks[q].thread, NULL);
}
#endif

/* What a rank tells the others after a step. */
typedef struct verdict {
    double value, when;           /* when: the step was over */
    int good;
    char why[WHY];
} verdict;

/* Every rank comes here after every step, whether it has failed or not, so that none waits for another that has. All
   learn the largest value, and whether to go on; if not, what the rank says that failed first, for others follow. */
static int together(rank *r, int good, double *value)
{
    verdict own = {*value, seconds(), good, ""}, all[MOST_RANKS];
    int failed = -1;
    if (!good) let_go(r);
    memcpy(own.why, r->why, sizeof own.why);
    gather(r, &own, sizeof own, all);
    for (int q = 0; q < r->row->ranks; q++) {
        if (!all[q].good && (failed < 0 || all[q].when < all[failed].when)) failed = q;
        if (all[q].value > *value) *value = all[q].value;
    }
    if (failed >= 0) memcpy(r->why, all[failed].why, sizeof r->why);
    return failed < 0;
}

static int done(rank *r, int good)
{
    double nothing = 0;
    return together(r, good, &nothing);
}

static int library_good(rank *r, pg_status status)
{
    if (status != PG_OK) snprintf(r->why, sizeof r->why, "%.*s", WHY - 1, pg_last_error(r->solver));
    return status == PG_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
   Arrays of a rank, its device, its stream */

#ifdef PG_BENCH_CUDA
static int cuda_good(rank *r, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return 1;
    cudaGetLastError();           /* else the next launch would report this one */
    snprintf(r->why, sizeof r->why, "%.60s: %.100s", what, cudaGetErrorString(error));
    return 0;
}
#endif

static int open_rank(rank *r)
{
#ifdef _OPENMP
    omp_set_num_threads(here.threads);
#endif
#ifdef PG_BENCH_CUDA
    if (here.cuda)
        return cuda_good(r, cudaSetDevice(r->number), "no GPU for this rank") &&
               cuda_good(r, cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "no stream");
#endif
    (void)r;
    return 1;
}

static void *array_new(size_t bytes)
{
    void *array = NULL;
#ifdef PG_BENCH_CUDA
    if (here.cuda) {
        if (cudaMalloc(&array, bytes) == cudaSuccess) return array;
        cudaGetLastError();
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
        cudaFree(array);
        return;
    }
#endif
    free(array);
}

static int wait_for(rank *r)
{
#ifdef PG_BENCH_CUDA
    if (here.cuda) return cuda_good(r, cudaStreamSynchronize(r->stream), "waiting for the stream");
#endif
    (void)r;
    return 1;
}

static void close_rank(rank *r)
{
    pg_destroy(r->solver);
#if defined(PG_USE_NCCL) && !defined(PG_USE_MPI)
    if (r->nccl) ncclCommDestroy(r->nccl);
#endif
    array_free(r->u);
    array_free(r->f);
#ifdef PG_BENCH_CUDA
    if (r->stream) cudaStreamDestroy(r->stream);
#endif
}

/* A point has the same number whichever rank it belongs to. */
static void fill_host(void *array, int64_t first, int64_t count, size_t word)
{
    float *single = array;
    double *twice = array;
    PARALLEL_FOR
    for (int64_t i = 0; i < count; i++) {
        const double x = noise((first + i) % NOISE_PERIOD);
        if (word == sizeof(float)) single[i] = (float)x;
        else twice[i] = x;
    }
}

#ifdef PG_BENCH_CUDA
static int fill_device(rank *r, char *array, size_t word)
{
    int64_t filled = r->count < NOISE_PERIOD ? r->count : NOISE_PERIOD;
    void *block = malloc((size_t)filled * word);
    int good = block != NULL;
    if (!good) snprintf(r->why, sizeof r->why, "out of host memory");
    if (good) {
        fill_host(block, r->first, filled, word);
        good = cuda_good(r, cudaMemcpyAsync(array, block, (size_t)filled * word, cudaMemcpyHostToDevice, r->stream),
                         "filling an array");
        good = wait_for(r) && good;
    }
    free(block);
    for (int64_t next; good && filled < r->count; filled += next) {
        next = filled < r->count - filled ? filled : r->count - filled;
        good = cuda_good(r, cudaMemcpyAsync(array + (size_t)filled * word, array, (size_t)next * word,
                                            cudaMemcpyDeviceToDevice, r->stream), "filling an array");
    }
    return good && wait_for(r);
}
#endif

static int array_fill(rank *r, void *array)
{
    const size_t word = word_of(r->row->p);
#ifdef PG_BENCH_CUDA
    if (here.cuda) return fill_device(r, array, word);
#endif
    fill_host(array, r->first, r->count, word);
    return 1;
}

static void describe(rank *r)
{
    const problem *p = r->row->p;
    pg_desc *desc = &r->desc;
    desc->dim = p->dim;
    extent_of(p, r->row->ranks, desc->n);
    for (int a = 0; a < p->dim; a++) {
        desc->centring[a] = PG_CELL;
        desc->h[a] = 1.0 / side_of(p);    /* cubes: the default would squeeze what is longer into a box of length 1 */
    }
    desc->flags = p->flags;
    desc->precond = p->precond;
    desc->time_limit = TIME_LIMIT;
    desc->memory = here.cuda ? PG_MEM_DEVICE : PG_MEM_HOST;
    desc->backend = here.cuda ? PG_CUDA : PG_CPU;
    if (here.cuda) desc->device = PG_DEVICE(r->number);
#ifdef PG_BENCH_CUDA
    desc->stream = r->stream;
#endif
    if (r->row->ranks > 1) introduce(r);
    r->stop.rtol = p->rtol;
    r->stop.max_iter = p->iterations;
    r->stop.guess = PG_GUESS_ZERO;
}

static int take_arrays(rank *r)
{
    int lo[3], hi[3];
    int64_t plane = 1;
    const int last = r->row->p->dim - 1;
    if (!library_good(r, pg_query_part(&r->desc, lo, hi))) return 0;
    for (int a = 0; a < last; a++) plane *= r->desc.n[a];
    r->first = plane * lo[last];
    r->count = plane * (hi[last] - lo[last]);
    const size_t bytes = (size_t)r->count * word_of(r->row->p);
    r->bytes = 2 * (double)bytes;
    r->u = array_new(bytes);
    r->f = r->u ? array_new(bytes) : NULL;
    if (r->f) return array_fill(r, r->u) && array_fill(r, r->f);
    snprintf(r->why, sizeof r->why, "out of memory: u and f are %.1f GB a rank", 1e-9 * r->bytes);
    return 0;
}

static int create(rank *r)
{
    size_t workspace = 0;
    if (!library_good(r, pg_workspace_bytes(&r->desc, &workspace))) return 0;
    r->bytes += (double)workspace;
    if (library_good(r, pg_create(&r->desc, &r->solver))) return 1;
    r->solver = NULL;
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------------
   A row */

static pg_status run(rank *r)
{
    return r->row->p->rtol == 0 ? pg_cycle(r->solver, r->u, r->f, r->row->p->iterations)
                              : pg_solve(r->solver, r->u, r->f, &r->stop);
}

/* Seconds of some runs, from a time at which all ranks begin until the last one has done them; negative: failed. */
static double time_runs(rank *r, int runs)
{
    double start = seconds(), spent;
    int good = wait_for(r);
    if (!together(r, good, &start)) return -1;
#ifdef PG_USE_MPI
    start = seconds();            /* hosts have clocks of their own */
#else
    start += 2e-4;                /* threads wake one after the other */
    while (seconds() < start) continue;
#endif
    for (int i = 0; i < runs && good; i++) good = library_good(r, run(r));
    good = wait_for(r) && good;
    spent = seconds() - start;
    return together(r, good, &spent) ? spent : -1;
}

static void statistics(double *sample, const problem *p, timing *t)
{
    const double together = p->iterations > 1 ? p->iterations : 1;
    qsort(sample, (size_t)t->repeats, sizeof sample[0], ascending);
    t->min = sample[0] / together;
    t->max = sample[t->repeats - 1] / together;
    t->median = 0.5 * (sample[(t->repeats - 1) / 2] + sample[t->repeats / 2]) / together;
}

/* All ranks have the same times, and so decide alike. */
static int measure(rank *r, timing *t)
{
    const double fill = here.cuda ? repeat_cuda : repeat_cpu, row_seconds = options.quick ? 0.3 : 1.0;
    double sample[MOST_REPEATS], once = 0, spent = 0;
    for (int warm = 0; warm < 2 && once < 0.1; warm++) {   /* the first run may load code and touch pages */
        once = time_runs(r, 1);
        if (once < 0) return 0;
    }
    t->runs = once * 500 < fill ? 500 : once > fill ? 1 : (int)(fill / once);
    for (t->repeats = 0; t->repeats < MOST_REPEATS; t->repeats++) {
        if (t->repeats >= LEAST_REPEATS && spent > row_seconds) break;
        const double all = time_runs(r, t->runs);
        if (all < 0) return 0;
        spent += all;
        sample[t->repeats] = all / t->runs;
    }
    statistics(sample, r->row->p, t);
    return 1;
}

/* What the solves came to; a cycle has no report. */
static int look(rank *r)
{
    pg_report report;
    const problem *p = r->row->p;
    if (p->rtol == 0) return 1;
    if (!library_good(r, pg_get_report(r->solver, &report))) return 0;
    if (r->number != 0) return 1;
    if (p->rtol > 0) r->row->iterations = report.iterations;
    if (report.outcome != (p->rtol > 0 ? PG_CONVERGED : PG_COMPLETED))
        snprintf(r->row->remark, sizeof r->row->remark, "%s", pg_outcome_string(report.outcome));
    return 1;
}

static void *work(void *argument)
{
    rank *r = argument;
    timing t = {0};
    int good = done(r, open_rank(r));
    describe(r);
    good = good && done(r, take_arrays(r)) && done(r, create(r)) && measure(r, &t) && done(r, look(r));
    if (good) together(r, 1, &r->bytes);
    if (r->number == 0) {
        if (good) r->row->time = t;
        if (good) r->row->bytes = r->bytes;
        else snprintf(r->row->remark, sizeof r->row->remark, "%s", r->why);
    }
    close_rank(r);
    done(r, 1);                   /* the next row finds the memory of all free */
    return NULL;
}

static void find_gain(row *w)
{
    for (const row *one = rows; one < w; one++)
        if (one->p == w->p && one->ranks == 1 && one->time.repeats && w->time.repeats)
            w->gain = one->time.median / w->time.median;
}

static void print_row(const row *w)
{
    const timing *t = &w->time;
    char name[16];
    snprintf(name, sizeof name, "%d^%d", side_of(w->p), w->p->dim);
    printf("%-8s%-19s%-8s%-5s%5d", scaling_name(w->p), w->p->name, name, precision_name(w->p), w->ranks);
    if (t->repeats) {
        printf("%11.4g%11.4g%11.4g%9.2f", 1e3 * t->median, 1e3 * t->min, 1e3 * t->max, 1e-9 * w->bytes);
        if (w->gain > 0 && w->p->scaling == WEAK) printf("%8.1f %%", 100 * w->gain);
        if (w->gain > 0 && w->p->scaling != WEAK) printf("%8.2f x", w->gain);
        if (w->iterations) printf("  %d iterations", w->iterations);
    }
    if (w->remark[0]) printf("  %s", w->remark);
    putchar('\n');
    fflush(stdout);
}

static int wanted(const problem *p)
{
    char label[96];
    if (p->scaling == LARGE && !options.large) return 0;
    snprintf(label, sizeof label, "%s %s %dD %d^%d %s", scaling_name(p), p->name, p->dim, side_of(p), p->dim,
             precision_name(p));
    return has_words(label, options.rows);
}

static void do_problem(const problem *p)
{
    for (int q = 0; q < options.counts; q++) {
        if (row_count == MAX_ROWS) fail("too many rows", "raise MAX_ROWS");
        row *w = &rows[row_count++];
        w->p = p;
        w->ranks = options.count[q];
        run_ranks(w);
        find_gain(w);
        if (own_number == 0) print_row(w);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
   The JSON file, the options */

static void json_row(FILE *out, const row *w)
{
    const timing *t = &w->time;
    int n[3];
    extent_of(w->p, w->ranks, n);
    fprintf(out, "    {\"scaling\": \"%s\", \"row\": \"%s\", \"n\": [%d, %d, %d], \"precision\": \"%s\", \"ranks\": %d",
            scaling_name(w->p), w->p->name, n[0], n[1], n[2], precision_name(w->p), w->ranks);
    if (t->repeats) {
        fprintf(out, ", \"milliseconds\": {\"min\": %.6g, \"median\": %.6g, \"max\": %.6g}", 1e3 * t->min,
                1e3 * t->median, 1e3 * t->max);
        fprintf(out, ", \"repeats\": %d, \"runs_per_repeat\": %d, \"bytes_a_rank\": %.0f", t->repeats, t->runs,
                w->bytes);
        if (w->iterations) fprintf(out, ", \"iterations\": %d", w->iterations);
        if (w->gain > 0) fprintf(out, ", \"%s\": %.4g", w->p->scaling == WEAK ? "efficiency" : "speed_up", w->gain);
    }
    if (w->remark[0]) {
        fprintf(out, ", ");
        json_string(out, "remark", w->remark);
    }
    fprintf(out, "}");
}

static void write_json(void)
{
    char path[512], date[16], suffix[16];
    const int most = options.count[options.counts - 1];
    today(date);
    snprintf(suffix, sizeof suffix, "%s-x%d", strcmp(TRANSPORT, "threads") ? "-" TRANSPORT : "", most);
    result_path(options.out, here.name, suffix, date, path, sizeof path);
    FILE *out = fopen(path, "w");
    if (!out) fail("cannot write", path);
    fprintf(out, "{\n  ");
    json_string(out, "device", here.name);
    fprintf(out, ",\n  \"backend\": \"%s\",\n  \"ranks\": %d,\n  \"transport\": \"%s\",\n",
            here.cuda ? "cuda" : "cpu", most, TRANSPORT);
    if (!here.cuda) fprintf(out, "  \"threads_a_rank\": %d,\n", here.threads);
    fprintf(out, "  \"date\": \"%s\",\n  ", date);
    json_string(out, "version", pg_version());
    fprintf(out, ",\n  \"rows\": [\n");
    for (int i = 0; i < row_count; i++) {
        json_row(out, &rows[i]);
        fprintf(out, i + 1 < row_count ? ",\n" : "\n");
    }
    fprintf(out, "  ]\n}\n");
    if (fclose(out) != 0) fail("cannot write", path);
    printf("\nwritten: %s\n", path);
}

static void usage(void)
{
    fprintf(stderr,
            "pg_ranks [--ranks 1,2,4] [--size N] [--threads T] [--quick] [--large] [--backend auto|cpu|cuda]\n"
            "         [--rows \"words\"] [--out FILE.json|FOLDER]\n"
            "  --ranks    the numbers of ranks, in rising order (default 1, 2, 4 and so on up to the number of GPUs,\n"
            "             on the CPU 1,2; with MPI up to the number of processes)\n"
            "  --size N   cubes of (N/2)^3, N^3 and (2N)^3 unknowns, squares of (16N)^2 (default 512, on a CPU 128)\n"
            "  --threads  OpenMP threads of each rank on the CPU (default: the cores, shared by the most ranks)\n"
            "  --quick    sizes of 128, on a CPU of 64, and fewer repeats\n"
            "  --large    also FMG passes of (3N)^3, (4N)^3 and (5N)^3 unknowns\n"
            "  --rows     only rows whose name has all these words, as in \"strong V(2,1) 3D 512^3 f64\"\n"
            "  --out      a file, or a folder (default bench/results/ranks); with --quick, --size, --rows or --ranks\n"
            "             nothing is written unless --out is given\n");
    exit(2);
}

static void read_ranks(const char *text)
{
    char *end;
    for (options.counts = 0; options.counts < MOST_RANKS; text = end + 1) {
        const long ranks = strtol(text, &end, 10);
        const int before = options.counts ? options.count[options.counts - 1] : 0;
        if (end == text || ranks <= before || ranks > MOST_RANKS) usage();
        options.count[options.counts++] = (int)ranks;
        if (!*end) return;
        if (*end != ',') usage();
    }
    usage();
}

static int read_value(const char *name, const char *value)
{
    if (!strcmp(name, "--ranks")) read_ranks(value);
    else if (!strcmp(name, "--size")) options.size = atoi(value);
    else if (!strcmp(name, "--threads")) options.threads = atoi(value);
    else if (!strcmp(name, "--rows")) options.rows = value;
    else if (!strcmp(name, "--out")) options.out = value;
    else if (strcmp(name, "--backend") != 0) return 0;
    else if (!strcmp(value, "cpu")) options.backend = PG_CPU;
    else if (!strcmp(value, "cuda")) options.backend = PG_CUDA;
    else return !strcmp(value, "auto");
    return 1;
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick")) options.quick = 1;
        else if (!strcmp(argv[i], "--large")) options.large = 1;
        else if (i + 1 == argc || !read_value(argv[i], argv[i + 1])) usage();
        else i++;
    }
    if (options.size < 0 || options.size % 2 || options.size > 1024 || options.threads < 0) usage();
    if (!options.out && !options.quick && !options.size && !options.rows && !options.counts)
        options.out = "bench/results/ranks";
}

/* Returns the number of GPUs. */
static int open_cuda(void)
{
    int count = 0;
#ifdef PG_BENCH_CUDA
    struct cudaDeviceProp properties;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 0;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return 0;
    snprintf(here.name, sizeof here.name, "%.100s", properties.name);
    here.cuda = 1;
#endif
    return count;
}

static void choose_ranks(int gpus)
{
    int most = world_ranks ? world_ranks : here.cuda ? gpus : 2;
    if (most > MOST_RANKS) most = MOST_RANKS;
    for (int ranks = 1; !options.counts || options.count[options.counts - 1] < most; ranks *= 2)
        options.count[options.counts++] = ranks < most ? ranks : most;
    if (world_ranks && options.count[options.counts - 1] > world_ranks) fail("--ranks", "more than mpirun has begun");
}

static void open_cpu(void)
{
    if (!here.cuda) cpu_name(here.name, sizeof here.name);
    here.threads = 1;
#ifdef _OPENMP
    here.threads = omp_get_num_procs() / options.count[options.counts - 1];
    if (here.threads < 1) here.threads = 1;
#endif
    if (options.threads) here.threads = options.threads;
}

int main(int argc, char **argv)
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);    /* loading a kernel can wait for one that waits for another rank */
    begin_ranks(&argc, &argv);
    read_options(argc, argv);
    const int gpus = options.backend == PG_CPU ? 0 : open_cuda();
    if (!here.cuda && options.backend == PG_CUDA) fail("--backend cuda", "no CUDA device, or built without CUDA");
    if (!options.counts) choose_ranks(gpus);
    open_cpu();
    if (!options.size) options.size = here.cuda ? (options.quick ? 128 : 512) : options.quick ? 64 : 128;
    if (own_number == 0) {
        printf("%s", here.name);
        if (!here.cuda) printf(", %d thread%s a rank", here.threads, here.threads == 1 ? "" : "s");
        printf("\n%s\n\n%-8s%-19s%-8s%-5s%5s%11s%11s%11s%9s%10s\n", pg_version(), "scaling", "row", "size", "", "ranks",
               "median ms", "min", "max", "GB/rank", "speed-up");
    }
    for (int q = 0; q < PROBLEMS; q++)
        if (wanted(&problems[q])) do_problem(&problems[q]);
    if (!row_count) fail("--rows", "no row has all these words");
    if (options.out && own_number == 0) write_json();
    end_ranks();
    return 0;
}
