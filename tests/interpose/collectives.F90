! Collectives of a Fortran program, by mpif.h (-DUSE_MPIF), the module mpi (-DUSE_MPI) or mpi_f08 (neither), with the
! sentinels that Fortran has: MPI_IN_PLACE, MPI_BOTTOM and MPI_STATUS_IGNORE. Prints "ok" or each result that is wrong.
program collectives
#ifdef USE_MPI
  use mpi
#elif !defined(USE_MPIF)
  use mpi_f08
#endif
  implicit none
#ifdef USE_MPIF
  include 'mpif.h'
#endif
#if defined(USE_MPI) || defined(USE_MPIF)
#define HANDLE(kind) integer
#else
#define HANDLE(kind) type(kind)
#endif
  integer :: rank, procs, error, i, wrong
  integer, parameter :: n = 5
  integer :: counts(64), displacements(64), own(n), gathered(n * 64), received(n * 64), expected
  double precision :: values(n), sums(n)
  integer, save :: at_bottom(n)
  integer(kind=MPI_ADDRESS_KIND) :: address(1)
  HANDLE(MPI_Datatype) :: absolute, types(1)
  HANDLE(MPI_Op) :: largest
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Comm) :: pairs
  external :: greater

  wrong = 0
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, procs, error)
  do i = 1, n
    own(i) = 100 * rank + i
    values(i) = rank + 0.5d0 * i
  end do
  do i = 1, procs
    counts(i) = n
    displacements(i) = n * (i - 1)
  end do

  received(1:n) = own
  call MPI_Bcast(received, n, MPI_INTEGER, procs - 1, MPI_COMM_WORLD, error)
  call check('bcast', all_equal(received(1:n), 100 * (procs - 1)))

  call MPI_Allreduce(values, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  call check('allreduce', abs(sums(2) - (procs * (procs - 1) / 2 + 1.0d0 * procs)) < 1d-9)
  call MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  call check('allreduce in place', all(abs(sums - values) < 1d-9))

  received = -1
  received(n * rank + 1:n * rank + n) = own
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, received, n, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check('allgather in place', blocks_are_right())
  received = -1
  call MPI_Gatherv(own, n, MPI_INTEGER, received, counts, displacements, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  if (rank == 0) call check('gatherv', blocks_are_right())
  gathered = received
  if (rank == 0) then
    call MPI_Scatter(gathered, n, MPI_INTEGER, MPI_IN_PLACE, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  else
    received(1:n) = -1
    call MPI_Scatter(gathered, n, MPI_INTEGER, received, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('scatter', all_equal(received(1:n), 100 * rank))
  end if

  ! A type of absolute addresses, whose buffer is MPI_BOTTOM.
  at_bottom = own
  call MPI_Get_address(at_bottom, address(1), error)
  counts(1) = n
  types(1) = MPI_INTEGER
  call MPI_Type_create_struct(1, counts, address, types, absolute, error)
  call MPI_Type_commit(absolute, error)
  call MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, MPI_COMM_WORLD, error)
  call check('bcast of bottom', all_equal(at_bottom, 0))
  call MPI_Type_free(absolute, error)

  call MPI_Op_create(greater, .true., largest, error)
  received(1:n) = own
  if (rank == 0) then
    call MPI_Reduce(MPI_IN_PLACE, received, n, MPI_INTEGER, largest, 0, MPI_COMM_WORLD, error)
    call check('reduce by an operation of its own', all_equal(received(1:n), 100 * (procs - 1)))
  else
    call MPI_Reduce(own, received, n, MPI_INTEGER, largest, 0, MPI_COMM_WORLD, error)
  end if
  call MPI_Op_free(largest, error)

  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, pairs, error)
  expected = own(1)
  call MPI_Allreduce(MPI_IN_PLACE, expected, 1, MPI_INTEGER, MPI_MIN, pairs, error)
  call check('allreduce on a part', expected == 100 * mod(rank, 2) + 1)
  call MPI_Barrier(pairs, error)
  call MPI_Comm_free(pairs, error)

  received(1:n) = own
  call MPI_Ibcast(received, n, MPI_INTEGER, 0, MPI_COMM_WORLD, request, error)
  call MPI_Wait(request, MPI_STATUS_IGNORE, error)
  call check('ibcast', all_equal(received(1:n), 0))

  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
  call MPI_Bcast(received, n, MPI_INTEGER, procs, MPI_COMM_WORLD, error)
  call check('an error is returned', error /= MPI_SUCCESS)

  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0 .and. wrong == 0) print '(a)', 'ok'
  call MPI_Finalize(error)

contains
  subroutine check(what, is_right)
    character(len=*), intent(in) :: what
    logical, intent(in) :: is_right
    if (.not. is_right) then
      print '(a, a, i0)', what, ' is wrong on ', rank
      wrong = wrong + 1
    end if
  end subroutine

  logical function all_equal(found, base)
    integer, intent(in) :: found(:), base
    integer :: k
    all_equal = .true.
    do k = 1, size(found)
      all_equal = all_equal .and. found(k) == base + k
    end do
  end function

  logical function blocks_are_right()
    integer :: k
    blocks_are_right = .true.
    do k = 1, procs
      blocks_are_right = blocks_are_right .and. all_equal(received(n * (k - 1) + 1:n * k), 100 * (k - 1))
    end do
  end function
end program

subroutine greater(left, right, count, type)
#if defined(USE_MPI) || defined(USE_MPIF)
  implicit none
  integer :: count, type
#else
  use mpi_f08
  implicit none
  integer :: count
  type(MPI_Datatype) :: type
#endif
  integer :: left(count), right(count)
  right = max(left, right)
end subroutine
