// Several ranks, on the CPU and with a GPU each. Ranks are threads here, whose transport is a mailbox. Sweeps and whole
// cycles must have the bits of one rank on the CPU; so must all methods where no sum over the ranks decides, the others
// agree to round-off.
// Linked with test_kernels.cu, in whose library small levels are split too.
#ifdef PG_TEST_CUDA
#include <cuda_runtime.h>
#ifdef PG_USE_NCCL
#include <nccl.h>
extern int test_may_join;    // 0: NCCL carries all, as where GPUs do not reach each other
#endif
#endif
#include "ranks.h"
#ifdef PGI_SIMT
#include "simt.h"
#endif

#include <pthread.h>
#include <time.h>

// ---- a transport between threads ----

struct letter {
    const void *data;
    size_t bytes;
};

struct world {
    pthread_mutex_t mutex;
    pthread_cond_t changed[MOST_RANKS];    // what each rank waits for: nobody else is woken
    int ranks, arrived, generation, aborted;
    double time_limit;
    const void *own[MOST_RANKS];
    letter box[MOST_RANKS][MOST_RANKS][2];    // from, to; two on their way at most
    long sent[MOST_RANKS][MOST_RANKS], taken[MOST_RANKS][MOST_RANKS];
    long calls[MOST_RANKS], fails_at;         // the call in which a rank dies; 0: none
    int dies;
};

struct member {
    world *w;
    int rank;
};

// Waits for a condition; 0: it holds.
template <class Condition> static int wait_until(world *w, int rank, Condition holds)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    const double limit = (double)end.tv_nsec * 1e-9 + w->time_limit;
    end.tv_sec += (time_t)limit;
    end.tv_nsec = (long)((limit - (double)(time_t)limit) * 1e9);
    while (!holds() && !w->aborted)
        if (pthread_cond_timedwait(&w->changed[rank], &w->mutex, &end)) return 11;
    return w->aborted ? 12 : 0;
}

static void wake_all(world *w)
{
    for (int r = 0; r < w->ranks; r++) pthread_cond_signal(&w->changed[r]);
}

static int dies_now(member *m)
{
    world *const w = m->w;
    return w->fails_at && m->rank == w->dies && ++w->calls[m->rank] >= w->fails_at;
}

static int gather_of_threads(void *user, const void *own, size_t bytes, void *all)
{
    member *const m = (member *)user;
    world *const w = m->w;
    if (dies_now(m)) return 13;
    pthread_mutex_lock(&w->mutex);
    int status = 0;
    for (int phase = 0; phase < 2 && !status; phase++) {    // all have shown theirs; all have read
        const int generation = w->generation;
        if (phase == 0) w->own[m->rank] = own;
        if (++w->arrived == w->ranks) w->arrived = 0, w->generation++, wake_all(w);
        status = wait_until(w, m->rank, [&] { return w->generation != generation; });
        if (phase == 0 && !status)
            for (int r = 0; r < w->ranks; r++) memcpy((char *)all + (size_t)r * bytes, w->own[r], bytes);
    }
    pthread_mutex_unlock(&w->mutex);
    return status;
}

static int exchange_of_threads(void *user, const pg_rank_message *message, int count, pg_stream)
{
    member *const m = (member *)user;
    world *const w = m->w;
    const int me = m->rank;
    if (dies_now(m)) return 13;
    pthread_mutex_lock(&w->mutex);
    int status = 0;
    for (int q = 0; q < count; q++) {
        const int to = message[q].peer;
        w->box[me][to][w->sent[me][to]++ % 2] = {message[q].send, message[q].send_bytes};
        pthread_cond_signal(&w->changed[to]);
    }
    for (int q = 0; q < count && !status; q++) {
        const int from = message[q].peer;
        status = wait_until(w, me, [&] { return w->sent[from][me] > w->taken[from][me]; });
        if (status) break;
        const letter *const l = &w->box[from][me][w->taken[from][me]++ % 2];
        if (l->bytes != message[q].receive_bytes) status = 14;
        if (!status) memcpy(message[q].receive, l->data, l->bytes);
        pthread_cond_signal(&w->changed[from]);
    }
    for (int q = 0; q < count && !status; q++) {
        const int to = message[q].peer;
        status = wait_until(w, me, [&] { return w->taken[me][to] == w->sent[me][to]; });
    }
    pthread_mutex_unlock(&w->mutex);
    return status;
}

static void abort_threads(void *user)
{
    world *const w = ((member *)user)->w;
    pthread_mutex_lock(&w->mutex);
    w->aborted = 1;
    wake_all(w);
    pthread_mutex_unlock(&w->mutex);
}

static void world_create(world *w, int ranks, double time_limit)
{
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->mutex, NULL);
    for (pthread_cond_t &changed : w->changed) pthread_cond_init(&changed, NULL);
    w->ranks = ranks;
    w->time_limit = time_limit;
}

static pg_transport transport_of(member *m)
{
    pg_transport t = {};
    t.rank = m->rank, t.ranks = m->w->ranks, t.user = m;
    t.gather = gather_of_threads, t.exchange = exchange_of_threads, t.abort = abort_threads;
    return t;
}

// Runs body(rank, comm) in a thread for each rank.
template <class Body> static void as_threads(world *w, Body body)
{
    struct start {
        member m;
        Body *body;
        pthread_t thread;
    } all[MOST_RANKS];
    for (int r = 0; r < w->ranks; r++) {
        all[r].m = {w, r};
        all[r].body = &body;
        pthread_create(&all[r].thread, NULL,
                       [](void *argument) -> void * {
                           start *const s = (start *)argument;
                           const pg_transport t = transport_of(&s->m);
                           const pg_comm comm = {PG_COMM_OWN, &t};
                           (*s->body)(s->m.rank, comm);
                           return NULL;
                       },
                       &all[r]);
    }
    for (int r = 0; r < w->ranks; r++) pthread_join(all[r].thread, NULL);
}

#ifdef PG_USE_NCCL
// The same with a communicator of NCCL for each, of its GPU.
template <class Body> static void as_threads_with_nccl(world *w, Body body)
{
    ncclUniqueId id;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    as_threads(w, [&](int rank, pg_comm) {
        ncclComm_t given = NULL;
        if (cudaSetDevice(rank) != cudaSuccess || ncclCommInitRank(&given, w->ranks, id, rank) != ncclSuccess) abort();
        const pg_comm comm = {PG_COMM_NCCL, given};
        body(rank, comm);
        ncclCommDestroy(given);
    });
}
#else
template <class Body> static void as_threads_with_nccl(world *, Body) { skip(); }
#endif

static void compare(ranks_case *c, int ranks, uint64_t seed, int by_nccl = 0)
{
    whole_box w;
    whole_box_create(c, &w, seed);
    double *const result = (double *)allocate((size_t)w.points * sizeof(double)), measures[MOST_RANKS][6] = {};
    pg_report report[MOST_RANKS];
    memset(report, 0, sizeof report);
    world all;
    world_create(&all, ranks, c->gpus ? 300 : 20);    // on the harness they take turns
    const auto part = [&](int rank, pg_comm comm) {
        do_part(c, &w, comm, rank, ranks, result, &report[rank], measures[rank]);
    };
    if (by_nccl)
        as_threads_with_nccl(&all, part);
    else
        as_threads(&all, part);
    compare_with_whole(c, &w, result, ranks);
    compare_measures(&w, measures[0], ranks);
    for (int r = 1; r < ranks; r++) {
        assert_memory_equal(measures[r], measures[0], sizeof measures[0]);
        assert_memory_equal(report[r].history, report[0].history, sizeof report[0].history);
        assert_int_equal(report[r].outcome, report[0].outcome);
    }
    assert_int_equal(report[0].outcome, w.report.outcome);
    if (c->tolerance == 0 || c->stop.rtol == PG_NONE) assert_int_equal(report[0].iterations, w.report.iterations);
    free(result);
    whole_box_free(&w);
}

// Every suite of ranks.h, each box with every second number of ranks in turn.
static void every_box_has_the_result_of_one_rank(void **state)
{
    static const int numbers[] = {1, 2, 3, 4, 8};
    every_box((const suite *)*state, [&](ranks_case *c, int turn, int e) {
        for (int r = 0; r < 5; r++)
            if ((e + turn + r) % full_or_small(2, 5) == 0) compare(c, numbers[r], (uint64_t)turn);
    });
}

static ranks_case a_case(int dim, unsigned flags)
{
    ranks_case c;
    set_case(&c, dim, 12, 11, 40, "DD", "DN", PG_CELL);
    c.desc.backend = PG_CPU;
    set_choice(&c.desc, flags);
    return c;
}

#ifdef PG_TEST_CUDA
// The same by GPUs, as far as they can, against one of them. Most sweeps, products and residuals have its bits; cycles agree
// to round-off, for some parts take other kernels to restrict a residual. Among obstacles all have its bits.
static int devices_of_ranks()
{
#ifdef PGI_SIMT
    setenv("SIMT_DEVICES", "4", 1);
#endif
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
    return devices < 4 ? devices : 4;
}

// Nodes and cells in 2D and in 3D, even and uneven parts, periodic axes of the ranks and others, and all values of turn
// modulo 2, 3 and 4, with which methods take turns; fewer with NCCL.
static int is_of_small_run(int turn, int by_nccl)
{
    return turn == 21 || turn == 40 || (!by_nccl && (turn == 23 || turn == 42));
}

// Red-black sweeps have the bits of one GPU where every rank has 4 planes or more, as even parts have.
static double tolerance_on_gpus(const ranks_case *c)
{
    if (c->media) return c->tolerance;
    if (c->work == CYCLE || c->work == SOLVE) return fmax(c->tolerance, 1e-13);
    return c->work == SWEEP && (c->uneven || c->desc.flags & PG_JACOBI) ? fmax(c->tolerance, 1e-14) : c->tolerance;
}

static void compare_every_box_on_gpus(const suite *of, int by_nccl)
{
    const int devices = devices_of_ranks();
    int number = 0;
    if (devices < 2) skip();
    every_box(of, [&](ranks_case *c, int turn, int) {
        c->gpus = 1, c->on_device = number % 4 > 0;
        c->tolerance = tolerance_on_gpus(c);
        if (!small_run() || is_of_small_run(turn, by_nccl))
            compare(c, 2 + number++ % (devices - 1), (uint64_t)turn, by_nccl);
    });
}
static void every_box_on_gpus_agrees_with_one_gpu(void **state)
{
    compare_every_box_on_gpus((const suite *)*state, 0);
}

#ifdef PGI_SIMT
// Ranks with devices that differ make the same plans, for those of the least of them: else one would exchange planes for
// a pass that another one cannot make.
static void unlike_gpus_make_the_same_plans_on_gpus(void **)
{
    static const int which[] = {0, 2, 5, 11};    // sweeps, cycles, stretched boxes, direct solves
    if (devices_of_ranks() < 2) skip();
    for (int q : which)
        every_box(&suites[q], [&](ranks_case *c, int turn, int) {
            c->gpus = 1, c->on_device = turn % 2;
            c->tolerance = fmax(tolerance_on_gpus(c), 1e-13);
            if (turn != 21 && turn != 40) return;
            setenv("SIMT_UNLIKE", "1", 1);
            compare(c, 2 + turn % 2, (uint64_t)turn);
            unsetenv("SIMT_UNLIKE");
        });
}
#endif

#ifdef PG_USE_NCCL
// By NCCL alone; and with peers, which NCCL brings together: then all is as without it, and one suite does in a small run.
static void every_box_by_nccl_agrees_with_one_gpu(void **state)
{
    const int ways = small_run() && *state != &suites[1] ? 1 : 2;
    for (test_may_join = 0; test_may_join < ways; test_may_join++) compare_every_box_on_gpus((const suite *)*state, 1);
    test_may_join = 1;
}

// What NCCL cannot be asked for.
static void nccl_is_refused_by_name_on_gpus(void **)
{
    if (devices_of_ranks() < 2) skip();
    world w;
    world_create(&w, 2, 60);
    char text[2][2][512];
    pg_status status[2][2];
    as_threads_with_nccl(&w, [&](int rank, pg_comm comm) {
        for (int q = 0; q < 2; q++) {
            pg_desc d = a_case(3, PG_VCYCLE).desc;
            d.comm = comm;
            d.backend = q == 0 ? PG_CPU : PG_CUDA;
            d.device = PG_DEVICE(q == 1 ? 1 - rank : rank);
            pg_solver *s = NULL;
            status[rank][q] = pg_create(&d, &s);
            snprintf(text[rank][q], sizeof text[rank][q], "%s", pg_last_error(NULL));
            pg_destroy(s);
        }
    });
    for (int r = 0; r < 2; r++) {
        assert_int_equal(status[r][0], PG_ERROR_UNSUPPORTED);
        assert_non_null(strstr(text[r][0], "PG_COMM_NCCL goes with the CUDA back end"));
        assert_int_equal(status[r][1], PG_ERROR_ARGUMENT);
        assert_non_null(strstr(text[r][1], r == 0 ? "give PG_DEVICE(0)" : "give PG_DEVICE(1)"));
    }
}
#endif
#endif

// The suites are of f64; grids of f32 have other sizes in bytes. Two iterations of a method by ranks, each of which has
// its packed part, against those of one; tolerance 0: the same bits. bad: a problem of a batch that has no finite f.
static void compare_floats(const ranks_case *c, int ranks, double tolerance, int bad = -1)
{
    const int axis = ranks_axis(&c->desc), *const n = c->desc.n, batch = c->desc.batch ? c->desc.batch : 1;
    const size_t points = (size_t)n[0] * (size_t)n[1] * (size_t)n[2], plane = points / (size_t)n[axis],
                 all = points * (size_t)batch;
    float *const whole = (float *)allocate(3 * all * sizeof(float)), *const f = whole + all, *const parts = f + all;
    rng r = {points + c->desc.flags};
    memset(whole, 0, 3 * all * sizeof(float));
    for (size_t p = 0; p < all; p++) f[p] = (float)rng_uniform(&r, -1, 1);
    if (bad >= 0) f[points * (size_t)bad + points / 3] = NAN;
    pg_desc d = c->desc;
    set_choice(&d, choice_of(&d) | PG_F32);
    pg_solver *s = create(&d);
    pg_report report, of_rank[MOST_RANKS];
    OK(pg_solve(s, whole, f, &c->stop), s);
    OK(pg_get_report(s, &report), s);
    pg_destroy(s);
    world w;
    world_create(&w, ranks, c->gpus ? 300 : 20);
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc own = d;
        int lo[3], hi[3];
        pg_solver *of = NULL;
        own.comm = comm;
        if (c->gpus) own.device = PG_DEVICE(rank), own.time_limit = 300;
        choose_part(c, &own, rank, ranks);
        RANK_OK(pg_query_part(&own, lo, hi), NULL);
        own.stride_u[2] = own.stride_f[2] = (int64_t)points;    // a rank's planes of the whole arrays
        const size_t at = plane * (size_t)lo[axis];
        const size_t bytes = plane * (size_t)(hi[axis] - lo[axis]) * sizeof(float);    // without a batch
        float *u = parts + at, *rhs = f + at;
        if (d.cells.mask) own.cells.mask = d.cells.mask + at;
        if (d.cells.beta_cell) own.cells.beta_cell = (const float *)d.cells.beta_cell + at;
        if (c->on_device) {
            own.memory = PG_MEM_DEVICE;
            u = (float *)to_device(rank, u, bytes), rhs = (float *)to_device(rank, rhs, bytes);
            if (d.cells.mask) own.cells.mask = (unsigned char *)to_device(rank, own.cells.mask, bytes / sizeof(float));
            if (d.cells.beta_cell) own.cells.beta_cell = to_device(rank, own.cells.beta_cell, bytes);
        }
        RANK_OK(pg_create(&own, &of), NULL);
        RANK_OK(pg_solve(of, u, rhs, &c->stop), of);
        RANK_OK(pg_get_report(of, &of_rank[rank]), of);
        pg_destroy(of);
        if (!c->on_device) return;
        from_device(u, parts + at, bytes), from_device(rhs, NULL, 0);
        if (d.cells.mask) from_device((void *)own.cells.mask, NULL, 0);
        if (d.cells.beta_cell) from_device((void *)own.cells.beta_cell, NULL, 0);
    });
    for (int q = 0; q < ranks; q++) {
        assert_int_equal(of_rank[q].outcome, report.outcome);
        assert_int_equal(of_rank[q].problem, bad >= 0 ? bad : of_rank[0].problem);
    }
    double largest = 0;
    for (size_t p = 0; p < all; p++) largest = fmax(largest, fabs((double)whole[p]));
    for (size_t p = 0; p < all; p++)
        if (!(fabs((double)parts[p] - (double)whole[p]) <= tolerance * largest))
            fail_msg("%d ranks, %s: value %d is %.9g instead of %.9g", ranks, describe(&d), (int)p, (double)parts[p],
                     (double)whole[p]);
    free(whole);
}

static void compare_in_f32(int ranks, pg_backend backend, int on_device = 0)
{
    static const unsigned methods[] = {PG_VCYCLE, PG_FMG, PG_RBGS, PG_DIRECT};
    for (int m = 0; m < 4; m++) {
        ranks_case c;
        set_case(&c, 3, 11, 12, 37, m % 2 ? "PP" : "DN", "DD", m % 2 ? PG_CELL : PG_NODE);
        c.gpus = backend == PG_CUDA, c.on_device = on_device;
        c.desc.backend = backend, set_choice(&c.desc, methods[m]);
        c.stop.max_iter = 2;
        compare_floats(&c, ranks, m < 3 && backend == PG_CPU ? 0 : 1e-5);
    }
}
static void f32_cycles_have_the_bits_of_one_rank(void **) { compare_in_f32(3, PG_CPU); }
#ifdef PG_TEST_CUDA
static void f32_cycles_agree_with_one_gpu_on_gpus(void **)
{
    const int devices = devices_of_ranks();
    if (devices < 2) skip();
    for (int ranks = 2; ranks <= devices; ranks++)
        for (int on_device = 0; on_device < 2; on_device++)
            if (!small_run() || on_device == ranks % 2) compare_in_f32(ranks, PG_CUDA, on_device);
}
#endif

#ifdef PG_TEST_CUDA
// ---- PG_DIRECT on GPUs ----

// What boxes of the suites are too small for, or alike in: transforms by kernels of their own, with padded rows between
// them and without; lines too long for registers; a single column, and fewer than ranks; boxes that all ranks have
// whole, for they are small or x is stretched (2). Then alpha is set anew, to 0 too, which makes some of them singular.
struct direct_box {
    int dim, n[3];
    const char *ends[3];
    pg_centring centring;
    unsigned flags;
    int stretched, most_ranks;
};
static const direct_box direct_boxes[] = {
    {3, {32, 16, 40}, {"PP", "NN", "NN"}, PG_CELL, 0, 0, 4},       {3, {31, 17, 24}, {"DD", "NN", "DN"}, PG_NODE, 0, 0, 4},
    {3, {63, 31, 21}, {"DD", "DD", "PP"}, PG_NODE, 0, 1, 4},       {3, {33, 32, 19}, {"NN", "PP", "NN"}, PG_NODE, PG_F32, 1, 4},
    {3, {17, 64, 22}, {"PP", "DN", "RD"}, PG_CELL, PG_MIXED, 0, 4}, {2, {64, 150, 1}, {"DD", "NN", "NN"}, PG_CELL, 0, 0, 3},
    {2, {127, 90, 1}, {"DD", "ND", "NN"}, PG_NODE, PG_F32, 1, 3},  {2, {5, 4300, 1}, {"NN", "NN", "NN"}, PG_CELL, 0, 1, 2},
    {2, {4, 6500, 1}, {"DD", "PP", "NN"}, PG_NODE, PG_F32, 0, 3},  {2, {3, 4200, 1}, {"PP", "PP", "NN"}, PG_CELL, PG_MIXED, 0, 2},
    {2, {1, 700, 1}, {"NN", "DN", "NN"}, PG_CELL, 0, 1, 4},        {3, {1, 1, 500}, {"PP", "NN", "PP"}, PG_CELL, 0, 0, 4},
    {3, {1, 3, 333}, {"DD", "NN", "NN"}, PG_NODE, PG_F32, 1, 4},   {2, {13, 21, 1}, {"NN", "NN", "NN"}, PG_CELL, 0, 0, 4},
    {3, {6, 5, 9}, {"NN", "PP", "NN"}, PG_NODE, 0, 0, 4},          {3, {40, 35, 30}, {"NN", "DN", "NN"}, PG_CELL, 0, 2, 2},
};
static const double direct_alphas[] = {2.5, 0, 1e-3};
enum { DIRECT_ALPHAS = 3 };

static void stretch_axis(pg_desc *d, int a)
{
    enum { MOST = 5000 };
    static double coord[MOST], weight[MOST], conductance[MOST];
    const int n = d->n[a];
    rng r = {(uint64_t)n};
    for (int q = 0; q <= n + 1; q++) {
        coord[q] = q > 0 ? coord[q - 1] + 0.1 * (1.5 + sin(6.0 * q / n)) * rng_uniform(&r, 0.95, 1.05) : 0;
        weight[q] = rng_uniform(&r, 0.8, 1.2), conductance[q] = rng_uniform(&r, 0.8, 1.2);
    }
    if (d->face[2 * a].kind == PG_PERIODIC) conductance[n] = conductance[0];
    d->coord[a] = coord, d->weight[a] = weight, d->conductance[a] = conductance;
    d->h[a] = 0;
}

template <class T> static void solve_for_alphas(pg_desc d, pg_comm comm, const T *f, T *const u[DIRECT_ALPHAS])
{
    pg_solver *s = NULL;
    pg_stop stop = {};
    int lo[3], hi[3];
    stop.rtol = PG_NONE, stop.max_iter = d.flags & PG_MIXED ? 3 : 1;
    d.comm = comm;
    RANK_OK(pg_query_part(&d, lo, hi), NULL);
    RANK_OK(pg_create(&d, &s), NULL);
    const int axis = ranks_axis(&d);
    const int64_t first = (int64_t)d.n[0] * (axis == 2 ? d.n[1] : 1) * lo[axis];
    for (int q = 0; q < DIRECT_ALPHAS; q++) {
        RANK_OK(pg_set_alpha(s, direct_alphas[q]), s);
        RANK_OK(pg_solve(s, u[q] + first, f + first, &stop), s);
    }
    pg_destroy(s);
}

template <class T> static void compare_direct_box(const ranks_case &c, int ranks)
{
    const int64_t points = (int64_t)c.desc.n[0] * c.desc.n[1] * c.desc.n[2];
    T *const all = (T *)allocate((size_t)(7 * points) * sizeof(T)), *const f = all + 6 * points;
    T *const one[] = {all, all + points, all + 2 * points},
             *const several[] = {all + 3 * points, all + 4 * points, all + 5 * points};
    rng r = {(uint64_t)points};
    for (int64_t p = 0; p < points; p++) f[p] = (T)rng_uniform(&r, -1, 1);
    const pg_comm none = {};
    solve_for_alphas(c.desc, none, f, one);
    world w;
    world_create(&w, ranks, 300);
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc d = c.desc;
        d.device = PG_DEVICE(rank), d.time_limit = 300;
        solve_for_alphas(d, comm, f, several);
    });
    for (int q = 0; q < DIRECT_ALPHAS; q++) {
        double largest = 0, error = 0;
        for (int64_t p = 0; p < points; p++) {
            const double difference = fabs((double)one[q][p] - (double)several[q][p]);
            largest = fmax(largest, fabs((double)one[q][p]));
            if (!(difference <= error)) error = difference;
        }
        const double tolerance = c.desc.flags & PG_F32 ? 2e-5 : 1e-10;
        if (!(error <= tolerance * largest))
            fail_msg("%d ranks, alpha %g, %s: differ by %g of %g", ranks, direct_alphas[q], describe(&c.desc), error, largest);
    }
    free(all);
}

static void direct_boxes_agree_with_one_gpu_on_gpus(void **)
{
    const int devices = devices_of_ranks();
    int number = 0;
    if (devices < 2) skip();
    for (const direct_box &of : direct_boxes) {
        ranks_case c;
        set_case(&c, of.dim, of.n[0], of.n[1], of.dim == 3 ? of.n[2] : of.n[1], "NN", "NN", of.centring);
        for (int a = 0; a < of.dim; a++) {
            pg_desc *const d = &c.desc;
            set_ends(d, a, of.ends[a]);
            for (int e = 0; e < 2; e++) d->face[2 * a + e].value = d->face[2 * a].kind == PG_PERIODIC ? 0 : 0.5 - e + a;
            d->h[a] = 0.1;
        }
        if (of.stretched) stretch_axis(&c.desc, of.stretched == 2 ? 0 : of.dim - 1);
        c.desc.backend = PG_CUDA, set_choice(&c.desc, PG_DIRECT | of.flags);
        const int most = of.most_ranks < devices ? of.most_ranks : devices;
        for (int ranks = 2; ranks <= most; ranks++) {
            if (small_run() && ranks != 2 + number % (most - 1)) continue;
            if (of.flags & PG_F32)
                compare_direct_box<float>(c, ranks);
            else
                compare_direct_box<double>(c, ranks);
        }
        number++;
    }
}

// An array on the GPU that is current, and back.
static void *to_gpu(const void *host, size_t bytes)
{
    void *p = NULL;
    if (cudaMalloc(&p, bytes) != cudaSuccess || cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice) != cudaSuccess) abort();
    return p;
}
static void from_gpu(void *host, void *p, size_t bytes)
{
    if (cudaMemcpy(host, p, bytes, cudaMemcpyDeviceToHost) != cudaSuccess || cudaFree(p) != cudaSuccess) abort();
}

// Slopes of a rank's part [lo, hi) of packed arrays on its GPU, or of all: at faces, then at unknowns, along each axis.
template <class T>
static void slopes_on_gpu(pg_solver *s, const pg_desc *d, const T *u, const int lo[3], const int hi[3], T *slope[6])
{
    const int axis = ranks_axis(d), batch = d->batch ? d->batch : 1;
    int64_t plane = 1, own = 1;
    for (int a = 0; a < 3; a++) plane *= a == axis ? 1 : d->n[a], own *= hi[a] - lo[a];
    T *const packed = (T *)allocate((size_t)(own * batch) * sizeof(T));
    for (int q = 0; q < batch; q++)
        memcpy(packed + q * own, u + plane * (lo[axis] + (int64_t)q * d->n[axis]), (size_t)own * sizeof(T));
    void *const on_gpu = to_gpu(packed, (size_t)(own * batch) * sizeof(T)), *out[6];
    size_t bytes[6];
    for (int q = 0; q < 6; q++) {    // an allocation may wait for GPUs that wait for this one: so all come first
        const int a = q % 3, at_faces = q < 3;
        if (a >= d->dim) continue;
        const size_t length = (size_t)(hi[a] - lo[a]);
        bytes[q] = (size_t)(own * batch) / length * (length + at_faces) * sizeof(T);
        slope[q] = (T *)allocate(bytes[q]);
        out[q] = to_gpu(slope[q], bytes[q]);
    }
    for (int q = 0; q < 6; q++)
        if (slope[q]) RANK_OK(pg_gradient(s, on_gpu, q % 3, out[q], q < 3 ? PG_AT_FACES : PG_AT_UNKNOWNS), s);
    if (cudaStreamSynchronize(NULL) != cudaSuccess) abort();
    for (int q = 0; q < 6; q++)
        if (slope[q]) from_gpu(slope[q], out[q], bytes[q]);
    from_gpu(packed, on_gpu, (size_t)(own * batch) * sizeof(T));
    free(packed);
}

// The planes of slopes that ranks have are those of one GPU, bit for bit.
template <class T> static void compare_slopes_on_gpus(const ranks_case *c, int ranks)
{
    const pg_desc *const of = &c->desc;
    const int axis = ranks_axis(of), batch = of->batch ? of->batch : 1, none[3] = {0, 0, 0};
    const size_t points = (size_t)of->n[0] * (size_t)of->n[1] * (size_t)of->n[2] * (size_t)batch;
    T *const u = (T *)allocate(points * sizeof(T)), *whole[6] = {};
    rng r = {points};
    for (size_t p = 0; p < points; p++) u[p] = (T)rng_uniform(&r, -1, 1);
    pg_solver *s = create(of);
    slopes_on_gpu(s, of, u, none, of->n, whole);
    pg_destroy(s);
    world w;
    world_create(&w, ranks, 300);
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc d = *of;
        pg_solver *part = NULL;
        T *own[6] = {};
        int lo[3], hi[3];
        d.comm = comm, d.device = PG_DEVICE(rank), d.time_limit = 300;
        choose_part(c, &d, rank, ranks);
        if (cudaSetDevice(rank) != cudaSuccess) abort();
        RANK_OK(pg_query_part(&d, lo, hi), NULL);
        RANK_OK(pg_create(&d, &part), NULL);
        slopes_on_gpu(part, &d, u, lo, hi, own);
        pg_destroy(part);
        for (int q = 0; q < 6; q++) {
            if (!own[q]) continue;
            const int a = q % 3, more = q < 3;
            size_t plane = 1;
            for (int e = 0; e < 3; e++) plane *= e == axis ? 1 : (size_t)(d.n[e] + (more && e == a));
            const size_t extra = more && a == axis, all = plane * ((size_t)d.n[axis] + extra),
                         planes = (size_t)(hi[axis] - lo[axis]) + extra;
            for (int p = 0; p < batch; p++)
                if (memcmp(own[q] + (size_t)p * plane * planes, whole[q] + (size_t)p * all + plane * (size_t)lo[axis],
                           plane * planes * sizeof(T)))
                    fprintf(stderr, "%s: slopes %d of problem %d differ\n", describe(&d), q, p), abort();
            free(own[q]);
        }
    });
    for (int q = 0; q < 6; q++) free(whole[q]);
    free(u);
}

static void slopes_in_gpu_memory_have_the_bits_of_one_gpu_on_gpus(void **)
{
    const int devices = devices_of_ranks();
    if (devices < 2) skip();
#ifdef PGI_SIMT
    const simt_delay before = simt.delay;
    simt.delay = SIMT_EARLY;    // else streams stand still, while ranks wait for each other before the next call
#endif
    for (int turn = 0; turn < 12; turn++) {
        ranks_case c;
        set_case(&c, 2 + turn % 2, 13, 9, 21, ranks_ends[turn % 6], ranks_ends[(turn + 2) % 6],
                 turn / 2 % 2 ? PG_CELL : PG_NODE);
        c.gpus = 1, c.uneven = turn % 4;
        c.desc.backend = PG_CUDA, c.desc.memory = PG_MEM_DEVICE;
        set_choice(&c.desc, PG_RBGS | (turn % 3 ? PG_F32 : 0));
        c.desc.batch = 1 + turn / 3 % 2;
        for (pg_face &face : c.desc.face)
            if (face.kind != PG_PERIODIC) face.value = 0.5;
        const auto same = turn % 3 ? compare_slopes_on_gpus<float> : compare_slopes_on_gpus<double>;
        same(&c, 2 + turn % (devices - 1));
    }
#ifdef PGI_SIMT
    simt.delay = before;
#endif
}

// Problems take turns in the copies of u and f with ghosts; one that has no solution leaves u as it is.
static void batches_in_f32_agree_with_one_gpu_on_gpus(void **)
{
    static const unsigned methods[] = {PG_VCYCLE, PG_FMG, PG_RBGS, PG_CG, PG_VCYCLE | PG_SMOOTH_LINES, PG_JACOBI};
    const int devices = devices_of_ranks();
    if (devices < 2) skip();
    for (int m = 0; m < 12; m++) {
        ranks_case c;
        set_case(&c, 2 + m % 2, 11, 12, 37, ranks_ends[m % 6], ranks_ends[(m + 2) % 6], m / 2 % 2 ? PG_CELL : PG_NODE);
        c.gpus = 1, c.uneven = m % 4;
        c.desc.backend = PG_CUDA, set_choice(&c.desc, methods[m % 6]), c.desc.batch = 3;
        c.desc.alpha = 1;
        c.stop.rtol = m < 6 ? PG_NONE : 1e-30, c.stop.max_iter = 2;
        compare_floats(&c, 2 + m % (devices - 1), 1e-4, m < 6 ? -1 : m % 3);
    }
}

// Random obstacles and coefficients of a box, of f32.
struct float_media {
    unsigned char *mask;
    float *beta;
};
static float_media float_media_create(ranks_case *c, uint64_t seed)
{
    const size_t cells = (size_t)media_points(&c->desc, 3);
    float_media m = {(unsigned char *)allocate(cells), (float *)allocate(cells * sizeof(float))};
    rng r = {seed};
    for (size_t p = 0; p < cells; p++) {
        m.mask[p] = rng_int(&r, 0, 9) < 8 ? PG_FLUID : rng_int(&r, 0, 1) ? PG_SOLID : PG_AIR;
        m.beta[p] = (float)rng_uniform(&r, 0.1, 1);
    }
    m.mask[cells / 2] = PG_FLUID;
    if (seed % 3 != 1) c->desc.cells.mask = m.mask;
    if (seed % 3 != 0) c->desc.cells.beta_cell = m.beta;
    return m;
}

static void obstacles_in_f32_have_the_bits_of_one_gpu_on_gpus(void **)
{
    static const unsigned methods[] = {PG_FMG, PG_VCYCLE, PG_RBGS, PG_CG | PG_PRECOND_AINV, PG_CG | PG_PRECOND_DIRECT};
    const int devices = devices_of_ranks();
    if (devices < 2) skip();
    for (int m = 0; m < full_or_small(12, 6); m++) {    // 6: all methods, ends, parts and media
        ranks_case c;
        set_case(&c, 2 + m % 2, 11, 13, 37, ranks_ends[m % 6], ranks_ends[(m + 2) % 6], m % 4 < 2 ? PG_CELL : PG_NODE);
        if (m % 3 == 0) stretch(&c, 1.5);
        const float_media media = float_media_create(&c, (uint64_t)m);
        c.gpus = 1, c.uneven = m % 4, c.on_device = m % 4 > 0;
        c.desc.backend = PG_CUDA, set_choice(&c.desc, methods[m % 5]);
        c.desc.robust = m % 4 == 1 ? PG_ROBUST_OFF : PG_ROBUST_AUTO;
        c.stop.rtol = m % 2 ? PG_NONE : 1e-4, c.stop.max_iter = 5;
        compare_floats(&c, 2 + m % (devices - 1), 0);
        free(media.mask), free(media.beta);
    }
}

#define ON_GPU(call)                                                                                                  \
    do {                                                                                                              \
        const cudaError_t error_ = (call);                                                                            \
        if (error_ != cudaSuccess) fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(error_)), abort();             \
    } while (0)

// A solve and then pieces of one rank, of its planes of packed arrays of T: plainly, or captured and replayed with another
// f, and another mask. Results: u of the solve, then of a cycle or sweeps, then what A makes of it.
template <class T> struct replay {
    const pg_desc *desc;
    const pg_stop *stop;
    int captures, uneven, rank, ranks;
    T *u, *f[2], *result[2][3];    // of the whole box; results of both f
    pg_report report[2];
    const unsigned char *mask[2];    // for each f, or NULL
};

template <class T> static void copy_planes(const replay<T> *r, T *whole, T *part, const int lo[3], const int hi[3], int outward)
{
    const int axis = ranks_axis(r->desc), batch = r->desc->batch ? r->desc->batch : 1;
    size_t plane = 1;
    for (int a = 0; a < 3; a++) plane *= a == axis ? 1 : (size_t)r->desc->n[a];
    const size_t own = plane * (size_t)(hi[axis] - lo[axis]), all = plane * (size_t)r->desc->n[axis];
    for (size_t q = 0; q < (size_t)batch; q++) {
        T *const a = whole + q * all + plane * (size_t)lo[axis], *const b = part + q * own;
        memcpy(outward ? a : b, outward ? b : a, own * sizeof(T));
    }
}

template <class T> static void calls_of_replay(replay<T> *r, pg_solver *s, T *const array[4])
{
    T *const u = array[0], *const f = array[1], *const again = array[2], *const v = array[3];
    RANK_OK(pg_solve(s, u, f, r->stop), s);
    if (r->desc->flags & (PG_VCYCLE | PG_FMG))
        RANK_OK(pg_cycle(s, again, f, 1), s);
    else if (!(r->desc->flags & PG_CG))
        RANK_OK(pg_smooth(s, again, f, 3), s);
    RANK_OK(pg_apply(s, again, v), s);
}

// meet(): of all ranks, between what each does alone.
template <class T, class Meet> static void run_replay(replay<T> *r, pg_comm comm, Meet meet)
{
    pg_desc d = *r->desc;
    ranks_case c;
    int lo[3] = {0, 0, 0}, hi[3] = {d.n[0], d.n[1], d.n[2]};
    const int batch = d.batch ? d.batch : 1;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    ON_GPU(cudaSetDevice(r->rank));
    cudaStream_t stream;
    ON_GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    d.backend = PG_CUDA, d.memory = PG_MEM_DEVICE, d.device = PG_DEVICE(r->rank), d.stream = stream;
    d.comm = comm, d.time_limit = comm.kind ? 300 : 0;
    c.uneven = r->uneven;
    if (comm.kind) choose_part(&c, &d, r->rank, r->ranks);
    if (comm.kind) RANK_OK(pg_query_part(&d, lo, hi), NULL);
    const size_t points = (size_t)(hi[0] - lo[0]) * (size_t)(hi[1] - lo[1]) * (size_t)(hi[2] - lo[2]) * (size_t)batch;
    T *const host = (T *)allocate(points * sizeof(T)), *array[4];
    for (int q = 0; q < 4; q++) array[q] = (T *)to_gpu(host, points * sizeof(T));
    const size_t before = (size_t)lo[ranks_axis(&d)] * (points / (size_t)batch) / (size_t)(hi[ranks_axis(&d)] - lo[ranks_axis(&d)]);
    unsigned char *mask[2] = {};
    for (int q = 0; q < 2 && r->mask[q]; q++)
        mask[q] = (unsigned char *)to_gpu(r->mask[q] + before, points / (size_t)batch);
    d.cells.mask = mask[0];
    pg_solver *s = NULL;
    RANK_OK(pg_create(&d, &s), NULL);
    if (r->captures) {
        ON_GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        calls_of_replay(r, s, array);
        ON_GPU(cudaStreamEndCapture(stream, &graph));
        ON_GPU(cudaGraphInstantiate(&exec, graph, 0));
        ON_GPU(cudaGraphUpload(exec, stream));
        ON_GPU(cudaStreamSynchronize(stream));
        meet();
    }
    for (int turn = 0; turn < 2; turn++) {
        for (int q = 0; q < 3; q++) {
            copy_planes(r, q == 1 ? r->f[turn] : r->u, host, lo, hi, 0);
            ON_GPU(cudaMemcpy(array[q], host, points * sizeof(T), cudaMemcpyHostToDevice));
        }
        ON_GPU(cudaDeviceSynchronize());    // such a copy may still be under way
        pg_cells next = {};
        next.mask = mask[turn];
        if (mask[turn]) RANK_OK(pg_set_cells(s, &next), s);
        if (r->captures)
            ON_GPU(cudaGraphLaunch(exec, stream));
        else
            calls_of_replay(r, s, array);
        RANK_OK(pg_get_report(s, &r->report[turn]), s);
        for (int q = 0; q < 3; q++) {
            ON_GPU(cudaMemcpy(host, array[q == 0 ? 0 : q + 1], points * sizeof(T), cudaMemcpyDeviceToHost));
            copy_planes(r, r->result[turn][q], host, lo, hi, 1);
        }
    }
    meet();    // graphs and arrays go when no rank is at work
    if (exec) ON_GPU(cudaGraphExecDestroy(exec));
    if (graph) ON_GPU(cudaGraphDestroy(graph));
    pg_destroy(s);
    for (int q = 0; q < 4; q++) cudaFree(array[q]);
    for (unsigned char *q : mask) cudaFree(q);
    ON_GPU(cudaStreamDestroy(stream));
    free(host);
}

// What is captured and replayed has the bits of what is not.
template <class T> static void compare_replays(const ranks_case *c, int ranks, int bad, int by_nccl = 0,
                                               const unsigned char *mask = NULL, const unsigned char *next = NULL)
{
    const pg_desc *const d = &c->desc;
    const int batch = d->batch ? d->batch : 1;
    const size_t points = (size_t)d->n[0] * (size_t)d->n[1] * (size_t)d->n[2] * (size_t)batch;
    T *const memory = (T *)allocate(15 * points * sizeof(T));
    replay<T> way[2];
    rng r = {points + d->flags};
    for (size_t p = 0; p < 3 * points; p++) memory[p] = (T)rng_uniform(&r, -1, 1);
    if (bad) memory[2 * points + points / 2] = NAN;
    for (int q = 0; q < 2; q++) {
        way[q] = {d, &c->stop, q, c->uneven, 0, ranks, memory, {memory + points, memory + 2 * points}, {}, {}, {mask, next}};
        for (int e = 0; e < 6; e++) way[q].result[e / 3][e % 3] = memory + (size_t)(3 + 6 * q + e) * points;
        world w;
        world_create(&w, ranks, 300);
        pthread_barrier_t all;
        pthread_barrier_init(&all, NULL, (unsigned)ranks);
        const auto part = [&](int rank, pg_comm comm) {
            replay<T> own = way[q];
            own.rank = rank;
            run_replay(&own, comm, [&] { pthread_barrier_wait(&all); });
            if (rank == 0) memcpy(way[q].report, own.report, sizeof own.report);
        };
        if (by_nccl)
            as_threads_with_nccl(&w, part);
        else
            as_threads(&w, part);
        pthread_barrier_destroy(&all);
    }
    for (int turn = 0; turn < 2; turn++) {
        const pg_report *const a = &way[0].report[turn], *const b = &way[1].report[turn];
        assert_int_equal(a->outcome, b->outcome);
        assert_int_equal(a->iterations, b->iterations);
        assert_memory_equal(a->history, b->history, sizeof a->history);
        for (int e = 0; e < 3; e++)
            if (memcmp(way[0].result[turn][e], way[1].result[turn][e], points * sizeof(T)))
                fail_msg("%d ranks, %s: result %d of f %d is another one when it is captured", ranks, describe(d), e, turn);
    }
    assert_int_equal(way[0].report[1].outcome == PG_NOT_A_NUMBER, bad);
    free(memory);
}

#ifdef PG_NO_CONDITIONAL
enum { GRAPHS_LOOP = 0 };
#else
enum { GRAPHS_LOOP = 1 };
#endif
static int can_capture()
{
    int runtime = 0, driver = 0;
    cudaRuntimeGetVersion(&runtime), cudaDriverGetVersion(&driver);
    return GRAPHS_LOOP && runtime >= 12040 && driver >= 12040;
}

static void captured_calls_have_the_same_bits_on_gpus(void **)
{
    static const unsigned methods[] = {PG_VCYCLE, PG_FMG, PG_RBGS, PG_CG, PG_VCYCLE | PG_SMOOTH_LINES, PG_VCYCLE | PG_MIXED};
    const int devices = devices_of_ranks();
    if (devices < 2 || !can_capture()) skip();
    for (int m = 0; m < 12; m += full_or_small(1, 5)) {
        ranks_case c;
        set_case(&c, 2 + m % 2, 12, 11, m % 2 ? 27 : 60, ranks_ends[m % 6], ranks_ends[(m + 3) % 6],
                 m / 2 % 2 ? PG_CELL : PG_NODE);
        set_choice(&c.desc, methods[m % 6]), c.desc.alpha = m % 3;
        c.desc.batch = m % 4 == 1 ? 2 : 1, c.uneven = m % 3;
        c.stop.rtol = m == 7 ? PG_NONE : 1e-5, c.stop.max_iter = m == 7 ? 1 : full_or_small(40, 4);
        c.stop.guess = m % 5 ? PG_GUESS_ZERO : PG_GUESS_U;
        const int single = m > 5 && !(c.desc.flags & PG_MIXED), bad = m != 7 && m % 3 == 1 && c.desc.batch == 1;
        if (single) set_choice(&c.desc, choice_of(&c.desc) | PG_F32), c.stop.rtol = m == 7 ? PG_NONE : 1e-3;
        (single ? compare_replays<float> : compare_replays<double>)(&c, 2 + m % (devices - 1), bad, 0, NULL, NULL);
    }
}

// A replay takes the newest mask.
static void captured_calls_among_obstacles_have_the_same_bits_on_gpus(void **)
{
    static const unsigned methods[] = {PG_VCYCLE, PG_CG | PG_PRECOND_CYCLE, PG_RBGS};
    const int devices = devices_of_ranks();
    if (devices < 2 || !can_capture()) skip();
    for (int m = 0; m < 6; m += full_or_small(1, 5)) {
        ranks_case c;
        set_case(&c, 2 + m % 2, 13, 11, m % 2 ? 27 : 60, ranks_ends[m], ranks_ends[5 - m], PG_CELL);
        const float_media first = float_media_create(&c, 2), second = float_media_create(&c, 5);
        c.desc.cells.mask = NULL, c.desc.cells.beta_cell = NULL;
        set_choice(&c.desc, methods[m % 3]), c.uneven = m % 4;
        c.stop.rtol = 1e-3, c.stop.max_iter = full_or_small(40, 4);
        if (m % 2) set_choice(&c.desc, choice_of(&c.desc) | PG_F32);
        (m % 2 ? compare_replays<float> : compare_replays<double>)(&c, 2 + m % (devices - 1), 0, 0, first.mask, second.mask);
        free(first.mask), free(first.beta), free(second.mask), free(second.beta);
    }
}

#ifdef PG_USE_NCCL
// With peers, which NCCL brings together and which ask each other through it, a capture goes on; where it carries all, none
// is possible.
static void captured_calls_after_nccl_brought_ranks_together_on_gpus(void **)
{
    if (devices_of_ranks() < 2 || !can_capture()) skip();
    ranks_case c = a_case(3, PG_VCYCLE);
    c.desc.alpha = 1;
    compare_replays<double>(&c, 2, 0, 1);
    test_may_join = 0;
    world w;
    world_create(&w, 2, 60);
    pg_status status[2];
    char text[2][512];
    as_threads_with_nccl(&w, [&](int rank, pg_comm comm) {
        cudaStream_t stream;
        cudaGraph_t graph = NULL;
        static const double zeros[12 * 11 * 40] = {};
        ON_GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        pg_desc d = c.desc;
        d.backend = PG_CUDA, d.device = PG_DEVICE(rank), d.stream = stream, d.comm = comm, d.memory = PG_MEM_DEVICE;
        pg_solver *s = NULL;
        RANK_OK(pg_create(&d, &s), NULL);
        double *const u = (double *)to_gpu(zeros, sizeof zeros), *const f = (double *)to_gpu(zeros, sizeof zeros);
        ON_GPU(cudaDeviceSynchronize());
        ON_GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        status[rank] = pg_solve(s, u, f, NULL);
        snprintf(text[rank], sizeof text[rank], "%s", pg_last_error(s));
        ON_GPU(cudaStreamEndCapture(stream, &graph));
        ON_GPU(cudaGraphDestroy(graph));
        RANK_OK(pg_solve(s, u, f, NULL), s);
        pg_destroy(s);
        cudaFree(u), cudaFree(f);
        ON_GPU(cudaStreamDestroy(stream));
    });
    test_may_join = 1;
    for (int r = 0; r < 2; r++) {
        assert_int_equal(status[r], PG_ERROR_UNSUPPORTED);
        assert_non_null(strstr(text[r], "cannot be captured where NCCL carries all"));
    }
}
#endif

// Ranks that do not capture alike, host arrays, monitors and sums: all are told, and nothing has happened.
static void captures_that_cannot_be_are_refused_by_all_on_gpus(void **)
{
    if (devices_of_ranks() < 2 || (GRAPHS_LOOP && !can_capture())) skip();
    world w;
    world_create(&w, 2, 60);
    enum { ONE_ALONE, WITH_MONITOR, OF_HOST_ARRAYS, A_SUM, AFTER, KINDS };
    pg_status status[2][KINDS];
    char text[2][KINDS][512];
    as_threads(&w, [&](int rank, pg_comm comm) {
        static const float zeros[12 * 11 * 40] = {};
        cudaStream_t stream;
        cudaGraph_t graph = NULL;
        ON_GPU(cudaSetDevice(rank));
        ON_GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        pg_desc d = a_case(3, PG_VCYCLE).desc;
        d.backend = PG_CUDA, d.device = PG_DEVICE(rank), d.stream = stream, d.comm = comm, d.time_limit = 60;
        set_choice(&d, choice_of(&d) | PG_F32);
        pg_solver *s[2] = {};
        for (int q = 0; q < 2; q++) {
            d.memory = q ? PG_MEM_HOST : PG_MEM_DEVICE;
            RANK_OK(pg_create(&d, &s[q]), NULL);
        }
        float *const u = (float *)to_gpu(zeros, sizeof zeros), *const f = (float *)to_gpu(zeros, sizeof zeros);
        float *const host = (float *)allocate(2 * sizeof zeros);
        pg_stop watched = {};
        watched.monitor = [](void *, const pg_report *) { return 0; };
        double sum;
        const auto keep = [&](int kind, pg_status result, pg_solver *of) {
            status[rank][kind] = result;
            snprintf(text[rank][kind], sizeof text[rank][kind], "%s", pg_last_error(of));
        };
        ON_GPU(cudaDeviceSynchronize());
        if (rank == 1) ON_GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        keep(ONE_ALONE, pg_solve(s[0], u, f, NULL), s[0]);
        if (rank == 0) ON_GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        keep(WITH_MONITOR, pg_solve(s[0], u, f, &watched), s[0]);
        keep(OF_HOST_ARRAYS, pg_solve(s[1], host, host + 12 * 11 * 40, NULL), s[1]);
        keep(A_SUM, pg_dot(s[0], u, NULL, &sum), s[0]);
        ON_GPU(cudaStreamEndCapture(stream, &graph));
        keep(AFTER, pg_solve(s[0], u, f, NULL), s[0]);
        ON_GPU(cudaGraphDestroy(graph));
        for (pg_solver *q : s) pg_destroy(q);
        cudaFree(u), cudaFree(f), free(host);
        ON_GPU(cudaStreamDestroy(stream));
    });
    for (int r = 0; r < 2; r++) {
        if (!GRAPHS_LOOP) assert_non_null(strstr(text[r][WITH_MONITOR], "with PG_NO_CONDITIONAL; make them outside"));
        assert_int_equal(status[r][AFTER], PG_OK);
        if (!GRAPHS_LOOP) continue;
        assert_int_equal(status[r][ONE_ALONE], PG_ERROR_COMM);
        assert_non_null(strstr(text[r][ONE_ALONE], "whether it is being captured is 0 on rank 0 and 1 on rank 1"));
        assert_int_equal(status[r][WITH_MONITOR], PG_ERROR_UNSUPPORTED);
        assert_non_null(strstr(text[r][WITH_MONITOR], "monitor"));
        assert_int_equal(status[r][OF_HOST_ARRAYS], PG_ERROR_UNSUPPORTED);
        assert_non_null(strstr(text[r][OF_HOST_ARRAYS], "host arrays cannot be copied"));
        assert_int_equal(status[r][A_SUM], PG_ERROR_UNSUPPORTED);
    }
}

// Spacings along one axis alone that vary so much that cycles relax its lines.
static double of_lines[3][1200];
static void stretch_one_axis(ranks_case *c, int a)
{
    const int n = c->desc.n[a];
    for (int q = 1; q < n + 3; q++)
        of_lines[a][q] = of_lines[a][q - 1] + (1 + 0.9 * sin(6.0 * q / n)) * (1 + 0.05 * (q % 3)) / 16;
    c->desc.coord[a] = of_lines[a];
    c->desc.h[a] = 0;
}

// Relaxation of lines across the parts, asked for or not, and along the ranks' axis, of which all then have all levels.
static void compare_lines(int dim, int along, int e, int turn, int ranks)
{
    static const unsigned methods[] = {PG_VCYCLE, PG_FMG, PG_WCYCLE, PG_VCYCLE | PG_SYMMETRIC, PG_CG, PG_VCYCLE | PG_MIXED};
    ranks_case c;
    const int less = full_or_small(0, 4);    // boxes that have half as many points
    set_case(&c, dim, 17 - less + turn % 6, 14 - less + turn % 5, dim == 2 ? 50 : 25 - less + turn % 4, ranks_ends[e],
             ranks_ends[(e + turn) % RANKS_ENDS], turn / 2 % 2 ? PG_CELL : PG_NODE);
    stretch_one_axis(&c, along);
    c.gpus = 1;
    c.desc.alpha = turn % 2;
    set_choice(&c.desc, methods[turn % 6] | (turn % 3 ? PG_SMOOTH_LINES : 0));
    c.uneven = turn % 4, c.windows = turn % 2, c.arrays = turn % 3 == 1;
    c.work = SOLVE, c.tolerance = 1e-11;
    if (c.desc.flags & (PG_CG | PG_MIXED)) c.stop.rtol = small_run() ? 1e-6 : 1e-10, c.tolerance = 1e-7;
    c.stop.max_iter = c.stop.rtol == PG_NONE ? 2 : 100;
    compare(&c, ranks, (uint64_t)turn);
    c.stop.max_iter = 2, c.stop.rtol = PG_NONE;
    for (pg_face &face : c.desc.face) face.array = NULL;
    if (!(c.desc.flags & PG_MIXED)) compare_floats(&c, ranks, 1e-4);
}

static void lines_agree_with_one_gpu_on_gpus(void **)
{
    const int devices = devices_of_ranks();
    int turn = 0;
    if (devices < 2) skip();
    for (int dim = 2; dim <= 3; dim++)
        for (int along = 0; along < dim; along++)
            for (int e = 0; e < RANKS_ENDS; e++, turn++)
                if (!small_run() || (dim == 3 && along == 1) || (e + along) % 3 == 0) compare_lines(dim, along, e, turn, 2 + turn % (devices - 1));
}

// Lines that are too long for the registers of a block, and pairs of columns for all of a slab.
static void long_lines_agree_with_one_gpu_on_gpus(void **)
{
    const int devices = devices_of_ranks();
    if (devices < 2) skip();
    for (int along = 0; along < 2; along++) {
        ranks_case c;
        set_case(&c, 3, along ? 9 : 1100, along ? 1100 : 6, 17, along ? "PP" : "DN", "DD", along ? PG_CELL : PG_NODE);
        stretch_one_axis(&c, along);
        c.gpus = 1, c.uneven = along;
        set_choice(&c.desc, PG_VCYCLE | PG_SMOOTH_LINES);
        c.work = CYCLE, c.count = 1, c.tolerance = 1e-11;
        compare(&c, devices < 3 ? devices : 3, 5);
    }
}
#endif

// ---- what ranks must agree on, and failures ----

// One thing that a rank has otherwise than the others, and what all are told.
struct difference {
    void (*change)(pg_desc *);
    const char *field, *value;
    int has_surface;    // all have one
};
static const unsigned char some_air[12 * 11 * 40] = {PG_FLUID, PG_AIR};
static const pg_cell_value surface[2] = {{{0, 0, 0}, PG_X_HIGH, 1, 0.5}, {{0, 0, 0}, PG_X_HIGH, 1, 0.25}};
static void set_surface(pg_desc *d, int which)
{
    d->cells.mask = some_air, d->cells.air_value = &surface[which], d->cells.air_values = 1;
}
static const double other_weight[12] = {1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1};
static const difference differences[] = {
    {[](pg_desc *d) { d->n[0]++; }, "n[0]", "13 on rank 1"},
    {[](pg_desc *d) { d->h[2] = 0.02; }, "h[2]", "0.02"},
    {[](pg_desc *d) { d->alpha = 3; }, "alpha", "3 on rank 1"},
    {[](pg_desc *d) { d->weight[0] = other_weight; }, "weight[0]", "rank 1"},
    {[](pg_desc *d) { d->face[0].kind = PG_NEUMANN; }, "face x low", "rank 1"},
    {[](pg_desc *d) { set_choice(d, PG_WCYCLE); }, "flags", "rank 1"},
    {[](pg_desc *d) { d->batch = 2; }, "batch", "2 on rank 1"},
    {[](pg_desc *d) { d->nu_pre = 3; }, "nu_pre", "3 on rank 1"},
    {[](pg_desc *d) { d->lo[2] = 14, d->hi[2] = 26, d->hi[0] = 12, d->hi[1] = 11; }, "lo[2]", "rank 1"},
    {[](pg_desc *d) { set_surface(d, 1); }, "hash of air_value", "rank 1", 1},
    {[](pg_desc *d) { d->centring[1] = PG_NODE; }, "centring[1]", "rank 1", 1},
    {[](pg_desc *d) { d->alpha = -1; }, "rank 1 refused", "alpha"},
    {[](pg_desc *d) { d->workspace = d, d->workspace_bytes = 1; }, "rank 1 refused", "workspace"},
};

static void ranks_that_disagree_are_told_where(void **)
{
    for (const difference &of : differences) {
        world w;
        world_create(&w, 3, 20);
        char text[3][512];
        pg_status status[3];
        as_threads(&w, [&](int rank, pg_comm comm) {
            pg_desc d = a_case(3, PG_VCYCLE).desc;
            pg_solver *s = NULL;
            d.comm = comm;
            if (of.has_surface) set_surface(&d, 0);
            if (rank == 1) of.change(&d);
            status[rank] = pg_create(&d, &s);
            snprintf(text[rank], sizeof text[rank], "%s", pg_last_error(NULL));
            pg_destroy(s);
        });
        for (int r = 0; r < 3; r++) {
            assert_int_not_equal(status[r], PG_OK);
            if (r != 1) assert_int_equal(status[r], PG_ERROR_COMM);
            const int own = r == 1 && !strncmp(of.field, "rank 1 refused", 14);    // it knows better
            if ((!own && !strstr(text[r], of.field)) || !strstr(text[r], of.value))
                fail_msg("rank %d is told \"%s\", without %s or %s", r, text[r], of.field, of.value);
        }
    }
}

// A call that ranks disagree on harms nobody: the next one works.
static void calls_that_differ_are_refused_by_all(void **)
{
    world w;
    world_create(&w, 3, 20);
    char text[3][4][512] = {};
    pg_status status[3][5];
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc d = a_case(3, PG_VCYCLE).desc;
        d.comm = comm;
        pg_solver *s = NULL;
        RANK_OK(pg_create(&d, &s), NULL);
        double *const u = (double *)calloc(12 * 11 * 40, sizeof *u), *const f = u + 12 * 11 * 20, norm;
        pg_stop stop = {};
        const auto keep = [&](int call, pg_status result) {
            status[rank][call] = result;
            if (call < 4) snprintf(text[rank][call], sizeof text[rank][call], "%s", pg_last_error(s));
        };
        keep(0, rank == 2 ? pg_norm(s, u, PG_NORM_L2, &norm) : pg_cycle(s, u, f, 1));
        keep(1, pg_cycle(s, u, f, rank == 0 ? 2 : 1));
        keep(2, pg_cycle(s, rank == 1 ? NULL : u, f, 1));
        stop.max_iter = 5 + rank;
        keep(3, pg_solve(s, u, f, &stop));
        keep(4, pg_cycle(s, u, f, 1));
        pg_destroy(s);
        free(u);
    });
    for (int r = 0; r < 3; r++) {
        for (int call = 0; call < 4; call++) assert_int_equal(status[r][call], r == 1 && call == 2 ? PG_ERROR_ARGUMENT : PG_ERROR_COMM);
        assert_int_equal(status[r][4], PG_OK);
        assert_non_null(strstr(text[r][0], "rank 2 calls pg_norm"));
        assert_non_null(strstr(text[r][1], "argument of pg_cycle is 2 on rank 0 and 1 on ranks 1, 2"));
        assert_non_null(strstr(text[r][2], r == 1 ? "u is NULL" : "rank 1 refused: u is NULL"));
        assert_non_null(strstr(text[r][3], "stop.max_iter"));
    }
}

// A rank dies in any of its calls of the transport: the others end, say so, and can be destroyed, but not used.
static void a_rank_that_dies_ends_the_solves_of_all(void **)
{
    for (int call = 1; call < 60; call += full_or_small(1, 7)) {
        world w;
        world_create(&w, 3, 20);
        w.dies = call % 3, w.fails_at = call;
        pg_status created[3], solved[3] = {}, after[3] = {};
        char text[3][512];
        as_threads(&w, [&](int rank, pg_comm comm) {
            pg_desc d = a_case(3, PG_VCYCLE).desc;
            d.comm = comm;
            pg_solver *s = NULL;
            double *const u = (double *)calloc(12 * 11 * 40, sizeof *u), *const f = u + 12 * 11 * 20;
            f[5] = 1;
            created[rank] = pg_create(&d, &s);
            snprintf(text[rank], sizeof text[rank], "%s", pg_last_error(NULL));
            if (created[rank] == PG_OK) {
                pg_stop stop = {};
                stop.rtol = 1e-30, stop.max_iter = 100;
                solved[rank] = pg_solve(s, u, f, &stop);
                snprintf(text[rank], sizeof text[rank], "%s", pg_last_error(s));
                after[rank] = pg_cycle(s, u, f, 1);
            }
            pg_destroy(s);
            free(u);
        });
        for (int r = 0; r < 3; r++) {
            if (created[r] == PG_OK) assert_int_equal(solved[r], PG_ERROR_COMM);
            if (created[r] == PG_OK) assert_int_equal(after[r], PG_ERROR_COMM);
            if (created[r] != PG_OK) assert_int_equal(created[r], PG_ERROR_COMM);
            char own[32];
            snprintf(own, sizeof own, "rank %d", r);
            assert_non_null(strstr(text[r], own));
        }
    }
}

// A rank that makes no call at all: the others wait no longer than their transport does.
static void a_missing_rank_is_waited_for_no_longer_than_the_limit(void **)
{
    world w;
    world_create(&w, 2, 0.2);
    pg_status status = PG_OK;
    as_threads(&w, [&](int rank, pg_comm comm) {
        if (rank) return;
        pg_desc d = a_case(2, PG_RBGS).desc;
        d.comm = comm;
        pg_solver *s = NULL;
        status = pg_create(&d, &s);
        pg_destroy(s);
    });
    assert_int_equal(status, PG_ERROR_COMM);
}

// Also where it does so before it can tell the others, whose transport has a time limit.
static void one_rank_that_refuses_keeps_nobody_waiting(void **)
{
    for (const early_refusal &of : early_refusals) {
        world w;
        early_result result[3];
        world_create(&w, 3, EARLY_LIMIT);
        as_threads(&w, [&](int rank, pg_comm comm) {
            pg_desc d = a_case(3, PG_VCYCLE).desc;
            d.comm = comm;
            refuse_early(&of, d, rank == 1, &result[rank]);
        });
        for (int r = 0; r < 3; r++) check_early(&of, r, r == 1, &result[r]);
    }
    world w;    // the same of a call
    pg_status status[3];
    char text[3][512];
    world_create(&w, 3, 20);
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc d = a_case(3, PG_VCYCLE).desc;
        pg_solver *s = NULL;
        double *const u = (double *)calloc(12 * 11 * 40, sizeof *u), norm;
        d.comm = comm;
        RANK_OK(pg_create(&d, &s), NULL);
        status[rank] = pg_norm(s, u, PG_NORM_L2, rank == 1 ? NULL : &norm);
        snprintf(text[rank], sizeof text[rank], "%s", pg_last_error(s));
        RANK_OK(pg_norm(s, u, PG_NORM_L2, &norm), s);
        pg_destroy(s);
        free(u);
    });
    for (int r = 0; r < 3; r++) {
        assert_int_equal(status[r], r == 1 ? PG_ERROR_ARGUMENT : PG_ERROR_COMM);
        assert_non_null(strstr(text[r], "is NULL"));
    }
}

// Among obstacles PG_FMG is PG_CG, but with another guess.
static void methods_that_differ_in_their_guess_are_refused(void **)
{
    static const unsigned char mask[12 * 11 * 40] = {0};
    world w;
    pg_status status[3];
    char text[3][512];
    world_create(&w, 3, 20);
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc d = a_case(3, rank == 1 ? PG_CG : PG_FMG).desc;
        pg_solver *s = NULL;
        d.comm = comm, d.cells.mask = mask;
        status[rank] = pg_create(&d, &s);
        snprintf(text[rank], sizeof text[rank], "%s", pg_last_error(NULL));
        pg_destroy(s);
    });
    for (int r = 0; r < 3; r++) {
        assert_int_equal(status[r], PG_ERROR_COMM);
        assert_non_null(strstr(text[r], "PG_FMG is 1 on ranks 0, 2 and 0 on rank 1"));
    }
}

// The monitor of one rank says no.
static void one_rank_that_cancels_cancels_all(void **)
{
    world w;
    world_create(&w, 3, 20);
    pg_report report[3];
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc d = a_case(3, PG_RBGS).desc;
        d.comm = comm;
        pg_solver *s = NULL;
        double *const u = (double *)calloc(12 * 11 * 40, sizeof *u), *const f = u + 12 * 11 * 20;
        f[5] = 1;
        pg_stop stop = {};
        stop.rtol = 1e-12, stop.check = 1, stop.max_iter = 1000, stop.user = &rank;
        stop.monitor = [](void *user, const pg_report *r) { return *(int *)user == 1 && r->iterations >= 3 ? 1 : 0; };
        RANK_OK(pg_create(&d, &s), NULL);
        RANK_OK(pg_solve(s, u, f, &stop), s);
        RANK_OK(pg_get_report(s, &report[rank]), s);
        pg_destroy(s);
        free(u);
    });
    for (int r = 0; r < 3; r++) {
        assert_int_equal(report[r].outcome, PG_CANCELLED);
        assert_int_equal(report[r].iterations, 3);
    }
}

static void parts_cover_the_box(void **)
{
    for (int dim = 2; dim <= 3; dim++)
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            int end = 0;
            for (int rank = 0; rank < ranks; rank++) {
                pg_desc d = a_case(dim, 0).desc;
                pg_transport t = {};
                t.rank = rank, t.ranks = ranks, t.gather = gather_of_threads, t.exchange = exchange_of_threads;
                d.comm.kind = PG_COMM_OWN, d.comm.handle = &t;
                int lo[3], hi[3];
                OK(pg_query_part(&d, lo, hi), NULL);
                assert_int_equal(lo[dim - 1], end);
                assert_true(hi[dim - 1] > end);
                assert_int_equal(lo[0], 0);
                assert_int_equal(hi[0], 12);
                end = hi[dim - 1];
            }
            assert_int_equal(end, 40);
        }
}

// Whether coarse levels are robust follows from the masks of all ranks: here from planes of the last one. The workspace
// does not.
static void compare_choice_of_robust(pg_backend backend, int on_device)
{
    enum { N = 16, PLANES = 40, RANKS = 2, OPEN = 0, CUT, KINDS };
    const size_t plane = N * N;
    unsigned char *const open = (unsigned char *)allocate(2 * plane * PLANES), *const cut = open + plane * PLANES;
    memset(open, PG_FLUID, 2 * plane * PLANES);
    for (size_t p = 30 * plane; p < plane * PLANES; p++)    // columns that meet at edges alone
        cut[p] = (p % N + p / N % N) % 2 ? PG_SOLID : PG_FLUID;
    size_t bytes[RANKS][KINDS] = {};
    int robust[RANKS][KINDS] = {};
    world w;
    world_create(&w, RANKS, 60);
    as_threads(&w, [&](int rank, pg_comm comm) {
        for (int q = OPEN; q < KINDS; q++) {
            pg_desc d = a_case(3, PG_FMG).desc, now;
            pg_solver *s = NULL;
            int lo[3], hi[3];
            d.n[0] = d.n[1] = N, d.n[2] = PLANES;
            d.comm = comm, d.backend = backend, d.time_limit = 300;
            if (backend == PG_CUDA) d.device = PG_DEVICE(rank);
            RANK_OK(pg_query_part(&d, lo, hi), NULL);
            const unsigned char *const part = (q == CUT ? cut : open) + plane * (size_t)lo[2];
            d.memory = on_device ? PG_MEM_DEVICE : PG_MEM_HOST;
            d.cells.mask = on_device ? (unsigned char *)to_device(rank, part, plane * (size_t)(hi[2] - lo[2])) : part;
            RANK_OK(pg_workspace_bytes(&d, &bytes[rank][q]), NULL);
            RANK_OK(pg_create(&d, &s), NULL);
            RANK_OK(pg_query_desc(s, &now), s);
            robust[rank][q] = now.robust;
            pg_destroy(s);
            if (on_device) from_device((void *)d.cells.mask, NULL, 0);
        }
    });
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(robust[r][OPEN], PG_NONE);
        assert_int_equal(robust[r][CUT], 1);
        assert_true(bytes[r][CUT] == bytes[r][OPEN]);
    }
    free(open);
}
static void robust_levels_are_chosen_by_all_ranks(void **) { compare_choice_of_robust(PG_CPU, 0); }
#ifdef PG_TEST_CUDA
static void robust_levels_are_chosen_by_all_ranks_on_gpus(void **)
{
    if (devices_of_ranks() < 2) skip();
    for (int on_device = 0; on_device < 2; on_device++) compare_choice_of_robust(PG_CUDA, on_device);
}
#endif

// Labels of a rank's cells, and sums over parts of the whole fluid, with the bits of one rank.
static void compare_parts(int ranks, pg_backend backend, int on_device)
{
    enum { BATCH = 2, ROOM = 40 };
    for (int dim = 2; dim <= 3; dim++) {
        ranks_case c;
        set_case(&c, dim, 11, dim == 3 ? 9 : 34, 23, "NN", "PP", PG_CELL);
        pg_desc d = c.desc;
        d.backend = backend, set_choice(&d, dim == 3 ? PG_F32 : PG_CG | PG_PRECOND_DIAGONAL), d.batch = BATCH;
        const size_t plane = (size_t)d.n[0] * (size_t)(dim == 3 ? d.n[1] : 1), cells = plane * (size_t)d.n[dim - 1];
        const size_t element = dim == 3 ? sizeof(float) : sizeof(double);
        unsigned char *const mask = (unsigned char *)allocate(cells);
        char *const x = (char *)allocate(BATCH * cells * element);
        int *const labels = (int *)allocate(2 * cells * sizeof(int)), *const of_ranks = labels + cells, count[1 + MOST_RANKS];
        double sums[1 + MOST_RANKS][BATCH * ROOM] = {}, volumes[1 + MOST_RANKS][ROOM] = {};
        rng r = {cells};
        for (size_t p = 0; p < cells; p++) mask[p] = rng_int(&r, 0, 1) ? PG_FLUID : PG_SOLID;
        for (size_t p = 0; p < BATCH * cells; p++) {
            const double v = rng_uniform(&r, -1, 1);
            if (dim == 3) ((float *)x)[p] = (float)v;
            else ((double *)x)[p] = v;
        }
        d.cells.mask = mask, count[0] = ROOM;
        pg_solver *s = create(&d);
        OK(pg_get_parts(s, x, labels, &count[0], sums[0], volumes[0]), s);
        pg_destroy(s);
        assert_true(count[0] > 3);
        world w;
        world_create(&w, ranks, 60);
        as_threads(&w, [&](int rank, pg_comm comm) {
            pg_desc own = d;
            int lo[3], hi[3], wrong = ROOM;
            pg_solver *of = NULL;
            own.comm = comm, own.time_limit = 300, own.stride_u[2] = (int64_t)cells;
            if (backend == PG_CUDA) own.device = PG_DEVICE(rank);
            RANK_OK(pg_query_part(&own, lo, hi), NULL);
            const size_t at = plane * (size_t)lo[dim - 1], points = plane * (size_t)(hi[dim - 1] - lo[dim - 1]);
            const size_t bytes = ((BATCH - 1) * cells + points) * element;
            char *data = x + at * element;
            int *to = of_ranks + at;
            own.cells.mask = mask + at;
            if (on_device) {
                own.memory = PG_MEM_DEVICE;
                data = (char *)to_device(rank, data, bytes), to = (int *)to_device(rank, to, points * sizeof(int));
                own.cells.mask = (unsigned char *)to_device(rank, own.cells.mask, points);
            }
            RANK_OK(pg_create(&own, &of), NULL);
            if (pg_get_parts(of, rank ? data : NULL, NULL, &wrong, rank ? sums[1 + rank] : NULL, NULL) != PG_ERROR_COMM)
                abort();    // rank 0 gives no x, the others do
            count[1 + rank] = ROOM;
            RANK_OK(pg_get_parts(of, data, to, &count[1 + rank], sums[1 + rank], volumes[1 + rank]), of);
            pg_destroy(of);
            if (on_device) {
                from_device(to, of_ranks + at, points * sizeof(int));
                from_device(data, NULL, 0), from_device((void *)own.cells.mask, NULL, 0);
            }
        });
        assert_memory_equal(of_ranks, labels, cells * sizeof(int));
        for (int q = 1; q <= ranks; q++) {
            assert_int_equal(count[q], count[0]);
            assert_memory_equal(sums[q], sums[0], sizeof sums[0]);
            assert_memory_equal(volumes[q], volumes[0], sizeof volumes[0]);
        }
        free(mask), free(x), free(labels);
    }
}
static void parts_of_the_fluid_are_those_of_one_rank(void **)
{
    for (int ranks = 2; ranks <= 3; ranks++) compare_parts(ranks, PG_CPU, 0);
}
#ifdef PG_TEST_CUDA
static void parts_of_the_fluid_are_those_of_one_gpu_on_gpus(void **)
{
    if (devices_of_ranks() < 2) skip();
    for (int on_device = 0; on_device < 2; on_device++) compare_parts(2, PG_CUDA, on_device);
}
#endif

// What does not go with several ranks is refused by its name, on all of them.
struct refusal {
    void (*change)(pg_desc *);
    pg_status status;
    const char *name;
};
static const unsigned char bad_mask[12 * 11 * 40] = {0, 0, 0, 7};
static double far_apart[402];    // coordinates, see main
static void make_large(pg_desc *d) { d->n[0] = d->n[1] = 100, d->n[2] = 400; }
static const refusal refusals[] = {
    {[](pg_desc *d) { d->cells.mask = bad_mask; }, PG_ERROR_ARGUMENT, "the byte of cell (3, 0,"},
    {[](pg_desc *d) { make_large(d), d->cells.mask = bad_mask; }, PG_ERROR_UNSUPPORTED, "masks and coefficient fields"},
    {[](pg_desc *d) { make_large(d), set_choice(d, PG_DIRECT), d->coord[0] = far_apart, d->h[0] = 0; },
     PG_ERROR_UNSUPPORTED, "PG_DIRECT spreads"},
    {[](pg_desc *d) { make_large(d), set_choice(d, PG_VCYCLE), d->coord[2] = far_apart, d->h[2] = 0; },
     PG_ERROR_UNSUPPORTED, "lines along the axis of the ranks"},
    {[](pg_desc *d) { make_large(d), set_choice(d, PG_DIRECT), d->alpha = -1; }, PG_ERROR_UNSUPPORTED, "alpha >= 0"},
    {[](pg_desc *d) { d->dim = 1, d->n[1] = d->n[2] = 1; }, PG_ERROR_UNSUPPORTED, "1D"},
    {[](pg_desc *d) { d->hi[0] = 5; }, PG_ERROR_UNSUPPORTED, "hi[0]"},
    {[](pg_desc *d) { d->n[2] = 2; }, PG_ERROR_ARGUMENT, "3 ranks"},
    {[](pg_desc *d) { d->lo[2] = 5, d->hi[2] = 4; }, PG_ERROR_ARGUMENT, "lo[2]"},
    {[](pg_desc *d) { d->time_limit = -3; }, PG_ERROR_ARGUMENT, "time_limit"},
    {[](pg_desc *d) { d->comm.kind = PG_COMM_NCCL, d->comm.handle = NULL; },
#ifdef PG_USE_NCCL
     PG_ERROR_ARGUMENT, "not an ncclComm_t"},
#else
     PG_ERROR_UNSUPPORTED, "compiled without NCCL"},
#endif
    {[](pg_desc *d) { d->comm.kind = 9; }, PG_ERROR_ARGUMENT, "comm.kind"},
    {[](pg_desc *d) { d->comm.handle = NULL; }, PG_ERROR_ARGUMENT, "comm.handle"},
};

static void is_refused_by_all(const refusal *list, size_t count)
{
    for (size_t q = 0; q < count; q++) {
        const refusal &of = list[q];
        world w;
        world_create(&w, 3, 20);
        pg_status status[3];
        char text[3][512];
        as_threads(&w, [&](int rank, pg_comm comm) {
            pg_desc d = a_case(3, PG_RBGS).desc;
            set_choice(&d, 0);
            d.comm = comm;
            of.change(&d);
            pg_solver *s = NULL;
            status[rank] = pg_create(&d, &s);
            snprintf(text[rank], sizeof text[rank], "%s", pg_last_error(NULL));
            pg_destroy(s);
        });
        for (int r = 0; r < 3; r++) {
            assert_int_equal(status[r], of.status);
            if (!strstr(text[r], of.name)) fail_msg("\"%s\" does not name %s", text[r], of.name);
        }
    }
}
static void what_is_not_possible_is_refused_by_name(void **)
{
    is_refused_by_all(refusals, sizeof refusals / sizeof *refusals);
}

#ifdef PG_TEST_CUDA
// What GPUs cannot do yet; the last one is that three ranks have one of them.
static const refusal refusals_of_gpus[] = {
    {[](pg_desc *d) { make_large(d), set_choice(d, PG_DIRECT), d->coord[0] = far_apart, d->h[0] = 0; },
     PG_ERROR_UNSUPPORTED, "PG_DIRECT spreads"},
    {[](pg_desc *d) { make_large(d), set_choice(d, PG_DIRECT), d->alpha = -1; }, PG_ERROR_UNSUPPORTED, "alpha >= 0"},
    {[](pg_desc *d) { make_large(d), d->cells.mask = bad_mask; }, PG_ERROR_UNSUPPORTED, "masks and coefficient fields"},
    {[](pg_desc *d) { make_large(d), set_choice(d, PG_VCYCLE), d->coord[2] = far_apart, d->h[2] = 0; },
     PG_ERROR_UNSUPPORTED, "lines along the axis of the ranks"},
    {[](pg_desc *d) { d->device = PG_DEVICE(0); }, PG_ERROR_UNSUPPORTED, "ranks 0 and 1 are on one GPU"},
};
// A byte of the last rank's part that is none of a mask's: pg_create finds it in host and device memory, pg_set_cells in
// host memory, where it finds too that there is no fluid. Then the handle can be used.
static void masks_that_are_wrong_are_refused_by_all_on_gpus(void **)
{
    enum { RANKS = 2, CELLS = 12 * 11 * 40, CALLS = 5 };
    static unsigned char wrong[CELLS], solid[CELLS], fluid[CELLS];
    static double zeros[CELLS];
    if (devices_of_ranks() < RANKS) skip();
    memset(solid, PG_SOLID, sizeof solid);
    wrong[12 * 11 * 19 + 12 * 4 + 2] = 7;
    world w;
    world_create(&w, RANKS, 60);
    pg_status status[RANKS][CALLS];
    char text[RANKS][CALLS][512];
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc d = a_case(3, PG_FMG).desc;
        pg_solver *s = NULL;
        const auto keep = [&](int call, pg_status result) {
            status[rank][call] = result;
            snprintf(text[rank][call], sizeof text[rank][call], "%s", pg_last_error(s));
        };
        d.backend = PG_CUDA, d.device = PG_DEVICE(rank), d.comm = comm, d.time_limit = 300;
        const unsigned char *const given = rank == RANKS - 1 ? wrong : fluid;
        d.cells.mask = given;
        keep(0, pg_create(&d, &s));
        d.memory = PG_MEM_DEVICE;
        d.cells.mask = (const unsigned char *)to_device(rank, given, CELLS);
        keep(1, pg_create(&d, &s));
        from_device((void *)d.cells.mask, NULL, 0);
        d.memory = PG_MEM_HOST;
        d.cells.mask = fluid;
        RANK_OK(pg_create(&d, &s), NULL);
        pg_cells next = {};
        next.mask = given;
        keep(2, pg_set_cells(s, &next));
        next.mask = solid;
        keep(3, pg_set_cells(s, &next));
        next.mask = rank == 0 ? solid : fluid;
        RANK_OK(pg_set_cells(s, &next), s);
        double *const u = (double *)allocate(sizeof zeros);
        memset(u, 0, sizeof zeros);
        keep(4, pg_solve(s, u, zeros, NULL));
        free(u);
        pg_destroy(s);
    });
    for (int r = 0; r < RANKS; r++) {
        for (int call = 0; call < 2; call++) {
            assert_int_equal(status[r][call], PG_ERROR_ARGUMENT);
            assert_non_null(strstr(text[r][call], "the byte of cell (2, 4, 39) of mask"));
        }
        assert_int_equal(status[r][2], r == RANKS - 1 ? PG_ERROR_ARGUMENT : PG_ERROR_COMM);
        assert_non_null(strstr(text[r][2], "the byte of cell (2, 4, 39) of mask"));
        assert_int_equal(status[r][3], PG_OK);    // no fluid on any rank
        assert_int_equal(status[r][4], PG_OK);
    }
}

// Packed arrays are used in place, whose pairs of values kernels read at once. The handle can be used afterwards.
static void arrays_that_are_not_aligned_are_refused_on_gpus(void **)
{
    enum { RANKS = 2 };
    if (devices_of_ranks() < RANKS) skip();
    world w;
    world_create(&w, RANKS, 60);
    pg_status status[RANKS][2];
    char text[RANKS][512];
    as_threads(&w, [&](int rank, pg_comm comm) {
        pg_desc d = a_case(3, PG_VCYCLE).desc;
        int lo[3], hi[3];
        pg_solver *s = NULL;
        d.backend = PG_CUDA, d.device = PG_DEVICE(rank), d.memory = PG_MEM_DEVICE, d.comm = comm, d.time_limit = 300;
        RANK_OK(pg_query_part(&d, lo, hi), NULL);
        RANK_OK(pg_create(&d, &s), NULL);
        const size_t points = (size_t)d.n[0] * d.n[1] * (hi[2] - lo[2]) + 1;
        double *const zeros = (double *)calloc(points, sizeof *zeros);
        double *const u = (double *)to_device(rank, zeros, points * sizeof *zeros),
                      *const f = (double *)to_device(rank, zeros, points * sizeof *zeros);
        status[rank][0] = pg_solve(s, u, f + rank, NULL);
        snprintf(text[rank], sizeof text[rank], "%s", pg_last_error(s));
        status[rank][1] = pg_solve(s, u, f, NULL);
        pg_destroy(s);
        from_device(u, NULL, 0), from_device(f, NULL, 0);
        free(zeros);
    });
    assert_int_equal(status[0][0], PG_ERROR_COMM);
    assert_int_equal(status[1][0], PG_ERROR_ARGUMENT);
    for (int r = 0; r < RANKS; r++) {
        assert_non_null(strstr(text[r], "is not aligned to 16 bytes"));
        assert_int_equal(status[r][1], PG_OK);
    }
}

static void what_gpus_cannot_do_is_refused_by_name_on_gpus(void **)
{
    enum { COUNT = sizeof refusals_of_gpus / sizeof *refusals_of_gpus };
    if (devices_of_ranks() < 1) skip();
    refusal on_gpus[COUNT];
    for (int q = 0; q < COUNT; q++) {
        static void (*change)(pg_desc *);
        change = refusals_of_gpus[q].change;
        on_gpus[q] = refusals_of_gpus[q];
        on_gpus[q].change = [](pg_desc *d) { d->backend = PG_CUDA, change(d); };
        is_refused_by_all(&on_gpus[q], 1);
    }
}
#endif

int main(void)
{
    for (int q = 1; q < 402; q++) far_apart[q] = far_apart[q - 1] + 1 + q % 7 * (q / 100.0);
    CMUnitTest tests[2 * SUITES + 40] = {};
    size_t count = 0;
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);    // see SEVERAL RANKS in the header
    if (getenv("PG_TEST_FILTER")) cmocka_set_test_filter(getenv("PG_TEST_FILTER"));
    for (; count < SUITES; count++)
        tests[count] = {suites[count].name, every_box_has_the_result_of_one_rank, NULL, NULL, (void *)&suites[count]};
    const CMUnitTest more[] = {
        cmocka_unit_test(f32_cycles_have_the_bits_of_one_rank),
        cmocka_unit_test(ranks_that_disagree_are_told_where),
        cmocka_unit_test(calls_that_differ_are_refused_by_all),
        cmocka_unit_test(a_rank_that_dies_ends_the_solves_of_all),
        cmocka_unit_test(a_missing_rank_is_waited_for_no_longer_than_the_limit),
        cmocka_unit_test(one_rank_that_cancels_cancels_all),
        cmocka_unit_test(one_rank_that_refuses_keeps_nobody_waiting),
        cmocka_unit_test(methods_that_differ_in_their_guess_are_refused),
        cmocka_unit_test(parts_cover_the_box),
        cmocka_unit_test(robust_levels_are_chosen_by_all_ranks),
        cmocka_unit_test(parts_of_the_fluid_are_those_of_one_rank),
        cmocka_unit_test(what_is_not_possible_is_refused_by_name),
    };
    for (const CMUnitTest &test : more) tests[count++] = test;
#ifdef PG_TEST_CUDA
    static char names[SUITES][80];
    for (size_t q = 0; q < SUITES; q++) {
        snprintf(names[q], sizeof names[q], "%s_on_gpus", suites[q].name);
        tests[count++] = {names[q], every_box_on_gpus_agrees_with_one_gpu, NULL, NULL, (void *)&suites[q]};
    }
    tests[count++] = cmocka_unit_test(f32_cycles_agree_with_one_gpu_on_gpus);
    tests[count++] = cmocka_unit_test(direct_boxes_agree_with_one_gpu_on_gpus);
    tests[count++] = cmocka_unit_test(slopes_in_gpu_memory_have_the_bits_of_one_gpu_on_gpus);
    tests[count++] = cmocka_unit_test(batches_in_f32_agree_with_one_gpu_on_gpus);
    tests[count++] = cmocka_unit_test(obstacles_in_f32_have_the_bits_of_one_gpu_on_gpus);
    tests[count++] = cmocka_unit_test(captured_calls_have_the_same_bits_on_gpus);
    tests[count++] = cmocka_unit_test(captured_calls_among_obstacles_have_the_same_bits_on_gpus);
    tests[count++] = cmocka_unit_test(captures_that_cannot_be_are_refused_by_all_on_gpus);
    tests[count++] = cmocka_unit_test(lines_agree_with_one_gpu_on_gpus);
    tests[count++] = cmocka_unit_test(long_lines_agree_with_one_gpu_on_gpus);
    tests[count++] = cmocka_unit_test(what_gpus_cannot_do_is_refused_by_name_on_gpus);
    tests[count++] = cmocka_unit_test(robust_levels_are_chosen_by_all_ranks_on_gpus);
    tests[count++] = cmocka_unit_test(parts_of_the_fluid_are_those_of_one_gpu_on_gpus);
    tests[count++] = cmocka_unit_test(masks_that_are_wrong_are_refused_by_all_on_gpus);
    tests[count++] = cmocka_unit_test(arrays_that_are_not_aligned_are_refused_on_gpus);
#ifdef PGI_SIMT
    tests[count++] = cmocka_unit_test(unlike_gpus_make_the_same_plans_on_gpus);
#endif
#ifdef PG_USE_NCCL
    static const int with_nccl[] = {1, 2, 4, 7, 8, 10, 11, 12};    // all but sweeps, full multigrid, stretched boxes, advection
    enum { WITH_NCCL = sizeof with_nccl / sizeof *with_nccl };
    static char more_names[WITH_NCCL][80];
    for (int q = 0; q < WITH_NCCL; q++) {
        snprintf(more_names[q], sizeof more_names[q], "%s_by_nccl_on_gpus", suites[with_nccl[q]].name);
        tests[count++] = {more_names[q], every_box_by_nccl_agrees_with_one_gpu, NULL, NULL,
                          (void *)&suites[with_nccl[q]]};
    }
    tests[count++] = cmocka_unit_test(nccl_is_refused_by_name_on_gpus);
    tests[count++] = cmocka_unit_test(captured_calls_after_nccl_brought_ranks_together_on_gpus);
#endif
#endif
    return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
}
