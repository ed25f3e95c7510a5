/* NaN and Inf are found by a library that was compiled with -ffast-math, which lets compilers assume that there are none.
   Compiled and run by checks.sh. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "poisson_gpu.h"

enum { N = 40 };
static double u64[N * N], f64[N * N];
static float u32[N * N], f32[N * N];
static int failures;

static void expect(int condition, const char *what, const char *case_)
{
    if (condition) return;
    failures++;
    printf("%s: %s\n", case_, what);
}

/* Puts a value at one place of f and solves: u must stay as it was, unless the value is a number. */
static void solve(unsigned flags, double value, int number, const char *name)
{
    char text[80];
    pg_desc desc = {0};
    pg_report report;
    desc.n[0] = desc.n[1] = N;
    desc.flags = flags;
    for (int i = 0; i < N * N; i++) {
        f64[i] = f32[i] = i % 5 - 2;
        u64[i] = u32[i] = 0.25f;
    }
    f64[700] = value, f32[700] = (float)value;
    const int single = (flags & PG_F32) != 0;
    snprintf(text, sizeof text, "flags 0x%x, %s in f", flags, name);
    const pg_status status = pg_solve_once(&desc, single ? (void *)u32 : u64, single ? (void *)f32 : f64, &report);
    expect(status == PG_OK, pg_last_error(NULL), text);
    expect(report.outcome == (number ? PG_CONVERGED : PG_NOT_A_NUMBER), report.message, text);
    for (int i = 0; i < N * N && !number; i += 99)
        expect(u64[i] == 0.25 && u32[i] == 0.25f, "u was touched", text);
}

/* A NaN in one problem of a batch is in no other's result. */
static void solve_batch(double value, const char *name)
{
    enum { NX = 7, NY = 5, PROBLEMS = 3 };
    pg_desc desc = {0};
    desc.n[0] = NX, desc.n[1] = NY;
    desc.batch = PROBLEMS;
    desc.flags = PG_DIRECT;
    for (int i = 0; i < NX * NY * PROBLEMS; i++) f64[i] = i % 5 - 2, u64[i] = 0.25;
    f64[NX * NY + 11] = value;
    const pg_status status = pg_solve_once(&desc, u64, f64, NULL);
    expect(status == PG_OK, pg_last_error(NULL), name);
    for (int i = 0; i < NX * NY * PROBLEMS; i++) {
        uint64_t bits;
        memcpy(&bits, &u64[i], sizeof bits);
        const int finite = (bits >> 52 & 0x7ff) != 0x7ff, bad = i / (NX * NY) == 1;
        if (!bad) expect(finite && u64[i] != 0.25, "not solved beside a batch's bad problem", name);
    }
}

static void refuse(double nan)
{
    double coord[N + 1], weight[N], conductance[N + 1];
    for (int field = 0; field < 8; field++) {
        pg_desc desc = {0};
        desc.n[0] = N;
        desc.centring[0] = PG_CELL;
        for (int i = 0; i <= N; i++) coord[i] = i, conductance[i] = 1;
        for (int i = 0; i < N; i++) weight[i] = 1;
        if (field == 0) desc.alpha = nan;
        if (field == 1) desc.beta = nan;
        if (field == 2) desc.omega = nan;
        if (field == 3) desc.h[0] = nan;
        if (field == 4) desc.face[0].value = nan;
        if (field == 5) desc.coord[0] = coord, coord[9] = nan;
        if (field == 6) desc.weight[0] = weight, weight[9] = nan;
        if (field == 7) desc.conductance[0] = conductance, conductance[9] = nan;
        size_t bytes;
        char text[40];
        snprintf(text, sizeof text, "field %d", field);
        expect(pg_workspace_bytes(&desc, &bytes) == PG_ERROR_ARGUMENT, "NaN was not refused", text);
    }
}

/* A NaN in A (off its diagonal and on it), f or u of a dense system. */
static void solve_dense(unsigned flags, double value, int where, const char *name)
{
    char text[80];
    pg_dense_desc desc = {0};
    pg_solver *solver = NULL;
    pg_report report;
    for (int i = 0; i < N * N; i++) u64[i] = i % (N + 1) ? i % 3 - 1 : 2 * N;
    for (int i = 0; i < N; i++) f64[i] = 1, f64[N + i] = 0.25;
    if (where < 2) u64[where ? 3 * (N + 1) : 3 * N] = value;
    if (where > 1) f64[where == 2 ? 7 : N + 7] = value;
    desc.n = N, desc.A = u64, desc.flags = flags;
    snprintf(text, sizeof text, "dense, flags 0x%x, %s at place %d", flags, name, where);
    const pg_status created = pg_dense_create(&desc, &solver);
    expect(created == PG_OK, pg_last_error(NULL), text);
    if (created != PG_OK) return;
    expect(pg_solve(solver, f64 + N, f64, NULL) == PG_OK, pg_last_error(solver), text);
    pg_get_report(solver, &report);
    expect(report.outcome == PG_NOT_A_NUMBER, report.message, text);
    expect(f64[N] == 0.25 && f64[2 * N - 1] == 0.25, "u was touched", text);
    pg_destroy(solver);
}

int main(void)
{
    static const unsigned methods[] = {PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_FMG, PG_DIRECT, PG_MIXED};
    static const uint64_t bits[] = {0x7ff8000000000000u, 0xfff8000000000000u, 0x7ff0000000000000u, 0xfff0000000000000u};
    static const char *const names[] = {"NaN", "-NaN", "Inf", "-Inf"};
    double values[4];
    memcpy(values, bits, sizeof values);
    for (int m = 0; m < 7; m++)
        for (int single = 0; single < (methods[m] == PG_MIXED ? 1 : 2); single++) {
            for (int q = 0; q < 4; q++) solve(methods[m] | (single ? PG_F32 : 0), values[q], 0, names[q]);
            solve(methods[m] | (single ? PG_F32 : 0), 1, 1, "1");
        }
    for (int q = 0; q < 4; q++) solve_batch(values[q], names[q]);
    refuse(values[0]);
    for (int where = 0; where < 4; where++)
        for (int q = 0; q < 4; q++) {
            solve_dense(PG_JACOBI, values[q], where, names[q]);
            solve_dense(PG_GAUSS_SEIDEL, values[q], where, names[q]);
        }
    if (!failures) puts("NaN and Inf are found");
    return failures != 0;
}
