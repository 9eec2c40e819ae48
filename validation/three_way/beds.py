"""Test beds for the comparison, which are always taken down again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collwise.validation.testbed.bed import down, up
from collwise.validation.testbed.shape import Shape
from collwise.validation.testbed.target import TestBed

NAME = "validate"


@contextmanager
def temporary_bed(shape: Shape, name: str = NAME) -> Iterator[TestBed]:
    """A test bed that is taken down at the end; after kill -9 the next one made does that. Raises what `up` raises."""
    try:
        yield TestBed(up(shape, name, temporary=True))
    finally:
        down(name)
