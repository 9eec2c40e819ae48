"""Writes the MPI functions that the interposing library replaces, from catalogue.toml.

Run by the build, with the standard library alone, so that a cluster needs nothing but a Python:
generate_wrappers.py CATALOGUE WRAPPERS.
"""

from __future__ import annotations

import string
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

LINE_LENGTH = 120

# The C parameter for each field of collwise_call.
PARAMETERS = {
    "send": "const void *send",
    "send_count": "int send_count",
    "send_counts": "const int send_counts[]",
    "send_displacements": "const int send_displacements[]",
    "send_type": "MPI_Datatype send_type",
    "receive": "void *receive",
    "receive_count": "int receive_count",
    "receive_counts": "const int receive_counts[]",
    "receive_displacements": "const int receive_displacements[]",
    "receive_type": "MPI_Datatype receive_type",
    "op": "MPI_Op op",
    "root": "int root",
    "comm": "MPI_Comm comm",
}

_HEADER = "/* Generated from catalogue.toml by generate_wrappers.py. */"

_WRAPPER = string.Template("""\
${head}
    if (!${forwards}) {
        collwise_call call = {
${fields}
        };
        interpose_pending pending;
        int status;
        if (!interpose_run(${kind}, &call, &pending, &status)) {
${forward_status}
        }
        interpose_finish(&pending);
        return status;
    }
${forward}
}
""")


def function_of(collective: str) -> str:
    """The collective's MPI function: MPI_Reduce_scatter for reduce_scatter."""
    return f"MPI_{collective.capitalize()}"


def kind_of(collective: str) -> str:
    """The collective's enumerator in collwise.h."""
    return f"COLLWISE_{collective.upper()}"


def filled(start: str, words: Sequence[str], end: str) -> str:
    """Start, words and end, continued below the first word where a line would become too long."""
    lines, line = [], start
    for word in [*(f"{word}, " for word in words[:-1]), words[-1] + end]:
        if len(line + word.rstrip()) > LINE_LENGTH:
            lines.append(line.rstrip())
            line = " " * len(start)
        line += word
    return "\n".join([*lines, line])


def wrapper(collective: str, description: dict) -> str:
    """The MPI function that programs call: an algorithm of ours, or the MPI library's own function."""
    arguments, kind, function = description["arguments"], kind_of(collective), function_of(collective)
    forwards = f"interpose_forwards({kind}, comm)"
    if description["size_from"] == "receive":
        forwards = f"interpose_forwards_sized({kind}, receive_count, receive_type, comm)"
    return _WRAPPER.substitute(
        head=filled(f"int {function}(", [PARAMETERS[argument] for argument in arguments], ") {"),
        forwards=forwards,
        fields="\n".join(f"            .{argument} = {argument}," for argument in arguments),
        kind=kind,
        forward_status=filled(f"            status = P{function}(", arguments, ");"),
        forward=filled(f"    return P{function}(", arguments, ");"),
    )


def buffer_initialiser(side: str, description: dict) -> str:
    """The description of the `send` or `receive` buffer, as the initialiser of an interpose_buffer."""
    arguments = description["arguments"]
    lengths = {f"{side}_count": "COUNT", f"{side}_displacements": "DISPLACEMENTS", f"{side}_counts": "COUNTS"}
    length = next((word for field, word in lengths.items() if field in arguments), "NONE")
    members = [f".length = INTERPOSE_LENGTH_{length}"]
    members += [f".{key} = 1" for key in ("root_only", "in_place") if description.get(key) == side]
    return f"{{{', '.join(members)}}}"


def signature(collective: str, description: dict) -> str:
    """The collective's entry in the table of signatures."""
    flags = [f".has_{argument} = 1" for argument in ("root", "op") if argument in description["arguments"]]
    members = [
        f'.function = "{function_of(collective)}"',
        *flags,
        f".send = {buffer_initialiser('send', description)}",
        f".receive = {buffer_initialiser('receive', description)}",
        f".size_from = INTERPOSE_SIZE_{description['size_from'].upper()}",
    ]
    lines = "".join(f"            {member},\n" for member in members)
    return f"    [{kind_of(collective)}] =\n        {{\n{lines}        }},"


def wrappers_source(catalogue: dict) -> str:
    """C source of the table of signatures and of every collective's MPI function."""
    return "\n".join(
        [
            _HEADER,
            '#include "interpose/fast_path.h"',
            "",
            "const interpose_signature interpose_signatures[COLLWISE_COLLECTIVES] = {",
            *(signature(collective, description) for collective, description in catalogue.items()),
            "};",
            *(f"\n{wrapper(collective, description)}".rstrip() for collective, description in catalogue.items()),
            "",
        ]
    )


if __name__ == "__main__":
    catalogue_path, wrappers_path = map(Path, sys.argv[1:3])
    parsed = tomllib.loads(catalogue_path.read_text(encoding="utf-8"))
    wrappers_path.write_text(wrappers_source(parsed), encoding="utf-8")
