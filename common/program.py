"""The version, and the name under which collwise was called; commands in messages begin with this name."""

from __future__ import annotations

import os
import re

__version__ = "0.1.0"  # pyproject.toml takes it from here
CALLED = "COLLWISE_CALLED"
"""The environment variable in which the launcher of a clone passes the command as it was typed, such as ./collwise."""
NAME = "collwise"
# In messages a command stands in quotes or parentheses, or after a colon; elsewhere the word is the project's name.
_COMMAND = re.compile(rf"(?:(?<=['`(])|(?<=: )){NAME}(?= [a-z])")


def program_name() -> str:
    """The program as it was typed: a path for the launcher of a clone, otherwise a name."""
    return os.environ.get(CALLED) or NAME


def as_called(message: str) -> str:
    """The message, in which commands such as 'collwise platforms show' begin with `program_name()`."""
    return _COMMAND.sub(lambda _: program_name(), message)
