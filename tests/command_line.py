"""Command lines, as tests call and read them."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import click
import jsonschema
import pytest

from collwise.common import errors
from collwise.studies.cli.json_schema import schema
from collwise.studies.cli.main import collwise, main


class Printed(NamedTuple):
    """The document that a command printed with --json."""

    rows: list[Any]
    facts: dict[str, Any]


def printed(text: str) -> Printed:
    """The rows and facts in what a command printed with --json, which has the form that is documented."""
    document = json.loads(text)
    jsonschema.Draft202012Validator(schema()).validate(document)
    return Printed(document["rows"], document["facts"])


def run(*arguments: str) -> None:
    """Runs a command, which has to succeed."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code


def called(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What a command printed in a folder, and its exit code, as a process of its own would without the imports."""
    errors.warn.cache_clear()
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main(arguments)
    return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), out.getvalue(), err.getvalue())


def read(words: list[str]) -> click.Command:
    """The command that the words call, whose options have been read without running it."""
    context = collwise.make_context("collwise", words)
    command: click.Command = collwise
    while isinstance(command, click.Group):
        remaining = [*context._protected_args, *context.args]
        found, inner, rest = command.resolve_command(context, remaining)
        assert inner is not None
        command, context = inner, inner.make_context(found, rest, parent=context)
    return command
