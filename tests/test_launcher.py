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

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER = ROOT / "collwise"
# The programs that every Linux has and the launcher itself uses.
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
# One package of each group that the launcher knows.
PACKAGES = {
    "build": "cmake",
    "smpi": "libsimgrid-dev",
    "openmpi": "openmpi-bin",
    "mpich": "mpich",
    "testbed": "iproute2",
    "slurm": "slurmctld",
    "engine": "g++",
    "style": "clang-format",
}
_SBIN = "/usr/sbin:/sbin"
FAKE_VENV_PYTHON = '#!/bin/bash\ncase "$*" in *"-m pip"*) ;; *) echo "$@" ;; esac\n'


def call(
    launcher: Path, *arguments: str, path: Path | None = None, cwd: Path | None = None, no_install: str = "1"
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLLWISE_NO_INSTALL": no_install}
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
def test_help_and_unknown_commands_install_and_build_nothing(
    clone: Path, tools: Path, arguments: tuple[str, ...]
) -> None:
    add_python(tools)
    calls = add_apt(tools, provides="smpirun")
    (clone / "CMakeLists.txt").touch()
    done = call(clone / "collwise", *arguments, path=tools, no_install="")
    assert done.returncode == 0, done.stderr
    assert "making the Python environment" in done.stderr
    assert done.stderr.count("\n") == 1
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
        ("testbed", "login", "sbatch", "--help"),
    ],
)
def test_the_help_of_a_program_is_not_ours(clone: Path, tools: Path, arguments: tuple[str, ...]) -> None:
    add_python(tools)
    done = call(clone / "collwise", *arguments, path=tools)
    assert done.returncode == 2
    assert "cmake" in done.stderr


EVERY = [*COMMANDS, *SUBCOMMANDS]


def needs_of(name: str) -> list[tuple[str, set[str]]]:
    """The needs of a command: conditions, '' for always, and the groups of packages for each."""
    entry = SUBCOMMANDS[name] if name in SUBCOMMANDS else COMMANDS[name]
    parts = (need.rpartition(":") for need in entry.needs.split())
    return [(condition, set(groups.split("+"))) for condition, _, groups in parts]


def every_call() -> list[tuple[tuple[str, ...], set[str]]]:
    """Each command alone and with each of the conditions of its needs; the groups of packages that it needs then."""
    calls = []
    for name in EVERY:
        needs = needs_of(name)
        for given in dict.fromkeys(["", *(condition.lstrip("!") for condition, _ in needs)]):
            absent = {f"!{given}", f"!{given.partition('=')[0]}"}
            hold = {"", given} | {condition for condition, _ in needs if condition[:1] == "!"} - absent
            groups = (found for condition, found in needs if condition in hold)
            calls.append(((*name.split(), *given.split()), set().union(*groups)))
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


@pytest.mark.parametrize("engine", [["--engine=schedule"], ["--engine", "schedule"]])
def test_what_the_schedule_engine_times_needs_no_simulator(clone: Path, tools: Path, engine: list[str]) -> None:
    add_python(tools)
    needed = call(clone / "collwise", "simulate", *engine, path=tools).stderr.splitlines()[-1]
    assert "cmake" in needed
    assert "libsimgrid-dev" not in needed
    assert required_groups("simulate", engine) == ["build"]


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
    "arguments", ["program run --library smpi", "program run --library=smpi", "program apply", "fit --platform grisou"]
)
def test_a_need_of_an_option_holds_however_its_value_is_given(clone: Path, tools: Path, arguments: str) -> None:
    add_python(tools)
    assert "libsimgrid-dev" in call(clone / "collwise", *arguments.split(), path=tools).stderr.splitlines()[-1]


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
    groups = {group for _, together in needs for group in together}
    assert groups <= PACKAGES.keys()
    assert {condition.lstrip("!").partition("=")[0] for condition, _ in needs if condition} <= options
    # Whatever takes the version of the simulator, simulates; whatever takes a place, measures there.
    if options & {"--engine", "--simgrid"} and name != "setup":
        assert groups >= {"build", "smpi"}
    if "--library" in options:
        assert "build" in groups
        assert groups & {"openmpi", "mpich"}
    if "--testbed" in options:
        assert groups >= {"build", "openmpi", "testbed"}


def test_the_launcher_knows_the_commands_that_run_a_program() -> None:
    """It takes words after `run` and `login` for the program's, and every other --help for its own."""

    def ending_in_programs(command: click.Command) -> Iterator[str]:
        if command.context_settings.get("allow_interspersed_args") is False:
            yield str(command.name)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                yield from ending_in_programs(command.get_command(context, name) or command)

    assert set(ending_in_programs(command_line)) == {"run", "login"}


def test_a_copy_of_the_modules_in_the_environment_makes_it_anew(clone: Path, tools: Path) -> None:
    made = add_python(tools)
    call(clone / "collwise", "predict", path=tools)
    copy = clone / ".venv/lib/python3.11/site-packages/collwise"
    copy.mkdir(parents=True)
    call(clone / "collwise", "predict", path=tools)
    assert made.read_text() == "made\n" * 2


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
    done = call(clone / "collwise", "check", "algorithms", path=tools, no_install="0")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no apt-get" in done.stderr


@needs("c-headers")
def test_programs_of_mpi_libraries_are_built_when_a_command_needs_them(clone: Path, tools: Path) -> None:
    add_python(tools)
    add_commands(tools, "gcc", "ninja", "cmake", "smpirun", "smpicc")
    (clone / "CMakeLists.txt").touch()

    def built(*arguments: str) -> list[str]:
        done = call(clone / "collwise", *arguments, path=tools)
        assert done.returncode == 0, done.stderr
        return re.findall(r"building the C programs in build/(\S+), once", done.stderr)

    assert built("setup", "project") == built("show", "algorithms") == built("times", "list") == []
    assert built("platforms", "describe", "mine") == built("platforms", "new", "mine") == []
    assert built("platforms", "check", "mine.toml") == ["smpi-system"]
    assert built("simulate") == ["schedule"]
    # What was made is kept up to date, whatever the command needs.
    (clone / "CMakeLists.txt").write_text("# changed\n")
    assert built("platforms", "describe", "mine") == []
    assert built("predict") == ["schedule", "smpi-system"]
    assert built("simulate") == []


@needs("openmpi", "mpich")
@pytest.mark.parametrize(
    ("words", "libraries"),
    [
        ("platforms check x.toml", set()),
        ("simulate", set()),
        ("measure", {"openmpi"}),
        ("show defaults --check", {"openmpi"}),
        ("show defaults --baseline openmpi-4.1 --check", {"openmpi"}),
        ("show defaults --baseline=mpich-4 --check", {"mpich"}),
    ],
)
def test_no_library_is_built_for_that_nobody_asked(clone: Path, tools: Path, words: str, libraries: set[str]) -> None:
    add_python(tools)
    names = [f"{name}.{library}" for name in ("mpirun", "mpicc") for library in ("openmpi", "mpich")]
    add_commands(tools, "gcc", "ninja", "cmake", "smpirun", "smpicc", *names)
    (clone / "CMakeLists.txt").touch()
    said = call(clone / "collwise", *words.split(), path=tools).stderr
    built = set(re.findall(r"building the C programs in build/(\S+), once", said))
    assert built - {"schedule", "smpi-system"} == libraries


@needs("openmpi", "c-headers")
@pytest.mark.parametrize(
    ("words", "simulates"),
    [
        ("program run --library openmpi --procs 2 -- latency", False),
        ("program profile report.json --platform gros --engine smpi", True),
        ("program run --library smpi --platform gros --procs 2 -- latency", True),
        ("show defaults --check", False),
    ],
)
def test_the_simulator_is_not_built_for_what_runs_on_a_real_library(
    clone: Path, tools: Path, words: str, simulates: bool
) -> None:
    add_python(tools)
    add_commands(tools, "gcc", "ninja", "cmake", "smpirun", "smpicc", "mpirun.openmpi", "mpicc.openmpi")
    (clone / "CMakeLists.txt").touch()
    said = call(clone / "collwise", *words.split(), path=tools).stderr
    assert ("building the C programs in build/smpi-system" in said) == simulates


@needs("c-headers")
@pytest.mark.parametrize("command", ["demo", "test", "setup", "setup install", "setup studio", "study"])
def test_set_up_builds_everything(clone: Path, tools: Path, command: str) -> None:
    add_python(tools)
    names = [f"{name}.{library}" for name in ("mpirun", "mpicc") for library in ("openmpi", "mpich")]
    add_commands(tools, "gcc", "ninja", "cmake", "clang-format", "smpirun", "smpicc", *names)
    (clone / "CMakeLists.txt").touch()
    said = call(clone / "collwise", *command.split(), path=tools).stderr
    found = set(re.findall(r"building the C programs in build/(\S+), once", said))
    packages = re.findall(r"lib(?:openmpi|mpich)-dev", said)
    expected = {"schedule", "smpi-system", "openmpi", "mpich"} - {name[3:-4] for name in packages}
    assert found == expected or (command in ("demo", "test") and packages)


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
    assert "build/schedule failed" in needed.stderr.splitlines()[-1]
