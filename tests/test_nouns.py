"""One array of times: only Times holds seconds over choices, no function has modes, and nobody asks for kinds."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("common", "algorithms", "platforms", "simulator", "models", "validation", "studies")

SAY_NOTHING = {
    *("parts", "points", "places", "truth", "new", "names"),
    *("questions", "stored", "kinds", "cells", "known", "answers"),
}
"""Names of modules from which nobody would know what is in them."""
SOURCES = {"predicted", "simulated", "measured"}
"""The sources of times."""
KINDS_OF_MODELS = {"CriticalPath", "ImplementationAware", "ScheduledModel", "PlayedModel"}
RUNNERS = {"SmpiRunner", "ScheduleRunner", "MpiRunner"}


@cache
def trees(*floors: str) -> list[tuple[Path, ast.Module]]:
    paths = [path for floor in floors for path in sorted((ROOT / floor).rglob("*.py"))]
    return [(path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    return [*ast.walk(tree)]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in nodes(tree) if isinstance(node, ast.FunctionDef))


def test_no_two_classes_have_one_name() -> None:
    found = Counter(node.name for _, tree in trees(*FLOORS) for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in found.items() if count > 1 and not name.startswith("_")] == []


def test_names_of_modules_say_what_is_in_them() -> None:
    assert [path for path, _ in trees(*FLOORS) if path.stem in SAY_NOTHING] == []


def test_only_times_hold_an_array_of_seconds() -> None:
    """Elsewhere a field named `seconds` is a number, or has the samples of an experiment."""
    experiments = {"TaskTimes", "Series"}
    found = [
        f"{path}:{field.lineno} {node.name}.{field.target.id}"
        for path, tree in trees("validation", "studies")
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef) and node.name not in {"Times", *experiments}
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and "seconds" in field.target.id
        and ("Array" in ast.unparse(field.annotation) or "tuple[tuple" in ast.unparse(field.annotation))
    ]
    assert not found


@pytest.mark.parametrize("floor", ["validation", "studies/api"])
def test_no_parameter_has_a_default_that_names_a_source(floor: str) -> None:
    found = [
        f"{path}:{one.lineno} {one.name}"
        for path, tree in trees(floor)
        for one in functions(tree)
        for default in [*one.args.defaults, *one.args.kw_defaults]
        if isinstance(default, ast.Constant) and default.value in SOURCES
    ]
    assert not found


@pytest.mark.parametrize("name", ["by", "fill", "sources"])
def test_no_public_function_has_modes(name: str) -> None:
    found = [
        f"{path}:{one.lineno} {one.name}"
        for path, tree in trees("studies/api")
        for one in functions(tree)
        if not one.name.startswith("_")
        and name in [each.arg for each in [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]]
    ]
    assert not found


@pytest.mark.parametrize("kinds", [KINDS_OF_MODELS, RUNNERS], ids=["models", "runners"])
def test_nobody_asks_which_model_or_runner_it_is(kinds: set[str]) -> None:
    """What they can do is a property of theirs, such as `plays`."""
    homes = {
        path
        for path, tree in trees(*FLOORS)
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef) and node.name in kinds
    }
    found = [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, tree in trees(*FLOORS)
        if path not in homes
        for node in nodes(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and kinds & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
    ]
    assert not found
