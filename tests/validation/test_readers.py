"""Whatever a file holds, its reader takes it or says in one line what is wrong: never a traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from collwise.common.errors import CollwiseError
from collwise.common.project import Project
from collwise.models.parameters import FittedParameters, read_thresholds
from collwise.platforms import load, load_description, write_description
from collwise.platforms.hosts import placed
from collwise.simulator.execution.cluster import read_host_file
from collwise.simulator.execution.interposed import LibraryOptions
from collwise.simulator.execution.profiles import read_profile
from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.validation.calibration.calibration_points import read_points
from collwise.validation.fitting.models_by_name import load_models
from collwise.validation.libraries.openmpi_rules import parse_rules
from collwise.validation.libraries.pgmpi import parse_profile
from collwise.validation.measurement.imports import import_file
from collwise.validation.measurement.imports.reading import MissingFacts
from collwise.validation.select.decisions import DecisionTable, decisions_document, decisions_from
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.times import State, Times
from tests.models.parameter_examples import EXAMPLES, fitted
from tests.run_reports import OF_AN_APPLICATION

PRF = """# pgtune profile
MPI_Allgather
16 # nb. of processes
1 # nb. of mock-up impl.
1 allgather_as_gather_bcast
1 # nb. of ranges
0 1024 1
"""
OSU = """# OSU MPI Broadcast Latency Test v5.9
# Size       Avg Latency(us)
1                       1.50
8                       1.60
"""
POINTS = """kind,first,second,pairs,within_node,message_bytes,count,repetition,seconds
ping_pong,0,1,1,0,8,1,0,1e-06
"""
XML = """<platform version="4.1">
  <config><prop id="smpi/async-small-thresh" value="0"/></config>
  <cluster id="c" prefix="node-" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="25us"/>
</platform>
"""
RULES = "1 # collectives\n7 # bcast\n1 # counts\n4 # processes\n2 # sizes\n0 6 0 0\n65536 5 0 8192\n"


def _decisions() -> str:
    grid = Grid("bcast", (Choice("binomial"),), (4, 8), (8, 64))
    seconds = np.array([[[1e-6, 2e-6], [3e-6, np.nan]]])
    times = Times.of_seconds(grid, seconds, "gros", "simulated", "hand", State.FAILED)
    table = DecisionTable("bcast", "gros", 1, "simulated", "hand", {4: ((8, Choice("binomial")),)}, times)
    return json.dumps(decisions_document([table]))


def _store(path: Path) -> None:
    with Store(path) as store:
        for configuration in store.configurations():
            store.timings_of(configuration.key)
        list(store.rows(collective="bcast"))


def _stored(folder: Path) -> bytes:
    path = folder / "whole.sqlite"
    with Store(path) as store:
        made = Configuration("measured", "gros", "Open MPI", (("digest", "1"),))
        store.add(made, [Timing(Case("bcast", "chain", 4, size), 1e-6, samples=(1e-6, 2e-6)) for size in (8, 16)])
    return path.read_bytes()


Reader = Callable[[Path], object]
TEXTS: dict[str, tuple[str, Reader]] = {
    "table": (
        "# rules\nbcast 2 1 0 default\nbcast 2 1 8192 k_chain segment_bytes=8192 chains=3\n",
        lambda path: LibraryOptions(path).check(),
    ),
    "report": (OF_AN_APPLICATION, read_profile),
    "decisions": (_decisions(), decisions_from),
    "prf": (PRF, lambda path: parse_profile(path.read_text(errors="replace"))),
    "rules": (RULES, lambda path: parse_rules(path.read_text(errors="replace"))),
    "platform": (write_description(load_description("gros")), load),
    "hosts": ("node1 slots=4\nnode2:3 # why\nnode3\n", read_host_file),
    "points": (POINTS, read_points),
    "xml": (XML, load),
    "placement": ("gros-1.nancy.grid5000.fr\n2  # why\n3\n", lambda path: placed(load("gros"), str(path))),
    "thresholds": ("[thresholds]\nscatter_leap_bytes = 65536\ngather_irregular_from_bytes = 4096\n", read_thresholds),
    "project": ('platform = "gros"\n', lambda path: Project.read(path.parent)),
}
FILES = {"platform": "file.toml", "xml": "file.xml", "project": "collwise.toml"}
TOKENS = ["0", "-1", "1e999", "nan", "99999999999999999999", "[", "]", "{", "}", '"', "=", "#", "\n", "\0", "é", "true"]
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1), st.integers(0, 12), st.one_of(st.sampled_from(TOKENS).map(str.encode), st.binary(max_size=6))
    ),
    min_size=1,
    max_size=4,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def damaged(whole: bytes, edits: list[tuple[float, int, bytes]], end: float) -> bytes:
    for place, length, new in edits:
        at = int(place * len(whole))
        whole = whole[:at] + new + whole[at + length :]
    return whole[: int(end * len(whole)) + 1]


def takes_or_refuses(reader: Reader, path: Path) -> None:
    said = "nothing"
    try:
        reader(path)
    except CollwiseError as problem:
        said = str(problem).strip()
    assert said
    assert "\n" not in said or path.suffix in (".toml", ".xml")  # a platform has a line for each problem


# COLLWISE_EXAMPLES asks for more of them than the suite has time for.
quick = settings(
    max_examples=int(os.environ.get("COLLWISE_EXAMPLES", "40")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_texts(name: str, tmp_path: Path) -> None:
    text, reader = TEXTS[name]
    path = tmp_path / FILES.get(name, "file")
    path.write_text(text, encoding="utf-8")
    reader(path)

    @quick
    @given(EDITS, st.one_of(st.just(1.0), st.floats(0, 1)))
    def check(edits: list[tuple[float, int, bytes]], end: float) -> None:
        path.write_bytes(damaged(text.encode(), edits, end))
        takes_or_refuses(reader, path)

    check()


@pytest.mark.parametrize("name", ["report", "decisions"])
def test_other_json(name: str, tmp_path: Path) -> None:
    """Anything in place of any value of a document."""
    text, reader = TEXTS[name]
    path = tmp_path / "file"

    @quick
    @given(st.data(), VALUES)
    def check(data: st.DataObject, value: Any) -> None:
        document = {"whole": json.loads(text)}
        inside: Any = document
        while True:
            keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(inside[key], dict | list) or not inside[key] or data.draw(st.integers(0, 3)) == 0:
                break
            inside = inside[key]
        inside[key] = value
        path.write_text(json.dumps(document["whole"]), encoding="utf-8")
        takes_or_refuses(reader, path)

    check()


@pytest.mark.parametrize("example", ["hockney", "lmo of pairs", "plogp"])
def test_damaged_parameters(example: str, tmp_path: Path) -> None:
    assert example in EXAMPLES
    path = tmp_path / "file"
    made: FittedParameters = fitted(example)
    made.save(path)
    whole = path.read_bytes()
    load_models(path)

    @quick
    @given(EDITS, st.one_of(st.just(1.0), st.floats(0, 1)))
    def check(edits: list[tuple[float, int, bytes]], end: float) -> None:
        path.write_bytes(damaged(whole, edits, end))
        takes_or_refuses(load_models, path)

    check()


def test_damaged_stores(tmp_path: Path) -> None:
    whole = _stored(tmp_path)
    path = tmp_path / "store.sqlite"
    used = [at for at, byte in enumerate(whole) if byte]

    @quick
    @given(st.lists(st.tuples(st.sampled_from(used), st.integers(0, 255)), min_size=1, max_size=4), st.booleans())
    def check(changes: list[tuple[int, int]], is_cut: bool) -> None:
        content = bytearray(whole)
        for at, byte in changes:
            content[at] = byte
        path.write_bytes(content[: changes[0][0] + 1] if is_cut else content)
        takes_or_refuses(_store, path)

    check()


def test_damaged_output_of_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "file"
    missing = MissingFacts("cluster", 4)
    with Store(tmp_path / "store.sqlite") as store:
        path.write_text(OSU)
        import_file(path, store, missing)

        @quick
        @given(EDITS, st.one_of(st.just(1.0), st.floats(0, 1)))
        def check(edits: list[tuple[float, int, bytes]], end: float) -> None:
            path.write_bytes(damaged(OSU.encode(), edits, end))
            takes_or_refuses(lambda file: import_file(file, store, missing), path)

        check()
