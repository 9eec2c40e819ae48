"""A test bed for each test, taken down also when the test fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from collwise.validation.testbed import bed as beds
from collwise.validation.testbed.shape import Shape
from tests.needs import need


@pytest.fixture
def name() -> Iterator[str]:
    """Name of this process's bed."""
    need("testbed")
    own = f"test-{os.getpid()}"
    yield own
    for one in beds.names():
        if one.startswith(own):
            beds.down(one)


@pytest.fixture
def make(name: str) -> Callable[..., beds.Bed]:
    """Makes a bed of this shape."""
    return lambda **shape: beds.up(Shape(**{"nodes": 3, **shape}), name)
