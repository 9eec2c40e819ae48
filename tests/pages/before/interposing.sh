# The description of the reader's cluster.
./collwise platforms new mycluster --nodes 16 --gbits 1 --latency-us 30
