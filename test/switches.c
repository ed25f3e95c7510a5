/* What the compile-time switches leave out is refused by name and costs nothing; the rest works. Compiled with the switches
   that poisson_gpu.cu was compiled with, and linked to it; see test/checks.sh. */
#include "poisson_gpu.h"
#include "choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#ifdef PG_NO_F32
enum { no_f32 = 1 };
#else
enum { no_f32 = 0 };
#endif
#ifdef PG_NO_DIRECT
enum { no_direct = 1 };
#else
enum { no_direct = 0 };
#endif
#ifdef PG_NO_DENSE
enum { no_dense = 1 };
#else
enum { no_dense = 0 };
#endif
#ifdef PG_NO_CELLS
enum { no_cells = 1 };
#else
enum { no_cells = 0 };
#endif
#ifdef PG_NO_KRYLOV
enum { no_krylov = 1 };
#else
enum { no_krylov = 0 };
#endif
#ifdef PG_NO_RANKS
enum { no_ranks = 1 };
#else
enum { no_ranks = 0 };
#endif
#ifdef PG_NO_CUDA
enum { no_cuda = 1 };
#else
enum { no_cuda = 0 };
#endif

enum { N = 31, POINTS = N * N };
static int failures;

static void expect(int holds, const char *what, const char *text)
{
    if (holds) return;
    failures++;
    printf("not so: %s (%s)\n", what, text);
}

static pg_desc square(unsigned flags)
{
    pg_desc d;
    memset(&d, 0, sizeof d);
    d.n[0] = d.n[1] = N;
    set_choice(&d, flags);
    d.backend = PG_CPU;
    return d;
}

/* Refused by every function that takes a descriptor, with the name of the switch, where `left_out`; else solved. */
static void solve(unsigned flags, int left_out, const char *by, const char *name, const char *method)
{
    static double u[POINTS], f[POINTS];    /* large enough for float too */
    const pg_desc d = square(flags);
    pg_report report;
    pg_solver *solver = NULL;
    size_t bytes = 7;
    for (int i = 0; i < POINTS; i++) {
        u[i] = 5;
        if (flags & PG_F32)
            ((float *)f)[i] = (float)(i % 7 - 3);
        else
            f[i] = i % 7 - 3;
    }
    const pg_status status = pg_solve_once(&d, u, f, &report), created = pg_create(&d, &solver);
    if (left_out) {
        const char *why = pg_last_error(NULL);
        expect(status == PG_ERROR_UNSUPPORTED && created == PG_ERROR_UNSUPPORTED && !solver, "refused", name);
        expect(strstr(why, by) && strstr(why, name), "the message names the switch and what it leaves out", why);
        expect(pg_workspace_bytes(&d, &bytes) == PG_ERROR_UNSUPPORTED, "no workspace either", name);
        int touched = 0;
        for (int i = 0; i < POINTS; i++) touched += u[i] != 5;
        expect(!touched, "u is as it was", name);
        return;
    }
    expect(status == PG_OK && created == PG_OK, "solved", pg_last_error(NULL));
    if (status != PG_OK || created != PG_OK) return;
    expect(report.outcome == PG_CONVERGED, "converged", report.message);
    expect(strstr(report.method, method) != NULL, "by the method that was meant", report.method);
    pg_destroy(solver);
}

static void solve_dense(unsigned flags, int left_out, const char *name)
{
    static double a[4], u[2], f[2];
    const float single[4] = {2, 1, 1, 2};
    pg_dense_desc d;
    pg_solver *solver = NULL;
    memset(&d, 0, sizeof d);
    a[0] = a[3] = 2, a[1] = a[2] = 1;
    d.n = 2;
    d.A = flags & PG_F32 ? (const void *)single : a;
    d.flags = flags;
    d.backend = PG_CPU;
    const pg_status status = pg_dense_create(&d, &solver);
    if (left_out) {
        expect(status == PG_ERROR_UNSUPPORTED && !solver, "refused", name);
        expect(strstr(pg_last_error(NULL), name) != NULL, "the message names the switch", pg_last_error(NULL));
        pg_destroy(solver);
        return;
    }
    expect(status == PG_OK && pg_solve(solver, u, f, NULL) == PG_OK, "solved", pg_last_error(solver));
    pg_destroy(solver);
}

/* An obstacle in a box: the default is conjugate gradients, or cycles where those are left out. */
static void solve_among_obstacles(void)
{
    static double u[POINTS], f[POINTS];
    static unsigned char mask[POINTS];
    pg_desc d = square(PG_F64);
    pg_report report;
    for (int i = 0; i < POINTS; i++) {
        const int solid = i / N > 9 && i / N < 15 && i % N > 12 && i % N < 22;
        u[i] = 0, f[i] = solid ? 0 : i % 7 - 3, mask[i] = solid ? PG_SOLID : PG_FLUID;
    }
    d.cells.mask = mask;
    d.centring[0] = d.centring[1] = PG_CELL;
    if (no_cells) {
        expect(pg_solve_once(&d, u, f, &report) == PG_ERROR_UNSUPPORTED, "no masks", pg_last_error(NULL));
        expect(strstr(pg_last_error(NULL), "PG_NO_CELLS") != NULL, "the message names the switch", pg_last_error(NULL));
        return;
    }
    expect(pg_solve_once(&d, u, f, &report) == PG_OK, "solved among obstacles", pg_last_error(NULL));
    expect(report.outcome == PG_CONVERGED, "converged among obstacles", report.message);
    expect(strstr(report.method, no_krylov ? "PG_VCYCLE" : "PG_CG") != NULL, "by the default there", report.method);
}

/* A transport of one rank. */
static int gather(void *user, const void *own, size_t bytes, void *all)
{
    (void)user;
    memcpy(all, own, bytes);
    return 0;
}
static int exchange(void *user, const pg_rank_message *message, int count, pg_stream stream)
{
    (void)user, (void)message, (void)stream;
    return count;
}
static void solve_with_ranks(void)
{
    static double u[POINTS], f[POINTS];
    pg_desc d = square(PG_F64 | PG_FMG);
    pg_transport own;
    pg_report report;
    memset(&own, 0, sizeof own);
    own.ranks = 1, own.gather = gather, own.exchange = exchange;
    d.comm.kind = PG_COMM_OWN, d.comm.handle = &own;
    for (int i = 0; i < POINTS; i++) f[i] = i % 7 - 3;
    const pg_status status = pg_solve_once(&d, u, f, &report);
    expect(status == (no_ranks ? PG_ERROR_UNSUPPORTED : PG_OK), "ranks are left out, or work", pg_last_error(NULL));
    expect(!strstr(pg_last_error(NULL), "PG_NO_RANKS") == !no_ranks, "the message names the switch", pg_last_error(NULL));
}

/* An open face takes PG_DIRECT, which the default is then. */
static void solve_open(void)
{
    pg_desc d = square(PG_F64);
    pg_solver *solver = NULL;
    d.face[PG_X_HIGH].kind = PG_OPEN;
    const pg_status status = pg_create(&d, &solver);
    expect(status == (no_direct ? PG_ERROR_UNSUPPORTED : PG_OK), "an open face", pg_last_error(NULL));
    if (no_direct) expect(strstr(pg_last_error(NULL), "PG_NO_DIRECT") != NULL, "the message names the switch", pg_last_error(NULL));
    pg_destroy(solver);
}

int main(void)
{
    puts(pg_version());
    solve_dense(PG_F64, no_dense, "PG_NO_DENSE");
    solve_dense(PG_F32, no_dense || no_f32, no_dense ? "PG_NO_DENSE" : "PG_NO_F32");
    expect(!strstr(pg_version(), "without dense") == !no_dense, "the version tells about dense systems", pg_version());
    solve(PG_F64 | PG_FMG, 0, "", "", "PG_FMG");
    solve(PG_F64 | PG_FMG | PG_SMOOTH_LINES, 0, "", "", "PG_FMG");
    solve(PG_F32 | PG_FMG, no_f32, "PG_NO_F32", "PG_F32", "PG_FMG");
    solve(PG_MIXED | PG_FMG, no_f32, "PG_NO_F32", "PG_MIXED", "PG_FMG");
    solve(PG_F64 | PG_DIRECT, no_direct, "PG_NO_DIRECT", "PG_DIRECT", "PG_DIRECT");
    solve_open();
    solve(PG_F64 | PG_CG, no_krylov, "PG_NO_KRYLOV", "PG_CG", "PG_CG");
    solve(PG_F64 | PG_PIPEBICGSTAB, no_krylov, "PG_NO_KRYLOV", "PG_PIPEBICGSTAB", "PG_PIPEBICGSTAB");
    solve_among_obstacles();
    solve_with_ranks();
    expect(!strstr(pg_version(), "without Krylov") == !no_krylov, "the version tells about Krylov methods", pg_version());
    expect(!strstr(pg_version(), "without masks") == !no_cells, "the version tells about masks", pg_version());
    expect(!strstr(pg_version(), "without ranks") == !no_ranks, "the version tells about ranks", pg_version());
    solve(0, 0, "", "", no_direct ? "PG_NO_DIRECT" : "PG_");    /* the default, and why it is what it is */
    expect(!strstr(pg_version(), "without f32") == !no_f32, "the version tells about f32", pg_version());
    expect(!strstr(pg_version(), "without PG_DIRECT") == !no_direct, "the version tells about PG_DIRECT", pg_version());
    if (no_cuda) {
        pg_desc d = square(PG_F64);
        pg_solver *solver = NULL;
        d.backend = PG_CUDA;
        expect(pg_create(&d, &solver) == PG_ERROR_NO_DEVICE && !solver, "no CUDA", pg_last_error(NULL));
        expect(strstr(pg_last_error(NULL), "PG_NO_CUDA") != NULL, "the message names the switch", pg_last_error(NULL));
    }
    return failures != 0;
}
