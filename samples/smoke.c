/* Smoke that rises around obstacles: incompressible flow in a box with solid cells and an open top. From the project's
   folder, without a GPU:

       c++ -x c++ -std=c++17 -O3 -fopenmp -c poisson_gpu.cu
       cc -O2 -fopenmp -I. -DPG_SAMPLE_PNG samples/smoke.c poisson_gpu.o -o smoke -lpng -lstdc++ -lm

   and with one:

       nvcc -O3 -std=c++17 -arch=native -Xcompiler -fopenmp -c poisson_gpu.cu
       nvcc -O3 -std=c++17 -arch=native -Xcompiler -fopenmp -I. -DPG_SAMPLE_CUDA -DPG_SAMPLE_PNG -x cu \
            -c samples/smoke.c -o smoke.o
       nvcc -Xcompiler -fopenmp smoke.o poisson_gpu.o -o smoke -lpng

   With MPI several ranks share the work and find the same flow. Compile as without a GPU, but by mpicxx and mpicc with
   -DPG_USE_MPI, and

       mpirun -n 4 smoke -b cpu

   or as with one, but by nvcc -ccbin mpicxx with -DPG_USE_MPI: with -b cuda rank r takes GPU r of its host. The flow is
   in parts then, the pressure, for which every rank has the whole mask, is not: that takes as long as on one.

   smoke --help tells the options; smoke_flow.h has the equations and the time step. Each step has a Poisson problem for
   the pressure, with desc.mask for the solid cells and the last pressure as guess.

   Known beforehand, and checked: what a projection leaves of the divergence is within the tolerance in every cell; all
   values are finite; the flow carries smoke and makes none. Interpolation does make some, a few percent of it in a step
   where plumes are two or three cells wide: more is a mistake, and so much is taken away again, so that there is never
   more smoke in the box than the source gave.

   Pictures in 3D: rays through the smoke, which absorbs light and scatters what reaches it from a lamp above, dimmed by
   the smoke and the solids on its way. */
#include <unistd.h>
#include "smoke_flow.h"
#include "film.h"

static const struct sample_choice
    precisions[] = {{"f32", PG_F32}, {"f64", PG_F64}, {NULL, 0}},
    backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};

/* The box and what is solid in it. A picture's darkness is kept a value a cell, -1/2 white to 1/2 black. */
enum { SPHERE, WALL, PICTURE };
static const struct sample_choice scenes[] = {{"sphere", SPHERE}, {"wall", WALL}, {NULL, 0}};
struct scene {
    unsigned kind;
    int dim, n[3];
    double h, size[3], *darkness;
};

static const char usage[] =
    "smoke [-2] [-n CELLS] [--steps S] [--cfl C | --dt T] [--scene sphere|wall | --mask FILE.png]\n"
    "      [-p f32|f64] [-b auto|cuda|cpu] [-o NAME]\n"
    "    -2          in 2D: x and y instead of x, y and z; the last one points up\n"
    "    -n          cells along the longest side of the box, 33 unless told\n"
    "    --steps     time steps, twice the cells unless told\n"
    "    --cfl       cells that the fastest air passes in a step, 2 unless told; or\n"
    "    --dt        the length of a step; the box's longest side is 1, and smoke rises with a speed of 1 to 4\n"
    "    --scene     sphere: an obstacle above the source; wall: one cell thick, with a gap\n"
    "    --mask      2D: the dark pixels of a picture are solid\n"
    "    -p          precision of all values, f32 unless told\n"
    "    -b          where it runs; --backend is the same\n"
    "    -o          writes NAME.png: the smoke at the end, and the pressure with streamlines; NAME_sheet.png: six\n"
    "                moments; and an animated NAME_anim.png; without libpng NAME.ppm and NAME_sheet.ppm\n";

/* How far a point is outside of what is solid, negative within. */
static double level(const struct scene *s, const double x[3])
{
    const double up = x[s->dim - 1], depth = s->dim == 3 ? x[1] - 0.5 : 0;
    if (s->kind == SPHERE) return sqrt(pow(x[0] - 0.53, 2) + depth * depth + pow(up - 0.48, 2)) - 0.15;
    if (s->kind == WALL) {
        const double middle = (floor(0.45 / s->h) + 0.5) * s->h;
        return fmax(fabs(up - middle) - s->h / 2, 0.16 - hypot(x[0] - 0.66, depth));
    }
    const int i = (int)picture_clamp(x[0] / s->h, 0, s->n[0] - 1);
    const int j = (int)picture_clamp(x[1] / s->h, 0, s->n[1] - 1);
    return -s->h * s->darkness[i + (size_t)s->n[0] * j];
}

/* The mean darkness of each cell's pixels; the box has the picture's sides. */
static void read_darkness(struct scene *s, const char *name, int cells)
{
#ifdef PG_SAMPLE_PNG
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_file(&image, name)) {
        fprintf(stderr, "%s: %s\n", name, image.message);
        exit(2);
    }
    image.format = PNG_FORMAT_GRAY;
    const int width = (int)image.width, height = (int)image.height, longest = width > height ? width : height;
    unsigned char *grey = (unsigned char *)sample_alloc((size_t)width * height, PG_MEM_HOST);
    memset(grey, 255, (size_t)width * height);          /* what is seen through transparent pixels */
    if (!png_image_finish_read(&image, NULL, grey, 0, NULL)) {
        fprintf(stderr, "%s: %s\n", name, image.message);
        exit(2);
    }
    s->n[0] = (int)fmax(4, floor((double)cells * width / longest + 0.5));
    s->n[1] = (int)fmax(4, floor((double)cells * height / longest + 0.5));
    s->darkness = (double *)sample_alloc(sizeof(double) * s->n[0] * s->n[1], PG_MEM_HOST);
    for (int j = 0; j < s->n[1]; j++)
        for (int i = 0; i < s->n[0]; i++) {
            const int x0 = (int)((double)i * width / s->n[0]), x1 = (int)((i + 1.0) * width / s->n[0]);
            const int y0 = (int)((double)j * height / s->n[1]), y1 = (int)((j + 1.0) * height / s->n[1]);
            double sum = 0, count = 0;
            for (int y = y0; y < (y1 > y0 ? y1 : y0 + 1); y++)
                for (int x = x0; x < (x1 > x0 ? x1 : x0 + 1); x++, count++) sum += grey[x + (size_t)width * y];
            s->darkness[i + (size_t)s->n[0] * (s->n[1] - 1 - j)] = 0.5 - sum / count / 255;
        }
    free(grey);
#else
    (void)s, (void)cells;
    fprintf(stderr, "%s: built without libpng, which reads pictures\n", name);
    exit(2);
#endif
}

static struct scene scene_create(int dim, unsigned kind, int cells, const char *mask_name)
{
    struct scene s;
    memset(&s, 0, sizeof s);
    s.kind = kind;
    if (mask_name) s.kind = PICTURE;
    s.dim = dim;
    for (int a = 0; a < 3; a++) s.n[a] = a < dim ? cells : 1;
    if (mask_name) read_darkness(&s, mask_name, cells);
    s.h = 1.0 / (s.n[0] > s.n[1] ? s.n[0] : s.n[1]);
    for (int a = 0; a < 3; a++) s.size[a] = a < dim ? s.n[a] * s.h : 1;
    return s;
}

/* A pg_cell_kind a cell. */
static unsigned char *scene_mask(const struct scene *s)
{
    unsigned char *mask = (unsigned char *)sample_alloc((size_t)s->n[0] * s->n[1] * s->n[2], PG_MEM_HOST), *at = mask;
    for (int k = 0; k < s->n[2]; k++)
        for (int j = 0; j < s->n[1]; j++)
            for (int i = 0; i < s->n[0]; i++) {
                const double x[3] = {(i + 0.5) * s->h, (j + 0.5) * s->h, (k + 0.5) * s->h};
                *at++ = level(s, x) < 0 ? PG_SOLID : PG_FLUID;
            }
    return mask;
}

/* Density of the smoke and what of the lamp's light reaches each cell, 0 to 1, both on the host; n cells an axis. */
struct volume {
    const struct scene *scene;
    float *density, *light;
};
static const double to_lamp[3] = {0.75, -0.20, 1};      /* per unit upwards */
static const double thickness = 9;      /* optical, of smoke of density 1, over the box's longest side */
static const double absorbed = 0.9;     /* the share of it that dims the lamp; the rest scatters forwards and goes on */

/* Linear between cells, the nearest cell's towards the sides; at is counted in cells, from the middle of the first. */
static double between_cells(const struct scene *s, const float *value, const double at[3])
{
    double part[3], sum = 0;
    size_t m = 0, step[3], stride = 1;
    for (int a = 0; a < 3; a++) {
        const double t = picture_clamp(at[a], 0, s->n[a] - 1);
        const int base = (int)t;
        part[a] = t - base;
        step[a] = base + 1 < s->n[a] ? stride : 0;
        m += base * stride;
        stride *= (size_t)s->n[a];
    }
    for (int q = 0; q < 8; q++)
        sum += (q & 1 ? part[0] : 1 - part[0]) * (q & 2 ? part[1] : 1 - part[1]) * (q & 4 ? part[2] : 1 - part[2]) *
               value[m + (q & 1 ? step[0] : 0) + (q & 2 ? step[1] : 0) + (q & 4 ? step[2] : 0)];
    return sum;
}

/* The same at a point of the box. */
static double value_at(const struct scene *s, const float *value, const double x[3])
{
    const double at[3] = {x[0] / s->h - 0.5, x[1] / s->h - 0.5, x[2] / s->h - 0.5};
    return between_cells(s, value, at);
}

static int inside(const struct scene *s, const double x[3])
{
    for (int a = 0; a < 3; a++)
        if (x[a] < 0 || x[a] > s->size[a]) return 0;
    return 1;
}

/* Light, layer by layer from the top: what reaches the point of the layer above that the light comes through, dimmed on
   the way down. */
static void fill_light(const struct volume *v)
{
    const struct scene *s = v->scene;
    const double path = s->h * sqrt(1 + to_lamp[0] * to_lamp[0] + to_lamp[1] * to_lamp[1]);
    for (int k = s->n[2] - 1; k >= 0; k--)
        for (int j = 0; j < s->n[1]; j++)
            for (int i = 0; i < s->n[0]; i++) {
                const size_t m = i + s->n[0] * (j + (size_t)s->n[1] * k);
                const double x[3] = {(i + 0.5) * s->h, (j + 0.5) * s->h, (k + 0.5) * s->h};
                const double above[3] = {i + to_lamp[0], j + to_lamp[1], k + 1.0};   /* no part of a layer below */
                const int from_outside = k + 1 == s->n[2] || above[0] < -0.5 || above[0] > s->n[0] - 0.5 ||
                                         above[1] < -0.5 || above[1] > s->n[1] - 0.5;
                const double coming = from_outside ? 1 : between_cells(s, v->light, above);
                const double solid = picture_clamp(0.5 - level(s, x) / s->h, 0, 1);
                v->light[m] = (float)(coming * exp(-absorbed * thickness * path * v->density[m]) * (1 - 0.95 * solid));
            }
}

static double dot(const double x[3], const double y[3]) { return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]; }
static void normalise(double x[3])
{
    const double size = sqrt(dot(x, x));
    for (int a = 0; a < 3; a++) x[a] /= size;
}

/* Repeatable noise in 0..1 for pixels: where on its first step a ray begins, so that steps do not show as bands. */
static double pixel_noise(int x, int y) { return 0.5 + 0.5 * sample_noise((uint64_t)x + 65536 * (uint64_t)y); }

/* What of a solid is shown ends a little before the sides of the box, so that it has edges there. */
static double shown_level(const struct scene *s, const double x[3])
{
    const double half[2] = {s->size[0] / 2, s->size[1] / 2};
    return fmax(level(s, x), fmax(fabs(x[0] - half[0]) - half[0], fabs(x[1] - half[1]) - half[1]) + 0.002);
}

/* Colour of a solid's surface: the lamp, a dim sky above, and an edge that shines a little. */
static void shade_solid(const struct volume *v, const double x[3], const double way[3], double colour[3])
{
    static const double paint[3] = {0.90, 0.30, 0.08};
    const struct scene *s = v->scene;
    double normal[3], lamp[3] = {to_lamp[0], to_lamp[1], to_lamp[2]}, outside[3];
    for (int a = 0; a < 3; a++) {
        double low[3] = {x[0], x[1], x[2]}, high[3] = {x[0], x[1], x[2]};
        low[a] -= 0.25 * s->h, high[a] += 0.25 * s->h;
        normal[a] = shown_level(s, high) - shown_level(s, low);
    }
    normalise(normal);
    normalise(lamp);
    for (int a = 0; a < 3; a++) outside[a] = x[a] + 1.2 * s->h * normal[a];
    const double light = value_at(s, v->light, outside) * fmax(0, dot(normal, lamp));
    const double edge = pow(1 - fabs(dot(normal, way)), 3), sky = 0.10 + 0.08 * normal[2];
    for (int c = 0; c < 3; c++) colour[c] = paint[c] * (0.8 * light + sky) + 0.10 * edge * (0.3 + 0.7 * light);
}

/* Light on the floor at a point, through the box on the way to the lamp; coarse steps do for a soft shadow. */
static double floor_light(const struct volume *v, const double at[2])
{
    enum { STEPS = 48 };
    const struct scene *s = v->scene;
    double depth = 0;
    for (int q = 0; q < STEPS; q++) {
        const double up = (q + 0.5) / STEPS * s->size[2];
        const double x[3] = {at[0] + up * to_lamp[0], at[1] + up * to_lamp[1], up};
        if (!inside(s, x)) continue;
        depth += absorbed * thickness * value_at(s, v->density, x);
        depth += 60 * picture_clamp(0.5 - level(s, x) / s->h, 0, 1);
    }
    return exp(-depth * s->size[2] / STEPS);
}

/* The dark room that the box stands in: a floor with a pool of light, and the darkness behind it. */
static void shade_room(const struct volume *v, const double eye[3], const double way[3], double colour[3])
{
    const double height = 0.5 + 0.5 * way[2], shade[3] = {0.004, 0.005, 0.009};
    for (int c = 0; c < 3; c++) colour[c] = shade[c] * (0.5 + height);
    if (way[2] >= 0) return;
    const double t = -eye[2] / way[2], at[2] = {eye[0] + t * way[0], eye[1] + t * way[1]};
    const double far = hypot(at[0] - 0.5, at[1] - 0.5), pool = exp(-2.2 * far * far);
    if (pool < 0.004) return;
    const double light = 0.11 * pool * (0.16 + 0.84 * floor_light(v, at));
    colour[0] += 0.62 * light, colour[1] += 0.66 * light, colour[2] += 0.78 * light;
}

/* Where a ray enters and leaves the box; entry not before the eye. Returns 0 if it misses. */
static int meets_box(const struct scene *s, const double eye[3], const double way[3], double *enter, double *leave)
{
    *enter = 0, *leave = 1e9;
    for (int a = 0; a < 3; a++) {
        const double one = -eye[a] / way[a], two = (s->size[a] - eye[a]) / way[a];
        *enter = fmax(*enter, fmin(one, two));
        *leave = fmin(*leave, fmax(one, two));
    }
    return *enter < *leave;
}

/* Smoke fades towards the open top, where it leaves the grid. */
static double below_top(const struct scene *s, double up)
{
    const double t = picture_clamp((s->size[2] - up) / 0.35, 0, 1);
    return t * t * t;
}

/* What a pixel shows, where it is one thing. */
enum { SHOWS_EDGES, SHOWS_SMOKE, SHOWS_SOLID, SHOWS_ROOM };

/* Colour along a ray: smoke in front of a solid, or of the room. Returns what is seen. */
static int trace_ray(const struct volume *v, const double eye[3], const double way[3], double noise, double colour[3])
{
    static const double lamp[3] = {1.70, 1.42, 1.10}, sky[3] = {0.040, 0.060, 0.105};
    const struct scene *s = v->scene;
    double t, leave, seen = 1, smoke[3] = {0, 0, 0}, behind[3], x[3];
    int solid = 0;
    const int meets = meets_box(s, eye, way, &t, &leave);
    const double step = 0.5 * s->h;
    for (t += step * noise; meets && t < leave && seen > 0.004 && !solid; t += step) {
        for (int a = 0; a < 3; a++) x[a] = eye[a] + t * way[a];
        const double off = shown_level(s, x), density = value_at(s, v->density, x) * below_top(s, x[2]);
        solid = off < 0;
        if (solid || density < 0.002) continue;
        const double stop = 1 - exp(-thickness * density * step), light = value_at(s, v->light, x);
        for (int c = 0; c < 3; c++) smoke[c] += seen * stop * (lamp[c] * light + sky[c] * (0.6 + 0.8 * x[2]));
        seen *= 1 - stop;
    }
    if (solid) {
        double back = 0, front = -step, at[3];
        for (int q = 0; q < 12; q++) {                  /* the surface, by bisection of the last step */
            const double half = (back + front) / 2;
            for (int a = 0; a < 3; a++) at[a] = x[a] + half * way[a];
            if (shown_level(s, at) < 0) back = half;
            else front = half;
        }
        shade_solid(v, at, way, behind);
    } else shade_room(v, eye, way, behind);
    for (int c = 0; c < 3; c++) colour[c] = smoke[c] + seen * behind[c];
    return seen < 0.1 ? SHOWS_SMOKE : seen < 0.9 ? SHOWS_EDGES : solid ? SHOWS_SOLID : SHOWS_ROOM;
}

/* A colour of light as screens want it, 0 to 1 each: bright light saturates slowly, and the rest is a root. */
static double on_screen(double light) { return pow(1 - exp(-1.5 * fmax(0, light)), 1 / 2.2); }

/* Rays from an eye above the floor, rays * rays a pixel. Many rays also round to bytes by chance, against bands. */
static void draw_3d(struct picture *p, const struct volume *v, int rays, unsigned char *kinds)
{
    const double target[3] = {0.5, 0.5, 0.45}, back[3] = {0.42, -0.88, 0.20}, distance = 2.75, width = 0.30;
    double ahead[3], right[3], up[3], eye[3];
    for (int a = 0; a < 3; a++) ahead[a] = -back[a];
    normalise(ahead);
    right[0] = ahead[1], right[1] = -ahead[0], right[2] = 0;
    normalise(right);
    for (int a = 0; a < 3; a++) {
        const int b = (a + 1) % 3, c = (a + 2) % 3;
        up[a] = right[b] * ahead[c] - right[c] * ahead[b];
        eye[a] = target[a] - distance * ahead[a];
    }
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 256)
#endif
    for (int m = 0; m < p->width * p->height; m++) {
        double sum[3] = {0, 0, 0};
        for (int q = 0; q < rays * rays; q++) {
            const int x = m % p->width * rays + q % rays, y = m / p->width * rays + q / rays;
            const double across = width * (2.0 * x + 1 - p->width * rays) / (p->width * rays);
            const double upwards = width * (p->height * rays - 2.0 * y - 1) / (p->width * rays);
            double way[3], colour[3];
            for (int a = 0; a < 3; a++) way[a] = distance / 2 * ahead[a] + across * right[a] + upwards * up[a];
            normalise(way);
            const int kind = trace_ray(v, eye, way, pixel_noise(x, y), colour);
            kinds[m] = (unsigned char)(q == 0 || kind == kinds[m] ? kind : SHOWS_EDGES);
            for (int c = 0; c < 3; c++) sum[c] += on_screen(colour[c]) / (rays * rays);
        }
        const double round = rays > 1 ? pixel_noise(m, 1) : 0.5;
        for (int c = 0; c < 3; c++) p->rgb[3 * m + c] = (unsigned char)fmin(255, 255 * sum[c] + round);
    }
}

static const struct picture_scale smoke_scale = {0, 1, 0, "smoke"};

/* The smoke in 2D: from dark to bright, and what is solid grey. Returns whether it looks right. */
static int draw_2d(struct picture *p, const struct volume *v)
{
    const struct scene *s = v->scene;
    const size_t cells = (size_t)s->n[0] * s->n[1];
    double *field = (double *)sample_alloc(2 * cells * sizeof *field, PG_MEM_HOST), *off = field + cells;
    for (size_t m = 0; m < cells; m++) {
        const double x[3] = {(m % s->n[0] + 0.5) * s->h, (m / s->n[0] + 0.5) * s->h, 0.5 * s->h};
        field[m] = v->density[m];
        off[m] = picture_clamp(level(s, x) / s->h, -2, 2);
    }
    picture_colours(p, field, s->n[0], s->n[1], &smoke_scale);
    const int good = picture_shows(p, field, s->n[0], s->n[1], &smoke_scale);
    picture_solid(p, off, s->n[0], s->n[1]);
    free(field);
    return good;
}

/* A film: at most so many frames, evenly spaced in steps. */
enum { FRAMES = 48, FRAME_WIDTH = 240, LARGE = 640 };
struct film {
    const char *path;
    int every, frames;
    struct picture frame[FRAMES];
};

/* Whether all that is seen alone has a brightness that it has in any light, and light and shade. What few pixels show may
   be all in shadow. */
static int looks_right(const struct picture *p, const unsigned char *kinds)
{
    static const struct { const char *name; double low, high, spread; } may_be[3] = {
        {"smoke", 90, 235, 2}, {"solids", 45, 215, 1}, {"the room", 15, 90, 2}};
    int good = 1;
    for (int kind = SHOWS_SMOKE; kind <= SHOWS_ROOM; kind++) {
        const struct picture_look look = picture_look_at(p, kinds, kind);
        const double low = may_be[kind - 1].low, high = may_be[kind - 1].high, spread = may_be[kind - 1].spread;
        if (look.pixels < (size_t)p->width * p->height / 200) continue;
        if (look.mean >= low && look.mean <= high && look.spread >= spread) continue;
        printf("the picture: %s has a brightness of %.0f, spread %.0f; %.0f to %.0f is allowed, spread from %.0f on\n",
               may_be[kind - 1].name, look.mean, look.spread, low, high, spread);
        good = 0;
    }
    return good;
}

static struct picture_axes axes_of(const struct scene *s)
{
    const struct picture_axes axes = {{"x", s->dim == 3 ? "z, in the plane y = 1/2" : "y"}, {0.5 * s->h, 0.5 * s->h},
                                      {s->size[0] - 0.5 * s->h, s->size[s->dim - 1] - 0.5 * s->h}};
    return axes;
}

/* Values of cells, on the host. Solid cells get the mean of the fluid ones beside them, so that nothing fades towards
   their surface. */
static void get_cells(double *value, const struct smoke *w, const struct scene *s, const void *array)
{
    const size_t cells = (size_t)s->n[0] * s->n[1] * s->n[2];
    unsigned char *mask = (unsigned char *)sample_alloc(cells, PG_MEM_HOST);
    sample_get(value, array, cells, &w->desc);
    sample_copy(mask, w->g.mask, cells, w->desc.memory);
    for (size_t m = 0; m < cells; m++) {
        const int c[3] = {(int)(m % s->n[0]), (int)(m / s->n[0] % s->n[1]), (int)(m / s->n[0] / s->n[1])};
        double sum = 0, count = 0;
        for (int a = 0; a < s->dim && mask[m] != PG_FLUID; a++)
            for (int side = -1; side <= 1; side += 2) {
                const size_t beside = m + (side > 0 ? w->g.below[a] : -w->g.below[a]);
                if (c[a] + side < 0 || c[a] + side >= s->n[a] || mask[beside] != PG_FLUID) continue;
                sum += value[beside], count++;
            }
        if (count > 0) value[m] = sum / count;
    }
    free(mask);
}

/* The smoke of this moment as a picture of so many pixels across; of several ranks the first one draws it. *good becomes
   0 if it does not look right. */
static struct picture draw(struct smoke *w, const struct scene *s, int width, int *good)
{
    const size_t cells = (size_t)s->n[0] * s->n[1] * s->n[2];
    const struct picture none = {0, 0, NULL};
    flow_ghosts(w, w->g.now + DENSITY, 1, w->g.below, s->n[s->dim - 1]);
    if (w->all.number > 0) return none;
    double *value = (double *)sample_alloc(cells * sizeof *value, PG_MEM_HOST);
    struct volume v = {s, (float *)sample_alloc(2 * cells * sizeof(float), PG_MEM_HOST), NULL};
    v.light = v.density + cells;
    get_cells(value, w, s, w->g.now[DENSITY]);
    for (size_t m = 0; m < cells; m++) v.density[m] = (float)value[m];
    const int height = s->dim == 3 ? width * 9 / 8 : (int)fmax(1, floor((double)width * s->n[1] / s->n[0] + 0.5));
    struct picture p = picture_create(width, height);
    if (s->dim == 3) {
        unsigned char *kinds = (unsigned char *)sample_alloc((size_t)width * height, PG_MEM_HOST);
        fill_light(&v), draw_3d(&p, &v, width == LARGE ? 2 : 1, kinds);
        *good = looks_right(&p, kinds) && *good;
        free(kinds);
    } else *good = draw_2d(&p, &v) && *good;
    const struct picture_axes axes = axes_of(s);
    char title[64];
    snprintf(title, sizeof title, width == LARGE ? "Smoke that rises past solids, t = %.3g" : "t = %.3g", w->time);
    const int with_axes = s->dim == 2 && width == LARGE;
    picture_frame(&p, title, with_axes ? &axes : NULL, with_axes ? &smoke_scale : NULL);
    free(value);
    free(v.density);
    return p;
}

/* The pressure, with lines of the flow, in the plane through the middle, of the velocities that the last projection left
   and that were carried along since. */
static struct picture draw_flow(struct smoke *w, const struct scene *s, int width, int *good)
{
    const int up = s->dim - 1, nx = s->n[0], nz = s->n[up], depth = s->dim == 3 ? s->n[1] / 2 : 0;
    const size_t cells = (size_t)s->n[0] * s->n[1] * s->n[2], plane = (size_t)nx * nz;
    const size_t faces = w->g.stride[up] * (size_t)(nz + 1);
    const struct picture none = {0, 0, NULL};
    const struct picture_axes axes = axes_of(s);
    flow_ghosts(w, &w->g.p, 1, w->g.below, nz);
    flow_ghosts(w, w->g.now, s->dim, w->g.stride, nz);
    if (w->all.number > 0) return none;
    double *u = (double *)sample_alloc((2 * faces + cells + 4 * plane) * sizeof *u, PG_MEM_HOST);
    double *v = u + faces, *p = v + faces, *x = p + cells, *z = x + plane, *off = z + plane, *shown = off + plane;
    struct picture_scale scale = {0, 1e-30, 0, "pressure"};
    sample_get(u, w->g.now[0], faces, &w->desc), sample_get(v, w->g.now[up], faces, &w->desc);
    get_cells(p, w, s, w->g.p);
    for (size_t m = 0; m < plane; m++) {
        const int c[3] = {(int)m % nx, s->dim == 3 ? depth : (int)m / nx, s->dim == 3 ? (int)m / nx : 0};
        const double at[3] = {(c[0] + 0.5) * s->h, (c[1] + 0.5) * s->h, (c[2] + 0.5) * s->h};
        const size_t face = face_index(&w->g, c);
        off[m] = picture_clamp(level(s, at) / s->h, -2, 2);
        x[m] = off[m] < 0 ? 0 : u[face] + u[face + 1], z[m] = off[m] < 0 ? 0 : v[face] + v[face + w->g.stride[up]];
        shown[m] = p[cell_index(&w->g, c)];
        scale.high = fmax(scale.high, 0.6 * fabs(shown[m]));     /* few cells have the most */
    }
    scale.low = -scale.high;
    struct picture all = picture_create(width, (int)fmax(1, floor((double)width * nz / nx + 0.5)));
    picture_colours(&all, shown, nx, nz, &scale);
    *good = picture_shows(&all, shown, nx, nz, &scale) && *good;
    picture_lines(&all, shown, nx, nz, scale.high / 10, 1.2, 0.2, 40);
    picture_streamlines(&all, x, z, nx, nz, 18, 1.4, 0.7);
    picture_solid(&all, off, nx, nz);
    picture_frame(&all, "The pressure that turns the flow aside, and streamlines", &axes, &scale);
    free(u);
    return all;
}

/* Whether the frame, if there is one of this step, looks right. */
static int film_step(struct film *film, struct smoke *w, const struct scene *s, int step)
{
    int good = 1;
    if (film->path && step % film->every == 0) film->frame[film->frames++] = draw(w, s, FRAME_WIDTH, &good);
    return good;
}

static int film_end(struct film *film, struct smoke *w, const struct scene *s)
{
    int good = 1;
    if (film->frames) {
        struct picture last[2];
        last[0] = draw(w, s, LARGE, &good);
        last[1] = draw_flow(w, s, LARGE, &good);
        if (w->all.number == 0) {
            struct picture both = picture_sheet(last, 2, 2);
            picture_write(&both, film->path);
            free(both.rgb);
            film_sheet(film->frame, film->frames, film->path);
            film_write(film->frame, film->frames, film->path);
        }
        free(last[0].rgb), free(last[1].rgb);
    }
    for (int q = 0; q < film->frames; q++) free(film->frame[q].rgb);
    return good;
}

/* Sums over the steps, of which the first is left out of the means where there are more: it has no pressure to begin
   with, and on a GPU also prepares the steps after it. */
struct sums { double steps, iterations, ms, before, after; };

static void print_step(const struct smoke *w, int step)
{
    if (isatty(2)) fputs("\r\033[K", stderr);
    if (step == 1)
        puts("step    time   divergence before      after   allowed  iterations  ms a projection  smoke in the box");
    printf("%4d  %6.3f  %18.2e  %9.1e %9.1e  %10d  %15.3f  %16.5f\n", step, w->time, w->before, w->after, w->allowed,
           w->report.iterations, w->report.milliseconds, w->mass);
    fflush(stdout);
}

/* Whether the step was as it should be; says what was not. A step gains no more smoke than interpolation
   explains, which is more where the source has few cells across. */
static int step_is_good(const struct smoke *w, int solved)
{
    const double most_gained = 0.05 * fmax(1, 33 * w->g.h);
    const int finite = isfinite(w->most) && isfinite(w->mass) && isfinite(w->before) && isfinite(w->after);
    if (!solved) printf("the pressure: %s\n", w->report.message);
    if (!finite) puts("a value is not finite");
    if (finite && w->after > w->allowed)
        printf("divergence after the projection: %.1e, at most %.1e is allowed\n", w->after, w->allowed);
    if (finite && w->gained_most > most_gained)
        printf("the flow made the smoke %.1f %% more in a step, at most %.1f %% is allowed\n", 100 * w->gained_most,
               100 * most_gained);
    if (finite && w->mass > 1.001 * w->emitted)
        printf("smoke: %.6e in the box, but only %.6e came in\n", w->mass, w->emitted);
    return solved && finite && w->after <= w->allowed && w->gained_most <= most_gained && w->mass <= 1.001 * w->emitted;
}

/* The source sways, so that no symmetry is kept. */
static void place_source(struct smoke *w, const struct scene *s)
{
    struct fields *g = &w->g;
    g->source_radius = fmax(0.08 * s->size[0], 2 * s->h);
    for (int a = 0; a < s->dim; a++)
        g->source[a] = a == g->up ? 1.3 * g->source_radius
                                  : 0.5 * s->size[a] + 0.3 * g->source_radius * sin((9 + 2 * a) * w->time + a);
}

/* So long that the fastest air, which buoyancy makes faster by then, passes so many cells. */
static double time_step(const struct smoke *w, double cells)
{
    const double way = cells * w->g.h;
    return 2 * way / (w->speed + sqrt(w->speed * w->speed + 4 * w->g.buoyancy * way));
}

static int run(struct smoke *w, const struct scene *s, int steps, double cfl, double dt, const char *path)
{
    struct sums sum = {0, 0, 0, 0, 0};
    struct film film;
    memset(&film, 0, sizeof film);
    film.path = path;
    film.every = (steps + FRAMES - 1) / FRAMES;
    int good = 1;
    for (int step = 1; step <= steps && good; step++) {
        w->g.dt = dt > 0 ? dt : time_step(w, cfl);
        place_source(w, s);
        const int solved = flow_step(w);
        if (w->emitted == 0) {
            fputs("no smoke: the source, in the middle near the bottom, is within a solid\n", stderr);
            exit(2);
        }
        good = step_is_good(w, solved);
        if ((step - 1) % ((steps + 19) / 20) == 0 || step == steps || !good) print_step(w, step);
        if (step > 1 || steps == 1) {
            sum.steps++;
            sum.iterations += w->report.iterations, sum.ms += w->report.milliseconds;
            sum.before += w->before, sum.after += w->after;
        }
        good = film_step(&film, w, s, step) && good;
        if (isatty(2)) {
            sample_bar((double)step / steps);
            fprintf(stderr, "%d of %d steps, %d iterations ", step, steps, w->report.iterations);
        }
    }
    if (isatty(2)) fputs("\r\033[K", stderr);
    good = film_end(&film, w, s) && good;
    if (sum.steps > 0)
        printf("means of %.0f steps: %.1f iterations, %.3f ms a projection; divergence %.2e before, %.1e after\n",
               sum.steps, sum.iterations / sum.steps, sum.ms / sum.steps, sum.before / sum.steps,
               sum.after / sum.steps);
    printf("smoke: %.5f emitted, %.5f in the box; a step gained at most %.1f %%, taken away again\n", w->emitted,
           w->mass, 100 * w->gained_most);
    return good;
}

static int simulate(const struct scene *s, unsigned precision, pg_backend backend, int steps, double cfl, double dt,
                    const char *path)
{
    struct smoke w;
    unsigned char *mask = scene_mask(s);
    flow_create(&w, s->dim, s->n, s->h, mask, precision, backend);
    free(mask);
    w.g.buoyancy = 12, w.g.weight = 0.5, w.g.cooling = 0.5, w.g.confinement = 1;
    printf("%d x %d x %d cells, %s\n", s->n[0], s->n[1], s->n[2], precision & PG_F32 ? "f32" : "f64");
    const int good = run(&w, s, steps, cfl, dt, path);
    printf("on %s, %s\n", w.report.backend == PG_CUDA ? "CUDA" : "the CPU", w.report.method);
    puts(good ? "as it should be" : "MISSED");
    flow_free(&w);
    return good;
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    if (sample_take(&argc, argv, "--help", 1)) {
        fputs(usage, stdout);
        return ranks_end(0);
    }
    const char *mask = sample_option(&argc, argv, "--mask", NULL);
    const int dim = sample_take(&argc, argv, "-2", 1) || mask ? 2 : 3;
    const char *kind = mask ? "sphere" : sample_option(&argc, argv, "--scene", "sphere");
    const unsigned precision = sample_choose(precisions, sample_option(&argc, argv, "-p", "f32"));
    const char *where = sample_option(&argc, argv, "--backend", sample_option(&argc, argv, "-b", "auto"));
    const int n = (int)sample_number(&argc, argv, "-n", 33, 16, dim == 3 ? 1024 : 8192);
    const int steps = (int)sample_number(&argc, argv, "--steps", 2 * n, 1, 1e6);
    const double dt = sample_number(&argc, argv, "--dt", 0, 1e-6, 1);
    const double cfl = dt > 0 ? 0 : sample_number(&argc, argv, "--cfl", 2, 0.05, 4);
    const char *path = sample_option(&argc, argv, "-o", NULL);
    const unsigned scene_kind = sample_choose(scenes, kind);
    const pg_backend backend = (pg_backend)sample_choose(backends, where);
    if (argc > 1) {
        fprintf(stderr, "%s: not an option, or without its value, or not with the others\n%s", argv[1], usage);
        return ranks_end(2);
    }
    const struct scene s = scene_create(dim, scene_kind, n, mask);
    const int good = simulate(&s, precision, backend, steps, cfl, dt, path);
    free(s.darkness);
    return ranks_end(!good);
}
