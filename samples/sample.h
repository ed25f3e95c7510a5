/* What the samples share: command-line options, and arrays that live where the solver runs.
   The build defines PG_SAMPLE_CUDA where it finds the CUDA toolkit; without it every array is host memory. Valid C++
   too, for samples with kernels of their own. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef PG_SAMPLE_CUDA
#include <cuda_runtime.h>
#endif
#include "poisson_gpu.h"

/* A refused call ends the program with the library's own sentence. */
static inline void sample_check(pg_status status, const pg_solver *solver)
{
    if (status == PG_OK) return;
    fprintf(stderr, "%s: %s\n", pg_status_string(status), pg_last_error(solver));
    exit(2);
}

static inline void sample_require(int true_or_not, const char *what)
{
    if (true_or_not) return;
    fprintf(stderr, "%s failed\n", what);
    exit(2);
}

/* Looks for an option of one word, or of two with its value, and takes it out of argv: what stays there is a
   mistake. Returns the last of the words, or NULL. */
static inline const char *sample_take(int *argc, char **argv, const char *name, int words)
{
    for (int a = 1; a + words <= *argc; a++) {
        if (strcmp(argv[a], name)) continue;
        const char *last = argv[a + words - 1];
        *argc -= words;
        for (; a < *argc; a++) argv[a] = argv[a + words];
        return last;
    }
    return NULL;
}

static inline const char *sample_option(int *argc, char **argv, const char *name, const char *otherwise)
{
    const char *value = sample_take(argc, argv, name, 2);
    return value ? value : otherwise;
}

/* A number from low to high; anything else ends the program with the option's name. */
static inline double sample_number(int *argc, char **argv, const char *name, double otherwise, double low, double high)
{
    const char *text = sample_take(argc, argv, name, 2);
    char *end = NULL;
    const double value = text ? strtod(text, &end) : otherwise;
    if (!text || (end != text && !*end && value >= low && value <= high)) return value;
    fprintf(stderr, "%s takes a number from %g to %g, not '%s'\n", name, low, high, text);
    exit(2);
}

/* A named value of a command-line option; a list of them ends with a NULL name. */
struct sample_choice { const char *name; unsigned value; };

static inline unsigned sample_choose(const struct sample_choice *list, const char *name)
{
    const struct sample_choice *c = list;
    while (c->name && strcmp(c->name, name)) c++;
    if (c->name) return c->value;
    fprintf(stderr, "'%s' is not one of", name);
    for (c = list; c->name; c++) fprintf(stderr, " %s", c->name);
    fputc('\n', stderr);
    exit(2);
}

/* Device memory if this back end turns out to be CUDA, found by asking for a solver with one unknown. */
static inline pg_memory sample_memory(pg_backend wanted)
{
    pg_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.n[0] = 1;
    desc.backend = wanted;
    pg_solver *probe;
    sample_check(pg_create(&desc, &probe), NULL);
    sample_check(pg_query_desc(probe, &desc), probe);
    pg_destroy(probe);
#ifdef PG_SAMPLE_CUDA
    if (desc.backend == PG_CUDA) return PG_MEM_DEVICE;
#endif
    return PG_MEM_HOST;
}

/* Memory, or the end of the program. */
static inline void *sample_alloc(size_t bytes, pg_memory memory)
{
    void *block = NULL;
#ifdef PG_SAMPLE_CUDA
    if (memory == PG_MEM_DEVICE) sample_require(cudaMalloc(&block, bytes) == cudaSuccess, "cudaMalloc");
#endif
    if (memory == PG_MEM_HOST) sample_require((block = malloc(bytes)) != NULL, "malloc");
    return block;
}

static inline void sample_free(void *block, pg_memory memory)
{
#ifdef PG_SAMPLE_CUDA
    if (memory == PG_MEM_DEVICE) sample_require(cudaFree(block) == cudaSuccess, "cudaFree");
#endif
    if (memory == PG_MEM_HOST) free(block);
}

/* Between a host array and one of sample_alloc's, in either direction; waits. */
static inline void sample_copy(void *to, const void *from, size_t bytes, pg_memory memory)
{
#ifdef PG_SAMPLE_CUDA
    if (memory == PG_MEM_DEVICE)
        sample_require(cudaMemcpy(to, from, bytes, cudaMemcpyDefault) == cudaSuccess, "cudaMemcpy");
#endif
    if (memory == PG_MEM_HOST) memcpy(to, from, bytes);
}

/* Doubles on the host to an array of the solver's precision, where the solver runs; and back. */
static inline void sample_put(void *array, const double *value, size_t count, const pg_desc *desc)
{
    const int f32 = (desc->flags & PG_F32) != 0;
    float *single = (float *)sample_alloc(count * sizeof *single, PG_MEM_HOST);
    for (size_t m = 0; f32 && m < count; m++) single[m] = (float)value[m];
    sample_copy(array, f32 ? (const void *)single : value, count * (f32 ? 4 : 8), desc->memory);
    free(single);
}

static inline void sample_get(double *value, const void *array, size_t count, const pg_desc *desc)
{
    const int f32 = (desc->flags & PG_F32) != 0;
    float *single = (float *)sample_alloc(count * sizeof *single, PG_MEM_HOST);
    sample_copy(f32 ? (void *)single : value, array, count * (f32 ? 4 : 8), desc->memory);
    for (size_t m = 0; f32 && m < count; m++) value[m] = single[m];
    free(single);
}

/* A bar as long as the share that is done; what belongs beside it is the caller's to print. */
static inline void sample_bar(double done)
{
    fprintf(stderr, "\r[%-40.*s] ", done > 0 ? (int)fmin(40, 40 * done) : 0, "########################################");
}

/* A monitor that draws how far the residual has fallen, in powers. user: the relative tolerance, a double. */
static inline int sample_progress(void *user, const pg_report *so_far)
{
    const double target = *(double *)user * so_far->rhs_norm;
    const double done = log(so_far->first_residual / so_far->residual) / log(so_far->first_residual / target);
    sample_bar(done);
    fprintf(stderr, "%d iteration%s, residual %.2e ", so_far->iterations, so_far->iterations == 1 ? "" : "s", so_far->residual);
    return 0;
}

/* Random numbers in -1..1: element m of the splitmix64 sequence. */
static inline double sample_noise(uint64_t m)
{
    uint64_t x = (m + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) / 4503599627370496.0 - 1;
}

#endif
