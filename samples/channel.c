/* The pressure of a channel flow: periodic along x and y, walls across z, whose cells are small at the walls and large in
   the middle (tanh). -lap p = f with du/dn = 0 at the walls, p = cos(2 pi x) cos(4 pi y) cos(3 pi z) known.

       channel [-n CELLS] [-b auto|cuda|cpu] [--ratio R]

   Two solvers: directly (transforms along x and y, elimination along z) and by multigrid, which finds the stretched axis
   and relaxes whole lines along it. Both must agree, and the error must fall with the square of the spacing. */
#include "sample.h"

static const double pi = 3.14159265358979323846;
static const struct sample_choice backends[] = {{"auto", PG_AUTO}, {"cuda", PG_CUDA}, {"cpu", PG_CPU}, {NULL, 0}};

static double exact(double x, double y, double z) { return cos(2 * pi * x) * cos(4 * pi * y) * cos(3 * pi * z); }

/* Solves on n^3 cells with both; returns the error of the direct one, and in *apart how far they are apart. */
static double solve(int n, double ratio, pg_backend backend, double *apart)
{
    const size_t count = (size_t)n * n * n, bytes = count * sizeof(double);
    const double steep = acosh(sqrt(ratio)), square = (4 + 16 + 9) * pi * pi;
    double *edge = sample_alloc(((size_t)n + 1) * sizeof *edge, PG_MEM_HOST);
    for (int k = 0; k <= n; k++) edge[k] = 0.5 + 0.5 * tanh(steep * (2.0 * k / n - 1)) / tanh(steep);
    pg_desc desc = {0};
    for (int axis = 0; axis < 3; axis++) {
        desc.n[axis] = n;
        desc.centring[axis] = PG_CELL;
        desc.face[2 * axis].kind = desc.face[2 * axis + 1].kind = axis < 2 ? PG_PERIODIC : PG_NEUMANN;
    }
    desc.coord[2] = edge;
    desc.backend = backend;
    desc.memory = sample_memory(backend);
    double *host = sample_alloc(bytes, PG_MEM_HOST), *answer[2];
    void *u = sample_alloc(bytes, desc.memory), *f = sample_alloc(bytes, desc.memory);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++)
                host[i + (size_t)n * (j + (size_t)n * k)] =
                    square * exact((i + 0.5) / n, (j + 0.5) / n, (edge[k] + edge[k + 1]) / 2);
    sample_put(f, host, count, &desc);
    for (int method = 0; method < 2; method++) {
        desc.flags = method == 0 ? PG_DIRECT : PG_FMG;
        pg_solver *solver;
        pg_report report;
        const pg_stop stop = {.rtol = 1e-9, .guess = PG_GUESS_ZERO};
        sample_check(pg_create(&desc, &solver), NULL);
        sample_check(pg_solve(solver, u, f, &stop), solver);
        sample_check(pg_get_report(solver, &report), solver);
        printf("%4d^3 %-24s %9.3f ms, %s\n", n, method == 0 ? "direct:" : "multigrid by lines:", report.milliseconds,
               report.message);
        if (report.outcome != PG_CONVERGED) exit(1);
        pg_destroy(solver);
        answer[method] = sample_alloc(bytes, PG_MEM_HOST);
        sample_get(answer[method], u, count, &desc);
    }
    double error = 0;
    *apart = 0;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                const size_t m = i + (size_t)n * (j + (size_t)n * k);
                error = fmax(error, fabs(answer[0][m] - exact((i + 0.5) / n, (j + 0.5) / n, (edge[k] + edge[k + 1]) / 2)));
                *apart = fmax(*apart, fabs(answer[0][m] - answer[1][m]));
            }
    free(edge), free(host), free(answer[0]), free(answer[1]);
    sample_free(u, desc.memory), sample_free(f, desc.memory);
    return error;
}

int main(int argc, char **argv)
{
    const int n = atoi(sample_option(&argc, argv, "-n", "128"));
    const double ratio = atof(sample_option(&argc, argv, "--ratio", "20"));
    const pg_backend backend = (pg_backend)sample_choose(backends, sample_option(&argc, argv, "-b", "auto"));
    if (argc > 1 || n < 16 || !(ratio > 1 && ratio <= 1e4)) {
        fprintf(stderr, "usage: %s [-n CELLS, 16 or more] [-b auto|cuda|cpu] [--ratio R, above 1]\n", argv[0]);
        return 2;
    }
    double apart[2];
    const double coarse = solve(n / 2, ratio, backend, &apart[0]), fine = solve(n / 2 * 2, ratio, backend, &apart[1]);
    const double order = log2(coarse / fine);
    printf("error %.2e, with half the cells %.2e: order %.2f; the two solvers differ by %.1e\n", fine, coarse, order,
           apart[1]);
    return !(fabs(order - 2) < 0.2 && apart[0] < 1e-6 && apart[1] < 1e-6);
}
