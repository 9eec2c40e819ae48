"""What is kept of a command's results: everything that it decided and timed, in few characters.

Not kept are the program's version, the words of the command, and of sentences in facts and errors all but percentages.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from collwise.common.program import __version__
from collwise.simulator.timing import Configuration
from collwise.studies.present.shown import Shown
from tests.golden.presented import plain

_CHOICE = ("algorithm", "segment_bytes", "parameter", "limit_bytes")
SENTENCES = ("summary", "left_out")
"""Facts that are sentences."""
_OF_PREDICTIONS = "sha256"
"""A fact that is a digest of predicted times, whose last digits libraries decide."""
MASKED = ("program_digest", "library_digest", "libcollwise", "library_decisions")
"""Details of configurations that have digests of what was compiled, or of code."""
_LONG = 2500
"""Texts with more characters than that are kept as a digest."""


class Ran(NamedTuple):
    """What a command printed, its exit code, the folder in which it ran and wrote files, and its output as data."""

    out: str
    err: str
    code: int
    folder: Path
    shown: Shown


def document(ran: Ran) -> Any:
    """The rows and facts that a command printed as JSON."""
    found = json.loads(ran.out)
    facts = {name: value for name, value in found["facts"].items() if name not in (*SENTENCES, _OF_PREDICTIONS)}
    said = {name: percentages("\n".join(found["facts"][name])) for name in SENTENCES if name in found["facts"]}
    return {"facts": brief(facts) | said, "rows": brief(found["rows"])}


def nothing(ran: Ran) -> Any:
    """Nothing but what people see of it."""


def rows(ran: Ran) -> Any:
    """The rows alone."""
    return brief(json.loads(ran.out)["rows"])


def predictions(ran: Ran) -> Any:
    """The seconds of each choice at each point, by choice, and the model."""
    found = json.loads(ran.out)
    names = ("collective", "algorithm", "segment_bytes", "procs", "message_bytes", "seconds")
    alike: dict[Any, list[Any]] = {}
    for row in found["rows"]:
        choice = (row["algorithm"], row["segment_bytes"])
        alike.setdefault(choice, []).append({name: row[name] for name in names})
    return {"facts": found["facts"], "rows": brief([row for rows in alike.values() for row in rows])}


def imported(ran: Ran) -> Any:
    """The numbers of times read from each file."""
    by_file: dict[str, Any] = {}
    for row in json.loads(ran.out)["rows"]:
        file = by_file.setdefault(row["file"], {"file": row["file"], "failed": 0, "times": []})
        file["failed"] += row["failed"]
        file["times"].append({name: row[name] for name in ("collective", "experiment", "procs")})
        file["times"][-1]["number"] = row["times"]
    return {"facts": {}, "rows": brief([*by_file.values()])}


def decisions(ran: Ran) -> Any:
    """The rules of decision tables, by what made them."""
    found: dict[str, Any] = {}
    for table in json.loads(ran.out)["facts"]["tables"]:
        by = f"{table['made_by']} on {table['platform']}, {table['processes_per_node']} a node"
        rules = {
            procs: "; ".join(f"{step['from_bytes']} {choice_text(step)}" for step in row)
            for procs, row in table["rules"].items()
        }
        found.setdefault(by, {})[table["collective"]] = rules
    return found


def evidence(ran: Ran) -> Any:
    """Decision tables with everything that they hold."""
    return brief(json.loads(ran.out)["facts"]["tables"])


def stored(ran: Ran) -> Any:
    """Rows of the store without the configuration's key, which has digests, and the time of day."""
    found = json.loads(ran.out)["rows"]
    for row in found:
        del row["configuration"], row["made_at"], row["details"]
    return brief(found)


def configurations(ran: Ran) -> Any:
    """Everything that stored times depend on but digests of what was compiled, in the order of the store's keys."""
    found = [
        masked(Configuration(row["source"], row["platform"], row["maker"], tuple(sorted(row["details"].items()))))
        | {"collectives": row["collectives"]}
        for row in json.loads(ran.out)["rows"]
    ]
    return sorted(found, key=lambda one: one["key"])


def masked(configuration: Configuration) -> dict[str, Any]:
    """A configuration with digests of compiled programs, libcollwise and code masked, and its key with these."""
    details = {
        name: re.sub("[0-9a-f]{64}", "masked", value) if name in MASKED else value
        for name, value in configuration.details
    }
    key = replace(configuration, details=tuple(sorted(details.items()))).key
    return {
        "key": key,
        "source": configuration.source,
        "platform": configuration.platform,
        "maker": configuration.maker,
        "details": {name: value if len(value) < 200 else digest_of(value) for name, value in details.items()},
    }


def without_wall_times(ran: Ran) -> Any:
    """Rows and facts of `guidelines` without the seconds that the check itself took."""
    found = json.loads(ran.out)
    for library in found["facts"].get("libraries", []):
        del library["check_seconds"], library["repair_seconds"]
    return {"facts": brief(found["facts"]), "rows": brief(found["rows"])}


def report_values(ran: Ran) -> Any:
    """The text of a report, its rules and its decisions."""
    folder = ran.folder / "report"
    text = plain(next(folder.glob("*.md")).read_text(), ran.folder).replace(__version__, "VERSION")
    written = [file for file in sorted(folder.iterdir()) if file.suffix in (".rules", ".table")]
    tables = [json.loads(file.read_text()) for file in folder.glob("*-decisions.json")]
    return {
        "text": [line for line in text.splitlines() if line],
        "decisions": brief(tables),
        "rules": {file.name: text_of(file.read_text()) for file in written},
    }


def choice_text(choice: dict[str, Any]) -> str:
    """'chain 8192', or 'k_chain 8192 4 0' with a number of chains or a limit."""
    algorithm, segment, parameter, limit = (choice[name] for name in _CHOICE)
    return f"{algorithm} {segment} {parameter} {limit}" if parameter or limit else f"{algorithm} {segment}"


def percentages(text: str) -> list[str]:
    """The percentages in sentences, each once."""
    return sorted(set(re.findall(r"-?[\d.]+ %", text)))


def text_of(text: str) -> Any:
    """The lines of a text without empty ones, or a digest of a long one."""
    if len(text) > _LONG:
        return {"sha256": digest_of(text), "characters": len(text)}
    return [line for line in text.splitlines() if line.strip()]


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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


def differences(expected: Any, found: Any, where: str = "", tolerance: float = 1e-12) -> Iterator[str]:
    """A line for everything that is not as expected; fractions may differ by a tolerance, of themselves.

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
                yield from differences(expected[key], found[key], place, tolerance)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for position, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{where}/{position}", tolerance)
    elif isinstance(expected, float) and isinstance(found, (int, float)) and not isinstance(found, bool):
        if not math.isclose(expected, found, rel_tol=tolerance) and max(abs(expected), abs(found)) > 1e-14:
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
