"""Open MPI: its built-in decisions, its rules files, and the behaviour of the installed version under them."""
