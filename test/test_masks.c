/* Obstacles and coefficient fields: solutions against a dense reference, iterations of every scene, bits, changes
   between solves, refusals, pieces. In the environment PG_TEST_SEED names one random problem to try alone. */
#ifdef _OPENMP
#include <omp.h>
#endif
#include "common.h"
#include "ref.h"
#include "scenes.h"

/* ---- Random problems ---- */

/* A problem with all of its arrays. u and f are of its precision, with NaN in every cell that is not fluid. */
typedef struct problem {
    uint64_t seed;
    rng random;
    pg_desc desc;
    int f32, blocks;
    void *block[64];
    size_t count_u, count_f;
    void *u, *f;
} problem;

static double value_at(const void *array, size_t at, int f32)
{
    return f32 ? (double)((const float *)array)[at] : ((const double *)array)[at];
}
static void put_value(void *array, size_t at, double value, int f32)
{
    if (f32)
        ((float *)array)[at] = (float)value;
    else
        ((double *)array)[at] = value;
}

static const double padding = 12345.678;    /* what lies between rows and planes of u */

static void *keep(problem *p, size_t bytes)
{
    assert_true(p->blocks < 64);
    return p->block[p->blocks++] = allocate(bytes);
}

static void problem_free(problem *p)
{
    while (p->blocks) free(p->block[--p->blocks]);
}

static double get(const problem *p, const void *array, size_t at)
{
    return p->f32 ? ((const float *)array)[at] : ((const double *)array)[at];
}
static void put(const problem *p, void *array, size_t at, double value)
{
    if (p->f32) ((float *)array)[at] = (float)value;
    else ((double *)array)[at] = value;
}

static int chance(problem *p, double share) { return rng_uniform(&p->random, 0, 1) < share; }

static size_t cells_of(const pg_desc *d) { return (size_t)d->n[0] * (size_t)d->n[1] * (size_t)d->n[2]; }

static void place(const pg_desc *d, size_t cell, int at[3])
{
    at[0] = (int)(cell % (size_t)d->n[0]);
    at[1] = (int)(cell / (size_t)d->n[0] % (size_t)d->n[1]);
    at[2] = (int)(cell / (size_t)d->n[0] / (size_t)d->n[1]);
}

/* Where a cell lies in an array of these strides, 0 standing for packed. */
static size_t element(const pg_desc *d, const int64_t *stride, const int at[3])
{
    const int64_t row = stride[0] ? stride[0] : d->n[0], plane = stride[1] ? stride[1] : row * d->n[1];
    return (size_t)(at[0] + at[1] * row + at[2] * plane);
}

/* Elements from problem to problem of a batch. */
static size_t from_problem_to_problem(const pg_desc *d, const int64_t stride[3])
{
    const int64_t row = stride[0] ? stride[0] : d->n[0], plane = stride[1] ? stride[1] : row * d->n[1];
    return (size_t)(stride[2] ? stride[2] : plane * d->n[2]);
}

static int kind_of(const pg_desc *d, const int at[3])
{
    return d->cells.mask ? d->cells.mask[element(d, d->cells.stride_mask, at)] : PG_FLUID;
}

/* The cell beside a side; 0: the side is a face of the box. */
static int beside(const pg_desc *d, const int at[3], int axis, int end, int to[3])
{
    memcpy(to, at, 3 * sizeof *to);
    to[axis] += end ? 1 : -1;
    if (to[axis] >= 0 && to[axis] < d->n[axis]) return 1;
    to[axis] = (to[axis] + d->n[axis]) % d->n[axis];
    return d->face[2 * axis].kind == PG_PERIODIC;
}

static void draw_shape(problem *p)
{
    pg_desc *d = &p->desc;
    d->dim = rng_int(&p->random, 1, 3);
    for (int a = 0; a < 3; a++) {
        d->n[a] = a < d->dim ? rng_int(&p->random, 1, d->dim == 3 ? 8 : 14) : 1;
        d->centring[a] = a < d->dim && chance(p, 0.4) ? PG_NODE : PG_CELL;
    }
    if (chance(p, 0.3)) d->alpha = rng_uniform(&p->random, 0, 1) < 0.5 ? 0.01 : 3;
    if (chance(p, 0.3)) d->beta = rng_uniform(&p->random, 0.5, 3);
    d->batch = chance(p, 0.2) ? 2 : 1;
    d->coarsest = chance(p, 0.7) ? 8 : 0;
    d->robust = rng_int(&p->random, -1, 3);
}

/* Coordinates and metrics of an axis whose ends are known. */
static void draw_axis(problem *p, int a)
{
    pg_desc *d = &p->desc;
    const int n = d->n[a], periodic = d->face[2 * a].kind == PG_PERIODIC, spacing = rng_int(&p->random, 0, 3),
              m = d->centring[a] == PG_CELL || periodic ? n
                                                        : n - 1 + (d->face[2 * a].kind == PG_DIRICHLET) +
                                                              (d->face[2 * a + 1].kind == PG_DIRICHLET);
    if (spacing == 1) d->h[a] = rng_uniform(&p->random, 0.1, 1);
    if ((spacing == 2 && chance(p, 0.5)) || spacing == 3) {
        double *coord = keep(p, sizeof *coord * (size_t)(m + 1));
        coord[0] = rng_uniform(&p->random, -1, 1);
        for (int i = 0; i < m; i++) coord[i + 1] = coord[i] + rng_uniform(&p->random, 0.5, 2) / n;
        if (m > 0) d->coord[a] = coord;
    }
    if (!chance(p, 0.2)) return;
    double *w = keep(p, sizeof *w * (size_t)n), *k = keep(p, sizeof *k * (size_t)(n + 1));
    for (int i = 0; i < n; i++) w[i] = rng_uniform(&p->random, 0.5, 2);
    for (int i = 0; i <= n; i++) k[i] = rng_uniform(&p->random, 0.5, 2);
    if (periodic) k[n] = k[0];
    else if (chance(p, 0.3)) k[0] = 0;
    if (chance(p, 0.8)) d->weight[a] = w;
    if (chance(p, 0.8)) d->conductance[a] = k;
}

static void draw_faces(problem *p)
{
    pg_desc *d = &p->desc;
    const int closed = chance(p, 0.4);
    for (int a = 0; a < d->dim; a++) {
        char ends[3] = {"DNR"[rng_int(&p->random, 0, 2)], "DNR"[rng_int(&p->random, 0, 2)], 0};
        if (closed) ends[0] = ends[1] = 'N';
        if (chance(p, 0.25)) ends[0] = ends[1] = 'P';
        set_ends(d, a, ends);
        draw_axis(p, a);
        for (int end = 0; end < 2 && ends[0] != 'P'; end++) {
            pg_face *face = &d->face[2 * a + end];
            const int what = rng_int(&p->random, 0, 2);
            const size_t count = cells_of(d) / (size_t)d->n[a] * (size_t)d->batch;
            if (what == 1) face->value = rng_uniform(&p->random, -1, 1);
            if (what != 2) continue;
            void *array = keep(p, count * sizeof(double));
            for (size_t q = 0; q < count; q++) put(p, array, q, rng_uniform(&p->random, -1, 1));
            face->array = array;
        }
    }
}

static void draw_strides(problem *p, int64_t stride[3])
{
    const pg_desc *d = &p->desc;
    if (chance(p, 0.6)) return;
    stride[0] = d->n[0] + rng_int(&p->random, 0, 3);
    stride[1] = stride[0] * d->n[1] + rng_int(&p->random, 0, 5);
    stride[2] = stride[1] * d->n[2] + rng_int(&p->random, 0, 7);
}

/* At least one cell is fluid. */
static void draw_mask(problem *p)
{
    static const double shares[] = {0, 0, 0.1, 0.3, 0.5};
    pg_desc *d = &p->desc;
    int64_t stride[3] = {0};
    draw_strides(p, stride);
    memcpy(d->cells.stride_mask, stride, sizeof d->cells.stride_mask);
    const double solid = shares[rng_int(&p->random, 0, 4)], air = shares[rng_int(&p->random, 0, 4)] / 2;
    const size_t count = from_problem_to_problem(d, stride);
    unsigned char *mask = keep(p, count);
    memset(mask, 99, count);
    size_t fluid = 0;
    int at[3];
    for (size_t c = 0; c < cells_of(d); c++) {
        place(d, c, at);
        const double x = rng_uniform(&p->random, 0, 1);
        const pg_cell_kind kind = x < solid ? PG_SOLID : x < solid + air ? PG_AIR : PG_FLUID;
        mask[element(d, stride, at)] = (unsigned char)kind;
        fluid += kind == PG_FLUID;
    }
    place(d, (size_t)rng_int(&p->random, 0, (int)cells_of(d) - 1), at);
    if (!fluid) mask[element(d, stride, at)] = PG_FLUID;
    d->cells.mask = mask;
}

enum { POSITIVE, OPEN_PART, SHIFT };

static double draw_coefficient(problem *p, int what, double decades)
{
    const int choice = rng_int(&p->random, 0, 3);
    if (what == POSITIVE) return pow(10, rng_uniform(&p->random, -decades, decades));
    if (what == SHIFT) return choice < 2 ? 0 : rng_uniform(&p->random, 0, 5);
    return choice == 0 ? 0 : choice < 3 ? 1 : rng_uniform(&p->random, 0.01, 1);
}

static void *draw_array(problem *p, size_t count, int what, double decades)
{
    void *array = keep(p, count * sizeof(double));
    for (size_t q = 0; q < count; q++) put(p, array, q, draw_coefficient(p, what, decades));
    return array;
}

static void draw_coefficients(problem *p, double decades)
{
    pg_desc *d = &p->desc;
    const size_t cells = cells_of(d);
    const int beta = rng_int(&p->random, 0, 4), openness = chance(p, 0.3);
    for (int a = 0; a < d->dim; a++) {
        const size_t faces = cells / (size_t)d->n[a] * (size_t)(d->n[a] + 1);
        if (beta == 1) d->cells.beta_face[a] = draw_array(p, faces, POSITIVE, decades);
        if (openness) d->cells.openness[a] = draw_array(p, faces, OPEN_PART, decades);
    }
    if (beta == 2) d->cells.beta_cell = draw_array(p, cells, POSITIVE, decades);
    if (chance(p, 0.2)) d->cells.alpha_cell = draw_array(p, cells, SHIFT, decades);
    const int fields = beta == 1 || beta == 2 || openness || d->cells.alpha_cell;
    if (!fields || chance(p, 0.9)) draw_mask(p);
}

/* Values on some of the sides where fluid meets this kind. */
static pg_cell_value *draw_values(problem *p, int kind, double share, int *count)
{
    const pg_desc *d = &p->desc;
    const size_t cells = cells_of(d);
    pg_cell_value *list = keep(p, 6 * cells * sizeof *list);
    const int surface = kind == PG_AIR ? rng_int(&p->random, 0, 2) : 0;    /* in the unknowns; between; near the fluid's */
    int at[3], to[3];
    *count = 0;
    for (size_t c = 0; c < cells; c++) {
        place(d, c, at);
        for (int face = 0; face < 2 * d->dim && kind_of(d, at) == PG_FLUID; face++) {
            if (!beside(d, at, face / 2, face % 2, to) || kind_of(d, to) != kind || !chance(p, share)) continue;
            list[*count] = (pg_cell_value){{at[0], at[1], at[2]}, face, rng_uniform(&p->random, -1, 1), 0};
            if (surface) list[*count].theta = surface == 1 ? rng_uniform(&p->random, 0.01, 1) : pow(10, rng_uniform(&p->random, p->f32 ? -2 : -4, 0));
            if (p->f32) list[*count].value = (float)list[*count].value;
            ++*count;
        }
    }
    for (int q = *count - 1; q > 0; q--) {      /* in any order */
        const int other = rng_int(&p->random, 0, q);
        const pg_cell_value value = list[q];
        list[q] = list[other], list[other] = value;
    }
    return list;
}

static void draw_arrays(problem *p)
{
    pg_desc *d = &p->desc;
    draw_strides(p, d->stride_u), draw_strides(p, d->stride_f);
    const size_t next_u = from_problem_to_problem(d, d->stride_u), next_f = from_problem_to_problem(d, d->stride_f);
    p->count_u = next_u * (size_t)d->batch, p->count_f = next_f * (size_t)d->batch;
    p->u = keep(p, p->count_u * sizeof(double)), p->f = keep(p, p->count_f * sizeof(double));
    for (size_t q = 0; q < p->count_u; q++) put(p, p->u, q, padding);
    for (size_t q = 0; q < p->count_f; q++) put(p, p->f, q, NAN);
    const int guess = chance(p, 0.5);
    int at[3];
    for (int q = 0; q < d->batch; q++)
        for (size_t c = 0; c < cells_of(d); c++) {
            place(d, c, at);
            const int fluid = kind_of(d, at) == PG_FLUID;
            const double f = rng_uniform(&p->random, -1, 1), u = guess ? rng_uniform(&p->random, -1, 1) : 0;
            put(p, p->f, (size_t)q * next_f + element(d, d->stride_f, at), fluid ? f : NAN);
            put(p, p->u, (size_t)q * next_u + element(d, d->stride_u, at), fluid ? u : NAN);
        }
}

/* decades: beta lies between 10^-decades and 10^decades. */
static void problem_create(problem *p, uint64_t seed, pg_backend backend, int f32, double decades)
{
    memset(p, 0, sizeof *p);
    p->seed = seed, p->random.state = seed, p->f32 = f32;
    p->desc.backend = backend;
    rng_next(&p->random);
    draw_shape(p), draw_faces(p), draw_coefficients(p, decades);
    if (p->desc.cells.mask && chance(p, 0.5)) p->desc.cells.air_value = draw_values(p, PG_AIR, 0.6, &p->desc.cells.air_values);
    if (p->desc.cells.mask && chance(p, 0.5)) p->desc.cells.solid_flux = draw_values(p, PG_SOLID, 0.6, &p->desc.cells.solid_fluxes);
    draw_arrays(p);
}

static const char *tell(const problem *p)
{
    static char text[480];
    const pg_desc *d = &p->desc;
    snprintf(text, sizeof text, "seed %llu: %s, robust %d, batch %d%s%s%s%s%s, %d air values, %d solid fluxes",
             (unsigned long long)p->seed, describe(d), d->robust, d->batch, d->cells.mask ? ", mask" : "",
             d->cells.beta_face[0] ? ", beta_face" : "", d->cells.beta_cell ? ", beta_cell" : "",
             d->cells.openness[0] ? ", openness" : "", d->cells.alpha_cell ? ", alpha_cell" : "", d->cells.air_values, d->cells.solid_fluxes);
    return text;
}

/* ---- The reference: a dense matrix, each row multiplied by the volume of its cell ---- */

typedef struct dense {
    ref axes;                           /* of the empty box */
    int unknowns, batch, parts, pockets;
    int *cell, *number, *part;          /* of the unknown; unknown of the cell, or -1; part that the unknown is in */
    char *singular, *linked;            /* the part; the unknown has a link or a shift */
    long double *a, *volume, *load;     /* the load: f times the volume, and from boundaries; [problem][unknown] */
    long double *boundary, *u;          /* the latter alone; the solution */
    long double *far;                   /* what norms leave out: of surfaces between the unknowns */
    long double removed[2];             /* largest mean removed, also of cells without a link */
} dense;

/* Of the face at one end of a cell, without distance and area. */
static long double coefficient(const problem *p, const int at[3], int axis, int end)
{
    const pg_desc *d = &p->desc;
    const int periodic = d->face[2 * axis].kind == PG_PERIODIC;
    int size[3] = {d->n[0], d->n[1], d->n[2]}, face[3] = {at[0], at[1], at[2]}, to[3];
    size[axis]++, face[axis] += end;
    if (periodic && face[axis] == d->n[axis]) face[axis] = 0;
    const size_t q = (size_t)face[0] + (size_t)size[0] * ((size_t)face[1] + (size_t)size[1] * (size_t)face[2]);
    long double c = d->beta != 0 ? d->beta : 1;
    if (d->cells.beta_face[axis]) c *= get(p, d->cells.beta_face[axis], q);
    if (d->cells.openness[axis]) c *= get(p, d->cells.openness[axis], q);
    if (d->cells.beta_cell) {
        const int64_t packed[2] = {0, 0};
        const long double own = get(p, d->cells.beta_cell, element(d, packed, at));
        if (!beside(d, at, axis, end, to)) return c * own;
        c *= 2 / (1 / own + 1 / (long double)get(p, d->cells.beta_cell, element(d, packed, to)));
    }
    return c;
}

static const pg_cell_value none_listed;
static const pg_cell_value *listed(const pg_cell_value *list, int count, const int at[3], int face)
{
    for (int q = 0; q < count; q++)
        if (list[q].face == face && !memcmp(list[q].cell, at, sizeof list[q].cell)) return &list[q];
    return &none_listed;
}

static long double face_value(const problem *p, const int at[3], int axis, int end, int q)
{
    const pg_desc *d = &p->desc;
    const pg_face *face = &d->face[2 * axis + end];
    if (!face->array) return face->value;
    const int low = axis == 0 ? 1 : 0, high = axis == 2 ? 1 : 2;
    const size_t count = cells_of(d) / (size_t)d->n[axis];
    return get(p, face->array, (size_t)q * count + (size_t)at[low] + (size_t)d->n[low] * (size_t)at[high]);
}

/* One side of a cell, whose coefficient is c. Returns the shift. */
static long double add_side(dense *m, const problem *p, int row, const int at[3], int axis, int end)
{
    const pg_desc *d = &p->desc;
    const ref_axis *t = &m->axes.axis[axis];
    const int i = at[axis], face = 2 * axis + end;
    const long double c = m->volume[row] * coefficient(p, at, axis, end), link = c * (end ? t->high : t->low)[i];
    long double from_known = 0, shift = 0;
    int to[3];
    if (!beside(d, at, axis, end, to)) {
        for (int q = 0; q < m->batch; q++)
            m->boundary[q * m->unknowns + row] += c * t->end[end] * face_value(p, at, axis, end, q);
        return c * t->end[end] * t->a[end];
    }
    const int kind = kind_of(d, to);
    if (kind == PG_SOLID) {
        const long double k = d->conductance[axis] ? d->conductance[axis][i + end] : 1;
        from_known = c * k / t->w[i] * listed(d->cells.solid_flux, d->cells.solid_fluxes, at, face)->value;
    }
    if (kind == PG_AIR) {
        const pg_cell_value *known = listed(d->cells.air_value, d->cells.air_values, at, face);
        shift = known->theta > 0 ? link / known->theta : link, from_known = shift * known->value;
        m->far[row] += (shift - link) * known->value;
    }
    if (kind == PG_FLUID) {
        const int64_t packed[2] = {0, 0};
        const int other = m->number[element(d, packed, to)];
        if (other != row) m->a[row * m->unknowns + row] += link, m->a[row * m->unknowns + other] -= link;
    }
    for (int q = 0; q < m->batch; q++) m->boundary[q * m->unknowns + row] += from_known;
    return shift;
}

/* Parts that hang together, and those that nothing holds. */
static void find_parts(dense *m, const char *held)
{
    const int n = m->unknowns;
    int *stack = allocate(sizeof *stack * (size_t)n);
    for (int q = 0; q < n; q++) m->part[q] = -1;
    for (int first = 0; first < n; first++) {
        if (m->part[first] >= 0) continue;
        const int part = m->parts++;
        int waiting = 1, size = 0;
        m->singular[part] = 1, stack[0] = first, m->part[first] = part;
        while (waiting) {
            const int row = stack[--waiting];
            size++;
            if (held[row]) m->singular[part] = 0;
            for (int q = 0; q < n; q++)
                if (m->part[q] < 0 && m->a[row * n + q] < 0) m->part[q] = part, stack[waiting++] = q;
        }
        for (int q = 0; q < n; q++)
            if (m->part[q] == part) m->linked[q] = size > 1 || held[q];
        m->pockets += m->singular[part];
    }
    free(stack);
}

static void dense_allocate(dense *m, const problem *p)
{
    const pg_desc *d = &p->desc;
    const size_t cells = cells_of(d);
    memset(m, 0, sizeof *m);
    m->batch = d->batch > 1 ? d->batch : 1;
    m->cell = allocate(cells * sizeof *m->cell), m->number = allocate(cells * sizeof *m->number);
    m->part = allocate(cells * sizeof *m->part), m->singular = allocate(cells), m->linked = allocate(cells);
    int at[3];
    for (size_t c = 0; c < cells; c++) {
        place(d, c, at);
        m->number[c] = kind_of(d, at) == PG_FLUID ? m->unknowns : -1;
        if (m->number[c] >= 0) m->cell[m->unknowns++] = (int)c;
    }
    const size_t n = (size_t)m->unknowns, loads = n * (size_t)m->batch;
    long double **const all[] = {&m->a, &m->volume, &m->load, &m->boundary, &m->u, &m->far};
    const size_t count[] = {n * n, n, loads, loads, loads, n};
    for (size_t q = 0; q < 6; q++) {
        const size_t bytes = count[q] * sizeof(long double);
        *all[q] = memset(allocate(bytes), 0, bytes);
    }
}

static void dense_create(dense *m, const problem *p)
{
    const pg_desc *d = &p->desc;
    const int64_t packed[2] = {0, 0};
    dense_allocate(m, p);
    ref_create(&m->axes, d);
    const int n = m->unknowns;
    char *held = allocate((size_t)n);
    int at[3];
    for (int row = 0; row < n; row++) {
        place(d, (size_t)m->cell[row], at);
        m->volume[row] = ref_weight(&m->axes, at[0], at[1], at[2]);
        long double shift = d->alpha;
        if (d->cells.alpha_cell) shift += get(p, d->cells.alpha_cell, element(d, packed, at));
        shift *= m->volume[row];
        for (int side = 0; side < 2 * d->dim; side++) shift += add_side(m, p, row, at, side / 2, side % 2);
        m->a[row * n + row] += shift;
        held[row] = shift > 0;
        for (int q = 0; q < m->batch; q++) {
            const size_t f = (size_t)q * from_problem_to_problem(d, d->stride_f) + element(d, d->stride_f, at);
            m->load[q * n + row] = m->volume[row] * get(p, p->f, f) + m->boundary[q * n + row];
        }
    }
    find_parts(m, held);
    free(held);
}

static void dense_free(dense *m)
{
    free(m->cell), free(m->number), free(m->part), free(m->singular), free(m->linked);
    free(m->a), free(m->volume), free(m->load), free(m->boundary), free(m->u), free(m->far);
    ref_free(&m->axes);
}

/* In a part: the weighted mean of a field that has been multiplied by the volumes, or has not. */
static long double mean_in(const dense *m, int part, const long double *field, int multiplied)
{
    long double sum = 0, volume = 0;
    for (int q = 0; q < m->unknowns; q++)
        if (m->part[q] == part) sum += field[q] * (multiplied ? 1 : m->volume[q]), volume += m->volume[q];
    return sum / volume;
}

/* Makes the loads compatible, part by part. */
static void remove_means(dense *m)
{
    for (int q = 0; q < m->batch; q++)
        for (int part = 0; part < m->parts; part++) {
            if (!m->singular[part]) continue;
            long double *load = m->load + q * m->unknowns;
            const long double mean = mean_in(m, part, load, 1);
            for (int row = 0; row < m->unknowns; row++)
                if (m->part[row] == part) load[row] -= mean * m->volume[row];
            if (fabsl(mean) > fabsl(m->removed[q])) m->removed[q] = mean;
        }
}

/* Gauss, with rows exchanged for the largest pivot; x holds the loads, then the solutions. */
static void eliminate(long double *a, long double *x, int n, int loads)
{
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabsl(a[i * n + k]) > fabsl(a[pivot * n + k])) pivot = i;
        for (int j = k; j < n && pivot != k; j++) {
            const long double other = a[k * n + j];
            a[k * n + j] = a[pivot * n + j], a[pivot * n + j] = other;
        }
        for (int q = 0; q < loads && pivot != k; q++) {
            const long double other = x[q * n + k];
            x[q * n + k] = x[q * n + pivot], x[q * n + pivot] = other;
        }
        for (int i = k + 1; i < n; i++) {
            const long double factor = a[i * n + k] / a[k * n + k];
            if (factor == 0) continue;
            for (int j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
            for (int q = 0; q < loads; q++) x[q * n + i] -= factor * x[q * n + k];
        }
    }
    for (int q = 0; q < loads; q++)
        for (int i = n - 1; i >= 0; i--) {
            for (int j = i + 1; j < n; j++) x[q * n + i] -= a[i * n + j] * x[q * n + j];
            x[q * n + i] /= a[i * n + i];
        }
}

/* Of singular parts the solution whose weighted mean is 0. Its first value is set to 0 on the way. */
static void dense_solve(dense *m)
{
    const int n = m->unknowns;
    remove_means(m);
    long double *a = allocate(sizeof *a * (size_t)n * (size_t)n);
    memcpy(a, m->a, sizeof *a * (size_t)n * (size_t)n);
    memcpy(m->u, m->load, sizeof *a * (size_t)n * (size_t)m->batch);
    for (int part = 0; part < m->parts; part++) {
        int first = 0;
        while (m->part[first] != part) first++;
        if (!m->singular[part]) continue;
        memset(a + (size_t)first * (size_t)n, 0, sizeof *a * (size_t)n);
        a[first * n + first] = 1;
        for (int q = 0; q < m->batch; q++) m->u[q * n + first] = 0;
    }
    eliminate(a, m->u, n, m->batch);
    for (int q = 0; q < m->batch; q++)
        for (int part = 0; part < m->parts; part++) {
            const long double mean = m->singular[part] ? mean_in(m, part, m->u + q * n, 0) : 0;
            for (int row = 0; row < n; row++)
                if (m->part[row] == part) m->u[q * n + row] -= mean;
        }
    free(a);
}

/* What row of problem q has in an array of these strides. */
static double at_row(const dense *m, const problem *p, const void *array, const int64_t *stride, int row, int q)
{
    int at[3];
    place(&p->desc, (size_t)m->cell[row], at);
    return get(p, array, (size_t)q * from_problem_to_problem(&p->desc, stride) + element(&p->desc, stride, at));
}

/* A u of one row with u in the layout of the problem, times the volume; *size: the sum of what is added. */
static long double dense_apply(const dense *m, const problem *p, const void *u, int row, int q, long double *size)
{
    long double sum = 0, absolute = 0;
    for (int other = 0; other < m->unknowns; other++) {
        const long double a = m->a[row * m->unknowns + other];
        if (a == 0) continue;
        const long double term = a * at_row(m, p, u, p->desc.stride_u, other, q);
        sum += term, absolute += fabsl(term);
    }
    if (size) *size = absolute;
    return sum;
}

/* ||u - reference|| / ||reference||, and ||residual|| / ||right-hand side||. */
static void compare(const dense *m, const problem *p, int q, double *error, double *residual)
{
    long double difference = 0, whole = 0, left = 0, load = 0;
    for (int row = 0; row < m->unknowns; row++) {
        const long double own = m->u[q * m->unknowns + row], b = m->load[q * m->unknowns + row], v = m->volume[row];
        const long double d = at_row(m, p, p->u, p->desc.stride_u, row, q) - own;
        const long double r = b - dense_apply(m, p, p->u, row, q, NULL);
        difference += v * d * d, whole += v * own * own;
        left += r * r / v, load += (b - m->far[row]) * (b - m->far[row]) / v;
    }
    *error = (double)(whole > 0 ? sqrtl(difference / whole) : sqrtl(difference));
    *residual = (double)(load > 0 ? sqrtl(left / load) : sqrtl(left));
}

/* ---- What solutions are like ---- */

static int failures;

/* No warning but that f, which is random, has a mean that no solution takes away. */
static int only_compatible(const pg_report *report)
{
    return !report->warning[0] || strstr(report->warning, "f is not compatible") != NULL;
}

#define EXPECT(condition, ...)                                                                                        \
    do {                                                                                                              \
        if (!(condition) && failures++ < 40) print_error(__VA_ARGS__), print_error("\n");                             \
    } while (0)

/* 0 where nothing is solved for, and what was there before between rows, planes and problems. */
static void check_outside(const dense *m, const problem *p)
{
    const pg_desc *d = &p->desc;
    const size_t next = from_problem_to_problem(d, d->stride_u);
    char *seen = memset(allocate(p->count_u), 0, p->count_u);
    int at[3], not_zero = 0, touched = 0;
    for (int q = 0; q < m->batch; q++)
        for (size_t c = 0; c < cells_of(d); c++) {
            place(d, c, at);
            const size_t e = (size_t)q * next + element(d, d->stride_u, at);
            seen[e] = 1;
            if (m->number[c] < 0 || !m->linked[m->number[c]]) not_zero += !(get(p, p->u, e) == 0);
        }
    const double before = p->f32 ? (float)padding : padding;
    for (size_t e = 0; e < p->count_u; e++) touched += !seen[e] && get(p, p->u, e) != before;
    EXPECT(!not_zero, "%s: %d values outside are not 0", tell(p), not_zero);
    EXPECT(!touched, "%s: %d elements of padding were written", tell(p), touched);
    free(seen);
}

static const unsigned methods[] = {
    PG_FASTEST, PG_FMG, PG_CG, PG_CG | PG_PRECOND_DIAGONAL, PG_CG | PG_PRECOND_NONE, PG_CG | PG_PRECOND_AINV,
    PG_CG | PG_PRECOND_AINV2, PG_CG | PG_PRECOND_DIRECT, PG_PIPECG, PG_PIPECG | PG_PRECOND_DIAGONAL,
    PG_PIPECG | PG_PRECOND_NONE, PG_BICGSTAB, PG_BICGSTAB | PG_PRECOND_AINV, PG_PIPEBICGSTAB | PG_PRECOND_DIAGONAL,
    PG_MIXED | PG_FMG, PG_MIXED | PG_CG, PG_RBGS, PG_SOR, PG_JACOBI};
enum { METHODS = sizeof methods / sizeof *methods, SWEEPS = 3, MIXED = 2 };

/* Sweeps only take what is tiny, and not singular, nor nearly so. */
static void draw_method(problem *p, const dense *m)
{
    const pg_desc *d = &p->desc;
    int regular = 1;
    for (int part = 0; part < m->parts; part++) regular &= !m->singular[part];
    int fields = d->cells.beta_face[0] || d->cells.beta_cell || d->cells.openness[0] || d->cells.alpha_cell, boxes = 1;
    for (int q = 0; q < d->cells.air_values; q++) fields |= d->cells.air_value[q].theta != 0;
    for (int a = 0; a < d->dim; a++) boxes &= d->centring[a] == PG_CELL && !d->weight[a] && !d->conductance[a];
    const int sweeps = regular && !fields && m->unknowns <= 60 && (d->alpha == 0 || d->alpha > 1) ? 0 : SWEEPS;
    const int last = METHODS - (p->f32 ? SWEEPS + MIXED : sweeps);
    set_choice(&p->desc, methods[rng_int(&p->random, 0, last - 1)] | (p->f32 ? PG_F32 : 0));
    /* By the other rules too: around the cycle, for alone it may not converge. */
    if (d->cells.mask && !fields && boxes && chance(p, 0.3)) {
        set_choice(&p->desc, PG_COARSEN_CELLS | (p->f32 ? PG_CG | PG_F32 : chance(p, 0.5) ? PG_CG : PG_PIPECG));
        p->desc.robust = 0;
    }
}

/* What the method can reach: recurrences of pipelined forms and of BiCGStab lose some of it, and with jumps of decades
   a small residual may be a larger error. */
static int is_as_good_as_can_be(const problem *p, double error, double residual)
{
    const int loses = (p->desc.flags & (PG_PIPECG | PG_BICGSTAB | PG_PIPEBICGSTAB)) != 0;
    if (p->f32) return error <= (loses ? 5e-2 : 2e-3) || residual <= 1e-4;
    return error <= (loses ? 1e-7 : 1e-9) || (error <= 1e-7 && residual <= 1.1e-12);
}

/* Around anything but the cycle the end may be that of the iterations: with jumps the floor is not always seen. */
static int is_an_end(const problem *p, pg_outcome outcome)
{
    const unsigned weak = PG_PRECOND_DIAGONAL | PG_PRECOND_NONE | PG_PRECOND_AINV | PG_PRECOND_AINV2;
    return outcome == PG_CONVERGED || outcome == PG_STAGNATED || (outcome == PG_MAX_ITER && choice_of(&p->desc) & weak);
}

static void check_problem(problem *p, const dense *m, const pg_report *report)
{
    EXPECT(report->singular_components == m->pockets, "%s: reports %d pockets instead of %d", tell(p), report->singular_components, m->pockets);
    check_outside(m, p);
    for (int q = 0; q < m->batch; q++) {
        double error, residual;
        compare(m, p, q, &error, &residual);
        EXPECT(is_as_good_as_can_be(p, error, residual), "%s: problem %d: error %.1e, residual %.1e: %s", tell(p), q,
               error, residual, report->message);
    }
    EXPECT(is_an_end(p, report->outcome), "%s: %s", tell(p), report->message);
    const double removed = (double)m->removed[report->problem];
    const double told = report->removed_mean, allowed = (p->f32 ? 1e-4 : 1e-10) * (1 + report->rhs_norm + fabs(told));
    EXPECT(fabs(told - removed) <= allowed, "%s: removed a mean of %g instead of %g", tell(p), told, removed);
}

static void try_problem(uint64_t seed, pg_backend backend, int f32)
{
    problem p;
    dense m;
    problem_create(&p, seed, backend, f32, f32 ? 0.5 : 3);
    dense_create(&m, &p);
    dense_solve(&m);
    draw_method(&p, &m);
    pg_solver *solver = NULL;
    if (p.desc.precond == PG_PRECOND_DIRECT && pg_create(&p.desc, &solver) == PG_ERROR_UNSUPPORTED) set_choice(&p.desc, PG_CG);
    if (!solver) solver = create(&p.desc);
    pg_stop stop = {.rtol = 1e-12, .max_iter = p.desc.flags & (PG_RBGS | PG_SOR | PG_JACOBI) ? 200000 : 5000};
    OK(pg_solve(solver, p.u, p.f, f32 ? NULL : &stop), solver);
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    check_problem(&p, &m, &report);
    pg_destroy(solver);
    dense_free(&m);
    problem_free(&p);
}

static void try_problems(pg_backend backend, int f32, int count)
{
    const char *only = getenv("PG_TEST_SEED");
    failures = 0;
    if (only) try_problem(strtoull(only, NULL, 10), backend, f32);
    for (int seed = 1; seed <= count && !only; seed++) try_problem((uint64_t)seed, backend, f32);
    assert_int_equal(failures, 0);
}

static void random_problems(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    try_problems(backend, 0, full_or_small(500, backend == PG_CUDA ? 20 : 40));
}

static void random_problems_in_f32(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    try_problems(backend, 1, full_or_small(100, 10));
}

/* PG_PRECOND_DIRECT solves on the empty box, which is singular here though the problem is not. */
static void the_direct_preconditioner_of_a_box_that_is_singular(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 8 };
    failures = 0;
    for (int q = 0; q < 12; q++) {
        unsigned char mask[N * N] = {0};
        double shift[N * N] = {0}, u[N * N] = {0}, f[N * N];
        pg_desc desc = {.n = {N, N}, .backend = backend, .centring = {PG_CELL, PG_CELL}};
        set_choice(&desc, q % 2 ? PG_PIPECG | PG_PRECOND_DIRECT : PG_CG | PG_PRECOND_DIRECT);
        set_ends(&desc, 0, "NN"), set_ends(&desc, 1, q / 2 % 2 ? "PP" : "NN");
        for (int c = 0; c < N * N; c++) f[c] = c % 7 - 2;
        if (q < 8) desc.cells.alpha_cell = shift, shift[5] = 1, shift[40] = 2;
        if (q >= 4) desc.cells.mask = mask, mask[27] = q < 8 ? PG_SOLID : PG_AIR;
        pg_report report;
        if (pg_solve_once(&desc, u, f, &report) == PG_ERROR_UNSUPPORTED) continue;
        EXPECT(report.outcome == PG_CONVERGED && report.iterations <= 30, "%s%s%s: %s", describe(&desc),
               desc.cells.mask ? ", mask" : "", desc.cells.alpha_cell ? ", alpha_cell" : "", report.message);
    }
    assert_int_equal(failures, 0);
}

/* Two axes with coordinates: one of them becomes uniform, so that what is solved for has other weights than A. */
static void the_direct_preconditioner_of_two_stretched_axes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double y[] = {0, 1, 2.5, 3, 4.2, 5}, z[] = {0, 0.3, 1.1, 1.9};
    enum { CELLS = 4 * 5 * 3 };
    failures = 0;
    for (int q = 0; q < 4; q++) {
        unsigned char mask[CELLS] = {0};
        double shift[CELLS], u[CELLS] = {0}, f[CELLS];
        pg_desc desc = {.n = {4, 5, 3}, .backend = backend, .centring = {PG_CELL, PG_CELL, PG_CELL}};
        set_choice(&desc, q % 2 ? PG_PIPECG | PG_PRECOND_DIRECT : PG_CG | PG_PRECOND_DIRECT);
        desc.coord[1] = y, desc.coord[2] = z;
        for (int c = 0; c < CELLS; c++) shift[c] = 1 + c % 3, f[c] = sin(1.7 * c + 1);
        if (q < 2) desc.cells.alpha_cell = shift;
        else desc.cells.mask = mask, mask[27] = PG_SOLID;
        pg_report report;
        assert_int_equal(pg_solve_once(&desc, u, f, &report), PG_OK);
        EXPECT(report.outcome == PG_CONVERGED && report.iterations <= 30, "%s: %s", describe(&desc), report.message);
    }
    assert_int_equal(failures, 0);
}

/* The kind of coarse levels that pg_create chose. */
static int chosen_robust(const pg_desc *desc)
{
    pg_desc resolved;
    pg_solver *solver = create(desc);
    OK(pg_query_desc(solver, &resolved), solver);
    pg_destroy(solver);
    return resolved.robust;
}

/* Robust is the default where coarse cells fall apart into parts that have a say of their own, and not elsewhere: not
   where one of the parts is held by air, or follows another one, and not in large boxes where beta is random from cell to
   cell. It has the bit 2 in corridors. */
static void robust_where_coarse_cells_fall_apart(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct { const char *name; int n, dim, robust; } cases[] = {
        {"box", 65, 2, PG_NONE}, {"random 50%", 200, 2, 1}, {"cut cells", 200, 2, 1}, {"liquid", 200, 2, PG_NONE},
        {"rooms", 200, 2, PG_NONE}, {"maze", 65, 2, 2}, {"maze", 360, 2, 2}, {"maze", 33, 3, 3}, {"spiral 1", 33, 3, PG_NONE}, {"layers", 65, 2, PG_NONE},
        {"dielectric", 33, 3, PG_NONE}, {"obstacle", 33, 3, PG_NONE}, {"pockets", 33, 3, PG_NONE},
        {"cut cells", 33, 3, 1}, {"beta 1e6", 33, 3, 1}, {"beta per cell", 33, 3, 1}, {"beta per cell", 40, 3, PG_NONE}};
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        scene s;
        pg_desc desc = {.backend = backend};
        assert_true(scene_create(&s, cases[q].name, cases[q].n, cases[q].dim));
        scene_describe(&s, &desc);
        const int robust = chosen_robust(&desc);
        if (robust != cases[q].robust)
            fail_msg("%s, %d^%d: robust is %d, not %d", cases[q].name, cases[q].n, cases[q].dim, robust, cases[q].robust);
        scene_free(&s);
    }
}

/* Spacings along axes, spacings that vary, conductances: what differs tenfold and more between axes calls for robust, a
   factor of two does not. A checkerboard of blocks calls for it where coarse cells cut blocks. */
static void robust_where_couplings_differ(void **state)
{
    enum { N = 24, CELLS = N * N * N, FACES = N * N * (N + 1) };
    const pg_backend backend = backend_or_skip(state);
    unsigned char *const mask = calloc(CELLS, 1);
    double *const beta = allocate(FACES * sizeof *beta), *const across = allocate(FACES * sizeof *across), x[N + 1];
    pg_desc desc = {.n = {N, N, N}, .backend = backend};
    for (int a = 0; a < 3; a++) desc.centring[a] = PG_CELL;
    for (int c = 0; c < FACES; c++) beta[c] = 1;
    for (int strong = 0; strong < 2; strong++) {
        const int expected = strong ? 1 : PG_NONE;
        pg_desc d = desc;
        d.cells.mask = mask;
        for (int a = 0; a < 3; a++) d.h[a] = a == 2 ? (strong ? 0.1 : 0.5) : 1;
        assert_int_equal(chosen_robust(&d), expected);
        const double g = strong ? 4.5 : 1;
        for (int i = 0; i <= N; i++) x[i] = sinh(g * (2.0 * i / N - 1));
        for (int a = 0; a < 3; a++) d.h[a] = 0, d.coord[a] = x;
        assert_int_equal(chosen_robust(&d), expected);
        d = desc;
        for (int c = 0; c < FACES; c++) across[c] = strong ? 100 : 4;
        for (int a = 0; a < 3; a++) d.cells.beta_face[a] = a == 1 ? across : beta;
        assert_int_equal(chosen_robust(&d), expected);
        d = desc, d.cells.beta_cell = across;
        const int block = strong ? 3 : 4;
        for (int c = 0; c < CELLS; c++) across[c] = (c % N / block + c / N % N / block + c / N / N / block) % 2 ? 1e4 : 1;
        assert_int_equal(chosen_robust(&d), expected);
    }
    free(mask), free(beta), free(across);
}

/* The descriptor alone tells the bytes, whose arrays are not even read; and a new mask, or new coefficients, get the kind
   of coarse levels that a new handle would have, within the memory of the first ones. */
static void new_media_choose_anew(void **state)
{
    enum { N = 50, CELLS = N * N * N };
    const pg_backend backend = backend_or_skip(state);
    double *const f = allocate(CELLS * sizeof *f), *const u = allocate(CELLS * sizeof *u), *const v = allocate(CELLS * sizeof *v);
    static const struct { const char *first, *second; int robust; } cases[] = {
        {"obstacle", "random 50%", 1}, {"random 50%", "maze", 2}, {"maze", "pockets", PG_NONE}, {"layers", "beta 1e6", 1},
        {"beta 1e6", "dielectric", PG_NONE}};
    const pg_stop stop = {.guess = PG_GUESS_ZERO};
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q += (size_t)(backend == PG_CUDA ? full_or_small(1, 2) : 1)) {
        scene s[2];
        pg_desc desc[2] = {{.backend = backend}, {.backend = backend}}, now;
        pg_report report[2];
        size_t bytes[3];
        for (int e = 0; e < 2; e++) {
            const int n = full_or_small(N, q < 3 ? 14 : 11);
            assert_true(scene_create(&s[e], e ? cases[q].second : cases[q].first, n, 3));
            s[e].outer = 'o';
            scene_describe(&s[e], &desc[e]);
            assert_int_equal(pg_workspace_bytes(&desc[e], &bytes[e]), PG_OK);
        }
        pg_desc unread = desc[0];
        if (unread.cells.mask) unread.cells.mask = (const unsigned char *)f;
        if (unread.cells.beta_cell) unread.cells.beta_cell = f;
        for (int c = 0; c < CELLS; c++) f[c] = NAN;
        assert_int_equal(pg_workspace_bytes(&unread, &bytes[2]), PG_OK);
        assert_true(bytes[0] == bytes[1] && bytes[0] == bytes[2]);
        for (int c = 0; c < CELLS; c++) f[c] = c % 7 - 3;
        pg_solver *const solver = create(&desc[0]);
        OK(pg_set_cells(solver, &desc[1].cells), solver);
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report[0]), solver);
        OK(pg_query_desc(solver, &now), solver);
        pg_destroy(solver);
        pg_solver *const anew = create(&desc[1]);
        OK(pg_solve(anew, v, f, &stop), anew);
        OK(pg_get_report(anew, &report[1]), anew);
        pg_destroy(anew);
        if (full_or_small(1, 0) && now.robust != cases[q].robust)
            fail_msg("%s after %s: robust is %d", cases[q].second, cases[q].first, now.robust);
        assert_int_equal(now.robust, chosen_robust(&desc[1]));
        if (memcmp(u, v, scene_cells(&s[1]) * sizeof *u) || report[0].iterations != report[1].iterations)
            fail_msg("%s after %s: %s; a new handle: %s", cases[q].second, cases[q].first, report[0].message,
                     report[1].message);
        for (int e = 0; e < 2; e++) scene_free(&s[e]);
    }
    free(f), free(u), free(v);
}

/* u is exactly 0 outside of the fluid, whatever was there, where products are contracted (on GPUs; with -mfma) as where they
   are not: of all methods, after pg_set_cells too, of cycles alone, with any weight of the sweeps. */
static void u_is_0_outside(void **state)
{
    static const unsigned choices[] = {
        PG_CG, PG_FMG, PG_VCYCLE, PG_WCYCLE, PG_PIPECG, PG_BICGSTAB | PG_PRECOND_CYCLE, PG_PIPEBICGSTAB | PG_PRECOND_AINV, PG_BICGSTAB,
        PG_CG | PG_PRECOND_AINV2, PG_CG | PG_PRECOND_DIRECT, PG_CG | PG_COARSEN_CELLS, PG_JACOBI, PG_RBGS, PG_SOR};
    static const int full[] = {33, 64, 65, 129}, small[] = {15, 20};
    const pg_backend backend = backend_or_skip(state);
    const int large = backend == PG_CUDA && !small_run();
    failures = 0;
    for (int e = 0; e < (large ? 4 : backend == PG_CUDA || small_run() ? 1 : 2); e++) {
        const int n = large ? full[e] : small[e];
        const size_t cells = (size_t)n * (size_t)n * (size_t)n;
        unsigned char *mask[2] = {allocate(cells), allocate(cells)};
        double *beta = allocate(cells * sizeof *beta);
        void *u = allocate(cells * sizeof(double)), *f = allocate(cells * sizeof(double));
        rng random = {3};
        for (size_t c = 0; c < cells; c++) {
            const int i = (int)(c % (size_t)n), j = (int)(c / (size_t)n % (size_t)n), k = (int)(c / (size_t)n / (size_t)n);
            for (int q = 0; q < 2; q++) {
                const double x = i - (0.4 + 0.2 * q) * n, y = j - (0.5 - 0.2 * q) * n, z = k - 0.55 * n;
                const int alone = rng_int(&random, 0, 59) == 0;
                mask[q][c] = x * x + y * y + z * z < 0.05 * n * n ? (i > j ? PG_AIR : PG_SOLID) : alone ? PG_SOLID : PG_FLUID;
            }
        }
        for (int run = 0; run < (int)(sizeof choices / sizeof *choices) * 6; run++) {
            const unsigned choice = choices[run / 6];
            const int sweeps = choice & (PG_JACOBI | PG_RBGS | PG_SOR), mixed = run % 3 == 2, f32 = run % 3 == 1;
            if ((small_run() && backend == PG_CUDA && (run / 6 + run) % 5) || (n > 100 && run >= 36)) continue;
            pg_desc desc = {.n = {n, n, n}, .centring = {PG_CELL, PG_CELL, PG_CELL}, .backend = backend, .robust = run / 3 % 2 ? 0 : PG_NONE};
            set_choice(&desc, choice | (f32 ? PG_F32 : mixed ? PG_MIXED : 0));
            if (choice & PG_COARSEN_CELLS) desc.robust = 0;
            desc.face[0].kind = desc.face[3].kind = PG_NEUMANN, desc.cells.mask = mask[0];
            if (run / 3 % 2 && choice & PG_JACOBI) desc.omega = 0.9;
            for (size_t c = 0; c < cells; c++) beta[c] = 0;
            if (run / 3 % 2 == 0 && choice & PG_CG && !(choice & PG_COARSEN_CELLS)) {
                for (size_t c = 0; c < cells; c++) put_value(beta, c, 1 + (double)(c % 5), f32);
                desc.cells.beta_cell = beta;
            }
            pg_solver *solver = NULL;
            if (pg_create(&desc, &solver) != PG_OK) {    /* a combination that is not taken */
                if (!mixed && choice != (PG_CG | PG_PRECOND_DIRECT)) fail_msg("flags 0x%x: %s", desc.flags, pg_last_error(NULL));
                continue;
            }
            const pg_stop stop = {.rtol = f32 ? 1e-4 : 1e-8, .max_iter = sweeps ? 5 : 12, .guess = PG_GUESS_U};
            for (size_t c = 0; c < cells; c++) put_value(f, c, sin((double)c) + 0.3, f32);
            for (int step = 0; step < 4; step++) {
                const int piece = step % 2, wanted = piece && choice & (PG_VCYCLE | PG_WCYCLE);
                if (step == 2) OK(pg_set_cells(solver, &(pg_cells){.mask = mask[1]}), solver);
                if (piece && !wanted) continue;
                for (size_t c = 0; c < cells; c++) put_value(u, c, mask[step / 2][c] ? 7 : 0.1, f32);
                OK(piece ? pg_cycle(solver, u, f, 1) : pg_solve(solver, u, f, &stop), solver);
                size_t wrong = 0;
                double most = 0;
                for (size_t c = 0; c < cells; c++) {
                    const double v = value_at(u, c, f32);
                    if (!mask[step / 2][c]) continue;
                    wrong += !(v == 0), most = fmax(most, fabs(v));
                }
                EXPECT(!wrong, "%d^3, flags 0x%x, robust %d, step %d: u is up to %g in %zu cells outside", n, desc.flags, desc.robust,
                       step, most, wrong);
            }
            pg_destroy(solver);
        }
        free(mask[0]), free(mask[1]), free(beta), free(u), free(f);
    }
    assert_int_equal(failures, 0);
}

/* A fluid cell between walls is a component like any other: it counts, f there is told, whatever its size, and leaves no
   trace elsewhere; with alpha it has a row. */
static void a_cell_alone_is_a_component(void **state)
{
    static const unsigned choices[] = {0, PG_CG | PG_PRECOND_AINV, PG_VCYCLE, PG_RBGS, PG_MIXED, PG_PIPECG};
    enum { NX = 9, NY = 7, CELLS = NX * NY, ALONE = 4 + NX * 3 };
    const pg_backend backend = backend_or_skip(state);
    for (size_t q = 0; q < 2 * sizeof choices / sizeof *choices; q++) {
        const int with_shift = q % 2;
        unsigned char mask[CELLS] = {0}, open[CELLS] = {0};
        double f[CELLS], u[3][CELLS], shift[CELLS];
        const int beside[] = {ALONE - 1, ALONE + 1, ALONE - NX, ALONE + NX};
        pg_cell_value flux = {{4, 3, 0}, PG_Y_HIGH, 0, 0};
        for (int w = 0; w < 4; w++) mask[beside[w]] = open[beside[w]] = PG_SOLID;
        open[ALONE - 1] = PG_FLUID;
        for (int c = 0; c < CELLS; c++) f[c] = c % 5, shift[c] = c % 3;
        pg_desc desc = {.n = {NX, NY}, .h = {1, 0.5}, .centring = {PG_CELL, PG_CELL}, .backend = backend};
        set_choice(&desc, choices[q / 2]);
        desc.cells.mask = mask, desc.cells.solid_flux = &flux, desc.cells.solid_fluxes = 1;
        if (with_shift) shift[ALONE] = 0, desc.cells.alpha_cell = shift;
        pg_solver *solver = create(&desc);
        pg_report report;
        const pg_stop stop = {.rtol = 1e-10, .guess = PG_GUESS_ZERO};
        for (int size = 0; size < 3; size++) {
            f[ALONE] = size == 0 ? 0 : size == 1 ? -1000 : 1e20;
            flux.value = size;
            OK(pg_set_cells(solver, &(pg_cells){.solid_flux = &flux, .solid_fluxes = 1}), solver);
            OK(pg_solve(solver, u[size], f, &stop), solver);
            OK(pg_get_report(solver, &report), solver);
            const double mean = f[ALONE] + size / 0.5;
            if (report.outcome != PG_CONVERGED || report.singular_components != 1 ||
                fabs(report.removed_mean - mean) > 1e-12 * fabs(mean) || !report.warning[0] != (mean == 0))
                fail_msg("flags 0x%x: %d components, %g; %s; %s", desc.flags, report.singular_components, report.removed_mean,
                         report.message, report.warning);
            assert_true(u[size][ALONE] == 0);
            assert_memory_equal(u[size], u[0], sizeof u[0]);
        }
        f[ALONE] = NAN, u[0][0] = 5;
        OK(pg_solve(solver, u[0], f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_true(report.outcome == PG_NOT_A_NUMBER && u[0][0] == 5);
        f[ALONE] = 1;
        OK(pg_set_cells(solver, &(pg_cells){.mask = open, .solid_fluxes = PG_NONE}), solver);
        OK(pg_solve(solver, u[0], f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_true(report.outcome == PG_CONVERGED && report.singular_components == 0 && u[0][ALONE] != 0);
        pg_destroy(solver);
        desc.alpha = 0.25, desc.cells.solid_fluxes = 0;
        solver = create(&desc);
        OK(pg_solve(solver, u[0], f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_true(report.outcome == PG_CONVERGED && report.singular_components == 0 && report.removed_mean == 0);
        assert_true(fabs(u[0][ALONE] - 4) < 1e-6);
        pg_destroy(solver);
    }
}

/* A mask without fluid is one like any other: u is 0 at once. */
static void a_mask_without_fluid_is_solved(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 12 };
    const int n = full_or_small(N, 7), cells = n * n * n;
    double u[N * N * N], f[N * N * N];
    unsigned char mask[N * N * N];
    static const unsigned flags[] = {0, PG_CG | PG_PRECOND_DIAGONAL, PG_BICGSTAB, PG_VCYCLE, PG_RBGS, PG_PIPECG,
                                     PG_FMG | PG_COARSEN_CELLS, PG_MIXED};
    for (size_t q = 0; q < 2 * sizeof flags / sizeof *flags; q++) {
        pg_desc desc = {.n = {n, n, n}, .backend = backend, .cells.mask = mask};
        set_choice(&desc, flags[q / 2]);
        pg_report report;
        for (int a = 0; a < 3; a++) desc.centring[a] = PG_CELL;
        memset(mask, q % 2 ? PG_FLUID : PG_AIR, sizeof mask);
        pg_solver *const solver = create(&desc);
        memset(mask, PG_SOLID, sizeof mask);
        if (q % 2) OK(pg_set_cells(solver, &(pg_cells){.mask = mask}), solver);
        for (int c = 0; c < cells; c++) u[c] = 1, f[c] = NAN;
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        if (report.outcome != PG_CONVERGED || report.iterations || !strstr(report.message, "no fluid"))
            fail_msg("flags 0x%x: %s", desc.flags, report.message);
        for (int c = 0; c < cells; c++) assert_true(u[c] == 0);
        int labels[N * N * N], count = 1;
        memset(labels, 0, sizeof labels);
        OK(pg_get_parts(solver, NULL, labels, &count, NULL, NULL), solver);
        assert_int_equal(count, 0);
        for (int c = 0; c < cells; c++) assert_int_equal(labels[c], -1);
        memset(mask, PG_FLUID, sizeof mask);    /* and the fluid comes back */
        for (int c = 0; c < cells; c++) u[c] = 0, f[c] = c % 5;
        OK(pg_set_cells(solver, &(pg_cells){.mask = mask}), solver);
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        if (report.outcome != PG_CONVERGED || strstr(report.message, "no fluid"))
            fail_msg("flags 0x%x: %s", desc.flags, report.message);
        pg_destroy(solver);
    }
}

/* What the mask is stays known where coefficients alone change: that it has fluid, and that it has none. */
static void new_coefficients_leave_the_mask(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 6 };
    for (int q = 0; q < 4; q++) {
        const int fluid = q % 2, later = q / 2;
        unsigned char mask[N * N], first[N * N];
        double beta[N * N], u[N * N] = {0}, f[N * N];
        for (int c = 0; c < N * N; c++) mask[c] = fluid ? PG_FLUID : PG_SOLID, first[c] = c % 3 ? mask[c] : PG_FLUID, beta[c] = f[c] = 1;
        pg_desc desc = {.n = {N, N}, .centring = {PG_CELL, PG_CELL}, .backend = backend};
        desc.cells.mask = later ? first : mask, desc.cells.beta_cell = beta;
        pg_solver *const solver = create(&desc);
        if (later) OK(pg_set_cells(solver, &(pg_cells){.mask = mask}), solver);
        for (int step = 0; step < 3; step++) {
            pg_report report;
            if (step) OK(pg_set_cells(solver, &(pg_cells){.beta_cell = beta}), solver);
            OK(pg_solve(solver, u, f, NULL), solver);
            OK(pg_get_report(solver, &report), solver);
            if ((strstr(report.message, "no fluid") == NULL) != fluid) fail_msg("case %d, step %d: %s", q, step, report.message);
        }
        pg_destroy(solver);
    }
}

/* ---- Iterations ---- */

static const struct { const char *name; int most, in_2d; } iteration_bounds[] = {
    {"box", 10, 0}, {"obstacle", 10, 1}, {"pockets", 10, 0}, {"liquid", 10, 0}, {"checkerboard air", 10, 0},
    {"dielectric", 10, 0}, {"rooms", 12, 0}, {"baffles", 12, 1}, {"beta 1e-6", 12, 0}, {"porous", 13, 1},
    {"cut cells", 13, 0}, {"layers", 16, 1}, {"inclusions", 16, 0}, {"spiral 1", 14, 1}, {"spiral 2", 16, 0},
    {"random 50%", 24, 0}, {"maze", 20, 0}, {"beta 1e6", 150, 0}, {"beta per cell", 150, 0}};
enum { BOUNDS = sizeof iteration_bounds / sizeof *iteration_bounds };

/* Normal numbers. */
static double *random_rhs(scene *s)
{
    double *f = allocate(scene_cells(s) * sizeof *f);
    for (size_t c = 0; c < scene_cells(s); c++) f[c] = scene_normal(s);
    return f;
}

static void count_iterations_with(int robust, const char *name, int n, int dim, int most, unsigned flags,
                                  pg_backend backend)
{
    scene s;
    assert_true(scene_create(&s, name, n, dim));
    double *f = random_rhs(&s), *u = allocate(scene_cells(&s) * sizeof *u);
    pg_desc desc = {.backend = backend, .robust = robust};
    set_choice(&desc, flags);
    scene_describe(&s, &desc);
    pg_solver *solver = create(&desc);
    const pg_stop stop = {.rtol = 1e-8, .max_iter = 300, .guess = PG_GUESS_ZERO};
    pg_report report;
    OK(pg_solve(solver, u, f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    EXPECT(report.outcome == PG_CONVERGED && report.iterations <= most, "%s, %d^%d cells, flags 0x%x: more than %d: %s",
           name, n, dim, flags, most, report.message);
    pg_destroy(solver);
    scene_free(&s);
    free(f), free(u);
}

static void count_iterations(const char *name, int n, int dim, int most, unsigned flags, pg_backend backend)
{
    count_iterations_with(0, name, n, dim, most, flags, backend);
}

static void iterations(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    for (int q = 0; q < BOUNDS; q++)
        for (int mixed = 0; mixed < full_or_small(2, 1); mixed++) {
            if (small_run() && backend == PG_CUDA && q % 3 != 1) continue;    /* the same levels as on the CPU */
            const int most = iteration_bounds[q].most * full_or_small(1, 2) + 2 * mixed;
            const unsigned flags = mixed ? PG_MIXED : 0;
            count_iterations(iteration_bounds[q].name, full_or_small(33, 11), 3, most, flags, backend);
            if (!iteration_bounds[q].in_2d) continue;
            count_iterations(iteration_bounds[q].name, full_or_small(65, 25), 2, most + 4, flags, backend);
        }
    assert_int_equal(failures, 0);
}

/* Plane problems at random that are hard to coarsen: of the faces some are closed, some open in part; whole rows apart in
   every third problem; beta of two sizes, 1e3 or 1e6 apart. */
typedef struct { double beta[2][41 * 42], openness[2][41 * 42], f[41 * 41], u[2 * 41 * 41]; pg_desc desc; } hard;
static void hard_create(hard *h, uint64_t seed, pg_backend backend)
{
    scene s = {.random = seed};
    const int most = full_or_small(14, 8), n[3] = {most + 2 + scene_below(&s, most), most + 2 + scene_below(&s, most), 1},
              apart = seed % 3 == 0;
    const double size = seed % 2 ? sqrt(1e3) : 1e3;
    h->desc = (pg_desc){.n = {n[0], n[1], 1}, .dim = 2, .centring = {PG_CELL, PG_CELL, PG_CELL}, .backend = backend,
                        .alpha = seed % 4 < 2 ? 1e-4 : 0};
    for (int a = 0; a < 2; a++) {
        h->desc.cells.beta_face[a] = h->beta[a], h->desc.cells.openness[a] = h->openness[a];
        for (int q = 0; q < 41 * 42; q++) {
            const double drawn = scene_uniform(&s), part = scene_uniform(&s);
            h->beta[a][q] = scene_below(&s, 2) ? size : 1 / size;
            h->openness[a][q] = (apart && a == 1) || drawn < 0.3 ? 0 : drawn < 0.6 ? 1 : part;
        }
    }
    for (int q = 0; q < 41 * 41; q++) h->f[q] = scene_normal(&s);
    for (int q = 0; q < 4; q++) h->desc.face[q].kind = q == 0 ? PG_DIRICHLET : PG_NEUMANN;
}
static pg_report hard_solve(hard *h, int max_iter)
{
    pg_report report;
    pg_solver *solver = create(&h->desc);
    const pg_stop stop = {.guess = PG_GUESS_ZERO, .max_iter = max_iter};
    OK(pg_solve(solver, h->u, h->f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    pg_destroy(solver);
    return report;
}
static void iterations_of_weak_links(void **state)
{
    static hard h;
    const pg_backend backend = backend_or_skip(state);
    const int count = full_or_small(120, 12);
    int slow = 0;
    failures = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)count; seed++) {
        hard_create(&h, seed, backend);
        if (seed % 5 == 0) set_choice(&h.desc, PG_MIXED);
        const pg_report report = hard_solve(&h, 150);
        slow += report.iterations > 30;
        EXPECT(report.outcome == PG_CONVERGED && only_compatible(&report), "problem %d: %s %s", (int)seed, report.message,
               report.warning);
    }
    EXPECT(10 * slow <= count, "%d of %d problems take more than 30 iterations", slow, count);
    assert_int_equal(failures, 0);
}

/* Closed components that a small alpha alone holds: the mean of f over alpha is large, and f32 levels have no digits
   left beside it. */
static void iterations_where_alpha_alone_holds(void **state)
{
    static hard h;
    static const unsigned flags[] = {0, PG_CG, PG_CG | PG_MIXED};
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)full_or_small(30, 6); seed++) {
        hard_create(&h, seed, backend);
        h.desc.alpha = seed % 2 ? 1e-7 : 1e-5, set_choice(&h.desc, flags[seed % 3]);
        h.desc.face[0].kind = PG_NEUMANN;
        const pg_report report = hard_solve(&h, 0);
        EXPECT(report.outcome == PG_CONVERGED && report.iterations <= 60, "problem %d: %s %s", (int)seed,
               report.message, report.warning);
    }
    assert_int_equal(failures, 0);
}

/* Without robust levels most of these are too much for the cycle. The rounding of the thousands of steps that follow, up
   to 8000 or, in another order, 12000, adds up to some sixty floors: one of them may end there. */
static void a_cycle_that_does_not_do_is_left(void **state)
{
    static hard h;
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {0, PG_PIPECG, PG_MIXED, PG_CG | PG_MIXED};
    int left = 0, rounded = 0;
    failures = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)full_or_small(16, 4); seed++) {
        if (small_run() && backend == PG_CUDA && seed < 4) continue;
        hard_create(&h, seed, backend);
        h.desc.robust = PG_NONE, set_choice(&h.desc, flags[seed % 4]);
        const pg_report report = hard_solve(&h, 20000);
        const char *const at = strstr(report.warning, "PG_PRECOND_AINV2");
        const int is_rounded = report.outcome == PG_STAGNATED && report.residual <= 50 * report.floor;
        rounded += is_rounded;
        EXPECT(report.outcome == PG_CONVERGED || (is_rounded && rounded == 1), "problem %d: %s", (int)seed, report.message);
        left += at != NULL;
        if (!at) continue;
        EXPECT(report.iterations > 30, "problem %d: %s", (int)seed, report.message);
    }
    EXPECT(left >= full_or_small(4, 1), "%d problems alone left the cycle", left);
    assert_int_equal(failures, 0);
}

/* The recurrences of pipelined CG stray where conjugate gradients need hundreds of directions: it goes on as PG_CG then. */
static void a_pipeline_that_does_not_do_is_left(void **state)
{
    static hard h;
    const pg_backend backend = backend_or_skip(state);
    int left = 0, rounded = 0;
    failures = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)full_or_small(18, backend == PG_CUDA ? 2 : 8); seed++) {
        if (small_run() && backend == PG_CUDA && seed < 2) continue;
        hard_create(&h, seed, backend);
        set_choice(&h.desc, PG_PIPECG | (seed % 4 == 0   ? PG_PRECOND_DIAGONAL
                                    : seed % 2 ? PG_PRECOND_AINV
                                               : PG_PRECOND_AINV2));
        const pg_report report = hard_solve(&h, 0);
        const int is_rounded = report.outcome == PG_STAGNATED && report.residual <= 50 * report.floor;
        rounded += is_rounded;
        EXPECT(report.outcome == PG_CONVERGED || (is_rounded && rounded == 1), "problem %d: %s", (int)seed, report.message);
        left += strstr(report.warning, "it was PG_CG") != NULL;
    }
    EXPECT(left >= full_or_small(4, 1), "%d problems alone left the pipeline", left);
    assert_int_equal(failures, 0);
}

/* Flat cells with conductivities whose logarithm is normal, of standard deviation 3. */
static void iterations_in_flat_cells(void **state)
{
    enum { N = 24 };
    static double f[N * N * N], u[N * N * N], beta[N * N * N];
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(N, 11);
    failures = 0;
    for (int q = 0; q < 2; q++) {
        scene s = {.random = 7};
        pg_desc desc = {.n = {n, n, n}, .h = {1, 1, q ? 1e-3 : 1e-2}, .backend = backend, .cells.beta_cell = beta,
                        .centring = {PG_CELL, PG_CELL, PG_CELL}};
        for (int c = 0; c < n * n * n; c++) beta[c] = exp(3 * scene_normal(&s)), f[c] = scene_normal(&s);
        for (int face = 2; face < 6; face++) desc.face[face].kind = PG_NEUMANN;
        pg_report report;
        pg_solver *solver = create(&desc);
        const pg_stop stop = {.rtol = 1e-8, .max_iter = 60, .guess = PG_GUESS_ZERO};
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        EXPECT(report.outcome == PG_CONVERGED && !report.warning[0], "%s %s", report.message, report.warning);
        pg_destroy(solver);
    }
    assert_int_equal(failures, 0);
}

/* Where several levels are visited three times: at 69^3 a maze takes 58 iterations otherwise, the spiral 97. */
static void iterations_in_labyrinths(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(69, 13);
    failures = 0;
    count_iterations("maze", n, 3, 36, 0, backend);
    count_iterations_with(2, "maze", n, 3, 36, PG_MIXED, backend);
    count_iterations_with(3, "maze", n, 3, 28, 0, backend);
    count_iterations("spiral 1", full_or_small(600, 41), 2, 34, 0, backend);
    assert_int_equal(failures, 0);
}

/* Corridors of up to three cells are a labyrinth too: without its visits 27, 24, 29 and 19 iterations. */
static void iterations_in_wide_corridors(void **state)
{
    static const struct { int nodes, dim, corridor, wall, most; } cases[] = {{33, 3, 2, 2, 15}, {65, 2, 3, 2, 19}, {17, 3, 3, 3, 28},
                                                                            {129, 2, 3, 1, 15}, {65, 2, 4, 4, 13}};
    const pg_backend backend = backend_or_skip(state);
    for (size_t q = small_run() ? 1 : 0; q < (small_run() ? 2 : sizeof cases / sizeof *cases); q++) {
        const int nodes = small_run() ? 9 : cases[q].nodes, dim = cases[q].dim, wide = cases[q].corridor, period = wide + cases[q].wall;
        const int n = (nodes + 1) / 2 * wide + nodes / 2 * cases[q].wall;
        scene s, random = {.random = 5};
        assert_true(scene_create(&s, "maze", nodes, dim));
        const size_t cells = (size_t)n * (size_t)n * (size_t)(dim == 3 ? n : 1);
        unsigned char *mask = allocate(cells);
        double *u = allocate(cells * sizeof *u), *f = allocate(cells * sizeof *f);
        for (size_t c = 0; c < cells; c++) {
            int at[3] = {(int)(c % (size_t)n), (int)(c / (size_t)n % (size_t)n), (int)(c / (size_t)n / (size_t)n)};
            for (int a = 0; a < dim; a++) at[a] = at[a] / period * 2 + (at[a] % period >= wide);
            mask[c] = s.mask[scene_at(&s, at)], f[c] = scene_normal(&random);
        }
        pg_desc desc = {.n = {n, n, dim == 3 ? n : 1}, .centring = {PG_CELL, PG_CELL, PG_CELL}, .backend = backend};
        for (int face = 1; face < 6; face++) desc.face[face].kind = PG_NEUMANN;
        desc.cells.mask = mask;
        pg_report report;
        pg_solver *solver = create(&desc);
        const pg_stop stop = {.rtol = 1e-8, .guess = PG_GUESS_ZERO};
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        if (report.outcome != PG_CONVERGED || report.iterations > cases[q].most ||
            (!small_run() && !strstr(report.method, "labyrinth") != (wide > 3)))
            fail_msg("corridors of %d cells: %s: %s", wide, report.method, report.message);
        pg_destroy(solver);
        scene_free(&s);
        free(mask), free(u), free(f);
    }
}

/* What PG_ROBUST_AUTO chose, whatever the method around the cycle; nothing where there is none. */
static void the_report_tells_what_was_chosen(void **state)
{
    static const struct { unsigned flags; const char *method; } cases[] = {
        {0, "PG_CG around"}, {PG_CG, "PG_CG"}, {PG_PIPECG, "PG_PIPECG"}, {PG_BICGSTAB | PG_PRECOND_CYCLE, "PG_BICGSTAB"},
        {PG_VCYCLE, "PG_VCYCLE"}, {PG_WCYCLE | PG_MIXED, "PG_WCYCLE"}, {PG_CG | PG_PRECOND_AINV, "PG_CG"}, {PG_JACOBI, "PG_JACOBI"}};
    static const struct { const char *name; int n, dim, robust, labyrinth; } scenes[] = {
        {"maze", 20, 3, 1, 1}, {"maze", 70, 2, 0, 1}, {"cut cells", 70, 2, 1, 0}, {"obstacle", 70, 2, 0, 0}};
    const pg_backend backend = backend_or_skip(state);
    for (size_t e = 0; e < sizeof scenes / sizeof *scenes; e++)
        for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
            scene s;
            pg_desc desc = {.backend = backend};
            pg_report report;
            set_choice(&desc, cases[q].flags);
            assert_true(scene_create(&s, scenes[e].name, scenes[e].n, scenes[e].dim));
            scene_describe(&s, &desc);
            pg_solver *solver = create(&desc);
            OK(pg_get_report(solver, &report), solver);
            const int cycle = q < 6;
            if (strncmp(report.method, cases[q].method, strlen(cases[q].method)) ||
                !strstr(report.method, ", robust") != !(cycle && scenes[e].robust) ||
                !strstr(report.method, ", labyrinth") != !(cycle && scenes[e].labyrinth))
                fail_msg("%s, flags 0x%x: %s", scenes[e].name, desc.flags, report.method);
            pg_destroy(solver);
            scene_free(&s);
        }
}

/* Fields whose strong couplings lie along lines and planes, ends of odd axes among them: boxes without a value on any
   face, where the coarsest level is singular too. */
enum { FIBRES, FILMS, STRIPES, SPECKS, DIRECTIONS, FIELDS };

static double field_value(int field, const int at[3], int axis, int n, rng *random)
{
    const int i = at[0], j = at[1], k = at[2];
    switch (field) {
    case FIBRES: return (i % 6 == 2 && j % 6 == 2) || (i % 6 == 5 && k % 6 == 5) ? 1e6 : 1;
    case FILMS: return k % 7 == 3 ? 1e-6 : 1;
    case STRIPES: return i % 2 ? 1e4 : 1;
    case SPECKS: return rng_uniform(random, 0, 1) < 0.1 ? 1e6 : 1;
    default: return (i * 3 / n + j * 3 / n + k * 3 / n) % 3 == axis ? 1e3 : 1;
    }
}

static void iterations_with_fields_of_lines_and_planes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(33, 11), cells = n * n * n;
    failures = 0;
    for (int field = 0; field < FIELDS; field++) {
        double *array[3], *u = allocate((size_t)cells * sizeof *u), *f = allocate((size_t)cells * sizeof *f);
        rng random = {7};
        pg_desc desc = {.n = {n, n, n}, .backend = backend};
        for (int a = 0; a < 3; a++) {
            int size[3] = {n, n, n}, at[3];
            size[a] += field == DIRECTIONS;
            array[a] = allocate((size_t)(n + 1) * (size_t)(n * n) * sizeof(double));
            for (int q = 0; q < size[0] * size[1] * size[2]; q++) {
                at[0] = q % size[0], at[1] = q / size[0] % size[1], at[2] = q / size[0] / size[1];
                array[a][q] = field_value(field, at, a, n, &random);
            }
            desc.centring[a] = PG_CELL, set_ends(&desc, a, "NN");
            if (field == DIRECTIONS) desc.cells.beta_face[a] = array[a];
        }
        if (field != DIRECTIONS) desc.cells.beta_cell = array[0];
        for (int q = 0; q < cells; q++) f[q] = rng_uniform(&random, -1, 1);
        pg_solver *solver = create(&desc);
        const pg_stop stop = {.rtol = 1e-8, .guess = PG_GUESS_ZERO, .max_iter = 100};
        pg_report report;
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        EXPECT(report.outcome == PG_CONVERGED && report.iterations <= 25 && only_compatible(&report) && report.singular_components == 1,
               "field %d: %s; %s", field, report.message, report.warning);
        pg_destroy(solver);
        for (int a = 0; a < 3; a++) free(array[a]);
        free(u), free(f);
    }
    assert_int_equal(failures, 0);
}

/* PG_COARSEN_CELLS: the iterations of PG_CG and of cycles alone, where they converge, and one more. */
static void iterations_with_coarse_masks(void **state)
{
    static const struct { const char *name; int n, dim, cg, alone; } bounds[] = {
        {"box", 64, 2, 8, 12}, {"liquid", 64, 2, 8, 12}, {"checkerboard air", 64, 2, 8, 12}, {"obstacle", 64, 2, 13, 0},
        {"rooms", 64, 2, 12, 29}, {"box", 21, 3, 9, 13}, {"checkerboard air", 21, 3, 10, 20}, {"liquid", 37, 2, 8, 13}};
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    for (int q = 0; q < full_or_small(sizeof bounds / sizeof *bounds, backend == PG_CUDA ? 1 : 3); q++) {
        const unsigned flags[] = {PG_CG, PG_FMG, PG_VCYCLE, PG_WCYCLE, PG_MIXED | PG_FMG};
        for (int m = 0; m < full_or_small(5, 2); m++) {
            const int most = m == 0 ? bounds[q].cg : bounds[q].alone + (m == 4);
            if (most > 1)
                count_iterations(bounds[q].name, bounds[q].n, bounds[q].dim, most, flags[m] | PG_COARSEN_CELLS, backend);
        }
    }
    assert_int_equal(failures, 0);
}

/* ---- The same bits ---- */

/* u of a handle of its own, from 0, after so many iterations; 0: where it has converged. */
static void solve_anew(const pg_desc *desc, double *u, const double *f, int iterations)
{
    const pg_stop stop = {.guess = PG_GUESS_ZERO, .max_iter = iterations};
    pg_solver *solver = create(desc);
    pg_report report;
    OK(pg_solve(solver, u, f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    if (!iterations && report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(desc), report.message);
    pg_destroy(solver);
}

/* With more than 32768 unknowns a thread. */
static void check_threads(const char *name)
{
#ifdef _OPENMP
    const int before = omp_get_max_threads(), n = full_or_small(44, 36);
    scene s;
    assert_true(scene_create(&s, name, n, 3));
    const size_t bytes = scene_cells(&s) * sizeof(double);
    double *f = random_rhs(&s), *u[2] = {allocate(bytes), allocate(bytes)};
    pg_desc desc = {.backend = PG_CPU};
    scene_describe(&s, &desc);
    for (int threads = 1; threads <= 2; threads++) {
        omp_set_num_threads(threads);
        solve_anew(&desc, u[threads - 1], f, 0);
    }
    omp_set_num_threads(before);
    if (memcmp(u[0], u[1], bytes)) fail_msg("%s: other bits with two threads", name);
    scene_free(&s);
    free(f), free(u[0]), free(u[1]);
#else
    (void)name;
#endif
}

static void same_bits(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const names[] = {"obstacle", "pockets"};
    for (int q = 0; q < 2; q++) {
        scene s;
        assert_true(scene_create(&s, names[q], full_or_small(24, 11), 3));
        const size_t bytes = scene_cells(&s) * sizeof(double);
        double *f = random_rhs(&s), *u[2] = {allocate(bytes), allocate(bytes)};
        pg_desc desc = {.backend = backend};
        scene_describe(&s, &desc);
        for (int run = 0; run < 2; run++) solve_anew(&desc, u[run], f, 0);
        if (memcmp(u[0], u[1], bytes)) fail_msg("%s: two handles have other bits", names[q]);
        scene_free(&s);
        free(f), free(u[0]), free(u[1]);
        if (backend == PG_CPU) check_threads(names[q]);
    }
}

/* ---- Changes between solves ---- */

enum { NX = 11, NY = 9, NZ = 10, CELLS = NX * NY * NZ, FACES = (NX + 1) * (NY + 1) * (NZ + 1) };

static const unsigned change_flags[] = {0, PG_MIXED, PG_CG | PG_PRECOND_DIAGONAL, PG_CG | PG_PRECOND_AINV,
                                        PG_CG | PG_PRECOND_DIRECT, PG_BICGSTAB, PG_PIPECG,
                                        PG_MIXED | PG_CG | PG_COARSEN_CELLS, PG_COARSEN_CELLS};
/* The last two are for masks without coefficients. */
enum { CHANGES = sizeof change_flags / sizeof *change_flags, CHANGES_OF_COEFFICIENTS = CHANGES - 2 };

/* Arrays of a small box with everything, two of each. */
typedef struct box {
    unsigned char mask[3][CELLS];
    double f[CELLS], beta[2][CELLS], alpha[2][CELLS], openness[2][3][FACES];
    pg_cell_value air[2][6 * CELLS], solid[2][6 * CELLS];
} box;

static box *box_create(uint64_t seed)
{
    box *b = memset(allocate(sizeof *b), 0, sizeof *b);
    rng r = {seed};
    for (int c = 0; c < CELLS; c++) {
        for (int q = 0; q < 3; q++) {
            const double x = rng_uniform(&r, 0, 1);
            b->mask[q][c] = x < 0.25 ? PG_SOLID : x < 0.3 ? PG_AIR : PG_FLUID;
        }
        b->f[c] = rng_uniform(&r, -1, 1);
        for (int q = 0; q < 2; q++) {
            b->beta[q][c] = pow(10, rng_uniform(&r, -1, 1));
            b->alpha[q][c] = rng_int(&r, 0, 1) ? rng_uniform(&r, 0, 1) : 0;
        }
    }
    for (int q = 0; q < 6 * FACES; q++) b->openness[q / FACES / 3][q / FACES % 3][q % FACES] = rng_uniform(&r, 0, 1);
    return b;
}

/* Neumann, but Dirichlet at the high end of z. */
static pg_desc box_desc(const box *b, int mask, pg_backend backend, unsigned flags)
{
    pg_desc desc = {.n = {NX, NY, NZ}, .dim = 3, .backend = backend, .coarsest = 8};
    set_choice(&desc, flags);
    for (int a = 0; a < 3; a++) {
        desc.centring[a] = PG_CELL;
        set_ends(&desc, a, a < 2 ? "NN" : "ND");
    }
    desc.cells.mask = b->mask[mask];
    return desc;
}

static void box_coefficients(pg_desc *desc, const box *b, int which)
{
    desc->cells.beta_cell = b->beta[which], desc->cells.alpha_cell = b->alpha[which];
    for (int a = 0; a < 3; a++) desc->cells.openness[a] = b->openness[which][a];
}

/* A list of values of every second side where fluid meets the kind. */
static int box_values(const pg_desc *desc, int kind, double scale, pg_cell_value *list)
{
    int count = 0, at[3], to[3];
    for (size_t c = 0; c < CELLS; c++) {
        place(desc, c, at);
        for (int face = 0; face < 6 && kind_of(desc, at) == PG_FLUID; face++)
            if ((c + (size_t)face) % 2 && beside(desc, at, face / 2, face % 2, to) && kind_of(desc, to) == kind)
                list[count++] = (pg_cell_value){{at[0], at[1], at[2]}, face, scale * cos((double)c), 0};
    }
    return count;
}

/* Bits that differ do so after the first iterations, which see every level. */
static int few_iterations(void) { return full_or_small(0, 3); }

/* Of a small run on a GPU every second one: those of the mask begin with the first, the others with the next. */
static int every_change(pg_backend backend) { return backend == PG_CUDA ? full_or_small(1, 2) : 1; }

/* The handle, as it is now, and a new one have the same bits, after so many iterations; 0: where they have converged. */
static void expect_bits_of_a_new_handle(pg_solver *solver, const pg_desc *desc, const double *f, const char *what,
                                        int iterations)
{
    double u[CELLS], expected[CELLS];
    const pg_stop stop = {.guess = PG_GUESS_ZERO, .max_iter = iterations};
    OK(pg_solve(solver, u, f, &stop), solver);
    solve_anew(desc, expected, f, iterations);
    EXPECT(!memcmp(u, expected, sizeof u), "%s: other bits after %s", describe(desc), what);
}

/* Entries whose sides have become something else count for nothing. */
static int still_valid(const pg_desc *desc, int kind, const pg_cell_value *list, int count, pg_cell_value *valid)
{
    int left = 0, to[3];
    for (int q = 0; q < count; q++)
        if (kind_of(desc, list[q].cell) == PG_FLUID &&
            beside(desc, list[q].cell, list[q].face / 2, list[q].face % 2, to) && kind_of(desc, to) == kind)
            valid[left++] = list[q];
    return left;
}

static void set_mask(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    box *b = box_create(5);
    failures = 0;
    for (int q = 0; q < CHANGES; q += every_change(backend)) {
        pg_desc desc = box_desc(b, 0, backend, change_flags[q]);
        desc.cells.air_value = b->air[0], desc.cells.air_values = box_values(&desc, PG_AIR, 1, b->air[0]);
        desc.cells.solid_flux = b->solid[0], desc.cells.solid_fluxes = box_values(&desc, PG_SOLID, 1, b->solid[0]);
        const int airs = desc.cells.air_values, solids = desc.cells.solid_fluxes;
        pg_solver *solver = create(&desc);
        expect_bits_of_a_new_handle(solver, &desc, b->f, "nothing", few_iterations());
        for (int next = 1; next < full_or_small(4, 2); next++) {
            OK(pg_set_cells(solver, &(pg_cells){.mask = b->mask[next % 3]}), solver);
            desc.cells.mask = b->mask[next % 3];
            desc.cells.air_value = b->air[1], desc.cells.solid_flux = b->solid[1];
            desc.cells.air_values = still_valid(&desc, PG_AIR, b->air[0], airs, b->air[1]);
            desc.cells.solid_fluxes = still_valid(&desc, PG_SOLID, b->solid[0], solids, b->solid[1]);
            expect_bits_of_a_new_handle(solver, &desc, b->f, "a new mask", few_iterations());
            OK(pg_set_alpha(solver, desc.alpha = next % 2 ? 2.5 : 0), solver);
            expect_bits_of_a_new_handle(solver, &desc, b->f, "pg_set_alpha", few_iterations());
        }
        pg_destroy(solver);
    }
    free(b);
    assert_int_equal(failures, 0);
}

/* A handle that was made for an open box takes a maze, whose coarse levels have several times as many nodes, and solves
   it as well as one that was made for it: small levels are chosen by the first mask. And back. */
static void masks_with_more_nodes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(49, 13);
    scene maze = {0}, open = {0};
    assert_true(scene_create(&maze, "maze", n, 3) && scene_create(&open, "box", n, 3));
    const size_t cells = scene_cells(&maze);
    double *f = calloc(cells, sizeof *f), *u[2] = {calloc(cells, sizeof *f), calloc(cells, sizeof *f)};
    const unsigned char *const mask[2] = {maze.mask, open.mask};
    assert_true(f && u[0] && u[1]);
    for (size_t i = 0; i < cells; i++) f[i] = maze.mask[i] == PG_FLUID ? scene_uniform(&maze) - 0.5 : 0;
    pg_desc desc = {.backend = backend, .robust = PG_NONE};
    const pg_stop stop = {.rtol = 1e-10, .max_iter = 400, .guess = PG_GUESS_ZERO};
    scene_describe(&open, &desc);
    pg_solver *changed = create(&desc);
    for (int q = 0; q < 2; q++) {
        pg_report report;
        desc.cells.mask = mask[q];
        pg_solver *fresh = create(&desc);
        OK(pg_set_cells(changed, &(pg_cells){.mask = mask[q]}), changed);
        OK(pg_solve(fresh, u[0], f, &stop), fresh);
        OK(pg_solve(changed, u[1], f, &stop), changed);
        OK(pg_get_report(changed, &report), changed);
        assert_int_equal(report.outcome, PG_CONVERGED);
        double error = 0, largest = 0;
        for (size_t i = 0; i < cells; i++)
            error = fmax(error, fabs(u[0][i] - u[1][i])), largest = fmax(largest, fabs(u[0][i]));
        if (!(error <= 1e-6 * largest)) fail_msg("mask %d: they differ by %g of %g", q, error, largest);
        pg_destroy(fresh);
    }
    pg_destroy(changed);
    scene_free(&maze), scene_free(&open);
    free(f), free(u[0]), free(u[1]);
}

/* Leaves fluid in two or three boxes somewhere, so that most bricks of 8 cells a side have none. */
static void empty_most_of(unsigned char *mask, const int n[3], int other, uint64_t seed)
{
    rng r = {seed};
    int low[3][3], high[3][3];
    for (int q = 0; q < 3; q++)
        for (int a = 0; a < 3; a++) {
            const int size = n[a] < 6 ? n[a] : rng_int(&r, 3, n[a] / 3 < 14 ? n[a] / 3 + 1 : 14);
            low[q][a] = rng_int(&r, 0, n[a] - size), high[q][a] = low[q][a] + size;
        }
    for (int k = 0; k < n[2]; k++)
        for (int j = 0; j < n[1]; j++)
            for (int i = 0; i < n[0]; i++) {
                const int at[3] = {i, j, k};
                int is_inside = 0;
                for (int q = 0; q < 3; q++) {
                    int inside = 1;
                    for (int a = 0; a < 3; a++) inside &= at[a] >= low[q][a] && at[a] < high[q][a];
                    is_inside |= inside;
                }
                if (!is_inside) mask[i + (size_t)n[0] * ((size_t)j + (size_t)n[1] * (size_t)k)] = (unsigned char)other;
            }
}

/* f, and u before, are NaN outside; what a handle has worked on before leaves no trace in bricks that have no fluid any
   more. */
static void bricks_without_fluid(void **state)
{
    static const unsigned methods[] = {0, PG_MIXED, PG_F32, PG_VCYCLE, PG_FMG | PG_COARSEN_CELLS, PG_RBGS, PG_JACOBI,
                                       PG_PIPECG, PG_BICGSTAB, PG_PIPEBICGSTAB | PG_PRECOND_AINV2,
                                       PG_CG | PG_PRECOND_DIRECT, PG_WCYCLE};
    const pg_backend backend = backend_or_skip(state);
    for (size_t run = 0; run < 2 * sizeof methods / sizeof *methods; run += (size_t)full_or_small(1, 3)) {
        const unsigned flags = methods[run / 2];
        const int flat = run % 2 == 1, n[3] = {full_or_small(67, flat ? 35 : 18), flat ? 53 : full_or_small(37, 17),
                                               flat ? 1 : full_or_small(43, 19)};
        const size_t cells = (size_t)n[0] * (size_t)n[1] * (size_t)n[2], word = flags & PG_F32 ? 4 : 8;
        unsigned char *mask = allocate(2 * cells);
        void *u[2] = {allocate(cells * word), allocate(cells * word)}, *f = allocate(cells * word);
        pg_desc desc = {.n = {n[0], n[1], n[2]}, .dim = flat ? 2 : 3, .backend = backend};
        set_choice(&desc, flags);
        for (int a = 0; a < desc.dim; a++) desc.centring[a] = PG_CELL, set_ends(&desc, a, a == 1 ? "NN" : "ND");
        const pg_stop stop = {.guess = run % 4 < 2 ? PG_GUESS_ZERO : PG_GUESS_U, .max_iter = full_or_small(4, 2)};
        pg_solver *solver[2];
        rng r = {run};
        memset(mask, PG_FLUID, 2 * cells);
        for (int q = 0; q < 2; q++) empty_most_of(mask + (size_t)q * cells, n, q ? PG_AIR : PG_SOLID, run + (size_t)q);
        for (int q = 0; q < 2; q++) {
            desc.cells.mask = mask + (size_t)q * cells;
            for (size_t c = 0; c < cells; c++) {
                const double value = desc.cells.mask[c] == PG_FLUID ? rng_uniform(&r, -1, 1) : (double)NAN;
                for (int v = 0; v < 2; v++)
                    if (word == 4)
                        ((float *)u[v])[c] = (float)value / 2, ((float *)f)[c] = (float)value;
                    else
                        ((double *)u[v])[c] = value / 2, ((double *)f)[c] = value;
            }
            solver[q] = create(&desc);
            if (q) OK(pg_set_cells(solver[0], &(pg_cells){.mask = desc.cells.mask}), solver[0]);
            for (int v = 0; v <= q; v++) OK(pg_solve(solver[v], u[v], f, &stop), solver[v]);
        }
        if (memcmp(u[0], u[1], cells * word)) fail_msg("%s: other bits than those of a new handle", describe(&desc));
        for (size_t c = 0; c < cells; c++) {
            const double value = word == 4 ? (double)((float *)u[0])[c] : ((double *)u[0])[c];
            if (desc.cells.mask[c] == PG_FLUID ? !isfinite(value) : value != 0)
                fail_msg("%s: u is %g in cell %zu", describe(&desc), value, c);
        }
        pg_destroy(solver[0]), pg_destroy(solver[1]);
        free(mask), free(u[0]), free(u[1]), free(f);
    }
}

static void set_coefficients(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    for (int q = every_change(backend) - 1; q < CHANGES_OF_COEFFICIENTS; q += every_change(backend)) {
        box *b = box_create(6);
        pg_desc desc = box_desc(b, 0, backend, change_flags[q]);
        box_coefficients(&desc, b, 0);
        /* The mask is the caller's again once it has been read. */
        unsigned char mask[CELLS];
        desc.cells.mask = memcpy(mask, b->mask[0], sizeof mask);
        pg_solver *solver = create(&desc);
        memset(mask, PG_SOLID, sizeof mask);
        desc.cells.mask = b->mask[0];
        expect_bits_of_a_new_handle(solver, &desc, b->f, "nothing", few_iterations());
        box_coefficients(&desc, b, 1);
        pg_cells coefficients = desc.cells;
        coefficients.mask = NULL;
        OK(pg_set_cells(solver, &coefficients), solver);
        expect_bits_of_a_new_handle(solver, &desc, b->f, "new coefficients", few_iterations());
        for (int c = 0; c < CELLS; c++) b->beta[1][c] = 1 / b->beta[1][c], b->alpha[1][c] *= 2;
        for (int face = 0; face < FACES; face++) b->openness[1][1][face] *= 0.5;
        OK(pg_set_cells(solver, &coefficients), solver);
        expect_bits_of_a_new_handle(solver, &desc, b->f, "coefficients that changed in place", few_iterations());
        OK(pg_set_cells(solver, &(pg_cells){.mask = desc.cells.mask = b->mask[1]}), solver);
        expect_bits_of_a_new_handle(solver, &desc, b->f, "a new mask beside coefficients", few_iterations());
        for (int c = 0; c < CELLS; c++) b->beta[1][c] = 1 / b->beta[1][c];
        desc.cells.mask = b->mask[0];
        OK(pg_set_cells(solver, &desc.cells), solver);
        expect_bits_of_a_new_handle(solver, &desc, b->f, "all at once", few_iterations());
        pg_destroy(solver);
        free(b);
    }
    assert_int_equal(failures, 0);
}

static void set_cell_values(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    box *b = box_create(7);
    failures = 0;
    for (int q = every_change(backend) - 1; q < CHANGES; q += every_change(backend)) {
        pg_desc desc = box_desc(b, 0, backend, change_flags[q]);
        desc.cells.air_value = b->air[0], desc.cells.air_values = box_values(&desc, PG_AIR, 1, b->air[0]);
        desc.cells.solid_flux = b->solid[0], desc.cells.solid_fluxes = box_values(&desc, PG_SOLID, 1, b->solid[0]);
        pg_solver *solver = create(&desc);
        desc.cells.air_value = b->air[1], desc.cells.solid_flux = b->solid[1];
        box_values(&desc, PG_AIR, -2, b->air[1]), box_values(&desc, PG_SOLID, 3, b->solid[1]);
        for (int shorter = 0; shorter < 3; shorter++) {
            pg_cells lists = {.air_value = desc.cells.air_value, .air_values = desc.cells.air_values,
                              .solid_flux = desc.cells.solid_flux, .solid_fluxes = desc.cells.solid_fluxes};
            if (shorter == 2) lists.solid_flux = NULL, lists.solid_fluxes = PG_NONE;    /* 0 entries too */
            OK(pg_set_cells(solver, &lists), solver);
            expect_bits_of_a_new_handle(solver, &desc, b->f, "new lists", few_iterations());
            desc.cells.air_values /= 2, desc.cells.solid_fluxes = shorter ? 0 : desc.cells.solid_fluxes / 3;
        }
        pg_destroy(solver);
    }
    free(b);
    assert_int_equal(failures, 0);
}

/* ---- Room ---- */

/* Every cell is linked to one other alone, which lies in another coarse cell: as many parts as pairs, and coarse levels
   have no room for all their nodes. Above a million cells there is none for so many pockets either. */
static void what_has_no_room_is_reported(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int large = 0; large < full_or_small(2, 1); large++) {
        const int n[2] = {large ? 1030 : 18, large ? 1025 : 6}, pairs = (n[0] / 2 - 1) * n[1];
        const size_t cells = (size_t)n[0] * (size_t)n[1];
        double *x = memset(allocate((cells + (size_t)n[1]) * sizeof *x), 0, (cells + (size_t)n[1]) * sizeof *x),
               *y = memset(allocate((cells + (size_t)n[0]) * sizeof *y), 0, (cells + (size_t)n[0]) * sizeof *y),
               *u = allocate(cells * sizeof *u), *f = allocate(cells * sizeof *f);
        pg_desc desc = {.n = {n[0], n[1]}, .backend = backend, .centring = {PG_CELL, PG_CELL}, .cells.openness = {x, y}};
        for (int a = 0; a < 2; a++) set_ends(&desc, a, "NN");
        desc.robust = 1;
        for (int j = 0; j < n[1]; j++)
            for (int i = 2; i < n[0]; i += 2) x[i + (n[0] + 1) * j] = 1;
        for (size_t c = 0; c < cells; c++) f[c] = (double)(c % 5);
        pg_solver *solver = create(&desc);
        const pg_stop stop = {.max_iter = 3, .rtol = large ? PG_NONE : 1e-10};
        pg_report report;
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_non_null(strstr(report.warning, large ? "singular components" : "merged"));
        if (!large) assert_int_equal(report.outcome, PG_CONVERGED);
        if (!large) assert_int_equal(report.singular_components, pairs + 2 * n[1]);    /* and the cells of two sides, alone */
        if (large) assert_true(report.singular_components < pairs);
        pg_destroy(solver);
        free(x), free(y), free(u), free(f);
    }
}

/* ---- Refusals ---- */

enum { RX = 6, RY = 5, RZ = 4, RCELLS = RX * RY * RZ, RFACES = (RX + 1) * (RY + 1) * (RZ + 1) };
#define R_AT(i, j, k) ((i) + RX * ((j) + RY * (k)))

static unsigned char r_mask[RCELLS];
static double r_cells[RCELLS], r_faces[3][RFACES], r_metric[RX + 1];
static pg_cell_value r_value;

/* A box with a solid cell (1,1,1) and an air cell (4,3,2). */
static pg_desc refusal_desc(pg_backend backend)
{
    pg_desc desc = {.n = {RX, RY, RZ}, .dim = 3, .backend = backend};
    for (int a = 0; a < 3; a++) desc.centring[a] = PG_CELL;
    memset(r_mask, PG_FLUID, sizeof r_mask);
    r_mask[R_AT(1, 1, 1)] = PG_SOLID, r_mask[R_AT(4, 3, 2)] = PG_AIR;
    for (int c = 0; c < RCELLS; c++) r_cells[c] = 1;
    for (int q = 0; q < 3 * RFACES; q++) r_faces[q / RFACES][q % RFACES] = 1;
    for (int q = 0; q <= RX; q++) r_metric[q] = 1;
    r_value = (pg_cell_value){{3, 3, 2}, PG_X_HIGH, 2, 0};
    desc.cells.mask = r_mask;
    return desc;
}

static void give_faces(const void *array[3])
{
    for (int a = 0; a < 3; a++) array[a] = r_faces[a];
}
static void air(pg_desc *d, int i, int j, int k, int face, double value)
{
    r_value = (pg_cell_value){{i, j, k}, face, value, 0};
    d->cells.air_value = &r_value, d->cells.air_values = 1;
}
static void flux(pg_desc *d, int i, int j, int k, int face, double value)
{
    air(d, i, j, k, face, value);
    d->cells.solid_flux = d->cells.air_value, d->cells.solid_fluxes = 1, d->cells.air_value = NULL, d->cells.air_values = 0;
}

/* The face (2,3,1) across y: element 2 + 6*(3 + 6*1). */
static void bad_face(const void *array[3], double value)
{
    give_faces(array);
    r_faces[1][2 + RX * (3 + (RY + 1) * 1)] = value;
}

#define REFUSALS(X)                                                                                                   \
    X(unknown_byte, r_mask[R_AT(3, 2, 1)] = 7, PG_ERROR_ARGUMENT, "mask", "(3, 2, 1)")                                \
    X(air_outside, air(d, 6, 3, 2, PG_X_LOW, 1), PG_ERROR_ARGUMENT, "air_value[0]", "(6, 3, 2)")                      \
    X(air_below, air(d, 1, -1, 2, PG_X_LOW, 1), PG_ERROR_ARGUMENT, "air_value[0]", "(1, -1, 2)")                      \
    X(air_beside_fluid, air(d, 3, 3, 2, PG_X_LOW, 1), PG_ERROR_ARGUMENT, "air_value[0]", "(3, 3, 2)")                 \
    X(air_beside_solid, air(d, 0, 1, 1, PG_X_HIGH, 1), PG_ERROR_ARGUMENT, "air_value[0]", "solid")                    \
    X(air_at_the_box, air(d, 0, 3, 2, PG_X_LOW, 1), PG_ERROR_ARGUMENT, "air_value[0]", "(0, 3, 2)")                   \
    X(air_of_a_solid, air(d, 1, 1, 1, PG_X_LOW, 1), PG_ERROR_ARGUMENT, "air_value[0]", "(1, 1, 1)")                   \
    X(air_nan, air(d, 3, 3, 2, PG_X_HIGH, NAN), PG_ERROR_ARGUMENT, "air_value[0]", "nan")                             \
    X(air_face_6, air(d, 3, 3, 2, 6, 1), PG_ERROR_ARGUMENT, "air_value[0]", "face 6")                                 \
    X(air_face_negative, air(d, 3, 3, 2, -1, 1), PG_ERROR_ARGUMENT, "air_value[0]", "face -1")                        \
    X(air_count, (air(d, 3, 3, 2, PG_X_HIGH, 1), d->cells.air_values = -3), PG_ERROR_ARGUMENT, "air_values", "-3")          \
    X(air_list_missing, d->cells.air_values = 2, PG_ERROR_ARGUMENT, "air_value", "2")                                       \
    X(air_without_mask, (air(d, 3, 3, 2, PG_X_HIGH, 1), give_faces(d->cells.openness), d->cells.mask = NULL), PG_ERROR_ARGUMENT,  \
      "air_value", "mask")                                                                                            \
    X(flux_outside, flux(d, 0, 1, 4, PG_X_HIGH, 1), PG_ERROR_ARGUMENT, "solid_flux[0]", "(0, 1, 4)")                  \
    X(flux_beside_air, flux(d, 3, 3, 2, PG_X_HIGH, 1), PG_ERROR_ARGUMENT, "solid_flux[0]", "air")                     \
    X(flux_infinite, flux(d, 0, 1, 1, PG_X_HIGH, INFINITY), PG_ERROR_ARGUMENT, "solid_flux[0]", "inf")                \
    X(beta_face_zero, bad_face(d->cells.beta_face, 0), PG_ERROR_ARGUMENT, "beta_face[1] is 0", "(2, 3, 1)")                 \
    X(beta_face_zero_hint, bad_face(d->cells.beta_face, 0), PG_ERROR_ARGUMENT, "openness 0", "PG_SOLID")                    \
    X(doubles_in_f32, (d->cells.beta_cell = r_cells, set_choice(d, PG_F32)), PG_ERROR_ARGUMENT, "beta_cell", "array of floats") \
    X(beta_face_negative, bad_face(d->cells.beta_face, -2.5), PG_ERROR_ARGUMENT, "beta_face[1] is -2.5", "(2, 3, 1)")       \
    X(beta_face_nan, bad_face(d->cells.beta_face, NAN), PG_ERROR_ARGUMENT, "beta_face[1] is", "(2, 3, 1)")                  \
    X(beta_face_infinite, bad_face(d->cells.beta_face, INFINITY), PG_ERROR_ARGUMENT, "beta_face[1] is inf", "(2, 3, 1)")    \
    X(openness_above_1, bad_face(d->cells.openness, 1.5), PG_ERROR_ARGUMENT, "openness[1] is 1.5", "(2, 3, 1)")             \
    X(openness_below_0, bad_face(d->cells.openness, -0.1), PG_ERROR_ARGUMENT, "openness[1] is -0.1", "(2, 3, 1)")           \
    X(openness_nan, bad_face(d->cells.openness, NAN), PG_ERROR_ARGUMENT, "openness[1] is", "(2, 3, 1)")                     \
    X(beta_cell_zero, (d->cells.beta_cell = r_cells, r_cells[R_AT(5, 4, 3)] = 0), PG_ERROR_ARGUMENT, "beta_cell is 0",      \
      "(5, 4, 3)")                                                                                                    \
    X(alpha_cell_negative, (d->cells.alpha_cell = r_cells, r_cells[R_AT(2, 4, 3)] = -4), PG_ERROR_ARGUMENT,                 \
      "alpha_cell is -4", "(2, 4, 3)")                                                                                \
    X(some_beta_face, (give_faces(d->cells.beta_face), d->cells.beta_face[2] = NULL), PG_ERROR_ARGUMENT, "beta_face[2]", "NULL")  \
    X(some_openness, (give_faces(d->cells.openness), d->cells.openness[0] = NULL), PG_ERROR_ARGUMENT, "openness[0]", "NULL")      \
    X(both_betas, (give_faces(d->cells.beta_face), d->cells.beta_cell = r_cells), PG_ERROR_ARGUMENT, "beta_face", "beta_cell")    \
    X(cells_on_nodes, (d->centring[1] = PG_NODE, set_choice(d, PG_COARSEN_CELLS)), PG_ERROR_UNSUPPORTED, "centring[1]", "PG_NODE") \
    X(direct, set_choice(d, PG_DIRECT), PG_ERROR_UNSUPPORTED, "PG_DIRECT", "mask")                                        \
    X(cells_with_weight, (d->weight[0] = r_metric, set_choice(d, PG_COARSEN_CELLS)), PG_ERROR_UNSUPPORTED,            \
      "PG_COARSEN_CELLS", "weight[0]")                                                                                \
    X(cells_with_conductance, (d->conductance[2] = r_metric, set_choice(d, PG_COARSEN_CELLS)), PG_ERROR_UNSUPPORTED,  \
      "PG_COARSEN_CELLS", "conductance[2]")                                                                           \
    X(cells_with_theta, (air(d, 3, 3, 2, PG_X_HIGH, 1), r_value.theta = 0.5, set_choice(d, PG_COARSEN_CELLS)),        \
      PG_ERROR_UNSUPPORTED, "PG_COARSEN_CELLS", "theta")                                                              \
    X(theta_above_1, (air(d, 3, 3, 2, PG_X_HIGH, 1), r_value.theta = 1.2), PG_ERROR_ARGUMENT, "air_value[0]", "1.2")  \
    X(theta_negative, (air(d, 3, 3, 2, PG_X_HIGH, 1), r_value.theta = -0.5), PG_ERROR_ARGUMENT, "air_value[0]", "-0.5") \
    X(theta_nan, (air(d, 3, 3, 2, PG_X_HIGH, 1), r_value.theta = NAN), PG_ERROR_ARGUMENT, "air_value[0]", "nan")      \
    X(theta_of_a_solid, (flux(d, 0, 1, 1, PG_X_HIGH, 1), r_value.theta = 0.5), PG_ERROR_ARGUMENT, "solid_flux[0]", "0.5") \
    X(with_velocity, d->velocity[1] = 0.25, PG_ERROR_UNSUPPORTED, "velocity", "0.25")                                 \
    X(jacobi_smoother, set_choice(d, PG_SMOOTH_JACOBI), PG_ERROR_UNSUPPORTED, "PG_SMOOTH_CHEBYSHEV", "PG_SMOOTH_JACOBI")           \
    X(red_black_smoother, set_choice(d, PG_SMOOTH_RBGS), PG_ERROR_UNSUPPORTED, "PG_SMOOTH_CHEBYSHEV", "PG_SMOOTH_RBGS")            \
    X(omega_of_cycles, (set_choice(d, PG_VCYCLE), d->omega = 0.9), PG_ERROR_UNSUPPORTED, "omega is 0.9", "mask")                   \
    X(line_smoother, set_choice(d, PG_VCYCLE | PG_SMOOTH_LINES), PG_ERROR_UNSUPPORTED, "PG_SMOOTH_CHEBYSHEV", "PG_SMOOTH_LINES")  \
    X(cells_without_mask, (d->cells.mask = NULL, set_choice(d, PG_COARSEN_CELLS)), PG_ERROR_UNSUPPORTED, "PG_COARSEN_CELLS",    \
      "mask")                                                                                                         \
    X(cells_with_beta, (d->cells.beta_cell = r_cells, set_choice(d, PG_COARSEN_CELLS)), PG_ERROR_UNSUPPORTED,                   \
      "PG_COARSEN_CELLS", "beta_cell")                                                                                \
    X(cells_without_cycle, set_choice(d, PG_COARSEN_CELLS | PG_SOR), PG_ERROR_UNSUPPORTED, "PG_COARSEN_CELLS", "PG_SOR")  \
    X(cells_without_cycle_in_cg, set_choice(d, PG_COARSEN_CELLS | PG_CG | PG_PRECOND_NONE), PG_ERROR_UNSUPPORTED,         \
      "PG_COARSEN_CELLS", "PG_CG")                                                                                    \
    X(cells_and_robust, (set_choice(d, PG_COARSEN_CELLS), d->robust = 1), PG_ERROR_UNSUPPORTED, "PG_COARSEN_CELLS",       \
      "robust")                                                                                                       \
    X(robust_4, d->robust = 4, PG_ERROR_ARGUMENT, "robust", "4")                                                      \
    X(stride_negative, d->cells.stride_mask[0] = -6, PG_ERROR_ARGUMENT, "stride_mask[0]", "-6")                             \
    X(stride_short, d->cells.stride_mask[1] = 29, PG_ERROR_ARGUMENT, "stride_mask[1]", "29")

#define SPOIL(name, change, status, field, value)                                                                     \
    static void spoil_##name(pg_desc *d) { (void)d, (void)(change); }
#define REFUSAL(name, change, status, field, value) {#name, spoil_##name, status, field, value},

REFUSALS(SPOIL)
static const struct { const char *name; void (*spoil)(pg_desc *d); pg_status status; const char *field, *value; }
refused[] = {REFUSALS(REFUSAL)};

static void expect_refusal(const char *what, pg_status got, pg_status expected, const char *text, const char *field,
                           const char *value)
{
    EXPECT(got == expected, "%s: %s instead of %s: %s", what, pg_status_string(got), pg_status_string(expected), text);
    if (got == PG_OK) return;
    EXPECT(strstr(text, field) && strstr(text, value), "%s: \"%s\" or \"%s\" is not in \"%s\"", what, field, value,
           text);
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    for (size_t q = 0; q < sizeof refused / sizeof *refused; q++) {
        pg_desc desc = refusal_desc(backend);
        refused[q].spoil(&desc);
        pg_solver *solver = (pg_solver *)&desc;
        const pg_status status = pg_create(&desc, &solver);
        expect_refusal(refused[q].name, status, refused[q].status, pg_last_error(NULL), refused[q].field,
                       refused[q].value);
        EXPECT(status == PG_OK || !solver, "%s: the handle is not NULL", refused[q].name);
        if (status == PG_OK) pg_destroy(solver);
    }
    assert_int_equal(failures, 0);
}

/* What the header allows at the edge of it. */
static void what_can_be_is_taken(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int q = 0; q < 6; q++) {
        pg_desc desc = refusal_desc(backend);
        if (q == 1) air(&desc, 3, 3, 2, PG_X_HIGH, 1);
        if (q == 2) flux(&desc, 0, 1, 1, PG_X_HIGH, 1);
        if (q == 3) bad_face(desc.cells.openness, 0);
        if (q == 4) set_choice(&desc, PG_SMOOTH_CHEBYSHEV), desc.robust = PG_NONE;
        if (q == 5) desc.cells.mask = NULL, desc.cells.alpha_cell = r_cells, r_cells[7] = 0;
        double u[RCELLS], f[RCELLS];
        for (int c = 0; c < RCELLS; c++) f[c] = c % 7;
        solve_anew(&desc, u, f, 0);
    }
}

/* Periodic axes that are odd once halved: lists have more rows of colours than there are cells. */
static void u_is_that_of_the_only_air(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(130, 66);
    unsigned char *mask = memset(allocate((size_t)(n * n)), PG_FLUID, (size_t)(n * n));
    double *u = allocate((size_t)(n * n) * sizeof *u), *f = allocate((size_t)(n * n) * sizeof *f);
    const pg_cell_value sides[] = {
        {{4, 7, 0}, PG_X_HIGH, 1, 0}, {{6, 7, 0}, PG_X_LOW, 1, 0}, {{5, 6, 0}, PG_Y_HIGH, 1, 0}, {{5, 8, 0}, PG_Y_LOW, 1, 0}};
    pg_desc desc = {.n = {n, n}, .backend = backend, .centring = {PG_CELL, PG_CELL}, .cells.mask = mask};
    desc.cells.air_value = sides, desc.cells.air_values = 4;
    for (int q = 0; q < n * n; q++) f[q] = 0;
    mask[5 + n * 7] = PG_AIR;
    for (int a = 0; a < 2; a++) set_ends(&desc, a, "PP");
    solve_anew(&desc, u, f, 0);
    for (int q = 0; q < n * n; q++)
        if (!(fabs(u[q] - (mask[q] == PG_FLUID)) < 1e-5)) fail_msg("u is %g at %d", u[q], q);
    free(mask), free(u), free(f);
}

/* A solve after a mask or coefficients that were refused does not use those of before, but says so: until good ones
   come. Other calls that are refused change nothing. */
static void refused_media_are_outdated(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double u[RCELLS], expected[RCELLS], f[RCELLS];
    unsigned char other[RCELLS] = {0};
    double bad[RCELLS];
    const pg_stop stop = {.guess = PG_GUESS_ZERO};
    pg_desc desc = refusal_desc(backend), spoilt;
    desc.cells.beta_cell = r_cells;
    air(&desc, 3, 3, 2, PG_X_HIGH, 1);
    for (int c = 0; c < RCELLS; c++) f[c] = c % 7, bad[c] = 1;
    pg_solver *solver = create(&desc);
    OK(pg_solve(solver, expected, f, &stop), solver);
    failures = 0;
    other[R_AT(3, 2, 1)] = 7, bad[R_AT(4, 0, 2)] = -1;
    expect_refusal("a bad byte", pg_set_cells(solver, &(pg_cells){.mask = other}), PG_ERROR_ARGUMENT, pg_last_error(solver), "mask",
                   "(3, 2, 1)");
    for (int piece = 0; piece < 4; piece++) {
        memset(u, 0, sizeof u);
        const pg_status status = piece == 0   ? pg_solve(solver, u, f, &stop)
                                 : piece == 1 ? pg_apply(solver, f, u)
                                 : piece == 2 ? pg_residual(solver, expected, f, u)
                                              : pg_gradient(solver, f, 0, u, PG_AT_UNKNOWNS);
        expect_refusal("an outdated mask", status, PG_ERROR_ARGUMENT, pg_last_error(solver), "outdated", "(3, 2, 1)");
        for (int c = 0; c < RCELLS; c++) assert_true(u[c] == 0);
    }
    OK(pg_set_cells(solver, &(pg_cells){.mask = desc.cells.mask}), solver);
    OK(pg_solve(solver, u, f, &stop), solver);
    EXPECT(!memcmp(u, expected, sizeof u), "other bits after a mask that was refused, and the old one again");
    expect_refusal("no cells", pg_set_cells(solver, NULL), PG_ERROR_ARGUMENT, pg_last_error(solver), "cells", "NULL");
    spoilt = desc, spoilt.cells.beta_cell = bad, spoilt.cells.mask = NULL;
    expect_refusal("a bad value", pg_set_cells(solver, &spoilt.cells), PG_ERROR_ARGUMENT, pg_last_error(solver),
                   "beta_cell is -1", "(4, 0, 2)");
    spoilt = desc, spoilt.cells.alpha_cell = r_cells, spoilt.cells.mask = NULL;
    OK(pg_set_cells(solver, &(pg_cells){.mask = desc.cells.mask}), solver);
    expect_refusal("outdated coefficients", pg_solve(solver, u, f, &stop), PG_ERROR_ARGUMENT, pg_last_error(solver),
                   "outdated", "(4, 0, 2)");
    expect_refusal("one more array", pg_set_cells(solver, &spoilt.cells), PG_ERROR_UNSUPPORTED, pg_last_error(solver),
                   "alpha_cell", "pg_create");
    OK(pg_set_cells(solver, &desc.cells), solver);
    const pg_cell_value two[2] = {r_value, r_value};
    expect_refusal("no list", pg_set_cells(solver, &(pg_cells){.air_values = 1}), PG_ERROR_ARGUMENT, pg_last_error(solver),
                   "air_value is NULL", "air_values is 1");
    expect_refusal("a longer list", pg_set_cells(solver, &(pg_cells){.air_value = two, .air_values = 2}), PG_ERROR_ARGUMENT,
                   pg_last_error(solver), "air_values", "2");
    pg_cell_value outside = r_value;
    outside.cell[2] = RZ;
    expect_refusal("a cell outside", pg_set_cells(solver, &(pg_cells){.air_value = &outside, .air_values = 1}), PG_ERROR_ARGUMENT,
                   pg_last_error(solver), "outside the box", "(3, 3, 4)");
    outside.cell[2] = -100000000;    /* whatever memory lies there: nothing is looked up by it, nor by such a face */
    expect_refusal("a cell far outside", pg_set_cells(solver, &(pg_cells){.mask = r_mask, .air_value = &outside, .air_values = 1}),
                   PG_ERROR_ARGUMENT, pg_last_error(solver), "outside the box", "-100000000");
    outside = r_value, outside.face = 77;
    expect_refusal("no face", pg_set_cells(solver, &(pg_cells){.mask = r_mask, .air_value = &outside, .air_values = 1}),
                   PG_ERROR_ARGUMENT, pg_last_error(solver), "face 77", "PG_X_LOW");
    OK(pg_set_cells(solver, &desc.cells), solver);
    OK(pg_solve(solver, u, f, &stop), solver);
    EXPECT(!memcmp(u, expected, sizeof u), "other bits after calls that were refused");
    pg_destroy(solver);
    assert_int_equal(failures, 0);
}

/* A field that the solver does not have outdates nothing, whatever else is given that it does not have; one that it has does,
   until it is given again. Faces across one axis may be given alone. */
static void what_a_solver_does_not_have_outdates_nothing(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static double u[2][RCELLS], f[RCELLS];
    const pg_stop stop = {.guess = PG_GUESS_ZERO};
    failures = 0;
    for (int fields = 0; fields < 2; fields++) {
        pg_desc desc = refusal_desc(backend);
        if (fields) give_faces(desc.cells.beta_face);
        for (int c = 0; c < RCELLS; c++) f[c] = c % 7;
        pg_solver *solver = create(&desc);
        OK(pg_solve(solver, u[0], f, &stop), solver);
        const pg_cells refused[] = {{.beta_cell = r_cells}, {.alpha_cell = r_cells}, {.openness = {r_faces[0], r_faces[1], r_faces[2]}},
                                    {.openness = {NULL, r_faces[1]}}, {.beta_cell = r_cells, .alpha_cell = r_cells}};
        for (size_t q = 0; q < sizeof refused / sizeof *refused; q++) {
            expect_refusal("a field", pg_set_cells(solver, &refused[q]), PG_ERROR_UNSUPPORTED, pg_last_error(solver), "is given", "pg_create");
            OK(pg_solve(solver, u[1], f, &stop), solver);
            EXPECT(!memcmp(u[0], u[1], sizeof u[0]), "other bits after field %zu was refused", q);
        }
        if (fields) {
            pg_cells both = {.alpha_cell = r_cells};
            give_faces(both.beta_face);
            expect_refusal("two fields", pg_set_cells(solver, &both), PG_ERROR_UNSUPPORTED, pg_last_error(solver), "alpha_cell", "pg_create");
            expect_refusal("outdated", pg_solve(solver, u[1], f, &stop), PG_ERROR_ARGUMENT, pg_last_error(solver), "outdated", "alpha_cell");
            for (int q = 0; q < RFACES; q++) r_faces[1][q] = 2;
            OK(pg_set_cells(solver, &(pg_cells){.beta_face = {NULL, r_faces[1]}}), solver);
            OK(pg_solve(solver, u[1], f, &stop), solver);
            pg_solver *anew = create(&desc);
            OK(pg_solve(anew, u[0], f, &stop), anew);
            EXPECT(!memcmp(u[0], u[1], sizeof u[0]), "faces across y alone are not those of a new solver");
            pg_destroy(anew);
        }
        pg_destroy(solver);
    }
    assert_int_equal(failures, 0);
}

/* A mask that moves away from the air of a list: a list that is given with it is refused, one that stays is warned of. A
   list without its number is, too. */
static void lists_that_have_lost_their_air(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 12 };
    static unsigned char mask[2][N * N];
    static double u[N * N], f[N * N];
    pg_cell_value volt = {{4, 5, 0}, PG_X_HIGH, 1, 0};
    pg_report report;
    memset(mask, PG_FLUID, sizeof mask);
    mask[0][5 + N * 5] = mask[1][8 + N * 5] = PG_AIR;
    pg_desc d = {.n = {N, N}, .centring = {PG_CELL, PG_CELL}, .backend = backend};
    d.cells.mask = mask[0], d.cells.air_value = &volt, d.cells.air_values = 1;
    pg_solver *solver = create(&d);
    d.cells.mask = mask[1];
    failures = 0;
    expect_refusal("a list of the mask before", pg_set_cells(solver, &d.cells), PG_ERROR_ARGUMENT, pg_last_error(solver),
                   "face x high leads to fluid", "air_value[0]");
    OK(pg_set_cells(solver, &(pg_cells){.mask = mask[1]}), solver);
    OK(pg_solve(solver, u, f, NULL), solver);
    OK(pg_get_report(solver, &report), solver);
    EXPECT(strstr(report.warning, "1 entries of air_value"), "warns: %s", report.warning);
    volt.cell[0] = 7;
    OK(pg_set_cells(solver, &d.cells), solver);
    OK(pg_solve(solver, u, f, NULL), solver);
    OK(pg_get_report(solver, &report), solver);
    EXPECT(!report.warning[0] && u[7 + N * 5] > 0.1, "u is %g, warns: %s", u[7 + N * 5], report.warning);
    pg_destroy(solver);
    d.cells.air_values = 0;
    solver = create(&d);
    OK(pg_solve(solver, u, f, NULL), solver);
    OK(pg_get_report(solver, &report), solver);
    EXPECT(strstr(report.warning, "air_values is 0"), "warns: %s", report.warning);
    pg_destroy(solver);
    assert_int_equal(failures, 0);
}

/* A new mask with strides of its own, in a singular problem of prime sizes whose u and f are windows: the bits of a solver
   that was made with it. */
static void a_new_mask_may_have_other_strides(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { PX = 13, PY = 17, PZ = 11, PAD = 19, WIDE = PAD * (PY + 2) * PZ };
    static unsigned char first[PX * PY * PZ], second[WIDE];
    static double f64[WIDE], u64[2][WIDE];
    static float f32[WIDE], u32[2][WIDE];
    for (int q = 0; q < 4; q++) {
        const int single = q % 2, nz = q / 2 ? PZ : 1;
        memset(second, 0xff, sizeof second);    /* what lies between rows and planes is none of the library's */
        for (int m = 0; m < PX * PY * PZ; m++) {
            const int i = m % PX, j = m / PX % PY, k = m / PX / PY;
            first[m] = (i + 2 * j) % 9 == 4 ? PG_SOLID : PG_FLUID;
            second[i + PAD * (j + (PY + 1) * k)] = (3 * i + j + k) % 8 == 5 ? PG_SOLID : PG_FLUID;
        }
        for (int m = 0; m < WIDE; m++) f64[m] = sin(m), f32[m] = (float)f64[m];
        pg_desc d = {.n = {PX, PY, nz}, .dim = q / 2 ? 3 : 2, .centring = {PG_CELL, PG_CELL, PG_CELL}, .backend = backend};
        d.flags = single ? PG_F32 : PG_F64, d.cells.mask = first;
        d.stride_u[0] = d.stride_f[0] = PAD, d.stride_u[1] = d.stride_f[1] = PAD * (PY + 2);
        d.face[PG_X_LOW].kind = d.face[PG_X_HIGH].kind = PG_PERIODIC;
        for (int face = PG_Y_LOW; face <= PG_Z_HIGH; face++) d.face[face].kind = PG_NEUMANN;
        d.face[PG_Y_HIGH].value = 0.5;
        const pg_cells next = {.mask = second, .stride_mask = {PAD, PAD * (PY + 1)}};
        memset(u64, 0, sizeof u64), memset(u32, 0, sizeof u32);
        for (int fresh = 0; fresh < 2; fresh++) {
            pg_report report;
            if (fresh) d.cells = next;
            pg_solver *solver = create(&d);
            if (!fresh) OK(pg_set_cells(solver, &next), solver);
            OK(pg_solve(solver, single ? (void *)u32[fresh] : u64[fresh], single ? (void *)f32 : f64, NULL), solver);
            OK(pg_get_report(solver, &report), solver);
            if (report.outcome != PG_CONVERGED) fail_msg("%d: %s", q, report.message);
            pg_destroy(solver);
        }
        assert_memory_equal(u64[0], u64[1], sizeof u64[0]);
        assert_memory_equal(u32[0], u32[1], sizeof u32[0]);
    }
}

/* PG_PRECOND_DIRECT is that of the empty box: the report does not say "of A itself". */
static void the_report_tells_of_the_empty_box(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static double u[RCELLS], f[RCELLS];
    static const unsigned methods[] = {PG_CG, PG_BICGSTAB};
    for (int q = 0; q < 4; q++) {
        pg_desc desc = refusal_desc(backend);
        if (q / 2) desc.cells.mask = NULL, desc.cells.beta_cell = r_cells;
        set_choice(&desc, methods[q % 2] | PG_PRECOND_DIRECT);
        pg_solver *solver = create(&desc);
        pg_report report;
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        if (!strstr(report.method, "of the empty box")) fail_msg("method: %s", report.method);
        pg_destroy(solver);
    }
}

static void a_handle_without_a_mask_takes_none(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    for (int fields = 0; fields < 2; fields++) {
        pg_desc desc = refusal_desc(backend);
        desc.cells.mask = NULL, desc.cells.beta_cell = fields ? r_cells : NULL;
        pg_solver *solver = create(&desc);
        expect_refusal("a mask", pg_set_cells(solver, &(pg_cells){.mask = r_mask}), PG_ERROR_UNSUPPORTED, pg_last_error(solver), "mask",
                       "create");
        if (!fields)
            expect_refusal("coefficients", pg_set_cells(solver, &(pg_cells){.beta_cell = r_cells}), PG_ERROR_UNSUPPORTED,
                           pg_last_error(solver), "pg_set_cells", "create");
        pg_destroy(solver);
    }
    assert_int_equal(failures, 0);
}

/* Inside of the fluid it is found, and u stays; outside it is not even read. */
static void nan_matters_inside_only(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {0,         PG_MIXED, PG_CG | PG_PRECOND_NONE, PG_BICGSTAB | PG_PRECOND_AINV,
                                     PG_VCYCLE, PG_RBGS};
    for (size_t q = 0; q < sizeof flags / sizeof *flags; q++) {
        pg_desc desc = refusal_desc(backend);
        set_choice(&desc, flags[q]);
        double u[2][RCELLS], f[RCELLS];
        for (int c = 0; c < RCELLS; c++) f[c] = c % 7, u[0][c] = u[1][c] = 5;
        pg_solver *solver = create(&desc);
        pg_report report;
        f[R_AT(2, 2, 2)] = NAN;
        OK(pg_solve(solver, u[0], f, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        if (report.outcome != PG_NOT_A_NUMBER) fail_msg("%s: NaN in f: %s", describe(&desc), report.message);
        if (memcmp(u[0], u[1], sizeof u[0])) fail_msg("%s: NaN in f, u was touched", describe(&desc));
        f[R_AT(2, 2, 2)] = 1;
        OK(pg_solve(solver, u[0], f, NULL), solver);
        f[R_AT(1, 1, 1)] = NAN, u[1][R_AT(1, 1, 1)] = NAN;
        f[R_AT(4, 3, 2)] = -INFINITY, u[1][R_AT(4, 3, 2)] = INFINITY;
        OK(pg_solve(solver, u[1], f, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        if (report.outcome != PG_CONVERGED) fail_msg("%s: NaN outside: %s", describe(&desc), report.message);
        if (memcmp(u[0], u[1], sizeof u[0])) fail_msg("%s: NaN outside changes u", describe(&desc));
        pg_destroy(solver);
    }
}

/* ---- Pieces ---- */

/* v = A u, or r = f + boundary terms - A u, row by row, also in cells without any link or shift; 0 outside. */
static void check_rows(const problem *p, const dense *m, const void *v, int residual)
{
    const pg_desc *d = &p->desc;
    double worst = 0;
    int wrong = 0, at[3];
    for (int q = 0; q < m->batch; q++)
        for (int row = 0; row < m->unknowns; row++) {
            long double size, expected = dense_apply(m, p, p->u, row, q, &size);
            const long double load = m->load[q * m->unknowns + row], from_f = load - m->boundary[q * m->unknowns + row];
            if (residual) expected = load - expected, size += fabsl(from_f) + fabsl(load - from_f);
            const double got = at_row(m, p, v, d->stride_f, row, q);
            wrong += !m->linked[row] && !residual && got != 0;
            const double error = (double)(fabsl(got - expected / m->volume[row]) * m->volume[row] / (size + 1e-300L));
            if (!(error <= worst)) worst = error;
        }
    for (int q = 0; q < m->batch; q++)
        for (size_t c = 0; c < cells_of(d); c++) {
            place(d, c, at);
            const size_t e = (size_t)q * from_problem_to_problem(d, d->stride_f) + element(d, d->stride_f, at);
            wrong += m->number[c] < 0 && get(p, v, e) != 0;
        }
    EXPECT(worst <= 1e-12, "%s: %s differs by %.1e", tell(p), residual ? "pg_residual" : "pg_apply", worst);
    EXPECT(!wrong, "%s: %s: %d values outside are not 0", tell(p), residual ? "pg_residual" : "pg_apply", wrong);
}

static void pg_apply_and_pg_residual_are_those_of_the_matrix(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    failures = 0;
    for (int seed = 1; seed <= full_or_small(100, 15); seed++) {
        problem p;
        dense m;
        problem_create(&p, 1000 + (uint64_t)seed, backend, 0, 3);
        dense_create(&m, &p);
        draw_method(&p, &m);
        if (p.desc.precond == PG_PRECOND_DIRECT) set_choice(&p.desc, PG_VCYCLE);
        void *v = keep(&p, p.count_f * sizeof(double));
        pg_solver *solver = create(&p.desc);
        OK(pg_apply(solver, p.u, v), solver);
        check_rows(&p, &m, v, 0);
        OK(pg_residual(solver, p.u, p.f, v), solver);
        check_rows(&p, &m, v, 1);
        pg_destroy(solver);
        dense_free(&m);
        problem_free(&p);
    }
    assert_int_equal(failures, 0);
}

/* Coarse levels are in f32, in which a singular problem loses another digit. */
static void check_alike(void *const u[2], size_t count, int f32, int run)
{
    double most = 0, worst = 0;
    for (size_t c = 0; c < count; c++) {
        const double x = value_at(u[0], c, f32), y = value_at(u[1], c, f32);
        most = fmax(most, fabs(x)), worst = fmax(worst, fabs(x - y));
    }
    assert_true(most > 0);
    if (!(worst <= 1e-5 * most)) fail_msg("case %d: off by %.1e of %.1e", run, worst, most);
}

/* Levels of more than one tile along each axis, on the GPU in kernels that small ones do not take: two cycles give what
   they give on the CPU, with primes for sizes, rows apart, solids and air of one cell, and any faces. */
static void large_cycles_are_those_of_the_cpu(void **state)
{
    static const struct {
        const char *ends[3];
        int n[3], small[3], f32;
        double alpha;
        int empty;
    } cases[] = {{{"DN", "ND", "NN"}, {131, 61, 37}, {131, 37, 11}, 0, 0, 0},
                 {{"PP", "DN", "PP"}, {132, 61, 38}, {132, 29, 10}, 0, 0, 0},
                 {{"NN", "PP", "DD"}, {131, 64, 37}, {67, 34, 13}, 0, 3, 0},
                 {{"NN", "NN", "NN"}, {127, 61, 37}, {67, 37, 11}, 0, 0, 0},
                 {{"DN", "ND", "DD"}, {131, 61, 37}, {131, 37, 11}, 1, 0, 0},
                 {{"DN", "PP", "DN"}, {131, 62, 77}, {131, 22, 17}, 0, 0, 1},
                 {{"NN", "ND", "DD"}, {131, 62, 77}, {67, 21, 17}, 1, 0, 1}};
    backend_or_skip(state);
    enum { CASES = sizeof cases / sizeof *cases };
    for (int run = 0; run < 2 * CASES + full_or_small(CASES, 2); run++) {
        if (small_run() && run / CASES == 1 && run % 4 < 2) continue;
        const int q = run % CASES, *const n = small_run() ? cases[q].small : cases[q].n, f32 = cases[q].f32;
        const int64_t row = n[0] + 3, plane = row * n[1] + 5;
        const size_t cells = (size_t)n[0] * (size_t)n[1] * (size_t)n[2], room = (size_t)(plane * n[2]);
        unsigned char *mask = allocate(cells);
        void *u[2] = {allocate(room * sizeof(double)), allocate(room * sizeof(double))},
             *f = allocate(room * sizeof(double));
        rng random = {(uint64_t)q + 1};
        for (size_t c = 0; c < cells; c++) {
            const int kind = rng_int(&random, 0, 199);
            mask[c] = kind < 2 ? PG_SOLID : kind == 2 && cases[q].ends[0][0] != 'N' ? PG_AIR : PG_FLUID;
        }
        if (cases[q].empty) empty_most_of(mask, n, PG_SOLID, (uint64_t)q);
        for (size_t c = 0; c < room; c++) put_value(f, c, rng_uniform(&random, -1, 1), f32);
        for (int backend = 0; backend < 2; backend++) {
            pg_desc desc = {.n = {n[0], n[1], n[2]}, .backend = backend ? PG_CUDA : PG_CPU, .robust = PG_NONE};
            set_choice(&desc, PG_VCYCLE | (f32 ? PG_F32 : 0)), desc.cells.mask = mask, desc.alpha = cases[q].alpha;
            if (run / CASES == 1) desc.nu_pre = desc.nu_post = 1, desc.robust = 1 + run % 2 * 2;    /* u ends in another grid */
            if (run / CASES == 2) set_choice(&desc, choice_of(&desc) | PG_COARSEN_CELLS), desc.robust = 0;
            for (int a = 0; a < 3; a++) desc.centring[a] = PG_CELL, set_ends(&desc, a, cases[q].ends[a]);
            desc.stride_u[0] = desc.stride_f[0] = row, desc.stride_u[1] = desc.stride_f[1] = plane;
            memset(u[backend], 0, room * sizeof(double));
            pg_solver *solver = create(&desc);
            OK(pg_cycle(solver, u[backend], f, 2), solver);
            pg_destroy(solver);
        }
        check_alike(u, room, f32, run);
        free(mask), free(u[0]), free(u[1]), free(f);
    }
}

/* The same with coefficients, whose rows the preconditioner stores: two iterations or cycles in passes on large levels. */
static void large_cycles_among_coefficients_are_those_of_the_cpu(void **state)
{
    enum { FACES = 1, CELLS = 2, STRETCHED = 4, MASK = 8 };
    static const struct {
        const char *ends[3];
        int n[3], small[3];
        unsigned flags;
        int with, sweeps;
    } cases[] = {{{"DN", "ND", "NN"}, {131, 61, 37}, {67, 37, 11}, PG_VCYCLE | PG_MIXED, FACES | MASK, 2},
                 {{"PP", "DN", "PP"}, {132, 61, 38}, {68, 29, 10}, PG_CG | PG_PRECOND_CYCLE, CELLS, 2},
                 {{"NN", "PP", "DD"}, {131, 64, 37}, {67, 34, 13}, PG_CG | PG_PRECOND_CYCLE, FACES | MASK, 1},
                 {{"ND", "DD", "DN"}, {130, 61, 37}, {66, 37, 11}, PG_VCYCLE | PG_MIXED, CELLS | STRETCHED, 2},
                 {{"DN", "ND", "DD"}, {131, 61, 37}, {67, 37, 11}, PG_CG | PG_PRECOND_CYCLE | PG_F32, CELLS | MASK, 2},
                 {{"DN", "PP", "DN"}, {131, 62, 77}, {67, 34, 17}, PG_VCYCLE | PG_MIXED, FACES, 3},
                 {{"DN", "ND", "DD"}, {131, 61, 37}, {67, 37, 11}, PG_CG | PG_PRECOND_CYCLE, MASK | STRETCHED, 2},
                 {{"NN", "PP", "NN"}, {131, 62, 37}, {67, 34, 11}, PG_CG | PG_PRECOND_CYCLE | PG_F32, FACES | MASK, 2}};
    backend_or_skip(state);
    for (int q = 0; q < (int)(sizeof cases / sizeof *cases); q++) {
        const int *const n = small_run() ? cases[q].small : cases[q].n, f32 = (cases[q].flags & PG_F32) != 0;
        const int64_t row = n[0] + 3, plane = row * n[1] + 5;
        const size_t size = f32 ? sizeof(float) : sizeof(double), room = (size_t)(plane * n[2]),
                     cells = (size_t)n[0] * (size_t)n[1] * (size_t)n[2], faces = 2 * cells;
        unsigned char *mask = allocate(cells);
        void *u[2] = {allocate(room * size), allocate(room * size)}, *f = allocate(room * size), *array[4];
        double *coord[3];
        rng random = {(uint64_t)q + 1};
        for (size_t c = 0; c < cells; c++) mask[c] = rng_int(&random, 0, 99) ? PG_FLUID : PG_SOLID;
        for (size_t c = 0; c < room; c++) put_value(f, c, rng_uniform(&random, -1, 1), f32);
        for (int a = 0; a < 4; a++) {
            array[a] = allocate(faces * size);
            for (size_t c = 0; c < faces; c++) put_value(array[a], c, exp(rng_uniform(&random, -4, 4)), f32);
        }
        for (int a = 0; a < 3; a++) {
            coord[a] = allocate((size_t)(n[a] + 1) * sizeof(double));
            for (int i = 0; i < n[a]; i++) coord[a][i + 1] = coord[a][i] + rng_uniform(&random, 0.8, 1.2) / n[a];
        }
        for (int backend = 0; backend < 2; backend++) {
            pg_desc desc = {.n = {n[0], n[1], n[2]}, .backend = backend ? PG_CUDA : PG_CPU, .robust = PG_NONE};
            set_choice(&desc, cases[q].flags), desc.inner_cycles = 1, desc.nu_pre = desc.nu_post = cases[q].sweeps;
            if (cases[q].with & MASK) desc.cells.mask = mask;
            if (cases[q].with & CELLS) desc.cells.beta_cell = array[0], desc.cells.alpha_cell = array[3];
            for (int a = 0; a < 3; a++) {
                desc.centring[a] = PG_CELL, set_ends(&desc, a, cases[q].ends[a]);
                if (cases[q].with & FACES) desc.cells.beta_face[a] = array[a];
                if (cases[q].with & STRETCHED) desc.coord[a] = coord[a];
            }
            desc.stride_u[0] = desc.stride_f[0] = row, desc.stride_u[1] = desc.stride_f[1] = plane;
            memset(u[backend], 0, room * size);
            pg_solver *solver = create(&desc);
            const pg_stop stop = {.rtol = PG_NONE, .max_iter = 2};
            if (cases[q].flags & PG_CG)
                OK(pg_solve(solver, u[backend], f, &stop), solver);
            else
                OK(pg_cycle(solver, u[backend], f, 2), solver);
            pg_destroy(solver);
        }
        check_alike(u, room, f32, q);
        for (int a = 0; a < 4; a++) free(array[a]);
        for (int a = 0; a < 3; a++) free(coord[a]);
        free(mask), free(u[0]), free(u[1]), free(f);
    }
}

static double residual_of(pg_solver *solver, const double *u, const double *f, double *r)
{
    double norm;
    OK(pg_residual(solver, u, f, r), solver);
    OK(pg_norm(solver, r, PG_NORM_L2, &norm), solver);
    return norm;
}

static void sweeps_and_cycles_reduce_the_residual(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const names[] = {"obstacle", "liquid", "porous", "cut cells", "layers"};
    for (int q = 0; q < 8; q++) {
        scene s;
        assert_true(scene_create(&s, names[q % 5], full_or_small(24, 9), 3));
        const size_t cells = scene_cells(&s);
        double *f = random_rhs(&s), *u = allocate(cells * sizeof *u), *r = allocate(cells * sizeof *r);
        pg_desc desc = {.backend = backend, .flags = PG_VCYCLE, .coarsest = 8, .alpha = 1};
        if (q >= 5) set_choice(&desc, choice_of(&desc) | PG_COARSEN_CELLS);
        scene_describe(&s, &desc);
        for (size_t c = 0; c < cells; c++) u[c] = s.mask && s.mask[c] ? NAN : 0;
        pg_solver *solver = create(&desc);
        const double first = residual_of(solver, u, f, r);
        OK(pg_smooth(solver, u, f, 2), solver);
        const double smoothed = residual_of(solver, u, f, r);
        OK(pg_cycle(solver, u, f, 4), solver);
        const double cycled = residual_of(solver, u, f, r);
        if (!(smoothed < first && cycled < 0.6 * smoothed))
            fail_msg("%s: residuals %g, smoothed %g, after four cycles %g", names[q % 5], first, smoothed, cycled);
        for (size_t c = 0; c < cells; c++)
            if (s.mask && s.mask[c] && u[c] != 0) fail_msg("%s: u is %g outside", names[q % 5], u[c]);
        pg_destroy(solver);
        scene_free(&s);
        free(f), free(u), free(r);
    }
}

/* Of f that no u fits sweeps and cycles take nothing away, no more than without a mask: with one that is all fluid, or openness
   of 1, sweeps give the same, and those of cycles, whose smoother is another one there, the same with either; and the
   report stays that of the last solve. */
static void pieces_leave_f_as_it_is(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 12 };
    static const unsigned choices[] = {PG_JACOBI, PG_RBGS, PG_VCYCLE, PG_WCYCLE, PG_VCYCLE | PG_SYMMETRIC};
    unsigned char mask[N * N] = {0};
    double open[N * (N + 1)], u[3][N * N], f[N * N];
    for (int q = 0; q < N * (N + 1); q++) open[q] = 1;
    for (int c = 0; c < N * N; c++) f[c] = 1 + sin(c);
    for (size_t q = 0; q < sizeof choices / sizeof *choices; q++)
        for (int cells = 0; cells < 3; cells++) {
            pg_desc desc = {.n = {N, N}, .h = {1, 1}, .centring = {PG_CELL, PG_CELL}, .backend = backend};
            set_choice(&desc, choices[q]);
            if (choices[q] == PG_JACOBI) desc.omega = 0.8;
            set_ends(&desc, 0, "NN"), set_ends(&desc, 1, "NN");
            if (cells == 1) desc.cells.mask = mask;
            if (cells == 2) desc.cells.openness[0] = desc.cells.openness[1] = open;
            pg_solver *solver = create(&desc);
            pg_report report[2];
            memset(u[cells], 0, sizeof u[cells]);
            const pg_stop stop = {.rtol = PG_NONE, .max_iter = 1};
            OK(pg_solve(solver, u[cells], f, &stop), solver);
            OK(pg_get_report(solver, &report[0]), solver);
            assert_true(fabs(report[0].removed_mean - 1) < 0.1);
            memset(u[cells], 0, sizeof u[cells]);
            OK(pg_smooth(solver, u[cells], f, 2), solver);
            double sum = 0, off = 0, most = 0;
            for (int c = 0; c < N * N; c++) {
                sum += u[cells][c], most = fmax(most, fabs(u[cells][c]));
                off = fmax(off, fabs(u[cells][c] - u[q < 2 || cells < 1 ? 0 : 1][c]));
            }
            if (!(sum > 0.2 * N * N) || !(off <= 1e-12 * most)) fail_msg("%s, cells %d: sum %g, off by %g of %g", describe(&desc), cells, sum, off, most);
            if (q >= 2) {    /* what a cycle gives is linear in f, a constant in it is not lost */
                double one[N * N], v[2][N * N];
                memset(v, 0, sizeof v);
                for (int c = 0; c < N * N; c++) one[c] = f[c] + 2;
                OK(pg_cycle(solver, v[0], f, 1), solver);
                OK(pg_cycle(solver, v[1], one, 1), solver);
                most = off = 0;
                for (int c = 0; c < N * N; c++) off = fmax(off, fabs(v[1][c] - v[0][c])), most = fmax(most, fabs(v[0][c]));
                if (cells && !(off > 0.1 * most)) fail_msg("%s, cells %d: off %g of %g", describe(&desc), cells, off, most);
            }
            OK(pg_get_report(solver, &report[1]), solver);
            assert_true(report[1].removed_mean == report[0].removed_mean && report[1].singular_components == report[0].singular_components);
            pg_destroy(solver);
        }
}

/* Conjugate gradients of the user's own around the symmetric cycle. Returns the iterations to 1e-8. */
static int own_conjugate_gradients(pg_solver *solver, size_t cells, double *r)
{
    double *z = allocate(cells * sizeof *z), *d = allocate(cells * sizeof *d), *q = allocate(cells * sizeof *q);
    double rz = 0, first, norm, dq, before;
    int steps = 0;
    OK(pg_norm(solver, r, PG_NORM_L2, &first), solver);
    for (norm = first; norm > 1e-8 * first && steps < 50; steps++) {
        memset(z, 0, cells * sizeof *z);
        OK(pg_cycle(solver, z, r, 1), solver);
        before = rz;
        OK(pg_dot(solver, r, z, &rz), solver);
        for (size_t c = 0; c < cells; c++) d[c] = z[c] + (steps ? rz / before * d[c] : 0);
        OK(pg_apply(solver, d, q), solver);
        OK(pg_dot(solver, d, q, &dq), solver);
        for (size_t c = 0; c < cells; c++) r[c] -= rz / dq * q[c];
        OK(pg_norm(solver, r, PG_NORM_L2, &norm), solver);
    }
    free(z), free(d), free(q);
    return steps;
}

static void conjugate_gradients_of_ones_own(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const names[] = {"obstacle", "baffles", "liquid"};
    for (int q = 0; q < 3; q++) {
        scene s;
        assert_true(scene_create(&s, names[q], full_or_small(33, 11), 3));
        double *f = random_rhs(&s);
        pg_desc desc = {.backend = backend, .flags = PG_VCYCLE | PG_SYMMETRIC};
        scene_describe(&s, &desc);
        for (size_t c = 0; c < scene_cells(&s); c++)
            if (s.mask[c]) f[c] = 0;
        pg_solver *solver = create(&desc);
        const int steps = own_conjugate_gradients(solver, scene_cells(&s), f);
        if (steps > 14) fail_msg("%s: %d iterations", names[q], steps);
        pg_destroy(solver);
        scene_free(&s);
        free(f);
    }
}

/* A solve that was not told a guess and began with 0 names PG_GUESS_U, and no other does; nor does the first one, which has
   no u to begin with. */
static void a_guess_that_is_ignored_is_named(void **state)
{
    enum { N = 48 };
    static double u[N * N], f[N * N];
    static unsigned char mask[N * N];
    const pg_backend backend = backend_or_skip(state);
    const int n = full_or_small(N, 20);
    for (int c = 0; c < n * n; c++) mask[c] = c % 7 == 3 && c / n % 5 ? PG_SOLID : PG_FLUID, f[c] = sin(c);
    for (int q = 0; q < 12; q++) {
        static const unsigned methods[] = {0, PG_FMG, PG_CG, PG_VCYCLE};
        static const pg_guess guesses[] = {PG_GUESS_DEFAULT, PG_GUESS_ZERO, PG_GUESS_U};
        pg_desc d = {.n = {n, n}, .centring = {PG_CELL, PG_CELL}, .backend = backend, .cells.mask = mask};
        set_choice(&d, methods[q % 4]);
        const pg_stop stop = {.rtol = 1e-9, .guess = guesses[q / 4], .max_iter = 20};
        pg_report report;
        pg_solver *solver = create(&d);
        memset(u, 0, sizeof u);
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        if (strstr(report.message, "PG_GUESS_U")) fail_msg("%d, the first solve: %s", q, report.message);
        memset(u, 0, sizeof u);
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        pg_destroy(solver);
        const int names = strstr(report.message, "PG_GUESS_U") && strstr(report.message, "relative_to_first");
        if (report.iterations < 3 || names != (q / 4 == 0 && q % 4 < 2)) fail_msg("%d: %s", q, report.message);
    }
}

/* ---- Parts of the fluid ------------------------------------------------------------------------------------------ */

enum { PARTS_CELLS = 11 * 11 * 11 + 20, PARTS_BATCH = 2 };

/* Their labels by filling, from the cells' own open faces as the header has them; the number of parts. */
static int fill_parts(const pg_desc *d, const double *openness[3], const unsigned char *mask, int *labels)
{
    const int n[3] = {d->n[0], d->n[1], d->n[2]}, cells = n[0] * n[1] * n[2];
    static int todo[PARTS_CELLS];
    int parts = 0;
    for (int c = 0; c < cells; c++) labels[c] = -1;
    for (int begin = 0; begin < cells; begin++) {
        if (mask[begin] != PG_FLUID || labels[begin] >= 0) continue;
        int count = 0;
        labels[begin] = parts;
        todo[count++] = begin;
        while (count > 0) {
            const int c = todo[--count], at[3] = {c % n[0], c / n[0] % n[1], c / n[0] / n[1]};
            for (int q = 0; q < 6; q++) {
                const int a = q / 2;
                int to[3] = {at[0], at[1], at[2]}, face[3] = {at[0], at[1], at[2]};
                to[a] += q % 2 ? 1 : -1, face[a] += q % 2;
                if (d->face[2 * a].kind == PG_PERIODIC) to[a] = (to[a] + n[a]) % n[a], face[a] %= n[a];
                if (n[a] == 1 || to[a] < 0 || to[a] >= n[a]) continue;
                const int nx = n[0] + (a == 0), ny = n[1] + (a == 1), other = to[0] + n[0] * (to[1] + n[1] * to[2]);
                if (openness[a] && openness[a][face[0] + nx * (face[1] + ny * face[2])] == 0) continue;
                if (mask[other] != PG_FLUID || labels[other] >= 0) continue;
                labels[other] = parts;
                todo[count++] = other;
            }
        }
        parts++;
    }
    return parts;
}

/* The widths of the cells along an axis, by its edges. */
static double part_width(const pg_desc *d, int axis, int i)
{
    return d->coord[axis] ? d->coord[axis][i + 1] - d->coord[axis][i] : d->h[axis];
}

static void the_parts_of_the_fluid_are_told(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static int labels[PARTS_CELLS], expected[PARTS_CELLS];
    static unsigned char mask[PARTS_CELLS], next[PARTS_CELLS];
    static double open[3][2 * PARTS_CELLS], x[PARTS_BATCH * 2 * PARTS_CELLS], before[PARTS_CELLS], f[PARTS_CELLS];
    static float narrow_x[PARTS_BATCH * 2 * PARTS_CELLS], narrow_open[3][2 * PARTS_CELLS];
    static const unsigned methods[] = {0, PG_F32, PG_MIXED, PG_CG | PG_PRECOND_DIAGONAL, PG_JACOBI | PG_F32, PG_COARSEN_CELLS};
    rng r = {28};
    for (int q = 0; q < full_or_small(90, 45); q++) {
        pg_desc d = {.dim = 1 + q % 3, .backend = backend, .alpha = q % 4 == 3 ? 0.5 : 0};
        set_choice(&d, methods[q % 6]);
        double coord[24];
        const double *faces[3] = {NULL, NULL, NULL};
        int cells = 1, single = d.flags & PG_F32 ? 1 : 0, room = 1 + q % 50, parts;
        for (int a = 0; a < 3; a++) {
            d.n[a] = a < d.dim ? rng_int(&r, 3, d.dim == 1 ? 20 : 11) : 1, d.centring[a] = PG_CELL, d.h[a] = 0.5 + a;
            set_ends(&d, a, a >= d.dim ? "DD" : q % 5 == a ? "PP" : q % 7 ? "NN" : "DN");
            cells *= d.n[a];
        }
        if (q % 4 == 1) d.coord[0] = coord, d.h[0] = 0;
        coord[0] = 0;
        for (int i = 0; i < d.n[0]; i++) coord[i + 1] = coord[i] + 1 + i % 3;
        const int wide = q % 2 ? d.n[0] : d.n[0] + 3, problem = wide * d.n[1] * d.n[2] + q % 2;
        d.batch = q % 3 ? 1 : PARTS_BATCH, d.stride_u[0] = wide, d.stride_u[2] = problem;
        d.stride_u[1] = (int64_t)wide * d.n[1];
        for (int c = 0; c < cells; c++) {
            mask[c] = rng_int(&r, 0, 2) ? PG_FLUID : rng_int(&r, 0, 1) ? PG_SOLID : PG_AIR;
            next[c] = rng_int(&r, 0, 3) ? PG_FLUID : PG_SOLID;
        }
        mask[cells / 2] = next[cells / 3] = PG_FLUID;
        d.cells.mask = mask;
        for (int a = 0; a < d.dim && q % 2 && !(d.flags & PG_COARSEN_CELLS); a++) {
            for (int c = 0; c < 2 * PARTS_CELLS; c++) {
                open[a][c] = rng_int(&r, 0, 2) ? 0.25 * rng_int(&r, 1, 4) : 0;
                narrow_open[a][c] = (float)open[a][c];
            }
            faces[a] = open[a], d.cells.openness[a] = single ? (void *)narrow_open[a] : (void *)open[a];
        }
        for (int c = 0; c < PARTS_BATCH * problem; c++) {
            x[c] = ldexp(rng_uniform(&r, -1, 1), rng_int(&r, -20, 20));
            narrow_x[c] = (float)x[c];
            if (single) x[c] = narrow_x[c];
        }
        pg_solver *solver = create(&d);
        if (d.flags & PG_F32 || d.batch > 1 || d.stride_u[0] != d.n[0]) memset(before, 0, sizeof before);
        for (int again = 0; again < 2; again++) {
            double sums[PARTS_BATCH * 60], volumes[60];
            int count = room, found = 0;
            if (again && pg_set_cells(solver, &(pg_cells){.mask = next}) != PG_OK) fail_msg("%s", pg_last_error(solver));
            parts = fill_parts(&d, faces, again ? next : mask, expected);
            OK(pg_get_parts(solver, single ? (void *)narrow_x : (void *)x, labels, &count, sums, volumes), solver);
            if (count != parts) fail_msg("%s: %d parts instead of %d", describe(&d), count, parts);
            for (int c = 0; c < cells; c++)
                if (labels[c] != expected[c]) fail_msg("%s: cell %d is in %d, not %d", describe(&d), c, labels[c], expected[c]);
            for (int p = 0; p < parts && p < room; p++, found++)
                for (int b = 0; b < d.batch; b++) {
                    long double sum = 0, volume = 0, most = 0;
                    for (int c = 0; c < cells; c++) {
                        const int i = c % d.n[0], j = c / d.n[0] % d.n[1], k = c / d.n[0] / d.n[1];
                        const double v = x[i + j * wide + k * wide * d.n[1] + b * problem];
                        long double w = part_width(&d, 0, i);
                        for (int a = 1; a < d.dim; a++) w *= part_width(&d, a, a == 1 ? j : k);
                        if (expected[c] >= 0) most = fmaxl(most, fabsl(v) * w);
                        if (expected[c] == p) sum += w * v, volume += w;
                    }
                    if (!(fabsl(sums[p + room * b] - sum) <= 1e-14L * most + 1e-12L * fabsl(sum)))
                        fail_msg("%s: sum %g of part %d, not %Lg", describe(&d), sums[p + room * b], p, sum);
                    if (!(fabsl(volumes[p] - volume) <= 1e-12L * volume))
                        fail_msg("%s: volume %g of part %d, not %Lg", describe(&d), volumes[p], p, volume);
                }
            assert_true(found > 0);
        }
        pg_destroy(solver);
    }
    (void)f;
}

/* pg_get_parts leaves the handle as it was: the next solve has the bits of a new handle's. */
static void parts_leave_no_trace_in_solves(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {0, PG_MIXED, PG_CG | PG_PRECOND_AINV, PG_VCYCLE, PG_JACOBI, PG_COARSEN_CELLS, PG_BICGSTAB, PG_SOR};
    enum { N = 40 };
    static double u[2][N * N], f[N * N], sums[N * N];
    static unsigned char mask[N * N];
    static int labels[N * N];
    for (int c = 0; c < N * N; c++) {    /* two closed rooms, one with air, and solid in between, whole bricks of it */
        const int i = c % N, j = c / N;
        mask[c] = i == 15 || (i > 15 && i < 32 && j < 20) || (j == 20 && i < 15) ? PG_SOLID : i == 3 && j > 30 ? PG_AIR : PG_FLUID;
        f[c] = sin(c) + 0.3;
    }
    for (size_t q = 0; q < sizeof methods / sizeof *methods; q++) {
        pg_desc d = {.n = {N, N}, .centring = {PG_CELL, PG_CELL}, .backend = backend, .cells.mask = mask};
        set_choice(&d, methods[q]);
        set_ends(&d, 0, "NN"), set_ends(&d, 1, "NN");
        const pg_stop stop = {.rtol = PG_NONE, .max_iter = 5, .guess = PG_GUESS_ZERO};
        pg_report report[2];
        for (int with = 0; with < 2; with++) {
            pg_solver *solver = create(&d);
            int count = N * N;
            OK(pg_solve(solver, u[with], f, &stop), solver);
            if (with) OK(pg_get_parts(solver, u[1], labels, &count, sums, NULL), solver);
            if (with) assert_int_equal(count, 3);
            if (with && methods[q] == 0)    /* means of singular parts are removed */
                for (int p = 0; p < 3; p++) assert_true(p == labels[N - 1] || p == labels[0] ? fabs(sums[p]) < 1e-9 : 1);
            OK(pg_solve(solver, u[with], f, &stop), solver);
            OK(pg_get_report(solver, &report[with]), solver);
            pg_destroy(solver);
        }
        assert_memory_equal(u[0], u[1], sizeof u[0]);
        assert_int_equal(report[0].singular_components, report[1].singular_components);
        assert_true(report[0].removed_mean == report[1].removed_mean);
    }
}

/* More parts than there is room for sums on the device at a time, and than there are entries; no fluid elsewhere. */
static void parts_by_the_hundred_thousand(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int n[3] = {128, 128, full_or_small(80, 66)}, cells = n[0] * n[1] * n[2];
    unsigned char *const mask = (unsigned char *)allocate((size_t)cells);
    int *const labels = (int *)allocate((size_t)cells * sizeof *labels), expected = cells / 8;
    double *const sums = (double *)allocate((size_t)expected * 2 * sizeof *sums), *const volumes = sums + expected;
    float *const x = (float *)allocate((size_t)cells * sizeof *x);
    for (int c = 0; c < cells; c++) {    /* every second cell along each axis */
        const int i = c % n[0], j = c / n[0] % n[1], k = c / n[0] / n[1];
        mask[c] = i % 2 || j % 2 || k % 2 ? PG_SOLID : PG_FLUID;
        x[c] = mask[c] ? NAN : (float)c;
    }
    pg_desc d = {.n = {n[0], n[1], n[2]}, .h = {1, 1, 1}, .centring = {PG_CELL, PG_CELL, PG_CELL}, .backend = backend};
    set_choice(&d, PG_F32 | PG_CG | PG_PRECOND_DIAGONAL), d.cells.mask = mask, d.alpha = 1;
    pg_solver *solver = create(&d);
    int count = expected;
    OK(pg_get_parts(solver, x, labels, &count, sums, volumes), solver);
    assert_int_equal(count, expected);
    for (int c = 0; c < cells; c++) {
        if (mask[c] ? labels[c] != -1 : labels[c] < 0 || labels[c] >= expected) fail_msg("cell %d: %d", c, labels[c]);
        if (!mask[c] && !(fabs(sums[labels[c]] - x[c]) < 1e-6 && fabs(volumes[labels[c]] - 1) < 1e-9))
            fail_msg("part %d: %g, %g", labels[c], sums[labels[c]], volumes[labels[c]]);
    }
    x[0] = NAN, count = 3;
    OK(pg_get_parts(solver, x, NULL, &count, sums, NULL), solver);
    assert_true(count == expected && isnan(sums[0]) && isnan(sums[2]));
    pg_destroy(solver);
    free(mask), free(labels), free(sums), free(x);
}

static void parts_are_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static double u[RCELLS], sums[RCELLS];
    int labels[RCELLS], count = RCELLS;
    pg_desc desc = refusal_desc(backend);
    pg_solver *solver = create(&desc);
    failures = 0;
#define REFUSED(call, status, field, value) expect_refusal(#call, call, status, pg_last_error(solver), field, value)
    REFUSED(pg_get_parts(solver, u, labels, NULL, sums, NULL), PG_ERROR_ARGUMENT, "count", "NULL");
    REFUSED(pg_get_parts(solver, NULL, labels, &count, sums, NULL), PG_ERROR_ARGUMENT, "x is NULL", "sums");
    REFUSED(pg_get_parts(solver, u, labels, &count, NULL, NULL), PG_ERROR_ARGUMENT, "sums is NULL", "x");
    REFUSED(pg_get_parts(solver, u, (int *)(void *)u, &count, sums, NULL), PG_ERROR_ARGUMENT, "labels", "overlap");
    count = -2;
    REFUSED(pg_get_parts(solver, NULL, labels, &count, NULL, NULL), PG_ERROR_ARGUMENT, "count", "-2");
    count = 0;
    REFUSED(pg_get_parts(solver, u, NULL, &count, sums, NULL), PG_ERROR_ARGUMENT, "count", "0");
    OK(pg_get_parts(solver, NULL, NULL, &count, NULL, NULL), solver);
    assert_int_equal(count, 1);
    pg_destroy(solver);
    desc.cells.mask = NULL;
    solver = create(&desc);
    REFUSED(pg_get_parts(solver, NULL, NULL, &count, NULL, NULL), PG_ERROR_UNSUPPORTED, "pg_get_parts", "mask");
    pg_destroy(solver);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(random_problems),
        ON_BOTH(random_problems_in_f32),
        ON_BOTH(the_direct_preconditioner_of_a_box_that_is_singular),
        ON_BOTH(the_direct_preconditioner_of_two_stretched_axes),
        ON_BOTH(robust_where_coarse_cells_fall_apart),
        ON_BOTH(robust_where_couplings_differ),
        ON_BOTH(new_media_choose_anew),
        ON_BOTH(u_is_0_outside),
        ON_BOTH(a_cell_alone_is_a_component),
        ON_BOTH(a_mask_without_fluid_is_solved),
        ON_BOTH(new_coefficients_leave_the_mask),
        ON_BOTH(iterations),
        ON_BOTH(iterations_of_weak_links),
        ON_BOTH(iterations_where_alpha_alone_holds),
        ON_BOTH(a_cycle_that_does_not_do_is_left),
        ON_BOTH(a_pipeline_that_does_not_do_is_left),
        ON_BOTH(iterations_in_flat_cells),
        ON_BOTH(iterations_in_labyrinths),
        ON_BOTH(iterations_in_wide_corridors),
        ON_BOTH(the_report_tells_what_was_chosen),
        ON_BOTH(iterations_with_fields_of_lines_and_planes),
        ON_BOTH(iterations_with_coarse_masks),
        ON_BOTH(same_bits),
        ON_BOTH(set_mask),
        ON_BOTH(masks_with_more_nodes),
        ON_BOTH(bricks_without_fluid),
        ON_BOTH(set_coefficients),
        ON_BOTH(set_cell_values),
        ON_BOTH(what_has_no_room_is_reported),
        ON_BOTH(what_cannot_be_is_refused_by_name),
        ON_BOTH(what_can_be_is_taken),
        ON_BOTH(u_is_that_of_the_only_air),
        ON_BOTH(refused_media_are_outdated),
        ON_BOTH(a_handle_without_a_mask_takes_none),
        ON_BOTH(what_a_solver_does_not_have_outdates_nothing),
        ON_BOTH(the_report_tells_of_the_empty_box),
        ON_BOTH(a_new_mask_may_have_other_strides), ON_BOTH(lists_that_have_lost_their_air), ON_BOTH(a_guess_that_is_ignored_is_named),
        ON_BOTH(the_parts_of_the_fluid_are_told),
        ON_BOTH(parts_leave_no_trace_in_solves),
        ON_BOTH(parts_by_the_hundred_thousand),
        ON_BOTH(parts_are_refused_by_name),
        ON_BOTH(nan_matters_inside_only),
        ON_BOTH(pg_apply_and_pg_residual_are_those_of_the_matrix),
        ON_CUDA(large_cycles_are_those_of_the_cpu),
        ON_CUDA(large_cycles_among_coefficients_are_those_of_the_cpu),
        ON_BOTH(sweeps_and_cycles_reduce_the_residual),
        ON_BOTH(pieces_leave_f_as_it_is),
        ON_BOTH(conjugate_gradients_of_ones_own),
    };
    return cmocka_run_group_tests_name("masks", tests, NULL, NULL);
}
