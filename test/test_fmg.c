/* One pass of full multigrid solves to the discretisation error. At sizes like 33 and 40 nodes the coarse points are no
   points of the finer level, on any level. */
#include "manufactured.h"

static void must_reach_discretisation_error(const pg_desc *desc)
{
    const int shape[3] = {PLAIN, PLAIN, PLAIN};
    manufactured m;
    manufactured_create(&m, desc, shape);
    const size_t points = ref_points(&m.p);
    double *fmg = allocate(points * sizeof *fmg), *discrete = allocate(points * sizeof *discrete);
    pg_solver *solver = create(&m.desc);
    const pg_stop one_pass = {.rtol = PG_NONE, .max_iter = 1}, to_the_end = {.rtol = 1e-12};
    pg_report report;
    OK(pg_solve(solver, fmg, m.f, &one_pass), solver);
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_COMPLETED);
    assert_int_equal(report.iterations, 1);
    OK(pg_solve(solver, discrete, m.f, &to_the_end), solver);
    OK(pg_get_report(solver, &report), solver);
    if (report.outcome != PG_CONVERGED && report.outcome != PG_STAGNATED)
        fail_msg("%s: %s", describe(desc), report.message);
    pg_destroy(solver);
    const double algebraic = manufactured_distance(&m, fmg, discrete);
    const double discretisation = manufactured_error(&m, discrete);
    if (!(algebraic <= 0.5 * discretisation))
        fail_msg("%s: algebraic error %.2e is %.2f of the discretisation error", describe(desc), algebraic,
                 algebraic / discretisation);
    free(fmg), free(discrete);
    manufactured_free(&m);
}

static pg_desc full_multigrid(pg_backend backend, int dim, int n, pg_centring centring, const char *const ends[3])
{
    pg_desc desc = {0};
    for (int axis = 0; axis < 3; axis++) {
        desc.n[axis] = axis < dim ? n : 1;
        desc.centring[axis] = centring;
        set_ends(&desc, axis, ends[axis]);
    }
    desc.backend = backend;
    return desc;
}

/* Each pair on all axes, and then three different ones; of the largest problems, which take long to check, and of cubes
   in a small run, which has the same pairs in squares, some. */
static void every_pair(pg_backend backend, int dim, int n)
{
    static const char *const pairs[] = {"DD", "DN", "DR", "ND", "NN", "NR", "RD", "RN", "RR", "PP"};
    const int some = dim == 3 && (n > 200 || small_run());
    for (int pair = 0; pair < 10; pair += some ? 3 : 1)
        for (int mixed = some; mixed < 2; mixed++)
            for (int cell = 0; cell < 2; cell++) {
                const char *const ends[3] = {pairs[pair], pairs[(pair + 3 * mixed) % 10],
                                             pairs[(pair + 7 * mixed) % 10]};
                pg_desc desc = full_multigrid(backend, dim, n, cell ? PG_CELL : PG_NODE, ends);
                desc.coarsest = pair % 2 ? 8 : 0;
                must_reach_discretisation_error(&desc);
            }
}

static void squares_from_31_to_257(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[] = {31, 32, 33, 40, 50, 64, 97, 127, 128, 200, 255, 257};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!small_run() || sizes[i] <= 40) every_pair(backend, 2, sizes[i]);
}

static void cubes_from_31_to_257(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[] = {31, 32, 33, 40, 66, 101, 128, 255, 257};
    const int largest = small_run() ? 31 : backend == PG_CUDA ? 257 : 40;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] <= largest) every_pair(backend, 3, sizes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(squares_from_31_to_257),
        ON_BOTH(cubes_from_31_to_257),
    };
    return cmocka_run_group_tests_name("one pass of full multigrid", tests, NULL, NULL);
}
