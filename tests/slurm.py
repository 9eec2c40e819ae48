"""A test bed with Slurm for tests, and jobs on it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from collwise.validation.testbed import bed as beds
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.slurm import jobs, on_login
from tests.needs import need
from tests.waiting import wait_for

COLLWISE = f"{shlex.quote(sys.executable)} -P -m collwise.studies"
"""The command line, as a job calls it."""


@contextmanager
def slurm_bed(nodes: int, **shape: int) -> Iterator[beds.Bed]:
    """A bed of this process's own with Slurm, which is taken down at the end."""
    need("slurm", "openmpi")
    name = f"test-slurm-{os.getpid()}"
    try:
        yield beds.up(Shape(nodes=nodes, **shape), name, slurm=True)
    finally:
        beds.down(name)


def login(bed: beds.Bed, *words: str, folder: Path | None = None) -> str:
    """The output of a command on the login node, where it has to succeed."""
    done = subprocess.run(on_login(bed, words), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def submit(bed: beds.Bed, folder: Path, script: str, *options: str) -> str:
    """Submits a job whose output goes to NUMBER.out in the folder; returns its number."""
    file = folder / "job.sh"
    file.write_text(f"#!/bin/bash\n{script}\n")
    return login(
        bed, "sbatch", "--parsable", "--output=%j.out", "--open-mode=append", *options, str(file), folder=folder
    ).strip()


def state_of(bed: beds.Bed, job: str) -> str:
    """The state of a job, as Slurm has it: PENDING, RUNNING, and empty after its end."""
    return next((one.state for one in jobs(bed) if one.id == job), "")


def finish(bed: beds.Bed, folder: Path, job: str) -> str:
    """Waits until a job has ended; returns its output."""
    wait_for(lambda: not state_of(bed, job), 0.1)
    return (folder / f"{job}.out").read_text()
