// Ranks for tests and the bench of >>comm: threads of this program with a GPU each, or processes, and a transport that
// gathers through memory that they share.
//
// What includes this needs poisson_gpu.cu only up to the section after >>comm, which nvcc compiles in seconds:
//     sed '/^.. >>levels/,$d' poisson_gpu.cu >poisson_gpu_to_comm.h
#ifndef PG_TEST_RANKS_CUDA_H
#define PG_TEST_RANKS_CUDA_H

// Much of that has its users further down.
#ifdef __CUDACC__
#pragma nv_diag_suppress 177
#endif
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#include "poisson_gpu_to_comm.h"

#if PGI_GPU

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

// Where ranks meet: zeroed memory that all of them see.
struct meeting {
    enum { RANKS = 16, BYTES = 1 << 16, SECONDS = 60 };    // SECONDS: longer than any test lets its ranks wait
    std::atomic<int> arrived, turn;
    std::atomic<int> over;    // ranks that have done what a test waits for
    char data[RANKS][BYTES];
};

static inline meeting *meeting_in(int file)    // -1: of this process
{
    const int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
    void *p = mmap(NULL, sizeof(meeting), PROT_READ | PROT_WRITE, flags, file, 0);
    return p == MAP_FAILED ? NULL : (meeting *)p;
}

static inline double seconds() { return 1e-9 * (double)std::chrono::steady_clock::now().time_since_epoch().count(); }

static inline bool meet(meeting *m, int ranks, double limit)
{
    const int turn = m->turn;
    if (++m->arrived == ranks) {
        m->arrived = 0;
        m->turn++;
        return true;
    }
    for (const double begin = seconds(); m->turn == turn; std::this_thread::yield())
        if (seconds() - begin > limit) return false;
    return true;
}

static inline pg_status meeting_gather(pgi_comm *c, const void *own, size_t bytes, void *all)
{
    meeting *const m = (meeting *)c->state;
    if (bytes > meeting::BYTES) return pgi_refuse(c->error, PG_ERROR_ARGUMENT, "%zu bytes to gather", bytes);
    memcpy(m->data[c->rank], own, bytes);
    const bool first = meet(m, c->ranks, meeting::SECONDS);
    for (int r = 0; r < c->ranks && first; r++) memcpy((char *)all + (size_t)r * bytes, m->data[r], bytes);
    if (first && meet(m, c->ranks, meeting::SECONDS)) return PG_OK;
    return pgi_refuse(c->error, PG_ERROR_COMM, "rank %d was alone where ranks gather", c->rank);
}
static inline void meeting_abort(pgi_comm *) {}
static inline void meeting_close(pgi_comm *c) { c->ops = NULL; }

static const pgi_transport_ops meeting_ops = {"meeting", meeting_gather, NULL, NULL,         NULL,
                                              NULL,      NULL,           meeting_abort, meeting_close};

// One rank: its part of the memory that others reach, and what went wrong.
struct rank {
    int number, ranks;
    pgi_comm comm;
    meeting *place;
    cudaStream_t stream;
    char *workspace;
    size_t bytes, used;
    pgi_mailbox *box;
    char why[120];    // that there are no peers
    void *kept;       // what the transport was made of, and how it is given back at the end
    void (*give_back)(void *);
    char failure[600];
};

// Ends the body of a rank; others come to their time limits.
#define RANK_FAIL(r, ...)                                                                                              \
    do {                                                                                                               \
        snprintf((r)->failure, sizeof(r)->failure, __VA_ARGS__);                                                       \
        return;                                                                                                        \
    } while (0)
#define RANK_CHECK(r, condition)                                                                                       \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            RANK_FAIL(r, "rank %d, line %d: %.150s; %.300s", (r)->number, __LINE__, #condition, (r)->comm.error);      \
    } while (0)
#define RANK_CUDA(r, call)                                                                                             \
    do {                                                                                                               \
        const cudaError_t error_ = (call);                                                                             \
        if (error_ != cudaSuccess)                                                                                     \
            RANK_FAIL(r, "rank %d, line %d: %.150s: %.150s", (r)->number, __LINE__, #call,                             \
                      cudaGetErrorString(error_));                                                                     \
    } while (0)

// Bytes of the workspace, `shift` behind a multiple of 256.
static inline void *take(rank *r, size_t bytes, size_t shift = 0)
{
    char *const p = r->workspace + r->used + shift;
    r->used = (r->used + shift + bytes + 255) / 256 * 256;
    return r->used <= r->bytes ? p : NULL;
}

static inline void rank_begin(rank *r, int device)
{
    RANK_CUDA(r, cudaSetDevice(device));
    RANK_CUDA(r, cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
    RANK_CUDA(r, cudaMalloc((void **)&r->workspace, r->bytes));
    RANK_CUDA(r, cudaMemset(r->workspace, 0, r->bytes));
    r->box = (pgi_mailbox *)take(r, sizeof(pgi_mailbox));
    r->comm.rank = r->number;
    r->comm.ranks = r->ranks;
    r->comm.ops = &meeting_ops;
    r->comm.state = r->place;
    RANK_CUDA(r, cudaDeviceSynchronize());
}

static inline void rank_join(rank *r)
{
    RANK_CHECK(r, pgi_peers_join(&r->comm, r->workspace, r->bytes, r->box, r->why) == PG_OK);
}

static inline void rank_end(rank *r)
{
    if (r->stream) cudaStreamSynchronize(r->stream);
    if (r->comm.ops) r->comm.ops->close(&r->comm);
    if (r->kept) r->give_back(r->kept);
    if (r->workspace) cudaFree(r->workspace);
    if (r->stream) cudaStreamDestroy(r->stream);
}

// First in main. A kernel that is loaded when it is first launched can wait for one that runs; that one may wait for a rank
// whose kernels are not loaded yet.
static inline void load_all_kernels() { setenv("CUDA_MODULE_LOADING", "EAGER", 1); }

typedef std::function<void(rank *)> rank_body;

// Runs a body on so many ranks, a thread and a GPU each. Returns what went wrong first, or nothing. connect: what takes
// a rank from the meeting to the transport that is wanted
static inline std::string on_ranks(int ranks, size_t bytes, double time_limit, const rank_body &connect,
                                   const rank_body &body)
{
    meeting *const place = meeting_in(-1);
    std::vector<rank> all((size_t)ranks);
    std::vector<std::thread> threads;
    for (int q = 0; q < ranks; q++) {
        rank *const r = &all[(size_t)q];
        memset(r, 0, sizeof *r);
        r->number = q;
        r->ranks = ranks;
        r->place = place;
        r->bytes = bytes;
        r->comm.time_limit = time_limit;
        threads.emplace_back([=] {
            rank_begin(r, q);
            if (!*r->failure) connect(r);
            if (!*r->failure) body(r);
            rank_end(r);
        });
    }
    for (auto &t : threads) t.join();
    munmap(place, sizeof *place);
    for (const rank &r : all)
        if (*r.failure) return r.failure;
    return "";
}

#endif
#endif
