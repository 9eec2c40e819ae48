"""A test bed for each test, taken down also when the test fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from collwise.validation.testbed import bed as beds
from collwise.validation.testbed.namespaces import obstacle
from collwise.validation.testbed.shape import Shape


@pytest.fixture(scope="session")
def allowed() -> None:
    if reason := obstacle():
        pytest.skip(reason)


@pytest.fixture
def name(allowed: None) -> Iterator[str]:
    """Of this process's bed."""
    own = f"test-{os.getpid()}"
    yield own
    for one in beds.names():
        if one.startswith(own):
            beds.down(one)


@pytest.fixture
def make(name: str) -> Callable[..., beds.Bed]:
    """Makes a bed of this shape."""
    return lambda **shape: beds.up(Shape(**{"nodes": 3, **shape}), name)
