"""A cluster in one machine: network namespaces behind a switch with shaped ports, and real Open MPI over TCP in it."""
