"""collwise search algorithms: from the command line to a decision table."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.common.units import parse_duration
from collwise.simulator.store import Store
from collwise.studies.cli.main import main
from collwise.validation.select.decisions import decisions_from
from collwise.validation.times.grid import case_of
from tests.command_line import printed
from tests.needs import needs


def ended(arguments: list[str]) -> object:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    return raised.value.code


@needs("openmpi")
def test_two_collectives_are_measured_within_a_budget_and_chosen_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store.sqlite"
    measure = ["search", "algorithms", "--collective", "bcast,allreduce", "--procs", "2", "--sizes", "1KiB,64KiB"]
    budget = ["--segments", "8KiB", "--platform", "exact", "--budget", "4s", "--loss", "20", "--store", str(store)]
    assert not ended([*measure, *budget, "--json"])
    found = printed(capsys.readouterr().out)
    assert {(point["collective"], point["message_bytes"]) for point in found.rows} == {
        (name, size) for name in ("bcast", "allreduce") for size in (1024, 65536)
    }
    assert all(0 < point["seconds"] < 1 for point in found.rows)
    assert found.facts["measured"] <= found.facts["cases"]
    with Store(store) as opened:
        [made] = [one for one in opened.configurations() if one.configuration.source == "measured"]
        assert made.key == found.facts["configuration"]
        timings = opened.timings_of(made.key)
        assert sum(one.ok for one in timings.values()) == found.facts["measured"]
    decisions = tmp_path / "d.json"
    select = ["select", f"store:file={store},source=measured,collective=bcast", "-o", str(decisions)]
    assert not ended([*select, "--tolerance", "0", "--tie-limit", "0"])
    [table] = decisions_from(decisions)
    for point in found.rows:
        if point["collective"] == "bcast":
            choice = table.choose(2, point["message_bytes"])
            chosen = case_of("bcast", choice, 2, point["message_bytes"], 2)
            assert timings[chosen].seconds == point["seconds"]  # two algorithms may have the same time


def test_durations() -> None:
    found = [parse_duration(text) for text in ("90", "90s", "1.5 min", "2h")]
    assert found == [90, 90, 90, 7200]
    for text in ("", "-1s", "1d", "1e9", "s", "0.0min"):
        with pytest.raises(UsageError, match="malformed duration"):
            parse_duration(text)
