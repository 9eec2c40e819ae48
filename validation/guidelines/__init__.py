"""Performance guidelines of MPI libraries, after Hunold & Carpen-Amarie 2018: checks, and repair by mock-ups."""
