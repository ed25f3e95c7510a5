/* What a molecule gains when it goes from a uniform medium into water: the linearised Poisson-Boltzmann equation.

       dielectric [-n CELLS] [--spacings S] [--salt MOL_PER_LITRE | --kappa PER_ANGSTROM] [--epsilon-in E]
                  [--epsilon-out E] [--average harmonic|arithmetic|point] [-m MARGIN] [-p f64|f32|mixed]
                  [-b auto|cuda|cpu] [-o NAME] [MOLECULE.pqr]                                  lengths in Angstrom

       -div(epsilon grad u) + kappa^2 epsilon_out u = 4 pi C sum q delta(x - r),         u in kcal/(mol e)

   epsilon is low within the spheres of the atoms and high outside; the second term, of the ions of a salt, begins 2
   Angstrom outside of the spheres. The solvation energy is sum q (u - u_uniform)(r) / 2, where u_uniform, of
   epsilon_in everywhere, is solved for on the same grid: the energy of each charge in its own field, which no grid
   resolves, cancels. Charges go to the eight cells around them by trilinear weights, and u comes back by the same.

   Without a molecule: an ion, one charge in the middle of a sphere of 2 Angstrom (M. Born, Z. Physik 1, 45, 1920; with
   salt P. Debye, E. Hueckel, Physik. Z. 24, 185, 1923). With one: its charges in one sphere around all of them, for
   which Kirkwood's series is exact (J. G. Kirkwood, J. Chem. Phys. 2, 351, 1934), then in the spheres of its atoms,
   where the energy is lower: more of the space has the high epsilon. -o writes the plane in the middle as NAME.png.

   --average: epsilon of the face between two cells. Of the segment between their centres a part lies within the
   spheres. The face has the harmonic mean over the segment, as for currents that pass one medium after the other (M. E.
   Davis, J. A. McCammon, J. Comput. Chem. 12, 909, 1991), or the arithmetic one, or epsilon at its own centre. Measured
   for the ion, in per cent of its energy, by cells along a box of 10 Angstrom (-m 3):

       cells        13      25      49      97      order from 25 to 97
       harmonic     1.6     0.27    0.070   0.015   2.1
       arithmetic  18      11       4.6     2.0     1.2
       point       12       3.6     1.3     0.49    1.5, in jumps: 17 cells 2.0, 35 cells 1.0 */
#include "picture.h"
#include "pqr.h"
#include "sample.h"

enum average { HARMONIC, ARITHMETIC, POINT };
static const struct sample_choice
    averages[] = {{"harmonic", HARMONIC}, {"arithmetic", ARITHMETIC}, {"point", POINT}, {NULL, 0}},
    precisions[] = {{"f64", PG_F64}, {"f32", PG_F32}, {"mixed", PG_MIXED}, {NULL, 0}},
    backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};

static const double pi = 3.14159265358979323846;
static const double coulomb = 332.0637;     /* C = e^2 N_A / (4 pi eps0), kcal/mol Angstrom e^-2 */
static const double thermal = 0.592484;     /* k T N_A at 298.15 K, kcal/mol */
static const double avogadro = 6.02214e-4;  /* mol/l in particles per cubic Angstrom */

static struct { double in, out, kappa, exclusion; enum average average; } medium;

/* Charges and the spheres around them. Of an ion and of a molecule as it is both are the same. */
struct problem {
    const struct molecule *charges, *spheres;
    struct grid grid;
    double *potential, *added, energy;      /* in water, by the water, and of solvation: what the last solve found */
};

static size_t cells(const int n[3]) { return (size_t)n[0] * n[1] * n[2]; }

static double *doubles(size_t count)
{
    double *value = sample_alloc(count * sizeof *value, PG_MEM_HOST);
    memset(value, 0, count * sizeof *value);
    return value;
}

/* How far x is outside of the nearest sphere, negative within. Atoms without a radius are no spheres. */
static double outside(const struct molecule *spheres, const double x[3])
{
    double least = INFINITY;
    for (int m = 0; m < spheres->atoms; m++)
        if (spheres->atom[m].radius > 0)
            least = fmin(least, pqr_distance(&spheres->atom[m], x) - spheres->atom[m].radius);
    return least;
}

/* The part, 0 to 1, within any sphere, of the segment of this length along an axis with its middle in x. */
static double inside_part(const struct molecule *spheres, const double x[3], int axis, double length)
{
    enum { MOST = 64 };
    double low[MOST], high[MOST], part = 0;
    int pieces = 0;
    for (int m = 0; m < spheres->atoms && pieces < MOST; m++) {
        const struct atom *atom = &spheres->atom[m];
        const double along = atom->r[axis] - x[axis], distance = pqr_distance(atom, x);
        const double reach = atom->radius * atom->radius - (distance * distance - along * along);
        if (!(atom->radius > 0) || reach <= 0) continue;
        double a = fmax(along - sqrt(reach), -length / 2), b = fmin(along + sqrt(reach), length / 2);
        if (a >= b) continue;
        for (int q = 0; q < pieces; q++)            /* pieces that overlap this one become part of it */
            if (low[q] <= b && high[q] >= a) {
                a = fmin(a, low[q]);
                b = fmax(b, high[q]);
                pieces--;
                low[q] = low[pieces];
                high[q--] = high[pieces];
            }
        low[pieces] = a;
        high[pieces++] = b;
    }
    for (int q = 0; q < pieces; q++) part += (high[q] - low[q]) / length;
    return fmin(part, 1);
}

/* What a function of space needs to know besides. */
struct view { const struct molecule *molecule; int axis, uniform; double h; };

static double face_epsilon(const struct view *v, const double x[3])
{
    if (medium.average == POINT) return outside(v->molecule, x) < 0 ? medium.in : medium.out;
    const double part = inside_part(v->molecule, x, v->axis, v->h);
    if (medium.average == ARITHMETIC) return part * medium.in + (1 - part) * medium.out;
    return 1 / (part / medium.in + (1 - part) / medium.out);
}

/* kappa^2 epsilon_out times the part of a cell that ions reach, about as large as for a plane across the cell. */
static double screening(const struct view *v, const double x[3])
{
    const double beyond = outside(v->molecule, x) - medium.exclusion;
    return medium.kappa * medium.kappa * medium.out * picture_clamp(0.5 + beyond / v->h, 0, 1);
}

/* Where the box ends: Coulomb's law, or that of Debye and Hueckel for each atom by itself. */
static double far_potential(const struct view *v, const double x[3])
{
    double sum = 0;
    for (int m = 0; m < v->molecule->atoms; m++) {
        const struct atom *atom = &v->molecule->atom[m];
        const double r = pqr_distance(atom, x), a = atom->radius + medium.exclusion;
        sum += atom->charge / r * (v->uniform ? 1 : exp(medium.kappa * (a - r)) / (1 + medium.kappa * a));
    }
    return coulomb / (v->uniform ? medium.in : medium.out) * sum;
}

/* At the points of g, x fastest. */
static double *evaluate(double (*function)(const struct view *, const double x[3]), struct view v, struct grid g)
{
    double *all = doubles(cells(g.n)), *value = all;
    for (int k = 0; k < g.n[2]; k++)
        for (int j = 0; j < g.n[1]; j++)
            for (int i = 0; i < g.n[0]; i++) {
                const double x[3] = {g.first[0] + i * g.h[0], g.first[1] + j * g.h[1], g.first[2] + k * g.h[2]};
                *value++ = function(&v, x);
            }
    return all;
}

/* The middles of faces across an axis: so many of them, the first one before the cell with this index. */
static struct grid faces(struct grid g, int axis, int index, int count)
{
    g.first[axis] += (index - 0.5) * g.h[axis];
    g.n[axis] = count;
    return g;
}

/* The eight cells whose centres are around r, and what trilinear interpolation gives each. */
static void around(const struct grid *g, const double r[3], size_t cell[8], double weight[8])
{
    int i[3];
    double t[3];
    for (int a = 0; a < 3; a++) {
        const double x = (r[a] - g->first[a]) / g->h[a];
        i[a] = (int)floor(x);
        t[a] = x - i[a];
    }
    for (int c = 0; c < 8; c++) {
        const size_t on[3] = {c & 1, c >> 1 & 1, c >> 2};
        cell[c] = i[0] + on[0] + g->n[0] * (i[1] + on[1] + g->n[1] * (i[2] + on[2]));
        weight[c] = (on[0] ? t[0] : 1 - t[0]) * (on[1] ? t[1] : 1 - t[1]) * (on[2] ? t[2] : 1 - t[2]);
    }
}

static double *charge_density(const struct molecule *charges, const struct grid *g)
{
    double *f = doubles(cells(g->n)), weight[8];
    size_t cell[8];
    for (int m = 0; m < charges->atoms; m++) {
        around(g, charges->atom[m].r, cell, weight);
        for (int c = 0; c < 8; c++)
            f[cell[c]] += 4 * pi * coulomb * charges->atom[m].charge * weight[c] / (g->h[0] * g->h[1] * g->h[2]);
    }
    return f;
}

static pg_desc solver;                      /* precision, back end and kind of memory of every solve */

/* Values on the host to where the solver reads them; frees the former. */
static void *hand_over(double *value, size_t count)
{
    void *array = sample_alloc(count * (solver.flags & PG_F32 ? sizeof(float) : sizeof(double)), solver.memory);
    sample_put(array, value, count, &solver);
    free(value);
    return array;
}

/* The potential in the cells, with epsilon_in everywhere or in water. The half segments at the sides of the box, which
   are far from any sphere, are taken for whole ones. */
static double *solve(const struct problem *p, int uniform, pg_report *report)
{
    const struct grid *g = &p->grid;
    const size_t count = cells(g->n);
    const struct view water = {p->spheres, 0, 0, g->h[0]}, far = {p->charges, 0, uniform, g->h[0]};
    pg_desc desc = solver;
    void *side[6], *epsilon[3] = {NULL, NULL, NULL}, *ions = NULL;
    for (int a = 0; a < 3; a++) {
        desc.n[a] = g->n[a];
        desc.h[a] = g->h[a];
        desc.centring[a] = PG_CELL;
        const struct view across = {p->spheres, a, 0, g->h[a]};
        const struct grid all = faces(*g, a, 0, g->n[a] + 1);
        if (!uniform) desc.cells.beta_face[a] = epsilon[a] = hand_over(evaluate(face_epsilon, across, all), cells(all.n));
    }
    for (int s = 0; s < 6; s++) {
        const struct grid end = faces(*g, s / 2, s % 2 ? g->n[s / 2] : 0, 1);
        desc.face[s].array = side[s] = hand_over(evaluate(far_potential, far, end), cells(end.n));
    }
    if (uniform) desc.beta = medium.in;
    else if (medium.kappa > 0) desc.cells.alpha_cell = ions = hand_over(evaluate(screening, water, *g), count);
    void *f = hand_over(charge_density(p->charges, g), count), *u = hand_over(doubles(count), count);
    sample_check(pg_solve_once(&desc, u, f, report), NULL);
    double *potential = doubles(count);
    sample_get(potential, u, count, &solver);
    for (int s = 0; s < 6; s++) sample_free(side[s], solver.memory);
    for (int a = 0; a < 3; a++) sample_free(epsilon[a], solver.memory);
    sample_free(ions, solver.memory);
    sample_free(f, solver.memory);
    sample_free(u, solver.memory);
    return potential;
}

/* The box around the spheres with a margin, n cubic cells along its longest side. */
static struct grid box_around(const struct molecule *spheres, int n, double margin)
{
    struct grid g;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, longest = 0;
    for (int a = 0; a < 3; a++) {
        for (int m = 0; m < spheres->atoms; m++) {
            low[a] = fmin(low[a], spheres->atom[m].r[a] - spheres->atom[m].radius - margin);
            high[a] = fmax(high[a], spheres->atom[m].r[a] + spheres->atom[m].radius + margin);
        }
        longest = fmax(longest, high[a] - low[a]);
    }
    for (int a = 0; a < 3; a++) {
        g.h[a] = longest / n;
        g.n[a] = (int)ceil((high[a] - low[a]) / g.h[a] - 1e-6);
        g.first[a] = (low[a] + high[a] - (g.n[a] - 1) * g.h[a]) / 2;
    }
    return g;
}

/* The solvation energy of charges in one sphere around the origin, by Legendre polynomials. For each degree l the
   water outside has the slope Y = -r u'/u at the sphere: that of the Bessel functions k_l(kappa r) where the ions
   begin, l + 1 if there are none, carried inwards through the shell without ions, where u is r^l and r^-(l+1). */
static double kirkwood(const struct molecule *charges, double radius)
{
    enum { DEGREES = 200 };
    const double x = medium.kappa * (radius + medium.exclusion);
    double answer[DEGREES], sum = 0, p = x;     /* p = x k_(l-1)(x) / k_l(x) */
    for (int l = 0; l < DEGREES; l++) {
        const double shell = pow(radius / (radius + medium.exclusion), 2 * l + 1), begin = l + 1 + p;
        const double t = shell * (l + 1 - begin) / (begin + l), y = (l + 1 - l * t) / (1 + t);
        answer[l] = (medium.in * (l + 1) - medium.out * y) / (medium.in * l + medium.out * y);
        p = x * x / (p + 2 * l + 1);
    }
    for (int m = 0; m < charges->atoms; m++)
        for (int q = 0; q < charges->atoms; q++) {
            const double *a = charges->atom[m].r, *b = charges->atom[q].r;
            const double square = (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) * (b[0] * b[0] + b[1] * b[1] + b[2] * b[2]);
            const double dot = (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) / (radius * radius);
            const double ratio = sqrt(square) / (radius * radius);
            double term = 1, before = 0;        /* ratio^l P_l(cos), by the recurrence of P_l */
            for (int l = 0; l < DEGREES; l++) {
                sum += charges->atom[m].charge * charges->atom[q].charge * answer[l] * term;
                const double next = ((2 * l + 1) * dot * term - l * ratio * ratio * before) / (l + 1);
                before = term;
                term = next;
            }
        }
    return coulomb / medium.in / radius * sum / 2;
}

/* Solves for both potentials on n cells along the longest side. Returns whether that went well. */
static int solvate(struct problem *p, int n, double margin)
{
    pg_report report[2];
    p->grid = box_around(p->spheres, n, margin);
    free(p->potential);
    free(p->added);
    double *uniform = solve(p, 1, &report[0]), weight[8];
    p->potential = solve(p, 0, &report[1]);
    p->added = uniform;
    for (size_t m = 0; m < cells(p->grid.n); m++) p->added[m] = p->potential[m] - uniform[m];
    p->energy = 0;
    for (int m = 0; m < p->charges->atoms; m++) {
        size_t cell[8];
        around(&p->grid, p->charges->atom[m].r, cell, weight);
        for (int c = 0; c < 8; c++)
            p->energy += p->charges->atom[m].charge / 2 * weight[c] * p->added[cell[c]];
    }
    printf("    %d x %d x %d, spacing %.4f: %.4f kcal/mol; %d and %d iterations, %.1f ms on %s\n", p->grid.n[0],
           p->grid.n[1], p->grid.n[2], p->grid.h[0], p->energy, report[0].iterations, report[1].iterations,
           report[0].milliseconds + report[1].milliseconds, report[1].backend == PG_CUDA ? "CUDA" : "the CPU");
    for (int s = 0; s < 2; s++)
        if (report[s].outcome != PG_CONVERGED) printf("    %s: MISSED\n", report[s].message);
    return report[0].outcome == PG_CONVERGED && report[1].outcome == PG_CONVERGED;
}

static int cells_of(int n, int s, int spacings)     /* of grid s: the last one has n, each before it 1/sqrt(2) of it */
{
    return (int)(n * pow(2, (s + 1 - spacings) / 2.) + 0.5) | (n & 1);
}

/* Charges in one sphere, so deep below its surface. On the finest grid they may be off by bound (h / depth)^2, with a
   term of the fourth order for coarse ones, or by 1.2 h / depth where the average is of first order, and by what the
   values at the sides of the box are good for. Where these are exact, and 8 cells lie across the sphere on the coarsest
   grid, the order is checked too. */
static int known(struct problem *p, int n, int spacings, double margin, double depth, double bound, double sides)
{
    const double exact = kirkwood(p->charges, p->spheres->atom[0].radius);
    const int harmonic = medium.average == HARMONIC;
    double first = NAN, coarse = NAN, error = NAN, part = NAN;
    int good = 1;
    printf("exact: %.4f kcal/mol\n", exact);
    for (int s = 0; s < spacings; s++) {
        good = solvate(p, cells_of(n, s, spacings), margin) && good;
        error = fabs(p->energy / exact - 1);
        part = p->grid.h[0] / depth;
        if (s == 0) first = error, coarse = part;
        printf("        off by %.3f %%\n", 100 * error);
    }
    const double order = log(first / error) / log(coarse / part);
    const double allowed = sides + (harmonic ? bound * part * part * (1 + 4 * part * part) : 1.2 * part);
    printf("    at most %.3f %% is allowed on the finest", 100 * fmin(allowed, 0.25));
    if (sides > 0)
        printf(", %.1f %% of it for the values at the sides of the box;\n    both errors may cancel on a coarser grid", 100 * sides);
    else if (spacings > 1) printf("; order of the error in the spacing: %.2f", order);
    printf("\n");
    if (spacings > 2 && harmonic && sides == 0 && coarse < 0.25) good = good && order > 1.6 && order < 2.8;
    return good && error <= fmin(allowed, 0.25);
}

/* The plane of cells next to the middle of the charges, with the outline of the spheres: the potential, from kT/e on its
   logarithm, with lines at 0 and every factor of 2, and lines of epsilon E; beside it what the water adds to the potential. */
static int draw(const struct problem *p, const char *what, const char *name)
{
    const struct grid g = p->grid;
    const int nx = g.n[0], ny = g.n[1], k = (int)((p->charges->middle[2] - g.first[2]) / g.h[2] + 0.5);
    struct picture_scale scale[2] = {{-asinh(1000), asinh(1000), 1, "kT/e"}, {0, 0, 0, "kT/e"}};
    struct picture_axes axes = {{"x, Angstrom", "y, Angstrom"}, {g.first[0], g.first[1]}, {0, 0}};
    double *plane = doubles((size_t)4 * nx * ny), *outline = plane + nx * ny;
    double *flux[2] = {outline + nx * ny, outline + 2 * nx * ny};
    struct picture part[2];
    char title[100];
    int good = 1;
    for (int a = 0; a < 2; a++) axes.high[a] = g.first[a] + (g.n[a] - 1) * g.h[a];
    for (int added = 0; added < 2; added++) {
        for (int m = 0; m < nx * ny; m++) {
            const double x[3] = {g.first[0] + m % nx * g.h[0], g.first[1] + m / nx * g.h[1], g.first[2] + k * g.h[2]};
            const double *u = &(added ? p->added : p->potential)[m + (size_t)nx * ny * k];
            plane[m] = added ? *u / thermal : asinh(*u / thermal);
            outline[m] = outside(p->spheres, x);
            if (added) scale[1].high = fmax(scale[1].high, 1.1 * fabs(plane[m])), scale[1].low = -scale[1].high;
            for (int s = 0; s < 4 && !added; s++) {                 /* through the cell's faces across x and y */
                const int a = s / 2, i = a ? m / nx : m % nx, side = i == 0 ? 1 : i == g.n[a] - 1 ? 0 : s % 2;
                const int step = a ? nx : 1, low = side ? 0 : -step;
                const struct view v = {p->spheres, a, 0, g.h[a]};
                double face[3] = {x[0], x[1], x[2]};
                face[a] += (side - 0.5) * g.h[a];
                flux[a][m] += face_epsilon(&v, face) * (u[low] - u[low + step]);
            }
        }
        part[added] = picture_create(800, (int)(800. * (ny - 1) / (nx - 1) + 0.5));
        picture_colours(&part[added], plane, nx, ny, &scale[added]);
        picture_lines(&part[added], plane, nx, ny, added ? 20 : log(2), 1.2, 0.3, 40);
        picture_lines(&part[added], plane, nx, ny, 0, 2, 0.7, 40);
        if (!added) picture_streamlines(&part[added], flux[0], flux[1], nx, ny, 34, 1.3, 0.6);
        picture_lines(&part[added], outline, nx, ny, 0, 3, 0.9, 40);
        good = picture_shows(&part[added], plane, nx, ny, &scale[added]) && good;
        snprintf(title, sizeof title, added ? "What the water adds to the potential" : "%s: potential, lines of epsilon E", what);
        picture_frame(&part[added], title, &axes, &scale[added]);
    }
    struct picture all = picture_sheet(part, 2, 2);
    picture_write(&all, name);
    free(all.rgb), free(part[0].rgb), free(part[1].rgb);
    free(plane);
    return good;
}

/* What the ions add to the energy of the last solve, against a solve without them. It is so little that errors in it
   would not show in the whole, and the grid's errors at the sphere cancel. */
static int part_of_ions(const struct problem *p, int n, double margin)
{
    const double kappa = medium.kappa, radius = p->spheres->atom[0].radius, with = kirkwood(p->charges, radius);
    struct problem pure = {.charges = p->charges, .spheres = p->spheres};
    medium.kappa = 0;
    printf("the same without ions\n");
    int good = solvate(&pure, n, margin);
    const double exact = with - kirkwood(p->charges, radius), part = p->energy - pure.energy;
    medium.kappa = kappa;
    free(pure.potential), free(pure.added);
    good = good && fabs(part - exact) < 0.02 * fabs(exact) + (solver.flags & PG_F32 ? 1e-4 : 1e-6) * fabs(with);
    printf("the ions add %.5f kcal/mol, exactly %.5f: %s\n", part, exact, good ? "as it should be" : "MISSED");
    return good;
}

static int ion(int n, int spacings, double margin, const char *name)
{
    struct atom atom = {{0, 0, 0}, 1, 2};
    const struct molecule one = {1, &atom, 1, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    struct problem p = {.charges = &one, .spheres = &one};
    printf("a charge of 1 e in a sphere of 2 Angstrom, ");
    int good = known(&p, n, spacings, margin, atom.radius, 0.12, 0);
    printf("the energy and its order: %s\n", good ? "as they should be" : "MISSED");
    if (medium.kappa > 0) good = part_of_ions(&p, n, margin) && good;
    if (name) good = draw(&p, "An ion in water", name) && good;
    free(p.potential), free(p.added);
    return good;
}

/* The charges of a molecule about the origin, in one sphere that holds all others, with 1.5 Angstrom around them. */
static int in_one_sphere(const struct molecule *all, int n, int spacings, double margin, double *energy)
{
    struct atom sphere = {{0, 0, 0}, 0, 0};
    const struct molecule around_all = {1, &sphere, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    struct molecule charges = *all;
    charges.atom = sample_alloc(all->atoms * sizeof *charges.atom, PG_MEM_HOST);
    for (int m = 0; m < all->atoms; m++) {
        struct atom *atom = &charges.atom[m];
        *atom = all->atom[m];
        for (int a = 0; a < 3; a++) atom->r[a] -= (all->low[a] + all->high[a]) / 2;
        sphere.radius = fmax(sphere.radius, pqr_distance(&sphere, atom->r) + fmax(atom->radius, 1.5));
    }
    for (int m = 0; m < all->atoms; m++) charges.atom[m].radius = sphere.radius;    /* where water begins for it */
    struct problem p = {.charges = &charges, .spheres = &around_all};
    printf("all charges in one sphere of %.3f Angstrom, ", sphere.radius);
    const int good = known(&p, n, spacings, margin, 1.5, 0.3, 0.005);
    printf("one sphere: %s\n", good ? "as it should be" : "MISSED");
    *energy = kirkwood(&charges, sphere.radius);
    free(p.potential), free(p.added);
    free(charges.atom);
    return good;
}

/* By Thomson's and Dirichlet's principles the energy falls where epsilon or kappa rise: it is below that of the one
   sphere. Two grids must agree: the error is larger than in one sphere, since charges are nearer to the water. */
static int molecule(const struct molecule *all, int n, int spacings, double margin, const char *name)
{
    double bound, before = NAN;
    int good = in_one_sphere(all, n, spacings, margin, &bound);
    struct problem p = {.charges = all, .spheres = all};
    printf("the spheres of the atoms\n");
    for (int s = 0; s < spacings; s++) {
        before = p.energy;
        good = solvate(&p, cells_of(n, s, spacings), margin) && good;
    }
    const double limit = medium.average == HARMONIC ? 0.05 : 0.15, change = fabs(p.energy / before - 1);
    const int lower = p.energy < bound, steady = spacings < 2 || change < limit;
    if (spacings > 1)
        printf("    the last two differ by %.2f %%: %s\n", 100 * change, steady ? "steady" : "MISSED, too coarse");
    printf("below the energy of one sphere, %.4f kcal/mol: %s\n", bound, lower ? "as it should be" : "MISSED");
    if (name) good = draw(&p, "A molecule in water", name) && good;
    free(p.potential), free(p.added);
    return good && lower && steady;
}

static void refuse(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(2);
}

/* A charge outside of the spheres would have another energy of its own in water than in the uniform medium. */
static struct molecule read_molecule(const char *path)
{
    const struct molecule all = pqr_read(path);
    double most = 0;
    for (int m = 0; m < all.atoms; m++) {
        const struct atom *atom = &all.atom[m];
        most = fmax(most, fabs(atom->charge));
        if (atom->charge == 0 || outside(&all, atom->r) < 0) continue;
        fprintf(stderr, "%s: atom %d has a charge and lies in no sphere\n", path, m + 1);
        exit(2);
    }
    if (most == 0) refuse("no atom has a charge: there is no energy");
    printf("%s: %d atoms, total charge %+.3f e\n", path, all.atoms, all.charge);
    return all;
}

static void usage(FILE *out)
{
    fputs("dielectric [-n CELLS] [--spacings S] [--salt MOL_PER_LITRE | --kappa PER_ANGSTROM] [--epsilon-in E]\n"
          "           [--epsilon-out E] [--average harmonic|arithmetic|point] [-m MARGIN] [-p f64|f32|mixed]\n"
          "           [-b auto|cuda|cpu] [-o NAME] [MOLECULE.pqr]\n"
          "  -n          cells along the longest side of the box, on the finest of S grids (65; 3)\n"
          "  --salt      a salt of two ions of charge 1, at 298.15 K; --kappa: or the inverse of its screening length\n"
          "  --epsilon-in, --epsilon-out   within the spheres (2) and outside of them (80)\n"
          "  --average   how faces between both have their epsilon (harmonic)\n"
          "  -m          Angstrom between the spheres and the sides of the box (4)\n"
          "  -o          writes the plane in the middle as NAME.png\n", out);
}

int main(int argc, char **argv)
{
    if (sample_take(&argc, argv, "--help", 1)) return usage(stdout), 0;
    const int n = (int)sample_number(&argc, argv, "-n", 65, 17, 1024);
    const int spacings = (int)sample_number(&argc, argv, "--spacings", 3, 1, 8);
    const double margin = sample_number(&argc, argv, "-m", 4, 1, 100);
    const double salt = sample_number(&argc, argv, "--salt", 0, 0, 10);
    medium.in = sample_number(&argc, argv, "--epsilon-in", 2, 1, 1000);
    medium.out = sample_number(&argc, argv, "--epsilon-out", 80, 1, 1000);
    medium.exclusion = 2;
    const double debye = sqrt(8 * pi * coulomb * avogadro * salt / (medium.out * thermal));
    medium.kappa = sample_number(&argc, argv, "--kappa", debye, 0, 10);
    medium.average = (enum average)sample_choose(averages, sample_option(&argc, argv, "--average", "harmonic"));
    solver.flags = sample_choose(precisions, sample_option(&argc, argv, "-p", "f64"));
    const char *name = sample_option(&argc, argv, "-o", NULL);
    const char *backend = sample_option(&argc, argv, "--backend", "auto");
    solver.backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", backend));
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fprintf(stderr, "%s: not an option, or without its value, or a second file\n",
                argv[1][0] == '-' ? argv[1] : argv[2]);
        usage(stderr);
        return 2;
    }
    if (medium.out <= medium.in) refuse("--epsilon-out must be above --epsilon-in");
    if (salt > 0 && medium.kappa != debye) refuse("--salt and --kappa say the same: one of them");
    if (n * pow(2, (1 - spacings) / 2.) < 8) refuse("--spacings: the coarsest grid has less than 8 cells");
    solver.memory = sample_memory(solver.backend);
    struct molecule all = {0};
    if (argc == 2) all = read_molecule(argv[1]);
    printf("epsilon %g in the spheres, %g outside", medium.in, medium.out);
    if (medium.kappa > 0) printf(", ions with a screening length of %.3f Angstrom", 1 / medium.kappa);
    printf("\n");
    if (argc == 1) return !ion(n, spacings, margin, name);
    const int good = molecule(&all, n, spacings, margin, name);
    free(all.atom);
    return !good;
}
