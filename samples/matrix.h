/* Reads square matrices and vectors from text: Matrix Market files (coordinate or array, real or integer, general or
   symmetric: R. F. Boisvert, R. Pozo, K. A. Remington, NISTIR 5935, 1996), and plain numbers between blanks. What
   stands behind % or # is a comment. A file that is something else ends the program, with line and column. */
#ifndef MATRIX_H
#define MATRIX_H

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that is read word by word, and where the last word stands. */
struct text {
    FILE *file;
    const char *name;
    int line, column, at_line, at_column;     /* of the next character, of the word */
    char word[64];                            /* empty at the end of the file */
};

static inline void text_refuse(const struct text *t, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d:%d: ", t->name, t->at_line, t->at_column);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static inline int text_character(struct text *t)
{
    const int c = fgetc(t->file);
    t->column++;
    if (c == '\n') t->line++, t->column = 1;
    return c;
}

static inline void text_skip_line(struct text *t)
{
    for (int c = 0; c != '\n' && c != EOF;) c = text_character(t);
}

/* The next word; an empty one at the end. */
static inline const char *text_next(struct text *t)
{
    size_t length = 0;
    int c;
    do {
        t->at_line = t->line, t->at_column = t->column;
        c = text_character(t);
        if (c == '%' || c == '#') text_skip_line(t);
    } while (c == '%' || c == '#' || (c != EOF && isspace(c)));
    while (c != EOF && !isspace(c)) {
        if (length + 1 == sizeof t->word) text_refuse(t, "'%.20s...' is no number: it is too long", t->word);
        t->word[length++] = (char)c;
        t->word[length] = 0;
        c = fgetc(t->file);
        if (c != EOF && !isspace(c)) t->column++;
    }
    if (c != EOF && length) ungetc(c, t->file);
    t->word[length] = 0;
    return t->word;
}

static inline double text_number(struct text *t, const char *what)
{
    char *end;
    if (!*text_next(t)) text_refuse(t, "the file ends where %s should be", what);
    const double value = strtod(t->word, &end);
    if (*end || !isfinite(value)) text_refuse(t, "'%s' is no finite number; %s should be here", t->word, what);
    return value;
}

static inline int text_count(struct text *t, const char *what, int low, int high)
{
    const double value = text_number(t, what);
    if (value != floor(value) || value < low || value > high)
        text_refuse(t, "%s is '%s'; it must be a whole number, %d to %d", what, t->word, low, high);
    return (int)value;
}

static inline struct text text_open(const char *name)
{
    struct text t = {fopen(name, "r"), name, 1, 1, 1, 1, ""};
    if (!t.file) {
        fprintf(stderr, "%s cannot be opened\n", name);
        exit(2);
    }
    return t;
}

/* The header's line of a Matrix Market file; all 0 of a plain one. */
struct market { int is_one, array, symmetric; };

static inline struct market text_market(struct text *t)
{
    static const char *const formats[] = {"coordinate", "array", NULL}, *const fields[] = {"real", "integer", NULL},
                      *const symmetries[] = {"general", "symmetric", NULL}, *const matrix[] = {"matrix", NULL},
                      *const *const lists[] = {matrix, formats, fields, symmetries};
    char line[256];
    int choice[4], used = 14, length = 0;
    struct market m = {0, 0, 0};
    if (!fgets(line, sizeof line, t->file) || strncmp(line, "%%MatrixMarket", 14)) {
        rewind(t->file);
        return m;
    }
    for (int q = 0; q < 4; q++, used += length) {
        char word[32] = "";
        used += (int)strspn(line + used, " \t");
        t->at_column = used + 1;
        if (sscanf(line + used, "%31s%n", word, &length) < 1) length = 0;
        for (char *c = word; *c; c++) *c = (char)tolower((unsigned char)*c);
        for (choice[q] = 0; lists[q][choice[q]] && strcmp(lists[q][choice[q]], word); choice[q]++) {}
        if (!lists[q][choice[q]])
            text_refuse(t, "a Matrix Market file of kind '%s' cannot be read here; '%s'%s%s%s can", word, lists[q][0],
                        lists[q][1] ? " or '" : "", lists[q][1] ? lists[q][1] : "", lists[q][1] ? "'" : "");
    }
    t->line = 2;
    m.is_one = 1, m.array = choice[1], m.symmetric = choice[3];
    return m;
}

static inline double *matrix_new(size_t count, const struct text *t)
{
    double *values = calloc(count, sizeof *values);
    if (!values) text_refuse(t, "there is not enough memory for %zu numbers", count);
    return values;
}

static inline void text_close(struct text *t)
{
    if (*text_next(t)) text_refuse(t, "'%s' stands behind the last number that was expected", t->word);
    fclose(t->file);
}

static inline double *vector_read(struct text *t, int n, const char *what)
{
    double *x = matrix_new((size_t)n, t);
    for (int i = 0; i < n; i++) x[i] = text_number(t, what);
    return x;
}

/* What a Matrix Market file has: rows x columns numbers in rows. */
static inline double *market_read(struct text *t, struct market m, int *rows, int *columns)
{
    *rows = text_count(t, "the number of rows", 1, 1 << 20);
    *columns = text_count(t, "the number of columns", 1, 1 << 20);
    if (m.symmetric && *rows != *columns) text_refuse(t, "a symmetric matrix of %d x %d is none", *rows, *columns);
    const size_t nr = (size_t)*rows, nc = (size_t)*columns;
    const int entries = m.array ? 0 : text_count(t, "the number of entries", 0, INT32_MAX);
    double *a = matrix_new(nr * nc, t);
    for (size_t j = 0; m.array && j < nc; j++)          /* arrays are in columns; symmetric: from the diagonal on */
        for (size_t i = m.symmetric ? j : 0; i < nr; i++) {
            a[i * nc + j] = text_number(t, "a value of the matrix");
            if (m.symmetric) a[j * nc + i] = a[i * nc + j];
        }
    for (int e = 0; e < entries; e++) {
        const size_t i = (size_t)text_count(t, "a row's number", 1, *rows) - 1;
        const size_t j = (size_t)text_count(t, "a column's number", 1, *columns) - 1;
        const double value = text_number(t, "a value of the matrix");
        a[i * nc + j] += value;
        if (m.symmetric && i != j) a[j * nc + i] += value;
    }
    text_close(t);
    return a;
}

/* A system A x = b; b and x may be NULL. */
struct dense { int n; double *a, *b, *x; };

/* A plain file has n, the n x n numbers of A row by row, then perhaps n of b, then perhaps n of x. */
static inline struct dense dense_read(const char *name)
{
    struct dense s = {0, NULL, NULL, NULL};
    struct text t = text_open(name);
    const struct market m = text_market(&t);
    if (m.is_one) {
        int columns;
        s.a = market_read(&t, m, &s.n, &columns);
        t.at_line = t.at_column = 1;
        if (columns != s.n) text_refuse(&t, "a matrix of %d rows and %d columns is not square", s.n, columns);
        return s;
    }
    s.n = text_count(&t, "n, the number of unknowns,", 1, 1 << 20);
    s.a = matrix_new((size_t)s.n * (size_t)s.n, &t);
    for (size_t q = 0; q < (size_t)s.n * (size_t)s.n; q++) s.a[q] = text_number(&t, "a value of the matrix");
    for (int q = 0; q < 2; q++) {
        const long before = ftell(t.file);
        struct text next = t;
        if (!*text_next(&next)) break;
        fseek(t.file, before, SEEK_SET);
        *(q ? &s.x : &s.b) = vector_read(&t, s.n, q ? "a value of x" : "a value of b");
    }
    text_close(&t);
    return s;
}

/* A vector of n numbers, plain or of a Matrix Market file with one column. */
static inline double *dense_vector(const char *name, int n)
{
    int rows = n, columns = 1;
    struct text t = text_open(name);
    const struct market m = text_market(&t);
    double *x = m.is_one ? market_read(&t, m, &rows, &columns) : vector_read(&t, n, "a value of the vector");
    if (!m.is_one) text_close(&t);
    t.at_line = t.at_column = 1;
    if (rows != n || columns != 1) text_refuse(&t, "%d x %d numbers are no vector of %d", rows, columns, n);
    return x;
}

#endif
