/* Molecules in vacuum: the potential of smooth charges in empty space, by differences and by waves.

       molecule [-b auto|cuda|cpu] [-n POINTS, along a side] [-o PATH]

   Two molecules of water with a hydrogen bond between them, each atom a Gaussian cloud of charge: -lap u = 4 pi k rho.
   What they have of energy is known: two clouds of width s at distance r have q q' k erf(r / (2 s)) / r. With PG_OPEN u
   solves the difference equation, of second order, exactly in infinite space; PG_OPEN_SPECTRAL takes waves up to pi/h
   for the differences, and has all digits as soon as the grid has the waves of the clouds. With -o a picture of u in
   the plane of the first molecule, with the field. */
#include "picture.h"

static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};
static const double pi = 3.14159265358979323846, side = 10, width = 0.4;   /* angstrom */
static const double coulomb = 14.3996454784;                                /* V angstrom / e (CODATA 2018) */
enum { ATOMS = 6 };
static const struct { double charge, at[3]; } atom[ATOMS] = {              /* the charges of SPC/E */
    {-0.8476, {-1.48, -0.12, 0}}, {0.4238, {-0.50, 0.05, 0}}, {0.4238, {-1.85, 0.79, 0}},
    {-0.8476, {1.41, 0.10, 0}},   {0.4238, {1.70, -0.40, 0.79}}, {0.4238, {1.70, -0.40, -0.79}}};

static double exact_energy(void)
{
    double energy = 0;
    for (int p = 0; p < ATOMS; p++) {
        energy += pow(atom[p].charge, 2) / (2 * width * sqrt(pi));          /* of a cloud with itself */
        for (int q = 0; q < p; q++) {
            double squares = 0;
            for (int a = 0; a < 3; a++) squares += pow(atom[p].at[a] - atom[q].at[a], 2);
            const double r = sqrt(squares);
            energy += atom[p].charge * atom[q].charge * erf(r / (2 * width)) / r;
        }
    }
    return coulomb * energy;
}

/* Returns the energy; sheet: NULL, or for the middle plane of n x n values. */
static double energy_of(int n, pg_face_kind kind, pg_backend backend, double *sheet)
{
    const double h = side / n;
    const size_t count = (size_t)n * n * n;
    double *f = sample_alloc(2 * count * sizeof *f, PG_MEM_HOST), *u = f + count, energy = 0;
    memset(f, 0, 2 * count * sizeof *f);
    for (size_t m = 0; m < count; m++) {
        const double x[3] = {h * (m % n) - side / 2, h * (m / n % n) - side / 2, h * (m / n / n) - side / 2};
        for (int p = 0; p < ATOMS; p++) {
            double squares = 0;
            for (int a = 0; a < 3; a++) squares += pow(x[a] - atom[p].at[a], 2);
            f[m] += 4 * pi * coulomb * atom[p].charge * exp(-squares / (2 * width * width)) / pow(width * sqrt(2 * pi), 3);
        }
    }
    pg_desc desc = {.n = {n, n, n}, .h = {h, h, h}, .backend = backend};
    for (int q = 0; q < 6; q++) desc.face[q].kind = kind;
    pg_report report;
    sample_check(pg_solve_once(&desc, u, f, &report), NULL);
    if (report.outcome != PG_CONVERGED) energy = NAN;
    for (size_t m = 0; m < count; m++) energy += h * h * h * f[m] * u[m] / (8 * pi * coulomb);
    for (int m = 0; m < n * n && sheet; m++) sheet[m] = u[m + (size_t)n * n * (n / 2)];
    free(f);
    return energy;
}

/* The middle of the plane: from 0.1 V on the logarithm of u, with lines at every factor of 2, and the field. */
static int draw(const double *sheet, int n, const char *path)
{
    const int nx = 3 * (n / 8) * 2 + 1, ny = 2 * (n / 4) + 1;
    const double h = side / n, low[2] = {-h * (nx / 2), -h * (ny / 2)};
    const struct picture_scale volts = {-asinh(300), asinh(300), 0.1, "V"};
    const struct picture_axes axes = {{"x, Angstrom", "y, Angstrom"}, {low[0], low[1]}, {-low[0], -low[1]}};
    double *scaled = sample_alloc(3 * nx * ny * sizeof *scaled, PG_MEM_HOST), *x = scaled + nx * ny, *y = x + nx * ny;
    for (int m = 0; m < nx * ny; m++) {
        const double *u = &sheet[n / 2 - nx / 2 + m % nx + n * (n / 2 - ny / 2 + m / nx)];
        scaled[m] = asinh(*u / 0.1), x[m] = u[-1] - u[1], y[m] = u[-n] - u[n];
    }
    struct picture p = picture_create(900, 900 * (ny - 1) / (nx - 1));
    const double pixels = p.width / ((nx - 1) * h);
    picture_colours(&p, scaled, nx, ny, &volts);
    picture_lines(&p, scaled, nx, ny, log(2), 1.2, 0.2, 40);
    picture_streamlines(&p, x, y, nx, ny, 34, 1.3, 0.6);
    const int good = picture_shows(&p, scaled, nx, ny, &volts);
    for (int q = 0; q < ATOMS; q++)
        picture_text(&p, pixels * (atom[q].at[0] - low[0]), p.height - pixels * (atom[q].at[1] - low[1]) + 10, 2.8, 0.5, 255,
                     atom[q].charge < 0 ? "O" : atom[q].at[2] == 0 ? "H" : "(H)");
    picture_frame(&p, "Two molecules of water, (H) above and below the plane: potential, and field", &axes, &volts);
    if (path) picture_write(&p, path);
    free(scaled), free(p.rgb);
    return good;
}

int main(int argc, char **argv)
{
    const pg_backend backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    const int n = 2 * ((int)sample_number(&argc, argv, "-n", 64, 64, 512) / 2);
    const char *path = sample_option(&argc, argv, "-o", NULL);
    if (argc > 1) return fprintf(stderr, "usage: %s [-b auto|cuda|cpu] [-n POINTS] [-o PATH]\n", argv[0]), 2;
    double *sheet = sample_alloc((size_t)n * n * sizeof *sheet, PG_MEM_HOST), error[2][2];
    const double exact = exact_energy();
    for (int q = 0; q < 2; q++)
        for (int waves = 0; waves < 2; waves++) {
            const double energy = energy_of(n / (2 - q), waves ? PG_OPEN_SPECTRAL : PG_OPEN, backend, q && waves ? sheet : NULL);
            error[q][waves] = fabs(energy / exact - 1);
        }
    const double order = log2(error[0][0] / error[1][0]);
    printf("%.10f eV; on %d and %d points a side off by %.1e and %.1e (order %.2f), by waves %.1e and %.1e\n", exact, n / 2, n,
           error[0][0], error[1][0], order, error[0][1], error[1][1]);
    const int good = draw(sheet, n, path) && fabs(order - 2) < 0.3 && error[1][1] < 1e-11;
    printf("as it has to be: %s\n", good ? "yes" : "NO");
    free(sheet);
    return !good;
}
