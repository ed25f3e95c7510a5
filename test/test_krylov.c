/* Krylov methods: what they solve, that they are what they are called, and what they refuse. */
#include "manufactured.h"

static const unsigned methods[] = {PG_CG, PG_PIPECG, PG_BICGSTAB, PG_PIPEBICGSTAB};
static const unsigned preconditioners[] = {PG_PRECOND_NONE,  PG_PRECOND_DIAGONAL, PG_PRECOND_AINV,
                                           PG_PRECOND_AINV2, PG_PRECOND_CYCLE,    PG_PRECOND_DIRECT};
enum { METHODS = sizeof methods / sizeof *methods, PRECONDITIONERS = sizeof preconditioners / sizeof *preconditioners };
static const char *const all_pairs[] = {"DD", "DN", "RD", "NR", "RR", "NN", "PP"};
enum { PAIRS = sizeof all_pairs / sizeof *all_pairs };

/* A box of mixed centring; pair q of ends along x, the next ones along y and z; strides with gaps. */
static pg_desc mixed_box(pg_backend backend, int dim, int n, int pair)
{
    pg_desc desc = {0};
    desc.backend = backend, desc.coarsest = 8;
    for (int axis = 0; axis < dim; axis++) {
        desc.n[axis] = n + axis - 1;
        desc.centring[axis] = (pair + axis) % 2 ? PG_CELL : PG_NODE;
        set_ends(&desc, axis, pair >= 5 ? all_pairs[pair] : all_pairs[(pair + axis) % 5]);
        for (int end = 0; end < 2; end++)
            if (desc.face[2 * axis + end].kind != PG_PERIODIC) desc.face[2 * axis + end].value = 0.3 * axis - 0.2 * end + 0.1;
    }
    desc.stride_u[0] = desc.n[0] + 3, desc.stride_u[1] = desc.stride_u[0] * (dim > 1 ? desc.n[1] : 1) + 5;
    return desc;
}

/* Relative, of what is left when the mean has been removed. */
static long double true_residual(const ref *p, const void *u, const void *f, long double removed)
{
    long double residual = 0, rhs = 0;
    REF_EACH(p, i, j, k) {
        const long double r = ref_residual(p, u, f, i, j, k) - removed;
        const long double b = ref_load(p, f, ref_f(p, i, j, k)) + ref_boundary(p, i, j, k) - removed;
        residual += ref_weight(p, i, j, k) * r * r;
        rhs += ref_weight(p, i, j, k) * b * b;
    }
    return sqrtl(residual / rhs);
}

static pg_report solve_random(const pg_desc *desc, const pg_stop *stop, long double *residual)
{
    ref p;
    ref_create(&p, desc);
    const size_t size = p.f32 ? sizeof(float) : sizeof(double);
    void *u = allocate(size * ref_extent_u(&p)), *f = allocate(size * ref_extent_f(&p));
    rng r = {7};
    REF_EACH(&p, i, j, k) {
        ref_store(&p, u, ref_u(&p, i, j, k), 0);
        ref_store(&p, f, ref_f(&p, i, j, k), rng_uniform(&r, -1, 1));
    }
    pg_solver *solver = create(desc);
    pg_report report;
    OK(pg_solve(solver, u, f, stop), solver);
    OK(pg_get_report(solver, &report), solver);
    *residual = true_residual(&p, u, f, report.removed_mean);
    pg_destroy(solver);
    ref_free(&p);
    free(u), free(f);
    return report;
}

/* The report's residual is that of u, though the method has it from a recurrence. */
static void they_reach_the_tolerance(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned precisions[] = {PG_F64, PG_F32, PG_MIXED};
    for (int dim = 1; dim <= 3; dim++)
        for (int pair = 0; pair < PAIRS; pair++)
            for (int precision = 0; precision < 3; precision++)
                for (int method = 0; method < METHODS * PRECONDITIONERS; method++) {
                    const unsigned precondition = preconditioners[method % PRECONDITIONERS];
                    const int in_f32 = precondition == PG_PRECOND_CYCLE ||
                                       (precondition == PG_PRECOND_DIRECT && methods[method / PRECONDITIONERS] != PG_PIPEBICGSTAB);
                    if (precisions[precision] == PG_MIXED && !in_f32) continue;
                    if (small_run() && (method + 20 * pair + 11 * precision + 14 * dim) % 21) continue;
                    pg_desc desc = mixed_box(backend, dim, dim == 3 ? full_or_small(12, 8) : full_or_small(24, 16), pair);
                    set_choice(&desc, methods[method / PRECONDITIONERS] | precondition | precisions[precision]);
                    const int f32 = precisions[precision] == PG_F32;
                    const pg_stop stop = {.rtol = f32 ? 1e-4 : 1e-10};
                    long double residual;
                    const pg_report report = solve_random(&desc, &stop, &residual);
                    if (report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(&desc), report.message);
                    if (!(residual <= (f32 ? 1.05e-4L : 1.001e-10L)))
                        fail_msg("%s: residual %.3Le of the right-hand side", describe(&desc), residual);
                    if (!(fabsl(residual * report.rhs_norm - report.residual) <= 1e-3L * report.residual + report.floor))
                        fail_msg("%s: reports a residual of %g, has %Lg", describe(&desc), report.residual,
                                 residual * report.rhs_norm);
                    if (precondition == PG_PRECOND_CYCLE && report.iterations > 12)
                        fail_msg("%s: %d iterations", describe(&desc), report.iterations);
                }
}

/* A textbook's loop on packed arrays: r = f is the first residual, the guess is 0. */
typedef struct textbook {
    ref p;
    size_t points;
    double *x, *r, *z, *d, *q, *t, *r0;
    int diagonal;
} textbook;

static void textbook_create(textbook *b, const pg_desc *desc, const double *f, int diagonal)
{
    ref_create(&b->p, desc);
    b->points = ref_points(&b->p), b->diagonal = diagonal;
    double **const all[] = {&b->x, &b->r, &b->z, &b->d, &b->q, &b->t, &b->r0};
    for (size_t q = 0; q < sizeof all / sizeof *all; q++) *all[q] = memset(allocate(b->points * sizeof(double)), 0, b->points * sizeof(double));
    memcpy(b->r, f, b->points * sizeof(double)), memcpy(b->r0, f, b->points * sizeof(double));
}

static void textbook_free(textbook *b)
{
    free(b->x), free(b->r), free(b->z), free(b->d), free(b->q), free(b->t), free(b->r0);
    ref_free(&b->p);
}

static long double textbook_dot(const textbook *b, const double *x, const double *y)
{
    long double sum = 0;
    REF_EACH(&b->p, i, j, k) sum += ref_weight(&b->p, i, j, k) * x[ref_u(&b->p, i, j, k)] * y[ref_u(&b->p, i, j, k)];
    return sum;
}

static void textbook_apply(const textbook *b, const double *x, double *ax)
{
    REF_EACH(&b->p, i, j, k) ax[ref_u(&b->p, i, j, k)] = (double)ref_apply(&b->p, x, i, j, k);
}

static void textbook_precondition(const textbook *b, const double *r, double *z)
{
    memcpy(z, r, b->points * sizeof(double));
    if (!b->diagonal) return;
    double *one = memset(allocate(b->points * sizeof(double)), 0, b->points * sizeof(double));
    REF_EACH(&b->p, i, j, k) {
        const int64_t at = ref_u(&b->p, i, j, k);
        one[at] = 1;
        z[at] = (double)(r[at] / ref_apply(&b->p, one, i, j, k));
        one[at] = 0;
    }
    free(one);
}

static void textbook_cg(textbook *b, int steps)
{
    long double before = 0;
    for (int step = 0; step < steps; step++) {
        textbook_precondition(b, b->r, b->z);
        const long double rz = textbook_dot(b, b->r, b->z);
        for (size_t i = 0; i < b->points; i++) b->d[i] = b->z[i] + (step ? (double)(rz / before) : 0) * b->d[i];
        textbook_apply(b, b->d, b->q);
        const double alpha = (double)(rz / textbook_dot(b, b->d, b->q));
        for (size_t i = 0; i < b->points; i++) b->x[i] += alpha * b->d[i], b->r[i] -= alpha * b->q[i];
        before = rz;
    }
}

/* Preconditioned from the right. */
static void textbook_bicgstab(textbook *b, int steps)
{
    memcpy(b->d, b->r, b->points * sizeof(double));
    for (int step = 0; step < steps; step++) {
        const long double rho = textbook_dot(b, b->r0, b->r);
        textbook_precondition(b, b->d, b->z);
        textbook_apply(b, b->z, b->q);
        const double alpha = (double)(rho / textbook_dot(b, b->r0, b->q));
        for (size_t i = 0; i < b->points; i++) b->x[i] += alpha * b->z[i], b->r[i] -= alpha * b->q[i];
        textbook_precondition(b, b->r, b->z);
        textbook_apply(b, b->z, b->t);
        const double omega = (double)(textbook_dot(b, b->t, b->r) / textbook_dot(b, b->t, b->t));
        for (size_t i = 0; i < b->points; i++) b->x[i] += omega * b->z[i], b->r[i] -= omega * b->t[i];
        const double beta = (double)(textbook_dot(b, b->r0, b->r) / rho) * (alpha / omega);
        for (size_t i = 0; i < b->points; i++) b->d[i] = b->r[i] + beta * (b->d[i] - omega * b->q[i]);
    }
}

/* Iterates are those of the method as the textbook has it, in the weighted inner product; the pipelined forms' too. */
static void iterates_are_those_of_the_textbook(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { STEPS = 7 };
    for (int pair = 0; pair < 5; pair++)
        for (int method = 0; method < 2 * METHODS; method++) {
            pg_desc desc = mixed_box(backend, 3, 8, pair);
            memset(desc.stride_u, 0, sizeof desc.stride_u);
            for (int face = 0; face < 6; face++) desc.face[face].value = 0;
            set_choice(&desc, methods[method / 2] | (method % 2 ? PG_PRECOND_DIAGONAL : PG_PRECOND_NONE));
            const size_t points = (size_t)desc.n[0] * desc.n[1] * desc.n[2];
            double *u = memset(allocate(points * sizeof *u), 0, points * sizeof *u), *f = allocate(points * sizeof *f);
            rng random = {11};
            for (size_t i = 0; i < points; i++) f[i] = rng_uniform(&random, -1, 1);
            textbook book;
            textbook_create(&book, &desc, f, method % 2);
            (method / 2 < 2 ? textbook_cg : textbook_bicgstab)(&book, STEPS);
            pg_solver *solver = create(&desc);
            /* the residual is worked out from u at the last check, where u has all that BiCGStab keeps apart */
            const pg_stop stop = {.rtol = 1e-300, .max_iter = STEPS, .check = STEPS};
            OK(pg_solve(solver, u, f, &stop), solver);
            pg_report report;
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.iterations, STEPS);
            double largest = 0, difference = 0;
            for (size_t i = 0; i < points; i++) {
                largest = fmax(largest, fabs(book.x[i]));
                difference = fmax(difference, fabs(book.x[i] - u[i]));
            }
            if (!(largest > 0 && difference <= 1e-9 * largest))
                fail_msg("%s: differs by %g, of %g", describe(&desc), difference, largest);
            pg_destroy(solver);
            textbook_free(&book);
            free(u), free(f);
        }
}

/* The same u without a tolerance, where nothing is checked. */
static void without_a_tolerance_u_is_the_same(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int method = 0; method < METHODS * PRECONDITIONERS; method++) {
        pg_desc desc = mixed_box(backend, 2, 12, 1);
        set_choice(&desc, methods[method / PRECONDITIONERS] | preconditioners[method % PRECONDITIONERS]);
        ref p;
        ref_create(&p, &desc);
        const size_t bytes = sizeof(double) * ref_extent_u(&p);
        double *u[2] = {allocate(bytes), allocate(bytes)}, *f = allocate(sizeof(double) * ref_extent_f(&p));
        rng random = {5};
        memset(u[0], 0, bytes), memset(u[1], 0, bytes);
        REF_EACH(&p, i, j, k) f[ref_f(&p, i, j, k)] = rng_uniform(&random, -1, 1);
        pg_solver *solver = create(&desc);
        const pg_stop stop[2] = {{.rtol = 1e-300, .max_iter = 5, .check = 5}, {.rtol = PG_NONE, .max_iter = 5}};
        double largest = 0, difference = 0;
        for (int q = 0; q < 2; q++) OK(pg_solve(solver, u[q], f, &stop[q]), solver);
        REF_EACH(&p, i, j, k) {
            const int64_t at = ref_u(&p, i, j, k);
            largest = fmax(largest, fabs(u[0][at])), difference = fmax(difference, fabs(u[0][at] - u[1][at]));
        }
        if (!(largest > 0 && difference <= 1e-12 * largest))
            fail_msg("%s: differs by %g, of %g", describe(&desc), difference, largest);
        pg_destroy(solver);
        ref_free(&p);
        free(u[0]), free(u[1]), free(f);
    }
}

/* The pipelined forms take as many iterations and reach as small a residual. */
static void pipelined_forms_do_as_well(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int precision = 0; precision < 2; precision++)
        for (int pair = 0; pair < 2; pair++)
            for (int method = 0; method < 2 * PRECONDITIONERS; method++) {
                if (full_or_small(0, 1) && (method + pair + precision) % 7) continue;
                long double residual[2][2];
                pg_report report[2][2];
                for (int pipelined = 0; pipelined < 2; pipelined++)
                    for (int least = 0; least < 2; least++) {
                        pg_desc desc = mixed_box(backend, 3, full_or_small(17, 8), pair);
                        set_choice(&desc, methods[2 * (method / PRECONDITIONERS) + pipelined] |
                                     preconditioners[method % PRECONDITIONERS] | (precision ? PG_F32 : PG_F64));
                        const pg_stop stop = {.rtol = least ? 1e-30 : precision ? 1e-4 : 1e-8, .max_iter = 400};
                        report[pipelined][least] = solve_random(&desc, &stop, &residual[pipelined][least]);
                    }
                const int classic = report[0][0].iterations, more = report[1][0].iterations - classic;
                /* BiCGStab's residuals jump: rounding alone moves the end by tenths */
                const int allowed = method < PRECONDITIONERS ? (classic > 100 ? classic / 50 : 2) : 2 + classic / 2;
                if (report[1][0].outcome != PG_CONVERGED || abs(more) > allowed)
                    fail_msg("flags 0x%x %d: %s; classic: %s", preconditioners[method % PRECONDITIONERS], method,
                             report[1][0].message, report[0][0].message);
                if (!(residual[1][1] <= 10 * residual[0][1]))
                    fail_msg("flags 0x%x %d: %Lg is left, of the classic form %Lg",
                             preconditioners[method % PRECONDITIONERS], method, residual[1][1], residual[0][1]);
            }
}

/* A line of n unknowns has n eigenvalues: the method ends after as many steps, but for round-off. */
static void it_ends_after_as_many_steps_as_there_are_eigenvalues(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    pg_desc desc = {0};
    desc.n[0] = 24, desc.backend = backend, set_choice(&desc, PG_CG | PG_PRECOND_NONE);
    const pg_stop stop = {.rtol = 1e-11};
    long double residual;
    const pg_report report = solve_random(&desc, &stop, &residual);
    assert_int_equal(report.outcome, PG_CONVERGED);
    assert_in_range(report.iterations, 20, 26);
}

/* A right-hand side of 0, an exact guess, one unknown: nothing to divide by. */
static void nothing_to_do_is_done(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int method = 0; method < METHODS * PRECONDITIONERS; method++)
        for (int n = 1; n <= 5; n += 4) {
            pg_desc desc = {0};
            desc.n[0] = n, desc.backend = backend;
            set_choice(&desc, methods[method / PRECONDITIONERS] | preconditioners[method % PRECONDITIONERS]);
            double u[5] = {0}, f[5] = {0};
            pg_solver *solver = create(&desc);
            pg_report report;
            OK(pg_solve(solver, u, f, NULL), solver);
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.outcome, PG_CONVERGED);
            assert_int_equal(report.iterations, 0);
            const pg_stop steps = {.rtol = PG_NONE, .max_iter = 3};
            OK(pg_solve(solver, u, f, &steps), solver);
            for (int i = 0; i < n; i++) assert_true(u[i] == 0);
            f[n / 2] = 1;
            OK(pg_solve(solver, u, f, NULL), solver);
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.outcome, PG_CONVERGED);
            pg_destroy(solver);
        }
}

/* Each problem of a batch to its own tolerance: as alone. */
static void batches_are_solved_one_by_one(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 10, BATCH = 3, POINTS = N * N };
    for (int method = 0; method < METHODS * PRECONDITIONERS; method++) {
        pg_desc desc = {0};
        desc.n[0] = desc.n[1] = N, desc.backend = backend, desc.coarsest = 8;
        set_choice(&desc, methods[method / PRECONDITIONERS] | preconditioners[method % PRECONDITIONERS]);
        double u[BATCH][POINTS] = {0}, alone[BATCH][POINTS] = {0}, f[BATCH][POINTS];
        rng r = {3};
        for (int q = 0; q < BATCH; q++)
            for (int i = 0; i < POINTS; i++) f[q][i] = q == 1 ? 0 : rng_uniform(&r, -1, 1) + q;
        for (int q = 0; q < BATCH; q++) assert_int_equal(pg_solve_once(&desc, alone[q], f[q], NULL), PG_OK);
        desc.batch = BATCH;
        pg_report report;
        assert_int_equal(pg_solve_once(&desc, u[0], f[0], &report), PG_OK);
        assert_int_equal(report.outcome, PG_CONVERGED);
        if (memcmp(u, alone, sizeof u)) fail_msg("%s: a batch has other values", describe(&desc));
    }
}

/* A NaN in f is found before u is touched; a solve that is cancelled leaves what it has. */
static void outcomes_are_told(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int method = 0; method < METHODS * PRECONDITIONERS; method++) {
        pg_desc desc = {0};
        desc.n[0] = 20, desc.n[1] = 17, desc.backend = backend, desc.coarsest = 8;
        set_choice(&desc, methods[method / PRECONDITIONERS] | preconditioners[method % PRECONDITIONERS]);
        double u[340], f[340];
        for (int i = 0; i < 340; i++) u[i] = 5, f[i] = i % 7;
        f[11] = NAN;
        pg_solver *solver = create(&desc);
        pg_report report;
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_NOT_A_NUMBER);
        for (int i = 0; i < 340; i++) assert_true(u[i] == 5);
        f[11] = 1;
        const pg_stop few = {.rtol = 1e-12, .max_iter = 1};
        OK(pg_solve(solver, u, f, &few), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.iterations, 1);
        assert_true(report.outcome == PG_MAX_ITER || report.outcome == PG_CONVERGED);
        double residual;
        OK(pg_residual(solver, u, f, f), solver);
        OK(pg_norm(solver, f, PG_NORM_L2, &residual), solver);
        if (!(fabs(residual - report.residual) <= 1e-6 * report.residual + report.floor))
            fail_msg("%s: reports a residual of %g, has %g", describe(&desc), report.residual, residual);
        pg_destroy(solver);
    }
}

/* ---- PG_PRECOND_DIRECT ---- */

/* An axis of n unknowns whose intervals, and so the couplings, grow by `stretch` from one end to the other; or with a
   metric of that range, of the same box. room: for its coord, or weight and conductance. */
static void stretch_axis(pg_desc *desc, int axis, double stretch, int metric, double *room)
{
    const int n = desc->n[axis], periodic = desc->face[2 * axis].kind == PG_PERIODIC;
    if (metric) {
        for (int i = 0; i <= 2 * n; i++) {
            const double w = 1 + (stretch - 1) * (periodic ? pow(sin(PI * i / (2 * n)), 2) : i / (2.0 * n));
            room[i % 2 ? i / 2 : n + i / 2] = w;
        }
        desc->weight[axis] = room, desc->conductance[axis] = room + n;
        return;
    }
    int intervals = n;
    for (int end = 0; end < 2 && desc->centring[axis] == PG_NODE && !periodic; end++)
        intervals += desc->face[2 * axis + end].kind == PG_DIRICHLET;
    if (desc->centring[axis] == PG_NODE && !periodic) intervals--;
    room[0] = 0;
    for (int i = 0; i < intervals; i++) room[i + 1] = room[i] + pow(stretch, intervals > 1 ? (double)i / (intervals - 1) : 0);
    const double length = room[intervals];
    for (int i = 0; i <= intervals; i++) room[i] /= length;
    desc->coord[axis] = room;
}

/* A multiple of M b: the first iteration of CG from 0. */
static void first_step(pg_solver *solver, const ref *p, const double *b, double *u)
{
    const pg_stop stop = {.rtol = PG_NONE, .max_iter = 1, .guess = PG_GUESS_ZERO};
    REF_EACH(p, i, j, k) u[ref_u(p, i, j, k)] = 0;
    OK(pg_solve(solver, u, b, &stop), solver);
}

static double product(pg_solver *solver, const double *x, const double *y)
{
    double value;
    OK(pg_dot(solver, x, y, &value), solver);
    return value;
}

/* M is known from first iterations but for factors: a M x, b M y, c M (x + y). M is linear, so the third is a sum of
   the others, whose coefficients make them c M x and c M y. */
static void the_direct_preconditioner_is_self_adjoint_in_pg_dot(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    /* the exact solver, one kernel in 2D, transforms of its own and of a library; at last the axis that varies most */
    const int many = full_or_small(136, 24);
    const int sizes[][4] = {{9, 8, 7, 0},   {13, 12, 1, 1}, {32, 5, many, 2}, {many, 5, 16, 0},
                            {272, 6, 1, 1}, {5, 300, 1, 1}, {23, 1, 1, 0}};
    for (int size = 0; size < 7; size++)
        for (int pair = 0; pair < PAIRS; pair++)
            for (int kind = 0; kind < 4; kind++) {
                const int *n = sizes[size], mixed = kind == 3, dim = n[2] > 1 ? 3 : n[1] > 1 ? 2 : 1;
                if ((size + pair + kind) % full_or_small(1, 7)) continue;   /* every kind of every size */
                pg_desc desc = mixed_box(backend, dim, 8, pair);
                double room[3][2 * 300 + 2];
                for (int axis = 0; axis < dim; axis++) {
                    desc.n[axis] = n[axis];
                    for (int end = 0; end < 2; end++) desc.face[2 * axis + end].value = 0;
                    stretch_axis(&desc, axis, axis == n[3] ? 20 : 5 + axis, (kind + axis) % 2, room[axis]);
                }
                desc.stride_u[0] = n[0] + 3, desc.stride_u[1] = desc.stride_u[0] * n[1] + 5;
                memcpy(desc.stride_f, desc.stride_u, sizeof desc.stride_f);
                set_choice(&desc, PG_CG | PG_PRECOND_DIRECT | (mixed ? PG_MIXED : 0)), desc.beta = 1.7;
                pg_solver *solver = create(&desc);
                if (kind % 2) OK(pg_set_alpha(solver, desc.alpha = 30), solver);
                ref p;
                ref_create(&p, &desc);
                double *v[6];
                for (int q = 0; q < 6; q++) v[q] = memset(allocate(8 * ref_extent_u(&p)), 0, 8 * ref_extent_u(&p));
                double *const x = v[0], *const y = v[1], *const sum = v[2], *const ux = v[3], *const uy = v[4], *const us = v[5];
                rng random = {(uint64_t)(100 * size + 10 * pair + kind)};
                REF_EACH(&p, i, j, k) {
                    const int64_t at = ref_u(&p, i, j, k);
                    x[at] = rng_uniform(&random, -1, 1), y[at] = rng_uniform(&random, -1, 1);
                    us[at] = 1;
                }
                const double cx = product(solver, x, us) / product(solver, us, us), cy = product(solver, y, us) / product(solver, us, us);
                REF_EACH(&p, i, j, k) {
                    const int64_t at = ref_u(&p, i, j, k);
                    if (p.singular) x[at] -= cx, y[at] -= cy;
                    sum[at] = x[at] + y[at];
                }
                first_step(solver, &p, x, ux), first_step(solver, &p, y, uy), first_step(solver, &p, sum, us);
                const double xx = product(solver, ux, ux), xy = product(solver, ux, uy), yy = product(solver, uy, uy),
                             sx = product(solver, us, ux), sy = product(solver, us, uy), ss = product(solver, us, us),
                             gram = xx * yy - xy * xy, a = (sx * yy - sy * xy) / gram, b = (sy * xx - sx * xy) / gram;
                REF_EACH(&p, i, j, k) {
                    const int64_t at = ref_u(&p, i, j, k);
                    us[at] -= (ux[at] *= a) + (uy[at] *= b);
                }
                const double tolerance = mixed ? 1e-5 : 1e-11, left = sqrt(product(solver, us, us) / ss),
                             mx_y = product(solver, ux, y), x_my = product(solver, x, uy), mx_x = product(solver, ux, x),
                             my_y = product(solver, uy, y);
                if (!(mx_x > 0 && my_y > 0)) fail_msg("%s: not positive, %g, %g", describe(&desc), mx_x, my_y);
                if (!(left <= tolerance)) fail_msg("%s: not linear by %g", describe(&desc), left);
                if (!(fabs(mx_y - x_my) <= tolerance * sqrt(mx_x * my_y)))
                    fail_msg("%s: not self-adjoint, %.15g and %.15g of %g", describe(&desc), mx_y, x_my, sqrt(mx_x * my_y));
                pg_destroy(solver);
                ref_free(&p);
                for (int q = 0; q < 6; q++) free(v[q]);
            }
}

/* One axis, with a metric, coord or Robin ends, is eliminated, others are transformed: then M is the inverse of A, with
   the alpha of the solve. */
static void the_direct_preconditioner_is_exact_where_transforms_solve_a(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned precisions[] = {PG_F64, PG_F32, PG_MIXED};
    for (int size = 0; size < 3; size++)
        for (int pair = 0; pair < PAIRS; pair++)
            for (int way = 0; way < 3 * METHODS; way++) {
                if ((size + pair + way) % full_or_small(2, 7)) continue;
                const int n[3] = {size == 1 ? full_or_small(136, 32) : 12, size == 1 ? 9 : 14, size ? 10 : 1}, axis = (pair + way) % (size ? 3 : 2);
                double room[2 * 136 + 2];
                pg_desc desc = {.n = {n[0], n[1], n[2]}, .backend = backend, .beta = 0.4};
                for (int a = 0; a < 3; a++) {
                    desc.centring[a] = (pair + a) % 2 ? PG_CELL : PG_NODE;
                    set_ends(&desc, a, a == axis || !strchr(all_pairs[pair], 'R') ? all_pairs[pair] : "DN");
                }
                if (way % 4) stretch_axis(&desc, axis, 50, way % 4 == 1, room);
                set_choice(&desc, methods[way / 3] | PG_PRECOND_DIRECT | precisions[way % 3]);
                if (way % 3 == 2 && desc.flags & PG_PIPEBICGSTAB) continue;
                ref p;
                ref_create(&p, &desc);
                const size_t element = p.f32 ? sizeof(float) : sizeof(double);
                void *u = allocate(element * ref_points(&p)), *f = allocate(element * ref_points(&p));
                rng random = {(uint64_t)way};
                REF_EACH(&p, i, j, k) ref_store(&p, f, ref_f(&p, i, j, k), rng_uniform(&random, -1, 1));
                pg_solver *solver = create(&desc);
                for (int again = 0; again < 2; again++) {
                    const pg_stop stop = {.rtol = p.f32 ? 1e-4 : 1e-8, .guess = PG_GUESS_ZERO};
                    pg_report report;
                    if (again) OK(pg_set_alpha(solver, 300), solver);
                    OK(pg_solve(solver, u, f, &stop), solver);
                    OK(pg_get_report(solver, &report), solver);
                    if (report.outcome != PG_CONVERGED || report.iterations > (way % 3 ? 2 : 1))
                        fail_msg("%s, solve %d: %s", describe(&desc), again, report.message);
                    if (!strstr(report.method, "of A itself")) fail_msg("%s: %s", describe(&desc), report.method);
                }
                pg_destroy(solver);
                ref_free(&p);
                free(u), free(f);
            }
}

/* As many iterations as the spacings or the velocity ask for, whatever n. */
static void iterations_around_the_direct_solver(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct {
        int dim;
        double stretch, velocity;
        const char *axes;
        int cg, bicgstab;
    } cases[] = {{2, 2, 0, "uniform x", 14, 12},  {2, 10, 0, "uniform x", 34, 34},  {2, 100, 0, "uniform x", 115, 110},
                 {3, 2, 0, "uniform x, y", 19, 15}, {3, 10, 0, "uniform x, y", 85, 72}, {2, 1, 5, "velocity", 0, 14},
                 {3, 1, 5, "velocity", 0, 16},   {2, 10, 5, "velocity along y, uniform x", 0, 30}};
    static const char *const pairs[] = {"DD", "RD", "NN", "PP"};
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++)
        for (int pair = 0; pair < 4; pair++)
            for (int way = 0; way < 6; way++) {
                const int dim = cases[q].dim, n = full_or_small(dim == 2 ? (way % 2 ? 64 : 24) : way % 2 ? 20 : 10, 10);
                const int cg = way < 2 || way == 4;
                if (full_or_small(0, 1) && ((int)q + pair + way) % 7) continue;
                if (cases[q].velocity != 0 && (cg || way >= 4)) continue;
                pg_desc desc = {.backend = backend, .beta = 1};
                double room[3][2 * 64 + 2];
                for (int axis = 0; axis < dim; axis++) {
                    desc.n[axis] = n, desc.centring[axis] = way % 3 ? PG_CELL : PG_NODE;
                    desc.velocity[axis] = cases[q].velocity * (axis == 1 ? -1 : 1);
                    set_ends(&desc, axis, pairs[pair]);
                    if (cases[q].stretch > 1) stretch_axis(&desc, axis, cases[q].stretch, 0, room[axis]);
                }
                if (cases[q].velocity != 0 && pair >= 2) desc.alpha = 1;
                set_choice(&desc, PG_PRECOND_DIRECT | (cg ? PG_CG : PG_BICGSTAB) | (way >= 4 ? PG_MIXED : 0));
                const pg_stop stop = {.rtol = 1e-8};
                long double residual;
                const pg_report report = solve_random(&desc, &stop, &residual);
                const int most = cg ? cases[q].cg : cases[q].bicgstab;
                if (report.outcome != PG_CONVERGED || report.iterations > most)
                    fail_msg("%s: %s, at most %d", describe(&desc), report.message, most);
                if (cases[q].velocity == 0 && !(residual <= 1.001e-8L))    /* the reference has none */
                    fail_msg("%s: a residual of %Lg", describe(&desc), residual);
                if (!strstr(report.method, cases[q].axes)) fail_msg("%s: %s", describe(&desc), report.method);
            }
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const struct {
        unsigned flags;
        const char *word;
    } refused[] = {
        {PG_VCYCLE | PG_PRECOND_DIAGONAL, "preconditioner"}, {PG_DIRECT | PG_PRECOND_CYCLE, "preconditioner"},
        {PG_CG | PG_PRECOND_CYCLE | PG_PRECOND_NONE, "precond"}, {PG_CG | PG_MIXED | PG_PRECOND_DIAGONAL, "PG_MIXED"},
        {PG_CG | PG_PRECOND_NONE | PG_SMOOTH_JACOBI, "smoother"}, {PG_CG | PG_PRECOND_DIAGONAL | PG_SYMMETRIC, "PG_SYMMETRIC"},
        {PG_CG | PG_VCYCLE, "method"}, {PG_CG | PG_BICGSTAB, "method"}, {PG_JACOBI | PG_PRECOND_AINV, "preconditioner"},
        {PG_DIRECT | PG_PRECOND_DIRECT, "PG_DIRECT"}, {PG_FMG | PG_PRECOND_DIRECT, "preconditioner"},
        {PG_CG | PG_PRECOND_DIRECT | PG_PRECOND_CYCLE, "precond"}, {PG_CG | PG_PRECOND_DIRECT | PG_KEEP_CYCLES, "PG_KEEP_CYCLES"},
        {PG_CG | PG_PRECOND_DIRECT | PG_SMOOTH_LINES, "smoother"}, {PG_PIPEBICGSTAB | PG_PRECOND_DIRECT | PG_MIXED, "PG_PIPEBICGSTAB"}, {PG_BICGSTAB | PG_PRECOND_DIRECT | PG_SYMMETRIC, "PG_SYMMETRIC"},
        {PG_BICGSTAB | PG_MIXED | PG_PRECOND_AINV, "PG_BICGSTAB"}, {PG_PIPECG | PG_PRECOND_AINV | PG_PRECOND_AINV2, "precond"},
    };
    for (size_t q = 0; q < sizeof refused / sizeof *refused; q++) {
        pg_desc desc = {0};
        desc.n[0] = 8, desc.n[1] = 8, desc.backend = backend, set_choice(&desc, refused[q].flags);
        pg_solver *solver = NULL;
        const pg_status status = pg_create(&desc, &solver);
        if (status == PG_OK || solver || !strstr(pg_last_error(NULL), refused[q].word))
            fail_msg("flags 0x%x: status %d, \"%s\"", desc.flags, (int)status, pg_last_error(NULL));
    }
    pg_desc desc = {0};
    desc.n[0] = 8, desc.n[1] = 8, desc.backend = backend, set_choice(&desc, PG_CG);
    double u[64] = {0}, f[64] = {0};
    pg_solver *solver = create(&desc);
    assert_int_equal(pg_cycle(solver, u, f, 1), PG_ERROR_UNSUPPORTED);
    assert_non_null(strstr(pg_last_error(solver), "PG_CG"));
    assert_int_equal(pg_smooth(solver, u, f, 1), PG_ERROR_UNSUPPORTED);
    OK(pg_solve(solver, u, f, NULL), solver);
    pg_destroy(solver);
}

/* The floor is that of u, also where u is brought up to date at the end only: in f32 the default tolerance holds. */
static void floors_of_every_method(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned methods[] = {PG_CG, PG_BICGSTAB},
                          preconditioners[] = {PG_PRECOND_CYCLE, PG_PRECOND_DIAGONAL, PG_PRECOND_AINV, PG_PRECOND_NONE};
    const int n = full_or_small(63, 31);
    const size_t points = (size_t)n * (size_t)n;
    float *u = allocate(points * sizeof *u), *f = allocate(points * sizeof *f);
    for (size_t q = 0; q < 8; q++) {
        pg_desc desc = {.backend = backend, .n = {n, n}};
        set_choice(&desc, PG_F32 | methods[q / 4] | preconditioners[q % 4]);
        const pg_stop stop = {.max_iter = 1000};
        for (size_t p = 0; p < points; p++) f[p] = 1, u[p] = 0;
        pg_solver *solver = create(&desc);
        pg_report report;
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        if (report.outcome != PG_CONVERGED) fail_msg("%s: %s", describe(&desc), report.message);
        pg_destroy(solver);
    }
    free(u), free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(floors_of_every_method),
        ON_BOTH(they_reach_the_tolerance),
        ON_BOTH(iterates_are_those_of_the_textbook),
        ON_BOTH(without_a_tolerance_u_is_the_same),
        ON_BOTH(pipelined_forms_do_as_well),
        ON_BOTH(it_ends_after_as_many_steps_as_there_are_eigenvalues),
        ON_BOTH(nothing_to_do_is_done),
        ON_BOTH(batches_are_solved_one_by_one),
        ON_BOTH(outcomes_are_told),
        ON_BOTH(the_direct_preconditioner_is_self_adjoint_in_pg_dot),
        ON_BOTH(the_direct_preconditioner_is_exact_where_transforms_solve_a),
        ON_BOTH(iterations_around_the_direct_solver),
        ON_BOTH(what_cannot_be_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("Krylov methods", tests, NULL, NULL);
}
