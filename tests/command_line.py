"""Command lines, as tests call and read them."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click
import jsonschema
import pytest

from collwise.common import errors
from collwise.studies.cli.json_schema import schema
from collwise.studies.cli.main import collwise, main

# What takes most of the time that a command takes to start.
_HEAVY = ("matplotlib.figure", "pandas", "rich.console", "rich.progress", "scipy.optimize", "scipy.stats", "xarray")


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


def succeeded(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The same of a command that has to succeed."""
    done = called(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


def forked(
    *arguments: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a command printed, also by the programs that it starts, and its exit code.

    It runs in a process that begins as a copy of this one: all that a new process is, but for the imports.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        variables = dict(os.environ if environment is None else environment)
        with open(os.devnull) as nothing:
            child = _started(arguments, cwd or Path(), variables, [one.fileno() for one in (nothing, out, err)])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


@contextlib.contextmanager
def serving(address: Path) -> Iterator[str]:
    """Commands run in processes as those of `forked`, for clients that connect here (tests/pages/bin/collwise)."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        for name in _HEAVY:
            importlib.import_module(name)
        server = os.fork()
        if server == 0:
            _serve(listening)
    try:
        yield str(address)
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


def _serve(listening: socket.socket) -> NoReturn:
    """Starts the command of each client, which sends its exit code."""

    def ended(*_: object) -> None:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    try:
        signal.signal(signal.SIGCHLD, ended)
        while True:
            client, _ = listening.accept()
            with client:
                told, streams, *_ = socket.recv_fds(client, 1 << 20, 3)
                arguments, cwd, variables = json.loads(told)
                _started(arguments, Path(cwd), variables, streams, partial(_tell, client))
            for stream in streams:
                os.close(stream)
    finally:
        os._exit(1)


def _tell(client: socket.socket, code: int) -> None:
    client.send(str(code).encode())


def _started(
    arguments: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    streams: Sequence[int],
    done: Callable[[int], object] = lambda code: None,
) -> int:
    """The process of a command with these standard streams."""
    if child := os.fork():
        return child
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, source in enumerate(streams):
            os.dup2(source, target)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(cwd)
        sys.argv = ["collwise", *arguments]
        errors.warn.cache_clear()
        main(arguments)
    except SystemExit as exited:
        code = exited.code if isinstance(exited.code, int) else int(exited.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        with contextlib.suppress(OSError):
            done(code)
        os._exit(code)


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
