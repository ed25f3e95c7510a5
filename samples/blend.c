/* Seamless cloning (P. Perez, M. Gangnet, A. Blake 2003): a piece of one picture in another, its edges matched to what is
   around it. In the rectangle -lap u = -lap source with u = target on its border; three channels are a batch.

       blend [TARGET.png SOURCE.png X Y] [-o PATH] [-b auto|cuda|cpu]

   X Y: where the left upper corner of the source comes to lie. Without files it makes two pictures: a moon cut out of a
   reddish sky, and the evening sky it goes to. Writes PATH_pasted and PATH_blended. */
#include "picture.h"

static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};

static struct picture picture_read(const char *name)
{
    struct picture p = {0, 0, NULL};
#ifdef PG_SAMPLE_PNG
    png_image image = {.version = PNG_IMAGE_VERSION};
    sample_require(png_image_begin_read_from_file(&image, name) != 0, "opening the picture");
    image.format = PNG_FORMAT_RGB;
    p = picture_create((int)image.width, (int)image.height);
    sample_require(png_image_finish_read(&image, NULL, p.rgb, 0, NULL) != 0, "reading the picture");
#else
    fprintf(stderr, "%s: built without libpng, which reads pictures\n", name);
    exit(2);
#endif
    return p;
}

static struct picture evening_sky(void)
{
    struct picture p = picture_create(480, 320);
    for (int y = 0; y < p.height; y++)
        for (int x = 0; x < p.width; x++) {
            const double t = (double)y / p.height, glow = exp(-8 * pow(t - 1, 2)), cloud = 0.06 * sin(0.05 * x + 9 * t * t);
            const double colour[3] = {0.10 + 0.75 * glow + cloud, 0.12 + 0.40 * glow + cloud, 0.35 + 0.12 * glow + cloud};
            for (int q = 0; q < 3; q++)
                p.rgb[3 * (x + p.width * y) + q] = (unsigned char)(255 * picture_clamp(colour[q], 0, 1) + 0.5);
        }
    return p;
}

static struct picture moon(void)
{
    struct picture p = picture_create(141, 121);
    for (int y = 0; y < p.height; y++)
        for (int x = 0; x < p.width; x++) {
            const double dx = (x - 70) / 38.0, dy = (y - 60) / 38.0, d = hypot(dx, dy);
            const double disc = picture_clamp((1 - d) * 20, 0, 1), spots = 0.08 * sin(7 * dx + 2) * cos(6 * dy);
            const double colour[3] = {0.55 + 0.05 * dx, 0.30 - 0.04 * dy, 0.22}, light[3] = {0.4, 0.55, 0.55};
            for (int q = 0; q < 3; q++)
                p.rgb[3 * (x + p.width * y) + q] =
                    (unsigned char)(255 * picture_clamp(colour[q] + disc * (light[q] + spots), 0, 1) + 0.5);
        }
    return p;
}

/* The mean step between the pixels on both sides of the border, beyond the one that each picture has there. */
static double seam(const struct picture *p, const struct picture *target, int x0, int y0, int w, int h)
{
    double sum = 0;
    for (int e = 0; e < 2 * (w + h); e++) {
        const int side = e < w ? 0 : e < 2 * w ? 1 : e < 2 * w + h ? 2 : 3;
        const int x = side < 2 ? x0 + e % w : side == 2 ? x0 : x0 + w - 1;
        const int y = side >= 2 ? y0 + (e - 2 * w) % h : side == 0 ? y0 : y0 + h - 1;
        for (int q = 0; q < 3; q++)
            sum += abs(p->rgb[3 * (x + p->width * y) + q] - target->rgb[3 * (x + p->width * y) + q]);
    }
    return sum / (6.0 * (w + h));
}

/* Whether the moon that was made is brighter than the sky around it, by what it was made so. */
static int shows_moon(const struct picture *p, int x0, int y0)
{
    unsigned char *kinds = sample_alloc((size_t)p->width * p->height, PG_MEM_HOST);
    for (int m = 0; m < p->width * p->height; m++) {
        const double d = hypot(m % p->width - x0 - 70, m / p->width - y0 - 60);
        kinds[m] = d < 34 ? 1 : d > 42 && d < 55 ? 2 : 0;
    }
    const struct picture_look disc = picture_look_at(p, kinds, 1), sky = picture_look_at(p, kinds, 2);
    free(kinds);
    printf("the moon has a brightness of %.0f, spread %.0f, the sky around it %.0f, spread %.0f\n", disc.mean, disc.spread,
           sky.mean, sky.spread);
    return fabs(disc.mean - sky.mean - 128) < 25 && disc.spread > 2 && disc.spread < 40 && sky.spread < 40;
}

int main(int argc, char **argv)
{
    const pg_backend backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    const char *path = sample_option(&argc, argv, "-o", NULL);
    if (argc != 1 && argc != 5) {
        fprintf(stderr, "usage: %s [TARGET.png SOURCE.png X Y] [-o PATH] [-b auto|cuda|cpu]\n", argv[0]);
        return 2;
    }
    struct picture target = argc == 5 ? picture_read(argv[1]) : evening_sky(), source = argc == 5 ? picture_read(argv[2]) : moon();
    const int x0 = argc == 5 ? atoi(argv[3]) : 290, y0 = argc == 5 ? atoi(argv[4]) : 40, w = source.width, h = source.height;
    if (w < 3 || h < 3 || x0 < 0 || y0 < 0 || x0 + w > target.width || y0 + h > target.height) {
        fprintf(stderr, "the source (%d x %d) does not lie inside the target (%d x %d) at %d %d\n", w, h, target.width,
                target.height, x0, y0);
        return 2;
    }

    /* The outermost pixels of the source are the border; those inside it the unknowns, nodes one pixel apart. */
    const int nx = w - 2, ny = h - 2;
    const size_t count = (size_t)nx * ny;
    double *f = sample_alloc(3 * count * sizeof *f, PG_MEM_HOST), *u = sample_alloc(3 * count * sizeof *u, PG_MEM_HOST);
    double *side[4];
    pg_desc desc = {0};
    desc.n[0] = nx, desc.n[1] = ny, desc.dim = 2;
    desc.h[0] = desc.h[1] = 1;
    desc.batch = 3;
    desc.flags = PG_DIRECT;
    desc.backend = backend;
#define SOURCE(x, y, q) source.rgb[3 * ((x) + (size_t)w * (y)) + (q)]
#define TARGET(x, y, q) target.rgb[3 * ((x) + x0 + (size_t)target.width * ((y) + y0)) + (q)]
    for (int q = 0; q < 3; q++)
        for (int y = 1; y <= ny; y++)
            for (int x = 1; x <= nx; x++)
                f[q * count + (x - 1) + (size_t)nx * (y - 1)] = 4.0 * SOURCE(x, y, q) - SOURCE(x - 1, y, q) -
                                                                SOURCE(x + 1, y, q) - SOURCE(x, y - 1, q) -
                                                                SOURCE(x, y + 1, q);
    for (int s = 0; s < 4; s++) {
        const int length = s < 2 ? ny : nx;
        side[s] = sample_alloc(3 * (size_t)length * sizeof(double), PG_MEM_HOST);
        for (int q = 0; q < 3; q++)
            for (int e = 0; e < length; e++)
                side[s][q * length + e] = s < 2 ? TARGET(s ? w - 1 : 0, e + 1, q) : TARGET(e + 1, s == 3 ? h - 1 : 0, q);
        desc.face[s].array = side[s];
    }
    pg_report report;
    sample_check(pg_solve_once(&desc, u, f, &report), NULL);

    struct picture pasted = picture_create(target.width, target.height), blended = picture_create(target.width, target.height);
    memcpy(pasted.rgb, target.rgb, (size_t)3 * target.width * target.height);
    memcpy(blended.rgb, target.rgb, (size_t)3 * target.width * target.height);
    for (int q = 0; q < 3; q++)
        for (int y = 1; y <= ny; y++)
            for (int x = 1; x <= nx; x++) {
                const size_t at = 3 * (x + x0 + (size_t)target.width * (y + y0)) + q;
                pasted.rgb[at] = SOURCE(x, y, q);
                blended.rgb[at] =
                    (unsigned char)(0.5 + picture_clamp(u[q * count + (x - 1) + (size_t)nx * (y - 1)], 0, 255));
            }
    const double before = seam(&pasted, &target, x0 + 1, y0 + 1, nx, ny), after = seam(&blended, &target, x0 + 1, y0 + 1, nx, ny);
    printf("%d x %d pixels, three channels: %s, %.3f ms; step at the seam: pasted %.1f, blended %.1f of 255\n", nx, ny,
           pg_outcome_string(report.outcome), report.milliseconds, before, after);
    const int good = report.outcome == PG_CONVERGED &&
                     (argc > 1 || (after < 0.1 * before && shows_moon(&blended, x0, y0)));
    char name[500];
    if (path) {
        snprintf(name, sizeof name, "%s_pasted", path);
        picture_write(&pasted, name);
        snprintf(name, sizeof name, "%s_blended", path);
        picture_write(&blended, name);
    }
    free(f), free(u), free(source.rgb), free(target.rgb), free(pasted.rgb), free(blended.rgb);
    for (int s = 0; s < 4; s++) free(side[s]);
    return !good;
}
