// Several ranks that are processes of MPI: run it with mpirun -n 1, 2, 3, 4, 8. The suites of ranks.h, and what happens
// where a rank makes no call any more. Linked with test_kernels.cu, compiled with -DPG_USE_MPI.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "ranks.h"

#include <thread>
#include <unistd.h>

static MPI_Comm world = MPI_COMM_NULL;
static int own_rank, ranks;

static void compare(ranks_case *c, int turn, int)
{
    whole_box w;
    if ((turn + ranks) % full_or_small(ranks > 4 ? 4 : 2, ranks > 4 ? 11 : 7)) return;
    whole_box_create(c, &w, (uint64_t)turn);
    double *const result = (double *)allocate((size_t)w.points * sizeof(double)), measures[6];
    memcpy(result, w.result, (size_t)w.points * sizeof(double));
    pg_report report = {};
    const pg_comm comm = {PG_COMM_MPI, &world};
    do_part(c, &w, comm, own_rank, ranks, result, &report, measures);
    compare_with_whole(c, &w, result, ranks);
    compare_measures(&w, measures, ranks);
    assert_int_equal(report.outcome, w.report.outcome);
    free(result);
    whole_box_free(&w);
}

static void every_box_has_the_result_of_one_rank(void **state) { every_box((const suite *)*state, compare); }

// The caller's communicator is left alone: messages of its own go on between our calls.
static void the_callers_messages_are_not_touched(void **)
{
    ranks_case c;
    set_case(&c, 2, 20, 1, 60, "PP", "DD", PG_CELL);
    c.desc.backend = PG_CPU, c.desc.flags = PG_VCYCLE;
    c.desc.comm.kind = PG_COMM_MPI, c.desc.comm.handle = &world;
    pg_solver *s = NULL;
    double u[20 * 60] = {0}, f[20 * 60] = {0};
    int sent = own_rank, received = -1;
    MPI_Request request[2];
    MPI_Irecv(&received, 1, MPI_INT, (own_rank + ranks - 1) % ranks, MPI_ANY_TAG, world, &request[0]);
    RANK_OK(pg_create(&c.desc, &s), NULL);
    RANK_OK(pg_cycle(s, u, f, 2), s);
    MPI_Isend(&sent, 1, MPI_INT, (own_rank + 1) % ranks, 0, world, &request[1]);
    RANK_OK(pg_cycle(s, u, f, 2), s);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    assert_int_equal(received, (own_rank + ranks - 1) % ranks);
    pg_destroy(s);
}

// The last rank is away in the middle of a solve: the others say what they waited for, within the time limit, and so
// does that rank when it is back, for the others are gone.
static void a_rank_that_leaves_ends_the_solves_of_all(void **)
{
    if (ranks == 1) skip();
    ranks_case c;
    set_case(&c, 2, 20, 1, 60, "DD", "DD", PG_NODE);
    c.desc.backend = PG_CPU, c.desc.flags = PG_RBGS;
    c.desc.comm.kind = PG_COMM_MPI, c.desc.comm.handle = &world;
    c.desc.time_limit = 2;
    pg_solver *s = NULL;
    double u[20 * 60] = {0}, f[20 * 60];
    for (int q = 0; q < 20 * 60; q++) f[q] = 1;
    RANK_OK(pg_create(&c.desc, &s), NULL);
    pg_stop stop = {};
    stop.rtol = 1e-30, stop.max_iter = 100000, stop.check = 10;
    stop.monitor = [](void *, const pg_report *) {    // at the first check the last rank is away for too long
        if (own_rank == ranks - 1) std::this_thread::sleep_for(std::chrono::seconds(5));
        return 0;
    };
    const double begin = MPI_Wtime();
    const pg_status status = pg_solve(s, u, f, &stop);
    const double seconds = MPI_Wtime() - begin;
    assert_int_equal(status, PG_ERROR_COMM);
    assert_true(seconds < 20);
    char own[32];
    snprintf(own, sizeof own, "rank %d of %d", own_rank, ranks);
    assert_non_null(strstr(pg_last_error(s), own));
    assert_int_equal(pg_cycle(s, u, f, 1), PG_ERROR_COMM);
    pg_destroy(s);
}

// A rank refuses, if it must before it can tell the others: they wait no longer than the time limit, for the duplicate of
// the communicator too. Each case has a communicator of its own, for on that rank the duplicate was never asked for.
static void one_rank_that_refuses_keeps_nobody_waiting(void **)
{
    if (ranks == 1 || ranks > 4) skip();    // of more ranks than cores each waits for its turn
    static MPI_Comm own[EARLY_REFUSALS];
    for (int q = 0; q < EARLY_REFUSALS; q++) {
        ranks_case c;
        early_result result;
        MPI_Comm_dup(world, &own[q]);
        set_case(&c, 2, 20, 1, 60, "DD", "DD", PG_NODE);
        c.desc.backend = PG_CPU, c.desc.flags = PG_VCYCLE;
        c.desc.comm.kind = PG_COMM_MPI, c.desc.comm.handle = &own[q];
        const int refuses = own_rank == ranks - 1;
        refuse_early(&early_refusals[q], c.desc, refuses, &result);
        check_early(&early_refusals[q], own_rank, refuses, &result);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(world, &own_rank);
    MPI_Comm_size(world, &ranks);
    CMUnitTest tests[SUITES + 3] = {};
    for (size_t q = 0; q < SUITES; q++)
        tests[q] = {suites[q].name, every_box_has_the_result_of_one_rank, NULL, NULL, (void *)&suites[q]};
    tests[SUITES] = cmocka_unit_test(the_callers_messages_are_not_touched);
    tests[SUITES + 1] = cmocka_unit_test(a_rank_that_leaves_ends_the_solves_of_all);
    tests[SUITES + 2] = cmocka_unit_test(one_rank_that_refuses_keeps_nobody_waiting);
    if (getenv("PG_TEST_FILTER")) cmocka_set_test_filter(getenv("PG_TEST_FILTER"));
    if (own_rank > 0) dup2(2, 1);    // the results are those of rank 0; what fails elsewhere ends all
    const int failed = _cmocka_run_group_tests("tests", tests, SUITES + 3, NULL, NULL);
    if (failed) MPI_Abort(world, 1);
    MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}
