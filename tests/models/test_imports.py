"""The modules of models/ import each other without a cycle, and parameters do not know the procedures that fit them."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def imported(path: Path) -> set[str]:
    """The modules of models/ that a module imports, also within functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("collwise.models"):
            assert node.module is not None
            base = Path(*node.module.split(".")[1:])
            names = [base / alias.name for alias in node.names] if (ROOT / base).is_dir() else [base]
            found |= {str(name.with_suffix(".py")) for name in names}
    return found


def test_no_cycle_between_models_and_fitting() -> None:
    graph = {str(path.relative_to(ROOT)): imported(path) for path in sorted((ROOT / "models").rglob("*.py"))}
    assert {name for names in graph.values() for name in names} <= graph.keys()
    order = list(TopologicalSorter(graph).static_order())
    assert len(order) == len(graph)
    knowing = {name for name, names in graph.items() if any(one.startswith("models/fitting/") for one in names)}
    assert {name for name in knowing if not name.startswith("models/fitting/")} == {"models/registry.py"}
