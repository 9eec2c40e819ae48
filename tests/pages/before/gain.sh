# The description of the reader's cluster, and a test bed.
./collwise platforms new mycluster --nodes 8 --gbits 1 --latency-us 30
./collwise testbed up --nodes 8
