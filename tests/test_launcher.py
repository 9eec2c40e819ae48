"""The launcher: where it can be called from, and what it says when something it needs is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path

import click
import pytest

from collwise.simulator.execution.packages import missing_packages
from collwise.studies.cli.commands import COMMANDS, SUBCOMMANDS, required_groups
from collwise.studies.cli.main import collwise as command_line
from tests.needs import needs
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER = ROOT / "collwise"
# The programs that every Linux has and the launcher itself uses.
BASICS = ("bash", "env", "flock", "mkdir", "readlink", "rm", "tail")

# Stands in for an interpreter that passes the launcher's check and whose `-m venv` does nothing but leave another one,
# which prints how it was called; its `-m pip` notes what it would install.
FAKE_PYTHON = """#!/bin/bash
case "$*" in
    *"import ensurepip"*) echo "$0" ;;
    *"-m venv"*) echo made >>"{made}"; rm -rf "${{@: -1}}"; mkdir -p "${{@: -1}}/bin"
        printf '%s' '{inner}' >"${{@: -1}}/bin/python"
        /bin/chmod +x "${{@: -1}}/bin/python" ;;
esac
"""
# What a command needs of Python's packages, beside groups of the system's.
EXTRAS = {"notebooks", "studio", "test"}
# One package of each group that the launcher knows.
PACKAGES = {
    "build": "cmake",
    "smpi": "libsimgrid-dev",
    "openmpi": "openmpi-bin",
    "mpich": "mpich",
    "testbed": "iproute2",
    "slurm": "slurmctld",
    "engine": "g++",
}
_SBIN = "/usr/sbin:/sbin"
FAKE_VENV_PYTHON = """#!/bin/bash
case "$*" in *"-m pip"*) echo "${{@: -1}}" >>"{installed}" ;; *) echo "$@" ;; esac
"""


def call(
    launcher: Path,
    *arguments: str,
    path: Path | None = None,
    cwd: Path | None = None,
    no_install: str = "1",
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLLWISE_NO_INSTALL": no_install, **variables}
    if path is not None:
        environment |= {"PATH": str(path), "XDG_CACHE_HOME": str(path / "cache")}
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
    (folder / "studies/cli").mkdir(parents=True)
    shutil.copy(ROOT / "studies/cli/commands.py", folder / "studies/cli")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def add_python(tools: Path) -> Path:
    """Put the fake python3 on the PATH; the file in which it notes each environment it makes."""
    made = tools / "environments-made"
    python = tools / "python3"
    inner = FAKE_VENV_PYTHON.format(installed=tools / "installed")
    python.write_text(FAKE_PYTHON.format(made=made, inner=inner))
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


def test_the_command_line_learns_how_it_was_called(clone: Path, tools: Path) -> None:
    add_python(tools)
    python = clone / ".venv" / "bin" / "python"
    call(clone / "collwise", "help", path=tools)
    python.write_text('#!/bin/bash\necho "$COLLWISE_CALLED"\n')
    (tools / "collwise").symlink_to(clone / "collwise")
    relative = Path("a clone") / "collwise"
    for launcher, shown in ((relative, "a\\ clone/collwise"), (tools / "collwise", "collwise")):
        assert call(launcher, "help", path=tools, cwd=clone.parent).stdout == f"{shown}\n"


def test_missing_packages_are_one_line_and_wrong_usage(clone: Path, tools: Path) -> None:
    add_python(tools)
    done = call(clone / "collwise", "simulate", path=tools)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "libsimgrid-dev" in done.stderr
    assert "mpich" not in done.stderr
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


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--help",),
        ("--version",),
        ("help",),
        ("help", "simulate"),
        ("setup", "--help"),
        ("setup", "install", "--simgrid", "4.1", "-h"),
        ("simulate", "--platform", "grisou", "--help"),
        ("testbed", "run", "--help"),
        ("simulat",),
    ],
)
def test_help_and_unknown_commands_install_nothing_but_python(
    clone: Path, tools: Path, arguments: tuple[str, ...]
) -> None:
    add_python(tools)
    calls = add_apt(tools, provides="smpirun")
    done = call(clone / "collwise", *arguments, path=tools, no_install="")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == done.stderr.count("installing Python packages in .venv") == 2
    assert (tools / "installed").read_text() == f"{clone}\n"
    assert not calls.exists()
    # The next command that needs them asks for them nevertheless.
    call(clone / "collwise", "simulate", path=tools, no_install="")
    assert calls.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("program", "run", "--library=smpi", "--", "program", "--help"),
        ("program", "run", "program", "-h"),
        ("testbed", "run", "--", "program", "-h"),
        ("testbed", "run", "--login", "sbatch", "--help"),
    ],
)
def test_the_help_of_a_program_is_not_ours(clone: Path, tools: Path, arguments: tuple[str, ...]) -> None:
    add_python(tools)
    done = call(clone / "collwise", *arguments, path=tools)
    assert done.returncode == 2
    assert "cmake" in done.stderr


EVERY = [*COMMANDS, *SUBCOMMANDS]


def needs_of(name: str) -> list[tuple[list[str], set[str]]]:
    """The needs of a command: the terms of a condition, none for always, and the groups for each."""
    entry = SUBCOMMANDS[name] if name in SUBCOMMANDS else COMMANDS[name]
    parts = (need.rpartition(":") for need in entry.needs.split())
    return [(condition.split("&") if condition else [], set(groups.split("+"))) for condition, _, groups in parts]


def every_call() -> list[tuple[tuple[str, ...], set[str]]]:
    """Each command alone and with each of the conditions of its needs; the groups of packages that it needs then."""

    def holds(term: str, given: str) -> bool:
        asked = term.removeprefix("!")
        return (asked in (given, given.partition("=")[0])) != term.startswith("!")

    calls = []
    for name in EVERY:
        needs = needs_of(name)
        for given in dict.fromkeys(["", *(term.lstrip("!") for terms, _ in needs for term in terms)]):
            groups = (found for terms, found in needs if all(holds(term, given) for term in terms))
            required = {group for found in groups for group in found if not group.startswith("?")}
            calls.append(((*name.split(), *given.split()), required - EXTRAS))
    return calls


@pytest.mark.parametrize(
    ("arguments", "groups"), every_call(), ids=lambda one: " ".join(one) if isinstance(one, tuple) else ""
)
def test_the_launcher_knows_what_each_command_needs(
    clone: Path, tools: Path, arguments: tuple[str, ...], groups: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_python(tools)
    done = call(clone / "collwise", *arguments, path=tools)
    required = done.stderr.partition("collwise: missing system packages: ")[2].partition(" (")[0].split()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tools / "cache"))
    assert {*missing_packages(required_groups(arguments[0], arguments))} == {*required}
    # The launcher looks beyond PATH for what administrators call, so that these groups may be here.
    here = {group for group, tool in (("testbed", "tc"), ("slurm", "slurmd")) if shutil.which(tool, path=_SBIN)}
    known = PACKAGES.keys() - here
    assert {group for group in known if PACKAGES[group] in required} == groups & known
    assert done.returncode == (2 if groups & known else 0)


def test_a_simulator_that_setup_built_needs_no_package(
    clone: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_python(tools)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tools / "cache"))
    assert required_groups("simulate", []) == ["build", "smpi"]
    (tools / "cache/collwise/simgrid-4.1").mkdir(parents=True)
    (tools / "cache/collwise/simgrid-4.1/.complete").touch()
    assert "libsimgrid-dev" not in call(clone / "collwise", "simulate", path=tools).stderr.splitlines()[-1]
    assert required_groups("simulate", []) == ["build"]


def test_words_of_a_program_say_nothing_of_needs() -> None:
    assert required_groups("program", ["program", "run", "--", "it", "--library=smpi"]) == ["build"]


@pytest.mark.parametrize(
    ("arguments", "simulates"),
    [
        ("program run --library smpi", True),
        ("program run --library=smpi", True),
        ("program apply", True),
        ("fit --platform grisou", True),
        ("simulate --engine schedule", False),
        ("simulate --engine=schedule", False),
    ],
)
def test_a_need_of_an_option_holds_however_its_value_is_given(
    clone: Path, tools: Path, arguments: str, simulates: bool
) -> None:
    add_python(tools)
    words = arguments.split()
    needed = call(clone / "collwise", *words, path=tools).stderr.splitlines()[-1]
    assert ("cmake" in needed, "libsimgrid-dev" in needed) == (True, simulates)
    assert ("smpi" in required_groups(words[0], words)) == simulates


def options_of(command: click.Command, apart: Collection[str] = ()) -> set[str]:
    """The options of a command and of its subcommands, and the names of these, but for those apart in the table."""
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("-")}
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            options |= set() if f"{command.name} {name}" in apart else {name} | options_of(one)
    return options


def command_of(words: str) -> click.Command:
    command: click.Command = command_line
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word) or pytest.fail(f"there is no command {words}")
    return command


@pytest.mark.parametrize("name", EVERY)
def test_what_a_command_needs_agrees_with_its_options(name: str) -> None:
    options = options_of(command_of(name), {one for one in SUBCOMMANDS if one.startswith(f"{name} ")})
    needs = needs_of(name)
    groups = {group.lstrip("?") for _, together in needs for group in together}
    assert groups <= PACKAGES.keys() | EXTRAS
    assert {term.lstrip("!").partition("=")[0] for terms, _ in needs for term in terms} <= options
    # Whatever takes the version of the simulator, simulates; whatever takes a place, measures there.
    if options & {"--engine", "--simgrid"} and name != "setup":
        assert groups >= {"build", "smpi"}
    if "--library" in options and name != "times":  # which stores the name of a library that ran elsewhere
        assert "build" in groups
        assert groups & {"openmpi", "mpich"}
    if "--testbed" in options:
        assert groups >= {"build", "openmpi", "testbed"}


def test_the_launcher_knows_the_commands_that_run_a_program() -> None:
    """It takes words after `run` for the program's, and every other --help for its own."""

    def ending_in_programs(command: click.Command) -> Iterator[str]:
        if command.context_settings.get("allow_interspersed_args") is False:
            yield str(command.name)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                yield from ending_in_programs(command.get_command(context, name) or command)

    assert set(ending_in_programs(command_line)) == {"run"}


def test_a_copy_of_the_modules_in_the_environment_makes_it_anew(clone: Path, tools: Path) -> None:
    made = add_python(tools)
    call(clone / "collwise", "predict", path=tools)
    copy = clone / ".venv/lib/python3.11/site-packages/collwise"
    copy.mkdir(parents=True)
    call(clone / "collwise", "predict", path=tools)
    assert made.read_text() == "made\n" * 2


def test_the_environment_follows_what_it_was_made_from(clone: Path, tools: Path) -> None:
    made = add_python(tools)
    for _ in range(2):
        call(clone / "collwise", "predict", path=tools)
    assert made.read_text() == "made\n"
    with (clone / "pyproject.toml").open("a") as pyproject:
        pyproject.write("# one more dependency\n")
    call(clone / "collwise", "predict", path=tools)
    assert made.read_text() == "made\n"
    assert (tools / "installed").read_text().count(f"{clone}\n") == 2
    moved = clone.rename(clone.with_name("moved"))
    call(moved / "collwise", "predict", path=tools)
    assert made.read_text() == "made\n" * 2


def test_half_made_environment_is_made_again(clone: Path, tools: Path) -> None:
    made = add_python(tools)
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/bin/python").symlink_to(shutil.which("false") or "/bin/false")
    assert call(clone / "collwise", "predict", path=tools).returncode == 0
    assert made.read_text() == "made\n"


def test_failed_pip_shows_the_end_of_its_log(clone: Path, tools: Path) -> None:
    add_python(tools)
    python = tools / "python3"
    python.write_text(python.read_text().replace('*"-m pip"*) ', '*"-m pip"*) echo no network; exit 1; '))
    done = call(clone / "collwise", "predict", path=tools)
    assert done.returncode == 2
    assert "no network" in done.stderr
    assert str(clone / "build/log/python.log") in done.stderr.splitlines()[-1]


def test_apt_is_asked_for_what_is_missing(clone: Path, tools: Path) -> None:
    add_python(tools)
    add_commands(tools, "gcc", "cmake", "ninja", "smpicc")
    calls = add_apt(tools, provides="smpirun")
    done = call(clone / "collwise", "check", "algorithms", path=tools, no_install="")
    assert done.returncode == 0, done.stderr
    assert calls.read_text().splitlines()[0] == "noninteractive update"
    assert "libsimgrid-dev" in calls.read_text()
    # It failed for the other packages, which this command does without.
    assert "installing system packages: libsimgrid-dev" in done.stderr
    assert "going on without these system packages: openmpi-bin" in done.stderr
    # What is not for this command is not asked for.
    assert "iproute2" not in calls.read_text()
    assert "see " + str(clone / "build/log/apt.log") in done.stderr


def test_no_apt_is_named_as_the_reason(clone: Path, tools: Path) -> None:
    add_python(tools)
    done = call(clone / "collwise", "check", "algorithms", path=tools, no_install="0")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no apt-get" in done.stderr


def test_a_command_gets_the_packages_that_it_needs(clone: Path, tools: Path) -> None:
    add_python(tools)
    add_commands(tools, "gcc", "cmake", "ninja", "smpicc", "smpirun", "mpirun.openmpi", "mpicc.openmpi")
    calls = add_apt(tools, provides="none")
    launcher = clone / "collwise"
    for words in ("demo", "report --platform gros", "predict", "show algorithms"):
        assert call(launcher, *words.split(), path=tools, no_install="").returncode == 0
    assert not calls.exists()
    assert (tools / "installed").read_text() == f"{clone}\n"
    for _ in range(2):
        call(launcher, "check", "study", path=tools, no_install="")
    for executor, default in (("local", "slurm"), ("slurm", "local")):
        call(launcher, "simulate", f"--executor={executor}", path=tools, no_install="", COLLWISE_EXECUTOR=default)
        call(launcher, "simulate", path=tools, no_install="", COLLWISE_EXECUTOR="local")
    assert (tools / "installed").read_text().splitlines() == [str(clone), "collwise[notebooks]", "collwise[dask]"]
    # They go with the environment, and come back when they are needed.
    with (clone / "pyproject.toml").open("a") as pyproject:
        pyproject.write("# one more dependency\n")
    call(launcher, "demo", path=tools, no_install="")
    call(launcher, "check", "study", path=tools, no_install="", COLLWISE_EXECUTOR="oar")
    found = (tools / "installed").read_text().splitlines()[3:]
    assert found == [str(clone), "collwise[notebooks]", "collwise[dask]"]


def test_each_step_is_said_with_its_seconds(clone: Path, tools: Path) -> None:
    add_python(tools)
    said = call(clone / "collwise", "studio", path=tools).stderr.splitlines()
    steps = [f"in .venv, for {tools}/python3", "for studio in .venv"]
    lines = [f"collwise: installing Python packages {step}" for step in steps]
    found = [re.sub(r"\d+ s$", "N s", line) for line in said if "Python packages" in line]
    assert found == [lines[0], f"{lines[0]}: done in N s", lines[1], f"{lines[1]}: done in N s"]


def test_an_extra_that_cannot_be_installed_is_tried_again(clone: Path, tools: Path) -> None:
    add_python(tools)
    call(clone / "collwise", "help", path=tools)
    python = clone / ".venv/bin/python"
    works = python.read_text()
    python.write_text(works.replace('echo "${@: -1}"', "echo no network; exit 1; echo"))
    failed = call(clone / "collwise", "check", "study", "--engine=schedule", path=tools)
    assert (failed.returncode, failed.stdout) == (2, "")
    add_commands(tools, "gcc", "cmake", "ninja")
    failed = call(clone / "collwise", "check", "study", "--engine=schedule", path=tools)
    assert "no network" in failed.stderr
    assert "the extra 'notebooks' could not be installed" in failed.stderr.splitlines()[-1]
    python.write_text(works)
    assert call(clone / "collwise", "check", "study", "--engine=schedule", path=tools).returncode == 0


def test_of_two_calls_at_once_one_sets_up_and_the_other_waits(clone: Path, tools: Path) -> None:
    made = add_python(tools)
    python = tools / "python3"
    go = tools / "go"
    python.write_text(python.read_text().replace("echo made", f'while [[ ! -e "{go}" ]]; do :; done; echo made'))
    environment = os.environ | {"COLLWISE_NO_INSTALL": "1", "PATH": str(tools), "XDG_CACHE_HOME": str(tools)}
    command = [tools / "bash", clone / "collwise", "help"]
    errors = [tools / f"errors-{number}" for number in range(2)]
    started = [subprocess.Popen(command, env=environment, stdout=-3, stderr=error.open("w")) for error in errors]
    wait_for(lambda: "waiting for another collwise" in "".join(error.read_text() for error in errors))
    go.touch()
    assert [process.wait(timeout=900) for process in started] == [0, 0]
    assert made.read_text() == "made\n"
    assert (tools / "installed").read_text() == f"{clone}\n"


def test_which_python_is_used_is_said_if_the_first_is_unfit(clone: Path, tools: Path) -> None:
    old = tools / "python3"
    old.write_text("#!/bin/bash\ncase $* in *ensurepip*) exit 1 ;; *) echo 3.9.2 ;; esac\n")
    old.chmod(0o755)
    launcher = clone / "collwise"
    launcher.write_text(launcher.read_text().replace(" /usr/bin/python3;", ";"))  # which this machine may have
    none = call(launcher, "predict", path=tools)
    assert none.returncode == 2
    assert "missing system packages: python3 python3-venv" in none.stderr
    assert f"({old} is Python 3.9.2" in none.stderr
    old.rename(tools / "old")
    add_python(tools)
    (tools / "python3").rename(tools / "python3.12")
    (tools / "old").rename(old)
    found = call(launcher, "predict", path=tools)
    assert found.returncode == 0
    assert f"for {tools}/python3.12 ({old} is Python 3.9.2" in found.stderr
