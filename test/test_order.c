/* The error against smooth known solutions falls with the square of the spacing. */
#include "manufactured.h"

/* Unknowns of an axis with so many intervals. */
static int unknowns(int intervals, pg_centring centring, const char *ends)
{
    if (centring == PG_CELL || ends[0] == 'P') return intervals;
    return intervals + 1 - (ends[0] == 'D') - (ends[1] == 'D');
}

typedef struct axis_kind { pg_centring centring; const char *ends; int shape; } axis_kind;

/* The L2 error with so many intervals along each axis. */
static double error_at(pg_backend backend, int dim, const axis_kind kind[3], double alpha, int intervals, char *text)
{
    pg_desc desc = {0};
    int shape[3] = {0};
    for (int axis = 0; axis < 3; axis++) {
        desc.n[axis] = axis < dim ? unknowns(intervals, kind[axis].centring, kind[axis].ends) : 1;
        desc.centring[axis] = axis < dim ? kind[axis].centring : PG_NODE;
        if (axis < dim) set_ends(&desc, axis, kind[axis].ends), shape[axis] = kind[axis].shape;
    }
    desc.dim = dim, desc.alpha = alpha, desc.backend = backend;
    manufactured m;
    manufactured_create(&m, &desc, shape);
    double *u = allocate(ref_points(&m.p) * sizeof *u);
    pg_solver *solver = create(&m.desc);
    const pg_stop stop = {.rtol = 1e-11};
    OK(pg_solve(solver, u, m.f, &stop), solver);
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    if (report.outcome != PG_CONVERGED && report.outcome != PG_STAGNATED)
        fail_msg("%s: %s", describe(&m.desc), report.message);
    pg_destroy(solver);
    const double error = manufactured_error(&m, u);
    strcpy(text, describe(&m.desc));
    free(u);
    manufactured_free(&m);
    return error;
}

static void must_be_second_order(pg_backend backend, int dim, const axis_kind kind[3], double alpha, int intervals)
{
    char text[240];
    const double coarse = error_at(backend, dim, kind, alpha, intervals, text);
    const double fine = error_at(backend, dim, kind, alpha, 2 * intervals, text);
    const double slope = log2(coarse / fine);
    if (!(slope >= 1.95 && slope <= 2.05))
        fail_msg("%s, shapes %d %d %d: slope %.3f (%.3e, %.3e)", text, kind[0].shape, kind[1].shape, kind[2].shape,
                 slope, coarse, fine);
}

static const char *const end_pairs[] = {"DD", "DN", "DR", "ND", "NN", "NR", "RD", "RN", "RR", "PP"};

static void one_dimension(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int pair = 0; pair < 10; pair++)
        for (int cell = 0; cell < 2; cell++)
            for (int stretched = 0; stretched < 2; stretched++)
                for (int alpha = 0; alpha < 2; alpha++) {
                    const int shape = stretched ? STRETCHED : PLAIN;
                    const axis_kind kind[3] = {{cell ? PG_CELL : PG_NODE, end_pairs[pair], shape}};
                    must_be_second_order(backend, 1, kind, 3 * alpha, 256);
                }
}

/* Every pair of ends along x against every pair along y; centring and stretching run through all combinations. */
static void two_dimensions(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int x = 0; x < 10; x++)
        for (int y = 0; y < 10; y += full_or_small(1, 5)) {
            const int which = x + 3 * y;
            const axis_kind kind[3] = {{which & 1 ? PG_CELL : PG_NODE, end_pairs[x], which & 2 ? STRETCHED : PLAIN},
                                       {which & 4 ? PG_CELL : PG_NODE, end_pairs[y], which & 8 ? STRETCHED : PLAIN}};
            must_be_second_order(backend, 2, kind, 0, full_or_small(128, 64));
        }
}

static void metrics(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int shapes[] = {RADIUS, RADIUS_FROM_AXIS, INVERSE_RADIUS};
    for (int shape = 0; shape < 3; shape++)
        for (int pair = 0; pair < 9; pair++)
            for (int which = 0; which < 4; which++) {
                if (shapes[shape] == RADIUS_FROM_AXIS && end_pairs[pair][0] != 'N') continue;
                const int stretched = which & 1 ? STRETCHED : 0;
                const axis_kind kind[3] = {{which & 2 ? PG_CELL : PG_NODE, end_pairs[pair], shapes[shape] | stretched},
                                           {which & 2 ? PG_NODE : PG_CELL, end_pairs[(pair + which) % 10], stretched}};
                must_be_second_order(backend, 1, kind, 0, 256);
                must_be_second_order(backend, 2, kind, 0, 64);
            }
}

static void three_dimensions(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const axis_kind nodes[3] = {{PG_NODE, "DN", PLAIN}, {PG_NODE, "RD", PLAIN}, {PG_NODE, "NR", PLAIN}};
    const axis_kind cells[3] = {{PG_CELL, "ND", PLAIN}, {PG_CELL, "DR", PLAIN}, {PG_CELL, "RN", PLAIN}};
    const axis_kind mixed[3] = {{PG_CELL, "PP", PLAIN}, {PG_NODE, "NN", STRETCHED}, {PG_CELL, "NN", RADIUS}};
    const int intervals = full_or_small(backend == PG_CUDA ? 64 : 32, 16);
    must_be_second_order(backend, 3, nodes, 0, intervals);
    must_be_second_order(backend, 3, cells, 2, intervals);
    must_be_second_order(backend, 3, mixed, 0, intervals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(one_dimension),
        ON_BOTH(two_dimensions),
        ON_BOTH(metrics),
        ON_BOTH(three_dimensions),
    };
    return cmocka_run_group_tests_name("second order", tests, NULL, NULL);
}
