"""Repairs: ranges, tables for libcollwise and profiles, and whole checks of a library whose times are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError, warn
from collwise.simulator.timing import Case
from collwise.studies.present.guidelines import new_rows
from collwise.validation.guidelines.checks import (
    GUIDELINES,
    MONOTONY,
    PATTERN,
    REDUCE_LOCAL,
    SPLIT,
    Call,
    Launches,
    RankTest,
    Share,
    check,
)
from collwise.validation.guidelines.library import Library
from collwise.validation.guidelines.workflow import (
    Plan,
    RepairedRange,
    profiles,
    ranges,
    ranges_of,
    repairs,
    rules_of,
    rules_text,
    run,
)
from collwise.validation.libraries.pgmpi import PgmpiProfile, Range, parse_profile, profile_text
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import BUILTIN
from tests.validation.libraries.lookups import collwise_lookup

SIZES = (8, 16, 32, 64)

# PGMPITuneLib's names of its mock-ups, as its sources have them, in the order of the guidelines.
PGMPI_NAMES = """
allgather_as_gather_bcast allgather_as_alltoall allgather_as_allreduce allgather_as_allgatherv
allreduce_as_reduce_bcast allreduce_as_reducescatterblock_allgather allreduce_as_reducescatter_allgatherv
alltoall_as_alltoallv bcast_as_allgatherv bcast_as_scatter_allgather gather_as_allgather gather_as_gatherv
gather_as_reduce reduce_as_allreduce reduce_as_reducescatterblock_gather reduce_as_reducescatter_gatherv
reducescatterblock_as_reduce_scatter reducescatterblock_as_reducescatter reducescatterblock_as_allreduce
scan_as_exscan_reducelocal scatter_as_bcast scatter_as_scatterv
"""


def algorithm_by(rules: str, *call: str | int) -> str:
    """What libcollwise runs for a call."""
    (name,) = collwise_lookup(rules, *call)  # type: ignore[arg-type]
    return name


def test_guidelines_are_those_of_the_catalogue() -> None:
    assert list(GUIDELINES) == [f"GL{number}" for number in range(1, 23)]
    for one in GUIDELINES.values():
        parts = tuple(part.collective for part in one.parts if part.collective != REDUCE_LOCAL)
        assert tuple(name for name in one.mockup.calls if name != REDUCE_LOCAL) == parts
        assert one.mockup.collective == one.collective
    assert [one.profile_name for one in GUIDELINES.values()] == PGMPI_NAMES.split()


@given(st.dictionaries(st.sampled_from(SIZES), st.sampled_from(["GL21", "GL22"]), min_size=1))
def test_tables_and_profiles_replace_the_violated_sizes_only(chosen: Mapping[int, str]) -> None:
    own = {Call("scatter", procs, size): Launches((10.0,)) for procs in (4, 8) for size in SIZES}
    mockups = {(name, Call("scatter", 4, size)): Launches((5.0,)) for size, name in chosen.items()}
    found = ranges(repairs(check(own, mockups, Share(0.1), [PATTERN])), {"scatter": SIZES})
    rules = rules_text(found, {4: 2, 8: 2})
    (profile,) = profiles(found)
    assert parse_profile(profile_text(profile)) == profile
    assert ranges_of(profile) == found
    assert rules_of({"a.prf": profile}) == rules_text(found)
    with pytest.raises(UsageError, match=r"b\.prf: another profile of MPI_Scatter for 4 processes"):
        rules_of({"a.prf": profile, "b.prf": profile})
    for size in SIZES:
        expected = GUIDELINES[chosen[size]].mockup.name if size in chosen else "default"
        assert algorithm_by(rules, "scatter", 4, 2, size) == expected
        assert profile.lookup(size) == (GUIDELINES[chosen[size]].profile_name if size in chosen else None)
        for procs, per_node in ((3, 2), (5, 2), (8, 2), (4, 1), (4, 3)):
            assert algorithm_by(rules, "scatter", procs, per_node, size) == "default"
    assert algorithm_by(rules, "scatter", 4, 2, max(chosen) + 1) == "default"
    assert algorithm_by(rules, "scatter", 4, 2, min(chosen) - 1) == "default"


def test_neighbouring_sizes_join_and_others_do_not() -> None:
    own = {Call("scatter", 4, size): Launches((10.0,)) for size in SIZES}
    mockups = {("GL21", Call("scatter", 4, size)): Launches((5.0,)) for size in (8, 16, 64)}
    found = ranges(repairs(check(own, mockups, Share(0.1))), {"scatter": SIZES})
    assert [(one.first, one.last) for one in found] == [(8, 16), (64, 64)]


def test_the_fastest_violated_mockup_repairs() -> None:
    call = Call("gather", 4, 8)
    mockups = {("GL11", call): Launches((5.0,)), ("GL12", call): Launches((4.0,)), ("GL13", call): Launches((20.0,))}
    assert repairs(check({call: Launches((10.0,))}, mockups, Share(0.1))) == {call: GUIDELINES["GL12"]}


def test_the_profile_of_the_paper() -> None:
    """Listing 1: scatter_as_bcast has number 2 there, and is known by its name."""
    profile = PgmpiProfile("MPI_Scatter", 1024, {2: "scatter_as_bcast"}, (Range(1, 1, 2), Range(512, 1024, 2)))
    assert ranges_of(profile) == (
        RepairedRange("scatter", 1024, 1, 1, GUIDELINES["GL21"]),
        RepairedRange("scatter", 1024, 512, 1024, GUIDELINES["GL21"]),
    )


def test_profiles_of_other_mockups_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean scatter_as_bcast"):
        ranges_of(PgmpiProfile("MPI_Scatter", 4, {1: "scatter_as_bcats"}, (Range(1, 1, 1),)))
    with pytest.raises(UsageError, match="MPI_Barrier"):
        ranges_of(PgmpiProfile("MPI_Barrier", 4, {}, ()))


class MadeUp:
    """A library whose own scatter is slow for 16 bytes; its repair helps as far as `tuned` says."""

    def __init__(self, tuned: float = 5.0) -> None:
        self.tuned, self.rules = tuned, ""
        self.library = Library("made up", "made up", "nowhere", lambda procs: 1, self.times, self.times_in_turn)

    def times(self, cases: Sequence[Case]) -> dict[Case, Launches]:
        return {case: Launches((self.seconds(case),)) for case in cases}

    def times_in_turn(
        self, cases: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]
    ) -> tuple[dict[Case, Launches], dict[Case, Launches]]:
        self.rules = rules
        assert {case.message_bytes: choice.algorithm for case, choice in chosen.items()} == {16: "gl21_bcast"}
        repaired = {
            case: Launches((self.tuned,)) if case.experiment == BUILTIN and case.message_bytes == 16 else one
            for case, one in self.times(cases).items()
        }
        return self.times(cases), repaired

    def seconds(self, case: Case) -> float:
        if case.experiment == BUILTIN:
            return {8: 4.0, 16: 20.0, 32: 6.0, 64: 30.0}[case.message_bytes]
        return 5.0 if case.algorithm == "gl21_bcast" and case.message_bytes == 16 else 50.0


def plan() -> Plan:
    return Plan({"scatter": SIZES}, (4,), Share(0.01))


def test_a_whole_check() -> None:
    made_up = MadeUp()
    found = run(made_up.library, plan())
    violations = {(one.guideline, one.call.message_bytes) for one in found.before.violations}
    assert violations == {("GL21", 16), (MONOTONY, 16), (SPLIT, 16), (SPLIT, 64)}
    assert algorithm_by(made_up.rules, "scatter", 4, 1, 16) == "gl21_bcast"
    assert found.gain(Call("scatter", 4, 16)) == 4.0
    outcomes = {(one.violation.guideline, one.violation.call.message_bytes): one for one in found.outcomes()}
    assert [outcomes[key].repaired for key in (("GL21", 16), (MONOTONY, 16), (SPLIT, 16), (SPLIT, 64))] == [
        True,
        True,
        True,
        False,
    ]
    assert outcomes[SPLIT, 64].reason == "no mock-up is faster for this call"


def test_a_repair_that_does_not_help_is_reported() -> None:
    found = run(MadeUp(tuned=20.0).library, plan())
    outcomes = {(one.violation.guideline, one.violation.call.message_bytes): one for one in found.outcomes()}
    assert outcomes["GL21", 16].reason == (
        "bcast runs, with a gain of x 1.00, and takes 75 % less when timed as a mock-up: times differ within a launch"
    )
    assert outcomes[MONOTONY, 16].reason == "bcast runs, with a gain of x 1.00, which is not enough"
    assert not found.new_violations()


def test_a_violation_that_only_the_repaired_library_has_is_reported_with_its_cause() -> None:
    found = run(MadeUp(tuned=3.0).library, plan())
    [new] = found.new_violations()
    assert (new.violation.guideline, new.violation.call.message_bytes, new.violation.other_bytes) == (MONOTONY, 8, 16)
    assert new.reason == "what it is compared with has a gain of x 6.67 by its repair"
    [row] = new_rows(found)
    assert row[:3] == ("scatter", "4", "8 B")
    assert row[-1] == new.reason


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ({32: Launches((), "failed")}, "one of the two had no time in the first check"),
        ({}, "times differ between the runs: the ratio was 0.20 in the first check"),
    ],
)
def test_a_violation_that_the_first_check_did_not_find_has_a_reason(first: Mapping[int, Launches], reason: str) -> None:
    """For 32 bytes the first check had no time, or a much shorter one than the check of the repaired library."""
    made_up = MadeUp()

    def own(found: Mapping[Case, Launches], changed: Mapping[int, Launches]) -> dict[Case, Launches]:
        return {
            case: changed.get(case.message_bytes, one) if case.experiment == BUILTIN else one
            for case, one in found.items()
        }

    def in_turn(
        cases: Sequence[Case], rules: str, chosen: Mapping[Case, Choice]
    ) -> tuple[dict[Case, Launches], dict[Case, Launches]]:
        default, repaired = made_up.times_in_turn(cases, rules, chosen)
        return default, own(repaired, {32: Launches((40.0,))})

    library = replace(made_up.library, times=lambda cases: own(made_up.times(cases), first), times_in_turn=in_turn)
    found = run(library, plan())
    new = {(one.violation.guideline, one.violation.call.message_bytes): one.reason for one in found.new_violations()}
    assert new[MONOTONY, 32] == reason
    assert found.failed == ({"scatter, P = 4": "failed"} if first else {})


def test_too_few_launches_are_told_of_before_anything_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    def measured(cases: Sequence[Case]) -> dict[Case, Launches]:
        raise KeyboardInterrupt

    warn.cache_clear()
    for launches, said in ((2, "with 2 launches the rank test cannot find a single violation among"), (9, "")):
        library = replace(MadeUp().library, times=measured, launches=launches)
        with pytest.raises(KeyboardInterrupt):
            run(library, replace(plan(), criterion=RankTest()))
        err = capsys.readouterr().err
        assert said in err
        assert bool(err) == bool(said)


def test_mockups_without_room_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLWISE_MESSAGE_BUFFER", "63")
    found = run(MadeUp().library, plan())
    assert not found.repairs
    assert {name for name, _ in found.unused} == {"GL21"}
    assert "needs 64 B of its message buffer" in found.unused["GL21", Call("scatter", 4, 16)]
