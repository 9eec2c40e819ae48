"""Places reached by a launcher: mpirun on named hosts, srun within a SLURM job, a reservation of OAR."""
