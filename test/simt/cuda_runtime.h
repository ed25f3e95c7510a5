/* The part of the CUDA runtime that poisson_gpu.cu uses, on the CPU, for tests: see README.md beside this file.

   C and C++: the host's API. C++: kernels too. With -DPGI_SIMT and this folder first among the include paths,
   poisson_gpu.cu takes this file for CUDA's; link simt_kernel.cpp and simt_runtime.cpp. */
#ifndef SIMT_CUDA_RUNTIME_H
#define SIMT_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifndef CUDART_VERSION
#define CUDART_VERSION 13000 /* or, for the older signatures, 12040 */
#endif
#define CUDART_CB
#define __CUDA_ARCH_LIST__ 900

/* ---- The host's API ---------------------------------------------------------------------------------------------- */

#define SIMT_ERRORS(X)                                                                                                \
    X(cudaSuccess, 0)                                                                                                 \
    X(cudaErrorInvalidValue, 1)                                                                                       \
    X(cudaErrorMemoryAllocation, 2)                                                                                   \
    X(cudaErrorInvalidConfiguration, 9)                                                                               \
    X(cudaErrorInvalidMemcpyDirection, 21)                                                                            \
    X(cudaErrorNoDevice, 100)                                                                                         \
    X(cudaErrorInvalidDevice, 101)                                                                                    \
    X(cudaErrorPeerAccessUnsupported, 217)                                                                            \
    X(cudaErrorInvalidResourceHandle, 400)                                                                            \
    X(cudaErrorNotReady, 600)                                                                                         \
    X(cudaErrorPeerAccessAlreadyEnabled, 704)                                                                         \
    X(cudaErrorNotSupported, 801)                                                                                     \
    X(cudaErrorStreamCaptureUnsupported, 900)                                                                         \
    X(cudaErrorStreamCaptureInvalidated, 901)                                                                         \
    X(cudaErrorStreamCaptureUnmatched, 903)                                                                           \
    X(cudaErrorStreamCaptureUnjoined, 904)                                                                            \
    X(cudaErrorStreamCaptureIsolation, 905)                                                                           \
    X(cudaErrorStreamCaptureImplicit, 906)
typedef enum cudaError {
#define SIMT_ENUMERATOR(name, number) name = number,
    SIMT_ERRORS(SIMT_ENUMERATOR)
#undef SIMT_ENUMERATOR
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef unsigned long long cudaGraphConditionalHandle;
typedef void(CUDART_CB *cudaHostFn_t)(void *);

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaMemoryType {
    cudaMemoryTypeUnregistered,
    cudaMemoryTypeHost,
    cudaMemoryTypeDevice,
    cudaMemoryTypeManaged
};
enum { cudaStreamDefault, cudaStreamNonBlocking };
enum { cudaEventDefault, cudaEventBlockingSync, cudaEventDisableTiming };
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
enum { cudaStreamAddCaptureDependencies, cudaStreamSetCaptureDependencies };
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock,
    cudaDevAttrMaxSharedMemoryPerBlock,
    cudaDevAttrMaxSharedMemoryPerBlockOptin,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor,
    cudaDevAttrReservedSharedMemoryPerBlock,
    cudaDevAttrMaxRegistersPerBlock,
    cudaDevAttrMaxRegistersPerMultiprocessor,
    cudaDevAttrMaxThreadsPerMultiProcessor,
    cudaDevAttrMaxBlocksPerMultiprocessor,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrWarpSize,
    cudaDevAttrL2CacheSize,
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrComputeCapabilityMinor,
    cudaDevAttrClusterLaunch,
    cudaDevAttrCooperativeLaunch,
    cudaDevAttrMemoryPoolsSupported
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize,
    cudaFuncAttributePreferredSharedMemoryCarveout,
    cudaFuncAttributeNonPortableClusterSizeAllowed
};
enum cudaGraphNodeType { cudaGraphNodeTypeKernel, cudaGraphNodeTypeEmpty, cudaGraphNodeTypeConditional };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile };
enum { cudaGraphCondAssignDefault = 1 };
#ifndef __cplusplus
typedef enum cudaMemcpyKind cudaMemcpyKind;
typedef enum cudaStreamCaptureMode cudaStreamCaptureMode;
typedef enum cudaStreamCaptureStatus cudaStreamCaptureStatus;
typedef enum cudaDeviceAttr cudaDeviceAttr;
#endif

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};
enum { cudaIpcMemLazyEnablePeerAccess = 1 };
typedef struct cudaIpcMemHandle_st {
    char reserved[64];
} cudaIpcMemHandle_t;
struct cudaFuncAttributes {
    int binaryVersion, ptxVersion, numRegs, maxThreadsPerBlock, maxDynamicSharedSizeBytes;
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
};
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
    int major, minor, multiProcessorCount, maxThreadsPerMultiProcessor, maxThreadsPerBlock, warpSize, l2CacheSize;
};
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    enum cudaGraphConditionalNodeType type;
    unsigned size;
    cudaGraph_t *phGraph_out;
};
struct cudaGraphNodeParams {
    enum cudaGraphNodeType type;
    struct cudaConditionalNodeParams conditional;
};
typedef struct cudaGraphEdgeData {
    unsigned char from_port, to_port, type;
} cudaGraphEdgeData;

#ifdef __cplusplus
extern "C" {
#endif

const char *cudaGetErrorName(cudaError_t);
const char *cudaGetErrorString(cudaError_t);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaRuntimeGetVersion(int *);
cudaError_t cudaDriverGetVersion(int *);

cudaError_t cudaGetDeviceCount(int *);
cudaError_t cudaGetDevice(int *);
cudaError_t cudaSetDevice(int);
cudaError_t cudaDeviceGetAttribute(int *, enum cudaDeviceAttr, int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *, void *);
cudaError_t cudaIpcOpenMemHandle(void **, cudaIpcMemHandle_t, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

cudaError_t cudaMalloc(void **, size_t bytes);
cudaError_t cudaFree(void *);
cudaError_t cudaMallocAsync(void **, size_t bytes, cudaStream_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaMallocHost(void **, size_t bytes);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *, const void *);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemset(void *, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *, int value, size_t bytes, cudaStream_t);

cudaError_t cudaStreamCreate(cudaStream_t *);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t, void *);
cudaError_t cudaEventCreate(cudaEvent_t *);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t, enum cudaStreamCaptureMode);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t *, const cudaGraphEdgeData *,
                                          size_t count, enum cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *);
cudaError_t cudaStreamIsCapturing(cudaStream_t, enum cudaStreamCaptureStatus *);
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, enum cudaStreamCaptureStatus *, unsigned long long *id,
                                     cudaGraph_t *, const cudaGraphNode_t **, const cudaGraphEdgeData **,
                                     size_t *count);
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t *, const cudaGraphEdgeData *,
                                                size_t count, unsigned flags);
cudaError_t cudaGraphAddNode(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, const cudaGraphEdgeData *,
                             size_t count, struct cudaGraphNodeParams *);
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, enum cudaStreamCaptureStatus *, unsigned long long *id,
                                        cudaGraph_t *, const cudaGraphNode_t **, size_t *count);
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t *, size_t count, unsigned flags);
cudaError_t cudaGraphAddNode(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t count,
                             struct cudaGraphNodeParams *);
#endif
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *, cudaGraph_t, unsigned value, unsigned flags);
cudaError_t cudaGraphCreate(cudaGraph_t *, unsigned flags);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *, cudaGraph_t, unsigned long long flags);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *, cudaGraph_t, unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
cudaError_t cudaGraphDestroy(cudaGraph_t);

#ifdef __cplusplus
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore,
    cudaLaunchAttributeClusterDimension,
    cudaLaunchAttributeProgrammaticStreamSerialization    // kernels await those before them anyway: no effect
};
union cudaLaunchAttributeValue {
    int programmaticStreamSerializationAllowed;
    struct {
        unsigned x, y, z;
    } clusterDim;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

cudaError_t simt_launch(const cudaLaunchConfig_t *, const void *kernel, std::function<void()> thread);
cudaError_t simt_function_attributes(cudaFuncAttributes *, const void *kernel);
cudaError_t simt_set_function_attribute(const void *kernel, cudaFuncAttribute, int value);
cudaError_t simt_blocks_per_multiprocessor(int *blocks, const void *kernel, int threads, size_t dynamic_bytes);
cudaError_t simt_clusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *);

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...arguments)
{
    std::tuple<P...> values(std::forward<A>(arguments)...);    // each thread gets a copy of its own
    return simt_launch(config, (const void *)kernel, [kernel, values] { std::apply(kernel, values); });
}
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, F *kernel)
{
    return simt_function_attributes(a, (const void *)kernel);
}
template <class F> cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute attribute, int value)
{
    return simt_set_function_attribute((const void *)kernel, attribute, value);
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *kernel, int threads, size_t dynamic_bytes)
{
    return simt_blocks_per_multiprocessor(blocks, (const void *)kernel, threads, dynamic_bytes);
}
template <class F> cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, F *kernel, const cudaLaunchConfig_t *c)
{
    return simt_clusters(clusters, (const void *)kernel, c);
}
template <class T> cudaError_t cudaMalloc(T **p, size_t bytes) { return cudaMalloc((void **)p, bytes); }
template <class T> cudaError_t cudaMallocHost(T **p, size_t bytes) { return cudaMallocHost((void **)p, bytes); }

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

/* A block's shared variables are function-local statics that simt_kernel.cpp can find: thread-local ones are all in one
   piece of memory. (g++ ignores the section of a variable in a template; clang's own sanitizers have thread-local
   variables in the program.) */
#ifdef __clang__
#define __shared__ static __attribute__((section("simt_shared")))
#else
#define __shared__ static thread_local
#endif

constexpr int warpSize = 32;
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* Where a thread waits: the line of the caller, for messages. */
struct simt_site {
    const char *call, *file;
    int line;
};
#define SIMT_WHERE const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE()
#define SIMT_HERE simt_site{__func__, file_, line_}

enum simt_vote { SIMT_COUNT, SIMT_AND, SIMT_OR };
enum simt_warp_operation {
    SIMT_SYNC,
    SIMT_SHUFFLE,
    SIMT_SHUFFLE_UP,
    SIMT_SHUFFLE_DOWN,
    SIMT_SHUFFLE_XOR,
    SIMT_SHUFFLE_MANY,
    SIMT_BALLOT
};
struct simt_many {    // what lanes bring to SIMT_SHUFFLE_MANY
    const double *mine;
    double *other;
    int count;
};
int simt_block_barrier(const simt_site &, simt_vote, int predicate);
uint64_t simt_warp(const simt_site &, simt_warp_operation, unsigned mask, uint64_t value, int operand, int width);
unsigned simt_lane_bit();
void simt_cluster_arrive(const simt_site &);
void simt_cluster_wait(const simt_site &);
unsigned simt_cluster_rank();
unsigned simt_cluster_blocks();
void *simt_cluster_map(const void *, unsigned rank);
void *simt_dynamic_shared();
void simt_copy_async(void *shared, const void *global, size_t bytes, size_t zero_fill);
void simt_copy_commit();
void simt_copy_wait(size_t groups_left);
uint64_t simt_now();
void simt_yield();
void cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned value);

inline void __syncthreads(SIMT_WHERE) { simt_block_barrier(SIMT_HERE, SIMT_COUNT, 0); }
inline int __syncthreads_count(int p, SIMT_WHERE) { return simt_block_barrier(SIMT_HERE, SIMT_COUNT, p); }
inline int __syncthreads_and(int p, SIMT_WHERE) { return simt_block_barrier(SIMT_HERE, SIMT_AND, p); }
inline int __syncthreads_or(int p, SIMT_WHERE) { return simt_block_barrier(SIMT_HERE, SIMT_OR, p); }
inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_WHERE) { simt_warp(SIMT_HERE, SIMT_SYNC, mask, 0, 0, 32); }
inline unsigned __activemask() { return simt_lane_bit(); }    // as if all lanes had diverged, which they may

template <class T>
T simt_shuffle(const simt_site &site, simt_warp_operation operation, unsigned mask, T value, int operand, int width)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = simt_warp(site, operation, mask, bits, operand, width);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32, SIMT_WHERE)
{
    return simt_shuffle(SIMT_HERE, SIMT_SHUFFLE, mask, value, lane, width);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_WHERE)
{
    return simt_shuffle(SIMT_HERE, SIMT_SHUFFLE_UP, mask, value, (int)delta, width);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_WHERE)
{
    return simt_shuffle(SIMT_HERE, SIMT_SHUFFLE_DOWN, mask, value, (int)delta, width);
}
// What `count` calls of __shfl_down_sync give a whole warp, in one meeting of its lanes, for meetings take the time.
inline void simt_shuffle_down_many(const double *mine, double *other, int count, int delta, SIMT_WHERE)
{
    const simt_many values = {mine, other, count};
    simt_warp(SIMT_HERE, SIMT_SHUFFLE_MANY, 0xffffffffu, (uint64_t)(uintptr_t)&values, delta, 32);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, SIMT_WHERE)
{
    return simt_shuffle(SIMT_HERE, SIMT_SHUFFLE_XOR, mask, value, lanes, width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_WHERE)
{
    return (unsigned)simt_warp(SIMT_HERE, SIMT_BALLOT, mask, predicate != 0, 0, 32);
}
inline int __any_sync(unsigned mask, int predicate, SIMT_WHERE)
{
    return simt_warp(SIMT_HERE, SIMT_BALLOT, mask, predicate != 0, 0, 32) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SIMT_WHERE)
{
    return simt_warp(SIMT_HERE, SIMT_BALLOT, mask, predicate != 0, 0, 32) == mask;
}

inline void __cluster_barrier_arrive(SIMT_WHERE) { simt_cluster_arrive(SIMT_HERE); }
inline void __cluster_barrier_arrive_relaxed(SIMT_WHERE) { simt_cluster_arrive(SIMT_HERE); }
inline void __cluster_barrier_wait(SIMT_WHERE) { simt_cluster_wait(SIMT_HERE); }
inline unsigned __clusterRelativeBlockRank() { return simt_cluster_rank(); }
inline unsigned __clusterSizeInBlocks() { return simt_cluster_blocks(); }
inline void *__cluster_map_shared_rank(const void *p, unsigned rank) { return simt_cluster_map(p, rank); }

// Threads take turns at barriers only, so memory is coherent and plain arithmetic atomic.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldca(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> T __ldcv(const T *p) { return *p; }
template <class T> T __ldlu(const T *p) { return *p; }
template <class T> void __stcg(T *p, T value) { *p = value; }
template <class T> void __stcs(T *p, T value) { *p = value; }
template <class T> void __stwb(T *p, T value) { *p = value; }
template <class T> T simt_replace(T *p, T value)
{
    const T old = *p;
    *p = value;
    return old;
}
template <class T> T atomicAdd(T *p, std::common_type_t<T> v) { return simt_replace(p, (T)(*p + v)); }
template <class T> T atomicSub(T *p, std::common_type_t<T> v) { return simt_replace(p, (T)(*p - v)); }
template <class T> T atomicMin(T *p, std::common_type_t<T> v) { return simt_replace(p, *p < v ? *p : v); }
template <class T> T atomicMax(T *p, std::common_type_t<T> v) { return simt_replace(p, *p > v ? *p : v); }
template <class T> T atomicAnd(T *p, std::common_type_t<T> v) { return simt_replace(p, (T)(*p & v)); }
template <class T> T atomicOr(T *p, std::common_type_t<T> v) { return simt_replace(p, (T)(*p | v)); }
template <class T> T atomicExch(T *p, std::common_type_t<T> v) { return simt_replace(p, v); }
template <class T> T atomicCAS(T *p, std::common_type_t<T> compare, std::common_type_t<T> v)
{
    return simt_replace(p, *p == compare ? v : *p);
}
inline unsigned atomicInc(unsigned *p, unsigned last) { return simt_replace(p, *p >= last ? 0 : *p + 1); }
inline unsigned atomicDec(unsigned *p, unsigned last) { return simt_replace(p, *p == 0 || *p > last ? last : *p - 1); }

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
inline long long __double_as_longlong(double v)
{
    long long bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
inline double __longlong_as_double(long long bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

// Vectors are read through pointers to their elements' type.
#define SIMT_VECTOR(name, type, n, fields)                                                                             \
    struct __attribute__((aligned(n * sizeof(type)), may_alias)) name {                                                \
        type fields;                                                                                                   \
    };
#define SIMT_COMMA ,
SIMT_VECTOR(float2, float, 2, x SIMT_COMMA y)
SIMT_VECTOR(float4, float, 4, x SIMT_COMMA y SIMT_COMMA z SIMT_COMMA w)
SIMT_VECTOR(double2, double, 2, x SIMT_COMMA y)
SIMT_VECTOR(int2, int, 2, x SIMT_COMMA y)
SIMT_VECTOR(int4, int, 4, x SIMT_COMMA y SIMT_COMMA z SIMT_COMMA w)
SIMT_VECTOR(uint2, unsigned, 2, x SIMT_COMMA y)
SIMT_VECTOR(uint4, unsigned, 4, x SIMT_COMMA y SIMT_COMMA z SIMT_COMMA w)
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

#endif
#endif
