/* What bench.c and ranks.c share: a clock, noise, names, and a file of results. */
#ifndef BENCH_TOOLS_H
#define BENCH_TOOLS_H

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A number in [-1,1] that depends on i alone, so that threads can fill an array in any order. */
static inline double noise(int64_t i)
{
    uint64_t x = ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    return (double)(x >> 11) * 0x1p-52 - 1.0;
}

static inline int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Whether all of the words are in the label. */
static inline int has_words(const char *label, const char *wanted)
{
    char words[200];
    if (!wanted) return 1;
    snprintf(words, sizeof words, "%s", wanted);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        if (!strstr(label, word)) return 0;
    return 1;
}

static inline void cpu_name(char *name, size_t size)
{
    char line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "CPU");
    while (info && fgets(line, sizeof line, info)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        snprintf(name, size, "%.100s", colon + 2);
        name[strcspn(name, "\n")] = 0;
        break;
    }
    if (info) fclose(info);
}

static inline void json_string(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\": \"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if ((unsigned char)*text >= ' ') fputc(*text, out);
    }
    fputc('"', out);
}

static inline void today(char date[16])
{
    time_t now = time(NULL);
    strftime(date, 16, "%Y-%m-%d", localtime(&now));
}

/* nvidia-h200-2026-11-21.json; (R) and (TM) say nothing. suffix: what stands before the date, as in -x2. */
static inline void file_name(const char *folder, const char *device, const char *suffix, const char *date, char *path,
                             size_t size)
{
    char slug[128];
    size_t length = 0;
    for (const char *c = device; *c; c++) {
        if (*c == '(') {
            const char *end = strchr(c, ')');
            if (end) {
                c = end;
                continue;
            }
        }
        if (isalnum((unsigned char)*c)) slug[length++] = (char)tolower((unsigned char)*c);
        else if (length && slug[length - 1] != '-') slug[length++] = '-';
    }
    while (length && slug[length - 1] == '-') length--;
    slug[length] = 0;
    snprintf(path, size, "%s/%s%s-%s.json", folder, slug, suffix, date);
}

/* out itself, if it is a file's name, else the file in the folder out. */
static inline void result_path(const char *out, const char *device, const char *suffix, const char *date, char *path,
                               size_t size)
{
    size_t length = strlen(out);
    if (length > 5 && !strcmp(out + length - 5, ".json")) {
        snprintf(path, size, "%s", out);
        return;
    }
    mkdir(out, 0777);             /* an empty folder is not kept in git; if this fails, fopen tells */
    file_name(out, device, suffix, date, path, size);
}

#endif
