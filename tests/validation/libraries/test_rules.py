"""Open MPI's rules files: what is written, what is read back, and what the installed Open MPI makes of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from collwise.algorithms.catalogue import Catalogue, Collective
from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.simulator.execution.installations import mpi_installation
from collwise.validation.libraries.baselines import DEFAULT
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.libraries.openmpi_check import (
    KNOWN_TRAFFIC,
    check_all,
    check_rules,
    observe,
    recognise,
    rules_decider,
    traffic,
)
from collwise.validation.libraries.openmpi_rules import Rule, openmpi_rules, parse_rules, settings_of_rules
from collwise.validation.select.consumers import OPENMPI_VERSIONS, algorithms_for, needs_one_choice, rule_message
from collwise.validation.select.decisions import DecisionTable, Row
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import case_of
from tests.needs import need, needs
from tests.validation.libraries.lookups import chosen, collwise_lookup, decided_for, in_force, points_around, row_of
from tests.validation.traces import Call, edges, traced

ROOT = Path(__file__).resolve().parents[3]
KIB = 1024
BCAST, GATHER = 7, 9

# Message size from which, choice: every broadcast algorithm, told apart by what it sends.
BCAST_ROW = (
    (0, Choice("linear")),
    (16 * KIB, Choice("chain", 8 * KIB)),
    (32 * KIB, Choice("k_chain", 8 * KIB)),
    (64 * KIB, Choice("binary", 8 * KIB)),
    (128 * KIB, Choice("split_binary", 8 * KIB)),
    (256 * KIB, Choice("binomial", 8 * KIB)),
)
GATHER_ROW = ((0, Choice("linear")), (10_000, Choice("linear_sync", KIB)), (20_000, Choice("binomial")))


def table(collective: str, rules: dict[int, tuple[tuple[int, Choice], ...]]) -> DecisionTable:
    return DecisionTable(collective, "grisou", 1, "predicted", "model by_parts", rules)


def example() -> list[DecisionTable]:
    return [table("gather", {5: GATHER_ROW}), table("bcast", {5: BCAST_ROW})]


@pytest.mark.parametrize("version", OPENMPI_VERSIONS)
@settings(max_examples=12)
@given(data=st.data(), beyond=st.integers(1, 3000))
def test_the_file_says_what_the_table_chooses(version: str, data: st.DataObject, beyond: int) -> None:
    """Where sizes are multiplied by P, rows from P = 64 on are for several P, and choices switch up to 1/33 early."""
    made = data.draw(decided_for(f"openmpi-{version}"))
    entry = Catalogue.load().collective(made.collective)
    rules = parse_rules(openmpi_rules([made], version))
    for procs, size in points_around(made, beyond):
        found = rules.lookup(entry.openmpi_collective, procs, rule_message(made.collective, version, procs, size))
        early = procs >= 64 and rule_message(made.collective, version, procs, size) == procs * size
        possible = in_force(row_of(made, procs), size, early)
        assert any(_asks_for(found, entry, wanted, version, size, early) for wanted in possible), (procs, size)


def _asks_for(
    rule: Rule | None, entry: Collective, wanted: Choice | None, version: str, size: int, early: bool
) -> bool:
    """Whether a rule asks for a choice, as Open MPI has it."""
    if rule is None or wanted is None:
        return rule is wanted
    algorithm = entry.algorithms[wanted.algorithm]
    count = (wanted.parameter or algorithm.default_count) if algorithm.count_parameter else 0
    if (rule.algorithm, rule.faninout) != (algorithm.openmpi[version], count):
        return False
    if (entry.name, wanted.algorithm) == ("bcast", "split_binary") and size < 2 * wanted.segment_bytes:
        return rule.segment_bytes == 0  # else Open MPI would run its chain
    if (entry.name, wanted.algorithm, wanted.segment_bytes) == ("gather", "linear_sync", 0):  # ours sends halves
        halved = size // 4 <= rule.segment_bytes <= size // 2
        return rule.segment_bytes >= KIB and (halved or early or version == "4.0" or not 4 * KIB <= size < 8192 * KIB)
    return rule.segment_bytes == wanted.segment_bytes


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(decided_for("openmpi-4.1"))
def test_a_file_of_rules_decides_as_the_table_that_it_was_made_from(tmp_path: Path, made: DecisionTable) -> None:
    """And as untuned Open MPI where the table says nothing."""
    (tmp_path / "x.rules").write_text(openmpi_rules([made], "4.1"))
    decider = rules_decider(tmp_path / "x.rules")
    for procs, size in points_around(made, 1):
        wanted = chosen(row_of(made, procs), size)
        if procs >= 64 or (wanted is not None and wanted.algorithm in ("split_binary", "linear_sync")):
            continue  # which rules say in another way
        if wanted is None:
            wanted = DEFAULT.choice(made.collective, procs, size)
        elif wanted.parameter == Catalogue.load().algorithm(made.collective, wanted.algorithm).default_count:
            wanted = replace(wanted, parameter=0)
        assert decider.choice(made.collective, procs, size) == wanted, (procs, size)


@pytest.mark.parametrize("version", OPENMPI_VERSIONS)
def test_the_head_says_what_the_rules_are_and_how_to_use_them(version: str) -> None:
    tables = [table("bcast", {8: ((0, Choice("binomial")), (64 * KIB, Choice("k_chain", 8 * KIB)))})]
    if version != "4.0":
        tables.insert(0, table("gather", {8: GATHER_ROW}))
    text = openmpi_rules(tables, version)
    assert text == openmpi_rules(tables[::-1], version)
    assert "grisou" in text
    assert "model by_parts" in text
    assert "--mca coll_tuned_use_dynamic_rules 1" in text
    assert ("--mca coll ^han,hcoll,ucc" in text) == (version != "4.0")
    assert all(line.isascii() and len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize("version", OPENMPI_VERSIONS)
def test_open_mpi_is_told_the_first_halves_of_blocks_up_to_the_last_power_of_two(version: str) -> None:
    rules = parse_rules(openmpi_rules([table("gather", {5: ((0, Choice("linear_sync")),)})], version))
    for size in (0, 1, 4095, 4096, 5000, 8191, 8192, 2**20 + 1, 2**22, 2**24):
        found = rules.lookup(GATHER, 5, rule_message("gather", version, 5, size))
        half = KIB if version == "4.0" or size < 4 * KIB else 1 << (min(size, 2**22).bit_length() - 2)
        assert found == Rule(found.start if found else 0, 3, 0, half), size


def test_a_row_is_written_once_where_its_rules_do_not_depend_on_p() -> None:
    text = openmpi_rules([table("gather", {2: ((0, Choice("linear")),), 60: ((0, Choice("binomial")),)})], "4.1")
    assert parse_rules(text).collectives == {GATHER: {1: (Rule(0, 0),), 2: (Rule(0, 1),), 60: (Rule(0, 2),)}}


def test_patch_versions_mean_their_series() -> None:
    assert openmpi_rules(example(), "4.1.4") == openmpi_rules(example(), "4.1")


BY_SIZE: dict[int, Row] = {4: ((0, Choice("linear")), (KIB, Choice("recursive_doubling")))}
CANNOT = r"cannot choose for {} by message size.*--one-choice"


@pytest.mark.parametrize(
    ("tables", "version", "said"),
    [
        (example(), "3.1", r"unknown Open MPI version '3\.1'.*4\.0, 4\.1, 5\.0"),
        (example(), "4.0", r"rules of Open MPI 4\.0 cannot choose for gather by message size"),
        (
            [table("bcast", {2: ((0, Choice("linear_nonblocking", KIB)),)})],
            "4.1",
            r"Open MPI 4\.1 have no bcast algorithm 'linear_nonblocking'.*select --for openmpi-4\.1",
        ),
        ([table("bcast", {2: ((0, Choice("binry")),)})], "4.1", "unknown bcast algorithm 'binry'; did you mean"),
        (
            [table("alltoall", {2: ((0, Choice("linear_sync")),)})],  # whose limit of requests rules cannot express
            "4.1",
            r"have no alltoall algorithm 'linear_sync'.*select --for openmpi-4\.1",
        ),
        ([table("gather", {2: ((0, Choice("lmo")),)})], "4.1", r"Open MPI 4\.1 have no gather algorithm 'lmo'"),
        ([*example(), example()[1]], "4.1", "two decision tables for bcast"),
        ([table("bcast", {})], "4.1", "decision table is empty"),
        ([], "4.1", "no decision table"),
        *(([table(name, BY_SIZE)], "5.0", CANNOT.format(name)) for name in ("scan", "exscan", "alltoallv")),
        ([table("scan", {4: ((KIB, Choice("linear")),)})], "5.0", CANNOT.format("scan")),
    ],
)  # fmt: skip
def test_what_rules_cannot_say_is_refused(tables: list[DecisionTable], version: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        openmpi_rules(tables, version)


def test_what_openmpi_compares() -> None:
    """As its sources have it, and for allgatherv as Open MPI 4.1.4 was seen to."""
    found = {
        name: tuple(rule_message(name, version, 10, 800) for version in OPENMPI_VERSIONS)
        for name in Catalogue.load().collectives
    }
    assert found == {
        "bcast": (800,) * 4, "gather": (10, 8000, 8000, 8000), "barrier": (0,) * 4, "allgatherv": (8000, 800, 800, 800),
        "allgather": (8000,) * 4, "allreduce": (800,) * 4, "alltoall": (8000,) * 4, "alltoallv": (0,) * 4,
        "exscan": (10,) * 4, "gatherv": (8000,) * 4, "reduce": (800,) * 4, "reduce_scatter": (800,) * 4,
        "reduce_scatter_block": (8000,) * 4, "scan": (10,) * 4, "scatter": (10, 8000, 8000, 8000),
        "scatterv": (8000,) * 4,
    }  # fmt: skip


def test_where_one_choice_has_to_do() -> None:
    def single(target: str | None) -> set[str]:
        return {name for name in Catalogue.load().collectives if needs_one_choice(name, target)}

    blind = {"alltoallv", "barrier", "exscan", "scan"}
    assert single("openmpi-4.0") == single("openmpi-4.1") == single("openmpi-5.0") == blind | {"gather", "scatter"}
    assert single("collwise") == {"alltoallv", "gatherv", "scatterv"}
    assert single(None) == blind | {"gather", "scatter", "gatherv", "scatterv"}


def test_a_consumer_is_asked_for_what_its_rules_can_express() -> None:
    for name, entry in Catalogue.load().collectives.items():
        assert algorithms_for(name) == algorithms_for(name, "collwise") == entry.selectable
        for version in OPENMPI_VERSIONS:
            known = [one for one in entry.selectable if version in entry.algorithms[one].openmpi]
            if (name, "linear_sync") == ("alltoall", known[-1] if known else ""):
                known.pop()
            if known:
                assert algorithms_for(name, f"openmpi-{version}") == (*known,)
    with pytest.raises(UsageError, match=r"openmpi-4\.1 has no gatherv algorithm to choose"):
        algorithms_for("gatherv", "openmpi-4.1")


def test_warnings_of_the_head() -> None:
    by_size = ((0, Choice("linear")), (KIB, Choice("binomial")))
    scatter = openmpi_rules([table("scatter", {4: by_size})], "5.0")
    assert "# WARNING: for MPI_Scatter, Open MPI looks the rule up by each process's own send count" in scatter
    gather = openmpi_rules([table("gather", {4: by_size})], "5.0")
    assert "# WARNING: for MPI_Gather, Open MPI looks the rule up by each process's own send count" in gather
    assert "WARNING" not in openmpi_rules([table("scatter", {4: by_size[:1], 9: ((0, Choice("binomial")),)})], "5.0")
    reductions = openmpi_rules([table("reduce", {4: by_size}), table("allreduce", {4: by_size[:1]})], "5.0")
    assert "# WARNING: for MPI_Reduce, Open MPI does not look" in reductions
    assert "MPI_Allreduce" not in reductions


def test_the_knomial_radix_is_openmpis_own() -> None:
    text = openmpi_rules([table("bcast", {4: ((0, Choice("knomial")),)})], "4.1")
    assert parse_rules(text).lookup(BCAST, 4, KIB) == Rule(0, 7, 4)
    with pytest.raises(UsageError, match="cannot set the radix of knomial to 8; under rules it is 4"):
        openmpi_rules([table("bcast", {4: ((0, Choice("knomial", parameter=8)),)})], "4.1")


# The table of the interposing library; test_exports.py has its law.


def test_the_librarys_table_names_the_limit_of_an_algorithm() -> None:
    made = table("gather", {2: ((0, Choice("linear")), (5 * KIB, Choice("lmo", 5 * KIB, limit_bytes=64 * KIB)))})
    found = collwise_lookup(collwise_rules([made]), "gather", 2, 1, 6 * KIB)
    assert found == ["lmo", f"bound_bytes={5 * KIB}", f"limit_bytes={64 * KIB}"]


def test_the_librarys_table_by_processes_a_node() -> None:
    one = table("bcast", {2: ((KIB, Choice("chain", 512)),), 64: ()})
    many = DecisionTable("bcast", "grisou", 8, "simulated", "hand", {16: ((0, Choice("k_chain", KIB, 2)),)})
    text = collwise_rules([one, many, table("gather", {2: ((0, Choice("linear")),)})])
    assert [line for line in text.splitlines() if line.startswith("bcast")] == [
        "bcast 2 1 0 default",
        "bcast 2 1 1024 chain segment_bytes=512",
        "bcast 2 2 0 default",
        "bcast 16 1 0 default",
        "bcast 16 1 1024 chain segment_bytes=512",
        "bcast 16 8 0 k_chain segment_bytes=1024 chains=2",
        "bcast 64 1 0 default",
        "bcast 64 8 0 k_chain segment_bytes=1024 chains=2",
    ]
    assert collwise_lookup(text, "bcast", 20, 4, KIB) == ["chain", "segment_bytes=512"]
    assert collwise_lookup(text, "bcast", 100, 16, 1) == ["k_chain", "segment_bytes=1024", "chains=2"]
    assert collwise_lookup(text, "gather", 3, 1, 0) == ["linear"]
    assert collwise_lookup(text, "scan", 3, 1, 0) == ["default"]
    with pytest.raises(UsageError, match="two decision tables of one collective for the same number"):
        collwise_rules([one, one])
    with pytest.raises(UsageError, match="no decision table"):
        collwise_rules([])


def test_the_librarys_table_has_no_rule_for_more_processes_a_node_than_there_are() -> None:
    rows = {2: ((0, Choice("linear")),), 8: ((0, Choice("binomial")),)}
    on_one_node = DecisionTable("bcast", "here", 8, "simulated", "hand", rows)
    spread = DecisionTable("bcast", "here", 4, "simulated", "hand", {8: ((0, Choice("chain", 512)),)})
    for tables in ([on_one_node], [spread, on_one_node]):
        text = collwise_rules(tables)
        assert collwise_lookup(text, "bcast", 2, 2, KIB) == ["linear"]
        assert collwise_lookup(text, "bcast", 8, 8, KIB) == ["binomial"]
    assert [line for line in text.splitlines() if line.startswith("bcast 2")] == ["bcast 2 2 0 linear"]
    assert collwise_lookup(text, "bcast", 8, 4, KIB) == ["chain", "segment_bytes=512"]


def test_the_librarys_table_where_sizes_are_not_known_to_all() -> None:
    with pytest.raises(UsageError, match=r"rules of collwise cannot choose for gatherv by message size"):
        collwise_rules([table("gatherv", {4: ((0, Choice("linear")), (KIB, Choice("linear_nonblocking")))})])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "rules:1: the file ends where the number of collectives is expected"),
        ("1\n7 # bcast\none", "rules:3: 'one' where the number of communicator sizes is expected"),
        ("1 7 1 2 1\n0 -1 0 0", "rules:2: '-1' where an algorithm is expected"),
        ("1 7 1 2 1\n0 1 0", "rules:2: the file ends where a segment size is expected"),
        ("1 7 1 2 2\n0 1 0 0\n", "rules:2: the file ends where a message size is expected"),
        ("1 7 1 2 1\n8 1 0 0", "rules:2: the first message size is 8; it must be 0"),
        ("1 7 1 2 2\n0 1 0 0\n0 1 0 0", "rules:3: message size 0 after 0; sizes must ascend"),
        ("1 7 2 4 1 0 1 0 0\n2 1 0 1 0 0", "rules:2: communicator size 2 after 4; sizes must ascend"),
        ("2 7 0\n7 0", "rules:2: collective 7 appears twice"),
        ("1 7 1 2 0", "rules:1: a communicator size without rules"),
        ("1 7 1 2 1\n0 1 0 0\n64 1 0 0", "rules:2: numbers after the last rule; one of the counts is too small"),
    ],
)
def test_errors_of_the_reader(text: str, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rules(text)
    assert str(caught.value) == error


@pytest.mark.parametrize("procs", range(5, 17))
def test_every_algorithm_has_traffic_of_its_own(procs: int) -> None:
    for collective, names in KNOWN_TRAFFIC.items():
        sent = {name: traffic(collective, Choice(name, 8 * KIB), procs, 64 * KIB) for name in names}
        for one, other in combinations(names, 2):
            assert dict(sent[one]) != dict(sent[other])
        for messages in sent.values():
            received = {rank for (_, rank), (_, size) in messages.items() if size}
            assert received >= (set(range(1, procs)) if collective == "bcast" else {0})


# From here on the installed Open MPI runs.


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rules file from 5 processes on, and the program that calls under it."""
    need("openmpi")
    mpi_installation("openmpi").program("call")
    path = tmp_path_factory.mktemp("rules") / "x.rules"
    write_text(path, openmpi_rules(example(), "4.1"))
    return path


SPLIT, SYNC = Choice("split_binary", 64 * KIB), Choice("linear_sync")
SHORT = [table("bcast", {2: ((0, SPLIT),)}), table("gather", {2: ((0, SYNC),)})]


@needs("openmpi-4.1")
@pytest.mark.parametrize(
    ("tables", "procs", "ran"),
    [
        (example(), 8, [("bcast", size, choice) for (_, before), (start, after) in pairwise(BCAST_ROW)
                        for size, choice in ((start, after), (start - 1, before))]),
        *((example(), procs, [("gather", size, GATHER_ROW[place][1]) for size, place in
                              ((9_999, 0), (10_000, 1), (19_999, 1), (20_000, 2))]) for procs in (5, 7)),
        (SHORT, 6, [("bcast", 1000, SPLIT), ("bcast", 128 * KIB, SPLIT), ("bcast", 128 * KIB - 1, SPLIT)]),
        (SHORT, 5, [("gather", 64 * KIB, SYNC)]),
    ],
    ids=["bcast", "gather on 5", "gather on 7", "short halves", "halved blocks"],
)  # fmt: skip
def test_open_mpi_runs_what_the_rules_say(
    tables: list[DecisionTable], procs: int, ran: list[tuple[str, int, Choice]], tmp_path: Path
) -> None:
    """At its threshold each algorithm runs, segment by segment; a byte below the one before it does.

    Thresholds of gather are right for each P although Open MPI compares bytes times processes.
    """
    path = tmp_path / "x.rules"
    write_text(path, openmpi_rules(tables, "4.1"))
    asked = [Call(0, case_of(collective, choice, procs, size), parts=False) for collective, size, choice in ran]
    found = traced(asked, tmp_path, settings_of_rules(str(path)))
    for one, (collective, size, choice) in zip(found, ran, strict=True):
        assert edges(one.theirs, with_empty=True) == traffic(collective, choice, procs, size), (collective, size)


def test_other_collectives_are_compared_with_what_open_mpi_does_when_it_must(tmp_path: Path, rules: Path) -> None:
    """Dissemination barriers: Open MPI's own choice for 5 processes is another one."""
    assert rules.exists()
    path = tmp_path / "x.rules"
    write_text(path, openmpi_rules([table("barrier", {5: ((0, Choice("bruck")),)})], "4.1"))
    check = check_rules(path, "barrier", 5, 0)
    assert check.matches
    assert check.expected == Choice("bruck")
    assert sum(messages for messages, _ in check.observed.values()) == 5 * 3
    assert "ran bruck for barrier of 0 B on 5 processes" in check.summary


def test_an_algorithm_may_call_collectives_that_have_rules_as_well(tmp_path: Path) -> None:
    """Open MPI's non-overlapping allreduce reduces and broadcasts as the rules of these collectives say."""
    path = tmp_path / "nested.rules"
    chosen = {"allreduce": "non_overlapping", "bcast": "chain", "reduce": "linear"}
    tables = [table(name, {5: ((0, Choice(algorithm)),)}) for name, algorithm in chosen.items()]
    write_text(path, openmpi_rules(tables, "4.1"))
    assert parse_rules(parse_rules(path.read_text()).text) == parse_rules(path.read_text())
    check = check_rules(path, "allreduce", 5, KIB)
    assert check.matches
    edges = {(rank, 0) for rank in range(1, 5)} | {(rank, rank + 1) for rank in range(4)}
    assert {*check.observed} == edges


def test_outside_the_table_openmpi_decides(rules: Path) -> None:
    size = 200 * KIB
    check = check_rules(rules, "gather", 4, size)
    assert check.expected is None
    assert check.matches
    assert not check.changes_something
    assert dict(check.observed) != dict(traffic("gather", GATHER_ROW[2][1], 4, size))


def test_check(rules: Path) -> None:
    check = check_rules(rules, "bcast", 8, 64 * KIB)
    assert check.matches
    assert check.changes_something
    assert check.expected == Choice("binary", 8 * KIB)
    assert "ran binary for bcast of 64 KiB on 8 processes (without the rules: " in check.summary
    assert recognise("bcast", 8, 64 * KIB, check.without) != "binary"


def test_a_wrong_count_is_ignored_by_openmpi_and_found_by_us(rules: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.rules"
    broken.write_text(rules.read_text().replace("2 # collectives", "3 # collectives"))
    assert observe("bcast", 8, 64 * KIB, broken) == observe("bcast", 8, 64 * KIB)
    with pytest.raises(UsageError, match=rf"{broken}:\d+: the file ends where a collective id is expected"):
        check_rules(broken, "bcast", 8, 64 * KIB)


@needs("openmpi")
def test_check_of_bad_input(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*no\.rules: No such file"):
        check_rules(tmp_path / "no.rules", "bcast", 4, KIB)
    with pytest.raises(UsageError, match="2 processes and 1 byte"):
        check_rules(tmp_path / "no.rules", "bcast", 1, KIB)
    unknown = tmp_path / "x.rules"
    unknown.write_text("1 7 1 1 1 0 99 0 0\n")
    with pytest.raises(UsageError, match="no bcast algorithm with the id 99"):
        check_rules(unknown, "bcast", 4, KIB)


def test_rules_that_begin_too_late_to_be_checked_are_named(tmp_path: Path) -> None:
    late = [
        table("bcast", {65: ((0, Choice("linear")),)}),
        table("gather", {8: ((2**23, Choice("linear")),)}),
        table("reduce", {64: ((2**20, Choice("linear")),)}),
    ]
    told, verdicts = zip(*check_all(tmp_path / "x.rules", late), strict=True)
    assert verdicts == (None,) * 3
    assert told[0].startswith(
        "bcast: not checked, since its rules begin with P = 65, and at most 64 processes run here"
    )
    assert told[1] == "gather: not checked, since no rule applies to 8 processes and 4 MiB or less"
    assert told[2] == "reduce: not checked, since no rule applies to 64 processes and 512 KiB or less"


def test_rules_by_totals_end_at_the_platforms_size_in_few_rows() -> None:
    row = ((0, Choice("bruck")), (KIB, Choice("linear")), (64 * KIB, Choice("pairwise")))
    made = replace(table("alltoall", {64: row, 2048: row[::2]}), platform_procs=2048)
    sizes = parse_rules(openmpi_rules([made], "4.1")).collectives[3]
    assert max(sizes) == 2048
    assert len(sizes) < 128
