"""Builds of the C programs, mostly of an installed package, with a cmake that only notes how it is called."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from collwise.common import folders
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.folders import builds_folder
from collwise.simulator.execution import installations
from collwise.simulator.execution.installations import Build, Installation, mpi_installation
from collwise.simulator.execution.launchers import mpirun_command
from collwise.simulator.execution.processes import ProgramRun, run_command
from collwise.studies.cli.main import main
from tests.command_line import run
from tests.needs import needs
from tests.simulator.execution.stand_ins import stand_in
from tests.waiting import wait_for

# `cmake -S ... -B FOLDER ...` prepares a build, and `cmake --build FOLDER --target PROGRAM` makes a program of it.
CMAKE = """#!/bin/bash
echo "$1" >>"{calls}"
{work}
case $1 in
    -S) : >"$4/CMakeCache.txt" ;;
    --build) : >"$2/$4" ;;
esac
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The sources of an installed package; its cache and the only commands on the PATH are beside it."""
    (tmp_path / "package").mkdir()
    (tmp_path / "bin").mkdir()
    for command in ("gcc", "ninja"):
        (tmp_path / "bin" / command).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(folders, "SOURCES", tmp_path / "package")
    installations._ensure.cache_clear()
    yield tmp_path / "package"
    installations._ensure.cache_clear()


def add_cmake(package: Path, work: str = "") -> Path:
    """Puts the stand-in on the PATH; the file in which it notes its calls."""
    cmake, calls = package.parent / "bin/cmake", package.parent / "calls"
    cmake.write_text(CMAKE.format(calls=calls, work=work))
    cmake.chmod(0o755)
    return calls


def in_another_process(call: Callable[[str], Path], name: str) -> None:
    installations._ensure.cache_clear()
    call(name)


def a_build() -> Build:
    return Build(folders.builds_folder() / "schedule", "none", Path("gcc"), "the schedule engine")


def test_a_build_is_made_once_and_said(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = add_cmake(package)
    program = a_build().file("program")
    assert program.is_relative_to(package.parent / "cache/collwise")
    said = "collwise: building program for the schedule engine"
    assert capsys.readouterr().err.splitlines() == [said, f"{said}: done in 0 s"]
    in_another_process(a_build().file, "program")
    assert calls.read_text().split() == ["-S", "--build"]
    assert capsys.readouterr().err == ""


def test_a_terminal_follows_a_build_on_one_line(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_cmake(package, "echo '[3/7] Building C object chain.c.o'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stderr, "isatty", lambda: True)
        a_build().file("program")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert ": 3 of 7 steps, 0 s" in said


def test_only_what_is_needed_is_made(package: Path) -> None:
    calls = add_cmake(package)
    a_build().file("program")
    assert not (a_build().folder / "other").exists()
    a_build().file("other")
    assert calls.read_text().split() == ["-S", "--build", "--build"]
    a_build().make()
    a_build().make()
    # All of them were made from the same sources.
    in_another_process(a_build().file, "program")
    assert calls.read_text().split() == ["-S", "--build", "--build", "--build"]


def test_a_clone_makes_again_what_has_changed(package: Path) -> None:
    (package / "pyproject.toml").touch()
    calls = add_cmake(package)
    source = package / "algorithms/chain.c"
    source.parent.mkdir()
    source.touch()
    assert a_build().file("program") == package / "build/schedule/program"
    source.write_text("int chain;")
    assert len(calls.read_text().split()) == 2
    in_another_process(a_build().file, "program")
    assert calls.read_text().split() == ["-S", "--build", "--build"]
    # Neither a file that is gone nor an older one put back stays unnoticed, and what is no source does not count.
    os.utime(source, (1, 1))
    in_another_process(a_build().file, "program")
    (package / "algorithms/catalogue.py").touch()
    in_another_process(a_build().file, "program")
    assert calls.read_text().split() == ["-S", "--build", "--build", "--build"]
    source.unlink()
    (a_build().folder / "old").touch()
    in_another_process(a_build().file, "program")
    assert len(calls.read_text().split()) == 5
    # For another compiler everything is made anew.
    (package.parent / "bin/gcc").unlink()
    (package.parent / "bin/gcc").write_text("#!/bin/sh\n")
    (package.parent / "bin/gcc").chmod(0o755)
    in_another_process(a_build().file, "program")
    assert len(calls.read_text().split()) == 7
    assert not (a_build().folder / "old").exists()


def test_another_python_prepares_the_build_and_keeps_what_is_made(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = add_cmake(package)
    made = a_build().file("program")
    monkeypatch.setattr(sys, "executable", "/usr/bin/python-of-another-environment")
    in_another_process(a_build().file, "program")
    a_build().file("other")
    assert calls.read_text().split() == ["-S", "--build", "-S", "--build"]
    assert made.exists()


def test_what_cannot_be_made_again_is_used_as_it_is(package: Path) -> None:
    add_cmake(package)
    made = a_build().file("program")
    (package / "CMakeLists.txt").write_text("# changed")
    (package.parent / "bin/ninja").unlink()
    (package / "pyproject.toml").touch()
    in_another_process(Build(made.parent, "none", Path("gcc"), "the schedule engine").file, "program")
    with pytest.raises(UsageError, match="ninja-build"):
        Build(made.parent, "none", Path("gcc"), "the schedule engine").file("other")


def test_a_half_made_build_counts_as_none(package: Path) -> None:
    add_cmake(package)
    folder = a_build().folder
    folder.mkdir(parents=True)
    for left in ("program", "CMakeCache.txt", "half-made"):
        (folder / left).touch()
    a_build().file("program")
    assert not (folder / "half-made").exists()


def test_a_failure_is_one_line_with_the_log_and_is_tried_again(package: Path) -> None:
    work = "if [[ $1 == --build ]]; then echo Building; echo 'chain.c:3: error: wrong'; echo stopped; exit 1; fi"
    add_cmake(package, work)
    with pytest.raises(
        CollwiseError, match=r"the schedule engine failed: chain.c:3: error: wrong; all messages: (.*)"
    ) as failed:
        a_build().file("program")
    log = Path(str(failed.value).rpartition(": ")[2])
    assert log.read_text() == "Building\nchain.c:3: error: wrong\nstopped\n"
    add_cmake(package)
    assert a_build().file("program").exists()


def test_an_interrupted_build_leaves_no_compiler_behind(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = package.parent / "compiler"
    add_cmake(package, f'if [[ $1 == --build ]]; then /bin/sleep 9999 & echo $! >"{compiler}"; echo; wait; fi')

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    def interrupted(command: list[str], **others: Any) -> ProgramRun:
        return run_command(command, **{**others, "on_line": interrupt})

    monkeypatch.setattr(installations, "run_command", interrupted)
    with pytest.raises(KeyboardInterrupt):
        a_build().file("program")
    assert not [*a_build().folder.glob(".made-*")]
    started = int(compiler.read_text())
    wait_for(lambda: not psutil.pid_exists(started) or psutil.Process(started).status() == psutil.STATUS_ZOMBIE)


def test_of_two_at_once_one_builds_and_the_other_waits(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    go = package.parent / "go"
    calls = add_cmake(package, f'while [[ ! -e "{go}" ]]; do /bin/sleep 0.02; done')
    threads = [threading.Thread(target=a_build().file, args=["program"]) for _ in range(2)]
    for thread in threads:
        thread.start()
    said: list[str] = []
    wait_for(lambda: said.append(capsys.readouterr().err) or "waiting for another collwise" in "".join(said))
    go.touch()
    for thread in threads:
        thread.join()
    assert calls.read_text().split() == ["-S", "--build"]
    assert "".join([*said, capsys.readouterr().err]).count("waiting for another collwise") == 1


def test_missing_packages_are_named_with_the_command_that_installs_them(package: Path) -> None:
    (package.parent / "bin/ninja").unlink()
    with pytest.raises(UsageError, match="apt-get install cmake ninja-build"):
        a_build().file("program")


def test_only_the_systems_simgrid_needs_its_package(package: Path) -> None:
    add_cmake(package)
    (package.parent / "smpicc").touch()
    folder = folders.builds_folder()
    assert Build(folder / "smpi-4.1", "smpi", package.parent / "smpicc", "SimGrid 4.1").file("program").exists()
    with pytest.raises(UsageError, match="libsimgrid-dev"):
        Build(folder / "smpi-system-3.32", "smpi", package.parent / "gone", "SimGrid 3.32").file("program")


def test_a_cache_that_cannot_be_written_is_named(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_cmake(package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(package.parent / "calls"))
    (package.parent / "calls").touch()
    with pytest.raises(UsageError, match=r"cannot write into .*calls.*XDG_CACHE_HOME"):
        a_build().file("program")


def test_other_sources_have_other_builds(package: Path) -> None:
    (package / "algorithms").mkdir()
    seen = set()
    for name, text in (("a.c", "1"), ("a.c", "2"), ("b.c", "2"), ("catalogue.toml", ""), ("generate_a.py", "")):
        (package / "algorithms" / name).write_text(text)
        folders._digest_of_c_sources.cache_clear()
        seen.add(folders.builds_folder())
    assert len(seen) == 5
    (package / "algorithms/catalogue.py").write_text("")
    folders._digest_of_c_sources.cache_clear()
    assert folders.builds_folder() in seen


@needs("openmpi")
def test_versions_of_a_library_have_builds_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collwise.simulator.execution.installations.is_clone", lambda: False)
    found = mpi_installation("openmpi")
    assert found.build_directory.name == f"openmpi-{found.version}"


@pytest.mark.parametrize(("words", "missing"), [("--engine schedule", ""), ("", "libsimgrid-dev"), ("--help", "")])
def test_commands_name_all_packages_that_they_need_before_they_start(
    words: str, missing: str, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (package.parent / "bin/ninja").unlink()
    call = ["simulate", "--platform", "gros", "--collective", "bcast", "--procs", "4", "--store", str(package / "s")]
    with pytest.raises(SystemExit) as ended:
        main([*call, *words.split()])
    error = capsys.readouterr().err
    if words == "--help":
        assert (ended.value.code, error) == (0, "")
        return
    assert ended.value.code == 2
    last = error.splitlines()[-1]
    assert "ninja-build" in last
    assert ("libsimgrid-dev" in last) == bool(missing)


def test_an_installed_package_has_no_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("collwise.studies.cli.setup.SOURCES", tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["setup", "test"])
    assert ended.value.code == 2
    assert "./collwise test in a clone" in capsys.readouterr().err


def test_setup_says_which_engines_are_missing_and_makes_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object) -> None:
        raise UsageError("no MPI here")

    monkeypatch.setattr("collwise.studies.cli.setup.smpi_installation", missing)
    monkeypatch.setattr("collwise.studies.cli.setup.mpi_installation", missing)
    with pytest.raises(SystemExit) as ended:
        main(["setup", "install"])
    shown = capsys.readouterr()
    assert shown.out.splitlines()[:3] == ["missing: no MPI here"] * 3
    assert "schedule engine: " in shown.out
    assert "3 of 3 engines are missing" in shown.err
    assert ended.value.code == 1


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("platforms show", set()),
        ("show algorithms", set()),
        ("simulate --platform gros --collective bcast --procs 4 --sizes 8 --engine schedule", {"none libschedule.so"}),
        ("simulate --platform gros --collective bcast --procs 4 --sizes 8", {"smpi benchmark"}),
    ],
)
@needs("smpi")
def test_a_command_asks_for_what_it_runs(
    words: str, files: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = set()
    ensure = installations._ensure

    def noted(build: Build, name: str) -> None:
        asked.add(f"{build.mpi} {name}")
        ensure(build, name)

    monkeypatch.setattr(installations, "_ensure", noted)
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "store.sqlite"))
    run(*words.split())
    assert asked <= files
    # The engine's library may be open already.
    assert files - asked <= {"none libschedule.so"}


def test_a_launcher_that_wraps_the_real_one_has_its_compiler(package: Path) -> None:
    """A build with a compiler that is not there would remove what is built."""
    tools, wrapped = package.parent / "bin", package.parent / "wrapped/smpirun"
    (tools / "smpicc").symlink_to("/bin/true")
    for launcher, compiler in ((tools / "smpirun", tools / "smpicc"), (wrapped, tools / "smpicc")):
        assert Installation("smpi", "3.32", launcher, package / "build", "").build.compiler == compiler
    (tools / "smpicc").unlink()
    assert Installation("smpi", "3.32", wrapped, package / "build", "").build.compiler == wrapped.with_name("smpicc")


def test_an_mpich_for_pmix_is_started_by_open_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own mpirun starts processes that do not find each other."""

    def program(name: str, text: str) -> Path:
        stand_in(tmp_path, name, f"#!/bin/sh\necho '{text}'\n", monkeypatch)
        return tmp_path / name

    own = program("mpirun.mpich", "Version: 4.2.0")
    assert mpi_installation("mpich") == Installation("mpich", "4.2.0", own, builds_folder() / "mpich", "pmi2")
    program("mpichversion", "MPICH configure: --prefix=/usr --with-pmix=/usr/lib --with-pm=hydra")
    installations._needs_pmix.cache_clear()
    other = program("mpirun.openmpi", "(Open MPI) 4.1.6")
    found = mpi_installation("mpich")
    assert (found.launcher, found.version, found.pmi) == (other, "4.2.0", "pmix")
    assert found.build.compiler.name == "mpicc.mpich"
    assert "-x COLOUR=blue" in " ".join(mpirun_command(found, 2, environment={"COLOUR": "blue"}).words)
    other.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"this MPICH 4.2.0 .* by PMIx, .* openmpi-bin"):
        mpi_installation("mpich")
