"""The catalogue names C functions that exist, and ids that other libraries can tell apart."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.algorithms.generate_registry import form_of
from collwise.algorithms.generate_wrappers import PARAMETERS, wrapper
from tests.algorithms.families import file_name
from tests.test_style import CLANG_FORMAT

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "algorithms"
CATALOGUE = tomllib.loads((FOLDER / "catalogue.toml").read_text(encoding="utf-8"))
ALGORITHMS = [(collective, entry) for collective, about in CATALOGUE.items() for entry in about["algorithm"]]
# Of Open MPI's component tuned: the collective's id in rules files, and what rules compare. gatherv and scatterv have
# ids, but no algorithms to choose from.
OPENMPI = {
    "allgather": (0, "times_procs"),
    "allgatherv": (1, "same"),
    "allreduce": (2, "same"),
    "alltoall": (3, "times_procs"),
    "alltoallv": (4, "none"),
    "barrier": (6, "none"),
    "bcast": (7, "same"),
    "exscan": (8, "times_procs"),
    "gather": (9, "times_procs"),
    "gatherv": (10, "times_procs"),
    "reduce": (11, "same"),
    "reduce_scatter": (12, "same"),
    "reduce_scatter_block": (13, "times_procs"),
    "scan": (14, "times_procs"),
    "scatter": (15, "times_procs"),
    "scatterv": (16, "times_procs"),
}


def test_functions_are_defined_in_the_files_of_their_names_or_families() -> None:
    for collective, entry in ALGORITHMS:
        shares = collective == "reduce_scatter_block" and "guideline" not in entry  # one function serves both
        folder = "reduce_scatter" if shares else collective
        source = (FOLDER / folder / file_name(entry["name"])).read_text(encoding="utf-8")
        assert re.search(rf"^void {entry['function']}\(", source, re.MULTILINE), entry["function"]


def test_names_say_which_algorithms_are_by_node_and_which_are_mock_ups() -> None:
    for _, entry in ALGORITHMS:
        name = entry["name"]
        assert entry.get("by_node", False) == name.startswith(("hierarchical", "tasks_", "multi_leader_")), name
        assert entry.get("real_mpi_only", False) == (name == "tasks_library"), name
        assert ("guideline" in entry) == name.startswith("gl"), name


def test_no_version_of_openmpi_has_taken_an_algorithm_out() -> None:
    versions = sorted({version for _, entry in ALGORITHMS for version in entry["openmpi"]})
    assert versions == ["4.0", "4.1", "5.0", "6.0"]
    for _, entry in ALGORITHMS:
        assert sorted(entry["openmpi"]) == versions[len(versions) - len(entry["openmpi"]) :], entry["name"]


def test_openmpi_looks_collectives_up_as_it_does() -> None:
    found = {name: (about["openmpi_collective"], about["openmpi_message"]) for name, about in CATALOGUE.items()}
    assert found == OPENMPI


@pytest.mark.parametrize(
    "name", ["reduce_scatter_block", "MPI_Reduce_scatter_block", "Reduce_scatter_block", "MPI_REDUCE_SCATTER_BLOCK"]
)
def test_collectives_have_mpis_names_too(name: str) -> None:
    assert Catalogue.load().our_name(name) == "reduce_scatter_block"
    assert Catalogue.load().our_name("MPI_Put") == "MPI_Put"


def test_requirements_on_the_number_of_processes() -> None:
    fields = ("allgather", "x", "X", "f", "ring", ())
    even = Algorithm(*fields, requires=("even", "commutative"), selectable=True, openmpi={}, reference="")
    power = Algorithm(*fields, requires=("power_of_two",), selectable=True, openmpi={}, reference="")
    any_count = Algorithm(*fields, requires=("commutative",), selectable=True, openmpi={}, reference="")
    assert [p for p in range(1, 18) if not power.objection(p)] == [1, 2, 4, 8, 16]
    assert [p for p in range(1, 7) if not even.objection(p)] == [2, 4, 6]
    assert even.objection(3) == "needs an even P"
    assert not any(any_count.objection(p) for p in range(1, 9))
    assert (even.bound_to_procs, power.bound_to_procs, any_count.bound_to_procs) == (True, True, False)


def test_first_parts_are_no_segments() -> None:
    catalogue = Catalogue.load()
    chain, sync = catalogue.algorithm("bcast", "chain"), catalogue.algorithm("gather", "linear_sync")
    assert (chain.part_parameter, chain.pipelined) == ("segment_bytes", True)
    assert (sync.part_parameter, sync.pipelined) == ("first_bytes", False)


def test_registry_holds_every_algorithm_and_is_closed(tmp_path: Path) -> None:
    registry = tmp_path / "registry.c"
    subprocess.run(
        [sys.executable, FOLDER / "generate_registry.py", FOLDER / "catalogue.toml", registry],
        check=True,
        timeout=900,
    )
    lines = [line.strip() for line in registry.read_text().splitlines() if line.strip().startswith("{")]
    assert len(lines) == len(ALGORITHMS) + 1
    assert lines[-1] == "{.collective = NULL},"
    for line, (collective, entry) in zip(lines, ALGORITHMS, strict=False):
        assert f'.collective = "{collective}", .name = "{entry["name"]}"' in line
        assert f".{form_of(collective, entry)} = {entry['function']}" in line


def sides(about: dict) -> set[str]:
    return {"send", "receive"} & set(about["arguments"])


@pytest.mark.parametrize("collective", CATALOGUE)
def test_signatures_agree_with_themselves(collective: str) -> None:
    about = CATALOGUE[collective]
    arguments = about["arguments"]
    assert arguments[-1] == "comm"
    assert len(set(arguments)) == len(arguments)
    assert set(arguments) <= set(PARAMETERS)
    for key in {"root_only", "in_place"} & set(about):
        assert about[key] in sides(about)
    assert "root_only" not in about or "root" in arguments
    needed = {
        "receive": {"receive_count"},
        "block": {"send_count", "receive_count", "root"},
        "sum": {"receive_counts"},
        "mean": {"receive_counts"},
        "unknown": set(),
    }
    assert needed[about["size_from"]] <= set(arguments)


_EXSCAN = """\
static __attribute__((noinline)) int decided_exscan(const void *send, void *receive, int receive_count,
                                                    MPI_Datatype receive_type, MPI_Op op, MPI_Comm comm) {
    if (interpose_forwards_sized(COLLWISE_EXSCAN, receive_count, receive_type, comm)) {
        return PMPI_Exscan(send, receive, receive_count, receive_type, op, comm);
    }
    collwise_call call = {
        .send = send,
        .receive = receive,
        .receive_count = receive_count,
        .receive_type = receive_type,
        .op = op,
        .comm = comm,
    };
    interpose_pending pending;
    int status;
    if (!interpose_run(COLLWISE_EXSCAN, &call, &pending, &status)) {
        status = PMPI_Exscan(send, receive, receive_count, receive_type, op, comm);
    }
    interpose_finish(&pending);
    return status;
}

int MPI_Exscan(const void *send, void *receive, int receive_count, MPI_Datatype receive_type, MPI_Op op,
               MPI_Comm comm) {
    if (!interpose_watches(COLLWISE_EXSCAN) || interpose_is_short(COLLWISE_EXSCAN, receive_count, receive_type, comm)) {
        return PMPI_Exscan(send, receive, receive_count, receive_type, op, comm);
    }
    interpose_state *state = interpose_known_state(comm);
    interpose_repeatable *last = state == NULL ? NULL : &state->last[COLLWISE_EXSCAN];
    if (last != NULL && last->algorithm != NULL && last->call.receive_count == receive_count &&
        last->call.receive_type == receive_type && last->call.op == op && interpose_is_same(last->call.send, send) &&
        interpose_is_same(last->call.receive, receive)) {
        last->call.send = send;
        last->call.receive = receive;
        return interpose_repeat(last, state);
    }
    return decided_exscan(send, receive, receive_count, receive_type, op, comm);
}
"""


def test_a_wrapper_has_the_collectives_signature() -> None:
    assert wrapper("exscan", CATALOGUE["exscan"]) == _EXSCAN


def test_counted_functions_cover_every_collective(tmp_path: Path) -> None:
    tables, replaced, counted, fortran = (
        tmp_path / f"{name}.c" for name in ("tables", "wrappers", "counted", "fortran")
    )
    arguments = [FOLDER / "catalogue.toml", tables, replaced, counted, fortran]
    subprocess.run([sys.executable, "-I", "-S", FOLDER / "generate_wrappers.py", *arguments], check=True, timeout=900)
    source, names = counted.read_text(), [*CATALOGUE, "alltoallw"]
    functions = set(re.findall(r"^int (MPI_\w+)\(", source, re.MULTILINE))
    assert {f"MPI_I{name}" for name in names} | {f"MPI_{name.capitalize()}_init" for name in names} <= functions
    assert {f"MPI_{name.capitalize()}_c" for name in CATALOGUE if name != "barrier"} <= functions
    titles = re.findall(r'^    \{"(\w+)", (?:NULL|".+")\},$', tables.read_text(), re.MULTILINE)
    assert titles[: len(CATALOGUE)] == list(CATALOGUE)
    # Each function counts under its own title.
    for function, number in re.findall(r"^int MPI_(\w+)\([^{]*\{[^}]*?interpose_begin\((\d+),", source, re.MULTILINE):
        assert titles[int(number)] == function.lower()
    assert set(re.findall(r"^void mpi_(\w+)_\(", fortran.read_text(), re.MULTILINE)) >= set(CATALOGUE)


def test_wrappers_cover_every_collective_and_are_formatted(tmp_path: Path) -> None:
    tables, written = tmp_path / "tables.c", tmp_path / "wrappers.c"
    arguments = [FOLDER / "catalogue.toml", tables, written, tmp_path / "counted.c", tmp_path / "fortran.c"]
    # Without packages: a cluster's Python has none.
    subprocess.run([sys.executable, "-I", "-S", FOLDER / "generate_wrappers.py", *arguments], check=True, timeout=900)
    functions = [f"MPI_{collective.capitalize()}" for collective in CATALOGUE]
    source = written.read_text()
    assert re.findall(r"^int (MPI_\w+)\(", source, re.MULTILINE) == functions
    assert re.findall(r'\.function = "(MPI_\w+)"', tables.read_text()) == functions
    assert source.startswith("/* Generated from catalogue.toml by generate_wrappers.py. */\n")
    style = f"--style=file:{ROOT / '.clang-format'}"
    command = [CLANG_FORMAT, "--dry-run", "-Werror", style, tables, written]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_reference_is_in_the_literature() -> None:
    page = (Path(__file__).parents[2] / "docs/adding.md").read_text(encoding="utf-8")
    literature = page[page.index("## Literature") :]
    listed = set(re.findall(r"^- ([^:]* \d{4}):", literature, re.MULTILINE))
    named = {
        match[0].strip()
        for collective in Catalogue.load().collectives.values()
        for entry in collective.algorithms.values()
        for part in entry.reference.split(";")
        if (match := re.match(r"[^(]*?\b(?:19|20)\d\d\b", part))
    }
    assert listed == named
