# A program, and the description of the reader's cluster.
cp simulator/programs/measuring/example.c program.c
./collwise platforms new mycluster --nodes 8 --gbits 1 --latency-us 30 --ppn 2
