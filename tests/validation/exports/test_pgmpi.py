"""Profiles of PGMPITuneLib: the paper's own one, round trips, and files that are damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.common.errors import UsageError
from collwise.validation.exports.pgmpi import Profile, Range, parse_profile, profile_text

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
def profiles(draw: st.DrawFn) -> Profile:
    ids = draw(st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True))
    bounds = sorted(draw(st.sets(st.integers(0, 2**40), max_size=12)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    ranges = tuple(Range(low, high, draw(st.sampled_from(ids))) for low, high in pairs)
    return Profile("MPI_Bcast", draw(st.integers(1, 10**6)), {one: f"bcast_as_{one}" for one in ids}, ranges)


@given(profiles())
def test_what_is_written_reads_back(profile: Profile) -> None:
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
        (LISTING.replace("64 64 2", "30 64 2"), "not ascending"),
        (LISTING.replace("64 64 2", "64 64 x"), "p.prf:11: expected three whole numbers"),
    ],
)
def test_wrong_profiles_are_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_profile(text, "p.prf")
    assert said in str(caught.value)
