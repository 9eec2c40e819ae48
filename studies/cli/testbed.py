"""collwise testbed: up, status, down, run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.units import format_size
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.options import SIZE, FiniteRange, NamedChoice, json_option, parsed, print_json
from collwise.studies.cli.tables import stdout_console, table
from collwise.studies.reports.testbed_check import COLUMNS, check_rows, check_words
from collwise.validation.testbed import bed as beds
from collwise.validation.testbed.check import Check
from collwise.validation.testbed.check import check as check_bed
from collwise.validation.testbed.namespaces import processes
from collwise.validation.testbed.shape import MOST_NODES, TRANSPORTS, Shape, format_rate, parse_rate
from collwise.validation.testbed.target import TestBed

RATE = parsed("rate", parse_rate)
_USUAL = Shape()

_name_option = click.option("--name", default=beds.USUAL_NAME, show_default=True, help="Several beds can be up.")


@click.group(cls=CommandGroup, epilog=example("testbed up --nodes 8 --rate 100Mbit"))
def testbed() -> None:
    """A cluster in this machine: real MPI over a real TCP network of limited rate, made of network namespaces.

    Needs Linux and the right to make namespaces.
    """


@testbed.command(epilog=example("testbed up --nodes 8 --rate 100Mbit"))
@_name_option
@click.option("--nodes", type=click.IntRange(2, MOST_NODES), default=_USUAL.nodes, show_default=True)
@click.option(
    "--rate",
    "bits_per_second",
    type=RATE,
    default=_USUAL.bits_per_second,
    show_default=format_rate(_USUAL.bits_per_second),
    help="Rate of each port, in both directions.",
)
@click.option(
    "--buffer",
    "buffer_bytes",
    type=SIZE,
    default=_USUAL.buffer_bytes,
    show_default=f"{_USUAL.buffer_bytes} B",
    help="Queue of each port of a switch.",
)
@click.option(
    "--burst",
    "burst_bytes",
    type=SIZE,
    default=_USUAL.burst_bytes,
    show_default=f"{_USUAL.burst_bytes} B",
    help="Token-bucket burst.",
)
@click.option("--ranks-per-node", type=click.IntRange(1, 64), default=1, show_default=True)
@click.option("--congestion-control", default=_USUAL.congestion_control, show_default=True, help="TCP's, in the nodes.")
@click.option(
    "--host-queue",
    "host_queue_bytes",
    type=SIZE,
    default=_USUAL.host_queue_bytes,
    show_default=f"{_USUAL.host_queue_bytes} B",
    help="Limit of a connection's data in a node's own queue.",
)
@click.option("--switches", type=click.IntRange(1, 2), default=1, show_default=True)
@click.option("--uplink-rate", type=RATE, help="Rate of the link between two switches; each has half of the nodes.")
@click.option(
    "--transport",
    type=NamedChoice("transport", TRANSPORTS),
    default=_USUAL.transport,
    show_default=True,
    help="Settings of Open MPI: 'default' its own, 'steady' no puts and send buffers that do not grow.",
)
@json_option
def up(name: str, uplink_rate: float | None, as_json: bool, **values: Any) -> None:
    """Makes a test bed; replaces one of that name.

    The default rate leaves two processors room for the MPI processes; 'testbed status --check' says whether it does.
    """
    if (values["switches"] == 2) != (uplink_rate is not None):
        raise UsageError("--switches 2 and --uplink-rate go together")
    shape = Shape(**values, uplink_bits_per_second=uplink_rate or 0.0)
    bed = beds.up(shape, name)
    if as_json:
        print_json(_described(bed))
        return
    click.echo(f"test bed '{name}' is up: {_words(shape)}")
    if (used := bed.facts["congestion_control"]) != shape.congestion_control:
        click.echo(f"collwise: {shape.congestion_control} is not permitted here, the nodes use {used}", err=True)


@testbed.command(epilog=example("testbed status --check"))
@click.option("--name", help="One test bed. Default: all that are up.")
@click.option("--check", is_flag=True, help="Measure whether the network is the bottleneck; takes 10 to 20 s per bed.")
@json_option
def status(name: str | None, check: bool, as_json: bool) -> None:
    """The test beds that are up."""
    up_now = [beds.running(name)] if name is not None else beds.all_running()
    checks = {bed.name: check_bed(bed) for bed in up_now} if check else {}
    if as_json:
        print_json([_described(bed) | _checked(checks.get(bed.name)) for bed in up_now])
    elif not up_now:
        click.echo("no test bed is up")
    else:
        rows = [
            (bed.name, _words(bed.shape), bed.facts["congestion_control"], len(processes(bed.namespaces)))
            for bed in up_now
        ]
        stdout_console().print(table("Test beds", ["name", "shape", "TCP", "processes inside"], rows, left=3))
        for bed_name, found in checks.items():
            _print_check(bed_name, found)
    if bad := [bed_name for bed_name, found in checks.items() if not found.ok]:
        raise CollwiseError(f"not fit for measurements: {', '.join(bad)}")


@testbed.command(epilog=example("testbed down --all"))
@click.option("--name", help="Several beds can be up.  [default: bed]")
@click.option("--all", "all_beds", is_flag=True, help="Every test bed, also half-made ones.")
def down(name: str | None, all_beds: bool) -> None:
    """Ends the processes on a test bed and removes it; it is no error if there is none."""
    if all_beds and name is not None:
        raise UsageError("--name is for one test bed, --all for all")
    chosen = beds.names() if all_beds else [name or beds.USUAL_NAME]
    removed = sum(beds.down(one) for one in chosen)
    left = "" if removed or not beds.names() else f"; up: {', '.join(beds.names())}"
    click.echo(f"{removed} namespaces removed" if removed else f"nothing to remove{left}")


@testbed.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=example("testbed run --procs 8 -- ./my_program"),
)
@_name_option
@click.option("--procs", type=click.IntRange(1), help="Default: as many as there is room for.")
@click.option("--time-limit", type=FiniteRange(0, min_open=True), help="Seconds. Default: none.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(name: str, procs: int | None, time_limit: float | None, program: str, arguments: Sequence[str]) -> None:
    """Runs an Open MPI program on a test bed: collwise testbed run -- PROGRAM ARGUMENTS."""
    bed = beds.running(name)
    target = TestBed(bed)
    ended = target.run(
        _program(program),
        procs or bed.shape.nodes * bed.shape.ranks_per_node,
        arguments,
        timeout_seconds=time_limit,
        on_line=click.echo,
    )
    if ended.returncode != 0:
        raise CollwiseError(f"{program}: {ended.problem}")


def _program(name: str) -> str:
    """Its path. Raises UsageError when there is no such program."""
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"PROGRAM: '{name}' is no file that can be run, nor a program on the path")
    return str(Path(found).absolute())


def _words(shape: Shape) -> str:
    ranks = f", {shape.ranks_per_node} ranks each" if shape.ranks_per_node > 1 else ""
    uplink = f", 2 switches with {format_rate(shape.uplink_bits_per_second)} between" if shape.switches == 2 else ""
    rate, buffer = format_rate(shape.bits_per_second), format_size(shape.buffer_bytes)
    return f"{shape.nodes} nodes at {rate}{ranks}, buffers of {buffer}{uplink}"


def _described(bed: beds.Bed) -> dict[str, Any]:
    inside = len(processes(bed.namespaces))
    return {"name": bed.name, "shape": asdict(bed.shape), "facts": dict(bed.facts), "processes": inside}


def _checked(found: Check | None) -> dict[str, Any]:
    return {} if found is None else {"check": found.as_json()}


def _print_check(name: str, found: Check) -> None:
    stdout_console().print(table(f"Check of '{name}'", COLUMNS, check_rows(found)))
    click.echo("\n".join(check_words(found)))
