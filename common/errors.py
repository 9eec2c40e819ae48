"""Errors that reach a person as one line on stderr, and the exit code that goes with each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CollwiseError(Exception):
    """A problem found in good input (a failed case, a wrong result). Exit code 1."""

    exit_code = 1


class UsageError(CollwiseError):
    """Wrong input. The message names the file, line or option, what was wrong and what is valid. Exit code 2."""

    exit_code = 2


def unknown_name(kind: str, given: str, valid: Iterable[str], hint: str = "") -> UsageError:
    """The error for a name that is not among `valid`: names the nearest ones, then all of them.

    `kind` is a noun ("platform"); `hint` says how to see more ("see 'collwise platforms list'").
    """
    names = list(valid)
    near = difflib.get_close_matches(given.lower(), names, n=3, cutoff=0.5)
    message = f"unknown {kind} '{given}'"
    if near:
        message += f"; did you mean {' or '.join(near)}?"
    message += f" Valid: {', '.join(names)}" if near else f"; valid: {', '.join(names)}"
    if hint:
        message += f" ({hint})"
    return UsageError(message)
