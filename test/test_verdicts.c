/* What a report says of the u that is returned: cases that once had a verdict, a residual or a message that was not
   true. Random problems of the same kinds are in campaign.c. */
#include "common.h"

enum { MOST = 4096 };

/* Arrays of either precision, which tests fill and read as doubles. */
typedef struct run {
    pg_desc desc;
    pg_stop stop;
    pg_report report;
    double u[MOST], f[MOST];
    double residual, mean, largest; /* of the u returned, by pg_residual */
} run;

static int cells_of(const pg_desc *d) { return d->n[0] * (d->n[1] ? d->n[1] : 1) * (d->n[2] ? d->n[2] : 1); }

/* cudaMalloc is not needed: host arrays are staged. */
static void solve(run *t)
{
    static double u[MOST], f[MOST], r[MOST];
    const int n = cells_of(&t->desc), f32 = (t->desc.flags & PG_F32) != 0;
    assert_true(n <= MOST);
    for (int i = 0; i < n; i++)
        if (f32)
            ((float *)u)[i] = (float)t->u[i], ((float *)f)[i] = (float)t->f[i];
        else
            u[i] = t->u[i], f[i] = t->f[i];
    pg_solver *const solver = create(&t->desc);
    OK(pg_solve(solver, u, f, &t->stop), solver);
    OK(pg_get_report(solver, &t->report), solver);
    OK(pg_residual(solver, u, f, r), solver);
    if (t->report.singular_components == 1 || t->report.removed_mean != 0)
        for (int i = 0; i < n; i++)
            if (!t->desc.cells.mask || t->desc.cells.mask[i] == PG_FLUID) {
                if (f32)
                    ((float *)r)[i] -= (float)t->report.removed_mean;
                else
                    r[i] -= t->report.removed_mean;
            }
    OK(pg_norm(solver, r, t->stop.norm, &t->residual), solver);
    t->mean = t->largest = 0;
    for (int i = 0; i < n; i++) {
        t->u[i] = f32 ? (double)((float *)u)[i] : u[i];
        t->mean += t->u[i] / n, t->largest = fmax(t->largest, fabs(t->u[i]));
    }
    pg_destroy(solver);
}

/* "Converged" holds of the u returned, and so does the residual that is told. */
static void assert_true_report(const run *t)
{
    const pg_report *const q = &t->report;
    const double asked = (t->desc.flags & PG_F32 ? 1e-5 : 1e-8) * q->rhs_norm;
    if (q->outcome == PG_CONVERGED && !(t->residual <= 2 * fmax(asked, q->floor)))
        fail_msg("residual %g of u: %s", t->residual, q->message);
    if (q->outcome == PG_CONVERGED && q->rhs_norm > 0 && q->residual > 0.1 * q->rhs_norm)
        fail_msg("nothing of the right-hand side is left: %s", q->message);
    if (!(fabs(t->residual - q->residual) <= 0.5 * q->residual + 2 * q->floor))
        fail_msg("residual %g of u, told %g: %s", t->residual, q->residual, q->message);
}

static void neumann(pg_desc *desc)
{
    for (int q = 0; q < 6; q++) desc->face[q].kind = PG_NEUMANN;
    for (int a = 0; a < 3; a++) desc->centring[a] = PG_CELL;
}

/* Nearly singular, in f32: the residual of a pipelined recurrence strays from that of u. */
static void no_verdict_rests_on_a_recurrence(void **state)
{
    static const unsigned char mask[8];
    static run t;
    for (int n = 2; n <= 8; n++)
        for (int power = 1; power <= 10; power += full_or_small(1, 3))
            for (int precond = 0; precond < 2; precond++) {
                memset(&t, 0, sizeof t);
                t.desc.backend = backend_or_skip(state);
                t.desc.n[0] = n, t.desc.dim = 1, t.desc.cells.mask = mask;
                set_choice(&t.desc, PG_F32 | PG_PIPECG | (precond ? PG_PRECOND_DIAGONAL : PG_PRECOND_NONE));
                t.desc.alpha = pow(10, -0.5 * power), t.desc.beta = 88;
                neumann(&t.desc);
                t.desc.face[0].value = 2.434, t.desc.face[1].value = 0.7337;
                t.stop.max_iter = 400;
                for (int i = 0; i < n; i++) t.u[i] = cos(3 * i);
                solve(&t);
                assert_true_report(&t);
            }
}

/* One guess has a large constant, or much that oscillates, in a problem whose constant nothing holds. */
static void the_constant_of_a_singular_problem_does_not_drift(void **state)
{
    static unsigned char mask[256];
    static const unsigned flags[] = {PG_FASTEST, PG_CG | PG_PRECOND_DIAGONAL, PG_PIPECG, PG_VCYCLE, PG_FMG,
                                     PG_BICGSTAB};
    static run t;
    mask[40] = mask[41] = PG_SOLID;
    for (int m = 0; m < 6; m++)
        for (int masked = 0; masked < 2; masked++)
            for (int what = 0; what < 3; what++) {
                if (small_run() && (m + masked + what) % 2) continue;
                const int n = 16;
                double mean = 0;
                rng random = {5};
                memset(&t, 0, sizeof t);
                t.desc.backend = backend_or_skip(state);
                t.desc.n[0] = t.desc.n[1] = n, set_choice(&t.desc, PG_F32 | flags[m]), t.desc.cells.mask = masked ? mask : NULL;
                neumann(&t.desc);
                if (!masked && m != 0) t.desc.coarsest = 8;
                t.stop.guess = PG_GUESS_U;
                for (int i = 0; i < n * n; i++) {
                    t.u[i] = what == 0 ? 1e4 : sin(i * i);
                    t.f[i] = (what == 2 ? 0.01 : 1) * rng_uniform(&random, -1, 1);
                    if (masked && mask[i]) t.f[i] = 0;
                    mean += t.f[i] / (n * n - 2 * masked);
                }
                for (int i = 0; i < n * n; i++)
                    if (!masked || !mask[i]) t.f[i] -= mean;
                solve(&t);
                assert_true_report(&t);
                if (t.report.outcome != PG_CONVERGED || t.report.residual > 1e-4 * t.report.rhs_norm)
                    fail_msg("method %d, mask %d, guess %d: %s", m, masked, what, t.report.message);
                assert_true(fabs(t.mean) < 1e-5 * t.largest);
            }
}

/* Cells that hang on by nearly nothing and have a source: u there is huge, and the mean of all would cost other cells
   their digits. */
static void weakly_linked_cells_do_not_govern_the_mean(void **state)
{
    enum { N = 24 };
    static double open[2][N * (N + 1)];
    static float open32[2][N * (N + 1)];
    static run t;
    for (int f32 = 0; f32 < 2; f32++)
        for (int side = 2; side < 5; side++) {
            const double least = f32 ? 1e-6 : 1e-10;
            double sum = 0;
            rng random = {7};
            memset(&t, 0, sizeof t);
            t.desc.backend = backend_or_skip(state);
            t.desc.n[0] = t.desc.n[1] = N, set_choice(&t.desc, f32 ? PG_F32 : 0);
            neumann(&t.desc);
            for (int a = 0; a < 2; a++) { /* a square of such cells */
                for (int j = 0; j < N + (a == 1); j++)
                    for (int i = 0; i < N + (a == 0); i++) {
                        const int inside = i >= 8 && i < 8 + side + (a == 0) && j >= 8 && j < 8 + side + (a == 1);
                        open[a][i + (N + (a == 0)) * j] = inside ? least : 1;
                    }
                for (int i = 0; i < N * (N + 1); i++) open32[a][i] = (float)open[a][i];
                t.desc.cells.openness[a] = f32 ? (const void *)open32[a] : (const void *)open[a];
            }
            for (int i = 0; i < N * N; i++) sum += t.f[i] = rng_uniform(&random, -1, 1) + (i == 9 + 9 * N ? 10 : 0);
            for (int i = 0; i < N * N; i++) t.f[i] -= sum / (N * N);
            solve(&t);
            assert_true_report(&t);
            assert_int_equal(t.report.outcome, PG_CONVERGED);
            if (t.report.residual > (f32 ? 3e-3 : 1e-8) * t.report.rhs_norm) fail_msg("%s", t.report.message);
        }
}

static void a_floor_above_the_right_hand_side_is_no_convergence(void **state)
{
    enum { N = 60 };
    static double edge[N + 1];
    static run t;
    memset(&t, 0, sizeof t);
    t.desc.backend = backend_or_skip(state);
    for (int i = 0; i < N; i++) edge[i + 1] = edge[i] + pow(1.4, i - N);
    for (int i = 0; i <= N; i++) edge[i] /= edge[N];
    t.desc.face[PG_X_LOW].kind = t.desc.face[PG_Y_LOW].kind = PG_NEUMANN;
    for (int a = 0; a < 2; a++) t.desc.n[a] = N, t.desc.coord[a] = edge, t.desc.centring[a] = PG_CELL;
    for (int i = 0; i < N * N; i++) t.f[i] = 1;
    t.stop.norm = PG_NORM_L2_PLAIN;
    solve(&t);
    if (!(t.report.floor > 0.1 * t.report.rhs_norm)) fail_msg("floor %g: %s", t.report.floor, t.report.message);
    assert_int_equal(t.report.outcome, PG_STAGNATED);
    assert_non_null(strstr(t.report.message, "differ by too much"));
}

/* Sums of squares are in the range of numbers whatever the norm. */
static void every_norm_takes_values_of_any_size(void **state)
{
    static const unsigned flags[] = {0, PG_CG, PG_PIPECG | PG_PRECOND_DIAGONAL, PG_BICGSTAB | PG_PRECOND_AINV,
                                     PG_PIPEBICGSTAB | PG_PRECOND_AINV};
    static const double scale[] = {0, 1e-200, 1e200, 1e250};
    static unsigned char mask[64];
    static run t;
    mask[20] = PG_SOLID;
    for (int m = 0; m < 5; m++)
        for (int norm = 0; norm <= PG_NORM_L1; norm++)
            for (int q = 0; q < 4; q++)
                for (int masked = 0; masked < 2; masked++) {
                    if (small_run() && (m + norm + q + masked) % 3) continue;
                    memset(&t, 0, sizeof t);
                    t.desc.backend = backend_or_skip(state);
                    t.desc.n[0] = t.desc.n[1] = 8, set_choice(&t.desc, flags[m]);
                    t.desc.centring[0] = t.desc.centring[1] = PG_CELL;
                    t.desc.cells.mask = masked ? mask : NULL;
                    t.stop.norm = (pg_norm_kind)norm, t.stop.guess = scale[q] == 0 ? PG_GUESS_U : PG_GUESS_ZERO;
                    for (int i = 0; i < 64; i++) t.u[i] = scale[q] == 0, t.f[i] = scale[q] * (1 + i % 3);
                    solve(&t);
                    if (t.report.outcome != PG_CONVERGED)
                        fail_msg("flags 0x%x, norm %d, f %g: %s", flags[m], norm, scale[q], t.report.message);
                }
}

static void pipelined_methods_stop_where_nothing_is_left(void **state)
{
    static const int check[] = {1, 10, 20, 30};
    static run t;
    for (int n = 1; n <= 12; n += full_or_small(1, 3))
        for (int c = 0; c < 4; c++)
            for (int pipelined = 0; pipelined < 2; pipelined++) {
                memset(&t, 0, sizeof t);
                t.desc.backend = backend_or_skip(state);
                t.desc.n[0] = n, set_choice(&t.desc, PG_PRECOND_NONE | (pipelined ? PG_PIPEBICGSTAB : PG_BICGSTAB));
                t.stop.check = check[c];
                for (int i = 0; i < n; i++) t.f[i] = 1 + 0.25 * (i % 4);
                solve(&t);
                assert_true_report(&t);
                if (t.report.outcome != PG_CONVERGED || t.report.iterations > check[c] + 2 * n)
                    fail_msg("n %d, check %d: %s", n, check[c], t.report.message);
            }
}

/* Between checks conjugate gradients may go on past the exact solution: their directions are noise then, most of all a
   constant that nothing holds. */
static void conjugate_gradients_wait_where_nothing_is_left(void **state)
{
    static const int check[] = {1, 3, 7};
    static unsigned char mask[9];
    static float beta[9];
    static run t;
    double least = 0;
    for (int n = 2; n <= 3; n++)
        for (int m = 0; m < 40; m++)
            for (int c = 0; c < 3; c++) {
                rng random = {(uint64_t)(100 * n + m)};
                memset(&t, 0, sizeof t);
                memset(mask, PG_FLUID, sizeof mask);
                mask[m % 2 ? n / 2 : n - 1] = PG_SOLID;
                t.desc.backend = backend_or_skip(state);
                t.desc.n[0] = n, t.desc.n[1] = m % 2 ? n : 1, t.desc.cells.mask = mask,
                set_choice(&t.desc, PG_F32 | (m & 2 ? PG_CG : 0));
                neumann(&t.desc);
                t.desc.cells.beta_cell = beta;
                t.stop.check = check[c];
                for (int i = 0; i < n * n; i++) t.f[i] = rng_uniform(&random, -1, 1);
                for (int i = 0; i < n * n; i++) beta[i] = (float)pow(10, rng_uniform(&random, -3, 3));
                solve(&t);
                assert_true_report(&t);
                if (c == 0) least = fmax(t.report.residual, t.report.floor) + 1e-5 * t.report.rhs_norm;
                if (t.report.outcome != PG_CONVERGED || t.report.residual > 5 * least)
                    fail_msg("n %d, check %d, method %d: %s", n, check[c], m, t.report.message);
            }
}

static int cancel_after_one(void *user, const pg_report *so_far)
{
    ++*(int *)user;
    return so_far->iterations > 0;
}
/* The last check of a problem of a batch: the others stay as they are. */
static void a_cancel_at_the_last_check_counts(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {PG_DIRECT, PG_FMG, PG_CG};
    for (int m = 0; m < 3; m++) {
        pg_desc desc = {.n = {7}, .batch = 3, .backend = backend};
        set_choice(&desc, flags[m]);
        double u[21], f[21];
        int calls = 0;
        pg_stop stop = {.monitor = cancel_after_one, .user = &calls};
        pg_report report;
        pg_solver *const solver = create(&desc);
        for (int i = 0; i < 21; i++) u[i] = 99, f[i] = 1 + i;
        if (m == 2) stop.guess = PG_GUESS_ZERO;
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_CANCELLED);
        assert_int_equal(report.problem, 0);
        assert_int_equal(calls, 2);
        for (int i = 7; i < 21; i++) assert_true(u[i] == 99);
        pg_destroy(solver);
    }
}

/* Pieces report nothing, and leave the report of the solve as it is. */
static void a_report_does_not_change_after_the_solve(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {PG_DIRECT, PG_VCYCLE, PG_CG, PG_RBGS};
    static unsigned char mask[64];
    mask[9] = PG_SOLID;
    for (int m = 0; m < 4; m++)
        for (int masked = 0; masked < (m ? 2 : 1); masked++) {
            double u[64] = {0}, f[64], r[64], number;
            pg_desc desc = {.n = {8, 8}, .centring = {PG_CELL, PG_CELL}, .backend = backend};
            set_choice(&desc, flags[m]);
            pg_report before, after;
            if (masked) desc.cells.mask = mask;
            if (m == 1 && !masked) desc.coarsest = 8;
            for (int i = 0; i < 64; i++) f[i] = 80 - i;
            pg_solver *const solver = create(&desc);
            OK(pg_solve(solver, u, f, NULL), solver);
            OK(pg_get_report(solver, &before), solver);
            for (int piece = 0; piece < 6; piece++) {
                switch (piece) {
                case 0: OK(pg_apply(solver, u, r), solver); break;
                case 1: OK(pg_residual(solver, u, f, r), solver); break;
                case 2: OK(pg_norm(solver, f, PG_NORM_L1, &number), solver); break;
                case 3: OK(pg_gradient(solver, u, 0, r, PG_AT_UNKNOWNS), solver); break;
                case 4: OK(pg_dot(solver, u, f, &number), solver); break;
                default:
                    if (m == 0 || m == 2) continue;
                    OK(pg_smooth(solver, u, f, 1), solver);
                }
                OK(pg_get_report(solver, &after), solver);
                assert_string_equal(before.message, after.message);
                assert_memory_equal(&before, &after, sizeof before);
            }
            pg_destroy(solver);
        }
}

/* Half of f is a mean that no solution takes away. */
static void a_mean_that_is_no_rounding_is_told(void **state)
{
    static unsigned char mask[64];
    static run t;
    mask[9] = PG_SOLID;
    for (int masked = 0; masked < 2; masked++)
        for (int f32 = 0; f32 < 2; f32++)
            for (int unbalanced = 0; unbalanced < 2; unbalanced++) {
                memset(&t, 0, sizeof t);
                t.desc.backend = backend_or_skip(state);
                t.desc.n[0] = t.desc.n[1] = 8, set_choice(&t.desc, f32 ? PG_F32 : 0), t.desc.cells.mask = masked ? mask : NULL;
                neumann(&t.desc);
                t.f[0] = 1, t.f[63] = unbalanced ? 0 : -1;
                solve(&t);
                assert_int_equal(t.report.outcome, PG_CONVERGED);
                assert_int_equal(strstr(t.report.message, "was subtracted") != NULL, unbalanced);
                assert_int_equal(strstr(t.report.warning, "f is not compatible") != NULL, unbalanced);
            }
}

/* A length that transforms are slow at is worth a warning, but less than an f that has no solution. */
static void a_mean_is_told_before_what_is_slow(void **state)
{
    enum { N = 251, ROWS = 241 };    /* primes */
    static double u[N * ROWS], f[N * ROWS];
    for (int unbalanced = 0; unbalanced < 2; unbalanced++) {
        pg_desc desc = {0};
        pg_solver *solver = NULL;
        pg_report report;
        const pg_stop stop = {.rtol = 1e-8};
        desc.backend = backend_or_skip(state);
        desc.n[0] = N, desc.n[1] = ROWS, desc.flags = PG_DIRECT;
        neumann(&desc);
        memset(f, 0, sizeof f);
        f[N + 1] = 1, f[N + 3] = unbalanced ? 1 : -1;
        OK(pg_create(&desc, &solver), NULL);
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(strstr(report.warning, "f is not compatible") != NULL, unbalanced);
        if (!unbalanced && desc.backend == PG_CPU) assert_non_null(strstr(report.warning, "large prime factor"));
        pg_destroy(solver);
    }
}

/* The cycle among obstacles gives its answers in fewer digits than the recurrences have. */
static void pipelined_cg_takes_the_iterations_of_cg(void **state)
{
    enum { N = 24 };
    static unsigned char mask[N * N];
    static run t;
    for (int i = 0; i < N * N; i++) mask[i] = hypot(i % N - 11.5, i / N - 11.5) < 5 ? PG_SOLID : PG_FLUID;
    int iterations[2];
    for (int pipelined = 0; pipelined < 2; pipelined++) {
        rng random = {3};
        memset(&t, 0, sizeof t);
        t.desc.backend = backend_or_skip(state);
        t.desc.n[0] = t.desc.n[1] = N, t.desc.cells.mask = mask, set_choice(&t.desc, pipelined ? PG_PIPECG : PG_CG);
        t.desc.centring[0] = t.desc.centring[1] = PG_CELL;
        t.stop.rtol = 1e-9;
        for (int i = 0; i < N * N; i++) t.f[i] = rng_uniform(&random, -1, 1);
        solve(&t);
        assert_int_equal(t.report.outcome, PG_CONVERGED);
        iterations[pipelined] = t.report.iterations;
    }
    if (iterations[1] > iterations[0] + 3) fail_msg("%d iterations, PG_CG %d", iterations[1], iterations[0]);
}

/* A mean that goes is told by what it is: a background where all is periodic; where nodes are closed perhaps a centring
   that was forgotten. A lone spacing and a guess that nobody reads are told, too. */
static void what_looks_like_a_mistake_is_warned_of(void **state)
{
    enum { SIDE = 12, POINTS = SIDE * SIDE };
    static unsigned char mask[POINTS];
    static const struct {
        const char *ends[2];
        pg_centring centring;
        double h[2];
        unsigned flags;
        int masked, guess;
        const char *says, *says_not;
    } cases[] = {
        {{"PP", "PP"}, PG_CELL, {0, 0}, 0, 0, 0, "neutralising background", "balance"},
        {{"PP", "PP"}, PG_NODE, {0, 0}, PG_CG, 0, 0, "neutralising background", "PG_CELL"},
        {{"PP", "PP"}, PG_CELL, {0, 0}, 0, 1, 0, "balance sources", "background"},
        {{"NN", "PP"}, PG_NODE, {0, 0}, 0, 0, 0, "or give PG_CELL", "background"},
        {{"NN", "NN"}, PG_NODE, {0, 0}, PG_FMG, 0, 0, "or give PG_CELL", "background"},
        {{"NN", "NN"}, PG_CELL, {0, 0}, 0, 0, 0, "balance sources", "PG_CELL"},
        {{"DD", "NN"}, PG_CELL, {0.1, 0}, 0, 0, 0, "h[0] is 0.1, but h[1] is 0", "h[2]"},
        {{"DD", "NN"}, PG_CELL, {0, 0.25}, PG_F32, 0, 0, "h[1] is 0.25, but h[0] is 0", "h[2]"},
        {{"DD", "NN"}, PG_CELL, {0.5, 0.25}, 0, 0, 0, "", "h["},
        {{"DD", "NN"}, PG_CELL, {0, 0}, PG_DIRECT, 0, 1, "PG_DIRECT needs no guess", "h["},
        {{"DD", "NN"}, PG_CELL, {0, 0}, PG_DIRECT | PG_MIXED, 0, 1, "", "guess"},
        {{"DD", "NN"}, PG_CELL, {0, 0}, 0, 0, 1, "", "guess"}};
    const pg_backend backend = backend_or_skip(state);
    for (size_t q = 0; q < sizeof cases / sizeof *cases; q++) {
        double u[POINTS] = {0}, f[POINTS] = {0};
        pg_desc d = {.n = {SIDE, SIDE}, .backend = backend};
        pg_stop stop = {.guess = cases[q].guess ? PG_GUESS_U : PG_GUESS_DEFAULT};
        pg_report report;
        for (int a = 0; a < 2; a++)
            d.centring[a] = cases[q].centring, d.h[a] = cases[q].h[a], set_ends(&d, a, cases[q].ends[a]);
        set_choice(&d, cases[q].flags);
        mask[0] = PG_SOLID;
        if (cases[q].masked) d.cells.mask = mask;
        for (int m = 0; m < POINTS; m++)
            if (d.flags & PG_F32) ((float *)f)[m] = 1.0f + (float)(m % 5);
            else f[m] = 1 + m % 5;
        pg_solver *const solver = create(&d);
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_CONVERGED);
        const int empty = !*cases[q].says;
        if (empty ? *report.warning != 0 : !strstr(report.warning, cases[q].says) || strstr(report.warning, cases[q].says_not))
            fail_msg("case %zu: %s", q, report.warning);
        assert_true(strlen(report.warning) < sizeof report.warning - 1);
        pg_destroy(solver);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(no_verdict_rests_on_a_recurrence),
        ON_BOTH(the_constant_of_a_singular_problem_does_not_drift),
        ON_BOTH(weakly_linked_cells_do_not_govern_the_mean),
        ON_BOTH(a_floor_above_the_right_hand_side_is_no_convergence),
        ON_BOTH(every_norm_takes_values_of_any_size),
        ON_BOTH(pipelined_methods_stop_where_nothing_is_left),
        ON_BOTH(conjugate_gradients_wait_where_nothing_is_left),
        ON_BOTH(a_cancel_at_the_last_check_counts),
        ON_BOTH(a_report_does_not_change_after_the_solve),
        ON_BOTH(a_mean_that_is_no_rounding_is_told),
        ON_BOTH(a_mean_is_told_before_what_is_slow),
        ON_BOTH(pipelined_cg_takes_the_iterations_of_cg),
        ON_BOTH(what_looks_like_a_mistake_is_warned_of),
    };
    return cmocka_run_group_tests_name("verdicts", tests, NULL, NULL);
}
