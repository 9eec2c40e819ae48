"""Docstrings and comments of headers begin with a short sentence, and texts for people pass a linter of prose."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from proselint.checks import __register__
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("common", "algorithms", "platforms", "simulator", "models", "validation", "studies")
MAX_WORDS = 20
FRAGMENT = re.compile(r"(?:As of|Of|Those?|That|What|Where|How|Whether|Which|Who|Whose|When|Why)\b(?!-)")
SENTENCE = re.compile(r"(?<!\bal)[.:;?!](?=\s|$)")
FORMULA = re.compile(r" [+=] | [-*/] |\w\(")
"""What is no word is not counted: docstrings of models start with the formula, as the papers print it."""

SWITCHED_OFF = {
    "typography": "texts are ASCII, since terminals show them and sources have them",
    "lexical_illusions": "'medians of medians' and 'reduce reduce_scatter' are meant",
    "dates_times": "it takes ranges of sizes and names of parameters for dates and times",
}
"""Checks of proselint that are off, and why."""


def docstrings(path: Path) -> list[tuple[int, str]]:
    """Of the module, its classes and functions; and the strings below its constants and its classes' fields."""
    found = []
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
                    found.append((text.lineno, " ".join(text.value.split())))
    return found


def header_comments(path: Path) -> Iterator[tuple[int, str]]:
    """The comments of a C header that begin a line."""
    text = path.read_text(encoding="utf-8")
    for comment in re.finditer(r"^/\*(.*?)\*/", text, flags=re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, comment.start()) + 1, " ".join(re.sub(r"^ \*", "", comment[1], flags=re.M).split())


def sources() -> list[Path]:
    return [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


def test_docstrings_and_comments_of_headers_begin_with_a_short_sentence() -> None:
    headers = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.h"))]
    of_python = [(path, *one) for path in sources() for one in docstrings(path)]
    of_c = [(path, *one) for path in headers for one in header_comments(path)]
    found = []
    for path, line, text in [*of_python, *of_c]:
        sentence = SENTENCE.split(text, maxsplit=1)[0]
        words = 0 if FORMULA.search(sentence) else len(sentence.split())
        if words > MAX_WORDS or FRAGMENT.match(sentence):
            found.append(f"{path.relative_to(ROOT)}:{line}: {words} words: {sentence}")
    assert not found, "\n".join(found)


def by_hand(folder: Path) -> Iterator[str]:
    """The text of a folder's pages that are written by hand, without the blocks that commands write."""
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if "Written by" not in text[:300]:
            yield re.sub(r"<!-- (\S+): begin -->.*?<!-- \1: end -->", "", text, flags=re.DOTALL)


def pages() -> Iterator[str]:
    """The text of README and of pages written by hand, without code, headings and blocks that commands write."""
    for text in [*by_hand(ROOT), *by_hand(ROOT / "docs")]:
        prose = re.sub(r"^```.*?^```|^#.*?$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
        yield re.sub(r"`[^`]*`|\]\([^)]*\)", "(code)", prose)


def texts_of_code() -> Iterator[str]:
    """Help of options, and all strings of the code that have several words: docstrings, help and messages."""
    yield from strings(tomllib.loads((ROOT / "studies" / "cli" / "options.toml").read_text(encoding="utf-8")))
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 2:
                yield node.value


def strings(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, str):
        yield value


def test_prose_passes_the_linter() -> None:
    """All texts are checked as one, which takes half the time."""
    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many(__register__)
    config = {**DEFAULT, "checks": {**DEFAULT["checks"], **dict.fromkeys(SWITCHED_OFF, False)}}
    text = LintFile("texts", "\n(code)\n".join([*pages(), *texts_of_code()]))
    found = [
        f"{one.check_path}: {one.message}: ...{text.content[max(one.span[0] - 80, 0) : one.span[1] + 20]}..."
        for one, _ in text.lint(config)
    ]
    assert not found, "\n".join(found)
