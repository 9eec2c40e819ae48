"""Point-to-point models applied to schedules: predictions for every algorithm, without a formula for any."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.hockney import Hockney, HockneyBySize
from collwise.models.interface import CollectiveModel, PairParameters
from collwise.models.lmo import LMO
from collwise.models.loggp import LogGP
from collwise.models.parameter_file import Parameters
from collwise.models.piecewise import Array
from collwise.models.point_to_point import PointToPointModel
from collwise.simulator.schedule.library import NetworkTables, Schedule
from collwise.simulator.timing import Case


def model_tables(parameters: Parameters, schedule: Schedule, reduce_seconds_per_byte: float = 0.0) -> NetworkTables:
    """The costs of a schedule's messages under a point-to-point model; process i is processor i of the parameters.

    Hockney's bytes occupy the ports of sender and receiver, one message after the other; LogGP adds overheads and the
    gap between messages. PLogP's overheads are part of L + g(m). LMO's processors are busy for C + t m, and its network
    serves messages to different receivers at one time. Heterogeneous PLogP counts by its means.
    """
    m = schedule.sizes.astype(np.float64)
    tables = NetworkTables.of_model(schedule.procs, schedule.sizes)
    tables = replace(tables, reduce_seconds=m * reduce_seconds_per_byte)
    if isinstance(parameters, PairParameters) and parameters.heterogeneous:
        tables = _different_processes(tables, schedule.procs)
    classes = len(tables.send_seconds)

    def of_pairs(value: float | Array) -> Array:
        array = np.asarray(value, dtype=float)
        return np.broadcast_to(array[:classes, :classes] if array.ndim else array, (classes, classes))[:, :, None]

    def of_processors(value: float | Array) -> Array:
        array = np.asarray(value, dtype=float)
        return np.broadcast_to(array[:classes] if array.ndim else array, (classes,))[:, None]

    if isinstance(parameters, LMO):
        busy = of_processors(parameters.processor_seconds) + of_processors(parameters.processor_seconds_per_byte) * m
        return _with(
            tables,
            (busy, busy),
            of_pairs(parameters.latency_seconds) + 0 * m,
            of_pairs(parameters.network_seconds_per_byte) * m,
            0 * of_pairs(0.0) * m,
        )
    if isinstance(parameters, LogGP):
        transfer = of_pairs(parameters.gap_seconds_per_byte) * np.maximum(m - 1, 0)
        overheads = (
            of_processors(parameters.send_overhead_seconds) + 0 * m,
            of_processors(parameters.receive_overhead_seconds) + 0 * m,
        )
        gaps = np.maximum(of_pairs(parameters.gap_seconds), transfer)
        return _with(tables, overheads, of_pairs(parameters.latency_seconds) + 0 * m, transfer, gaps)
    if isinstance(parameters, Hockney):
        bytes_on_port = of_pairs(parameters.beta_seconds_per_byte) * m
        nothing = 0 * of_processors(0.0) * m
        return _with(
            tables, (nothing, nothing), of_pairs(parameters.alpha_seconds) + 0 * m, bytes_on_port, bytes_on_port
        )
    if isinstance(parameters, HockneyBySize):
        bytes_on_port = (parameters.beta(m) * m)[None, None]
        nothing = np.zeros((1, len(m)))
        return _with(tables, (nothing, nothing), parameters.alpha(m)[None, None], bytes_on_port, bytes_on_port)
    plogp = parameters.homogeneous()
    send, receive, gap = (np.asarray(part(m)) for part in (plogp.send_overhead, plogp.receive_overhead, plogp.gap))
    rest = np.maximum(plogp.latency_seconds + gap - send - receive, 0.0)
    return _with(tables, (send[None], receive[None]), np.zeros((1, 1, len(m))), rest[None, None], gap[None, None])


def _different_processes(tables: NetworkTables, procs: int) -> NetworkTables:
    """The same tables with a class for each process, and with rows for each of them."""
    return replace(
        tables,
        class_of=np.arange(procs),
        send_seconds=np.repeat(tables.send_seconds, procs, axis=0),
        handshake_seconds=np.zeros((procs, procs, len(tables.protocol))),
        answer_seconds=np.zeros((procs, procs, len(tables.protocol))),
        local_latency_seconds=np.repeat(tables.local_latency_seconds, procs, axis=0),
        local_transfer_seconds=np.repeat(tables.local_transfer_seconds, procs, axis=0),
    )


def _with(
    tables: NetworkTables, overheads: tuple[Array, Array], latency: Array, transfer: Array, gap: Array
) -> NetworkTables:
    """The tables with these; a receiver's gap is the mean over its senders."""
    send, receive = overheads
    classes = len(send)
    others = np.where(np.eye(classes, dtype=bool)[:, :, None], 0.0, gap)
    return replace(
        tables,
        send_seconds=send,
        start_seconds=send,
        receive_seconds=receive,
        answer_seconds=latency,
        latency_seconds=latency,
        transfer_seconds=transfer,
        gap_seconds=gap,
        receive_gap_seconds=others.sum(axis=0) / (classes - 1) if classes > 1 else gap[0],
    )


@dataclass(frozen=True)
class ScheduledModel:
    """A point-to-point model that predicts every algorithm of the catalogue from its schedule. Is a CollectiveModel."""

    base: PointToPointModel

    @classmethod
    def of(cls, model: CollectiveModel) -> ScheduledModel:
        """The model by schedules. Raises UsageError unless it is a point-to-point model."""
        if not isinstance(model, PointToPointModel):
            raise UsageError(f"model {model.name} has no parameters of single messages; valid: point-to-point models")
        return cls(model)

    @property
    def name(self) -> str:
        """The name of the point-to-point model, and how it is applied."""
        return f"{self.base.name}, by schedule"

    @property
    def platform(self) -> str:
        """The platform that the parameters were fitted on."""
        return self.base.platform

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """All algorithms of the catalogue."""
        return tuple(Catalogue.load().collective(collective).algorithms)

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        fanout: int = 0,
    ) -> Array:
        """Seconds at every (P, m), as `CollectiveModel.predict`; nan where the algorithm does not run on P processes.

        Also nan beyond the processors of a heterogeneous model.
        """
        entry = Catalogue.load().algorithm(collective, algorithm)
        points = np.broadcast_arrays(procs, message_bytes, segment_bytes)
        seconds = [
            self._seconds(Case(collective, algorithm, int(p), int(m), int(cut) if entry.part_parameter else 0, fanout))
            for p, m, cut in zip(*(np.ravel(one) for one in points), strict=True)
        ]
        return np.array(seconds).reshape(points[0].shape)

    def _seconds(self, case: Case) -> float:
        beyond = self.base.parameters.heterogeneous and case.procs > self.base.most_procs
        if beyond or Catalogue.load().algorithm(case.collective, case.algorithm).objection(case.procs):
            return float("nan")
        schedule = Schedule(case)
        tables = model_tables(self.base.parameters, schedule, self.base.reduce_seconds_per_byte)
        return schedule.play(tables).seconds
