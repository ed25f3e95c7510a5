! poisson_gpu from Fortran: the constants, structs and functions of poisson_gpu.h, for any compiler of Fortran 2008.
!
! With  use poisson_gpu  in a program, on the CPU, or by the header's line for nvcc instead of the second one:
!
!     gfortran -c poisson_gpu.f90 -o poisson_gpu_f90.o
!     c++ -x c++ -std=c++17 -O3 -fopenmp -c poisson_gpu.cu
!     gfortran -fopenmp program.f90 poisson_gpu_f90.o poisson_gpu.o -o program -lstdc++
!
! u and f are arrays u(nx, ny, nz), x first, as the library has them; pass c_loc of the first element. Structs begin
! with zeros, which are the defaults. Strides count elements: of a window of a(mx, my, mz) they are mx and mx * my.
! pg_abi_differs tells whether this file and the library are of one version: call it once.
module poisson_gpu
    use, intrinsic :: iso_c_binding
    implicit none
    private :: same

    ! pg_status, pg_outcome
    enum, bind(c)
        enumerator :: PG_OK, PG_ERROR_ARGUMENT, PG_ERROR_UNSUPPORTED, PG_ERROR_MEMORY, PG_ERROR_NO_DEVICE, PG_ERROR_CUDA, &
            PG_ERROR_COMM
    end enum
    enum, bind(c)
        enumerator :: PG_NOT_RUN, PG_CONVERGED, PG_COMPLETED, PG_MAX_ITER, PG_STAGNATED, PG_DIVERGED, PG_NOT_A_NUMBER, &
            PG_CANCELLED, PG_RESONANCE, PG_BREAKDOWN, PG_RUNNING
    end enum

    ! Choices: 0 is the default everywhere.
    enum, bind(c)
        enumerator :: PG_NODE, PG_CELL
    end enum
    enum, bind(c)
        enumerator :: PG_DIRICHLET, PG_NEUMANN, PG_ROBIN, PG_PERIODIC, PG_OPEN, PG_OPEN_SPECTRAL
    end enum
    enum, bind(c)    ! an index of desc%face is one more: they begin at 1
        enumerator :: PG_X_LOW, PG_X_HIGH, PG_Y_LOW, PG_Y_HIGH, PG_Z_LOW, PG_Z_HIGH
    end enum
    enum, bind(c)
        enumerator :: PG_MEM_HOST, PG_MEM_DEVICE
    end enum
    enum, bind(c)
        enumerator :: PG_AUTO, PG_CUDA, PG_CPU
    end enum
    enum, bind(c)
        enumerator :: PG_GUESS_DEFAULT, PG_GUESS_ZERO, PG_GUESS_U
    end enum
    enum, bind(c)
        enumerator :: PG_FLUID, PG_SOLID, PG_AIR
    end enum
    enum, bind(c)
        enumerator :: PG_ROBUST_AUTO, PG_ROBUST_RANDOM, PG_ROBUST_LABYRINTH, PG_ROBUST_BOTH, PG_ROBUST_OFF = -1
    end enum
    enum, bind(c)
        enumerator :: PG_AT_FACES, PG_AT_UNKNOWNS
    end enum
    enum, bind(c)
        enumerator :: PG_NORM_L2, PG_NORM_L2_PLAIN, PG_NORM_MAX, PG_NORM_L1
    end enum

    ! desc%flags: at most one of each group, joined by ior
    integer(c_int), parameter :: &
        PG_F64 = int(z'1'), PG_F32 = int(z'2'), PG_MIXED = int(z'4'), &
        PG_JACOBI = int(z'10'), PG_RBGS = int(z'20'), PG_SOR = int(z'40'), PG_VCYCLE = int(z'80'), &
        PG_WCYCLE = int(z'100'), PG_FMG = int(z'200'), PG_DIRECT = int(z'400'), PG_FASTEST = int(z'800'), &
        PG_CG = int(z'1000'), PG_PIPECG = int(z'2000'), PG_BICGSTAB = int(z'4000'), PG_PIPEBICGSTAB = int(z'8000'), &
        PG_SYMMETRIC = int(z'100000'), PG_UPWIND = int(z'8000000'), PG_KEEP_CYCLES = int(z'4000000'), &
        PG_COARSEN_CELLS = int(z'10000000'), PG_GAUSS_SEIDEL = PG_RBGS, PG_BACKWARD = int(z'20000000'), &
        PG_RESTORE = int(z'40000000')
    ! desc%smoother, desc%precond: one of each, or 0
    integer(c_int), parameter :: &
        PG_SMOOTH_RBGS = int(z'10000'), PG_SMOOTH_JACOBI = int(z'20000'), PG_SMOOTH_CHEBYSHEV = int(z'40000'), &
        PG_SMOOTH_LINES = int(z'80000'), PG_PRECOND_DIRECT = int(z'8'), PG_PRECOND_CYCLE = int(z'200000'), &
        PG_PRECOND_DIAGONAL = int(z'400000'), PG_PRECOND_NONE = int(z'800000'), PG_PRECOND_AINV = int(z'1000000'), &
        PG_PRECOND_AINV2 = int(z'2000000')
    integer(c_int), parameter :: PG_NONE = -1, PG_HISTORY = 128

    type, bind(c) :: pg_face
        integer(c_int) :: kind = 0
        real(c_double) :: value = 0
        type(c_ptr) :: array = c_null_ptr
        real(c_double) :: a = 0, b = 0
    end type

    type, bind(c) :: pg_cell_value
        integer(c_int) :: cell(3) = 0, face = 0    ! cell: i, j, k from 0
        real(c_double) :: value = 0, theta = 0
    end type

    type, bind(c) :: pg_cells
        type(c_ptr) :: mask = c_null_ptr
        integer(c_int64_t) :: stride_mask(2) = 0
        type(c_ptr) :: beta_face(3) = c_null_ptr, beta_cell = c_null_ptr, openness(3) = c_null_ptr
        type(c_ptr) :: alpha_cell = c_null_ptr, air_value = c_null_ptr
        integer(c_int) :: air_values = 0
        type(c_ptr) :: solid_flux = c_null_ptr
        integer(c_int) :: solid_fluxes = 0
    end type

    type, bind(c) :: pg_allocator
        type(c_funptr) :: alloc = c_null_funptr, free = c_null_funptr
        type(c_ptr) :: user = c_null_ptr
    end type

    enum, bind(c)
        enumerator :: PG_COMM_NCCL = 1, PG_COMM_MPI, PG_COMM_OWN
    end enum
    type, bind(c) :: pg_rank_message
        integer(c_int) :: peer = 0
        type(c_ptr) :: send = c_null_ptr, receive = c_null_ptr
        integer(c_size_t) :: send_bytes = 0, receive_bytes = 0
    end type

    type, bind(c) :: pg_transport
        integer(c_size_t) :: struct_size = 0
        integer(c_int) :: rank = 0, ranks = 0
        type(c_ptr) :: user = c_null_ptr
        type(c_funptr) :: gather = c_null_funptr, exchange = c_null_funptr, abort = c_null_funptr
    end type

    type, bind(c) :: pg_comm
        integer(c_int) :: kind = 0
        type(c_ptr) :: handle = c_null_ptr
    end type

    type, bind(c) :: pg_desc
        integer(c_size_t) :: struct_size = 0
        integer(c_int) :: n(3) = 0, dim = 0, centring(3) = 0
        real(c_double) :: h(3) = 0
        type(c_ptr) :: coord(3) = c_null_ptr, weight(3) = c_null_ptr, conductance(3) = c_null_ptr
        type(pg_face) :: face(6)
        real(c_double) :: alpha = 0, beta = 0
        type(pg_cells) :: cells
        integer(c_int) :: robust = 0
        real(c_double) :: velocity(3) = 0
        integer(c_int) :: batch = 0
        integer(c_int64_t) :: stride_u(3) = 0, stride_f(3) = 0
        integer(c_int) :: memory = 0, flags = 0, smoother = 0, precond = 0
        real(c_double) :: omega = 0
        integer(c_int) :: nu_pre = 0, nu_post = 0, fmg_cycles = 0, coarsest = 0, inner_cycles = 0
        integer(c_int) :: backend = 0, device = 0    ! device: the number of a CUDA device plus 1
        type(c_ptr) :: stream = c_null_ptr, workspace = c_null_ptr
        integer(c_size_t) :: workspace_bytes = 0
        type(pg_allocator) :: allocator
        type(pg_comm) :: comm
        integer(c_int) :: lo(3) = 0, hi(3) = 0    ! lo: counted from 0; hi: behind the last one
        real(c_double) :: time_limit = 0
    end type

    type, bind(c) :: pg_dense_desc
        integer(c_size_t) :: struct_size = 0
        integer(c_int) :: n = 0
        integer(c_int64_t) :: lda = 0
        type(c_ptr) :: A = c_null_ptr    ! row-major: the transposed of A(n, n)
        integer(c_int) :: memory = 0, flags = 0
        real(c_double) :: omega = 0
        integer(c_int) :: backend = 0, device = 0
        type(c_ptr) :: stream = c_null_ptr, workspace = c_null_ptr
        integer(c_size_t) :: workspace_bytes = 0
        type(pg_allocator) :: allocator
    end type

    type, bind(c) :: pg_report
        integer(c_int) :: outcome = 0, iterations = 0
        real(c_double) :: rhs_norm = 0, first_residual = 0, residual = 0, floor = 0, factor = 0, removed_mean = 0
        real(c_double) :: milliseconds = 0
        integer(c_int) :: history_count = 0
        real(c_double) :: history(PG_HISTORY) = 0
        integer(c_int) :: backend = 0, problem = 0
        character(kind=c_char) :: message(160) = c_null_char, method(96) = c_null_char
        integer(c_int) :: accelerated = 0, singular_components = 0
        character(kind=c_char) :: warning(160) = c_null_char
    end type

    type, bind(c) :: pg_stop
        integer(c_size_t) :: struct_size = 0
        real(c_double) :: rtol = 0, atol = 0
        integer(c_int) :: relative_to_first = 0, min_iter = 0, max_iter = 0, check = 0, norm = 0, guess = 0
        type(c_funptr) :: monitor = c_null_funptr
        type(c_ptr) :: user = c_null_ptr
    end type

    type, bind(c) :: pg_abi_entry
        type(c_ptr) :: name
        integer(c_size_t) :: offset, size
    end type

    ! Handles are type(c_ptr). A stop that is not there, or c_null_ptr, is the default one.
    interface
        integer(c_int) function pg_solve_once(desc, u, f, report) bind(c)
            import
            type(pg_desc), intent(in) :: desc
            type(c_ptr), value :: u, f
            type(pg_report), intent(out) :: report
        end function
        integer(c_int) function pg_create(desc, solver) bind(c)
            import
            type(pg_desc), intent(in) :: desc
            type(c_ptr), intent(out) :: solver
        end function
        subroutine pg_destroy(solver) bind(c)
            import
            type(c_ptr), value :: solver
        end subroutine
        integer(c_int) function pg_workspace_bytes(desc, bytes) bind(c)
            import
            type(pg_desc), intent(in) :: desc
            integer(c_size_t), intent(out) :: bytes
        end function
        integer(c_int) function pg_query_part(desc, lo, hi) bind(c)
            import
            type(pg_desc), intent(in) :: desc
            integer(c_int), intent(out) :: lo(3), hi(3)
        end function
        integer(c_int) function pg_query_desc(solver, desc) bind(c)
            import
            type(c_ptr), value :: solver
            type(pg_desc), intent(out) :: desc
        end function
        integer(c_int) function pg_solve(solver, u, f, stop) bind(c)
            import
            type(c_ptr), value :: solver, u, f, stop    ! stop: c_loc of a pg_stop, or c_null_ptr
        end function
        integer(c_int) function pg_get_report(solver, report) bind(c)
            import
            type(c_ptr), value :: solver
            type(pg_report), intent(out) :: report
        end function
        integer(c_int) function pg_set_faces(solver, face) bind(c)
            import
            type(c_ptr), value :: solver
            type(pg_face), intent(in) :: face(6)
        end function
        integer(c_int) function pg_set_alpha(solver, alpha) bind(c)
            import
            type(c_ptr), value :: solver
            real(c_double), value :: alpha
        end function
        integer(c_int) function pg_set_cells(solver, cells) bind(c)
            import
            type(c_ptr), value :: solver
            type(pg_cells), intent(in) :: cells
        end function
        integer(c_int) function pg_set_stream(solver, stream) bind(c)
            import
            type(c_ptr), value :: solver, stream
        end function
        integer(c_int) function pg_smooth(solver, u, f, sweeps) bind(c)
            import
            type(c_ptr), value :: solver, u, f
            integer(c_int), value :: sweeps
        end function
        integer(c_int) function pg_cycle(solver, u, f, cycles) bind(c)
            import
            type(c_ptr), value :: solver, u, f
            integer(c_int), value :: cycles
        end function
        integer(c_int) function pg_apply(solver, u, v) bind(c)
            import
            type(c_ptr), value :: solver, u, v
        end function
        integer(c_int) function pg_gradient(solver, u, axis, out, where) bind(c)
            import
            type(c_ptr), value :: solver, u, out
            integer(c_int), value :: axis, where    ! axis: from 0
        end function
        integer(c_int) function pg_get_parts(solver, x, labels, count, sums, volumes) bind(c)
            import
            type(c_ptr), value :: solver, x, labels, sums, volumes    ! labels: integer(c_int), from 0; or c_null_ptr
            integer(c_int), intent(inout) :: count
        end function
        integer(c_int) function pg_residual(solver, u, f, r) bind(c)
            import
            type(c_ptr), value :: solver, u, f, r
        end function
        integer(c_int) function pg_norm(solver, x, kind, result) bind(c)
            import
            type(c_ptr), value :: solver, x
            integer(c_int), value :: kind
            real(c_double), intent(out) :: result
        end function
        integer(c_int) function pg_dot(solver, x, y, result) bind(c)
            import
            type(c_ptr), value :: solver, x, y    ! y: c_null_ptr is 1 everywhere
            real(c_double), intent(out) :: result
        end function
        integer(c_int) function pg_progress(file, so_far) bind(c)    ! stop%monitor = c_funloc(pg_progress)
            import
            type(c_ptr), value :: file
            type(pg_report), intent(in) :: so_far
        end function
        integer(c_int) function pg_dense_create(desc, solver) bind(c)
            import
            type(pg_dense_desc), intent(in) :: desc
            type(c_ptr), intent(out) :: solver
        end function
        integer(c_int) function pg_dense_workspace_bytes(desc, bytes) bind(c)
            import
            type(pg_dense_desc), intent(in) :: desc
            integer(c_size_t), intent(out) :: bytes
        end function
        integer(c_int) function pg_dense_query_desc(solver, desc) bind(c)
            import
            type(c_ptr), value :: solver
            type(pg_dense_desc), intent(out) :: desc
        end function
        integer(c_int) function pg_dense_update(solver) bind(c)
            import
            type(c_ptr), value :: solver
        end function
        type(c_ptr) function pg_last_error(solver) bind(c)    ! c_null_ptr: where there is none yet; as text: pg_text
            import
            type(c_ptr), value :: solver
        end function
        type(c_ptr) function pg_status_string(status) bind(c)
            import
            integer(c_int), value :: status
        end function
        type(c_ptr) function pg_outcome_string(outcome) bind(c)
            import
            integer(c_int), value :: outcome
        end function
        type(c_ptr) function pg_version() bind(c)
            import
        end function
        type(c_ptr) function pg_abi() bind(c)
            import
        end function
    end interface

contains

    ! A text of C's as one of Fortran.
    function pg_text(from) result(text)
        type(c_ptr), intent(in) :: from
        character(:), allocatable :: text
        character(kind=c_char), pointer :: c(:)
        integer :: n
        call c_f_pointer(from, c, [4096])
        n = 0
        do while (c(n + 1) /= c_null_char)
            n = n + 1
        end do
        allocate (character(n) :: text)
        text = transfer(c(1:n), text)
    end function

    ! The same of a text inside a report.
    function pg_message(from) result(text)
        character(kind=c_char), intent(in) :: from(:)
        character(:), allocatable :: text
        integer :: n
        n = index(transfer(from, repeat(' ', size(from))), c_null_char) - 1
        text = transfer(from(1:n), repeat(' ', n))
    end function

    ! The struct or field that the library has elsewhere, or of another size; empty where all agree.
    function pg_abi_differs() result(name)
        character(:), allocatable :: name
        type(pg_abi_entry), pointer :: entry(:)
        integer :: q
        call c_f_pointer(pg_abi(), entry, [4096])
        name = ''
        q = 1
        do while (c_associated(entry(q)%name))
            if (.not. same(pg_text(entry(q)%name), entry(q)%offset, entry(q)%size)) then
                name = pg_text(entry(q)%name)
                return
            end if
            q = q + 1
        end do
    end function

    ! The size of a struct, or the place of a field. What is not known differs.
    logical function same(name, offset, size)
        character(*), intent(in) :: name
        integer(c_size_t), intent(in) :: offset, size
        type(pg_desc), target :: desc
        type(pg_dense_desc), target :: dense
        type(pg_report), target :: report
        type(pg_stop), target :: stop
        type(pg_face), target :: face
        type(pg_cell_value), target :: value
        type(pg_cells), target :: cells
        type(pg_allocator), target :: allocator
        type(pg_rank_message), target :: message
        type(pg_transport), target :: transport
        type(pg_comm), target :: comm
        select case (name)
        case ('version'); same = .true.    ! what follows says more
        case ('pg_desc'); same = size == c_sizeof(desc)
        case ('pg_dense_desc'); same = size == c_sizeof(dense)
        case ('pg_report'); same = size == c_sizeof(report)
        case ('pg_stop'); same = size == c_sizeof(stop)
        case ('pg_face'); same = size == c_sizeof(face)
        case ('pg_cell_value'); same = size == c_sizeof(value)
        case ('pg_cells'); same = size == c_sizeof(cells)
        case ('pg_allocator'); same = size == c_sizeof(allocator)
        case ('pg_rank_message'); same = size == c_sizeof(message)
        case ('pg_transport'); same = size == c_sizeof(transport)
        case ('pg_comm'); same = size == c_sizeof(comm)
        case ('pg_face.kind'); same = at(c_loc(face%kind), c_loc(face))
        case ('pg_face.value'); same = at(c_loc(face%value), c_loc(face))
        case ('pg_face.array'); same = at(c_loc(face%array), c_loc(face))
        case ('pg_face.a'); same = at(c_loc(face%a), c_loc(face))
        case ('pg_face.b'); same = at(c_loc(face%b), c_loc(face))
        case ('pg_cell_value.cell'); same = at(c_loc(value%cell), c_loc(value))
        case ('pg_cell_value.face'); same = at(c_loc(value%face), c_loc(value))
        case ('pg_cell_value.value'); same = at(c_loc(value%value), c_loc(value))
        case ('pg_cell_value.theta'); same = at(c_loc(value%theta), c_loc(value))
        case ('pg_cells.mask'); same = at(c_loc(cells%mask), c_loc(cells))
        case ('pg_cells.stride_mask'); same = at(c_loc(cells%stride_mask), c_loc(cells))
        case ('pg_cells.beta_face'); same = at(c_loc(cells%beta_face), c_loc(cells))
        case ('pg_cells.beta_cell'); same = at(c_loc(cells%beta_cell), c_loc(cells))
        case ('pg_cells.openness'); same = at(c_loc(cells%openness), c_loc(cells))
        case ('pg_cells.alpha_cell'); same = at(c_loc(cells%alpha_cell), c_loc(cells))
        case ('pg_cells.air_value'); same = at(c_loc(cells%air_value), c_loc(cells))
        case ('pg_cells.air_values'); same = at(c_loc(cells%air_values), c_loc(cells))
        case ('pg_cells.solid_flux'); same = at(c_loc(cells%solid_flux), c_loc(cells))
        case ('pg_cells.solid_fluxes'); same = at(c_loc(cells%solid_fluxes), c_loc(cells))
        case ('pg_allocator.alloc'); same = at(c_loc(allocator%alloc), c_loc(allocator))
        case ('pg_allocator.free'); same = at(c_loc(allocator%free), c_loc(allocator))
        case ('pg_allocator.user'); same = at(c_loc(allocator%user), c_loc(allocator))
        case ('pg_rank_message.peer'); same = at(c_loc(message%peer), c_loc(message))
        case ('pg_rank_message.send'); same = at(c_loc(message%send), c_loc(message))
        case ('pg_rank_message.receive'); same = at(c_loc(message%receive), c_loc(message))
        case ('pg_rank_message.send_bytes'); same = at(c_loc(message%send_bytes), c_loc(message))
        case ('pg_rank_message.receive_bytes'); same = at(c_loc(message%receive_bytes), c_loc(message))
        case ('pg_transport.struct_size'); same = at(c_loc(transport%struct_size), c_loc(transport))
        case ('pg_transport.rank'); same = at(c_loc(transport%rank), c_loc(transport))
        case ('pg_transport.ranks'); same = at(c_loc(transport%ranks), c_loc(transport))
        case ('pg_transport.user'); same = at(c_loc(transport%user), c_loc(transport))
        case ('pg_transport.gather'); same = at(c_loc(transport%gather), c_loc(transport))
        case ('pg_transport.exchange'); same = at(c_loc(transport%exchange), c_loc(transport))
        case ('pg_transport.abort'); same = at(c_loc(transport%abort), c_loc(transport))
        case ('pg_comm.kind'); same = at(c_loc(comm%kind), c_loc(comm))
        case ('pg_comm.handle'); same = at(c_loc(comm%handle), c_loc(comm))
        case ('pg_desc.struct_size'); same = at(c_loc(desc%struct_size), c_loc(desc))
        case ('pg_desc.n'); same = at(c_loc(desc%n), c_loc(desc))
        case ('pg_desc.dim'); same = at(c_loc(desc%dim), c_loc(desc))
        case ('pg_desc.centring'); same = at(c_loc(desc%centring), c_loc(desc))
        case ('pg_desc.h'); same = at(c_loc(desc%h), c_loc(desc))
        case ('pg_desc.coord'); same = at(c_loc(desc%coord), c_loc(desc))
        case ('pg_desc.weight'); same = at(c_loc(desc%weight), c_loc(desc))
        case ('pg_desc.conductance'); same = at(c_loc(desc%conductance), c_loc(desc))
        case ('pg_desc.face'); same = at(c_loc(desc%face), c_loc(desc))
        case ('pg_desc.alpha'); same = at(c_loc(desc%alpha), c_loc(desc))
        case ('pg_desc.beta'); same = at(c_loc(desc%beta), c_loc(desc))
        case ('pg_desc.cells'); same = at(c_loc(desc%cells), c_loc(desc))
        case ('pg_desc.robust'); same = at(c_loc(desc%robust), c_loc(desc))
        case ('pg_desc.velocity'); same = at(c_loc(desc%velocity), c_loc(desc))
        case ('pg_desc.batch'); same = at(c_loc(desc%batch), c_loc(desc))
        case ('pg_desc.stride_u'); same = at(c_loc(desc%stride_u), c_loc(desc))
        case ('pg_desc.stride_f'); same = at(c_loc(desc%stride_f), c_loc(desc))
        case ('pg_desc.memory'); same = at(c_loc(desc%memory), c_loc(desc))
        case ('pg_desc.flags'); same = at(c_loc(desc%flags), c_loc(desc))
        case ('pg_desc.smoother'); same = at(c_loc(desc%smoother), c_loc(desc))
        case ('pg_desc.precond'); same = at(c_loc(desc%precond), c_loc(desc))
        case ('pg_desc.omega'); same = at(c_loc(desc%omega), c_loc(desc))
        case ('pg_desc.nu_pre'); same = at(c_loc(desc%nu_pre), c_loc(desc))
        case ('pg_desc.nu_post'); same = at(c_loc(desc%nu_post), c_loc(desc))
        case ('pg_desc.fmg_cycles'); same = at(c_loc(desc%fmg_cycles), c_loc(desc))
        case ('pg_desc.coarsest'); same = at(c_loc(desc%coarsest), c_loc(desc))
        case ('pg_desc.inner_cycles'); same = at(c_loc(desc%inner_cycles), c_loc(desc))
        case ('pg_desc.backend'); same = at(c_loc(desc%backend), c_loc(desc))
        case ('pg_desc.device'); same = at(c_loc(desc%device), c_loc(desc))
        case ('pg_desc.stream'); same = at(c_loc(desc%stream), c_loc(desc))
        case ('pg_desc.workspace'); same = at(c_loc(desc%workspace), c_loc(desc))
        case ('pg_desc.workspace_bytes'); same = at(c_loc(desc%workspace_bytes), c_loc(desc))
        case ('pg_desc.allocator'); same = at(c_loc(desc%allocator), c_loc(desc))
        case ('pg_desc.comm'); same = at(c_loc(desc%comm), c_loc(desc))
        case ('pg_desc.lo'); same = at(c_loc(desc%lo), c_loc(desc))
        case ('pg_desc.hi'); same = at(c_loc(desc%hi), c_loc(desc))
        case ('pg_desc.time_limit'); same = at(c_loc(desc%time_limit), c_loc(desc))
        case ('pg_dense_desc.struct_size'); same = at(c_loc(dense%struct_size), c_loc(dense))
        case ('pg_dense_desc.n'); same = at(c_loc(dense%n), c_loc(dense))
        case ('pg_dense_desc.lda'); same = at(c_loc(dense%lda), c_loc(dense))
        case ('pg_dense_desc.A'); same = at(c_loc(dense%A), c_loc(dense))
        case ('pg_dense_desc.memory'); same = at(c_loc(dense%memory), c_loc(dense))
        case ('pg_dense_desc.flags'); same = at(c_loc(dense%flags), c_loc(dense))
        case ('pg_dense_desc.omega'); same = at(c_loc(dense%omega), c_loc(dense))
        case ('pg_dense_desc.backend'); same = at(c_loc(dense%backend), c_loc(dense))
        case ('pg_dense_desc.device'); same = at(c_loc(dense%device), c_loc(dense))
        case ('pg_dense_desc.stream'); same = at(c_loc(dense%stream), c_loc(dense))
        case ('pg_dense_desc.workspace'); same = at(c_loc(dense%workspace), c_loc(dense))
        case ('pg_dense_desc.workspace_bytes'); same = at(c_loc(dense%workspace_bytes), c_loc(dense))
        case ('pg_dense_desc.allocator'); same = at(c_loc(dense%allocator), c_loc(dense))
        case ('pg_report.outcome'); same = at(c_loc(report%outcome), c_loc(report))
        case ('pg_report.iterations'); same = at(c_loc(report%iterations), c_loc(report))
        case ('pg_report.rhs_norm'); same = at(c_loc(report%rhs_norm), c_loc(report))
        case ('pg_report.first_residual'); same = at(c_loc(report%first_residual), c_loc(report))
        case ('pg_report.residual'); same = at(c_loc(report%residual), c_loc(report))
        case ('pg_report.floor'); same = at(c_loc(report%floor), c_loc(report))
        case ('pg_report.factor'); same = at(c_loc(report%factor), c_loc(report))
        case ('pg_report.removed_mean'); same = at(c_loc(report%removed_mean), c_loc(report))
        case ('pg_report.milliseconds'); same = at(c_loc(report%milliseconds), c_loc(report))
        case ('pg_report.history_count'); same = at(c_loc(report%history_count), c_loc(report))
        case ('pg_report.history'); same = at(c_loc(report%history), c_loc(report))
        case ('pg_report.backend'); same = at(c_loc(report%backend), c_loc(report))
        case ('pg_report.problem'); same = at(c_loc(report%problem), c_loc(report))
        case ('pg_report.message'); same = at(c_loc(report%message), c_loc(report))
        case ('pg_report.method'); same = at(c_loc(report%method), c_loc(report))
        case ('pg_report.accelerated'); same = at(c_loc(report%accelerated), c_loc(report))
        case ('pg_report.singular_components'); same = at(c_loc(report%singular_components), c_loc(report))
        case ('pg_report.warning'); same = at(c_loc(report%warning), c_loc(report))
        case ('pg_stop.struct_size'); same = at(c_loc(stop%struct_size), c_loc(stop))
        case ('pg_stop.rtol'); same = at(c_loc(stop%rtol), c_loc(stop))
        case ('pg_stop.atol'); same = at(c_loc(stop%atol), c_loc(stop))
        case ('pg_stop.relative_to_first'); same = at(c_loc(stop%relative_to_first), c_loc(stop))
        case ('pg_stop.min_iter'); same = at(c_loc(stop%min_iter), c_loc(stop))
        case ('pg_stop.max_iter'); same = at(c_loc(stop%max_iter), c_loc(stop))
        case ('pg_stop.check'); same = at(c_loc(stop%check), c_loc(stop))
        case ('pg_stop.norm'); same = at(c_loc(stop%norm), c_loc(stop))
        case ('pg_stop.guess'); same = at(c_loc(stop%guess), c_loc(stop))
        case ('pg_stop.monitor'); same = at(c_loc(stop%monitor), c_loc(stop))
        case ('pg_stop.user'); same = at(c_loc(stop%user), c_loc(stop))
        case default; same = .false.
        end select

    contains

        logical function at(field, begin)
            type(c_ptr), intent(in) :: field, begin
            at = transfer(field, offset) - transfer(begin, offset) == offset
        end function
    end function
end module
