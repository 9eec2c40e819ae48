"""Reading and writing of message sizes, process counts and their ranges (8KiB, 50,80,90, 8KiB:4MiB:x2)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from collwise.common.errors import UsageError, warn

_UNITS = {"": 1, "B": 1, "K": 2**10, "KIB": 2**10, "M": 2**20, "MIB": 2**20, "G": 2**30, "GIB": 2**30}
_UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZE = re.compile(r"([0-9]{1,18})\s*([A-Za-z]*)")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]*)")
_RATIO = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:\s*:\s*([0-9]{1,9}(?:\.[0-9]{1,9})?))?")
_DURATIONS = {"": 1, "s": 1, "min": 60, "h": 3600}
_SIZE_HELP = "write a whole number with B, KiB, MiB, GiB (or KB, MB, GB), for example 8KiB"
_RANGE_HELP = {
    "size": "write a list (8KiB,64KiB), a range that multiplies (8KiB:4MiB:x2) or adds (8KiB:32KiB:+8KiB)",
    "process count": "write a list (50,80,90), a range that multiplies (2:128:x2) or adds (10:90:+10)",
}
_MAX_VALUES = 100_000


def parse_size(text: str) -> int:
    """Bytes from '8KiB', '64K', '1MB' or '512'."""
    match = _SIZE.fullmatch(text.strip())
    if match is not None and re.fullmatch("[KMG]i?b", match[2]):
        raise UsageError(f"malformed size '{text}': b stands for bits; {_SIZE_HELP}")
    if match is None or match.group(2).upper() not in _UNITS:
        raise UsageError(f"malformed size '{text}': {_SIZE_HELP}")
    return int(match.group(1)) * _UNITS[match.group(2).upper()]


def parse_duration(text: str) -> float:
    """Seconds, more than 0, from '90s', '10min', '2h', '1.5h' or '90'."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match.group(1)) * _DURATIONS.get(match.group(2), 0) if match else 0.0
    if not seconds:
        raise UsageError(f"malformed duration '{text}': write a positive number with s, min or h, for example 10min")
    return seconds


def parse_ratio(text: str) -> float:
    """4.0 from '4:1' or '4'; more than 0."""
    match = _RATIO.fullmatch(text.strip())
    ratio = float(match[1]) / float(match[2] or 1) if match and float(match[2] or 1) else 0.0
    if not ratio:
        how = "write two numbers above 0 with a colon between them, or one number, for example 4:1 or 4"
        raise UsageError(f"malformed ratio '{text}': {how}")
    return ratio


def parse_sizes(text: str) -> list[int]:
    """Ascending bytes from '8KiB,64KiB', '8KiB:4MiB:x2' or '8KiB:32KiB:+8KiB'; warns if the steps miss the end."""
    return _parse_series(text, "size")


def parse_counts(text: str) -> list[int]:
    """Ascending positive whole numbers (process counts) from '50,80,90', '2:128:x2' or '10:90:+10'."""
    counts = _parse_series(text, "process count")
    if counts[0] < 1:
        raise UsageError(f"malformed process count '{text}': write at least 1")
    return counts


def format_size(size_bytes: int) -> str:
    """The size in the largest binary unit that divides it: '8 KiB', '4 MiB', '1000 B'."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes} B"


def typed_sizes(sizes: Iterable[int]) -> str:
    """Message sizes in bytes as options take them: '8KiB,1MiB'."""
    return ",".join(format_size(size).replace(" ", "") for size in sizes)


def counted(number: int, noun: str) -> str:
    """The number and the noun, in the plural unless the number is 1: '1 row', '2 rows', '3 processes'."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def format_seconds(seconds: float) -> str:
    """Seconds with three significant digits and a suitable unit: '61.2 us', '-4.05 ms', '1.20 s'."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        value = float(f"{seconds / factor:.3g}")
        if (digits := abs(value)) >= 1:
            return f"{value:.{2 if digits < 10 else 1 if digits < 100 else 0}f} {unit}"
    return f"{value:.3g} ns"


def _parse_value(text: str, kind: str) -> int:
    if kind == "size":
        return parse_size(text)
    if re.fullmatch(r"[0-9]{1,9}", text.strip()) is None:
        ranges = f"; {_RANGE_HELP[kind]}" if kind in _RANGE_HELP else ", as in 2:128:x2"
        raise UsageError(f"malformed {kind} '{text}': write a whole number, for example 64{ranges}")
    return int(text)


def _parse_series(text: str, kind: str) -> list[int]:
    found = {}
    for part in text.split(","):
        found[part] = _expand_range(part, kind) if ":" in part else [_parse_value(part, kind)]
    values = {value for steps in found.values() for value in steps}
    for part in found:
        first, *rest = map(str.strip, part.split(":"))
        if rest and _parse_value(end := rest[0], kind) not in values:
            last = found[part][-1]
            shown = format_size(last) if kind == "size" else last
            where = ":".join([first, *rest])
            warn(f"{kind} range '{where}' ends at {shown}, since the steps miss {end}; {text},{end} includes it")
    return sorted(values)


def _expand_range(part: str, kind: str) -> list[int]:
    first, *rest = map(str.strip, part.split(":"))
    step = rest[-1]
    if len(rest) != 2 or step[:1] not in ("x", "+"):
        raise UsageError(f"malformed {kind} range '{part}': {_RANGE_HELP[kind]}")
    value, last = _parse_value(first, kind), _parse_value(rest[0], kind)
    multiplies = step[0] == "x"
    by = _parse_value(step[1:], "factor" if multiplies else kind)
    if by < (2 if multiplies else 1) or last < value or (multiplies and value == 0):
        raise UsageError(f"{kind} range '{part}' never ends or is empty: {_RANGE_HELP[kind]}")
    values = []
    while value <= last:
        values.append(value)
        value = value * by if multiplies else value + by
        if len(values) > _MAX_VALUES:
            raise UsageError(f"{kind} range '{part}' has more than {_MAX_VALUES} values")
    return values
