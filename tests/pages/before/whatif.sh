# Decisions, the report of a program's run, and a table.
./collwise simulate --platform gros --collective bcast --procs 16 --sizes 64KiB --engine schedule -o made.times
./collwise select made.times -o kept.json
./collwise program run --library smpi --platform gros --procs 4 --report report.json -- asp --size 64
echo 'bcast 2 1 0 chain' >rules.txt
