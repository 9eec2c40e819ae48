"""`import collwise`: what the functions take and return, and what importing them costs."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collwise
from collwise import decisions as decisions_module
from collwise.arguments import algorithms, collectives, counts, names, sizes
from collwise.platforms import description, load
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.timing import Case
from collwise.studies.present.shown import shown
from tests.command_line import run
from tests.models.parameter_examples import fitted
from tests.needs import needs
from tests.runners import context_with

GROS = "gros"


def test_importing_costs_nothing(tmp_path: Path) -> None:
    """Neither the package nor functions that commands' help needs load what takes most of the time of imports."""
    program = (
        "import sys; before = set(sys.modules); import collwise; dir(collwise); "
        "names = {m.removeprefix('collwise.') for m in sys.modules if m.startswith('collwise.')}; "
        "print(*names - {'common', 'common.lazy'}); collwise.select, collwise.compare, collwise.export; "
        "print(*sys.modules.keys() & {'numpy', 'pandas', 'scipy'})"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")


def test_every_public_name_is_there_and_documented() -> None:
    assert set(dir(collwise)) == {*collwise.__all__, "__version__"}
    assert collwise.__version__ == version("collwise")
    modules = {path.stem for path in Path(decisions_module.__file__).parent.glob("*.py")}
    for name in collwise.__all__:
        text = getattr(collwise, name).__doc__
        assert text
        described = [line for line in text.splitlines() if line.lstrip().startswith("`")]
        assert not any(re.search(r"\{\w+\}|Gbyte/s|Gbit/s", line) for line in described), name
        assert name not in modules  # which would take its place once it is imported
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        collwise.__getattr__("simulat")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("8KiB:32KiB:x2", (8192, 16384, 32768)),
        (8192, (8192,)),
        (np.int64(8192), (8192,)),
        ([65536, "8KiB", 8192], (8192, 65536)),
        (np.array([4, 2]), (2, 4)),
        (range(0, 3), (0, 1, 2)),
    ],
)
def test_sizes_are_taken_in_every_form(given: Any, expected: tuple[int, ...]) -> None:
    assert sizes(given) == expected
    assert sizes(sizes(given)) == expected


@pytest.mark.parametrize(
    ("parse", "given", "said"),
    [
        (sizes, 1.5, "1.5"),
        (sizes, [1.5], "1.5 is not a size in bytes"),
        (sizes, [-1], "-1 is not a size in bytes"),
        (sizes, [], "no size in bytes was given"),
        (sizes, "8Kb2", "malformed size"),
        (counts, [0], "0 is not a process count"),
        (counts, True, "True is not a process count"),
        (counts, "0", "write at least 1"),
        (collectives, "bcat", "did you mean bcast"),
        (collectives, "", "name a collective"),
    ],
)
def test_wrong_arguments_say_what_is_valid(parse: Any, given: Any, said: str) -> None:
    with pytest.raises(collwise.UsageError, match=said):
        parse(given)


def test_names_are_text_or_lists() -> None:
    assert names(" chain, binary,chain") == names(["chain", "binary"]) == ("chain", "binary")
    assert "bcast" in collectives("all")
    assert algorithms("gather", None) == algorithms("gather", "all") == ("linear", "linear_sync", "binomial")


def test_a_platform_shows_what_it_is() -> None:
    assert repr(collwise.platform(GROS)) == "<Platform gros: 124 nodes, 1 process per node by default>"
    assert repr(collwise.platform(Path(description.__file__).with_name("hcl16.toml"))).startswith(
        "<HeterogeneousPlatform hcl16: 16 nodes"
    )


def test_simulated_times_are_times(tmp_path: Path) -> None:
    def seconds(case: Case) -> float | None:
        return None if case.algorithm == "linear" else case.message_bytes * 1e-9 * case.procs

    with Store(tmp_path / "s.sqlite") as store:
        context = context_with(store, seconds, "it broke")
        made = collwise.simulate(GROS, "gather", [4, 8], "1KiB,2KiB", algorithms="linear,binomial", context=context)
        times = made.frame()
        assert list(times.columns[:4]) == ["collective", "algorithm", "procs", "message_bytes"]
        assert times[times.algorithm == "binomial"].seconds.tolist() == [4096e-9, 8192e-9, 8192e-9, 16384e-9]
        assert times[times.algorithm == "linear"].error.unique().tolist() == ["it broke"]
        assert times[times.algorithm == "linear"].seconds.isna().all()
        facts = made["gather"].facts
        assert (facts["reused"], facts["processes_started"]) == (0, 1)
        assert "<table" in made._repr_html_()
        decisions = collwise.select(made)
        assert decisions.choose("gather", 8, "2KiB").algorithm == "binomial"
        assert [one.error for one in decisions.failed] == ["it broke"] * 4
        segmented = collwise.simulate(GROS, "bcast", 4, 8192, algorithms="chain", segments=[0, "1KiB"], context=context)
        assert segmented.frame().segment_bytes.tolist() == [0, 1024]


def test_the_store_is_read_as_a_data_frame(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with pytest.raises(collwise.UsageError, match="there is no store"):
        collwise.results(path)
    with Store(path) as store:
        times = collwise.simulate(
            load(GROS), "gather", 4, "1KiB", algorithms="linear", context=context_with(store, lambda case: 0.5)
        ).frame()
    found = collwise.results(path, source="simulated", procs=4)
    assert found[["algorithm", "message_bytes", "seconds"]].equals(times[["algorithm", "message_bytes", "seconds"]])
    assert collwise.results(path, procs=5).empty
    with pytest.raises(collwise.UsageError, match="no column 'proc'; valid: configuration, source, platform"):
        collwise.results(path, proc=4)


def test_predictions_are_what_the_model_says(tmp_path: Path) -> None:
    file = tmp_path / "hockney.toml"
    parameters = fitted("hockney")
    parameters.save(file)
    made = collwise.predict(file, "bcast", [2, 4], ["1KiB", "64KiB"], algorithms=["chain"], segments="0,8KiB")
    times = made.frame()
    assert len(times) == 8
    model = next(iter(collwise.FittedModel(parameters).models.values()))
    for row in times.itertuples():
        expected = float(model.predict("bcast", "chain", row.procs, row.message_bytes, row.segment_bytes))
        assert math.isclose(row.seconds, expected, rel_tol=1e-15)
    assert (made["bcast"].platform, made["bcast"].maker) == (parameters.platform, "model hockney")
    with pytest.raises(collwise.UsageError, match="unknown model 'hocknee'; did you mean hockney"):
        collwise.predict(file, "bcast", 4, model="hocknee")


def test_decisions_are_saved_read_and_exported(tmp_path: Path) -> None:
    model = collwise.FittedModel(fitted("hockney"))
    times = collwise.predict(model, "bcast", procs="2:4:+1", sizes="8KiB:64KiB:x2")
    decisions = collwise.select(times, consumer="openmpi-4.1")
    times.save(tmp_path / "t.times")
    for given in (tmp_path / "t.times", str(tmp_path / "t.times"), times["bcast"]):
        assert collwise.select(given, consumer="openmpi-4.1") == decisions
    decisions.save(tmp_path / "d.json")
    assert json.loads((tmp_path / "d.json").read_text())[0]["collective"] == "bcast"
    assert collwise.Decisions.load(tmp_path / "d.json") == decisions
    chosen = decisions.choose("bcast", 4, "64KiB")
    last = decisions.frame().query("from_procs <= 4").iloc[-1]
    assert (chosen.algorithm, chosen.segment_bytes) == (last.algorithm, last.segment_bytes)
    text = collwise.export(decisions, output=tmp_path / "r.rules").text
    assert text == (tmp_path / "r.rules").read_text() == collwise.export(tmp_path / "d.json").text
    with pytest.raises(collwise.UsageError, match="unknown format 'openmp'; did you mean openmpi"):
        collwise.export(decisions, format_name="openmp")
    with pytest.raises(collwise.UsageError, match="unknown collective 'reduce'"):
        decisions.choose("reduce", 4, 8)
    assert "<table" in decisions._repr_html_()
    assert "<table" in model._repr_html_()


def test_select_takes_no_mode_and_refuses_what_cannot_decide(tmp_path: Path) -> None:
    model = collwise.FittedModel(fitted("hockney"))
    times = collwise.predict(model, "bcast", procs="2:4:+1", sizes="8KiB,64KiB")
    exact = collwise.select(times, exact=True)
    assert len(exact.frame()) >= len(collwise.select(times).frame())
    for wrong, said in (
        ({"consumer": "openmpi-4"}, "did you mean openmpi-4"),
        ({"tolerance": -1}, "a percentage of at least 0, not -1"),
        ({"tie_limit": math.nan}, "the limit of ties must be a percentage"),
    ):
        with pytest.raises(collwise.UsageError, match=said):
            collwise.select(times, **wrong)  # type: ignore[arg-type]
    collwise.select(times).save(tmp_path / "d.json")
    (rounded,) = (table.times for table in collwise.Decisions.load(tmp_path / "d.json").tables)
    assert rounded is not None
    with pytest.raises(collwise.UsageError, match="rounded to 4 digits, as in decision files"):
        collwise.select(rounded)
    with pytest.raises(collwise.UsageError, match="not a file of times, or one of another version"):
        collwise.select(tmp_path / "d.json")


@needs("openmpi")
def test_several_collectives_are_measured_as_far_as_memory_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = Method(precision=Precision(2, 2))
    small = replace(load("exact"), memory_bytes_per_node=2**20)
    asked = ("bcast,alltoall", 2, "1KiB,256KiB")
    with collwise.session(tmp_path / "t.sqlite") as context:
        times = collwise.measure(*asked, algorithms="all", platform=small, method=quick, context=context).frame()
    assert "alltoall at 1 of 2 points (P = 2: from 256 KiB)" in capsys.readouterr().err
    assert (times.seconds > 0).all()
    points = set(zip(times.collective, times.message_bytes, strict=True))
    assert points == {("bcast", 1024), ("bcast", 262144), ("alltoall", 1024)}


@pytest.mark.parametrize("consumer", ["openmpi-4.1", "mpich", "collwise"])
def test_times_made_for_a_consumer_decide_as_the_command_does(consumer: str, tmp_path: Path) -> None:
    grid = {"procs": "8,24", "sizes": "64KiB:1MiB:x4"}
    with collwise.session(tmp_path / "timings.sqlite", engine="schedule") as context:
        times = collwise.simulate("gros", "bcast,reduce", **grid, consumer=consumer, margin=1.0, context=context)
    collwise.select(times, consumer=consumer).save(tmp_path / "here.json")
    made = ["simulate", "--engine", "schedule", "--platform", "gros", "--collective", "bcast,reduce", "--for", consumer]
    made += ["--procs", grid["procs"], "--sizes", grid["sizes"], "--margin", "1"]
    run(*made, "--store", str(tmp_path / "timings.sqlite"), "-o", str(tmp_path / "made.times"))
    run("select", str(tmp_path / "made.times"), "--for", consumer, "-o", str(tmp_path / "there.json"))
    assert (tmp_path / "here.json").read_text("utf-8") == (tmp_path / "there.json").read_text("utf-8")


def test_a_consumer_that_can_be_asked_for_nothing_is_refused() -> None:
    with pytest.raises(collwise.UsageError, match="mpich cannot run any of the bcast choices: split_binary, k_chain"):
        collwise.simulate("gros", "bcast", 4, "8KiB", algorithms="split_binary,k_chain", consumer="mpich")
    with pytest.raises(collwise.UsageError, match="unknown library 'mpih'; did you mean mpich"):
        collwise.simulate("gros", "bcast", 4, "8KiB", consumer="mpih")


@pytest.mark.parametrize("wrong", [3, ["bcast", 3]])
def test_what_is_no_name_is_refused(wrong: Any) -> None:
    with pytest.raises(collwise.UsageError, match="3 is no name"):
        collwise.simulate("gros", wrong, 4, "8KiB")


def test_choices_can_be_among_named_algorithms_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with collwise.session(tmp_path / "timings.sqlite", engine="schedule") as context:
        times = collwise.simulate("jupiter", "bcast,allgather", procs=8, sizes="1KiB:1MiB:x4", context=context)

    def chosen(**named: Any) -> set[str]:
        return {choice.algorithm for table in collwise.select(times, **named).tables for choice in table.choices}

    assert chosen(algorithms="chain,linear,ring", exclude="ring") <= {"chain", "linear"}
    assert chosen(algorithms="chain") == {"chain"}
    assert "allgather left out: --algorithms, --exclude leave no algorithm" in capsys.readouterr().err
    tuned = collwise.tune(times, algorithms="chain")
    assert {choice.algorithm for table in tuned.decisions.tables for choice in table.choices} == {"chain"}
    with pytest.raises(collwise.UsageError, match="--algorithms, --exclude: no algorithm is left of linear, chain"):
        collwise.select(times, algorithms="chain", exclude="chain")
    with pytest.raises(collwise.UsageError, match="unknown algorithm with times 'chian'; did you mean chain"):
        collwise.select(times, algorithms="chian")


def test_tables_of_several_processes_on_a_node_are_of_one_collective(tmp_path: Path) -> None:
    with collwise.session(tmp_path / "timings.sqlite", engine="schedule") as context:
        asked: dict[str, Any] = {"procs": 8, "sizes": "64KiB", "context": context}
        each = [collwise.select(collwise.simulate("jupiter", "bcast", ppn=ppn, **asked)) for ppn in (1, 4)]
    rules = collwise.export(*each, output=tmp_path / "both.table", format_name="collwise")
    assert str(shown(rules).parts[0]).endswith("for bcast; use them with")
