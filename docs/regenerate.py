"""Writes what the docs show from the code itself: results, the algorithms' table, figures, the README's table.

    .venv/bin/python docs/regenerate.py

Takes about two minutes from an empty store. Nothing in the files it writes is typed by hand.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import load, load_description
from collwise.simulator.store import Store
from collwise.studies import figures as draw
from collwise.studies.commands.algorithms import ids_text, parameters_text, requirements_text
from collwise.studies.commands.demo import CLUSTERS, SHOWN
from collwise.studies.tuning import Tuning, summary_line, table_columns, table_row, tune
from collwise.validation.calibration import PAPER_GATHER_PROCS, calibrate
from collwise.validation.targets import OPENMPI_VERSIONS
from collwise.validation.verification import verify

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
NOTE = "<!-- Written by docs/regenerate.py; do not edit. -->\n"


def main() -> int:
    (DOCS / "algorithms.md").write_text(algorithms_page(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "timings.sqlite")) as store:
        tunings = [
            tune(load(name), ("bcast", "gather"), procs, store, progress=lambda _: nullcontext(lambda *_: None))
            for name, procs in CLUSTERS.items()
        ]
    for tuning in tunings:
        draw_figures(tuning)
    (DOCS / "results.md").write_text(results_page(tunings), encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    README.write_text(replaced(text, "results", readme_block(tunings)), encoding="utf-8")
    return 0


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def replaced(text: str, name: str, block: str) -> str:
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    head, rest = text.split(begin)
    return head + begin + block + end + rest.split(end)[1]


def algorithms_page() -> str:
    collectives = Catalogue.load().collectives.values()
    versions = ", ".join(OPENMPI_VERSIONS)
    parts = [
        NOTE,
        "# Algorithms\n\nMade from `algorithms/catalogue.toml`; `collwise algorithms --json` has the same.\n\n"
        "Requirements: `power_of_two` and `even` are asked of the number of processes, `commutative` of the operation. "
        f"Open MPI ids: a number alone is the id in {versions}.\n\n",
        markdown(
            ["collective", "algorithms", "message bytes"],
            [(f"[`{c.name}`](#{c.name})", len(c.algorithms), c.message_bytes) for c in collectives],
        ),
    ]
    for collective in collectives:
        rows = [
            (
                f"`{a.name}`" + ("" if a.selectable else " (building block)"),
                a.title,
                a.topology,
                parameters_text(a),
                requirements_text(a),
                ids_text(a),
                a.reference,
            )
            for a in collective.algorithms.values()
        ]
        parts.append(f"\n## {collective.name}\n\n{collective.title}. Message bytes: {collective.message_bytes}.\n\n")
        heads = ["name", "algorithm", "topology", "parameters", "requires", "Open MPI ids", "reference"]
        parts.append(markdown(heads, rows))
    return "".join(parts)


def draw_figures(tuning: Tuning) -> None:
    for collective, result in tuning.comparisons.items():
        title = f"{collective} on {tuning.platform.title}, simulated"
        stem = f"{tuning.platform.name}-{collective}"
        draw.save(draw.picks_by_size(result.rows, title), DOCS / "figures" / f"{stem}.png")


def results_page(tunings: Sequence[Tuning]) -> str:
    engine = tunings[0].parameters.made_by
    parts = [
        NOTE,
        f"# Results\n\nSimulated by {engine}, models fitted in simulation. A choice is an algorithm and, for "
        "broadcast, a segment size of 8 KiB to 128 KiB. In brackets: cost over the best choice, in percent. Open MPI "
        "3.1 decides untuned and with its own segment sizes. The same tables: `./collwise demo`.\n",
    ]
    for tuning in tunings:
        for collective, result in tuning.comparisons.items():
            parts.append(f"\n## {collective} on {tuning.platform.title}\n\n")
            parts.append(markdown(table_columns(result.rows), [table_row(row) for row in result.rows]))
            parts.append(f"\n{summary_line(result)}.\n")
            picture = f"figures/{tuning.platform.name}-{collective}.png"
            parts.append(f"\n![time of each pick over message size]({picture})\n")
    parts.append("\n## How well the calibration meets the published figures\n\n")
    parts.append("`collwise platforms calibrate NAME`. Gather times in seconds.\n")
    for name in CLUSTERS:
        platform = load_description(name)
        _, targets = calibrate(platform, PAPER_GATHER_PROCS[name], platform.default_processes_per_node)
        rows = [
            (t.name, f"{t.published:.4g}", f"{t.simulated:.4g}", f"{t.relative_error * 100:+.1f} %") for t in targets
        ]
        parts.append(f"\n### {platform.title}\n\n")
        parts.append(markdown(["figure", "published", "simulated", "error"], rows))
    parts.append("\n## Verification\n\n`collwise verify --quick`: cases that compare every element.\n\n")
    checked = verify(["smpi", "openmpi", "mpich"], quick=True)
    rows = [(f"{r.engine} {r.version}", r.collective, r.algorithm, r.cases, r.failures) for r in checked]
    parts.append(markdown(["engine", "collective", "algorithm", "cases", "failures"], rows))
    return "".join(parts)


def readme_block(tunings: Sequence[Tuning]) -> str:
    parts = []
    for tuning in tunings:
        procs = SHOWN[tuning.platform.name]
        result = tuning.comparisons["bcast"]
        rows = [table_row(row)[1:] for row in result.rows if row.procs == procs]
        parts.append(
            f"\nBroadcast on {tuning.platform.title}, P = {procs}, simulated by {tuning.parameters.made_by}:\n\n"
        )
        parts.append(markdown(table_columns(result.rows)[1:], rows))
        counts = sorted({row.procs for row in result.rows})
        for collective, compared in tuning.comparisons.items():
            parts.append(f"\n{collective}, P = {', '.join(map(str, counts))}: {summary_line(compared)}.\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
