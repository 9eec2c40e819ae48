"""A cluster in one machine: network namespaces behind switches with shaped ports, and real MPI over TCP in it."""
