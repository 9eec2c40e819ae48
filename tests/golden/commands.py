"""The table of command lines whose results are golden, by group; the commands of a group run in turn in one folder.

The folder has files/ with parameters of models and a decision file in its third format, results.jsonl (measured.py),
the store of `trio`, and what earlier commands wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.golden.shapes import (
    Ran,
    configurations,
    decisions,
    document,
    evidence,
    imported,
    nothing,
    percentages,
    predictions,
    report_values,
    rows,
    stored,
    text_of,
    without_wall_times,
)

CONSUMERS = ("openmpi-4.1", "mpich", "intel", "mvapich2", "ucc", "pgmpi", "smpi", "collwise")
GRID = "--collective all --procs 6,8,13 --sizes 1KiB,64KiB,1MiB"
ENGINE = "--engine schedule --jobs 1 --store store.sqlite"
GROS, STAMPEDE = f"--platform gros {ENGINE}", f"--platform stampede2 --ppn 4 {ENGINE}"
PATH, PARTS = "--parameters files/critical_path.toml", "--parameters files/parts.toml"
CUT = "--segments 8KiB:128KiB:x2"
MEASURED = "store:file=measured.sqlite,platform=gros,source=measured"
TRIO = "store:file=trio.sqlite,platform=trio,source=measured"
MEASURED_POINTS = "--procs 4,6,16 --sizes 1KiB,8KiB,64KiB,1MiB --segments 8KiB,64KiB"
CONFIGURATIONS = "times list --store store.sqlite --json"
SHOWN = "--procs 3,4 --json"
IMPORT = "times import results.jsonl --store measured.sqlite --json"


class Golden(NamedTuple):
    """The words of a command line, or of several by ' && ', and what is kept of the last: also its figures?"""

    words: str
    keeps: Callable[[Ran], Any] = document
    draws: bool = False


def _by_times(made: str, options: str = "", keeps: Callable[[Ran], Any] = decisions) -> Golden:
    """Decisions by the times that a command makes."""
    return Golden(f"{made} -o made.times --force && select made.times {options} --json", keeps)


def _predict(options: str, extent: str = f"{GRID} {CUT}") -> str:
    return f"predict {extent} {options}"


def _simulate(where: str, extent: str = GRID) -> str:
    return f"simulate {extent} {where}"


def _for(consumer: str) -> str:
    return f"--for {consumer}"


def _predicted() -> dict[str, Golden]:
    path, parts, plogp = _predict(PATH), _predict(PARTS), "--parameters files/plogp.toml"
    exact = _predict(
        "--parameters files/loggp.toml", f"--collective bcast,reduce --procs 4,13 --sizes 8KiB,256KiB {CUT}"
    )
    made = {"critical_path": path, "parts": parts}
    for name in ("hockney", "hockney_by_size", "logp", "loggp", "plogp", "lmo"):
        made[name] = _predict(f"--parameters files/{name}.toml")
    found = {name: _by_times(words) for name, words in made.items()}
    return found | {
        "critical_path for collwise": _by_times(f"{path} --for collwise", "--for collwise"),
        "parts for openmpi-4.1": _by_times(f"{parts} --for openmpi-4.1", "--for openmpi-4.1"),
        "parts as printed": _by_times(f"{parts} --model as_printed"),
        "loggp as printed": _by_times(f"{made['loggp']} --model loggp_as_printed"),
        "loggp exact": _by_times(exact, "--exact"),
        "loggp exact, every byte": _by_times(exact, "--exact --tolerance 0"),
        "parts, tolerance 0": _by_times(parts, "--tolerance 0"),
        "parts, tolerance 20": _by_times(parts, "--tolerance 20"),
        "critical_path, one choice": _by_times(path, "--one-choice"),
        "plogp, one choice": _by_times(made["plogp"], "--one-choice"),
        "plogp, segments": _by_times(_predict(plogp, f"{GRID} --segments 1KiB,8KiB,1MiB")),
        "every P": _by_times(_predict(PATH, f"--collective bcast,allgather --procs 2:8:+1 {CUT}")),
        "usual": _by_times(_predict(PARTS, f"--collective bcast,gather --procs 5,12 {CUT}")),
    }


def _simulated() -> dict[str, Golden]:
    gros, stampede = _simulate(GROS), _simulate(STAMPEDE)
    made = {"gros": gros, "stampede2": stampede}
    found = {name: _by_times(words) for name, words in made.items()}
    found |= {f"gros for {one}": _by_times(f"{gros} {_for(one)}", _for(one)) for one in CONSUMERS}
    for one in ("openmpi-4.1", "mpich", "smpi"):
        found[f"stampede2 for {one}"] = _by_times(f"{stampede} {_for(one)}", _for(one))
    few = "--collective bcast,allreduce,gather --procs 8,13"
    two = f"{few} --sizes 1KiB,64KiB"
    return found | {
        "gros, tolerance 0": _by_times(gros, "--tolerance 0"),
        "gros, tolerance 20": _by_times(f"{gros} --margin 20", "--tolerance 20"),
        "gros, one choice": _by_times(gros, "--one-choice"),
        "gros, segments": _by_times(f"{gros} --segments 1KiB,64KiB"),
        "gros, usual sizes": _by_times(_simulate(GROS, "--collective bcast --procs 13")),
        "stampede2, by node": _by_times(_simulate(STAMPEDE, f"{two} --algorithms all,by-node")),
        "stampede2, cyclic": _by_times(_simulate(STAMPEDE, f"{two} --placement cyclic")),
        "stampede2, mock-ups": _by_times(_simulate(STAMPEDE, f"{two} --algorithms all,guidelines")),
        "stampede2, usual sizes": _by_times(_simulate(STAMPEDE, "--collective allreduce --procs 8")),
    }


def _of_store(query: str, options: str = "", keeps: Callable[[Ran], Any] = decisions) -> Golden:
    """Decisions by times of the store."""
    return Golden(f"select {query} {options} --json", keeps)


def _measured() -> dict[str, Golden]:
    found = {"imported": Golden(IMPORT, imported), "all": _of_store(MEASURED)}
    found |= {f"for {one}": _of_store(MEASURED, _for(one)) for one in ("openmpi-4.1", "collwise")}
    some = f"{MEASURED},collective=bcast+gather+allreduce+allgather+scan+barrier"
    predicted = f"{_predict(PATH, f'--collective all {MEASURED_POINTS}')} -o filler.times"
    simulated = f"simulate --collective bcast,reduce {GROS} {MEASURED_POINTS} -o filler.times --force"
    filled = "--fill filler.times --agreement 90 --json"
    return found | {
        "for ucc": _of_store(f"{MEASURED},collective=bcast+allreduce+scatter", "--for ucc"),
        "tie limit 0": _of_store(some, "--tie-limit 0"),
        "tie limit 3, tolerance 0": _of_store(some, "--tie-limit 3 --tolerance 0"),
        "tolerance 10": _of_store(some, "--tolerance 10"),
        "one choice": _of_store(some, "--one-choice"),
        "some points": _of_store(f"{MEASURED},collective=bcast+reduce+scan,procs=4+16,sizes=8KiB+1MiB"),
        "filled by a model": Golden(f"{predicted} && select {MEASURED} {filled}", decisions),
        "filled by simulation": Golden(f"{simulated} && select {MEASURED},collective=bcast+reduce {filled}", decisions),
        "launches": _of_store(f"{TRIO},collective=bcast+allreduce"),
        "launches, tie limit 0": _of_store(TRIO, "--tie-limit 0"),
        "launches, one choice": _of_store(TRIO, "--one-choice --for openmpi-4.1"),
    }


def _evidence() -> dict[str, Golden]:
    """Whole decision tables, with the times that they were made from."""
    few = "--procs 4,13 --sizes 1KiB,64KiB --segments 8KiB --margin 1"
    untuned = _simulate(STAMPEDE, f"--collective bcast {few} --for openmpi-4.1")
    return {
        "imported": Golden(IMPORT, imported),
        "predicted": _by_times(_predict(PATH, f"--collective bcast,allgather {few}"), keeps=evidence),
        "exact": _by_times(_predict("--parameters files/loggp.toml", f"--collective bcast {few}"), "--exact", evidence),
        "simulated": _by_times(_simulate(STAMPEDE, f"--collective bcast,barrier {few}"), keeps=evidence),
        "untuned": _by_times(untuned, "--for openmpi-4.1", evidence),
        "measured": _of_store(f"{MEASURED},collective=bcast+scan", keeps=evidence),
        "filled": Golden(
            f"{_predict(PATH, f'--collective bcast {MEASURED_POINTS}')} -o filler.times && "
            f"select {MEASURED},collective=bcast --fill filler.times --agreement 90 --json",
            evidence,
        ),
        "launches": _of_store(f"{TRIO},collective=bcast", keeps=evidence),
    }


TUNED = (
    "bcast,gather,scatter,allgather,allgatherv,alltoall,alltoallv,barrier,reduce,allreduce,reduce_scatter,"
    "reduce_scatter_block,scan,exscan"
)
"""Those that rules of some version of Open MPI are about."""
DECISION_FILES = {
    "path": (_predict(PATH, f"--collective {TUNED} --procs 4,8,13 --sizes 1KiB,64KiB,1MiB {CUT} --margin 1"), ""),
    "bytes": (
        _predict("--parameters files/loggp.toml", f"--collective all --procs 2:9:+1 --sizes 8KiB,1MiB {CUT}"),
        "--tolerance 5",
    ),
    "exact": (
        _predict("--parameters files/plogp.toml", f"--collective bcast,reduce --procs 4,6 --sizes 8KiB,64KiB {CUT}"),
        "--exact",
    ),
    "openmpi": (
        _simulate(STAMPEDE, "--collective all --procs 4,8 --sizes 64,8KiB,1MiB --for openmpi-4.0 --margin 1"),
        "--for openmpi-4.0",
    ),
    "nodes": (
        _simulate(
            STAMPEDE, "--collective bcast,allreduce --procs 8,16 --sizes 8KiB,1MiB --algorithms all,by-node --margin 1"
        ),
        "",
    ),
    "one": (
        _simulate(STAMPEDE, f"--collective {TUNED} --procs 4,6,8 --sizes 1KiB,64KiB --for smpi"),
        "--one-choice --for smpi",
    ),
    "profile": (
        _simulate(STAMPEDE, "--collective allreduce --procs 4,6,8 --sizes 1KiB,64KiB --for pgmpi"),
        "--for pgmpi",
    ),
    "measured": ("", f"{MEASURED},collective={TUNED.replace(',', '+')}"),
}
"""What makes the times of each, and options of select, or the times themselves."""
FORMATS = {
    "openmpi": "",
    "openmpi 4.0": "--format openmpi --version 4.0",
    "openmpi 5.0": "--format openmpi --version 5.0",
    "openmpi 6.0": "--format openmpi --version 6.0",
    "openmpi-json": "--format openmpi-json",
    "collwise": "--format collwise",
    "mpich 4.0": "--format mpich --version 4.0",
    "mpich 4.1": "--format mpich --version 4.1",
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
    for file, (made, options) in DECISION_FILES.items():
        written = f"{options} -o {file}.json"
        found[file] = _by_times(made, written) if made else _of_store(written)
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
            f"simulate --collective bcast --algorithms k_chain,knomial {GROS} {few} "
            "--parameter chains=2,4 --parameter radix=2,8 --root 2",
            rows,
        ),
        "simulated, from tasks": Golden(
            "simulate --collective allreduce --algorithms tasks_binary,multi_leader_binomial --parameter leaders=1,2 "
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
    points = "--procs 4,16 --sizes 1KiB,64KiB,1MiB"
    cut, files = "--segments 8KiB,64KiB", ("critical_path", "loggp", "plogp")

    def beside(collective: str, library: str, *models: str, extent: str = f"{points} {cut}") -> Golden:
        extent = re.sub("--sizes [^ ]+", "", extent) if collective == "barrier" else extent
        extent = f"--collective {collective} {extent}"
        made = [f"predict --parameters files/{one}.toml {extent} -o {one}.times --force" for one in models]
        simulated = f"simulate {extent} {GROS} --deciders {library} -o right.times --force"
        others = " ".join(f"{one}.times" for one in models)
        words = [*made, simulated, f"compare right.times {others} {library} --json"]
        return Golden(" && ".join(words), draws=(len(models) > 1 and collective == "bcast") or collective == "barrier")

    found = {"imported": Golden(IMPORT, imported)}
    for collective in ("bcast", "gather", "reduce", "allreduce", "allgather", "alltoall", "barrier", "reduce_scatter"):
        found[collective] = beside(collective, "openmpi-4.1", "critical_path")
    found["bcast, MPICH"] = beside("bcast", "mpich-4")
    found["bcast, formulas"] = beside("bcast", "openmpi-4.1", "loggp")
    for collective in ("bcast", "scan"):
        measured, extent = f"{MEASURED},collective={collective}", f"--collective {collective} {MEASURED_POINTS}"
        simulated = f"simulate {extent} {GROS} -o simulated.times --force"
        predicted = f"predict {extent} {PATH} -o predicted.times --force"
        found[f"{collective}, measured,simulated"] = Golden(f"{simulated} && compare {measured} simulated.times --json")
        found[f"{collective}, measured,predicted"] = Golden(f"{predicted} && compare {measured} predicted.times --json")
        found[f"{collective}, schedule,predicted"] = Golden("compare predicted.times simulated.times --json")
    for collective in ("bcast", "barrier"):
        extent = "--procs 3,4,9 --sizes 1KiB,32KiB,1MiB --segments 0,1KiB,8KiB"
        found[f"map of {collective}"] = beside(collective, "openmpi-4.1", *files, extent=extent)
    found["defaults"] = Golden(
        "show defaults --baseline openmpi-4.1 --collective bcast,allreduce --procs 4,13 --sizes 1KiB,1MiB --json", rows
    )
    return found


def _changed() -> dict[str, Golden]:
    few = "--procs 8,13 --sizes 1KiB,64KiB,1MiB --segments 8KiB"
    usual = f"--collective bcast,allreduce {few} {STAMPEDE} --json"
    sweep = f"--procs 8,13 --sizes 1MiB --segments 8KiB {ENGINE} --json"
    decided = _simulate(STAMPEDE, f"--collective bcast,allreduce {few}")
    return {
        "rules": _by_times(decided, "-o kept.json"),
        "bandwidth": Golden(f"whatif change {usual} --change bandwidth=x0.25", draws=True),
        "several": Golden(f"whatif change {usual} --change latency=x4 --change overheads=x2 --change reduction=x0.5"),
        "kept rules": Golden(f"whatif change {usual} --change latency=x0.25 --decisions kept.json"),
        "no limits": Golden(f"whatif change {usual} --change placement=cyclic --no-limits"),
        "slow node": Golden(f"whatif change --collective gather --procs 8 {STAMPEDE} --change slow_node=1:x8 --json"),
        "configurations": Golden(CONFIGURATIONS, configurations),
        "sweep of bandwidth": Golden(
            f"whatif sweep {sweep.replace('8,13', '13,16')} --platform gros --collective allreduce "
            "--factors bandwidth=x0.0625:x4",
            draws=True,
        ),
        "sweep of latency": Golden(
            f"whatif sweep {sweep} --platform gros --collective bcast --factors latency=x0.25:x8 --tolerance 0"
        ),
        "sweep of overheads": Golden(
            f"whatif sweep {sweep} --platform boba --collective reduce --factors overheads=x0.25:x8 "
            "--change bandwidth=x0.5 --tolerance 5"
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
    tune = f"search tasks --platform stampede2 --collective bcast,reduce,allreduce {few}"
    drawn = f"search tasks --platform stampede2 --collective bcast {few} --drawn 3"
    no_sizes = few.replace("--sizes 64KiB,1MiB", "").replace("3,4", "3")
    return {
        "tune": Golden(f"{tune} --search exhaustive,tasks -o d.json", draws=True),
        "table": Golden("export d.json --format collwise -o e.table", _written("e.table")),
        "drawn machine": Golden(f"{drawn} --search all"),
        "sockets": Golden(f"{tune.replace('3,4', '3')} --search tasks --within by-socket,point-to-point"),
        "tasks": Golden(f"show tasks --platform stampede2 --collective bcast {no_sizes}", draws=True),
        "guidelines": Golden(
            "guidelines simulate --platform stampede2 --ppn 4 --collective bcast,gather,reduce,scatter --procs 4,8 "
            f"--sizes 64,64KiB --library openmpi-4.1,mpich-4 {ENGINE} --json",
            without_wall_times,
            draws=True,
        ),
        "chosen": _by_times(
            _simulate(STAMPEDE, "--collective allreduce,gather,scan --procs 4,8 --sizes 64,64KiB"), "-o chosen.json"
        ),
        "guidelines of a table": Golden(
            f"guidelines decisions chosen.json --platform stampede2 {ENGINE} --json", without_wall_times
        ),
        "report": Golden(
            "tune stampede2 --ppn 4 --procs 4,8 --collective bcast,allreduce,barrier --sizes 1KiB,1MiB --segments 8KiB "
            f"{ENGINE} -o report",
            report_values,
        ),
        "configurations": Golden(CONFIGURATIONS, configurations),
    }


MACHINE = """# machine: mare_nostrum
# library: Open MPI 4.1.5
collective,algorithm,procs,ppn,bytes,us
bcast,default,4,1,1024,9
bcast,binomial,4,1,1024,8
bcast,chain,4,1,1024,12
bcast,default,8,4,65536,90
bcast,binomial,8,4,65536,70
bcast,chain,8,4,65536,60
"""
"""Times of a supercomputer, in a file of this form."""


def _presented() -> dict[str, Golden]:
    """Commands whose results other groups do not have, and results of many points or of one."""
    gros, many = f"--platform gros {ENGINE}", "--procs 4:16:+2 --sizes 1KiB:4MiB:x16 --segments 8KiB"
    made, simulated = "simulate --collective bcast,allgather --procs 8,12", f"{GROS} --sizes 1KiB,64KiB -o one.times"
    drawn = "simulate --platform leonardo --collective allgather --algorithms ring,bruck --procs 4 --sizes 8 --ppn 1"
    drawn, profile = f"{drawn} {ENGINE} --allocations 3", "program profile report.json"
    tune = f"tune jupiter --collective bcast --procs 64 --sizes 64KiB --segments 8KiB {ENGINE}"
    found = {
        "imported": Golden(IMPORT, imported),
        "algorithms": Golden("show algorithms bcast --json"),
        "models": Golden("show models --json"),
        "coverage": Golden("show models --collective bcast,scan --json"),
        "defaults": Golden(
            "show defaults --baseline mpich-4 --collective allgatherv,alltoall --procs 5,16 --sizes 1KiB,1MiB --json"
        ),
        "platforms": Golden("platforms show --json", nothing),
        "description": Golden("platforms describe mine --nodes 4 --interconnect tcp-25g --json", _with("mine.toml")),
        "schedule": Golden(
            "show schedule --platform gros --collective reduce --algorithms binomial --procs 8 --sizes 64KiB --json",
            draws=True,
        ),
        "traffic": Golden(
            "show schedule --platform leonardo --collective bcast --algorithms all --procs 8 --ppn 2 "
            "--sizes 1KiB --json"
        ),
        "one point": Golden(f"simulate {gros} --collective alltoall --procs 64 --sizes 8KiB --json", rows, draws=True),
        "segments": Golden(
            f"simulate {gros} --collective bcast,reduce --procs 3,8 --sizes 1KiB,64KiB --segments 0,8KiB,128KiB --json",
            nothing,
            draws=True,
        ),
        "allocations": Golden(f"{drawn} --json", rows, draws=True),
        "of allocations": Golden(f"{drawn} -o drawn.times && select drawn.times --json", decisions),
        "of a simulation": Golden(f"{made} {simulated} && select one.times --json -o one.json", decisions),
        "robust": Golden("select one.times --robust --json", decisions),
        "notes": Golden(f"{made} {GROS} --sizes 1KiB --segments 8KiB:1MiB:x3 --json", nothing),
        "of a model": Golden(
            f"predict --collective bcast {PATH} {many} -o two.times && select two.times --json", decisions
        ),
        "of measured times": Golden(f"select {MEASURED},collective=bcast+scan --json", decisions),
        "exported": Golden("export one.json --format openmpi -o one.rules --json", nothing),
        "exported for libcollwise": Golden("export one.json --format collwise -o one.table --json"),
        "tuned": Golden(f"{tune} -o one --json"),
        "tuned, several": Golden(
            f"tune infiniband-hdr100 --nodes 4 --ppn 16 --collective bcast,allreduce --sizes 1KiB,1MiB {ENGINE} "
            "--for openmpi-5.0 --segments 64KiB -o two --json"
        ),
        "tuned, robust": Golden(f"{tune} --for intel --robust -o three --json"),
        "profile": Golden(f"{profile} --json"),
        "profiles": Golden(f"{profile} report.json --after report.json --json"),
        "profile by measured times": Golden(
            f"select {MEASURED} -o m.json && {profile} --decisions m.json --baseline openmpi-4.1 --json"
        ),
        "profile by decisions": Golden(f"{profile} --decisions one.json --baseline openmpi-4.1 --json"),
        "changed, many": Golden(
            f"whatif change {gros} --collective bcast,allreduce {many.replace('+2', '+4')} "
            "--change bandwidth=x0.02 --json",
            nothing,
        ),
        "swept, many": Golden(
            f"whatif sweep {gros} --collective allreduce --algorithms ring,recursive_doubling {many} "
            "--factors bandwidth=x0.1:x2 --json",
            nothing,
        ),
        "machines": Golden(f"check machines machine.times.csv {ENGINE} --predictions p.csv --json", draws=True),
        "deleted": Golden("times delete --store measured.sqlite --source measured --yes --json"),
    }
    for name in ("gros", "hcl16", "fat-tree-1024", "leonardo", "fugaku"):
        found[f"platform {name}"] = Golden(f"platforms show {name} --json", draws=name != "hcl16")
    return found


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
    "shown": _presented(),
}
