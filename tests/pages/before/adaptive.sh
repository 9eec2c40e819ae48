# The description of the reader's cluster.
./collwise platforms new mycluster --nodes 8 --gbits 1 --latency-us 30 --ppn 2
