"""Writes the pages, tables and figures of the documentation that show results, and the README's table of trust.

    .venv/bin/python docs/regenerate.py [--measure] [PAGE...]

Pages: algorithms, crosscheck, models, evaluation, validation, models-measured, results, hunold2018, luo2020,
nuriyev2021, oflynn2009, pjesivac2007, whatif, applications, notebooks, machines, figures.

Without names it writes all pages, which takes more than an hour, most of it for the evaluation of models, for a study's
simulations of thousands of processes, and for measuring on test beds, which needs the right to create network
namespaces. `validation` and `machines` write the README's table of how far to trust choices. Nothing that it writes is
edited by hand. docs/engines.md is written by benchmarks/engines.py, pictures of the report by
docs/screenshots.py. Long tables of all pages are folded, also of those that benchmarks write.

hunold2018, luo2020, oflynn2009 and models-measured show times that are stored. With `--measure` these are measured anew
before, on test beds, for about 10, 15, 15 and 90 minutes; scripts that were stopped resume where they say so.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from models_against_measured import page as models_measured_page
from path_against_formulas import REASONS, algorithms_with_both, counted

import collwise
from collwise import application, session
from collwise.algorithms.catalogue import Catalogue
from collwise.checks import MACHINES
from collwise.common.units import format_size
from collwise.models.registry import MODELS
from collwise.platforms import Platform, Source, load, load_description
from collwise.platforms.description_file import write_description
from collwise.platforms.loader import interconnect
from collwise.simulator.sweeps.context import SCHEDULE
from collwise.studies.cli.check import OPENMPI_COLUMNS, openmpi_cells
from collwise.studies.cli.show import ids_text, parameters_text, reservation_text
from collwise.studies.cli.tune import CHECKED_PROCS, CHECKED_SIZES, DEMO, DEMO_PROCS
from collwise.studies.figures.picks import picks_by_size
from collwise.studies.figures.programs import application_figure
from collwise.studies.figures.style import save
from collwise.studies.present.programs import execution_cells
from collwise.studies.present.scores import apart, of_one, score_records
from collwise.studies.present.shown import markdown_of, shown
from collwise.studies.reports.markdown import markdown_table, percent
from collwise.validation.calibration.figures import PUBLISHED, Factors, published
from collwise.validation.calibration.published import PAPER_GATHER_PROCS, calibrate
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.correctness import crosscheck
from collwise.validation.correctness.crosscheck_openmpi import compare_with_openmpi
from collwise.validation.correctness.crosscheck_smpi import TOLERANCE, SmpiRow, compare_with_smpi
from collwise.validation.correctness.verification import verify
from collwise.validation.fitting.models_by_name import models_on
from collwise.validation.measurement.deciding import RULES
from collwise.validation.measurement.judging import platform_of
from collwise.validation.measurement.runs import runs_in
from collwise.validation.measurement.training import timed, together
from collwise.validation.select.consumers import OPENMPI_VERSIONS
from collwise.validation.three_way.verdicts import (
    ALL,
    LARGE,
    MEAN_SLOWDOWN,
    MEDIAN_ERROR,
    OWN,
    SCHEDULED,
    SIMULATED,
    WORST_SLOWDOWN,
)
from collwise.validation.times.defaults import PAPER_SIZES, SEGMENT_BYTES, SEGMENTS
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted

MEASURE = "--measure"
DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
REPORTS = DOCS.parent / "studies/reports"
PLATFORMS = DOCS.parent / "platforms"
COUNTED_PROCS = range(2, 34)
SHOWN_PROCS = 16
MODELLED = ("boba", "frodo", "grisou", "gros")
NOTEBOOKS = ("getting_started", "model_accuracy", "own_cluster", "whatif")
"""The notebooks about questions; that of the page with sliders has nothing to keep."""
LONG_TABLE = 45
"""The rows of a table that a reader scrolls past; longer ones are folded."""
NOTE = "<!-- Written by docs/regenerate.py; do not edit. -->\n"


MEASURING = {
    "hunold2018": ("methods_on_a_bed.py nrep",),
    "luo2020": ("han_on_a_bed.py",),
    "oflynn2009": tuple(f"methods_on_a_bed.py {what}" for what in ("timing", "series", "escalations")),
    "models-measured": tuple(
        f"models_against_measured.py {what}" for what in ("fit", "receivers", "first", "fast", "second")
    ),
}
"""The scripts that measure the stored times of pages."""


def main() -> int:
    pages = {
        "algorithms": lambda: write(DOCS / "algorithms.md", algorithms_page()),
        "crosscheck": lambda: write(DOCS / "crosscheck.md", crosscheck_page()),
        "models": lambda: write_block(DOCS / "models.md", "coefficients", coefficients_block()),
        "evaluation": lambda: write(DOCS / "evaluation.md", evaluation_page()),
        "validation": write_validation,
        "models-measured": write_models_measured,
        "results": write_results,
        "hunold2018": lambda: write_study("hunold2018", empty_store=True),
        "luo2020": lambda: write_study("luo2020"),
        "nuriyev2021": lambda: write_study("nuriyev2021"),
        "pjesivac2007": lambda: write_study("pjesivac2007", quick=True),
        "oflynn2009": lambda: write_study("oflynn2009"),
        "whatif": lambda: write_block(DOCS / "whatif.md", "whatif", whatif_block()),
        "applications": write_applications,
        "notebooks": write_notebooks,
        "machines": write_machines,
        "figures": write_figures,
    }
    asked = [name for name in sys.argv[1:] if name != MEASURE]
    if unknown := [name for name in asked if name not in pages]:
        print(f"unknown page '{unknown[0]}'; valid: {', '.join(pages)}, and {MEASURE}", file=sys.stderr)
        return 2
    for name in asked or pages:
        for script in MEASURING.get(name, ()) if MEASURE in sys.argv else ():
            program, *words = script.split()
            subprocess.run([sys.executable, str(DOCS / program), *words], check=True)
        pages[name]()
    for page in DOCS.glob("*.md"):
        write(page, folded(page.read_text(encoding="utf-8")))
    return 0


FITTED_INTERCONNECTS = (
    *("infiniband-edr", "infiniband-hdr", "infiniband-hdr100", "infiniband-hdr100-x2", "infiniband-ndr"),
    *("infiniband-ndr200", "slingshot", "tofu-d"),
)
OTHER_PROCESSORS = ("fugaku",)
"""Machines whose times no other machine's figures are fitted to: messages seem to cost the A64FX far more."""


def write(page: Path, text: str) -> None:
    page.write_text(text, encoding="utf-8")


def folded(text: str) -> str:
    """The text with each long table behind a line that names its columns and opens it."""

    def behind_a_line(table: re.Match[str]) -> str:
        rows = table[0].count("\n") - 2
        if rows <= LONG_TABLE:
            return table[0]
        columns = ", ".join(cell.strip() for cell in table[1].strip("| ").split("|"))
        return f"<details><summary>{rows} rows: {columns}</summary>\n\n{table[0]}\n</details>\n"

    return re.sub(r"(?m)(?<!</summary>\n\n)^(\|.*)\n\| *-.*\n(?:\|.*\n)+", behind_a_line, text)


def write_block(page: Path, name: str, block: str) -> None:
    """Writes the part of a page between the marks of that name."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    head, rest = page.read_text(encoding="utf-8").split(begin)
    write(page, head + begin + block + end + rest.split(end)[1])


def write_validation() -> None:
    """Writes the tables and figures of a run on the main test bed with an empty store, and a summary of them."""
    with tempfile.TemporaryDirectory() as folder:
        asked = ["check", "three-way", "--testbed", "--one-bed", "--no-models", "--rate", "50Mbit"]
        found = printed_by([*asked, "--output", folder, "--store", str(Path(folder, "t.sqlite")), "--json"])
        for picture in Path(folder).glob("validation-*.svg"):
            shutil.copy(picture, DOCS / "figures" / picture.name)
        _, _, body = Path(folder, "validation.md").read_text(encoding="utf-8").partition("\n\n")
    tables = body.replace("](validation-", "](figures/validation-")
    write_block(DOCS / "validation.md", "validation", f"\n{tables}\n")
    write_block(DOCS / "validation.md", "measured", measured_block(found))
    write(REPORTS / "checked.toml", checked_text(found))
    write_block(README, "trust", trust_block())


def write_models_measured() -> None:
    """Writes what models are worth by times that docs/models_against_measured.py has measured."""
    with tempfile.TemporaryDirectory() as folder, session(Path(folder, "timings.sqlite")) as context:
        write(DOCS / "models-measured.md", NOTE + models_measured_page(context).lstrip())


# The process counts of figure 5 of Nuriyev & Lastovetsky 2021, whose models choose for two collectives.
CLUSTERS = {"grisou": (50, 80, 90), "gros": (80, 100, 124)}


def write_results() -> None:
    """Writes what the demo finds, and what the models of Nuriyev & Lastovetsky 2021 choose on their two clusters."""
    demo = [NOTE, "# Results\n\n## What the demo finds\n\n"]
    with tempfile.TemporaryDirectory() as folder, session(Path(folder, "timings.sqlite")) as context:
        found = collwise.tune(DEMO, procs=DEMO_PROCS, context=replace(context, engine=SCHEDULE))
        presented = shown(found)
        demo.append(markdown_of(presented, titled=True))
        save(presented.figures["gains"](), DOCS / "figures" / "demo-gains.png")
        demo.append("\n![by how much untuned Open MPI is slower than the rules](figures/demo-gains.png)\n")
        smpi = collwise.simulate(
            DEMO, [*found.times], CHECKED_PROCS, CHECKED_SIZES, segments=SEGMENT_BYTES, context=context
        )
        demo.append("\nSMPI, SimGrid's simulator of MPI, for the same algorithms:\n\n")
        demo += (f"- {line}\n" for line in apart(collwise.compare(smpi, found.times)))
        parts = [
            "\n## Models on the clusters of Nuriyev & Lastovetsky 2021\n\n"
            "Times are simulated by SMPI, the model by_parts is fitted in simulation. What a message costs "
            "processors on these clusters is an estimate ([limits.md](limits.md#calibration)).\n",
        ]
        for name, procs in CLUSTERS.items():
            model = collwise.fit(name, context=context)
            for collective, sizes in PAPER_SIZES.items():
                asked = {"procs": procs, "sizes": sizes, "segments": SEGMENTS}
                times = collwise.simulate(name, collective, **asked, deciders="openmpi-4.1", context=context)
                (scores,) = collwise.compare(
                    times, collwise.predict(model, collective, **asked), "openmpi-4.1"
                ).values()
                title = f"{collective} on {load(name).title}"
                save(picks_by_size(scores, f"{title}, simulated"), DOCS / "figures" / f"{name}-{collective}.png")
                parts += [f"\n### {title}\n\n", markdown_of(of_one(scores))]
                parts.append(f"\n![time of each pick over message size](figures/{name}-{collective}.png)\n")
    write(DOCS / "results.md", "".join([*demo, *parts, checks_block()]))


def write_study(name: str, empty_store: bool = False, quick: bool = False) -> None:
    """Runs a study with the stored times or an empty store, and writes its figures and its page NAME.md.

    `quick` times fewer points, where all of them take more than an hour.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = ["--store", str(Path(folder, "timings.sqlite"))] if empty_store else []
        options = ["-o", folder, *store, *(["--quick"] if quick else [])]
        command = [sys.executable, "-m", "collwise.studies", "check", "study", name, *options]
        subprocess.run(command, check=True)
        text = Path(folder, f"{name}.md").read_text(encoding="utf-8")
        # The page's figures are in the folder of the documentation's.
        write(DOCS / f"{name}.md", NOTE + re.sub(r"\]\(([^)/]+\.png)\)", rf"](figures/{name}-\1)", text))
        for old in (DOCS / "figures").glob(f"{name}-*.png"):
            old.unlink()
        for figure in Path(folder).glob("*.png"):
            shutil.copy(figure, DOCS / "figures" / f"{name}-{figure.name}")


def write_machines() -> None:
    """Writes the tables, figures and discrepancy of `check machines` for the measured runs that the project has."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--store", str(Path(folder, "t.sqlite")), "--predictions", str(Path(folder, "predictions.csv"))]
        report = Path(folder, "machines.md")
        options += ["--figures", str(Path(folder, "figures")), "--report", str(report)]
        found = printed_by(["check", "machines", *options, "--json"])
        for name in ("machines.png", "sure.png"):
            shutil.copy(Path(folder, "figures", name), DOCS / "figures" / name)
        first, rest = report.read_text(encoding="utf-8").replace(f"{folder}/", "").split("\n\n**", 1)
    picture = "![mean regret by machine and by what decides](figures/machines.png)\n"
    sure = "**Said probabilities of losing"
    rest = rest.replace(sure, f"![said probabilities, and risk against coverage](figures/sure.png)\n\n{sure}")
    write_block(DOCS / "machines.md", "machines", f"\n{first}\n\n{picture}\n**{rest}\n")
    write(REPORTS / "machines.toml", machines_text(found))
    write(REPORTS / "confidence.toml", confidence_text(found["facts"]))
    write_block(README, "trust", trust_block())


def write_figures() -> None:
    """Multiplies the figures of descriptions by what the runs of `studies/machines` say.

    Interconnects' figures are fitted to all machines, a machine's to all others but OTHER_PROCESSORS.
    """
    runs = runs_in((MACHINES,))
    titles = {run.machine: platform_of(run.machine, {}) for run in runs if timed(run) is not None}
    everywhere = together(runs).common
    for name in FITTED_INTERCONNECTS:
        made = by_runs(interconnect(name), everywhere, list(titles.values()))
        write(PLATFORMS / "interconnects" / f"{name}.toml", write_description(made))
    for machine, described in titles.items():
        left_out = {machine, *OTHER_PROCESSORS}
        others = [other for name, other in titles.items() if name not in left_out]
        made = by_runs(described, together(runs, left_out).common, others)
        write(PLATFORMS / f"{described.name}.toml", write_description(made))


def by_runs(platform: Platform, factors: Factors, fitted_to: Sequence[Platform]) -> Platform:
    """The description with its figures multiplied, and a source that says so."""
    machines = ", ".join(one.title.partition(",")[0] for one in fitted_to)
    what = f"{PUBLISHED}: the factors of the figures above with which predictions fit collectives on {machines}"
    others = [source for source in platform.sources if not source.what.startswith(PUBLISHED)]
    source = Source(what, "docs/machines.md; studies/machines; docs/regenerate.py figures")
    return replace(published(platform, factors), sources=(*others, source))


def write_notebooks() -> None:
    """Writes the notebooks about questions with what their cells show, which `collwise studio` opens."""
    for name in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            store = str(Path(folder, "timings.sqlite"))
            command = [sys.executable, "-m", "collwise.studies", "check", "study", name, "-o", folder, "--store", store]
            subprocess.run(command, check=True)
            (DOCS / "notebooks").mkdir(exist_ok=True)
            shutil.copy(Path(folder, f"{name}.ipynb"), DOCS / "notebooks")


def whatif_block() -> str:
    """The answer to the page's question and its figures, which the command draws."""
    procs = "8,16,24,31,32,40,48,56,62,64,72,80,93,96,104,112,124"
    swept = ["--collective", "allreduce", "--procs", procs, "--sizes", "1MiB", "--factors", "bandwidth=x0.0625:x8"]
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "figures")
        options = ["--store", str(Path(folder, "timings.sqlite")), "--figures", str(drawn), "--json"]
        found = printed_by(["whatif", "sweep", "--platform", "gros", *swept, *options])
        facts = found["facts"]
        for picture in sorted(drawn.iterdir()):
            name = picture.name.replace("gros-allreduce-bandwidth", "whatif").replace("1048576", "map")
            shutil.copy(picture, DOCS / "figures" / name)
    points = {point["procs"]: point["choice"] for point in found["rows"]}
    crossing = {row["procs"]: row for row in facts["crossovers"]}
    always = [str(count) for count in points if count not in crossing]
    [winner] = {row["above"] for row in crossing.values()}
    rows = [(count, row["below"], row["above"], f"x{row['factor']:.3g}") for count, row in crossing.items()]
    return (
        f"\nWith {', '.join(always)} processes {winner} is the best choice at any bandwidth from 1/16 to 8 times "
        f"{facts['unit']},\nthat of Gros. With other process counts:\n\n"
        + markdown_table(["P", "best below", "best from there on", "bandwidth"], rows)
        + "\n![the best choice over bandwidth and process count](figures/whatif-map.png)\n\n"
        "Times relative to the best choice, and what the critical path of the best one consists of, for the process\n"
        "count whose cross-over point is nearest to Gros's own bandwidth:\n\n"
        "![times relative to the best choice, and its limits, over the bandwidth](figures/whatif.png)\n"
    )


# An application, P, its settings, the choices of collectives, and the segment sizes of tuned ones.
APPLICATIONS = (
    ("asp", 192, "rows=192,iterations=24", "ompi,openmpi-4.1,mvapich2,impi,flat,hierarchical", "64KiB:1MiB:x2"),
    ("asp", 192, "iterations=24", "ompi,hierarchical", "64KiB:1MiB:x2"),
    ("matmul", 192, "size=4096", "ompi,openmpi-4.1,mvapich2,impi,flat,hierarchical", "64KiB:1MiB:x2"),
    ("training", 48, "steps=1,batch=1", "ompi,openmpi-4.1,flat,hierarchical", "1MiB,4MiB"),
    ("training", 48, "steps=1,batch=1,fusion-bytes=0", "ompi,flat,hierarchical", "1MiB,4MiB"),
)


def write_applications() -> None:
    """Writes the tables of applications into their page. Executions that the usual store has are not repeated."""
    parts = []
    with session() as context:
        for row in APPLICATIONS:
            name, procs, settings, collectives, segments = row
            words = f"program apply {name} --platform stampede2 --ppn 12 --procs {procs} --set {settings}"
            words += f" --segments {segments} --collectives {collectives}"
            chosen = {key: int(value) for key, value in (part.split("=") for part in settings.split(","))}
            times = application(
                name, "stampede2", procs, collectives, settings=chosen, ppn=12, segments=segments,
                context=replace(context, engine=SCHEDULE),
            )  # fmt: skip
            columns = ["collectives", "time", "in collectives", "share, mean", "share, most", "speed-up", "algorithms"]
            rows = [execution_cells(one)[1:] for one in times.rows]
            parts.append(f"\n`collwise {words}`\n\n{markdown_table(columns, rows)}")
            if row == APPLICATIONS[0]:
                title = f"{name} on Stampede2, P = {procs}, simulated"
                save(application_figure(times.frame(), title), DOCS / "figures" / "application.png")
    write_block(DOCS / "applications.md", "applications", "".join(parts))


def evaluation_page() -> str:
    """The page of the models' scores, from the output of the commands with an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "timings.sqlite")
        scores = scores_of_models(store)
        recovered = printed_by(["check", "recovery", "--store", str(store), "--json"])["rows"]
    parts = [
        NOTE,
        f"# Scores of the models\n\nPredicted against simulated times on {', '.join(MODELLED)}, as `collwise compare` "
        "scores them ([models.md](models.md) explains the columns): one process per node, P from 3 to all nodes, "
        "message sizes from 8 B by factors of 4, algorithms that cut messages with whole ones and segments "
        "of 1 KiB and 8 KiB. "
        "Parameters are estimated in simulation as well. The least mean slowdown of each collective is bold.\n",
    ]
    for collective in dict.fromkeys(score["collective"] for score in scores):
        parts.append(f"\n## {collective}\n\n")
        mine = [score for score in scores if score["collective"] == collective and score["picks"]]
        least = {
            platform: min(score["mean_slowdown"] for score in mine if score["platform"] == platform)
            for platform in dict.fromkeys(score["platform"] for score in mine)
        }
        errors, costs = ("mean error", "worst error"), ("mean slowdown", "worst slowdown", "worst at")
        columns = ["platform", "model", *errors, "best picked", *costs]
        parts.append(markdown_table(columns, [score_row(score, least[score["platform"]]) for score in mine]))
    parts.append(
        "\n## Recovered parameters\n\n`collwise check recovery`: the largest relative error of any parameter, by "
        "procedure, on synthetic platforms whose parameters are known.\n\n"
    )
    worst: dict[tuple[str, str, str], float] = {}
    for row in recovered:
        key = (row["platform"], row["family"] + (", each pair" if row["heterogeneous"] else ""), row["procedure"])
        worst[key] = max(worst.get(key, 0.0), row["worst_error"])
    rows = [(*key, f"{error * 100:.4f} %") for key, error in worst.items()]
    parts.append(markdown_table(["platform", "model", "procedure", "worst error"], rows))
    return "".join(parts)


# Pješivac-Grbović et al. 2007, section 6.3: unsegmented, 1 KiB and 8 KiB; the largest is common to all algorithms.
SCORED_SEGMENTS = (8192, 1024, 0)
LARGEST_BYTES = {"barrier": 0, "alltoall": 2**16, "allgather": 2**16, "scatter": 2**18, "gather": 2**18}
"""The sizes of the scores are from 8 B on by factors of 4, up to these, or 1 MiB."""
SCORED = ("barrier", "bcast", "reduce", "alltoall", "scatter", "gather", "allreduce", "reduce_scatter", "allgather")


def scores_of_models(store: Path) -> list[dict[str, Any]]:
    """The scores of all models but printed forms on MODELLED, fitted there."""
    scores = []
    with session(store) as context:
        for platform in map(load, MODELLED):
            kinds = [one for one in MODELS.values() if not one.printed]
            kinds = [one for one in kinds if platform.heterogeneous or not one.heterogeneous]
            models = models_on(platform, list(map(str, kinds)), 1, SCORED_SEGMENTS, context.with_experiments(), SCORED)
            nodes = len(platform.hosts)
            procs = sorted({p for p in (3, 5, 8, 12, 16, 24, nodes) if p <= nodes})
            for name in SCORED:
                largest = LARGEST_BYTES.get(name, 2**20)
                sizes = [8 * 4**k for k in range(10) if 8 * 4**k <= largest] or [0]
                grid = Grid.of(name, procs, sizes, segments=sorted(SCORED_SEGMENTS)).by_algorithm()
                covering = [model for model in models if model.algorithms(name)]
                found = beside_simulation(platform, grid, [predicted(model, grid) for model in covering], context)
                scores += score_records(found)
    return scores


def coefficients_block() -> str:
    """The coefficients of critical paths beside those of the formulas: equal ones as a list, others as a table."""
    equal: dict[str, None] = {}
    rows: list[tuple[str, ...]] = []
    for collective, algorithm, shape in algorithms_with_both():
        found = {one.procs: one for one in counted(collective, algorithm, shape, COUNTED_PROCS)}
        name = f"{collective} {algorithm}"
        if all(one.equal for one in found.values()):
            equal.setdefault(name)
            continue
        shown = found[SHOWN_PROCS]
        latencies, messages = zip(*(one.differences for one in found.values()), strict=True)
        rows.append(
            (
                name, str(shape),
                f"{shown.formula_latencies:g} alpha + {shown.formula_messages:.3g} m beta",
                f"{shown.path_latencies:g} alpha + {shown.path_messages:.3g} m beta",
                f"{min(latencies):+.3g} to {max(latencies):+.3g}", f"{min(messages):+.2g} to {max(messages):+.2g}",
            )
        )  # fmt: skip
    differ = {row[0] for row in rows}
    same = f"Equal in every shape: {', '.join(name for name in equal if name not in differ)}."
    columns = [
        "algorithm", "messages", f"formula, P = {SHOWN_PROCS}", f"path, P = {SHOWN_PROCS}",
        "more latencies", "more multiples of m",
    ]  # fmt: skip
    reasons = [f"- **{' '.join(name)}**: {why}" for name, why in REASONS.items()]
    filled = [textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False) for line in reasons]
    parts = [textwrap.fill(same, 120, break_on_hyphens=False), markdown_table(columns, rows).strip(), "\n".join(filled)]
    return "\n" + "\n\n".join(parts) + "\n\n"


def measured_block(found: dict[str, Any]) -> str:
    """A summary of the comparison on the main test bed."""
    facts = found["facts"]
    of = {(one["source"], one["collective"], one["quantity"]): percent(one["found"]) for one in facts["verdicts"]}
    main = found["rows"][0]["point"]["target"]
    cases = sum(row["point"]["target"] == main for row in found["rows"])
    own = [one["slowdown"] for one in facts["slowdowns"] if one["source"] == OWN and one["point"]["target"] == main]

    def of_engine(source: str, name: str, sizes: str = ALL) -> str:
        mean, worst = (of[source, sizes, quantity] for quantity in (MEAN_SLOWDOWN, WORST_SLOWDOWN))
        return f"{name} {of[source, sizes, MEDIAN_ERROR]}, {mean} and {worst}"

    rate = main.partition("x")[2].removesuffix("M")
    text = (
        f"On 8 nodes at {rate} Mbit/s, calibrated by messages between two nodes alone: the median error of {cases} "
        f"measured times, and the slowdown of the choices against the best measured ones, on average and at worst, "
        f"were {of_engine(SIMULATED, 'with SMPI')}, {of_engine(SCHEDULED, 'with the schedule engine')}, from 8 KiB on "
        f"{of_engine(SIMULATED, 'with SMPI', LARGE)}, {of_engine(SCHEDULED, 'with the engine', LARGE)}; "
        f"{facts['maker']}'s own choices were {percent(sum(own) / len(own))} slower on average."
    )
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def checked_text(found: dict[str, Any]) -> str:
    """The facts by which `tune` says how sure its choices are."""
    of = {(one["source"], one["collective"], one["quantity"]): one["found"] for one in found["facts"]["verdicts"]}
    main = found["rows"][0]["point"]["target"]
    slowdowns = found["facts"]["slowdowns"]
    own = [one["slowdown"] for one in slowdowns if one["source"] == OWN and one["point"]["target"] == main]
    return (
        "# Written by docs/regenerate.py (validation): how right the schedule engine was where times were measured.\n"
        f'bed = "8 nodes at {main.partition("x")[2].removesuffix("M")} Mbit/s in one machine"\n'
        f"cases = {sum(row['point']['target'] == main for row in found['rows'])}\n"
        f"median_error = {of[SCHEDULED, ALL, MEDIAN_ERROR]:.3g}\n"
        f"mean_slowdown = {of[SCHEDULED, ALL, MEAN_SLOWDOWN]:.3g}\n"
        f"worst_slowdown = {of[SCHEDULED, ALL, WORST_SLOWDOWN]:.3g}\n"
        f"untuned = {sum(own) / len(own):.3g}\n"
    )


def machines_text(found: dict[str, Any]) -> str:
    """The facts by which `tune` speaks of supercomputers: a table for each, by the first words of its title."""
    of = {(one["machine"], one["decider"]): one for one in found["rows"] if not one["collective"] + one["sizes"]}
    tables = ["# Written by docs/regenerate.py (machines): cells, median error, mean regret of what decides.\n"]
    for machine, platform in found["facts"]["platforms"].items():
        predicted, careful, untuned = (of[machine, who] for who in ("predicted", RULES, "untuned"))
        tables.append(
            f'\n["{load(platform).title.partition(",")[0]}"]\ncells = {predicted["cells"]}\n'
            f"median_error = {predicted['median_error']:.3g}\npredicted = {predicted['mean']:.3g}\n"
            f"over_candidates = {predicted['over_candidates']:.3g}\n"
            f"robust = {careful['mean']:.3g}\nuntuned = {untuned['mean']:.3g}\n"
        )
    return "".join(tables)


def trust_block() -> str:
    """A table of errors and losses by where times were measured; the test bed comes last, after the machines."""
    bed, machines = (tomllib.loads((REPORTS / f"{name}.toml").read_text("utf-8")) for name in ("checked", "machines"))
    rows = []
    for name, one in sorted(machines.items(), key=lambda item: item[1]["predicted"]):
        found = (one[key] for key in ("median_error", "predicted", "over_candidates", "robust", "untuned"))
        rows.append((f"[{name}](docs/machines.md)", f"{one['cells']} points", *map(rounded, found)))
    # Open MPI has no other algorithms on the test bed than the catalogue has.
    bed_row = (bed["median_error"], bed["mean_slowdown"], bed["mean_slowdown"], None, bed["untuned"])
    rows.append((f"[{bed['bed']}](docs/validation.md)", f"{bed['cases']} timings", *map(rounded, bed_row)))
    chosen = ("our choices: slower by", "than our own fastest", "our choices with `--robust`", "untuned: slower by")
    columns = ["measured on", "compared", "median error", *chosen]
    return f"\n{markdown_table(columns, rows)}\n"


def rounded(share: float | None) -> str:
    """'0.7 %', '274 %'; '-' for None."""
    return "-" if share is None else f"{share * 100:.{1 if share < 0.1 else 0}f} %"


def confidence_text(facts: dict[str, Any]) -> str:
    """The discrepancy by which `select` and `tune` say how sure choices are, and how often that held."""
    found, sure = facts["discrepancy"], facts["sure"]
    scales = "".join(f"{name} = {found[name]:.3g}\n" for name in ("algorithm", "messages", "seconds", "freedom"))
    return (
        "# Written by docs/regenerate.py (machines): scales of ln(measured / predicted), and how often choices that\n"
        "# were said to be sure were right, of the cells that matter on machines left out.\n"
        f"{scales}machines = {json.dumps(found['machines'])}\n\n[sure]\n"
        f"telling = {sure['telling']}\nsaid = {sure['said']}\nright = {sure['right']}\n"
        f"right_of_all = {sure['right_of_all']}\n"
    )


def printed_by(arguments: Sequence[str]) -> Any:
    """The JSON that a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "collwise.studies", *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def score_row(score: dict[str, Any], least_cost: float) -> tuple[object, ...]:
    cost = percent(score["mean_slowdown"])
    return (
        *(score["platform"], score["model"], percent(score["mean_error"]), percent(score["worst_error"])),
        f"{score['best_picks']} of {score['picks']}",
        f"**{cost}**" if score["mean_slowdown"] == least_cost else cost,
        *(percent(score["worst_slowdown"]), score["worst_at"] if score["worst_slowdown"] > 0 else "-"),
    )


def algorithms_page() -> str:
    collectives = Catalogue.load().collectives.values()
    versions = ", ".join(OPENMPI_VERSIONS)
    parts = [
        NOTE,
        "# Algorithms\n\nThis page shows `algorithms/catalogue.toml`; "
        "`collwise show algorithms --json` prints the same.\n\n"
        "Requirements: `power_of_two` and `even` concern the number of processes, `commutative` the operation. "
        "Algorithms marked 'by node' treat the processes of one node differently from others. They run where they are "
        "named (`simulate --algorithms`, `program run --algorithms`, `show schedule --algorithms`), and "
        "`simulate --algorithms all,by-node` makes them choices. Without that they are none: models have no formulas "
        "for them, and with one process on each node they are the flat algorithms over again. Mock-ups of performance "
        "guidelines call the MPI library's own collectives ([guidelines.md](guidelines.md)). "
        f"Open MPI ids: a single number is the id in {versions}.\n\n",
        markdown_table(
            ["collective", "algorithms", "message bytes"],
            [(f"[`{c.name}`](#{c.name})", len(c.algorithms), c.message_bytes) for c in collectives],
        ),
    ]
    for collective in collectives:
        rows = [
            (
                f"`{a.name}`{reservation_text(a)}",
                a.title,
                a.topology,
                parameters_text(a),
                ", ".join(a.requires) or "-",
                ids_text(a),
                a.reference,
            )
            for a in collective.algorithms.values()
        ]
        parts.append(f"\n## {collective.name}\n\n{collective.title}. Message bytes: {collective.message_bytes}.\n\n")
        heads = ["name", "algorithm", "topology", "parameters", "requires", "Open MPI ids", "reference"]
        parts.append(markdown_table(heads, rows))
    parts += [
        "\n## Open MPI's code under the same names\n\n"
        "Predictions are compared with times of Open MPI's algorithms by their names. A test traces what Open MPI 4.1 "
        "does, forced as by rules with zeros and rooted at process 0, and compares it with the engine's recording for "
        "P = 8, 13 and 32: messages and their order, when receives are posted and sends waited for, reductions, "
        "copies, packing by MPI, and memory. This differs, on some P less than that; the rest of the algorithms with "
        "an id in 4.1, of bcast, gather, scatter, allgather, alltoall, reduce, allreduce and reduce_scatter, do the "
        "same. `validation/correctness/crosscheck.toml` has the list, and says what its words mean. With a parameter "
        "of zero, as in such rules, `k_chain` of bcast and `chain` of reduce have one chain in Open MPI; times of "
        "these, such as PICO's, are read as those of one chain.\n\n",
        markdown_table(
            ["collective", "algorithm", "differs in", "where", "what"],
            [
                (key[0], f"`{key[1]}`", ", ".join(one.differs), one.where or "always", one.why)
                for key, found in sorted(crosscheck.OPENMPI_CODE.items())
                for one in found
            ],
        ),
    ]
    return "".join(parts)


def crosscheck_page() -> str:
    smpi, openmpi = compare_with_smpi(load("grisou")), compare_with_openmpi()
    parts = [
        NOTE,
        "# Cross-check\n\n",
        "`collwise check others` compares our algorithms with other implementations of the same ones.\n",
        "\n## SMPI\n\nOne program runs both, simulated on Grisou by SimGrid; SMPI's algorithm is selected by "
        "`smpi/COLLECTIVE`. Ours has the segment size and parameter of SMPI's source, and combining is free, as in "
        "SMPI. The table has ratios of simulated times, ours to theirs; those that differ from 1 by more than "
        f"{TOLERANCE * 100:.0f} % are bold.\n\n",
        smpi_ratios(smpi),
        "\nReasons for the differences:\n\n",
        *(f"- {name}: {text}\n" for name, text in crosscheck.explained(smpi, crosscheck.SMPI)),
        "\nThe following are not compared, although SMPI has similar algorithms:\n\n",
        *(f"- {' '.join(key)}: {text}\n" for key, text in crosscheck.NOT_IN_SMPI.items()),
        "\n## Open MPI\n\nEach algorithm is forced by `coll_tuned_COLLECTIVE_algorithm` and runs on the same data as "
        "ours. *agree*: all results are equal, byte by byte. Open MPI's monitoring counts the messages and bytes of "
        "both, over calls of these sizes with each of two roots. *same*: every process sends as many messages and "
        "bytes to every other one, which shows that the forced algorithm ran.\n\n",
        markdown_table(OPENMPI_COLUMNS, [openmpi_cells(row) for row in openmpi]),
        "\nReasons for the differences:\n\n",
        *(f"- {name}: {text}\n" for name, text in crosscheck.explained(openmpi, crosscheck.OPENMPI)),
    ]
    return "".join(parts)


def smpi_ratios(rows: Sequence[SmpiRow]) -> str:
    """Table with a row per algorithm and process count and the ratio at each size; a barrier has one ratio."""
    sizes = sorted({row.message_bytes for row in rows})
    ratios = {(row.collective, row.algorithm, row.smpi, row.procs): dict.fromkeys(sizes, "") for row in rows}
    for row in rows:
        ratio = f"{row.ratio:.3f}"
        line = ratios[row.collective, row.algorithm, row.smpi, row.procs]
        line[row.message_bytes] = f"**{ratio}**" if row.differs else ratio
    columns = ["collective", "algorithm", "in SMPI", "P", *map(format_size, sizes)]
    return markdown_table(columns, [[*key, *line.values()] for key, line in ratios.items()])


FACTORS = (0, 0.5, 1, 2, 3)
"""Those of the overheads of the paper's clusters with which the other figures are fitted again."""


def refitted(platform: Platform, factor: float) -> tuple[str, str, str]:
    """A factor of the overheads, the largest error of gamma, and the latency of a link that is fitted then."""
    other = replace(platform, calibration=platform.calibration.with_overheads_times(factor))
    found, targets = calibrate(other, PAPER_GATHER_PROCS[platform.name], platform.default_processes_per_node)
    worst = max(abs(one.relative_error) for one in targets if one.name.startswith("gamma"))
    return f"{factor:g}", percent(worst), f"{found.link_latency_seconds * 1e6:.3g} us"


def checks_block() -> str:
    """The calibration of the paper's clusters against published figures, and the elements that were compared."""
    parts = []
    parts.append("\n## How well the calibration meets the published figures\n\n")
    parts.append("`collwise platforms calibrate --published NAME`. Gather times in seconds.\n")
    for name in CLUSTERS:
        platform = load_description(name)
        _, targets = calibrate(platform, PAPER_GATHER_PROCS[name], platform.default_processes_per_node)
        rows = [
            (t.name, f"{t.published:.4g}", f"{t.simulated:.4g}", f"{t.relative_error * 100:+.1f} %") for t in targets
        ]
        parts.append(f"\n### {platform.title}\n\n")
        parts.append(markdown_table(["figure", "published", "simulated", "error"], rows))
        parts.append("\nOverheads times a factor, and the largest error of gamma with the rest fitted again:\n\n")
        parts.append(
            markdown_table(["factor", "gamma within", "link latency"], map(partial(refitted, platform), FACTORS))
        )
    parts.append("\n## Verification\n\n`collwise check algorithms --quick` compares every element in each case.\n\n")
    checked = verify(["smpi", "openmpi", "mpich"], quick=True)
    engines: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in checked:
        engines.setdefault((f"{row.engine} {row.version}", row.collective), []).append((row.cases, row.failures))
    rows = [(*key, len(found), *map(sum, zip(*found, strict=True))) for key, found in engines.items()]
    parts.append(markdown_table(["engine", "collective", "algorithms", "cases", "failures"], rows))
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
