/* Ions at the surface of water: periodic along the surface, open across it.

       slab [-b auto|cuda|cpu] [-n CELLS, along the surface] [-o PATH]

   In each square of 1.5 nm an anion is a bit above the surface and a cation as far below it, in water of epsilon 80:
   -div(epsilon grad u) = rho / eps0. This dipole layer shifts the potential of all the water against that of the
   vacuum, and close to it the field shows where the ions are. epsilon varies along z alone: it is the metric there, and
   f is rho / (eps0 epsilon), see "layers" in the header. Open faces may be as near as one likes, since what is beyond
   them is exact: a box that just holds the ions gives what a high one does, to round-off. With -o a picture of u on
   both sides of the surface, two squares of it. */
#include "picture.h"

static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};
static const double pi = 3.14159265358979323846, water = 80, side = 1.5;   /* nm */
static const double charge = 18.09512801;                                   /* e / eps0 in V nm (CODATA 2018) */

/* n x n x 2 half cells of width h; the surface is in the middle, the ions are `depth` and a half cells from it. */
typedef struct slab {
    int n, half, depth;
    double h, *u;
} slab;

static double epsilon(const slab *s, int k) { return k < s->half ? water : 1; }

static slab solve(int n, int half, pg_face_kind ends, pg_backend backend)
{
    slab s = {n, half, n / 8, side / n, NULL};
    const size_t plane = (size_t)n * n, count = plane * 2 * half, middle = (n / 2) * (size_t)(n + 1);
    double *f = sample_alloc(count * sizeof *f, PG_MEM_HOST);
    double *weight = sample_alloc(2 * half * sizeof *weight, PG_MEM_HOST);
    double *conductance = sample_alloc((2 * half + 1) * sizeof *conductance, PG_MEM_HOST);
    for (int k = 0; k < 2 * half; k++) weight[k] = epsilon(&s, k);
    for (int k = 0; k <= 2 * half; k++)                     /* in a face between two media the harmonic mean */
        conductance[k] = 2 / (1 / epsilon(&s, k > 0 ? k - 1 : 0) + 1 / epsilon(&s, k < 2 * half ? k : k - 1));
    for (size_t m = 0; m < count; m++) f[m] = 0;
    f[middle + plane * (half + s.depth)] = -charge / pow(s.h, 3);
    f[middle + plane * (half - 1 - s.depth)] = charge / (pow(s.h, 3) * water);

    pg_desc desc = {.n = {n, n, 2 * half}, .centring = {PG_CELL, PG_CELL, PG_CELL}, .h = {s.h, s.h, s.h}};
    desc.weight[2] = weight, desc.conductance[2] = conductance;
    for (int q = 0; q < 6; q++) desc.face[q].kind = q < PG_Z_LOW ? PG_PERIODIC : ends;
    desc.backend = backend, desc.memory = sample_memory(backend);
    pg_solver *solver;
    sample_check(pg_create(&desc, &solver), NULL);
    void *u = sample_alloc(count * sizeof *f, desc.memory), *right = sample_alloc(count * sizeof *f, desc.memory);
    sample_put(right, f, count, &desc);
    sample_check(pg_solve(solver, u, right, NULL), solver);
    pg_report report;
    sample_check(pg_get_report(solver, &report), solver);
    sample_require(report.outcome == PG_CONVERGED, report.message);
    s.u = sample_alloc(count * sizeof *f, PG_MEM_HOST);
    sample_get(s.u, u, count, &desc);
    pg_destroy(solver);
    sample_free(u, desc.memory), sample_free(right, desc.memory);
    free(f), free(weight), free(conductance);
    return s;
}

/* The part of plane k that goes like cos(2 pi waves x / side); waves 0: the mean. */
static double mode(const slab *s, int k, int waves)
{
    double sum = 0;
    for (int m = 0; m < s->n * s->n; m++)
        sum += s->u[m + (size_t)s->n * s->n * k] * cos(2 * pi * waves * (m % s->n) / s->n);
    return sum / (s->n * s->n);
}

/* From plane to plane away from the ions the first mode has to fall by r, with r + 1/r = 2 + (h k)^2 of differences. */
static double decay_error(const slab *s)
{
    const double sine = 2 * sin(pi / s->n), mu = sine * sine, r = 1 / (1 + mu / 2 + sqrt(mu * (1 + mu / 4)));
    double error = 0, largest = 0;
    for (int k = s->half + s->depth; k < 2 * s->half - 1; k++) {
        const int below = 2 * s->half - 1 - k;
        error = fmax(error, fabs(mode(s, k + 1, 1) - r * mode(s, k, 1)));
        error = fmax(error, fabs(mode(s, below - 1, 1) - r * mode(s, below, 1)));
        largest = fmax(largest, fabs(mode(s, k, 1)));
    }
    return error / largest;
}

/* The largest difference of a box from a higher one, over the largest potential. */
static double difference(const slab *low, const slab *high)
{
    const size_t plane = (size_t)low->n * low->n;
    const double *const part = high->u + plane * (high->half - low->half);
    double error = 0, largest = 0;
    for (size_t m = 0; m < plane * 2 * low->half; m++) {
        error = fmax(error, fabs(low->u[m] - part[m]));
        largest = fmax(largest, fabs(part[m]));
    }
    return error / largest;
}

/* Two squares of the surface with the ions: from 0.1 V on the logarithm of u, with lines at every 40 %, and the lines of
   epsilon E, which begin and end at ions alone and turn aside at the surface. */
static int draw(const slab *s, const char *path)
{
    const int nx = 2 * s->n, nz = s->n / 4 * 4, first = s->half - nz / 3, count = nx * nz;
    const struct picture_scale volts = {-asinh(300), asinh(300), 0.1, "V"};
    const struct picture_axes axes = {{"x, nm", "height above the surface, nm"}, {0, (first - s->half + 0.5) * s->h},
                                      {(nx - 1) * s->h, (first - s->half + nz - 0.5) * s->h}};
    double *scaled = sample_alloc((size_t)4 * count * sizeof *scaled, PG_MEM_HOST), *height = scaled + count;
    double *along = height + count, *across = along + count;
    for (int m = 0; m < count; m++) {
        const int i = m % s->n, k = first + m / nx, n = s->n;
        const double *u = &s->u[n * (n / 2) + (size_t)n * n * k], here = epsilon(s, k);
        const double below = 1 / (1 / epsilon(s, k - 1) + 1 / here), above = 1 / (1 / epsilon(s, k + 1) + 1 / here);
        scaled[m] = asinh(u[i] / 0.1), height[m] = k - s->half + 0.5;
        along[m] = here * (u[(i + n - 1) % n] - u[(i + 1) % n]) / 2;
        across[m] = below * (u[i - n * n] - u[i]) + above * (u[i] - u[i + n * n]);
    }
    struct picture p = picture_create(1000, 1000 * (nz - 1) / (nx - 1));
    picture_colours(&p, scaled, nx, nz, &volts);
    picture_lines(&p, scaled, nx, nz, log(2) / 2, 1.2, 0.25, 40);
    picture_streamlines(&p, along, across, nx, nz, 30, 1.3, 0.6);
    const int good = picture_shows(&p, scaled, nx, nz, &volts);
    picture_lines(&p, height, nx, nz, 0, 3, 1, 40);                          /* the surface */
    picture_text(&p, 16, 30, 2.4, 0, 40, "vacuum"), picture_text(&p, 16, p.height - 14, 2.4, 0, 40, "water");
    picture_frame(&p, "Ions at the surface of water: potential, and lines of epsilon E", &axes, &volts);
    picture_write(&p, path);
    free(scaled), free(p.rgb);
    return good;
}

int main(int argc, char **argv)
{
    const pg_backend backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    const int n = (int)sample_number(&argc, argv, "-n", 48, 16, 512);
    const char *path = sample_option(&argc, argv, "-o", NULL);
    if (argc > 1) {
        fprintf(stderr, "usage: %s [-b auto|cuda|cpu] [-n CELLS] [-o PATH]\n", argv[0]);
        return 2;
    }
    slab high = solve(n, n, PG_OPEN, backend), low = solve(n, n / 8 + 2, PG_OPEN, backend);
    slab walls = solve(n, n / 8 + 2, PG_NEUMANN, backend);
    const double distance = (high.depth + 0.5) * high.h;
    const double jump = charge / (side * side) * distance * (1 + 1 / water), decay = decay_error(&high);
    const double found = mode(&high, 0, 0) - mode(&high, 2 * n - 1, 0), apart = difference(&low, &high);
    printf("ions %.3f nm from the surface: water %.6f V above vacuum; exactly %.6f V\n", distance, found, jump);
    printf("the pattern falls by 1/e in %.3f nm; error of its decay from plane to plane %.1e\n", side / (2 * pi),
           decay);
    printf("a box of %d planes in place of %d differs by %.1e, one between insulating walls by %.1e\n", 2 * low.half,
           2 * n, apart, difference(&walls, &high));
    const int shown = !path || draw(&high, path);
    const int good = shown && fabs(found - jump) < 1e-10 * jump && decay < 1e-12 && apart < 1e-12;
    printf("as it has to be: %s\n", good ? "yes" : "NO");
    free(high.u), free(low.u), free(walls.u);
    return !good;
}
