/* Pictures of a field, with title, axes and colour bar: PNG through libpng with PG_SAMPLE_PNG defined, else PPM; and
   volumes: VTK ImageData. */
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

/* The values of a field from low to high as colours. With low < 0 red is negative, white 0 and blue positive, as
   potentials have it; else dark to bright. With linear > 0 the field is asinh(value / linear), which far from 0 goes
   like the logarithm: the bar beside a picture then shows the value. */
struct picture_scale { double low, high, linear; const char *label; };

static inline double picture_part(const struct picture_scale *s, double field)
{
    return picture_clamp((field - s->low) / (s->high - s->low), 0, 1);
}

static inline void picture_colour(const struct picture_scale *s, double part, unsigned char *rgb)
{
    static const unsigned char stop[2][9][3] = {
        {{116, 12, 36}, {198, 62, 60}, {238, 146, 115}, {251, 214, 192}, {250, 249, 246}, {203, 223, 240},
         {126, 178, 218}, {48, 110, 182}, {14, 44, 104}},
        {{11, 11, 22}, {52, 20, 88}, {135, 36, 108}, {214, 74, 72}, {251, 154, 60}, {252, 244, 204}}};
    const int one = s->low >= 0, last = one ? 5 : 8;
    const double t = part * last;
    const int low = t < last ? (int)t : last - 1;
    for (int c = 0; c < 3; c++)
        rgb[c] = (unsigned char)(0.5 + stop[one][low][c] + (t - low) * (stop[one][low + 1][c] - stop[one][low][c]));
}

static inline void picture_colours(struct picture *p, const double *field, int nx, int ny, const struct picture_scale *s)
{
    double *value = picture_resample(p, field, nx, ny);
    for (size_t m = 0; m < (size_t)p->width * p->height; m++)
        picture_colour(s, picture_part(s, value[m]), &p->rgb[3 * m]);
    free(value);
}

/* Grey where the field, such as the distance from a surface, is negative. */
static inline void picture_solid(struct picture *p, const double *field, int nx, int ny)
{
    double *value = picture_resample(p, field, nx, ny);
    for (int m = 0; m < p->width * p->height; m++) {
        const int x = m % p->width, y = m / p->width, right = x + 1 < p->width, up = y > 0;
        const double slope = hypot(value[m + right] - value[m + right - 1],
                                   value[m - up * p->width] - value[m + (1 - up) * p->width]);
        const double cover = picture_clamp(0.5 - value[m] / (slope + 1e-12), 0, 1);
        for (int c = 0; c < 3; c++)
            p->rgb[3 * m + c] = (unsigned char)(0.5 + p->rgb[3 * m + c] + cover * (150 - p->rgb[3 * m + c]));
    }
    free(value);
}

/* Lines, of ink 0 to 255, where the field passes a whole multiple of step (step 0: passes 0). opacity 0..1. */
static inline void picture_lines(struct picture *p, const double *field, int nx, int ny,
                                 double step, double pixels, double opacity, int ink)
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
                p->rgb[3 * m + c] = (unsigned char)(0.5 + (1 - cover) * p->rgb[3 * m + c] + cover * ink);
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

/* Whether the colours of picture_colours are there, below lines: where the nearest value of the field is a fifth of the
   scale and more from its middle, blue exceeds red if it is positive, else red blue; of a scale from dark to bright it
   is on the right side of a middling brightness; but for one pixel in 20; and there are such pixels. */
static inline int picture_shows(const struct picture *p, const double *field, int nx, int ny, const struct picture_scale *s)
{
    size_t coloured = 0, wrong = 0;
    for (int row = 0; row < p->height; row++)
        for (int column = 0; column < p->width; column++) {
            const int i = (int)((column + 0.5) / p->width * (nx - 1) + 0.5);
            const int j = (int)((p->height - row - 0.5) / p->height * (ny - 1) + 0.5);
            const double value = 2 * picture_part(s, field[i + (size_t)nx * j]) - 1;
            const unsigned char *rgb = &p->rgb[3 * (column + (size_t)p->width * row)];
            if (fabs(value) < 0.2) continue;
            coloured++;
            wrong += !(value * (s->low < 0 ? rgb[2] - rgb[0] : rgb[0] + rgb[1] + rgb[2] - 330) > 0);
        }
    const int good = coloured > 0 && 20 * wrong <= coloured;
    if (!good) printf("the picture: of %zu pixels with a colour %zu have the wrong one: MISSED\n", coloured, wrong);
    return good;
}

/* The strokes of a letter: a pen that follows quadratic B-splines through points "xy" of a grid, y from 0, of descenders,
   over 2, the base line, to 9, of capitals. Two equal points make a corner, or a dot. */
static inline const char *picture_letter(char c)
{
    static const char *const letter['z' - ' ' + 1] = {
        "", "0905 0202", "0907 2927", "", "", "0249 19080817281919 34232332433434", "", "0907", "19070411", "09171401",
        "", "0545 2327", "1201", "0535", "0213 0312", "0249", "290902424929", "07292922", "07094946020242",
        "0809494616 1646420203", "323939040444", "490909060647420203", "4849090242460604", "09494912",
        "290906464929 260602424626", "0302424909054547", "0213 0312 0617 0716", "1201 1616", "37050533", "0444 0646",
        "07353503", "", "", "02292942 1535", "0209 092949462606 062646422202", "484909024243", "0209092949422202",
        "490909020242 0636", "49090902 0636", "4849090242454525", "0209 4249 0646", "0209", "3934320204",
        "0209 4905 1642", "09020242", "0209093434696962", "020909424249", "290902424929", "0209092949452505",
        "290902424929 2442", "0209092949452505 2542", "4849090646420203", "0949 2922", "090402424449", "09222249",
        "0912123737525269", "0942 0249", "0925 4925 2522", "094949020242", "", "", "", "", "0242", "",
        "270702424727 4742", "0902 270702424727", "464707024243", "270702424727 4942", "0444444707024243",
        "39191712 0727", "270702424727 4742400001", "0902 0407474542", "0702 0909", "17111000 1919", "0902 3704 1532",
        "0902", "0702 0407373532 3437676562", "0702 0407474542", "270702424727", "0700 270702424727",
        "4740 270702424727", "0702 04073736", "3637070534320203", "19141232 0727", "0704024245 4742", "07222247",
        "0712123636525267", "0742 0247", "0722 4710", "074747020242"};
    return c > ' ' && c <= 'z' ? letter[c - ' '] : "";
}

static inline double picture_letter_width(char c)
{
    int width = *picture_letter(c) ? 0 : 2;
    for (const char *q = picture_letter(c); *q; q += q[2] == ' ' ? 3 : 2) width = *q - '0' > width ? *q - '0' : width;
    return width + 2;
}

static inline double picture_text_width(const char *text)
{
    double width = 0;
    for (; *text; text++) width += picture_letter_width(*text);
    return width;
}

/* Where the pen passes, relative to the base line's left end. Returns how many points. */
static inline int picture_pen(const char *stroke, double (*pen)[2])
{
    enum { SAMPLES = 24 };
    int count = 0;
    for (double r[16][2]; *stroke; stroke += *stroke == ' ') {
        int points = 0;
        for (; *stroke && *stroke != ' '; points++, stroke += 2)
            r[points][0] = stroke[0] - '0', r[points][1] = stroke[1] - '2';
        for (int i = points > 2; i < points - 1; i++)
            for (int t = 0; t < SAMPLES; t++, count++)
                for (int a = 0; a < 2; a++) {
                    const double s = t / (SAMPLES - 1.0), begin = i > 1 ? (r[i - 1][a] + r[i][a]) / 2 : r[0][a];
                    const double end = i + 2 < points ? (r[i][a] + r[i + 1][a]) / 2 : r[i + 1][a];
                    pen[count][a] = (1 - s) * (1 - s) * begin + 2 * s * (1 - s) * r[i][a] + s * s * end;
                }
    }
    return count;
}

/* A text whose part `left`, 0 to 1, is left of column x, on a base line at row y, with so many pixels to a unit. */
static inline void picture_text(struct picture *p, double x, double y, double unit, double left, int ink,
                                const char *text)
{
    double pen[512][2], at = x - left * unit * (picture_text_width(text) - 2);
    for (; *text; at += unit * picture_letter_width(*text++)) {
        const int count = picture_pen(picture_letter(*text), pen);
        for (int row = (int)fmax(0, y - 9 * unit); row < p->height && row < y + 4 * unit; row++)
            for (int column = (int)fmax(0, at - 2 * unit); column < p->width && column < at + 9 * unit; column++) {
                unsigned char *rgb = &p->rgb[3 * (column + (size_t)p->width * row)];
                double d = INFINITY;
                for (int m = 0; m < count; m++)
                    d = fmin(d, hypot(column + 0.5 - at - unit * pen[m][0], row + 0.5 - y + unit * pen[m][1]));
                const double cover = picture_clamp(0.45 * unit + 0.5 - d, 0, 1);
                for (int c = 0; c < 3; c++) rgb[c] = (unsigned char)(0.5 + rgb[c] + cover * (ink - rgb[c]));
            }
    }
}

/* What is written beside an axis from low to high: round numbers, of a logarithmic one those from linear on. */
static inline int picture_ticks(double low, double high, double linear, double tick[64])
{
    static const int digit[3] = {1, 2, 5};
    const double raw = (high - low) / 5, ten = pow(10, floor(log10(raw)));
    const double step = ten * (raw < 2 * ten ? 2 : raw < 5 * ten ? 5 : 10);
    int count = 0;
    for (int m = (int)ceil(low / step - 1e-9); linear == 0 && m * step < high + 1e-9 * step; m++)
        tick[count++] = m * step;
    for (int m = -30; linear > 0 && m <= 30; m++) {
        const int from = abs(m) - 1;
        const double value = m ? copysign(linear * digit[from % 3] * pow(10, from / 3), m) : 0;
        if (m && from % 3 && high > 5.5) continue;                  /* more than two decades: powers of 10 alone */
        if (asinh(value / linear) > low - 1e-9 && asinh(value / linear) < high + 1e-9) tick[count++] = value;
    }
    return count;
}

static inline void picture_box(struct picture *p, double x, double y, double width, double height, int shade)
{
    for (int row = (int)y; row < (int)(y + height); row++)
        memset(&p->rgb[3 * ((int)x + (size_t)p->width * row)], shade, 3 * (size_t)((int)(x + width) - (int)x));
}

/* What the first and the last points of a picture are, along x and y. */
struct picture_axes { const char *name[2]; double low[2], high[2]; };

/* The picture with a title above, axes with numbers and names around it, and a bar of its colours with theirs; axes and
   scale may be NULL. */
static inline void picture_frame(struct picture *p, const char *title, const struct picture_axes *axes,
                                 const struct picture_scale *s)
{
    const double unit = 1.2 + p->width / 1000.0, line = fmax(1, floor(unit / 2));
    const int x0 = (int)((axes ? 34 : 6) * unit), y0 = (int)((axes || s ? 37 : 22) * unit), w = p->width, h = p->height;
    const double bar = x0 + w + 10 * unit;
    struct picture all = picture_create(x0 + w + (int)((s ? 63 : 10) * unit), y0 + h + (int)((axes ? 30 : 6) * unit));
    const double title_unit = unit * fmin(1.25, (all.width - 1.5 * x0) / unit / picture_text_width(title));
    double tick[64];
    char text[64];
    picture_text(&all, x0, 15 * unit, title_unit, 0, 20, title);
    picture_box(&all, x0 - line, y0 - line, w + 2 * line, h + 2 * line, 60);
    for (int row = 0; row < h; row++)
        memcpy(&all.rgb[3 * (x0 + (size_t)all.width * (y0 + row))], &p->rgb[3 * (size_t)w * row], 3 * (size_t)w);
    for (int a = 0; a < 3; a++) {                                   /* x, y, and the bar */
        const int shown = a < 2 ? axes != NULL : s != NULL;
        const double low = !shown ? 0 : a < 2 ? axes->low[a] : s->low, high = !shown ? 1 : a < 2 ? axes->high[a] : s->high;
        const double linear = shown && a == 2 ? s->linear : 0;
        for (int m = shown ? picture_ticks(low, high, linear, tick) - 1 : -1; m >= 0; m--) {
            const double part = ((linear > 0 ? asinh(tick[m] / linear) : tick[m]) - low) / (high - low);
            const double x = a == 0 ? x0 + part * (w - line) : a == 1 ? x0 - 3 * unit : bar + 9 * unit;
            const double y = a == 0 ? y0 + h : y0 + (1 - part) * (h - line);
            snprintf(text, sizeof text, "%.4g", tick[m]);
            picture_box(&all, x, y, a ? 3 * unit : line, a ? line : 3 * unit, 60);
            picture_text(&all, x + (a == 0 ? 0 : a == 1 ? -2 : 5) * unit, y + (a ? 3.5 : 12) * unit, unit,
                         a == 0 ? 0.5 : a == 1 ? 1 : 0, 40, text);
        }
    }
    if (axes) picture_text(&all, x0 + w / 2.0, y0 + h + 24 * unit, unit, 0.5, 40, axes->name[0]);
    if (axes) picture_text(&all, x0, y0 - 5 * unit, unit, 0, 40, axes->name[1]);
    for (int row = 0; row < h && s; row++)
        for (int column = (int)bar; column < (int)(bar + 9 * unit); column++)
            picture_colour(s, (h - row - 0.5) / h, &all.rgb[3 * (column + (size_t)all.width * (y0 + row))]);
    const double room = s ? all.width - 6 * unit - unit * picture_text_width(s->label) : 0;
    if (s) picture_text(&all, fmin(bar, room), y0 - 5 * unit, unit, 0, 40, s->label);
    free(p->rgb);
    *p = all;
}

/* So many pictures, row by row in columns, 8 at most, each of which is as wide as its widest one. */
static inline struct picture picture_sheet(const struct picture *part, int count, int columns)
{
    int left[9] = {0}, high = 0;
    for (int c = 0; c < columns; c++)
        for (int q = 0; q < count; q++) {
            high = part[q].height > high ? part[q].height : high;
            if (q % columns == c && left[c] + part[q].width > left[c + 1]) left[c + 1] = left[c] + part[q].width;
        }
    struct picture p = picture_create(left[columns], (count + columns - 1) / columns * high);
    for (int q = 0; q < count; q++)
        for (int y = 0; y < part[q].height; y++)
            memcpy(&p.rgb[3 * ((size_t)p.width * (q / columns * high + y) + left[q % columns])],
                   &part[q].rgb[3 * (size_t)part[q].width * y], (size_t)3 * part[q].width);
    return p;
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
