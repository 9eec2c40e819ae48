"""Test beds for the comparison: brought up and always down again, and with changed options of the MPI library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from collwise.simulator.launch import ProgramRun
from collwise.simulator.places import Place
from collwise.validation.testbed.bed import down, up
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
