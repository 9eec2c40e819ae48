"""The table of command lines whose results are golden, by group; the commands of a group run in turn in one folder.

The folder has files/ with parameters of models and a decision file in its third format, results.jsonl (measured.py),
the store of `trio`, and what earlier commands wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.golden.shapes import (
    Ran,
    configurations,
    decisions,
    document,
    evidence,
    imported,
    percentages,
    predictions,
    report_values,
    rows,
    stored,
    text_of,
    without_wall_times,
)

CONSUMERS = ("openmpi-4.1", "mpich", "intel", "mvapich2", "ucc", "pgmpi", "smpi", "collwise")
GRID = "--collective all --procs 3,4,8,13 --sizes 64,1KiB,8KiB,64KiB,1MiB"
ENGINE = "--engine schedule --jobs 1 --store store.sqlite"
GROS, STAMPEDE = f"--platform gros {ENGINE}", f"--platform stampede2 --ppn 4 {ENGINE}"
MEASURED = "--by measured --platform gros --store measured.sqlite"
CONFIGURATIONS = "times list --store store.sqlite --json"
SHOWN = "--procs 3,4 --json"
IMPORT = "times import results.jsonl --store measured.sqlite --json"


class Golden(NamedTuple):
    """The words of a command line, and what is kept of its results."""

    words: str
    keeps: Callable[[Ran], Any] = document


def _selected(options: str) -> Golden:
    return Golden(f"select {options} --json", decisions)


def _for(consumer: str) -> str:
    return f"--for {consumer}"


def _predicted() -> dict[str, Golden]:
    path, parts = f"{GRID} --parameters files/critical_path.toml", f"{GRID} --parameters files/parts.toml"
    found = {"critical_path": path, "parts": parts}
    found |= {f"critical_path for {one}": f"{path} {_for(one)}" for one in CONSUMERS if one != "pgmpi"}
    for name in ("hockney", "hockney_by_size", "logp", "loggp", "plogp", "lmo"):
        found[name] = f"{GRID} --parameters files/{name}.toml"
    return {name: _selected(options) for name, options in found.items()} | {
        "parts for openmpi-4.1": _selected(f"{parts} --for openmpi-4.1"),
        "parts as printed": _selected(f"{parts} --model as_printed"),
        "loggp as printed": _selected(f"{GRID} --parameters files/loggp.toml --model loggp_as_printed"),
        "loggp exact": _selected(
            "--collective bcast,reduce --procs 4,13 --sizes 8KiB,256KiB --parameters files/loggp.toml --exact"
        ),
        "loggp exact, every byte": _selected(
            "--collective bcast,reduce --procs 4,13 --sizes 8KiB,256KiB --parameters files/loggp.toml --exact "
            "--tolerance 0"
        ),
        "parts, tolerance 0": _selected(f"{parts} --tolerance 0"),
        "parts, tolerance 20": _selected(f"{parts} --tolerance 20"),
        "critical_path, one choice": _selected(f"{path} --one-choice"),
        "plogp, one choice": _selected(f"{GRID} --parameters files/plogp.toml --one-choice"),
        "plogp, segments": _selected(f"{GRID} --parameters files/plogp.toml --segments 1KiB,8KiB,1MiB"),
        "every P": _selected("--collective bcast,allgather --procs 2:20:+1 --parameters files/critical_path.toml"),
        "usual": _selected("--collective bcast,gather --procs 5,12 --parameters files/parts.toml"),
    }


def _simulated() -> dict[str, Golden]:
    found = {"gros": f"{GRID} {GROS}", "stampede2": f"{GRID} {STAMPEDE}"}
    found |= {f"gros for {one}": f"{GRID} {GROS} {_for(one)}" for one in CONSUMERS}
    found |= {f"stampede2 for {one}": f"{GRID} {STAMPEDE} {_for(one)}" for one in ("openmpi-4.1", "mpich", "smpi")}
    few = "--collective bcast,allreduce,gather --procs 4,8,13"
    found |= {
        "gros, tolerance 0": f"{GRID} {GROS} --tolerance 0",
        "gros, tolerance 20": f"{GRID} {GROS} --tolerance 20",
        "gros, one choice": f"{GRID} {GROS} --one-choice",
        "gros, segments": f"{GRID} {GROS} --segments 1KiB,64KiB",
        "gros, usual sizes": f"{few} {GROS}",
        "stampede2, by node": f"{few} --sizes 1KiB,64KiB,1MiB {STAMPEDE} --by-node",
        "stampede2, cyclic": f"{few} --sizes 1KiB,64KiB,1MiB {STAMPEDE} --placement cyclic",
        "stampede2, mock-ups": f"{few} --sizes 1KiB,64KiB {STAMPEDE} --guidelines",
        "stampede2, usual sizes": f"{few} {STAMPEDE}",
    }
    return {name: _selected(f"--by simulated {options}") for name, options in found.items()}


def _measured() -> dict[str, Golden]:
    every = f"--collective all {MEASURED}"
    trio = "--collective bcast,allreduce --by measured --platform trio --store trio.sqlite"
    found = {"all": every} | {f"for {one}": f"{every} {_for(one)}" for one in CONSUMERS if one not in ("ucc", "pgmpi")}
    found |= {
        "for ucc": f"--collective bcast,allreduce,scatter {MEASURED} --for ucc",
        "tie limit 0": f"{every} --tie-limit 0",
        "tie limit 3, tolerance 0": f"{every} --tie-limit 3 --tolerance 0",
        "tolerance 10": f"{every} --tolerance 10",
        "one choice": f"{every} --one-choice",
        "some points": f"--collective bcast,reduce,scan {MEASURED} --procs 4,16 --sizes 8KiB,1MiB",
        "filled by a model": f"{every} --fill predicted --parameters files/critical_path.toml --agreement 90",
        "filled by simulation": f"--collective bcast,reduce {MEASURED} --fill simulated --agreement 90 "
        "--engine schedule --jobs 1",
        "launches": trio,
        "launches, tie limit 0": f"{trio} --tie-limit 0",
        "launches, one choice": f"{trio} --one-choice --for openmpi-4.1",
    }
    return {"imported": Golden(IMPORT, imported)} | {name: _selected(options) for name, options in found.items()}


def _evidence() -> dict[str, Golden]:
    """Whole decision tables, with the times that they were made from."""
    predicted = "--parameters files/critical_path.toml"
    few = "--procs 4,13 --sizes 1KiB,64KiB --segments 8KiB --json"
    return {
        "imported": Golden(IMPORT, imported),
        "predicted": Golden(f"select --collective bcast,allgather {predicted} {few}", evidence),
        "exact": Golden(f"select --collective bcast --parameters files/loggp.toml {few} --exact", evidence),
        "simulated": Golden(f"select --collective bcast,barrier --by simulated {STAMPEDE} {few}", evidence),
        "untuned": Golden(f"select --collective bcast --by simulated {STAMPEDE} {few} --for openmpi-4.1", evidence),
        "measured": Golden(f"select --collective bcast,scan {MEASURED} --json", evidence),
        "filled": Golden(
            f"select --collective bcast {MEASURED} --fill predicted {predicted} --agreement 90 --json", evidence
        ),
        "launches": Golden(
            "select --collective bcast --by measured --platform trio --store trio.sqlite --json", evidence
        ),
    }


TUNED = (
    "bcast,gather,scatter,allgather,allgatherv,alltoall,alltoallv,barrier,reduce,allreduce,reduce_scatter,"
    "reduce_scatter_block,scan,exscan"
)
"""Those that rules of some version of Open MPI are about."""
DECISION_FILES = {
    "path": f"--collective {TUNED} --procs 4,8,13 --sizes 1KiB,64KiB,1MiB --parameters files/critical_path.toml",
    "bytes": "--collective all --procs 2:9:+1 --sizes 8KiB,1MiB --parameters files/loggp.toml --tolerance 5",
    "exact": "--collective bcast,reduce --procs 4,6 --sizes 8KiB,64KiB --parameters files/plogp.toml --exact",
    "openmpi": f"--collective all --procs 4,8 --sizes 64,8KiB,1MiB --by simulated {STAMPEDE} --for openmpi-4.0",
    "simulated": f"--collective {TUNED} --procs 4,8 --sizes 64,8KiB,1MiB --by simulated {STAMPEDE}",
    "nodes": f"--collective bcast,allreduce --procs 8,16 --sizes 8KiB,1MiB --by simulated {STAMPEDE} --by-node",
    "one": f"--collective {TUNED} --procs 4,6,8 --sizes 1KiB,64KiB --by simulated {STAMPEDE} --one-choice --for smpi",
    "profile": f"--collective allreduce --procs 4,6,8 --sizes 1KiB,64KiB --by simulated {STAMPEDE} --for pgmpi",
    "measured": f"--collective {TUNED} {MEASURED}",
}
FORMATS = {
    "openmpi": "",
    "openmpi 4.0": "--format openmpi --openmpi-version 4.0",
    "openmpi 5.0": "--format openmpi --openmpi-version 5.0",
    "openmpi 6.0": "--format openmpi --openmpi-version 6.0",
    "openmpi-json": "--format openmpi-json",
    "collwise": "--format collwise",
    "mpich 4.0": "--format mpich --mpich-version 4.0",
    "mpich 4.1": "--format mpich --mpich-version 4.1",
    "mpich-variables": "--format mpich-variables --procs 8",
    "intel": "--format intel",
    "mvapich2": "--format mvapich2 --procs 8",
    "ucc": "--format ucc",
    "smpi": "--format smpi --procs 8",
    "prf": "--format prf --procs 4",
}
EXPRESSED = {
    "exact": ("openmpi", "openmpi 4.0", "openmpi 5.0", "openmpi 6.0", "openmpi-json", "collwise", "smpi"),
    "nodes": tuple(name for name in FORMATS if name != "openmpi 4.0"),
    "profile": ("collwise", "prf"),
}
"""Formats that can express something of a decision file, if not all but profiles."""


def _written(name: str) -> Callable[[Ran], Any]:
    """Keeps the text of a file, or of those in a folder, and the percentages in what was said about it."""

    def keep(ran: Ran) -> Any:
        path = ran.folder / name
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return {"percentages": percentages(ran.err)} | {
            file.name if path.is_dir() else "text": text_of(file.read_text()) for file in files
        }

    return keep


def _rules() -> dict[str, Golden]:
    before = Golden("export files/decisions-3.json --format collwise -o before.rules", _written("before.rules"))
    found = {"imported": Golden(IMPORT, imported), "written before": before}
    for file, options in DECISION_FILES.items():
        found[file] = Golden(f"select {options} -o {file}.json --json", decisions)
        for name, words in FORMATS.items():
            if name not in EXPRESSED.get(file, FORMATS) or (name == "prf") > (file == "profile"):
                continue
            output = f"{file}-{name.replace(' ', '-')}.rules"
            found[f"{file} as {name}"] = Golden(f"export {file}.json {words} -o {output}", _written(output))
    return found


def _times() -> dict[str, Golden]:
    few = "--procs 3,8 --sizes 1KiB,64KiB --segments 8KiB --json"
    return {
        "imported": Golden(IMPORT, imported),
        "simulated": Golden(f"simulate --collective all {STAMPEDE} {few}", rows),
        "simulated, by counts": Golden(
            f"simulate --collective bcast --algorithms k_chain,knomial {GROS} {few} --chains 2,4 --radix 2,8 --root 2",
            rows,
        ),
        "simulated, from tasks": Golden(
            "simulate --collective allreduce --algorithms tasks_binary,multi_leader_binomial --leaders 1,2 "
            f"--between-segment 4KiB {STAMPEDE} {few}",
            rows,
        ),
        "simulated, mock-ups": Golden(
            f"simulate --collective reduce --algorithms guidelines {STAMPEDE} {few} --baseline mpich-4", rows
        ),
        "predicted": Golden(f"predict --parameters files/critical_path.toml --collective bcast {few}", predictions),
        "predicted, parts": Golden(f"predict --parameters files/parts.toml --collective reduce {few}", predictions),
        "predicted, by schedule": Golden(
            f"predict --parameters files/loggp.toml --collective allreduce --by-schedule {few}", predictions
        ),
        "predicted, one message": Golden("show message files/lmo.toml 0,3 --sizes 1KiB,64KiB --json", document),
        "stored": Golden(f"times show --store measured.sqlite --collective scan {SHOWN}", stored),
        "stored simulations": Golden(f"times show --store store.sqlite --collective barrier {SHOWN}", stored),
        "measured configurations": Golden("times list --store measured.sqlite --json", configurations),
        "configurations of launches": Golden("times list --store trio.sqlite --json", configurations),
        "simulated configurations": Golden(CONFIGURATIONS, configurations),
    }


def _compared() -> dict[str, Golden]:
    few = "--procs 4,16 --sizes 1KiB,64KiB,1MiB --segments 8KiB,64KiB --baseline openmpi-4.1"
    model = "--parameters files/critical_path.toml"
    found = {"imported": Golden(IMPORT, imported)}
    for collective in ("bcast", "gather", "reduce", "allreduce", "allgather", "alltoall", "barrier", "reduce_scatter"):
        sizes = few.replace("--sizes 1KiB,64KiB,1MiB ", "") if collective == "barrier" else few
        found[collective] = Golden(f"compare --collective {collective} {GROS} {sizes} {model} --json", rows)
    others = few.replace("openmpi-4.1", "mpich-4")
    found["bcast, MPICH"] = Golden(f"compare --collective bcast {GROS} {others} --json", rows)
    found["bcast, formulas"] = Golden(
        f"compare --collective bcast {GROS} {few} --parameters files/loggp.toml --model loggp --json", rows
    )
    for sources in ("measured,simulated", "schedule,measured", "measured,predicted", "schedule,predicted"):
        where = f"--store {'measured' if 'measured' in sources else 'store'}.sqlite --json"
        extent = "" if "measured" in sources else "--procs 4,16 --sizes 1KiB,64KiB --segments 8KiB"
        by = model if "predicted" in sources else ""
        by = "--engine schedule" if "simulated" in sources else by
        for collective in ("bcast", "scan"):
            found[f"{collective}, {sources}"] = Golden(
                f"compare --platform gros --collective {collective} --sources {sources} {extent} {by} {where}", rows
            )
    for collective in ("bcast", "reduce", "barrier"):
        sizes = "" if collective == "barrier" else "--sizes 1KiB,32KiB,1MiB"
        files = "files/critical_path.toml,files/loggp.toml,files/plogp.toml"
        found[f"map of {collective}"] = Golden(
            f"decision-map --collective {collective} --procs 3,4,9 {sizes} --models critical_path,loggp,plogp "
            f"--parameters {files} --baseline openmpi-4.1 {GROS} --json"
        )
    found["defaults"] = Golden(
        "defaults --baseline openmpi-4.1 --collective bcast,allreduce --procs 4,13 --sizes 1KiB,1MiB --json", rows
    )
    return found


def _changed() -> dict[str, Golden]:
    few = "--procs 8,13 --sizes 1KiB,64KiB,1MiB --segments 8KiB"
    usual = f"--collective bcast,allreduce {few} {STAMPEDE} --json"
    sweep = f"--collective allreduce,bcast --procs 8,13 --sizes 64KiB,1MiB --segments 8KiB {ENGINE} --json"
    decided = f"--collective bcast,allreduce {few} --by simulated {STAMPEDE}"
    return {
        "rules": Golden(f"select {decided} -o kept.json --json", decisions),
        "bandwidth": Golden(f"whatif {usual} --change bandwidth=x0.25"),
        "several": Golden(f"whatif {usual} --change latency=x4 --change overheads=x2 --change reduction=x0.5"),
        "kept rules": Golden(f"whatif {usual} --change latency=x0.25 --rules kept.json"),
        "no limits": Golden(f"whatif {usual} --change placement=cyclic --no-limits"),
        "slow node": Golden(f"whatif --collective gather --procs 8 {STAMPEDE} --change slow_node=1:x8 --json"),
        "configurations": Golden(CONFIGURATIONS, configurations),
        "sweep of bandwidth": Golden(f"sweep {sweep} --platform gros --factors bandwidth=x0.0625:x4"),
        "sweep of latency": Golden(f"sweep {sweep} --platform gros --factors latency=x0.25:x8 --tolerance 0"),
        "sweep of overheads": Golden(
            f"sweep {sweep} --platform boba --factors overheads=x0.25:x8 --change bandwidth=x0.5 --tolerance 5"
        ),
        "program": Golden(f"program profile report.json --change bandwidth=x0.25 --baseline openmpi-4.1 {GROS} --json"),
        "profile": Golden(
            f"program profile report.json --baseline openmpi-4.1 {GROS} --json -o tuned.table",
            _with("tuned.table"),
        ),
        "profile by decisions": Golden(
            "program profile report.json --baseline mpich-4 --decisions kept.json --json", document
        ),
    }


def _with(name: str) -> Callable[[Ran], Any]:
    """Keeps the rows and facts, and the text of a file."""
    return lambda ran: document(ran) | {name: text_of((ran.folder / name).read_text())}


def _searched() -> dict[str, Golden]:
    few = f"--nodes 3,4 --ppn 4 --sizes 64KiB,1MiB --segments 16KiB,64KiB {ENGINE} --json"
    tune = f"hierarchy tune --platform stampede2 --collective bcast,reduce,allreduce {few}"
    drawn = f"hierarchy tune --platform stampede2 --collective bcast {few} --drawn 3"
    few_sizes = few.replace("64KiB,1MiB --seg", "64KiB --seg")
    no_sizes = few.replace("--sizes 64KiB,1MiB", "").replace("3,4", "3")
    return {
        "tune": Golden(f"{tune} --search exhaustive,tasks -o d.json --table t.table"),
        "table": Golden("export d.json --format collwise -o e.table", _written("e.table")),
        "drawn machine": Golden(f"{drawn} --search all"),
        "sockets": Golden(f"{tune.replace('3,4', '3')} --search tasks --within by-socket,point-to-point"),
        "model": Golden(f"hierarchy model --platform stampede2 --collective bcast {few_sizes}"),
        "tasks": Golden(f"hierarchy tasks --platform stampede2 --collective bcast {no_sizes}"),
        "guidelines": Golden(
            "guidelines simulate --platform stampede2 --ppn 4 --collective bcast,gather,reduce,scatter --procs 4,8 "
            f"--sizes 64,64KiB --libraries openmpi-4.1,mpich-4 {ENGINE} --json",
            without_wall_times,
        ),
        "chosen": Golden(
            f"select --collective allreduce,gather,scan --procs 4,8 --sizes 64,64KiB --by simulated {STAMPEDE} "
            "-o chosen.json --json",
            decisions,
        ),
        "guidelines of a table": Golden(
            f"guidelines decisions chosen.json --platform stampede2 {ENGINE} --json", without_wall_times
        ),
        "report": Golden(
            "report --procs 4,8 --collective bcast,allreduce,barrier --sizes 1KiB,1MiB --segments 8KiB "
            f"--baseline openmpi-4.1 {STAMPEDE} -o report",
            report_values,
        ),
        "configurations": Golden(CONFIGURATIONS, configurations),
    }


def _evaluated() -> dict[str, Golden]:
    few = "--procs 4,8 --sizes 1KiB,64KiB --baseline openmpi-4.1 --jobs 1 --store store.sqlite --json"
    return {
        "evaluated": Golden(
            f"evaluate --platforms exact --collective bcast,gather,barrier --models hockney,loggp,critical_path {few}",
            rows,
        ),
    }


GROUPS: dict[str, dict[str, Golden]] = {
    "select_predicted": _predicted(),
    "select_simulated": _simulated(),
    "select_measured": _measured(),
    "evidence": _evidence(),
    "rules": _rules(),
    "times": _times(),
    "compare": _compared(),
    "change": _changed(),
    "search": _searched(),
    "evaluate": _evaluated(),
}
