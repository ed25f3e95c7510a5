/* poisson_gpu - solve  alpha*u - div(beta grad u) = f  on box grids in 1D, 2D and 3D, on an NVIDIA GPU or on the CPU.

   Two files: this header (C99, C++) and poisson_gpu.cu (everything else). Compile the second one with one of

       nvcc -O3 -std=c++17 -arch=native -Xcompiler -fopenmp -c poisson_gpu.cu    GPU and CPU
       c++ -x c++ -std=c++17 -O3 -fopenmp -c poisson_gpu.cu                      CPU only, no CUDA toolkit needed

   and link it with  nvcc main.c poisson_gpu.o -lcufft -Xcompiler -fopenmp  or  cc main.c poisson_gpu.o -fopenmp -lstdc++ -lm
   (and -lcudart -lcufft, if nvcc made it). For a shared library: -shared -Xcompiler -fPIC,-fopenmp ... -lcufft, or -shared
   -fPIC. nvcc takes some five minutes for an architecture and leaves 11 MB; the second line takes 70 seconds and leaves
   1.9 MB. -ffast-math is allowed. In C++ write  pg_desc desc{};  where C has {0}.
   A whole program (samples/hello.c, word for word):

#include <math.h>
#include <stdio.h>
#include "poisson_gpu.h"

enum { N = 63 };                                     // unknowns along each axis of the unit cube; u = 0 outside
static double u[N][N][N], f[N][N][N];

static double sine(int i) { return sin(3.14159265358979323846 * (i + 1) / (N + 1)); }

int main(void)
{
    const double c = 3 * 3.14159265358979323846 * 3.14159265358979323846;
    for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) f[k][j][i] = c * sine(i) * sine(j) * sine(k);

    pg_desc desc = {0};                              // zero means: unit box, u = 0 at its sides, f64, host arrays
    desc.n[0] = desc.n[1] = desc.n[2] = N;
    pg_report report;
    if (pg_solve_once(&desc, u, f, &report) != PG_OK) {
        puts(pg_last_error(NULL));
        return 1;
    }
    double error = 0;                                // the exact solution is sine(i) sine(j) sine(k)
    for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) error = fmax(error, fabs(u[k][j][i] - sine(i) * sine(j) * sine(k)));
    printf("%s; largest error %.1e\n", report.message, error);
    return report.outcome != PG_CONVERGED || error > 3e-4;
}

   Functions                                                        may be called
       pg_solve_once                                                for a first try: create, solve, destroy
       pg_create  pg_destroy  pg_workspace_bytes  pg_query_desc  pg_query_part   once per problem shape
       pg_solve  pg_get_report                                      as often as f changes
       pg_set_faces  pg_set_alpha  pg_set_stream                    between solves, free of cost
       pg_set_mask  pg_set_coefficients  pg_set_cell_values         between solves: obstacles and coefficients that change
       pg_gradient                                                  after a solve: forces, fluxes, projections
       pg_get_parts                                                 the parts of the fluid among obstacles, and sums over each
       pg_smooth  pg_cycle  pg_apply  pg_residual  pg_norm  pg_dot  pg_sum    to build a solver of your own
       pg_dense_create  pg_dense_solve  ...                         dense systems A u = f, see DENSE SYSTEMS
       pg_last_error  pg_status_string  pg_outcome_string  pg_version  pg_abi

   ===================================================================================================================
   WHAT IT DOES NOT DO (in this version)
       masks and coefficient fields on nodes; free-space boundaries; parts along two axes (see SEVERAL RANKS); alpha < 0
       but with PG_DIRECT (where -alpha is below the least eigenvalue of A without alpha, repeated solves with alpha 0 and
       f - alpha u converge); cycles where the spacing or metric of two or three axes varies much, each along itself, and
       one axis has more than 1024 points converge slowly or not at all (PG_FMG is conjugate gradients then, and takes
       tens of iterations; up to 1024 such problems are solved exactly, see below). At any time: irregular meshes,
       complex numbers.

   ===================================================================================================================
   CONVENTIONS
   Sign.      A u = alpha*u - beta*laplacian(u) = f: A has a positive diagonal. A potential with charge density rho has
              f = rho/eps0; the projection v = v* - (dt/rho) grad p has f = -(rho/dt) div v*.
   Layout.    i fastest: element (i,j,k) is at i + j*stride_j + k*stride_k, strides in elements, 0 means packed. u and f
              have strides of their own, so either may be a window of a larger padded array (pass the address of the
              window's first element). nz = 1 is a 2D problem, ny = nz = 1 a 1D one; desc.dim says otherwise.
   Centring   of the unknowns, per axis:

              PG_NODE, Dirichlet ends      PG_NODE, Neumann or Robin ends     PG_CELL, every kind
              g   0   1   2   3   g        0   1   2   3   4   5              | 0 | 1 | 2 | 3 | 4 | 5 |
              x---o---o---o---o---x        o---o---o---o---o---o              |-o-|-o-|-o-|-o-|-o-|-o-|
              h = length/(n+1)             h = length/(n-1)                   h = length/n, faces half a cell outside
              end points are known         end points are unknowns

              One Dirichlet end, or periodic (the last interval leads back to unknown 0): h = length/n.
              The default length is 1: h = 0 in the descriptor picks the h above.
   Stencil.            (j+1)            Per axis a row reads  (1/w_i) [ k_i (u_i - u_(i-1))/d_i + k_(i+1) (u_i - u_(i+1))/d_(i+1) ],
                         |              d: distances, w: control length times metric weight, k: conductance
              (i-1) --- (i) --- (i+1)   (both 1 unless given). Uniform: (2 u_i - u_(i-1) - u_(i+1))/h^2. At a Neumann
                         |              node end w = h/2: (2/h^2)(u_0 - u_1) = f_0 + 2 g/h. Second order throughout.
                       (j-1)
   Faces      in order x low, x high, y low, y high, z low, z high: u = g (Dirichlet); du/dn = g along the OUTWARD normal
              (Neumann); a u + b du/dn = g with a*b >= 0, b != 0 (Robin); periodic (both faces of the axis). g is 0, one
              constant, or an array over the face, packed over the other axes in the order x, y, z with the lower one
              fastest: ny*nz values [j + ny*k] on an x face, nx*nz values [i + nx*k] on a y face, nx*ny [i + nx*j] on z.
              A face of cells is h/2 from the unknown beside it: the flux into that cell is (g - u)/(h/2) where Dirichlet,
              (g - a u)/(a h/2 + b) where Robin; times the conductance of that end, as is Neumann's g.
   Spacing.   h per axis, or coord: the m+1 interval ends from one side of the box to the other, strictly increasing. Cells:
              the n+1 cell edges. Nodes: all points with the Dirichlet end points, and once more the first point, one period
              on, where periodic; so m = n+1, n or n-1 as in the drawings.
   Metric.    weight[n] at the unknowns and conductance[n+1] between them ([0] and [n] at the ends) turn -d2/dx2 into
              -(1/w) d/dx (k d/dx). Axisymmetric r: w = k = r. Grad-Shafranov R: w = k = 1/R. (r,theta): multiply the
              equation by r^2, then w = 1/r, k = r along r and a plain theta axis. (r,theta,z) is not separable. f is not
              multiplied by w. k = 0 at an end (r = 0 on a cell edge) closes that end, whatever its face kind; r = 0 on a
              Neumann node: w[0] = h/4, the mean of r over half an interval, k[0] = 0, the other k at the midpoints.
              Layers, beta(x): w = k = beta(x), f/beta(x) for f, alpha = 0 (of cells: w in the cell, k at its edges, the harmonic
              mean of both sides). Rows c_i (u_i - u_(i-1)) + a_i (u_i - u_(i+1)) of a scheme that does not conserve become
              such by w_0 = 1, k_(i+1) = a_i w_i h^2, w_(i+1) = k_(i+1)/(c_(i+1) h^2), if a and c are positive.
   Velocity.  desc.velocity adds v_x du/dx + v_y du/dy + v_z du/dz to A u (neither a metric nor beta multiplies it): a step of
              advection and diffusion. Central differences, of second order on any spacing; with PG_UPWIND the difference on the side that
              the flow comes from, of first order and without wiggles where |v| h > 2 beta. A is not symmetric then: BiCGStab
              (default, with PG_PRECOND_AINV) solves it; sweeps converge with PG_UPWIND, or where |v| h <= 2 beta; others
              are refused. Needs alpha > 0, or a Dirichlet or Robin face. Central differences beside a Dirichlet face of
              cells that the flow leaves through need |v| h < 3 beta, or the diagonal is not positive: use PG_UPWIND.
   Norms      (of all finite values): PG_NORM_L2 = sqrt(sum w r^2), w the product of the three control lengths;
              PG_NORM_L2_PLAIN = sqrt(sum r^2); PG_NORM_MAX; PG_NORM_L1 = sum w |r|. A is self-adjoint in the inner
              product sum w x y, which pg_dot is.
   Singular   problems (alpha = 0 and no Dirichlet or Robin end anywhere): f must satisfy sum w f + boundary flux = 0. What has
              to be subtracted from f to make it so is subtracted and reported (report.removed_mean); of all solutions the
              one with weighted mean zero is returned. Works with every method; with the pieces (pg_cycle, pg_residual, ...)
              the mean is yours to subtract: (pg_sum of f + boundary flux) / pg_sum of 1.

   ===================================================================================================================
   CHOOSING A METHOD (flags; the default is PG_FASTEST in f64)
       PG_FASTEST (not with a velocity) PG_DIRECT where it can solve the problem, but PG_FMG where that is estimated to be
                  faster: with two lengths of large prime factors, or with few points on the CPU. report.method tells which
                  and why. Takes no options of multigrid: with a smoother, PG_SYMMETRIC, omega, nu_pre, nu_post,
                  fmg_cycles or inner_cycles, and no method, the default is PG_FMG.
       PG_FMG     full multigrid, then V-cycles until the tolerance holds. One pass (rtol = PG_NONE, max_iter = 1) already
                  solves to about the discretisation error. Guess: zero unless told, also among obstacles: in time steps
                  give stop.guess = PG_GUESS_U, for the last u may save a third of the iterations; rtol is against f all
                  the same, unless relative_to_first. (Brandt 1977; Trottenberg, Oosterlee, Schueller, Multigrid, 2001,
                  sections 2.6 and 5)
       PG_VCYCLE  V(2,1) cycles from the guess in u: for time steps, where the last solution is a good guess. The residual
                  falls by 10 to 30 a cycle, at every size, boundary kind and ratio of spacings.
       PG_WCYCLE  two visits on the coarser levels (at most 32 on one level): rarely needed.
       PG_RBGS, PG_SOR, PG_JACOBI   stationary sweeps: for smoothing, teaching, or tiny grids. SOR picks Young's omega
                  (D. Young 1954) by itself; iterations grow like n for SOR, like n^2 for the others.
       PG_DIRECT  solves at once, without iterations: sine and cosine transforms along the uniform axes, elimination along the one
                  that remains, which may have coord, a metric or Robin faces (P. N. Swarztrauber, SIAM Review 19, 1977).
                  One such axis at most: else PG_FMG. Every n; n (n+1, n-1 with node-centred Dirichlet, Neumann ends) without
                  large prime factors is fast, and one axis with such a factor is eliminated (two: see report.warning); 2D
                  problems to 128^2 take one kernel, 3D ones to 34^3 three. alpha may be negative (but not where a periodic
                  axis has coord or a metric); if -alpha is an eigenvalue, to round-off, the outcome is PG_RESONANCE and u
                  lacks that eigenfunction. pg_solve is one solve, whatever the guess; a tolerance asks for the residual of
                  u. Without one (rtol = PG_NONE) u and f may be the same array, with the same strides.
       PG_CG      conjugate gradients from the guess in u (Hestenes, Stiefel 1952), in the inner product of pg_dot, in which A is
                  self-adjoint. Of use where multigrid alone is slow; elsewhere PG_DIRECT and PG_FMG are faster.
       PG_PIPECG  the same iterates, with sums that need not be awaited before the products that follow them: of use where sums
                  are slow; on one GPU they are not, and PG_CG is faster. Without a preconditioner or with the diagonal by predict
                  and recompute (Chen, Carson 2020), else Ghysels, Vanroose 2014, whose residual is renewed every 50 iterations.
       PG_BICGSTAB  van der Vorst 1992, preconditioned from the right, two products an iteration; the sums of both halves taken
                  together (Krasnopolsky 2010). PG_PIPEBICGSTAB: pipelined (Cools, Vanroose 2017). Where it divides by 0 it
                  begins again; where that leads to the next such division at once: PG_BREAKDOWN.
       Krylov methods take one preconditioner:
                  PG_PRECOND_CYCLE (default) a V-cycle from 0: CG a symmetric V(2,2) (7 iterations to 1e-8 on a cube), BiCGStab V(2,1)
                  PG_PRECOND_DIAGONAL, PG_PRECOND_NONE   iterations grow like n
                  PG_PRECOND_AINV    M = D^-1 (9/4 - A D^-1), the Neumann series cut so that M has the stencil's sparsity (Dubois,
                                     Greenbaum, Rodrigue 1979): about half the iterations of the diagonal for one product more
                  PG_PRECOND_AINV2   2 M - M A M: a third, for three
                  PG_PRECOND_DIRECT  PG_DIRECT of a nearby operator (P. Concus, G. H. Golub 1973): the axis that varies most
                                     stays, others with coord, a metric or Robin faces become uniform, velocities 0. Iterations
                                     hardly depend on n: spacings to 1:2, 1:10, 1:100 along each axis, to 1e-8, take CG 11, 29,
                                     102 in 2D, 16, 77, 623 in 3D. For mild stretching on large grids and, with
                                     BiCGStab, for time steps of advection. Grids: one less than AINV, and those of PG_DIRECT;
                                     PG_MIXED one more.
                  The residual of a check is that of the recurrence; before a solve ends it is worked out from u, and the method
                  begins again from it where it is too large. Words moved an iteration and point, without a preconditioner: CG
                  8, PIPECG 14, BiCGStab 18, PIPEBICGSTAB 28. Grids beyond u and f in 3D (diagonal, AINV, cycle): CG 2 (3, 4, 4.4),
                  PIPECG 5 (7, 10, 10.4), BiCGStab 5 (7, 8, 8.4), PIPEBICGSTAB 8 (10, 11, 11.4); PG_MIXED 0.3 more.
       PG_MIXED   f64 answers by f32 cycles or direct solves (iterative refinement): half the memory traffic. With PG_VCYCLE,
                  PG_WCYCLE, PG_FMG, PG_DIRECT, PG_FASTEST; Krylov methods keep f64 vectors, and the cycle
                  or PG_PRECOND_DIRECT is f32 (not with PG_PIPEBICGSTAB or a velocity for the latter).
       PG_F32     limits: u is stored with 24 bits, so the relative residual stops near 1e-7 * (4/h^2) |u|/|f|, see TOLERANCES.
       PG_SYMMETRIC  makes a cycle a symmetric positive operator in the inner product of pg_dot (transposed transfers, the
                  colours of the post-smoothing reversed, nu_pre = nu_post): a preconditioner for CG on an operator of your own
                  that is near this one. As a solver it is slower: a factor of 7 or so a cycle. Cycles solve with the boundary
                  values of the faces, so precondition with these set to 0 (pg_set_faces): z = 0, pg_cycle(z, r, 1).
   Options    (flags beside method and precision, omega, nu_pre, nu_post, fmg_cycles, inner_cycles) that the method has no
              use for, and robust without obstacles or coefficients, are refused by name, with what would be accepted;
              but they may say what is so anyway (no sweeps, omega 1 of PG_RBGS, one inner cycle). coarsest is a limit:
              any method takes it.
   Axes may differ in spacing by 1:1000: only the strongly coupled axes are coarsened (semi-coarsening). Metrics and jumps of
   them along an axis, ends that conduct badly or not at all, do not matter: coarse levels add up resistances. Where one axis
   varies much multigrid solves for whole lines along it at a time, every second one, and coarsens the other axes only: where
   the coupling k/(w d) of its rows varies by more than 4 (equal k and w: the spacing by more than 2), or k or w of
   neighbours differ by more than 10. V(2,1) falls by 5 or more a cycle, mostly by 10 to 30. The coarsest
   level is solved exactly, by products with the eigenvectors of its axes (Lynch, Rice, Thomas 1964); so is a whole problem of
   up to about 33^3 or 129^2 points, in one cycle of any kind. And so is one where cycles would be slow: where a second axis
   varies too, each along itself, by more than 2 in 3D or 8 in 2D (the same measure: the spacing by so much, or the root of the
   coupling), and no axis has more than 1024 points. The tables are separable all the same, and one cycle of any kind, and the
   preconditioner of PG_CG, is exact to round-off: 1 or 2 iterations to 1e-8 in f64, for spacings to 1 : 1000. It takes
   4 (nx + ny + nz) flops a point, at pg_create a second or two on one core for an axis of 1024, and memory for two matrices of
   n^2 numbers an axis (axes that are alike share them), and on the GPU 2 grids beyond u and f. report.method says so.
   With more points along an axis PG_FMG is PG_CG around the symmetric cycle instead (from 0 unless told, with its memory and
   without pg_cycle): report.accelerated. Both follow from the tables, at pg_create; PG_KEEP_CYCLES, a smoother or an omega of
   your own forbid them. V(2,1) may fall by less than 2 a cycle then, or diverge.

   ===================================================================================================================
   TOLERANCES AND VERDICTS
   PG_CONVERGED: the residual, recomputed from the u that is returned, is within rtol ||f with its boundary terms|| or
   atol. Boundary terms count as they stand in the rows, as 2 g/h^2 of a Dirichlet face of cells: large. u is rounded,
   which alone leaves a residual of about eps ||D u||, D the diagonal of A (report.floor; times 16 for PG_DIRECT, 3 for
   PG_SOR). The default tolerance is 1e-8 (f32: 1e-5), or this floor where that is higher and the residual is at most a
   tenth of the right-hand side: test for PG_CONVERGED, and expect it of every problem that multigrid or PG_DIRECT takes with default options.
   (Residuals below the floor are seen no more. Full multigrid and PG_DIRECT have solved by then; V-cycles and sweeps go on
   until, at the rate at which the residual fell above the floor, it would be within 1e-8 or 1e-5.) Where more than a
   tenth of f is lost in round-off: PG_STAGNATED, and report.message says whether PG_F64 helps. So ends a
   tolerance of your own below the floor, one or two checks after the floor is reached; a slow method ends as PG_MAX_ITER.
   PG_DIVERGED: the residual grew by 1e8 (BiCGStab in f64: 1e30), or has grown tenfold and not fallen for ten checks.
   In singular problems the mean of u is subtracted before the last check, and what was subtracted from f is named in
   report.message and report.warning where it is more than rounding: unbalanced in- and outflow, say.
   Values may be of any size; numbers that overflow on the way (1/h^2 times u, sums along a line) end as PG_NOT_A_NUMBER.
   A step of Crank-Nicolson, (1/dt + A/2) u' = (1/dt - A/2) u + f: with alpha = 2/dt, pg_residual of (u, 2 f) gives
   2 f - A u - (2/dt) u; add (4/dt) u to it and solve for u'.

   ===================================================================================================================
   BATCHES    desc.batch problems with the same tables, alpha and boundary kinds, each with its own u, f and face arrays: problem q
              begins at q * stride_u[2] in u, q * stride_f[2] in f, and its face data follow those of problem q - 1 at once
              (a constant g holds for all). Rows, planes and problems may interleave as long as no two elements coincide.
              Every method takes batches: PG_DIRECT solves all of them in the same few kernels (then, if there is a
              tolerance, checks one after the other; with PG_MIXED or a monitor it also solves so), others solve one
              after the other, each to its own tolerance. The report is that of the problem that fared worst: the gravest
              outcome, then the largest ||r|| / ||f||; milliseconds are those of all. A monitor that cancels leaves the
              remaining problems as they are. Without a tolerance removed_mean of a PG_DIRECT batch is not worked out (NaN);
              with one, a NaN in f makes that problem's u NaN, and on the CPU no other's. Without one, and on a GPU, a
              neighbour of an odd number of columns may become NaN too, for columns are transformed by twos. Pieces act on all
              problems; pg_norm, pg_sum and pg_dot take them as one vector.

   ===================================================================================================================
   OBSTACLES AND COEFFICIENTS   Boxes that are not empty, and beta that is not one number. All axes PG_CELL, 1D to 3D, any
              face kinds, any spacing (no metric, no velocity).
   Mask.      desc.mask, one byte a cell, element (i,j,k) at i + j*stride_mask[0] + k*stride_mask[1]: PG_FLUID (0), an
              unknown; PG_SOLID, a wall: no flux, or one that is given; PG_AIR: u is known there, 0 or a value that is
              given, at the centre of the air cell. Solves do not read u and f of cells that are not fluid, and set u to 0
              there; pg_norm, pg_sum and pg_dot take all cells. One mask and its lists serve all problems of a batch.
              Without any fluid u is 0 at once, PG_CONVERGED.
   Values.    desc.air_value and desc.solid_flux list what is not 0: {cell, face, value}, the fluid cell and its side
              (PG_X_LOW, ...) where the air or the solid is. Of air u; of a solid du/dn along the normal that points into
              the solid, as on a Neumann face; openness multiplies it. Values of the same side add up. They are kept with
              the handle; pg_set_cell_values gives new ones, at most as many as pg_create had.
   beta.      desc.beta_face[a]: the coefficient of every face along axis a, packed, n[a]+1 of them along a, i fastest:
              (nx+1)*ny*nz values [i + (nx+1)*(j + ny*k)] for x; all axes of the problem or none. Or desc.beta_cell, packed
              nx*ny*nz values: a face has the harmonic mean of both sides, also of a fluid cell and what air or a solid
              with a flux has there; a face of the box has the value of its cell.
              desc.openness[a], laid out as beta_face: the open part of a face, 0 to 1, which multiplies beta (variational
              solids, cut cells: C. Batty, F. Bertails, R. Bridson 2007), all axes or none. All of them multiply desc.beta.
              Of a periodic axis the last face is the first one, and face 0 is read. desc.alpha_cell, packed: added to
              alpha, >= 0 (linearised Poisson-Boltzmann). beta is 1e-30 to 1e30, alpha_cell at most 1e30, in all cells, also
              those that are not fluid. Arrays of u's precision and memory kind, kept by the caller: every solve reads them,
              or with host arrays on a GPU, or several ranks, the copies that pg_create and pg_set_coefficients make.
   Singular   problems are so a pocket at a time: each connected part of the fluid that neither air nor a Dirichlet or Robin
              face nor alpha holds. f is made compatible in each, by subtracting its mean there (report.removed_mean: the
              largest one; report.pockets: their number), and u has mean zero in each, where cells whose faces are all less than 1/1000
              open count in proportion less; pg_residual leaves the means in.
              Cells without any link have u = 0, or f / alpha, and are not among these pockets. pg_get_parts tells all
              parts of the fluid, and the mean of any array in each.
   Methods.   PG_FASTEST and PG_FMG are PG_CG around one symmetric V(2,2) cycle here (report.accelerated). PG_CG, PG_PIPECG
              and PG_BICGSTAB take any preconditioner, PG_PIPEBICGSTAB all but the cycle (default: PG_PRECOND_AINV);
              PG_VCYCLE and PG_WCYCLE (may fall slowly, or diverge), PG_JACOBI, PG_RBGS and PG_SOR (omega 1 unless
              given) too. PG_PRECOND_DIRECT solves on the empty box with constant beta. PG_DIRECT is refused, and so
              are smoothers other than PG_SMOOTH_RBGS.
              Where the residual does not fall for 30 checks, or to the tolerance in 300 iterations, PG_CG and PG_PIPECG leave
              the cycle and go on from u as PG_CG with PG_PRECOND_AINV2: report.warning; max_iter counts all iterations.
              PG_PIPECG with another preconditioner goes on as PG_CG with it where the residual does not fall for 80.
   The cycle  keeps apart what is not connected: coarse cells hold a node for each connected part of their cells, as
              compact lists from the second coarse level on, so that thin walls, labyrinths and jumps of beta to 1e6 do
              not slow it much. Coarse conductances are bounded sums of resistances, without Galerkin products. As a
              preconditioner the cycle has rows of its own in bf16, but on GPUs for a mask alone on uniform axes; coarse
              levels are f32, the dense one's rows bf16. The second list is visited three times (W: the dense level)
              with fixed Chebyshev factors. On GPUs the last lists, six at most, from one of up to 1000 cells and 1024
              nodes on, as pg_create finds them, are visited in one kernel: by a matrix, which is made with them; should
              later masks have more nodes, more slowly. desc.robust: the first coarse level is a list as well, and is
              visited three times: for media that are random or nearly closed cell by cell, for spacings that differ (at
              1:10 some 40 iterations become 9) and for alpha > 0 among many closed pockets, which slow the other cycle
              the more the smaller alpha is. desc.robust = 2: up to three of the first lists are visited three times
              each, one within the other: for labyrinths. 3: both: most memory. desc.robust = 0: as is measured at
              pg_create in the rows of A, whatever makes them: 1 where links of less than a fiftieth cut coarse cells
              into parts, none of which hangs on another one, in more of them than a few spots on a side of the box (by
              beta: than some); but not where beta is random from cell to cell and most parts do hang on others, from
              40000 cells on in 3D; 2, up to 120000 cells 3, where without beta_face and beta_cell the fluid's cells
              have at most 2.5 open links on average in half of the coarse cells; else PG_NONE. pg_set_mask and
              pg_set_coefficients measure anew: on GPUs they wait for that, and where another kind is chosen graphs are
              recorded anew. Once a call has been captured by the caller the choice stays as it is. pg_query_desc and
              report.method tell it. Iterations to 1e-8 at 65^3, f random: 8 to 12 with obstacles, pockets, free
              surfaces, labyrinths, layers and porous media, 14 in a spiral, 15 to 17 where half of the cells are solid
              at random and among touching balls of 1e6 in 1, 30 in a maze, 38 where every cell differs from its
              neighbours by decades. On larger grids few grow: a maze at 129^3 and at 257^3 takes 50, layers at 257^3
              27, decades from cell to cell there 172. Without robust cut cells beside a thin plate do (129^3 and 257^3
              32 and 45), half solid at random (41 and 50) and porous media (15 and 22).
   PG_COARSEN_CELLS   is an option of PG_FMG, PG_VCYCLE, PG_WCYCLE and the preconditioner PG_PRECOND_CYCLE, to compare with:
              a coarse cell has one unknown, as in solvers of smoke and liquids (A. McAdams, E. Sifakis, J. Teran 2010),
              whatever walls cut its fluid into. Masks only, no coefficient fields. As quick as the other levels with open
              boxes and free surfaces; beside thin walls up to three times as many iterations (baffles at 33^3 24 instead
              of 9), in labyrinths 50 to over 150. PG_FMG is PG_CG around the cycle with it, too.
   Changes.   pg_set_mask and pg_set_coefficients make the coarse levels anew, on the stream, without allocation; after
              pg_set_alpha the next solve does. A captured solve, launched, takes the newest mask and coefficients, and alpha
              as it was captured.
   Memory.    PG_CG with the cycle in 3D: 9.5 grids beyond u and f in f64, 11 with PG_MIXED, 15 in f32 (2D 16.5, 18,
              30), on GPUs with a mask alone on uniform axes, from 200000 cells on, 8 bytes a cell less; robust 31 in
              f64, 58 in f32; where desc.robust is 0 and the measure may choose, room for all that it may: as robust up
              to 120000 cells, with beta_face or beta_cell up to 4 million, and where spacings of two axes differ by
              more than 5; else up to 20 million cells 3 grids (f32 6) more than without; above nothing, and no robust
              cycle. So the descriptor alone tells the bytes; where what is measured calls for more room, report.warning
              says so: create with robust 1. Up to a million cells 16 bytes a cell more, for pockets; on GPUs 4 MiB at
              most for a matrix, and with host arrays their copies. At most 2e9 cells, robust 4e8. PG_COARSEN_CELLS 7.5
              in f64. Without a cycle 1.9 more than elsewhere (f32 3). Parts of the fluid for which coarse levels have
              no room are merged, pockets for which there is none count as regular: report.warning.
   Cost.      A cycle takes longer than the one of an empty box: least so on large 3D grids with a mask on uniform axes, which
              have kernels of their own on GPUs; longer with spacings that vary, with coefficients, on small grids, and where
              most cells are near a wall. Bricks of 8 cells along each axis, counted from cell (0,0,0), in which the mask has
              no fluid cost next to nothing. A new mask takes a few cycles' time: on an H200 15 ms at 512^3 and 4 ms at 257^3; at
              257^3 10 ms with spray and bubbles, 15 ms with rooms, with robust 15 to 49 ms.

   ===================================================================================================================
   DENSE SYSTEMS   A u = f with any matrix A of n x n values, by stationary sweeps (D. M. Young, Iterative Solution of Large
              Linear Systems, 1971; Saad, Iterative Methods for Sparse Linear Systems, 2003, chapter 4): pg_dense_create, pg_dense_solve.
   Layout.    A is row-major: A[i][j] at i*lda + j, lda >= n in elements (0: n); u and f are n values side by side. On a GPU rows
              on 16-byte boundaries are read fastest (an even lda; in f32 a multiple of 4).
   PG_JACOBI        u' = u + omega D^-1 (f - A u); omega = 1 unless given. Converges if A is strictly dominated by its diagonal.
   PG_GAUSS_SEIDEL  the rows one after the other, each with the newest values: first to last, with PG_BACKWARD last to first
                    (default). Also converges if A is symmetric and positive definite.
   PG_SOR           the same with over-relaxation, 0 < omega < 2. omega = 0: 50 power steps at creation estimate the spectral radius
                    rho of Jacobi's iteration, and omega = 2/(1 + sqrt(1 - rho^2)) (Young 1954); 1 where rho >= 1.
                    report.method and pg_dense_query_desc tell it. Few steps find rho too small where it is near 1.
   Iterates are those of the plain loop over rows and columns, to round-off, on either back end: on a GPU rows are solved in
   blocks, the columns that are known long before are multiplied ahead by all processors, those of the last few blocks
   by the one that solves. A sweep reads A once.
   PG_CONVERGED: the residual f - A u, worked out anew, is within the tolerance; of the norms PG_NORM_L2 is sqrt(sum r^2). PG_JACOBI
   finds the residual of an iterate while it makes the next one: it is checked after every sweep, and a solve of k sweeps
   reads A k+1 times. Others read A once more for each check: every ten sweeps, and before the first (stop.check tells
   otherwise). No check is made without a tolerance. Iterations to the tolerance stay on the device, host arrays are copied,
   solves may be captured, and a monitor may look on, as in pg_solve. PG_DIVERGED: the residual grew by 1e8; with PG_RESTORE u
   is then as it was before the call, and so it is if it became NaN on the way. NaN or Inf in A, f or u is found before u is
   written, wherever there is a tolerance. report.floor is 3 eps ||D u||, and the default tolerance as in TOLERANCES.
   Memory: little more than 4 n elements; with host arrays on a GPU 6 n and a copy of A, its rows padded to 32 elements.

   ===================================================================================================================
   SEVERAL RANKS   solve one problem together: processes of MPI (compile with -DPG_USE_MPI and mpicxx; this
              header needs no mpi.h), or threads or processes with a transport of your own. Each has a handle of its own:

                  MPI_Comm world = MPI_COMM_WORLD;
                  desc.comm.kind = PG_COMM_MPI, desc.comm.handle = &world;
                  int lo[3], hi[3];
                  pg_query_part(&desc, lo, hi);        u and f of this rank: lo[a] <= i < hi[a] along each axis

   Parts.     Slabs along the last axis, z or in 2D y (1D: one rank), as even as can be, or desc.lo and desc.hi of your choice,
              which must follow each other from rank to rank. n, h, coord, weight, conductance, the kinds and constants of
              faces and all options are those of the whole problem, and the same on all ranks. u, f, v, r and their strides are the
              rank's part. A face array along the last axis is the part of the face: [j + ny*(k - lo[2])]; one across it is the
              whole face, and read on the first or last rank only, as its constant is. pg_gradient at faces along the last
              axis gives hi - lo + 1 values in a line: both ranks have the one between them.
   Bits.      On the CPU sweeps, pg_apply, pg_residual and whole V, W and full multigrid cycles have the bits of one rank, for any number
              of ranks and any parts. Sums over the ranks (norms, Krylov methods, the mean of u or f where no face holds u) are the
              same on all ranks and run after run for given parts, and agree with one rank to round-off; so does PG_DIRECT.
   Methods.   All of them, every kind of face, centring, spacing, metric, velocity, batches. PG_DIRECT and PG_PRECOND_DIRECT
              eliminate along the last axis in parts, where the others can be transformed and alpha >= 0. Refused by name:
              parts along x or several axes; and where all ranks would need a level of more than 3e6 points whole:
              line relaxation along the last axis, exact solves because spacings vary, PG_DIRECT otherwise, too
              few planes a rank (the ghosts of a level, 1 to 5), and masks and coefficient fields, of which every rank gives
              its part (beta_face and openness along the last axis: hi - lo + 1 planes) and has all; air_value and solid_flux
              are the whole lists.
   GPUs       of one host as ranks (PG_CUDA and another device on each: desc.device) write into each other's memory, whatever
              brings the ranks together. With -DPG_USE_NCCL (-lnccl) that may be an ncclComm_t of one's own (PG_COMM_NCCL; device
              is its GPU), and where GPUs do not reach each other, or with -DPG_NO_PEERS, NCCL carries everything: the host then
              drives solves, and waits at each check. pg_apply, pg_residual and pg_gradient have the bits of one GPU; so have red-black
              sweeps where every rank has 4 planes or more, and all methods with masks and coefficient fields, of which all
              GPUs have everything and do the same work. All else agrees with it to round-off. Refused by name: GPUs that do
              not reach each other without NCCL. Where arrays are used in place (see Cost) calls return at once, as on one
              GPU, and what fails in one is said by the next one, or by pg_get_report. The workspace must be memory of
              cudaMalloc, and begin where that does. GPUs that differ make the plans of the least. Threads that are ranks need CUDA_MODULE_LOADING=EAGER. Tested on 2 GPUs
              of one host: ranks that are threads, and processes of MPI; brought together by either or by NCCL.
   Captured   calls of ranks, with device arrays, are captured by all of them: threads begin with
              cudaStreamCaptureModeThreadLocal. Instantiate and upload the graphs of all ranks before one launches its own, and
              launch them alike. Refused by name where NCCL carries everything, and with PG_NO_CONDITIONAL.
   Calls      of pg_create, pg_workspace_bytes, pg_destroy, pg_solve, the pieces and pg_set_mask and its like are made by all
              ranks together, each on one thread. They first compare what must be the same: "h[2] is 0.01 on rank 0 and 0.02
              on rank 1". Where one refuses, all do (PG_ERROR_COMM, with its reason), and nothing has happened. Set alpha and
              faces on all ranks alike. A monitor on all ranks or none; one that cancels cancels all.
   Failures.  A rank that does not answer within desc.time_limit makes the call PG_ERROR_COMM, with the rank and what it waited
              for; u is undefined then, and only pg_destroy is possible. A rank that refuses tells the others, which refuse
              too; where it cannot (a wrong struct_size or comm.handle) they wait for the time limit, in pg_create too.
              The communicator is duplicated; yours is never touched.
              After such a wait with PG_COMM_MPI pg_destroy leaves the workspace allocated, for MPI may still write to it.
   Cost.      Planes are exchanged once a colour of a sweep and once a transfer; a level of at most 4e4 points (1e6 on GPUs) is on all ranks,
              which work on it alike without messages. Two grids of the part more than one rank needs (whatever the batch), for
              copies of u and f with ghosts; on GPUs not where both are device arrays that are packed: these are used in place,
              and must begin at multiples of 16 bytes. PG_DIRECT 20 doubles a line along the last axis; faces with arrays
              are on all ranks whole.

   ===================================================================================================================
   MEMORY, STREAMS, THREADS
   pg_create allocates one workspace (or takes yours: desc.workspace) and nothing is allocated after it. Multigrid needs
   1.45 grids beyond u and f in 3D, 2 in 2D, 3.8 in 1D or where spacings differ so much that one axis coarsens alone (nodes
   and odd sizes a little more; eigenvectors at most 0.6 MB, but where two or three axes vary much, see above), 1.75 f64 grids in 3D with PG_MIXED; host arrays on the GPU add
   2 grids (times batch) and the faces for the copies; PG_JACOBI needs one; PG_RBGS and PG_SOR one on the GPU, where sweeps go
   from grid to grid, else none. PG_DIRECT works in u: in 3D 0.4 grids of the whole batch (up to 1.2 for small ones, and
   on the GPU where rows of u are no multiples of 32 bytes), in 2D 1.2 (up to 2.1 below 100^2), in 1D 3 to 8, tables as long
   as the line for the most part; one more f64 grid with PG_MIXED.
   On the GPU all work goes to desc.stream in order; pg_solve returns at once, and pg_get_report waits. Host arrays
   (PG_MEM_HOST, the default) are copied in and out, so that pg_solve waits. The calling thread's current device is left as
   it was. pg_solve with device arrays may be called while its stream is being captured: then the whole solve, iterations
   to the tolerance included, becomes part of your graph, with the u, f, alpha and faces of that call; a replay is a use of the
   handle, which must outlive the graph; wait for the stream of a replay yourself before asking for the report. Compiled
   before CUDA 12.4 or with PG_NO_CONDITIONAL, or with an older driver, pg_solve waits at every check, and is refused in a
   capture. On the CPU pg_solve returns when done;
   OpenMP uses the threads that OMP_NUM_THREADS allows, one for each 32768 unknowns at most, more only for products with the
   matrices of exact solves; where other programs want the
   cores too, set OMP_WAIT_POLICY=passive, or threads that spin make it ten times slower. A handle belongs to one thread at a
   time; two handles never affect each other.

   ERRORS, REPEATABILITY
   Every call returns a pg_status; pg_last_error(handle) then says in one sentence what was wrong and what would help
   (handle NULL: for pg_create, pg_solve_once, pg_workspace_bytes and pg_query_desc, on this thread). A refused call leaves
   u as it was and the handle usable. A solve that ran returns PG_OK, and its outcome is in the report. NaN and Inf are found
   under -ffast-math too. The same input on the same device
   gives the same bits, run after run; on the CPU also for any number of threads. CPU and GPU agree to round-off.

   COMPILE-TIME SWITCHES   PG_API: linkage of the functions ("static" for a file that includes the .cu)
                           PG_NO_DENSE: leaves out dense systems    PG_NO_RANKS: leaves out comm    PG_NO_CELLS: leaves out mask, beta_face,
                           beta_cell, openness, alpha_cell, air_value and solid_flux
                           PG_NO_KRYLOV: leaves out PG_CG, PG_PIPECG, PG_BICGSTAB, PG_PIPEBICGSTAB; among obstacles the
                           default is PG_VCYCLE then, and PG_FMG with wild spacings is not accelerated
                           PG_USE_MPI: PG_COMM_MPI, see SEVERAL RANKS; compile and link with mpicxx
                           PG_USE_NCCL: PG_COMM_NCCL; link with -lnccl    PG_NO_PEERS: GPUs do not write into each other's memory
                           PG_NO_F32: leaves out PG_F32 and PG_MIXED    PG_NO_DIRECT: leaves out PG_DIRECT, PG_PRECOND_DIRECT and -lcufft;
                           PG_FASTEST is PG_FMG then    PG_NO_CUDA: leaves out the GPU, where nvcc compiles all the same
                           What is left out is refused by name (PG_ERROR_UNSUPPORTED, PG_ERROR_NO_DEVICE); code is
                           smaller and compiles faster.
                           PG_NO_CONDITIONAL: no conditional graph nodes, as before CUDA 12.4; the host drives solves
                           then, with the same bits.
   LICENCE                 MIT or public domain, at your choice; see the end of this file. */

#ifndef POISSON_GPU_H
#define POISSON_GPU_H

#include <stddef.h>
#include <stdint.h>

#define PG_VERSION_MAJOR 0
#define PG_VERSION_MINOR 1
#define PG_VERSION_PATCH 0

#ifndef PG_API
#if defined(__GNUC__)
#define PG_API __attribute__((visibility("default")))
#else
#define PG_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------------------------------------------------------
   Results. PG_STATUS_LIST is the one table of codes and texts: first the caller's faults, then the machine's. */
#define PG_STATUS_LIST(X)                                                                                            \
    X(PG_OK, "done")                                                                                                 \
    X(PG_ERROR_ARGUMENT, "an argument or a field of the descriptor is not valid")                                    \
    X(PG_ERROR_UNSUPPORTED, "this combination is not possible")                                                      \
    X(PG_ERROR_MEMORY, "not enough memory, or the workspace is too small")                                           \
    X(PG_ERROR_NO_DEVICE, "no usable CUDA device, or built without CUDA")                                            \
    X(PG_ERROR_CUDA, "a CUDA call failed")                                                                           \
    X(PG_ERROR_COMM, "ranks disagree, or one is missing or has failed")

#define PG_OUTCOME_LIST(X)                                                                                           \
    X(PG_NOT_RUN, "not run")               /* no solve has been started with this handle                          */ \
    X(PG_CONVERGED, "converged")           /* the recomputed residual is within the tolerance, see TOLERANCES     */ \
    X(PG_COMPLETED, "completed")           /* no tolerance was asked for; max_iter iterations were done           */ \
    X(PG_MAX_ITER, "iteration limit")      /* max_iter iterations did not reach the tolerance                     */ \
    X(PG_STAGNATED, "stagnated")           /* round-off keeps the residual above a tolerance that was given       */ \
    X(PG_DIVERGED, "diverged")             /* the residual grows                                                  */ \
    X(PG_NOT_A_NUMBER, "not a number")     /* NaN or Inf in f, u or face data (u is untouched), or met on the way */ \
    X(PG_CANCELLED, "cancelled")           /* the monitor said so                                                 */ \
    X(PG_RESONANCE, "resonance")           /* PG_DIRECT: -alpha is an eigenvalue, to round-off                    */ \
    X(PG_BREAKDOWN, "breakdown")           /* BiCGStab divided by 0, began again, and did so once more            */ \
    X(PG_RUNNING, "running")               /* only in what the monitor sees                                       */

#define PG_ENUM_(name, text) name,
typedef enum pg_status { PG_STATUS_LIST(PG_ENUM_) PG_STATUS_COUNT } pg_status;
typedef enum pg_outcome { PG_OUTCOME_LIST(PG_ENUM_) PG_OUTCOME_COUNT } pg_outcome;
#undef PG_ENUM_

/* -------------------------------------------------------------------------------------------------------------------
   Choices. The value 0 is the default everywhere. */
typedef enum pg_centring { PG_NODE, PG_CELL } pg_centring;
typedef enum pg_face_kind { PG_DIRICHLET, PG_NEUMANN, PG_ROBIN, PG_PERIODIC } pg_face_kind;
typedef enum pg_face_index { PG_X_LOW, PG_X_HIGH, PG_Y_LOW, PG_Y_HIGH, PG_Z_LOW, PG_Z_HIGH } pg_face_index;
typedef enum pg_memory { PG_MEM_HOST, PG_MEM_DEVICE } pg_memory;
typedef enum pg_backend { PG_AUTO, PG_CUDA, PG_CPU } pg_backend;   /* PG_AUTO: CUDA if a device can be used, else CPU */
typedef enum pg_guess { PG_GUESS_DEFAULT, PG_GUESS_ZERO, PG_GUESS_U } pg_guess;
typedef enum pg_cell_kind { PG_FLUID, PG_SOLID, PG_AIR } pg_cell_kind;   /* bytes of desc.mask */
typedef enum pg_where { PG_AT_FACES, PG_AT_UNKNOWNS } pg_where;   /* of pg_gradient */
typedef enum pg_norm_kind { PG_NORM_L2, PG_NORM_L2_PLAIN, PG_NORM_MAX, PG_NORM_L1 } pg_norm_kind;

enum {                              /* pg_desc.flags: at most one of each group */
    PG_F64 = 0x1,                   /* precision: u, f, face arrays are double (default) */
    PG_F32 = 0x2,                   /*            ... float */
    PG_MIXED = 0x4,                 /*            ... double; the cycles run in float */
    PG_PRECOND_DIRECT = 0x8,        /* preconditioner, see PG_PRECOND_CYCLE: PG_DIRECT of a nearby operator */
    PG_JACOBI = 0x10,               /* method */
    PG_RBGS = 0x20,
    PG_SOR = 0x40,
    PG_VCYCLE = 0x80,
    PG_WCYCLE = 0x100,
    PG_FMG = 0x200,
    PG_DIRECT = 0x400,
    PG_FASTEST = 0x800,             /*            PG_DIRECT or PG_FMG, the one that is estimated to be faster (default) */
    PG_CG = 0x1000,                 /*            conjugate gradients, preconditioned */
    PG_PIPECG = 0x2000,             /*            ... pipelined */
    PG_BICGSTAB = 0x4000,           /*            BiCGStab, preconditioned */
    PG_PIPEBICGSTAB = 0x8000,       /*            ... pipelined */
    PG_SMOOTH_RBGS = 0x10000,       /* smoother of multigrid (default, but see PG_SMOOTH_LINES) */
    PG_SMOOTH_JACOBI = 0x20000,
    PG_SMOOTH_CHEBYSHEV = 0x40000,  /*            Chebyshev over the upper part of the spectrum of D^-1 A (Adams et al. 2003) */
    PG_SMOOTH_LINES = 0x80000,      /*            zebra lines along the axis that varies most (default where one varies much) */
    PG_SYMMETRIC = 0x100000,        /* option: the cycle is symmetric, to precondition CG */
    PG_PRECOND_CYCLE = 0x200000,    /* preconditioner of Krylov methods: a V-cycle from 0 (default); of CG a symmetric one */
    PG_PRECOND_DIAGONAL = 0x400000, /*            the inverse diagonal */
    PG_PRECOND_NONE = 0x800000,     /*            none */
    PG_PRECOND_AINV = 0x1000000,    /*            an approximate inverse with the stencil's sparsity */
    PG_PRECOND_AINV2 = 0x2000000,   /*            ... and one more step with it: three products */
    PG_UPWIND = 0x8000000,          /* option: velocity by upwind differences, not central ones */
    PG_KEEP_CYCLES = 0x4000000,     /* option: multigrid by levels also where two or three axes vary much, see CHOOSING A METHOD */
    PG_COARSEN_CELLS = 0x10000000   /* option: coarse cells of a mask have one unknown, see OBSTACLES AND COEFFICIENTS */
};

enum {                              /* pg_dense_desc.flags: of those above PG_F64, PG_F32, PG_JACOBI, PG_SOR, and */
    PG_GAUSS_SEIDEL = PG_RBGS,      /* method (default) */
    PG_BACKWARD = 0x20000000,       /* option of PG_GAUSS_SEIDEL and PG_SOR: from the last row to the first */
    PG_RESTORE = 0x40000000         /* option: a solve to a tolerance that diverges, or meets NaN, leaves u as it was */
};

#define PG_NONE (-1)                /* for rtol: no relative tolerance; for nu_pre, nu_post: no sweep */
#define PG_DEVICE(k) ((k) + 1)      /* for pg_desc.device */
#define PG_HISTORY 128

typedef struct CUstream_st *pg_stream;   /* the same type as cudaStream_t */
typedef struct pg_solver pg_solver;
typedef struct pg_dense pg_dense;

typedef struct pg_face {
    pg_face_kind kind;
    double value;                   /* g, one constant over the face; ignored where array is given */
    const void *array;              /* g over the face, of u's precision and memory kind; read at each solve, kept by the caller */
    double a, b;                    /* Robin: a u + b du/dn = g */
} pg_face;

/* A value on one side of a fluid cell, see OBSTACLES AND COEFFICIENTS. */
typedef struct pg_cell_value {
    int cell[3];                    /* i, j, k */
    int face;                       /* a pg_face_index */
    double value;
} pg_cell_value;

/* Replaces the library's allocation of its workspace. memory says of which kind; the block must be aligned to 256 bytes. */
typedef struct pg_allocator {
    void *(*alloc)(void *user, size_t bytes, pg_memory memory, pg_stream stream);   /* NULL: out of memory */
    void (*free)(void *user, void *pointer, size_t bytes, pg_memory memory, pg_stream stream);
    void *user;
} pg_allocator;

/* Several ranks: who they are. kind 0: this one is alone. */
typedef enum pg_comm_kind { PG_COMM_NCCL = 1, PG_COMM_MPI, PG_COMM_OWN } pg_comm_kind;
typedef struct pg_comm {
    int kind;
    const void *handle;             /* PG_COMM_NCCL: the ncclComm_t. PG_COMM_MPI: the address of an MPI_Comm. PG_COMM_OWN: a pg_transport */
} pg_comm;

/* What a rank sends to another one and receives from it, either may be 0 bytes. Two messages with one peer match in the order
   of the arrays: the first one here is the first one there. */
typedef struct pg_rank_message {
    int peer;
    const void *send;
    void *receive;
    size_t send_bytes, receive_bytes;
} pg_rank_message;

/* Your own transport between ranks, which may be threads or processes. Copied by pg_create. Functions return 0, or else
   what is told in the error text (PG_ERROR_COMM); they should do so where a rank does not answer for long. */
typedef struct pg_transport {
    size_t struct_size;             /* 0 or sizeof(pg_transport) */
    int rank, ranks;                /* this one, counted from 0, and how many */
    void *user;
    int (*gather)(void *user, const void *own, size_t bytes, void *all);   /* collective: all gets the bytes of every rank, in order */
    int (*exchange)(void *user, const pg_rank_message *messages, int count, pg_stream stream);   /* done at return */
    void (*abort)(void *user);      /* may be NULL: this rank has failed; make the others' functions fail too */
} pg_transport;

/* A problem. Copied by pg_create (arrays of coordinates and metrics too): it need not outlive the call. */
typedef struct pg_desc {
    size_t struct_size;             /* 0 or sizeof(pg_desc) */
    int n[3];                       /* unknowns along x, y, z; an absent axis has 1 (0 is taken as 1 for y and z) */
    int dim;                        /* 0: 3 if nz > 1, else 2 if ny > 1, else 1. Axes from dim on are absent: they contribute
                                       nothing and their other fields are ignored */
    pg_centring centring[3];
    double h[3];                    /* spacing; 0: box length 1 */
    const double *coord[3];         /* or the interval ends; then h must be 0 */
    const double *weight[3];        /* metric at the unknowns, n values > 0 (best: the mean over the control length) */
    const double *conductance[3];   /* metric between them, n+1 values > 0; the two end values may be 0, if not periodic */
    pg_face face[6];
    double alpha;                   /* >= 0; with PG_DIRECT of either sign */
    double beta;                    /* > 0; 0 means 1 */
    const unsigned char *mask;      /* a pg_cell_kind a cell, see OBSTACLES AND COEFFICIENTS; 0: all fluid. Read by pg_create */
    int64_t stride_mask[2];         /* stride_j, stride_k in bytes; 0: packed */
    const void *beta_face[3];       /* coefficients of the faces across each axis; or */
    const void *beta_cell;          /*    of the cells; 0: beta alone */
    const void *openness[3];        /* open parts of the faces across each axis; 0: all open */
    const void *alpha_cell;         /* added to alpha, a value a cell; 0: none */
    const pg_cell_value *air_value, *solid_flux;   /* values on sides of fluid cells, copied by pg_create, */
    int air_values, solid_fluxes;   /*    and their numbers */
    int robust;                     /* 1: multigrid for media that are random cell by cell; 2: for labyrinths; 3: both;
                                       PG_NONE: neither; 0: as is measured, see OBSTACLES AND COEFFICIENTS */
    double velocity[3];             /* v of a term v du/dx along each axis, see VELOCITY; 0: none */
    int batch;                      /* problems of this shape, solved in one call, see BATCHES; 0: one */
    int64_t stride_u[3];            /* stride_j, stride_k and from problem to problem, in elements; 0: packed */
    int64_t stride_f[3];
    pg_memory memory;               /* where u, f and face arrays live */
    unsigned flags;
    double omega;                   /* over-relaxation or weight of the smoother or sweep; 0: chosen for the method */
    int nu_pre, nu_post;            /* smoothing sweeps, at most 16 each; 0: 2 and 1 (PG_SYMMETRIC: 2 and 2; PG_NONE: none) */
    int fmg_cycles;                 /* V-cycles a level in FMG, at most 16; 0: 1 */
    int coarsest;                   /* multigrid: levels of at most so many points per axis, 8 to 132, are solved exactly
                                       where that is cheap (33^3, 129^2); 0: 132 */
    int inner_cycles;               /* PG_MIXED: f32 cycles per f64 residual, at most 16; 0: 2 (PG_DIRECT, and what is solved exactly because tables vary: always 1) */
    pg_backend backend;
    int device;                     /* PG_DEVICE(k): CUDA device k; 0: the calling thread's current device */
    pg_stream stream;               /* 0: the legacy default stream */
    void *workspace;                /* 0: allocated by pg_create; else device memory for PG_CUDA, host memory for PG_CPU, */
    size_t workspace_bytes;         /*    aligned to 256 bytes, at least pg_workspace_bytes long, untouched until pg_destroy */
    pg_allocator allocator;         /* 0: cudaMalloc, or malloc on the CPU */
    pg_comm comm;                   /* the ranks that solve together, see SEVERAL RANKS; 0: one */
    int procs[3];                   /* ranks along each axis; 0: chosen */
    int lo[3], hi[3];               /* the unknowns that this rank has, lo <= i < hi; both 0: chosen, as even as can be */
    double time_limit;              /* seconds that a rank waits for another one; 0: 30; PG_NONE: for ever */
} pg_desc;

/* A dense system. Copied by pg_dense_create, but A is the caller's: it must outlive the handle. */
typedef struct pg_dense_desc {
    size_t struct_size;             /* 0 or sizeof(pg_dense_desc) */
    int n;                          /* unknowns */
    int64_t lda;                    /* elements from row to row of A; 0: n */
    const void *A;                  /* read at creation, by pg_dense_update and (but for host arrays on a GPU) by every solve */
    pg_memory memory;               /* where A, u and f live */
    unsigned flags;
    double omega;                   /* 0 < omega < 2; 0: 1, with PG_SOR chosen. PG_GAUSS_SEIDEL has 1 */
    pg_backend backend;             /* these as in pg_desc */
    int device;
    pg_stream stream;
    void *workspace;
    size_t workspace_bytes;
    pg_allocator allocator;
} pg_dense_desc;

/* What pg_get_report tells. Residual: r = f + boundary terms - A u, recomputed from u at every check. */
typedef struct pg_report {
    pg_outcome outcome;
    int iterations;                 /* cycles, sweeps or Krylov iterations; an FMG pass counts as one, PG_MIXED counts f32 cycles */
    double rhs_norm;                /* || f with its boundary terms ||, after the mean was removed */
    double first_residual;          /* of the guess */
    double residual;                /* of the u returned; NaN where no tolerance was asked for */
    double floor;                   /* what round-off of u leaves of the residual, about eps ||D u||, D the diagonal of A; where it
                                       lies far below the tolerance, a bound of it. NaN without a tolerance */
    double factor;                  /* by which an iteration multiplied the residual, the average of the last four checks; NaN where
                                       there was but one */
    double removed_mean;            /* what was subtracted from f to make a singular problem solvable; else 0 */
    double milliseconds;            /* from the first to the last operation on the device; in a monitor: until now */
    int history_count;              /* residuals checked; the first PG_HISTORY of them are in history, [0] is first_residual. Cycles
                                       are checked after the first smoothing of the next one, where the residual is at hand */
    double history[PG_HISTORY];
    pg_backend backend;             /* PG_CUDA or PG_CPU */
    int problem;                    /* of a batch: which one this is about, the one that fared worst */
    char message[160];              /* the outcome in a sentence */
    char method[96];                /* the method; of PG_FASTEST, the default, which one it chose and why; whether it is exact */
    int accelerated;                /* 1: PG_FMG was PG_CG around its cycle, see CHOOSING A METHOD */
    int pockets;                    /* parts of the fluid, of two cells or more, that are singular by themselves, see OBSTACLES
                                       AND COEFFICIENTS */
    char warning[160];              /* that the code was not compiled for this GPU, or why PG_AUTO found none that
                                       it can use, unless compiled without CUDA; that parts of the fluid or pockets were
                                       more than there is room for, or a robust cycle; else empty */
} pg_report;

/* When to stop. NULL in place of a pg_stop means: all zero. */
typedef struct pg_stop {
    size_t struct_size;             /* 0 or sizeof(pg_stop) */
    double rtol;                    /* ||r|| <= rtol * ||f with its boundary terms||. 0: 1e-8 (f32: 1e-5) or round-off, see
                                       TOLERANCES, or none if atol is given; PG_NONE: none. A right-hand side that is all mean and round-off counts as 0 */
    double atol;                    /* or ||r|| <= atol. Neither: exactly max_iter iterations, and no check is made: NaN
                                       and Inf in f then go through to u, and the outcome may be PG_COMPLETED */
    int relative_to_first;          /* 1: rtol is against the first residual instead; also done where that right-hand side is 0 */
    int min_iter;                   /* no check is made between the first one, of the guess, and this many iterations */
    int max_iter;                   /* 0: 100 for multigrid, also as a preconditioner, but 1000 among obstacles; 10000 for others, and for
                                       CG among obstacles; without a tolerance 1. PG_MIXED ends with whole steps of inner_cycles. PG_DIRECT: always 1, but with PG_MIXED */
    int check;                      /* iterations between checks; 0: 1, where they cost next to nothing, but 10 for sweeps.
                                       FMG also checks after its pass */
    pg_norm_kind norm;
    pg_guess guess;                 /* PG_GUESS_ZERO: start from 0, u is never read: the default of PG_FMG, and of the default method
                                       (report.message says so). PG_GUESS_U: start from u: the default elsewhere;
                                       PG_FMG then solves for the correction */
    int (*monitor)(void *user, const pg_report *so_far);   /* called at every check, the host waits for it; non-zero cancels; must
                                       not call back with this handle */
    void *user;
} pg_stop;

/* -------------------------------------------------------------------------------------------------------------------
   Solve once. Creates, solves with the default tolerance, fills *report (may be NULL), destroys.
   u, f     as the descriptor says (by default packed host arrays of double)
   Blocks until u is there. Returns PG_OK if the solve ran: look at report->outcome. */
PG_API pg_status pg_solve_once(const pg_desc *desc, void *u, const void *f, pg_report *report);

/* Create a solver for problems of one shape. Checks every field before anything is allocated.
   solver   receives the handle, owned by the caller until pg_destroy; NULL on failure
   Cost: tables of the levels on the host, one allocation, on the GPU also the graphs of the solves (milliseconds). */
PG_API pg_status pg_create(const pg_desc *desc, pg_solver **solver);

/* Destroy a solver and its workspace, waiting for its work. NULL is allowed. */
PG_API void pg_destroy(pg_solver *solver);

/* Tell how many bytes of workspace pg_create would take for this descriptor: exactly. (CUDA's own graphs and streams are
   beside it.) Reads no mask, no coefficients, and launches nothing. */
PG_API pg_status pg_workspace_bytes(const pg_desc *desc, size_t *bytes);

/* Tell which unknowns this rank has, before anything is allocated: along each axis lo <= i < hi. Not collective. */
PG_API pg_status pg_query_part(const pg_desc *desc, int lo[3], int hi[3]);

/* Tell the descriptor with every default resolved (flags, strides, h, omega of sweeps, back end, device, workspace): one
   that creates the same solver again. omega of multigrid stays 0 where each level chooses its own, and PG_FMG that became PG_CG
   (report.accelerated) is PG_FMG. coord, weight, conductance, air_value and solid_flux are the handle's own copies, the
   lists as they are now, until pg_destroy; other arrays are yours. A workspace that is not yours comes back as NULL. */
PG_API pg_status pg_query_desc(const pg_solver *solver, pg_desc *desc);

/* Solve A u = f.
   u        start (unless PG_GUESS_ZERO) and result     f    right-hand side, only read; must not overlap u. But
            PG_DIRECT (not PG_MIXED) without a tolerance (rtol = PG_NONE) also solves in place: u == f, with equal strides
   stop     NULL: defaults
   GPU with device arrays and no monitor: asynchronous on the stream, legal under capture. Otherwise returns when done. */
PG_API pg_status pg_solve(pg_solver *solver, void *u, const void *f, const pg_stop *stop);

/* Wait for desc.stream and report on the last solve of this handle, also one replayed by a captured graph. Pieces report nothing. */
PG_API pg_status pg_get_report(pg_solver *solver, pg_report *report);

/* Between solves: new boundary data (value, array); the kinds and Robin a, b must be those of pg_create. Six faces. */
PG_API pg_status pg_set_faces(pg_solver *solver, const pg_face face[6]);
/* Between solves: a new alpha (a new time step, say); >= 0 but with PG_DIRECT. PG_FASTEST, the default, may have chosen PG_FMG
   for the alpha of pg_create, and then refuses alpha < 0: give PG_DIRECT where alpha will change its sign. */
PG_API pg_status pg_set_alpha(pg_solver *solver, double alpha);
/* Between solves: a new mask, of pg_create's strides and memory kind; its array may be changed once the stream is done with
   it. Host arrays are checked, as by pg_create: if the call refuses, so do solves and pieces until a good mask comes. Device
   arrays are not checked: a byte that is no pg_cell_kind counts as PG_AIR. With them the call waits only where desc.robust is 0
   and the cycle is to be chosen anew (see The cycle); not with robust given, nor under capture. The handle must have been created
   with a mask. */
PG_API pg_status pg_set_mask(pg_solver *solver, const unsigned char *mask);
/* Between solves: the coefficients have changed, in their arrays or with new ones. desc NULL: the arrays of before, with new
   values. Otherwise desc's beta_face, beta_cell, openness and alpha_cell, which must be given where pg_create had them, and
   only there; nothing else of it is read. Checked and waited for as a mask is. */
PG_API pg_status pg_set_coefficients(pg_solver *solver, const pg_desc *desc);
/* Between solves: new lists, at most as long as those of pg_create. Entries whose side is no air, or no solid, count for
   nothing. Waits until they are copied. */
PG_API pg_status pg_set_cell_values(pg_solver *solver, const pg_cell_value *air_value, int air_values,
                                    const pg_cell_value *solid_flux, int solid_fluxes);
/* Between solves: a new stream. The caller orders it after the work still under way on the old one. */
PG_API pg_status pg_set_stream(pg_solver *solver, pg_stream stream);

/* -------------------------------------------------------------------------------------------------------------------
   Pieces, on the stream and asynchronous like pg_solve unless a result goes to the host. Arrays called u, x, y have the layout
   of u; f, r, v that of f.  Host arrays are staged, and the call then waits. pg_smooth and pg_cycle need a method that was
   named in flags: PG_FASTEST, the default, may choose one that has no sweeps or cycles, so they refuse it on every grid. */
/* sweeps of the method's sweep, or of the multigrid smoother, on A u = f (not PG_MIXED). Chebyshev repeats its nu_pre weights. */
PG_API pg_status pg_smooth(pg_solver *solver, void *u, const void *f, int sweeps);
/* V- or W-cycles on A u = f (PG_FMG: V). PG_MIXED: one step of inner_cycles f32 cycles each. Multigrid methods only. */
PG_API pg_status pg_cycle(pg_solver *solver, void *u, const void *f, int cycles);
/* v = A u, boundary values taken as 0. u and v must not overlap. */
PG_API pg_status pg_apply(pg_solver *solver, const void *u, void *v);
/* r = f + boundary terms - A u. r may be f, but must not overlap u. */
PG_API pg_status pg_residual(pg_solver *solver, const void *u, const void *f, void *r);
/* du/dx, du/dy or du/dz (axis 0, 1, 2) with the boundary data as they are now: exact where u is linear; of second
   order, at every kind of face, for a u that pg_solve has found (in the very corner of two Dirichlet faces of cells of first).
   PG_AT_FACES     n+1 values along the axis, packed like beta_face, problem after problem: for x [i + (nx+1)*(j+ny*k)].
                   Value i is (u_i - u_(i-1))/d_i, as in Stencil: of cells the derivative at face i, of nodes the one
                   halfway between points i-1 and i. Values 0 and n are (u_0 - g)/d and (g - u_(n-1))/d at a Dirichlet
                   end (of nodes halfway to it); at a Neumann or Robin end what the condition says there, du/dn = g or
                   (g - a u)/(a d + b), d = 0 of nodes, turned to point along the axis; where periodic the same number
                   twice, across the seam. So, without obstacles, f + boundary terms - A u is
                   beta/w_i (k_(i+1) v_(i+1) - k_i v_i), summed over the axes, + f - alpha u; and v* - (dt/rho) grad p
                   has no divergence left.
   PG_AT_UNKNOWNS  the layout of f. The mean of the two values beside an unknown, of nodes weighted with the distances;
                   on a node of a Neumann or Robin end what the condition says there.
   0 at an end whose conductance is 0, and where openness is. Among obstacles: between fluid and air the difference of u
   and the air's value over the distance of the centres; between fluid and solid the flux given there, along the axis; 0
   between two cells that are not fluid, and in them. A metric, beta and openness do not multiply it. out must overlap
   neither u nor a face array. */
PG_API pg_status pg_gradient(pg_solver *solver, const void *u, int axis, void *out, pg_where where);
/* A norm of x; the integral sum w x; the inner product sum w x y. Accumulated in f64 in a fixed order; wait for the result.
   A NaN anywhere makes each of them NaN. Refused under capture. */
PG_API pg_status pg_norm(pg_solver *solver, const void *x, pg_norm_kind kind, double *result);
PG_API pg_status pg_sum(pg_solver *solver, const void *x, double *result);
PG_API pg_status pg_dot(pg_solver *solver, const void *x, const void *y, double *result);

/* The connected parts of the fluid, as the mask and the coefficients are now: cells joined by faces that are open,
   numbered from 0 in the order of their first cells, i fastest. A cell without any open face is a part of its own.
   Needs a handle with a mask or coefficient fields; waits; refused under capture.
   x        an array like u, or NULL (then sums too). With pg_residual of u = 0, f + boundary terms: what must be 0 in a
            part that nothing holds. What x has outside the fluid is not read; NaN or Inf within makes all sums NaN
   labels   NULL, or the part of each cell, -1 outside the fluid: packed, [i + nx*(j + ny*k)], in memory as desc.memory
            says; of several ranks this one's cells
   count    in: how many parts sums and volumes have room for; out: how many there are
   sums     sum w x over each part, of problem q of a batch from sums[q * (count that was given)] on; in host memory. The
            mean of part p is sums[p] / volumes[p]. On all ranks the same, run after run
   volumes  NULL, or sum w over each part; in host memory */
PG_API pg_status pg_get_parts(pg_solver *solver, const void *x, int *labels, int *count, double *sums, double *volumes);

/* -------------------------------------------------------------------------------------------------------------------
   Dense systems. What is said of pg_create, pg_solve and their like holds of these too.
   Create: refuses a diagonal value that is 0, or that cannot be divided by, with its row; waits for the stream. Costs a copy of the
   diagonal, with PG_SOR and omega = 0 also 50 reads of A. Not under capture. */
PG_API pg_status pg_dense_create(const pg_dense_desc *desc, pg_dense **solver);
PG_API void pg_dense_destroy(pg_dense *solver);
/* A may be NULL. */
PG_API pg_status pg_dense_workspace_bytes(const pg_dense_desc *desc, size_t *bytes);
/* The descriptor with every default resolved; omega too. */
PG_API pg_status pg_dense_query_desc(const pg_dense *solver, pg_dense_desc *desc);
/* The values of A have changed, where they are: reads the diagonal again, copies a host A to the GPU, chooses omega anew if it
   was chosen. Waits; has n elements of host memory meanwhile. If it refuses, no solve is possible until an A that will do has been read. */
PG_API pg_status pg_dense_update(pg_dense *solver);
/* Solve A u = f. u: start (unless PG_GUESS_ZERO) and result; f: only read. u must overlap neither f nor A. */
PG_API pg_status pg_dense_solve(pg_dense *solver, void *u, const void *f, const pg_stop *stop);
PG_API pg_status pg_dense_get_report(pg_dense *solver, pg_report *report);
PG_API pg_status pg_dense_set_stream(pg_dense *solver, pg_stream stream);
PG_API const char *pg_dense_last_error(const pg_dense *solver);

/* -------------------------------------------------------------------------------------------------------------------
   Texts. Static; but pg_last_error's lasts until the next call with the same handle (or on the same thread), and pg_version's is
   the thread's. */
PG_API const char *pg_last_error(const pg_solver *solver);
PG_API const char *pg_status_string(pg_status status);
PG_API const char *pg_outcome_string(pg_outcome outcome);
PG_API const char *pg_version(void);   /* e.g. "poisson_gpu 0.1.0, CUDA 13.0 for sm_75 sm_80 sm_90, OpenMP" */

/* For bindings: how the library was compiled. An entry for every struct of this header ("pg_desc": its size) and every
   field ("pg_desc.alpha": its offset and size), in the order of the header; the first one, "version", has as its size
   10000 PG_VERSION_MAJOR + 100 PG_VERSION_MINOR + PG_VERSION_PATCH; name is NULL in the one after the last. Compare all
   of them with your own structs when the library is loaded. */
typedef struct pg_abi_entry {
    const char *name;
    size_t offset, size;
} pg_abi_entry;
PG_API const pg_abi_entry *pg_abi(void);

#ifdef __cplusplus
}
#endif
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
