/* A first-order term: the error against smooth known solutions, the methods that solve it, what is refused. */
#include "manufactured.h"

static const char *const end_pairs[] = {"DD", "DN", "DR", "ND", "NN", "NR", "RD", "RN", "RR", "PP"};
enum { PAIRS = sizeof end_pairs / sizeof *end_pairs };

/* Pair number q along x, others along the other axes; velocities of either sign. */
static pg_desc flow(pg_backend backend, int dim, int intervals, int q, int cell, unsigned flags)
{
    pg_desc desc = {0};
    desc.backend = backend, set_choice(&desc, flags), desc.alpha = 1.5, desc.beta = 0.7;
    for (int axis = 0; axis < dim; axis++) {
        const char *ends = end_pairs[(q + 3 * axis) % PAIRS];
        desc.centring[axis] = (cell + axis) % 2 ? PG_CELL : PG_NODE;
        desc.n[axis] = desc.centring[axis] == PG_CELL || *ends == 'P'
                           ? intervals
                           : intervals + 1 - (ends[0] == 'D') - (ends[1] == 'D');
        desc.velocity[axis] = (axis + q) % 2 ? -4 - axis : 3 + axis;
        set_ends(&desc, axis, ends);
    }
    return desc;
}

static double error_of(const pg_desc *desc, int stretched, const pg_stop *stop)
{
    const int shape[3] = {stretched ? STRETCHED : PLAIN, PLAIN, stretched ? STRETCHED : PLAIN};
    manufactured m;
    manufactured_create(&m, desc, shape);
    const size_t points = ref_points(&m.p);
    double *u = memset(allocate(points * sizeof *u), 0, points * sizeof *u);
    pg_solver *solver = create(&m.desc);
    OK(pg_solve(solver, u, m.f, stop), solver);
    pg_report report;
    OK(pg_get_report(solver, &report), solver);
    if (report.outcome != PG_CONVERGED && report.outcome != PG_STAGNATED)
        fail_msg("%s: %s", describe(&m.desc), report.message);
    pg_destroy(solver);
    const double error = manufactured_error(&m, u);
    free(u);
    manufactured_free(&m);
    return error;
}

/* Central differences are of second order, upwind ones of first. */
static void the_error_falls_as_promised(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const pg_stop stop = {.rtol = small_run() ? 1e-9 : 1e-11, .max_iter = 4000};   /* far below the error either way */
    for (int dim = 1; dim <= 3; dim++)
        for (int q = 0; q < PAIRS; q++)
            for (int kind = 0; kind < 8; kind++) {
                if ((kind + q) % (dim == 1 ? full_or_small(1, 13) : dim == 2 ? full_or_small(3, 13) : full_or_small(7, 29)))
                    continue;
                const int upwind = kind >> 2, intervals = dim == 1   ? full_or_small(256, 48)
                                                          : dim == 2 ? full_or_small(40, 20)
                                                                     : full_or_small(14, 8);
                double error[2];
                for (int fine = 0; fine < 2; fine++) {
                    const pg_desc desc = flow(backend, dim, intervals << fine, q, kind & 1, upwind ? PG_UPWIND : 0);
                    error[fine] = error_of(&desc, kind >> 1 & 1, &stop);
                }
                const double slope = log2(error[0] / error[1]);
                if (!(slope >= (upwind ? 0.8 : 1.8) && slope <= (upwind ? 1.3 : 2.3)))
                    fail_msg("%dD %s kind %d: order %.2f (%g, %g)", dim, end_pairs[q], kind, slope, error[0], error[1]);
            }
}

/* All that take a velocity have the same solution. */
static void methods_agree(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {0, PG_BICGSTAB | PG_PRECOND_NONE, PG_BICGSTAB | PG_PRECOND_DIAGONAL,
                                     PG_BICGSTAB | PG_PRECOND_AINV2, PG_PIPEBICGSTAB, PG_PIPEBICGSTAB | PG_PRECOND_NONE,
                                     PG_BICGSTAB | PG_PRECOND_DIRECT, PG_PIPEBICGSTAB | PG_PRECOND_DIRECT,
                                     PG_SOR, PG_RBGS, PG_JACOBI};
    const pg_stop stop = {.rtol = 1e-10, .max_iter = 20000};
    for (int dim = 2; dim <= 3; dim++) {
        double first = 0;
        for (size_t q = 0; q < sizeof flags / sizeof *flags; q++) {
            const pg_desc desc = flow(backend, dim, full_or_small(12, 6), 4, 0, flags[q]);
            const double error = error_of(&desc, 1, &stop);
            if (q == 0) first = error;
            if (!(fabs(error - first) <= 1e-6 * first)) fail_msg("%s: %g, %g", describe(&desc), error, first);
        }
    }
}

/* The flow goes upwards where v > 0: a source spreads there, upwind to there alone without diffusion to speak of. */
static void it_flows_the_right_way(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int axis = 0; axis < 3; axis++)
        for (int sign = -1; sign <= 1; sign += 2) {
            enum { N = 9 };
            pg_desc desc = {.n = {N, N, N}, .backend = backend, .flags = PG_UPWIND, .alpha = 1, .beta = 1e-9};
            desc.velocity[axis] = 10 * sign;
            double u[N][N][N] = {0}, f[N][N][N] = {0};
            f[4][4][4] = 1;
            assert_int_equal(pg_solve_once(&desc, u, f, NULL), PG_OK);
            const int step[3] = {axis == 2 ? sign : 0, axis == 1 ? sign : 0, axis == 0 ? sign : 0};
            assert_true(u[4 + step[0]][4 + step[1]][4 + step[2]] > 1e-3);
            assert_true(fabs(u[4 - step[0]][4 - step[1]][4 - step[2]]) < 1e-6);
        }
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct {
        unsigned flags;
        double velocity, alpha;
        const char *word;
    } refused[] = {
        {PG_FMG, 1, 1, "PG_FMG"}, {PG_VCYCLE, 1, 1, "PG_VCYCLE"}, {PG_DIRECT, 1, 1, "PG_DIRECT"}, {PG_FASTEST, 1, 1, "PG_FASTEST"},
        {PG_CG, 1, 1, "PG_CG"}, {PG_CG | PG_PRECOND_DIRECT, 1, 1, "PG_CG"},
        {PG_BICGSTAB | PG_PRECOND_DIRECT | PG_MIXED, 1, 1, "PG_MIXED"}, {PG_PIPECG, 1, 1, "PG_PIPECG"}, {PG_BICGSTAB | PG_PRECOND_CYCLE, 1, 1, "PG_PRECOND_CYCLE"},
        {0, 1, 0, "alpha"}, {0, INFINITY, 1, "velocity[0]"}, {PG_JACOBI | PG_UPWIND, 0, 1, "PG_UPWIND"},
    };
    for (size_t q = 0; q < sizeof refused / sizeof *refused; q++) {
        pg_desc desc = {.n = {8, 8}, .backend = backend, .alpha = refused[q].alpha};
        set_choice(&desc, refused[q].flags);
        for (int face = 0; face < 4; face++) desc.face[face].kind = face < 2 ? PG_PERIODIC : PG_NEUMANN;
        desc.velocity[0] = refused[q].velocity;
        pg_solver *solver = NULL;
        const pg_status status = pg_create(&desc, &solver);
        if (status == PG_OK || solver || !strstr(pg_last_error(NULL), refused[q].word))
            fail_msg("case %zu: status %d, \"%s\"", q, (int)status, pg_last_error(NULL));
    }
    pg_desc desc = {.n = {8, 8}, .backend = backend, .alpha = 1, .velocity = {1}};
    for (int face = 0; face < 4; face++) desc.face[face].kind = PG_NEUMANN;
    pg_solver *solver = create(&desc);
    assert_int_equal(pg_set_alpha(solver, 0), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(solver), "velocity"));
    double u[64] = {0}, f[64] = {1};
    OK(pg_solve(solver, u, f, NULL), solver);
    pg_destroy(solver);
}

/* Residuals of BiCGStab go far up where the flow dominates, and come down again. */
static void strong_winds(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct { int dim, n; double v; } box[] = {{1, 32, 500}, {1, 64, 500}, {1, 128, 500}, {1, 256, 500},
                                                           {2, 64, 1e3}, {2, 64, 1e4}, {2, 128, 1e4}};
    for (size_t q = 0; q < (size_t)full_or_small(sizeof box / sizeof *box, 3); q++) {
        pg_desc desc = {.backend = backend, .flags = PG_UPWIND, .dim = box[q].dim};
        size_t points = 1;
        for (int axis = 0; axis < desc.dim; axis++) {
            desc.n[axis] = box[q].n, desc.centring[axis] = PG_CELL, desc.velocity[axis] = box[q].v;
            points *= (size_t)box[q].n;
        }
        desc.velocity[2] = 7;   /* of an axis that is absent: ignored */
        double *u = memset(allocate(points * sizeof *u), 0, points * sizeof *u), *f = allocate(points * sizeof *f);
        for (size_t p = 0; p < points; p++) f[p] = 1;
        pg_report report;
        OK(pg_solve_once(&desc, u, f, &report), NULL);
        if (report.outcome != PG_CONVERGED) fail_msg("%s, v = %g: %s", describe(&desc), box[q].v, report.message);
        free(u), free(f);
    }
    pg_desc still = {.backend = backend, .velocity = {0, 0, NAN}, .n = {8, 8}};
    pg_solver *solver = create(&still);
    pg_desc seen;
    OK(pg_query_desc(solver, &seen), solver);
    assert_int_equal(choice_of(&seen) & (PG_BICGSTAB | PG_PRECOND_AINV), 0);
    pg_destroy(solver);
}

/* Stommel's gyre: a boundary layer that the grid resolves costs no iterations; cells that are wider some more. */
static void a_gyre_takes_few_iterations(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { MOST = 80 };
    static double u[MOST * MOST], f[MOST * MOST];
    const int n = full_or_small(MOST, 40);
    static const struct { double cells, across; int most; } layer[] = {{25, 0, 2}, {4, 1, 25}, {0.4, 0, 20}, {0.05, 0.02, 100}};
    for (int q = 0; q < 4 * 2 * 2; q++) {
        const int upwind = q / 4 % 2, pipelined = q / 8;
        const double v = (n + 1) / layer[q % 4].cells;
        pg_desc desc = {.n = {n, n}, .velocity = {v, v * layer[q % 4].across}, .backend = backend};
        desc.flags = (upwind ? PG_UPWIND : 0) | (pipelined ? PG_PIPEBICGSTAB : PG_BICGSTAB);
        for (int m = 0; m < n * n; m++) f[m] = sin(3.14159265358979 * (m / n + 1) / (n + 1)), u[m] = 0;
        pg_report report;
        OK(pg_solve_once(&desc, u, f, &report), NULL);
        if (report.outcome != PG_CONVERGED || report.iterations > (pipelined ? 3 : 1) * layer[q % 4].most)
            fail_msg("%g cells, upwind %d: %s; %s", layer[q % 4].cells, upwind, report.message, report.method);
        assert_non_null(strstr(report.method, "PG_PRECOND_DIRECT: of A with its velocity along "));
    }
}

static int least_residual(void *least, const pg_report *so_far)
{
    if (so_far->residual < *(double *)least) *(double *)least = so_far->residual;
    return 0;
}

/* However far residuals have risen meanwhile, a solve that does not converge returns the best u that it has seen. */
static void the_best_u_is_returned(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned precond[] = {PG_PRECOND_DEFAULT, PG_PRECOND_NONE, PG_PRECOND_DIAGONAL, PG_PRECOND_AINV2};
    rng r = {5};
    int worse = 0;
    for (int count = 0; count < full_or_small(160, 10); count++) {
        static double u[24 * 24], f[24 * 24];
        const int n = rng_int(&r, 3, 24);
        pg_desc desc = {.n = {n, n}, .backend = backend, .alpha = pow(10, rng_uniform(&r, -6, 3))};
        for (int a = 0; a < 2; a++) {
            desc.velocity[a] = rng_uniform(&r, -1, 1) * pow(10, rng_uniform(&r, 0, 5));
            for (int e = 0; e < 2; e++) desc.face[2 * a + e].kind = (pg_face_kind)(count % 3 == a ? PG_PERIODIC : rng_int(&r, 0, 1));
        }
        desc.flags = (count % 2 ? PG_PIPEBICGSTAB : PG_BICGSTAB) | (rng_int(&r, 0, 1) ? PG_UPWIND : 0);
        desc.precond = (pg_precond)precond[rng_int(&r, 0, 3)];
        for (int m = 0; m < n * n; m++) u[m] = 0, f[m] = rng_uniform(&r, -1, 1);
        double least = INFINITY;
        const pg_stop stop = {.max_iter = rng_int(&r, 5, 300), .monitor = least_residual, .user = &least};
        pg_report report;
        pg_solver *solver = create(&desc);
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        pg_destroy(solver);
        worse += report.outcome != PG_CONVERGED && !(count % 2) && report.residual > 2.5 * least;
        if (report.outcome != PG_CONVERGED && report.residual > 2.5 * report.rhs_norm)
            fail_msg("%s, v %g, %g: %s", describe(&desc), desc.velocity[0], desc.velocity[1], report.message);
    }
    assert_true(20 * worse <= full_or_small(160, 10));    /* one that it had before a breakdown is lost */
}

/* A recurrence that passes round-off unnoticed, where alpha alone holds u and is small. */
static void a_small_alpha_is_solved_to_round_off(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    int number = 0;
    for (int n = 18; n <= 64; n += 46, number++)
        for (double alpha = 1e-3; alpha > 1e-14; alpha /= 100, number++)
            for (int pipelined = 0; pipelined < 2; pipelined++) {
                if (small_run() && pipelined != number % 2) continue;    /* in turn, each with either n */
                double u[64] = {0}, f[64];
                for (int i = 0; i < n; i++) f[i] = sin(7.0 * i * i) + 0.3;
                pg_desc desc = {.n = {n}, .alpha = alpha, .beta = 0.0117, .precond = PG_PRECOND_CYCLE, .backend = backend,
                                .flags = pipelined ? PG_PIPEBICGSTAB : PG_BICGSTAB};
                desc.face[0].kind = desc.face[1].kind = PG_PERIODIC;
                pg_report report;
                OK(pg_solve_once(&desc, u, f, &report), NULL);
                if (report.outcome != PG_CONVERGED) fail_msg("n %d, alpha %g: %s", n, alpha, report.message);
            }
}

/* A long time step: alpha alone holds u, and default options reach their floor. */
static void default_options_converge(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 168 };
    for (int count = 0; count < 2 * 2 * 4; count++) {
        static double u[N], f[N], x[N];
        rng r = {1};
        const int upwind = count % 2, stretched = count / 2 % 2;
        for (int i = 0; i < N; i++) {
            x[i] = i ? x[i - 1] + (stretched ? rng_uniform(&r, 1, 10) : 1) / N : 0;
            f[i] = sin(7.0 * i * i) + 0.3, u[i] = 0;
        }
        pg_desc desc = {.n = {N}, .coord = {x}, .alpha = pow(100, -1 - count / 4), .velocity = {4.4}, .backend = backend};
        desc.flags = upwind ? PG_UPWIND : 0;
        desc.face[0].kind = desc.face[1].kind = PG_NEUMANN;
        pg_report report;
        OK(pg_solve_once(&desc, u, f, &report), NULL);
        if (report.outcome != PG_CONVERGED) fail_msg("alpha %g: %s", desc.alpha, report.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(strong_winds),
        ON_BOTH(a_gyre_takes_few_iterations),
        ON_BOTH(the_best_u_is_returned),
        ON_BOTH(a_small_alpha_is_solved_to_round_off),
        ON_BOTH(default_options_converge),
        ON_BOTH(the_error_falls_as_promised),
        ON_BOTH(methods_agree),
        ON_BOTH(it_flows_the_right_way),
        ON_BOTH(what_cannot_be_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("velocity", tests, NULL, NULL);
}
