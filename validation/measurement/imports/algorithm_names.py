"""Names that libraries and other programs have for the catalogue's algorithms. Other algorithms keep their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.validation.libraries.openmpi_untuned import ONE_CHAIN
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

WHOLE_BYTES = 1 << 30
"""The size of a first part that no block exceeds, so that there is no second part."""

NEEDS_LIBRARY = "an id needs a known library"
"""The beginning of the objection to an algorithm's id if the library is not known."""
_OPENMPI: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "bcast": (
            "linear basic_linear", "chain", "pipeline", "split_binary split_binary_tree", "binary binary_tree",
            "binomial binomial_tree", "knomial knomial_tree", "scatter_allgather", "scatter_allgather_ring",
        ),
        "gather": ("linear basic_linear", "binomial", "linear_sync linear_synch"),
        "scatter": ("linear basic_linear", "binomial", "linear_nb"),
        "allgather": ("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc", "sparbit"),
        "allgatherv": ("default", "bruck", "ring", "neighbor", "two_proc", "sparbit"),
        "alltoall": ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
        "alltoallv": ("linear basic_linear", "pairwise"),
        "reduce": ("linear", "chain", "pipeline", "binary", "binomial", "in_order in_order_binary", "rabenseifner"),
        "allreduce": (
            "linear basic_linear", "nonoverlapping non_overlapping", "recursive_doubling", "ring", "segmented_ring",
            "rabenseifner",
        ),
        "reduce_scatter": ("non_overlapping nonoverlapping", "recursive_halving", "ring", "butterfly"),
    }
)  # fmt: skip
"""Algorithms' names in coll/tuned's variables, by collective, in the order of ids from 1. Some have several names."""
_MPICH = {"rabenseifner": "reduce_scatter_allgather"}
"""Names by which other programs force MPICH's algorithms, and MPICH's own names if they differ."""
_VERSION = re.compile(r"Open ?MPI\s*v?(\d+)\.(\d+)", re.IGNORECASE)
_MIN_VERSION = (4, 0)
_OPENMPI_3 = {"bcast": 6, "allreduce": 5, "reduce": 6}
"""The largest ids of Open MPI 3, if later versions have more."""


def openmpi_choice(collective: str, name: str, procs: int, *, by_rules: bool = True) -> Choice | None:
    """The choice of an algorithm with this name in Open MPI's variables; None if the catalogue does not have it.

    If `by_rules` is true, it has a single chain, since several chains become one in a rule whose parameters are 0.
    """
    plain = name.lower().replace("-", "_")
    found = next((place for place, names in enumerate(_OPENMPI.get(collective, ()), 1) if plain in names.split()), 0)
    choice = None if not found else _choice_of_id(collective, found, procs)
    one_chain = choice and by_rules and (collective, choice.algorithm) in ONE_CHAIN
    return replace(choice, parameter=1) if choice and one_chain else choice


def mpich_choice(collective: str, name: str) -> Choice | None:
    """The choice of an algorithm with this name in MPICH's variables; None if the catalogue does not have it."""
    entries = Catalogue.load().collective(collective).algorithms.values()
    wanted = (name, _MPICH.get(name, name))
    return next((Choice(entry.name) for entry in entries if entry.mpich in wanted), None)


def choice_of(collective: str, name: str, library: str, procs: int) -> tuple[Choice, str]:
    """The choice that a name or an id stands for, and an objection to it (empty if there is none).

    A number is the id of an algorithm in `library`, which must be Open MPI or Intel MPI. An empty name, 'default' and
    '-' stand for the library's own decision. Any other text names an algorithm, in the catalogue or not.
    """
    if name.lower() in ("", "-", "default"):
        return LIBRARY_DECIDES, ""
    if not name.isdecimal():
        return Choice(name), ""
    number = int(name)
    if found := _VERSION.search(library):
        version = (int(found[1]), int(found[2]))
        last = len(_OPENMPI.get(collective, ()))
        last = _OPENMPI_3.get(collective, last) if version < _MIN_VERSION else last
        if not 1 <= number <= last:
            return Choice(f"id {number}"), f"{library} has no algorithm {number} of {collective}; its last is {last}"
        return _choice_of_id(collective, number, procs) or Choice(f"id {number}"), ""
    entries = Catalogue.load().collective(collective).algorithms.values()
    if "intel" in library.lower():
        known = next((Choice(entry.name) for entry in entries if entry.name_in("intel") == name), None)
        return known or Choice(f"id {number}"), ""
    return Choice(f"id {number}"), f"{NEEDS_LIBRARY} (Open MPI 4.1, Intel MPI), not '{library}'"


def code_of(collective: str, choice: Choice) -> str:
    """The algorithm whose code runs. With a single chain or no limit of requests, it is another algorithm's code."""
    if (collective, choice.algorithm) == ("alltoall", "linear_sync"):
        return "linear"
    single = ONE_CHAIN.get((collective, choice.algorithm)) if choice.parameter == 1 else None
    return single or choice.algorithm


def entry_of(collective: str, choice: Choice) -> Algorithm | None:
    """The catalogue's entry of a choice's algorithm, if there is one."""
    return Catalogue.load().find(collective, choice.algorithm)


def _choice_of_id(collective: str, number: int, procs: int) -> Choice | None:
    entries = Catalogue.load().collective(collective).algorithms.values()
    # No id has changed its meaning since 4.0.
    name = next((entry.name for entry in entries if number in entry.openmpi.values()), None)
    if name is None:
        return None
    if (collective, name) == ("gather", "linear_sync"):
        return Choice(name, WHOLE_BYTES)
    if (collective, name) == ("alltoall", "linear_sync"):
        return Choice(name, parameter=max(1, procs - 1))
    return Choice(name)
