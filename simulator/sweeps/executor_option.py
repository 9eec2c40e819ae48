"""The places where sweeps run, as an option names them. It may be here, a Dask cluster, or jobs of a batch system.

Every command reads this for its help; what starts Dask is in dask_workers.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from collwise.common.errors import UsageError, check_name, unknown_name
from collwise.common.units import parse_size

LOCAL, DASK = "local", "dask"
BATCH_SYSTEMS = {"slurm": ("Slurm", "sbatch"), "oar": ("OAR", "oarsub")}
"""Batch systems by their names in options, with their own name and the command that submits jobs."""

EXECUTORS = (LOCAL, f"{DASK}:ADDRESS", *BATCH_SYSTEMS)
"""The forms that the name of an executor can have, for messages and help."""

_ADDRESS = re.compile(r"((tcp|tls|ucx|ws|wss)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}|\S.*\.json")
_INSTALL = "install it (pip install 'dask[distributed]' dask-jobqueue)"


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def _word(text: str) -> str:
    if not re.fullmatch(r"[\w./:+@-]+", text):
        raise UsageError(f"'{text}' cannot be put into a job script; valid: letters, digits and ._-+:/@")
    return text


_KEYS: Mapping[str, Callable[[str], Any]] = {
    "jobs": _count,
    "cores": _count,
    "memory": parse_size,
    "walltime": _word,
    "queue": _word,
    "account": _word,
    "interface": _word,
}
"""The keys that describe batch jobs, and how their values are read."""


@dataclass(frozen=True)
class Place:
    """A place where sweeps run: `kind` is local, dask or a batch system; `address` is Dask's scheduler, or its file.

    `keys` describe the batch jobs in which workers run.
    """

    kind: str = LOCAL
    address: str = ""
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """True if the sweep runs in threads of this process."""
        return self.kind == LOCAL


def parse_place(text: str) -> Place:
    """The place that `local`, `dask:ADDRESS` or `slurm:KEY=VALUE,...` names."""
    kind, colon, rest = text.partition(":")
    if kind == LOCAL and not rest:
        return Place()
    if kind == DASK:
        if not _ADDRESS.fullmatch(rest):
            raise UsageError(
                f"'{text}' has no address; write dask:HOST:PORT, for example dask:node1:8786, or dask:FILE.json, the "
                "file that 'dask scheduler --scheduler-file FILE.json' writes"
            )
        _need("distributed", "distributed")
        return Place(kind, rest)
    if kind not in BATCH_SYSTEMS or (colon and not rest):
        raise unknown_name("executor", text, EXECUTORS, "slurm and oar also with keys, such as slurm:jobs=4,cores=8")
    _need("dask_jobqueue", "dask-jobqueue")
    return Place(kind, keys=_keys(rest))


def _keys(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        check_name("key", key, _KEYS)
        if not equals or key in found:
            raise UsageError(f"'{word}': give each key once, with a value, for example jobs=4,cores=8")
        try:
            found[key] = _KEYS[key](value)
        except UsageError as problem:
            raise UsageError(f"{key}: {problem}") from None
    return found


def _need(module: str, package: str) -> None:
    if find_spec(module) is None:
        raise UsageError(f"sweeps on other machines need the package {package}; {_INSTALL}")
