"""Short runs of the fuzzers of what C reads and writes, and of the reader of libcollwise's reports.

tests/fuzz/run.py has long ones of those in C.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from collwise.common.errors import UsageError
from collwise.simulator.execution.profiles import differing_calls, profile_of_runs, read_profile
from tests.fuzz.run import READERS, fuzz, summary
from tests.needs import needs

OURS = '"algorithm": "chain", "parameters": "segment_bytes=8192 chains=2", "min_bytes": 4, "max_bytes": 7'
OTHERS = '"mpis_own": "no rule", "min_bytes": null, "max_bytes": null'
ROWS = ",\n".join(
    '{"collective": "bcast", "communicator": "a\\"b", "ranks": "0-3", "processes": 4, "processes_per_node": 2, '
    f'{ran}, "mean_bytes": {mean}, "calls": 3, "seconds": 0.5, "shortest_seconds": 0.1, "longest_seconds": 0.9}}'
    for ran, mean in ((OURS, "5.5"), (OTHERS, "null"))
)
REPORT = f'{{"collwise_report": 1, "processes": 4, "seconds": 1.5, "rows": [\n{ROWS}\n]}}\n'
TOKENS = re.findall(r'"[^"]*"|[\d.]+|null|.', REPORT, re.DOTALL)
OTHER_TOKENS = (
    *("null", "true", "[]", "{}", '""', '"\\ud800"', '"seconds"', '"rows"', '"run_seconds": [1, 2], ', ",", ":"),
    *("-1", "0", "1.5", "1e200", "1e999", "NaN", "9" * 20, "9" * 5000, "[" * 9999, "\x00", "\xff"),
)


@needs("openmpi", "fuzzer")
@pytest.mark.parametrize(
    "name", ["tables", *(pytest.param(one, marks=pytest.mark.slow) for one in READERS if one != "tables")]
)
def test_no_input_harms_a_reader(name: str, tmp_path: Path) -> None:
    good, said = fuzz(name, 5000, tmp_path, tmp_path / "corpus")
    assert good, said[-3000:]
    assert summary(said).startswith("5,000 inputs")


def changed(tokens: list[str], draws: Random) -> list[str]:
    """The tokens with one left out, repeated elsewhere, replaced, or with another character."""
    place = draws.randrange(len(tokens))
    token = tokens[place]
    cut = draws.randrange(len(token) + 1)
    others = (
        [],
        [draws.choice(tokens)],
        [draws.choice(OTHER_TOKENS)],
        [token[:cut] + chr(draws.randrange(256)) + token[cut + 1 :]],
    )
    return [*tokens[:place], *draws.choice(others), *tokens[place + 1 :]]


def test_no_report_harms_its_reader(tmp_path: Path) -> None:
    draws, file, accepted = Random(35), tmp_path / "report.json", 0
    for _ in range(2000):
        tokens = TOKENS
        for _ in range(draws.choice((1, 1, 2, 5))):
            tokens = changed(tokens, draws)
        file.write_text("".join(tokens), encoding="latin-1")
        try:
            profile = read_profile(file)
        except UsageError:
            continue
        accepted += 1
        assert differing_calls(profile, profile)[0] == 0
        if not profile.run_seconds:
            twice = profile_of_runs([profile, profile])
            assert (twice.processes, twice.seconds, twice.rows) == (profile.processes, profile.seconds, profile.rows)
            file.write_text(twice.text, encoding="utf-8")
            # A report has either an algorithm or why none ran.
            assert read_profile(file).text == twice.text
    assert accepted > 100
