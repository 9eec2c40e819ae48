"""Open MPI: its built-in decisions, its rules files, and what the installed version does with them."""
