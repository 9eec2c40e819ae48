"""The data that Nuriyev & Lastovetsky 2021 publish: tables 2 to 8, as printed.

IEEE Access 9, doi 10.1109/ACCESS.2021.3101689. Sizes are in the paper's KB (KiB), slowdowns in percent, times in
seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from collwise.models.hockney import Hockney
from collwise.models.implementation_aware.parts import Gamma
from collwise.validation.selection.defaults import SEGMENT_BYTES

KIB = 1024
# The default eager limit of Open MPI that section V-C gives.
EAGER_LIMIT_BYTES = 64 * KIB
# "Near optimal" in section V-C: no worse than 10 %.
NEAR_OPTIMAL = 0.10
# Precision of the paper's means is 2.5 % (section V-A), and its tables print whole percent.
INDISTINGUISHABLE_PERCENT = 3


@dataclass(frozen=True)
class PublishedRow:
    """One line of tables 2, 3 and 8; slowdowns in whole percent, as printed."""

    message_kib: int
    best: str
    model: str
    model_percent: int
    openmpi: str
    openmpi_percent: int

    @property
    def message_bytes(self) -> int:
        """m in bytes: the paper's KB are multiples of the 8 KB segment, so 1024 bytes each."""
        return self.message_kib * KIB

    @property
    def indistinguishable(self) -> frozenset[str]:
        """The best algorithm and every printed pick that the measurements do not distinguish from it."""
        picks = ((self.model, self.model_percent), (self.openmpi, self.openmpi_percent))
        return frozenset({self.best} | {name for name, percent in picks if percent <= INDISTINGUISHABLE_PERCENT})


@dataclass(frozen=True)
class PublishedTable:
    """One half of table 2 or 3, or table 8."""

    number: int
    platform: str
    collective: str
    procs: int
    rows: tuple[PublishedRow, ...]

    @property
    def title(self) -> str:
        """'Table 2, bcast on grisou, P = 90'."""
        return f"Table {self.number}, {self.collective} on {self.platform}, P = {self.procs}"


def _rows(*rows: tuple[int, str, str, int, str, int]) -> tuple[PublishedRow, ...]:
    return tuple(PublishedRow(*row) for row in rows)


TABLE_2_GRISOU = PublishedTable(
    2, "grisou", "bcast", 90,
    _rows(
        (8, "binomial", "binary", 3, "split_binary", 160),
        (16, "binary", "binary", 0, "split_binary", 1),
        (32, "binary", "binary", 0, "split_binary", 0),
        (64, "split_binary", "binary", 1, "split_binary", 0),
        (128, "binary", "binary", 0, "split_binary", 1),
        (256, "split_binary", "binary", 2, "split_binary", 0),
        (512, "split_binary", "binary", 2, "chain", 111),
        (1024, "split_binary", "binary", 3, "chain", 88),
        (2048, "split_binary", "binary", 2, "chain", 55),
        (4096, "split_binary", "binary", 1, "chain", 20),
    ),
)  # fmt: skip
TABLE_2_GROS = PublishedTable(
    2, "gros", "bcast", 100,
    _rows(
        (8, "binary", "binomial", 3, "split_binary", 549),
        (16, "binomial", "binomial", 0, "split_binary", 32),
        (32, "binomial", "binomial", 0, "split_binary", 3),
        (64, "split_binary", "binomial", 8, "split_binary", 0),
        (128, "split_binary", "binomial", 8, "split_binary", 0),
        (256, "binary", "binary", 0, "split_binary", 6),
        (512, "binary", "binary", 0, "chain", 7297),
        (1024, "split_binary", "binary", 7, "chain", 6094),
        (2048, "split_binary", "binary", 4, "chain", 3227),
        (4096, "split_binary", "binary", 9, "chain", 2568),
    ),
)  # fmt: skip
TABLE_3_GRISOU = PublishedTable(
    3, "grisou", "gather", 90,
    _rows(
        (64, "binomial", "binomial", 0, "linear_sync", 190),
        (128, "binomial", "binomial", 0, "linear_sync", 104),
        (256, "binomial", "binomial", 0, "linear_sync", 68),
        (512, "binomial", "binomial", 0, "linear_sync", 36),
        (1024, "binomial", "binomial", 0, "linear_sync", 19),
    ),
)  # fmt: skip
TABLE_3_GROS = PublishedTable(
    3, "gros", "gather", 100,
    _rows(
        (64, "binomial", "binomial", 0, "linear_sync", 524),
        (128, "binomial", "binomial", 0, "linear_sync", 271),
        (256, "binomial", "binomial", 0, "linear_sync", 2073),
        (512, "binomial", "binomial", 0, "linear_sync", 71),
        (1024, "binomial", "binomial", 0, "linear_sync", 36),
    ),
)  # fmt: skip
TABLE_8_SHAHEEN = PublishedTable(
    8, "shaheen", "bcast", 1024,
    _rows(
        (8, "binomial", "binomial", 0, "split_binary", 44),
        (40, "binary", "binary", 0, "split_binary", 6),
        (152, "split_binary", "split_binary", 0, "split_binary", 0),
        (232, "binary", "binary", 0, "binary", 0),
        (328, "split_binary", "binary", 1, "split_binary", 0),
        (472, "binary", "binary", 0, "chain", 101),
        (648, "binary", "binary", 0, "chain", 146),
        (1032, "split_binary", "binary", 1, "chain", 25),
        (2088, "split_binary", "binary", 1, "chain", 27),
        (4840, "binary", "binary", 0, "chain", 16),
    ),
)  # fmt: skip
TABLES = (TABLE_2_GRISOU, TABLE_2_GROS, TABLE_3_GRISOU, TABLE_3_GROS, TABLE_8_SHAHEEN)

TABLE_4_GRISOU: dict[str, dict[str, Hockney]] = {
    "bcast": {
        "linear": Hockney(2.2e-12, 1.8e-8),
        "k_chain": Hockney(5.7e-13, 4.7e-9),
        "chain": Hockney(6.1e-13, 4.9e-9),
        "split_binary": Hockney(3.7e-13, 3.6e-9),
        "binary": Hockney(5.8e-13, 4.7e-9),
        "binomial": Hockney(5.8e-13, 4.8e-9),
    },
    "gather": {
        "linear": Hockney(1.5e-5, 1.5e-9),
        "binomial": Hockney(1.2e-4, 8.6e-10),
        "linear_sync": Hockney(5.9e-5, 9.4e-10),
    },
}
TABLE_5_GROS: dict[str, dict[str, Hockney]] = {
    "bcast": {
        "linear": Hockney(1.4e-12, 1.1e-8),
        "k_chain": Hockney(5.4e-13, 4.5e-9),
        "chain": Hockney(4.7e-12, 3.8e-8),
        "split_binary": Hockney(5.5e-13, 4.5e-9),
        "binary": Hockney(5.8e-13, 4.7e-9),
        "binomial": Hockney(1.2e-13, 1.0e-9),
    },
    "gather": {
        "linear": Hockney(1.3e-4, 3.4e-10),
        "binomial": Hockney(1.0e-4, 4.2e-10),
        "linear_sync": Hockney(9.5e-5, 3.9e-10),
    },
}
TABLE_7_SHAHEEN: dict[str, dict[str, Hockney]] = {
    "bcast": {
        "linear": Hockney(2.6e-12, 2.1e-8),
        "k_chain": Hockney(2.5e-13, 2.1e-9),
        "chain": Hockney(2.1e-13, 1.8e-9),
        "split_binary": Hockney(3.4e-13, 2.8e-9),
        "binary": Hockney(3.1e-13, 2.5e-9),
        "binomial": Hockney(1.6e-13, 1.3e-9),
    }
}
PARAMETERS = {"grisou": TABLE_4_GRISOU, "gros": TABLE_5_GROS, "shaheen": TABLE_7_SHAHEEN}

TABLE_6_GAMMA = {
    "grisou": Gamma((float(SEGMENT_BYTES),), ((1.0, 1.114, 1.219, 1.283, 1.451, 1.540),)),
    "gros": Gamma((float(SEGMENT_BYTES),), ((1.0, 1.084, 1.170, 1.254, 1.339, 1.424),)),
}
# gamma of Shaheen II is not published. Those of the other two, and the bounds that inequality (2) gives.
SHAHEEN_GAMMAS = {
    "Grisou's": TABLE_6_GAMMA["grisou"],
    "Gros's": TABLE_6_GAMMA["gros"],
    "1, the lower bound of (2)": Gamma((float(SEGMENT_BYTES),), ((1.0, 1.0),)),
    "p - 1, the upper bound of (2)": Gamma((float(SEGMENT_BYTES),), ((1.0, 2.0),)),
}


def gammas_for(table: PublishedTable) -> dict[str, Gamma]:
    """The gamma of the table's platform, or for Shaheen II every stand-in, by name.

    Table 6 ends at p = 7. Beyond, gamma continues as a straight line (section IV-B) or is constant.
    """
    if table.platform not in TABLE_6_GAMMA:
        return SHAHEEN_GAMMAS
    known = TABLE_6_GAMMA[table.platform]
    last = known.values[0][-1]
    return {
        "table 6": known,
        "table 6, constant beyond 7": Gamma(known.message_bytes, ((*known.values[0], *(last,) * 1000),)),
    }
