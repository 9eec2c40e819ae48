"""Exports for MPI libraries: every format gives each call what the table chose, or the second best that it can say."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.algorithms.catalogue_check import LIBRARIES
from collwise.common.errors import UsageError
from collwise.simulator.execution.interposed import decided_line
from collwise.studies.cli.main import main
from collwise.validation.libraries import mpich_file
from collwise.validation.libraries.formats import FORMATS, exported
from collwise.validation.libraries.mpich_untuned import own_tables, selected
from collwise.validation.libraries.openmpi_rules import openmpi_rules, parse_rules
from collwise.validation.libraries.sayable import for_consumer, second_best
from collwise.validation.libraries.variables import ucc_summary
from collwise.validation.select.consumers import ALL_CONSUMERS, algorithms_for, can_say, rule_message
from collwise.validation.select.decisions import DecisionTable, decisions_document
from collwise.validation.times.choice import Choice
from tests.models.parameter_examples import fitted
from tests.validation.libraries.lookups import intel_lookup, mvapich2_lookup, openmpi_json_lookup, ucc_lookup
from tests.validation.times_of import times_of

KIB = 1024


def fitted_model() -> collwise.FittedModel:
    """A model whose parameters are made up."""
    return collwise.FittedModel(fitted("hockney"))


def table(collective: str, rules: dict[int, list[tuple[int, str]]]) -> DecisionTable:
    """A table of unsegmented choices."""
    rows = {p: tuple((start, Choice(name)) for start, name in row) for p, row in rules.items()}
    return DecisionTable(collective, "bed", 1, "simulated", "test", rows)


BCAST = table(
    "bcast",
    {
        4: [(8 * KIB, "binomial"), (64 * KIB, "scatter_allgather")],
        8: [(KIB, "scatter_ring_allgather")],
        16: [(0, "binomial"), (KIB, "scatter_allgather"), (MIB := 1024 * KIB, "scatter_ring_allgather")],
    },
)
ALLGATHER = table(
    "allgather", {4: [(0, "bruck"), (KIB, "ring")], 8: [(0, "recursive_doubling"), (512, "ring")], 9: [(0, "ring")]}
)
ALLREDUCE = table("allreduce", {2: [(0, "recursive_doubling"), (2 * KIB, "rabenseifner")]})
POINTS = [(p, m) for p in (4, 5, 7, 8, 9, 15, 16, 33) for m in (0, 1, 511, 512, 1023, 1024, 8191, 8192, 70000, 2**21)]


def chosen(decided: DecisionTable, procs: int, size: int) -> str | None:
    """The algorithm of a table; None where it says nothing."""
    below = [choice.algorithm for start, choice in decided.row(procs) if start <= size]
    return below[-1] if below else None


@st.composite
def decided_for(draw: st.DrawFn, consumer: str) -> DecisionTable:
    """Tables of any choices that the consumer can be asked for and that run on every P, at some of the points."""
    collective = draw(st.sampled_from(("bcast", "allgather", "allreduce", "alltoall", "reduce")))
    entries = [Catalogue.load().algorithm(collective, name) for name in algorithms_for(collective, consumer)]
    names = [entry.name for entry in entries if not entry.bound_to_procs]
    counts, sizes = (sorted({point[axis] for point in POINTS}) for axis in (0, 1))
    row = st.dictionaries(st.sampled_from(sizes), st.sampled_from(names), min_size=1, max_size=4)
    rules = draw(st.dictionaries(st.sampled_from(counts), row, min_size=1, max_size=4))
    return table(collective, {procs: sorted(steps.items()) for procs, steps in sorted(rules.items())})


def text_of(name: str, *tables: DecisionTable, **options: Any) -> str:
    return exported(tables, name, version=options.pop("version", "4.1" if name == "openmpi" else ""), **options).text


# MPICH


@settings(max_examples=30)
@given(decided=decided_for("mpich"))
def test_mpichs_selection_file_gives_each_call_its_choice(decided: DecisionTable) -> None:
    text = text_of("mpich", decided)
    for procs, size in POINTS:
        said = mpich_file.lookup(text, decided.collective, procs, size)
        wanted = chosen(decided, procs, size)
        if wanted is None or (wanted == "rabenseifner" and size < 2 ** (procs.bit_length() - 1)):
            assert said == selected(own_tables(), decided.collective, procs, size)
        else:
            name = Catalogue.load().algorithm(decided.collective, wanted).mpich
            assert said == f"MPIR_{decided.collective.capitalize()}_intra_{name}", (procs, size)


def test_mpichs_file_has_every_collective_and_a_leaf_for_every_call() -> None:
    """MPICH stops at a call for which its file has no algorithm, also inside MPI_Init."""
    tree = json.loads(text_of("mpich", BCAST))
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


def test_mpichs_file_leaves_calls_that_an_algorithm_cannot_run_to_mpich() -> None:
    text = text_of("mpich", ALLREDUCE, ALLGATHER)
    assert mpich_file.lookup(text, "allreduce", 8, MIB, built_in=False) == "MPIR_Allreduce_intra_recursive_doubling"
    assert mpich_file.lookup(text, "allreduce", 8, MIB) == "MPIR_Allreduce_intra_reduce_scatter_allgather"
    doubling = table("allgather", {4: [(0, "recursive_doubling")]})
    assert mpich_file.lookup(text_of("mpich", doubling), "allgather", 6, 8) == "MPIR_Allgather_intra_brucks"
    alltoall = text_of("mpich", table("alltoall", {2: [(0, "pairwise")]}))
    assert (
        mpich_file.lookup(alltoall, "alltoall", 4, 8, inplace=True) == "MPIR_Alltoall_intra_pairwise_sendrecv_replace"
    )
    halving = text_of("mpich", table("reduce_scatter", {2: [(0, "recursive_halving")]}))
    assert mpich_file.lookup(halving, "reduce_scatter", 4, MIB).endswith("intra_recursive_halving")
    assert mpich_file.lookup(halving, "reduce_scatter", 4, MIB, commutative=False).endswith("intra_noncommutative")


def test_mpich_41_names_its_barrier_otherwise() -> None:
    assert "k_dissemination" not in text_of("mpich", BCAST)
    barrier = table("barrier", {2: [(0, "bruck")]})
    assert '"k=2"' in text_of("mpich", BCAST, version="4.1")
    assert mpich_file.lookup(text_of("mpich", barrier), "barrier", 4, 0) == "MPIR_Barrier_intra_dissemination"
    assert mpich_file.lookup(text_of("mpich", barrier, version="4.1"), "barrier", 4, 0).endswith("k_dissemination")


def test_mpichs_variables_have_one_algorithm_a_collective() -> None:
    one = table("bcast", {4: [(0, "binomial")], 8: [(0, "scatter_allgather")]})
    assert "export MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial\n" in text_of("mpich-variables", one, procs=5)
    assert text_of("mpich-variables", one, procs=99).endswith("=scatter_recursive_doubling_allgather\n")
    with pytest.raises(UsageError, match="2; name one with --procs P"):
        text_of("mpich-variables", one)
    with pytest.raises(UsageError, match="starts at P = 4, not 2"):
        text_of("mpich-variables", one, procs=2)


# Open MPI in JSON


@settings(max_examples=30)
@given(decided=decided_for("openmpi-6.0"))
def test_json_rules_say_what_classic_rules_say(decided: DecisionTable) -> None:
    text = text_of("openmpi-json", decided)
    document = json.loads(text)
    assert (document["rule_file_version"], document["module"]) == (3, "tuned")
    classic = parse_rules(openmpi_rules(for_consumer([decided], "openmpi-6.0")[0], "6.0"))
    identity = Catalogue.load().collective(decided.collective).openmpi_collective
    for procs, size in POINTS:
        message = rule_message(decided.collective, "6.0", procs, size)
        rule, found = (
            classic.lookup(identity, procs, message),
            openmpi_json_lookup(text, decided.collective, procs, message),
        )
        assert (None if rule is None else rule.algorithm) == (None if found is None else found["alg"]), (procs, size)


def test_json_rules_have_the_fields_of_the_format() -> None:
    rows = {4: ((0, Choice("k_chain", 8192, 3)), (65536, Choice("chain", 16384)))}
    (entry,) = json.loads(text_of("openmpi-json", DecisionTable("bcast", "bed", 1, "simulated", "test", rows)))[
        "collectives"
    ]["bcast"]
    assert entry == {
        "comm_size_min": 4,
        "comm_size_max": "inf",
        "rules": [
            {"msg_size_min": 0, "msg_size_max": 65535, "alg": 2, "faninout": 3, "seg_size": 8192},
            {"msg_size_min": 65536, "msg_size_max": "inf", "alg": 3, "seg_size": 16384},
        ],
    }


# Variables


@settings(max_examples=50)
@given(decided=decided_for("intel"))
def test_intel_mpis_variables_give_each_call_its_choice(decided: DecisionTable) -> None:
    (value,) = re.findall(r'export I_MPI_ADJUST_\w+="(.*)"', text_of("intel", decided))
    for procs, size in POINTS:
        wanted = chosen(decided, procs, size)
        known = Catalogue.load().algorithm(decided.collective, wanted).intel if wanted else 0
        assert intel_lookup(value, procs, size) == known, (procs, size)


def test_intel_mpi_compares_the_total_of_allgatherv() -> None:
    decided = table("allgatherv", {4: [(0, "bruck"), (KIB, "ring")]})
    (value,) = re.findall(r'="(.*)"', text_of("intel", decided))
    for procs in (4, 7, 20):
        assert intel_lookup(value, procs, procs * KIB - 1) == 2
        assert intel_lookup(value, procs, procs * KIB) == 3


@settings(max_examples=50)
@given(decided=decided_for("mvapich2"), procs=st.sampled_from([4, 8, 16, 33]))
def test_mvapich2s_variables_give_each_size_its_choice(decided: DecisionTable, procs: int) -> None:
    assume(min(decided.rules) <= procs)
    text = text_of("mvapich2", decided, procs=procs)
    (value,) = re.findall(r'MV2_(?:INTER_)?[A-Z_]+="(.*)"', text)[-1:]
    first = decided.row(procs)[0][1].algorithm
    for size in {size for _, size in POINTS}:
        wanted = chosen(decided, procs, size) or first
        assert mvapich2_lookup(value, size) == Catalogue.load().algorithm(decided.collective, wanted).mvapich2, size


def test_a_line_says_what_uccs_file_can_and_cannot_say() -> None:
    tables = [
        table("allreduce", {4: [(0, "recursive_doubling"), (KIB, "ring")]}),
        table("scatter", {4: [(0, "linear")]}),
    ]
    line = ucc_summary(tables, text_of("ucc", *tables))
    assert line.startswith("UCC: 2 tokens for allreduce, by size and process count; no segment sizes")
    assert line.endswith("UCC decides scatter itself")
    assert "total sizes" not in line
    blocks = [table("allgather", {4: [(0, "bruck"), (KIB, "ring")]})]
    assert "UCC compares total sizes of allgather" in ucc_summary(blocks, text_of("ucc", *blocks))


def test_ucc_gets_a_token_for_each_step_and_the_radix_of_its_trees() -> None:
    decided = table("allreduce", {4: [(8 * KIB, "recursive_doubling"), (64 * KIB, "ring")], 8: [(0, "rabenseifner")]})
    text = text_of("ucc", decided, table("allgather", {4: [(0, "bruck"), (KIB, "ring")]}))
    (value,) = re.findall(r"UCC_TL_UCP_TUNE='(.*)'", text)
    for call, expected in {
        (4, 8191): None,
        (4, 8192): "knomial",
        (7, 65535): "knomial",
        (7, 65536): "ring",
        (3, 65536): None,
        (8, 0): "sra_knomial",
        (99, 2**30): "sra_knomial",
    }.items():
        assert ucc_lookup(value, "allreduce", *call) == expected, call
    assert ucc_lookup(value, "allgather", 6, 6 * KIB - 1) == "bruck"
    assert ucc_lookup(value, "allgather", 6, 6 * KIB) == "ring"
    wide = text_of("ucc", table("alltoall", {64: [(0, "bruck"), (KIB, "pairwise")], 2048: [(0, "bruck")]}))
    assert len(wide) < 12_000
    for procs in (64, 100, 1023, 2047):
        (value,) = re.findall(r"UCC_TL_UCP_TUNE='(.*)'", wide)
        thresholds = [ucc_lookup(value, "alltoall", procs, procs * size) for size in (KIB * 31 // 33, KIB)]
        assert thresholds == ["bruck", "pairwise"], procs
    assert "export UCC_TL_UCP_ALLREDUCE_KN_RADIX=2\n" in text
    assert "export UCC_TL_UCP_ALLREDUCE_SRA_KN_RADIX=2\n" in text


def test_smpi_gets_one_option_a_collective() -> None:
    decided = table("allreduce", {4: [(0, "recursive_doubling")]})
    assert text_of("smpi", decided, procs=8) == "--cfg=smpi/allreduce:rdb\n"


# Second best


CHOICES = (Choice("two_tree", 8192), Choice("binomial"), Choice("scatter_ring_allgather"))
TIMES = times_of(
    "bcast",
    CHOICES,
    (4,),
    (1024, 65536, 2**20),
    (((1.0, 1.0, 1.0),), ((1.1, 1.2, 3.0),), ((2.0, 1.5, 1.3),)),
)
BEST = DecisionTable("bcast", "bed", 1, "simulated", "test", {4: ((1024, CHOICES[0]), (2**20, CHOICES[2]))}, TIMES)


def test_what_a_format_cannot_say_gets_the_second_best_with_its_cost() -> None:
    made = exported([BEST], "mpich")
    (replaced,) = made.substitutions
    assert (replaced.chosen, replaced.instead, replaced.start) == (CHOICES[0], CHOICES[1], 1024)
    assert replaced.cost == pytest.approx(0.2)
    assert str(replaced) == (
        "bcast from P = 4, 1 KiB: cannot express two_tree, 8 KiB; binomial instead, at most 20.0 % slower"
    )
    assert mpich_file.lookup(made.text, "bcast", 4, 2**19).endswith("binomial")
    assert mpich_file.lookup(made.text, "bcast", 4, 2**20).endswith("scatter_ring_allgather")


def test_a_format_without_sizes_gets_the_least_worst_choice_for_all_of_them() -> None:
    made = exported([BEST], "mpich-variables")
    assert "MPIR_CVAR_BCAST_INTRA_ALGORITHM=scatter_ring_allgather" in made.text
    assert [one.cost for one in made.substitutions] == [pytest.approx(1.0)]


def test_without_times_the_library_decides_what_a_format_cannot_say() -> None:
    bare = DecisionTable("bcast", "bed", 1, "simulated", "test", BEST.rules)
    made = exported([bare], "mpich")
    assert [one.instead for one in made.substitutions] == [None]
    assert "the library decides" in str(made.substitutions[0])
    only = DecisionTable("bcast", "bed", 1, "simulated", "test", {4: ((0, CHOICES[0]),)})
    with pytest.raises(UsageError, match="select --for mpich"):
        exported([only], "mpich")


def test_open_mpi_gets_its_second_best_too() -> None:
    made = exported([BEST], "openmpi", version="4.1")
    assert [one.instead for one in made.substitutions] == [Choice("binomial")]
    rules = parse_rules(made.text)
    assert [rules.lookup(7, 4, size).algorithm for size in (1024, 2**20)] == [6, 9]  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="no bcast algorithm 'two_tree'"):
        exported([DecisionTable("bcast", "bed", 1, "simulated", "test", BEST.rules)], "openmpi", version="4.1")


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(0.5, 2), min_size=4, max_size=4), min_size=3, max_size=3), st.integers(1, 7))
def test_the_second_best_has_the_least_worst_slowdown(seconds: list[list[float]], sayable: int) -> None:
    names = (Choice("binomial"), Choice("scatter_allgather"), Choice("scatter_ring_allgather"))
    allowed = {name for bit, name in enumerate(names) if sayable & 1 << bit}
    times = times_of("bcast", names, (4,), (1, 2, 3, 4), [[each] for each in seconds])
    one = DecisionTable("bcast", "bed", 1, "simulated", "test", {4: ((1, names[0]), (3, names[1]))}, times)
    rows, substitutions = second_best(one, lambda choice: choice in allowed, by_size=False)
    ((_, taken),) = rows[4]

    def worst(choice: Choice) -> float:
        own, first, second = (seconds[names.index(each)] for each in (choice, names[0], names[1]))
        return max(own[j] / (first if j < 2 else second)[j] - 1 for j in range(4))

    assert taken is not None
    assert taken in allowed
    assert worst(taken) == min(map(worst, allowed))
    assert all(math.isclose(one.cost, worst(taken)) for one in substitutions)


def test_predicted_tables_know_their_second_best(tmp_path: Path) -> None:
    model = fitted_model()
    predicted = collwise.predict(model, "bcast", procs="4:16:x2", sizes="1KiB:1MiB:x4", segments="0,8KiB")
    decisions = collwise.select(predicted, tolerance=0)
    (decided,) = decisions.tables
    assert decided.times is not None
    assert set(decided.times.procs) <= {4, 8, 16}
    decisions.save(tmp_path / "d.json")
    (again,) = collwise.Decisions.load(tmp_path / "d.json").tables
    replaced = exported([again], "mpich").substitutions
    assert replaced
    for one in replaced:
        times = decided.seconds_at(one.procs, one.start)
        assert one.instead in [choice for choice in times if can_say("mpich", "bcast", choice)]
        assert one.cost >= 0


# Names, and the command line


@pytest.mark.parametrize("consumer", [*LIBRARIES, "smpi", "openmpi-6.0"])
def test_every_consumer_can_be_selected_for(consumer: str) -> None:
    assert consumer in ALL_CONSUMERS
    for name in algorithms_for("allreduce", consumer):
        if consumer in LIBRARIES:
            assert can_say(consumer, "allreduce", Choice(name))
            assert not can_say(consumer, "allreduce", Choice(name, 8192))


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
