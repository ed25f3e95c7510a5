/* A spherical electrode at 1 V in r-z, with its true surface: the links of unknowns beside it end where the sphere is.

       electrode [-b auto|cuda|cpu] [-o PATH]

   x is r, from a node on the axis; y is z. -(1/r) d/dr (r du/dr) - d2u/dz2 = 0 with w = k = r along r. Unknowns in the
   sphere are PG_AIR, and every side between a fluid unknown and one of these has an entry of air_value with theta, the
   part of the way to where the sphere cuts the link. The potential R / distance is known, and given on the can's sides.
   Three grids: the greatest error of u, the error of the charge, which is the flux through those links, and its balance
   with what leaves through the can; beside them a staircase, whose surface lies in the unknowns of the air. With -o a
   picture of the potential and the field lines. */
#include "picture.h"

static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};
static const double radius = 0.31, centre = 0.07;    /* of the sphere, on the axis */

/* n unknowns along r from 0 to 1 - h, 2n - 1 along z inside -1 to 1 */
enum { MOST = 128, ROWS = 2 * MOST - 1 };
static int n, rows;
static double h, weight[MOST], conductance[MOST + 1], side[3][ROWS];
static double u[ROWS * MOST], f[ROWS * MOST], along_r[ROWS * (MOST + 1)], along_z[(ROWS + 1) * MOST];
static unsigned char mask[ROWS * MOST];
static pg_cell_value value[8 * MOST];

static double r_of(double i) { return i * h; }
static double z_of(double j) { return (j + 1) * h - 1; }
static double distance(double r, double z) { return hypot(r, z - centre); }
static double exact(double r, double z) { return radius / distance(r, z); }
static int inside(int i, int j) { return i >= 0 && i < n && j >= 0 && j < rows && distance(r_of(i), z_of(j)) < radius; }

/* The part of the way from (r, z), outside, to a neighbour dr, dz away, inside, where the distance is the radius */
static double part_of_way(double r, double z, double dr, double dz)
{
    const double a = dr * dr + dz * dz, b = r * dr + (z - centre) * dz, d = distance(r, z), c = d * d - radius * radius;
    return c / (-b + sqrt(b * b - a * c));
}

/* The mask and its surface; returns how many sides that has. */
static int cut(int staircase)
{
    int count = 0;
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < n; i++) {
            mask[i + n * j] = inside(i, j) ? PG_AIR : PG_FLUID;
            for (int q = 0; q < 4 && !inside(i, j); q++) {
                const int di = q == PG_X_LOW ? -1 : q == PG_X_HIGH, dj = q == PG_Y_LOW ? -1 : q == PG_Y_HIGH;
                if (!inside(i + di, j + dj)) continue;
                const double theta = staircase ? 1 : part_of_way(r_of(i), z_of(j), di * h, dj * h);
                value[count++] = (pg_cell_value){{i, j, 0}, q, 1, theta};
            }
        }
    return count;
}

/* The flux through face q of an unknown, outward: slope times k times the width across */
static double flux(int i, int j, int q)
{
    const double width = i == 0 ? h / 2 : h;    /* around an unknown along r */
    if (q < 2) return (q ? 1 : -1) * conductance[i + q] * h * along_r[i + q + (n + 1) * j];
    return (q == PG_Y_HIGH ? 1 : -1) * weight[i] * width * along_z[i + n * (j + q - 2)];
}

/* The charge over 2 pi eps0 of the sphere, which is 2 R, from its surface and from the can */
static void charges(int sides, double *sphere, double *can)
{
    *sphere = *can = 0;
    for (int e = 0; e < sides; e++) *sphere += flux(value[e].cell[0], value[e].cell[1], value[e].face);
    for (int j = 0; j < rows; j++) *can -= flux(n - 1, j, PG_X_HIGH);
    for (int i = 0; i < n; i++) *can -= flux(i, 0, PG_Y_LOW) + flux(i, rows - 1, PG_Y_HIGH);
}

static void solve(int size, pg_backend backend, int staircase, double error[3])
{
    n = size, rows = 2 * n - 1, h = 1.0 / n;
    for (int i = 0; i < n; i++) weight[i] = i == 0 ? h / 4 : r_of(i);
    for (int i = 0; i <= n; i++) conductance[i] = i == 0 ? 0 : r_of(i - 0.5);
    for (int j = 0; j < rows; j++) side[0][j] = exact(1, z_of(j));
    for (int i = 0; i < n; i++) side[1][i] = exact(r_of(i), -1), side[2][i] = exact(r_of(i), 1);
    pg_desc desc = {0};
    desc.n[0] = n, desc.n[1] = rows, desc.h[0] = desc.h[1] = h;
    desc.weight[0] = weight, desc.conductance[0] = conductance;
    desc.face[PG_X_LOW].kind = PG_NEUMANN;    /* the axis */
    desc.face[PG_X_HIGH].array = side[0], desc.face[PG_Y_LOW].array = side[1], desc.face[PG_Y_HIGH].array = side[2];
    desc.cells.mask = mask, desc.cells.air_value = value, desc.cells.air_values = cut(staircase);
    desc.backend = backend;
    pg_solver *solver = NULL;
    pg_report report = {0};
    const pg_stop stop = {.guess = PG_GUESS_ZERO, .rtol = 1e-10};
    sample_check(pg_create(&desc, &solver), NULL);
    sample_check(pg_solve(solver, u, f, &stop), solver);
    sample_check(pg_get_report(solver, &report), solver);
    sample_check(pg_gradient(solver, u, 0, along_r, PG_AT_FACES), solver);
    sample_check(pg_gradient(solver, u, 1, along_z, PG_AT_FACES), solver);
    pg_destroy(solver);
    double sphere, can;
    charges(desc.cells.air_values, &sphere, &can);
    error[0] = 0, error[1] = fabs(sphere - 2 * radius) / (2 * radius), error[2] = fabs(sphere - can) / sphere;
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < n; i++)
            if (!inside(i, j)) error[0] = fmax(error[0], fabs(u[i + n * j] - exact(r_of(i), z_of(j))));
    printf("%4d x %3d  %-9s %2d iterations  error of u %.1e, of the charge %.1e; charge less what leaves %.0e\n", n,
           rows, staircase ? "staircase" : "surface", report.iterations, error[0], error[1], error[2]);
}

/* Potential and field lines in a plane through the axis, z to the right. Returns whether the colours are there. */
static int draw(const char *path)
{
    const int nx = rows, ny = 2 * n - 1;
    const struct picture_scale volts = {0, 1, 0, "V"};
    const struct picture_axes axes = {{"z", "r"}, {z_of(0), -r_of(n - 1)}, {z_of(rows - 1), r_of(n - 1)}};
    double *field = sample_alloc(4 * (size_t)nx * ny * sizeof *field, PG_MEM_HOST), *ez = field + nx * ny,
           *er = ez + nx * ny, *outside = er + nx * ny;
    for (int m = 0; m < nx * ny; m++) {
        const int j = m % nx, i = abs(m / nx - (n - 1));
        outside[m] = distance(r_of(i), z_of(j)) - radius, field[m] = outside[m] < 0 ? 1 : u[i + n * j];
    }
    for (int m = 0; m < nx * ny; m++) {
        const int j = m % nx, i = m / nx;
        ez[m] = j > 0 && j < nx - 1 ? field[m - 1] - field[m + 1] : 0;
        er[m] = i > 0 && i < ny - 1 ? field[m - nx] - field[m + nx] : 0;
    }
    struct picture p = picture_create(900, 900 * (ny - 1) / (nx - 1));
    picture_colours(&p, field, nx, ny, &volts);
    const int good = picture_shows(&p, field, nx, ny, &volts);
    picture_lines(&p, field, nx, ny, 0.1, 1.2, 0.35, 255);
    picture_streamlines(&p, ez, er, nx, ny, 34, 1.3, 0.6);
    picture_solid(&p, outside, nx, ny);
    picture_frame(&p, "A sphere at 1 V: potential, and field", &axes, &volts);
    if (path) picture_write(&p, path);
    free(field), free(p.rgb);
    return good;
}

int main(int argc, char **argv)
{
    const pg_backend backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    const char *path = sample_option(&argc, argv, "-o", NULL);
    if (argc > 1) return fprintf(stderr, "usage: %s [-b auto|cuda|cpu] [-o PATH]\n", argv[0]), 2;
    double error[2][3][3];
    for (int staircase = 1; staircase >= 0; staircase--)
        for (int q = 0; q < 3; q++) solve(MOST >> (2 - q), backend, staircase, error[staircase][q]);
    int good = draw(path);
    for (int staircase = 1; staircase >= 0; staircase--) {
        const double (*e)[3] = (const double (*)[3])error[staircase];
        const double of_u = log2(e[0][0] / e[2][0]) / 2, of_charge = log2(e[0][1] / e[2][1]) / 2;
        printf("%-9s order %.1f of u, %.1f of the charge\n", staircase ? "staircase" : "surface", of_u, of_charge);
        good = good && e[0][2] < 1e-7 && e[1][2] < 1e-7 && e[2][2] < 1e-7;
        if (!staircase) good = good && of_u > 1.7 && of_charge > 1.7 && e[2][1] < 7e-5;
    }
    printf("of second order, and what leaves the sphere leaves the can: %s\n", good ? "yes" : "NO");
    return !good;
}
