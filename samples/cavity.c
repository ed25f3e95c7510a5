/* The lid-driven cavity: incompressible flow in the unit box, whose side at y = 1 moves along x with speed 1.

       cavity [-n CELLS] [--re RE] [-p f64|f32] [-b auto|cuda|cpu] [-o PATH] [--rtol R]
              [--solver direct|fmg|v|cg|pipecg|bicgstab|pipebicgstab] [--precond cycle|none|diagonal|ainv|ainv2]
       cavity --table [-n CELLS] [--re RE] [-s STEPS] [-p f64|f32] [-b auto|cuda|cpu] [--rtol R]

   du/dt + div(u u) = lap(u)/Re - grad p, div u = 0: staggered grid (Harlow, Welch 1965), central differences of second
   order, Adams-Bashforth in time and a projection a step (Chorin 1968), which is the solver's part: -lap p = -div(u*)/dt
   for the cells' pressure, with du/dn = 0 on all sides. Fields stay where the solver runs.

   Without --table in 2D, to the steady state, on 129^2 cells at Re 100 and 1000 unless told; then the velocities on both
   centre lines must agree with those of Ghia, Ghia, Shin (J. Comput. Phys. 48, 1982, tables I and II). With -o a picture of
   the streamlines. With --table in 3D: what a step costs with each solver, on 128^3 and 160^3 cells unless told, all from
   the same flow; the divergence after each must be below the tolerance. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "picture.h"

static const struct sample_choice
    solvers[] = {{"direct", PG_DIRECT}, {"fmg", PG_FMG}, {"v", PG_VCYCLE}, {"cg", PG_CG}, {"pipecg", PG_PIPECG},
                 {"bicgstab", PG_BICGSTAB}, {"pipebicgstab", PG_PIPEBICGSTAB}, {NULL, 0}},
    preconds[] = {{"none", PG_PRECOND_NONE}, {"diagonal", PG_PRECOND_DIAGONAL}, {"ainv", PG_PRECOND_AINV},
                  {"cycle", PG_PRECOND_CYCLE}, {"ainv2", PG_PRECOND_AINV2}, {NULL, 0}},
    precisions[] = {{"f64", PG_F64}, {"f32", PG_F32}, {NULL, 0}},
    backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};

/* What a loop over the cells needs, as it is passed to a kernel. */
struct fields {
    int dim, n[3];
    size_t stride[3];                   /* of arrays with a ring; 0 along an absent axis */
    double h, re, dt, now, before;
    void *velocity[3], *rate[3], *next[3], *p, *f;
    unsigned long long *largest;
};

#ifdef PG_SAMPLE_CUDA
#define ON_DEVICE __host__ __device__ inline
#else
#define ON_DEVICE inline
#endif

static ON_DEVICE size_t ring_index(const struct fields *g, int i, int j, int k)
{
    return (size_t)(i + 1) * g->stride[0] + (size_t)(j + 1) * g->stride[1] + (size_t)(k + 1) * g->stride[2];
}
static ON_DEVICE size_t cell_index(const struct fields *g, int i, int j, int k)
{
    return (size_t)i + (size_t)g->n[0] * ((size_t)j + (size_t)g->n[1] * (size_t)k);
}
static ON_DEVICE unsigned long long bits_of(double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#ifdef PG_SAMPLE_CUDA
static void launch(void (*kernel)(struct fields), const struct fields *g, pg_stream stream)
{
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(32, 8, 1);
    config.gridDim = dim3((unsigned)(g->n[0] + 31) / 32, (unsigned)(g->n[1] + 7) / 8, (unsigned)g->n[2]);
    config.stream = stream;
    sample_require(cudaLaunchKernelEx(&config, kernel, *g) == cudaSuccess, "a kernel launch");
}
/* Few threads find the atomic operation worth its while: what they see may be too small by then, never too large. */
#define KERNEL(body)                                                                                                     \
    static __global__ void NAME(body##_kernel)(struct fields g)                                                          \
    {                                                                                                                    \
        const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), j = (int)(blockIdx.y * blockDim.y + threadIdx.y);    \
        if (i >= g.n[0] || j >= g.n[1]) return;                                                                          \
        const unsigned long long bits = bits_of(NAME(body)(&g, i, j, (int)blockIdx.z));                                  \
        if (bits > *g.largest) atomicMax(g.largest, bits);                                                               \
    }
#define LAUNCH(body) if (memory == PG_MEM_DEVICE) { launch(NAME(body##_kernel), g, stream); return; }
#else
#define KERNEL(body)
#define LAUNCH(body)
#endif
#define LOOP(body)                                                                                                       \
    KERNEL(body)                                                                                                         \
    static void NAME(each_##body)(const struct fields *g, pg_memory memory, pg_stream stream)                            \
    {                                                                                                                    \
        (void)memory, (void)stream;                                                                                      \
        LAUNCH(body)                                                                                                     \
        const int rows = g->n[1] * g->n[2], many = rows * g->n[0] > 32768;                                               \
        unsigned long long most = *g->largest;                                                                           \
        _Pragma("omp parallel for reduction(max : most) if (many)")                                                      \
        for (int row = 0; row < rows; row++)                                                                             \
            for (int i = 0; i < g->n[0]; i++) {                                                                          \
                const unsigned long long bits = bits_of(NAME(body)(g, i, row % g->n[1], row / g->n[1]));                 \
                most = bits > most ? bits : most;                                                                        \
            }                                                                                                            \
        (void)many;                                                                                                      \
        *g->largest = most;                                                                                              \
    }

#define real double
#define NAME(x) x##_f64
#include "cavity_loops.h"
#undef real
#undef NAME
#define real float
#define NAME(x) x##_f32
#include "cavity_loops.h"
#undef real
#undef NAME

/* A flow, and the solver of its pressure. block holds all arrays, first those that the next step depends on. */
struct flow {
    struct fields g;
    pg_desc desc;
    pg_solver *solver;
    pg_stop stop;
    pg_report report;
    char *block;
    size_t element, state_bytes, bytes;
    double eps;
};
#define EACH(w, body)                                                                                                    \
    ((w)->desc.flags & PG_F32 ? each_##body##_f32 : each_##body##_f64)(&(w)->g, (w)->desc.memory, (w)->desc.stream)

static void zero(void *array, size_t bytes, const struct flow *w)
{
#ifdef PG_SAMPLE_CUDA
    if (w->desc.memory == PG_MEM_DEVICE)
        sample_require(cudaMemsetAsync(array, 0, bytes, w->desc.stream) == cudaSuccess, "cudaMemsetAsync");
#endif
    if (w->desc.memory == PG_MEM_HOST) memset(array, 0, bytes);
}

static void wait(const struct flow *w)
{
#ifdef PG_SAMPLE_CUDA
    if (w->desc.memory == PG_MEM_DEVICE)
        sample_require(cudaStreamSynchronize(w->desc.stream) == cudaSuccess, "a kernel or a copy");
#endif
    (void)w;
}

/* The largest number that the loops since the last call, or since the start, came upon. */
static double largest(struct flow *w)
{
    double value;
    wait(w);
    sample_copy(&value, w->g.largest, sizeof value, w->desc.memory);
    zero(w->g.largest, sizeof value, w);
    return value;
}

static void choose_solver(struct flow *w, unsigned method)
{
    pg_destroy(w->solver);
    w->desc.flags = (w->desc.flags & (PG_F32 | PG_F64)) | method;
    sample_check(pg_create(&w->desc, &w->solver), NULL);
}

/* Fluid at rest. Steps have nine tenths of the length at which Adams-Bashforth would be unstable for diffusion alone, and
   at most a Courant number of 0.4 with the lid's speed. */
static void flow_create(struct flow *w, int dim, int n, double re, unsigned flags, pg_backend backend, double rtol)
{
    struct fields *g = &w->g;
    memset(w, 0, sizeof *w);
    g->dim = dim, g->h = 1.0 / n, g->re = re;
    g->dt = fmin(0.4 * g->h, 0.9 * re * g->h * g->h / (4 * dim));
    g->now = g->dt;                             /* the first step has no rate of a step before it: Euler's */
    size_t ring = 1, count = 1;
    for (int a = 0; a < 3; a++) {
        g->n[a] = a < dim ? n : 1;
        g->stride[a] = a < dim ? ring : 0;
        ring *= a < dim ? (size_t)n + 2 : 1;
        count *= (size_t)g->n[a];
        w->desc.n[a] = g->n[a];
        w->desc.h[a] = g->h;
        w->desc.centring[a] = PG_CELL;
        w->desc.face[2 * a].kind = w->desc.face[2 * a + 1].kind = PG_NEUMANN;
    }
    w->desc.dim = dim;
    w->desc.flags = flags;
    w->desc.backend = backend;
    w->desc.memory = sample_memory(backend);
#ifdef PG_SAMPLE_CUDA
    if (w->desc.memory == PG_MEM_DEVICE)
        sample_require(cudaStreamCreate(&w->desc.stream) == cudaSuccess, "cudaStreamCreate");
#endif
    w->stop.rtol = flags & PG_DIRECT ? PG_NONE : rtol;
    w->stop.guess = PG_GUESS_U;                 /* the last pressure */

    w->element = flags & PG_F32 ? 4 : 8;
    w->eps = flags & PG_F32 ? 1.2e-7 : 2.2e-16;
    const size_t of_ring = (ring * w->element + 255) / 256 * 256, of_cells = (count * w->element + 255) / 256 * 256;
    w->state_bytes = 2 * (size_t)dim * of_ring + of_cells;
    w->bytes = 3 * (size_t)dim * of_ring + 2 * of_cells + 256;
    w->block = (char *)sample_alloc(w->bytes, w->desc.memory);
    zero(w->block, w->bytes, w);
    for (int a = 0; a < dim; a++) {
        g->velocity[a] = w->block + (size_t)a * of_ring;
        g->rate[a] = w->block + (size_t)(dim + a) * of_ring;
        g->next[a] = w->block + w->state_bytes + (size_t)a * of_ring;
    }
    g->p = w->block + 2 * (size_t)dim * of_ring;
    g->f = w->block + w->state_bytes + (size_t)dim * of_ring;
    g->largest = (unsigned long long *)(w->block + w->bytes - 256);
    EACH(w, correct);                           /* sets the lid in motion */
    largest(w);
    choose_solver(w, flags);
}

static void flow_free(struct flow *w)
{
    pg_destroy(w->solver);
    sample_free(w->block, w->desc.memory);
#ifdef PG_SAMPLE_CUDA
    if (w->desc.memory == PG_MEM_DEVICE) cudaStreamDestroy(w->desc.stream);
#endif
}

static void step(struct flow *w)
{
    EACH(w, predict);
    EACH(w, divergence);
    sample_check(pg_solve(w->solver, w->g.p, w->g.f, &w->stop), w->solver);
    EACH(w, correct);
    w->g.now = 1.5 * w->g.dt, w->g.before = -0.5 * w->g.dt;
}

static int solved(struct flow *w)
{
    sample_check(pg_get_report(w->solver, &w->report), w->solver);
    return w->report.outcome == PG_CONVERGED || w->report.outcome == PG_COMPLETED;
}

/* What the last step left of the divergence that it found, both by their mean squares, and the most that it may leave:
   the solver's tolerance, and that velocities, 1 at most, are rounded, 2 dim of them a cell. */
static double divergence_left(struct flow *w, double rtol, double *allowed)
{
    double before, after;
    sample_check(pg_norm(w->solver, w->g.f, PG_NORM_L2, &before), w->solver);
    struct flow now = *w;
    for (int a = 0; a < 3; a++) now.g.next[a] = now.g.velocity[a];
    EACH(&now, divergence);
    sample_check(pg_norm(w->solver, w->g.f, PG_NORM_L2, &after), w->solver);
    *allowed = rtol + 2 * w->g.dim * w->eps / (w->g.h * w->g.dt * before);
    return after / before;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ghia, Ghia, Shin: u at x = 1/2 for these y, v at y = 1/2 for these x, and both at Re 100 and 1000. The values on the
   walls are left out. */
enum { POINTS = 15 };
static const double ghia_at[2][POINTS] = {
    {0.9766, 0.9688, 0.9609, 0.9531, 0.8516, 0.7344, 0.6172, 0.5000, 0.4531, 0.2813, 0.1719, 0.1016, 0.0703, 0.0625, 0.0547},
    {0.9688, 0.9609, 0.9531, 0.9453, 0.9063, 0.8594, 0.8047, 0.5000, 0.2344, 0.2266, 0.1563, 0.0938, 0.0781, 0.0703, 0.0625}};
static const double ghia[2][2][POINTS] = {
    {{0.84123, 0.78871, 0.73722, 0.68717, 0.23151, 0.00332, -0.13641, -0.20581, -0.21090, -0.15662, -0.10150, -0.06434,
      -0.04775, -0.04192, -0.03717},
     {-0.05906, -0.07391, -0.08864, -0.10313, -0.16914, -0.22445, -0.24533, 0.05454, 0.17527, 0.17507, 0.16077, 0.12317,
      0.10890, 0.10091, 0.09233}},
    {{0.65928, 0.57492, 0.51117, 0.46604, 0.33304, 0.18719, 0.05702, -0.06080, -0.10648, -0.27805, -0.38289, -0.29730,
      -0.22220, -0.20196, -0.18109},
     {-0.21388, -0.27669, -0.33714, -0.39188, -0.51550, -0.42665, -0.31966, 0.02526, 0.32235, 0.33075, 0.37095, 0.32627,
      0.30353, 0.29012, 0.27485}}};

/* A velocity on its centre line, by the cubic through the four nearest of the n cells and the two walls. */
static double centre_line(const double *u, const struct fields *g, int axis, double s)
{
    const int n = g->n[0];
    double at[4], value[4], sum = 0;
    int first = (int)floor(s * n + 0.5) - 1;            /* point 0 is a wall, point q the middle of cell q - 1 */
    first = first < 0 ? 0 : first > n - 2 ? n - 2 : first;
    for (int q = 0; q < 4; q++) {
        const int cell = first + q - 1;
        at[q] = cell < 0 ? 0 : cell == n ? 1 : (cell + 0.5) * g->h;
        const size_t m = ring_index(g, 0, 0, 0) + (size_t)cell * g->stride[1 - axis];
        const double *low = u + m + (size_t)(n / 2) * g->stride[axis];      /* of an odd number: half a cell off */
        const double *high = u + m + (size_t)((n + 1) / 2) * g->stride[axis];
        value[q] = cell < 0 ? 0 : cell == n ? axis == 0 : (*low + *high) / 2;
    }
    for (int q = 0; q < 4; q++) {
        double weight = value[q];
        for (int r = 0; r < 4; r++) weight *= r == q ? 1 : (s - at[r]) / (at[q] - at[r]);
        sum += weight;
    }
    return sum;
}

/* Streamlines, by the cube root of the stream function, which shows the corners too, and the vortex that it is lowest in. */
static void draw(const double *u, const struct fields *g, const char *path)
{
    const int n = g->n[0], points = n + 1;
    double *psi = (double *)sample_alloc((size_t)points * (size_t)points * sizeof *psi, PG_MEM_HOST), most = 0;
    int centre = 0;
    for (int m = 0; m < points * points; m++) {
        const int i = m % points, j = m / points;
        psi[m] = j == 0 ? 0 : psi[m - points] + u[ring_index(g, i, j - 1, 0)] * g->h;
        centre = psi[m] < psi[centre] ? m : centre;
    }
    printf("main vortex: stream function %.5f at x = %.4f, y = %.4f\n", psi[centre], centre % points * g->h,
           centre / points * g->h);
    for (int m = 0; m < points * points && path; m++) most = fmax(most, fabs(psi[m] = cbrt(psi[m])));
    if (path) {
        char text[500];
        struct picture p = picture_create(600, 600);
        picture_colours(&p, psi, points, points, 1.4 * most);
        picture_lines(&p, psi, points, points, most / 12, 1.2, 0.7);
        snprintf(text, sizeof text, "%s_re%.0f", path, g->re);
        picture_write(&p, text);
        free(p.rgb);
    }
    free(psi);
}

/* Steps until velocities change by less than this a unit of time, or for so many units. */
static const double steady = 1e-5, time_limit = 300;

static int run_to_steady_state(struct flow *w, double rtol)
{
    const double began = seconds(), target = steady + 4 * w->eps / w->g.dt;     /* the rounding of a step is no change */
    const int every = 100, bar = isatty(2);
    double change = 0, first = 0, courant = 0, left, allowed;
    int steps = 0, good = 1;
    do {
        for (int s = 0; s < every - 1; s++) step(w);
        largest(w);
        step(w);
        change = largest(w) / w->g.dt;
        EACH(w, courant);
        courant = fmax(courant, largest(w));
        steps += every;
        good = solved(w) && change < 1e3;
        if (first == 0) first = change;
        if (bar) {
            sample_bar(log(first / change) / log(first / target));
            fprintf(stderr, "%d steps, change %.2e ", steps, change);
        }
    } while (good && change > target && steps * w->g.dt < time_limit);
    if (bar) fputc('\n', stderr);
    left = divergence_left(w, w->stop.rtol > 0 ? rtol : 0, &allowed);
    printf("Re %g, %d^2 cells on %s, %s: t = %.1f after %d steps of %.2e, %.2f s\n", w->g.re, w->g.n[0],
           w->report.backend == PG_CUDA ? "CUDA" : "the CPU", w->report.method, steps * w->g.dt, steps, w->g.dt,
           seconds() - began);
    printf("change %.1e a unit of time, largest Courant number %.2f, divergence %.1e of what the last step met\n", change,
           courant, left);
    if (!good) printf("the pressure or the flow: %s\n", w->report.message);
    return good && change <= target && left <= allowed;
}

static int compare(double re, int n, unsigned flags, pg_backend backend, double rtol, const char *path)
{
    struct flow w;
    flow_create(&w, 2, n, re, flags, backend, rtol);
    int good = run_to_steady_state(&w, rtol);
    const size_t count = (size_t)(n + 2) * (size_t)(n + 2);
    double *velocity = (double *)sample_alloc(count * sizeof *velocity, PG_MEM_HOST);
    for (int a = 1; a >= 0; a--) {
        const int known = re == 100 || re == 1000, table = re == 1000;
        const double bound = (table ? 0.025 : 0.01) * fmax(1, 129.0 / n * 129 / n);
        double most = 0, where = 0;
        sample_get(velocity, w.g.velocity[a], count, &w.desc);
        for (int q = 0; q < POINTS && known; q++) {
            const double off = fabs(centre_line(velocity, &w.g, a, ghia_at[a][q]) - ghia[table][a][q]);
            if (getenv("CAVITY_DEBUG")) printf("%d %.4f %.5f %.5f\n", a, ghia_at[a][q], ghia[table][a][q], centre_line(velocity, &w.g, a, ghia_at[a][q]));
            if (off > most || off != off) most = off, where = ghia_at[a][q];
        }
        if (known)
            printf("%c on the centre line: at most %.4f off, at %c = %.4f; at most %.4f are allowed\n", a ? 'v' : 'u', most,
                   a ? 'x' : 'y', where, bound);
        good = good && most <= bound;
    }
    draw(velocity, &w.g, path);
    printf("%s\n", good ? "as it should be" : "MISSED");
    free(velocity);
    flow_free(&w);
    return good;
}

/* Steps with one solver, from a flow that is given: at least one, at most so many, until so many seconds have passed. */
struct row { double iterations, ms, left, allowed; int good; };

static struct row time_steps(struct flow *w, const struct flow *start, unsigned method, int warm, int steps, double limit)
{
    struct row row = {0, 0, 0, 0, 1};
    const pg_memory way = start->desc.memory == PG_MEM_HOST ? w->desc.memory : PG_MEM_DEVICE;
    int done = 0;
    wait(start);
    sample_copy(w->block, start->block, start->state_bytes, way);
    w->g.now = start->g.now, w->g.before = start->g.before;
    choose_solver(w, method);
    for (int s = 0; s < warm; s++) step(w);
    wait(w);
    const double began = seconds();
    for (; done < steps && (done == 0 || seconds() - began < limit); done++) {
        step(w);
        row.good = solved(w) && row.good;
        row.iterations += w->report.iterations;
    }
    wait(w);
    row.ms = 1e3 * (seconds() - began) / done;
    row.iterations /= done;
    row.left = divergence_left(w, w->stop.rtol, &row.allowed);
    row.good = row.good && row.left <= row.allowed;
    return row;
}

/* Returns plain CG's row when that is the method; the other times are in its units. */
static int table(int n, double re, int steps, unsigned precision, pg_backend backend, double rtol)
{
    const int before = 20;
    struct flow start, gpu, core;
    struct row plain = {0, 0, 0, 0, 1};
    int good = 1;
    flow_create(&start, 3, n, re, precision | PG_DIRECT, backend, rtol);
    flow_create(&gpu, 3, n, re, precision | PG_FMG, backend, rtol);
    const int on_gpu = start.desc.memory == PG_MEM_DEVICE;
    for (int s = 0; s < before; s++) step(&start);
    good = solved(&start);
    printf("%d^3 cells on %s, Re %g, %s, relative tolerance %g, after %d steps of %.2e; averages of %d steps\n", n,
           on_gpu ? "CUDA" : "the CPU", re, precision & PG_F32 ? "f32" : "f64", rtol, before, start.g.dt, steps);
    printf("solver                  iterations    ms a step  %sdivergence left\n", on_gpu ? "plain CG/it  one core/it  " : "");
    for (int r = 0; r < 18; r++) {
        const struct sample_choice solver = r < 16 ? solvers[3 + r / 4] : solvers[17 - r], precond = preconds[r % 4];
        const unsigned method = solver.value | (r < 16 ? precond.value : 0);
        struct row row = time_steps(&gpu, &start, method, 1, steps, 1e9);
        if (r == 0) plain = row;
        printf("%-13s%-10s %10.1f %12.3f  ", solver.name, r < 16 ? precond.name : "", row.iterations, row.ms);
        if (on_gpu) {
            printf("%11.2f  ", plain.ms / row.ms);
#ifdef _OPENMP
            const int threads = omp_get_max_threads();
            omp_set_num_threads(1);
            flow_create(&core, 3, n, re, precision | PG_FMG, PG_CPU, rtol);
            const struct row other = time_steps(&core, &start, method, 0, steps, 2);
            flow_free(&core);
            omp_set_num_threads(threads);
            good = good && other.good;
            printf("%11.1f  ", other.ms / row.ms);
#else
            (void)core;
            printf("%11s  ", "no OpenMP");
#endif
        }
        printf("%.1e%s\n", row.left, row.good ? "" : " MISSED");
        if (!row.good) printf("    at most %.1e is allowed; the solver: %s\n", row.allowed, gpu.report.message);
        good = good && row.good;
    }
    (void)core;
    flow_free(&start);
    flow_free(&gpu);
    return good;
}

int main(int argc, char **argv)
{
    const int with_table = sample_take(&argc, argv, "--table", 1) != NULL;
    const char *solver = sample_option(&argc, argv, "--solver", with_table ? NULL : "direct");
    const char *precond = sample_option(&argc, argv, "--precond", NULL), *path = sample_option(&argc, argv, "-o", NULL);
    const unsigned precision = sample_choose(precisions, sample_option(&argc, argv, "-p", "f64"));
    const pg_backend backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    const int only = (int)sample_number(&argc, argv, "-n", 0, 8, 1024);
    const double re = sample_number(&argc, argv, "--re", 0, 1, 1e5);
    const double rtol = sample_number(&argc, argv, "--rtol", precision == PG_F32 ? 1e-3 : 1e-6, 1e-14, 0.1);
    const int steps = with_table ? (int)sample_number(&argc, argv, "-s", 10, 1, 1e6) : 0;
    if (argc > 1 || (with_table && (solver || precond || path))) {
        fprintf(stderr, "%s: not an option%s, or without its value\n",
                argc > 1 ? argv[1] : solver ? "--solver" : precond ? "--precond" : "-o", with_table ? " of --table" : "");
        puts("cavity [-n CELLS] [--re RE] [-p f64|f32] [-b auto|cuda|cpu] [--rtol R] [-o PATH]\n"
             "       [--solver direct|fmg|v|cg|pipecg|bicgstab|pipebicgstab] [--precond cycle|none|diagonal|ainv|ainv2]\n"
             "cavity --table [-n CELLS] [--re RE] [-p f64|f32] [-b auto|cuda|cpu] [--rtol R] [-s STEPS]");
        return 2;
    }
    int good = 1;
    if (with_table) {
        for (int n = only ? only : 128; n <= (only ? only : 160); n += 32)
            good = table(n, re > 0 ? re : 1000, steps, precision, backend, rtol) && good;
        return !good;
    }
    const unsigned flags = precision | sample_choose(solvers, solver) | (precond ? sample_choose(preconds, precond) : 0);
    for (int run = 0; run < (re > 0 ? 1 : 2); run++)
        good = compare(re > 0 ? re : run ? 1000 : 100, only ? only : 129, flags, backend, rtol, path) && good;
    return !good;
}
