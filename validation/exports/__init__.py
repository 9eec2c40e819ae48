"""Decision tables in the formats of MPI libraries: what each can say, and the second best choice where it cannot."""
