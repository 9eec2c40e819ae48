"""The JSON Schema of what commands print with --json.

The output of all commands has the same form. json_schema.toml lists the keys of each command's rows and facts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collwise.common.errors import unknown_name

# Types of values, by the end of their key. The value of any other key is text.
_ENDS = {
    "number": ("seconds_per_byte", "bytes_per_second", "seconds", "slowdown", "error", "gain"),
    "integer": ("bytes", "procs", "nodes", "per_node", "parameter", "repetitions", "hosts"),
}
_DOCUMENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_WORDS: dict[str, str] = _DOCUMENT.pop("words")
_FORMS: dict[str, list[dict[str, str]]] = _DOCUMENT
COMMANDS = tuple(_FORMS)


def schema(command: str | None = None) -> dict[str, Any]:
    """The schema of all commands' output, or of one command's. Raises UsageError for a command that prints no JSON."""
    if command is not None and command not in COMMANDS:
        raise unknown_name("command with --json", command, COMMANDS)
    named = list(COMMANDS) if command is None else [command]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What collwise prints with --json",
        "type": "object",
        "required": ["collwise", "command", "call", "facts", "rows"],
        "additionalProperties": False,
        "properties": {
            "collwise": {"type": "string", "description": "The version of collwise."},
            "command": {"enum": named, "description": "The command's words."},
            "call": {"type": "string", "description": "The command line, quoted for a shell."},
            "facts": {"type": "object", "description": "Facts about all rows, or about the result as a whole."},
            "rows": {"type": "array", "items": {"type": "object"}, "description": "The rows of the command's table."},
        },
        "allOf": [
            {
                "if": {"properties": {"command": {"const": name}}},
                "then": {"anyOf": [_form(form) for form in _FORMS[name]]},
            }
            for name in named
        ],
    }


def _form(form: Mapping[str, str]) -> dict[str, Any]:
    return {"properties": {"rows": {"items": _object(form["rows"])}, "facts": _object(form.get("facts", ""))}}


def _object(text: str) -> dict[str, Any]:
    """The schema of an object whose keys are the words of `text`."""
    keys = {}
    required = []
    words = [word for part in text.split() for word in (_WORDS[part[1:]].split() if part[0] == "@" else [part])]
    for word in (word for word in words if word != "*"):
        name, _, kind = word.rstrip("?").partition(":")
        keys[name] = _type(kind or next((known for known, ends in _ENDS.items() if name.endswith(ends)), "text"))
        if not word.endswith("?"):
            required.append(name)
    return {"type": "object", "properties": keys, "required": required, "additionalProperties": "*" in words}


def _type(words: str) -> dict[str, Any]:
    kinds = ["string" if word == "text" else word for word in words.split("|")]
    if kinds == ["any"]:
        return {}
    if "number" in kinds and "null" not in kinds:
        kinds.append("null")
    return {"type": kinds if len(kinds) > 1 else kinds[0]}
