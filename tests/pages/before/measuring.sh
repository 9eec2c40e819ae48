# A program.
cp simulator/programs/measuring/example.c program.c
