"""Point-to-point models applied to schedules: predictions for every algorithm, without a formula for any."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.interface import CollectiveModel, PairParameters
from collwise.models.parameters import Parameters
from collwise.models.piecewise import Array
from collwise.models.point_to_point import PointToPointModel
from collwise.models.registry import UnlimitedModel
from collwise.models.single_messages import LMO, Hockney, HockneyBySize, LogGP
from collwise.platforms.description import COPY_SECONDS_PER_BYTE, LEAST_FLAG_SECONDS
from collwise.simulator.schedule.pipelines import play_case
from collwise.simulator.schedule.tables import NetworkTables
from collwise.simulator.timing import Case


def model_tables(
    parameters: Parameters, procs: int, sizes: npt.NDArray[np.uint64], reduce_seconds_per_byte: float = 0.0
) -> NetworkTables:
    """The costs of messages of those sizes under a point-to-point model; process i is processor i of the parameters.

    Under Hockney, bytes occupy the ports of sender and receiver, one message after the other. LogGP adds overheads and
    the gap between messages. Under PLogP, overheads are part of L + g(m). Under LMO, processors are busy for C + t m,
    and the network serves messages to different receivers at the same time. Heterogeneous PLogP is replaced by its
    means.
    """
    m = sizes.astype(np.float64)
    different = isinstance(parameters, PairParameters) and parameters.heterogeneous
    classes = procs if different else 1
    send, receive, latency, transfer, gap = _costs(parameters, m, classes)
    each, pairs = (classes, len(m)), (classes, classes, len(m))
    latency, gap = np.broadcast_to(latency, pairs), np.broadcast_to(gap, pairs)
    # A receiver's gap is the mean over its senders.
    others = np.where(np.eye(classes, dtype=bool)[:, :, None], 0.0, gap)
    return replace(
        NetworkTables.of_model(procs, sizes),
        class_of=np.arange(procs) % classes,
        send_seconds=np.broadcast_to(send, each),
        start_seconds=np.broadcast_to(send, each),
        receive_seconds=np.broadcast_to(receive, each),
        reduce_seconds=m * reduce_seconds_per_byte,
        handshake_seconds=np.zeros(pairs),
        answer_seconds=latency,
        latency_seconds=latency,
        transfer_seconds=np.broadcast_to(transfer, pairs),
        gap_seconds=gap,
        receive_gap_seconds=others.sum(axis=0) / (classes - 1) if classes > 1 else gap[0],
        local_latency_seconds=np.zeros(each),
        local_transfer_seconds=np.zeros(each),
        move_seconds=m * COPY_SECONDS_PER_BYTE,
        flag_seconds=np.full(classes, LEAST_FLAG_SECONDS),
    )


_Costs = tuple[Array | float, Array | float, Array | float, Array | float, Array | float]


def _costs(parameters: Parameters, m: Array, classes: int) -> _Costs:
    """Overheads of sender and receiver by process and size, then latency, transfer and gap by pair and size."""

    def each(value: float | Array) -> Array:
        """The value itself, or its entries for these processors or pairs, shaped for multiplication by sizes."""
        array = np.asarray(value, dtype=float)
        return array[(slice(classes),) * array.ndim][..., None]

    if isinstance(parameters, LMO):
        busy = each(parameters.processor_seconds) + each(parameters.processor_seconds_per_byte) * m
        transfer = each(parameters.network_seconds_per_byte) * m
        return busy, busy, each(parameters.latency_seconds), transfer, 0.0
    if isinstance(parameters, LogGP):
        transfer = each(parameters.gap_seconds_per_byte) * np.maximum(m - 1, 0)
        overheads = (each(parameters.send_overhead_seconds), each(parameters.receive_overhead_seconds))
        gap = np.maximum(each(parameters.gap_seconds), transfer)
        return *overheads, each(parameters.latency_seconds), transfer, gap
    if isinstance(parameters, Hockney):
        on_port = each(parameters.beta_seconds_per_byte) * m
        return 0.0, 0.0, each(parameters.alpha_seconds), on_port, on_port
    if isinstance(parameters, HockneyBySize):
        on_port = parameters.beta(m) * m
        return 0.0, 0.0, parameters.alpha(m), on_port, on_port
    plogp = parameters.homogeneous()
    send, receive, gap = (np.asarray(part(m)) for part in (plogp.send_overhead, plogp.receive_overhead, plogp.gap))
    return send, receive, 0.0, np.maximum(plogp.latency_seconds + gap - send - receive, 0.0), gap


class PlayedModel(UnlimitedModel, ABC):
    """A model that plays the schedule of each case, and so predicts every algorithm of the catalogue."""

    plays = True

    @abstractmethod
    def seconds(self, case: Case) -> float:
        """The seconds of a case that its algorithm can run; nan if there is no prediction."""

    def seconds_within(self, case: Case, max_seconds: float) -> float | None:
        """The seconds of a case; None without a prediction, or once the seconds are known to exceed `max_seconds`."""
        seconds = self.seconds(case)
        return None if np.isnan(seconds) else seconds

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """All algorithms of the catalogue that can be recorded without an MPI library's decisions."""
        algorithms = Catalogue.load().collective(collective).algorithms
        return tuple(
            name for name, algorithm in algorithms.items() if not algorithm.real_mpi_only and not algorithm.guideline
        )

    def predict(
        self,
        collective: str,
        algorithm: str,
        procs: ArrayLike,
        message_bytes: ArrayLike,
        segment_bytes: ArrayLike = 0,
        parameter: int = 0,
    ) -> Array:
        """Seconds at every (P, m), as in `CollectiveModel.predict`.

        The seconds are nan if the algorithm does not run on P processes, or if there is no prediction.
        """
        entry = Catalogue.load().algorithm(collective, algorithm)
        shaped = np.broadcast_arrays(procs, message_bytes, segment_bytes)
        per_node = self.processes_per_node or 1
        rows: dict[Case, set[int]] = {}
        points = []
        for p, m, cut in zip(*(np.ravel(item).astype(int).tolist() for item in shaped), strict=True):
            row = Case(collective, algorithm, p, 0, cut if entry.part_parameter else 0, parameter, per_node)
            points.append((row, m))
            if not entry.objection(p):
                rows.setdefault(row, set()).add(m)
        found = dict(zip(rows, self.rows({row: sorted(sizes) for row, sizes in rows.items()}), strict=True))
        missing: dict[int, float] = {}
        return np.array([found.get(row, missing).get(m, np.nan) for row, m in points]).reshape(shaped[0].shape)

    def rows(self, sizes: Mapping[Case, Sequence[int]]) -> list[dict[int, float]]:
        """The seconds of each case by size, at the sizes that `sizes` gives in place of the case's own size."""
        return [{m: self.seconds(replace(case, message_bytes=m)) for m in row} for case, row in sizes.items()]


@dataclass(frozen=True)
class ScheduledModel(PlayedModel):
    """A point-to-point model that predicts every algorithm of the catalogue from its schedule; a CollectiveModel."""

    base: PointToPointModel

    @classmethod
    def of(cls, model: CollectiveModel) -> ScheduledModel:
        """The model by schedules. Raises UsageError unless it is a point-to-point model."""
        if not isinstance(model, PointToPointModel):
            raise UsageError(f"model {model.name} has no parameters of single messages; use a point-to-point model")
        return cls(model)

    @property
    def name(self) -> str:
        """The name of the point-to-point model, and how it is applied."""
        return f"{self.base.name}, by schedule"

    @property
    def platform(self) -> str:
        """The platform that the parameters were fitted on."""
        return self.base.platform

    def document(self) -> dict[str, Any]:
        """The document of the point-to-point model, with the model's name and the key `by_schedule`."""
        return {**self.base.document(), "name": self.base.name, "by_schedule": True}

    def seconds(self, case: Case) -> float:
        """The seconds of a case; nan if P exceeds the number of processors of a heterogeneous model."""
        base = self.base
        if base.parameters.heterogeneous and case.procs > base.max_procs:
            return float("nan")
        return play_case(
            case, lambda sizes: model_tables(base.parameters, case.procs, sizes, base.reduce_seconds_per_byte)
        ).seconds
