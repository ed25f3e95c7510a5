/* Pictures and volumes of a field: PNG through libpng with PG_SAMPLE_PNG defined, else PPM; VTK ImageData. */
#ifndef PICTURE_H
#define PICTURE_H

#ifdef PG_SAMPLE_PNG
#include <png.h>
#endif
#include "sample.h"

struct picture { int width, height; unsigned char *rgb; };

static inline double picture_clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* A picture of so many pixels, the first point of a field in its lower left corner. The caller frees rgb. */
static inline struct picture picture_create(int width, int height)
{
    const struct picture p = {width, height, (unsigned char *)sample_alloc((size_t)3 * width * height, PG_MEM_HOST)};
    memset(p.rgb, 255, (size_t)3 * width * height);
    return p;
}

/* The nx x ny field at each pixel, by Catmull-Rom splines: smooth, exact on the grid. The caller frees it. */
static inline double *picture_resample(const struct picture *p, const double *field, int nx, int ny)
{
    double *value = (double *)sample_alloc(sizeof *value * p->width * p->height, PG_MEM_HOST);
    for (int row = 0; row < p->height; row++)
        for (int column = 0; column < p->width; column++) {
            const double x = (column + 0.5) / p->width * (nx - 1);
            const double y = (p->height - row - 0.5) / p->height * (ny - 1);
            double weight[2][4], sum = 0;
            for (int a = 0; a < 2; a++) {
                const double t = a ? y - floor(y) : x - floor(x);
                weight[a][0] = ((2 - t) * t - 1) * t / 2;
                weight[a][1] = ((3 * t - 5) * t * t + 2) / 2;
                weight[a][2] = ((4 - 3 * t) * t + 1) * t / 2;
                weight[a][3] = (t - 1) * t * t / 2;
            }
            for (int b = 0; b < 4; b++)
                for (int a = 0; a < 4; a++) {
                    const int i = (int)picture_clamp(floor(x) + a - 1, 0, nx - 1);
                    const int j = (int)picture_clamp(floor(y) + b - 1, 0, ny - 1);
                    sum += weight[0][a] * weight[1][b] * field[i + (size_t)nx * j];
                }
            value[column + (size_t)p->width * row] = sum;
        }
    return value;
}

/* Red for negative values, white for 0, blue for positive, as potentials have it; darkest from top on. */
static inline void picture_colours(struct picture *p, const double *field, int nx, int ny, double top)
{
    static const double stop[2][5][3] = {
        {{250, 249, 246}, {251, 214, 192}, {238, 146, 115}, {198, 62, 60}, {116, 12, 36}},
        {{250, 249, 246}, {203, 223, 240}, {126, 178, 218}, {48, 110, 182}, {14, 44, 104}}};
    double *value = picture_resample(p, field, nx, ny);
    for (size_t m = 0; m < (size_t)p->width * p->height; m++) {
        const double t = picture_clamp(fabs(value[m]) / top, 0, 1) * 4;
        const int low = t < 3 ? (int)t : 3;
        for (int c = 0; c < 3; c++) {
            const double *a = stop[value[m] > 0][low], *b = stop[value[m] > 0][low + 1];
            p->rgb[3 * m + c] = (unsigned char)(0.5 + a[c] + (t - low) * (b[c] - a[c]));
        }
    }
    free(value);
}

/* Dark lines where the field passes a whole multiple of step (step 0: passes 0). opacity 0..1. */
static inline void picture_lines(struct picture *p, const double *field, int nx, int ny,
                                 double step, double pixels, double opacity)
{
    double *value = picture_resample(p, field, nx, ny);
    for (int row = 1; row < p->height - 1; row++)
        for (int column = 1; column < p->width - 1; column++) {
            const size_t m = column + (size_t)p->width * row;
            const double *v = &value[m];
            const double slope = hypot(v[1] - v[-1], v[p->width] - v[-p->width]) / 2;
            const double off = step > 0 ? remainder(*v, step) : *v;
            double cover = opacity * picture_clamp(pixels / 2 + 0.5 - fabs(off) / (slope + 1e-12), 0, 1);
            if (step > 0) cover *= picture_clamp(2 - 6 * slope / step, 0, 1);   /* crowded lines fade out */
            for (int c = 0; c < 3; c++)
                p->rgb[3 * m + c] = (unsigned char)(0.5 + (1 - cover) * p->rgb[3 * m + c] + cover * 40);
        }
    free(value);
}

/* A vector field at the pixels of a picture, and what lines may do there: 0 begin and go on, 1 go on, 2 neither. */
struct picture_flow { int width, height; double *x, *y; unsigned char *taken; };

static inline unsigned char *picture_taken(const struct picture_flow *f, const double at[2])
{
    if (!(at[0] >= 0 && at[0] < f->width && at[1] >= 0 && at[1] < f->height)) return NULL;
    return &f->taken[(size_t)at[0] + (size_t)at[1] * f->width];
}

/* A step of one pixel along the field, way 1, or against it, -1. 0: here a line ends, at an edge, near another line, or
   where the field turns round. */
static inline int picture_step(const struct picture_flow *f, const double from[2], double way, double to[2])
{
    double at[2] = {from[0], from[1]}, before[2] = {0, 0};
    for (int half = 1; half <= 2; half++) {                         /* the midpoint rule */
        const size_t m = (size_t)at[0] + (size_t)at[1] * f->width;
        const double size = hypot(f->x[m], f->y[m]);
        if (!(size > 0)) return 0;
        const double go[2] = {way * f->x[m] / size, -way * f->y[m] / size};
        if (go[0] * before[0] + go[1] * before[1] < 0) return 0;
        for (int a = 0; a < 2; a++) {
            before[a] = go[a];
            to[a] = at[a] = from[a] + 0.5 * half * go[a];
        }
        if (!picture_taken(f, at)) return 0;
    }
    return *picture_taken(f, to) < 2;
}

/* Adds the line through a point, if one may begin there, to `count` points; returns how many there are then. */
static inline int picture_follow(const struct picture_flow *f, const double start[2], double (*at)[2], int count,
                                 int most)
{
    const unsigned char *taken = picture_taken(f, start);
    if (!taken || *taken) return count;
    const int begin = count;
    memcpy(at[count++], start, sizeof *at);
    for (double way = -1; way <= 1; way += 2) {                     /* to where it comes from, then to where it goes */
        const int end = count + 2 * (f->width + f->height), longest = end < most ? end : most;
        while (count < longest && picture_step(f, at[count - 1], way, at[count])) count++;
        for (int a = begin, b = count - 1; way < 0 && a < b; a++, b--) {
            double swap[2];
            memcpy(swap, at[a], sizeof swap);
            memcpy(at[a], at[b], sizeof swap);
            memcpy(at[b], swap, sizeof swap);
        }
    }
    return count;
}

/* Raises `cover` to the line through these points, which has a drop in its middle, and takes what is near. */
static inline void picture_cover(const struct picture_flow *f, double (*at)[2], int count, double apart, double pixels,
                                 double *cover)
{
    const int reach = (int)ceil(apart);
    for (int q = 0; q < count; q++) {
        const double behind = q < count / 2 ? 1 : picture_clamp((q - count / 2) / (7 * pixels), 0, 1);
        const double radius = pixels * (2 - 1.5 * behind);
        for (int row = (int)at[q][1] - reach; row <= (int)at[q][1] + reach; row++)
            for (int column = (int)at[q][0] - reach; column <= (int)at[q][0] + reach; column++) {
                const double here[2] = {column + 0.5, row + 0.5};
                const double d = hypot(here[0] - at[q][0], here[1] - at[q][1]);
                unsigned char *taken = picture_taken(f, here);
                if (!taken) continue;
                if (d < 0.95 * apart && *taken < 2) *taken = d < apart / 2 ? 2 : 1;
                cover[taken - f->taken] = fmax(cover[taken - f->taken], picture_clamp(radius + 0.5 - d, 0, 1));
            }
    }
}

/* Dark lines along the nx x ny vector field (x, y), with drops that point where it does. A line begins so many pixels
   beside another, and ends where it comes to half of that from one: B. Jobard, W. Lefer (1997). */
static inline void picture_streamlines(struct picture *p, const double *x, const double *y, int nx, int ny,
                                       double apart, double pixels, double opacity)
{
    const size_t area = (size_t)p->width * p->height;
    const int most = (int)(area / 4);
    const struct picture_flow f = {p->width, p->height, picture_resample(p, x, nx, ny),
                                   picture_resample(p, y, nx, ny), (unsigned char *)sample_alloc(area, PG_MEM_HOST)};
    double (*at)[2] = (double (*)[2])sample_alloc(sizeof *at * (most + 1), PG_MEM_HOST);
    double *cover = (double *)sample_alloc(sizeof *cover * area, PG_MEM_HOST);
    memset(f.taken, 0, area);
    for (size_t m = 0; m < area; m++) cover[m] = 0;
    int count = 0, beside = 2;          /* twice a point: both its sides; the very first has no direction */
    for (size_t m = 0; m < area;) {
        const size_t from = (m + area / 2 + p->width / 2) % area;    /* the middle is the first */
        double start[2] = {(double)(from % p->width), (double)(from / p->width)};
        if (beside < 2 * count) {
            const double *a = at[beside / 2 - 1], *b = at[beside / 2], side = beside % 2 ? apart : -apart;
            start[0] = b[0] - side * (b[1] - a[1]);
            start[1] = b[1] + side * (b[0] - a[0]);
            beside++;
        } else m++;
        const int end = picture_follow(&f, start, at, count, most);
        if (end - count < apart) continue;                          /* too short */
        picture_cover(&f, at + count, end - count, apart, pixels, cover);
        count = end;
    }
    for (size_t m = 0; m < 3 * area; m++)
        p->rgb[m] = (unsigned char)(0.5 + p->rgb[m] + opacity * cover[m / 3] * (40 - p->rgb[m]));
    free(f.x);
    free(f.y);
    free(f.taken);
    free(at);
    free(cover);
}

/* Mean and spread (standard deviation) of the brightness, 0 to 255, of the pixels whose kind is this one. */
struct picture_look { size_t pixels; double mean, spread; };

static inline struct picture_look picture_look_at(const struct picture *p, const unsigned char *kinds, int kind)
{
    struct picture_look look = {0, 0, 0};
    double square = 0;
    for (size_t m = 0; m < (size_t)p->width * p->height; m++) {
        if (kinds[m] != kind) continue;
        const double bright = (p->rgb[3 * m] + p->rgb[3 * m + 1] + p->rgb[3 * m + 2]) / 3.0;
        look.pixels++, look.mean += bright, square += bright * bright;
    }
    if (!look.pixels) return look;
    look.mean /= (double)look.pixels;
    look.spread = sqrt(fmax(0, square / (double)look.pixels - look.mean * look.mean));
    return look;
}

/* Whether the colours of picture_colours are there, below lines: where the nearest value of the field is a fifth of top
   and more, blue exceeds red if it is positive, else red blue, but for one pixel in 20; and there are such pixels. */
static inline int picture_shows(const struct picture *p, const double *field, int nx, int ny, double top)
{
    size_t coloured = 0, wrong = 0;
    for (int row = 0; row < p->height; row++)
        for (int column = 0; column < p->width; column++) {
            const int i = (int)((column + 0.5) / p->width * (nx - 1) + 0.5);
            const int j = (int)((p->height - row - 0.5) / p->height * (ny - 1) + 0.5);
            const double value = field[i + (size_t)nx * j];
            const unsigned char *rgb = &p->rgb[3 * (column + (size_t)p->width * row)];
            if (fabs(value) < top / 5) continue;
            coloured++;
            wrong += !(value > 0 ? rgb[2] > rgb[0] : value < 0 && rgb[0] > rgb[2]);
        }
    const int good = coloured > 0 && 20 * wrong <= coloured;
    if (!good) printf("the picture: of %zu pixels with a colour %zu have the wrong one: MISSED\n", coloured, wrong);
    return good;
}

#ifdef PG_SAMPLE_PNG
/* The picture as libpng describes it. */
static inline png_image picture_image(const struct picture *p)
{
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    image.format = PNG_FORMAT_RGB;
    image.width = (png_uint_32)p->width;
    image.height = (png_uint_32)p->height;
    return image;
}
#endif

/* Writes PATH.png or PATH.ppm, and says so. */
static inline void picture_write(const struct picture *p, const char *path)
{
    char name[512];
#ifdef PG_SAMPLE_PNG
    png_image image = picture_image(p);
    snprintf(name, sizeof name, "%s.png", path);
    sample_require(png_image_write_to_file(&image, name, 0, p->rgb, 0, NULL), "writing the picture");
#else
    const size_t bytes = (size_t)3 * p->width * p->height;
    snprintf(name, sizeof name, "%s.ppm", path);
    FILE *file = fopen(name, "wb");
    sample_require(file != NULL, "opening the picture");
    fprintf(file, "P6\n%d %d\n255\n", p->width, p->height);
    const int good = fwrite(p->rgb, 1, bytes, file) == bytes;
    sample_require(!fclose(file) && good, "writing the picture");
#endif
    printf("wrote %s\n", name);
}

/* Writes a scalar at the points of a grid to PATH.vti (VTK ImageData, which ParaView opens), and says so. */
static inline void volume_write(const char *path, const char *what, const double *field, const int n[3],
                                const double origin[3], const double h[3])
{
    const uint16_t one = 1;
    const size_t count = (size_t)n[0] * n[1] * n[2];
    const uint64_t bytes = count * sizeof(float);
    float *value = (float *)sample_alloc(bytes, PG_MEM_HOST);
    for (size_t m = 0; m < count; m++) value[m] = (float)field[m];
    char name[512], extent[64];
    snprintf(name, sizeof name, "%s.vti", path);
    snprintf(extent, sizeof extent, "0 %d 0 %d 0 %d", n[0] - 1, n[1] - 1, n[2] - 1);
    FILE *file = fopen(name, "wb");
    sample_require(file != NULL, "opening the volume");
    fprintf(file,
            "<?xml version=\"1.0\"?>\n"
            "<VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"%s\" header_type=\"UInt64\">\n"
            "<ImageData WholeExtent=\"%s\" Origin=\"%.9g %.9g %.9g\" Spacing=\"%.9g %.9g %.9g\">\n"
            "<Piece Extent=\"%s\"><PointData Scalars=\"%s\">\n"
            "<DataArray type=\"Float32\" Name=\"%s\" format=\"appended\" offset=\"0\"/>\n"
            "</PointData></Piece></ImageData>\n<AppendedData encoding=\"raw\">\n_",
            *(const char *)&one ? "LittleEndian" : "BigEndian", extent, origin[0], origin[1], origin[2],
            h[0], h[1], h[2], extent, what, what);
    int good = fwrite(&bytes, sizeof bytes, 1, file) == 1;
    good = fwrite(value, sizeof(float), count, file) == count && good;
    good = fputs("\n</AppendedData>\n</VTKFile>\n", file) >= 0 && good;
    sample_require(!fclose(file) && good, "writing the volume");
    printf("wrote %s\n", name);
    free(value);
}

#endif
