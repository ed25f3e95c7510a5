/* A current through the space between random spheres: the effective conductivity of a porous medium.

       porous [-n CELLS] [-2] [--spheres K] [--radius R] [--overlap] [--seed S] [--sides periodic|insulated]
              [-p f64|f32|mixed] [-b auto|cuda|cpu] [-o NAME]

   lap u = 0 in the unit box outside of the spheres, u = 1 at x = 0 and u = 0 at x = 1, and no current enters a sphere:
   the same problem for a solute that diffuses, for heat, for brine in rock. A cell whose centre lies in a sphere is
   solid. Spheres that leave the box come in again on the other side. -2: discs. -o writes the plane in the middle.

   Known answers. Every plane of faces across x passes the same current. The power, the sum of (grad u)^2, is the
   current times the voltage. By Dirichlet's principle the conductivity is at most that of the planes in series, each as
   good as its open part, on this very grid. And no isotropic medium is better than 2 phi / (3 - phi) in 3D and
   phi / (2 - phi) in 2D, phi the part that conducts (Z. Hashin, S. Shtrikman, J. Appl. Phys. 33, 3125, 1962; J. C.
   Maxwell's value for few spheres, A Treatise on Electricity and Magnetism, 1873, article 314). Spheres that do not
   overlap come close to it. Steps of cells stop more of the current than round walls, so that this errs on the low
   side: of the bound the default spheres reach 0.90, 0.93, 0.94 and 0.96 on 33, 49, 65 and 97 cells. But a box of K
   spheres is not isotropic: it may exceed the bound by 1.5 (1 - phi) / (phi sqrt(K)) of it. The most that was seen is
   0.95 in place of 1.5, for 1 to 40 spheres or discs, each from 200 seeds. */
#include "picture.h"
#include "sample.h"

static const struct sample_choice
    side_kinds[] = {{"periodic", PG_PERIODIC}, {"insulated", PG_NEUMANN}, {NULL, 0}},
    precisions[] = {{"f64", PG_F64}, {"f32", PG_F32}, {"mixed", PG_MIXED}, {NULL, 0}},
    backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};

static int n, dims;                         /* cells along each axis */
static pg_face_kind sides;
static unsigned char *mask;
static double *u;

static size_t cell(int i, int j, int k) { return i + n * (j + (size_t)n * k); }
static int depth(void) { return dims == 3 ? n : 1; }

struct point { double x[3]; };

/* The square of the distance of two points of a box that continues periodically. */
static double distance2(struct point a, struct point b)
{
    double sum = 0;
    for (int axis = 0; axis < dims; axis++) {
        const double d = a.x[axis] - b.x[axis], nearest = d - floor(d + 0.5);
        sum += nearest * nearest;
    }
    return sum;
}

/* Centres at random, one after the other; with a gap, tried again until they are so far from all before. */
static struct point *scatter(int spheres, double gap, uint64_t seed)
{
    struct point *centre = sample_alloc((spheres + 1) * sizeof *centre, PG_MEM_HOST);
    uint64_t draw = seed << 32;
    for (int s = 0, tries = 0; s < spheres; s++) {
        for (int axis = 0; axis < 3; axis++) centre[s].x[axis] = (sample_noise(draw++) + 1) / 2;
        int near = -1;
        for (int q = 0; q < s && near < 0; q++)
            if (distance2(centre[s], centre[q]) < gap * gap) near = q;
        if (near < 0) continue;
        s--;
        if (++tries < 1000000) continue;
        fprintf(stderr, "no place is left after %d spheres: fewer, smaller, or --overlap\n", s + 1);
        exit(2);
    }
    return centre;
}

/* Marks the solid cells. Returns the porosity. */
static double fill(const struct point *centre, int spheres, double radius)
{
    size_t open = 0;
    for (int k = 0; k < depth(); k++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                const struct point x = {{(i + 0.5) / n, (j + 0.5) / n, (k + 0.5) / n}};
                int solid = 0;
                for (int s = 0; s < spheres && !solid; s++) solid = distance2(x, centre[s]) < radius * radius;
                mask[cell(i, j, k)] = solid ? PG_SOLID : PG_FLUID;
                open += !solid;
            }
    return open / (double)((size_t)n * n * depth());
}

/* The face before cell (i,j,k) along an axis, where index n stands for the far side of the box: the difference of u
   across it, and the distance between the points where u is known. */
struct face { int open; double volts, gap; };

static struct face face_of(int axis, int i, int j, int k)
{
    const int at = axis == 0 ? i : axis == 1 ? j : k, end = at == 0 ? 1 : at == n ? 2 : 0;
    int low[3] = {i, j, k}, high[3] = {i, j, k};
    low[axis] = at > 0 ? at - 1 : axis ? n - 1 : 0;
    high[axis] = at < n ? at : axis ? 0 : n - 1;
    const size_t a = cell(low[0], low[1], low[2]), b = cell(high[0], high[1], high[2]);
    struct face face = {mask[a] == PG_FLUID && mask[b] == PG_FLUID, u[a] - u[b], 1. / n};
    if (end && axis && sides != PG_PERIODIC) face.open = 0;
    if (end && !axis) {
        face.volts = end == 1 ? 1 - u[b] : u[a];
        face.gap = 0.5 / n;
    }
    return face;
}

static double current(int axis, int i, int j, int k)
{
    const struct face face = face_of(axis, i, j, k);
    return face.open ? face.volts / face.gap : 0;
}

/* The smallest and largest current through any of the n + 1 planes across x, the power, and the conductivity of the
   planes in series. */
struct flow { double low, high, power, series; };

static struct flow measure(void)
{
    const double area = 1. / n / depth();
    struct flow flow = {INFINITY, -INFINITY, 0, 0};
    double resistance = 0;
    for (int i = 0; i <= n; i++) {
        double sum = 0, conductance = 0;
        for (int k = 0; k < depth(); k++)
            for (int j = 0; j < n; j++)
                for (int axis = 0; axis < (i < n ? dims : 1); axis++) {
                    const struct face face = face_of(axis, i, j, k);
                    if (!face.open) continue;
                    const double passes = face.volts / face.gap * area;
                    if (axis == 0) sum += passes;
                    if (axis == 0) conductance += area / face.gap;
                    flow.power += passes * face.volts;
                }
        flow.low = fmin(flow.low, sum);
        flow.high = fmax(flow.high, sum);
        resistance += 1 / conductance;
    }
    flow.series = 1 / resistance;           /* 0 where a plane is closed */
    return flow;
}

static pg_report solve(pg_desc desc)
{
    const size_t count = (size_t)n * n * depth();
    desc.dim = dims;
    for (int axis = 0; axis < dims; axis++) {
        desc.n[axis] = n;
        desc.centring[axis] = PG_CELL;
        if (axis) desc.face[2 * axis].kind = desc.face[2 * axis + 1].kind = sides;
    }
    desc.face[PG_X_LOW].value = 1;
    unsigned char *where = sample_alloc(count, desc.memory);
    sample_copy(where, mask, count, desc.memory);
    desc.cells.mask = where;
    const size_t word = desc.flags & PG_F32 ? sizeof(float) : sizeof(double);
    void *f = sample_alloc(count * word, desc.memory), *potential = sample_alloc(count * word, desc.memory);
    memset(u, 0, count * sizeof *u);
    sample_put(f, u, count, &desc);
    const pg_stop stop = {.rtol = desc.flags & PG_F32 ? 0 : 1e-10, .guess = PG_GUESS_ZERO};
    pg_solver *solver;
    pg_report report;
    sample_check(pg_create(&desc, &solver), NULL);
    sample_check(pg_solve(solver, potential, f, &stop), solver);
    sample_check(pg_get_report(solver, &report), solver);
    pg_destroy(solver);
    sample_get(u, potential, count, &desc);
    sample_free(potential, desc.memory);
    sample_free(f, desc.memory);
    sample_free(where, desc.memory);
    return report;
}

/* Values in solid cells, from the cells around that have one: contours would turn aside from a 0 there. */
static void extend(double *plane, const unsigned char *solid)
{
    unsigned char *known = sample_alloc((size_t)2 * n * n, PG_MEM_HOST), *now = known + (size_t)n * n;
    for (int m = 0; m < n * n; m++) known[m] = now[m] = !solid[m];
    for (int pass = 0; pass < n; pass++) {
        for (int m = 0; m < n * n; m++) {
            double sum = 0;
            int number = 0;
            for (int j = -1; j <= 1; j++)
                for (int i = -1; i <= 1; i++) {
                    const int x = m % n + i, y = m / n + j;
                    if (known[m] || x < 0 || x >= n || y < 0 || y >= n || !known[x + n * y]) continue;
                    sum += plane[x + n * y];
                    number++;
                }
            if (!number) continue;
            plane[m] = sum / number;
            now[m] = 1;
        }
        memcpy(known, now, (size_t)n * n);
    }
    free(known);
}

static double larger(double a, double b) { return fabs(a) > fabs(b) ? a : b; }

/* The plane in the middle: the potential, with lines of the current; and how dense the current is, 1 without spheres. */
static int draw(const char *name, const struct point *centre, int spheres, double radius)
{
    const int k = depth() / 2;
    const unsigned char *solid = &mask[cell(0, 0, k)];
    const struct picture_axes axes = {{"x", "y"}, {0.5 / n, 0.5 / n}, {1 - 0.5 / n, 1 - 0.5 / n}};
    const struct picture_scale scale[2] = {{-0.7, 0.7, 0, "potential - 1/2"}, {0, dims == 3 ? 2 : 4, 0, "current density"}};
    double *plane = sample_alloc((size_t)4 * n * n * sizeof *plane, PG_MEM_HOST);
    double *level = plane + n * n, *x = level + n * n, *y = x + n * n;
    struct picture part[2];
    int good = 1;
    for (int dense = 0; dense < 2; dense++) {
        for (int m = 0; m < n * n; m++) {
            const int i = m % n, j = m / n;
            const struct point here = {{(i + 0.5) / n, (j + 0.5) / n, (k + 0.5) / n}};
            x[m] = larger(current(0, i, j, k), current(0, i + 1, j, k));    /* a face of a solid, which none passes, */
            y[m] = larger(current(1, i, j, k), current(1, i, j + 1, k));    /* would halve it */
            const double z = dims == 3 ? larger(current(2, i, j, k), current(2, i, j, k + 1)) : 0;
            plane[m] = dense ? sqrt(x[m] * x[m] + y[m] * y[m] + z * z) : u[cell(i, j, k)] - 0.5;
            level[m] = 1;
            for (int s = 0; s < spheres; s++) level[m] = fmin(level[m], sqrt(distance2(here, centre[s])) - radius);
        }
        extend(plane, solid);
        part[dense] = picture_create(800, 800);
        picture_colours(&part[dense], plane, n, n, &scale[dense]);
        good = picture_shows(&part[dense], plane, n, n, &scale[dense]) && good;
        if (!dense) picture_lines(&part[0], plane, n, n, 0.1, 1.2, 0.3, 40);
        if (!dense) picture_streamlines(&part[0], x, y, n, n, 20, 1.4, 0.7);
        picture_solid(&part[dense], level, n, n);
        picture_frame(&part[dense], dense ? "How dense the current is; 1 without obstacles"
                                          : "Potential and current around insulating obstacles", &axes, &scale[dense]);
    }
    struct picture all = picture_sheet(part, 2, 2);
    picture_write(&all, name);
    free(all.rgb), free(part[0].rgb), free(part[1].rgb), free(plane);
    return good;
}

/* Two planes differ by what the residuals of the cells between them add up to, and the power from the current by those
   times u: both at most the norm of the residual, since the box has volume 1; and by the round-off of u. */
static int check(const pg_report *report, double porosity, int spheres, int f32)
{
    const struct flow flow = measure();
    const double k = (flow.low + flow.high) / 2, bound = porosity / (dims == 3 ? (3 - porosity) / 2 : 2 - porosity);
    const double allowed = report->residual + report->floor + 8 * n * (f32 ? 6e-8 : 1.2e-16);
    const double spread = flow.high - flow.low, power = fabs(flow.power - k);
    const int conserved = spread <= allowed && power <= allowed;
    const double chance = 1.5 * (1 - porosity) / porosity / sqrt(fmax(spheres, 1));
    const int below = k <= flow.series + allowed && k <= bound * (1 + chance) + allowed;
    printf("%s after %d iterations, %.1f ms on %s; parts without a way to either end: %d\n",
           pg_outcome_string(report->outcome), report->iterations, report->milliseconds,
           report->backend == PG_CUDA ? "CUDA" : "the CPU", report->singular_components);
    printf("currents through planes differ by %.1e, power and current by %.1e, at most %.1e is allowed: %s\n", spread,
           power, allowed, conserved ? "as it should be" : "MISSED");
    printf("effective conductivity %.6f; planes in series %.6f; %.3f of Hashin and Shtrikman's bound %.6f: %s\n", k,
           flow.series, k / bound, bound, below ? "as it should be" : "MISSED");
    return report->outcome == PG_CONVERGED && conserved && below;
}

static void usage(FILE *out)
{
    fputs("porous [-n CELLS] [-2] [--spheres K] [--radius R] [--overlap] [--seed S] [--sides periodic|insulated]\n"
          "       [-p f64|f32|mixed] [-b auto|cuda|cpu] [-o NAME]\n"
          "  -n          cells along each axis of the unit box (65)\n"
          "  -2          discs in 2D instead of spheres\n"
          "  --spheres, --radius   how many (40) and how large (0.12; discs 0.05)\n"
          "  --overlap   they may; without it their centres are drawn until they do not\n"
          "  --seed      of the random numbers (1)\n"
          "  --sides     what the sides along the current are (periodic)\n"
          "  -o          writes NAME.png: the potential, and the density of the current\n", out);
}

int main(int argc, char **argv)
{
    if (sample_take(&argc, argv, "--help", 1)) return usage(stdout), 0;
    dims = sample_take(&argc, argv, "-2", 1) ? 2 : 3;
    n = (int)sample_number(&argc, argv, "-n", 65, 4, 1024);
    const int spheres = (int)sample_number(&argc, argv, "--spheres", 40, 0, 10000);
    const double radius = sample_number(&argc, argv, "--radius", dims == 3 ? 0.12 : 0.05, 0, 0.5);
    const int overlap = sample_take(&argc, argv, "--overlap", 1) != NULL;
    const uint64_t seed = (uint64_t)sample_number(&argc, argv, "--seed", 1, 0, 4e9);
    const char *name = sample_option(&argc, argv, "-o", NULL);
    sides = (pg_face_kind)sample_choose(side_kinds, sample_option(&argc, argv, "--sides", "periodic"));
    pg_desc desc = {0};
    desc.flags = sample_choose(precisions, sample_option(&argc, argv, "-p", "f64"));
    const char *backend = sample_option(&argc, argv, "--backend", "auto");
    desc.backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", backend));
    if (argc > 1) {
        fprintf(stderr, "%s: not an option, or without its value\n", argv[1]);
        usage(stderr);
        return 2;
    }
    desc.memory = sample_memory(desc.backend);
    const size_t count = (size_t)n * n * depth();
    mask = sample_alloc(count, PG_MEM_HOST);
    u = sample_alloc(count * sizeof *u, PG_MEM_HOST);
    struct point *centre = scatter(spheres, overlap ? 0 : 2 * radius, seed);
    const double porosity = fill(centre, spheres, radius);
    printf("%d %s of radius %g, seed %g; %d x %d x %d cells, porosity %.4f\n", spheres, dims == 3 ? "spheres" : "discs",
           radius, (double)seed, n, n, depth(), porosity);
    if (porosity == 0) return fputs("the spheres leave no cell that conducts\n", stderr), 2;
    const pg_report report = solve(desc);
    int good = check(&report, porosity, spheres, (desc.flags & PG_F32) != 0);
    if (name) good = draw(name, centre, spheres, radius) && good;
    free(centre);
    free(mask);
    free(u);
    return !good;
}
