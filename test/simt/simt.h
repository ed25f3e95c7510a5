// What the two halves of the harness share, and what tests may set. See README.md.
#ifndef SIMT_H
#define SIMT_H

#include "cuda_runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#ifndef SIMT_ASAN
#define SIMT_ASAN 0
#endif

enum simt_order { SIMT_FORWARD, SIMT_REVERSED, SIMT_SHUFFLED };
enum simt_delay { SIMT_LATE, SIMT_EARLY };

// What may be chosen freely. The defaults come from the environment: SIMT_ORDER, SIMT_SEED, SIMT_DELAY.
struct simt_options {
    simt_order order;    // of blocks, of the threads of a block, of streams and graph nodes that are all ready
    simt_delay delay;    // late: stream work and asynchronous copies happen only when something waits for them
    uint64_t seed;
};
extern simt_options simt;

// Writes a permutation of 0 to n-1 to p, as simt.order wants it.
void simt_permute(int *p, int n);

// Tells what is wrong and aborts.
[[noreturn]] void simt_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum : uint32_t { SIMT_POISON = 0xffffffff };    // NaN as float and double, -1 as int

// What fresh memory holds: the poison; with SIMT_FILL=random in half of its words of 8 bytes, and any bits in the others.
void simt_fill(void *p, size_t bytes);

// Memory with guards on both sides: all of it poisoned, the guards closed to AddressSanitizer.
enum { SIMT_GUARD = 4096 };
char *simt_guarded_new(size_t bytes);
void simt_guarded_check(const char *p, size_t bytes, const char *what);
void simt_guarded_delete(char *p, size_t bytes, const char *what);

struct simt_kernel {
    const void *code;
    dim3 grid, block, cluster;
    size_t dynamic_bytes;
    std::function<void()> thread;
};
void simt_run(const simt_kernel &);

// Lets other threads of the host have their turn with the harness.
void simt_give_way();

#endif
