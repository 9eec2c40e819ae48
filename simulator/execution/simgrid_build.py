"""Builds a chosen version of SimGrid, in addition to the system's, from its PyPI source package.

Everything is in collwise's cache: the installation in `simgrid-VERSION`, the source and the build in
`build-simgrid-VERSION` until the build has succeeded, its output in `simgrid-VERSION.log`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.folders import cache_folder
from collwise.simulator.execution.installations import locked
from collwise.simulator.execution.processes import ProgramRun, run_command

# Link-time optimisation takes longer than all the rest and more memory than small machines have.
_LEFT_OUT = ("documentation", "fortran", "java", "model-checking", "python", "lto", "compile_warnings")
_BYTES_PER_COMPILER = 1.2e9
_TOOLS = {"cmake": "cmake", "ninja": "ninja-build", "g++": "g++"}


def installation_prefix(version: str) -> Path:
    """The directory that SimGrid `version` is installed in, or would be."""
    return cache_folder() / f"simgrid-{version}"


def install_simgrid(version: str, jobs: int | None = None) -> Path:
    """Downloads, builds and installs SimGrid `version` unless it is installed; returns its prefix.

    `jobs` compilers run at once; by default one per core, fewer if memory is short. The next call resumes an
    interrupted build. Raises UsageError for an unknown version or a missing tool, CollwiseError if a download or the
    build fails.
    """
    # The version becomes part of a requirement and of paths, so nothing but a version may pass.
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        raise UsageError(f"malformed SimGrid version '{version}': write numbers and points, for example 4.1")
    if jobs is not None and jobs < 1:
        raise UsageError(f"jobs is {jobs}: at least 1 is needed")
    console = Console(stderr=True, highlight=False)
    prefix = installation_prefix(version)
    # The marker is written last, since a prefix without it does not count as installed.
    marker = prefix / ".complete"
    with locked(prefix, f"another build of SimGrid {version}"):
        if marker.exists():
            console.print(f"SimGrid {version} is already in {prefix}", soft_wrap=True)
            return prefix
        if missing := [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]:
            raise UsageError(f"building SimGrid needs these packages: {' '.join(missing)} libboost-dev")
        log, work = cache_folder() / f"simgrid-{version}.log", cache_folder() / f"build-simgrid-{version}"
        log.write_bytes(b"")
        if not (work / "source").exists():
            console.print(f"downloading SimGrid {version} from PyPI")
            download_source(version, work, log)
        console.print("configuring the build")
        configure(version, work, log)
        console.print(f"building into {prefix} (output in {log})", soft_wrap=True)
        _build(version, work, log, jobs or _default_jobs(), console)
        marker.touch()
        shutil.rmtree(work)
        console.print(f"SimGrid {version} is ready in {prefix}", soft_wrap=True)
    return prefix


def download_source(version: str, work: Path, log: Path) -> None:
    """Downloads the source package of SimGrid `version` with pip and unpacks it as `work/source`."""
    shutil.rmtree(work, ignore_errors=True)
    download = work / "download"
    download.mkdir(parents=True)
    # Only SimGrid itself must come as source; whatever pip needs to read the package's metadata may be wheels.
    requirement = ["--no-deps", "--no-binary", "simgrid", f"simgrid=={version}", "--dest", str(download)]
    pip = _run([sys.executable, "-m", "pip", "download", *requirement], log)
    if pip.returncode != 0:
        shutil.rmtree(work)
        offered = re.search(r"\(from versions: ([\d., a-z]+)\)", "\n".join(pip.output_lines))
        if offered and offered[1] != "none":
            raise UsageError(f"PyPI has no SimGrid {version}; it has {offered[1]}")
        raise CollwiseError(f"SimGrid {version} could not be downloaded from PyPI; pip's output is in {log}")
    archives = list(download.glob("*.tar.gz"))
    if len(archives) != 1:
        raise CollwiseError(f"pip downloaded no source archive of SimGrid {version}; its output is in {log}")
    shutil.unpack_archive(archives[0], work / "unpacked")
    # The rename comes last, so that `source` is either whole or absent.
    (work / "unpacked" / archives[0].name.removesuffix(".tar.gz")).rename(work / "source")


def configure(version: str, work: Path, log: Path) -> None:
    """Runs CMake on `work/source`, building in `work/build` for the prefix of `version`."""
    options = ["-DCMAKE_BUILD_TYPE=Release", "-Denable_smpi=ON", *(f"-Denable_{name}=OFF" for name in _LEFT_OUT)]
    options.append(f"-DCMAKE_INSTALL_PREFIX={installation_prefix(version)}")
    # SimGrid's configuration leaves a test program in the working directory.
    command = ["cmake", "-E", "chdir", str(work), "cmake", "-S", "source", "-B", "build", "-G", "Ninja", *options]
    if _run(command, log).returncode != 0:
        # CMake's cache of a failed attempt would spoil the next one.
        shutil.rmtree(work / "build", ignore_errors=True)
        raise CollwiseError(
            f"SimGrid {version} could not be configured (it needs the package libboost-dev); output in {log}"
        )


def _build(version: str, work: Path, log: Path, jobs: int, console: Console) -> None:
    prefix = installation_prefix(version)
    # smpirun and smpicc contain the prefix, so files are installed there at once; without the marker they do not count.
    shutil.rmtree(prefix, ignore_errors=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(f"SimGrid {version}", total=None)

        def follow(line: str) -> None:
            if step := re.match(r"\[(\d+)/(\d+)\]", line):
                progress.update(task, completed=int(step[1]), total=int(step[2]))

        made = _run(["cmake", "--build", str(work / "build"), "--parallel", str(jobs)], log, follow)
    if made.returncode != 0 or _run(["cmake", "--install", str(work / "build")], log).returncode != 0:
        raise CollwiseError(f"the build of SimGrid {version} failed; its output is in {log}")
    if missing := [name for name in ("smpirun", "smpicc") if not (prefix / "bin" / name).exists()]:
        raise CollwiseError(f"SimGrid {version} was built without {' and '.join(missing)}; the output is in {log}")


def _run(command: list[str], log: Path, follow: Callable[[str], None] = lambda line: None) -> ProgramRun:
    """Runs a command with its output in `log`, each line also given to `follow`."""
    with log.open("a", encoding="utf-8") as sink:
        sink.write(f"+ {' '.join(command)}\n")

        def on_line(line: str) -> None:
            sink.write(f"{line}\n")
            follow(line)

        # In one stream, errors stay next to the output that they belong to.
        return run_command(["sh", "-c", 'exec "$@" 2>&1', "sh", *command], on_line=on_line)


def _default_jobs() -> int:
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), int(memory_bytes / _BYTES_PER_COMPILER)))
