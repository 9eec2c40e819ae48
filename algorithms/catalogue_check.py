"""Checks the keys and values of catalogue.toml; the error names the line of the first problem.

The build also runs this file, as catalogue_check.py CATALOGUE, so the file uses only the standard library.
"""

from __future__ import annotations

import difflib
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

TREES = frozenset(
    {"flat", "chain", "k_chain", "binary", "binomial", "knomial", "two_tree"}
    | {"in_order_binary", "in_order_binomial", "tree"}
)
DOUBLING = frozenset({"dissemination", "hypercube", "butterfly", "recursive_doubling", "recursive_halving"})
TOPOLOGIES = (*sorted(TREES), *sorted(DOUBLING), "ring", "complete")
"""The shapes in which algorithms send messages: `tree` is any other tree, `complete` any other pattern.

An algorithm that sends each block in a message of its own is also `complete`.
"""

PART_PARAMETERS = ("segment_bytes", "first_bytes", "bound_bytes")
LIMIT_PARAMETERS = ("limit_bytes", "between_segment_bytes")
MIN_COUNTS = {"chains": 1, "radix": 2, "max_requests": 1, "within": 0, "leaders": 1}
MAX_COUNTS = {"within": 3}
COUNT_PARAMETERS = tuple(MIN_COUNTS)
_ALL_PARAMETERS = (*PART_PARAMETERS, *LIMIT_PARAMETERS, *COUNT_PARAMETERS)
_BESIDE = {"limit_bytes": "bound_bytes", "between_segment_bytes": "segment_bytes"}
CONDITIONS = ("power_of_two", "even", "commutative")

LIBRARIES = ("mpich", "intel", "mvapich2", "ucc", "pgmpi")
"""Libraries other than Open MPI; the catalogue lists their names for our algorithms. pgmpi is PGMPITuneLib."""
LIBRARIES_PATH = Path(__file__).with_name("libraries.toml")

_MOCK_UP_KEYS = ("guideline", "calls", "message_memory", "integer_memory")
_RESERVED = ("default", "guidelines")

Problem = tuple[str, str]
"""A key, such as bcast.algorithm[2].openmpi, and text that says what is wrong with it and what is valid."""
_Known = Mapping[str, Mapping[str, Any]]
_Taken = dict[tuple[str, Any], tuple[str, str]]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_wholes(value: object) -> bool:
    return isinstance(value, dict) and all(_is_whole(item) for item in value.values())


_Form = tuple[Callable[[object], bool], str]
_TEXT: _Form = (lambda v: isinstance(v, str) and bool(v.strip()), "text that is not empty")
_WHOLE: _Form = (_is_whole, "a whole number")
_TEXTS: _Form = (lambda v: isinstance(v, list) and all(isinstance(item, str) for item in v), "a list of names")
_TRUTH: _Form = (lambda v: isinstance(v, bool), "true or false")
_FORMULA: _Form = (
    lambda v: isinstance(v, str) and bool(re.fullmatch(r"[nPIcC0-9+*/() -]+", v)),
    "a formula of n, P, I, c, C",
)

_COLLECTIVE: Mapping[str, _Form] = {
    "title": _TEXT,
    "message_bytes": _TEXT,
    "openmpi_collective": _WHOLE,
    "openmpi_message": _TEXT,
    "arguments": _TEXTS,
    "size_from": _TEXT,
    "algorithm": (
        lambda v: isinstance(v, list) and all(isinstance(item, dict) for item in v),
        "tables [[...algorithm]]",
    ),
}
_COLLECTIVE_OPTIONS: Mapping[str, _Form] = {"root_only": _TEXT, "in_place": _TEXT}
_ALGORITHM: Mapping[str, _Form] = {
    "name": (
        lambda v: isinstance(v, str) and bool(re.fullmatch(r"[a-z][a-z0-9_]*", v)) and v not in _RESERVED,
        f"lower-case letters, digits and _, a letter first, and not {' or '.join(_RESERVED)}",
    ),
    "title": _TEXT,
    "function": _TEXT,
    "topology": _TEXT,
    "parameters": _TEXTS,
    "requires": _TEXTS,
    "selectable": _TRUTH,
    "openmpi": (_is_wholes, 'ids by version, such as { "4.1" = 9 }, or {} if Open MPI does not have the algorithm'),
    "reference": _TEXT,
}
_ALGORITHM_OPTIONS: Mapping[str, _Form] = {
    "defaults": (_is_wholes, "a number for the parameter, such as { radix = 4 }"),
    "by_node": _TRUTH,
    "real_mpi_only": _TRUTH,
    "guideline": _TEXT,
    "calls": _TEXTS,
    "message_memory": _FORMULA,
    "integer_memory": _FORMULA,
    "mpich": _TEXT,
    "intel": _WHOLE,
    "mvapich2": _WHOLE,
    "ucc": _TEXT,
    "pgmpi": _TEXT,
    "smpi": _TEXT,
    "smpi_segment_bytes": (lambda v: isinstance(v, int) and _is_whole(v) and v > 0, "a whole number of at least 1"),
}


class CatalogueError(ValueError):
    """A problem in the catalogue. The message names file, line and key, the error and the valid input."""


def read_catalogue(path: Path) -> dict[str, Any]:
    """The parsed and checked catalogue. Raises CatalogueError for the first problem."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as problem:
        raise CatalogueError(f"{path}: cannot be read: {problem}") from None
    except tomllib.TOMLDecodeError as problem:
        found = re.search(r"line (\d+)", str(problem))
        line = int(found.group(1)) if found else len(text.splitlines())
        raise CatalogueError(f"{path}:{line}: broken TOML: {problem}") from None
    known = tomllib.loads(LIBRARIES_PATH.read_text(encoding="utf-8"))
    for key, what in catalogue_problems(document, known):
        raise CatalogueError(f"{path}:{_line_of(text, key)}: {key}: {what}")
    return document


def catalogue_problems(document: Mapping[str, Any], known: _Known) -> Iterator[Problem]:
    """All problems of a catalogue; `known` is the content of libraries.toml, which lists the libraries' algorithms."""
    for collective, about in document.items():
        if not isinstance(about, dict):
            yield collective, f"is not a table; valid: [{collective}] with {', '.join(_COLLECTIVE)}"
            continue
        problems = list(_keys(about, collective, _COLLECTIVE, _COLLECTIVE_OPTIONS))
        yield from problems
        if problems:
            continue
        taken: _Taken = {}
        for number, entry in enumerate(about["algorithm"], start=1):
            where = f"{collective}.algorithm[{number}]"
            problems = list(_keys(entry, where, _ALGORITHM, _ALGORITHM_OPTIONS))
            if not problems:
                problems += _names(collective, entry, where, known, taken)
                problems += _algorithm(collective, entry, where)
            yield from problems


def _keys(
    table: Mapping[str, Any], where: str, required: Mapping[str, _Form], optional: Mapping[str, _Form]
) -> Iterator[Problem]:
    forms = {**required, **optional}
    for key in table:
        if key not in forms:
            yield f"{where}.{key}", f"unknown key{_near(key, forms)}; valid: {', '.join(forms)}"
    for key, (fits, valid) in forms.items():
        if key in table and not fits(table[key]):
            yield f"{where}.{key}", f"is {_shown(table[key])}; valid: {valid}"
        elif key not in table and key in required:
            yield where, f"the key {key} is missing; valid: {_valid_values(key) or valid}"


def _valid_values(key: str) -> str:
    values = {"topology": TOPOLOGIES, "parameters": ("[]", *_ALL_PARAMETERS), "requires": ("[]", *CONDITIONS)}
    return ", ".join(values.get(key, ()))


def _algorithm(collective: str, entry: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Problems of one algorithm's values; their types were checked before."""
    # Except for mock-ups, reduce_scatter_block uses the functions of reduce_scatter.
    shared = collective == "reduce_scatter_block" and "guideline" not in entry
    function = f"collwise_{'reduce_scatter' if shared else collective}_{entry['name']}"
    if (given := entry["function"]) != function:
        name = entry["name"]
        yield f"{where}.function", f"is '{given}'; valid: {function}, as the algorithm's name is '{name}'"
    lists = {
        "topology": (entry["topology"].split(", "), TOPOLOGIES),
        "parameters": (entry["parameters"], _ALL_PARAMETERS),
        "requires": (entry["requires"], CONDITIONS),
    }
    for key, (names, valid) in lists.items():
        for name in names:
            if name not in valid:
                yield f"{where}.{key}", f"unknown name '{name}'{_near(name, valid)}; valid: {', '.join(valid)}"
    yield from _parameters(entry, where)
    if entry["selectable"] and (unfit := next((key for key in ("by_node", "guideline") if entry.get(key)), None)):
        yield f"{where}.selectable", f"is true despite {unfit}; valid: false for algorithms with by_node or guideline"
    missing = [key for key in _MOCK_UP_KEYS if key not in entry]
    if missing and len(missing) < len(_MOCK_UP_KEYS):
        yield where, f"the key {missing[0]} is missing; valid: all of {', '.join(_MOCK_UP_KEYS)}, or none"


def _parameters(entry: Mapping[str, Any], where: str) -> Iterator[Problem]:
    given = entry["parameters"]
    for group in (PART_PARAMETERS, LIMIT_PARAMETERS, COUNT_PARAMETERS):
        same = [name for name in given if name in group]
        if len(same) > 1:
            yield f"{where}.parameters", f"has {' and '.join(same)}; valid: at most one of {', '.join(group)}"
    for name, other in _BESIDE.items():
        if name in given and other not in given:
            yield f"{where}.parameters", f"has {name} without {other}; valid: both, or {other} alone"
    counts, defaults = [name for name in given if name in COUNT_PARAMETERS], entry.get("defaults", {})
    if set(defaults) != set(counts):
        valid = "none, since no parameter is a count"
        if counts:
            valid = f"{{ {counts[0]} = N }}, the value that 0 stands for"
        key = f"{where}.defaults" if defaults else where
        yield key, f"defaults has {', '.join(defaults) or 'nothing'}; valid: {valid}"
    for name, value in defaults.items():
        least, most = MIN_COUNTS.get(name, 0), MAX_COUNTS.get(name)
        if value < least or (most is not None and value > most):
            valid = f"at least {least}" if most is None else f"from {least} to {most}"
            yield f"{where}.defaults", f"{name} is {value}; valid: {valid}"


def _names(collective: str, entry: Mapping[str, Any], where: str, known: _Known, taken: _Taken) -> Iterator[Problem]:
    """Problems with an algorithm's names: names that a library does not have, or that another algorithm already has."""
    names = [("name", f"the name '{entry['name']}'", entry["name"])]
    for version, number in entry["openmpi"].items():
        names.append(("openmpi", f"{version} = {number}", (version, number)))
        versions = known["openmpi"]["bcast"]
        largest = known["openmpi"].get(collective, {}).get(version, 0)
        if version not in versions:
            what = f"unknown version '{version}'{_near(version, versions)}"
            yield f"{where}.openmpi", f"{what}; valid: {', '.join(versions)}"
        elif not entry["selectable"]:
            yield f"{where}.openmpi", "is given for an algorithm that is not selectable; valid: {}"
        elif not 1 <= number <= largest:
            valid = f"1 to {largest}" if largest else "none"
            yield f"{where}.openmpi", f"Open MPI {version} has no algorithm {number} of {collective}; valid: {valid}"
    for library in (name for name in LIBRARIES if name in entry):
        names.append((library, str(entry[library]), entry[library]))
        valid_names = known[library].get(collective, [])
        if entry[library] not in valid_names:
            texts = [str(name) for name in valid_names]
            what = f"{entry[library]} is not in {LIBRARIES_PATH.name}{_near(str(entry[library]), texts)}"
            yield f"{where}.{library}", f"{what}; valid: {', '.join(texts) or 'none'}"
    for key, shown, value in names:
        other_place, other = taken.setdefault((key, value), (where, entry["name"]))
        if other_place != where:
            yield f"{where}.{key}", f"{shown} already belongs to another algorithm ({other}); valid: an unused one"


def _near(given: str, valid: Iterable[str]) -> str:
    near = difflib.get_close_matches(given, list(valid), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _shown(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _line_of(text: str, key: str) -> int:
    """The line number of a key of the catalogue, or of its table's header if the table lacks the key."""
    collective, _, rest = key.partition(".")
    found = re.fullmatch(r"algorithm\[(\d+)\](?:\.(.+))?", rest)
    entry, last = (int(found[1]), re.escape(found[2] or "")) if found else (0, re.escape(rest))
    section, seen, header = "", 0, 1
    for number, line in enumerate(text.splitlines(), start=1):
        if opened := re.match(r"\s*\[+\s*([\w-]+)\s*(\.\s*algorithm)?\s*\]", line):
            section = opened[1]
            seen += section == collective and opened[2] is not None
            inside = section == collective and (seen == entry if opened[2] else entry == 0)
            header = number if inside else header
        elif section == collective and seen == entry and last and re.match(rf"\s*[\"']?{last}[\"']?\s*=", line):
            return number
    return header


def main(arguments: Collection[str]) -> int:
    """Checks the catalogues. Prints the first problem, if there is one, and returns 2; otherwise returns 0."""
    try:
        for path in arguments:
            read_catalogue(Path(path))
    except CatalogueError as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
