"""`collwise setup studio`: what it installs, where it listens, and what it leaves as it was."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from collwise.common.folders import SOURCES
from collwise.simulator.execution import packages
from collwise.studies.cli.main import main
from tests.waiting import PATIENCE_SECONDS, wait_for


class Started(Exception):
    """Stands for the start of JupyterLab, after which nothing of collwise is left in the process."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that studio would run; JupyterLab counts as installed."""
    found: list[list[str]] = []

    def start(program: str, command: list[str], environment: dict[str, str]) -> None:
        found.append([*command, f"JUPYTER_TOKEN={environment['JUPYTER_TOKEN']}"])
        raise Started

    monkeypatch.delenv("JUPYTER_TOKEN", raising=False)
    monkeypatch.setattr(packages, "find_spec", lambda name: ModuleSpec(name, None))
    monkeypatch.setattr(os, "execve", start)
    monkeypatch.chdir(SOURCES)  # studio changes to another folder
    return found


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which something listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize(("command", "extra"), [("setup studio", "studio"), ("study luo2020", "notebooks")])
def test_what_the_extra_lacks_is_named_in_one_line(
    command: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    out, error = capsys.readouterr()
    assert (ended.value.code, out, error.count("\n")) == (2, "", 1)
    assert f"pip install 'collwise[{extra}]'" in error
    extras = tomllib.loads((SOURCES / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = [*extras["notebooks"], *(extras["studio"] if extra == "studio" else ())]
    wanted = {Requirement(one).name for one in listed} - {"collwise"}
    assert {*error.partition("packages: ")[2].partition(";")[0].split()} == wanted


@pytest.mark.parametrize("user", [0, 1000])
def test_jupyterlab_listens_where_studio_says(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], user: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    port = free_port()
    with pytest.raises(Started):
        main(["setup", "studio", "--no-browser", "--port", str(port)])
    *command, token = calls[-1]
    assert capsys.readouterr().out == (
        f"JupyterLab listens on http://127.0.0.1:{port}/lab?token={token.partition('=')[2]}\n"
    )
    assert {"--ip=127.0.0.1", f"--port={port}", "--no-browser"} < set(command)
    assert ("--allow-root" in command) == (user == 0)
    assert Path.cwd() == SOURCES / "studies"


def test_notebooks_use_the_store_of_the_folder_or_project_that_studio_is_called_in(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    homes = []

    def start(program: str, command: list[str], environment: dict[str, str]) -> None:
        homes.append(Path(environment["COLLWISE_HOME"]))
        raise Started

    monkeypatch.setattr(os, "execve", start)
    (tmp_path / "project/below").mkdir(parents=True)
    (tmp_path / "project/collwise.toml").touch()
    for folder in ("", "project/below"):
        monkeypatch.chdir(tmp_path / folder)
        with pytest.raises(Started):
            main(["setup", "studio"])
    assert homes == [tmp_path, tmp_path / "project"]


def test_a_taken_port_is_one_line_and_nothing_starts(
    calls: list[list[str]], taken: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["setup", "studio", "--port", str(taken)])
    out, error = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert f"collwise: --port: cannot listen on port {taken}: " in error
    assert [command for command in calls if "jupyterlab" in command] == []


def test_without_a_port_a_free_one_is_taken(
    calls: list[list[str]], taken: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("collwise.studies.cli.setup._FIRST_PORT", taken)
    with pytest.raises(Started):
        main(["setup", "studio"])
    [port] = re.findall(r":(\d+)/lab", capsys.readouterr().out)
    assert int(port) > taken
    assert "--no-browser" not in calls[-1]


def answer(url: str, server: subprocess.Popen[str]) -> bytes:
    """The answer of the server, once it has started."""
    bodies: list[bytes] = []

    def answered() -> bool:
        assert server.poll() is None, "JupyterLab ended"
        with suppress(OSError), urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as response:
            bodies.append(response.read())
        return bool(bodies)

    wait_for(answered, 0.2)
    return bodies[0]


@pytest.mark.slow
def test_jupyterlab_starts_and_other_commands_work_after_it(tmp_path: Path) -> None:
    """In a checkout of its own, since JupyterLab stays in the environment that it was installed in."""
    clone = tmp_path / "a clone"
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "results", "__pycache__", "CMakeLists.txt")
    shutil.copytree(SOURCES, clone, ignore=left_out)
    environment = os.environ | {"COLLWISE_NO_INSTALL": "1", "JUPYTER_CONFIG_DIR": str(tmp_path)}
    command = [clone / "collwise", "setup", "studio", "--no-browser", "--port", str(free_port())]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    try:
        assert server.stdout is not None
        address = server.stdout.readline()
        assert address, (tmp_path / "log").read_text()
        [page, token] = re.findall(r"(http://127\.0\.0\.1:\d+)/lab\?token=(\w+)", address)[0]
        shown = json.loads(answer(f"{page}/api/contents?token={token}", server))
        assert {entry["name"] for entry in shown["content"]} == {"notebooks", "papers"}
        listed = json.loads(answer(f"{page}/api/contents/papers/nuriyev2021?token={token}", server))
        assert "nuriyev2021.py" in {entry["name"] for entry in listed["content"]}
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{page}/api/contents", timeout=PATIENCE_SECONDS)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    where = "from collwise.common import folders; print(folders.SOURCES)"
    python = clone / ".venv/bin/python"
    found = subprocess.run([python, "-P", "-c", where], capture_output=True, text=True, check=True)
    assert found.stdout == f"{clone}\n"
    listing = subprocess.run([clone / "collwise", "platforms", "list"], env=environment, capture_output=True, text=True)
    assert listing.returncode == 0, listing.stderr
    assert "installing" not in listing.stderr
