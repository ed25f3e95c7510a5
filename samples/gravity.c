/* Gravity of particles in empty space: clouds of particles on a grid that is open on all sides. G, M and lengths are 1.

       gravity [-b auto|cuda|cpu] [-n POINTS, along a side] [-o PATH]

   First the potential energy of a Plummer sphere and the virial of its forces on two grids, against their exact value:
   second order. Then two spheres fall past each other, by leapfrog steps, each with one solve of -lap u = -4 pi rho for
   the potential u, and its three derivatives. On the infinite grid forces are opposite and equal: momentum is kept to
   round-off, wherever the sides of the box are. What leaves the box flies straight on. With -o a picture of four
   moments. */
#include "picture.h"

static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};
static const double pi = 3.14159265358979323846, cut = 3, dt = 0.1;
enum { steps = 150 };

typedef struct grid { int n; size_t count; double h, *f, *u, *slope[3]; pg_solver *solver; } grid;
typedef struct stars { int count; double mass, *x, *v, *a; } stars;   /* three values a star */

static grid grid_create(int n, double side, pg_backend backend)
{
    const size_t count = (size_t)n * n * n;
    grid g = {.n = n, .count = count, .h = side / n, .f = sample_alloc(5 * count * sizeof *g.f, PG_MEM_HOST)};
    g.u = g.f + count;
    for (int a = 0; a < 3; a++) g.slope[a] = g.u + (a + 1) * count;
    pg_desc desc = {.n = {n, n, n}, .h = {g.h, g.h, g.h}, .backend = backend};
    for (int q = 0; q < 6; q++) desc.face[q].kind = PG_OPEN;
    sample_check(pg_create(&desc, &g.solver), NULL);
    return g;
}

/* The points around x, which is 0 in the middle, and their shares of a star there. Returns how many: 8, outside 0. */
static int cloud(const grid *g, const double x[3], size_t at[8], double share[8])
{
    double t[3];
    size_t low[3];
    for (int a = 0; a < 3; a++) {
        const double s = x[a] / g->h + 0.5 * (g->n - 1);
        if (!(s >= 0 && s < g->n - 1)) return 0;
        low[a] = (size_t)s, t[a] = s - (double)low[a];
    }
    for (int q = 0; q < 8; q++) {
        const int i = q & 1, j = q >> 1 & 1, k = q >> 2;
        at[q] = low[0] + i + g->n * (low[1] + j + g->n * (low[2] + k));
        share[q] = (i ? t[0] : 1 - t[0]) * (j ? t[1] : 1 - t[1]) * (k ? t[2] : 1 - t[2]);
    }
    return 8;
}

/* The accelerations of all stars; returns their potential energy. */
static double attract(grid *g, stars *s)
{
    size_t at[8];
    double share[8], energy = 0;
    for (size_t m = 0; m < g->count; m++) g->f[m] = 0;
    for (int p = 0; p < s->count; p++)
        for (int q = 0, end = cloud(g, s->x + 3 * p, at, share); q < end; q++)
            g->f[at[q]] -= 4 * pi * s->mass * share[q] / pow(g->h, 3);
    sample_check(pg_solve(g->solver, g->u, g->f, NULL), g->solver);
    for (int a = 0; a < 3; a++)
        sample_check(pg_gradient(g->solver, g->u, a, g->slope[a], PG_AT_UNKNOWNS), g->solver);
    for (int p = 0; p < s->count; p++) {
        for (int a = 0; a < 3; a++) s->a[3 * p + a] = 0;
        for (int q = 0, end = cloud(g, s->x + 3 * p, at, share); q < end; q++) {
            energy += s->mass * share[q] * g->u[at[q]] / 2;
            for (int a = 0; a < 3; a++) s->a[3 * p + a] -= share[q] * g->slope[a][at[q]];
        }
    }
    return energy;
}

/* Plummer spheres at +-x that move at -+v, each with the density 3 / (4 pi) (1 + r^2)^-5/2 up to a cut, and with random
   speeds whose pressure holds it, by the equation of Jeans. */
static stars spheres(int each, int how_many, const double x[3], const double v[3])
{
    const double inside = pow(1 + 1 / (cut * cut), -1.5);
    stars s = {.count = each * how_many, .mass = inside / each};
    s.x = sample_alloc(9 * s.count * sizeof *s.x, PG_MEM_HOST), s.v = s.x + 3 * s.count, s.a = s.v + 3 * s.count;
    for (int p = 0; p < s.count; p++) {
        const double r = 1 / sqrt(pow(inside * (p % each + 0.5) / each, -2. / 3) - 1), sign = p < each ? 1 : -1;
        const double z = sample_noise(11 * p), angle = pi * sample_noise(11 * p + 1), across = sqrt(1 - z * z);
        const double from[3] = {across * cos(angle), across * sin(angle), z}, fast = pow(36 * (1 + r * r), -0.25);
        for (int a = 0; a < 3; a++) s.x[3 * p + a] = r * from[a] + sign * x[a], s.v[3 * p + a] = -sign * v[a];
        for (int q = 0; q < 9; q++) s.v[3 * p + q / 3] += fast * sample_noise(11 * p + 2 + q);
    }
    return s;
}

/* The relative errors of energy and virial. */
static void one_sphere(int n, pg_backend backend, double error[2])
{
    const double t = atan(cut), s = sin(2 * t), exact = -3 * (t / 16 - sin(4 * t) / 64 - s * s * s / 48);
    grid g = grid_create(n, 3 * cut, backend);
    stars one = spheres(100000, 1, (double[3]){0}, (double[3]){0});
    const double energy = attract(&g, &one);
    double virial = 0;
    for (int m = 0; m < 3 * one.count; m++) virial += one.mass * one.x[m] * one.a[m];
    printf("%d^3 points: energy %.6f, virial %.6f, both exactly %.6f\n", n, energy, virial, exact);
    error[0] = energy / exact - 1, error[1] = virial / exact - 1;
    pg_destroy(g.solver), free(g.f), free(one.x);
}

/* The mass in each column along z, from 1e-3 on its logarithm, and lines of the potential in the middle plane. */
static int expose(const grid *g, double time, struct picture *p)
{
    const int n = g->n;
    const double end = g->h * (n - 1) / 2;
    const struct picture_axes axes = {{"x, radii of a cluster", "y, radii of a cluster"}, {-end, -end}, {end, end}};
    const struct picture_scale scale = {0, asinh(500), 1e-3, "mass of a column"};
    double *sheet = sample_alloc((size_t)n * n * sizeof *sheet, PG_MEM_HOST);
    char title[64];
    for (int m = 0; m < n * n; m++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum -= g->f[m + (size_t)n * n * k] * g->h / (4 * pi);
        sheet[m] = asinh(sum / 1e-3);
    }
    *p = picture_create(600, 600);
    picture_colours(p, sheet, n, n, &scale);
    const int good = picture_shows(p, sheet, n, n, &scale);
    picture_lines(p, g->u + (size_t)n * n * (n / 2), n, n, 0.1, 1.2, 0.5, 255);
    snprintf(title, sizeof title, "Two clusters of stars, and their potential, t = %g", time);
    picture_frame(p, title, &axes, &scale);
    free(sheet);
    return good;
}

static int two_spheres(int n, pg_backend backend, const char *path)
{
    grid g = grid_create(n, 18, backend);
    stars s = spheres(50000, 2, (double[3]){4, 1, 0}, (double[3]){0.35, 0, 0});
    struct picture moment[4];
    double change[3] = {0}, sizes = 0;
    attract(&g, &s);
    int good = expose(&g, 0, &moment[0]);
    for (int m = 0; m < 3 * s.count; m++) change[m % 3] -= s.v[m];
    for (int step = 1; step <= steps; step++) {
        for (int m = 0; m < 3 * s.count; m++) s.v[m] += dt / 2 * s.a[m], s.x[m] += dt * s.v[m];
        attract(&g, &s);
        for (int m = 0; m < 3 * s.count; m++) s.v[m] += dt / 2 * s.a[m];
        if (step % 10 == 0) fprintf(stderr, "step %d of %d\n", step, steps);
        if (step % (steps / 3) == 0) good = expose(&g, step * dt, &moment[3 * step / steps]) && good;
    }
    for (int m = 0; m < 3 * s.count; m++) change[m % 3] += s.v[m], sizes += fabs(s.v[m]);
    const double pushed = (fabs(change[0]) + fabs(change[1]) + fabs(change[2])) / sizes;
    printf("%d steps of two spheres: their momentum has changed by %.1e\n", steps, pushed);
    struct picture p = picture_sheet(moment, 4, 2);
    if (path) picture_write(&p, path);
    for (int q = 0; q < 4; q++) free(moment[q].rgb);
    pg_destroy(g.solver), free(g.f), free(s.x), free(p.rgb);
    return good && pushed < 1e-12;
}

int main(int argc, char **argv)
{
    const pg_backend backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    const int n = (int)sample_number(&argc, argv, "-n", 64, 32, 512);
    const char *path = sample_option(&argc, argv, "-o", NULL);
    if (argc > 1) return fprintf(stderr, "usage: %s [-b auto|cuda|cpu] [-n POINTS] [-o PATH]\n", argv[0]), 2;
    double error[2][2];
    for (int q = 0; q < 2; q++) one_sphere(n / (2 - q), backend, error[q]);
    const double order[2] = {log2(error[0][0] / error[1][0]), log2(error[0][1] / error[1][1])};
    printf("errors %.2e and %.2e, orders %.2f and %.2f\n", error[1][0], error[1][1], order[0], order[1]);
    const int good = two_spheres(n, backend, path) && fabs(order[0] - 2) < 0.3 && fabs(order[1] - 2) < 0.3;
    printf("as it has to be: %s\n", good ? "yes" : "NO");
    return !good;
}
