"""Running C programs: engines, launching, sweeps in SMPI, and the store of times."""
