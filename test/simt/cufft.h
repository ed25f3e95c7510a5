/* The part of cuFFT that poisson_gpu.cu uses, on the CPU: one-dimensional complex transforms in batches. See
   README.md. */
#ifndef SIMT_CUFFT_H
#define SIMT_CUFFT_H

#include "cuda_runtime.h"

typedef int cufftHandle;
typedef enum cufftResult {
    CUFFT_SUCCESS,
    CUFFT_INVALID_PLAN,
    CUFFT_ALLOC_FAILED,
    CUFFT_INVALID_TYPE,
    CUFFT_INVALID_VALUE,
    CUFFT_INTERNAL_ERROR,
    CUFFT_EXEC_FAILED,
    CUFFT_SETUP_FAILED,
    CUFFT_INVALID_SIZE
} cufftResult;
typedef enum cufftType { CUFFT_C2C = 0x29, CUFFT_Z2Z = 0x69 } cufftType;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;
enum { CUFFT_FORWARD = -1, CUFFT_INVERSE = 1 };

cufftResult cufftCreate(cufftHandle *);
cufftResult cufftDestroy(cufftHandle);
cufftResult cufftSetAutoAllocation(cufftHandle, int automatic);
cufftResult cufftMakePlanMany(cufftHandle, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                              int ostride, int odist, cufftType, int batch, size_t *work_bytes);
cufftResult cufftSetWorkArea(cufftHandle, void *);
cufftResult cufftSetStream(cufftHandle, cudaStream_t);
cufftResult cufftExecC2C(cufftHandle, cufftComplex *in, cufftComplex *out, int direction);
cufftResult cufftExecZ2Z(cufftHandle, cufftDoubleComplex *in, cufftDoubleComplex *out, int direction);

#endif
