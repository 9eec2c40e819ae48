"""Open MPI's rules files: what is written, what is read back, and what the installed Open MPI makes of them."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from collwise.algorithms.catalogue import Algorithm, Catalogue, Collective
from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.simulator.execution.installations import mpi_installation
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.libraries.openmpi_check import KNOWN_TRAFFIC, check_rules, observe, recognise, traffic
from collwise.validation.libraries.openmpi_rules import Rule, openmpi_rules, parse_rules
from collwise.validation.select.consumers import OPENMPI_VERSIONS, algorithms_for, needs_one_choice, rule_message
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from tests.needs import need, needs

ROOT = Path(__file__).resolve().parents[3]
KIB = 1024
BCAST, GATHER = 7, 9
LARGEST = 20

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


def choices(collective: str) -> st.SearchStrategy[Choice]:
    names = KNOWN_TRAFFIC[collective]
    segments = st.sampled_from((0, KIB, 8 * KIB, 100_000))
    return st.builds(Choice, st.sampled_from(names), segments, st.integers(0, 9))


@st.composite
def tables(draw: st.DrawFn) -> DecisionTable:
    collective = draw(st.sampled_from(("bcast", "gather")))
    sizes = st.lists(st.integers(1, 10**6), max_size=4, unique=True).map(lambda starts: [0, *sorted(starts)])
    rules = {}
    for procs in sorted(draw(st.sets(st.integers(1, LARGEST), min_size=1, max_size=4))):
        rules[procs] = tuple((start, draw(choices(collective))) for start in draw(sizes))
    return table(collective, rules)


@given(tables(), st.integers(1, 2 * LARGEST), st.integers(1, 3 * 10**6), st.sampled_from(("4.1", "5.0")))
def test_the_file_says_what_the_table_chooses(made: DecisionTable, procs: int, size: int, version: str) -> None:
    rules = parse_rules(openmpi_rules([made], version))
    entry = Catalogue.load().collective(made.collective)
    found = rules.lookup(entry.openmpi_collective, procs, rule_message(made.collective, version, procs, size))
    if procs < min(made.rules):
        assert found is None
        return
    wanted = made.choose(procs, size)
    assert found is not None
    assert found.algorithm == entry.algorithms[wanted.algorithm].openmpi[version]
    assert found.faninout == ((wanted.parameter or 4) if wanted.algorithm == "k_chain" else 0)
    if wanted.algorithm == "split_binary" and size < 2 * wanted.segment_bytes:
        assert found.segment_bytes == 0
    elif wanted.algorithm == "linear_sync" and wanted.segment_bytes == 0:
        assert found.segment_bytes >= KIB
        if 4 * KIB <= size < 8 * KIB * KIB:
            assert size // 4 <= found.segment_bytes <= size // 2
    else:
        assert found.segment_bytes == wanted.segment_bytes


@given(tables(), st.integers(LARGEST, 3000), st.sampled_from([2**exponent for exponent in range(24)]))
def test_above_the_last_row_the_table_holds_on(made: DecisionTable, procs: int, size: int) -> None:
    """Sizes and thresholds are powers of two, as those of gather sink a little between steps."""
    rows = {
        p: {2 ** start.bit_length() if start else 0: choice for start, choice in row} for p, row in made.rules.items()
    }
    made = table(made.collective, {procs: tuple(row.items()) for procs, row in rows.items()})
    rules = parse_rules(openmpi_rules([made], "4.1"))
    entry = Catalogue.load().collective(made.collective)
    found = rules.lookup(entry.openmpi_collective, procs, rule_message(made.collective, "4.1", procs, size))
    assert found is not None
    assert found.algorithm == entry.algorithms[made.choose(procs, size).algorithm].openmpi["4.1"]


@pytest.mark.parametrize("version", OPENMPI_VERSIONS)
def test_layout(version: str) -> None:
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
    rules = parse_rules(text).collectives
    own = (Rule(0, 0),)
    assert list(rules) == [BCAST, GATHER][: len(tables)]
    assert rules[BCAST] == {1: own, 8: (Rule(0, 6), Rule(64 * KIB, 2, 4, 8 * KIB))}
    if version != "4.0":
        assert list(rules[GATHER])[:4] == [1, 8, 9, 10]
        assert rules[GATHER][9] == (Rule(0, 1), Rule(90_000, 3, 0, KIB), Rule(180_000, 2))


def test_one_choice_for_all_sizes_is_one_rule() -> None:
    text = openmpi_rules([table("gather", {2: ((0, Choice("linear")),), 60: ((0, Choice("binomial")),)})], "4.1")
    assert parse_rules(text).collectives == {GATHER: {1: (Rule(0, 0),), 2: (Rule(0, 1),), 60: (Rule(0, 2),)}}
    assert "WARNING" not in text
    assert "WARNING" in openmpi_rules([table("gather", {2: GATHER_ROW})], "4.1")


def test_sizes_below_the_first_one_are_left_to_openmpi() -> None:
    rules = parse_rules(openmpi_rules([table("bcast", {1: ((KIB, Choice("chain", 512)),)})], "4.1"))
    assert rules.collectives == {BCAST: {1: (Rule(0, 0), Rule(KIB, 3, 0, 512))}}
    assert rules.lookup(BCAST, 4, KIB - 1) is None
    assert rules.lookup(GATHER, 4, KIB) is None


def test_patch_versions_mean_their_series() -> None:
    assert openmpi_rules(example(), "4.1.4") == openmpi_rules(example(), "4.1")


def test_openmpi_4_0_cannot_choose_gather_by_size() -> None:
    with pytest.raises(UsageError, match=r"rules of Open MPI 4\.0 cannot choose for gather by message size"):
        openmpi_rules(example(), "4.0")
    rules = parse_rules(openmpi_rules([table("gather", {5: ((0, Choice("linear_sync")),)})], "4.0"))
    assert rules.collectives[GATHER][5] == (Rule(0, 3, 0, KIB),)


def test_errors_of_the_writer() -> None:
    with pytest.raises(UsageError, match=r"unknown Open MPI version '3\.1'.*4\.0, 4\.1, 5\.0"):
        openmpi_rules(example(), "3.1")
    with pytest.raises(
        UsageError, match=r"Open MPI 4\.1 have no bcast algorithm 'linear_nonblocking'.*select --for openmpi-4\.1"
    ):
        openmpi_rules([table("bcast", {2: ((0, Choice("linear_nonblocking", KIB)),)})], "4.1")
    with pytest.raises(UsageError, match="unknown bcast algorithm 'binry'; did you mean"):
        openmpi_rules([table("bcast", {2: ((0, Choice("binry")),)})], "4.1")
    with pytest.raises(UsageError, match="two decision tables for bcast"):
        openmpi_rules([*example(), example()[1]], "4.1")
    with pytest.raises(UsageError, match="decision table is empty"):
        openmpi_rules([table("bcast", {})], "4.1")
    with pytest.raises(UsageError, match="no decision table"):
        openmpi_rules([], "4.1")


@pytest.fixture
def all_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue with one algorithm for each of those collectives whose rules are told apart in some way."""
    known = Catalogue.load()
    compared = {
        "allgatherv": (1, "same"), "allreduce": (2, "same"), "alltoall": (3, "times_procs"), "alltoallv": (4, "none"),
        "exscan": (8, "times_procs"), "gatherv": (10, "times_procs"), "reduce": (11, "same"),
        "scan": (14, "times_procs"), "scatter": (15, "times_procs"),
    }  # fmt: skip
    made = dict(known.collectives)
    for name, (identity, message) in compared.items():
        ids = {} if name == "gatherv" else {version: 1 for version in OPENMPI_VERSIONS}
        algorithms = [
            Algorithm(name, "linear", "-", "f", "flat", (), (), True, ids, "-"),
            Algorithm(name, "new", "-", "f", "ring", (), ("commutative",), True, {"5.0": 2} if ids else {}, "-"),
            Algorithm(
                name,
                "linear_sync",
                "-",
                "f",
                "flat",
                ("max_requests",),
                (),
                True,
                {"4.1": 4} if ids else {},
                "-",
                {"max_requests": 4},
            ),
        ]
        made[name] = Collective(name, name, "-", identity, message, {one.name: one for one in algorithms})
    catalogue = Catalogue(made)
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: catalogue))


@pytest.mark.usefixtures("all_collectives")
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


@pytest.mark.usefixtures("all_collectives")
def test_where_one_choice_has_to_do() -> None:
    def single(target: str | None) -> set[str]:
        return {name for name in Catalogue.load().collectives if needs_one_choice(name, target)}

    blind = {"alltoallv", "barrier", "exscan", "scan"}
    assert single("openmpi-4.0") == single("openmpi-4.1") == single("openmpi-5.0") == blind | {"gather", "scatter"}
    assert single("collwise") == {"alltoallv", "gatherv", "scatterv"}
    assert single(None) == blind | {"gather", "scatter", "gatherv", "scatterv"}


@pytest.mark.usefixtures("all_collectives")
def test_a_consumer_is_asked_for_what_its_rules_can_express() -> None:
    assert algorithms_for("reduce") == algorithms_for("reduce", "collwise") == ("linear", "new", "linear_sync")
    assert algorithms_for("reduce", "openmpi-4.0") == ("linear",)
    assert algorithms_for("reduce", "openmpi-4.1") == ("linear", "linear_sync")
    assert algorithms_for("reduce", "openmpi-5.0") == ("linear", "new")
    # Rules cannot express the limit of requests.
    assert algorithms_for("alltoall", "openmpi-4.1") == ("linear",)
    with pytest.raises(UsageError, match=r"openmpi-4\.1 has no gatherv algorithm to choose"):
        algorithms_for("gatherv", "openmpi-4.1")
    with pytest.raises(UsageError, match=r"have no alltoall algorithm 'linear_sync'.*select --for openmpi-4\.1"):
        openmpi_rules([table("alltoall", {2: ((0, Choice("linear_sync")),)})], "4.1")


@pytest.mark.usefixtures("all_collectives")
@pytest.mark.parametrize("collective", ["scan", "exscan", "alltoallv"])
def test_rules_that_are_blind_to_sizes_take_one_choice(collective: str) -> None:
    by_size = {4: ((0, Choice("linear")), (KIB, Choice("new")))}
    for rules in (by_size, {4: ((KIB, Choice("linear")),)}):
        with pytest.raises(UsageError, match=rf"cannot choose for {collective} by message size.*--one-choice"):
            openmpi_rules([table(collective, rules)], "5.0")
    text = openmpi_rules([table(collective, {4: ((0, Choice("new")),)})], "5.0")
    identity = Catalogue.load().collective(collective).openmpi_collective
    assert parse_rules(text).collectives == {identity: {1: (Rule(0, 0),), 4: (Rule(0, 2),)}}


@pytest.mark.usefixtures("all_collectives")
def test_warnings_of_the_head() -> None:
    by_size = ((0, Choice("linear")), (KIB, Choice("new")))
    scatter = openmpi_rules([table("scatter", {4: by_size})], "5.0")
    assert "# WARNING: for MPI_Scatter, Open MPI looks the rule up by each process's own send count" in scatter
    assert "WARNING" not in openmpi_rules([table("scatter", {4: by_size[:1], 9: ((0, Choice("new")),)})], "5.0")
    reductions = openmpi_rules([table("reduce", {4: by_size}), table("allreduce", {4: by_size[:1]})], "5.0")
    assert "# WARNING: for MPI_Reduce, Open MPI does not look" in reductions
    assert "MPI_Allreduce" not in reductions


def test_a_row_without_entries_is_openmpis_own_decision() -> None:
    rules = parse_rules(openmpi_rules([table("bcast", {4: BCAST_ROW, 5: ()})], "4.1"))
    assert rules.lookup(BCAST, 4, KIB) == Rule(0, 1)
    assert rules.lookup(BCAST, 5, KIB) is None


def test_the_knomial_radix_is_openmpis_own(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Catalogue.load()
    knomial = Algorithm("bcast", "knomial", "-", "f", "knomial", ("radix",), (), True, {"4.1": 7}, "-", {"radix": 4})
    bcast = known.collective("bcast")
    changed = Collective("bcast", "-", "-", BCAST, "same", {**bcast.algorithms, "knomial": knomial})
    catalogue = Catalogue({**known.collectives, "bcast": changed})
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: catalogue))
    text = openmpi_rules([table("bcast", {4: ((0, Choice("knomial")),)})], "4.1")
    assert parse_rules(text).lookup(BCAST, 4, KIB) == Rule(0, 7, 4)
    with pytest.raises(UsageError, match="cannot set the radix of knomial to 8; under rules it is 4"):
        openmpi_rules([table("bcast", {4: ((0, Choice("knomial", parameter=8)),)})], "4.1")


# The table of the interposing library.


def looked_up(text: str, collective: str, procs: int, per_node: int, size: int) -> list[str]:
    """The words after the message size of the rule that the library takes, as its description has it."""
    rules = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    left = [(int(p), int(n), int(m), rest) for name, p, n, m, *rest in rules if name == collective]
    for place, value in enumerate((procs, per_node, size)):
        largest = max((rule[place] for rule in left if rule[place] <= value), default=None)
        left = [rule for rule in left if rule[place] == largest]
    assert len(left) <= 1
    return left[0][3] if left else ["default"]


@given(tables(), st.integers(1, 2 * LARGEST), st.integers(0, 3 * 10**6))
def test_the_librarys_table_says_what_the_table_chooses(made: DecisionTable, procs: int, size: int) -> None:
    found = looked_up(collwise_rules([made]), made.collective, procs, 1, size)
    if procs < min(made.rules):
        assert found == ["default"]
        return
    choice = made.choose(procs, size)
    named = (
        Catalogue.load()
        .algorithm(made.collective, choice.algorithm)
        .named_parameters(choice.segment_bytes, choice.parameter, choice.limit_bytes)
    )
    assert found == [choice.algorithm, *(f"{name}={value}" for name, value in named.items())]


def test_what_the_librarys_table_has_no_word_for_elsewhere() -> None:
    made = table("gather", {2: ((0, Choice("linear")), (5 * KIB, Choice("lmo", 5 * KIB, limit_bytes=64 * KIB)))})
    found = looked_up(collwise_rules([made]), "gather", 2, 1, 6 * KIB)
    assert found == ["lmo", f"bound_bytes={5 * KIB}", f"limit_bytes={64 * KIB}"]
    with pytest.raises(UsageError, match=r"rules of Open MPI 4\.1 have no gather algorithm 'lmo'"):
        openmpi_rules([made], "4.1")


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
    assert looked_up(text, "bcast", 20, 4, KIB) == ["chain", "segment_bytes=512"]
    assert looked_up(text, "bcast", 100, 16, 1) == ["k_chain", "segment_bytes=1024", "chains=2"]
    assert looked_up(text, "gather", 3, 1, 0) == ["linear"]
    assert looked_up(text, "scan", 3, 1, 0) == ["default"]
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
        assert looked_up(text, "bcast", 2, 2, KIB) == ["linear"]
        assert looked_up(text, "bcast", 8, 8, KIB) == ["binomial"]
    assert [line for line in text.splitlines() if line.startswith("bcast 2")] == ["bcast 2 2 0 linear"]
    assert looked_up(text, "bcast", 8, 4, KIB) == ["chain", "segment_bytes=512"]


@pytest.mark.usefixtures("all_collectives")
def test_the_librarys_table_where_sizes_are_not_known_to_all() -> None:
    with pytest.raises(UsageError, match=r"rules of collwise cannot choose for gatherv by message size"):
        collwise_rules([table("gatherv", {4: ((0, Choice("linear")), (KIB, Choice("new")))})])
    text = collwise_rules([table("gatherv", {4: ((0, Choice("new")),)})])
    assert looked_up(text, "gatherv", 4, 1, 0) == ["new"]


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


def test_write(tmp_path: Path) -> None:
    path = tmp_path / "link.rules"
    path.symlink_to(tmp_path / "real.rules")
    for text in ("first\n", "second\n"):
        write_text(path, text)
        assert path.read_text() == text
    assert path.is_symlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link.rules", "real.rules"]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(path, "rules\n")
        assert os.read(reader, 100) == b"rules\n"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept\n")
    for path in (tmp_path, tmp_path / "file" / "x.rules", tmp_path / "file" / "folder" / "x.rules"):
        with pytest.raises(UsageError, match="cannot write") as caught:
            write_text(path, "text\n")
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.rules"
    write_text(path, "old\n")

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError, match="No space left"):
        write_text(path, "new\n")
    assert path.read_text() == "old\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.rules"]


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


@pytest.mark.parametrize(("start", "choice"), BCAST_ROW)
def test_bcast_runs_as_chosen(rules: Path, start: int, choice: Choice) -> None:
    """At its threshold each algorithm runs, segment by segment; a byte below the one before it does."""
    assert observe("bcast", 8, start or 1, rules) == traffic("bcast", choice, 8, start or 1)
    if start:
        before = max((row for row in BCAST_ROW if row[0] < start), key=lambda row: row[0])[1]
        assert observe("bcast", 8, start - 1, rules) == traffic("bcast", before, 8, start - 1)


@pytest.mark.parametrize("procs", [5, 7])
def test_gather_runs_as_chosen(rules: Path, procs: int) -> None:
    """The thresholds are right for each P although Open MPI compares bytes times processes."""
    for size, choice in [(9_999, 0), (10_000, 1), (19_999, 1), (20_000, 2)]:
        assert observe("gather", procs, size, rules) == traffic("gather", GATHER_ROW[choice][1], procs, size)


def test_short_halves_and_halved_blocks(rules: Path, tmp_path: Path) -> None:
    """Split-binary with halves below a segment, and linear_sync in halves: Open MPI is told them differently."""
    path = tmp_path / "x.rules"
    tables = [
        table("bcast", {2: ((0, Choice("split_binary", 64 * KIB)),)}),
        table("gather", {2: ((0, Choice("linear_sync")),)}),
    ]
    write_text(path, openmpi_rules(tables, "4.1"))
    for procs, size in [(7, 1000), (6, 128 * KIB), (6, 128 * KIB - 1)]:
        wanted = traffic("bcast", Choice("split_binary", 64 * KIB), procs, size)
        assert observe("bcast", procs, size, path) == wanted
    assert observe("gather", 5, 64 * KIB, path) == traffic("gather", Choice("linear_sync"), 5, 64 * KIB)


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


@pytest.mark.parametrize(("collective", "procs"), [("bcast", 4), ("gather", 4)])
def test_outside_the_table_openmpi_decides(rules: Path, collective: str, procs: int) -> None:
    size = 200 * KIB
    check = check_rules(rules, collective, procs, size)
    assert check.expected is None
    assert check.matches
    assert not check.changes_something
    inside = next(made for made in example() if made.collective == collective).choose(max(procs, 5), size)
    assert dict(check.observed) != dict(traffic(collective, inside, procs, size))


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


def test_rules_by_totals_end_at_the_platforms_size_in_few_rows() -> None:
    """A cluster of 2048 processes, decided for 64 and for all: before, in between and at the end."""
    row = ((0, Choice("bruck")), (KIB, Choice("linear")), (64 * KIB, Choice("pairwise")))
    made = replace(table("alltoall", {64: row, 2048: row[::2]}), platform_procs=2048)
    sizes = parse_rules(openmpi_rules([made], "4.1")).collectives[3]
    assert max(sizes) == 2048
    assert len(sizes) < 128
    rules = parse_rules(openmpi_rules([made], "4.1"))
    entry = Catalogue.load().collective("alltoall")
    for procs in (64, 65, 1000, 2047, 2048, 5000):
        for size, _ in row:
            found = rules.lookup(3, procs, rule_message("alltoall", "4.1", procs, size))
            assert found is not None
            assert found.algorithm == entry.algorithms[made.choose(procs, size).algorithm].openmpi["4.1"]
