/* Problems with a known smooth solution: u = X(x) Y(y) Z(z), not symmetric, so that every face has non-zero data.

       pg_desc desc = ...;                       n, dim, centring, face kinds, alpha, beta, back end
       const int shape[3] = {...};               one of the shapes below for each axis
       manufactured m;
       manufactured_create(&m, &desc, shape);    m.desc is the problem with all its arrays; m.f, m.exact
       manufactured_error(&m, u)                 || u - exact || / || exact ||, L2; singular: up to the mean
       manufactured_free(&m);

   Every axis has length 1. */
#ifndef TEST_MANUFACTURED_H
#define TEST_MANUFACTURED_H

#include "ref.h"

enum {                              /* STRETCHED may be added to any */
    PLAIN = 0,
    RADIUS = 1,                     /* w = k = r, r from 0.5 */
    RADIUS_FROM_AXIS = 2,           /* w = k = r, r from 0; the low end must not be Dirichlet */
    INVERSE_RADIUS = 3,             /* w = k = 1/R, R from 0.5 */
    STRETCHED = 8                   /* by tanh to both ends, steps 1:4.6; periodic: by a sine */
};

typedef struct manufactured {
    pg_desc desc;
    ref p;
    int shape[3];
    double *exact, *f, *face[6];
    double *coord[3], *weight[3], *conductance[3];
} manufactured;

/* The factor of u along an axis: value, first and second derivative. */
static inline void manufactured_factor(const manufactured *m, int axis, double x, double v[3])
{
    static const double growth[3] = {0.5, -0.4, 0.3}, wave[3] = {2, 2.5, 3}, phase[3] = {0.5, 0.8, 0.3};
    const double p = growth[axis], q = wave[axis], s = phase[axis];
    if (axis >= m->p.dim) {
        v[0] = 1, v[1] = v[2] = 0;
    } else if (m->p.axis[axis].periodic) {
        const double c = cos(2 * PI * x + s), y = sin(2 * PI * x + s);
        v[0] = exp(0.5 * y);
        v[1] = PI * c * v[0];
        v[2] = (PI * PI * c * c - 2 * PI * PI * y) * v[0];
    } else if ((m->shape[axis] & 7) == RADIUS_FROM_AXIS) {      /* even in r, as a smooth function is */
        v[0] = cos(q * x), v[1] = -q * sin(q * x), v[2] = -q * q * v[0];
    } else {
        const double c = cos(q * x + s), y = sin(q * x + s), e = exp(p * x);
        v[0] = e * y;
        v[1] = e * (p * y + q * c);
        v[2] = e * ((p * p - q * q) * y + 2 * p * q * c);
    }
}

static inline double manufactured_origin(const manufactured *m, int axis)
{
    const int metric = m->shape[axis] & 7;
    return metric == RADIUS || metric == INVERSE_RADIUS ? 0.5 : 0;
}

/* -(1/w) (k v')' with w = k. */
static inline double manufactured_operator(const manufactured *m, int axis, double x, const double v[3])
{
    switch (m->shape[axis] & 7) {
    case RADIUS: return -(v[2] + v[1] / x);
    case RADIUS_FROM_AXIS: return x > 0 ? -(v[2] + v[1] / x) : -2 * v[2];
    case INVERSE_RADIUS: return -(v[2] - v[1] / x);
    default: return -v[2];
    }
}

/* Coordinates and metric of an axis, where its shape asks for them. */
static inline void manufactured_axis(manufactured *m, int axis)
{
    pg_desc *desc = &m->desc;
    const pg_face *face = &desc->face[2 * axis];
    const int n = desc->n[axis], metric = m->shape[axis] & 7, cell = desc->centring[axis] == PG_CELL;
    const int periodic = face[0].kind == PG_PERIODIC;
    const int low = !cell && !periodic && face[0].kind == PG_DIRICHLET;     /* points that are no unknowns */
    const int high = !cell && !periodic && face[1].kind == PG_DIRICHLET;
    const int intervals = cell || periodic ? n : n - 1 + low + high;
    double *e = m->coord[axis] = allocate(((size_t)intervals + 1) * sizeof *e);
    for (int i = 0; i <= intervals; i++) {
        const double s = (double)i / intervals;
        e[i] = !(m->shape[axis] & STRETCHED) ? s
               : periodic                    ? s + 0.4 * sin(2 * PI * s) / (2 * PI)
                                             : 0.5 + 0.5 * tanh(1.4 * (2 * s - 1)) / tanh(1.4);
    }
    if (m->shape[axis] & STRETCHED) desc->coord[axis] = e;
    if (metric == PLAIN) return;

    /* The control length of unknown i runs from b[i] to b[i+1]; the weight is the mean of w over it. */
    assert_false(periodic);
    double *b = allocate(((size_t)n + 1) * sizeof *b);
    double *weight = m->weight[axis] = allocate((size_t)n * sizeof *weight);
    double *conductance = m->conductance[axis] = allocate(((size_t)n + 1) * sizeof *conductance);
    for (int i = 0; i <= n; i++) {
        const int left = i - 1 + low, right = i + low;                      /* points beside, for nodes */
        b[i] = manufactured_origin(m, axis) +
               (cell ? e[i] : left < 0 ? e[0] : right > intervals ? e[intervals] : (e[left] + e[right]) / 2);
    }
    for (int i = 0; i < n; i++)
        weight[i] = metric == INVERSE_RADIUS ? log(b[i + 1] / b[i]) / (b[i + 1] - b[i]) : (b[i] + b[i + 1]) / 2;
    for (int i = 0; i <= n; i++) conductance[i] = metric == INVERSE_RADIUS ? 1 / b[i] : b[i];
    desc->weight[axis] = weight, desc->conductance[axis] = conductance;
    free(b);
}

static inline void manufactured_create(manufactured *m, const pg_desc *desc, const int shape[3])
{
    memset(m, 0, sizeof *m);
    m->desc = *desc;
    memcpy(m->shape, shape, sizeof m->shape);
    for (int axis = 0; axis < 3; axis++)
        if (m->desc.n[axis] > 1) manufactured_axis(m, axis);
    ref_create(&m->p, &m->desc);
    const ref *p = &m->p;
    m->exact = allocate(ref_points(p) * sizeof *m->exact);
    m->f = allocate(ref_points(p) * sizeof *m->f);

    /* The three factors at the unknowns, and at the faces. */
    double(*at[3])[3], (*operator[3]), end[6][3];
    for (int axis = 0; axis < 3; axis++) {
        const ref_axis *t = &p->axis[axis];
        at[axis] = allocate((size_t)t->n * sizeof *at[axis]);
        operator[axis] = allocate((size_t)t->n * sizeof *operator[axis]);
        for (int i = 0; i < t->n; i++) {
            const double x = manufactured_origin(m, axis) + (double)t->x[i];
            manufactured_factor(m, axis, x, at[axis][i]);
            operator[axis][i] = axis < p->dim ? manufactured_operator(m, axis, x, at[axis][i]) : 0;
            if (axis < p->dim) operator[axis][i] += desc->velocity[axis] * at[axis][i][1] / (double)p->beta;
        }
        for (int side = 0; side < 2; side++)
            manufactured_factor(m, axis, manufactured_origin(m, axis) + (double)t->face[side], end[2 * axis + side]);
    }
    REF_EACH(p, i, j, k) {
        const double x = at[0][i][0], y = at[1][j][0], z = at[2][k][0];
        const int64_t here = ref_u(p, i, j, k);
        m->exact[here] = x * y * z;
        m->f[here] = (double)p->alpha * m->exact[here] +
                     (double)p->beta * (operator[0][i] * y * z + operator[1][j] * x * z + operator[2][k] * x * y);
    }
    for (int q = 0; q < 2 * p->dim; q++) {
        pg_face *face = &m->desc.face[q];
        const int axis = q / 2, one = axis == 0, two = axis == 2 ? 1 : 2;
        if (face->kind == PG_PERIODIC) continue;
        const double a = face->kind == PG_DIRICHLET ? 1 : face->kind == PG_NEUMANN ? 0 : face->a;
        const double b = face->kind == PG_DIRICHLET ? 0 : face->kind == PG_NEUMANN ? 1 : face->b;
        const double g = a * end[q][0] + b * (q % 2 ? 1 : -1) * end[q][1];
        const int n1 = p->n[one], n2 = p->n[two];
        face->array = m->face[q] = allocate((size_t)n1 * (size_t)n2 * sizeof *m->face[q]);
        for (int j = 0; j < n2; j++)
            for (int i = 0; i < n1; i++) m->face[q][i + (size_t)n1 * (size_t)j] = g * at[one][i][0] * at[two][j][0];
    }
    memcpy(m->p.faces, m->desc.face, sizeof m->p.faces);
    for (int axis = 0; axis < 3; axis++) free(at[axis]), free(operator[axis]);
}

/* || a - b ||, L2, over || b ||; singular problems: each less its mean. */
static inline double manufactured_distance(const manufactured *m, const double *a, const double *b)
{
    const ref *p = &m->p;
    const long double mean_a = p->singular ? ref_mean(p, a) : 0, mean_b = p->singular ? ref_mean(p, b) : 0;
    long double difference = 0, size = 0;
    REF_EACH(p, i, j, k) {
        const int64_t here = ref_u(p, i, j, k);
        const long double w = ref_weight(p, i, j, k), y = b[here] - mean_b, d = a[here] - mean_a - y;
        difference += w * d * d;
        size += w * y * y;
    }
    return (double)sqrtl(difference / size);
}

static inline double manufactured_error(const manufactured *m, const double *u)
{
    return manufactured_distance(m, u, m->exact);
}

static inline void manufactured_free(manufactured *m)
{
    for (int axis = 0; axis < 3; axis++) free(m->coord[axis]), free(m->weight[axis]), free(m->conductance[axis]);
    for (int q = 0; q < 6; q++) free(m->face[q]);
    free(m->exact), free(m->f);
    ref_free(&m->p);
}

#endif
