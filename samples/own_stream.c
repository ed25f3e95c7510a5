/* Heat conduction on a stream, with arrays and workspace of the caller's own; a time step is one CUDA graph.

       own_stream [-n N] [-s STEPS]                          N^3 unknowns, N = 32 and 20 steps unless told

   Implicit Euler of du/dt = lap u on the unit cube with u = 0 on its sides: (1 - dt lap) u_new = u_old, so
   alpha = 1 and beta = dt. A step is "copy u to f, solve for u". On a GPU it is captured once and replayed:
   the device decides when the solve has converged, and the host waits once, after the last step. On the CPU
   the step is simply called. Known answer: sin(pi x) sin(pi y) sin(pi z) is an eigenvector of the discrete
   Laplacian, with eigenvalue lambda, and shrinks by 1 / (1 + dt lambda) a step. */
#include "sample.h"

#define CUDA(call) sample_require((call) == cudaSuccess, #call)

static const double pi = 3.14159265358979323846, dt = 0.005;

static void step(pg_solver *solver, double *u, double *f, size_t bytes, pg_memory memory, pg_stream stream)
{
#ifdef PG_SAMPLE_CUDA
    if (memory == PG_MEM_DEVICE)
        CUDA(cudaMemcpyAsync(f, u, bytes, cudaMemcpyDefault, stream));
#endif
    if (memory == PG_MEM_HOST) memcpy(f, u, bytes);
    (void)stream;

    pg_stop stop = {0};                             // the guess is the last u, as for every V-cycle solver
    stop.rtol = 1e-10;
    sample_check(pg_solve(solver, u, f, &stop), solver);
}

int main(int argc, char **argv)
{
    const int n = atoi(sample_option(&argc, argv, "-n", "32"));
    const int steps = atoi(sample_option(&argc, argv, "-s", "20"));
    if (argc > 1 || n < 1 || steps < 1) {
        puts("own_stream [-n N] [-s STEPS]");
        return 2;
    }
    const pg_memory memory = sample_memory(PG_AUTO);
    pg_stream stream = NULL;
#ifdef PG_SAMPLE_CUDA
    if (memory == PG_MEM_DEVICE) CUDA(cudaStreamCreate(&stream));
#endif

    pg_desc desc = {0};
    desc.n[0] = desc.n[1] = desc.n[2] = n;
    desc.alpha = 1;
    desc.beta = dt;
    desc.flags = PG_VCYCLE;
    desc.memory = memory;
    desc.stream = stream;
    sample_check(pg_workspace_bytes(&desc, &desc.workspace_bytes), NULL);
    char *block = sample_alloc(desc.workspace_bytes + 255, memory);
    desc.workspace = block + (256 - (uintptr_t)block % 256) % 256;
    pg_solver *solver;
    sample_check(pg_create(&desc, &solver), NULL);

    const size_t count = (size_t)n * n * n, bytes = count * sizeof(double);
    double *u = sample_alloc(bytes, memory), *f = sample_alloc(bytes, memory);
    double *start = sample_alloc(bytes, PG_MEM_HOST), *end = sample_alloc(bytes, PG_MEM_HOST);
    const double w = pi / (n + 1);
    for (size_t m = 0; m < count; m++)
        start[m] = sin(w * (m % n + 1)) * sin(w * (m / n % n + 1)) * sin(w * (m / n / n + 1));
    sample_copy(u, start, bytes, memory);

    const char *how = "one call a step";
    if (memory == PG_MEM_HOST)
        for (int s = 0; s < steps; s++) step(solver, u, f, bytes, memory, stream);
#ifdef PG_SAMPLE_CUDA
    if (memory == PG_MEM_DEVICE) {
        how = "a captured graph, replayed";
        cudaGraph_t graph;
        cudaGraphExec_t replay;
        CUDA(cudaDeviceSynchronize());                            // the start has been copied
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        step(solver, u, f, bytes, memory, stream);                // copies u to f, calls pg_solve
        CUDA(cudaStreamEndCapture(stream, &graph));
        CUDA(cudaGraphInstantiateWithFlags(&replay, graph, 0));
        for (int s = 0; s < steps; s++) CUDA(cudaGraphLaunch(replay, stream));
        CUDA(cudaStreamSynchronize(stream));                      // the host waits once
        cudaGraphExecDestroy(replay);
        cudaGraphDestroy(graph);
    }
#endif
    pg_report report;                                   // of the last step
    sample_check(pg_get_report(solver, &report), solver);
    sample_copy(end, u, bytes, memory);

    const double lambda = 3 * pow(2 * (n + 1) * sin(w / 2), 2), left = pow(1 + dt * lambda, -steps);
    double error = 0;
    for (size_t m = 0; m < count; m++) error = fmax(error, fabs(end[m] - left * start[m]));
    const int good = report.outcome == PG_CONVERGED && error <= 1e-8 * left;
    printf("%d^3 unknowns on %s, %.1f MB of own workspace, %d steps: %s\n", n,
           report.backend == PG_CUDA ? "CUDA" : "the CPU", desc.workspace_bytes / 1e6, steps, how);
    printf("last step: %s after %d V-cycles, %.3f ms\n", pg_outcome_string(report.outcome), report.iterations,
           report.milliseconds);
    printf("%.10f of the heat is left by theory, largest error %.1e: %s\n", left, error,
           good ? "as it should be" : "MISSED");

    pg_destroy(solver);
    sample_free(block, memory);
    sample_free(u, memory);
    sample_free(f, memory);
    free(start);
    free(end);
#ifdef PG_SAMPLE_CUDA
    if (memory == PG_MEM_DEVICE) cudaStreamDestroy(stream);
#endif
    return !good;
}
