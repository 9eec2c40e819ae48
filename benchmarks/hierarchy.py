"""Tasks, the cost model and the searches of hierarchical collectives, with SMPI as the machine.

    .venv/bin/python benchmarks/hierarchy.py [--store FILE] [--markdown FILE] [--drawn N]

On a part of Stampede2, as in Luo et al. 2020: tasks on 6 nodes of 12 processes (figures 2, 3 and 6), the cost model and
all searches on 64 nodes of 12 processes (figures 4 and 7 to 9), the paper's searches in its range of sizes on the
schedule engine, and all searches there on N machines (10) that the description does not match. SMPI takes about half an
hour of one core, and each machine a minute; times are stored, by default in results/timings.sqlite, and are not made
again. --markdown writes a page, such as docs/hierarchy-results.md, and its figures into the folder `figures` beside it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

import collwise
from collwise.common.project import default_store_path
from collwise.common.units import format_seconds, format_size
from collwise.simulator.sweeps.context import SimulationContext
from collwise.studies.cli.output import print_table
from collwise.studies.figures.hierarchy import (
    model_by_configuration,
    search_costs,
    search_quality,
    task_overlap,
    task_trend,
)
from collwise.studies.figures.style import save
from collwise.studies.present.progress import sweep_progress
from collwise.studies.present.shown import Table
from collwise.studies.reports.markdown import markdown_table
from collwise.validation.hierarchy.drawn import DEVIATION, NOISE, OFF, REPETITIONS
from collwise.validation.hierarchy.space import EXHAUSTIVE, PREDICT, SEARCHES, label, segments_of
from collwise.validation.hierarchy.tuning import Tuning, slowdowns

PLATFORM = "stampede2"
TASKS = {"nodes": 6, "ppn": 12, "segments": "64KiB"}
PLACE = {"nodes": 64, "ppn": 12, "segments": "32KiB:2MiB:x4", "pieces": "0,32KiB"}
SIZES = {"bcast": "4KiB:4MiB:x2", "allreduce": "4KiB:2MiB:x2"}
LEADER = 2
ELSEWHERE = "shaheen-ii"
ELSEWHERE_PLACE = {"nodes": 16, "ppn": 8, "segments": "16KiB:1MiB:x4", "pieces": "0,16KiB", "sizes": "4KiB:2MiB:x2"}
ENGINE_SIZES = {"bcast": "4B:128MiB:x2", "allreduce": "4B:32MiB:x2"}
BY_ENGINE = tuple(name for name in SEARCHES if name != PREDICT)
Tunings = Mapping[str, Tuning]
"""The searches of each collective."""
NOTE = "<!-- Written by benchmarks/hierarchy.py; do not edit. -->\n"
SCORES = (
    "search",
    "benchmarks",
    "machine time",
    "of exhaustive",
    "best found",
    "slowdown: mean",
    "worst",
    "paper: cost",
)
PAPER = {
    "exhaustive": "100 %",
    "tasks": "23 %",
    "predict": "-",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, default=default_store_path())
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--drawn", type=int, default=10, metavar="N")
    given = parser.parse_args()
    with collwise.session(given.store, progress=sweep_progress) as context:
        by_smpi = tunings_of(context, SIZES, SEARCHES)
        sections = [*tasks_sections(context, given.markdown), *model_sections(context, given.markdown)]
        sections += [*search_sections(by_smpi, given.markdown), *elsewhere_sections(context)]
    with collwise.session(given.store, engine="schedule", progress=sweep_progress) as context:
        by_engine = tunings_of(context, ENGINE_SIZES, BY_ENGINE)
        drawn = [tunings_of(context, ENGINE_SIZES, SEARCHES, drawn=seed) for seed in range(1, given.drawn + 1)]
    sections = [summary(by_engine, drawn, by_smpi), *sections, *engine_sections(by_engine), drawn_section(drawn)]
    if given.markdown is not None:
        given.markdown.write_text(page(sections), encoding="utf-8")


def page(sections: Iterable[str]) -> str:
    head = (
        "# Hierarchical collectives: results\n\n"
        f"{NOTE}\n"
        "[hierarchy.md](hierarchy.md) explains what is shown. The machine is SMPI on `stampede2`, whose description "
        "says what is published and what is estimated; Luo et al. 2020 measured on 64 nodes with 12 processes each.\n\n"
    )
    return head + "\n".join(sections)


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    print_table(Table(title, heads, rows))
    return f"{title}\n\n{markdown_table(heads, rows)}\n"


def figure(markdown: Path | None, name: str, made: object, alt: str) -> str:
    if markdown is None:
        return ""
    save(made, markdown.parent / "figures" / f"{name}.png")  # type: ignore[arg-type]
    return f"![{alt}](figures/{name}.png)\n"


def tasks_sections(context: SimulationContext, markdown: Path | None) -> list[str]:
    place = f"{TASKS['nodes']} nodes of {TASKS['ppn']} processes, segments of 64 KiB"
    sections = ["## Tasks\n"]
    for collective in SIZES:
        studies = collwise.time_tasks(collective, platform=PLATFORM, context=context, **TASKS)  # type: ignore[arg-type]
        title = f"{collective}, {place}"
        heads = ["algorithm between nodes", *studies[0].probes, "stabilised", "stable from", "overlap"]
        rows = [
            (
                one.case.algorithm.removeprefix("tasks_"),
                *(format_seconds(float(seconds.max())) for seconds in one.probes.values()),
                format_seconds(float(one.stable_seconds.max())),
                "-" if (start := one.stable_from(LEADER)) is None else str(start),
                f"{one.overlap:.0%}",
            )
            for one in studies
        ]
        sections += [
            show(f"**{title}**, slowest leader:", heads, rows),
            figure(markdown, f"hierarchy-overlap-{collective}", task_overlap(studies, title), f"Overlap, {title}"),
            figure(markdown, f"hierarchy-trend-{collective}", task_trend(studies, LEADER, title), f"Trend, {title}"),
        ]
    return sections


def model_sections(context: SimulationContext, markdown: Path | None) -> list[str]:
    sections = ["## Cost model\n"]
    for collective, sizes in SIZES.items():
        check = collwise.search_tasks(
            collective, platform=PLATFORM, sizes=sizes, searches="exhaustive,tasks", context=context,
            **PLACE,  # type: ignore[arg-type]
        )[collective]  # fmt: skip
        whole, modelled = check.found.values()
        errors = sorted(abs(modelled.seconds[case] / seconds - 1) for case, seconds in whole.seconds.items())
        rows = [
            (format_size(one.message_bytes), label(modelled.best[one]), label(whole.best[one]), f"{cost:.1%}")
            for one, cost in slowdowns(modelled, whole).items()
        ]
        largest = check.space.inputs[-1]
        title = f"{collective} of {format_size(largest.message_bytes)}, 64 nodes x 12, SMPI"
        sections += [
            f"**{collective}**: of {len(errors)} configurations the median error is {np.median(errors):.1%}, "
            f"the 90th percentile {errors[math.ceil(0.9 * len(errors)) - 1]:.1%}, the largest {errors[-1]:.1%}.\n",
            show(f"{collective}: picks of the cost model", ("m", "the model's pick", "the best", "slowdown"), rows),
            figure(markdown, f"hierarchy-model-{collective}", model_by_configuration(check, largest, title), title),
        ]
    return sections


def tunings_of(
    context: SimulationContext, sizes: Mapping[str, str], searches: Sequence[str], drawn: int | None = None
) -> Tunings:
    return {
        collective: collwise.search_tasks(
            collective, platform=PLATFORM, sizes=of_collective, searches=searches, drawn=drawn, context=context,
            **PLACE,  # type: ignore[arg-type]
        )[collective]
        for collective, of_collective in sizes.items()
    }  # fmt: skip


def search_sections(tunings: Tunings, markdown: Path | None) -> list[str]:
    sections = ["## Searches\n"]
    for collective, tuning in tunings.items():
        title = f"{collective}, 64 nodes x 12, SMPI"
        quality = search_quality(tuning, tuning.space.inputs[-1].place, title)
        sections += [
            scores_of(collective, tuning),
            figure(markdown, f"hierarchy-searches-{collective}", quality, title),
        ]
    costs = search_costs(tunings, "64 nodes x 12, SMPI")
    drawn = figure(markdown, "hierarchy-costs", costs, "Machine time of the searches")
    return [*sections, together(tunings), drawn, costs_by_segment(tunings)]


def summary(by_engine: Tunings, drawn: Sequence[Tunings], by_smpi: Tunings) -> str:
    """The cost of each search of both collectives and the mean slowdown of its choices, beside the paper's cost."""
    rows = []
    for name in SEARCHES:
        cells = []
        for machines in ([by_engine], drawn, [by_smpi]):
            found = [shares(one.values(), name) for one in machines]
            cells += [f"{np.median(of_machines):.2f} %" for of_machines in zip(*found, strict=True)] or ["-", "-"]
        rows.append((name, PAPER[name], *("-" if cell.startswith("nan") else cell for cell in cells)))
    text = (
        "## Beside the paper\n\n"
        "What a search of broadcast and allreduce together costs relative to the exhaustive one, and how much slower "
        "its choices are than the best on average. The paper's shares are to be compared with those over its range of "
        "sizes, 4 B to 128 MiB (allreduce here: to 32 MiB), where the schedule engine is the machine. `predict` "
        f"predicts by the engine, and would predict itself there; it is to be judged on the {len(drawn)} machines that "
        "the description does not match, of which the medians are shown. SMPI can simulate messages of up to 4 MiB "
        "(allreduce: 2 MiB), which have few segments: tasks of long segments then cost nearly as much as whole "
        "collectives ([hierarchy.md](hierarchy.md#searches)).\n\n"
    )
    heads = ["search", "paper: cost"]
    for machine in ("paper's range", "machines not as described", "SMPI's range"):
        heads += [f"{machine}: cost", "mean slowdown"]
    return text + show("**Costs and slowdowns, 64 nodes of 12 processes**", heads, rows)


def shares(tunings: Iterable[Tuning], search: str) -> tuple[float, float]:
    """A search's cost and the mean slowdown of its choices, for several collectives together, in percent."""
    found = [(one, score) for one in tunings for score in one.scores if score.search == search]
    if not found:
        return math.nan, math.nan
    cost = sum(score.machine_seconds for _, score in found) / sum(one.exhaustive_seconds for one, _ in found)
    slowdown = sum(score.mean * score.inputs for _, score in found) / sum(score.inputs for _, score in found)
    return 100 * cost, 100 * slowdown


def drawn_section(drawn: Sequence[Tunings]) -> str:
    """The searches on machines of several seeds: medians over these, and the least and the greatest value."""
    text = (
        "## Machines that the description does not match\n\n"
        f"The machines of the seeds 1 to {len(drawn)}, over the same range of sizes "
        "([hierarchy.md](hierarchy.md#machines-not-as-described)). Each number of the description is off by a factor "
        f"of up to {OFF}, some machines have other rules of the network, each configuration is slower or faster by "
        f"{100 * DEVIATION:g} % (one standard deviation), and each of the {REPETITIONS} repetitions of a benchmark "
        f"varies by {100 * NOISE:g} %. `predict` sees the description. Slowdowns are by true times, so that even the "
        "exhaustive search loses a little. Shown are medians over the machines, with the least and the greatest; the "
        "worst slowdown is that of any input on any machine. The constants of `predict` were set on the machine of the "
        "seed 101 alone, with five draws of the configurations' deviations.\n\n"
    )
    collectives = list(drawn[0])
    rows = []
    for title, members in (*((name, [name]) for name in collectives), ("both", collectives)):
        for search in SEARCHES:
            found = [shares((one[name] for name in members), search) for one in drawn]
            worst = max(
                score.worst for one in drawn for name in members for score in one[name].scores if score.search == search
            )
            cells = (f"{np.median(one):.2f} % ({min(one):.2f} to {max(one):.2f})" for one in zip(*found, strict=True))
            rows.append((title, search, *cells, f"{100 * worst:.1f} %"))
    heads = ("collective", "search", "cost", "mean slowdown", "worst slowdown")
    return text + show(f"**{len(drawn)} machines, 64 nodes of 12 processes**", heads, rows)


def elsewhere_sections(context: SimulationContext) -> list[str]:
    where = f"{ELSEWHERE_PLACE['nodes']} nodes of {ELSEWHERE_PLACE['ppn']} processes"
    sections = [
        "## Another machine\n",
        f"All searches on `{ELSEWHERE}`, {where}, with SMPI as the machine; nothing was changed for it.\n",
    ]
    for collective in SIZES:
        tuning = collwise.search_tasks(
            collective, platform=ELSEWHERE, searches=SEARCHES, context=context,
            **ELSEWHERE_PLACE,  # type: ignore[arg-type]
        )[collective]  # fmt: skip
        sections.append(scores_of(collective, tuning))
    return sections


def scores_of(collective: str, tuning: Tuning) -> str:
    counts = f"{len(tuning.space.inputs)} message sizes, {len(tuning.space.cases())} configurations in all"
    rows = [
        (
            *(one.search, one.benchmarks, format_seconds(one.machine_seconds), f"{100 * one.cost:.2f} %"),
            *(f"{one.best_found} of {one.inputs}", f"{100 * one.mean:.2f} %", f"{100 * one.worst:.1f} %"),
            PAPER[one.search],
        )
        for one in tuning.scores
    ]
    return show(f"**{collective}**, {counts}:", SCORES, rows)


def engine_sections(tunings: Tunings) -> list[str]:
    sections = [
        "## The paper's range of sizes\n",
        "Here the schedule engine is the machine, from 4 B to 128 MiB by doubling (allreduce: to 32 MiB), which SMPI "
        "would take days for. The search that predicts by the engine is left out.\n",
    ]
    sections += [scores_of(collective, tuning) for collective, tuning in tunings.items()]
    return [*sections, together(tunings), costs_by_segment(tunings)]


def together(tunings: Tunings) -> str:
    """The costs for all collectives together, as the paper's figure 8 gives them."""
    whole = sum(one.exhaustive_seconds for one in tunings.values())
    spent: dict[str, float] = {}
    for score in (score for one in tunings.values() for score in one.scores):
        spent[score.search] = spent.get(score.search, 0.0) + score.machine_seconds
    rows = [(name, format_seconds(spent[name]), f"{100 * spent[name] / whole:.2f} %", PAPER[name]) for name in spent]
    return show(
        f"**{' and '.join(tunings)} together**:", ("search", "machine time", "of exhaustive", "paper: cost"), rows
    )


def costs_by_segment(tunings: Tunings) -> str:
    """The costs of segments of each size in the exhaustive search and in those by tasks."""
    rows = []
    for collective, tuning in tunings.items():
        sizes, longest = tuning.space.segment_bytes, max(tuning.space.message_bytes)
        spent = {name: seconds_by_segment(tuning, name) for name in (EXHAUSTIVE, "tasks")}
        for size in sizes:
            shares = (by_size[size] / tuning.exhaustive_seconds for by_size in spent.values())
            most = segments_of(longest, size)
            rows.append((collective, format_size(size), most, *(f"{100 * share:.2f} %" for share in shares)))
    return show(
        "Shares of the exhaustive search's time by segment size; shorter messages count with the shortest segments:",
        ("collective", "segments of", "in the longest message", "exhaustive", "tasks"),
        rows,
    )


def seconds_by_segment(tuning: Tuning, search: str) -> dict[int, float]:
    """The machine time of a search's benchmarks by the size of their segments."""
    spent = dict.fromkeys(tuning.space.segment_bytes, 0.0)
    for case, timing in tuning.found[search].bill.timings.items():
        spent[min(size for size in spent if size >= case.segment_bytes)] += timing.seconds * timing.repetitions
    return spent


if __name__ == "__main__":
    main()
