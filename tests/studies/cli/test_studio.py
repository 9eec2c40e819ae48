"""`collwise studio`: what it installs, where it listens, and what a visitor sees and does in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import IO

import pytest
from packaging.requirements import Requirement

from collwise.common.folders import SOURCES
from collwise.simulator.execution import packages
from collwise.studies.cli.main import main
from collwise.studies.papers.notebook import known_studies
from collwise.studies.reports.start_page import write_studio
from tests.browser import Browser, browser
from tests.needs import needs
from tests.waiting import PATIENCE_SECONDS

INTERRUPTED = 130


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The command lines that studio would run, with its settings; JupyterLab counts as installed."""
    found: list[list[str]] = []

    def start(
        command: list[str],
        environment: Mapping[str, str],
        grace_seconds: float,
        log: IO[str],
        started: Callable[[Callable[[], int | None]], None],
    ) -> int:
        given = ("JUPYTER_TOKEN", "COLLWISE_HOME", "JUPYTER_CONFIG_PATH")
        found.append([*command, *(f"{name}={environment[name]}" for name in given)])
        port = next(int(word.partition("=")[2]) for word in command if word.startswith("--port="))
        with socket.create_server(("127.0.0.1", port)):
            started(lambda: None)
        return INTERRUPTED

    monkeypatch.delenv("JUPYTER_TOKEN", raising=False)
    monkeypatch.setattr(packages, "find_spec", lambda name: ModuleSpec(name, None))
    monkeypatch.setattr("collwise.simulator.execution.processes.run_attached", start)
    monkeypatch.chdir(tmp_path)
    return found


def started(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which something listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize(("command", "extra"), [("studio", "studio"), ("check study luo2020", "notebooks")])
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
def test_the_address_is_the_last_line(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], user: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    port = free_port()
    started("studio", "--no-browser", "--port", str(port))
    command = calls[-1]
    [token] = [word.partition("=")[2] for word in command if word.startswith("JUPYTER_TOKEN=")]
    out, error = capsys.readouterr()
    assert out.splitlines()[-1] == f"http://127.0.0.1:{port}/files/start.html?token={token}"
    assert error == ""
    assert {"--ip=127.0.0.1", f"--port={port}", "--no-browser"} < set(command)
    assert ("--allow-root" in command) == (user == 0)
    assert f"COLLWISE_HOME={Path.cwd()}" in command
    assert not any(token in word for word in command if not word.startswith("JUPYTER_TOKEN="))


def test_notebooks_use_the_store_of_the_folder_or_project_that_studio_is_called_in(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "project/below").mkdir(parents=True)
    (tmp_path / "project/collwise.toml").touch()
    for folder in ("", "project/below"):
        monkeypatch.chdir(tmp_path / folder)
        started("studio")
    homes = [word.partition("=")[2] for command in calls for word in command if word.startswith("COLLWISE_HOME=")]
    assert homes == [str(tmp_path), str(tmp_path / "project")]
    assert (tmp_path / "project/results/studio/whatif.ipynb").exists()
    assert not (tmp_path / "project/below/results").exists()


def test_a_taken_port_is_one_line_and_nothing_starts(
    calls: list[list[str]], taken: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["studio", "--port", str(taken)])
    out, error = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert f"collwise: --port: cannot listen on port {taken}: " in error
    assert calls == []


def test_without_a_port_a_free_one_is_taken(
    calls: list[list[str]], taken: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("collwise.studies.cli.studio._FIRST_PORT", taken)
    started("studio")
    [port] = re.findall(r":(\d+)/files", capsys.readouterr().out)
    assert int(port) > taken
    assert "--no-browser" not in calls[-1]


def test_jupyterlab_that_fails_is_one_line_that_names_the_log(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("collwise.simulator.execution.processes.run_attached", lambda *given: 3)
    with pytest.raises(SystemExit) as ended:
        main(["studio"])
    log = tmp_path / "results/studio/jupyter.log"
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"collwise: JupyterLab ended with exit code 3; {log} says why\n"


def test_the_folder_has_every_notebook_and_keeps_changed_ones(tmp_path: Path) -> None:
    write_studio(tmp_path)
    assert {path.stem for path in tmp_path.glob("*.ipynb")} == {*known_studies()}
    assert all(json.loads(path.read_text())["metadata"]["kernelspec"] for path in tmp_path.glob("*.ipynb"))
    (tmp_path / "whatif.ipynb").write_text("changed")
    (tmp_path / "own_cluster.ipynb").unlink()
    write_studio(tmp_path)
    assert (tmp_path / "whatif.ipynb").read_text() == "changed"
    assert (tmp_path / "own_cluster.ipynb").exists()
    page = (tmp_path / "start.html").read_text()
    assert page.count("?</strong>") == 5
    assert all(f"{name}.ipynb" in page for name in known_studies())


@contextmanager
def studio(folder: Path, launcher: tuple[str | Path, ...]) -> Iterator[str]:
    """The address of the studio, started in a folder by a command."""
    environment = os.environ | {"COLLWISE_NO_INSTALL": "1", "JUPYTER_CONFIG_DIR": str(folder / "settings")}
    environment |= {"HOME": str(folder), "COLLWISE_HOME": str(folder)}
    command = [*launcher, "studio", "--no-browser", "--port", str(free_port())]
    with (folder / "log").open("w+") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        try:
            assert server.stdout is not None
            said = [server.stdout.readline() for _ in range(2)]
            assert said[-1].startswith("http"), (folder / "log").read_text()
            yield said[-1].strip()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(PATIENCE_SECONDS)
            assert server.stdout.read() == ""
        assert (folder / "log").read_text() == ""
    assert server.returncode == 0


CELLS = "document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell').length"
PICTURES = "document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output img').length"
OTHER = "[...document.querySelectorAll('.jp-DirListing-item')].find(one => one.innerText.includes('getting_started'))"
LOADED = "[...document.querySelectorAll('img')].filter(one => one.src.startsWith('blob') && one.naturalWidth)"


def reads_on(window: Browser) -> bool:
    """Whether nothing of the page is cut off at the right."""
    return bool(window.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@needs("browser", "studio")
def test_a_visitor_opens_notebooks_and_moves_a_slider(tmp_path: Path) -> None:
    with studio(tmp_path, (sys.executable, "-P", "-m", "collwise.studies")) as address, browser() as window:
        window.open(address)
        assert window.evaluate("document.querySelector('h1').innerText").endswith("?")
        window.resize(390, 800)
        assert reads_on(window)
        # The page without code: a slider changes both maps.
        window.resize(1400, 900)
        window.click("document.querySelector('a[href*=\"voila\"]')")
        window.wait_for(f"{LOADED}.length === 2")
        assert window.evaluate("document.querySelectorAll('.jp-CodeMirrorEditor, .cm-editor').length") == 0
        before = window.evaluate(f"{LOADED}.map(one => one.src)")
        window.evaluate("document.querySelector('.noUi-handle').focus()")
        for _ in range(8):
            window.press("ArrowLeft", 37)
        window.wait_for(f"{LOADED}.filter(one => !{json.dumps(before)}.includes(one.src)).length === 2")
        window.wait_for("document.body.innerText.includes('bandwidth x0.25: another choice is the best at')")
        window.resize(390, 800)
        assert reads_on(window)
        window.open(address)
        window.resize(1400, 3000)  # JupyterLab draws only the cells that the window shows
        # A click on a question opens the notebook, as a notebook, with its output.
        window.click("document.querySelector('a[href*=\"own_cluster\"]')")
        window.wait_for(f"{CELLS} > 5 && {PICTURES} > 0")
        # A double click on a file opens another one.
        window.click(OTHER, 2)
        window.wait_for("document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)').innerText.includes('Dahu')")
        window.wait_for(f"{CELLS} > 5 && {PICTURES} > 0")
        assert window.evaluate("document.querySelectorAll('.jp-Dialog, .Toastify__toast').length") == 0


@pytest.mark.slow
def test_the_studio_starts_and_other_commands_work_after_it(tmp_path: Path) -> None:
    """In a checkout of its own, since JupyterLab stays in the environment that it was installed in."""
    clone = tmp_path / "a clone"
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "results", "__pycache__", "CMakeLists.txt")
    shutil.copytree(SOURCES, clone, ignore=left_out)
    home = tmp_path / "home"
    home.mkdir()
    environment = os.environ | {"COLLWISE_NO_INSTALL": "1"}
    # This command says what it installs; the studio does not.
    listing = [clone / "collwise", "platforms", "show"]
    subprocess.run([clone / "collwise", "studio", "--port", "0"], env=environment, capture_output=True, check=False)
    with studio(home, (clone / "collwise",)) as address:
        [page, token] = re.findall(r"(http://127\.0\.0\.1:\d+)/files/start\.html\?token=(\w+)", address)[0]

        def contents(query: str) -> bytes:
            with urllib.request.urlopen(f"{page}/api/contents{query}", timeout=PATIENCE_SECONDS) as response:
                found: bytes = response.read()
            return found

        shown = json.loads(contents(f"?token={token}"))
        assert {entry["name"] for entry in shown["content"]} == {f"{name}.ipynb" for name in known_studies()}
        with pytest.raises(urllib.error.HTTPError, match="403"):
            contents("")
    where = "from collwise.common import folders; print(folders.SOURCES)"
    python = clone / ".venv/bin/python"
    found = subprocess.run([python, "-P", "-c", where], capture_output=True, text=True, check=True)
    assert found.stdout == f"{clone}\n"
    done = subprocess.run(listing, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "installing" not in done.stderr
