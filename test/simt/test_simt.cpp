// The harness itself: what is right works, in every order; what is wrong is caught. Each wrong kernel runs in a process
// of its own, since the harness ends it.
#include "simt.h"

#include "cuda_pipeline_primitives.h"

#include "../common.h"

#include <cmath>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CUDA(call) assert_int_equal(call, cudaSuccess)

template <class... P, class... A> static void launch(cudaStream_t stream, unsigned blocks, unsigned threads,
                                                     size_t dynamic, unsigned cluster, void (*kernel)(P...),
                                                     A... arguments)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(blocks), c.blockDim = dim3(threads);
    c.dynamicSmemBytes = dynamic;
    c.stream = stream;
    c.attrs = &attribute, c.numAttrs = 1;
    CUDA(cudaLaunchKernelEx(&c, kernel, arguments...));
}

static double *device_doubles(size_t count)
{
    double *p = NULL;
    CUDA(cudaMalloc(&p, count * sizeof(double)));
    return p;
}

static std::vector<double> fetch(const double *device, size_t count)
{
    std::vector<double> host(count);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(host.data(), device, count * sizeof(double), cudaMemcpyDeviceToHost));
    return host;
}

// Calls a test in all orders, with work late and early.
static void in_every_order(void (*test)())
{
    for (int order = SIMT_FORWARD; order <= SIMT_SHUFFLED; order++)
        for (int delay = SIMT_LATE; delay <= SIMT_EARLY; delay++) {
            simt.order = (simt_order)order, simt.delay = (simt_delay)delay;
            test();
        }
    simt.order = SIMT_FORWARD, simt.delay = SIMT_LATE;
}

// Runs wrong() in another process, which must end with an error that names what is wrong.
static void must_be_caught(void (*wrong)(), const char *named)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], 2);
        close(ends[0]);
        wrong();
        _exit(0);
    }
    close(ends[1]);
    std::vector<char> text(1 << 16);
    size_t used = 0;
    for (ssize_t n; used + 1 < text.size() && (n = read(ends[0], &text[used], text.size() - 1 - used)) > 0;)
        used += (size_t)n;
    while (used + 1 == text.size() && read(ends[0], text.data(), 1000) > 0) {
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) fail_msg("not caught: %s", named);
    if (!strstr(text.data(), named)) fail_msg("caught, but \"%s\" is not named in: %s", named, text.data());
}

// ---- What is right ------------------------------------------------------------------------------------------------

enum { THREADS = 96 };

// The sum of a block by shuffles and shared memory.
template <class T> static __global__ void sum_kernel(const T *x, double *sums)
{
    __shared__ T warps[THREADS / 32];
    T v = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffffu, v, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = (double)(warps[0] + warps[1] + warps[2]);
}

static __global__ void fill_kernel(double *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x + blockIdx.x; }

static void sum()
{
    enum { BLOCKS = 5 };
    double *x = device_doubles(BLOCKS * THREADS), *sums = device_doubles(BLOCKS);
    launch(NULL, BLOCKS, THREADS, 0, 1, fill_kernel, x);
    launch(NULL, BLOCKS, THREADS, 0, 1, sum_kernel<double>, (const double *)x, sums);
    const auto found = fetch(sums, BLOCKS);
    for (int b = 0; b < BLOCKS; b++) assert_true(found[(size_t)b] == THREADS * (THREADS - 1) / 2 + THREADS * b);
    CUDA(cudaFree(x));
    CUDA(cudaFree(sums));
}
static void sums_by_shuffles_and_shared_memory(void **) { in_every_order(sum); }

// Many shuffles at once are those one by one.
static __global__ void many_kernel(int *different)
{
    double mine[3], other[3];
    for (int q = 0; q < 3; q++) mine[q] = 100 * q + threadIdx.x;
    for (int step = 1; step < 32; step *= 2) {
        simt_shuffle_down_many(mine, other, 3, step);
        for (int q = 0; q < 3; q++)
            *different += other[q] != __shfl_down_sync(0xffffffffu, mine[q], (unsigned)step);
        for (int q = 0; q < 3; q++) mine[q] += 7 * other[q];
    }
}

static void many()
{
    int *different;
    CUDA(cudaMalloc((void **)&different, sizeof *different));
    CUDA(cudaMemset(different, 0, sizeof *different));
    launch(NULL, 2, THREADS, 0, 1, many_kernel, different);
    int found = -1;
    CUDA(cudaMemcpy(&found, different, sizeof found, cudaMemcpyDeviceToHost));
    assert_int_equal(found, 0);
    CUDA(cudaFree(different));
}
static void many_shuffles_at_once_are_those_one_by_one(void **) { in_every_order(many); }

// No block finds what another one, or an earlier launch, left in shared variables; the host finds what it had.
static thread_local int of_host = 4711;
static __global__ void left_kernel(int *found)
{
    __shared__ double left[THREADS], late[THREADS];
    *found += left[threadIdx.x] == 12345;
    left[threadIdx.x] = 12345;
    if (blockIdx.x == 3) late[threadIdx.x] = 12345;    // by few blocks
    __syncthreads();
    *found += left[THREADS - 1 - threadIdx.x] != 12345 || (blockIdx.x == 3 && late[0] != 12345);
}

static void left_in_shared()
{
    int *wrong, found = -1;
    CUDA(cudaMalloc((void **)&wrong, sizeof *wrong));
    CUDA(cudaMemset(wrong, 0, sizeof *wrong));
    for (int q = 0; q < 7; q++) launch(NULL, 5, THREADS, 0, 1, left_kernel, wrong);
    CUDA(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
    assert_int_equal(found, 0);
    assert_int_equal(of_host, 4711);
    CUDA(cudaFree(wrong));
}
static void shared_variables_are_fresh_in_every_block(void **) { in_every_order(left_in_shared); }

static __global__ void votes_kernel(unsigned *out)
{
    const unsigned lane = threadIdx.x;
    const unsigned odd = __ballot_sync(0xffffffffu, lane & 1), mask = lane < 8 ? 0xffu : 0xffffff00u;
    const int any = __any_sync(mask, lane == 3), all = __all_sync(mask, lane >= 8);
    const unsigned next = __shfl_sync(0xffffffffu, lane, (int)lane + 1, 8),
                   twin = __shfl_xor_sync(0xffffffffu, lane, 1);
    const unsigned above = __shfl_up_sync(0xffffffffu, lane, 2, 16);
    const int count = __syncthreads_count(lane < 5);
    if (lane == 9) out[0] = odd, out[1] = any, out[2] = all, out[3] = next, out[4] = twin, out[5] = above;
    if (lane == 1) out[6] = any, out[7] = all, out[8] = above, out[9] = count;
    if (lane == 15) out[10] = next;
    __syncwarp();
    atomicAdd(out + 11, __activemask() >> lane & 1);
    if (lane < 16) return;
    __syncthreads();    // those that have ended need not come
    atomicMax(out + 12, lane);
}

static void votes()
{
    unsigned *out = NULL, found[13];
    CUDA(cudaMalloc(&out, sizeof found));
    CUDA(cudaMemset(out, 0, sizeof found));
    launch(NULL, 1, 32, 0, 1, votes_kernel, out);
    CUDA(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    const unsigned right[13] = {0xaaaaaaaau, 0, 1, 10, 8, 7, 1, 0, 1, 5, 8, 32, 31};
    for (int q = 0; q < 13; q++)
        if (found[q] != right[q]) fail_msg("vote %d: %u, not %u", q, found[q], right[q]);
    CUDA(cudaFree(out));
}
static void votes_and_shuffles_have_their_values(void **) { in_every_order(votes); }

// Each block of a cluster adds up what the others have in the same shared variable.
static __global__ void cluster_kernel(double *out)
{
    __shared__ double mine[2];
    double *dynamic = (double *)simt_dynamic_shared();
    if (threadIdx.x == 0) mine[0] = blockIdx.x, dynamic[0] = 100 * blockIdx.x;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    double sum = 0;
    for (unsigned q = 0; q < __clusterSizeInBlocks(); q++)
        sum += *(double *)__cluster_map_shared_rank(mine, q) + *(double *)__cluster_map_shared_rank(dynamic, q);
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

static void cluster()
{
    double *out = device_doubles(8);
    launch(NULL, 8, 64, 16, 4, cluster_kernel, out);
    const auto found = fetch(out, 8);
    for (int b = 0; b < 8; b++) assert_true(found[(size_t)b] == 101 * (b < 4 ? 6 : 22));
    CUDA(cudaFree(out));
}
static void clusters_see_the_shared_memory_of_all_their_blocks(void **) { in_every_order(cluster); }

template <bool WAITS> static __global__ void copy_kernel(const double *x, double *y)
{
    __shared__ __align__(16) double stage[2 * 32];
    const unsigned t = threadIdx.x;
    __pipeline_memcpy_async(stage + 2 * t, x + 2 * t, 16, t == 31 ? 8 : 0);
    __pipeline_commit();
    if (WAITS) __pipeline_wait_prior(0);
    __syncthreads();
    y[t] = stage[(2 * t + 9) % 64];
}

static void copies()
{
    double *x = device_doubles(64), *y = device_doubles(32);
    launch(NULL, 1, 64, 0, 1, fill_kernel, x);
    launch(NULL, 1, 32, 0, 1, copy_kernel<true>, (const double *)x, y);
    const auto found = fetch(y, 32);
    for (int t = 0; t < 32; t++) assert_true(found[(size_t)t] == (t == 27 ? 0 : (2 * t + 9) % 64));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
}
static void asynchronous_copies_arrive_and_fill_with_zero(void **) { in_every_order(copies); }

static __global__ void add_kernel(double *x, double value) { x[0] = x[0] + value; }

static void two_streams()
{
    cudaStream_t a, b;
    cudaEvent_t event;
    double *x = device_doubles(1);
    CUDA(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&event));
    CUDA(cudaMemsetAsync(x, 0, sizeof *x, a));
    CUDA(cudaEventRecord(event, a));
    CUDA(cudaStreamWaitEvent(b, event, 0));
    launch(b, 1, 1, 0, 1, add_kernel, x, 3.0);
    CUDA(cudaStreamSynchronize(b));
    assert_true(fetch(x, 1)[0] == 3);

    cudaGraph_t graph;    // the same as a graph of two branches
    cudaGraphExec_t exec;
    double *y = device_doubles(1);
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemsetAsync(x, 0, sizeof *x, a));
    CUDA(cudaEventRecord(event, a));
    CUDA(cudaStreamWaitEvent(b, event, 0));
    CUDA(cudaMemcpyAsync(y, x, sizeof *x, cudaMemcpyDeviceToDevice, b));
    CUDA(cudaEventRecord(event, b));
    CUDA(cudaStreamWaitEvent(a, event, 0));
    launch(a, 1, 1, 0, 1, add_kernel, y, 5.0);
    CUDA(cudaStreamEndCapture(a, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    for (int q = 0; q < 2; q++) {
        CUDA(cudaGraphLaunch(exec, a));
        CUDA(cudaStreamSynchronize(a));
        assert_true(fetch(y, 1)[0] == 5 && fetch(x, 1)[0] == 0);
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaEventDestroy(event));
    CUDA(cudaStreamDestroy(a));
    CUDA(cudaStreamDestroy(b));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
}
static void events_order_streams_and_graphs(void **) { in_every_order(two_streams); }

// A call that may not be made during a capture: by no thread, by none but others, or by one that has said so.
static void calls_during_captures_depend_on_modes_and_threads(void **)
{
    struct attempt {
        cudaStreamCaptureMode mode, of_caller;
        bool other, allowed;
    };
    static const attempt attempts[] = {{cudaStreamCaptureModeGlobal, cudaStreamCaptureModeGlobal, false, false},
                                       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeGlobal, true, false},
                                       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed, false, true},
                                       {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal, false, false},
                                       {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal, true, true},
                                       {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed, false, true},
                                       {cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeGlobal, false, true}};
    for (const attempt &of : attempts) {
        cudaStream_t stream;
        cudaGraph_t graph;
        void *p = NULL;
        CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CUDA(cudaStreamBeginCapture(stream, of.mode));
        cudaError_t e = cudaSuccess;
        const auto call = [&] {
            cudaStreamCaptureMode mode = of.of_caller;
            cudaThreadExchangeStreamCaptureMode(&mode);
            e = cudaMalloc(&p, 8);
            cudaThreadExchangeStreamCaptureMode(&mode);
            cudaGetLastError();
        };
        if (of.other)
            std::thread(call).join();
        else
            call();
        assert_int_equal(e, of.allowed ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
        assert_int_equal(cudaStreamEndCapture(stream, &graph), of.allowed ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
        if (graph) CUDA(cudaGraphDestroy(graph));
        if (p) CUDA(cudaFree(p));
        CUDA(cudaStreamDestroy(stream));
        cudaGetLastError();
    }
}

static void wrong_calls_are_refused(void **)
{
    double *x = device_doubles(4), host[4];
    cudaStream_t stream;
    cudaGraph_t graph;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    assert_int_equal(cudaMemcpy(x, host, sizeof host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(x + 1, host, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    assert_null(graph);
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(x));
    assert_int_not_equal(cudaGetLastError(), cudaSuccess);
}

// Blocks of a kernel wait for each other, and keep their shared variables meanwhile; so do kernels of two devices that two
// threads of the host run. A turn is a count that each raises in its turn.
static __global__ void turns_kernel(int *count, int of, int number, int turns)
{
    __shared__ int mine, seen[2];
    if (threadIdx.x < 2) seen[threadIdx.x] = 0;
    if (threadIdx.x == 0) mine = number + (int)blockIdx.x;
    __syncthreads();
    for (int turn = 0; turn < turns; turn++) {
        while (*(volatile int *)count != turn * of + mine) simt_yield();
        __syncthreads();
        seen[threadIdx.x % 2]++;
        if (threadIdx.x == 0 && seen[0] != turn + 1) *count = -1000;
        __syncthreads();
        if (threadIdx.x == 0) ++*count;
    }
}

static void turns()
{
    int *count = NULL, found = 0;
    CUDA(cudaMalloc(&count, sizeof *count));
    CUDA(cudaMemset(count, 0, sizeof *count));
    launch(NULL, 3, 2, 0, 1, turns_kernel, count, 3, 0, 20);
    CUDA(cudaMemcpy(&found, count, sizeof found, cudaMemcpyDeviceToHost));
    assert_int_equal(found, 60);
    CUDA(cudaMemset(count, 0, sizeof *count));
    CUDA(cudaDeviceSynchronize());
    std::vector<std::thread> threads;
    int errors[2] = {-1, -1};
    for (int device = 0; device < 2; device++)
        threads.emplace_back([&, device] {
            cudaStream_t stream = NULL;
            cudaSetDevice(device);
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            launch(stream, 2, 2, 0, 1, turns_kernel, count, 4, 2 * device, 20);
            errors[device] = cudaStreamSynchronize(stream);
            cudaStreamDestroy(stream);
        });
    for (auto &t : threads) t.join();
    assert_true(errors[0] == cudaSuccess && errors[1] == cudaSuccess);
    CUDA(cudaMemcpy(&found, count, sizeof found, cudaMemcpyDeviceToHost));
    assert_int_equal(found, 80);
    CUDA(cudaFree(count));
}
static void blocks_and_devices_wait_for_each_other(void **) { in_every_order(turns); }

// ---- What is wrong ------------------------------------------------------------------------------------------------

static __global__ void unequal_barriers_kernel()
{
    if (threadIdx.x == 7)
        __syncthreads();
    else
        __syncthreads();
}
static __global__ void barrier_in_a_branch_kernel()
{
    if (threadIdx.x != 7) __syncthreads();
    if (threadIdx.x == 7) __shfl_sync(0xffffffffu, 1, 0);
}
static __global__ void absent_lane_kernel()
{
    if (threadIdx.x != 3) __shfl_sync(0xffffffffu, (int)threadIdx.x, 0);
}
static __global__ void half_a_warp_kernel() { __shfl_xor_sync(0xffffffffu, (int)threadIdx.x, 1); }
static __global__ void waiting_lane_kernel()
{
    if (threadIdx.x == 3)
        __ballot_sync(0xffffffffu, 1);
    else
        __shfl_sync(0xffffffffu, (int)threadIdx.x, 0);
}
static __global__ void beyond_kernel(double *x) { x[threadIdx.x] = 1; }
static __global__ void beyond_dynamic_kernel() { ((double *)simt_dynamic_shared())[threadIdx.x] = 1; }
static __global__ void lonely_block_kernel()
{
    __cluster_barrier_arrive();
    if (blockIdx.x == 0) __cluster_barrier_wait();
    if (blockIdx.x == 1) __cluster_barrier_arrive();
}

template <class K> static void run(K kernel, unsigned blocks = 1, unsigned threads = 32, unsigned cluster = 1)
{
    launch(NULL, blocks, threads, 8 * 31, cluster, kernel);
    cudaDeviceSynchronize();
}

static void threads_that_do_not_come_are_missed(void **)
{
    must_be_caught([] { run(unequal_barriers_kernel); }, "different barriers");
    must_be_caught([] { run(barrier_in_a_branch_kernel); }, "wait for others that never come");
    must_be_caught([] { run(absent_lane_kernel); }, "lane 3, named in the mask");
    must_be_caught([] { run(half_a_warp_kernel, 1, 16); }, "lane 16, named in the mask");
    must_be_caught([] { run(waiting_lane_kernel); }, "different operations");
    must_be_caught([] { run(lonely_block_kernel, 2, 32, 2); }, "twice without a wait");
}

static void writes_beyond_an_allocation_are_found(void **)
{
    const char *named = SIMT_ASAN ? "AddressSanitizer" : "byte 248 of an allocation of 248 bytes";
    must_be_caught(
        [] {
            launch(NULL, 1, 32, 0, 1, beyond_kernel, device_doubles(31));
            cudaDeviceSynchronize();
        },
        named);
    must_be_caught([] { run(beyond_dynamic_kernel); }, named);
}

template <bool BARRIER> static __global__ void turn_kernel(double *x)
{
    __shared__ double stage[THREADS];
    stage[threadIdx.x] = threadIdx.x;
    if (BARRIER) __syncthreads();
    x[threadIdx.x] = stage[THREADS - 1 - threadIdx.x];
}

// Is x turned round in all orders?
template <bool BARRIER> static int turns()
{
    int right = 1;
    double *x = device_doubles(THREADS);
    for (int order = SIMT_FORWARD; order <= SIMT_SHUFFLED; order++) {
        simt.order = (simt_order)order;
        launch(NULL, 1, THREADS, 0, 1, turn_kernel<BARRIER>, x);
        const auto found = fetch(x, THREADS);
        for (int t = 0; t < THREADS; t++) right &= found[(size_t)t] == THREADS - 1 - t;
    }
    simt.order = SIMT_FORWARD;
    CUDA(cudaFree(x));
    return right;
}
static void a_missing_barrier_spoils_the_result(void **)
{
    assert_true(turns<true>());
    assert_false(turns<false>());
}

static void a_missing_wait_for_a_copy_spoils_the_result(void **)
{
    double *x = device_doubles(64), *y = device_doubles(32);
    launch(NULL, 1, 64, 0, 1, fill_kernel, x);
    launch(NULL, 1, 32, 0, 1, copy_kernel<false>, (const double *)x, y);
    assert_true(std::isnan(fetch(y, 32)[0]));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
}

// In device memory and in shared memory, for either precision.
template <class T> static void sum_of_what_nobody_wrote()
{
    T *x = NULL;
    double *sums = device_doubles(1);
    CUDA(cudaMalloc(&x, THREADS * sizeof(T)));
    CUDA(cudaMemset(x, 0, (THREADS - 1) * sizeof(T)));
    launch(NULL, 1, THREADS, 0, 1, sum_kernel<T>, (const T *)x, sums);
    assert_true(std::isnan(fetch(sums, 1)[0]));
    CUDA(cudaFree(x));
    CUDA(cudaFree(sums));
}
static void memory_nobody_wrote_spoils_the_result(void **)
{
    sum_of_what_nobody_wrote<float>();
    sum_of_what_nobody_wrote<double>();
}

static void a_missing_dependency_spoils_the_result(void **)
{
    cudaStream_t a, b;
    double *x = device_doubles(1), *y = device_doubles(1);
    CUDA(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CUDA(cudaMemsetAsync(x, 0, sizeof *x, a));
    CUDA(cudaMemcpyAsync(y, x, sizeof *x, cudaMemcpyDeviceToDevice, b));
    CUDA(cudaStreamSynchronize(b));
    assert_true(std::isnan(fetch(y, 1)[0]));
    CUDA(cudaStreamDestroy(a));
    CUDA(cudaStreamDestroy(b));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
}

int main(void)
{
    setenv("SIMT_FILL", "ones", 1);    // what was not written shall be NaN for sure
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_by_shuffles_and_shared_memory),
        cmocka_unit_test(many_shuffles_at_once_are_those_one_by_one),
        cmocka_unit_test(shared_variables_are_fresh_in_every_block),
        cmocka_unit_test(votes_and_shuffles_have_their_values),
        cmocka_unit_test(clusters_see_the_shared_memory_of_all_their_blocks),
        cmocka_unit_test(asynchronous_copies_arrive_and_fill_with_zero),
        cmocka_unit_test(blocks_and_devices_wait_for_each_other),
        cmocka_unit_test(events_order_streams_and_graphs),
        cmocka_unit_test(calls_during_captures_depend_on_modes_and_threads),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(threads_that_do_not_come_are_missed),
        cmocka_unit_test(writes_beyond_an_allocation_are_found),
        cmocka_unit_test(a_missing_barrier_spoils_the_result),
        cmocka_unit_test(a_missing_wait_for_a_copy_spoils_the_result),
        cmocka_unit_test(memory_nobody_wrote_spoils_the_result),
        cmocka_unit_test(a_missing_dependency_spoils_the_result),
    };
    return cmocka_run_group_tests_name("simt", tests, NULL, NULL);
}
