"""Exported rules: how they are used, and what they lose; or, without a file, the rules themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from collwise import arguments
from collwise.decisions import ExportedRules
from collwise.studies.present.decisions import rule_rows
from collwise.studies.present.shown import Shown
from collwise.validation.libraries.formats import FORMATS, how_to_use
from collwise.validation.libraries.left_to_library import summary_over_untuned
from collwise.validation.libraries.sayable import for_consumer
from collwise.validation.libraries.variables import ucc_summary
from collwise.validation.select.consumers import OPENMPI, openmpi_consumer


def shown(rules: ExportedRules) -> Shown:
    """The command that uses the file, sentences on the rules, and what the installed library ran."""
    wrong = sum(not matches for _, matches in rules.checks)
    problem = f"for {wrong} of {len(rules.checks)} checks no call was seen that runs as the rules say" if wrong else ""
    parts = [rules.text.rstrip()] if rules.path is None else [*_parts(rules, rules.path)]
    checks = [line for line, _ in rules.checks]
    facts = {"format_name": rules.format_name, "version": rules.version, "text": rules.text, "checks": checks}
    return Shown([*parts, *checks], rule_rows(rules.tables), facts, problem=problem)


def _parts(rules: ExportedRules, path: Path) -> Iterator[str]:
    known = FORMATS[rules.format_name]
    collectives = f" for {arguments.several([one.collective for one in rules.tables])}" if rules.tables else ""
    is_openmpi = rules.format_name == OPENMPI
    yield f"{path}: {f'rules for Open MPI {rules.version}' if is_openmpi else known.title + collectives}; use them with"
    yield f"  {how_to_use(rules.format_name, path)}"
    if known.consumer.startswith(OPENMPI):
        yield "On InfiniBand untuned Open MPI may run hcoll, which this leaves out: measure both (docs/exports.md)"
    for table in rules.tables:
        # Rules for Open MPI leave P in wide steps to the library, as a warning says.
        if not (known.consumer.startswith(OPENMPI) and table.wide_steps()):
            yield table.between_procs
        if table.between is not None:
            yield f"{table.collective}, slower than the best between the sizes: {table.between}"
    if is_openmpi:
        said, _ = for_consumer(rules.tables, openmpi_consumer(rules.version))
        yield from filter(None, (summary_over_untuned(one, openmpi_consumer(rules.version)) for one in said))
    if rules.format_name == "ucc":
        yield ucc_summary(rules.tables, rules.text)
