"""Profiles of PGMPITuneLib: the paper's own one, round trips, and files that are damaged."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Catalogue
from collwise.algorithms.catalogue_check import LIBRARIES_PATH
from collwise.common.errors import UsageError
from collwise.studies.cli.main import main
from collwise.validation.libraries.formats import exported
from collwise.validation.libraries.pgmpi import PgmpiProfile, Range, parse_profile, profile_text
from collwise.validation.select.consumers import algorithms_for
from collwise.validation.select.decisions import DecisionTable, decisions_document
from collwise.validation.times.choice import Choice

# Hunold & Carpen-Amarie 2018, listing 1.
LISTING = """# pgtune profile
MPI_Scatter
1024 # nb. of processes
2 # nb. of mock-up impl.
2 scatter_as_bcast
3 scatter_as_scatterv
8 # nb. of ranges
1 1 2 # byte_range_start byte_range_end alg_id
8 8 2
32 32 2
64 64 2
100 100 2
512 512 2
1024 1024 2
10000 10000 3
"""


def test_the_papers_profile_reads_and_writes_back() -> None:
    profile = parse_profile(LISTING)
    assert (profile.function, profile.procs) == ("MPI_Scatter", 1024)
    assert profile.mockups == {2: "scatter_as_bcast", 3: "scatter_as_scatterv"}
    found = {size: profile.lookup(size) for size in (1, 2, 100, 10000, 10001)}
    assert found == {1: "scatter_as_bcast", 2: None, 100: "scatter_as_bcast", 10000: "scatter_as_scatterv", 10001: None}
    assert profile_text(profile) == LISTING


@st.composite
def profiles(draw: st.DrawFn) -> PgmpiProfile:
    ids = draw(st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True))
    bounds = sorted(draw(st.sets(st.integers(0, 2**40), max_size=12)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    ranges = tuple(Range(low, high, draw(st.sampled_from(ids))) for low, high in pairs)
    return PgmpiProfile("MPI_Bcast", draw(st.integers(1, 10**6)), {one: f"bcast_as_{one}" for one in ids}, ranges)


@given(profiles())
def test_what_is_written_reads_back(profile: PgmpiProfile) -> None:
    assert parse_profile(profile_text(profile)) == profile


@given(st.data())
def test_a_damaged_profile_is_an_error_that_names_the_line_or_another_profile(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(LISTING)))
    end = data.draw(st.integers(start, len(LISTING)))
    text = LISTING[:start] + data.draw(st.text(max_size=5)) + LISTING[end:]
    problem = ""
    try:
        parse_profile(text, "p.prf")
    except UsageError as caught:
        problem = str(caught)
    assert problem == "" or problem.startswith("p.prf")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "p.prf:1: expected the name of an MPI function, not 'the end'"),
        ("Scatter\n4\n", "p.prf:1: expected the name of an MPI function, not 'Scatter'"),
        ("MPI_Scatter\n0\n", "p.prf:2: expected the number of processes"),
        (LISTING.replace("8 # nb", "9 # nb"), "p.prf:16: expected the start and the end"),
        (LISTING.replace("8 # nb", "7 # nb"), "p.prf:15: expected the end"),
        (LISTING.replace("10000 10000 3", "10000 10000 4"), "mock-up 4"),
        (LISTING.replace("64 64 2", "30 64 2"), "range 30 64: ranges must ascend"),
        (LISTING.replace("64 64 2", "64 64 x"), "p.prf:11: expected three whole numbers"),
    ],
)
def test_wrong_profiles_are_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_profile(text, "p.prf")
    assert said in str(caught.value)


BCAST_TO_ALL, IRREGULAR, OTHER = Choice("gl21_bcast"), Choice("gl22_scatterv"), Choice("binomial")
KIB = 1024
GATHER = DecisionTable("gather", "bed", 1, "simulated", "test", {8: ((0, Choice("gl12_gatherv")),)})
SCATTER = DecisionTable(
    "scatter",
    "bed",
    1,
    "simulated",
    "test",
    {
        8: ((0, IRREGULAR), (64, BCAST_TO_ALL), (KIB, IRREGULAR), (8 * KIB, OTHER)),
        16: ((32, BCAST_TO_ALL),),
    },
)


def test_a_profile_ends_with_the_largest_size_of_a_c_integer() -> None:
    made = parse_profile(exported([SCATTER], "prf", procs=17).text)
    assert (made.function, made.procs) == ("MPI_Scatter", 17)
    assert [made.lookup(size) for size in (2**31 - 1, 2**31)] == ["scatter_as_bcast", None]


@pytest.mark.parametrize(
    ("tables", "procs", "said"),
    [
        ([SCATTER], None, "--procs P"),
        ([SCATTER], 4, "starts at P = 8"),
        ([SCATTER, GATHER], 8, "scatter, gather; export each"),
        ([replace(SCATTER, rules={8: ((0, OTHER),)})], 8, "make them with 'collwise select --for pgmpi'"),
        (
            [replace(SCATTER, rules={2: ((0, OTHER),), 4: ((0, IRREGULAR),)})],
            3,
            "no mock-up is chosen",
        ),
    ],
)
def test_what_no_profile_can_say_is_an_error(tables: list[DecisionTable], procs: int | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        exported(tables, "prf", procs=procs)


def test_profiles_are_written_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.json").write_text(json.dumps(decisions_document([SCATTER])))
    file = tmp_path / "scatter.prf"
    with pytest.raises(SystemExit) as ended:
        main(["export", str(tmp_path / "d.json"), "--format", "prf", "--procs", "8", "-o", str(file)])
    assert not ended.value.code
    assert "PGMPI_PARAMS=--ppath=" in capsys.readouterr().out
    assert parse_profile(file.read_text()).procs == 8


def test_every_mock_up_of_pgmpitunelib_is_one_of_the_catalogue() -> None:
    known = tomllib.loads(LIBRARIES_PATH.read_text(encoding="utf-8"))["pgmpi"]
    ours = {
        name: {one.pgmpi for one in entry.algorithms.values() if one.pgmpi}
        for name, entry in Catalogue.load().collectives.items()
    }
    assert {name: found for name, found in ours.items() if found} == {name: set(names) for name, names in known.items()}
    assert all(bool(one.pgmpi) == bool(one.guideline) for one in Catalogue.load().algorithms())
    assert algorithms_for("scatter", "pgmpi") == ("gl21_bcast", "gl22_scatterv")
