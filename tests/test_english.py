"""Docstrings begin with a short sentence, and texts for people are in plain English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("common", "algorithms", "platforms", "simulator", "models", "validation", "studies")
MAX_WORDS = 20
FRAGMENT = re.compile(r"(?:As of|Of|Those?|That|What|Where|How|Whether|Which|Who|Whose|When|Why)\b(?!-)")
SENTENCE = re.compile(r"(?<!\bal)[.:;?!](?=\s|$)")
FORMULA = re.compile(r" [+=] | [-*/] |\w\(")
"""What is no word is not counted: docstrings of models start with the formula, as the papers print it."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Of the module, its classes and functions; and the strings below its constants and its classes' fields."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            after_constant = [
                one.value
                for before, one in zip(node.body, node.body[1:], strict=False)
                if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(one, ast.Expr)
            ]
            first = [one.value for one in node.body[:1] if isinstance(one, ast.Expr)]
            for text in [*first, *after_constant]:
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield text.lineno, " ".join(text.value.split())


def test_docstrings_begin_with_a_short_sentence() -> None:
    found = []
    for path in (path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))):
        for line, text in docstrings(path):
            sentence = SENTENCE.split(text, maxsplit=1)[0]
            words = 0 if FORMULA.search(sentence) else len(sentence.split())
            if words > MAX_WORDS or FRAGMENT.match(sentence):
                found.append(f"{path.relative_to(ROOT)}:{line}: {words} words: {sentence}")
    assert not found, "\n".join(found)
