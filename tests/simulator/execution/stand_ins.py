"""Programs that stand in for srun and remote shells: they check how they are called, and run things on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

# Checks the words that matter, writes all of them down and runs the program here with as many processes.
SRUN = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
open({log!r}, "a").write(" ".join([*words, os.environ.get("COLOUR", ""), os.environ.get("LD_PRELOAD", "")]) + "\\n")
first = next(place for place, word in enumerate(words) if not word.startswith("-"))
options = dict(word.lstrip("-").split("=", 1) for word in words[:first] if "=" in word)
assert options["mpi"] == "pmix" and options["distribution"] == "block", words
assert int(options["nodes"]) * int(options["ntasks-per-node"]) >= int(options["ntasks"]), words
everything, *more = options["export"].split(",")
assert everything == "ALL", words
variables = [word for one in more for word in ("-x", one)]
command = ["mpirun.openmpi", "--oversubscribe", *variables, "-np", options["ntasks"], *words[first:]]
os.execvpe("mpirun.openmpi", command, os.environ | {{"OMPI_MCA_ras": "^slurm"}})
"""
# Runs the command on this machine, whatever the host.
OARSH = """#!/bin/sh
echo "$@" >>{log}
while case $1 in -*) true ;; *) false ;; esac; do shift; done
shift
exec sh -c "$*"
"""
# As that, but the working directory looks empty there, as on a host that does not share it.
BLIND_SHELL = """#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac; do shift; done
shift
exec unshare -m sh -c 'mount -t tmpfs none "$PWD" && eval "$0"' "$*"
"""


def stand_in(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a program on the PATH; where it writes down how it is called."""
    log = folder / f"{name}.log"
    program = folder / name
    program.write_text(text.format(log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return log
