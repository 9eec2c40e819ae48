"""collwise studio: opens the notebooks in JupyterLab, from a start page that lists their questions."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.folders import SOURCES
from collwise.common.project import HOME, find_project, results_folder
from collwise.studies.cli.declare import option
from collwise.studies.cli.derive import command

_LOOPBACK = "127.0.0.1"
_FIRST_PORT = 8888  # Jupyter's own
_SETTINGS = SOURCES / "studies" / "jupyter"
"""Jupyter's settings: no news, no question about the kernel, and the start page."""
_LOG = "jupyter.log"
_GRACE_SECONDS = 10
"""Time in which Jupyter ends its kernels."""


@command("studio --port 8890 --no-browser")
def studio(
    port: int | None = option(click.IntRange(1, 65535)),
    browser: bool = option(default=True),
) -> None:
    """Opens notebooks in a browser, from a start page that lists them by the question each answers.

    That page also leads to an interactive what-if page, which needs no programming. The notebooks are copied to
    results/studio, where your changes are kept. The studio can be reached only from this machine, at the printed
    address, which contains the access token. Ctrl-C ends it.
    """
    from collwise.simulator.execution.processes import run_attached
    from collwise.studies.reports.start_page import START, write_studio

    port = _free_port(port)
    # Notebooks keep their times where this command would.
    project = find_project()
    home = Path.cwd() if project is None else project.folder
    folder = results_folder().absolute() / "studio"
    write_studio(folder)
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_hex(24)

    def announce(ended: Callable[[], int | None]) -> None:
        while ended() is None:
            with suppress(OSError), socket.create_connection((_LOOPBACK, port)):
                click.echo(f"the notebooks are in {folder}; Ctrl-C ends the studio. Open it in a browser:")
                click.echo(f"http://{_LOOPBACK}:{port}/files/{START}?token={token}")
                sys.stdout.flush()
                return
            time.sleep(0.1)

    called = [sys.executable, "-P", "-m", "jupyterlab", str(folder), f"--ip={_LOOPBACK}", f"--port={port}"]
    called += ["--allow-root"] * (os.geteuid() == 0) + ["--no-browser"] * (not browser)
    settings = os.pathsep.join(filter(None, (str(_SETTINGS), os.environ.get("JUPYTER_CONFIG_PATH"))))
    # Other users of the machine can read a command line, but not an environment.
    given = {"JUPYTER_TOKEN": token, "JUPYTER_CONFIG_PATH": settings, HOME: str(home)}
    with (folder / _LOG).open("w") as log:
        code = run_attached(called, given, _GRACE_SECONDS, log, announce)
    if code not in (0, 128 + signal.SIGINT):
        raise CollwiseError(f"JupyterLab ended with exit code {code}; {folder / _LOG} says why")


def _free_port(asked: int | None) -> int:
    """The port asked for, or the first free one, starting at 8888. Raises UsageError if there is none."""
    ports = [asked] if asked is not None else range(_FIRST_PORT, _FIRST_PORT + 100)
    for port in ports:
        with socket.socket() as trial:
            # As in Jupyter, connections that have just ended do not keep a port in use.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((_LOOPBACK, port))
            except OSError as problem:
                reason = problem.strerror
                continue
            return port
    if asked is not None:
        raise UsageError(
            f"--port: cannot listen on port {asked}: {reason}; give another port, or omit --port to use a free one"
        )
    raise UsageError(f"no free port from {ports[0]} to {ports[-1]}; name another one with --port NUMBER")
