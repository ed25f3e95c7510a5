// The transports of >>comm between ranks that are threads with a GPU each, and processes: exchanges against the
// patterns that were sent, sums with the same bits on all ranks, ranks that are missing, graphs and their loops.
#include "ranks_cuda.h"

#include "common.h"

#include <sys/wait.h>

#if PGI_GPU

enum { GUARD = 64 };    // words behind what is received, that nobody may write

static int devices()
{
#ifdef PGI_SIMT
    setenv("SIMT_DEVICES", "4", 1);
#endif
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
    cudaGetLastError();
    return count < 4 ? count : 4;
}

static bool is_simt()
{
#ifdef PGI_SIMT
    return true;
#else
    return false;
#endif
}
static int rounds(int on_a_gpu, int in_simt) { return is_simt() ? in_simt : on_a_gpu; }

// ---- Kernels of the test ----

static __host__ __device__ inline unsigned hash(unsigned a, unsigned b)
{
    unsigned h = a * 0x9e3779b9u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;
    h ^= h >> 15, h *= 0x2c1b3c6du, h ^= h >> 12;
    return h;
}

// Any time up to that, so that no rank is always first
static __device__ inline void linger(unsigned seed, unsigned most_ns)
{
    const uint64_t begin = pgi_device_now(), ns = most_ns ? hash(seed, 77) % most_ns : 0;
    while (pgi_device_now() - begin < ns) pgi_pause();
}

// What goes out in a round, kept on the device so that graphs can repeat it
static __global__ void fill_kernel(unsigned *p, size_t words, unsigned seed, const unsigned *round, unsigned most_ns)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) linger(seed ^ *round, most_ns);
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
        p[i] = hash(seed + *round, (unsigned)i);
}

// What came in: words that are not as they were sent, and behind them, where nothing may be written
static __global__ void check_kernel(const unsigned *p, size_t words, unsigned guard, unsigned seed,
                                    const unsigned *round, int *wrong, unsigned most_ns)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) linger(seed ^ *round ^ 5, most_ns);
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
        if (p[i] != hash(seed + *round, (unsigned)i)) atomicAdd(wrong, 1);
    if (blockIdx.x == 0 && threadIdx.x < guard && p[words + threadIdx.x] != 0) atomicAdd(wrong, 1);
}

static __global__ void next_round_kernel(unsigned *round)
{
    if (threadIdx.x == 0) ++*round;
}

// Numbers of a rank in a round, of many sizes, so that the order of additions is seen; maxima are of what is not
// negative
static __host__ __device__ inline double number_of(int rank, unsigned round, int q, unsigned maxima)
{
    const unsigned h = hash((unsigned)rank * 100 + (unsigned)q, round);
    const double v = ((double)h - 2e9) * ldexp(1.0, (int)(h % 60) - 30);
    return maxima >> q & 1 ? fabs(v) : v;
}
static __global__ void numbers_kernel(double *values, int count, unsigned maxima, int rank, const unsigned *round,
                                      unsigned most_ns)
{
    if (threadIdx.x == 0) linger((unsigned)rank ^ *round, most_ns);
    if ((int)threadIdx.x < count) values[threadIdx.x] = number_of(rank, *round, (int)threadIdx.x, maxima);
}
static __host__ __device__ inline double sum_of(int ranks, unsigned round, int q, unsigned maxima)
{
    double sum = number_of(0, round, q, maxima);
    for (int r = 1; r < ranks; r++) {
        const double v = number_of(r, round, q, maxima);
        sum = maxima >> q & 1 ? fmax(sum, v) : sum + v;
    }
    return sum;
}
static __global__ void check_numbers_kernel(const double *values, int count, int ranks, unsigned maxima,
                                            const unsigned *round, int *wrong)
{
    const int q = (int)threadIdx.x;
    if (q < count && values[q] != sum_of(ranks, *round, q, maxima)) atomicAdd(wrong, 1);
}

template <class... P, class... A> static pg_status launch(rank *r, unsigned blocks, void (*kernel)(P...), A... a)
{
    return pgi_comm_launch(&r->comm, 0, dim3(blocks), 256, r->stream, kernel, a...);
}

// ---- Transports ----

static void by_peers(rank *r)
{
    rank_join(r);
    if (!*r->failure && *r->why) RANK_FAIL(r, "no peers: %s", r->why);
}

#ifdef PG_USE_NCCL
static ncclUniqueId nccl_id;
static void by_nccl(rank *r)    // out of a communicator of the caller's
{
    ncclComm_t given = NULL;
    if (r->number == 0) ncclGetUniqueId(&nccl_id);
    meet(r->place, r->ranks, 60);
    RANK_CHECK(r, ncclCommInitRank(&given, r->ranks, nccl_id, r->number) == ncclSuccess);
    r->kept = given;
    r->give_back = [](void *p) { ncclCommDestroy((ncclComm_t)p); };
    RANK_CHECK(r, pgi_nccl_open(&r->comm, given) == PG_OK);
    RANK_CHECK(r, r->comm.rank == r->number && r->comm.ranks == r->ranks);
}
static void by_peers_over_nccl(rank *r)
{
    by_nccl(r);
    if (!*r->failure) by_peers(r);
}
#endif

struct transport {
    const char *name;
    rank_body connect;
};
static std::vector<transport> transports()
{
    std::vector<transport> all = {{"peers", by_peers}};
#ifdef PG_USE_NCCL
    all.push_back({"NCCL", by_nccl});
    all.push_back({"peers over NCCL", by_peers_over_nccl});
#endif
    return all;
}

// The body on 2 to 4 ranks by every transport
static void on_all(size_t bytes, const rank_body &body)
{
    const int most = devices();
    if (most < 2) skip();
    for (const transport &t : transports())
        for (int ranks = 2; ranks <= most; ranks++) {
            const std::string failure = on_ranks(ranks, bytes, 20, t.connect, body);
            if (!failure.empty()) fail_msg("%s, %d ranks: %s", t.name, ranks, failure.c_str());
        }
}

// ---- Exchanges ----

// Planes down and up: of other sizes, and where they are not on 16 bytes
struct faces {
    bool ring;
    size_t down, up;               // words
    size_t shift_out, shift_in;    // bytes
};

// What a rank exchanges: with the rank below and with the one above, see pgi_message
struct lanes {
    pgi_message message[2];
    unsigned seed_out[2], seed_in[2];
    int count;
};

static unsigned seed_of(int rank, int up) { return 1000000u * (unsigned)(2 * rank + up + 1); }

static void make_lanes(rank *r, const faces &f, lanes *l)
{
    memset(l, 0, sizeof *l);
    for (int turn = 0; turn < 2; turn++) {
        const int up = turn != r->number % 2;    // in a ring of two what goes down from one comes from above to the other
        const int peer = (r->number + (up ? 1 : r->ranks - 1)) % r->ranks;
        if (!f.ring && (up ? r->number == r->ranks - 1 : r->number == 0)) continue;
        pgi_message *const m = &l->message[l->count];
        m->peer = peer;
        m->send_bytes = 4 * (up ? f.up : f.down);
        m->receive_bytes = 4 * (up ? f.down : f.up);
        m->send = take(r, m->send_bytes, f.shift_out);
        m->receive = take(r, m->receive_bytes + 4 * GUARD, f.shift_in);
        RANK_CHECK(r, m->send && m->receive);
        l->seed_out[l->count] = seed_of(r->number, up);
        l->seed_in[l->count++] = seed_of(peer, !up);
    }
}

static void fill(rank *r, const lanes *l, const unsigned *round, unsigned most_ns)
{
    for (int q = 0; q < l->count; q++)
        RANK_CHECK(r, launch(r, 4, fill_kernel, (unsigned *)l->message[q].send, l->message[q].send_bytes / 4,
                             l->seed_out[q], round, most_ns) == PG_OK);
}
static void check(rank *r, const lanes *l, const unsigned *round, int *wrong, unsigned most_ns)
{
    for (int q = 0; q < l->count; q++)
        RANK_CHECK(r, launch(r, 4, check_kernel, (const unsigned *)l->message[q].receive,
                             l->message[q].receive_bytes / 4, GUARD, l->seed_in[q], round, wrong, most_ns) == PG_OK);
}

// Waits for the stream, and sees that nothing was lost and nothing wrong
static void finish(rank *r, const int *wrong)
{
    int found = -1;
    RANK_CHECK(r, r->comm.ops->wait(&r->comm, r->stream) == PG_OK);
    RANK_CHECK(r, r->comm.ops->check(&r->comm) == PG_OK);
    RANK_CUDA(r, cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
    if (found) RANK_FAIL(r, "rank %d: %d words are wrong", r->number, found);
}

// So many rounds with `pairs` lists of messages in turn; ordered where they are two.
static void exchange_rounds(rank *r, const faces &f, int pairs, int count, unsigned most_ns)
{
    lanes l[2];
    unsigned *const round = (unsigned *)take(r, sizeof *round);
    int *const wrong = (int *)take(r, sizeof *wrong);
    for (int k = 0; k < pairs && !*r->failure; k++) {
        make_lanes(r, f, &l[k]);
        for (int q = 0; q < l[k].count; q++) l[k].message[q].ordered = pairs == 2;
        if (*r->failure) return;
        RANK_CHECK(r, r->comm.ops->plan(&r->comm, l[k].message, l[k].count) == PG_OK);
        for (int q = 0; q < l[k].count; q++)    // NCCL's plan has used it
            RANK_CUDA(r, cudaMemset(l[k].message[q].receive, 0, l[k].message[q].receive_bytes));
    }
    RANK_CUDA(r, cudaDeviceSynchronize());
    meet(r->place, r->ranks, 20);
    for (int k = 0; k < count && !*r->failure; k++) {
        const lanes *now = &l[k % pairs];
        RANK_CHECK(r, launch(r, 1, next_round_kernel, round) == PG_OK);
        fill(r, now, round, most_ns);
        RANK_CHECK(r, r->comm.ops->exchange(&r->comm, now->message, now->count, r->stream) == PG_OK);
        check(r, now, round, wrong, most_ns);
    }
    if (!*r->failure) finish(r, wrong);
}

static void exchanges_bring_what_was_sent(void **)
{
    const size_t sizes[][2] = {{1, 1}, {3, 5}, {2 * 33, 33}, {33 * 33 * 2, 33 * 33 * 4}, {0, 7},
                               {513 * 513 * 2, 513 * 513 * 4}};    // words
    const int count = is_simt() ? 5 : 6;    // the last ones are too large for the harness
    on_all((size_t)64 << 20, [&](rank *r) {
        for (int ring = 0; ring < 2; ring++)
            for (int q = 0; q < count; q++)
                for (size_t shift = 0; shift < 16 && !*r->failure; shift += 4) {
                    const size_t before = r->used, *const s = sizes[q];
                    exchange_rounds(r, {ring == 1, s[0], s[1], shift, (shift * 3 + 8) % 16}, 1, 3, 0);
                    if (!*r->failure) exchange_rounds(r, {ring == 1, s[0], s[1], shift, 4}, 2, 4, 0);
                    if (*r->failure) return;
                    RANK_CUDA(r, cudaMemset(r->workspace + before, 0, r->used - before));
                    RANK_CUDA(r, cudaDeviceSynchronize());
                    meet(r->place, r->ranks, 20);    // nobody writes to what another one clears
                    r->used = before;
                }
    });
}

// A flag that is too early shows only now and then.
static void exchanges_thousands_of_times_with_delays(void **)
{
    on_all((size_t)64 << 20, [&](rank *r) {
        for (int ring = 0; ring < 2 && !*r->failure; ring++)
            for (int pairs = 1; pairs <= 2 && !*r->failure; pairs++) {
                exchange_rounds(r, {ring == 1, 33 * 33, 66 * 33, 0, 8}, pairs, rounds(3000, 40), 20000);
                if (!*r->failure && !is_simt())
                    exchange_rounds(r, {ring == 1, 257 * 257 * 2, 257 * 257 * 4, 8, 8}, pairs, 500, 100000);
            }
    });
}

// ---- Sums and gatherings ----

static void sum_rounds(rank *r, int count, unsigned maxima, int times, unsigned most_ns)
{
    double *const values = (double *)take(r, 16 * sizeof *values);
    unsigned *const round = (unsigned *)take(r, sizeof *round);
    int *const wrong = (int *)take(r, sizeof *wrong);
    for (int k = 0; k < times; k++) {
        RANK_CHECK(r, launch(r, 1, next_round_kernel, round) == PG_OK);
        RANK_CHECK(r, launch(r, 1, numbers_kernel, values, count, maxima, r->number, (const unsigned *)round,
                             most_ns) == PG_OK);
        RANK_CHECK(r, r->comm.ops->sum(&r->comm, values, count, maxima, r->stream) == PG_OK);
        RANK_CHECK(r, launch(r, 1, check_numbers_kernel, (const double *)values, count, r->ranks, maxima,
                             (const unsigned *)round, wrong) == PG_OK);
    }
    finish(r, wrong);
    if (*r->failure || !count) return;
    double own[16];
    RANK_CUDA(r, cudaMemcpy(own, values, sizeof own, cudaMemcpyDeviceToHost));
    std::vector<double> gathered((size_t)r->ranks * (size_t)count);
    RANK_CHECK(r, r->comm.ops->gather(&r->comm, own, (size_t)count * sizeof(double), gathered.data()) == PG_OK);
    for (int q = 0; q < r->ranks; q++)
        RANK_CHECK(r, memcmp(own, &gathered[(size_t)(q * count)], (size_t)count * sizeof(double)) == 0);
}

static void sums_have_the_same_bits_on_all_ranks(void **)
{
    on_all((size_t)4 << 20, [&](rank *r) {
        for (int count = 0; count <= PGI_PEER_SUMS && !*r->failure; count++)
            sum_rounds(r, count, 0x5508, rounds(200, 3), 3000);
        if (!*r->failure) sum_rounds(r, 4, 8, rounds(5000, 30), 5000);
    });
}

static void a_sum_keeps_what_is_no_number(void **)
{
    on_all((size_t)1 << 20, [](rank *r) {
        double *const values = (double *)take(r, 2 * sizeof *values), nan = NAN, own[2] = {1, 2};
        if (r->number == r->ranks - 1) own[0] = own[1] = nan;
        RANK_CUDA(r, cudaMemcpy(values, own, sizeof own, cudaMemcpyHostToDevice));
        RANK_CHECK(r, r->comm.ops->sum(&r->comm, values, 2, 2, r->stream) == PG_OK);
        RANK_CUDA(r, cudaStreamSynchronize(r->stream));
        RANK_CUDA(r, cudaMemcpy(own, values, sizeof own, cudaMemcpyDeviceToHost));
        RANK_CHECK(r, own[0] != own[0] && own[1] != own[1]);
        RANK_CHECK(r, r->comm.ops->check(&r->comm) == PG_OK);
        const pg_status too_many = r->comm.ops->sum(&r->comm, values, PGI_PEER_SUMS + 1, 0, r->stream);
        RANK_CHECK(r, too_many == PG_ERROR_ARGUMENT);
    });
}

// A slice of an array to every other rank, and theirs.
static std::vector<pgi_message> to_all(const rank *r, void *values, size_t bytes)
{
    std::vector<pgi_message> all;
    for (int q = 1; q < r->ranks; q++) {
        pgi_message m = {};
        m.peer = (r->number + q) % r->ranks;
        m.send = (char *)values + (size_t)r->number * bytes;
        m.receive = (char *)values + (size_t)m.peer * bytes;
        m.send_bytes = m.receive_bytes = bytes;
        all.push_back(m);
    }
    return all;
}

static void gather_rounds(rank *r, size_t words, int times)
{
    unsigned *const values = (unsigned *)take(r, (size_t)r->ranks * words * 4 + 4 * GUARD);
    unsigned *const round = (unsigned *)take(r, sizeof *round);
    int *const wrong = (int *)take(r, sizeof *wrong);
    RANK_CHECK(r, values && round && wrong);
    std::vector<pgi_message> all = to_all(r, values, 4 * words);
    RANK_CHECK(r, r->comm.ops->plan(&r->comm, all.data(), r->ranks - 1) == PG_OK);
    RANK_CUDA(r, cudaMemset(values, 0, (size_t)r->ranks * words * 4));
    RANK_CUDA(r, cudaDeviceSynchronize());
    meet(r->place, r->ranks, 20);
    for (int k = 0; k < times; k++) {
        RANK_CHECK(r, launch(r, 1, next_round_kernel, round) == PG_OK);
        RANK_CHECK(r, launch(r, 4, fill_kernel, values + (size_t)r->number * words, words, seed_of(r->number, 0),
                             (const unsigned *)round, 10000u) == PG_OK);
        RANK_CHECK(r, r->comm.ops->exchange(&r->comm, all.data(), r->ranks - 1, r->stream) == PG_OK);
        for (int q = r->ranks - 1; q >= 0; q--)    // behind the last one nothing is written
            RANK_CHECK(r, launch(r, 4, check_kernel, (const unsigned *)(values + (size_t)q * words), words,
                                 q < r->ranks - 1 ? 0 : GUARD, seed_of(q, 0), (const unsigned *)round, wrong,
                                 10000u) == PG_OK);
    }
    finish(r, wrong);
}

static void all_ranks_get_all_slices(void **)
{
    on_all((size_t)64 << 20, [](rank *r) {
        const size_t largest = is_simt() ? 5000 : 2000000;
        for (size_t words : {(size_t)333, largest})
            if (!*r->failure) gather_rounds(r, words, rounds(100, 4));
    });
}

// ---- Graphs ----

static void by_graphs(rank *r)
{
    lanes l[2];
    unsigned *const round = (unsigned *)take(r, sizeof *round);
    int *const wrong = (int *)take(r, sizeof *wrong);
    double *const values = (double *)take(r, 4 * sizeof *values);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    for (int k = 0; k < 2; k++) {
        make_lanes(r, {true, 33 * 33 * 2, 33 * 33 * 4, 0, 8}, &l[k]);
        for (int q = 0; q < l[k].count; q++) l[k].message[q].ordered = k;    // the sum stands between
        RANK_CHECK(r, r->comm.ops->plan(&r->comm, l[k].message, l[k].count) == PG_OK);
    }
    for (int k = 0; k < 2; k++)
        for (int q = 0; q < l[k].count; q++)
            RANK_CUDA(r, cudaMemset(l[k].message[q].receive, 0, l[k].message[q].receive_bytes));
    RANK_CUDA(r, cudaDeviceSynchronize());
    RANK_CUDA(r, cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < 6 && !*r->failure; k++) {
        RANK_CHECK(r, launch(r, 1, next_round_kernel, round) == PG_OK);
        fill(r, &l[k % 2], round, 3000);
        RANK_CHECK(r, r->comm.ops->exchange(&r->comm, l[k % 2].message, l[k % 2].count, r->stream) == PG_OK);
        check(r, &l[k % 2], round, wrong, 3000);
        RANK_CHECK(r, launch(r, 1, numbers_kernel, values, 4, 8u, r->number, (const unsigned *)round, 3000u) == PG_OK);
        RANK_CHECK(r, r->comm.ops->sum(&r->comm, values, 4, 8, r->stream) == PG_OK);
        RANK_CHECK(r, launch(r, 1, check_numbers_kernel, (const double *)values, 4, r->ranks, 8u,
                             (const unsigned *)round, wrong) == PG_OK);
    }
    RANK_CUDA(r, cudaStreamEndCapture(r->stream, &graph));
    RANK_CUDA(r, cudaGraphInstantiate(&exec, graph, 0));
    RANK_CUDA(r, cudaGraphUpload(exec, r->stream));
    RANK_CUDA(r, cudaStreamSynchronize(r->stream));
    meet(r->place, r->ranks, 20);
    for (int k = 0; k < rounds(300, 4); k++) RANK_CUDA(r, cudaGraphLaunch(exec, r->stream));
    finish(r, wrong);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}
static void graphs_repeat_exchanges_and_sums(void **) { on_all((size_t)4 << 20, by_graphs); }

#if PGI_CONDITIONAL
// Goes on while the sum of all ranks says so: all must decide alike.
static __global__ void decide_kernel(cudaGraphConditionalHandle handle, const double *values, double limit)
{
    if (threadIdx.x == 0) cudaGraphSetConditional(handle, values[0] < limit);
}
static __global__ void count_kernel(double *values, const unsigned *round, int rank)
{
    if (threadIdx.x == 0) values[0] = (double)*round * (rank + 1);
}

static void body_of_loop(rank *r, const lanes *l, unsigned *round, int *wrong, double *values)
{
    RANK_CHECK(r, launch(r, 1, next_round_kernel, round) == PG_OK);
    fill(r, l, round, 2000);
    RANK_CHECK(r, r->comm.ops->exchange(&r->comm, l->message, l->count, r->stream) == PG_OK);
    check(r, l, round, wrong, 2000);
    RANK_CHECK(r, launch(r, 1, count_kernel, values, (const unsigned *)round, r->number) == PG_OK);
    RANK_CHECK(r, r->comm.ops->sum(&r->comm, values, 1, 0, r->stream) == PG_OK);
}

static void record_loop(rank *r, cudaGraph_t graph, const std::function<void(cudaGraphConditionalHandle)> &body)
{
    cudaGraphConditionalHandle handle = 0;
    cudaGraph_t inner = NULL;
    cudaGraphNode_t node = NULL;
    RANK_CUDA(r, cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
#if CUDART_VERSION >= 13000
    RANK_CUDA(r, cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
#else
    RANK_CUDA(r, cudaGraphAddNode(&node, graph, NULL, 0, &params));
#endif
    RANK_CUDA(r, cudaStreamBeginCaptureToGraph(r->stream, params.conditional.phGraph_out[0], NULL, NULL, 0,
                                               cudaStreamCaptureModeThreadLocal));
    body(handle);
    RANK_CUDA(r, cudaStreamEndCapture(r->stream, &inner));
}

// NCCL records events in graphs that may mix with others, which loops forbid; see pgi_nccl_split.
static bool nccl_fits_loops()
{
#ifdef PG_USE_NCCL
    const char *const mixing = getenv("NCCL_GRAPH_MIXING_SUPPORT");
    return NCCL_VERSION_CODE >= 22900 || (mixing && strcmp(mixing, "0") == 0);
#else
    return false;
#endif
}

static void by_loops(rank *r)
{
    if (strcmp(r->comm.ops->name, "NCCL") == 0 && !nccl_fits_loops()) return;
    lanes l;
    unsigned *const round = (unsigned *)take(r, sizeof *round), reached = 0;
    int *const wrong = (int *)take(r, sizeof *wrong);
    double *const values = (double *)take(r, sizeof *values);
    const unsigned loops = (unsigned)rounds(500, 12);
    const double limit = loops * (double)(r->ranks * (r->ranks + 1) / 2);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    make_lanes(r, {false, (size_t)rounds(2, 1) * 129 * 129, 129 * 129, 0, 0}, &l);
    for (int q = 0; q < l.count; q++) l.message[q].ordered = 1;    // the sum stands between
    RANK_CHECK(r, r->comm.ops->plan(&r->comm, l.message, l.count) == PG_OK);
    RANK_CUDA(r, cudaGraphCreate(&graph, 0));
    record_loop(r, graph, [&](cudaGraphConditionalHandle handle) {
        body_of_loop(r, &l, round, wrong, values);
        if (!*r->failure && launch(r, 1, decide_kernel, handle, (const double *)values, limit) != PG_OK)
            RANK_FAIL(r, "%.400s", r->comm.error);
    });
    if (*r->failure) return;
    RANK_CUDA(r, cudaGraphInstantiate(&exec, graph, 0));
    RANK_CUDA(r, cudaGraphUpload(exec, r->stream));
    RANK_CUDA(r, cudaStreamSynchronize(r->stream));
    meet(r->place, r->ranks, 20);
    RANK_CUDA(r, cudaGraphLaunch(exec, r->stream));
    finish(r, wrong);
    if (*r->failure) return;
    RANK_CUDA(r, cudaMemcpy(&reached, round, sizeof reached, cudaMemcpyDeviceToHost));
    RANK_CHECK(r, reached == loops);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}
static void loops_of_graphs_hold_exchanges_and_sums(void **) { on_all((size_t)4 << 20, by_loops); }
#else
static void loops_of_graphs_hold_exchanges_and_sums(void **) { skip(); }
#endif

// ---- Faults ----

// All but one rank exchange, or sum; the time limit ends it, on all of them, and names it
static void without_one(rank *r, int missing, bool sums)
{
    lanes l;
    double *const values = (double *)take(r, sizeof *values), found = 0;
    make_lanes(r, {true, 1000, 1000, 0, 0}, &l);
    RANK_CHECK(r, r->comm.ops->plan(&r->comm, l.message, l.count) == PG_OK);
    const double begin = seconds();
    if (r->number == missing) {
        while (r->place->over < r->ranks - 1 && seconds() - begin < 30) std::this_thread::yield();
        return;
    }
    for (int k = 0; k < 3; k++)    // what follows is not waited for again
        RANK_CHECK(r, (sums ? r->comm.ops->sum(&r->comm, values, 1, 0, r->stream)
                            : r->comm.ops->exchange(&r->comm, l.message, l.count, r->stream)) == PG_OK);
    RANK_CHECK(r, r->comm.ops->wait(&r->comm, r->stream) == PG_ERROR_COMM);
    r->place->over++;
    RANK_CHECK(r, seconds() - begin < 10);
    RANK_CHECK(r, r->comm.ops->check(&r->comm) == PG_ERROR_COMM);
    char own[40];
    snprintf(own, sizeof own, "rank %d waited", r->number);
    RANK_CHECK(r, strstr(r->comm.error, own) != NULL);
    RANK_CHECK(r, strstr(r->comm.error, sums ? "the numbers of a sum" : "plane") != NULL);
    if (sums) RANK_CUDA(r, cudaMemcpy(&found, values, sizeof found, cudaMemcpyDeviceToHost));
    RANK_CHECK(r, !sums || found != found);
}

static void a_missing_rank_ends_waits_at_the_time_limit(void **)
{
    const int most = devices();
    if (most < 2) skip();
    for (int ranks = 2; ranks <= most; ranks += 2)
        for (int sums = 0; sums < 2; sums++) {
            const auto body = [=](rank *r) { without_one(r, ranks - 1, sums == 1); };
            const std::string failure = on_ranks(ranks, (size_t)1 << 20, 1, by_peers, body);
            if (!failure.empty()) fail_msg("%d ranks, %s: %s", ranks, sums ? "sum" : "exchange", failure.c_str());
        }
}

#ifdef PG_USE_NCCL
// NCCL's own kernels wait for ever: the host gives up the communicator, and its stream comes free.
static void without_one_by_nccl(rank *r)
{
    double *const values = (double *)take(r, sizeof *values);
    const double begin = seconds();
    if (r->number == 0) {
        while (r->place->over < r->ranks - 1 && seconds() - begin < 30) std::this_thread::yield();
        return;
    }
    RANK_CHECK(r, r->comm.ops->sum(&r->comm, values, 1, 0, r->stream) == PG_OK);
    RANK_CHECK(r, r->comm.ops->wait(&r->comm, r->stream) == PG_ERROR_COMM);
    r->place->over++;
    RANK_CHECK(r, strstr(r->comm.error, "not done within the time limit") != NULL);
    RANK_CUDA(r, cudaStreamSynchronize(r->stream));
    RANK_CHECK(r, seconds() - begin < 20);
    RANK_CHECK(r, r->comm.ops->check(&r->comm) == PG_ERROR_COMM);
}
static void nccl_gives_up_a_missing_rank(void **)
{
    if (is_simt() || devices() < 2) skip();    // what stands in for NCCL waits for ever
    const std::string failure = on_ranks(devices(), (size_t)1 << 20, 5, by_nccl, without_one_by_nccl);
    if (!failure.empty()) fail_msg("%s", failure.c_str());
}
#else
static void nccl_gives_up_a_missing_rank(void **) { skip(); }
#endif

static void an_abort_ends_waits_at_once(void **)
{
    if (devices() < 2) skip();
    const std::string failure = on_ranks(devices(), (size_t)1 << 20, 60, by_peers, [](rank *r) {
        double *const values = (double *)take(r, sizeof *values);
        if (r->number == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            r->comm.ops->abort(&r->comm);
            return;
        }
        const double begin = seconds();
        RANK_CHECK(r, r->comm.ops->sum(&r->comm, values, 1, 0, r->stream) == PG_OK);
        RANK_CUDA(r, cudaStreamSynchronize(r->stream));
        RANK_CHECK(r, seconds() - begin < 10);
        RANK_CHECK(r, r->comm.ops->check(&r->comm) == PG_ERROR_COMM);
        RANK_CHECK(r, strstr(r->comm.error, "when rank 1 gave up") != NULL);
    });
    if (!failure.empty()) fail_msg("%s", failure.c_str());
}

// All ranks are told the same.
static void plans_that_do_not_agree_are_refused(void **)
{
    if (devices() < 2) skip();
    const std::string failure = on_ranks(2, (size_t)1 << 20, 10, by_peers, [](rank *r) {
        char *const a = (char *)take(r, 1000), *const b = (char *)take(r, 1000);
        pgi_message m[3] = {};
        for (pgi_message &each : m) each.peer = 1 - r->number, each.send = a, each.receive = b;
        m[0].send_bytes = r->number ? 400 : 404, m[0].receive_bytes = 400;
        RANK_CHECK(r, r->comm.ops->plan(&r->comm, m, 1) == PG_ERROR_ARGUMENT);
        RANK_CHECK(r, strstr(r->comm.error, "rank 0 sends 404 bytes to rank 1, which expects 400") != NULL);
        RANK_CHECK(r, r->comm.ops->plan(&r->comm, m, r->number ? 1 : 2) == PG_ERROR_ARGUMENT);
        RANK_CHECK(r, strstr(r->comm.error, "ranks 0 and 1 do not have the same number") != NULL);
        RANK_CHECK(r, r->comm.ops->plan(&r->comm, m, 3) == PG_ERROR_ARGUMENT);
        m[0].send_bytes = m[0].receive_bytes = r->number ? 6 : 8;
        RANK_CHECK(r, r->comm.ops->plan(&r->comm, m, 1) == PG_ERROR_ARGUMENT);
        RANK_CHECK(r, strstr(r->comm.error, "rank 1 has") != NULL);
        m[0].send_bytes = m[0].receive_bytes = 8;
        m[0].receive = r->number ? (void *)b : (void *)(r->workspace + r->bytes);
        RANK_CHECK(r, r->comm.ops->plan(&r->comm, m, 1) == PG_ERROR_ARGUMENT);
        RANK_CHECK(r, strstr(r->comm.error, "rank 0 has") != NULL);
        m[0].receive = b;
        RANK_CHECK(r, r->comm.ops->plan(&r->comm, m, 1) == PG_OK);
    });
    if (!failure.empty()) fail_msg("%s", failure.c_str());
}

static void ranks_without_a_way_to_each_other_keep_their_transport(void **)
{
    if (devices() < 2) skip();
    const auto kept = [](const char *why) {
        return [=](rank *r) {
            if (!strstr(r->why, why)) RANK_FAIL(r, "\"%s\", not \"%s\"", r->why, why);
            RANK_CHECK(r, r->comm.ops == &meeting_ops && r->comm.state == r->place);
        };
    };
    std::string failure = on_ranks(
        2, (size_t)1 << 20, 10,
        [](rank *r) {
            RANK_CUDA(r, cudaSetDevice(0));
            rank_join(r);
        },
        kept("ranks 0 and 1 are on one GPU"));
    if (!failure.empty()) fail_msg("%s", failure.c_str());
    failure = on_ranks(
        2, (size_t)1 << 20, 10,
        [](rank *r) {
            void *pooled = NULL;
            RANK_CUDA(r, cudaMallocAsync(&pooled, (size_t)1 << 20, r->stream));
            RANK_CUDA(r, cudaStreamSynchronize(r->stream));
            pgi_mailbox *const box = (pgi_mailbox *)(r->number ? pooled : r->workspace);
            void *const space = r->number ? pooled : r->workspace;
            RANK_CHECK(r, pgi_peers_join(&r->comm, space, (size_t)1 << 20, box, r->why) == PG_OK);
            RANK_CUDA(r, cudaFreeAsync(pooled, r->stream));
        },
        kept("the workspace of rank 1 is not memory of cudaMalloc"));
    if (!failure.empty()) fail_msg("%s", failure.c_str());
#ifdef PGI_SIMT
    setenv("SIMT_NO_PEERS", "1", 1);
    failure = on_ranks(2, (size_t)1 << 20, 10, rank_join, kept("does not reach that of rank"));
    unsetenv("SIMT_NO_PEERS");
    if (!failure.empty()) fail_msg("%s", failure.c_str());
#endif
}

// ---- Processes ----

// One of the processes of a test: where they meet comes as a number of an open file.
static int as_process(int number, int ranks, int file)
{
    rank r = {};
    r.number = number;
    r.ranks = ranks;
    r.place = meeting_in(file);
    r.bytes = (size_t)16 << 20;
    r.comm.time_limit = 20;
    rank_begin(&r, number);
    if (!*r.failure) by_peers(&r);
    if (!*r.failure && !((pgi_peers_state *)r.comm.state)->opened[(number + 1) % ranks])
        snprintf(r.failure, sizeof r.failure, "rank %d has not opened the memory of another process", number);
    if (!*r.failure) exchange_rounds(&r, {true, 257 * 257 * 2, 33 * 33, 0, 8}, 1, 300, 20000);
    if (!*r.failure) exchange_rounds(&r, {false, 257 * 257 * 2, 33 * 33, 0, 8}, 2, 300, 20000);
    if (!*r.failure) sum_rounds(&r, 4, 8, 2000, 3000);
    if (!*r.failure) gather_rounds(&r, 30000, 50);
    if (*r.failure) fprintf(stderr, "%s\n", r.failure);
    rank_end(&r);
    return *r.failure != 0;
}

static const char *own_name;

static void processes_reach_each_other(void **)
{
    const int ranks = devices();
    if (is_simt() || ranks < 2) skip();
    char name[] = "/tmp/test_comm_XXXXXX";
    const int file = mkstemp(name);
    assert_true(file >= 0 && unlink(name) == 0 && ftruncate(file, sizeof(meeting)) == 0);
    std::vector<pid_t> children;
    fflush(NULL);
    for (int q = 0; q < ranks; q++) {
        char text[3][16];
        snprintf(text[0], 16, "%d", q);
        snprintf(text[1], 16, "%d", ranks);
        snprintf(text[2], 16, "%d", file);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {    // a new program: a copy of this one could not use its devices
            execl(own_name, own_name, "--rank", text[0], text[1], text[2], (char *)NULL);
            _exit(127);
        }
        children.push_back(child);
    }
    bool good = true;
    for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    close(file);
    assert_true(good);
}

int main(int argc, char **argv)
{
    own_name = argv[0];
    load_all_kernels();
    if (argc == 5 && strcmp(argv[1], "--rank") == 0) return as_process(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_bring_what_was_sent),
        cmocka_unit_test(exchanges_thousands_of_times_with_delays),
        cmocka_unit_test(sums_have_the_same_bits_on_all_ranks),
        cmocka_unit_test(a_sum_keeps_what_is_no_number),
        cmocka_unit_test(all_ranks_get_all_slices),
        cmocka_unit_test(graphs_repeat_exchanges_and_sums),
        cmocka_unit_test(loops_of_graphs_hold_exchanges_and_sums),
        cmocka_unit_test(a_missing_rank_ends_waits_at_the_time_limit),
        cmocka_unit_test(an_abort_ends_waits_at_once),
        cmocka_unit_test(nccl_gives_up_a_missing_rank),
        cmocka_unit_test(plans_that_do_not_agree_are_refused),
        cmocka_unit_test(ranks_without_a_way_to_each_other_keep_their_transport),
        cmocka_unit_test(processes_reach_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main() { return 77; }    // skipped: without GPUs there are no peers
#endif
