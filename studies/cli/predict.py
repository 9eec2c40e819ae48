"""collwise predict: models evaluated."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

import collwise
from collwise.common.errors import UsageError, warn
from collwise.common.units import format_seconds, format_size
from collwise.models.piecewise import Array
from collwise.models.registry import MODEL_NAMES
from collwise.studies.cli.commands import example
from collwise.studies.cli.options import (
    COUNTS,
    NAMES,
    SIZES,
    NamedChoice,
    json_option,
    parsed,
    print_json,
    refuse_options,
    segments_option,
)
from collwise.studies.cli.tables import stdout_console, table
from collwise.validation.selection.defaults import sizes_of

_MOST_ROWS = 60


def _pair(text: str) -> tuple[int, int]:
    ranks = [part.strip() for part in text.split(",")]
    if len(ranks) != 2 or not all(rank.isdecimal() for rank in ranks) or int(ranks[0]) == int(ranks[1]):
        raise UsageError(f"'{text}': write two different processes, for example 0,1")
    return int(ranks[0]), int(ranks[1])


@click.command(epilog=example("predict --parameters mine.parameters.toml --collective bcast --procs 2:8:+1"))
@click.option("--parameters", required=True, type=click.Path(path_type=Path), help="A file that 'collwise fit' wrote.")
@click.option("--collective", help="A name (see 'collwise algorithms').")
@click.option(
    "--pair", type=parsed("pair", _pair), metavar="I,J", help="A message from process I to J instead of a collective."
)
@click.option("--algorithms", type=NAMES, help="Names by commas, or all.")
@click.option("--procs", type=COUNTS, help="Process counts: 50,80,90 or 2:1000:+1.")
@click.option("--sizes", type=SIZES, help="Message sizes: 8KiB:4MiB:x2. Default: the paper's.")
@segments_option(None, default_text="that of the fit, or 0")
@click.option(
    "--model", type=NamedChoice("model", MODEL_NAMES), help="One of the file's. Default: what it was made for."
)
@json_option
@click.pass_context
def predict(
    context: click.Context,
    parameters: Path,
    collective: str | None,
    pair: tuple[int, int] | None,
    algorithms: Sequence[str] | None,
    procs: Sequence[int] | None,
    sizes: Sequence[int] | None,
    segments: Sequence[int] | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Evaluates models over arrays of P and m at once, or the time of single messages."""
    if pair is not None:
        refuse_options(
            context, ("collective", "algorithms", "procs", "segments", "model"), "collectives, not for --pair"
        )
        _predict_pair(parameters, pair, sizes_of("bcast", sizes), as_json)
        return
    if collective is None:
        raise UsageError("name one of --collective and --pair")
    if procs is None:
        raise UsageError("--procs is missing: process counts, for example 50,80,90")
    started = time.perf_counter()
    times = collwise.predict(parameters, collective, procs, sizes, algorithms=algorithms, segments=segments, name=model)
    elapsed = time.perf_counter() - started
    if unknown := int(times.seconds.isna().sum()):
        click.echo(f"collwise: {unknown} times are not deterministic, or beyond what was fitted", err=True)
    message_bytes = times.message_bytes.unique().tolist()
    several_segments = segments is not None and len(segments) > 1
    seconds = {
        f"{name}, {format_size(segment)}" if several_segments and segment else name: one.seconds.to_numpy().reshape(
            len(procs), -1
        )
        for (name, segment), one in times.groupby(["algorithm", "segment_bytes"], sort=False)
    }
    predicted_by = times.attrs["model"]
    if as_json:
        found = {label: values.tolist() for label, values in seconds.items()}
        print_json({"model": predicted_by, "procs": list(procs), "message_bytes": message_bytes, "seconds": found})
        return
    rows = [
        (count, format_size(size), *(_seconds_text(values[i, j]) for values in seconds.values()))
        for i, count in enumerate(procs)
        for j, size in enumerate(message_bytes)
    ]
    title = f"{collective} on {times.attrs['platform']}, predicted by {predicted_by}"
    stdout_console().print(table(title, ["P", "m", *seconds], rows[:_MOST_ROWS], left=0, keys=2))
    if len(rows) > _MOST_ROWS:
        click.echo(f"the first {_MOST_ROWS} of {len(rows)} points; --json prints all")
    click.echo(f"{len(times)} predictions in {format_seconds(elapsed)}")


def _seconds_text(seconds: float) -> str:
    return format_seconds(seconds) if np.isfinite(seconds) else "-"


def _predict_pair(path: Path, pair: tuple[int, int], sizes: Sequence[int], as_json: bool) -> None:
    from collwise.models.loading import models_of
    from collwise.models.parameter_file import FittedParameters
    from collwise.validation.fitting.models_by_name import beyond_what_is_known

    fitted = FittedParameters.load(path)
    sender, receiver = pair
    if fitted.parameters.heterogeneous and max(pair) >= fitted.procs:
        raise UsageError(f"--pair '{sender},{receiver}': {path} knows processes 0 to {fitted.procs - 1}")
    model = next(iter(models_of(fitted).values()))
    for line in beyond_what_is_known(model, "bcast", max(pair) + 1, max(sizes)):
        warn(line)
    seconds: Array = fitted.parameters.predict(np.array(sizes), sender, receiver)
    if as_json:
        print_json({"model": fitted.family, "message_bytes": list(sizes), "seconds": seconds.tolist()})
        return
    rows = [(format_size(size), format_seconds(one)) for size, one in zip(sizes, seconds, strict=True)]
    title = f"message from {sender} to {receiver} on {fitted.platform}, predicted by {fitted.family}"
    stdout_console().print(table(title, ["m", "seconds"], rows, left=0))
