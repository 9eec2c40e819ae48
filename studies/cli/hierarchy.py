"""collwise hierarchy: the tasks of hierarchical collectives, their cost model, and autotuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collwise import targets
from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.common.units import format_seconds, format_size
from collwise.platforms import HostPlatform
from collwise.simulator.sweeps.method import Method
from collwise.studies.cli import declare, options, target_options, types
from collwise.studies.cli.commands import CommandGroup, example
from collwise.studies.cli.declare import command, group, option
from collwise.studies.cli.options import MEASURING
from collwise.studies.cli.output import check_pictures, print_json, print_table, write_figure
from collwise.studies.cli.types import COUNTS, NAMES, NEW_FILE, SIZES
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.select.decisions import decisions_text

if TYPE_CHECKING:
    from collwise.hierarchy import MachineOptions
    from collwise.validation.hierarchy.overlap import TaskStudy
    from collwise.validation.hierarchy.space import Input
    from collwise.validation.hierarchy.tuning import SearchScore, Tuning
    from collwise.validation.select.decisions import DecisionTable


@click.group(cls=CommandGroup, epilog=example("hierarchy tasks --platform stampede2 --nodes 6 --ppn 12"))
def hierarchy() -> None:
    """Hierarchical collectives made of tasks, as HAN's: times of tasks, a cost model from these, and autotuning."""


@dataclass(frozen=True)
class _Machine:
    """The options that say on which machine tasks and collectives are timed."""

    platform: HostPlatform | None
    where: targets.TargetOptions
    method: Method
    simulation: options.SimulationOptions

    def options(self, ppn: Sequence[int] | None) -> MachineOptions:
        """The options as `collwise.time_tasks` and its neighbours take them.

        Raises UsageError where neither a platform nor a target is named.
        """
        from collwise.hierarchy import MachineOptions

        if not self.where.named:
            targets.refuse_target_details(self.where)
            if self.platform is None:
                raise UsageError("name --platform, or a target with --library, --hosts, --launcher or --testbed")
            declare.refuse_options(MEASURING, f"measured times ({targets.TARGET_OPTIONS})")
            return MachineOptions(self.platform)
        one = ppn[0] if ppn is not None and len(ppn) == 1 else None
        details = self.where.hosts is not None or self.where.testbed is not None or self.where.launcher is not None
        return MachineOptions(
            self.platform, targets.target_from(replace(self.where, ppn=one if details else None)), self.method
        )


_MACHINE = group(
    _Machine,
    platform=option(types.PLATFORM),
    where=target_options.TARGET_WITHOUT_PPN,
    method=options.METHOD,
    simulation=options.SIMULATION,
)
_COLLECTIVE = option(default="bcast")
_TASKS = option(click.IntRange(2, 64), 8)


def _space(segments: str, **sizes: Any) -> Any:
    """The options of a space of configurations: the default segment sizes, and --sizes where a command has it."""
    return group(
        dict,
        nodes=option(COUNTS),
        ppn=option(COUNTS),
        **sizes,
        segments=option(SIZES, segments),
        algorithms=option(NAMES, "chain,binary,binomial"),
        within=option(NAMES, "point-to-point"),
        pieces=option(SIZES, "0"),
    )


@command("hierarchy tasks --platform stampede2 --nodes 6 --ppn 12 --engine schedule", parent=hierarchy)
def tasks(
    machine: _Machine = _MACHINE,
    collective: str = _COLLECTIVE,
    space: dict[str, Any] = _space("64KiB"),
    number: int = _TASKS,
    leader: int = option(click.IntRange(0), 2),
    draw_trend: Path | None = option(NEW_FILE),
    draw_overlap: Path | None = option(NEW_FILE),
    as_json: bool = options.JSON,
) -> None:
    """Times the tasks of a hierarchical collective on each node's leader, in a pipeline and alone.

    A task is what a leader does between two waits, such as sbib(3): it broadcasts segment 2 within its node and
    segment 3 to other nodes. Each is timed after those before it, so that it starts when it would. Its stabilised cost
    is the mean of the later ones. The overlap says how much of the shorter part is hidden behind the longer one if both
    run at once.
    """
    from collwise.hierarchy import space_of
    from collwise.validation.hierarchy.overlap import study_tasks
    from collwise.validation.hierarchy.space import label

    check_pictures(draw_trend=draw_trend, draw_overlap=draw_overlap)
    how = machine.options(space["ppn"])
    if any(len(space[name] or (1,)) > 1 for name in ("nodes", "ppn")):
        raise UsageError("--nodes and --ppn take one number here")
    if "by-socket" in space["within"] and len(space["within"]) > 1:
        raise UsageError("--within: by-socket has other tasks than other ways (valid: by-socket alone)")
    asked = space_of(collective, how, sizes=max(space["segments"]), **space)
    with machine.simulation.context() as context, how.timers(context) as machines:
        studies = study_tasks(list(asked.points()), machines.timer, number)
    leader = min(leader, len(studies[0].times.seconds) - 1)
    drawn = [path for path in (draw_trend, draw_overlap) if path is not None]
    if drawn:
        from collwise.studies.figures.hierarchy import task_overlap, task_trend

        title = f"{collective}, {asked.nodes[0]} nodes x {asked.processes_per_node[0]}"
        if draw_trend is not None:
            write_figure(task_trend(studies, leader, title), draw_trend)
        if draw_overlap is not None:
            write_figure(task_overlap(studies, title), draw_overlap)
    for path in drawn:
        click.echo(f"written: {path}", err=True)
    if as_json:
        print_json([_task_record(study) for study in studies])
        return
    where = f"{asked.nodes[0]} nodes x {asked.processes_per_node[0]}, {machines.maker}"
    heads = ["configuration", *studies[0].probes, "stabilised", "overlap"]
    rows = [
        (
            label(study.point.choice),
            *(format_seconds(float(seconds.max())) for seconds in study.probes.values()),
            format_seconds(float(study.stable_seconds.max())),
            f"{study.overlap:.0%}",
        )
        for study in studies
    ]
    print_table(f"{collective}, {where}: parts of tasks, slowest leader", heads, rows)
    heads = ["task", *(label(study.point.choice) for study in studies)]
    trend = [
        (name, *(format_seconds(float(study.times.seconds[leader, at])) for study in studies))
        for at, name in enumerate(studies[0].times.names)
    ]
    starts = [study.stable_from(leader) for study in studies]
    trend.append(("stable from", *("-" if start is None else str(start) for start in starts)))
    print_table(f"tasks one after another on leader {leader}", heads, trend)


def _task_record(study: TaskStudy) -> dict[str, Any]:
    return {
        **vars(study.point.choice),
        **vars(study.point.input),
        "tasks": study.times.names,
        "seconds": study.times.seconds.tolist(),
        "stabilised_seconds": study.stable_seconds.tolist(),
        "alone_and_at_once": {name: seconds.tolist() for name, seconds in study.probes.items()},
        "overlap": study.overlap,
    }


@command("hierarchy model --platform stampede2 --nodes 6 --ppn 12 --sizes 4MiB --engine schedule", parent=hierarchy)
def model(
    machine: _Machine = _MACHINE,
    collective: str = _COLLECTIVE,
    space: dict[str, Any] = _space("16KiB:1MiB:x4", sizes=option(SIZES, "4MiB")),
    number: int = _TASKS,
    draw: Path | None = option(NEW_FILE),
    as_json: bool = options.JSON,
) -> None:
    """Compares the cost model of tasks with the times of whole collectives.

    The model computes the time of a collective of any size from the times of its tasks: equations (3) and (4) of Luo et
    al. 2020. The command shows its errors, and whether the configuration that it takes for the best one is.
    """
    from collwise.hierarchy import space_of
    from collwise.validation.hierarchy.space import label
    from collwise.validation.hierarchy.tuning import check_model

    check_pictures(draw=draw)
    how = machine.options(space["ppn"])
    asked = space_of(collective, how, **space)
    with machine.simulation.context() as context, how.timers(context) as machines:
        check = check_model(asked, machines.timer, number)
    if draw is not None:
        from collwise.studies.figures.hierarchy import model_by_configuration

        largest = asked.inputs[-1]
        title = f"{collective} of {format_size(largest.message_bytes)}, {_place(largest)}, {machines.maker}"
        write_figure(model_by_configuration(check, largest, title), draw)
        click.echo(f"written: {draw}", err=True)
    if as_json:
        records = [
            {
                **vars(point.input),
                **vars(point.choice),
                "modelled_seconds": check.modelled[point],
                "measured_seconds": measured,
            }
            for point, measured in check.measured.items()
        ]
        costs = {"model_machine_seconds": check.modelled_cost, "whole_machine_seconds": check.measured_cost}
        print_json(records, {"median_error": check.median_error, **costs})
        return
    rows = [
        (*_columns(point.input), label(point.choice), *map(format_seconds, (check.modelled[point], measured)),
         f"{check.errors[point]:+.1%}")
        for point, measured in check.measured.items()
    ]  # fmt: skip
    heads = ("n", "p", "m", "configuration", "cost model", "whole", "error")
    print_table(f"{collective}: the cost model of tasks and whole collectives, {machines.maker}", heads, rows, 4)
    picks = [
        (*_columns(one), label(pick.choice), label(best.choice), f"{cost:.1%}")
        for one, (pick, best, cost) in check.picks.items()
    ]
    print_table("picks", ("n", "p", "m", "by the model", "the best", "slowdown"), picks, 5)
    click.echo(
        f"median error {check.median_error:.1%}; machine time of the tasks {format_seconds(check.modelled_cost)}, "
        f"of the whole collectives {format_seconds(check.measured_cost)}"
    )


def _columns(one: Input) -> tuple[int, int, str]:
    return one.nodes, one.processes_per_node, format_size(one.message_bytes)


def _place(one: Input) -> str:
    return f"{one.nodes} nodes x {one.processes_per_node} processes"


@command(
    "hierarchy tune --platform stampede2 --nodes 8 --ppn 4 --sizes 64KiB,1MiB --engine schedule --search tasks",
    parent=hierarchy,
)
def tune(
    machine: _Machine = _MACHINE,
    collectives: Sequence[str] = option(NAMES, "bcast"),
    space: dict[str, Any] = _space("16KiB:1MiB:x4", sizes=option(SIZES, "4KiB:4MiB:x4")),
    searches: Sequence[str] = option(NAMES, "predict"),
    budget: float = option(types.FiniteRange(0, 100, min_open=True), 2.0),
    drawn: int | None = option(click.IntRange(min=0)),
    output: Path | None = option(NEW_FILE),
    table: Path | None = option(NEW_FILE),
    han: Path | None = option(NEW_FILE),
    openmpi_version: str = option(default="4.1"),
    draw: Path | None = option(NEW_FILE),
    draw_costs: Path | None = option(NEW_FILE),
    as_json: bool = options.JSON,
) -> None:
    """Finds the best configuration of hierarchical collectives for each n, p and m, by few benchmarks or many.

    The searches are those of Luo et al. 2020, and one that predicts all configurations by the schedule engine and
    times those that decide. Times are in the store, so that a stopped command resumes. The machine time of a search is
    what its benchmarks would take on the machine; beside the exhaustive search the command shows what the choices of
    the others cost. Between the sampled sizes the choice changes where both would take equally long.
    """
    from collwise.hierarchy import check_searches, space_of
    from collwise.validation.hierarchy.searches import EXHAUSTIVE, SEARCHES
    from collwise.validation.hierarchy.tuning import decision_tables
    from collwise.validation.hierarchy.tuning import tune as search
    from collwise.validation.libraries.han_rules import han_version

    check_pictures(draw=draw, draw_costs=draw_costs)
    names = SEARCHES if tuple(searches) == ("all",) else tuple(searches)
    if han is not None:
        han_version(openmpi_version)
    if draw is not None and EXHAUSTIVE not in names:
        raise UsageError("--draw needs the exhaustive search: --search exhaustive,...")
    how = replace(machine.options(space["ppn"]), drawn=drawn)
    tunings: dict[str, Tuning] = {}
    with machine.simulation.context() as context:
        check_searches(names, how, context)
        spaces = {name: space_of(name, how, **space) for name in collectives}
        with how.timers(context) as machines:
            for name, asked in spaces.items():
                tunings[name] = search(asked, names, machines.timer, machines.predict, budget / 100, machines.true)
    title = how.target.name if how.target is not None else str(how.platform and how.platform.name)
    source = "simulated" if how.target is None else "measured"
    tables = [
        one
        for tuning in tunings.values()
        for one in decision_tables(tuning.space, tuning.found[names[-1]], title, machines.maker, source)
    ]
    _write(tunings, names[-1], tables, output, table, han, openmpi_version)
    _draw_tuning(tunings, draw, draw_costs, f"{title}, {machines.maker}")
    if as_json:
        print_json([_tuning_record(tuning) for tuning in tunings.values()])
        return
    for name, tuning in tunings.items():
        _print_decisions(name, tuning, names[-1], f"{title}, {machines.maker}")
    for name, tuning in tunings.items():
        _print_scores(name, tuning)


_OUTPUTS = ("fs", "imod", "smod", "ibalg", "iralg", "ibs", "irs")


def _decisions(tuning: Tuning, search: str) -> list[dict[str, Any]]:
    """What a search chose for each n, p and m, with the parameters that it stands for and its time."""
    from collwise.validation.hierarchy.space import Point, outputs

    collective, found = tuning.space.collective, tuning.found[search]
    seconds = found.seconds
    return [
        vars(one) | outputs(collective, choice) | vars(choice) | {"seconds": seconds[Point(collective, one, choice)]}
        for one, choice in found.best.items()
    ]


def _print_decisions(collective: str, tuning: Tuning, search: str, where: str) -> None:
    rows = []
    for made in _decisions(tuning, search):
        cells = [
            "-" if made[name] is None else format_size(int(made[name] or 0)) if name in ("fs", "ibs", "irs")
            else str(made[name])
            for name in _OUTPUTS
        ]  # fmt: skip
        place = (made["nodes"], made["processes_per_node"], format_size(made["message_bytes"]))
        rows.append((*place, *cells, format_seconds(made["seconds"])))
    print_table(f"{collective} on {where}, search {search}", ("n", "p", "m", *_OUTPUTS, "time"), rows, 0, keys=3)


def _print_scores(collective: str, tuning: Tuning) -> None:
    rows = [
        (one.search, one.benchmarks, format_seconds(one.machine_seconds), _percent(one.cost), *_slowdown_cells(one))
        for one in tuning.scores
    ]
    heads = ("search", "benchmarks", "machine time", "of exhaustive", "best found", "slowdown", "worst", "at")
    print_table(f"{collective}: what the searches cost, and what their choices cost", heads, rows, 1)
    if tuning.is_estimate:
        seconds = tuning.exhaustive_seconds
        known = f"estimated as {format_seconds(seconds)}" if seconds == seconds else "unknown"
        click.echo(f"The exhaustive search was not made; its machine time is {known}.")


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %" if share == share else "-"


def _slowdown_cells(one: SearchScore) -> tuple[str, ...]:
    if one.worst_at is None:
        return ("-", "-", "-", "-")
    at = f"{_place(one.worst_at)}, {format_size(one.worst_at.message_bytes)}" if one.worst > 0 else "-"
    return (f"{one.best_found} of {one.inputs}", _percent(one.mean), _percent(one.worst), at)


def _tuning_record(tuning: Tuning) -> dict[str, Any]:
    return {
        "collective": tuning.space.collective,
        "exhaustive_machine_seconds": tuning.exhaustive_seconds,
        "exhaustive_is_estimate": tuning.is_estimate,
        "searches": [asdict(one) for one in tuning.scores],
        "decisions": {search: _decisions(tuning, search) for search in tuning.found},
    }


def _write(
    tunings: dict[str, Tuning],
    search: str,
    tables: Sequence[DecisionTable],
    output: Path | None,
    table: Path | None,
    han: Path | None,
    openmpi_version: str,
) -> None:
    from collwise.validation.hierarchy.tuning import usual_choice
    from collwise.validation.libraries.han_rules import describe_usual, han_rules

    if output is not None:
        write_text(output, decisions_text(tables))
    if table is not None:
        write_text(table, collwise_rules(tables))
    written = [output, table, han]
    if han is not None:
        usual = {name: usual_choice(tuning.space, tuning.found[search]) for name, tuning in tunings.items()}
        rules = han_rules(tables, usual, str(han), openmpi_version)
        settings = types.checked_new_file(han.with_name(han.name + ".conf"))
        write_text(han, rules.text)
        write_text(settings, rules.parameters_text())
        written.append(settings)
        for name, choice in usual.items():
            click.echo(describe_usual(name, choice), err=True)
    for path in filter(None, written):
        click.echo(f"written: {path}", err=True)


def _draw_tuning(tunings: dict[str, Tuning], draw: Path | None, costs: Path | None, where: str) -> None:
    if draw is None and costs is None:
        return
    from collwise.studies.figures.hierarchy import search_costs, search_quality
    from collwise.validation.hierarchy.searches import EXHAUSTIVE
    from collwise.validation.hierarchy.tuning import spreads

    if costs is not None:
        write_figure(search_costs({name: tuning.scores for name, tuning in tunings.items()}, where), costs)
    if draw is not None:
        for name, tuning in tunings.items():
            truth = tuning.found[EXHAUSTIVE]
            others = [one for one in tuning.found.values() if one is not truth]
            place = tuning.space.inputs[-1].place
            title = f"{name}, {place[0]} nodes x {place[1]}, {where}"
            path = draw if len(tunings) == 1 else draw.with_stem(f"{draw.stem}-{name}")
            write_figure(search_quality(truth, spreads(truth), others, place, title), path)
    for path in filter(None, (draw, costs)):
        click.echo(f"written: {path}", err=True)
