/* cp.async on the CPU: data arrive as late as they may, at the wait. See README.md. */
#ifndef SIMT_CUDA_PIPELINE_PRIMITIVES_H
#define SIMT_CUDA_PIPELINE_PRIMITIVES_H

#include "cuda_runtime.h"

inline void __pipeline_memcpy_async(void *shared, const void *global, size_t bytes, size_t zero_fill = 0)
{
    simt_copy_async(shared, global, bytes, zero_fill);
}
inline void __pipeline_commit() { simt_copy_commit(); }
inline void __pipeline_wait_prior(size_t groups_left) { simt_copy_wait(groups_left); }

#endif
