"""What keeps the C readable: no file needs one that needs it in turn, ten prefixes do, and builds differ by files.

The first two are seen in the symbols of the object files.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from collwise.common.folders import builds_folder
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.schedule.library import load_library
from tests.needs import need

ROOT = Path(__file__).resolve().parents[1]
FILES = ("libcollwise.so", "verify", "benchmark", "experiments")
LIBRARIES = ("openmpi", "mpich", "smpi", "schedule")
TARGETS = {
    "collwise_interpose": ("collwise_interpose", "collwise_wrappers", "collwise_shared", "collwise_topology"),
    **{name: (name,) for name in ("collwise_measuring", "verify", "benchmark", "experiments")},
}
"""The targets whose files are compiled for each program or library."""
DEFINED, COMMON_NAMES = "TDBRC", {"malloc", "calloc", "realloc", "free", "dlopen"}
PREFIXES = {
    *("application", "collwise", "cw", "decision", "interpose"),
    *("play", "program", "recording", "schedule", "verify"),
}
MPIS_OWN = ("mpi", "pmpi", "mpix", "ompi", "ompix")
"""The beginnings of names that libcollwise has because MPI has them, also in Fortran."""

CONDITION = re.compile(
    r"^[ ]*#[ ]*(?:if|ifdef|ifndef|elif)\b(?![ ]+(?:COLLWISE_(?:\w+_)?H|_GNU_SOURCE)$)", re.MULTILINE
)
"""A condition of the preprocessor that is no guard of a header."""
CONDITIONAL = {
    "algorithms/generate_wrappers.in",  # which persistent collectives a version of MPI has
    "algorithms/interpose/mpich/fortran.c",
    "simulator/programs/verify/board.c",
    "simulator/schedule/memory.c",  # an allocator's function
    "simulator/schedule/models.c",  # a processor's instructions
}


def symbols_of(objects: Mapping[str, Path]) -> Iterator[tuple[str, str, str]]:
    """The file, the kind and the name of each symbol, as nm says them."""
    listed = subprocess.run(["nm", "-A", *objects.values()], capture_output=True, text=True, check=True).stdout
    name_of = {str(path): name for name, path in objects.items()}
    for line in listed.splitlines():
        path, _, rest = line.partition(":")
        *_, kind, symbol = rest.split()
        yield name_of[path], kind, symbol


def uses_of(objects: Mapping[str, Path]) -> dict[str, set[str]]:
    """The other files whose functions and data each file uses."""
    home: dict[str, str] = {}
    wanted: list[tuple[str, str]] = []
    for name, kind, symbol in symbols_of(objects):
        if kind in DEFINED and symbol not in COMMON_NAMES:
            home[symbol] = name
        elif kind == "U":
            wanted.append((name, symbol))
    found: dict[str, set[str]] = {name: set() for name in objects}
    for name, symbol in wanted:
        if home.get(symbol, name) != name:
            found[name].add(home[symbol])
    return found


def circles(uses: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """The groups of several files of which each needs all others, directly or not."""
    names = list(uses)
    place = {name: i for i, name in enumerate(names)}
    pairs = [(place[one], place[other]) for one, others in uses.items() for other in others]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    graph = csr_array((np.ones(len(pairs)), (rows, columns)), shape=(len(names), len(names)))
    _, group_of = connected_components(graph, connection="strong")
    groups = [{names[i] for i in np.flatnonzero(group_of == group)} for group in np.unique(group_of)]
    return [group for group in groups if len(group) > 1]


def objects_of(target: Path) -> dict[str, Path]:
    """The object files of a target by source; those of sources that are no longer there do not count."""
    found = {str(path.relative_to(target))[: -len(".o")]: path for path in target.rglob("*.o")}
    folders = (ROOT, target.parents[1])
    return {name: path for name, path in found.items() if any((folder / name).exists() for folder in folders)}


def built(library: str) -> dict[str, dict[str, Path]]:
    """The object files of each program and library of a build, by source."""
    if library == "schedule":
        load_library()
        build, targets = builds_folder() / "schedule", {"schedule": ("schedule",)}
    else:
        need(library)
        installation = find_installation(library)
        for file in FILES:
            installation.program(file)
        build, targets = installation.build_directory, TARGETS
    found: dict[str, dict[str, Path]] = {file: {} for file in targets}
    for file, parts in targets.items():
        for part in parts:
            found[file] |= objects_of(build / "CMakeFiles" / f"{part}.dir")
    assert all(len(objects) > 1 for objects in found.values())
    return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_file_needs_one_that_needs_it(library: str) -> None:
    found = {target: circles(uses_of(objects)) for target, objects in built(library).items()}
    assert {target: groups for target, groups in found.items() if groups} == {}


@pytest.mark.parametrize("library", LIBRARIES)
def test_ten_prefixes_and_no_static_with_the_name_of_a_global(library: str) -> None:
    for objects in built(library).values():
        symbols = [one for one in symbols_of(objects) if one[2].isidentifier() and not one[2].startswith("_")]
        own = {name for _, kind, name in symbols if kind in DEFINED} - COMMON_NAMES - {"main"}
        assert {name for name in own if name.lower().partition("_")[0] not in {*PREFIXES, *MPIS_OWN}} == set()
        assert {name for _, kind, name in symbols if kind in DEFINED.lower()} & own == set()


def test_a_circle_is_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a", "d"]}) == [{"b", "c"}]


def test_builds_differ_by_their_files() -> None:
    sources = [
        path
        for folder in ("algorithms", "simulator", "validation")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".c", ".h", ".in"} and CONDITION.search(path.read_text(encoding="utf-8"))
    ]
    assert {str(path.relative_to(ROOT)) for path in sources} == CONDITIONAL


def test_only_functions_of_mpi_are_wrapped() -> None:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    (listed,) = re.findall(r"foreach\(function ([^)]*)\)[^)]*--wrap=\${function}\)", text)
    assert text.count("--wrap") == 1
    assert [name for name in listed.split() if not name.startswith("MPI_")] == []
