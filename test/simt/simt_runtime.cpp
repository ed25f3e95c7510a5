// Devices, memory, streams, events, captures and graphs. Nothing runs at its submission: an operation is run when
// something that waits needs it, after what it depends on. See README.md.
#include "simt.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

enum { DEVICES = 8, USUAL_DEVICES = 2, SHARED = 48 << 10, MAX_BLOCK = 1024, MAX_CLUSTER = 16 };
static const size_t device_memory = (size_t)4 << 30;

// Threads of the host have the harness one at a time, in the order in which they asked for it, and as often as they
// like before they leave it.
struct queue_lock {
    std::mutex mutex;
    std::condition_variable called;
    uint64_t asked, serving;
    std::atomic<std::thread::id> owner;
    int depth;

    void take(int as_often)
    {
        std::unique_lock<std::mutex> hold(mutex);
        const uint64_t mine = asked++;
        called.wait(hold, [&] { return serving == mine; });
        owner = std::this_thread::get_id();
        depth = as_often;
    }
    int leave()
    {
        std::unique_lock<std::mutex> hold(mutex);
        const int was = depth;
        owner = std::thread::id();
        serving++;
        called.notify_all();
        return was;
    }
    void lock()
    {
        if (owner == std::this_thread::get_id())
            depth++;
        else
            take(1);
    }
    void unlock()
    {
        if (--depth == 0) leave();
    }
};
static queue_lock one_at_a_time;
#define ENTER() std::lock_guard<queue_lock> entered_(one_at_a_time)

void simt_give_way()
{
    const int depth = one_at_a_time.leave();
    std::this_thread::yield();
    one_at_a_time.take(depth);
}

// Kernels find other things in the place of thread-local variables; these belong to the host.
static thread_local int current_device;
static thread_local cudaError_t last_error;

static cudaError_t result(cudaError_t e)
{
    if (e != cudaSuccess) last_error = e;
    return e;
}

// ---- Errors, devices ----------------------------------------------------------------------------------------------

const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
#define NAME(name, number)                                                                                             \
    case name: return #name;
        SIMT_ERRORS(NAME)
#undef NAME
    }
    return "unknown error";
}
const char *cudaGetErrorString(cudaError_t e) { return cudaGetErrorName(e); }
cudaError_t cudaPeekAtLastError(void) { return last_error; }
cudaError_t cudaGetLastError(void) { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaRuntimeGetVersion(int *v) { return *v = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *v)
{
    const char *const text = getenv("SIMT_DRIVER");    // tests change it
    return *v = text ? atoi(text) : CUDART_VERSION, cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count)
{
    const char *const text = getenv("SIMT_DEVICES");    // tests change it
    *count = text ? std::min(atoi(text), (int)DEVICES) : (int)USUAL_DEVICES;
    return *count > 0 ? cudaSuccess : result(cudaErrorNoDevice);
}
// Of those that are not there, two can still be named.
static bool is_device(int device)
{
    const char *const text = getenv("SIMT_DEVICES");
    return device >= 0 && device < std::max((int)USUAL_DEVICES, std::min(text ? atoi(text) : 0, (int)DEVICES));
}
cudaError_t cudaGetDevice(int *device) { return *device = current_device, cudaSuccess; }
cudaError_t cudaSetDevice(int device)
{
    if (!is_device(device)) return result(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

// SIMT_CC, from the environment: the compute capability times ten.
static int capability()
{
    static const int cc = getenv("SIMT_CC") ? atoi(getenv("SIMT_CC")) : 90;
    return cc;
}
// SIMT_PROCESSORS: multiprocessors of a device.
static int processors()
{
    static const int count = getenv("SIMT_PROCESSORS") ? atoi(getenv("SIMT_PROCESSORS")) : 4;
    return count;
}
static bool is_lesser(int device) { return device % 2 && getenv("SIMT_UNLIKE"); }    // tests change it
static int shared_optin(int device)
{
    return (capability() < 80 || is_lesser(device) ? 64 : capability() < 90 ? 163 : 227) << 10;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    if (!is_device(device)) return result(cudaErrorInvalidDevice);
    const int cc = capability();
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = MAX_BLOCK; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = SHARED; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = shared_optin(device); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = shared_optin(device) + 1024; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = cc < 80 ? 0 : 1024; break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = 65536; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = cc < 80 ? 1024 : 2048; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = cc < 80 ? 16 : 32; break;
    case cudaDevAttrMultiProcessorCount:
        if (getenv("SIMT_NO_PROCESSORS")) return result(cudaErrorNotSupported);
        *value = is_lesser(device) ? (processors() + 1) / 2 : processors();
        break;
    case cudaDevAttrWarpSize: *value = warpSize; break;
    case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
    case cudaDevAttrComputeCapabilityMajor: *value = cc / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = cc % 10; break;
    case cudaDevAttrClusterLaunch: *value = cc >= 90; break;
    case cudaDevAttrCooperativeLaunch: *value = 0; break;
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    default: return result(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    if (!is_device(device)) return result(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    strcpy(p->name, "SIMT on the CPU");
    p->totalGlobalMem = device_memory;
    p->sharedMemPerBlock = SHARED;
    p->sharedMemPerBlockOptin = (size_t)shared_optin(device);
    p->sharedMemPerMultiprocessor = (size_t)shared_optin(device) + 1024;
    p->major = capability() / 10, p->minor = capability() % 10;
    p->multiProcessorCount = processors();
    p->maxThreadsPerMultiProcessor = capability() < 80 ? 1024 : 2048;
    p->maxThreadsPerBlock = MAX_BLOCK;
    p->warpSize = warpSize;
    p->l2CacheSize = 1 << 20;
    return cudaSuccess;
}

// ---- Streams ------------------------------------------------------------------------------------------------------

// The first operations of a stream, up to that number.
struct point {
    CUstream_st *stream;
    uint64_t number;
};

struct operation {
    std::function<void()> run;
    std::vector<point> after;
    bool by_host;
};

struct capture {
    CUgraph_st *graph;
    CUstream_st *origin;
    cudaStreamCaptureMode mode;
    bool owns_graph, broken;
    std::vector<CUstream_st *> streams;
    std::thread::id thread;    // that began it
};

struct CUstream_st {
    int device;
    bool blocking, is_default, destroyed;
    std::deque<operation> queue;
    uint64_t submitted, done;
    bool running;    // an operation has begun, and may wait for memory to change
    struct capture *capture;
    std::vector<CUgraphNode_st *> tips;    // what the next node captured comes after
};

struct CUevent_st {
    point at;
    double milliseconds;
    struct capture *capture;
    std::vector<CUgraphNode_st *> tips;
};

struct CUgraphNode_st {
    CUgraph_st *graph;
    std::function<void()> run;
    std::vector<CUgraphNode_st *> after;
    bool conditional;
    cudaConditionalNodeParams params;
    std::unique_ptr<CUgraph_st> body;
    cudaGraph_t body_handle;
};

struct CUgraph_st {
    std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};

static std::vector<std::unique_ptr<CUstream_st>> streams, retired;    // kept for ever, as points name them
static std::vector<capture *> captures;

static CUstream_st *new_stream(int device, bool blocking, bool is_default)
{
    const auto in_use = [](const auto &s) { return !s->destroyed || s->done < s->submitted; };
    const auto end = std::stable_partition(streams.begin(), streams.end(), in_use);
    std::move(end, streams.end(), std::back_inserter(retired));
    streams.erase(end, streams.end());
    streams.emplace_back(new CUstream_st());
    CUstream_st *s = streams.back().get();
    s->device = device, s->blocking = blocking, s->is_default = is_default;
    return s;
}

static CUstream_st *stream_of(cudaStream_t s)
{
    static CUstream_st *defaults[DEVICES];
    if (s) {
        if (s->destroyed) simt_wrong("a stream is used that was destroyed");
        return s;
    }
    if (!defaults[current_device]) defaults[current_device] = new_stream(current_device, true, true);
    return defaults[current_device];
}

static void run_until(CUstream_st *s, uint64_t number)
{
    while (s->done < number) {
        if (s->running) {    // by another thread of the host
            simt_give_way();
            continue;
        }
        s->running = true;
        operation o = std::move(s->queue.front());
        s->queue.pop_front();
        for (const point &p : o.after) run_until(p.stream, p.number);
        o.run();
        s->running = false;
        s->done++;
    }
}

static std::vector<CUstream_st *> all_streams()    // as they are now: others may come while one runs
{
    std::vector<CUstream_st *> all;
    for (const auto &s : streams) all.push_back(s.get());
    return all;
}

// to_the_end: also what another thread of the host is at
static void run_device(int device, bool to_the_end)
{
    for (bool moved = true; moved;) {
        moved = false;
        const std::vector<CUstream_st *> all = all_streams();
        std::vector<int> order(all.size());
        simt_permute(order.data(), (int)order.size());
        for (int q : order) {
            CUstream_st *s = all[(size_t)q];
            if (s->device != device || s->done == s->submitted || (s->running && !to_the_end)) continue;
            run_until(s, s->done + 1);
            moved = true;
        }
    }
}

static void submit(CUstream_st *s, std::function<void()> run, bool by_host = false, const point *also = NULL)
{
    operation o;
    o.run = std::move(run);
    o.by_host = by_host;
    if (also) o.after.push_back(*also);
    for (const auto &other : streams)    // the default stream and those that block wait for each other
        if (other.get() != s && other->device == s->device && other->done < other->submitted &&
            ((s->is_default && other->blocking) || (other->is_default && s->blocking)))
            o.after.push_back({other.get(), other->submitted});
    s->queue.push_back(std::move(o));
    s->submitted++;
    bool held = simt.delay == SIMT_LATE;    // a function of the host may wait for what the host does next
    for (const auto &other : streams)
        for (const operation &p : other->queue) held |= p.by_host;
    if (!held) run_device(s->device, false);
}

// ---- Captures -----------------------------------------------------------------------------------------------------

static CUgraphNode_st *add_node(CUgraph_st *graph, const std::vector<CUgraphNode_st *> &after)
{
    graph->nodes.emplace_back(new CUgraphNode_st());
    CUgraphNode_st *n = graph->nodes.back().get();
    n->graph = graph;
    n->after = after;
    return n;
}

// What a call does that touches the default stream, or waits, while a capture is under way that forbids it.
static cudaError_t break_captures(bool (*forbidden)(const capture *, const CUstream_st *), const CUstream_st *s,
                                  cudaError_t e)
{
    bool found = false;
    for (capture *c : captures)
        if (forbidden(c, s)) found = c->broken = true;
    return found ? result(e) : cudaSuccess;
}
static thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;
static cudaError_t unsafe_call()
{
    if (mode_of_thread == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    return break_captures(
        [](const capture *c, const CUstream_st *) {
            const bool own = c->thread == std::this_thread::get_id(),
                       others = mode_of_thread == cudaStreamCaptureModeGlobal;
            return (c->mode == cudaStreamCaptureModeGlobal && (own || others)) ||
                   (c->mode == cudaStreamCaptureModeThreadLocal && own);
        },
        NULL, cudaErrorStreamCaptureUnsupported);
}
static cudaError_t default_stream_call(const CUstream_st *s)
{
    if (!s->is_default) return cudaSuccess;
    return break_captures(
        [](const capture *c, const CUstream_st *used) {
            return c->origin->blocking && c->origin->device == used->device;
        },
        s, cudaErrorStreamCaptureImplicit);
}
static cudaError_t waiting_call(CUstream_st *s)
{
    if (s->capture) {
        s->capture->broken = true;
        return result(cudaErrorStreamCaptureUnsupported);
    }
    const cudaError_t e = default_stream_call(s);
    return e != cudaSuccess ? e : unsafe_call();
}

// Puts an operation on a stream, or into the graph that the stream is captured into.
static cudaError_t enqueue(CUstream_st *s, std::function<void()> run, bool by_host = false)
{
    if (s->capture) {
        if (s->capture->broken) return result(cudaErrorStreamCaptureInvalidated);
        CUgraphNode_st *n = add_node(s->capture->graph, s->tips);
        n->run = std::move(run);
        s->tips = {n};
        return cudaSuccess;
    }
    const cudaError_t e = default_stream_call(s);
    if (e == cudaSuccess) submit(s, std::move(run), by_host);
    return e;
}

static cudaError_t begin_capture(cudaStream_t stream, CUgraph_st *graph, const cudaGraphNode_t *after, size_t count,
                                 cudaStreamCaptureMode mode)
{
    CUstream_st *s = stream_of(stream);
    if (s->is_default) return result(cudaErrorStreamCaptureUnsupported);
    if (s->capture) return result(cudaErrorInvalidValue);
    s->capture = new capture{graph, s, mode, false, false, {s}, std::this_thread::get_id()};
    s->tips.assign(after, after + count);
    captures.push_back(s->capture);
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    std::swap(*mode, mode_of_thread);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    ENTER();
    CUgraph_st *graph = new CUgraph_st();
    const cudaError_t e = begin_capture(stream, graph, NULL, 0, mode);
    if (e == cudaSuccess)
        stream->capture->owns_graph = true;
    else
        delete graph;
    return e;
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *after,
                                          const cudaGraphEdgeData *, size_t count, enum cudaStreamCaptureMode mode)
{
    ENTER();
    return begin_capture(stream, graph, after, count, mode);
}

// Is n among the nodes, or among those that they come after, directly or not?
static bool is_before(std::vector<CUgraphNode_st *> nodes, CUgraphNode_st *n)
{
    std::set<CUgraphNode_st *> seen;
    while (!nodes.empty()) {
        CUgraphNode_st *last = nodes.back();
        nodes.pop_back();
        if (last == n) return true;
        if (seen.insert(last).second) nodes.insert(nodes.end(), last->after.begin(), last->after.end());
    }
    return false;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    capture *c = s->capture;
    *graph = NULL;
    if (!c || c->origin != s) return result(cudaErrorStreamCaptureUnmatched);
    bool unjoined = false;
    for (CUstream_st *other : c->streams)
        for (CUgraphNode_st *tip : other->tips) unjoined |= !is_before(s->tips, tip);
    for (CUstream_st *other : c->streams) {
        other->capture = NULL;
        other->tips.clear();
    }
    captures.erase(std::find(captures.begin(), captures.end(), c));
    const bool broken = c->broken;
    if (!broken && !unjoined)
        *graph = c->graph;
    else if (c->owns_graph)
        delete c->graph;
    delete c;
    return result(broken ? cudaErrorStreamCaptureInvalidated : unjoined ? cudaErrorStreamCaptureUnjoined : cudaSuccess);
}

static cudaStreamCaptureStatus status_of(const CUstream_st *s)
{
    return !s->capture          ? cudaStreamCaptureStatusNone
           : s->capture->broken ? cudaStreamCaptureStatusInvalidated
                                : cudaStreamCaptureStatusActive;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    const cudaError_t e = default_stream_call(s);
    *status = status_of(s);
    return e;
}

static cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status, cudaGraph_t *graph,
                                const cudaGraphNode_t **after, size_t *count)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    *status = status_of(s);
    if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
    if (graph) *graph = s->capture->graph;
    if (after) *after = s->tips.data();
    if (count) *count = s->tips.size();
    return cudaSuccess;
}

static cudaError_t set_tips(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    if (status_of(s) != cudaStreamCaptureStatusActive) return result(cudaErrorInvalidValue);
    if (flags == cudaStreamSetCaptureDependencies) s->tips.clear();
    s->tips.insert(s->tips.end(), nodes, nodes + count);
    return cudaSuccess;
}

// ---- Graphs -------------------------------------------------------------------------------------------------------

struct condition {
    CUgraph_st *graph;
    unsigned value, initial;
    bool has_initial, is_set;
};
static std::map<cudaGraphConditionalHandle, condition> conditions;

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned value,
                                             unsigned flags)
{
    ENTER();
    static cudaGraphConditionalHandle last;
    *handle = ++last;
    conditions[*handle] = {graph, 0, value, flags == cudaGraphCondAssignDefault, false};
    return cudaSuccess;
}

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value)
{
    const auto c = conditions.find(handle);
    if (c == conditions.end()) simt_wrong("there is no graph condition %llu", handle);
    c->second.value = value;
    c->second.is_set = true;
}

static cudaError_t add_conditional(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   struct cudaGraphNodeParams *p)
{
    ENTER();
    const auto c = conditions.find(p->conditional.handle);
    if (p->type != cudaGraphNodeTypeConditional || p->conditional.size != 1) return result(cudaErrorNotSupported);
    if (c == conditions.end() || c->second.graph != graph) return result(cudaErrorInvalidValue);
    CUgraphNode_st *n = add_node(graph, std::vector<CUgraphNode_st *>(after, after + count));
    n->conditional = true;
    n->params = p->conditional;
    n->body.reset(new CUgraph_st());
    n->body_handle = n->body.get();
    p->conditional.phGraph_out = &n->body_handle;
    *node = n;
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *,
                                     cudaGraph_t *graph, const cudaGraphNode_t **after, const cudaGraphEdgeData **,
                                     size_t *count)
{
    return capture_info(stream, status, graph, after, count);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *,
                                                size_t count, unsigned flags)
{
    return set_tips(stream, nodes, count, flags);
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                             const cudaGraphEdgeData *, size_t count, struct cudaGraphNodeParams *p)
{
    return add_conditional(node, graph, after, count, p);
}
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *,
                                        cudaGraph_t *graph, const cudaGraphNode_t **after, size_t *count)
{
    return capture_info(stream, status, graph, after, count);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count,
                                                unsigned flags)
{
    return set_tips(stream, nodes, count, flags);
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                             struct cudaGraphNodeParams *p)
{
    return add_conditional(node, graph, after, count, p);
}
#endif

// A graph as it is run: for each node how many others come before it, and which come after.
struct plan {
    struct step {
        std::shared_ptr<CUgraphNode_st> node;
        int before;
        std::vector<int> next;
        std::unique_ptr<plan> body;
    };
    std::vector<step> steps;
};

static void make_plan(const CUgraph_st *graph, plan *p, std::vector<cudaGraphConditionalHandle> *handles)
{
    std::map<const CUgraphNode_st *, int> number;
    for (const auto &n : graph->nodes) number[n.get()] = (int)number.size();
    p->steps.resize(graph->nodes.size());
    for (size_t q = 0; q < graph->nodes.size(); q++) {
        plan::step &s = p->steps[q];
        s.node = graph->nodes[q];
        s.before = (int)s.node->after.size();
        for (const CUgraphNode_st *before : s.node->after) {
            if (!number.count(before)) simt_wrong("a graph node depends on a node of another graph");
            p->steps[(size_t)number[before]].next.push_back((int)q);
        }
        if (!s.node->conditional) continue;
        handles->push_back(s.node->params.handle);
        s.body.reset(new plan());
        make_plan(s.node->body.get(), s.body.get(), handles);
    }
}

static bool holds(cudaGraphConditionalHandle handle)
{
    const condition &c = conditions[handle];
    if (!c.is_set) simt_wrong("a conditional node runs whose condition nobody has set in this launch");
    return c.value != 0;
}

static void run_plan(const plan &p)
{
    std::vector<int> waits, ready, order;
    for (size_t q = 0; q < p.steps.size(); q++) {
        waits.push_back(p.steps[q].before);
        if (!p.steps[q].before) ready.push_back((int)q);
    }
    while (!ready.empty()) {
        order.resize(ready.size());
        simt_permute(order.data(), (int)order.size());
        const int q = ready[(size_t)order[0]];
        ready.erase(ready.begin() + order[0]);
        const plan::step &s = p.steps[(size_t)q];
        if (!s.node->conditional)
            s.node->run();
        else
            while (holds(s.node->params.handle)) {
                run_plan(*s.body);
                if (s.node->params.type == cudaGraphCondTypeIf) break;
            }
        for (int next : s.next)
            if (--waits[(size_t)next] == 0) ready.push_back(next);
    }
}

struct CUgraphExec_st {
    std::shared_ptr<plan> steps;
    std::vector<cudaGraphConditionalHandle> handles;
};

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned)
{
    ENTER();
    *graph = new CUgraph_st();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    ENTER();
    if (!graph) return result(cudaErrorInvalidValue);
    *exec = new CUgraphExec_st();
    (*exec)->steps.reset(new plan());
    make_plan(graph, (*exec)->steps.get(), &(*exec)->handles);
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    ENTER();
    return exec ? enqueue(stream_of(stream), [] {}) : result(cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    ENTER();
    if (!exec) return result(cudaErrorInvalidValue);
    CUstream_st *s = stream_of(stream);
    if (s->capture) return result(cudaErrorNotSupported);    // would be a child graph
    const std::shared_ptr<plan> steps = exec->steps;
    const std::vector<cudaGraphConditionalHandle> handles = exec->handles;
    return enqueue(s, [steps, handles] {
        for (cudaGraphConditionalHandle h : handles) {
            condition &c = conditions[h];
            c.value = c.initial;
            c.is_set = c.has_initial;
        }
        run_plan(*steps);
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    ENTER();
    delete exec;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    ENTER();
    delete graph;
    return cudaSuccess;
}

// ---- Memory -------------------------------------------------------------------------------------------------------

struct allocation {
    size_t bytes;
    int device;
    cudaMemoryType type;
    bool pooled;
};
static std::map<const char *, allocation> allocations;
static size_t allocated[DEVICES];

// The allocation that p points into, or just behind.
static const std::pair<const char *const, allocation> *find_allocation(const void *p)
{
    auto a = allocations.upper_bound((const char *)p);
    if (a == allocations.begin()) return NULL;
    a--;
    return (const char *)p <= a->first + a->second.bytes ? &*a : NULL;
}

static void check_guards(const char *what)
{
    for (const auto &a : allocations) simt_guarded_check(a.first, a.second.bytes, what);
}

static cudaError_t allocate(void **p, size_t bytes, cudaMemoryType type)
{
    const int device = current_device;
    *p = NULL;
    if (type == cudaMemoryTypeDevice && bytes > device_memory - allocated[device])
        return result(cudaErrorMemoryAllocation);
    *p = simt_guarded_new(bytes);
    if (!*p) return result(cudaErrorMemoryAllocation);
    allocations[(const char *)*p] = {bytes, device, type, false};
    if (type == cudaMemoryTypeDevice) allocated[device] += bytes;
    return cudaSuccess;
}

static void deallocate(void *p)
{
    const auto a = allocations.find((const char *)p);
    if (a == allocations.end()) simt_wrong("%p is freed, but no allocation begins there", p);
    if (a->second.type == cudaMemoryTypeDevice) allocated[a->second.device] -= a->second.bytes;
    simt_guarded_delete((char *)p, a->second.bytes, "at its release");
    allocations.erase(a);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER();
    *total = device_memory;
    *free_bytes = device_memory - allocated[current_device];
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    ENTER();
    const cudaError_t e = unsafe_call();
    return e != cudaSuccess ? e : allocate(p, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    ENTER();
    const cudaError_t e = unsafe_call();
    return e != cudaSuccess ? e : allocate(p, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFree(void *p)
{
    ENTER();
    const cudaError_t e = unsafe_call();
    if (e != cudaSuccess || !p) return e;
    const auto *a = find_allocation(p);
    if (a) run_device(a->second.device, true);
    deallocate(p);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p) { return cudaFree(p); }

cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t stream)
{
    ENTER();
    if (stream_of(stream)->capture) return result(cudaErrorNotSupported);    // would be a node
    const cudaError_t e = allocate(p, bytes, cudaMemoryTypeDevice);
    if (e == cudaSuccess) allocations[(const char *)*p].pooled = true;
    return e;
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    if (s->capture) return result(cudaErrorNotSupported);
    return enqueue(s, [p] { deallocate(p); });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *p)
{
    ENTER();
    memset(attributes, 0, sizeof *attributes);
    const auto *a = find_allocation(p);
    attributes->type = a ? a->second.type : cudaMemoryTypeUnregistered;
    attributes->device = a ? a->second.device : -2;
    attributes->hostPointer = a && a->second.type == cudaMemoryTypeDevice ? NULL : (void *)p;
    attributes->devicePointer = a ? (void *)p : NULL;
    return cudaSuccess;
}

// Is p memory of the device, if it must be, and all of it in one allocation?
static bool is_good(const void *p, size_t bytes, bool on_device)
{
    const auto *a = find_allocation(p);
    if ((a && a->second.type == cudaMemoryTypeDevice) != on_device) return false;
    return !a || (const char *)p + bytes <= a->first + a->second.bytes;
}

static cudaError_t copy_on(CUstream_st *s, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                           size_t height, cudaMemcpyKind kind)
{
    if (!width || !height) return cudaSuccess;
    const size_t to_bytes = (height - 1) * to_pitch + width, from_bytes = (height - 1) * from_pitch + width;
    if (kind != cudaMemcpyDefault &&
        (!is_good(to, to_bytes, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
         !is_good(from, from_bytes, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)))
        return result(cudaErrorInvalidValue);
    return enqueue(s, [=] {
        for (size_t q = 0; q < height; q++)
            memmove((char *)to + q * to_pitch, (const char *)from + q * from_pitch, width);
    });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    ENTER();
    return copy_on(stream_of(stream), to, bytes, from, bytes, bytes, 1, kind);
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    ENTER();
    return copy_on(stream_of(stream), to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    ENTER();
    CUstream_st *s = stream_of(NULL);
    cudaError_t e = waiting_call(s);
    if (e == cudaSuccess) e = copy_on(s, to, bytes, from, bytes, bytes, 1, kind);
    if (e == cudaSuccess && kind != cudaMemcpyDeviceToDevice) run_until(s, s->submitted);
    return e;
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
    ENTER();
    if (!is_good(p, bytes, true)) return result(cudaErrorInvalidValue);
    return enqueue(stream_of(stream), [=] { memset(p, value, bytes); });
}
cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    ENTER();
    const cudaError_t e = unsafe_call();
    return e != cudaSuccess ? e : cudaMemsetAsync(p, value, bytes, NULL);
}

// ---- Peers --------------------------------------------------------------------------------------------------------

// Kernels reach the memory of all devices, whoever has asked for it.
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device)
{
    if (!is_device(device) || length < 13) return result(cudaErrorInvalidValue);
    snprintf(id, (size_t)length, "0000:%02x:00.0", device);
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!is_device(device) || !is_device(peer)) return result(cudaErrorInvalidDevice);
    *can = device != peer && !getenv("SIMT_NO_PEERS");
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned)
{
    static bool enabled[DEVICES][DEVICES];
    ENTER();
    int can = 0;
    const cudaError_t e = cudaDeviceCanAccessPeer(&can, current_device, peer);
    if (e != cudaSuccess || !can) return e != cudaSuccess ? e : result(cudaErrorPeerAccessUnsupported);
    return result(std::exchange(enabled[current_device][peer], true) ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess);
}

// Of memory of cudaMalloc alone; no other process is there to open it.
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *p)
{
    ENTER();
    const auto *a = find_allocation(p);
    memset(handle, 0, sizeof *handle);
    return a && a->second.type == cudaMemoryTypeDevice && !a->second.pooled ? cudaSuccess
                                                                             : result(cudaErrorInvalidValue);
}
cudaError_t cudaIpcOpenMemHandle(void **, cudaIpcMemHandle_t, unsigned)
{
    return result(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaIpcCloseMemHandle(void *) { return result(cudaErrorInvalidResourceHandle); }

// ---- Kernels ------------------------------------------------------------------------------------------------------

static std::map<std::pair<int, const void *>, int> dynamic_limit;    // of a device and a kernel
static int dynamic_limit_of(const void *kernel)
{
    const auto known = dynamic_limit.find({current_device, kernel});
    return known == dynamic_limit.end() ? (int)SHARED : known->second;
}

cudaError_t simt_function_attributes(cudaFuncAttributes *a, const void *kernel)
{
    ENTER();
    memset(a, 0, sizeof *a);
    a->binaryVersion = a->ptxVersion = capability();
    a->numRegs = 64;
    a->maxThreadsPerBlock = MAX_BLOCK;
    a->maxDynamicSharedSizeBytes = dynamic_limit_of(kernel);
    return cudaSuccess;
}

cudaError_t simt_set_function_attribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    ENTER();
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || value > shared_optin(current_device)) return result(cudaErrorInvalidValue);
    if (value < dynamic_limit_of(kernel))
        simt_wrong("a kernel's limit of dynamic shared memory is lowered from %d to %d bytes, while another thread may "
                   "be about to launch it with more",
                   dynamic_limit_of(kernel), value);
    dynamic_limit[{current_device, kernel}] = value;
    return cudaSuccess;
}

cudaError_t simt_blocks_per_multiprocessor(int *blocks, const void *, int threads, size_t dynamic_bytes)
{
    const int by_threads = (capability() < 80 ? 1024 : 2048) / std::max(threads, 1);
    const size_t by_memory = ((size_t)shared_optin(current_device) + 1024) / (dynamic_bytes + 1024);
    *blocks = std::min(by_threads, (int)by_memory);
    return cudaSuccess;
}

static dim3 cluster_of(const cudaLaunchConfig_t *c)
{
    for (unsigned q = 0; q < c->numAttrs; q++) {
        const auto &v = c->attrs[q].val.clusterDim;
        if (c->attrs[q].id == cudaLaunchAttributeClusterDimension) return dim3(v.x, v.y, v.z);
    }
    return dim3();
}

cudaError_t simt_clusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *c)
{
    const dim3 n = cluster_of(c);
    int blocks = 0;
    simt_blocks_per_multiprocessor(&blocks, kernel, (int)(c->blockDim.x * c->blockDim.y * c->blockDim.z),
                                   c->dynamicSmemBytes);
    *clusters = capability() < 90 ? 0 : blocks * processors() / (int)(n.x * n.y * n.z);
    return cudaSuccess;
}

cudaError_t simt_launch(const cudaLaunchConfig_t *c, const void *kernel, std::function<void()> thread)
{
    ENTER();
    CUstream_st *s = stream_of(c->stream);
    const dim3 g = c->gridDim, b = c->blockDim, n = cluster_of(c);
    const uint64_t threads = (uint64_t)b.x * b.y * b.z, cluster = (uint64_t)n.x * n.y * n.z;
    const size_t limit = (size_t)dynamic_limit_of(kernel);
    if (s->device != current_device) return result(cudaErrorInvalidResourceHandle);
    if (!threads || threads > MAX_BLOCK || b.z > 64) return result(cudaErrorInvalidConfiguration);
    if (!g.x || !g.y || !g.z || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535)
        return result(cudaErrorInvalidConfiguration);
    if (!cluster || cluster > MAX_CLUSTER || (cluster > 1 && capability() < 90))
        return result(cudaErrorInvalidConfiguration);
    if (g.x % n.x || g.y % n.y || g.z % n.z) return result(cudaErrorInvalidConfiguration);
    if (c->dynamicSmemBytes > limit) return result(cudaErrorInvalidValue);
    const simt_kernel k = {kernel, g, b, n, c->dynamicSmemBytes, std::move(thread)};
    return enqueue(s, [k] {
        simt_run(k);
        check_guards("a kernel");
    });
}

// ---- Streams and events, as seen by the host ----------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    ENTER();
    *stream = new_stream(current_device, !(flags & cudaStreamNonBlocking), false);
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamDestroy(cudaStream_t stream)    // its work goes on
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    if (s->is_default) return result(cudaErrorInvalidResourceHandle);
    if (s->capture) simt_wrong("a stream is destroyed while it is being captured");
    s->destroyed = true;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    const cudaError_t e = waiting_call(s);
    if (e != cudaSuccess) return e;
    for (CUstream_st *other : all_streams())    // the default stream is done when those that block are
        if (s->is_default && other->blocking && other->device == s->device) run_until(other, other->submitted);
    run_until(s, s->submitted);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    ENTER();
    const cudaError_t e = unsafe_call();
    if (e != cudaSuccess) return e;
    run_device(current_device, true);
    return cudaSuccess;
}

// Asking moves the stream on by one operation, so that asking again and again ends.
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    const cudaError_t e = waiting_call(s);
    if (e != cudaSuccess) return e;
    if (s->done == s->submitted) return cudaSuccess;
    if (s->running)
        simt_give_way();
    else if (!s->queue.front().by_host)
        run_until(s, s->done + 1);
    return cudaErrorNotReady;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user)
{
    ENTER();
    return enqueue(
        stream_of(stream), [=] { function(user); }, true);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    ENTER();
    *e = new CUevent_st();
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    ENTER();
    if (e->at.stream) run_until(e->at.stream, e->at.number);
    delete e;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    e->capture = s->capture;
    e->tips = s->tips;
    if (s->capture) return s->capture->broken ? result(cudaErrorStreamCaptureInvalidated) : cudaSuccess;
    const cudaError_t error = enqueue(s, [e] { e->milliseconds = 1e-6 * (double)simt_now(); });
    if (error == cudaSuccess) e->at = {s, s->submitted};
    return error;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned)
{
    ENTER();
    CUstream_st *s = stream_of(stream);
    if (e->capture && std::find(captures.begin(), captures.end(), e->capture) != captures.end()) {
        if (s->capture && s->capture != e->capture) return result(cudaErrorStreamCaptureIsolation);
        if (!s->capture) {
            s->capture = e->capture;
            s->capture->streams.push_back(s);
        }
        s->tips.insert(s->tips.end(), e->tips.begin(), e->tips.end());
        return cudaSuccess;
    }
    if (s->capture) {
        s->capture->broken = true;
        return result(cudaErrorStreamCaptureIsolation);
    }
    const cudaError_t error = default_stream_call(s);
    if (error == cudaSuccess && e->at.stream)
        submit(
            s, [] {}, false, &e->at);
    return error;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    ENTER();
    const cudaError_t error = e->capture ? result(cudaErrorStreamCaptureUnsupported) : unsafe_call();
    if (error == cudaSuccess && e->at.stream) run_until(e->at.stream, e->at.number);
    return error;
}
cudaError_t cudaEventQuery(cudaEvent_t e)
{
    ENTER();
    if (!e->at.stream || e->at.stream->done >= e->at.number) return cudaSuccess;
    if (e->at.stream->running)
        simt_give_way();
    else if (!e->at.stream->queue.front().by_host)
        run_until(e->at.stream, e->at.stream->done + 1);
    return cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    ENTER();
    if (!begin->at.stream || !end->at.stream) return result(cudaErrorInvalidResourceHandle);
    if (begin->at.stream->done < begin->at.number || end->at.stream->done < end->at.number)
        return result(cudaErrorNotReady);
    *milliseconds = (float)(end->milliseconds - begin->milliseconds);
    return cudaSuccess;
}
