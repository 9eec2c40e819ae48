"""How MPI libraries look a call up in the files and variables that are exported for them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from collwise.common.errors import UsageError


def intel_lookup(value: str, procs: int, message_bytes: int) -> int:
    """The id that a value of I_MPI_ADJUST_COLLECTIVE gives a call; 0 where it says nothing."""
    for preset in value.split(";"):
        identity, _, conditions = preset.partition(":")
        for condition in conditions.split(","):
            match = re.fullmatch(r"(\d+)-(\d+)@(\d+)-(\d+)", condition)
            if match is None:
                raise UsageError(f"malformed condition '{condition}' of I_MPI_ADJUST")
            low, high, first, last = map(int, match.groups())
            if low <= message_bytes <= high and first <= procs <= last:
                return int(identity)
    return 0


def mvapich2_lookup(value: str, message_bytes: int) -> int:
    """The id that a value of MV2_..._TUNING gives a message, as MVAPICH2 searches its ranges."""
    if ":" not in value:
        return int(value)
    ranges = [re.fullmatch(r"(\d+):(\d+)-(\d+|\+)", one) for one in value.split(",")]
    for match in ranges:
        if match is None:
            raise UsageError(f"malformed value '{value}' of MV2_..._TUNING")
        if match[3] == "+" or message_bytes <= int(match[3]):
            return int(match[1])
    last = ranges[-1]
    return int(last[1]) if last is not None else 0


def ucc_lookup(value: str, collective: str, team: int, message: int) -> str | None:
    """The algorithm that a value of UCC_TL_UCP_TUNE written here gives a call; None where UCC decides."""
    for token in value.split("#"):
        name, sizes, teams, _, algorithm = token.split(":")
        (low, high), (first, last) = sizes.split("-"), teams.strip("[]").split("-")
        fits = int(low) <= message and (high == "inf" or message <= int(high))
        if name == collective and fits and int(first) <= team and (last == "inf" or team <= int(last)):
            return algorithm.removeprefix("@")
    return None


def openmpi_json_lookup(text: str, collective: str, procs: int, message: int) -> dict[str, Any] | None:
    """The rule that Open MPI takes for a message size in its unit, by first match; None where it decides itself."""

    def fits(entry: Mapping[str, Any], kind: str, value: int) -> bool:
        least, most = entry.get(f"{kind}_min", 0), entry.get(f"{kind}_max", "inf")
        return least <= value and (most == "inf" or value <= most)

    entries: list[dict[str, Any]] = json.loads(text)["collectives"].get(collective, [])
    for entry in entries:
        if fits(entry, "comm_size", procs):
            rules: list[dict[str, Any]] = entry["rules"]
            return next((rule for rule in rules if fits(rule, "msg_size", message)), None)
    return None
