// cuFFT's transforms as plain sums, by kernels of the harness: so they are ordered and captured like any other. The
// work area is a little memory that every transform spoils.
#include "simt.h"
#include "cufft.h"

#include <cmath>
#include <complex>
#include <deque>
#include <mutex>
#include <vector>

namespace {

struct plan {
    bool made, destroyed;
    int length, stride, distance, batch;
    cufftType type;
    size_t work_bytes;
    void *work;
    cudaStream_t stream;
};
// Threads make plans at the same time; each uses its own, which stay where they are.
std::deque<plan> plans;
std::mutex mutex;

plan *plan_of(cufftHandle handle)
{
    const std::lock_guard<std::mutex> hold(mutex);
    if (handle < 1 || (size_t)handle > plans.size() || plans[(size_t)handle - 1].destroyed)
        simt_wrong("cuFFT: there is no plan %d", handle);
    return &plans[(size_t)handle - 1];
}

template <class V> void transform(V *data, plan p, int direction)
{
    const int q = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (q >= p.batch) return;
    memset((char *)p.work + 16 * (size_t)q, 0xff, 16);
    std::vector<std::complex<double>> root((size_t)p.length), in((size_t)p.length);
    V *const x = data + (size_t)q * (size_t)p.distance;
    for (int k = 0; k < p.length; k++) {
        root[(size_t)k] = std::polar(1.0, direction * 2 * 3.14159265358979323846 * k / p.length);
        in[(size_t)k] = {(double)x[(size_t)k * (size_t)p.stride].x, (double)x[(size_t)k * (size_t)p.stride].y};
    }
    for (int k = 0; k < p.length; k++) {
        double re = 0, im = 0;
        size_t turn = 0;
        for (int j = 0; j < p.length; j++) {
            const std::complex<double> a = in[(size_t)j], w = root[turn];
            re += a.real() * w.real() - a.imag() * w.imag();
            im += a.real() * w.imag() + a.imag() * w.real();
            turn += (size_t)k;
            if (turn >= (size_t)p.length) turn -= (size_t)p.length;
        }
        V *const to = &x[(size_t)k * (size_t)p.stride];
        to->x = (decltype(to->x))re;
        to->y = (decltype(to->y))im;
    }
}

template <class V> cufftResult execute(cufftHandle handle, V *in, V *out, cufftType type, int direction)
{
    const plan *p = plan_of(handle);
    if (!p->made || p->type != type) simt_wrong("cuFFT: plan %d is not made, or for another type", handle);
    if (!p->work) simt_wrong("cuFFT: plan %d has no work area", handle);
    if (in != out) simt_wrong("cuFFT: only transforms in place are known here");
    if ((uintptr_t)in % sizeof(V)) simt_wrong("cuFFT: misaligned data");
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(32);
    config.gridDim = dim3((unsigned)(p->batch + 31) / 32);
    config.stream = p->stream;
    return cudaLaunchKernelEx(&config, transform<V>, in, *p, direction) == cudaSuccess ? CUFFT_SUCCESS
                                                                                      : CUFFT_EXEC_FAILED;
}

}    // namespace

cufftResult cufftCreate(cufftHandle *handle)
{
    const std::lock_guard<std::mutex> hold(mutex);
    plans.push_back(plan());
    *handle = (int)plans.size();
    return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle handle)
{
    plan_of(handle)->destroyed = true;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int automatic)
{
    if (automatic || plan_of(handle)->made) simt_wrong("cuFFT: auto allocation must be switched off before the plan");
    return CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                              int ostride, int odist, cufftType type, int batch, size_t *work_bytes)
{
    plan *p = plan_of(handle);
    if (rank != 1 || !inembed || !onembed || istride != ostride || idist != odist || *n < 1 || batch < 1 || p->made)
        simt_wrong("cuFFT: only batches of one-dimensional transforms, laid out alike before and after, are known");
    p->made = true;
    p->length = *n;
    p->stride = istride;
    p->distance = idist;
    p->batch = batch;
    p->type = type;
    *work_bytes = p->work_bytes = 16 * (size_t)batch;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetWorkArea(cufftHandle handle, void *work)
{
    plan_of(handle)->work = work;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
    plan_of(handle)->stream = stream;
    return CUFFT_SUCCESS;
}

cufftResult cufftExecC2C(cufftHandle handle, cufftComplex *in, cufftComplex *out, int direction)
{
    return execute(handle, in, out, CUFFT_C2C, direction);
}

cufftResult cufftExecZ2Z(cufftHandle handle, cufftDoubleComplex *in, cufftDoubleComplex *out, int direction)
{
    return execute(handle, in, out, CUFFT_Z2Z, direction);
}
