/* What only a GPU can show: pointers, streams, capture, device memory, and that its answers are those of the CPU.

   Compiled with -DPG_TEST_CUDA where the CUDA runtime is found; otherwise, and without a device, every test counts as
   skipped. */
#define _POSIX_C_SOURCE 200809L
#include "ref.h"

#define TESTS(X)                                                                                                      \
    X(device_arrays_give_the_bits_of_host_arrays)                                                                     \
    X(pointers_of_the_wrong_kind_are_refused)                                                                         \
    X(the_current_device_is_left_as_it_was)                                                                           \
    X(a_solve_comes_after_what_is_on_its_stream)                                                                      \
    X(set_stream_moves_the_work)                                                                                      \
    X(solve_returns_before_its_work_is_done)                                                                          \
    X(a_captured_solve_is_replayed_with_other_data)                                                                   \
    X(monitored_or_captured_a_solve_is_the_same)                                                                      \
    X(what_must_wait_is_refused_under_capture)                                                                        \
    X(out_of_device_memory_is_reported_and_harms_nobody)                                                              \
    X(nothing_is_allocated_after_create)                                                                              \
    X(a_workspace_handed_in_is_used_and_only_that)                                                                    \
    X(a_bad_device_workspace_is_refused)                                                                              \
    X(the_allocator_provides_device_memory)                                                                           \
    X(gpu_and_cpu_agree_to_round_off)                                                                                 \
    X(two_runs_on_the_device_give_the_same_bits)                                                                      \
    X(device_arrays_are_written_only_in_their_window)                                                                 \
    X(parts_of_the_fluid_in_device_arrays)                                                                            \
    X(new_media_in_device_arrays_choose_anew)

#ifndef PG_TEST_CUDA

#define SKIPPED(name) static void name(void **state) { (void)state; skip(); }
TESTS(SKIPPED)

#else

#include "scenes.h"
#include <cuda_runtime.h>
#include <time.h>

#define CUDA(call)                                                                                                    \
    do {                                                                                                              \
        const cudaError_t error_ = (call);                                                                            \
        if (error_ != cudaSuccess) fail_msg("%s: %s", #call, cudaGetErrorString(error_));                             \
    } while (0)

#define NEED_DEVICE()                                                                                                 \
    do {                                                                                                              \
        (void)state;                                                                                                  \
        if (!cuda_is_usable()) skip();                                                                                \
    } while (0)

static void *device_bytes(size_t bytes)
{
    void *p = NULL;
    CUDA(cudaMalloc(&p, bytes));
    return p;
}

/* A problem of even, odd and periodic axes in device arrays, with the same numbers on the host. */
typedef struct problem {
    pg_desc desc;
    ref p;
    size_t u_bytes, f_bytes;
    void *u, *f, *result;           /* host: guess, right-hand side, what came back */
    void *du, *df;                  /* device */
} problem;

static pg_desc mixed_box(unsigned flags)
{
    pg_desc desc = {0};
    desc.n[0] = full_or_small(37, 13), desc.n[1] = full_or_small(30, 8), desc.n[2] = full_or_small(23, 6);
    desc.centring[1] = PG_CELL;
    set_ends(&desc, 0, "DN");
    set_ends(&desc, 1, "RD");
    set_ends(&desc, 2, "PP");
    desc.face[PG_X_LOW].value = 0.5, desc.face[PG_X_HIGH].value = -2, desc.face[PG_Y_LOW].value = 1;
    desc.backend = PG_CUDA, desc.memory = PG_MEM_DEVICE, set_choice(&desc, flags);
    return desc;
}

static void randomize(const ref *p, void *array, size_t elements, uint64_t seed)
{
    rng r = {seed};
    for (size_t q = 0; q < elements; q++) ref_store(p, array, (int64_t)q, (long double)rng_uniform(&r, -1, 1));
}

static void upload(const problem *t)
{
    CUDA(cudaMemcpy(t->du, t->u, t->u_bytes, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(t->df, t->f, t->f_bytes, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
}
static void download(const problem *t) { CUDA(cudaMemcpy(t->result, t->du, t->u_bytes, cudaMemcpyDeviceToHost)); }

static problem problem_create(const pg_desc *desc)
{
    problem t;
    memset(&t, 0, sizeof t);
    t.desc = *desc;
    ref_create(&t.p, desc);
    const size_t size = t.p.f32 ? sizeof(float) : sizeof(double);
    t.u_bytes = size * ref_extent_u(&t.p), t.f_bytes = size * ref_extent_f(&t.p);
    t.u = allocate(t.u_bytes), t.f = allocate(t.f_bytes), t.result = allocate(t.u_bytes);
    t.du = device_bytes(t.u_bytes), t.df = device_bytes(t.f_bytes);
    randomize(&t.p, t.u, ref_extent_u(&t.p), 1);
    randomize(&t.p, t.f, ref_extent_f(&t.p), 2);
    upload(&t);
    return t;
}

static void problem_destroy(problem *t)
{
    CUDA(cudaFree(t->du));
    CUDA(cudaFree(t->df));
    ref_free(&t->p);
    free(t->u), free(t->f), free(t->result);
}

/* The answer and report of a handle of its own on the default stream. */
static pg_report plain_answer(const problem *t, const pg_stop *stop, void *answer)
{
    pg_report report;
    upload(t);
    pg_solver *solver = create(&t->desc);
    OK(pg_solve(solver, t->du, t->df, stop), solver);
    OK(pg_get_report(solver, &report), solver);
    download(t);
    memcpy(answer, t->result, t->u_bytes);
    pg_destroy(solver);
    return report;
}

static const unsigned all_flags[] = {
    PG_JACOBI, PG_RBGS, PG_SOR, PG_VCYCLE, PG_WCYCLE, PG_FMG, PG_MIXED | PG_FMG, PG_MIXED | PG_VCYCLE,
    PG_F32 | PG_JACOBI, PG_F32 | PG_RBGS, PG_F32 | PG_SOR, PG_F32 | PG_VCYCLE, PG_F32 | PG_WCYCLE, PG_F32 | PG_FMG,
    PG_VCYCLE | PG_SMOOTH_JACOBI, PG_FMG | PG_SMOOTH_CHEBYSHEV, PG_F32 | PG_FMG | PG_SMOOTH_CHEBYSHEV,
    PG_VCYCLE | PG_SYMMETRIC, PG_F32 | PG_VCYCLE | PG_SYMMETRIC | PG_SMOOTH_JACOBI,
    PG_CG | PG_PRECOND_DIRECT, PG_CG | PG_PRECOND_DIRECT | PG_MIXED, PG_F32 | PG_BICGSTAB | PG_PRECOND_DIRECT};
enum { ALL_FLAGS = sizeof all_flags / sizeof *all_flags };

static int is_krylov(unsigned flags) { return (flags & (PG_CG | PG_BICGSTAB)) != 0; }
static int is_sweep(unsigned flags) { return (flags & (PG_JACOBI | PG_RBGS | PG_SOR)) != 0; }

/* To the default tolerance; sweeps, which would take thousands of iterations, to one of their own. */
static pg_stop to_tolerance(unsigned flags)
{
    pg_stop stop = {0};
    stop.rtol = is_sweep(flags) ? 1e-2 : 0;
    return stop;
}

static int watch(void *user, const pg_report *so_far)
{
    (void)so_far;
    ++*(int *)user;
    return 0;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

static void device_arrays_give_the_bits_of_host_arrays(void **state)
{
    NEED_DEVICE();
    for (int m = 0; m < ALL_FLAGS; m++) {
        const pg_desc desc = mixed_box(all_flags[m]);
        problem t = problem_create(&desc);
        pg_stop stop = {0};
        stop.max_iter = is_sweep(desc.flags) ? 25 : 5;
        void *answer = allocate(t.u_bytes);
        const pg_report on_device = plain_answer(&t, &stop, answer);
        pg_desc host = desc;
        host.memory = PG_MEM_HOST;
        pg_solver *solver = create(&host);
        pg_report staged;
        OK(pg_solve(solver, t.u, t.f, &stop), solver);
        OK(pg_get_report(solver, &staged), solver);
        assert_int_equal(staged.outcome, on_device.outcome);
        assert_int_equal(staged.iterations, on_device.iterations);
        assert_memory_equal(staged.history, on_device.history, sizeof(double) * (size_t)staged.history_count);
        assert_memory_equal(t.u, answer, t.u_bytes);
        pg_destroy(solver);
        free(answer);
        problem_destroy(&t);
    }
}

static void pointers_of_the_wrong_kind_are_refused(void **state)
{
    NEED_DEVICE();
    pg_desc desc = mixed_box(PG_FMG);
    problem t = problem_create(&desc);
    double number;
    for (int host = 0; host < 2; host++) {
        desc.memory = host ? PG_MEM_HOST : PG_MEM_DEVICE;
        desc.face[PG_X_LOW].array = NULL;
        pg_solver *solver = create(&desc);
        void *good_u = host ? t.u : t.du, *good_f = host ? t.f : t.df;
        void *bad_u = host ? t.du : t.u, *bad_f = host ? t.df : t.f;
        const char *declared = host ? "PG_MEM_HOST" : "PG_MEM_DEVICE";
        randomize(&t.p, t.u, ref_extent_u(&t.p), 1);
        upload(&t);

        assert_int_equal(pg_solve(solver, bad_u, good_f, NULL), PG_ERROR_ARGUMENT);
        if (!strstr(pg_last_error(solver), declared))
            fail_msg("%s is not named in: %s", declared, pg_last_error(solver));
        assert_int_equal(pg_solve(solver, good_u, bad_f, NULL), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_smooth(solver, bad_u, good_f, 1), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_cycle(solver, good_u, bad_f, 1), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_apply(solver, bad_u, good_f), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_residual(solver, good_u, bad_f, good_f), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_norm(solver, bad_u, PG_NORM_L2, &number), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_dot(solver, bad_u, NULL, &number), PG_ERROR_ARGUMENT);
        assert_int_equal(pg_dot(solver, good_u, bad_u, &number), PG_ERROR_ARGUMENT);
        pg_face faces[6];
        memcpy(faces, desc.face, sizeof faces);
        faces[PG_X_LOW].array = bad_f;
        assert_int_equal(pg_set_faces(solver, faces), PG_ERROR_ARGUMENT);
        pg_destroy(solver);

        desc.face[PG_X_LOW].array = bad_f;
        solver = NULL;
        assert_int_equal(pg_create(&desc, &solver), PG_ERROR_ARGUMENT);
        assert_null(solver);
        desc.face[PG_X_LOW].array = NULL;

        double *before = allocate(t.u_bytes);
        randomize(&t.p, before, ref_extent_u(&t.p), 1);
        download(&t);
        assert_memory_equal(t.result, before, t.u_bytes);
        assert_memory_equal(t.u, before, t.u_bytes);
        free(before);
        assert_int_equal(cudaGetLastError(), cudaSuccess);

        solver = create(&desc);                              /* the good ones are taken */
        OK(pg_solve(solver, good_u, good_f, NULL), solver);
        pg_destroy(solver);
    }
    problem_destroy(&t);
}

static void the_current_device_is_left_as_it_was(void **state)
{
    NEED_DEVICE();
    int devices = 0, now = -1;
    CUDA(cudaGetDeviceCount(&devices));
    pg_desc desc = mixed_box(PG_FMG);
    desc.memory = PG_MEM_HOST;
    double *u = allocate(37 * 30 * 23 * sizeof *u), *f = allocate(37 * 30 * 23 * sizeof *f), number;
    for (int q = 0; q < 37 * 30 * 23; q++) u[q] = 0, f[q] = q % 7;
    for (int of_solver = 0; of_solver < devices; of_solver++)
        for (int current = 0; current < devices; current++) {
            pg_report report;
            pg_desc resolved;
            size_t bytes;
            CUDA(cudaSetDevice(current));
            desc.device = PG_DEVICE(of_solver);
            OK(pg_workspace_bytes(&desc, &bytes), NULL);
            pg_solver *solver = create(&desc);
            OK(pg_query_desc(solver, &resolved), solver);
            assert_int_equal(resolved.device, PG_DEVICE(of_solver));
            OK(pg_solve(solver, u, f, NULL), solver);
            OK(pg_get_report(solver, &report), solver);
            assert_int_equal(report.outcome, PG_CONVERGED);
            OK(pg_norm(solver, u, PG_NORM_MAX, &number), solver);
            assert_int_equal(pg_solve(solver, NULL, f, NULL), PG_ERROR_ARGUMENT);
            CUDA(cudaGetDevice(&now));
            assert_int_equal(now, current);
            pg_destroy(solver);
            CUDA(cudaGetDevice(&now));
            assert_int_equal(now, current);

            desc.device = 0;                                 /* no wish: the current one */
            solver = create(&desc);
            OK(pg_query_desc(solver, &resolved), solver);
            assert_int_equal(resolved.device, PG_DEVICE(current));
            pg_destroy(solver);
        }
    CUDA(cudaSetDevice(0));
    free(u), free(f);
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

/* A stream that waits for nobody, with something slow on it before f arrives. */
typedef struct slow_stream {
    cudaStream_t stream;
    void *a, *b, *pinned;
    size_t bytes;
} slow_stream;

static slow_stream slow_create(size_t f_bytes)
{
    slow_stream s;
    s.bytes = (size_t)full_or_small(1 << 28, 1 << 24);
    CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    s.a = device_bytes(s.bytes), s.b = device_bytes(s.bytes);
    CUDA(cudaMemset(s.a, 0, s.bytes));
    CUDA(cudaMallocHost(&s.pinned, f_bytes));
    CUDA(cudaDeviceSynchronize());
    return s;
}
static void slow_copy(slow_stream *s, void *device, const void *host, size_t bytes)
{
    memcpy(s->pinned, host, bytes);
    for (int q = 0; q < 50; q++) CUDA(cudaMemcpyAsync(s->b, s->a, s->bytes, cudaMemcpyDeviceToDevice, s->stream));
    CUDA(cudaMemcpyAsync(device, s->pinned, bytes, cudaMemcpyHostToDevice, s->stream));
}
static void slow_destroy(slow_stream *s)
{
    CUDA(cudaStreamDestroy(s->stream));
    CUDA(cudaFree(s->a));
    CUDA(cudaFree(s->b));
    CUDA(cudaFreeHost(s->pinned));
}

/* f is NaN until the slow copy is through; u is fetched on the same stream. */
static void solve_behind_slow_copy(problem *t, slow_stream *s, pg_solver *solver)
{
    const pg_stop stop = to_tolerance(t->desc.flags);
    CUDA(cudaMemset(t->df, 0xff, t->f_bytes));
    CUDA(cudaMemset(t->du, 0, t->u_bytes));
    CUDA(cudaDeviceSynchronize());
    slow_copy(s, t->df, t->f, t->f_bytes);
    OK(pg_solve(solver, t->du, t->df, &stop), solver);
    CUDA(cudaMemcpyAsync(t->result, t->du, t->u_bytes, cudaMemcpyDeviceToHost, s->stream));
    CUDA(cudaMemsetAsync(t->df, 0xff, t->f_bytes, s->stream));   /* behind the solve: it must have read f by then */
    CUDA(cudaStreamSynchronize(s->stream));
}

static void a_solve_comes_after_what_is_on_its_stream(void **state)
{
    NEED_DEVICE();
    for (int m = 0; m < ALL_FLAGS; m++) {
        pg_desc desc = mixed_box(all_flags[m]);
        problem t = problem_create(&desc);
        void *answer = allocate(t.u_bytes);
        const pg_stop stop = to_tolerance(desc.flags);
        memset(t.u, 0, t.u_bytes);
        plain_answer(&t, &stop, answer);
        slow_stream s = slow_create(t.f_bytes);
        desc.stream = s.stream;
        pg_solver *solver = create(&desc);
        for (int time = 0; time < 2; time++) {
            solve_behind_slow_copy(&t, &s, solver);
            assert_memory_equal(t.result, answer, t.u_bytes);
        }
        pg_destroy(solver);
        slow_destroy(&s);
        free(answer);
        problem_destroy(&t);
    }
}

static void set_stream_moves_the_work(void **state)
{
    NEED_DEVICE();
    const pg_desc desc = mixed_box(PG_FMG);
    problem t = problem_create(&desc);
    void *answer = allocate(t.u_bytes);
    memset(t.u, 0, t.u_bytes);
    plain_answer(&t, NULL, answer);
    slow_stream s = slow_create(t.f_bytes);
    pg_solver *solver = create(&desc);
    pg_desc resolved;
    OK(pg_set_stream(solver, s.stream), solver);
    OK(pg_query_desc(solver, &resolved), solver);
    assert_true(resolved.stream == s.stream);
    solve_behind_slow_copy(&t, &s, solver);
    assert_memory_equal(t.result, answer, t.u_bytes);
    OK(pg_set_stream(solver, NULL), solver);
    upload(&t);
    OK(pg_solve(solver, t.du, t.df, NULL), solver);
    download(&t);
    assert_memory_equal(t.result, answer, t.u_bytes);
    pg_destroy(solver);
    slow_destroy(&s);
    free(answer);
    problem_destroy(&t);
}

/* Holds the stream until the host, which must get past pg_solve for that, lets go; gives up after ten seconds. */
typedef struct gate { volatile int open, gave_up; } gate;

static void CUDART_CB wait_at_gate(void *user)
{
    gate *g = user;
    const struct timespec millisecond = {0, 1000000};
    for (int q = 0; q < 10000 && !g->open; q++) nanosleep(&millisecond, NULL);
    g->gave_up = !g->open;
}

static void solve_returns_before_its_work_is_done(void **state)
{
    NEED_DEVICE();
    for (int m = 0; m < ALL_FLAGS; m++) {
        pg_desc desc = mixed_box(all_flags[m]);
        problem t = problem_create(&desc);
        cudaStream_t stream;
        CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        desc.stream = stream;
        const pg_stop stop = to_tolerance(desc.flags);
        pg_solver *solver = create(&desc);
        OK(pg_solve(solver, t.du, t.df, &stop), solver);     /* once: the driver loads code when it is first used */
        CUDA(cudaStreamSynchronize(stream));
        upload(&t);
        gate g = {0, 0};
        CUDA(cudaLaunchHostFunc(stream, wait_at_gate, &g));
        OK(pg_solve(solver, t.du, t.df, &stop), solver);
        assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
        g.open = 1;
        pg_report report;
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(g.gave_up, 0);
        assert_int_equal(report.outcome, PG_CONVERGED);
        assert_int_equal(cudaStreamQuery(stream), cudaSuccess);
        pg_destroy(solver);
        CUDA(cudaStreamDestroy(stream));
        problem_destroy(&t);
    }
}

/* ---- Capture ----------------------------------------------------------------------------------------------------- */

static void a_captured_solve_is_replayed_with_other_data(void **state)
{
    NEED_DEVICE();
    int runtime = 0, driver = 0;
    CUDA(cudaRuntimeGetVersion(&runtime));
    CUDA(cudaDriverGetVersion(&driver));
    if (runtime < 12040 || driver < 12040) skip();
    for (int m = 0; m < ALL_FLAGS; m++) {
        pg_desc desc = mixed_box(all_flags[m]);
        problem t = problem_create(&desc);
        cudaStream_t stream;
        CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        desc.stream = stream;
        pg_stop stop = to_tolerance(desc.flags);
        stop.guess = PG_GUESS_U;
        pg_solver *solver = create(&desc);
        cudaGraph_t graph = NULL;
        cudaGraphExec_t exec = NULL;
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        OK(pg_solve(solver, t.du, t.df, &stop), solver);
        CUDA(cudaStreamEndCapture(stream, &graph));
        CUDA(cudaGraphInstantiate(&exec, graph, 0));
        download(&t);
        assert_memory_equal(t.result, t.u, t.u_bytes);       /* captured, not run */

        void *answer = allocate(t.u_bytes);
        int iterations[3] = {0};
        for (int data = 0; data < 3; data++) {
            /* The number of iterations is decided on the device: the last guess needs none. */
            randomize(&t.p, t.f, ref_extent_f(&t.p), 40 + (uint64_t)data);
            if (data < 2) randomize(&t.p, t.u, ref_extent_u(&t.p), 50 + (uint64_t)data);
            const pg_report expected = plain_answer(&t, &stop, answer);
            upload(&t);
            pg_report report;
            CUDA(cudaGraphLaunch(exec, stream));
            OK(pg_get_report(solver, &report), solver);
            download(&t);
            assert_int_equal(expected.outcome, PG_CONVERGED);
            assert_int_equal(report.outcome, PG_CONVERGED);
            assert_int_equal(report.iterations, expected.iterations);
            assert_memory_equal(report.history, expected.history, sizeof(double) * (size_t)(
                                expected.history_count < PG_HISTORY ? expected.history_count : PG_HISTORY));
            assert_memory_equal(t.result, answer, t.u_bytes);
            iterations[data] = report.iterations;
            if (data == 1) {                                 /* for the last round: the solution as guess */
                randomize(&t.p, t.f, ref_extent_f(&t.p), 42);
                plain_answer(&t, &stop, answer);
                memcpy(t.u, answer, t.u_bytes);
            }
        }
        assert_int_equal(iterations[2], 0);
        assert_true(iterations[0] > 0 && iterations[1] > 0);

        upload(&t);                                          /* the handle itself still solves outside of the graph */
        OK(pg_solve(solver, t.du, t.df, &stop), solver);
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaGraphExecDestroy(exec));
        CUDA(cudaGraphDestroy(graph));
        pg_destroy(solver);
        CUDA(cudaStreamDestroy(stream));
        free(answer);
        problem_destroy(&t);
    }
}

/* The same of a graph that has the solve in it. */
static pg_report captured_answer(const problem *t, const pg_stop *stop, void *answer)
{
    pg_report report;
    pg_desc desc = t->desc;
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    desc.stream = stream;
    pg_solver *solver = create(&desc);
    upload(t);
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(pg_solve(solver, t->du, t->df, stop), solver);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream));
    OK(pg_get_report(solver, &report), solver);
    download(t);
    memcpy(answer, t->result, t->u_bytes);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    pg_destroy(solver);
    CUDA(cudaStreamDestroy(stream));
    return report;
}

static void must_be_the_same(const problem *t, const pg_report *a, const void *u, const pg_report *b, const void *v)
{
    assert_int_equal(a->outcome, b->outcome);
    assert_int_equal(a->iterations, b->iterations);
    assert_int_equal(a->history_count, b->history_count);
    assert_memory_equal(a->history, b->history, sizeof(double) * (size_t)a->history_count);
    assert_memory_equal(u, v, t->u_bytes);
}

/* Where a monitor makes the host wait, the loop is another one than where it does not, and one under capture too: in a box,
   where nothing holds the mean, and on a square of prime sizes with gaps between its rows, periodic one way. */
static void monitored_or_captured_a_solve_is_the_same(void **state)
{
    NEED_DEVICE();
    static const unsigned direct[] = {PG_DIRECT, PG_MIXED | PG_DIRECT, PG_F32 | PG_DIRECT};
    enum { BOX, SINGULAR_BOX, SQUARE, KINDS };
    for (int m = 0; m < KINDS * (ALL_FLAGS + 3); m++) {
        const int method = m / KINDS, kind = m % KINDS;
        pg_desc desc = mixed_box(method < ALL_FLAGS ? all_flags[method] : direct[method - ALL_FLAGS]);
        desc.n[0] = 11, desc.n[1] = 8, desc.n[2] = 6;
        if (kind != BOX) set_ends(&desc, 0, "NN"), set_ends(&desc, 1, kind == SQUARE ? "PP" : "NN");
        if (kind == SQUARE) desc.n[0] = 23, desc.n[1] = 17, desc.n[2] = 1, desc.stride_u[0] = 29, desc.stride_f[0] = 26;
        problem t = problem_create(&desc);
        void *answer = allocate(t.u_bytes), *again = allocate(t.u_bytes);
        int calls = 0;
        pg_stop stop = {0};
        stop.rtol = is_sweep(desc.flags) ? 0.2 : 0, stop.check = is_sweep(desc.flags) ? 15 : 1;
        stop.max_iter = is_sweep(desc.flags) ? 50 : 25;
        const pg_report plain = plain_answer(&t, &stop, answer);
        assert_true(plain.iterations > 0);
        int runtime = 0, driver = 0;
        CUDA(cudaRuntimeGetVersion(&runtime));
        CUDA(cudaDriverGetVersion(&driver));
        if (runtime >= 12040 && driver >= 12040) {
            const pg_report captured = captured_answer(&t, &stop, again);
            must_be_the_same(&t, &plain, answer, &captured, again);
        }
        setenv("SIMT_DRIVER", "12030", 1);                   /* whose graphs do not loop; a real one stays as it is */
        const pg_report driven = plain_answer(&t, &stop, again);
        unsetenv("SIMT_DRIVER");
        must_be_the_same(&t, &plain, answer, &driven, again);
        stop.monitor = watch, stop.user = &calls;
        const pg_report monitored = plain_answer(&t, &stop, again);
        assert_true(calls > 1);
        must_be_the_same(&t, &plain, answer, &monitored, again);
        free(answer), free(again);
        problem_destroy(&t);
    }
}

static void what_must_wait_is_refused_under_capture(void **state)
{
    NEED_DEVICE();
#ifdef SIMT_CUDA_RUNTIME_H
    const int simulated = 1;
#else
    const int simulated = 0;
#endif
    int driver = 0;
    pg_desc desc = mixed_box(PG_VCYCLE), host_desc = desc;
    problem t = problem_create(&desc);
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    desc.stream = host_desc.stream = stream;
    host_desc.memory = PG_MEM_HOST;
    pg_solver *solver = create(&desc), *host = create(&host_desc);
    setenv("SIMT_DRIVER", "12030", 1);
    pg_solver *old = create(&desc);
    unsetenv("SIMT_DRIVER");
    CUDA(cudaDriverGetVersion(&driver));
    double number = 5;
    int calls = 0;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    pg_stop watched = {0};
    watched.monitor = watch, watched.user = &calls;

    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    const pg_status norm = pg_norm(solver, t.du, PG_NORM_L2, &number), sum = pg_dot(solver, t.du, NULL, &number),
                    dot = pg_dot(solver, t.du, t.du, &number), monitored = pg_solve(solver, t.du, t.df, &watched);
    const int named = strstr(pg_last_error(solver), "monitor") != NULL;
    const int is_old = simulated || driver < 12040;    /* else a solve would be part of the graph */
    const pg_status staged = pg_solve(host, t.u, t.f, NULL),
                    driven = is_old ? pg_solve(old, t.du, t.df, NULL) : PG_ERROR_UNSUPPORTED;
    const int asks_for_a_driver = strstr(pg_last_error(old), "driver of CUDA 12.4") != NULL;
    const pg_status cycle = pg_cycle(solver, t.du, t.df, 1);   /* and this may be captured */
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    assert_int_equal(norm, PG_ERROR_UNSUPPORTED);
    assert_int_equal(sum, PG_ERROR_UNSUPPORTED);
    assert_int_equal(dot, PG_ERROR_UNSUPPORTED);
    assert_int_equal(monitored, PG_ERROR_UNSUPPORTED);
    assert_true(named && calls == 0 && number == 5);
    assert_int_equal(staged, PG_ERROR_UNSUPPORTED);
    assert_int_equal(driven, PG_ERROR_UNSUPPORTED);
    if (is_old) assert_true(asks_for_a_driver);
    assert_int_equal(cycle, PG_OK);
    CUDA(ended);

    void *cycled = allocate(t.u_bytes);
    upload(&t);
    OK(pg_cycle(solver, t.du, t.df, 1), solver);
    CUDA(cudaStreamSynchronize(stream));
    download(&t);
    memcpy(cycled, t.result, t.u_bytes);
    upload(&t);
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    download(&t);
    assert_memory_equal(t.result, cycled, t.u_bytes);
    OK(pg_norm(solver, t.du, PG_NORM_L2, &number), solver);
    assert_true(number > 0 && number != 5);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    pg_destroy(solver), pg_destroy(host), pg_destroy(old);
    CUDA(cudaStreamDestroy(stream));
    free(cycled);
    problem_destroy(&t);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void out_of_device_memory_is_reported_and_harms_nobody(void **state)
{
    NEED_DEVICE();
    const pg_desc good = mixed_box(PG_FMG);
    problem t = problem_create(&good);
    void *answer = allocate(t.u_bytes);
    plain_answer(&t, NULL, answer);
    upload(&t);
    pg_solver *bystander = create(&good), *solver = bystander;

    pg_desc desc = good;
    desc.n[0] = desc.n[1] = desc.n[2] = 20000;
    size_t bytes = 0;
    char needed[32];
    OK(pg_workspace_bytes(&desc, &bytes), NULL);
    snprintf(needed, sizeof needed, "%zu", bytes);
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_MEMORY);
    assert_null(solver);
    if (!strstr(pg_last_error(NULL), needed)) fail_msg("%s bytes are not named in: %s", needed, pg_last_error(NULL));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    CUDA(cudaDeviceSynchronize());

    OK(pg_solve(bystander, t.du, t.df, NULL), bystander);
    download(&t);
    assert_memory_equal(t.result, answer, t.u_bytes);
    solver = create(&good);
    pg_destroy(solver), pg_destroy(bystander);
    free(answer);
    problem_destroy(&t);
}

static void use_everything(pg_solver *solver, const problem *t)
{
    pg_report report;
    double number;
    pg_stop stop = to_tolerance(t->desc.flags);
    int calls = 0;
    OK(pg_solve(solver, t->du, t->df, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    stop.guess = PG_GUESS_U, stop.norm = PG_NORM_MAX, stop.monitor = watch, stop.user = &calls;
    OK(pg_set_alpha(solver, 3), solver);
    OK(pg_set_faces(solver, t->desc.face), solver);
    OK(pg_solve(solver, t->du, t->df, &stop), solver);
    OK(pg_get_report(solver, &report), solver);
    assert_int_equal(report.outcome, PG_CONVERGED);
    stop.rtol = PG_NONE, stop.monitor = NULL;
    OK(pg_solve(solver, t->du, t->df, &stop), solver);
    if (is_sweep(t->desc.flags)) OK(pg_smooth(solver, t->du, t->df, 3), solver);
    else if (!is_krylov(t->desc.flags)) OK(pg_cycle(solver, t->du, t->df, 2), solver);
    OK(pg_residual(solver, t->du, t->df, t->df), solver);
    OK(pg_norm(solver, t->du, PG_NORM_L1, &number), solver);
    OK(pg_dot(solver, t->du, t->du, &number), solver);
    OK(pg_set_alpha(solver, 0), solver);
    CUDA(cudaDeviceSynchronize());
}

static void nothing_is_allocated_after_create(void **state)
{
    NEED_DEVICE();
    for (int m = 0; m < ALL_FLAGS; m++) {
        const pg_desc desc = mixed_box(all_flags[m]);
        problem t = problem_create(&desc);
        pg_solver *first = create(&desc);
        use_everything(first, &t);                           /* the driver loads code when it is first used */
        pg_solver *solver = create(&desc);
        size_t before = 0, after = 0, total = 0;
        upload(&t);
        CUDA(cudaMemGetInfo(&before, &total));
        for (int time = 0; time < full_or_small(3, 1); time++) {
            upload(&t);
            use_everything(solver, &t);
        }
        CUDA(cudaMemGetInfo(&after, &total));
        assert_true(after == before);
        pg_destroy(first), pg_destroy(solver);
        problem_destroy(&t);
    }
}

static void a_workspace_handed_in_is_used_and_only_that(void **state)
{
    NEED_DEVICE();
    enum { GUARD = 4096 };
    for (int m = 0; m < ALL_FLAGS; m++) {
        pg_desc desc = mixed_box(all_flags[m]);
        problem t = problem_create(&desc);
        void *answer = allocate(t.u_bytes);
        pg_stop stop = {0};
        stop.max_iter = is_sweep(desc.flags) ? 25 : 5;
        plain_answer(&t, &stop, answer);
        size_t bytes = 0;
        OK(pg_workspace_bytes(&desc, &bytes), NULL);
        unsigned char *block = device_bytes(bytes + 2 * GUARD), *host = allocate(GUARD);
        CUDA(cudaMemset(block, 0xff, bytes + 2 * GUARD));
        desc.workspace = block + GUARD, desc.workspace_bytes = bytes;
        pg_solver *solver = create(&desc);
        upload(&t);
        OK(pg_solve(solver, t.du, t.df, &stop), solver);
        download(&t);
        assert_memory_equal(t.result, answer, t.u_bytes);
        pg_destroy(solver);
        for (int end = 0; end < 2; end++) {
            CUDA(cudaMemcpy(host, end ? block + GUARD + bytes : block, GUARD, cudaMemcpyDeviceToHost));
            for (int q = 0; q < GUARD; q++) assert_int_equal(host[q], 0xff);
        }
        CUDA(cudaFree(block));
        free(host), free(answer);
        problem_destroy(&t);
    }
}

static void a_bad_device_workspace_is_refused(void **state)
{
    NEED_DEVICE();
    pg_desc desc = mixed_box(PG_FMG);
    size_t bytes = 0;
    char needed[32];
    OK(pg_workspace_bytes(&desc, &bytes), NULL);
    snprintf(needed, sizeof needed, "%zu", bytes);
    unsigned char *block = device_bytes(bytes + 256), *host = allocate(bytes + 512);
    pg_solver *solver = NULL;
    desc.workspace = block, desc.workspace_bytes = bytes - 1;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_MEMORY);
    assert_non_null(strstr(pg_last_error(NULL), needed));
    desc.workspace = block + 128, desc.workspace_bytes = bytes;
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(NULL), "256"));
    desc.workspace = host + (256 - (uintptr_t)host % 256) % 256;   /* host memory for a device */
    assert_int_equal(pg_create(&desc, &solver), PG_ERROR_ARGUMENT);
    assert_non_null(strstr(pg_last_error(NULL), "workspace"));
    assert_null(solver);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    CUDA(cudaFree(block));
    free(host);
}

typedef struct counter {
    int allocs, frees;
    size_t bytes;
    pg_memory memory;
    pg_stream stream;
} counter;

static void *counting_alloc(void *user, size_t bytes, pg_memory memory, pg_stream stream)
{
    counter *c = user;
    void *p = NULL;
    c->allocs++, c->bytes = bytes, c->memory = memory, c->stream = stream;
    return cudaMallocAsync(&p, bytes, stream) == cudaSuccess ? p : NULL;
}
static void counting_free(void *user, void *pointer, size_t bytes, pg_memory memory, pg_stream stream)
{
    counter *c = user;
    c->frees += bytes == c->bytes && memory == c->memory;
    cudaFreeAsync(pointer, stream);
}

static void the_allocator_provides_device_memory(void **state)
{
    NEED_DEVICE();
    for (int host = 0; host < 2; host++) {
        counter c = {0, 0, 0, PG_MEM_HOST, NULL};
        pg_desc desc = mixed_box(PG_FMG);
        problem t = problem_create(&desc);
        cudaStream_t stream;
        CUDA(cudaStreamCreate(&stream));
        desc.stream = stream, desc.memory = host ? PG_MEM_HOST : PG_MEM_DEVICE;
        desc.allocator.alloc = counting_alloc, desc.allocator.free = counting_free, desc.allocator.user = &c;
        size_t bytes = 0;
        OK(pg_workspace_bytes(&desc, &bytes), NULL);
        pg_solver *solver = create(&desc);
        pg_report report;
        OK(pg_solve(solver, host ? t.u : t.du, host ? t.f : t.df, NULL), solver);
        OK(pg_get_report(solver, &report), solver);
        assert_int_equal(report.outcome, PG_CONVERGED);
        assert_int_equal(c.allocs, 1);
        assert_int_equal(c.frees, 0);
        assert_true(c.bytes == bytes && c.stream == stream);
        assert_int_equal(c.memory, PG_MEM_DEVICE);
        pg_destroy(solver);
        assert_int_equal(c.allocs, 1);
        assert_int_equal(c.frees, 1);
        CUDA(cudaStreamDestroy(stream));
        problem_destroy(&t);
    }
}

/* ---- The same answers -------------------------------------------------------------------------------------------- */

/* Fixed numbers of iterations, so that both back ends do the same steps and differ by round-off alone. */
static void gpu_and_cpu_agree_to_round_off(void **state)
{
    NEED_DEVICE();
    static const char *const kinds[] = {"DD", "DN", "NR", "RD", "RR", "PP", "NN"};
    static const int sizes[][3] = {{33, 20, 17}, {64, 7, 5}, {1, 40, 31}, {128, 65, 1}, {300, 1, 1}, {2, 3, 90},
                                   {70, 33, 34}},
                     smaller[][3] = {{17, 12, 9}, {40, 7, 5}, {1, 20, 17}, {67, 20, 1}, {300, 1, 1}, {2, 3, 50},
                                     {36, 17, 9}};
    rng r = {31};
    for (int q = 0; q < full_or_small(40, 1) * ALL_FLAGS; q++) {
        pg_desc desc = {0};
        set_choice(&desc, all_flags[q % ALL_FLAGS]);
        double plane_f64[4096];
        float plane_f32[4096];
        for (int p = 0; p < 4096; p++) plane_f32[p] = (float)(plane_f64[p] = rng_uniform(&r, -1, 1));
        const int single = (desc.flags & PG_F32) != 0, shape = rng_int(&r, 0, 6),
                  *const n = small_run() ? smaller[shape] : sizes[shape];
        for (int axis = 0; axis < 3; axis++) {
            desc.n[axis] = n[axis];
            desc.centring[axis] = rng_int(&r, 0, 1) ? PG_CELL : PG_NODE;
            set_ends(&desc, axis, kinds[rng_int(&r, 0, 6)]);
            for (int face = 2 * axis; face < 2 * axis + 2; face++) desc.face[face].value = rng_uniform(&r, -1, 1);
            const int plane_points = n[(axis + 1) % 3] * n[(axis + 2) % 3];
            if (desc.face[2 * axis].kind != PG_PERIODIC && rng_int(&r, 0, 1) && plane_points <= 4096)
                desc.face[2 * axis].array = single ? (void *)plane_f32 : (void *)plane_f64;
        }
        if (is_krylov(desc.flags)) continue;    /* round-off in a step is in all directions after it */
        desc.alpha = rng_int(&r, 0, 2) ? 0 : 3;
        desc.coarsest = rng_int(&r, 0, 1) ? 16 : 64;    /* the defaults of the back ends differ */
        desc.stride_u[0] = desc.n[0] + rng_int(&r, 0, 3), desc.stride_f[0] = desc.n[0] + rng_int(&r, 0, 3);
        ref p;
        ref_create(&p, &desc);
        const size_t size = single ? sizeof(float) : sizeof(double), u_bytes = size * ref_extent_u(&p),
                     f_bytes = size * ref_extent_f(&p);
        void *u[2] = {allocate(u_bytes), allocate(u_bytes)}, *f = allocate(f_bytes);
        randomize(&p, f, ref_extent_f(&p), (uint64_t)q);
        pg_report report[2];
        for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
            randomize(&p, u[on_gpu], ref_extent_u(&p), (uint64_t)q + 1);
            desc.backend = on_gpu ? PG_CUDA : PG_CPU;
            pg_stop stop = {0};
            /* PG_MIXED: what f32 leaves of the first corrections, 1e-7 of them, is gone after three steps more. */
            const int iterations = is_sweep(desc.flags) ? 6 : desc.flags & PG_MIXED ? 8 : 3;
            stop.rtol = 1e-30, stop.min_iter = stop.max_iter = iterations;
            pg_solver *solver = create(&desc);
            OK(pg_solve(solver, u[on_gpu], f, &stop), solver);
            OK(pg_get_report(solver, &report[on_gpu]), solver);
            pg_destroy(solver);
        }
        long double largest = 0;
        REF_EACH(&p, i, j, k) largest = fmaxl(largest, fabsl(ref_load(&p, u[0], ref_u(&p, i, j, k))));
        /* The residual has an error of an ulp of 4/h^2 |u| at each point, without order; the smoothest part of that
           noise is amplified most when A is inverted. */
        double noise = 10;
        for (int axis = 0; axis < 3; axis++) noise += desc.n[axis] * desc.n[axis] / sqrt((double)ref_points(&p));
        const double tolerance = 40 * (single ? 0x1p-23 : 0x1p-52) * noise;
        REF_EACH(&p, i, j, k) {
            const int64_t at = ref_u(&p, i, j, k);
            const long double cpu = ref_load(&p, u[0], at), gpu = ref_load(&p, u[1], at);
            if (!(fabsl(cpu - gpu) <= tolerance * (double)largest))
                fail_msg("u(%d,%d,%d): %.17Lg on the CPU, %.17Lg on the GPU, largest %.3Lg: %s", i, j, k, cpu, gpu,
                         largest, describe(&desc));
        }
        assert_true(fabs(report[0].rhs_norm - report[1].rhs_norm) <= (single ? 1e-6 : 1e-12) * report[0].rhs_norm);
        const double removed = report[0].removed_mean;
        /* f and its boundary terms, which partly cancel in the mean, are rounded in their own precision */
        const double about = fabs(removed) + 1 + (report[0].rhs_norm > 0 ? report[0].rhs_norm : 0);
        assert_true(fabs(report[1].removed_mean - removed) <= (single ? 4e-6 : 1e-12) * about);
        free(u[0]), free(u[1]), free(f);
        ref_free(&p);
    }
}

static void two_runs_on_the_device_give_the_same_bits(void **state)
{
    NEED_DEVICE();
    for (int m = 0; m < ALL_FLAGS; m++) {
        pg_desc desc = mixed_box(all_flags[m]);
        desc.n[0] = full_or_small(130, 21), desc.n[1] = full_or_small(67, 13), desc.n[2] = full_or_small(41, 10);
        problem t = problem_create(&desc);
        void *answer = allocate(t.u_bytes);
        pg_stop stop = {0};
        stop.max_iter = is_sweep(desc.flags) ? full_or_small(25, 8) : full_or_small(6, 3);
        const pg_report first = plain_answer(&t, &stop, answer);
        pg_solver *solver = create(&desc);
        for (int time = 0; time < full_or_small(10, 1); time++) {
            pg_report report;
            upload(&t);
            OK(pg_solve(solver, t.du, t.df, &stop), solver);
            OK(pg_get_report(solver, &report), solver);
            download(&t);
            assert_memory_equal(t.result, answer, t.u_bytes);
            assert_int_equal(report.history_count, first.history_count);
            assert_memory_equal(report.history, first.history, sizeof(double) * (size_t)first.history_count);
        }
        pg_destroy(solver);
        free(answer);
        problem_destroy(&t);
    }
}

static void device_arrays_are_written_only_in_their_window(void **state)
{
    NEED_DEVICE();
    enum { GUARD = 333 };
    for (int m = 0; m < ALL_FLAGS; m++) {
        pg_desc desc = mixed_box(all_flags[m]);
        desc.stride_u[0] = 41, desc.stride_u[1] = 41 * 30 + 13, desc.stride_f[0] = 38, desc.stride_f[1] = 38 * 31;
        problem t = problem_create(&desc);
        const size_t size = t.p.f32 ? sizeof(float) : sizeof(double), elements = ref_extent_u(&t.p) + 2 * GUARD;
        unsigned char *block = device_bytes(elements * size), *host = allocate(elements * size);
        unsigned char *inside = allocate(elements);
        CUDA(cudaMemset(block, 0xff, elements * size));
        pg_solver *solver = create(&desc);
        pg_stop stop = {0};
        stop.guess = PG_GUESS_ZERO, stop.max_iter = 3;
        OK(pg_solve(solver, block + GUARD * size, t.df, &stop), solver);
        stop.guess = PG_GUESS_U;
        OK(pg_solve(solver, block + GUARD * size, t.df, &stop), solver);
        if (is_sweep(desc.flags)) OK(pg_smooth(solver, block + GUARD * size, t.df, 2), solver);
        else if (!is_krylov(desc.flags)) OK(pg_cycle(solver, block + GUARD * size, t.df, 1), solver);
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaMemcpy(host, block, elements * size, cudaMemcpyDeviceToHost));
        memset(inside, 0, elements);
        REF_EACH(&t.p, i, j, k) inside[GUARD + ref_u(&t.p, i, j, k)] = 1;
        for (size_t q = 0; q < elements; q++) {
            const int finite = isfinite(ref_load(&t.p, host, (int64_t)q)) != 0;
            if (finite != inside[q]) fail_msg("element %ld: %s", (long)q - GUARD, describe(&desc));
        }
        pg_destroy(solver);
        CUDA(cudaFree(block));
        free(host), free(inside);
        problem_destroy(&t);
    }
}

/* pg_get_parts: labels in device memory and sums of a device array are those of host arrays and of the CPU. */
static void parts_of_the_fluid_in_device_arrays(void **state)
{
    enum { N = 20, CELLS = N * N * N, PITCH = N + 4, ALL = PITCH * N * N };
    NEED_DEVICE();
    static unsigned char mask[CELLS];
    static double x[ALL], sums[2][CELLS], volumes[2][CELLS];
    static int labels[2][CELLS];
    rng r = {3};
    for (int c = 0; c < CELLS; c++) mask[c] = rng_int(&r, 0, 1) ? PG_FLUID : PG_SOLID;
    for (int c = 0; c < ALL; c++) x[c] = c % PITCH < N ? rng_uniform(&r, -1, 1) : NAN;
    void *const device_mask = device_bytes(sizeof mask), *const device_x = device_bytes(sizeof x);
    int *const device_labels = (int *)device_bytes(sizeof labels[0]);
    CUDA(cudaMemcpy(device_mask, mask, sizeof mask, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice));
    int count[2] = {CELLS, CELLS};
    for (int on_device = 0; on_device < 2; on_device++) {
        pg_desc d = {.n = {N, N, N}, .centring = {PG_CELL, PG_CELL, PG_CELL}};
        d.backend = on_device ? PG_CUDA : PG_CPU, d.memory = on_device ? PG_MEM_DEVICE : PG_MEM_HOST;
        d.cells.mask = on_device ? (unsigned char *)device_mask : mask, d.stride_u[0] = PITCH;
        pg_solver *solver = create(&d);
        OK(pg_get_parts(solver, on_device ? device_x : x, on_device ? device_labels : labels[0], &count[on_device],
                        sums[on_device], volumes[on_device]),
           solver);
        if (on_device) assert_int_equal(pg_get_parts(solver, NULL, labels[1], &count[1], NULL, NULL), PG_ERROR_ARGUMENT);
        pg_destroy(solver);
    }
    CUDA(cudaMemcpy(labels[1], device_labels, sizeof labels[0], cudaMemcpyDeviceToHost));
    assert_int_equal(count[0], count[1]);
    assert_true(count[0] > 10);
    assert_memory_equal(labels[0], labels[1], sizeof labels[0]);
    for (int p = 0; p < count[0]; p++) {
        assert_true(sums[0][p] == sums[1][p] && volumes[0][p] == volumes[1][p]);
        assert_true(fabs(volumes[0][p] * CELLS) > 0.5);
    }
    CUDA(cudaFree(device_mask));
    CUDA(cudaFree(device_x));
    CUDA(cudaFree(device_labels));
}

/* A scene whose mask and beta are in device memory. */
static pg_desc scene_on_device(scene *s, const char *name, int n)
{
    pg_desc d = {.backend = PG_CUDA, .memory = PG_MEM_DEVICE};
    assert_true(scene_create(s, name, n, 3));
    s->outer = 'o';
    scene_describe(s, &d);
    const size_t cells = scene_cells(s);
    const struct { const void **array; size_t bytes; } given[2] = {{(const void **)&d.cells.mask, cells},
                                                                   {&d.cells.beta_cell, cells * sizeof(double)}};
    for (int q = 0; q < 2; q++)
        if (*given[q].array) {
            void *const there = device_bytes(given[q].bytes);
            CUDA(cudaMemcpy(there, *given[q].array, given[q].bytes, cudaMemcpyHostToDevice));
            *given[q].array = there;
        }
    return d;
}
static int robust_of(const pg_solver *solver)
{
    pg_desc now;
    assert_int_equal(pg_query_desc(solver, &now), PG_OK);
    return now.robust;
}
static void take_media(pg_solver *solver, const pg_desc *d)
{
    if (d->cells.mask || d->cells.beta_cell) OK(pg_set_cells(solver, &d->cells), solver);
}

/* New media in device arrays get the coarse levels that a new handle would have; but the levels stay where they are while
   a graph of the caller's has them. */
static void new_media_in_device_arrays_choose_anew(void **state)
{
    NEED_DEVICE();
    static const struct { const char *first, *second; int n; } cases[] = {
        {"maze", "obstacle", 33}, {"random 50%", "random 50%", 20}, {"random 50%", "obstacle", 33}, {"beta 1e6", "dielectric", 33}};
    for (size_t q = 0; q < (size_t)full_or_small(sizeof cases / sizeof *cases, 1); q++) {
        scene s[2];
        const int n = full_or_small(cases[q].n, 11);
        const pg_desc desc[2] = {scene_on_device(&s[0], cases[q].first, n), scene_on_device(&s[1], cases[q].second, n)};
        const pg_stop stop = {.guess = PG_GUESS_ZERO, };
        problem t = problem_create(&desc[1]);
        void *const expected = allocate(t.u_bytes);
        pg_report report, fresh = plain_answer(&t, &stop, expected);
        pg_solver *const anew = create(&desc[1]);
        const int wanted = robust_of(anew);
        pg_destroy(anew);
        for (int captured = 0; captured < 2; captured++) {
            cudaStream_t stream;
            cudaGraph_t graph = NULL;
            cudaGraphExec_t exec = NULL;
            CUDA(cudaStreamCreate(&stream));
            pg_desc d = desc[0];
            d.stream = (pg_stream)stream;
            pg_solver *solver = create(&d);
            const int robust = robust_of(solver);
            if (captured) {
                CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
                OK(pg_solve(solver, t.du, t.df, &stop), solver);
                CUDA(cudaStreamEndCapture(stream, &graph));
                CUDA(cudaGraphInstantiate(&exec, graph, 0));
            }
            take_media(solver, &desc[1]);
            upload(&t);
            if (captured)
                CUDA(cudaGraphLaunch(exec, stream));
            else
                OK(pg_solve(solver, t.du, t.df, &stop), solver);
            CUDA(cudaStreamSynchronize(stream));
            OK(pg_get_report(solver, &report), solver);
            download(&t);
            assert_int_equal(robust_of(solver), captured ? robust : wanted);
            assert_true(q == 1 || wanted != robust);
            assert_int_equal(report.outcome, PG_CONVERGED);
            if (!captured && (report.iterations != fresh.iterations || memcmp(t.result, expected, t.u_bytes)))
                fail_msg("%s after %s: %s; a new handle: %s", cases[q].second, cases[q].first, report.message, fresh.message);
            if (captured) {
                CUDA(cudaGraphExecDestroy(exec));
                CUDA(cudaGraphDestroy(graph));
            }
            pg_destroy(solver);
            CUDA(cudaStreamDestroy(stream));
        }
        problem_destroy(&t);
        free(expected);
        for (int e = 0; e < 2; e++) {
            CUDA(cudaFree((void *)desc[e].cells.mask));
            CUDA(cudaFree((void *)desc[e].cells.beta_cell));
            scene_free(&s[e]);
        }
    }
}

#endif

int main(void)
{
#define TEST(name) cmocka_unit_test(name),
    const struct CMUnitTest tests[] = {TESTS(TEST)};
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
