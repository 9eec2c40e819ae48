#!/usr/bin/env bash
$batch# Made by collwise: measures $cases cases of collectives with $procs processes. Needs bash, tar, base64 and MPI.
#
#     bash SCRIPT [RESULTS]        RESULTS: the file written, default collwise-results.jsonl
#
# Variables: LAUNCHER, the command that starts programs and takes -n PROCESSES (for example "mpirun --hostfile hosts" or
# "srun --mpi=pmix --ntasks-per-node=32 --cpu-bind=cores"), default "$launcher"; COMPILER, default mpicc.
# Take RESULTS home and read it by: collwise times import RESULTS
set -euo pipefail
# PMIx's own choice lets some processes send messages before others are ready, where Open MPI may crash.
$fences
launcher=$${LAUNCHER:-$launcher}
compiler=$${COMPILER:-mpicc}
results=$${1:-collwise-results.jsonl}
if [ -e "$$results" ]; then
    echo "$$results is there already; name another file" >&2
    exit 2
fi
# Below the working directory, which the hosts of a cluster share as a rule; relative, so that blanks in it do no harm.
work=$$(mktemp -d collwise-XXXXXX)
trap 'rm -rf "$$work"' EXIT
sed '1,/^$marker$$/d' "$$0" | base64 -d | tar -xzf - -C "$$work"
flags="-std=gnu11 -O3 -I$$work/algorithms -I$$work/algorithms/worlds/real -I$$work/simulator/programs"
mv "$$work/simulator/programs/whereabouts.c" "$$work"
$$compiler $$flags -o "$$work/whereabouts" "$$work/whereabouts.c"
find "$$work/algorithms" "$$work/simulator" -name '*.c' -print0 |
    xargs -0 -n 1 -P "$$(nproc)" sh -c '$$0 -c "$$1" -o "$$1.o"' "$$compiler $$flags"
$$compiler -o "$$work/benchmark" $$(find "$$work/algorithms" "$$work/simulator" -name '*.o') -lm
cp "$$work/header.json" "$$results"
$$launcher -n $procs "$$work/whereabouts" </dev/null | grep '^{"rank"' >>"$$results"
echo "measuring $cases cases with $procs processes" >&2
$$launcher -n $procs "$$work/benchmark" "$$work/cases.txt" $options </dev/null |
    grep --line-buffered '^{"id"' >>"$$results"
echo "$$results: done; read it by: collwise times import $$results" >&2
exit 0
$marker
$payload
