/* What lasts from call to call: a descriptor that pg_query_desc tells creates the same solver again, and whether a call is
   taken depends on what was asked for at pg_create, not on what the library chose. */
#include "common.h"

#ifdef _OPENMP
#include <omp.h>
#endif

enum { N = 14, POINTS = N * N * N, LONG_AXIS = 1100 };

/* ---- pg_query_desc ------------------------------------------------------------------------------------------------- */

/* Everything that a descriptor points to. */
static struct {
    double coord[3][LONG_AXIS + 2], weight[N], conductance[N + 1], beta_cell[POINTS], alpha_cell[POINTS];
    unsigned char mask[POINTS];
    pg_cell_value air[2], flux[1];
} given;

static void set_box(pg_desc *d, int dim)
{
    memset(d, 0, sizeof *d);
    for (int a = 0; a < 3; a++) d->n[a] = a < dim ? N - a : 1;
    for (int a = 0; a < dim; a++) set_ends(d, a, a == 1 ? "DN" : "DD");
}

/* Spacings that vary by q to the n. */
static void stretch(pg_desc *d, int axis, double q)
{
    for (int i = 0; i <= d->n[axis]; i++) given.coord[axis][i + 1] = given.coord[axis][i] + pow(q, i);
    d->coord[axis] = given.coord[axis];
}

static void set_metric(pg_desc *d)
{
    for (int i = 0; i <= N; i++) given.conductance[i] = 1 + i, given.weight[i < N ? i : 0] = 1.5 + i;
    d->weight[0] = given.weight, d->conductance[0] = given.conductance;
}

/* Cells with a wall and some air above. */
static void set_mask(pg_desc *d)
{
    for (int a = 0; a < d->dim || (a < 3 && d->n[a] > 1); a++) d->centring[a] = PG_CELL;
    for (int m = 0; m < POINTS; m++) given.mask[m] = m % d->n[0] == 5 && m / d->n[0] % d->n[1] > 3 ? PG_SOLID : PG_FLUID;
    for (int i = 0; i < d->n[0]; i++) given.mask[i + d->n[0] * (d->n[1] - 1)] = PG_AIR;
    d->cells.mask = given.mask;
}
static void set_values(pg_desc *d)
{
    for (int e = 0; e < 2; e++) {
        const pg_cell_value air = {{e, d->n[1] - 2, 0}, PG_Y_HIGH, 3 + e, e ? 0.75 : 0};
        given.air[e] = air;
    }
    const pg_cell_value flux = {{4, 4, 0}, PG_X_HIGH, 0.5, 0};
    given.flux[0] = flux;
    d->cells.air_value = given.air, d->cells.air_values = 2;
    d->cells.solid_flux = given.flux, d->cells.solid_fluxes = 1;
}
static void set_fields(pg_desc *d)
{
    for (int a = 0; a < 3; a++) d->centring[a] = PG_CELL;
    for (int m = 0; m < POINTS; m++) given.beta_cell[m] = 1 + m % 7, given.alpha_cell[m] = m % 3;
    d->cells.beta_cell = given.beta_cell, d->cells.alpha_cell = given.alpha_cell;
}

static void sweeps(pg_desc *d) { set_choice(d, PG_SOR); }
static void jacobi(pg_desc *d) { set_choice(d, PG_JACOBI | PG_F32); }
static void cycles(pg_desc *d) { set_choice(d, PG_VCYCLE), d->nu_pre = PG_NONE, d->nu_post = 3; }
static void stretched(pg_desc *d) { stretch(d, 0, 1.2), set_metric(d); }
static void wild(pg_desc *d) { stretch(d, 0, 1.2), stretch(d, 1, 1.3); }
static void wild_and_long(pg_desc *d)
{
    d->n[0] = LONG_AXIS, d->n[1] = 12;
    stretch(d, 0, 1.005), stretch(d, 1, 1.6);
}
static void wild_mixed(pg_desc *d) { wild_and_long(d), set_choice(d, PG_FMG | PG_MIXED), d->nu_post = 3; }
static void among_walls(pg_desc *d) { set_mask(d); }
static void among_walls_in_f32(pg_desc *d) { set_mask(d), set_choice(d, PG_FMG | PG_F32); }
static void with_values(pg_desc *d) { set_mask(d), set_values(d); }
static void with_nodes(pg_desc *d)
{
    set_mask(d), set_values(d), set_metric(d);
    d->centring[0] = d->centring[1] = PG_NODE;
}
static void with_fields(pg_desc *d) { set_fields(d), set_choice(d, PG_MIXED); }
static void coarse_cells(pg_desc *d) { set_mask(d), set_choice(d, PG_FMG | PG_COARSEN_CELLS); }
static void conjugate(pg_desc *d) { set_mask(d), set_choice(d, PG_CG); }
static void bicgstab(pg_desc *d) { set_choice(d, PG_BICGSTAB | PG_PRECOND_AINV); }
static void flow(pg_desc *d) { d->velocity[0] = 2, d->velocity[1] = -1, d->alpha = 1; }
static void direct(pg_desc *d) { set_choice(d, PG_DIRECT), stretch(d, 1, 1.1); }
static void nearby(pg_desc *d) { set_choice(d, PG_CG | PG_PRECOND_DIRECT), wild(d); }
static void plain(pg_desc *d) { (void)d; }
static void kept(pg_desc *d) { set_choice(d, PG_KEEP_CYCLES), wild(d); }

static const struct {
    const char *name;
    void (*set)(pg_desc *);
} descriptors[] = {
    {"default", plain}, {"SOR", sweeps}, {"Jacobi in f32", jacobi}, {"V-cycles", cycles}, {"a metric", stretched},
    {"two axes that vary", wild}, {"the same with long axes", wild_and_long}, {"the same in two precisions", wild_mixed},
    {"a mask", among_walls}, {"a mask in f32", among_walls_in_f32}, {"values on sides", with_values},
    {"nodes with a metric", with_nodes},
    {"coefficients", with_fields}, {"coarse cells", coarse_cells}, {"CG with a mask", conjugate},
    {"BiCGStab", bicgstab}, {"a velocity", flow}, {"PG_DIRECT", direct}, {"PG_PRECOND_DIRECT", nearby},
    {"cycles kept", kept},
};

/* Three iterations without a word on the guess, in f64 or f32; u holds what was there before. */
static pg_report run(const pg_desc *d, void *u, size_t bytes, pg_desc *told)
{
    const pg_stop stop = {.rtol = 1e-30, .max_iter = 3, .check = 1};
    const int64_t count = (int64_t)d->n[0] * d->n[1] * d->n[2];
    void *const f = allocate(bytes);
    pg_report report;
    for (int64_t m = 0; m < count; m++) {
        const double right = sin(3.0 * (double)m), guess = cos(5.0 * (double)m);
        if (d->flags & PG_F32) ((float *)u)[m] = (float)guess, ((float *)f)[m] = (float)right;
        else ((double *)u)[m] = guess, ((double *)f)[m] = right;
    }
    pg_solver *const solver = create(d);
    if (told) OK(pg_query_desc(solver, told), solver);
    OK(pg_solve(solver, u, f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    pg_destroy(solver);
    free(f);
    return report;
}

/* The name of the method: the default's text goes on with why it was chosen. */
static int same_method(const char *a, const char *b) { return strncmp(a, b, strcspn(a, ":")) == 0; }

static void a_descriptor_that_is_told_creates_the_same_solver(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (size_t q = 0; q < sizeof descriptors / sizeof *descriptors; q++)
        for (int dim = 2; dim <= full_or_small(3, q % 3 ? 2 : 3); dim++) {
            pg_desc d, told, again;
            set_box(&d, dim);
            descriptors[q].set(&d);
            d.backend = backend;
            if (dim == 3 && d.n[0] == LONG_AXIS) continue;
            const size_t bytes = (size_t)d.n[0] * (size_t)d.n[1] * (size_t)d.n[2] * sizeof(double);
            double *const u = (double *)allocate(2 * bytes), *const v = u + bytes / sizeof *u;
            memset(u, 0, 2 * bytes);
            /* what the caller may free after pg_create is gone when the descriptor is used again */
            pg_solver *const first = create(&d);
            OK(pg_query_desc(first, &told), first);
            const pg_report x = run(&d, u, bytes, NULL);
            memset(given.coord, 0, sizeof given.coord), memset(given.air, 0, sizeof given.air);
            memset(given.weight, 0, sizeof given.weight), memset(given.conductance, 0, sizeof given.conductance);
            const pg_report y = run(&told, v, bytes, &again);
            if (memcmp(u, v, bytes) || x.accelerated != y.accelerated || !same_method(x.method, y.method) ||
                x.iterations != y.iterations || memcmp(x.history, y.history, sizeof x.history))
                fail_msg("%s, %dD: %s, %d iterations, accelerated %d, first residual %g; created again %s, %d, %d, %g",
                         descriptors[q].name, dim, x.method, x.iterations, x.accelerated, x.history[0], y.method,
                         y.iterations, y.accelerated, y.history[0]);
            assert_int_equal(told.flags, again.flags);    /* it tells the same of itself */
            assert_true(told.omega == again.omega && told.robust == again.robust && told.nu_post == again.nu_post);
            pg_destroy(first);
            free(u);
        }
}

/* Lists are told as they are now. */
static void values_that_have_changed_are_told(void **state)
{
    pg_desc d, told;
    set_box(&d, 2);
    set_mask(&d), set_values(&d);
    d.backend = backend_or_skip(state);
    pg_solver *const solver = create(&d);
    const pg_cell_value air = {{3, d.n[1] - 2, 0}, PG_Y_HIGH, 7, 0.25};
    OK(pg_set_cells(solver, &(pg_cells){.air_value = &air, .air_values = 1, .solid_fluxes = PG_NONE}), solver);
    OK(pg_query_desc(solver, &told), solver);
    assert_int_equal(told.cells.air_values, 1);
    assert_int_equal(told.cells.solid_fluxes, 0);
    assert_memory_equal(told.cells.air_value, &air, sizeof air);
    d.cells.mask = NULL;    /* stays as it is */
    OK(pg_set_cells(solver, &d.cells), solver);    /* as many as at pg_create are still possible */
    OK(pg_query_desc(solver, &told), solver);
    assert_int_equal(told.cells.air_values, 2);
    assert_memory_equal(told.cells.air_value, given.air, sizeof given.air);
    assert_memory_equal(told.cells.solid_flux, given.flux, sizeof given.flux);
    pg_destroy(solver);
}

/* ---- one rule ------------------------------------------------------------------------------------------------------ */

/* Small and large grids, on which the default is one method or another; with and without a mask. */
static void the_default_has_no_cycles_on_any_grid(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[][3] = {{8, 8, 8}, {32, 32, 1}, {40, 40, 40}, {4098, 15, 1}};
    for (size_t q = 0; q < sizeof sizes / sizeof *sizes; q++)
        for (int named = 0; named < 2; named++) {
            pg_desc d = {.backend = backend, .flags = named ? PG_VCYCLE : 0};
            memcpy(d.n, sizes[q], sizeof d.n);
            const size_t count = (size_t)d.n[0] * (size_t)d.n[1] * (size_t)d.n[2];
            double *const u = (double *)calloc(2 * count, sizeof *u), *const f = u + count;
            pg_solver *const solver = create(&d);
            f[count / 2] = 1;
            const pg_status cycle = pg_cycle(solver, u, f, 1), smooth = pg_smooth(solver, u, f, 1);
            if (named) assert_true(cycle == PG_OK && smooth == PG_OK && u[count / 2] != 0);
            if (named) { pg_destroy(solver), free(u); continue; }
            assert_int_equal(cycle, PG_ERROR_UNSUPPORTED);
            assert_int_equal(smooth, PG_ERROR_UNSUPPORTED);
            assert_non_null(strstr(pg_last_error(solver), "PG_FASTEST"));
            assert_true(u[count / 2] == 0);
            pg_destroy(solver), free(u);
        }
}

/* alpha < 0: pg_set_alpha takes it where the method that was chosen can, and says what would help where it cannot. */
static void a_negative_alpha_is_taken_or_refused_with_the_remedy(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { SIZE = 12 };
    double u[SIZE * SIZE] = {0}, f[SIZE * SIZE];
    for (int m = 0; m < SIZE * SIZE; m++) f[m] = cos(m);
    static const unsigned flags[] = {0, PG_DIRECT, PG_FMG};
    for (int q = 0; q < 3; q++)
        for (int begins = 0; begins < 2; begins++) {
            pg_desc d = {.n = {SIZE, SIZE}, .backend = backend, .alpha = begins ? -1 : 1}, told;
            set_choice(&d, flags[q]);
            pg_solver *solver;
            pg_report report;
            if (begins && flags[q] == PG_FMG) {
                assert_int_equal(pg_create(&d, &solver), PG_ERROR_ARGUMENT);
                continue;
            }
            solver = create(&d);
            OK(pg_query_desc(solver, &told), solver);
            const pg_status status = pg_set_alpha(solver, -2);
            if (told.flags & PG_DIRECT) {
                OK(status, solver);
                OK(pg_solve(solver, u, f, NULL), solver);
                OK(pg_get_report(solver, &report), solver);
                assert_int_equal(report.outcome, PG_CONVERGED);
            } else {
                assert_int_equal(status, PG_ERROR_ARGUMENT);
                assert_non_null(strstr(pg_last_error(solver), "PG_DIRECT"));
                if (q == 0) assert_non_null(strstr(pg_last_error(solver), "create the solver with such an alpha"));
            }
            pg_destroy(solver);
        }
}

/* What a refused alpha is told to do can be done: PG_DIRECT is named where pg_create takes it, and only there. */
static void a_refused_alpha_names_what_takes_it(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { SIZE = 9 };
    static unsigned char mask[SIZE * SIZE];
    static double beta[SIZE * SIZE], x[SIZE + 1];
    for (int m = 0; m < SIZE * SIZE; m++) beta[m] = 1 + m % 3;
    for (int m = 0; m <= SIZE; m++) x[m] = m + 0.1 * m * m;
    const struct { pg_desc desc; int direct; const char *says; } cases[] = {
        {{.n = {8, 8, 8}}, 1, "PG_FASTEST chose it"},
        {{.n = {40, 40, 40}}, 1, "PG_FASTEST chose it"},
        {{.n = {32, 32}}, 1, "PG_FASTEST chose it"},
        {{.n = {SIZE, SIZE}, .flags = PG_CG}, 1, "needs alpha >= 0; give PG_DIRECT in flags"},
        {{.n = {SIZE, SIZE}, .cells.mask = mask}, 0, "no method here takes alpha < 0"},
        {{.n = {SIZE, SIZE}, .cells.beta_cell = beta, .flags = PG_BICGSTAB}, 0, "no method here takes alpha < 0"},
        {{.n = {SIZE, SIZE}, .coord = {x, x}}, 0, "no method here takes alpha < 0"}};
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        pg_desc d = cases[q].desc, told;
        d.centring[0] = d.centring[1] = PG_CELL, d.backend = backend;
        pg_solver *solver = create(&d);
        OK(pg_query_desc(solver, &told), solver);
        const pg_status status = pg_set_alpha(solver, -1.5);
        if (told.flags & PG_DIRECT) {    /* chosen by the default, which leaves nothing to refuse */
            OK(status, solver);
            pg_destroy(solver);
            continue;
        }
        assert_int_equal(status, PG_ERROR_ARGUMENT);
        const char *const text = pg_last_error(solver);
        if (!strstr(text, cases[q].says) || !strstr(text, "-1.5")) fail_msg("case %zu: %s", q, text);
        pg_destroy(solver);
        solver = NULL;
        d.alpha = -1.5, set_choice(&d, PG_DIRECT);
        if ((pg_create(&d, &solver) == PG_OK) != cases[q].direct) fail_msg("case %zu: %s", q, pg_last_error(NULL));
        pg_destroy(solver);
    }
    pg_desc d = {.n = {SIZE, SIZE}, .alpha = 1, .cells.alpha_cell = beta, .backend = backend};
    set_choice(&d, PG_CG | PG_PRECOND_DIRECT);
    for (int q = 0; q < 4; q++) d.face[q].kind = PG_NEUMANN, d.centring[q / 2] = PG_CELL;
    pg_solver *const solver = create(&d);
    assert_int_equal(pg_set_alpha(solver, 0), PG_ERROR_UNSUPPORTED);
    const char *const end = strstr(pg_last_error(solver), "give alpha > 0");
    assert_true(end && !strcmp(end, "give alpha > 0"));
    pg_destroy(solver);
}

/* ---- threads ------------------------------------------------------------------------------------------------------- */

/* How many this process has; 0: nobody knows. */
static int threads_now(void)
{
    FILE *const status = fopen("/proc/self/status", "r");
    char line[200];
    int count = 0;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Threads: %d", &count) == 1) break;
    if (status) fclose(status);
    return count;
}

/* None for fewer than 32768 unknowns each, whatever is allowed. The first of all tests: OpenMP keeps what it has begun. */
static void small_problems_have_one_thread(void **state)
{
    enum { SIDE = 38, CELLS = SIDE * SIDE * SIDE };
#ifdef _OPENMP
    const int before = threads_now(), allowed = omp_get_max_threads();
    static unsigned char mask[CELLS];
    double *const u = (double *)allocate(2 * CELLS * sizeof *u), *const f = u + CELLS;
    const pg_stop stop = {.rtol = 1e-15, .max_iter = 30};    /* below the floor, which is measured then */
    if (!before) skip();
    omp_set_num_threads(6);
    for (int kind = 0; kind < 3; kind++) {
        pg_desc d = {.n = {SIDE, SIDE, SIDE}, .backend = backend_or_skip(state), .flags = kind ? PG_CG : PG_VCYCLE};
        for (int a = 0; a < 3; a++) d.centring[a] = PG_CELL;
        for (int m = 0; m < CELLS; m++) u[m] = 0, f[m] = cos(m), mask[m] = m % 7 == 3 ? PG_SOLID : PG_FLUID;
        if (kind) d.cells.mask = mask;
        if (kind == 2) set_choice(&d, PG_F32);
        pg_solver *const solver = create(&d);
        if (kind) OK(pg_set_cells(solver, &(pg_cells){.mask = mask}), solver);
        OK(pg_solve(solver, u, f, &stop), solver);
        pg_destroy(solver);
        if (threads_now() != before) fail_msg("kind %d: %d threads became %d", kind, before, threads_now());
    }
    omp_set_num_threads(allowed);
    free(u);
#else
    (void)state, (void)threads_now, skip();
#endif
}

/* ---- strides ------------------------------------------------------------------------------------------------------- */

static void strides_beyond_memory_are_refused(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int64_t most[] = {INT64_MAX, INT64_MIN, INT64_MAX / 2, INT64_MAX / 8, INT64_MAX / 64, (int64_t)1 << 57, -1};
    static unsigned char mask[POINTS];
    for (int which = 0; which < 8; which++)    /* of the mask two, of u and f three */
        for (size_t q = 0; q < sizeof most / sizeof *most; q++) {
            pg_desc d;
            set_box(&d, 3);
            for (int a = 0; a < 3; a++) d.centring[a] = PG_CELL;
            d.backend = backend, d.batch = 2, d.cells.mask = which < 2 ? mask : NULL;
            int64_t *const strides[3] = {d.cells.stride_mask, d.stride_u, d.stride_f};
            strides[which < 2 ? 0 : 1 + (which - 2) / 3][which < 2 ? which : (which - 2) % 3] = most[q];
            pg_solver *solver = NULL;
            assert_int_equal(pg_create(&d, &solver), PG_ERROR_ARGUMENT);
            const char *const names[3] = {"stride_mask", "stride_u", "stride_f"};
            if (!strstr(pg_last_error(NULL), names[which < 2 ? 0 : 1 + (which - 2) / 3])) fail_msg("%s", pg_last_error(NULL));
        }
    pg_desc flat;    /* an axis of one cell has no stride */
    set_box(&flat, 2);
    flat.centring[0] = flat.centring[1] = PG_CELL;
    flat.backend = backend, flat.cells.mask = mask, flat.cells.stride_mask[1] = INT64_MAX;
    pg_destroy(create(&flat));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_CPU(small_problems_have_one_thread),
        ON_BOTH(a_descriptor_that_is_told_creates_the_same_solver),
        ON_BOTH(values_that_have_changed_are_told),
        ON_BOTH(the_default_has_no_cycles_on_any_grid),
        ON_BOTH(a_negative_alpha_is_taken_or_refused_with_the_remedy),
        ON_BOTH(a_refused_alpha_names_what_takes_it),
        ON_BOTH(strides_beyond_memory_are_refused),
    };
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
