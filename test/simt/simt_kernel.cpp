// Runs kernels: a fibre for each thread of the blocks that are alive, which are those of one cluster. See README.md.
#include "simt.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include <link.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif
#if SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// ---- Order --------------------------------------------------------------------------------------------------------

static simt_options from_environment()
{
    const auto is = [](const char *name, const char *value) {
        const char *text = getenv(name);
        return text && strcmp(text, value) == 0;
    };
    simt_options o;
    o.order = is("SIMT_ORDER", "reversed")   ? SIMT_REVERSED
              : is("SIMT_ORDER", "shuffled") ? SIMT_SHUFFLED
                                             : SIMT_FORWARD;
    o.delay = is("SIMT_DELAY", "early") ? SIMT_EARLY : SIMT_LATE;
    o.seed = getenv("SIMT_SEED") ? strtoull(getenv("SIMT_SEED"), NULL, 0) : 1;
    return o;
}

simt_options simt = from_environment();

static uint64_t next_random(uint64_t *state)    // splitmix64
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t random_below(uint32_t n) { return (uint32_t)((next_random(&simt.seed) >> 32) * n >> 32); }

void simt_permute(int *p, int n)
{
    for (int q = 0; q < n; q++) p[q] = simt.order == SIMT_REVERSED ? n - 1 - q : q;
    if (simt.order == SIMT_SHUFFLED)
        for (int q = n - 1; q > 0; q--) std::swap(p[q], p[random_below((uint32_t)q + 1)]);
}

// ---- Memory with guards -------------------------------------------------------------------------------------------

static const unsigned char guard_byte = 0xfb;

// Pieces of a block of such words, from anywhere in it: shared variables are filled for every block of a launch. Its
// numbers are its own, so that orders do not depend on what is filled.
void simt_fill(void *p, size_t bytes)
{
    enum { WORDS = 1 << 16 };
    static uint64_t state = simt.seed ^ 0x5eed;
    static std::vector<uint64_t> words;
    const char *const how = getenv("SIMT_FILL");    // tests change it
    if (!how || strcmp(how, "random") != 0) {
        memset(p, 0xff, bytes);
        return;
    }
    while (words.size() < WORDS) words.push_back(next_random(&state) >> 63 ? ~(uint64_t)0 : next_random(&state));
    for (size_t done = 0; done < bytes;) {
        const size_t at = (size_t)(next_random(&state) % WORDS), left = sizeof(uint64_t) * (WORDS - at),
                     count = left < bytes - done ? left : bytes - done;
        memcpy((char *)p + done, words.data() + at, count);
        done += count;
    }
}

char *simt_guarded_new(size_t bytes)
{
    const size_t padded = (bytes + 255) / 256 * 256;
    char *base = (char *)aligned_alloc(256, padded + 2 * SIMT_GUARD), *p = base + SIMT_GUARD;
    if (!base) return NULL;
    memset(base, guard_byte, SIMT_GUARD);
    simt_fill(p, bytes);
    memset(p + bytes, guard_byte, padded - bytes + SIMT_GUARD);
#if SIMT_ASAN
    __asan_poison_memory_region(base, SIMT_GUARD);
    __asan_poison_memory_region(p + bytes, padded - bytes + SIMT_GUARD);
#endif
    return p;
}

void simt_guarded_check(const char *p, size_t bytes, const char *what)
{
#if SIMT_ASAN
    (void)p, (void)bytes, (void)what;
#else
    static const std::vector<unsigned char> guard(SIMT_GUARD, guard_byte);
    const size_t after = (bytes + 255) / 256 * 256 - bytes;
    if (memcmp(p - SIMT_GUARD, guard.data(), SIMT_GUARD) == 0 && memcmp(p + bytes, guard.data(), after) == 0 &&
        memcmp(p + bytes + after, guard.data(), SIMT_GUARD) == 0)
        return;
    long at = -SIMT_GUARD;
    while ((at >= 0 && at < (long)bytes) || (unsigned char)p[at] == guard_byte) at++;
    simt_wrong("%s: byte %ld of an allocation of %zu bytes was written", what, at, bytes);
#endif
}

void simt_guarded_delete(char *p, size_t bytes, const char *what)
{
    if (!p) return;
    simt_guarded_check(p, bytes, what);
#if SIMT_ASAN
    __asan_unpoison_memory_region(p - SIMT_GUARD, (bytes + 255) / 256 * 256 + 2 * SIMT_GUARD);
#endif
    memset(p, 0xff, bytes);
    free(p - SIMT_GUARD);
}

// ---- Fibres -------------------------------------------------------------------------------------------------------

// A stack of its own. A fibre ends never: when a thread is done, it waits to be given another one.
struct fiber {
    char *stack;
#ifdef __x86_64__
    void *sp;
#else
    ucontext_t context;
#endif
    void *fake_stack;    // AddressSanitizer's
    fiber *before;       // the one that was made before: all are there until the program ends, and none is lost
};

enum { STACK = SIMT_ASAN ? 512 << 10 : 128 << 10, PAGE = 4096 };

static fiber scheduler;
static std::vector<fiber *> idle_fibers;
static fiber *last_fiber;

#ifdef __x86_64__
extern "C" void simt_switch(void **save, void *sp);
asm(R"(
    .text
    .type simt_switch, @function
simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size simt_switch, . - simt_switch
)");
#endif

static void fiber_main();

#if SIMT_ASAN
static const fiber *left;    // where the switch began
static const void *scheduler_stack;
static size_t scheduler_size;

static void leave(fiber *from, const fiber *to)
{
    left = from;
    __sanitizer_start_switch_fiber(&from->fake_stack, to == &scheduler ? scheduler_stack : to->stack,
                                   to == &scheduler ? scheduler_size : (size_t)STACK);
}
static void arrive(const fiber *at)
{
    const void *stack;
    size_t size;
    __sanitizer_finish_switch_fiber(at ? at->fake_stack : NULL, &stack, &size);
    if (left == &scheduler) scheduler_stack = stack, scheduler_size = size;
}
#else
static void leave(fiber *, const fiber *) {}
static void arrive(const fiber *) {}
#endif

static void switch_fiber(fiber *from, fiber *to)
{
    leave(from, to);
#ifdef __x86_64__
    simt_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrive(from);
}

static void fiber_entry()
{
    arrive(NULL);
    fiber_main();
}

static fiber *fiber_new()
{
    // Stacks begin at different places of a page: at the same one they would fight for the same lines of the cache.
    static size_t made;
    const size_t shift = made++ * 13 * 64 % PAGE;
    char *memory = (char *)mmap(NULL, PAGE + STACK, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) simt_wrong("no memory for the stack of a thread");
    mprotect(memory, PAGE, PROT_NONE);
    fiber *f = new fiber();    // not beside the stack: at the same place of a page they would fight for those lines too
    f->stack = memory + PAGE;
    f->before = last_fiber, last_fiber = f;
#ifdef __x86_64__
    void **top = (void **)(f->stack + STACK - shift);
    top[-2] = (void *)fiber_entry;    // below it six registers; above it where fiber_entry would return to
    f->sp = top - 8;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK - shift;
    makecontext(&f->context, fiber_entry, 0);
#endif
    return f;
}

// ---- Threads and blocks -------------------------------------------------------------------------------------------

enum state { READY, AT_BLOCK_BARRIER, AT_WARP, AT_CLUSTER, DONE };

struct copy {
    char *to;
    const char *from;
    size_t bytes, zero;
    size_t group;
};

struct block;

// What every wait needs is in the first 64 bytes: threads take turns so often that lines of the cache decide.
struct alignas(64) thread {
    enum state state;
    int number, lane;

    simt_warp_operation operation;    // the warp's meeting; value is the result in the end
    unsigned mask;
    int operand, width;
    uint64_t value;

    const simt_site *site;    // where it waits, on its own stack
    fiber *stack;
    struct block *block;

    uint3 index;
    simt_vote vote;    // the block barrier
    int predicate;

    bool arrived;    // at the cluster barrier, and has not waited yet
    uint64_t phase;

    std::vector<copy> copies;
    size_t group;
};

// By lane: who waits for others of the warp, and who has ended or never was.
struct warp {
    unsigned waiting, gone;
};

struct block {
    uint3 index;
    int live, at_barrier, result;
    std::vector<thread> threads;
    std::vector<warp> warps;
    std::vector<char> shared;    // what the shared variables hold while other blocks of a cluster run, or its cluster pauses
    char *dynamic;
};

// A piece of the shared variables, and those that a kernel was seen to write.
struct piece {
    size_t first, bytes;
};
struct shared_use {
    unsigned launches;
    std::vector<piece> pieces;
};

struct run_state {
    const simt_kernel *kernel;
    shared_use *known;            // of this kernel
    std::vector<piece> pieces;    // as they were known when it was launched
    std::vector<block> blocks;    // of the cluster
    int count, threads;
    struct block *in;    // whose shared variables are in place
    thread *current;
    std::vector<int> order;    // in which the threads of the block in place have their turns
    int turn;
    bool warps_first;    // the lanes of a warp are neighbours in order, and go on at once when they have met
    int cluster_arrived, cluster_live;
    uint64_t phase;
    bool moved_on;    // a thread did more in this round than to look once more at what it waits for
    char *shared;     // the shared variables of all kernels
    size_t shared_bytes;
    std::vector<char> filled;    // what they hold when a block starts, where it is to be seen what the kernel writes
};
static run_state run;

static const char *where(const thread *t)
{
    static char text[4][400];
    static int turn;
    char *s = text[turn++ % 4];
    snprintf(s, sizeof text[0], "thread (%u,%u,%u) of block (%u,%u,%u) at %s, %s:%d", t->index.x, t->index.y,
             t->index.z, t->block->index.x, t->block->index.y, t->block->index.z, t->site->call, t->site->file,
             t->site->line);
    return s;
}

void simt_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "simt: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    if (run.current)
        fprintf(stderr, "simt: in thread (%u,%u,%u) of block (%u,%u,%u)\n", threadIdx.x, threadIdx.y, threadIdx.z,
                blockIdx.x, blockIdx.y, blockIdx.z);
    va_end(arguments);
    abort();
}

// The next thread of the block that can run and has not had its turn; NULL: the scheduler goes on.
static thread *next_thread()
{
    while (run.turn < run.threads) {
        thread *t = &run.in->threads[(size_t)run.order[(size_t)run.turn++]];
        if (t->state == READY) return t;
    }
    return NULL;
}

static void become(thread *t, fiber *stack)
{
    t->stack = stack;
    run.current = t;
    threadIdx = t->index;
}

static void switch_to(fiber *from, thread *t)
{
    if (!t) {
        run.current = NULL;
        switch_fiber(from, &scheduler);
        return;
    }
    if (!t->stack) {
        if (idle_fibers.empty()) idle_fibers.push_back(fiber_new());
        become(t, idle_fibers.back());
        idle_fibers.pop_back();
    } else {
        become(t, t->stack);
    }
    switch_fiber(from, t->stack);
}

static void stopped(thread *);

static void wait_at(thread *t, enum state state)
{
    t->state = state;
    run.moved_on = true;
    stopped(t);
    switch_to(t->stack, next_thread());
}

// A thread that waits for memory to change comes after all others, also those of other blocks and of other kernels.
void simt_yield()
{
    thread *t = run.current;
    if (!t) simt_wrong("a pause outside of a kernel");
    switch_to(t->stack, next_thread());
}

static void fiber_main()
{
    for (;;) {
        thread *t = run.current;
        fiber *mine = t->stack;
        run.kernel->thread();
        t->state = DONE;
        t->stack = NULL;
        run.moved_on = true;
        stopped(t);
        thread *next = next_thread();
        if (next && !next->stack) {
            become(next, mine);
        } else {
            idle_fibers.push_back(mine);
            switch_to(mine, next);
        }
    }
}

static thread *here(const char *call)
{
    if (!run.current) simt_wrong("%s outside of a kernel", call);
    return run.current;
}

// ---- Barriers -----------------------------------------------------------------------------------------------------

int simt_block_barrier(const simt_site &site, simt_vote vote, int predicate)
{
    thread *t = here(site.call);
    t->site = &site, t->vote = vote, t->predicate = predicate != 0;
    t->block->at_barrier++;
    wait_at(t, AT_BLOCK_BARRIER);
    return t->block->result;
}

// Opens the barrier once all threads that live are there.
static void block_barrier_check(struct block *b)
{
    if (b->at_barrier < b->live || !b->live) return;
    const thread *first = NULL;
    int count = 0;
    for (thread &t : b->threads) {
        if (t.state != AT_BLOCK_BARRIER) continue;
        if (!first) first = &t;
        if (t.site->line != first->site->line ||
            (t.site->file != first->site->file && strcmp(t.site->file, first->site->file) != 0))
            simt_wrong("threads of a block wait at different barriers: %s; %s", where(first), where(&t));
        count += t.predicate;
        t.state = READY;
    }
    b->result = first->vote == SIMT_COUNT ? count : first->vote == SIMT_OR ? count > 0 : count == b->live;
    b->at_barrier = 0;
}

static void cluster_barrier_check()
{
    if (run.cluster_arrived < run.cluster_live || !run.cluster_live) return;
    run.cluster_arrived = 0;
    run.phase++;
    for (int b = 0; b < run.count; b++)
        for (thread &t : run.blocks[(size_t)b].threads)
            if (t.state == AT_CLUSTER) t.state = READY;
}

void simt_cluster_arrive(const simt_site &site)
{
    thread *t = here(site.call);
    t->site = &site;
    if (t->arrived) simt_wrong("arrives at the cluster barrier twice without a wait: %s", where(t));
    t->arrived = true;
    t->phase = run.phase;
    run.cluster_arrived++;
    cluster_barrier_check();
}

void simt_cluster_wait(const simt_site &site)
{
    thread *t = here(site.call);
    t->site = &site;
    if (!t->arrived) simt_wrong("waits at the cluster barrier without having arrived: %s", where(t));
    while (t->phase == run.phase) wait_at(t, AT_CLUSTER);
    t->arrived = false;
}

unsigned simt_cluster_rank() { return (unsigned)(here("the rank in the cluster")->block - run.blocks.data()); }
unsigned simt_cluster_blocks() { return (unsigned)run.count; }

// The same variable of another block.
void *simt_cluster_map(const void *p, unsigned rank)
{
    struct block *mine = here("the map of shared memory")->block;
    if (rank >= (unsigned)run.count) simt_wrong("there is no block %u in a cluster of %d", rank, run.count);
    struct block *other = &run.blocks[rank];
    const size_t dynamic = (size_t)((const char *)p - mine->dynamic), variable = (size_t)((const char *)p - run.shared);
    if (mine == other) return (void *)p;
    if (dynamic < run.kernel->dynamic_bytes) return other->dynamic + dynamic;
    if (variable < run.shared_bytes) return other->shared.data() + variable;
    simt_wrong("%p is not in the shared memory of the block", p);
}

// ---- Warps --------------------------------------------------------------------------------------------------------

static int source_lane(const thread *t)
{
    const int begin = t->lane & -t->width, end = begin + t->width;
    switch (t->operation) {
    case SIMT_SHUFFLE: return begin + (t->operand & (t->width - 1));
    case SIMT_SHUFFLE_UP: return t->lane - t->operand < begin ? t->lane : t->lane - t->operand;
    case SIMT_SHUFFLE_MANY:
    case SIMT_SHUFFLE_DOWN: return t->lane + t->operand >= end ? t->lane : t->lane + t->operand;
    case SIMT_SHUFFLE_XOR: return (t->lane ^ t->operand) >= end ? t->lane : t->lane ^ t->operand;
    default: return t->lane;
    }
}

// The lanes of a warp that meet have their next turns at once, most of the time: see permute_threads.
static void go_on_with_warp(int number)
{
    if (!run.warps_first) return;
    while (run.turn > 0 && run.order[(size_t)run.turn - 1] / 32 == number) run.turn--;
}

// Lets the lanes of t's mask go on, all of which are there or have ended. Lanes that have ended cannot come to a shuffle.
static void warp_goes_on(const thread *t)
{
    const int number = t->number / 32;
    warp *w = &t->block->warps[(size_t)number];
    thread *lanes = &t->block->threads[(size_t)(t->number - t->lane)];
    const unsigned mask = t->mask, gone = mask & w->gone;
    if (gone && t->operation != SIMT_SYNC)
        simt_wrong("lane %d, named in the mask 0x%08x, has ended or never was: %s", __builtin_ctz(gone), mask,
                   where(t));
    uint64_t values[32], ballot = 0;
    memset(values, 0xff, sizeof values);
    for (unsigned left = mask & ~gone; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const thread *o = &lanes[lane];
        if (o->mask != mask || o->operation != t->operation || o->width != t->width)
            simt_wrong("lanes of a warp meet in different operations: %s, mask 0x%08x; %s, mask 0x%08x", where(t), mask,
                       where(o), o->mask);
        values[lane] = o->value;
        ballot |= (o->value & 1) << lane;
    }
    for (unsigned left = mask & ~gone; left; left &= left - 1) {
        thread *o = &lanes[__builtin_ctz(left)];
        if (o->operation == SIMT_SHUFFLE_MANY) {
            const simt_many *to = (const simt_many *)(uintptr_t)o->value,
                            *from = (const simt_many *)(uintptr_t)values[source_lane(o)];
            memcpy(to->other, from->mine, sizeof(double) * (size_t)to->count);
        }
        o->value = o->operation == SIMT_BALLOT ? ballot : values[source_lane(o)];
        o->state = READY;
    }
    w->waiting &= ~mask;
    go_on_with_warp(number);
}

static void warp_check(const thread *t)
{
    const warp *w = &t->block->warps[(size_t)(t->number / 32)];
    const unsigned gone = t->mask & w->gone;
    if (((w->waiting | gone) & t->mask) == t->mask || (gone && t->operation != SIMT_SYNC)) warp_goes_on(t);
}

uint64_t simt_warp(const simt_site &site, simt_warp_operation operation, unsigned mask, uint64_t value, int operand,
                   int width)
{
    thread *t = here(site.call);
    t->site = &site, t->operation = operation, t->mask = mask, t->value = value, t->operand = operand, t->width = width;
    if (!(mask >> t->lane & 1))
        simt_wrong("the mask 0x%08x leaves out the caller, lane %d: %s", mask, t->lane, where(t));
    if (width < 1 || width > 32 || width & (width - 1)) simt_wrong("a width of %d: %s", width, where(t));
    t->block->warps[(size_t)(t->number / 32)].waiting |= 1u << t->lane;
    t->state = AT_WARP;
    warp_check(t);
    wait_at(t, t->state);    // or ready, if it was the last to come
    return t->value;
}

unsigned simt_lane_bit() { return 1u << here("__activemask")->lane; }

// ---- Shared memory, asynchronous copies, time ---------------------------------------------------------------------

// The shared variables of all kernels. With g++ they are the program's thread-local memory, together with a few
// variables of the host, which are put back when the kernel has ended.
#ifdef __clang__
extern "C" char __start_simt_shared[] __attribute__((weak)), __stop_simt_shared[] __attribute__((weak));
static void find_shared()
{
    run.shared = __start_simt_shared;
    run.shared_bytes = (size_t)(__stop_simt_shared - __start_simt_shared);
}
#else
static void find_shared()
{
    run.shared = NULL, run.shared_bytes = 0;
    dl_iterate_phdr(
        [](dl_phdr_info *program, size_t, void *) {
            for (int q = 0; q < program->dlpi_phnum; q++)
                if (program->dlpi_phdr[q].p_type == PT_TLS) {
                    run.shared = (char *)program->dlpi_tls_data;
                    run.shared_bytes = run.shared ? program->dlpi_phdr[q].p_memsz : 0;
                }
            return 1;    // the program is the first of all
        },
        NULL);
}
#endif

void *simt_dynamic_shared() { return here("dynamic shared memory")->block->dynamic; }

static void finish_copy(const copy &c)
{
    memcpy(c.to, c.from, c.bytes - c.zero);
    memset(c.to + c.bytes - c.zero, 0, c.zero);
}

void simt_copy_async(void *shared, const void *global, size_t bytes, size_t zero)
{
    thread *t = here("an asynchronous copy");
    const copy c = {(char *)shared, (const char *)global, bytes, zero, t->group};
    const size_t dynamic = (size_t)(c.to - t->block->dynamic), variable = (size_t)(c.to - run.shared);
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zero > bytes)
        simt_wrong("an asynchronous copy of %zu bytes, %zu of them zero", bytes, zero);
    if ((uintptr_t)shared % bytes || (uintptr_t)global % bytes)
        simt_wrong("an asynchronous copy of %zu bytes is not aligned: from %p to %p", bytes, global, shared);
    if (!(dynamic < run.kernel->dynamic_bytes && dynamic + bytes <= run.kernel->dynamic_bytes) &&
        !(variable < run.shared_bytes && variable + bytes <= run.shared_bytes))
        simt_wrong("an asynchronous copy to %p, which is not in the block's shared memory", shared);
    if (simt.delay == SIMT_EARLY || (simt.order == SIMT_SHUFFLED && random_below(2))) {
        finish_copy(c);
        return;
    }
    memset(c.to, 0xff, bytes);
    t->copies.push_back(c);
}

void simt_copy_commit() { here("an asynchronous copy")->group++; }

void simt_copy_wait(size_t groups_left)
{
    thread *t = here("an asynchronous copy");
    size_t left = 0;
    for (const copy &c : t->copies) {
        if (c.group + groups_left < t->group)
            finish_copy(c);
        else
            t->copies[left++] = c;
    }
    t->copies.resize(left);
}

uint64_t simt_now()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// ---- Running ------------------------------------------------------------------------------------------------------

// The shared variables of all kernels are some 600 kB, and to fill them takes longer than a small block. So a kernel's
// first launch, the second, the fourth, the eighth ... fill them all and see what the kernel writes. Other launches fill
// what was written in one of those, and only that is put back for the host. In a cluster blocks change places.
static bool fills_all() { return run.count > 1 || !run.filled.empty(); }

static void begin_to_fill()
{
    static std::map<const void *, shared_use> of_kernels;
    run.known = &of_kernels[run.kernel->code];
    const unsigned before = run.known->launches++;
    run.pieces = run.known->pieces;
    run.filled.clear();
    if (run.count > 1 || (before & (before + 1))) return;
    run.filled.resize(run.shared_bytes);
    simt_fill(run.filled.data(), run.shared_bytes);
}

static void see_what_was_written()
{
    enum { SIZE = 256 };
    std::vector<piece> &pieces = run.known->pieces, all;
    size_t next = 0;
    for (size_t at = 0; at < run.filled.size(); at += SIZE) {
        const size_t bytes = std::min((size_t)SIZE, run.filled.size() - at);
        while (next < pieces.size() && pieces[next].first + pieces[next].bytes <= at) next++;
        if (!(next < pieces.size() && pieces[next].first <= at) && !memcmp(run.shared + at, run.filled.data() + at, bytes))
            continue;
        if (!all.empty() && all.back().first + all.back().bytes == at)
            all.back().bytes += bytes;
        else
            all.push_back({at, bytes});
    }
    pieces = std::move(all);
}

// From `from` to `to`, beginnings of all shared variables, those that a launch fills.
static void copy_shared(char *to, const char *from)
{
    if (fills_all()) {
        if (run.shared_bytes) memcpy(to, from, run.shared_bytes);
    } else {
        for (const piece &p : run.pieces) memcpy(to + p.first, from + p.first, p.bytes);
    }
}

// Puts the shared variables of a block in place.
static void enter_block(struct block *b)
{
    if (run.in == b) return;
    if (run.in) memcpy(run.in->shared.data(), run.shared, run.shared_bytes);
    run.in = b;
    if (!b->shared.empty())
        memcpy(run.shared, b->shared.data(), run.shared_bytes);
    else if (fills_all())
        copy_shared(run.shared, run.filled.data());
    else
        for (const piece &p : run.pieces) simt_fill(run.shared + p.first, p.bytes);
}

// What the threads of all blocks of a launch have in common.
static void prepare_block(struct block *b)
{
    const dim3 n = run.kernel->block;
    b->threads.resize((size_t)run.threads);
    b->warps.resize((size_t)(run.threads + 31) / 32);
    for (int q = 0; q < run.threads; q++) {
        thread &t = b->threads[(size_t)q];
        t.index = {(unsigned)q % n.x, (unsigned)q / n.x % n.y, (unsigned)q / (n.x * n.y)};
        t.number = q, t.lane = q % 32, t.block = b, t.stack = NULL;
    }
}

static void prepare_blocks()
{
    run.blocks.resize((size_t)run.count);
    for (struct block &b : run.blocks) prepare_block(&b);
}

static void start_block(struct block *b, uint3 index)
{
    b->index = index;
    b->live = run.threads, b->at_barrier = 0;
    b->shared.clear();
    if (run.count > 1) {
        b->shared.resize(run.shared_bytes);
        simt_fill(b->shared.data(), run.shared_bytes);
    }
    b->dynamic = run.kernel->dynamic_bytes ? simt_guarded_new(run.kernel->dynamic_bytes) : NULL;
    for (warp &w : b->warps) w = {0, 0};
    if (run.threads % 32) b->warps.back().gone = ~0u << run.threads % 32;
    for (thread &t : b->threads) {
        t.state = READY;
        t.arrived = false;
        t.group = 0;
        t.copies.clear();
    }
}

// What may go on now that a thread waits or has ended.
static void stopped(thread *t)
{
    if (t->state == DONE) {
        t->block->live--;
        if (t->arrived && t->phase == run.phase) run.cluster_arrived--;
        run.cluster_live--;
        warp *w = &t->block->warps[(size_t)(t->number / 32)];
        w->gone |= 1u << t->lane;
        for (unsigned left = w->waiting; left; left &= left - 1) {
            const thread *o = &t->block->threads[(size_t)(t->number - t->lane + __builtin_ctz(left))];
            if (w->waiting >> o->lane & 1 && o->mask >> t->lane & 1) warp_check(o);
        }
    }
    if (t->state == DONE || t->state == AT_BLOCK_BARRIER) block_barrier_check(t->block);
    if (t->state == DONE) cluster_barrier_check();
}

static void explain_deadlock()
{
    char text[2000];
    int used = 0, kinds = 0;
    const thread *last = NULL;
    for (int b = 0; b < run.count; b++)
        for (const thread &t : run.blocks[(size_t)b].threads) {
            if (t.state == DONE || (last && last->site->line == t.site->line && last->state == t.state)) continue;
            last = &t;
            if (kinds++ < 4) used += snprintf(text + used, sizeof text - (size_t)used, "; %s", where(&t));
        }
    simt_wrong("threads wait for others that never come%s", text);
}

static void start_cluster(uint3 first)
{
    const dim3 c = run.kernel->cluster;
    if (run.blocks.empty()) prepare_blocks();
    run.phase = 0;
    run.cluster_arrived = 0, run.cluster_live = run.count * run.threads;
    for (unsigned q = 0; q < (unsigned)run.count; q++)
        start_block(&run.blocks[q], {first.x + q % c.x, first.y + q / c.x % c.y, first.z + q / (c.x * c.y)});
}

// In which order the threads of a block have their turns. Mostly a warp goes on, meeting after meeting, until all of its
// lanes wait for other warps: its lanes' stacks stay in the cache, and it comes as far ahead of the others as it can.
// Sometimes all threads of the block take turns from meeting to meeting.
static void permute_threads()
{
    run.warps_first = simt.order != SIMT_SHUFFLED || random_below(8);
    if (!run.warps_first) return simt_permute(run.order.data(), run.threads);
    int warps[32];
    const int count = (run.threads + 31) / 32;
    simt_permute(warps, count);
    int *p = run.order.data();
    for (int q = 0; q < count; q++) {
        const int lanes = std::min(32, run.threads - 32 * warps[q]);
        simt_permute(p, lanes);
        for (int e = 0; e < lanes; e++) p[e] += 32 * warps[q];
        p += lanes;
    }
}

// Runs the cluster in place to its end; false: until its threads only wait for memory to change.
static bool run_cluster()
{
    std::vector<int> blocks((size_t)run.count);
    run.order.resize((size_t)run.threads);
    while (run.cluster_live) {
        bool found = false;
        run.moved_on = false;
        simt_permute(blocks.data(), run.count);
        for (int b : blocks) {
            struct block *in = &run.blocks[(size_t)b];
            if (!in->live) continue;
            enter_block(in);
            blockIdx = in->index;
            permute_threads();
            run.turn = 0;
            thread *t = next_thread();
            if (!t) continue;
            found = true;
            switch_to(&scheduler, t);
        }
        if (!found) explain_deadlock();
        if (!run.moved_on) return false;
    }
    if (!run.filled.empty()) see_what_was_written();
    run.in = NULL;
    for (int b = 0; b < run.count; b++)
        simt_guarded_delete(run.blocks[(size_t)b].dynamic, run.kernel->dynamic_bytes, "dynamic shared memory");
    return true;
}

// A cluster whose threads wait for memory to change, so that others of the kernel run meanwhile: on a GPU all of a
// kernel that waits for others are there at once.
struct paused_cluster {
    std::vector<block> blocks;
    int arrived, live;
    uint64_t phase;
};

static paused_cluster put_aside()
{
    if (run.in) run.in->shared.assign(run.shared, run.shared + run.shared_bytes);
    run.in = NULL;
    return {std::exchange(run.blocks, {}), run.cluster_arrived, run.cluster_live, run.phase};
}

static bool resume(paused_cluster *p)
{
    run.blocks = std::move(p->blocks);
    run.cluster_arrived = p->arrived, run.cluster_live = p->live, run.phase = p->phase;
    if (run_cluster()) return true;
    *p = put_aside();
    return false;
}

// Other threads of the host run kernels meanwhile.
static void let_others_run()
{
    run_state mine = std::exchange(run, {});
    simt_give_way();
    run = std::move(mine);
    gridDim = run.kernel->grid, blockDim = run.kernel->block;
}

static void run_paused(std::vector<paused_cluster> paused)
{
    while (!paused.empty()) {
        std::vector<int> order(paused.size());
        simt_permute(order.data(), (int)order.size());
        std::vector<paused_cluster> left;
        for (int q : order)
            if (!resume(&paused[(size_t)q])) left.push_back(std::move(paused[(size_t)q]));
        paused = std::move(left);
        if (!paused.empty()) let_others_run();
    }
}

void simt_run(const simt_kernel &kernel)
{
    find_shared();
    run.kernel = &kernel;
    run.threads = (int)(kernel.block.x * kernel.block.y * kernel.block.z);
    run.count = (int)(kernel.cluster.x * kernel.cluster.y * kernel.cluster.z);
    begin_to_fill();
    static std::vector<char> spare;    // one allocation for all kernels, but for those that run while others pause
    std::vector<char> host = std::move(spare);
    host.resize(run.shared_bytes);
    copy_shared(host.data(), run.shared);
    prepare_blocks();
    gridDim = kernel.grid, blockDim = kernel.block;
    const dim3 n =
        dim3(kernel.grid.x / kernel.cluster.x, kernel.grid.y / kernel.cluster.y, kernel.grid.z / kernel.cluster.z);
    std::vector<int> order((size_t)n.x * n.y * n.z);
    simt_permute(order.data(), (int)order.size());
    std::vector<paused_cluster> paused;
    for (int q : order) {
        const unsigned p = (unsigned)q;
        start_cluster(
            {p % n.x * kernel.cluster.x, p / n.x % n.y * kernel.cluster.y, p / (n.x * n.y) * kernel.cluster.z});
        if (!run_cluster()) paused.push_back(put_aside());
    }
    run_paused(std::move(paused));
    copy_shared(run.shared, host.data());
    spare = std::move(host);
}
