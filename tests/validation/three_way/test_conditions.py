from __future__ import annotations

from dataclasses import replace

import pytest

from collwise.simulator.timing import Case
from collwise.validation.testbed.shape import Shape, simulated_platform
from collwise.validation.three_way.disagreements import CONDITIONS, Condition

CASE = Case("bcast", "chain", 8, 65536, 8192)
PLATFORM = simulated_platform(Shape(8))


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda one: one.cause)
def test_each_condition_changes_something(condition: Condition) -> None:
    fast = replace(PLATFORM, calibration=replace(PLATFORM.calibration, bandwidth_factor=((0, 3.0), (8192, 0.9))))
    changed = (condition.shape(Shape(8)), condition.platform(fast), condition.case(CASE), condition.launcher_args)
    assert (*changed, condition.isolated) != (Shape(8), fast, CASE, (), False)
    assert condition.platform(fast).xml_text()


def test_causes_have_names_of_their_own() -> None:
    assert len({one.cause for one in CONDITIONS}) == len({one.change for one in CONDITIONS}) == len(CONDITIONS)


def test_no_message_is_faster_than_its_link() -> None:
    [condition] = [one for one in CONDITIONS if one.cause == "token bucket's burst"]
    fast = replace(PLATFORM, calibration=replace(PLATFORM.calibration, bandwidth_factor=((0, 3.0), (8192, 0.9))))
    assert condition.platform(fast).calibration.bandwidth_factor == ((0, 1.0), (8192, 0.9))


def test_one_piece_is_for_messages_that_were_cut() -> None:
    [condition] = [one for one in CONDITIONS if one.cause == "pipeline of segments"]
    assert condition.applies(CASE)
    assert not condition.applies(replace(CASE, message_bytes=8192))
    assert not condition.applies(replace(CASE, segment_bytes=0))
