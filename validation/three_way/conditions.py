"""Conditions: changes, one at a time, that tell why simulation and measurement differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from collwise.platforms import Platform
from collwise.simulator.timing import Case
from collwise.validation.testbed.shape import FRAME_BYTES, Shape

_SLOWER = 5
_LARGE_BUFFER_BYTES = 50_000_000


T = TypeVar("T")


def _unchanged(value: T) -> T:
    return value


@dataclass(frozen=True)
class Condition:
    """A change and the cause that it tests: where the gap closes under the change, `cause` explains the gap.

    `shape` changes the test bed, `launcher_args` the MPI library, `case` what is measured and simulated, and `platform`
    the simulation; each is the identity where nothing is changed. With `isolated` the simulated platform is the one
    calibrated on single messages. `applies` says to which cases the change applies.
    """

    cause: str
    change: str
    shape: Callable[[Shape], Shape] = _unchanged
    launcher_args: tuple[str, ...] = ()
    platform: Callable[[Platform], Platform] = _unchanged
    isolated: bool = False
    case: Callable[[Case], Case] = _unchanged
    applies: Callable[[Case], bool] = lambda case: True


def _recalibrated(platform: Platform, **changes: Any) -> Platform:
    return replace(platform, calibration=replace(platform.calibration, **changes))


def _eager_limit(cause: str, change: str, size: int) -> Condition:
    options = ("--mca", "btl_tcp_eager_limit", str(size), "--mca", "btl_tcp_rndv_eager_limit", str(size))
    return Condition(
        cause, change, launcher_args=options, platform=lambda platform: _recalibrated(platform, eager_limit_bytes=size)
    )


def _no_faster_than_link(platform: Platform) -> Platform:
    """The platform with bandwidth factors of at most 1.

    Small messages may have larger ones where the calibration has pauses between messages: first packets go unshaped.
    """
    rows = tuple((size, min(factor, 1.0)) for size, factor in platform.calibration.bandwidth_factor)
    return _recalibrated(platform, bandwidth_factor=rows)


CONDITIONS = (
    _eager_limit("rendezvous protocol", "messages of all sizes sent eagerly (eager limit 16 MiB), in both", 2**24),
    _eager_limit("buffering of eager messages", "messages from 1 KiB on sent by rendezvous, in both", 1024),
    Condition(
        "pipeline of segments",
        "messages in one piece, in both",
        case=lambda case: replace(case, segment_bytes=0),
        applies=lambda case: 0 < case.segment_bytes < case.message_bytes,
    ),
    Condition(
        "opposite traffic",
        "the share that acknowledgements take from the opposite direction left out (or put in), in simulation only",
        platform=lambda platform: _recalibrated(platform, crosstraffic=not platform.calibration.crosstraffic),
    ),
    Condition(
        "first packets unshaped",
        "every message as fast as a single one, which the token buckets let through, in simulation only",
        isolated=True,
    ),
    Condition(
        "no pauses between messages",
        "no message faster than the link, as in a sequence, in simulation only",
        platform=_no_faster_than_link,
    ),
    Condition(
        "two cores",
        f"network at 1/{_SLOWER} of the rate, in both: the processors' share of the time is then smaller",
        shape=lambda shape: replace(shape, bits_per_second=shape.bits_per_second / _SLOWER),
        platform=lambda platform: replace(platform, link_bytes_per_second=platform.link_bytes_per_second / _SLOWER),
    ),
    Condition(
        "token bucket's burst",
        "token buckets of one packet on the test bed; in simulation no message faster than the link",
        shape=lambda shape: replace(shape, burst_bytes=FRAME_BYTES),
        platform=_no_faster_than_link,
    ),
    Condition(
        "full buffers of the switch",
        f"{_LARGE_BUFFER_BYTES // 10**6} MB of buffer at each port of the switch, on the test bed only",
        shape=lambda shape: replace(shape, buffer_bytes=_LARGE_BUFFER_BYTES),
    ),
    Condition(
        "queues of the nodes",
        "one packet of a connection in its node's queue at a time, on the test bed only: shorter queues",
        shape=lambda shape: replace(shape, host_queue_bytes=FRAME_BYTES),
    ),
)
"""All conditions in the order in which they are tried: those that need no other test bed come first."""
