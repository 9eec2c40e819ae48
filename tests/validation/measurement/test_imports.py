"""Output of other programs; the samples follow what versions of these print, with numbers of our own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.simulator.store import Store
from collwise.simulator.timing import Timing
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.measurement.imports import import_file
from collwise.validation.measurement.imports.reading import MissingFacts
from collwise.validation.times.grid import choice_of

OSU_PLAIN = """
# OSU MPI Broadcast Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.50
1024                   10.00
"""
OSU_FULL = """# OSU MPI Gather Latency Test v5.8
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
8                       3.00              2.00              4.00        1000
"""
OSU_ALLTOALL = """# OSU MPI All-to-All Personalized Exchange Latency Test v5.6
# Size       Avg Latency(us)
16                      7.00
"""
OSU_BARRIER = """# OSU MPI Barrier Latency Test v5.8
# Avg Latency(us)
             165.70
"""
OSU_LATENCY = """# OSU MPI Latency Test v5.8
# Size          Latency (us)
0                       1.50
4096                    4.25
"""
OSU_BANDWIDTH = """# OSU MPI Bandwidth Test v7.3
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       0.64
4096                 2048.00
"""
IMB = """#------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
#------------------------------------------------------------
# Calling sequence was: IMB-MPI1 Bcast PingPong Barrier Sendrecv

#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
# ( 2 additional processes waiting in MPI_Barrier)
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.20         0.00
         1024         1000         2.00       512.00

#-----------------------------------------------------------------------------
# Benchmarking Sendrecv
# #processes = 2
#-----------------------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0         1000         2.00         2.00         2.00         0.00

#----------------------------------------------------------------
# Benchmarking Bcast
# #processes = 4
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.02         0.03         0.02
        65536          640        50.00        70.00        60.00

#---------------------------------------------------
# Benchmarking Barrier
# #processes = 4
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000        12.00        13.00        12.50


# All processes entering MPI_Finalize
"""
REPRO = """#@operation=MPI_BOR
#@datatype=MPI_CHAR
#@nprocs=1024
#@clock=MPI_Wtime
#@sync=BBarrier
test nrep msize runtime_sec
MPI_Allgather 0 1 0.0002
MPI_Allgather 1 1 0.0004
MPI_Allgather 0 8 0.0005
#@pgmpi alg MPI_Allgather 8 default
"""
REPRO_SUMMARY = """#@nprocs=4
test msize total_nrep valid_nrep mean_runtime_sec median_runtime_sec min_runtime_sec max_runtime_sec
MPI_Reduce_scatter 4096 100 97 0.003 0.0029 0.002 0.004
"""
INFINITY = float("inf")


THERE = MissingFacts("there", 4, 2)


def read(tmp_path: Path, text: str, missing: MissingFacts = THERE) -> tuple[list[Timing], list[dict[str, str]]]:
    file = tmp_path / "output.txt"
    file.write_text(text)
    with Store(tmp_path / "store.sqlite") as store:
        found = import_file(file, store, missing).timings
        return found, list(store.rows(source="measured"))


def summary(found: list[Timing]) -> list[tuple[str, str, int, int, float, int]]:
    return [
        (one.case.collective, one.case.experiment, one.case.procs, one.case.message_bytes,
         round(one.seconds * 1e6, 6), one.repetitions)
        for one in found
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected", "maker", "timing"),
    [
        (
            OSU_PLAIN,
            [("bcast", "builtin", 4, 1, 2.5, 1), ("bcast", "builtin", 4, 1024, 10.0, 1)],
            "OSU micro-benchmarks 7.3",
            "mean over processes",
        ),
        (OSU_FULL, [("gather", "builtin", 4, 8, 4.0, 1000)], "OSU micro-benchmarks 5.8", "maximum"),
        (OSU_ALLTOALL, [("alltoall", "builtin", 4, 16, 7.0, 1)], "OSU micro-benchmarks 5.6", "mean over processes"),
        (OSU_BARRIER, [("barrier", "builtin", 4, 0, 165.7, 1)], "OSU micro-benchmarks 5.8", "mean over processes"),
        (
            IMB,
            [
                ("-", "roundtrip", 2, 0, 2.4, 1000),
                ("-", "roundtrip", 2, 1024, 4.0, 1000),
                ("bcast", "builtin", 4, 0, 0.03, 1000),
                ("bcast", "builtin", 4, 65536, 70.0, 640),
                ("barrier", "builtin", 4, 0, 13.0, 1000),
            ],
            "IMB-MPI1 2021.3",
            "maximum",
        ),
    ],
)
def test_microseconds_of_osu_and_intel(
    tmp_path: Path, text: str, expected: list[tuple[object, ...]], maker: str, timing: str
) -> None:
    found, rows = read(tmp_path, text)
    assert summary(found) == expected
    assert all(one.half_width_seconds == INFINITY and one.case.algorithm == "-" for one in found)
    assert {row["maker"] for row in rows} == {maker}
    assert all(row["platform"] == "there" and timing in row["details"] for row in rows)
    assert len(rows) == len(expected)


def test_assumed_processes_per_node_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, per_node, is_said in ((OSU_PLAIN, 0, True), (OSU_PLAIN, 1, False), (OSU_LATENCY, 0, False)):
        found, _ = read(
            tmp_path, text, replace(THERE, procs=0 if text == OSU_LATENCY else 4, processes_per_node=per_node)
        )
        assert {one.case.processes_per_node for one in found} == {1}
        assert ("without --ppn, 4 are taken for one on each node" in capsys.readouterr().err) == is_said


def test_times_of_an_untuned_library_are_those_of_what_it_decides(tmp_path: Path) -> None:
    library = BASELINES["openmpi-4.1"]
    found, _ = read(tmp_path, OSU_PLAIN, replace(THERE, algorithm=library.name))
    decided = [library.choice("bcast", 4, one.case.message_bytes) for one in found]
    assert [choice_of(one.case) for one in found] == decided
    assert read(tmp_path, OSU_PLAIN, replace(THERE, algorithm=library.name, library="OpenMPI 4.1.5"))[0] == found
    assert None not in decided


def test_half_a_roundtrip_is_doubled(tmp_path: Path) -> None:
    found, _ = read(tmp_path, OSU_LATENCY, MissingFacts("there"))
    assert summary(found) == [("-", "roundtrip", 2, 0, 3.0, 1), ("-", "roundtrip", 2, 4096, 8.5, 1)]
    assert [one.root_seconds for one in found] == [one.seconds for one in found]


def test_rates_become_the_time_of_a_window_of_messages(tmp_path: Path) -> None:
    found, _ = read(tmp_path, OSU_LATENCY + "\n" + OSU_BANDWIDTH, MissingFacts("there"))
    assert summary(found)[2:] == [("-", "saturation", 2, 1, 100.0, 1), ("-", "saturation", 2, 4096, 128.0, 1)]
    assert {(one.case.count, one.case.reply_bytes) for one in found[2:]} == {(64, 4)}


def test_repro_mpis_samples_become_means(tmp_path: Path) -> None:
    found, rows = read(tmp_path, REPRO, MissingFacts("there"))
    assert summary(found) == [("allgather", "builtin", 1024, 1, 300.0, 2), ("allgather", "builtin", 1024, 8, 500.0, 1)]
    # Two samples a and b: t(0.975, 1) |a - b| / 2, and 12.706 stands in every table.
    assert found[0].half_width_seconds == pytest.approx(12.706 * 1e-4, rel=1e-4)
    assert found[1].half_width_seconds == INFINITY
    assert all("BBarrier" in row["details"] and row["maker"] == "ReproMPI" for row in rows)


def test_repro_mpis_summary(tmp_path: Path) -> None:
    found, _ = read(tmp_path, REPRO_SUMMARY, MissingFacts("there"))
    assert summary(found) == [("reduce_scatter", "builtin", 4, 4096, 3000.0, 97)]


@pytest.mark.parametrize(
    ("text", "missing", "message"),
    [
        (
            OSU_PLAIN + "2048 x\n",
            MissingFacts("there", 4),
            r"output.txt:7: expected 2 numbers \(size, avg\), not '2048 x'",
        ),
        (OSU_PLAIN + "2048\n", MissingFacts("there", 4), r":7: expected 2 numbers"),
        (OSU_PLAIN + "20.5 3\n", MissingFacts("there", 4), r":7: expected a size as a whole number"),
        (OSU_PLAIN + "8 -3\n", MissingFacts("there", 4), r":7: expected numbers of at least 0"),
        (OSU_BANDWIDTH + "8 0\n", MissingFacts("there"), ":6: expected a size and a rate above 0"),
        (OSU_PLAIN + "8 nan\n", MissingFacts("there", 4), r":7: expected numbers of at least 0"),
        (OSU_PLAIN, MissingFacts("there"), "does not say how many processes there were; give --procs P"),
        (OSU_PLAIN, MissingFacts("there", 4, 2, algorithm="openmpi-5.0"), "--algorithm openmpi-5.0: with several"),
        (
            OSU_PLAIN,
            MissingFacts("there", 4, 2, algorithm="openmpi-5.0"),
            "leave out --algorithm.*nothing of .*txt was",
        ),
        (
            OSU_PLAIN,
            MissingFacts("there", 4, 1, "Open MPI 5.0.2", "openmpi-4.1"),
            "'Open MPI 5.0.2' is not a version",
        ),
        (
            OSU_PLAIN,
            MissingFacts("there", 4, 1, "5.0.2", "openmpi-4.1"),
            "'5.0.2' is not a version of 'Open MPI 4.1'; correct",
        ),
        (OSU_PLAIN, MissingFacts("", 4), "does not say where it was measured; give its --platform NAME"),
        ("# OSU MPI Broadcast Latency Test v5.8\n1 2.0\n", MissingFacts("there", 4), ":2: expected the line '# Size"),
        (
            "# OSU MPI Bi-Directional Bandwidth Test v5.8\n",
            MissingFacts("there", 4),
            ":1: expected a known test",
        ),
        (
            "# OSU MPI Broadcast Latency Test v5.8\n",
            MissingFacts("there", 4),
            "expected a row of numbers, not",
        ),
        (IMB, MissingFacts("there", 8), None),
        (IMB.replace("70.00        60.00", "70.00"), MissingFacts("there"), r":28: expected 5 numbers"),
        (IMB.replace("# #processes = 4", "#"), MissingFacts("there"), "expected the line '# #processes = P'"),
        (REPRO + "MPI_Allgather 0 8\n", MissingFacts("there"), ":11: expected 3 numbers"),
        (REPRO + "MPI_Alldance 0 8 0.1\n", MissingFacts("there"), ":11: expected a known MPI collective"),
        (REPRO.replace("1024", "many"), MissingFacts("there"), "expected a number after #@nprocs="),
        (REPRO, MissingFacts("there", 7), "--procs 7: .* has times of 1024 processes"),
        (
            "collective,algorithm,procs,bytes,us,node\nbcast,chain,8,64,1,2\n",
            MissingFacts("there", library="Open MPI 4.1"),
            r":1: unknown column 'node'; valid: collective, algorithm",
        ),
        ("", MissingFacts("there"), "the file is empty"),
        ("hello\n", MissingFacts("there"), "unknown format; valid: results of a collwise script, of OSU"),
    ],
)
def test_malformed_files_store_nothing(tmp_path: Path, text: str, missing: MissingFacts, message: str | None) -> None:
    if message is None:
        assert len(read(tmp_path, text, missing)[0]) == 5
        return
    with pytest.raises(UsageError, match=message) as told:
        read(tmp_path, text, missing)
    assert "\n" not in str(told.value)
    with Store(tmp_path / "store.sqlite") as store:
        assert not list(store.rows())


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "output.txt"
    file.write_bytes(b"\xff\xfe\x00")
    with Store(tmp_path / "store.sqlite") as store, pytest.raises(UsageError, match="not text"):
        import_file(file, store, MissingFacts("there", 4))
