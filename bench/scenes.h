/* Scenes with obstacles and coefficients, for the benchmark and for test_masks.c: cubes and squares of n^dim cells,
   dim 2 or 3, that range from an empty box to what is hard for multigrid. The last axis points up, i is fastest. Same
   numbers everywhere: random ones are splitmix64's (Steele, Lea, Flood 2014).

       scene s;
       if (!scene_create(&s, "obstacle", 33, 3)) ...       no memory, or no such scene
       pg_desc desc = {0};
       scene_describe(&s, &desc);                          PG_F64; the arrays stay the scene's
       ...
       scene_free(&s); */
#ifndef SCENES_H
#define SCENES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "poisson_gpu.h"

typedef struct scene {
    const char *name;
    int n, dim;
    unsigned char *mask;            /* NULL: all fluid */
    double *beta, *openness[3];     /* of the cells and of the faces across each axis; NULL: 1 */
    char outer;                     /* outer faces: D, N, P or o: Neumann, but Dirichlet at the top of the last axis */
    uint64_t random;
} scene;

static const char *const scene_names[] = {
    "box",        "obstacle", "cut cells", "pockets", "liquid",     "checkerboard air", "dielectric", "rooms", "layers",
    "inclusions", "beta 1e6", "beta 1e-6", "porous",  "baffles",    "random 50%",       "beta per cell",
    "spiral 2",   "spiral 1", "maze"};
enum { SCENES = sizeof scene_names / sizeof *scene_names };

/* ---- Random numbers and places ---- */

static inline uint64_t scene_random(scene *s)
{
    uint64_t z = (s->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline double scene_uniform(scene *s) { return (double)(scene_random(s) >> 11) * 0x1p-53; }
static inline int scene_below(scene *s, int bound) { return (int)(scene_random(s) % (uint64_t)bound); }

/* Box and Muller's. */
static inline double scene_normal(scene *s)
{
    const double radius = sqrt(-2 * log(1 - scene_uniform(s)));
    return radius * cos(6.28318530717958647692 * scene_uniform(s));
}

static inline size_t scene_cells(const scene *s)
{
    const size_t n = (size_t)s->n;
    return s->dim == 3 ? n * n * n : n * n;
}
static inline void scene_place(const scene *s, size_t cell, int at[3])
{
    const size_t n = (size_t)s->n;
    at[0] = (int)(cell % n), at[1] = (int)(cell / n % n), at[2] = (int)(cell / n / n);
}
static inline size_t scene_at(const scene *s, const int at[3])
{
    const size_t n = (size_t)s->n;
    return (size_t)at[0] + n * ((size_t)at[1] + (s->dim == 3 ? n * (size_t)at[2] : 0));
}

/* The middle of a cell, in the unit cube. */
static inline void scene_middle(const scene *s, size_t cell, double x[3])
{
    int at[3];
    scene_place(s, cell, at);
    for (int a = 0; a < 3; a++) x[a] = a < s->dim ? (at[a] + 0.5) / s->n : 0;
}

/* Whether x lies in the ball; axes from dim on are 0 in both. */
static inline int scene_in_ball(const double x[3], const double middle[3], double radius)
{
    double square = 0;
    for (int a = 0; a < 3; a++) square += (x[a] - middle[a]) * (x[a] - middle[a]);
    return radius > 0 && square < radius * radius;
}

/* A point of the cube; a point that is given along all axes. */
static inline void scene_random_point(scene *s, double p[3])
{
    for (int a = 0; a < 3; a++) p[a] = a < s->dim ? scene_uniform(s) : 0;
}
static inline void scene_point(const scene *s, double all, double last, double p[3])
{
    for (int a = 0; a < 3; a++) p[a] = a < s->dim - 1 ? all : a == s->dim - 1 ? last : 0;
}

/* The planes across the last axis that the ball may touch, as cells from *from to before *to: to look at all cells for
   every ball would take most of the time of a large scene. */
static inline void scene_ball_range(const scene *s, const double middle[3], double radius, size_t *from, size_t *to)
{
    const size_t plane = scene_cells(s) / (size_t)s->n;
    const double height = middle[s->dim - 1];
    const double low = floor((height - radius) * s->n) - 1, high = ceil((height + radius) * s->n) + 1;
    *from = low > 0 ? (size_t)low * plane : 0;
    *to = high >= s->n ? scene_cells(s) : high > 0 ? (size_t)high * plane : 0;
}

static inline void scene_fill_ball(scene *s, const double middle[3], double radius, pg_cell_kind kind)
{
    double x[3];
    size_t from, to;
    scene_ball_range(s, middle, radius, &from, &to);
    for (size_t c = from; c < to; c++) {
        scene_middle(s, c, x);
        if (scene_in_ball(x, middle, radius)) s->mask[c] = (unsigned char)kind;
    }
}

/* ---- Masks ---- */

/* A sphere below a wall of one cell with an opening. */
static inline void scene_obstacle(scene *s)
{
    double x[3], middle[3];
    scene_point(s, 0.5, 0.35, middle);
    scene_fill_ball(s, middle, 0.18, PG_SOLID);
    for (size_t c = 0; c < scene_cells(s); c++) {
        int at[3];
        scene_place(s, c, at), scene_middle(s, c, x);
        if (at[s->dim - 1] == (int)(0.7 * s->n) && fabs(x[0] - 0.5) > 0.08) s->mask[c] = PG_SOLID;
    }
}

/* Closed shells that overlap: several singular parts beside a regular one. */
static inline void scene_pockets(scene *s)
{
    for (int q = 0; q < 20; q++) {
        double middle[3];
        scene_random_point(s, middle);
        const double radius = 0.06 + 0.1 * scene_uniform(s);
        scene_fill_ball(s, middle, radius, PG_SOLID);
        scene_fill_ball(s, middle, radius - 2.2 / s->n, PG_FLUID);
    }
}

/* Waves, spray, bubbles and an obstacle, in a closed box. */
static inline void scene_liquid(scene *s)
{
    double x[3], middle[3];
    s->outer = 'N';
    for (size_t c = 0; c < scene_cells(s); c++) {
        scene_middle(s, c, x);
        const double height = 0.5 + 0.08 * sin(7 * x[0] + 1) + 0.05 * cos(9 * x[s->dim - 2]), noise = scene_uniform(s);
        const int above = x[s->dim - 1] > height;
        s->mask[c] = (above ? noise >= 0.06 : noise < 0.01) ? PG_AIR : PG_FLUID;
    }
    for (int q = 0; q < 12; q++) {
        scene_random_point(s, middle), middle[s->dim - 1] *= 0.45;
        scene_fill_ball(s, middle, 0.02 + 0.05 * scene_uniform(s), PG_AIR);
        scene_random_point(s, middle), middle[s->dim - 1] = 0.65 + 0.3 * middle[s->dim - 1];
        scene_fill_ball(s, middle, 0.01 + 0.03 * scene_uniform(s), PG_FLUID);
    }
    scene_point(s, 0.3, 0.3, middle);
    scene_fill_ball(s, middle, 0.1, PG_SOLID);
}

static inline void scene_checkerboard(scene *s)
{
    double x[3];
    int at[3];
    s->outer = 'N';
    for (size_t c = 0; c < scene_cells(s); c++) {
        scene_place(s, c, at), scene_middle(s, c, x);
        if (x[s->dim - 1] > 0.5 && (at[0] + at[1] + at[2]) % 2 == 1) s->mask[c] = PG_AIR;
    }
}

/* Rooms of 7 cells between walls of one cell, with one gap of one cell in each wall. */
static inline void scene_rooms(scene *s)
{
    int at[3], room[3];
    for (size_t c = 0; c < scene_cells(s); c++) {
        scene_place(s, c, at);
        for (int a = 0; a < s->dim; a++)
            if (at[a] % 8 == 7) s->mask[c] = PG_SOLID;
    }
    scene rooms = *s;
    rooms.n = (s->n + 7) / 8;
    for (int a = 0; a < s->dim; a++)
        for (size_t q = 0; q < scene_cells(&rooms); q++) {
            int inside = 1;
            scene_place(&rooms, q, room);
            for (int b = 0; b < 3; b++) {
                at[b] = b >= s->dim ? 0 : 8 * room[b] + (a == b ? 7 : scene_below(s, 7));
                if (at[b] >= s->n) inside = 0;
            }
            if (inside) s->mask[scene_at(s, at)] = PG_FLUID;
        }
}

/* Plates every 4 cells across x, each with a hole of one cell, at opposite corners. */
static inline void scene_baffles(scene *s)
{
    int at[3];
    for (size_t c = 0; c < scene_cells(s); c++) {
        scene_place(s, c, at);
        if (at[0] % 4 != 3) continue;
        const int hole = at[0] / 4 % 2 ? 0 : s->n - 1;
        int is_hole = 1;
        for (int a = 1; a < s->dim; a++) is_hole &= at[a] == hole;
        if (!is_hole) s->mask[c] = PG_SOLID;
    }
}

/* One line of cells in the plane of x and y, both ends included, at every height. */
static inline void scene_line(scene *s, int x0, int x1, int y0, int y1, pg_cell_kind kind)
{
    for (int k = 0; k < (s->dim == 3 ? s->n : 1); k++)
        for (int x = x0; x <= x1 && x < s->n; x++)
            for (int y = y0; y <= y1 && y < s->n; y++) {
                const int at[3] = {x, y, k};
                s->mask[scene_at(s, at)] = (unsigned char)kind;
            }
}

/* A channel of so many cells between walls of one cell, winding inwards; each ring has a gap to the next one, and a
   stop that forces the full turn. */
static inline void scene_spiral(scene *s, int width)
{
    for (int ring = 0;; ring++) {
        const int a = (ring + 1) * (width + 1) - 1, b = s->n - 1 - a;
        if (b - a < 2) break;
        scene_line(s, a, a, a, b, PG_SOLID), scene_line(s, b, b, a, b, PG_SOLID);
        scene_line(s, a, b, a, a, PG_SOLID), scene_line(s, a, b, b, b, PG_SOLID);
        scene_line(s, a, a, a + 1, a + width, PG_FLUID);
        scene_line(s, ring * (width + 1), a - 1, a, a, PG_SOLID);
    }
}

static inline void scene_random_solids(scene *s)
{
    for (size_t c = 0; c < scene_cells(s); c++) s->mask[c] = scene_uniform(s) < 0.5 ? PG_SOLID : PG_FLUID;
}

/* ---- Masks that need room of their own: these return 0 where there is none ---- */

static inline int scene_compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The mean with both neighbours along an axis, half the weight its own; the ends meet. */
static inline void scene_blur(const scene *s, int axis, const double *from, double *to)
{
    const size_t n = (size_t)s->n, stride = axis == 0 ? 1 : axis == 1 ? n : n * n;
    for (size_t c = 0; c < scene_cells(s); c++) {
        const size_t i = c / stride % n, line = c - i * stride;
        to[c] = (from[line + (i + n - 1) % n * stride] + 2 * from[c] + from[line + (i + 1) % n * stride]) / 4;
    }
}

/* A smooth random medium, 65 % of it open. */
static inline int scene_porous(scene *s)
{
    const size_t cells = scene_cells(s);
    double *field = malloc(2 * cells * sizeof *field), *other = field + cells;
    if (!field) return 0;
    for (size_t c = 0; c < cells; c++) field[c] = scene_normal(s);
    for (int step = 0; step < 4 * s->dim; step++) {
        scene_blur(s, step % s->dim, field, other);
        memcpy(field, other, cells * sizeof *field);
    }
    qsort(other, cells, sizeof *other, scene_compare);
    const double limit = other[(size_t)(0.65 * (double)(cells - 1))];
    for (size_t c = 0; c < cells; c++) s->mask[c] = field[c] > limit ? PG_SOLID : PG_FLUID;
    free(field);
    return 1;
}

typedef struct scene_edge {
    double length;
    size_t from, to;
} scene_edge;

static inline size_t scene_root(size_t *parent, size_t node)
{
    while (parent[node] != node) node = parent[node] = parent[parent[node]];
    return node;
}

/* Kruskal's: opens the corridors of the shortest edges that close no ring. */
static inline void scene_grow_tree(scene *s, const scene *nodes, size_t *parent, scene_edge *edge)
{
    size_t edges = 0, stride = 1;
    int at[3], end[3];
    for (int a = 0; a < s->dim; a++, stride *= (size_t)nodes->n)
        for (size_t q = 0; q < scene_cells(nodes); q++) {
            scene_place(nodes, q, at);
            if (at[a] + 1 < nodes->n) edge[edges++] = (scene_edge){scene_uniform(s), q, q + stride};
        }
    qsort(edge, edges, sizeof *edge, scene_compare);
    for (size_t q = 0; q < scene_cells(nodes); q++) {
        parent[q] = q;
        scene_place(nodes, q, at);
        for (int a = 0; a < 3; a++) at[a] *= 2;
        s->mask[scene_at(s, at)] = PG_FLUID;
    }
    for (size_t e = 0; e < edges; e++) {
        const size_t p = scene_root(parent, edge[e].from), q = scene_root(parent, edge[e].to);
        if (p == q) continue;
        parent[p] = q;
        scene_place(nodes, edge[e].from, at), scene_place(nodes, edge[e].to, end);
        for (int a = 0; a < 3; a++) at[a] += end[a];
        s->mask[scene_at(s, at)] = PG_FLUID;
    }
}

/* A random spanning tree of corridors of one cell between walls of one cell. */
static inline int scene_maze(scene *s)
{
    scene nodes = *s;
    nodes.n = (s->n + 1) / 2;
    const size_t count = scene_cells(&nodes);
    size_t *parent = malloc(count * sizeof *parent);
    scene_edge *edge = malloc((size_t)s->dim * count * sizeof *edge);
    if (parent && edge) {
        memset(s->mask, PG_SOLID, scene_cells(s));
        scene_grow_tree(s, &nodes, parent, edge);
    }
    const int done = parent && edge;
    free(parent), free(edge);
    return done;
}

/* ---- Coefficients ---- */

/* Balls in a medium of 1. low is as likely as high. */
static inline void scene_inclusions(scene *s, double low, double high)
{
    double x[3], middle[3];
    size_t from, to;
    for (size_t c = 0; c < scene_cells(s); c++) s->beta[c] = 1;
    for (int q = 0; q < 60; q++) {
        scene_random_point(s, middle);
        const double radius = 0.02 + 0.1 * scene_uniform(s), value = scene_below(s, 2) ? high : low;
        scene_ball_range(s, middle, radius, &from, &to);
        for (size_t c = from; c < to; c++) {
            scene_middle(s, c, x);
            if (scene_in_ball(x, middle, radius)) s->beta[c] = value;
        }
    }
}

static inline double scene_decades(scene *s) { return pow(10, -3 + 6 * scene_uniform(s)); }

static inline void scene_beta_per_cell(scene *s)
{
    for (size_t c = 0; c < scene_cells(s); c++) s->beta[c] = scene_decades(s);
}

/* Layers across the last axis, 1 to 4 cells thick. */
static inline void scene_layers(scene *s)
{
    const size_t plane = scene_cells(s) / (size_t)s->n;
    double value = 1;
    for (int i = 0, left = 0; i < s->n; i++, left--) {
        if (left == 0) left = 1 + scene_below(s, 4), value = scene_decades(s);
        for (size_t c = 0; c < plane; c++) s->beta[(size_t)i * plane + c] = value;
    }
}

static inline void scene_dielectric(scene *s)
{
    double x[3], middle[3];
    s->outer = 'D';
    scene_point(s, 0.5, 0.5, middle);
    for (size_t c = 0; c < scene_cells(s); c++) {
        scene_middle(s, c, x);
        s->beta[c] = scene_in_ball(x, middle, 0.25) ? 2 : 80;
    }
}

/* Outside of a sphere and of a thin tilted plate; *near, where given: one of them passes within h of x. */
static inline int scene_is_open(const scene *s, const double x[3], int *near)
{
    double square = 0;
    for (int a = 0; a < s->dim; a++) square += (x[a] - 0.47) * (x[a] - 0.47);
    const double plate = fabs(0.6 * x[0] + 0.8 * x[s->dim - 1] - 1.05), h = 1.0 / s->n;
    if (near) *near = fabs(sqrt(square) - 0.23) < h || fabs(plate - 0.7 * h) < h;
    return square > 0.23 * 0.23 && plate > 0.7 * h;
}

/* The open part of a face across the axis around x, by 8 or 8 x 8 samples. */
static inline double scene_open_part(const scene *s, int axis, const double x[3])
{
    int near, open = 0, samples = 1;
    const int all = scene_is_open(s, x, &near);
    if (!near) return all;
    for (int a = 0; a < s->dim - 1; a++) samples *= 8;
    for (int q = 0; q < samples; q++) {
        double at[3] = {x[0], x[1], x[2]};
        int rest = q;
        for (int a = 0; a < s->dim; a++)
            if (a != axis) at[a] += ((rest % 8 + 0.5) / 8 - 0.5) / s->n, rest /= 8;
        open += scene_is_open(s, at, NULL);
    }
    return (double)open / samples;
}

/* Faces at the low end of the box are open. */
static inline void scene_cut_cells(scene *s)
{
    const size_t n = (size_t)s->n;
    for (int a = 0; a < s->dim; a++) {
        size_t size[3] = {n, n, s->dim == 3 ? n : 1}, at[3];
        size[a]++;
        for (at[2] = 0; at[2] < size[2]; at[2]++)
            for (at[1] = 0; at[1] < size[1]; at[1]++)
                for (at[0] = 0; at[0] < size[0]; at[0]++) {
                    double x[3] = {0};
                    for (int b = 0; b < s->dim; b++) x[b] = ((double)at[b] + (b == a ? 0 : 0.5)) / s->n;
                    s->openness[a][at[0] + size[0] * (at[1] + size[1] * at[2])] = at[a] ? scene_open_part(s, a, x) : 1;
                }
    }
}

/* ---- What a program calls ---- */

static inline void scene_free(scene *s)
{
    free(s->mask), free(s->beta);
    for (int a = 0; a < 3; a++) free(s->openness[a]);
    memset(s, 0, sizeof *s);
}

/* Whether the scene is one of names, which has a semicolon before and behind each. */
static inline int scene_is(const scene *s, const char *names)
{
    const size_t length = strlen(s->name);
    for (const char *at = names; length && (at = strstr(at, s->name)); at++)
        if (at > names && at[-1] == ';' && at[length] == ';') return 1;
    return 0;
}

/* The arrays that the scene has, all fluid and all 1. */
static inline int scene_allocate(scene *s)
{
    const size_t cells = scene_cells(s), faces = cells / (size_t)s->n * (size_t)(s->n + 1);
    int missing = 0;
    if (scene_is(s, ";cut cells;"))
        for (int a = 0; a < s->dim; a++) missing |= !(s->openness[a] = malloc(faces * sizeof(double)));
    else if (scene_is(s, ";dielectric;layers;inclusions;beta 1e6;beta 1e-6;beta per cell;"))
        missing = !(s->beta = malloc(cells * sizeof(double)));
    else
        missing = !(s->mask = calloc(cells, 1));
    return !missing;
}

/* Fills what scene_allocate made. Returns 0 where there is no memory, or no such scene. */
static inline int scene_fill(scene *s)
{
    if (scene_is(s, ";box;")) return 1;
    if (scene_is(s, ";porous;")) return scene_porous(s);
    if (scene_is(s, ";maze;")) return scene_maze(s);
    if (scene_is(s, ";obstacle;")) return scene_obstacle(s), 1;
    if (scene_is(s, ";cut cells;")) return scene_cut_cells(s), 1;
    if (scene_is(s, ";pockets;")) return scene_pockets(s), 1;
    if (scene_is(s, ";liquid;")) return scene_liquid(s), 1;
    if (scene_is(s, ";checkerboard air;")) return scene_checkerboard(s), 1;
    if (scene_is(s, ";dielectric;")) return scene_dielectric(s), 1;
    if (scene_is(s, ";rooms;")) return scene_rooms(s), 1;
    if (scene_is(s, ";layers;")) return scene_layers(s), 1;
    if (scene_is(s, ";inclusions;")) return scene_inclusions(s, 1e-3, 1e3), 1;
    if (scene_is(s, ";beta 1e6;")) return scene_inclusions(s, 1e6, 1e6), 1;
    if (scene_is(s, ";beta 1e-6;")) return scene_inclusions(s, 1e-6, 1e-6), 1;
    if (scene_is(s, ";baffles;")) return scene_baffles(s), 1;
    if (scene_is(s, ";random 50%;")) return scene_random_solids(s), 1;
    if (scene_is(s, ";beta per cell;")) return scene_beta_per_cell(s), 1;
    if (scene_is(s, ";spiral 1;spiral 2;")) return scene_spiral(s, s->name[7] - '0'), 1;
    return 0;
}

/* Returns 1, or 0 where there is no memory or no scene of this name, or dim is not 2 or 3; there is nothing to free
   then. The name must last as long as the scene. */
static inline int scene_create(scene *s, const char *name, int n, int dim)
{
    memset(s, 0, sizeof *s);
    if (dim < 2 || dim > 3 || n < 1) return 0;
    s->name = name, s->n = n, s->dim = dim, s->outer = 'o', s->random = 1;
    if (scene_allocate(s) && scene_fill(s)) return 1;
    scene_free(s);
    return 0;
}

/* The shape, centring, kinds of faces and arrays. The rest of *d stays; h is 1/n by default. */
static inline void scene_describe(const scene *s, pg_desc *d)
{
    d->dim = s->dim;
    for (int a = 0; a < 3; a++) {
        d->n[a] = a < s->dim ? s->n : 1;
        d->centring[a] = PG_CELL;
        d->cells.openness[a] = s->openness[a];
        for (int end = 0; end < 2 && a < s->dim; end++) {
            const int top = a == s->dim - 1 && end == 1;
            d->face[2 * a + end].kind = s->outer == 'D' || (s->outer == 'o' && top) ? PG_DIRICHLET
                                        : s->outer == 'P'                          ? PG_PERIODIC
                                                                                   : PG_NEUMANN;
        }
    }
    d->cells.mask = s->mask;
    d->cells.beta_cell = s->beta;
}

#endif
