"""Conditions: changes, one at a time, that tell why simulation and measurement differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from collwise.platforms import Platform
from collwise.simulator.timing import Case
from collwise.validation.testbed.shape import FRAME_BYTES, Shape

_ALL_EAGER_BYTES = 2**24
_ALL_RENDEZVOUS_BYTES = 1024
_SLOWER = 5
_LARGE_BUFFER_BYTES = 50_000_000


def _same_shape(shape: Shape) -> Shape:
    return shape


def _same_platform(platform: Platform) -> Platform:
    return platform


def _same_case(case: Case) -> Case:
    return case


def _any(case: Case) -> bool:
    return True


@dataclass(frozen=True)
class Condition:
    """A change and the cause that it tests: where the gap closes under the change, `cause` explains the gap.

    `shape` changes the test bed, `launcher_args` the MPI library, `case` what is measured and simulated, and `platform`
    the simulation; each is the identity where nothing is changed. With `isolated` the simulated platform is the one
    calibrated on single messages. `applies` says to which cases the change applies.
    """

    cause: str
    change: str
    shape: Callable[[Shape], Shape] = _same_shape
    launcher_args: tuple[str, ...] = ()
    platform: Callable[[Platform], Platform] = _same_platform
    isolated: bool = False
    case: Callable[[Case], Case] = _same_case
    applies: Callable[[Case], bool] = _any


def _eager_limit(size: int) -> Callable[[Platform], Platform]:
    return lambda platform: replace(platform, calibration=replace(platform.calibration, eager_limit_bytes=size))


def _limit_option(size: int) -> tuple[str, ...]:
    return ("--mca", "btl_tcp_eager_limit", str(size), "--mca", "btl_tcp_rndv_eager_limit", str(size))


def _slower_platform(platform: Platform) -> Platform:
    return replace(platform, link_bytes_per_second=platform.link_bytes_per_second / _SLOWER)


def _no_faster_than_link(platform: Platform) -> Platform:
    """Small messages may be faster where the calibration has pauses between messages: first packets go unshaped."""
    rows = tuple((size, min(factor, 1.0)) for size, factor in platform.calibration.bandwidth_factor)
    return replace(platform, calibration=replace(platform.calibration, bandwidth_factor=rows))


def _other_crosstraffic(platform: Platform) -> Platform:
    return replace(
        platform, calibration=replace(platform.calibration, crosstraffic=not platform.calibration.crosstraffic)
    )


CONDITIONS = (
    Condition(
        "rendezvous protocol",
        "messages of all sizes sent eagerly (eager limit 16 MiB), in both",
        launcher_args=_limit_option(_ALL_EAGER_BYTES),
        platform=_eager_limit(_ALL_EAGER_BYTES),
    ),
    Condition(
        "buffering of eager messages",
        "messages from 1 KiB on sent by rendezvous, in both",
        launcher_args=_limit_option(_ALL_RENDEZVOUS_BYTES),
        platform=_eager_limit(_ALL_RENDEZVOUS_BYTES),
    ),
    Condition(
        "pipeline of segments",
        "messages in one piece, in both",
        case=lambda case: replace(case, segment_bytes=0),
        applies=lambda case: 0 < case.segment_bytes < case.message_bytes,
    ),
    Condition(
        "opposite traffic",
        "the share that acknowledgements take from the opposite direction left out (or put in), in simulation only",
        platform=_other_crosstraffic,
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
        platform=_slower_platform,
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
