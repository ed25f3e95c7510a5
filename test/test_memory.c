/* Memory that nobody wrote decides nothing: handles of every kind, in a workspace that is full of zeros, of NaN, or of
   random bits, give the same bits of u, of their pieces and reports. So does u where it is only an output.

   Compiled with -DPG_TEST_CUDA where the CUDA runtime is found; otherwise, and without a device, those on CUDA count as
   skipped. */
#include "common.h"
#ifdef PG_TEST_CUDA
#include <cuda_runtime.h>
#endif

enum {
    MASK = 1,
    AIR = 2,
    BETA_CELL = 4,
    BETA_FACE = 8,
    OPENNESS = 16,
    ALPHA_CELL = 32,
    VALUES = 64,
    COORD = 128,
    METRIC = 256,
    BATCH = 512,
    VELOCITY = 1024,
    STRIDES = 2048,
    ALPHA = 4096,
    FACES = 8192,
    ROBUST = 16384,
    LABYRINTH = 32768,
    WILD = 65536,
    NODES = 131072,
    SURFACES = 262144
};

struct kind {
    int n[3], dim;
    const char *ends[3];
    unsigned flags, has;
};

static const struct kind kinds[] = {
    {{17, 14, 13}, 3, {"DN", "PP", "RD"}, 0, NODES | FACES},
    {{16, 16, 16}, 3, {"NN", "NN", "NN"}, PG_FMG, 0},
    {{33, 15, 10}, 3, {"DD", "NN", "PP"}, PG_VCYCLE | PG_SMOOTH_JACOBI, FACES | STRIDES},
    {{20, 21, 9}, 3, {"PP", "PP", "PP"}, PG_WCYCLE | PG_SMOOTH_CHEBYSHEV, 0},
    {{19, 18, 17}, 3, {"DD", "ND", "NN"}, PG_FMG | PG_SMOOTH_LINES, COORD | NODES},
    {{18, 18, 18}, 3, {"DD", "DD", "DD"}, 0, WILD},
    {{18, 17, 12}, 3, {"NN", "DD", "NN"}, PG_FMG | PG_KEEP_CYCLES, WILD},
    {{12, 11, 10}, 3, {"DD", "RN", "PP"}, PG_JACOBI, ALPHA},
    {{12, 11, 10}, 3, {"DD", "RN", "PP"}, PG_RBGS, FACES},
    {{13, 11, 10}, 3, {"PP", "NN", "NN"}, PG_SOR, 0},
    {{33, 34, 1}, 2, {"DD", "NN", ""}, 0, METRIC | NODES},
    {{40, 29, 1}, 2, {"NN", "PP", ""}, PG_FMG, BATCH},
    {{40, 29, 1}, 2, {"PP", "PP", ""}, PG_VCYCLE | PG_SYMMETRIC, STRIDES | BATCH},
    {{90, 1, 1}, 1, {"DR", "", ""}, 0, 0},
    {{65, 1, 1}, 1, {"NN", "", ""}, PG_FMG, COORD},
    {{15, 16, 17}, 3, {"DD", "NN", "PP"}, PG_DIRECT, NODES | FACES},
    {{17, 13, 11}, 3, {"NN", "NN", "NN"}, PG_DIRECT, BATCH},
    {{31, 26, 1}, 2, {"DD", "NN", ""}, PG_DIRECT, COORD | BATCH},
    {{77, 1, 1}, 1, {"PP", "", ""}, PG_DIRECT, BATCH | STRIDES},
    {{16, 15, 14}, 3, {"DD", "NN", "PP"}, PG_CG, FACES},
    {{16, 15, 14}, 3, {"NN", "NN", "PP"}, PG_CG | PG_PRECOND_AINV2, BATCH},
    {{16, 15, 14}, 3, {"DN", "NN", "PP"}, PG_PIPECG | PG_PRECOND_DIAGONAL, STRIDES},
    {{31, 30, 1}, 2, {"DN", "NN", ""}, PG_PIPECG, 0},
    {{16, 15, 14}, 3, {"DD", "NN", "PP"}, PG_BICGSTAB | PG_PRECOND_AINV, VELOCITY},
    {{16, 15, 14}, 3, {"DD", "NN", "DN"}, PG_BICGSTAB | PG_UPWIND, VELOCITY},
    {{31, 30, 1}, 2, {"DD", "NN", ""}, PG_PIPEBICGSTAB | PG_PRECOND_NONE, VELOCITY | BATCH},
    {{15, 14, 9}, 3, {"DD", "NN", "NN"}, PG_CG | PG_PRECOND_DIRECT, COORD},
    {{16, 15, 14}, 3, {"NN", "NN", "NN"}, 0, MASK},
    {{16, 15, 14}, 3, {"PP", "NN", "DD"}, PG_FMG, MASK | AIR | VALUES | FACES | ROBUST},
    {{14, 11, 12}, 3, {"PP", "NN", "NN"}, PG_CG, MASK | BETA_CELL | ALPHA_CELL},
    {{16, 15, 14}, 3, {"NN", "NN", "DN"}, PG_CG, MASK | BETA_FACE | OPENNESS | COORD | LABYRINTH},
    {{11, 10, 9}, 3, {"NN", "NN", "NN"}, PG_PIPECG, MASK | OPENNESS | BATCH},
    {{16, 15, 14}, 3, {"NN", "RN", "NN"}, PG_BICGSTAB | PG_PRECOND_AINV, MASK | AIR | STRIDES},
    {{16, 15, 14}, 3, {"NN", "RN", "NN"}, PG_PIPEBICGSTAB | PG_PRECOND_DIAGONAL, BETA_FACE | ALPHA},
    {{16, 15, 14}, 3, {"DD", "NN", "NN"}, PG_VCYCLE, MASK | AIR | VALUES},
    {{16, 15, 14}, 3, {"DD", "NN", "NN"}, PG_CG | PG_COARSEN_CELLS, MASK | AIR},
    {{16, 15, 14}, 3, {"DD", "NN", "NN"}, PG_CG | PG_PRECOND_DIRECT, MASK},
    {{16, 15, 14}, 3, {"DD", "NN", "NN"}, PG_RBGS, MASK | AIR | BETA_CELL},
    {{17, 17, 1}, 2, {"NN", "ND", ""}, 0, MASK | ROBUST},
    {{40, 33, 1}, 2, {"NN", "PP", ""}, PG_FMG, MASK | AIR | LABYRINTH | BATCH},
    {{40, 33, 1}, 2, {"NN", "PP", ""}, PG_FMG, BETA_FACE},
    {{64, 1, 1}, 1, {"NN", "", ""}, 0, MASK | AIR},
    {{64, 1, 1}, 1, {"DD", "", ""}, PG_CG, BETA_CELL | ALPHA_CELL},
    {{16, 15, 14}, 3, {"NN", "PP", "DR"}, PG_FMG, MASK | AIR | VALUES | SURFACES | NODES | METRIC | FACES},
    {{16, 15, 14}, 3, {"NN", "NN", "NN"}, PG_PIPECG, MASK | AIR | VALUES | SURFACES | ALPHA_CELL | OPENNESS},
    {{33, 34, 1}, 2, {"RN", "DN", ""}, 0, MASK | AIR | VALUES | SURFACES | NODES | COORD | BETA_FACE | BATCH},
    {{33, 34, 1}, 2, {"NN", "PP", ""}, PG_FMG, MASK | NODES | METRIC | ROBUST},
};

/* What a handle gave, in the order in which it was asked. */
struct record {
    char *bytes;
    size_t used, room;
};

static void add(struct record *r, const void *from, size_t bytes)
{
    if (r->used + bytes > r->room) {
        r->room = 2 * (r->used + bytes);
        r->bytes = realloc(r->bytes, r->room);
        assert_non_null(r->bytes);
    }
    memcpy(r->bytes + r->used, from, bytes);
    r->used += bytes;
}

static void add_report(struct record *r, const pg_report *t)
{
    const double numbers[] = {t->rhs_norm, t->first_residual, t->residual, t->floor, t->factor, t->removed_mean};
    const int counts[] = {(int)t->outcome, t->iterations, t->history_count, t->problem, t->accelerated, t->singular_components};
    add(r, numbers, sizeof numbers);
    add(r, counts, sizeof counts);
    add(r, t->history, (size_t)(t->history_count < PG_HISTORY ? t->history_count : PG_HISTORY) * sizeof *t->history);
    add(r, t->message, strlen(t->message));
    add(r, t->method, strlen(t->method));
    add(r, t->warning, strlen(t->warning));
}

/* 0: zeros; 1: NaN in every precision; 2: random bits. */
enum { FILLS = 3 };
static void fill_bytes(void *at, size_t bytes, int how)
{
    rng r = {(uint64_t)how};
    memset(at, how == 1 ? 0xff : 0, bytes);
    for (size_t q = 0; how > 1 && q + 8 <= bytes; q += 8) {
        const uint64_t bits = rng_next(&r);
        memcpy((char *)at + q, &bits, sizeof bits);
    }
}

/* A workspace on the CPU or the device, from a block that is freed with it. */
struct workspace {
    pg_backend backend;
    void *block, *aligned;
};

static struct workspace workspace_create(pg_backend backend, size_t bytes, int how)
{
    struct workspace w = {backend, NULL, NULL};
    char *host = allocate(bytes + 256);
    w.block = host;
    w.aligned = host + (256 - (uintptr_t)host % 256) % 256;
    fill_bytes(w.aligned, bytes, how);
#ifdef PG_TEST_CUDA
    if (backend == PG_CUDA) {
        void *device = NULL;
        assert_int_equal(cudaMalloc(&device, bytes ? bytes : 1), cudaSuccess);
        assert_int_equal(cudaMemcpy(device, w.aligned, bytes, cudaMemcpyHostToDevice), cudaSuccess);
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        free(host);
        w.block = w.aligned = device;
    }
#endif
    return w;
}
static void workspace_free(struct workspace *w)
{
#ifdef PG_TEST_CUDA
    if (w->backend == PG_CUDA) assert_int_equal(cudaFree(w->block), cudaSuccess);
#endif
    if (w->backend != PG_CUDA) free(w->block);
}

/* A problem with all its arrays, in double and in the precision that it has. */
enum { ARRAYS = 24, VALUES_MOST = 64 };
struct problem {
    pg_desc desc;
    const struct kind *kind;
    size_t points, size, u_bytes, f_bytes;
    void *array[ARRAYS];
    int arrays;
    unsigned char *mask[2];
    pg_cell_value air[VALUES_MOST], flux[VALUES_MOST];
};

static void *keep(struct problem *p, void *array)
{
    assert_true(p->arrays < ARRAYS);
    return p->array[p->arrays++] = array;
}

/* So many values from low to high of the problem's precision; decades: spread evenly in powers. */
static void *values(struct problem *p, size_t count, double low, double high, int decades, uint64_t seed)
{
    rng r = {seed};
    char *array = keep(p, allocate(count * p->size));
    for (size_t q = 0; q < count; q++) {
        const double t = rng_uniform(&r, 0, 1), v = decades ? low * pow(high / low, t) : low + (high - low) * t;
        const float single = (float)v;
        memcpy(array + q * p->size, p->size == 4 ? (const void *)&single : &v, p->size);
    }
    return array;
}

static double *doubles(struct problem *p, int count) { return keep(p, allocate((size_t)count * sizeof(double))); }

static void describe_axes(struct problem *p)
{
    pg_desc *d = &p->desc;
    const unsigned has = p->kind->has;
    for (int a = 0; a < p->kind->dim; a++) {
        const int n = p->kind->n[a];
        d->n[a] = n;
        d->centring[a] = has & NODES ? PG_NODE : PG_CELL;
        set_ends(d, a, p->kind->ends[a]);
        if (has & VELOCITY) d->velocity[a] = 3 - a;
        if (has & WILD || (has & COORD && a == 0)) {
            const int periodic = p->kind->ends[a][0] == 'P';
            const int ends =
                has & NODES && !periodic ? 2 - (p->kind->ends[a][0] != 'D') - (p->kind->ends[a][1] != 'D') : 0;
            const int m = has & NODES && !periodic ? n - 1 + ends : n;
            double *x = doubles(p, m + 1);
            x[0] = 0;
            for (int i = 0; i < m; i++)
                x[i + 1] = x[i] + pow(has & WILD ? 1.4 : 1.15, has & WILD && i > m / 2 ? m - i : i);
            d->coord[a] = x;
        }
        if (has & METRIC && a == 0) {
            double *w = doubles(p, n), *k = doubles(p, n + 1);
            for (int i = 0; i <= n; i++) k[i] = 1 + 0.1 * i;
            for (int i = 0; i < n; i++) w[i] = 1.05 + 0.1 * i;
            d->weight[a] = w, d->conductance[a] = k;
        }
    }
}

/* Values on the sides of the first fluid cells that have air, or a solid, beside them along x. */
static void list_values(struct problem *p)
{
    const int *n = p->kind->n;
    int *airs = &p->desc.cells.air_values, *fluxes = &p->desc.cells.solid_fluxes;
    p->desc.cells.air_value = p->air, p->desc.cells.solid_flux = p->flux;
    for (size_t m = 0; m < p->points; m++) {
        const unsigned char *at = &p->mask[0][m];
        pg_cell_value v = {
            {(int)(m % (size_t)n[0]), (int)(m / (size_t)n[0]) % n[1], (int)(m / (size_t)(n[0] * n[1]))},
            PG_X_HIGH,
            0.01 * (double)(m % 90), 0};
        if (v.cell[0] == n[0] - 1 || *at != PG_FLUID) continue;
        if (at[1] == PG_AIR && p->kind->has & SURFACES) v.theta = 0.1 * (double)(1 + m % 10);
        if (at[1] == PG_AIR && *airs < VALUES_MOST) p->air[(*airs)++] = v;
        if (at[1] == PG_SOLID && *fluxes < VALUES_MOST) p->flux[(*fluxes)++] = v;
    }
    assert_true(*airs > 0 && *fluxes > 0);
}

static void describe_cells(struct problem *p)
{
    pg_desc *d = &p->desc;
    const unsigned has = p->kind->has;
    const int *n = p->kind->n;
    rng r = {3};
    for (int q = 0; q < 2; q++) {
        p->mask[q] = keep(p, allocate(p->points));
        for (size_t m = 0; m < p->points; m++) {
            const int i = (int)(m % (size_t)n[0]), any = rng_int(&r, 0, 9);
            p->mask[q][m] = has & AIR && i > n[0] - 4 - q ? PG_AIR : any < 2 || i == n[0] / 2 - q ? PG_SOLID : PG_FLUID;
        }
    }
    if (has & VALUES) list_values(p);
    if (has & MASK) d->cells.mask = p->mask[0];
    if (has & BETA_CELL) d->cells.beta_cell = values(p, p->points, 1e-3, 1e3, 1, 5);
    if (has & ALPHA_CELL) d->cells.alpha_cell = values(p, p->points, 0, 50, 0, 6);
    for (int a = 0; a < p->kind->dim && has & (BETA_FACE | OPENNESS); a++) {
        const size_t faces = p->points / (size_t)n[a] * ((size_t)n[a] + 1);
        if (has & BETA_FACE) d->cells.beta_face[a] = values(p, faces, 1e-2, 1e2, 1, 7 + (uint64_t)a);
        if (has & OPENNESS) d->cells.openness[a] = values(p, faces, 0, 1, 0, 10 + (uint64_t)a);
    }
    if (has & ROBUST) d->robust = 1;
    if (has & LABYRINTH) d->robust = 2;
}

static void describe_problem(struct problem *p, const struct kind *kind, unsigned precision, pg_backend backend)
{
    memset(p, 0, sizeof *p);
    p->kind = kind;
    p->size = precision == PG_F32 ? sizeof(float) : sizeof(double);
    p->points = (size_t)kind->n[0] * (size_t)kind->n[1] * (size_t)kind->n[2];
    pg_desc *d = &p->desc;
    d->dim = kind->dim;
    d->backend = backend;
    set_choice(d, kind->flags | precision);
    describe_axes(p);
    if (kind->has & ALPHA) d->alpha = 30;
    if (kind->has & BATCH) d->batch = 3;
    for (int s = 0; s < 2 * kind->dim && kind->has & FACES; s++) {
        if (d->face[s].kind == PG_PERIODIC) continue;
        if (s % 3 == 0) d->face[s].array = values(p, p->points, -1, 1, 0, 20 + (uint64_t)s);
        d->face[s].value = 0.3;
    }
    describe_cells(p);
    const int64_t gap = kind->has & STRIDES ? 3 : 0, row = kind->n[0] + gap, plane = row * kind->n[1] + gap;
    if (gap) d->stride_u[0] = d->stride_f[0] = row, d->stride_u[1] = d->stride_f[1] = plane;
    if (gap) d->stride_u[2] = d->stride_f[2] = plane * kind->n[2] + gap;
    p->u_bytes = p->f_bytes = p->size * (size_t)((plane * kind->n[2] + gap) * (d->batch ? d->batch : 1));
}

/* A call whose result is kept where it is possible, and that it is not elsewhere. */
#define TRY(r, call, array, bytes)                                                                                     \
    do {                                                                                                               \
        const pg_status status_ = (call);                                                                              \
        add(r, &status_, sizeof status_);                                                                              \
        if (status_ == PG_OK) add(r, array, bytes);                                                                    \
    } while (0)

static void solve_and_add(struct record *r, pg_solver *s, void *u, size_t bytes, const void *f, const pg_stop *stop)
{
    pg_report report;
    OK(pg_solve(s, u, f, stop), s);
    OK(pg_get_report(s, &report), s);
    add_report(r, &report);
    add(r, u, bytes);
}

static void pieces(struct record *r, struct problem *p, pg_solver *s, void *u, const void *f)
{
    const size_t room = 2 * p->u_bytes; /* values at faces are one more an axis */
    char *const v = allocate(room);
    double number;
#define PIECE(call)                                                                                                    \
    memset(v, 0, room);                                                                                                \
    TRY(r, call, v, room)
    PIECE(pg_apply(s, u, v));
    PIECE(pg_residual(s, u, f, v));
    for (int a = 0; a < p->kind->dim; a++) {
        PIECE(pg_gradient(s, u, a, v, PG_AT_FACES));
        PIECE(pg_gradient(s, u, a, v, PG_AT_UNKNOWNS));
    }
    for (int kind = PG_NORM_L2; kind <= PG_NORM_L1; kind++)
        TRY(r, pg_norm(s, u, (pg_norm_kind)kind, &number), &number, sizeof number);
    TRY(r, pg_dot(s, u, NULL, &number), &number, sizeof number);
    TRY(r, pg_dot(s, u, f, &number), &number, sizeof number);
    TRY(r, pg_smooth(s, u, f, 3), u, p->u_bytes);
    TRY(r, pg_cycle(s, u, f, 2), u, p->u_bytes);
    free(v);
}

static void run(struct record *r, struct problem *p, int how, const char *name)
{
    pg_desc desc = p->desc;
    size_t bytes;
    const pg_status status = pg_workspace_bytes(&desc, &bytes);
    if (status != PG_OK) fail_msg("%s: %s", name, pg_last_error(NULL));
    struct workspace w = workspace_create(desc.backend, bytes, how);
    desc.workspace = w.aligned, desc.workspace_bytes = bytes;
    pg_solver *s = create(&desc);
    const int kept = p->arrays;
    void *f = values(p, p->f_bytes / p->size, -1, 1, 0, 1), *u = values(p, p->u_bytes / p->size, 0, 0, 0, 2);
    const pg_stop none = {.rtol = PG_NONE, .max_iter = full_or_small(3, 2), .guess = PG_GUESS_U},
                  largest = {.norm = PG_NORM_MAX, .max_iter = full_or_small(6, 2)};
    const pg_stop zero = {.guess = PG_GUESS_ZERO, .max_iter = full_or_small(12, 3)};
    if (!(p->kind->has & STRIDES)) fill_bytes(u, p->u_bytes, how); /* gaps between rows are the caller's */
    solve_and_add(r, s, u, p->u_bytes, f, &zero);
    pieces(r, p, s, u, f);
    solve_and_add(r, s, u, p->u_bytes, f, &none);
    if (!small_run()) pieces(r, p, s, u, f);
    OK(pg_set_alpha(s, desc.alpha + 1), s);
    if (desc.cells.mask) desc.cells.mask = p->mask[1];
    desc.cells.air_value = desc.cells.solid_flux = NULL, desc.cells.air_values = desc.cells.solid_fluxes = 0;
    if (desc.cells.mask || desc.cells.beta_cell || desc.cells.beta_face[0] || desc.cells.openness[0])
        OK(pg_set_cells(s, &desc.cells), s);    /* the lists stay; entries that lost what was beside them count for nothing */
    solve_and_add(r, s, u, p->u_bytes, f, &largest);
    pieces(r, p, s, u, f);
    pg_destroy(s);
    while (p->arrays > kept) free(p->array[--p->arrays]);
    workspace_free(&w);
}

static void same_bits_whatever_the_workspace_held(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned precisions[] = {PG_F64, PG_F32, PG_MIXED};
    const unsigned never_mixed =
        PG_JACOBI | PG_RBGS | PG_SOR | PG_PRECOND_NONE | PG_PRECOND_DIAGONAL | PG_PRECOND_AINV | PG_PRECOND_AINV2;
#ifndef PG_TEST_CUDA
    if (backend == PG_CUDA) skip();
#endif
    for (size_t q = 0; q < 3 * sizeof kinds / sizeof *kinds; q++) {
        const struct kind *kind = &kinds[q / 3];
        struct problem p;
        char name[300];
        const unsigned precision = precisions[q % 3];
        if (precision == PG_MIXED && (kind->flags & never_mixed || kind->has & VELOCITY)) continue;
        if (small_run() && (precision == PG_MIXED ? q / 3 % 4 != 0 : q % 3 != q / 3 % 2)) continue;
        describe_problem(&p, kind, precision, backend);
        snprintf(name, sizeof name, "%s, has 0x%x", describe(&p.desc), kind->has);
        struct record first = {0}, again = {0};
        run(&first, &p, 0, name);
        for (int how = 1; how < FILLS; how++) {
            if (small_run() && how != 1 + (int)(q / 6 % 2)) continue;    /* in turn, both with either precision */
            again.used = 0;
            run(&again, &p, how, name);
            if (again.used != first.used || memcmp(again.bytes, first.bytes, first.used) != 0)
                fail_msg("%s: other bits with a workspace %s", name, how == 1 ? "of NaN" : "of random bits");
        }
        free(first.bytes), free(again.bytes);
        while (p.arrays) free(p.array[--p.arrays]);
    }
}

/* The same of a dense system. */
static void the_same_of_dense_systems(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {PG_JACOBI, PG_GAUSS_SEIDEL, PG_GAUSS_SEIDEL | PG_BACKWARD, PG_SOR};
    enum { N = 70 };
#ifndef PG_TEST_CUDA
    if (backend == PG_CUDA) skip();
#endif
    for (int q = 0; q < 8; q++) {
        struct record first = {0}, again = {0};
        struct problem p = {.size = q / 4 ? sizeof(float) : sizeof(double)};
        char *A = values(&p, N * N, 0, 1, 0, 1), *f = values(&p, N, -1, 1, 0, 2), *u = values(&p, N, 0, 0, 0, 3);
        const char *const diagonal = values(&p, N, N, N + 1, 0, 4);
        for (size_t i = 0; i < N; i++) memcpy(A + (N + 1) * i * p.size, diagonal + i * p.size, p.size);
        for (int how = 0; how < FILLS; how++) {
            struct record *r = how ? &again : &first;
            pg_dense_desc desc = {
                .n = N, .A = A, .flags = methods[q % 4] | (q / 4 ? PG_F32 : PG_F64), .backend = backend};
            const pg_stop stop = {.guess = PG_GUESS_ZERO};
            pg_solver *s = NULL;
            pg_report report;
            OK(pg_dense_workspace_bytes(&desc, &desc.workspace_bytes), NULL);
            struct workspace w = workspace_create(backend, desc.workspace_bytes, how);
            desc.workspace = w.aligned;
            OK(pg_dense_create(&desc, &s), NULL);
            fill_bytes(u, N * p.size, how);
            assert_int_equal(pg_solve(s, u, f, &stop), PG_OK);
            assert_int_equal(pg_get_report(s, &report), PG_OK);
            assert_int_equal(report.outcome, PG_CONVERGED);
            r->used = 0;
            add_report(r, &report);
            add(r, u, N * p.size);
            pg_destroy(s);
            workspace_free(&w);
            if (how && (r->used != first.used || memcmp(r->bytes, first.bytes, r->used) != 0))
                fail_msg("flags 0x%x: other bits with workspace %d", desc.flags, how);
        }
        free(first.bytes), free(again.bytes);
        while (p.arrays) free(p.array[--p.arrays]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(same_bits_whatever_the_workspace_held),
        ON_BOTH(the_same_of_dense_systems),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
