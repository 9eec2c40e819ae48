"""collwise testbed: up, status, down, run and power."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click

from collwise.common.errors import CollwiseError, UsageError, note, unknown_name
from collwise.common.units import counted, format_size
from collwise.studies.cli import options
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import argument, flag, group, option, refuse_options
from collwise.studies.cli.derive import command
from collwise.studies.cli.types import SIZE, NamedChoice, Parsed
from collwise.studies.present.shown import Shown, Table
from collwise.validation.testbed import bed as beds, slurm as batch
from collwise.validation.testbed.namespaces import processes
from collwise.validation.testbed.shape import MAX_NODES, TRANSPORTS, Shape, format_rate, parse_rate
from collwise.validation.testbed.target import TestBed

RATE = Parsed("rate", parse_rate)
_USUAL = Shape()

_NAME = option(default=beds.USUAL_NAME)
_ANY_NAME = option()


@click.group(cls=CommandGroup, epilog=example("testbed up --nodes 8 --rate 100Mbit"))
def testbed() -> None:
    """Emulates a cluster on this machine: real MPI over rate-limited TCP between network namespaces.

    It needs Linux and the right to make namespaces.
    """


def _shape(uplink_rate: float | None, **values: Any) -> Shape:
    if uplink_rate is None:
        return Shape(**values)
    return Shape(**values, switches=2, uplink_bits_per_second=uplink_rate)


_SHAPE = group(
    _shape,
    nodes=option(click.IntRange(2, MAX_NODES), _USUAL.nodes),
    bits_per_second=option(RATE, format_rate(_USUAL.bits_per_second)),
    buffer_bytes=option(SIZE, f"{_USUAL.buffer_bytes} B"),
    ranks_per_node=option(click.IntRange(1, 64), 1, key="ppn"),
    congestion_control=option(default=_USUAL.congestion_control),
    uplink_rate=option(RATE),
    transport=option(NamedChoice("transport", TRANSPORTS), _USUAL.transport),
)


@command("testbed up --nodes 8 --rate 100Mbit", parent=testbed)
def up(
    name: str = _NAME,
    shape: Shape = _SHAPE,
    slurm: bool = flag(),
) -> Shown:
    """Makes a test bed, which replaces one of the same name.

    The default rate is low, so that two processors can emulate the network and still run the MPI processes on time;
    'testbed status --check' says whether they can.
    """
    bed = beds.up(shape, name, slurm=slurm)
    if (used := bed.facts["congestion_control"]) != shape.congestion_control:
        note(f"{shape.congestion_control} is not permitted here, the nodes use {used}")
    said = f"test bed '{name}' is up: {_words(shape)}{', under Slurm' if slurm else ''}"
    return Shown([said], [_described(bed)])


@command("testbed status --check", parent=testbed)
def status(
    name: str | None = _ANY_NAME,
    check: bool = flag(),
) -> Shown:
    """Lists the test beds that are up."""
    from collwise.studies.present.testbed import CHECK_COLUMNS, check_rows, check_words
    from collwise.validation.testbed.check import check as check_bed

    up_now = [beds.running(name)] if name is not None else beds.all_running()
    checks = {bed.name: check_bed(bed) for bed in up_now} if check else {}
    columns = ["name", "shape", "TCP", "Slurm", "processes inside"]
    rows = [
        (bed.name, _words(bed.shape), bed.facts["congestion_control"], _slurm_words(bed), _count(bed)) for bed in up_now
    ]
    parts: list[Table | str] = [Table("Test beds", columns, rows, left=4) if rows else "no test bed is up"]
    for bed_name, found in checks.items():
        parts += [Table(f"Check of '{bed_name}'", CHECK_COLUMNS, check_rows(found)), *check_words(found)]
    records = [_described(bed) | ({"check": checks[bed.name].as_json()} if check else {}) for bed in up_now]
    bad = [bed_name for bed_name, found in checks.items() if not found.ok]
    return Shown(parts, records, problem=f"not fit for measurements: {', '.join(bad)}" if bad else "")


@command("testbed down --all", parent=testbed)
def down(
    name: str | None = _ANY_NAME,
    all_beds: bool = flag(),
) -> None:
    """Ends the processes on a test bed, if it exists, and removes it."""
    if all_beds and name is not None:
        raise UsageError("give --name or --all, not both")
    chosen = beds.names() if all_beds else [name or beds.USUAL_NAME]
    removed = sum(beds.down(bed) for bed in chosen)
    left = "" if removed or not beds.names() else f"; up: {', '.join(beds.names())}"
    click.echo(f"{removed} namespaces removed" if removed else f"nothing to remove{left}")


_PROGRAM_FOLLOWS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@command("testbed run --procs 8 -- ./my_program", parent=testbed, context_settings=_PROGRAM_FOLLOWS)
def run(
    name: str = _NAME,
    procs: int | None = options.process_count(),
    login: bool = flag(),
    words: Sequence[str] = argument(click.UNPROCESSED, nargs=-1, metavar="PROGRAM [ARGUMENTS]..."),
) -> None:
    """Runs an MPI program on a test bed, by srun if the bed has Slurm.

    With --login it runs a command, such as sbatch, on the login node instead.
    """
    bed = beds.running(name)
    if login:
        refuse_options(["procs"], "programs that start on the nodes, not for --login")
        _log_in(bed, words)
    if not words:
        raise UsageError("PROGRAM: name an MPI program")
    found = shutil.which(program := words[0])
    if found is None:
        raise UsageError(f"PROGRAM: '{program}' is neither an executable file nor a program on the PATH")
    procs = procs or bed.shape.nodes * bed.shape.ranks_per_node
    path = str(Path(found).absolute())
    if bed.slurm:
        ended = batch.run(bed, procs, [path, *words[1:]], on_line=click.echo)
    else:
        ended = TestBed(bed).run(path, procs, words[1:], on_line=click.echo)
    if ended.returncode != 0:
        raise CollwiseError(f"{program}: {ended.problem}")


def _log_in(bed: beds.Bed, words: Sequence[str]) -> NoReturn:
    """Replaces this process by a command, or a shell, on the login node."""
    if not bed.slurm:
        raise UsageError(f"test bed '{bed.name}' has no Slurm; make one that has it with 'collwise testbed up --slurm'")
    command = batch.on_login(bed, words or [os.environ.get("SHELL", "/bin/sh")])
    sys.stdout.flush()
    os.execvp(command[0], command)


@command("testbed power --off n3", parent=testbed)
def power(
    name: str = _NAME,
    on: bool = option(default=None, required=True, is_flag=True),
    node: str = argument(),
) -> None:
    """Switches a node of a test bed off, as in a failure, or on again."""
    bed = beds.running(name)
    known = [f"n{number}" for number in bed.nodes]
    if node not in known:
        raise unknown_name("node", node, known)
    number = known.index(node) + 1
    if on:
        beds.switch_on(bed, number)
        click.echo(f"{node} is on")
    else:
        click.echo(f"{node} is off; {counted(beds.switch_off(bed, number), 'running program')} ended")


def _count(bed: beds.Bed) -> int:
    return len(processes(bed.namespaces))


def _slurm_words(bed: beds.Bed) -> str:
    """'4 idle, no jobs' or '3 allocated, 1 down, 2 jobs'; '-' without Slurm."""
    if not bed.slurm:
        return "-"
    try:
        states, jobs = Counter(batch.node_states(bed).values()), batch.jobs(bed)
    except CollwiseError:
        return "does not answer"
    nodes = [f"{count} {state}" for state, count in sorted(states.items())]
    return ", ".join([*nodes, counted(len(jobs), "job") if jobs else "no jobs"])


def _words(shape: Shape) -> str:
    ranks = f", {shape.ranks_per_node} ranks each" if shape.ranks_per_node > 1 else ""
    uplink = f", 2 switches with {format_rate(shape.uplink_bits_per_second)} between" if shape.switches == 2 else ""
    rate, buffer = format_rate(shape.bits_per_second), format_size(shape.buffer_bytes)
    return f"{shape.nodes} nodes at {rate}{ranks}, buffers of {buffer}{uplink}"


def _described(bed: beds.Bed) -> dict[str, Any]:
    described = {"name": bed.name, "shape": asdict(bed.shape), "facts": dict(bed.facts), "processes": _count(bed)}
    if bed.slurm:
        described["slurm"] = {"nodes": batch.node_states(bed), "jobs": [asdict(job) for job in batch.jobs(bed)]}
    return described
