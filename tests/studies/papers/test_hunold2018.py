"""What the paper on guidelines states, against a second typing of it, and the settings of the simulation."""

from __future__ import annotations

from collwise.platforms import load
from collwise.studies.papers.hunold2018 import analysis, tables
from collwise.validation.exports.pgmpi import Profile, Range
from collwise.validation.guidelines.guideline import GUIDELINES
from collwise.validation.guidelines.repair import ranges_of

# Typed a second time: the machine, processes, collective and stated gain of section 4.3 and 4.4.
STATED = """
jupiter 32x1 gather None
jupiter 32x1 allreduce None
jupiter 32x1 reduce None
jupiter 32x1 reduce 2.0
jupiter 32x1 gather 2.0
juqueen 64x16 allgather None
juqueen 64x16 scatter None
juqueen 64x16 scatter None
vsc-3 64x16 gather None
vsc-3 64x16 reduce_scatter_block 4.0
vsc-3 64x16 allreduce 45.0
jupiter 32x16 reduce None
jupiter 32x16 allreduce None
"""


def test_findings_are_those_of_the_text() -> None:
    typed = [f"{one.machine} {one.nodes}x{one.per_node} {one.collective} {one.gain}" for one in tables.FINDINGS]
    assert typed == STATED.split("\n")[1:-1]
    for one in tables.FINDINGS:
        assert {GUIDELINES[name].collective for name in one.guidelines} == {one.collective}
        assert one.collective in analysis.setting_of(one).collectives
        assert any(one.least_bytes <= size <= one.most_bytes for size in analysis.SIZES)


def test_the_machines_have_room_for_the_settings() -> None:
    for setting in analysis.SETTINGS:
        for nodes, per_node in (setting.printed, setting.simulated):
            assert len(load(setting.machine).hosts_for(nodes * per_node, per_node)) == nodes * per_node


def test_the_printed_profile_names_mockups_of_the_catalogue() -> None:
    names = {2: "scatter_as_bcast", 3: "scatter_as_scatterv"}
    numbers = {name: number for number, name in names.items()}
    ranges = tuple(Range(first, last, numbers[name]) for first, last, name in tables.SCATTER_PROFILE)
    found = ranges_of(Profile("MPI_Scatter", 1024, names, ranges))
    assert [one.guideline.name for one in found] == ["GL21"] * 7 + ["GL22"]
