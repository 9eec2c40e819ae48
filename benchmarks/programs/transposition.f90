! Transposes a matrix whose columns are spread over the processes, as the parallel Fourier transform does, gathers sums
! of its elements on all processes, and adds a panel that one process after another broadcasts, as factorisations do.
program transposition
  use mpi_f08
  implicit none
  integer, parameter :: steps = 8, block = 4096
  integer :: rank, procs, step, i
  double precision, allocatable :: here(:), there(:), sums(:)
  double precision :: start, seconds, own(1024)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, procs)
  allocate(here(block * procs), there(block * procs), sums(size(own) * procs))
  here = [(dble(mod(i * (rank + 1), 251)), i = 1, block * procs)]
  call MPI_Barrier(MPI_COMM_WORLD)
  start = MPI_Wtime()
  do step = 1, steps
    call MPI_Alltoall(here, block, MPI_DOUBLE_PRECISION, there, block, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
    own = [(there(i) + there(i + size(own)), i = 1, size(own))]
    call MPI_Allgather(own, size(own), MPI_DOUBLE_PRECISION, sums, size(own), MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
    here = mod(there + sums(1) + dble(step), 251d0)
    there = here
    call MPI_Bcast(there, block * procs, MPI_DOUBLE_PRECISION, mod(step, procs), MPI_COMM_WORLD)
    here = mod(here + there, 251d0)
  end do
  seconds = MPI_Wtime() - start
  if (rank == 0) then
    print '(a, f0.0)', 'checksum ', sum(here) + sum(sums)
    print '(a, f0.6)', 'seconds ', seconds
  end if
  call MPI_Finalize()
end program transposition
