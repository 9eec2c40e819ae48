# The description of the reader's cluster, and decisions.
./collwise platforms new mycluster --nodes 8 --gbits 1 --latency-us 30 --ppn 2
./collwise simulate --platform gros --collective bcast --procs 4 --sizes 16KiB --engine schedule -o made.times
./collwise select made.times -o decisions.json
cp decisions.json mycluster.json
