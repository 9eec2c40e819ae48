"""The command line from outside: what a person types, what comes out, and the exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.simulator.execution.installations import mpi_installation
from collwise.validation.libraries.openmpi_rules import parse_rules
from collwise.validation.select.decisions import DecisionTable, decisions_document
from collwise.validation.times.choice import Choice
from tests.command_line import called, forked, printed, succeeded
from tests.once import made_once

SMALL = """
name = "toy"
title = "Toy"
site = "toysite"

[cluster]
nodes = 8
host_prefix = "toy-"
host_suffix = ".example"
first_host = 1
cpus_per_node = 1
cores_per_node = 1
core_flops = 1e9

[network]
link_bytes_per_second = 1.25e9
link_latency_seconds = 2e-5
loopback_bytes_per_second = 5e9
loopback_latency_seconds = 5e-7
"""


def collwise(*arguments: str, cwd: Path, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which `called` saves where the process is not what is tested."""
    command = [sys.executable, "-P", "-m", "collwise.studies", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "toy.toml").write_text(SMALL)
    (tmp_path / "broken.xml").write_text('<platform version="4.1">\n<zone')
    return tmp_path


@pytest.fixture(scope="module")
def toy_parameters(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A parameter file of toy.toml."""

    def fit(folder: Path) -> None:
        (folder / "toy.toml").write_text(SMALL)
        few = ("--procs", "4,8", "--collective", "bcast,gather", "--segments", "8KiB")
        succeeded("fit", "--platform", "toy.toml", *few, "-o", "toy.parameters.toml", cwd=folder)

    return str(made_once(tmp_path_factory, "toy", fit) / "toy.parameters.toml")


HEAVY = {"dask", "distributed", "http.client", "jinja2", "matplotlib", "numpy", "pandas", "psutil", "rich", "scipy"}

# Prints, for every command and subcommand, a line of JSON: its words and the packages of those above that were imported
# once its help was printed.
ALL_HELP = f"""
import json, sys
import click
from collwise.studies.cli.main import collwise

def imported(packages):
    return sorted(packages & sys.modules.keys())

def show(command, words):
    context = click.Context(command)
    help = command.get_help(context)
    print(json.dumps([words, imported({{'numpy', 'collwise.studies.cli.options'}} if not words else {HEAVY!r})]))
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        show(command.get_command(context, name), [*words, name])

show(collwise, [])
"""


def test_help_imports_nothing_that_takes_long(tmp_path: Path) -> None:
    """The list of commands imports none of them, and no command's help what computes or draws."""
    command = [sys.executable, "-P", "-c", ALL_HELP]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [words for words, imported in lines if imported] == []
    shown = [" ".join(words) for words, _ in lines]
    assert shown[0] == ""
    assert {"demo", "predict", "platforms show", "testbed up", "check three-way"} <= set(shown)


def test_a_check_of_a_platform_runs_the_engine(here: Path) -> None:
    sound = succeeded("platforms", "show", "toy.toml", "--check", cwd=here)
    assert "toy.toml: sound, 8 hosts, simulated by SimGrid" in sound.stdout
    broken = called("platforms", "show", "broken.xml", "--check", cwd=here)
    assert broken.returncode == 1
    assert "broken.xml:2: " in broken.stdout


def test_from_a_cluster_to_rules_step_by_step(here: Path, toy_parameters: str) -> None:
    predict = ("predict", "--parameters", toy_parameters, "--collective", "bcast", "--procs", "2:8:+1", "--json")
    predicted = printed(called(*predict, cwd=here).stdout)
    assert {row["procs"] for row in predicted.rows} == set(range(2, 9))
    assert len(predicted.rows) == 7 * 12 * len({row["algorithm"] for row in predicted.rows})
    for collective in ("bcast", "gather"):
        options, times = ("--for", "openmpi-4.1"), f"{collective}.times"
        predict = ("predict", "--parameters", toy_parameters, "--collective", collective, *options)
        succeeded(*predict, "--procs", "2:8:+1", "--segments", "8KiB:128KiB:x2", "-o", times, cwd=here)
        succeeded("select", times, *options, "-o", f"{collective}.json", cwd=here)
    exported = succeeded("export", "bcast.json", "gather.json", "-o", "toy.rules", "--check", cwd=here)
    assert exported.stdout.count("accepted the rules and ran") == 4
    rules = parse_rules((here / "toy.rules").read_text(), "toy.rules")
    assert set(rules.collectives) == {7, 9}


@pytest.mark.parametrize(
    ("procs", "start", "said"),
    [
        (
            65,
            8,
            "bcast: not checked, since its rules begin with P = 65, and at most 64 processes run here",
        ),
        (4, 2**23, "bcast: not checked, since no rule applies to 8 processes and 4 MiB or less"),
    ],
)
def test_a_check_of_nothing_is_no_success(here: Path, procs: int, start: int, said: str) -> None:
    table = DecisionTable("bcast", "toy", 1, "simulated", "test", {procs: ((start, Choice("binomial")),)})
    (here / "large.json").write_text(json.dumps(decisions_document([table])))
    for format_name, line in (("openmpi", said), ("mpich", "no rule applies to 8 processes or fewer: nothing")):
        if format_name == "mpich" and procs < 9:
            continue
        exported = called("export", "large.json", "--format", format_name, "-o", "l.rules", "--check", cwd=here)
        assert exported.returncode == 1
        assert line in exported.stdout
        (here / "l.rules").unlink()


def test_rules_are_checked_at_their_first_message_and_others_are_no_failure_beside_them(here: Path) -> None:
    tables = [
        DecisionTable(name, "toy", 1, "simulated", "test", {procs: ((2**20, Choice("binomial")),)})
        for name, procs in (("bcast", 4), ("gather", 65))
    ]
    (here / "both.json").write_text(json.dumps(decisions_document(tables)))
    exported = succeeded("export", "both.json", "-o", "both.rules", "--check", cwd=here)
    assert exported.stdout.count("accepted the rules and ran") == 1
    assert "ran binomial for bcast of 1 MiB on 8 processes" in exported.stdout
    assert "gather: not checked, since its rules begin with P = 65" in exported.stdout
    assert "checked by" not in exported.stdout


def test_a_check_by_another_version_says_which(here: Path) -> None:
    table = DecisionTable("bcast", "toy", 1, "simulated", "test", {4: ((2**20, Choice("binomial")),)})
    (here / "long.json").write_text(json.dumps(decisions_document([table])))
    version = mpi_installation("openmpi").version
    other = "5.0" if version.startswith("4.1") else "4.1"
    exported = called("export", "long.json", "--version", other, "-o", "other.rules", "--check", cwd=here)
    assert f"rules for Open MPI {other}, checked by the installed Open MPI {version}\n" in exported.stdout


def test_all_collectives_from_a_sweep_to_tables(here: Path) -> None:
    catalogue = Catalogue.load()
    sweep = ("simulate", "--platform", "toy.toml", "--collective", "all", "--procs", "3,8", "--sizes", "64KiB")
    sweep += ("--segments", "8KiB")
    simulated = succeeded(*sweep, "--json", cwd=here)
    records = printed(simulated.stdout).rows
    runs = {
        (name, algorithm.name, procs)
        for name, entry in catalogue.collectives.items()
        for algorithm in entry.algorithms.values()
        for procs in (3, 8)
        if algorithm.selectable and not algorithm.objection(procs)
    }
    assert {(row["collective"], row["algorithm"], row["procs"]) for row in records} == runs
    again = called(*sweep, cwd=here)
    assert f"{len(runs)} cases, {len(runs)} of them already in the store; 0 simulator processes" in again.stdout
    assert all(row["seconds"] > 0 and not row["error"] for row in records if row["collective"] != "barrier")
    bound = [a for entry in catalogue.collectives.values() for a in entry.algorithms.values() if a.objection(3)]
    assert again.stdout.count("not simulated for P = 3") == len(bound)

    for target, options in (("openmpi-4.1", ("--version", "4.1")), ("collwise", ("--format", "collwise"))):
        succeeded(*sweep, "--for", target, "-o", f"{target}.times", cwd=here)
        selected = succeeded("select", f"{target}.times", "--for", target, "-o", f"{target}.json", cwd=here)
        assert "barrier left out" in selected.stderr
        succeeded("export", f"{target}.json", *options, "-o", f"{target}.rules", cwd=here)
    ids = {
        entry.openmpi_collective
        for entry in catalogue.collectives.values()
        if entry.name != "barrier"  # short messages cost nothing on this platform
        if any("4.1" in algorithm.openmpi for algorithm in entry.algorithms.values())
    }
    assert set(parse_rules((here / "openmpi-4.1.rules").read_text()).collectives) == ids
    lines = (here / "collwise.rules").read_text().splitlines()
    assert {line.split()[0] for line in lines if line and line[0] != "#"} == set(catalogue.collectives) - {"barrier"}


def test_times_are_saved_as_rows_if_the_name_of_the_file_says_so(here: Path) -> None:
    words = "simulate --platform toy.toml --collective bcast --procs 8 --sizes 8KiB,256KiB --segments 0 -o toy.csv"
    rows = printed(succeeded(*words.split(), "--json", cwd=here).stdout).rows
    saved = pd.read_csv(here / "toy.csv")
    assert saved.seconds.tolist() == pytest.approx([row["seconds"] for row in rows])
    assert saved.algorithm.tolist() == [row["algorithm"] for row in rows]


def test_compare_and_select_agree_on_the_best(here: Path) -> None:
    point = ("--platform", "toy.toml", "--collective", "bcast", "--procs", "8", "--sizes", "8KiB,256KiB")
    succeeded("simulate", *point, "--segments", "0,8KiB", "--deciders", "openmpi-4.1", "-o", "toy.times", cwd=here)
    selected = called("select", "toy.times", "-o", "toy.json", "--json", cwd=here)
    chosen = [row["algorithm"] for row in printed(selected.stdout).rows]
    compared = succeeded("compare", "toy.times", "toy.json", "openmpi-4.1", "--figures", "figures", "--json", cwd=here)
    rows = printed(compared.stdout).rows
    assert [row["message_bytes"] for row in rows] == [8192, 262144]
    best = [row["best"]["algorithm"] for row in rows]
    assert chosen == (best if best[0] != best[1] else best[:1])
    for row in rows:
        assert row["best"]["slowdown"] == row["picks"]["toy.json"]["slowdown"] == 0
        assert row["picks"]["Open MPI 4.1"]["slowdown"] >= 0
    assert sorted(path.name for path in (here / "figures").iterdir()) == [
        "toy-bcast-algorithms.png",
        "toy-bcast-by-size.png",
        "toy-bcast-close.png",
        "toy-bcast-decisions.png",
        "toy-bcast-slowdowns.png",
    ]


def test_tune_writes_one_page_with_its_figures_and_the_rules_of_its_process_counts(here: Path) -> None:
    asked = ("--procs", "4,8", "--collective", "bcast,gather", "--segments", "8KiB", "-o", "tuned")
    done = forked("tune", "toy.toml", *asked, cwd=here)
    assert done.returncode == 0, done.stderr
    assert "Untuned Open MPI 4.1 takes" in done.stdout
    page = (here / "tuned" / "toy.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 5  # two for each collective, and the gains
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "collwise tune toy.toml" in page
    assert (here / "tuned" / "toy-libcollwise.table").read_text().startswith("#")
    rules = parse_rules((here / "tuned" / "toy-openmpi-4.1.rules").read_text())
    gather = Catalogue.load().collective("gather").openmpi_collective
    assert set(rules.collectives[gather]) <= {1, 4, 8}
    assert rules.lookup(gather, 3, 65536) is None
    assert rules.lookup(gather, 8, 65536) is not None


@pytest.mark.slow
def test_demo_tells_what_to_use_and_what_it_gains(tmp_path: Path) -> None:
    done = collwise("demo", cwd=tmp_path, timeout=1500)
    assert done.returncode == 0, done.stderr
    assert "Untuned Open MPI 4.1 takes" in done.stdout
    apart = re.findall(r"([\d.]+) % apart on average", done.stdout)
    assert len(apart) == 5
    assert all(float(mean) <= 10 for mean in apart)
    assert done.stdout.count("accepted the rules and ran") >= 2
    assert "tune infiniband-hdr100 --nodes 64" in done.stdout
    assert (tmp_path / "results" / "demo" / "jupiter.html").exists()


def test_a_new_platform_is_sound_and_keeps_its_figures(here: Path) -> None:
    arguments = ("platforms", "new", "mine", "--nodes", "4", "--gbits", "25", "--latency-us", "12", "--cpus", "2")
    assert called(*arguments, cwd=here).returncode == 0
    checked = succeeded("platforms", "show", "mine.toml", "--check", cwd=here)
    assert "link 25 Gbit/s and 6 us (two links on the way: 12 us); 2 CPUs per node" in checked.stdout
    slip = (here / "mine.toml").read_text().replace("3125000000.0", "25.0")
    (here / "slip.toml").write_text(slip)
    wrong = called("platforms", "show", "slip.toml", "--check", cwd=here)
    assert wrong.returncode == 1
    assert "slip.toml:15: network.link_bytes_per_second: 25 bytes per second is too slow for a link" in wrong.stdout
    arguments = ("platforms", "new", "slow", "--nodes", "4", "--interconnect", "tcp-25g", "--latency-us", "900000")
    assert called(*arguments, cwd=here).returncode == 0
    wrong = called("platforms", "show", "slow.toml", "--check", cwd=here)
    assert wrong.returncode == 1
    assert "network.link_latency_seconds: a route of 0.9" in wrong.stdout
    assert "s is too long for a cluster; write seconds, 12e-6 for 12 us" in wrong.stdout


def test_check_finds_hosts_without_a_route(here: Path) -> None:
    clusters = "".join(
        f'<cluster id="{name}" prefix="{name}-" suffix=".x" radical="0-1" speed="1Gf" bw="1GBps" lat="10us"/>'
        for name in "ab"
    )
    head = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
    (here / "two.xml").write_text(
        f'{head}<platform version="4.1"><zone id="z" routing="Full">{clusters}</zone></platform>'
    )
    done = called("platforms", "show", "two.xml", "--check", cwd=here)
    assert done.returncode == 1
    assert re.search(r"two\.xml: SimGrid .*route", done.stdout)
