"""Runs of PICO, tables of one's own, netgauge's output, logs as people keep them, and cells that cannot be."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.measurement.imports import import_file, read_file
from collwise.validation.measurement.imports.reading import MissingFacts
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of
from collwise.validation.times.measured import stored_times
from tests.command_line import called

HEAD = (
    "timestamp,test_id,nnodes,tasks_per_node,collective_type,mpi_lib,mpi_lib_version,libbine_version,gpu_awareness,"
    "gpu_lib,gpu_lib_version,output_level,MPI_Op,notes\n"
)
RUN = "2025_01_02___03_04_05"


def metadata(*tests: tuple[str, str, str, str]) -> str:
    """Rows by number of nodes, processes per node, collective and library with version."""
    return HEAD + "".join(
        f"{RUN},{number},{nodes},{ppn},{collective},{library},1.0.0,no,null,null,summarized,null,rails=1\n"
        for number, (nodes, ppn, collective, library) in enumerate(tests)
    )


def iterations(*nanoseconds: float) -> str:
    return "highest\n" + "".join(f"{one}\n" for one in nanoseconds)


def ranks(procs: int, per_node: int = 1) -> str:
    return "MPI_Rank,allocation\n" + "".join(f"{rank},host{rank // per_node}.site\n" for rank in range(procs))


def archive(folder: Path, files: dict[str, str], table: str, suffix: str = ".tar.gz") -> Path:
    """The archive of a run below a machine's folder, with the metadata above it and a licence, as PICO keeps them."""
    (folder / "hexa").mkdir(parents=True, exist_ok=True)
    (folder / "hexa_metadata.csv").write_text(table)
    (folder / "LICENSE").write_text("MIT License\n\nCopyright (c) 2025 Somebody\n\nPermission is hereby granted\n")
    path = folder / "hexa" / f"{RUN}{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name, text in files.items():
                packed.writestr(f"{RUN}/{name}", text)
        return path
    with tarfile.open(path, "w:gz") as unpacked:
        for name, text in files.items():
            member = tarfile.TarInfo(name if name.startswith(("/", "..")) else f"{RUN}/{name}")
            member.size = len(text)
            unpacked.addfile(member, io.BytesIO(text.encode()))
    return path


def read(path: Path, missing: MissingFacts = MissingFacts()) -> tuple[Configuration, dict[Case, Timing]]:  # noqa: B008
    ((configuration, timings),) = read_file(path, missing)
    return configuration, {one.case: one for one in timings}


def bcast(algorithm: str | None, size: int, procs: int = 4) -> Case:
    return case_of("bcast", LIBRARY_DECIDES if algorithm is None else Choice(algorithm), procs, size)


BCAST = ("4", "1", "BCAST", "OMPI,4.1.5")
TIMES = {
    "alloc.csv": ranks(4),
    "0/1024_default_ompi_int32.csv": iterations(90000, 9000, 9100, 9200, 9300),
    "0/1024_binomial_ompi_int32.csv": iterations(99999, 12000, 12200, 12100, 12300),
    "0/1024_bine_lat_over_int32.csv": iterations(70000, 7000, 7000, 7000, 7000),
}


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip", ".tgz", ""])
def test_a_run_is_read_without_its_first_fifth(tmp_path: Path, suffix: str) -> None:
    path = archive(tmp_path, TIMES, metadata(BCAST), suffix or ".tar.gz")
    if not suffix:
        with tarfile.open(path) as packed:
            packed.extractall(path.parent, filter="data")
        path = path.parent / RUN
    configuration, found = read(path)
    assert (configuration.platform, configuration.maker, configuration.source) == ("hexa", "Open MPI 4.1.5", "measured")
    facts = dict(configuration.details)
    assert facts["job"] == RUN
    assert facts["hosts"] == "host0*1,host1*1,host2*1,host3*1"
    assert facts["licence"] == "MIT License; Copyright (c) 2025 Somebody"
    assert facts["source"] == "HLC-Lab/pico"
    assert facts["notes"] == "rails=1"
    assert facts["timing"].startswith("maximum over processes after a barrier")
    forced = found[bcast("binomial", 4096)]
    assert forced.seconds == pytest.approx(12.15e-6)
    assert (forced.repetitions, forced.least_seconds, forced.greatest_seconds) == (4, 12e-6, 12.3e-6)
    assert forced.half_width_seconds == pytest.approx(0.15e-6)
    assert found[bcast(None, 4096)].seconds == pytest.approx(9.15e-6)
    assert found[bcast("bine_lat_over", 4096)].seconds == pytest.approx(7e-6)


def test_a_stored_run_is_times_and_other_algorithms_keep_their_names(tmp_path: Path) -> None:
    path = archive(tmp_path, TIMES, metadata(BCAST))
    with Store(tmp_path / "store.sqlite") as store:
        assert import_file(path, store, MissingFacts()).marked
        times = stored_times(store, "measured", "hexa", "bcast")
    assert {choice.algorithm for choice in times.choices} == {"binomial", "bine_lat_over"}
    assert times.seconds_of(Choice("binomial"), 4, 4096) == pytest.approx(12.15e-6)
    assert times.seconds_of(LIBRARY_DECIDES, 4, 4096) == pytest.approx(9.15e-6)


@pytest.mark.parametrize(
    ("collective", "library", "name", "expected"),
    [
        ("ALLTOALL", "OMPI,4.1.5", "linear_sync_ompi", Choice("linear_sync", parameter=3)),
        ("ALLTOALL", "OMPI,4.1.5", "modified_bruck_ompi", Choice("bruck")),
        ("BCAST", "OMPI,4.1.5", "chain_ompi", Choice("k_chain", parameter=1)),
        ("REDUCE", "OMPI,4.1.5", "chain_ompi", Choice("chain", parameter=1)),
        ("REDUCE", "FJMPI,4.0.1", "default-chain", Choice("chain")),
        ("GATHER", "OMPI,4.1.5", "linear_synch_ompi", Choice("linear_sync", 1 << 30)),
        ("SCATTER", "OMPI,4.1.5", "linear_nb_ompi", Choice("linear_nonblocking")),
        ("REDUCE", "OMPI,4.1.5", "in_order_ompi", Choice("in_order_binary")),
        ("ALLGATHER", "OMPI,4.1.5", "neighbor_ompi", Choice("neighbor_exchange")),
        ("BCAST", "OMPI,4.1.5", "scatter_allgather_ring_ompi", Choice("scatter_ring_allgather")),
        ("ALLGATHER", "CRAY_MPICH,8.1.29", "brucks_mpich", Choice("bruck")),
        ("ALLREDUCE", "CRAY_MPICH,8.1.29", "rabenseifner_mpich", Choice("rabenseifner")),
        ("ALLREDUCE", "CRAY_MPICH,8.1.29", "non_blocking_mpich", Choice("non_blocking_mpich")),
        ("BCAST", "FJMPI,4.0.1", "default-split-binary-tree", Choice("split_binary")),
        ("BCAST", "FJMPI,4.0.1", "default-trinaryx3", Choice("default-trinaryx3")),
        ("BCAST", "FJMPI,4.0.1", "BINE-BINOMIAL_TREE-UTOFU-0-1", Choice("BINE-BINOMIAL_TREE-UTOFU-0-1")),
    ],
)
def test_names_of_libraries(tmp_path: Path, collective: str, library: str, name: str, expected: Choice) -> None:
    files = {"alloc.csv": ranks(4), f"0/4096_{name}_int32.csv": iterations(*[50000] * 5)}
    _, found = read(archive(tmp_path, files, metadata(("4", "1", collective, library))))
    blocks = collective in ("ALLTOALL", "GATHER", "SCATTER", "ALLGATHER")
    assert list(found) == [case_of(collective.lower(), expected, 4, 4096 if blocks else 16384)]


def test_ranks_and_hosts_are_counted_where_the_metadata_are_wrong(tmp_path: Path) -> None:
    files = {"alloc.csv": ranks(8, 4), "0/1024_ring_ompi_int32.csv": iterations(*[50000] * 5)}
    _, found = read(archive(tmp_path, files, metadata(("2", "1", "ALLGATHER", "OMPI,4.1.6"))))
    assert list(found) == [case_of("allgather", Choice("ring"), 8, 512, 4)]


def test_each_test_has_the_allocation_of_its_ranks(tmp_path: Path) -> None:
    files = {
        "alloc_2.csv": ranks(2),
        "alloc_8.csv": ranks(8, 4),
        "0/1024_ring_ompi_int32.csv": iterations(*[50000] * 5),
        "1/1024_ring_ompi_int32.csv": iterations(*[60000] * 5),
    }
    tests = (("2", "1", "REDUCE_SCATTER", "OMPI,4.1.6"), ("2", "4", "REDUCE_SCATTER", "OMPI,4.1.6"))
    found = read_file(archive(tmp_path, files, metadata(*tests)), MissingFacts())
    cases = [timing.case for _, timings in found for timing in timings]
    assert cases == [case_of("reduce_scatter", Choice("ring"), procs, 4096, ppn) for procs, ppn in ((2, 1), (8, 4))]


def test_a_host_may_have_its_place_behind_it(tmp_path: Path) -> None:
    """As on LUMI: the name, and cabinet, chassis and so on."""
    files = {
        "alloc.csv": "MPI_Rank,allocation\n0,nid1,x1c4\n1,nid2,x1c5\n",
        "0/64_bine_over_int32.csv": iterations(9000),
    }
    configuration, _ = read(archive(tmp_path, files, metadata(("2", "1", "BCAST", "CRAY_MPICH,8.1"))))
    assert dict(configuration.details)["hosts"] == "nid1*1,nid2*1"


def test_fugaku_has_no_warm_up_no_allocation_and_a_last_line(tmp_path: Path) -> None:
    files = {"0/1024_default-binomial_int32.csv": iterations(9000, 7000, 8000) + "Average runtime: 0.000008\n"}
    configuration, found = read(archive(tmp_path, files, metadata(("2x2x1", "1", "BCAST", "FJMPI,4.0.1"))))
    assert (configuration.maker, dict(configuration.details)["hosts"]) == ("Fujitsu MPI 4.0.1", "2x2x1, not counted")
    assert found[bcast("binomial", 4096)].seconds == pytest.approx(8e-6)
    assert found[bcast("binomial", 4096)].repetitions == 3


def reasons(tmp_path: Path, files: dict[str, str], *tests: tuple[str, str, str, str]) -> list[str]:
    _, found = read(archive(tmp_path, files, metadata(*tests)))
    return [one.error for one in found.values()]


@pytest.mark.parametrize(
    ("procs", "test", "file", "reason"),
    [
        (4, BCAST, ("1024_binomial_ompi", 0), "0 s: the call did nothing"),
        (8, ("8", "1", "ALLGATHER", "OMPI,4.1.6"), ("4_ring_ompi", 9000), "4 elements for 8 processes: no whole block"),
        (3, ("3", "1", "ALLGATHER", "OMPI,4.1.6"), ("3_neighbor_ompi", 9000), "neighbor_exchange needs an even P"),
        (
            6,
            ("6", "1", "ALLGATHER", "CRAY_MPICH,8.1"),
            ("6_recursive_doubling_mpich", 9000),
            "recursive_doubling needs P to be a power of two",
        ),
        (
            8,
            ("8", "1", "ALLREDUCE", "OMPI,4.1.6"),
            ("4_ring_ompi", 9000),
            "ring needs 8 elements, this message has 4: recursive_doubling ran",
        ),
        (256, ("256", "1", "BCAST", "OMPI,4.1.6"), ("8_bine_lat_over", 3500), "less than 8 messages one after another"),
    ],
)
def test_cells_that_cannot_be_are_marked(
    tmp_path: Path, procs: int, test: tuple[str, str, str, str], file: tuple[str, int], reason: str
) -> None:
    """The cell keeps its median, and the others of its archive are read."""
    name, time = file
    good = "bine_good_over"
    files = {
        "alloc.csv": ranks(procs),
        f"0/{name}_int32.csv": iterations(*[time] * 5),
        f"0/65536_{good}_int32.csv": iterations(*[90000] * 5),
    }
    _, found = read(archive(tmp_path, files, metadata(test)))
    (marked,) = [one for one in found.values() if one.case.algorithm != good]
    assert marked.error.startswith(reason)
    assert marked.median_seconds == pytest.approx(time * 1e-9)
    assert [one.ok for one in found.values() if one.case.algorithm == good] == [True]


@pytest.mark.parametrize("end", ["Average runtime: 0.000008\n", "Average ru"])
def test_the_last_line_on_fugaku_may_be_cut(tmp_path: Path, end: str) -> None:
    files = {"0/1024_default-binomial_int32.csv": iterations(9000, 7000) + end}
    _, found = read(archive(tmp_path, files, metadata(("2x2x1", "1", "BCAST", "FJMPI,4.0.1"))))
    assert [one.repetitions for one in found.values()] == [2]


ON_FUGAKU = ("2x2x1", "1", "BCAST", "FJMPI,4.0.1")
LINEAR = "0/1024_default-basic-linear_int32"


@pytest.mark.parametrize(
    ("files", "test", "expected"),
    [
        *((TIMES | {"0/64_binary_ompi_int32.csv": text}, BCAST, ["no iteration was written", "", "", ""])
          for text in ("", "highest\n")),
        (
            {f"{LINEAR}.csv": iterations(9000, 9000), f"{LINEAR}.err": "[invalid-value-enum]\n Value : basic-linear\n"},
            ON_FUGAKU,
            ["the library refused the name of the algorithm: its own decision ran"],
        ),
        (
            {f"{LINEAR}.csv": iterations(9000), f"{LINEAR}.err": "out of memory\n"},
            ON_FUGAKU,
            ["an error was printed beside the times"],
        ),
    ],
)  # fmt: skip
def test_what_went_wrong_in_a_run_is_marked(
    tmp_path: Path, files: dict[str, str], test: tuple[str, str, str, str], expected: list[str]
) -> None:
    assert reasons(tmp_path, files, test) == expected


COUNTS = (8, 512, 32768, 2097152)


def columns(collective: str, times: dict[str, tuple[int, ...]]) -> dict[str, str]:
    return {"alloc.csv": ranks(8)} | {
        f"0/{count}_{name}_int32.csv": iterations(*[time] * 5)
        for name, column in times.items()
        for count, time in zip(COUNTS, column, strict=True)
    }


DEFAULT = (9000, 12000, 99000, 2000000)
NEAR = (9050, 12100, 98800, 2010000)
OTHER = (9900, 15000, 55000, 900000)


@pytest.mark.parametrize(
    ("library", "times", "acted"),
    [
        ("mpich", {"default": DEFAULT, "recursive_doubling": NEAR, "rabenseifner": DEFAULT}, False),
        ("mpich", {"default": DEFAULT, "recursive_doubling": NEAR}, False),
        ("mpich", {"default": DEFAULT, "recursive_doubling": OTHER, "rabenseifner": NEAR}, True),
        ("mpich", {"default": DEFAULT, "recursive_doubling": OTHER}, True),
    ],
)
def test_a_force_that_did_not_act_is_told(
    tmp_path: Path, library: str, times: dict[str, tuple[int, ...]], acted: bool
) -> None:
    """On LUMI two of three runs were so; the default column stays, and so do other implementations."""
    columned = {f"{name}_{library}": column for name, column in times.items()} | {"bine_lat_over": NEAR}
    test = ("8", "1", "ALLREDUCE", "CRAY_MPICH,8.1.29")
    _, found = read(archive(tmp_path, columns("ALLREDUCE", columned), metadata(test)))
    forced = [one for one in found.values() if one.case.algorithm in ("recursive_doubling", "rabenseifner")]
    # Rabenseifner's algorithm does not run on 8 elements of 8 processes in Open MPI alone.
    assert {one.ok for one in forced} == {acted}
    assert all("the force did not act" in one.error for one in forced if not one.ok)
    assert all(one.ok for one in found.values() if one.case.algorithm in ("-", "bine_lat_over"))


def test_one_code_under_two_names_does_not_look_like_a_force_that_failed(tmp_path: Path) -> None:
    times = {"default_ompi": DEFAULT, "linear_ompi": NEAR, "linear_sync_ompi": DEFAULT, "pairwise_ompi": OTHER}
    assert set(reasons(tmp_path, columns("", times), ("8", "1", "ALLTOALL", "OMPI,4.1.5"))) == {""}


# As Open MPI 3 answered on a cloud: single runs, whose columns are equal but for noise.
EQUAL_COLUMNS = """# machine: cloud
# library: Open MPI 3.1.4
# timing: mean over processes
collective,algorithm,procs,ppn,bytes,us
"""


def test_equal_columns_of_single_runs(tmp_path: Path) -> None:
    noisy = {"default": (273, 280, 490, 3969), "1": (270, 280, 480, 3276), "3": (274, 278, 490, 3900),
             "4": (272, 283, 500, 3600), "5": (284, 280, 495, 4122)}  # fmt: skip
    rows = "".join(
        f"allreduce,{name},288,36,{size},{time}\n"
        for name, column in noisy.items()
        for size, time in zip((4096, 65536, 262144, 1048576), column, strict=True)
    )
    _, found = read(write(tmp_path, EQUAL_COLUMNS + rows))
    assert {one.error[:23] for one in found.values() if one.case.algorithm != "-"} == {"the force did not act: "}
    assert {one.case.algorithm for one in found.values()} == {
        *("-", "linear", "recursive_doubling", "ring", "segmented_ring")
    }


def test_an_id_that_the_version_does_not_have_is_marked(tmp_path: Path) -> None:
    rows = "allreduce,6,288,36,4096,200\nallreduce,3,288,36,4096,300\n"
    _, found = read(write(tmp_path, EQUAL_COLUMNS + rows))
    assert [one.error for one in found.values()] == [
        "Open MPI 3.1.4 has no algorithm 6 of allreduce; its last is 5",
        "",
    ]


@pytest.mark.parametrize(
    ("files", "table", "message"),
    [
        ({"alloc.csv": ranks(4)}, metadata(BCAST), "contains no results of PICO"),
        (TIMES, HEAD, r"no metadata of test 0 of run 2025_01_02___03_04_05"),
        (TIMES, "a,b\n", r"hexa_metadata.csv:1: expected PICO's metadata; it has no column timestamp"),
        (TIMES, metadata(("4", "1", "BCASTS", "OMPI,4.1.5")), "collective_type 'BCASTS'"),
        (
            TIMES | {"0/64_binary_ompi_int32.csv": "lowest\n1\n"},
            metadata(BCAST),
            r"64_binary.*csv:1: expected a column",
        ),
        (TIMES | {"0/64_binary_ompi_int32.csv": iterations(1, -4)}, metadata(BCAST), r"csv:3: expected a time"),
        (TIMES | {"0/64_binary_ompi_int32.csv": iterations(4e12)}, metadata(BCAST), r"csv:2: expected a time"),
        (TIMES | {"0/64_binary_ompi_int32.csv": "highest\n12\n1x"}, metadata(BCAST), r"csv:3: expected a time"),
        (
            TIMES | {"alloc.csv": ranks(4) + "6,host6\n"},
            metadata(BCAST),
            r"expected all ranks, starting at 0; found 5 ranks",
        ),
        (TIMES | {"alloc.csv": ranks(4) + "3,host6\n"}, metadata(BCAST), r"alloc.csv:6: expected a rank and its host"),
        (TIMES | {"alloc.csv": "rank\n"}, metadata(BCAST), r"alloc.csv:1: expected the columns MPI_Rank,allocation"),
        (TIMES | {"../../evil.csv": "1"}, metadata(BCAST), r"'../../evil.csv' leads out of the archive"),
        (TIMES | {"/etc/evil.csv": "1"}, metadata(BCAST), r"'/etc/evil.csv' leads out of the archive"),
    ],
)
def test_wrong_archives_store_nothing(tmp_path: Path, files: dict[str, str], table: str, message: str) -> None:
    refused(archive(tmp_path, files, table), message)


def refused(path: Path, message: str) -> None:
    with Store(path.parent / "store.sqlite") as store:
        with pytest.raises(UsageError, match=message) as told:
            import_file(path, store, MissingFacts())
        assert "\n" not in str(told.value)
        assert path.name in str(told.value) or "metadata" in str(told.value)
        assert not list(store.rows())


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.98])
def test_truncated_archives_store_nothing(tmp_path: Path, suffix: str, share: float) -> None:
    files = TIMES | {"0/8_binary_ompi_int32.csv": iterations(*range(9000, 12000))}
    path = archive(tmp_path, files, metadata(BCAST), suffix)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refused(path, "truncated or damaged archive")


def test_links_in_archives_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, TIMES, metadata(BCAST))
    with tarfile.open(path, "w:gz") as packed:
        link = tarfile.TarInfo(f"{RUN}/0/8_binary_ompi_int32.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    refused(path, "8_binary_ompi_int32.csv' leads out of the archive")


TABLE = """# machine: hexa
# library: Open MPI 4.1.5
# job: 17
# licence: CC0
collective,algorithm,procs,ppn,bytes,us,half_width,repetitions,mark
bcast,default,8,4,1024,10.5,0.5,100,
bcast,6,8,4,1024,11.5,,100,
bcast,chain,8,4,1024,20,,100,
bcast,my_own,8,4,1024,9,,100,
bcast,binary,8,4,1024,,,,crashed
latency,,2,1,8,1.5,,,
stream,,2,1,1048576,5000,,,
"""


def write(folder: Path, text: str, name: str = "times.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["times.csv", "times.csv.gz"])
def test_a_table_of_ones_own(tmp_path: Path, name: str) -> None:
    configuration, found = read(write(tmp_path, TABLE, name))
    assert (configuration.platform, configuration.maker) == ("hexa", "Open MPI 4.1.5")
    assert dict(configuration.details)["job"] == "17"
    rows = [
        (one.case.algorithm, one.case.experiment, one.case.procs, one.case.processes_per_node, one.case.message_bytes,
         one.seconds if one.ok else one.error, one.repetitions)
        for one in found.values()
    ]  # fmt: skip
    assert rows == [
        ("-", "builtin", 8, 4, 1024, pytest.approx(10.5e-6), 100),
        ("binomial", "collective", 8, 4, 1024, pytest.approx(11.5e-6), 100),
        ("chain", "collective", 8, 4, 1024, pytest.approx(20e-6), 100),
        ("my_own", "collective", 8, 4, 1024, pytest.approx(9e-6), 100),
        ("binary", "collective", 8, 4, 1024, "crashed", 1),
        ("-", "roundtrip", 2, 1, 8, pytest.approx(3e-6), 1),
        ("-", "saturation", 2, 1, 1048576, pytest.approx(5e-3), 1),
    ]
    assert next(iter(found.values())).half_width_seconds == pytest.approx(0.5e-6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",us,", ",minutes,", r"times.csv:5: unknown column 'minutes'"),
        (
            ",us,",
            ",",
            r"times.csv:5: expected each of collective, algorithm, procs, bytes and one of seconds, ms, us, ns",
        ),
        ("bcast,6,8,4,1024,11.5,,100,", "bcast,6,8,4,1024", r":7: expected 9 columns"),
        ("11.5", "11500000000", r":7: expected a time from 1 ns to 1 hour \(is the unit us\?\)"),
        ("11.5", "0.00005", r":7: expected a time from 1 ns to 1 hour"),
        ("11.5", "-1", r":7: expected numbers of at least 0"),
        ("11.5", "", r":7: expected a time in the column us, or a reason in the column mark,"),
        ("bcast,6,", "shout,6,", r":7: expected one of .*latency, stream, not 'shout"),
        ("bcast,6,", "bcast,default,", r":7: expected a case that no earlier row has"),
        ("# library: Open MPI 4.1.5", "#", r":7: an id needs a known library .* not ''; write above the table"),
        ("# machine: hexa", "#", "does not say where it was measured"),
    ],
)
def test_wrong_tables_store_nothing(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TABLE
    refused(write(tmp_path, TABLE.replace(old, new, 1)), message)


def test_a_misspelt_algorithm_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, rows = "# machine: a\n# library: b\n", "collective,algorithm,procs,bytes,us\n"
    rows += "bcast,binomail,8,64,5\nbcast,binomail,8,128,5\nbcast,binomial_over,8,64,5\nbcast,ours,8,64,5\n"
    read_file(write(tmp_path, head + rows, "a.csv"), MissingFacts())
    says = (
        f"collwise: warning: {tmp_path / 'a.csv'}: the catalogue has no bcast 'binomail', so its times belong to no "
        "choice; did you mean binomial? If it is another algorithm, write above the table: # outside: binomail\n"
    )
    assert capsys.readouterr().err == says
    read_file(write(tmp_path, f"{head}# outside: ours, binomail\n{rows}", "b.csv"), MissingFacts())
    assert not capsys.readouterr().err


def test_a_truncated_packed_table(tmp_path: Path) -> None:
    path = write(tmp_path, TABLE, "times.csv.gz")
    path.write_bytes(path.read_bytes()[:-20])
    refused(path, "not a complete gzip file of text")


NETGAUGE = """# size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)
# to get o: plot "./loggp.out" using 1:(($5-$3)/($2-1)-$3)
1 16 3.000000 9.000000 60.000000 1.500000 0.800000 0.700000 0.400000 0.000000 0.000000
1025 16 4.000000 12.000000 75.000000 1.500000 0.900000 0.700000 0.400000 0.000100 0.010000
"""


def test_netgauges_roundtrips(tmp_path: Path) -> None:
    configuration, found = read(write(tmp_path, NETGAUGE, "loggp.out"), MissingFacts("there"))
    assert configuration.maker == "netgauge loggp"
    rows = [
        (one.case.message_bytes, one.case.count, round(one.case.delay_seconds * 1e6), round(one.seconds * 1e6))
        for one in found.values()
    ]
    assert rows == [(1, 1, 0, 3), (1, 16, 0, 9), (1, 16, 3, 60), (1025, 1, 0, 4), (1025, 16, 0, 12), (1025, 16, 4, 75)]
    assert {one.case.experiment for one in found.values()} == {"prtt"}


def test_netgauges_rows_are_whole(tmp_path: Path) -> None:
    path = write(tmp_path, NETGAUGE + "2049 16 5.0 15.0 90.0\n", "loggp.out")
    with pytest.raises(UsageError, match=r"loggp.out:5: expected 11 columns"):
        read(path, MissingFacts("there"))


LOG = """Lmod has detected that a module was replaced
+ mpirun -np 8 ./osu_bcast -f
[1,0]<stdout>:# OSU MPI Broadcast Latency Test v5.8
[1,0]<stdout>:# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
[1,0]<stdout>:8                       3.00              2.00              4.00        1000
[1,0]<stdout>:

10:01:22 slurmstepd: some words
+ mpirun -np 16 ./osu_allreduce -c
# OSU MPI Allreduce Latency Test v7.3
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)   Validation
4                       5.00         Pass
8                       6.00         Fail
"""


def test_osu_in_a_jobs_log(tmp_path: Path) -> None:
    """With the launcher's marks, the commands, which say P, other words, and the column of the validation."""
    found = read_file(write(tmp_path, LOG, "job.out"), MissingFacts("there"))
    rows = [
        (one.case.collective, one.case.procs, one.case.message_bytes, one.seconds if one.ok else one.error)
        for _, timings in found
        for one in timings
    ]
    assert rows == [
        ("bcast", 8, 8, pytest.approx(4e-6)),
        ("allreduce", 16, 4, pytest.approx(5e-6)),
        ("allreduce", 16, 8, "the benchmark found wrong data"),
    ]


def test_a_forced_algorithm_and_facts_of_other_programs(tmp_path: Path) -> None:
    text = "# OSU MPI Broadcast Latency Test v5.8\n# Size       Avg Latency(us)\n8    3.00\n"
    missing = MissingFacts("there", 8, 1, "Open MPI 4.1.5", "6", (("job", "17"), ("licence", "MIT")))
    configuration, found = read(write(tmp_path, text, "osu.txt"), missing)
    assert configuration.maker == "Open MPI 4.1.5"
    assert dict(configuration.details) == {
        **{"job": "17", "licence": "MIT", "program": "OSU micro-benchmarks 5.8", "timing": "mean over processes"},
    }
    assert list(found) == [bcast("binomial", 8, 8)]
    wrong = MissingFacts("there", 8, 1, "Open MPI 4.1.5", "17")
    with pytest.raises(
        UsageError, match=r"--algorithm 17: Open MPI 4\.1\.5 has no algorithm 17 of bcast; its last is 9"
    ):
        read(write(tmp_path, text, "osu.txt"), wrong)


def test_runs_outside_their_window_do_not_count(tmp_path: Path) -> None:
    text = """#@nprocs=4
test nrep msize errorcode runtime_sec
MPI_Bcast 0 8 0 0.0002
MPI_Bcast 1 8 1 0.9
MPI_Bcast 0 64 1 0.9
"""
    _, found = read(write(tmp_path, text, "repro.txt"), MissingFacts("there"))
    assert [(one.seconds if one.ok else one.error, one.repetitions) for one in found.values()] == [
        (pytest.approx(0.0002), 1),
        ("no run began in its window", 1),
    ]


def test_the_command_says_what_it_marked(tmp_path: Path) -> None:
    """Marked cells are no failure of the command; a wrong archive is, in one line."""
    files = TIMES | {"0/64_binary_ompi_int32.csv": iterations(0, 0)}
    path = archive(tmp_path, files, metadata(BCAST))
    words = ("times", "import", str(path), "--store", "store.sqlite", "--about")
    done = called(*words, "licence=CC0", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.strip().endswith("1 cell marked: 0 s: the call did nothing")
    assert "builtin" in done.stdout
    wrong = called(*words, "licence", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "malformed fact 'licence'" in wrong.stderr
    path.write_bytes(path.read_bytes()[:-100])
    cut = called(*words, "licence=CC0", cwd=tmp_path)
    assert cut.returncode == 2
    assert cut.stderr.count("\n") == 1
    assert "truncated or damaged archive" in cut.stderr
