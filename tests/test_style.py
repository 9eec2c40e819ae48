"""Formatting, lint and types are clean.

`ruff check --fix`, `ruff format` and `clang-format -i` of the environment repair most findings.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("algorithms", "common", "models", "platforms", "simulator", "studies", "validation")
CLANG_FORMAT = str(Path(sys.executable).with_name("clang-format"))
API = ROOT / "studies" / "api"
NOT_OURS = {"build", "results", ".venv", ".git"}


def assert_clean(command: list[str], **environment: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def make_typing_tree() -> Path:
    """A folder in which `collwise` looks the way Python imports it, for tools that only read folders.

    The modules of the public interface lie in studies/api, the floors at the top of the repository, and the mapping in
    setup.py takes effect when Python runs.
    """
    tree = ROOT / "build" / "typing"
    package = tree / "collwise"
    package.mkdir(parents=True, exist_ok=True)
    sources = {floor: ROOT / floor for floor in FLOORS} | {path.name: path for path in API.glob("*.py")}
    for link in package.iterdir():
        if link.is_symlink() and link.readlink() != sources.get(link.name):
            link.unlink()  # the repository has moved, or the module is gone
    for name, source in sources.items():
        # Where tests run side by side, another one may make it first.
        if not (package / name).is_symlink():
            (package / name).symlink_to(source)
    return tree


def test_ruff_check() -> None:
    assert_clean([sys.executable, "-m", "ruff", "check", "--quiet", "."])


def test_ruff_format() -> None:
    assert_clean([sys.executable, "-m", "ruff", "format", "--check", "."])


def test_mypy() -> None:
    tree = make_typing_tree()
    # The public interface is checked as `collwise`, not a second time below `studies`.
    command = [sys.executable, "-m", "mypy", "--exclude", r"studies/api/", str((tree / "collwise").relative_to(ROOT))]
    assert_clean(command, MYPYPATH=str(tree))


def test_clang_format() -> None:
    assert_clean([CLANG_FORMAT, "--dry-run", "-Werror", *c_files()])


def test_no_line_of_c_is_too_long() -> None:
    """Comments included, which clang-format must not wrap: it would run pseudocode together."""
    longest = int(re.findall(r"^ColumnLimit: (\d+)$", (ROOT / ".clang-format").read_text(), re.MULTILINE)[0])
    too_long = [
        f"{file}:{number}: {len(line)} characters"
        for file in c_files()
        for number, line in enumerate((ROOT / file).read_text().splitlines(), start=1)
        if len(line) > longest
    ]
    assert not too_long, "\n".join(too_long)


def test_clang_format_keeps_the_lines_of_a_comment() -> None:
    comment = f"/* Too long:\n *     {'word ' * 30}end\n *     the next line\n */\n"
    command = [CLANG_FORMAT, f"--style=file:{ROOT / '.clang-format'}"]
    assert subprocess.run(command, input=comment, capture_output=True, text=True, check=True).stdout == comment


def c_files() -> list[str]:
    files = [
        str(path.relative_to(ROOT))
        for pattern in ("*.c", "*.h")
        for path in sorted(ROOT.rglob(pattern))
        if NOT_OURS.isdisjoint(path.relative_to(ROOT).parts)
    ]
    assert files, "no C files found"
    return files
