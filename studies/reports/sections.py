"""Reports made of sections: paragraphs, tables and figures, written as one HTML page and as Markdown."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from textwrap import indent

import jinja2
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from collwise.common.files import writable_folder, write_bytes, write_text
from collwise.studies.figures.style import svg
from collwise.studies.present.shown import Table


@dataclass(frozen=True)
class Picture:
    """A drawn figure (SVG), the name of its file without ending, and a sentence on what it shows.

    `alt` describes the figure for people who do not see it, unless the caption does.
    """

    name: str
    data: bytes
    caption: str
    alt: str = ""

    @classmethod
    def of(cls, name: str, figure: Figure, caption: str, alt: str = "") -> Picture:
        """Draws the figure, which is then closed."""
        drawn = svg(figure)
        plt.close(figure)
        return cls(name, drawn, caption, alt)


@dataclass(frozen=True)
class Step:
    """A numbered step, whose text says what to do.

    `files` maps names of files in the report's folder, which are linked, to their purposes. `commands` maps purposes to
    commands.
    """

    text: str
    files: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Notes:
    """Notes under a title, each as a bullet; in HTML, `folded` notes are hidden behind the title."""

    title: str
    lines: Sequence[str]
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a report: paragraphs, files, commands, steps, paragraphs `after` these, tables, figures and notes.

    `files` maps names of files in the report's folder, which are linked, to their purposes. `level` is the level of the
    heading: 2, or 3 for a part of the previous section. In HTML, a `folded` section is hidden behind its heading.
    """

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    commands: Sequence[str] = ()
    steps: Sequence[Step] = ()
    after: Sequence[str] = ()
    notes: Sequence[Notes] = ()
    level: int = 2
    files: Mapping[str, str] = field(default_factory=dict)
    folded: bool = False


def write_sections(title: str, intro: str, sections: Sequence[Section], folder: Path, stem: str) -> tuple[Path, Path]:
    """Writes STEM.html, which embeds its figures, and STEM.md with its figures as files (SVG); returns both paths.

    The file of a figure is STEM-NAME.svg.
    """
    writable_folder(folder)
    data = {}
    for picture in (item for section in sections for item in section.pictures):
        write_bytes(folder / f"{stem}-{picture.name}.svg", picture.data)
        data[picture.name] = base64.b64encode(picture.data).decode()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page, text = folder / f"{stem}.html", folder / f"{stem}.md"
    template = environment.get_template("sections.html")
    anchors = _anchors([section.title for section in sections])
    write_text(page, template.render(title=title, intro=intro, sections=sections, anchors=anchors, data=data))
    write_text(text, f"# {title}\n\n{intro}\n" + "".join(_markdown(sections, stem)))
    return page, text


def _anchors(titles: Sequence[str]) -> list[str]:
    """A unique name for each heading, to which links can refer."""
    found: list[str] = []
    for title in titles:
        plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        found.append(next(name for n in count(1) if (name := plain if n == 1 else f"{plain}-{n}") not in found))
    return found


def _markdown(sections: Sequence[Section], stem: str) -> Iterator[str]:
    for section in sections:
        yield f"\n{'#' * section.level} {section.title}\n"
        yield from (f"\n{paragraph}\n" for paragraph in section.paragraphs)
        if section.files:
            yield "\n" + "".join(f"- [{name}]({name}): {purpose}\n" for name, purpose in section.files.items())
        yield from (f"\n    {command}\n" for command in section.commands)
        yield from (line for number, step in enumerate(section.steps, 1) for line in _markdown_step(number, step))
        yield from (f"\n{paragraph}\n" for paragraph in section.after)
        yield from (f"\n{table.markdown()}" for table in section.tables if table.rows)
        yield from (f"\n![{picture.caption}]({stem}-{picture.name}.svg)\n" for picture in section.pictures)
        for notes in section.notes:
            if notes.lines:
                yield f"\n{notes.title}:\n\n" + "".join(f"- {line}\n" for line in notes.lines)


def _markdown_step(number: int, step: Step) -> Iterator[str]:
    yield f"\n{number}. {step.text}\n"
    if step.files:
        yield "\n" + "".join(f"   - [{name}]({name}): {purpose}\n" for name, purpose in step.files.items())
    for purpose, command in step.commands.items():
        yield f"\n   {purpose}:\n\n{indent(command, ' ' * 7)}\n"
