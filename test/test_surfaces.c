/* Surfaces that lie between the unknowns: theta of air_value on cells and nodes, and in r-z; orders against exact solutions, the
   numbers of the study that the method was chosen by, iterations, the stop rule, changes between solves, what is refused. */
#include "common.h"

enum { MOST = 3 };
typedef double (*field)(const double x[3]);

/* A box with unit spacing rules of its own: unknown i of axis a lies at origin + h (i + shift). Where phi > 0 there is fluid. */
typedef struct scene {
    pg_desc desc;
    double origin[MOST], h[MOST], shift[MOST];
    field phi, u, f;
    size_t points;
    void *block[32];
    int blocks;
    unsigned char *mask;
    pg_cell_value *list;
    double *weight[MOST], *conductance[MOST];
} scene;

static void *keep(scene *s, size_t bytes) { return s->block[s->blocks++] = memset(allocate(bytes), 0, bytes ? bytes : 1); }
static void scene_free(scene *s)
{
    while (s->blocks) free(s->block[--s->blocks]);
}

static void place(const scene *s, size_t p, int at[3])
{
    at[0] = (int)(p % (size_t)s->desc.n[0]);
    at[1] = (int)(p / (size_t)s->desc.n[0] % (size_t)s->desc.n[1]);
    at[2] = (int)(p / (size_t)s->desc.n[0] / (size_t)s->desc.n[1]);
}
static void position(const scene *s, const int at[3], double x[3])
{
    for (int a = 0; a < 3; a++) x[a] = a < s->desc.dim ? s->origin[a] + s->h[a] * (at[a] + s->shift[a]) : 0;
}

/* An axis from x0 to x1. */
static void set_axis(scene *s, int a, int n, pg_centring centring, const char *ends, double x0, double x1)
{
    pg_desc *d = &s->desc;
    d->n[a] = n, d->centring[a] = centring;
    set_ends(d, a, ends);
    const int m = centring == PG_CELL || ends[0] == 'P' ? n : n - 1 + (ends[0] == 'D') + (ends[1] == 'D');
    s->origin[a] = x0, s->h[a] = d->h[a] = (x1 - x0) / m;
    s->shift[a] = centring == PG_CELL ? 0.5 : ends[0] == 'D';
}

/* Cylindrical r along axis 0, from 0. */
static void set_radial(scene *s)
{
    const int n = s->desc.n[0], node = s->desc.centring[0] == PG_NODE;
    const double h = s->h[0];
    s->weight[0] = keep(s, sizeof(double) * (size_t)n), s->conductance[0] = keep(s, sizeof(double) * (size_t)(n + 1));
    for (int i = 0; i < n; i++) s->weight[0][i] = node && i == 0 ? h / 4 : h * (i + s->shift[0]);
    for (int q = 0; q <= n; q++) s->conductance[0][q] = q == 0 ? 0 : h * (q + s->shift[0] - 0.5);
    s->desc.weight[0] = s->weight[0], s->desc.conductance[0] = s->conductance[0];
}

/* The neighbour of a side; 0 beyond the box. */
static int beside(const scene *s, const int at[3], int face, int to[3])
{
    const int a = face / 2, n = s->desc.n[a];
    memcpy(to, at, 3 * sizeof *to);
    to[a] += face % 2 ? 1 : -1;
    if (to[a] >= 0 && to[a] < n) return 1;
    to[a] = (to[a] + n) % n;
    return s->desc.face[2 * a].kind == PG_PERIODIC;
}

/* Where phi is 0 on the way from unknown `at` to the one beyond `face`, as a part of it. */
static double crossing(const scene *s, const int at[3], int face, double where[3])
{
    double x[3], low = 0, high = 1;
    const int a = face / 2;
    position(s, at, x);
    memcpy(where, x, sizeof x);
    for (int q = 0; q < 60; q++) {
        const double middle = (low + high) / 2;
        where[a] = x[a] + (face % 2 ? 1 : -1) * middle * s->h[a];
        *(s->phi(where) > 0 ? &low : &high) = middle;
    }
    return fmax((low + high) / 2, 1e-9);
}

/* The mask, an entry for each side where fluid meets air, of value u there, and u on Dirichlet faces. */
static void finish(scene *s, field value)
{
    pg_desc *d = &s->desc;
    int at[3], to[3];
    double x[3];
    s->points = (size_t)d->n[0] * (size_t)d->n[1] * (size_t)(d->n[2] ? d->n[2] : 1);
    if (d->dim < 3) d->n[2] = 1;
    s->mask = keep(s, s->points), s->list = keep(s, 6 * s->points * sizeof *s->list);
    for (size_t p = 0; p < s->points; p++) place(s, p, at), position(s, at, x), s->mask[p] = s->phi(x) > 0 ? PG_FLUID : PG_AIR;
    for (size_t p = 0; p < s->points; p++) {
        place(s, p, at);
        for (int face = 0; face < 2 * d->dim && s->mask[p] == PG_FLUID; face++) {
            if (!beside(s, at, face, to)) continue;
            if (s->mask[(size_t)to[0] + (size_t)d->n[0] * ((size_t)to[1] + (size_t)d->n[1] * (size_t)to[2])] != PG_AIR) continue;
            pg_cell_value *v = &s->list[d->cells.air_values++];
            v->cell[0] = at[0], v->cell[1] = at[1], v->cell[2] = at[2], v->face = face;
            v->theta = crossing(s, at, face, x), v->value = value ? value(x) : 0;
        }
    }
    d->cells.mask = s->mask, d->cells.air_value = s->list;
    for (int face = 0; face < 2 * d->dim; face++) {
        const int a = face / 2, low = a == 0, high = a == 2 ? 1 : 2;
        if (d->face[face].kind != PG_DIRICHLET) continue;
        double *g = keep(s, s->points / (size_t)d->n[a] * sizeof *g);
        for (size_t p = 0; p < s->points; p++) {
            place(s, p, at), position(s, at, x);
            if (at[a] != (face % 2 ? d->n[a] - 1 : 0)) continue;
            x[a] += (face % 2 ? 1 : -1) * (d->centring[a] == PG_NODE ? 1 : 0.5) * s->h[a];
            const size_t q = (size_t)at[low] + (size_t)d->n[low] * (size_t)at[high];
            if (d->flags & PG_F32) ((float *)g)[q] = (float)s->u(x);
            else g[q] = s->u(x);
        }
        d->face[face].array = g;
    }
}

static double element(const scene *s, const void *array, size_t p)
{
    return s->desc.flags & PG_F32 ? (double)((const float *)array)[p] : ((const double *)array)[p];
}

/* f in the fluid, NaN elsewhere, plus more, which may be NULL. */
static void *right_hand_side(scene *s, const double *more)
{
    void *f = keep(s, s->points * sizeof(double));
    int at[3];
    double x[3];
    for (size_t p = 0; p < s->points; p++) {
        place(s, p, at), position(s, at, x);
        const double value = s->mask[p] != PG_FLUID ? NAN : (s->f ? s->f(x) : 0) + (more ? more[p] : 0);
        if (s->desc.flags & PG_F32) ((float *)f)[p] = (float)value;
        else ((double *)f)[p] = value;
    }
    return f;
}

/* Solves, to the default tolerance or that of stop; returns u. */
static void *solve(scene *s, const double *more, const pg_stop *stop, pg_report *report)
{
    void *u = keep(s, s->points * sizeof(double)), *f = right_hand_side(s, more);
    pg_solver *solver = create(&s->desc);
    OK(pg_solve(solver, u, f, stop), solver);
    OK(pg_get_report(solver, report), solver);
    pg_destroy(solver);
    return u;
}

static double error_of(const scene *s, const void *u)
{
    double most = 0, x[3];
    int at[3];
    for (size_t p = 0; p < s->points; p++) {
        place(s, p, at), position(s, at, x);
        if (s->mask[p] == PG_FLUID) most = fmax(most, fabs(element(s, u, p) - s->u(x)));
        else assert_true(element(s, u, p) == 0);
    }
    return most;
}

/* ---- Exact solutions ---- */

static double centre[3], radius;
static int dimensions;
static double distance(const double x[3])
{
    double sum = 0;
    for (int a = 0; a < dimensions; a++) sum += (x[a] - centre[a]) * (x[a] - centre[a]);
    return fmax(sqrt(sum), 1e-9);
}
static double outside(const double x[3]) { return distance(x) - radius; }
static double of_electrode(const double x[3])
{
    const double form = dimensions == 2 ? log(distance(x) / radius) : 1 - radius / distance(x);
    return form * (1 + 0.3 * x[0]);
}
static double load_of_electrode(const double x[3])
{
    const double d = distance(x);
    return -0.6 * (x[0] - centre[0]) / (dimensions == 2 ? d * d : d * d * d / radius);
}
static double one(const double x[3]) { return (void)x, 1; }
static double none(const double x[3]) { return (void)x, 0; }

static const double centres[5][3] = {{0.503, 0.488, 0.511}, {0.506772, 0.484037, 0.530213}, {0.506147, 0.471929, 0.521848},
                                     {0.54212, 0.516412, 0.48989}, {0.465037, 0.469302, 0.51224}};

/* A circle or a sphere on which u is 0. */
static void electrode(scene *s, pg_backend backend, int dim, pg_centring centring, int n, const double *at, int precision)
{
    memset(s, 0, sizeof *s);
    s->desc.backend = backend, s->desc.dim = dim;
    if (precision) set_choice(&s->desc, (unsigned)precision);
    for (int a = 0; a < dim; a++) set_axis(s, a, n, centring, "DD", 0, 1);
    memcpy(centre, at, sizeof centre), radius = 0.23, dimensions = dim;
    s->phi = outside, s->u = of_electrode, s->f = load_of_electrode;
    finish(s, NULL);
}

static double worst_error(pg_backend backend, int dim, pg_centring centring, int n, int count, int precision)
{
    double worst = 0;
    for (int c = 0; c < count; c++) {
        scene s;
        pg_report report;
        electrode(&s, backend, dim, centring, n, centres[c], precision);
        worst = fmax(worst, error_of(&s, solve(&s, NULL, NULL, &report)));
        assert_int_equal(report.outcome, PG_CONVERGED);
        assert_true(report.iterations <= 10);
        scene_free(&s);
    }
    return worst;
}

#define AT_MOST(what, bound)                                                                                          \
    do {                                                                                                              \
        const double value_ = (what);                                                                                 \
        if (!(value_ <= (bound))) fail_msg("%s is %.3g, more than %g", #what, value_, (double)(bound));               \
    } while (0)

static void a_circle_is_of_second_order(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const double at_65 = worst_error(backend, 2, PG_NODE, 65, 5, 0), at_129 = worst_error(backend, 2, PG_NODE, 129, 5, 0);
    AT_MOST(at_65, 5.6e-4);
    AT_MOST(at_129, 1.65e-4);
    AT_MOST(worst_error(backend, 2, PG_CELL, 65, 5, 0), 6.1e-4);
    AT_MOST(worst_error(backend, 2, PG_NODE, 65, 1, PG_F32), 5.2e-4);
    AT_MOST(worst_error(backend, 2, PG_NODE, 65, 1, PG_MIXED), 4.7e-4);
    if (small_run()) return;
    AT_MOST(worst_error(backend, 2, PG_CELL, 129, 5, 0), 1.55e-4);
    AT_MOST(worst_error(backend, 2, PG_NODE, 257, 5, 0), 4.2e-5);
}

static void a_sphere_is_of_second_order(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(49, 25);
    AT_MOST(worst_error(backend, 3, PG_NODE, n, 1, 0), n == 49 ? 1.7e-3 : 5.3e-3);
    AT_MOST(worst_error(backend, 3, PG_CELL, n, 1, PG_F32), n == 49 ? 1.8e-3 : 5.7e-3);
    if (!small_run()) AT_MOST(worst_error(backend, 3, PG_NODE, 97, 1, 0), 4.9e-4);
}

/* ---- r-z: a sphere on the axis ---- */

static double of_rz(const double x[3]) { return (1 - radius / distance(x)) * (1 + 0.3 * x[1]); }
static double load_of_rz(const double x[3]) { return -0.6 * radius * (x[1] - 0.07) / pow(distance(x), 3); }
static double of_charge(const double x[3]) { return radius / distance(x); }

static void rz(scene *s, pg_backend backend, int n, pg_centring centring, int charged)
{
    memset(s, 0, sizeof *s);
    s->desc.backend = backend, s->desc.dim = dimensions = 2;
    set_axis(s, 0, n, centring, "ND", 0, 1), set_axis(s, 1, 2 * n, centring, "DD", -1, 1);
    set_radial(s);
    centre[0] = 0, centre[1] = 0.07, radius = 0.31;
    s->phi = outside, s->u = charged ? of_charge : of_rz, s->f = charged ? NULL : load_of_rz;
    finish(s, charged ? one : none);
}

static double error_in_rz(pg_backend backend, int n, pg_centring centring)
{
    scene s;
    pg_report report;
    rz(&s, backend, n, centring, 0);
    const double error = error_of(&s, solve(&s, NULL, NULL, &report));
    assert_int_equal(report.outcome, PG_CONVERGED);
    assert_true(report.iterations <= 10);
    scene_free(&s);
    return error;
}
static void a_sphere_in_r_and_z_is_of_second_order(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    AT_MOST(error_in_rz(backend, 65, PG_NODE), 4.45e-4);
    AT_MOST(error_in_rz(backend, 65, PG_CELL), 5.6e-4);
    if (small_run()) return;
    AT_MOST(error_in_rz(backend, 129, PG_NODE), 1.45e-4);
    AT_MOST(error_in_rz(backend, 257, PG_NODE), 3.9e-5);
}

/* The charge of the sphere over 2 pi eps0, from the links, from pg_gradient, and what leaves the box: all alike, near 2 R. */
static void the_charge_is_what_leaves(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int sizes[2] = {65, full_or_small(129, 65)};
    for (int size = 0; size < 2; size++) {
        const int n = sizes[size];
        scene s;
        pg_report report;
        rz(&s, backend, n, PG_NODE, 1);
        const pg_desc *d = &s.desc;
        const pg_stop stop = {.rtol = 1e-12};
        double *u = solve(&s, NULL, &stop, &report), *slope[2], charge = 0, by_slopes = 0, leaves = 0;
        pg_solver *solver = create(d);
        for (int a = 0; a < 2; a++) {
            slope[a] = keep(&s, sizeof(double) * (s.points / (size_t)d->n[a]) * (size_t)(d->n[a] + 1));
            OK(pg_gradient(solver, u, a, slope[a], PG_AT_FACES), solver);
        }
        pg_destroy(solver);
        for (int e = 0; e < d->cells.air_values; e++) {
            const pg_cell_value *v = &d->cells.air_value[e];
            const int i = v->cell[0], j = v->cell[1], up = v->face % 2, theta_axis = v->face / 2;
            const double width = i == 0 ? s.h[0] / 2 : s.h[0],
                         area = theta_axis == 0 ? s.conductance[0][i + up] * s.h[1] : s.weight[0][i] * width,
                         theta = fmax(v->theta, 1e-4);
            charge += area / s.h[theta_axis] / theta * (v->value - u[i + n * j]);
            const double here = theta_axis == 0 ? slope[0][i + up + (n + 1) * j] : slope[1][i + n * (j + up)];
            by_slopes += area * (up ? here : -here);
        }
        for (int j = 0; j < 2 * n; j++) leaves -= s.conductance[0][n] * s.h[1] * slope[0][n + (n + 1) * j];
        for (int i = 0; i < n; i++)
            leaves += s.weight[0][i] * (i == 0 ? s.h[0] / 2 : s.h[0]) * (slope[1][i] - slope[1][i + n * 2 * n]);
        AT_MOST(fabs(charge - 2 * radius) / (2 * radius), n == 129 ? 5e-5 : 1.7e-4);
        AT_MOST(fabs(by_slopes / charge - 1), 1e-12);
        AT_MOST(fabs(leaves / charge - 1), 1e-9);
        scene_free(&s);
    }
}

/* sum w x A y = sum w A x y, on nodes with r = 0. */
static void the_operator_in_r_and_z_is_symmetric(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    scene s;
    rz(&s, backend, 33, PG_NODE, 0);
    for (int q = 0; q < 4; q++) s.desc.face[q].array = NULL;
    double *x[2], *ax[2], dot[2];
    pg_solver *solver = create(&s.desc);
    for (int q = 0; q < 2; q++) {
        x[q] = keep(&s, s.points * sizeof(double)), ax[q] = keep(&s, s.points * sizeof(double));
        for (size_t p = 0; p < s.points; p++) x[q][p] = s.mask[p] == PG_FLUID ? sin(1.3 * (double)p * (q + 1) + q) : 0;
        OK(pg_apply(solver, x[q], ax[q]), solver);
    }
    for (int q = 0; q < 2; q++) OK(pg_dot(solver, ax[q], x[1 - q], &dot[q]), solver);
    pg_destroy(solver);
    AT_MOST(fabs(dot[0] - dot[1]), 1e-12 * fabs(dot[0]));
    scene_free(&s);
}

/* ---- A free surface, and a charged one that is no boundary ---- */

static double height(double x) { return 0.55 + 0.1 * sin(2 * PI * x) + 0.03 * cos(4 * PI * x + 1); }
static double below(const double x[3]) { return height(x[0]) - x[1]; }
static double of_free(const double x[3]) { return (height(x[0]) - x[1]) * cos(x[1]); }
static double load_of_free(const double x[3])
{
    const double bends = -0.1 * pow(2 * PI, 2) * sin(2 * PI * x[0]) - 0.03 * pow(4 * PI, 2) * cos(4 * PI * x[0] + 1);
    return -(bends * cos(x[1]) - (height(x[0]) - x[1]) * cos(x[1]) + 2 * sin(x[1]));
}
static void a_free_surface_is_of_second_order(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double bound[] = {6.7e-4, 1.75e-4, 4.3e-5};
    for (int q = 0; q < full_or_small(3, 2); q++) {
        scene s = {0};
        pg_report report;
        s.desc.backend = backend, s.desc.dim = 2;
        set_axis(&s, 0, 32 << q, PG_CELL, "PP", 0, 1), set_axis(&s, 1, 32 << q, PG_CELL, "NN", 0, 1);
        s.desc.face[PG_Y_LOW].value = 1;
        s.phi = below, s.u = of_free, s.f = load_of_free;
        finish(&s, NULL);
        AT_MOST(error_of(&s, solve(&s, NULL, NULL, &report)), bound[q]);
        scene_free(&s);
    }
}

static double everywhere(const double x[3]) { return (void)x, 1; }
static double of_sheet(const double x[3]) { return distance(x) < radius ? 1 : 1 + log(distance(x) / radius); }
static double of_both(const double x[3]) { return distance(x) < radius ? exp(x[0]) * cos(x[1]) : 0; }

/* Jumps of u, and of its first and second derivative along an axis, from inside to outside, of a charged sheet or of both. */
static void jumps_at(const double x[3], int a, int both, double jump[3])
{
    const double normal = (x[a] - centre[a]) / radius, own = -exp(x[0]) * cos(x[1]);
    jump[0] = both ? own : 0;
    jump[1] = !both ? normal / radius : a ? exp(x[0]) * sin(x[1]) : own;
    jump[2] = !both ? (1 - 2 * normal * normal) / (radius * radius) : a ? -own : own;
}

/* The header's recipe: f - c J at both ends of the links that the circle cuts. */
static double error_with_jumps(pg_backend backend, int n, int both)
{
    scene s = {0};
    pg_report report;
    s.desc.backend = backend, s.desc.dim = dimensions = 2;
    for (int a = 0; a < 2; a++) set_axis(&s, a, n, PG_CELL, "DD", 0, 1);
    centre[0] = 0.503, centre[1] = 0.488, radius = 0.27;
    s.phi = everywhere, s.u = both ? of_both : of_sheet;
    finish(&s, NULL);
    s.desc.cells = (pg_cells){0};
    s.phi = outside;
    double *more = keep(&s, s.points * sizeof *more), x[3], other[3], where[3], jump[3];
    int at[3], to[3];
    for (size_t p = 0; p < s.points; p++)
        for (int face = 0; face < 4; face++) {
            place(&s, p, at), position(&s, at, x);
            if (!beside(&s, at, face, to)) continue;
            position(&s, to, other);
            const int a = face / 2, out = outside(x) > 0;
            if (out == (outside(other) > 0)) continue;
            out ? crossing(&s, at, face, where) : crossing(&s, to, face ^ 1, where);
            jumps_at(where, a, both, jump);
            const double far = other[a] - where[a];
            more[p] -= (out ? -1 : 1) * (jump[0] + jump[1] * far + jump[2] * far * far / 2) / (s.h[a] * s.h[a]);
        }
    const pg_stop stop = {.rtol = 1e-12};
    const double error = error_of(&s, solve(&s, more, &stop, &report));
    scene_free(&s);
    return error;
}
static void jumps_are_a_right_hand_side(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(257, 65);
    AT_MOST(error_with_jumps(backend, n, 0), n == 257 ? 1.8e-5 : 2.8e-4);
    AT_MOST(error_with_jumps(backend, n, 1), n == 257 ? 2.4e-7 : 4e-6);
}

/* ---- What it is the same as ---- */

/* On cells: a number in alpha_cell and one in f, by hand. */
static void theta_is_a_shift_and_a_load(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int dim = 2; dim <= 3; dim++) {
        scene s;
        pg_report report;
        electrode(&s, backend, dim, PG_CELL, dim == 2 ? 33 : 17, centres[1], 0);
        for (int e = 0; e < s.desc.cells.air_values; e++) s.list[e].value = cos(e);
        const pg_stop stop = {.rtol = 1e-13};
        const double *u = solve(&s, NULL, &stop, &report);
        double *shift = keep(&s, s.points * sizeof *shift), *more = keep(&s, s.points * sizeof *more);
        for (int e = 0; e < s.desc.cells.air_values; e++) {
            pg_cell_value *v = &s.list[e];
            const size_t p = (size_t)v->cell[0] + (size_t)s.desc.n[0] * ((size_t)v->cell[1] + (size_t)s.desc.n[1] * (size_t)v->cell[2]);
            const double c = (1 / fmax(v->theta, 1e-4) - 1) / (s.h[0] * s.h[0]);
            shift[p] += c, more[p] += c * v->value, v->theta = 0;
        }
        s.desc.cells.alpha_cell = shift;
        const double *v = solve(&s, more, &stop, &report);
        for (size_t p = 0; p < s.points; p++) AT_MOST(fabs(u[p] - v[p]), 1e-11);
        scene_free(&s);
    }
}

/* Nodes in r-z are cells around them with beta_face: k times the widths across over h, half of it at a Dirichlet end; f is
   multiplied by the volume over h^2. */
static void nodes_in_r_and_z_are_cells_with_coefficients(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    scene s, cells;
    pg_report report;
    rz(&s, backend, 21, PG_NODE, 0);
    for (int q = 0; q < 4; q++) s.desc.face[q].array = NULL;
    for (int e = 0; e < s.desc.cells.air_values; e++) s.list[e].value = sin(e), s.list[e].theta = 0;
    const pg_stop stop = {.rtol = 1e-13};
    const double *u = solve(&s, NULL, &stop, &report);
    const int n = 21, m = 42;
    cells = s, cells.blocks = 0;
    double *along = keep(&cells, sizeof(double) * (size_t)((n + 1) * m)), *across = keep(&cells, sizeof(double) * (size_t)(n * (m + 1)));
    double *f = right_hand_side(&s, NULL), *v = keep(&cells, s.points * sizeof(double));
    for (int j = 0; j < m; j++)
        for (int i = 0; i <= n; i++) along[i + (n + 1) * j] = i == 0 ? 1e-30 : s.conductance[0][i] / (i == n ? 2 : 1);
    for (int j = 0; j <= m; j++)
        for (int i = 0; i < n; i++) across[i + n * j] = s.weight[0][i] / (i == 0 ? 2 : 1) / (j == 0 || j == m ? 2 : 1);
    for (int p = 0; p < n * m; p++) f[p] *= s.weight[0][p % n] / (p % n == 0 ? 2 : 1);
    pg_desc *d = &cells.desc;
    d->centring[0] = d->centring[1] = PG_CELL, d->weight[0] = d->conductance[0] = NULL;
    d->cells.beta_face[0] = along, d->cells.beta_face[1] = across;
    pg_solver *solver = create(d);
    OK(pg_solve(solver, v, f, &stop), solver);
    pg_destroy(solver);
    for (size_t p = 0; p < s.points; p++) AT_MOST(fabs(u[p] - v[p]), 1e-11);
    scene_free(&cells), scene_free(&s);
}

/* ---- Small theta ---- */

static double links_of_theta(scene *s, double theta, double part)
{
    rng r = {4};
    for (int e = 0; e < s->desc.cells.air_values; e++)
        s->list[e].theta = rng_uniform(&r, 0, 1) < part ? (theta > 0 ? theta : pow(10, rng_uniform(&r, -6, 0))) : 1;
    return theta;
}
static void iterations_do_not_depend_on_theta(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double theta[] = {1, 1e-3, 1e-6, 0};    /* 0: between 1e-6 and 1 */
    for (int which = 0; which < 3; which++) {
        int iterations[4];
        for (int q = 0; q < 4; q++) {
            scene s;
            pg_report report;
            if (which == 2) rz(&s, backend, 65, PG_NODE, 0);
            else electrode(&s, backend, 2 + which, PG_NODE, which ? 33 : 65, centres[0], 0);
            links_of_theta(&s, theta[q], 1);
            double *more = keep(&s, s.points * sizeof *more);
            rng r = {7};
            for (size_t p = 0; p < s.points; p++) more[p] = rng_uniform(&r, -1000, 1000);
            solve(&s, more, NULL, &report);
            iterations[q] = report.iterations;
            assert_int_equal(report.outcome, PG_CONVERGED);
            assert_int_equal(strstr(report.warning, "theta") != NULL, q >= 2);
            if (abs(iterations[q] - iterations[0]) > 2) fail_msg("%d iterations for theta %g, %d for 1", iterations[q], theta[q], iterations[0]);
            scene_free(&s);
        }
    }
}

/* One side in ten is next to the surface: the default tolerance is that of the others. The report is of the whole residual. */
static void the_stop_rule_does_not_count_by_theta(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double theta[] = {1e-2, 1e-3, 1e-4, 1e-6};
    for (int q = 0; q < 4; q++) {
        scene s;
        pg_report report, exact;
        electrode(&s, backend, 2, PG_NODE, 65, centres[0], 0);
        for (int face = 0; face < 4; face++) s.desc.face[face].array = NULL;
        s.f = NULL;
        for (int e = 0; e < s.desc.cells.air_values; e++) s.list[e].value = 1;
        links_of_theta(&s, theta[q], 0.1);
        const pg_stop tight = {.rtol = 1e-13};
        const double *u = solve(&s, NULL, NULL, &report), *v = solve(&s, NULL, &tight, &exact);
        for (size_t p = 0; p < s.points; p++) AT_MOST(fabs(u[p] - v[p]), 1e-7);
        /* the norm of f counts C V; the first residual, that of u = 0, is C V / theta */
        double *f = right_hand_side(&s, NULL), *zero = keep(&s, s.points * sizeof(double)), *r = keep(&s, s.points * sizeof(double)), norm;
        pg_solver *solver = create(&s.desc);
        OK(pg_residual(solver, zero, f, r), solver);
        OK(pg_norm(solver, r, PG_NORM_L2, &norm), solver);
        AT_MOST(fabs(norm / report.first_residual - 1), 1e-12);
        double sum = 0, *load = keep(&s, s.points * sizeof(double));
        for (int e = 0; e < s.desc.cells.air_values; e++) load[s.list[e].cell[0] + 65 * s.list[e].cell[1]] += 1 / (s.h[0] * s.h[0]);
        for (size_t p = 0; p < s.points; p++) sum += load[p] * load[p] * s.h[0] * s.h[0];
        AT_MOST(fabs(sqrt(sum) / report.rhs_norm - 1), 1e-12);
        OK(pg_residual(solver, u, f, r), solver);
        OK(pg_norm(solver, r, PG_NORM_L2, &norm), solver);
        AT_MOST(fabs(norm - report.residual), 1e-3 * norm + 1e-12 * report.first_residual);
        pg_destroy(solver);
        scene_free(&s);
    }
}

/* ---- Changes between solves, several problems, refusals ---- */

static void new_surfaces_are_those_of_a_new_solver(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int with_field = 0; with_field < 2; with_field++) {
        scene s, t;
        electrode(&s, backend, 2, PG_NODE, 40, centres[0], 0);
        electrode(&t, backend, 2, PG_NODE, 40, centres[0], 0);
        for (int e = 0; e < t.desc.cells.air_values; e++) t.list[e].theta = fmin(1, 0.2 + t.list[e].theta / 2), t.list[e].value = e % 3;
        double *field = keep(&s, s.points * sizeof *field), *f = right_hand_side(&s, NULL), *u[2];
        for (size_t p = 0; p < s.points; p++) field[p] = (double)(p % 4);
        if (with_field) s.desc.cells.alpha_cell = t.desc.cells.alpha_cell = field;
        for (int q = 0; q < 2; q++) u[q] = keep(&s, s.points * sizeof(double));
        const pg_stop stop = {.guess = PG_GUESS_ZERO};
        pg_solver *old = create(&s.desc), *new = create(&t.desc);
        OK(pg_solve(old, u[0], f, &stop), old);
        OK(pg_set_cells(old, &(pg_cells){.air_value = t.list, .air_values = t.desc.cells.air_values}), old);
        OK(pg_solve(old, u[0], f, &stop), old);
        OK(pg_solve(new, u[1], f, &stop), new);
        assert_memory_equal(u[0], u[1], s.points * sizeof(double));
        pg_destroy(old), pg_destroy(new);
        scene_free(&s), scene_free(&t);
    }
}

static void surfaces_are_alike_for_a_batch(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    scene s;
    electrode(&s, backend, 2, PG_CELL, 30, centres[2], 0);
    for (int q = 0; q < 4; q++) s.desc.face[q].array = NULL;
    const size_t n = s.points;
    double *one_f = right_hand_side(&s, NULL), *f = keep(&s, 2 * n * sizeof *f), *u = keep(&s, 2 * n * sizeof *u), *v = keep(&s, n * sizeof *v);
    for (size_t p = 0; p < 2 * n; p++) f[p] = one_f[p % n] * (p < n ? 1 : 3);
    pg_solver *solver = create(&s.desc);
    s.desc.batch = 2;
    pg_solver *both = create(&s.desc);
    OK(pg_solve(both, u, f, NULL), both);
    for (int q = 0; q < 2; q++) {
        memset(v, 0, n * sizeof *v);
        OK(pg_solve(solver, v, f + (size_t)q * n, NULL), solver);
        assert_memory_equal(v, u + (size_t)q * n, n * sizeof *v);
    }
    pg_destroy(both), pg_destroy(solver);
    scene_free(&s);
}

static void expect(pg_status status, pg_status wanted, const char *text, const char *first, const char *second)
{
    if (status != wanted || !strstr(text, first) || !strstr(text, second)) fail_msg("%s: %s", pg_status_string(status), text);
}
static void what_cannot_be_is_refused(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    scene s;
    electrode(&s, backend, 2, PG_NODE, 20, centres[0], 0);
    double *f = right_hand_side(&s, NULL), *u = keep(&s, s.points * sizeof *u), *before = keep(&s, s.points * sizeof *u);
    pg_cell_value *other = keep(&s, sizeof *other * (size_t)(s.desc.cells.air_values));
    const int count = s.desc.cells.air_values;
    const pg_stop stop = {.guess = PG_GUESS_ZERO};
    pg_solver *solver = create(&s.desc), *plain, *unmade = NULL;
    OK(pg_solve(solver, before, f, &stop), solver);
    pg_cells given = {.air_value = other, .air_values = count};
    memcpy(other, s.list, sizeof *other * (size_t)count), other[3].theta = 1.5;
    expect(pg_set_cells(solver, &given), PG_ERROR_ARGUMENT, pg_last_error(solver), "air_value[3] has theta 1.5", "0 (for 1) to 1");
    other[3] = s.list[2], other[2].theta = 0.25, other[3].theta = 0.5;
    expect(pg_set_cells(solver, &given), PG_ERROR_ARGUMENT, pg_last_error(solver), "two entries of air_value", "0.25 and 0.5");
    OK(pg_solve(solver, u, f, &stop), solver);
    assert_memory_equal(u, before, s.points * sizeof *u);
    other[3].theta = 0.25, other[0].theta = 1 + 1e-8, given.air_values = 4;    /* rounded: as 1 */
    OK(pg_set_cells(solver, &given), solver);
    pg_destroy(solver);
    for (int e = 0; e < count; e++) s.list[e].theta = 0;
    plain = create(&s.desc);
    expect(pg_set_cells(plain, &given), PG_ERROR_UNSUPPORTED, pg_last_error(plain), "air_value[0] has theta", "pg_create");
    pg_destroy(plain);
    s.list[1] = s.list[0], s.list[1].theta = 0.5;
    assert_int_equal(pg_create(&s.desc, &unmade), PG_ERROR_ARGUMENT);
    expect(PG_OK, PG_OK, pg_last_error(NULL), "theta 1 and 0.5", "give both one");
    scene_free(&s);
}

/* ---- A conductor that floats: superposition, and a large coefficient inside ---- */

static void a_floating_conductor_has_its_charge(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 64 };
    const double charge = 0.7;
    scene s;
    pg_report report;
    electrode(&s, backend, 2, PG_CELL, N, centres[0], 0);
    for (int q = 0; q < 4; q++) s.desc.face[q].array = NULL;
    s.f = NULL;
    double *u[2], sum[2] = {0, 0};
    for (int q = 0; q < 2; q++) {      /* at 0 V with f, at 1 V without */
        double *more = keep(&s, s.points * sizeof *more);
        for (size_t p = 0; p < s.points && q == 0; p++) more[p] = cos(0.1 * (double)(p % N));
        for (int e = 0; e < s.desc.cells.air_values; e++) s.list[e].value = q;
        const pg_stop stop = {.rtol = 1e-12};
        u[q] = solve(&s, more, &stop, &report);
        for (int e = 0; e < s.desc.cells.air_values; e++) {
            const pg_cell_value *v = &s.list[e];
            sum[q] += (v->value - u[q][v->cell[0] + N * v->cell[1]]) / fmax(v->theta, 1e-4);
        }
    }
    const double volts = (charge - sum[0]) / sum[1];
    /* The same conductor as fluid with beta 1e6: its links conduct so, those it is left by 1/theta; its charge in f */
    double *beta[2];
    for (int a = 0; a < 2; a++) {
        beta[a] = keep(&s, sizeof(double) * (N + 1) * N);
        for (int q = 0; q < (N + 1) * N; q++) {
            const int width = a ? N : N + 1, at[3] = {q % width, q / width, 0};
            const int below_at[3] = {at[0] - !a, at[1] - a, 0};
            const int in_box = at[a] > 0 && at[a] < N;
            beta[a][q] = in_box && s.mask[at[0] + N * at[1]] == PG_AIR && s.mask[below_at[0] + N * below_at[1]] == PG_AIR ? 1e6 : 1;
        }
    }
    for (int e = 0; e < s.desc.cells.air_values; e++) {
        const pg_cell_value *v = &s.list[e];
        const int a = v->face / 2, at[2] = {v->cell[0] + (a == 0 ? v->face % 2 : 0), v->cell[1] + (a == 1 ? v->face % 2 : 0)};
        beta[a][at[0] + (a ? N : N + 1) * at[1]] = 1 / fmax(v->theta, 1e-4);
    }
    int inside = 0;
    double *f = keep(&s, s.points * sizeof *f), *w = keep(&s, s.points * sizeof *w);
    for (size_t p = 0; p < s.points; p++) inside += s.mask[p] == PG_AIR;
    for (size_t p = 0; p < s.points; p++)
        f[p] = s.mask[p] == PG_AIR ? charge / inside / (s.h[0] * s.h[0]) : cos(0.1 * (double)(p % N));
    s.desc.cells = (pg_cells){.beta_face = {beta[0], beta[1]}};
    OK(pg_solve_once(&s.desc, w, f, &report), NULL);
    assert_int_equal(report.outcome, PG_CONVERGED);
    for (size_t p = 0; p < s.points; p++) {
        const double expected = s.mask[p] == PG_AIR ? volts : u[0][p] + volts * u[1][p];
        AT_MOST(fabs(w[p] - expected), 2e-6 * fabs(volts));
    }
    scene_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_circle_is_of_second_order),
        ON_BOTH(a_sphere_is_of_second_order),
        ON_BOTH(a_sphere_in_r_and_z_is_of_second_order),
        ON_BOTH(the_charge_is_what_leaves),
        ON_BOTH(the_operator_in_r_and_z_is_symmetric),
        ON_BOTH(a_free_surface_is_of_second_order),
        ON_BOTH(jumps_are_a_right_hand_side),
        ON_BOTH(theta_is_a_shift_and_a_load),
        ON_BOTH(nodes_in_r_and_z_are_cells_with_coefficients),
        ON_BOTH(iterations_do_not_depend_on_theta),
        ON_BOTH(the_stop_rule_does_not_count_by_theta),
        ON_BOTH(new_surfaces_are_those_of_a_new_solver),
        ON_BOTH(surfaces_are_alike_for_a_batch),
        ON_BOTH(what_cannot_be_is_refused),
        ON_BOTH(a_floating_conductor_has_its_charge),
    };
    return cmocka_run_group_tests_name("surfaces", tests, NULL, NULL);
}
