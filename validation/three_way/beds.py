"""Test beds for the comparison: brought up and always down again, and what is known of them without measuring."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from collwise.common.errors import CollwiseError
from collwise.simulator.launch import ProgramRun
from collwise.simulator.places import Place
from collwise.validation.testbed.bed import Bed, down, up
from collwise.validation.testbed.place import TestBed
from collwise.validation.testbed.shape import Shape

NAME = "validate"


@contextmanager
def temporary_bed(shape: Shape, name: str = NAME) -> Iterator[TestBed]:
    """A test bed that is taken down at the end, after kill -9 by the next one that is made. Raises what `up` raises."""
    try:
        yield TestBed(up(shape, name, temporary=True))
    finally:
        down(name)


class ChangedPlace:
    """A Place with more options of its launcher; its times are kept apart under `condition`."""

    def __init__(self, base: Place, condition: str, launcher_args: Sequence[str] = ()) -> None:
        self._base, self._launcher_args = base, tuple(launcher_args)
        self.name, self.engine, self.eager_limit_bytes = base.name, base.engine, base.eager_limit_bytes
        self.usual_procs = base.usual_procs
        self.facts: Mapping[str, str] = {**base.facts, "condition": condition, "options": " ".join(launcher_args)}

    def processes_per_node(self, procs: int) -> int:
        """The base's."""
        return self._base.processes_per_node(procs)

    def run(
        self,
        program: str,
        procs: int,
        args: Sequence[str] = (),
        *,
        timeout_seconds: float | None = None,
        on_line: Callable[[str], None] | None = None,
        environment: Mapping[str, str] | None = None,
        launcher_args: Sequence[str] = (),
    ) -> ProgramRun:
        """As of the base, with the options."""
        return self._base.run(
            program,
            procs,
            args,
            timeout_seconds=timeout_seconds,
            on_line=on_line,
            environment=environment,
            launcher_args=(*self._launcher_args, *launcher_args),
        )


def retransmitted(bed: Bed) -> int:
    """TCP segments that all nodes together sent more than once since the bed is up. Raises CollwiseError."""
    return sum(_tcp_counter(bed.namespace(f"n{node}"), "RetransSegs") for node in range(1, bed.shape.nodes + 1))


def _tcp_counter(namespace: str, counter: str) -> int:
    command = ["ip", "netns", "exec", namespace, "cat", "/proc/net/snmp"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    names, values = ([line.split() for line in done.stdout.splitlines() if line.startswith("Tcp:")] + [[], []])[:2]
    if counter not in names:
        raise CollwiseError(f"{namespace}: no TCP counter {counter}: {done.stderr.strip()}")
    return int(values[names.index(counter)])
