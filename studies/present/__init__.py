"""How results are printed: a presenter for each type that the public functions return."""
