"""Predictions judged by measured machines: the regrets of all deciders by machine, collective and size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from collwise.checks import JudgedMachines
from collwise.common.units import format_size
from collwise.models.registry import MODEL_NAMES
from collwise.studies.present.shown import Shown, Table, drawing, said
from collwise.studies.reports.markdown import percent
from collwise.validation.measurement.confidence import BY_MEAN, CLOSE, ROBUST, SURE, Kept, Sureness, kept
from collwise.validation.measurement.deciding import FIXED, RULES, TABLE, VOTE
from collwise.validation.measurement.judging import (
    FEW_ITERATIONS,
    POSSIBLE,
    PREDICTED,
    SHEETS,
    SIZE_CLASSES,
    UNTUNED,
    Beside,
    Cell,
    Regrets,
    beside_untuned,
    regrets_of,
)
from collwise.validation.measurement.training import FromMessages

MAIN = (PREDICTED, RULES, UNTUNED, FIXED, VOTE, POSSIBLE)
"""The deciders that every table shows; other deciders are shown only in the tables by machine."""
_OF_MACHINES = ("machine", "cells", "jobs", "median error", *MAIN, "predicted, over the best candidate")
_BESIDE = (
    *("machine", "chosen by", "collectives: better", "at most 5 % worse", "worse"),
    *("cells where untuned loses more than 10 %", "chosen otherwise", "and faster"),
)
_BY_DECIDER = (
    *("machine", "chosen by", "cells", "jobs", "mean", "of jobs drawn again", "predicted there", "median"),
    *("geometric mean", "95th percentile", "worst", "by seconds"),
)
_SURE = (
    *("machine", "cells that matter", "jobs", "lose less than 5 %", "said to be sure", "of these lose less than 5 %"),
    *("mean of jobs, 95 % interval", "less than 5 % against the library's fastest"),
)
_FROM_MESSAGES = (
    *("machine", "job", "collective", "P", "times", "median error", "of the description as it is"),
    "determined by messages: multiplied by",
)
_OTHERS = (
    *("machine", "job", "collective", "P", "figure", "5th percentile", "95th percentile"),
    *("median error at the 5th", "at the 95th"),
)
_RELIABILITY = ("said probability", "cells that matter", "jobs", "mean said", "lose less than 5 %", "95 % interval")
_BOUNDS = (0.0, 0.5, 0.6, 0.7, 0.8, SURE, 1.0)
_PARTS = ("cells", "median error", *(f"mean regret, {name}" for name in MAIN))
_WORST = ("machine", "job", "collective", "P", "processes per node", "m", "chosen", "fastest", "regret")


class _Part(NamedTuple):
    """The cells of a machine: all, or those of one collective, one size class or one number of processes per node.

    `sizes` names the size class or the number of processes per node. `collective` and `sizes` are empty if they do not
    restrict the cells. `regrets` has the regrets of each decider in these cells.
    """

    machine: str
    collective: str
    sizes: str
    cells: Sequence[Cell]
    regrets: Mapping[str, Regrets]

    def error(self, predictor: str = PREDICTED) -> float:
        """The median error of the times that `predictor` predicts; nan if it predicts none."""
        errors = [error for cell in self.cells for error in cell.errors.get(predictor, ())]
        return float(np.median(errors)) if errors else math.nan

    @property
    def floor(self) -> float:
        """The median half-width of measured medians."""
        return float(np.median([cell.floor for cell in self.cells]))

    def mean(self, decider: str) -> str:
        """The mean regret of a decider as text, in percent; '-' if it decides nothing."""
        return percent(self.regrets[decider].mean) if decider in self.regrets else "-"

    def predicted_there(self, decider: str) -> str:
        """The mean regret of the engine's predictions in the cells in which a decider chooses."""
        found = regrets_of([cell for cell in self.cells if decider in cell.choices], PREDICTED)
        return percent(found.mean) if found is not None else "-"


def shown(found: JudgedMachines) -> Shown:
    """The tables, sentences on how they are made, and a row for each decider and part of a machine."""
    every = [part for name in sorted({cell.place.machine for cell in found.cells}) for part in _parts(found, name)]
    whole = [part for part in every if not part.collective and not part.sizes]
    collectives, classes = [part for part in every if part.collective], [part for part in every if part.sizes]
    few = sum(cell.iterations < FEW_ITERATIONS for cell in found.cells)
    models = list(_models(whole))
    beside = [
        (part.machine, decider, *_beside(one))
        for part in whole
        for decider in (PREDICTED, RULES)
        if (one := beside_untuned(part.cells, decider)) is not None
    ]
    telling = [sureness for sureness in found.sure if sureness.tells]
    described = {**found.platforms, **{message.machine: message.platform for message in found.messages}}
    parts: list[Table | str] = [
        Table(
            "Time lost by choices, against the fastest (mean regret)",
            (*_OF_MACHINES, f"95th percentile{'' if found.trained else ', ' + RULES}", "worst"),
            list(map(_of_machine, whole)),
        ),
        Table("Choices compared with the untuned library", _BESIDE, beside, left=2),
        Table("By collective", ("machine", "collective", *_PARTS), list(map(_by_part, collectives)), left=2),
        Table(
            "By message size, and by processes on a node", ("machine", "size", *_PARTS), [*map(_by_part, classes)], 2
        ),
        Table("Every decider", _BY_DECIDER, list(_by_decider(whole)), left=2),
        *([Table(_MODELS, ("predicted by", *(part.machine for part in whole)), models)] if models else []),
        *_sureness(telling),
        Table("The worst choices by predictions", _WORST, list(_worst(whole)), left=3),
        *_messages(found.messages),
        *said(
            "machines",
            found=found,
            described=described,
            few=few,
            few_iterations=FEW_ITERATIONS,
            deciders={"fixed": FIXED, "possible": POSSIBLE, "table": TABLE, "vote": VOTE},
            floors={part.machine: part.floor for part in whole},
        ),
        *found.notes,
    ]
    parts = [part for part in parts if isinstance(part, str) or part.rows]
    known = found.cells or found.messages
    problem = "" if known else "no cell has two algorithms that are in the catalogue and have predicted times"
    sure = [sureness for sureness in telling if sureness.probability >= SURE]
    right_of_all = sum(sureness.cell.lost[sureness.cell.chosen] < CLOSE for sureness in sure)
    facts = {
        **{"sha256": found.sha256, "platforms": dict(found.platforms), "placed": dict(found.placed)},
        "discrepancy": {} if found.discrepancy is None else asdict(found.discrepancy),
        "sure": {
            **{"telling": len(telling), "said": len(sure), "right": sum(sureness.right for sureness in sure)},
            "right_of_all": right_of_all,
        },
        "messages": [asdict(message) for message in found.messages],
    }
    means = {part.machine: {name: regret.mean for name, regret in part.regrets.items()} for part in whole}
    figures = {"machines": drawing("measurements.regrets_figure", means, MAIN[:-1])} if whole else {}
    if telling:
        figures["sure"] = drawing("measurements.sure_figure", list(_reliability(telling)), _coverage(telling))
    return Shown(parts, [row for part in every for row in _rows(part)], facts, figures, problem)


def _parts(found: JudgedMachines, machine: str) -> Iterator[_Part]:
    """A machine's cells: all, by collective, by size class, and by processes per node if these differ."""
    cells = [cell for cell in found.cells if cell.place.machine == machine]
    groups = [("", "", cells)]
    for name in sorted({cell.place.collective for cell in cells}):
        groups.append((name, "", [cell for cell in cells if cell.place.collective == name]))
    groups += [("", name, [cell for cell in cells if cell.size_class == name]) for name in SIZE_CLASSES]
    per_node = sorted({cell.place.processes_per_node for cell in cells})
    for count in per_node if len(per_node) > 1 else ():
        some = [cell for cell in cells if cell.place.processes_per_node == count]
        groups.append(("", f"all, {count} on a node", some))
    for collective, sizes, some in groups:
        if some:
            names = dict.fromkeys(name for cell in some for name in cell.choices) if some is cells else MAIN
            known = {name: one for name in names if (one := regrets_of(some, name)) is not None}
            yield _Part(machine, collective, sizes, some, known)


def _of_machine(part: _Part) -> tuple[object, ...]:
    one = part.regrets.get(RULES, part.regrets[PREDICTED])
    means = map(part.mean, MAIN)
    return (
        part.machine,
        part.regrets[PREDICTED].cells,
        part.regrets[PREDICTED].jobs,
        percent(part.error()),
        *means,
        percent(part.regrets[PREDICTED].over_candidates),
        *map(percent, (one.percentile_95, one.worst)),
    )


def _beside(beside: Beside) -> tuple[object, ...]:
    shares = (
        f"{number} ({percent(number / beside.slow) if beside.slow else '-'})"
        for number in (beside.otherwise, beside.faster)
    )
    return (beside.better, beside.close, beside.worse, beside.slow, *shares)


def _by_decider(whole: Sequence[_Part]) -> Iterator[tuple[object, ...]]:
    for part in whole:
        for decider in [*MAIN, *sorted(set(part.regrets) - {*MAIN, SHEETS, *MODEL_NAMES})]:
            if (one := part.regrets.get(decider)) is not None:
                drawn = "one job" if math.isnan(one.low) else f"{percent(one.low)} to {percent(one.high)}"
                numbers = (one.median, one.geometric_mean, one.percentile_95, one.worst, one.by_seconds)
                row = (part.machine, decider, one.cells, one.jobs, percent(one.mean), drawn)
                yield (*row, part.predicted_there(decider), *map(percent, numbers))


_MODELS = (
    "Data sheets and models: cells, median error, mean regret (in brackets the engine's mean regret in the same cells)"
)


def _models(whole: Sequence[_Part]) -> Iterator[tuple[object, ...]]:
    for name in (SHEETS, *MODEL_NAMES):
        if any(name in part.regrets for part in whole):
            yield (name, *(_of_model(part, name) for part in whole))


def _of_model(part: _Part, name: str) -> str:
    if name not in part.regrets:
        return "-"
    error, mean = percent(part.error(name)), part.mean(name)
    return f"{part.regrets[name].cells}: {error}, {mean} ({part.predicted_there(name)})"


def _messages(found: Sequence[FromMessages]) -> Iterator[Table | str]:
    """Yields tables of the predictions made only from messages between two nodes, if there are any."""
    if not found:
        return
    rows = [
        (
            *_call(messages),
            messages.times,
            percent(messages.error),
            percent(messages.described),
            ", ".join(f"{name} x {factor:.2f}" for name, factor in messages.told.items()),
        )
        for messages in found
    ]
    yield Table("Predicted from messages between two nodes alone", _FROM_MESSAGES, rows, left=3, wrap=True)
    priors = [
        (*_call(messages), other.title, *(f"x {factor:.2f}" for factor in other.factors), *map(percent, other.errors))
        for messages in found
        for other in messages.others
    ]
    yield Table("Figures not determined by messages: errors at both ends of the prior range", _OTHERS, priors, left=5)
    yield (
        "from messages: one figure at a time is set to an end of its prior range; all others stay as fitted, or as "
        "described if messages do not determine them"
    )


def _call(messages: FromMessages) -> tuple[object, ...]:
    return (
        messages.machine,
        messages.job,
        messages.collective,
        f"{messages.procs} ({messages.processes_per_node} on a node)",
    )


def _sureness(telling: Sequence[Sureness]) -> Iterator[Table | str]:
    """Yields tables that compare predicted probabilities with how often choices were right, if there are any."""
    if not telling:
        return
    machines = sorted({sureness.cell.place.machine for sureness in telling})
    groups = {name: [sureness for sureness in telling if sureness.cell.place.machine == name] for name in machines}
    rows = [_of_sure(name, some) for name, some in (groups | {"all": telling}).items()]
    yield Table("How sure choices by predictions are", _SURE, rows)
    bins = [(f"{100 * low:g} to {100 * high:g} %", one.choices, one.jobs, percent(said), _share(one), _interval(one))
            for low, high, said, one in _reliability(telling)]  # fmt: skip
    yield Table("Said probabilities of losing less than 5 %, and the shares of choices that did", _RELIABILITY, bins)
    deciders = {"mean": BY_MEAN, "robust": ROBUST, "rules": RULES}
    yield from said("sure_machines", close=f"{100 * CLOSE:g}", limit=f"{100 * SURE:g}", deciders=deciders)


def _of_sure(name: str, telling: Sequence[Sureness]) -> tuple[object, ...]:
    sure = [sureness for sureness in telling if sureness.probability >= SURE]
    every, right = (kept(some, [sureness.right for sureness in some]) for some in (telling, sure))
    oracle = kept(sure, [sureness.cell.lost[sureness.cell.chosen] < CLOSE for sureness in sure])
    said = f"{len(sure)} ({percent(len(sure) / len(telling))})"
    return (name, every.choices, every.jobs, _share(every), said, _share(right), _interval(right), _share(oracle))


def _share(found: Kept) -> str:
    return f"{found.right} ({percent(found.right / found.choices)})" if found.choices else "-"


def _interval(found: Kept) -> str:
    return f"{percent(found.share)}, {percent(found.low)} to {percent(found.high)}" if found.choices else "-"


def _reliability(telling: Sequence[Sureness]) -> Iterator[tuple[float, float, float, Kept]]:
    """Yields the bounds and the mean of each bin of predicted probabilities, and the bin's share of right choices."""
    for low, high in pairwise(_BOUNDS):
        some = [
            sureness for sureness in telling if low <= sureness.probability < high or sureness.probability == high == 1
        ]
        if some:
            yield (
                low,
                high,
                float(np.mean([sureness.probability for sureness in some])),
                kept(some, [sureness.right for sureness in some]),
            )


def _coverage(telling: Sequence[Sureness]) -> tuple[list[float], list[float]]:
    """The share of the n surest choices, and the part of these that loses 5 % or more, by n."""
    ordered = sorted(telling, key=lambda sureness: -sureness.probability)
    wrong = np.cumsum([not sureness.right for sureness in ordered])
    counts = np.arange(1, len(ordered) + 1)
    return (counts / len(ordered)).tolist(), (wrong / counts).tolist()


def _by_part(part: _Part) -> tuple[object, ...]:
    name = part.collective or part.sizes
    return (part.machine, name, len(part.cells), percent(part.error()), *map(part.mean, MAIN))


def _worst(whole: Sequence[_Part]) -> Iterator[tuple[object, ...]]:
    for part in whole:
        cell = part.regrets[PREDICTED].worst_cell if PREDICTED in part.regrets else None
        if cell is not None:
            at = cell.place
            place = (at.job, at.collective, at.procs, at.processes_per_node, format_size(cell.message_bytes))
            yield (part.machine, *place, cell.chosen, cell.oracle, percent(cell.regrets[PREDICTED]))


def _rows(part: _Part) -> Iterator[dict[str, Any]]:
    for decider, regret in part.regrets.items():
        numbers = {name: value for name, value in vars(regret).items() if name != "worst_cell"}
        numbers |= {"median_error": part.error(decider), "floor": part.floor}
        plain = {name: None if math.isnan(value) else value for name, value in numbers.items()}
        yield {"machine": part.machine, "collective": part.collective, "sizes": part.sizes, "decider": decider, **plain}
