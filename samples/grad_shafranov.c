/* The Grad-Shafranov equation of tokamaks on an R-Z rectangle, by one direct solve a time:
   -(R d/dR (1/R d psi/dR) + d2 psi/dZ2) = f, with the metric w = k = 1/R along R and a plain Z axis.

       grad_shafranov [-b auto|cuda|cpu] [-n POINTS] [-o PATH]

   First an equilibrium of Solov'ev, psi known exactly and given on the sides of the box: errors and microseconds a
   solve on 65^2 to 513^2 points (or one grid of POINTS^2). Then psi = 0 on the sides and a source that depends on psi
   itself, by Picard's iteration: each step one solve. With -o pictures of the flux surfaces of both. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>
#include "picture.h"

static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};
static const double r_low = 0.6, r_high = 1.4, z_half = 0.7;

/* After A. J. Cerfon and J. P. Freidberg 2010: laplacian* psi = (1 - a) R^2 + a, and c such that psi = 0 at the inner,
   outer and highest point of a plasma like that of ITER. Of their further terms one, with little weight: without it the
   error falls with the fourth power of the spacing. */
static const double a = -0.155, elongation = 1.7, triangularity = 0.33, size = 0.32, weight_of_z4 = 0.01;
static double c[3];

static double particular(double r, double z)
{
    const double r2 = r * r, z2 = z * z, ln = log(r);
    return (1 - a) * r2 * r2 / 8 + a * r2 * ln / 2 + weight_of_z4 * (2 * z2 * z2 - 9 * z2 * r2 + (3 * r2 - 12 * z2) * r2 * ln);
}
static double homogeneous(int q, double r, double z)
{
    return q == 0 ? 1 : q == 1 ? r * r : r * r * (r * r - 4 * z * z);
}
static double solovev(double r, double z)
{
    double psi = particular(r, z);
    for (int q = 0; q < 3; q++) psi += c[q] * homogeneous(q, r, z);
    return psi;
}
static void choose_constants(void)
{
    const double r[3] = {1 - size, 1 + size, 1 - triangularity * size}, z[3] = {0, 0, elongation * size};
    double m[3][4];
    for (int p = 0; p < 3; p++) {
        for (int q = 0; q < 3; q++) m[p][q] = homogeneous(q, r[p], z[p]);
        m[p][3] = -particular(r[p], z[p]);
    }
    for (int p = 0; p < 3; p++)
        for (int row = 0; row < 3; row++)
            for (int q = 3; row != p && q >= p; q--) m[row][q] -= m[row][p] / m[p][p] * m[p][q];
    for (int p = 0; p < 3; p++) c[p] = m[p][3] / m[p][p];
}

/* n x n unknowns inside the box; its sides are known. */
typedef struct grid {
    int n;
    double h_r, h_z, *weight, *conductance, *psi, *f, *side[4];
    void *u, *right, *face[4];      /* where the solver runs */
    pg_desc desc;
    pg_solver *solver;
} grid;

static double r_of(const grid *g, double i) { return r_low + (i + 1) * g->h_r; }
static double z_of(const grid *g, double j) { return -z_half + (j + 1) * g->h_z; }

static void grid_create(grid *g, int points, pg_backend backend, int exact_sides)
{
    const int n = points - 2;
    memset(g, 0, sizeof *g);
    g->n = n, g->h_r = (r_high - r_low) / (n + 1), g->h_z = 2 * z_half / (n + 1);
    const size_t count = (size_t)n * n, bytes = count * sizeof(double);
    g->weight = sample_alloc((size_t)n * sizeof(double), PG_MEM_HOST);
    g->conductance = sample_alloc(((size_t)n + 1) * sizeof(double), PG_MEM_HOST);
    for (int i = 0; i < n; i++) g->weight[i] = 1 / r_of(g, i);
    for (int i = 0; i <= n; i++) g->conductance[i] = 1 / r_of(g, i - 0.5);
    pg_desc *d = &g->desc;
    d->n[0] = d->n[1] = n;
    d->h[0] = g->h_r, d->h[1] = g->h_z;
    d->weight[0] = g->weight, d->conductance[0] = g->conductance;
    d->flags = PG_DIRECT;
    d->backend = backend;
    d->memory = sample_memory(backend);
    g->psi = sample_alloc(bytes, PG_MEM_HOST), g->f = sample_alloc(bytes, PG_MEM_HOST);
    g->u = sample_alloc(bytes, d->memory), g->right = sample_alloc(bytes, d->memory);
    for (int q = 0; q < 4 && exact_sides; q++) {
        g->side[q] = sample_alloc((size_t)n * sizeof(double), PG_MEM_HOST);
        for (int i = 0; i < n; i++)
            g->side[q][i] = q < 2 ? solovev(q ? r_high : r_low, z_of(g, i)) : solovev(r_of(g, i), q == 3 ? z_half : -z_half);
        g->face[q] = sample_alloc((size_t)n * sizeof(double), d->memory);
        sample_copy(g->face[q], g->side[q], (size_t)n * sizeof(double), d->memory);
        d->face[q].array = g->face[q];
    }
    sample_check(pg_create(d, &g->solver), NULL);
}

static void grid_free(grid *g)
{
    const pg_memory memory = g->desc.memory;
    pg_destroy(g->solver);
    for (int q = 0; q < 4; q++)
        if (g->face[q]) sample_free(g->face[q], memory), free(g->side[q]);
    sample_free(g->u, memory), sample_free(g->right, memory);
    free(g->psi), free(g->f), free(g->weight), free(g->conductance);
}

/* f to psi, both on the host. */
static void solve(grid *g)
{
    const size_t count = (size_t)g->n * g->n;
    const pg_stop no_check = {.rtol = PG_NONE};
    sample_put(g->right, g->f, count, &g->desc);
    sample_check(pg_solve(g->solver, g->u, g->right, &no_check), g->solver);
    sample_get(g->psi, g->u, count, &g->desc);
}

/* Microseconds of one of many solves that follow each other. */
static double microseconds(grid *g)
{
    const pg_stop no_check = {.rtol = PG_NONE};
    const int solves = 20;
    pg_report report;
    struct timespec t[2];
    for (int e = 0; e < 2; e++) {
        clock_gettime(CLOCK_MONOTONIC, &t[e]);
        for (int q = 0; q < solves && e == 0; q++)
            sample_check(pg_solve(g->solver, g->u, g->right, &no_check), g->solver);
        sample_check(pg_get_report(g->solver, &report), g->solver);
    }
    clock_gettime(CLOCK_MONOTONIC, &t[1]);
    return ((double)(t[1].tv_sec - t[0].tv_sec) * 1e6 + (double)(t[1].tv_nsec - t[0].tv_nsec) * 1e-3) / solves;
}

static int draw(const grid *g, const char *path, const char *name, const char *title, double step)
{
    char text[500];
    const struct picture_axes axes = {{"R", "Z"}, {r_of(g, 0), z_of(g, 0)}, {r_of(g, g->n - 1), z_of(g, g->n - 1)}};
    struct picture_scale flux = {0, 0, 0, "psi"};
    for (int m = 0; m < g->n * g->n; m++) {
        flux.high = fmax(flux.high, fabs(g->psi[m]));
        if (g->psi[m] < -1e-12) flux.low = -1;
    }
    flux.low *= flux.high;
    struct picture p = picture_create(480, (int)(480 * 2 * z_half / (r_high - r_low)));
    picture_colours(&p, g->psi, g->n, g->n, &flux);
    const int good = picture_shows(&p, g->psi, g->n, g->n, &flux), ink = flux.low < 0 ? 40 : 255;
    picture_lines(&p, g->psi, g->n, g->n, step * flux.high, 1.2, 0.6, ink);
    picture_lines(&p, g->psi, g->n, g->n, 0, 2, 0.9, ink);
    picture_frame(&p, title, &axes, &flux);
    snprintf(text, sizeof text, "%s_%s", path, name);
    picture_write(&p, text);
    free(p.rgb);
    return good;
}

/* NaN if the picture is not as it should be. */
static double solovev_error(int points, pg_backend backend, const char *path)
{
    grid g;
    grid_create(&g, points, backend, 1);
    const int n = g.n;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) g.f[i + n * j] = -((1 - a) * r_of(&g, i) * r_of(&g, i) + a);
    solve(&g);
    double error = 0, largest = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            const double psi = solovev(r_of(&g, i), z_of(&g, j));
            error = fmax(error, fabs(g.psi[i + n * j] - psi)), largest = fmax(largest, fabs(psi));
        }
    printf("%4d^2 points: error %.2e of psi, %9.1f us a solve\n", points, error / largest, microseconds(&g));
    if (path && !draw(&g, path, "solovev", "Solovev's equilibrium: flux surfaces", 0.02)) error = NAN;
    grid_free(&g);
    return error / largest;
}

/* Current density (b R^2 + 1 - b) (2 x - x^2) / R, x = psi / max psi, scaled to a total current of 1. */
static int picard(int points, pg_backend backend, const char *path)
{
    const double b = 0.6;
    grid g;
    grid_create(&g, points, backend, 0);
    const int n = g.n, count = n * n;
    double *before = sample_alloc((size_t)count * sizeof *before, PG_MEM_HOST), change = 1, top = 1;
    int step = 0;
    for (int m = 0; m < count; m++) g.psi[m] = 1;
    for (; step < 100 && change > 1e-12; step++) {
        double current = 0;
        memcpy(before, g.psi, (size_t)count * sizeof *before);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                const double r = r_of(&g, i), x = g.psi[i + n * j] / top;
                g.f[i + n * j] = (b * r * r + 1 - b) * (2 * x - x * x);      /* = R times the current density */
                current += g.f[i + n * j] / r * g.h_r * g.h_z;
            }
        for (int m = 0; m < count; m++) g.f[m] /= current;
        solve(&g);
        top = change = 0;
        for (int m = 0; m < count; m++) {
            top = fmax(top, g.psi[m]);
            change = fmax(change, fabs(g.psi[m] - before[m]));
        }
        change /= top;
    }
    int axis = 0;
    for (int m = 0; m < count; m++)
        if (g.psi[m] > g.psi[axis]) axis = m;
    printf("Picard on %d^2 points: %d solves to a change of %.1e; magnetic axis at R = %.4f, Z = %.4f, psi = %.5f\n",
           points, step, change, r_of(&g, axis % n), z_of(&g, axis / n), top);
    const int shown = !path || draw(&g, path, "picard", "A current that depends on psi: flux surfaces", 0.1);
    const int good = shown && change <= 1e-12 && fabs(z_of(&g, axis / n)) < g.h_z && r_of(&g, axis % n) > 0.5 * (r_low + r_high);
    free(before);
    grid_free(&g);
    return good;
}

int main(int argc, char **argv)
{
    const pg_backend backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    const int only = atoi(sample_option(&argc, argv, "-n", "0"));
    const char *path = sample_option(&argc, argv, "-o", NULL);
    if (argc > 1 || only < 0 || (only && only < 17)) {
        fprintf(stderr, "usage: %s [-b auto|cuda|cpu] [-n POINTS, 17 or more] [-o PATH]\n", argv[0]);
        return 2;
    }
    choose_constants();
    double error[4] = {0};
    int good = 1;
    for (int q = 0; q < 4; q++) {
        const int points = only ? (only - 1) / (q ? 2 : 1) + 1 : (64 << q) + 1;
        if (only && q > 1) break;
        error[q] = solovev_error(points, backend, q == (only ? 0 : 3) ? path : NULL);
        const double order = q == 0 ? 2 : fabs(log2(error[q - 1] / error[q]));
        good = good && error[q] < 1 && fabs(order - 2) < 0.1;
    }
    printf("the error falls with the square of the spacing: %s\n", good ? "yes" : "NO");
    good = picard(only ? only : 129, backend, path) && good;
    return !good;
}
