/* How fast the residual falls per multigrid cycle: the geometric mean over the last five of fifteen cycles on A u = 0
   from a random start. The cycles are run five at a time: a singular problem gives u back with its mean removed, so that
   the constants a cycle leaves behind never hide the rest in round-off. */
#include "ref.h"

enum { CYCLES = 5, PARTS = 3 };

static double factor(const pg_desc *desc)
{
    ref p;
    ref_create(&p, desc);
    const size_t points = ref_points(&p);
    const int singular = p.singular;
    ref_free(&p);
    double *u = allocate(points * sizeof *u), *f = allocate(points * sizeof *f);
    rng r = {points};
    for (size_t i = 0; i < points; i++) u[i] = rng_uniform(&r, -1, 1), f[i] = 0;

    pg_solver *solver = NULL;
    if (pg_create(desc, &solver) != PG_OK) fail_msg("%s: %s", describe(desc), pg_last_error(NULL));
    const pg_stop stop = {.rtol = 1e-250, .relative_to_first = 1, .max_iter = CYCLES, .guess = PG_GUESS_U};
    pg_report report;
    double first, last;
    int part = 0;
    do {
        OK(pg_solve(solver, u, f, &stop), solver);
        OK(pg_get_report(solver, &report), solver);
        first = report.history[0], last = report.history[report.history_count - 1];
        /* A tiny problem is solved exactly and leaves 0, or nothing but round-off if it is singular. */
        const int round_off = singular && report.outcome == PG_STAGNATED && last <= 1e-13 * first;
        if (report.outcome != PG_MAX_ITER && report.outcome != PG_CONVERGED && !round_off)
            fail_msg("%s: %s", describe(desc), report.message);
    } while (++part < PARTS && last > 0);
    pg_destroy(solver);
    free(u), free(f);
    return last > 0 ? pow(last / first, 1.0 / (report.history_count - 1)) : 0;
}

static double worst;                /* of the test that runs */

static void must_converge(const pg_desc *desc, double bound)
{
    const double q = factor(desc);
    if (!(q <= bound))
        fail_msg("%s, h %g %g %g: factor %.3f > %.2f", describe(desc), desc->h[0], desc->h[1], desc->h[2], q, bound);
    worst = fmax(worst, q);
}

static int start(void **state)
{
    (void)state;
    worst = 0;
    return 0;
}

static int show_worst(void **state)
{
    (void)state;
    if (worst > 0) printf("# largest factor %.3f\n", worst);
    return 0;
}

static pg_desc vcycle(pg_backend backend, int nx, int ny, int nz, pg_centring centring, const char *ends)
{
    pg_desc desc = {0};
    desc.n[0] = nx, desc.n[1] = ny, desc.n[2] = nz;
    for (int axis = 0; axis < 3; axis++) desc.centring[axis] = centring, set_ends(&desc, axis, ends);
    desc.backend = backend;
    set_choice(&desc, PG_VCYCLE);
    desc.coarsest = 8;              /* small grids have levels too */
    return desc;
}

static const char *const five_pairs[] = {"DD", "DN", "NN", "PP", "DR"};

static void cubes_from_31_to_255(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const int sizes[] = {31, 32, 63, 64, 127, 128, 255};
    const int count = small_run() ? 1 : backend == PG_CUDA ? 7 : 2;
    for (int s = 0; s < count; s++)
        for (int pair = 0; pair < 5; pair++)
            for (int cell = 0; cell < 2; cell++) {
                const int n = sizes[s];
                const pg_desc desc = vcycle(backend, n, n, n, cell ? PG_CELL : PG_NODE, five_pairs[pair]);
                must_converge(&desc, 0.08);
            }
}

static void cubes_of_every_size_from_2_to_130(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    const int top = full_or_small(backend == PG_CUDA ? 130 : 40, 12);
    for (int n = 2; n <= top; n++)
        for (int pair = 0; pair < 5; pair++)
            for (int cell = 0; cell < 2; cell++) {
                const pg_desc desc = vcycle(backend, n, n, n, cell ? PG_CELL : PG_NODE, five_pairs[pair]);
                must_converge(&desc, 0.13);
            }
}

/* Of sizes from 50 on every third, on a GPU all. */
static void squares_and_slabs_of_sizes_from_2_to_130(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int n = 2; n <= 130; n += full_or_small(backend == PG_CUDA || n < 50 ? 1 : 3, 17))
        for (int pair = 0; pair < 5; pair++)
            for (int cell = 0; cell < 2; cell++) {
                const pg_centring centring = cell ? PG_CELL : PG_NODE;
                const pg_desc square = vcycle(backend, n, n, 1, centring, five_pairs[pair]);
                pg_desc slab = vcycle(backend, 8, n, 9, centring, five_pairs[pair]);
                for (int axis = 0; axis < 3; axis++) slab.h[axis] = 1;
                must_converge(&square, 0.13);
                must_converge(&slab, 0.13);
            }
}

static void lines_of_every_size_from_2_to_130(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    for (int n = 2; n <= 130; n += full_or_small(1, 17))
        for (int pair = 0; pair < 5; pair++)
            for (int cell = 0; cell < 2; cell++) {
                const pg_desc desc = vcycle(backend, n, 1, 1, cell ? PG_CELL : PG_NODE, five_pairs[pair]);
                must_converge(&desc, 0.13);
            }
}

static void random_boxes(void **state, int unit_box)
{
    const pg_backend backend = backend_or_skip(state);
    static const char *const ends[] = {"DD", "DN", "ND", "NN", "DR", "RD", "NR", "RN", "RR", "PP"};
    rng r = {12};
    for (int count = 0; count < full_or_small(500, 40); count++) {
        pg_desc desc = vcycle(backend, 1, 1, 1, PG_NODE, "DD");
        desc.dim = 3;
        for (int axis = 0; axis < 3; axis++) {
            desc.n[axis] = rng_int(&r, 1, 40);
            desc.centring[axis] = rng_int(&r, 0, 1) ? PG_CELL : PG_NODE;
            desc.h[axis] = unit_box ? 0 : 1;
            set_ends(&desc, axis, ends[rng_int(&r, 0, 9)]);
            for (int side = 0; side < 2; side++) {
                pg_face *face = &desc.face[2 * axis + side];    /* from nearly Dirichlet to nearly Neumann */
                if (face->kind == PG_ROBIN) face->b = exp(rng_uniform(&r, -7, 7));
            }
        }
        must_converge(&desc, 0.13);
    }
}

static void five_hundred_random_boxes_of_equal_spacing(void **state) { random_boxes(state, 0); }
static void five_hundred_random_grids_of_the_unit_cube(void **state) { random_boxes(state, 1); }

/* Three axes of which one or two have the larger spacing. */
static void spacing_ratios_to_1000_in_any_one_or_two_axes(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const double ratios[] = {3, 10, 100, 1000};
    const int pairs = full_or_small(5, 2), n = full_or_small(31, 15);
    for (int ratio = 0; ratio < 4; ratio++)
        for (int which = 1; which < 7; which++)
            for (int pair = 0; pair < pairs; pair++)
                for (int cell = 0; cell < 2; cell++) {
                    if (backend == PG_CPU && (ratio + which + pair + cell) % 2) continue;
                    const int m = n + cell;
                    pg_desc desc = vcycle(backend, m, m, m, cell ? PG_CELL : PG_NODE, five_pairs[pair]);
                    for (int axis = 0; axis < 3; axis++) desc.h[axis] = (which >> axis & 1 ? ratios[ratio] : 1) / n;
                    must_converge(&desc, 0.10);
                }
}

static void other_cycles_and_smoothers_converge(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned flags[] = {PG_WCYCLE, PG_VCYCLE | PG_SMOOTH_CHEBYSHEV, PG_VCYCLE | PG_SMOOTH_JACOBI,
                                     PG_VCYCLE | PG_SYMMETRIC, PG_VCYCLE | PG_SYMMETRIC | PG_SMOOTH_CHEBYSHEV,
                                     PG_VCYCLE | PG_SYMMETRIC | PG_SMOOTH_JACOBI, PG_WCYCLE | PG_SMOOTH_CHEBYSHEV};
    static const int sizes[][3] = {{31, 31, 31}, {24, 17, 40}, {63, 64, 1}, {100, 1, 1}};
    for (size_t flag = 0; flag < sizeof flags / sizeof *flags; flag++)
        for (int size = 0; size < 4; size++)
            for (int pair = 0; pair < 5; pair++)
                for (int cell = 0; cell < 2; cell++) {
                    const int *n = sizes[size];
                    if (small_run() && size == 0) continue;
                    pg_desc desc = vcycle(backend, n[0], n[1], n[2], cell ? PG_CELL : PG_NODE, five_pairs[pair]);
                    set_choice(&desc, flags[flag]);
                    must_converge(&desc, 0.5);
                }
}

/* M is one cycle on u = 0: <Mx,y> = <x,My> and <Mx,x> > 0 in the inner product of pg_dot. */
static void a_symmetric_cycle_is_symmetric_and_positive(void **state)
{
    const pg_backend backend = backend_or_skip(state);
    static const unsigned smoothers[] = {PG_SMOOTH_RBGS, PG_SMOOTH_JACOBI, PG_SMOOTH_CHEBYSHEV};
    static const char *const ends[] = {"DD", "DN", "NN", "RD", "RR", "PP"};
    static const int sizes[][3] = {{16, 15, 17}, {9, 20, 13}, {33, 31, 1}, {65, 1, 1}, {3, 2, 40}};
    rng r = {13};
    for (int smoother = 0; smoother < 3; smoother++)
        for (int size = 0; size < 5; size++)
            for (int pair = 0; pair < 6; pair++)
                for (int which = 0; which < 3; which++) {
                    const int *n = sizes[size];
                    pg_desc desc = vcycle(backend, n[0], n[1], n[2], which ? PG_CELL : PG_NODE, ends[pair]);
                    if (which == 2) desc.centring[1] = PG_NODE, set_ends(&desc, 1, ends[(pair + 1) % 6]);
                    set_choice(&desc, choice_of(&desc) | PG_SYMMETRIC | smoothers[smoother]);
                    ref p;
                    ref_create(&p, &desc);
                    const size_t points = ref_points(&p);
                    double *x[2], *m[2], dot[2][2];     /* dot[i][j] = <x_i, M x_j> */
                    pg_solver *solver = create(&desc);
                    for (int q = 0; q < 2; q++) {
                        x[q] = allocate(points * sizeof(double)), m[q] = allocate(points * sizeof(double));
                        for (size_t i = 0; i < points; i++) x[q][i] = rng_uniform(&r, -1, 1), m[q][i] = 0;
                        const double mean = p.singular ? (double)ref_mean(&p, x[q]) : 0;
                        for (size_t i = 0; i < points; i++) x[q][i] -= mean;
                        OK(pg_cycle(solver, m[q], x[q], 1), solver);
                    }
                    for (int i = 0; i < 2; i++)
                        for (int j = 0; j < 2; j++) OK(pg_dot(solver, x[i], m[j], &dot[i][j]), solver);
                    const double scale = sqrt(dot[0][0] * dot[1][1]), gap = fabs(dot[0][1] - dot[1][0]) / scale;
                    if (!(dot[0][0] > 0 && dot[1][1] > 0 && gap <= 1e-13))
                        fail_msg("%s: <x,Mx> = %g, %g, asymmetry %.1e", describe(&desc), dot[0][0], dot[1][1], gap);
                    pg_destroy(solver);
                    for (int q = 0; q < 2; q++) free(x[q]), free(m[q]);
                    ref_free(&p);
                }
}

#define FACTORS(name)                                                                                                 \
    {#name "_on_cpu", name, start, show_worst, &on_cpu}, {#name "_on_cuda", name, start, show_worst, &on_cuda}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACTORS(cubes_from_31_to_255),
        FACTORS(cubes_of_every_size_from_2_to_130),
        FACTORS(squares_and_slabs_of_sizes_from_2_to_130),
        FACTORS(lines_of_every_size_from_2_to_130),
        FACTORS(five_hundred_random_boxes_of_equal_spacing),
        FACTORS(five_hundred_random_grids_of_the_unit_cube),
        FACTORS(spacing_ratios_to_1000_in_any_one_or_two_axes),
        FACTORS(other_cycles_and_smoothers_converge),
        ON_BOTH(a_symmetric_cycle_is_symmetric_and_positive),
    };
    return cmocka_run_group_tests_name("convergence", tests, NULL, NULL);
}
