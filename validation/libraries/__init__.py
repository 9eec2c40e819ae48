"""The formats of MPI libraries: what libraries run untuned, what rules can express, and whether these are followed."""
