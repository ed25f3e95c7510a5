/* poisson_gpu - solve  alpha*u - div(beta grad u) = f  on box grids in 1D, 2D and 3D, on an NVIDIA
   GPU or on the CPU. Two files: this header (C99, C++) and poisson_gpu.cu. Compile that one with

       nvcc -O3 -std=c++17 -arch=native -Xcompiler -fopenmp -c poisson_gpu.cu     GPU and CPU
       c++ -x c++ -std=c++17 -O3 -fopenmp -c poisson_gpu.cu                       CPU, without CUDA

   and link with  nvcc main.c poisson_gpu.o -lcufft -Xcompiler -fopenmp  or, for the CPU,
   cc main.c poisson_gpu.o -fopenmp -lstdc++ -lm. nvcc takes minutes, see the README.
   -ffast-math is allowed. In C++ write  pg_desc desc{};  where C has {0}. A whole program:

#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"

enum { N = 63 };                            // unknowns along each axis of the unit cube
static double u[N][N][N], f[N][N][N];       // u = 0 on the cube's sides

static double sine(int i) { return sin(3.14159265358979323846 * (i + 1) / (N + 1)); }

int main(void)
{
    const double c = 3 * 3.14159265358979323846 * 3.14159265358979323846;
    for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) f[k][j][i] = c * sine(i) * sine(j) * sine(k);

    pg_desc desc = {0};                     // zeros: unit box, u = 0 at its sides, f64, host arrays
    desc.n[0] = desc.n[1] = desc.n[2] = N;
    pg_report report;
    if (pg_solve_once(&desc, u, f, &report) != PG_OK) {
        puts(pg_last_error(NULL));
        return 1;
    }
    double error = 0;                       // the exact solution is sine(i) sine(j) sine(k)
    for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++)
                error = fmax(error, fabs(u[k][j][i] - sine(i) * sine(j) * sine(k)));
    printf("%s; largest error %.1e\n", report.message, error);
    return report.outcome != PG_CONVERGED || error > 3e-4;
}

   Functions                                                       may be called
       pg_solve_once                                               for a first try: does all of it
       pg_create  pg_destroy  pg_workspace_bytes  pg_query_desc    once per shape of problems
       pg_solve  pg_get_report                                     as often as f changes
       pg_set_faces  pg_set_alpha  pg_set_stream                   between solves, at no cost
       pg_set_cells                                                between solves: some cycles' time
       pg_gradient  pg_get_parts                                   after a solve
       pg_smooth  pg_cycle  pg_apply  pg_residual  pg_norm  pg_dot for a solver of your own
       pg_progress                                                 as stop.monitor: shows a bar
       pg_dense_create  pg_dense_update  ...                       dense systems; see DENSE SYSTEMS
       pg_query_part                                               several ranks; see SEVERAL RANKS
       pg_last_error  pg_status_string  pg_outcome_string  pg_version  pg_abi
   What it does not do: irregular or refined meshes, free-space boundaries, complex numbers, masks
   and coefficient fields on nodes. The manual goes on behind the declarations, from METHODS on.

   RECIPES   Each is a part of a program in samples/.

   A pressure projection among obstacles (projection.c): v = v* - (dt/rho) grad p, v on the faces of
   cells, f = -(rho/dt) div v*. The divergence that is left is dt/rho times the residual, cell by
   cell: .norm = PG_NORM_MAX and .atol bound the largest. A wall or an inflow, whose velocity v* has
   already: PG_NEUMANN, 0. An open side: PG_DIRICHLET, 0. A body that moves has its velocity in v*
   on its faces; pg_set_cells takes the next mask.

       desc.h[0] = desc.h[1] = h;
       desc.centring[0] = desc.centring[1] = PG_CELL;
       for (int side = 0; side < 4; side++) desc.face[side].kind = PG_NEUMANN;   // walls
       desc.cells.mask = &mask[0][0];
       const pg_stop stop = {.rtol = 1e-12};
       pg_solver *solver = NULL;
       pg_report report = {0};
       if (pg_create(&desc, &solver) || pg_solve(solver, p, f, &stop) ||
           pg_gradient(solver, p, 0, gx, PG_AT_FACES) ||
           pg_gradient(solver, p, 1, gy, PG_AT_FACES) || pg_get_report(solver, &report))
           return puts(pg_last_error(solver)), 1;
       for (int j = 0; j < NY; j++)
           for (int i = 0; i <= NX; i++) vx[j][i] -= dt_over_rho * gx[j][i];
       for (int j = 0; j <= NY; j++)
           for (int i = 0; i < NX; i++) vy[j][i] -= dt_over_rho * gy[j][i];

   Time steps (steps.c): begin with the last u, and with relative_to_first ask for a part of what it
   leaves, not of f. PG_FMG and the default method begin with 0 unless told.

       const pg_stop stop = {.guess = PG_GUESS_U,        // begin with the u of the last step
                             .rtol = 1e-6,
                             .relative_to_first = 1};    // against what the guess leaves
       for (int step = 0; step < STEPS; step++) {
           for (int j = 0; j < N; j++)
               for (int i = 0; i < N; i++) f[j][i] = u[j][i] / dt + heat[j][i];
           if (pg_solve(solver, u, f, &stop)) return puts(pg_last_error(solver)), 1;
       }

   Device arrays, a stream and a CUDA graph of your own (own_stream.c): with PG_MEM_DEVICE a solve
   is asynchronous on desc.stream, and may be captured; the device itself decides when it has
   converged.

       CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
       step(solver, u, f, bytes, memory, stream);                // copies u to f, calls pg_solve
       CUDA(cudaStreamEndCapture(stream, &graph));
       CUDA(cudaGraphInstantiateWithFlags(&replay, graph, 0));
       for (int s = 0; s < steps; s++) CUDA(cudaGraphLaunch(replay, stream));
       CUDA(cudaStreamSynchronize(stream));                      // the host waits once

   Cylindrical coordinates with an electrode at 1 V (electrode.c): the equation and f are multiplied
   by r; x is z, y is r. The electrode is of PG_AIR cells, where u is given, and its surface half a
   cell from the centres beside it: hence the factor 2. Then desc.cells has beta_face[0] = along,
   beta_face[1] = across, the mask, air_value = one_volt, air_values = count. The flux through a
   face is beta_face times pg_gradient; its sum over the surface times the area is the charge.
   Without electrodes use desc.weight and conductance, see AXES, and PG_DIRECT is possible.

       for (int j = 0; j <= NR; j++)
           for (int i = 0; i < NZ; i++) across[j][i] = fmax(j * h, 1e-20);   // r, above 0
       for (int j = 0; j < NR; j++)
           for (int i = 0; i <= NZ; i++) along[j][i] = (j + 0.5) * h;        // f has it, too
       for (int j = 0; j < NR; j++)
           for (int i = 0; i < NZ; i++)
               for (int side = 0; side < 4 && !in_electrode(i, j); side++) {
                   const int x = side == 0 ? -1 : side == 1, y = side == 2 ? -1 : side == 3;
                   if (!in_electrode(i + x, j + y)) continue;
                   one_volt[count++] = (pg_cell_value){{i, j, 0}, side, 1};
                   *(x ? &along[j][i + (x > 0)] : &across[j + (y > 0)][i]) *= 2;    // closer
               }

   CONVENTIONS
   Sign.     A u = alpha*u - beta*laplacian(u) = f: A has a positive diagonal. A potential of charge
             density rho has f = rho/eps0, gravity f = -4 pi G rho.
   Layout.   i fastest: element (i,j,k) is at i + j*stride_j + k*stride_k; strides count elements, 0
             means packed. u and f have strides of their own: either may be a window of a larger
             array (pass the address of its first element). nz = 1 is a 2D problem, ny = nz = 1 1D.
   Centring  of the unknowns, for each axis:

        PG_NODE, Dirichlet ends     PG_NODE, Neumann or Robin ends   PG_CELL, every kind
        g   0   1   2   3   g       0   1   2   3   4   5            | 0 | 1 | 2 | 3 | 4 | 5 |
        x---o---o---o---o---x       o---o---o---o---o---o            |-o-|-o-|-o-|-o-|-o-|-o-|
        h = length/(n+1)            h = length/(n-1)                 h = length/n
        end points are known        end points are unknowns          faces are half a cell outside

             One Dirichlet end, or periodic: h = length/n. The default length is 1 along each axis.
   Stencil.  A row has (1/w_i) [k_i (u_i - u_(i-1))/d_i + k_(i+1) (u_i - u_(i+1))/d_(i+1)] along
             each axis: distances d, w the length that belongs to the unknown times weight, k the
             conductance (1 unless given). On a uniform axis (2 u_i - u_(i-1) - u_(i+1))/h^2; a
             Neumann node has w = h/2, so (2/h^2)(u_0 - u_1) = f_0 + 2 g/h. Second order in h.
   Faces     in the order x low, x high, y low, ...: u = g (Dirichlet); du/dn = g along the OUTWARD
             normal (Neumann); a u + b du/dn = g, a*b >= 0, b != 0 (Robin); periodic: both faces of
             the axis. g is 0, a constant, or an array over the face, packed over the other axes,
             the lower one fastest: ny*nz values [j + ny*k] on an x face, [i + nx*k] on y, [i +
             nx*j] on z. The flux into a cell at a face, over beta, is (g - u)/(h/2) where
             Dirichlet, g where Neumann, (g - a u)/(a h/2 + b) where Robin.
   Norms     of finite values: PG_NORM_L2 = sqrt(sum w r^2), w the product of these lengths of all
             axes; PG_NORM_L2_PLAIN = sqrt(sum r^2); PG_NORM_MAX; PG_NORM_L1 = sum w |r|. A is
             self-adjoint in the inner product sum w x y, which is pg_dot's.
   Singular  problems (alpha = 0, no Dirichlet or Robin end): f must satisfy sum w f + boundary flux
             = 0. What must be subtracted from f for that is subtracted, told in
             report.removed_mean, and in report.warning where it is more than rounding: unbalanced
             in- and outflow, mostly. Of all u the one of mean 0 is returned. pg_cycle, pg_smooth,
             pg_residual do none of that. */

#ifndef POISSON_GPU_H
#define POISSON_GPU_H

#include <stddef.h>
#include <stdint.h>

#define PG_VERSION_MAJOR 0
#define PG_VERSION_MINOR 2
#define PG_VERSION_PATCH 0

#ifndef PG_API    /* linkage of the functions; "static" for a file that includes the .cu */
#if defined(__GNUC__)
#define PG_API __attribute__((visibility("default")))
#else
#define PG_API
#endif
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
    X(PG_COMPLETED, "completed")           /* no tolerance; max_iter iterations were done       */ \
    X(PG_MAX_ITER, "iteration limit")      /* max_iter iterations were not enough               */ \
    X(PG_STAGNATED, "stagnated")           /* round-off keeps the residual above the tolerance  */ \
    X(PG_DIVERGED, "diverged")             /* the residual grows                                */ \
    X(PG_NOT_A_NUMBER, "not a number")     /* NaN or Inf in the data (u untouched), or later    */ \
    X(PG_CANCELLED, "cancelled")           /* the monitor said so                               */ \
    X(PG_RESONANCE, "resonance")           /* PG_DIRECT: -alpha is an eigenvalue                */ \
    X(PG_BREAKDOWN, "breakdown")           /* BiCGStab divided by 0 again and again             */ \
    X(PG_RUNNING, "running")               /* only in what a monitor sees                       */

#define PG_ENUM_(name, text) name,
typedef enum pg_status { PG_STATUS_LIST(PG_ENUM_) PG_STATUS_COUNT } pg_status;
typedef enum pg_outcome { PG_OUTCOME_LIST(PG_ENUM_) PG_OUTCOME_COUNT } pg_outcome;
#undef PG_ENUM_

/* Choices. The value 0 is the default everywhere. */
typedef enum pg_centring { PG_NODE, PG_CELL } pg_centring;
typedef enum pg_face_kind { PG_DIRICHLET, PG_NEUMANN, PG_ROBIN, PG_PERIODIC } pg_face_kind;
typedef enum pg_face_index {
    PG_X_LOW, PG_X_HIGH, PG_Y_LOW, PG_Y_HIGH, PG_Z_LOW, PG_Z_HIGH
} pg_face_index;
typedef enum pg_memory { PG_MEM_HOST, PG_MEM_DEVICE } pg_memory;   /* where arrays are */
typedef enum pg_backend { PG_AUTO, PG_CUDA, PG_CPU } pg_backend;   /* 0: a GPU, else the CPU */
typedef enum pg_guess { PG_GUESS_DEFAULT, PG_GUESS_ZERO, PG_GUESS_U } pg_guess;
typedef enum pg_cell_kind { PG_FLUID, PG_SOLID, PG_AIR } pg_cell_kind;   /* air: u is given */
typedef enum pg_where { PG_AT_FACES, PG_AT_UNKNOWNS } pg_where;          /* of pg_gradient */
typedef enum pg_norm_kind {
    PG_NORM_L2, PG_NORM_L2_PLAIN, PG_NORM_MAX, PG_NORM_L1
} pg_norm_kind;

/* pg_desc.flags: a precision, a method (see METHODS) and options, joined by | */
enum {
    PG_F64 = 0x1,                   /* precision: u, f and all arrays are double (default) */
    PG_F32 = 0x2,                   /* float; the residual stops near 1e-7 (4/h^2) |u|/|f| */
    PG_MIXED = 0x4,                 /* double; cycles, direct solves, preconditioners in float */
    PG_JACOBI = 0x10,               /* method: stationary sweeps, */
    PG_RBGS = 0x20,                 /* red-black Gauss-Seidel, */
    PG_SOR = 0x40,                  /* over-relaxed; */
    PG_VCYCLE = 0x80,               /* multigrid V(2,1) cycles, */
    PG_WCYCLE = 0x100,              /* W cycles, */
    PG_FMG = 0x200,                 /* full multigrid, then V cycles; */
    PG_DIRECT = 0x400,              /* fast transforms, without iterations; */
    PG_FASTEST = 0x800,             /* PG_DIRECT or PG_FMG, the faster one by estimate (default); */
    PG_CG = 0x1000,                 /* conjugate gradients, */
    PG_PIPECG = 0x2000,             /* pipelined: sums overlap products; */
    PG_BICGSTAB = 0x4000,           /* BiCGStab, also for a velocity, */
    PG_PIPEBICGSTAB = 0x8000,       /* pipelined */
    PG_SYMMETRIC = 0x100000,        /* option: pg_cycle from 0 is a symmetric positive operator */
    PG_KEEP_CYCLES = 0x4000000,     /* option: no exact solve where two axes vary, see METHODS */
    PG_UPWIND = 0x8000000,          /* option: velocity by upwind differences */
    PG_COARSEN_CELLS = 0x10000000   /* option: a simpler coarse grid of a mask, to compare with */
};
typedef enum pg_smoother {          /* of multigrid */
    PG_SMOOTH_DEFAULT,              /* lines where one axis varies much, else red-black */
    PG_SMOOTH_RBGS = 0x10000,       /* red-black Gauss-Seidel, slightly over-relaxed */
    PG_SMOOTH_JACOBI = 0x20000,     /* damped Jacobi */
    PG_SMOOTH_CHEBYSHEV = 0x40000,  /* Chebyshev over the upper spectrum (Adams and others 2003) */
    PG_SMOOTH_LINES = 0x80000       /* zebra lines along the axis that varies most */
} pg_smoother;
typedef enum pg_precond {           /* of Krylov methods; see METHODS */
    PG_PRECOND_DEFAULT,             /* PG_PRECOND_CYCLE; PG_PRECOND_AINV where that is impossible */
    PG_PRECOND_DIRECT = 0x8,        /* PG_DIRECT of a nearby operator (Concus, Golub 1973) */
    PG_PRECOND_CYCLE = 0x200000,    /* a multigrid V cycle from 0 */
    PG_PRECOND_DIAGONAL = 0x400000, /* the inverse diagonal */
    PG_PRECOND_NONE = 0x800000,     /* none */
    PG_PRECOND_AINV = 0x1000000,    /* M = D^-1 (9/4 - A D^-1) on A's stencil (Dubois 1979) */
    PG_PRECOND_AINV2 = 0x2000000    /* 2 M - M A M */
} pg_precond;
typedef enum pg_robust {            /* multigrid with desc.cells: more work in a cycle */
    PG_ROBUST_AUTO,                 /* as the coefficients call for, see report.method */
    PG_ROBUST_RANDOM,               /* for media that are random from cell to cell */
    PG_ROBUST_LABYRINTH,            /* for long narrow passages */
    PG_ROBUST_BOTH,                 /* both; most memory */
    PG_ROBUST_OFF = -1              /* neither */
} pg_robust;
enum {                              /* pg_dense_desc.flags: PG_F64, PG_F32, PG_JACOBI, PG_SOR, */
    PG_GAUSS_SEIDEL = PG_RBGS,      /* method (default) */
    PG_BACKWARD = 0x20000000,       /* option: from the last row to the first */
    PG_RESTORE = 0x40000000         /* option: a solve that diverges leaves u as it was */
};

#define PG_NONE (-1)                /* rtol: no tolerance; nu_pre, nu_post: no sweep */
#define PG_DEVICE(k) ((k) + 1)      /* for desc.device */
#define PG_HISTORY 128

typedef struct CUstream_st *pg_stream;   /* the same type as cudaStream_t */
typedef struct pg_solver pg_solver;

typedef struct pg_face {            /* a side of the box; see Faces */
    pg_face_kind kind;
    double value;                   /* g, one constant over the face; unused where array is given */
    const void *array;              /* g over the face, of u's precision; read at each solve */
    double a, b;                    /* Robin: a u + b du/dn = g */
} pg_face;

typedef struct pg_cell_value {      /* what air or a solid has beside a fluid cell */
    int cell[3];                    /* i, j, k of the fluid cell */
    int face;                       /* its side: PG_X_LOW, ... */
    double value;                   /* of air u; of a solid du/dn along the normal into the solid */
} pg_cell_value;

typedef struct pg_cells {           /* obstacles and coefficients: see there. All 0: an empty box */
    const unsigned char *mask;      /* a pg_cell_kind a cell; 0: all fluid. Copied */
    int64_t stride_mask[2];         /* stride_j, stride_k in bytes; 0: packed */
    const void *beta_face[3];       /* of faces: x [nz][ny][nx+1], y [nz][ny+1][nx], z ... */
    const void *beta_cell;          /* or of cells: a face has the harmonic mean of both */
    const void *openness[3];        /* open part of each face, 0 to 1, laid out alike */
    const void *alpha_cell;         /* added to alpha, >= 0 */
    const pg_cell_value *air_value; /* u in air, where not 0: an entry a side. Copied */
    int air_values;                 /* how many */
    const pg_cell_value *solid_flux;/* du/dn into solids, where not 0. Copied */
    int solid_fluxes;               /* how many */
} pg_cells;

typedef struct pg_allocator {       /* in place of cudaMalloc and malloc; aligned to 256 */
    void *(*alloc)(void *user, size_t bytes, pg_memory memory, pg_stream stream);
    void (*free)(void *user, void *pointer, size_t bytes, pg_memory memory, pg_stream stream);
    void *user;
} pg_allocator;

typedef enum pg_comm_kind { PG_COMM_NCCL = 1, PG_COMM_MPI, PG_COMM_OWN } pg_comm_kind;
typedef struct pg_comm {            /* who solves together; kind 0: this process alone */
    int kind;
    const void *handle;             /* the ncclComm_t; the address of an MPI_Comm; a pg_transport */
} pg_comm;

typedef struct pg_rank_message {    /* messages of one pair of ranks match in their order */
    int peer;                       /* the other rank */
    const void *send;               /* what it gets; 0 bytes: nothing */
    void *receive;                  /* what it sends */
    size_t send_bytes, receive_bytes;
} pg_rank_message;

typedef struct pg_transport {       /* of your own; functions return 0, or that they failed */
    size_t struct_size;             /* 0 or sizeof(pg_transport) */
    int rank, ranks;                /* this one, from 0; how many */
    void *user;
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
    const double *coord[3];         /* or, h = 0: cell edges, or nodes; see AXES */
    const double *weight[3];        /* metric at the unknowns, n values > 0; see AXES */
    const double *conductance[3];   /* metric between them, n+1 values > 0, at ends >= 0 */
    pg_face face[6];                /* x low, x high, y low, ... */
    double alpha;                   /* >= 0; with PG_DIRECT of either sign */
    double beta;                    /* > 0; 0 means 1 */
    pg_cells cells;                 /* obstacles and coefficients that vary; needs PG_CELL */
    pg_robust robust;               /* with cells: how much work a cycle does */
    double velocity[3];             /* adds v du/dx along each axis; see AXES */
    int batch;                      /* problems solved in one call, see BATCHES; 0: one */
    int64_t stride_u[3];            /* stride_j, stride_k, from problem to problem; 0: packed */
    int64_t stride_f[3];
    pg_memory memory;               /* where u, f, mask, coefficients, face arrays are */
    unsigned flags;                 /* precision, method, options; 0: PG_F64 | PG_FASTEST */
    pg_smoother smoother;           /* of multigrid */
    pg_precond precond;             /* of Krylov methods */
    double omega;                   /* relaxation of sweeps or smoother, 0 to 2; 0: chosen */
    int nu_pre, nu_post;            /* smoothing sweeps, at most 16; 0: 2 and 1; PG_NONE: none */
    int fmg_cycles;                 /* V cycles on each level of PG_FMG, at most 16; 0: 1 */
    int coarsest;                   /* the coarsest level has at most so many points an axis */
    int inner_cycles;               /* PG_MIXED: float cycles for a double residual; 0: 2 */
    pg_backend backend;             /* PG_AUTO, PG_CUDA, PG_CPU */
    int device;                     /* PG_DEVICE(k): GPU k; 0: the calling thread's current one */
    pg_stream stream;               /* all work is ordered on it; 0: the legacy default stream */
    void *workspace;                /* 0: allocated; else memory of the back end, aligned to 256, */
    size_t workspace_bytes;         /* at least pg_workspace_bytes, yours again after pg_destroy */
    pg_allocator allocator;         /* 0: cudaMalloc or malloc */
    pg_comm comm;                   /* the ranks that solve together; 0: one */
    int lo[3], hi[3];               /* this rank's unknowns, lo <= i < hi; both 0: chosen */
    double time_limit;              /* seconds to wait for another rank; 0: 30; PG_NONE: for ever */
} pg_desc;

typedef struct pg_dense_desc {      /* A u = f with n x n values; copied, but A is yours */
    size_t struct_size;             /* 0 or sizeof(pg_dense_desc) */
    int n;                          /* unknowns */
    int64_t lda;                    /* elements from row to row of A; 0: n */
    const void *A;                  /* row-major: A[i][j] at i*lda + j. Read by solves too */
    pg_memory memory;               /* where A, u and f are */
    unsigned flags;                 /* PG_JACOBI, PG_GAUSS_SEIDEL, PG_SOR, and options */
    double omega;                   /* 0 to 2; 0: 1, with PG_SOR estimated */
    pg_backend backend;             /* these as in pg_desc */
    int device;
    pg_stream stream;
    void *workspace;
    size_t workspace_bytes;
    pg_allocator allocator;
} pg_dense_desc;

typedef struct pg_report {          /* residual: f + boundary terms - A u of the u returned */
    pg_outcome outcome;
    int iterations;                 /* cycles, sweeps or Krylov iterations; an FMG pass is one */
    double rhs_norm;                /* || f with its boundary terms ||, the mean removed */
    double first_residual;          /* of the guess */
    double residual;                /* of u; NaN where there was no tolerance */
    double floor;                   /* of the residual, by rounding u alone; NaN as above */
    double factor;                  /* residual after / before an iteration, lately; or NaN */
    double removed_mean;            /* what was subtracted from f of a singular problem */
    double milliseconds;            /* on the device, from the first to the last operation */
    int history_count;              /* residuals checked; the first PG_HISTORY are in history */
    double history[PG_HISTORY];     /* [0] is first_residual */
    pg_backend backend;             /* PG_CUDA or PG_CPU */
    int problem;                    /* of a batch: the one that fared worst, told about here */
    char message[160];              /* the outcome in a sentence: what happened, what to try */
    char method[96];                /* the method, and what PG_FASTEST chose and why */
    int accelerated;                /* 1: PG_FMG used conjugate gradients, see METHODS */
    int singular_components;        /* of the fluid, each with a mean of its own removed */
    char warning[160];              /* what is unusual, or empty: a mean removed, a slow GPU code */
} pg_report;

typedef struct pg_stop {            /* when a solve ends; NULL in its place: all 0 */
    size_t struct_size;             /* 0 or sizeof(pg_stop) */
    double rtol;                    /* of || f with its boundary terms ||; 0: 1e-8, f32 1e-5 */
    double atol;                    /* or a bound of the residual itself; alone: no rtol */
    int relative_to_first;          /* 1: rtol is against the residual of the guess */
    int min_iter;                   /* no check between the first and this many iterations */
    int max_iter;                   /* 0: 100 cycles, 1000 with cells, else 10000 */
    int check;                      /* iterations from check to check; 0: 1, of sweeps 10 */
    pg_norm_kind norm;              /* of residuals; 0: PG_NORM_L2 */
    pg_guess guess;                 /* start from 0 or from u; the default: see METHODS */
    int (*monitor)(void *user, const pg_report *so_far);   /* at each check; not 0: cancel. Waits */
    void *user;
} pg_stop;

/* -------------------------------------------------------------------------------------------------
   Create, solve, report, destroy. All calls return a pg_status but for pg_destroy and texts. A call
   that is refused says why (pg_last_error), leaves u as it was and the solver usable. */

/* Create, solve with the default tolerance, report (or NULL), destroy. Look at report->outcome. */
PG_API pg_status pg_solve_once(const pg_desc *desc, void *u, const void *f, pg_report *report);

/* A solver for problems of one shape, yours until pg_destroy; NULL where it fails. Checks the whole
   descriptor first. Costs milliseconds: tables, one allocation, on a GPU the graphs of solves. */
PG_API pg_status pg_create(const pg_desc *desc, pg_solver **solver);
PG_API void pg_destroy(pg_solver *solver);   /* waits for its work; NULL is allowed */

/* The bytes of workspace that pg_create takes for this descriptor, exactly. Reads no arrays. */
PG_API pg_status pg_workspace_bytes(const pg_desc *desc, size_t *bytes);
/* The descriptor with every default resolved, which creates the same solver again. Tables and lists
   are the solver's own copies, there until pg_destroy. */
PG_API pg_status pg_query_desc(const pg_solver *solver, pg_desc *desc);
/* This rank's unknowns, lo <= i < hi along each axis, before anything is allocated. */
PG_API pg_status pg_query_part(const pg_desc *desc, int lo[3], int hi[3]);

/* Solve A u = f, arrays of the precision in flags. u: guess, result; f: only read. With device
   arrays and no monitor asynchronous on the stream, and legal in a capture. PG_DIRECT without a
   tolerance (rtol PG_NONE) also solves in place, u == f. Also solves dense systems. */
PG_API pg_status pg_solve(pg_solver *solver, void *u, const void *f, const pg_stop *stop);
/* Wait for the stream, and report on the last solve, also one that a captured graph replayed. */
PG_API pg_status pg_get_report(pg_solver *solver, pg_report *report);

/* Between solves. New boundary data; kinds and Robin's a and b stay those of pg_create. */
PG_API pg_status pg_set_faces(pg_solver *solver, const pg_face face[6]);
/* A new alpha: a new time step, say. Negative where the method is PG_DIRECT. */
PG_API pg_status pg_set_alpha(pg_solver *solver, double alpha);
/* What has changed of obstacles and coefficients; NULL fields stay as they are. Give arrays again
   if their values changed. Lists are at most as long as at pg_create (entries of value 0 hold room
   there); their number PG_NONE: no entries. Host arrays, and lists beside a host mask, are checked;
   after a refusal solves fail until a call succeeds. Coarse levels are made anew. */
PG_API pg_status pg_set_cells(pg_solver *solver, const pg_cells *cells);
/* A new stream, which you order after the work on the old one. */
PG_API pg_status pg_set_stream(pg_solver *solver, pg_stream stream);

/* du/dx, du/dy, du/dz (axis 0, 1, 2) with the boundary data; exact where u is linear, second order.
   PG_AT_FACES: n+1 values along the axis, packed like beta_face: (u_i - u_(i-1))/d_i; at the ends
   what Faces says there, along the axis. Beside air (u_air - u)/h, beside a solid its solid_flux, 0
   where two cells are not fluid or openness is 0. The flux is beta times openness times it.
   PG_AT_UNKNOWNS: the layout of f, the mean of both sides. */
PG_API pg_status pg_gradient(pg_solver *solver, const void *u, int axis, void *out, pg_where where);

/* Pieces, asynchronous as pg_solve is unless they return a number. u, x, y have the layout of u,
   f, r, v that of f. pg_smooth, pg_cycle: the method must be named in flags. */
/* Sweeps of the method or of the smoother on A u = f. */
PG_API pg_status pg_smooth(pg_solver *solver, void *u, const void *f, int sweeps);
/* V or W cycles; of PG_MIXED steps of inner_cycles each. As a preconditioner: u = 0, faces 0. */
PG_API pg_status pg_cycle(pg_solver *solver, void *u, const void *f, int cycles);
/* v = A u, boundary values taken as 0. */
PG_API pg_status pg_apply(pg_solver *solver, const void *u, void *v);
/* r = f + boundary terms - A u. r may be f. */
PG_API pg_status pg_residual(pg_solver *solver, const void *u, const void *f, void *r);
/* A norm of x, accumulated in double in a fixed order; waits. A NaN in x makes it NaN. */
PG_API pg_status pg_norm(pg_solver *solver, const void *x, pg_norm_kind kind, double *result);
/* The inner product sum w x y; y NULL: the integral sum w x. Waits. */
PG_API pg_status pg_dot(pg_solver *solver, const void *x, const void *y, double *result);

/* The connected components of the fluid, numbered in the order of their first cells; waits. labels
   (or NULL): one of each cell, -1 outside, packed, in desc.memory. *count: in, how many sums and
   volumes have room for; out, how many there are. sums: sum w x over each, batch after batch;
   volumes (or NULL): sum w. Both in host memory; x NULL: no sums. */
PG_API pg_status pg_get_parts(pg_solver *solver, const void *x, int *labels, int *count,
                              double *sums, double *volumes);

/* As stop.monitor: shows iterations and residual on stderr, or on the FILE * that is stop.user. */
PG_API int pg_progress(void *file, const pg_report *so_far);

/* Dense systems; then pg_solve, pg_get_report, pg_set_stream, pg_destroy as of all solvers. A value
   of 0 on the diagonal is refused with its row. */
PG_API pg_status pg_dense_create(const pg_dense_desc *desc, pg_solver **solver);
PG_API pg_status pg_dense_workspace_bytes(const pg_dense_desc *desc, size_t *bytes);
PG_API pg_status pg_dense_query_desc(const pg_solver *solver, pg_dense_desc *desc);
PG_API pg_status pg_dense_update(pg_solver *solver);   /* the values of A have changed; waits */

/* Texts. pg_last_error: one sentence, what was wrong and what would help; there until the next call
   with this solver. solver NULL: of the functions that take a descriptor, on this thread. */
PG_API const char *pg_last_error(const pg_solver *solver);
PG_API const char *pg_status_string(pg_status status);
PG_API const char *pg_outcome_string(pg_outcome outcome);
PG_API const char *pg_version(void);   /* and the GPUs it was compiled for, what was left out */

/* For bindings: every struct and field of this header as it was compiled, in order; the first entry
   is "version", with 10000 major + 100 minor + patch as its size, the last one has no name. */
typedef struct pg_abi_entry {
    const char *name;               /* "pg_desc", "pg_desc.alpha" */
    size_t offset, size;
} pg_abi_entry;
PG_API const pg_abi_entry *pg_abi(void);

#ifdef __cplusplus
}
#endif

/* =================================================================================================
   METHODS   Guess: 0 or u, unless stop.guess says otherwise. Grids: memory beyond u and f in 3D, in
   double. Takes: c obstacles and coefficients, v a velocity, n negative alpha, m PG_MIXED.

   method            when                                                   guess   grids   takes
   PG_FASTEST        the default                                            0       1.5     c-nm
   PG_DIRECT         fastest; at most one axis with coord, metric, Robin    -       0.4     --nm
   PG_FMG            everything else; one pass has the discretisation error 0       1.5     c--m
   PG_VCYCLE         time steps; the residual falls by 10 to 30 a cycle     u       1.5     c--m
   PG_WCYCLE         where V cycles fall slowly: rarely                     u       1.5     c--m
   PG_CG             where cycles alone are slow                            u       4.5     c--m
   PG_PIPECG         where sums are slow: many ranks                        u       10.5    c--m
   PG_BICGSTAB       with a velocity                                        u       8.5     cv-m
   PG_PIPEBICGSTAB   the same on many ranks                                 u       11.5    cv-m
   PG_RBGS           smoothing, tiny grids, teaching                        u       1       cv--
   PG_SOR            the same with Young's omega, found by itself           u       1       cv--
   PG_JACOBI         the same, slowest                                      u       1       cv--
   What a method does not take, and options that it has no use for, are refused by name, with what
   would be accepted. PG_DIRECT: transforms along uniform axes, elimination along the one that is
   not (Swarztrauber 1977); lengths n (n+1, n-1 of Dirichlet, Neumann nodes) without large primes
   are fast. Multigrid (Trottenberg, Oosterlee, Schueller 2001) coarsens the strongly coupled axes,
   so spacings may differ by 1:1000; where one axis varies much it solves for whole lines along it;
   up to 33^3 or 129^2 points, and where cycles would be slow because two axes vary (up to 1024
   points each), it solves exactly, by products with eigenvectors (Lynch, Rice, Thomas 1964):
   report.method says so. With longer axes, and with cells, PG_FMG is PG_CG around a symmetric
   cycle: report.accelerated. Krylov methods (Hestenes, Stiefel 1952; van der Vorst 1992; pipelined:
   Ghysels, Vanroose 2014, Cools, Vanroose 2017) take a preconditioner. Grids of PG_CG, PG_PIPECG,
   PG_BICGSTAB, PG_PIPEBICGSTAB with

   PG_PRECOND_CYCLE     4.5   10.5   8.5   11.5   7 iterations to 1e-8 on a cube, at every size
   PG_PRECOND_DIAGONAL  3     7      7     10     iterations grow like n, as with PG_PRECOND_NONE
   PG_PRECOND_AINV      4     10     8     11     half of these; PG_PRECOND_AINV2 a third
   PG_PRECOND_DIRECT    3.1   9.1    7.1   10.1   spacings that vary by 1:10: 29 in 2D, 77 in 3D

   PG_MIXED has the accuracy of double at the speed of float: cycles, direct solves and the first
   and last of these preconditioners run in float, residuals in double. A Krylov method of your own:
   precondition by pg_cycle(z = 0, r) of a PG_SYMMETRIC solver without boundary values; so terrain,
   tensors or an operator on your side need nothing but their product.

   TOLERANCES AND VERDICTS   PG_CONVERGED: the residual of the u that is returned, worked out anew,
   is at most rtol || f with its boundary terms || (2 g/h^2 beside a Dirichlet face of cells, say)
   or atol. u is rounded, which alone leaves about eps || D u || (report.floor; D the diagonal; 16
   times that with PG_DIRECT). The default tolerance is 1e-8, PG_F32 1e-5, or this floor where that
   is higher and at most a tenth of f: expect PG_CONVERGED of every problem with default options.
   PG_STAGNATED: a tolerance below the floor, or more than a tenth of f lost in round-off; the
   message says whether PG_F64 helps. PG_DIVERGED: the residual grew by 1e8, or tenfold without
   falling. No tolerance (rtol PG_NONE, atol 0): exactly max_iter iterations, nothing is checked.
   NaN and Inf are found, also under -ffast-math, before u is written wherever there is a tolerance.
   Crank-Nicolson, (1/dt + A/2) u' = (1/dt - A/2) u + f: alpha = 2/dt; pg_residual of (u, 2 f) gives
   2 f - A u - (2/dt) u; add (4/dt) u to it and solve for u'.

   AXES   Skip this unless spacing, metric or a velocity varies.
   coord     along an axis: all n+1 edges of cells; of nodes all points with the Dirichlet end
             points, and where periodic the first point once more, a period on.
   weight, conductance   turn -d2/dx2 into -(1/w) d/dx (k d/dx): w at the unknowns, k between them,
             [0] and [n] at the ends. k = 0 at an end closes it. f is not multiplied by w.
             Cylindrical r: w = k = r; a node at r = 0 is a Neumann end with w[0] = h/4, k[0] = 0.
             Grad-Shafranov R: w = k = 1/R; down to R = 0, where psi = 0, k[0] is 2/h of nodes, 4/h
             of cells: 1/R halfway to the wall. (r, theta): multiply by r^2; w = 1/r, k = r along r,
             theta plain. Spherical r: w = k = r^2. Spherical (r, theta): multiply by r^2; w = 1, k
             = r^2 along r, w = k = sin theta along theta. Layers beta(x): w = k = beta, f/beta,
             alpha 0.
   velocity  needs alpha > 0 or a Dirichlet or Robin face. Central differences, which need |v| h < 2
             beta to be free of wiggles, or with PG_UPWIND first order ones. BiCGStab by default.

   OBSTACLES AND COEFFICIENTS   Skip this unless desc.cells is given. All axes PG_CELL, any faces,
   any spacing, no metric, no velocity.
   Mask      PG_FLUID: an unknown. PG_SOLID: a wall, no flux or one of solid_flux. PG_AIR: u is
             known, 0 or a value of air_value, at the centre of the air cell. u is set to 0 outside
             the fluid, f there is not read. Entries for one side add up; all problems of a batch
             have them.
   beta      of faces or of cells, 1e-30 to 1e30, also where a cell is not fluid; desc.beta and
             openness multiply it (cut cells: Batty, Bertails, Bridson 2007), openness 0 closes a
             face; alpha_cell adds a zeroth-order term (linearised Poisson-Boltzmann). Arrays are
             yours, and read by every solve; host arrays on a GPU, and those of ranks, are copied by
             pg_create and pg_set_cells.
   Singular  A connected component of the fluid without air, Dirichlet or Robin face and alpha
             beside it is singular by itself: f loses its mean there, u has mean 0 there. See
             pg_get_parts.
   Recipes   A surface of an electrode or liquid at theta h from the centre of a fluid cell: divide
             the beta_face beside air by theta (Gibou and others 2002); 1/2 where it is the face of
             the cell. Nodes where u is known: take cells around the nodes, of the same spacing,
             with air where u is known. A floating conductor: beta_cell 1e6 to 1e9 in it, and in f,
             in any of its cells, the charge that it has. A sheet of charge between two dielectrics:
             share it among the cells beside it in proportion to their beta. Faces without flux:
             openness 0.
   Methods   PG_FASTEST, PG_FMG: PG_CG around one symmetric cycle, whose coarse cells keep apart
             what is not connected. 8 to 12 iterations to 1e-8 at 65^3 among obstacles, closed
             cavities, free surfaces, porous media and jumps of 1e6; 38 where every cell differs
             from its neighbours by decades. robust: the library decides by the coefficients, at
             pg_create and in pg_set_cells; in a graph that was captured the choice stays. Where the
             cycle does not do, PG_CG goes on with PG_PRECOND_AINV2, and report.warning says so.
   Memory    PG_CG with the cycle in 3D, double: 9.5 grids, with robust 31, 3 more where that may be
             chosen; float 15 and 58. bench/README.md has more, and times.

   BATCHES   Skip this unless desc.batch > 1. Problem q begins at q * stride_u[2] in u, q *
   stride_f[2] in f; its face arrays follow those of q-1. They share tables, alpha, kinds and
   constants. PG_DIRECT solves all in the same kernels, others one after the other, each to its own
   tolerance. The report is that of the problem that fared worst; times are of all. Pieces act on
   all.

   SEVERAL RANKS   Skip this unless several processes or GPUs solve one problem together.

       MPI_Comm world = MPI_COMM_WORLD;                     // compiled with -DPG_USE_MPI, mpicxx
       desc.comm.kind = PG_COMM_MPI, desc.comm.handle = &world;
       pg_query_part(&desc, lo, hi);                        // u and f of this rank: lo to hi - 1

   Parts     are slabs along the last axis, even unless lo and hi are given. The descriptor is that
             of the whole problem, and the same on all ranks; u, f, their strides, face arrays along
             the last axis and arrays of cells are this rank's part; lists are whole.
   Calls     of all ranks together, but for setters of alpha and faces, which must agree. Where one
             is refused all are, and nothing has happened. A rank that does not answer within
             time_limit makes the call PG_ERROR_COMM; u is undefined then, and only pg_destroy is
             possible.
   Bits      Sweeps, cycles, pg_apply, pg_residual on the CPU are those of one rank; sums, and
             solves that have them, agree to round-off, and are the same run after run.
   GPUs      of one host as ranks write into each other's memory; -DPG_USE_NCCL brings them together
             by an ncclComm_t, and carries all where they cannot reach each other. Device arrays
             that are packed and 16-aligned are used in place. Threads as ranks need
             CUDA_MODULE_LOADING=EAGER. Graphs: all capture, instantiate and upload theirs before
             one launches.
   Refused   by name: parts along x; exact solves, line relaxation along the last axis, and masks on
             more than 3e6 points a level, which every rank would have whole; fewer than 1 to 5
             planes a rank.

   DENSE SYSTEMS   Skip this unless A is a full matrix (Young 1971; Saad 2003, chapter 4). PG_JACOBI
   u' = u + omega D^-1 (f - A u); PG_GAUSS_SEIDEL and PG_SOR row after row, each with the newest
   values, also on a GPU. omega 0 of PG_SOR: 50 power steps estimate Jacobi's spectral radius,
   report.method tells it. A sweep reads A once, a check once more (every ten sweeps; PG_JACOBI has
   it for nothing). Converges if A is diagonally dominant, or symmetric and positive definite
   (PG_JACOBI: not always).

   MEMORY, STREAMS, THREADS, REPEATABILITY   Nothing is allocated after pg_create. Host arrays on a
   GPU are copied in and out (2 grids more), and the call waits. Multigrid takes 1.5 grids in 3D, 2
   in 2D, 3.8 in 1D; PG_DIRECT 0.4 in 3D, 1.2 in 2D. A captured solve has the u, f, alpha and faces
   of its call; the solver must outlive the graph. Before CUDA 12.4 (or with PG_NO_CONDITIONAL) the
   host drives solves, with the same bits, and none is captured. OpenMP uses at most a thread for
   32768 unknowns; beside other programs set OMP_WAIT_POLICY=passive. A solver belongs to one thread
   at a time; two solvers never affect each other. The same input on the same device gives the same
   bits, run after run, for any number of threads; CPU and GPU to round-off.

   SWITCHES of compilation; what is left out is refused by name. PG_NO_F32 (and PG_MIXED),
   PG_NO_DIRECT (no -lcufft then), PG_NO_KRYLOV, PG_NO_CELLS, PG_NO_DENSE, PG_NO_RANKS, PG_NO_CUDA;
   PG_USE_MPI, PG_USE_NCCL, PG_NO_PEERS (GPUs do not write into each other's memory),
   PG_NO_CONDITIONAL, PG_API.

   CHANGED IN 0.2   pg_set_cells(&cells) for pg_set_mask, pg_set_coefficients, pg_set_cell_values;
   mask, beta_face, ... are in desc.cells. desc.smoother, desc.precond for PG_SMOOTH_...,
   PG_PRECOND_... in flags. pg_dot(x, NULL) for pg_sum. desc.robust has names; desc.procs is gone.
   Dense solvers are pg_solver, with pg_solve, pg_get_report, pg_set_stream, pg_destroy,
   pg_last_error.
   LICENCE   MIT or public domain, at your choice; see the end of this file. */
#endif /* POISSON_GPU_H */

/* -------------------------------------------------------------------------------------------------------------------
LICENCE - choose either.

A. MIT License. Copyright (c) 2026 the poisson_gpu authors.
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions: The above copyright notice and this permission notice
shall be included in all copies or substantial portions of the Software.
THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

B. Public Domain (www.unlicense.org). This is free and unencumbered software released into the public domain.
Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software, either in source code form or as a
compiled binary, for any purpose, commercial or non-commercial, and by any means. In jurisdictions that recognize copyright
laws, the author or authors of this software dedicate any and all copyright interest in the software to the public domain.
We make this dedication for the benefit of the public at large and to the detriment of our heirs and successors. We intend
this dedication to be an overt act of relinquishment in perpetuity of all present and future rights to this software under
copyright law.
THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS BE
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF
OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
------------------------------------------------------------------------------------------------------------------- */
