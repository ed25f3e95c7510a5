/* The header stands alone in C: it is the first include, and everything it declares is used as a caller would. */
#include "poisson_gpu.h"

/* At file scope, so that no other header can have helped. */
static size_t size = sizeof(pg_desc) + sizeof(pg_face) + sizeof(pg_allocator) + sizeof(pg_report) + sizeof(pg_stop);
static int64_t wide = INT64_MAX;

#define COUNT(name, text) +1
#define NAME(name, text) name,
#define TEXT(name, text) text,
static const pg_status statuses[] = {PG_STATUS_LIST(NAME)};
static const pg_outcome outcomes[] = {PG_OUTCOME_LIST(NAME)};
static const char *const texts[] = {PG_STATUS_LIST(TEXT) PG_OUTCOME_LIST(TEXT)};
static const int listed = 0 PG_STATUS_LIST(COUNT) PG_OUTCOME_LIST(COUNT);

typedef struct functions {
    pg_status (*solve_once)(const pg_desc *, void *, const void *, pg_report *);
    pg_status (*create)(const pg_desc *, pg_solver **);
    void (*destroy)(pg_solver *);
    pg_status (*workspace_bytes)(const pg_desc *, size_t *);
    pg_status (*query_part)(const pg_desc *, int[3], int[3]);
    pg_status (*query_desc)(const pg_solver *, pg_desc *);
    pg_status (*solve)(pg_solver *, void *, const void *, const pg_stop *);
    pg_status (*get_report)(pg_solver *, pg_report *);
    pg_status (*set_faces)(pg_solver *, const pg_face[6]);
    pg_status (*set_alpha)(pg_solver *, double);
    pg_status (*set_stream)(pg_solver *, pg_stream);
    pg_status (*set_cells)(pg_solver *, const pg_cells *);
    pg_status (*smooth)(pg_solver *, void *, const void *, int);
    pg_status (*cycle)(pg_solver *, void *, const void *, int);
    pg_status (*apply)(pg_solver *, const void *, void *);
    pg_status (*residual)(pg_solver *, const void *, const void *, void *);
    pg_status (*norm)(pg_solver *, const void *, pg_norm_kind, double *);
    pg_status (*dot)(pg_solver *, const void *, const void *, double *);
    const char *(*last_error)(const pg_solver *);
    const char *(*status_string)(pg_status);
    const char *(*outcome_string)(pg_outcome);
    const char *(*version)(void);
    pg_status (*dense_create)(const pg_dense_desc *, pg_solver **);
    pg_status (*dense_workspace_bytes)(const pg_dense_desc *, size_t *);
    pg_status (*dense_query_desc)(const pg_solver *, pg_dense_desc *);
    pg_status (*dense_update)(pg_solver *);
    pg_status (*gradient)(pg_solver *, const void *, int, void *, pg_where);
    pg_status (*get_parts)(pg_solver *, const void *, int *, int *, double *, double *);
    const pg_abi_entry *(*abi)(void);
    int (*progress)(void *, const pg_report *);
} functions;

static const functions pg = {
    pg_solve_once, pg_create,    pg_destroy,    pg_workspace_bytes, pg_query_part, pg_query_desc, pg_solve,          pg_get_report,
    pg_set_faces,  pg_set_alpha, pg_set_stream, pg_set_cells, pg_smooth,          pg_cycle,         pg_apply,          pg_residual,
    pg_norm,       pg_dot,        pg_last_error,      pg_status_string, pg_outcome_string, pg_version,
    pg_dense_create, pg_dense_workspace_bytes, pg_dense_query_desc, pg_dense_update,
    pg_gradient, pg_get_parts, pg_abi, pg_progress};

#include "common.h"

static void zero_is_the_default_of_every_choice(void **state)
{
    (void)state;
    assert_true(PG_OK == 0 && PG_NOT_RUN == 0 && PG_NODE == 0 && PG_DIRICHLET == 0 && PG_X_LOW == 0 &&
                PG_MEM_HOST == 0);
    assert_true(PG_AT_FACES == 0 && PG_AUTO == 0 && PG_GUESS_DEFAULT == 0 && PG_NORM_L2 == 0 && PG_DEVICE(0) != 0 && PG_NONE < 0);
    const int others[] = {PG_CELL, PG_NEUMANN,    PG_ROBIN,   PG_PERIODIC,      PG_MEM_DEVICE, PG_CUDA,
                          PG_CPU,  PG_GUESS_ZERO, PG_GUESS_U, PG_NORM_L2_PLAIN, PG_NORM_MAX,   PG_NORM_L1};
    for (size_t q = 0; q < sizeof others / sizeof *others; q++) assert_int_not_equal(others[q], 0);
    const int faces[] = {PG_X_LOW, PG_X_HIGH, PG_Y_LOW, PG_Y_HIGH, PG_Z_LOW, PG_Z_HIGH};
    for (int face = 0; face < 6; face++) assert_int_equal(faces[face], face);
}

static void no_two_flags_share_a_bit(void **state)
{
    (void)state;
    const unsigned flags[] = {PG_F64, PG_F32, PG_MIXED, PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_WCYCLE, PG_FMG, PG_DIRECT,
                              PG_SMOOTH_RBGS, PG_SMOOTH_JACOBI, PG_SMOOTH_CHEBYSHEV, PG_SMOOTH_LINES, PG_SYMMETRIC,
                              PG_FASTEST, PG_CG, PG_PIPECG, PG_BICGSTAB, PG_PIPEBICGSTAB, PG_PRECOND_CYCLE,
                              PG_PRECOND_DIAGONAL, PG_PRECOND_NONE, PG_PRECOND_AINV, PG_PRECOND_AINV2,
                              PG_PRECOND_DIRECT,
                              PG_UPWIND, PG_KEEP_CYCLES, PG_COARSEN_CELLS, PG_BACKWARD, PG_RESTORE};
    unsigned seen = 0;
    for (size_t q = 0; q < sizeof flags / sizeof *flags; q++) {
        assert_true(flags[q] != 0 && (flags[q] & (flags[q] - 1)) == 0 && (seen & flags[q]) == 0);
        seen |= flags[q];
    }
    assert_int_equal(PG_GAUSS_SEIDEL, PG_RBGS);    /* but these: Gauss-Seidel sweeps, of a matrix and of a grid */
}

static void the_lists_are_the_enums(void **state)
{
    (void)state;
    assert_int_equal(listed, PG_STATUS_COUNT + PG_OUTCOME_COUNT);
    for (int s = 0; s < PG_STATUS_COUNT; s++) assert_int_equal(statuses[s], s);
    for (int o = 0; o < PG_OUTCOME_COUNT; o++) assert_int_equal(outcomes[o], o);
    for (int q = 0; q < listed; q++) assert_true(*texts[q]);
    const pg_status first_last[] = {PG_OK, PG_ERROR_ARGUMENT, PG_ERROR_UNSUPPORTED, PG_ERROR_MEMORY, PG_ERROR_NO_DEVICE,
                                    PG_ERROR_CUDA, PG_ERROR_COMM};
    const pg_outcome all[] = {PG_NOT_RUN, PG_CONVERGED, PG_COMPLETED, PG_MAX_ITER, PG_STAGNATED, PG_DIVERGED,
                              PG_NOT_A_NUMBER, PG_CANCELLED, PG_RESONANCE, PG_BREAKDOWN, PG_RUNNING};
    assert_memory_equal(first_last, statuses, sizeof statuses);
    assert_memory_equal(all, outcomes, sizeof outcomes);
}

static void every_function_can_be_called_from_c(void **state)
{
    (void)state;
    pg_desc desc = {0}, resolved;
    desc.n[0] = 9, desc.flags = PG_VCYCLE, desc.backend = PG_CPU;
    pg_stop stop = {0};
    pg_report report = {0};
    pg_solver *solver = NULL;
    size_t bytes = 0;
    double u[9] = {0}, f[9], v[9], number = 0;
    for (int i = 0; i < 9; i++) f[i] = 1;
    assert_true(size > 0 && wide > 0);

    assert_int_equal(pg.solve_once(&desc, u, f, &report), PG_OK);
    assert_int_equal(pg.workspace_bytes(&desc, &bytes), PG_OK);
    assert_int_equal(pg.create(&desc, &solver), PG_OK);
    assert_int_equal(pg.query_desc(solver, &resolved), PG_OK);
    assert_int_equal(pg.set_faces(solver, desc.face), PG_OK);
    assert_int_equal(pg.set_alpha(solver, 0), PG_OK);
    assert_int_equal(pg.set_stream(solver, NULL), PG_OK);
    assert_int_equal(pg.set_cells(solver, &desc.cells), PG_ERROR_UNSUPPORTED);
    assert_int_equal(pg.solve(solver, u, f, &stop), PG_OK);
    assert_int_equal(pg.get_report(solver, &report), PG_OK);
    assert_int_equal(report.outcome, PG_CONVERGED);
    assert_true(fabs(u[4] - 0.125) < 1e-7);              /* -u'' = 1: u = x (1 - x) / 2 */
    assert_int_equal(pg.smooth(solver, u, f, 1), PG_OK);
    assert_int_equal(pg.cycle(solver, u, f, 1), PG_OK);
    assert_int_equal(pg.apply(solver, u, v), PG_OK);
    assert_int_equal(pg.residual(solver, u, f, v), PG_OK);
    assert_int_equal(pg.norm(solver, f, PG_NORM_MAX, &number), PG_OK);
    assert_true(number == 1);
    assert_int_equal(pg.dot(solver, f, NULL, &number), PG_OK);
    assert_int_equal(pg.dot(solver, f, f, &number), PG_OK);
    assert_true(fabs(number - 0.9) < 1e-14);             /* nine control lengths of 1/10 */
    assert_non_null(pg.last_error(solver));
    assert_string_equal(pg.status_string(PG_OK), texts[PG_OK]);
    assert_string_equal(pg.outcome_string(report.outcome), texts[PG_STATUS_COUNT + PG_CONVERGED]);
    assert_true(*pg.version());
    pg.destroy(solver);

    const double a[4] = {4, 1, 1, 4}, right[2] = {6, 9};
    double x[2] = {0, 0};
    pg_solver *dense = NULL;
    pg_dense_desc dense_desc = {0};
    dense_desc.n = 2, dense_desc.A = a, dense_desc.backend = PG_CPU;
    size_t dense_bytes = 0;
    assert_int_equal(pg.dense_workspace_bytes(&dense_desc, &dense_bytes), PG_OK);
    assert_true(dense_bytes > 0);
    assert_int_equal(pg.dense_create(&dense_desc, &dense), PG_OK);
    assert_int_equal(pg.dense_query_desc(dense, &dense_desc), PG_OK);
    assert_true(dense_desc.lda == 2 && dense_desc.omega == 1 && dense_desc.flags == (PG_F64 | PG_GAUSS_SEIDEL));
    assert_int_equal(pg.dense_update(dense), PG_OK);
    assert_int_equal(pg.set_stream(dense, NULL), PG_OK);
    assert_int_equal(pg.solve(dense, x, right, NULL), PG_OK);
    assert_int_equal(pg.get_report(dense, &report), PG_OK);
    assert_int_equal(report.outcome, PG_CONVERGED);
    assert_true(fabs(x[0] - 1) < 1e-7 && fabs(x[1] - 2) < 1e-7);
    assert_string_equal(pg.last_error(dense), "");
    pg.destroy(dense);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_is_the_default_of_every_choice),
        cmocka_unit_test(no_two_flags_share_a_bit),
        cmocka_unit_test(the_lists_are_the_enums),
        cmocka_unit_test(every_function_can_be_called_from_c),
    };
    return cmocka_run_group_tests_name("header in C", tests, NULL, NULL);
}
