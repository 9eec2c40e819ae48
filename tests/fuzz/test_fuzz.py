"""A short run of the fuzzer of each reader in C; tests/fuzz/run.py has long ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.run import READERS, fuzz, summary
from tests.needs import needs


@needs("openmpi", "fuzzer")
@pytest.mark.parametrize(
    "name", ["tables", *(pytest.param(one, marks=pytest.mark.slow) for one in READERS if one != "tables")]
)
def test_no_input_harms_a_reader(name: str, tmp_path: Path) -> None:
    good, said = fuzz(name, 5000, tmp_path, tmp_path / "corpus")
    assert good, said[-3000:]
    assert summary(said).startswith("5,000 inputs")
