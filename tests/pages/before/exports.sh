# Simulated times of the reader's cluster, and times that were measured there.
./collwise platforms new mycluster --nodes 8 --gbits 1 --latency-us 30 --ppn 2
./collwise simulate --platform mycluster.toml --collective bcast --procs 4 --sizes 8KiB --engine schedule
./collwise import osu.txt --platform mycluster --procs 8
