"""What MPI libraries run untuned: their fixed decisions for every collective, and checks by the installed libraries."""
