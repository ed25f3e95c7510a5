/* The operator once more, plainly, in long double, written from the CONVENTIONS of poisson_gpu.h alone.

       ref p;
       ref_create(&p, &desc);                the descriptor's arrays are read here, its face arrays only when asked
       ref_apply(&p, u, i, j, k)             (A u) at a point, boundary values taken as 0
       ref_boundary(&p, i, j, k)             what the boundary values add to f there
       ref_residual(&p, u, f, i, j, k)       f + boundary - A u
       ref_weight(&p, i, j, k)               the weight of norms, means and inner products
       ref_free(&p);

   u and f are host arrays of the descriptor's precision and strides. Whole arrays: REF_EACH(&p, i, j, k) loops. */
#ifndef TEST_REF_H
#define TEST_REF_H

#include "common.h"

/* One axis of -(1/w) d/dx (k d/dx): row i reads  low[i] (u_i - u_(i-1)) + high[i] (u_i - u_(i+1)), and beside a face
   end[side] (a[side] u - g). */
typedef struct ref_axis {
    int n, periodic;
    long double *x;                 /* positions of the unknowns */
    long double face[2];            /* positions of the two faces */
    long double *w, *low, *high;
    long double end[2], a[2];
} ref_axis;

typedef struct ref {
    int n[3], dim, singular, f32;
    long double alpha, beta;
    int64_t stride_u[3], stride_f[3];
    ref_axis axis[3];
    pg_face faces[6];
} ref;

#define REF_EACH(p, i, j, k)                                                                                          \
    for (int k = 0; k < (p)->n[2]; k++)                                                                               \
        for (int j = 0; j < (p)->n[1]; j++)                                                                           \
            for (int i = 0; i < (p)->n[0]; i++)

static inline void ref_axis_create(ref_axis *t, const pg_desc *desc, int axis, int absent)
{
    const int n = t->n = absent ? 1 : desc->n[axis], cell = desc->centring[axis] == PG_CELL;
    const pg_face *faces = &desc->face[2 * axis];
    t->x = allocate(4 * (size_t)n * sizeof *t->x);
    t->w = t->x + n, t->low = t->w + n, t->high = t->low + n;
    t->periodic = !absent && faces[0].kind == PG_PERIODIC;
    for (int side = 0; side < 2; side++) t->face[side] = t->end[side] = t->a[side] = 0;
    if (absent) {
        t->x[0] = t->low[0] = t->high[0] = 0, t->w[0] = 1;
        return;
    }

    /* The m+1 interval ends, from one side of the box to the other. */
    const int dirichlet = !t->periodic && !cell ? (faces[0].kind == PG_DIRICHLET) + (faces[1].kind == PG_DIRICHLET) : 0;
    const int m = cell || t->periodic ? n : n - 1 + dirichlet;
    long double *e = allocate(((size_t)m + 1) * sizeof *e);
    const long double h = desc->h[axis] > 0 ? (long double)desc->h[axis] : m ? 1.0L / m : 0;
    for (int i = 0; i <= m; i++) e[i] = desc->coord[axis] ? (long double)desc->coord[axis][i] : i * h;
    const long double length = e[m] - e[0];
    t->face[0] = e[0], t->face[1] = e[m];

    /* Positions, distances to the two neighbours (to the face where there is none), control lengths. */
    for (int i = 0; i < n; i++) {
        const int first = !t->periodic && faces[0].kind == PG_DIRICHLET;
        t->x[i] = cell ? (e[i] + e[i + 1]) / 2 : e[i + first];
    }
    long double *d = allocate(((size_t)n + 1) * sizeof *d);
    for (int i = 1; i < n; i++) d[i] = t->x[i] - t->x[i - 1];
    d[0] = t->periodic ? t->x[0] + length - t->x[n - 1] : t->x[0] - e[0];
    d[n] = t->periodic ? d[0] : e[m] - t->x[n - 1];
    for (int i = 0; i < n; i++) t->w[i] = cell ? e[i + 1] - e[i] : (d[i] + d[i + 1]) / 2;
    if (n == 1 && m == 0) t->w[0] = h > 0 ? h : 1;      /* one node that is both ends: there is no interval */
    for (int i = 0; i < n && desc->weight[axis]; i++) t->w[i] *= desc->weight[axis][i];

    const double *conductance = desc->conductance[axis];
    for (int i = 0; i < n; i++) {
        const int linked_low = t->periodic ? n > 1 : i > 0, linked_high = t->periodic ? n > 1 : i < n - 1;
        const long double k_low = conductance ? conductance[i] : 1, k_high = conductance ? conductance[i + 1] : 1;
        t->low[i] = linked_low ? k_low / (t->w[i] * d[i]) : 0;
        t->high[i] = linked_high ? k_high / (t->w[i] * d[i + 1]) : 0;
    }

    /* a u + b du/dn = g over the distance from the unknown to its face; a node that is no Dirichlet end lies on it. */
    for (int side = 0; side < 2 && !t->periodic; side++) {
        const pg_face *face = &faces[side];
        const long double a = face->kind == PG_DIRICHLET ? 1 : face->kind == PG_NEUMANN ? 0 : (long double)face->a;
        const long double b = face->kind == PG_DIRICHLET ? 0 : face->kind == PG_NEUMANN ? 1 : (long double)face->b;
        const long double k_end = conductance ? conductance[side ? n : 0] : 1;
        t->a[side] = a;
        t->end[side] = k_end / (t->w[side ? n - 1 : 0] * (a * d[side ? n : 0] + b));
    }
    free(d), free(e);
}

static inline void ref_create(ref *p, const pg_desc *desc)
{
    const int nz = desc->n[2] ? desc->n[2] : 1, ny = desc->n[1] ? desc->n[1] : 1;
    p->dim = desc->dim ? desc->dim : nz > 1 ? 3 : ny > 1 ? 2 : 1;
    p->f32 = (desc->flags & PG_F32) != 0;
    p->alpha = desc->alpha, p->beta = desc->beta > 0 ? desc->beta : 1;
    p->singular = !(desc->alpha > 0);
    memcpy(p->faces, desc->face, sizeof p->faces);
    for (int axis = 0; axis < 3; axis++) {
        ref_axis_create(&p->axis[axis], desc, axis, axis >= p->dim);
        p->n[axis] = p->axis[axis].n;
        for (int side = 0; side < 2; side++)
            if (p->axis[axis].end[side] * p->axis[axis].a[side] != 0) p->singular = 0;
    }
    p->stride_u[0] = p->stride_f[0] = 1;
    p->stride_u[1] = desc->stride_u[0] ? desc->stride_u[0] : p->n[0];
    p->stride_u[2] = desc->stride_u[1] ? desc->stride_u[1] : p->stride_u[1] * p->n[1];
    p->stride_f[1] = desc->stride_f[0] ? desc->stride_f[0] : p->n[0];
    p->stride_f[2] = desc->stride_f[1] ? desc->stride_f[1] : p->stride_f[1] * p->n[1];
}

/* A bound of the largest sum of the moduli of a row. */
static inline long double ref_largest_row(const ref *p)
{
    long double norm = fabsl(p->alpha);
    for (int axis = 0; axis < 3; axis++) {
        const ref_axis *t = &p->axis[axis];
        long double largest = 0;
        for (int i = 0; i < t->n; i++)
            largest = fmaxl(largest, 2 * (t->low[i] + t->high[i]) + (i == 0 ? t->end[0] * t->a[0] : 0) +
                                         (i == t->n - 1 ? t->end[1] * t->a[1] : 0));
        norm += p->beta * largest;
    }
    return norm;
}

static inline void ref_free(ref *p)
{
    for (int axis = 0; axis < 3; axis++) free(p->axis[axis].x);
}

/* Offsets in elements, and access in the descriptor's precision. */
static inline int64_t ref_u(const ref *p, int i, int j, int k) { return i + j * p->stride_u[1] + k * p->stride_u[2]; }
static inline int64_t ref_f(const ref *p, int i, int j, int k) { return i + j * p->stride_f[1] + k * p->stride_f[2]; }

static inline long double ref_load(const ref *p, const void *array, int64_t offset)
{
    return p->f32 ? (long double)((const float *)array)[offset] : (long double)((const double *)array)[offset];
}
static inline void ref_store(const ref *p, void *array, int64_t offset, long double value)
{
    if (p->f32) ((float *)array)[offset] = (float)value;
    else ((double *)array)[offset] = (double)value;
}

static inline size_t ref_points(const ref *p) { return (size_t)p->n[0] * (size_t)p->n[1] * (size_t)p->n[2]; }
/* Elements from the first unknown to behind the last. */
static inline size_t ref_extent_u(const ref *p) { return (size_t)ref_u(p, p->n[0] - 1, p->n[1] - 1, p->n[2] - 1) + 1; }
static inline size_t ref_extent_f(const ref *p) { return (size_t)ref_f(p, p->n[0] - 1, p->n[1] - 1, p->n[2] - 1) + 1; }

static inline long double ref_weight(const ref *p, int i, int j, int k)
{
    return p->axis[0].w[i] * p->axis[1].w[j] * p->axis[2].w[k];
}

static inline long double ref_apply(const ref *p, const void *u, int i, int j, int k)
{
    const int at[3] = {i, j, k};
    const long double centre = ref_load(p, u, ref_u(p, i, j, k));
    long double sum = 0;
    for (int axis = 0; axis < 3; axis++) {
        const ref_axis *t = &p->axis[axis];
        const int64_t s = p->stride_u[axis], here = ref_u(p, i, j, k);
        const int q = at[axis], last = t->n - 1;
        if (t->low[q] != 0) sum += t->low[q] * (centre - ref_load(p, u, q > 0 ? here - s : here + last * s));
        if (t->high[q] != 0) sum += t->high[q] * (centre - ref_load(p, u, q < last ? here + s : here - last * s));
        if (q == 0) sum += t->end[0] * t->a[0] * centre;
        if (q == last) sum += t->end[1] * t->a[1] * centre;
    }
    return p->alpha * centre + p->beta * sum;
}

/* g of a face beside the point (i,j,k). */
static inline long double ref_face_value(const ref *p, int face, int i, int j, int k)
{
    const pg_face *q = &p->faces[face];
    if (!q->array) return q->value;
    const int axis = face / 2;
    return ref_load(p, q->array, axis == 0 ? j + (int64_t)p->n[1] * k : i + (int64_t)p->n[0] * (axis == 1 ? k : j));
}

static inline long double ref_boundary(const ref *p, int i, int j, int k)
{
    const int at[3] = {i, j, k};
    long double sum = 0;
    for (int face = 0; face < 6; face++) {
        const ref_axis *t = &p->axis[face / 2];
        if (at[face / 2] == (face % 2 ? t->n - 1 : 0) && t->end[face % 2] != 0)
            sum += t->end[face % 2] * ref_face_value(p, face, i, j, k);
    }
    return p->beta * sum;
}

static inline long double ref_residual(const ref *p, const void *u, const void *f, int i, int j, int k)
{
    return ref_load(p, f, ref_f(p, i, j, k)) + ref_boundary(p, i, j, k) - ref_apply(p, u, i, j, k);
}

/* The weighted mean of an array with the layout of u. */
static inline long double ref_mean(const ref *p, const void *u)
{
    long double sum = 0, total = 0;
    REF_EACH(p, i, j, k) {
        sum += ref_weight(p, i, j, k) * ref_load(p, u, ref_u(p, i, j, k));
        total += ref_weight(p, i, j, k);
    }
    return sum / total;
}

#endif
