"""Experiments between a few processes on the schedule engine, which plays their messages without a simulator."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from collwise.common import experiments
from collwise.common.errors import CollwiseError, UsageError
from collwise.platforms import HostPlatform
from collwise.platforms.hosts import ReorderedPlatform
from collwise.simulator.execution.installations import file_digest
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.sweeps.experiment_runner import processes_of
from collwise.simulator.sweeps.runner import DividedRunner, Keep, Part, Pool
from collwise.simulator.sweeps.schedule_runner import ScheduleRunner
from collwise.simulator.timing import Case, Configuration, Timing

_COLLECTIVES = {
    experiments.SCATTER: ("scatter", "linear"),
    experiments.GATHER: ("gather", "linear"),
    experiments.CHAIN_BCAST: ("bcast", "chain"),
    experiments.LINEAR_BARRIER: ("barrier", "linear"),
}


@dataclass(frozen=True)
class _Message:
    """The times, in seconds, of a message that is alone on the network.

    `seconds` is the time until it is received, `send` that of a blocking send, `start` that of starting a send,
    `receive` that of completing the receive, and `transfer` that of the bytes on the link.
    """

    seconds: float
    send: float
    start: float
    receive: float
    transfer: float

    @property
    def on_way(self) -> float:
        """The seconds between the end of the message's send and the beginning of its receive."""
        return self.seconds - self.send - self.receive


class PlayedExperiments(DividedRunner):
    """Makes experiments by the rules of the schedule engine, which plays single messages and collectives.

    Between two processes every message is alone at its link, so that the time of an experiment is a sum of messages'
    times. Messages in a row follow one another at the pace of the slowest of their stages. An empty message takes as
    long as a message of one byte. Experiments of kinds that the engine does not have fail.
    """

    def __init__(self, platform: HostPlatform, pool: Pool | None = None) -> None:
        """Raises UsageError for platform XML without a description."""
        super().__init__(pool)
        self._platform, self._schedules = platform, ScheduleRunner(platform, pool)
        self._message = cache(self._played)

    def __reduce__(self) -> tuple[object, ...]:
        """The class and the arguments from which a copy is made."""
        return PlayedExperiments, (self._platform,)

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration of the engine, and the digest of this file."""
        usual = self._schedules.configuration
        details = (*usual.details, ("experiments_digest", file_digest(Path(__file__))))
        return Configuration(usual.source, usual.platform, usual.maker, tuple(sorted(details)))

    def parts(self, cases: Sequence[Case], slots: int) -> Sequence[Part]:
        """A single part with all cases, since they take little time."""
        return [Part(cases)]

    def make_part(self, part: Part, keep: Keep, stop: threading.Event) -> int:
        """Makes the experiments in this process."""
        for case in part.cases:
            if stop.is_set():
                break
            try:
                seconds = self.seconds(case)
                keep(Timing(case, seconds, seconds))
            except CollwiseError as problem:
                keep(Timing(case, float("nan"), error=str(problem)))
        return 0

    def seconds(self, case: Case, non_blocking: bool = False) -> float:
        """The time of an experiment. If `non_blocking`, messages in a row are sent by MPI_Isend.

        Raises UsageError for a kind that the engine does not have, and CollwiseError if a play fails.
        """
        kind, per_node = case.experiment, case.processes_per_node
        if kind in experiments.ON_MANY:
            names = _COLLECTIVES[kind]
            timing = self._schedules.timing(Case(*names, case.procs, case.message_bytes, processes_per_node=per_node))
            if not timing.ok:
                raise CollwiseError(timing.error)
            return timing.seconds
        first, *others = (rank // per_node for rank in processes_of(case))
        way = self._message(first, others[0], max(1, case.message_bytes))
        back = self._message(others[0], first, max(1, case.reply_bytes))
        # All time that depends on the message's size is spent at the slowest of the links.
        transfer = way.on_way - self._message(first, others[0], 1).on_way
        if non_blocking:  # A blocking rendezvous send includes the transfer; non-blocking ones overlap handshakes.
            transfer = way.transfer
        if kind == experiments.ONE_TO_TWO:
            there = self._message(first, others[1], max(1, case.message_bytes))
            reply = self._message(others[1], first, max(1, case.reply_bytes))
            # The second message leaves after the first one, but the reply to the second is received first.
            second = max(way.send, transfer) + there.seconds + reply.seconds
            return max(second, way.seconds + back.seconds - back.receive) + back.receive
        sent = (way.start if non_blocking else way.send) + case.delay_seconds
        in_a_row = way.seconds + (case.count - 1) * max(sent, transfer, way.receive) + back.seconds
        seconds = {
            experiments.ROUNDTRIP: way.seconds + back.seconds,
            experiments.SATURATION: in_a_row,
            experiments.PRTT: in_a_row,
            experiments.SEND: way.send,
            experiments.ISEND: way.start,
            experiments.RECEIVE: way.receive,
            experiments.UNEXPECTED_RECEIVE: way.receive,
        }
        if kind not in seconds:
            raise UsageError(f"the schedule engine has no experiment '{kind}'; valid: {', '.join(seconds)}")
        return seconds[kind]

    def _played(self, sender: int, receiver: int, message_bytes: int) -> _Message:
        """The times of a message, played as the only one of a linear scatter, which uses a blocking send."""
        alone = sender == receiver
        platform = ReorderedPlatform(self._platform, (sender,) if alone else (sender, receiver))
        case = Case("scatter", "linear", 2, message_bytes, processes_per_node=2 if alone else 1)
        schedule = Schedule(case, platform.places(2, case.processes_per_node))
        tables = network_tables(platform, 2, case.processes_per_node, schedule.sizes)
        # The root's copy of its own block is no part of the message.
        tables = replace(tables, copy_seconds=np.zeros(len(schedule.sizes)))
        played = schedule.play(tables)
        size = int(np.flatnonzero(schedule.sizes == message_bytes)[0])
        ends = tables.class_of[0], tables.class_of[-1]
        transfer = tables.local_transfer_seconds[ends[0]] if alone else tables.transfer_seconds[ends]
        start, receive = tables.start_seconds[ends[0]][size], tables.receive_seconds[ends[1]][size]
        return _Message(played.seconds, played.root_seconds, float(start), float(receive), float(transfer[size]))
