"""Reports made of sections: paragraphs, tables and figures, written as one HTML page and as Markdown."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from matplotlib.figure import Figure

from collwise.common.files import writable_folder, write_text
from collwise.studies.figures import style as draw


@dataclass(frozen=True)
class TextTable:
    """Cells as people read them. `left` columns are aligned left; rows in `bad`, by position, are marked."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: int = 1
    title: str = ""
    bad: frozenset[int] = frozenset()

    def markdown(self) -> str:
        """As a Markdown table, marked rows in bold."""
        align = ["---" if number < self.left else "---:" for number in range(len(self.columns))]
        lines: list[Sequence[object]] = [self.columns, align]
        lines += [
            [f"**{cell}**" if number in self.bad and str(cell) else cell for cell in row]
            for number, row in enumerate(self.rows)
        ]
        body = "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
        return f"{self.title}:\n\n{body}" if self.title else body


@dataclass(frozen=True)
class Picture:
    """A figure, the name of its file without ending, and what it shows in a sentence."""

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class Section:
    """A part of a report: paragraphs, then tables, then figures."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[TextTable] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True)
class _Drawn:
    path: Path
    caption: str

    @property
    def data(self) -> str:
        return base64.b64encode(self.path.read_bytes()).decode()


def write_sections(title: str, intro: str, sections: Sequence[Section], folder: Path, stem: str) -> tuple[Path, Path]:
    """Writes STEM.html, which holds its figures, and STEM.md with the figures (PNG) beside it; returns both paths.

    Raises UsageError when the folder cannot be written.
    """
    writable_folder(folder)
    drawn = [
        [_Drawn(draw.save(one.figure, folder / f"{stem}-{one.name}.png"), one.caption) for one in section.pictures]
        for section in sections
    ]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("sections.html").render(
        title=title, intro=intro, sections=list(zip(sections, drawn, strict=True))
    )
    paths = folder / f"{stem}.html", folder / f"{stem}.md"
    write_text(paths[0], page)
    write_text(paths[1], _markdown(title, intro, sections, drawn))
    return paths


def _markdown(title: str, intro: str, sections: Sequence[Section], drawn: Sequence[Sequence[_Drawn]]) -> str:
    parts = [f"# {title}\n\n{intro}\n"]
    for section, pictures in zip(sections, drawn, strict=True):
        parts.append(f"\n## {section.title}\n")
        parts += [f"\n{paragraph}\n" for paragraph in section.paragraphs]
        parts += [f"\n{one.markdown()}" for one in section.tables if one.rows]
        parts += [f"\n![{one.caption}]({one.path.name})\n" for one in pictures]
    return "".join(parts)
