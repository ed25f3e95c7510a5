/* A dense system A x = b, by Jacobi, Gauss-Seidel or SOR: from a file, or made from a seed. From the project's folder:

       c++ -x c++ -std=c++17 -O3 -fopenmp -c poisson_gpu.cu
       cc -O2 -I. samples/dense.c poisson_gpu.o -o dense -fopenmp -lstdc++ -lm
       ./dense --make spd -n 500 -m sor

       dense FILE | --make spd|dominant [-n N] [--seed S] [-v B] [-x X] [-o SOLUTION] [-w SYSTEM] [-m gs|jacobi|sor]
             [--backward] [--omega W] [-p f64|f32] [-b auto|cuda|cpu] [--rtol R]

   FILE     a Matrix Market file, or numbers between blanks: n, A row by row, then perhaps b, then perhaps x, the known
            solution. matrix.h reads both.
   -v, -x   files with b and with x: n numbers, or a Matrix Market file. Without b, b = A x; x is 1, 1, ... without x.
   --make   spd: symmetric and positive definite, not dominated by its diagonal: exp(-10 distance) of N random points,
            and 1 more on the diagonal. dominant: random, not symmetric; each diagonal value is 1.1 times the others
            of its row together, of either sign. x is random.
   -o, -w   write the solution, one number a line (default solution.txt), and the whole system as such a file of numbers

   The last line has iterations, time in milliseconds and the error: the largest difference from x over the largest
   x; of a b that came without x the residual over b. Known answer: x, where the system was made. */
#include "matrix.h"
#include "sample.h"

static const struct sample_choice
    methods[] = {{"gs", PG_GAUSS_SEIDEL}, {"jacobi", PG_JACOBI}, {"sor", PG_SOR}, {NULL, 0}},
    precisions[] = {{"f64", PG_F64}, {"f32", PG_F32}, {NULL, 0}},
    backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}},
    kinds[] = {{"spd", 0}, {"dominant", 1}, {NULL, 0}};

static void multiply(const struct dense *s, const double *x, double *product)
{
    for (size_t i = 0, n = (size_t)s->n; i < n; i++) {
        product[i] = 0;
        for (size_t j = 0; j < n; j++) product[i] += s->a[i * n + j] * x[j];
    }
}

static double *vector(int n) { return sample_alloc((size_t)n * sizeof(double), PG_MEM_HOST); }

static struct dense make(int dominant, int n, uint64_t seed)
{
    const size_t m = (size_t)n;
    struct dense s = {n, sample_alloc(m * m * sizeof *s.a, PG_MEM_HOST), NULL, vector(n)};
    const uint64_t at = seed * UINT64_C(1000000007);
    for (size_t i = 0; i < m; i++) {
        double sum = 0;
        for (size_t j = 0; j < m; j++) {
            double square = 0;
            for (uint64_t axis = 0; axis < 3; axis++) {     /* points of the unit cube */
                const double d = (sample_noise(at + 3 * i + axis) - sample_noise(at + 3 * j + axis)) / 2;
                square += d * d;
            }
            s.a[i * m + j] = dominant ? sample_noise(at + i * m + j) : exp(-10 * sqrt(square));
            if (i != j) sum += fabs(s.a[i * m + j]);
        }
        s.a[i * m + i] = !dominant ? 2 : (s.a[i * m + i] < 0 ? -1.1 : 1.1) * (n > 1 ? sum : 1);
        s.x[i] = sample_noise(at + m * m + i);
    }
    return s;
}

static FILE *create(const char *name)
{
    FILE *out = fopen(name, "w");
    if (out) return out;
    fprintf(stderr, "%s cannot be written\n", name);
    exit(2);
}

static void write_numbers(FILE *out, const double *value, size_t count, size_t in_a_line)
{
    for (size_t q = 0; q < count; q++) fprintf(out, "%.17g%c", value[q], (q + 1) % in_a_line ? ' ' : '\n');
}

static void check(pg_status status, const pg_solver *solver)
{
    if (status == PG_OK) return;
    fprintf(stderr, "%s: %s\n", pg_status_string(status), pg_last_error(solver));
    exit(2);
}

static pg_report solve(const struct dense *s, pg_dense_desc desc, double rtol, double *u)
{
    const pg_desc where = {.flags = desc.flags, .memory = desc.memory};
    const size_t n = (size_t)s->n, element = desc.flags & PG_F32 ? sizeof(float) : sizeof(double);
    void *a = sample_alloc(n * n * element, desc.memory), *x = sample_alloc(n * element, desc.memory),
         *f = sample_alloc(n * element, desc.memory);
    sample_put(a, s->a, n * n, &where);
    sample_put(f, s->b, n, &where);
    desc.n = s->n;
    desc.A = a;
    pg_solver *solver;
    pg_report report;
    pg_stop stop = {0};
    stop.rtol = rtol;
    stop.guess = PG_GUESS_ZERO;
    stop.check = 1;                                 /* to tell the iterations exactly; costs reading A twice */
    check(pg_dense_create(&desc, &solver), NULL);
    check(pg_solve(solver, x, f, &stop), solver);
    check(pg_get_report(solver, &report), solver);
    sample_get(u, x, n, &where);
    pg_destroy(solver);
    sample_free(a, desc.memory);
    sample_free(x, desc.memory);
    sample_free(f, desc.memory);
    return report;
}

/* The largest difference from x over the largest x, or the residual over b. */
static double error_of(const struct dense *s, const double *u, int known)
{
    double *product = vector(s->n), most = 0, size = 0;
    multiply(s, u, product);
    for (int i = 0; i < s->n; i++) {
        most = fmax(most, fabs(known ? u[i] - s->x[i] : product[i] - s->b[i]));
        size = fmax(size, fabs(known ? s->x[i] : s->b[i]));
    }
    free(product);
    return size > 0 ? most / size : most;
}

int main(int argc, char **argv)
{
    const char *kind = sample_option(&argc, argv, "--make", NULL), *b = sample_option(&argc, argv, "-v", NULL);
    const char *x = sample_option(&argc, argv, "-x", NULL), *out = sample_option(&argc, argv, "-o", "solution.txt");
    const char *save = sample_option(&argc, argv, "-w", NULL);
    const int n = (int)sample_number(&argc, argv, "-n", 200, 1, 1e6);
    const uint64_t seed = strtoull(sample_option(&argc, argv, "--seed", "1"), NULL, 10);
    pg_dense_desc desc = {0};
    desc.flags = sample_choose(methods, sample_option(&argc, argv, "-m", "gs")) |
                 sample_choose(precisions, sample_option(&argc, argv, "-p", "f64"));
    if (sample_take(&argc, argv, "--backward", 1)) desc.flags |= PG_BACKWARD;
    desc.backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    desc.omega = sample_number(&argc, argv, "--omega", 0, 0, 2);
    const double rtol = sample_number(&argc, argv, "--rtol", desc.flags & PG_F32 ? 1e-5 : 1e-10, 0, 1);
    if (argc > 2 || (argc == 2) == (kind != NULL) || n < 1 || (argc == 2 && argv[1][0] == '-')) {
        puts("dense FILE | --make spd|dominant [-n N] [--seed S] [-v B] [-x X] [-o SOLUTION] [-w SYSTEM]\n"
             "      [-m gs|jacobi|sor] [--backward] [--omega W] [-p f64|f32] [-b auto|cuda|cpu] [--rtol R]");
        return 2;
    }
    struct dense s = kind ? make(sample_choose(kinds, kind) != 0, n, seed) : dense_read(argv[1]);
    if (b) free(s.b), free(s.x), s.x = NULL, s.b = dense_vector(b, s.n);
    if (x) free(s.x), s.x = dense_vector(x, s.n);
    const int known = s.x || !s.b, made = kind && !b && !x;
    if (!s.x && !s.b) {
        s.x = vector(s.n);
        for (int i = 0; i < s.n; i++) s.x[i] = 1;
    }
    if (!s.b) multiply(&s, s.x, s.b = vector(s.n));

    double *u = vector(s.n);
    desc.memory = sample_memory(desc.backend);
    const pg_report report = solve(&s, desc, rtol, u);
    const double error = error_of(&s, u, known);
    FILE *file = create(out);
    write_numbers(file, u, (size_t)s.n, 1);
    fclose(file);
    if (save) {
        file = create(save);
        fprintf(file, "%d\n", s.n);
        write_numbers(file, s.a, (size_t)s.n * (size_t)s.n, (size_t)s.n);
        write_numbers(file, s.b, (size_t)s.n, (size_t)s.n);
        if (s.x) write_numbers(file, s.x, (size_t)s.n, (size_t)s.n);
        fclose(file);
    }
    const int good = report.outcome == PG_CONVERGED && (!made || error <= (desc.flags & PG_F32 ? 1e-3 : 1e-7));
    printf("%d unknowns on %s, %s: %s\n", s.n, report.backend == PG_CUDA ? "CUDA" : "the CPU", report.method,
           report.message);
    printf("the solution is in %s: %s\n", out, good ? "as it should be" : "MISSED");
    printf("iterations %d time %.3f error %.2e\n", report.iterations, report.milliseconds, error);
    free(s.a);
    free(s.b);
    free(s.x);
    free(u);
    return !good;
}
