"""Types of options and arguments. A type checks a word of the command line, and offers names to the shell."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from collwise import arguments
from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, check_name, located
from collwise.common.files import new_file, writable_file, writable_folder
from collwise.common.units import parse_size
from collwise.platforms import interconnect_names, known

FORCE = "collwise.force"
"""The key in click's context under which --force is kept."""


def checked_new_file(path: Path) -> Path:
    """The path of a file to write. Raises UsageError if that is not possible, or if the file exists without --force."""
    return writable_file(new_file(path, click.get_current_context().meta.get(FORCE, False)))


def checked_new_script(path: Path) -> Path:
    """The path of a script to write, checked like a new file. If `path` is a folder, the script gets its usual name."""
    from collwise.validation.measurement.scripts import script_file

    return checked_new_file(script_file(path))


class Written(click.ParamType):
    """A path that the command writes to. It is checked before the command starts, after all options are read."""

    name = "path"

    def __init__(self, check: Callable[[Path], Path], kind: str) -> None:
        self.check = check
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path as it was given."""
        return Path(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leaves the names of files to the shell."""
        return [CompletionItem(incomplete, type=self._kind)]


NEW_FILE = Written(checked_new_file, "file")
"""The type of an option that names a file to write; one that exists needs --force."""
NEW_SCRIPT = Written(checked_new_script, "file")
"""The type of an option that names a script to write, or the folder for it."""
FOLDER = Written(writable_folder, "dir")
"""The type of an option that names a folder to write files into."""


class Parsed(click.ParamType):
    """The type of an option whose value `parse` makes from text. A UsageError of `parse` also names the option.

    A shell completes the names that `offer` returns for the rest of the command line. If `listed` is true, the shell
    completes each name of a comma-separated list.
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        offer: Callable[[click.Context], Iterable[str]] = lambda _: (),
        listed: bool = True,
    ) -> None:
        self.name = name
        self._parse = parse
        self._offer = offer
        self._listed = listed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the value that `parse` makes from text. Any other value is a default, and is returned unchanged."""
        return parsed(self._parse, value, param) if isinstance(value, str) else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The offered names that begin with the last typed word, without names that were typed before."""
        before, comma, last = incomplete.rpartition(",") if self._listed else ("", "", incomplete)
        given = before.split(",")
        offered = (name for name in self._offer(ctx) if name.startswith(last) and name not in given)
        return [CompletionItem(before + comma + name) for name in offered]


class _CollectiveWord(Parsed):
    """A collective, by its name in the catalogue or in MPI."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the name in the catalogue. What is wrong in the catalogue's file is not said of the option."""
        Catalogue.load()
        return super().convert(value, param, ctx)


class PlatformWord(Parsed):
    """A platform, by its name or the name of its file."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of known platforms, and files."""
        return super().shell_complete(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def _clusters(_: click.Context) -> Iterable[str]:
    return (*known(), *interconnect_names())


def _collectives(_: click.Context) -> Iterable[str]:
    return Catalogue.load().collectives


def _algorithms(context: click.Context) -> Iterable[str]:
    """The algorithms of the collectives on the command line, or of all collectives if it does not name any yet."""
    given = context.params.get("collective") or context.params.get("collectives")
    collectives = [given] if isinstance(given, str) else given or [None]
    return dict.fromkeys(algorithm.name for name in collectives for algorithm in Catalogue.load().algorithms(name))


def _one_collective(text: str) -> str:
    """The collective's name in the catalogue. Raises UsageError for an unknown name and for a list of names."""
    if "," in text:
        raise UsageError(f"'{text}' is a list; name one collective")
    catalogue = Catalogue.load()
    return catalogue.collective(catalogue.our_name(text)).name


def checked(check: Callable[[str], Any]) -> Callable[[str], str]:
    """A parser that leaves text as it is. It raises the UsageError that `check` may raise."""

    def keep(text: str) -> str:
        check(text)
        return text

    return keep


def parsed(parse: Callable[[str], Any], text: str, param: click.Parameter | None) -> Any:
    """Parses the text. The UsageError that `parse` may raise also names the option."""
    if param is None:
        return parse(text)
    with located(param.opts[0]):
        return parse(text)


class NamedChoice(click.Choice):
    """A choice of one name; the error for an unknown name suggests the nearest. `kind` is a noun ("model")."""

    def __init__(self, kind: str, names: Iterable[str]) -> None:
        super().__init__(tuple(names))
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the name. Raises UsageError, with similar names, for a name that is not a choice."""
        return str(parsed(self._known, value, param))

    def _known(self, name: str) -> str:
        if "," in name:
            raise UsageError(f"'{name}' is a list; name one {self._kind}; valid: {', '.join(self.choices)}")
        check_name(self._kind, name, self.choices)
        return name


def named_choices(kind: str, valid: Iterable[str]) -> click.ParamType:
    """Comma-separated names, each once; the error for an unknown one suggests the nearest. `kind` is a noun."""
    valid = tuple(valid)

    def parse(text: str) -> tuple[str, ...]:
        given = tuple(name.strip() for name in text.split(",") if name.strip())
        for name in given:
            check_name(kind, name, valid)
        if not given or len(set(given)) < len(given):
            raise UsageError(f"name each {kind} once, comma-separated; valid: {', '.join(valid)}")
        return given

    return Parsed("names", parse, lambda _: valid)


class FiniteRange(click.FloatRange):
    """A range of numbers that excludes nan and infinities, which ranges of click include."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number. Fails if the number is not finite."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


_WITH_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*[A-DF-Za-df-z/][A-Za-z/]*\s*")


class Scaled(FiniteRange):
    """A number above 0, or of at least `minimum`, that is multiplied by `scale`.

    The scale converts the option's unit into the unit of the code.
    """

    def __init__(self, scale: float, minimum: float | None = None, maximum: float | None = None) -> None:
        super().__init__(0 if minimum is None else minimum, maximum, min_open=minimum is None)
        self._scale = scale

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number in the code's unit."""
        if with_unit := _WITH_UNIT.fullmatch(str(value)):
            self.fail(f"'{value}' has a unit; write only the number, {with_unit[1]} in the option's unit", param, ctx)
        return float(f"{super().convert(value, param, ctx) * self._scale:.12g}")


PATH = click.Path(path_type=Path)
SIZE = Parsed("size", parse_size)
SIZES = Parsed("sizes", arguments.sizes)
COUNTS = Parsed("counts", arguments.counts)
NAMES = Parsed("names", arguments.names)
ALGORITHM = Parsed("text", str, _algorithms, listed=False)
ALGORITHMS = Parsed("names", arguments.names, _algorithms)
COLLECTIVE = _CollectiveWord("text", _one_collective, _collectives, listed=False)
COLLECTIVES = Parsed("collectives", arguments.collectives, lambda context: ("all", *_collectives(context)))
PLATFORM = PlatformWord("platform", arguments.platform, lambda _: known(), listed=False)
WORD_OF_PLATFORM = PlatformWord("platform", str, lambda _: known(), listed=False)
"""The type of a word that names a platform, which is not loaded."""
WORD_OF_CLUSTER = PlatformWord("cluster", str, _clusters, listed=False)
"""The type of a word that names a platform, an interconnect or times, or is a number of nodes."""
CLUSTER = PlatformWord("cluster", arguments.platform_or_interconnect, _clusters, listed=False)
"""The type of a word that names a platform, which is loaded, or an interconnect, whose name is kept."""
