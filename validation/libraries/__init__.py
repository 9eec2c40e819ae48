"""MPI libraries: what they run untuned, the formats of their rules, and checks that the rules are followed."""
