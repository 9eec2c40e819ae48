# Simulated times of the reader's cluster, times that were measured there, and the rules of the tutorial.
./collwise platforms new mycluster --nodes 8 --gbits 1 --latency-us 30 --ppn 2
./collwise simulate --platform mycluster.toml --collective bcast --procs 4 --sizes 8KiB --engine schedule
./collwise times import osu.txt --platform mycluster --procs 8
./collwise platforms new wide --nodes 64 --interconnect infiniband-hdr --ppn 32
./collwise simulate --platform wide.toml --collective allreduce --procs 64 --sizes 64KiB --engine schedule --for openmpi-4.1 -o wide.times
./collwise select wide.times --for openmpi-4.1 -o wide.json
./collwise export wide.json --version 4.1 -o mycluster.rules
