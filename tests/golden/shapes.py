"""What is kept of a command's results: everything that it decided and timed, in few characters.

Not kept are the program's version, the words of the command, and sentences, of which only the percentages are.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_CHOICE = ("algorithm", "segment_bytes", "fanout", "limit_bytes")
_LONG = 2500
"""Texts with more characters than that are kept as a digest."""


class Ran(NamedTuple):
    """What a command printed, its exit code, and the folder in which it ran and wrote files."""

    out: str
    err: str
    code: int
    folder: Path


def document(ran: Ran) -> Any:
    """The rows and facts that a command printed as JSON."""
    found = json.loads(ran.out)
    return {"facts": brief(found["facts"]), "rows": brief(found["rows"])}


def rows(ran: Ran) -> Any:
    """The rows alone."""
    return brief(json.loads(ran.out)["rows"])


def decisions(ran: Ran) -> Any:
    """The rules of decision tables, and what the command said that they lose."""
    found: dict[str, Any] = {}
    for table in json.loads(ran.out)["facts"]["tables"]:
        by = f"{table['made_by']} on {table['platform']}, {table['processes_per_node']} a node"
        rules = {
            procs: "; ".join(f"{step['from_bytes']} {choice_text(step)}" for step in row)
            for procs, row in table["rules"].items()
        }
        found.setdefault(by, {})[table["collective"]] = rules
    return {"tables": found, "percentages": percentages(ran.err)}


def evidence(ran: Ran) -> Any:
    """Decision tables with everything that they hold."""
    return brief(json.loads(ran.out)["facts"]["tables"])


def choice_text(choice: dict[str, Any]) -> str:
    """'chain 8192', or 'k_chain 8192 4 0' with a number of chains or a limit."""
    algorithm, segment, fanout, limit = (choice[name] for name in _CHOICE)
    return f"{algorithm} {segment} {fanout} {limit}" if fanout or limit else f"{algorithm} {segment}"


def percentages(text: str) -> list[str]:
    """The percentages in sentences, each once."""
    return sorted(set(re.findall(r"-?[\d.]+ %", text)))


def text_of(text: str) -> Any:
    """The lines of a text without empty ones, or a digest of a long one."""
    if len(text) > _LONG:
        return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "characters": len(text)}
    return [line for line in text.splitlines() if line.strip()]


def brief(value: Any) -> Any:
    """The value with choices as words, and a list of alike objects as one of their keys and one of values for each."""
    if isinstance(value, dict):
        if set(_CHOICE) <= set(value):
            others = {key: brief(one) for key, one in value.items() if key not in _CHOICE}
            return {"choice": choice_text(value)} | others if others else choice_text(value)
        return {key: brief(one) for key, one in value.items()}
    if isinstance(value, list):
        found = [brief(one) for one in value]
        if len(found) > 1 and all(isinstance(one, dict) and list(one) == list(found[0]) for one in found):
            return {"columns": list(found[0]), "values": [list(one.values()) for one in found]}
        return found
    return value


def differences(expected: Any, found: Any, where: str = "") -> Iterator[str]:
    """A line for everything that is not as expected; fractions may differ by 1e-12 of themselves.

    What is below 1e-14 is nothing: the slowdown of a choice that is as fast as the best one.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            place = f"{where}/{key}"
            if key not in found:
                yield f"{place}: missing"
            elif key not in expected:
                yield f"{place}: new"
            else:
                yield from differences(expected[key], found[key], place)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for position, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{where}/{position}")
    elif isinstance(expected, float) and isinstance(found, (int, float)) and not isinstance(found, bool):
        if not math.isclose(expected, found, rel_tol=1e-12) and max(abs(expected), abs(found)) > 1e-14:
            yield f"{where}: {expected!r} became {found!r}"
    elif type(expected) is not type(found) or expected != found:
        yield f"{where}: {json.dumps(expected)[:200]} became {json.dumps(found)[:200]}"


def dumped(value: Any, indent: str = "") -> str:
    """JSON in which what fits is on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= 118 or not isinstance(value, (dict, list)):
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{deeper}{json.dumps(key)}: {dumped(one, deeper)}" for key, one in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    parts = [deeper + dumped(one, deeper) for one in value]
    return "[\n" + ",\n".join(parts) + f"\n{indent}]"
