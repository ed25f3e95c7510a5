// cuFFT's transforms as sums over one prime factor of the length after the other, by kernels of the harness: so they
// are ordered and captured like any other. The work area is a little memory that every transform spoils.
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

// out[k] = sum of in[j step] root^(jk) over j < n, where `roots` has all powers for the whole length: the j that are
// alike modulo the least factor of n have a transform of their own. A single sum over all j takes as many steps as the
// square of the length has, which was most of the time of tests with long axes.
void transform_part(const std::complex<double> *in, size_t step, std::complex<double> *out, size_t n,
                    const std::vector<std::complex<double>> &roots)
{
    if (n == 1) {
        *out = *in;
        return;
    }
    size_t factor = 2;
    while (n % factor) factor++;
    const size_t part = n / factor, turn = roots.size() / n;
    std::vector<std::complex<double>> parts(n);
    for (size_t j = 0; j < factor; j++) transform_part(in + j * step, factor * step, &parts[j * part], part, roots);
    for (size_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (size_t j = 0; j < factor; j++) {
            const std::complex<double> a = parts[j * part + k % part], w = roots[j * k % n * turn];
            re += a.real() * w.real() - a.imag() * w.imag();
            im += a.real() * w.imag() + a.imag() * w.real();
        }
        out[k] = {re, im};
    }
}

template <class V> void transform(V *data, plan p, int direction)
{
    const int q = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (q >= p.batch) return;
    memset((char *)p.work + 16 * (size_t)q, 0xff, 16);
    const size_t n = (size_t)p.length;
    std::vector<std::complex<double>> roots(n), in(n), out(n);
    V *const x = data + (size_t)q * (size_t)p.distance;
    for (size_t k = 0; k < n; k++) {
        roots[k] = std::polar(1.0, direction * 2 * 3.14159265358979323846 * (double)k / (double)n);
        in[k] = {(double)x[k * (size_t)p.stride].x, (double)x[k * (size_t)p.stride].y};
    }
    transform_part(in.data(), 1, out.data(), n, roots);
    for (size_t k = 0; k < n; k++) {
        V *const to = &x[k * (size_t)p.stride];
        to->x = (decltype(to->x))out[k].real();
        to->y = (decltype(to->y))out[k].imag();
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
