"""collwise rank-mapping: the best place of each node in a binomial tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.studies.cli import options
from collwise.studies.cli.declare import command, flag, option
from collwise.studies.cli.output import print_json, print_table
from collwise.studies.cli.types import NEW_FILE, PATH, SIZES, NamedChoice
from collwise.studies.reports.markdown import percent
from collwise.validation import rank_mapping as mapped
from collwise.validation.times.defaults import SEGMENT_BYTES


@command("rank-mapping --platform hcl16 --collective gather --procs 4 --sizes 64KiB")
def rank_mapping(
    platform: HostPlatform = options.PLATFORM,
    collective: str = option(required=True, said={"mapped": " or ".join(mapped.COLLECTIVES)}),
    sizes: Sequence[int] = option(SIZES, "1KiB:64KiB:x4"),
    model: str = option(NamedChoice("model", mapped.MODELS), mapped.MODELS[0]),
    parameters: Path | None = option(PATH),
    procs: int | None = option(click.IntRange(2)),
    common: bool = flag(),
    output: Path | None = option(NEW_FILE),
    simulation: options.SimulationOptions = options.SIMULATION,
    as_json: bool = options.JSON,
) -> None:
    """Finds the mapping of nodes to ranks under which a binomial scatter or gather is predicted to be fastest.

    Rank 0 stays on the first node. The mapping is compared with the default one, ranks in the order of the nodes, by
    predicted and by simulated time.

    The file of -o has one host name per line, rank 0 first:

    \b
      Open MPI:  mpirun --map-by seq --hostfile FILE PROGRAM
      MPICH:     mpiexec -f FILE -ppn 1 PROGRAM
      Slurm:     SLURM_HOSTFILE=FILE srun --ntasks=P --distribution=arbitrary --cpu-bind=cores PROGRAM
    """
    from collwise.validation.fitting.models_by_name import model_of

    mapped.check_choice(collective, model)
    if sizes[0] < 1:
        raise UsageError("--sizes: blocks of 0 bytes need no mapping; the least is 1 B")
    if output is not None and len(sizes) > 1 and not common:
        raise UsageError(f"-o writes one mapping, and there are {len(sizes)} sizes: add --common, or give one size")
    count = procs or len(platform.hosts)
    platform.hosts_for(count, 1)
    with simulation.context() as context:
        fitted = model_of(model, parameters, platform, 1, [SEGMENT_BYTES], context)
        chosen = mapped.best_mappings(fitted, collective, count, sizes, common)
        gains = mapped.mapping_gains(platform, fitted, collective, count, chosen, context)
    if output is not None:
        write_text(output, "".join(f"{host}\n" for host in gains[0].hosts))
    if as_json:
        mappings = [
            asdict(gain) | {"predicted_gain": gain.predicted_gain, "simulated_gain": gain.simulated_gain}
            for gain in gains
        ]
        facts = {"platform": platform.name, "collective": collective, "model": model, "procs": count}
        print_json(mappings, facts)
        return
    title = f"binomial {collective} on {platform.name}, P = {count}: default and best mapping by {model}"
    columns = ["m", "predicted, default", "best", "saved", "simulated, default", "best", "saved", "nodes by rank"]
    print_table(title, columns, [_row(gain) for gain in gains], wrap=True)
    click.echo("nodes by rank: positions in the platform's order of hosts, from 0")
    if output is not None:
        click.echo(f"written: {output}")


def _row(gain: mapped.MappingGain) -> tuple[object, ...]:
    predicted = (format_seconds(gain.predicted_default_seconds), format_seconds(gain.predicted_seconds))
    simulated = (format_seconds(gain.simulated_default_seconds), format_seconds(gain.simulated_seconds))
    return (
        format_size(gain.message_bytes),
        *(*predicted, percent(gain.predicted_gain), *simulated, percent(gain.simulated_gain)),
        " ".join(map(str, gain.mapping)),
    )
