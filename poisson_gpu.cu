// poisson_gpu.cu - the implementation of poisson_gpu.h. Compiles with nvcc (GPU and CPU back ends) or as C++17 (CPU
// only).
//
// Floors, from the ground up; a floor uses only what stands below it. Search for the tag.
//     >>config      includes, switches, sizes
//     >>structs     the operator as tables, grids, levels, device state, solver
//     >>points      host and device arithmetic: rows, right-hand side, relaxation, transfers, control steps
//     >>lines       one axis on the host: geometry, coarsening, tables, interpolation weights, eigenvectors
//     >>cpu         the operations on the CPU
//     >>cuda        the operations on the GPU: kernels, >>passes over memory, >>tiles, launchers, graphs
//     >>levels      the hierarchy, and the tables of its levels
//     >>direct      transforms along uniform axes, elimination along the remaining one
//     >>layout      where everything lies in the workspace
//     >>ops         the tables of operations: what the sections below call on either back end
//     >>smoothing   sweeps and smoothers
//     >>multigrid   V, W and FMG cycles
//     >>solve       the whole solve as one program, written once for all methods and back ends
//     >>validation  every default and every check of a descriptor
//     >>public      the functions of the header
//     >>dense       dense systems: sweeps over a matrix, in the same loops, with the same verdicts
//
// Names: pg_ is public, pgi_ internal. i, j, k index unknowns along x, y, z; u solution, f right-hand side, r residual,
// e correction. Level 0 is the finest.

// -------------------------------------------------------------------------------------------------------------------
// >>config
// -------------------------------------------------------------------------------------------------------------------
#include "poisson_gpu.h"

#include <cfloat>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef _OPENMP
#include <omp.h>
#endif
// What the switches of the header leave
#ifdef PG_NO_F32
#define PGI_F32 0
#else
#define PGI_F32 1
#endif
#ifdef PG_NO_CUDA
enum { pgi_no_cuda = 1 };
#else
enum { pgi_no_cuda = 0 };
#endif
#ifdef PG_NO_DIRECT
#define PGI_DIRECT 0
#undef PG_USE_FFTW
#else
#define PGI_DIRECT 1
#endif

#ifdef PG_NO_DENSE
#define PGI_DENSE 0
#else
#define PGI_DENSE 1
#endif

// What serves only what is left out has no user then.
#if !PGI_F32 || !PGI_DIRECT
#ifdef __CUDACC__
#pragma nv_diag_suppress 177
#endif
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunneeded-internal-declaration"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#endif

#if (defined(__CUDACC__) && !defined(PG_NO_CUDA)) || defined(PGI_SIMT)
#define PGI_GPU 1    // the GPU back end: for GPUs, or with PGI_SIMT for the CPU (test/simt)
#include <cuda_runtime.h>
#if PGI_DIRECT
#include <cufft.h>
#endif
#ifdef PGI_SIMT
#include <cuda_pipeline_primitives.h>
#endif
#define PGI_HD __host__ __device__
#else
#define PGI_GPU 0
#define PGI_HD
#endif
#ifdef PG_USE_FFTW
#include <fftw3.h>
#endif

#if PGI_GPU && CUDART_VERSION >= 12040 && !defined(PG_NO_CONDITIONAL)
#define PGI_CONDITIONAL 1    // graphs loop on the device
#else
#define PGI_CONDITIONAL 0    // the host repeats bodies of loops, which do nothing once a flag on the device says so
#endif

#ifdef __CUDA_ARCH__
#define PGI_ROLLED _Pragma("unroll 1")
#define PGI_UNROLLED _Pragma("unroll")
#define PGI_ASSUME(condition) __builtin_assume(condition)
#else
#define PGI_ROLLED
#define PGI_UNROLLED
#define PGI_ASSUME(condition) ((void)0)
#endif
#if defined(PGI_SIMT) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900)
#define PGI_CLUSTERS(code) code
#else
#define PGI_CLUSTERS(code)
#endif

#ifdef _OPENMP
#define PGI_OMP(text) _Pragma(#text)
#else
#define PGI_OMP(text)
#endif

// Compiled twice where the compiler can: for AVX2 and for any machine; the program takes its choice when it starts.
// Without FMA, so both round alike. (The choice is made before ThreadSanitizer is ready for it.)
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                           \
    !defined(__SANITIZE_THREAD__)
#define PGI_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define PGI_WIDE
#endif

#ifndef PGI_MODES_WORK
#define PGI_MODES_WORK 4500000    // points times the sum of the sizes of a level that is solved exactly: 34^3, 131^2
#endif
#ifndef PGI_EXACT
#define PGI_EXACT 1024    // points per axis of a whole problem that is solved so because cycles would be slow, at most
#endif
#define PGI_OVERLAP PGI_CONDITIONAL    // kernels of small levels start early
#ifndef PGI_PASS_POINTS
#define PGI_PASS_POINTS 1000000    // levels with fewer take plain kernels, whose code is soon fetched
#endif
#ifndef PGI_CACHED_POINTS
#define PGI_CACHED_POINTS 2000000    // from here on residuals are restricted in tiles; in 2D from four times as many
#endif

enum {
    PGI_MAX_LEVELS = 100,      // three axes of 2^31 coarsened one after the other are 93
    PGI_MODES = 132,           // points per axis of a level that is solved exactly: at most,
    PGI_MODES_LEAST = 8,       // and so many always can be
    PGI_MODES_PLANE = 2048,    // and of its (x, y) planes, which lie in shared memory
    PGI_WINDOW = 10,           // fine points a coarse one can depend on along an axis: 2.5 : 1 both ways, and a margin
    PGI_CUBIC_END = 4,         // rows at each end of a uniform axis whose cubic weights are stored
    PGI_MAX_SWEEPS = 16,
    PGI_FLOOR = 1,              // times the round-off of D u: the floor of the residual, see pgi_floor_of
    PGI_W_VISITS = 32,          // a W-cycle visits no level more often: semi-coarsening can take 90 levels
    PGI_CHUNKS = 256,           // fixed pieces of a CPU reduction, so that the sum does not depend on the threads
    PGI_REDUCE_BLOCKS = 528,    // and of a GPU reduction
    PGI_BLOCK = 256,            // threads of a block
    PGI_MARCH = 64,             // planes that a sweep marches through at most
    PGI_PLANES = 32,            // and a transfer, which keeps their weights in shared memory
    PGI_SERIAL = 32768,         // points below which OpenMP costs more than it gives
    PGI_SHARED_SURE = 49152,    // bytes of shared memory that every block can have
    PGI_LINE_BLOCK = 16,        // rows of an elimination whose pivots are worked out again together
    PGI_TILE = 8,               // columns that the CPU transforms or eliminates side by side
    PGI_SLOTS = 64,             // and how many such tiles at the same time, at most
    PGI_RADIX = 7,              // the largest prime factor of a length that blocks transform,
    PGI_LARGE_RADIX = 127,      // and the largest one that cuFFT takes without a detour
    PGI_SMALL2D = 128,          // per axis: up to here one kernel solves a 2D problem; instead of cuFFT, to twice that
    PGI_DOTS = 5,               // inner products of a pass of a Krylov method: at most
    PGI_ALIGN = 256             // bytes
};

// -------------------------------------------------------------------------------------------------------------------
// >>structs
// -------------------------------------------------------------------------------------------------------------------

// A row of an axis' three-point operator: lower (u_below - u) + upper (u_above - u) + reaction u. Differences, because
// a sum over a rounded diagonal loses alpha, weak axes and, beside a large constant, the whole residual. reaction: from
// Dirichlet and Robin ends.
template <class T> struct pgi_row {
    T lower, upper, reaction;
};

// One axis of the operator on one level. A uniform axis keeps three rows: low end, inside, high end; others a table.
template <class T> struct pgi_axis {
    int n, periodic;
    int seam;    // odd periodic axis: its last plane has colours of its own
    pgi_row<T> row[3];
    double row_weight[3];
    const pgi_row<T> *table;    // n rows, or NULL
    const double *weight;       // n, or NULL
};

// How an axis is coarsened to the next level.
enum pgi_transfer_kind { PGI_SAME, PGI_NODES, PGI_CELLS, PGI_MERGED };
enum { PGI_TAPS = 4 };
template <class T> struct pgi_taps {    // coarse value `coarse` = sum of w[q] times fine value first + q, endlessly
    int first, coarse;
    T w[PGI_TAPS];
};
template <class T> struct pgi_transfer {
    int kind, nf, nc;         // fine and coarse unknowns
    int mf, mc;               // fine and coarse intervals between the same two ends
    int shift;                // 1 where point 0 is a Dirichlet end and no unknown
    int periodic, adjoint;    // adjoint: restriction is the weighted adjoint of prolongation, else the overlap average
    double inverse;           // 1 / mf (nodes), 1 / (2 mf) (cells)
    T end[2];                 // face value over the first (last) unknown's, for a correction: 0 Dirichlet, 1 Neumann
    const int *place;         // nf: coarse unknown at or below, -1 beyond the first; NULL: evenly spaced
    const T *fraction;        // nf: how far to the next one (beyond an end: in half coarse cells)
    const pgi_taps<T> *taps;    // nc, by first: the restriction of a residual; NULL: more points than fit
    int most_taps;
    int regular;          // coarse point j has `regular` taps from fine point 2 j on, of the same weights for all j
    T tap[PGI_TAPS];      // these; regular 0: it is not so
    int longest, open;    // points of the longest window, residual or average; windows that a fine point lies in
    double reach;         // windows of m coarse points in a row lie within reach + (m - 1) mf / mc fine ones
    const int *cubic_index;    // rows of 8: four points with the face conditions, four without; -1, -2: low, high face
    const T *cubic_weight;
    int cubic_rows;    // nf, or 2 * PGI_CUBIC_END
};

// The eigenvectors of a level's axes, of which the operator is the sum: a product with `to`[point][mode] says how much
// of each mode there is, one with `from`[mode][point] goes back.
template <class T> struct pgi_modes {
    const double *value[3];
    const T *to[3], *from[3];
};

#if PGI_F32
typedef float pgi_narrowest;
#else
typedef double pgi_narrowest;
#endif

struct pgi_state;
enum { PGI_RECENT = 5 };    // checks that report.factor is the average of, and one

// The operator of a level as kernels see it.
template <class T> struct pgi_box {
    pgi_axis<T> axis[3];
    const pgi_state *state;
};
template <class T> struct pgi_transfers {
    pgi_transfer<T> axis[3];
};

// Where a grid lives. The caller's arrays change from call to call while graphs stay: they are reached through a cell.
struct pgi_grid {
    void *base;    // element (0,0,0), or where its address is kept
    int indirect;
    int64_t sj, sk;
    int64_t problem;    // from one of a batch to the next, where an operation takes several
};

// The boundary data of a level, in a table: kernels that need them are few.
struct pgi_faces {
    double coefficient[6];    // what g is multiplied with in the end rows
    const void *plane[6];     // the level's own data, in its precision; NULL: the caller's
    int n[3];
    unsigned mask;    // bit q: face q has a coefficient
    int scaled;       // PG_MIXED: f and the planes are in units of 1/state.scale
};

// The right-hand side of a level: f alone, or (with faces) f less the removed mean and with the boundary data.
struct pgi_rhs {
    pgi_grid f;
    const pgi_faces *faces;
};

// What the device knows of a solve. Host memory on the CPU back end.
struct pgi_krylov_state {
    double rho;                   // the inner product that begins a direction; 0: there is none
    double alpha, beta, omega;    // steps along p, of p, and of BiCGStab's second half
    double before[2];             // rho and alpha of the iteration before
    double shadow;                // BiCGStab: <r0, r0>
    double unit;                  // of sums, that of rho and shadow
    int last_verified;            // the iteration in which the residual was last worked out from u
    double verified;              // its norm
    double believed;              // what the recurrence had for it
    int broken, breakdowns;       // BiCGStab has divided by 0; restarts for that
    int broken_at;                // the iteration of the last one
};

struct pgi_state {
    void *u, *f;            // the caller's arrays, or their copies
    double alpha, omega;    // omega: of the sweeps, where it can change between solves
    struct {
        double value;
        const void *plane;
    } face[6];
    unsigned face_mask;    // bit q: face q has data that are not 0
    pg_stop stop;
    int window;              // checks without progress that mean stagnation near the floor; growth, that it diverges
    int to_round_off;        // the default tolerance: the floor will do, where that is higher
    int may_grow;            // sweeps whose residual rises before it falls
    int with_floor;          // the floor can be above the tolerance: checks can have it estimated
    int at_once;             // a method whose first answer is as good as round-off allows once its residual is
    double epsilon, unit;    // round-off of u and f; norm of 1
    double progress;         // what counts as progress: a residual below this times the best
    double gain;             // ||D u|| is at most about this times ||f||, D the diagonal of A
    double spread;           // the floor of the residual over the round-off of D u, see pgi_floor_of
    double underflow;        // what is left of the residual where u has no smaller numbers
    double volume;           // sum of the weights
    int pending;             // u is brought up to date only where the residual is worked out from it
    double hump;             // growth of the residual over the first one that means divergence
    int renewal;       // pipelined Krylov: iterations after which the residual is worked out from u; 0: any number
    double trusted;    // and the fall of the residual after which it is

    double mean;             // to be removed from f
    double removed;          // mean, as the report has it
    double shift;            // to be removed from u
    double scale;            // PG_MIXED
    int valid, go, inner;    // gates, see pgi_gate; inner: iterations until the next check
    int done;                // bit d: the loop at depth d has ended; see pgi_repeat
    int verify;              // Krylov: the residual must be worked out from u before the solve may go on
    int problem;             // of a batch
    pgi_krylov_state krylov;
    int outcome, iterations, next_check, since_best;
    double rhs_norm, first, last, best;
    double floor;    // what round-off leaves of the residual: an estimate from u, before that a bound from f
    double hidden,
        rate;              // what the residual would be without round-off, by the rate at which it fell above the floor
    int seek, measured;    // whether the next check shall estimate it; whether one has
    int settled;           // the floor does not fall with what a wrong guess had too much of
    struct {
        double norm;
        int iterations;
    } recent[PGI_RECENT];         // checks, the last one first
    int resonant;                 // PG_DIRECT met an eigenvalue that is 0 to round-off
    double unit_of_sums;          // a power of two: reductions take each value times it, so that squares are numbers
    double sums[4 + PGI_DOTS];    // of the last reduction: sum w x y, sum x^2, sum w |x|, max |x|; inner products
    double magnitude[4];          // the same of D u
    unsigned ticket;              // blocks of a reduction that are done
    int history_count;
    double history[PG_HISTORY];
    uint64_t start_ns, end_ns;

    double rhs_mean;                  // of f with its boundary data
    double own_alpha, inner_alpha;    // PG_MIXED: alpha, and that of f32 cycles: see pgi_inner_alpha
    double lowest;                    // PG_MIXED: the smallest eigenvalue but for the constant's; 0: a face holds it
};

// Elimination along an axis, for every line of a grid: the rows and what is added to their diagonal.
struct pgi_elimination {
    int line;    // the axis, or -1
    int periodic;
    int singular;               // the rows' constant is an eigenvector of 0
    double norm;                // a bound of their eigenvalues
    double volume;              // the sum of their weights
    const double *lambda[3];    // what the place along the other axes adds; along the axis itself zeros
    double scale;               // of the right-hand side
    double constant;            // times the coefficient of the constant, or the mean of the line that has it: the mean
                                // of the right-hand side; 0: unwanted
    int log_parts, log_wide;    // GPU: of a line, eliminated at the same time; lines that a block has side by side
    int kept;                   // in registers; 0: the parts are too long
    double *marks;              // pivots every PGI_LINE_BLOCK rows
    pgi_axis<double> rows;
};

// The over-relaxation of a red-black sweep's two colours, in the order of the sweep. 0: the state's
struct pgi_omega {
    double first, second;
};

static inline pgi_omega pgi_evenly(double omega)
{
    const pgi_omega both = {omega, omega};
    return both;
}

// A level. Both precisions are kept; tables exist in the one that is used.
struct pgi_level {
    int n[3];
    int64_t points;
    int64_t team;                          // CPU: threads of a loop at most; the same on all levels
    int coarsened[3];                      // axes that the next level halves
    pgi_omega omega[2];                    // of the red-black smoother, before the correction and after it
    double jacobi[PGI_MAX_SWEEPS];         // weights of the sweeps of a Jacobi or Chebyshev smoother, before
    double jacobi_post[PGI_MAX_SWEEPS];    // and after the coarse correction
    pgi_box<double> box64;
    pgi_box<float> box32;
    pgi_transfers<double> transfer64;
    pgi_transfers<float> transfer32;
    pgi_grid u, f, t;    // t: takes turns with u, or holds a residual
    void *plane[6];      // boundary data in the level's precision, where it has its own
    const pgi_faces *faces;
    pgi_modes<double> modes64;    // of one that is solved exactly
    pgi_modes<float> modes32;
    pgi_grid spare;           // GPU: of one whose lines do not fit blocks; products go from t to here and back
    pgi_elimination lines;    // of line relaxation; lambda: the diagonals of the other axes' rows
};

// Vectors of Krylov methods. B = A M, M the preconditioner; in pipelined methods also what follows them from product to
// product. u and what is made of it are in the outer precision.
enum pgi_krylov_vector {
    PGI_R,         // residual
    PGI_P,         // direction
    PGI_S,         // A p, or B p
    PGI_W,         // A M r, or B r
    PGI_N,         // of pipelined CG: A m; of BiCGStab v = B p, of pipelined BiCGStab B z
    PGI_Z,         // of pipelined CG: A q; of pipelined BiCGStab: B s
    PGI_T,         // of BiCGStab: B s; of pipelined BiCGStab: B w
    PGI_SHADOW,    // r0
    PGI_U,         // M r
    PGI_Q,         // M s
    PGI_Y,         // u = the guess + M y
    PGI_M,         // what a preconditioner makes of a vector
    PGI_H,         // D^-1 of it, on the way there
    PGI_KRYLOV_ALL
};
// The passes of Krylov methods, see pgi_uses
#define PGI_RECURRENCES(X)                                                                                             \
    X(PGI_PRODUCT, pgi_of_product)                                                                                     \
    X(PGI_TWO_PRODUCTS, pgi_of_two_products)                                                                           \
    X(PGI_WIDEN, pgi_of_widening)                                                                                      \
    X(PGI_ADD, pgi_of_addition)                                                                                        \
    X(PGI_DIAGONAL, pgi_of_diagonal)                                                                                   \
    X(PGI_WEIGH, pgi_of_weighing)                                                                                      \
    X(PGI_INVERSE, pgi_of_inverse)                                                                                     \
    X(PGI_DEFECT, pgi_of_defect)                                                                                       \
    X(PGI_INVERSE_AGAIN, pgi_of_inverse_again)                                                                         \
    X(PGI_CG_DIRECTION, pgi_of_cg_direction)                                                                           \
    X(PGI_CG_DESCENT, pgi_of_cg_descent)                                                                               \
    X(PGI_CG_DESCENT_MIXED, pgi_of_cg_descent_mixed)                                                                   \
    X(PGI_PIPECG, pgi_of_pipecg)                                                                                       \
    X(PGI_PIPECG_DIAGONAL, pgi_of_pipecg_diagonal)                                                                     \
    X(PGI_PIPECG_ANY, pgi_of_pipecg_any)                                                                               \
    X(PGI_BICG_PRODUCT, pgi_of_bicg_product)                                                                           \
    X(PGI_BICG_HALF, pgi_of_bicg_half)                                                                                 \
    X(PGI_BICG_SECOND, pgi_of_bicg_second)                                                                             \
    X(PGI_BICG_UPDATE, pgi_of_bicg_update)                                                                             \
    X(PGI_PIPEBICG_FIRST, pgi_of_pipebicg_first)                                                                       \
    X(PGI_PIPEBICG_SECOND, pgi_of_pipebicg_second)
#define PGI_ENUM_(NAME, TYPE) NAME,
enum pgi_recurrence { PGI_RECURRENCES(PGI_ENUM_) PGI_RECURRENCE_COUNT };
#undef PGI_ENUM_
struct pgi_vectors {
    pgi_grid v[10];
};
enum pgi_krylov_step {
    PGI_KRYLOV_START,
    PGI_CG_BETA,
    PGI_CG_ALPHA,
    PGI_PIPECG_PREDICTED,
    PGI_PIPECG_STEPS,
    PGI_PIPECG_REPLACED,
    PGI_BICG_SHADOW,
    PGI_BICG_ALPHA,
    PGI_BICG_OMEGA,
    PGI_BICG_RHO,
    PGI_PIPEBICG_FIRST_STEP,
    PGI_PIPEBICG_OMEGA,
    PGI_PIPEBICG_STEPS
};

enum pgi_gate_kind {
    PGI_GO,
    PGI_VALID,
    PGI_UNWRITTEN,
    PGI_SOUND,
    PGI_VERIFY,
    PGI_AHEAD,
    PGI_BEGUN,
    PGI_LOOSE,
    PGI_INNER,
    PGI_PAIR,
    PGI_FOUR,
    PGI_EIGHT
};
enum pgi_source { PGI_RHS, PGI_RESIDUAL, PGI_FIELD };
enum pgi_partner { PGI_SELF, PGI_ONE, PGI_OTHER };
enum pgi_control_step {
    PGI_BEGIN,
    PGI_SET_MEAN,
    PGI_SET_RHS,
    PGI_SET_SCALE,
    PGI_ZERO_GUESS,
    PGI_CHECK_FIRST,
    PGI_CHECK,
    PGI_COUNT,
    PGI_SET_SHIFT,
    PGI_SET_LIFT,
    PGI_SET_ALPHA,
    PGI_CANCEL,
    PGI_SET_KRYLOV,    // Krylov: argument is a pgi_krylov_step
    PGI_CHECK_RECURRENCE,
    PGI_SWEPT,    // see pgi_swept
    PGI_LAST,     // count and end
    PGI_END
};

struct pgi_spectrum {
    double smallest, next, diagonal, largest_diagonal;
};

// ---- of >>direct ----

// Two real columns side by side: every transform here is linear over the reals, so it acts on both at once.
template <class T> struct alignas(2 * sizeof(T)) pgi_complex {
    T x, y;
};

// Transforms along an axis. The numbers are those of the discrete cosine transforms; with `sine` the sine transform of
// the same number. Types 2 and 3 are each other's inverse, 1 and 4 their own, but for a factor.
enum pgi_series_kind { PGI_IDENTITY, PGI_FOURIER, PGI_HERMITIAN, PGI_DCT1, PGI_DCT2, PGI_DCT3, PGI_DCT4 };
enum { PGI_THERE_AND_BACK = 2, PGI_ANY_KIND = PGI_IDENTITY };
struct pgi_series {
    int kind, sine, n;
    int length, count, inverse;    // complex transforms a pair of columns takes: their length, number and direction
    const void *twiddle;    // length + 1 complex numbers (type 1 in quarters: 2 length + 1), rounded to the precision
                            // of the grids
};

// Transforms along an axis by a block in shared memory, see pgi_fft_thread.
enum { PGI_STAGES = 16 };
struct pgi_fft_stage {
    int radix, stride;                // stride: from term to term of a butterfly
    int part, root;                   // butterflies of a part; the power of the roots of the whole length
    unsigned per_part, per_stride;    // 2^32 over those, rounded up; 0: over 1
};
// A divisor of numbers below 2^31, which a product and a shift divide by.
struct pgi_divisor {
    unsigned inverse;
    int shift, number;
};
// A complex transform of R * span numbers is R parts, that the stages between transform each by itself.
struct pgi_fft {
    int axis, kind, sine, radix;    // kind: of the transform forward; type 3 counts as type 2
    int entries;                    // of a thread in the tables
    int n, values;                  // of the transforms; of a column, n or, type 1, n - 1 or n + 1
    pgi_divisor size[2];            // of the other two axes, x with what fills up its rows
    int row[2];                     // values of a row along the lower one of them, and, along x, with what fills it up
    int span, lanes, log_wide;      // lanes: threads of a column of numbers; columns of numbers that a block has
    int element, pitch, lane;       // in shared memory, from number to number, part to part and column to column
    int end;                        // and to what is beyond the parts of a column
    int rest_in_warp;               // type 1: the threads of a column that sum up are of one warp
    unsigned per_lane;              // 2^32 over lanes, rounded up
    int stages;
    int64_t columns;
    size_t bytes, table_bytes;       // of shared memory: of numbers, and of tables with what a division takes
    const void *tables;              // see pgi_layout_fft
    const unsigned short *places;    // of the butterflies of the last stage, by frequency
    pgi_fft_stage stage[PGI_STAGES];
};

// The eigenvectors of an axis as a matrix, for products in place of fast transforms. Where both ends are alike, an
// eigenvector is symmetric or antisymmetric: sums of mirror images have coefficients in one half of the modes,
// differences in the other. Else the halves are the first and the last values, or modes.
struct pgi_fold {
    int n, folded, periodic;
    int half[2];          // values, or modes, of each
    int size, length;     // of a half with what fills its last tile of eight; terms of a sum
    double total;         // of the weights, over the largest
    int singular;         // the first mode is the constant, with eigenvalue 0
    int pitch, bytes;     // from mode to mode of the table; of all of it
    const void *table;    // orthonormal vectors, [half][mode][value]; then eigenvalues in double, [half][mode]
    const void *root;     // by value: the square root of its weight, then of all values the inverse; NULL: all are 1
};

// A small 2D problem in one kernel, by a cluster of blocks. A block has some tiles of either half of both axes: rows of
// an array for products along the other one.
struct pgi_small2d {
    int blocks;          // of a cluster; 0: not so
    int tiles[2];        // of x and y that a block has of a half
    int pitch[2];        // from row to row of an array whose rows run along x, or y
    int at[4];           // bytes to what each stage reads
    int table[2];        // and to copies of the tables; -1: none
    int memory;          // bytes of a block
    pgi_fold fold[2];    // of x and y
};

struct pgi_direct {
    pgi_small2d small;
    pgi_series series[3][2];    // forward and backward
    pgi_elimination lines;      // lambda: eigenvalues; scale: what the transforms multiply with, inverted
    int64_t pairs[3];           // of columns, that are transformed (eliminated) along the axis at a time
    pgi_fft fft[3];             // GPU: how blocks transform along the axis; radix 0: cuFFT does
    int uniform;                // the axis of elimination could be transformed
    int exact;                  // no transforms: the exact solver of multigrid
    int fused;                  // the axis that is transformed there and back at once, with the division between, or -1
    int reports_mean;           // what leaves out the null mode of a singular problem reports the mean
    pgi_grid between;           // GPU: a grid for what the first transform gives to the last one, or none
    char *buffer, *work;        // GPU: pairs of columns, and what cuFFT needs
    size_t buffer_bytes, work_bytes, marks_bytes;
    int tile[3];    // CPU: columns that are taken side by side along the axis
    int slots;      // and pieces of the buffer
    size_t slot_bytes;
    const void *roots[3];    // the roots of unity of the axes' complex transforms
};

enum { PGI_PASS_CLUSTER = 8 };    // most blocks side by side in a pass

struct pgi_ops;

struct pg_solver {
    pg_desc desc;    // every default resolved
    pg_desc work;    // the same as the operations see it: see pgi_turn
    char error[512];
    const pgi_ops *ops;          // in the precision of the cycles
    const pgi_ops *outer_ops;    // in the precision of u and f
    int mixed, cuda, device, may_be_singular, staged, multigrid;
    int dense;    // part of a pg_dense
    void (*program)(pg_solver *);
    int krylov;                         // a cycle of its preconditioner works on level[0], whose grids are its own
    pgi_grid vector[PGI_KRYLOV_ALL];    // in the precision of u and f
    pgi_grid pipelined;                 // of pipelined CG: M w
    pgi_level ratio;                    // of PG_PRECOND_DIRECT: the weights of A over those of what is solved
    int weighs;                         // they are not all 1
    int by_lines;                       // the smoother is line relaxation
    int together_in[PGI_PASS_CLUSTER + 1];    // blocks that run at once in clusters of so many, one to a processor
    int multiprocessors, shared_limit, clusters;    // of the device: their number, bytes a block can have, able to

    char *workspace;
    size_t bytes;
    int owns_workspace;

    int levels;
    pgi_level level[PGI_MAX_LEVELS];
    pgi_level outer;              // PG_MIXED: the finest level in f64; else a copy of level[0]
    pgi_grid stage_u, stage_f;    // device copies of host arrays
    void *stage_face[6];
    double *partials;             // four sums each
    int64_t partials_capacity;    // their number
    pgi_state *state;             // in the workspace
    pgi_state *reported;          // the problem of a batch that fared worst; without a batch the same
    pgi_state host;               // its copy on the host
    double volume;                // sum of the weights
    double lowest;                // see pgi_state
    pgi_spectrum spectrum;        // see pgi_find_spectrum
    int choose_omega;             // PG_SOR: omega follows alpha
    pgi_direct direct;
    int is_direct;
    int has_direct;    // PG_DIRECT is the method, or the preconditioner
    int together;      // problems of a batch that the operations of PG_DIRECT take at once

    // The solve under way or being recorded
    int guess_zero, checked, recording;
    int to_round_off;    // the tolerance is the default
    int with_floor;      // round-off may keep the residual above the tolerance
    pgi_grid iterate;    // where u of the finest level is between the halves of a cycle
    // Loops call it after every check.
    void (*observe)(pg_solver *, const pgi_state *);
    int (*monitor)(void *, const pg_report *);
    void *monitor_user;
    int monitored;       // checks the monitor has seen
    int in_monitor;      // the caller's function runs: the handle is taken
    pg_status failed;    // first failure of an operation
    char warning[160];
    int accelerated;    // PG_FMG became PG_CG
    char chosen[96];    // the method and why
#if PGI_GPU
    cudaStream_t stream, side[4];    // where operations go now; for capturing nested bodies
    int depth;                       // of nested loops
#if !PGI_CONDITIONAL
    int *ended, loops;    // the last loop that has ended, which the device writes and the host sees; loops so far
#endif
    cudaGraphExec_t graph[6];    // by guess_zero, checked and with_floor
#if PGI_DIRECT
    cufftHandle fft[3];    // by axis
    int has_fft[3];
#endif
#endif
#ifdef PG_USE_FFTW
    void *fftw[3][2];    // plans, by axis and direction
#endif
};

// A residual on the next level, and whether it is there.
struct pgi_wanted {
    int with_norm, done;
};

// What a back end can do, in one precision. Level, grids and right-hand side say on what.
struct pgi_ops {
    void (*control)(pg_solver *, int step, int argument);
    void (*loop)(pg_solver *, int gate, int again, void (*body)(pg_solver *));
    void (*fill_zero)(pg_solver *, const pgi_level *, pgi_grid u);
    void (*copy)(pg_solver *, const pgi_level *, pgi_grid from, pgi_grid to);
    void (*subtract_shift)(pg_solver *, const pgi_level *, pgi_grid u);
    void (*jacobi)(pg_solver *, const pgi_level *, pgi_grid u, pgi_rhs, double omega, pgi_grid out);
    void (*red_black)(pg_solver *, const pgi_level *, pgi_grid u, pgi_rhs, pgi_omega, int reversed);
    void (*residual)(pg_solver *, const pgi_level *, pgi_grid u, pgi_rhs, pgi_grid r);
    void (*apply)(pg_solver *, const pgi_level *, pgi_grid u, pgi_grid v);
    // state.sums; of PGI_RESIDUAL at least what pgi_norm_of needs for the norm that the solve asks for. again: once
    // more where squares of the values left the range of numbers, of the values times another power of two
    void (*reduce)(pg_solver *, const pgi_level *, int source, int partner, pgi_grid x, pgi_grid y, pgi_rhs, int again);
    void (*magnitude)(pg_solver *, const pgi_level *, pgi_grid u);    // state.magnitude, where state.seek asks for it
    void (*restrict_full)(pg_solver *, const pgi_level *fine, pgi_grid r, const pgi_level *coarse, pgi_grid f,
                          int average);
    void (*restrict_faces)(pg_solver *, const pgi_level *fine, const pgi_level *coarse);
    void (*prolong_add)(pg_solver *, const pgi_level *fine, pgi_grid u, const pgi_level *coarse, pgi_grid e);
    void (*interpolate)(pg_solver *, const pgi_level *fine, pgi_grid u, const pgi_level *coarse, pgi_grid v, int full,
                        int add);
    // Works in t, or where there is none and u is 0, in u and f
    void (*solve_coarsest)(pg_solver *, const pgi_level *, pgi_grid u, pgi_rhs, int from_zero);
    // Red-black sweeps from u, 0 or u + P e (see pgi_head); u and the level's other grid take turns: returns the last.
    // residual: if not NULL, the last pass does restrict_residual's work too where that pays, and says so
    pgi_grid (*relax)(pg_solver *, const pgi_level *, pgi_grid u, pgi_rhs, pgi_omega, int reversed, int sweeps,
                      int head, const pgi_level *coarse, pgi_grid e, pgi_wanted *residual);
    // Jacobi sweeps, number q with weight[q % period]; the grids take turns: returns the last
    pgi_grid (*jacobi_sweeps)(pg_solver *, const pgi_level *, pgi_grid u, pgi_rhs, const double *weight, int period,
                              int sweeps);
    // The residual on the coarse level; with_norm: state.sums get the norm of it that the solve asks for
    void (*restrict_residual)(pg_solver *, const pgi_level *fine, pgi_grid u, pgi_rhs, const pgi_level *coarse,
                              int with_norm);
    // Line relaxation: the lines of a colour at a time
    void (*relax_lines)(pg_solver *, const pgi_level *, pgi_grid u, pgi_rhs, double omega, int reversed);
    // PG_DIRECT: a transform along an axis, and the elimination (or division) between transforms. backward: 0, 1, or
    // PGI_THERE_AND_BACK with the division between
    void (*transform)(pg_solver *, const pgi_level *, int axis, int backward, pgi_rhs from, pgi_grid to);
    void (*eliminate)(pg_solver *, const pgi_level *, pgi_rhs from, pgi_grid to);
    // All of a small 2D problem at once, with the control steps of a program around it or without; on the CPU NULL
    void (*small2d)(pg_solver *, const pgi_level *, pgi_rhs from, pgi_grid to, int controlled);
    // Whether so many red-black sweeps leave the iterate in the level's other grid
    int (*relax_turns)(const pgi_level *, int sweeps);
    // Krylov: one pass of a method over its vectors, see pgi_recurrence
    void (*recur)(pg_solver *, const pgi_level *, int recurrence, const pgi_vectors &);
    void (*apply_two)(pg_solver *, const pgi_level *, pgi_grid x, pgi_grid ax, pgi_grid y, pgi_grid ay);
    // PG_MIXED: f64 to f32 and back; only in the f32 table
    void (*residual_narrow)(pg_solver *, const pgi_level *outer, pgi_grid u, pgi_rhs, pgi_grid r32, int with_norm);
    void (*narrow_rhs)(pg_solver *, const pgi_level *outer, pgi_grid f, const pgi_level *level);
    void (*widen_add)(pg_solver *, const pgi_level *outer, pgi_grid e32, pgi_grid u);
};

static thread_local char pgi_thread_error[512];

static void pgi_print_error(char text[512], const char *format, va_list arguments)
{
    vsnprintf(text, 512, format, arguments);
}

static pg_status pgi_refuse(char text[512], pg_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pgi_print_error(text, format, arguments);
    va_end(arguments);
    return status;
}

#define PGI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        const pg_status pgi_status_ = (call);                                                                          \
        if (pgi_status_ != PG_OK) return pgi_status_;                                                                  \
    } while (0)

static const char *const pgi_axis_name[3] = {"x", "y", "z"};

static int pgi_convects(const pg_desc *d) { return d->velocity[0] != 0 || d->velocity[1] != 0 || d->velocity[2] != 0; }

static inline const pgi_box<double> &pgi_box_of(const pgi_level *l, double) { return l->box64; }
static inline const pgi_box<float> &pgi_box_of(const pgi_level *l, float) { return l->box32; }
static inline const pgi_modes<double> &pgi_modes_of(const pgi_level *l, double) { return l->modes64; }
static inline const pgi_modes<float> &pgi_modes_of(const pgi_level *l, float) { return l->modes32; }
static inline const pgi_transfers<double> &pgi_transfers_of(const pgi_level *l, double) { return l->transfer64; }
static inline const pgi_transfers<float> &pgi_transfers_of(const pgi_level *l, float) { return l->transfer32; }

// -------------------------------------------------------------------------------------------------------------------
// >>points
// -------------------------------------------------------------------------------------------------------------------

template <class T> static PGI_HD inline T *pgi_data(const pgi_grid &g)
{
    return g.indirect ? *(T **)g.base : (T *)g.base;
}

template <class T> static PGI_HD inline pgi_row<T> pgi_row_of(const pgi_axis<T> &a, int i)
{
    if (a.table) return a.table[i];
    return i == 0 ? a.row[0] : i == a.n - 1 ? a.row[2] : a.row[1];
}

template <class T> static PGI_HD inline double pgi_weight_of(const pgi_axis<T> &a, int i)
{
    if (a.weight) return a.weight[i];
    return i == 0 ? a.row_weight[0] : i == a.n - 1 ? a.row_weight[2] : a.row_weight[1];
}

// Steps to the neighbours along an axis. At a closed end the step is 0: the coefficient there is 0, and the point
// itself is safe to read.
template <class T> static PGI_HD inline int pgi_below(const pgi_axis<T> &a, int i)
{
    return i > 0 ? -1 : a.periodic ? a.n - 1 : 0;
}
template <class T> static PGI_HD inline int pgi_above(const pgi_axis<T> &a, int i)
{
    return i < a.n - 1 ? 1 : a.periodic ? 1 - a.n : 0;
}

// A u, from what the neighbours have more than u. Every operation sums a stencil here, so that all of them round alike.
template <class T, class ROW> static PGI_HD inline T pgi_sum(const ROW &x, const ROW &y, const ROW &z, T reaction, T u,
                                                             T west, T east, T south, T north, T down, T up)
{
    T sum = reaction * u;
    sum += x.lower * west;
    sum += x.upper * east;
    sum += y.lower * south;
    sum += y.upper * north;
    sum += z.lower * down;
    sum += z.upper * up;
    return sum;
}

template <class T, class ROW> static PGI_HD inline T pgi_stencil(const ROW &x, const ROW &y, const ROW &z, T reaction,
                                                                 T u, T xm, T xp, T ym, T yp, T zm, T zp)
{
    return pgi_sum(x, y, z, reaction, u, xm - u, xp - u, ym - u, yp - u, zm - u, zp - u);
}

template <class T>
static PGI_HD inline T pgi_reaction(T alpha, const pgi_row<T> &x, const pgi_row<T> &y, const pgi_row<T> &z)
{
    return ((alpha + y.reaction) + z.reaction) + x.reaction;
}

template <class T>
static PGI_HD inline T pgi_diagonal(T reaction, const pgi_row<T> &x, const pgi_row<T> &y, const pgi_row<T> &z)
{
    return reaction - ((x.lower + x.upper) + (y.lower + y.upper) + (z.lower + z.upper));
}

// What a recurrence asks for at a point of weight w.
template <class POINT, class T> static PGI_HD inline T pgi_factor_of(const pgi_box<T> &b, const pgi_row<T> &x,
                                                                     const pgi_row<T> &y, const pgi_row<T> &z, double w)
{
    if (POINT::DIAGONAL) return 1 / pgi_diagonal(pgi_reaction((T)b.state->alpha, x, y, z), x, y, z);
    return POINT::WEIGHT ? (T)w : (T)0;
}

// The diagonal of A, without alpha, where one number will do for all of it: on uniform axes whose ends have no much
// larger one. Else 0.
template <class T> static PGI_HD inline double pgi_even_diagonal(const pgi_box<T> &b)
{
    double sum = 0;
    for (int a = 0; a < 3; a++) {
        const pgi_axis<T> &x = b.axis[a];
        double most = 0;
        for (int q = 0; q < 3; q++)
            most = fmax(most, (double)x.row[q].reaction - (double)x.row[q].lower - (double)x.row[q].upper);
        const double inside = (double)x.row[1].reaction - (double)x.row[1].lower - (double)x.row[1].upper;
        if (x.table || most > 2 * inside) return 0;
        sum += most;
    }
    return sum;
}

// A point of D u. even: pgi_even_diagonal
template <class T>
static PGI_HD inline double pgi_magnitude_point(const pgi_box<T> &b, double even, T u, int i, int j, int k)
{
    if (even > 0) return (even + fabs(b.state->alpha)) * (double)u;
    const pgi_row<T> x = pgi_row_of(b.axis[0], i), y = pgi_row_of(b.axis[1], j), z = pgi_row_of(b.axis[2], k);
    return ((double)pgi_diagonal(pgi_reaction((T)0, x, y, z), x, y, z) + fabs(b.state->alpha)) * (double)u;
}

template <class T> static PGI_HD inline T pgi_relaxed(T u, T residual, T inverse_diagonal, T omega)
{
    return u + residual * (omega * inverse_diagonal);
}

// The boundary data of face q at position p of its plane.
template <class T> static PGI_HD inline T pgi_face_value(const pgi_faces *faces, const pgi_state *st, int q, int64_t p)
{
    const void *plane = st->face[q].plane;
    if (plane) return ((const T *)(faces->plane[q] ? faces->plane[q] : plane))[p];
    return (T)(faces->scaled ? st->face[q].value * st->scale : st->face[q].value);
}

// The ends of an axis that index i is at: bit 0 low, bit 1 high.
static PGI_HD inline unsigned pgi_end_bits(int i, int n) { return (i == 0 ? 1u : 0u) | (i == n - 1 ? 2u : 0u); }
static PGI_HD inline unsigned pgi_face_mask(const pgi_rhs &rhs, const pgi_state *st)
{
    return rhs.faces ? rhs.faces->mask & st->face_mask : 0u;
}

// What the boundary data add to the right-hand side at a point that touches the given faces. Rare, so kept out of line.
#if PGI_GPU && defined(__CUDACC__)
#define PGI_RARE __noinline__
#else
#define PGI_RARE
#endif
template <class T> static PGI_HD inline T pgi_face_sum(const pgi_faces *faces, const pgi_state *st, unsigned touched,
                                                       const int64_t place[3])
{
    T sum = 0;
    for (int q = 0; q < 6; q++)
        if (touched >> q & 1) sum += (T)faces->coefficient[q] * pgi_face_value<T>(faces, st, q, place[q / 2]);
    return sum;
}
template <class T> static PGI_HD PGI_RARE T pgi_face_terms(const pgi_faces *faces, const pgi_state *st,
                                                           unsigned touched, int i, int j, int k)
{
    const int64_t place[3] = {j + (int64_t)faces->n[1] * k, i + (int64_t)faces->n[0] * k, i + (int64_t)faces->n[0] * j};
    return pgi_face_sum<T>(faces, st, touched, place);
}
// The same of one problem of a batch. Apart, for one more argument costs passes a register.
template <class T> static PGI_HD PGI_RARE T pgi_face_terms_of(const pgi_faces *faces, const pgi_state *st,
                                                              unsigned touched, int i, int j, int k, int problem)
{
    const int64_t nx = faces->n[0], ny = faces->n[1], nz = faces->n[2];
    const int64_t place[3] = {j + ny * (k + nz * problem), i + nx * (k + nz * problem), i + nx * (j + ny * problem)};
    return pgi_face_sum<T>(faces, st, touched, place);
}

template <class T> static PGI_HD inline T pgi_mean_of(const pgi_rhs &rhs, const pgi_state *st)
{
    return !rhs.faces ? (T)0 : (T)(rhs.faces->scaled ? st->mean * st->scale : st->mean);
}

// f as the equation of this level has it, at one point.
template <class T>
static PGI_HD inline T pgi_rhs_point(const pgi_box<T> &b, const pgi_rhs &rhs, T f, T mean, int i, int j, int k)
{
    const unsigned touched =
        pgi_face_mask(rhs, b.state) &
        (pgi_end_bits(i, b.axis[0].n) | pgi_end_bits(j, b.axis[1].n) << 2 | pgi_end_bits(k, b.axis[2].n) << 4);
    return f - mean + (touched ? pgi_face_terms<T>(rhs.faces, b.state, touched, i, j, k) : (T)0);
}

// The larger one of two numbers that are not negative; keeps a NaN. Their bits are in the same order, with NaN at the
// end, and mean that to compilers with -ffast-math too, which take comparisons to know no NaN.
static PGI_HD inline double pgi_max_nan(double a, double b)
{
#ifdef __CUDA_ARCH__
    return b > a || b != b ? b : a;
#else
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return y > x ? b : a;
#endif
}

static PGI_HD inline void pgi_accumulate(double sums[4], double w, double x, double y)
{
    sums[0] += w * x * y;
    sums[1] += x * x;
    sums[2] += w * fabs(x);
    sums[3] = pgi_max_nan(sums[3], fabs(x));
}

// The sums that pgi_accumulate makes, and MORE inner products after them.
template <int MORE = 0> static PGI_HD inline void pgi_combine(double *sums, const double *other)
{
    sums[0] += other[0];
    sums[1] += other[1];
    sums[2] += other[2];
    sums[3] = pgi_max_nan(sums[3], other[3]);
    for (int q = 4; q < 4 + MORE; q++) sums[q] += other[q];
}

// ---- Krylov methods at a point ----

// A recurrence is what a Krylov method does in one pass over its vectors v, between two global sums: at each point it
// makes new values of the vectors WRITTEN (bits) from those READ and, where the pass has a product, from av, which is
// A v[0]; and pairs of numbers for the inner products that the next steps depend on. NORM: the vector whose norm is the
// residual's, or -1. inverse: 1 / diagonal of A where FACTOR is 1, the point's weight where it is 2. NARROW: vectors in
// f32, for PG_MIXED.
template <int VECTORS_, unsigned READ_, unsigned WRITTEN_, int DOTS_, int NORM_, int PRODUCT_ = 0, int FACTOR_ = 0,
          unsigned NARROW_ = 0>
struct pgi_uses {
    enum {
        VECTORS = VECTORS_,
        READ = READ_,
        WRITTEN = WRITTEN_,
        DOTS = DOTS_,
        NORM = NORM_,
        PRODUCT = PRODUCT_,
        DIAGONAL = FACTOR_ == 1,
        WEIGHT = FACTOR_ == 2,
        NARROW = NARROW_
    };
};

template <class T> struct pgi_krylov_steps {
    T alpha, beta, omega, scale, unscale;
    PGI_HD explicit pgi_krylov_steps(const pgi_state *s)
        : alpha((T)s->krylov.alpha), beta((T)s->krylov.beta), omega((T)s->krylov.omega), scale((T)s->scale),
          unscale((T)(1 / s->scale))
    {
    }
    // a + beta b. A vector that a method begins with may have any bits.
    PGI_HD T plus_beta(T a, T b) const { return beta == 0 ? a : a + beta * b; }
};

template <class T> struct pgi_term {
    T x, y;
};

// A point of a vector, in T or in f32.
template <class T> static PGI_HD inline void *pgi_vector_at(const pgi_grid &g, int narrow, int64_t at)
{
    return narrow ? (void *)(pgi_data<float>(g) + at) : (void *)(pgi_data<T>(g) + at);
}
template <class T> static PGI_HD inline T pgi_value_of(const void *p, int narrow, int64_t at)
{
    return narrow ? (T)((const float *)p)[at] : ((const T *)p)[at];
}
template <class T> static PGI_HD inline void pgi_set_value(void *p, int narrow, int64_t at, T value)
{
    if (narrow)
        ((float *)p)[at] = (float)value;
    else
        ((T *)p)[at] = value;
}

// A point of a recurrence: template <class T> struct NAME with the vectors in the order of their names.
#define PGI_POINT(c, v, av, inverse, dot)                                                                              \
    static PGI_HD inline void at(const pgi_krylov_steps<T> &c, T *v, T av, T inverse, pgi_term<T> *dot)

// r, z: <r, z>
template <class T> struct pgi_of_product : pgi_uses<2, 3, 0, 1, 0> {
    PGI_POINT(, v, , , dot) { dot[0] = {v[0], v[1]}; }
};
// z in f32 and scaled, r, m: m = z; <r, m>
template <class T> struct pgi_of_widening : pgi_uses<3, 3, 4, 1, -1, 0, 0, 1> {
    PGI_POINT(c, v, , , dot) { v[2] = c.unscale * v[0], dot[0] = {v[1], v[2]}; }
};
// z, u: u += z
template <class T> struct pgi_of_addition : pgi_uses<2, 3, 2, 0, -1> {
    PGI_POINT(, v, , , ) { v[1] += v[0]; }
};
// r, u, w: <r, u>, <w, u>
template <class T> struct pgi_of_two_products : pgi_uses<3, 7, 0, 2, 0> {
    PGI_POINT(, v, , , dot) { dot[0] = {v[0], v[1]}, dot[1] = {v[2], v[1]}; }
};
// r, z: z = D^-1 r
template <class T> struct pgi_of_diagonal : pgi_uses<2, 1, 2, 1, -1, 0, 1> {
    PGI_POINT(, v, , inverse, dot) { v[1] = inverse * v[0], dot[0] = {v[0], v[1]}; }
};
// r, z: z = r times the weight of the point
template <class T> struct pgi_of_weighing : pgi_uses<2, 1, 2, 0, -1, 0, 2> {
    PGI_POINT(, v, , weight, ) { v[1] = weight * v[0]; }
};
// An approximate inverse with the stencil's sparsity: M = D^-1 (9/4 - A D^-1). The spectrum of A D^-1 is in (0, 2], and
// at 2, the checkerboard of a periodic box, M must not vanish.
// h = D^-1 r, z, r: z = 9/4 h - D^-1 A h
template <class T> struct pgi_of_inverse : pgi_uses<3, 5, 2, 1, -1, 1, 1> {
    PGI_POINT(, v, av, inverse, dot) { v[1] = (T)2.25 * v[0] - inverse * av, dot[0] = {v[2], v[1]}; }
};
// z, r, h: h = D^-1 (r - A z)
template <class T> struct pgi_of_defect : pgi_uses<3, 3, 4, 0, -1, 1, 1> {
    PGI_POINT(, v, av, inverse, ) { v[2] = inverse * (v[1] - av); }
};
// h, z, r: z += 9/4 h - D^-1 A h
template <class T> struct pgi_of_inverse_again : pgi_uses<3, 7, 2, 1, -1, 1, 1> {
    PGI_POINT(, v, av, inverse, dot) { v[1] += (T)2.25 * v[0] - inverse * av, dot[0] = {v[2], v[1]}; }
};

// Conjugate gradients. z, p: p = z + beta p; <A z, p>, which is <A p, p>, for p is conjugate to the one before
template <class T> struct pgi_of_cg_direction : pgi_uses<2, 3, 2, 1, -1, 1> {
    PGI_POINT(c, v, av, , dot) { v[1] = c.plus_beta(v[0], v[1]), dot[0] = {av, v[1]}; }
};
// p, u, r: u += alpha p, r -= alpha A p; <r, r>
template <class T> struct pgi_of_cg_descent : pgi_uses<3, 7, 6, 1, 2, 1> {
    PGI_POINT(c, v, av, , dot) { v[1] += c.alpha * v[0], v[2] -= c.alpha * av, dot[0] = {v[2], v[2]}; }
};

// p, u, r, and r in f32 and scaled, for the next cycle
template <class T> struct pgi_of_cg_descent_mixed : pgi_uses<4, 7, 14, 1, 2, 1, 0, 8> {
    PGI_POINT(c, v, av, , dot)
    {
        v[1] += c.alpha * v[0], v[2] -= c.alpha * av, v[3] = c.scale * v[2], dot[0] = {v[2], v[2]};
    }
};

// Pipelined conjugate gradients: all that an iteration does but for its products, u = A s and w = A r. The updates use
// a w that is predicted, the next ones that of the product.
// x, r, p, s, w, u: <p, s>, <r, s>, <s, s>, <r, r>
template <class T> struct pgi_of_pipecg : pgi_uses<6, 63, 15, 4, 1> {
    PGI_POINT(c, v, , , dot)
    {
        v[0] += c.alpha * v[2], v[1] -= c.alpha * v[3];
        v[2] = c.plus_beta(v[1], v[2]), v[3] = c.plus_beta(v[4] - c.alpha * v[5], v[3]);
        dot[0] = {v[2], v[3]}, dot[1] = {v[1], v[3]}, dot[2] = {v[3], v[3]}, dot[3] = {v[1], v[1]};
    }
};
// With the diagonal as preconditioner, and m = D^-1 r, h = D^-1 s in place of r and s in products
template <class T> struct pgi_of_pipecg_diagonal : pgi_uses<8, 63, 192 + 15, 4, 1, 0, 1> {
    PGI_POINT(c, v, , inverse, dot)
    {
        v[0] += c.alpha * v[2], v[1] -= c.alpha * v[3];
        v[6] = inverse * v[1];
        v[2] = c.plus_beta(v[6], v[2]), v[3] = c.plus_beta(v[4] - c.alpha * v[5], v[3]);
        v[7] = inverse * v[3];
        dot[0] = {v[2], v[3]}, dot[1] = {v[6], v[3]}, dot[2] = {v[7], v[3]}, dot[3] = {v[6], v[1]};
    }
};
// With any M, applied once an iteration: x, r, w = A u, n = A m, z = A q, s = A p, p, u = M r, m = M w, q = M s
template <class T> struct pgi_of_pipecg_any : pgi_uses<10, 1023, 512 + 128 + 118 + 1, 2, 1> {
    PGI_POINT(c, v, , , dot)
    {
        v[4] = c.plus_beta(v[3], v[4]), v[9] = c.plus_beta(v[8], v[9]);
        v[5] = c.plus_beta(v[2], v[5]), v[6] = c.plus_beta(v[7], v[6]);
        v[0] += c.alpha * v[6], v[1] -= c.alpha * v[5], v[7] -= c.alpha * v[9], v[2] -= c.alpha * v[4];
        dot[0] = {v[1], v[7]}, dot[1] = {v[2], v[7]};
    }
};

// BiCGStab for A M y = r. h = M p, r0, v: v = A h; <r0, v>
template <class T> struct pgi_of_bicg_product : pgi_uses<3, 2, 4, 1, -1, 1> {
    PGI_POINT(, v, av, , dot) { v[2] = av, dot[0] = {v[1], av}; }
};
// r, v: r -= alpha v, which is called s from now on
template <class T> struct pgi_of_bicg_half : pgi_uses<2, 3, 1, 0, -1> {
    PGI_POINT(c, v, , , ) { v[0] -= c.alpha * v[1]; }
};
// h = M s, s, r0, t: t = A h; <t, s>, <t, t>, <r0, s>, <r0, t>
template <class T> struct pgi_of_bicg_second : pgi_uses<4, 6, 8, 4, -1, 1> {
    PGI_POINT(, v, av, , dot)
    {
        v[3] = av;
        dot[0] = {av, v[1]}, dot[1] = {av, av}, dot[2] = {v[2], v[1]}, dot[3] = {v[2], av};
    }
};
// y, p, s, t, v, r0: y += alpha p + omega s, r = s - omega t, p = r + beta (p - omega v); <r0, r>, <r, r>
template <class T> struct pgi_of_bicg_update : pgi_uses<6, 63, 7, 2, 2> {
    PGI_POINT(c, v, , , dot)
    {
        v[0] += c.alpha * v[1] + c.omega * v[2];
        v[2] -= c.omega * v[3];
        v[1] = v[2] + c.beta * (v[1] - c.omega * v[4]);
        dot[0] = {v[5], v[2]}, dot[1] = {v[2], v[2]};
    }
};

// Pipelined BiCGStab. p, s = B p, z = B s, r, w = B r, t = B w, v = B z, B = A M: the directions; r becomes r - alpha
// s, w becomes w - alpha z; <r, w>, <w, w>
template <class T> struct pgi_of_pipebicg_first : pgi_uses<7, 127, 31, 2, -1> {
    PGI_POINT(c, v, , , dot)
    {
        v[0] = c.plus_beta(v[3], v[0] - c.omega * v[1]);
        v[1] = c.plus_beta(v[4], v[1] - c.omega * v[2]);
        v[2] = c.plus_beta(v[5], v[2] - c.omega * v[6]);
        v[3] -= c.alpha * v[1], v[4] -= c.alpha * v[2];
        dot[0] = {v[3], v[4]}, dot[1] = {v[4], v[4]};
    }
};
// y, p, r, w, t, v, r0, s, z: y, r and w of the next iteration; <r0, r>, <r0, w>, <r0, s>, <r0, z>, <r, r>
template <class T> struct pgi_of_pipebicg_second : pgi_uses<9, 511, 13, 5, 2> {
    PGI_POINT(c, v, , , dot)
    {
        v[0] += c.alpha * v[1] + c.omega * v[2];
        v[2] -= c.omega * v[3];
        v[3] -= c.omega * (v[4] - c.alpha * v[5]);
        dot[0] = {v[6], v[2]}, dot[1] = {v[6], v[3]}, dot[2] = {v[6], v[7]}, dot[3] = {v[6], v[8]};
        dot[4] = {v[2], v[2]};
    }
};

// ---- transfers ----

// floor(a / b) and the remainder, exactly, where inverse is about 1/b.
static PGI_HD inline int64_t pgi_floor_divide(int64_t a, int64_t b, double inverse, int64_t *remainder)
{
    int64_t q = (int64_t)floor((double)a * inverse), r = a - q * b;
    if (r < 0) q--, r += b;
    if (r >= b) q++, r -= b;
    *remainder = r;
    return q;
}

// The coarse unknown at or below fine unknown i (-1: none) and the fraction of the way to the next one.
template <class T> static PGI_HD inline int pgi_locate(const pgi_transfer<T> &t, int i, T *fraction)
{
    if (t.place) {
        *fraction = t.fraction[i];
        return t.place[i];
    }
    int64_t r, q;
    if (t.kind == PGI_NODES) {
        q = pgi_floor_divide((int64_t)(i + t.shift) * t.mc, t.mf, t.inverse, &r) - t.shift;
        *fraction = (T)((double)r * t.inverse);
    } else {
        q = pgi_floor_divide((2 * (int64_t)i + 1) * t.mc - t.mf, 2 * (int64_t)t.mf, t.inverse, &r);
        *fraction = (T)((double)r * t.inverse);
    }
    return (int)q;
}

// Linear prolongation of a correction: fine value = w0 e(j0) + w1 e(j1).
template <class T> struct pgi_pair {
    int j0, j1;
    T w0, w1;
};

template <class T> static PGI_HD inline pgi_pair<T> pgi_prolongation(const pgi_transfer<T> &t, int i)
{
    pgi_pair<T> p = {i, i, (T)1, (T)0};
    if (t.kind == PGI_SAME) return p;
    if (t.kind == PGI_MERGED) {
        p.j0 = p.j1 = 0;
        p.w0 = t.end[i > 0];
        return p;
    }
    T s;
    const int j = pgi_locate(t, i, &s);
    p.j0 = j;
    p.j1 = j + 1;
    p.w0 = 1 - s;
    p.w1 = s;
    if (t.periodic) {
        p.j0 = (j + t.nc) % t.nc;
        p.j1 = (j + 1) % t.nc;
    } else if (j < 0) {    // between the low face and the first coarse unknown
        p.j0 = p.j1 = 0;
        p.w0 = 0;
        if (t.kind == PGI_CELLS) p.w1 = t.end[0] + (1 - t.end[0]) * (2 * s - 1);
    } else if (j + 1 >= t.nc) {
        p.j1 = p.j0 = t.nc - 1;
        p.w1 = 0;
        if (t.kind == PGI_CELLS) p.w0 = t.end[1] + (1 - t.end[1]) * (1 - 2 * s);
    }
    return p;
}

// Restriction: coarse value = sum of w[q] r(first + q), indices taken modulo nf. average: the weights add up to 1, as
// raw f and boundary data need: the adjoint of linear interpolation between points that do not coincide only nearly
// does, which costs a pass of full multigrid its accuracy.
template <class T> struct pgi_window {
    int first, count;
    T w[PGI_WINDOW];
};

// Raw f on nodes: average weights shift f by up to h/2 beside an end and smear it everywhere, which full multigrid has
// to pay for (0.9 instead of 0.25 of the discretisation error). Differences over four intervals take both moments out
// and keep what each fine point gives; beside an end, where they do not fit, f is interpolated.
template <class T>
static PGI_HD inline void pgi_keep_moments(const pgi_transfer<T> &t, int J, int64_t lo, pgi_window<T> *out)
{
    const int64_t p = (J + t.shift) * (int64_t)t.mf, below = p / t.mc - t.shift;
    const double s = (double)(p % t.mc) / (double)t.mc;
    const int pairs = s > 0 ? 2 : 1;
    const int64_t first = below - 2, last = below + 1 + pairs;
    if (t.periodic ? t.nf < 6 : first < 0 || last >= t.nf) {
        if (t.periodic) return;
        out->first = (int)below;
        out->count = pairs;
        out->w[0] = (T)(1 - s);
        out->w[1] = (T)s;
        return;
    }
    double w[6] = {0}, shift = 0, smear = 0;
    for (int q = 0; q < out->count; q++) {
        const double x = (double)(lo + q - below) - s, part = (double)out->w[q];
        shift += part * x;
        smear += part * x * x;
        w[lo + q - first] = part;
    }
    for (int e = 0; e < pairs; e++) {
        const double share = e ? s : 1 - s;
        w[e] += share * (shift / 4 - smear / 8);
        w[e + 2] += share * smear / 4;
        w[e + 4] -= share * (shift / 4 + smear / 8);
    }
    out->first = (int)(((first % t.nf) + t.nf) % t.nf);
    out->count = 4 + pairs;
    for (int q = 0; q < out->count; q++) out->w[q] = (T)w[q];
}

template <class T> static PGI_HD inline void pgi_restriction(const pgi_transfer<T> &t, const pgi_axis<T> &fine,
                                                             const pgi_axis<T> &coarse, int J, int average,
                                                             pgi_window<T> *out)
{
    if (t.kind == PGI_SAME) {
        out->first = J;
        out->count = 1;
        out->w[0] = 1;
        return;
    }
    int64_t lo, hi;    // candidates [lo, hi]
    const int64_t mf = t.mf, mc = t.mc;
    if (t.kind == PGI_MERGED) {
        lo = 0, hi = t.nf - 1;
    } else if (t.kind == PGI_NODES) {
        const int64_t p = J + t.shift;
        lo = ((p - 1) * mf + 4 * mc) / mc - 3 - t.shift;    // the first above (p-1) mf/mc
        hi = ((p + 1) * mf + mc - 1) / mc - 1 - t.shift;    // the last below (p+1) mf/mc
    } else if (t.adjoint) {
        lo = ((2 * (int64_t)J - 1) * mf + 7 * mc) / (2 * mc) - 5;    // centres within one coarse cell of J's, and one
        hi = ((2 * (int64_t)J + 3) * mf - mc) / (2 * mc) + 1;        // more, as stretched centres shift
    } else {
        lo = J * mf / mc;
        hi = ((J + 1) * mf + mc - 1) / mc - 1;
    }
    if (!t.periodic) {
        if (lo < 0) lo = 0;
        if (hi > t.nf - 1) hi = t.nf - 1;
    } else if (hi - lo + 1 > t.nf) {
        hi = lo + t.nf - 1;
    }
    const double scale = 1 / pgi_weight_of(coarse, J);
    out->first = (int)(((lo % t.nf) + t.nf) % t.nf);
    out->count = (int)(hi - lo + 1);
    for (int q = 0; q < out->count; q++) {
        const int64_t i = lo + q;
        const int wrapped = (int)(((i % t.nf) + t.nf) % t.nf);
        T part;
        if (t.adjoint) {
            const pgi_pair<T> p = pgi_prolongation(t, wrapped);
            part = (p.j0 == J ? p.w0 : (T)0) + (p.j1 == J ? p.w1 : (T)0);
        } else {
            const int64_t top = (i + 1) * mc < (J + 1) * mf ? (i + 1) * mc : (J + 1) * mf;
            const int64_t low = i * mc > J * mf ? i * mc : J * mf;
            part = (T)((double)(top - low) / (double)mc);
        }
        out->w[q] = part * (T)(pgi_weight_of(fine, wrapped) * scale);
    }
    T sum = 0;
    for (int q = 0; q < out->count; q++) sum += out->w[q];
    for (int q = 0; q < out->count && average; q++) out->w[q] /= sum;
    if (average && t.kind == PGI_NODES) pgi_keep_moments(t, J, lo, out);
}

// Drops weights that are 0 at both ends of a window.
template <class T> static PGI_HD inline void pgi_trim(pgi_window<T> *w)
{
    int from = 0;
    while (w->count > 1 && w->w[w->count - 1] == 0) w->count--;
    while (from < w->count - 1 && w->w[from] == 0) from++;
    w->first += from;
    w->count -= from;
    for (int q = 0; q < w->count && from; q++) w->w[q] = w->w[from + q];
}

// Cubic interpolation: four coarse points (or a face: -1 low, -2 high) and weights; with or without the face
// conditions.
template <class T> struct pgi_cubic {
    int j[4];
    T w[4];
};

template <class T> static PGI_HD PGI_RARE void pgi_cubic_of(const pgi_transfer<T> &t, int i, int faces, pgi_cubic<T> *c)
{
    if (t.kind == PGI_SAME) {
        for (int q = 0; q < 4; q++) c->j[q] = i, c->w[q] = 0;
        c->w[0] = 1;
        return;
    }
    const int last = t.nf - t.cubic_rows / 2;
    if (t.cubic_rows == t.nf || i < t.cubic_rows / 2 || i >= last) {
        const int row = t.cubic_rows == t.nf || i < t.cubic_rows / 2 ? i : t.cubic_rows / 2 + i - last;
        for (int q = 0; q < 4; q++) {
            c->j[q] = t.cubic_index[8 * (size_t)row + 4 * !faces + q];
            c->w[q] = t.cubic_weight[8 * (size_t)row + 4 * !faces + q];
        }
        return;
    }
    T s;    // inside, evenly spaced: Lagrange's polynomials
    const int j = pgi_locate(t, i, &s);
    for (int q = 0; q < 4; q++) {
        c->j[q] = j - 1 + q;
        if (c->j[q] < 0) c->j[q] += t.nc;
        if (c->j[q] >= t.nc) c->j[q] -= t.nc;
    }
    c->w[0] = -s * (s - 1) * (s - 2) * (T)(1.0 / 6);
    c->w[1] = (s + 1) * (s - 1) * (s - 2) * (T)0.5;
    c->w[2] = -(s + 1) * s * (s - 2) * (T)0.5;
    c->w[3] = (s + 1) * s * (s - 1) * (T)(1.0 / 6);
}

// A coarse solution and what its interpolation to the next finer level needs. No faces: boundary data 0.
template <class T> struct pgi_interpolation {
    const pgi_faces *fine_faces, *coarse_faces;
    const pgi_state *state;
    int fine_nx, nx, ny;    // coarse nx, ny
    const T *v;
    int64_t sj, sk;
};

// The interpolant at the fine (i,j) in plane c of the coarse solution, or on a z face (c < 0). Known values are used
// wherever they exist: on a z face the fine data, on one of y the coarse data interpolated along x, on one of x the
// coarse data.
template <class T> static PGI_HD PGI_RARE T pgi_interpolate_plane(const pgi_interpolation<T> &p, const pgi_cubic<T> &cx,
                                                                  const pgi_cubic<T> &open_x, const pgi_cubic<T> &cy,
                                                                  int i, int j, int c)
{
    const pgi_state *st = p.state;
    if (c < 0) return p.fine_faces ? pgi_face_value<T>(p.fine_faces, st, 4 - 1 - c, i + (int64_t)p.fine_nx * j) : (T)0;
    T sum = 0;
    for (int b = 0; b < 4; b++) {
        const int jb = cy.j[b], y_face = 2 - 1 - jb;
        if (cy.w[b] == 0) continue;
        T line = 0;
        if (jb >= 0) {
            const T *row = p.v + jb * p.sj + c * p.sk;
            for (int a = 0; a < 4; a++) {
                const int ia = cx.j[a];
                if (ia >= 0)
                    line += cx.w[a] * row[ia];
                else if (p.coarse_faces && cx.w[a] != 0)
                    line += cx.w[a] * pgi_face_value<T>(p.coarse_faces, st, -1 - ia, jb + (int64_t)p.ny * c);
            }
        } else if (p.coarse_faces && !st->face[y_face].plane) {
            line = pgi_face_value<T>(p.coarse_faces, st, y_face, 0);
        } else if (p.coarse_faces) {
            for (int a = 0; a < 4; a++)
                line += open_x.w[a] * pgi_face_value<T>(p.coarse_faces, st, y_face, open_x.j[a] + (int64_t)p.nx * c);
        }
        sum += cy.w[b] * line;
    }
    return sum;
}

// Interpolates (adds to) the column (i,j) of u from plane k0 to k1; rows: the cubics of these planes, or NULL. Planes
// of the coarse solution are worked out once and kept while the window of four moves over them.
template <class T>
static PGI_HD inline void pgi_interpolate_column(const pgi_interpolation<T> &p, const pgi_transfers<T> &t, int i, int j,
                                                 int k0, int k1, const pgi_cubic<T> *rows, T *u, int64_t u_sk, int add)
{
    pgi_cubic<T> x, open_x, y;    // open_x: without the face conditions
    pgi_cubic_of(t.axis[0], i, 1, &x);
    pgi_cubic_of(t.axis[0], i, 0, &open_x);
    pgi_cubic_of(t.axis[1], j, 1, &y);
    int kept[4] = {-3, -3, -3, -3};    // planes; -3: none
    T values[4] = {0, 0, 0, 0};
    for (int k = k0; k < k1; k++) {
        pgi_cubic<T> z;
        if (rows)
            z = rows[k - k0];
        else
            pgi_cubic_of(t.axis[2], k, 1, &z);
        T sum = 0, fresh[4];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int q = 0; q < 4; q++) {
            int found = 0;
            fresh[q] = 0;
            for (int e = 0; e < 4; e++) {
                if (kept[e] != z.j[q]) continue;
                fresh[q] = values[e];
                found = 1;
            }
            if (!found && z.w[q] != 0) fresh[q] = pgi_interpolate_plane(p, x, open_x, y, i, j, z.j[q]);
            sum += z.w[q] * fresh[q];
        }
        for (int q = 0; q < 4; q++) {
            kept[q] = z.w[q] != 0 ? z.j[q] : -3;
            values[q] = fresh[q];
        }
        u[k * u_sk] = add ? u[k * u_sk] + sum : sum;
    }
}

template <class T>
static PGI_HD inline pgi_interpolation<T> pgi_interpolation_of(const pgi_state *state, const pgi_faces *ff,
                                                               const pgi_faces *fc, int fine_nx,
                                                               const pgi_box<T> &coarse, const pgi_grid &v)
{
    const pgi_interpolation<T> p = {ff,   fc,  state, fine_nx, coarse.axis[0].n, coarse.axis[1].n, pgi_data<T>(v),
                                    v.sj, v.sk};
    return p;
}

// ---- control: what steers a solve, one thread ----

static PGI_HD inline int pgi_gate(const pgi_state *st, int gate)
{
    switch (gate) {
    case PGI_GO: return st->go;
    case PGI_VALID: return st->valid;
    case PGI_UNWRITTEN: return st->valid && st->iterations == 0;
    case PGI_SOUND: return st->valid && st->outcome != PG_DIVERGED && st->outcome != PG_NOT_A_NUMBER;
    case PGI_BEGUN: return st->iterations > 0;
    case PGI_LOOSE: return st->valid && st->own_alpha > 0 && st->own_alpha < st->lowest;
    case PGI_VERIFY: return st->verify;
    case PGI_AHEAD: return st->iterations > st->krylov.last_verified;
    case PGI_INNER: return st->inner > 0;
    case PGI_PAIR: return st->inner > 1;
    case PGI_FOUR: return st->inner > 3;
    default: return st->inner > 7;
    }
}

static PGI_HD inline double pgi_norm_of(const double sums[4], int kind)
{
    switch (kind) {
    case PG_NORM_L2: return sqrt(sums[0]);
    case PG_NORM_L2_PLAIN: return sqrt(sums[1]);
    case PG_NORM_MAX: return sums[3];
    default: return sums[2];
    }
}

// By the bits of the number, out of the sight of compilers that -ffast-math lets assume it finite.
static PGI_HD inline int pgi_finite(double x)
{
#ifdef __CUDA_ARCH__
    return x - x == 0;
#else
    const volatile double hidden = x;
    const double seen = hidden;
    uint64_t bits;
    memcpy(&bits, &seen, sizeof bits);
    return (bits >> 52 & 0x7ff) != 0x7ff;
#endif
}

static PGI_HD inline double pgi_power_of_two_near(double x)    // 1/x, but for the mantissa
{
    int exponent = 0;
    if (!(x > 0) || !pgi_finite(x)) return 1;
    frexp(x, &exponent);
    return ldexp(1.0, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent);
}

static PGI_HD inline void pgi_finish(pgi_state *st, int outcome)
{
    st->outcome = outcome;
    st->go = 0;
}

// What to multiply the unit of a reduction with when its sums of squares have left the range of numbers, or the part of
// it in which terms are not lost; else 1. (BLAS nrm2 scales for the same reason.) With f32 they never do.
static PGI_HD inline double pgi_rescale(const pgi_state *st)
{
    const double safe = 1e260, up = 0x1p600;
    const int kind = st->stop.norm;
    if (kind == PG_NORM_MAX || st->epsilon > DBL_EPSILON) return 1;
    const double sum = st->sums[kind == PG_NORM_L2 ? 0 : kind == PG_NORM_L2_PLAIN ? 1 : 2];
    if (!pgi_finite(sum) || sum > safe) return st->unit_of_sums > 1 / up ? 1 / up : 1;
    return sum < 1 / safe && st->unit_of_sums < up ? up : 1;
}

static PGI_HD inline double pgi_measured_norm(const pgi_state *st, const double sums[4])
{
    const double norm = pgi_norm_of(sums, st->stop.norm);
    return st->unit_of_sums == 1 ? norm : norm / st->unit_of_sums;
}

// What subtracting the mean of f leaves of it.
static PGI_HD inline double pgi_mean_noise(const pgi_state *st)
{
    return 8 * st->epsilon * fabs(st->removed) * st->unit;
}

// What round-off leaves of the residual: u has up to half a unit in its last place too much or too little, so the
// residual has up to eps ||D u||. Of 4000 random problems cycles left 0.15 to 0.35 of that, the smallest ones all of
// it; PG_DIRECT, where each value has gone through sums along all of a line, 0.1 to 10 times, SOR up to 6 times. A mean
// that was removed has rounded f.
static PGI_HD inline double pgi_floor_of(const pgi_state *st, double magnitude)
{
    return pgi_mean_noise(st) + st->epsilon * (st->spread * magnitude + st->rhs_norm);
}

// Takes the estimate of the floor that belongs to this check, and decides whether the next one needs one: only where
// the floor can matter, for u is read once more for it: near it where the tolerance is the default, else not before the
// residual falls but slowly.
static PGI_HD inline void pgi_judge_floor(pgi_state *st, double asked)
{
    if (st->seek) {
        const double magnitude = pgi_measured_norm(st, st->magnitude), before = st->floor;
        if (pgi_finite(magnitude)) {
            st->floor = pgi_floor_of(st, magnitude);
            if (st->measured && st->floor > before / 2) st->settled = 1;
            st->measured = 1;
        }
    } else if (!st->measured) {
        st->floor = pgi_floor_of(st, st->gain * st->rhs_norm);
    }
    const int matters = st->floor > asked / 4 || st->rhs_norm == 0;
    const int slow = st->history_count > 1 && st->last > 0.3 * st->recent[1].norm;
    st->seek = st->with_floor && matters && (slow || st->to_round_off || st->window == 0) &&
               (!st->measured || st->last <= 1000 * st->floor);
}

static PGI_HD inline void pgi_record(pgi_state *st, double norm)
{
    if (st->history_count < PG_HISTORY) st->history[st->history_count] = norm;
    if (st->history_count++ == 0) st->first = st->best = norm;
    st->last = norm;
    for (int q = PGI_RECENT - 1; q > 0; q--) st->recent[q] = st->recent[q - 1];
    st->recent[0].norm = norm;
    st->recent[0].iterations = st->iterations;
    if (norm < st->best * st->progress) {
        st->best = norm;
        st->since_best = 0;
    } else if (st->history_count > 1) {
        st->since_best++;
    }
}

// Whether the residual grows for good. Sweeps may let it rise for as many as the grid is wide.
static PGI_HD inline int pgi_grows(const pgi_state *st)
{
    const double most = fmax(st->first, st->rhs_norm);
    if (st->last > st->hump * most) return 1;
    return !st->may_grow && st->since_best >= 10 && st->last > 10 * st->best && st->last > 1000 * st->floor;
}

// What is below the floor is seen no more: a smooth error of a percent can be there, where cycles began at 0. Takes the
// residual without round-off to fall on as it did above the floor.
static PGI_HD inline void pgi_judge_hidden(pgi_state *st)
{
    if (st->at_once || !st->to_round_off) return;    // nobody asks
    if (st->history_count == 1) {
        st->hidden = st->last, st->rate = 1;
        return;
    }
    const int steps = st->recent[0].iterations - st->recent[1].iterations, seen = !st->measured || st->last > st->floor;
    if (seen || st->rate == 1) {
        const double most = st->window < 50 ? 0.5 : 1;    // cycles, sweeps
        st->rate = fmin(pow(st->last / st->recent[1].norm, 1.0 / (steps > 0 ? steps : 1)), most);
    }
    st->hidden = seen ? st->last : fmin(st->last, st->hidden * pow(st->rate, steps));
}

// Whether round-off keeps the residual above the tolerance: at the floor at once, near it when nothing has come of some
// more checks.
static PGI_HD inline int pgi_stagnates(const pgi_state *st)
{
    if (st->history_count < 2) return 0;
    if (st->window == 0) return 1;    // PG_DIRECT has no second try
    if (st->measured && st->last <= st->floor) return st->settled && !st->to_round_off;
    if (st->last <= st->underflow) return 1;
    return st->measured && st->since_best >= st->window && st->best <= 50 * st->floor;
}

// Whether the default tolerance holds to round-off.
static PGI_HD inline int pgi_is_at_floor(const pgi_state *st, double asked)
{
    return st->to_round_off && st->measured && st->settled && st->last <= st->floor &&
           (st->at_once || st->hidden <= asked);
}

// The residual that the caller's tolerances ask for.
static PGI_HD inline double pgi_asked(const pgi_state *st)
{
    const double reference = st->stop.relative_to_first || st->rhs_norm == 0 ? st->first : st->rhs_norm;
    const double noise = st->rhs_norm == 0 ? pgi_mean_noise(st) : 0;
    return fmax(noise, fmax(st->stop.atol, st->stop.rtol > 0 ? st->stop.rtol * reference : 0));
}

// The counters: at the begin, after some iterations, and after a check that lets the solve go on.
static PGI_HD inline void pgi_schedule_first(pgi_state *st)
{
    st->iterations = st->history_count = 0;
    st->next_check = st->inner = st->stop.max_iter;
    st->go = st->stop.max_iter > 0;
}
static PGI_HD inline void pgi_advance(pgi_state *st, int iterations)
{
    st->iterations += iterations;
    st->inner = st->next_check - st->iterations;
    if (st->history_count == 0) st->go = st->inner > 0;    // no checks: only the count decides
}
static PGI_HD inline void pgi_schedule(pgi_state *st)
{
    st->go = 1;
    st->next_check = st->iterations + st->stop.check;
    if (st->next_check < st->stop.min_iter) st->next_check = st->stop.min_iter;
    if (st->next_check > st->stop.max_iter) st->next_check = st->stop.max_iter;
    st->inner = st->next_check - st->iterations;
}

// A residual norm has come in: record it and decide.
static PGI_HD inline void pgi_judge(pgi_state *st, double norm)
{
    const pg_stop &stop = st->stop;
    pgi_record(st, norm);
    const double asked = pgi_asked(st);
    pgi_judge_floor(st, asked);
    pgi_judge_hidden(st);
    const double blind = st->epsilon > DBL_EPSILON ? 0 : 1e-130 / st->unit_of_sums;    // less may have been lost
    pgi_schedule(st);
    const int lost = norm < blind && asked < blind && st->unit_of_sums < 0x1p600;
    if (lost) st->unit_of_sums *= 0x1p600;    // the next check will tell
    if (!pgi_finite(norm))
        pgi_finish(st, PG_NOT_A_NUMBER);
    else if ((norm <= asked || pgi_is_at_floor(st, asked)) && !lost && st->iterations >= stop.min_iter)
        pgi_finish(st, PG_CONVERGED);
    else if (pgi_grows(st))
        pgi_finish(st, PG_DIVERGED);
    else if (pgi_stagnates(st) && !lost && st->iterations >= stop.min_iter)
        pgi_finish(st, PG_STAGNATED);
    else if (st->iterations >= stop.max_iter)
        pgi_finish(st, PG_MAX_ITER);
}

// A sweep has made the next iterate, and measured the residual of the one before it on the way: that one is judged
// where a check is due, and where it ends the solve the sweep does not count.
static PGI_HD inline void pgi_swept(pgi_state *st, int may_be_due)
{
    if (may_be_due && st->go && st->inner == 0) pgi_judge(st, pgi_measured_norm(st, st->sums));
    if (st->go) pgi_advance(st, 1);
}

// What changes from solve to solve, copied into the launch: so it can be captured and needs no pinned memory.
struct pgi_call {
    void *u, *f;
    double alpha, omega;
    double inner_alpha, lowest;
    struct {
        double value;
        const void *plane;
    } face[6];
    pg_stop stop;
    int window, to_round_off, may_grow, with_floor, at_once, problem, renewal;
    int pending;
    double progress, epsilon, unit, gain, spread, underflow, trusted, hump;
};

static PGI_HD inline void pgi_enter(pgi_state *st, const pgi_call &c)
{
    st->u = c.u;
    st->f = c.f;
    st->alpha = st->own_alpha = c.alpha;
    st->inner_alpha = c.inner_alpha;
    st->lowest = c.lowest;
    st->omega = c.omega;
    st->face_mask = 0;
    for (int q = 0; q < 6; q++) {
        st->face[q].value = c.face[q].value;
        st->face[q].plane = c.face[q].plane;
        if (c.face[q].plane || c.face[q].value != 0) st->face_mask |= 1u << q;
    }
    st->stop = c.stop;
    st->window = c.window;
    st->to_round_off = c.to_round_off;
    st->may_grow = c.may_grow;
    st->with_floor = c.with_floor;
    st->at_once = c.at_once;
    st->progress = c.progress;
    st->epsilon = c.epsilon;
    st->unit = c.unit;
    st->gain = c.gain;
    st->spread = c.spread;
    st->underflow = c.underflow;
    st->renewal = c.renewal;
    st->trusted = c.trusted;
    st->pending = c.pending;
    st->hump = c.hump;
    st->problem = c.problem;
    st->done = 0;
    st->mean = 0;
    st->unit_of_sums = 1;
}

// solved: u has been solved for already.
static PGI_HD inline void pgi_begin(pgi_state *st, int solved, uint64_t now)
{
    st->start_ns = now;
    st->mean = st->removed = st->shift = 0;
    st->scale = 1;
    st->valid = 1;
    pgi_schedule_first(st);
    if (!solved) st->resonant = 0;
    st->outcome = PG_COMPLETED;
    st->since_best = 0;
    st->rhs_norm = st->first = st->last = st->best = st->floor = st->hidden = NAN;
    st->seek = st->measured = st->settled = st->verify = 0;
    memset(&st->krylov, 0, sizeof st->krylov);
    st->krylov.unit = st->unit_of_sums = 1;
}

static PGI_HD inline void pgi_set_rhs(pgi_state *st)
{
    st->rhs_norm = pgi_measured_norm(st, st->sums);
    st->scale = pgi_power_of_two_near(st->sums[3] / st->unit_of_sums);
    if (st->sums[3] / st->unit_of_sums <= 8 * st->epsilon * fabs(st->removed))
        st->rhs_norm = 0;    // all of f was its mean
    if (!pgi_finite(st->sums[3]) || !pgi_finite(st->rhs_norm)) {
        st->valid = st->inner = 0;
        pgi_finish(st, PG_NOT_A_NUMBER);
    }
}

// What BiCGStab divides by may be 0: a breakdown, and the step is 0 then. NaN goes on to the residual, and is found
// there.
static PGI_HD inline double pgi_ratio_or_break(pgi_krylov_state *c, double a, double b)
{
    if (!pgi_finite(a) || !pgi_finite(b)) return NAN;
    if (b == 0) c->broken = 1;
    return b == 0 ? 0 : a / b;
}

// Begins a method, or begins again: the next direction is the residual.
static PGI_HD inline void pgi_restart_krylov(pgi_state *st)
{
    st->krylov.rho = st->krylov.alpha = st->krylov.beta = st->krylov.omega = 0;
    st->krylov.last_verified = st->iterations;
    st->krylov.verified = st->last;
}

// Pipelined conjugate gradients, from <p, s>, <M r, s>, <M s, s> and <M r, r>, which is predicted for the next step.
static PGI_HD inline void pgi_set_predicted_cg(pgi_krylov_state *c, const double dot[4])
{
    c->alpha = dot[0] <= 0 ? 0 : dot[3] / dot[0];
    const double next = dot[3] - c->alpha * (2 * dot[1] - c->alpha * dot[2]);
    c->beta = dot[0] <= 0 || next <= 0 ? 0 : next / dot[3];
}

// The same with one preconditioner an iteration, from <r, u> and <A u, u>.
static PGI_HD inline void pgi_set_pipelined_cg(pgi_krylov_state *c, double ru, double wu)
{
    c->before[0] = c->rho, c->before[1] = c->alpha;
    c->beta = c->rho > 0 ? ru / c->rho : 0;
    const double curvature = c->beta != 0 ? wu - c->beta * ru / c->alpha : wu;
    c->rho = curvature <= 0 ? 0 : ru;
    c->alpha = curvature <= 0 ? 0 : ru / curvature;
}

// The scalars of Krylov methods, from the inner products of the last recurrence. Conjugate gradients: a product that is
// not positive is round-off; the next direction is the preconditioned residual then. NaN goes on to u, and is found
// there.
static PGI_HD inline void pgi_set_krylov(pgi_state *st, int step)
{
    pgi_krylov_state *const c = &st->krylov;
    const double *const dot = st->sums + 4, ratio = st->unit_of_sums / c->unit;
    if (ratio != 1) {    // products are in the square of it
        c->unit = st->unit_of_sums;
        c->rho = c->rho * ratio * ratio, c->before[0] = c->before[0] * ratio * ratio;
        c->shadow = c->shadow * ratio * ratio;
    }
    switch (step) {
    case PGI_KRYLOV_START: pgi_restart_krylov(st); break;
    case PGI_CG_BETA:
        c->beta = c->rho > 0 ? dot[0] / c->rho : 0;
        c->rho = dot[0];
        break;
    case PGI_CG_ALPHA:
        c->alpha = dot[0] <= 0 ? 0 : c->rho / dot[0];
        if (dot[0] <= 0) c->rho = 0;
        break;
    case PGI_PIPECG_PREDICTED: pgi_set_predicted_cg(c, dot); break;
    case PGI_PIPECG_REPLACED:    // in place of the last step's
        c->rho = c->verified > 1.2 * c->believed ? 0 : c->before[0], c->alpha = c->before[1];
        pgi_set_pipelined_cg(c, dot[0], dot[1]);
        break;
    case PGI_PIPECG_STEPS: pgi_set_pipelined_cg(c, dot[0], dot[1]); break;
    case PGI_BICG_SHADOW: c->rho = c->shadow = dot[0]; break;
    case PGI_BICG_ALPHA: c->alpha = pgi_ratio_or_break(c, c->rho, dot[0]); break;
    case PGI_BICG_OMEGA: {    // <t, s>, <t, t>, <r0, s>, <r0, t>: <r0, r> follows from them
        c->omega = pgi_ratio_or_break(c, dot[0], dot[1]);
        const double next = dot[2] - c->omega * dot[3];
        c->beta = c->omega != 0 ? pgi_ratio_or_break(c, next, c->rho) * (c->alpha / c->omega) : 0;
        break;
    }
    case PGI_BICG_RHO:    // <r0, r>, <r, r>
        c->rho = dot[0];
        if (fabs(dot[0]) <= st->epsilon * sqrt(dot[1]) * sqrt(c->shadow)) c->broken = dot[1] > 0;
        break;
    case PGI_PIPEBICG_FIRST_STEP:    // <r0, r>, <r0, A r>
        c->rho = c->shadow = dot[0];
        c->alpha = pgi_ratio_or_break(c, dot[0], dot[1]);
        break;
    case PGI_PIPEBICG_OMEGA: c->omega = pgi_ratio_or_break(c, dot[0], dot[1]); break;
    case PGI_PIPEBICG_STEPS:    // <r0, r>, <r0, w>, <r0, s>, <r0, z>, <r, r>
        c->beta = c->omega != 0 ? pgi_ratio_or_break(c, dot[0], c->rho) * (c->alpha / c->omega) : 0;
        c->rho = dot[0];
        c->alpha = pgi_ratio_or_break(c, dot[0], dot[1] + c->beta * dot[2] - c->beta * c->omega * dot[3]);
        if (fabs(dot[0]) <= st->epsilon * sqrt(dot[4]) * sqrt(c->shadow)) c->broken = dot[4] > 0;
        break;
    }
}

// After a breakdown the method begins again. If that leads to the next one at once, it ends.
static PGI_HD inline void pgi_settle_breakdown(pgi_state *st)
{
    pgi_krylov_state *const c = &st->krylov;
    const int since = st->iterations - c->broken_at;
    st->verify = 0;
    c->verified = st->last;
    c->last_verified = st->iterations;
    if (!c->broken) return;
    c->broken = 0;
    if (st->outcome == PG_COMPLETED && c->breakdowns++ > 0 && since <= 2) pgi_finish(st, PG_BREAKDOWN);
    c->broken_at = st->iterations;
}

// The norm of the residual as its recurrence has it. Before it ends a solve, the residual is worked out from u; and
// from time to time where the recurrence strays from it, or gets no further near the floor: it may hold nothing but
// rounding then.
static PGI_HD inline void pgi_check_recurrence(pgi_state *st)
{
    const double norm = pgi_measured_norm(st, st->sums);
    const int good = norm <= pgi_asked(st) || (st->measured && norm <= st->floor) || norm <= st->underflow;
    st->krylov.believed = norm;
    const int due = (st->renewal > 0 && st->iterations - st->krylov.last_verified >= st->renewal) ||
                    norm < st->trusted * st->krylov.verified;
    const int near_floor = st->best <= 50 * st->floor;
    const int stalled = near_floor && st->window > 0 && (st->since_best + 1) % st->window == 0;
    st->verify = good || due || stalled || st->krylov.broken || st->iterations >= st->stop.max_iter;
    if (st->verify) return;
    if (st->pending) st->seek = 0;    // D u is not to be had
    pgi_judge(st, norm);
}

// One step of control. argument: of PGI_COUNT the iterations just done; of PGI_BEGIN 1 where u has been solved for.
static PGI_HD inline void pgi_control(pgi_state *st, int step, int argument, uint64_t now)
{
    if (step == PGI_ZERO_GUESS || step == PGI_CHECK_FIRST || step == PGI_CHECK || step == PGI_CHECK_RECURRENCE ||
        step == PGI_SWEPT)
        st->end_ns = now;    // for a monitor
    switch (step) {
    case PGI_BEGIN: pgi_begin(st, argument, now); break;
    case PGI_SET_MEAN:
        st->rhs_mean = st->sums[0] / st->volume;
        if (st->alpha == 0) st->mean = st->removed = st->rhs_mean;
        break;
    case PGI_SET_RHS: pgi_set_rhs(st); break;
    case PGI_SET_SCALE: st->scale = pgi_power_of_two_near(pgi_measured_norm(st, st->sums) / st->unit); break;
    case PGI_ZERO_GUESS:
        st->settled = st->rhs_norm > 0;
        if (st->valid) pgi_judge(st, st->rhs_norm);
        break;
    case PGI_CHECK_FIRST:
        if (!st->valid) break;
        st->scale = pgi_power_of_two_near(pgi_measured_norm(st, st->sums) / st->unit);
        pgi_judge(st, pgi_measured_norm(st, st->sums));
        if (st->outcome == PG_NOT_A_NUMBER) st->valid = st->inner = 0;
        break;
    case PGI_CHECK:
        pgi_judge(st, pgi_measured_norm(st, st->sums));
        pgi_settle_breakdown(st);
        if (st->resonant && st->outcome != PG_NOT_A_NUMBER) pgi_finish(st, PG_RESONANCE);
        break;
    case PGI_COUNT:
    case PGI_LAST:
        pgi_advance(st, argument);
        if (st->resonant && st->history_count == 0) pgi_finish(st, PG_RESONANCE);
        if (step == PGI_LAST) st->end_ns = now;
        break;
    case PGI_SET_SHIFT:
        st->shift = st->alpha == 0 ? st->sums[0] / (st->volume * st->unit_of_sums) : 0;
        if (pgi_finite(st->shift)) break;
        st->shift = 0;    // NaN or Inf in u: leave it alone
        st->valid = st->inner = 0;
        pgi_finish(st, PG_NOT_A_NUMBER);
        break;
    case PGI_SET_LIFT:    // from u's mean to the one that it must have; argument 1: FMG is to solve for the rest of f
        st->shift = st->sums[0] / (st->volume * st->unit_of_sums) - st->rhs_mean / st->own_alpha;
        if (!pgi_finite(st->shift)) st->shift = 0;
        if (argument) st->mean = st->rhs_mean;
        break;
    case PGI_SET_ALPHA:
        st->alpha = argument ? st->inner_alpha : st->own_alpha;
        if (!argument && st->own_alpha != 0) st->mean = 0;
        break;
    case PGI_CANCEL: pgi_finish(st, PG_CANCELLED); break;
    case PGI_SET_KRYLOV: pgi_set_krylov(st, argument); break;
    case PGI_CHECK_RECURRENCE: pgi_check_recurrence(st); break;
    case PGI_SWEPT: pgi_swept(st, argument); break;
    default: st->end_ns = now;
    }
}

// How a problem of a batch fared: the larger the worse.
static PGI_HD inline int pgi_gravity(int outcome)
{
    return outcome == PG_CANCELLED      ? 8
           : outcome == PG_NOT_A_NUMBER ? 7
           : outcome == PG_DIVERGED     ? 6
           : outcome == PG_BREAKDOWN    ? 5
           : outcome == PG_RESONANCE    ? 4
           : outcome == PG_MAX_ITER     ? 3
           : outcome == PG_STAGNATED    ? 2
           : outcome == PG_CONVERGED    ? 1
                                        : 0;
}
static PGI_HD inline int pgi_is_worse(const pgi_state *a, const pgi_state *b)
{
    const int gravity = pgi_gravity(a->outcome) - pgi_gravity(b->outcome);
    return gravity ? gravity > 0
                   : a->last / (a->rhs_norm > 0 ? a->rhs_norm : 1) > b->last / (b->rhs_norm > 0 ? b->rhs_norm : 1);
}

// Keeps the report of the worst one. first: program of this solve.
static PGI_HD inline void pgi_keep_worst(pgi_state *worst, const pgi_state *st, int first)
{
    const uint64_t start = first ? st->start_ns : worst->start_ns;
    if (first || pgi_is_worse(st, worst)) *worst = *st;
    worst->start_ns = start;
    worst->end_ns = st->end_ns;
}

// -------------------------------------------------------------------------------------------------------------------
// >>lines  One axis on the host, in double: where its unknowns are, and all that follows from it.
// -------------------------------------------------------------------------------------------------------------------

// An axis has n unknowns, n control lengths around them (bounds) and n+1 gaps between them and to the two ends. At an
// end with a u + b du/dn = g at distance d from the last unknown, the flux into it is k (g - a u) / (a d + b):
// Dirichlet is a = 1, b = 0, Neumann a = 0, b = 1, node-centred Neumann and Robin have d = 0. So there is one formula
// for every kind.
struct pgi_line_tables {
    double *edge;     // m+1 interval ends
    double *x;        // n positions
    double *bound;    // n+1 ends of the control lengths
    double *w;        // n control lengths times metric
    double *gap;      // n+1 distances
    double *k;        // n+1 conductances
};
struct pgi_line {
    int n, m;    // unknowns, intervals
    int node, periodic, uniform, absent;
    int merged;    // two Neumann or Robin end nodes have become one unknown in the middle
    double h;      // spacing of a uniform line
    double end;    // of it: the last interval's, from 0
    double end_a[2], end_b[2];
    double shift;       // of a uniform line in place of another: what is added to its operator
    double velocity;    // of the first-order term
    int upwind;
    pgi_line_tables own;    // NULL on uniform lines, which may be long: ask pgi_line_x and the like
};

static void pgi_line_free(pgi_line *l)
{
    free(l->own.edge);
    free(l->own.x);
    free(l->own.bound);
    free(l->own.w);
    free(l->own.gap);
    free(l->own.k);
    memset(l, 0, sizeof *l);
}

static int pgi_line_reserve(pgi_line *l)
{
    const size_t points = (size_t)l->n + 2, edges = (size_t)l->m + 2;
    pgi_line_tables *own = &l->own;
    own->edge = (double *)malloc(edges * sizeof(double));
    own->x = (double *)malloc(points * sizeof(double));
    own->bound = (double *)malloc(points * sizeof(double));
    own->w = (double *)malloc(points * sizeof(double));
    own->gap = (double *)malloc(points * sizeof(double));
    own->k = (double *)malloc(points * sizeof(double));
    return own->edge && own->x && own->bound && own->w && own->gap && own->k;
}

static int pgi_is_dirichlet(const pgi_line *l, int end) { return !l->periodic && l->end_b[end] == 0; }

// The entries of a line's tables. Those of uniform lines are worked out from h, so that equal numbers are equal in
// every bit.
static double pgi_line_edge(const pgi_line *l, int q)
{
    if (l->own.edge) return l->own.edge[q];
    return q < l->m ? q * l->h : l->end;
}
static double pgi_line_x(const pgi_line *l, int i)
{
    if (l->own.x) return l->own.x[i];
    if (l->merged) return l->end / 2;
    return l->node ? pgi_line_edge(l, i + pgi_is_dirichlet(l, 0)) : (i + 0.5) * l->h;
}
static double pgi_line_gap(const pgi_line *l, int i)
{
    if (l->own.gap) return l->own.gap[i];
    if (l->merged) return 0;
    if (l->periodic || (i > 0 && i < l->n)) return l->h;
    return !l->node ? l->h / 2 : pgi_is_dirichlet(l, i > 0) ? l->h : 0;
}
static double pgi_line_bound(const pgi_line *l, int i)
{
    if (l->own.bound) return l->own.bound[i];
    if (!l->node || l->merged) return pgi_line_edge(l, i);
    const double below = i > 0 ? pgi_line_x(l, i - 1) : l->periodic ? pgi_line_x(l, l->n - 1) - l->end : 0;
    const double above = i < l->n ? pgi_line_x(l, i) : l->periodic ? pgi_line_x(l, 0) + l->end : l->end;
    return (below + above) / 2;
}
static double pgi_line_w(const pgi_line *l, int i)
{
    if (l->own.w) return l->own.w[i];
    if (l->merged) return l->end;
    return l->node ? (pgi_line_gap(l, i) + pgi_line_gap(l, i + 1)) / 2 : l->h;
}
static double pgi_line_k(const pgi_line *l, int i) { return l->own.k ? l->own.k[i] : 1; }

// The sum of the weights.
static double pgi_line_volume(const pgi_line *l)
{
    if (l->uniform && l->n > 2) return pgi_line_w(l, 0) + (l->n - 2) * pgi_line_w(l, 1) + pgi_line_w(l, l->n - 1);
    double sum = 0;
    for (int i = 0; i < l->n; i++) sum += pgi_line_w(l, i);
    return sum;
}

// For loops over the rows of a line: the next one that may differ from row i. Inside, those of a uniform line do not.
static int pgi_line_next(const pgi_line *l, int i) { return l->uniform && i == 1 && l->n > 3 ? l->n - 1 : i + 1; }

// The distance between unknowns i - 1 and i, or to the end beside one. Edges are subtracted before anything is rounded,
// so that spacings are as exact as they are given, far from the origin too.
static double pgi_gap_of_edges(const pgi_line *l, int i)
{
    const double *const e = l->own.edge;
    if (l->node) {
        const int shift = pgi_is_dirichlet(l, 0), q = l->periodic && i == 0 ? l->m : i + shift;
        return q > 0 && q <= l->m ? e[q] - e[q - 1] : 0;
    }
    const int low = i > 0 ? i : l->periodic ? l->m : 0, high = i < l->n ? i : l->periodic ? 0 : l->n;
    const double below = low > 0 ? e[low] - e[low - 1] : 0, above = high < l->n ? e[high + 1] - e[high] : 0;
    return (below + above) / 2;
}

// Positions, bounds, gaps and (unit metric) weights from the edges.
static void pgi_line_place(pgi_line *l)
{
    const pgi_line_tables own = l->own;
    const int n = l->n, shift = l->node && pgi_is_dirichlet(l, 0);
    const double lo = own.edge[0], hi = own.edge[l->m], period = hi - lo;
    for (int i = 0; i < n; i++) {
        if (l->merged)
            own.x[i] = (lo + hi) / 2;
        else
            own.x[i] = l->node ? own.edge[i + shift] : (own.edge[i] + own.edge[i + 1]) / 2;
    }
    for (int i = 0; i <= n; i++) {
        const double below = i > 0 ? own.x[i - 1] : l->periodic ? own.x[n - 1] - period : lo;
        const double above = i < n ? own.x[i] : l->periodic ? own.x[0] + period : hi;
        own.gap[i] = l->merged ? 0 : pgi_gap_of_edges(l, i);
        own.bound[i] = !l->node || l->merged ? own.edge[i] : (below + above) / 2;
        own.k[i] = 1;
    }
    for (int i = 0; i < n; i++)
        own.w[i] = l->node && !l->merged ? (own.gap[i] + own.gap[i + 1]) / 2 : own.bound[i + 1] - own.bound[i];
}

// The same of a line that is evenly spaced, though its metric is not constant.
static void pgi_line_place_evenly(pgi_line *l)
{
    const pgi_line_tables own = l->own;
    pgi_line even = *l;
    memset(&even.own, 0, sizeof even.own);
    for (int q = 0; q <= l->m; q++) own.edge[q] = pgi_line_edge(&even, q);
    for (int i = 0; i <= l->n; i++) {
        own.gap[i] = pgi_line_gap(&even, i);
        own.bound[i] = pgi_line_bound(&even, i);
        own.k[i] = 1;
    }
    for (int i = 0; i < l->n; i++) own.x[i] = pgi_line_x(&even, i), own.w[i] = pgi_line_w(&even, i);
}

// What is subtracted from coordinates: nothing, unless it leaves every bit of their differences (P. H. Sterbenz 1974).
static double pgi_origin(double lo, double hi)
{
    if (lo > 0 && hi <= 2 * lo) return lo;
    return hi < 0 && lo >= 2 * hi ? hi : 0;
}

// The finest line. Fields of the descriptor are valid.
static int pgi_line_create(pgi_line *l, const pg_desc *d, int axis, int absent)
{
    memset(l, 0, sizeof *l);
    l->n = d->n[axis];
    l->absent = absent;
    l->node = absent || d->centring[axis] == PG_NODE;
    l->periodic = absent || d->face[2 * axis].kind == PG_PERIODIC;
    l->velocity = absent ? 0 : d->velocity[axis];
    l->upwind = d->flags & PG_UPWIND ? 1 : 0;
    int dirichlet = 0;
    for (int e = 0; e < 2; e++) {
        const pg_face *f = &d->face[2 * axis + e];
        l->end_a[e] = f->kind == PG_DIRICHLET ? 1 : f->kind == PG_ROBIN ? f->a : 0;
        l->end_b[e] = f->kind == PG_DIRICHLET ? 0 : f->kind == PG_ROBIN ? f->b : 1;
        dirichlet += pgi_is_dirichlet(l, e);
    }
    l->m = !l->node || l->periodic ? l->n : l->n - 1 + dirichlet;
    const double *coord = absent ? NULL : d->coord[axis], *weight = absent ? NULL : d->weight[axis];
    const double *conductance = absent ? NULL : d->conductance[axis];
    l->uniform = !coord && !weight && !conductance;
    l->h = absent ? 1 : d->h[axis];
    if (l->m == 0) {    // a single node between Neumann or Robin ends: its control length is h
        l->m = 1;
        l->merged = 1;
    }
    l->end = l->m * l->h;
    if (l->uniform) return 1;
    if (!pgi_line_reserve(l)) return 0;
    if (coord) {
        const double origin = pgi_origin(coord[0], coord[l->m]);
        for (int q = 0; q <= l->m; q++) l->own.edge[q] = coord[q] - origin;
        pgi_line_place(l);
    } else {
        pgi_line_place_evenly(l);
    }
    for (int i = 0; i < l->n && weight; i++) l->own.w[i] *= weight[i];
    for (int i = 0; i <= l->n && conductance; i++) l->own.k[i] = conductance[i];
    return 1;
}

// How many unknowns and intervals the redrawn coarse line has. Never a sliver: evenly spaced in fine index.
static void pgi_coarse_size(const pgi_line *f, int *n, int *m)
{
    if (f->periodic) {    // an even count wherever there is a choice: two colours suffice
        *m = f->m / 2 > 1 ? f->m / 2 : 1;
        if (f->m % 2 && *m % 2 && *m > 1) *m += 1;
        *n = *m;
    } else if (!f->node) {
        *n = *m = (f->m + 1) / 2;
    } else if (f->m == 1) {    // both end nodes are unknowns
        *n = 1, *m = 1;
    } else {
        *m = (f->m + 1) / 2;
        *n = *m + 1 - pgi_is_dirichlet(f, 0) - pgi_is_dirichlet(f, 1);
    }
}

// Largest q with table(l, q) <= x, or -1.
static int pgi_search(double (*table)(const pgi_line *, int), const pgi_line *l, int count, double x)
{
    int lo = -1, hi = count;
    while (hi - lo > 1) {
        const int mid = lo + (hi - lo) / 2;
        if (table(l, mid) <= x)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

// Metric weight of the control lengths of f within [lo, hi] (periodic images included).
static double pgi_weight_between(const pgi_line *f, double lo, double hi)
{
    const double period = pgi_line_edge(f, f->m) - pgi_line_edge(f, 0);
    double sum = 0;
    for (int image = f->periodic ? -1 : 0; image <= (f->periodic ? 1 : 0); image++) {
        const double a = lo - image * period, b = hi - image * period;
        int i = pgi_search(pgi_line_bound, f, f->n + 1, a);
        for (i = i < 0 ? 0 : i; i < f->n && pgi_line_bound(f, i) < b; i++) {
            const double part = fmin(b, pgi_line_bound(f, i + 1)) - fmax(a, pgi_line_bound(f, i));
            if (part > 0) sum += pgi_line_w(f, i) * (part / (pgi_line_bound(f, i + 1) - pgi_line_bound(f, i)));
        }
    }
    return sum;
}

// Resistance: the integral of dx/k over [lo, hi], k constant between unknowns, and between an end and the unknown next
// to it.
static double pgi_resistance_between(const pgi_line *f, double lo, double hi)
{
    const double period = pgi_line_edge(f, f->m) - pgi_line_edge(f, 0);
    double sum = 0;
    for (int image = f->periodic ? -1 : 0; image <= (f->periodic ? 1 : 0); image++) {
        const double a = lo - image * period, b = hi - image * period;
        for (int i = pgi_search(pgi_line_x, f, f->n, a); i < f->n; i++) {    // gap i + 1 lies above x[i]
            const double begin = i >= 0 ? pgi_line_x(f, i) : f->periodic ? pgi_line_x(f, 0) : pgi_line_edge(f, 0);
            const double end = i + 1 < f->n  ? pgi_line_x(f, i + 1)
                               : f->periodic ? pgi_line_x(f, 0) + period
                                             : pgi_line_edge(f, f->m);
            if (begin >= b) break;
            const double part = fmin(b, end) - fmax(a, begin);
            if (part > 0 && pgi_line_k(f, i + 1) > 0) sum += part / pgi_line_k(f, i + 1);
        }
    }
    return sum;
}

// u at x over u at the unknown of c next to the end, where the flux through that end is the same at both and the
// boundary data are 0: the share of the resistance that lies between x and what u is 0 behind. 1 where nothing flows.
static double pgi_share_at_end(const pgi_line *f, const pgi_line *c, int end, double x)
{
    const double k = pgi_line_k(f, end ? f->n : 0), wall = pgi_line_edge(f, end ? f->m : 0),
                 at = pgi_line_x(c, end ? c->n - 1 : 0);
    if (k == 0 || f->end_a[end] == 0) return 1;
    const double beyond = f->end_b[end] / (f->end_a[end] * k);
    const double near = end ? pgi_resistance_between(f, x, wall) : pgi_resistance_between(f, wall, x);
    const double all = end ? pgi_resistance_between(f, at, wall) : pgi_resistance_between(f, wall, at);
    return beyond + all > 0 ? (beyond + near) / (beyond + all) : 1;
}

// What multiplies (g - a u) in the row at an end; 0 where the end is closed or periodic.
static double pgi_end_coupling(const pgi_line *l, int end)
{
    if (l->periodic) return 0;
    const int i = end ? l->n - 1 : 0, q = end ? l->n : 0;
    if (pgi_line_k(l, q) == 0) return 0;
    return pgi_line_k(l, q) / (pgi_line_w(l, i) * (l->end_a[end] * pgi_line_gap(l, q) + l->end_b[end]));
}

// The value on an end's face over that of the nearest coarse unknown, for a correction (homogeneous data).
static double pgi_end_factor(const pgi_line *c, int end)
{
    if (pgi_end_coupling(c, end) == 0) return 1;
    return c->end_b[end] / (c->end_a[end] * pgi_line_gap(c, end ? c->n : 0) + c->end_b[end]);
}

// Coarse unknown at or below fine unknown i and the fraction of the way to the next: what pgi_locate computes on even
// lines. The way is measured as resistance, so that interpolation keeps the flux: a jump of k between two fine points
// is where the interpolant bends.
static void pgi_line_locate(const pgi_line *f, const pgi_line *c, int i, int *place, double *fraction)
{
    const double x = pgi_line_x(f, i), period = pgi_line_edge(f, f->m) - pgi_line_edge(f, 0);
    const int j = pgi_search(pgi_line_x, c, c->n, x);
    *place = j;
    if (c->periodic || (j >= 0 && j < c->n - 1)) {
        const double below = j < 0 ? pgi_line_x(c, c->n - 1) - period : pgi_line_x(c, j);
        const double above = j < c->n - 1 ? pgi_line_x(c, j + 1) : pgi_line_x(c, 0) + period;
        *fraction = pgi_resistance_between(f, below, x) / pgi_resistance_between(f, below, above);
        return;
    }
    const int end = j >= 0;
    const double share = pgi_share_at_end(f, c, end, x), wall = pgi_end_factor(c, end);
    const double way = c->node ? share : wall < 1 ? (share - wall) / (1 - wall) : 1;    // from the wall: 0, 1: unknown
    *fraction = end ? (c->node ? 1 - way : (1 - way) / 2) : (c->node ? way : (way + 1) / 2);
}

// The positions on both sides of gap i: unknowns or ends.
static void pgi_line_beside(const pgi_line *l, int i, double *below, double *above)
{
    const double low = pgi_line_edge(l, 0), high = pgi_line_edge(l, l->m), period = high - low;
    *below = i > 0 ? pgi_line_x(l, i - 1) : l->periodic ? pgi_line_x(l, l->n - 1) - period : low;
    *above = i < l->n ? pgi_line_x(l, i) : l->periodic ? pgi_line_x(l, 0) + period : high;
}

// Of a cell that the metric fills unevenly, the unknown stands for the centre of its weight: beside a jump, that is in
// the part that dominates.
static void pgi_line_centre(const pgi_line *f, pgi_line *c)
{
    for (int j = 0; j < c->n; j++) {
        const double lo = pgi_line_bound(c, j), hi = pgi_line_bound(c, j + 1);
        double weight = 0, moment = 0;
        int i = pgi_search(pgi_line_bound, f, f->n + 1, lo);
        for (i = i < 0 ? 0 : i; i < f->n && pgi_line_bound(f, i) < hi; i++) {
            const double a = fmax(lo, pgi_line_bound(f, i)), b = fmin(hi, pgi_line_bound(f, i + 1));
            if (b <= a) continue;
            const double part = pgi_line_w(f, i) * ((b - a) / (pgi_line_bound(f, i + 1) - pgi_line_bound(f, i)));
            weight += part;
            moment += part * ((a + b) / 2 - lo);
        }
        c->own.x[j] = lo + moment / weight;
    }
    for (int j = 0; j <= c->n; j++) {
        double below, above;
        pgi_line_beside(c, j, &below, &above);
        c->own.gap[j] = above - below;
    }
}

// Conductances of a coarse line: resistances add up, from the wall to the first unknown too. A Robin end keeps what
// lies behind its wall.
static void pgi_line_conduct(const pgi_line *f, pgi_line *c)
{
    for (int i = 0; i <= c->n; i++) {
        double below, above;
        pgi_line_beside(c, i, &below, &above);
        const int end = !c->periodic && (i == 0 || i == c->n);
        if (end) c->own.k[i] = pgi_line_k(f, i ? f->n : 0);
        if (end && (pgi_line_k(c, i) == 0 || pgi_line_gap(c, i) == 0)) continue;
        c->own.k[i] = pgi_line_gap(c, i) / pgi_resistance_between(f, below, above);
        if (end) c->end_b[i > 0] *= pgi_line_k(c, i) / pgi_line_k(f, i ? f->n : 0);
    }
}

// Control lengths of a coarse line: what a cell covers; on nodes what prolongation gives to each, so that restriction,
// its adjoint, keeps constants.
static void pgi_line_weigh(const pgi_line *f, pgi_line *c)
{
    for (int i = 0; i < c->n; i++)
        c->own.w[i] = c->node && !c->merged ? 0 : pgi_weight_between(f, pgi_line_bound(c, i), pgi_line_bound(c, i + 1));
    for (int i = 0; i < f->n && c->node && !c->merged; i++) {
        int j;
        double s;
        pgi_line_locate(f, c, i, &j, &s);
        if (j >= 0 || c->periodic) c->own.w[(j + c->n) % c->n] += (1 - s) * pgi_line_w(f, i);
        if (j + 1 < c->n || c->periodic) c->own.w[(j + 1) % c->n] += s * pgi_line_w(f, i);
    }
}

static int pgi_line_coarsen(const pgi_line *f, pgi_line *c)
{
    memset(c, 0, sizeof *c);
    pgi_coarse_size(f, &c->n, &c->m);
    c->node = f->node;
    c->periodic = f->periodic;
    c->uniform = f->uniform;
    c->merged = f->node && !f->periodic && f->m == 1 && f->n == 2;
    c->h = f->h * f->m / c->m;
    for (int e = 0; e < 2; e++) c->end_a[e] = f->end_a[e], c->end_b[e] = f->end_b[e];
    c->end = f->end;
    if (f->uniform) return 1;
    if (!pgi_line_reserve(c)) return 0;
    for (int q = 0; q <= c->m; q++) {
        const int64_t at = (int64_t)q * f->m, i = at / c->m, rest = at % c->m;
        c->own.edge[q] = pgi_line_edge(f, i);
        if (rest) c->own.edge[q] += (pgi_line_edge(f, i + 1) - pgi_line_edge(f, i)) * ((double)rest / c->m);
    }
    c->own.edge[c->m] = pgi_line_edge(f, f->m);
    pgi_line_place(c);
    if (f->uniform) return 1;
    if (!c->node) pgi_line_centre(f, c);
    pgi_line_conduct(f, c);
    pgi_line_weigh(f, c);
    return 1;
}

// Row i of -(1/w) d/dx (k d/dx), without beta: lower, upper, reaction, diagonal.
static void pgi_line_row(const pgi_line *l, int i, double row[4])
{
    row[0] = row[1] = row[2] = row[3] = 0;
    if (l->absent || (l->periodic && l->n == 1)) return;
    const int open_below = i > 0 || l->periodic, open_above = i < l->n - 1 || l->periodic;
    if (open_below) row[0] = -pgi_line_k(l, i) / (pgi_line_w(l, i) * pgi_line_gap(l, i));
    if (open_above) row[1] = -pgi_line_k(l, i + 1) / (pgi_line_w(l, i) * pgi_line_gap(l, i + 1));
    if (i == 0) row[2] += pgi_end_coupling(l, 0) * l->end_a[0];
    if (i == l->n - 1) row[2] += pgi_end_coupling(l, 1) * l->end_a[1];
    row[2] += l->shift;
    row[3] = row[2] - row[0] - row[1];
}

// Row i of v du/dx: lower, upper, reaction, and what multiplies g at the low and the high end. du/dx is the mean of the
// differences below and above, each weighted with the distance to the middle of the other one, so that it is of second
// order; upwind, the one that the flow comes from. At an end the difference is what the boundary condition makes of
// du/dn.
static void pgi_line_convect(const pgi_line *l, int i, double row[5])
{
    memset(row, 0, 5 * sizeof *row);
    if (l->velocity == 0 || (l->periodic && l->n == 1)) return;
    double way[2], share[2];
    for (int e = 0; e < 2; e++) {
        const int at_end = !l->periodic && i == (e ? l->n - 1 : 0);
        way[e] = pgi_line_gap(l, i + e) * (at_end && l->end_b[e] != 0 ? 1 : 0.5);
    }
    for (int e = 0; e < 2; e++) {
        share[e] = way[0] + way[1] > 0 ? way[1 - e] / (way[0] + way[1]) : 0.5;
        if (l->upwind) share[e] = (l->velocity > 0) == (e == 0);
        const double v = (e ? l->velocity : -l->velocity) * share[e];    // times what is beside minus what is here
        if (l->periodic || i != (e ? l->n - 1 : 0)) {
            row[e] = v / pgi_line_gap(l, i + e);
        } else if (pgi_line_k(l, i + e) != 0) {
            const double slope = 1 / (l->end_a[e] * pgi_line_gap(l, i + e) + l->end_b[e]);    // of g - a u
            row[2] -= v * slope * l->end_a[e];
            row[3 + e] = -v * slope;
        }
    }
}

// Have two lines the same operator?
static int pgi_line_equal(const pgi_line *a, const pgi_line *b)
{
    if (a->velocity != b->velocity || a->upwind != b->upwind || a->shift != b->shift) return 0;
    if (a->n != b->n || a->periodic != b->periodic || a->absent != b->absent) return 0;
    for (int e = 0; e < 2; e++)
        if (a->end_a[e] != b->end_a[e] || a->end_b[e] != b->end_b[e]) return 0;
    if (a->uniform && b->uniform)
        return (a->node == b->node || a->periodic) && a->merged == b->merged && a->h == b->h && a->end == b->end;
    for (int i = 0; i <= a->n; i++)
        if (pgi_line_gap(a, i) != pgi_line_gap(b, i) || pgi_line_k(a, i) != pgi_line_k(b, i) ||
            (i < a->n && pgi_line_w(a, i) != pgi_line_w(b, i)))
            return 0;
    return 1;
}

// Is the constant function in the null space of this axis?
static int pgi_line_singular(const pgi_line *l)
{
    return l->shift == 0 && pgi_end_coupling(l, 0) * l->end_a[0] == 0 && pgi_end_coupling(l, 1) * l->end_a[1] == 0;
}

// The typical strength of the coupling between neighbours: the median, over a sample of inner gaps, of the rate at
// which the difference of the two unknowns decays. Ends do not count: a stiff Robin end couples no unknowns.
static double pgi_line_strength(const pgi_line *l)
{
    double sample[65];
    const int gaps = l->periodic ? l->n : l->n - 1, count = gaps < 65 ? gaps : 65;
    for (int q = 0; q < count; q++) {
        const int i = 1 + (int)((int64_t)q * (gaps - 1) / (count > 1 ? count - 1 : 1));
        double coupling = pgi_line_k(l, i) / pgi_line_gap(l, i);
        if (l->periodic && l->n == 2)
            coupling = pgi_line_k(l, 1) / pgi_line_gap(l, 1) +
                       pgi_line_k(l, 2) / pgi_line_gap(l, 2);    // both gaps part the same two
        const double rate = coupling * (1 / pgi_line_w(l, i - 1) + 1 / pgi_line_w(l, i < l->n ? i : 0));
        int p = q;
        for (; p > 0 && sample[p - 1] > rate; p--) sample[p] = sample[p - 1];
        sample[p] = rate;
    }
    return sample[count / 2];
}

// Gauss-Jordan elimination with row pivoting; column 4 is the right-hand side.
static void pgi_eliminate_rows(double m[4][5], int size)
{
    for (int p = 0; p < size; p++) {
        int best = p;
        for (int r = p + 1; r < size; r++)
            if (fabs(m[r][p]) > fabs(m[best][p])) best = r;
        for (int q = 0; q < 5; q++) {
            const double s = m[p][q];
            m[p][q] = m[best][q];
            m[best][q] = s;
        }
        for (int r = 0; r < size; r++) {
            if (r == p) continue;
            const double s = m[r][p] / m[p][p];
            for (int q = p; q < 5; q++) m[r][q] -= s * m[p][q];
        }
    }
}

// Weights of the polynomial through up to four conditions, evaluated at x: values at coarse points, or a face condition
// a p + b dp/dn = g. Points that do not exist get weight 0.
static void pgi_cubic_weights(const pgi_line *c, double x, int faces, int index[4], double weight[4])
{
    const int nc = c->n;
    const double period = pgi_line_edge(c, c->m) - pgi_line_edge(c, 0);
    const int j = pgi_search(pgi_line_x, c, nc, x);
    const int lowest = c->periodic ? j - 1 : faces ? -1 : 0;
    const int available = nc + (c->periodic || !faces ? 0 : 2);
    const int size = available < 4 ? available : 4;
    int start = j - 1;
    if (c->periodic) {
        if (size < 4) start = j - (size - 1) / 2;
    } else {
        if (start < lowest) start = lowest;
        if (start > lowest + available - size) start = lowest + available - size;
    }
    double m[4][5];    // transposed conditions on the monomials ((y - x) / scale)^r
    const double scale = period / nc;
    for (int q = 0; q < 4; q++) index[q] = 0, weight[q] = 0;
    for (int q = 0; q < size; q++) {
        const int p = start + q;
        double value = 1, slope = 0, y;
        if (p >= 0 && p < nc) {
            index[q] = p;
            y = pgi_line_x(c, p);
        } else if (c->periodic) {
            const int wrap = p < 0 ? -1 : 1;
            index[q] = p - wrap * nc;
            y = pgi_line_x(c, p - wrap * nc) + wrap * period;
        } else {
            const int end = p >= nc, closed = pgi_line_k(c, end ? nc : 0) == 0;
            index[q] = -1 - end;
            y = pgi_line_edge(c, end ? c->m : 0);
            value = closed ? 0 : c->end_a[end];
            slope = (closed ? 1 : c->end_b[end]) * (end ? 1 : -1);
        }
        const double t = (y - x) / scale;
        double power = 1;
        for (int r = 0; r < size; r++) {    // value t^r + slope r t^(r-1) / scale
            m[r][q] = value * power + (r ? slope * r * (t != 0 ? power / t : r == 1 ? 1 : 0) / scale : 0);
            power *= t;
        }
    }
    for (int r = 0; r < size; r++) m[r][4] = r == 0;
    pgi_eliminate_rows(m, size);
    for (int q = 0; q < size; q++) {
        weight[q] = m[q][4] / m[q][q];
        const int p = start + q;
        if (!c->periodic && (p < 0 || p >= nc) && pgi_line_k(c, p >= nc ? nc : 0) == 0) weight[q] = 0;
    }
}

// Rotations of neighbouring rows of a matrix, put off until there are many: columns do not see each other, so threads
// take some each, which lie together as long as the rows are turned.
enum { PGI_ABREAST = 16, PGI_PUT_OFF = 16384 };
struct pgi_rotation {
    double c, s;
    int row;    // and the next one
};
struct pgi_turned_rows {
    int n, count;
    double *q;                 // [column / PGI_ABREAST][row][PGI_ABREAST]
    pgi_rotation *rotation;    // count of them are put off
};

PGI_WIDE static void pgi_rotate_columns(double *q, const pgi_rotation *rotation, int count)
{
    for (int p = 0; p < count; p++) {
        double *const a = q + (size_t)rotation[p].row * PGI_ABREAST, *const b = a + PGI_ABREAST;
        const double c = rotation[p].c, s = rotation[p].s;
        PGI_OMP(omp simd)
        for (int i = 0; i < PGI_ABREAST; i++) {
            const double x = a[i], y = b[i];
            a[i] = c * x + s * y;
            b[i] = c * y - s * x;
        }
    }
}

static void pgi_rotate_now(pgi_turned_rows *rows)
{
    const int groups = (rows->n + PGI_ABREAST - 1) / PGI_ABREAST;
    PGI_OMP(omp parallel for schedule(static) if (rows->n > 256))
    for (int g = 0; g < groups; g++)
        pgi_rotate_columns(rows->q + (size_t)g * rows->n * PGI_ABREAST, rows->rotation, rows->count);
    rows->count = 0;
}

static void pgi_rotate(pgi_turned_rows *rows, int row, double c, double s)
{
    const pgi_rotation next = {c, s, row};
    rows->rotation[rows->count++] = next;
    if (rows->count == PGI_PUT_OFF) pgi_rotate_now(rows);
}

// The symmetric matrix with band[4 i + d] at (i, i - d), which is 0 for d = 3, becomes tridiagonal: what is two beside
// the diagonal is rotated away, and what that brings three beside it chased to the end (H. R. Schwarz 1968).
static void pgi_tridiagonalise(int n, double *band, pgi_turned_rows *rows)
{
    const auto at = [&](int i, int j) -> double & { return i > j ? band[4 * i + i - j] : band[4 * j + j - i]; };
    for (int k = 0; k + 2 < n; k++)
        for (int column = k, p = k + 1; p + 1 < n; column = p, p += 2) {
            const double x = at(p, column), y = at(p + 1, column), r = sqrt(x * x + y * y);
            if (y == 0) break;
            const double c = x / r, s = y / r, a = at(p, p), b = at(p, p + 1), g = at(p + 1, p + 1);
            for (int j = p > 2 ? p - 2 : 0; j < n && j <= p + 3; j++) {
                if (j == p || j == p + 1) continue;
                const double first = at(p, j), second = at(p + 1, j);
                at(p, j) = c * first + s * second;
                at(p + 1, j) = c * second - s * first;
            }
            at(p, p) = c * c * a + 2 * c * s * b + s * s * g;
            at(p + 1, p + 1) = s * s * a - 2 * c * s * b + c * c * g;
            at(p, p + 1) = c * s * (g - a) + (c * c - s * s) * b;
            at(p + 1, column) = 0;
            pgi_rotate(rows, p, c, s);
        }
}

// Diagonalises it by implicit QR steps with Wilkinson's shift (Golub and Van Loan, section 8.3.5). d, e: the diagonal
// and what is beside it.
static void pgi_diagonalise(int n, double *d, double *e, pgi_turned_rows *rows)
{
    const auto negligible = [&](int i) { return fabs(e[i]) <= DBL_EPSILON / 4 * (fabs(d[i]) + fabs(d[i + 1])); };
    int high = n - 1;
    for (int step = 0; high > 0 && step < 50 * n; step++) {
        if (negligible(high - 1)) {
            high--;
            continue;
        }
        int low = high - 1;
        while (low > 0 && !negligible(low - 1)) low--;
        const double half = (d[high - 1] - d[high]) / 2, last = e[high - 1], root = sqrt(half * half + last * last);
        double x = d[low] - (d[high] - last * last / (half + (half < 0 ? -root : root))), z = e[low];
        for (int k = low; k < high; k++) {
            const double r = sqrt(x * x + z * z), c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0;
            const double a = d[k], b = e[k], g = d[k + 1];
            if (k > low) e[k - 1] = r;
            d[k] = c * c * a + 2 * c * s * b + s * s * g;
            d[k + 1] = s * s * a - 2 * c * s * b + c * c * g;
            e[k] = c * s * (g - a) + (c * c - s * s) * b;
            x = e[k];
            if (k + 1 < high) {
                z = s * e[k + 1];
                e[k + 1] *= c;
            }
            pgi_rotate(rows, k, c, s);
        }
    }
}

// In numbers: rows, rows that are turned, four a row of a band, three, and rotations
static size_t pgi_eigen_work(int n)
{
    const size_t padded = ((size_t)n + PGI_ABREAST - 1) / PGI_ABREAST * PGI_ABREAST;
    return (size_t)n * ((size_t)n + padded + 7) + PGI_PUT_OFF * sizeof(pgi_rotation) / sizeof(double);
}

// Makes a mode the constant, which the eigenvalue 0 has, and the others orthogonal to it: round-off times the ratio of
// the largest eigenvalue to the next one would be left of a mean otherwise. Rows as pgi_line_eigen returns them; work:
// n numbers.
static void pgi_make_constant(const pgi_line *l, int mode, double *lambda, double *rows, double *work)
{
    const int n = l->n;
    double volume = 0;
    for (int i = 0; i < n; i++) volume += pgi_line_w(l, i);
    for (int i = 0; i < n; i++) work[i] = sqrt(pgi_line_w(l, i) / volume);
    for (int a = 0; a < n; a++) {
        double *const row = rows + a * n, share = 0;
        for (int i = 0; i < n; i++) share += row[i] * work[i];
        for (int i = 0; i < n; i++) row[i] = a == mode ? work[i] : row[i] - share * work[i];
    }
    lambda[mode] = 0;
}

// Where row i of a line's matrix stands in a band: a periodic line is folded, so that both ends of it lie together.
static int pgi_fold_row(const pgi_line *l, int i)
{
    return !l->periodic ? i : i < (l->n + 1) / 2 ? 2 * i : 2 * (l->n - 1 - i) + 1;
}

// The eigenvalues lambda[n] of a line and its modes, orthonormal in the weighted product: mode a at point i is
// rows[a n + i] / sqrt(w[i]). Returns these rows of W^(1/2) A W^(-1/2), in `work`, pgi_eigen_work(n) numbers. A value
// is the energy of its mode, a sum of squares: small ones are right too where the line is much stretched.
static const double *pgi_line_eigen(const pgi_line *l, double beta, double *lambda, double *work)
{
    const int n = l->n, groups = (n + PGI_ABREAST - 1) / PGI_ABREAST;
    double *const q = work, *const turned = q + (size_t)n * n, *const band = turned + (size_t)groups * PGI_ABREAST * n;
    double *const d = band + 4 * n, *const e = d + n, *const w = e + n;
    pgi_turned_rows rows = {n, 0, turned, (pgi_rotation *)(w + n)};
    double row[4], top = 0;
    memset(turned, 0, (size_t)((char *)d - (char *)turned));
    for (int i = 0; i < n; i++) {
        pgi_line_row(l, i, row);
        top = fmax(top, row[3]);
    }
    const double unit = top > 0 ? 1 / top : 1;
    for (int i = 0; i < n; i++) {
        pgi_line_row(l, i, row);
        const int here = pgi_fold_row(l, i), other[2] = {i > 0 ? i - 1 : n - 1, i < n - 1 ? i + 1 : 0};
        band[4 * here] += unit * row[3];
        for (int side = 0; side < 2; side++) {    // half of either direction: they agree but for round-off
            const int there = pgi_fold_row(l, other[side]), high = here > there ? here : there;
            if (row[side] == 0) continue;
            band[4 * high + abs(here - there)] +=
                unit / 2 * row[side] * sqrt(pgi_line_w(l, i) / pgi_line_w(l, other[side]));
        }
        turned[((size_t)(i / PGI_ABREAST) * n + here) * PGI_ABREAST + i % PGI_ABREAST] = 1;
    }
    pgi_tridiagonalise(n, band, &rows);
    for (int i = 0; i < n; i++) d[i] = band[4 * i], e[i] = i + 1 < n ? band[4 * i + 5] : 0;
    pgi_diagonalise(n, d, e, &rows);
    pgi_rotate_now(&rows);
    for (int g = 0; g < groups; g++)
        for (int a = 0; a < n; a++)
            for (int i = g * PGI_ABREAST; i < n && i < (g + 1) * PGI_ABREAST; i++)
                q[(size_t)a * n + i] = turned[((size_t)g * n + a) * PGI_ABREAST + i % PGI_ABREAST];
    for (int i = 0; i < n; i++) w[i] = 1 / sqrt(pgi_line_w(l, i));
    int smallest = 0;
    for (int a = 0; a < n; a++) {
        const double *const mode = q + a * n;
        lambda[a] = 0;
        for (int i = 0; i < n; i++) {
            pgi_line_row(l, i, row);
            const int below = i > 0 ? i - 1 : n - 1, above = i < n - 1 ? i + 1 : 0;
            const double here = mode[i] * w[i], down = here - mode[below] * w[below],
                         up = here - mode[above] * w[above];
            lambda[a] +=
                beta * pgi_line_w(l, i) * (row[2] * here * here - (row[0] * down * down + row[1] * up * up) / 2);
        }
        if (lambda[a] < lambda[smallest]) smallest = a;
    }
    if (pgi_line_singular(l)) pgi_make_constant(l, smallest, lambda, q, d);
    return q;
}

// The number of eigenvalues of an open (not periodic) line below x: Sturm's sequence.
static int pgi_line_count_below(const pgi_line *l, double x)
{
    int count = 0;
    double d = 1, upper_before = 0;
    for (int i = 0; i < l->n; i++) {
        double row[4];
        pgi_line_row(l, i, row);
        d = row[3] - x - (i > 0 ? row[0] * upper_before / d : 0);
        if (d == 0) d = DBL_MIN;
        count += d < 0;
        upper_before = row[1];
    }
    return count;
}

// The same two of a long uniform line that is open: inside, an eigenvector is sin(i theta + delta) from the low end and
// sin(j theta + epsilon) from the high one, its eigenvalue 4 sin^2(theta/2) / h^2; the rows at the ends give delta and
// epsilon, and where both agree, (n - 1) theta + delta + epsilon is a multiple of pi. It grows with theta.
static double pgi_uniform_eigenvalue(const pgi_line *l, int which)
{
    const double pi = 3.14159265358979323846;
    double first[4], inside[4], last[4], lo = 0, hi = (which + 1) * pi / (l->n - 1), value = 0;
    pgi_line_row(l, 0, first);
    pgi_line_row(l, 1, inside);
    pgi_line_row(l, l->n - 1, last);
    for (int step = 0; step < 60; step++) {
        const double theta = (lo + hi) / 2, half = sin(theta / 2), rise = 2 * half * half;
        value = -2 * inside[0] * rise;
        const double delta = atan2(sin(theta), (value - first[2]) / first[1] + rise);
        const double epsilon = atan2(sin(theta), (value - last[2]) / last[0] + rise);
        if ((l->n - 1) * theta + delta + epsilon > (which + 1) * pi)
            hi = theta;
        else
            lo = theta;
    }
    return value;
}

// Smallest eigenvalue of a line, or the smallest but the zero one (which = 1). Periodic: a lower estimate by a uniform
// line of the same length, for which it is exact.
static double pgi_line_eigenvalue(const pgi_line *l, int which)
{
    if (which >= l->n) return DBL_MAX;
    if (l->absent || (which == 0 && pgi_line_singular(l))) return 0;
    double top = 0, k = DBL_MAX, density = 0;
    for (int i = 0; i < l->n; i = pgi_line_next(l, i)) {
        double row[4];
        pgi_line_row(l, i, row);
        top = fmax(top, 2 * row[3]);
        k = fmin(k, pgi_line_k(l, i));
        density = fmax(density, pgi_line_w(l, i) / (pgi_line_bound(l, i + 1) - pgi_line_bound(l, i)));
    }
    if (l->periodic) {
        const double s = sin(3.14159265358979323846 / l->n) * l->n / (pgi_line_edge(l, l->m) - pgi_line_edge(l, 0));
        return 4 * s * s * k / density;
    }
    if (l->uniform && l->n > 64) return pgi_uniform_eigenvalue(l, which);
    double lo = 0, hi = top;
    for (int step = 0; step < 100 && hi - lo > 1e-10 * hi; step++) {
        const double mid = lo > 0 ? (lo + hi) / 2 : hi / 16 > top * 1e-18 ? hi / 16 : hi / 2;
        if (pgi_line_count_below(l, mid) > which)
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

template <class T> static pgi_row<T> pgi_filled_row(const pgi_line *l, double beta, int i)
{
    double row[4], flow[5];
    pgi_line_row(l, i, row);
    pgi_line_convect(l, i, flow);
    return {(T)(beta * row[0] + flow[0]), (T)(beta * row[1] + flow[1]), (T)(beta * row[2] + flow[2])};
}

template <class T> static void pgi_axis_fill(pgi_axis<T> *a, const pgi_line *l, double beta, pgi_row<T> *table,
                                             double *weight, void *table_at, void *weight_at)
{
    memset(a, 0, sizeof *a);
    a->n = l->n;
    a->periodic = l->periodic;
    a->seam = l->periodic && l->n % 2 && l->n > 1;
    for (int q = 0; q < 3; q++) {
        const int i = q == 0 ? 0 : q == 1 ? (l->n > 2) : l->n - 1;
        a->row[q] = pgi_filled_row<T>(l, beta, i);
        a->row_weight[q] = pgi_line_w(l, i);
    }
    if (l->uniform) return;
    a->table = (pgi_row<T> *)table_at;
    a->weight = (double *)weight_at;
    for (int i = 0; i < l->n && table; i++) {
        table[i] = pgi_filled_row<T>(l, beta, i);
        weight[i] = pgi_line_w(l, i);
    }
}

// ---- what every back end can do with its plain operations ----

// The other grid of a level: u and t take turns to hold the iterate.
static pgi_grid pgi_other_grid(const pgi_level *l, pgi_grid u) { return u.base == l->u.base ? l->t : l->u; }

enum pgi_head { PGI_FROM_U, PGI_FROM_ZERO, PGI_CORRECTED };    // the guess: u, 0, or u + P e

static pgi_grid pgi_relax_in_place(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, pgi_omega omega,
                                   int reversed, int sweeps, int head, const pgi_level *coarse, pgi_grid e,
                                   pgi_wanted *)
{
    if (head == PGI_FROM_ZERO) s->ops->fill_zero(s, l, u);
    if (head == PGI_CORRECTED) s->ops->prolong_add(s, l, u, coarse, e);
    for (int q = 0; q < sweeps; q++) s->ops->red_black(s, l, u, rhs, omega, reversed);
    return u;
}

static pgi_grid pgi_jacobi_one_by_one(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, const double *weight,
                                      int period, int sweeps)
{
    for (int q = 0; q < sweeps; q++) {
        const pgi_grid to = pgi_other_grid(l, u);
        s->ops->jacobi(s, l, u, rhs, weight[q % period], to);
        u = to;
    }
    return u;
}

static pgi_grid pgi_no_grid()
{
    pgi_grid g = {NULL, 0, 0, 0, 0};
    return g;
}

static pgi_rhs pgi_rhs_of(pgi_grid f)
{
    pgi_rhs r;
    r.f = f;
    r.faces = NULL;
    return r;
}

static void pgi_residual_then_restrict(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs,
                                       const pgi_level *coarse, int with_norm)
{
    const pgi_grid r = pgi_other_grid(l, u);
    s->ops->residual(s, l, u, rhs, r);
    if (with_norm) s->ops->reduce(s, l, PGI_FIELD, PGI_SELF, r, pgi_no_grid(), pgi_rhs_of(pgi_no_grid()), 0);
    s->ops->restrict_full(s, l, r, coarse, coarse->f, 0);
}

// -------------------------------------------------------------------------------------------------------------------
// >>cpu  The operations on the CPU: rows, spread over OpenMP threads.
// -------------------------------------------------------------------------------------------------------------------

static uint64_t pgi_cpu_now()
{
    return (uint64_t)std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Threads of a loop over so many points. Each costs time where it waits for a core that others use, so none has fewer
// than PGI_SERIAL points of the finest level; but all teams of a solver that are larger than one are equal, since
// OpenMP libraries end the threads that a smaller team leaves out.
static int pgi_cpu_threads(const pgi_level *l, int64_t points)
{
#ifdef _OPENMP
    const int most = omp_get_max_threads();
    if (points > PGI_SERIAL) return l->team < most ? (int)l->team : most;
#endif
    (void)l, (void)points;
    return 1;
}

// Pieces of a sweep, one a thread.
static int pgi_cpu_slabs(const pgi_level *l, int planes)
{
    const int threads = pgi_cpu_threads(l, l->points);
    return threads < planes / 4 ? threads : planes / 4 > 1 ? planes / 4 : 1;
}

// How a row is walked: points in any order (so in vectors), every second one in any order, or one after the other.
enum pgi_walk { PGI_EVERY, PGI_EVERY_SECOND, PGI_IN_ORDER };

// Bodies of rows have to be inlined into their loops to be vectorised; GCC does not always see it.
#define PGI_INLINE __attribute__((always_inline))

// Calls body(i, A u, inverse diagonal, with care?) for points i0 <= i < i1 of row (j,k). The ends, and all points of a
// careful row, which touch a face, come through a slow path; the loops between them have no branches.
template <int WALK, class T, class Body>
PGI_INLINE static inline void pgi_cpu_row(const pgi_box<T> &b, const T *u, int64_t sj, int64_t sk, int j, int k, int i0,
                                          int i1, int careful, Body body)
{
    const int step = WALK == PGI_EVERY_SECOND ? 2 : 1;
    const pgi_axis<T> &ax = b.axis[0], &ay = b.axis[1], &az = b.axis[2];
    const pgi_row<T> y = pgi_row_of(ay, j), z = pgi_row_of(az, k);
    const T *p = u + j * sj + k * sk;
    const T *ym = p + pgi_below(ay, j) * sj, *yp = p + pgi_above(ay, j) * sj;
    const T *zm = p + pgi_below(az, k) * sk, *zp = p + pgi_above(az, k) * sk;
    const T alpha = (T)b.state->alpha;
    const auto slow = [&](int i) {
        const pgi_row<T> x = pgi_row_of(ax, i);
        const T c = pgi_reaction(alpha, x, y, z), xm = p[i + pgi_below(ax, i)], xp = p[i + pgi_above(ax, i)];
        body(i, pgi_stencil(x, y, z, c, p[i], xm, xp, ym[i], yp[i], zm[i], zp[i]), 1 / pgi_diagonal(c, x, y, z), true);
    };
    int i = i0;
    for (; (i == 0 || careful) && i < i1; i += step) slow(i);
    const int begin = i, end = i1 < ax.n - 1 ? i1 : ax.n - 1;
    if (ax.table) {
        for (int m = begin; m < end; m += step) {
            const pgi_row<T> x = ax.table[m];
            const T c = pgi_reaction(alpha, x, y, z);
            body(m, pgi_stencil(x, y, z, c, p[m], p[m - 1], p[m + 1], ym[m], yp[m], zm[m], zp[m]),
                 1 / pgi_diagonal(c, x, y, z), false);
        }
    } else {
        const pgi_row<T> x = ax.row[1];
        const T c = pgi_reaction(alpha, x, y, z), inverse = 1 / pgi_diagonal(c, x, y, z);
        if (WALK == PGI_IN_ORDER) {
            for (int m = begin; m < end; m++)
                body(m, pgi_stencil(x, y, z, c, p[m], p[m - 1], p[m + 1], ym[m], yp[m], zm[m], zp[m]), inverse, false);
        } else {
            PGI_OMP(omp simd)
            for (int m = begin; m < end; m += step)
                body(m, pgi_stencil(x, y, z, c, p[m], p[m - 1], p[m + 1], ym[m], yp[m], zm[m], zp[m]), inverse, false);
        }
    }
    if (i < end) i += (end - i + step - 1) / step * step;
    for (; i < i1; i += step) slow(i);
}

// f of a row as the equation has it; with care: with the boundary data.
#define PGI_CPU_RHS(i, care) (care ? pgi_rhs_point(b, rhs, f[i], mean, i, j, k) : f[i] - mean)

template <class T> static inline int pgi_cpu_face_row(const pgi_box<T> &b, const pgi_rhs &rhs, int j, int k)
{
    return (pgi_face_mask(rhs, b.state) & (pgi_end_bits(j, b.axis[1].n) << 2 | pgi_end_bits(k, b.axis[2].n) << 4)) != 0;
}

template <int WALK, class T> PGI_WIDE static void pgi_cpu_relax_row(const pgi_box<T> &b, const pgi_rhs &rhs, const T *u,
                                                                    T *out, int64_t sj, int64_t sk, int64_t out_sj,
                                                                    int64_t out_sk, T omega, int j, int k, int i0,
                                                                    int i1)
{
    const T *f = pgi_data<T>(rhs.f) + j * rhs.f.sj + k * rhs.f.sk;
    const T *p = u + j * sj + k * sk;
    T *q = out + j * out_sj + k * out_sk;
    const int face_row = pgi_cpu_face_row(b, rhs, j, k);
    const T mean = pgi_mean_of<T>(rhs, b.state);
    pgi_cpu_row<WALK>(b, u, sj, sk, j, k, i0, i1, face_row,
                      [=, &b, &rhs](int i, T au, T inverse, bool care)
                          PGI_INLINE { q[i] = pgi_relaxed(p[i], PGI_CPU_RHS(i, care) - au, inverse, omega); });
}

template <class T>
static void pgi_cpu_jacobi(pg_solver *, const pgi_level *l, pgi_grid gu, pgi_rhs rhs, double omega, pgi_grid out)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const int nx = l->n[0], ny = l->n[1], nz = l->n[2];
    const T *u = pgi_data<T>(gu);
    T *v = pgi_data<T>(out);
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)))
    for (int64_t row = 0; row < (int64_t)ny * nz; row++)
        pgi_cpu_relax_row<PGI_EVERY>(b, rhs, u, v, gu.sj, gu.sk, out.sj, out.sk, (T)omega, (int)(row % ny),
                                     (int)(row / ny), 0, nx);
}

// One colour of a row: points whose indices, those of seam axes left out, have the given parity.
template <class T> static inline void pgi_cpu_colour_row(const pgi_box<T> &b, const pgi_rhs &rhs, T *u, int64_t sj,
                                                         int64_t sk, T omega, int j, int k, int seams, int parity)
{
    const int rest = (parity + (seams & 2 ? 0 : j) + (seams & 4 ? 0 : k)) & 1, nx = b.axis[0].n;
    if (!(seams & 1))
        pgi_cpu_relax_row<PGI_EVERY_SECOND>(b, rhs, u, u, sj, sk, sj, sk, omega, j, k, rest, nx - b.axis[0].seam);
    else if (!rest)
        pgi_cpu_relax_row<PGI_EVERY>(b, rhs, u, u, sj, sk, sj, sk, omega, j, k, nx - 1, nx);
}

// Red-black relaxation of a box in about one pass over memory. Every thread has a slab of planes; the second colour
// follows one plane behind the first, but for the slab's two outer planes, which wait until the neighbours' first
// colour is done. The result does not depend on the slabs.
template <class T> static void pgi_cpu_red_black_box(const pgi_level *l, T *u, int64_t sj, int64_t sk,
                                                     const pgi_rhs &rhs, const T omega[2], int first)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const int ny = l->n[1] - b.axis[1].seam, planes = l->n[2] - b.axis[2].seam, second = 1 - first;
    const int slabs = pgi_cpu_slabs(l, planes);
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)) if (slabs > 1))
    for (int slab = 0; slab < slabs; slab++) {
        const int lo = (int)((int64_t)planes * slab / slabs), hi = (int)((int64_t)planes * (slab + 1) / slabs);
        for (int k = lo; k < hi; k++) {
            for (int j = 0; j < ny; j++) {
                pgi_cpu_colour_row(b, rhs, u, sj, sk, omega[0], j, k, 0, first);
                if (k - 1 > lo) pgi_cpu_colour_row(b, rhs, u, sj, sk, omega[1], j, k - 1, 0, second);
            }
        }
    }
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)) if (slabs > 1))
    for (int slab = 0; slab < slabs; slab++) {
        const int lo = (int)((int64_t)planes * slab / slabs), hi = (int)((int64_t)planes * (slab + 1) / slabs);
        for (int j = 0; j < ny; j++) {
            pgi_cpu_colour_row(b, rhs, u, sj, sk, omega[1], j, lo, 0, second);
            if (hi - 1 > lo) pgi_cpu_colour_row(b, rhs, u, sj, sk, omega[1], j, hi - 1, 0, second);
        }
    }
}

// Does every axis that the bits of seams name have a seam?
static int pgi_has_seams(const int seam[3], int seams)
{
    for (int a = 0; a < 3; a++)
        if ((seams >> a & 1) && !seam[a]) return 0;
    return 1;
}

template <class T>
static void pgi_cpu_red_black(pg_solver *, const pgi_level *l, pgi_grid gu, pgi_rhs rhs, pgi_omega omega, int reversed)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const int seam[3] = {b.axis[0].seam, b.axis[1].seam, b.axis[2].seam};
    T *u = pgi_data<T>(gu);
    if (omega.first == 0) omega = pgi_evenly(b.state->omega);
    const T weight[2] = {(T)omega.first, (T)omega.second};
    for (int step = 0; step < 8; step++) {
        const int seams = reversed ? 7 - step : step;
        if (!pgi_has_seams(seam, seams)) continue;
        if (!seams) {
            pgi_cpu_red_black_box(l, u, gu.sj, gu.sk, rhs, weight, reversed);
            continue;
        }
        const int j0 = seams & 2 ? l->n[1] - 1 : 0, j1 = seams & 2 ? l->n[1] : l->n[1] - seam[1];
        const int k0 = seams & 4 ? l->n[2] - 1 : 0, k1 = seams & 4 ? l->n[2] : l->n[2] - seam[2];
        for (int pass = 0; pass < 2; pass++)
            for (int k = k0; k < k1; k++)
                for (int j = j0; j < j1; j++)
                    pgi_cpu_colour_row(b, rhs, u, gu.sj, gu.sk, weight[pass], j, k, seams, reversed ? 1 - pass : pass);
    }
}

// out = scale * (f - A u)
template <class T, class TO>
static void pgi_cpu_residual_to(const pgi_level *l, pgi_grid gu, const pgi_rhs &rhs, pgi_grid out, T scale)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const int nx = l->n[0], ny = l->n[1], nz = l->n[2];
    const T *u = pgi_data<T>(gu);
    const T mean = pgi_mean_of<T>(rhs, b.state);
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)))
    for (int64_t row = 0; row < (int64_t)ny * nz; row++) {
        const int j = (int)(row % ny), k = (int)(row / ny);
        const T *f = pgi_data<T>(rhs.f) + j * rhs.f.sj + k * rhs.f.sk;
        TO *q = pgi_data<TO>(out) + j * out.sj + k * out.sk;
        const int face_row = pgi_cpu_face_row(b, rhs, j, k);
        pgi_cpu_row<PGI_EVERY>(b, u, gu.sj, gu.sk, j, k, 0, nx, face_row,
                               [=, &b, &rhs](int i, T au, T, bool care)
                                   PGI_INLINE { q[i] = (TO)(scale * (PGI_CPU_RHS(i, care) - au)); });
    }
}

template <class T> static void pgi_cpu_residual(pg_solver *, const pgi_level *l, pgi_grid u, pgi_rhs rhs, pgi_grid r)
{
    pgi_cpu_residual_to<T, T>(l, u, rhs, r, 1);
}

template <class T> static void pgi_cpu_apply(pg_solver *, const pgi_level *l, pgi_grid gu, pgi_grid gv)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const int nx = l->n[0], ny = l->n[1], nz = l->n[2];
    const T *u = pgi_data<T>(gu);
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)))
    for (int64_t row = 0; row < (int64_t)ny * nz; row++) {
        const int j = (int)(row % ny), k = (int)(row / ny);
        T *q = pgi_data<T>(gv) + j * gv.sj + k * gv.sk;
        pgi_cpu_row<PGI_EVERY>(b, u, gu.sj, gu.sk, j, k, 0, nx, 0, [=](int i, T au, T, bool) PGI_INLINE { q[i] = au; });
    }
}

template <class T> static void pgi_cpu_reduce(pg_solver *s, const pgi_level *l, int source, int partner, pgi_grid gx,
                                              pgi_grid gy, pgi_rhs rhs, int again)
{
    const double factor = again ? pgi_rescale(s->state) : 1, unit = s->state->unit_of_sums *= factor;
    if (again && factor == 1) return;
    const pgi_box<T> &b = pgi_box_of(l, T());
    const int nx = l->n[0], ny = l->n[1];
    const int64_t rows = (int64_t)ny * l->n[2];
    const int chunks = rows < PGI_CHUNKS ? (int)rows : (int)PGI_CHUNKS;
    const T *x = source == PGI_RHS ? NULL : pgi_data<T>(gx), *y = partner == PGI_OTHER ? pgi_data<T>(gy) : NULL;
    const T mean = pgi_mean_of<T>(rhs, b.state);
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)))
    for (int chunk = 0; chunk < chunks; chunk++) {
        double sums[4] = {0, 0, 0, 0};
        for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; row++) {
            const int j = (int)(row % ny), k = (int)(row / ny);
            const double wyz = pgi_weight_of(b.axis[1], j) * pgi_weight_of(b.axis[2], k);
            const T *f = source == PGI_FIELD ? NULL : pgi_data<T>(rhs.f) + j * rhs.f.sj + k * rhs.f.sk;
            const T *p = x ? x + j * gx.sj + k * gx.sk : NULL, *q = y ? y + j * gy.sj + k * gy.sk : NULL;
            const int face_row = pgi_cpu_face_row(b, rhs, j, k);
            const auto add = [&](int i, T v) {
                const double e = unit * (double)v;
                pgi_accumulate(sums, wyz * pgi_weight_of(b.axis[0], i), e,
                               partner == PGI_SELF  ? e
                               : partner == PGI_ONE ? 1.0
                                                    : (double)q[i]);
            };
            if (source == PGI_RESIDUAL)
                pgi_cpu_row<PGI_IN_ORDER>(b, x, gx.sj, gx.sk, j, k, 0, nx, face_row,
                                          [&](int i, T au, T, bool care)
                                              PGI_INLINE { add(i, PGI_CPU_RHS(i, care) - au); });
            else if (source == PGI_RHS)
                for (int i = 0; i < nx; i++) add(i, PGI_CPU_RHS(i, true));
            else
                for (int i = 0; i < nx; i++) add(i, p[i]);
        }
        memcpy(s->partials + 4 * chunk, sums, sizeof sums);
    }
    double sums[4] = {0, 0, 0, 0};
    for (int chunk = 0; chunk < chunks; chunk++) pgi_combine(sums, s->partials + 4 * chunk);
    memcpy(s->state->sums, sums, sizeof sums);
}

template <class T> static void pgi_cpu_magnitude(pg_solver *s, const pgi_level *l, pgi_grid u)
{
    if (!s->state->seek) return;
    const pgi_box<T> &b = pgi_box_of(l, T());
    const int nx = l->n[0], ny = l->n[1];
    const int64_t rows = (int64_t)ny * l->n[2];
    const int chunks = rows < PGI_CHUNKS ? (int)rows : (int)PGI_CHUNKS;
    const double unit = s->state->unit_of_sums, even = pgi_even_diagonal(b);
    PGI_OMP(omp parallel for schedule(static) if (l->points > PGI_SERIAL))
    for (int chunk = 0; chunk < chunks; chunk++) {
        double sums[4] = {0, 0, 0, 0};
        for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; row++) {
            const int j = (int)(row % ny), k = (int)(row / ny);
            const double wyz = pgi_weight_of(b.axis[1], j) * pgi_weight_of(b.axis[2], k);
            const T *const p = pgi_data<T>(u) + j * u.sj + k * u.sk;
            for (int i = 0; i < nx; i++) {
                const double v = unit * pgi_magnitude_point(b, even, p[i], i, j, k);
                pgi_accumulate(sums, wyz * pgi_weight_of(b.axis[0], i), v, v);
            }
        }
        memcpy(s->partials + 4 * chunk, sums, sizeof sums);
    }
    memset(s->state->magnitude, 0, sizeof s->state->magnitude);
    for (int chunk = 0; chunk < chunks; chunk++) pgi_combine(s->state->magnitude, s->partials + 4 * chunk);
}

// Calls body(j, k) for every row.
template <class Body> static void pgi_cpu_rows(const pgi_level *l, Body body)
{
    const int ny = l->n[1];
    const int64_t rows = (int64_t)ny * l->n[2];
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)))
    for (int64_t row = 0; row < rows; row++) body((int)(row % ny), (int)(row / ny));
}

template <class T> static void pgi_cpu_fill_zero(pg_solver *, const pgi_level *l, pgi_grid u)
{
    pgi_cpu_rows(l,
                 [&](int j, int k) { memset(pgi_data<T>(u) + j * u.sj + k * u.sk, 0, (size_t)l->n[0] * sizeof(T)); });
}

template <class T> static void pgi_cpu_copy(pg_solver *, const pgi_level *l, pgi_grid from, pgi_grid to)
{
    pgi_cpu_rows(l, [&](int j, int k) {
        memcpy(pgi_data<T>(to) + j * to.sj + k * to.sk, pgi_data<T>(from) + j * from.sj + k * from.sk,
               (size_t)l->n[0] * sizeof(T));
    });
}

template <class T> static void pgi_cpu_subtract_shift(pg_solver *s, const pgi_level *l, pgi_grid u)
{
    const T shift = (T)s->state->shift;
    if (shift == 0) return;
    pgi_cpu_rows(l, [&](int j, int k) {
        T *p = pgi_data<T>(u) + j * u.sj + k * u.sk;
        for (int i = 0; i < l->n[0]; i++) p[i] -= shift;
    });
}

// A recurrence in one pass. A row's values go through registers one point after the other: sums have a fixed order.
template <class T, template <class> class RECURRENCE>
static void pgi_cpu_recurrence(pg_solver *s, const pgi_level *l, const pgi_vectors &g)
{
    typedef RECURRENCE<T> point;
    const pgi_box<T> &b = pgi_box_of(l, T());
    const pgi_krylov_steps<T> c(s->state);
    const int nx = l->n[0], ny = l->n[1];
    const int64_t rows = (int64_t)ny * l->n[2];
    const int chunks = rows < PGI_CHUNKS ? (int)rows : (int)PGI_CHUNKS;
    const double unit = s->state->unit_of_sums;
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)))
    for (int chunk = 0; chunk < chunks; chunk++) {
        double sums[4 + PGI_DOTS] = {0};
        for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; row++) {
            const int j = (int)(row % ny), k = (int)(row / ny);
            const double wyz = pgi_weight_of(b.axis[1], j) * pgi_weight_of(b.axis[2], k);
            const pgi_row<T> y = pgi_row_of(b.axis[1], j), z = pgi_row_of(b.axis[2], k);
            void *vector[point::VECTORS];
            for (int q = 0; q < point::VECTORS; q++)
                vector[q] = pgi_vector_at<T>(g.v[q], point::NARROW >> q & 1, j * g.v[q].sj + k * g.v[q].sk);
            const auto at = [&](int i, T av, T inverse) PGI_INLINE {
                T v[point::VECTORS] = {};
                pgi_term<T> dot[point::DOTS + 1];
                for (int q = 0; q < point::VECTORS; q++)
                    if ((point::READ | point::PRODUCT) >> q & 1)
                        v[q] = pgi_value_of<T>(vector[q], point::NARROW >> q & 1, i);
                point::at(c, v, av, inverse, dot);
                for (int q = 0; q < point::VECTORS; q++)
                    if (point::WRITTEN >> q & 1) pgi_set_value(vector[q], point::NARROW >> q & 1, i, v[q]);
                const double w = wyz * pgi_weight_of(b.axis[0], i);
                if (point::NORM >= 0) {
                    const double e = unit * (double)v[point::NORM >= 0 ? point::NORM : 0];
                    pgi_accumulate(sums, w, e, e);
                }
                for (int q = 0; q < point::DOTS; q++)
                    sums[4 + q] += w * (unit * (double)dot[q].x) * (unit * (double)dot[q].y);
            };
            if (point::PRODUCT)
                pgi_cpu_row<PGI_IN_ORDER>(b, (const T *)pgi_data<T>(g.v[0]), g.v[0].sj, g.v[0].sk, j, k, 0, nx, 0,
                                          [&](int i, T av, T inverse, bool) PGI_INLINE { at(i, av, inverse); });
            else
                for (int i = 0; i < nx; i++)
                    at(i, 0,
                       pgi_factor_of<point>(b, pgi_row_of(b.axis[0], i), y, z, wyz * pgi_weight_of(b.axis[0], i)));
        }
        memcpy(s->partials + (4 + PGI_DOTS) * chunk, sums, sizeof sums);
    }
    if (point::DOTS == 0 && point::NORM < 0) return;
    double sums[4 + PGI_DOTS] = {0};
    for (int chunk = 0; chunk < chunks; chunk++) pgi_combine<PGI_DOTS>(sums, s->partials + (4 + PGI_DOTS) * chunk);
    const int first = point::NORM >= 0 ? 0 : 4;
    memcpy(s->state->sums + first, sums + first, sizeof sums - (size_t)first * sizeof *sums);
}

template <class T> static void pgi_cpu_recur(pg_solver *s, const pgi_level *l, int recurrence, const pgi_vectors &g)
{
    switch (recurrence) {
#define PGI_CASE_(NAME, TYPE)                                                                                          \
    case NAME: pgi_cpu_recurrence<T, TYPE>(s, l, g); break;
        PGI_RECURRENCES(PGI_CASE_)
#undef PGI_CASE_
    }
}

template <class T>
static void pgi_cpu_apply_two(pg_solver *s, const pgi_level *l, pgi_grid x, pgi_grid ax, pgi_grid y, pgi_grid ay)
{
    pgi_cpu_apply<T>(s, l, x, ax);
    pgi_cpu_apply<T>(s, l, y, ay);
}

// sum over a window of windows: one coarse value
template <class T, class Window> static PGI_HD inline T pgi_restrict_point(const T *r, int64_t sj, int64_t sk,
                                                                           const int n[3], const Window &x,
                                                                           const Window &y, const Window &z)
{
    T sum = 0;
    int k = z.first;
    for (int c = 0; c < z.count; c++, k = k + 1 < n[2] ? k + 1 : 0) {
        T plane = 0;
        int j = y.first;
        for (int b = 0; b < y.count; b++, j = j + 1 < n[1] ? j + 1 : 0) {
            T line = 0;
            int i = x.first;
            for (int a = 0; a < x.count; a++, i = i + 1 < n[0] ? i + 1 : 0) line += x.w[a] * r[i + j * sj + k * sk];
            plane += y.w[b] * line;
        }
        sum += z.w[c] * plane;
    }
    return sum;
}

template <class T> static void pgi_cpu_restrict_full(pg_solver *, const pgi_level *fine, pgi_grid r,
                                                     const pgi_level *coarse, pgi_grid f, int average)
{
    const pgi_box<T> &bf = pgi_box_of(fine, T()), &bc = pgi_box_of(coarse, T());
    const pgi_transfers<T> &t = pgi_transfers_of(fine, T());
    pgi_cpu_rows(coarse, [&](int J, int K) {
        T *out = pgi_data<T>(f) + J * f.sj + K * f.sk;
        pgi_window<T> x, y, z;
        pgi_restriction(t.axis[1], bf.axis[1], bc.axis[1], J, average, &y);
        pgi_restriction(t.axis[2], bf.axis[2], bc.axis[2], K, average, &z);
        for (int I = 0; I < coarse->n[0]; I++) {
            pgi_restriction(t.axis[0], bf.axis[0], bc.axis[0], I, average, &x);
            out[I] = pgi_restrict_point(pgi_data<T>(r), r.sj, r.sk, fine->n, x, y, z);
        }
    });
}

// The two axes of face q's plane, lower first.
static PGI_HD inline int pgi_plane_axis(int q, int which)
{
    return which ? (q / 2 == 2 ? 1 : 2) : (q / 2 == 0 ? 1 : 0);
}

// Coarse boundary datum (I,J) of face q from the fine ones; averages, as for f.
template <class T> static PGI_HD inline T pgi_restrict_face_point(const pgi_box<T> &bf, const pgi_box<T> &bc,
                                                                  const pgi_transfers<T> &t, const T *fine, int q,
                                                                  int I, int J)
{
    pgi_window<T> w[2];
    int n[3] = {1, 1, 1};
    PGI_ROLLED
    for (int e = 0; e < 2; e++) {
        const int a = pgi_plane_axis(q, e);
        pgi_restriction(t.axis[a], bf.axis[a], bc.axis[a], e ? J : I, 1, &w[e]);
        n[e] = bf.axis[a].n;
    }
    const pgi_window<T> one = {0, 1, {1}};
    return pgi_restrict_point(fine, n[0], 0, n, w[0], w[1], one);
}

template <class T> static void pgi_cpu_restrict_faces(pg_solver *s, const pgi_level *fine, const pgi_level *coarse)
{
    const pgi_box<T> &bf = pgi_box_of(fine, T()), &bc = pgi_box_of(coarse, T());
    for (int q = 0; q < 6; q++) {
        if (!s->state->face[q].plane || !coarse->plane[q]) continue;
        const T *from = (const T *)(fine->plane[q] ? fine->plane[q] : s->state->face[q].plane);
        const int na = coarse->n[pgi_plane_axis(q, 0)], nb = coarse->n[pgi_plane_axis(q, 1)];
        for (int J = 0; J < nb; J++)
            for (int I = 0; I < na; I++)
                ((T *)coarse->plane[q])[I + (int64_t)na * J] =
                    pgi_restrict_face_point(bf, bc, pgi_transfers_of(fine, T()), from, q, I, J);
    }
}

template <class T> static PGI_HD inline T pgi_prolong_point(const T *e, int64_t sj, int64_t sk, const pgi_pair<T> &x,
                                                            const pgi_pair<T> &y, const pgi_pair<T> &z)
{
    const T *p00 = e + y.j0 * sj + z.j0 * sk, *p10 = e + y.j1 * sj + z.j0 * sk;
    const T *p01 = e + y.j0 * sj + z.j1 * sk, *p11 = e + y.j1 * sj + z.j1 * sk;
    return z.w0 * (y.w0 * (x.w0 * p00[x.j0] + x.w1 * p00[x.j1]) + y.w1 * (x.w0 * p10[x.j0] + x.w1 * p10[x.j1])) +
           z.w1 * (y.w0 * (x.w0 * p01[x.j0] + x.w1 * p01[x.j1]) + y.w1 * (x.w0 * p11[x.j0] + x.w1 * p11[x.j1]));
}

template <class T>
static void pgi_cpu_prolong_add(pg_solver *, const pgi_level *fine, pgi_grid u, const pgi_level *, pgi_grid e)
{
    const pgi_transfers<T> &t = pgi_transfers_of(fine, T());
    pgi_cpu_rows(fine, [&](int j, int k) {
        T *p = pgi_data<T>(u) + j * u.sj + k * u.sk;
        const pgi_pair<T> y = pgi_prolongation(t.axis[1], j), z = pgi_prolongation(t.axis[2], k);
        for (int i = 0; i < fine->n[0]; i++)
            p[i] += pgi_prolong_point(pgi_data<T>(e), e.sj, e.sk, pgi_prolongation(t.axis[0], i), y, z);
    });
}

template <class T> static void pgi_cpu_interpolate(pg_solver *, const pgi_level *fine, pgi_grid u,
                                                   const pgi_level *coarse, pgi_grid v, int full, int add)
{
    const pgi_transfers<T> &t = pgi_transfers_of(fine, T());
    const pgi_interpolation<T> p =
        pgi_interpolation_of(pgi_box_of(fine, T()).state, full ? fine->faces : NULL, full ? coarse->faces : NULL,
                             fine->n[0], pgi_box_of(coarse, T()), v);
    PGI_OMP(omp parallel for collapse(2) schedule(static) num_threads(pgi_cpu_threads(fine, fine->points)))
    for (int j = 0; j < fine->n[1]; j++)
        for (int i = 0; i < fine->n[0]; i++)
            pgi_interpolate_column(p, t, i, j, 0, fine->n[2], (const pgi_cubic<T> *)NULL, pgi_data<T>(u) + i + j * u.sj,
                                   u.sk, add);
}

// a / b, where b is neither 0 nor near the ends of the range of numbers.
static PGI_HD inline double pgi_ratio(double a, double b)
{
#ifdef __CUDA_ARCH__
    double r;    // free of branches, so that several go side by side
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(b));
    r = fma(fma(-b, r, 1.0), r, r);
    r = fma(fma(-b, r, 1.0), r, r);
    const double q = a * r;
    return fma(fma(-b, q, a), r, q);
#else
    return a / b;
#endif
}

// A coefficient divided by its eigenvalue, sum + alpha; 0 where that is exactly 0, for the constant of a singular
// problem, or 0 to round-off. sum: of the eigenvalues of the axes.
template <class T> static PGI_HD inline T pgi_quotient(T value, double sum, double alpha, int *resonant)
{
    const double total = sum + alpha;
    const int lost = alpha < 0 && fabs(total) <= 8 * DBL_EPSILON * (sum - alpha);
    if (lost) *resonant = 1;
    return lost || total == 0 ? (T)0 : (T)pgi_ratio((double)value, total);
}

// The exact solver (fast diagonalisation; Lynch, Rice, Thomas 1964): u += V (lambda_x + lambda_y + lambda_z + alpha)^-1
// V^T W r, one product with a matrix an axis and way.
template <class T>
static PGI_HD inline T pgi_mode_divide(const pgi_modes<T> &m, double alpha, T value, int i, int j, int k, int *resonant)
{
    return pgi_quotient(value, m.value[0][i] + m.value[1][j] + m.value[2][k], alpha, resonant);
}

// The residual at a point, of arrays that begin at u and f; u NULL: the right-hand side.
template <class T> static PGI_HD inline T pgi_residual_point(const pgi_box<T> &b, const pgi_rhs &rhs, const T *f,
                                                             T mean, const T *u, int64_t sj, int64_t sk, int i, int j,
                                                             int k)
{
    const T right = pgi_rhs_point(b, rhs, f[i + j * rhs.f.sj + k * rhs.f.sk], mean, i, j, k);
    if (!u) return right;
    const pgi_row<T> x = pgi_row_of(b.axis[0], i), y = pgi_row_of(b.axis[1], j), z = pgi_row_of(b.axis[2], k);
    const T *p = u + i + j * sj + k * sk;
    return right - pgi_stencil(x, y, z, pgi_reaction((T)b.state->alpha, x, y, z), p[0], p[pgi_below(b.axis[0], i)],
                               p[pgi_above(b.axis[0], i)], p[pgi_below(b.axis[1], j) * sj],
                               p[pgi_above(b.axis[1], j) * sj], p[pgi_below(b.axis[2], k) * sk],
                               p[pgi_above(b.axis[2], k) * sk]);
}

// Products of some lines, which lie side by side, with `outs` columns of a matrix [in][out]: sums stay in registers.
// What becomes of `count` of the lines goes to `to`.
enum { PGI_LINES = 4, PGI_OUTS = 16 };
template <class T> PGI_WIDE static void pgi_cpu_modes_tile(const T *lines, int n, const T *matrix, int outs, T *to,
                                                           int count, int64_t step, int64_t line_step)
{
    T sum[PGI_LINES][PGI_OUTS] = {};
    if (outs == PGI_OUTS) {
        for (int q = 0; q < n; q++)
            for (int c = 0; c < PGI_LINES; c++) {
                const T v = lines[q * PGI_LINES + c];
                PGI_OMP(omp simd)
                for (int o = 0; o < PGI_OUTS; o++) sum[c][o] += v * matrix[(int64_t)q * n + o];
            }
    } else {
        for (int q = 0; q < n; q++)
            for (int c = 0; c < PGI_LINES; c++)
                for (int o = 0; o < outs; o++) sum[c][o] += lines[q * PGI_LINES + c] * matrix[(int64_t)q * n + o];
    }
    for (int o = 0; o < outs; o++)
        for (int c = 0; c < count; c++) to[o * step + c * line_step] = sum[c][o];
}

// Lines along an axis become their products with a matrix [in][out], in place, some lines at a time.
template <class T> static void pgi_cpu_modes_product(const pgi_level *l, pgi_grid t, int axis, const T *matrix)
{
    const int first_other = axis == 0, last_other = axis == 2 ? 1 : 2, turn = l->n[first_other] == 1;
    const int across = turn ? last_other : first_other, over = turn ? first_other : last_other;    // lines side by side
    const int64_t steps[3] = {1, t.sj, t.sk}, step = steps[axis], line_step = steps[across];
    const int n = l->n[axis], width = l->n[across], groups = (width + PGI_TILE - 1) / PGI_TILE;
    const int64_t total = (int64_t)groups * l->n[over];
    if (n == 1) return;
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points * n / 8)))
    for (int64_t group = 0; group < total; group++) {
        const int first = (int)(group % groups) * PGI_TILE,
                  count = width - first < PGI_TILE ? width - first : (int)PGI_TILE;
        T *const base = pgi_data<T>(t) + group / groups * steps[over] + first * line_step;
        T lines[PGI_TILE * PGI_EXACT];    // [line / PGI_LINES][place][line]
        for (int q = 0; q < n; q++)
            for (int c = 0; c < PGI_TILE; c++)
                lines[(c / PGI_LINES * n + q) * PGI_LINES + c % PGI_LINES] =
                    c < count ? base[c * line_step + q * step] : (T)0;
        for (int o = 0; o < n; o += PGI_OUTS)
            for (int c = 0; c < count; c += PGI_LINES)
                pgi_cpu_modes_tile(lines + c * n, n, matrix + o, n - o < PGI_OUTS ? n - o : (int)PGI_OUTS,
                                   base + c * line_step + o * step, count - c < PGI_LINES ? count - c : (int)PGI_LINES,
                                   step, line_step);
    }
}

template <class T>
static void pgi_cpu_solve_coarsest(pg_solver *s, const pgi_level *l, pgi_grid gu, pgi_rhs rhs, int from_zero)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const pgi_modes<T> &m = pgi_modes_of(l, T());
    const int nx = l->n[0];
    const pgi_grid work = l->t.base ? l->t : gu;
    T *const t = pgi_data<T>(work);
    const T *const guess = from_zero ? NULL : pgi_data<T>(gu), *const f = pgi_data<T>(rhs.f);
    const T mean = pgi_mean_of<T>(rhs, b.state);
    pgi_cpu_rows(l, [&](int j, int k) {
        for (int i = 0; i < nx; i++)
            t[i + j * work.sj + k * work.sk] = pgi_residual_point(b, rhs, f, mean, guess, gu.sj, gu.sk, i, j, k);
    });
    for (int a = 0; a < 3; a++) pgi_cpu_modes_product(l, work, a, m.to[a]);
    pgi_cpu_rows(l, [&](int j, int k) {
        T *const row = t + j * work.sj + k * work.sk;
        int resonant;    // alpha is not negative
        for (int i = 0; i < nx; i++) row[i] = pgi_mode_divide(m, s->state->alpha, row[i], i, j, k, &resonant);
    });
    for (int a = 2; a >= 0; a--) pgi_cpu_modes_product(l, work, a, m.from[a]);
    if (work.base == gu.base) return;
    pgi_cpu_rows(l, [&](int j, int k) {
        T *const u = pgi_data<T>(gu) + j * gu.sj + k * gu.sk;
        const T *const e = t + j * work.sj + k * work.sk;
        for (int i = 0; i < nx; i++) u[i] = from_zero ? e[i] : u[i] + e[i];
    });
}

#if PGI_F32
static void pgi_cpu_residual_narrow(pg_solver *s, const pgi_level *outer, pgi_grid u, pgi_rhs rhs, pgi_grid r32,
                                    int with_norm)
{
    if (with_norm) pgi_cpu_reduce<double>(s, outer, PGI_RESIDUAL, PGI_SELF, u, pgi_no_grid(), rhs, 0);
    pgi_cpu_residual_to<double, float>(outer, u, rhs, r32, s->state->scale);
}

static void pgi_cpu_narrow_rhs(pg_solver *s, const pgi_level *, pgi_grid f, const pgi_level *level)
{
    const double scale = s->state->scale;
    pgi_cpu_rows(level, [&](int j, int k) {
        const double *from = pgi_data<double>(f) + j * f.sj + k * f.sk;
        float *to = pgi_data<float>(level->f) + j * level->f.sj + k * level->f.sk;
        for (int i = 0; i < level->n[0]; i++) to[i] = (float)(from[i] * scale);
    });
    for (int q = 0; q < 6; q++) {
        if (!s->state->face[q].plane || !level->plane[q]) continue;
        const int64_t count = (int64_t)level->n[pgi_plane_axis(q, 0)] * level->n[pgi_plane_axis(q, 1)];
        for (int64_t p = 0; p < count; p++)
            ((float *)level->plane[q])[p] = (float)(((const double *)s->state->face[q].plane)[p] * scale);
    }
}

static void pgi_cpu_widen_add(pg_solver *s, const pgi_level *outer, pgi_grid e32, pgi_grid u)
{
    const double unit = 1 / s->state->scale;
    pgi_cpu_rows(outer, [&](int j, int k) {
        const float *from = pgi_data<float>(e32) + j * e32.sj + k * e32.sk;
        double *to = pgi_data<double>(u) + j * u.sj + k * u.sk;
        for (int i = 0; i < outer->n[0]; i++) to[i] += unit * (double)from[i];
    });
}
#endif

template <class T> static int pgi_cpu_relax_turns(const pgi_level *, int) { return 0; }

template <class T> static pgi_grid pgi_cpu_relax(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs,
                                                 pgi_omega omega, int reversed, int sweeps, int head,
                                                 const pgi_level *coarse, pgi_grid e, pgi_wanted *residual)
{
    return pgi_relax_in_place(s, l, u, rhs, omega, reversed, sweeps, head, coarse, e, residual);
}

template <class T> static pgi_grid pgi_cpu_jacobi_sweeps(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs,
                                                         const double *weight, int period, int sweeps)
{
    return pgi_jacobi_one_by_one(s, l, u, rhs, weight, period, sweeps);
}

template <class T> static void pgi_cpu_restrict_residual(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs,
                                                         const pgi_level *coarse, int with_norm)
{
    pgi_residual_then_restrict(s, l, u, rhs, coarse, with_norm);
}

static void pgi_cpu_control(pg_solver *s, int step, int argument)
{
    pgi_control(s->state, step, argument, pgi_cpu_now());
}

static void pgi_cpu_loop(pg_solver *s, int gate, int again, void (*body)(pg_solver *))
{
    if (gate == PGI_GO) s->observe(s, s->state);
    while (pgi_gate(s->state, gate)) {
        body(s);
        if (!again) break;
        if (gate == PGI_GO) s->observe(s, s->state);
    }
}

// -------------------------------------------------------------------------------------------------------------------
// >>cuda  The operations on the GPU.
// -------------------------------------------------------------------------------------------------------------------
#if PGI_GPU

// The failure of an operation: the first one of a call counts.
static void pgi_fail(pg_solver *s, pg_status status, const char *format, ...)
{
    if (s->failed != PG_OK) return;
    s->failed = status;
    va_list arguments;
    va_start(arguments, format);
    pgi_print_error(s->error, format, arguments);
    va_end(arguments);
}

static void pgi_cuda_failed(pg_solver *s, cudaError_t e, const char *what, int line)
{
    cudaGetLastError();
    pgi_fail(s, e == cudaErrorMemoryAllocation ? PG_ERROR_MEMORY : PG_ERROR_CUDA,
             "%s failed at line %d of poisson_gpu.cu: %s (%s)", what, line, cudaGetErrorName(e), cudaGetErrorString(e));
}

// Every CUDA call and launch of an operation stands in one of these two. After a failure the rest of a solve is
// skipped.
#define PGI_CUDA(s, call)                                                                                              \
    do {                                                                                                               \
        if ((s)->failed == PG_OK) {                                                                                    \
            const cudaError_t pgi_error_ = (call);                                                                     \
            if (pgi_error_ != cudaSuccess) pgi_cuda_failed(s, pgi_error_, #call, __LINE__);                            \
        }                                                                                                              \
    } while (0)

#define PGI_LAUNCH(s, blocks, threads, kernel, ...) PGI_LAUNCH_SHARED(s, blocks, threads, 0, kernel, __VA_ARGS__)
#define PGI_LAUNCH_SHARED(s, blocks, threads, bytes, kernel, ...)                                                      \
    PGI_LAUNCH_AS(s, 0, blocks, threads, bytes, kernel, __VA_ARGS__)
// Of a kernel that calls pgi_await: it may start before the one before it has ended. Small levels are latency.
#define PGI_LAUNCH_EARLY(s, blocks, threads, bytes, kernel, ...)                                                       \
    PGI_LAUNCH_AS(s, (s)->clusters, blocks, threads, bytes, kernel, __VA_ARGS__)
#define PGI_LAUNCH_AS(s, early, blocks, threads, bytes, kernel, ...)                                                   \
    do {                                                                                                               \
        cudaLaunchConfig_t pgi_config_ = {};                                                                           \
        cudaLaunchAttribute pgi_attribute_ = {};                                                                       \
        pgi_attribute_.id = cudaLaunchAttributeProgrammaticStreamSerialization;                                        \
        pgi_attribute_.val.programmaticStreamSerializationAllowed = 1;                                                 \
        pgi_config_.gridDim = dim3((unsigned)(blocks));                                                                \
        pgi_config_.blockDim = threads;                                                                                \
        pgi_config_.dynamicSmemBytes = (size_t)(bytes);                                                                \
        pgi_config_.stream = (s)->stream;                                                                              \
        pgi_config_.attrs = &pgi_attribute_;                                                                           \
        pgi_config_.numAttrs = (early) && PGI_OVERLAP ? 1 : 0;                                                         \
        PGI_CUDA(s, cudaLaunchKernelEx(&pgi_config_, kernel, __VA_ARGS__));                                            \
    } while (0)

// What C++ has no word for; test/simt has its own.
#ifdef PGI_SIMT
#define PGI_DYNAMIC_SHARED(T, name) T *const name = (T *)simt_dynamic_shared()
static inline uint64_t pgi_device_now() { return simt_now(); }
#else
#define PGI_DYNAMIC_SHARED(T, name)                                                                                    \
    extern __shared__ __align__(16) unsigned char pgi_dynamic_shared_[];                                               \
    T *const name = (T *)pgi_dynamic_shared_
static __device__ inline uint64_t pgi_device_now()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
#endif

// A block owns tx x ty columns along k and marches kc planes. All blocks are numbered in one dimension, as y and z of a
// launch grid end at 65535.
struct pgi_shape {
    int tx, ty, bx, by, kc;
    int64_t blocks;
};

// How often the device must be filled, where so many blocks are resident at once. All planners compare rounds times
// what a block takes.
static int64_t pgi_rounds(int64_t blocks, int64_t resident) { return (blocks + resident - 1) / resident; }

// Long marches reuse planes in registers and what a thread finds out first, which is worth some planes; short ones
// fill the device. The least work in sequence counts, where a multiprocessor holds four blocks. step: from plane to
// plane; team: threads that share a column
static pgi_shape pgi_shape_of(const pg_solver *s, int nx, int ny, int nz, int most_planes = PGI_MARCH, int step = 1,
                              int team = 1)
{
    enum { PROLOGUE = 4, RESIDENT = 4 };
    pgi_shape h;
    h.tx = ny == 1 ? PGI_BLOCK / team : 32;
    while (ny > 1 && h.tx / 2 >= nx) h.tx /= 2;
    h.ty = PGI_BLOCK / team / h.tx;
    h.bx = (nx + h.tx - 1) / h.tx;
    h.by = (ny + h.ty - 1) / h.ty;
    const int64_t columns = (int64_t)h.bx * h.by, resident = (int64_t)s->multiprocessors * RESIDENT;
    int64_t least = INT64_MAX;
    for (int kc = step; kc <= most_planes && kc < nz + step; kc += step) {
        const int64_t blocks = columns * ((nz + kc - 1) / kc),
                      cost = pgi_rounds(blocks, resident) * (kc / step + PROLOGUE);
        if (cost >= least) continue;
        least = cost;
        h.kc = kc;
        h.blocks = blocks;
    }
    return h;
}

static dim3 pgi_threads(const pgi_shape &h) { return dim3((unsigned)h.tx, (unsigned)h.ty); }

// Blocks that a multiprocessor must be able to hold: what the registers of a march allow without spilling more than it
// gains. Measured on an H200 at 512^3, marches of 64 planes: Jacobi in f64 with 4 and 5 blocks 1.00 and 0.95 ms a
// sweep, the residual 0.99 and 1.08. Turing's multiprocessors hold 1024 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define PGI_BOUNDS(blocks) __launch_bounds__(PGI_BLOCK, (blocks) < 4 ? (blocks) : 4)
#else
#define PGI_BOUNDS(blocks) __launch_bounds__(PGI_BLOCK, blocks)
#endif

// Waits until the kernels before this one have ended and all that they wrote is there; the next one may come up
// meanwhile. See PGI_LAUNCH_EARLY. What stands before the call reads tables only, and some thread of every block gets
// to it.
static __device__ inline void pgi_await()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && PGI_OVERLAP
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

// First in every kernel that a loop may hold: once the loop has ended, the kernel does nothing. See pgi_repeat. Where
// graphs loop this is no code; elsewhere no kernel starts before the one ahead has written the flag.
#define PGI_UNLESS_DONE(state)                                                                                         \
    if (!PGI_CONDITIONAL && (state)->done) return

struct pgi_tile {
    int i, j, k0, k1;
};

static __device__ inline pgi_tile pgi_tile_of(const pgi_shape &h, unsigned block, int nz)
{
    pgi_tile t;
    const unsigned rest = block / (unsigned)h.bx, slab = rest / (unsigned)h.by;
    t.i = (int)(block - rest * (unsigned)h.bx) * h.tx + (int)threadIdx.x;
    t.j = (int)(rest - slab * (unsigned)h.by) * h.ty + (int)threadIdx.y;
    t.k0 = (int)slab * h.kc;
    t.k1 = t.k0 + h.kc < nz ? t.k0 + h.kc : nz;
    return t;
}

// A value that nobody writes while the kernel runs, unless the same thread later and for good: such loads may pass
// stores.
template <class T> static __device__ inline T pgi_load(const T *p) { return __ldg(p); }

// Marches one column of a tile; calls body(k, u, right-hand side, A u, inverse diagonal); rhs.f may be NULL.
// On a uniform axis the row of z changes only at planes 0, 1 and n-1, so there is one test for all that is special; the
// division is redone there only. Without FACES the boundary data are left to pgi_add_faces.
template <class T, bool FACES, class Body>
static __device__ inline void pgi_march(const pgi_box<T> &b, const pgi_grid &gu, const pgi_rhs &rhs, const pgi_tile &t,
                                        Body body)
{
    const pgi_row<T> x = pgi_row_of(b.axis[0], t.i), y = pgi_row_of(b.axis[1], t.j);
    const pgi_axis<T> &az = b.axis[2];
    const int64_t sj = gu.sj, sk = gu.sk, f_sk = rhs.f.sk;
    const T *p = pgi_data<T>(gu) + t.i + t.j * sj + t.k0 * sk;
    const T *f = rhs.f.base ? pgi_data<T>(rhs.f) + t.i + t.j * rhs.f.sj + t.k0 * f_sk : NULL;
    const T *xm = p + pgi_below(b.axis[0], t.i), *xp = p + pgi_above(b.axis[0], t.i);
    const T *ym = p + pgi_below(b.axis[1], t.j) * sj, *yp = p + pgi_above(b.axis[1], t.j) * sj;
    const unsigned mask = FACES ? pgi_face_mask(rhs, b.state) : 0;
    const unsigned touched_xy = mask & (pgi_end_bits(t.i, b.axis[0].n) | pgi_end_bits(t.j, b.axis[1].n) << 2);
    const T column = ((T)b.state->alpha + y.reaction) + x.reaction, mean = pgi_mean_of<T>(rhs, b.state);
    pgi_row<T> z = pgi_row_of(az, t.k0);
    T reaction = column + z.reaction, inverse = 1 / pgi_diagonal(reaction, x, y, z);
    T u_km = pgi_load(p + pgi_below(az, t.k0) * sk), u_c = pgi_load(p);
    for (int k = t.k0; k < t.k1; k++) {
        const T u_kp = pgi_load(p + (k < az.n - 1 ? 1 : pgi_above(az, k)) * sk), f_c = f ? pgi_load(f) : (T)0;
        unsigned touched = touched_xy;
        if (k <= 1 || k == az.n - 1 || az.table) {
            z = pgi_row_of(az, k);
            reaction = column + z.reaction;
            inverse = 1 / pgi_diagonal(reaction, x, y, z);
            touched |= mask & pgi_end_bits(k, az.n) << 4;
        }
        T right = f_c - mean;
        if (FACES && touched) right += pgi_face_terms<T>(rhs.faces, b.state, touched, t.i, t.j, k);
        const T au =
            pgi_stencil(x, y, z, reaction, u_c, pgi_load(xm), pgi_load(xp), pgi_load(ym), pgi_load(yp), u_km, u_kp);
        body(k, u_c, right, au, inverse);
        p += sk, xm += sk, xp += sk, ym += sk, yp += sk;
        if (f) f += f_sk;
        u_km = u_c;
        u_c = u_kp;
    }
}

// Adds factor times the boundary terms to the points of a column that have any, of every step-th; relaxed: times
// 1/diagonal too. A loop of its own keeps the march free of calls.
template <class T, class TO> static __device__ inline void pgi_add_faces(const pgi_box<T> &b, const pgi_rhs &rhs,
                                                                         const pgi_tile &t, T factor, int relaxed,
                                                                         TO *out, int64_t out_sk, int step = 1)
{
    const unsigned mask = pgi_face_mask(rhs, b.state);
    const unsigned touched_xy = mask & (pgi_end_bits(t.i, b.axis[0].n) | pgi_end_bits(t.j, b.axis[1].n) << 2);
    const int last = b.axis[2].n - 1;
    if (!touched_xy && !(mask & 16 && t.k0 == 0) && !(mask & 32 && t.k1 == last + 1)) return;
    const pgi_row<T> x = pgi_row_of(b.axis[0], t.i), y = pgi_row_of(b.axis[1], t.j);
    for (int k = t.k0; k < t.k1; k += step) {
        const unsigned touched = touched_xy | (mask & pgi_end_bits(k, last + 1) << 4);
        if (!touched) continue;
        const pgi_row<T> z = pgi_row_of(b.axis[2], k);
        const T d = pgi_diagonal(pgi_reaction((T)b.state->alpha, x, y, z), x, y, z);
        const T terms = pgi_face_terms<T>(rhs.faces, b.state, touched, t.i, t.j, k);
        out[(k - t.k0) * out_sk] += (TO)(factor * (relaxed ? terms / d : terms));
    }
}

// Computes out = u + omega (rhs - A u) / diagonal   Moves 3 words a point   Covers one column of kc points a thread
// Needs nothing beyond the arrays   Overlap: none
template <class T> static __global__ void PGI_BOUNDS(5)
    pgi_jacobi_kernel(pgi_box<T> b, pgi_grid gu, pgi_rhs rhs, T omega, pgi_grid gout, pgi_shape h)
{
    PGI_UNLESS_DONE(b.state);
    pgi_await();
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, b.axis[2].n);
    if (t.i >= b.axis[0].n || t.j >= b.axis[1].n) return;
    T *out = pgi_data<T>(gout) + t.i + t.j * gout.sj + t.k0 * gout.sk;
    T *const begin = out;
    pgi_march<T, false>(b, gu, rhs, t, [&](int, T u, T right, T au, T inverse) {
        *out = pgi_relaxed(u, right - au, inverse, omega);
        out += gout.sk;
    });
    pgi_add_faces(b, rhs, t, omega, 1, begin, gout.sk);
}

// Computes r = scale (rhs - A u), or v = A u if rhs has no f   Moves 3 (2) words a point   Covers one column a thread
// An r that is rounded to f32 needs the boundary terms first: A u nearly cancels them.
// Needs nothing beyond the arrays   Overlap: r may be f; u with neither
template <class T, class TO> static __global__ void PGI_BOUNDS(4)
    pgi_residual_kernel(pgi_box<T> b, pgi_grid gu, pgi_rhs rhs, int scaled, pgi_grid gout, pgi_shape h)
{
    PGI_UNLESS_DONE(b.state);
    pgi_await();
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, b.axis[2].n);
    if (t.i >= b.axis[0].n || t.j >= b.axis[1].n) return;
    TO *out = pgi_data<TO>(gout) + t.i + t.j * gout.sj + t.k0 * gout.sk;
    const T sign = rhs.f.base ? scaled ? (T)b.state->scale : (T)1 : (T)-1;
    TO *const begin = out;
    pgi_march<T, sizeof(TO) != sizeof(T)>(b, gu, rhs, t, [&](int, T, T right, T au, T) {
        *out = (TO)(sign * (right - au));
        out += gout.sk;
    });
    if (sizeof(TO) == sizeof(T)) pgi_add_faces(b, rhs, t, sign, 0, begin, gout.sk);
}

// A box of one colour: points of [lo, hi) whose indices, those of seam axes left out, have the given parity.
struct pgi_colour {
    int lo[3], hi[3];
    int seams, parity;
};

// Computes u = u + omega (rhs - A u) / diagonal at the points of one colour   Moves 3 words a point of either colour
// Covers every second point of a column a thread   Overlap: in place; points of one colour do not see each other
template <class T> static __global__ void PGI_BOUNDS(4)
    pgi_red_black_kernel(pgi_box<T> b, pgi_grid gu, pgi_rhs rhs, T omega, pgi_colour c, pgi_shape h)
{
    PGI_UNLESS_DONE(b.state);
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, c.hi[2] - c.lo[2]);
    const int i = c.lo[0] + t.i, j = c.lo[1] + t.j;
    if (i >= c.hi[0] || j >= c.hi[1]) return;
    const pgi_axis<T> &az = b.axis[2];
    const int64_t sj = gu.sj, sk = gu.sk;
    const int rest = (c.parity + (c.seams & 1 ? 0 : i) + (c.seams & 2 ? 0 : j)) & 1, on_seam = c.seams & 4;
    if (on_seam && rest) return pgi_await();    // perhaps all threads: the next kernel waits for this one alone
    const int k0 = c.lo[2] + t.k0, first = on_seam ? k0 : k0 + ((rest + k0) & 1);
    const pgi_row<T> x = pgi_row_of(b.axis[0], i), y = pgi_row_of(b.axis[1], j);
    const int xm = pgi_below(b.axis[0], i), xp = pgi_above(b.axis[0], i);
    const int64_t ym = pgi_below(b.axis[1], j) * sj, yp = pgi_above(b.axis[1], j) * sj;
    pgi_await();
    const T column = ((T)b.state->alpha + y.reaction) + x.reaction, mean = pgi_mean_of<T>(rhs, b.state);
    if (omega == 0) omega = (T)b.state->omega;
    T *p = pgi_data<T>(gu) + i + j * sj + first * sk, *const begin = p;
    const T *f = pgi_data<T>(rhs.f) + i + j * rhs.f.sj + first * rhs.f.sk;
    pgi_row<T> z = az.row[1];
    T reaction = column + z.reaction, inverse = 1 / pgi_diagonal(reaction, x, y, z);
#pragma unroll 2
    for (int k = first; k < c.lo[2] + t.k1; k += 2) {
        int64_t below = -sk, above = sk;
        if (k <= 2 || k == az.n - 1 || az.table) {    // planes 0 and n-1, and the first one after 0
            z = pgi_row_of(az, k);
            reaction = column + z.reaction;
            inverse = 1 / pgi_diagonal(reaction, x, y, z);
            below = pgi_below(az, k) * sk;
            above = pgi_above(az, k) * sk;
        }
        const T au = pgi_stencil(x, y, z, reaction, *p, p[xm], p[xp], p[ym], p[yp], p[below], p[above]);
        *p = pgi_relaxed(*p, pgi_load(f) - mean - au, inverse, omega);
        p += 2 * sk;
        f += 2 * rhs.f.sk;
    }
    const pgi_tile own = {i, j, first, c.lo[2] + t.k1};
    pgi_add_faces(b, rhs, own, omega, 1, begin, sk, 2);
}

// Computes half a sweep from 0: u = omega rhs / diagonal at the points of one colour, 0 elsewhere   Moves 2 words a
// point Covers a column of kc points a thread   Overlap: none
template <class T> static __global__ void PGI_BOUNDS(4)
    pgi_half_sweep_kernel(pgi_box<T> b, pgi_grid gu, pgi_rhs rhs, T omega, int parity, pgi_shape h)
{
    PGI_UNLESS_DONE(b.state);
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, b.axis[2].n);
    if (t.i >= b.axis[0].n || t.j >= b.axis[1].n) return;
    const pgi_axis<T> &az = b.axis[2];
    const pgi_row<T> x = pgi_row_of(b.axis[0], t.i), y = pgi_row_of(b.axis[1], t.j);
    pgi_await();
    const T column = ((T)b.state->alpha + y.reaction) + x.reaction, mean = pgi_mean_of<T>(rhs, b.state);
    if (omega == 0) omega = (T)b.state->omega;
    T *u = pgi_data<T>(gu) + t.i + t.j * gu.sj + t.k0 * gu.sk, inverse = 0;
    const T *f = pgi_data<T>(rhs.f) + t.i + t.j * rhs.f.sj + t.k0 * rhs.f.sk;
    for (int k = t.k0; k < t.k1; k++, u += gu.sk, f += rhs.f.sk) {
        if (k == t.k0 || k <= 1 || k == az.n - 1 || az.table) {
            const pgi_row<T> z = pgi_row_of(az, k);
            inverse = 1 / pgi_diagonal(column + z.reaction, x, y, z);
        }
        *u = (t.i + t.j + k + parity) & 1
                 ? (T)0
                 : pgi_relaxed((T)0, pgi_rhs_point(b, rhs, pgi_load(f), mean, t.i, t.j, k), inverse, omega);
    }
}

// Adds up the sums of a block in a fixed order: lanes, then warps. The result is thread 0's. MORE: inner products
// beside the sums that norms need. Two barriers.
template <int MORE> static __device__ inline void pgi_block_sums(double *sums)
{
    enum { COUNT = 4 + MORE };
    __shared__ double warp_sums[32][COUNT];
    const int thread = (int)(threadIdx.x + blockDim.x * threadIdx.y), lane = thread % 32, warp = thread / 32;
    PGI_ROLLED
    for (int step = 16; step > 0; step /= 2) {
        double other[COUNT];
        for (int q = 0; q < COUNT; q++) other[q] = __shfl_down_sync(0xffffffffu, sums[q], (unsigned)step);
        pgi_combine<MORE>(sums, other);
    }
    __syncthreads();
    if (lane == 0)
        for (int q = 0; q < COUNT; q++) warp_sums[warp][q] = sums[q];
    __syncthreads();
    if (thread != 0) return;
    PGI_ROLLED
    for (int w = 1; w < (int)(blockDim.x * blockDim.y) / 32; w++) pgi_combine<MORE>(sums, warp_sums[w]);
}

// The end of a reduction: the sums of a block become partial sums, and the block that comes last adds up those of all
// in a fixed order, and writes them from number FIRST on. True for the thread that has written them.
template <int MORE = 0, int FIRST = 0>
static __device__ inline bool pgi_finish_sums(double *sums, double *partials, pgi_state *state, double *result)
{
    enum { COUNT = 4 + MORE };
    __shared__ int last;
    const int thread = (int)(threadIdx.x + blockDim.x * threadIdx.y);
    pgi_block_sums<MORE>(sums);
    if (thread == 0) {
        for (int q = 0; q < COUNT; q++) partials[COUNT * (size_t)blockIdx.x + q] = sums[q];
        __threadfence();
        last = atomicInc(&state->ticket, gridDim.x - 1) == gridDim.x - 1;    // wraps to 0 for the next reduction
    }
    __syncthreads();
    if (!last) return false;
    __threadfence();
    for (int q = 0; q < COUNT; q++) sums[q] = 0;
    for (int p = thread; p < (int)gridDim.x; p += (int)(blockDim.x * blockDim.y)) {
        double other[COUNT];
        for (int q = 0; q < COUNT; q++) other[q] = __ldcg(partials + COUNT * (size_t)p + q);
        pgi_combine<MORE>(sums, other);
    }
    pgi_block_sums<MORE>(sums);
    if (thread != 0) return false;
    for (int q = FIRST; q < COUNT; q++) result[q] = sums[q];
    return true;
}

// The unit of a reduction, and whether there is one to do. All blocks ask before the last one of them writes the sums.
static __device__ inline bool pgi_begin_sums(const pgi_state *state, int again, double *unit)
{
    const double factor = again ? pgi_rescale(state) : 1;
    *unit = state->unit_of_sums * factor;
    return !again || factor != 1;
}

template <int MORE = 0, int FIRST = 0>
static __device__ inline void pgi_end_sums(double *sums, double *partials, pgi_state *state, double unit)
{
    if (pgi_finish_sums<MORE, FIRST>(sums, partials, state, state->sums)) state->unit_of_sums = unit;
}

// Computes state.sums of the residual   Moves 2 words a point   Covers columns   Overlap: any
template <class T> static __global__ void PGI_BOUNDS(4)
    pgi_reduce_residual_kernel(pgi_box<T> b, pgi_grid gu, pgi_rhs rhs, double *partials, pgi_state *state, pgi_shape h,
                               int again)
{
    PGI_UNLESS_DONE(state);
    pgi_await();
    double sums[4] = {0, 0, 0, 0}, unit;
    if (!pgi_begin_sums(state, again, &unit)) return;
    for (unsigned tile = blockIdx.x; tile < (unsigned)h.blocks; tile += gridDim.x) {
        const pgi_tile t = pgi_tile_of(h, tile, b.axis[2].n);
        if (t.i >= b.axis[0].n || t.j >= b.axis[1].n) continue;
        const double wxy = pgi_weight_of(b.axis[0], t.i) * pgi_weight_of(b.axis[1], t.j);
        pgi_march<T, true>(b, gu, rhs, t, [&](int k, T, T right, T au, T) {
            const double v = unit * (double)(right - au);
            pgi_accumulate(sums, wxy * pgi_weight_of(b.axis[2], k), v, v);
        });
    }
    pgi_end_sums(sums, partials, state, unit);
}

// Computes state.magnitude, the sums of D u   Moves 1 word a point   Covers columns   Overlap: none
template <class T> static __global__ void PGI_BOUNDS(4)
    pgi_magnitude_kernel(pgi_box<T> b, pgi_grid gu, double *partials, pgi_state *state, pgi_shape h)
{
    PGI_UNLESS_DONE(state);
    pgi_await();
    if (!state->seek) return;
    const double unit = state->unit_of_sums;
    double sums[4] = {0, 0, 0, 0};
    for (unsigned tile = blockIdx.x; tile < (unsigned)h.blocks; tile += gridDim.x) {
        const pgi_tile t = pgi_tile_of(h, tile, b.axis[2].n);
        if (t.i >= b.axis[0].n || t.j >= b.axis[1].n) continue;
        const double wxy = pgi_weight_of(b.axis[0], t.i) * pgi_weight_of(b.axis[1], t.j);
        const T *u = pgi_data<T>(gu) + t.i + t.j * gu.sj + t.k0 * gu.sk;
        for (int k = t.k0; k < t.k1; k++, u += gu.sk) {
            const double v = unit * pgi_magnitude_point(b, 0, pgi_load(u), t.i, t.j, k);
            pgi_accumulate(sums, wxy * pgi_weight_of(b.axis[2], k), v, v);
        }
    }
    pgi_finish_sums(sums, partials, state, state->magnitude);
}

template <int VALUE> struct pgi_constant {
    enum { value = VALUE };
};

// A position among the pieces of rows, and the distance between two of them
struct pgi_piece {
    int piece, j, k;
};

static __device__ inline pgi_piece pgi_piece_of(int64_t at, int pieces, int ny)
{
    const int64_t row = at / pieces, k = row / ny;
    const pgi_piece p = {(int)(at - row * pieces), (int)(row - k * ny), (int)k};
    return p;
}

static __device__ inline void pgi_advance(pgi_piece *p, const pgi_piece &step, int pieces, int ny)
{
    p->piece += step.piece;
    p->j += step.j;
    p->k += step.k;
    if (p->piece >= pieces) p->piece -= pieces, p->j++;
    if (p->j >= ny) p->j -= ny, p->k++;
}

// What a reduction sums up: v = x less the mean, but for what boundary data add, with partner v, 1 or y.
template <class T> struct pgi_summed {
    const T *x, *y;
    int64_t sj, sk, y_sj, y_sk;
    T mean;
    unsigned mask;    // faces that have data: their points are left to pgi_sum_face_points
    int partner;
    double unit;
};

// Adds up pieces of rows, a piece a warp; what a lane reads of a piece is on its way at once.
template <class T, int SOURCE, int OTHER>
static __device__ inline void pgi_sum_pieces(const pgi_box<T> &b, const pgi_summed<T> &of, double sums[4])
{
    enum { EACH = OTHER ? 32 / sizeof(T) : 8, PIECE = 32 * EACH };
    const pgi_axis<T> &ax = b.axis[0];
    const int nx = ax.n, ny = b.axis[1].n, nz = b.axis[2].n, pieces = (nx + PIECE - 1) / PIECE, lane = (int)threadIdx.x;
    const double low = ax.row_weight[0] / ax.row_weight[1], high = ax.row_weight[2] / ax.row_weight[1];
    const int even = !ax.weight && low == 1 && high == 1;
    const pgi_piece step = pgi_piece_of((int64_t)gridDim.x * (PGI_BLOCK / 32), pieces, ny),
                    first = pgi_piece_of(blockIdx.x * (PGI_BLOCK / 32) + threadIdx.y, pieces, ny);
    T most = 0;
    for (pgi_piece at = first; at.k < nz; pgi_advance(&at, step, pieces, ny)) {
        const int begin = at.piece * PIECE;
        const unsigned mask = SOURCE == PGI_RHS ? of.mask : 0u;
        if (mask && mask & (pgi_end_bits(at.j, ny) << 2 | pgi_end_bits(at.k, nz) << 4)) continue;
        const int lo = mask & 1 ? 1 : 0, hi = mask & 2 ? nx - 1 : nx;    // without boundary data
        const double wyz = pgi_weight_of(b.axis[1], at.j) * pgi_weight_of(b.axis[2], at.k);
        const T *const px = of.x + begin + lane + at.j * of.sj + at.k * of.sk;
        const T *const py = OTHER ? of.y + begin + lane + at.j * of.y_sj + at.k * of.y_sk : NULL;
        const int left = hi - begin - lane, count = left > 0 ? (left + 31) / 32 : 0;    // a lane's points
        T v[EACH], z[EACH];
#pragma unroll
        for (int q = 0; q < EACH; q++) {
            const int some = q < count && (q > 0 || begin + lane >= lo);
            v[q] = some ? pgi_load(px + 32 * q) - (SOURCE == PGI_RHS ? of.mean : (T)0) : (T)0;
            if (OTHER) z[q] = some ? pgi_load(py + 32 * q) : (T)0;
        }
        double part[3] = {0, 0, 0};
        const auto add = [&](auto weighted) {
#pragma unroll
            for (int q = 0; q < EACH; q++) {
                const int i = begin + lane + 32 * q;
                const double e = of.unit * (double)v[q], f = OTHER ? (double)z[q] : of.partner == PGI_ONE ? 1.0 : e;
                const T size = v[q] < 0 ? -v[q] : v[q];
                double w = 1;
                if (decltype(weighted)::value)
                    w = ax.weight ? ax.weight[i < nx ? i : 0] : i == 0 ? low : i == nx - 1 ? high : 1.0;
                part[0] += w * (e * f);
                part[1] += e * e;
                part[2] += w * fabs(e);
                most = size <= most ? most : size;
            }
        };
        if (even)
            add(pgi_constant<0>());
        else
            add(pgi_constant<1>());
        const double inside = ax.weight ? wyz : wyz * ax.row_weight[1];
        sums[0] += inside * part[0];
        sums[1] += part[1];
        sums[2] += inside * part[2];
    }
    sums[3] = sums[1] == sums[1] ? of.unit * (double)most : sums[1];    // NaN stays NaN
}

// Adds the points with boundary data, row by row.
template <class T> static __device__ inline void pgi_sum_face_points(const pgi_box<T> &b, const pgi_summed<T> &of,
                                                                     const pgi_rhs &rhs, double sums[4])
{
    const int nx = b.axis[0].n, ny = b.axis[1].n, nz = b.axis[2].n, lane = (int)threadIdx.x;
    for (int64_t row = blockIdx.x * (PGI_BLOCK / 32) + threadIdx.y; row < (int64_t)ny * nz;
         row += gridDim.x * (PGI_BLOCK / 32)) {
        const int k = (int)(row / ny), j = (int)(row - (int64_t)k * ny);
        const int all = (of.mask & (pgi_end_bits(j, ny) << 2 | pgi_end_bits(k, nz) << 4)) != 0,
                  low_end = of.mask & 1 || all,
                  count = all ? nx : (of.mask & 1) + (nx > 1 || !low_end ? of.mask >> 1 & 1 : 0);
        const double wyz = pgi_weight_of(b.axis[1], j) * pgi_weight_of(b.axis[2], k);
        for (int q = lane; q < count; q += 32) {
            const int i = all ? q : q == 0 && low_end ? 0 : nx - 1;
            const double e = of.unit * (double)pgi_rhs_point(b, rhs, of.x[i + j * of.sj + k * of.sk], of.mean, i, j, k);
            pgi_accumulate(sums, wyz * pgi_weight_of(b.axis[0], i), e, of.partner == PGI_ONE ? 1.0 : e);
        }
    }
}

// Computes state.sums of v = rhs or x, with partner v, 1 or y; with a diagonal state.magnitude, the sums of it times x.
// Moves 1 or 2 words a point. Anything may overlap.
template <class T, int SOURCE, int OTHER> static __global__ void __launch_bounds__(PGI_BLOCK, 4)
    pgi_reduce_kernel(pgi_box<T> b, int partner, pgi_grid gx, pgi_grid gy, pgi_rhs rhs, double *partials,
                      pgi_state *state, int again, double diagonal)
{
    PGI_UNLESS_DONE(state);
    pgi_await();
    double unit;
    if (!pgi_begin_sums(state, again, &unit)) return;
    if (diagonal > 0) {
        if (!state->seek) return;
        unit *= diagonal + fabs(state->alpha);
    }
    constexpr int is_rhs = SOURCE == PGI_RHS;
    const pgi_grid from = is_rhs ? rhs.f : gx;
    const pgi_summed<T> of = {pgi_data<T>(from),
                              OTHER ? pgi_data<T>(gy) : NULL,
                              from.sj,
                              from.sk,
                              gy.sj,
                              gy.sk,
                              is_rhs ? pgi_mean_of<T>(rhs, b.state) : (T)0,
                              is_rhs ? pgi_face_mask(rhs, b.state) : 0u,
                              partner,
                              unit};
    double sums[4] = {0, 0, 0, 0};
    pgi_sum_pieces<T, SOURCE, OTHER>(b, of, sums);
    if (is_rhs && of.mask) pgi_sum_face_points(b, of, rhs, sums);
    if (diagonal > 0)
        pgi_finish_sums(sums, partials, state, state->magnitude);
    else
        pgi_end_sums(sums, partials, state, unit);
}

enum pgi_pointwise { PGI_FILL_ZERO, PGI_COPY, PGI_SUBTRACT_SHIFT, PGI_NARROW, PGI_WIDEN_ADD };

// Computes to = 0, to = from, to -= shift, to = scale from, to += from / scale. Moves 1 or 2 words a point.
template <class TF, class TT> static __global__ void pgi_pointwise_kernel(pgi_grid from, pgi_grid to, int what, int nx,
                                                                          int ny, int nz, const pgi_state *state,
                                                                          pgi_shape h)
{
    PGI_UNLESS_DONE(state);
    pgi_await();
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, nz);
    if (t.i >= nx || t.j >= ny) return;
    if (what == PGI_SUBTRACT_SHIFT && state->shift == 0) return;
    const double factor = what == PGI_NARROW ? state->scale : what == PGI_WIDEN_ADD ? 1 / state->scale : 0;
    const bool adds = what == PGI_SUBTRACT_SHIFT || what == PGI_WIDEN_ADD;
    const TF *p = from.base ? pgi_data<TF>(from) + t.i + t.j * from.sj : NULL;
    TT *q = pgi_data<TT>(to) + t.i + t.j * to.sj;
    enum { TOGETHER = 4 };    // planes that are on their way
    for (int k = t.k0; k < t.k1; k += TOGETHER) {
        TF a[TOGETHER];
        TT b[TOGETHER];
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) {
            const int some = k + e < t.k1;
            a[e] = p && some ? pgi_load(p + (k + e) * from.sk) : (TF)0;
            b[e] = adds && some ? q[(k + e) * to.sk] : (TT)0;
        }
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) {
            const TT value = what == PGI_SUBTRACT_SHIFT ? b[e] - (TT)state->shift
                             : what == PGI_NARROW       ? (TT)(factor * (double)a[e])
                             : what == PGI_WIDEN_ADD    ? b[e] + (TT)(factor * (double)a[e])
                                                        : (TT)a[e];
            if (k + e < t.k1) q[(k + e) * to.sk] = value;
        }
    }
}

// A recurrence of a Krylov method, its inner products and the norm of the residual. Moves a word a point for each
// vector that is read and for each that is written, and covers columns. v[0] of a product is not written.
template <class T, template <class> class RECURRENCE> static __global__ void PGI_BOUNDS(2)
    pgi_recurrence_kernel(pgi_box<T> b, const pgi_vectors g, double *partials, pgi_state *state, pgi_shape h)
{
    PGI_UNLESS_DONE(state);
    pgi_await();
    typedef RECURRENCE<T> point;
    enum { VECTORS = point::VECTORS, DOTS = point::DOTS, TOGETHER = point::PRODUCT ? 1 : VECTORS > 4 ? 2 : 4 };
    const pgi_krylov_steps<T> c(state);
    double sums[4 + DOTS] = {0}, unit;
    pgi_begin_sums(state, 0, &unit);
    for (unsigned tile = blockIdx.x; tile < (unsigned)h.blocks; tile += gridDim.x) {
        const pgi_tile t = pgi_tile_of(h, tile, b.axis[2].n);
        if (t.i >= b.axis[0].n || t.j >= b.axis[1].n) continue;
        const double wxy = pgi_weight_of(b.axis[0], t.i) * pgi_weight_of(b.axis[1], t.j);
        const auto w = [&](int k) { return wxy * pgi_weight_of(b.axis[2], k); };
        const pgi_row<T> x = pgi_row_of(b.axis[0], t.i), y = pgi_row_of(b.axis[1], t.j);
        void *column[VECTORS];
#pragma unroll
        for (int q = 0; q < VECTORS; q++)
            column[q] = pgi_vector_at<T>(g.v[q], point::NARROW >> q & 1, t.i + t.j * g.v[q].sj);
        const auto load = [&](int k, T *v) {
#pragma unroll
            for (int q = 0; q < VECTORS; q++)
                v[q] = point::READ >> q & 1 && !(point::PRODUCT && q == 0)
                           ? pgi_value_of<T>(column[q], point::NARROW >> q & 1, k * g.v[q].sk)
                           : (T)0;
        };
        const auto finish = [&](int k, T *v, T av, T inverse) {
            pgi_term<T> dot[DOTS + 1];
            point::at(c, v, av, inverse, dot);
#pragma unroll
            for (int q = 0; q < VECTORS; q++)
                if (point::WRITTEN >> q & 1) pgi_set_value(column[q], point::NARROW >> q & 1, k * g.v[q].sk, v[q]);
            const double own = w(k), e = unit * (double)v[point::NORM >= 0 ? point::NORM : 0];
            if (point::NORM >= 0) pgi_accumulate(sums, own, e, e);
#pragma unroll
            for (int q = 0; q < DOTS; q++) sums[4 + q] += own * (unit * (double)dot[q].x) * (unit * (double)dot[q].y);
        };
        if constexpr (point::PRODUCT) {
            pgi_march<T, false>(b, g.v[0], pgi_rhs(), t, [&](int k, T first, T, T av, T inverse) {
                T v[VECTORS];
                load(k, v);
                v[0] = first;
                finish(k, v, av, inverse);
            });
        } else {
            for (int k = t.k0; k < t.k1; k += TOGETHER) {
                T v[TOGETHER][VECTORS];
#pragma unroll
                for (int e = 0; e < TOGETHER; e++)
                    if (k + e < t.k1) load(k + e, v[e]);
#pragma unroll
                for (int e = 0; e < TOGETHER; e++)
                    if (k + e < t.k1)
                        finish(k + e, v[e], 0, pgi_factor_of<point>(b, x, y, pgi_row_of(b.axis[2], k + e), w(k + e)));
            }
        }
    }
    if (DOTS > 0 || point::NORM >= 0) pgi_end_sums<DOTS, (point::NORM >= 0 ? 0 : 4)>(sums, partials, state, unit);
}

// Computes ax = A x and ay = A y. Moves 4 words a point. x and y overlap neither result.
template <class T> static __global__ void PGI_BOUNDS(4)
    pgi_apply_two_kernel(pgi_box<T> b, pgi_grid gx, pgi_grid gax, pgi_grid gy, pgi_grid gay, pgi_shape h)
{
    PGI_UNLESS_DONE(b.state);
    pgi_await();
    const bool second = blockIdx.x >= (unsigned)h.blocks;
    const pgi_tile t = pgi_tile_of(h, second ? blockIdx.x - (unsigned)h.blocks : blockIdx.x, b.axis[2].n);
    if (t.i >= b.axis[0].n || t.j >= b.axis[1].n) return;
    const pgi_grid to = second ? gay : gax;
    T *const out = pgi_data<T>(to) + t.i + t.j * to.sj;
    pgi_march<T, false>(b, second ? gy : gx, pgi_rhs(), t, [&](int k, T, T, T av, T) { out[k * to.sk] = av; });
}

// Computes f = R r. Moves 1 1/8 words a fine point, and covers one coarse column a thread. f and r do not overlap. The
// windows of a block's rows, columns and planes are worked out once, in shared memory: one axis after the other, so
// that there is one copy of that code.
template <class T> static __global__ void pgi_restrict_kernel(const __grid_constant__ pgi_box<T> bf,
                                                              const __grid_constant__ pgi_box<T> bc,
                                                              const __grid_constant__ pgi_transfers<T> tr, pgi_grid r,
                                                              pgi_grid f, int average, pgi_shape h)
{
    PGI_UNLESS_DONE(bf.state);
    __shared__ pgi_window<T> windows[PGI_BLOCK + 1], zs[PGI_PLANES];    // tx + ty is at most one more than tx * ty
    pgi_window<T> *const x = &windows[threadIdx.x], *const y = &windows[h.tx + (int)threadIdx.y];
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, bc.axis[2].n);
    const int thread = (int)(threadIdx.x + blockDim.x * threadIdx.y);
    PGI_ROLLED
    for (int a = 0; a < 3; a++) {
        const int at = a == 0 ? t.i : a == 1 ? t.j : t.k0 + thread, end = a == 2 ? t.k1 : bc.axis[a].n;
        if (at >= end || (a == 0 && threadIdx.y > 0) || (a == 1 && threadIdx.x > 0)) continue;
        pgi_restriction(tr.axis[a], bf.axis[a], bc.axis[a], at, average, a == 0 ? x : a == 1 ? y : &zs[thread]);
    }
    __syncthreads();
    if (t.i >= bc.axis[0].n || t.j >= bc.axis[1].n) return;
    const int n[3] = {bf.axis[0].n, bf.axis[1].n, bf.axis[2].n};
    const T *from = pgi_data<T>(r);
    T *to = pgi_data<T>(f) + t.i + t.j * f.sj;
    for (int K = t.k0; K < t.k1; K++) to[K * f.sk] = pgi_restrict_point(from, r.sj, r.sk, n, *x, *y, zs[K - t.k0]);
}

// Weight q, from registers: a loop over taps need not be unrolled.
template <class T> static __device__ inline T pgi_tap(const pgi_taps<T> &t, int q)
{
    return q == 0 ? t.w[0] : q == 1 ? t.w[1] : q == 2 ? t.w[2] : t.w[3];
}

template <class T> static __device__ inline pgi_taps<T> pgi_taps_row(const pgi_transfer<T> &t, int row)
{
    if (t.kind != PGI_SAME) return t.taps[row];
    const pgi_taps<T> one = {row, row, {1}};
    return one;
}

// A restricted residual, and what boundary data add to it: few points, and a call.
template <class T, int TAPS>
static __device__ inline T pgi_with_face_terms(const pgi_box<T> &b, const pgi_rhs &rhs, const pgi_taps<T> &tx,
                                               const pgi_taps<T> &ty, const pgi_taps<T> &tz, unsigned mask, T sum)
{
    const int nx = b.axis[0].n, ny = b.axis[1].n, nz = b.axis[2].n;
    PGI_ROLLED
    for (int q = 0; q < TAPS * TAPS * TAPS; q++) {
        const int a = q % TAPS, e = q / TAPS % TAPS, d = q / (TAPS * TAPS);
        const int i = (tx.first + a) % nx, j = (ty.first + e) % ny, k = (tz.first + d) % nz;
        const T weight = pgi_tap(tx, a) * pgi_tap(ty, e) * pgi_tap(tz, d);
        const unsigned touched = mask & (pgi_end_bits(i, nx) | pgi_end_bits(j, ny) << 2 | pgi_end_bits(k, nz) << 4);
        if (touched && weight != 0) sum += weight * pgi_face_terms<T>(rhs.faces, b.state, touched, i, j, k);
    }
    return sum;
}

// Computes f = R (rhs - A u)   Moves 2 1/8 words a fine point, if caches hold what neighbours share   Covers one coarse
// point for TAPS threads, of which each has a fine plane; at most TAPS fine points along an axis   Needs taps Overlap:
// none
// Residuals are independent, and so are their loads: that hides what a load takes.
template <class T, int TAPS> static __global__ void PGI_BOUNDS(2)
    pgi_restrict_residual_kernel(pgi_box<T> b, pgi_transfers<T> tr, pgi_grid gu, pgi_rhs rhs, pgi_grid gf, pgi_shape h)
{
    PGI_UNLESS_DONE(b.state);
    __shared__ T planes[TAPS][PGI_BLOCK / TAPS];
    const int c = (int)threadIdx.z, member = (int)(threadIdx.x + blockDim.x * threadIdx.y);
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, tr.axis[2].nc);
    const bool inside = t.i < tr.axis[0].nc && t.j < tr.axis[1].nc;
    const pgi_taps<T> tx = pgi_taps_row(tr.axis[0], inside ? t.i : 0), ty = pgi_taps_row(tr.axis[1], inside ? t.j : 0);
    pgi_await();
    const T *const u = pgi_data<T>(gu), *const f = pgi_data<T>(rhs.f);
    const T alpha = (T)b.state->alpha, mean = pgi_mean_of<T>(rhs, b.state);
    const int nx = b.axis[0].n, ny = b.axis[1].n, nz = b.axis[2].n;
    const unsigned mask = pgi_face_mask(rhs, b.state);
    pgi_row<T> x[TAPS];
    int at[TAPS], xm[TAPS], xp[TAPS];
#pragma unroll
    for (int a = 0; a < TAPS; a++) {
        at[a] = tx.first + a < nx ? tx.first + a : (tx.first + a) % nx;
        x[a] = pgi_row_of(b.axis[0], at[a]);
        xm[a] = pgi_below(b.axis[0], at[a]);
        xp[a] = pgi_above(b.axis[0], at[a]);
    }
    for (int K = t.k0; K < t.k1; K++) {
        const pgi_taps<T> tz = pgi_taps_row(tr.axis[2], K);
        T plane = 0;
        if (c < tr.axis[2].most_taps) {
            const int k = tz.first + c < nz ? tz.first + c : (tz.first + c) % nz;
            const pgi_row<T> z = pgi_row_of(b.axis[2], k);
            const int64_t zm = pgi_below(b.axis[2], k) * gu.sk, zp = pgi_above(b.axis[2], k) * gu.sk;
#pragma unroll
            for (int e = 0; e < TAPS; e++) {
                if (e >= tr.axis[1].most_taps) continue;
                const int j = ty.first + e < ny ? ty.first + e : (ty.first + e) % ny;
                const pgi_row<T> y = pgi_row_of(b.axis[1], j);
                const int64_t ym = pgi_below(b.axis[1], j) * gu.sj, yp = pgi_above(b.axis[1], j) * gu.sj;
                const T *const row = u + j * gu.sj + k * gu.sk, *const f_row = f + j * rhs.f.sj + k * rhs.f.sk;
                T line = 0;
#pragma unroll
                for (int a = 0; a < TAPS; a++) {
                    if (a >= tr.axis[0].most_taps) continue;
                    const T *const p = row + at[a];
                    const T au = pgi_stencil(x[a], y, z, pgi_reaction(alpha, x[a], y, z), pgi_load(p),
                                             pgi_load(p + xm[a]), pgi_load(p + xp[a]), pgi_load(p + ym),
                                             pgi_load(p + yp), pgi_load(p + zm), pgi_load(p + zp));
                    line += tx.w[a] * (tx.w[a] != 0 ? pgi_load(f_row + at[a]) - mean - au : (T)0);
                }
                plane += ty.w[e] * line;
            }
        }
        planes[c][member] = plane;
        __syncthreads();
        T sum = 0;
#pragma unroll
        for (int q = 0; q < TAPS; q++)
            if (q < tr.axis[2].most_taps) sum += pgi_tap(tz, q) * planes[q][member];
        __syncthreads();
        if (c > 0 || !inside) continue;
        if (mask) sum = pgi_with_face_terms<T, TAPS>(b, rhs, tx, ty, tz, mask, sum);
        pgi_data<T>(gf)[tx.coarse + ty.coarse * gf.sj + tz.coarse * gf.sk] = sum;
    }
}

template <class T> static __global__ void pgi_restrict_face_kernel(const __grid_constant__ pgi_box<T> bf,
                                                                   const __grid_constant__ pgi_box<T> bc,
                                                                   const __grid_constant__ pgi_transfers<T> tr,
                                                                   const void *from, void *to, int q, int na, int nb)
{
    PGI_UNLESS_DONE(bf.state);
    const pgi_state *st = bf.state;
    const int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= (int64_t)na * nb || !st->face[q].plane) return;
    ((T *)to)[p] = pgi_restrict_face_point(bf, bc, tr, (const T *)(from ? from : st->face[q].plane), q, (int)(p % na),
                                           (int)(p / na));
}

#if PGI_F32
static __global__ void pgi_narrow_face_kernel(const pgi_state *st, int q, float *to, int64_t count)
{
    PGI_UNLESS_DONE(st);
    const int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (p < count && st->face[q].plane) to[p] = (float)(((const double *)st->face[q].plane)[p] * st->scale);
}
#endif

// Computes u += P e   Moves 2 1/8 words a fine point   Covers one fine column a thread   Overlap: none   One barrier
// Values of some planes are asked for before the first sum is written, as stores hold back the loads behind them. SAME:
// no axis but x and y is coarsened.
template <class T, int SAME> static __global__ void pgi_prolong_kernel(pgi_transfers<T> tr, pgi_grid u, pgi_grid e,
                                                                       int nx, int ny, int nz, pgi_shape h,
                                                                       const pgi_state *state)
{
    PGI_UNLESS_DONE(state);
    enum { TOGETHER = 4 };
    __shared__ pgi_pair<T> zs[PGI_PLANES];
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, nz);
    const int thread = (int)(threadIdx.x + blockDim.x * threadIdx.y);
    if (t.k0 + thread < t.k1) zs[thread] = pgi_prolongation(tr.axis[2], t.k0 + thread);
    __syncthreads();
    if (t.i >= nx || t.j >= ny) return;
    const pgi_pair<T> x = pgi_prolongation(tr.axis[0], t.i), y = pgi_prolongation(tr.axis[1], t.j);
    pgi_await();
    const T *from = pgi_data<T>(e);
    T *to = pgi_data<T>(u) + t.i + t.j * u.sj;
    for (int first = t.k0; first < t.k1; first += TOGETHER) {
        T sum[TOGETHER];
        PGI_UNROLLED
        for (int q = 0; q < TOGETHER; q++) {
            const int k = first + q < t.k1 ? first + q : t.k1 - 1;
            const pgi_pair<T> z = SAME ? pgi_pair<T>{k, k, 1, 0} : zs[k - t.k0];
            sum[q] = to[k * u.sk] + pgi_prolong_point(from, e.sj, e.sk, x, y, z);
        }
        PGI_UNROLLED
        for (int q = 0; q < TOGETHER; q++)
            if (first + q < t.k1) to[(first + q) * u.sk] = sum[q];
    }
}

// Computes u = (u +) cubic interpolant of v   Moves 1 1/8 words a fine point   Covers one fine column a thread Overlap:
// none One barrier
template <class T> static __global__ void pgi_interpolate_kernel(pgi_box<T> bf, pgi_box<T> bc, pgi_transfers<T> tr,
                                                                 const pgi_faces *ff, const pgi_faces *fc, pgi_grid u,
                                                                 pgi_grid v, int add, pgi_shape h)
{
    PGI_UNLESS_DONE(bf.state);
    __shared__ pgi_cubic<T> zs[PGI_PLANES];
    const pgi_tile t = pgi_tile_of(h, blockIdx.x, bf.axis[2].n);
    const int thread = (int)(threadIdx.x + blockDim.x * threadIdx.y);
    if (t.k0 + thread < t.k1) pgi_cubic_of(tr.axis[2], t.k0 + thread, 1, &zs[thread]);
    __syncthreads();
    if (t.i >= bf.axis[0].n || t.j >= bf.axis[1].n) return;
    const pgi_interpolation<T> p = pgi_interpolation_of(bf.state, ff, fc, bf.axis[0].n, bc, v);
    pgi_interpolate_column(p, tr, t.i, t.j, t.k0, t.k1, zs, pgi_data<T>(u) + t.i + t.j * u.sj, u.sk, add);
}

// ---- the exact solver ----

// Products with a matrix: the columns of a block's shared memory [in][pitch] become emit(out, column, value) for the
// outs from first on. A thread has one out, COLUMNS columns, which all lanes beside it read too, and a part of the sum:
// what takes long is to wait for the matrix. `partial` has COLUMNS numbers a thread. All threads of a block take part.
// Columns from count to pitch have no value, nor do their products.
enum { PGI_COLUMNS = 4, PGI_MODES_THREADS = 1024 };
static PGI_HD inline int pgi_pitch_of(int columns) { return (columns + PGI_COLUMNS - 1) / PGI_COLUMNS * PGI_COLUMNS; }
static PGI_HD inline void pgi_share(int n, int part, int parts, int *first, int *count)
{
    *first = n * part / parts;
    *count = n * (part + 1) / parts - *first;
}
// p / n for small numbers, from 1/n
static __device__ inline float pgi_small_inverse(int n)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"((float)n));
    return y;
#else
    return 1 / (float)n;
#endif
}
static __device__ inline int pgi_small_quotient(int p, float inverse) { return (int)(((float)p + 0.5f) * inverse); }

// Before pgi_await: the outs from first on of a matrix come closer.
template <class T>
static __device__ inline void pgi_modes_fetch(const T *matrix, int in, int pitch, int first, int outs)
{
#ifdef __CUDA_ARCH__
    const int lines = (outs * (int)sizeof(T) + 127) / 128 + 1, step = 128 / (int)sizeof(T);
    const float inverse = pgi_small_inverse(lines);
    for (int p = (int)threadIdx.x; p < in * lines; p += (int)blockDim.x) {
        const int row = pgi_small_quotient(p, inverse), at = (p - row * lines) * step;
        if (at < outs + step)
            asm volatile("prefetch.global.L1 [%0];" ::"l"(matrix + row * pitch + first + (at < outs ? at : outs - 1)));
    }
#else
    (void)matrix, (void)in, (void)pitch, (void)first, (void)outs;
#endif
}

template <class T> struct alignas(16) pgi_abreast {
    T v[PGI_COLUMNS];
};
template <class T, class Emit> static __device__ inline void pgi_modes_product(const T *matrix, int in, int pitch_out,
                                                                               int first, int outs, const T *columns,
                                                                               int count, T *partial, Emit emit)
{
    const int thread = (int)threadIdx.x, threads = (int)blockDim.x;
    const int pitch = pgi_pitch_of(count), tiles = outs * (pitch / PGI_COLUMNS);
    const float per_out = pgi_small_inverse(outs);
    for (int begin = 0; begin < tiles; begin += threads) {
        const int now = tiles - begin < threads ? tiles - begin : threads;
        const float per_now = pgi_small_inverse(now);
        int parts = pgi_small_quotient(threads, per_now);
        if (parts * 4 >= in) parts = (in + 3) / 4;
        const int part = pgi_small_quotient(thread, per_now), tile = begin + thread - part * now;
        const int each = pgi_small_quotient(in + parts - 1, pgi_small_inverse(parts)), from = part * each;
        const int terms = in - from < each ? in - from : each;
        pgi_abreast<T> sum = {{0, 0, 0, 0}};
        if (part < parts) {
            const int c = pgi_small_quotient(tile, per_out), out = tile - c * outs;
            const T *m = matrix + from * pitch_out + first + out, *v = columns + from * pitch + c * PGI_COLUMNS;
#pragma unroll 8
            for (int q = 0; q < terms; q++, m += pitch_out, v += pitch) {
                const T weight = pgi_load(m);
                const pgi_abreast<T> value = *(const pgi_abreast<T> *)v;
#pragma unroll
                for (int e = 0; e < PGI_COLUMNS; e++) sum.v[e] += weight * value.v[e];
            }
            ((pgi_abreast<T> *)partial)[thread] = sum;
        }
        __syncthreads();
        for (int p = thread; p < now * PGI_COLUMNS; p += threads) {
            const int at = begin + p / PGI_COLUMNS, group = pgi_small_quotient(at, per_out);
            const int out = at - group * outs, c = group * PGI_COLUMNS + p % PGI_COLUMNS;
            T value = 0;
            for (int q = 0; q < parts; q++) value += partial[q * now * PGI_COLUMNS + p];
            if (c < count) emit(first + out, c, value);
        }
        __syncthreads();
    }
}

// Where a block is in a level: in 3D a plane, and `part` of its modes or rows; in 2D some rows, and part of the modes
// or points of a row.
struct pgi_modes_share {
    int rows, parts;    // z a block, blocks that share them
};
// Computes t = the residual, in modes along x and y   u NULL: of u = 0
template <class T> static __global__ void __launch_bounds__(PGI_MODES_THREADS)
    pgi_modes_to_kernel(pgi_box<T> b, pgi_modes<T> m, pgi_grid gu, pgi_rhs rhs, T *t, pgi_modes_share share)
{
    PGI_UNLESS_DONE(b.state);
    PGI_DYNAMIC_SHARED(char, pgi_shared);
    const int nx = b.axis[0].n, ny = b.axis[1].n, nz = b.axis[2].n;
    const int k0 = (int)blockIdx.x / share.parts * share.rows, planes = nz - k0 < share.rows ? nz - k0 : share.rows;
    const int rows = ny * planes, pitch = pgi_pitch_of(rows);
    int first, count;
    pgi_share(nx, (int)blockIdx.x % share.parts, share.parts, &first, &count);
    const float per_x = pgi_small_inverse(nx);
    pgi_modes_fetch(m.to[0], nx, nx, first, count);
    if (ny > 1) pgi_modes_fetch(m.to[1], ny, ny, 0, ny);
    pgi_await();
    const T *const u = gu.base ? pgi_data<T>(gu) : NULL, *const f = pgi_data<T>(rhs.f);
    const T mean = pgi_mean_of<T>(rhs, b.state);
    T *const partial = (T *)pgi_shared, *const points = partial + PGI_COLUMNS * blockDim.x,
             *const half = points + nx * pitch;
    for (int p = (int)threadIdx.x; p < nx * rows; p += (int)blockDim.x) {
        const int row = pgi_small_quotient(p, per_x), i = p - row * nx, k = ny > 1 ? 0 : row;
        points[i * pitch + row] = pgi_residual_point(b, rhs, f, mean, u, gu.sj, gu.sk, i, row - k, k0 + k);
    }
    const int pitch_y = pgi_pitch_of(count);
    __syncthreads();
    pgi_modes_product(m.to[0], nx, nx, first, count, points, rows, partial, [&](int mode, int row, T v) {
        if (ny > 1)
            half[row * pitch_y + mode - first] = v;
        else
            t[mode + (int64_t)(k0 + row) * nx] = v;
    });
    if (ny == 1) return;
    pgi_modes_product(m.to[1], ny, ny, 0, ny, half, count, partial,
                      [&](int mode, int c, T v) { t[first + c + ((int64_t)k0 * ny + mode) * nx] = v; });
}

// Computes out = A^-1 in, in modes along x and y, for some columns a block; out may be in
template <class T> static __global__ void __launch_bounds__(PGI_MODES_THREADS)
    pgi_modes_solve_kernel(pgi_box<T> b, pgi_modes<T> m, const T *in, T *out, int columns, pgi_state *state)
{
    PGI_UNLESS_DONE(state);
    PGI_DYNAMIC_SHARED(char, pgi_shared);
    const int nx = b.axis[0].n, plane = nx * b.axis[1].n, nz = b.axis[2].n;
    const int first = (int)blockIdx.x * columns, count = plane - first < columns ? plane - first : columns;
    const int pitch = pgi_pitch_of(count);
    T *const partial = (T *)pgi_shared, *const points = partial + PGI_COLUMNS * blockDim.x,
             *const modes = points + nz * pitch;
    const float per_count = pgi_small_inverse(count), per_x = pgi_small_inverse(nx);
    pgi_modes_fetch(m.to[2], nz, nz, 0, nz);
    pgi_modes_fetch(m.from[2], nz, nz, 0, nz);
    pgi_await();
    for (int p = (int)threadIdx.x; p < nz * count; p += (int)blockDim.x) {
        const int k = pgi_small_quotient(p, per_count), c = p - k * count;
        points[k * pitch + c] = in[first + c + (int64_t)k * plane];
    }
    __syncthreads();
    pgi_modes_product(m.to[2], nz, nz, 0, nz, points, count, partial, [&](int mode, int c, T v) {
        const int at = first + c, j = pgi_small_quotient(at, per_x);
        modes[mode * pitch + c] = pgi_mode_divide(m, state->alpha, v, at - j * nx, j, mode, &state->resonant);
    });
    pgi_modes_product(m.from[2], nz, nz, 0, nz, modes, count, partial,
                      [&](int k, int c, T v) { out[first + c + (int64_t)k * plane] = v; });
}

// Computes u = t from modes along x and y, or (add) u += it
template <class T> static __global__ void __launch_bounds__(PGI_MODES_THREADS)
    pgi_modes_from_kernel(pgi_box<T> b, pgi_modes<T> m, const T *t, pgi_grid gu, int add, pgi_modes_share share)
{
    PGI_UNLESS_DONE(b.state);
    PGI_DYNAMIC_SHARED(char, pgi_shared);
    const int nx = b.axis[0].n, ny = b.axis[1].n, nz = b.axis[2].n;
    const int k0 = (int)blockIdx.x / share.parts * share.rows, planes = nz - k0 < share.rows ? nz - k0 : share.rows;
    T *const partial = (T *)pgi_shared, *const half = partial + PGI_COLUMNS * blockDim.x;
    int first, count;
    pgi_share(ny > 1 ? ny : nx, (int)blockIdx.x % share.parts, share.parts, &first, &count);
    const float per_x = pgi_small_inverse(nx);
    if (ny > 1) pgi_modes_fetch(m.from[1], ny, ny, first, count);
    pgi_modes_fetch(m.from[0], nx, nx, ny > 1 ? 0 : first, ny > 1 ? nx : count);
    pgi_await();
    T *const u = pgi_data<T>(gu);
    const int rows = ny > 1 ? count : planes, pitch = pgi_pitch_of(rows), pitch_x = pgi_pitch_of(nx);
    if (ny > 1) {
        T *const modes = half + nx * pitch;
        for (int p = (int)threadIdx.x; p < ny * nx; p += (int)blockDim.x) {
            const int row = pgi_small_quotient(p, per_x);
            modes[row * (pitch_x - nx) + p] = t[p + (int64_t)k0 * ny * nx];
        }
        __syncthreads();
        pgi_modes_product(m.from[1], ny, ny, first, count, modes, nx, partial,
                          [&](int j, int mode, T v) { half[mode * pitch + j - first] = v; });
    } else {
        for (int p = (int)threadIdx.x; p < nx * rows; p += (int)blockDim.x) {
            const int row = pgi_small_quotient(p, per_x);
            half[(p - row * nx) * pitch + row] = t[p + (int64_t)k0 * nx];
        }
        __syncthreads();
    }
    pgi_modes_product(m.from[0], nx, nx, ny > 1 ? 0 : first, ny > 1 ? nx : count, half, rows, partial,
                      [&](int i, int row, T v) {
                          T *const to = u + i + (ny > 1 ? first + row : 0) * gu.sj + (k0 + (ny > 1 ? 0 : row)) * gu.sk;
                          *to = add ? *to + v : v;
                      });
}

// ---- the exact solver of levels whose lines do not fit blocks ----

// A product of all lines along an axis with a matrix [in][out], from grid to grid.
template <class T> struct pgi_long_product {
    const T *matrix;
    int axis, n;         // n: of its points
    int width, lines;    // lines are numbered along the first of the other two axes, which has `width`, then the other
    int divide;          // by the eigenvalues: results are modes along all axes
    int add;             // to what is there
    pgi_grid from, to;
};

struct pgi_place {
    int i, j, k;
};
// Where `point` of a line is.
template <class T> static __device__ inline pgi_place pgi_place_of(const pgi_long_product<T> &p, int line, int point)
{
    const int over = (int)((unsigned)line / (unsigned)p.width), along = line - over * p.width;
    const pgi_place place = {p.axis == 0 ? point : along,
                             p.axis == 1   ? point
                             : p.axis == 0 ? along
                                           : over,
                             p.axis == 2 ? point : over};
    return place;
}

template <class T> struct alignas(16) pgi_sixteen_bytes {
    T v[16 / sizeof(T)];
};

enum { PGI_LONG_SIZE = 64, PGI_LONG_THREADS = 128 };
// A block has SIZE outs of SIZE lines, a thread ROWS outs of PGI_COLUMNS lines. DEEP terms of the sums are in shared
// memory, while the next ones are on their way to registers.
template <class T> struct pgi_long {
    enum {
        SIZE = PGI_LONG_SIZE,
        DEEP = 16,
        PITCH = SIZE + 16 / sizeof(T),
        HALF = DEEP * PITCH,
        NUMBERS = 4 * HALF,                       // of shared memory: two halves of outs, two of lines; then results
        EACH = SIZE * DEEP / PGI_LONG_THREADS,    // numbers that a thread brings of outs, and of lines
        STEP = PGI_LONG_THREADS / SIZE,           // terms between two of them
        APART = PGI_LONG_THREADS / DEEP,          // or, along x, lines: there the terms of a line lie together
        WIDE = 16,                                // threads side by side
        ROWS = 8
    };
};

// One term of a thread's sums: the weights of its outs times the values of its lines, which are WIDE apart.
template <class T>
static __device__ inline void pgi_add_products(const T *outs, const T *values, T (&sum)[pgi_long<T>::ROWS][PGI_COLUMNS])
{
    const pgi_abreast<T> *const weight = (const pgi_abreast<T> *)outs;
    const pgi_abreast<T> low = weight[0], high = weight[1];
    PGI_UNROLLED
    for (int q = 0; q < PGI_COLUMNS; q++) {
        const T value = values[q * pgi_long<T>::WIDE];
        PGI_UNROLLED
        for (int r = 0; r < pgi_long<T>::ROWS; r++) sum[r][q] += value * (r < 4 ? low.v[r & 3] : high.v[r & 3]);
    }
}

// The sums of a thread. Ends with a barrier.
template <class T> static __device__ inline void pgi_long_sums(const pgi_long_product<T> &p, int first_out,
                                                               int first_line, T *outs,
                                                               T (&sum)[pgi_long<T>::ROWS][PGI_COLUMNS])
{
    typedef pgi_long<T> c;
    T *const values = outs + 2 * c::HALF;
    const int along_x = p.axis == 0, n = p.n, thread = (int)threadIdx.x, own = thread % c::SIZE;
    const int row = thread / c::SIZE, x_row = thread % c::DEEP, x_line = thread / c::DEEP;
    const int64_t step = along_x ? 1 : p.axis == 1 ? p.from.sj : p.from.sk;
    const T *const from = pgi_data<T>(p.from);
    int64_t at[c::EACH];
    PGI_UNROLLED
    for (int e = 0; e < c::EACH; e++) {
        const int line = first_line + (along_x ? x_line + e * c::APART : own);
        const pgi_place begin = pgi_place_of(p, line < p.lines ? line : p.lines - 1, 0);
        at[e] = begin.i + begin.j * p.from.sj + begin.k * p.from.sk;
    }
    T next_out[c::EACH], next_value[c::EACH];
    const auto bring = [&](int begin) {
        PGI_UNROLLED
        for (int e = 0; e < c::EACH; e++) {
            const int term = begin + row + e * c::STEP, of_line = along_x ? begin + x_row : term;
            const int there = term < n && first_out + own < n;
            next_out[e] = there ? pgi_load(p.matrix + (int64_t)term * n + first_out + own) : (T)0;
            next_value[e] = of_line < n ? from[at[e] + of_line * step] : (T)0;
        }
    };
    const auto put = [&](int half) {
        T *const o = outs + half + row * c::PITCH + own, *const v = values + half +
                                                                    (along_x ? x_row * c::PITCH + x_line
                                                                             : row * c::PITCH + own);
        PGI_UNROLLED
        for (int e = 0; e < c::EACH; e++) {
            o[e * c::STEP * c::PITCH] = next_out[e];
            v[e * (along_x ? c::APART : c::STEP * c::PITCH)] = next_value[e];
        }
    };
    bring(0);
    put(0);
    __syncthreads();
    PGI_ROLLED
    for (int begin = 0, half = 0; begin < n; begin += c::DEEP, half = c::HALF - half) {
        const int more = begin + c::DEEP < n;
        if (more) bring(begin + c::DEEP);
        PGI_UNROLLED
        for (int q = 0; q < c::DEEP; q++)
            pgi_add_products(outs + half + q * c::PITCH + thread / c::WIDE * c::ROWS,
                             values + half + q * c::PITCH + thread % c::WIDE, sum);
        if (more) put(c::HALF - half);
        __syncthreads();
    }
}

// Computes to = (to +) the product, then divides where told   Moves 2 words a point, `from` again for each 64 outs
// Covers 64 outs of 64 lines a block   Overlap: none
template <class T> static __global__ void __launch_bounds__(PGI_LONG_THREADS, 3)
    pgi_long_product_kernel(pgi_long_product<T> p, pgi_modes<T> m, pgi_state *state)
{
    PGI_UNLESS_DONE(state);
    pgi_await();
    typedef pgi_long<T> c;
    __shared__ pgi_sixteen_bytes<T> shared[c::NUMBERS * sizeof(T) / 16];
    T *const results = shared[0].v, *const to = pgi_data<T>(p.to);
    const int along_x = p.axis == 0, thread = (int)threadIdx.x, own = thread % c::SIZE;
    const int tiles = (p.n + c::SIZE - 1) / c::SIZE;
    const int first_line = (int)blockIdx.x / tiles * c::SIZE, first_out = (int)blockIdx.x % tiles * c::SIZE;
    T sum[c::ROWS][PGI_COLUMNS] = {};
    pgi_long_sums(p, first_out, first_line, results, sum);
    PGI_UNROLLED
    for (int r = 0; r < c::ROWS; r++) PGI_UNROLLED
    for (int q = 0; q < PGI_COLUMNS; q++)
        results[(thread / c::WIDE * c::ROWS + r) * c::PITCH + thread % c::WIDE + q * c::WIDE] = sum[r][q];
    __syncthreads();
    PGI_ROLLED
    for (int q = thread / c::SIZE; q < c::SIZE; q += c::STEP) {    // neighbouring threads write what lies together
        const int out = along_x ? own : q, line = along_x ? q : own;
        if (first_out + out >= p.n || first_line + line >= p.lines) continue;
        const pgi_place x = pgi_place_of(p, first_line + line, first_out + out);
        T *const here = to + x.i + x.j * p.to.sj + x.k * p.to.sk, value = results[out * c::PITCH + line];
        const T v = p.divide ? pgi_mode_divide(m, state->alpha, value, x.i, x.j, x.k, &state->resonant) : value;
        *here = p.add ? *here + v : v;
    }
}

// ---- what passes and tiles share: norms that ride along ----

// Before a step of a loop: what follows from a mask shall be worked out again, not kept in a register each.
static __device__ inline unsigned pgi_afresh(unsigned mask)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(mask));
#endif
    return mask;
}

// Whichever norm it is, pgi_norm_of finds it.
static __device__ inline void pgi_finish_norm(double sum, double *partials, pgi_state *state)
{
    double sums[4] = {sum, sum, sum, sum};
    pgi_finish_sums(sums, partials, state, state->sums);
}

// The norm of a residual that a solve asks for, summed up by threads that have two columns of ROWS rows of a plane.
template <class T, int ROWS> struct pgi_norm_sum {
    enum { WHOLE = 1 << 2 * ROWS, PLAIN = 2 << 2 * ROWS, WEIGHTED = 4 << 2 * ROWS };
    double sum;
    // Bit 2 * row + column: the point is the thread's. Above: all points are, their squares are added up, one differs
    // in weight from the inside of its plane. One word, for registers are scarce.
    unsigned own;
    // x_of(e), y_of(e): where the thread's point e is
    template <class X, class Y>
    __device__ pgi_norm_sum(const pgi_box<T> &b, unsigned mine, X x_of, Y y_of, double before = 0, bool wanted = true)
        : sum(before), own(0)
    {
        if (!wanted) return;    // what it would look up takes time
        const auto differs = [](const pgi_axis<T> &x, int i) {
            return x.weight || pgi_weight_of(x, i) != x.row_weight[1];
        };
        const int kind = b.state->stop.norm;
        bool weighted = false;
#pragma unroll
        for (int e = 0; e < 2 * ROWS; e++)
            if (mine >> e & 1) weighted = weighted || differs(b.axis[0], x_of(e)) || differs(b.axis[1], y_of(e));
        weighted = weighted && (kind == PG_NORM_L2 || kind == PG_NORM_L1);
        own = mine | (mine == WHOLE - 1 ? (unsigned)WHOLE : 0u) | (weighted ? (unsigned)WEIGHTED : 0u);
        if ((kind == PG_NORM_L2 || kind == PG_NORM_L2_PLAIN) && !weighted && b.state->unit_of_sums == 1) own |= PLAIN;
    }
    // What plane z has
    template <class X, class Y>
    __device__ void add(const pgi_box<T> &b, int z, const T (&residual)[ROWS][2], X x_of, Y y_of)
    {
        const pgi_axis<T> &ax = b.axis[0], &ay = b.axis[1], &az = b.axis[2];
        const int kind = b.state->stop.norm;
        const unsigned bits = pgi_afresh(own);
        double part = 0;
        if ((bits & (PLAIN | WHOLE)) == (PLAIN | WHOLE)) {
#pragma unroll
            for (int e = 0; e < 2 * ROWS; e++) part += (double)residual[e / 2][e & 1] * (double)residual[e / 2][e & 1];
        } else if (bits & PLAIN) {
#pragma unroll
            for (int e = 0; e < 2 * ROWS; e++) {
                const double r = bits >> e & 1 ? (double)residual[e / 2][e & 1] : 0.0;
                part += r * r;
            }
        } else {
#pragma unroll
            for (int e = 0; e < 2 * ROWS; e++) {
                const double r = bits >> e & 1 ? fabs(b.state->unit_of_sums * (double)residual[e / 2][e & 1]) : 0.0;
                if (kind == PG_NORM_MAX && !(r <= part) && part == part) part = r;    // NaN stays NaN
                const double v = kind == PG_NORM_L1 ? r : r * r;
                if (kind != PG_NORM_MAX)
                    part += bits & WEIGHTED && bits >> e & 1
                                ? v * (pgi_weight_of(ax, x_of(e)) * pgi_weight_of(ay, y_of(e)))
                                : v;
            }
        }
        if (kind == PG_NORM_MAX) {
            sum = pgi_max_nan(sum, part);
        } else if (kind == PG_NORM_L2_PLAIN) {
            sum += part;
        } else {
            const double inside = bits & WEIGHTED ? 1.0 : ax.row_weight[1] * ay.row_weight[1];
            sum += part * (inside * pgi_weight_of(az, z));
        }
    }
};

// ---- >>passes: sweeps and corrections in one pass over memory ----

// A pass relaxes a tile of columns plane by plane: half-sweep p of a wavefront works on plane t - p while planes to
// come are on their way to shared memory, so that u and f are read once and u is written once for several sweeps. A
// lane owns two columns, one of each colour, and some rows, so no lane ever idles; neighbours along z are in its
// registers, along x in the next lane's, along y in its registers or, at the edge of a warp, in the edge buffer that
// the next warp fills. Blocks of a cluster lie side by side along y and store their edges into each other's buffers,
// which spares most of the halo. What half a sweep needs beyond a tile is computed again there, and u is written to
// another grid, so tiles never wait for each other.
//     On an H200 at 512^3 two sweeps take hardly longer than one. A register that is spilled costs far more than the
// work it saves, for shared memory leaves L1 little room: see what ptxas says before a pass is given more to do.
//     Unknowns outside a closed end are 0 and stay 0; the reaction of an end row is its coupling to them.
template <class T> struct pgi_coupling {
    T lower, upper;
};

template <class T> static PGI_HD inline pgi_coupling<T> pgi_coupling_of(const pgi_axis<T> &a, int i)
{
    pgi_coupling<T> c = {0, 0};
    if (i < 0) return c;
    const pgi_row<T> row = pgi_row_of(a, i);
    c.lower = row.lower - (i == 0 ? row.reaction : (T)0);
    c.upper = row.upper - (i > 0 ? row.reaction : (T)0);
    return c;
}

// The unknown at index i of the endless axis; -1: none.
static PGI_HD inline int pgi_wrap(int i, int n, int periodic)
{
    if (periodic) i += i < 0 ? n : i >= n ? -n : 0;
    return i >= 0 && i < n ? i : -1;
}

template <class T> struct pgi_two;
template <> struct pgi_two<double> {
    typedef double2 type;
};
template <> struct pgi_two<float> {
    typedef float2 type;
};

enum {
    PGI_PASS_PLANES = 256,
    PGI_PASS_PITCH = 66,    // of rows in shared memory: 64 columns, and one more where rows are not aligned
    PGI_PASS_COARSE = 5,    // coarse planes in use or under way, beyond those for the planes ahead
    PGI_PASS_TAPS = 3       // most fine points along an axis that a pass restricts a coarse one from
};

template <class T> struct pgi_pass {
    pgi_box<T> b;
    pgi_transfers<T> transfer;
    pgi_grid u, out, e, coarse_f;
    pgi_rhs rhs;
    T omega, second;            // second: over omega, of the second colour; only in passes of one sweep
    int first;                  // parity of the colour that is relaxed first
    int skewed;                 // rows whose pairs are not aligned come one column further along
    int u_odd[2], f_odd[2];     // then: what it says of a row that it is the next one, that its plane is, see pgi_skew
    int cluster;                // blocks that share a tile, side by side along y
    int own[3];                 // columns, rows and planes from tile to tile
    int tiles[3];               // their numbers
    int slots[2];               // coarse points of a plane that a block interpolates from
    double *partials;           // for the norm of the residual
    pgi_state *state;           // and where it goes
    T tap[3][PGI_PASS_TAPS];    // weights that coarse points of an axis are restricted with
    int coarse[3];              // their numbers
    // Offsets in shared memory, and the bytes of it that a team has
    int barriers, edges, rows, weights, planes, coarse_rows, coarse_planes, regular, corrections, bytes;
};

// A copy to shared memory that the thread waits for later. ONCE: past L1, which is worth its place only where tiles are
// wide against their halo.
template <int BYTES, int ONCE> static __device__ inline void pgi_copy_async(void *to, const void *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16 && ONCE)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES) : "memory");
#elif defined(PGI_SIMT)
    __pipeline_memcpy_async(to, from, BYTES, 0);
#else
    for (int q = 0; q < BYTES / 4; q++) ((unsigned *)to)[q] = ((const unsigned *)from)[q];
#endif
}
// The same, of bytes of which `valid` exist; the rest becomes 0.
template <int BYTES, int ONCE> static __device__ inline void pgi_copy_async(void *to, const void *from, int valid)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16 && ONCE)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(valid)
                     : "memory");
#elif defined(PGI_SIMT)
    __pipeline_memcpy_async(to, from, BYTES, BYTES - valid);
#else
    for (int q = 0; q < BYTES / 4; q++) ((unsigned *)to)[q] = 4 * q < valid ? ((const unsigned *)from)[q] : 0u;
#endif
}
static __device__ inline void pgi_copy_commit()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#elif defined(PGI_SIMT)
    __pipeline_commit();
#endif
}
// Waits for all groups of copies but the last LATEST.
template <int LATEST> static __device__ inline void pgi_copy_wait()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LATEST) : "memory");
#elif defined(PGI_SIMT)
    __pipeline_wait_prior(LATEST);
#endif
}

// A split-phase barrier of a block's warps: work between arrival and wait need not wait. Blocks of a cluster store into
// each other's edge buffers, and a phase ends only when the `bytes` that a block expects have arrived too. Two barriers
// alternate, for other blocks may be a step ahead. Before clusters it is one plain barrier, at the wait.
static __device__ inline void pgi_barriers_open(uint64_t *barrier, int warps)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const unsigned at = (unsigned)__cvta_generic_to_shared(barrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tmbarrier.init.shared::cta.b64 [%0 + 8], %1;\n\t"
                 "fence.mbarrier_init.release.cluster;" ::"r"(at),
                 "r"(warps)
                 : "memory");
#else
    (void)barrier, (void)warps;
#endif
}
static __device__ inline void pgi_arrive(uint64_t *barrier, bool leader, int bytes)
{
#if defined(PGI_SIMT)
    (void)barrier, (void)leader, (void)bytes;
    __cluster_barrier_arrive();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const unsigned at = (unsigned)__cvta_generic_to_shared(barrier);
    __syncwarp();
    if (!leader) return;
    if (bytes)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
    else
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
#else
    (void)barrier, (void)leader, (void)bytes;
#endif
}
static __device__ inline void pgi_wait(uint64_t *barrier, int parity)
{
#if defined(PGI_SIMT)
    (void)barrier, (void)parity;
    __cluster_barrier_wait();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const unsigned at = (unsigned)__cvta_generic_to_shared(barrier);
    unsigned done;
    do
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
    while (!done);
#else
    (void)barrier, (void)parity;
    __syncthreads();
#endif
}

// A place in the shared memory of another block of the cluster, and telling it a value
static __device__ inline uint64_t pgi_address_in(const void *here, int rank)
{
#if defined(PGI_SIMT)
    return (uint64_t)(size_t)__cluster_map_shared_rank(here, (unsigned)rank);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"((unsigned)__cvta_generic_to_shared(here)), "r"(rank));
    return there;
#else
    (void)here, (void)rank;
    return 0;
#endif
}
static __device__ inline void pgi_send(uint64_t there, uint64_t barrier, double value)
{
#if defined(PGI_SIMT)
    (void)barrier;
    *(double *)(size_t)there = value;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"((unsigned)there),
        "l"(__double_as_longlong(value)), "r"((unsigned)barrier)
        : "memory");
#else
    (void)there, (void)barrier, (void)value;
#endif
}
static __device__ inline void pgi_send(uint64_t there, uint64_t barrier, float value)
{
#if defined(PGI_SIMT)
    (void)barrier;
    *(float *)(size_t)there = value;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"((unsigned)there),
        "r"(__float_as_uint(value)), "r"((unsigned)barrier)
        : "memory");
#else
    (void)there, (void)barrier, (void)value;
#endif
}
static __device__ inline void pgi_cluster_arrive()
{
#if defined(PGI_SIMT)
    __cluster_barrier_arrive();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
static __device__ inline void pgi_cluster_wait()
{
#if defined(PGI_SIMT)
    __cluster_barrier_wait();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}
static __device__ inline void pgi_cluster_sync()
{
    pgi_cluster_arrive();
    pgi_cluster_wait();
}

// 1/x to an ulp or so, without the branches of a division.
static __device__ inline float pgi_reciprocal(float x) { return 1 / x; }
static __device__ inline double pgi_reciprocal(double x)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(-x, y, 1.0);    // 2^-19 at most
    return fma(y, fma(e, e, e), y);
#else
    return 1 / x;
#endif
}

// Fine plane z is corrected from w0 of coarse plane `below` and w1 of `above`. From plane to plane the pair stays, or
// is one step further along: then `below` is what `above` was.
template <class T> struct pgi_level_pair {
    T w0, w1;
    int step, below, above;
};
template <class T> static __device__ inline pgi_level_pair<T> pgi_level_pair_of(const pgi_transfer<T> &t, int z, int n)
{
    const int at = pgi_wrap(z, n, t.periodic), turns = z < 0 ? -1 : z >= n ? 1 : 0;
    pgi_level_pair<T> p = {0, 0, z < 0 ? -1 : t.nc - 1, z < 0 ? 0 : t.nc - 1, z < 0 ? 0 : t.nc - 1};
    if (at < 0) return p;
    const pgi_pair<T> pair = pgi_prolongation(t, at);
    T part;
    p.step = t.kind == PGI_SAME ? z : t.kind == PGI_MERGED ? 0 : pgi_locate(t, at, &part) + turns * t.nc;
    p.below = pair.j0, p.above = pair.j1;
    p.w0 = pair.j0 == pair.j1 ? (T)0 : pair.w0;
    p.w1 = pair.j0 == pair.j1 ? pair.w0 + pair.w1 : pair.w1;
    return p;
}

// Threads of a block, blocks that a multiprocessor must be able to hold, rows of a thread, planes under way to it.
// Measured on an H200 at 512^3 cells, ms in f64 and f32: one sweep 0.90, 0.54; with a correction 1.00, 0.66; two sweeps
// 0.99, 0.54.
#ifndef PGI_TUNE
#define PGI_TUNE                                                                                                       \
    {384, 1, 2, 2}, {256, 1, 4, 2}, {192, 2, 4, 2}, { 384, 1, 4, 2 }
#endif
static constexpr int pgi_pass_tuning[4][4] = {PGI_TUNE};    // f64 with 1 and 2 sweeps, f32
template <class T, int SWEEPS> struct pgi_tuned {
    enum {
        THREADS = pgi_pass_tuning[(sizeof(T) == 4 ? 1 : -1) + SWEEPS][0],
        BLOCKS = pgi_pass_tuning[(sizeof(T) == 4 ? 1 : -1) + SWEEPS][1],
        ROWS = pgi_pass_tuning[(sizeof(T) == 4 ? 1 : -1) + SWEEPS][2],
        AHEAD = pgi_pass_tuning[(sizeof(T) == 4 ? 1 : -1) + SWEEPS][3]
    };
};

// How a thread's share of a plane is moved: where aligned as pairs, else one by one, in bit
// (3 * parity of the plane + kind) * rows + row. Above: what else a mask holds.
enum {
    PGI_BOTH,
    PGI_LOWER,
    PGI_UPPER,
    PGI_LEADER = 24,        // out: the lane that arrives for its warp
    PGI_SENDERS = 25,       // out: the blocks that send this one their edges, for one of the leaders
    PGI_THIRD = 27,         // out: for that leader, that one of them sends sums of its first row
    PGI_RESTRICTED = 28,    // out: a thread's coarse rows that are its tile's
    PGI_TOUCHED = 24        // f: 1 there are boundary data, 2 and they reach the tile's columns, 4 its mean is not 0
};
static PGI_HD constexpr unsigned pgi_singles(int rows) { return ((1u << 2 * rows) - 1) << rows; }
// A row whose pairs are not aligned comes one column further along, where there is room for it. By how many bytes:
// `even` of row 0 of the even planes of a pass; `odd` is what changes with the next row, and with the next plane.
static __device__ inline unsigned pgi_skew(unsigned even, const int (&odd)[2], int row, int plane)
{
    return even ^ (row & 1 ? (unsigned)odd[0] : 0u) ^ (plane ? (unsigned)odd[1] : 0u);
}
struct pgi_patch {                              // a thread's share of a plane
    int first[2], lo[2], hi[2], periodic[2];    // first column and row, those that count
    int tile, rows, turned;                     // turned: `odd` planes are even
};
template <class T>
static __device__ PGI_RARE unsigned pgi_moves_of(pgi_patch w, const void *base, int64_t sj, int64_t sk, int skewed)
{
    unsigned mask = 0;
    for (int odd = 0; odd < 2; odd++)
        for (int r = 0; r < w.rows; r++) {
            const int x = w.first[0], y = w.first[1] + r, at = pgi_wrap(y, w.hi[1], w.periodic[1]);
            const int out =
                (int)(((int64_t)((size_t)base / sizeof(T)) + y * (sj & 1) + (odd ^ w.turned) * (sk & 1) + w.tile) & 1);
            const int s = skewed && out, i = pgi_wrap(x - s, w.hi[0], w.periodic[0]),
                      j = pgi_wrap(x + 1 - s, w.hi[0], w.periodic[0]);
            if (at < w.lo[1]) continue;
            const bool here = i >= w.lo[0], next = j >= w.lo[0];
            if (here && next && j == i + 1 && out == s)
                mask |= 1u << ((3 * odd + PGI_BOTH) * w.rows + r);
            else
                mask |= (here ? 1u : 0u) << ((3 * odd + PGI_LOWER) * w.rows + r) |
                        (next ? 1u : 0u) << ((3 * odd + PGI_UPPER) * w.rows + r);
        }
    return mask;
}

// What a pass is made of, in numbers that are known when it is compiled.
template <class TYPE, int SWEEPS_, int HEAD_, int FLAT_, int RESTRICTS_> struct pgi_pass_traits {
    typedef TYPE T;
    typedef typename pgi_two<T>::type T2;
    enum {
        SWEEPS = SWEEPS_,
        FROM_ZERO = HEAD_ == PGI_FROM_ZERO,
        CORRECTED = HEAD_ == PGI_CORRECTED,
        FLAT = FLAT_,
        RESTRICTS = RESTRICTS_,
        ROWS = FLAT ? 1 : pgi_tuned<T, SWEEPS>::ROWS,
        WARPS = FLAT ? 1 : pgi_tuned<T, SWEEPS>::THREADS / 32,    // of a team
        TEAM = 32 * WARPS,
        HALVES = 2 * SWEEPS,                         // half-sweeps
        STAGES = RESTRICTS ? HALVES + 1 : HALVES,    // and the residual of the first colour
        HALO = RESTRICTS ? HALVES + 2 : HALVES,
        RING = STAGES + 2,    // planes of u under way
        AHEAD = pgi_tuned<T, SWEEPS>::AHEAD,
        QUEUE = STAGES + AHEAD,    // and of f, AHEAD still to come
        U_SLOTS = FROM_ZERO ? 0 : AHEAD,
        E_SLOTS = AHEAD + PGI_PASS_COARSE,
        COARSE_ROWS = FLAT ? 1 : ROWS * WARPS / 2 + 6,
        PREFETCH = ((64 / 2 + 6) * COARSE_ROWS + TEAM - 1) / TEAM,    // coarse points of a thread in a plane
        PITCH = PGI_PASS_PITCH,
        PLANE = ROWS * WARPS * PITCH,
        SIDE = TEAM + 32,                // edges that warps send up, or down
        BOX = STAGES * 2 * SIDE,         // edge buffer of a step
        CONTRIBUTIONS = ROWS / 2 + 1,    // coarse rows that a thread adds to; the first is the warp's before it
        TAIL = RESTRICTS ? PGI_PASS_TAPS - 1 : 0    // steps beyond the last plane's
    };
    static_assert(AHEAD % 2 == 0, "planes of u in a slot are skewed alike");
    static_assert(FLAT || (WARPS > 1 && ROWS % 2 == 0 && ROWS <= 4), "what PGI_TUNE must keep");
};

// The tile of a team of warps: a block's, or with FLAT one warp's. Tiles begin at the low end of a closed axis, and the
// first one there has no halo.
template <class P> struct pgi_pass_tile {
    typedef typename P::T T;
    const pgi_pass<T> &a;
    const int lane, warp, thread, rank;    // rank: of the block in its cluster
    int x_own[2], y_own[2], k0, k1;        // columns, rows and planes that are the tile's
    int x_tile, y_tile, x, y;              // first column and row: of the tile with its halo, of the thread
    int begin, end, z_table;               // steps, see pgi_pass_march; the first plane that tables have
    int x_at[2];                           // indices of the thread's columns, -1: none

    // idle: a warp without a tile, which owns nothing
    __device__ pgi_pass_tile(const pgi_pass<T> &pass, int own_warp, int own_rank, int64_t tile, bool idle)
        : a(pass), lane((int)threadIdx.x), warp(own_warp), thread(32 * own_warp + (int)threadIdx.x), rank(own_rank)
    {
        const pgi_axis<T> &ax = a.b.axis[0], &ay = a.b.axis[1];
        const int nx = ax.n, ny = ay.n, nz = a.b.axis[2].n;
        const int tile_x = (int)(tile % a.tiles[0]), rest = (int)(tile / a.tiles[0]), tile_y = rest % a.tiles[1];
        const int x_low = tile_x * a.own[0] + (ax.periodic ? 0 : (int)P::HALO),
                  y_low = tile_y * a.own[1] + (ay.periodic ? 0 : (int)P::HALO);
        x_own[0] = !ax.periodic && tile_x == 0 ? 0 : x_low;
        x_own[1] = idle ? 0 : tile_x == a.tiles[0] - 1 ? nx : x_low + a.own[0];
        y_own[0] = P::FLAT || (!ay.periodic && tile_y == 0) ? 0 : y_low;
        y_own[1] = P::FLAT || tile_y == a.tiles[1] - 1 ? ny : y_low + a.own[1];
        k0 = rest / a.tiles[1] * a.own[2], k1 = k0 + a.own[2] < nz ? k0 + a.own[2] : nz;
        x_tile = x_low - P::HALO, y_tile = P::FLAT ? 0 : y_low - P::HALO + rank * P::ROWS * P::WARPS;
        x = x_tile + 2 * lane, y = y_tile + warp * P::ROWS;
        // The colour that is relaxed first follows from the plane that the steps begin with.
        begin = k0 - P::HALO - 1 - a.first, end = k1 - 2 + P::HALVES + P::TAIL;
        z_table = begin - P::STAGES;
        x_at[0] = pgi_wrap(x, nx, ax.periodic), x_at[1] = pgi_wrap(x + 1, nx, ax.periodic);
    }
    __device__ int y_index(int r) const { return P::FLAT ? 0 : pgi_wrap(y + r, a.b.axis[1].n, a.b.axis[1].periodic); }
    static __device__ void sync()
    {
        if (P::FLAT)
            __syncwarp();
        else
            __syncthreads();
    }
};

// The operator of the thread's columns and rows. Couplings along y and weights are in registers, or where these are
// scarce in shared memory.
template <class P> struct pgi_pass_operator {
    typedef typename P::T T;
    typedef typename P::T2 T2;
    enum { ROWS = P::ROWS, TEAM = P::TEAM, RESTRICTS = P::RESTRICTS };
    pgi_coupling<T> *const z_rows, *const y_rows;    // of the planes from z_table on, of the warp's rows
    T2 *const weights;                               // [ROWS][TEAM]
    const T omega;
    pgi_coupling<T> xc[2], inner, y_kept[ROWS];
    T reaction[2], weight[ROWS][2];    // weight: omega over the diagonal inside

    __device__ pgi_pass_operator(const pgi_pass_tile<P> &t, char *shared)
        : z_rows((pgi_coupling<T> *)(shared + t.a.planes)),
          y_rows((pgi_coupling<T> *)(shared + t.a.rows) + t.warp * ROWS),
          weights((T2 *)(shared + t.a.weights) + t.thread), omega(t.a.omega == 0 ? (T)t.a.b.state->omega : t.a.omega)
    {
        const pgi_axis<T> &az = t.a.b.axis[2];
        for (int q = t.thread; q <= t.end + 1 - t.z_table; q += TEAM)
            z_rows[q] = pgi_coupling_of(az, pgi_wrap(t.z_table + q, az.n, az.periodic));
    }
    // Beyond the edges of a warp shuffles find no zeros: there an end couples to itself alone.
    __device__ void find(const pgi_pass_tile<P> &t)
    {
        const pgi_axis<T> &ax = t.a.b.axis[0], &ay = t.a.b.axis[1], &az = t.a.b.axis[2];
        const T alpha = (T)t.a.b.state->alpha;
        xc[0] = pgi_coupling_of(ax, t.x_at[0]), xc[1] = pgi_coupling_of(ax, t.x_at[1]);
        reaction[0] = reaction[1] = alpha;
        if (t.lane == 0 && t.x_at[0] == 0 && !ax.periodic) reaction[0] -= xc[0].lower, xc[0].lower = 0;
        if (t.lane == 31 && t.x_at[1] == ax.n - 1 && !ax.periodic) reaction[1] -= xc[1].upper, xc[1].upper = 0;
        inner.lower = az.row[1].lower, inner.upper = az.row[1].upper;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int at = t.y_index(r);
            y_kept[r] = pgi_coupling_of(ay, at);
            if (RESTRICTS) y_rows[r] = y_kept[r];    // by every lane
#pragma unroll
            for (int c = 0; c < 2; c++)
                weight[r][c] = t.x_at[c] >= 0 && at >= 0 ? omega * (1 / diagonal(c, y_kept[r], inner)) : (T)0;
            T2 both;
            both.x = weight[r][0], both.y = weight[r][1];
            if (RESTRICTS) weights[r * TEAM] = both;
        }
    }
    __device__ T diagonal(int c, const pgi_coupling<T> &yr, const pgi_coupling<T> &zr) const
    {
        return reaction[c] - ((xc[c].lower + xc[c].upper) + (yr.lower + yr.upper) + (zr.lower + zr.upper));
    }
    __device__ pgi_coupling<T> along_y(int r) const { return RESTRICTS ? y_rows[r] : y_kept[r]; }
    __device__ T weight_of(int r, int c) const
    {
        return RESTRICTS ? ((const T *)(weights + r * TEAM))[c] : weight[r][c];
    }
};

// Planes of u and f on their way from memory to the thread's place in shared memory.
template <class P> struct pgi_pass_stream {
    typedef typename P::T T;
    typedef typename P::T2 T2;
    enum { ROWS = P::ROWS, PITCH = P::PITCH, PLANE = P::PLANE, FROM_ZERO = P::FROM_ZERO };
    const pgi_pass_tile<P> &t;
    T *const u_slots, *const f_slots;                   // [AHEAD] and [QUEUE][rows][pitch]
    const char *u_base, *f_base, *u_plane, *f_plane;    // planes: of the next fetch inside
    unsigned u_skew, f_skew, u_mask, f_mask;            // see pgi_skew, pgi_moves_of
    unsigned u_row[ROWS], f_row[ROWS];
    int beside[2];    // singles lie one from each other but at a seam
    T mean;

    static __device__ int bit(unsigned mask, int odd, int kind, int r)
    {
        return mask >> ((3 * odd + kind) * ROWS + r) & 1;
    }
    __device__ unsigned skew_of(const char *base,
                                const int (&odd)[2]) const    // tiles begin in even columns, rows, planes
    {
        return t.a.skewed ? ((unsigned)(size_t)base & (unsigned)sizeof(T)) ^ (t.a.first ? (unsigned)odd[1] : 0u) : 0u;
    }

    __device__ pgi_pass_stream(const pgi_pass_tile<P> &tile, char *shared)
        : t(tile), u_slots((T *)shared + t.warp * ROWS * PITCH + 2 * t.lane), f_slots(u_slots + P::U_SLOTS * PLANE),
          u_plane(NULL), f_plane(NULL)
    {
        for (int q = 0; q < (P::U_SLOTS + P::QUEUE) * ROWS; q++) {
            T *const row = u_slots + q / ROWS * PLANE + q % ROWS * PITCH;
            row[0] = row[1] = 0;
            if (t.lane == 31) row[2] = row[3] = 0;
        }
    }
    __device__ void find()
    {
        const pgi_pass<T> &a = t.a;
        const pgi_axis<T> &ax = a.b.axis[0], &ay = a.b.axis[1];
        const pgi_patch patch = {{t.x, t.y}, {0, 0}, {ax.n, ay.n}, {ax.periodic, ay.periodic}, t.x_tile, ROWS, a.first};
        u_base = FROM_ZERO ? NULL : (const char *)pgi_data<T>(a.u);
        f_base = (const char *)pgi_data<T>(a.rhs.f);
        u_skew = skew_of(u_base, a.u_odd), f_skew = skew_of(f_base, a.f_odd);
        // Boundary data reach the tiles at their faces only
        mean = pgi_mean_of<T>(a.rhs, a.b.state);
        const int x_last = t.x_tile + 63, y_last = t.y_tile + ROWS * P::WARPS - 1;
        const unsigned mask = pgi_face_mask(a.rhs, a.b.state);
        const bool touched = mask & ((t.x_tile <= 0 ? 1u : 0u) | (x_last >= ax.n - 1 ? 2u : 0u) |
                                     (t.y_tile <= 0 ? 4u : 0u) | (y_last >= ay.n - 1 ? 8u : 0u));
        const unsigned more_of_f = (mask ? 1u : 0u) | (touched ? 2u : 0u) | (mean != 0 ? 4u : 0u);
        u_mask = FROM_ZERO ? 0 : pgi_moves_of<T>(patch, u_base, a.u.sj, a.u.sk, a.skewed);
        f_mask =
            pgi_afresh(pgi_moves_of<T>(patch, f_base, a.rhs.f.sj, a.rhs.f.sk, a.skewed) | more_of_f << PGI_TOUCHED);
        const int x_from = t.x_at[0] < 0 ? 0 : t.x_at[0];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int at = t.y_index(r) < 0 ? 0 : t.y_index(r);
            u_row[r] = (unsigned)((at * a.u.sj + x_from) * (int64_t)sizeof(T));
            f_row[r] = (unsigned)((at * a.rhs.f.sj + x_from) * (int64_t)sizeof(T));
        }
        beside[0] = (t.x_at[1] < 0 ? 0 : t.x_at[1]) - x_from, beside[1] = pgi_wrap(t.x - 1, ax.n, ax.periodic) - x_from;
    }
    __device__ void fetch_pairs(const char *plane, const unsigned (&row)[ROWS], unsigned mask, int odd, T *slot) const
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (bit(mask, odd, PGI_BOTH, r))
                pgi_copy_async<sizeof(T2), (P::SWEEPS > 1)>(
                    slot + r * PITCH, (const void *)((size_t)(plane + row[r]) & ~(size_t)(sizeof(T2) - 1)));
    }
    __device__ void fetch_singles(const char *plane, const unsigned (&row)[ROWS], unsigned mask, int odd, T *slot,
                                  unsigned even, const int (&skews)[2]) const
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const bool along = pgi_skew(even, skews, r, odd);
            const T *const from = (const T *)(plane + row[r]);
            if (bit(mask, odd, PGI_LOWER, r))
                pgi_copy_async<sizeof(T), 0>(slot + r * PITCH, from + (along ? beside[1] : 0));
            if (bit(mask, odd, PGI_UPPER, r))
                pgi_copy_async<sizeof(T), 0>(slot + r * PITCH + 1, from + (along ? 0 : beside[0]));
        }
    }
    // To plane z, or from the plane before it; 0: there is none.
    __device__ bool advance(const char *&plane, const char *base, int64_t sk, int z, bool inside) const
    {
        const pgi_axis<T> &az = t.a.b.axis[2];
        const int at = inside ? 0 : pgi_wrap(z, az.n, az.periodic);
        if (inside)
            plane += sk * (int64_t)sizeof(T);
        else if (at >= 0)
            plane = base + at * sk * (int64_t)sizeof(T);
        return at >= 0;
    }
    // Planes z + 1 of u and z of f, which is odd or not
    __device__ void fetch(int z, unsigned in_u, unsigned in_f, int odd, T *u_slot, T *f_slot, bool inside)
    {
        const pgi_pass<T> &a = t.a;
        bool u_there = false;
        if (!FROM_ZERO) {
            u_there = advance(u_plane, u_base, a.u.sk, z + 1, inside);
            if (u_there)
                fetch_pairs(u_plane, u_row, in_u, 1 - odd, u_slot);
            else
#pragma unroll 1
                for (int r = 0; r < ROWS; r++) u_slot[r * PITCH] = u_slot[r * PITCH + 1] = 0;
        }
        const bool f_there = advance(f_plane, f_base, a.rhs.f.sk, z, inside);
        if (f_there) fetch_pairs(f_plane, f_row, in_f, odd, f_slot);
        if (((in_u >> 3 * ROWS * (1 - odd)) | (in_f >> 3 * ROWS * odd)) & pgi_singles(ROWS)) {
            if (u_there) fetch_singles(u_plane, u_row, in_u, 1 - odd, u_slot, u_skew, a.u_odd);
            if (f_there) fetch_singles(f_plane, f_row, in_f, odd, f_slot, f_skew, a.f_odd);
        }
    }
    __device__ void gather() const    // what a lane reads may have been copied by the one beside it
    {
        if (P::FLAT || t.a.skewed) __syncwarp();
    }
    // A plane of u that has come
    __device__ void take(const T *incoming, int odd, T (&u)[ROWS][2]) const
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            T2 v;
            v.x = v.y = 0;
            if (!FROM_ZERO && t.a.skewed) {
                const T *const from =
                    (const T *)((const char *)(incoming + r * PITCH) + pgi_skew(u_skew, t.a.u_odd, r, odd));
                v.x = from[0], v.y = from[1];
            } else if (!FROM_ZERO) {
                v = *(const T2 *)(incoming + r * PITCH);
            }
            u[r][0] = v.x;
            u[r][1] = v.y;
        }
    }
    // Makes plane z of f the right-hand side, where its mean or boundary data make a difference.
    __device__ void complete(T *slot, int z_step, int odd, bool with_faces) const
    {
        const int z = pgi_wrap(z_step, t.a.b.axis[2].n, t.a.b.axis[2].periodic);
#pragma unroll 1
        for (int r = 0; r < ROWS && z >= 0; r++) {
            T *const f = (T *)((char *)(slot + r * PITCH) + pgi_skew(f_skew, t.a.f_odd, r, odd));
            const int j = t.y_index(r);
            f[0] -= mean, f[1] -= mean;
            if (with_faces && j >= 0 && t.x_at[0] >= 0)
                f[0] = pgi_rhs_point(t.a.b, t.a.rhs, f[0], (T)0, t.x_at[0], j, z);
            if (with_faces && j >= 0 && t.x_at[1] >= 0)
                f[1] = pgi_rhs_point(t.a.b, t.a.rhs, f[1], (T)0, t.x_at[1], j, z);
        }
    }
};

// The coarse planes that fine ones are corrected from. They come raw, and are interpolated along x and y when they are
// needed for the first time.
template <class P> struct pgi_pass_correction {
    typedef typename P::T T;
    typedef typename P::T2 T2;
    enum { ROWS = P::ROWS, TEAM = P::TEAM, E_SLOTS = P::E_SLOTS, PREFETCH = P::PREFETCH, FLAT = P::FLAT };
    const pgi_pass_tile<P> &t;
    pgi_pair<T> *const x_pairs, *const y_pairs;    // as places in a coarse plane of the tile, weights 0 outside
    pgi_level_pair<T> *const z_pairs;
    T *const planes;      // raw coarse planes, [E_SLOTS][slots]
    T *const even_odd;    // of a regular tile: [x, y][even, odd][3]
    const int slots;
    T2 *const lines;    // interpolated along x and y, [2][ROWS][TEAM]
    int origin[2], at[PREFETCH];
    const T *base;
    bool regular;
    int above, step, used, asked, coming;    // of lines the upper one; pairs and slots of the newest planes

    __device__ pgi_pass_correction(const pgi_pass_tile<P> &tile, char *shared)
        : t(tile), x_pairs((pgi_pair<T> *)(shared + t.a.coarse_rows)), y_pairs(x_pairs + 64),
          z_pairs((pgi_level_pair<T> *)(shared + t.a.coarse_planes)), planes((T *)(shared + t.a.corrections)),
          even_odd((T *)(shared + t.a.regular)), slots(t.a.slots[0] * t.a.slots[1]),
          lines((T2 *)(planes + (E_SLOTS * slots + 1) / 2 * 2) + t.thread), regular(false), above(1), step(0), used(1),
          asked(0), coming(1)
    {
    }
    __device__ pgi_pair<T> place(int d, int i) const
    {
        const pgi_transfer<T> &tr = t.a.transfer.axis[d];
        pgi_pair<T> p = {0, 0, 0, 0};
        if (i < 0) return p;
        p = pgi_prolongation(tr, i);
        p.j0 -= origin[d], p.j1 -= origin[d];
        if (p.j0 < 0) p.j0 += tr.nc;
        if (p.j1 < 0) p.j1 += tr.nc;
        if (d == 1) p.j0 *= t.a.slots[0], p.j1 *= t.a.slots[0];
        return p;
    }
    __device__ void find()
    {
        const pgi_pass<T> &a = t.a;
        const pgi_axis<T> &ax = a.b.axis[0], &ay = a.b.axis[1];
        for (int d = 0; d < 2; d++) {
            const pgi_transfer<T> &tr = a.transfer.axis[d];
            const int64_t from = (int64_t)(d ? t.y_tile : t.x_tile) * tr.nc;
            origin[d] = (int)((from - (from < 0 ? tr.nf - 1 : 0)) / tr.nf) - 2;
            if (origin[d] < 0) origin[d] = tr.periodic ? (origin[d] + tr.nc) % tr.nc : 0;
        }
        for (int q = t.thread; q < ROWS * P::WARPS; q += TEAM)
            y_pairs[q] = place(1, FLAT ? 0 : pgi_wrap(t.y_tile + q, ay.n, ay.periodic));
        for (int q = t.thread; q <= t.end + 1 - t.z_table; q += TEAM)
            z_pairs[q] = pgi_level_pair_of(a.transfer.axis[2], t.z_table + q, a.b.axis[2].n);
        for (int q = t.thread; q < 64; q += TEAM) x_pairs[q] = place(0, pgi_wrap(t.x_tile + q, ax.n, ax.periodic));
        for (int q = t.thread; q < E_SLOTS * slots; q += TEAM) planes[q] = 0;
    }
    __device__ int offset(int slot) const
    {
        int i = origin[0] + slot % t.a.slots[0], j = origin[1] + slot / t.a.slots[0];
        const pgi_transfer<T> &tx = t.a.transfer.axis[0], &ty = t.a.transfer.axis[1];
        if (i >= tx.nc) i = tx.periodic && i - tx.nc < tx.nc ? i - tx.nc : -1;
        if (j >= ty.nc) j = ty.periodic && j - ty.nc < ty.nc ? j - ty.nc : -1;
        return i < 0 || j < 0 ? -1 : (int)(i + j * t.a.e.sj);
    }
    __device__ void find_offsets()
    {
        base = pgi_data<T>(t.a.e);
#pragma unroll
        for (int q = 0; q < PREFETCH; q++) at[q] = t.thread + q * TEAM < slots ? offset(t.thread + q * TEAM) : -1;
    }
    __device__ void fetch(int plane, int slot) const
    {
        const T *const from = base + (int64_t)plane * t.a.e.sk;
        T *const to = planes + slot * slots + t.thread;
#pragma unroll
        for (int q = 0; q < PREFETCH; q++)
            if (at[q] >= 0) pgi_copy_async<sizeof(T), 0>(to + q * TEAM, from + at[q]);
        for (int q = PREFETCH; t.thread + q * TEAM < slots; q++) {    // few axes coarsened
            const int more = offset(t.thread + q * TEAM);
            if (more >= 0) pgi_copy_async<sizeof(T), 0>(to + q * TEAM, from + more);
        }
    }
    // Asks for the plane above fine plane z.
    __device__ void ask(int z)
    {
        if (z > t.end + 1 || z_pairs[z - t.z_table].step == asked) return;
        asked = z_pairs[z - t.z_table].step;
        coming = coming < E_SLOTS - 1 ? coming + 1 : 0;
        fetch(z_pairs[z - t.z_table].above, coming);
    }
    static __device__ bool three(const pgi_pair<T> *pairs, int first, int pitch, T *weight)
    {
        bool fits = true;
#pragma unroll
        for (int q = 0; q < 2; q++) {
            const pgi_pair<T> p = pairs[q];
#pragma unroll
            for (int m = 0; m < 3; m++)
                weight[3 * q + m] =
                    (p.j0 == first + m * pitch ? p.w0 : (T)0) + (p.j1 == first + m * pitch ? p.w1 : (T)0);
            fits = fits && weight[3 * q] + weight[3 * q + 1] + weight[3 * q + 2] == p.w0 + p.w1 && p.w0 + p.w1 != 0;
        }
        return fits;
    }
    // Where each coarse cell has two fine ones side by side, weights repeat: pairs of columns and of rows are
    // interpolated from three coarse points along an axis, whose values and weights are read once.
    __device__ bool find_regular() const
    {
        const int pair = t.thread < ROWS * P::WARPS / 2 ? t.thread : 0;
        T mine[6], model[6];
        bool alike = three(x_pairs + 2 * t.lane, x_pairs[0].j0 + t.lane, 1, mine);
        three(x_pairs, x_pairs[0].j0, 1, model);
        for (int q = 0; q < 6; q++) {
            alike = alike && mine[q] == model[q];
            if (t.thread == 0) even_odd[q] = model[q];
        }
        alike = three(y_pairs + 2 * pair, y_pairs[0].j0 + pair * t.a.slots[0], t.a.slots[0], mine) && alike;
        three(y_pairs, y_pairs[0].j0, t.a.slots[0], model);
        for (int q = 0; q < 6; q++) {
            alike = alike && mine[q] == model[q];
            if (t.thread == 0) even_odd[6 + q] = model[q];
        }
        return __syncthreads_and(alike) != 0;
    }
    __device__ void begin()
    {
        t.sync();
        if (!FLAT) regular = find_regular();
        const pgi_level_pair<T> first = z_pairs[t.begin + 1 - t.z_table];
        step = asked = first.step;
        fetch(first.below, 0);
        fetch(first.above, 1);
        ask(t.begin + 2);
        pgi_copy_commit();
        pgi_copy_wait<0>();
    }
    __device__ void interpolate_regular(const T *from, T2 *line) const
    {
        T2 v[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) v[r].x = v[r].y = 0;
#pragma unroll
        for (int m = 0; m < ROWS / 2 + 2; m++) {
            const T *const row = from + m * t.a.slots[0];
            const T low = row[0], middle = row[1], high = row[2];
            const T even = even_odd[0] * low + even_odd[1] * middle + even_odd[2] * high,
                    odd = even_odd[3] * low + even_odd[4] * middle + even_odd[5] * high;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const int k = m - r / 2;
                if (k < 0 || k > 2) continue;
                v[r].x += even_odd[6 + 3 * (r & 1) + k] * even;
                v[r].y += even_odd[6 + 3 * (r & 1) + k] * odd;
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) line[r * TEAM] = v[r];
    }
    __device__ void interpolate(int slot, T2 *line) const
    {
        const T *const e = planes + slot * slots;
        if (!FLAT && regular) {
            interpolate_regular(e + x_pairs[0].j0 + t.lane + y_pairs[t.warp * ROWS].j0, line);
            return;
        }
        const pgi_pair<T> left = x_pairs[2 * t.lane], right = x_pairs[2 * t.lane + 1];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const pgi_pair<T> p = y_pairs[t.warp * ROWS + r];
            const T *const low = e + p.j0, *const high = e + p.j1;
            T2 v;
            v.x = p.w0 * (left.w0 * low[left.j0] + left.w1 * low[left.j1]) +
                  p.w1 * (left.w0 * high[left.j0] + left.w1 * high[left.j1]);
            v.y = p.w0 * (right.w0 * low[right.j0] + right.w1 * low[right.j1]) +
                  p.w1 * (right.w0 * high[right.j0] + right.w1 * high[right.j1]);
            line[r * TEAM] = v;
        }
    }
    __device__ void add(int z, T (&u)[ROWS][2])
    {
        const pgi_level_pair<T> p = z_pairs[z - t.z_table];
        if (p.step != step) {
            step = p.step;
            used = used < E_SLOTS - 1 ? used + 1 : 0;
            above = 1 - above;
            interpolate(used, lines + above * ROWS * TEAM);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const T2 low = lines[((1 - above) * ROWS + r) * TEAM], high = lines[(above * ROWS + r) * TEAM];
            u[r][0] += p.w0 * low.x + p.w1 * high.x;
            u[r][1] += p.w0 * low.y + p.w1 * high.y;
        }
    }
};

// The exchange of edges: those of a warp go to the edge buffers of the warps beside it, in this block or the next of
// the cluster. Buffers of two steps take turns, and so do their split-phase barriers.
template <class P> struct pgi_pass_exchange {
    typedef typename P::T T;
    enum { FLAT = P::FLAT, SIDE = P::SIDE, BOX = P::BOX, STAGES = P::STAGES, RESTRICTS = P::RESTRICTS };
    T *const edges;    // [2][STAGES][2][WARPS + 1][32]
    uint64_t *const barrier;
    bool low_remote, high_remote;    // the warp beside it is in another block
    unsigned senders;                // blocks that send to this one
    uint64_t far_edges, far_barrier;
    T low, high;    // what the warps beside have sent

    __device__ pgi_pass_exchange(const pgi_pass_tile<P> &t, char *shared)
        : edges((T *)(shared + t.a.edges) + t.thread), barrier((uint64_t *)(shared + t.a.barriers)), far_edges(0),
          far_barrier(0), low(0), high(0)
    {
        for (int q = 0; !FLAT && t.thread + q < 2 * BOX + SIDE; q += P::TEAM) edges[q] = 0;
        if (!FLAT && t.thread == 0) pgi_barriers_open(barrier, P::WARPS);
    }
    __device__ void find(const pgi_pass_tile<P> &t)
    {
        low_remote = !FLAT && t.warp == 0 && t.rank > 0;
        high_remote = !FLAT && t.warp == P::WARPS - 1 && t.rank < t.a.cluster - 1;
        senders = FLAT || t.warp > 0 ? 0 : (t.rank > 0) + (t.rank < t.a.cluster - 1);
        const int beyond = low_remote ? t.rank - 1 : t.rank + 1;
        if (low_remote || high_remote) {
            far_edges = pgi_address_in(low_remote ? edges + SIDE + P::TEAM : edges + 32 - P::TEAM, beyond);
            far_barrier = pgi_address_in(barrier, beyond);
        }
    }
    // The edges of the plane that half-sweep p works on in the next step, which is number `next` of two
    __device__ void send(int p, int next, T low_edge, T high_edge) const
    {
        if (FLAT) return;
        const int at = next * BOX + 2 * p * SIDE;
        edges[at + SIDE] = low_edge;
        edges[at + 32] = high_edge;
        if (low_remote || high_remote)
            pgi_send(far_edges + at * sizeof(T), far_barrier + next * sizeof *barrier,
                     low_remote ? low_edge : high_edge);
    }
    // Before anything is sent that lets others go on, what they may overwrite is read.
    __device__ void receive(int p, int now)
    {
        if (FLAT) return;
        low = edges[now * BOX + 2 * p * SIDE];
        high = edges[now * BOX + (2 * p + 1) * SIDE + 32];
    }
    __device__ void send_third(int next, T v) const    // what a warp adds to the coarse row of the one before it
    {
        edges[2 * BOX] = v;
        if (low_remote) pgi_send(far_edges + (2 * BOX - SIDE) * sizeof(T), far_barrier + next * sizeof *barrier, v);
    }
    __device__ T third() const { return edges[2 * BOX + 32]; }
    __device__ void wait(int now, int parity) const
    {
        if (FLAT)
            __syncwarp();
        else
            pgi_wait(barrier + now, parity);
    }
};

// The restriction of what is left of the residual: sums of two coarse planes along z, of which the second one is the
// one that an even fine plane is the first of. Windows of three fine points, of which the last may weigh nothing, begin
// at even ones: a third row is the next warp's, which sends what it adds.
template <class P> struct pgi_pass_restriction {
    typedef typename P::T T;
    enum { ROWS = P::ROWS, FLAT = P::FLAT, RESTRICTS = P::RESTRICTS, CONTRIBUTIONS = P::CONTRIBUTIONS };
    const pgi_pass_tile<P> &t;
    T closing[CONTRIBUTIONS], opening[CONTRIBUTIONS];
    int coarse_at;

    __device__ pgi_pass_restriction(const pgi_pass_tile<P> &tile, unsigned rows) : t(tile)
    {
#pragma unroll
        for (int q = 0; q < CONTRIBUTIONS; q++) closing[q] = opening[q] = 0;
        coarse_at = rows ? (int)((t.y / 2 * t.a.coarse_f.sj + t.x / 2) * (int64_t)sizeof(T)) : 0;
    }
    // The thread's coarse rows that are its tile's, as bits
    static __device__ unsigned rows_of(const pgi_pass_tile<P> &t)
    {
        unsigned rows = 0;
        for (int q = 0; RESTRICTS && q < (ROWS + 1) / 2; q++)
            if (t.x >= t.x_own[0] && t.x < t.x_own[1] && t.x / 2 < t.a.coarse[0] && t.y + 2 * q >= t.y_own[0] &&
                t.y + 2 * q < t.y_own[1] && (FLAT || t.y / 2 + q < t.a.coarse[1]))
                rows |= 1u << q;
        return rows;
    }
    // What row r of a plane, column c, contributes
    __device__ void contribute(T (&part)[CONTRIBUTIONS], int r, int c, T v) const
    {
        T line = t.a.tap[0][c] * v;
        if (RESTRICTS && c == 0) line += t.a.tap[0][2] * __shfl_down_sync(0xffffffffu, v, 1);
        part[FLAT ? 0 : r / 2 + 1] += FLAT ? line : t.a.tap[1][r & 1] * line;
        if (RESTRICTS && !FLAT && r % 2 == 0) part[r / 2] += t.a.tap[1][2] * line;
    }
    // The second colour's plane is even in the first step of two, the first one's is odd.
    __device__ void add_plane(const T (&part)[CONTRIBUTIONS], int last_half, int second)
    {
#pragma unroll
        for (int q = 0; q < CONTRIBUTIONS; q++) {
            const bool even = last_half != second;
            opening[q] += (last_half || second ? t.a.tap[2][even ? 0 : 1] : (T)0) * part[q];
            if (!last_half && !second) closing[q] += t.a.tap[2][1] * part[q];
            if (even) closing[q] += t.a.tap[2][2] * part[q];
        }
    }
    __device__ void next_plane()
    {
#pragma unroll
        for (int q = 0; q < CONTRIBUTIONS; q++) closing[q] = opening[q], opening[q] = 0;
    }
    // Stores the coarse plane that is complete, if fine plane `first` of it is the tile's.
    __device__ void store(int first, unsigned rows, const pgi_pass_exchange<P> &exchange)
    {
        if (first < t.k0 || first >= t.k1 || first / 2 >= t.a.coarse[2]) return;
        if (RESTRICTS && !FLAT) closing[CONTRIBUTIONS - 1] += exchange.third();
        char *const to = (char *)((T *)t.a.coarse_f.base + (int64_t)(first / 2) * t.a.coarse_f.sk) + coarse_at;
#pragma unroll
        for (int q = 0; q < (ROWS + 1) / 2; q++)
            if (rows >> q & 1) *(T *)(to + q * t.a.coarse_f.sj * (int64_t)sizeof(T)) = closing[FLAT ? 0 : q + 1];
    }
};

// The march of a tile: half-sweep p of a wavefront works on plane t - p in step t.
template <class P, int NORM> struct pgi_pass_march {
    typedef typename P::T T;
    typedef typename P::T2 T2;
    enum {
        ROWS = P::ROWS,
        FLAT = P::FLAT,
        HALVES = P::HALVES,
        STAGES = P::STAGES,
        RESTRICTS = P::RESTRICTS,
        AHEAD = P::AHEAD,
        QUEUE = P::QUEUE,
        PLANE = P::PLANE,
        CORRECTED = P::CORRECTED
    };
    const pgi_pass_tile<P> &tile;
    const pgi_pass_operator<P> &op;
    pgi_pass_stream<P> &stream;
    pgi_pass_correction<P> &correction;
    pgi_pass_exchange<P> &exchange;
    pgi_pass_restriction<P> &restriction;
    pgi_norm_sum<T, ROWS> &norm;
    T ring[P::RING + 1][ROWS]
          [2];    // plane t + 1 - q in ring[q + 1] in the first step of two, in ring[q] in the second
    char *out_plane;
    int out_pitch;
    unsigned out_mask;
    int coming, queue;    // where plane t + 1 of u is in its slots, and plane t of f

    __device__ pgi_pass_march(const pgi_pass_tile<P> &t, const pgi_pass_operator<P> &o, pgi_pass_stream<P> &s,
                              pgi_pass_correction<P> &c, pgi_pass_exchange<P> &e, pgi_pass_restriction<P> &r,
                              pgi_norm_sum<T, ROWS> &n, unsigned mask)
        : tile(t), op(o), stream(s), correction(c), exchange(e), restriction(r), norm(n), out_mask(mask), coming(0),
          queue(0)
    {
        const pgi_grid &out = tile.a.out;
#pragma unroll
        for (int q = 0; q <= P::RING; q++)
#pragma unroll
            for (int row = 0; row < ROWS; row++) ring[q][row][0] = ring[q][row][1] = 0;
        out_plane = (char *)(pgi_data<T>(out) + (int64_t)tile.k0 * out.sk + (int64_t)tile.y * out.sj + tile.x);
        out_pitch = (int)(out.sj * (int64_t)sizeof(T));
    }
    // How the thread's share of a plane is stored; and above, what else a mask holds, see PGI_LEADER
    static __device__ unsigned out_mask_of(const pgi_pass_tile<P> &t, unsigned senders, unsigned restricted)
    {
        const pgi_pass<T> &a = t.a;
        const pgi_patch own = {{t.x, t.y}, {t.x_own[0], t.y_own[0]}, {t.x_own[1], t.y_own[1]}, {0, 0}, t.x_tile, ROWS,
                               a.first};
        const bool leader = t.lane == 0;
        return pgi_afresh(pgi_moves_of<T>(own, pgi_data<T>(a.out), a.out.sj, a.out.sk, 0) |
                          (leader ? 1u << PGI_LEADER | senders << PGI_SENDERS : 0u) |
                          (leader && senders && t.rank < a.cluster - 1 ? 1u << PGI_THIRD : 0u) |
                          restricted << PGI_RESTRICTED);
    }
    __device__ T *slot_of(int p) const    // of plane t - p of f
    {
        const int at = queue - p * PLANE;
        return stream.f_slots + (at < 0 ? at + QUEUE * PLANE : at);
    }
    template <int SECOND> __device__ void send(int p) const
    {
        constexpr int AT = 1 - SECOND, COLOUR = 1 - SECOND;
        exchange.send(p, AT, ring[AT + p][0][COLOUR], ring[AT + p][ROWS - 1][1 - COLOUR]);
    }
    // Plane t + 1 of u and plane t of f come in, and those AHEAD of them are asked for.
    template <int SECOND, int CAREFUL> __device__ void take(int t)
    {
        constexpr int AT = 1 - SECOND, COLOUR = 1 - SECOND;
        const unsigned in_u = pgi_afresh(stream.u_mask), in_f = pgi_afresh(stream.f_mask);
        pgi_copy_wait<AHEAD - 1>();
        stream.gather();
        T *const incoming = stream.u_slots + coming;
        stream.take(incoming, 1 - COLOUR, ring[AT]);
        stream.gather();
        if (CORRECTED) correction.add(t + 1, ring[AT]);
        if (CORRECTED) correction.ask(t + 3 + AHEAD);
        stream.fetch(t + AHEAD, in_u, in_f, (COLOUR + AHEAD) & 1, incoming, slot_of(STAGES), !CAREFUL);
        pgi_copy_commit();
        if (in_f >> PGI_TOUCHED > (CAREFUL ? 0 : 1))
            stream.complete(slot_of(0), t, COLOUR, in_f >> PGI_TOUCHED & (CAREFUL ? 3 : 2));
    }
    // Half-sweep p, or (p = HALVES) the residual of the first colour, in plane z = t - p
    template <int SECOND, int CAREFUL> __device__ void stage(int p, int z)
    {
        constexpr int AT = 1 - SECOND, COLOUR = 1 - SECOND;    // of row 0: the column that is relaxed now
        const int here = AT + p + 1;
        const pgi_coupling<T> zc = CAREFUL ? op.z_rows[z - tile.z_table] : op.inner;
        const bool special = CAREFUL && (zc.lower != op.inner.lower || zc.upper != op.inner.upper);
        const char *const f_plane = (const char *)slot_of(p);
        T fresh[ROWS], left[ROWS][2];    // left: of the residual
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int c = (r + COLOUR) & 1;
            const pgi_coupling<T> yc = op.along_y(r);
            const T u = ring[here][r][c], side = ring[here][r][1 - c];
            const T far = c ? __shfl_down_sync(0xffffffffu, side, 1) : __shfl_up_sync(0xffffffffu, side, 1);
            const T ym = r > 0 ? ring[here][r > 0 ? r - 1 : 0][c] : exchange.low;
            const T yp = r < ROWS - 1 ? ring[here][r < ROWS - 1 ? r + 1 : 0][c] : exchange.high;
            const T right = *(const T *)(f_plane + pgi_skew(stream.f_skew, tile.a.f_odd, r, (COLOUR + p) & 1) +
                                         (r * P::PITCH + c) * (int)sizeof(T));
            const T residual = right - pgi_stencil(op.xc[c], yc, zc, op.reaction[c], u, c ? side : far, c ? far : side,
                                                   ym, yp, ring[here + 1][r][c], ring[here - 1][r][c]);
            left[r][0] = left[r][1] = 0;
            if (p == HALVES) {
                left[r][c] = residual;
                continue;
            }
            T w = op.weight_of(r, c);
            if (special && w != 0) w = op.omega * pgi_reciprocal(op.diagonal(c, yc, zc));
            if (P::SWEEPS == 1 && p == 1) w *= tile.a.second;
            fresh[r] = u + residual * w;
            if (RESTRICTS) left[r][c] = residual - op.diagonal(c, yc, zc) * (fresh[r] - u);
        }
#pragma unroll
        for (int r = 0; r < ROWS && p < HALVES; r++) ring[here][r][(r + COLOUR) & 1] = fresh[r];
        // Of the second colour when it is relaxed, of the first one when its neighbours have their last values
        if (RESTRICTS && p >= HALVES - 1) add_residual<SECOND>(left, p, z);
    }
    template <int SECOND> __device__ void add_residual(const T (&left)[ROWS][2], int p, int z)
    {
        T part[P::CONTRIBUTIONS];
#pragma unroll
        for (int q = 0; q < P::CONTRIBUTIONS; q++) part[q] = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int c = (r + 1 - SECOND) & 1;
            restriction.contribute(part, r, c, left[r][c]);
        }
        if (NORM && z >= tile.k0 && z < tile.k1)
            norm.add(
                tile.a.b, z, left, [&](int e) { return tile.x_at[e & 1]; }, [&](int e) { return tile.y_index(e / 2); });
        restriction.add_plane(part, p == HALVES - 1, SECOND);
    }
    // Plane z, which has its last values
    template <int SECOND> __device__ void store(int z, unsigned out)
    {
        constexpr int AT = 1 - SECOND, COLOUR = 1 - SECOND, PARITY = (COLOUR + HALVES - 1) & 1;
        const int here = AT + HALVES;
        if (z < tile.k0 || z >= tile.k1) return;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            T2 v;
            v.x = ring[here][r][0], v.y = ring[here][r][1];
            if (stream.bit(out, PARITY, PGI_BOTH, r)) *(T2 *)(out_plane + (int64_t)r * out_pitch) = v;
        }
        if (out >> 3 * ROWS * PARITY & pgi_singles(ROWS))
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                T *const to = (T *)(out_plane + (int64_t)r * out_pitch);
                if (stream.bit(out, PARITY, PGI_LOWER, r)) to[0] = ring[here][r][0];
                if (stream.bit(out, PARITY, PGI_UPPER, r)) to[1] = ring[here][r][1];
            }
        out_plane += tile.a.out.sk * (int64_t)sizeof(T);
    }
    // Step t. SECOND: of two. CAREFUL: some plane is outside, or its row is not that of the inside.
    template <int SECOND, int CAREFUL> __device__ void step(int t)
    {
        constexpr int AT = 1 - SECOND;
        const pgi_axis<T> &az = tile.a.b.axis[2];
        const unsigned out = pgi_afresh(out_mask);
        take<SECOND, CAREFUL>(t);
        // From here on others' memory
        exchange.wait(SECOND, (t - tile.begin) >> 1 & 1);
        if (RESTRICTS && !SECOND) {
            restriction.store(t - STAGES - 2, out >> PGI_RESTRICTED, exchange);
            restriction.next_plane();
        }
        exchange.receive(0, SECOND);
        send<SECOND>(0);
#pragma unroll
        for (int p = 0; p < STAGES; p++) {
            const int z = t - p;
            if (!CAREFUL || az.periodic || (z >= 0 && z < az.n)) stage<SECOND, CAREFUL>(p, z);
            if (p + 1 < STAGES) {
                exchange.receive(p + 1, SECOND);
                send<SECOND>(p + 1);
            }
        }
        if (RESTRICTS && SECOND && !FLAT) exchange.send_third(AT, restriction.closing[0]);
        if (!FLAT)
            pgi_arrive(exchange.barrier + AT, out >> PGI_LEADER & 1,
                       ((int)(out >> PGI_SENDERS & 3) * (int)STAGES +
                        (RESTRICTS && SECOND ? (int)(out >> PGI_THIRD & 1) : 0)) *
                           (int)(32 * sizeof(T)));
        store<SECOND>(t - (HALVES - 1), out);
        coming = coming + PLANE < AHEAD * PLANE ? coming + PLANE : 0;
        queue = queue + PLANE < QUEUE * PLANE ? queue + PLANE : 0;
    }
    __device__ void run()
    {
        const pgi_axis<T> &az = tile.a.b.axis[2];
        const int inside_from = STAGES + 1,
                  inside_to = az.table ? 0 : az.n - 3 - AHEAD;    // the second step fetches beyond
        for (int t = tile.begin; t <= (int)pgi_afresh((unsigned)tile.k1) - 2 + HALVES + P::TAIL; t += 2) {
            // Planes t - STAGES to t + 1 take part
            if (t >= inside_from && t <= inside_to && t < tile.end && t > tile.begin) {
                step<0, 0>(t);
                step<1, 0>(t + 1);
            } else {
                step<0, 1>(t);
                if (t < tile.end) step<1, 1>(t + 1);
            }
#pragma unroll
            for (int q = P::RING; q >= 2; q--)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int c = 0; c < 2; c++) ring[q][r][c] = ring[q - 2][r][c];
        }
    }
};

// Computes u = SWEEPS red-black sweeps from u, 0 or u + P e; with RESTRICTS, f = R (rhs - A u) on the coarse level too,
// and (NORM) its norm. Moves 3 words a point (2 from 0), 1/8 more for a correction or a restriction. FLAT: ny = 1, a
// warp is a team of its own. Nothing overlaps. What is left of the residual of the colour that comes last is known as
// soon as it is relaxed; of the other one it takes a further stage of the wavefront.
template <class T, int SWEEPS, int HEAD, int FLAT, int RESTRICTS, int NORM>
static __global__ void __launch_bounds__(pgi_tuned<T, SWEEPS>::THREADS, pgi_tuned<T, SWEEPS>::BLOCKS)
    pgi_pass_kernel(const pgi_pass<T> a)
{
    PGI_UNLESS_DONE(a.b.state);
    typedef pgi_pass_traits<T, SWEEPS, HEAD, FLAT, RESTRICTS> P;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    if (RESTRICTS) return;    // never launched, see pgi_pass_restricts
#endif
    PGI_DYNAMIC_SHARED(char, pgi_shared);
    // By a shuffle, so that the compiler sees that a warp agrees on it
    const int line = __shfl_sync(0xffffffffu, (int)threadIdx.y, 0);
    char *const shared = pgi_shared + (FLAT ? line * a.bytes : 0);
    const int64_t number = FLAT ? (int64_t)blockIdx.x * blockDim.y + line : (int64_t)blockIdx.x / a.cluster;
    // A warp without a tile; where the block adds up a norm it marches along, and owns nothing.
    const bool idle = FLAT && number >= (int64_t)a.tiles[0] * a.tiles[1] * a.tiles[2];
    if (idle && !NORM) return;
    const pgi_pass_tile<P> tile(a, FLAT ? 0 : line, FLAT ? 0 : (int)blockIdx.x % a.cluster, idle ? 0 : number, idle);

    pgi_pass_operator<P> op(tile, shared);
    pgi_pass_stream<P> stream(tile, shared);
    pgi_pass_exchange<P> exchange(tile, shared);
    pgi_pass_correction<P> correction(tile, shared);
    if (HEAD == PGI_CORRECTED) correction.find();
    op.find(tile);
    stream.find();
    if (HEAD == PGI_CORRECTED) correction.find_offsets();
    if (HEAD == PGI_CORRECTED) correction.begin();
    stream.gather();
    for (int q = 0; q < P::AHEAD; q++) {
        if (HEAD == PGI_CORRECTED) correction.ask(tile.begin + 3 + q);
        stream.fetch(tile.begin + q, stream.u_mask, stream.f_mask, (1 + q) & 1, stream.u_slots + q * P::PLANE,
                     stream.f_slots + q * P::PLANE, false);
        pgi_copy_commit();
    }
    if (FLAT)
        __syncwarp();
    else
        pgi_cluster_sync();
    if (HEAD == PGI_CORRECTED) {
        correction.interpolate(0, correction.lines);
        correction.interpolate(1, correction.lines + P::ROWS * P::TEAM);
    }
    exchange.find(tile);
    unsigned mine = 0;
    for (int e = 0; NORM && e < 2 * P::ROWS; e++) {
        const int i = tile.x + (e & 1), j = tile.y + e / 2;
        if (i >= tile.x_own[0] && i < tile.x_own[1] && j >= tile.y_own[0] && j < tile.y_own[1]) mine |= 1u << e;
    }
    const unsigned restricted = pgi_pass_restriction<P>::rows_of(tile);
    pgi_pass_restriction<P> restriction(tile, restricted);
    pgi_norm_sum<T, P::ROWS> norm(
        a.b, mine, [&](int e) { return tile.x_at[e & 1]; }, [&](int e) { return tile.y_index(e / 2); }, 0, NORM);
    pgi_pass_march<P, NORM> march(tile, op, stream, correction, exchange, restriction, norm,
                                  pgi_pass_march<P, NORM>::out_mask_of(tile, exchange.senders, restricted));
    if (!FLAT) pgi_arrive(exchange.barrier, tile.lane == 0, 0);
    march.run();
    const int steps = tile.end + 1 - tile.begin;
    if (!FLAT) pgi_wait(exchange.barrier + (steps & 1), steps >> 1 & 1);    // none leaves before it has received all
    if (RESTRICTS && steps % 2 == 0)
        restriction.store(tile.end - P::STAGES - 1, march.out_mask >> PGI_RESTRICTED, exchange);
    if (NORM) pgi_finish_norm(norm.sum, a.partials, a.state);
}

// ---- passes of Jacobi ----

// Sweeps that a pass makes at most; threads of a block at most, blocks that a multiprocessor must be able to hold, rows
// of a thread: f64, f32, and (FLAT) 2D. Measured on an H200, floors a sweep with 2, 3, 4 sweeps a pass (3D: one run,
// the best of four entries for each): 512^3 f64 0.83, 0.84, 0.95; f32 1.03, 1.30, 1.11; 4096^2 f64 0.83, 0.69, 0.70;
// f32 1.03, 0.92, 0.72.
enum { PGI_JACOBI_MOST = 2, PGI_JACOBI_MOST_FLAT = 4 };
#ifndef PGI_JACOBI_TUNE
#define PGI_JACOBI_TUNE                                                                                                \
    {256, 1, 5}, {512, 1, 4}, { 256, 3, 1 }
#endif
static constexpr int pgi_jacobi_tuning[3][3] = {PGI_JACOBI_TUNE};
template <class T, int SWEEPS, int FLAT> struct pgi_jacobi_tuned {
    enum {
        ENTRY = FLAT ? 2 : sizeof(T) == 4,
        THREADS = pgi_jacobi_tuning[ENTRY][0],
        BLOCKS = pgi_jacobi_tuning[ENTRY][1],
        ROWS = pgi_jacobi_tuning[ENTRY][2],
        COLUMNS = 2,                                         // of a lane: what one copy brings
        WIDE = 32 * COLUMNS,                                 // of a warp
        AHEAD = FLAT ? 2 : 1,                                // planes to come
        QUEUE = SWEEPS + AHEAD,                              // and with them those of f that are still needed
        LOW = (SWEEPS + COLUMNS - 1) / COLUMNS * COLUMNS,    // halo left of a tile, and with it what
        OWN = (WIDE - 2 * SWEEPS) / COLUMNS * COLUMNS,       // a tile has of its own begins as copies do
        // that a warp keeps
        VECTORS = 32 * (ROWS * (AHEAD + QUEUE) + (FLAT ? 0 : 4 * SWEEPS + ROWS)) + (FLAT ? 0 : 2 * ROWS),
        BYTES = VECTORS * COLUMNS * (int)sizeof(T)
    };
};

// What a lane has of a row.
template <class T> struct __align__(2 * sizeof(T)) pgi_lane { T v[2]; };

template <class T> struct pgi_jacobi_pass {
    pgi_box<T> b;
    pgi_grid u, out;
    pgi_rhs rhs;
    T omega[PGI_JACOBI_MOST_FLAT];
    int own[3];      // columns, rows and planes that a tile is there for
    int tiles[3];    // their numbers
};

// How a part of a kernel keeps another one: as a copy, of which the compiler sees that all lanes agree on it, or as a
// reference. Measured on an H200: copies make passes of Jacobi 14 % faster in 2D, and 5 to 13 % slower in 3D.
template <class Part, int COPIED> struct pgi_part {
    typedef Part type;
};
template <class Part> struct pgi_part<Part, 0> {
    typedef Part &type;
};

// A warp's part of a tile: its columns and rows. Those that do not exist have an inverse diagonal of 0 and stay 0.
template <class T, int SWEEPS, int FLAT> struct pgi_jacobi_tile {
    typedef pgi_jacobi_tuned<T, SWEEPS, FLAT> tuned;
    typedef pgi_lane<T> lane_t;
    enum { ROWS = tuned::ROWS, COLUMNS = tuned::COLUMNS, AHEAD = tuned::AHEAD, QUEUE = tuned::QUEUE };
    typename pgi_part<const pgi_jacobi_pass<T>, FLAT>::type a;
    const int lane, warp, warps;
    lane_t *const u_slots, *const f_slots, *const edges, *const inverses;    // edges: [2][SWEEPS][2][32], lowest and
    pgi_row<T> *const y_rows;    // highest row; the rest: of the warp's rows
    int x_tile, x_own, y_own, k0, k1, x, y;
    pgi_row<T> inner_y, inner_z, xc[COLUMNS];
    T alpha, mean, reaction[COLUMNS], inverse[COLUMNS];    // where the rows of y and z are those of the inside
    unsigned rows, own_rows, own_columns;                  // that exist; that are the tile's
    bool steady;                                           // all rows are of the inside
    int from[ROWS];

    __device__ pgi_jacobi_tile(const pgi_jacobi_pass<T> &pass, int own_warp, lane_t *shared, int64_t tile)
        : a(pass), lane((int)threadIdx.x), warp(own_warp), warps((int)blockDim.y),
          u_slots(shared + warp * tuned::VECTORS), f_slots(u_slots + AHEAD * ROWS * 32),
          edges(f_slots + QUEUE * ROWS * 32 + lane), inverses(edges + 4 * SWEEPS * 32),
          y_rows((pgi_row<T> *)(inverses - lane + ROWS * 32))
    {
        const pgi_axis<T> &ax = a.b.axis[0], &ay = a.b.axis[1], &az = a.b.axis[2];
        const int tile_x = (int)(tile % a.tiles[0]), rest = (int)(tile / a.tiles[0]);
        x_tile = tile_x * a.own[0] - tuned::LOW, x_own = x_tile + SWEEPS;
        y_own = rest % a.tiles[1] * a.own[1], k0 = rest / a.tiles[1] * a.own[2];
        k1 = k0 + a.own[2] < az.n ? k0 + a.own[2] : az.n;
        x = x_tile + COLUMNS * lane, y = FLAT ? 0 : y_own - SWEEPS + warp * ROWS;
        inner_y = FLAT ? ay.row[0] : ay.row[1], inner_z = az.row[1];
        alpha = (T)a.b.state->alpha, mean = pgi_mean_of<T>(a.rhs, a.b.state);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const int i = pgi_wrap(x + c, ax.n, ax.periodic);
            const pgi_row<T> none = {0, 0, 0};
            xc[c] = i < 0 ? none : pgi_row_of(ax, i);
            reaction[c] = ((alpha + inner_y.reaction) + xc[c].reaction) + inner_z.reaction;
            inverse[c] = i < 0 ? (T)0 : 1 / pgi_diagonal(reaction[c], xc[c], inner_y, inner_z);
        }
        find_rows(ay);
        own_rows = own_columns = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            own_rows |= (FLAT || (y + r >= y_own && y + r < y_own + a.own[1] && y + r < ay.n) ? 1u : 0u) << r;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            own_columns |= (x + c >= x_own && x + c < x_own + a.own[0] && x + c >= 0 && x + c < ax.n ? 1u : 0u) << c;
    }
    __device__ void find_rows(const pgi_axis<T> &ay)
    {
        rows = 0, steady = true;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int j = FLAT ? 0 : pgi_wrap(y + r, ay.n, ay.periodic);
            from[r] = j < 0 ? 0 : j;
            rows |= (j >= 0 ? 1u : 0u) << r;
            const pgi_row<T> row = pgi_row_of(ay, from[r]);
            if (!FLAT &&
                (j < 0 || row.lower != inner_y.lower || row.upper != inner_y.upper || row.reaction != inner_y.reaction))
                steady = false;
            if (FLAT) continue;
            y_rows[r] = row;    // by every lane
            lane_t v;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                const T d =
                    pgi_diagonal(((alpha + row.reaction) + xc[c].reaction) + inner_z.reaction, xc[c], row, inner_z);
                v.v[c] = j < 0 || inverse[c] == 0 ? (T)0 : 1 / d;
            }
            inverses[r * 32] = v;
        }
        steady = __shfl_sync(0xffffffffu, (int)steady, 0);
        rows = __shfl_sync(0xffffffffu, rows, 0);
    }
};

// Planes on their way: in by two points where rows allow it, else element by element, neighbours by neighbouring lanes.
template <class T, int SWEEPS, int FLAT> struct pgi_jacobi_stream {
    typedef pgi_jacobi_tile<T, SWEEPS, FLAT> tile_t;
    typedef pgi_lane<T> lane_t;
    enum { ROWS = tile_t::ROWS, COLUMNS = tile_t::COLUMNS, AHEAD = tile_t::AHEAD, QUEUE = tile_t::QUEUE };
    typename pgi_part<const tile_t, FLAT>::type t;
    const T *u_base, *f_base;
    T *out_base;
    bool u_vectors, f_vectors, out_vectors;
    int x_from, bytes, queue;    // queue: slot of plane t of f
    unsigned mask;               // faces that have data,
    bool touched;                // and the tile's columns or rows touch one

    __device__ bool in_vectors(const void *base, const pgi_grid &g) const
    {
        const pgi_axis<T> &ax = t.a.b.axis[0];
        return (((size_t)base | (size_t)(g.sj * (int64_t)sizeof(T)) | (size_t)(g.sk * (int64_t)sizeof(T))) &
                (sizeof(lane_t) - 1)) == 0 &&
               (!ax.periodic || ax.n % COLUMNS == 0);
    }
    __device__ explicit pgi_jacobi_stream(const tile_t &tile) : t(tile), queue(0)
    {
        const pgi_jacobi_pass<T> &a = t.a;
        const int nx = a.b.axis[0].n, ny = a.b.axis[1].n;
        u_base = pgi_data<T>(a.u), f_base = pgi_data<T>(a.rhs.f), out_base = pgi_data<T>(a.out);
        u_vectors = in_vectors(u_base, a.u), f_vectors = in_vectors(f_base, a.rhs.f);
        out_vectors = in_vectors(out_base, a.out);
        const int x_at = pgi_wrap(t.x, nx, a.b.axis[0].periodic);
        x_from = x_at < 0 ? 0 : x_at;
        bytes = x_at < 0 ? 0 : (nx - x_at < COLUMNS ? nx - x_at : (int)COLUMNS) * (int)sizeof(T);
        mask = pgi_face_mask(a.rhs, a.b.state);
        touched = mask & ((t.x_tile <= 0 ? 1u : 0u) | (t.x_tile + (int)tile_t::tuned::WIDE >= nx ? 2u : 0u) |
                          (t.y <= 0 ? 4u : 0u) | (t.y + ROWS >= ny ? 8u : 0u));
    }
    __device__ void fetch(const T *base, int64_t sj, int64_t sk, bool vectors, int z, lane_t *slot) const
    {
        const pgi_axis<T> &ax = t.a.b.axis[0], &az = t.a.b.axis[2];
        const int k = pgi_wrap(z, az.n, az.periodic);
        const unsigned some = k < 0 ? 0u : t.rows;
        const T *const plane = base + (k < 0 ? 0 : k) * sk;
        if (vectors) {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                pgi_copy_async<sizeof(lane_t), 1>(slot + r * 32 + t.lane, plane + t.from[r] * sj + x_from,
                                                  some >> r & 1 ? bytes : 0);
            return;
        }
#pragma unroll
        for (int q = 0; q < COLUMNS; q++) {
            const int e = t.lane + 32 * q, i = pgi_wrap(t.x_tile + e, ax.n, ax.periodic);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                pgi_copy_async<sizeof(T), 0>((T *)(slot + r * 32) + e, plane + t.from[r] * sj + (i < 0 ? 0 : i),
                                             i >= 0 && some >> r & 1 ? (int)sizeof(T) : 0);
        }
    }
    __device__ lane_t *u_slot(int z) const { return t.u_slots + (AHEAD == 1 ? 0 : (z & (AHEAD - 1))) * ROWS * 32; }
    __device__ lane_t *f_slot(int back) const
    {
        const int slot = queue - back;
        return t.f_slots + (slot < 0 ? slot + QUEUE : slot) * ROWS * 32;
    }
    // Planes z + 1 of u and z of f
    __device__ void fetch_both(int z, lane_t *u_slot, lane_t *f_slot) const
    {
        fetch(u_base, t.a.u.sj, t.a.u.sk, u_vectors, z + 1, u_slot);
        fetch(f_base, t.a.rhs.f.sj, t.a.rhs.f.sk, f_vectors, z, f_slot);
        pgi_copy_commit();
    }
    // Makes plane z of f the right-hand side.
    __device__ void complete(int z) const
    {
        const pgi_axis<T> &ax = t.a.b.axis[0], &ay = t.a.b.axis[1], &az = t.a.b.axis[2];
        lane_t *const f = f_slot(0) + t.lane;
        if (t.mean != 0)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) f[r * 32].v[c] -= t.mean;
        if (!mask) return;
        const int k = pgi_wrap(z, az.n, az.periodic);
        if (k < 0 || !(touched || mask & pgi_end_bits(k, az.n) << 4)) return;
#pragma unroll 1
        for (int e = 0; e < ROWS * COLUMNS; e++) {
            const int i = pgi_wrap(t.x + e % COLUMNS, ax.n, ax.periodic), r = e / COLUMNS;
            const int j = FLAT ? 0 : pgi_wrap(t.y + r, ay.n, ay.periodic);
            T *const v = &f[r * 32].v[e % COLUMNS];
            if (i >= 0 && j >= 0) *v = pgi_rhs_point(t.a.b, t.a.rhs, *v, (T)0, i, j, k);
        }
    }
    __device__ void store(int z, const T (&value)[ROWS][COLUMNS]) const
    {
        const int64_t sj = t.a.out.sj;
        T *const plane = out_base + z * t.a.out.sk + t.y * sj;
        const bool whole = t.own_columns == (1u << COLUMNS) - 1, parted = t.own_columns && !whole;
        if (out_vectors) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                lane_t v;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) v.v[c] = value[r][c];
                if (whole && t.own_rows >> r & 1) *(lane_t *)(plane + r * sj + t.x) = v;
            }
            if (parted)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++)
                        if (t.own_columns >> c & 1 && t.own_rows >> r & 1) plane[r * sj + t.x + c] = value[r][c];
            return;
        }
        // The plane of f that nobody needs any more transposes rows
        lane_t *const transposed = f_slot(SWEEPS - 1);
        __syncwarp();
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            lane_t v;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) v.v[c] = value[r][c];
            transposed[r * 32 + t.lane] = v;
        }
        __syncwarp();
#pragma unroll
        for (int q = 0; q < COLUMNS; q++) {
            const int e = t.lane + 32 * q, i = t.x_tile + e;
            if (i < t.x_own || i >= t.x_own + t.a.own[0] || i < 0 || i >= t.a.b.axis[0].n) continue;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (t.own_rows >> r & 1) plane[r * sj + i] = ((const T *)(transposed + r * 32))[e];
        }
    }
};

// The sweeps under way: of iterate p plane t - p, and what it has more than the plane before it.
template <class T, int SWEEPS, int FLAT> struct pgi_jacobi_march {
    typedef pgi_jacobi_tile<T, SWEEPS, FLAT> tile_t;
    typedef pgi_lane<T> lane_t;
    enum {
        ROWS = tile_t::ROWS,
        COLUMNS = tile_t::COLUMNS,
        AHEAD = tile_t::AHEAD,
        QUEUE = tile_t::QUEUE,
        VECTORS = tile_t::tuned::VECTORS
    };
    typename pgi_part<pgi_jacobi_stream<T, SWEEPS, FLAT>, FLAT>::type stream;
    typename pgi_part<const tile_t, FLAT>::type t;
    T u[SWEEPS][ROWS][COLUMNS], rise[SWEEPS][ROWS][COLUMNS];
    int turn;    // of the two sets of edges

    __device__ explicit pgi_jacobi_march(pgi_jacobi_stream<T, SWEEPS, FLAT> &s) : stream(s), t(stream.t), turn(0)
    {
#pragma unroll
        for (int p = 0; p < SWEEPS; p++)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) u[p][r][c] = rise[p][r][c] = 0;
        if (!FLAT)
#pragma unroll
            for (int q = 0; q < 4 * SWEEPS; q++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) t.edges[q * 32].v[c] = 0;
    }
    // Sweep p of plane z; fresh: plane z + 1 of iterate p, then plane z of the next one. CAREFUL: see step
    template <int CAREFUL> __device__ void sweep(int p, int z, T (&fresh)[ROWS][COLUMNS])
    {
        const pgi_axis<T> &az = t.a.b.axis[2];
        lane_t *const edges_in = t.edges + turn * 2 * SWEEPS * 32, *const edges_out =
                                                                       t.edges + (1 - turn) * 2 * SWEEPS * 32;
        const int below = (t.warp > 0 ? -1 : 0) * VECTORS, above = (t.warp < t.warps - 1 ? 1 : 0) * VECTORS;
        const int k = CAREFUL ? pgi_wrap(z, az.n, az.periodic) : z;
        const pgi_row<T> zc = CAREFUL ? pgi_row_of(az, k < 0 ? 0 : k) : t.inner_z;
        const bool special = CAREFUL && (k < 0 || zc.lower != t.inner_z.lower || zc.upper != t.inner_z.upper ||
                                         zc.reaction != t.inner_z.reaction);
        const lane_t *const f_plane = stream.f_slot(p) + t.lane;
        lane_t edge_low, edge_high;
        T next[ROWS][COLUMNS], to_below[COLUMNS];
        if (!FLAT) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) edge_low.v[c] = fresh[0][c], edge_high.v[c] = fresh[ROWS - 1][c];
            edges_out[2 * p * 32] = edge_low;
            edges_out[(2 * p + 1) * 32] = edge_high;
            edge_low = edges_in[below + (2 * p + 1) * 32];
            edge_high = edges_in[above + 2 * p * 32];
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) to_below[c] = u[p][0][c] - edge_low.v[c];
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const lane_t f = f_plane[r * 32];
            const pgi_row<T> yc = CAREFUL && !FLAT ? t.y_rows[r] : t.inner_y;
            lane_t own_inverses;
            if (CAREFUL && !FLAT) own_inverses = t.inverses[r * 32];
            T along[COLUMNS + 1];    // differences between columns
            along[0] = u[p][r][0] - __shfl_up_sync(0xffffffffu, u[p][r][COLUMNS - 1], 1);
            along[COLUMNS] = __shfl_down_sync(0xffffffffu, u[p][r][0], 1) - u[p][r][COLUMNS - 1];
#pragma unroll
            for (int c = 1; c < COLUMNS; c++) along[c] = u[p][r][c] - u[p][r][c - 1];
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                const T v = u[p][r][c], up = fresh[r][c] - v;
                T own_reaction = t.reaction[c], own_inverse = t.inverse[c];
                if (CAREFUL) {
                    own_reaction = ((t.alpha + yc.reaction) + t.xc[c].reaction) + zc.reaction;
                    if (!FLAT) own_inverse = own_inverses.v[c];
                    if (special && own_inverse != 0)
                        own_inverse = k < 0 ? (T)0 : 1 / pgi_diagonal(own_reaction, t.xc[c], yc, zc);
                }
                // As pgi_stencil sums, but a difference between two points is worked out once.
                T au = own_reaction * v;
                au += t.xc[c].lower * -along[c];
                au += t.xc[c].upper * along[c + 1];
                if (!FLAT) {
                    const T to_above = (r < ROWS - 1 ? u[p][r < ROWS - 1 ? r + 1 : r][c] : edge_high.v[c]) - v;
                    au += yc.lower * -to_below[c];
                    au += yc.upper * to_above;
                    to_below[c] = to_above;
                }
                au += zc.lower * -rise[p][r][c];
                au += zc.upper * up;
                next[r][c] = pgi_relaxed(v, f.v[c] - au, own_inverse, t.a.omega[p]);
                rise[p][r][c] = up;
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) u[p][r][c] = fresh[r][c], fresh[r][c] = next[r][c];
    }
    // Step z. CAREFUL: some row or plane is not of the inside
    template <int CAREFUL> __device__ void step(int z, T (&fresh)[ROWS][COLUMNS])
    {
#pragma unroll
        for (int p = 0; p < SWEEPS; p++) sweep<CAREFUL>(p, z - p, fresh);
        const int done = z - (SWEEPS - 1);
        if (done >= t.k0 && done < t.k1) stream.store(done, fresh);
    }
};

// Computes out = SWEEPS weighted Jacobi sweeps of u. Moves 3 words a point. Nothing overlaps. Covers a tile of columns,
// plane by plane: sweep p of a wavefront works on plane t - p while plane t + 1 comes in, so that u and f are read once
// and out is written once. A warp owns some rows; a lane two points of each and, of every iterate under way, the last
// plane and its difference to the one before it. Neighbours along x are the next lane's, along y the lane's own or, at
// the edge of a warp, in shared memory: one barrier a plane. What the sweeps need beyond a tile is computed again
// there. FLAT: ny = 1, a warp is a tile of its own. Rounds as the plain kernel does, but for boundary data.
template <class T, int SWEEPS, int FLAT>
static __global__ void __launch_bounds__(pgi_jacobi_tuned<T, SWEEPS, FLAT>::THREADS,
                                         pgi_jacobi_tuned<T, SWEEPS, FLAT>::BLOCKS)
    pgi_jacobi_pass_kernel(const pgi_jacobi_pass<T> a)
{
    PGI_UNLESS_DONE(a.b.state);
    typedef pgi_jacobi_tile<T, SWEEPS, FLAT> tile_t;
    typedef pgi_lane<T> lane_t;
    enum { ROWS = tile_t::ROWS, COLUMNS = tile_t::COLUMNS, AHEAD = tile_t::AHEAD, QUEUE = tile_t::QUEUE };
    PGI_DYNAMIC_SHARED(lane_t, pgi_shared);
    // Taken from one lane, so that the compiler knows the warp to stay together
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.y, 0);
    const int64_t tile = FLAT ? (int64_t)blockIdx.x * (int)blockDim.y + warp : (int64_t)blockIdx.x;
    if (tile >= (int64_t)a.tiles[0] * a.tiles[1] * a.tiles[2]) return;    // a warp of its own
    const tile_t own_tile(a, warp, pgi_shared, tile);
    pgi_jacobi_stream<T, SWEEPS, FLAT> own_stream(own_tile);
    pgi_jacobi_march<T, SWEEPS, FLAT> march(own_stream);
    auto &stream = march.stream;
    const tile_t &t = march.t;
    const pgi_axis<T> &az = a.b.axis[2];
    const int begin = t.k0 - SWEEPS - 1, end = t.k1 + SWEEPS - 1;    // steps z
    for (int q = 0; q < AHEAD; q++)
        stream.fetch_both(begin + q, stream.u_slot(begin + 1 + q), t.f_slots + q * ROWS * 32);
    if (!FLAT) __syncthreads();
    for (int z = begin; z < end; z++) {
        // Plane z + 1 of u and plane z of f have come
        T fresh[ROWS][COLUMNS];
        pgi_copy_wait<AHEAD - 1>();
        __syncwarp();
        lane_t *const incoming = stream.u_slot(z + 1);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const lane_t v = incoming[r * 32 + t.lane];
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) fresh[r][c] = v.v[c];
        }
        stream.complete(z);
        __syncwarp();
        stream.fetch_both(z + AHEAD, incoming, stream.f_slot(SWEEPS));
        if (t.steady && !az.table && z - SWEEPS + 1 > 0 && z < az.n - 1)
            march.template step<0>(z, fresh);
        else if (t.rows)
            march.template step<1>(z, fresh);
        if (!FLAT) __syncthreads();
        march.turn = 1 - march.turn;
        stream.queue = stream.queue + 1 < QUEUE ? stream.queue + 1 : 0;
    }
}

// One thread decides, but what it reads lies in many cache lines: all are asked for at once, a lane each, not one after
// the other.
static __device__ inline bool pgi_fetch_state(const pgi_state *st)
{
#ifdef __CUDA_ARCH__
    const char *const line = (const char *)st + 128 * threadIdx.x;
    if (128 * threadIdx.x < sizeof *st) asm volatile("prefetch.global.L1 [%0];" : : "l"(line));
#else
    (void)st;
#endif
    return threadIdx.x == 0;
}

static __global__ void pgi_control_kernel(pgi_state *st, int step, int argument)
{
    PGI_UNLESS_DONE(st);
    pgi_await();
    if (!pgi_fetch_state(st)) return;
    pgi_control(st, step, argument, pgi_device_now());
}

static __global__ void pgi_enter_kernel(pgi_state *st, pgi_call c)
{
    pgi_await();
    pgi_enter(st, c);
}

static __global__ void pgi_keep_worst_kernel(pgi_state *worst, const pgi_state *st, int first)
{
    pgi_keep_worst(worst, st, first);
}

// ---- >>tiles: residuals and transfers of large levels, in tiles that march along z ----

// Tiles are numbered along x, then y, then z, and begin `own` points after each other.
struct pgi_tiling {
    int own[3], tiles[3];
};

static __device__ inline void pgi_tile_begin(const pgi_tiling &h, unsigned tile, int begin[3])
{
    for (int a = 0; a < 3; a++) {
        begin[a] = (int)(tile % (unsigned)h.tiles[a]) * h.own[a];
        tile /= (unsigned)h.tiles[a];
    }
}

static PGI_HD inline unsigned pgi_tiles_in(const pgi_tiling &h)
{
    return (unsigned)h.tiles[0] * (unsigned)h.tiles[1] * (unsigned)h.tiles[2];
}

// Index i of a periodic axis, or the point of a closed one that is nearest.
static __device__ inline int pgi_nearest(int i, int n, int periodic)
{
    if (!periodic) return i < 0 ? 0 : i < n ? i : n - 1;
    PGI_ROLLED
    while (i < 0) i += n;
    PGI_ROLLED
    while (i >= n) i -= n;    // rarely more than once, and shorter than two divisions
    return i;
}

// ---- the residual: stored, summed up or restricted ----

// Columns and most rows of a tile, rows of a thread (2D: pairs of columns), planes under way, blocks that a
// multiprocessor must be able to hold: f64, f32, 2D. Where shared memory is scarce tiles are lower. Measured on an H200
// at 512^3 cells, restricted: f64 0.67 ms, f32 0.41.
#ifndef PGI_TILE_TUNE
#define PGI_TILE_TUNE                                                                                                  \
    {64, 32, 4, 2, 1}, {64, 32, 4, 2, 2}, { 512, 1, 2, 3, 3 }
#endif
static constexpr int pgi_tile_tuning[3][5] = {PGI_TILE_TUNE};
template <class T, int FLAT> struct pgi_tuned_tile {
    enum {
        ENTRY = FLAT ? 2 : sizeof(T) == 4,
        WIDE = pgi_tile_tuning[ENTRY][0],
        HIGH = pgi_tile_tuning[ENTRY][1],
        ROWS = pgi_tile_tuning[ENTRY][2],
        AHEAD = pgi_tile_tuning[ENTRY][3],
        BLOCKS = pgi_tile_tuning[ENTRY][4],
        THREADS = WIDE * HIGH / ROWS / 2,
        LANES = FLAT ? (int)THREADS : WIDE / 2,    // threads side by side
        HALO = FLAT ? 0 : 1,
        PITCH = WIDE + 4,                           // of u, with a halo of 1 that keeps pairs aligned
        SUM_PITCH = WIDE + PGI_TAPS,                // a window reaches beyond a tile only with weights of 0
        PLANES = FLAT ? 256 : 64,                   // of a slab at most
        SETS = FLAT ? ROWS : 1,                     // of columns of a thread
        APART = FLAT ? 2 * (int)THREADS : 0,        // columns from row to row of a thread
        U_STEP = FLAT ? (int)APART : (int)PITCH,    // and in shared memory
        F_STEP = FLAT ? (int)APART : (int)WIDE,
        SUM_STEP = FLAT ? (int)APART : (int)SUM_PITCH
    };
};

// What a tile of `high` rows keeps in shared memory: planes of u with their halo, of f, and of sums to be restricted
template <class T, int FLAT> struct pgi_tile_layout {
    int plane, f_plane, sum, f, sums, end;
    PGI_HD pgi_tile_layout(int high)
    {
        typedef pgi_tuned_tile<T, FLAT> tuned;
        plane = (high + 2 * tuned::HALO) * tuned::PITCH;
        f_plane = high * tuned::WIDE;
        sum = (high + PGI_TAPS) * tuned::SUM_PITCH;
        f = (tuned::AHEAD + 2) * plane;
        sums = f + (tuned::AHEAD + 1) * f_plane;
        end = sums + 2 * sum;
    }
};

template <class T> struct pgi_tile_job {
    pgi_box<T> b;
    pgi_grid u;
    pgi_rhs rhs;
    pgi_tiling tiling;
};

// The tile of a block and the thread's place in it. Points beyond the end of an axis are not live.
template <class T, int FLAT> struct pgi_tile_place {
    enum { ROWS = pgi_tuned_tile<T, FLAT>::ROWS };
    int begin[3], high, threads, thread, tx, ty;
    unsigned live;    // bit 2 * row + column
    bool cut;         // some point of the tile is not live
    __device__ pgi_tile_place(const pgi_tile_job<T> &a, unsigned tile)
    {
        typedef pgi_tuned_tile<T, FLAT> tuned;
        pgi_tile_begin(a.tiling, tile, begin);
        high = FLAT ? 1 : (int)blockDim.y * ROWS;
        threads = (int)(tuned::LANES * blockDim.y);
        thread = (int)(threadIdx.x + tuned::LANES * threadIdx.y);
        tx = 2 * (int)threadIdx.x;
        ty = FLAT ? 0 : (int)threadIdx.y * ROWS;
        const int nx = a.b.axis[0].n, ny = a.b.axis[1].n;
        cut = begin[0] + tuned::WIDE > nx || begin[1] + high > ny;
        live = before(nx, ny);
    }
    // Of the thread's point e
    __device__ int x(int e) const { return begin[0] + tx + e / 2 * pgi_tuned_tile<T, FLAT>::APART + (e & 1); }
    __device__ int y(int e) const { return FLAT ? 0 : begin[1] + ty + e / 2; }
    __device__ unsigned before(int end_x, int end_y) const    // bits of the points before these ends
    {
        unsigned bits = 0;
        for (int e = 0; e < 2 * ROWS; e++) bits |= (unsigned)(x(e) < end_x && y(e) < end_y) << e;
        return bits;
    }
    __device__ pgi_norm_sum<T, ROWS> norm_of(const pgi_box<T> &b, bool wanted, unsigned mine, double before = 0) const
    {
        return pgi_norm_sum<T, ROWS>(
            b, mine, [&](int e) { return x(e); }, [&](int e) { return y(e); }, before, wanted);
    }
    __device__ void add_to(pgi_norm_sum<T, ROWS> &norm, const pgi_box<T> &b, int z, const T (&residual)[ROWS][2]) const
    {
        norm.add(
            b, z, residual, [&](int e) { return x(e); }, [&](int e) { return y(e); });
    }
};

// Whether columns 2 i and 2 i + 1 can be copied together
template <class T> static __device__ inline bool pgi_pairs_aligned(const pgi_grid &g)
{
    return !((g.sj | g.sk) & 1) && (size_t)pgi_data<T>(g) % (2 * sizeof(T)) == 0;
}

// A thread's ROWS pairs of columns: bits of the rows of which the first exists, the second, one beside the other.
template <int ROWS> struct pgi_pairs {
    unsigned bits;
    enum { FIRST, SECOND, BESIDE };
    __device__ void add(int kind, int r, bool is) { bits |= (is ? 1u : 0u) << (kind * ROWS + r); }
    __device__ bool has(int kind, int r) const { return bits >> (kind * ROWS + r) & 1; }
    __device__ bool all() const { return (~bits & ((1u << 2 * ROWS) - 1)) == 0; }    // exist
};

// Copies planes of a grid to shared memory, one after the other: a thread its pairs.
template <class T, int ROWS, int SETS> struct pgi_supply {
    typedef pgi_pairs<ROWS> pairs;
    const char *plane;
    unsigned row[ROWS];      // offsets in a plane
    bool aligned, steady;    // pairs are; and all of the tile exist
    // From plane z - 1 to z; beyond a closed end the last one again.
    __device__ void turn(const pgi_grid &g, const pgi_axis<T> &az, int z)
    {
        if (z < az.n || az.periodic) plane += (z == az.n ? 1 - az.n : 1) * g.sk * (int64_t)sizeof(T);
    }
    __device__ void fetch(T *to, int pitch, pairs own, const unsigned (&second)[SETS]) const
    {
        if (steady) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) pgi_copy_async<2 * sizeof(T), 1>(to + r * pitch, plane + row[r]);
            return;
        }
        if (!aligned && own.all()) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                pgi_copy_async<sizeof(T), 0>(to + r * pitch, plane + row[r]);
                pgi_copy_async<sizeof(T), 0>(to + r * pitch + 1, plane + (row[r] + second[r % SETS]));
            }
            return;
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const char *const from = plane + row[r];
            if (aligned && own.has(pairs::BESIDE, r)) {
                pgi_copy_async<2 * sizeof(T), 1>(to + r * pitch, from);
                continue;
            }
            if (own.has(pairs::FIRST, r)) pgi_copy_async<sizeof(T), 0>(to + r * pitch, from);
            if (own.has(pairs::SECOND, r))
                pgi_copy_async<sizeof(T), 0>(to + r * pitch + 1, plane + (row[r] + second[r % SETS]));
        }
    }
    // What is never copied
    static __device__ void clear(T *to, int pitch, pairs own)
    {
        for (int r = 0; r < ROWS; r++) {
            if (!own.has(pairs::FIRST, r)) to[r * pitch] = 0;
            if (!own.has(pairs::SECOND, r)) to[r * pitch + 1] = 0;
        }
    }
};

// Planes of u, with a halo of 1 but for its corners, and of f on their way to a tile's shared memory. Beyond an end
// there are zeros, or the last point again: no window gives them any weight.
template <class T, int FLAT> struct pgi_tile_streams {
    typedef pgi_tuned_tile<T, FLAT> tuned;
    enum { ROWS = tuned::ROWS, WIDE = tuned::WIDE, HALO = tuned::HALO, SETS = tuned::SETS };
    const pgi_tile_job<T> &a;
    const pgi_tile_place<T, FLAT> &p;
    const pgi_tile_layout<T, FLAT> size;
    T *const u_slots, *const f_slots;
    pgi_supply<T, ROWS, SETS> u, f;
    pgi_pairs<ROWS> pairs;
    unsigned second[SETS];    // from the first column of a pair
    int edge_at;              // where the thread's point of the halo lies in a plane, or -1
    unsigned edge;

    __device__ int column_of(int x) const { return pgi_nearest(x, a.b.axis[0].n, a.b.axis[0].periodic); }
    __device__ int row_of(int y) const { return FLAT ? 0 : pgi_nearest(y, a.b.axis[1].n, a.b.axis[1].periodic); }
    __device__ int plane_of(int z) const { return pgi_nearest(z, a.b.axis[2].n, a.b.axis[2].periodic); }
    __device__ unsigned offset(const pgi_grid &g, int x, int y) const
    {
        return (unsigned)((row_of(y) * g.sj + column_of(x)) * (int64_t)sizeof(T));
    }
    // The thread's first point in a plane of u, and of f
    __device__ int at() const { return (p.ty + HALO) * tuned::PITCH + p.tx + 2; }
    __device__ int f_at() const { return p.ty * WIDE + p.tx; }
    __device__ int edges() const { return 2 * HALO * WIDE + 2 * p.high; }    // points of the halo
    __device__ int edge_of(int q, int *to) const
    {
        const int side = q - 2 * HALO * WIDE;
        const int x = side < 0 ? q % WIDE : side < p.high ? -1 : (int)WIDE;
        const int y = side >= 0 ? side % p.high : q < WIDE ? -1 : p.high;
        *to = (y + HALO) * tuned::PITCH + x + 2;
        return (int)offset(a.u, p.begin[0] + x, p.begin[1] + y);
    }

    __device__ pgi_tile_streams(const pgi_tile_job<T> &job, const pgi_tile_place<T, FLAT> &place, T *shared)
        : a(job), p(place), size(place.high), u_slots(shared), f_slots(shared + size.f), pairs{0}
    {
        const pgi_axis<T> &ax = a.b.axis[0], &ay = a.b.axis[1];
        const int z0 = p.begin[2], with_f = a.rhs.f.base != NULL;
        u.plane = (const char *)pgi_data<T>(a.u) + z0 * a.u.sk * (int64_t)sizeof(T);
        f.plane = with_f ? (const char *)pgi_data<T>(a.rhs.f) + z0 * a.rhs.f.sk * (int64_t)sizeof(T) : NULL;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int x = column_of(p.x(2 * r)), next = column_of(p.x(2 * r) + 1);
            const bool there = FLAT || ay.periodic || p.y(2 * r) < ay.n;
            pairs.add(pairs.FIRST, r, there && (ax.periodic || p.x(2 * r) < ax.n));
            pairs.add(pairs.SECOND, r, there && (ax.periodic || p.x(2 * r) + 1 < ax.n));
            pairs.add(pairs.BESIDE, r, there && next == x + 1 && x % 2 == 0);
            u.row[r] = offset(a.u, p.x(2 * r), p.y(2 * r));
            f.row[r] = offset(a.rhs.f, p.x(2 * r), p.y(2 * r));
            second[r % SETS] = (unsigned)((next - x) * (int)sizeof(T));
        }
        const bool inside = p.begin[0] + WIDE <= ax.n && (FLAT || p.begin[1] + p.high <= ay.n);
        u.aligned = pgi_pairs_aligned<T>(a.u);
        f.aligned = with_f && pgi_pairs_aligned<T>(a.rhs.f);
        u.steady = inside && u.aligned;
        f.steady = inside && f.aligned;
        edge_at = -1;
        edge = p.thread < edges() ? (unsigned)edge_of(p.thread, &edge_at) : 0;
        if (inside) return;
        for (int q = 0; q < tuned::AHEAD + 2; q++) u.clear(u_slots + q * size.plane + at(), tuned::U_STEP, pairs);
        for (int q = 0; q < tuned::AHEAD + 1; q++) f.clear(f_slots + q * size.f_plane + f_at(), tuned::F_STEP, pairs);
    }
    __device__ void fetch_u(int slot, int z)
    {
        T *const plane = u_slots + slot * size.plane;
        u.fetch(plane + at(), tuned::U_STEP, pairs, second);
        if (edge_at >= 0) pgi_copy_async<sizeof(T), 0>(plane + edge_at, u.plane + edge);
        for (int q = p.thread + p.threads; q < edges(); q += p.threads) {    // of low tiles
            int to;
            const unsigned from = (unsigned)edge_of(q, &to);
            pgi_copy_async<sizeof(T), 0>(plane + to, u.plane + from);
        }
        u.turn(a.u, a.b.axis[2], z + 1);
    }
    __device__ void fetch_f(int slot, int z)
    {
        if (!a.rhs.f.base) return;
        f.fetch(f_slots + slot * size.f_plane + f_at(), tuned::F_STEP, pairs, second);
        f.turn(a.rhs.f, a.b.axis[2], z + 1);
    }
};

// The thread's points of the plane at work, what the plane below has more, and the rows of the operator.
template <class T, int FLAT> struct pgi_tile_stencil {
    typedef pgi_tuned_tile<T, FLAT> tuned;
    typedef typename pgi_two<T>::type T2;
    enum { ROWS = tuned::ROWS, SETS = tuned::SETS };
    T down[ROWS][2], here[ROWS][2];
    pgi_row<T> xr[SETS][2], yr[FLAT ? 1 : ROWS];

    __device__ explicit pgi_tile_stencil(const pgi_tile_streams<T, FLAT> &s)
    {
        const char *const before =
            (const char *)pgi_data<T>(s.a.u) + s.plane_of(s.p.begin[2] - 1) * s.a.u.sk * (int64_t)sizeof(T);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            here[r][0] = pgi_load((const T *)(s.u.plane + s.u.row[r]));
            here[r][1] = pgi_load((const T *)(s.u.plane + (s.u.row[r] + s.second[r % SETS])));
            down[r][0] = pgi_load((const T *)(before + s.u.row[r])) - here[r][0];
            down[r][1] = pgi_load((const T *)(before + (s.u.row[r] + s.second[r % SETS]))) - here[r][1];
        }
    }
    __device__ void find_rows(const pgi_tile_streams<T, FLAT> &s)
    {
        const T alpha = (T)s.a.b.state->alpha;
#pragma unroll
        for (int e = 0; e < 2 * SETS; e++) xr[e / 2][e & 1] = pgi_row_of(s.a.b.axis[0], s.column_of(s.p.x(e)));
#pragma unroll
        for (int r = 0; r < (FLAT ? 1 : (int)ROWS); r++) {
            yr[r] = pgi_row_of(s.a.b.axis[1], s.row_of(s.p.y(2 * r)));
            yr[r].reaction += alpha;
        }
    }
    // f - A u of a plane of which u, `up` of the next one and f (NULL: 0) are in shared memory; moves on to the next
    // plane.
    __device__ void residual(const T *u, const T *up, const T *f, const pgi_row<T> &zr, T (&residual)[ROWS][2])
    {
        T above[ROWS][2];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const T2 v = *(const T2 *)(up + r * tuned::U_STEP);
            above[r][0] = v.x, above[r][1] = v.y;
        }
        T south[2] = {0, 0}, north[2] = {0, 0};
        if (!FLAT) {
            const T2 v = *(const T2 *)(u - tuned::PITCH);
            south[0] = v.x - here[0][0], south[1] = v.y - here[0][1];
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const T *const row = u + r * tuned::U_STEP;
            T2 right;
            right.x = right.y = 0;
            if (f) right = *(const T2 *)(f + r * tuned::F_STEP);
            const T west = row[-1] - here[r][0], middle = here[r][1] - here[r][0], east = row[2] - here[r][1];
            if (!FLAT && r == ROWS - 1) {
                const T2 v = *(const T2 *)(row + tuned::PITCH);
                north[0] = v.x - here[r][0], north[1] = v.y - here[r][1];
            } else if (!FLAT) {
                north[0] = here[r < ROWS - 1 ? r + 1 : 0][0] - here[r][0];
                north[1] = here[r < ROWS - 1 ? r + 1 : 0][1] - here[r][1];
            }
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const T rise = above[r][c] - here[r][c];
                const pgi_row<T> &x = xr[r % SETS][c], &y = yr[FLAT ? 0 : r];
                const T au = pgi_sum(x, y, zr, (y.reaction + zr.reaction) + x.reaction, here[r][c], c ? -middle : west,
                                     c ? east : middle, south[c], north[c], down[r][c], rise);
                residual[r][c] = (c ? right.y : right.x) - au;
                down[r][c] = -rise;
                here[r][c] = above[r][c];
                south[c] = -north[c];
            }
        }
    }
};

// Marches through `count` planes of a tile, while planes to come are on their way to shared memory; a thread has two
// columns of some rows. Calls begin(q) when all threads are done with plane q - 1, and body(q, residual, u) with what
// the thread's points have of rhs - A u in plane q, and of u. Without RHS the right-hand side is 0; else rhs.f may be
// NULL. One barrier a plane.
template <class T, int FLAT, bool RHS, class Begin, class Body>
static __device__ inline void pgi_march_tile(const pgi_tile_job<T> &a, const pgi_tile_place<T, FLAT> &p, T *shared,
                                             int count, Begin begin, Body body)
{
    typedef pgi_tuned_tile<T, FLAT> tuned;
    enum { ROWS = tuned::ROWS, AHEAD = tuned::AHEAD };
    __shared__ pgi_row<T> z_rows[tuned::PLANES + PGI_TAPS];
    const pgi_axis<T> &ax = a.b.axis[0], &ay = a.b.axis[1], &az = a.b.axis[2];
    const int z0 = p.begin[2], with_f = RHS && a.rhs.f.base;
    pgi_tile_streams<T, FLAT> streams(a, p, shared);
    pgi_tile_stencil<T, FLAT> stencil(streams);
    streams.fetch_u(0, z0);
    for (int q = 0; q < AHEAD; q++) {
        streams.fetch_u(q + 1, z0 + q + 1);
        if (RHS) streams.fetch_f(q, z0 + q);
        pgi_copy_commit();
    }
    for (int q = p.thread; q < count; q += p.threads) z_rows[q] = pgi_row_of(az, streams.plane_of(z0 + q));
    stencil.find_rows(streams);
    const T mean = RHS ? pgi_mean_of<T>(a.rhs, a.b.state) : (T)0;
    const unsigned mask = with_f ? pgi_face_mask(a.rhs, a.b.state) : 0u;
    const bool touched = mask & ((p.begin[0] == 0 || p.begin[0] + tuned::WIDE >= ax.n ? 3u : 0u) |
                                 (p.begin[1] == 0 || p.begin[1] + p.high >= ay.n ? 12u : 0u) |
                                 (z0 == 0 || z0 + count >= az.n ? 48u : 0u));
    int slot = 0, f_slot = 0;    // of plane z0 + q
    for (int q = 0; q < count; q++) {
        pgi_copy_wait<AHEAD - 1>();
        __syncthreads();
        const int next_slot = slot < AHEAD + 1 ? slot + 1 : 0;
        begin(q);
        streams.fetch_u(slot > 0 ? slot - 1 : AHEAD + 1, z0 + q + AHEAD + 1);
        if (RHS) streams.fetch_f(f_slot > 0 ? f_slot - 1 : (int)AHEAD, z0 + q + AHEAD);
        pgi_copy_commit();
        T residual[ROWS][2], centre[ROWS][2];
#pragma unroll
        for (int e = 0; e < 2 * ROWS; e++) centre[e / 2][e & 1] = stencil.here[e / 2][e & 1];
        stencil.residual(streams.u_slots + slot * streams.size.plane + streams.at(),
                         streams.u_slots + next_slot * streams.size.plane + streams.at(),
                         with_f ? streams.f_slots + f_slot * streams.size.f_plane + streams.f_at() : NULL, z_rows[q],
                         residual);
        if (mean != 0)
#pragma unroll
            for (int e = 0; e < 2 * ROWS; e++) residual[e / 2][e & 1] -= mean;
        if (touched) {
            const int k = streams.plane_of(z0 + q);
#pragma unroll
            for (int e = 0; e < 2 * ROWS; e++)
                residual[e / 2][e & 1] = pgi_rhs_point(a.b, a.rhs, residual[e / 2][e & 1], (T)0,
                                                       streams.column_of(p.x(e)), streams.row_of(p.y(e)), k);
        }
        body(q, residual, centre);
        slot = next_slot;
        f_slot = f_slot < AHEAD ? f_slot + 1 : 0;
    }
    pgi_copy_wait<0>();
}

// What becomes of a residual in tiles: it is stored (out), its norm is summed up (partials), or both. A kernel can do
// only what it is compiled for: flags take a tenth of the time of small levels and of norms.
enum pgi_residual_use { PGI_STORES = 1, PGI_SUMS = 2 };
struct pgi_residual_sinks {
    pgi_grid out;
    int scaled;    // what is stored is in units of 1/state.scale
    double *partials;
    pgi_state *state;
};

// Computes r = scale (rhs - A u), or v = A u if rhs has no f, the norm of the residual that a solve asks for, or both.
// Moves 3 words a point, without f or r one less. A block takes every gridDim-th tile. r may be f; u overlaps neither.
template <class T, class TO, int FLAT, int USE>
static __global__ void __launch_bounds__(pgi_tuned_tile<T, FLAT>::THREADS, pgi_tuned_tile<T, FLAT>::BLOCKS)
    pgi_residual_tile_kernel(const pgi_tile_job<T> a, const pgi_residual_sinks sinks)
{
    PGI_UNLESS_DONE(a.b.state);
    typedef pgi_tuned_tile<T, FLAT> tuned;
    typedef typename pgi_two<TO>::type TO2;
    PGI_DYNAMIC_SHARED(T, shared);
    const T sign = a.rhs.f.base ? sinks.scaled ? (T)a.b.state->scale : (T)1 : (T)-1;
    // What is rounded to f32 comes with the norm or without
    constexpr bool stores = (USE & PGI_STORES) != 0;
    const bool sums = USE == PGI_SUMS || (USE & PGI_SUMS && sinks.partials);
    const pgi_grid out = sinks.out;
    double sum = 0;
    for (unsigned tile = blockIdx.x; tile < pgi_tiles_in(a.tiling); tile += gridDim.x) {
        const pgi_tile_place<T, FLAT> p(a, tile);
        const int left = a.b.axis[2].n - p.begin[2];
        const bool pairs = stores && !p.cut && pgi_pairs_aligned<TO>(out);
        TO *to = stores ? pgi_data<TO>(out) + p.x(0) + p.y(0) * out.sj + p.begin[2] * out.sk : NULL;
        pgi_norm_sum<T, tuned::ROWS> norm = p.norm_of(a.b, sums, p.live, sum);
        if (tile != blockIdx.x) __syncthreads();    // the tile before is done
        pgi_march_tile<T, FLAT, true>(
            a, p, shared, left < a.tiling.own[2] ? left : a.tiling.own[2], [](int) {},
            [&](int q, const T(&residual)[tuned::ROWS][2], const T(&)[tuned::ROWS][2]) {
                if (sums) p.add_to(norm, a.b, p.begin[2] + q, residual);
                if constexpr (stores) {
#pragma unroll
                    for (int r = 0; r < tuned::ROWS; r++) {
                        TO *const row = to + (FLAT ? r * (int64_t)tuned::APART : r * out.sj);
                        TO2 v;
                        v.x = (TO)(sign * residual[r][0]), v.y = (TO)(sign * residual[r][1]);
                        if (pairs) {
                            *(TO2 *)row = v;
                        } else {
                            if (p.live >> 2 * r & 1) row[0] = v.x;
                            if (p.live >> (2 * r + 1) & 1) row[1] = v.y;
                        }
                    }
                    to += out.sk;
                }
            });
        sum = norm.sum;
    }
    if (sums) pgi_finish_norm(sum, sinks.partials, sinks.state);
}

// What a tile has of the vectors of a recurrence, but for v[0], which marches: the next plane is under way while one is
// at work.
template <class T, int FLAT, class POINT> struct pgi_tile_vectors {
    typedef pgi_tuned_tile<T, FLAT> tuned;
    typedef typename pgi_two<T>::type T2;
    enum { ROWS = tuned::ROWS, VECTORS = POINT::VECTORS };
    const pgi_vectors &g;
    void *at[VECTORS];    // the thread's first point in the plane that is loaded next, or stored
    T next[VECTORS][ROWS][2];
    unsigned live;
    bool pairs;

    __device__ pgi_tile_vectors(const pgi_vectors &all, const pgi_tile_place<T, FLAT> &p)
        : g(all), live(p.live), pairs(!p.cut)
    {
#pragma unroll
        for (int q = 1; q < VECTORS; q++) {
            const int narrow = POINT::NARROW >> q & 1;
            pairs = pairs && (narrow ? pgi_pairs_aligned<float>(g.v[q]) : pgi_pairs_aligned<T>(g.v[q]));
            at[q] = pgi_vector_at<T>(g.v[q], narrow, p.x(0) + p.y(0) * g.v[q].sj + p.begin[2] * g.v[q].sk);
        }
        load();
    }
    __device__ int64_t row(int q, int r) const { return FLAT ? r * (int64_t)tuned::APART : r * g.v[q].sj; }
    __device__ void load()
    {
#pragma unroll
        for (int q = 1; q < VECTORS; q++)
#pragma unroll
            for (int r = 0; r < ROWS && (POINT::READ >> q & 1); r++) {
                const T *const from = (const T *)at[q] + row(q, r);    // none that is narrow is read
                T2 v;
                v.x = v.y = 0;
                if (pairs) {
                    v = *(const T2 *)from;
                } else {
                    if (live >> 2 * r & 1) v.x = from[0];
                    if (live >> (2 * r + 1) & 1) v.y = from[1];
                }
                next[q][r][0] = v.x, next[q][r][1] = v.y;
            }
    }
    // Stores a plane, from which `next` has moved on by a plane if there is one.
    __device__ void store(const T (&v)[VECTORS][ROWS][2], int64_t behind) const
    {
#pragma unroll
        for (int q = 1; q < VECTORS; q++)
#pragma unroll
            for (int r = 0; r < ROWS && (POINT::WRITTEN >> q & 1); r++) {
                const int64_t to = row(q, r) - behind * g.v[q].sk;
                const int narrow = POINT::NARROW >> q & 1;
                if (pairs && narrow) {
                    *(float2 *)((float *)at[q] + to) = make_float2((float)v[q][r][0], (float)v[q][r][1]);
                } else if (pairs) {
                    T2 value;
                    value.x = v[q][r][0], value.y = v[q][r][1];
                    *(T2 *)((T *)at[q] + to) = value;
                } else {
                    if (live >> 2 * r & 1) pgi_set_value(at[q], narrow, to, v[q][r][0]);
                    if (live >> (2 * r + 1) & 1) pgi_set_value(at[q], narrow, to + 1, v[q][r][1]);
                }
            }
    }
    __device__ void turn()
    {
#pragma unroll
        for (int q = 1; q < VECTORS; q++)
            at[q] = (char *)at[q] + g.v[q].sk * (int64_t)(POINT::NARROW >> q & 1 ? sizeof(float) : sizeof(T));
    }
};

// Sums over the thread's points of a tile. Weights of points that are not live are 0. A factor of an inner product
// comes in the unit of sums by way of the weight of the columns, the other by way of that of the rows.
template <class T, int FLAT> struct pgi_tile_sums {
    enum { ROWS = pgi_tuned_tile<T, FLAT>::ROWS, COLUMNS = FLAT ? 2 * ROWS : 2, LINES = FLAT ? 1 : ROWS };
    double column[COLUMNS], line[LINES], unit;
    unsigned live;
    int kind;    // of norm

    __device__ pgi_tile_sums(const pgi_box<T> &b, const pgi_tile_place<T, FLAT> &p)
        : unit(b.state->unit_of_sums), live(p.live), kind(b.state->stop.norm)
    {
        const pgi_axis<T> &ax = b.axis[0], &ay = b.axis[1];
#pragma unroll
        for (int e = 0; e < COLUMNS; e++) column[e] = p.x(e) < ax.n ? unit * pgi_weight_of(ax, p.x(e)) : 0.0;
#pragma unroll
        for (int r = 0; r < LINES; r++) line[r] = p.y(2 * r) < ay.n ? unit * pgi_weight_of(ay, p.y(2 * r)) : 0.0;
    }
    // Adds w times the sum of weighted terms(e, column's weight) to *sum, w the weight of the plane.
    template <class Terms> __device__ void add(double w, double *sum, Terms terms) const
    {
        double part = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const double both = terms(2 * r, column[FLAT ? 2 * r : 0]) + terms(2 * r + 1, column[FLAT ? 2 * r + 1 : 1]);
            part += line[FLAT ? 0 : r] * both;
        }
        *sum += w * part;
    }
    __device__ void add_norm(double w, const T (&x)[ROWS][2], double *sum) const
    {
        if (kind == PG_NORM_L2 || kind == PG_NORM_L1) {
            const double scale = kind == PG_NORM_L2 ? 1.0 : 1 / unit;
            add(w, sum, [&](int e, double weight) {
                const double v = (double)x[e / 2][e & 1];
                return weight * v * (kind == PG_NORM_L2 ? v : v < 0 ? -scale : scale);
            });
            return;
        }
#pragma unroll
        for (int e = 0; e < 2 * ROWS; e++) {
            const double v = live >> e & 1 ? fabs(unit * (double)x[e / 2][e & 1]) : 0.0;
            *sum = kind == PG_NORM_MAX ? pgi_max_nan(*sum, v) : *sum + v * v;
        }
    }
};

// A recurrence with a product on a large level. Moves a word a point for each vector that is read and for each that is
// written.
template <class T, int FLAT, template <class> class RECURRENCE>
static __global__ void __launch_bounds__(pgi_tuned_tile<T, FLAT>::THREADS, pgi_tuned_tile<T, FLAT>::BLOCKS)
    pgi_recurrence_tile_kernel(const pgi_tile_job<T> a, const pgi_vectors g, double *partials, pgi_state *state)
{
    PGI_UNLESS_DONE(state);
    typedef RECURRENCE<T> point;
    typedef pgi_tuned_tile<T, FLAT> tuned;
    enum { ROWS = tuned::ROWS, VECTORS = point::VECTORS, DOTS = point::DOTS, NORM = point::NORM };
    PGI_DYNAMIC_SHARED(T, shared);
    const pgi_krylov_steps<T> c(state);
    const pgi_tile_place<T, FLAT> p(a, blockIdx.x);
    const int left = a.b.axis[2].n - p.begin[2], count = left < a.tiling.own[2] ? left : a.tiling.own[2];
    const pgi_tile_sums<T, FLAT> weighted(a.b, p);
    double norm = 0;
    pgi_tile_vectors<T, FLAT, point> vectors(g, p);
    double sums[4 + DOTS] = {0};
    pgi_march_tile<T, FLAT, false>(
        a, p, shared, count, [](int) {},
        [&](int q, const T(&residual)[ROWS][2], const T(&first)[ROWS][2]) {
            T v[VECTORS][ROWS][2];
            pgi_term<T> dot[2 * ROWS][DOTS];
#pragma unroll
            for (int e = 0; e < (VECTORS - 1) * 2 * ROWS; e++) {
                const int m = e / (2 * ROWS) + 1, r = e / 2 % ROWS;
                v[m][r][e & 1] = vectors.next[m][r][e & 1];
            }
            const bool more = q + 1 < count;
            if (more) vectors.turn(), vectors.load();
#pragma unroll
            for (int e = 0; e < 2 * ROWS; e++) {
                T values[VECTORS];
#pragma unroll
                for (int m = 1; m < VECTORS; m++) values[m] = v[m][e / 2][e & 1];
                values[0] = first[e / 2][e & 1];
                point::at(c, values, -residual[e / 2][e & 1], (T)0, dot[e]);
#pragma unroll
                for (int m = 1; m < VECTORS; m++) v[m][e / 2][e & 1] = values[m];
            }
            vectors.store(v, more);
            const double w = pgi_weight_of(a.b.axis[2], p.begin[2] + q);
#pragma unroll
            for (int d = 0; d < DOTS; d++)
                weighted.add(w, &sums[4 + d],
                             [&](int e, double weight) { return weight * (double)dot[e][d].x * (double)dot[e][d].y; });
            if constexpr (NORM >= 0) weighted.add_norm(w, v[NORM], &norm);
        });
    for (int q = 0; q < 4; q++) sums[q] = norm;    // pgi_norm_of finds it, whichever it is
    pgi_end_sums<DOTS, (NORM >= 0 ? 0 : 4)>(sums, partials, state, weighted.unit);
}

// Row `slot` of those whose windows begin in [lo, hi): a tile restricts to these. Beyond them: coarse -1.
template <class T> static __device__ inline pgi_taps<T> pgi_taps_of(const pgi_transfer<T> &t, int lo, int hi, int slot)
{
    pgi_taps<T> row;
    for (int q = 0; q < PGI_TAPS; q++) row.w[q] = q == 0 ? (T)1 : (T)0;
    row.first = row.coarse = lo + slot;
    if (t.kind != PGI_SAME) {
        int at = (int)((int64_t)lo * t.nc / t.nf) - 3;
        if (at < 0) at = 0;
        while (at < t.nc && t.taps[at].first < lo) at++;
        if (at + slot < t.nc)
            row = t.taps[at + slot];
        else
            row.first = hi;
    }
    if (row.first >= hi || row.coarse >= t.nc) row.coarse = -1;
    return row;
}

// What a plane of residuals contributes to the coarse planes of a tile: to number `slot` of them and to the next one.
template <class T> struct pgi_contribution {
    int slot;
    T w0, w1;
};

struct pgi_restricted {
    int last;            // planes beyond its own that a slab restricts from
    int wide;            // threads that share a coarse row, as a shift
    double *partials;    // for the norm
    pgi_state *state;
};

// The windows of a tile along each axis, and what its planes contribute, in shared memory.
template <class T, int FLAT> struct pgi_restriction_tables {
    typedef pgi_tuned_tile<T, FLAT> tuned;
    enum { PLANES = tuned::PLANES };
    pgi_contribution<T> planes[PLANES + PGI_TAPS];
    pgi_taps<T> x[tuned::WIDE], y[tuned::HIGH], z[PLANES + 2];

    // end: of the tile's own points; count: planes. Ends with a barrier.
    __device__ void fill(const pgi_tile_place<T, FLAT> &p, const pgi_transfers<T> &tr, const int end[3], int count)
    {
        const int z0 = p.begin[2], own = end[2] - z0;
        for (int q = p.thread; q < tuned::WIDE; q += p.threads) x[q] = pgi_taps_of(tr.axis[0], p.begin[0], end[0], q);
        for (int q = p.thread; q < p.high; q += p.threads) y[q] = pgi_taps_of(tr.axis[1], p.begin[1], end[1], q);
        for (int q = p.thread; q < own + 2; q += p.threads) z[q] = pgi_taps_of(tr.axis[2], z0, end[2], q);
        __syncthreads();
        for (int q = p.thread; q < count; q += p.threads) {
            const int near = (int)((int64_t)q * tr.axis[2].nc / tr.axis[2].nf) - 3;
            pgi_contribution<T> plane = {0, 0, 0};
            for (int m = near > 0 ? near : 0;; m++) {
                const int in = z0 + q - z[m].first, next = z0 + q - z[m + 1].first;
                if (z[m].coarse < 0 || in < 0) break;
                plane.slot = m;
                plane.w0 = in < PGI_TAPS ? z[m].w[in] : (T)0;
                plane.w1 = z[m + 1].coarse >= 0 && next >= 0 && next < PGI_TAPS ? z[m + 1].w[next] : (T)0;
                if (plane.w0 != 0) break;
            }
            planes[q] = plane;
        }
    }
    // Whether window q begins at the even point 2 q and has the weights of window 0, two or three
    static __device__ bool alike(const pgi_taps<T> *taps, int q, int begin)
    {
        const pgi_taps<T> &t = taps[q];
        bool same = t.first == begin + 2 * q && t.w[PGI_TAPS - 1] == 0;
        for (int e = 0; e < PGI_TAPS - 1; e++) same = same && t.w[e] == taps[0].w[e];
        return t.coarse < 0 || same;
    }
    // Whether all windows of rows and columns are alike. One barrier.
    __device__ bool regular(const pgi_tile_place<T, FLAT> &p) const
    {
        bool is = true;
        for (int q = p.thread; q < tuned::WIDE && is; q += p.threads)
            is = q < tuned::WIDE / 2 ? alike(x, q, p.begin[0]) : x[q].coarse < 0;
        for (int q = p.thread; q < p.high && is; q += p.threads)
            is = q < p.high / 2 ? alike(y, q, p.begin[1]) : y[q].coarse < 0;
        return __syncthreads_and(is && x[0].coarse >= 0 && y[0].coarse >= 0) != 0;
    }
};

// Restricts the planes of a tile as they come: sums along z in registers; a coarse plane that is complete goes to
// shared memory, and is restricted along x and y in the next step. Where the windows are alike, a thread's pairs of
// columns and rows have a coarse point each: a third column is the next lane's, a third row the next warp's.
template <class T, int FLAT> struct pgi_plane_restriction {
    typedef pgi_tuned_tile<T, FLAT> tuned;
    typedef typename pgi_two<T>::type T2;
    enum { ROWS = tuned::ROWS, SUM_PITCH = tuned::SUM_PITCH, MAY = !FLAT && sizeof(T) == 8 };
    const pgi_tile_place<T, FLAT> &p;
    const pgi_restriction_tables<T, FLAT> &tables;
    const pgi_grid coarse_f;
    T *const sums;
    const int plane, wide, most;    // size of a plane of sums; see pgi_restricted; most taps along x and y
    bool regular, third_x, third_y;
    T sum[ROWS][2], following[ROWS][2], pending;
    int open, ready;    // the first coarse plane under way, and the one to be restricted along x and y

    __device__ pgi_plane_restriction(const pgi_tile_place<T, FLAT> &place, const pgi_restriction_tables<T, FLAT> &t,
                                     const pgi_grid &f, T *shared, int size, int across, int taps)
        : p(place), tables(t), coarse_f(f), sums(shared), plane(size), wide(across), most(taps), pending(0), open(0),
          ready(-1)
    {
        regular = MAY && t.regular(p);    // in f32 it costs registers that are not there
        third_x = t.x[0].w[2] != 0, third_y = t.y[0].w[2] != 0;
#pragma unroll
        for (int e = 0; e < 2 * ROWS; e++) sum[e / 2][e & 1] = following[e / 2][e & 1] = 0;
    }
    __device__ void store(int r, int at, T v) const    // the coarse point of rows r and r + 1
    {
        const int i = tables.x[p.tx / 2].coarse, j = tables.y[(p.ty + r) / 2].coarse;
        if (i >= 0 && j >= 0) pgi_data<T>(coarse_f)[i + j * coarse_f.sj + tables.z[at].coarse * coarse_f.sk] = v;
    }
    __device__ void next_sums()
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < 2; c++) sum[r][c] = following[r][c], following[r][c] = 0;
    }
    __device__ void finish_regular()
    {
        const T *const wx = tables.x[0].w, *const wy = tables.y[0].w;
        T line[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            line[r] = wx[0] * sum[r][0] + wx[1] * sum[r][1];
            if (third_x) line[r] += wx[2] * __shfl_down_sync(0xffffffffu, sum[r][0], 1);
        }
        next_sums();
#pragma unroll
        for (int r = 0; r < ROWS; r += 2) {
            T v = wy[0] * line[r] + wy[1] * line[r + 1 < ROWS ? r + 1 : r];
            if (third_y && r + 2 < ROWS) v += wy[2] * line[r + 2 < ROWS ? r + 2 : r];
            if (third_y && r + 2 == ROWS)
                pending = v;
            else
                store(r, open, v);
        }
        if (third_y) sums[(open & 1) * plane + p.thread] = line[0];
        ready = third_y ? open : -1;
        open++;
    }
    __device__ void finish()    // the first coarse plane under way is complete
    {
        if (MAY && regular) {
            finish_regular();
            return;
        }
        T *const to = sums + (open & 1) * plane + p.ty * SUM_PITCH + p.tx;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            T2 v;
            v.x = sum[r][0], v.y = sum[r][1];
            *(T2 *)(to + r * tuned::SUM_STEP) = v;
        }
        next_sums();
        ready = open++;
    }
    template <int TAPS> __device__ void along_x_and_y() const
    {
        for (int q = p.thread; q < p.high << wide; q += p.threads) {
            const pgi_taps<T> &xt = tables.x[q & ((1 << wide) - 1)], &yt = tables.y[q >> wide];
            if (xt.coarse < 0 || yt.coarse < 0) continue;
            const T *const from =
                sums + (ready & 1) * plane + (yt.first - p.begin[1]) * SUM_PITCH + xt.first - p.begin[0];
            T v = 0;
#pragma unroll
            for (int j = 0; j < TAPS; j++) {
                T line = 0;
#pragma unroll
                for (int o = 0; o < TAPS; o++) line += xt.w[o] * from[j * SUM_PITCH + o];
                v += yt.w[j] * line;
            }
            pgi_data<T>(coarse_f)[xt.coarse + yt.coarse * coarse_f.sj + tables.z[ready].coarse * coarse_f.sk] = v;
        }
    }
    __device__ void restrict_ready()
    {
        if (ready < 0) return;
        if (MAY && regular)
            store(ROWS - 2, ready,
                  pending + tables.y[0].w[2] * sums[(ready & 1) * plane + (p.thread + tuned::LANES) % p.threads]);
        else if (most <= 2)
            along_x_and_y<2>();
        else if (most == 3)
            along_x_and_y<3>();
        else
            along_x_and_y<PGI_TAPS>();
        ready = -1;
    }
    __device__ void add(int q, const T (&residual)[ROWS][2])
    {
        const pgi_contribution<T> to = tables.planes[q];
        if (open < to.slot) finish();
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                sum[r][c] += to.w0 * residual[r][c];
                following[r][c] += to.w1 * residual[r][c];
            }
    }
    __device__ void finish_all()
    {
        while (ready >= 0 || tables.z[open].coarse >= 0) {
            __syncthreads();
            restrict_ready();
            if (tables.z[open].coarse >= 0) finish();
        }
    }
};

// Computes f = R (rhs - A u) on the coarse level, and (NORM) the norm of rhs - A u. Moves 2 1/8 words a fine point.
// Nothing overlaps. As a run-time flag NORM takes 2 to 4 % of a V-cycle.
template <class T, int FLAT, int NORM>
static __global__ void __launch_bounds__(pgi_tuned_tile<T, FLAT>::THREADS, pgi_tuned_tile<T, FLAT>::BLOCKS)
    pgi_restrict_residual_tile_kernel(const pgi_tile_job<T> a, const pgi_transfers<T> tr, pgi_grid coarse_f,
                                      const pgi_restricted job)
{
    PGI_UNLESS_DONE(a.b.state);
    typedef pgi_tuned_tile<T, FLAT> tuned;
    PGI_DYNAMIC_SHARED(T, shared);
    __shared__ pgi_restriction_tables<T, FLAT> tables;
    const pgi_tile_place<T, FLAT> p(a, blockIdx.x);
    const pgi_tile_layout<T, FLAT> size(p.high);
    int end[3];    // of the tile's own points
    for (int d = 0; d < 3; d++) {
        const int n = a.b.axis[d].n, next = p.begin[d] + a.tiling.own[d];
        end[d] = next < n && p.begin[d] / a.tiling.own[d] < a.tiling.tiles[d] - 1 ? next : n;
    }
    const int own = end[2] - p.begin[2], count = own + job.last;
    for (int q = p.thread; q < 2 * size.sum; q += p.threads) shared[size.sums + q] = 0;
    tables.fill(p, tr, end, count);
    const int most = tr.axis[0].most_taps > tr.axis[1].most_taps ? tr.axis[0].most_taps : tr.axis[1].most_taps;
    pgi_plane_restriction<T, FLAT> restriction(p, tables, coarse_f, shared + size.sums, size.sum, job.wide, most);
    pgi_norm_sum<T, tuned::ROWS> norm = p.norm_of(a.b, NORM, p.before(end[0], end[1]));
    pgi_march_tile<T, FLAT, true>(
        a, p, shared, count, [&](int) { restriction.restrict_ready(); },
        [&](int q, const T(&residual)[tuned::ROWS][2], const T(&)[tuned::ROWS][2]) {
            if (NORM && q < own) p.add_to(norm, a.b, p.begin[2] + q, residual);
            restriction.add(q, residual);
        });
    restriction.finish_all();
    if (NORM) pgi_finish_norm(norm.sum, job.partials, job.state);
}

// ---- transfers of full multigrid ----

// A lane has columns 32 apart: so any row is as good as an aligned one.
enum {
    PGI_TILE_WARPS = PGI_BLOCK / 32,
    PGI_TILE_TAPS = 6,              // of the longest window
    PGI_TILE_OPEN = 4,              // most windows that a fine point lies in
    PGI_TILE_PLANES = 96,           // coarse planes of a restriction's tile
    PGI_TILE_STEPS = 208,           // and fine ones
    PGI_INTERPOLATE_PLANES = 128    // fine planes of an interpolation's tile
};

// The windows of a tile's coarse points along an axis, their firsts counted from the tile's first fine point; weights
// beyond a window are 0.
template <class T, int POINTS> struct pgi_tile_windows {
    T w[PGI_TILE_TAPS][POINTS];
    int first[POINTS], count[POINTS];
};
// The same for any number of points
template <class T> struct pgi_windows {
    T *w;
    int *first, *count, points;
    template <int POINTS> __device__ explicit pgi_windows(pgi_tile_windows<T, POINTS> &t)
        : w(&t.w[0][0]), first(t.first), count(t.count), points(POINTS)
    {
    }
    // Window m is that of coarse point J.
    __device__ void find(const pgi_transfer<T> &t, const pgi_axis<T> &fine, const pgi_axis<T> &coarse, int J,
                         int average, int m) const
    {
        pgi_window<T> one;
        pgi_restriction(t, fine, coarse, J, average, &one);
        pgi_trim(&one);
        first[m] = one.first;
        count[m] = one.count;
        for (int q = 0; q < PGI_TILE_TAPS; q++) w[q * points + m] = q < one.count ? one.w[q] : (T)0;
    }
    // Counts the firsts from the least one, with a warp. Returns its index, which may lie beyond an end of a periodic
    // axis.
    __device__ int align(const pgi_transfer<T> &t, int own) const
    {
        const int lane = (int)threadIdx.x, origin = first[0];
        int least = 0;
        __syncwarp();
        for (int m = lane; m < own; m += 32) {
            const int expected = (int)((int64_t)m * t.mf / t.mc);
            int at = first[m] - origin;
            if (t.periodic) at += at < expected - t.nf / 2 ? t.nf : at > expected + t.nf / 2 ? -t.nf : 0;
            first[m] = at;
            least = at < least ? at : least;
        }
        PGI_ROLLED
        for (int step = 16; step > 0; step /= 2) {
            const int other = __shfl_xor_sync(0xffffffffu, least, step);
            least = other < least ? other : least;
        }
        for (int m = lane; m < own; m += 32) first[m] -= least;
        __syncwarp();
        return origin + least;
    }
};

// What a fine plane gives to the coarse planes that are open, and how many of them it completes.
template <class T> struct pgi_tile_step {
    T w[PGI_TILE_OPEN];
    int completes;
};

template <class T, int POINTS>
static __device__ inline pgi_tile_step<T> pgi_tile_step_of(const pgi_tile_windows<T, POINTS> &z, int count, int k)
{
    pgi_tile_step<T> s;
    int complete = 0, last = 0;
    s.completes = 0;
    PGI_ROLLED
    for (int m = 0; m < count; m++) {    // planes are completed in order
        const int end = z.first[m] + z.count[m] - 1;
        last = end > last ? end : last;
        complete += last < k;
        s.completes += last == k;
    }
    for (int a = 0; a < PGI_TILE_OPEN; a++) {
        const int m = complete + a, q = m < count ? k - z.first[m] : -1;
        s.w[a] = q >= 0 && q < z.count[m] ? z.w[q][m] : (T)0;
    }
    return s;
}

template <class T, int ROWS> struct pgi_restrict_memory {
    enum {
        FLAT = ROWS == 1,
        COLUMNS = 16 / sizeof(T),
        WIDTH = 32 * COLUMNS,
        ODD = WIDTH / 2 + 64 / sizeof(T),
        HEIGHT = PGI_TILE_WARPS * ROWS
    };
    T complete[HEIGHT][ODD + WIDTH / 2], lines[FLAT ? 1 : HEIGHT][WIDTH];
    pgi_tile_windows<T, WIDTH> x[FLAT ? PGI_TILE_WARPS : 1];
    pgi_tile_windows<T, HEIGHT> y;
    pgi_tile_windows<T, PGI_TILE_PLANES> z;
    pgi_tile_step<T> steps[PGI_TILE_STEPS];
    int origin[PGI_TILE_WARPS + 2];    // along x, by warp where there is no y; along y and z
};

// Works out the windows of a tile, and what each of its fine planes gives. Apart from the kernel, whose registers are
// the sums of its march.
template <class T, int ROWS>
static __device__ inline void pgi_prepare_restriction(const pgi_box<T> &bf, const pgi_box<T> &bc,
                                                      const pgi_transfers<T> &tr, const int J[3], const int own[3],
                                                      int average, pgi_restrict_memory<T, ROWS> *s)
{
    enum { FLAT = ROWS == 1 };
    const int lane = (int)threadIdx.x, warp = (int)threadIdx.y, thread = lane + 32 * warp;
    // Each axis begins with threads of its own, so that all are worked out at the same time, by one copy of the code.
    PGI_ROLLED
    for (int a = 0; a < 3; a++) {
        const pgi_windows<T> windows = a == 0   ? pgi_windows<T>(s->x[FLAT ? warp : 0])
                                       : a == 1 ? pgi_windows<T>(s->y)
                                                : pgi_windows<T>(s->z);
        const int first = a == 1 ? thread ^ 128 : a == 2 ? PGI_BLOCK - 1 - thread : FLAT ? lane : thread;
        for (int m = first; m < own[a]; m += FLAT && a == 0 ? 32 : (int)PGI_BLOCK)
            windows.find(tr.axis[a], bf.axis[a], bc.axis[a], J[a] + m, average, m);
    }
    __syncthreads();
    PGI_ROLLED
    for (int a = 0; a < 3; a++) {
        const pgi_windows<T> windows = a == 0   ? pgi_windows<T>(s->x[FLAT ? warp : 0])
                                       : a == 1 ? pgi_windows<T>(s->y)
                                                : pgi_windows<T>(s->z);
        if (own[a] < 1 || (a == 0 && FLAT ? false : warp != a)) continue;
        const int origin = windows.align(tr.axis[a], own[a]);
        if (lane == 0) s->origin[a == 0 ? warp : PGI_TILE_WARPS + a - 1] = origin;
    }
    __syncthreads();
    for (int k = thread; k < PGI_TILE_STEPS; k += PGI_BLOCK) s->steps[k] = pgi_tile_step_of(s->z, own[2], k);
    __syncthreads();
}

// Computes f = R r   Moves 1 1/8 words a fine point   Covers a tile of coarse columns a block, marching along z, ROWS
// fine rows a warp; ROWS 1: there is no y, and every warp has a tile   Overlap: none
// Sums along z are kept in registers, for each of OPEN coarse planes that a fine plane gives to. Of a complete plane,
// warps sum their rows along x, then the block sums columns along y. Lanes read columns 32 apart, so that any row is
// as good as an aligned one; in shared memory odd columns lie apart, half the banks further along.
template <class T, int OPEN, int TAPS, int ROWS> static __global__ void __launch_bounds__(PGI_BLOCK, ROWS == 1 ? 3 : 2)
    pgi_restrict_tile_kernel(const __grid_constant__ pgi_box<T> bf, const __grid_constant__ pgi_box<T> bc,
                             const __grid_constant__ pgi_transfers<T> tr, pgi_grid r, pgi_grid f, int average,
                             pgi_tiling h)
{
    PGI_UNLESS_DONE(bf.state);
    typedef pgi_restrict_memory<T, ROWS> memory;
    enum {
        FLAT = memory::FLAT,
        COLUMNS = memory::COLUMNS,
        WIDTH = memory::WIDTH,
        ODD = memory::ODD,
        HEIGHT = memory::HEIGHT
    };
    PGI_DYNAMIC_SHARED(memory, s);
    const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
    int J[3], own[3];    // of the tile's coarse points
    pgi_tile_begin(h, blockIdx.x, J);
    if (FLAT) J[0] = J[0] * PGI_TILE_WARPS + warp * h.own[0];
    for (int a = 0; a < 3; a++) {
        const int left = bc.axis[a].n - J[a];
        own[a] = left < h.own[a] ? left : h.own[a];
    }
    const pgi_tile_windows<T, WIDTH> &x = s->x[FLAT ? warp : 0];
    pgi_prepare_restriction<T, ROWS>(bf, bc, tr, J, own, average, s);
    const int origin[3] = {s->origin[FLAT ? warp : 0], s->origin[PGI_TILE_WARPS], s->origin[PGI_TILE_WARPS + 1]};

    int column[COLUMNS], row[ROWS];    // offsets in a plane
    for (int c = 0; c < COLUMNS; c++)
        column[c] = pgi_nearest(origin[0] + lane + 32 * c, bf.axis[0].n, bf.axis[0].periodic);
    for (int q = 0; q < ROWS; q++)
        row[q] = FLAT ? 0 : (int)r.sj * pgi_nearest(origin[1] + warp * ROWS + q, bf.axis[1].n, bf.axis[1].periodic);
    const int nz = bf.axis[2].n;
    int k = pgi_nearest(origin[2], nz, bf.axis[2].periodic);
    const T *plane = pgi_data<T>(r) + k * r.sk;
    T *out = pgi_data<T>(f) + J[0] + J[1] * f.sj + J[2] * f.sk;
    T open[OPEN][ROWS][COLUMNS] = {}, ahead[2][ROWS][COLUMNS];
    const auto load = [&](T values[ROWS][COLUMNS]) {
#pragma unroll
        for (int q = 0; q < ROWS; q++) {
            const int begin = (int)pgi_afresh((unsigned)row[q]);    // sums with columns would take registers
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) values[q][c] = pgi_load(plane + (begin + column[c]));
        }
        plane += r.sk;
        if (++k == nz) k = 0, plane -= nz * r.sk;
    };
    const auto place = [](int i) { return (i & 1) * ODD + (i >> 1); };
    const auto finish = [&]() {
#pragma unroll
        for (int q = 0; q < ROWS; q++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                s->complete[warp * ROWS + q][place(lane + 32 * c)] = open[0][q][c];
#pragma unroll
                for (int a = 0; a + 1 < OPEN; a++) open[a][q][c] = open[a + 1][q][c];
                open[OPEN - 1][q][c] = 0;
            }
        __syncwarp();
        PGI_ROLLED
        for (int m = lane; m < own[0]; m += 32) {
            T line[ROWS] = {};
            const int first = x.first[m];
#pragma unroll
            for (int a = 0; a < TAPS; a++) {    // beyond the window the weight is 0, and any point will do
                const T w = x.w[a][m];
                const int at = place(first + a < WIDTH ? first + a : WIDTH - 1);
#pragma unroll
                for (int q = 0; q < ROWS; q++) line[q] += w * s->complete[warp * ROWS + q][at];
            }
            if (FLAT) out[m] = line[0];
#pragma unroll
            for (int q = 0; q < ROWS && !FLAT; q++) s->lines[warp * ROWS + q][m] = line[q];
        }
        __syncwarp();
        if (!FLAT) {
            __syncthreads();
            PGI_ROLLED
            for (int j = warp; j < own[1]; j += PGI_TILE_WARPS) {
                const int first = s->y.first[j];
                PGI_ROLLED
                for (int m = lane; m < own[0]; m += 32) {
                    T sum = 0;
#pragma unroll
                    for (int b = 0; b < TAPS; b++)
                        sum += s->y.w[b][j] * s->lines[first + b < HEIGHT ? first + b : HEIGHT - 1][m];
                    out[m + j * f.sj] = sum;
                }
            }
            __syncthreads();
        }
        out += f.sk;
    };
    int planes = 0;
    PGI_ROLLED
    for (int m = 0; m < own[2]; m++) {
        const int end = s->z.first[m] + s->z.count[m];
        planes = end > planes ? end : planes;
    }
    load(ahead[0]);
    if (planes > 1) load(ahead[1]);
    for (int step = 0; step < planes; step += 2) {
#pragma unroll
        for (int b = 0; b < 2; b++) {
            if (step + b >= planes) break;
#pragma unroll
            for (int a = 0; a < OPEN; a++) {
                const T w = s->steps[step + b].w[a];
#pragma unroll
                for (int q = 0; q < ROWS; q++)
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++) open[a][q][c] += w * ahead[b][q][c];
            }
            if (step + b + 2 < planes) load(ahead[b]);
            PGI_ROLLED
            for (int left = s->steps[step + b].completes; left > 0; left--) finish();
        }
    }
}

// What cubic interpolation has beyond the y end of a coarse plane: boundary data along x, at fine column i.
template <class T> static __device__ PGI_RARE T pgi_interpolate_end(const pgi_interpolation<T> &p,
                                                                    const pgi_transfer<T> &tx, int q, int i, int plane)
{
    const pgi_state *st = p.state;
    if (!p.coarse_faces || !(p.coarse_faces->mask & st->face_mask & 1u << q)) return 0;
    if (!st->face[q].plane) return pgi_face_value<T>(p.coarse_faces, st, q, 0);
    pgi_cubic<T> x;
    pgi_cubic_of(tx, i, 0, &x);
    T line = 0;
    for (int a = 0; a < 4; a++)
        line += x.w[a] * pgi_face_value<T>(p.coarse_faces, st, q, x.j[a] + (int64_t)p.nx * plane);
    return line;
}

// The first of the four coarse points that fine point i is interpolated from, which follow each other; -1: the low
// face. Perhaps beyond the ends of a periodic axis.
template <class T> static __device__ inline int pgi_cubic_begin(const pgi_transfer<T> &t, int i, const pgi_cubic<T> &c)
{
    const int expected = (int)((int64_t)i * t.nc / t.nf);
    return c.j[0] - (t.periodic && t.kind != PGI_SAME && c.j[0] > expected + t.nc / 2 ? t.nc : 0);
}

// The weights of four coarse points that follow each other, and the first of them
template <class T> struct pgi_tile_cubic {
    alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) T w[4];
    int begin;
};

template <class T> static __device__ inline pgi_tile_cubic<T> pgi_tile_cubic_of(const pgi_transfer<T> &t, int i)
{
    pgi_tile_cubic<T> to;
    pgi_cubic<T> c;
    i = i < t.nf ? i : t.nf - 1;
    pgi_cubic_of(t, i, 1, &c);
    to.begin = pgi_cubic_begin(t, i, c);
    for (int q = 0; q < 4; q++) to.w[q] = c.w[q];
    return to;
}

// The planes that a fine plane is interpolated from; the last `fresh` of them are not yet at hand.
template <class T> struct pgi_tile_planes {
    alignas(16) T w[4];
    int j[4], fresh;
};

template <class T>
static __device__ inline pgi_tile_planes<T> pgi_tile_planes_of(const pgi_transfer<T> &t, int k, int is_first)
{
    pgi_cubic<T> now, before;
    pgi_cubic_of(t, k, 1, &now);
    pgi_cubic_of(t, k > 0 ? k - 1 : 0, 1, &before);
    pgi_tile_planes<T> p;
    int kept = is_first ? 0 : 4;
    for (; kept > 0; kept--) {
        int same = 1;
        for (int q = 0; q < kept; q++) same = same && now.j[q] == before.j[q + 4 - kept];
        if (same) break;
    }
    p.fresh = 4 - kept;
    for (int q = 0; q < 4; q++) p.j[q] = now.j[q], p.w[q] = now.w[q];
    if (t.kind == PGI_SAME) {
        p.fresh = 1;
        p.w[0] = 0;
        p.w[3] = 1;
    }
    return p;
}

template <class T, int ROWS> struct pgi_interpolate_memory {
    enum {
        FLAT = ROWS == 1,
        COLUMNS = 16 / sizeof(T),
        WIDTH = 32 * COLUMNS * (FLAT ? PGI_TILE_WARPS : 1),
        HEIGHT = FLAT ? 1 : PGI_TILE_WARPS * ROWS,
        TALL = FLAT ? 1 : HEIGHT + 4,
        LONG = WIDTH + 4
    };
    T coarse[2][TALL][LONG], lines[TALL][WIDTH];
    pgi_tile_cubic<T> y[HEIGHT];
    pgi_tile_planes<T> planes[PGI_INTERPOLATE_PLANES];
    int x_begin[WIDTH];
};

// A tile of an interpolation, and what a thread knows of it: some fine columns, 32 apart, of ROWS rows.
template <class T, int ROWS> struct pgi_interpolate_tile {
    typedef pgi_interpolate_memory<T, ROWS> memory;
    enum {
        FLAT = memory::FLAT,
        COLUMNS = memory::COLUMNS,
        WIDTH = memory::WIDTH,
        HEIGHT = memory::HEIGHT,
        ACROSS = FLAT ? PGI_BLOCK : 32,    // threads that copy a row
        ALONG = FLAT ? 1 : PGI_TILE_WARPS
    };
    memory *const s;
    const pgi_interpolation<T> &p;    // apart, as functions that are not inlined see it: the rest stays in registers
    const pgi_transfer<T> &tx;
    const int nx, ny, periodic_y;
    const unsigned mask, fine_mask;            // faces of the coarse and of the fine level that have data
    const int i0, j0, column0, row0;           // the thread's first column and row, and where it copies
    int at[3], own[3];                         // the tile's first fine point, and its size
    int left, bottom, width, height;           // coarse points that it needs of a plane
    T weight[COLUMNS][4];                      // along x, of coarse columns from `from` on
    int from[COLUMNS], column[COLUMNS + 1];    // column: to be copied
    int next_k, next_q;                        // of the plane to be copied next
    T value[4][ROWS][COLUMNS];                 // of the four planes at hand

    __device__ pgi_interpolate_tile(memory *shared, const pgi_interpolation<T> &what, const pgi_box<T> &bf,
                                    const pgi_box<T> &bc, const pgi_transfers<T> &tr, const pgi_tiling &h)
        : s(shared), p(what), tx(tr.axis[0]), nx(bc.axis[0].n), ny(bc.axis[1].n), periodic_y(bc.axis[1].periodic),
          mask(p.fine_faces ? p.coarse_faces->mask & bf.state->face_mask : 0u),
          fine_mask(p.fine_faces ? p.fine_faces->mask & bf.state->face_mask : 0u),
          i0((int)threadIdx.x + (FLAT ? 32 * COLUMNS * (int)threadIdx.y : 0)), j0(FLAT ? 0 : (int)threadIdx.y * ROWS),
          column0((int)threadIdx.x + (FLAT ? 32 * (int)threadIdx.y : 0)), row0(FLAT ? 0 : (int)threadIdx.y)
    {
        const int thread = (int)threadIdx.x + 32 * (int)threadIdx.y;
        pgi_tile_begin(h, blockIdx.x, at);
        for (int a = 0; a < 3; a++) {
            const int rest = bf.axis[a].n - at[a];
            own[a] = rest < h.own[a] ? rest : h.own[a];
        }
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const pgi_tile_cubic<T> x = pgi_tile_cubic_of(tr.axis[0], at[0] + i0 + 32 * c);
            for (int q = 0; q < 4; q++) weight[c][q] = x.w[q];
            from[c] = x.begin;
            if (row0 == 0) s->x_begin[i0 + 32 * c] = x.begin;
        }
        for (int m = thread; m < HEIGHT; m += PGI_BLOCK) s->y[m] = pgi_tile_cubic_of(tr.axis[1], at[1] + m);
        for (int m = thread; m < own[2]; m += PGI_BLOCK)
            s->planes[m] = pgi_tile_planes_of(tr.axis[2], at[2] + m, m == 0);
        __syncthreads();
        left = s->x_begin[0], bottom = s->y[0].begin, width = s->x_begin[own[0] - 1] + 4 - left;
        height = FLAT ? 1 : s->y[own[1] - 1].begin + 4 - bottom;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) from[c] = i0 + 32 * c < own[0] ? from[c] - left : 0;
#pragma unroll
        for (int c = 0; c <= COLUMNS; c++) column[c] = pgi_wrap(left + column0 + ACROSS * c, nx, bc.axis[0].periodic);
        next_k = 0, next_q = 4 - s->planes[0].fresh;
#pragma unroll
        for (int e = 0; e < 4 * ROWS * COLUMNS; e++) value[e / (ROWS * COLUMNS)][e / COLUMNS % ROWS][e % COLUMNS] = 0;
    }
    // Asks for the next plane that will be needed.
    __device__ void fetch(T (*to)[memory::LONG])
    {
        if (next_k < own[2]) {
            const int plane = s->planes[next_k].j[next_q];
            for (int b = row0; b < height && plane >= 0; b += ALONG) {
                const int j = pgi_wrap(bottom + b, ny, periodic_y);
                if (j < 0) continue;
                const T *row = p.v + j * p.sj + plane * p.sk;
#pragma unroll
                for (int c = 0; c <= COLUMNS; c++) {
                    const int m = column0 + ACROSS * c, i = left + m;
                    if (m >= width) break;
                    if (column[c] >= 0)
                        pgi_copy_async<sizeof(T), 0>(&to[b][m], row + column[c]);
                    else    // beyond an end: boundary data
                        to[b][m] =
                            (i == -1 && mask & 1) || (i == nx && mask & 2)
                                ? pgi_face_value<T>(p.coarse_faces, p.state, i < 0 ? 0 : 1, j + (int64_t)ny * plane)
                                : (T)0;
                }
            }
            while (next_k < own[2] && ++next_q == 4) {
                next_k++;
                if (next_k < own[2]) next_q = 3 - s->planes[next_k].fresh;
            }
        }
        pgi_copy_commit();
    }
    // The rows of a coarse plane at fine columns
    __device__ void along_x(const T (*coarse)[memory::LONG], int plane) const
    {
        for (int b = row0; b < height && plane >= 0; b += ALONG) {
            const T *const line = coarse[b];
            const int inside = pgi_wrap(bottom + b, ny, periodic_y) >= 0, q = bottom + b == -1   ? 2
                                                                              : bottom + b == ny ? 3
                                                                                                 : -1;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                T sum = 0;
                if (inside) {
#pragma unroll
                    for (int a = 0; a < 4; a++) sum += weight[c][a] * line[from[c] + a];
                } else if (q >= 0 && i0 + 32 * c < own[0]) {
                    sum = pgi_interpolate_end(p, tx, q, at[0] + i0 + 32 * c, plane);
                }
                s->lines[b][i0 + 32 * c] = sum;
            }
        }
    }
    // The newest plane, of these rows at fine ones; beyond the end of z the boundary data.
    __device__ void along_y(T (&to)[ROWS][COLUMNS], int plane) const
    {
        if (plane < 0) {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const int i = at[0] + i0 + 32 * c, j = at[1] + j0 + r;
                    to[r][c] = fine_mask >> (4 - 1 - plane) & 1 && i0 + 32 * c < own[0] && j0 + r < own[1]
                                   ? pgi_face_value<T>(p.fine_faces, p.state, 4 - 1 - plane, i + (int64_t)p.fine_nx * j)
                                   : (T)0;
                }
        } else if (FLAT) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) to[0][c] = s->lines[0][i0 + 32 * c];
        } else if (j0 < own[1]) {
            int first = s->y[j0].begin;    // of four rows at hand
            T row[4][COLUMNS];
#pragma unroll
            for (int b = 0; b < 4; b++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) row[b][c] = s->lines[first - bottom + b][i0 + 32 * c];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const pgi_tile_cubic<T> y = s->y[j0 + r < own[1] ? j0 + r : own[1] - 1];
                for (; first < y.begin; first++)
#pragma unroll
                    for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
                        for (int b = 0; b < 3; b++) row[b][c] = row[b + 1][c];
                        row[3][c] = s->lines[first + 4 - bottom][i0 + 32 * c];
                    }
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    T sum = 0;
#pragma unroll
                    for (int b = 0; b < 4; b++) sum += y.w[b] * row[b][c];
                    to[r][c] = sum;
                }
            }
        }
    }
    // Plane k of the fine level
    __device__ void store(int k, T *out, int64_t sj, int add) const
    {
        const T w0 = s->planes[k].w[0], w1 = s->planes[k].w[1], w2 = s->planes[k].w[2], w3 = s->planes[k].w[3];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                T sum = w0 * value[0][r][c];
                sum += w1 * value[1][r][c];
                sum += w2 * value[2][r][c];
                sum += w3 * value[3][r][c];
                if (i0 + 32 * c >= own[0] || j0 + r >= own[1]) continue;
                T *const to = out + 32 * c + r * sj;
                *to = add ? *to + sum : sum;
            }
    }
};

// Computes u = (u +) cubic interpolant of v. Moves 1 1/8 words a fine point, and covers a tile of fine columns a block,
// marching along z, ROWS fine rows a warp; ROWS 1: there is no y, and the warps lie side by side. Nothing overlaps.
// A plane of v comes to shared memory while the ones before are at work; there it is interpolated along x, then along
// y to registers, where the four planes wait that a fine one is interpolated from.
template <class T, int ROWS> static __global__ void __launch_bounds__(PGI_BLOCK, 2)
    pgi_interpolate_tile_kernel(pgi_box<T> bf, pgi_box<T> bc, const __grid_constant__ pgi_transfers<T> tr,
                                const pgi_faces *ff, const pgi_faces *fc, pgi_grid u, pgi_grid gv, int add,
                                pgi_tiling h)
{
    PGI_UNLESS_DONE(bf.state);
    typedef pgi_interpolate_memory<T, ROWS> memory;
    PGI_DYNAMIC_SHARED(memory, s);
    const pgi_interpolation<T> p = pgi_interpolation_of(bf.state, ff, fc, bf.axis[0].n, bc, gv);
    pgi_interpolate_tile<T, ROWS> t(s, p, bf, bc, tr, h);
    t.fetch(s->coarse[0]);
    t.fetch(s->coarse[1]);
    T *out = pgi_data<T>(u) + t.at[0] + t.i0 + (t.at[1] + t.j0) * u.sj + t.at[2] * u.sk;
    int slot = 0;
    for (int k = 0; k < t.own[2]; k++, out += u.sk) {
        for (int fresh = 4 - s->planes[k].fresh; fresh < 4; fresh++, slot = 1 - slot) {
            const int plane = s->planes[k].j[fresh];
            pgi_copy_wait<1>();
            __syncthreads();
            t.along_x(s->coarse[slot], plane);
            __syncthreads();
            t.fetch(s->coarse[slot]);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < memory::COLUMNS; c++)
#pragma unroll
                    for (int e = 0; e < 3; e++) t.value[e][r][c] = t.value[e + 1][r][c];
            t.along_y(t.value[3], plane);
        }
        t.store(k, out, u.sj, add);
    }
}

// ---- launchers ----

template <class T>
static void pgi_cuda_jacobi(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, double omega, pgi_grid out)
{
    const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
    PGI_LAUNCH_EARLY(s, h.blocks, pgi_threads(h), 0, pgi_jacobi_kernel<T>, pgi_box_of(l, T()), u, rhs, (T)omega, out,
                     h);
}

template <class T>
static void pgi_cuda_red_black(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, pgi_omega omega, int reversed)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const int seam[3] = {b.axis[0].seam, b.axis[1].seam, b.axis[2].seam};
    for (int step = 0; step < 8; step++) {
        pgi_colour c;
        c.seams = reversed ? 7 - step : step;
        if (!pgi_has_seams(seam, c.seams)) continue;
        for (int a = 0; a < 3; a++) {
            const int on_seam = c.seams >> a & 1;
            c.lo[a] = on_seam ? l->n[a] - 1 : 0;
            c.hi[a] = on_seam ? l->n[a] : l->n[a] - seam[a];
        }
        const pgi_shape h = pgi_shape_of(s, c.hi[0] - c.lo[0], c.hi[1] - c.lo[1], c.hi[2] - c.lo[2], PGI_MARCH, 2);
        for (int pass = 0; pass < 2; pass++) {
            c.parity = reversed ? 1 - pass : pass;
            PGI_LAUNCH_EARLY(s, h.blocks, pgi_threads(h), 0, pgi_red_black_kernel<T>, b, u, rhs,
                             (T)(pass ? omega.second : omega.first), c, h);
        }
    }
}

// Whether an offset inside a plane is an int
template <class T> static int pgi_plane_fits(const pgi_grid &g, const int n[3])
{
    return ((int64_t)(n[1] - 1) * g.sj + n[0]) * (int64_t)sizeof(T) <= INT32_MAX;
}

// Tiles along an axis: each covers `span` points, and begins `own` after the one before. A closed axis needs no halo
// beyond its ends.
static int pgi_tiles_of(int n, int periodic, int span, int own)
{
    return periodic ? (n + own - 1) / own : n <= span ? 1 : 1 + (n - span + own - 1) / own;
}

// Divides n points into tiles of at most own[0] by own[1] columns, of which a multiprocessor holds `resident`. Few
// planes a tile fill the device, many spare the steps before the first one: the least work in sequence counts.
static int64_t pgi_plan_tiles(const pg_solver *s, pgi_tiling *h, const int n[3], const int own[2], int side_by_side,
                              int most, double steps_a_plane, int steps_before, int resident)
{
    const int span = own[0] * side_by_side;
    h->tiles[0] = (n[0] + span - 1) / span;
    h->tiles[1] = (n[1] + own[1] - 1) / own[1];
    h->own[0] = (n[0] + h->tiles[0] * side_by_side - 1) / (h->tiles[0] * side_by_side);    // as equal as can be
    h->own[1] = (n[1] + h->tiles[1] - 1) / h->tiles[1];
    h->own[2] = 1;
    const int64_t columns = (int64_t)h->tiles[0] * h->tiles[1], together = (int64_t)s->multiprocessors * resident;
    double best = 1e300;
    for (int planes = 1; planes <= most; planes++) {
        const int64_t blocks = columns * ((n[2] + planes - 1) / planes);
        const double cost = (double)pgi_rounds(blocks, together) * (planes * steps_a_plane + steps_before);
        if (cost > best) continue;
        best = cost;
        h->own[2] = planes;
    }
    h->tiles[2] = (n[2] + h->own[2] - 1) / h->own[2];
    return columns * h->tiles[2];
}

// Chooses the tiles of a residual; reach: points that a tile needs beyond its own. Returns the bytes of shared memory,
// 0: this level takes other kernels. summed: planes of sums too
template <class T, int FLAT> static int pgi_plan_residual(const pg_solver *s, const pgi_level *l, pgi_grid u,
                                                          pgi_rhs rhs, const int reach[3], int summed,
                                                          pgi_tile_job<T> *a, int *high)
{
    typedef pgi_tuned_tile<T, FLAT> tuned;
    const int tables = (tuned::PLANES + PGI_TAPS) * (int)(sizeof(pgi_row<T>) + sizeof(pgi_contribution<T>)) +
                       (tuned::WIDE + tuned::HIGH + tuned::PLANES + 2) * (int)sizeof(pgi_taps<T>);
    const auto bytes = [&](int rows) {
        const pgi_tile_layout<T, FLAT> size(rows);
        return (int)sizeof(T) * (summed ? size.end : size.sums);
    };
    *high = tuned::HIGH;
    while (*high > 16 && bytes(*high) + tables > s->shared_limit) *high /= 2;
    if (bytes(*high) + tables > s->shared_limit) return 0;
    if (!pgi_plane_fits<T>(u, l->n) || (rhs.f.base && !pgi_plane_fits<T>(rhs.f, l->n))) return 0;
    memset(a, 0, sizeof *a);
    a->b = pgi_box_of(l, T());
    a->u = u;
    a->rhs = rhs;
    const int span[2] = {tuned::WIDE, *high};
    pgi_tiling *const h = &a->tiling;
    for (int d = 0; d < 2; d++) {
        h->own[d] = FLAT && d == 1 ? 1 : (span[d] - reach[d]) & ~1;    // pairs of columns stay pairs
        h->tiles[d] = pgi_tiles_of(l->n[d], a->b.axis[d].periodic, span[d], h->own[d]);
    }
    const int64_t columns = (int64_t)h->tiles[0] * h->tiles[1], resident = (int64_t)s->multiprocessors * tuned::BLOCKS;
    double best = 1e300;
    for (int planes = 2; planes <= tuned::PLANES; planes += 2) {
        const int64_t tiles = columns * ((l->n[2] + planes - 1) / planes);
        const double cost = (double)pgi_rounds(tiles, resident) * (planes + reach[2] + 10);
        if (cost < best) best = cost, h->own[2] = planes;
    }
    h->tiles[2] = (l->n[2] + h->own[2] - 1) / h->own[2];
    return bytes(*high);
}

template <class T, class TO, int FLAT>
static int pgi_launch_residual(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, pgi_residual_sinks sinks)
{
    typedef pgi_tuned_tile<T, FLAT> tuned;
    pgi_tile_job<T> a;
    const int reach[3] = {0, 0, 0};
    int high;
    const int bytes = pgi_plan_residual<T, FLAT>(s, l, u, rhs, reach, 0, &a, &high);
    if (!bytes) return 0;
    int64_t blocks = pgi_tiles_in(a.tiling);
    if (sinks.out.base) {
        if (sinks.partials && blocks > s->partials_capacity) return 0;
    } else {    // a norm alone: a block has many tiles, and few partial sums are left
        const int64_t resident = (int64_t)s->multiprocessors * tuned::BLOCKS;
        if (blocks > resident) blocks = resident;
        if (blocks > PGI_REDUCE_BLOCKS) blocks = PGI_REDUCE_BLOCKS;
    }
    enum { BOTH = PGI_STORES | PGI_SUMS, STORES = sizeof(T) == sizeof(TO) ? (int)PGI_STORES : (int)BOTH };
    auto kernel = pgi_residual_tile_kernel<T, TO, FLAT, STORES>;
    if (!sinks.out.base) kernel = pgi_residual_tile_kernel<T, T, FLAT, PGI_SUMS>;
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    PGI_LAUNCH_SHARED(s, blocks, dim3(tuned::LANES, FLAT ? 1 : (unsigned)(high / tuned::ROWS)), bytes, kernel, a,
                      sinks);
    return 1;
}

// Not where the level is small, or where the planes on their way would wrap around a periodic axis twice.
template <class T> static int pgi_fits_tiles(const pgi_level *l)
{
    return l->points >= PGI_PASS_POINTS && l->n[2] >= (pgi_box_of(l, T()).axis[2].periodic ? 8 : 2);
}

// The residual of a large level, stored where r is a grid, and its norm where that is wanted. Returns 0 where the level
// is small or its planes are too large.
template <class T, class TO> static int pgi_cuda_residual_in_tiles(pg_solver *s, const pgi_level *l, pgi_grid u,
                                                                   pgi_rhs rhs, int scaled, pgi_grid r, int with_norm)
{
    if (!pgi_fits_tiles<T>(l)) return 0;
    const pgi_residual_sinks sinks = {r, scaled, with_norm ? s->partials : NULL, s->state};
    return (l->n[1] == 1 ? pgi_launch_residual<T, TO, 1> : pgi_launch_residual<T, TO, 0>)(s, l, u, rhs, sinks);
}

template <class T> static void pgi_cuda_residual(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, pgi_grid r)
{
    if (pgi_cuda_residual_in_tiles<T, T>(s, l, u, rhs, 0, r, 0)) return;
    const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
    PGI_LAUNCH_EARLY(s, h.blocks, pgi_threads(h), 0, (pgi_residual_kernel<T, T>), pgi_box_of(l, T()), u, rhs, 0, r, h);
}

template <class T> static void pgi_cuda_apply(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_grid v)
{
    pgi_cuda_residual<T>(s, l, u, pgi_rhs_of(pgi_no_grid()), v);
}

// In one kernel where levels are small: there it is its launch that takes the time.
template <class T>
static void pgi_cuda_apply_two(pg_solver *s, const pgi_level *l, pgi_grid x, pgi_grid ax, pgi_grid y, pgi_grid ay)
{
    const pgi_rhs none = pgi_rhs_of(pgi_no_grid());
    if (pgi_cuda_residual_in_tiles<T, T>(s, l, x, none, 0, ax, 0)) {
        pgi_cuda_residual<T>(s, l, y, none, ay);
        return;
    }
    const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
    PGI_LAUNCH_EARLY(s, 2 * h.blocks, pgi_threads(h), 0, pgi_apply_two_kernel<T>, pgi_box_of(l, T()), x, ax, y, ay, h);
}

// Blocks of a reduction; few of one that is nearly always over at once.
static int64_t pgi_reduce_blocks(int64_t blocks, int again)
{
    const int64_t most = again ? 4 : PGI_REDUCE_BLOCKS;
    return blocks < most ? blocks : most;
}

template <class T> static void pgi_launch_reduce(pg_solver *s, const pgi_level *l, int source, int partner, pgi_grid x,
                                                 pgi_grid y, pgi_rhs rhs, int again, double diagonal)
{
    const int other = partner == PGI_OTHER, warps = PGI_BLOCK / 32, piece = 32 * (other ? 32 / (int)sizeof(T) : 8);
    const int64_t pieces = (int64_t)((l->n[0] + piece - 1) / piece) * l->n[1] * l->n[2],
                  blocks = (pieces + warps - 1) / warps;
    const auto kernel = source == PGI_RHS ? pgi_reduce_kernel<T, PGI_RHS, 0>
                        : other           ? pgi_reduce_kernel<T, PGI_FIELD, 1>
                                          : pgi_reduce_kernel<T, PGI_FIELD, 0>;
    PGI_LAUNCH_EARLY(s, pgi_reduce_blocks(blocks, again), dim3(32, (unsigned)warps), 0, kernel, pgi_box_of(l, T()),
                     partner, x, y, rhs, s->partials, s->state, again, diagonal);
}

template <class T> static void pgi_cuda_reduce(pg_solver *s, const pgi_level *l, int source, int partner, pgi_grid x,
                                               pgi_grid y, pgi_rhs rhs, int again)
{
    if (again && sizeof(T) == sizeof(float)) return;    // see pgi_rescale
    if (source == PGI_RESIDUAL) {                       // partner: itself
        if (!again && pgi_cuda_residual_in_tiles<T, T>(s, l, x, rhs, 0, pgi_no_grid(), 1)) return;
        const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
        PGI_LAUNCH_EARLY(s, pgi_reduce_blocks(h.blocks, again), pgi_threads(h), 0, pgi_reduce_residual_kernel<T>,
                         pgi_box_of(l, T()), x, rhs, s->partials, s->state, h, again);
        return;
    }
    pgi_launch_reduce<T>(s, l, source, partner, x, y, rhs, again, 0);
}

template <class T> static void pgi_cuda_magnitude(pg_solver *s, const pgi_level *l, pgi_grid u)
{
    const double even = pgi_even_diagonal(pgi_box_of(l, T()));
    if (even > 0) {
        pgi_launch_reduce<T>(s, l, PGI_FIELD, PGI_SELF, u, pgi_no_grid(), pgi_rhs_of(pgi_no_grid()), 0, even);
        return;
    }
    const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
    PGI_LAUNCH_EARLY(s, h.blocks < PGI_REDUCE_BLOCKS ? h.blocks : (int64_t)PGI_REDUCE_BLOCKS, pgi_threads(h), 0,
                     pgi_magnitude_kernel<T>, pgi_box_of(l, T()), u, s->partials, s->state, h);
}

#if PGI_F32
static void pgi_cuda_residual_narrow(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, pgi_grid r32,
                                     int with_norm)
{
    if (with_norm && pgi_cuda_residual_in_tiles<double, float>(s, l, u, rhs, 1, r32, 1)) return;
    if (with_norm) pgi_cuda_reduce<double>(s, l, PGI_RESIDUAL, PGI_SELF, u, pgi_no_grid(), rhs, 0);
    if (pgi_cuda_residual_in_tiles<double, float>(s, l, u, rhs, 1, r32, 0)) return;
    const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
    PGI_LAUNCH_EARLY(s, h.blocks, pgi_threads(h), 0, (pgi_residual_kernel<double, float>), pgi_box_of(l, double()), u,
                     rhs, 1, r32, h);
}
#endif

template <class TF, class TT>
static void pgi_cuda_pointwise(pg_solver *s, const pgi_level *l, pgi_grid from, pgi_grid to, int what)
{
    const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
    PGI_LAUNCH_EARLY(s, h.blocks, pgi_threads(h), 0, (pgi_pointwise_kernel<TF, TT>), from, to, what, l->n[0], l->n[1],
                     l->n[2], s->state, h);
}

template <class T, int FLAT, template <class> class RECURRENCE>
static int pgi_launch_recurrence(pg_solver *s, const pgi_level *l, const pgi_vectors &g)
{
    typedef pgi_tuned_tile<T, FLAT> tuned;
    pgi_tile_job<T> a;
    const int reach[3] = {0, 0, 0};
    int high;
    const int bytes = pgi_plan_residual<T, FLAT>(s, l, g.v[0], pgi_rhs_of(pgi_no_grid()), reach, 0, &a, &high);
    const int64_t blocks = bytes ? pgi_tiles_in(a.tiling) : 0;
    if (!bytes || blocks > s->partials_capacity) return 0;
    const auto kernel = pgi_recurrence_tile_kernel<T, FLAT, RECURRENCE>;
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    PGI_LAUNCH_SHARED(s, blocks, dim3(tuned::LANES, FLAT ? 1 : (unsigned)(high / tuned::ROWS)), bytes, kernel, a, g,
                      s->partials, s->state);
    return 1;
}

template <class T, template <class> class RECURRENCE>
static void pgi_cuda_recurrence(pg_solver *s, const pgi_level *l, const pgi_vectors &g)
{
    typedef RECURRENCE<T> point;
    if constexpr (point::PRODUCT && !point::DIAGONAL)
        if (pgi_fits_tiles<T>(l) &&
            (l->n[1] == 1 ? pgi_launch_recurrence<T, 1, RECURRENCE> : pgi_launch_recurrence<T, 0, RECURRENCE>)(s, l, g))
            return;
    const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
    const int64_t blocks = point::DOTS > 0 || point::NORM >= 0 ? pgi_reduce_blocks(h.blocks, 0) : h.blocks;
    PGI_LAUNCH_EARLY(s, blocks, pgi_threads(h), 0, (pgi_recurrence_kernel<T, RECURRENCE>), pgi_box_of(l, T()), g,
                     s->partials, s->state, h);
}

template <class T> static void pgi_cuda_recur(pg_solver *s, const pgi_level *l, int recurrence, const pgi_vectors &g)
{
    switch (recurrence) {
#define PGI_CASE_(NAME, TYPE)                                                                                          \
    case NAME:                                                                                                         \
        if constexpr (TYPE<T>::NARROW == 0 || sizeof(T) == sizeof(double)) pgi_cuda_recurrence<T, TYPE>(s, l, g);      \
        break;
        PGI_RECURRENCES(PGI_CASE_)
#undef PGI_CASE_
    }
}

template <class T> static void pgi_cuda_fill_zero(pg_solver *s, const pgi_level *l, pgi_grid u)
{
    pgi_cuda_pointwise<T, T>(s, l, pgi_no_grid(), u, PGI_FILL_ZERO);
}

template <class T> static void pgi_cuda_copy(pg_solver *s, const pgi_level *l, pgi_grid from, pgi_grid to)
{
    pgi_cuda_pointwise<T, T>(s, l, from, to, PGI_COPY);
}

template <class T> static void pgi_cuda_subtract_shift(pg_solver *s, const pgi_level *l, pgi_grid u)
{
    pgi_cuda_pointwise<T, T>(s, l, pgi_no_grid(), u, PGI_SUBTRACT_SHIFT);
}

#if PGI_F32
static void pgi_cuda_widen_add(pg_solver *s, const pgi_level *outer, pgi_grid e32, pgi_grid u)
{
    pgi_cuda_pointwise<float, double>(s, outer, e32, u, PGI_WIDEN_ADD);
}

static void pgi_cuda_narrow_rhs(pg_solver *s, const pgi_level *outer, pgi_grid f, const pgi_level *level)
{
    pgi_cuda_pointwise<double, float>(s, outer, f, level->f, PGI_NARROW);
    for (int q = 0; q < 6; q++) {
        const int64_t count = (int64_t)level->n[pgi_plane_axis(q, 0)] * level->n[pgi_plane_axis(q, 1)];
        if (level->plane[q])
            PGI_LAUNCH(s, (count + PGI_BLOCK - 1) / PGI_BLOCK, dim3(PGI_BLOCK), pgi_narrow_face_kernel,
                       (const pgi_state *)s->state, q, (float *)level->plane[q], count);
    }
}
#endif

// Tiles need axes that a window does not wrap around, and offsets in a plane of the finer level that are an int.
template <class T> static int pgi_fits_tiles(const pgi_transfers<T> &tr, const pgi_level *fine, const pgi_grid &g)
{
    for (int a = 0; a < 3; a++) {
        const pgi_transfer<T> &t = tr.axis[a];
        if (t.longest < 1 || t.longest > PGI_TILE_TAPS || t.open > PGI_TILE_OPEN) return 0;
        if (t.kind != PGI_SAME && t.nc < 8) return 0;
    }
    return (fine->n[1] - 1) * g.sj + fine->n[0] <= INT32_MAX;
}

template <class T, int OPEN, int TAPS, int ROWS> static void pgi_launch_restrict(pg_solver *s, const pgi_level *fine,
                                                                                 pgi_grid r, const pgi_level *coarse,
                                                                                 pgi_grid f, int average)
{
    const pgi_transfers<T> &tr = pgi_transfers_of(fine, T());
    // coarse points whose windows lie within so many fine ones
    const auto points_of = [](const pgi_transfer<T> &t, int within) {
        return (int)((within - t.reach) * t.mc / t.mf + 1e-6) + 1;
    };
    typedef pgi_restrict_memory<T, ROWS> memory;
    const auto kernel = pgi_restrict_tile_kernel<T, OPEN, TAPS, ROWS>;
    const int own[2] = {points_of(tr.axis[0], memory::WIDTH), ROWS == 1 ? 1 : points_of(tr.axis[1], memory::HEIGHT)},
              most = points_of(tr.axis[2], PGI_TILE_STEPS), bytes = (int)sizeof(memory);
    pgi_tiling h;
    const int64_t blocks = pgi_plan_tiles(s, &h, coarse->n, own, ROWS == 1 ? (int)PGI_TILE_WARPS : 1,
                                          most < PGI_TILE_PLANES ? most : (int)PGI_TILE_PLANES,
                                          (double)tr.axis[2].mf / tr.axis[2].mc, 10, ROWS == 1 ? 3 : 2);
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    PGI_LAUNCH_SHARED(s, blocks, dim3(32, PGI_TILE_WARPS), bytes, kernel, pgi_box_of(fine, T()),
                      pgi_box_of(coarse, T()), tr, r, f, average, h);
}

template <class T> static void pgi_cuda_restrict_full(pg_solver *s, const pgi_level *fine, pgi_grid r,
                                                      const pgi_level *coarse, pgi_grid f, int average)
{
    const pgi_transfers<T> &tr = pgi_transfers_of(fine, T());
    if (pgi_fits_tiles(tr, fine, r) && (int)sizeof(pgi_restrict_memory<T, 4>) <= s->shared_limit) {
        int few = tr.axis[2].open <= 2;
        for (int a = 0; a < 3; a++) few = few && tr.axis[a].longest <= 3;
        const auto launch = fine->n[1] == 1 ? pgi_launch_restrict<T, 4, 6, 1>
                            : few           ? pgi_launch_restrict<T, 2, 3, 4>
                                            : pgi_launch_restrict<T, 4, 6, 4>;
        launch(s, fine, r, coarse, f, average);
        return;
    }
    const pgi_shape h = pgi_shape_of(s, coarse->n[0], coarse->n[1], coarse->n[2], PGI_PLANES);
    PGI_LAUNCH(s, h.blocks, pgi_threads(h), pgi_restrict_kernel<T>, pgi_box_of(fine, T()), pgi_box_of(coarse, T()),
               pgi_transfers_of(fine, T()), r, f, average, h);
}

template <class T> static void pgi_cuda_restrict_faces(pg_solver *s, const pgi_level *fine, const pgi_level *coarse)
{
    for (int q = 0; q < 6; q++) {
        const int na = coarse->n[pgi_plane_axis(q, 0)], nb = coarse->n[pgi_plane_axis(q, 1)];
        if (coarse->plane[q])
            PGI_LAUNCH(s, ((int64_t)na * nb + PGI_BLOCK - 1) / PGI_BLOCK, dim3(PGI_BLOCK), pgi_restrict_face_kernel<T>,
                       pgi_box_of(fine, T()), pgi_box_of(coarse, T()), pgi_transfers_of(fine, T()),
                       (const void *)fine->plane[q], coarse->plane[q], q, na, nb);
    }
}

template <class T>
static void pgi_cuda_prolong_add(pg_solver *s, const pgi_level *fine, pgi_grid u, const pgi_level *, pgi_grid e)
{
    const pgi_shape h = pgi_shape_of(s, fine->n[0], fine->n[1], fine->n[2], PGI_PLANES);
    const pgi_transfers<T> &tr = pgi_transfers_of(fine, T());
    const auto kernel = tr.axis[2].kind == PGI_SAME ? pgi_prolong_kernel<T, 1> : pgi_prolong_kernel<T, 0>;
    PGI_LAUNCH_EARLY(s, h.blocks, pgi_threads(h), 0, kernel, tr, u, e, fine->n[0], fine->n[1], fine->n[2], h,
                     (const pgi_state *)s->state);
}

template <class T, int ROWS> static void pgi_launch_interpolate(pg_solver *s, const pgi_level *fine, pgi_grid u,
                                                                const pgi_level *coarse, pgi_grid v, int full, int add)
{
    typedef pgi_interpolate_memory<T, ROWS> memory;
    const auto kernel = pgi_interpolate_tile_kernel<T, ROWS>;
    const int own[2] = {memory::WIDTH, memory::HEIGHT}, bytes = (int)sizeof(memory);
    pgi_tiling h;
    const int64_t blocks = pgi_plan_tiles(s, &h, fine->n, own, 1, PGI_INTERPOLATE_PLANES, 1, 8, 2);
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    PGI_LAUNCH_SHARED(s, blocks, dim3(32, PGI_TILE_WARPS), bytes, kernel, pgi_box_of(fine, T()),
                      pgi_box_of(coarse, T()), pgi_transfers_of(fine, T()), full ? fine->faces : NULL,
                      full ? coarse->faces : NULL, u, v, add, h);
}

template <class T> static void pgi_cuda_interpolate(pg_solver *s, const pgi_level *fine, pgi_grid u,
                                                    const pgi_level *coarse, pgi_grid v, int full, int add)
{
    const pgi_transfers<T> &tr = pgi_transfers_of(fine, T());
    if (pgi_fits_tiles(tr, fine, u) && (int)sizeof(pgi_interpolate_memory<T, 4>) <= s->shared_limit) {
        const auto launch = fine->n[1] == 1 ? pgi_launch_interpolate<T, 1> : pgi_launch_interpolate<T, 4>;
        launch(s, fine, u, coarse, v, full, add);
        return;
    }
    const pgi_shape h = pgi_shape_of(s, fine->n[0], fine->n[1], fine->n[2], PGI_PLANES);
    PGI_LAUNCH(s, h.blocks, pgi_threads(h), pgi_interpolate_kernel<T>, pgi_box_of(fine, T()), pgi_box_of(coarse, T()),
               pgi_transfers_of(fine, T()), full ? fine->faces : NULL, full ? coarse->faces : NULL, u, v, add, h);
}

// ---- the plan of a pass ----

// The most fine points beyond the first that a coarse one is restricted from. Coarse cells of two fine ones each begin
// at an even point and reach no further than the tile.
template <class T> static int pgi_reach(const pgi_transfer<T> &t)
{
    return t.kind == PGI_CELLS && !t.adjoint && t.mf == 2 * t.mc ? 0 : t.most_taps - 1;
}

// Red-black passes need two colours, periodic axes that a halo does not wrap around twice, and at least two axes.
template <class T> static int pgi_passes(const pgi_level *l, const pgi_box<T> &b)
{
    const int64_t least = (int64_t)PGI_PASS_POINTS * (l->n[1] == 1 ? 1 : 24 / (int)sizeof(T));    // 24 MB in 3D
    if (l->points < least || l->n[2] < 4 || l->n[0] < 4) return 0;
    for (int a = 0; a < 3; a++)
        if (b.axis[a].periodic && l->n[a] > 1 && (l->n[a] % 2 || l->n[a] < 32)) return 0;
    return 1;
}

// What a pass does, as numbers: the arguments of the kernel's template.
struct pgi_pass_kind {
    int sweeps, head, flat, restricts, warps, resident, rows, ahead;
};

// Chooses tiles and lays out shared memory. Returns the blocks, 0: not enough shared memory.
template <class T> static int64_t pgi_plan_pass(const pg_solver *s, pgi_pass<T> *a, const pgi_pass_kind &kind)
{
    const int halves = 2 * kind.sweeps, stages = halves + kind.restricts, halo = halves + (kind.restricts ? 2 : 0);
    const int flat = kind.flat, team = flat ? 32 : 32 * kind.warps;
    int n[3];
    for (int d = 0; d < 3; d++) n[d] = a->b.axis[d].n;
    const auto skewed = [](const pgi_grid &g) {
        return (g.sj & 1) || (g.sk & 1) || (!g.indirect && (size_t)g.base % (2 * sizeof(T)));
    };
    if (!pgi_plane_fits<T>(a->u, n) || !pgi_plane_fits<T>(a->out, n) || !pgi_plane_fits<T>(a->rhs.f, n)) return 0;
    a->skewed = (kind.head != PGI_FROM_ZERO && skewed(a->u)) || skewed(a->rhs.f);
    const int one = a->skewed ? (int)sizeof(T) : 0;
    a->u_odd[0] = a->u.sj & 1 ? one : 0, a->u_odd[1] = a->u.sk & 1 ? one : 0;
    a->f_odd[0] = a->rhs.f.sj & 1 ? one : 0, a->f_odd[1] = a->rhs.f.sk & 1 ? one : 0;
    const int width = a->skewed ? 62 : 64;
    a->own[0] = width - 2 * halo;
    a->tiles[0] = pgi_tiles_of(n[0], a->b.axis[0].periodic, width, a->own[0]);

    // Blocks side by side share their halo, and wait for each other. Few planes a tile fill the device, many spare
    // halo. What counts: the steps in sequence.
    double best = 1e300;
    for (int cluster = 1; cluster <= (flat ? 1 : s->clusters ? PGI_PASS_CLUSTER : 1); cluster++) {
        const int span = flat ? 1 : cluster * kind.warps * kind.rows, own = flat ? 1 : span - 2 * halo;
        if (own < 1 || !s->together_in[cluster] ||
            (!flat && cluster > 1 && span - kind.warps * kind.rows >= n[1] + 2 * halo))
            continue;
        const int tiles = flat ? 1 : pgi_tiles_of(n[1], a->b.axis[1].periodic, span, own);
        const int64_t columns = (int64_t)a->tiles[0] * tiles * cluster,
                      resident = (int64_t)s->together_in[cluster] * kind.resident * (flat ? kind.warps : 1);
        for (int slabs = 1; slabs <= (n[2] + 3) / 4 && slabs <= 256; slabs++) {
            const int planes = ((n[2] + slabs - 1) / slabs + 1) / 2 * 2;
            if (planes > PGI_PASS_PLANES && slabs < 256) continue;
            const double steps = planes + halves + halo + 2 + (kind.restricts ? (int)PGI_PASS_TAPS : 0),
                         cost = (double)pgi_rounds(columns * slabs, resident) * steps * (cluster > 1 ? 1.05 : 1);
            if (cost >= best) continue;
            best = cost;
            a->cluster = cluster, a->own[1] = own, a->tiles[1] = tiles;
            a->own[2] = planes < PGI_PASS_PLANES ? planes : (int)PGI_PASS_PLANES;
        }
    }
    a->tiles[2] = (n[2] + a->own[2] - 1) / a->own[2];
    const int extent[2] = {64, flat ? 1 : kind.warps * kind.rows};
    for (int d = 0; d < 2 && kind.head == PGI_CORRECTED; d++) {
        const pgi_transfer<T> &t = a->transfer.axis[d];
        a->slots[d] = (int)(((int64_t)extent[d] * t.nc + t.nf - 1) / t.nf) + 6;
    }
    if (flat) a->slots[1] = a->slots[0] ? 1 : 0;
    const int plane = (flat ? 1 : kind.rows * kind.warps) * PGI_PASS_PITCH * (int)sizeof(T),
              planes = a->own[2] + 2 * (stages + halo) + 4, slots = a->slots[0] * a->slots[1];
    int used = ((kind.head == PGI_FROM_ZERO ? 0 : kind.ahead) + stages + kind.ahead) * plane;
    const auto take = [&](int64_t bytes) {
        used = (used + 15) / 16 * 16;
        const int at = used;
        used += (int)((bytes + 15) / 16 * 16);
        return at;
    };
    a->barriers = take(flat ? 0 : 2 * sizeof(uint64_t));
    a->edges = take(flat ? 0 : (int64_t)sizeof(T) * (4 * stages + 1) * (team + 32));
    a->rows = take(kind.restricts ? (int64_t)sizeof(pgi_coupling<T>) * (flat ? 1 : kind.rows * kind.warps) : 0);
    a->weights = take(kind.restricts ? (int64_t)sizeof(T) * 2 * team * (flat ? 1 : kind.rows) : 0);
    a->planes = take((int64_t)sizeof(pgi_coupling<T>) * planes);
    const int corrected = kind.head == PGI_CORRECTED, rows = flat ? 1 : kind.rows * kind.warps;
    a->coarse_rows = take(corrected ? (int64_t)sizeof(pgi_pair<T>) * (64 + rows) : 0);
    a->coarse_planes = take(corrected ? (int64_t)sizeof(pgi_level_pair<T>) * planes : 0);
    a->regular = take(corrected ? 12 * (int64_t)sizeof(T) : 0);
    a->corrections =
        take(corrected ? (int64_t)sizeof(T) * ((kind.ahead + PGI_PASS_COARSE) * slots + 2 + 4 * kind.rows * team) : 0);
    a->bytes = used;
    const int own_sums = kind.restricts ? 2048 : 0;    // pgi_finish_sums has less
    if ((int64_t)used * (flat ? kind.warps : 1) > s->shared_limit - own_sums) return 0;
    const int64_t tiles = (int64_t)a->tiles[0] * a->tiles[1] * a->tiles[2];
    const int64_t blocks = flat ? (tiles + kind.warps - 1) / kind.warps : tiles * a->cluster;
    return a->partials && blocks > s->partials_capacity ? 0 : blocks;
}

template <class T, int SWEEPS, int HEAD, int FLAT, int RESTRICTS = 0, int NORM = 0>
static int pgi_launch_pass(pg_solver *s, pgi_pass<T> *a)
{
    typedef pgi_tuned<T, SWEEPS> tuned;
    const pgi_pass_kind kind = {
        SWEEPS, HEAD, FLAT, RESTRICTS, tuned::THREADS / 32, tuned::BLOCKS, FLAT ? 1 : tuned::ROWS, tuned::AHEAD};
    const auto kernel = pgi_pass_kernel<T, SWEEPS, HEAD, FLAT, RESTRICTS, NORM>;
    const int64_t blocks = pgi_plan_pass(s, a, kind);
    if (!blocks) return 0;
    const int bytes = a->bytes * (FLAT ? kind.warps : 1);
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(32, (unsigned)kind.warps);
    config.dynamicSmemBytes = (size_t)bytes;
    config.stream = s->stream;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = (unsigned)a->cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = a->cluster > 1;
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    PGI_CUDA(s, cudaLaunchKernelEx(&config, kernel, *a));
    return 1;
}

// A pass of two sweeps and the residual, or NULL and no kernel.
template <int WANTED, class T, int HEAD, int FLAT, int RESTRICTS, int NORM>
static int (*pgi_launch_if())(pg_solver *, pgi_pass<T> *)
{
    if constexpr (WANTED)
        return pgi_launch_pass<T, 2, HEAD, FLAT, RESTRICTS, NORM>;
    else
        return NULL;
}

// One pass: sweeps from u. Returns 0 where there is no such pass.
template <class T> static int pgi_cuda_pass(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, pgi_omega omega,
                                            int reversed, int sweeps, int head, const pgi_level *coarse, pgi_grid e,
                                            int restricts, int with_norm)
{
#define PGI_PASS(sweeps, head)                                                                                         \
    {                                                                                                                  \
        pgi_launch_pass<T, sweeps, head, 0>, pgi_launch_pass<T, sweeps, head, 1>                                       \
    }
    typedef int (*launch)(pg_solver *, pgi_pass<T> *);
    const launch plain[2][3][2] = {{PGI_PASS(1, PGI_FROM_U), {}, PGI_PASS(1, PGI_CORRECTED)},
                                   {PGI_PASS(2, PGI_FROM_U), PGI_PASS(2, PGI_FROM_ZERO), {}}};
#undef PGI_PASS
    // From u, with the norm, from 0; in 3D, in 2D. See pgi_pass_restricts
    enum { DOUBLE = sizeof(T) == 8 };
    const launch restricting[3][2] = {
        {pgi_launch_if<!DOUBLE, T, PGI_FROM_U, 0, 1, 0>(), pgi_launch_pass<T, 2, PGI_FROM_U, 1, 1>},
        {NULL, pgi_launch_if<DOUBLE, T, PGI_FROM_U, 1, 1, 1>()},
        {pgi_launch_if<DOUBLE, T, PGI_FROM_ZERO, 0, 1, 0>(), pgi_launch_pass<T, 2, PGI_FROM_ZERO, 1, 1>}};
    pgi_pass<T> a;
    memset(&a, 0, sizeof a);
    a.b = pgi_box_of(l, T());
    a.rhs = rhs;
    a.omega = (T)omega.first;
    a.second = omega.first == 0 ? (T)1 : (T)(omega.second / omega.first);
    a.first = reversed;
    a.u = u;
    a.out = pgi_other_grid(l, u);
    a.e = e;
    const pgi_transfers<T> *transfers = &pgi_transfers_of(l, T());
    if (head == PGI_CORRECTED) a.transfer = *transfers;
    if (!pgi_passes(l, a.b)) return 0;
    const int flat = l->n[1] == 1;
    const launch alone = plain[sweeps - 1][head][flat];
    if (!restricts) return alone && alone(s, &a);
    a.coarse_f = coarse->f;
    for (int d = 0; d < 3; d++) {
        a.coarse[d] = coarse->n[d];
        for (int q = 0; q < PGI_PASS_TAPS; q++) a.tap[d][q] = transfers->axis[d].tap[q];
    }
    a.partials = with_norm ? s->partials : NULL;
    a.state = s->state;
    const launch both = restricting[head == PGI_FROM_ZERO ? 2 : with_norm][flat];
    return both && both(s, &a);
}

// Whether a pass restricts the residual too. Left out in 3D is what does not pay, for halos are wider and arithmetic no
// longer hides behind memory (H200, 512^3: two sweeps from u in f64 2.0 ms in one pass, 1.65 one after the other), and
// everywhere what pays less than its code is large: in 3D cells, whose restriction is fast (V(2,1) f64 3.19 instead of
// 3.21 ms, f32 1.93 instead of 2.05), from zero in f32; norms in f32. Devices without clusters have lower tiles, and
// code for them has no such passes.
template <class T>
static int pgi_pass_restricts(const pg_solver *s, const pgi_level *l, int sweeps, int head, int reversed, int with_norm)
{
    const pgi_transfers<T> &t = pgi_transfers_of(l, T());
    const int flat = l->n[1] == 1;
    if (!s->clusters || sweeps != 2 || reversed || head == PGI_CORRECTED || (head == PGI_FROM_ZERO && with_norm))
        return 0;
    int taps = 2;
    for (int d = 0; d < 3; d++) {
        if (flat && d == 1) continue;
        const int regular = t.axis[d].regular;
        if (regular < 2 || regular > PGI_PASS_TAPS) return 0;
        taps = regular > taps ? regular : taps;
    }
    const int is_double = sizeof(T) == 8;
    return flat ? is_double || !with_norm : taps == 3 && !with_norm && (head == PGI_FROM_ZERO) == is_double;
}

// Sweeps as passes from grid to grid of a level. Returns where u is.
template <class T> static pgi_grid pgi_cuda_relax(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs,
                                                  pgi_omega omega, int reversed, int sweeps, int head,
                                                  const pgi_level *coarse, pgi_grid e, pgi_wanted *residual)
{
    if (head == PGI_FROM_ZERO && (sweeps + 1) / 2 % 2 && pgi_passes(l, pgi_box_of(l, T())))
        u = pgi_other_grid(l, u);    // so that it ends in u
    while (sweeps > 0) {
        const int count = sweeps > 1 && head != PGI_CORRECTED && omega.first == omega.second ? 2 : 1;
        const int with_norm = residual && residual->with_norm,
                  restricts =
                      residual && count == sweeps ? pgi_pass_restricts<T>(s, l, count, head, reversed, with_norm) : 0;
        if (restricts && pgi_cuda_pass<T>(s, l, u, rhs, omega, reversed, count, head, coarse, e, restricts, with_norm))
            residual->done = 1;
        else if (!pgi_cuda_pass<T>(s, l, u, rhs, omega, reversed, count, head, coarse, e, 0, 0))
            break;
        u = pgi_other_grid(l, u);
        sweeps -= count;
        head = PGI_FROM_U;
    }
    const pgi_box<T> &b = pgi_box_of(l, T());
    if (head == PGI_FROM_ZERO && sweeps > 0 && !b.axis[0].seam && !b.axis[1].seam && !b.axis[2].seam) {
        const pgi_shape all = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]),
                        half = pgi_shape_of(s, l->n[0], l->n[1], l->n[2], PGI_MARCH, 2);
        const pgi_colour other = {{0, 0, 0}, {l->n[0], l->n[1], l->n[2]}, 0, !reversed};
        PGI_LAUNCH_EARLY(s, all.blocks, pgi_threads(all), 0, pgi_half_sweep_kernel<T>, b, u, rhs, (T)omega.first,
                         reversed ? 1 : 0, all);
        PGI_LAUNCH_EARLY(s, half.blocks, pgi_threads(half), 0, pgi_red_black_kernel<T>, b, u, rhs, (T)omega.second,
                         other, half);
        sweeps--;
        head = PGI_FROM_U;
    }
    return pgi_relax_in_place(s, l, u, rhs, omega, reversed, sweeps, head, coarse, e, residual);
}

template <class T> static int pgi_cuda_relax_turns(const pgi_level *l, int sweeps)
{
    return (sweeps + 1) / 2 % 2 && pgi_passes(l, pgi_box_of(l, T()));
}

// The halo of a tile must not wrap around a periodic axis twice.
template <class T> static int pgi_jacobi_passes(const pgi_level *l, const pgi_box<T> &b)
{
    // Below, plain sweeps are faster: 256^3 in f64 and 129^3 in f32 (0.14 against 0.17 ms, 0.025 against 0.034).
    const int64_t least = (int64_t)PGI_PASS_POINTS * (l->n[1] == 1 ? 1 : sizeof(T) == 8 ? 64 : 4);
    if (l->points < least || l->n[2] < 4) return 0;
    for (int a = 0; a < 3; a++)
        if (b.axis[a].periodic && l->n[a] > 1 && l->n[a] < 4 * PGI_JACOBI_MOST_FLAT) return 0;
    return 1;
}

template <class T, int SWEEPS, int FLAT> static int pgi_launch_jacobi(pg_solver *s, pgi_jacobi_pass<T> *a)
{
    typedef pgi_jacobi_tuned<T, SWEEPS, FLAT> tuned;
    const int n[3] = {a->b.axis[0].n, a->b.axis[1].n, a->b.axis[2].n};
    const int most = s->shared_limit / tuned::BYTES < tuned::THREADS / 32 ? s->shared_limit / tuned::BYTES
                                                                          : (int)tuned::THREADS / 32;
    int warps = 0;
    a->own[0] = tuned::OWN;
    a->tiles[0] = (n[0] + tuned::LOW - SWEEPS + tuned::OWN - 1) / tuned::OWN;
    // Few planes a tile fill the device, many spare halo; fewer warps may divide the rows better. The least work in
    // sequence counts.
    double best = 1e300;
    for (int w = FLAT ? most : 1; w <= most; w++) {
        const int rows = FLAT ? 1 : w * tuned::ROWS - 2 * SWEEPS;
        if (rows < 1) continue;
        const int64_t columns = (int64_t)a->tiles[0] * (FLAT ? 1 : (n[1] + rows - 1) / rows),
                      resident = (int64_t)s->multiprocessors * tuned::BLOCKS * (FLAT ? w : 1);
        for (int slabs = 1; slabs <= (n[2] + 3) / 4 && slabs <= 256; slabs++) {
            const int planes = (n[2] + slabs - 1) / slabs;
            const double cost =
                (double)pgi_rounds(columns * slabs, resident) * (planes + 2 * SWEEPS + 2) * (FLAT ? 1 : w + 1);
            if (cost >= best) continue;
            best = cost;
            warps = w;
            a->own[1] = rows;
            a->own[2] = planes;
        }
    }
    if (!warps) return 0;
    a->tiles[1] = FLAT ? 1 : (n[1] + a->own[1] - 1) / a->own[1];
    a->tiles[2] = (n[2] + a->own[2] - 1) / a->own[2];
    const int64_t tiles = (int64_t)a->tiles[0] * a->tiles[1] * a->tiles[2];
    const auto kernel = pgi_jacobi_pass_kernel<T, SWEEPS, FLAT>;
    const int bytes = warps * tuned::BYTES;
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    PGI_LAUNCH_SHARED(s, FLAT ? (tiles + warps - 1) / warps : tiles, dim3(32, (unsigned)warps), bytes, kernel, *a);
    return 1;
}

// As few passes as can be, of nearly equal numbers of sweeps. A single sweep is the plain kernel's.
template <class T> static pgi_grid pgi_cuda_jacobi_sweeps(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs,
                                                          const double *weight, int period, int sweeps)
{
    int done = 0;
    while (done < sweeps && pgi_jacobi_passes(l, pgi_box_of(l, T()))) {
        const int flat = l->n[1] == 1, most = flat ? PGI_JACOBI_MOST_FLAT : PGI_JACOBI_MOST, left = sweeps - done;
        const int passes = (left + most - 1) / most, count = (left + passes - 1) / passes;
        if (count < 2) break;
        pgi_jacobi_pass<T> a;
        memset(&a, 0, sizeof a);
        a.b = pgi_box_of(l, T());
        a.u = u;
        a.out = pgi_other_grid(l, u);
        a.rhs = rhs;
        for (int q = 0; q < count; q++) a.omega[q] = (T)weight[(done + q) % period];
        const auto launch = !flat        ? pgi_launch_jacobi<T, 2, 0>
                            : count == 2 ? pgi_launch_jacobi<T, 2, 1>
                            : count == 3 ? pgi_launch_jacobi<T, 3, 1>
                                         : pgi_launch_jacobi<T, 4, 1>;
        if (!launch(s, &a)) break;
        u = a.out;
        done += count;
    }
    for (; done < sweeps; done++) u = pgi_jacobi_one_by_one(s, l, u, rhs, weight + done % period, 1, 1);
    return u;
}

template <class T, int FLAT, int NORM>
static int pgi_launch_restriction(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, const pgi_level *coarse)
{
    typedef pgi_tuned_tile<T, FLAT> tuned;
    const pgi_transfers<T> &t = pgi_transfers_of(l, T());
    const pgi_box<T> &b = pgi_box_of(l, T());
    pgi_tile_job<T> a;
    pgi_restricted job = {0, 0, s->partials, s->state};
    int reach[3], high;
    for (int d = 0; d < 3; d++) {
        if (b.axis[d].periodic && l->n[d] < 32 && (l->n[d] > 1 || d == 2)) return 0;    // planes wrap around once
        reach[d] = pgi_reach(t.axis[d]);
    }
    const int bytes = pgi_plan_residual<T, FLAT>(s, l, u, rhs, reach, 1, &a, &high);
    if (!bytes) return 0;
    job.last = reach[2];
    const pgi_transfer<T> &tx = t.axis[0];
    const int64_t most = tuned::WIDE > l->n[0] ? l->n[0] : (int)tuned::WIDE;
    while (1 << job.wide < tuned::WIDE && 1 << job.wide < (most * tx.nc + tx.nf - 1) / tx.nf) job.wide++;
    const int64_t blocks = pgi_tiles_in(a.tiling);
    if (NORM && blocks > s->partials_capacity) return 0;
    const auto kernel = pgi_restrict_residual_tile_kernel<T, FLAT, NORM>;
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    PGI_LAUNCH_SHARED(s, blocks, dim3(tuned::LANES, FLAT ? 1 : (unsigned)(high / tuned::ROWS)), bytes, kernel, a, t,
                      coarse->f, job);
    return 1;
}

template <class T> static void pgi_cuda_restrict_residual(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs,
                                                          const pgi_level *coarse, int with_norm)
{
    const pgi_transfers<T> &t = pgi_transfers_of(l, T());
    int taps = 1, most = 0;
    for (int a = 0; a < 3; a++) {
        taps = taps && (t.axis[a].kind == PGI_SAME || t.axis[a].taps);
        if (t.axis[a].most_taps > most) most = t.axis[a].most_taps;
    }
    const int flat = l->n[1] == 1, tiles = taps && l->points >= (flat ? 4 : 1) * (int64_t)PGI_CACHED_POINTS;
    const auto summing = flat ? pgi_launch_restriction<T, 1, 1> : pgi_launch_restriction<T, 0, 1>,
               plain = flat ? pgi_launch_restriction<T, 1, 0> : pgi_launch_restriction<T, 0, 0>;
    if (with_norm && tiles && summing(s, l, u, rhs, coarse)) return;
    if (with_norm && taps) pgi_cuda_reduce<T>(s, l, PGI_RESIDUAL, PGI_SELF, u, pgi_no_grid(), rhs, 0);
    if (taps && !tiles) {
        const int team = most <= 2 ? 2 : (int)PGI_TAPS;
        const pgi_shape h = pgi_shape_of(s, coarse->n[0], coarse->n[1], coarse->n[2], PGI_MARCH, 1, team);
        const dim3 threads((unsigned)h.tx, (unsigned)h.ty, (unsigned)team);
        const auto kernel = most <= 2 ? pgi_restrict_residual_kernel<T, 2> : pgi_restrict_residual_kernel<T, PGI_TAPS>;
        PGI_LAUNCH_EARLY(s, h.blocks, threads, 0, kernel, pgi_box_of(l, T()), t, u, rhs, coarse->f, h);
        return;
    }
    if (!tiles || !plain(s, l, u, rhs, coarse)) pgi_residual_then_restrict(s, l, u, rhs, coarse, with_norm && !taps);
}

// Products from t to spare and back: to modes along one axis after the other, and back again into u.
template <class T>
static void pgi_cuda_solve_long(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, int from_zero)
{
    const pgi_modes<T> &m = pgi_modes_of(l, T());
    pgi_grid from = l->t, to = l->spare;
    int axis[3], axes = 0;
    for (int a = 0; a < 3; a++)
        if (l->n[a] > 1) axis[axes++] = a;
    if (from_zero) pgi_cuda_fill_zero<T>(s, l, u);
    pgi_cuda_residual<T>(s, l, u, rhs, from);
    for (int q = 0; q < 2 * axes; q++) {
        const int back = q >= axes, last = q == 2 * axes - 1, a = axis[back ? 2 * axes - 1 - q : q];
        const int lines = (int)(l->points / l->n[a]);    // at most PGI_EXACT squared
        const pgi_long_product<T> p = {
            back ? m.from[a] : m.to[a], a,    l->n[a],      l->n[a == 0], lines, q == axes - 1,
            last && !from_zero,         from, last ? u : to};
        const int64_t tiles = (p.n + PGI_LONG_SIZE - 1) / PGI_LONG_SIZE,
                      groups = (lines + PGI_LONG_SIZE - 1) / PGI_LONG_SIZE;
        PGI_LAUNCH_EARLY(s, tiles * groups, dim3(PGI_LONG_THREADS), 0, pgi_long_product_kernel<T>, p, m, s->state);
        const pgi_grid other = from;
        from = to, to = other;
    }
}

template <class T>
static void pgi_cuda_solve_coarsest(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, int from_zero)
{
    if (l->spare.base) return pgi_cuda_solve_long<T>(s, l, u, rhs, from_zero);
    const pgi_box<T> &b = pgi_box_of(l, T());
    const pgi_modes<T> &m = pgi_modes_of(l, T());
    const int nx = l->n[0], ny = l->n[1], nz = l->n[2], plane = nx * ny, element = (int)sizeof(T);
    T *const modes = pgi_data<T>(l->t.base ? l->t : u), *const solved = pgi_data<T>(l->t.base ? l->t : l->f);
    pgi_modes_share share = {1, 1};
    if (ny == 1) share.rows = nz < 4 * s->multiprocessors ? PGI_COLUMNS : 2 * PGI_COLUMNS;
    const int bands = (nz + share.rows - 1) / share.rows, split = ny > 1 && ny < nx ? ny : nx;
    const auto pitch = [](int n, int parts) { return pgi_pitch_of(n / parts + (parts > 1)); };
    const auto bytes_to = [&](int p) { return (nx * pgi_pitch_of(ny * share.rows) + ny * pitch(nx, p)) * element; };
    const auto bytes_from = [&](int p) {
        return (ny > 1 ? nx * pitch(ny, p) + ny * pgi_pitch_of(nx) : nx * pgi_pitch_of(share.rows)) * element;
    };
    const dim3 threads(ny == 1 ? PGI_MODES_THREADS : PGI_MODES_THREADS / 2);
    const int partial = PGI_COLUMNS * (int)threads.x * element, most = PGI_SHARED_SURE - partial;
    while (8 * share.parts <= split && (bands * share.parts < s->multiprocessors || bytes_to(share.parts) > most))
        share.parts *= 2;
    int columns = PGI_COLUMNS;
    while (columns < 8 && (plane + columns - 1) / columns > 2 * s->multiprocessors &&
           4 * nz * columns * element <= most)
        columns *= 2;
    PGI_LAUNCH_EARLY(s, bands * share.parts, threads, partial + bytes_to(share.parts), pgi_modes_to_kernel<T>, b, m,
                     from_zero ? pgi_no_grid() : u, rhs, modes, share);
    PGI_LAUNCH_EARLY(s, (plane + columns - 1) / columns, threads, partial + 2 * nz * columns * element,
                     pgi_modes_solve_kernel<T>, b, m, (const T *)modes, solved, columns, s->state);
    PGI_LAUNCH_EARLY(s, bands * share.parts, threads, partial + bytes_from(share.parts), pgi_modes_from_kernel<T>, b, m,
                     (const T *)solved, u, !from_zero, share);
}

// Whether device and code know clusters of blocks, and how many fit: processors that lie together are not always a
// multiple of a cluster.
static int pgi_cuda_clusters(pg_solver *s)
{
    cudaFuncAttributes compiled = {};
    int able = 0;
    PGI_CUDA(s, cudaFuncGetAttributes(&compiled, pgi_control_kernel));
    PGI_CUDA(s, cudaDeviceGetAttribute(&able, cudaDevAttrClusterLaunch, s->device));
    able = able && compiled.ptxVersion >= 90;
    s->together_in[1] = s->multiprocessors;
    const auto kernel = pgi_pass_kernel<pgi_narrowest, 2, PGI_FROM_U, 0, 0, 0>;
    if (able) PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, s->shared_limit));
    for (int size = 2; size <= PGI_PASS_CLUSTER && able; size++) {
        int clusters = 0;
        cudaLaunchAttribute attribute;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3((unsigned)(size * s->multiprocessors));
        config.blockDim = dim3(32, pgi_tuned<pgi_narrowest, 2>::THREADS / 32);
        config.dynamicSmemBytes = (size_t)s->shared_limit;
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = (unsigned)size;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        config.attrs = &attribute;
        config.numAttrs = 1;
        if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) cudaGetLastError();
        s->together_in[size] = clusters * size;
    }
    return able;
}

// Whether the host sends the bodies of loops as often as they may run: where graphs do not loop, and no monitor wants
// the host to wait.
static int pgi_repeats(const pg_solver *s) { return !PGI_CONDITIONAL && !s->monitor; }

// What control makes of the counters where no check ends the solve: the longest that it can take.
static inline void pgi_foresee(pgi_state *st, int step, int argument)
{
    switch (step) {
    case PGI_BEGIN: pgi_schedule_first(st); break;
    case PGI_COUNT:
    case PGI_LAST: pgi_advance(st, argument); break;
    case PGI_ZERO_GUESS:
    case PGI_CHECK_FIRST:
    case PGI_CHECK:
    case PGI_CHECK_RECURRENCE:
        st->history_count = 1;
        pgi_schedule(st);
        st->go = st->iterations < st->stop.max_iter;
        break;
    case PGI_SWEPT:
        if (argument && st->inner == 0) {
            pgi_schedule(st);
            st->go = st->iterations < st->stop.max_iter;
        }
        if (st->go) pgi_advance(st, 1);
        break;
    default: break;
    }
}

static void pgi_cuda_control(pg_solver *s, int step, int argument)
{
    PGI_LAUNCH_EARLY(s, 1, dim3(32), 0, pgi_control_kernel, s->state, step, argument);
    // The host counts along: one that drives a solve has to wait for the device only at checks, one that repeats bodies
    // never.
    if (pgi_repeats(s))
        pgi_foresee(&s->host, step, argument);
    else if (!s->recording && step == PGI_COUNT)
        pgi_advance(&s->host, argument);
}

#if PGI_CONDITIONAL
static __global__ void pgi_gate_kernel(cudaGraphConditionalHandle handle, const pgi_state *st, int gate)
{
    cudaGraphSetConditional(handle, (unsigned)pgi_gate(st, gate));
}

// The graph under capture in s->stream and where the next node hangs. CUDA 13 dropped the versioned names.
static void pgi_capture_point(pg_solver *s, cudaGraph_t *graph, const cudaGraphNode_t **after, size_t *count)
{
    cudaStreamCaptureStatus status;
#if CUDART_VERSION >= 13000
    PGI_CUDA(s, cudaStreamGetCaptureInfo(s->stream, &status, NULL, graph, after, NULL, count));
#else
    PGI_CUDA(s, cudaStreamGetCaptureInfo_v2(s->stream, &status, NULL, graph, after, count));
#endif
}

// Adds a conditional node to the graph under capture and captures its body with a stream of its own.
static void pgi_record_loop(pg_solver *s, int gate, int again, void (*body)(pg_solver *))
{
    cudaGraph_t graph = NULL, inner = NULL;
    const cudaGraphNode_t *after = NULL;
    cudaGraphNode_t node = NULL;
    size_t count = 0;
    cudaGraphConditionalHandle handle = 0;
    pgi_capture_point(s, &graph, &after, &count);
    PGI_CUDA(s, cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    PGI_LAUNCH(s, 1, dim3(1), pgi_gate_kernel, handle, (const pgi_state *)s->state, gate);
    pgi_capture_point(s, &graph, &after, &count);
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = again ? cudaGraphCondTypeWhile : cudaGraphCondTypeIf;
    params.conditional.size = 1;
#if CUDART_VERSION >= 13000
    PGI_CUDA(s, cudaGraphAddNode(&node, graph, after, NULL, count, &params));
    PGI_CUDA(s, cudaStreamUpdateCaptureDependencies(s->stream, &node, NULL, 1, cudaStreamSetCaptureDependencies));
#else
    PGI_CUDA(s, cudaGraphAddNode(&node, graph, after, count, &params));
    PGI_CUDA(s, cudaStreamUpdateCaptureDependencies(s->stream, &node, 1, cudaStreamSetCaptureDependencies));
#endif
    if (s->failed) return;
    const cudaStream_t outer = s->stream;
    s->stream = s->side[s->depth++];
    PGI_CUDA(s, cudaStreamBeginCaptureToGraph(s->stream, params.conditional.phGraph_out[0], NULL, NULL, 0,
                                              cudaStreamCaptureModeRelaxed));
    if (s->failed == PG_OK) {
        body(s);
        if (again) PGI_LAUNCH(s, 1, dim3(1), pgi_gate_kernel, handle, (const pgi_state *)s->state, gate);
        const cudaError_t e =
            cudaStreamEndCapture(s->stream, &inner);    // also after a failure: the stream must get free
        PGI_CUDA(s, e);
    }
    s->depth--;
    s->stream = outer;
}
#else
// At the begin of a loop's body and behind the loop (gate < 0). A body within one that is done stays done.
static __global__ void pgi_gate_kernel(pgi_state *st, int gate, int depth, volatile int *ended, int loop)
{
    const int around = st->done & ((1 << depth) - 1), ends = gate >= 0 && (around || !pgi_gate(st, gate));
    st->done = around | ends << depth;
    if (ends && ended) *ended = loop;
}

// Sends the body as often as the loop may run; what comes after its end does nothing, so that iterates, counts and bits
// are those of a loop on the device. The host never waits, but stops when it happens to see that the loop has ended.
static void pgi_repeat(pg_solver *s, int gate, int again, void (*body)(pg_solver *))
{
    const int depth = s->depth++, loop = ++s->loops;
    volatile int *const ended = again && !s->recording ? s->ended : NULL;
    do {
        PGI_LAUNCH(s, 1, dim3(1), pgi_gate_kernel, s->state, gate, depth, ended, loop);
        body(s);
    } while (again && pgi_gate(&s->host, gate) && s->failed == PG_OK && !(ended && *ended == loop));
    PGI_LAUNCH(s, 1, dim3(1), pgi_gate_kernel, s->state, -1, depth, (volatile int *)NULL, loop);
    s->depth--;
}
#endif

static void pgi_cuda_read_state(pg_solver *s, const pgi_state *from)
{
    PGI_CUDA(s, cudaMemcpyAsync(&s->host, from, sizeof s->host, cudaMemcpyDeviceToHost, s->stream));
    PGI_CUDA(s, cudaStreamSynchronize(s->stream));
}

static void pgi_cuda_loop(pg_solver *s, int gate, int again, void (*body)(pg_solver *))
{
#if PGI_CONDITIONAL
    if (s->recording) {
        pgi_record_loop(s, gate, again, body);
        return;
    }
#else
    const int counted = gate == PGI_GO || gate >= PGI_INNER;
    if (pgi_repeats(s) && counted && !pgi_gate(&s->host, gate)) return;
    if (pgi_repeats(s) && gate < PGI_INNER) {
        pgi_repeat(s, gate, again, body);
        return;
    }
#endif
    for (;;) {
        if (gate <= PGI_BEGUN) pgi_cuda_read_state(s, s->state);
        if (gate == PGI_GO && s->monitor && s->failed == PG_OK) {
            s->observe(s, &s->host);
            pgi_cuda_read_state(s, s->state);
        }
        if (s->failed || !pgi_gate(&s->host, gate)) return;
        body(s);
        if (!again) return;
    }
}

#endif

// -------------------------------------------------------------------------------------------------------------------
// >>levels  The hierarchy of lines, and the tables of its levels.
// -------------------------------------------------------------------------------------------------------------------

// The lines of all levels; levels share the lines that they do not coarsen.
struct pgi_hierarchy {
    int levels, count;
    int along;          // the axis of line relaxation, which stays as it is; or -1
    int exact, slow;    // cycles would be slow: there is one level; or there are many because it is too large
    pgi_line own[3 * PGI_MAX_LEVELS];
    pgi_line *line[PGI_MAX_LEVELS][3];
    int coarsened[PGI_MAX_LEVELS][3];
    double *work;           // for the modes of the coarsest level, or of a small PG_DIRECT
    pgi_hierarchy *near;    // of PG_PRECOND_DIRECT: the lines that are solved for in place of those of A
};

static void pgi_hierarchy_free(pgi_hierarchy *h)
{
    for (int q = 0; h && q < h->count; q++) pgi_line_free(&h->own[q]);
    if (h) pgi_hierarchy_free(h->near);
    if (h) free(h->work);
    free(h);
}

// How much the spacing (or what a metric makes of it) varies along an axis: 1 where it is uniform. The rows at the ends
// may differ by their boundary. Where k or w of neighbours differ by ten, coarse cells have a jump inside, with which
// point relaxation falls by less than it should; that counts as 2.
static double pgi_line_variation(const pgi_line *l)
{
    double least = DBL_MAX, most = 0, jump = 1;
    for (int i = 0; i < l->n && l->n > 2 && !l->uniform; i++) {
        double row[4];
        pgi_line_row(l, i, row);
        const double coupling = (-row[0] - row[1]) * (!l->periodic && !l->node && (i == 0 || i == l->n - 1) ? 2 : 1);
        if (coupling < least) least = coupling;
        if (coupling > most) most = coupling;
        if (i > 0)
            jump = fmax(jump, fmax(pgi_line_w(l, i) / pgi_line_w(l, i - 1), pgi_line_w(l, i - 1) / pgi_line_w(l, i)));
        if (i > 1)
            jump = fmax(jump, fmax(pgi_line_k(l, i) / pgi_line_k(l, i - 1), pgi_line_k(l, i - 1) / pgi_line_k(l, i)));
    }
    return most > 0 && least > 0 ? fmax(sqrt(most / least), jump / 5) : 1;
}

static const unsigned pgi_smoothers = PG_SMOOTH_RBGS | PG_SMOOTH_JACOBI | PG_SMOOTH_CHEBYSHEV | PG_SMOOTH_LINES;

// The axis of line relaxation: the one that varies most, if the smoother is chosen so or if point relaxation would
// fail.
static int pgi_choose_line_axis(const pg_desc *d, pgi_line *const line[3])
{
    const int asked = d->flags & PG_SMOOTH_LINES ? 1 : 0;
    double most = asked ? 0 : 2;
    int along = -1;
    if (!asked && ((d->flags & pgi_smoothers) || d->omega != 0)) return -1;
    for (int a = 0; a < 3; a++) {
        const double variation = line[a]->n > 1 || (asked && a == 0) ? pgi_line_variation(line[a]) : 0;
        if (variation > most || (asked && variation == most)) along = a, most = variation;
    }
    return along;
}

// Which axes the next level halves: those whose coupling is at least half the strongest one's. With line relaxation the
// other axes alone count, and become single points.
static void pgi_choose_axes(pgi_line *const line[3], int along, int chosen[3])
{
    double strongest = 0, strength[3];
    for (int a = 0; a < 3; a++) {
        strength[a] = line[a]->n > 1 && a != along ? pgi_line_strength(line[a]) : 0;
        if (strength[a] > strongest) strongest = strength[a];
    }
    for (int a = 0; a < 3; a++) chosen[a] = line[a]->n > 1 && a != along && strength[a] >= 0.5 * strongest;
}

// Whether blocks of threads have the planes and lines of a level in shared memory, for the exact solver.
static int pgi_fits_blocks(int64_t nx, int64_t ny, int64_t nz)
{
    const int64_t two = nx > ny ? nx : ny, largest = nz > two ? nz : two;
    if (largest <= PGI_MODES_LEAST) return 1;
    return largest <= PGI_MODES && nx * ny * nz * (nx + ny + nz) <= PGI_MODES_WORK &&
           (ny == 1 || nx * ny <= PGI_MODES_PLANE);
}

// Whether a level is solved exactly. That is a few dense products, faster than a cycle as long as there are few points.
// With line relaxation a single line is.
static int pgi_is_coarsest(pgi_line *const line[3], int along, int most)
{
    const int64_t nx = line[0]->n, ny = line[1]->n, nz = line[2]->n;
    if (along >= 0) return nx * ny * nz == line[along]->n;
    return nx <= most && ny <= most && nz <= most && pgi_fits_blocks(nx, ny, nz);
}

// Whether cycles would be slow, with lines along the axis that varies most. Measured on 2000 random boxes: factors stay
// below 0.3 where no second axis varies by more than 8 in 2D, 2 in 3D, where lines leave a plane whose anisotropy
// changes from place to place; from there on they go to 0.9, and beyond 1. Tables that vary are separable all the same.
// axis: the two that vary most, and by how much.
static int pgi_is_wild(const pg_desc *d, pgi_line *const line[3], int axis[2], double variation[2])
{
    int present = 0;
    axis[0] = axis[1] = -1;
    variation[0] = variation[1] = 0;
    for (int a = 0; a < 3; a++) {
        const double v = pgi_line_variation(line[a]);
        present += line[a]->n > 1;
        const int place = v > variation[0] ? 0 : v > variation[1] ? 1 : 2;
        if (place == 0) variation[1] = variation[0], axis[1] = axis[0];
        if (place < 2) variation[place] = v, axis[place] = a;
    }
    if ((d->flags & (pgi_smoothers | PG_KEEP_CYCLES)) || d->omega != 0) return 0;
    return variation[1] > (present > 2 ? 2 : 8);
}

// Operations march along the last axis, so a 2D problem is (nx, 1, ny) to them: its y is their z, its absent axis their
// y.
static void pgi_turn(const pg_desc *desc, pg_desc *work)
{
    *work = *desc;
    if (desc->dim != 2) return;
    for (int a = 1; a < 3; a++) {
        const int other = 3 - a;
        work->n[a] = desc->n[other];
        work->centring[a] = desc->centring[other];
        work->h[a] = desc->h[other];
        work->coord[a] = desc->coord[other];
        work->weight[a] = desc->weight[other];
        work->conductance[a] = desc->conductance[other];
        work->velocity[a] = desc->velocity[other];
        work->face[2 * a] = desc->face[2 * other];
        work->face[2 * a + 1] = desc->face[2 * other + 1];
        work->stride_u[a - 1] = desc->stride_u[other - 1];
        work->stride_f[a - 1] = desc->stride_f[other - 1];
    }
}

static int pgi_is_absent(const pg_desc *work, int axis) { return work->dim == 2 ? axis == 1 : axis >= work->dim; }

static pgi_hierarchy *pgi_hierarchy_create(const pg_desc *d, int multigrid)
{
    pgi_hierarchy *h = (pgi_hierarchy *)calloc(1, sizeof *h);
    if (!h) return NULL;
    for (int a = 0; a < 3; a++) {
        h->line[0][a] = &h->own[h->count++];
        if (!pgi_line_create(h->line[0][a], d, a, pgi_is_absent(d, a))) {
            pgi_hierarchy_free(h);
            return NULL;
        }
    }
    h->levels = 1;
    h->along = -1;
    int axis[2];
    double variation[2];
    const int small = !(d->flags & PG_SMOOTH_LINES) && pgi_is_coarsest(h->line[0], -1, d->coarsest);
    h->slow = multigrid && !small && pgi_is_wild(d, h->line[0], axis, variation);
    h->exact = h->slow;
    for (int a = 0; a < 3; a++) h->exact = h->exact && h->line[0][a]->n <= PGI_EXACT;
    if (multigrid && !small && !h->exact) h->along = pgi_choose_line_axis(d, h->line[0]);
    for (int l = 0;; l++) {
        pgi_choose_axes(h->line[l], h->along, h->coarsened[l]);
        if (!multigrid || h->exact || pgi_is_coarsest(h->line[l], h->along, d->coarsest) || l + 1 == PGI_MAX_LEVELS)
            break;
        for (int a = 0; a < 3; a++) {
            h->line[l + 1][a] = h->line[l][a];
            if (!h->coarsened[l][a]) continue;
            h->line[l + 1][a] = &h->own[h->count++];
            if (!pgi_line_coarsen(h->line[l][a], h->line[l + 1][a])) {
                pgi_hierarchy_free(h);
                return NULL;
            }
        }
        h->levels++;
    }
    int longest = 1;
    for (int a = 0; a < 3; a++)
        longest = h->line[h->levels - 1][a]->n > longest ? h->line[h->levels - 1][a]->n : longest;
    const int few = (d->flags & (PG_DIRECT | PG_PRECOND_DIRECT)) && longest <= PGI_MODES;
    if ((few || multigrid) && h->along < 0 && !(h->work = (double *)malloc(pgi_eigen_work(longest) * sizeof(double)))) {
        pgi_hierarchy_free(h);
        return NULL;
    }
    return h;
}

// Hands out the workspace. Without a base it only measures; the tables come first and have a mirror on the host.
struct pgi_arena {
    char *base, *mirror;
    size_t used;
};

// Small pieces lie close together: there are many, and coarse levels have little else.
static size_t pgi_take(pgi_arena *a, size_t bytes)
{
    const size_t align = bytes < 16 * PGI_ALIGN ? 32 : (size_t)PGI_ALIGN, at = (a->used + align - 1) / align * align;
    a->used = at + bytes;
    return at;
}

static void *pgi_take_block(pgi_arena *a, size_t bytes)
{
    const size_t at = pgi_take(a, bytes);
    return a->base ? a->base + at : NULL;
}

// A table: its address for the device, and for the host that fills it.
static void *pgi_take_table(pgi_arena *a, size_t bytes, void **host)
{
    const size_t at = pgi_take(a, bytes);
    *host = a->mirror ? a->mirror + at : NULL;
    return a->base ? a->base + at : NULL;
}

// A grid of our own; where it costs little, its rows are even, so that pairs of columns can be moved together.
static pgi_grid pgi_grid_at(void *base, const int n[3])
{
    const int64_t pitch = n[0] < 32 ? n[0] : (n[0] + 1) / 2 * 2;
    const pgi_grid g = {base, 0, pitch, pitch * n[1], 0};
    return g;
}

static pgi_grid pgi_take_grid(pgi_arena *a, const int n[3], size_t element)
{
    pgi_grid g = pgi_grid_at(NULL, n);
    g.base = pgi_take_block(a, (size_t)(g.sk * n[2]) * element);
    return g;
}

// A caller's array, with strides as in its descriptor.
static pgi_grid pgi_direct_grid(const pg_solver *s, const void *data, const int64_t stride[2])
{
    const int turned = s->desc.dim == 2;
    const pgi_grid g = {(void *)data, 0, stride[turned], stride[!turned], stride[2]};
    return g;
}

template <class T> static void pgi_layout_box(pgi_arena *arena, pgi_box<T> *b, pgi_line *const line[3], double beta)
{
    for (int a = 0; a < 3; a++) {
        void *rows = NULL, *weights = NULL, *host_rows = NULL, *host_weights = NULL;
        if (!line[a]->uniform) {
            rows = pgi_take_table(arena, (size_t)line[a]->n * sizeof(pgi_row<T>), &host_rows);
            weights = pgi_take_table(arena, (size_t)line[a]->n * sizeof(double), &host_weights);
        }
        if (arena->mirror || line[a]->uniform)
            pgi_axis_fill(&b->axis[a], line[a], beta, (pgi_row<T> *)host_rows, (double *)host_weights, rows, weights);
    }
}

// What windows need at most: see pgi_transfer.
template <class T> static void pgi_measure_windows(pgi_transfer<T> *t, const pgi_transfer<T> &on_host,
                                                   const pgi_axis<T> &fine, const pgi_axis<T> &coarse)
{
    enum { KEPT = 16 };
    const double ratio = (double)t->mf / t->mc;
    for (int average = 0; average < 2; average++) {
        double low = DBL_MAX, high = -DBL_MAX;
        int64_t last[KEPT];    // of the windows before, but not less than of those before them
        for (int J = 0; J < t->nc; J++) {
            pgi_window<T> w;
            pgi_restriction(on_host, fine, coarse, J, average, &w);
            pgi_trim(&w);
            int64_t first = w.first;
            if (t->periodic && first > J * ratio + t->nf / 2) first -= t->nf;
            if (t->periodic && first < J * ratio - t->nf / 2) first += t->nf;
            const int64_t end = first + w.count - 1, before = J > 0 ? last[(J - 1) % KEPT] : end;
            last[J % KEPT] = end > before ? end : before;
            int open = 1;
            while (open < KEPT && open <= J && last[(J - open) % KEPT] >= first) open++;
            t->open = open > t->open ? open : t->open;
            t->longest = w.count > t->longest ? w.count : t->longest;
            low = fmin(low, (double)first - J * ratio);
            high = fmax(high, (double)end - J * ratio);
        }
        t->reach = fmax(t->reach, high - low + 1);
    }
}

// The weights of a line on the host.
template <class T> static pgi_axis<T> pgi_weights_of(const pgi_line *l)
{
    pgi_axis<T> axis;
    memset(&axis, 0, sizeof axis);
    axis.n = l->n;
    axis.weight = l->own.w;
    for (int q = 0; q < 3; q++) axis.row_weight[q] = pgi_line_w(l, q == 0 ? 0 : q == 1 ? l->n > 2 : l->n - 1);
    return axis;
}

// The restriction of a residual along an axis as a table, for passes. A row without its zeros has four weights at most,
// unless stretching is strong.
template <class T> static void pgi_layout_taps(pgi_transfer<T> *t, pgi_taps<T> *rows, const pgi_line *f,
                                               const pgi_line *c, const int *host_place, const T *host_fraction)
{
    pgi_transfer<T> on_host = *t;
    on_host.place = host_fraction ? host_place : t->place;
    on_host.fraction = host_fraction ? host_fraction : t->fraction;
    const pgi_axis<T> fine = pgi_weights_of<T>(f), coarse = pgi_weights_of<T>(c);
    pgi_measure_windows(t, on_host, fine, coarse);
    int turned = 0;    // rows that begin before index 0 come last
    for (int pass = 0; pass < 2; pass++) {
        for (int J = 0; J < c->n; J++) {
            pgi_window<T> w;
            pgi_restriction(on_host, fine, coarse, J, 0, &w);
            pgi_trim(&w);
            const int first = w.first % t->nf;
            const int wrapped = t->periodic && 2 * (int64_t)J < t->nc && first > t->nf / 2 && t->nf > 2 * PGI_WINDOW;
            if (pass == 0) {
                turned += wrapped;
                if (w.count > t->most_taps) t->most_taps = w.count;
                continue;
            }
            if (t->most_taps > PGI_TAPS) continue;
            pgi_taps<T> *const row = &rows[wrapped ? c->n - turned + J : J - turned];
            row->first = first;
            row->coarse = J;
            for (int q = 0; q < PGI_TAPS; q++) row->w[q] = q < w.count ? w.w[q] : (T)0;
        }
    }
    t->regular = t->most_taps <= PGI_TAPS ? t->most_taps : 0;
    for (int q = 0; q < PGI_TAPS && t->regular; q++) t->tap[q] = rows[0].w[q];
    for (int J = 0; J < c->n && t->regular; J++)
        if (rows[J].first != 2 * rows[J].coarse || memcmp(rows[J].w, t->tap, sizeof t->tap)) t->regular = 0;
    if (t->most_taps > PGI_TAPS) t->taps = NULL;
}

template <class T> static void pgi_layout_transfer(pgi_arena *arena, pgi_transfer<T> *t, const pgi_line *f,
                                                   const pgi_line *c, int adjoint, int planar)
{
    memset(t, 0, sizeof *t);
    t->nf = f->n;
    t->nc = c->n;
    t->mf = f->m;
    t->mc = c->m;
    t->periodic = f->periodic;
    t->most_taps = 1;
    if (f == c) {    // PGI_SAME
        t->longest = t->open = 1;
        t->reach = 1;
        return;
    }
    t->kind = c->merged ? PGI_MERGED : f->node ? PGI_NODES : PGI_CELLS;
    t->shift = t->kind == PGI_NODES && pgi_is_dirichlet(f, 0);
    t->adjoint = f->node || adjoint;
    t->inverse = t->kind == PGI_CELLS ? 0.5 / f->m : 1.0 / f->m;
    for (int e = 0; e < 2; e++) t->end[e] = (T)pgi_end_factor(c, e);
    void *host_place = NULL, *host_fraction = NULL, *host_taps = NULL, *host_index, *host_weight;
    if (!f->uniform) {
        t->place = (int *)pgi_take_table(arena, (size_t)f->n * sizeof(int), &host_place);
        t->fraction = (T *)pgi_take_table(arena, (size_t)f->n * sizeof(T), &host_fraction);
    }
    if (planar) t->taps = (pgi_taps<T> *)pgi_take_table(arena, (size_t)c->n * sizeof(pgi_taps<T>), &host_taps);
    t->cubic_rows = f->uniform && f->n > 2 * PGI_CUBIC_END ? 2 * PGI_CUBIC_END : f->n;
    t->cubic_index = (int *)pgi_take_table(arena, (size_t)t->cubic_rows * 8 * sizeof(int), &host_index);
    t->cubic_weight = (T *)pgi_take_table(arena, (size_t)t->cubic_rows * 8 * sizeof(T), &host_weight);
    if (!arena->mirror) return;
    for (int i = 0; i < f->n && host_place; i++) {
        double fraction;
        pgi_line_locate(f, c, i, (int *)host_place + i, &fraction);
        ((T *)host_fraction)[i] = (T)fraction;
    }
    if (planar) pgi_layout_taps(t, (pgi_taps<T> *)host_taps, f, c, (const int *)host_place, (const T *)host_fraction);
    for (int row = 0; row < t->cubic_rows; row++) {
        const int i = t->cubic_rows == f->n || row < PGI_CUBIC_END ? row : f->n - t->cubic_rows + row;
        for (int faces = 0; faces < 2; faces++) {
            double weight[4];
            pgi_cubic_weights(c, pgi_line_x(f, i), faces, (int *)host_index + 8 * row + 4 * !faces, weight);
            for (int q = 0; q < 4; q++) ((T *)host_weight)[8 * row + 4 * !faces + q] = (T)weight[q];
        }
    }
}

static void pgi_layout_faces(pgi_faces *faces, const pgi_level *l, pgi_line *const line[3], double beta, int scaled)
{
    memset(faces, 0, sizeof *faces);
    faces->scaled = scaled;
    for (int q = 0; q < 6; q++) {
        double flow[5];
        pgi_line_convect(line[q / 2], q & 1 ? line[q / 2]->n - 1 : 0, flow);
        faces->coefficient[q] =
            beta * pgi_end_coupling(line[q / 2], q & 1) + (line[q / 2]->periodic ? 0 : flow[3 + (q & 1)]);
        if (faces->coefficient[q] != 0) faces->mask |= 1u << q;
        faces->plane[q] = l->plane[q];
        faces->n[q / 2] = l->n[q / 2];
    }
}

template <class T> static void pgi_layout_modes(pgi_arena *arena, const pgi_hierarchy *h, double beta, pgi_modes<T> *m)
{
    for (int a = 0; a < 3; a++) {
        pgi_line *const *const line = h->line[h->levels - 1];
        const pgi_line *const l = line[a];
        const int n = l->n;
        int same = 0;
        while (same < a && !pgi_line_equal(line[same], l)) same++;
        if (same < a) {
            m->value[a] = m->value[same], m->to[a] = m->to[same], m->from[a] = m->from[same];
            continue;
        }
        void *value, *to, *from;
        m->value[a] = (double *)pgi_take_table(arena, (size_t)n * sizeof(double), &value);
        m->to[a] = (T *)pgi_take_table(arena, (size_t)n * (size_t)n * sizeof(T), &to);
        m->from[a] = (T *)pgi_take_table(arena, (size_t)n * (size_t)n * sizeof(T), &from);
        if (!arena->mirror) continue;
        const double *const rows = pgi_line_eigen(l, beta, (double *)value, h->work);
        double top = 0;
        for (int i = 0; i < n; i++) top = fmax(top, pgi_line_w(l, i));
        for (int i = 0; i < n; i++) {
            const double root = sqrt(pgi_line_w(l, i) / top);    // so that coefficients stay floats in any units
            for (int mode = 0; mode < n; mode++) {
                ((T *)to)[i * n + mode] = (T)(rows[mode * n + i] * root);
                ((T *)from)[mode * n + i] = (T)(rows[mode * n + i] / root);
            }
        }
    }
}

static size_t pgi_element(unsigned flags) { return flags & PG_F32 ? sizeof(float) : sizeof(double); }

// -------------------------------------------------------------------------------------------------------------------
// >>direct  Transforms along the uniform axes, elimination along the one that remains (P. N. Swarztrauber 1977).
// -------------------------------------------------------------------------------------------------------------------

// u itself is the working grid: a transform takes columns of the right-hand side or of u and writes columns of u. All
// columns along an axis are numbered, the lower one of the other axes first, then problem after problem of a batch, and
// two neighbours make a pair: odd counts of rows need no care. A transform is complex transforms of pairs, between
// steps before and steps after. On a GPU the last uniform axis of a 3D problem is transformed there and back at once,
// and small problems multiply with the eigenvectors of all axes: planes in one kernel, others by the exact solver.

// A place is i, j, k and the problem.
static PGI_HD inline void pgi_column_place(const int n[3], int axis, int64_t column, int at[4])
{
    const int row = axis == 0 ? n[1] : n[0], rows = axis == 2 ? n[1] : n[2];
    const int short_way = column <= 0x7fffffff;    // 64-bit division is slow on GPUs
    const int lower = short_way ? (int)((unsigned)column % (unsigned)row) : (int)(column % row);
    int64_t upper = short_way ? (int64_t)((unsigned)column / (unsigned)row) : column / row;
    at[3] = 0;
    if (upper >= rows) {
        at[3] = short_way ? (int)((unsigned)upper / (unsigned)rows) : (int)(upper / rows);
        upper -= (int64_t)at[3] * rows;
    }
    at[0] = axis == 0 ? 0 : lower;
    at[1] = axis == 0 ? lower : axis == 1 ? 0 : (int)upper;
    at[2] = axis == 2 ? 0 : (int)upper;
}

template <class T> static PGI_HD inline pgi_complex<T> pgi_complex_of(T x, T y)
{
    const pgi_complex<T> z = {x, y};
    return z;
}
// The columns of one may be several: see pgi_float_pair.
template <class A, class B> static PGI_HD inline auto pgi_times(pgi_complex<A> a, pgi_complex<B> b)
    -> pgi_complex<decltype(a.x * b.x)>
{
    return pgi_complex_of(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
template <class T> static PGI_HD inline pgi_complex<T> pgi_conjugate(pgi_complex<T> a)
{
    return pgi_complex_of<T>(a.x, -a.y);
}
template <class T> static PGI_HD inline pgi_complex<T> pgi_sum(pgi_complex<T> a, pgi_complex<T> b)
{
    return pgi_complex_of<T>(a.x + b.x, a.y + b.y);
}
template <class T> static PGI_HD inline pgi_complex<T> pgi_difference(pgi_complex<T> a, pgi_complex<T> b)
{
    return pgi_complex_of<T>(a.x - b.x, a.y - b.y);
}
template <class T> static PGI_HD inline pgi_complex<T> pgi_plus_i(pgi_complex<T> a, pgi_complex<T> b)    // a + i b
{
    return pgi_complex_of<T>(a.x - b.y, a.y + b.x);
}
template <class T> static PGI_HD inline pgi_complex<T> pgi_minus_i(pgi_complex<T> a, pgi_complex<T> b)
{
    return pgi_complex_of<T>(a.x + b.y, a.y - b.x);
}
template <class T, class S> static PGI_HD inline pgi_complex<T> pgi_scaled(pgi_complex<T> a, S factor)
{
    return pgi_complex_of<T>(factor * a.x, factor * a.y);
}

// Odd n: 2i + 1 or its negative is n + 4p modulo 8n. Index i to p, and p to i, with the sign that the cosine of
// pi (2i+1) (odd number) / 4n takes (M. T. Heideman 1992).
static PGI_HD inline int pgi_odd_place(int n, int i, int *negative)
{
    const int m = 2 * i + 1, alike = (m - n) % 4 == 0;
    *negative = !alike || m < n;
    return (int)(((alike ? (m < n ? m + 4 * (int64_t)n : m) : 4 * (int64_t)n - m) - n) / 4);
}
static PGI_HD inline int pgi_odd_index(int n, int p, int *negative)
{
    const int64_t m = n + 4 * (int64_t)p, n2 = 2 * (int64_t)n;
    *negative = m >= n2;
    return (int)(((m < n2 ? m : m < 2 * n2 ? 2 * n2 - m : m - 2 * n2) - 1) / 2);
}

// A transform is steps, complex transforms and steps. A step before takes a few values of the pair of columns and gives
// the complex transforms theirs: put(transform, m, value). A step after goes the other way. The cosine transforms of
// types 2 and 3: J. Makhoul 1980; a sine transform is the cosine transform of the same type with signs and a reversal.
// Type 1 is a complex transform of twice the length that symmetry halves: even and odd frequencies. Where the even ones
// again have an even number of intervals, the odd ones are of type 3 and half the length, and the even ones are cut
// once more: three transforms. With a multiple of four it is done twice, and the longer type 3 begins with a step of
// radix 2, so that there are five of a quarter of the length.

// The most values that a step takes or gives, and the number of steps.
static constexpr PGI_HD int pgi_roles(int kind, int after)
{
    return kind == PGI_DCT1                                                                         ? (after ? 1 : 8)
           : kind == PGI_DCT4                                                                       ? 2
           : kind == (after ? PGI_FOURIER : PGI_HERMITIAN) || kind == (after ? PGI_DCT2 : PGI_DCT3) ? 2
                                                                                                    : 1;
}
static PGI_HD inline int pgi_steps(const pgi_series &s, int after)
{
    return s.kind == PGI_DCT4              ? s.length
           : pgi_roles(s.kind, after) == 1 ? s.n
           : pgi_roles(s.kind, after) == 2 ? (s.n + 1) / 2
                                           : s.length / 2 + 1;
}

// Values of type 1 that a step takes.
static PGI_HD inline int pgi_images(const pgi_series &s) { return s.count == 5 ? 8 : s.count == 3 ? 4 : 2; }

// Which value of a column that is; -1: there is none, or it is 0. Where there are two, they are images of each other,
// and the first step takes both that are their own.
static PGI_HD inline int pgi_value_of(const pgi_series &s, int after, int m, int role)
{
    const int n = s.n, end = s.length * (s.count - 1);    // type 1: of the intervals
    if (pgi_roles(s.kind, after) == 1) return m;
    if (s.kind == PGI_DCT1) {
        const int q = role & 3, j = q == 0 ? m : q == 1 ? s.length - m : q == 2 ? 2 * s.length - m : s.length + m;
        const int i = role < 4 ? j : end - j;
        return role >= pgi_images(s) || (s.sine && (i == 0 || i == end)) ? -1 : i - s.sine;
    }
    if (s.kind == PGI_DCT4) {
        int negative;
        if (n % 2) return role ? -1 : after ? m : pgi_odd_index(n, m, &negative);
        return role ? n - 1 - 2 * m : 2 * m;
    }
    const int k = role == 0 ? m : m ? n - m : n % 2 ? -1 : n / 2;
    return k < 0 || !s.sine ? k : n - 1 - k;
}

template <class T> static PGI_HD inline pgi_complex<T> pgi_swapped(pgi_complex<T> a)
{
    return pgi_complex_of<T>(a.y, a.x);
}

// What an inverse complex transform of type 3 takes at m and at r = n - m, from the values there.
template <class V, class W, class Put> static PGI_HD inline void pgi_before_type3(V a, V b, W w, int m, int r, Put put)
{
    if (m == 0) {
        put(m, a);
        return;
    }
    put(m, pgi_times(pgi_conjugate(w), pgi_minus_i(a, b)));
    if (r > m) put(r, pgi_times(w, pgi_plus_i(a, b)));
}

// Type 1, the first of two cuts: the odd frequencies, of type 3, to transforms 3 and 4; a to d: the values of the even
// ones at m, M - m, 2 M - m and M + m, where M is the length.
template <class T, class V, class Put>
static PGI_HD inline void pgi_before_quarters(const pgi_series &s, int m, const pgi_complex<V> *v, pgi_complex<V> *a,
                                              pgi_complex<V> *b, pgi_complex<V> *c, pgi_complex<V> *d, const Put &put)
{
    const pgi_complex<T> *w = (const pgi_complex<T> *)s.twiddle;
    const T sign = s.sine ? (T)-1 : (T)1;
    const int r = s.length - m;
    pgi_complex<V> sum[4], rest[4];
    PGI_UNROLLED
    for (int q = 0; q < 4; q++) {
        const pgi_complex<V> image = pgi_scaled(v[q + 4], sign);
        sum[q] = pgi_sum(v[q], image);
        rest[q] = pgi_scaled(pgi_difference(v[q], image), (T)0.5);
    }
    *a = sum[0], *b = sum[1], *c = sum[2], *d = sum[3];
    pgi_complex<V> x[4];    // what type 3 takes at m, 2 M - m, M - m, M + m
    const pgi_complex<V> first = s.sine ? rest[2] : rest[0], second = s.sine ? rest[0] : rest[2];
    const pgi_complex<V> third = s.sine ? rest[3] : rest[1], fourth = s.sine ? rest[1] : rest[3];
    x[0] = m ? pgi_times(pgi_conjugate(w[m]), pgi_minus_i(first, second)) : first;
    x[1] = pgi_times(w[m], pgi_plus_i(first, second));
    x[2] = pgi_times(pgi_conjugate(w[r]), pgi_minus_i(third, fourth));
    x[3] = m ? pgi_times(w[r], pgi_plus_i(third, fourth)) : x[2];
    PGI_UNROLLED
    for (int q = 0; q < 4; q++) x[q] = pgi_swapped(x[q]);
    put(3, m, pgi_sum(x[0], x[3]));
    put(4, m, pgi_times(pgi_difference(x[0], x[3]), w[4 * m]));
    if (m == 0 || r == m) return;
    put(3, r, pgi_sum(x[2], x[1]));
    put(4, r, pgi_times(pgi_difference(x[1], x[2]), pgi_conjugate(w[4 * m])));
}

// Type 1: the even frequencies to transform 0, odd ones to 1, and of what is cut twice or three times the others too.
template <class T, class V, class Put>
static PGI_HD inline void pgi_before_type1(const pgi_series &s, int m, const pgi_complex<V> *v, const Put &put)
{
    const pgi_complex<T> *w = (const pgi_complex<T> *)s.twiddle;
    const T sign = s.sine ? (T)-1 : (T)1;
    const int r = s.length - m, both = m > 0 && r > m, fine = s.count == 5 ? 2 : 1;    // roots of twice the length
    const T half = (T)0.5;
    pgi_complex<V> a = v[0], b = v[1], c = v[2], d = v[3];
    if (s.count == 5) pgi_before_quarters<T>(s, m, v, &a, &b, &c, &d, put);
    if (s.count >= 3) {
        c = pgi_scaled(c, sign), d = pgi_scaled(d, sign);
        const pgi_complex<V> low = pgi_scaled(pgi_difference(a, c), half),
                             high = pgi_scaled(pgi_difference(b, d), half);
        a = pgi_sum(a, c);
        b = pgi_sum(b, d);
        pgi_before_type3(s.sine ? high : low, s.sine ? low : high, w[fine * m], m, r,
                         [&](int at, pgi_complex<V> x) { put(2, at, pgi_swapped(x)); });
    }
    const pgi_complex<V> sum = pgi_sum(a, pgi_scaled(b, sign)), rest = pgi_difference(a, pgi_scaled(b, sign));
    const pgi_complex<T> twiddle = w[2 * fine * m];
    put(0, m, sum);
    put(1, m, pgi_times(rest, twiddle));
    if (!both) return;
    put(0, r, pgi_scaled(sum, sign));
    put(1, r, pgi_scaled(pgi_times(rest, pgi_conjugate(twiddle)), sign));
}

template <class T, class V, class Put>
static PGI_HD inline void pgi_before(const pgi_series &s, int m, const pgi_complex<V> *v, const Put &put)
{
    const int n = s.n, mirror = m ? n - m : n / 2, two = m || n % 2 == 0;
    const pgi_complex<T> *w = (const pgi_complex<T> *)s.twiddle;
    const T sign = s.sine ? (T)-1 : (T)1;
    const auto first = [&](int at, pgi_complex<V> x) { put(0, at, x); };
    switch (s.kind) {
    case PGI_HERMITIAN:
        if (m == 0) {
            put(0, 0, v[0]);
            if (two) put(0, mirror, v[1]);
            return;
        }
        put(0, m, pgi_minus_i(v[0], v[1]));
        put(0, mirror, pgi_plus_i(v[0], v[1]));
        return;
    case PGI_DCT1: pgi_before_type1<T>(s, m, v, put); return;
    case PGI_DCT2: put(0, m & 1 ? n - 1 - (m >> 1) : m >> 1, pgi_scaled(v[0], m & 1 ? sign : (T)1)); return;
    case PGI_DCT3:
        if (m == 0) {
            put(0, 0, v[0]);
            if (two) pgi_before_type3(v[1], v[1], w[mirror], mirror, mirror, first);
            return;
        }
        put(0, m, pgi_times(pgi_conjugate(w[m]), pgi_minus_i(v[0], v[1])));
        put(0, mirror, pgi_times(w[m], pgi_plus_i(v[0], v[1])));
        return;
    case PGI_DCT4: {
        if (n % 2) {
            int negative;
            const int i = pgi_odd_index(n, m, &negative);
            put(0, m, pgi_scaled(v[0], (negative + m + (s.sine ? i : 0)) % 2 ? (T)-1 : (T)1));
            return;
        }
        const pgi_complex<V> a = v[0], b = pgi_scaled(v[1], sign);
        put(0, m, pgi_times(pgi_complex_of(a.x, b.x), w[m]));
        put(1, m, pgi_times(pgi_complex_of(a.y, b.y), w[m]));
        return;
    }
    default: put(0, m, v[0]);
    }
}

// Type 1: which transform gives value m, and where; reflected: of type 3, with the sign of the images.
static PGI_HD inline int pgi_source_of(const pgi_series &s, int m, int *place, int *reflected)
{
    int f = m + s.sine;
    *reflected = 0;
    if (s.count == 5 && f & 1) {
        const int k = f & 2 ? 2 * s.length - 1 - (f >> 2) : f >> 2;
        *reflected = f & 2;
        *place = k >> 1;
        return 3 + (k & 1);
    }
    if (s.count == 5) f >>= 1;
    if (s.count == 2) {
        *place = f >> 1;
        return f & 1;
    }
    if (f & 1) *reflected = f & 2;
    *place = *reflected ? s.length - 1 - (f >> 2) : f >> 2;
    return f & 1 ? 2 : f >> 1 & 1;
}

// From what the complex transforms gave, at(transform, m).
template <class T, class V, class At>
static PGI_HD inline void pgi_after(const pgi_series &s, int m, const At &at, pgi_complex<V> *v)
{
    const int n = s.n, mirror = m ? n - m : n / 2, two = m || n % 2 == 0;
    const pgi_complex<T> *w = (const pgi_complex<T> *)s.twiddle;
    const T half = (T)0.5, sign = s.sine ? (T)-1 : (T)1;
    switch (s.kind) {
    case PGI_FOURIER: {
        const pgi_complex<V> a = at(0, m), b = at(0, two ? mirror : m);
        v[0] = a, v[1] = b;
        if (m == 0) return;
        v[0] = pgi_complex_of<V>(half * (a.x + b.x), half * (a.y + b.y));
        v[1] = pgi_complex_of<V>(half * (b.y - a.y), half * (a.x - b.x));
        return;
    }
    case PGI_DCT1: {
        int place, reflected;
        const int which = pgi_source_of(s, m, &place, &reflected), odd = which > 1;
        const pgi_complex<V> a = at(which, place);
        const T x = odd ? (reflected ? sign : (T)1) : s.sine ? -half : half, y = odd ? x : half;
        const int swap = odd || s.sine;
        v[0] = pgi_complex_of<V>(x * (swap ? a.y : a.x), y * (swap ? a.x : a.y));
        return;
    }
    case PGI_DCT2: {
        const pgi_complex<V> a = at(0, m), b = at(0, two ? mirror : m);
        const pgi_complex<T> twiddle = pgi_scaled(w[m ? m : mirror], half);
        const pgi_complex<V> p = pgi_times(twiddle, m ? a : b), q = pgi_times(pgi_conjugate(twiddle), b);
        const pgi_complex<V> sum = pgi_sum(p, q);
        v[0] = sum;
        v[1] = pgi_complex_of<V>(q.y - p.y, p.x - q.x);
        if (m == 0) v[0] = a, v[1] = sum;
        return;
    }
    case PGI_DCT3: v[0] = pgi_scaled(at(0, m & 1 ? n - 1 - (m >> 1) : m >> 1), m & 1 ? sign : (T)1); return;
    case PGI_DCT4: {
        if (n % 2) {
            int negative;
            const int p = pgi_odd_place(n, s.sine ? n - 1 - m : m, &negative), f = (int)(2 * (int64_t)p % n);
            const pgi_complex<V> a = at(0, f), b = at(0, f ? n - f : 0);
            const T root = (T)0.35355339059327376220, signed_root = (negative + p) % 2 ? -root : root;
            const T c = n % 8 == 1 || n % 8 == 7 ? signed_root : -signed_root;    // of pi n / 4, halved
            const T d = n % 8 < 4 ? signed_root : -signed_root;
            v[0] = pgi_complex_of<V>(c * (a.x + b.x) - d * (b.y - a.y), c * (a.y + b.y) + d * (b.x - a.x));
            return;
        }
        const pgi_complex<V> a = pgi_times(w[m], at(0, m)), b = pgi_times(w[m], at(1, m));
        const pgi_complex<V> low = pgi_complex_of<V>(a.x, b.x), high = pgi_complex_of<V>(-a.y, -b.y);
        v[0] = s.sine ? high : low;
        v[1] = s.sine ? low : high;
        return;
    }
    default: v[0] = at(0, m);
    }
}

// The same with get(i) and put(i, value) of values.
template <class T, class Get, class Put>
static PGI_HD inline void pgi_step_before(const pgi_series &s, int m, const Get &get, const Put &put)
{
    pgi_complex<T> v[8];
    for (int role = 0; role < pgi_roles(s.kind, 0); role++) {
        const int i = pgi_value_of(s, 0, m, role);
        v[role] = i < 0 ? pgi_complex_of<T>(0, 0) : get(i);
    }
    pgi_before<T>(s, m, v, put);
}
template <class T, class At, class Put>
static PGI_HD inline void pgi_step_after(const pgi_series &s, int m, const At &at, const Put &put)
{
    pgi_complex<T> v[8];
    pgi_after<T>(s, m, at, v);
    for (int role = 0; role < pgi_roles(s.kind, 1); role++) {
        const int i = pgi_value_of(s, 1, m, role);
        if (i >= 0) put(i, v[role]);
    }
}

// Where element m of a transform of a pair lies in the buffer.
struct pgi_spread {
    int64_t element, transform, pair;
};
static PGI_HD inline int64_t pgi_spread_at(const pgi_spread &p, int transform, int m, int64_t pair)
{
    return m * p.element + transform * p.transform + pair * p.pair;
}

static PGI_HD inline int64_t pgi_offset(const int at[4], const pgi_grid &g)
{
    return at[0] + at[1] * g.sj + at[2] * g.sk + at[3] * g.problem;
}

namespace
{    // so that member functions have no names outside

// A column of the right-hand side, boundary data and mean included.
template <class T> struct pgi_column_reader {
    const pgi_rhs &from;
    const pgi_state *state;
    const T *f;
    int64_t stride;
    T mean;
    int axis, n, at[4];
    unsigned mask, touched;    // faces that have data, and those that the whole column touches
    PGI_HD pgi_column_reader(const pgi_box<T> &b, const pgi_rhs &rhs, int along, const int size[3], int64_t column)
        : from(rhs), state(b.state), mean(pgi_mean_of<T>(rhs, b.state)), axis(along)
    {
        pgi_column_place(size, axis, column, at);
        f = pgi_data<T>(rhs.f) + pgi_offset(at, rhs.f);
        stride = axis == 0 ? 1 : axis == 1 ? rhs.f.sj : rhs.f.sk;
        n = axis == 0 ? size[0] : axis == 1 ? size[1] : size[2];
        mask = pgi_face_mask(rhs, state);
        touched =
            mask & ~(3u << 2 * axis) &
            (pgi_end_bits(at[0], size[0]) | pgi_end_bits(at[1], size[1]) << 2 | pgi_end_bits(at[2], size[2]) << 4);
    }
    PGI_HD T complete(T value, int i) const
    {
        const unsigned here = touched | (mask & pgi_end_bits(i, n) << 2 * axis);
        if (!here) return value - mean;
        return value - mean +
               pgi_face_terms_of<T>(from.faces, state, here, axis == 0 ? i : at[0], axis == 1 ? i : at[1],
                                    axis == 2 ? i : at[2], at[3]);
    }
    PGI_HD T operator()(int i) const { return complete(f[i * stride], i); }
};

// A pair of columns of the grid, and of the buffer. Columns beyond the last one read it, and are not written. Where
// the two lie side by side they are one word, at even addresses.
template <class T> static PGI_HD inline int pgi_is_pair(const T *low, const T *high)
{
    return high == low + 1 && (uintptr_t)low % sizeof(pgi_complex<T>) == 0;
}
template <class T> struct pgi_pair_reader {
    pgi_column_reader<T> low, high;
    PGI_HD pgi_pair_reader(const pgi_box<T> &b, const pgi_rhs &from, int axis, const int n[3], int64_t column,
                           int64_t columns)
        : low(b, from, axis, n, column < columns ? column : columns - 1),
          high(b, from, axis, n, column + 1 < columns ? column + 1 : columns - 1)
    {
    }
    PGI_HD pgi_complex<T> operator()(int i) const
    {
        const T *const p = low.f + i * low.stride, *const q = high.f + i * high.stride;
        pgi_complex<T> v;
        if (pgi_is_pair(p, q))
            v = *(const pgi_complex<T> *)p;
        else
            v.x = *p, v.y = *q;
        return pgi_complex_of(low.complete(v.x, i), high.complete(v.y, i));
    }
};
// What the complex transforms of a pair take and give.
template <class T> struct pgi_pair_buffer {
    pgi_complex<T> *buffer;
    const pgi_spread &spread;
    int64_t pair;
    PGI_HD pgi_complex<T> operator()(int transform, int m) const
    {
        return buffer[pgi_spread_at(spread, transform, m, pair)];
    }
    PGI_HD void operator()(int transform, int m, pgi_complex<T> v) const
    {
        buffer[pgi_spread_at(spread, transform, m, pair)] = v;
    }
};
template <class T> struct pgi_pair_writer {
    T *low, *high;    // high: NULL where there is no such column, low: neither
    int64_t stride;
    PGI_HD pgi_pair_writer(T *first, T *second, int64_t from_row_to_row)
        : low(first), high(second), stride(from_row_to_row)
    {
    }
    PGI_HD pgi_pair_writer(T *u, const pgi_grid &to, int axis, const int n[3], int64_t column, int64_t columns)
        : low(NULL), high(NULL), stride(axis == 0   ? 1
                                        : axis == 1 ? to.sj
                                                    : to.sk)
    {
        int at[4];
        if (column >= columns) return;
        pgi_column_place(n, axis, column, at);
        low = u + pgi_offset(at, to);
        if (column + 1 >= columns) return;
        pgi_column_place(n, axis, column + 1, at);
        high = u + pgi_offset(at, to);
    }
    PGI_HD void operator()(int k, pgi_complex<T> v) const
    {
        T *const p = low + k * stride, *const q = high + k * stride;
        if (!low) return;
        if (high && pgi_is_pair(p, q)) {
            *(pgi_complex<T> *)p = v;
            return;
        }
        *p = v.x;
        if (high) *q = v.y;
    }
};

}    // namespace

// ---- elimination, for both back ends ----

// Row k of a mode reads (l + v + s) x_k = l x_(k-1) + v x_(k+1) + r with l, v >= 0, and s >= 0 what does not couple:
// reaction, alpha and the eigenvalues of the other axes. Elimination adds and multiplies such numbers only, so every
// pivot is accurate however small s is, and s = 0 in the last one says that the mode is singular, without a tolerance.

// A line is cut into parts. The last row of a part separates it from the next; eliminating the others leaves one such
// row a part, and the first unknown of a part as x_first = y x_last + z x_before + r with y + z + s = 1. A periodic
// line is one whose last part comes before its first.
struct pgi_separator {
    double l, v, s, r;
};
struct pgi_head_row {
    double y, z, s, r;
};

struct pgi_column {    // of values in memory, with room for marks
    int64_t stride, mark_stride;
    double *marks;
};

namespace
{
// Right-hand sides and solutions in the same memory.
template <class T> struct pgi_values {
    T *x;
    int64_t stride;
    PGI_HD T operator()(int k) const { return x[k * stride]; }
    PGI_HD void operator()(int k, double v) const { x[k * stride] = (T)v; }
    PGI_HD void block(int begin, int last, T value[PGI_LINE_BLOCK]) const
    {
        PGI_UNROLLED
        for (int q = 0; q < PGI_LINE_BLOCK; q++) value[q] = begin + q <= last ? x[(begin + q) * stride] : (T)0;
    }
};
}    // namespace

static PGI_HD inline void pgi_mark(const pgi_column &c, int block, double a, double b)
{
    if (block == 0) return;    // known anyway
    c.marks[(2 * (int64_t)block - 2) * c.mark_stride] = a;
    c.marks[(2 * (int64_t)block - 1) * c.mark_stride] = b;
}
static PGI_HD inline void pgi_marked(const pgi_column &c, int block, double *a, double *b)
{
    if (block == 0) return;
    *a = c.marks[(2 * (int64_t)block - 2) * c.mark_stride];
    *b = c.marks[(2 * (int64_t)block - 1) * c.mark_stride];
}

// Rows first to last: eliminates down to the last one. Leaves the eliminated right-hand sides in x, and a pivot every
// PGI_LINE_BLOCK rows in the marks. CUT: the first row couples to one before it.
template <int CUT, class T, class Load>
static PGI_HD inline void pgi_line_down(const pgi_axis<double> &axis, double mu, int first, int last, double scale,
                                        double mean, Load load, T *x, const pgi_column &c, pgi_separator *own,
                                        pgi_head_row *head)
{
    double s = 0, z = 0, r = 0, inverse = 0;
    pgi_head_row h = {1, 0, 0, 0};
    for (int begin = first; begin <= last; begin += PGI_LINE_BLOCK) {
        T value[PGI_LINE_BLOCK];
        load.block(begin, last, value);
        PGI_UNROLLED
        for (int q = 0; q < PGI_LINE_BLOCK; q++) {
            const int k = begin + q;
            if (k > last) continue;
            const pgi_row<double> row = pgi_row_of(axis, k);
            const double factor = k > first ? -row.lower * inverse : 0;
            s = row.reaction + mu + factor * s;
            if (CUT) z = k > first ? factor * z : -row.lower;
            r = scale * (double)value[q] - mean + factor * r;
            if (k == last) {
                own->l = z, own->v = -row.upper, own->s = s, own->r = r;
                continue;
            }
            inverse = pgi_ratio(1, z + s - row.upper);
            if (q == 0) pgi_mark(c, (begin - first) / PGI_LINE_BLOCK, s, z);
            x[k * c.stride] = (T)r;
            if (!CUT) continue;
            const double carried = h.y * inverse;
            h.z += carried * z;
            h.s += carried * s;
            h.r += carried * r;
            h.y = -carried * row.upper;
        }
    }
    *head = h;
}

// The other way, once x_last and the unknown before the first are known. Calls store(row, unknown).
template <int CUT, class T, class Store>
static PGI_HD inline void pgi_line_up(const pgi_axis<double> &axis, double mu, int first, int last, double before,
                                      double x_last, const T *x, const pgi_column &c, Store store)
{
    double next = x_last;
    store(last, x_last);
    for (int block = last > first ? (last - 1 - first) / PGI_LINE_BLOCK : -1; block >= 0; block--) {
        const int begin = first + block * PGI_LINE_BLOCK;
        double s = 0, z = 0, inverse[PGI_LINE_BLOCK], to_before[PGI_LINE_BLOCK];
        T value[PGI_LINE_BLOCK];
        PGI_UNROLLED
        for (int q = 0; q < PGI_LINE_BLOCK; q++) value[q] = begin + q < last ? x[(begin + q) * c.stride] : (T)0;
        pgi_marked(c, block, &s, &z);
        PGI_UNROLLED
        for (int q = 0; q < PGI_LINE_BLOCK; q++) {
            const pgi_row<double> row = pgi_row_of(axis, begin + q < last ? begin + q : last);
            if (q > 0) {
                const double factor = -row.lower * inverse[q - 1];
                s = row.reaction + mu + factor * s;
                z = factor * z;
            } else if (block == 0) {
                s = row.reaction + mu;
                z = CUT ? -row.lower : 0;
            }
            inverse[q] = pgi_ratio(1, z + s - row.upper);
            to_before[q] = z;
        }
        PGI_UNROLLED
        for (int q = PGI_LINE_BLOCK - 1; q >= 0; q--) {
            const int k = begin + q;
            if (k >= last) continue;
            double sum = (double)value[q] - pgi_row_of(axis, k).upper * next;
            if (CUT) sum += to_before[q] * before;
            next = sum * inverse[q];
            store(k, next);
        }
    }
}

static PGI_HD inline void pgi_join_next(pgi_separator *own, const pgi_head_row &next)
{
    const double v = own->v;
    own->v = v * next.y;
    own->s += v * next.s;
    own->r += v * next.r;
}

// ---- modes that may be indefinite (alpha < 0): elimination with row exchanges ----

// The number of negative eigenvalues of an open line plus mu.
static PGI_HD inline int pgi_line_negative(const pgi_axis<double> &axis, double mu)
{
    int count = 0;
    double d = 1, above = 0;
    PGI_ROLLED
    for (int k = 0; k < axis.n; k++) {
        const pgi_row<double> row = pgi_row_of(axis, k);
        d = row.reaction - row.lower - row.upper + mu - row.lower * above / d;
        if (d == 0) d = DBL_MIN;
        count += d < 0;
        above = row.upper;
    }
    return count;
}

// A row under elimination: b x_k + c x_(k+1) = r. The next one is a x_k + e x_(k+1) + g x_(k+2); the larger of a and b
// is the pivot.
struct pgi_pivot {
    double b, c, pivot, right, far, factor;
    int swapped;
};
static PGI_HD inline void pgi_pivot_step(const pgi_axis<double> &axis, double mu, int k, pgi_pivot *e)
{
    const pgi_row<double> row = pgi_row_of(axis, k + 1);
    const double a = row.lower, diagonal = row.reaction - row.lower - row.upper + mu, b = e->b, c = e->c;
    e->swapped = fabs(a) > fabs(b);
    if (e->swapped) {
        e->pivot = a, e->right = diagonal, e->far = row.upper;
        e->factor = b / a;
        e->b = c - e->factor * diagonal;
        e->c = -e->factor * row.upper;
    } else {
        e->pivot = b, e->right = c, e->far = 0;
        e->factor = a / b;
        e->b = diagonal - e->factor * c;
        e->c = row.upper;
    }
}

// Solves an open line plus mu in place. Returns 0, and x = 0, where an eigenvalue is 0 to round-off. scope: of the
// numbers that were added up.
template <class T> static PGI_HD PGI_RARE int pgi_line_exchanging(const pgi_axis<double> &axis, double mu, double scope,
                                                                  double scale, T *x, const pgi_column &c)
{
    const int n = axis.n;
    const double width = 8 * DBL_EPSILON * scope;
    int negative = 0;    // more with the larger number
    PGI_ROLLED
    for (int q = -1; q <= 1; q += 2) negative += q * pgi_line_negative(axis, mu + q * width);
    if (negative != 0) {
        PGI_ROLLED
        for (int k = 0; k < n; k++) x[k * c.stride] = 0;
        return 0;
    }
    const pgi_row<double> top = pgi_row_of(axis, 0);
    pgi_pivot e;
    e.b = top.reaction - top.lower - top.upper + mu;
    e.c = top.upper;
    double r = scale * (double)x[0];
    PGI_ROLLED
    for (int k = 0; k + 1 < n; k++) {
        const double next = scale * (double)x[(k + 1) * c.stride];
        if (k % PGI_LINE_BLOCK == 0) pgi_mark(c, k / PGI_LINE_BLOCK, e.b, e.c);
        pgi_pivot_step(axis, mu, k, &e);
        x[k * c.stride] = (T)(e.swapped ? next : r);
        r = e.swapped ? r - e.factor * next : next - e.factor * r;
    }
    double x1 = r / e.b, x2 = 0;
    x[(n - 1) * c.stride] = (T)x1;
    for (int block = n > 1 ? (n - 2) / PGI_LINE_BLOCK : -1; block >= 0; block--) {
        const int begin = block * PGI_LINE_BLOCK, end = begin + PGI_LINE_BLOCK < n - 1 ? begin + PGI_LINE_BLOCK : n - 1;
        double pivot[PGI_LINE_BLOCK], right[PGI_LINE_BLOCK], far[PGI_LINE_BLOCK];
        e.b = top.reaction - top.lower - top.upper + mu;
        e.c = top.upper;
        pgi_marked(c, block, &e.b, &e.c);
        PGI_ROLLED
        for (int k = begin; k < end; k++) {
            pgi_pivot_step(axis, mu, k, &e);
            pivot[k - begin] = e.pivot, right[k - begin] = e.right, far[k - begin] = e.far;
        }
        PGI_ROLLED
        for (int k = end - 1; k >= begin; k--) {
            const double value =
                ((double)x[k * c.stride] - right[k - begin] * x1 - far[k - begin] * x2) / pivot[k - begin];
            x[k * c.stride] = (T)value;
            x2 = x1;
            x1 = value;
        }
    }
    return 1;
}

// The same for a periodic line whose rows are all alike, of five or more: what is symmetric about the first unknown and
// what is antisymmetric are open lines. Half of the sums of images take the places 0 to n/2, the differences come from
// the last one down.
template <class T> static PGI_HD PGI_RARE int pgi_line_folded(const pgi_axis<double> &axis, double mu, double scope,
                                                              double scale, T *x, const pgi_column &c)
{
    const int n = axis.n, half = n / 2, odd = n % 2;
    const double near = axis.row[1].lower;
    const pgi_row<double> first[2] = {{0, 2 * near, 0}, {0, near, -near}};
    const pgi_row<double> last[2] = {{odd ? near : 2 * near, 0, 0}, {near, 0, odd ? -2 * near : -near}};
    const pgi_column down = {-c.stride, c.mark_stride, c.marks};
    int solved = 1;
    const auto fold = [&](double factor) {
        PGI_ROLLED
        for (int i = 1; i < n - i; i++) {
            T *const a = x + i * c.stride, *const b = x + (n - i) * c.stride;
            const T sum = *a + *b, difference = *a - *b;
            *a = (T)(factor * sum), *b = (T)(factor * difference);
        }
    };
    fold(0.5);
    PGI_ROLLED
    for (int q = 0; q < 2; q++) {
        pgi_axis<double> open = axis;
        open.n = q ? n - 1 - half : half + 1;
        open.row[0] = first[q], open.row[2] = last[q];
        if (!pgi_line_exchanging(open, mu, scope, scale, q ? x + (n - 1) * c.stride : x, q ? down : c)) solved = 0;
    }
    fold(1);
    return solved;
}
template <class T> static PGI_HD inline int pgi_line_indefinite(const pgi_elimination &d, double mu, double alpha, T *x,
                                                                const pgi_column &c)
{
    const double scope = d.norm - 2 * alpha;
    return d.periodic ? pgi_line_folded(d.rows, mu, scope, d.scale, x, c)
                      : pgi_line_exchanging(d.rows, mu, scope, d.scale, x, c);
}

// What the other axes and alpha add to the line of a column.
static PGI_HD inline double pgi_column_shift(const pgi_elimination &d, double alpha, const int *at)
{
    return ((d.lambda[0][at[0]] + d.lambda[1][at[1]]) + d.lambda[2][at[2]]) + alpha;
}

// The inverse of an eigenvalue, where no axis is left to eliminate; 0 for the constant of a singular problem. sum: of
// those of the axes.
static PGI_HD inline double pgi_inverse_of(double sum, double alpha, double scale, int *resonant)
{
    const double total = sum + alpha;
    if (alpha < 0 && fabs(total) <= 8 * DBL_EPSILON * (sum - alpha)) {
        *resonant = 1;
        return 0;
    }
    return total == 0 ? 0 : pgi_ratio(scale, total);
}
static PGI_HD inline double pgi_mode_inverse(const pgi_elimination &d, double alpha, const int *at, int *resonant)
{
    return pgi_inverse_of((d.lambda[0][at[0]] + d.lambda[1][at[1]]) + d.lambda[2][at[2]], alpha, d.scale, resonant);
}

// One column on one thread. mu: what pgi_column_shift says.
static void pgi_cpu_line(const pgi_elimination &d, double mu, double alpha, double *x, const pgi_column &c,
                         int *resonant)
{
    const int n = d.rows.n;
    if (mu < 0) {
        if (!pgi_line_indefinite(d, mu, alpha, x, c)) *resonant = 1;
        return;
    }
    const int null = d.singular && mu == 0;    // the constant: the weighted mean goes before and after
    const auto mean_of = [&]() {
        double sum = 0, volume = 0;
        for (int k = 0; k < n; k++) {
            const double w = pgi_weight_of(d.rows, k);
            volume += w;
            sum += w * x[k * c.stride];
        }
        return sum / volume;
    };
    pgi_separator own = {0, 0, 1, 0};
    pgi_head_row head;
    const pgi_values<double> values = {x, c.stride};
    pgi_line_down<1>(d.rows, mu, 0, n - 1, d.scale, null ? d.scale * mean_of() : 0, values, x, c, &own, &head);
    pgi_join_next(&own, head);
    const double last = own.s == 0 ? 0 : own.r / own.s;
    pgi_line_up<1>(d.rows, mu, 0, n - 1, last, last, x, c, values);
    if (!null) return;
    const double mean = mean_of();
    for (int k = 0; k < n; k++) x[k * c.stride] -= mean;
}

#if PGI_DIRECT

// ---- the plan, on the host ----

static int pgi_is_robin(const pgi_line *l, int end) { return !l->periodic && l->end_a[end] != 0 && l->end_b[end] != 0; }
static int pgi_can_transform(const pgi_line *l)
{
    return l->n == 1 || (l->uniform && !pgi_is_robin(l, 0) && !pgi_is_robin(l, 1));
}

// Eigenvalues are 4/h^2 sin^2(pi a/b): row k of a and b.
static void pgi_mode_angle(const pgi_line *l, int k, double *a, double *b)
{
    const int low = pgi_is_dirichlet(l, 0), high = pgi_is_dirichlet(l, 1), n = l->n;
    if (l->periodic)
        *a = k, *b = n;
    else if (low != high)
        *a = 2.0 * k + 1, *b = 4.0 * n;
    else
        *a = k + low, *b = 2.0 * (l->node ? n - 1 + 2 * low : n);
}

// exp(-2 pi i p/q), from an angle of at most an eighth of a turn.
static pgi_complex<double> pgi_root(int64_t p, int64_t q)
{
    int64_t angle = 8 * (p % q);    // of 8 q
    const int below = angle > 4 * q;
    if (below) angle = 8 * q - angle;
    const int left = angle > 2 * q;
    if (left) angle = 4 * q - angle;
    const int steep = angle > q;
    if (steep) angle = 2 * q - angle;
    const double t = 2 * 3.14159265358979323846 * ((double)angle / (8.0 * (double)q)), c = cos(t), s = sin(t);
    return pgi_complex_of((left ? -1 : 1) * (steep ? s : c), (below ? 1 : -1) * (steep ? c : s));
}

static void pgi_plan_series(pgi_series series[2], const pgi_line *l, double *scale)
{
    const int low = pgi_is_dirichlet(l, 0), high = pgi_is_dirichlet(l, 1), n = l->n;
    pgi_series s;
    memset(&s, 0, sizeof s);
    s.n = s.length = n;
    s.count = 1;
    s.sine = low;
    series[0] = series[1] = s;
    if (n == 1) return;
    if (l->periodic) {
        series[0].kind = PGI_FOURIER, series[1].kind = PGI_HERMITIAN;
        *scale /= n;
    } else if (low != high && !l->node) {
        series[0].kind = series[1].kind = PGI_DCT4;
        series[0].length = series[1].length = n % 2 ? n : n / 2;
        series[0].count = series[1].count = n % 2 ? 1 : 2;
        *scale *= 2.0 / n;
    } else if (low != high) {
        series[0].kind = PGI_DCT3, series[1].kind = PGI_DCT2;
        *scale /= n;
    } else if (!l->node) {
        series[0].kind = PGI_DCT2, series[1].kind = PGI_DCT3;
        *scale /= n;
    } else {
        const int intervals = n - 1 + 2 * low;
        const int cut = intervals % 4 == 0 && intervals > 4 ? 4 : intervals % 2 == 0 ? 2 : 1;
        series[0].kind = series[1].kind = PGI_DCT1;
        series[0].length = series[1].length = intervals / cut;
        series[0].count = series[1].count = cut + 1;
        *scale *= 2.0 / intervals;
    }
    for (int q = 0; q < 2; q++) series[q].inverse = series[q].kind == PGI_HERMITIAN || series[q].kind == PGI_DCT3;
}

// Columns along an axis, of all problems that are taken at once.
static int64_t pgi_columns(const pg_solver *s, int axis)
{
    return s->together * ((int64_t)s->work.n[0] * s->work.n[1] * s->work.n[2] / s->work.n[axis]);
}

// Bytes of a pair of columns in the buffer.
static size_t pgi_pair_bytes(const pg_solver *s, int axis)
{
    const pgi_series *q = &s->direct.series[axis][0];
    return (size_t)q->length * (size_t)q->count * 2 *
           (s->desc.flags & (PG_F32 | PG_MIXED) ? sizeof(float) : sizeof(double));
}

static int pgi_is_transformed(const pg_solver *s, int axis) { return s->direct.series[axis][0].kind != PGI_IDENTITY; }

static void pgi_forget_direct(pg_solver *s)
{
#ifdef PG_USE_FFTW
    for (int a = 0; a < 3; a++) {
        for (int q = 0; q < 2; q++) {
            if (!s->fftw[a][q]) continue;
            if (s->desc.flags & (PG_F32 | PG_MIXED))
                fftwf_destroy_plan((fftwf_plan)s->fftw[a][q]);
            else
                fftw_destroy_plan((fftw_plan)s->fftw[a][q]);
        }
    }
#endif
#if PGI_GPU
    for (int a = 0; a < 3; a++)
        if (s->has_fft[a]) cufftDestroy(s->fft[a]);
#endif
    (void)s;
}

#if PGI_GPU
static pg_status pgi_plan_cufft(pg_solver *s, char text[512]);
static int pgi_plan_small2d(pg_solver *s, pgi_line *const line[3]);
static int pgi_cut_fft(const pg_solver *s, int axis, pgi_fft *c);
static int pgi_can_fuse(const pg_solver *s, int axis);
static int pgi_fft_position(const pgi_fft *c, int type1, int u);
static int pgi_fft_mode(const pgi_fft *c, int row);

static void pgi_cufft_failed(pg_solver *s, cufftResult e, const char *what, int line)
{
    pgi_fail(s, e == CUFFT_ALLOC_FAILED ? PG_ERROR_MEMORY : PG_ERROR_CUDA,
             "%s failed at line %d of poisson_gpu.cu: cuFFT's result %d", what, line, (int)e);
}
#define PGI_CUFFT(s, call)                                                                                             \
    do {                                                                                                               \
        if ((s)->failed == PG_OK) {                                                                                    \
            const cufftResult pgi_result_ = (call);                                                                    \
            if (pgi_result_ != CUFFT_SUCCESS) pgi_cufft_failed(s, pgi_result_, #call, __LINE__);                       \
        }                                                                                                              \
    } while (0)
#endif

// The CPU's buffer: a tile of columns a slot, before and after a step of its transform, or in double for elimination.
static pg_status pgi_plan_tiles(pg_solver *s, char text[512])
{
    pgi_direct *d = &s->direct;
    const size_t grid = (size_t)(pgi_columns(s, 0) * s->work.n[0]) * pgi_element(s->desc.flags);    // of all problems
    int64_t tiles = 1;
    for (int a = 0; a < 3; a++) {
        const size_t n = (size_t)s->work.n[a];
        const int64_t pairs = (pgi_columns(s, a) + 1) / 2;
        d->tile[a] = 2 * pairs < PGI_TILE ? 2 * (int)pairs : (int)PGI_TILE;
        const size_t wide = (size_t)d->tile[a];
        const size_t bytes = a == d->lines.line
                                 ? n * wide * sizeof(double) + (n / PGI_LINE_BLOCK + 1) * 2 * sizeof(double)
                                 : wide * pgi_pair_bytes(s, a);    // in and out: twice half as many pairs
        if (a != d->lines.line && !pgi_is_transformed(s, a)) continue;
        if (bytes > d->slot_bytes) d->slot_bytes = bytes;
        const int64_t here = (pgi_columns(s, a) + PGI_TILE - 1) / PGI_TILE;
        if (here > tiles) tiles = here;
    }
    d->slot_bytes = (d->slot_bytes + PGI_ALIGN - 1) / PGI_ALIGN * PGI_ALIGN;
    d->slots = 1;
    while (d->slots < PGI_SLOTS && d->slots < tiles && (d->slots + 1) * d->slot_bytes <= grid) d->slots++;
    d->buffer_bytes = (size_t)d->slots * d->slot_bytes;
#ifdef PG_USE_FFTW
    // The planner takes an estimate, so it does not look at the arrays.
    double *in = (double *)aligned_alloc(PGI_ALIGN, d->slot_bytes), *out = in ? in + d->slot_bytes / 16 : NULL;
    for (int a = 0; a < 3 && in; a++) {
        const pgi_series *q = &d->series[a][0];
        const int width = d->tile[a] / 2;
        for (int backward = 0; backward < 2 && pgi_is_transformed(s, a); backward++) {
            const int sign = backward ? FFTW_BACKWARD : FFTW_FORWARD;
            const unsigned how = FFTW_ESTIMATE | FFTW_UNALIGNED;
            if (s->desc.flags & (PG_F32 | PG_MIXED))
                s->fftw[a][backward] = fftwf_plan_many_dft(1, &q->length, width, (fftwf_complex *)in, NULL, width, 1,
                                                           (fftwf_complex *)out, NULL, width, 1, sign, how);
            else
                s->fftw[a][backward] = fftw_plan_many_dft(1, &q->length, width, (fftw_complex *)in, NULL, width, 1,
                                                          (fftw_complex *)out, NULL, width, 1, sign, how);
            if (!s->fftw[a][backward])
                return free(in), pgi_refuse(text, PG_ERROR_MEMORY, "FFTW has no plan for length %d", q->length);
        }
    }
    if (!in) return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory to plan the transforms");
    free(in);
#else
    (void)text;
#endif
    return PG_OK;
}

// An elimination with row exchanges has a periodic form only where all rows are alike.
static pg_status pgi_check_shift(const pg_solver *s, double alpha, char text[512])
{
    if (alpha < 0 && s->direct.lines.line >= 0 && s->direct.lines.periodic && !s->direct.uniform)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "alpha is %g, and the periodic axis %s has coord or a metric: PG_DIRECT has no way to solve "
                          "this; make the axis uniform, or alpha >= 0",
                          alpha,
                          pgi_axis_name[s->desc.dim == 2 && s->direct.lines.line > 0 ? 3 - s->direct.lines.line
                                                                                     : s->direct.lines.line]);
    return PG_OK;
}

static int pgi_largest_factor(int length)
{
    int largest = 1;
    for (int p = 2; length > 1; p = (int64_t)p * p > length ? length : p + 1)
        for (; length % p == 0; length /= p) largest = p;
    return largest;
}

static pgi_series pgi_series_of(const pgi_line *l)
{
    pgi_series series[2];
    double scale = 1;
    pgi_plan_series(series, l, &scale);
    return series[0];
}

// The largest prime factor of the transforms along an axis.
static int pgi_line_factor(const pgi_line *l) { return l->n > 1 ? pgi_largest_factor(pgi_series_of(l).length) : 1; }

static int pgi_has_own_transforms(const pg_desc *d)
{
#ifdef PG_USE_FFTW
    (void)d;
    return 0;
#else
    return d->backend == PG_CPU;
#endif
}

// What a transform along an axis costs, per value: on the CPU the sum of the radices. Other transforms than ours are
// measured by that of a length of small factors; they take a detour where a prime factor is large (L. Bluestein 1970).
static double pgi_transform_work(const pg_desc *d, const pgi_line *l)
{
    const int largest = pgi_line_factor(l);
    if (l->n == 1) return 0;
    if (!pgi_has_own_transforms(d)) return largest <= PGI_RADIX ? 1 : largest <= PGI_LARGE_RADIX ? 5 : 30;
    const pgi_series series = pgi_series_of(l);
    double sum = 0;
    int rest = series.length;
    for (; rest % 4 == 0; rest /= 4) sum += 4;
    for (int p = 2; rest > 1; p = (int64_t)p * p > rest ? rest : p + 1)
        for (; rest % p == 0; rest /= p) sum += p;
    return sum * series.count * series.length / l->n;
}

// Warns of lengths that transforms are slow at: a dense matrix for each large prime factor, or a detour.
static void pgi_warn_of_lengths(pg_solver *s, pgi_line *const line[3])
{
    const int tolerable = pgi_has_own_transforms(&s->work) ? 31 : PGI_LARGE_RADIX;
    for (int a = 0; a < 3; a++) {
        const int factor = pgi_line_factor(line[a]);
        if (!pgi_is_transformed(s, a) || factor <= tolerable) continue;
        pgi_line good = *line[a];
        while (pgi_line_factor(&good) > PGI_RADIX) good.n++;
        const size_t used = strlen(s->warning);
        snprintf(s->warning + used, sizeof s->warning - used,
                 "%s%d unknowns along %s need transforms with the large prime factor %d, which slows PG_DIRECT down; "
                 "%d would be fast",
                 used ? "; " : "", line[a]->n, pgi_axis_name[s->desc.dim == 2 && a > 0 ? 3 - a : a], factor, good.n);
        return;
    }
}

// The axis that is not transformed: the one that cannot be, or the last one that is closed; elimination costs less than
// two transforms, and last axes suit it best, as neighbouring columns are neighbours in memory. But a length with large
// prime factors is worse for transforms than any axis is for elimination. Or -1. other: a second one that cannot be
// transformed, or -1.
static int pgi_line_axis(const pg_desc *d, pgi_line *const line[3], int *other)
{
    int special = -1;
    *other = -1;
    for (int a = 0; a < 3; a++) {
        if (pgi_can_transform(line[a])) continue;
        if (special >= 0)
            *other = a;
        else
            special = a;
    }
    if (special >= 0) return special;
    for (int a = 2; a >= 0 && special < 0; a--)
        if (!line[a]->periodic && line[a]->n > 1) special = a;
    double most = special >= 0 ? 1.5 * pgi_transform_work(d, line[special]) : pgi_has_own_transforms(d) ? 40 : 1;
    for (int a = 2; a >= 0; a--) {
        const double work = pgi_transform_work(d, line[a]);
        if (work <= most || pgi_line_factor(line[a]) <= PGI_RADIX) continue;
        special = a;
        most = work;
    }
    return special;
}

// Which axes are transformed, how, and which is left. lines: of the finest level.
static pg_status pgi_plan_direct(pg_solver *s, pgi_line *const line[3], char text[512])
{
    pgi_direct *d = &s->direct;
    const auto name = [&](int a) { return pgi_axis_name[s->desc.dim == 2 && a > 0 ? 3 - a : a]; };
    d->lines.scale = 1;
    d->fused = -1;
    s->together = s->mixed || s->krylov ? 1 : s->desc.batch;    // buffers and chunks are for a whole batch
    int other;
    d->lines.line = pgi_line_axis(&s->work, line, &other);
    if (other >= 0)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "PG_DIRECT transforms all axes but one, and %s and %s both have coord, a metric or a "
                          "Robin face; use PG_FMG or PG_VCYCLE",
                          name(d->lines.line), name(other));
#if PGI_GPU
    // In 3D, one kernel that transforms there and back costs less than elimination.
    if (s->cuda && !line[1]->absent && d->lines.line >= 0 && pgi_can_transform(line[d->lines.line])) {
        double scale = 1;
        pgi_plan_series(d->series[d->lines.line], line[d->lines.line], &scale);
        if (pgi_can_fuse(s, d->lines.line)) d->lines.line = -1;
    }
#endif
    for (int a = 0; a < 3; a++) {
        if (a != d->lines.line) {
            pgi_plan_series(d->series[a], line[a], &d->lines.scale);
            continue;
        }
        pgi_series identity;
        memset(&identity, 0, sizeof identity);
        identity.n = identity.length = line[a]->n;
        identity.count = 1;
        d->series[a][0] = d->series[a][1] = identity;
        d->uniform = pgi_can_transform(line[a]);
        d->lines.periodic = line[a]->periodic;
        d->lines.singular = pgi_line_singular(line[a]);
    }
    PGI_TRY(pgi_check_shift(s, s->desc.alpha, text));
#if PGI_GPU
    if (s->cuda) {
        d->exact =
            !line[1]->absent && (s->mixed || s->krylov || s->desc.batch == 1) && pgi_is_coarsest(line, -1, PGI_MODES);
        if (d->exact || pgi_plan_small2d(s, line)) return s->failed;
        pgi_warn_of_lengths(s, line);
        return pgi_plan_cufft(s, text);
    }
#endif
    pgi_warn_of_lengths(s, line);
    return pgi_plan_tiles(s, text);
}

// ---- a nearby operator that can be solved so, as a preconditioner ----

// PG_PRECOND_DIRECT (P. Concus, G. H. Golub 1973). A is W^-1 K: K has the products of the weights w of all axes but one
// with the couplings k/d of that one, W those of all weights. The axis that varies most keeps its tables, and uniform
// lines take the places of others that transforms cannot take: W' and K'. M = K'^-1 W, which is (W'^-1 K')^-1 times
// W/W', is self-adjoint in the inner product of W, as A is. Its quality is how far w and k/d stray from those of the
// uniform line, w' and k', whatever the scale of M: w'/k' is to be chosen. The ratio of the arithmetic means took
// fewest iterations, on 96^2 points with spacings to 1 : 100 along both axes 80 to 101; the true length, L/n for h, 160
// to 190.

// An axis becomes uniform. An end that holds u less than the gap beside it by the root of n/2 counts as closed. Returns
// how much w or k/d varies.
static double pgi_make_uniform(pg_desc *d, const pgi_line *l, int axis)
{
    double least[2] = {DBL_MAX, DBL_MAX}, most[2] = {0, 0}, conductance = 0;
    const auto vary = [&](int which, double x) {
        least[which] = fmin(least[which], x);
        most[which] = fmax(most[which], x);
    };
    d->coord[axis] = d->weight[axis] = d->conductance[axis] = NULL;
    for (int e = 0; e < 2 && !l->periodic; e++) {
        const int inside = e ? l->n - 1 : 1;
        const double held = pgi_end_coupling(l, e) * l->end_a[e] * pgi_line_w(l, e ? l->n - 1 : 0),
                     beside = pgi_line_k(l, inside) / pgi_line_gap(l, inside);
        d->face[2 * axis + e].kind = held * sqrt(0.5 * l->n) >= beside ? PG_DIRICHLET : PG_NEUMANN;
    }
    d->h[axis] = 1;
    pgi_line unit;
    pgi_line_create(&unit, d, axis, 0);
    for (int i = 0; i < l->n; i++) vary(0, pgi_line_w(l, i) / pgi_line_w(&unit, i));
    for (int i = 1; i < l->n; i++) {
        const double k = pgi_line_k(l, i) / pgi_line_gap(l, i);
        vary(1, k);
        conductance += k / (l->n - 1);
    }
    d->h[axis] = sqrt(pgi_line_volume(l) / pgi_line_volume(&unit) / conductance);
    return fmax(most[0] / least[0], most[1] / least[1]);
}

static int pgi_is_replaced(const pgi_hierarchy *h, int axis)
{
    return h->near && pgi_can_transform(h->near->line[0][axis]) && !pgi_can_transform(h->line[0][axis]);
}

// Where nothing but closed ends are left in place of ones that hold u a little, the smallest eigenvalue does so.
static pgi_hierarchy *pgi_near_create(const pg_desc *d, const pgi_hierarchy *h)
{
    pg_desc near = *d;
    double most = 0;
    int kept = -1;
    for (int a = 0; a < 3; a++) {
        near.velocity[a] = 0;
        if (pgi_can_transform(h->line[0][a])) continue;
        pg_desc unused = *d;
        const double variation = pgi_make_uniform(&unused, h->line[0][a], a);
        if (variation >= most) kept = a, most = variation;
    }
    for (int a = 0; a < 3; a++)
        if (a != kept && !pgi_can_transform(h->line[0][a])) pgi_make_uniform(&near, h->line[0][a], a);
    pgi_hierarchy *const result = pgi_hierarchy_create(&near, 0);
    for (int a = 0; a < 3 && result; a++) {
        const pgi_line *const l = h->line[0][a];
        if (a != kept && pgi_line_singular(result->line[0][a]) && !pgi_line_singular(l))
            result->line[0][a]->shift = pgi_line_eigenvalue(l, 0);
    }
    return result;
}

// The weights of A over those of what is solved, as weights of a level. Their means along each axis are 1.
template <class T> static void pgi_layout_ratio(pg_solver *s, pgi_box<T> *b, const pgi_hierarchy *h, pgi_arena *arena)
{
    for (int a = 0; a < 3; a++) {
        pgi_axis<T> *const axis = &b->axis[a];
        const pgi_line *const l = h->line[0][a];
        memset(axis, 0, sizeof *axis);
        axis->n = s->ratio.n[a] = l->n;
        for (int q = 0; q < 3; q++) axis->row_weight[q] = 1;
        if (!pgi_is_replaced(h, a)) continue;
        void *host;
        const double all = pgi_line_volume(h->near->line[0][a]) / pgi_line_volume(l);
        axis->weight = (double *)pgi_take_table(arena, (size_t)l->n * sizeof(double), &host);
        for (int i = 0; i < l->n; i++) {
            const double ratio = pgi_line_w(l, i) / pgi_line_w(h->near->line[0][a], i) * all;
            if (fabs(ratio - 1) > 1e-12) s->weighs = 1;
            if (host) ((double *)host)[i] = ratio;
        }
    }
}

// ---- small 2D problems: their plan ----

// The values that make up number o of both halves; -1: none.
static PGI_HD inline void pgi_fold_place(const pgi_fold &f, int o, int place[2])
{
    const int first = !f.folded || !f.periodic ? o : o < f.half[1] ? o + 1 : o == f.half[1] ? 0 : f.n / 2;
    place[0] = o < f.half[0] ? first : -1;
    place[1] = o >= f.half[1] ? -1 : f.folded ? f.n - 1 - o : f.half[0] + o;
}

// Number o of the modes of a half, as pgi_mode_angle counts.
static int pgi_fold_mode(const pgi_fold &f, int c, int o)
{
    if (!f.folded) return c * f.half[0] + o;
    return f.periodic ? (c ? f.n - 1 - o : o) : 2 * o + c;
}

// Value i of eigenvector k.
static double pgi_mode_value(const pgi_line *l, int k, int i)
{
    if (l->n == 1) return 1;
    const int sine = l->periodic ? 2 * k > l->n : pgi_is_dirichlet(l, 0);
    const int twice = l->periodic ? 2 * i : 2 * i + (l->node ? 2 * sine : 1);    // the distance from the low face
    double a, b;
    pgi_mode_angle(l, l->periodic && sine ? l->n - k : k, &a, &b);
    const pgi_complex<double> root = pgi_root((int64_t)a * twice, 2 * (int64_t)b);
    return sine ? -root.y : root.x;
}

static double pgi_mode_eigenvalue(const pgi_line *l, int k)
{
    double row[4], p, q;
    pgi_line_row(l, 0, row);
    pgi_mode_angle(l, k, &p, &q);
    const double root = 2 * sin(3.14159265358979323846 * (p / q)) / l->h;
    return l->n == 1 ? row[3] : root * root + l->shift;
}

// work: for the eigenvectors that have no formula.
template <class T>
static void pgi_layout_fold(pgi_arena *arena, pgi_fold *f, const pgi_line *l, double beta, double *work)
{
    const int n = f->n, size = f->size, known = pgi_can_transform(l);
    void *table, *root = NULL;
    f->table = pgi_take_table(arena, (size_t)f->bytes, &table);
    if (!known || (n > 1 && l->node && !l->periodic && !(pgi_is_dirichlet(l, 0) && pgi_is_dirichlet(l, 1))))
        f->root = pgi_take_table(arena, 2 * (size_t)n * sizeof(T), &root);
    if (!table) return;
    T *const vectors = (T *)table;
    double *const lambda = (double *)(vectors + 2 * size * f->pitch);
    double top = 0;
    const auto weight = [&](int i) {
        const int end = i == 0 ? 0 : i == n - 1 ? 1 : -1;
        return !known                                                                      ? pgi_line_w(l, i)
               : end >= 0 && n > 1 && l->node && !l->periodic && !pgi_is_dirichlet(l, end) ? 0.5
                                                                                           : 1;
    };
    memset(table, 0, (size_t)f->bytes);
    const double *const rows = known ? NULL : pgi_line_eigen(l, beta, lambda, work);    // as they come: not folded
    // The constant comes first.
    int constant = 0;
    while (!known && constant < n && lambda[constant] != 0) constant++;
    if (constant == n) constant = 0;
    if (constant > 0) {
        lambda[constant] = lambda[0];
        lambda[0] = 0;
    }
    for (int i = 0; i < n; i++) top = fmax(top, weight(i));
    f->total = 0;
    for (int i = 0; i < n; i++) f->total += weight(i) / top;
    for (int i = 0; i < n && root; i++) {
        ((T *)root)[i] = (T)sqrt(weight(i) / top);
        ((T *)root)[n + i] = (T)sqrt(top / weight(i));
    }
    for (int mode = 0; mode < 2 * size; mode++) {
        const int c = mode / size, o = mode % size, k = pgi_fold_mode(*f, c, o);
        if (o >= f->half[c]) {
            lambda[mode] = 1e300;    // what fills up is 0 and stays so
            continue;
        }
        const int row = k == 0 ? constant : k == constant ? 0 : k;
        double norm = 0;
        for (int i = 0; i < n && known; i++) norm += weight(i) * pgi_mode_value(l, k, i) * pgi_mode_value(l, k, i);
        if (known) lambda[mode] = beta * pgi_mode_eigenvalue(l, k);
        norm = rint(2 * norm) / 2;    // half the intervals, or all of them
        for (int q = 0; q < 2 * size; q++) {
            const int half = q / size;
            int place[2];
            pgi_fold_place(*f, q % size, place);
            if (place[half] < 0 || (f->folded && half != c)) continue;
            const int i = f->folded ? place[0] : place[half];
            const T v = (T)(known ? pgi_mode_value(l, k, i) * sqrt(weight(i) / norm) : rows[row * n + i]);
            vectors[mode * f->pitch + q % f->length] = v;
        }
    }
    f->singular = lambda[0] == 0;
}

// Entries of a thread in the tables of a transform, in the order of use: see pgi_layout_fft. Twiddles of the first
// stage (k-th power, of the first or second butterfly), and steps; of type 1, steps of its parts, their twiddles, and
// one more.
static constexpr PGI_HD int pgi_fft_powers(int radix) { return radix == 8 ? 3 : radix - 1; }
static constexpr PGI_HD int pgi_fft_twiddle(int radix, int second, int k)
{
    return second * pgi_fft_powers(radix) + (radix == 8 ? (k == 4 ? 3 : k) : k) - 1;
}
static constexpr PGI_HD int pgi_fft_step(int radix, int m) { return 2 * pgi_fft_powers(radix) + m; }
static constexpr PGI_HD int pgi_fold_step(int parts, int m) { return parts - 1 + m; }
static constexpr PGI_HD int pgi_fold_twiddle(int radix, int parts, int second, int k)
{
    int entry = radix - 1;
    for (int p = 2; p < parts; p *= 2) entry += 2 * (p - 1);
    return entry + second * (parts - 1) + k - 1;
}
static constexpr PGI_HD int pgi_fft_entries(int kind, int radix)
{
    return kind == PGI_DCT1                               ? pgi_fold_twiddle(radix, radix, 0, 1) + 1
           : kind == PGI_FOURIER || kind == PGI_HERMITIAN ? pgi_fft_step(radix, 0)
                                                          : pgi_fft_step(radix, radix);
}

// Where the butterflies of the last stage are.
static void pgi_layout_places(pgi_fft *c, int type1, pgi_arena *arena)
{
#if PGI_GPU
    void *host;
    if (!c->radix) return;
    c->places = (const unsigned short *)pgi_take_table(arena, (size_t)c->span * sizeof(unsigned short), &host);
    for (int u = 0; u < c->span && host; u++)
        ((unsigned short *)host)[u] = (unsigned short)pgi_fft_position(c, type1, u);
#else
    (void)c, (void)type1, (void)arena;
#endif
}

// What a thread of a transform looks up. Calls put(entry, value).
template <class Put> static void pgi_fft_look_ups(const pgi_fft *c, int kind, int lane, Put put)
{
    const int r = c->radix, type4 = kind == PGI_DCT4, length = type4 ? c->n / 2 : c->n;
    for (int q = 0; q < 2; q++)
        for (int k = 1, at = q == 0 || type4 ? lane : c->span - 1 - lane; k < r; k++)
            if (r < 8 || (k & -k) == k) put(pgi_fft_twiddle(r, q, k), pgi_root((int64_t)k * at, length));
    for (int m = 0; m < r && kind != PGI_FOURIER; m++) {
        const int64_t j = (m < (r + 1) / 2 || lane || type4 ? lane : c->span / 2) + m * c->span;
        put(pgi_fft_step(r, m), type4 ? pgi_root(8 * j + 1, 16 * (int64_t)c->n) : pgi_root(j, 4 * (int64_t)c->n));
    }
}

// The same of type 1. The steps of type 3 are turned by a quarter for sines; the last entry is a cosine and a sine for
// the rest.
template <class Put> static void pgi_fold_look_ups(const pgi_fft *c, int lane, Put put)
{
    const int r = c->radix, mirror = lane ? c->span - lane : c->span / 2;
    for (int parts = 1; parts < r; parts *= 2) {
        for (int m = 0; m < parts; m++) {
            const int j = (m < (parts + 1) / 2 || lane ? lane : c->span / 2) + m * c->span;
            const pgi_complex<double> root = pgi_root(j, 4 * (int64_t)parts * c->span);
            put(pgi_fold_step(parts, m), c->sine ? pgi_complex_of(-root.y, root.x) : root);
        }
        for (int q = 0; q < 2; q++)
            for (int k = 1; k < parts; k++)
                put(pgi_fold_twiddle(r, parts, q, k), pgi_root((q ? mirror : lane) * k, parts * c->span));
    }
    put(pgi_fft_entries(PGI_DCT1, r) - 1, pgi_root(lane, 2 * (int64_t)c->span));
}

// The tables of a transform by blocks: entry e of thread `lane` is at e * lanes + lane; then roots for the stages
// between.
template <class T> static void pgi_layout_fft(pgi_fft *c, int kind, pgi_arena *arena)
{
    const int entries = pgi_fft_entries(kind, c->radix) * c->lanes;
    pgi_complex<T> *h = NULL;
    c->tables = pgi_take_table(arena, (size_t)(entries + c->span + 1) * sizeof *h, (void **)&h);
    for (int k = 0; k < c->span && h; k++) {
        const pgi_complex<double> root = pgi_root(k, c->span);
        h[entries + k] = pgi_complex_of((T)root.x, (T)root.y);
    }
    for (int lane = 0; lane < c->lanes && h; lane++) {
        const auto put = [&](int entry, pgi_complex<double> x) {
            h[entry * c->lanes + lane] = pgi_complex_of((T)x.x, (T)x.y);
        };
        if (kind == PGI_DCT1)
            pgi_fold_look_ups(c, lane, put);
        else
            pgi_fft_look_ups(c, kind, lane, put);
    }
    pgi_layout_places(c, kind == PGI_DCT1, arena);
}

// Twiddles and roots of unity of the transforms along an axis, made in f64 and then rounded.
template <class T> static void pgi_layout_transform(pg_solver *s, pgi_arena *arena, int a, int n)
{
    pgi_direct *const d = &s->direct;
    const pgi_series *series = &d->series[a][0];
    const int type4 = series->kind == PGI_DCT4;
    const int length = series->length * (series->kind == PGI_DCT1 && series->count == 5 ? 2 : 1);
    if (d->fft[a].radix) {
        pgi_layout_fft<T>(&d->fft[a], series->kind, arena);
        return;
    }
    pgi_complex<T> *w = NULL;
    const void *twiddle = NULL;
    if (series->kind != PGI_FOURIER && !(type4 && n % 2))
        twiddle = pgi_take_table(arena, ((size_t)length + 1) * sizeof(pgi_complex<T>), (void **)&w);
    for (int k = 0; k <= length && w; k++) {
        const pgi_complex<double> root =
            type4 ? pgi_root(8 * (int64_t)k + 1, 16 * (int64_t)n) : pgi_root(k, 4 * (int64_t)length);
        w[k].x = (T)root.x, w[k].y = (T)root.y;
    }
    d->series[a][0].twiddle = d->series[a][1].twiddle = twiddle;
    if (s->cuda) return;
    w = NULL;
    d->roots[a] = pgi_take_table(arena, (size_t)series->length * sizeof(pgi_complex<T>), (void **)&w);
    for (int k = 0; k < series->length && w; k++) {
        const pgi_complex<double> root = pgi_root(k, series->length);
        w[k].x = (T)root.x, w[k].y = (T)root.y;
    }
}

// Which mode a row of coefficients is.
static int pgi_mode_in_row(const pgi_direct *d, int a, int row)
{
#if PGI_GPU
    if (d->series[a][0].kind == PGI_DCT1 && d->fft[a].radix) return pgi_fft_mode(&d->fft[a], row);
#else
    (void)d, (void)a;
#endif
    return row;
}

// Eigenvalues, the rows of the line, and what the transforms take.
template <class T> static void pgi_layout_direct_tables(pg_solver *s, const pgi_hierarchy *h, pgi_arena *arena)
{
    pgi_direct *d = &s->direct;
    pgi_line *const *line = h->line[0];
    for (int q = 0; q < 2 && d->small.blocks; q++) {
        pgi_fold *const f = d->small.fold;
        if (q > 0 && pgi_line_equal(line[0], line[2]))
            f[1] = f[0];
        else
            pgi_layout_fold<T>(arena, &f[q], line[2 * q], s->work.beta, h->work);
    }
    for (int a = 0; a < 3 && !d->small.blocks && !d->exact; a++) {
        const int n = line[a]->n;
        void *host;
        d->lines.lambda[a] = (const double *)pgi_take_table(arena, (size_t)(n + n % 2) * sizeof(double), &host);
        for (int k = 0; k < n && host && a != d->lines.line; k++)
            ((double *)host)[k] = s->work.beta * pgi_mode_eigenvalue(line[a], pgi_mode_in_row(d, a, k));
        if (a == d->lines.line) {
            void *rows = NULL, *weights = NULL, *rows_at = NULL, *weights_at = NULL;
            if (!line[a]->uniform) {
                rows_at = pgi_take_table(arena, (size_t)n * sizeof(pgi_row<double>), &rows);
                weights_at = pgi_take_table(arena, (size_t)n * sizeof(double), &weights);
            }
            if (!host) continue;
            pgi_axis_fill(&d->lines.rows, line[a], s->work.beta, (pgi_row<double> *)rows, (double *)weights, rows_at,
                          weights_at);
            d->lines.norm = 0;
            d->lines.volume = pgi_line_volume(line[a]);
            for (int i = 0; i < n; i = pgi_line_next(line[a], i)) {
                double row[4];
                pgi_line_row(line[a], i, row);
                d->lines.norm = fmax(d->lines.norm, 2 * s->work.beta * row[3]);
            }
        }
        if (pgi_is_transformed(s, a)) pgi_layout_transform<T>(s, arena, a, n);
    }
}

static void pgi_layout_direct(pg_solver *s, pgi_arena *arena)
{
    pgi_direct *d = &s->direct;
    d->buffer = (char *)pgi_take_block(arena, d->buffer_bytes);
    if (d->between.sj) {
        const size_t element = s->desc.flags & (PG_F32 | PG_MIXED) ? sizeof(float) : sizeof(double);
        d->between.base = pgi_take_block(arena, (size_t)(s->together * d->between.problem) * element);
    }
    d->work = d->work_bytes ? (char *)pgi_take_block(arena, d->work_bytes) : NULL;
    d->lines.marks = d->marks_bytes ? (double *)pgi_take_block(arena, d->marks_bytes) : NULL;
#if PGI_GPU
    for (int a = 0; a < 3; a++)
        if (s->has_fft[a] && d->work) PGI_CUFFT(s, cufftSetWorkArea(s->fft[a], d->work));
#endif
}

// A u = rhs. u is written from the first transform on.
static void pgi_solve_direct(pg_solver *s, const pgi_level *l, pgi_rhs rhs, pgi_grid u)
{
    if (s->direct.exact) {
        s->ops->solve_coarsest(s, l, u, rhs, 1);
        return;
    }
    if (s->direct.small.blocks) {
        s->ops->small2d(s, l, rhs, u, 0);
        return;
    }
    const int fused = s->direct.fused;
    int last = -1;    // the axis whose transform back is the last operation
    for (int a = 2; a >= 0; a--)
        if (pgi_is_transformed(s, a) && a != fused) last = a;
    const pgi_grid between = last >= 0 && s->direct.between.sj ? s->direct.between : u;
    for (int a = 0; a < 3; a++) {
        if (!pgi_is_transformed(s, a) || a == fused) continue;
        s->ops->transform(s, l, a, 0, rhs, between);
        rhs = pgi_rhs_of(between);
    }
    if (fused < 0)
        s->ops->eliminate(s, l, rhs, between);
    else
        s->ops->transform(s, l, fused, PGI_THERE_AND_BACK, rhs, between);
    for (int a = 2; a >= 0; a--)
        if (pgi_is_transformed(s, a) && a != fused)
            s->ops->transform(s, l, a, 1, pgi_rhs_of(between), a == last ? u : between);
}

// ---- the CPU ----

// Complex transforms of `width` columns side by side, x to y or back: returns where they end. Radices are the prime
// factors (fours first), so that a prime length is a plain matrix (Stockham's order: P. N. Swarztrauber 1984).
template <class T> static pgi_complex<T> *pgi_cpu_fourier(const pgi_complex<T> *roots, int length, int inverse,
                                                          int width, pgi_complex<T> *x, pgi_complex<T> *y)
{
    const T sign = inverse ? -1 : 1;
    int radix = 2;
    for (int rest = length, side = width; rest > 1;) {
        while (rest % radix) radix = (int64_t)radix * radix > rest ? rest : radix + 1;
        const int p = rest % 4 == 0 ? 4 : radix, m = rest / p;
        for (int j = 0; j < m; j++) {
            for (int k = 0; k < p; k++) {
                pgi_complex<T> *out = y + ((int64_t)p * j + k) * side;
                for (int r = 0; r < p; r++) {
                    const int64_t power = ((int64_t)j + (int64_t)m * r) * k % rest * (length / rest);
                    const pgi_complex<T> w = {roots[power].x, sign * roots[power].y};
                    const pgi_complex<T> *in = x + ((int64_t)j + (int64_t)m * r) * side;
                    if (r == 0) {
                        for (int q = 0; q < side; q++) out[q] = pgi_times(in[q], w);
                        continue;
                    }
                    for (int q = 0; q < side; q++) {
                        out[q].x += in[q].x * w.x - in[q].y * w.y;
                        out[q].y += in[q].x * w.y + in[q].y * w.x;
                    }
                }
            }
        }
        rest = m;
        side *= p;
        pgi_complex<T> *swap = x;
        x = y;
        y = swap;
    }
    return x;
}

#ifdef PG_USE_FFTW
static void pgi_fftw(const pg_solver *s, int axis, int inverse, pgi_complex<double> *in, pgi_complex<double> *out)
{
    fftw_execute_dft((fftw_plan)s->fftw[axis][inverse], (fftw_complex *)in, (fftw_complex *)out);
}
static void pgi_fftw(const pg_solver *s, int axis, int inverse, pgi_complex<float> *in, pgi_complex<float> *out)
{
    fftwf_execute_dft((fftwf_plan)s->fftw[axis][inverse], (fftwf_complex *)in, (fftwf_complex *)out);
}
#endif

// Calls body(slot's memory, first column) for every tile of columns along an axis.
template <class Body> static void pgi_cpu_tiles(const pg_solver *s, const pgi_level *l, int axis, Body body)
{
    const pgi_direct *d = &s->direct;
    const int64_t wide = d->tile[axis], tiles = (pgi_columns(s, axis) + wide - 1) / wide;
    PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points * s->together)))
    for (int slot = 0; slot < d->slots; slot++)
        for (int64_t tile = slot; tile < tiles; tile += d->slots)
            body(d->buffer + (size_t)slot * d->slot_bytes, tile * wide);
    (void)l;
}

template <class T>
static void pgi_cpu_transform(pg_solver *s, const pgi_level *l, int axis, int backward, pgi_rhs from, pgi_grid to)
{
    const int W = s->direct.tile[axis] / 2;
    const pgi_box<T> &b = pgi_box_of(l, T());
    const pgi_series &series = s->direct.series[axis][backward];
    const int64_t columns = pgi_columns(s, axis);
    const int total = series.length * series.count;
    const pgi_spread spread = {W, (int64_t)series.length * W, 1};
    T *const u = pgi_data<T>(to);
    pgi_cpu_tiles(s, l, axis, [&](char *memory, int64_t first) {
        pgi_complex<T> *x = (pgi_complex<T> *)memory, *y = x + (int64_t)total * W, *result = x;
        for (int w = 0; w < W; w++) {
            const pgi_pair_reader<T> get(b, from, axis, l->n, first + 2 * w, columns);
            const pgi_pair_buffer<T> put = {x, spread, w};
            for (int m = 0; m < pgi_steps(series, 0); m++) pgi_step_before<T>(series, m, get, put);
        }
        for (int64_t q = 0; q < series.count; q++) {
            const int64_t at = q * series.length * W;
#ifdef PG_USE_FFTW
            pgi_fftw(s, axis, series.inverse, x + at, y + at);
            result = y;
#else
            result = pgi_cpu_fourier((const pgi_complex<T> *)s->direct.roots[axis], series.length, series.inverse, W,
                                     x + at, y + at) -
                     at;
#endif
        }
        for (int w = 0; w < W && first + 2 * w < columns; w++) {
            const pgi_pair_writer<T> put(u, to, axis, l->n, first + 2 * w, columns);
            const pgi_pair_buffer<T> at = {result, spread, w};
            for (int m = 0; m < pgi_steps(series, 1); m++) pgi_step_after<T>(series, m, at, put);
        }
    });
}

template <class T> static void pgi_cpu_eliminate(pg_solver *s, const pgi_level *l, pgi_rhs from, pgi_grid to)
{
    const pgi_direct &d = s->direct;
    const pgi_box<T> &b = pgi_box_of(l, T());
    const double alpha = s->state->alpha;
    T *const u = pgi_data<T>(to);
    int resonant = 0;
    if (d.lines.line < 0) {
        pgi_cpu_rows(l, [&](int j, int k) {
            int here = 0;
            for (int problem = 0; problem < s->together; problem++) {
                const pgi_column_reader<T> read(b, from, 0, l->n, j + l->n[1] * (k + (int64_t)l->n[2] * problem));
                for (int i = 0; i < l->n[0]; i++) {
                    const int at[4] = {i, j, k, problem};
                    const double inverse = pgi_mode_inverse(d.lines, alpha, at, &here);
                    u[pgi_offset(at, to)] = (T)(inverse * (double)read(i));
                }
            }
            if (here) {
                PGI_OMP(omp atomic write)
                resonant = 1;
            }
        });
        if (resonant) s->state->resonant = 1;
        return;
    }
    const int64_t columns = pgi_columns(s, d.lines.line), stride = d.lines.line == 0   ? 1
                                                                   : d.lines.line == 1 ? to.sj
                                                                                       : to.sk;
    const int n = l->n[d.lines.line], wide = d.tile[d.lines.line];
    pgi_cpu_tiles(s, l, d.lines.line, [&](char *memory, int64_t first) {
        double *x = (double *)memory;
        const pgi_column c = {wide, 1, x + (int64_t)n * wide};
        const int count = columns - first < wide ? (int)(columns - first) : wide;
        int place[PGI_TILE][4], here = 0;
        for (int q = 0; q < count; q++) pgi_column_place(l->n, d.lines.line, first + q, place[q]);
        for (int q = 0; q < count; q++) {
            const pgi_column_reader<T> read(b, from, d.lines.line, l->n, first + q);
            for (int k = 0; k < n; k++) x[(int64_t)k * wide + q] = (double)read(k);
        }
        for (int q = 0; q < count; q++)
            pgi_cpu_line(d.lines, pgi_column_shift(d.lines, alpha, place[q]), alpha, x + q, c, &here);
        for (int k = 0; k < n; k++)
            for (int q = 0; q < count; q++) u[pgi_offset(place[q], to) + k * stride] = (T)x[(int64_t)k * wide + q];
        if (here) {
            PGI_OMP(omp atomic write)
            resonant = 1;
        }
    });
    if (resonant) s->state->resonant = 1;
}

// ---- the GPU ----
#if PGI_GPU

// Transforms along x are contiguous in the buffer, others lie side by side.
static pgi_spread pgi_spread_of(const pgi_series &s, int64_t pairs, int contiguous)
{
    const pgi_spread side_by_side = {s.count * pairs, pairs, 1}, in_a_row = {1, s.length, (int64_t)s.count * s.length};
    return contiguous ? in_a_row : side_by_side;
}

// Pairs of columns, from `first` on, between the grid and the buffer. Neighbouring threads read and write neighbours.
struct pgi_chunk {
    int axis, contiguous;
    unsigned pairs;
    int64_t first, columns;
    pgi_spread spread;
};

template <class T> static __global__ void __launch_bounds__(PGI_BLOCK)
    pgi_before_kernel(pgi_series series, pgi_box<T> b, pgi_rhs from, pgi_chunk c, pgi_complex<T> *buffer)
{
    PGI_UNLESS_DONE(b.state);
    const unsigned steps = (unsigned)pgi_steps(series, 0), e = blockIdx.x * PGI_BLOCK + threadIdx.x;
    const int n[3] = {b.axis[0].n, b.axis[1].n, b.axis[2].n};
    const unsigned pair = c.contiguous ? e / steps : e % c.pairs, m = c.contiguous ? e % steps : e / c.pairs;
    if (pair >= c.pairs || m >= steps) return;
    const pgi_pair_reader<T> get(b, from, c.axis, n, 2 * (c.first + pair), c.columns);
    const pgi_pair_buffer<T> put = {buffer, c.spread, pair};
    pgi_step_before<T>(series, (int)m, get, put);
}

template <class T> static __global__ void __launch_bounds__(PGI_BLOCK)
    pgi_after_kernel(pgi_series series, pgi_box<T> b, pgi_grid to, pgi_chunk c, pgi_complex<T> *buffer)
{
    PGI_UNLESS_DONE(b.state);
    const unsigned steps = (unsigned)pgi_steps(series, 1), e = blockIdx.x * PGI_BLOCK + threadIdx.x;
    const int n[3] = {b.axis[0].n, b.axis[1].n, b.axis[2].n};
    const unsigned pair = c.contiguous ? e / steps : e % c.pairs, m = c.contiguous ? e % steps : e / c.pairs;
    if (pair >= c.pairs || m >= steps) return;
    const pgi_pair_writer<T> put(pgi_data<T>(to), to, c.axis, n, 2 * (c.first + pair), c.columns);
    const pgi_pair_buffer<T> at = {buffer, c.spread, pair};
    pgi_step_after<T>(series, (int)m, at, put);
}

#endif
#else

// PG_DIRECT is refused before any of these is called.
static void pgi_forget_direct(pg_solver *) {}
static void pgi_layout_direct(pg_solver *, pgi_arena *) {}
static void pgi_solve_direct(pg_solver *, const pgi_level *, pgi_rhs, pgi_grid) {}
static pg_status pgi_check_shift(const pg_solver *, double, char *) { return PG_OK; }
static pg_status pgi_plan_direct(pg_solver *, pgi_line *const *, char *) { return PG_ERROR_UNSUPPORTED; }
static pgi_hierarchy *pgi_near_create(const pg_desc *, const pgi_hierarchy *) { return NULL; }

#endif

// ---- lines, on the GPU ----
#if PGI_GPU

// To and from a grid: every value is used once, so the first cache is left to what is used again.
#ifdef __CUDA_ARCH__
static __device__ inline double pgi_fetch(const double *p) { return __ldcg(p); }
static __device__ inline float pgi_fetch(const float *p) { return __ldcg(p); }
#else
template <class V> static __device__ inline V pgi_fetch(const V *p) { return *p; }
#endif

// A store of what is not read again soon.
#ifdef __CUDA_ARCH__
static __device__ inline void pgi_store_once(double *p, double x) { __stcs(p, x); }
static __device__ inline void pgi_store_once(float *p, float x) { __stcs(p, x); }
static __device__ inline void pgi_store_once(pgi_complex<double> *p, pgi_complex<double> v)
{
    __stcs((double2 *)p, make_double2(v.x, v.y));
}
static __device__ inline void pgi_store_once(pgi_complex<float> *p, pgi_complex<float> v)
{
    __stcs((float2 *)p, make_float2(v.x, v.y));
}
#else
template <class V> static __device__ inline void pgi_store_once(V *p, V v) { *p = v; }
#endif

// A block solves for some lines that lie side by side, each in parts, a thread a part. Parts of at most PGI_KEPT rows
// stay in registers: memory is read and written once. Parts of very long lines are eliminated in memory.
enum { PGI_KEPT = 16, PGI_LOG_LINE_THREADS = 9, PGI_LINE_THREADS = 1 << PGI_LOG_LINE_THREADS };
enum { PGI_LOG_PAIRS = 2 };    // of columns that relaxation has side by side: at least

// The rows of a line that a thread has: first + q step, q from begin to end - 1.
struct pgi_held {
    int line, first, step, begin, end;
    __device__ bool has(int q) const { return q >= begin && q < end; }
};

// A part: rows that follow each other, the last of PGI_KEPT places. Neighbouring threads have neighbouring lines.
static __device__ inline pgi_held pgi_part_of(const pgi_elimination &d)
{
    const int part = (int)threadIdx.x >> d.log_wide, longer = d.rows.n & ((1 << d.log_parts) - 1),
              count = (d.rows.n >> d.log_parts) + (part < longer),    // `longer` parts have a row more
        first = part * (d.rows.n >> d.log_parts) + (part < longer ? part : longer);
    return {(int)threadIdx.x & ((1 << d.log_wide) - 1), first + count - PGI_KEPT, 1, PGI_KEPT - count, PGI_KEPT};
}

// As many threads for a line, but neighbours have neighbouring rows: where these are neighbours in memory.
static __device__ inline pgi_held pgi_comb_of(const pgi_elimination &d)
{
    const int parts = 1 << d.log_parts, first = (int)threadIdx.x & (parts - 1);
    return {(int)threadIdx.x >> d.log_parts, first, parts, 0, (d.rows.n - first + parts - 1) >> d.log_parts};
}

// Between the two, through shared memory.
static PGI_HD inline int pgi_transpose_pitch(int n) { return n | 1; }    // odd: lines begin in different banks
static __device__ inline void pgi_put(double *memory, int pitch, const pgi_held &h, const double r[PGI_KEPT])
{
    PGI_UNROLLED
    for (int q = 0; q < PGI_KEPT; q++)
        if (h.has(q)) memory[h.line * pitch + h.first + q * h.step] = r[q];
}
static __device__ inline void pgi_take(const double *memory, int pitch, const pgi_held &h, double r[PGI_KEPT])
{
    PGI_UNROLLED
    for (int q = 0; q < PGI_KEPT; q++) r[q] = h.has(q) ? memory[h.line * pitch + h.first + q * h.step] : 0;
}
static __device__ inline void pgi_transpose_lines(double *memory, int pitch, const pgi_held &from, const pgi_held &to,
                                                  double r[PGI_KEPT])
{
    pgi_put(memory, pitch, from, r);
    __syncthreads();
    pgi_take(memory, pitch, to, r);
    __syncthreads();
}

// A row as its part eliminates it. Places before the first row hold rows that say x_k = x_(k-1): with them all parts
// take the same steps, free of branches.
struct alignas(16) pgi_kept_row {
    double lower, upper, reaction, real;    // real: 1, or 0 of such a row
};
enum { PGI_KEPT_PITCH = 2 * PGI_KEPT + 1 };    // halves of rows from part to part, so that they lie in different banks

// Writes the rows of all parts to shared memory, and returns the thread's.
static __device__ inline const pgi_kept_row *pgi_rows_to_shared(const pgi_elimination &d, const pgi_held &p,
                                                                double2 *rows)
{
    pgi_kept_row *const own = (pgi_kept_row *)(rows + ((int)threadIdx.x >> d.log_wide) * PGI_KEPT_PITCH);
    for (int q = p.line; q < PGI_KEPT; q += 1 << d.log_wide) {
        const pgi_row<double> row = pgi_row_of(d.rows, q < p.begin ? 0 : p.first + q);
        own[q] = q < p.begin ? pgi_kept_row{-1, 0, 0, 0} : pgi_kept_row{row.lower, row.upper, row.reaction, 1};
    }
    return own;
}

// Shared memory where the parts of a block meet: four numbers each. Those of a line lie side by side, and lines begin
// in different banks.
static PGI_HD inline int pgi_exchange_capacity(int threads) { return threads + threads / 32; }
static __device__ inline int pgi_exchange_index(const pgi_elimination &d, int line, int part)
{
    const int place = (line << d.log_parts) + part;
    return place + place / 32;
}
static __device__ inline void pgi_put_separator(double *exchange, int place, const pgi_separator &own)
{
    const int capacity = pgi_exchange_capacity((int)blockDim.x);
    exchange[place] = own.l, exchange[place + capacity] = own.v;
    exchange[place + 2 * capacity] = own.s, exchange[place + 3 * capacity] = own.r;
}
static __device__ inline pgi_separator pgi_get_separator(const double *exchange, int place)
{
    const int capacity = pgi_exchange_capacity((int)blockDim.x);
    return {exchange[place], exchange[place + capacity], exchange[place + 2 * capacity],
            exchange[place + 3 * capacity]};
}

// A step of cyclic reduction: the separators below and above are eliminated.
static __device__ inline pgi_separator pgi_reduced(pgi_separator own, const pgi_separator &low,
                                                   const pgi_separator &high)
{
    const double l = own.l * pgi_reciprocal(low.l + low.v + low.s),
                 v = own.v * pgi_reciprocal(high.l + high.v + high.s);
    return {l * low.l, v * high.v, own.s + (l * low.s + v * high.s), own.r + (l * low.r + v * high.r)};
}
static __device__ inline pgi_separator pgi_shuffled(const pgi_separator &p, int lane)
{
    return {__shfl_sync(0xffffffffu, p.l, lane), __shfl_sync(0xffffffffu, p.v, lane),
            __shfl_sync(0xffffffffu, p.s, lane), __shfl_sync(0xffffffffu, p.r, lane)};
}

// Solves for the separators: of each line they are a ring, which is open where nothing couples. All are reduced at the
// same time: in shared memory until a warp can have what is left of a ring, then there. known: the unknown of the
// thread's own separator and of the one before.
static __device__ inline void pgi_solve_separators(const pgi_elimination &d, const pgi_separator &part,
                                                   const pgi_head_row &head, int null, double *exchange,
                                                   double known[2])
{
    const int ring = (1 << d.log_parts) - 1, me = (int)threadIdx.x, lane = me & 31, line = me & ((1 << d.log_wide) - 1),
              number = me >> d.log_wide, size = ring < 31 ? ring + 1 : 32;
    const auto place = [&](int q) { return pgi_exchange_index(d, line, (number + q) & ring); };
    pgi_separator own = part;
    pgi_put_separator(exchange, place(0), {head.y, head.z, head.s, head.r});
    __syncthreads();
    const pgi_separator next = pgi_get_separator(exchange, place(1));
    pgi_join_next(&own, {next.l, next.v, next.s, next.r});
    if (null && number == ring) own.s += own.l + own.v;    // holds the constant; as the right-hand sides add up to 0
    int step = 1;
    for (; step * 32 <= ring; step *= 2) {
        __syncthreads();
        pgi_put_separator(exchange, place(0), own);
        __syncthreads();
        own = pgi_reduced(own, pgi_get_separator(exchange, place(-step)), pgi_get_separator(exchange, place(step)));
    }
    __syncthreads();
    pgi_put_separator(exchange, place(0), own);
    __syncthreads();
    const int ring_place =
        pgi_exchange_index(d, me >> d.log_parts, ring < 32 ? me & ring : lane * step + (me & ring) / 32);
    own = pgi_get_separator(exchange, ring_place);
    for (int q = 1; q < size; q *= 2) {
        const int around = lane & ~(size - 1), low = (lane - q) & (size - 1), high = (lane + q) & (size - 1);
        own = pgi_reduced(own, pgi_shuffled(own, around + low), pgi_shuffled(own, around + high));
    }
    exchange[ring_place] = own.s == 0 ? 0 : pgi_ratio(own.r, own.s);
    __syncthreads();
    known[0] = exchange[place(0)], known[1] = exchange[place(-1)];
    __syncthreads();
}

// The sum over the parts of a line.
static __device__ inline double pgi_line_sum(const pgi_elimination &d, double part, double *exchange)
{
    const int parts = 1 << d.log_parts, line = (int)threadIdx.x & ((1 << d.log_wide) - 1);
    double sum = 0;
    exchange[pgi_exchange_index(d, line, (int)threadIdx.x >> d.log_wide)] = part;
    __syncthreads();
    for (int q = 0; q < parts; q++) sum += exchange[pgi_exchange_index(d, line, q)];
    __syncthreads();
    return sum;
}

// Whether the constant solves the equations of a line without a right-hand side.
static PGI_HD inline int pgi_is_null(const pgi_elimination &d, double mu) { return d.singular && mu == 0; }

// Takes the weighted mean from what the parts of a line have, and returns it. In memory: few lines need it, so that it
// is out of line, with the rows in memory meanwhile; where the sums of other kernels stay in registers beside it, that
// costs a tenth of their time.
static __device__ PGI_RARE double pgi_centre_rows(const pgi_elimination &d, pgi_held p, int null, double r[PGI_KEPT],
                                                  double *exchange)
{
    double sum = 0;
    PGI_ROLLED
    for (int q = p.begin; q < p.end && null; q++) sum += pgi_weight_of(d.rows, p.first + q) * r[q];
    const double mean = pgi_line_sum(d, sum, exchange) / d.volume;
    PGI_ROLLED
    for (int q = p.begin; q < p.end && null; q++) r[q] -= mean;
    return mean;
}
template <int IN_MEMORY> static __device__ inline double pgi_centre_line(const pgi_elimination &d, const pgi_held &p,
                                                                         int null, double r[PGI_KEPT], double *exchange)
{
    if constexpr (IN_MEMORY) {
        double rows[PGI_KEPT];
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++) rows[q] = r[q];
        const double mean = pgi_centre_rows(d, p, null, rows, exchange);
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++) r[q] = rows[q];
        return mean;
    } else {
        double sum = 0;
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++)
            if (null && p.has(q)) sum += pgi_weight_of(d.rows, p.first + q) * r[q];
        const double mean = pgi_line_sum(d, sum, exchange) / d.volume;
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++)
            if (null && p.has(q)) r[q] -= mean;
        return mean;
    }
}

// Eliminates a part, as pgi_line_down does, in registers. Leaves the eliminated right-hand sides and inverse pivots. A
// pivot waits for the one before no longer than for a product: that is the critical path.
static __device__ inline void pgi_kept_down(const pgi_kept_row *rows, double mu, double r[PGI_KEPT],
                                            double inverse[PGI_KEPT], pgi_separator *own, pgi_head_row *head)
{
    pgi_head_row h = {1, 0, 0, 0};
    pgi_separator p = {0, 0, 0, 0};
    double rest = 0;    // l + s of the row before
    PGI_UNROLLED
    for (int q = 0; q < PGI_KEPT; q++) {
        const pgi_kept_row row = rows[q];
        const double here = row.reaction + mu * row.real, before = q > 0 ? inverse[q - 1] : 0;
        const double factor = -row.lower * before, pivot = (here - row.upper) + (-row.lower * rest) * before;
        p.l = q > 0 ? factor * p.l : -row.lower;
        p.v = -row.upper;
        p.s = here + factor * p.s;
        if (q > 0) r[q] += factor * r[q - 1];
        rest = p.l + p.s;
        if (q == PGI_KEPT - 1) continue;
        inverse[q] = pgi_reciprocal(q > 0 ? pivot : rest + p.v);
        const double carried = h.y * inverse[q] * row.real;
        h.z += carried * p.l;
        h.s += carried * p.s;
        h.r += carried * r[q];
        h.y = carried * p.v + (h.y - h.y * row.real);
    }
    p.r = r[PGI_KEPT - 1];
    *own = p;
    *head = h;
}

// The other way: what the unknown before the part adds goes down with the pivots, once more, then the unknowns come up.
// known: the last one, and the one before the part.
static __device__ inline void pgi_kept_up(const pgi_kept_row *rows, const double known[2],
                                          const double inverse[PGI_KEPT], double r[PGI_KEPT])
{
    double before = known[1];
    PGI_UNROLLED
    for (int q = 0; q < PGI_KEPT - 1; q++) {
        before *= -rows[q].lower;
        r[q] += before;
        before *= inverse[q];
    }
    r[PGI_KEPT - 1] = known[0];
    PGI_UNROLLED
    for (int q = PGI_KEPT - 2; q >= 0; q--) r[q] = (r[q] - rows[q].upper * r[q + 1]) * inverse[q];
}

// Solves for the lines of a block, whose right-hand sides and unknowns are in registers. mu: what the other axes and
// alpha add to a line. All threads of the block come, also without a line inside; centred: one of its lines is the
// constant's. IN_MEMORY: see pgi_centre_line. Returns the mean that this line had to lose.
template <int IN_MEMORY> static __device__ inline double pgi_solve_lines(const pgi_elimination &d, const pgi_held &p,
                                                                         const pgi_kept_row *rows, double mu,
                                                                         int inside, int centred, double *exchange,
                                                                         double r[PGI_KEPT])
{
    const int null = inside && pgi_is_null(d, mu);
    double inverse[PGI_KEPT], known[2];
    pgi_separator own = {0, 0, 1, 0};
    pgi_head_row head = {1, 0, 0, 0};
    const double mean = centred ? pgi_centre_line<IN_MEMORY>(d, p, null, r, exchange) : 0;
    if (inside) pgi_kept_down(rows, mu, r, inverse, &own, &head);
    pgi_solve_separators(d, own, head, null, exchange, known);
    if (inside) pgi_kept_up(rows, known, inverse, r);
    if (centred) pgi_centre_line<IN_MEMORY>(d, p, null, r, exchange);
    return mean;
}

// Shared memory of a block where parts meet, of that and the rows, and for transposed lines.
static PGI_HD inline int pgi_exchange_bytes(const pgi_elimination &d)
{
    return 4 * pgi_exchange_capacity(1 << (d.log_parts + d.log_wide)) * (int)sizeof(double);
}
static PGI_HD inline int pgi_rows_bytes(const pgi_elimination &d)
{
    return (PGI_KEPT_PITCH * (int)sizeof(double2)) << d.log_parts;
}
static int pgi_shared_bytes(const pgi_elimination &d) { return pgi_exchange_bytes(d) + pgi_rows_bytes(d); }
static PGI_HD inline int pgi_transpose_bytes(const pgi_elimination &d)
{
    return (((pgi_transpose_pitch(d.rows.n) * (int)sizeof(double)) << d.log_wide) + 8) & ~15;
}

// The columns of an elimination: in u, or side by side in the buffer.
struct pgi_lines {
    int64_t first, columns;    // of all columns of the axis
    int64_t stride;
    int staged;
};

// A column of a chunk: where it is, whether it is there, and what pgi_column_shift says.
template <class T> struct pgi_chunk_column {
    T *x;
    int inside;
    double mu;
};
template <class T>
static __device__ inline pgi_chunk_column<T> pgi_chunk_column_of(const pgi_elimination &d, const pgi_box<T> &b,
                                                                 const pgi_grid &u, const pgi_lines &lines,
                                                                 double alpha, int64_t local)
{
    const int all[3] = {b.axis[0].n, b.axis[1].n, b.axis[2].n}, inside = local < lines.columns;
    int at[4] = {0, 0, 0, 0};
    if (inside) pgi_column_place(all, d.line, lines.first + local, at);
    T *const x = pgi_data<T>(u) + (!inside ? 0 : lines.staged ? local : pgi_offset(at, u));
    return {x, inside, pgi_column_shift(d, alpha, at)};
}

// The mean that the line of the constant had to lose is that of the right-hand side.
static __device__ inline void pgi_report_line_mean(const pgi_elimination &d, double mu, int is_first, double mean,
                                                   pgi_state *state)
{
    if (is_first && pgi_is_null(d, mu) && d.constant != 0 && state->alpha == 0) state->removed = d.constant * mean;
}

// Shared memory of an elimination: the next tile comes first.
static int pgi_eliminate_bytes(const pgi_elimination &d, int element, int staged)
{
    return PGI_KEPT * PGI_LINE_THREADS * element + (d.line == 0 && !staged ? pgi_transpose_bytes(d) : 0) +
           pgi_shared_bytes(d);
}

// The values of a tile are copied to shared memory, where only the thread that asks for them reads them, while the tile
// before is worked on.
template <class T> static __global__ void __launch_bounds__(PGI_LINE_THREADS)
    pgi_eliminate_kernel(const __grid_constant__ pgi_elimination d, const __grid_constant__ pgi_box<T> b,
                         const __grid_constant__ pgi_grid u, const __grid_constant__ pgi_lines lines, pgi_state *state)
{
    PGI_UNLESS_DONE(state);
    PGI_DYNAMIC_SHARED(T, next);
    const int along_x = d.line == 0 && !lines.staged, pitch = pgi_transpose_pitch(d.rows.n);
    double *const transposed = (double *)(next + PGI_KEPT * PGI_LINE_THREADS);
    double *const exchange = transposed + (along_x ? pgi_transpose_bytes(d) / sizeof(double) : 0);
    const pgi_held part = pgi_part_of(d), own = along_x ? pgi_comb_of(d) : part;
    const pgi_kept_row *const rows = pgi_rows_to_shared(d, part, (double2 *)((char *)exchange + pgi_exchange_bytes(d)));
    const double alpha = state->alpha;
    const int64_t hop = own.step * lines.stride, first = own.first * lines.stride;
    T *const mine = next + threadIdx.x;
    pgi_chunk_column<T> ahead;
    const auto fetch = [&](int64_t tile) {
        ahead = pgi_chunk_column_of(d, b, u, lines, alpha, (tile << d.log_wide) + own.line);
        const T *const from = ahead.x + first;
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++)
            if (ahead.inside && own.has(q)) pgi_copy_async<sizeof(T), 0>(mine + q * PGI_LINE_THREADS, from + q * hop);
        pgi_copy_commit();
    };
    fetch(blockIdx.x);
    for (int64_t tile = blockIdx.x; tile << d.log_wide < lines.columns; tile += gridDim.x) {
        const pgi_chunk_column<T> now = ahead;
        const int64_t local = (tile << d.log_wide) + part.line;
        const pgi_chunk_column<T> line = along_x ? pgi_chunk_column_of(d, b, u, lines, alpha, local) : now;
        double r[PGI_KEPT];
        if (line.inside && line.mu < 0 && part.first + part.begin == 0) {
            const pgi_column c = {lines.stride, lines.columns, d.marks + local};
            if (!pgi_line_indefinite(d, line.mu, alpha, line.x, c)) state->resonant = 1;
        }
        pgi_copy_wait<0>();
        const int centred = __syncthreads_or(line.inside && pgi_is_null(d, line.mu));
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++)
            r[q] = now.inside && own.has(q) ? d.scale * (double)mine[q * PGI_LINE_THREADS] : 0;
        fetch(tile + gridDim.x);
        if (along_x) pgi_transpose_lines(transposed, pitch, own, part, r);
        const double mean =
            pgi_solve_lines<1>(d, part, rows, line.mu, line.inside && line.mu >= 0, centred, exchange, r);
        pgi_report_line_mean(d, line.mu, line.inside && part.first + part.begin == 0, mean, state);
        if (along_x) pgi_transpose_lines(transposed, pitch, part, own, r);
        if (!now.inside || now.mu < 0) continue;
        T *const to = now.x + first;
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++)
            if (own.has(q)) pgi_store_once(to + q * hop, (T)r[q]);
    }
    pgi_copy_wait<0>();
}

// Lines whose parts are too long for registers: in memory, where a thread has one row after the other. mu, inside: as
// above; load(row) gives the right-hand side, store(row, value) takes the unknown; IN_PLACE: to the same memory, x.
template <int IN_PLACE, class T, class Load, class Store>
static __device__ inline double pgi_solve_long_lines(const pgi_elimination &d, double mu, int inside, T *x,
                                                     const pgi_column &c, double *exchange, Load load, Store store)
{
    const int part = (int)threadIdx.x >> d.log_wide, first = (int)((int64_t)d.rows.n * part >> d.log_parts),
              last = (int)((int64_t)d.rows.n * (part + 1) >> d.log_parts) - 1;
    const int null = inside && pgi_is_null(d, mu);
    const auto weighted_mean = [&]() {
        double sum = 0;
        PGI_ROLLED
        for (int k = first; k <= last && null; k++) sum += pgi_weight_of(d.rows, k) * (double)load(k);
        return pgi_line_sum(d, sum, exchange) / d.volume;
    };
    const double mean = d.singular ? d.scale * weighted_mean() : 0;
    pgi_separator own = {0, 0, 1, 0};
    pgi_head_row head = {1, 0, 0, 0};
    double known[2];
    if (inside) pgi_line_down<1>(d.rows, mu, first, last, d.scale, null ? mean : 0, load, x, c, &own, &head);
    pgi_solve_separators(d, own, head, null, exchange, known);
    if (inside) pgi_line_up<1>(d.rows, mu, first, last, known[1], known[0], x, c, store);
    if (!d.singular || !IN_PLACE) return mean;
    const double shift = weighted_mean();
    for (int k = first; k <= last && null; k++) store(k, (double)load(k) - shift);
    return mean;
}

// The marks of a part of a long line: of column `local` of so many.
static __device__ inline pgi_column pgi_part_column(const pgi_elimination &d, int64_t stride, int64_t local,
                                                    int64_t columns)
{
    const int part = (int)threadIdx.x >> d.log_wide,
              blocks = (((d.rows.n - 1) >> d.log_parts) + PGI_LINE_BLOCK) / PGI_LINE_BLOCK;    // of the longest part
    return {stride, columns, d.marks + (int64_t)part * 2 * (blocks - 1) * columns + local};
}

template <class T> static __global__ void __launch_bounds__(PGI_BLOCK)
    pgi_eliminate_long_kernel(const __grid_constant__ pgi_elimination d, pgi_box<T> b, pgi_grid u, pgi_lines lines,
                              pgi_state *state)
{
    PGI_UNLESS_DONE(state);
    __shared__ double exchange[4 * (PGI_BLOCK + PGI_BLOCK / 32)];
    const int64_t local = ((int64_t)blockIdx.x << d.log_wide) + ((int)threadIdx.x & ((1 << d.log_wide) - 1));
    const pgi_chunk_column<T> line = pgi_chunk_column_of(d, b, u, lines, state->alpha, local);
    const pgi_column c = pgi_part_column(d, lines.stride, local, lines.columns);
    const pgi_values<T> values = {line.x, c.stride};
    const int is_first = line.inside && (int)threadIdx.x >> d.log_wide == 0;
    if (is_first && line.mu < 0)
        if (!pgi_line_indefinite(d, line.mu, state->alpha, line.x, c)) state->resonant = 1;
    const double mean =
        pgi_solve_long_lines<1>(d, line.mu, line.inside && line.mu >= 0, line.x, c, exchange, values, values);
    pgi_report_line_mean(d, line.mu, is_first, mean, state);
}

template <class T> static __global__ void pgi_divide_kernel(pgi_elimination d, pgi_box<T> b, pgi_rhs from, pgi_grid to,
                                                            pgi_state *state, pgi_shape h)
{
    PGI_UNLESS_DONE(state);
    const int n[3] = {b.axis[0].n, b.axis[1].n, b.axis[2].n}, problem = (int)(blockIdx.x / (unsigned)h.blocks);
    const pgi_tile t = pgi_tile_of(h, blockIdx.x % (unsigned)h.blocks, n[2]);
    if (t.i >= n[0] || t.j >= n[1]) return;
    const pgi_column_reader<T> read(b, from, 2, n, t.i + n[0] * (t.j + (int64_t)n[1] * problem));
    int resonant = 0;
    for (int k = t.k0; k < t.k1; k++) {
        const int at[4] = {t.i, t.j, k, problem};
        const double inverse = pgi_mode_inverse(d, state->alpha, at, &resonant);
        pgi_data<T>(to)[pgi_offset(at, to)] = (T)(inverse * (double)read(k));
    }
    if (resonant) state->resonant = 1;
}

// Cuts lines for blocks: in parts that registers hold, or more, of eight rows at least, where that fills the device; at
// least 2^log_least lines lie side by side, for memory. bytes: of shared memory.
template <class Bytes>
static void pgi_cut_lines(const pg_solver *s, pgi_elimination *d, int64_t lines, int log_least, Bytes bytes)
{
    const int n = d->rows.n;
    const auto block = [&](int log_most) {
        while (lines << d->log_parts < 512 * (int64_t)s->multiprocessors && n >= 16 << d->log_parts &&
               2 << (d->log_parts + log_least) <= 1 << log_most)
            d->log_parts++;
        d->log_wide = log_most - d->log_parts;
        while (d->log_wide > log_least && d->log_parts + d->log_wide > 5 &&
               lines < (int64_t)s->multiprocessors << d->log_wide)
            d->log_wide--;
    };
    for (d->log_parts = 0; n > PGI_KEPT << d->log_parts;) d->log_parts++;
    d->kept = d->log_parts + log_least <= PGI_LOG_LINE_THREADS;
    if (d->kept) {
        block(PGI_LOG_LINE_THREADS);
        while (d->log_wide > log_least && d->log_parts + d->log_wide > 5 && bytes(*d) > s->shared_limit) d->log_wide--;
        d->kept = bytes(*d) <= s->shared_limit;
    }
    if (d->kept) return;
    d->log_parts = 0;
    block(8);    // PGI_BLOCK
}

// Bytes of the marks of lines whose parts are too long for registers.
static int64_t pgi_marks_of(const pgi_elimination &d, int64_t lines)
{
    const int64_t blocks = (((d.rows.n - 1) >> d.log_parts) + PGI_LINE_BLOCK) / PGI_LINE_BLOCK;
    return d.kept ? 0 : (lines * 2 * (blocks - 1) * (int64_t)sizeof(double)) << d.log_parts;
}

#if PGI_DIRECT

// ---- transforms in two radices: values to coefficients in registers ----

// Where a length has a square factor R^2, the first and the last stage of its complex transforms have radix R and stay
// in registers, where every thread has two butterflies of each: values come straight from the grid, all under way at
// once, and the last stage leaves in one thread what belongs together, frequencies k and length - k. So coefficients,
// their division by the eigenvalues and the begin of the way back are arithmetic on registers. The stages between are
// in place: decimation in frequency on the way there, and its mirror image, decimation in time, on the way back (J. W.
// Cooley and J. W. Tukey 1965; W. M. Gentleman and G. Sande 1966).

// A number is 16 bytes: a complex one of two columns of doubles, or two complex ones of four columns of floats.
struct alignas(8) pgi_float_pair {
    float a, b;
};
static PGI_HD inline pgi_float_pair pgi_float_pair_of(float a, float b)
{
    const pgi_float_pair v = {a, b};
    return v;
}
static PGI_HD inline pgi_float_pair operator+(pgi_float_pair v, pgi_float_pair w)
{
    return pgi_float_pair_of(v.a + w.a, v.b + w.b);
}
static PGI_HD inline pgi_float_pair operator-(pgi_float_pair v, pgi_float_pair w)
{
    return pgi_float_pair_of(v.a - w.a, v.b - w.b);
}
static PGI_HD inline pgi_float_pair operator-(pgi_float_pair v) { return pgi_float_pair_of(-v.a, -v.b); }
static PGI_HD inline pgi_float_pair operator*(float f, pgi_float_pair v) { return pgi_float_pair_of(f * v.a, f * v.b); }
static PGI_HD inline pgi_float_pair operator*(pgi_float_pair v, float f) { return f * v; }

template <class T> struct pgi_fft_type;
template <> struct pgi_fft_type<double> {
    typedef pgi_complex<double> number;
};
template <> struct pgi_fft_type<float> {
    typedef pgi_complex<pgi_float_pair> number;
};
template <class V> struct pgi_scalar {
    typedef V type;
};
template <> struct pgi_scalar<pgi_float_pair> {
    typedef float type;
};

// cos and sin of 2 pi q/p.
static constexpr PGI_HD double pgi_odd_cosine(int p, int q)
{
    return p == 3   ? -0.5
           : p == 5 ? (q == 1 || q == 4 ? 0.30901699437494742410 : -0.80901699437494742410)
                    : (q == 1 || q == 6   ? 0.62348980185873353053
                       : q == 2 || q == 5 ? -0.22252093395631440429
                                          : -0.90096886790241912624);
}
// Not by recursion: a compiler calls a recursive function at run time, in the middle of butterflies.
static constexpr PGI_HD double pgi_odd_sine(int p, int q)
{
    const int above = 2 * q > p, below = above ? p - q : q;
    const double sine = p == 3   ? 0.86602540378443864676
                        : p == 5 ? (below == 1 ? 0.95105651629515357212 : 0.58778525229247312917)
                                 : (below == 1   ? 0.78183148246802980871
                                    : below == 2 ? 0.97492791218182360702
                                                 : 0.43388373911755812048);
    return above ? -sine : sine;
}

// The forward transform of P numbers, P an odd prime.
template <int P, class V> static PGI_HD inline void pgi_odd_butterfly(pgi_complex<V> (&v)[P])
{
    typedef typename pgi_scalar<V>::type T;
    const pgi_complex<V> first = v[0];
    pgi_complex<V> sum[P / 2], difference[P / 2];
    PGI_UNROLLED
    for (int r = 0; r < P / 2; r++) {
        sum[r] = pgi_sum(v[r + 1], v[P - 1 - r]);
        difference[r] = pgi_difference(v[r + 1], v[P - 1 - r]);
        v[0] = pgi_sum(v[0], sum[r]);
    }
    PGI_UNROLLED
    for (int k = 1; k <= P / 2; k++) {
        pgi_complex<V> a = first, b = first;
        PGI_UNROLLED
        for (int r = 0; r < P / 2; r++) {
            const int q = (r + 1) * k % P;
            a = pgi_sum(a, pgi_scaled(sum[r], (T)pgi_odd_cosine(P, q)));
            const pgi_complex<V> more = pgi_scaled(difference[r], (T)pgi_odd_sine(P, q));
            b = r == 0 ? more : pgi_sum(b, more);
        }
        v[k] = pgi_minus_i(a, b);
        v[P - k] = pgi_plus_i(a, b);
    }
}

// The forward transform of P numbers.
template <int P, class V> static PGI_HD inline void pgi_butterfly(pgi_complex<V> (&v)[P])
{
    typedef typename pgi_scalar<V>::type T;
    if constexpr (P == 2) {
        const pgi_complex<V> a = v[0];
        v[0] = pgi_sum(a, v[1]);
        v[1] = pgi_difference(a, v[1]);
    } else if constexpr (P == 4) {
        const pgi_complex<V> a = pgi_sum(v[0], v[2]), b = pgi_difference(v[0], v[2]);
        const pgi_complex<V> c = pgi_sum(v[1], v[3]), d = pgi_difference(v[1], v[3]);
        v[0] = pgi_sum(a, c);
        v[1] = pgi_minus_i(b, d);
        v[2] = pgi_difference(a, c);
        v[3] = pgi_plus_i(b, d);
    } else if constexpr (P == 6) {    // as 2 x 3 without twiddles: lengths that have no common factor
        pgi_complex<V> even[3] = {v[0], v[2], v[4]}, odd[3] = {v[3], v[5], v[1]};
        pgi_butterfly<3>(even);
        pgi_butterfly<3>(odd);
        v[0] = pgi_sum(even[0], odd[0]);
        v[3] = pgi_difference(even[0], odd[0]);
        v[4] = pgi_sum(even[1], odd[1]);
        v[1] = pgi_difference(even[1], odd[1]);
        v[2] = pgi_sum(even[2], odd[2]);
        v[5] = pgi_difference(even[2], odd[2]);
    } else if constexpr (P == 8) {
        const T h = (T)0.70710678118654752440;
        pgi_complex<V> even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
        pgi_butterfly<4>(even);
        pgi_butterfly<4>(odd);
        const pgi_complex<V> p = pgi_minus_i(odd[1], odd[1]), q = pgi_plus_i(odd[3], odd[3]);
        v[0] = pgi_sum(even[0], odd[0]);
        v[4] = pgi_difference(even[0], odd[0]);
        v[1] = pgi_complex_of<V>(even[1].x + h * p.x, even[1].y + h * p.y);
        v[5] = pgi_complex_of<V>(even[1].x - h * p.x, even[1].y - h * p.y);
        v[2] = pgi_minus_i(even[2], odd[2]);
        v[6] = pgi_plus_i(even[2], odd[2]);
        v[3] = pgi_complex_of<V>(even[3].x - h * q.x, even[3].y - h * q.y);
        v[7] = pgi_complex_of<V>(even[3].x + h * q.x, even[3].y + h * q.y);
    } else
        pgi_odd_butterfly<P>(v);
}

// The same number, of which the compiler does not know that: what follows from it is found again rather than kept in
// registers.
static __device__ inline int pgi_anew(int number)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(number));
#endif
    return number;
}

enum { PGI_FFT_THREADS = 256, PGI_FFT_LOG_WIDE = 4, PGI_FFT_STATIC = 1024, PGI_TO_MODES = 0, PGI_TO_VALUES = 1 };

// Values of a grid that are used once: the first cache is left to the tables.
#ifdef __CUDA_ARCH__
static __device__ inline double pgi_fetch_once(const double *p)
{
    double v;
    asm volatile("ld.global.L1::no_allocate.f64 %0, [%1];" : "=d"(v) : "l"(p));
    return v;
}
static __device__ inline float pgi_fetch_once(const float *p)
{
    float v;
    asm volatile("ld.global.L1::no_allocate.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}
static __device__ inline pgi_complex<float> pgi_fetch_once(const pgi_complex<float> *p)
{
    pgi_complex<float> v;
    asm volatile("ld.global.L1::no_allocate.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(p));
    return v;
}
static __device__ inline pgi_complex<double> pgi_fetch_once(const pgi_complex<double> *p)
{
    pgi_complex<double> v;
    asm volatile("ld.global.L1::no_allocate.v2.f64 {%0, %1}, [%2];" : "=d"(v.x), "=d"(v.y) : "l"(p));
    return v;
}
static __device__ inline pgi_complex<pgi_float_pair> pgi_fetch_once(const pgi_complex<pgi_float_pair> *p)
{
    pgi_complex<pgi_float_pair> v;
    asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x.a), "=f"(v.x.b), "=f"(v.y.a), "=f"(v.y.b)
                 : "l"(p));
    return v;
}
static __device__ inline void pgi_store_once(pgi_complex<pgi_float_pair> *p, pgi_complex<pgi_float_pair> v)
{
    __stcs((float4 *)p, make_float4(v.x.a, v.x.b, v.y.a, v.y.b));
}
#else
template <class V> static __device__ inline V pgi_fetch_once(const V *p) { return *p; }
#endif

// Quotients. inverse: see pgi_inverse_up.
static PGI_HD inline int pgi_over(int number, const pgi_divisor &d)
{
    return (int)((uint64_t)(unsigned)number * d.inverse >> d.shift);
}
static PGI_HD inline int pgi_over(int number, unsigned inverse)
{
    return inverse == 0 ? number : (int)((uint64_t)(unsigned)number * inverse >> 32);
}

template <class V, int P> static PGI_HD inline void pgi_swap_all(pgi_complex<V> (&v)[P])
{
    PGI_UNROLLED
    for (int k = 0; k < P; k++) v[k] = pgi_swapped(v[k]);
}
// The transform of P numbers, forward or back: the inverse is the forward one of swapped numbers.
template <int BACK, int P, class V> static PGI_HD inline void pgi_short_transform(pgi_complex<V> (&v)[P])
{
    if (BACK) pgi_swap_all(v);
    pgi_butterfly<P>(v);
    if (BACK) pgi_swap_all(v);
}
// Times the powers of a root, or of its conjugate. power(k) looks one up: of eight, three, as the others are products.
template <int BACK, class T, int P, class V, class Power>
static PGI_HD inline void pgi_twiddle(pgi_complex<V> (&v)[P], const Power &power)
{
    pgi_complex<T> w[P];
    PGI_UNROLLED
    for (int k = 1; k < P; k++)
        if (P < 8 || (k & -k) == k) w[k] = power(k);
    PGI_UNROLLED
    for (int k = 1; k < P; k++) {
        const int low = k & -k;
        if (P == 8 && low != k) w[k] = pgi_times(w[low], w[k - low]);
        v[k] = pgi_times(v[k], BACK ? pgi_conjugate(w[k]) : w[k]);
    }
}

// What divides by eigenvalues, the sum of those of the axes and alpha; 0 for those that are exactly 0, or, with alpha <
// 0, 0 to round-off. Free of branches, so that several go side by side; in f64 for floats too, whose range eigenvalues
// leave in some units (spacings of 1e21 cm).
struct pgi_divider {
    double width, least, scale;
};
static PGI_HD inline pgi_divider pgi_divider_of(double alpha, double scale)
{
    const double width = alpha < 0 ? 8 * DBL_EPSILON : 0;
    const pgi_divider d = {width, -2 * width * alpha, scale};    // least: the eigenvalues are total - alpha
    return d;
}
template <class T> static __device__ inline T pgi_divide(const pgi_divider &d, T value, double total, int *lost)
{
    const int none = fabs(total) <= fma(d.width, total, d.least);
    *lost |= none;
#ifdef __CUDA_ARCH__
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(total));
    const double e = fma(-total, r, 1.0);
    r = fma(r, sizeof(T) == sizeof(double) ? fma(e, e, e) : e, r);
#else
    const double r = none ? 0 : 1 / total;
#endif
    return none ? (T)0 : (T)(d.scale * r * (double)value);
}

// A stage between the first and the last one, as a thread runs it: a thread writes where it has read, so one barrier
// before is enough. Both directions run the same code: back, real and imaginary parts are swapped in shared memory.
struct pgi_fft_run {
    pgi_fft_stage stage;
    int n, lanes, lane, element, pitch, back;
    int memory, roots;    // bytes from the begin of shared memory
};
template <int P, class T> static __device__ inline void pgi_fft_butterflies(const pgi_fft_run &f)
{
    typedef typename pgi_fft_type<T>::number number;
    PGI_DYNAMIC_SHARED(char, shared);
    number *const x = (number *)(shared + f.memory);
    const pgi_complex<T> *const roots = (const pgi_complex<T> *)(shared + f.roots);
    const pgi_fft_stage &stage = f.stage;
    const int step = stage.stride * f.element, total = (int)((unsigned)f.n / P);
    PGI_ROLLED
    for (int at = f.lane; at < total; at += f.lanes) {
        const int which = pgi_over(at, stage.per_part), own = at - which * stage.part;
        const int row = pgi_over(own, stage.per_stride), t = own - row * stage.stride, back = pgi_anew(f.back);
        number *const p = x + which * f.pitch + (own + row * stage.stride * (P - 1)) * f.element;
        const auto power = [&](int k) { return roots[k * t * stage.root]; };
        number v[P];
        PGI_UNROLLED
        for (int r = 0; r < P; r++) v[r] = p[r * step];
        if (back) {
            pgi_swap_all(v);
            pgi_twiddle<1, T>(v, power);
            pgi_swap_all(v);
        }
        pgi_butterfly<P>(v);
        if (!back) pgi_twiddle<0, T>(v, power);
        PGI_UNROLLED
        for (int r = 0; r < P; r++) p[r * step] = v[r];
    }
}
// In line: a call would take 1 to 2 % of a direct solve.
template <class T> static __device__ inline void pgi_fft_run_stage(pgi_fft_run f)
{
    switch (f.stage.radix) {
    case 2: pgi_fft_butterflies<2, T>(f); break;
    case 3: pgi_fft_butterflies<3, T>(f); break;
    case 4: pgi_fft_butterflies<4, T>(f); break;
    case 5: pgi_fft_butterflies<5, T>(f); break;
    case 6: pgi_fft_butterflies<6, T>(f); break;
    case 7: pgi_fft_butterflies<7, T>(f); break;
    default: pgi_fft_butterflies<8, T>(f);
    }
}

namespace
{
// A thread of a transform, in one phase of it: where it is is found again in every phase rather than kept in registers.
// It has two butterflies of radix R at either end, a and b: of types 2 and 3 and of periodic axes mirror images of each
// other, so that rows 2 t and 2 t + 1, and frequencies k and n - k, meet; of type 4, which takes two transforms of half
// the length for a pair of columns, the same one of both.
template <class T, int KIND, int R> struct pgi_fft_thread {
    typedef typename pgi_fft_type<T>::number number;
    enum { TYPE1 = KIND == PGI_DCT1 };    // KIND: PGI_ANY_KIND but type 1 is the plan's
    enum { PER = 16 / sizeof(T), HALF = (R + 1) / 2 };
    const pgi_fft &c;
    number *memory;    // of the column of numbers
    char *tables;      // copies, after all numbers
    int lane, column;

    __device__ pgi_fft_thread(const pgi_fft &plan, number *all) : c(plan)
    {
        const int thread = pgi_anew((int)threadIdx.x), row = pgi_over(thread, plan.per_lane);
        column = plan.axis == 0 ? row : thread & ((1 << plan.log_wide) - 1);
        lane = plan.axis == 0 ? thread - row * plan.lanes : thread >> plan.log_wide;
        memory = all + column * plan.lane;
        tables = (char *)all + plan.bytes;
    }
    static __device__ T &part(number &v, int q) { return ((T *)&v)[q]; }
    // Entry e of the tables, and the roots of the stages between.
    __device__ pgi_complex<T> entry(int e) const { return ((const pgi_complex<T> *)tables + lane)[e * c.lanes]; }
    __device__ const pgi_complex<T> *roots() const { return (const pgi_complex<T> *)tables + c.entries * c.lanes; }
    __device__ pgi_complex<T> step(int m) const { return entry(pgi_fft_step(R, m)); }
    __device__ int is(int kind) const { return KIND == PGI_ANY_KIND ? c.kind == kind : KIND == kind; }
    __device__ int is_periodic() const { return is(PGI_FOURIER); }
    __device__ int is_type2() const { return is(PGI_DCT2); }
    __device__ int is_type4() const { return is(PGI_DCT4); }
    __device__ int sine() const { return c.sine; }

    // The butterflies of the first stage, and those of the last: frequencies; and where they are in memory.
    __device__ int place(int second) const
    {
        return !second || is_type4() ? lane : !TYPE1 ? c.span - 1 - lane : lane ? c.span - lane : c.span / 2;
    }
    __device__ number *at_place(int second) const
    {
        return memory + place(second) * c.element + (second && is_type4() ? R * c.pitch : 0);
    }
    __device__ number *at_frequency(int second) const
    {
        const int u = TYPE1                   ? lane + second * c.lanes
                      : !second || is_type4() ? lane
                      : lane                  ? c.span - lane
                                              : c.span / 2;
        return memory + c.places[u] + (second && is_type4() ? R * c.pitch : 0);
    }
    // The rows of the values (types 2 and 3: Makhoul's order) or of the coefficients of a butterfly: two arithmetic
    // progressions, and apart the first row and, of an odd radix, the one in the middle. Value 2 t, or n - 1 - 2 t from
    // the end on; coefficients k and n - k; those that are their own images are the first ones of lane 0.
    struct progression {
        int first, low, middle, high, up, down;
        __device__ int operator()(int r) const
        {
            return r == 0 ? first : r < R / 2 ? low + r * up : R % 2 && r == R / 2 ? middle : high + r * down;
        }
    };
    __device__ progression rows(int second, int modes) const
    {
        const int n = c.n, span = c.span, at = place(second);
        progression p;
        if (TYPE1) {
            const int begin = (modes ? lane + second * R * c.lanes : at) - c.sine, step = modes ? c.lanes : span;
            return {begin < 0 ? 0 : begin, begin, begin, begin, step, step};
        }
        if (is_type4())
            p = second ? progression{n - 1 - 2 * lane, n - 1 - 2 * lane, 0, n - 1 - 2 * lane, -2 * span, -2 * span}
                       : progression{2 * lane, 2 * lane, 0, 2 * lane, 2 * span, 2 * span};
        else if (modes) {
            const int image = lane ? lane : span / 2;
            p = second ? progression{lane ? n - lane : n / 2, n - lane, 0, n - image, -span, -span}
                       : progression{lane, lane, 0, image, span, span};
        } else if (is_periodic())
            p = {at, at, 0, at, span, span};
        else
            p = {2 * at, 2 * at, 0, 2 * n - 1 - 2 * at, 2 * span, -2 * span};
        const int is_high = second && !modes;
        p.middle = (is_high ? p.high : p.low) + R / 2 * (is_high ? p.down : p.up);
        if (!is_type2() || !modes || !sine()) return p;
        const int last = n - 1;    // sines have their coefficients in reverse order
        return {last - p.first, last - p.low, last - p.middle, last - p.high, -p.up, -p.down};
    }

    // The columns of a number are counted along the lower one of the other axes first. Calls first(lower, upper,
    // problem), then next(q, inside, row, plane) for the step to column q: whether there is one, and whether it begins
    // a row, and a plane.
    template <class First, class Next> __device__ void each_column(int64_t column, First first, Next next) const
    {
        const int begin = (int)(column < c.columns ? column : c.columns - 1), line = pgi_over(begin, c.size[0]),
                  problem = pgi_over(line, c.size[1]), left = (int)c.columns - begin;
        int i = begin - line * c.size[0].number, j = line - problem * c.size[1].number;
        first(i, j, problem);
        PGI_UNROLLED
        for (int q = 1; q < PER; q++) {
            const int inside = q < left, row = inside && ++i == c.size[0].number;
            if (row) i = 0, j++;
            const int plane = row && j == c.size[1].number;
            if (plane) j = 0;
            next(q, inside, row, plane);
        }
    }
    __device__ void offsets(int64_t column, const pgi_grid &g, int64_t (&at)[PER]) const
    {
        const int64_t across = c.axis == 0 ? g.sj : 1, up = c.axis == 2 ? g.sj : g.sk;
        each_column(
            column, [&](int i, int j, int problem) { at[0] = i * across + j * up + problem * g.problem; },
            [&](int q, int inside, int row, int plane) {
                at[q] = at[q - 1] + (inside ? across : 0);
                if (row) at[q] += up - c.size[0].number * across;
                if (plane) at[q] += g.problem - c.size[1].number * up;
            });
    }
    // The sums of the eigenvalues of the other axes.
    __device__ void add_others(int64_t column, const pgi_elimination &d, double *sum) const
    {
        const double *const lower = d.lambda[c.axis == 0 ? 1 : 0], *const upper = d.lambda[c.axis == 2 ? 1 : 2];
        int lower_at = 0, upper_at = 0;
        const auto add = [&](int q) {
            sum[q] = lower[lower_at < c.row[0] ? lower_at : c.row[0] - 1] + upper[upper_at];
        };
        each_column(
            column, [&](int i, int j, int) { lower_at = i, upper_at = j, add(0); },
            [&](int q, int inside, int row, int plane) {
                lower_at = row ? 0 : lower_at + inside;
                upper_at = plane ? 0 : upper_at + row;
                add(q);
            });
    }
    // Whether the columns of a number are a word of the grid in all rows.
    __device__ int together(const T *grid, const int64_t (&at)[PER], int pitch) const
    {
        int yes = c.axis != 0 && (uintptr_t)(grid + at[0]) % 16 == 0 && pitch % 16 == 0;
        PGI_UNROLLED
        for (int q = 1; q < PER; q++) yes = yes && at[q] == at[0] + q;
        return yes;
    }
    // Along x rows 2 t and 2 t + 1 of every column are words of values.
    __device__ int in_pairs(const T *grid, const int64_t (&at)[PER]) const
    {
        int yes = is_type2() && R % 2 == 0 && (uintptr_t)grid % (2 * sizeof(T)) == 0;
        PGI_UNROLLED
        for (int q = 0; q < PER; q++) yes = yes && at[q] % 2 == 0;
        return yes;
    }
    // Type 1: the first value is 0 of a sine, which is no row of the grid, and a cosine has one more than threads do.
    __device__ int is_empty() const { return TYPE1 && sine() && lane == 0; }
    __device__ int has_end() const { return TYPE1 && !sine() && lane == 0; }
    __device__ number &end() const { return memory[c.end]; }

    // From the grid to the butterflies of a thread, or, STORE, the other way: by whole numbers, by pairs of rows, or
    // one value at a time.
    template <int STORE, class V> static __device__ void move_value(V *p, V &v)
    {
        if (STORE)
            pgi_store_once(p, v);
        else
            v = pgi_fetch_once((const V *)p);
    }
    template <int STORE> __device__ void move(T *grid, const int64_t (&at)[PER], int pitch, int64_t left, int modes,
                                              progression low, progression high, number (&a)[R], number (&b)[R]) const
    {
        const int skipped = STORE && is_empty();
        if (c.axis != 0) {
            char *const p = (char *)(grid + at[0]);
            PGI_UNROLLED
            for (int r = 0; r < R; r++) {
                if (r > 0 || !skipped) move_value<STORE>((number *)(p + (int64_t)low(r) * pitch), a[r]);
                move_value<STORE>((number *)(p + (int64_t)high(r) * pitch), b[r]);
            }
            return;
        }
        if (!modes && in_pairs(grid, at)) {
            PGI_UNROLLED
            for (int q = 0; q < PER; q++) {
                if (STORE && q >= left) break;
                T *const p = grid + at[q];
                PGI_UNROLLED
                for (int r = 0; r < R / 2; r++) {
                    pgi_complex<T> x = {part(a[r], q), part(b[R - 1 - r], q)};
                    pgi_complex<T> y = {part(b[r], q), part(a[R - 1 - r], q)};
                    move_value<STORE>((pgi_complex<T> *)(p + low(r)), x);
                    move_value<STORE>((pgi_complex<T> *)(p + high(r)), y);
                    part(a[r], q) = x.x, part(b[R - 1 - r], q) = x.y;
                    part(b[r], q) = y.x, part(a[R - 1 - r], q) = y.y;
                }
            }
            return;
        }
        PGI_UNROLLED
        for (int q = 0; q < PER; q++) {
            if (STORE && q >= left) break;
            T *const p = grid + at[q];
            PGI_UNROLLED
            for (int r = 0; r < R; r++) {
                if (r > 0 || !skipped) move_value<STORE>(p + low(r), part(a[r], q));
                move_value<STORE>(p + high(r), part(b[r], q));
            }
        }
    }
    // By way of shared memory: single values of columns that are no words, and what boundary data add, for what calls a
    // function would not stay in registers.
    template <class Fetch>
    __device__ void load_slowly(Fetch fetch, progression low, progression high, number (&a)[R], number (&b)[R]) const
    {
        PGI_ROLLED
        for (int i = lane; i < c.values; i += c.lanes) memory[i * c.element] = fetch(i);
        __syncthreads();
        if (has_end()) end() = memory[c.n * c.element];
        PGI_UNROLLED
        for (int r = 0; r < R; r++) a[r] = memory[low(r) * c.element], b[r] = memory[high(r) * c.element];
        __syncthreads();
    }
    template <class Store>
    __device__ void store_slowly(Store store, progression low, progression high, number (&a)[R], number (&b)[R]) const
    {
        __syncthreads();
        PGI_UNROLLED
        for (int r = 0; r < R; r++) {
            if (r > 0 || !is_empty()) memory[low(r) * c.element] = a[r];
            memory[high(r) * c.element] = b[r];
        }
        if (has_end()) memory[c.n * c.element] = end();
        __syncthreads();
        PGI_ROLLED
        for (int i = lane; i < c.values; i += c.lanes) store(i, memory[i * c.element]);
    }

    // Between values and what the complex transforms take. Sines are cosines of values with alternating signs.
    __device__ void alternate(number (&a)[R], number (&b)[R]) const
    {
        if (!is_type2() || !sine()) return;
        PGI_UNROLLED
        for (int r = 0; r < R; r++) {
            if (r >= HALF) a[r] = pgi_scaled(a[r], (T)-1);
            if (r >= R / 2) b[r] = pgi_scaled(b[r], (T)-1);
        }
    }
    __device__ void split(number (&a)[R], number (&b)[R]) const    // type 4: a column a transform
    {
        const T sign = sine() ? (T)-1 : (T)1;
        PGI_UNROLLED
        for (int r = 0; r < R; r++) {
            const pgi_complex<T> w = step(r);
            const number low = a[r], high = pgi_scaled(b[r], sign);
            a[r] = pgi_times(pgi_complex_of(low.x, high.x), w);
            b[r] = pgi_times(pgi_complex_of(low.y, high.y), w);
        }
    }
    __device__ void unite(number (&a)[R], number (&b)[R]) const
    {
        const T sign = sine() ? (T)-1 : (T)1;
        PGI_UNROLLED
        for (int r = 0; r < R; r++) {
            const pgi_complex<T> w = pgi_conjugate(step(r));
            const number x = pgi_times(a[r], w), y = pgi_times(b[r], w);
            a[r] = pgi_complex_of(x.x, y.x);
            b[r] = pgi_scaled(pgi_complex_of(x.y, y.y), sign);
        }
    }
    __device__ void first(number (&a)[R], number (&b)[R]) const
    {
        if constexpr (TYPE1) {
            fold_all(a, b);
        } else {
            if (is_type4())
                split(a, b);
            else
                alternate(a, b);
            first_butterfly(0, a);
            first_butterfly(1, b);
        }
    }
    __device__ void first_butterfly(int second, number (&v)[R]) const
    {
        number *const p = at_place(second);
        pgi_butterfly<R>(v);
        pgi_twiddle<0, T>(v, [&](int k) { return entry(pgi_fft_twiddle(R, second, k)); });
        PGI_UNROLLED
        for (int k = 0; k < R; k++) p[k * c.pitch] = v[k];
    }
    __device__ void first_butterfly_back(int second, number (&v)[R]) const
    {
        pgi_twiddle<1, T>(v, [&](int k) { return entry(pgi_fft_twiddle(R, second, k)); });
        pgi_short_transform<1>(v);
    }
    __device__ void first_back(number (&a)[R], number (&b)[R]) const
    {
        if constexpr (TYPE1) {
            unfold_all(a, b);
        } else {
            const number *const p = at_place(0), *const q = at_place(1);
            PGI_UNROLLED
            for (int k = 0; k < R; k++) a[k] = pgi_swapped(p[k * c.pitch]), b[k] = pgi_swapped(q[k * c.pitch]);
            first_butterfly_back(0, a);
            first_butterfly_back(1, b);
            if (is_type4())
                unite(a, b);
            else
                alternate(a, b);
        }
    }
    __device__ void middle(int back) const
    {
        PGI_DYNAMIC_SHARED(char, shared);
        const int at = (int)((char *)memory - shared), roots_at = (int)((const char *)roots() - shared);
        PGI_ROLLED
        for (int q = 0; q < c.stages; q++) {
            __syncthreads();
            pgi_fft_run_stage<T>(
                {c.stage[back ? c.stages - 1 - q : q], c.n, c.lanes, lane, c.element, c.pitch, back, at, roots_at});
        }
        __syncthreads();
    }

    // The last stage, and the pairs of frequencies that belong together.
    static __device__ number chosen(int yes, number a, number b)
    {
        number v;
        PGI_UNROLLED
        for (int q = 0; q < PER; q++) part(v, q) = yes ? part(a, q) : part(b, q);
        return v;
    }
    template <int P>
    static __device__ void to_slots(int own, const number (&a)[P], const number (&b)[P], number (&f)[P], number (&g)[P])
    {
        enum { MIDDLE = (P + 1) / 2 };
        PGI_UNROLLED
        for (int m = 0; m < P; m++) {
            f[m] = m < MIDDLE ? a[m] : chosen(own, b[m], a[m]);
            g[m] = m == 0       ? chosen(own, P % 2 ? b[P / 2] : a[P / 2], b[P - 1])
                   : m < MIDDLE ? chosen(own, a[(P - m) % P], b[P - 1 - m])
                                : b[P - 1 - m];
        }
    }
    template <int P> static __device__ void from_slots(int own, const number (&f)[P], const number (&g)[P],
                                                       number (&a)[P], number (&b)[P])
    {
        enum { MIDDLE = (P + 1) / 2 };
        PGI_UNROLLED
        for (int m = 0; m < P; m++) {
            a[m] = m < MIDDLE ? f[m] : chosen(own, g[(P - m) % (P % 2 ? P : P / 2)], f[m]);
            b[m] = m >= MIDDLE                ? chosen(own, f[m], g[P - 1 - m])
                   : P % 2 && m == MIDDLE - 1 ? chosen(own, g[0], g[P - 1 - m])
                                              : g[P - 1 - m];
        }
    }
    __device__ void last(number (&f)[R], number (&g)[R]) const
    {
        const number *const p = at_frequency(0), *const q = at_frequency(1);
        number a[R], b[R];
        PGI_UNROLLED
        for (int k = 0; k < R; k++) a[k] = p[k * c.element], b[k] = q[k * c.element];
        pgi_short_transform<0>(a);
        pgi_short_transform<0>(b);
        if (!TYPE1 && !is_type4()) {
            to_slots<R>(lane == 0, a, b, f, g);
            return;
        }
        PGI_UNROLLED
        for (int k = 0; k < R; k++) f[k] = TYPE1 ? pgi_swapped(a[k]) : a[k], g[k] = TYPE1 ? pgi_swapped(b[k]) : b[k];
    }
    __device__ void last_back(const number (&f)[R], const number (&g)[R]) const
    {
        number *const p = at_frequency(0), *const q = at_frequency(1);
        number a[R], b[R];
        if (!TYPE1 && !is_type4()) {
            from_slots<R>(lane == 0, f, g, a, b);
        } else {
            PGI_UNROLLED
            for (int k = 0; k < R; k++)
                a[k] = TYPE1 ? pgi_swapped(f[k]) : f[k], b[k] = TYPE1 ? pgi_swapped(g[k]) : g[k];
        }
        pgi_swap_all(a);
        pgi_swap_all(b);
        pgi_butterfly<R>(a);
        pgi_butterfly<R>(b);
        PGI_UNROLLED
        for (int k = 0; k < R; k++) p[k * c.element] = a[k], q[k * c.element] = b[k];
    }

    // Coefficients from a pair of frequencies, and back: of a periodic axis, of types 2 and 3, and of type 4. own: the
    // two are their own images.
    static __device__ void after_periodic(number &f, number &g, int own)
    {
        const T half = (T)0.5;
        const number a = f, b = g;
        f = chosen(own, a, pgi_scaled(pgi_sum(a, b), half));
        g = chosen(own, b, pgi_scaled(pgi_complex_of(b.y - a.y, a.x - b.x), half));
    }
    static __device__ void before_periodic(number &f, number &g, int own)
    {
        const number a = f, b = g;
        f = chosen(own, a, pgi_minus_i(a, b));
        g = chosen(own, b, pgi_plus_i(a, b));
    }
    static __device__ void after_type2(number &f, number &g, pgi_complex<T> w, int own)
    {
        const T half = (T)0.5, root = (T)0.70710678118654752440;
        const pgi_complex<T> h = pgi_scaled(w, half);
        const number a = f, b = g, s = pgi_sum(a, b), d = pgi_difference(a, b);
        f = chosen(own, a, pgi_complex_of(h.x * s.x - h.y * d.y, h.x * s.y + h.y * d.x));
        g = chosen(own, pgi_scaled(b, root), pgi_complex_of(-(h.x * d.y + h.y * s.x), h.x * d.x - h.y * s.y));
    }
    static __device__ void before_type2(number &f, number &g, pgi_complex<T> w, int own)
    {
        const T twice = (T)1.41421356237309504880;
        const number a = f, b = g;
        f = chosen(own, a, pgi_times(pgi_conjugate(w), pgi_minus_i(a, b)));
        g = chosen(own, pgi_scaled(b, twice), pgi_times(w, pgi_plus_i(a, b)));
    }
    static __device__ void after_type4(number &f, number &g, pgi_complex<T> w, int sine)
    {
        const number x = pgi_times(w, f), y = pgi_times(w, g);
        const number low = pgi_complex_of(x.x, y.x), high = pgi_complex_of(-x.y, -y.y);
        f = sine ? high : low, g = sine ? low : high;
    }
    static __device__ void before_type4(number &f, number &g, pgi_complex<T> w, int sine)
    {
        const number low = sine ? g : f, high = sine ? f : g;
        f = pgi_times(pgi_conjugate(w), pgi_complex_of(low.x, -high.x));
        g = pgi_times(pgi_conjugate(w), pgi_complex_of(low.y, -high.y));
    }
    __device__ void to_coefficients(number (&f)[R], number (&g)[R]) const
    {
        if constexpr (TYPE1) {
            sum_up(f, g);
        } else if (is_periodic()) {
            PGI_UNROLLED
            for (int m = 0; m < R; m++) after_periodic(f[m], g[m], m == 0 && lane == 0);
        } else if (is_type2()) {
            PGI_UNROLLED
            for (int m = 0; m < R; m++) after_type2(f[m], g[m], step(m), m == 0 && lane == 0);
        } else {
            PGI_UNROLLED
            for (int m = 0; m < R; m++) after_type4(f[m], g[m], step(m), sine());
        }
    }
    __device__ void from_coefficients(number (&f)[R], number (&g)[R]) const
    {
        if constexpr (TYPE1) {
            sum_down(f, g);
        } else if (is_periodic()) {
            PGI_UNROLLED
            for (int m = 0; m < R; m++) before_periodic(f[m], g[m], m == 0 && lane == 0);
        } else if (is_type2()) {
            PGI_UNROLLED
            for (int m = 0; m < R; m++) before_type2(f[m], g[m], step(m), m == 0 && lane == 0);
        } else {
            PGI_UNROLLED
            for (int m = 0; m < R; m++) before_type4(f[m], g[m], step(m), sine());
        }
    }
    // Type 1 is a sum over n intervals: sums and differences of mirror images have its odd frequencies, a transform of
    // type 3 of half the intervals, and its even ones, again of type 1 and half the intervals. That is done until R
    // parts are left: transforms of type 3 that have R/2, R/4 ... 1 of them, and in part 0 a rest of type 1. low, high:
    // values at place(0) and place(1), and at every span after them; last: what is at the end of the last interval, in
    // thread 0. Type 3 takes transforms back, and so do all: real and imaginary parts are swapped for the stages.
    template <int BACK, int H> __device__ void twiddle_part(int second, number (&a)[H]) const
    {
        PGI_UNROLLED
        for (int k = 1; k < H; k++) {
            const pgi_complex<T> w = entry(pgi_fold_twiddle(R, H, second, k));
            a[k] = pgi_times(a[k], BACK ? pgi_conjugate(w) : w);
        }
    }
    template <int H> __device__ void first_of_part(int second, number (&a)[H]) const
    {
        number *const p = at_place(second) + H * c.pitch;
        pgi_swap_all(a);
        if constexpr (H > 1) {
            pgi_short_transform<0>(a);
            twiddle_part<0>(second, a);
        }
        PGI_UNROLLED
        for (int k = 0; k < H; k++) p[k * c.pitch] = a[k];
    }
    template <int H> __device__ void last_of_part(int second, number (&a)[H]) const
    {
        const number *const p = at_place(second) + H * c.pitch;
        PGI_UNROLLED
        for (int k = 0; k < H; k++) a[k] = pgi_swapped(p[k * c.pitch]);
        if constexpr (H > 1) {
            twiddle_part<1>(second, a);
            pgi_short_transform<1>(a);
        }
        pgi_swap_all(a);
    }
    template <int H> __device__ void fold(const number (&low)[2 * H], const number (&high)[2 * H], number last) const
    {
        const T sign = sine() ? (T)-1 : (T)1;
        const int own = lane == 0;
        number even_low[H], even_high[H], a[H], b[H], f[H], g[H];
        PGI_UNROLLED
        for (int m = 0; m < H; m++) {
            const number image = m ? low[(2 * H - m) % (2 * H)] : last;
            const number p = pgi_scaled(chosen(own, image, high[2 * H - 1 - m]), sign);
            const number q = pgi_scaled(chosen(own, high[2 * H - 1 - m], low[2 * H - 1 - m]), sign);
            even_low[m] = pgi_sum(low[m], p), a[m] = pgi_difference(low[m], p);
            even_high[m] = pgi_sum(high[m], q), b[m] = pgi_difference(high[m], q);
        }
        if (own) a[0] = pgi_scaled(chosen(sine(), low[H], a[0]), (T)2);
        to_slots<H>(own, a, b, f, g);
        PGI_UNROLLED
        for (int m = 0; m < H; m++) {
            if (m > 0 || !own) g[m] = pgi_scaled(g[m], sign);
            before_type2(f[m], g[m], entry(pgi_fold_step(H, m)), m == 0 && own);
        }
        from_slots<H>(own, f, g, a, b);
        first_of_part<H>(0, a);
        first_of_part<H>(1, b);
        const number next = chosen(sine(), number(), low[H]);
        if constexpr (H > 1)
            fold<H / 2>(even_low, even_high, next);
        else
            fold_rest(even_low[0], even_high[0], next);
    }
    template <int H> __device__ void unfold(number (&low)[2 * H], number (&high)[2 * H], number &last) const
    {
        const T sign = sine() ? (T)-1 : (T)1;
        const int own = lane == 0;
        number even_low[H], even_high[H], next, a[H], b[H], f[H], g[H], p[H], q[H];
        if constexpr (H > 1)
            unfold<H / 2>(even_low, even_high, next);
        else
            unfold_rest(even_low[0], even_high[0], next);
        last_of_part<H>(0, a);
        last_of_part<H>(1, b);
        to_slots<H>(own, a, b, f, g);
        PGI_UNROLLED
        for (int m = 0; m < H; m++) {
            after_type2(f[m], g[m], entry(pgi_fold_step(H, m)), m == 0 && own);
            if (m > 0 || !own) g[m] = pgi_scaled(g[m], sign);
        }
        from_slots<H>(own, f, g, a, b);
        PGI_UNROLLED
        for (int m = 0; m < H; m++) {
            p[m] = pgi_scaled(pgi_difference(even_low[m], a[m]), sign), low[m] = pgi_sum(even_low[m], a[m]);
            q[m] = pgi_scaled(pgi_difference(even_high[m], b[m]), sign), high[m] = pgi_sum(even_high[m], b[m]);
        }
        PGI_UNROLLED
        for (int m = 0; m < H; m++) {
            const number image = m + 1 < H ? p[(m + 1) % H] : chosen(sine(), a[0], next);
            low[2 * H - 1 - m] = chosen(own, image, q[m]);
            high[2 * H - 1 - m] = chosen(own, q[m], p[m]);
        }
        last = p[0];
    }

    // The rest of type 1, of a span of intervals, as one transform: its even frequencies come from the odd part of what
    // it takes, and the differences of its odd ones from the even part (W. H. Press et al., Numerical Recipes, 1992).
    // The rest is short enough that adding up differences costs no accuracy. The lowest odd frequency of a cosine is a
    // sum over all values. The weights are those of the sum and the difference of mirror images.
    __device__ void weigh_rest(int second, T *sum, T *difference) const
    {
        const T half = (T)0.5, s = second && lane == 0 ? (T)1 : -entry(pgi_fft_entries(PGI_DCT1, R) - 1).y;
        *sum = sine() ? s : !second && lane == 0 ? (T)1 : half;
        *difference = sine() ? half : -s;
    }
    __device__ number mixed_rest(int second, number own, number image) const
    {
        T x, y;
        weigh_rest(second, &x, &y);
        return pgi_sum(pgi_scaled(pgi_sum(own, image), x), pgi_scaled(pgi_difference(own, image), y));
    }
    __device__ void fold_rest(number low, number high, number last) const
    {
        const number image = chosen(lane == 0, last, high);
        *at_place(0) = pgi_swapped(mixed_rest(0, low, image));
        *at_place(1) = pgi_swapped(mixed_rest(1, high, chosen(lane == 0, high, low)));
        if (!sine())
            (&end())[(2 + lane) * c.element] =
                pgi_scaled(pgi_difference(low, image), entry(pgi_fft_entries(PGI_DCT1, R) - 1).x);
    }
    __device__ void unfold_rest(number &low, number &high, number &last) const
    {
        const number a = *at_place(0), b = *at_place(1);
        low = mixed_rest(0, a, chosen(lane == 0, number(), b));
        high = mixed_rest(1, b, chosen(lane == 0, b, a));
        last = number();
        if (sine()) return;
        const number all = pgi_scaled((&end())[c.element], entry(pgi_fft_entries(PGI_DCT1, R) - 1).x);
        last = pgi_difference(low, all);
        low = pgi_sum(low, all);
        if (lane) high = pgi_difference(high, all);
    }
    // At the last stage a thread has two butterflies of one part. Along x neighbours have those of different parts, so
    // that they meet no conflicts of banks; else they have the same part, so that those who sum up the rest are
    // neighbours. own: which of its threads it is. Those with the rest are of one warp, or the block waits.
    __device__ int has_rest() const { return c.axis == 0 ? lane % R == 0 : lane < c.lanes / R; }
    __device__ int own_of_rest() const { return c.axis == 0 ? lane / R : lane; }
    __device__ void barrier() const
    {
        if (c.rest_in_warp)
            __syncwarp();
        else
            __syncthreads();
    }
    // Between frequencies of the rest, f and g at lane and half a step after it, and at every step, and its
    // coefficients, of R even frequencies in a row and the odd ones after them.
    __device__ number *rest_at(int k) const { return memory + k * c.element; }
    __device__ void put_rest(const number (&f)[R], const number (&g)[R]) const
    {
        const int half = c.lanes / R, own = own_of_rest();
        PGI_UNROLLED
        for (int m = 0; m < R; m++) *rest_at(own + 2 * m * half) = f[m], *rest_at(own + (2 * m + 1) * half) = g[m];
    }
    __device__ void get_rest(number (&f)[R], number (&g)[R]) const
    {
        const int half = c.lanes / R, own = own_of_rest();
        PGI_UNROLLED
        for (int m = 0; m < R; m++) f[m] = *rest_at(own + 2 * m * half), g[m] = *rest_at(own + (2 * m + 1) * half);
    }
    __device__ void sum_up(number (&f)[R], number (&g)[R]) const
    {
        const int threads = c.lanes / R, rest = has_rest(), own = own_of_rest();
        barrier();    // all butterflies have been read
        if (rest) put_rest(f, g);
        barrier();
        if (rest) {
            PGI_UNROLLED
            for (int m = 0; m < R; m++) {
                const int k = R * own + m;
                const number a = *rest_at(k), b = *rest_at(k ? c.span - k : 0), d = pgi_difference(a, b);
                const number even = k ? pgi_sum(a, b) : chosen(sine(), a, pgi_sum(a, b)),
                             odd = pgi_complex_of(d.y, -d.x);
                f[m] = chosen(sine(), odd, even);
                g[m] = chosen(sine(), even, odd);
                if (m > 0) g[m] = pgi_sum(g[m], g[(m + R - 1) % R]);
            }
            if (has_end()) end() = pgi_scaled(*rest_at(c.span / 2), (T)2);
        }
        barrier();
        if (rest) {
            number first = number();
            for (int m = 0; m < R && !sine(); m++) first = pgi_sum(first, (&end())[(2 + R * own + m) * c.element]);
            *rest_at(own) = g[R - 1];
            if (!sine()) *rest_at(own + threads) = pgi_scaled(first, (T)2);
        }
        barrier();
        if (rest) {
            number sum = number();
            PGI_ROLLED
            for (int h = 0; h < (sine() ? own : threads); h++) {
                if (h < own) sum = pgi_sum(sum, *rest_at(h));
                if (!sine()) sum = pgi_sum(sum, *rest_at(h + threads));
            }
            PGI_UNROLLED
            for (int m = 0; m < R; m++) g[m] = pgi_sum(g[m], sum);
        }
        barrier();
    }
    // The same back: the transpose, step by step.
    __device__ void sum_down(number (&f)[R], number (&g)[R]) const
    {
        const int threads = c.lanes / R, rest = has_rest(), own = own_of_rest();
        const T half = (T)0.5;
        if (rest) {
            PGI_UNROLLED
            for (int m = R - 2; m >= 0; m--) g[m] = pgi_sum(g[m], g[m + 1]);
            *rest_at(own) = g[0];
        }
        barrier();
        if (rest) {
            number sum = number();
            PGI_ROLLED
            for (int h = own + 1; h < threads; h++) sum = pgi_sum(sum, *rest_at(h));
            PGI_UNROLLED
            for (int m = 0; m < R; m++) g[m] = pgi_sum(g[m], sum);
            if (has_end()) (&end())[c.element] = g[0];
        }
        barrier();
        if (rest) {
            PGI_UNROLLED
            for (int m = 0; m < R; m++) {
                const int k = R * own + m;
                const number even = pgi_scaled(chosen(sine(), g[m], f[m]), half);
                const number odd = pgi_scaled(chosen(sine(), f[m], g[m]), k ? half : (T)0);
                *rest_at(k) = pgi_plus_i(even, odd);
                if (k) *rest_at(c.span - k) = pgi_minus_i(even, odd);
            }
            if (lane == 0) *rest_at(c.span / 2) = has_end() ? pgi_scaled(end(), half) : number();
        }
        barrier();
        if (rest) get_rest(f, g);
        barrier();    // before butterflies are written
    }
    __device__ void fold_all(number (&a)[R], number (&b)[R]) const
    {
        const T half = (T)0.5;
        if (has_end()) a[0] = pgi_scaled(a[0], half);    // the ends have half a weight
        fold<R / 2>(a, b, has_end() ? pgi_scaled(end(), half) : number());
    }
    __device__ void unfold_all(number (&a)[R], number (&b)[R]) const
    {
        number last;
        unfold<R / 2>(a, b, last);
        if (has_end()) end() = last;
    }

    // Tables, copied to shared memory: there they do not wait behind the grid's values, as they would in the first
    // cache. lambda: the eigenvalues of a division, after them, or NULL.
    __device__ int table_bytes() const
    {
        return ((c.entries * c.lanes + c.span) * (int)sizeof(pgi_complex<T>) + 15) & ~15;
    }
    __device__ void copy_tables(const double *lambda) const
    {
        const int first = table_bytes(), bytes = first + (lambda ? c.values * (int)sizeof(double) : 0);
        for (int q = 16 * (int)threadIdx.x; q < bytes; q += 16 * (int)blockDim.x)
            pgi_copy_async<16, 1>(tables + q,
                                  q < first ? (const char *)c.tables + q : (const char *)lambda + q - first);
        pgi_copy_commit();
    }
    // The mean that dividing by 0 takes from a singular problem.
    __device__ void report_mean(const pgi_elimination &d, pgi_state *state, const double *others, double eigenvalue,
                                number lowest) const
    {
        if (lane != 0 || d.constant == 0 || state->alpha != 0) return;
        PGI_UNROLLED
        for (int q = 0; q < PER; q++)
            if (others[q] + eigenvalue == 0) state->removed = d.constant * (double)part(lowest, q);
    }
    // Coefficients, divided by their eigenvalues.
    __device__ void divide(const pgi_elimination &d, pgi_state *state, const double *others, number (&f)[R],
                           number (&g)[R]) const
    {
        const double alpha = state->alpha;
        const pgi_divider by = pgi_divider_of(alpha, d.scale);
        const double *const eigenvalue = (const double *)(tables + table_bytes());
        const progression low = rows(0, 1), high = rows(1, 1);
        double rest[PER];
        int lost = 0;
        PGI_UNROLLED
        for (int q = 0; q < PER; q++) rest[q] = others[q] + alpha;
        report_mean(d, state, others, eigenvalue[low(0)], f[0]);
        PGI_UNROLLED
        for (int m = 0; m < R; m++) {
            const double x = eigenvalue[low(m)], y = eigenvalue[high(m)];
            PGI_UNROLLED
            for (int q = 0; q < PER; q++) {
                part(f[m], q) = pgi_divide(by, part(f[m], q), rest[q] + x, &lost);
                part(g[m], q) = pgi_divide(by, part(g[m], q), rest[q] + y, &lost);
            }
        }
        for (int q = 0; q < PER && has_end(); q++)
            part(end(), q) = pgi_divide(by, part(end(), q), rest[q] + eigenvalue[c.n], &lost);
        if (lost && alpha < 0) state->resonant = 1;
    }
};
}    // namespace

static PGI_HD inline int64_t pgi_pitch(const pgi_grid &g, int axis) { return axis == 0 ? 1 : axis == 1 ? g.sj : g.sk; }

// Value i of the columns from `column` on, with what the boundary data add to it.
template <class T>
static __device__ PGI_RARE typename pgi_fft_type<T>::number pgi_fft_completed(const pgi_box<T> &b, const pgi_rhs &from,
                                                                              int axis, int64_t column, int64_t columns,
                                                                              int i, typename pgi_fft_type<T>::number x)
{
    const int n[3] = {b.axis[0].n, b.axis[1].n, b.axis[2].n};
    const unsigned mask = pgi_face_mask(from, b.state);
    PGI_ROLLED
    for (int q = 0; q < 16 / (int)sizeof(T) && column + q < columns; q++) {
        int at[4];
        pgi_column_place(n, axis, column + q, at);
        at[axis] = i;
        const unsigned here =
            mask & (pgi_end_bits(at[0], n[0]) | pgi_end_bits(at[1], n[1]) << 2 | pgi_end_bits(at[2], n[2]) << 4);
        if (here) ((T *)&x)[q] += pgi_face_terms_of<T>(from.faces, b.state, here, at[0], at[1], at[2], at[3]);
    }
    return x;
}

// The butterflies of a thread from the right-hand side, boundary data and mean included. modes: of the last stage.
template <class T, int KIND, int R> static __device__ inline void pgi_fft_load(const pgi_fft_thread<T, KIND, R> &t,
                                                                               const pgi_box<T> &b, const pgi_rhs &from,
                                                                               int64_t column, int modes,
                                                                               typename pgi_fft_type<T>::number (&x)[R],
                                                                               typename pgi_fft_type<T>::number (&y)[R])
{
    typedef pgi_fft_thread<T, KIND, R> thread;
    enum { PER = thread::PER };
    int64_t at[PER];
    t.offsets(column, from.f, at);
    const typename thread::progression low = t.rows(0, modes), high = t.rows(1, modes);
    const int pitch = (int)(pgi_pitch(from.f, t.c.axis) * (int64_t)sizeof(T));
    const T *const f = pgi_data<T>(from.f), mean = pgi_mean_of<T>(from, b.state);
    const int faces = pgi_face_mask(from, b.state) != 0;
    const auto fetch_plain = [&](int i) {
        typename thread::number v;
        PGI_UNROLLED
        for (int q = 0; q < PER; q++)
            thread::part(v, q) = pgi_fetch_once((const T *)((const char *)(f + at[q]) + (int64_t)i * pitch));
        return v;
    };
    const auto fetch = [&](int i) {
        const typename thread::number v = fetch_plain(i);
        return faces ? pgi_fft_completed<T>(b, from, t.c.axis, column, t.c.columns, i, v) : v;
    };
    if (faces || (t.c.axis != 0 && !__syncthreads_and(t.together(f, at, pitch))))
        t.load_slowly(fetch, low, high, x, y);
    else {
        t.template move<0>((T *)f, at, pitch, 0, modes, low, high, x, y);
        if (t.has_end()) t.end() = fetch_plain(t.c.n);
    }
    if (t.is_empty()) x[0] = typename thread::number();
    if (mean == 0) return;
    PGI_UNROLLED
    for (int r = 0; r < R; r++) {
        PGI_UNROLLED
        for (int q = 0; q < PER; q++) thread::part(x[r], q) -= mean, thread::part(y[r], q) -= mean;
    }
    for (int q = 0; q < PER && t.has_end(); q++) thread::part(t.end(), q) -= mean;
}
template <class T, int KIND, int R>
static __device__ inline void pgi_fft_store(const pgi_fft_thread<T, KIND, R> &t, const pgi_grid &to, int64_t column,
                                            int modes, typename pgi_fft_type<T>::number (&x)[R],
                                            typename pgi_fft_type<T>::number (&y)[R])
{
    typedef pgi_fft_thread<T, KIND, R> thread;
    enum { PER = thread::PER };
    int64_t at[PER];
    t.offsets(column, to, at);
    const typename thread::progression low = t.rows(0, modes), high = t.rows(1, modes);
    const int64_t left = t.c.columns - column;
    const int pitch = (int)(pgi_pitch(to, t.c.axis) * (int64_t)sizeof(T));
    T *const u = pgi_data<T>(to);
    const auto store = [&](int i, typename thread::number v) {
        PGI_UNROLLED
        for (int q = 0; q < PER; q++)
            if (q < left) pgi_store_once((T *)((char *)(u + at[q]) + (int64_t)i * pitch), thread::part(v, q));
    };
    if (t.c.axis != 0 && !__syncthreads_and(left >= PER && t.together(u, at, pitch)))
        t.store_slowly(store, low, high, x, y);
    else {
        t.template move<1>(u, at, pitch, left, modes, low, high, x, y);
        if (t.has_end()) store(t.c.n, t.end());
    }
    if (t.c.axis != 0) return;
    // What fills up the rows of the grid between
    for (int i = t.c.values + t.lane; i < t.c.row[1]; i += t.c.lanes) {
        PGI_UNROLLED
        for (int q = 0; q < PER; q++) {
            if (q < left) u[at[q] + i] = 0;
        }
    }
}

// From columns to columns: to coefficients, to values, or there and back and the division between.
template <class T, int KIND, int R> static __global__ void __launch_bounds__(PGI_FFT_THREADS, R == 8 ? 2 : 3)
    pgi_fft_kernel(const __grid_constant__ pgi_box<T> b, pgi_rhs from, pgi_grid to, const __grid_constant__ pgi_fft c,
                   const __grid_constant__ pgi_elimination d, pgi_state *state, int way)
{
    PGI_UNLESS_DONE(state);
    typedef pgi_fft_thread<T, KIND, R> thread;
    PGI_DYNAMIC_SHARED(typename thread::number, memory);
    __shared__ double others[thread::PER << PGI_FFT_LOG_WIDE];    // what the other axes add to eigenvalues
    const int64_t block = (int64_t)blockIdx.x * (thread::PER << c.log_wide);
    typename thread::number x[R], y[R];
    {
        const thread t(c, memory);
        const int64_t column = block + thread::PER * t.column;
        t.copy_tables(way == PGI_THERE_AND_BACK ? d.lambda[c.axis] : NULL);
        pgi_await();
        pgi_fft_load(t, b, from, column, way == PGI_TO_VALUES, x, y);
        if (way == PGI_THERE_AND_BACK && t.lane == 0) t.add_others(column, d, others + thread::PER * t.column);
    }
    pgi_copy_wait<0>();
    __syncthreads();
    if (way != PGI_TO_VALUES) {
        thread(c, memory).first(x, y);
        thread(c, memory).middle(0);
        const thread t(c, memory);
        t.last(x, y);
        t.to_coefficients(x, y);
        if (way == PGI_THERE_AND_BACK) t.divide(d, state, others + thread::PER * t.column, x, y);
    }
    if (way != PGI_TO_MODES) {
        thread(c, memory).from_coefficients(x, y);
        thread(c, memory).last_back(x, y);
        thread(c, memory).middle(1);
        thread(c, memory).first_back(x, y);
    }
    const thread t(c, memory);
    pgi_fft_store(t, to, block + thread::PER * t.column, way == PGI_TO_MODES, x, y);
}

// The radices of a length, the largest first: that order meets no conflicts of banks. -1: there are others.
static int pgi_factor(int length, int six, unsigned char radix[PGI_STAGES])
{
    static const unsigned char known[] = {8, 7, 6, 5, 4, 3, 2};
    int stages = 0;
    for (int q = 0; q < 7; q++)
        for (; (known[q] != 6 || six) && length % known[q] == 0 && stages < PGI_STAGES; length /= known[q])
            radix[stages++] = known[q];
    return length == 1 ? stages : -1;
}

// 2^32 / divisor, rounded up: exact quotients of numbers below 2^16; 0: of 1.
static unsigned pgi_inverse_up(int divisor) { return divisor == 1 ? 0 : 0xffffffffu / (unsigned)divisor + 1; }

// T. Granlund, P. L. Montgomery, Division by invariant integers using multiplication, 1994.
static pgi_divisor pgi_divisor_of(int number)
{
    pgi_divisor d = {0, 31, number};
    while ((int64_t)1 << (d.shift - 31) < number) d.shift++;
    d.inverse = (unsigned)((((uint64_t)1 << d.shift) + (unsigned)number - 1) / (unsigned)number);
    return d;
}

// Cuts the stages between the first and the last one. Returns 0 where the length has other prime factors.
static int pgi_cut_stages(pgi_fft *c, int length)
{
    unsigned char radix[PGI_STAGES];
    c->span = length / c->radix;
    c->stages = pgi_factor(c->span / c->radix, 1, radix);
    for (int q = 0, stride = c->span, root = 1; q < c->stages; q++) {
        pgi_fft_stage *const stage = &c->stage[q];
        stage->radix = radix[q];
        stage->stride = stride /= radix[q];
        stage->part = c->span / radix[q];
        stage->root = root;
        stage->per_part = pgi_inverse_up(stage->part);
        stage->per_stride = pgi_inverse_up(stride);
        root *= radix[q];
    }
    return c->stages >= 0;
}

// Where the numbers of a block are in shared memory: side by side, or, along x, each column by itself, where odd steps
// meet no conflicts of banks. After them come what type 1 sums up, and the tables of a division.
static void pgi_place_fft(pgi_fft *c, int kind)
{
    const int wide = 1 << c->log_wide, rest = c->lanes / c->radix,
              more = kind == PGI_DCT1 && !c->sine ? c->lanes + 2 : 0;
    c->element = c->axis == 0 ? 1 : wide;
    c->pitch = c->axis == 0 ? c->span | 1 : c->span * wide;
    c->end = c->n / c->span * c->pitch;
    c->lane = c->axis == 0 ? (c->end + more) | 1 : 1;
    c->bytes = (size_t)16 * (size_t)(c->axis == 0 ? c->lane * wide : c->end + more * wide);
    c->table_bytes = (size_t)(pgi_fft_entries(kind, c->radix) * c->lanes + c->span + 1) * 2 * sizeof(double) +
                     (size_t)(c->n + 2) * sizeof(double);
    c->rest_in_warp = c->axis == 0 ? c->lanes <= 32 && 32 % c->lanes == 0 : rest << c->log_wide <= 32;
}

// How a block transforms along an axis with two radices. Returns 0 where it cannot.
static int pgi_cut_fft(const pg_solver *s, int axis, pgi_fft *c)
{
    static const int radix[] = {8, 5, 4};
    const pgi_series &series = s->direct.series[axis][0];
    const int per = 16 / (int)(s->desc.flags & (PG_F32 | PG_MIXED) ? sizeof(float) : sizeof(double));
    const int type1 = series.kind == PGI_DCT1, n = series.n + (type1 ? 2 * series.sine - 1 : 0);
    const int length = type1 ? n : series.length, even = type1 || series.count == 1;
    memset(c, 0, sizeof *c);
    if (series.kind == PGI_IDENTITY || n % 2) return 0;
    for (int q = 0; q < 2; q++)    // a kernel's steps from row to row are bytes in 32 bits
        if (s->work.stride_u[q] > 1 << 27 || s->work.stride_f[q] > 1 << 27) return 0;
    for (int q = 0; q < 3 && !c->radix; q++)
        if (length % (radix[q] * radix[q] * (type1 ? 2 : 1)) == 0 && (!even || length / radix[q] % 2 == 0) &&
            !(type1 && radix[q] == 5))
            c->radix = radix[q];
    if (!c->radix || !pgi_cut_stages(c, length)) return 0;
    c->axis = axis;
    c->n = n;
    c->values = series.n;
    c->row[0] = axis == 0 ? s->work.n[1] : s->work.n[0];
    c->size[0] = pgi_divisor_of(c->row[0]);
    c->size[1] = pgi_divisor_of(axis == 2 ? s->work.n[1] : s->work.n[2]);
    c->row[1] = series.n;
    c->kind = series.kind == PGI_DCT3 ? (int)PGI_DCT2 : series.kind;
    c->entries = pgi_fft_entries(c->kind, c->radix);
    c->sine = series.sine;
    c->lanes = n / (2 * c->radix);
    c->per_lane = pgi_inverse_up(c->lanes);
    c->columns = pgi_columns(s, axis);
    // Along x a block is small, as its barriers are for few; along others its columns fill lines of memory. There is
    // room for two blocks, and a small problem keeps all multiprocessors busy.
    const int most = axis == 0 ? PGI_FFT_THREADS / 2 : PGI_FFT_THREADS;
    const auto fits = [&]() {
        return c->lanes << c->log_wide <= PGI_FFT_THREADS &&
               c->bytes + c->table_bytes + PGI_FFT_STATIC <= (size_t)s->shared_limit;
    };
    c->log_wide = PGI_FFT_LOG_WIDE;
    pgi_place_fft(c, series.kind);
    while (c->log_wide > 0 &&
           (!fits() || c->lanes << c->log_wide > most || (int64_t)16 * n << c->log_wide > 72 * 1024 ||
            c->columns < (int64_t)2 * per * s->multiprocessors << c->log_wide)) {
        c->log_wide--;
        pgi_place_fft(c, series.kind);
    }
    return fits() && c->columns < 0x7fffffff && c->bytes <= 16 * 65536;
}

// The order of the threads of type 1 at the last stage, part after part.
static int pgi_fft_lane(const pgi_fft *c, int lane)
{
    return c->axis == 0 ? lane % c->radix * (c->lanes / c->radix) + lane / c->radix : lane;
}

// Where the last stage finds butterfly u in shared memory: what the stages before it have put at u's digits. Type 1:
// the first or second one of a thread, as all parts are transforms of their own.
static int pgi_fft_position(const pgi_fft *c, int type1, int u)
{
    if (type1) {
        const int each = c->lanes / c->radix, lane = pgi_fft_lane(c, u % c->lanes);
        u = lane / each + c->radix * (lane % each + (u < c->lanes ? 0 : each));
    }
    int at = u % c->radix * c->pitch, rest = u / c->radix;
    for (int q = 0; q < c->stages; q++) {
        at += rest % c->stage[q].radix * c->stage[q].stride * c->element;
        rest /= c->stage[q].radix;
    }
    return at;
}

// Type 1: which mode the threads have in a row of coefficients, whose order is theirs.
static int pgi_fft_mode(const pgi_fft *c, int row)
{
    const int n = c->n, r = c->radix, at = row + c->sine, slot = at / c->lanes, lane = pgi_fft_lane(c, at % c->lanes);
    const int each = c->lanes / r, part = lane / each, second = slot / r;
    if (at == n) return n;
    if (part == 0) return r * (2 * (r * lane + slot % r) + second) - c->sine;
    int parts = 1;
    while (2 * parts <= part) parts *= 2;
    const int frequency = part - parts + parts * (lane % each + second * each + slot % r * 2 * each);
    const int m = parts * c->span;    // of a transform of type 3, in Makhoul's order
    const int k = 2 * frequency < m ? 2 * frequency : 2 * (m - frequency) - 1;
    return (2 * k + 1) * r / (2 * parts) - c->sine;
}

// Whether one kernel can transform there and back: coefficients have to be what is in registers.
static int pgi_can_fuse(const pg_solver *s, int axis)
{
    pgi_fft c;
    return s->direct.series[axis][0].kind != PGI_DCT3 && pgi_cut_fft(s, axis, &c);
}

// ---- small 2D problems: one kernel ----

// Products with the eigenvectors of x, then those of y, division, and back. A block has some rows; what a product along
// them finds goes at once, transposed, to the block that has the other axis' rows. Both axes are folded on the way in.
// The code is short, and runs four times: one solve takes about as long as to fetch it.

// Adds up tile o of both halves of the results, of the two tiles of rows that begin at x. v: the table. Lane 4 g + t
// has results 2 t and 2 t + 1 of rows g.
template <class T> static __device__ inline void pgi_fold_product(const pgi_fold &f, int back, const T *v, const T *x,
                                                                  int pitch, int o, T (&sum)[2][2][2])
{
    const int g = ((int)threadIdx.x & 31) >> 2, t = (int)threadIdx.x & 3, apart = f.folded ? f.size : 0;
    const int down = back ? f.pitch : 1, right = back ? 1 : f.pitch;    // from term to term and result to result
    const int half = f.size * (back && !f.folded ? 1 : f.pitch);
    const T *a = x + g * pitch, *b = v + o * right;
    int done = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (sizeof(T) == sizeof(double)) {    // tensor units, which round as ever
        const T *p = a + t, *q = b + g * right + t * down;
        done = f.length;
#pragma unroll 2
        for (int k = 0; k < f.length; k += 8, p += 8, q += 8 * down) {
            PGI_UNROLLED
            for (int h = 0; h < 2; h++) {
                T(&c)[2][2][2] = sum;
                const T *const m = p + h * apart, r[2] = {q[h * half], q[h * half + 4 * down]};
                const T l[2][2] = {{m[0], m[4]}, {m[8 * pitch], m[8 * pitch + 4]}};
#if __CUDA_ARCH__ >= 900
                asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                             "{%8, %9}, {%0, %1, %2, %3};"
                             : "+d"(c[0][h][0]), "+d"(c[0][h][1]), "+d"(c[1][h][0]), "+d"(c[1][h][1])
                             : "d"(l[0][0]), "d"(l[1][0]), "d"(l[0][1]), "d"(l[1][1]), "d"(r[0]), "d"(r[1]));
#else
                PGI_UNROLLED
                for (int e = 0; e < 4; e++)
                    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                                 : "+d"(c[e & 1][h][0]), "+d"(c[e & 1][h][1])
                                 : "d"(l[e & 1][e >> 1]), "d"(r[e >> 1]));
#endif
            }
        }
    }
#endif
    b += 2 * t * right;
    for (int k = done; k < f.length; k += PGI_COLUMNS, a += PGI_COLUMNS, b += PGI_COLUMNS * down) {
        pgi_abreast<T> left[2][2];
        PGI_UNROLLED
        for (int q = 0; q < 4; q++)
            left[q >> 1][q & 1] = *(const pgi_abreast<T> *)(a + (q >> 1) * 8 * pitch + (q & 1) * apart);
        PGI_UNROLLED
        for (int r = 0; r < PGI_COLUMNS; r++) {
            PGI_UNROLLED
            for (int q = 0; q < 4; q++) {
                const T w = b[(q >> 1) * half + (q & 1) * right + r * down];
                sum[0][q >> 1][q & 1] += left[0][q >> 1].v[r] * w;
                sum[1][q >> 1][q & 1] += left[1][q >> 1].v[r] * w;
            }
        }
    }
}

// Two values of either axis become their sum and difference where the axis is folded, and those become the values.
template <class T> static PGI_HD inline void pgi_fold_pairs(const pgi_fold &x, const pgi_fold &y, T (&v)[2][2])
{
    PGI_UNROLLED
    for (int q = 0; q < 2; q++) {
        const T a = v[q][0], b = v[q][1];
        if (x.folded) v[q][0] = a + b, v[q][1] = a - b;
    }
    PGI_UNROLLED
    for (int q = 0; q < 2; q++) {
        const T a = v[0][q], b = v[1][q];
        if (y.folded) v[0][q] = a + b, v[1][q] = a - b;
    }
}

// Times the square roots of the weights at (i, k), or the inverse.
template <class T> static PGI_HD inline void pgi_fold_weigh(const pgi_fold &x, const pgi_fold &y, int inverse,
                                                            const int i[2], const int k[2], T (&v)[2][2])
{
    PGI_UNROLLED
    for (int q = 0; q < 2; q++) {
        const T w = x.root ? ((const T *)x.root)[inverse * x.n + (i[q] < 0 ? 0 : i[q])] : (T)1;
        v[0][q] *= w, v[1][q] *= w;
    }
    PGI_UNROLLED
    for (int q = 0; q < 2; q++) {
        const T w = y.root ? ((const T *)y.root)[inverse * y.n + (k[q] < 0 ? 0 : k[q])] : (T)1;
        v[q][0] *= w, v[q][1] *= w;
    }
}

// What lies at p in another block of the cluster, at the same place of its shared memory.
template <class T> static __device__ inline T *pgi_in_block(T *p, int blocks, int rank)
{
    PGI_CLUSTERS(if (blocks > 1) return (T *)__cluster_map_shared_rank(p, (unsigned)rank);)
    (void)blocks, (void)rank;
    return p;
}

static __device__ inline void pgi_small2d_barrier(const pgi_small2d &small)
{
    if (small.blocks > 1)
        pgi_cluster_sync();
    else
        __syncthreads();
}

static __device__ inline void pgi_small2d_copy_tables(const pgi_small2d &small, char *memory)
{
    PGI_ROLLED
    for (int q = 0; q < 2; q++) {
        const pgi_fold &f = small.fold[q];
        if (small.table[q] >= 0 && (q == 0 || small.table[1] != small.table[0]))
            for (int e = 16 * (int)threadIdx.x; e < f.bytes; e += 16 * PGI_BLOCK)
                pgi_copy_async<16, 1>(memory + small.table[q] + e, (const char *)f.table + e);
    }
    pgi_copy_commit();
}

// The four values of both halves of both axes that a thread takes to its rows, boundary data and mean included.
template <class T> static __device__ inline void pgi_small2d_fetch(const pgi_small2d &small, const pgi_rhs &from,
                                                                   const pgi_state *state, const T *f, T mean,
                                                                   unsigned mask, int problem, const int i[2],
                                                                   const int k[2], T (&v)[2][2])
{
    const pgi_fold &fx = small.fold[0], &fy = small.fold[1];
    PGI_UNROLLED
    for (int q = 0; q < 4; q++) {    // all under way at once
        const int at[2] = {i[q & 1], k[q >> 1]};
        v[q >> 1][q & 1] = f[(at[0] < 0 ? 0 : at[0]) + (at[1] < 0 ? 0 : at[1]) * from.f.sk] - mean;
    }
    PGI_UNROLLED
    for (int q = 0; q < 4; q++) {
        const int at[2] = {i[q & 1], k[q >> 1]};
        const unsigned touched = mask & (pgi_end_bits(at[0], fx.n) | pgi_end_bits(at[1], fy.n) << 4);
        T &value = v[q >> 1][q & 1];
        if (at[0] < 0 || at[1] < 0)
            value = 0;
        else if (touched)
            value += pgi_face_terms_of<T>(from.faces, state, touched, at[0], 0, at[1], problem);
    }
}

// A block's rows of the right-hand side, folded, to its first array.
template <class T> static __device__ inline void pgi_small2d_load(const pgi_small2d &small, const pgi_rhs &from,
                                                                  const pgi_state *state, int controlled, int rank,
                                                                  int problem, char *memory)
{
    const pgi_fold &fx = small.fold[0], &fy = small.fold[1];
    const unsigned mask = pgi_face_mask(from, state);
    const T mean = controlled ? (T)0 : pgi_mean_of<T>(from, state);
    const T *const f = pgi_data<T>(from.f) + problem * from.f.problem;
    const float per_row = pgi_small_inverse(fx.size);
    T *const x = (T *)(memory + small.at[0]);
    for (int e = (int)threadIdx.x; e < 8 * small.tiles[1] * fx.size; e += PGI_BLOCK) {
        const int row = pgi_small_quotient(e, per_row), o = e - row * fx.size;
        int i[2], k[2];
        pgi_fold_place(fx, o, i);
        pgi_fold_place(fy, 8 * small.tiles[1] * rank + row, k);
        T v[2][2];
        pgi_small2d_fetch(small, from, state, f, mean, mask, problem, i, k, v);
        pgi_fold_weigh(fx, fy, 0, i, k, v);
        pgi_fold_pairs(fx, fy, v);
        T *const to_row = x + (row + (row & ~7)) * small.pitch[0] + o;
        PGI_UNROLLED
        for (int q = 0; q < 4; q++) to_row[(q >> 1) * 8 * small.pitch[0] + (q & 1) * fx.size] = v[q >> 1][q & 1];
    }
}

// A tile of products by one warp: its row of them, the first of its two columns, and the sums of both halves.
template <class T> struct pgi_small2d_tile {
    int tile, row, column, pitch;
    T sum[2][2][2];
};

// Divides by the eigenvalues: rows are modes of x, results those of y.
template <class T> static __device__ inline void pgi_small2d_divide(const pgi_small2d &small, const char *table_x,
                                                                    const char *table_y, pgi_state *state, double alpha,
                                                                    int controlled, const pgi_small2d_tile<T> &p,
                                                                    T *out)
{
    const pgi_fold &fx = small.fold[0], &fy = small.fold[1];
    const double *const lambda_x = (const double *)(table_x + fx.bytes) - 2 * fx.size, *const lambda_y =
                                                                                           (const double *)(table_y +
                                                                                                            fy.bytes) -
                                                                                           2 * fy.size;
    const int g = ((int)threadIdx.x & 31) >> 2;
    int lost = 0;
    PGI_UNROLLED
    for (int q = 0; q < 4; q++) {
        const int y = q >> 1, x = q & 1, mode = x * fy.size + p.column;
        const double lambda = lambda_x[y * fx.size + p.row];
        const pgi_complex<double> own = *(const pgi_complex<double> *)(lambda_y + mode);
        *(pgi_complex<T> *)(out + (16 * p.tile + 8 * y + g) * p.pitch + mode) =
            pgi_complex_of(pgi_quotient(p.sum[y][x][0], lambda + own.x, alpha, &lost),
                           pgi_quotient(p.sum[y][x][1], lambda + own.y, alpha, &lost));
    }
    if (lost) state->resonant = 1;
    if (controlled && p.row + p.column == 0 && fx.singular && fy.singular && alpha == 0)
        state->removed = (double)p.sum[0][0][0] / sqrt(fx.total * fy.total);
}

// Transposed to the block that has the other axis' rows.
template <class T> static __device__ inline void pgi_small2d_transpose(const pgi_small2d &small, int axis,
                                                                       float per_tiles, int o,
                                                                       const pgi_small2d_tile<T> &p, T *out)
{
    const int owner = pgi_small_quotient(o >> 3, per_tiles), place = (o >> 3) - owner * small.tiles[axis];
    const int there = small.pitch[1 - axis], other_size = small.fold[1 - axis].size;
    T *const to = pgi_in_block(out + (16 * place + p.column - o) * there + p.row, small.blocks, owner);
    PGI_UNROLLED
    for (int q = 0; q < 8; q++)
        to[((q >> 1 & 1) * 8 + (q & 1)) * there + (q >> 2) * other_size] = p.sum[q >> 2][q >> 1 & 1][q & 1];
}

// Unfolded, to the grid.
template <class T> static __device__ inline void pgi_small2d_store(const pgi_small2d &small, const pgi_grid &to,
                                                                   int problem, const pgi_small2d_tile<T> &p)
{
    const pgi_fold &fx = small.fold[0], &fy = small.fold[1];
    T *const u = pgi_data<T>(to) + problem * to.problem;
    int i[2], k[2];
    pgi_fold_place(fy, p.row, k);
    PGI_UNROLLED
    for (int e = 0; e < 2; e++) {
        T v[2][2] = {{p.sum[0][0][e], p.sum[0][1][e]}, {p.sum[1][0][e], p.sum[1][1][e]}};
        pgi_fold_place(fx, p.column + e, i);
        pgi_fold_pairs(fx, fy, v);
        pgi_fold_weigh(fx, fy, 1, i, k, v);
        PGI_UNROLLED
        for (int q = 0; q < 4; q++)
            if (i[q & 1] >= 0 && k[q >> 1] >= 0) u[i[q & 1] + k[q >> 1] * to.sk] = v[q >> 1][q & 1];
    }
}

// Stages are products with the eigenvectors of x, of y and division, back of y, and back of x.
template <class T> static __global__ void __launch_bounds__(PGI_BLOCK, 3)
    pgi_small2d_kernel(const __grid_constant__ pgi_small2d small, pgi_rhs from, pgi_grid to, pgi_state *state,
                       int controlled)
{
    PGI_UNLESS_DONE(state);
    PGI_DYNAMIC_SHARED(char, memory);
    const pgi_fold &fx = small.fold[0], &fy = small.fold[1];
    const int rank = (int)(blockIdx.x % (unsigned)small.blocks), problem = (int)(blockIdx.x / (unsigned)small.blocks);
    const int lane = (int)threadIdx.x & 31;
    const char *const table_x = small.table[0] < 0 ? (const char *)fx.table : memory + small.table[0],
                      *const table_y = small.table[1] < 0 ? (const char *)fy.table : memory + small.table[1];
    if (small.blocks > 1) pgi_cluster_arrive();
    pgi_small2d_copy_tables(small, memory);
    pgi_await();
    const double alpha = state->alpha;
    pgi_small2d_load<T>(small, from, state, controlled, rank, problem, memory);
    pgi_copy_wait<0>();
    __syncthreads();
    if (small.blocks > 1) pgi_cluster_wait();    // all blocks are there

    PGI_ROLLED
    for (int stage = 0; stage < 4; stage++) {
        const int axis = stage == 1 || stage == 2, tiles = small.tiles[1 - axis], pitch = small.pitch[axis];
        const pgi_fold &f = small.fold[axis], &other = small.fold[1 - axis];
        const T *const in = (const T *)(memory + small.at[stage]);
        T *const out = (T *)(memory + small.at[stage < 3 ? stage + 1 : 3]);
        const int wide = f.size >> 3;
        const float per_wide = pgi_small_inverse(wide), per_tiles = pgi_small_inverse(small.tiles[axis]);
        if (controlled && (int)blockIdx.x == 0 && threadIdx.x == PGI_BLOCK - 32) {    // of a warp that has least to do
            if (stage == 0) pgi_control(state, PGI_BEGIN, 0, pgi_device_now());
            if (stage == 3) pgi_control(state, PGI_LAST, 1, pgi_device_now());
        }
        __syncwarp();
        PGI_ROLLED
        for (int item = (int)threadIdx.x >> 5; item < tiles * wide; item += PGI_BLOCK / 32) {
            const int tile = pgi_small_quotient(item, per_wide), o = 8 * (item - tile * wide);
            pgi_small2d_tile<T> p = {tile, 8 * (tiles * rank + tile) + (lane >> 2), o + 2 * (lane & 3), pitch, {}};
            if (p.row >= other.size) break;
            pgi_fold_product<T>(f, stage > 1, (const T *)(axis ? table_y : table_x), in + 16 * tile * pitch, pitch, o,
                                p.sum);
            if (stage == 1)
                pgi_small2d_divide(small, table_x, table_y, state, alpha, controlled, p, out);
            else if (stage < 3)
                pgi_small2d_transpose(small, axis, per_tiles, o, p, out);
            else
                pgi_small2d_store(small, to, problem, p);
        }
        if (stage == 1)
            __syncthreads();
        else if (stage < 3)
            pgi_small2d_barrier(small);
    }
}

// A launch without attributes but that of the cluster; there is room for one more.
static cudaLaunchConfig_t pgi_small2d_config(const pg_solver *s, cudaLaunchAttribute attribute[2])
{
    const pgi_small2d &small = s->direct.small;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)small.blocks * (unsigned)s->together);
    config.blockDim = dim3(PGI_BLOCK);
    config.dynamicSmemBytes = (size_t)small.memory;
    config.stream = s->stream;
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = (unsigned)small.blocks;
    attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = small.blocks > 1;
    return config;
}

template <class T>
static void pgi_cuda_small2d(pg_solver *s, const pgi_level *, pgi_rhs from, pgi_grid to, int controlled)
{
    cudaLaunchAttribute attribute[2] = {};
    cudaLaunchConfig_t config = pgi_small2d_config(s, attribute);
    if (s->clusters && PGI_OVERLAP) {
        attribute[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    PGI_CUDA(s, cudaLaunchKernelEx(&config, pgi_small2d_kernel<T>, s->direct.small, from, to, s->state, controlled));
}

static pgi_fold pgi_fold_of(const pgi_line *l, size_t element)
{
    pgi_fold f;
    memset(&f, 0, sizeof f);
    const int n = f.n = l->n;
    f.periodic = l->periodic;
    f.folded = n > 1 && pgi_can_transform(l) && (l->periodic || pgi_is_dirichlet(l, 0) == pgi_is_dirichlet(l, 1));
    const int first = f.folded ? n - (n - (l->periodic ? 1 : 0)) / 2 : (n + 1) / 2;
    f.size = (first + 7) & ~7;
    f.length = f.folded ? f.size : 2 * f.size;
    f.pitch = f.length + 4;    // no two threads meet in a bank
    f.bytes = 2 * f.size * (f.pitch * (int)element + (int)sizeof(double));
    f.half[0] = f.folded ? first : n < f.size ? n : f.size;
    f.half[1] = n - f.half[0];
    return f;
}

// Cuts a problem for a cluster of so many blocks. Returns the bytes of shared memory that a block needs at least. same:
// the axes are alike.
static int64_t pgi_cut_small2d(const pg_solver *s, pgi_small2d *small, int same, int blocks)
{
    const int64_t element = s->desc.flags & (PG_F32 | PG_MIXED) ? sizeof(float) : sizeof(double);
    int64_t most = 0;
    small->blocks = blocks;
    for (int a = 0; a < 2; a++) {
        small->tiles[a] = (small->fold[a].size / 8 + blocks - 1) / blocks;
        small->pitch[a] = 2 * small->fold[a].size + 4;
    }
    for (int a = 0; a < 2; a++) {
        const int64_t bytes = element * 16 * small->tiles[1 - a] * small->pitch[a];
        if (bytes > most) most = bytes;
    }
    // Others may be a stage ahead in the second, and write to the first again while the third is read.
    const int place[4] = {0, 1, blocks > 1 ? 2 : 0, blocks > 1 ? 0 : 1};
    for (int q = 0; q < 4; q++) small->at[q] = (int)(place[q] * most);
    const int64_t arrays = (blocks > 1 ? 3 : 2) * most;
    const int64_t tables = small->fold[0].bytes + (same ? 0 : small->fold[1].bytes),
                  capacity = s->shared_limit - arrays;
    small->table[0] = tables <= capacity ? (int)arrays : -1;
    small->table[1] = tables <= capacity ? (int)(arrays + (same ? 0 : small->fold[0].bytes)) : -1;
    small->memory = (int)(arrays + (tables <= capacity ? tables : 0));
    return arrays;
}

// Small 2D problems (and lines of a batch) take one kernel, where a block or a cluster of blocks has room for one: as
// many blocks as there are tiles and multiprocessors for; a large batch keeps these busy with few.
static int pgi_plan_small2d(pg_solver *s, pgi_line *const line[3])
{
    pgi_small2d *small = &s->direct.small;
    const int cluster = s->clusters ? 16 : 1;
    if (!line[1]->absent || s->work.n[0] > 2 * PGI_SMALL2D || s->work.n[2] > 2 * PGI_SMALL2D) return 0;
    const size_t element = s->desc.flags & (PG_F32 | PG_MIXED) ? sizeof(float) : sizeof(double);
    const int same = pgi_line_equal(line[0], line[2]);
    small->fold[0] = pgi_fold_of(line[0], element);
    small->fold[1] = pgi_fold_of(line[2], element);
    int most = PGI_SMALL2D;
    pgi_fft unused;
    for (int a = 0; a < 3; a += 2)
        if (pgi_is_transformed(s, a) && !pgi_cut_fft(s, a, &unused) && small->fold[0].folded && small->fold[1].folded)
            most = 2 * PGI_SMALL2D;
    if (s->work.n[0] > most || s->work.n[2] > most) return 0;
    const void *const kernel = s->desc.flags & (PG_F32 | PG_MIXED) ? (const void *)pgi_small2d_kernel<float>
                                                                   : (const void *)pgi_small2d_kernel<double>;
    const int tiles = (small->fold[0].size > small->fold[1].size ? small->fold[0].size : small->fold[1].size) / 8;
    int best = 0;
    for (int blocks = 1; blocks <= cluster; blocks *= 2) {
        if (pgi_cut_small2d(s, small, same, blocks) > s->shared_limit) continue;
        if (best && (best >= tiles || (int64_t)blocks * s->together > s->multiprocessors)) break;
        best = blocks;
    }
    small->blocks = 0;
    if (!best) return 0;
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, s->shared_limit));
    if (best > 8) PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    for (; best > 1; best /= 2) {    // what the device can really run
        cudaLaunchAttribute attribute[2];
        int clusters = 0;
        if (pgi_cut_small2d(s, small, same, best) > s->shared_limit) return small->blocks = 0;
        const cudaLaunchConfig_t config = pgi_small2d_config(s, attribute);
        if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess && clusters > 0) return 1;
        cudaGetLastError();
    }
    if (pgi_cut_small2d(s, small, same, 1) > s->shared_limit) return small->blocks = 0;
    return 1;
}

static void pgi_execute(pg_solver *s, int axis, int inverse, pgi_complex<double> *x)
{
    PGI_CUFFT(s, cufftExecZ2Z(s->fft[axis], (cufftDoubleComplex *)x, (cufftDoubleComplex *)x,
                              inverse ? CUFFT_INVERSE : CUFFT_FORWARD));
}
static void pgi_execute(pg_solver *s, int axis, int inverse, pgi_complex<float> *x)
{
    PGI_CUFFT(
        s, cufftExecC2C(s->fft[axis], (cufftComplex *)x, (cufftComplex *)x, inverse ? CUFFT_INVERSE : CUFFT_FORWARD));
}

static int64_t pgi_blocks(int64_t threads) { return (threads + PGI_BLOCK - 1) / PGI_BLOCK; }

// Takes the columns of an axis, as many at a time as the buffer holds, there and back; calls work(first column, number)
// between.
template <class T, class Work> static void pgi_cuda_chunks(pg_solver *s, const pgi_level *l, int axis, int backward,
                                                           int contiguous, pgi_rhs from, pgi_grid to, Work work)
{
    const pgi_direct &d = s->direct;
    const pgi_series &series = d.series[axis][backward];
    const int64_t columns = pgi_columns(s, axis), pairs = d.pairs[axis];
    pgi_chunk c = {axis, contiguous, (unsigned)pairs, 0, columns, pgi_spread_of(series, pairs, contiguous)};
    pgi_complex<T> *const buffer = (pgi_complex<T> *)d.buffer;
    for (; 2 * c.first < columns; c.first += pairs) {
        PGI_LAUNCH(s, pgi_blocks(pairs * pgi_steps(series, 0)), dim3(PGI_BLOCK), pgi_before_kernel<T>, series,
                   pgi_box_of(l, T()), from, c, buffer);
        work(2 * c.first, columns - 2 * c.first < 2 * pairs ? columns - 2 * c.first : 2 * pairs);
        PGI_LAUNCH(s, pgi_blocks(pairs * pgi_steps(series, 1)), dim3(PGI_BLOCK), pgi_after_kernel<T>, series,
                   pgi_box_of(l, T()), to, c, buffer);
    }
}

// With checks the mean has been subtracted before, and is reported.
static pgi_elimination pgi_elimination_of(const pg_solver *s)
{
    pgi_elimination d = s->direct.lines;
    if (s->checked) d.constant = 0;
    return d;
}

// Kinds that are common at the common radices have kernels of their own, 2 to 5 % faster than one for any kind.
template <class T, int R> static auto pgi_fft_kernel_of(int kind)
{
    constexpr int TYPE1_R = R == 5 ? 4 : R,
                  TYPE2 = R == 5 ? (int)PGI_ANY_KIND : (int)PGI_DCT2;    // type 1 is never in fives
    return kind == PGI_DCT1                       ? pgi_fft_kernel<T, PGI_DCT1, TYPE1_R>
           : kind == PGI_DCT2 || kind == PGI_DCT3 ? pgi_fft_kernel<T, TYPE2, R>
                                                  : pgi_fft_kernel<T, PGI_ANY_KIND, R>;
}
template <class T>
static void pgi_launch_fft(pg_solver *s, const pgi_level *l, int axis, int backward, pgi_rhs from, pgi_grid to)
{
    const pgi_direct &d = s->direct;
    const pgi_series &series = d.series[axis][backward % PGI_THERE_AND_BACK];
    const int to_values =
        series.kind == PGI_DCT3 || series.kind == PGI_HERMITIAN || (series.kind == PGI_DCT1 && backward == 1);
    pgi_fft c = d.fft[axis];
    // In the grid between, what fills up a row are columns too, so that a block's columns are whole lines of the cache.
    const int per = 16 / (int)sizeof(T), own = to.base == d.between.base && (axis == 0 || from.f.base == to.base);
    if (d.between.sj && own && pgi_is_transformed(s, 0) && d.fft[0].radix) {
        const int row = (int)d.between.sj;
        if (axis != 0) c.columns = c.columns / l->n[0] * row, c.size[0] = pgi_divisor_of(row);
        if (axis == 0) c.row[1] = row;
    }
    const auto kernel = c.radix == 8   ? pgi_fft_kernel_of<T, 8>(series.kind)
                        : c.radix == 5 ? pgi_fft_kernel_of<T, 5>(series.kind)
                                       : pgi_fft_kernel_of<T, 4>(series.kind);
    const int64_t columns = (int64_t)per << c.log_wide;
    const size_t bytes = c.bytes + c.table_bytes;
    size_t most = bytes;    // the same for all axes: a profiler replays launches with the last value
    for (int a = 0; a < 3; a++) {
        const pgi_fft &other = d.fft[a];
        if (other.radix && other.bytes + other.table_bytes > most) most = other.bytes + other.table_bytes;
    }
    PGI_CUDA(s, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));
    // A kernel that starts early fetches its tables meanwhile. That gains up to 10 % (128^3), and costs as much where a
    // kernel does not fill the device and the next one's blocks gather on a part of it (511^2), or fills it many times.
    const int64_t blocks = (c.columns + columns - 1) / columns, full = PGI_BLOCK * (int64_t)s->multiprocessors;
    const unsigned threads = (unsigned)(c.lanes << c.log_wide);
    const int early = s->clusters && blocks * threads >= full && blocks * threads <= 16 * full;
    PGI_LAUNCH_AS(s, early, blocks, dim3(threads), bytes, kernel, pgi_box_of(l, T()), from, to, c,
                  pgi_elimination_of(s), s->state,
                  backward == PGI_THERE_AND_BACK ? (int)PGI_THERE_AND_BACK
                  : to_values                    ? (int)PGI_TO_VALUES
                                                 : (int)PGI_TO_MODES);
}

template <class T>
static void pgi_cuda_transform(pg_solver *s, const pgi_level *l, int axis, int backward, pgi_rhs from, pgi_grid to)
{
    if (s->direct.fft[axis].radix) {
        pgi_launch_fft<T>(s, l, axis, backward, from, to);
        return;
    }
    PGI_CUFFT(s, cufftSetStream(s->fft[axis], s->stream));
    pgi_cuda_chunks<T>(s, l, axis, backward, axis == 0, from, to, [&](int64_t, int64_t) {
        pgi_execute(s, axis, s->direct.series[axis][backward].inverse, (pgi_complex<T> *)s->direct.buffer);
    });
}

// Lines that no transform has brought to u go through the buffer, and long ones along x, to lie side by side.
static int pgi_is_staged(const pg_solver *s, int axis)
{
    return axis == s->direct.lines.line &&
           ((axis == 0 && !s->direct.lines.kept) ||
            !(pgi_is_transformed(s, 0) || pgi_is_transformed(s, 1) || pgi_is_transformed(s, 2)));
}

template <class T> static void pgi_cuda_eliminate(pg_solver *s, const pgi_level *l, pgi_rhs from, pgi_grid to)
{
    const pgi_direct &d = s->direct;
    const pgi_elimination e = pgi_elimination_of(s);
    if (e.line < 0) {
        const pgi_shape h = pgi_shape_of(s, l->n[0], l->n[1], l->n[2]);
        PGI_LAUNCH(s, h.blocks * s->together, pgi_threads(h), pgi_divide_kernel<T>, e, pgi_box_of(l, T()), from, to,
                   s->state, h);
        return;
    }
    const auto launch = [&](pgi_grid u, int64_t first, int64_t columns, int64_t stride, int staged) {
        const pgi_lines lines = {first, columns, stride, staged};
        const int64_t tiles = (columns + (1 << e.log_wide) - 1) >> e.log_wide;
        const int threads = 1 << (e.log_parts + e.log_wide);
        if (!e.kept) {
            PGI_LAUNCH(s, tiles, dim3((unsigned)threads), pgi_eliminate_long_kernel<T>, e, pgi_box_of(l, T()), u, lines,
                       s->state);
            return;
        }
        const int bytes = pgi_eliminate_bytes(e, sizeof(T), staged),
                  resident = s->multiprocessors * (PGI_LINE_THREADS / threads);
        PGI_CUDA(s, cudaFuncSetAttribute(pgi_eliminate_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        PGI_LAUNCH_SHARED(s, tiles < resident ? tiles : resident, dim3((unsigned)threads), bytes,
                          pgi_eliminate_kernel<T>, e, pgi_box_of(l, T()), u, lines, s->state);
    };
    if (!pgi_is_staged(s, e.line)) {
        launch(to, 0, pgi_columns(s, e.line), e.line == 0 ? 1 : e.line == 1 ? to.sj : to.sk, 0);
        return;
    }
    const pgi_grid buffer = {d.buffer, 0, 0, 0, 0};
    pgi_cuda_chunks<T>(s, l, e.line, 0, 0, from, to,
                       [&](int64_t first, int64_t columns) { launch(buffer, first, columns, 2 * d.pairs[e.line], 1); });
}

// cuFFT's plan for a chunk of the columns along an axis. Returns the bytes of its work area.
static size_t pgi_make_fft(pg_solver *s, int a)
{
    const pgi_series &q = s->direct.series[a][0];
    const int contiguous = a == 0, batch = (int)(s->direct.pairs[a] * q.count);
    int length = q.length;
    size_t bytes = 0;
    if (s->has_fft[a]) cufftDestroy(s->fft[a]);
    s->has_fft[a] = 0;
    PGI_CUFFT(s, cufftCreate(&s->fft[a]));
    s->has_fft[a] = s->failed == PG_OK;
    PGI_CUFFT(s, cufftSetAutoAllocation(s->fft[a], 0));
    PGI_CUFFT(s, cufftMakePlanMany(s->fft[a], 1, &length, &length, contiguous ? 1 : batch, contiguous ? length : 1,
                                   &length, contiguous ? 1 : batch, contiguous ? length : 1,
                                   s->desc.flags & (PG_F32 | PG_MIXED) ? CUFFT_C2C : CUFFT_Z2Z, batch, &bytes));
    return bytes;
}

// Rows of u that begin within sectors of memory cost more than a grid of rows that do not, where there is room. Its
// long rows begin with lines of the cache. grid: the bytes of u.
static void pgi_plan_between(pg_solver *s, double grid)
{
    pgi_direct *d = &s->direct;
    const int64_t element = (int64_t)pgi_element(s->desc.flags);
    const int64_t sector = 32 / element, line = s->work.n[0] < 16 * 128 / element ? sector : 128 / element;
    const int64_t sj = (s->work.n[0] + line - 1) / line * line, sk = sj * s->work.n[1];
    const double bytes = (double)(s->together * sk * s->work.n[2] * element);
    const int skewed = s->krylov   ? pgi_grid_at(NULL, s->work.n).sj % sector != 0
                       : s->staged ? s->work.n[0] % sector
                                   : s->work.stride_u[0] % sector || s->work.stride_u[1] % sector;
    if (skewed && (double)(d->buffer_bytes + d->work_bytes + d->marks_bytes) + bytes < 1.1 * grid)
        d->between = {NULL, 0, sj, sk, sk * s->work.n[2]};
}

// How many columns are taken at a time: the buffer and cuFFT's work area stay in the L2 cache of large devices and
// within 0.12 grids, or make up for the launches of small problems.
static pg_status pgi_plan_cufft(pg_solver *s, char text[512])
{
    pgi_direct *d = &s->direct;
    const double grid = (double)(pgi_columns(s, 0) * s->work.n[0]) *
                        (s->desc.flags & (PG_F32 | PG_MIXED) ? sizeof(float) : sizeof(double));
    if (d->lines.line >= 0) {
        const int64_t columns = pgi_columns(s, d->lines.line), n = s->work.n[d->lines.line];
        const int element = s->desc.flags & (PG_F32 | PG_MIXED) ? (int)sizeof(float) : (int)sizeof(double);
        d->lines.rows.n = (int)n;
        pgi_cut_lines(s, &d->lines, columns, 2,
                      [&](const pgi_elimination &e) { return pgi_eliminate_bytes(e, element, 0); });
        // With alpha < 0 one thread eliminates a whole line.
        const int64_t whole = (n - 1) / PGI_LINE_BLOCK * columns * 2 * (int64_t)sizeof(double);
        const int64_t parted = pgi_marks_of(d->lines, columns);
        d->marks_bytes = (size_t)(whole > parted ? whole : parted);
    }
    const double budget = fmax(0.12 * grid, fmin(fmax(1.15 * grid - (double)d->marks_bytes, 0), 40e6));
    double allowed = budget;
    for (int a = 0; a < 3; a++) {
        if (!pgi_cut_fft(s, a, &d->fft[a])) d->fft[a].radix = 0;
        if (d->fft[a].radix && d->series[a][0].kind == PGI_DCT1) d->lines.scale /= 2;    // see fold
        if (d->lines.line < 0 && pgi_is_transformed(s, a) && pgi_can_fuse(s, a)) d->fused = a;
    }
    d->lines.constant = s->mixed || s->krylov || s->desc.batch > 1 ? 0 : d->lines.line < 0 ? d->lines.scale : 1;
    d->reports_mean = d->lines.line >= 0 || d->fused >= 0;
    for (int a = 0; a < 3; a++)
        if (d->series[a][0].kind == PGI_DCT1) d->lines.constant /= 2;    // half of it becomes the constant
    for (int attempt = 0; attempt < 10 && s->failed == PG_OK; attempt++) {
        int reducible = 0;
        d->buffer_bytes = d->work_bytes = 0;
        for (int a = 0; a < 3; a++) {
            if (pgi_is_transformed(s, a) ? d->fft[a].radix : !pgi_is_staged(s, a)) continue;
            const size_t bytes = pgi_pair_bytes(s, a);
            const int64_t pairs = (pgi_columns(s, a) + 1) / 2;
            const double fit = fmin(allowed / (double)bytes, 1e9 / s->work.n[a]);    // elements are numbered in 32 bits
            const int64_t most = fit < 1 ? 1 : (int64_t)fit;
            const int64_t chunks = (pairs + most - 1) / most;
            d->pairs[a] = (pairs + chunks - 1) / chunks;
            reducible += d->pairs[a] > 1;
            const size_t work = pgi_is_transformed(s, a) ? pgi_make_fft(s, a) : 0;
            if (d->pairs[a] * bytes > d->buffer_bytes) d->buffer_bytes = (size_t)d->pairs[a] * bytes;
            if (work > d->work_bytes) d->work_bytes = work;
        }
        const double used = (double)(d->buffer_bytes + d->work_bytes);
        if (used <= budget || !reducible) break;
        allowed *= fmin(0.9, budget / used);
    }
    if (!s->mixed && s->work.n[1] > 1) pgi_plan_between(s, grid);
    if (s->failed) snprintf(text, 512, "%s", s->error);
    return s->failed;
}

#endif
#endif

// ---- line relaxation: zebra ----

// The lines of one colour: every second one of a range of the other two axes, shifted from row to row of lines. Like
// pgi_colour, with seams.
struct pgi_zebra {
    int fast, slow;    // the two axes
    int lo[2], hi[2], parity;
    int64_t per_row, lines;
};

static pgi_zebra pgi_zebra_of(const int n[3], const int seam[3], int line, int seams, int parity)
{
    pgi_zebra z;
    z.fast = line == 0 ? 1 : 0;
    z.slow = line == 2 ? 1 : 2;
    z.parity = parity;
    const int axis[2] = {z.fast, z.slow};
    for (int q = 0; q < 2; q++) {
        const int a = axis[q], on_seam = seams >> a & 1;
        z.lo[q] = on_seam ? n[a] - 1 : 0;
        z.hi[q] = on_seam ? n[a] : n[a] - seam[a];
    }
    z.per_row = (z.hi[0] - z.lo[0] + 1) / 2;
    z.lines = z.per_row * (z.hi[1] - z.lo[1]);
    return z;
}

// The first point of a line, and whether it is there: a row may have one line less of a colour.
static PGI_HD inline int pgi_zebra_place(const pgi_zebra &z, int64_t line, int at[4])
{
    at[0] = at[1] = at[2] = at[3] = 0;
    if (line >= z.lines) return 0;
    const int slow = z.lo[1] + (int)(line / z.per_row), fast = z.lo[0] + 2 * (int)(line % z.per_row);
    const int shifted = fast + ((fast + slow + z.parity) & 1);
    at[z.slow] = slow;
    at[z.fast] = shifted < z.hi[0] ? shifted : z.lo[0];
    return shifted < z.hi[0];
}

// Calls body(lines of a colour) for all colours of a sweep.
template <class Body> static void pgi_each_zebra(const pgi_level *l, const int all_seams[3], int reversed, Body body)
{
    int seam[3];
    for (int a = 0; a < 3; a++) seam[a] = a != l->lines.line && all_seams[a];
    for (int step = 0; step < 8; step++) {
        const int seams = reversed ? 7 - step : step;
        if (!pgi_has_seams(seam, seams)) continue;
        for (int pass = 0; pass < 2; pass++)
            body(pgi_zebra_of(l->n, seam, l->lines.line, seams, reversed ? 1 - pass : pass));
    }
}

// The tables of all levels: the rows along the axis of the lines are the same on all of them.
static void pgi_layout_lines(pg_solver *s, const pgi_hierarchy *h, pgi_arena *arena)
{
    const int a = h->along, n = h->line[0][a]->n;
    pgi_line *const along = h->line[0][a];
    void *rows, *weights, *zeros;
    void *const rows_at = pgi_take_table(arena, (size_t)n * sizeof(pgi_row<double>), &rows);
    void *const weights_at = pgi_take_table(arena, (size_t)n * sizeof(double), &weights);
    const double *const zeros_at = (const double *)pgi_take_table(arena, (size_t)n * sizeof(double), &zeros);
    for (int l = 0; l < h->levels; l++) {
        pgi_elimination *e = &s->level[l].lines;
        int alone = 1;    // no columns beside that couple
        for (int q = 0; q < 3; q++) alone = alone && (q == a || h->line[l][q]->n == 1);
        e->line = a;
        e->periodic = along->periodic;
        e->singular = alone && pgi_line_singular(along);
        e->scale = 1;
        e->volume = pgi_line_volume(along);
        e->lambda[a] = zeros_at;
        pgi_axis_fill(&e->rows, along, s->work.beta, (pgi_row<double> *)rows, (double *)weights, rows_at, weights_at);
        for (int q = 0; q < 3; q++) {
            const pgi_line *other = h->line[l][q];
            void *host;
            if (q == a) continue;
            e->lambda[q] = (const double *)pgi_take_table(arena, (size_t)other->n * sizeof(double), &host);
            for (int i = 0; i < other->n && host; i++) {
                double row[4];
                pgi_line_row(other, i, row);
                ((double *)host)[i] = s->work.beta * row[3];
            }
        }
    }
}

// Room for the marks of the lines of a colour on the GPU, for tiles of lines on the CPU.
static void pgi_layout_line_work(pg_solver *s, const pgi_hierarchy *h, pgi_arena *arena)
{
    const int n = h->line[0][h->along]->n;
    int64_t bytes = 0, most = 1;
    for (int l = 0; l < h->levels; l++) {
        const int64_t lines = s->level[l].points / n / 2 + s->level[l].n[1] + s->level[l].n[2] + 1;
#if PGI_GPU
        pgi_elimination *e = &s->level[l].lines;
        if (s->cuda)
            pgi_cut_lines(s, e, lines, PGI_LOG_PAIRS + 1,
                          [](const pgi_elimination &d) { return pgi_transpose_bytes(d) + pgi_shared_bytes(d); });
        if (s->cuda && pgi_marks_of(*e, lines) > bytes) bytes = pgi_marks_of(*e, lines);
#endif
        if (lines > most) most = lines;
    }
    pgi_direct *d = &s->direct;
    if (!s->cuda) {
        d->slot_bytes = (size_t)n * PGI_TILE * sizeof(double) + (size_t)(n / PGI_LINE_BLOCK + 1) * 2 * sizeof(double);
        d->slot_bytes = (d->slot_bytes + PGI_ALIGN - 1) / PGI_ALIGN * PGI_ALIGN;
        for (d->slots = 1; d->slots < PGI_SLOTS && d->slots * PGI_TILE * 8 < most;) d->slots++;
        bytes = (int64_t)(d->slots * d->slot_bytes);
    }
    char *const block = (char *)pgi_take_block(arena, (size_t)bytes);
    d->buffer = block;
    for (int l = 0; l < h->levels; l++) s->level[l].lines.marks = (double *)block;
}

// All lines of a colour are solved for, tile by tile; they do not couple, so tiles may run at the same time.
template <class T>
static void pgi_cpu_relax_lines(pg_solver *s, const pgi_level *l, pgi_grid gu, pgi_rhs rhs, double omega, int reversed)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const pgi_elimination &e = l->lines;
    const int seam[3] = {b.axis[0].seam, b.axis[1].seam, b.axis[2].seam}, n = l->n[e.line];
    const double alpha = b.state->alpha;
    const T mean = pgi_mean_of<T>(rhs, b.state), *const f = pgi_data<T>(rhs.f);
    T *const u = pgi_data<T>(gu);
    const pgi_direct &d = s->direct;
    pgi_each_zebra(l, seam, reversed, [&](const pgi_zebra &z) {
        const int64_t tiles = (z.lines + PGI_TILE - 1) / PGI_TILE;
        PGI_OMP(omp parallel for schedule(static) num_threads(pgi_cpu_threads(l, l->points)))
        for (int slot = 0; slot < d.slots; slot++)
            for (int64_t tile = slot; tile < tiles; tile += d.slots) {
                double *const x = (double *)(d.buffer + (size_t)slot * d.slot_bytes);
                const pgi_column c = {PGI_TILE, 1, x + (int64_t)n * PGI_TILE};
                int place[PGI_TILE][4], inside[PGI_TILE], resonant;
                for (int q = 0; q < PGI_TILE; q++) inside[q] = pgi_zebra_place(z, tile * PGI_TILE + q, place[q]);
                for (int k = 0; k < n; k++)
                    for (int q = 0; q < PGI_TILE; q++) {
                        place[q][e.line] = k;
                        if (inside[q])
                            x[k * PGI_TILE + q] = (double)pgi_residual_point(b, rhs, f, mean, u, gu.sj, gu.sk,
                                                                             place[q][0], place[q][1], place[q][2]);
                    }
                for (int q = 0; q < PGI_TILE; q++)
                    if (inside[q]) {
                        place[q][e.line] = 0;
                        pgi_cpu_line(e, pgi_column_shift(e, alpha, place[q]), alpha, x + q, c, &resonant);
                    }
                for (int k = 0; k < n; k++)
                    for (int q = 0; q < PGI_TILE; q++) {
                        place[q][e.line] = k;
                        if (inside[q]) u[pgi_offset(place[q], gu)] += (T)(omega * x[k * PGI_TILE + q]);
                    }
            }
    });
}

#if PGI_GPU
// A row of all parts of a tile: of each thread a pair of columns, and apart, for each row of four pairs or more, one
// column beside. Eight pairs of f64 side by side are whole lines of the cache: with four a sweep of 512^3 takes 3.9 ms,
// not 2.4.
enum { PGI_TILE_PITCH = 2 * PGI_LINE_THREADS, PGI_BESIDE_PITCH = PGI_LINE_THREADS >> PGI_LOG_PAIRS };

// How the lines of a colour are spread over blocks: tiles of pairs of columns, one of each colour, and rows of them.
struct pgi_zebra_tiles {
    int log_pairs, along;    // pairs of a row of a tile, tiles of a row of the grid
};

// Shared memory of a block: the pairs, then the columns beside and, in their place once the residuals are there, the
// exchange of the parts, then the rows. The first cache has what is left, and values on their way need room there: with
// 60 KB of it, not 92, a sweep of 512^3 in f64 takes 2.4 ms, not 2.2.
static PGI_HD inline int pgi_beside_bytes(const pgi_elimination &d, int element)
{
    const int beside = PGI_KEPT * PGI_BESIDE_PITCH * element, exchange = pgi_exchange_bytes(d);
    return beside > exchange ? beside : exchange;
}
static int pgi_pairs_bytes(const pgi_elimination &d, int element)
{
    return PGI_KEPT * PGI_TILE_PITCH * element + pgi_beside_bytes(d, element) + pgi_rows_bytes(d);
}

// A thread's line of a tile. Of the four lines beside it one is its partner in the pair, one belongs to the pair
// beside, one is in the other of two rows, and one always outside. Where the domain ends, a line stands for itself.
template <class T> struct pgi_zebra_line {
    T *pair;
    int64_t step;                   // from row to row
    int at[4], exists, inside;      // the line's first point; whether the pair and the line are there
    int own, whole;                 // the line's place in the pair; the pair is one word
    int beside, pitch, opposite;    // in the tile: of the pair beside, and from row to row; of the other row
    int lone;                       // what is beside is fetched apart
    int64_t partner, outer, far;    // from the pair to what its other place holds; to the line outside; beside
    pgi_row<T> x, y;                // x: of partner and beside; y: of opposite and outer
};
template <class T> static __device__ inline pgi_zebra_line<T> pgi_zebra_line_of(const pgi_elimination &d,
                                                                                const pgi_box<T> &b, const pgi_grid &gu,
                                                                                const pgi_zebra &z,
                                                                                const pgi_zebra_tiles &tiles, int line)
{
    const int pairs = 1 << tiles.log_pairs, column = line & (pairs - 1), row = line >> tiles.log_pairs,
              tile = (int)(blockIdx.x % (unsigned)tiles.along), rows = 1 << (d.log_wide - tiles.log_pairs);
    const int lead = 2 * (tile * pairs + column), j = (int)(blockIdx.x / (unsigned)tiles.along) * rows + row;
    const int64_t across = z.slow == 1 ? gu.sj : gu.sk;
    pgi_zebra_line<T> l;
    l.step = d.line == 1 ? gu.sj : gu.sk;
    l.exists = lead < z.hi[0] && j < z.hi[1];
    l.own = (lead + j + z.parity) & 1;
    l.inside = l.exists && lead + l.own < z.hi[0];
    const int i = l.inside ? lead + l.own : 0, slow = l.inside ? j : 0, me = 2 * (int)threadIdx.x + l.own;
    const int back = row & 1;    // the other row is below
    const int below = pgi_below(b.axis[0], i), above = pgi_above(b.axis[0], i);
    const int south = pgi_below(b.axis[z.slow], slow), north = pgi_above(b.axis[z.slow], slow);
    const int next = l.own ? above : below, other = back ? south : north;
    l.pair = pgi_data<T>(gu) + (l.exists ? lead + j * across : 0);
    l.partner = lead + 1 < b.axis[0].n ? 1 : l.inside && !l.own ? above : 0;
    l.whole = l.partner == 1 && ((uintptr_t)l.pair | (uintptr_t)(l.step * (int64_t)sizeof(T))) % (2 * sizeof(T)) == 0;
    l.at[0] = i, l.at[1] = z.slow == 1 ? slow : 0, l.at[2] = z.slow == 2 ? slow : 0, l.at[3] = 0;
    const int in_tile = l.own ? next == 1 && column + 1 < pairs && i + 1 < z.hi[0] : next == -1 && column > 0;
    l.lone = next != 0 && !in_tile;
    l.beside = l.lone ? PGI_KEPT * PGI_TILE_PITCH + ((int)threadIdx.x >> tiles.log_pairs) : me + next;
    l.pitch = l.lone ? PGI_BESIDE_PITCH : PGI_TILE_PITCH;
    l.far = l.own + next;
    l.opposite = other == 0 ? me : me + (back ? -2 : 2) * pairs;
    l.outer = l.own + (back ? north : south) * across;
    const pgi_row<T> x = pgi_row_of(b.axis[0], i), y = pgi_row_of(b.axis[z.slow], slow);
    l.x = {l.own ? x.lower : x.upper, l.own ? x.upper : x.lower, x.reaction};
    l.y = {back ? y.lower : y.upper, back ? y.upper : y.lower, y.reaction};
    return l;
}

// Both columns of the pairs come to shared memory, where the threads beside find them, and for each row of pairs the
// one column beside it that is needed.
template <class T> static __device__ inline void pgi_fetch_pairs(const pgi_zebra_line<T> &l, const pgi_held &p, T *tile)
{
    const T *const from = l.pair + p.first * l.step;
    T *const to = tile + 2 * threadIdx.x;
    if (l.exists && l.whole) {
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++)
            if (p.has(q)) pgi_copy_async<2 * sizeof(T), 1>(to + q * PGI_TILE_PITCH, from + q * l.step);
    } else if (l.exists) {
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++) {
            if (!p.has(q)) continue;
            pgi_copy_async<sizeof(T), 0>(to + q * PGI_TILE_PITCH, from + q * l.step);
            pgi_copy_async<sizeof(T), 0>(to + q * PGI_TILE_PITCH + 1, from + q * l.step + l.partner);
        }
    }
    if (l.inside && l.lone) {
        PGI_UNROLLED
        for (int q = 0; q < PGI_KEPT; q++)
            if (p.has(q))
                pgi_copy_async<sizeof(T), 0>(tile + l.beside + q * PGI_BESIDE_PITCH, from + q * l.step + l.far);
    }
    pgi_copy_commit();
}

// The residuals of a part.
template <class T> static __device__ inline void pgi_zebra_residual(const pgi_elimination &d, const pgi_box<T> &b,
                                                                    const pgi_rhs &rhs, const pgi_zebra_line<T> &l,
                                                                    const pgi_held &p, const pgi_kept_row *rows,
                                                                    T *tile, double r[PGI_KEPT])
{
    enum { KEPT = PGI_KEPT, PITCH = PGI_TILE_PITCH };
    const int64_t f_step = d.line == 1 ? rhs.f.sj : rhs.f.sk;
    const T *const outside = l.pair + p.first * l.step + l.outer;
    const T *const f = pgi_data<T>(rhs.f) + pgi_offset(l.at, rhs.f) + p.first * f_step;
    const T mean = pgi_mean_of<T>(rhs, b.state), alpha = (T)b.state->alpha + l.x.reaction + l.y.reaction;
    T right[KEPT], outer[KEPT];
    pgi_fetch_pairs(l, p, tile);
    PGI_UNROLLED
    for (int q = 0; q < KEPT; q++)
        if (l.inside && p.has(q)) right[q] = pgi_fetch(f + q * f_step);
    PGI_UNROLLED
    for (int q = 0; q < KEPT; q++)
        if (l.inside && p.has(q)) outer[q] = pgi_fetch(outside + q * l.step);
    pgi_copy_wait<0>();
    __syncthreads();
    if (!l.inside) return;

    const int me = 2 * (int)threadIdx.x + l.own;
    // Parts are a ring: the row before a part is the last one of the part before, the row behind it the next one's
    // first.
    const int wide = 2 << d.log_wide, all = wide << d.log_parts, before = me < wide ? me + all - wide : me - wide,
              behind = me + wide < all ? me + wide : me + wide - all, behind_part = behind >> (d.log_wide + 1),
              begin = KEPT - (d.rows.n >> d.log_parts) - (behind_part < (d.rows.n & ((1 << d.log_parts) - 1)));
    const T first = tile[before + (KEPT - 1) * PITCH], last = tile[behind + begin * PITCH];
    const pgi_complex<T> *const mine = (const pgi_complex<T> *)tile + threadIdx.x;
    T down = first;
    pgi_complex<T> pair = mine[p.begin * (PITCH / 2)];
    PGI_UNROLLED
    for (int q = 0; q < KEPT; q++) {
        const T *const plane = tile + q * PITCH;
        const T here = l.own ? pair.y : pair.x, partner = l.own ? pair.x : pair.y;
        if (q + 1 < KEPT && p.has(q)) pair = mine[(q + 1) * (PITCH / 2)];
        const T up = q + 1 < KEPT ? (l.own ? pair.y : pair.x) : last;
        const pgi_row<T> z = {(T)rows[q].lower, (T)rows[q].upper, (T)rows[q].reaction};
        const T sum = pgi_stencil(l.x, l.y, z, alpha + z.reaction, here, partner, tile[l.beside + q * l.pitch],
                                  plane[l.opposite], outer[q], down, up);
        r[q] = p.has(q) ? (double)(right[q] - mean - sum) : 0;
        if (p.has(q)) down = here;
    }
}

// Adds what boundary data give to the residuals of a line that touches faces. Rare, so apart.
template <class T> static __device__ inline void pgi_add_line_faces(const pgi_box<T> &b, const pgi_rhs &rhs, int line,
                                                                    const int at[4], const pgi_held &p,
                                                                    double r[PGI_KEPT])
{
    const unsigned mask = pgi_face_mask(rhs, b.state), along = 3u << 2 * line;
    const unsigned touched = mask & ~along &
                             (pgi_end_bits(at[0], b.axis[0].n) | pgi_end_bits(at[1], b.axis[1].n) << 2 |
                              pgi_end_bits(at[2], b.axis[2].n) << 4);
    if (!touched && !(mask & along)) return;
    PGI_UNROLLED
    for (int q = 0; q < PGI_KEPT; q++) {
        const int k = p.first + q;
        const unsigned here = touched | (mask & pgi_end_bits(k, b.axis[line].n) << 2 * line);
        if (p.has(q) && here)
            r[q] += (double)pgi_face_terms<T>(rhs.faces, b.state, here, at[0], line == 1 ? k : at[1],
                                              line == 2 ? k : at[2]);
    }
}

// Adds the corrections of a part. Both columns of a pair are written where they are one word, so that memory gets whole
// sectors: the other one as it is, which nobody changes meanwhile.
template <class T> static __device__ inline void pgi_store_pairs(const pgi_zebra_line<T> &l, const pgi_held &p,
                                                                 const T *tile, double omega, const double r[PGI_KEPT])
{
    const pgi_complex<T> *const pairs = (const pgi_complex<T> *)tile + threadIdx.x;
    T *const to = l.pair + p.first * l.step;
    PGI_UNROLLED
    for (int q = 0; q < PGI_KEPT; q++) {
        if (!l.inside || !p.has(q)) continue;
        pgi_complex<T> pair = pairs[q * (PGI_TILE_PITCH / 2)];
        (l.own ? pair.y : pair.x) += (T)(omega * r[q]);
        if (l.whole)
            pgi_store_once((pgi_complex<T> *)(to + q * l.step), pair);
        else
            to[q * l.step + l.own] = l.own ? pair.y : pair.x;
    }
}

// The lines of a colour, for which no other line of the colour counts.
template <class T> static __global__ void __launch_bounds__(PGI_LINE_THREADS)
    pgi_relax_lines_kernel(const __grid_constant__ pgi_elimination d, const __grid_constant__ pgi_box<T> b,
                           const __grid_constant__ pgi_grid gu, const __grid_constant__ pgi_rhs rhs, double omega,
                           const __grid_constant__ pgi_zebra z, const __grid_constant__ pgi_zebra_tiles tiles)
{
    PGI_UNLESS_DONE(b.state);
    PGI_DYNAMIC_SHARED(T, tile);
    double *const exchange = (double *)(tile + PGI_KEPT * PGI_TILE_PITCH);
    const pgi_held p = pgi_part_of(d);
    const pgi_kept_row *const rows =
        pgi_rows_to_shared(d, p, (double2 *)((char *)exchange + pgi_beside_bytes(d, sizeof(T))));
    pgi_await();
    const pgi_zebra_line<T> l = pgi_zebra_line_of(d, b, gu, z, tiles, p.line);
    const double mu = pgi_column_shift(d, b.state->alpha, l.at);
    double r[PGI_KEPT];
    pgi_zebra_residual(d, b, rhs, l, p, rows, tile, r);
    if (l.inside) pgi_add_line_faces(b, rhs, d.line, l.at, p, r);
    __syncthreads();    // the columns beside have been read
    pgi_solve_lines<0>(d, p, rows, mu, l.inside, d.singular, exchange, r);
    pgi_store_pairs(l, p, tile, omega, r);
}

// The lines of a colour, whatever they are beside: those along x, which come and go by neighbouring rows and are turned
// in shared memory between, and the few at the seams of periodic axes.
template <class T> static __global__ void __launch_bounds__(PGI_LINE_THREADS)
    pgi_relax_any_lines_kernel(const __grid_constant__ pgi_elimination d, const __grid_constant__ pgi_box<T> b,
                               const __grid_constant__ pgi_grid gu, const __grid_constant__ pgi_rhs rhs, double omega,
                               const __grid_constant__ pgi_zebra z)
{
    PGI_UNLESS_DONE(b.state);
    PGI_DYNAMIC_SHARED(double, transposed);
    double *const exchange = transposed + pgi_transpose_bytes(d) / sizeof(double);
    const int64_t line = (int64_t)blockIdx.x << d.log_wide, step = d.line == 0 ? 1 : d.line == 1 ? gu.sj : gu.sk;
    const pgi_held part = pgi_part_of(d), own = d.line == 0 ? pgi_comb_of(d) : part;
    const int pitch = pgi_transpose_pitch(d.rows.n);
    int at[4], from[4];
    const pgi_kept_row *const rows = pgi_rows_to_shared(d, part, (double2 *)((char *)exchange + pgi_exchange_bytes(d)));
    const int inside = pgi_zebra_place(z, line + part.line, at), there = pgi_zebra_place(z, line + own.line, from);
    pgi_await();
    const T mean = pgi_mean_of<T>(rhs, b.state), *const f = pgi_data<T>(rhs.f);
    T *const u = pgi_data<T>(gu), *const to = u + pgi_offset(from, gu);
    double *const mine = transposed + own.line * pitch, r[PGI_KEPT];
    const int begin = own.first + own.begin * own.step, end = own.first + own.end * own.step;
    for (int k = begin; k < end && there; k += own.step)
        mine[k] = (double)pgi_residual_point(b, rhs, f, mean, (const T *)u, gu.sj, gu.sk, d.line == 0 ? k : from[0],
                                             d.line == 1 ? k : from[1], d.line == 2 ? k : from[2]);
    __syncthreads();
    pgi_take(transposed, pitch, part, r);
    pgi_solve_lines<0>(d, part, rows, pgi_column_shift(d, b.state->alpha, at), inside, d.singular, exchange, r);
    pgi_put(transposed, pitch, part, r);
    __syncthreads();
    for (int k = begin; k < end && there; k += own.step) to[k * step] += (T)(omega * mine[k]);
}

namespace
{
// Residuals along a line. Their code is long: of a block some are worked out together, for their loads to be under way
// at the same time, and wait in memory for the others.
template <class T> struct pgi_line_residuals {
    enum { TOGETHER = 4 };
    const pgi_box<T> &b;
    const pgi_rhs &rhs;
    const T *f, *u;
    T mean;
    int64_t sj, sk;
    int line, i, j, k;    // the axis, and the line's first point
    __device__ T operator()(int at) const
    {
        return pgi_residual_point(b, rhs, f, mean, u, sj, sk, line == 0 ? at : i, line == 1 ? at : j,
                                  line == 2 ? at : k);
    }
    __device__ void block(int begin, int last, T value[PGI_LINE_BLOCK]) const
    {
        PGI_ROLLED
        for (int first = 0; first < PGI_LINE_BLOCK; first += TOGETHER) {
            PGI_UNROLLED
            for (int q = first; q < first + TOGETHER; q++) value[q] = begin + q <= last ? (*this)(begin + q) : (T)0;
        }
    }
};
}    // namespace

// Lines with long parts: the other grid of the level holds them under elimination, as u is needed to the end.
template <class T> static __global__ void __launch_bounds__(PGI_BLOCK)
    pgi_relax_long_lines_kernel(const __grid_constant__ pgi_elimination d, pgi_box<T> b, pgi_grid gu, pgi_grid spare,
                                pgi_rhs rhs, double omega, pgi_zebra z)
{
    PGI_UNLESS_DONE(b.state);
    __shared__ double exchange[4 * (PGI_BLOCK + PGI_BLOCK / 32)];
    const int64_t line = ((int64_t)blockIdx.x << d.log_wide) + ((int)threadIdx.x & ((1 << d.log_wide) - 1));
    int at[4];
    const int inside = pgi_zebra_place(z, line, at);
    pgi_await();
    const T mean = pgi_mean_of<T>(rhs, b.state), *const f = pgi_data<T>(rhs.f);
    T *const u = pgi_data<T>(gu), *const x = pgi_data<T>(spare) + pgi_offset(at, spare);
    const int64_t u_stride = d.line == 0 ? 1 : d.line == 1 ? gu.sj : gu.sk, u_at = pgi_offset(at, gu);
    const pgi_column c = pgi_part_column(d, d.line == 0 ? 1 : d.line == 1 ? spare.sj : spare.sk, line, z.lines);
    const pgi_line_residuals<T> residual = {b, rhs, f, u, mean, gu.sj, gu.sk, d.line, at[0], at[1], at[2]};
    pgi_solve_long_lines<0>(d, pgi_column_shift(d, b.state->alpha, at), inside, x, c, exchange, residual,
                            [&](int k, double v) { u[u_at + k * u_stride] += (T)(omega * v); });
}

// As pairs of columns side by side and, for neighbours to share them, rows of these.
static pgi_zebra_tiles pgi_tiles_of(const pgi_elimination &d, const pgi_zebra &z)
{
    pgi_zebra_tiles t = {d.log_wide, 0};
    if (z.hi[1] > 1) t.log_pairs--;
    while (t.log_pairs > PGI_LOG_PAIRS && z.per_row <= 1 << (t.log_pairs - 1)) t.log_pairs--;
    t.along = (int)((z.per_row + (1 << t.log_pairs) - 1) >> t.log_pairs);
    return t;
}

template <class T>
static void pgi_cuda_relax_lines(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, double omega, int reversed)
{
    const pgi_box<T> &b = pgi_box_of(l, T());
    const pgi_elimination &d = l->lines;
    const int seam[3] = {b.axis[0].seam, b.axis[1].seam, b.axis[2].seam}, pairs_bytes = pgi_pairs_bytes(d, sizeof(T)),
              any_bytes = pgi_transpose_bytes(d) + pgi_shared_bytes(d);
    const dim3 threads(1u << (d.log_parts + d.log_wide));
    if (d.kept) {
        PGI_CUDA(s, cudaFuncSetAttribute(pgi_relax_any_lines_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         any_bytes));
        if (pairs_bytes <= s->shared_limit)
            PGI_CUDA(s, cudaFuncSetAttribute(pgi_relax_lines_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             pairs_bytes));
    }
    pgi_each_zebra(l, seam, reversed, [&](const pgi_zebra &z) {
        const int64_t blocks = (z.lines + (1 << d.log_wide) - 1) >> d.log_wide;
        if (blocks == 0) return;
        if (!d.kept) {
            PGI_LAUNCH_EARLY(s, blocks, threads, 0, pgi_relax_long_lines_kernel<T>, d, b, u, pgi_other_grid(l, u), rhs,
                             omega, z);
        } else if (d.line == 0 || z.lo[0] + z.lo[1] > 0 || pairs_bytes > s->shared_limit ||
                   pgi_tiles_of(d, z).log_pairs < PGI_LOG_PAIRS) {
            PGI_LAUNCH_EARLY(s, blocks, threads, any_bytes, pgi_relax_any_lines_kernel<T>, d, b, u, rhs, omega, z);
        } else {
            const pgi_zebra_tiles t = pgi_tiles_of(d, z);
            const int rows = 1 << (d.log_wide - t.log_pairs);
            PGI_LAUNCH_EARLY(s, (int64_t)t.along * ((z.hi[1] + rows - 1) / rows), threads, pairs_bytes,
                             pgi_relax_lines_kernel<T>, d, b, u, rhs, omega, z, t);
        }
    });
}
#endif

// -------------------------------------------------------------------------------------------------------------------
// >>layout  Where everything lies in the workspace.
// -------------------------------------------------------------------------------------------------------------------

// See pgi_cpu_threads. The products of the exact solver are work for more threads than their points are.
static int64_t pgi_team(const pg_solver *s)
{
    const pgi_level *last = &s->level[s->levels - 1];
    int64_t longest = 1, work = s->level[0].points * (s->is_direct ? s->work.batch : 1);
    for (int a = 0; a < 3; a++) longest = last->n[a] > longest ? last->n[a] : longest;
    const int64_t products = last->points * longest / 8;
    if ((s->direct.exact || (s->multigrid && !s->by_lines)) && products > work) work = products;
    return work > PGI_SERIAL ? work / PGI_SERIAL : 1;
}

// The box and the transfers of level l.
static void pgi_layout_level(pg_solver *s, const pgi_hierarchy *h, pgi_arena *arena, int l)
{
    const pg_desc *d = &s->work;
    const int single = d->flags & (PG_F32 | PG_MIXED) ? 1 : 0, symmetric = d->flags & PG_SYMMETRIC ? 1 : 0;
    pgi_level *level = &s->level[l];
    level->points = 1;
    for (int a = 0; a < 3; a++) {
        level->n[a] = h->line[l][a]->n;
        level->points *= level->n[a];
        level->coarsened[a] = h->coarsened[l][a];
    }
    if (single)
        pgi_layout_box(arena, &level->box32, h->line[l], d->beta);
    else
        pgi_layout_box(arena, &level->box64, h->line[l], d->beta);
    // Cells: averages do best where two or three axes are coarsened, the adjoint where one is (factors 0.03 and 0.19 in
    // 1D).
    const int planar = (level->n[0] > 1) + (level->n[1] > 1) + (level->n[2] > 1) > 1;
    const int alone = level->coarsened[0] + level->coarsened[1] + level->coarsened[2] == 1;
    for (int a = 0; a < 3 && l + 1 < h->levels; a++) {
        pgi_line *fine = h->line[l][a], *coarse = h->line[l + 1][a];
        if (single)
            pgi_layout_transfer(arena, &level->transfer32.axis[a], fine, coarse, symmetric || alone, planar);
        else
            pgi_layout_transfer(arena, &level->transfer64.axis[a], fine, coarse, symmetric || alone, planar);
    }
}

// The tables of all levels. host_faces: where those of boundary data are filled; the last one is the outer level's.
static void pgi_layout_tables(pg_solver *s, const pgi_hierarchy *h, pgi_arena *arena,
                              pgi_faces *host_faces[PGI_MAX_LEVELS + 1])
{
    const pg_desc *d = &s->work;
    const int single = d->flags & (PG_F32 | PG_MIXED) ? 1 : 0;
    for (int l = 0; l < h->levels; l++) pgi_layout_level(s, h, arena, l);
    if (s->mixed) pgi_layout_box(arena, &s->outer.box64, h->line[0], d->beta);
    for (int l = 0; l <= h->levels; l++) {
        void *host;
        (l < h->levels ? &s->level[l] : &s->outer)->faces =
            (pgi_faces *)pgi_take_table(arena, sizeof(pgi_faces), &host);
        host_faces[l] = (pgi_faces *)host;
    }
    if (s->by_lines) pgi_layout_lines(s, h, arena);
    const int exact = s->direct.exact || (s->multigrid && !s->by_lines);
    const pgi_hierarchy *const solved = h->near ? h->near : h;
    if (exact && single)
        pgi_layout_modes(arena, solved, d->beta, &s->level[h->levels - 1].modes32);
    else if (exact)
        pgi_layout_modes(arena, solved, d->beta, &s->level[h->levels - 1].modes64);
#if PGI_DIRECT
    if (s->has_direct && single) pgi_layout_direct_tables<pgi_narrowest>(s, solved, arena);
    if (s->has_direct && !single) pgi_layout_direct_tables<double>(s, solved, arena);
    if (h->near && d->flags & PG_F32) pgi_layout_ratio(s, &s->ratio.box32, h, arena);
    if (h->near && !(d->flags & PG_F32)) pgi_layout_ratio(s, &s->ratio.box64, h, arena);
#endif
}

// The state of the solve, and the sums of reductions.
static void pgi_layout_state(pg_solver *s, pgi_arena *arena)
{
    s->state = (pgi_state *)pgi_take_block(arena, sizeof(pgi_state));
    s->reported = s->work.batch > 1 ? (pgi_state *)pgi_take_block(arena, sizeof(pgi_state)) : s->state;
    // Tiles of large grids have 2000 points at least
    s->partials_capacity = !s->cuda                                        ? (int64_t)PGI_CHUNKS
                           : s->level[0].points / 2048 > PGI_REDUCE_BLOCKS ? s->level[0].points / 2048
                                                                           : (int64_t)PGI_REDUCE_BLOCKS;
    const size_t sums = s->krylov ? 4 + PGI_DOTS : 4;
    s->partials = (double *)pgi_take_block(arena, sums * sizeof(double) * (size_t)s->partials_capacity);
}

// The grids of all levels. u and f of the finest one are the caller's, but with PG_MIXED.
static void pgi_layout_grids(pg_solver *s, const pgi_hierarchy *h, pgi_arena *arena)
{
    const pg_desc *d = &s->work;
    const size_t element = d->flags & (PG_F32 | PG_MIXED) ? sizeof(float) : sizeof(double);
    // The iterate of a coarse level is in u while coarser ones are at work, so t can be shared by every second level.
    pgi_grid scratch[3] = {pgi_no_grid(), pgi_no_grid(), pgi_no_grid()};
    if (s->has_direct) pgi_layout_direct(s, arena);
    if (s->by_lines) pgi_layout_line_work(s, h, arena);
    if (s->multigrid || s->direct.exact || (d->flags & PG_JACOBI) || (s->cuda && !s->is_direct && !s->krylov))
        scratch[0] = pgi_take_grid(arena, s->level[0].n, element);
    if (s->cuda && h->exact && !pgi_fits_blocks(s->level[0].n[0], s->level[0].n[1], s->level[0].n[2]))
        s->level[0].spare = pgi_take_grid(arena, s->level[0].n, element);
    const int smoothed = h->levels - !s->by_lines;    // levels: the exact solver works in u and f
    for (int q = 1; q < 3 && q < smoothed; q++) scratch[q] = pgi_take_grid(arena, s->level[q].n, element);
    for (int l = 0; l < h->levels; l++) {
        pgi_level *level = &s->level[l];
        const int own = l > 0 || s->mixed || (s->krylov && s->multigrid);
        if (own) level->u = pgi_take_grid(arena, level->n, element);
        if (own) level->f = pgi_take_grid(arena, level->n, element);
        level->t = l > 0 && l >= smoothed ? pgi_no_grid() : pgi_grid_at(scratch[l > 0 ? 2 - l % 2 : 0].base, level->n);
        level->box32.state = level->box64.state = s->state;
        for (int q = 0; q < 6; q++) {
            if (!own || !(d->flags & PG_FMG) || h->line[l][q / 2]->periodic) continue;
            const size_t count = (size_t)level->n[pgi_plane_axis(q, 0)] * (size_t)level->n[pgi_plane_axis(q, 1)];
            level->plane[q] = pgi_take_block(arena, count * element);
        }
    }
}

// The outer level, in the precision of the caller's u and f, which are reached through the state.
static void pgi_layout_outer(pg_solver *s)
{
    const pg_desc *d = &s->work;
    char *const state = (char *)s->state;
    const pgi_box<double> outer_box = s->outer.box64;
    const pgi_faces *const outer_faces = s->outer.faces;
    const pgi_grid callers_u = {state ? state + offsetof(pgi_state, u) : NULL, 1, d->stride_u[0], d->stride_u[1],
                                d->stride_u[2]};
    const pgi_grid callers_f = {state ? state + offsetof(pgi_state, f) : NULL, 1, d->stride_f[0], d->stride_f[1],
                                d->stride_f[2]};
    s->outer = s->level[0];
    s->outer.u = callers_u;
    s->outer.f = callers_f;
    if (s->mixed) {
        s->outer.box64 = outer_box;
        s->outer.box64.state = s->state;
        s->outer.faces = outer_faces;
        memset(s->outer.plane, 0, sizeof s->outer.plane);
    }
}

// Device copies of host arrays take the place of the caller's.
static void pgi_layout_staging(pg_solver *s, const pgi_hierarchy *h, pgi_arena *arena)
{
    const size_t element = pgi_element(s->work.flags), batch = (size_t)s->work.batch;
    const int *const n = s->outer.n;
    const int64_t points = s->outer.points, plane = (int64_t)n[0] * n[1];
    pgi_grid *const stage[2] = {&s->stage_u, &s->stage_f}, *const outer[2] = {&s->outer.u, &s->outer.f};
    for (int q = 0; q < 2; q++) {
        const pgi_grid g = {pgi_take_block(arena, batch * (size_t)points * element), 0, n[0], plane, points};
        *stage[q] = g;
        outer[q]->sj = g.sj, outer[q]->sk = g.sk, outer[q]->problem = g.problem;
    }
    for (int q = 0; q < 6; q++) {
        const size_t count = (size_t)n[pgi_plane_axis(q, 0)] * (size_t)n[pgi_plane_axis(q, 1)];
        s->stage_face[q] = h->line[0][q / 2]->periodic ? NULL : pgi_take_block(arena, batch * count * element);
    }
}

// The vectors that a Krylov method keeps, as bits.
static unsigned pgi_krylov_vectors(const pg_solver *s)
{
    const unsigned flags = s->work.flags;
    const int none = flags & PG_PRECOND_NONE ? 1 : 0, diagonal = flags & PG_PRECOND_DIAGONAL ? 1 : 0;
    const int own_result = !none && (!s->multigrid || s->mixed),
              inverse = flags & (PG_PRECOND_AINV | PG_PRECOND_AINV2) ? 1 : 0;
    unsigned all = 1u << PGI_R | 1u << PGI_P | (unsigned)own_result << PGI_M | (unsigned)inverse << PGI_H;
    if (flags & PG_PIPECG) {
        all |= 1u << PGI_S | 1u << PGI_W | 1u << PGI_U;
        if (diagonal) all |= 1u << PGI_H;
        if (!none && !diagonal) all |= 1u << PGI_N | 1u << PGI_Z | 1u << PGI_Q;
    }
    if (flags & (PG_BICGSTAB | PG_PIPEBICGSTAB))
        all |= 1u << PGI_SHADOW | 1u << PGI_N | 1u << PGI_T | (unsigned)!none << PGI_Y;
    if (flags & PG_PIPEBICGSTAB) all |= 1u << PGI_S | 1u << PGI_W | 1u << PGI_Z;
    return all;
}

// A cycle of the same precision has the residual as its right-hand side. Without a preconditioner y is u.
static void pgi_layout_krylov(pg_solver *s, pgi_arena *arena)
{
    const size_t element = pgi_element(s->work.flags);
    const unsigned all = pgi_krylov_vectors(s);
    for (int q = 0; q < PGI_KRYLOV_ALL; q++) {
        const int shared = q == PGI_R && s->multigrid && !s->mixed;
        s->vector[q] = shared         ? s->level[0].f
                       : all >> q & 1 ? pgi_take_grid(arena, s->outer.n, element)
                       : q == PGI_Y   ? s->outer.u
                                      : pgi_no_grid();
    }
}

// Lays out the workspace from its begin: tables, then state and sums, then grids. Run twice: to measure, and to make.
// Returns the bytes of the tables; arena->used is all.
static size_t pgi_layout(pg_solver *s, const pgi_hierarchy *h, pgi_arena *arena)
{
    pgi_faces *host_faces[PGI_MAX_LEVELS + 1];
    memset(s->level, 0, sizeof s->level);
    memset(&s->outer, 0, sizeof s->outer);
    s->levels = h->levels;
    pgi_layout_tables(s, h, arena, host_faces);
    const size_t table_bytes = arena->used;
    pgi_layout_state(s, arena);
    pgi_layout_grids(s, h, arena);
    pgi_layout_outer(s);
    for (int l = 0; l <= h->levels; l++) {
        const int outer = l == h->levels;
        pgi_level *const level = outer ? &s->outer : &s->level[l];
        level->team = pgi_team(s);
        if (arena->mirror)
            pgi_layout_faces(host_faces[l], level, h->line[outer ? 0 : l], s->work.beta, s->mixed && !outer);
    }
    if (s->staged) pgi_layout_staging(s, h, arena);
    if (s->krylov) pgi_layout_krylov(s, arena);
    s->ratio.points = s->level[0].points, s->ratio.team = pgi_team(s);
    s->ratio.box64.state = s->ratio.box32.state = s->state;
    if (!s->mixed && !(s->krylov && s->multigrid)) s->level[0].u = s->outer.u, s->level[0].f = s->outer.f;
    return table_bytes;
}

// -------------------------------------------------------------------------------------------------------------------
// >>ops  The tables of operations, one for each back end and precision: what the sections below call.
// -------------------------------------------------------------------------------------------------------------------

template <class T> static constexpr pgi_ops pgi_cpu_ops()
{
    pgi_ops o = {};
    o.control = pgi_cpu_control;
    o.loop = pgi_cpu_loop;
    o.fill_zero = pgi_cpu_fill_zero<T>;
    o.copy = pgi_cpu_copy<T>;
    o.subtract_shift = pgi_cpu_subtract_shift<T>;
    o.jacobi = pgi_cpu_jacobi<T>;
    o.red_black = pgi_cpu_red_black<T>;
    o.residual = pgi_cpu_residual<T>;
    o.apply = pgi_cpu_apply<T>;
    o.reduce = pgi_cpu_reduce<T>;
    o.magnitude = pgi_cpu_magnitude<T>;
    o.restrict_full = pgi_cpu_restrict_full<T>;
    o.restrict_faces = pgi_cpu_restrict_faces<T>;
    o.prolong_add = pgi_cpu_prolong_add<T>;
    o.interpolate = pgi_cpu_interpolate<T>;
    o.solve_coarsest = pgi_cpu_solve_coarsest<T>;
    o.relax = pgi_cpu_relax<T>;
    o.relax_turns = pgi_cpu_relax_turns<T>;
    o.jacobi_sweeps = pgi_cpu_jacobi_sweeps<T>;
    o.restrict_residual = pgi_cpu_restrict_residual<T>;
    o.relax_lines = pgi_cpu_relax_lines<T>;
    o.recur = pgi_cpu_recur<T>;
    o.apply_two = pgi_cpu_apply_two<T>;
#if PGI_DIRECT
    o.transform = pgi_cpu_transform<T>;
    o.eliminate = pgi_cpu_eliminate<T>;
#endif
#if PGI_F32
    if (sizeof(T) == sizeof(float)) {
        o.residual_narrow = pgi_cpu_residual_narrow;
        o.narrow_rhs = pgi_cpu_narrow_rhs;
        o.widen_add = pgi_cpu_widen_add;
    }
#endif
    return o;
}
#if PGI_GPU
template <class T> static constexpr pgi_ops pgi_cuda_ops()
{
    pgi_ops o = {};
    o.control = pgi_cuda_control;
    o.loop = pgi_cuda_loop;
    o.fill_zero = pgi_cuda_fill_zero<T>;
    o.copy = pgi_cuda_copy<T>;
    o.subtract_shift = pgi_cuda_subtract_shift<T>;
    o.jacobi = pgi_cuda_jacobi<T>;
    o.red_black = pgi_cuda_red_black<T>;
    o.residual = pgi_cuda_residual<T>;
    o.apply = pgi_cuda_apply<T>;
    o.reduce = pgi_cuda_reduce<T>;
    o.magnitude = pgi_cuda_magnitude<T>;
    o.restrict_full = pgi_cuda_restrict_full<T>;
    o.restrict_faces = pgi_cuda_restrict_faces<T>;
    o.prolong_add = pgi_cuda_prolong_add<T>;
    o.interpolate = pgi_cuda_interpolate<T>;
    o.solve_coarsest = pgi_cuda_solve_coarsest<T>;
    o.relax = pgi_cuda_relax<T>;
    o.relax_turns = pgi_cuda_relax_turns<T>;
    o.jacobi_sweeps = pgi_cuda_jacobi_sweeps<T>;
    o.restrict_residual = pgi_cuda_restrict_residual<T>;
    o.relax_lines = pgi_cuda_relax_lines<T>;
    o.recur = pgi_cuda_recur<T>;
    o.apply_two = pgi_cuda_apply_two<T>;
#if PGI_DIRECT
    o.transform = pgi_cuda_transform<T>;
    o.eliminate = pgi_cuda_eliminate<T>;
    o.small2d = pgi_cuda_small2d<T>;
#endif
#if PGI_F32
    if (sizeof(T) == sizeof(float)) {
        o.residual_narrow = pgi_cuda_residual_narrow;
        o.narrow_rhs = pgi_cuda_narrow_rhs;
        o.widen_add = pgi_cuda_widen_add;
    }
#endif
    return o;
}
#endif

static const pgi_ops *pgi_ops_of(int cuda, int single)
{
    static constexpr pgi_ops cpu64 = pgi_cpu_ops<double>();
#if PGI_F32
    static constexpr pgi_ops cpu32 = pgi_cpu_ops<float>();
#else
    static constexpr pgi_ops cpu32 = {};
#endif
#if PGI_GPU
    static constexpr pgi_ops cuda64 = pgi_cuda_ops<double>();
#if PGI_F32
    static constexpr pgi_ops cuda32 = pgi_cuda_ops<float>();
#else
    static constexpr pgi_ops cuda32 = {};
#endif
    if (cuda) return single ? &cuda32 : &cuda64;
#endif
    (void)cuda;
    return single ? &cpu32 : &cpu64;
}

// -------------------------------------------------------------------------------------------------------------------
// >>smoothing
// -------------------------------------------------------------------------------------------------------------------

// The weights of sweeps. d axes are coarsened, so the errors that smoothing must remove have eigenvalues of D^-1 A in
// [1/d, 2]. Red-black: over-relaxation pays in 2D and 3D (I. Yavneh 1996); Jacobi: the optimum 2/(1/d + 2); Chebyshev:
// reciprocal roots. Over-relaxation leaves errors in the colour that comes last; where one sweep follows the
// correction, its second colour is relaxed by less: V(2,1) on cubes of cells goes from 0.041 a cycle to 0.028, on nodes
// from 0.044 to 0.029, on squares of nodes from 0.026 to 0.020, nowhere by more than a tenth the other way.
static void pgi_choose_weights(const pg_desc *d, pgi_level *l)
{
    int dims = 0;
    for (int a = 0; a < 3; a++) dims += l->coarsened[a];
    if (dims == 0) dims = 1;
    const double red_black[4] = {1, 1, 1.2, 1.3}, lines[3] = {1, 1, 1.15}, low = 1.0 / dims, high = 2;
    l->omega[0] = l->omega[1] = pgi_evenly(d->omega > 0                 ? d->omega
                                           : d->flags & PG_SMOOTH_LINES ? lines[dims]
                                                                        : red_black[dims]);
    if (d->omega == 0 && d->nu_post == 1 && dims > 1 && !(d->flags & (PG_SMOOTH_LINES | PG_SYMMETRIC)))
        l->omega[1].second = 1.1;
    for (int post = 0; post < 2; post++) {
        const int count = post ? d->nu_post : d->nu_pre;
        double *weight = post ? l->jacobi_post : l->jacobi;
        for (int q = 0; q < PGI_MAX_SWEEPS; q++) {
            const double root =
                (high + low) / 2 +
                (high - low) / 2 * cos(3.14159265358979323846 * (2 * q + 1) / (2.0 * (count ? count : 1)));
            weight[q] = d->omega > 0 ? d->omega : 2 / (low + high);
            if (d->flags & PG_SMOOTH_CHEBYSHEV) weight[q] = 1 / root;
        }
    }
}

// What Young's over-relaxation factor and the bound of round-off need to know of the tables: the smallest eigenvalue of
// A without alpha, the step to the next one, and the largest diagonal, inside and of all rows.
static pgi_spectrum pgi_find_spectrum(const pg_desc *d, pgi_line *const line[3])
{
    pgi_spectrum spectrum = {0, DBL_MAX, 0, 0};
    for (int a = 0; a < 3; a++) {
        const double first = d->beta * pgi_line_eigenvalue(line[a], 0),
                     second = d->beta * pgi_line_eigenvalue(line[a], 1);
        double row[4], inside = 0, all = 0;
        for (int i = 0; i < line[a]->n; i = pgi_line_next(line[a], i)) {
            pgi_line_row(line[a], i, row);
            all = fmax(all, d->beta * row[3]);
            if ((i > 0 && i < line[a]->n - 1) || line[a]->n < 3) inside = fmax(inside, d->beta * row[3]);
        }
        spectrum.smallest += first;
        spectrum.next = fmin(spectrum.next, second - first);
        spectrum.diagonal += inside;
        spectrum.largest_diagonal += all;
    }
    return spectrum;
}

// Young's factor 2 / (1 + sqrt(1 - rho^2)), rho the spectral radius of Jacobi's iteration: 1 - lambda / D with the
// smallest (non-zero) eigenvalue of A and its largest diagonal. One that is next to nothing beside the diagonal counts
// as zero: with the factor that belongs to it, 2 in the end, no error would fall in less than half a million sweeps.
static double pgi_choose_sor_omega(const pgi_spectrum *spectrum, double alpha, unsigned flags)
{
    double lambda = spectrum->smallest + alpha;
    const double diagonal = spectrum->diagonal + alpha, nothing = flags & PG_F32 ? FLT_EPSILON : 1e-10;
    if (lambda <= nothing * diagonal) lambda = spectrum->next < DBL_MAX ? spectrum->next : 0;
    if (diagonal <= 0 || lambda <= 0) return 1;
    const double rho = 1 - fmin(lambda / diagonal, 1);
    return 2 / (1 + sqrt(1 - rho * rho));
}

// Brings the iterate back to u of its level.
static pgi_grid pgi_home(pg_solver *s, const pgi_level *l, pgi_grid u)
{
    if (u.base != l->u.base) s->ops->copy(s, l, u, l->u);
    return l->u;
}

// Smooths from a guess (see pgi_head). Returns where u is.
static pgi_grid pgi_smooth(pg_solver *s, const pgi_level *l, pgi_grid u, pgi_rhs rhs, int post, int count, int head,
                           const pgi_level *coarse, pgi_grid e, pgi_wanted *residual)
{
    const unsigned flags = s->desc.flags;
    const int period = post ? s->desc.nu_post : s->desc.nu_pre;
    if (s->by_lines) {
        u = s->ops->relax(s, l, u, rhs, pgi_evenly(0), 0, 0, head, coarse, e, NULL);
        for (int q = 0; q < count; q++)
            s->ops->relax_lines(s, l, u, rhs, l->omega[0].first, post && (flags & PG_SYMMETRIC));
        return u;
    }
    if (!(flags & (PG_SMOOTH_JACOBI | PG_SMOOTH_CHEBYSHEV)))
        return s->ops->relax(s, l, u, rhs, l->omega[post], post && (flags & PG_SYMMETRIC), count, head, coarse, e,
                             residual);
    u = s->ops->relax(s, l, u, rhs, pgi_evenly(0), 0, 0, head, coarse, e, NULL);
    return s->ops->jacobi_sweeps(s, l, u, rhs, post ? l->jacobi_post : l->jacobi, period > 0 ? period : 1, count);
}

// Whether the sweeps before a correction leave the iterate in the other grid.
static int pgi_smoothing_turns(const pg_solver *s, const pgi_level *l)
{
    return s->levels > 1 && !s->by_lines && !(s->desc.flags & (PG_SMOOTH_JACOBI | PG_SMOOTH_CHEBYSHEV)) &&
           s->ops->relax_turns(l, s->desc.nu_pre);
}

// -------------------------------------------------------------------------------------------------------------------
// >>multigrid
// -------------------------------------------------------------------------------------------------------------------

static pgi_rhs pgi_level_rhs(const pgi_level *l, int full)
{
    const pgi_rhs r = {l->f, full ? l->faces : NULL};
    return r;
}

static pgi_grid pgi_cycle(pg_solver *s, int l, pgi_grid u, pgi_rhs rhs, int from_zero, int visits);

// The first half of a cycle at level l, which is not the coarsest: smooths, and restricts the residual. Returns where u
// is.
static pgi_grid pgi_descend(pg_solver *s, int l, pgi_grid u, pgi_rhs rhs, int from_zero, int with_norm)
{
    const pgi_level *fine = &s->level[l];
    pgi_wanted residual = {with_norm, 0};
    u = pgi_smooth(s, fine, u, rhs, 0, s->desc.nu_pre, from_zero ? PGI_FROM_ZERO : PGI_FROM_U, fine + 1, u, &residual);
    if (l > 0) u = pgi_home(s, fine, u);    // coarser levels use t
    if (!residual.done) s->ops->restrict_residual(s, fine, u, rhs, fine + 1, with_norm);
    return u;
}

// The second half: solves for the correction on the next level, applies it and smooths.
static pgi_grid pgi_ascend(pg_solver *s, int l, pgi_grid u, pgi_rhs rhs, int visits)
{
    const pgi_level *coarse = &s->level[l + 1];
    const int again = (s->desc.flags & PG_WCYCLE) && 2 * visits <= PGI_W_VISITS && l + 2 < s->levels ? 2 : 1;
    pgi_grid e = coarse->u;
    for (int q = 0; q < again; q++) e = pgi_cycle(s, l + 1, e, pgi_rhs_of(coarse->f), q == 0, again * visits);
    return pgi_smooth(s, &s->level[l], u, rhs, 1, s->desc.nu_post, PGI_CORRECTED, coarse, e, NULL);
}

// A cycle on A u = f at level l, from a guess in grid u or from 0. visits: how often the level is visited in one cycle.
// Returns where u is.
static pgi_grid pgi_cycle(pg_solver *s, int l, pgi_grid u, pgi_rhs rhs, int from_zero, int visits)
{
    const pgi_level *level = &s->level[l];
    if (l < s->levels - 1) return pgi_ascend(s, l, pgi_descend(s, l, u, rhs, from_zero, 0), rhs, visits);
    if (s->by_lines) {
        if (from_zero) s->ops->fill_zero(s, level, u);
        s->ops->relax_lines(s, level, u, rhs, 1, 0);    // one line is left
    } else {
        s->ops->solve_coarsest(s, level, u, rhs, from_zero);
    }
    return u;
}

// Cycles at the finest level, in place.
static void pgi_cycles(pg_solver *s, pgi_rhs rhs, int from_zero, int count)
{
    pgi_grid u = s->level[0].u;
    for (int q = 0; q < count; q++) u = pgi_cycle(s, 0, u, rhs, from_zero && q == 0, 1);
    pgi_home(s, &s->level[0], u);
}

// Subtracts the mean of the solution of a singular problem.
static void pgi_centre(pg_solver *s, const pgi_ops *ops, const pgi_level *l, pgi_grid u)
{
    ops->reduce(s, l, PGI_FIELD, PGI_ONE, u, pgi_no_grid(), pgi_rhs_of(pgi_no_grid()), 0);
    ops->control(s, PGI_SET_SHIFT, 0);
    ops->subtract_shift(s, l, u);
}

// Full multigrid from level l down and up again: f and the boundary data are restricted, the coarse solution is
// interpolated cubically. Cycles at level l overwrite f of the coarser levels only when these are done with it. Begins
// in grid u of the level, and returns where u is. Restricted f of a singular problem has a mean, and the coarse
// solution drifts with it: a large constant would cost digits.
static pgi_grid pgi_fmg(pg_solver *s, int l, pgi_grid u, int full)
{
    const pgi_level *fine = &s->level[l], *coarse = fine + 1;
    const pgi_rhs rhs = pgi_level_rhs(fine, full);
    if (l == s->levels - 1) return pgi_cycle(s, l, u, rhs, 1, 1);
    s->ops->restrict_full(s, fine, fine->f, coarse, coarse->f, 1);
    if (full) s->ops->restrict_faces(s, fine, coarse);
    const pgi_grid v = pgi_fmg(s, l + 1, coarse->u, full);
    if (l == 0 && s->may_be_singular) pgi_centre(s, s->ops, coarse, v);
    s->ops->interpolate(s, fine, u, coarse, v, full, 0);
    for (int q = 0; q < s->desc.fmg_cycles; q++) u = pgi_cycle(s, l, u, rhs, 0, 1);
    return u;
}

// Full multigrid for the correction of a given u: A e = f - A u, homogeneous boundary data.
static void pgi_fmg_correction(pg_solver *s)
{
    const pgi_level *fine = &s->level[0], *coarse = fine + 1;
    const pgi_rhs rhs = pgi_level_rhs(&s->level[0], 1);
    if (s->levels > 1) {
        s->ops->residual(s, fine, fine->u, rhs, fine->t);
        s->ops->restrict_full(s, fine, fine->t, coarse, coarse->f, 1);
        s->ops->interpolate(s, fine, fine->u, coarse, pgi_fmg(s, 1, coarse->u, 0), 0, 1);
    }
    pgi_cycles(s, rhs, 0, s->desc.fmg_cycles);
}

// -------------------------------------------------------------------------------------------------------------------
// >>solve  One program for all methods. On the CPU it runs; on the GPU it is recorded once as a graph, or driven by the
// host.
// -------------------------------------------------------------------------------------------------------------------

static pgi_rhs pgi_outer_rhs(const pg_solver *s) { return pgi_level_rhs(&s->outer, 1); }

// PG_MIXED where alpha alone holds the constant, and is small: f32 has no digits left for anything beside the mean of
// f over alpha. So u is given its mean in f64, and the cycles, which find none in the residual then, run with an alpha
// that is no smaller than f32 can resolve.
static double pgi_inner_alpha(double alpha, double lowest)
{
    return alpha > 0 && alpha < lowest / 8192 ? lowest / 8192 : alpha;
}

static void pgi_lift(pg_solver *s, int first)
{
    s->outer_ops->reduce(s, &s->outer, PGI_FIELD, PGI_ONE, s->outer.u, pgi_no_grid(), pgi_rhs_of(pgi_no_grid()), 0);
    s->ops->control(s, PGI_SET_LIFT, first);
    s->outer_ops->subtract_shift(s, &s->outer, s->outer.u);
}
static void pgi_step_lift(pg_solver *s) { pgi_lift(s, 0); }
static void pgi_step_first_lift(pg_solver *s) { pgi_lift(s, 1); }

static void pgi_set_inner(pg_solver *s, int inner)
{
    if (s->may_be_singular) s->ops->control(s, PGI_SET_ALPHA, inner);
}

// PG_MIXED: u += what f32 cycles find for the residual in f. It is scaled to the middle of the range of float.
static void pgi_add_correction(pg_solver *s)
{
    const pgi_level *l = &s->level[0];
    pgi_set_inner(s, 1);
    if (s->is_direct)
        pgi_solve_direct(s, l, pgi_rhs_of(l->f), l->u);
    else
        pgi_cycles(s, pgi_rhs_of(l->f), 1, s->desc.inner_cycles);
    pgi_set_inner(s, 0);
    s->ops->widen_add(s, &s->outer, l->u, s->outer.u);
}

// Cycles are in two halves: down to the residual that others are given to solve for, which costs nothing more to know
// the norm of, and up again. A solve with checks begins with the first half; each iteration is up and down, and the
// check comes at its end. u has been smoothed once more then, which is no loss.
static int pgi_in_halves(const pg_solver *s) { return !s->krylov && (s->multigrid || (s->is_direct && s->mixed)); }

static void pgi_step_down(pg_solver *s)
{
    const pgi_rhs rhs = pgi_outer_rhs(s);
    if (s->mixed && s->may_be_singular) s->ops->loop(s, PGI_LOOSE, 0, pgi_step_lift);
    if (s->mixed)
        s->ops->residual_narrow(s, &s->outer, s->outer.u, rhs, s->level[0].f, s->checked);
    else if (s->levels > 1)
        s->iterate = pgi_descend(s, 0, s->iterate, rhs, 0, s->checked);
    else if (s->checked)
        s->ops->reduce(s, &s->outer, PGI_RESIDUAL, PGI_SELF, s->iterate, pgi_no_grid(), rhs, 0);
}

static void pgi_step_up(pg_solver *s)
{
    const pgi_rhs rhs = pgi_outer_rhs(s);
    if (s->mixed)
        pgi_add_correction(s);
    else
        s->iterate = s->levels > 1 ? pgi_ascend(s, 0, s->iterate, rhs, 1) : pgi_cycle(s, 0, s->iterate, rhs, 0, 1);
    s->ops->control(s, PGI_COUNT, s->mixed ? s->desc.inner_cycles : 1);
}

static void pgi_step_cycle(pg_solver *s)
{
    const pgi_grid begin = s->iterate;    // and end: it runs many times
    if (s->checked) {
        pgi_step_up(s);
        pgi_step_down(s);
    } else {
        pgi_step_down(s);
        pgi_step_up(s);
    }
    if (s->iterate.base != begin.base) s->ops->copy(s, &s->level[0], s->iterate, begin);
    s->iterate = begin;
}

static void pgi_step_home(pg_solver *s) { s->iterate = pgi_home(s, &s->level[0], s->iterate); }

// ---- Krylov methods ----

// Each has a start, an iteration, and what happens where its residual, which comes from a recurrence, has to be worked
// out from u. Inner products are those of pg_dot, in which A and the symmetric cycle are self-adjoint.
struct pgi_krylov_method {
    void (*start)(pg_solver *);
    void (*iterate)(pg_solver *);
    void (*verify)(pg_solver *);
    void (*finish)(pg_solver *);    // or NULL: makes u where it has not been since
};

static void pgi_recur(pg_solver *s, int recurrence, const pgi_vectors &v)
{
    s->outer_ops->recur(s, &s->outer, recurrence, v);
}
static void pgi_set_steps(pg_solver *s, int step) { s->ops->control(s, PGI_SET_KRYLOV, step); }

// Whether CG's passes write the residual in f32 too, for the next cycle or solve.
static int pgi_is_narrowed(const pg_solver *s) { return s->mixed && !s->weighs && s->desc.flags & PG_CG; }
static void pgi_narrow(pg_solver *s, pgi_grid r) { s->ops->narrow_rhs(s, &s->outer, r, &s->level[0]); }

// M r: one cycle from 0.
static pgi_grid pgi_precondition_by_cycle(pg_solver *s, pgi_grid r)
{
    const pgi_level *l = &s->level[0];
    if (!s->mixed) return pgi_cycle(s, 0, l->u, pgi_rhs_of(r), 1, 1);
    if (!pgi_is_narrowed(s)) pgi_narrow(s, r);
    pgi_set_inner(s, 1);
    const pgi_grid z = pgi_cycle(s, 0, l->u, pgi_rhs_of(l->f), 1, 1);
    pgi_set_inner(s, 0);
    pgi_recur(s, PGI_WIDEN, {{z, r, s->vector[PGI_M]}});
    return s->vector[PGI_M];
}

// M r by PG_DIRECT, see pgi_near_create.
static pgi_grid pgi_precondition_by_direct(pg_solver *s, pgi_grid r)
{
    const pgi_level *l = &s->level[0];
    const pgi_grid z = s->vector[PGI_M], weighed = s->weighs ? z : r;
    if (s->weighs) s->outer_ops->recur(s, &s->ratio, PGI_WEIGH, {{r, z}});
    if (!s->mixed) {
        pgi_solve_direct(s, l, pgi_rhs_of(weighed), z);
        return z;
    }
    if (!pgi_is_narrowed(s)) pgi_narrow(s, weighed);
    pgi_set_inner(s, 1);
    pgi_solve_direct(s, l, pgi_rhs_of(l->f), l->u);
    pgi_set_inner(s, 0);
    pgi_recur(s, PGI_WIDEN, {{l->u, r, z}});
    return z;
}

// Returns where M r is: in a grid that the next call uses again. It leaves <r, M r>, but for cycles and PG_DIRECT in
// one precision.
static pgi_grid pgi_precondition(pg_solver *s, pgi_grid r)
{
    const unsigned flags = s->desc.flags;
    const pgi_grid z = s->vector[PGI_M], h = s->vector[PGI_H];
    if (flags & PG_PRECOND_NONE) return r;
    if (flags & PG_PRECOND_CYCLE) return pgi_precondition_by_cycle(s, r);
    if (flags & PG_PRECOND_DIRECT) return pgi_precondition_by_direct(s, r);
    pgi_recur(s, PGI_DIAGONAL, {{r, flags & PG_PRECOND_DIAGONAL ? z : h}});
    if (flags & PG_PRECOND_DIAGONAL) return z;
    pgi_recur(s, PGI_INVERSE, {{h, z, r}});
    if (flags & PG_PRECOND_AINV) return z;
    pgi_recur(s, PGI_DEFECT, {{z, r, h}});
    pgi_recur(s, PGI_INVERSE_AGAIN, {{h, z, r}});
    return z;
}

// The residual of u, its norm and its square.
static void pgi_step_residual(pg_solver *s)
{
    s->outer_ops->residual(s, &s->outer, s->outer.u, pgi_outer_rhs(s), s->vector[PGI_R]);
    pgi_recur(s, PGI_PRODUCT, {{s->vector[PGI_R], s->vector[PGI_R]}});
}

// Conjugate gradients (M. R. Hestenes, E. Stiefel 1952).
static void pgi_cg_start(pg_solver *s)
{
    pgi_step_residual(s);
    pgi_set_steps(s, PGI_KRYLOV_START);
    if (pgi_is_narrowed(s)) pgi_narrow(s, s->vector[PGI_R]);
    if (s->desc.flags & PG_PRECOND_NONE) pgi_set_steps(s, PGI_CG_BETA);
}
static void pgi_cg_verify(pg_solver *s)
{
    pgi_cg_start(s);
    s->ops->control(s, PGI_CHECK, 0);
}
static void pgi_cg_iterate(pg_solver *s)
{
    const pgi_grid *const v = s->vector, z = pgi_precondition(s, v[PGI_R]);
    if (s->desc.flags & (PG_PRECOND_CYCLE | PG_PRECOND_DIRECT) && !s->mixed) pgi_recur(s, PGI_PRODUCT, {{v[PGI_R], z}});
    if (!(s->desc.flags & PG_PRECOND_NONE)) pgi_set_steps(s, PGI_CG_BETA);
    pgi_recur(s, PGI_CG_DIRECTION, {{z, v[PGI_P]}});
    pgi_set_steps(s, PGI_CG_ALPHA);
    pgi_recur(s, pgi_is_narrowed(s) ? PGI_CG_DESCENT_MIXED : PGI_CG_DESCENT,
              {{v[PGI_P], s->outer.u, v[PGI_R], s->level[0].f}});
    if (s->desc.flags & PG_PRECOND_NONE) pgi_set_steps(s, PGI_CG_BETA);
    s->ops->control(s, PGI_COUNT, 1);
}

// Pipelined conjugate gradients. One pass has all updates and sums; the products after it need none of these sums,
// which may be on their way meanwhile. Without a preconditioner or with the diagonal: predict and recompute (T. Chen,
// E. Carson 2020), as accurate as the classic form. r~ and s~ are M r and M s.
static int pgi_is_predicted(const pg_solver *s)
{
    return (s->desc.flags & (PG_PRECOND_NONE | PG_PRECOND_DIAGONAL)) != 0;
}
static void pgi_copy_outer(pg_solver *s, pgi_grid from, pgi_grid to) { s->outer_ops->copy(s, &s->outer, from, to); }
static void pgi_apply_outer(pg_solver *s, pgi_grid x, pgi_grid to) { s->outer_ops->apply(s, &s->outer, x, to); }

static void pgi_predicted_products(pg_solver *s)
{
    const pgi_grid *const v = s->vector;
    const int none = s->desc.flags & PG_PRECOND_NONE ? 1 : 0;
    s->outer_ops->apply_two(s, &s->outer, none ? v[PGI_S] : v[PGI_H], v[PGI_U], none ? v[PGI_R] : v[PGI_M], v[PGI_W]);
}
static void pgi_predicted_pass(pg_solver *s)
{
    const pgi_grid *const v = s->vector, x = s->outer.u;
    if (s->desc.flags & PG_PRECOND_NONE)
        pgi_recur(s, PGI_PIPECG, {{x, v[PGI_R], v[PGI_P], v[PGI_S], v[PGI_W], v[PGI_U]}});
    else
        pgi_recur(s, PGI_PIPECG_DIAGONAL, {{x, v[PGI_R], v[PGI_P], v[PGI_S], v[PGI_W], v[PGI_U], v[PGI_M], v[PGI_H]}});
    pgi_set_steps(s, PGI_PIPECG_PREDICTED);
    pgi_predicted_products(s);
}
// The first pass has alpha = beta = 0: p = r~ and s = w, which is A r~.
static void pgi_predicted_begin(pg_solver *s)
{
    const pgi_grid *const v = s->vector;
    pgi_set_steps(s, PGI_KRYLOV_START);
    pgi_apply_outer(s, pgi_precondition(s, v[PGI_R]), v[PGI_W]);
    pgi_predicted_pass(s);
}
static void pgi_predicted_start(pg_solver *s)
{
    const int vectors[] = {PGI_P, PGI_S, PGI_U};    // 0 times what is there must be 0
    for (int q = 0; q < 3; q++) s->outer_ops->fill_zero(s, &s->outer, s->vector[vectors[q]]);
    pgi_step_residual(s);
    pgi_predicted_begin(s);
}
static void pgi_predicted_verify(pg_solver *s)
{
    pgi_step_residual(s);
    s->ops->control(s, PGI_CHECK, 0);
    pgi_predicted_begin(s);
}
static void pgi_predicted_iterate(pg_solver *s)
{
    pgi_predicted_pass(s);
    s->ops->control(s, PGI_COUNT, 1);
}

// With other preconditioners one of them an iteration (P. Ghysels, W. Vanroose 2014). What the recurrences lose is made
// good by working out r, and all that follows from r and p, from u now and then.
// n = A M w
static void pgi_pipecg_product(pg_solver *s)
{
    const pgi_grid *const v = s->vector;
    s->pipelined = pgi_precondition(s, v[PGI_W]);
    pgi_apply_outer(s, s->pipelined, v[PGI_N]);
}
static void pgi_pipecg_sums(pg_solver *s, int step)
{
    const pgi_grid *const v = s->vector;
    pgi_copy_outer(s, pgi_precondition(s, v[PGI_R]), v[PGI_U]);
    pgi_apply_outer(s, v[PGI_U], v[PGI_W]);
    pgi_recur(s, PGI_TWO_PRODUCTS, {{v[PGI_R], v[PGI_U], v[PGI_W]}});
    pgi_set_steps(s, step);
    pgi_pipecg_product(s);
}
static void pgi_pipecg_start(pg_solver *s)
{
    pgi_step_residual(s);
    pgi_set_steps(s, PGI_KRYLOV_START);
    pgi_pipecg_sums(s, PGI_PIPECG_STEPS);
}
static void pgi_pipecg_verify(pg_solver *s)
{
    const pgi_grid *const v = s->vector;
    pgi_step_residual(s);
    s->ops->control(s, PGI_CHECK, 0);
    pgi_apply_outer(s, v[PGI_P], v[PGI_S]);
    pgi_copy_outer(s, pgi_precondition(s, v[PGI_S]), v[PGI_Q]);
    pgi_apply_outer(s, v[PGI_Q], v[PGI_Z]);
    pgi_pipecg_sums(s, PGI_PIPECG_REPLACED);
}
static void pgi_pipecg_iterate(pg_solver *s)
{
    const pgi_grid *const v = s->vector, x = s->outer.u, m = s->pipelined;
    pgi_recur(s, PGI_PIPECG_ANY,
              {{x, v[PGI_R], v[PGI_W], v[PGI_N], v[PGI_Z], v[PGI_S], v[PGI_P], v[PGI_U], m, v[PGI_Q]}});
    pgi_set_steps(s, PGI_PIPECG_STEPS);
    pgi_pipecg_product(s);
    s->ops->control(s, PGI_COUNT, 1);
}

// BiCGStab (H. A. van der Vorst 1992) for A M y = r, with the sums for beta taken along with those for omega (B.
// Krasnopolsky 2010): so r and p are made in one pass. u = guess + M y is worked out where the residual is.
static int pgi_is_pending(const pg_solver *s)
{
    return s->desc.flags & (PG_BICGSTAB | PG_PIPEBICGSTAB) && !(s->desc.flags & PG_PRECOND_NONE);
}
static void pgi_add_preconditioned(pg_solver *s)
{
    const pgi_grid y = s->vector[PGI_Y];
    if (s->desc.flags & PG_PRECOND_NONE) return;
    pgi_recur(s, PGI_ADD, {{pgi_precondition(s, y), s->outer.u}});
    s->outer_ops->fill_zero(s, &s->outer, y);
}
static void pgi_bicg_begin(pg_solver *s, int verify)
{
    const pgi_grid *const v = s->vector;
    pgi_step_residual(s);
    pgi_set_steps(s, PGI_KRYLOV_START);
    pgi_set_steps(s, PGI_BICG_SHADOW);
    if (verify) s->ops->control(s, PGI_CHECK, 0);
    pgi_copy_outer(s, v[PGI_R], v[PGI_SHADOW]);
    pgi_copy_outer(s, v[PGI_R], v[PGI_P]);
}
static void pgi_bicg_start(pg_solver *s)
{
    if (!(s->desc.flags & PG_PRECOND_NONE)) s->outer_ops->fill_zero(s, &s->outer, s->vector[PGI_Y]);
    pgi_bicg_begin(s, 0);
}
// u is up to date then, and with it the floor.
static void pgi_verify_pending(pg_solver *s)
{
    pgi_add_preconditioned(s);
    if (s->with_floor && pgi_is_pending(s)) s->outer_ops->magnitude(s, &s->outer, s->outer.u);
}
static void pgi_bicg_verify(pg_solver *s)
{
    pgi_verify_pending(s);
    pgi_bicg_begin(s, 1);
}
static void pgi_bicg_iterate(pg_solver *s)
{
    const pgi_grid *const v = s->vector;
    pgi_recur(s, PGI_BICG_PRODUCT, {{pgi_precondition(s, v[PGI_P]), v[PGI_SHADOW], v[PGI_N]}});
    pgi_set_steps(s, PGI_BICG_ALPHA);
    pgi_recur(s, PGI_BICG_HALF, {{v[PGI_R], v[PGI_N]}});
    pgi_recur(s, PGI_BICG_SECOND, {{pgi_precondition(s, v[PGI_R]), v[PGI_R], v[PGI_SHADOW], v[PGI_T]}});
    pgi_set_steps(s, PGI_BICG_OMEGA);
    pgi_recur(s, PGI_BICG_UPDATE, {{v[PGI_Y], v[PGI_P], v[PGI_R], v[PGI_T], v[PGI_N], v[PGI_SHADOW]}});
    pgi_set_steps(s, PGI_BICG_RHO);
    s->ops->control(s, PGI_COUNT, 1);
}

// Pipelined BiCGStab (S. Cools, W. Vanroose 2017) for A M y = r: none of the two products of an iteration needs the
// sums of the pass before it.
static void pgi_product(pg_solver *s, int from, int to)
{
    s->outer_ops->apply(s, &s->outer, pgi_precondition(s, s->vector[from]), s->vector[to]);
}
static void pgi_pipebicg_begin(pg_solver *s, int verify)
{
    const pgi_grid *const v = s->vector;
    pgi_step_residual(s);
    if (verify) s->ops->control(s, PGI_CHECK, 0);
    pgi_set_steps(s, PGI_KRYLOV_START);
    pgi_copy_outer(s, v[PGI_R], v[PGI_SHADOW]);
    pgi_product(s, PGI_R, PGI_W);
    pgi_recur(s, PGI_TWO_PRODUCTS, {{v[PGI_R], v[PGI_R], v[PGI_W]}});
    pgi_set_steps(s, PGI_PIPEBICG_FIRST_STEP);
    pgi_product(s, PGI_W, PGI_T);
}
static void pgi_pipebicg_start(pg_solver *s)
{
    if (!(s->desc.flags & PG_PRECOND_NONE)) s->outer_ops->fill_zero(s, &s->outer, s->vector[PGI_Y]);
    pgi_pipebicg_begin(s, 0);
}
static void pgi_pipebicg_verify(pg_solver *s)
{
    pgi_verify_pending(s);
    pgi_pipebicg_begin(s, 1);
}
static void pgi_pipebicg_iterate(pg_solver *s)
{
    const pgi_grid *const v = s->vector;
    pgi_recur(s, PGI_PIPEBICG_FIRST, {{v[PGI_P], v[PGI_S], v[PGI_Z], v[PGI_R], v[PGI_W], v[PGI_T], v[PGI_N]}});
    pgi_set_steps(s, PGI_PIPEBICG_OMEGA);
    pgi_product(s, PGI_Z, PGI_N);
    pgi_recur(s, PGI_PIPEBICG_SECOND,
              {{v[PGI_Y], v[PGI_P], v[PGI_R], v[PGI_W], v[PGI_T], v[PGI_N], v[PGI_SHADOW], v[PGI_S], v[PGI_Z]}});
    pgi_set_steps(s, PGI_PIPEBICG_STEPS);
    pgi_product(s, PGI_W, PGI_T);
    s->ops->control(s, PGI_COUNT, 1);
}

static const pgi_krylov_method *pgi_krylov_of(const pg_solver *s)
{
    static const pgi_krylov_method cg = {pgi_cg_start, pgi_cg_iterate, pgi_cg_verify, NULL},
                                   predicted = {pgi_predicted_start, pgi_predicted_iterate, pgi_predicted_verify, NULL},
                                   pipecg = {pgi_pipecg_start, pgi_pipecg_iterate, pgi_pipecg_verify, NULL},
                                   bicg = {pgi_bicg_start, pgi_bicg_iterate, pgi_bicg_verify, pgi_add_preconditioned},
                                   pipebicg = {pgi_pipebicg_start, pgi_pipebicg_iterate, pgi_pipebicg_verify,
                                               pgi_add_preconditioned};
    const unsigned flags = s->desc.flags;
    if (flags & PG_PIPECG) return pgi_is_predicted(s) ? &predicted : &pipecg;
    return flags & PG_CG ? &cg : flags & PG_BICGSTAB ? &bicg : &pipebicg;
}

static void pgi_step_check(pg_solver *s)
{
    if (!s->checked) return;
    if (s->krylov) {
        if (s->with_floor && !pgi_is_pending(s)) s->outer_ops->magnitude(s, &s->outer, s->outer.u);
        s->ops->control(s, PGI_CHECK_RECURRENCE, 0);
        s->ops->loop(s, PGI_VERIFY, 0, pgi_krylov_of(s)->verify);
        return;
    }
    if (!pgi_in_halves(s))
        s->outer_ops->reduce(s, &s->outer, PGI_RESIDUAL, PGI_SELF, s->outer.u, pgi_no_grid(), pgi_outer_rhs(s), 0);
    if (s->with_floor) s->outer_ops->magnitude(s, &s->outer, s->mixed || !s->multigrid ? s->outer.u : s->iterate);
    s->ops->control(s, PGI_CHECK, 0);
}

static void pgi_step_zero(pg_solver *s) { s->outer_ops->fill_zero(s, &s->outer, s->outer.u); }

static void pgi_step_fmg(pg_solver *s)
{
    const pgi_level *l = &s->level[0];
    if (s->mixed && s->guess_zero) s->outer_ops->fill_zero(s, &s->outer, s->outer.u);
    if (s->mixed && s->may_be_singular)
        s->ops->loop(s, PGI_LOOSE, 0, s->guess_zero ? pgi_step_first_lift : pgi_step_lift);
    if (s->mixed && s->guess_zero)
        s->ops->narrow_rhs(s, &s->outer, s->outer.f, l);
    else if (s->mixed)
        s->ops->residual_narrow(s, &s->outer, s->outer.u, pgi_outer_rhs(s), l->f, 0);
    if (s->mixed) {
        pgi_set_inner(s, 1);
        const pgi_grid e = pgi_fmg(s, 0, l->u, s->guess_zero);
        pgi_set_inner(s, 0);
        s->ops->widen_add(s, &s->outer, e, s->outer.u);
    } else if (s->guess_zero) {
        // The first half of the next cycle shall end in u, so that the solve does
        s->iterate = pgi_fmg(s, 0, s->checked && pgi_smoothing_turns(s, l) ? l->t : l->u, 1);
    } else {
        pgi_fmg_correction(s);
    }
    s->ops->control(s, PGI_COUNT, 1);
    if (s->checked) pgi_step_down(s);
    pgi_step_check(s);
}

static void pgi_step_direct(pg_solver *s)
{
    if (s->guess_zero) pgi_solve_direct(s, &s->level[0], pgi_level_rhs(&s->level[0], 1), s->level[0].u);
    s->ops->control(s, s->checked ? PGI_COUNT : PGI_LAST, 1);
    pgi_step_check(s);
}

static void pgi_sweeps(pg_solver *s, int count)
{
    const pgi_level *l = &s->outer;
    const pgi_rhs rhs = pgi_outer_rhs(s);
    pgi_home(s, l,
             s->desc.flags & PG_JACOBI
                 ? s->ops->jacobi_sweeps(s, l, l->u, rhs, &s->desc.omega, 1, count)
                 : s->ops->relax(s, l, l->u, rhs, pgi_evenly(0), 0, count, PGI_FROM_U, NULL, l->u, NULL));
}

static void pgi_step_sweeps(pg_solver *s, int count)
{
    pgi_sweeps(s, count);
    s->ops->control(s, PGI_COUNT, count);
}

// An even number of passes ends in u again: two of two sweeps, two single ones, or in 2D two of four Jacobi sweeps.
static void pgi_step_eight(pg_solver *s) { pgi_step_sweeps(s, 8); }
static void pgi_step_four(pg_solver *s) { pgi_step_sweeps(s, 4); }
static void pgi_step_pair(pg_solver *s) { pgi_step_sweeps(s, 2); }
static void pgi_step_one(pg_solver *s) { pgi_step_sweeps(s, 1); }

static void pgi_step_iterate(pg_solver *s)
{
    if (s->krylov) {
        s->ops->loop(s, PGI_INNER, 1, pgi_krylov_of(s)->iterate);
    } else if (pgi_in_halves(s)) {
        s->ops->loop(s, PGI_INNER, 1, pgi_step_cycle);
    } else {
        if (s->desc.flags & PG_JACOBI) s->ops->loop(s, PGI_EIGHT, 1, pgi_step_eight);
        s->ops->loop(s, PGI_FOUR, 1, pgi_step_four);
        s->ops->loop(s, PGI_PAIR, 0, pgi_step_pair);
        s->ops->loop(s, PGI_INNER, 0, pgi_step_one);
    }
    pgi_step_check(s);
}

static void pgi_step_centre(pg_solver *s) { pgi_centre(s, s->outer_ops, &s->outer, s->outer.u); }

// Nothing is written to u before f (and u, where it is read) are known to be finite, if a tolerance was given. But a
// batch of PG_DIRECT is solved at once, without checks, and then checked problem after problem: u as it is counts as
// solved for then (guess_zero is 0, otherwise never with PG_DIRECT).
static void pgi_program(pg_solver *s)
{
    const pgi_grid none = pgi_no_grid();
    const int fmg = s->desc.flags & PG_FMG ? 1 : 0;
    const int at_once = s->is_direct && !s->mixed;    // writes u once, with mean zero
    s->together = at_once && !s->checked ? s->desc.batch : 1;
    s->iterate = s->level[0].u;
    if (at_once && s->direct.small.blocks && s->guess_zero && !s->checked && s->desc.batch == 1) {
        s->ops->small2d(s, &s->level[0], pgi_level_rhs(&s->level[0], 1), s->level[0].u, 1);
        return;
    }
    s->ops->control(s, PGI_BEGIN, at_once && !s->guess_zero);
    // A batch, and a direct solve that reports the mean, leave the null mode out on the way.
    if (s->may_be_singular && s->together == 1 && !(at_once && !s->checked && s->direct.reports_mean)) {
        s->outer_ops->reduce(s, &s->outer, PGI_RHS, PGI_ONE, none, none, pgi_outer_rhs(s), 0);
        s->ops->control(s, PGI_SET_MEAN, 0);
    }
    if (s->checked) {
        for (int again = 0; again < 2; again++)
            s->outer_ops->reduce(s, &s->outer, PGI_RHS, PGI_SELF, none, none, pgi_outer_rhs(s), again);
        s->ops->control(s, PGI_SET_RHS, 0);
    }
    if (s->may_be_singular && !s->guess_zero && !at_once)
        s->ops->loop(s, PGI_VALID, 0, pgi_step_centre);    // a large constant would drown the rest
    if (s->checked && (s->guess_zero || at_once)) {
        s->ops->control(s, PGI_ZERO_GUESS, 0);
    } else if (s->checked) {
        for (int again = 0; again < 2; again++)
            s->outer_ops->reduce(s, &s->outer, PGI_RESIDUAL, PGI_SELF, s->outer.u, none, pgi_outer_rhs(s), again);
        s->ops->control(s, PGI_CHECK_FIRST, 0);
    } else if (s->mixed) {
        for (int again = 0; again < 2; again++)
            s->outer_ops->reduce(s, &s->outer, s->guess_zero ? PGI_RHS : PGI_RESIDUAL, PGI_SELF, s->outer.u, none,
                                 pgi_outer_rhs(s), again);
        s->ops->control(s, PGI_SET_SCALE, 0);
    }
    if (fmg) s->ops->loop(s, PGI_GO, 0, pgi_step_fmg);
    if (at_once) {
        if (s->checked)
            s->ops->loop(s, PGI_GO, s->monitor != NULL, pgi_step_direct);    // again: only the monitor runs
        else
            pgi_step_direct(s);
        if (s->monitor) s->ops->loop(s, PGI_UNWRITTEN, 0, pgi_step_zero);    // it may have cancelled
    } else {
        if (s->guess_zero) s->ops->loop(s, PGI_UNWRITTEN, 0, pgi_step_zero);
        if (s->krylov) s->ops->loop(s, PGI_GO, 0, pgi_krylov_of(s)->start);
        if (s->checked && pgi_in_halves(s) && !fmg) s->ops->loop(s, PGI_GO, 0, pgi_step_down);
        s->ops->loop(s, PGI_GO, 1, pgi_step_iterate);
        if (s->iterate.base != s->level[0].u.base) s->ops->loop(s, PGI_BEGUN, 0, pgi_step_home);
        if (s->krylov && pgi_krylov_of(s)->finish) s->ops->loop(s, PGI_AHEAD, 0, pgi_krylov_of(s)->finish);
        if (s->may_be_singular) s->ops->loop(s, PGI_VALID, 0, pgi_step_centre);
    }
    if (!at_once || s->checked) s->ops->control(s, PGI_END, 0);
}

static const char *pgi_method_name(unsigned flags)
{
    return flags & PG_JACOBI         ? "PG_JACOBI"
           : flags & PG_RBGS         ? "PG_RBGS"
           : flags & PG_SOR          ? "PG_SOR"
           : flags & PG_VCYCLE       ? "PG_VCYCLE"
           : flags & PG_WCYCLE       ? "PG_WCYCLE"
           : flags & PG_DIRECT       ? "PG_DIRECT"
           : flags & PG_FASTEST      ? "PG_FASTEST"
           : flags & PG_CG           ? "PG_CG"
           : flags & PG_PIPECG       ? "PG_PIPECG"
           : flags & PG_BICGSTAB     ? "PG_BICGSTAB"
           : flags & PG_PIPEBICGSTAB ? "PG_PIPEBICGSTAB"
           : flags & PG_GAUSS_SEIDEL ? "PG_GAUSS_SEIDEL"
                                     : "PG_FMG";
}

// The average factor of the last iterations, from the last checks.
static double pgi_factor(const pgi_state *st)
{
    const int last = st->history_count < PGI_RECENT ? st->history_count - 1 : PGI_RECENT - 1;
    if (last < 1 || !(st->recent[last].norm > 0) || !(st->recent[0].norm > 0)) return NAN;
    const int steps = st->recent[0].iterations - st->recent[last].iterations;
    return steps > 0 ? pow(st->recent[0].norm / st->recent[last].norm, 1.0 / steps) : NAN;
}

// The outcome as a sentence, from the rest of the report.
static void pgi_write_message(const pg_solver *s, const pgi_state *st, pg_report *r)
{
    const char *name = pg_outcome_string(r->outcome);
    const double share = r->rhs_norm > 0 ? r->residual / r->rhs_norm : NAN;
    switch (r->outcome) {
    case PG_NOT_RUN: snprintf(r->message, sizeof r->message, "no solve has been started with this handle"); break;
    case PG_COMPLETED:
        snprintf(r->message, sizeof r->message, "%s: %d iteration%s, no tolerance was asked for", name, r->iterations,
                 r->iterations == 1 ? "" : "s");
        break;
    case PG_STAGNATED:
        snprintf(r->message, sizeof r->message,
                 "%s after %d iteration%s: round-off leaves a residual of about %.3g (rhs %.3g, now %.3g)", name,
                 r->iterations, r->iterations == 1 ? "" : "s", r->floor, r->rhs_norm, r->residual);
        break;
    case PG_DIVERGED:
        snprintf(r->message, sizeof r->message,
                 "%s after %d iteration%s of %s: the residual grew from %.3g at least to %.3g; %s", name, r->iterations,
                 r->iterations == 1 ? "" : "s", pgi_method_name(s->desc.flags), st->best, r->residual,
                 s->dense                    ? "sweeps do not converge for this A and omega"
                 : s->multigrid              ? "try PG_DIRECT, or PG_SMOOTH_LINES"
                 : s->desc.flags & PG_JACOBI ? "give a smaller omega"
                 : pgi_convects(&s->desc)    ? "use PG_UPWIND, or a finer grid"
                                             : "try PG_FASTEST");
        break;
    case PG_BREAKDOWN:
        snprintf(r->message, sizeof r->message,
                 "%s after %d iterations: %s divided by 0 twice; residual %.3g, rhs %.3g; try another preconditioner "
                 "or guess",
                 name, r->iterations, pgi_method_name(s->desc.flags), r->residual, r->rhs_norm);
        break;
    case PG_RESONANCE:
        snprintf(r->message, sizeof r->message,
                 "%s: -alpha = %g is an eigenvalue to round-off; u is the solution without that eigenfunction", name,
                 -st->alpha);
        break;
    case PG_NOT_A_NUMBER:
        snprintf(r->message, sizeof r->message,
                 s->dense && !st->valid ? "%s: NaN, Inf or an overflowing norm in A, f or u; u was not touched"
                 : st->iterations && st->history_count ? "%s: no finite residual after iteration %d"
                 : st->iterations                      ? "%s: NaN or Inf in u after iteration %d, the last one"
                 : s->is_direct && !s->mixed && s->desc.batch > 1
                     ? "%s: NaN, Inf or an overflowing norm in f or the boundary data"
                     : "%s: NaN, Inf or an overflowing norm in f, u or the boundary data; u was not touched",
                 name, r->iterations);
        break;
    default:
        snprintf(r->message, sizeof r->message, "%s after %d iteration%s: residual %.3g, %.2g of the right-hand side",
                 name, r->iterations, r->iterations == 1 ? "" : "s", r->residual, share);
        if (r->outcome == PG_CONVERGED && st->to_round_off && r->residual > pgi_asked(st))
            snprintf(r->message, sizeof r->message,
                     "%s to round-off after %d iteration%s: residual %.3g, %.2g of the right-hand side (floor %.2g)",
                     name, r->iterations, r->iterations == 1 ? "" : "s", r->residual, share, r->floor);
        if (!(r->rhs_norm > 0))
            snprintf(r->message, sizeof r->message, "%s after %d iteration%s: residual %.3g, right-hand side 0", name,
                     r->iterations, r->iterations == 1 ? "" : "s", r->residual);
    }
}

static void pgi_fill_report(const pg_solver *s, const pgi_state *st, pg_report *r)
{
    memset(r, 0, sizeof *r);
    r->outcome = (pg_outcome)st->outcome;
    r->iterations = st->iterations;
    r->rhs_norm = st->rhs_norm;
    r->first_residual = st->first;
    r->residual = st->last;
    r->removed_mean = st->removed;
    r->floor = st->history_count ? fmax(st->floor, st->underflow) : NAN;
    r->factor = pgi_factor(st);
    r->problem = st->problem;
    if (s->is_direct && !s->mixed && s->desc.batch > 1 && s->may_be_singular && st->alpha == 0 &&
        st->history_count == 0)
        r->removed_mean = NAN;    // not worked out
    r->milliseconds = st->end_ns > st->start_ns ? (double)(st->end_ns - st->start_ns) * 1e-6 : 0;
    r->history_count = st->history_count;
    memcpy(r->history, st->history, sizeof r->history);
    r->backend = s->cuda ? PG_CUDA : PG_CPU;
    snprintf(r->warning, sizeof r->warning, "%s", s->warning);
    snprintf(r->method, sizeof r->method, "%s", s->chosen[0] ? s->chosen : pgi_method_name(s->desc.flags));
    r->accelerated = s->accelerated;
    if (st->go && st->outcome == PG_COMPLETED && st->history_count > 0) r->outcome = PG_RUNNING;
    if (r->outcome == PG_NOT_RUN) {
        r->history_count = 0;
        r->rhs_norm = r->first_residual = r->residual = NAN;
    }
    pgi_write_message(s, st, r);
}

// Called by the loops that run on the host, after every check.
static void pgi_monitor(pg_solver *s, const pgi_state *st)
{
    if (!s->monitor || st->history_count <= s->monitored) return;
    s->monitored = st->history_count;
    pg_report report;
    pgi_fill_report(s, st, &report);
    s->in_monitor = 1;
    const int cancel = s->monitor(s->monitor_user, &report);
    s->in_monitor = 0;
    if (cancel && st->go) s->ops->control(s, PGI_CANCEL, 0);
}

// -------------------------------------------------------------------------------------------------------------------
// >>validation  Every default and every check of a descriptor, a stopping rule and a pointer, before anything is
// touched.
// -------------------------------------------------------------------------------------------------------------------

// An enum field as a C caller may have filled it: reading a value that the enum does not have would be undefined in
// C++.
template <class E> static int pgi_number(const E &field)
{
    int value;
    static_assert(sizeof value == sizeof field, "an enum of C has the size of int");
    memcpy(&value, &field, sizeof value);
    return value;
}

static const char *const pgi_face_name[6] = {"x low", "x high", "y low", "y high", "z low", "z high"};

// At most one flag of a group; none: the default.
static pg_status pgi_check_group(char text[512], unsigned *flags, const char *group, unsigned mask, unsigned fallback)
{
    const unsigned set = *flags & mask;
    if (set & (set - 1))
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "flags 0x%x name more than one %s (0x%x); give one", *flags, group,
                          set);
    if (!set) *flags |= fallback;
    return PG_OK;
}

static const unsigned pgi_precisions = PG_F64 | PG_F32 | PG_MIXED, pgi_sweep_methods = PG_JACOBI | PG_RBGS | PG_SOR,
                      pgi_cycle_methods = PG_VCYCLE | PG_WCYCLE | PG_FMG, pgi_cg_methods = PG_CG | PG_PIPECG,
                      pgi_krylov_methods = pgi_cg_methods | PG_BICGSTAB | PG_PIPEBICGSTAB,
                      pgi_methods = pgi_sweep_methods | pgi_cycle_methods | PG_DIRECT | PG_FASTEST | pgi_krylov_methods,
                      pgi_preconditioners = PG_PRECOND_CYCLE | PG_PRECOND_DIAGONAL | PG_PRECOND_NONE | PG_PRECOND_AINV |
                                            PG_PRECOND_AINV2 | PG_PRECOND_DIRECT;

static pg_status pgi_check_flags(pg_desc *d, char text[512])
{
    const unsigned known =
        pgi_precisions | pgi_methods | pgi_smoothers | PG_SYMMETRIC | pgi_preconditioners | PG_KEEP_CYCLES | PG_UPWIND;
    if (d->flags & ~known)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "flags contain unknown bits 0x%x; see the list at PG_F64",
                          d->flags & ~known);
    PGI_TRY(pgi_check_group(text, &d->flags, "precision", pgi_precisions, PG_F64));
    const unsigned options = pgi_smoothers | PG_SYMMETRIC;    // of multigrid, which is what is meant then
    const int convects = pgi_convects(d);
    PGI_TRY(pgi_check_group(text, &d->flags, "method", pgi_methods,
                            convects                              ? PG_BICGSTAB
                            : d->flags & options || d->omega != 0 ? PG_FMG
                                                                  : PG_FASTEST));
    const char *method = pgi_method_name(d->flags);
    if (d->flags & pgi_krylov_methods)
        PGI_TRY(pgi_check_group(text, &d->flags, "preconditioner", pgi_preconditioners,
                                convects ? PG_PRECOND_AINV : PG_PRECOND_CYCLE));
    else if (d->flags & pgi_preconditioners)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "%s takes no preconditioner (flags 0x%x); give PG_CG or PG_BICGSTAB", method,
                          d->flags & pgi_preconditioners);
    if (d->flags & PG_PRECOND_CYCLE && d->flags & pgi_cg_methods) d->flags |= PG_SYMMETRIC;
    if (d->flags & (pgi_cycle_methods | PG_PRECOND_CYCLE))
        return pgi_check_group(text, &d->flags, "smoother", pgi_smoothers, 0);    // see pgi_choose_line_axis
    if (d->flags & PG_KEEP_CYCLES && !(d->flags & PG_FASTEST))
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "PG_KEEP_CYCLES does not go with %s, which has none; use PG_VCYCLE, PG_WCYCLE or PG_FMG",
                          method);
    if (d->flags & pgi_krylov_methods && d->flags & PG_MIXED && !(d->flags & PG_PRECOND_DIRECT))
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "PG_MIXED with %s is a preconditioner in f32, and needs PG_PRECOND_CYCLE or "
                          "PG_PRECOND_DIRECT (flags 0x%x)",
                          method, d->flags);
    if (d->flags & PG_PIPEBICGSTAB && d->flags & PG_MIXED)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "PG_PIPEBICGSTAB does not go with PG_MIXED and PG_PRECOND_DIRECT: its recurrences lose what "
                          "f32 rounds; use PG_BICGSTAB, PG_CG or PG_F64");
    if (d->flags & pgi_smoothers)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "%s takes no smoother (flags 0x%x); smoothers belong to PG_VCYCLE, PG_WCYCLE, PG_FMG", method,
                          d->flags & pgi_smoothers);
    if ((d->flags & PG_MIXED) && !(d->flags & (PG_DIRECT | PG_FASTEST | pgi_krylov_methods)))
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "PG_MIXED does not go with %s; use PG_VCYCLE, PG_WCYCLE, PG_FMG or PG_DIRECT", method);
    if (d->flags & PG_SYMMETRIC)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED, "PG_SYMMETRIC does not go with %s; use PG_VCYCLE", method);
    return PG_OK;
}

static pg_status pgi_check_count(char text[512], const char *name, int *value, int fallback, int may_be_none)
{
    if (*value == 0)
        *value = fallback;
    else if (*value == PG_NONE && may_be_none)
        *value = 0;
    if (*value < 0 || *value > PGI_MAX_SWEEPS)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "%s is %d; it must be 1 to %d%s", name, *value, (int)PGI_MAX_SWEEPS,
                          may_be_none ? ", or PG_NONE" : "");
    return PG_OK;
}

static pg_status pgi_check_options(pg_desc *d, char text[512])
{
    const int symmetric = d->flags & PG_SYMMETRIC ? 1 : 0;
    const double limit = d->flags & (PG_F32 | PG_MIXED) ? 2 - DBL_EPSILON * (1 << 28) : 2;    // what rounds to 2
    if (!pgi_finite(d->omega) || d->omega < 0 || d->omega >= limit)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "omega is %g; it must be above 0 and below 2, or 0 for the default",
                          d->omega);
    if ((d->flags & PG_RBGS) && d->omega != 0 && d->omega != 1)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED, "omega is %g with PG_RBGS, which has none; use PG_SOR", d->omega);
    if ((d->flags & (PG_DIRECT | PG_FASTEST)) && d->omega != 0)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED, "omega is %g with %s, which has none; leave it 0", d->omega,
                          pgi_method_name(d->flags));
    if ((d->flags & (PG_SMOOTH_CHEBYSHEV | PG_SMOOTH_LINES)) && d->omega != 0)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED, "omega is %g with %s, which has none; leave it 0", d->omega,
                          d->flags & PG_SMOOTH_LINES ? "PG_SMOOTH_LINES" : "PG_SMOOTH_CHEBYSHEV");
    PGI_TRY(pgi_check_count(text, "nu_pre", &d->nu_pre, 2, 1));
    PGI_TRY(pgi_check_count(text, "nu_post", &d->nu_post, symmetric ? d->nu_pre : 1, 1));
    PGI_TRY(pgi_check_count(text, "fmg_cycles", &d->fmg_cycles, 1, 0));
    PGI_TRY(pgi_check_count(text, "inner_cycles", &d->inner_cycles, d->flags & PG_DIRECT ? 1 : 2, 0));
    if (d->flags & PG_DIRECT) d->inner_cycles = 1;    // a second one would find what the first one has found
    if (d->coarsest == 0) d->coarsest = PGI_MODES;
    if (d->coarsest < PGI_MODES_LEAST || d->coarsest > PGI_MODES)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "coarsest is %d; it must be %d to %d, or 0 for the default",
                          d->coarsest, (int)PGI_MODES_LEAST, (int)PGI_MODES);
    if (symmetric && d->nu_pre != d->nu_post)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "PG_SYMMETRIC needs nu_pre = nu_post, but they are %d and %d",
                          d->nu_pre, d->nu_post);
    if (d->nu_pre + d->nu_post == 0)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "nu_pre and nu_post are both PG_NONE; a cycle needs at least one sweep");
    return PG_OK;
}

static pg_status pgi_check_size(pg_desc *d, char text[512])
{
    const int limit = 1 << 28;    // so that small multiples of n and i + block size stay an int
    double points = 1;
    if (d->dim < 0 || d->dim > 3) return pgi_refuse(text, PG_ERROR_ARGUMENT, "dim is %d; it must be 0 to 3", d->dim);
    for (int a = 0; a < 3; a++) {
        if (a > 0 && d->n[a] == 0) d->n[a] = 1;
        if (d->n[a] < 1 || d->n[a] > limit)
            return pgi_refuse(text, PG_ERROR_ARGUMENT, "n[%d] is %d; it must be 1 to %d", a, d->n[a], limit);
        points *= d->n[a];
    }
    if (d->dim == 0) d->dim = d->n[2] > 1 ? 3 : d->n[1] > 1 ? 2 : 1;
    for (int a = d->dim; a < 3; a++) d->velocity[a] = 0;
    for (int a = d->dim; a < 3; a++)
        if (d->n[a] != 1)
            return pgi_refuse(text, PG_ERROR_ARGUMENT, "dim is %d, but n[%d] is %d; absent axes have 1", d->dim, a,
                              d->n[a]);
    if (d->batch == 0) d->batch = 1;
    if (d->batch < 1 || d->batch > limit)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "batch is %d; it must be 1 to %d, or 0 for one problem", d->batch,
                          limit);
    points *= d->batch;
    if (points > 1e15)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "n is %d x %d x %d, batch %d: %.3g unknowns; at most 1e15 can be addressed", d->n[0], d->n[1],
                          d->n[2], d->batch, points);
    return PG_OK;
}

// The axes of a window from the smallest stride to the largest: rows, planes and problems may lie in any order.
struct pgi_nest {
    int64_t count[3], stride[3];
    int levels;    // of axes that have more than one
};
static pgi_nest pgi_nest_of(const pg_desc *d, const int64_t stride[3])
{
    const int64_t count[3] = {d->n[1], d->n[2], d->batch};
    pgi_nest nest;
    nest.levels = 0;
    for (int a = 0; a < 3; a++) {
        if (count[a] == 1) continue;
        int at = nest.levels++;
        for (; at > 0 && nest.stride[at - 1] > stride[a]; at--)
            nest.count[at] = nest.count[at - 1], nest.stride[at] = nest.stride[at - 1];
        nest.count[at] = count[a], nest.stride[at] = stride[a];
    }
    return nest;
}

static pg_status pgi_check_strides(const pg_desc *d, const char *name, int64_t stride[3], char text[512])
{
    const int64_t nx = d->n[0], count[3] = {d->n[1], d->n[2], d->batch}, limit = INT64_MAX / 64;
    int64_t packed = nx;
    int too_far = 0;
    for (int a = 0; a < 3; a++) {
        if (stride[a] == 0) stride[a] = packed;
        too_far = too_far || stride[a] < 0 || stride[a] > limit / count[a];
        if (!too_far && (a == 0 || packed < stride[a] * count[a])) packed = stride[a] * count[a];
    }
    char values[80];
    snprintf(values, sizeof values, d->batch > 1 ? "{%lld, %lld, %lld}" : "{%lld, %lld}", (long long)stride[0],
             (long long)stride[1], (long long)stride[2]);
    if (too_far)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "%s is %s; strides must be positive, and the array small enough to address", name, values);
    const pgi_nest nest = pgi_nest_of(d, stride);
    int64_t span = nx;
    for (int a = 0; a < nest.levels; a++) {
        if (nest.stride[a] < span)
            return pgi_refuse(
                text, PG_ERROR_ARGUMENT,
                "%s is %s: rows of %lld, planes of %lld x %lld elements or problems overlap; give larger ones", name,
                values, (long long)nx, (long long)nx, (long long)count[0]);
        span += nest.stride[a] * (nest.count[a] - 1);
    }
    return PG_OK;
}

static pg_status pgi_check_ends(const pg_desc *d, int a, char text[512])
{
    for (int e = 0; e < 2; e++) {
        const pg_face *f = &d->face[2 * a + e];
        const int kind = pgi_number(f->kind);
        if (kind < 0 || kind > PG_PERIODIC)
            return pgi_refuse(text, PG_ERROR_ARGUMENT, "face %s has the unknown kind %d", pgi_face_name[2 * a + e],
                              kind);
        if (!pgi_finite(f->value))
            return pgi_refuse(text, PG_ERROR_ARGUMENT, "face %s has the value %g; boundary data must be finite",
                              pgi_face_name[2 * a + e], f->value);
        if (f->kind != PG_ROBIN) continue;
        if (!pgi_finite(f->a) || !pgi_finite(f->b) || f->b == 0 || f->a * f->b < 0)
            return pgi_refuse(text, PG_ERROR_ARGUMENT,
                              "face %s: Robin a u + b du/dn = g with a = %g, b = %g; a*b must not be negative, and "
                              "b = 0 is PG_DIRICHLET with g/a",
                              pgi_face_name[2 * a + e], f->a, f->b);
    }
    if ((d->face[2 * a].kind == PG_PERIODIC) != (d->face[2 * a + 1].kind == PG_PERIODIC))
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "only one of the faces %s and %s is PG_PERIODIC; both must be",
                          pgi_face_name[2 * a], pgi_face_name[2 * a + 1]);
    return PG_OK;
}

// Of m intervals
static pg_status pgi_check_spacing(const pg_desc *d, int a, int m, char text[512])
{
    if (!(d->h[a] >= 0) || !pgi_finite(d->h[a]))
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "h[%d] is %g; it must be positive and finite, or 0 for a box of length 1", a, d->h[a]);
    if (d->coord[a] && d->h[a] != 0)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "h[%d] is %g and coord[%d] is given too; leave one of them 0", a,
                          d->h[a], a);
    if (d->coord[a] && m == 0)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "coord[%d] is given, but a single node between faces that are not Dirichlet has no "
                          "interval; use h[%d]",
                          a, a);
    for (int q = 0; d->coord[a] && q <= m; q++) {
        const double x = d->coord[a][q];
        if (!pgi_finite(x) || (q > 0 && !(x > d->coord[a][q - 1])))
            return pgi_refuse(text, PG_ERROR_ARGUMENT,
                              "coord[%d][%d] is %g; the %d coordinates along %s must be finite and increase strictly",
                              a, q, x, m + 1, pgi_axis_name[a]);
    }
    return PG_OK;
}

static pg_status pgi_check_metric(const pg_desc *d, int a, int periodic, char text[512])
{
    const int n = d->n[a];
    for (int i = 0; d->weight[a] && i < n; i++)
        if (!(d->weight[a][i] > 0) || !pgi_finite(d->weight[a][i]))
            return pgi_refuse(
                text, PG_ERROR_ARGUMENT,
                "weight[%d][%d] is %g; it must be positive and finite: where the metric is 0, give its mean over the "
                "control length, or use PG_CELL",
                a, i, d->weight[a][i]);
    for (int i = 0; d->conductance[a] && i <= n; i++) {
        const double k = d->conductance[a][i];
        const int end = !periodic && (i == 0 || i == n);
        if (!(k >= 0) || !pgi_finite(k) || (k == 0 && !end))
            return pgi_refuse(text, PG_ERROR_ARGUMENT, "conductance[%d][%d] is %g; it must be finite and positive%s", a,
                              i, k,
                              end        ? " or 0"
                              : periodic ? ", as the axis is periodic"
                                         : "");
    }
    if (periodic && d->conductance[a] && d->conductance[a][0] != d->conductance[a][n])
        return pgi_refuse(
            text, PG_ERROR_ARGUMENT,
            "conductance[%d] is %g at the low and %g at the high end; a periodic axis has one value there", a,
            d->conductance[a][0], d->conductance[a][n]);
    return PG_OK;
}

static pg_status pgi_check_axis(pg_desc *d, int a, char text[512])
{
    const int centring = pgi_number(d->centring[a]), n = d->n[a];
    if (centring != PG_NODE && centring != PG_CELL)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "centring[%d] is %d; it must be PG_NODE or PG_CELL", a, centring);
    PGI_TRY(pgi_check_ends(d, a, text));
    const pg_face *lo = &d->face[2 * a], *hi = lo + 1;
    const int periodic = lo->kind == PG_PERIODIC;
    const int m = periodic || centring == PG_CELL ? n : n - 1 + (lo->kind == PG_DIRICHLET) + (hi->kind == PG_DIRICHLET);
    PGI_TRY(pgi_check_spacing(d, a, m, text));
    PGI_TRY(pgi_check_metric(d, a, periodic, text));
    if (d->h[a] == 0 && !d->coord[a]) d->h[a] = m > 0 ? 1.0 / m : 1;
    return PG_OK;
}

// Coefficients must be numbers of the precision that the cycles work in, with room for sums and products.
static double pgi_largest(unsigned flags) { return flags & (PG_F32 | PG_MIXED) ? 1e36 : 1e150; }

// What the switches of compilation have left out.
static pg_status pgi_check_left_out(unsigned flags, char text[512])
{
    const char *name = NULL, *without = NULL, *instead = NULL;
    if (!PGI_F32 && flags & (PG_F32 | PG_MIXED))
        name = flags & PG_F32 ? "PG_F32" : "PG_MIXED", without = "PG_NO_F32", instead = "PG_F64";
    if (!PGI_DIRECT && flags & PG_DIRECT) name = "PG_DIRECT", without = "PG_NO_DIRECT", instead = "PG_FMG";
    if (!PGI_DIRECT && flags & PG_PRECOND_DIRECT)
        name = "PG_PRECOND_DIRECT", without = "PG_NO_DIRECT", instead = "PG_PRECOND_CYCLE or PG_PRECOND_AINV";
    if (!name) return PG_OK;
    return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                      "poisson_gpu.cu was compiled with %s, which leaves out %s; use %s, or compile it without %s",
                      without, name, instead, without);
}

// Has no face a coupling to what is outside?
static int pgi_is_closed(const pg_desc *d)
{
    for (int q = 0; q < 2 * d->dim; q++) {
        const double *const k = d->conductance[q / 2];
        if (k && k[q % 2 ? d->n[q / 2] : 0] == 0) continue;    // closed, whatever its kind
        if (d->face[q].kind == PG_DIRICHLET || (d->face[q].kind == PG_ROBIN && d->face[q].a != 0)) return 0;
    }
    return 1;
}

// The velocity of every axis, and that the method takes one.
static pg_status pgi_check_velocity(pg_desc *d, char text[512])
{
    for (int a = 0; a < d->dim; a++) {
        if (!pgi_finite(d->velocity[a]) || fabs(d->velocity[a]) > pgi_largest(d->flags))
            return pgi_refuse(text, PG_ERROR_ARGUMENT, "velocity[%d] is %g; it must be finite and at most %g", a,
                              d->velocity[a], pgi_largest(d->flags));
    }
    if (!pgi_convects(d)) {
        if (d->flags & PG_UPWIND)
            return pgi_refuse(text, PG_ERROR_ARGUMENT, "PG_UPWIND needs a velocity, and velocity is 0");
        return PG_OK;
    }
    const unsigned takes = PG_JACOBI | PG_RBGS | PG_SOR | PG_BICGSTAB | PG_PIPEBICGSTAB;
    if (!(d->flags & takes))
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "%s does not go with a velocity (%g, %g, %g), which makes A unsymmetric; use PG_BICGSTAB, "
                          "PG_PIPEBICGSTAB, or PG_JACOBI, PG_RBGS, PG_SOR",
                          pgi_method_name(d->flags), d->velocity[0], d->velocity[1], d->velocity[2]);
    if (d->flags & PG_PRECOND_CYCLE)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "PG_PRECOND_CYCLE does not go with a velocity (%g, %g, %g); use PG_PRECOND_AINV or "
                          "PG_PRECOND_DIRECT",
                          d->velocity[0], d->velocity[1], d->velocity[2]);
    if (d->flags & PG_MIXED)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "PG_MIXED does not go with a velocity (%g, %g, %g), where BiCGStab needs more than f32 from "
                          "its preconditioner; use PG_F64",
                          d->velocity[0], d->velocity[1], d->velocity[2]);
    return PG_OK;
}

static pg_status pgi_check_alpha(const pg_desc *d, double alpha, char text[512])
{
    const double largest = pgi_largest(d->flags), size = fabs(alpha);
    if (alpha == 0 && pgi_convects(d) && pgi_is_closed(d))
        return pgi_refuse(
            text, PG_ERROR_UNSUPPORTED,
            "alpha is 0 and no open face is Dirichlet or Robin: with a velocity (%g, %g, %g) the problem is singular; "
            "give alpha > 0 or such a face",
            d->velocity[0], d->velocity[1], d->velocity[2]);
    if (alpha < 0 && pgi_convects(d))
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "alpha is %g with a velocity, which needs alpha >= 0", alpha);
    if (alpha < 0 && !(d->flags & (PG_DIRECT | PG_FASTEST)))
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "alpha is %g with %s, which needs alpha >= 0; use PG_DIRECT%s",
                          alpha, pgi_method_name(d->flags), PGI_DIRECT ? "" : ", which PG_NO_DIRECT has left out");
    if (pgi_finite(alpha) && (alpha == 0 || (size >= 1 / largest && size <= largest))) return PG_OK;
    return pgi_refuse(text, PG_ERROR_ARGUMENT, "alpha is %g; its size must be 0, or %g to %g in this precision", alpha,
                      1 / largest, largest);
}

#if PGI_GPU
// The oldest architecture that the code is the same for: from 80 on copies are asynchronous, from 90 on there are
// clusters. See gpu_archs in meson_options.txt.
static int pgi_generation(int architecture) { return architecture >= 90 ? 90 : architecture >= 80 ? 80 : 75; }

// Is there a device that runs this code? Its number. warning: where there is, whether code made for it would be faster;
// where there is none, why the CPU was taken, if the caller leaves the choice.
static pg_status pgi_find_device(const pg_desc *d, int *device, char *warning, char text[512])
{
    int count = 0, major = 0, minor = 0, previous = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess || count == 0) {
        const char *reason = e != cudaSuccess ? cudaGetErrorString(e) : "none is there";
        cudaGetLastError();
        snprintf(warning, 160, "solved on the CPU, for no CUDA device can be used (%s)", reason);
        return pgi_refuse(text, PG_ERROR_NO_DEVICE, "no CUDA device can be used (%s); use PG_CPU or PG_AUTO", reason);
    }
    cudaGetDevice(&previous);
    *device = d->device > 0 ? d->device - 1 : previous;
    if (*device >= count)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "device is PG_DEVICE(%d), but there are only PG_DEVICE(0) to PG_DEVICE(%d)", *device,
                          count - 1);
    cudaFuncAttributes attributes;
    e = cudaSetDevice(*device);
    if (e == cudaSuccess) e = cudaFuncGetAttributes(&attributes, pgi_control_kernel);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, *device);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, *device);
    cudaSetDevice(previous);
    if (e != cudaSuccess) {
        cudaGetLastError();
        snprintf(warning, 160, "solved on the CPU, for CUDA device %d cannot run this code (%s): use -arch=native",
                 *device, cudaGetErrorString(e));
        return pgi_refuse(text, PG_ERROR_NO_DEVICE,
                          "CUDA device %d cannot run this code (%s); compile poisson_gpu.cu with -arch=native", *device,
                          cudaGetErrorString(e));
    }
    const int has = 10 * major + minor;
    const int built =
        attributes.binaryVersion < attributes.ptxVersion ? attributes.binaryVersion : attributes.ptxVersion;
    warning[0] = 0;
    if (pgi_generation(built) < pgi_generation(has))
        snprintf(warning, 160,
                 "compiled for sm_%d, this device is sm_%d: compile poisson_gpu.cu with -arch=sm_%d for full speed",
                 built, has, has);
    return PG_OK;
}
#endif

static pg_status pgi_check_backend(pg_desc *d, int *device, char *warning, char text[512])
{
    warning[0] = 0;
    *device = 0;
    const int memory = pgi_number(d->memory), backend = pgi_number(d->backend);
    if (memory != PG_MEM_HOST && memory != PG_MEM_DEVICE)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "memory is %d; it must be PG_MEM_HOST or PG_MEM_DEVICE", memory);
    if (backend < 0 || backend > PG_CPU)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "backend is %d; it must be PG_AUTO, PG_CUDA or PG_CPU", backend);
    if (d->device < 0)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "device is %d; it must be PG_DEVICE(k) with k >= 0, or 0 for the current device", d->device);
    if (d->backend != PG_CPU) {
#if PGI_GPU
        const pg_status status = pgi_find_device(d, device, warning, text);
#else
        const pg_status status =
            pgi_refuse(text, PG_ERROR_NO_DEVICE,
                       "poisson_gpu.cu was compiled %s; use PG_CPU or PG_AUTO, or compile it with nvcc%s",
                       pgi_no_cuda ? "with PG_NO_CUDA" : "without CUDA", pgi_no_cuda ? " and without PG_NO_CUDA" : "");
#endif
        if (status != PG_OK && (d->backend == PG_CUDA || status != PG_ERROR_NO_DEVICE)) return status;
        d->backend = status == PG_OK ? PG_CUDA : PG_CPU;
        if (d->backend == PG_CUDA) d->device = PG_DEVICE(*device);
        text[0] = 0;
    }
    if (d->memory == PG_MEM_DEVICE && warning[0] && d->backend == PG_CPU)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED, "memory is PG_MEM_DEVICE, but this is %s; use PG_MEM_HOST",
                          warning);
    if (d->backend == PG_CPU && d->memory == PG_MEM_DEVICE)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "memory is PG_MEM_DEVICE, but the CPU back end reads host arrays; use PG_MEM_HOST");
    return PG_OK;
}

// Is data in memory of the kind that the descriptor declares?
static pg_status pgi_check_kind(const pg_desc *d, const char *name, const void *data, char text[512])
{
#if PGI_GPU
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {    // no driver, so no device memory
        cudaGetLastError();
        return PG_OK;
    }
    const int on_device = attributes.type == cudaMemoryTypeDevice, managed = attributes.type == cudaMemoryTypeManaged;
    if (d->memory == PG_MEM_HOST && on_device)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "%s is a device pointer (%p), but memory is PG_MEM_HOST; set PG_MEM_DEVICE", name, data);
    if (d->memory == PG_MEM_DEVICE && !on_device && !managed)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "%s is a host pointer (%p), but memory is PG_MEM_DEVICE; set PG_MEM_HOST", name, data);
    if (on_device && attributes.device != d->device - 1)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "%s is on CUDA device %d, but the solver on device %d", name,
                          attributes.device, d->device - 1);
#else
    (void)d, (void)name, (void)data, (void)text;
#endif
    return PG_OK;
}

static pg_status pgi_check_face_array(const pg_desc *d, int q, const void *array, char text[512])
{
    const size_t element = d->flags & PG_F32 ? sizeof(float) : sizeof(double);
    if (!array) return PG_OK;
    if ((uintptr_t)array % element)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "the array of face %s (%p) is not aligned to its %zu-byte elements",
                          pgi_face_name[q], array, element);
    return pgi_check_kind(d, "a face array", array, text);
}

// Copies the caller's descriptor, resolves every default and checks every field.
static pg_status pgi_resolve(const pg_desc *caller, pg_desc *d, int *device, char *warning, char text[512])
{
    if (!caller) return pgi_refuse(text, PG_ERROR_ARGUMENT, "desc is NULL; pass the address of a pg_desc");
    if (caller->struct_size != 0 && caller->struct_size != sizeof *caller)
        return pgi_refuse(
            text, PG_ERROR_ARGUMENT,
            "desc.struct_size is %zu; it must be 0 or %zu: compile program and library with the same header",
            caller->struct_size, sizeof *caller);
    *d = *caller;
    d->struct_size = sizeof *d;
    PGI_TRY(pgi_check_size(d, text));
    PGI_TRY(pgi_check_flags(d, text));
    PGI_TRY(pgi_check_left_out(d->flags, text));
    PGI_TRY(pgi_check_velocity(d, text));
    PGI_TRY(pgi_check_options(d, text));
    PGI_TRY(pgi_check_strides(d, "stride_u", d->stride_u, text));
    PGI_TRY(pgi_check_strides(d, "stride_f", d->stride_f, text));
    for (int a = 0; a < d->dim; a++) PGI_TRY(pgi_check_axis(d, a, text));
    for (int a = d->dim; a < 3; a++) {
        d->centring[a] = PG_NODE;
        d->h[a] = 1;
        d->coord[a] = d->weight[a] = d->conductance[a] = NULL;
        for (int e = 0; e < 2; e++) {
            memset(&d->face[2 * a + e], 0, sizeof d->face[0]);
            d->face[2 * a + e].kind = PG_PERIODIC;
        }
    }
    PGI_TRY(pgi_check_alpha(d, d->alpha, text));
    if (!pgi_finite(d->beta) || d->beta < 0)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "beta is %g; it must be positive and finite", d->beta);
    if (d->beta == 0) d->beta = 1;
    if (!d->allocator.alloc != !d->allocator.free)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "allocator has only one of alloc and free; give both or none");
    PGI_TRY(pgi_check_backend(d, device, warning, text));
    for (int q = 0; q < 6; q++) {
        if (d->face[q].kind == PG_PERIODIC) d->face[q].array = NULL, d->face[q].value = 0;
        PGI_TRY(pgi_check_face_array(d, q, d->face[q].array, text));
    }
    return PG_OK;
}

static pg_status pgi_check_stop(const pg_solver *s, const pg_stop *caller, pg_stop *stop, char text[512])
{
    memset(stop, 0, sizeof *stop);
    if (caller) *stop = *caller;
    if (stop->struct_size != 0 && stop->struct_size != sizeof *stop)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "stop.struct_size is %zu; it must be 0 or %zu", stop->struct_size,
                          sizeof *stop);
    if (!pgi_finite(stop->rtol) || (stop->rtol < 0 && stop->rtol != PG_NONE))
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "stop.rtol is %g; it must be positive and finite, 0 for the default, or PG_NONE", stop->rtol);
    if (!pgi_finite(stop->atol) || stop->atol < 0)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "stop.atol is %g; it must be 0, or positive and finite", stop->atol);
    if (stop->min_iter < 0 || stop->max_iter < 0 || stop->check < 0)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "stop.min_iter, max_iter, check are %d, %d, %d; none may be negative", stop->min_iter,
                          stop->max_iter, stop->check);
    const int norm = pgi_number(stop->norm), guess = pgi_number(stop->guess);
    if (norm < 0 || norm > PG_NORM_L1)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "stop.norm is %d; see pg_norm_kind", norm);
    if (guess < 0 || guess > PG_GUESS_U)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "stop.guess is %d; see pg_guess", guess);
    if (stop->relative_to_first != 0 && stop->relative_to_first != 1)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "stop.relative_to_first is %d; it must be 0 or 1",
                          stop->relative_to_first);
    if (stop->rtol == 0 && stop->atol == 0) stop->rtol = s->desc.flags & PG_F32 ? 1e-5 : 1e-8;
    if (stop->rtol == PG_NONE) stop->rtol = 0;
    const int checked = stop->rtol > 0 || stop->atol > 0;
    if (stop->max_iter == 0) stop->max_iter = !checked ? 1 : s->multigrid || s->is_direct ? 100 : 10000;
    if (stop->min_iter > stop->max_iter)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "stop.min_iter is %d, above max_iter, which is %d", stop->min_iter,
                          stop->max_iter);
    if (stop->check == 0) stop->check = s->multigrid || s->is_direct || s->krylov ? 1 : 10;
    const int limit = INT32_MAX / 2 - PGI_MAX_SWEEPS;    // iterations + check must stay an int
    if (stop->max_iter > limit) stop->max_iter = limit;
    if (stop->min_iter > limit) stop->min_iter = limit;
    if (stop->check > limit) stop->check = limit;
    if (stop->guess == PG_GUESS_DEFAULT)
        stop->guess = s->desc.flags & (PG_FMG | PG_DIRECT) || s->accelerated ? PG_GUESS_ZERO : PG_GUESS_U;
    if (s->is_direct && !s->mixed) {    // exactly one solve, whatever the guess; a second one would only repeat it
        stop->guess = PG_GUESS_ZERO;
        stop->min_iter = stop->check = 1;
        stop->max_iter = checked ? 2 : 1;
    }
    return PG_OK;
}

// Elements from the first to behind the last one.
static int64_t pgi_extent(const pg_desc *d, const int64_t stride[3])
{
    return d->n[0] + (d->n[1] - 1) * stride[0] + (d->n[2] - 1) * stride[1] + (d->batch - 1) * stride[2];
}

// Is the distance one between elements of two windows that are nested alike?
static int pgi_meets(const pgi_nest &nest, int levels, int64_t nx, int64_t distance)
{
    if (levels == 0) return distance > -nx && distance < nx;
    const int64_t stride = nest.stride[levels - 1], count = nest.count[levels - 1], near = distance / stride;
    for (int64_t p = near - 1; p <= near + 1; p++)
        if (p > -count && p < count && pgi_meets(nest, levels - 1, nx, distance - p * stride)) return 1;
    return 0;
}

// Do two windows share an element? Windows of one array may interleave: with equal strides the distance decides.
static int pgi_overlap(const pg_desc *d, const void *x, const int64_t sx[3], const void *y, const int64_t sy[3],
                       size_t element)
{
    const intptr_t bytes = (intptr_t)element, a = (intptr_t)x, b = (intptr_t)y;
    if (a + pgi_extent(d, sx) * bytes <= b || b + pgi_extent(d, sy) * bytes <= a) return 0;
    const pgi_nest nest = pgi_nest_of(d, sx), other = pgi_nest_of(d, sy);
    for (int q = 0; q < nest.levels; q++)
        if (nest.stride[q] != other.stride[q] || nest.count[q] != other.count[q]) return 1;
    return (b - a) % bytes || pgi_meets(nest, nest.levels, d->n[0], (b - a) / bytes);
}

// One array of a call: there, aligned to its element, and of the declared kind.
static pg_status pgi_check_array(const pg_solver *s, const char *name, const void *data, char text[512])
{
    const size_t element = pgi_element(s->desc.flags);
    if (!data) return pgi_refuse(text, PG_ERROR_ARGUMENT, "%s is NULL", name);
    if ((uintptr_t)data % element)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "%s (%p) is not aligned to its %zu-byte elements", name, data,
                          element);
    return pgi_check_kind(&s->desc, name, data, text);
}

// -------------------------------------------------------------------------------------------------------------------
// >>public
// -------------------------------------------------------------------------------------------------------------------

// The device of the handle is current while a call lasts.
static int pgi_make_current(const pg_solver *s)
{
    int previous = 0;
#if PGI_GPU
    if (s->cuda && cudaGetDevice(&previous) == cudaSuccess && previous != s->device) cudaSetDevice(s->device);
#else
    (void)s;
#endif
    return previous;
}

static void pgi_restore_current(const pg_solver *s, int previous)
{
#if PGI_GPU
    if (s->cuda && previous != s->device) cudaSetDevice(previous);
#else
    (void)s, (void)previous;
#endif
}

#if PGI_GPU
static int pgi_capturing(const pg_solver *s)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (s->cuda && cudaStreamIsCapturing((cudaStream_t)s->desc.stream, &status) != cudaSuccess) cudaGetLastError();
    return status != cudaStreamCaptureStatusNone;
}

#endif

static void *pgi_allocate(pg_solver *s)
{
    const pg_desc *d = &s->desc;
    const pg_memory kind = s->cuda ? PG_MEM_DEVICE : PG_MEM_HOST;
    if (d->workspace) return d->workspace;
    s->owns_workspace = 1;
    if (d->allocator.alloc) return d->allocator.alloc(d->allocator.user, s->bytes, kind, d->stream);
#if PGI_GPU
    if (s->cuda) {
        void *p = NULL;
        if (cudaMalloc(&p, s->bytes) != cudaSuccess) {
            cudaGetLastError();
            p = NULL;
        }
        return p;
    }
#endif
    return aligned_alloc(PGI_ALIGN, s->bytes);    // a multiple of PGI_ALIGN
}

static void pgi_release(pg_solver *s)
{
    const pg_desc *d = &s->desc;
    if (!s->workspace || !s->owns_workspace) return;
    if (d->allocator.free) {
        d->allocator.free(d->allocator.user, s->workspace, s->bytes, s->cuda ? PG_MEM_DEVICE : PG_MEM_HOST, d->stream);
        return;
    }
#if PGI_GPU
    if (s->cuda) {
        cudaFree(s->workspace);
        return;
    }
#endif
    free(s->workspace);
}

#if PGI_GPU
// The graphs of the solves: guess zero or u, with checks or without.
static void pgi_record_graphs(pg_solver *s)
{
#if PGI_CONDITIONAL
    int driver = 0;
    PGI_CUDA(s, cudaDriverGetVersion(&driver));
    if (driver < 12040) return;
    for (int q = 0; q < 4; q++) PGI_CUDA(s, cudaStreamCreateWithFlags(&s->side[q], cudaStreamNonBlocking));
    for (int variant = 0; variant < 6 && s->failed == PG_OK; variant++) {
        cudaGraph_t graph = NULL;
        s->guess_zero = variant & 1;
        s->checked = variant > 1;
        s->with_floor = variant > 3;
        s->recording = 1;
        s->stream = s->side[0];
        s->depth = 1;
        PGI_CUDA(s, cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeRelaxed));
        s->program(s);
        const cudaError_t e = cudaStreamEndCapture(s->side[0], &graph);
        PGI_CUDA(s, e);
        PGI_CUDA(s, cudaGraphInstantiateWithFlags(&s->graph[variant], graph, 0));
        PGI_CUDA(s, cudaGraphUpload(s->graph[variant], s->side[0]));
        PGI_CUDA(s, cudaStreamSynchronize(s->side[0]));
        if (graph) cudaGraphDestroy(graph);
    }
    s->recording = s->depth = 0;
#else
    PGI_CUDA(s, cudaMallocHost((void **)&s->ended, sizeof *s->ended));
    if (s->ended) *s->ended = 0;
#endif
}
#endif

static void pgi_upload(pg_solver *s, const char *mirror, size_t bytes)
{
#if PGI_GPU
    if (s->cuda) {
        // On the caller's stream, after which an allocator may order the memory; the mirror must live until the copy is
        // done.
        const cudaStream_t stream = (cudaStream_t)s->desc.stream;
        PGI_CUDA(s, cudaMemcpyAsync(s->workspace, mirror, bytes, cudaMemcpyHostToDevice, stream));
        PGI_CUDA(s, cudaMemcpyAsync(s->state, &s->host, sizeof s->host, cudaMemcpyHostToDevice, stream));
        PGI_CUDA(s, cudaStreamSynchronize(stream));
        pgi_record_graphs(s);
        return;
    }
#endif
    memcpy(s->workspace, mirror, bytes);
    *s->state = s->host;
}

// The same for the coefficients of the finest level.
static pg_status pgi_check_tables(const pg_desc *d, pgi_line *const line[3], char text[512])
{
    const int single = d->flags & (PG_F32 | PG_MIXED) ? 1 : 0;
    const double largest = pgi_largest(d->flags), smallest = 1 / largest;
    for (int a = 0; a < 3; a++) {
        for (int i = 0; i < line[a]->n && !line[a]->absent; i = pgi_line_next(line[a], i)) {
            double row[4];
            pgi_line_row(line[a], i, row);
            const double c = d->beta * row[3];
            if (!(pgi_finite(c) && c >= smallest && c <= largest) && !(c == 0 && line[a]->n == 1)) {
                const int axis = d->dim == 2 && a > 0 ? 3 - a : a;    // the caller's
                return pgi_refuse(
                    text, PG_ERROR_ARGUMENT,
                    "h[%d] (%g), coord or metric and beta give the coefficient %g along %s; it must be %g to "
                    "%g in %s: rescale the lengths",
                    axis, d->h[a], c, pgi_axis_name[axis], smallest, largest, single ? "f32" : "f64");
            }
        }
    }
    return PG_OK;
}

// ---- PG_FASTEST: a model of the time to the default tolerance ----
#if PGI_DIRECT

// Nanoseconds. Measured on one core of an EPYC and (estimates from the bench) on an H200.
struct pgi_costs {
    double direct, rest;               // PG_DIRECT: at least; a point
    double column, work;               // along each axis transformed: a point; this times pgi_transform_work
    double exact, plane, product;      // multigrid of one level: at least; a point; a term of its sums
    double level, cycles, by_lines;    // other multigrid: a level; a point of any level; this times with lines
    double line,
        line_cycles;    // in 1D, beside `rest` and in place of `cycles`: a point; twice if nothing holds the ends
};
static const pgi_costs pgi_known_costs[2][2] = {    // CPU, GPU; f64, f32 (and PG_MIXED)
    {{12000, 24, 16.6, 1.2, 8500, 23.5, 0.234, 2e4, 215, 5.5, 0, 215},
     {12000, 16, 18, 1.3, 8500, 27, 0.135, 2e4, 142, 5.5, 0, 142}},
    {{5e4, 0.02, 0, 0.006, 6e4, 0.5, 0.01, 3e5, 0.45, 30, 3.6, 0.95},
     {5e4, 0.01, 0.004, 0.002, 6e4, 0.5, 0.01, 3e5, 0.16, 40, 3.4, 0.7}}};

static const pgi_costs *pgi_costs_of(const pg_desc *d)
{
    return &pgi_known_costs[d->backend == PG_CUDA][d->flags & (PG_F32 | PG_MIXED) ? 1 : 0];
}

static double pgi_direct_time(const pg_desc *d, pgi_line *const line[3], int axis)
{
    const pgi_costs *c = pgi_costs_of(d);
    const int ends_hold = axis >= 0 && !line[axis]->periodic && !pgi_line_singular(line[axis]);
    double points = d->batch, point = c->rest + (d->dim == 1 ? c->line * (ends_hold ? 1 : 2) : 0);
    for (int a = 0; a < 3; a++) {
        points *= line[a]->n;
        if (a != axis && line[a]->n > 1) point += c->column + c->work * pgi_transform_work(d, line[a]);
    }
    return c->direct + points * point;
}

// How often multigrid of one level solves: more than once only in f32, where round-off leaves a residual above the
// tolerance. Its size is that of a right-hand side of random numbers.
static int pgi_exact_solves(const pg_desc *d, pgi_line *const line[3], double points)
{
    const int uniform = line[0]->uniform && line[1]->uniform && line[2]->uniform;
    if (!(d->flags & PG_F32) || !uniform) return 1;
    const pgi_spectrum spectrum = pgi_find_spectrum(d, line);
    const double lowest = spectrum.smallest + d->alpha > 0 ? spectrum.smallest + d->alpha : spectrum.next;
    const double floor = FLT_EPSILON * spectrum.diagonal / lowest / sqrt(points);
    return floor < 2e-5 ? 1 : 5;
}

static double pgi_multigrid_time(const pg_desc *d, pgi_line *const line[3])
{
    const pgi_costs *c = pgi_costs_of(d);
    double points = 1, sum = 0, largest = 1, next = 1;
    int chosen[3];
    for (int a = 0; a < 3; a++) {
        points *= line[a]->n;
        if (line[a]->n > 1) sum += line[a]->n;
        largest = fmax(largest, line[a]->n);
    }
    if (pgi_is_coarsest(line, -1, d->coarsest))
        return d->batch * pgi_exact_solves(d, line, points) * (c->exact + points * (c->plane + c->product * sum));
    const int along = pgi_choose_line_axis(d, line);
    pgi_choose_axes(line, along, chosen);
    for (int a = 0; a < 3; a++)
        if (chosen[a]) next /= 2;
    const double all = next < 1 ? points / (1 - next) : points;    // of all levels
    const double cycles = d->dim == 1 ? c->line_cycles : c->cycles;
    return d->batch * (c->level * fmax(1, log2(largest / 32)) + all * cycles * (along >= 0 ? c->by_lines : 1));
}

// Whether PG_FASTEST is PG_DIRECT. If not, says why.
static int pgi_direct_is_faster(const pg_desc *d, pgi_line *const line[3], char chosen[96])
{
    int other;
    const int axis = pgi_line_axis(d, line, &other);
    const auto name = [&](int a) { return pgi_axis_name[d->dim == 2 && a > 0 ? 3 - a : a]; };
    if (other >= 0) {
        snprintf(chosen, 96, "PG_FMG: %s and %s both have coord, a metric or a Robin face", name(axis), name(other));
        return 0;
    }
    if (d->alpha < 0) return !(axis >= 0 && line[axis]->periodic && !pgi_can_transform(line[axis]));
    const double direct = pgi_direct_time(d, line, axis), multigrid = pgi_multigrid_time(d, line);
    int worst = -1;
    for (int a = 0; a < 3; a++)
        if (a != axis && (worst < 0 || pgi_line_factor(line[a]) > pgi_line_factor(line[worst]))) worst = a;
    const int factor = pgi_line_factor(line[worst]);
    if (factor > PGI_RADIX && multigrid < direct)
        snprintf(chosen, 96, "PG_FMG: transforms along %s would have the large prime factor %d", name(worst), factor);
    else
        snprintf(chosen, 96, "PG_FMG: so few points are solved at once by the eigenvectors of their axes");
    return direct <= multigrid;
}

// What PG_FASTEST's PG_DIRECT does, once that is planned.
static void pgi_describe_direct(pg_solver *s)
{
    const pgi_direct *d = &s->direct;
    const char *begin = ": transforms along ";
    char *text = s->chosen;
    const auto add = [&](const char *what) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof s->chosen - used, "%s", what);
    };
    if (!text[0]) return;
    if (d->exact || d->small.blocks) {
        add(": products with the eigenvectors of the axes");
        return;
    }
    for (int q = 0; q < 3; q++) {
        const int a = s->desc.dim == 2 && q > 0 ? 3 - q : q;
        if (!pgi_is_transformed(s, a)) continue;
        add(begin), add(pgi_axis_name[q]);
        begin = ", ";
    }
    if (d->lines.line < 0) return;
    add(begin[0] == ',' ? ", elimination along " : ": elimination along ");
    add(pgi_axis_name[s->desc.dim == 2 && d->lines.line > 0 ? 3 - d->lines.line : d->lines.line]);
}

// What PG_PRECOND_DIRECT solves for.
static void pgi_describe_near(pg_solver *s, const pgi_hierarchy *h)
{
    char axes[16] = "";
    for (int q = 0; q < 3; q++) {
        const int a = s->desc.dim == 2 && q > 0 ? 3 - q : q;
        if (!pgi_is_replaced(h, a)) continue;
        const size_t used = strlen(axes);
        snprintf(axes + used, sizeof axes - used, "%s%s", used ? ", " : "", pgi_axis_name[q]);
    }
    const char *const still = pgi_convects(&s->desc) ? " without its velocity" : "";
    snprintf(s->chosen, sizeof s->chosen, "%s, PG_PRECOND_DIRECT: of A%s%s%s", pgi_method_name(s->desc.flags),
             axes[0] || *still ? still : " itself", axes[0] ? " with uniform " : "", axes);
}

#else

static int pgi_direct_is_faster(const pg_desc *, pgi_line *const *, char chosen[96])
{
    snprintf(chosen, 96, "PG_FMG: poisson_gpu.cu was compiled with PG_NO_DIRECT");
    return 0;
}
static void pgi_describe_direct(pg_solver *) {}
static void pgi_describe_near(pg_solver *, const pgi_hierarchy *) {}
#endif

static pg_status pgi_choose_method(pg_solver *s, char text[512])
{
    pg_desc *d = &s->desc, work;
    if (!(d->flags & PG_FASTEST)) return PG_OK;
    pgi_turn(d, &work);
    pgi_hierarchy *h = pgi_hierarchy_create(&work, 0);
    if (!h) return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory for the tables of the axes");
    const int direct = pgi_direct_is_faster(&work, h->line[0], s->chosen);
    pgi_hierarchy_free(h);
    d->flags = (d->flags & ~(unsigned)PG_FASTEST) | (direct ? PG_DIRECT : PG_FMG);
    if (direct) d->flags &= ~(unsigned)PG_KEEP_CYCLES, d->inner_cycles = 1;
    if (direct) snprintf(s->chosen, sizeof s->chosen, "PG_DIRECT");
    return pgi_check_alpha(d, d->alpha, text);
}

// Where cycles would be slow they are exact or, on too many points for that, PG_FMG is conjugate gradients around the
// cycle.
static void pgi_replace_slow_cycles(pg_solver *s, const pgi_hierarchy *h)
{
    int axis[2];
    double variation[2];
    if (!h->exact && !(h->slow && s->desc.flags & PG_FMG)) return;
    s->accelerated = !h->exact;
    pgi_is_wild(&s->work, h->line[0], axis, variation);
    const auto name = [&](int a) { return pgi_axis_name[s->desc.dim == 2 && a > 0 ? 3 - a : a]; };
    snprintf(s->chosen, sizeof s->chosen, "%s%s: spacing or metric vary by %.3g along %s, %.3g along %s",
             pgi_method_name(s->desc.flags), h->exact ? ", solved exactly" : " accelerated by PG_CG", variation[0],
             name(axis[0]), variation[1], name(axis[1]));
    if (h->exact) {
        s->desc.inner_cycles = 1;    // a second one would find what the first one has found
    } else {
        s->desc.flags = (s->desc.flags & ~(unsigned)PG_FMG) | PG_CG | PG_PRECOND_CYCLE | PG_SYMMETRIC;
        s->desc.nu_pre = s->desc.nu_post = s->desc.nu_pre > s->desc.nu_post ? s->desc.nu_pre : s->desc.nu_post;
    }
}

// Plans PG_DIRECT, for A or for what preconditions it.
static pg_status pgi_prepare_direct(pg_solver *s, pgi_hierarchy *lines, char text[512])
{
    if (s->krylov && !(lines->near = pgi_near_create(&s->work, lines)))
        return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory for the tables of PG_PRECOND_DIRECT");
    const int previous = pgi_make_current(s);
    const pg_status status = pgi_plan_direct(s, (lines->near ? lines->near : lines)->line[0], text);
    pgi_restore_current(s, previous);
    if (status != PG_OK) return status;
    if (s->krylov)
        pgi_describe_near(s, lines);
    else
        pgi_describe_direct(s);
    return PG_OK;
}

// Everything of a solver that needs no workspace. The lines are the caller's to free.
static pg_status pgi_prepare(const pg_desc *desc, pg_solver *s, pgi_hierarchy **lines, char text[512])
{
    PGI_TRY(pgi_resolve(desc, &s->desc, &s->device, s->warning, text));
    PGI_TRY(pgi_choose_method(s, text));
    s->cuda = s->desc.backend == PG_CUDA;
#if PGI_GPU
    if (s->cuda) {
        const int previous = pgi_make_current(s);
        PGI_CUDA(s, cudaDeviceGetAttribute(&s->multiprocessors, cudaDevAttrMultiProcessorCount, s->device));
        PGI_CUDA(s, cudaDeviceGetAttribute(&s->shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, s->device));
        s->clusters = pgi_cuda_clusters(s);
        pgi_restore_current(s, previous);
        if (s->failed) return pgi_refuse(text, s->failed, "%s", s->error);
    }
#endif
    s->staged = s->cuda && s->desc.memory == PG_MEM_HOST;
    s->multigrid = s->desc.flags & (pgi_cycle_methods | PG_PRECOND_CYCLE) ? 1 : 0;
    s->observe = pgi_monitor;
    s->program = pgi_program;
    pgi_turn(&s->desc, &s->work);
    *lines = pgi_hierarchy_create(&s->work, s->multigrid);
    if (!*lines)
        return pgi_refuse(text, PG_ERROR_MEMORY,
                          "not enough host memory for the tables of %d + %d + %d unknowns along the axes", s->desc.n[0],
                          s->desc.n[1], s->desc.n[2]);
    s->by_lines = (*lines)->along >= 0;
    pgi_replace_slow_cycles(s, *lines);
    if (s->multigrid && !(s->desc.flags & pgi_smoothers) && !(*lines)->exact)
        s->desc.flags |= s->by_lines ? PG_SMOOTH_LINES : PG_SMOOTH_RBGS;
    pgi_turn(&s->desc, &s->work);
    const unsigned flags = s->desc.flags;
    s->mixed = flags & PG_MIXED ? 1 : 0;
    s->krylov = flags & pgi_krylov_methods ? 1 : 0;
    s->is_direct = flags & PG_DIRECT ? 1 : 0;
    s->has_direct = flags & (PG_DIRECT | PG_PRECOND_DIRECT) ? 1 : 0;
    s->ops = pgi_ops_of(s->cuda, flags & (PG_F32 | PG_MIXED) ? 1 : 0);
    s->outer_ops = pgi_ops_of(s->cuda, flags & PG_F32 ? 1 : 0);
    PGI_TRY(pgi_check_tables(&s->work, (*lines)->line[0], text));
    if (s->has_direct) PGI_TRY(pgi_prepare_direct(s, *lines, text));
    pgi_arena measure = {NULL, NULL, 0};
    pgi_layout(s, *lines, &measure);
    s->bytes = (measure.used + PGI_ALIGN - 1) / PGI_ALIGN * PGI_ALIGN;
    return PG_OK;
}

// The caller's workspace, if it will do, or one of our own.
static pg_status pgi_take_workspace(pg_solver *s, char text[512])
{
    const pg_desc *d = &s->desc;
    if (d->workspace && d->workspace_bytes < s->bytes)
        return pgi_refuse(text, PG_ERROR_MEMORY, "the workspace has %zu bytes, but %zu are needed; see %s",
                          d->workspace_bytes, s->bytes, s->dense ? "pg_dense_workspace_bytes" : "pg_workspace_bytes");
    if (d->workspace && (uintptr_t)d->workspace % PGI_ALIGN)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "the workspace (%p) is not aligned to %d bytes", d->workspace,
                          (int)PGI_ALIGN);
    if (d->workspace) {
        pg_desc as_used = *d;
        as_used.memory = s->cuda ? PG_MEM_DEVICE : PG_MEM_HOST;
        PGI_TRY(pgi_check_kind(&as_used, "the workspace", d->workspace, text));
    }
    s->workspace = (char *)pgi_allocate(s);
    if (!s->workspace)
        return pgi_refuse(
            text, PG_ERROR_MEMORY,
            "%zu bytes of %s memory for the workspace are not to be had; use PG_F32 or a smaller grid, or free some",
            s->bytes, s->cuda ? "device" : "host");
    if ((uintptr_t)s->workspace % PGI_ALIGN)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "allocator.alloc returned %p, which is not aligned to %d bytes",
                          (void *)s->workspace, (int)PGI_ALIGN);
    return PG_OK;
}

// The weight or over-relaxation of sweeps.
static void pgi_choose_omega(pg_solver *s)
{
    const pg_desc *d = &s->desc;
    if (d->flags & PG_JACOBI)
        s->desc.omega = d->omega > 0 ? d->omega : 2.0 * d->dim / (2 * d->dim + 1);
    else if (d->flags & PG_RBGS)
        s->desc.omega = 1;
    else if ((d->flags & PG_SOR) && d->omega == 0) {
        s->choose_omega = !pgi_convects(d);    // Young's theory is of symmetric matrices
        s->desc.omega = pgi_convects(d) ? 1 : pgi_choose_sor_omega(&s->spectrum, d->alpha, d->flags);
    }
}

static pg_status pgi_build(pg_solver *s, pgi_hierarchy *lines, char text[512])
{
    const pg_desc *d = &s->desc;
#if PGI_GPU
    if (pgi_capturing(s))
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "a solver cannot be created while its stream is being captured; create it before");
#endif
    PGI_TRY(pgi_take_workspace(s, text));
    pgi_arena measure = {NULL, NULL, 0};
    const size_t table_bytes = pgi_layout(s, lines, &measure);
    char *mirror = (char *)calloc(1, table_bytes + PGI_ALIGN);
    if (!mirror)
        return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory for %zu bytes of tables", table_bytes);
    pgi_arena arena = {s->workspace, mirror, 0};
    pgi_layout(s, lines, &arena);
    for (int l = 0; l < s->levels; l++) pgi_choose_weights(d, &s->level[l]);

    s->may_be_singular = !pgi_convects(&s->desc);    // else w is no left null vector, and alpha > 0
    s->volume = 1;
    for (int a = 0; a < 3; a++) {
        const pgi_line *line = lines->line[0][a];
        s->host.volume = s->volume *= pgi_line_volume(line);
        s->may_be_singular = s->may_be_singular && pgi_line_singular(line);
    }
    s->spectrum = pgi_find_spectrum(d, lines->line[0]);
    if (s->mixed && s->may_be_singular && s->spectrum.next < DBL_MAX) s->lowest = s->spectrum.next;
    pgi_choose_omega(s);
    s->host.outcome = PG_NOT_RUN;
    pgi_upload(s, mirror, table_bytes);
    free(mirror);
    for (int a = 0; a < 3; a++) s->desc.coord[a] = s->desc.weight[a] = s->desc.conductance[a] = NULL;
    s->desc.workspace_bytes = s->bytes;
    s->desc.workspace = s->workspace;
    if (s->failed) snprintf(text, 512, "%s", s->error);
    return s->failed;
}

extern "C" {

PG_API void pg_destroy(pg_solver *s)
{
    if (!s) return;
    const int previous = pgi_make_current(s);
#if PGI_GPU
    if (s->cuda) {
        if (s->workspace) cudaStreamSynchronize((cudaStream_t)s->desc.stream);
        for (int q = 0; q < 6; q++)
            if (s->graph[q]) cudaGraphExecDestroy(s->graph[q]);
        for (int q = 0; q < 4; q++)
            if (s->side[q]) cudaStreamDestroy(s->side[q]);
#if !PGI_CONDITIONAL
        if (s->ended) cudaFreeHost(s->ended);
#endif
    }
#endif
    pgi_forget_direct(s);
    pgi_release(s);
    pgi_restore_current(s, previous);
    free(s);
}

PG_API pg_status pg_create(const pg_desc *desc, pg_solver **solver)
{
    char *text = pgi_thread_error;
    text[0] = 0;
    if (!solver) return pgi_refuse(text, PG_ERROR_ARGUMENT, "solver is NULL; pass the address of a pg_solver pointer");
    *solver = NULL;
    pg_solver *s = (pg_solver *)calloc(1, sizeof *s);
    if (!s) return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory for a solver (%zu bytes)", sizeof *s);
    pgi_hierarchy *lines = NULL;
    pg_status status = pgi_prepare(desc, s, &lines, text);
    if (status == PG_OK) {
        const int previous = pgi_make_current(s);
        status = pgi_build(s, lines, text);
        pgi_restore_current(s, previous);
    }
    pgi_hierarchy_free(lines);
    if (status != PG_OK) {
        pg_destroy(s);
        return status;
    }
    *solver = s;
    return PG_OK;
}

PG_API pg_status pg_workspace_bytes(const pg_desc *desc, size_t *bytes)
{
    char *text = pgi_thread_error;
    text[0] = 0;
    if (!bytes) return pgi_refuse(text, PG_ERROR_ARGUMENT, "bytes is NULL; pass the address of a size_t");
    *bytes = 0;
    pg_solver *s = (pg_solver *)calloc(1, sizeof *s);
    if (!s) return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory (%zu bytes)", sizeof *s);
    pgi_hierarchy *lines = NULL;
    const pg_status status = pgi_prepare(desc, s, &lines, text);
    if (status == PG_OK) *bytes = s->bytes;
    pgi_hierarchy_free(lines);
    pg_destroy(s);
    return status;
}

PG_API pg_status pg_query_desc(const pg_solver *s, pg_desc *desc)
{
    pgi_thread_error[0] = 0;
    if (!s || !desc) return pgi_refuse(pgi_thread_error, PG_ERROR_ARGUMENT, "%s is NULL", s ? "desc" : "solver");
    *desc = s->desc;
    if (desc->nu_pre == 0) desc->nu_pre = PG_NONE;    // so that the descriptor creates the same solver again
    if (desc->nu_post == 0) desc->nu_post = PG_NONE;
    if (s->owns_workspace) desc->workspace = NULL;
    return PG_OK;
}

}    // extern "C"

#if PGI_GPU
// Copies a window between the caller's host array and a packed device copy: at once where it is packed too, else in
// planes, as their stride need not be a multiple of the rows'.
static void pgi_stage_problem(pg_solver *s, void *host, const int64_t stride[3], void *device, int to_device)
{
    const size_t element = pgi_element(s->desc.flags), nx = (size_t)s->desc.n[0], ny = (size_t)s->desc.n[1],
                 nz = (size_t)s->desc.n[2];
    const size_t row = nx * element, plane = ny * row;
    const cudaMemcpyKind kind = to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    const int rows_packed = ny == 1 || (size_t)stride[0] == nx,
              packed = rows_packed && (nz == 1 || (size_t)stride[1] == nx * ny);
    for (size_t k = 0; k < (packed ? 1 : nz); k++) {
        char *h = (char *)host + k * (size_t)stride[1] * element, *d = (char *)device + k * plane;
        if (rows_packed)
            PGI_CUDA(
                s, cudaMemcpyAsync(to_device ? d : h, to_device ? h : d, packed ? nz * plane : plane, kind, s->stream));
        else
            PGI_CUDA(s, cudaMemcpy2DAsync(to_device ? d : h, to_device ? row : (size_t)stride[0] * element,
                                          to_device ? h : d, to_device ? (size_t)stride[0] * element : row, row, ny,
                                          kind, s->stream));
    }
}
#endif

// Where a problem of a batch begins.
static char *pgi_problem_at(const pg_solver *s, const void *data, const int64_t stride[3], int problem)
{
    return (char *)data + problem * stride[2] * (int64_t)pgi_element(s->desc.flags);
}

// The bytes of one problem's boundary data on a face.
static size_t pgi_face_bytes(const pg_solver *s, int q)
{
    return (size_t)s->work.n[pgi_plane_axis(q, 0)] * (size_t)s->work.n[pgi_plane_axis(q, 1)] *
           pgi_element(s->desc.flags);
}

#if PGI_GPU
static char *pgi_staged_at(const pg_solver *s, pgi_grid stage, int problem)
{
    return (char *)stage.base + problem * stage.problem * (int64_t)pgi_element(s->desc.flags);
}

static void pgi_stage(pg_solver *s, void *host, const int64_t stride[3], pgi_grid stage, int to_device)
{
    const int *const n = s->desc.n;
    if ((n[1] == 1 || stride[0] == n[0]) && (n[2] == 1 || stride[1] == (int64_t)n[0] * n[1]) &&
        (s->desc.batch == 1 || stride[2] == stage.problem)) {
        const size_t bytes = (size_t)s->desc.batch * (size_t)stage.problem * pgi_element(s->desc.flags);
        PGI_CUDA(s, cudaMemcpyAsync(to_device ? stage.base : host, to_device ? host : stage.base, bytes,
                                    to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, s->stream));
        return;
    }
    for (int q = 0; q < s->desc.batch; q++)
        pgi_stage_problem(s, pgi_problem_at(s, host, stride, q), stride, pgi_staged_at(s, stage, q), to_device);
}
#endif

// Begins the work of a call. Host arrays are copied to the GPU: all problems at once. Any of read_u, read_f says that
// the array's contents matter.
static pg_status pgi_enter_call(pg_solver *s, const void *u, const void *f, int read_u, int read_f)
{
#if PGI_GPU
    if (s->cuda) {
        s->stream = (cudaStream_t)s->desc.stream;
        s->recording = pgi_capturing(s);
        s->depth = 0;
        if (s->recording && s->staged)
            return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                              "host arrays cannot be copied while the stream is being captured; use PG_MEM_DEVICE");
        if (s->staged) {
            if (read_u) pgi_stage(s, (void *)u, s->desc.stride_u, s->stage_u, 1);
            if (read_f) pgi_stage(s, (void *)f, s->desc.stride_f, s->stage_f, 1);
            for (int q = 0; q < 6; q++)
                if (s->work.face[q].array)
                    PGI_CUDA(s, cudaMemcpyAsync(s->stage_face[q], s->work.face[q].array,
                                                (size_t)s->desc.batch * pgi_face_bytes(s, q), cudaMemcpyHostToDevice,
                                                s->stream));
        }
        return s->failed;
    }
#else
    (void)u, (void)f, (void)read_u, (void)read_f;
#endif
    return s->failed;
}

// A bound of ||D u|| / ||f||: the largest diagonal over the smallest eigenvalue that f can meet.
static double pgi_gain(const pgi_spectrum *spectrum, double alpha)
{
    double least = spectrum->smallest + alpha;
    if (least == 0) least = spectrum->next;
    return least > 0 ? (spectrum->largest_diagonal + alpha) / least : DBL_MAX;
}

// The floor of the residual over the round-off of D u, see pgi_floor_of.
static double pgi_spread_of(const pg_solver *s)
{
    return s->is_direct && !s->mixed ? 16 : s->dense || s->desc.flags & PG_SOR ? 3 : 1;
}

static double pgi_epsilon(const pg_solver *s) { return s->desc.flags & PG_F32 ? FLT_EPSILON : DBL_EPSILON; }

// Whether round-off may keep the residual above a tolerance. Only an rtol can be compared with a bound beforehand.
static int pgi_floor_can_matter(const pg_solver *s, const pg_stop *stop)
{
    if (stop->atol > 0 || stop->relative_to_first || (s->may_be_singular && s->desc.alpha == 0)) return 1;
    const double bound = pgi_epsilon(s) * (pgi_spread_of(s) * pgi_gain(&s->spectrum, s->desc.alpha) + 1);
    return !(bound < stop->rtol / 5);
}

// Puts the arguments of a call where the operations find them, for one problem of the batch.
static void pgi_enter_problem(pg_solver *s, const void *u, const void *f, const pg_stop *stop, int problem)
{
    pgi_call c;
    memset(&c, 0, sizeof c);
    c.u = pgi_problem_at(s, u, s->desc.stride_u, problem);
    c.f = pgi_problem_at(s, f, s->desc.stride_f, problem);
    c.problem = problem;
    c.alpha = s->desc.alpha;
    c.inner_alpha = pgi_inner_alpha(s->desc.alpha, s->lowest);
    c.lowest = s->lowest;
    c.omega = s->desc.omega;
    if (stop) c.stop = *stop;
    // Cycles fall by far more than a tenth a check until round-off; sweeps may creep.
    c.window = s->multigrid ? 4 : s->is_direct ? (s->mixed ? 2 : 0) : 50;
    c.progress = s->multigrid || s->is_direct ? 0.9 : 1;
    c.may_grow = s->dense || s->desc.flags & (PG_RBGS | PG_SOR | pgi_krylov_methods) ? 1 : 0;
    const int single = s->desc.flags & (PG_F32 | PG_MIXED) ? 1 : 0;
    c.renewal = s->desc.flags & PG_PIPECG && !pgi_is_predicted(s) ? (single ? 25 : 50) : 0;
    // BiCGStab comes back from far up.
    const int bicg = s->desc.flags & (PG_BICGSTAB | PG_PIPEBICGSTAB) ? 1 : 0;
    c.pending = pgi_is_pending(s);
    c.hump = !bicg ? 1e8 : single ? 1e16 : 1e30;
    c.trusted = c.renewal > 0 || s->desc.flags & PG_PIPEBICGSTAB ? (single ? 3e-4 : 1e-8) : 0;
    c.to_round_off = s->to_round_off;
    c.with_floor = s->with_floor;
    c.at_once = s->is_direct || (s->multigrid && (s->levels == 1 || (s->desc.flags & PG_FMG)));
    c.spread = pgi_spread_of(s);
    c.gain = pgi_gain(&s->spectrum, s->desc.alpha);
    c.epsilon = pgi_epsilon(s);
    const double ones[4] = {s->volume, (double)s->outer.points, s->volume, 1};    // pgi_norm_of 1
    c.unit = pgi_norm_of(ones, c.stop.norm);
    c.underflow =
        (s->desc.flags & PG_F32 ? 0x1p-149 : 0x1p-1074) * (s->spectrum.largest_diagonal + fabs(c.alpha)) * c.unit;
    for (int q = 0; q < 6; q++) {
        const char *array = (const char *)s->work.face[q].array;
        c.face[q].value = s->work.face[q].value;
#if PGI_GPU
        if (s->staged && array) array = (const char *)s->stage_face[q];
#endif
        c.face[q].plane = array ? array + (size_t)problem * pgi_face_bytes(s, q) : NULL;
    }
#if PGI_GPU
    if (s->cuda) {
        if (s->staged) {
            c.u = pgi_staged_at(s, s->stage_u, problem);
            c.f = pgi_staged_at(s, s->stage_f, problem);
        }
        s->host.stop = c.stop;
        PGI_LAUNCH_EARLY(s, 1, dim3(1), 0, pgi_enter_kernel, s->state, c);
        return;
    }
#endif
    pgi_enter(s->state, c);
}

// Ends a piece: copies results of staged calls back and waits for them.
static pg_status pgi_leave_call(pg_solver *s, void *result, const int64_t stride[3], pgi_grid from)
{
#if PGI_GPU
    if (s->cuda && s->staged && s->failed == PG_OK) {
        if (result) pgi_stage(s, result, stride, from, 0);
        PGI_CUDA(s, cudaStreamSynchronize(s->stream));
    }
    s->recording = 0;
#else
    (void)result, (void)stride, (void)from;
#endif
    return s->failed;
}

// The common begin of all calls on a handle.
static pg_status pgi_begin_call(pg_solver *s)
{
    if (!s) return pgi_refuse(pgi_thread_error, PG_ERROR_ARGUMENT, "solver is NULL; create one with pg_create");
    if (s->in_monitor)
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "the handle is in use by the solve whose monitor makes this call; return from it first");
    s->error[0] = 0;
    s->failed = PG_OK;
    s->monitor = NULL;
    return PG_OK;
}

static pg_status pgi_check_pair(pg_solver *s, const char *name_u, const void *u, const char *name_f, const void *f,
                                const int64_t stride[3])
{
    PGI_TRY(pgi_check_array(s, name_u, u, s->error));
    PGI_TRY(pgi_check_array(s, name_f, f, s->error));
    if (pgi_overlap(&s->desc, u, s->desc.stride_u, f, stride, pgi_element(s->desc.flags)))
        return pgi_refuse(s->error, PG_ERROR_ARGUMENT, "%s (%p) and %s (%p) overlap; give them memory of their own",
                          name_u, u, name_f, f);
    return PG_OK;
}

// PG_DIRECT takes one array for both u and f: every step reads what it needs of a column before it writes there.
static pg_status pgi_check_same(pg_solver *s, const void *u, int checked)
{
    const int64_t count[3] = {s->desc.n[1], s->desc.n[2], s->desc.batch};
    if (checked)
        return pgi_refuse(s->error, PG_ERROR_ARGUMENT,
                          "u and f overlap (both are %p), so that no f is left to check a residual with; set "
                          "stop.rtol to PG_NONE, or give f memory of its own",
                          u);
    for (int a = 0; a < 3; a++)
        if (count[a] > 1 && s->desc.stride_u[a] != s->desc.stride_f[a])
            return pgi_refuse(s->error, PG_ERROR_ARGUMENT,
                              "u and f overlap (both are %p), but stride_u[%d] is %lld and stride_f[%d] %lld; make "
                              "them equal",
                              u, a, (long long)s->desc.stride_u[a], a, (long long)s->desc.stride_f[a]);
    return pgi_check_array(s, "u", u, s->error);
}

// The arguments of a call that writes u: the boundary data, read meanwhile, must not be in it. checked: the call reads
// f when u is written.
static pg_status pgi_check_system(pg_solver *s, const void *u, const void *f, int checked)
{
    const size_t element = pgi_element(s->desc.flags);
    if (u && u == f && s->is_direct && !s->mixed)
        PGI_TRY(pgi_check_same(s, u, checked));
    else
        PGI_TRY(pgi_check_pair(s, "u", u, "f", f, s->desc.stride_f));
    const char *begin = (const char *)u, *end = begin + (size_t)pgi_extent(&s->desc, s->desc.stride_u) * element;
    for (int q = 0; q < 6; q++) {
        const char *data = (const char *)s->work.face[q].array;
        const size_t bytes = (size_t)s->desc.batch * pgi_face_bytes(s, q);
        if (data && data < end && data + bytes > begin)
            return pgi_refuse(s->error, PG_ERROR_ARGUMENT,
                              "u (%p) and a face array (%p) overlap; give them memory of their own", u,
                              (const void *)data);
    }
    return PG_OK;
}

// A single unknown that nothing holds has a row of zeros, whose diagonal sweeps would divide by.
static int pgi_is_unheld(const pg_solver *s)
{
    return s->may_be_singular && s->outer.points == 1 && s->desc.alpha == 0;
}

// Runs the program of a solve, for one problem or for a batch at once. first: of this solve.
static void pgi_run_program(pg_solver *s, int first)
{
#if PGI_GPU
    if (s->cuda) {
        cudaGraphExec_t graph = s->graph[s->guess_zero + 2 * s->checked + 2 * (s->checked && s->with_floor)];
        if (s->recording || s->monitor || !graph)
            s->program(s);
        else
            PGI_CUDA(s, cudaGraphLaunch(graph, s->stream));
        if (s->desc.batch > 1)
            PGI_LAUNCH(s, 1, dim3(1), pgi_keep_worst_kernel, s->reported, (const pgi_state *)s->state, first);
        return;
    }
#endif
    s->program(s);
    if (s->desc.batch > 1) pgi_keep_worst(s->reported, s->state, first);
}

#if PGI_GPU
// A solve in a caller's capture. Where graphs do not loop it becomes as many nodes as it may have iterations.
static pg_status pgi_check_capture(pg_solver *s, const pg_stop *stop)
{
    enum { MOST = 1000 };
    if (!pgi_capturing(s)) return PG_OK;
    if (stop->monitor)
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "stop.monitor needs the host, which a captured solve leaves out; leave it NULL");
    if (PGI_CONDITIONAL && !s->graph[0])
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "a solve can be captured only with a driver of CUDA 12.4 or later, or compiled with "
                          "PG_NO_CONDITIONAL; solve outside the capture");
    if (!PGI_CONDITIONAL && stop->max_iter > MOST)
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "stop.max_iter is %d; a solve compiled before CUDA 12.4 or with PG_NO_CONDITIONAL is "
                          "captured iteration by iteration, at most %d; give a smaller max_iter, or solve outside the "
                          "capture",
                          stop->max_iter, (int)MOST);
    return PG_OK;
}
#endif

static pg_status pgi_solve(pg_solver *s, void *u, const void *f, const pg_stop *caller)
{
    pg_stop stop;
    PGI_TRY(pgi_check_stop(s, caller, &stop, s->error));
    PGI_TRY(pgi_check_system(s, u, f, stop.rtol > 0 || stop.atol > 0));
#if PGI_GPU
    PGI_TRY(pgi_check_capture(s, &stop));
#endif
    if (!s->multigrid && !s->is_direct && pgi_is_unheld(s)) stop.min_iter = stop.max_iter = 0;
    const int batch = s->desc.batch, checked = stop.rtol > 0 || stop.atol > 0;
    const int at_once = batch > 1 && s->is_direct && !s->mixed && !(checked && stop.monitor);
    s->guess_zero = stop.guess == PG_GUESS_ZERO;
    s->to_round_off = !caller || (caller->rtol == 0 && caller->atol == 0);
    s->with_floor = checked && pgi_floor_can_matter(s, &stop);
    PGI_TRY(pgi_enter_call(s, u, f, !s->guess_zero, 1));
    s->monitor = stop.monitor;
    s->monitor_user = stop.user;
    if (at_once) {    // see pgi_program
        s->checked = 0;
        pgi_enter_problem(s, u, f, &stop, 0);
        pgi_run_program(s, 1);
        s->guess_zero = 0;
    }
    s->checked = checked;
    for (int q = 0; q < batch && (checked || !at_once); q++) {
        s->monitored = 0;
        pgi_enter_problem(s, u, f, &stop, q);
        pgi_run_program(s, q == 0 && !at_once);
#if PGI_GPU
        if (s->cuda && (s->monitor || s->staged) && !at_once) {
            pgi_cuda_read_state(s, s->state);
            if (s->staged && s->failed == PG_OK && (s->host.valid || s->host.iterations))
                pgi_stage_problem(s, pgi_problem_at(s, u, s->desc.stride_u, q), s->desc.stride_u,
                                  pgi_staged_at(s, s->stage_u, q), 0);
        }
        if (s->failed) break;
#endif
        if (s->monitor && (s->cuda ? &s->host : s->state)->outcome == PG_CANCELLED) break;
    }
    return pgi_leave_call(s, at_once ? u : NULL, s->desc.stride_u, s->stage_u);
}

static pg_status pgi_get_report(pg_solver *s, pg_report *report)
{
    if (!report) return pgi_refuse(s->error, PG_ERROR_ARGUMENT, "report is NULL; pass the address of a pg_report");
#if PGI_GPU
    if (s->cuda) {
        if (pgi_capturing(s))
            return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                              "a report waits for the stream, which is being captured; ask after the graph ran");
        s->stream = (cudaStream_t)s->desc.stream;
        pgi_cuda_read_state(s, s->reported);
        if (s->failed) return s->failed;
    } else
#endif
        s->host = *s->reported;
    pgi_fill_report(s, &s->host, report);
    return PG_OK;
}

static pg_status pgi_set_faces(pg_solver *s, const pg_face *face)
{
    if (!face) return pgi_refuse(s->error, PG_ERROR_ARGUMENT, "face is NULL; pass six faces");
    for (int q = 0; q < 2 * s->desc.dim; q++) {
        const pg_face *now = &s->desc.face[q];
        const int kind = pgi_number(face[q].kind);
        if (kind != now->kind || (now->kind == PG_ROBIN && (face[q].a != now->a || face[q].b != now->b)))
            return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                              "face %s changes its kind or Robin a, b (kind %d, was %d); create a new solver for that",
                              pgi_face_name[q], kind, (int)now->kind);
        if (!pgi_finite(face[q].value))
            return pgi_refuse(s->error, PG_ERROR_ARGUMENT, "face %s has the value %g; boundary data must be finite",
                              pgi_face_name[q], face[q].value);
        PGI_TRY(pgi_check_face_array(&s->desc, q, face[q].array, s->error));
    }
    for (int q = 0; q < 2 * s->desc.dim; q++) {
        if (face[q].kind == PG_PERIODIC) continue;
        s->desc.face[q].value = face[q].value;
        s->desc.face[q].array = face[q].array;
    }
    pgi_turn(&s->desc, &s->work);
    return PG_OK;
}

static pg_status pgi_smooth_call(pg_solver *s, void *u, const void *f, int sweeps)
{
    PGI_TRY(pgi_check_system(s, u, f, 1));
    if (s->mixed)
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "pg_smooth does not go with PG_MIXED, whose smoother works in f32; use PG_F32 or PG_F64");
    if (s->is_direct || s->krylov)
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "pg_smooth does not go with %s, which has no sweeps; use pg_solve",
                          pgi_method_name(s->desc.flags));
    if (sweeps < 0) return pgi_refuse(s->error, PG_ERROR_ARGUMENT, "sweeps is %d; it must not be negative", sweeps);
    if (pgi_is_unheld(s)) sweeps = 0;
    PGI_TRY(pgi_enter_call(s, u, f, 1, 1));
    for (int q = 0; q < s->desc.batch; q++) {
        pgi_enter_problem(s, u, f, NULL, q);
        const pgi_level *l = &s->level[0];
        if (s->multigrid)
            pgi_home(s, l, pgi_smooth(s, l, l->u, pgi_level_rhs(l, 1), 0, sweeps, PGI_FROM_U, NULL, l->u, NULL));
        else
            pgi_sweeps(s, sweeps);
    }
    return pgi_leave_call(s, u, s->desc.stride_u, s->stage_u);
}

// PG_MIXED: steps of refinement as a solve without a tolerance takes them.
static void pgi_mixed_cycles(pg_solver *s, int steps)
{
    const int loose = s->may_be_singular && s->desc.alpha > 0 && s->desc.alpha < s->lowest;    // see PGI_LOOSE
    if (loose) {
        s->outer_ops->reduce(s, &s->outer, PGI_RHS, PGI_ONE, pgi_no_grid(), pgi_no_grid(), pgi_outer_rhs(s), 0);
        s->ops->control(s, PGI_SET_MEAN, 0);
    }
    for (int q = 0; q < steps; q++) {
        for (int again = 0; again < 2; again++)
            s->outer_ops->reduce(s, &s->outer, PGI_RESIDUAL, PGI_SELF, s->outer.u, pgi_no_grid(), pgi_outer_rhs(s),
                                 again);
        s->ops->control(s, PGI_SET_SCALE, 0);
        if (loose) pgi_step_lift(s);
        s->ops->residual_narrow(s, &s->outer, s->outer.u, pgi_outer_rhs(s), s->level[0].f, 0);
        pgi_add_correction(s);
    }
}

static pg_status pgi_cycle_call(pg_solver *s, void *u, const void *f, int cycles)
{
    PGI_TRY(pgi_check_system(s, u, f, 1));
    if (s->accelerated)
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "pg_cycle does not go with PG_FMG that became PG_CG (see report.accelerated); give "
                          "PG_KEEP_CYCLES, or use pg_solve");
    if (!s->multigrid || s->krylov)
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "pg_cycle does not go with %s; use PG_VCYCLE, PG_WCYCLE or PG_FMG, or %s",
                          pgi_method_name(s->desc.flags), s->is_direct || s->krylov ? "pg_solve" : "pg_smooth");
    if (cycles < 0) return pgi_refuse(s->error, PG_ERROR_ARGUMENT, "cycles is %d; it must not be negative", cycles);
    PGI_TRY(pgi_enter_call(s, u, f, 1, 1));
    for (int problem = 0; problem < s->desc.batch; problem++) {
        pgi_enter_problem(s, u, f, NULL, problem);
        if (s->mixed)
            pgi_mixed_cycles(s, cycles);
        else
            pgi_cycles(s, pgi_level_rhs(&s->level[0], 1), 0, cycles);
    }
    return pgi_leave_call(s, u, s->desc.stride_u, s->stage_u);
}

static pg_status pgi_apply_call(pg_solver *s, const void *u, void *v)
{
    PGI_TRY(pgi_check_pair(s, "u", u, "v", v, s->desc.stride_f));
    PGI_TRY(pgi_enter_call(s, u, v, 1, 0));
    for (int q = 0; q < s->desc.batch; q++) {
        pgi_enter_problem(s, u, v, NULL, q);
        s->outer_ops->apply(s, &s->outer, s->outer.u, s->outer.f);
    }
    return pgi_leave_call(s, v, s->desc.stride_f, s->stage_f);
}

static pg_status pgi_residual_call(pg_solver *s, const void *u, const void *f, void *r)
{
    PGI_TRY(pgi_check_pair(s, "u", u, "f", f, s->desc.stride_f));
    PGI_TRY(pgi_check_pair(s, "u", u, "r", r, s->desc.stride_f));
    if (f != r && pgi_overlap(&s->desc, f, s->desc.stride_f, r, s->desc.stride_f, pgi_element(s->desc.flags)))
        return pgi_refuse(s->error, PG_ERROR_ARGUMENT,
                          "f (%p) and r (%p) overlap but are not the same; give one of them other memory", f, r);
    PGI_TRY(pgi_enter_call(s, u, f, 1, 1));
    for (int q = 0; q < s->desc.batch; q++) {
        pgi_enter_problem(s, u, f, NULL, q);
        s->outer_ops->residual(
            s, &s->outer, s->outer.u, pgi_outer_rhs(s),
            s->staged ? s->outer.f : pgi_direct_grid(s, pgi_problem_at(s, r, s->desc.stride_f, q), s->desc.stride_f));
    }
    return pgi_leave_call(s, r, s->desc.stride_f, s->stage_f);
}

// One norm of several problems from the norms of each.
static double pgi_join_norms(double a, double b, int kind)
{
    return kind == PG_NORM_MAX  ? pgi_max_nan(a, b)
           : kind == PG_NORM_L1 ? a + b
           : a == 0 || b == 0   ? a + b
                                : hypot(a, b);
}

// Reduces x (with partner y): a norm, sum w x or sum w x y.
static pg_status pgi_reduce_call(pg_solver *s, const void *x, const void *y, int partner, pg_norm_kind kind,
                                 double *result)
{
    if (!result) return pgi_refuse(s->error, PG_ERROR_ARGUMENT, "result is NULL; pass the address of a double");
    PGI_TRY(pgi_check_array(s, "x", x, s->error));
    if (partner == PGI_OTHER) PGI_TRY(pgi_check_array(s, "y", y, s->error));
#if PGI_GPU
    if (pgi_capturing(s))
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "a reduction waits for the stream, which is being captured; call it outside the capture");
#endif
    PGI_TRY(pgi_enter_call(s, x, x, 1, 0));
#if PGI_GPU
    if (partner == PGI_OTHER && s->staged) pgi_stage(s, (void *)y, s->desc.stride_u, s->stage_f, 1);
#endif
    pg_stop stop;
    memset(&stop, 0, sizeof stop);
    stop.norm = kind;
    *result = 0;
    for (int q = 0; q < s->desc.batch; q++) {
        pgi_grid other = pgi_no_grid();
        if (partner == PGI_OTHER)
            other = s->staged ? s->outer.f
                              : pgi_direct_grid(s, pgi_problem_at(s, y, s->desc.stride_u, q), s->desc.stride_u);
        pgi_enter_problem(s, x, x, &stop, q);
        for (int again = 0; again < (partner == PGI_SELF ? 2 : 1); again++)
            s->outer_ops->reduce(s, &s->outer, PGI_FIELD, partner, s->outer.u, other, pgi_rhs_of(pgi_no_grid()), again);
#if PGI_GPU
        if (s->cuda) {
            pgi_cuda_read_state(s, s->state);
            if (s->failed) return s->failed;
        } else
#endif
            s->host = *s->state;
        *result = partner == PGI_SELF ? pgi_join_norms(*result, pgi_measured_norm(&s->host, s->host.sums), kind)
                                      : *result + s->host.sums[0];
    }
    return PG_OK;
}

extern "C" {

PG_API pg_status pg_solve_once(const pg_desc *desc, void *u, const void *f, pg_report *report)
{
    pg_solver *s = NULL;
    pg_report unused;
    pg_status status = pg_create(desc, &s);
    if (status != PG_OK) return status;
    status = pg_solve(s, u, f, NULL);
    if (status == PG_OK) status = pg_get_report(s, report ? report : &unused);
    snprintf(pgi_thread_error, sizeof pgi_thread_error, "%s", s->error);
    pg_destroy(s);
    return status;
}

// Every call on a handle: check it, make its device current, do the work, restore.
#define PGI_CALL(work)                                                                                                 \
    PGI_TRY(pgi_begin_call(s));                                                                                        \
    const int previous = pgi_make_current(s);                                                                          \
    const pg_status status = (work);                                                                                   \
    pgi_restore_current(s, previous);                                                                                  \
    return status

PG_API pg_status pg_solve(pg_solver *s, void *u, const void *f, const pg_stop *stop)
{
    PGI_CALL(pgi_solve(s, u, f, stop));
}
PG_API pg_status pg_get_report(pg_solver *s, pg_report *report) { PGI_CALL(pgi_get_report(s, report)); }
PG_API pg_status pg_set_faces(pg_solver *s, const pg_face face[6]) { PGI_CALL(pgi_set_faces(s, face)); }
PG_API pg_status pg_smooth(pg_solver *s, void *u, const void *f, int sweeps)
{
    PGI_CALL(pgi_smooth_call(s, u, f, sweeps));
}
PG_API pg_status pg_cycle(pg_solver *s, void *u, const void *f, int cycles)
{
    PGI_CALL(pgi_cycle_call(s, u, f, cycles));
}
PG_API pg_status pg_apply(pg_solver *s, const void *u, void *v) { PGI_CALL(pgi_apply_call(s, u, v)); }
PG_API pg_status pg_residual(pg_solver *s, const void *u, const void *f, void *r)
{
    PGI_CALL(pgi_residual_call(s, u, f, r));
}

PG_API pg_status pg_set_alpha(pg_solver *s, double alpha)
{
    PGI_TRY(pgi_begin_call(s));
    PGI_TRY(pgi_check_alpha(&s->desc, alpha, s->error));
    if (s->is_direct) PGI_TRY(pgi_check_shift(s, alpha, s->error));
    s->desc.alpha = alpha;
    if (s->choose_omega) s->desc.omega = pgi_choose_sor_omega(&s->spectrum, alpha, s->desc.flags);
    return PG_OK;
}

PG_API pg_status pg_set_stream(pg_solver *s, pg_stream stream)
{
    PGI_TRY(pgi_begin_call(s));
    s->desc.stream = stream;
    return PG_OK;
}

static pg_status pgi_reduce_public(pg_solver *s, const void *x, const void *y, int partner, pg_norm_kind kind,
                                   double *result)
{
    PGI_CALL(pgi_reduce_call(s, x, y, partner, kind, result));
}

PG_API pg_status pg_norm(pg_solver *s, const void *x, pg_norm_kind kind, double *result)
{
    PGI_TRY(pgi_begin_call(s));
    const int number = pgi_number(kind);
    if (number < 0 || number > PG_NORM_L1)
        return pgi_refuse(s->error, PG_ERROR_ARGUMENT, "kind is %d; see pg_norm_kind", number);
    return pgi_reduce_public(s, x, NULL, PGI_SELF, kind, result);
}

PG_API pg_status pg_sum(pg_solver *s, const void *x, double *result)
{
    return pgi_reduce_public(s, x, NULL, PGI_ONE, PG_NORM_L2, result);
}

PG_API pg_status pg_dot(pg_solver *s, const void *x, const void *y, double *result)
{
    return pgi_reduce_public(s, x, y, PGI_OTHER, PG_NORM_L2, result);
}

PG_API const char *pg_last_error(const pg_solver *s) { return s ? s->error : pgi_thread_error; }

PG_API const char *pg_status_string(pg_status status)
{
#define PGI_TEXT(name, text) text,
    static const char *const texts[] = {PG_STATUS_LIST(PGI_TEXT)};
    const int number = pgi_number(status);
    return number >= 0 && number < PG_STATUS_COUNT ? texts[number] : "unknown status";
}

PG_API const char *pg_outcome_string(pg_outcome outcome)
{
    static const char *const texts[] = {PG_OUTCOME_LIST(PGI_TEXT)};
    const int number = pgi_number(outcome);
    return number >= 0 && number < PG_OUTCOME_COUNT ? texts[number] : "unknown outcome";
#undef PGI_TEXT
}

PG_API const char *pg_version(void)
{
    static thread_local char text[256];
    int used =
        snprintf(text, sizeof text, "poisson_gpu %d.%d.%d", PG_VERSION_MAJOR, PG_VERSION_MINOR, PG_VERSION_PATCH);
#if PGI_GPU
    const int architectures[] = {__CUDA_ARCH_LIST__};
    used += snprintf(text + used, sizeof text - (size_t)used, ", CUDA %d.%d for", CUDART_VERSION / 1000,
                     CUDART_VERSION % 1000 / 10);
    for (size_t q = 0; q < sizeof architectures / sizeof *architectures && used < 200; q++)
        used += snprintf(text + used, sizeof text - (size_t)used, " sm_%d", architectures[q] / 10);
#else
    used += snprintf(text + used, sizeof text - (size_t)used, ", no CUDA");
#endif
#ifdef _OPENMP
    used += snprintf(text + used, sizeof text - (size_t)used, ", OpenMP");
#else
    used += snprintf(text + used, sizeof text - (size_t)used, ", serial");
#endif
    snprintf(text + used, sizeof text - (size_t)used, "%s%s%s", PGI_F32 ? "" : ", without f32",
             PGI_DIRECT ? "" : ", without PG_DIRECT", PGI_DENSE ? "" : ", without dense systems");
    return text;
}

}    // extern "C"

// -------------------------------------------------------------------------------------------------------------------
// >>dense  Dense systems: sweeps over the rows of a matrix. Loops, checks, verdicts and reports are those of pg_solve.
// -------------------------------------------------------------------------------------------------------------------
#if PGI_DENSE

enum {
    PGI_DENSE_ROWS = 4,      // that a warp has side by side: it reads x once for all of them
    PGI_DENSE_PANEL = 32,    // rows that are solved together, a lane each
    PGI_DENSE_TASK = 16,     // rows of a panel that are multiplied ahead by one block
    PGI_DENSE_PARTS = 4,     // warps that share four rows of those
    PGI_DENSE_BAND = 6,      // panels before the newest one that its own block multiplies: what others wait for takes
                             // about so many steps to get there and back
    PGI_DENSE_AHEAD = 8,     // panels from those that are fetched into the second cache to those that are read
    PGI_DENSE_THREADS = 512,    // of a block of a Gauss-Seidel sweep: 16 warps, see pgi_dense_chain
    PGI_DENSE_BLOCK = 64,       // CPU: rows that are solved one after the other, the other columns multiplied before
    PGI_DENSE_STEPS = 50,       // power steps
    PGI_DENSE_MEASURED = 10,    // of which so many, the last ones, tell the spectral radius
    PGI_DENSE_FLAGS = 4         // counters before those of the panels, see pgi_dense_turns
};

struct pgi_dense_ops;

// A pg_solver for what all solvers have, and the matrix. Handles are destroyed as the pg_solver that comes first.
struct pg_dense {
    pg_solver s;
    pg_dense_desc desc;    // every default resolved
    const pgi_dense_ops *ops;
    const void *a;    // as the operations read it: the caller's, or the copy of it on the device
    int64_t lda;
    void *copy;             // NULL: none
    void *x[2];             // the iterate; of Jacobi's the odd ones are in the second
    void *inverse, *sum;    // of the diagonal; what a row finds: its residual, or f without what is known
    double *partials;
    unsigned *turns;    // see pgi_dense_turns
    int parts, team;    // warps that share four rows; CPU: threads
    int choose_omega;
    int readable;    // A has been read and will do
};

// A pass over all rows. r = f - A x.
enum pgi_dense_pass {
    PGI_DENSE_RESIDUAL,    // sums of r
    PGI_DENSE_JACOBI,      // also y = x + omega D^-1 r
    PGI_DENSE_POWER        // y = factor (1 - D^-1 A) x, and sums of y
};
enum pgi_dense_vector { PGI_DENSE_RHS, PGI_DENSE_ITERATE };

// What a back end can do, in one precision.
struct pgi_dense_ops {
    void (*load)(pg_dense *);     // x = u, or 0
    void (*store)(pg_dense *);    // u = x
    // state.sums of f, or state.magnitude of D x where state.seek asks for it
    void (*measure)(pg_dense *, int vector, int again);
    // turn: of PGI_DENSE_POWER, which x is the first one
    void (*rows)(pg_dense *, int pass, int again, int turn, double factor);
    void (*gauss_seidel)(pg_dense *);
};

// The matrix as functions of a precision see it.
template <class T> struct pgi_matrix {
    const T *a, *inverse;
    int64_t lda;
    int n, backward;
    int aligned;    // rows begin on 16 bytes, as x does
};

template <class T> static pgi_matrix<T> pgi_matrix_of(const pg_dense *d)
{
    pgi_matrix<T> m;
    m.a = (const T *)d->a;
    m.inverse = (const T *)d->inverse;
    m.lda = d->lda;
    m.n = d->desc.n;
    m.backward = d->desc.flags & PG_BACKWARD ? 1 : 0;
    m.aligned = (uintptr_t)m.a % 16 == 0 && d->lda * (int64_t)sizeof(T) % 16 == 0;
    return m;
}

// Which of its two arrays holds the iterate.
static PGI_HD inline int pgi_dense_turn(const pgi_state *st, int jacobi) { return jacobi ? st->iterations & 1 : 0; }

// ---- on the CPU ----

// Sums side by side, of which there are so many that they make vectors; the same on any machine.
template <class T> PGI_WIDE static T pgi_cpu_product(const T *a, const T *x, int64_t count)
{
    enum { LANES = 128 / sizeof(T) };
    T part[LANES] = {}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int q = 0; q < LANES; q++) part[q] += a[i + q] * x[i + q];
    for (; i < count; i++) sum += a[i] * x[i];
    for (int q = 0; q < LANES; q++) sum += part[q];
    return sum;
}

template <class T> static void pgi_cpu_dense_load(pg_dense *d)
{
    T *x = (T *)d->x[0];
    const T *u = (const T *)d->s.state->u;
    for (int i = 0; i < d->desc.n; i++) x[i] = d->s.guess_zero ? (T)0 : u[i];
}

template <class T> static void pgi_cpu_dense_store(pg_dense *d)
{
    const pgi_state *st = d->s.state;
    memcpy(st->u, d->x[pgi_dense_turn(st, d->desc.flags & PG_JACOBI ? 1 : 0)], (size_t)d->desc.n * sizeof(T));
}

template <class T> static void pgi_cpu_dense_sums(const T *v, const T *over, int n, double unit, double sums[4])
{
    for (int q = 0; q < 4; q++) sums[q] = 0;
    for (int i = 0; i < n; i++) {
        const double value = unit * (double)(over ? v[i] / over[i] : v[i]);
        pgi_accumulate(sums, 1, value, value);
    }
}

template <class T> static void pgi_cpu_dense_measure(pg_dense *d, int vector, int again)
{
    pgi_state *st = d->s.state;
    const double factor = again ? pgi_rescale(st) : 1;
    if (vector == PGI_DENSE_ITERATE) {
        const T *x = (const T *)d->x[pgi_dense_turn(st, d->desc.flags & PG_JACOBI ? 1 : 0)];
        if (st->seek) pgi_cpu_dense_sums(x, (const T *)d->inverse, d->desc.n, st->unit_of_sums, st->magnitude);
        return;
    }
    if (again && factor == 1) return;
    st->unit_of_sums *= factor;
    pgi_cpu_dense_sums((const T *)st->f, (const T *)NULL, d->desc.n, st->unit_of_sums, st->sums);
}

template <class T> static void pgi_cpu_dense_rows(pg_dense *d, int pass, int again, int turn, double scale)
{
    const pgi_matrix<T> m = pgi_matrix_of<T>(d);
    pgi_state *st = d->s.state;
    const double factor = again ? pgi_rescale(st) : 1;
    if (again && factor == 1) return;
    if (pass == PGI_DENSE_JACOBI) turn = pgi_dense_turn(st, 1);
    const T *x = (const T *)d->x[turn], *f = (const T *)st->f;
    T *y = (T *)d->x[1 - turn], *r = (T *)d->sum;
    const T omega = (T)st->omega;
    PGI_OMP(omp parallel for num_threads(d->team))
    for (int i = 0; i < m.n; i++) {
        const T product = pgi_cpu_product(m.a + i * m.lda, x, m.n);
        r[i] = pass == PGI_DENSE_POWER ? (T)scale * (x[i] - product * m.inverse[i]) : f[i] - product;
        if (pass == PGI_DENSE_JACOBI) y[i] = pgi_relaxed(x[i], r[i], m.inverse[i], omega);
        if (pass == PGI_DENSE_POWER) y[i] = r[i];
    }
    st->unit_of_sums *= factor;
    pgi_cpu_dense_sums(r, (const T *)NULL, m.n, st->unit_of_sums, st->sums);
}

// The new value of a row: rest is f without the products of all other columns.
template <class T> static PGI_HD inline T pgi_dense_solved(T x, T rest, T inverse, T omega)
{
    return ((T)1 - omega) * x + omega * inverse * rest;
}

template <class T> static void pgi_cpu_gauss_seidel(pg_dense *d)
{
    const pgi_matrix<T> m = pgi_matrix_of<T>(d);
    T *x = (T *)d->x[0], *rest = (T *)d->sum;
    const T *f = (const T *)d->s.state->f, omega = (T)d->s.state->omega;
    const int blocks = (m.n + PGI_DENSE_BLOCK - 1) / PGI_DENSE_BLOCK;
    for (int b = 0; b < blocks; b++) {
        const int lo = (m.backward ? blocks - 1 - b : b) * PGI_DENSE_BLOCK;
        const int hi = lo + PGI_DENSE_BLOCK < m.n ? lo + PGI_DENSE_BLOCK : m.n;
        PGI_OMP(omp parallel for num_threads(d->team))
        for (int i = lo; i < hi; i++) {
            const T *row = m.a + i * m.lda;
            rest[i] = f[i] - pgi_cpu_product(row, x, lo) - pgi_cpu_product(row + hi, x + hi, m.n - hi);
        }
        for (int q = lo; q < hi; q++) {
            const int i = m.backward ? lo + hi - 1 - q : q;
            const T *row = m.a + i * m.lda;
            const T own =
                pgi_cpu_product(row + lo, x + lo, i - lo) + pgi_cpu_product(row + i + 1, x + i + 1, hi - i - 1);
            x[i] = pgi_dense_solved(x[i], rest[i] - own, m.inverse[i], omega);
        }
    }
}

// Blocks of the GPU that a pass over all rows takes.
static int pgi_dense_blocks(int n, int parts)
{
    const int rows = PGI_BLOCK / 32 / parts * PGI_DENSE_ROWS;
    return (n + rows - 1) / rows;
}

#if PGI_GPU
// ---- on the GPU: products of rows ----

static __device__ inline void pgi_unpack(double2 w, double v[2]) { v[0] = w.x, v[1] = w.y; }
static __device__ inline void pgi_unpack(float4 w, float v[4]) { v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w; }
template <class T> struct pgi_vector_load {
    typedef double2 type;
};
template <> struct pgi_vector_load<float> {
    typedef float4 type;
};

// A value of x. CHANGING: other blocks write to x while the kernel runs, and the first cache does not hear of it.
template <bool CHANGING, class T> static __device__ inline T pgi_dense_x(const T *p)
{
    return CHANGING ? __ldcg(p) : __ldg(p);
}

// Four rows, and the columns of every stretch that a lane has: `width` columns make a stretch, of which `at` is the
// lane's first. The number of the stretch in the row decides who multiplies what, so that sums do not depend on when
// columns became known.
template <class T> struct pgi_dense_lane {
    enum { PIECE = 16 / sizeof(T) };
    const T *row[PGI_DENSE_ROWS], *x;
    int width, at;
    T sum[PGI_DENSE_ROWS];
};

template <class T> static __device__ inline void pgi_dense_begin(pgi_dense_lane<T> *l, const pgi_matrix<T> &m,
                                                                 const T *x, int first_row, int part, int parts)
{
    l->x = x;
    l->width = 32 * pgi_dense_lane<T>::PIECE * parts;
    l->at = (32 * part + (int)threadIdx.x % 32) * pgi_dense_lane<T>::PIECE;
    for (int r = 0; r < PGI_DENSE_ROWS; r++) {
        const int row = first_row + r < m.n ? first_row + r : m.n - 1;
        l->row[r] = m.a + row * m.lda;
        l->sum[r] = 0;
    }
}

// `count` whole stretches from `first` on, up or down.
template <bool CHANGING, class T>
static __device__ inline void pgi_dense_whole(pgi_dense_lane<T> *l, int first, int count, int step)
{
    enum { PIECE = pgi_dense_lane<T>::PIECE };
    typedef typename pgi_vector_load<T>::type wide;
    int c = first * l->width + l->at;
    const int next = step * l->width;
#pragma unroll 2
    for (int q = 0; q < count; q++, c += next) {
        T a[PGI_DENSE_ROWS][PIECE], x[PIECE];
        PGI_UNROLLED
        for (int r = 0; r < PGI_DENSE_ROWS; r++) pgi_unpack(__ldcs((const wide *)(l->row[r] + c)), a[r]);
        pgi_unpack(pgi_dense_x<CHANGING>((const wide *)(l->x + c)), x);
        PGI_UNROLLED
        for (int v = 0; v < PIECE; v++) PGI_UNROLLED
        for (int r = 0; r < PGI_DENSE_ROWS; r++) l->sum[r] += a[r][v] * x[v];
    }
}

// The columns of one stretch that lie in [lo, hi), value by value.
template <bool CHANGING, class T>
static __device__ inline void pgi_dense_careful(pgi_dense_lane<T> *l, int stretch, int lo, int hi)
{
    PGI_ROLLED
    for (int v = 0; v < pgi_dense_lane<T>::PIECE; v++) {
        const int c = stretch * l->width + l->at + v;
        if (c < lo || c >= hi) continue;
        const T x = pgi_dense_x<CHANGING>(l->x + c);
        for (int r = 0; r < PGI_DENSE_ROWS; r++) l->sum[r] += __ldcs(l->row[r] + c) * x;
    }
}

// `count` stretches from `first` on, up or down, as far as they lie in [lo, hi).
template <bool CHANGING, class T> static __device__ inline void pgi_dense_stretches(pgi_dense_lane<T> *l, int aligned,
                                                                                    int first, int count, int step,
                                                                                    int lo, int hi)
{
    const int low = (lo + l->width - 1) / l->width, high = hi / l->width;    // whole ones
    while (count > 0) {
        int whole = step > 0 ? high - first : first - low + 1;
        if (whole > count) whole = count;
        if (aligned && whole > 0 && first >= low && first < high)
            pgi_dense_whole<CHANGING>(l, first, whole, step);
        else
            pgi_dense_careful<CHANGING>(l, first, lo, hi), whole = 1;
        first += whole * step;
        count -= whole;
    }
}

// All stretches that [lo, hi) has a part in.
template <bool CHANGING, class T>
static __device__ inline void pgi_dense_range(pgi_dense_lane<T> *l, int aligned, int lo, int hi)
{
    if (lo >= hi) return;
    const int first = lo / l->width, last = (hi - 1) / l->width;
    pgi_dense_stretches<CHANGING>(l, aligned, first, last - first + 1, 1, lo, hi);
}

// Every lane gets the sums of its warp.
template <class T> static __device__ inline void pgi_dense_add_lanes(T sum[PGI_DENSE_ROWS])
{
    PGI_ROLLED
    for (int step = 16; step > 0; step /= 2)
        for (int r = 0; r < PGI_DENSE_ROWS; r++) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], step);
}

template <class T> struct pgi_dense_job {
    T *x, *y;    // of Jacobi's sweep these take turns
    int pass, parts, again;
    double factor;
    double *partials;
    pgi_state *state;
};

// Computes r = f - A x and what the pass makes of it   Moves n words a row   Covers four rows `parts` warps
// Needs nothing beyond the arrays   Overlap: none
template <class T> static __global__ void PGI_BOUNDS(4) pgi_dense_rows_kernel(pgi_matrix<T> m, pgi_dense_job<T> job)
{
    __shared__ T product[PGI_BLOCK / 32][PGI_DENSE_ROWS];
    pgi_state *const st = job.state;
    PGI_UNLESS_DONE(st);
    pgi_await();
    double sums[4] = {0, 0, 0, 0}, unit;
    if (!pgi_begin_sums(st, job.again, &unit)) return;
    const int turn = job.pass == PGI_DENSE_JACOBI && pgi_dense_turn(st, 1);
    const T *x = turn ? job.y : job.x;
    T *y = turn ? job.x : job.y;
    const int warp = (int)threadIdx.x / 32, rows = PGI_BLOCK / 32 / job.parts * PGI_DENSE_ROWS;
    const int first = (int)blockIdx.x * rows;
    pgi_dense_lane<T> lane;
    pgi_dense_begin(&lane, m, x, first + warp / job.parts * PGI_DENSE_ROWS, warp % job.parts, job.parts);
    pgi_dense_range<false>(&lane, m.aligned, 0, m.n);
    pgi_dense_add_lanes(lane.sum);
    if (threadIdx.x % 32 == 0)
        for (int r = 0; r < PGI_DENSE_ROWS; r++) product[warp][r] = lane.sum[r];
    __syncthreads();
    const int own = (int)threadIdx.x, i = first + own;
    if (own < rows && i < m.n) {
        T sum = 0;
        for (int p = 0; p < job.parts; p++) sum += product[own / PGI_DENSE_ROWS * job.parts + p][own % PGI_DENSE_ROWS];
        const T r =
            job.pass == PGI_DENSE_POWER ? (T)job.factor * (x[i] - sum * m.inverse[i]) : ((const T *)st->f)[i] - sum;
        if (job.pass == PGI_DENSE_JACOBI) y[i] = pgi_relaxed(x[i], r, m.inverse[i], (T)st->omega);
        if (job.pass == PGI_DENSE_POWER) y[i] = r;
        pgi_accumulate(sums, 1, unit * (double)r, unit * (double)r);
    }
    pgi_end_sums(sums, job.partials, st, unit);
}

// Computes the sums of f, or of D x   Moves 1 (2) words a row   Covers a row a thread, and again
template <class T> static __global__ void PGI_BOUNDS(4)
    pgi_dense_measure_kernel(pgi_matrix<T> m, pgi_dense_job<T> job, int vector, int jacobi)
{
    pgi_state *const st = job.state;
    PGI_UNLESS_DONE(st);
    pgi_await();
    double sums[4] = {0, 0, 0, 0}, unit;
    if (!pgi_begin_sums(st, job.again, &unit)) return;
    if (vector == PGI_DENSE_ITERATE && !st->seek) return;
    const T *v = vector == PGI_DENSE_RHS ? (const T *)st->f : pgi_dense_turn(st, jacobi) ? job.y : job.x;
    for (int i = (int)(blockIdx.x * PGI_BLOCK + threadIdx.x); i < m.n; i += (int)(gridDim.x * PGI_BLOCK)) {
        const double value = unit * (double)(vector == PGI_DENSE_RHS ? v[i] : v[i] / m.inverse[i]);
        pgi_accumulate(sums, 1, value, value);
    }
    if (vector == PGI_DENSE_RHS)
        pgi_end_sums(sums, job.partials, st, unit);
    else
        pgi_finish_sums(sums, job.partials, st, st->magnitude);
}

// Computes x = u or 0, or u = x   Moves 2 words a row   Covers a row a thread
template <class T> static __global__ void PGI_BOUNDS(4)
    pgi_dense_copy_kernel(pgi_state *st, T *x, const T *y, int n, int store, int jacobi, int zero)
{
    PGI_UNLESS_DONE(st);
    pgi_await();
    const int i = (int)(blockIdx.x * PGI_BLOCK + threadIdx.x);
    if (i >= n) return;
    if (store)
        ((T *)st->u)[i] = pgi_dense_turn(st, jacobi) ? y[i] : x[i];
    else
        x[i] = zero ? (T)0 : ((const T *)st->u)[i];
}

// ---- on the GPU: a Gauss-Seidel sweep ----
// Blocks take tickets. The first one is the chain: it solves panel after panel, and multiplies what is newest, the
// band. The others are tasks, half a panel each, in the order of the panels: all other columns. A task waits for
// columns of panels that come long before its own, and whoever has an earlier ticket is at work. Where the chain waits
// for a task that nobody has taken it does that one itself, so that a sweep ends however few blocks are resident.
struct pgi_dense_turns {
    unsigned *ticket;    // the next one
    unsigned *left;      // blocks that are done; the last one sets all counters to 0 again
    unsigned *solved;    // panels that are known to all
    unsigned *ready;     // of each panel the tasks that are done
};

template <class T> struct pgi_dense_sweep {
    T *x, *rest;    // rest: f without the products that tasks have added up
    pgi_dense_turns turns;
    const pgi_state *state;
    int panels;
};

// What the block of a sweep has in shared memory. The order of rows and columns in a panel is that of the sweep. Of
// two copies one is read while the other is filled.
template <class T> struct pgi_dense_memory {
    T tile[2][2][PGI_DENSE_PANEL][PGI_DENSE_PANEL + 1];    // [copy][own panel, next one][row][column]
    T known[2][3][PGI_DENSE_PANEL];                        // rest, inverse diagonal, old x
    T x[2][PGI_DENSE_PANEL];
    T band[PGI_DENSE_BAND][PGI_DENSE_PANEL];    // sums for panels to come
    T product[PGI_DENSE_THREADS / 32][PGI_DENSE_ROWS];
    int ticket;
};

static __device__ inline unsigned pgi_peek(const unsigned *p) { return *(const volatile unsigned *)p; }

// A counter of other blocks. What they wrote before they released it is there once it has been acquired.
static __device__ inline unsigned pgi_acquire(const unsigned *p)
{
    unsigned value;
#ifdef __CUDA_ARCH__
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
#else
    value = pgi_peek(p);
    __threadfence();
#endif
    return value;
}
static __device__ inline void pgi_release(unsigned *p, unsigned value)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
#else
    __threadfence();
    *(volatile unsigned *)p = value;
#endif
}

static __device__ inline void pgi_prefetch(const void *p)
{
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#else
    (void)p;
#endif
}

// Row (or column) `at` of the panel at a place in the sweep, in the order of the sweep, as a row of A; n: there is
// none.
template <class T> static __device__ inline int pgi_dense_at(const pgi_matrix<T> &m, int panels, int place, int at)
{
    if (place < 0 || place >= panels) return m.n;
    const int row =
        m.backward ? (panels - 1 - place) * PGI_DENSE_PANEL + PGI_DENSE_PANEL - 1 - at : place * PGI_DENSE_PANEL + at;
    return row < m.n ? row : m.n;
}

// Waits until so many panels are solved and what was written is there; how many are.
static __device__ inline int pgi_dense_wait(const unsigned *solved, int wanted)
{
    unsigned seen = 0;
    if (threadIdx.x % 32 == 0) {
        while ((int)(seen = pgi_acquire(solved)) < wanted) {
        }
    }
    return (int)__shfl_sync(0xffffffffu, seen, 0);
}

// The products with new values, stretch by stretch as they become known.
template <class T> static __device__ inline void pgi_dense_new(pgi_dense_lane<T> *l, const pgi_matrix<T> &m,
                                                               const pgi_dense_sweep<T> &w, int part, int lo, int hi)
{
    if (lo >= hi) return;
    const int step = m.backward ? -1 : 1, share = 32 * pgi_dense_lane<T>::PIECE;
    int at = m.backward ? (hi - 1) / l->width : lo / l->width, known = 0;
    int count = (hi - 1) / l->width - lo / l->width + 1;
    while (count > 0) {
        // The columns of this stretch that the warp has, and panels that hold them
        int first = at * l->width + part * share, end = first + share;
        if (first < lo) first = lo;
        if (end > hi) end = hi;
        const int wanted =
            m.backward ? w.panels - first / PGI_DENSE_PANEL : (end + PGI_DENSE_PANEL - 1) / PGI_DENSE_PANEL;
        if (first < end && wanted > known) {
            for (int r = 0; r < PGI_DENSE_ROWS; r++)
                if (at * l->width + l->at < hi) pgi_prefetch(l->row[r] + at * l->width + l->at);
            known = pgi_dense_wait(w.turns.solved, wanted);
        }
        const int border = PGI_DENSE_PANEL * (m.backward ? w.panels - known : known);    // between known and unknown
        int run = m.backward ? at - (border + l->width - 1) / l->width + 1 : border / l->width - at;
        run = run < 1 ? 1 : run < count ? run : count;
        pgi_dense_stretches<true>(l, m.aligned, at, run, step, lo, hi);
        at += run * step;
        count -= run;
    }
}

// A task: rest = f less the products with all columns but those of the band, and of the panel what is new in it.
template <class T> static __device__ inline void pgi_dense_task(const pgi_matrix<T> &m, const pgi_dense_sweep<T> &w,
                                                                int task, pgi_dense_memory<T> *memory)
{
    const int place = task / 2, panel = m.backward ? w.panels - 1 - place : place, thread = (int)threadIdx.x;
    const int begin = panel * PGI_DENSE_PANEL, first = begin + task % 2 * PGI_DENSE_TASK;
    if (first < m.n) {
        const int warp = thread / 32, part = warp % PGI_DENSE_PARTS;
        const int row = first + warp / PGI_DENSE_PARTS * PGI_DENSE_ROWS, column = begin + thread % 32;
        const int end = begin + PGI_DENSE_PANEL < m.n ? begin + PGI_DENSE_PANEL : m.n;
        const int band = PGI_DENSE_BAND * PGI_DENSE_PANEL;
        pgi_dense_lane<T> lane;
        pgi_dense_begin(&lane, m, (const T *)w.x, row, part, PGI_DENSE_PARTS);
        pgi_dense_range<true>(&lane, m.aligned, m.backward ? 0 : end, m.backward ? begin : m.n);
        if (part == 0 && column < m.n) {
            const T x = __ldcg(w.x + column);
            for (int r = 0; r < PGI_DENSE_ROWS; r++)
                if (m.backward ? column < row + r : column > row + r) lane.sum[r] += lane.row[r][column] * x;
        }
        pgi_dense_new(&lane, m, w, part, m.backward ? end + band : 0, m.backward ? m.n : begin - band);
        pgi_dense_add_lanes(lane.sum);
        if (thread % 32 == 0)
            for (int r = 0; r < PGI_DENSE_ROWS; r++) memory->product[warp][r] = lane.sum[r];
    }
    __syncthreads();
    if (thread < PGI_DENSE_TASK && first + thread < m.n) {
        T sum = 0;
        for (int p = 0; p < PGI_DENSE_PARTS; p++)
            sum += memory->product[thread / PGI_DENSE_ROWS * PGI_DENSE_PARTS + p][thread % PGI_DENSE_ROWS];
        __stcg(w.rest + first + thread, ((const T *)w.state->f)[first + thread] - sum);
    }
    __syncthreads();
    if (thread == 0) {
        __threadfence();
        atomicAdd(w.turns.ready + place, 1u);
    }
}

// Solves a panel: substitution, a row a lane. Values are passed on in pairs to all rows of the panel after them and of
// the next panel at once: each lane makes the second of a pair itself, of what its row had before the first one was
// known. `next` is what the next panel has got. One warp.
template <class T> static __device__ inline void pgi_dense_solve_panel(const pgi_matrix<T> &m,
                                                                       const pgi_dense_sweep<T> &w,
                                                                       pgi_dense_memory<T> *memory, int place, T *next)
{
    const int lane = (int)threadIdx.x % 32, copy = place & 1, row = pgi_dense_at(m, w.panels, place, lane);
    const T omega = (T)w.state->omega;
    T *const band = &memory->band[place % PGI_DENSE_BAND][lane];
    const T(*const known)[PGI_DENSE_PANEL] = memory->known[copy];
    const T(*const own)[PGI_DENSE_PANEL + 1] = memory->tile[copy][0];
    const T *const below = memory->tile[copy][1][lane];
    const T factor = omega * known[1][lane];
    T x = pgi_dense_solved(known[2][lane], known[0][lane] - *band - *next, known[1][lane], omega), sum = 0;
    *band = 0;
    PGI_UNROLLED
    for (int j = 0; j < PGI_DENSE_PANEL; j += 2) {
        const T link = omega * known[1][j + 1] * own[j + 1][j];
        const T first = __shfl_sync(0xffffffffu, x, j), before = __shfl_sync(0xffffffffu, x, j + 1);
        const T second = before - link * first;
        x -= (lane > j ? factor * own[lane][j] : (T)0) * first;
        x -= (lane > j + 1 ? factor * own[lane][j + 1] : (T)0) * second;
        sum += below[j] * first + below[j + 1] * second;
    }
    *next = sum;
    memory->x[copy][lane] = x;
    if (row < m.n) __stcg(w.x + row, x);
}

// Half a tile: a column a lane, all loads under way together. Where rows or columns lie beyond the matrix its last one
// stands in.
template <class T> static __device__ inline void pgi_dense_half_tile(const pgi_matrix<T> &m,
                                                                     const pgi_dense_sweep<T> &w, int place,
                                                                     int row_place, int half, T v[PGI_DENSE_TASK])
{
    if (place < 0 || place >= w.panels || row_place >= w.panels) return;
    const int column = pgi_dense_at(m, w.panels, place, (int)threadIdx.x % 32), ahead = half * PGI_DENSE_TASK;
    const int row =
        m.backward ? (w.panels - row_place) * PGI_DENSE_PANEL - 1 - ahead : row_place * PGI_DENSE_PANEL + ahead;
    const int beyond = row - (m.n - 1);
    const T *a = m.a + (column < m.n ? column : m.n - 1) + (beyond < 0 ? row : m.n - 1) * m.lda;
    const int64_t next = m.backward ? -m.lda : m.lda;
    const int from = m.backward ? beyond : 0, to = m.backward ? PGI_DENSE_TASK : -beyond;    // where rows change
    PGI_UNROLLED
    for (int i = 0; i < PGI_DENSE_TASK; i++) {
        v[i] = __ldcs(a);
        if (i >= from && i < to) a += next;
    }
}

// The products v of half a panel's rows with x, a column a lane. In each step of the sum half of the lanes take half of
// the rows, so that in the end each has a row. One warp.
template <class T> static __device__ inline void pgi_dense_band(T *band, T x, int half, T v[PGI_DENSE_TASK])
{
    const int lane = (int)threadIdx.x % 32;
    PGI_UNROLLED
    for (int i = 0; i < PGI_DENSE_TASK; i++) v[i] *= x;
    PGI_UNROLLED
    for (int step = PGI_DENSE_TASK / 2; step > 0; step /= 2) {
        PGI_UNROLLED
        for (int i = 0; i < PGI_DENSE_TASK / 2; i++) {
            if (i >= step) continue;
            const T mine = lane & step ? v[i + step] : v[i], other = lane & step ? v[i] : v[i + step];
            v[i] = mine + __shfl_xor_sync(0xffffffffu, other, step);
        }
    }
    v[0] += __shfl_xor_sync(0xffffffffu, v[0], PGI_DENSE_TASK);
    if (lane < PGI_DENSE_TASK) band[half * PGI_DENSE_TASK + lane] += v[0];
}

// Half a tile on its way to the second cache: a lane has half a row.
template <class T> static __device__ inline void pgi_dense_prefetch(const pgi_matrix<T> &m, const pgi_dense_sweep<T> &w,
                                                                    int place, int row_place, int half)
{
    const int lane = (int)threadIdx.x % 32;
    const int row = pgi_dense_at(m, w.panels, row_place, half * PGI_DENSE_TASK + lane % PGI_DENSE_TASK);
    const int column = pgi_dense_at(m, w.panels, place, lane / PGI_DENSE_TASK * PGI_DENSE_TASK);
    if (row < m.n && column < m.n) pgi_prefetch(m.a + row * m.lda + column);
}

// Tells all blocks that the panel `solved` is, and takes over what the tasks have for the panel `place`, once they are
// done. 1: there is a task that nobody has taken. `ready`: how many are done, as far as the step before has seen. The
// values of the panel were written before the last barrier. One warp.
template <class T> static __device__ inline int pgi_dense_exchange(const pgi_matrix<T> &m, const pgi_dense_sweep<T> &w,
                                                                   pgi_dense_memory<T> *memory, int solved, int place,
                                                                   unsigned *ready)
{
    const int lane = (int)threadIdx.x % 32, row = pgi_dense_at(m, w.panels, place, lane);
    T rest = 0, inverse = 0, x = 0;
    int untaken = 0;
    if (lane == 0 && place < w.panels) {
        while (*ready < 2 && !untaken) {
            untaken = pgi_peek(w.turns.ticket) <= 2u * (unsigned)place + 2;
            *ready = pgi_acquire(w.turns.ready + place);
        }
    }
    const int done = place < w.panels && __shfl_sync(0xffffffffu, *ready, 0) >= 2;
    if (done && row < m.n) rest = __ldcg(w.rest + row), inverse = m.inverse[row], x = __ldcg(w.x + row);
    if (lane == 0 && solved >= 0) pgi_release(w.turns.solved, (unsigned)solved + 1);
    if (!done) return place < w.panels;
    memory->known[place & 1][0][lane] = rest;
    memory->known[place & 1][1][lane] = inverse;
    memory->known[place & 1][2][lane] = x;
    *ready = lane == 0 && place + 1 < w.panels ? pgi_acquire(w.turns.ready + place + 1) : 0;
    return 0;
}

// The chain does a task for the panel at `place` itself, if that has not been taken meanwhile. (A later one could wait
// for the chain.)
template <class T> static __device__ inline void pgi_dense_help(const pgi_matrix<T> &m, const pgi_dense_sweep<T> &w,
                                                                pgi_dense_memory<T> *memory, int place)
{
    if (threadIdx.x == 0) {
        const unsigned seen = pgi_peek(w.turns.ticket);
        const int mine = seen <= 2u * place + 2 && atomicCAS(w.turns.ticket, seen, seen + 1) == seen;
        memory->ticket = mine ? (int)seen : 0;
    }
    __syncthreads();
    const int ticket = memory->ticket;
    __syncthreads();
    if (ticket > 0) pgi_dense_task(m, w, ticket - 1, memory);
    __syncthreads();
}

// The chain. In the step of a panel one warp solves it, ten multiply the band's rows with the panel before, four have
// the tiles of the next panel, and one passes values on to and from other blocks; a barrier a step. What of A a warp
// needs in a step it has asked for in the step before.
template <class T> static __device__ inline void pgi_dense_chain(const pgi_matrix<T> &m, const pgi_dense_sweep<T> &w,
                                                                 pgi_dense_memory<T> *memory)
{
    enum { BAND = 2 * (PGI_DENSE_BAND - 1), STAGE = BAND + 1, PASS = STAGE + 4 };
    static_assert((PASS + 1) * 32 == PGI_DENSE_THREADS, "each warp has its work");
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32, in_band = warp <= BAND;
    const int half = (warp - 1) % 2, tile = (warp - STAGE) / 2;
    const int column = in_band ? -1 : 1, row = in_band ? 1 + (warp - 1) / 2 : 1 + tile;    // panels from the step's one
    unsigned ready = 0;
    T next = 0, v[PGI_DENSE_TASK] = {};
    for (int q = thread; q < PGI_DENSE_BAND * PGI_DENSE_PANEL; q += PGI_DENSE_THREADS)
        memory->band[q / PGI_DENSE_PANEL][q % PGI_DENSE_PANEL] = 0;
    if (warp > 0 && warp < PASS) pgi_dense_half_tile(m, w, column - 1, row - 1, half, v);
    __syncthreads();
    for (int p = -1; p <= w.panels; p++) {
        int untaken = 0;
        if (warp == 0) {
            if (p >= 0 && p < w.panels) pgi_dense_solve_panel(m, w, memory, p, &next);
        } else if (warp < PASS) {
            if (!in_band) PGI_UNROLLED
            for (int i = 0; i < PGI_DENSE_TASK; i++)
                memory->tile[(p + 1) & 1][tile][half * PGI_DENSE_TASK + i][lane] = v[i];
            else if (p > 0 && p + row < w.panels)
                pgi_dense_band(memory->band[(p + row) % PGI_DENSE_BAND], memory->x[(p - 1) & 1][lane], half, v);
            pgi_dense_half_tile(m, w, p + 1 + column, p + 1 + row, half, v);
            pgi_dense_prefetch(m, w, p + column + PGI_DENSE_AHEAD, p + row + PGI_DENSE_AHEAD, half);
        } else {
            untaken = pgi_dense_exchange(m, w, memory, p - 1, p + 1, &ready);
        }
        while (__syncthreads_or(untaken)) {
            pgi_dense_help(m, w, memory, p + 1);
            if (warp == PASS) untaken = pgi_dense_exchange(m, w, memory, -1, p + 1, &ready);
        }
    }
}

// Computes a sweep   Moves n words a row   Covers: see above pgi_dense_turns   Overlap: x in place
template <class T> static __global__ void __launch_bounds__(PGI_DENSE_THREADS, 1)
    pgi_gauss_seidel_kernel(pgi_matrix<T> m, pgi_dense_sweep<T> w)
{
    PGI_UNLESS_DONE(w.state);
    __shared__ pgi_dense_memory<T> memory;
    const pgi_dense_turns &turns = w.turns;
    for (;;) {
        if (threadIdx.x == 0) memory.ticket = (int)atomicAdd(turns.ticket, 1u);
        __syncthreads();
        const int ticket = memory.ticket;
        __syncthreads();
        if (ticket > 2 * w.panels) break;
        if (ticket == 0)
            pgi_dense_chain(m, w, &memory);
        else
            pgi_dense_task(m, w, ticket - 1, &memory);
    }
    if (threadIdx.x == 0) {
        __threadfence();
        memory.ticket = atomicInc(turns.left, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!memory.ticket) return;
    for (int q = (int)threadIdx.x; q < w.panels; q += PGI_DENSE_THREADS) turns.ready[q] = 0;
    if (threadIdx.x == 0) *turns.ticket = *turns.solved = 0;
}

template <class T> static pgi_dense_job<T> pgi_dense_job_of(const pg_dense *d, int turn)
{
    pgi_dense_job<T> job;
    memset(&job, 0, sizeof job);
    job.x = (T *)d->x[turn];
    job.y = (T *)d->x[1 - turn];
    job.parts = d->parts;
    job.partials = d->partials;
    job.state = d->s.state;
    return job;
}

template <class T> static void pgi_cuda_dense_copy(pg_dense *d, int store)
{
    pg_solver *s = &d->s;
    PGI_LAUNCH_EARLY(s, (d->desc.n + PGI_BLOCK - 1) / PGI_BLOCK, dim3(PGI_BLOCK), 0, pgi_dense_copy_kernel<T>, s->state,
                     (T *)d->x[0], (const T *)d->x[1], d->desc.n, store, d->desc.flags & PG_JACOBI ? 1 : 0,
                     s->guess_zero);
}
template <class T> static void pgi_cuda_dense_load(pg_dense *d) { pgi_cuda_dense_copy<T>(d, 0); }
template <class T> static void pgi_cuda_dense_store(pg_dense *d) { pgi_cuda_dense_copy<T>(d, 1); }

template <class T> static void pgi_cuda_dense_measure(pg_dense *d, int vector, int again)
{
    pg_solver *s = &d->s;
    pgi_dense_job<T> job = pgi_dense_job_of<T>(d, 0);
    const int blocks = (d->desc.n + PGI_BLOCK - 1) / PGI_BLOCK;
    job.again = again;
    PGI_LAUNCH_EARLY(s, blocks < PGI_REDUCE_BLOCKS ? blocks : PGI_REDUCE_BLOCKS, dim3(PGI_BLOCK), 0,
                     pgi_dense_measure_kernel<T>, pgi_matrix_of<T>(d), job, vector, d->desc.flags & PG_JACOBI ? 1 : 0);
}

template <class T> static void pgi_cuda_dense_rows(pg_dense *d, int pass, int again, int turn, double factor)
{
    pg_solver *s = &d->s;
    pgi_dense_job<T> job = pgi_dense_job_of<T>(d, turn);
    job.pass = pass;
    job.again = again;
    job.factor = factor;
    PGI_LAUNCH_EARLY(s, pgi_dense_blocks(d->desc.n, d->parts), dim3(PGI_BLOCK), 0, pgi_dense_rows_kernel<T>,
                     pgi_matrix_of<T>(d), job);
}

template <class T> static void pgi_cuda_gauss_seidel(pg_dense *d)
{
    pg_solver *s = &d->s;
    pgi_dense_sweep<T> w;
    memset(&w, 0, sizeof w);
    w.x = (T *)d->x[0];
    w.rest = (T *)d->sum;
    w.turns.ticket = d->turns;
    w.turns.left = d->turns + 1;
    w.turns.solved = d->turns + 2;
    w.turns.ready = d->turns + PGI_DENSE_FLAGS;
    w.state = s->state;
    w.panels = (d->desc.n + PGI_DENSE_PANEL - 1) / PGI_DENSE_PANEL;
    const int most = 2 * w.panels + 1;
    PGI_LAUNCH(s, s->multiprocessors < most ? s->multiprocessors : most, dim3(PGI_DENSE_THREADS),
               pgi_gauss_seidel_kernel<T>, pgi_matrix_of<T>(d), w);
}
#endif

template <class T> static constexpr pgi_dense_ops pgi_cpu_dense_ops()
{
    return {pgi_cpu_dense_load<T>, pgi_cpu_dense_store<T>, pgi_cpu_dense_measure<T>, pgi_cpu_dense_rows<T>,
            pgi_cpu_gauss_seidel<T>};
}

static const pgi_dense_ops *pgi_dense_ops_of(int cuda, int single)
{
    static constexpr pgi_dense_ops cpu[2] = {pgi_cpu_dense_ops<double>(), pgi_cpu_dense_ops<pgi_narrowest>()};
#if PGI_GPU
    static constexpr pgi_dense_ops gpu[2] = {
        {pgi_cuda_dense_load<double>, pgi_cuda_dense_store<double>, pgi_cuda_dense_measure<double>,
         pgi_cuda_dense_rows<double>, pgi_cuda_gauss_seidel<double>},
        {pgi_cuda_dense_load<pgi_narrowest>, pgi_cuda_dense_store<pgi_narrowest>, pgi_cuda_dense_measure<pgi_narrowest>,
         pgi_cuda_dense_rows<pgi_narrowest>, pgi_cuda_gauss_seidel<pgi_narrowest>}};
    if (cuda) return &gpu[single];
#endif
    (void)cuda;
    return &cpu[single];
}

// ---- the program of a solve; bodies of loops are given the pg_solver, which is the pg_dense ----

static pg_dense *pgi_dense_of(pg_solver *s) { return (pg_dense *)s; }

static void pgi_dense_step_jacobi(pg_solver *s)
{
    pg_dense *d = pgi_dense_of(s);
    d->ops->rows(d, PGI_DENSE_JACOBI, 0, 0, 0);
    if (s->with_floor) d->ops->measure(d, PGI_DENSE_ITERATE, 0);
    s->ops->control(s, PGI_SWEPT, s->checked);
}

static void pgi_dense_step_sweep(pg_solver *s)
{
    pg_dense *d = pgi_dense_of(s);
    d->ops->gauss_seidel(d);
    s->ops->control(s, PGI_COUNT, 1);
}

static void pgi_dense_step_sweeps(pg_solver *s)
{
    pg_dense *d = pgi_dense_of(s);
    s->ops->loop(s, PGI_INNER, 1, pgi_dense_step_sweep);
    if (!s->checked) return;
    d->ops->rows(d, PGI_DENSE_RESIDUAL, 0, 0, 0);
    if (s->with_floor) d->ops->measure(d, PGI_DENSE_ITERATE, 0);
    s->ops->control(s, PGI_CHECK, 0);
}

static void pgi_dense_step_store(pg_solver *s) { pgi_dense_of(s)->ops->store(pgi_dense_of(s)); }

// The iterate lies in the workspace: u is written once, at the end. Jacobi's first sweep measures the first residual.
static void pgi_dense_program(pg_solver *s)
{
    pg_dense *d = pgi_dense_of(s);
    const int jacobi = d->desc.flags & PG_JACOBI ? 1 : 0;
    s->ops->control(s, PGI_BEGIN, 0);
    d->ops->load(d);
    if (s->checked) {
        for (int again = 0; again < 2; again++) d->ops->measure(d, PGI_DENSE_RHS, again);
        s->ops->control(s, PGI_SET_RHS, 0);
        for (int again = 0; again < 2; again++)
            d->ops->rows(d, jacobi ? PGI_DENSE_JACOBI : PGI_DENSE_RESIDUAL, again, 0, 0);
        s->ops->control(s, PGI_CHECK_FIRST, 0);
        if (jacobi) s->ops->control(s, PGI_SWEPT, 0);
    }
    s->ops->loop(s, PGI_GO, 1, jacobi ? pgi_dense_step_jacobi : pgi_dense_step_sweeps);
    s->ops->loop(s, d->desc.flags & PG_RESTORE ? PGI_SOUND : PGI_VALID, 0, pgi_dense_step_store);
    s->ops->control(s, PGI_END, 0);
}

// ---- every default and every check ----

static const unsigned pgi_dense_methods = PG_JACOBI | PG_GAUSS_SEIDEL | PG_SOR;

static pg_status pgi_dense_check_flags(pg_dense_desc *d, char text[512])
{
    const unsigned known = PG_F64 | PG_F32 | pgi_dense_methods | PG_BACKWARD | PG_RESTORE;
    if (d->flags & ~known)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "flags contain 0x%x, which dense systems do not know; see the list at PG_GAUSS_SEIDEL",
                          d->flags & ~known);
    PGI_TRY(pgi_check_group(text, &d->flags, "precision", PG_F64 | PG_F32, PG_F64));
    PGI_TRY(pgi_check_group(text, &d->flags, "method", pgi_dense_methods, PG_GAUSS_SEIDEL));
    PGI_TRY(pgi_check_left_out(d->flags & PG_F32, text));
    if (d->flags & PG_JACOBI && d->flags & PG_BACKWARD)
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "PG_BACKWARD does not go with PG_JACOBI, whose rows have no order; use PG_GAUSS_SEIDEL");
    if (!pgi_finite(d->omega) || d->omega < 0 || d->omega >= 2)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "omega is %g; it must lie between 0 and 2, or be 0 for the default",
                          d->omega);
    if (d->flags & PG_GAUSS_SEIDEL && d->omega != 0 && d->omega != 1)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "omega is %g with PG_GAUSS_SEIDEL, which has 1; use PG_SOR",
                          d->omega);
    return PG_OK;
}

static pg_status pgi_dense_check_matrix(pg_dense_desc *d, char text[512])
{
    const size_t element = pgi_element(d->flags);
    const int most = 1 << 30;
    if (d->n < 1 || d->n > most) return pgi_refuse(text, PG_ERROR_ARGUMENT, "n is %d; it must be 1 to %d", d->n, most);
    if (d->lda == 0) d->lda = d->n;
    if (d->lda < d->n || d->lda > INT64_MAX / (int64_t)element / d->n)
        return pgi_refuse(text, PG_ERROR_ARGUMENT,
                          "lda is %lld; it must be at least n, which is %d, and n rows must be a memory's size",
                          (long long)d->lda, d->n);
    if (!d->allocator.alloc != !d->allocator.free)
        return pgi_refuse(text, PG_ERROR_ARGUMENT, "allocator has only one of alloc and free; give both or none");
    return PG_OK;
}

// Lays out the workspace: counters, which begin as zeros, then state, sums and vectors. Returns the counters' bytes.
static size_t pgi_dense_layout(pg_dense *d, pgi_arena *arena)
{
    pg_solver *s = &d->s;
    const size_t element = pgi_element(d->desc.flags), n = (size_t)d->desc.n, vector = n * element;
    void *mirror;
    const size_t panels = (n + PGI_DENSE_PANEL - 1) / PGI_DENSE_PANEL;
    d->turns = (unsigned *)pgi_take_table(arena, (PGI_DENSE_FLAGS + panels) * sizeof(unsigned), &mirror);
    const size_t table_bytes = arena->used;
    s->state = s->reported = (pgi_state *)pgi_take_block(arena, sizeof *s->state);
    const int blocks = pgi_dense_blocks(d->desc.n, d->parts);
    const size_t partials = (size_t)(blocks > PGI_REDUCE_BLOCKS ? blocks : PGI_REDUCE_BLOCKS) * 4 * sizeof(double);
    d->partials = (double *)pgi_take_block(arena, s->cuda ? partials : 0);
    for (int q = 0; q < 2; q++) d->x[q] = pgi_take_block(arena, (vector + PGI_ALIGN - 1) / PGI_ALIGN * PGI_ALIGN);
    d->inverse = pgi_take_block(arena, vector);
    d->sum = pgi_take_block(arena, vector);
    if (!s->staged) return table_bytes;
    pgi_grid *const stage[2] = {&s->stage_u, &s->stage_f};
    for (int q = 0; q < 2; q++) {
        const pgi_grid g = {pgi_take_block(arena, vector), 0, d->desc.n, d->desc.n, d->desc.n};
        *stage[q] = g;
    }
    d->lda = (d->desc.n + PGI_DENSE_PANEL - 1) / PGI_DENSE_PANEL * (int64_t)PGI_DENSE_PANEL;
    d->a = d->copy = pgi_take_block(arena, n * (size_t)d->lda * element);
    return table_bytes;
}

// The descriptor as the machinery of pg_solver reads it.
static void pgi_dense_describe(pg_dense *d)
{
    pg_desc *p = &d->s.desc;
    const pg_dense_desc *from = &d->desc;
    memset(p, 0, sizeof *p);
    p->struct_size = sizeof *p;
    p->n[0] = from->n;
    p->n[1] = p->n[2] = p->dim = p->batch = 1;
    for (int q = 0; q < 3; q++) p->stride_u[q] = p->stride_f[q] = from->n;
    memcpy(&p->memory, &from->memory, sizeof p->memory);    // enums as the caller filled them: see pgi_number
    memcpy(&p->backend, &from->backend, sizeof p->backend);
    p->flags = from->flags;
    p->omega = from->omega > 0 ? from->omega : 1;
    p->beta = 1;
    p->device = from->device;
    p->stream = from->stream;
    p->workspace = from->workspace;
    p->workspace_bytes = from->workspace_bytes;
    p->allocator = from->allocator;
}

// Everything that needs no workspace.
static pg_status pgi_dense_prepare(const pg_dense_desc *desc, pg_dense *d, char text[512])
{
    pg_solver *s = &d->s;
    if (!desc) return pgi_refuse(text, PG_ERROR_ARGUMENT, "desc is NULL; pass the address of a pg_dense_desc");
    if (desc->struct_size != 0 && desc->struct_size != sizeof *desc)
        return pgi_refuse(
            text, PG_ERROR_ARGUMENT,
            "desc.struct_size is %zu; it must be 0 or %zu: compile program and library with the same header",
            desc->struct_size, sizeof *desc);
    d->desc = *desc;
    d->desc.struct_size = sizeof d->desc;
    PGI_TRY(pgi_dense_check_flags(&d->desc, text));
    PGI_TRY(pgi_dense_check_matrix(&d->desc, text));
    d->choose_omega = d->desc.flags & PG_SOR && d->desc.omega == 0;
    pgi_dense_describe(d);
    PGI_TRY(pgi_check_backend(&s->desc, &s->device, s->warning, text));
    d->desc.backend = s->desc.backend;
    d->desc.device = s->desc.device;
    d->desc.omega = s->desc.omega;
    s->dense = 1;
    s->cuda = s->desc.backend == PG_CUDA;
    s->staged = s->cuda && s->desc.memory == PG_MEM_HOST;
    s->observe = pgi_monitor;
    s->program = pgi_dense_program;
    s->volume = s->host.volume = d->desc.n;
    s->outer.points = d->desc.n;
    s->work = s->desc;
    const int n = d->desc.n, single = d->desc.flags & PG_F32 ? 1 : 0;
    s->ops = s->outer_ops = pgi_ops_of(s->cuda, single);
    d->ops = pgi_dense_ops_of(s->cuda, single);
    d->a = d->desc.A;
    d->lda = d->desc.lda;
    d->parts = n >= 8192 ? 1 : n >= 4096 ? 2 : n >= 2048 ? 4 : 8;    // so that all processors have some
    const int64_t work = (int64_t)n * (d->desc.flags & PG_JACOBI || n < PGI_DENSE_BLOCK ? n : PGI_DENSE_BLOCK);
    d->team = 1;
#ifdef _OPENMP
    const int threads = omp_get_max_threads();
    if (work > PGI_SERIAL) d->team = work / PGI_SERIAL < threads ? (int)(work / PGI_SERIAL) : threads;
#endif
    (void)work;
    pgi_arena measure = {NULL, NULL, 0};
    pgi_dense_layout(d, &measure);
    s->bytes = (measure.used + PGI_ALIGN - 1) / PGI_ALIGN * PGI_ALIGN;
    return PG_OK;
}

// ---- reading the matrix ----

// Copies elements `stride` apart, or n rows, to the device or from it.
static void pgi_dense_copy_strided(pg_dense *d, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                   size_t width, int to_device)
{
    pg_solver *s = &d->s;
#if PGI_GPU
    if (s->cuda) {
        PGI_CUDA(s, cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, (size_t)d->desc.n,
                                      to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, s->stream));
        PGI_CUDA(s, cudaStreamSynchronize(s->stream));
        return;
    }
#endif
    (void)s, (void)to_device;
    for (int i = 0; i < d->desc.n; i++)
        memcpy((char *)to + (size_t)i * to_pitch, (const char *)from + (size_t)i * from_pitch, width);
}

// The inverse diagonal. Refuses a row without one.
template <class T> static pg_status pgi_dense_invert(pg_dense *d, T *diagonal, char text[512])
{
    pg_solver *s = &d->s;
    const int n = d->desc.n;
    double largest = 0;
    if (s->staged)
        for (int i = 0; i < n; i++) diagonal[i] = ((const T *)d->desc.A)[i * (d->desc.lda + 1)];
    else
        pgi_dense_copy_strided(d, diagonal, sizeof(T), d->desc.A, ((size_t)d->desc.lda + 1) * sizeof(T), sizeof(T), 0);
    if (s->failed) return pgi_refuse(text, s->failed, "%s", s->error);
    for (int i = 0; i < n; i++) {
        const double value = (double)diagonal[i], size = fabs(value);
        diagonal[i] = (T)1 / diagonal[i];
        if (pgi_finite(value) && (value == 0 || !pgi_finite((double)diagonal[i])))
            return pgi_refuse(
                text, PG_ERROR_ARGUMENT,
                "A[%d][%d] is %g: row %d cannot be divided by its diagonal; exchange rows so that none is 0", i, i,
                value, i);
        if (pgi_finite(value) && size > largest) largest = size;
    }
    s->spectrum.largest_diagonal = largest;
    pgi_dense_copy_strided(d, d->inverse, sizeof(T), diagonal, sizeof(T), sizeof(T), 1);
    return s->failed ? pgi_refuse(text, s->failed, "%s", s->error) : PG_OK;
}

// What state.sums has after a pass of power steps: the norm of the vector.
static double pgi_dense_read_norm(pg_dense *d)
{
    pg_solver *s = &d->s;
#if PGI_GPU
    if (s->cuda)
        pgi_cuda_read_state(s, s->state);
    else
#endif
        s->host = *s->state;
    return sqrt(s->host.sums[1]);
}

// The spectral radius of Jacobi's iteration: what the last power steps multiply a random vector with, on average.
// Eigenvalues come in pairs of both signs in many problems, and single steps would swing.
template <class T> static double pgi_dense_radius(pg_dense *d, T *start)
{
    const int n = d->desc.n;
    double growth = 1;
    uint32_t random = 1;
    for (int i = 0; i < n; i++) {
        random = random * 1664525u + 1013904223u;    // Numerical Recipes, 1992, section 7.1
        start[i] = (T)1 + (T)(random >> 8) / (T)(1 << 24);
    }
    pgi_dense_copy_strided(d, d->x[0], sizeof(T), start, sizeof(T), sizeof(T), 1);
    double factor = 1;
    for (int step = 0; step < PGI_DENSE_STEPS && d->s.failed == PG_OK; step++) {
        d->ops->rows(d, PGI_DENSE_POWER, 0, step & 1, factor);
        const double norm = pgi_dense_read_norm(d);    // of `factor` times what a vector of norm 1 becomes
        if (!(norm > 0) || !pgi_finite(norm)) return norm == 0 ? 0 : DBL_MAX;
        if (step >= PGI_DENSE_STEPS - PGI_DENSE_MEASURED) growth *= norm;
        factor = 1 / norm;
    }
    return pow(growth, 1.0 / PGI_DENSE_MEASURED);
}

static void pgi_dense_choose(pg_dense *d, double radius)
{
    pg_solver *s = &d->s;
    const int young = radius < 1;
    const double omega = young ? 2 / (1 + sqrt(1 - radius * radius)) : 1;
    s->desc.omega = d->desc.omega = omega < 1.999 ? omega : 1.999;
    snprintf(s->chosen, sizeof s->chosen,
             radius < 1e300 ? "PG_SOR, omega %.6g: Jacobi has, by %d power steps, a spectral radius of %.4g"
                            : "PG_SOR, omega %.6g: no spectral radius was found by %d power steps",
             s->desc.omega, (int)PGI_DENSE_STEPS, radius);
}

template <class T> static pg_status pgi_dense_read_as(pg_dense *d, char text[512])
{
    pg_solver *s = &d->s;
    const size_t row = (size_t)d->desc.n * sizeof(T);
    T *vector = (T *)malloc(row);
    if (!vector) return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory for %d values", d->desc.n);
    pg_status status = pgi_dense_invert(d, vector, text);
    if (status == PG_OK && d->copy)
        pgi_dense_copy_strided(d, d->copy, (size_t)d->lda * sizeof(T), d->desc.A, (size_t)d->desc.lda * sizeof(T), row,
                               1);
    if (status == PG_OK && d->choose_omega) pgi_dense_choose(d, pgi_dense_radius(d, vector));
    free(vector);
    if (status == PG_OK && s->failed) status = pgi_refuse(text, s->failed, "%s", s->error);
    return status;
}

static pg_status pgi_dense_read(pg_dense *d, char text[512])
{
    pg_solver *s = &d->s;
#if PGI_GPU
    if (pgi_capturing(s))
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "the matrix cannot be read while the stream is being captured; do it before");
    s->stream = (cudaStream_t)s->desc.stream;
    s->recording = 0;
#endif
    d->readable = 0;
    const pgi_call none = {};
#if PGI_GPU
    if (s->cuda)
        PGI_LAUNCH_EARLY(s, 1, dim3(1), 0, pgi_enter_kernel, s->state, none);
    else
#endif
        pgi_enter(s->state, none);
    PGI_TRY(d->desc.flags & PG_F32 ? pgi_dense_read_as<pgi_narrowest>(d, text) : pgi_dense_read_as<double>(d, text));
    d->readable = 1;
    return PG_OK;
}

static pg_status pgi_dense_build(pg_dense *d, char text[512])
{
    pg_solver *s = &d->s;
#if PGI_GPU
    if (pgi_capturing(s))
        return pgi_refuse(text, PG_ERROR_UNSUPPORTED,
                          "a solver cannot be created while its stream is being captured; create it before");
    if (s->cuda) {
        PGI_CUDA(s, cudaDeviceGetAttribute(&s->multiprocessors, cudaDevAttrMultiProcessorCount, s->device));
        s->clusters = pgi_cuda_clusters(s);
    }
#endif
    PGI_TRY(pgi_check_array(s, "A", d->desc.A, text));
    PGI_TRY(pgi_take_workspace(s, text));
    pgi_arena measure = {NULL, NULL, 0};
    const size_t table_bytes = pgi_dense_layout(d, &measure);
    char *mirror = (char *)calloc(1, table_bytes + PGI_ALIGN);
    if (!mirror) return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory for %zu bytes", table_bytes);
    pgi_arena arena = {s->workspace, mirror, 0};
    pgi_dense_layout(d, &arena);
    s->host.outcome = PG_NOT_RUN;
    pgi_upload(s, mirror, table_bytes);
    free(mirror);
    if (s->failed) return pgi_refuse(text, s->failed, "%s", s->error);
    d->desc.workspace_bytes = s->desc.workspace_bytes = s->bytes;
    return pgi_dense_read(d, text);
}

// ---- calls ----

static pg_status pgi_dense_check_apart(pg_dense *d, const void *u, const void *other, const char *name, int64_t count)
{
    const size_t element = pgi_element(d->desc.flags);
    const char *a = (const char *)u, *b = (const char *)other;
    if (a + (size_t)d->desc.n * element <= b || b + (size_t)count * element <= a) return PG_OK;
    return pgi_refuse(d->s.error, PG_ERROR_ARGUMENT, "u (%p) and %s (%p) overlap; give them memory of their own", u,
                      name, other);
}

static pg_status pgi_dense_solve(pg_dense *d, void *u, const void *f, const pg_stop *caller)
{
    pg_solver *s = &d->s;
    pg_stop stop;
    if (!d->readable)
        return pgi_refuse(s->error, PG_ERROR_UNSUPPORTED,
                          "the matrix was refused by the last pg_dense_update; mend it and call that again");
    PGI_TRY(pgi_check_stop(s, caller, &stop, s->error));
    if (d->desc.flags & PG_JACOBI && (!caller || caller->check == 0)) stop.check = 1;    // it has the residual anyway
    PGI_TRY(pgi_check_array(s, "u", u, s->error));
    PGI_TRY(pgi_check_array(s, "f", f, s->error));
    PGI_TRY(pgi_dense_check_apart(d, u, f, "f", d->desc.n));
    PGI_TRY(pgi_dense_check_apart(d, u, d->desc.A, "A", (d->desc.n - 1) * d->desc.lda + d->desc.n));
#if PGI_GPU
    PGI_TRY(pgi_check_capture(s, &stop));
#endif
    s->guess_zero = stop.guess == PG_GUESS_ZERO;
    s->checked = stop.rtol > 0 || stop.atol > 0;
    s->to_round_off = !caller || (caller->rtol == 0 && caller->atol == 0);
    s->with_floor = s->checked && pgi_floor_can_matter(s, &stop);
    PGI_TRY(pgi_enter_call(s, u, f, !s->guess_zero, 1));
    s->monitor = stop.monitor;
    s->monitor_user = stop.user;
    s->monitored = 0;
    pgi_enter_problem(s, u, f, &stop, 0);
    pgi_run_program(s, 1);
#if PGI_GPU
    if (s->staged) {
        pgi_cuda_read_state(s, s->state);
        if (s->failed == PG_OK && pgi_gate(&s->host, d->desc.flags & PG_RESTORE ? PGI_SOUND : PGI_VALID))
            pgi_stage(s, u, s->desc.stride_u, s->stage_u, 0);
    }
#endif
    return pgi_leave_call(s, NULL, s->desc.stride_u, s->stage_u);
}

static pg_status pgi_dense_get_report(pg_dense *d, pg_report *report)
{
    PGI_TRY(pgi_get_report(&d->s, report));
    if (!d->s.host.measured) report->floor = NAN;
    return PG_OK;
}

static pg_status pgi_dense_update(pg_dense *d)
{
    PGI_TRY(pgi_dense_read(d, d->s.error));
    return PG_OK;
}

// The common begin of all calls on a handle.
static pg_status pgi_dense_begin_call(pg_dense *d)
{
    if (!d) return pgi_refuse(pgi_thread_error, PG_ERROR_ARGUMENT, "solver is NULL; create one with pg_dense_create");
    return pgi_begin_call(&d->s);
}

extern "C" {

PG_API void pg_dense_destroy(pg_dense *d)
{
    if (d) pg_destroy(&d->s);
}

PG_API pg_status pg_dense_create(const pg_dense_desc *desc, pg_dense **solver)
{
    char *text = pgi_thread_error;
    text[0] = 0;
    if (!solver) return pgi_refuse(text, PG_ERROR_ARGUMENT, "solver is NULL; pass the address of a pg_dense pointer");
    *solver = NULL;
    pg_dense *d = (pg_dense *)calloc(1, sizeof *d);
    if (!d) return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory for a solver (%zu bytes)", sizeof *d);
    pg_status status = pgi_dense_prepare(desc, d, text);
    if (status == PG_OK) {
        const int previous = pgi_make_current(&d->s);
        status = pgi_dense_build(d, text);
        pgi_restore_current(&d->s, previous);
    }
    if (status != PG_OK)
        pg_dense_destroy(d);
    else
        *solver = d;
    return status;
}

PG_API pg_status pg_dense_workspace_bytes(const pg_dense_desc *desc, size_t *bytes)
{
    char *text = pgi_thread_error;
    text[0] = 0;
    if (!bytes) return pgi_refuse(text, PG_ERROR_ARGUMENT, "bytes is NULL; pass the address of a size_t");
    *bytes = 0;
    pg_dense *d = (pg_dense *)calloc(1, sizeof *d);
    if (!d) return pgi_refuse(text, PG_ERROR_MEMORY, "not enough host memory (%zu bytes)", sizeof *d);
    const pg_status status = pgi_dense_prepare(desc, d, text);
    if (status == PG_OK) *bytes = d->s.bytes;
    pg_dense_destroy(d);
    return status;
}

PG_API pg_status pg_dense_query_desc(const pg_dense *d, pg_dense_desc *desc)
{
    pgi_thread_error[0] = 0;
    if (!d || !desc) return pgi_refuse(pgi_thread_error, PG_ERROR_ARGUMENT, "%s is NULL", d ? "desc" : "solver");
    *desc = d->desc;
    return PG_OK;
}

#define PGI_DENSE_CALL(work)                                                                                           \
    PGI_TRY(pgi_dense_begin_call(d));                                                                                  \
    const int previous = pgi_make_current(&d->s);                                                                      \
    const pg_status status = (work);                                                                                   \
    pgi_restore_current(&d->s, previous);                                                                              \
    return status

PG_API pg_status pg_dense_update(pg_dense *d) { PGI_DENSE_CALL(pgi_dense_update(d)); }
PG_API pg_status pg_dense_solve(pg_dense *d, void *u, const void *f, const pg_stop *stop)
{
    PGI_DENSE_CALL(pgi_dense_solve(d, u, f, stop));
}
PG_API pg_status pg_dense_get_report(pg_dense *d, pg_report *report)
{
    PGI_DENSE_CALL(pgi_dense_get_report(d, report));
}

PG_API pg_status pg_dense_set_stream(pg_dense *d, pg_stream stream)
{
    PGI_TRY(pgi_dense_begin_call(d));
    d->s.desc.stream = d->desc.stream = stream;
    return PG_OK;
}

PG_API const char *pg_dense_last_error(const pg_dense *d) { return pg_last_error(d ? &d->s : NULL); }

}    // extern "C"

#else

static pg_status pgi_no_dense()
{
    return pgi_refuse(
        pgi_thread_error, PG_ERROR_UNSUPPORTED,
        "poisson_gpu.cu was compiled with PG_NO_DENSE, which leaves out dense systems; compile it without");
}

extern "C" {
PG_API pg_status pg_dense_create(const pg_dense_desc *, pg_dense **solver)
{
    if (solver) *solver = NULL;
    return pgi_no_dense();
}
PG_API void pg_dense_destroy(pg_dense *) {}
PG_API pg_status pg_dense_workspace_bytes(const pg_dense_desc *, size_t *bytes)
{
    if (bytes) *bytes = 0;
    return pgi_no_dense();
}
PG_API pg_status pg_dense_query_desc(const pg_dense *, pg_dense_desc *) { return pgi_no_dense(); }
PG_API pg_status pg_dense_update(pg_dense *) { return pgi_no_dense(); }
PG_API pg_status pg_dense_solve(pg_dense *, void *, const void *, const pg_stop *) { return pgi_no_dense(); }
PG_API pg_status pg_dense_get_report(pg_dense *, pg_report *) { return pgi_no_dense(); }
PG_API pg_status pg_dense_set_stream(pg_dense *, pg_stream) { return pgi_no_dense(); }
PG_API const char *pg_dense_last_error(const pg_dense *) { return pgi_thread_error; }
}    // extern "C"

#endif
