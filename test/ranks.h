/* Problems for several ranks, and the comparison of each rank's part with what one rank finds: for tests whose ranks are
   threads (test_ranks.cpp) and for those whose ranks are processes (test_mpi.cpp). */
#ifndef TEST_RANKS_H
#define TEST_RANKS_H

#include "common.h"

#include <time.h>

enum { MOST_RANKS = 8, LONGEST = 400 };
enum work { SWEEP, CYCLE, SOLVE, APPLY, RESIDUAL };

/* A problem of f64, and what is done with it. Arrays of the whole box are packed. */
struct ranks_case {
    pg_desc desc;
    pg_stop stop;
    int work, count;
    int uneven, windows, arrays;    /* parts of different sizes; u and f in larger arrays; boundary data that vary */
    int media;                      /* bits: a mask, beta_face, alpha_cell, openness, air_value, and its theta */
    int changes;                    /* media are other ones at first */
    int gpus, on_device;            /* a rank each; whose arrays are device memory */
    double tolerance;               /* 0: the same bits, else relative to the largest value */
    double coord[3][LONGEST], weight[3][LONGEST], conductance[3][LONGEST];
};

/* Whole arrays, and what one rank makes of them. */
struct whole_box {
    unsigned char *mask;
    double *media[7];               /* beta_face, alpha_cell, openness */
    pg_cell_value air[8];
    double *u, *f, *result, *face[6], *slope[6];    /* at faces, then at unknowns, along each axis */
    pg_report report;
    double norm[4], sum, dot;
    int64_t points;
};

/* A call of a rank that must succeed. Ranks may be threads, which must not leave by cmocka's jump. */
#define RANK_OK(call, solver)                                                                                         \
    do {                                                                                                              \
        const pg_status status_ = (call);                                                                             \
        if (status_ == PG_OK) break;                                                                                  \
        fprintf(stderr, "%s: %s: %s\n", #call, pg_status_string(status_), pg_last_error(solver));                     \
        abort();                                                                                                      \
    } while (0)

static int ranks_axis(const pg_desc *d) { return d->n[2] > 1 || d->dim == 3 ? 2 : 1; }

static int64_t face_points(const pg_desc *d, int q)
{
    return (int64_t)d->n[0] * d->n[1] * d->n[2] / d->n[q / 2];
}

static void do_work(const ranks_case *c, pg_solver *s, double *u, double *f, double *out)
{
    switch (c->work) {
    case SWEEP: RANK_OK(pg_smooth(s, u, f, c->count), s); break;
    case CYCLE: RANK_OK(pg_cycle(s, u, f, c->count), s); break;
    case APPLY: RANK_OK(pg_apply(s, u, out), s); break;
    case RESIDUAL: RANK_OK(pg_residual(s, u, f, out), s); break;
    default: RANK_OK(pg_solve(s, u, f, &c->stop), s);
    }
}

/* A copy of an array on the rank's GPU; and, to a place that is not NULL, back. */
static void *to_device(int rank, const void *from, size_t bytes)
{
    void *there = NULL;
#ifdef PG_TEST_CUDA
    if (cudaSetDevice(rank) != cudaSuccess || cudaMalloc(&there, bytes) != cudaSuccess ||
        cudaMemcpy(there, from, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
        abort();
#else
    (void)rank, (void)from, (void)bytes, abort();
#endif
    return there;
}

static void from_device(void *there, void *to, size_t bytes)
{
#ifdef PG_TEST_CUDA
    if (to && cudaMemcpy(to, there, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) abort();
    cudaFree(there);
#else
    (void)there, (void)to, (void)bytes, abort();
#endif
}

/* Slopes of u along all axes, of one rank: at faces in the first three arrays, at unknowns in the others. */
static void take_slopes(pg_solver *s, const pg_desc *d, const double *u, double *slope[6])
{
    const int batch = d->batch ? d->batch : 1;
    for (int q = 0; q < 2 * d->dim; q++) {
        const int a = q % d->dim, at = q < d->dim ? a : 3 + a;
        const int64_t n = d->n[a], points = (int64_t)d->n[0] * d->n[1] * d->n[2] / n * (n + (at < 3)) * batch;
        slope[at] = (double *)allocate((size_t)points * sizeof(double));
        RANK_OK(pg_gradient(s, u, a, slope[at], at < 3 ? PG_AT_FACES : PG_AT_UNKNOWNS), s);
    }
}

/* The same of a rank, whose part must have their bits. */
static void compare_slopes(pg_solver *s, const pg_desc *d, int rank, const double *u, double *const whole[6],
                           const int lo[3], const int hi[3])
{
    const int batch = d->batch ? d->batch : 1;
    for (int q = 0; q < 2 * d->dim; q++) {
        const int a = q % d->dim, at = q < d->dim ? a : 3 + a;
        int n[3], own[3];
        for (int e = 0; e < 3; e++) n[e] = d->n[e] + (e == a && at < 3), own[e] = hi[e] - lo[e] + (e == a && at < 3);
        int64_t stride[3] = {own[0], (int64_t)own[0] * own[1], (int64_t)own[0] * own[1] * own[2]};
        if (at >= 3) memcpy(stride, d->stride_f, sizeof stride);
        const size_t bytes = (size_t)(stride[2] * batch) * sizeof(double);
        double *const out = (double *)allocate(bytes), *there = out;
        if (d->memory == PG_MEM_DEVICE) there = (double *)to_device(rank, out, bytes);
        RANK_OK(pg_gradient(s, u, a, there, at < 3 ? PG_AT_FACES : PG_AT_UNKNOWNS), s);
        if (there != out) from_device(there, out, bytes);
        for (int p = 0; p < batch; p++)
            for (int k = 0; k < own[2]; k++)
                for (int j = 0; j < own[1]; j++) {
                    const double *const x = out + j * stride[0] + k * stride[1] + p * stride[2];
                    const int64_t row = lo[1] + j + (int64_t)n[1] * (lo[2] + k + (int64_t)n[2] * p);
                    if (!memcmp(x, whole[at] + n[0] * row, (size_t)own[0] * sizeof(double))) continue;
                    fprintf(stderr, "%s: slopes along axis %d, kind %d, differ in row %d %d of problem %d\n", describe(d), a, at / 3, j, k, p), abort();
                }
        free(out);
    }
}

static void measure(pg_solver *s, const double *u, const double *f, double norm[4], double *sum, double *dot)
{
    for (int q = 0; q < 4; q++) RANK_OK(pg_norm(s, u, (pg_norm_kind)q, &norm[q]), s);
    RANK_OK(pg_dot(s, u, NULL, sum), s);
    RANK_OK(pg_dot(s, u, f, dot), s);
}

/* Values of faces across axis a (or of cells, 3), packed. */
static int64_t media_points(const pg_desc *d, int a)
{
    int64_t points = 1;
    for (int e = 0; e < 3; e++) points *= d->n[e] + (e == a);
    return points;
}

static void random_media(ranks_case *c, whole_box *w, rng *r)
{
    pg_desc *const d = &c->desc;
    const int64_t cells = media_points(d, 3);
    d->cells.air_values = 0;
    if (c->media & 1) {
        w->mask = (unsigned char *)allocate((size_t)cells);
        for (int64_t p = 0; p < cells; p++) w->mask[p] = rng_int(r, 0, 9) < 8 ? PG_FLUID : rng_int(r, 0, 1) ? PG_SOLID : PG_AIR;
        w->mask[cells / 2] = PG_FLUID;
        d->cells.mask = w->mask;
    }
    for (int q = 0; q < 7; q++) {
        const int a = q % 4;
        if (!(c->media & (q < 3 ? 2 : q == 3 ? 4 : 8)) || (a < 3 && a >= d->dim)) continue;
        const int64_t points = media_points(d, a);
        w->media[q] = (double *)allocate((size_t)points * sizeof(double));
        for (int64_t p = 0; p < points; p++) w->media[q][p] = rng_uniform(r, 0.1, 1);
        *(q < 3 ? &d->cells.beta_face[a] : q == 3 ? &d->cells.alpha_cell : &d->cells.openness[a]) = w->media[q];
    }
    for (int tries = 0; tries < 20000 && c->media & 16 && d->cells.air_values < 8; tries++) {
        pg_cell_value *const v = &w->air[d->cells.air_values];
        int beside[3];
        for (int a = 0; a < 3; a++) beside[a] = v->cell[a] = rng_int(r, 0, d->n[a] - 1);
        v->face = rng_int(r, 0, 2 * d->dim - 1), v->value = rng_uniform(r, -1, 1);
        const int a = v->face / 2, to = v->cell[a] + (v->face % 2 ? 1 : -1);
        if (to < 0 || to >= d->n[a]) continue;
        beside[a] = to;
        const int64_t row = d->n[0], plane = row * d->n[1];
        if (w->mask[v->cell[0] + row * v->cell[1] + plane * v->cell[2]] == PG_FLUID &&
            w->mask[beside[0] + row * beside[1] + plane * beside[2]] == PG_AIR) {
            v->theta = c->media & 32 ? rng_uniform(r, 0.05, 1) : 0;
            for (const pg_cell_value *q = w->air; q < v; q++)    // of one side all have one
                if (!memcmp(q->cell, v->cell, sizeof v->cell) && q->face == v->face) v->theta = q->theta;
            d->cells.air_values++;
        }
    }
    if (d->cells.air_values) d->cells.air_value = w->air;
}

/* A rank's part of media, in host memory: the fields of whole_box, then the mask. */
struct part_of_media {
    void *array[8];
    size_t bytes[8];
    int64_t stride_mask[2];
};

/* Planes from lo on, of faces across the axis of the ranks one more. The mask may be a window, beside which it has no
   valid bytes. */
static void part_of_media_create(part_of_media *m, const pg_desc *d, const whole_box *w, const int lo[3], const int hi[3],
                                 int pad)
{
    const int axis = ranks_axis(d);
    memset(m, 0, sizeof *m);
    m->stride_mask[0] = d->n[0] + pad;
    m->stride_mask[1] = m->stride_mask[0] * (hi[1] - lo[1] + pad);
    for (int q = 0; q < 7; q++) {
        const int a = q % 4, more = a == axis;
        if (!w->media[q]) continue;
        const int64_t plane = media_points(d, a) / (d->n[axis] + more);
        m->bytes[q] = (size_t)(plane * (hi[axis] - lo[axis] + more)) * sizeof(double);
        m->array[q] = allocate(m->bytes[q]);
        memcpy(m->array[q], w->media[q] + lo[axis] * plane, m->bytes[q]);
    }
    if (!w->mask) return;
    m->bytes[7] = (size_t)(m->stride_mask[1] * (hi[2] - lo[2]));
    m->array[7] = allocate(m->bytes[7]);
    memset(m->array[7], 7, m->bytes[7]);
    for (int k = lo[2]; k < hi[2]; k++)
        for (int j = lo[1]; j < hi[1]; j++)
            memcpy((char *)m->array[7] + (j - lo[1]) * m->stride_mask[0] + (k - lo[2]) * m->stride_mask[1],
                   w->mask + d->n[0] * (j + (int64_t)d->n[1] * k), (size_t)d->n[0]);
}

/* Puts a rank's media into its descriptor: where they are, or copies on its GPU, which are in `held` then. */
static void give_media(pg_desc *d, const part_of_media *m, int rank, int on_device, void *held[8])
{
    for (int q = 0; q < 8; q++) {
        const int a = q % 4;
        held[q] = NULL;
        if (!m->array[q]) continue;
        if (on_device) held[q] = to_device(rank, m->array[q], m->bytes[q]);
        const void *const array = on_device ? held[q] : m->array[q];
        if (q == 7)
            d->cells.mask = (const unsigned char *)array;
        else
            *(q < 3 ? &d->cells.beta_face[a] : q == 3 ? &d->cells.alpha_cell : &d->cells.openness[a]) = array;
    }
    memcpy(d->cells.stride_mask, m->stride_mask, sizeof d->cells.stride_mask);
}

static void take_media(void *held[8])
{
    for (int q = 0; q < 8; q++)
        if (held[q]) from_device(held[q], NULL, 0);
}

/* Random u, f and boundary data, and one rank's result. */
static void whole_box_create(ranks_case *c, whole_box *w, uint64_t seed)
{
    rng r = {seed};
    pg_desc *const d = &c->desc;
    const int batch = d->batch ? d->batch : 1;
    d->backend = c->gpus ? PG_CUDA : PG_CPU;
    memset(w, 0, sizeof *w);
    w->points = (int64_t)d->n[0] * d->n[1] * d->n[2] * batch;
    double **const arrays[3] = {&w->u, &w->f, &w->result};
    for (int q = 0; q < 3; q++) *arrays[q] = (double *)allocate((size_t)w->points * sizeof(double));
    for (int64_t p = 0; p < w->points; p++) w->u[p] = rng_uniform(&r, -1, 1), w->f[p] = rng_uniform(&r, -1, 1);
    memcpy(w->result, w->u, (size_t)w->points * sizeof(double));
    for (int q = 0; q < 6; q++) {
        pg_face *const face = &d->face[q];
        if (q / 2 > ranks_axis(d) || face->kind == PG_PERIODIC) continue;
        face->value = rng_uniform(&r, -1, 1);
        if (!c->arrays) continue;
        const int64_t count = face_points(d, q) * batch;
        w->face[q] = (double *)allocate((size_t)count * sizeof(double));
        for (int64_t p = 0; p < count; p++) w->face[q][p] = rng_uniform(&r, -1, 1);
        face->array = w->face[q];
    }
    random_media(c, w, &r);
    pg_solver *s = create(d);
    measure(s, w->u, w->f, w->norm, &w->sum, &w->dot);
    if (c->work == APPLY || c->work == RESIDUAL) {
        do_work(c, s, w->u, w->f, w->result);
        if (!d->cells.air_values) take_slopes(s, d, w->u, w->slope);    /* of several ranks lists have none */
    } else {
        do_work(c, s, w->result, w->f, NULL);
        if (c->work == SOLVE) OK(pg_get_report(s, &w->report), s);
    }
    pg_destroy(s);
}

static void whole_box_free(whole_box *w)
{
    free(w->u), free(w->f), free(w->result), free(w->mask);
    for (int q = 0; q < 7; q++) free(w->media[q]);
    for (int q = 0; q < 6; q++) free(w->face[q]), free(w->slope[q]);
}

/* One rank's part of the boundary data of a face. */
static double *part_of_face(const pg_desc *d, const double *whole, int q, const int lo[3], const int hi[3])
{
    const int axis = ranks_axis(d), a = q / 2 == 0 ? 1 : 0, b = q / 2 == 2 ? 1 : 2, batch = d->batch ? d->batch : 1;
    const int first[2] = {a == axis ? lo[a] : 0, b == axis ? lo[b] : 0};
    const int end[2] = {a == axis ? hi[a] : d->n[a], b == axis ? hi[b] : d->n[b]};
    double *const part = (double *)allocate((size_t)face_points(d, q) * (size_t)batch * sizeof(double));
    int64_t at = 0;
    for (int p = 0; p < batch; p++)
        for (int j = first[1]; j < end[1]; j++)
            for (int i = first[0]; i < end[0]; i++)
                part[at++] = whole[i + (int64_t)d->n[a] * (j + (int64_t)d->n[b] * p)];
    return part;
}

/* Between the whole arrays and a rank's, which may be a window. */
static void copy_part(const pg_desc *d, double *whole, double *part, const int64_t stride[3], const int lo[3],
                      const int hi[3], int outward)
{
    for (int p = 0; p < (d->batch ? d->batch : 1); p++)
        for (int k = lo[2]; k < hi[2]; k++)
            for (int j = lo[1]; j < hi[1]; j++)
                for (int i = 0; i < d->n[0]; i++) {
                    double *const a =
                        &whole[i + d->n[0] * (j + d->n[1] * ((int64_t)k + (int64_t)d->n[2] * p))];
                    double *const b = &part[i + (j - lo[1]) * stride[0] + (k - lo[2]) * stride[1] + p * stride[2]];
                    *(outward ? a : b) = *(outward ? b : a);
                }
}

/* Parts that differ: the first ones are larger; or the first rank, or the last one, has a single plane. */
static void choose_part(const ranks_case *c, pg_desc *d, int rank, int ranks)
{
    const int axis = ranks_axis(d), n = d->n[axis];
    if (!c->uneven) return;
    int bound[MOST_RANKS + 1] = {0};
    for (int r = 0; r <= ranks; r++) bound[r] = (int)((int64_t)n * r * (2 * ranks - r) / ((int64_t)ranks * ranks));
    for (int r = 1; r < ranks && c->uneven > 1; r++)
        bound[r] = c->uneven == 2 ? 1 + (n - 1) * (r - 1) / (ranks - 1) : (n - 1) * r / (ranks - 1);
    for (int r = 1; r <= ranks; r++)
        if (bound[r] <= bound[r - 1]) bound[r] = bound[r - 1] + 1;
    for (int r = ranks; r > 0; r--)
        if (bound[r] > n - (ranks - r)) bound[r] = n - (ranks - r);
    for (int a = 0; a < 3; a++) d->hi[a] = d->n[a];
    d->lo[axis] = bound[rank], d->hi[axis] = bound[rank + 1];
}

/* With changes: creates the solver with other coefficients, an empty mask and other values, which then change. */
static pg_solver *create_with_media(pg_desc *d, const ranks_case *c, int rank, part_of_media *m, void *held[8])
{
    pg_solver *s = NULL;
    pg_desc before = *d;
    pg_cell_value air[8];
    void *const mask = m->array[7], *first[8];
    if (!c->changes) {
        give_media(d, m, rank, c->on_device, held);
        RANK_OK(pg_create(d, &s), NULL);
        return s;
    }
    if (mask && !d->cells.air_values) m->array[7] = allocate(m->bytes[7]);    /* else pg_create checks the sides of values */
    if (m->array[7] != mask) memset(m->array[7], PG_FLUID, m->bytes[7]);
    for (int q = 0; q < d->cells.air_values; q++) {
        air[q] = d->cells.air_value[q], air[q].value = 5;
        air[q].theta = air[q].theta > 0 ? 1 - 0.5 * air[q].theta : 0;
    }
    before.cells.air_value = air;
    for (int q = 0; q < 7; q++)
        if (m->array[q]) *(double *)m->array[q] *= 0.5;
    give_media(&before, m, rank, c->on_device, first);
    RANK_OK(pg_create(&before, &s), NULL);
    if (m->array[7] != mask) free(m->array[7]);
    m->array[7] = mask;
    for (int q = 0; q < 7; q++)
        if (m->array[q]) *(double *)m->array[q] *= 2;
    give_media(d, m, rank, c->on_device, held);
    pg_cells media = d->cells, values = {};
    media.air_value = NULL, media.air_values = 0;
    values.air_value = d->cells.air_value, values.air_values = d->cells.air_values;
    RANK_OK(pg_set_cells(s, &media), s);
    if (values.air_values) RANK_OK(pg_set_cells(s, &values), s);
    take_media(first);
    return s;
}

/* What one rank of several does. Its part of the result goes to `result`, an array of the whole box. */
static void do_part(const ranks_case *c, const whole_box *w, pg_comm comm, int rank, int ranks, double *result,
                    pg_report *report, double measures[6])
{
    pg_desc d = c->desc;
    int lo[3], hi[3];
    double *face[6] = {NULL};
    d.comm = comm;
    if (c->gpus) d.backend = PG_CUDA, d.device = PG_DEVICE(rank), d.time_limit = 300;
    choose_part(c, &d, rank, ranks);
    RANK_OK(pg_query_part(&d, lo, hi), NULL);
    const int pad = c->windows ? 3 : 0;
    int64_t stride[3] = {d.n[0] + pad, 0, 0};
    stride[1] = stride[0] * (hi[1] - lo[1] + pad);
    stride[2] = stride[1] * (hi[2] - lo[2] + (pad > 0));
    memcpy(d.stride_u, stride, sizeof stride);
    memcpy(d.stride_f, stride, sizeof stride);
    const size_t elements = (size_t)(stride[2] * (d.batch ? d.batch : 1));
    double *const own = (double *)allocate(3 * elements * sizeof(double));
    double *u = own, *f = own + elements, *out = own + 2 * elements;
    for (size_t p = 0; p < 3 * elements; p++) own[p] = 7;
    copy_part(&d, w->u, u, stride, lo, hi, 0);
    copy_part(&d, w->f, f, stride, lo, hi, 0);
    for (int q = 0; q < 6; q++) {
        if (!w->face[q]) continue;
        const int touches = q / 2 != ranks_axis(&d) || rank == (q % 2 ? ranks - 1 : 0);
        d.face[q].array = touches ? face[q] = part_of_face(&d, w->face[q], q, lo, hi) : NULL;
        if (!touches || !c->on_device) continue;
        const size_t bytes = (size_t)face_points(&d, q) * (size_t)(d.batch ? d.batch : 1) * sizeof(double);
        d.face[q].array = to_device(rank, face[q], bytes);
    }
    if (c->on_device) {
        d.memory = PG_MEM_DEVICE;
        double **const arrays[3] = {&u, &f, &out};
        for (int q = 0; q < 3; q++) *arrays[q] = (double *)to_device(rank, *arrays[q], elements * sizeof(double));
    }
    part_of_media media;
    void *held[8];
    part_of_media_create(&media, &d, w, lo, hi, pad);
    pg_solver *s = create_with_media(&d, c, rank, &media, held);
    measure(s, u, f, measures, &measures[4], &measures[5]);
    do_work(c, s, u, f, out);
    if (c->work == SOLVE) RANK_OK(pg_get_report(s, report), s);
    if (w->slope[0]) compare_slopes(s, &d, rank, u, w->slope, lo, hi);
    pg_destroy(s);
    if (c->on_device) {
        from_device(u, own, elements * sizeof(double));
        from_device(f, NULL, 0);
        from_device(out, own + 2 * elements, elements * sizeof(double));
        u = own, out = own + 2 * elements;
        for (int q = 0; q < 6; q++)
            if (d.face[q].array) from_device((void *)d.face[q].array, NULL, 0);
    }
    take_media(held);
    for (int q = 0; q < 8; q++) free(media.array[q]);
    copy_part(&d, result, c->work == APPLY || c->work == RESIDUAL ? out : u, stride, lo, hi, 1);
    int64_t inside = 0, touched = 0;
    for (size_t p = 0; p < elements; p++) touched += u[p] != 7;
    inside = (int64_t)d.n[0] * (hi[1] - lo[1]) * (hi[2] - lo[2]) * (d.batch ? d.batch : 1);
    if (touched != inside) fprintf(stderr, "rank %d wrote outside of its window\n", rank), abort();
    for (int q = 0; q < 6; q++) free(face[q]);
    free(own);
}

/* Compares a rank's planes, or all. */
static void compare_with_whole(const ranks_case *c, const whole_box *w, const double *result, int ranks)
{
    double largest = 0, error = 0;
    int64_t first = -1, different = 0;
    for (int64_t p = 0; p < w->points; p++) {
        largest = fmax(largest, fabs(w->result[p]));
        if (memcmp(&w->result[p], &result[p], sizeof(double))) {
            if (first < 0) first = p;
            different++;
            error = fmax(error, fabs(w->result[p] - result[p]));
            if (w->result[p] - result[p] != w->result[p] - result[p]) error = INFINITY;
        }
    }
    if (c->tolerance == 0 ? different > 0 : !(error <= c->tolerance * largest))
        fail_msg("%d ranks%s, work %d x %d, %s: %lld of %lld values differ, the first at %d %d %d, by %g of %g at most",
                 ranks, c->uneven ? " with uneven parts" : "", c->work, c->count, describe(&c->desc),
                 (long long)different, (long long)w->points, (int)(first % c->desc.n[0]),
                 (int)(first / c->desc.n[0] % c->desc.n[1]), (int)(first / c->desc.n[0] / c->desc.n[1]), error, largest);
}

static void compare_measures(const whole_box *w, const double measures[6], int ranks)
{
    for (int q = 0; q < 4; q++)
        if (!(fabs(measures[q] - w->norm[q]) <= 1e-13 * w->norm[q]))
            fail_msg("%d ranks: norm %d is %.17g instead of %.17g", ranks, q, measures[q], w->norm[q]);
    const double scale = w->norm[3] > w->norm[0] ? w->norm[3] : w->norm[0];
    if (!(fabs(measures[4] - w->sum) <= 1e-12 * scale && fabs(measures[5] - w->dot) <= 1e-12 * scale))
        fail_msg("%d ranks: sum %.17g and dot %.17g instead of %.17g and %.17g", ranks, measures[4], measures[5], w->sum,
                 w->dot);
}

/* Names of problems that are tried: kinds along the axis of the ranks, and along the others. */
static const char *const ranks_ends[] = {"DD", "NN", "DN", "RD", "ND", "PP"};
enum { RANKS_ENDS = sizeof ranks_ends / sizeof *ranks_ends };

static void set_case(ranks_case *c, int dim, int nx, int ny, int nz, const char *along, const char *others,
                     pg_centring centring)
{
    memset(c, 0, sizeof *c);
    c->desc.n[2] = 1;
    const int n[3] = {nx, dim == 3 ? ny : nz, dim == 3 ? nz : 1};
    c->desc.dim = dim;
    c->desc.coarsest = 8;
    for (int a = 0; a < dim; a++) {
        c->desc.n[a] = n[a];
        c->desc.centring[a] = centring;
        set_ends(&c->desc, a, a == dim - 1 ? along : others);
        c->desc.h[a] = 1.0 / 16;
    }
    c->stop.rtol = PG_NONE;
}

/* Spacings and metrics that vary, along all axes. */
static void stretch(ranks_case *c, double ratio)
{
    rng r = {99};
    for (int a = 0; a < c->desc.dim; a++) {
        const int n = c->desc.n[a], node = c->desc.centring[a] == PG_NODE, periodic = c->desc.face[2 * a].kind == PG_PERIODIC;
        double x = 0;
        for (int q = 0; q < n + 3; q++) {
            c->coord[a][q] = x;
            x += 1.0 / 16 * (1 + (ratio - 1) * (0.5 + 0.5 * sin(6.0 * q / n))) * rng_uniform(&r, 0.95, 1.05);
            c->weight[a][q] = rng_uniform(&r, 0.8, 1.2), c->conductance[a][q] = rng_uniform(&r, 0.8, 1.2);
        }
        (void)node;
        if (periodic) c->conductance[a][n] = c->conductance[a][0];
        c->desc.coord[a] = c->coord[a];
        c->desc.weight[a] = c->weight[a];
        c->desc.conductance[a] = c->conductance[a];
        c->desc.h[a] = 0;
    }
}

/* ---- suites ---- */

static void set_sweeps_have_the_bits_of_one_rank(ranks_case *c, int turn)
{
    static const unsigned methods[] = {PG_JACOBI, PG_RBGS, PG_SOR};
    set_choice(&c->desc, methods[turn % 3]);
    c->work = SWEEP, c->count = 5;
}

static void set_products_residuals_and_slopes_have_the_bits_of_one_rank(ranks_case *c, int turn)
{
    if (turn % 3 == 2) stretch(c, 2);
    if (turn % 5 == 2) c->desc.batch = 2;
    set_choice(&c->desc, PG_RBGS);
    c->work = turn % 2 ? APPLY : RESIDUAL;
}

static void set_cycles_have_the_bits_of_one_rank(ranks_case *c, int turn)
{
    set_choice(&c->desc, turn % 2 ? PG_VCYCLE : PG_WCYCLE);
    c->work = CYCLE, c->count = 2;
}

static void set_full_multigrid_has_the_bits_of_one_rank(ranks_case *c, int turn)
{
    set_choice(&c->desc, PG_FMG);
    c->work = SOLVE, c->stop.max_iter = 1 + turn % 2;
    // What is subtracted from a singular problem's f, and from u, are sums over the ranks.
    if (turn % 3 != 1) c->tolerance = 1e-12;
}

/* Smoothers, numbers of sweeps, symmetric cycles. */
static void set_smoothers_have_the_bits_of_one_rank(ranks_case *c, int turn)
{
    static const unsigned smoothers[] = {PG_SMOOTH_JACOBI, PG_SMOOTH_CHEBYSHEV, PG_SYMMETRIC, PG_SMOOTH_LINES};
    set_choice(&c->desc, PG_VCYCLE | smoothers[turn % 4]);
    if (!(c->desc.flags & PG_SYMMETRIC)) c->desc.nu_pre = 1 + turn % 3, c->desc.nu_post = 1 + turn % 2;
    c->work = CYCLE, c->count = 2;
}

/* Spacings and metrics that vary, mildly and so that whole lines are relaxed. */
static void set_stretched_boxes_have_the_bits_of_one_rank(ranks_case *c, int turn)
{
    stretch(c, turn % 2 ? 1.3 : 4);
    set_choice(&c->desc, (turn % 3 ? PG_VCYCLE : PG_RBGS) | (turn % 3 ? PG_KEEP_CYCLES : 0));
    c->work = turn % 3 ? CYCLE : SWEEP, c->count = 2;
}

/* Semi-coarsening: the axis of the ranks alone is coarsened, or is not. */
static void set_weak_axes_have_the_bits_of_one_rank(ranks_case *c, int turn)
{
    c->desc.h[c->desc.dim - 1] *= turn % 2 ? 30 : 1.0 / 30;
    set_choice(&c->desc, PG_VCYCLE);
    c->work = CYCLE, c->count = 2;
}

/* Solves to a tolerance, by all methods: the norm decides, which is that of one rank but for round-off. */
static void set_solves_agree_with_one_rank(ranks_case *c, int turn)
{
    static const unsigned methods[] = {PG_VCYCLE, PG_WCYCLE, PG_FMG, PG_FASTEST, PG_VCYCLE | PG_MIXED, PG_FMG | PG_MIXED,
                                       PG_FMG | PG_SYMMETRIC};
    set_choice(&c->desc, methods[turn % 7]);
    c->work = SOLVE;
    c->stop.rtol = 1e-11;
    c->tolerance = 1e-8;
}

static void set_krylov_methods_agree_with_one_rank(ranks_case *c, int turn)
{
    static const unsigned methods[] = {PG_CG, PG_PIPECG, PG_BICGSTAB, PG_PIPEBICGSTAB},
                          preconditioners[] = {PG_PRECOND_CYCLE, PG_PRECOND_DIAGONAL, PG_PRECOND_NONE, PG_PRECOND_AINV,
                                               PG_PRECOND_AINV2};
    set_choice(&c->desc, methods[turn % 4] | preconditioners[turn % 5]);
    if (turn % 20 < 3 && turn % 5 == 0 && turn % 4 < 3) set_choice(&c->desc, choice_of(&c->desc) | PG_MIXED);
    c->work = SOLVE;
    c->stop.rtol = small_run() && turn % 4 < 2 ? 1e-5 : 1e-10;    /* iterates of CG agree */
    c->tolerance = 1e-7;
}

/* With a velocity, whose matrix is not symmetric. */
static void set_advection_agrees_with_one_rank(ranks_case *c, int turn)
{
    set_choice(&c->desc, PG_UPWIND | (turn % 3 == 0 ? PG_RBGS : turn % 3 == 1 ? PG_BICGSTAB : PG_PIPEBICGSTAB));
    for (int a = 0; a < c->desc.dim; a++) c->desc.velocity[a] = a == turn % 2 ? 3 : -2;
    c->desc.alpha = 2;
    c->work = SOLVE;
    c->stop.rtol = 1e-10;
    if (turn % 3 == 0) c->stop.max_iter = full_or_small(40, 12);    /* iterates of sweeps agree, which would take thousands */
    c->tolerance = 1e-7;
}

static void set_batches_have_the_bits_of_one_rank(ranks_case *c, int turn)
{
    c->desc.batch = 3;
    set_choice(&c->desc, turn % 2 ? PG_VCYCLE : PG_RBGS);
    c->work = turn % 3 ? SOLVE : turn % 2 ? CYCLE : SWEEP;
    c->count = c->stop.max_iter = 2;
    c->tolerance = turn % 3 == 1 ? 0 : 1e-12;    // of singular problems means are subtracted
}

/* PG_DIRECT by elimination in parts: every kind of ends along the axis of the ranks, with coordinates and a metric or
   without, transforms along the others. */
static void set_direct_solves_agree_with_one_rank(ranks_case *c, int turn)
{
    static const char *const others[] = {"DD", "NN", "DN", "PP"};
    static const unsigned methods[] = {PG_DIRECT, PG_DIRECT | PG_MIXED, PG_DIRECT, PG_CG | PG_PRECOND_DIRECT,
                                       PG_BICGSTAB | PG_PRECOND_DIRECT};
    const int z = c->desc.dim - 1;
    if (turn % 2) stretch(c, 3);
    for (int a = 0; a < z; a++) {
        const char *const kind = others[(turn + a) % 4];
        set_ends(&c->desc, a, kind);
        c->desc.coord[a] = c->desc.weight[a] = c->desc.conductance[a] = NULL;
        c->desc.h[a] = 0.1;
    }
    set_choice(&c->desc, methods[turn % 5]);
    if (turn % 5 == 2) c->desc.batch = 2;
    if (c->desc.precond == PG_PRECOND_DIRECT) {
        stretch(c, 1.2);
        c->desc.batch = turn % 3;
    }
    c->work = SOLVE;
    if (turn % 2 || c->desc.precond == PG_PRECOND_DIRECT) c->stop.rtol = 1e-9;
    c->tolerance = c->stop.rtol == PG_NONE && !(c->desc.flags & PG_MIXED) ? 1e-10 : 1e-6;
}

/* Obstacles and coefficients, of nodes, cells and with a metric: all ranks have them whole, and the bits of one rank
   whatever the method. */
static void set_obstacles_have_the_bits_of_one_rank(ranks_case *c, int turn)
{
    static const unsigned methods[] = {PG_FMG, PG_CG | PG_PRECOND_DIAGONAL, PG_RBGS, PG_VCYCLE, PG_BICGSTAB,
                                       PG_FMG | PG_COARSEN_CELLS, PG_FMG | PG_MIXED};
    set_choice(&c->desc, methods[turn % 7]);
    const int plain = (c->desc.flags & PG_COARSEN_CELLS) != 0;
    for (int a = 0; a < c->desc.dim && plain; a++) c->desc.centring[a] = PG_CELL;
    if (turn % 9 < 3 && !plain) stretch(c, 1.5);
    c->media = plain ? 1 : turn % 3 ? 1 + 2 * (turn % 8) : 2 + 4 * (turn % 2);
    if (turn % 5 % 2 && c->media & 1 && !plain) c->media |= turn % 4 == 2 ? 16 : 16 + 32;
    if (turn % 6 == 1) c->desc.batch = 2;
    c->work = turn % 4 == 3 ? RESIDUAL : SOLVE;
    c->stop.rtol = 1e-8, c->stop.max_iter = 20;
    c->changes = turn % 2;
}

/* What one rank refuses while the others go on. told: it can still say so to them, and they do not wait. */
struct early_refusal {
    const char *name;
    void (*change)(pg_desc *);
    int told;
};
static const early_refusal early_refusals[] = {
    {"struct_size", [](pg_desc *d) { d->struct_size = 7; }, 0},
    {"comm.kind", [](pg_desc *d) { d->comm.kind = 9; }, 0},
    {"comm.handle", [](pg_desc *d) { d->comm.handle = NULL; }, 0},
    {"time_limit", [](pg_desc *d) { d->time_limit = -3; }, 1},
    {"time_limit", [](pg_desc *d) { d->time_limit = NAN; }, 1},
    {"n[0]", [](pg_desc *d) { d->n[0] = -1; }, 1},
    {"flags", [](pg_desc *d) { set_choice(d, PG_CG | PG_FMG); }, 1},
    {"alpha", [](pg_desc *d) { d->alpha = NAN; }, 1},
    {"allocator", [](pg_desc *d) { d->allocator.alloc = [](void *, size_t, pg_memory, pg_stream) { return (void *)NULL; }; }, 1},
    {"stride_u", [](pg_desc *d) { d->stride_u[0] = INT64_MAX; }, 1},
    {"backend", [](pg_desc *d) { d->backend = (pg_backend)3; }, 1},
};
enum { EARLY_REFUSALS = sizeof early_refusals / sizeof *early_refusals };

/* All ranks create a solver, and one of them refuses. Nobody waits longer than the time limit. */
static const double EARLY_LIMIT = 1;
static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
struct early_result {
    pg_status status;
    double seconds;
    char text[512];
};
static void refuse_early(const early_refusal *of, pg_desc d, int refuses, early_result *result)
{
    const double begin = seconds_now();
    pg_solver *s = NULL;
    d.time_limit = EARLY_LIMIT;
    if (refuses) of->change(&d);
    result->status = pg_create(&d, &s);
    snprintf(result->text, sizeof result->text, "%s", pg_last_error(NULL));
    pg_destroy(s);
    result->seconds = seconds_now() - begin;
}
static void check_early(const early_refusal *of, int rank, int refuses, const early_result *result)
{
    const int right = refuses ? result->status != PG_OK && strstr(result->text, of->name) : result->status == PG_ERROR_COMM;
    if (!right || result->seconds > EARLY_LIMIT + 1 || (of->told && !refuses && !strstr(result->text, of->name)))
        fail_msg("%s: rank %d returned %d after %.2f s: %s", of->name, rank, result->status, result->seconds, result->text);
}

struct suite {
    const char *name;
    void (*set)(ranks_case *, int turn);
};
static const suite suites[] = {
    {"sweeps_have_the_bits_of_one_rank", set_sweeps_have_the_bits_of_one_rank},
    {"products_residuals_and_slopes_have_the_bits_of_one_rank",
     set_products_residuals_and_slopes_have_the_bits_of_one_rank},
    {"cycles_have_the_bits_of_one_rank", set_cycles_have_the_bits_of_one_rank},
    {"full_multigrid_has_the_bits_of_one_rank", set_full_multigrid_has_the_bits_of_one_rank},
    {"smoothers_have_the_bits_of_one_rank", set_smoothers_have_the_bits_of_one_rank},
    {"stretched_boxes_have_the_bits_of_one_rank", set_stretched_boxes_have_the_bits_of_one_rank},
    {"weak_axes_have_the_bits_of_one_rank", set_weak_axes_have_the_bits_of_one_rank},
    {"solves_agree_with_one_rank", set_solves_agree_with_one_rank},
    {"krylov_methods_agree_with_one_rank", set_krylov_methods_agree_with_one_rank},
    {"advection_agrees_with_one_rank", set_advection_agrees_with_one_rank},
    {"batches_have_the_bits_of_one_rank", set_batches_have_the_bits_of_one_rank},
    {"direct_solves_agree_with_one_rank", set_direct_solves_agree_with_one_rank},
    {"obstacles_have_the_bits_of_one_rank", set_obstacles_have_the_bits_of_one_rank},
};
enum { SUITES = sizeof suites / sizeof *suites };

/* Every kind of ends along the axis of the ranks, both centrings, 2D and 3D; sizes, parts, windows and boundary data take
   turns. In a small run boxes have half as many points, and four ranks four planes each at least.
   body(case, number of it, number of the ends) */
template <class Body> static void every_box(const suite *of, Body body)
{
    static const int full[] = {24, 25, 37, 32, 41}, small[] = {16, 17, 25, 20, 29};
    const int *const sizes = small_run() ? small : full, less = full_or_small(0, 3);
    int turn = 0;
    for (int dim = 2; dim <= 3; dim++)
        for (int e = 0; e < RANKS_ENDS; e++)
            for (int cell = 0; cell < 2; cell++)
                for (int again = 0; again < 2; again++) {
                    ranks_case c;
                    turn++;
                    set_case(&c, dim, 13 - less + turn % 4, 11 - less + turn % 3, sizes[turn % 5] * (dim == 2 ? 2 : 1),
                             ranks_ends[e], ranks_ends[(e + turn) % RANKS_ENDS], cell ? PG_CELL : PG_NODE);
                    c.uneven = turn % 3 == 0 ? 1 + turn / 3 % 3 : 0, c.windows = turn % 2, c.arrays = turn % 4 < 2;
                    c.desc.alpha = turn % 3 == 1 ? 2.5 : 0;
                    of->set(&c, turn);
                    body(&c, turn, e);
                }
}

#endif
