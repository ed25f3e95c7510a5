/* A droplet that surface tension pulls together: liquid with a true free surface, in nothing or in another fluid.

       droplet [-3] [-n CELLS] [--air DENSITY] [-b auto|cuda|cpu] [-o NAME]

   The droplet is where a level set phi is negative; velocities are on the faces of cells. A step carries phi and the
   velocities along (semi-Lagrangian, cubic), and a pressure takes the divergence away. Without --air it is sigma kappa
   on the surface: cells outside are PG_AIR, and each side between them and the liquid has an entry of air_value with
   that value and theta, the part of the way to where phi is 0. With --air the other fluid has this density (the
   liquid's is 1): beta_face is 1 over the mean density along each link, and the jump sigma kappa of the pressure is a
   term of f (Liu, Fedkiw, Kang 2000).

   Known beforehand, and checked: a round droplet rests, but for what errors of kappa do, with the pressure
   sigma (dim - 1) / R inside; a small bulge of the second mode swings with Rayleigh's frequency; no divergence is left.
   Without --air the same with a staircase, all theta 1, stands beside it. With -o a film of a large bulge. */
#include "film.h"

static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};
static const double pi = 3.14159265358979323846, sigma = 1, radius = 0.3, viscosity = 0.01;


enum { LAYERS = 12 };    /* of faces outside that get velocities */

/* A field of cells, or of the faces across an axis: elements along each axis, the first one's place in steps of h */
struct field { double *at; int size[3]; double first[3]; };
struct droplet {
    int dim, n, staircase, entries, room;
    double h, air, dt, divergence;
    size_t cells;
    struct field phi, kappa, velocity[3], next[4];
    double *p, *f, *beta[3], *jump[3], *slope;
    unsigned char *mask;
    pg_cell_value *entry;
    pg_backend backend;
    pg_solver *solver;
    pg_report report;
};

static size_t across(const struct droplet *d, int axis)    /* from cell to cell */
{
    return axis == 0 ? 1 : axis == 1 ? (size_t)d->n : (size_t)d->n * d->n;
}
static size_t count_of(const struct field *g) { return (size_t)g->size[0] * g->size[1] * g->size[2]; }
static size_t place(const struct field *g, int i, int j, int k)
{
    return i + (size_t)g->size[0] * (j + (size_t)g->size[1] * k);
}
static void find(const struct field *g, size_t m, int q[3])
{
    q[0] = (int)(m % g->size[0]), q[1] = (int)(m / g->size[0] % g->size[1]), q[2] = (int)(m / g->size[0] / g->size[1]);
}

static struct field make_field(const struct droplet *d, int axis)
{
    struct field g = {0};
    for (int a = 0; a < 3; a++) {
        g.size[a] = a < d->dim ? d->n + (a == axis) : 1;
        g.first[a] = a == axis ? 0 : 0.5;
    }
    g.at = sample_alloc(count_of(&g) * sizeof(double), PG_MEM_HOST);
    memset(g.at, 0, count_of(&g) * sizeof(double));
    return g;
}

/* A field at a point, by Catmull-Rom splines */
static double at_point(const struct droplet *d, const struct field *g, const double x[3])
{
    int index[3][4] = {{0}};
    double weight[3][4] = {{0}}, sum = 0;
    for (int a = 0; a < 3; a++) {
        const double q = a < d->dim ? picture_clamp(x[a] / d->h - g->first[a], 0, g->size[a] - 1) : 0, t = q - floor(q);
        const double w[4] = {((2 - t) * t - 1) * t / 2, ((3 * t - 5) * t * t + 2) / 2, ((4 - 3 * t) * t + 1) * t / 2,
                             (t - 1) * t * t / 2};
        for (int m = 0; m < (a < d->dim ? 4 : 1); m++) {
            index[a][m] = (int)picture_clamp(floor(q) + m - 1, 0, g->size[a] - 1);
            weight[a][m] = a < d->dim ? w[m] : 1;
        }
    }
    for (int q = 0; q < (d->dim == 3 ? 64 : 16); q++) {
        const int i = q % 4, j = q / 4 % 4, k = q / 16;
        sum += weight[0][i] * weight[1][j] * weight[2][k] * g->at[place(g, index[0][i], index[1][j], index[2][k])];
    }
    return sum;
}

/* Carries a field along: where what arrives came from, by the midpoint rule */
static void carry(const struct droplet *d, const struct field *from, struct field *to)
{
    const long count = (long)count_of(from);
    #pragma omp parallel for
    for (long m = 0; m < count; m++) {
        double x[3] = {0}, y[3] = {0}, v[3];
        int q[3];
        find(from, (size_t)m, q);
        for (int a = 0; a < d->dim; a++) x[a] = (q[a] + from->first[a]) * d->h;
        for (int a = 0; a < d->dim; a++) y[a] = x[a] - d->dt / 2 * at_point(d, &d->velocity[a], x);
        for (int a = 0; a < d->dim; a++) v[a] = at_point(d, &d->velocity[a], y);
        for (int a = 0; a < d->dim; a++) x[a] -= d->dt * v[a];
        to->at[m] = at_point(d, from, x);
    }
}

/* kappa = div (grad phi / |grad phi|), from the 3 x 3 (x 3) cells around each */
static void bend(struct droplet *d)
{
    const struct field *g = &d->phi;
    for (size_t m = 0; m < d->cells; m++) {
        int c[3];
        find(g, m, c);
        double x[27], slope[3] = {0}, second[3][3] = {{0}}, square = 0, trace = 0, along = 0;
        for (int q = 0; q < 27; q++) {
            int e[3] = {q % 3 - 1, q / 3 % 3 - 1, q / 9 - 1};
            for (int a = 0; a < 3; a++) e[a] = a < d->dim ? (int)picture_clamp(c[a] + e[a], 0, d->n - 1) : 0;
            x[q] = g->at[place(g, e[0], e[1], e[2])];
        }
        const int step[3] = {1, 3, 9}, o = 13;
        for (int a = 0; a < d->dim; a++) {
            const int s = step[a];
            slope[a] = (x[o + s] - x[o - s]) / (2 * d->h);
            for (int b = 0; b < d->dim; b++) {
                const int t = step[b];
                second[a][b] = a == b ? (x[o + s] - 2 * x[o] + x[o - s]) / (d->h * d->h)
                                      : (x[o + s + t] - x[o + s - t] - x[o - s + t] + x[o - s - t]) / (4 * d->h * d->h);
            }
        }
        for (int a = 0; a < d->dim; a++) square += slope[a] * slope[a], trace += second[a][a];
        for (int a = 0; a < d->dim; a++)
            for (int b = 0; b < d->dim; b++) along += slope[a] * second[a][b] * slope[b];
        square = fmax(square, 1e-6);
        d->kappa.at[m] = picture_clamp((trace - along / square) / sqrt(square), -1 / d->h, 1 / d->h);
    }
}

/* The link from cell m to the next one: whether the surface cuts it, where, and what sigma kappa is there */
static int cut(const struct droplet *d, size_t m, size_t next, double *theta, double *tension)
{
    const double here = d->phi.at[m], there = d->phi.at[next];
    if ((here < 0) == (there < 0)) return 0;
    *theta = fmin(1, fmax(1e-9, here / (here - there)));
    *tension = sigma * ((1 - *theta) * d->kappa.at[m] + *theta * d->kappa.at[next]);
    return 1;
}

/* What the solver is given for this phi: mask and entries; or coefficients, and jumps of p across faces, upward. */
static void describe_surface(struct droplet *d)
{
    d->entries = 0;
    bend(d);
    for (size_t m = 0; m < d->cells; m++) d->mask[m] = d->phi.at[m] < 0 ? PG_FLUID : PG_AIR;
    for (int a = 0; a < d->dim; a++) {
        const struct field *faces = &d->velocity[a];
        for (size_t m = 0; m < count_of(faces); m++) {
            int q[3];
            find(faces, m, q);
            const size_t high = place(&d->phi, q[0], q[1], q[2]), low = high - across(d, a);
            double theta = 0, tension = 0;
            d->jump[a][m] = 0, d->beta[a][m] = 1 / fmax(d->air, 1e-30);
            if (q[a] == 0 || q[a] == d->n) continue;
            const int is_cut = cut(d, low, high, &theta, &tension), liquid_below = d->phi.at[low] < 0;
            const double in_liquid = is_cut ? (liquid_below ? theta : 1 - theta) : liquid_below;
            d->beta[a][m] = 1 / fmax(in_liquid + (1 - in_liquid) * d->air, 1e-30);
            if (!is_cut) continue;
            d->jump[a][m] = liquid_below ? -tension : tension;
            pg_cell_value *const e = &d->entry[d->entries++];
            for (int b = 0; b < 3; b++) e->cell[b] = q[b] - (b == a && liquid_below);
            e->face = 2 * a + liquid_below, e->value = tension, e->theta = d->staircase ? 1 : fmax(in_liquid, 1e-9);
            sample_require(d->entries < d->room, "the surface fits in the list");
        }
    }
}

/* Takes the divergence of the velocities away. */
static void project(struct droplet *d)
{
    describe_surface(d);
    memset(d->f, 0, d->cells * sizeof *d->f);
    for (int a = 0; a < d->dim; a++)
        for (size_t m = 0; m < d->cells; m++) {
            const struct field *v = &d->velocity[a];
            int c[3];
            find(&d->phi, m, c);
            const size_t low = place(v, c[0], c[1], c[2]);
            c[a]++;
            const size_t high = place(v, c[0], c[1], c[2]);
            d->f[m] -= (v->at[high] - v->at[low]) / (d->h * d->dt);
            if (d->air > 0)
                d->f[m] += (d->beta[a][low] * d->jump[a][low] - d->beta[a][high] * d->jump[a][high]) / (d->h * d->h);
        }
    pg_cells cells = {0};
    if (d->air > 0) for (int a = 0; a < d->dim; a++) cells.beta_face[a] = d->beta[a];
    else cells.mask = d->mask, cells.air_value = d->entry, cells.air_values = d->entries;
    if (!d->solver) {
        pg_desc desc = {0};
        desc.dim = d->dim, desc.backend = d->backend;
        for (int a = 0; a < d->dim; a++) desc.n[a] = d->n, desc.h[a] = d->h, desc.centring[a] = PG_CELL;
        for (int q = 0; q < 2 * d->dim; q++) desc.face[q].kind = PG_NEUMANN;
        desc.cells = cells;
        /* Later lists may be longer: entries that repeat one with the value 0 hold room for them. */
        for (int e = d->entries; e < d->room && d->air == 0; e++) d->entry[e] = d->entry[0], d->entry[e].value = 0;
        if (d->air == 0) desc.cells.air_values = d->room;
        sample_check(pg_create(&desc, &d->solver), NULL);
    }
    sample_check(pg_set_cells(d->solver, &cells), d->solver);
    const pg_stop stop = {.guess = PG_GUESS_U, .norm = PG_NORM_MAX, .atol = 1e-4 / d->dt};
    sample_check(pg_solve(d->solver, d->p, d->f, &stop), d->solver);
    sample_check(pg_get_report(d->solver, &d->report), d->solver);
    d->divergence = fmax(d->divergence, d->report.residual * d->dt);
    for (int a = 0; a < d->dim; a++) {
        sample_check(pg_gradient(d->solver, d->p, a, d->slope, PG_AT_FACES), d->solver);
        for (size_t m = 0; m < count_of(&d->velocity[a]); m++)
            d->velocity[a].at[m] -=
                d->dt * (d->air > 0 ? d->beta[a][m] * (d->slope[m] - d->jump[a][m] / d->h) : d->slope[m]);
    }
}

/* The viscosity's share of a step, which calms the shortest ripples */
static void diffuse(struct droplet *d)
{
    for (int a = 0; a < d->dim; a++) {
        const struct field *v = &d->velocity[a], *to = &d->next[a];
        const size_t step[3] = {1, (size_t)v->size[0], (size_t)v->size[0] * v->size[1]};
        for (size_t m = 0; m < count_of(v); m++) {
            double sum = 0;
            int q[3];
            find(v, m, q);
            for (int b = 0; b < d->dim; b++) {
                if (q[b] > 0) sum += v->at[m - step[b]] - v->at[m];
                if (q[b] < v->size[b] - 1) sum += v->at[m + step[b]] - v->at[m];
            }
            to->at[m] = v->at[m] + viscosity * d->dt / (d->h * d->h) * sum;
        }
        memcpy(v->at, to->at, count_of(v) * sizeof(double));
    }
}

/* Faces outside of the liquid get the mean of their neighbours, layer by layer, for what is carried there. */
static void extrapolate(struct droplet *d)
{
    for (int a = 0; a < d->dim; a++) {
        struct field *v = &d->velocity[a];
        const size_t count = count_of(v), step[3] = {1, v->size[0], (size_t)v->size[0] * v->size[1]};
        unsigned char *known = sample_alloc(count, PG_MEM_HOST);
        for (size_t m = 0; m < count; m++) {
            int q[3];
            find(v, m, q);
            const size_t high = place(&d->phi, q[0], q[1], q[2]);
            known[m] = (q[a] < d->n && d->phi.at[high] < 0) || (q[a] > 0 && d->phi.at[high - across(d, a)] < 0);
        }
        for (int layer = 1; layer <= LAYERS; layer++)
            for (size_t m = 0; m < count; m++) {
                double sum = 0;
                int near = 0, q[3];
                if (known[m]) continue;
                find(v, m, q);
                for (int e = 0; e < 2 * d->dim; e++) {
                    const int b = e / 2, up = e % 2;
                    if (q[b] + (up ? 1 : -1) < 0 || q[b] + (up ? 1 : -1) >= v->size[b]) continue;
                    const size_t other = up ? m + step[b] : m - step[b];
                    if (known[other] && known[other] <= layer) sum += v->at[other], near++;
                }
                if (near) v->at[m] = sum / near, known[m] = (unsigned char)(layer + 1);
            }
        free(known);
    }
}

static void step(struct droplet *d)
{
    if (d->air == 0) extrapolate(d);
    carry(d, &d->phi, &d->next[3]);
    for (int a = 0; a < d->dim; a++) carry(d, &d->velocity[a], &d->next[a]);
    for (int a = 0; a < 4; a++) {
        struct field *of = a < 3 ? &d->velocity[a] : &d->phi;
        if (a >= d->dim && a < 3) continue;
        double *const old = of->at;
        of->at = d->next[a].at, d->next[a].at = old;
    }
    if (d->air == 0) extrapolate(d);
    diffuse(d);
    project(d);
}

/* A round droplet with a bulge of the second mode, at rest */
static void begin(struct droplet *d, const struct droplet *options, int staircase, double bulge)
{
    *d = *options;
    d->staircase = staircase, d->h = 1.0 / d->n;
    d->dt = 0.5 * sqrt((1 + d->air) * d->h * d->h * d->h / (4 * pi * sigma));    /* for the shortest ripples */
    d->phi = make_field(d, -1), d->kappa = make_field(d, -1), d->next[3] = make_field(d, -1);
    d->cells = count_of(&d->phi);
    size_t faces = 0;
    for (int a = 0; a < d->dim; a++) {
        d->velocity[a] = make_field(d, a), d->next[a] = make_field(d, a);
        faces = count_of(&d->velocity[a]);
        d->beta[a] = sample_alloc(faces * sizeof(double), PG_MEM_HOST);
        d->jump[a] = sample_alloc(faces * sizeof(double), PG_MEM_HOST);
    }
    d->slope = sample_alloc(faces * sizeof(double), PG_MEM_HOST);
    d->room = (d->dim == 3 ? 12 * d->n : 16) * d->n;
    d->entry = sample_alloc((size_t)d->room * sizeof *d->entry, PG_MEM_HOST);
    d->p = sample_alloc(d->cells * sizeof(double), PG_MEM_HOST);
    d->f = sample_alloc(d->cells * sizeof(double), PG_MEM_HOST);
    d->mask = sample_alloc(d->cells, PG_MEM_HOST);
    memset(d->p, 0, d->cells * sizeof(double));
    for (size_t m = 0; m < d->cells; m++) {
        const double x = (m % d->n + 0.5) * d->h - 0.5, y = (m / d->n % d->n + 0.5) * d->h - 0.5,
                     z = d->dim == 3 ? (m / d->n / d->n + 0.5) * d->h - 0.5 : 0, r = sqrt(x * x + y * y + z * z),
                     square = x * x / fmax(r * r, 1e-12), mode = d->dim == 3 ? (3 * square - 1) / 2 : 2 * square - 1;
        d->phi.at[m] = r - radius * (1 + bulge * mode);
    }
}

static void end(struct droplet *d)
{
    pg_destroy(d->solver);
    for (int a = 0; a < 4; a++) free(d->next[a].at);
    for (int a = 0; a < 3; a++) free(d->velocity[a].at), free(d->beta[a]), free(d->jump[a]);
    free(d->phi.at), free(d->kappa.at), free(d->slope), free(d->entry), free(d->p), free(d->f), free(d->mask);
}

/* From the middle along an axis to where phi is 0 */
static double reach(const struct droplet *d, int axis)
{
    double low = 0, high = 0.5;
    for (int q = 0; q < 50; q++) {
        double x[3] = {0.5, 0.5, 0.5};
        const double middle = (low + high) / 2;
        x[axis] += middle;
        *(at_point(d, &d->phi, x) < 0 ? &low : &high) = middle;
    }
    return low;
}

static double liquid(const struct droplet *d)
{
    double sum = 0;
    for (size_t m = 0; m < d->cells; m++) sum += picture_clamp(0.5 - d->phi.at[m] / d->h, 0, 1);
    return sum;
}

/* At rest: the error of the pressure inside, and the greatest velocity after some steps */
static int rest(const struct droplet *options, int staircase)
{
    struct droplet d;
    begin(&d, options, staircase, 0);
    double speed = 0, inside = 0, least = 1e300;
    for (int q = 0; q < 20; q++) step(&d);
    for (int a = 0; a < d.dim; a++)
        for (size_t m = 0; m < count_of(&d.velocity[a]); m++) speed = fmax(speed, fabs(d.velocity[a].at[m]));
    for (size_t m = 0; m < d.cells; m++) {
        if (d.phi.at[m] < -0.1) inside = d.p[m];
        least = fmin(least, d.p[m]);
    }
    const double exact = sigma * (d.dim - 1) / radius, off = fabs((inside - (d.air > 0 ? least : 0)) / exact - 1);
    printf("%-9s at rest: pressure inside off by %.2f %%, velocities up to %.1e, divergence left %.0e, %d iterations\n",
           staircase ? "staircase" : "surface", 100 * off, speed, d.divergence, d.report.iterations);
    const int good = off < 0.02 && speed < 0.02 && d.divergence < 2e-4;
    end(&d);
    return good;
}

/* A surface at a point whose slope is nx, ny, lit from the upper left */
static void shade(double nx, double ny, double height, double colour[3])
{
    const double light = picture_clamp(0.55 + 0.45 * (0.7 * ny - 0.6 * nx) + 0.25 * height, 0, 1),
                 glint = pow(picture_clamp(1 - 2.2 * hypot(nx + 0.45, ny - 0.5), 0, 1), 2);
    colour[0] = 0.16 * light + glint, colour[1] = 0.50 * light + glint, colour[2] = 0.95 * light + glint;
}

/* The droplet as a lens whose height follows from phi; of 3D its middle */
static struct picture draw(const struct droplet *d, double time)
{
    enum { WIDTH = 320 };
    const double e = d->h / 2, z = d->dim == 3 ? 0.5 : 0;
    struct picture p = picture_create(WIDTH, WIDTH);
    for (int m = 0; m < WIDTH * WIDTH; m++) {
        const double x = (m % WIDTH + 0.5) / WIDTH, y = 1 - (m / WIDTH + 0.5) / WIDTH, here[3] = {x, y, z},
                     right[3] = {x + e, y, z}, left[3] = {x - e, y, z}, up[3] = {x, y + e, z}, down[3] = {x, y - e, z},
                     phi = at_point(d, &d->phi, here), deep = picture_clamp(-phi / radius, 0, 1),
                     height = sqrt(deep * (2 - deep)), covers = picture_clamp(0.5 - phi * WIDTH / 2, 0, 1);
        double colour[3];
        shade((at_point(d, &d->phi, right) - at_point(d, &d->phi, left)) / d->h * (1 - height),
              (at_point(d, &d->phi, up) - at_point(d, &d->phi, down)) / d->h * (1 - height), height, colour);
        for (int c = 0; c < 3; c++) {
            const double room = 0.06 + 0.05 * y + (c == 2) * 0.05;
            p.rgb[3 * m + c] = (unsigned char)(255 * picture_clamp(covers * colour[c] + (1 - covers) * room, 0, 1));
        }
    }
    char text[32];
    snprintf(text, sizeof text, "t = %.2f", time);
    picture_text(&p, 12, WIDTH - 12, 2, 0, 255, text);
    return p;
}

/* Rayleigh's, of the second mode; in 2D of a cylinder */
static double period_of(const struct droplet *d)
{
    const double square = sigma / pow(radius, 3) * (d->dim == 3 ? 24 / (3 + 2 * d->air) : 6 / (1 + d->air));
    return 2 * pi / sqrt(square);
}

/* A bulge that is a quarter of the radius, for two periods. */
static void film(const struct droplet *options, const char *path)
{
    enum { FRAMES = 48 };
    struct picture frame[FRAMES];
    struct droplet d;
    begin(&d, options, 0, 0.25);
    double time = 0;
    for (int q = 0; q < FRAMES; q++) {
        for (; time < q * 2 * period_of(&d) / FRAMES; time += d.dt) step(&d);
        frame[q] = draw(&d, time);
    }
    film_sheet(frame, FRAMES, path), film_write(frame, FRAMES, path);
    for (int q = 0; q < FRAMES; q++) free(frame[q].rgb);
    end(&d);
}

/* A small bulge swings: the period, from where both axes are equally long for the first time, against
   Rayleigh's, which knows neither the walls, which slow another fluid, nor viscosity. */
static int swing(const struct droplet *options, int staircase)
{
    struct droplet d;
    begin(&d, options, staircase, 0.05);
    const double exact = period_of(&d), volume = liquid(&d);
    double time = 0, before = reach(&d, 0) - reach(&d, 1), period = 0;
    while (period == 0 && time < exact) {
        step(&d), time += d.dt;
        const double now = reach(&d, 0) - reach(&d, 1);
        if (now <= 0) period = 4 * (time - d.dt * now / (now - before));
        before = now;
    }
    const double off = fabs(period / exact - 1), lost = fabs(liquid(&d) / volume - 1);
    printf("%-9s swings in %.4f, Rayleigh has %.4f: off by %.1f %%; volume changed by %.2f %%, divergence left %.0e\n",
           staircase ? "staircase" : "surface", period, exact, 100 * off, 100 * lost, d.divergence);
    const int good = off < 1.6 / d.n + fmin(d.air, 0.2) && lost < 0.01 && d.divergence < 2e-4;
    end(&d);
    return good;
}

int main(int argc, char **argv)
{
    struct droplet options = {0};
    options.backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    options.dim = sample_take(&argc, argv, "-3", 1) ? 3 : 2;
    options.n = (int)sample_number(&argc, argv, "-n", 32, 16, 512);
    options.air = sample_number(&argc, argv, "--air", 0, 0, 1000);
    const char *path = sample_option(&argc, argv, "-o", NULL);
    if (argc > 1) {
        fprintf(stderr, "usage: %s [-3] [-n CELLS] [--air DENSITY] [-b auto|cuda|cpu] [-o NAME]\n", argv[0]);
        return 2;
    }
    if (options.air == 0) rest(&options, 1), swing(&options, 1);
    const int rests = rest(&options, 0), swings = swing(&options, 0);
    printf("it rests, and it swings as it has to: %s\n", rests && swings ? "yes" : "NO");
    if (path) film(&options, path);
    return !(rests && swings);
}
