"""Errors that the command line prints as one line on stderr, each with its exit code, and warnings."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from collwise.common.program import as_called

_MAX_NEAR, _MIN_PART = 3, 3
_NUMBERED = re.compile(r"(.*[a-z])[0-9]+")
"""A name such as 'hdr200', which ends in a number."""
_MUCH_LESS = 0.3
_MAX_LISTED = 20


class CollwiseError(Exception):
    """A problem that occurs although the input is valid (a failed case, a wrong result)."""

    exit_code = 1


class UsageError(CollwiseError):
    """Wrong input. The message names the file, line or option, the error and the valid input.

    Every function that takes users' input may raise it, even if the function's docstring does not say so.
    """

    exit_code = 2


def unknown_name(kind: str, given: str, valid: Iterable[str], hint: str = "") -> UsageError:
    """Error for a name that is not among `valid`; its message lists the nearest names, then all valid ones.

    `kind` is a noun ("platform"); `hint` says how to see more. A long list of valid names is left out if the message
    has a near name and a hint.
    """
    names = list(valid)
    near = nearest_names(given.lower(), names)
    message = f"unknown {kind} '{given}'{near}"
    if not (near and hint and len(names) > _MAX_LISTED):
        message += f"{' Valid' if near else '; valid'}: {', '.join(names)}"
    return UsageError(f"{message} ({hint})" if hint else message)


def check_name(kind: str, given: str, valid: Collection[str], hint: str = "") -> None:
    """Raises the UsageError of `unknown_name` for a name that is not among `valid`."""
    if given not in valid:
        raise unknown_name(kind, given, valid, hint)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Puts `where`, such as an option or a line of a file, before the messages of UsageErrors."""
    try:
        yield
    except UsageError as problem:
        raise UsageError(f"{where}: {problem}") from None


def nearest_names(given: str, valid: Iterable[str]) -> str:
    """A hint '; did you mean X or Y?' with the valid names that resemble the given one, or empty."""
    near = nearest(given, valid)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def nearest(given: str, valid: Iterable[str]) -> list[str]:
    """The valid names that are most like the given one, the nearest first.

    They are the names that contain the given one; if there are none, the names that contain it without its number, if
    these are few; otherwise the names that resemble it.
    """
    names = list(valid)
    word = _NUMBERED.fullmatch(given)
    for part in (given, *([word[1]] if word else [])):
        near = sorted((name for name in names if part in name), key=len) if len(part) >= _MIN_PART else []
        # A part that many names contain, such as the 'node' of 'node200', is no hint.
        if near and (part == given or len(near) <= _MAX_NEAR):
            break
    else:
        near = difflib.get_close_matches(given, names, n=_MAX_NEAR, cutoff=0.5)
    near = near[:_MAX_NEAR]
    # If one valid name nearly equals the given one, names that resemble the given one much less are only noise.
    likeness = [difflib.SequenceMatcher(None, name, given).ratio() for name in near]
    return [name for name, own in zip(near, likeness, strict=True) if own > max(likeness) - _MUCH_LESS]


def note(message: str) -> None:
    """Prints a note on stderr, separate from the results."""
    print(f"collwise: {as_called(message)}", file=sys.stderr)


@cache
def warn(message: str) -> None:
    """Prints a warning on stderr, once for each message."""
    print(f"collwise: warning: {as_called(message)}", file=sys.stderr)
