"""The output of commands: tables and JSON.

Rich shows tables. It loads only when it is needed, so that a command's help is quick.
"""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from collwise.common.errors import UsageError
from collwise.common.program import __version__, program_name
from collwise.studies.cli.commands import AllCommands
from collwise.studies.present.shown import Table

CSV = "collwise.csv"
"""The key in click's context under which --csv is kept."""


def own_command() -> str:
    """The running command, quoted for a shell."""
    return f"{program_name()} {shlex.join(sys.argv[1:])}"


def print_table(table: Table) -> None:
    """Prints a table on standard output."""
    from collwise.studies.cli.tables import WholeTable, stdout_console

    stdout_console().print(WholeTable(table))


def confirm(question: str, consequence: str, yes: bool) -> None:
    """Asks whether to go on, unless --yes is given. Raises UsageError if nobody can answer."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{consequence}; without a terminal, nobody can be asked: add --yes")
    click.confirm(question, abort=True, err=True)


def print_json(rows: Sequence[Mapping[Any, Any]], facts: Mapping[str, Any] | None = None) -> None:
    """Prints a command's rows and facts as one JSON document. With --csv it prints the rows alone.

    docs/json.md describes the form; json_schema.toml has the columns of each command. nan and infinity become null,
    since JSON has neither.
    """
    context = click.get_current_context()
    if context.meta.get(CSV):
        click.echo(csv_text([_finite(row) for row in rows]), nl=False)
        return
    document = {
        "collwise": __version__,
        "command": _called(context),
        "call": own_command(),
        "facts": facts or {},
        "rows": rows,
    }
    click.echo(json.dumps(_finite(document), indent=2))


def _called(context: click.Context) -> str:
    """The words of the command that runs, without `collwise`."""
    words: list[str] = []
    one: click.Context | None = context
    while one is not None and not isinstance(one.command, AllCommands):
        words.insert(0, str(one.info_name))
        one = one.parent
    return " ".join(words)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with every column that any row has. Lists and objects in cells become JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: json.dumps(cell) if isinstance(cell, dict | list) else cell for key, cell in row.items()})
    return text.getvalue()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value
