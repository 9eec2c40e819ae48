"""Runs programs in SMPI: smpirun's options, its platform and host files, and its command line."""

from __future__ import annotations

import contextlib
import ctypes.util
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import Installation
from collwise.simulator.execution.processes import ProgramRun, run_command

# Computation and readings of the clock take no simulated time, so that runs are deterministic. With values above 0 of
# `smpi/async-small-thresh`, queued segments would become concurrent flows that share the link instead of following one
# another.
SMPI_OPTIONS = {"smpi/simulate-computation": "no", "smpi/wtime": "0", "smpi/async-small-thresh": "0"}


@contextlib.contextmanager
def smpi_files(platform: HostPlatform, procs: int, processes_per_node: int) -> Iterator[tuple[Path, Path]]:
    """The platform XML and the host file of a run, which exist within the block."""
    hosts = platform.hosts_for(procs, processes_per_node)
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        platform_file, host_file = Path(directory, "platform.xml"), Path(directory, "hosts")
        platform_file.write_text(platform.xml_text(), encoding="utf-8")
        host_file.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
        yield platform_file, host_file


def smpirun_command(
    smpi: Installation,
    files: tuple[Path, Path],
    procs: int,
    program: Path,
    *,
    privatize: bool = False,
    wrapper: str = "",
    options: Mapping[str, str] = SMPI_OPTIONS,
    launcher_args: Sequence[str] = (),
) -> list[str]:
    """The smpirun command line with the files of `smpi_files`, up to the program's arguments.

    Unless `privatize`, the program must have no mutable statics. `wrapper` is a command that runs the simulator.
    """
    platform_file, host_file = files
    return [
        str(smpi.launcher),
        *launcher_args,
        *([] if privatize else ["-no-privatize"]),
        *(["-wrapper", wrapper] if wrapper else []),
        *("-platform", str(platform_file)),
        *("-hostfile", str(host_file)),
        *("-np", str(procs)),
        *(f"--cfg={name}:{value}" for name, value in options.items()),
        "--log=root.thres:error",
        str(program),
    ]


def smpirun_environment(smpi: Installation) -> dict[str, str]:
    """Variables that preload jemalloc and our clock without system calls, which make sweeps about twice as fast.

    Results do not change. Our clock is left out if its path has a blank or a colon, which LD_PRELOAD does not accept.
    """
    libraries = []
    quick_clock = str(smpi.build_directory / "libquick_clock.so")
    if os.path.exists(quick_clock) and not set(quick_clock) & set(" :"):
        libraries.append(quick_clock)
    if jemalloc := ctypes.util.find_library("jemalloc"):
        libraries.append(jemalloc)
    before = os.environ.get("LD_PRELOAD")
    return {"LD_PRELOAD": ":".join([*libraries, *([before] if before else [])])} if libraries else {}


def run_smpi(
    smpi: Installation,
    platform: HostPlatform,
    program: str,
    procs: int,
    args: Sequence[str] = (),
    *,
    processes_per_node: int = 1,
    launcher_args: Sequence[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
    processor_seconds: int | None = None,
    **others: Any,
) -> ProgramRun:
    """Simulates one of our programs on a platform.

    SIGXCPU ends the simulator after `processor_seconds`. `others` are further arguments of `run_command`.
    """
    binary = smpi.program(program)
    quick = smpirun_environment(smpi)
    libraries = [each["LD_PRELOAD"] for each in (environment, quick) if "LD_PRELOAD" in each]
    variables = {**environment, **({"LD_PRELOAD": ":".join(libraries)} if libraries else {})}
    with smpi_files(platform, procs, processes_per_node) as files:
        command = smpirun_command(smpi, files, procs, binary, launcher_args=launcher_args)
        limited = [] if processor_seconds is None else ["prlimit", f"--cpu={processor_seconds}:"]
        return run_command([*limited, *command, *args], environment=variables, **others)
