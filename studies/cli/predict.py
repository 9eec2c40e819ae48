"""collwise predict: times that fitted models predict for collectives, and for messages between two processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import collwise
from collwise.common.errors import UsageError, note, warn
from collwise.common.units import format_seconds, format_size
from collwise.studies.cli import declare, options, types
from collwise.studies.cli.declare import command, flag, group, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import ALGORITHMS, COLLECTIVE, COUNTS, PATH, SIZES
from collwise.validation.times.defaults import sizes_of

if TYPE_CHECKING:
    from collwise.models.piecewise import Array

_MOST_ROWS = 60


def _pair(text: str) -> tuple[int, int]:
    ranks = [part.strip() for part in text.split(",")]
    if len(ranks) != 2 or not all(rank.isdecimal() for rank in ranks) or int(ranks[0]) == int(ranks[1]):
        raise UsageError(f"'{text}': write two different processes, for example 0,1")
    return int(ranks[0]), int(ranks[1])


@command("predict --parameters mine.parameters.toml --collective bcast --procs 2:8:+1")
def predict(
    parameters: Path = option("A file that 'collwise fit' wrote.", PATH, required=True),
    collective: str | None = option("A name (see 'collwise algorithms').", COLLECTIVE),
    pair: tuple[int, int] | None = option(
        "A message from process I to J instead of a collective.", types.Parsed("pair", _pair), metavar="I,J"
    ),
    how: dict[str, Any] = group(
        dict,
        algorithms=option("Names by commas, or all.", ALGORITHMS),
        procs=option("Process counts: 50,80,90 or 2:1000:+1.", COUNTS),
        sizes=option("Message sizes: 8KiB:4MiB:x2. Default: the paper's.", SIZES),
        segments=options.segments(None, default_text="that of the fit, or 0"),
        name=options.MODEL,
        by_schedule=flag(
            "Apply a point-to-point model to the messages that each algorithm sends, not by a formula; for all "
            "collectives."
        ),
    ),
    as_json: bool = options.JSON,
) -> None:
    """Evaluates models over arrays of P and m at once, or the time of single messages."""
    import numpy as np

    if pair is not None:
        declare.refuse_options(("collective", *(set(how) - {"sizes"})), "collectives, not for --pair")
        _predict_pair(parameters, pair, sizes_of("bcast", how["sizes"]), as_json)
        return
    if collective is None:
        raise UsageError("name one of --collective and --pair")
    if how["procs"] is None:
        raise UsageError("--procs is missing: process counts, for example 50,80,90")
    evaluate = collwise.predict  # this loads xarray, which is no part of the time
    started = time.perf_counter()
    (times,) = evaluate(parameters, collective, **how).values()
    elapsed = time.perf_counter() - started
    every = np.moveaxis(times.seconds.values, 0, -1)
    if unknown := int(np.isnan(every).sum()):
        note(f"{unknown} times are not deterministic, or beyond what was fitted")
    several_segments = len(how["segments"] or ()) > 1
    labels = [
        one.algorithm + (f", {format_size(one.segment_bytes)}" if several_segments and one.segment_bytes else "")
        for one in times.choices
    ]
    points = times.grid.points
    if as_json:
        seconds = times.seconds.values.reshape(len(labels), -1)
        records = [
            {
                **{"collective": collective, "algorithm": one.algorithm, "segment_bytes": one.segment_bytes},
                **{"procs": count, "message_bytes": size, "seconds": value},
            }
            for one, row in zip(times.choices, seconds.tolist(), strict=True)
            for (count, size), value in zip(points, row, strict=True)
        ]
        print_json(records, {"model": times.between.name if times.between else ""})
        return
    rows = [
        (count, format_size(size), *(format_seconds(one) if np.isfinite(one) else "-" for one in row))
        for (count, size), row in zip(points, every.reshape(len(points), -1), strict=True)
    ]
    title = f"{collective} on {times.platform}, predicted by {times.maker.removeprefix('model ')}"
    print_table(title, ["P", "m", *labels], rows[:_MOST_ROWS], left=0, keys=2)
    if len(rows) > _MOST_ROWS:
        click.echo(f"the first {_MOST_ROWS} of {len(rows)} points; --json prints all")
    click.echo(f"{every.size} predictions in {format_seconds(elapsed)}")


def _predict_pair(path: Path, pair: tuple[int, int], sizes: Sequence[int], as_json: bool) -> None:
    import numpy as np

    from collwise.models.parameters import FittedParameters
    from collwise.validation.fitting.models_by_name import beyond_what_is_known, models_of

    fitted = FittedParameters.load(path)
    sender, receiver = pair
    if fitted.parameters.heterogeneous and max(pair) >= fitted.procs:
        raise UsageError(f"--pair '{sender},{receiver}': {path} knows processes 0 to {fitted.procs - 1}")
    model = next(iter(models_of(fitted).values()))
    for line in beyond_what_is_known(model, "bcast", max(pair) + 1, max(sizes)):
        warn(line)
    seconds: Array = fitted.parameters.predict(np.array(sizes), sender, receiver)
    if as_json:
        found = zip(sizes, seconds.tolist(), strict=True)
        print_json([{"message_bytes": size, "seconds": one} for size, one in found], {"model": fitted.family})
        return
    rows = [(format_size(size), format_seconds(one)) for size, one in zip(sizes, seconds, strict=True)]
    title = f"message from {sender} to {receiver} on {fitted.platform}, predicted by {fitted.family}"
    print_table(title, ["m", "seconds"], rows, left=0)
