"""The formats of MPI libraries: what these run untuned, what their rules can say, and whether they follow them."""
