/* The electric potential of a molecule in vacuum, on two grids, against the exact one: second order.

       potential [MOLECULE.pqr] [-s SPACING] [-w WIDTH] [-m MARGIN] [-o NAME]           lengths in Angstrom

   Each charge q becomes a Gaussian of standard deviation w: -lap u = f, in volts, with C = e / eps0 and
       f = sum q C exp(-r^2 / (2 w^2)) / (2 pi w^2)^(3/2),    u = sum q C erf(r / (sqrt(2) w)) / (4 pi r),
   which is known everywhere. Its values on the sides of the box around the molecule are the Dirichlet data.
   Writes NAME.png, the plane in the middle of the charges with the field in it, and NAME.vti, the volume, which
   ParaView opens. */
#include "picture.h"
#include "pqr.h"
#include "sample.h"

static const double pi = 3.14159265358979323846, C = 180.9512801;   /* V Angstrom (CODATA 2018) */
static struct molecule input;
static double width;

static double charge_density(const struct molecule *molecule, const double x[3])
{
    double sum = 0;
    for (int m = 0; m < molecule->atoms; m++) {
        const double s = pqr_distance(&molecule->atom[m], x) / width;
        if (s < 6.5) sum += molecule->atom[m].charge * exp(-0.5 * s * s);   /* exp is below 1e-9 beyond */
    }
    return C / pow(2 * pi * width * width, 1.5) * sum;
}

static double potential(const struct molecule *molecule, const double x[3])
{
    double sum = 0;
    for (int m = 0; m < molecule->atoms; m++) {
        const double q = molecule->atom[m].charge, r = pqr_distance(&molecule->atom[m], x);
        const double s = r / (sqrt(2) * width);                     /* from 6 on erf(s) is 1 to round-off */
        sum += s > 6 ? q / r : s > 1e-6 ? q * erf(s) / r : q * sqrt(2 / pi) / width;
    }
    return C / (4 * pi) * sum;
}

/* The points of g with one index on an axis. Indices -1 and n are on the sides of the box. */
static struct grid layer(struct grid g, int axis, int index)
{
    g.first[axis] += index * g.h[axis];
    g.n[axis] = 1;
    return g;
}

/* A function of the molecule at the points of g, x fastest. */
static double *evaluate(double (*function)(const struct molecule *, const double x[3]), struct grid g)
{
    double *all = sample_alloc(sizeof *all * g.n[0] * g.n[1] * g.n[2], PG_MEM_HOST), *value = all;
    for (int k = 0; k < g.n[2]; k++)
        for (int j = 0; j < g.n[1]; j++)
            for (int i = 0; i < g.n[0]; i++) {
                const double step[3] = {i * g.h[0], j * g.h[1], k * g.h[2]};
                const double x[3] = {g.first[0] + step[0], g.first[1] + step[1], g.first[2] + step[2]};
                *value++ = function(&input, x);
            }
    return all;
}

/* Solves on g and compares with the exact potential at every point; rms: root mean square of the error. Returns u and,
   behind it, the field's components along x and y, -du/dx and -du/dy, at the same points. */
static double *solve(struct grid g, double *rms, int *good)
{
    const size_t count = (size_t)g.n[0] * g.n[1] * g.n[2];
    double *u = sample_alloc(3 * count * sizeof *u, PG_MEM_HOST), *f = evaluate(charge_density, g), *side[6];
    pg_desc desc = {0};
    memcpy(desc.n, g.n, sizeof desc.n);
    memcpy(desc.h, g.h, sizeof desc.h);
    for (int s = 0; s < 6; s++) {
        side[s] = evaluate(potential, layer(g, s / 2, s % 2 ? g.n[s / 2] : -1));
        desc.face[s].array = side[s];
    }
    pg_report report;
    pg_solver *solver;
    sample_check(pg_create(&desc, &solver), NULL);
    sample_check(pg_solve(solver, u, f, NULL), solver);         /* full multigrid, relative residual 1e-8 */
    sample_check(pg_get_report(solver, &report), solver);
    for (int a = 0; a < 2; a++)
        sample_check(pg_gradient(solver, u, a, u + (1 + a) * count, PG_AT_UNKNOWNS), solver);
    for (size_t m = count; m < 3 * count; m++) u[m] = -u[m];
    pg_destroy(solver);

    /* f is off by h^2/12 (d^4/dx^4 + d^4/dy^4 + d^4/dz^4) u: at a single charge that shifts u by h^2/20 f. */
    const double h = fmax(fmax(g.h[0], g.h[1]), g.h[2]);
    double *exact = evaluate(potential, g), largest = 0, theory = 0, sum = 0;
    for (size_t m = 0; m < count; m++) {
        const double e = fabs(u[m] - exact[m]);
        sum += e * e;
        largest = fmax(largest, e);
        theory = fmax(theory, h * h / 20 * fabs(f[m]));
    }
    *rms = sqrt(sum / count);
    *good = *good && report.outcome == PG_CONVERGED && largest < 1.2 * theory;
    printf("%d x %d x %d, spacing %.3f: %s after %d iteration%s, %.1f ms on %s\n",
           g.n[0], g.n[1], g.n[2], g.h[0], pg_outcome_string(report.outcome), report.iterations,
           report.iterations == 1 ? "" : "s", report.milliseconds, report.backend == PG_CUDA ? "CUDA" : "the CPU");
    printf("    error: rms %.2e V, largest %.2e V; by theory about %.2e V\n", *rms, largest, theory);
    for (int s = 0; s < 6; s++) free(side[s]);
    free(exact);
    free(f);
    return u;
}

/* The plane of g next to z: contours at 0 and from 0.7 V on every 40 % or so, field lines, and the outline of atoms. */
static int draw(struct grid g, const double *u, double z, const char *name)
{
    const int nx = g.n[0], ny = g.n[1], k = (int)((z - g.first[2]) / g.h[2] + 0.5);
    const size_t first = (size_t)nx * ny * k, count = (size_t)nx * ny * g.n[2];
    const struct picture_scale volts = {-asinh(20), asinh(20), 1, "V"};
    struct picture_axes axes = {{"x, Angstrom", "y, Angstrom"}, {g.first[0], g.first[1]}, {0, 0}};
    double *outline = evaluate(pqr_surface, layer(g, 2, k));
    double *plane = sample_alloc(sizeof *plane * nx * ny, PG_MEM_HOST);
    for (int m = 0; m < nx * ny; m++) plane[m] = asinh(u[m + first]);
    for (int a = 0; a < 2; a++) axes.high[a] = g.first[a] + (g.n[a] - 1) * g.h[a];
    struct picture p = picture_create(1200, (int)(1200 * (ny - 1) * g.h[1] / ((nx - 1) * g.h[0]) + 0.5));
    picture_colours(&p, plane, nx, ny, &volts);
    picture_lines(&p, plane, nx, ny, log(2) / 2, 1.2, 0.2, 40);
    picture_lines(&p, plane, nx, ny, 0, 2, 0.7, 40);
    picture_streamlines(&p, u + count + first, u + 2 * count + first, nx, ny, 36, 1.4, 0.6);
    picture_lines(&p, outline, nx, ny, 0, 3, 0.9, 40);
    const int good = picture_shows(&p, plane, nx, ny, &volts);
    picture_frame(&p, "Electric potential of a molecule, its field lines, and the outline of its atoms", &axes, &volts);
    picture_write(&p, name);
    free(p.rgb);
    free(plane);
    free(outline);
    return good;
}

int main(int argc, char **argv)
{
    const double spacing = atof(sample_option(&argc, argv, "-s", "0.4"));
    const double margin = atof(sample_option(&argc, argv, "-m", "4"));
    const char *name = sample_option(&argc, argv, "-o", "potential");
    width = atof(sample_option(&argc, argv, "-w", "0.6"));
    const char *path = argc > 1 ? argv[1] : "samples/data/rgd.pqr";
    if (argc > 2 || path[0] == '-' || !(spacing > 0 && width > 0 && margin > 0)) {
        puts("potential [MOLECULE.pqr] [-s SPACING] [-w WIDTH] [-m MARGIN] [-o NAME], lengths above 0");
        return 2;
    }
    input = pqr_read(path);
    printf("%s: %d atoms, total charge %+.3f e\n", path, input.atoms, input.charge);

    struct grid g;
    double *u = NULL, rms[2];
    int good = 1;
    for (int s = 0; s < 2; s++) {                                   /* the second grid has half the spacing */
        g = pqr_grid(&input, margin, spacing, 1 + s);
        free(u);
        u = solve(g, &rms[s], &good);
    }
    good = draw(g, u, input.middle[2], name) && good;
    volume_write(name, "potential", u, g.n, g.first, g.h);

    const double order = log2(rms[0] / rms[1]);
    good = good && order > 1.8 && order < 2.2;
    printf("order of the error in the spacing: %.2f: %s\n", order, good ? "as it should be" : "MISSED");
    free(u);
    free(input.atom);
    return !good;
}
