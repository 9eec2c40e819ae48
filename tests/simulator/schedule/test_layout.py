"""The structures that Python mirrors are those of the library in C."""

from __future__ import annotations

import pytest

from collwise.common.errors import CollwiseError
from collwise.simulator.schedule import library


def test_a_library_with_other_structures_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert library.load_library().schedule_layout(len(library._STRUCTURES)) == 0
    monkeypatch.setattr(library, "_STRUCTURES", (*library._STRUCTURES[1:], library._STRUCTURES[0]))
    with pytest.raises(CollwiseError, match=r"structure 0 of layout\.c has \d+ bytes, not \d+; build it again"):
        library.load_library.__wrapped__()
