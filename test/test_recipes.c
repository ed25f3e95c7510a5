/* What the header recommends in a sentence: metrics of AXES, recipes of OBSTACLES AND COEFFICIENTS, a cycle as the
   preconditioner of a Krylov method of one's own, Crank-Nicolson, progress. */
#include "ref.h"

static pg_desc cells(pg_backend backend, int nx, int ny)
{
    pg_desc desc = {.n = {nx, ny}, .dim = ny > 0 ? 2 : 1, .centring = {PG_CELL, PG_CELL}, .backend = backend};
    return desc;
}

static pg_report solve_well(const pg_desc *desc, double *u, const double *f, double rtol)
{
    pg_solver *solver = NULL;
    pg_report report;
    const pg_stop stop = {.rtol = rtol};
    OK(pg_create(desc, &solver), NULL);
    OK(pg_solve(solver, u, f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    if (report.outcome != PG_CONVERGED) fail_msg("%s", report.message);
    pg_destroy(solver);
    return report;
}

enum { MOST = 128 };

/* -(1/r^2) d/dr (r^2 du/dr) = 6 in a ball: u = 1 - r^2, to second order, at both centrings of the walls. */
static void a_ball(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double error[2];
    for (int q = 0; q < 2; q++) {
        enum { LEAST = 32 };
        const int n = LEAST << q;
        double u[MOST] = {0}, f[MOST], w[MOST], k[MOST + 1];
        pg_desc desc = cells(backend, n, 0);
        for (int i = 0; i < n; i++) {
            const double low = (double)i / n, high = (double)(i + 1) / n;
            w[i] = (high * high * high - low * low * low) / 3 * n, f[i] = 6;    /* the mean of r^2 in the cell */
        }
        for (int i = 0; i <= n; i++) k[i] = (double)i * i / ((double)n * n);
        desc.weight[0] = w, desc.conductance[0] = k;
        solve_well(&desc, u, f, 1e-10);
        error[q] = 0;
        for (int i = 0; i < n; i++) error[q] = fmax(error[q], fabs(u[i] - 1 + pow((i + 0.5) / n, 2)));
    }
    assert_true(error[0] < 2e-3 && error[1] < error[0] / 3);
}

/* The same in r and theta: r cos(theta) is harmonic. Multiplied by r^2: w = 1, k = r^2; w = k = sin(theta). */
static void a_sphere_in_two_angles(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    double error[2];
    for (int q = 0; q < 2; q++) {
        const int n = 24 << q;
        double *u = calloc((size_t)(n * n), sizeof *u), *f = calloc((size_t)(n * n), sizeof *f);
        double k[MOST + 1], w_angle[MOST], k_angle[MOST + 1], wall[MOST];
        assert_true(u && f);
        pg_desc desc = cells(backend, n, n);
        desc.h[0] = 1.0 / n, desc.h[1] = PI / n;
        for (int i = 0; i <= n; i++) k[i] = pow((double)i / n, 2), k_angle[i] = sin(PI * i / n);
        for (int j = 0; j < n; j++) w_angle[j] = sin(PI * (j + 0.5) / n), wall[j] = cos(PI * (j + 0.5) / n);
        k_angle[0] = k_angle[n] = 0;
        desc.conductance[0] = k, desc.weight[1] = w_angle, desc.conductance[1] = k_angle;
        desc.face[PG_X_HIGH].array = wall;
        solve_well(&desc, u, f, 1e-9);
        error[q] = 0;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++)
                error[q] = fmax(error[q], fabs(u[i + n * j] - (i + 0.5) / n * cos(PI * (j + 0.5) / n)));
        free(u), free(f);
    }
    assert_true(error[0] < 5e-3 && error[1] < error[0] / 3);
}

/* 1/R down to R = 0: psi = R^2 has no source; it comes out exactly, for k[0] is what 1/R is halfway to the wall. */
static void grad_shafranov_down_to_the_axis(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int cell = 0; cell < 2; cell++) {
        enum { N = 40 };
        const double h = cell ? 1.0 / N : 1.0 / (N + 1);
        double u[N] = {0}, f[N] = {0}, w[N], k[N + 1];
        pg_desc desc = {.n = {N}, .dim = 1, .backend = backend, .centring = {cell ? PG_CELL : PG_NODE}};
        for (int i = 0; i < N; i++) w[i] = 1 / ((cell ? i + 0.5 : i + 1) * h), k[i + 1] = 1 / ((cell ? i + 1 : i + 1.5) * h);
        k[0] = cell ? 4 / h : 2 / h;
        if (cell) k[N] = 1 / (1 - h / 4);    /* halfway to the other wall, too */
        desc.weight[0] = w, desc.conductance[0] = k, desc.face[PG_X_HIGH].value = 1;
        solve_well(&desc, u, f, 1e-12);
        for (int i = 0; i < N; i++)
            if (!(fabs(u[i] - pow((cell ? i + 0.5 : i + 1) * h, 2)) < 1e-11)) fail_msg("%d: psi is %.15g", i, u[i]);
    }
}

/* beta_face / theta beside air: u = 0 a third of a cell beyond the last centre; f = 0, u = 1 at the other end. */
static void a_surface_between_centres(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 20, FLUID = 13 };
    const double h = 1.0 / N, theta = 1.0 / 3;
    double u[N] = {0}, f[N] = {0}, beta[N + 1];
    unsigned char mask[N];
    for (int i = 0; i < N; i++) mask[i] = i < FLUID ? PG_FLUID : PG_AIR;
    for (int i = 0; i <= N; i++) beta[i] = i == FLUID ? 1 / theta : 1;
    pg_desc desc = cells(backend, N, 0);
    desc.cells.mask = mask, desc.cells.beta_face[0] = beta, desc.face[PG_X_LOW].value = 1;
    solve_well(&desc, u, f, 1e-12);
    const double length = (FLUID - 0.5 + theta) * h;
    for (int i = 0; i < FLUID; i++)
        if (!(fabs(u[i] - (1 - (i + 0.5) * h / length)) < 1e-10)) fail_msg("%d: u is %.15g", i, u[i]);
}

/* Points of a node grid where u is known: cells around the nodes, air where it is. The ends of the grid are air, too. */
static void known_points_within_a_node_grid(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 15, C = N + 2 };    /* nodes inside; cells with the end points */
    double node[N * N] = {0}, f_node[N * N], cell[C * C] = {0}, f_cell[C * C] = {0};
    unsigned char mask[C * C];
    memset(mask, PG_AIR, sizeof mask);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            mask[(i + 1) + C * (j + 1)] = PG_FLUID;
            f_cell[(i + 1) + C * (j + 1)] = f_node[i + N * j] = sin(1.0 + i * j);
        }
    const pg_desc nodes = {.n = {N, N}, .backend = backend};
    solve_well(&nodes, node, f_node, 1e-12);
    pg_desc desc = cells(backend, C, C);
    desc.h[0] = desc.h[1] = 1.0 / (N + 1), desc.cells.mask = mask;
    solve_well(&desc, cell, f_cell, 1e-12);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) assert_true(fabs(cell[(i + 1) + C * (j + 1)] - node[i + N * j]) < 1e-11);
    mask[8 + C * 8] = PG_AIR;    /* a needle in the middle, at 2 volts */
    pg_cell_value volts[4] = {{{7, 8, 0}, PG_X_HIGH, 2, 0}, {{9, 8, 0}, PG_X_LOW, 2, 0}, {{8, 7, 0}, PG_Y_HIGH, 2, 0}, {{8, 9, 0}, PG_Y_LOW, 2, 0}};
    desc.cells.air_value = volts, desc.cells.air_values = 4;
    memset(f_cell, 0, sizeof f_cell), memset(cell, 0, sizeof cell);
    solve_well(&desc, cell, f_cell, 1e-12);
    assert_true(cell[7 + C * 8] > 0.8 && cell[7 + C * 8] < 2 && fabs(cell[7 + C * 8] - cell[8 + C * 9]) < 1e-10);
}

/* A conductor of beta 1e6 that floats between two plates is of one potential; its charge is f in it. */
static void a_floating_conductor(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 32 };
    double u[N * N] = {0}, f[N * N] = {0}, beta[N * N], low = INFINITY, high = -INFINITY, flux = 0, g[(N + 1) * N];
    for (int charged = 0; charged < 2; charged++) {
        for (int q = 0; q < N * N; q++) {
            const int inside = hypot(q % N - 12.5, q / N - 15.5) < 6;
            beta[q] = inside ? 1e6 : 1, f[q] = charged && q == 12 + 15 * N ? 1.0 * N * N : 0;
        }
        pg_desc desc = cells(backend, N, N);
        desc.cells.beta_cell = beta, desc.face[PG_X_HIGH].value = charged ? 0 : 1;
        desc.face[PG_Y_LOW].kind = desc.face[PG_Y_HIGH].kind = PG_NEUMANN;
        pg_solver *solver = NULL;
        OK(pg_create(&desc, &solver), NULL);
        OK(pg_solve(solver, u, f, NULL), solver);
        OK(pg_gradient(solver, u, 0, g, PG_AT_FACES), solver);
        pg_destroy(solver);
        low = INFINITY, high = -INFINITY, flux = 0;
        for (int q = 0; q < N * N; q++)
            if (beta[q] > 1) low = fmin(low, u[q]), high = fmax(high, u[q]);
        for (int j = 0; j < N; j++) flux += (g[(N + 1) * j] - g[(N + 1) * j + N]) / N;
        assert_true(high - low < 1e-5 * high && high > 0.02);
        assert_true(fabs(flux - charged) < 1e-4);    /* what flows into the walls is the charge */
    }
}

/* A sheet of charge on the face between two dielectrics, shared in proportion to beta: exact in 1D. */
static void a_sheet_of_charge(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 30, AT = 11 };
    const double h = 1.0 / N, left = 2, right = 7, sigma = 3, x = AT * h;
    double u[N] = {0}, f[N] = {0}, beta[N];
    for (int i = 0; i < N; i++) beta[i] = i < AT ? left : right;
    f[AT - 1] = sigma / h * left / (left + right), f[AT] = sigma / h * right / (left + right);
    pg_desc desc = cells(backend, N, 0);
    desc.cells.beta_cell = beta;
    solve_well(&desc, u, f, 1e-12);
    const double top = sigma / (left / x + right / (1 - x));    /* u at the sheet, 0 at both ends */
    for (int i = 0; i < N; i++) {
        const double at = (i + 0.5) * h, exact = at < x ? top * at / x : top * (1 - at) / (1 - x);
        if (!(fabs(u[i] - exact) < 1e-11)) fail_msg("%d: u is %.15g, %.15g is exact", i, u[i], exact);
    }
}

/* Faces of openness 0 let nothing through: both halves of a box are problems of their own. */
static void closed_faces(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 16 };
    double u[N * N] = {0}, f[N * N], x[(N + 1) * N], y[N * (N + 1)], g[(N + 1) * N];
    for (int q = 0; q < (N + 1) * N; q++) x[q] = q % (N + 1) == N / 2 ? 0 : 1, y[q] = 1;
    for (int q = 0; q < N * N; q++) f[q] = q % N < N / 2 ? 1 : -1;
    pg_desc desc = cells(backend, N, N);
    desc.cells.openness[0] = x, desc.cells.openness[1] = y;
    pg_solver *solver = NULL;
    OK(pg_create(&desc, &solver), NULL);
    OK(pg_solve(solver, u, f, NULL), solver);
    OK(pg_gradient(solver, u, 0, g, PG_AT_FACES), solver);
    pg_destroy(solver);
    for (int j = 0; j < N; j++) assert_true(g[(N + 1) * j + N / 2] == 0);
    for (int q = 0; q < N * N; q++) assert_true(q % N < N / 2 ? u[q] > 0 : u[q] < 0);
}

/* A tensor: -div grad u - 0.6 d2u/dxdy by conjugate gradients of one's own, preconditioned by a cycle of the library. */
enum { T = 48 };
static void apply_tensor(pg_solver *solver, const double *u, double *v)
{
    OK(pg_apply(solver, u, v), solver);
    for (int j = 0; j < T; j++)
        for (int i = 0; i < T; i++) {
            double cross = 0;
            for (int d = 0; d < 4; d++) {
                const int a = i + (d & 1 ? 1 : -1), b = j + (d & 2 ? 1 : -1);
                if (a >= 0 && a < T && b >= 0 && b < T) cross += (d == 0 || d == 3 ? 1 : -1) * u[a + T * b];
            }
            v[i + T * j] -= 0.6 * cross / 4 * (T + 1) * (T + 1);
        }
}

static void a_cycle_preconditions_a_tensor(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static double u[T * T], r[T * T], z[T * T], p[T * T], q[T * T];
    const pg_desc desc = {.n = {T, T}, .flags = PG_VCYCLE | PG_SYMMETRIC, .coarsest = 8, .backend = backend};
    pg_solver *solver = NULL;
    double rz = 0, before = 1, pq, first, now;
    int iterations = 0;
    OK(pg_create(&desc, &solver), NULL);
    for (int m = 0; m < T * T; m++) u[m] = p[m] = 0, r[m] = cos(m);
    OK(pg_norm(solver, r, PG_NORM_L2, &first), solver);
    do {
        memset(z, 0, sizeof z);
        OK(pg_cycle(solver, z, r, 1), solver);
        OK(pg_dot(solver, r, z, &rz), solver);
        for (int m = 0; m < T * T; m++) p[m] = z[m] + (iterations ? rz / before : 0) * p[m];
        apply_tensor(solver, p, q);
        OK(pg_dot(solver, p, q, &pq), solver);
        for (int m = 0; m < T * T; m++) u[m] += rz / pq * p[m], r[m] -= rz / pq * q[m];
        OK(pg_norm(solver, r, PG_NORM_L2, &now), solver);
        before = rz;
    } while (++iterations < 40 && now > 1e-9 * first);
    assert_in_range(iterations, 5, 25);
    apply_tensor(solver, u, q);
    for (int m = 0; m < T * T; m++) q[m] -= cos(m);
    OK(pg_norm(solver, q, PG_NORM_L2, &now), solver);
    assert_true(now < 1e-8 * first);
    pg_destroy(solver);
}

/* Crank-Nicolson by pg_residual: an eigenfunction shrinks by (1 - dt lambda / 2) / (1 + dt lambda / 2). */
static void crank_nicolson(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 31 };
    const double dt = 0.01, lambda = 2 * pow(2 * (N + 1) * sin(PI / 2 / (N + 1)), 2);
    double u[N * N], f[N * N] = {0}, right[N * N];
    for (int m = 0; m < N * N; m++) u[m] = sin(PI * (m % N + 1) / (N + 1)) * sin(PI * (m / N + 1) / (N + 1));
    const pg_desc desc = {.n = {N, N}, .alpha = 2 / dt, .backend = backend};
    pg_solver *solver = NULL;
    OK(pg_create(&desc, &solver), NULL);
    const double start = u[N * N / 2];
    const pg_stop stop = {.rtol = 1e-12};
    for (int step = 0; step < 10; step++) {
        OK(pg_residual(solver, u, f, right), solver);    /* 2 f - A u - (2/dt) u, f = 0 */
        for (int m = 0; m < N * N; m++) right[m] += 4 / dt * u[m];
        OK(pg_solve(solver, u, right, &stop), solver);
    }
    pg_destroy(solver);
    const double exact = start * pow((1 - dt * lambda / 2) / (1 + dt * lambda / 2), 10);
    assert_true(fabs(u[N * N / 2] - exact) < 1e-9);
}

/* One line that is written again and again, and ends with the solve. */
static void progress_is_shown(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    enum { N = 40 };
    static double u[N * N], f[N * N];
    char text[4096];
    FILE *const file = tmpfile();
    assert_non_null(file);
    for (int m = 0; m < N * N; m++) u[m] = 0, f[m] = cos(m);
    const pg_desc desc = {.n = {N, N}, .flags = PG_VCYCLE, .coarsest = 8, .backend = backend};
    const pg_stop stop = {.rtol = 1e-9, .monitor = pg_progress, .user = file};
    pg_solver *solver = NULL;
    pg_report report;
    OK(pg_create(&desc, &solver), NULL);
    OK(pg_solve(solver, u, f, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    rewind(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = 0;
    fclose(file);
    pg_destroy(solver);
    int lines = 0, ends = 0;
    for (size_t q = 0; q < length; q++) lines += text[q] == '\r', ends += text[q] == '\n';
    assert_int_equal(lines, report.history_count);
    assert_true(ends == 1 && text[length - 1] == '\n');
    const char *const last = strrchr(text, '\r');
    assert_int_equal(atoi(last + 1), report.iterations);
    assert_non_null(strstr(last, "##################"));    /* nine decades: two for each */
    assert_non_null(strstr(last, "of the right-hand side"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_ball), ON_BOTH(a_sphere_in_two_angles), ON_BOTH(grad_shafranov_down_to_the_axis),
        ON_BOTH(a_surface_between_centres), ON_BOTH(known_points_within_a_node_grid), ON_BOTH(a_floating_conductor),
        ON_BOTH(a_sheet_of_charge), ON_BOTH(closed_faces), ON_BOTH(a_cycle_preconditions_a_tensor),
        ON_BOTH(crank_nicolson), ON_BOTH(progress_is_shown)};
    return cmocka_run_group_tests_name("recipes", tests, NULL, NULL);
}
