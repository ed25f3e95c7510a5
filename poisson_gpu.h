/* poisson_gpu - solve  alpha*u - div(beta grad u) = f  on box grids in 1D, 2D and 3D, on an NVIDIA
   GPU or on the CPU; MIT or public domain. Two files, this header (C99, C++) and poisson_gpu.cu:
       nvcc -O3 -std=c++17 -arch=native -Xcompiler -fopenmp -c poisson_gpu.cu     takes minutes
       nvcc main.c poisson_gpu.o -Xcompiler -fopenmp
       c++ -x c++ -std=c++17 -O3 -fopenmp -c poisson_gpu.cu                       CPU, without CUDA
       cc main.c poisson_gpu.o -fopenmp -lstdc++ -lm
   -ffast-math is allowed. In C++ write  pg_desc desc{};  for {0}. A whole program:

#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"
enum { N = 63 };                            // unknowns along each axis of the unit cube
static double u[N][N][N], f[N][N][N];       // u = 0 on the cube's sides
int main(void)
{
    const double pi = 3.14159265358979323846, w = pi / (N + 1);
    for (int k = 0; k < N; k++)             // the f of u = sin(pi x) sin(pi y) sin(pi z)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++)
                f[k][j][i] = 3 * pi * pi * sin(w * (i + 1)) * sin(w * (j + 1)) * sin(w * (k + 1));
    pg_desc desc = {0};                     // zeros: unit box, u = 0 at its sides, f64, host arrays
    desc.n[0] = desc.n[1] = desc.n[2] = N;
    pg_report report;
    if (pg_solve_once(&desc, u, f, &report) != PG_OK) return puts(pg_last_error(NULL)), 1;
    const double error = fabs(u[N / 2][N / 2][N / 2] - 1);
    printf("%s; error in the middle %.1e\n", report.message, error);
    return report.outcome != PG_CONVERGED || error > 3e-4;
}

   pg_solve_once is for a first try; pg_create, pg_solve, pg_get_report, pg_destroy for many solves,
   pg_set_faces, pg_set_alpha, pg_set_cells between them, pg_gradient and pg_get_parts after them;
   pg_smooth, pg_cycle, pg_apply, pg_residual, pg_norm, pg_dot are for a solver of your own. What is
   not there: irregular or refined meshes, complex numbers. The manual goes on below, at METHODS.

   RECIPES   Each is a part of a program in samples/.
   A pressure projection among obstacles (projection.c): v = v* - (dt/rho) grad p, v on the faces of
   cells, f = -(rho/dt) div v*. PG_NEUMANN, 0 at walls and inflow, PG_DIRICHLET, 0 at open sides; at
   walls, inflow and solids v* has its final value (moving ones: pg_set_cells). The divergence left
   is dt/rho times the residual: .norm = PG_NORM_MAX, .atol = rho/dt times its bound, no .rtol.
       desc.centring[0] = desc.centring[1] = PG_CELL;
       for (int side = 0; side < 4; side++) desc.face[side].kind = PG_NEUMANN;   // walls
       desc.cells.mask = mask;
       const pg_stop stop = {.rtol = 1e-12};
       pg_solver *solver = NULL;
       if (pg_create(&desc, &solver) || pg_solve(solver, p, f, &stop) ||
           pg_gradient(solver, p, 0, gx, PG_AT_FACES) || pg_gradient(solver, p, 1, gy, PG_AT_FACES))
           return puts(pg_last_error(solver)), 1;
       for (int q = 0; q < NY * (NX + 1); q++) vx[q] -= dt_over_rho * gx[q];
       for (int q = 0; q < (NY + 1) * NX; q++) vy[q] -= dt_over_rho * gy[q];
   Time steps (steps.c): alpha = 1/dt, f = u/dt + sources. Begin with the last u, and ask for a part
   of the residual it leaves, not of f; near a steady state give .atol, too. PG_DIRECT needs none.
       const pg_stop stop = {.guess = PG_GUESS_U, .rtol = 1e-6, .relative_to_first = 1};
   Device arrays, a stream, a CUDA graph of your own (own_stream.c): with PG_MEM_DEVICE a solve is
   asynchronous on desc.stream, and may be captured; the device decides when it has converged.
   Electrodes at 1 V (electrode.c, in r-z): unknowns inside are PG_AIR; each side between one and a
   fluid one has an air_value of 1, theta where the surface cuts it. Charge: the sum over these
   sides of pg_gradient, into the electrode, times beta, k and the other axes' w, see Stencil.

   CONVENTIONS
   Sign.     A u = alpha*u - div(beta grad u) = f: A has a positive diagonal. The potential of a
             charge density rho has f = rho/eps0, gravity f = -4 pi G rho.
   Layout.   Element (i,j,k) is at i + j*stride_j + k*stride_k; strides count elements, 0: packed. u
             and f have their own; either may be a window of a larger array: pass its first element.
   Centring  of the unknowns of each axis; its length is 1 unless h is given:
        PG_NODE, Dirichlet ends     PG_NODE, Neumann or Robin ends   PG_CELL, every kind
        g   0   1   2   3   g       0   1   2   3   4   5            | 0 | 1 | 2 | 3 | 4 | 5 |
        x---o---o---o---o---x       o---o---o---o---o---o            |-o-|-o-|-o-|-o-|-o-|-o-|
        h = length/(n+1)            h = length/(n-1)                 h = length/n
        end points are known        end points are unknowns          faces are half a cell outside
             Nodes with one Dirichlet end, or periodic, or with an open one: h = length/n.
   Stencil.  (1/w_i) [k_i (u_i - u_(i-1))/d_i + k_(i+1) (u_i - u_(i+1))/d_(i+1)] along each axis, of
             second order: d distances, w the length around an unknown times weight, k conductance;
             both are 1 unless given. On a uniform axis (2 u_i - u_(i-1) - u_(i+1))/h^2; at a
             Neumann node, where w = h/2, (2/h^2)(u_0 - u_1) = f_0 + 2 g/h.
   Faces     x low, x high, y low, ...: u = g (Dirichlet); du/dn = g along the OUTWARD normal
             (Neumann); a u + b du/dn = g, a*b >= 0, b != 0 (Robin); open: see below; periodic:
             both faces of the axis. g is 0, a constant, or an array over the face, packed over the
             other axes, the lower one fastest: [j + ny*k] on x faces, [i + nx*k] on y, [i + nx*j]
             on z. The flux into a cell, over beta, is (g - u)/(h/2), g, (g - a u)/(b + a h/2).
   Norms     PG_NORM_L2 sqrt(sum w r^2), w the product of the w of all axes; PG_NORM_L1 sum w |r|;
             PG_NORM_L2_PLAIN sqrt(sum r^2). A is self-adjoint in pg_dot, sum w x y.
   Singular  problems (alpha = 0, no Dirichlet or Robin end) need sum w f + boundary flux = 0. The
             excess of f is subtracted: report.removed_mean, and report.warning if it is more than
             rounding: mostly unbalanced in- and outflow, or, all periodic, a background. Of all u
             the one of mean 0 is returned. pg_cycle, pg_smooth, pg_residual do none of that. */
#ifndef POISSON_GPU_H
#define POISSON_GPU_H
#include <stddef.h>
#include <stdint.h>
#define PG_VERSION_MAJOR 0
#define PG_VERSION_MINOR 2
#define PG_VERSION_PATCH 0
#if !defined(PG_API) && defined(__GNUC__)   /* "static" for a file that includes the .cu */
#define PG_API __attribute__((visibility("default")))
#elif !defined(PG_API)
#define PG_API
#endif
#ifdef __cplusplus
extern "C" {
#endif
/* What calls return: first the caller's faults, then the machine's. Texts: pg_last_error. */
#define PG_STATUS_LIST(X)                                                                          \
    X(PG_OK, "done")                                                                               \
    X(PG_ERROR_ARGUMENT, "an argument or a field of the descriptor is not valid")                  \
    X(PG_ERROR_UNSUPPORTED, "this combination is not possible")                                    \
    X(PG_ERROR_MEMORY, "not enough memory, or the workspace is too small")                         \
    X(PG_ERROR_NO_DEVICE, "no usable CUDA device, or built without CUDA")                          \
    X(PG_ERROR_CUDA, "a CUDA call failed")                                                         \
    X(PG_ERROR_COMM, "ranks disagree, or one is missing or has failed")
/* How a solve ended; see TOLERANCES AND VERDICTS. */
#define PG_OUTCOME_LIST(X)                                                                         \
    X(PG_NOT_RUN, "not run")               /* no solve has been started with this solver        */ \
    X(PG_CONVERGED, "converged")           /* the residual of the u returned is small enough    */ \
    X(PG_COMPLETED, "completed")           /* max_iter iterations without a tolerance           */ \
    X(PG_MAX_ITER, "iteration limit")      /* max_iter iterations were not enough               */ \
    X(PG_STAGNATED, "stagnated")           /* round-off keeps the residual above the tolerance  */ \
    X(PG_DIVERGED, "diverged")             /* it grew by 1e8, or tenfold without falling        */ \
    X(PG_NOT_A_NUMBER, "not a number")     /* NaN or Inf in the data (u untouched), or later    */ \
    X(PG_CANCELLED, "cancelled")           /* the monitor said so, before the solve had ended   */ \
    X(PG_RESONANCE, "resonance")           /* PG_DIRECT: -alpha is an eigenvalue                */ \
    X(PG_BREAKDOWN, "breakdown")           /* BiCGStab divided by 0 again and again             */ \
    X(PG_RUNNING, "running")               /* only in what a monitor sees                       */
#define PG_ENUM_(name, text) name,
typedef enum pg_status { PG_STATUS_LIST(PG_ENUM_) PG_STATUS_COUNT } pg_status;
typedef enum pg_outcome { PG_OUTCOME_LIST(PG_ENUM_) PG_OUTCOME_COUNT } pg_outcome;
#undef PG_ENUM_
/* Choices. The value 0 is the default everywhere. */
typedef enum pg_centring { PG_NODE, PG_CELL } pg_centring;
typedef enum pg_face_kind { PG_DIRICHLET, PG_NEUMANN, PG_ROBIN, PG_PERIODIC, PG_OPEN,
                            PG_OPEN_SPECTRAL } pg_face_kind;
typedef enum pg_face_index { PG_X_LOW, PG_X_HIGH, PG_Y_LOW, PG_Y_HIGH,
                             PG_Z_LOW, PG_Z_HIGH } pg_face_index;
typedef enum pg_memory { PG_MEM_HOST, PG_MEM_DEVICE } pg_memory;         /* where arrays are */
typedef enum pg_backend { PG_AUTO, PG_CUDA, PG_CPU } pg_backend;         /* a GPU, else the CPU */
typedef enum pg_guess { PG_GUESS_DEFAULT, PG_GUESS_ZERO, PG_GUESS_U } pg_guess;
typedef enum pg_cell_kind { PG_FLUID, PG_SOLID, PG_AIR } pg_cell_kind;   /* solved; wall; u given */
typedef enum pg_where { PG_AT_FACES, PG_AT_UNKNOWNS } pg_where;          /* of pg_gradient */
typedef enum pg_norm_kind { PG_NORM_L2, PG_NORM_L2_PLAIN, PG_NORM_MAX, PG_NORM_L1 } pg_norm_kind;
enum {                              /* pg_desc.flags: a precision, a method, options, joined by | */
    PG_F64 = 0x1,                   /* precision: u, f and all arrays are double (default) */
    PG_F32 = 0x2,                   /* float; the residual stops near 1e-7 (4/h^2) |u|/|f| */
    PG_MIXED = 0x4,                 /* double; cycles, direct solves, preconditioners in float */
    PG_JACOBI = 0x10, PG_RBGS = 0x20, PG_SOR = 0x40,                     /* methods: see METHODS */
    PG_VCYCLE = 0x80, PG_WCYCLE = 0x100, PG_FMG = 0x200, PG_DIRECT = 0x400, PG_FASTEST = 0x800,
    PG_CG = 0x1000, PG_PIPECG = 0x2000, PG_BICGSTAB = 0x4000, PG_PIPEBICGSTAB = 0x8000,
    PG_SYMMETRIC = 0x100000,        /* option: pg_cycle from 0 is a symmetric positive operator */
    PG_KEEP_CYCLES = 0x4000000,     /* option: no exact solve where two axes vary, see METHODS */
    PG_UPWIND = 0x8000000,          /* option: velocity upwind; central needs |v| h < 2 beta */
    PG_COARSEN_CELLS = 0x10000000   /* option: a simpler coarse grid of a mask, to compare with */
};
typedef enum pg_smoother {          /* of multigrid */
    PG_SMOOTH_DEFAULT,              /* lines where one axis varies much, else red-black */
    PG_SMOOTH_RBGS = 0x10000, PG_SMOOTH_JACOBI = 0x20000,   /* red-black over-relaxed; damped */
    PG_SMOOTH_CHEBYSHEV = 0x40000,  /* Adams and others 2003; the only one with desc.cells */
    PG_SMOOTH_LINES = 0x80000       /* zebra lines along the axis that varies most */
} pg_smoother;
typedef enum pg_precond {           /* of Krylov methods */
    PG_PRECOND_DEFAULT,             /* PG_PRECOND_CYCLE; with a velocity DIRECT, or else AINV */
    PG_PRECOND_DIRECT = 0x8,        /* PG_DIRECT of a nearby operator (Concus, Golub 1973) */
    PG_PRECOND_CYCLE = 0x200000,    /* a multigrid V cycle from 0: 7 iterations at every size */
    PG_PRECOND_DIAGONAL = 0x400000, PG_PRECOND_NONE = 0x800000,   /* iterations grow like n */
    PG_PRECOND_AINV = 0x1000000,    /* M = D^-1 (9/4 - A D^-1) (Dubois 1979): half of these */
    PG_PRECOND_AINV2 = 0x2000000    /* 2 M - M A M: a third */
} pg_precond;
typedef enum pg_robust {            /* of multigrid with desc.cells: more work in a cycle */
    PG_ROBUST_AUTO,                 /* as the coefficients call for, see report.method */
    PG_ROBUST_RANDOM, PG_ROBUST_LABYRINTH,   /* media random from cell to cell; narrow passages */
    PG_ROBUST_BOTH, PG_ROBUST_OFF = -1       /* both, with most memory; neither */
} pg_robust;
enum {                              /* pg_dense_desc.flags: PG_F64, PG_F32, PG_JACOBI, PG_SOR, */
    PG_GAUSS_SEIDEL = PG_RBGS,      /* method (default): row after row, also on a GPU */
    PG_BACKWARD = 0x20000000,       /* option: from the last row to the first */
    PG_RESTORE = 0x40000000         /* option: a solve that diverges leaves u as it was */
};
#define PG_NONE (-1)                /* rtol: no tolerance; nu_pre, nu_post: no sweep */
#define PG_DEVICE(k) ((k) + 1)      /* for desc.device */
#define PG_HISTORY 128
typedef struct CUstream_st *pg_stream;   /* the same type as cudaStream_t */
typedef struct pg_solver pg_solver;
typedef struct pg_face {            /* a side of the box; see Faces */
    pg_face_kind kind; double value;/* g, one constant over the face; unused where array is given */
    const void *array;              /* g over the face, of u's precision; read at each solve */
    double a, b;                    /* Robin: a u + b du/dn = g */
} pg_face;
typedef struct pg_cell_value {      /* what air or a solid has beside a fluid cell */
    int cell[3], face;              /* i, j, k of the fluid cell; its side: PG_X_LOW, ... */
    double value, theta;            /* air's u, at theta of the way there (0: 1); a solid's du/dn */
} pg_cell_value;
typedef struct pg_cells {           /* obstacles and coefficients: see there. All 0: an empty box */
    const unsigned char *mask;      /* a pg_cell_kind a cell; 0: all fluid. Copied, as lists are */
    int64_t stride_mask[2];         /* stride_j, stride_k of this mask in bytes; 0: packed */
    const void *beta_face[3];       /* of faces: x [nz][ny][nx+1], y [nz][ny+1][nx], z ... */
    const void *beta_cell;          /* or of cells: a face has the harmonic mean of both */
    const void *openness[3];        /* open part of each face, 0 to 1, laid out alike */
    const void *alpha_cell;         /* added to alpha, >= 0 */
    const pg_cell_value *air_value; int air_values;     /* u in air where not 0: one a fluid side */
    const pg_cell_value *solid_flux; int solid_fluxes;  /* du/dn into solids where not 0: alike */
} pg_cells;
typedef struct pg_allocator {       /* in place of cudaMalloc and malloc; aligned to 256 */
    void *(*alloc)(void *user, size_t bytes, pg_memory memory, pg_stream stream);
    void (*free)(void *user, void *pointer, size_t bytes, pg_memory memory, pg_stream stream);
    void *user;
} pg_allocator;
typedef enum pg_comm_kind { PG_COMM_NCCL = 1, PG_COMM_MPI, PG_COMM_OWN } pg_comm_kind;
typedef struct pg_comm {            /* who solves together; kind 0: this process alone */
    int kind; const void *handle;   /* the ncclComm_t; the address of an MPI_Comm; a pg_transport */
} pg_comm;
typedef struct pg_rank_message {    /* messages of one pair of ranks match in their order */
    int peer; const void *send; void *receive;   /* the other rank, what it gets, what it sends */
    size_t send_bytes, receive_bytes;            /* 0: nothing */
} pg_rank_message;
typedef struct pg_transport {       /* of your own; functions return 0, or that they failed */
    size_t struct_size;             /* 0 or sizeof(pg_transport) */
    int rank, ranks; void *user;    /* this one, from 0; how many; for the functions */
    int (*gather)(void *user, const void *own, size_t bytes, void *all);   /* all bytes, in order */
    int (*exchange)(void *user, const pg_rank_message *messages, int count, pg_stream stream);
    void (*abort)(void *user);      /* may be NULL: make the functions of the others fail too */
} pg_transport;
typedef struct pg_desc {            /* a problem; copied by pg_create */
    size_t struct_size;             /* 0 or sizeof(pg_desc) */
    int n[3];                       /* unknowns along x, y, z; 0 or 1 along y, z: no such axis */
    int dim;                        /* 0: up to the last axis with n > 1 */
    pg_centring centring[3];        /* of each axis */
    double h[3];                    /* spacing; 0: length 1 along this axis */
    const double *coord[3];         /* or, h = 0: positions of edges or nodes; see AXES */
    const double *weight[3], *conductance[3];   /* metric at and between unknowns; see AXES */
    pg_face face[6];                /* x low, x high, y low, ... */
    double alpha, beta;             /* alpha >= 0, with PG_DIRECT of either sign; beta > 0, 0: 1 */
    pg_cells cells; pg_robust robust;   /* obstacles, coefficients */
    double velocity[3];             /* adds v du/dx; needs alpha > 0 or a Dirichlet, Robin face */
    int batch;                      /* problems solved in one call, see BATCHES; 0: one */
    int64_t stride_u[3], stride_f[3];   /* stride_j, stride_k, problem to problem; 0: packed */
    pg_memory memory;               /* where u, f, mask, coefficients, face arrays are */
    unsigned flags;                 /* precision, method, options; 0: PG_F64 | PG_FASTEST */
    pg_smoother smoother; pg_precond precond;   /* of multigrid; of Krylov methods */
    double omega;                   /* relaxation of sweeps or smoother, 0 to 2; 0: chosen */
    int nu_pre, nu_post;            /* smoothing sweeps, at most 16; 0: 2 and 1; PG_NONE: none */
    int fmg_cycles;                 /* V cycles on each level of PG_FMG, at most 16; 0: 1 */
    int coarsest;                   /* of the coarsest level, points an axis at most; 0: chosen */
    int inner_cycles;               /* PG_MIXED: float cycles for a double residual; 0: 2 */
    pg_backend backend; int device; /* PG_DEVICE(k): GPU k; 0: the calling thread's current one */
    pg_stream stream;               /* all work is ordered on it; 0: the legacy default stream */
    void *workspace; size_t workspace_bytes;    /* 0: allocated; else the back end's, 256-aligned */
    pg_allocator allocator;         /* 0: cudaMalloc or malloc */
    pg_comm comm;                   /* the ranks that solve together; 0: one */
    int lo[3], hi[3];               /* this rank's unknowns, lo <= i < hi; both 0: chosen */
    double time_limit;              /* seconds to wait for another rank; 0: 30; PG_NONE: for ever */
} pg_desc;
/* A u = f with a full matrix (Young 1971; Saad 2003, chapter 4). Converges if A is diagonally
   dominant, or symmetric, positive definite (PG_JACOBI, u + omega D^-1 (f - A u): not always). */
typedef struct pg_dense_desc {      /* copied by pg_dense_create, but A is yours */
    size_t struct_size;             /* 0 or sizeof(pg_dense_desc) */
    int n; int64_t lda;             /* unknowns; elements from row to row of A, 0: n */
    const void *A;                  /* row-major: A[i][j] at i*lda + j. Read by solves too */
    pg_memory memory; unsigned flags;   /* where A, u, f are; precision | method | options */
    double omega;                   /* 0 to 2; 0: 1, PG_SOR: by 50 power steps, see report.method */
    pg_backend backend; int device; pg_stream stream;                  /* all as in pg_desc */
    void *workspace; size_t workspace_bytes; pg_allocator allocator;
} pg_dense_desc;
typedef struct pg_report {          /* residual: f + boundary terms - A u of the u returned */
    pg_outcome outcome; int iterations; /* cycles, sweeps or Krylov iterations; an FMG pass: 1 */
    double rhs_norm;                /* || f with boundary terms (theta as 1) ||, the mean removed */
    double first_residual, residual;/* of the guess, of u; NaN where there was no tolerance */
    double floor;                   /* of the residual, by rounding f and u; NaN as above */
    double factor;                  /* residual after / before an iteration, lately; or NaN */
    double removed_mean;            /* what was subtracted from f of a singular problem */
    double milliseconds;            /* on the device, from the first to the last operation */
    int history_count; double history[PG_HISTORY];   /* residuals checked; the first of them */
    pg_backend backend;             /* PG_CUDA or PG_CPU */
    int problem;                    /* of a batch: the one that fared worst, told about here */
    char message[160];              /* the outcome in a sentence: what happened, what to try */
    char method[96];                /* the method, and what PG_FASTEST chose and why */
    int accelerated;                /* 1: PG_FMG used conjugate gradients, see METHODS */
    int singular_components;        /* with desc.cells: each has a mean of its own removed; or 0 */
    char warning[160];              /* what is unusual, or empty: a mean removed, a slow GPU code */
} pg_report;
typedef struct pg_stop {            /* when a solve ends; NULL in its place: all 0 */
    size_t struct_size;             /* 0 or sizeof(pg_stop) */
    double rtol;                    /* of || f with its boundary terms ||; 0: 1e-8, f32 1e-5 */
    double atol;                    /* or the residual itself: either will do; rtol 0: atol alone */
    int relative_to_first;          /* 1: rtol is against the residual of the guess */
    int min_iter, max_iter;         /* no check before; 0: 100 cycles, with cells 1000, or 10000 */
    int check;                      /* iterations from check to check; 0: 1, of sweeps 10 */
    pg_norm_kind norm;              /* of residuals; 0: PG_NORM_L2 */
    pg_guess guess;                 /* start from 0 or from u; the default: see METHODS */
    int (*monitor)(void *user, const pg_report *so_far); void *user;  /* at checks; not 0 cancels */
} pg_stop;
/* A call that is refused returns why, says what would help (pg_last_error), leaves u as it was and
   the solver usable. Arrays have the precision of flags. */
/* Create, solve with the default tolerance, report (or NULL), destroy. Look at report->outcome. */
PG_API pg_status pg_solve_once(const pg_desc *desc, void *u, const void *f, pg_report *report);
PG_API pg_status pg_create(const pg_desc *desc, pg_solver **solver);   /* NULL if it fails */
PG_API void pg_destroy(pg_solver *solver);   /* waits for its work; NULL is allowed */
/* The bytes that pg_create takes, of desc.workspace until pg_destroy. Reads no arrays. */
PG_API pg_status pg_workspace_bytes(const pg_desc *desc, size_t *bytes);
/* The descriptor with all defaults resolved; its tables are the solver's own. */
PG_API pg_status pg_query_desc(const pg_solver *solver, pg_desc *desc);
/* This rank's unknowns, lo <= i < hi along each axis, before anything is allocated. */
PG_API pg_status pg_query_part(const pg_desc *desc, int lo[3], int hi[3]);
/* Solve A u = f. u: guess and result; f: only read (u == f with PG_DIRECT and rtol PG_NONE alone).
   With device arrays and no monitor asynchronous on the stream, and legal in a capture. */
PG_API pg_status pg_solve(pg_solver *solver, void *u, const void *f, const pg_stop *stop);
/* Wait for the stream, and report on the last solve, also one that a captured graph replayed. */
PG_API pg_status pg_get_report(pg_solver *solver, pg_report *report);
/* Between solves: new boundary data; kinds and Robin's a and b stay those of pg_create. */
PG_API pg_status pg_set_faces(pg_solver *solver, const pg_face face[6]);
PG_API pg_status pg_set_alpha(pg_solver *solver, double alpha);       /* a new time step, say */
PG_API pg_status pg_set_stream(pg_solver *solver, pg_stream stream);  /* order it after the old */
/* What has changed of obstacles and coefficients; NULL fields stay as they are, arrays whose values
   changed are given again. Lists are at most as long as at pg_create, where values of 0 hold room;
   PG_NONE: none. Host arrays are checked; if refused, solves fail until good ones are given. */
PG_API pg_status pg_set_cells(pg_solver *solver, const pg_cells *cells);
/* du/dx, du/dy, du/dz (axis 0, 1, 2), exact where u is linear. PG_AT_FACES: n+1 values along the
   axis, packed like beta_face, (u_i - u_(i-1))/d_i; at the ends as Faces has it, along the axis;
   beside air its u is the other, theta d_i away, beside a solid solid_flux, 0 where openness is 0.
   Times beta and openness: the flux. PG_AT_UNKNOWNS: laid out like f, the mean of both faces; of
   nodes the nearer difference counts more, at a Neumann or Robin end node the end's alone. */
PG_API pg_status pg_gradient(pg_solver *solver, const void *u, int axis, void *out, pg_where where);
/* Pieces, asynchronous like pg_solve unless they return a number. u, x, y are laid out like u, f,
   r, v like f. Sweeps of the method, which flags must name, or of its smoother, on A u = f. */
PG_API pg_status pg_smooth(pg_solver *solver, void *u, const void *f, int sweeps);
/* V or W cycles, likewise; PG_MIXED: inner_cycles each. To precondition take u = 0, faces 0. */
PG_API pg_status pg_cycle(pg_solver *solver, void *u, const void *f, int cycles);
/* v = A u, boundary values taken as 0; and r = f + boundary terms - A u, where r may be f. */
PG_API pg_status pg_apply(pg_solver *solver, const void *u, void *v);
PG_API pg_status pg_residual(pg_solver *solver, const void *u, const void *f, void *r);
/* A norm of x, in double, NaN if x has one; the inner product sum w x y, y NULL: sum w x. */
PG_API pg_status pg_norm(pg_solver *solver, const void *x, pg_norm_kind kind, double *result);
PG_API pg_status pg_dot(pg_solver *solver, const void *x, const void *y, double *result);
/* The connected components of the fluid, by their first cells; waits. labels (or NULL): of all
   cells, -1 outside, packed, in desc.memory. *count: room in sums and volumes, then how many there
   are. On the host sums: sum w x, problem q at q * room (NULL: none); volumes (or NULL): sum w. */
PG_API pg_status pg_get_parts(pg_solver *solver, const void *x, int *labels, int *count,
                              double *sums, double *volumes);
/* As stop.monitor: shows iterations and residual on stderr, or on the FILE * that is stop.user. */
PG_API int pg_progress(void *file, const pg_report *so_far);
/* Dense systems; then pg_solve and others as before. 0 on the diagonal is refused with its row. */
PG_API pg_status pg_dense_create(const pg_dense_desc *desc, pg_solver **solver);
PG_API pg_status pg_dense_workspace_bytes(const pg_dense_desc *desc, size_t *bytes);
PG_API pg_status pg_dense_query_desc(const pg_solver *solver, pg_dense_desc *desc);
PG_API pg_status pg_dense_update(pg_solver *solver);   /* the values of A have changed; waits */
/* In a sentence, what was wrong with the last call with this solver, and what would help; NULL:
   with the last call that takes a descriptor, on this thread. */
PG_API const char *pg_last_error(const pg_solver *solver);
PG_API const char *pg_status_string(pg_status status);
PG_API const char *pg_outcome_string(pg_outcome outcome);
PG_API const char *pg_version(void);   /* and the GPUs it was compiled for, what was left out */
/* For bindings: every struct and field as compiled, in the order of this header. The first entry is
   "version", its size 10000 major + 100 minor + patch; the last one has no name. */
typedef struct pg_abi_entry { const char *name; size_t offset, size; } pg_abi_entry;
PG_API const pg_abi_entry *pg_abi(void);
#ifdef __cplusplus
}
#endif

/* METHODS   guess: what a solve begins with unless stop.guess is set. grids: memory beyond u and f
   in 3D, in double. takes: c desc.cells, v velocity, n alpha < 0, m PG_MIXED. What a method does
   not take, and options that it has no use for, are refused by name, with what would be accepted.
   method           what it is, and when to use it                             guess  grids  takes
   PG_FASTEST       PG_DIRECT or PG_FMG, the faster by estimate: the default     0     1.5   c-nm
   PG_DIRECT        fast transforms; at most one axis with coord, metric, Robin  -     0.4   --nm
   PG_FMG           full multigrid, one pass to discretisation error, V cycles   0     1.5   c--m
   PG_VCYCLE        V(2,1) cycles, 10 to 30 times less residual: time steps      u     1.5   c--m
   PG_WCYCLE        W cycles: where V cycles are slow, rarely                    u     1.5   c--m
   PG_CG            conjugate gradients: where cycles alone are slow             u     4.5   c--m
   PG_PIPECG        pipelined (Ghysels, Vanroose 2014): many ranks               u    10.5   c--m
   PG_BICGSTAB      van der Vorst 1992: with a velocity, and its default         u    10.5   cv-m
   PG_PIPEBICGSTAB  pipelined (Cools, Vanroose 2017): many ranks                 u    13.5   cv-m
   PG_RBGS          red-black Gauss-Seidel: smoothing, tiny grids, teaching      u     1     cv--
   PG_SOR           over-relaxed; omega: Young's, with cells or a velocity 1     u     1     cv--
   PG_JACOBI        Jacobi sweeps: the same purposes, slowest                    u     1     cv--
   Direct solves transform uniform axes and eliminate along the one that is not (Swarztrauber 1977);
   they are fast where n (n+1, n-1 of Dirichlet, Neumann nodes) has no large primes. Multigrid
   (Trottenberg, Oosterlee, Schueller 2001) coarsens the strongly coupled axes, so spacings may
   differ by 1:1000, and solves for whole lines along one that varies much. Up to 33^3 or 129^2
   points, and where two axes of up to 1024 points vary so that cycles would be slow, it solves
   exactly, by eigenvectors (Lynch, Rice, Thomas 1964), in one iteration. With longer axes, and with
   cells, PG_FMG is PG_CG around a symmetric cycle: report.accelerated.
   Terrain or tensors: a Krylov loop of your own with their product, preconditioned by pg_cycle(z =
   0, r) of a PG_SYMMETRIC solver with boundary values 0. Crank-Nicolson, (1/dt + A/2) u' = (1/dt -
   A/2) u + f: alpha = 2/dt; solve for u' with pg_residual of (u, 2 f) plus (4/dt) u.
TOLERANCES AND VERDICTS   What to test: that calls return PG_OK and report.outcome is PG_CONVERGED
   (PG_COMPLETED with rtol PG_NONE and atol 0, where nothing is checked). Then the residual of the u
   returned, worked out anew, is at most atol, or rtol || f with its boundary terms || (2 g/h^2
   beside a Dirichlet face of cells, say; the first residual where that is 0). Where a few rows have
   most of f, those of a large penalty in alpha_cell, say, others may be far from solved: give atol
   and PG_NORM_MAX, or a mask in place of the penalty. Rounding leaves about eps (||D u|| + ||f||)
   in the residual (report.floor; D the diagonal; 16 D with PG_DIRECT). A floor above the default
   tolerance, up to a tenth of f, replaces it, so that default options end in PG_CONVERGED.
   PG_STAGNATED: a tolerance below the floor, or more than a tenth of f lost in round-off; the
   message says whether PG_F64 helps. With a tolerance NaN and Inf are found before u is written.
   The residuals of BiCGStab may come back from far up: in f64 1e30 is what PG_DIVERGED means there.
   Where it does not converge, u is the one that had the least residual when that was worked out.
   With PG_OPEN_SPECTRAL there is no residual (NaN), and rtol 0 tests whether f and u are finite.
AXES   Skip this unless a spacing or a metric varies. coord is all n+1 edges of cells; of nodes
   all points with Dirichlet and open end points, and where periodic the first once more, a period
   on. weight w (n values > 0, at unknowns) and conductance k (n+1 between them, > 0, [0] and [n] at
   the ends, 0 closes an end) turn -d2/dx2 into -(1/w) d/dx (k d/dx); f is not multiplied by w.
   cylindrical r         w = k = r; a node at r = 0 is a Neumann end with w[0] = h/4, k[0] = 0
   Grad-Shafranov R      w = k = 1/R; from R = 0, where psi = 0: k[0] 2/h of nodes, 4/h of cells
   (r, theta)            multiply by r^2; w = 1/r, k = r along r, theta plain
   spherical (r, theta)  multiply by r^2; w = 1, k = r^2 along r; w = k = sin theta along theta
   spherical r; layers   w = k = r^2; w = k = beta(x), f/beta, alpha 0
OPEN BOUNDARIES   Skip this unless a face is PG_OPEN: beyond it f is 0 and u that of the same
   equation in infinite space. For PG_DIRECT or PG_FASTEST, alpha >= 0, no cells, velocity,
   PG_MIXED, ranks. The face opposite may be closed; h is length/n, of nodes too. Of one such axis
   coord and metric go on as they end. With more, u is f convolved with the infinite grid's Green's
   function: uniform axes, no Robin face, g = 0 beyond the box, 5 grids or more, no new alpha. Q =
   sum w f (images at Neumann faces, too) need not be 0. Where nothing else holds u it goes to 0
   with three open axes, to -Q log(r)/(2 pi beta) with two, Q per length of the third; with one,
   what is constant along the others is -sum w f |x - x'|/(2 beta) or, x from a Neumann face, g = 0,
   -sum w f max(x, x')/beta. pg_gradient is of the last u; pg_apply, pg_residual are refused. With
   PG_OPEN_SPECTRAL at all faces u has all digits of a smooth f that is 0 at the sides.
OBSTACLES AND COEFFICIENTS   Skip this unless desc.cells is given; not with a velocity. A cell is
   what an unknown stands for, of nodes too. A solid has no flux, or solid_flux, half way to it. Air
   has u = 0, or air_value, at its unknown or, with theta, at that part of the way from the fluid's:
   u is of second order then (Gibou and others 2002). Values for one side add up, with one theta,
   for all of a batch; 0 counts too. u is 0 outside the fluid, f not read. A link conducts beta
   k/(theta d), beta from beta_face or the harmonic mean of beta_cell, 1e-30 to 1e30 also outside
   the fluid, times desc.beta and openness, where 0 closes it (cut cells: Batty, Bertails, Bridson
   2007). Arrays are yours and read by every solve; of host ones on a GPU, of ranks, and of
   alpha_cell with a theta, pg_create and pg_set_cells take copies. A connected component with no
   air, alpha, Dirichlet or Robin face is singular by itself: f loses its mean there, u has mean 0.
   theta counts as 1e-4 (f32 1e-3) at least; later lists may have it if pg_create's has (1 will do).
   floating conductor    beta_face 1e6 (f32 1e3) inside, beta/theta around it; f of a cell charge/w
   sheet charge sigma    sigma |n| k/w to f of a link's ends, 1 - theta of it where theta begins
   jumps of u, du/dn     f - c J at both ends of a link, -c its entry of A, J = [u] + [u'] x + [u'']
                         x^2/2, beyond less here, x from the surface to the end beyond; second order
   between elements      beta_face is their mean by width; a charge's parts go by their beta
   PG_FASTEST and PG_FMG are PG_CG around one symmetric cycle, whose coarse cells keep apart what is
   not connected; if that fails they go on with PG_PRECOND_AINV2 (report.warning). robust is decided
   by the coefficients, at pg_create and in pg_set_cells; a captured graph keeps the choice.
BATCHES   Problem q of desc.batch begins at q * stride_u[2] in u, q * stride_f[2] in f; its face
   arrays follow those of q-1. Each has its own tolerance; the report is of the worst, times of all.
SEVERAL RANKS   Skip this unless several processes or GPUs solve one problem together. With an
   MPI_Comm world, -DPG_USE_MPI and mpicxx: desc.comm.kind = PG_COMM_MPI, desc.comm.handle = &world;
   pg_query_part tells which lo to hi - 1 of u and f are this rank's: slabs along the last axis
   unless desc.lo, hi are given. The descriptor is of the whole problem, the same on all ranks; u,
   f, face arrays along the last axis, arrays of cells are this rank's; lists are whole. All ranks
   call together, but for setters of alpha and faces, which must agree. Where one is refused all
   are, and nothing has happened. After time_limit without an answer a call is PG_ERROR_COMM, u
   undefined, only pg_destroy possible. Graphs: all capture, instantiate and upload theirs before
   one launches. Threads as ranks need CUDA_MODULE_LOADING=EAGER. Sums, and solves that have them,
   agree with those of one rank to round-off, all else on the CPU bit by bit. More: bench/README.md.
MEMORY, STREAMS, THREADS   Nothing is allocated after pg_create. Host arrays on a GPU are copied
   in and out (2 grids more); the call waits. A captured solve has the u, f, alpha and faces of its
   call; the solver must outlive the graph. Before CUDA 12.4 (or with PG_NO_CONDITIONAL) the host
   drives solves, and none is captured. A solver belongs to one thread at a time. The same input on
   the same device gives the same bits, for any number of threads; CPU and GPU to round-off.
   On a CPU OpenMP has a thread for 32768 unknowns at most; beside programs that want the cores too,
   set OMP_WAIT_POLICY=passive before the program starts: threads that wait then give theirs away.
SWITCHES of compilation. What is left out is refused by name: PG_NO_F32 (and PG_MIXED),
   PG_NO_DIRECT, PG_NO_KRYLOV, PG_NO_CELLS, PG_NO_DENSE, PG_NO_RANKS, PG_NO_CUDA.
   Others: PG_USE_MPI, PG_USE_NCCL, PG_NO_PEERS (bench/README.md), PG_NO_CONDITIONAL, PG_API. */
#endif /* POISSON_GPU_H */
/* LICENCE - choose either.
A. MIT License. Copyright (c) 2026 the poisson_gpu authors. Permission is hereby granted, free of
charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to
use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
to permit persons to whom the Software is furnished to do so, subject to the following conditions:
The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR
PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING
FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
B. Public Domain (www.unlicense.org). This is free and unencumbered software released into the
public domain. Anyone is free to copy, modify, publish, use, compile, sell, or distribute this
software, either in source code form or as a compiled binary, for any purpose, commercial or
non-commercial, and by any means. In jurisdictions that recognize copyright laws, the author or
authors of this software dedicate any and all copyright interest in the software to the public
domain. We make this dedication for the benefit of the public at large and to the detriment of our
heirs and successors. We intend this dedication to be an overt act of relinquishment in perpetuity
of all present and future rights to this software under copyright law. THE SOFTWARE IS PROVIDED "AS
IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT
OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE. */
