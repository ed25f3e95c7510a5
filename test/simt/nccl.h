/* The part of NCCL that poisson_gpu.cu uses, between devices of the harness: see README.md. Ranks are threads. What a
   rank sends waits until the other one receives it, in the order of the calls; nobody ends a wait for a rank that does
   not come. */
#ifndef SIMT_NCCL_H
#define SIMT_NCCL_H

#include "cuda_runtime.h"

#define NCCL_VERSION_CODE 22900

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef enum {
    ncclSuccess,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclInProgress = 7
} ncclResult_t;
typedef enum { ncclInt8 = 0, ncclDouble = 8 } ncclDataType_t;
typedef struct {
    int blocking, graphUsageMode;
} ncclConfig_t;
/* clang-format off */
#define NCCL_CONFIG_INITIALIZER {1, 2}
/* clang-format on */

const char *ncclGetErrorString(ncclResult_t);
ncclResult_t ncclGetUniqueId(ncclUniqueId *);
ncclResult_t ncclCommInitRank(ncclComm_t *, int ranks, ncclUniqueId, int rank);
ncclResult_t ncclCommSplit(ncclComm_t, int color, int key, ncclComm_t *, ncclConfig_t *);
ncclResult_t ncclCommFinalize(ncclComm_t);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *);
ncclResult_t ncclCommUserRank(ncclComm_t, int *);
ncclResult_t ncclCommCount(ncclComm_t, int *);
ncclResult_t ncclCommCuDevice(ncclComm_t, int *);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *, size_t count, ncclDataType_t, int peer, ncclComm_t, cudaStream_t);
ncclResult_t ncclRecv(void *, size_t count, ncclDataType_t, int peer, ncclComm_t, cudaStream_t);
ncclResult_t ncclAllGather(const void *own, void *all, size_t count, ncclDataType_t, ncclComm_t, cudaStream_t);

#endif
