// The header stands alone in C++: it is the first include, everything links with C linkage, zeroed structs work.
#include "poisson_gpu.h"

// At file scope, so that no other header can have helped. extern "C" as a type: a function of the same linkage only.
extern "C" {
typedef pg_status solve_once_type(const pg_desc *, void *, const void *, pg_report *);
typedef int monitor_type(void *, const pg_report *);
typedef void *alloc_type(void *, size_t, pg_memory, pg_stream);
typedef void free_type(void *, void *, size_t, pg_memory, pg_stream);
}
static solve_once_type *const solve_once = pg_solve_once;
static pg_status (*const set_faces)(pg_solver *, const pg_face[6]) = pg_set_faces;
static pg_status (*const set_alpha)(pg_solver *, double) = pg_set_alpha;
static pg_status (*const set_stream)(pg_solver *, CUstream_st *) = pg_set_stream;
static const unsigned flags = PG_F64 | PG_VCYCLE | PG_SYMMETRIC;   // combine without a cast
static const int64_t stride = 0;
#define TEXT(name, text) text,
static const char *const texts[] = {PG_STATUS_LIST(TEXT) PG_OUTCOME_LIST(TEXT)};

#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
extern "C" {
#include <cmocka.h>
}

namespace {

struct journal { int checks, allocs, frees; };

extern "C" int count_checks(void *user, const pg_report *so_far)
{
    static_cast<journal *>(user)->checks++;
    return so_far->outcome == PG_CANCELLED;
}
extern "C" void *count_alloc(void *user, size_t bytes, pg_memory, pg_stream)
{
    static_cast<journal *>(user)->allocs++;
    void *block = nullptr;
    return posix_memalign(&block, 256, bytes) == 0 ? block : nullptr;
}
extern "C" void count_free(void *user, void *pointer, size_t, pg_memory, pg_stream)
{
    static_cast<journal *>(user)->frees++;
    std::free(pointer);
}

extern "C" void every_function_can_be_called_from_cpp(void **)
{
    journal log = journal();
    pg_desc desc = pg_desc(), resolved = pg_desc();          // all zero
    desc.n[0] = 9;
    desc.backend = PG_CPU;
    desc.flags = flags;
    desc.stride_u[0] = stride;
    desc.face[PG_X_HIGH].kind = PG_DIRICHLET;
    desc.allocator.alloc = count_alloc;
    desc.allocator.free = count_free;
    desc.allocator.user = &log;
    pg_stop stop = pg_stop();
    stop.monitor = count_checks;
    stop.user = &log;
    stop.norm = PG_NORM_MAX;
    pg_report report = pg_report();
    pg_solver *solver = nullptr;
    size_t bytes = 0;
    double u[9] = {0}, f[9], v[9], number = 0;
    for (double &value : f) value = 1;

    assert_int_equal(solve_once(&desc, u, f, &report), PG_OK);
    assert_int_equal(pg_workspace_bytes(&desc, &bytes), PG_OK);
    assert_int_equal(pg_create(&desc, &solver), PG_OK);
    assert_int_equal(pg_query_desc(solver, &resolved), PG_OK);
    assert_int_equal(set_faces(solver, desc.face), PG_OK);
    assert_int_equal(set_alpha(solver, 0), PG_OK);
    assert_int_equal(set_stream(solver, nullptr), PG_OK);
    assert_int_equal(pg_solve(solver, u, f, &stop), PG_OK);
    assert_int_equal(pg_get_report(solver, &report), PG_OK);
    assert_int_equal(report.outcome, PG_CONVERGED);
    assert_int_equal(log.checks, report.history_count);
    assert_true(std::fabs(u[4] - 0.125) < 1e-7);             // -u'' = 1: u = x (1 - x) / 2
    assert_int_equal(pg_smooth(solver, u, f, 1), PG_OK);
    assert_int_equal(pg_cycle(solver, u, f, 1), PG_OK);
    assert_int_equal(pg_apply(solver, u, v), PG_OK);
    assert_int_equal(pg_residual(solver, u, f, v), PG_OK);
    assert_int_equal(pg_norm(solver, f, PG_NORM_L1, &number), PG_OK);
    assert_int_equal(pg_dot(solver, f, NULL, &number), PG_OK);
    assert_int_equal(pg_dot(solver, f, f, &number), PG_OK);
    assert_true(std::fabs(number - 0.9) < 1e-14);
    assert_non_null(pg_last_error(solver));
    assert_string_equal(pg_status_string(PG_OK), texts[0]);
    assert_string_equal(pg_outcome_string(PG_CONVERGED), texts[int(PG_STATUS_COUNT) + int(PG_CONVERGED)]);
    assert_true(*pg_version() != 0);
    assert_string_equal(pg_abi()->name, "version");
    assert_int_equal(pg_gradient(solver, u, 0, v, PG_AT_UNKNOWNS), PG_OK);
    pg_destroy(solver);
    assert_int_equal(log.allocs, 2);                         // solve_once and create
    assert_int_equal(log.frees, 2);
}

}   // namespace

int main()
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_function_can_be_called_from_cpp)};
    return cmocka_run_group_tests_name("header in C++", tests, NULL, NULL);
}
