"""collwise platforms: list, show, check, write, calibrate."""

from __future__ import annotations

from pathlib import Path

import click

from collwise.common.errors import CollwiseError
from collwise.common.files import write_text
from collwise.platforms import HostPlatform, Platform, check_file, known, load, load_description, write_description
from collwise.studies.commands.shared import PLATFORM, json_option, print_json, stdout_console, table


@click.group()
def platforms() -> None:
    """The clusters that are described here, and checks of your own."""


@platforms.command("list")
@json_option
def list_platforms(as_json: bool) -> None:
    """The known platforms."""
    described = [load_description(name) for name in known()]
    if as_json:
        print_json([_facts(platform) for platform in described])
        return
    rows = [
        (
            platform.name,
            platform.title,
            platform.nodes,
            platform.cpus_per_node,
            f"{platform.link_bytes_per_second * platform.links_per_node * 8e-9:g} Gbit/s",
            f"{platform.link_latency_seconds * 1e6:g} us",
        )
        for platform in described
    ]
    stdout_console().print(table("Platforms", ["name", "cluster", "nodes", "CPUs", "link", "latency"], rows, left=2))


@platforms.command("show")
@click.argument("platform", type=PLATFORM)
@json_option
def show(platform: HostPlatform, as_json: bool) -> None:
    """A platform's description with its sources; PLATFORM is a name or a file."""
    if as_json:
        print_json(_facts(platform))
    elif isinstance(platform, Platform):
        click.echo(write_description(platform), nl=False)
    else:
        click.echo(platform.xml_text(), nl=False)


@platforms.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def check(file: Path, as_json: bool) -> None:
    """Checks a platform FILE (.toml or .xml): its form, then a dry run in SimGrid.

    Exit code 0 if it is sound, 1 if something in it is not.
    """
    report = check_file(file)
    problems = list(report.problems)
    engine_label = ""
    if report.ok:
        engine_label, engine_problem = _dry_run(load(str(file)))
        problems += [f"{file}: {engine_label}: {engine_problem}"] if engine_problem else []
    if as_json:
        print_json({"file": str(file), "hosts": len(report.hosts), "engine": engine_label, "problems": problems})
    else:
        for problem in problems:
            click.echo(problem)
        if not problems:
            click.echo(f"{file}: sound, {len(report.hosts)} hosts, simulated by {engine_label}")
    if problems:
        raise CollwiseError(f"{file}: {len(problems)} problem{'s' if len(problems) > 1 else ''} found")


@platforms.command("write")
@click.argument("platform", type=PLATFORM)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The XML file. Default: standard output.")
def write(platform: HostPlatform, output: Path | None) -> None:
    """Writes the platform XML that SimGrid 3.32 to 4.1 read."""
    if output is None:
        click.echo(platform.xml_text(), nl=False)
    else:
        write_text(output, platform.xml_text())
        click.echo(f"{output}: {len(platform.hosts)} hosts")


@platforms.command("calibrate")
@click.argument("name")
@click.option("--procs", type=click.IntRange(2), help="P of the gather experiments. Default: the paper's, 40 and 124.")
@click.option("--ppn", type=click.IntRange(1), help="Processes per node. Default: one per CPU.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the calibrated description here.")
@json_option
def calibrate(name: str, procs: int | None, ppn: int | None, output: Path | None, as_json: bool) -> None:
    """Calibrates NAME against its published figures and says how well each is met."""
    from collwise.validation.calibration import PAPER_GATHER_PROCS
    from collwise.validation.calibration import calibrate as run_calibration

    platform = load_description(name)
    ppn = ppn or platform.default_processes_per_node
    procs = procs or PAPER_GATHER_PROCS.get(platform.name, platform.max_procs(ppn) // 2)
    calibrated, targets = run_calibration(platform, procs, ppn)
    if as_json:
        print_json([vars(target) | {"relative_error": target.relative_error} for target in targets])
    else:
        rows = [
            (t.name, f"{t.published:.4g}", f"{t.simulated:.4g}", f"{t.relative_error * 100:+.1f} %") for t in targets
        ]
        title = f"{platform.title}: published figures and the calibrated simulation (gather times in seconds)"
        stdout_console().print(table(title, ["figure", "published", "simulated", "error"], rows))
    if output is not None:
        write_text(output, write_description(calibrated))


def _facts(platform: HostPlatform) -> dict[str, object]:
    facts: dict[str, object] = {
        "name": platform.name,
        "title": platform.title,
        "hosts": len(platform.hosts),
        "default_processes_per_node": platform.default_processes_per_node,
        "digest": platform.digest(),
    }
    if isinstance(platform, Platform):
        facts |= {
            "cpus_per_node": platform.cpus_per_node,
            "link_bytes_per_second": platform.link_bytes_per_second * platform.links_per_node,
            "link_latency_seconds": platform.link_latency_seconds,
        }
    return facts


def _dry_run(platform: HostPlatform) -> tuple[str, str]:
    """The engine and what it says of the platform when two processes exchange a message; '' if nothing."""
    import tempfile

    from collwise.simulator.store import Case, Store
    from collwise.simulator.sweep import simulate

    case = Case("-", "-", min(2, len(platform.hosts)), 1024, experiment="roundtrip")
    with tempfile.TemporaryDirectory() as directory, Store(Path(directory, "check.sqlite")) as store:
        result = simulate(platform, [case], store)
    return result.configuration.maker, result.timings[case].error.partition(": ")[2]
