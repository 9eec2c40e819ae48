"""The launcher: where it can be called from, and what it says when something it needs is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.needs import needs

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER = ROOT / "collwise"
# What every Linux has and the launcher itself is made of.
BASICS = ("bash", "cat", "env", "find", "mkdir", "readlink", "rm", "sort", "stat", "tail")

# Stands in for an interpreter that passes the launcher's check and whose `-m venv` and `-m pip` do nothing but leave
# an interpreter that prints how it was called.
FAKE_PYTHON = """#!/bin/bash
case "$*" in
    *"import ensurepip"*) echo "$0" ;;
    *"-m venv"*) echo made >>"{made}"; mkdir -p "${{@: -1}}/bin"; printf '%s' '{inner}' >"${{@: -1}}/bin/python"
        /bin/chmod +x "${{@: -1}}/bin/python" ;;
esac
"""
FAKE_VENV_PYTHON = '#!/bin/bash\ncase "$*" in *"-m pip"*) ;; *) echo "$@" ;; esac\n'


def call(
    launcher: Path, *arguments: str, path: Path | None = None, cwd: Path | None = None, no_install: str = "1"
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLLWISE_NO_INSTALL": no_install}
    if path is not None:
        environment["PATH"] = str(path)
    return subprocess.run(
        [shutil.which("bash") or "bash", launcher, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with the basics and nothing that the launcher would have to install."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in BASICS:
        (folder / name).symlink_to(shutil.which(name) or pytest.fail(f"this machine has no {name}"))
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout with the launcher and no C sources, in a folder whose name has a space."""
    folder = tmp_path / "a clone"
    folder.mkdir()
    shutil.copy(LAUNCHER, folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def add_python(tools: Path) -> Path:
    """Put the fake python3 on the PATH; the file in which it notes each environment it makes."""
    made = tools / "environments-made"
    python = tools / "python3"
    python.write_text(FAKE_PYTHON.format(made=made, inner=FAKE_VENV_PYTHON))
    python.chmod(0o755)
    return made


def add_commands(tools: Path, *names: str) -> None:
    for name in names:
        (tools / name).symlink_to("/bin/true")


def add_apt(tools: Path, provides: str) -> Path:
    """A fake apt-get that brings the command `provides`; the file in which it notes its calls. sudo just runs."""
    calls = tools / "apt-calls"
    (tools / "apt-get").write_text(
        f'#!/bin/bash\necho "$DEBIAN_FRONTEND $@" >>"{calls}"\n'
        f'case "$*" in *install*) /bin/ln -sf /bin/true "{tools}/{provides}"; exit 1 ;; esac\n'
    )
    (tools / "sudo").write_text('#!/bin/bash\nexec "$@"\n')
    for name in ("apt-get", "sudo"):
        (tools / name).chmod(0o755)
    add_commands(tools, "dpkg")
    return calls


def test_syntax_is_sound() -> None:
    subprocess.run(["bash", "-n", LAUNCHER, ROOT / ".ci/run"], check=True)


@needs("shellcheck")
def test_shellcheck_finds_nothing() -> None:
    subprocess.run(["shellcheck", LAUNCHER, ROOT / ".ci/run"], check=True)


@needs("set-up")
def test_runs_from_anywhere_and_through_a_link(tmp_path: Path) -> None:
    # A folder of that name in the current directory must not be taken for the modules.
    (tmp_path / "collwise/studies").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(LAUNCHER)
    done = call(link, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_missing_packages_are_one_line_and_wrong_usage(clone: Path, tools: Path) -> None:
    add_python(tools)
    done = call(clone / "collwise", "simulate", path=tools)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "libsimgrid-dev" in done.stderr
    assert "COLLWISE_NO_INSTALL" in done.stderr
    assert done.stdout == ""


def test_commands_that_only_need_python_run_without_the_packages(clone: Path, tools: Path) -> None:
    add_python(tools)
    first = call(clone / "collwise", "predict", "two words", path=tools)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "-P -m collwise.studies predict two words\n"
    assert "warning: going on without" in first.stderr
    second = call(clone / "collwise", "predict", path=tools)
    assert (second.returncode, second.stderr) == (0, "")


def test_help_needs_no_packages(clone: Path, tools: Path) -> None:
    add_python(tools)
    assert call(clone / "collwise", "simulate", "--help", path=tools).returncode == 0


def test_environment_is_made_again_when_its_inputs_change(clone: Path, tools: Path) -> None:
    made = add_python(tools)
    for _ in range(2):
        call(clone / "collwise", "predict", path=tools)
    assert made.read_text() == "made\n"
    with (clone / "pyproject.toml").open("a") as pyproject:
        pyproject.write("# one more dependency\n")
    call(clone / "collwise", "predict", path=tools)
    assert made.read_text() == "made\n" * 2
    moved = clone.rename(clone.with_name("moved"))
    call(moved / "collwise", "predict", path=tools)
    assert made.read_text() == "made\n" * 3


def test_half_made_environment_is_made_again(clone: Path, tools: Path) -> None:
    made = add_python(tools)
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/bin/python").symlink_to(shutil.which("false") or "/bin/false")
    assert call(clone / "collwise", "predict", path=tools).returncode == 0
    assert made.read_text() == "made\n"


def test_failed_pip_shows_the_end_of_its_log(clone: Path, tools: Path) -> None:
    add_python(tools)
    python = tools / "python3"
    python.write_text(python.read_text().replace('*"-m pip"*) ;;', '*"-m pip"*) echo no network; exit 1 ;;'))
    done = call(clone / "collwise", "predict", path=tools)
    assert done.returncode == 2
    assert "no network" in done.stderr
    assert str(clone / "build/log/python.log") in done.stderr.splitlines()[-1]


def test_apt_is_asked_for_what_is_missing(clone: Path, tools: Path) -> None:
    add_python(tools)
    add_commands(tools, "gcc", "cmake", "ninja", "smpicc")
    calls = add_apt(tools, provides="smpirun")
    done = call(clone / "collwise", "simulate", path=tools, no_install="")
    assert done.returncode == 0, done.stderr
    assert calls.read_text().splitlines()[0] == "noninteractive update"
    assert "libsimgrid-dev" in calls.read_text()
    # It failed for the other packages, which this command does without.
    assert "installing system packages: " in done.stderr
    assert "see " + str(clone / "build/log/apt.log") in done.stderr


def test_no_apt_is_named_as_the_reason(clone: Path, tools: Path) -> None:
    add_python(tools)
    done = call(clone / "collwise", "verify", path=tools, no_install="0")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no apt-get" in done.stderr


@needs("c-headers")
def test_failed_c_build_shows_its_log_or_warns_once(clone: Path, tools: Path) -> None:
    add_python(tools)
    add_commands(tools, "gcc", "ninja", "smpirun", "smpicc")
    (tools / "cmake").write_text("#!/bin/bash\necho broken source\nexit 1\n")
    (tools / "cmake").chmod(0o755)
    (clone / "CMakeLists.txt").touch()
    first = call(clone / "collwise", "predict", path=tools)
    assert first.returncode == 0
    assert "whose build failed" in first.stderr
    assert call(clone / "collwise", "predict", path=tools).stderr == ""
    needed = call(clone / "collwise", "simulate", path=tools)
    assert needed.returncode == 2
    assert "broken source" in needed.stderr
    assert "build/smpi-system failed" in needed.stderr.splitlines()[-1]
