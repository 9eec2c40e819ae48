"""Lloyd's k-means by mpi4py: the centres are broadcast, each process adds its points up by centre, the sums reduced."""

from array import array

from mpi4py import MPI

CENTRES, DIMENSIONS, POINTS, STEPS = 64, 512, 4, 6
world = MPI.COMM_WORLD
points = [array("d", [(i * 31 + d * 17 + world.rank * 7) % 97 for d in range(DIMENSIONS)]) for i in range(POINTS)]
centres = array("d", [(c * 13 + d * 5) % 97 for c in range(CENTRES) for d in range(DIMENSIONS)])
total = array("d", bytes(8 * len(centres)))
world.Barrier()
start = MPI.Wtime()
for step in range(STEPS):
    world.Bcast([centres, MPI.DOUBLE])
    sums = array("d", bytes(8 * len(centres)))
    for number, point in enumerate(points):
        chosen = (number + step + int(centres[number])) % CENTRES
        sums[chosen * DIMENSIONS : (chosen + 1) * DIMENSIONS] = point
    world.Reduce([sums, MPI.DOUBLE], [total, MPI.DOUBLE])
    if world.rank == 0:
        centres = array("d", [(old + new) % 97 for old, new in zip(centres, total, strict=True)])
seconds = MPI.Wtime() - start
if world.rank == 0:
    print(f"checksum {sum(centres):.0f}\nseconds {seconds:.6f}")
