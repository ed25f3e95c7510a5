// NCCL between the devices of the harness: each call, or group of calls, is a kernel of one thread. See README.md.
#include "simt.h"

#include "nccl.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

// What a rank offers, until the other one has taken it
struct offer {
    const char *from;
    size_t bytes;
    bool taken;
};

// The ranks of a communicator. Kernels run one at a time, so they need no lock.
struct world {
    int ranks;
    std::map<std::pair<int, int>, std::deque<offer *>> offers;    // by sender and receiver
    std::map<int, std::shared_ptr<world>> parts;                  // by which call of ncclCommSplit
};

struct ncclComm {
    std::shared_ptr<world> all;
    int rank, device, splits;
};

struct transfer {
    bool sends;
    int peer;
    char *p;
    size_t bytes;
};
struct group {
    int depth;
    ncclComm_t comm;
    cudaStream_t stream;
    std::vector<transfer> list;
};

static std::mutex making;
static std::map<uint64_t, std::shared_ptr<world>> worlds;
static thread_local group *open_group;    // of this thread of the host

const char *ncclGetErrorString(ncclResult_t e) { return e == ncclSuccess ? "no error" : "an error"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static uint64_t last;
    std::lock_guard<std::mutex> hold(making);
    memset(id, 0, sizeof *id);
    memcpy(id->internal, &++last, sizeof last);
    return ncclSuccess;
}

static ncclComm_t new_comm(const std::shared_ptr<world> &all, int rank)
{
    int device = 0;
    cudaGetDevice(&device);
    return new ncclComm{all, rank, device, 0};
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    uint64_t number;
    memcpy(&number, id.internal, sizeof number);
    std::lock_guard<std::mutex> hold(making);
    std::shared_ptr<world> &all = worlds[number];
    if (!all) all.reset(new world{ranks, {}, {}});
    *comm = new_comm(all, rank);
    return rank >= 0 && rank < ranks && all->ranks == ranks ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int, int key, ncclComm_t *part, ncclConfig_t *)    // of one color
{
    if (!comm || key != comm->rank) return ncclInvalidArgument;
    std::lock_guard<std::mutex> hold(making);
    std::shared_ptr<world> &all = comm->all->parts[comm->splits++];
    if (!all) all.reset(new world{comm->all->ranks, {}, {}});
    *part = new_comm(all, key);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) { return comm ? ncclSuccess : ncclInvalidArgument; }
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    delete comm;
    return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *e)
{
    *e = ncclSuccess;
    return comm ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) { return *rank = comm->rank, ncclSuccess; }
ncclResult_t ncclCommCount(ncclComm_t comm, int *ranks) { return *ranks = comm->all->ranks, ncclSuccess; }
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device) { return *device = comm->device, ncclSuccess; }

// The kernel: offers all that is sent, then takes what it receives in the order of the calls.
static void run_transfers(world *all, int rank, const std::vector<transfer> &list)
{
    std::deque<offer> own;
    for (const transfer &t : list)
        if (t.sends) {
            own.push_back({t.p, t.bytes, false});
            all->offers[{rank, t.peer}].push_back(&own.back());
        }
    for (const transfer &t : list) {
        if (t.sends) continue;
        std::deque<offer *> &from = all->offers[{t.peer, rank}];
        while (from.empty()) simt_yield();
        offer *const o = from.front();
        from.pop_front();
        if (o->bytes != t.bytes) simt_wrong("NCCL: %zu bytes are sent, and %zu are received", o->bytes, t.bytes);
        memcpy(t.p, o->from, t.bytes);
        o->taken = true;
    }
    for (const offer &o : own)
        while (!o.taken) simt_yield();
}

static ncclResult_t launch(ncclComm_t comm, cudaStream_t stream, const std::vector<transfer> &list)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream;
    const std::shared_ptr<world> all = comm->all;
    const int rank = comm->rank;
    const cudaError_t e =
        simt_launch(&config, (const void *)run_transfers, [all, rank, list] { run_transfers(all.get(), rank, list); });
    return e == cudaSuccess ? ncclSuccess : ncclInternalError;
}

ncclResult_t ncclGroupStart(void)
{
    if (!open_group) open_group = new group{0, NULL, NULL, {}};
    open_group->depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (!open_group) return ncclInvalidUsage;
    if (--open_group->depth) return ncclSuccess;
    const std::unique_ptr<group> g(open_group);
    open_group = NULL;
    return g->list.empty() ? ncclSuccess : launch(g->comm, g->stream, g->list);
}

static ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const transfer &t)
{
    if (!comm || t.peer < 0 || t.peer >= comm->all->ranks) return ncclInvalidArgument;
    ncclGroupStart();
    open_group->comm = comm;
    open_group->stream = stream;
    open_group->list.push_back(t);
    return ncclGroupEnd();
}

static size_t size_of(ncclDataType_t type) { return type == ncclDouble ? 8 : 1; }

ncclResult_t ncclSend(const void *p, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return add(comm, stream, {true, peer, (char *)p, count * size_of(type)});
}
ncclResult_t ncclRecv(void *p, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return add(comm, stream, {false, peer, (char *)p, count * size_of(type)});
}

ncclResult_t ncclAllGather(const void *own, void *all, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    if (!comm) return ncclInvalidArgument;
    const size_t bytes = count * size_of(type);
    ncclGroupStart();
    ncclResult_t e = ncclSuccess;
    for (int q = 0; q < comm->all->ranks && e == ncclSuccess; q++) {
        char *const slice = (char *)all + (size_t)q * bytes;
        if (q == comm->rank && slice == own) continue;
        e = add(comm, stream, {true, q, (char *)own, bytes});    // to itself too
        if (e == ncclSuccess) e = add(comm, stream, {false, q, slice, bytes});
    }
    const ncclResult_t end = ncclGroupEnd();
    return e == ncclSuccess ? end : e;
}
