"""Writes decision tables as the table that libcollwise reads (`collwise program run --table FILE`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.simulator.execution.interposed import decided_line
from collwise.validation.libraries.sayable import for_consumer
from collwise.validation.select.consumers import COLLWISE, sees_sizes
from collwise.validation.select.decisions import WIDE_STEP, DecisionTable, check_one_choice, from_zero, merged
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice


def collwise_rules(tables: Sequence[DecisionTable]) -> str:
    """The text of a table, with one rule on each line.

    A rule's algorithm is 'default' if nothing is decided or no choice beats MPI's own algorithm. For a call,
    libcollwise narrows down the rules of its collective in three steps: to the largest P, then to the largest number of
    processes per node, then to the largest message size, each not above the call's. Tables of one collective may differ
    in processes per node.
    """
    if not tables:
        raise UsageError("no decision table to write rules from")
    tables, _ = for_consumer(tables, COLLWISE)
    by_key = {(table.collective, table.processes_per_node): table for table in tables}
    if len(by_key) < len(tables):
        raise UsageError("two decision tables of one collective for the same number of processes per node")
    lines = [
        "# Rules for collwise program run:",
        "# collective procs processes_per_node message_bytes algorithm [parameters]",
        "# A process count between two decided ones uses the rows of the smaller one, up to "
        f"{WIDE_STEP} times its processes;",
        "# beyond that, only if the rows of the larger one are the same.",
    ]
    for name in sorted({table.collective for table in tables}):
        mine = [by_key[key] for key in sorted(by_key) if key[0] == name]
        lines.append("")
        for table in mine:
            lines.append(f"# {name} on {table.platform}, chosen by {' '.join(table.made_by.split())}")
            lines.append(decided_line(name, sorted(table.decided_procs)))
        # A row of one table would hide other tables' rows at smaller P, so each table has a row at each P of any table.
        for procs in sorted({procs for table in mine for procs in table.rules}):
            for per_node, table in _by_processes_per_node(mine, procs).items():
                lines += _lines(table, procs, per_node)
    return "\n".join(lines) + "\n"


def _by_processes_per_node(tables: Sequence[DecisionTable], procs: int) -> dict[int, DecisionTable]:
    """The tables for P processes, by processes per node; of tables for equal calls, one with a row for P."""
    found: dict[int, DecisionTable] = {}
    for table in tables:
        per_node = min(table.processes_per_node, procs)
        if per_node not in found or procs not in found[per_node].rules:
            found[per_node] = table
    return found


def _lines(table: DecisionTable, procs: int, per_node: int) -> Iterator[str]:
    row = table.row(procs)
    if not sees_sizes(COLLWISE, table.collective) and procs in table.rules:
        check_one_choice(table, procs, "rules of collwise")
    where = f"{table.collective} {procs} {per_node}"
    for start, choice in merged(from_zero(row)):
        said = "default" if choice == LIBRARY_DECIDES else words_of(table.collective, choice)
        yield f"{where} {start} {said}"


def words_of(collective: str, choice: Choice) -> str:
    """A choice as a rule names it: the algorithm and its parameters."""
    algorithm = Catalogue.load().algorithm(collective, choice.algorithm)
    named = algorithm.named_parameters(choice.segment_bytes, choice.parameter, choice.limit_bytes)
    return " ".join([choice.algorithm, *(f"{name}={value}" for name, value in named.items())])
