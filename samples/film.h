/* Films of pictures, as animated PNG where PG_SAMPLE_PNG is defined, and as a sheet of six frames. */
#ifndef FILM_H
#define FILM_H

#include "picture.h"

#ifdef PG_SAMPLE_PNG
/* Chunks of PNG files are a length, a name of four letters, data and a checksum (Portable Network Graphics, W3C 2025,
   which has animations too). */
static inline unsigned char *film_number(unsigned char *to, unsigned long value)
{
    for (int q = 0; q < 4; q++) to[q] = (unsigned char)(value >> (24 - 8 * q));
    return to + 4;
}

static inline unsigned long film_checksum(unsigned long crc, const unsigned char *data, size_t bytes)
{
    for (size_t m = 0; m < bytes; m++) {
        crc ^= data[m];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320ul : crc >> 1;
    }
    return crc;
}

static const unsigned char film_nothing[1] = {0};

/* A chunk whose data are in two parts, the first of which may be empty. */
static inline void film_chunk(FILE *file, const char *name, const unsigned char *head, size_t head_bytes,
                      const unsigned char *data, size_t bytes)
{
    unsigned char number[4];
    unsigned long crc = film_checksum(0xfffffffful, (const unsigned char *)name, 4);
    crc = film_checksum(film_checksum(crc, head, head_bytes), data, bytes) ^ 0xfffffffful;
    film_number(number, (unsigned long)(head_bytes + bytes));
    fwrite(number, 1, 4, file);
    fwrite(name, 1, 4, file);
    fwrite(head, 1, head_bytes, file);
    fwrite(data, 1, bytes, file);
    film_number(number, crc);
    fwrite(number, 1, 4, file);
}

/* One frame: libpng makes a whole file in memory, whose image data it takes over. The last frame stays for a second. */
static inline void film_frame(FILE *file, const struct picture *p, int frame, int frames, unsigned long *number)
{
    png_image image = picture_image(p);
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
    unsigned char *png = (unsigned char *)sample_alloc(bytes, PG_MEM_HOST), head[26], *at = head;
    sample_require(png_image_write_to_memory(&image, png, &bytes, 0, p->rgb, 0, NULL), "writing a frame");
    at = film_number(film_number(film_number(at, (*number)++), image.width), image.height);
    at = film_number(film_number(at, 0), 0);              /* at the picture's upper left corner */
    at[0] = 0, at[1] = (unsigned char)(frame == frames - 1 ? 100 : 6);      /* shown for so many hundredths */
    at[2] = 0, at[3] = 100, at[4] = at[5] = 0;          /* of a second; replaces the frame before */
    for (size_t m = 8; m + 12 <= bytes;) {
        const size_t size = (size_t)png[m] << 24 | png[m + 1] << 16 | png[m + 2] << 8 | png[m + 3];
        const int is_data = !memcmp(png + m + 4, "IDAT", 4);
        if (frame == 0 && !memcmp(png + m + 4, "IHDR", 4)) {
            unsigned char counts[8];
            fwrite(png, 1, 8, file);
            film_chunk(file, "IHDR", film_nothing, 0, png + m + 8, size);
            film_chunk(file, "acTL", film_nothing, 0, counts, (size_t)(film_number(film_number(counts, frames), 0) - counts));
        }
        if (is_data && at) film_chunk(file, "fcTL", film_nothing, 0, head, sizeof head), at = NULL;
        if (is_data && frame == 0) film_chunk(file, "IDAT", film_nothing, 0, png + m + 8, size);
        if (is_data && frame > 0) {
            unsigned char sequence[4];
            film_number(sequence, (*number)++);
            film_chunk(file, "fdAT", sequence, 4, png + m + 8, size);
        }
        m += size + 12;
    }
    free(png);
}

/* Writes the frames as an animated PNG, PATH_anim.png, and says so. */
static inline void film_write(const struct picture *frame, int frames, const char *path)
{
    char name[512];
    unsigned long number = 0;
    snprintf(name, sizeof name, "%s_anim.png", path);
    FILE *file = fopen(name, "wb");
    sample_require(file != NULL, "opening the animation");
    for (int q = 0; q < frames; q++) film_frame(file, &frame[q], q, frames, &number);
    film_chunk(file, "IEND", film_nothing, 0, film_nothing, 0);
    const int good = !ferror(file);
    sample_require(!fclose(file) && good, "writing the animation");
    printf("wrote %s\n", name);
}

#else
static inline void film_write(const struct picture *frame, int frames, const char *path)
{
    (void)frame, (void)frames, (void)path;
}
#endif

/* Six frames in two rows, the last one the last, as PATH_sheet.png. */
static inline void film_sheet(const struct picture *frame, int frames, const char *path)
{
    struct picture six[6];
    for (int q = 0; q < 6; q++) six[q] = frame[(q + 1) * frames / 6 > 0 ? (q + 1) * frames / 6 - 1 : 0];
    struct picture p = picture_sheet(six, 6, 3);
    char name[500];
    snprintf(name, sizeof name, "%s_sheet", path);
    picture_write(&p, name);
    free(p.rgb);
}

#endif
