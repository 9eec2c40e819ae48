"""Exports for MPI libraries: every format gives each call what the table chose, or the second best that it can say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import collwise
from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.errors import UsageError
from collwise.models.piecewise import Array
from collwise.simulator.execution.interposed import decided_line
from collwise.studies.cli.main import main
from collwise.validation.libraries import mpich_file
from collwise.validation.libraries.formats import FORMATS, exported
from collwise.validation.libraries.mpich_untuned import own_tables, selected
from collwise.validation.libraries.openmpi_rules import openmpi_rules, parse_rules
from collwise.validation.libraries.pgmpi import parse_profile
from collwise.validation.libraries.sayable import Substitution, for_consumer, second_best, told
from collwise.validation.libraries.variables import ucc_summary
from collwise.validation.select.consumers import rule_message
from collwise.validation.select.decisions import DecisionTable, Row, decisions_document, merged
from collwise.validation.times.choice import Choice
from tests.validation.libraries.lookups import (
    KIB,
    UCC_TOTALS,
    chosen,
    collwise_lookup,
    decided_for,
    in_force,
    intel_lookup,
    mpich_lookup,
    mvapich2_lookup,
    openmpi_json_lookup,
    points_around,
    row_of,
    ucc_lookup,
    value_of,
)
from tests.validation.times_of import times_of

MIB = 1024 * KIB


def table(collective: str, rules: Mapping[int, list[tuple[int, str]]], **others: Any) -> DecisionTable:
    """A table of unsegmented choices."""
    rows = {p: tuple((start, Choice(name)) for start, name in row) for p, row in rules.items()}
    return DecisionTable(collective, "bed", 1, "simulated", "test", rows, **others)


BCAST = table(
    "bcast",
    {
        4: [(8 * KIB, "binomial"), (64 * KIB, "scatter_allgather")],
        8: [(KIB, "scatter_ring_allgather")],
        16: [(0, "binomial"), (KIB, "scatter_allgather"), (MIB, "scatter_ring_allgather")],
    },
)


@dataclass(frozen=True)
class Reader:
    """How a library reads a format.

    `find` is what it finds for a call, and `say` what stands there for a choice. `totals` are the collectives for which
    sizes are multiplied by P: from 64 processes on, one row is for several P, and choices switch up to 1/33 early.
    The choice for the largest P is for at most `beyond` more.
    """

    find: Callable[[str, str, int, int], object]
    say: Callable[[Algorithm, Choice], object]
    nothing: Callable[[str, int, int], object] = lambda *_: ""
    version: str = ""
    totals: tuple[str, ...] = ()
    beyond: int = 3000


def words_of(entry: Algorithm, choice: Choice) -> list[str]:
    given = entry.named_parameters(choice.segment_bytes, choice.parameter)
    return [entry.name, *(f"{name}={value}" for name, value in given.items())]


def mpichs_own(collective: str, procs: int, size: int) -> str:
    return selected(own_tables(), collective, procs, size)


def mpichs_function(entry: Algorithm, _: Choice) -> str:
    where = "allcomm" if entry.collective in ("gatherv", "scatterv") else "intra"
    return f"MPIR_{entry.collective.capitalize()}_{where}_{entry.mpich}"


MPICH_TOTALS = ("allgather", "allgatherv", "reduce_scatter_block")
READERS = {
    "collwise": Reader(lambda text, name, procs, size: collwise_lookup(text, name, procs, 1, size), words_of,
                       lambda *_: ["default"]),
    "mpich": Reader(mpich_lookup, mpichs_function, mpichs_own, "4.0", MPICH_TOTALS),
    "mpich-variables": Reader(
        lambda text, name, *_: value_of(text, f"MPIR_CVAR_{name.upper()}_INTRA_ALGORITHM"), lambda one, _: one.mpich
    ),
    "intel": Reader(intel_lookup, lambda one, _: str(one.intel), totals=("allgatherv",), beyond=16),
    "mvapich2": Reader(lambda text, name, _, size: mvapich2_lookup(text, name, size), lambda one, _: str(one.mvapich2)),
    "ucc": Reader(ucc_lookup, lambda one, _: one.ucc, totals=UCC_TOTALS, beyond=16),
    "smpi": Reader(lambda text, name, *_: text.strip().partition(f"--cfg=smpi/{name}:")[2], lambda one, _: one.smpi),
    "prf": Reader(lambda text, _, __, size: parse_profile(text).lookup(size) or "", lambda one, _: one.pgmpi),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=20)
@given(data=st.data())
def test_a_call_finds_in_the_file_what_the_table_chose(name: str, data: st.DataObject) -> None:
    reader, form = READERS[name], FORMATS[name]
    decided = data.draw(decided_for(form.consumer, form.by_size))
    beyond, collective = data.draw(st.integers(1, reader.beyond)), decided.collective
    points = list(points_around(decided, beyond))
    one_procs = data.draw(st.sampled_from([procs for procs, _ in points if row_of(decided, procs)]))
    options: dict[str, Any] = {"procs": one_procs} if form.one_procs else {"version": reader.version}
    text = exported([decided], name, **options).text
    for procs, size in points:
        if form.one_procs and procs != one_procs:
            continue
        row = row_of(decided, procs)
        early = procs >= 64 and collective in reader.totals
        possible = in_force(row, size, early)
        if name == "mvapich2":  # it cannot be left to decide
            possible = [possible[0] or row[0][1]]
        assert reader.find(text, collective, procs, size) in [
            _said(reader, collective, choice, procs, size) for choice in possible
        ], (procs, size)


def _said(reader: Reader, collective: str, choice: Choice | None, procs: int, size: int) -> object:
    entry = None if choice is None else Catalogue.load().algorithm(collective, choice.algorithm)
    mpich_cannot = entry is not None and reader.find is mpich_lookup and (
        entry.objection(procs) or (entry.name == "rabenseifner" and size < 2 ** (procs.bit_length() - 1))
    )  # fmt: skip
    if entry is None or choice is None or mpich_cannot:
        return reader.nothing(collective, procs, size)
    return reader.say(entry, choice)


@settings(max_examples=20)
@given(decided=decided_for("openmpi-6.0"), beyond=st.integers(0, 3000))
def test_json_rules_say_what_classic_rules_say(decided: DecisionTable, beyond: int) -> None:
    text = exported([decided], "openmpi-json").text
    document = json.loads(text)
    assert (document["rule_file_version"], document["module"]) == (3, "tuned")
    classic = parse_rules(openmpi_rules(for_consumer([decided], "openmpi-6.0")[0], "6.0"))
    identity = Catalogue.load().collective(decided.collective).openmpi_collective
    for procs, size in points_around(decided, beyond):
        message = rule_message(decided.collective, "6.0", procs, size)
        rule = classic.lookup(identity, procs, message)
        found = openmpi_json_lookup(text, decided.collective, procs, message) or {}
        expected = (
            {} if rule is None else {"alg": rule.algorithm, "faninout": rule.faninout, "seg_size": rule.segment_bytes}
        )
        sizes = ("msg_size_min", "msg_size_max")
        assert {key: value for key, value in found.items() if key not in sizes} == {
            key: value for key, value in expected.items() if value
        }, (procs, size)


# What MPICH's files hold besides


def test_mpichs_file_has_every_collective_and_a_leaf_for_every_call() -> None:
    """MPICH stops at a call for which its file has no algorithm, also inside MPI_Init."""
    tree = json.loads(exported([BCAST], "mpich").text)
    assert set(tree) == set(own_tables())
    assert len(tree) == 44

    def complete(node: dict[str, Any]) -> bool:
        names = list(node)
        if any(name.startswith("algorithm=") for name in names):
            return len(names) == 1
        last = names[-1]
        two = {"=yes", "=no"} <= {name[name.index("=") :] for name in names if "<" not in name} and len(names) == 2
        kinds = names == ["comm_type=intra", "comm_type=inter"]
        return (last.endswith("=any") or two or kinds or names == ["comm_type=intra"]) and all(
            map(complete, node.values())
        )

    for name, node in tree.items():
        assert complete(node), name


@pytest.mark.parametrize(
    ("collective", "algorithm", "call", "found"),
    [
        ("allreduce", "rabenseifner", {}, "intra_reduce_scatter_allgather"),
        ("allreduce", "rabenseifner", {"built_in": False}, "intra_recursive_doubling"),
        ("alltoall", "pairwise", {}, "intra_pairwise"),
        ("alltoall", "pairwise", {"inplace": True}, "intra_pairwise_sendrecv_replace"),
        ("reduce_scatter", "recursive_halving", {}, "intra_recursive_halving"),
        ("reduce_scatter", "recursive_halving", {"commutative": False}, "intra_noncommutative"),
    ],
)
def test_mpichs_file_leaves_calls_that_an_algorithm_cannot_run_to_mpich(
    collective: str, algorithm: str, call: dict[str, bool], found: str
) -> None:
    text = exported([table(collective, {2: [(0, algorithm)]})], "mpich").text
    assert mpich_file.lookup(text, collective, 4, MIB, **call).endswith(found)


def test_mpich_41_names_its_barrier_otherwise() -> None:
    barrier = table("barrier", {2: [(0, "bruck")]})
    for version, name, has_radix in (
        ("4.0", "MPIR_Barrier_intra_dissemination", False),
        ("4.1", "k_dissemination", True),
    ):
        text = exported([barrier, BCAST], "mpich", version=version).text
        assert mpich_file.lookup(text, "barrier", 4, 0).endswith(name)
        assert ('"k=2"' in text) == has_radix


def test_a_file_for_one_process_count_has_to_know_it() -> None:
    one = table("bcast", {4: [(0, "binomial")], 8: [(0, "scatter_allgather")]})
    with pytest.raises(UsageError, match="2; name one with --procs P"):
        exported([one], "mpich-variables")
    with pytest.raises(UsageError, match="starts at P = 4, not 2"):
        exported([one], "mpich-variables", procs=2)


def test_a_line_says_what_uccs_file_can_and_cannot_say() -> None:
    tables = [
        table("allreduce", {4: [(0, "recursive_doubling"), (KIB, "ring")]}),
        table("scatter", {4: [(0, "linear")]}),
    ]
    text = exported(tables, "ucc").text
    line = ucc_summary(tables, text)
    assert line.startswith("UCC: 2 tokens for allreduce, by size and process count; no segment sizes")
    assert line.endswith("UCC decides scatter itself")
    assert "total sizes" not in line
    assert "export UCC_TL_UCP_ALLREDUCE_KN_RADIX=2\n" in text
    blocks = [table("allgather", {4: [(0, "bruck"), (KIB, "ring")]})]
    assert "UCC compares total sizes of allgather" in ucc_summary(blocks, exported(blocks, "ucc").text)


def test_uccs_file_stays_short_on_many_processes() -> None:
    wide = table("alltoall", {64: [(0, "bruck"), (KIB, "pairwise")], 2048: [(0, "bruck")]})
    assert len(exported([wide], "ucc").text) < 12_000


# Second best


NAMES = (Choice("binomial"), Choice("chain", 8 * KIB), Choice("scatter_allgather"), Choice("scatter_ring_allgather"))
SIZES, COUNTS = (8, KIB, 64 * KIB, MIB), (4, 8)
STEPS = st.dictionaries(st.sampled_from(SIZES), st.sampled_from(NAMES), min_size=1)


@settings(max_examples=60)
@given(
    st.lists(st.floats(0.5, 2), min_size=32, max_size=32).map(lambda found: np.reshape(found, (4, 2, 4))),
    st.fixed_dictionaries({4: STEPS}, optional={8: STEPS}),
    st.sets(st.sampled_from(NAMES)),
    st.booleans(),
)
def test_the_second_best_has_the_least_worst_slowdown_of_what_can_be_said(
    seconds: Array, rules: dict[int, dict[int, Choice]], sayable: set[Choice], by_size: bool
) -> None:
    """A row has one choice for all sizes if the format cannot distinguish these."""
    rows = {procs: merged(sorted(steps.items())) for procs, steps in sorted(rules.items())}
    decided = DecisionTable(
        "bcast", "bed", 1, "simulated", "test", rows, times_of("bcast", NAMES, COUNTS, SIZES, seconds)
    )
    said, substitutions = second_best(decided, lambda choice: choice in sayable, by_size)
    expected = []
    for procs, row in rows.items():
        for steps, sizes in _parts(row, by_size):
            wanted = [NAMES.index(choice) for size in sizes if (choice := chosen(steps, size)) is not None]
            at = seconds[:, COUNTS.index(procs), [SIZES.index(size) for size in sizes]]
            lost = dict(zip(NAMES, np.max(at / at[wanted, range(len(sizes))] - 1, axis=1), strict=True))
            for start, choice in steps:
                found = chosen(said[procs], start)
                if {choice for _, choice in steps} != {found}:
                    least = min((lost[one] for one in sayable), default=math.nan)
                    assert math.isnan(least) if found is None else found in sayable and lost[found] == least
                    expected += [(procs, start, choice, found, pytest.approx(least, nan_ok=True))] * (choice != found)
    assert [(one.procs, one.start, one.chosen, one.instead, one.cost) for one in substitutions] == expected


def _parts(row: Row, by_size: bool) -> Iterator[tuple[Row, list[int]]]:
    """The steps that get one choice together, and their sizes."""
    ends = [start for start, _ in row[1:]] + [2 * MIB]
    whole = [(row, row[0][0], ends[-1])]
    for steps, start, end in (
        [((step,), step[0], end) for step, end in zip(row, ends, strict=True)] if by_size else whole
    ):
        yield steps, [size for size in SIZES if start <= size < end]


CHOICES = (Choice("two_tree", 8192), Choice("binomial"), Choice("scatter_ring_allgather"))
TIMES = times_of(
    "bcast",
    CHOICES,
    (4,),
    (1024, 65536, 2**20),
    (((1.0, 1.0, 1.0),), ((1.1, 1.2, 3.0),), ((2.0, 1.5, 1.3),)),
)
BEST = DecisionTable("bcast", "bed", 1, "simulated", "test", {4: ((1024, CHOICES[0]), (2**20, CHOICES[2]))}, TIMES)


@pytest.mark.parametrize(("name", "version"), [("mpich", ""), ("openmpi", "4.1")])
def test_what_a_format_cannot_say_gets_the_second_best_with_its_cost(name: str, version: str) -> None:
    made = exported([BEST], name, version=version)
    assert [str(one) for one in made.substitutions] == [
        "bcast from P = 4, 1 KiB: cannot express two_tree, 8 KiB; binomial instead, at most 20.0 % slower"
    ]
    if name == "mpich":
        found = [mpich_lookup(made.text, "bcast", 4, size) for size in (2**19, 2**20)]
        assert [one.split("intra_")[1] for one in found] == ["binomial", "scatter_ring_allgather"]
    else:
        rules = [parse_rules(made.text).lookup(7, 4, size) for size in (1024, 2**20)]
        assert [rule.algorithm for rule in rules if rule is not None] == [6, 9]


def test_without_times_the_library_decides_what_a_format_cannot_say() -> None:
    bare = DecisionTable("bcast", "bed", 1, "simulated", "test", BEST.rules)
    made = exported([bare], "mpich")
    assert [one.instead for one in made.substitutions] == [None]
    assert "the library decides" in str(made.substitutions[0])
    only = DecisionTable("bcast", "bed", 1, "simulated", "test", {4: ((0, CHOICES[0]),)})
    with pytest.raises(UsageError, match="select --for mpich"):
        exported([only], "mpich")
    with pytest.raises(UsageError, match="no bcast algorithm 'two_tree'"):
        exported([bare], "openmpi", version="4.1")


def test_substitutions_that_differ_only_in_processes_share_a_sentence() -> None:
    def one(procs: int, start: int, cost: float, instead: Choice | None = CHOICES[1]) -> Substitution:
        return Substitution("bcast", procs, start, CHOICES[0], instead, cost)

    found = told([one(4, 8, 0.5), one(8, 8, 0.5), one(16, 8, 0.5), one(4, 64, 0.0), one(8, 64, math.nan)], [])
    assert found == [
        "bcast from P = 4 to 16, 8 B: cannot express two_tree, 8 KiB; binomial instead, at most 50.0 % slower",
        "bcast from P = 4, 64 B: cannot express two_tree, 8 KiB; binomial instead, no slower",
        "bcast from P = 8, 64 B: cannot express two_tree, 8 KiB; binomial instead, at a cost that is not known",
    ]


# The command line


def test_every_format_is_written_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decisions = tmp_path / "d.json"
    decisions.write_text(json.dumps(decisions_document([BCAST])))
    for name in FORMATS:
        if name in ("prf", "han"):  # of choices that others have not
            continue
        words = ["--procs", "8"] if FORMATS[name].one_procs else []
        with pytest.raises(SystemExit) as ended:
            main(["export", str(decisions), "--format", name, *words, "-o", str(tmp_path / name)])
        out, _ = capsys.readouterr()
        assert not ended.value.code
        assert str(tmp_path / name) in out
        assert (tmp_path / name).read_text() == collwise.export(
            decisions, format_name=name, procs=8 if words else None
        ).text
    for words, said in (
        (("--format", "mpch"), "mpich"),
        (("--format", "intel", "--check"), "--check needs -o FILE"),
        (("--format", "mvapich2"), "--procs"),
        (("--format", "mpich", "--version", "3"), "4.0"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["export", str(decisions), *words, "-o", str(tmp_path / "x")])
        err = capsys.readouterr().err
        assert (ended.value.code, err.count("\n"), said in err) == (2, 1, True), err


def test_an_export_says_how_to_get_better_replacements_and_for_which_processes_it_was_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions = tmp_path / "d.json"
    decisions.write_text(json.dumps(decisions_document([BEST])))
    for name, hinted in (("mpich", True), ("collwise", False)):
        with pytest.raises(SystemExit):
            main(["export", str(decisions), "--format", name, "-o", str(tmp_path / name)])
        out, err = capsys.readouterr()
        assert ("'collwise simulate ... --for mpich' times all that these rules can express" in err) == hinted
        assert BEST.between_procs in out
    assert decided_line(BEST.collective, BEST.decided_procs) in (tmp_path / "collwise").read_text()
