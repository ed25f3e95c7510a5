// What ranks of one host pay for talking: barriers, sums, exchanges of planes, gatherings, each inside a graph and
// outside, and inside the loop of a graph. A thread a GPU. It prints a table and, with --out FILE.json, writes it.
//
//     comm [--ranks N] [--quick] [--out FILE.json]
//
//     sed '/^.. >>levels/,$d' poisson_gpu.cu >poisson_gpu_to_comm.h       (see test/ranks_cuda.h)
//     nvcc -O3 -std=c++17 -arch=native -I. -Itest -o comm bench/comm.cu      (and -DPG_USE_NCCL ... -lnccl)
#include "ranks_cuda.h"

#include <algorithm>
#include <ctime>
#include <mutex>
#include <string>

enum { REPEATS = 11, WARM = 2 };

struct row {
    std::string transport, name;
    double inside, outside, bytes, bound;    // us of one; bytes that leave a rank; bound: of the time inside, 0: none
};
static std::vector<row> rows;
static std::mutex rows_lock;
static bool quick;
static const char *transport_name = "peers";

typedef std::function<pg_status(rank *, int turn)> operation;    // puts one on the stream of the rank

static double median(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v.empty() ? 0 : v[v.size() / 2];
}

// us of one of `many`, by events around them; all ranks begin together, and the slowest one counts.
static double time_of(rank *r, int many, const std::function<bool()> &all)
{
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    std::vector<double> times;
    for (int k = -WARM; k < REPEATS && !*r->failure; k++) {
        float ms = 0;
        cudaStreamSynchronize(r->stream);
        meet(r->place, r->ranks, 60);
        cudaEventRecord(begin, r->stream);
        const bool good = all();
        cudaEventRecord(end, r->stream);
        const cudaError_t e = cudaStreamSynchronize(r->stream);
        if (!good || e != cudaSuccess || r->comm.ops->check(&r->comm) != PG_OK)
            snprintf(r->failure, sizeof r->failure, "rank %d: %s; %.400s", r->number, cudaGetErrorString(e),
                     r->comm.error);
        cudaEventElapsedTime(&ms, begin, end);
        if (k >= 0) times.push_back(1e3 * ms / many);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    double own = median(times), each[PGI_PEERS] = {}, worst = 0;
    if (r->comm.ops->gather(&r->comm, &own, sizeof own, each) != PG_OK) return 0;
    for (int q = 0; q < r->ranks; q++) worst = std::max(worst, each[q]);
    return worst;
}

static void record(rank *r, cudaGraphExec_t *exec, int many, const operation &op)
{
    cudaGraph_t graph = NULL;
    RANK_CUDA(r, cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
    pg_status status = PG_OK;
    for (int k = 0; k < many && status == PG_OK; k++) status = op(r, k);
    RANK_CUDA(r, cudaStreamEndCapture(r->stream, &graph));
    RANK_CHECK(r, status == PG_OK);
    RANK_CUDA(r, cudaGraphInstantiate(exec, graph, 0));
    RANK_CUDA(r, cudaGraphUpload(*exec, r->stream));
    RANK_CUDA(r, cudaGraphDestroy(graph));
}

static void keep(rank *r, const std::string &name, double inside, double outside, double bytes, double bound)
{
    if (r->number != 0) return;
    std::lock_guard<std::mutex> hold(rows_lock);
    rows.push_back({transport_name, name, inside, outside, bytes, bound});
    printf("%-16s %-48s %9.2f", transport_name, name.c_str(), inside);
    if (outside == outside) printf(" %9.2f", outside);
    if (bytes > 0) printf(" %8.1f GB/s", 1e-3 * bytes / inside);
    if (bound > 0) printf("   bound %.1f: %s", bound, inside <= bound ? "holds" : "MISSED");
    printf("\n");
    fflush(stdout);
}

static void measure(rank *r, const std::string &name, int many, double bytes, double bound, const operation &op)
{
    cudaGraphExec_t exec = NULL;
    if (*r->failure) return;
    record(r, &exec, many, op);
    if (*r->failure) return;
    const double inside = time_of(r, many, [&] { return cudaGraphLaunch(exec, r->stream) == cudaSuccess; });
    const double outside = time_of(r, many, [&] {
        for (int k = 0; k < many; k++)
            if (op(r, k) != PG_OK) return false;
        return true;
    });
    cudaGraphExecDestroy(exec);
    if (!*r->failure) keep(r, name, inside, outside, bytes, bound);
}

// Planes for both neighbours, all ranks in a ring. turn: of two grids that take turns
static void plan_faces(rank *r, size_t bytes, int ordered, pgi_message m[2])
{
    memset(m, 0, 2 * sizeof *m);
    for (int q = 0; q < 2; q++) {
        const int up = q != r->number % 2;    // in a ring of two: see pgi_message
        m[q].peer = (r->number + (up ? 1 : r->ranks - 1)) % r->ranks;
        m[q].send_bytes = m[q].receive_bytes = bytes;
        m[q].send = take(r, bytes);
        m[q].receive = take(r, bytes);
        m[q].ordered = ordered;
        RANK_CHECK(r, m[q].send && m[q].receive);
    }
    RANK_CHECK(r, r->comm.ops->plan(&r->comm, m, 2) == PG_OK);
}

// The plan's figures are of 4 H200; 1.15 times that is the bound for peers.
static double bound_of(int m, int planes)
{
    if (strcmp(transport_name, "peers") != 0) return 0;
    return m == 513 && planes == 2 ? 1.15 * 29 : 0;
}

static void measure_faces(rank *r)
{
    const size_t before = r->used;
    for (int m : {33, 65, 129, 257, 513, 1025})
        for (int planes = 1; planes <= 4 && !*r->failure; planes *= 2) {
            if (quick && (planes == 4 || m == 1025)) continue;
            const size_t bytes = (size_t)m * (size_t)m * 8 * (size_t)planes;
            char name[80];
            pgi_message turn[2][2], same[2];
            r->used = before;
            for (auto &t : turn)
                if (!*r->failure) plan_faces(r, bytes, 1, t);
            if (!*r->failure) plan_faces(r, bytes, 0, same);
            const int many = m <= 257 ? 30 : 10;
            snprintf(name, sizeof name, "faces %d^2 x %d, two grids in turn", m, planes);
            measure(r, name, many, 2.0 * (double)bytes, bound_of(m, planes),
                    [&](rank *own, int k) { return own->comm.ops->exchange(&own->comm, turn[k % 2], 2, own->stream); });
            snprintf(name, sizeof name, "faces %d^2 x %d, one grid", m, planes);
            measure(r, name, many, 2.0 * (double)bytes, 0,
                    [&](rank *own, int) { return own->comm.ops->exchange(&own->comm, same, 2, own->stream); });
        }
    r->used = before;
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

static void measure_gatherings(rank *r)
{
    const size_t before = r->used;
    for (int m : {17, 33, 65, 129}) {
        if (*r->failure) return;
        const size_t bytes = ((size_t)m * (size_t)m * (size_t)m * 8 / (size_t)r->ranks + 15) / 16 * 16;
        char name[80];
        r->used = before;
        void *const values = take(r, (size_t)r->ranks * bytes);
        std::vector<pgi_message> all = to_all(r, values, bytes);
        RANK_CHECK(r, values && r->comm.ops->plan(&r->comm, all.data(), r->ranks - 1) == PG_OK);
        snprintf(name, sizeof name, "all ranks get %d^3", m);
        measure(r, name, 30, (double)bytes * (r->ranks - 1), 0, [&](rank *own, int) {
            return own->comm.ops->exchange(&own->comm, all.data(), own->ranks - 1, own->stream);
        });
    }
    r->used = before;
}

// The begin and the end of a kernel that finds nothing to do
static __global__ void nothing_kernel() { pgi_await(); }

static void measure_sums(rank *r)
{
    double *const values = (double *)take(r, 16 * sizeof *values);
    const bool peers = strcmp(transport_name, "peers") == 0;
    if (peers)
        measure(r, "a kernel that does nothing", 50, 0, 0, [](rank *own, int) {
            return pgi_comm_launch(&own->comm, 1, dim3(1), 32, own->stream, nothing_kernel);
        });
    for (int count : {0, 1, 4, 9}) {
        char name[80];
        snprintf(name, sizeof name, count ? "sum of %d bytes" : "barrier", 8 * count);
        measure(r, name, 50, 0, peers && count == 4 ? std::min(3.0, 1.15 * 2.2) : 0,
                [=](rank *own, int) { return own->comm.ops->sum(&own->comm, values, count, 8, own->stream); });
    }
}

#if PGI_CONDITIONAL
static __global__ void decide_kernel(cudaGraphConditionalHandle handle, unsigned *loops, unsigned most)
{
    cudaGraphSetConditional(handle, ++*loops % most != 0);
}

// An iteration of a loop of a graph: what is measured, and a decision
static void measure_loop(rank *r, const char *name, const operation &op)
{
    enum { LOOPS = 300 };
    unsigned *const loops = (unsigned *)take(r, sizeof *loops);
    cudaGraph_t graph = NULL, inner = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraphNode_t node = NULL;
    cudaGraphConditionalHandle handle = 0;
    cudaGraphNodeParams params = {};
    if (*r->failure) return;
    RANK_CUDA(r, cudaMemset(loops, 0, sizeof *loops));
    RANK_CUDA(r, cudaGraphCreate(&graph, 0));
    RANK_CUDA(r, cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
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
    const bool good = op(r, 0) == PG_OK && pgi_comm_launch(&r->comm, 0, dim3(1), 1, r->stream, decide_kernel, handle,
                                                           loops, (unsigned)LOOPS) == PG_OK;
    RANK_CUDA(r, cudaStreamEndCapture(r->stream, &inner));
    RANK_CHECK(r, good);
    const cudaError_t e = cudaGraphInstantiate(&exec, graph, 0);
    if (e != cudaSuccess) RANK_FAIL(r, "%s, %s: %s", transport_name, name, cudaGetErrorString(e));
    RANK_CUDA(r, cudaGraphUpload(exec, r->stream));
    const double us = time_of(r, LOOPS, [&] { return cudaGraphLaunch(exec, r->stream) == cudaSuccess; });
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    if (!*r->failure) keep(r, name, us, NAN, 0, 0);
}

static void measure_loops(rank *r)
{
    double *const values = (double *)take(r, 4 * sizeof *values);
    pgi_message m[2];
    const auto sum = [=](rank *own, int) { return own->comm.ops->sum(&own->comm, values, 4, 8, own->stream); };
    measure_loop(r, "iteration of a loop: a decision", [](rank *, int) { return PG_OK; });
    measure_loop(r, "iteration of a loop: sum, decision", sum);
    if (!*r->failure) plan_faces(r, (size_t)129 * 129 * 8, 1, m);
    measure_loop(r, "iteration of a loop: faces 129^2, sum, decision", [&](rank *own, int k) {
        const pg_status status = own->comm.ops->exchange(&own->comm, m, 2, own->stream);
        return status == PG_OK ? sum(own, k) : status;
    });
}
#else
static void measure_loops(rank *) {}
#endif

static void measure_all(rank *r)
{
    measure_sums(r);
    if (!*r->failure) measure_faces(r);
    if (!*r->failure) measure_gatherings(r);
    if (!*r->failure) measure_loops(r);
}

static void by_peers(rank *r)
{
    rank_join(r);
    if (!*r->failure && *r->why) RANK_FAIL(r, "no peers: %s", r->why);
}
#ifdef PG_USE_NCCL
static ncclUniqueId nccl_id;
static void by_nccl(rank *r)
{
    ncclComm_t given = NULL;
    if (r->number == 0) ncclGetUniqueId(&nccl_id);
    meet(r->place, r->ranks, 60);
    RANK_CHECK(r, ncclCommInitRank(&given, r->ranks, nccl_id, r->number) == ncclSuccess);
    r->kept = given;
    r->give_back = [](void *p) { ncclCommDestroy((ncclComm_t)p); };
    RANK_CHECK(r, pgi_nccl_open(&r->comm, given) == PG_OK);
}
#endif

static bool bench(const char *name, int ranks, const rank_body &connect)
{
    transport_name = name;
    const std::string failure = on_ranks(ranks, (size_t)1 << 30, 20, connect, measure_all);
    if (!failure.empty()) fprintf(stderr, "%s: %s\n", name, failure.c_str());
    return failure.empty();
}

static void write_json(const char *path, int ranks, bool complete)
{
    FILE *const out = fopen(path, "w");
    cudaDeviceProp device;
    char date[20];
    const time_t now = time(NULL);
    if (!out || cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        fprintf(stderr, "%s cannot be written\n", path);
        return;
    }
    strftime(date, sizeof date, "%Y-%m-%d", localtime(&now));
    fprintf(out, "{\n  \"device\": \"%s\",\n  \"ranks\": %d,\n  \"date\": \"%s\",\n  \"complete\": %s,\n  \"comm\": [",
            device.name, ranks, date, complete ? "true" : "false");
    for (size_t q = 0; q < rows.size(); q++) {
        const row &r = rows[q];
        fprintf(out, "%s\n    {\"transport\": \"%s\", \"what\": \"%s\", \"us_in_graph\": %.4g", q ? "," : "",
                r.transport.c_str(), r.name.c_str(), r.inside);
        if (r.outside == r.outside) fprintf(out, ", \"us_outside\": %.4g", r.outside);
        if (r.bytes > 0) fprintf(out, ", \"bytes\": %.0f, \"gb_per_s\": %.4g", r.bytes, 1e-3 * r.bytes / r.inside);
        if (r.bound > 0)
            fprintf(out, ", \"bound\": %.4g, \"holds\": %s", r.bound, r.inside <= r.bound ? "true" : "false");
        fprintf(out, "}");
    }
    fprintf(out, "\n  ]\n}\n");
    fclose(out);
}

int main(int argc, char **argv)
{
    int ranks = 0;
    const char *path = NULL;
    load_all_kernels();
    for (int q = 1; q < argc; q++)
        if (!strcmp(argv[q], "--quick"))
            quick = true;
        else if (!strcmp(argv[q], "--ranks") && q + 1 < argc)
            ranks = atoi(argv[++q]);
        else if (!strcmp(argv[q], "--out") && q + 1 < argc)
            path = argv[++q];
        else {
            fprintf(stderr, "usage: comm [--ranks N] [--quick] [--out FILE.json]\n");
            return 2;
        }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
        fprintf(stderr, "there are no two GPUs here\n");
        return 1;
    }
    if (ranks < 2 || ranks > devices) ranks = std::min(devices, (int)PGI_PEERS);
    printf("%d ranks                                        us of one: in a graph, outside\n", ranks);
    bool complete = bench("peers", ranks, by_peers);
#ifdef PG_USE_NCCL
    complete = bench("NCCL", ranks, by_nccl) && complete;
#endif
    if (path) write_json(path, ranks, complete);
    bool good = complete;
    for (const row &r : rows) good = good && (r.bound == 0 || r.inside <= r.bound);
    return !good;
}
