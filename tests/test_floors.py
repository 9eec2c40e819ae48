"""A floor of the house imports only from the floors below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Top to bottom. Modules on one floor do not import each other.
FLOORS = (("studies",), ("validation",), ("simulator", "models"), ("platforms", "algorithms"), ("common",))
BELOW = {
    module: {name for lower in FLOORS[level + 1 :] for name in lower}
    for level, floor in enumerate(FLOORS)
    for module in floor
}


def imported_floors(source: str, package: str) -> Iterator[tuple[int, str]]:
    """The line and the floor of every import of a `collwise` module in `source`, a module of `package`.

    Imports inside functions count too. `package` is dotted and resolves relative imports.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base += [node.module] if node.module else []
            names = [".".join([*base, alias.name]) for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "collwise" and len(parts) > 1:
                # The public interface, `collwise` itself, is a part of the top floor.
                yield node.lineno, parts[1] if parts[1] in BELOW else "studies"


def package_of(path: Path) -> str:
    """The package that a module of the repository is in: 'collwise' for those of studies/api."""
    folders = path.relative_to(ROOT).parent.parts
    return ".".join(("collwise", *(() if folders == ("studies", "api") else folders)))


@pytest.mark.parametrize("floor", BELOW)
def test_floor_imports_only_from_below(floor: str) -> None:
    allowed = BELOW[floor] | {floor}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports collwise.{imported}"
        for path in sorted((ROOT / floor).rglob("*.py"))
        for line, imported in imported_floors(path.read_text(), package_of(path))
        if imported not in allowed
    ]
    assert not wrong, f"{floor} may import {', '.join(sorted(allowed))}:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import collwise.studies.reports.report", ["studies"]),
        ("from collwise.common.errors import UsageError", ["common"]),
        ("from collwise import validation, common", ["validation", "common"]),
        ("from ..studies import report", ["studies"]),
        ("from .. import studies", ["studies"]),
        ("from . import hockney", ["models"]),
        ("def f():\n    import collwise.simulator.store as s", ["simulator"]),
        ("import numpy, collwise", []),
        ("from collwise import simulate", ["studies"]),
        ("from collwise.timings import simulate", ["studies"]),
    ],
)
def test_every_form_of_import_is_seen(source: str, expected: list[str]) -> None:
    assert [floor for _, floor in imported_floors(source, "collwise.models")] == expected
