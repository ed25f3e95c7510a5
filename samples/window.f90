! A Fortran program that solves on a window of a larger array: fields with ghost layers, as flow codes have them.
!
! From the project's folder:
!
!     gfortran -c samples/poisson_gpu.f90 -o poisson_gpu_f90.o
!     c++ -x c++ -std=c++17 -O3 -fopenmp -c poisson_gpu.cu
!     gfortran -fopenmp samples/window.f90 poisson_gpu_f90.o poisson_gpu.o -o window -lstdc++
!
!     window                 u of -laplacian(u) = f on the unit square, one ghost layer around, and two around f
!
! The exact solution of the discrete problem is known; exit status 0: it was found, and the ghosts are as they were.
program window
    use, intrinsic :: iso_c_binding
    use poisson_gpu
    implicit none
    integer, parameter :: nx = 48, ny = 32
    real(c_double), parameter :: pi = 3.14159265358979323846d0, ghost = -7
    real(c_double), target :: u(0:nx + 1, 0:ny + 1), f(-1:nx + 2, -1:ny + 2), slope(nx + 1, ny)
    real(c_double) :: x, y, h(2), error, flux
    type(pg_desc) :: desc
    type(pg_report) :: report
    type(c_ptr) :: solver
    integer :: i, j

    if (pg_abi_differs() /= '') then
        print '(a)', 'poisson_gpu.f90 and the library are not of one version: '//pg_abi_differs()//' differs'
        stop 2
    end if
    u = ghost
    f = ghost
    h = [1d0 / nx, 1d0 / ny]
    desc%n(1:2) = [nx, ny]
    desc%centring = PG_CELL
    desc%face(PG_X_LOW + 1:PG_X_HIGH + 1)%kind = PG_DIRICHLET
    desc%face(PG_Y_LOW + 1:PG_Y_HIGH + 1)%kind = PG_NEUMANN
    desc%stride_u(1) = size(u, 1)
    desc%stride_f(1) = size(f, 1)
    do j = 1, ny
        do i = 1, nx
            x = (i - 0.5d0) * h(1)
            y = (j - 0.5d0) * h(2)
            f(i, j) = eigenvalue() * sin(pi * x) * cos(pi * y)
        end do
    end do

    if (pg_create(desc, solver) /= PG_OK) call give_up(c_null_ptr)
    if (pg_solve(solver, c_loc(u(1, 1)), c_loc(f(1, 1)), c_null_ptr) /= PG_OK) call give_up(solver)
    if (pg_get_report(solver, report) /= PG_OK) call give_up(solver)
    if (pg_gradient(solver, c_loc(u(1, 1)), 0, c_loc(slope), PG_AT_FACES) /= PG_OK) call give_up(solver)
    error = 0
    do j = 1, ny
        do i = 1, nx
            error = max(error, abs(u(i, j) - sin(pi * (i - 0.5d0) * h(1)) * cos(pi * (j - 0.5d0) * h(2))))
        end do
    end do
    flux = slope(1, 1)
    print '(a)', pg_text(pg_version())
    print '(a,a,es8.1,a,f7.4)', pg_message(report%message), '; largest error', error, '; slope at the wall', flux
    call pg_destroy(solver)
    u(1:nx, 1:ny) = ghost
    f(1:nx, 1:ny) = ghost
    if (report%outcome /= PG_CONVERGED .or. error > 1d-7 .or. any(abs(u - ghost) > 0) .or. &
        any(abs(f - ghost) > 0)) stop 1
    if (abs(flux - pi * cos(pi * h(2) / 2)) > 0.01) stop 1

contains

    ! Of sin(pi x) cos(pi y) on cells.
    real(c_double) function eigenvalue()
        eigenvalue = sum((2 - 2 * cos(pi * h)) / h**2)
    end function

    subroutine give_up(handle)
        type(c_ptr), intent(in) :: handle
        print '(a)', pg_text(pg_last_error(handle))
        stop 2
    end subroutine
end program
