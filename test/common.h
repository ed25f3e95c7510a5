/* What all tests share: cmocka, the choice of back end, random numbers, boundary kinds by letter.

   A test that runs on both back ends is listed as ON_BOTH(name) and begins with
       pg_backend backend = backend_or_skip(state);
   The CUDA one counts as skipped where no device can be used. In the environment PG_TEST_SMALL reduces counts and
   sizes, and PG_TEST_FILTER and PG_TEST_SKIP, with * and ?, choose tests by name and leave them out. */
#ifndef TEST_COMMON_H
#define TEST_COMMON_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {   /* cmocka.h has none of its own */
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif
#include "poisson_gpu.h"
#include "choice.h"

#define PI 3.14159265358979323846

static pg_backend on_cpu = PG_CPU, on_cuda = PG_CUDA;

#define ON_CPU(name) {#name "_on_cpu", name, NULL, NULL, &on_cpu}
#define ON_CUDA(name) {#name "_on_cuda", name, NULL, NULL, &on_cuda}
#define ON_BOTH(name) ON_CPU(name), ON_CUDA(name)

static inline int cuda_is_usable(void)
{
    static int usable = -1;
    if (usable < 0) {
        pg_desc desc = {0};
        desc.n[0] = 1;
        desc.backend = PG_CUDA;
        pg_solver *solver = NULL;
        usable = pg_create(&desc, &solver) != PG_ERROR_NO_DEVICE;   /* any other failure shall be seen by the tests */
        pg_destroy(solver);
    }
    return usable;
}

static inline pg_backend backend_or_skip(void **state)
{
    const pg_backend backend = *(pg_backend *)*state;
    (void)&on_cpu, (void)&on_cuda;
    if (backend == PG_CUDA && !cuda_is_usable()) skip();
    return backend;
}

/* PG_TEST_SMALL: for runs under sanitizers, which are slow. */
static inline int small_run(void)
{
    const char *value = getenv("PG_TEST_SMALL");
    return value && *value && strcmp(value, "0") != 0;
}
static inline int full_or_small(int full, int small) { return small_run() ? small : full; }

__attribute__((constructor)) static void choose_tests(void)
{
    if (getenv("PG_TEST_FILTER")) cmocka_set_test_filter(getenv("PG_TEST_FILTER"));
    if (getenv("PG_TEST_SKIP")) cmocka_set_skip_filter(getenv("PG_TEST_SKIP"));
}

/* A call that must succeed; otherwise the test fails with the library's own sentence. */
#define OK(call, solver)                                                                                              \
    do {                                                                                                              \
        const pg_status status_ = (call);                                                                             \
        if (status_ != PG_OK) fail_msg("%s: %s: %s", #call, pg_status_string(status_), pg_last_error(solver));        \
    } while (0)

static inline pg_solver *create(const pg_desc *desc)
{
    pg_solver *solver = NULL;
    OK(pg_create(desc, &solver), NULL);
    assert_non_null(solver);
    return solver;
}

static inline void *allocate(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    assert_non_null(p);
    return p;
}

/* Random numbers: splitmix64 (Steele, Lea, Flood 2014); the same sequence everywhere. */
typedef struct rng { uint64_t state; } rng;

static inline uint64_t rng_next(rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline double rng_uniform(rng *r, double low, double high)
{
    return low + (high - low) * (double)(rng_next(r) >> 11) * 0x1p-53;
}
static inline int rng_int(rng *r, int low, int high)   /* both ends included */
{
    return low + (int)(rng_next(r) % (uint64_t)(high - low + 1));
}

/* Sets the two faces of an axis by letter: D, N, R (a = 1, b = 0.5), P or O; g = 0. */
static inline void set_ends(pg_desc *desc, int axis, const char *ends)
{
    for (int side = 0; side < 2; side++) {
        pg_face *face = &desc->face[2 * axis + side];
        memset(face, 0, sizeof *face);
        switch (ends[side]) {
        case 'D': face->kind = PG_DIRICHLET; break;
        case 'N': face->kind = PG_NEUMANN; break;
        case 'R': face->kind = PG_ROBIN, face->a = 1, face->b = 0.5; break;
        case 'P': face->kind = PG_PERIODIC; break;
        case 'O': face->kind = PG_OPEN; break;
        default: fail_msg("no face kind %c", ends[side]);
        }
    }
}

/* The letter of a face's kind, for messages. */
static inline char face_letter(const pg_desc *desc, int face) { return "DNRPO"[desc->face[face].kind]; }

/* One line that says which problem it is, for messages of tests that try many. */
static inline const char *describe(const pg_desc *desc)
{
    static char text[240];
    int used = 0;
    for (int axis = 0; axis < 3; axis++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d %s %c%c%s%s", axis ? ", " : "", desc->n[axis],
                         desc->centring[axis] == PG_CELL ? "cell" : "node", face_letter(desc, 2 * axis),
                         face_letter(desc, 2 * axis + 1), desc->coord[axis] ? " coord" : "",
                         desc->weight[axis] || desc->conductance[axis] ? " metric" : "");
    snprintf(text + used, sizeof text - (size_t)used, ", dim %d, alpha %g, beta %g, flags 0x%x", desc->dim, desc->alpha,
             desc->beta, desc->flags);
    return text;
}

#endif
