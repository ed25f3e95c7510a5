/* The electric potential of a molecule in vacuum, on two grids, against the exact one: second order.

       potential [MOLECULE.pqr] [-s SPACING] [-w WIDTH] [-m MARGIN] [-o NAME]                    lengths in Angstrom

   Each charge q becomes a Gaussian of standard deviation w, so that -lap u = f with C = e / eps0 and
       f = sum q C exp(-r^2 / (2 w^2)) / (2 pi w^2)^(3/2),     u = sum q C erf(r / (sqrt(2) w)) / (4 pi r)   in volts,
   which is known everywhere. Its values on the sides of the box around the molecule are the Dirichlet data.
   Writes NAME.png, the plane through the middle of the charges, and NAME.vti, the volume, which ParaView opens. */
#include "picture.h"
#include "pqr.h"
#include "sample.h"

struct grid { int n[3]; double low[3], h[3]; };                     /* low: corner of the box */
struct error { double rms, largest, estimate; };

static const double pi = 3.14159265358979323846, C = 180.9512801;   /* V Angstrom (CODATA 2018) */
static struct molecule molecule;
static double width = 0.6;

/* Point (i,j,k) of the grid; -1 and n are on the sides of the box. */
static void point(const struct grid *g, int i, int j, int k, double x[3])
{
    x[0] = g->low[0] + (i + 1) * g->h[0];
    x[1] = g->low[1] + (j + 1) * g->h[1];
    x[2] = g->low[2] + (k + 1) * g->h[2];
}

static double distance(const struct atom *a, const double x[3])
{
    const double d[3] = {x[0] - a->r[0], x[1] - a->r[1], x[2] - a->r[2]};
    return sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
}

static double potential(const double x[3])
{
    double sum = 0;
    for (int m = 0; m < molecule.atoms; m++) {
        const double q = molecule.atom[m].charge, r = distance(&molecule.atom[m], x), s = r / (sqrt(2) * width);
        sum += s > 6 ? q / r : s > 1e-6 ? q * erf(s) / r : q * sqrt(2 / pi) / width;     /* erf(6) is 1 to round-off */
    }
    return C / (4 * pi) * sum;
}

static double *charge_density(const struct grid *g)
{
    double *f = calloc((size_t)g->n[0] * g->n[1] * g->n[2], sizeof *f);
    sample_require(f != NULL, "calloc");
    for (int m = 0; m < molecule.atoms; m++) {
        const struct atom *atom = &molecule.atom[m];
        const double top = atom->charge * C / pow(2 * pi * width * width, 1.5);
        int from[3], to[3];
        for (int a = 0; a < 3; a++) {       /* 6.5 widths away a Gaussian has fallen below 1e-9 of its top */
            from[a] = (int)fmax(0, (atom->r[a] - 6.5 * width - g->low[a]) / g->h[a] - 1);
            to[a] = (int)fmin(g->n[a], (atom->r[a] + 6.5 * width - g->low[a]) / g->h[a]);
        }
        for (int k = from[2]; k < to[2]; k++)
            for (int j = from[1]; j < to[1]; j++)
                for (int i = from[0]; i < to[0]; i++) {
                    double x[3];
                    point(g, i, j, k, x);
                    f[i + g->n[0] * (j + (size_t)g->n[1] * k)] += top * exp(-0.5 * pow(distance(atom, x) / width, 2));
                }
    }
    return f;
}

/* Solves on g and compares with the exact potential at every point. */
static double *solve(const struct grid *g, pg_report *report, struct error *error)
{
    const size_t count = (size_t)g->n[0] * g->n[1] * g->n[2];
    double *u = malloc(count * sizeof *u), *f = charge_density(g), *side[6], x[3];
    sample_require(u != NULL, "malloc");
    pg_desc desc = {0};
    for (int s = 0; s < 6; s++) {
        const int axis = s / 2, p = axis == 0, q = axis == 2 ? 1 : 2;           /* a face array runs along p, then q */
        int at[3];
        at[axis] = s % 2 ? g->n[axis] : -1;
        desc.n[axis] = g->n[axis];
        desc.h[axis] = g->h[axis];
        side[s] = malloc((size_t)g->n[p] * g->n[q] * sizeof *side[s]);
        sample_require(side[s] != NULL, "malloc");
        for (at[q] = 0; at[q] < g->n[q]; at[q]++)
            for (at[p] = 0; at[p] < g->n[p]; at[p]++) {
                point(g, at[0], at[1], at[2], x);
                side[s][at[p] + (size_t)g->n[p] * at[q]] = potential(x);
            }
        desc.face[s].array = side[s];
    }
    sample_check(pg_solve_once(&desc, u, f, report), NULL);         /* full multigrid, to a relative residual of 1e-8 */

    /* f is off by h^2/12 (d^4/dx^4 + d^4/dy^4 + d^4/dz^4) u, which shifts u by h^2/20 f where a single charge sits. */
    const double h = fmax(fmax(g->h[0], g->h[1]), g->h[2]);
    double sum = 0;
    *error = (struct error){0, 0, 0};
    for (size_t m = 0; m < count; m++) {
        point(g, (int)(m % g->n[0]), (int)(m / g->n[0] % g->n[1]), (int)(m / g->n[0] / g->n[1]), x);
        const double e = fabs(u[m] - potential(x));
        sum += e * e;
        error->largest = fmax(error->largest, e);
        error->estimate = fmax(error->estimate, h * h / 20 * fabs(f[m]));
    }
    error->rms = sqrt(sum / count);
    for (int s = 0; s < 6; s++) free(side[s]);
    free(f);
    return u;
}

/* The plane of the grid next to z: contours at 0 and, from 0.7 V on, every 40 % or so, and the outline of the atoms. */
static int draw(const struct grid *g, const double *u, double z, const char *output, char *name, size_t size)
{
    const int nx = g->n[0], ny = g->n[1], k = (int)((z - g->low[2]) / g->h[2] - 0.5);
    double *plane = malloc(sizeof *plane * nx * ny), *surface = malloc(sizeof *surface * nx * ny), x[3];
    sample_require(plane && surface, "malloc");
    for (int m = 0; m < nx * ny; m++) {
        point(g, m % nx, m / nx, k, x);
        plane[m] = asinh(u[m + (size_t)nx * ny * k]) / log(2);      /* from 1 V on about log2 of u */
        double near = 0;                                            /* a smooth minimum, to round the corners */
        for (int a = 0; a < molecule.atoms; a++)
            near += exp((molecule.atom[a].radius - distance(&molecule.atom[a], x)) / 0.15);
        surface[m] = -0.15 * log(near);
    }
    struct picture p = picture_create(1400, (int)(1400 * (ny - 1) * g->h[1] / ((nx - 1) * g->h[0]) + 0.5));
    picture_colours(&p, plane, nx, ny, 5);
    picture_lines(&p, plane, nx, ny, 0.5, 1.2, 0.35);
    picture_lines(&p, plane, nx, ny, 0, 2, 0.7);
    picture_lines(&p, surface, nx, ny, 0, 3, 0.9);
    const int good = picture_write(&p, output, name, size);
    free(p.rgb);
    free(plane);
    free(surface);
    return good;
}

int main(int argc, char **argv)
{
    const char *path = "samples/data/rgd.pqr", *output = "potential";
    double spacing = 0.4, margin = 4;
    for (int a = 1; a < argc; a++) {
        if (argv[a][0] != '-') path = argv[a];
        else if (a + 1 < argc && !strcmp(argv[a], "-s")) spacing = atof(argv[++a]);
        else if (a + 1 < argc && !strcmp(argv[a], "-w")) width = atof(argv[++a]);
        else if (a + 1 < argc && !strcmp(argv[a], "-m")) margin = atof(argv[++a]);
        else if (a + 1 < argc && !strcmp(argv[a], "-o")) output = argv[++a];
        else { puts("potential [MOLECULE.pqr] [-s SPACING] [-w WIDTH] [-m MARGIN] [-o NAME]"); return 2; }
    }
    sample_require(spacing > 0 && width > 0 && margin > 0, "the test that spacing, width and margin are positive");
    molecule = pqr_read(path);

    struct grid grid[2];                                            /* the second one has half the spacing */
    double charge = 0, z = 0, weight = 0;
    for (int a = 0; a < 3; a++) {
        double low = INFINITY, high = -INFINITY;
        for (int m = 0; m < molecule.atoms; m++) {
            low = fmin(low, molecule.atom[m].r[a] - margin);
            high = fmax(high, molecule.atom[m].r[a] + margin);
        }
        for (int s = 0; s < 2; s++) {
            const int intervals = (1 + s) * (int)ceil((high - low) / spacing);
            grid[s].n[a] = intervals - 1;
            grid[s].low[a] = low;
            grid[s].h[a] = (high - low) / intervals;
        }
    }
    for (int m = 0; m < molecule.atoms; m++) {
        const struct atom *atom = &molecule.atom[m];
        charge += atom->charge;
        weight += fabs(atom->charge);
        z += fabs(atom->charge) * atom->r[2];
    }
    printf("%s: %d atoms, total charge %+.3f e\n", path, molecule.atoms, round(charge * 1e3) / 1e3 + 0);

    double *u = NULL;
    struct error error[2];
    int good = 1;
    for (int s = 0; s < 2; s++) {
        const struct grid *g = &grid[s];
        pg_report report;
        free(u);
        u = solve(g, &report, &error[s]);
        good = good && report.outcome == PG_CONVERGED;
        printf("%d x %d x %d, spacing %.3f: %s after %d iterations, %.1f ms on %s\n", g->n[0], g->n[1], g->n[2],
               g->h[0], pg_outcome_string(report.outcome), report.iterations, report.milliseconds,
               report.backend == PG_CUDA ? "CUDA" : "the CPU");
        printf("    error: rms %.2e V, largest %.2e V; by theory about %.2e V\n", error[s].rms, error[s].largest,
               error[s].estimate);
    }
    char picture[512], volume[512];
    double first[3];
    point(&grid[1], 0, 0, 0, first);
    snprintf(volume, sizeof volume, "%s.vti", output);
    sample_require(draw(&grid[1], u, z / weight, output, picture, sizeof picture), "writing the picture");
    sample_require(volume_write(volume, "potential", u, grid[1].n, first, grid[1].h), "writing the volume");
    printf("wrote %s and %s\n", picture, volume);

    const double order = log2(error[0].rms / error[1].rms);
    good = good && order > 1.8 && order < 2.2 && error[1].largest < 1.2 * error[1].estimate;
    printf("order of the error in the spacing: %.2f: %s\n", order, good ? "as it should be" : "MISSED");
    free(u);
    free(molecule.atom);
    return !good;
}
