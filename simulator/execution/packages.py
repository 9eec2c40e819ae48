"""Finds missing packages that commands need: groups of system packages, and extras of Python packages."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from collwise.common.errors import UsageError

_FOR_ADMINISTRATORS = ("ip", "tc", "slurmctld", "slurmd")
_PATH_OF_ADMINISTRATORS = ("/usr/sbin", "/sbin")
# Debian's packages by group, each with the commands and headers that show that it is installed. The launcher has the
# same list.
_GROUPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "build": (("gcc", "gcc"), ("libc6-dev", "/usr/include/stdio.h"), ("cmake", "cmake"), ("ninja-build", "ninja")),
    "smpi": (("libsimgrid-dev libjemalloc2", "smpirun", "smpicc"),),
    "openmpi": (
        ("openmpi-bin", "mpirun.openmpi", "mpicc.openmpi"),
        ("libopenmpi-dev", "/usr/lib/*/openmpi/include/mpi.h"),
    ),
    "mpich": (("mpich", "mpirun.mpich", "mpicc.mpich"), ("libmpich-dev", "/usr/include/*/mpich/mpi.h")),
    "testbed": (("iproute2", "ip", "tc"),),
    "slurm": (("slurmctld slurmd slurm-client munge", "slurmctld", "slurmd"),),
    "engine": (
        ("g++", "g++"),
        ("libboost-dev", "/usr/include/boost/version.hpp"),
        ("libeigen3-dev", "/usr/include/eigen3/Eigen/Core"),
    ),
}


def missing_packages(groups: Iterable[str]) -> list[str]:
    """The system packages of these groups that are not installed. Names of extras are ignored."""
    listed = [package for group in groups for package in _GROUPS.get(group, ())]
    absent = [names for names, *signs in listed if not all(map(_is_there, signs))]
    return list(dict.fromkeys(name for names in absent for name in names.split()))


def require_packages(groups: Iterable[str]) -> None:
    """Raises UsageError if packages of these groups are missing; the message says how to install them."""
    if missing := " ".join(missing_packages(groups)):
        raise UsageError(
            f"missing system packages: {missing}; on Debian and Ubuntu 'apt-get install {missing}' installs them; "
            "elsewhere, install packages that provide the same"
        )


def require_extra(extra: str) -> None:
    """Raises UsageError if Python packages of the extra are missing; the message says how to install it."""
    if missing := [*_missing_from(extra)]:
        raise UsageError(
            f"missing Python packages: {' '.join(missing)}; pip install 'collwise[{extra}]' installs them; in a "
            "clone, ./collwise does"
        )


def _missing_from(extra: str) -> Iterable[str]:
    from importlib.metadata import requires

    for requirement, _, condition in (text.partition(";") for text in requires("collwise") or ()):
        if re.search(rf"\b{extra}\b", condition):
            if nested := re.fullmatch(r"collwise\[(.+)\]\s*", requirement):
                for item in nested[1].split(","):
                    yield from _missing_from(item)
            elif find_spec(name := re.split(r"[^\w]", requirement)[0]) is None:
                yield name


def _is_there(sign: str) -> bool:
    if sign.startswith("/"):
        # On systems other than Debian, headers are in other places, and the compilers find them.
        return not Path("/var/lib/dpkg/status").exists() or bool(glob.glob(sign))
    searched = os.pathsep.join([os.environ.get("PATH", os.defpath), *_PATH_OF_ADMINISTRATORS])
    return shutil.which(sign, path=searched if sign in _FOR_ADMINISTRATORS else None) is not None
