"""The data that Nuriyev & Lastovetsky 2021 publish: tables 2 to 8, as printed.

IEEE Access 9, doi 10.1109/ACCESS.2021.3101689. Sizes are in the paper's KB (KiB), slowdowns in percent, times in
seconds.
"""

from __future__ import annotations

import pandas as pd

from collwise.models.hockney import Hockney
from collwise.models.implementation_aware.parts import Gamma
from collwise.validation.times.defaults import SEGMENT_BYTES

KIB = 1024
# The default eager limit of Open MPI that section V-C gives.
EAGER_LIMIT_BYTES = 64 * KIB
# "Near optimal" in section V-C: no worse than 10 %.
NEAR_OPTIMAL = 0.10
# Precision of the paper's means is 2.5 % (section V-A), and its tables print whole percent.
INDISTINGUISHABLE_PERCENT = 3


def _printed(number: int, cluster: str, collective: str, procs: int, text: str) -> pd.DataFrame:
    """The rows of a table, or of one half of it, from its text; slowdowns are whole percent.

    The paper's KB are multiples of its segment of 8 KB, so 1024 bytes each.
    """
    columns = ["kib", "best", "model", "model_percent", "openmpi", "openmpi_percent"]
    rows = pd.DataFrame([line.split() for line in text.strip().splitlines()], columns=columns)
    rows = rows.astype({"kib": int, "model_percent": int, "openmpi_percent": int})
    return rows.assign(
        table=f"Table {number}, {collective} on {cluster}, P = {procs}",
        cluster=cluster,
        collective=collective,
        procs=procs,
        message_bytes=rows.kib * KIB,
    )


TABLE_2_GRISOU = _printed(2, "grisou", "bcast", 90, """
    8     binomial      binary    3  split_binary  160
    16    binary        binary    0  split_binary  1
    32    binary        binary    0  split_binary  0
    64    split_binary  binary    1  split_binary  0
    128   binary        binary    0  split_binary  1
    256   split_binary  binary    2  split_binary  0
    512   split_binary  binary    2  chain         111
    1024  split_binary  binary    3  chain         88
    2048  split_binary  binary    2  chain         55
    4096  split_binary  binary    1  chain         20
""")  # fmt: skip
TABLE_2_GROS = _printed(2, "gros", "bcast", 100, """
    8     binary        binomial  3  split_binary  549
    16    binomial      binomial  0  split_binary  32
    32    binomial      binomial  0  split_binary  3
    64    split_binary  binomial  8  split_binary  0
    128   split_binary  binomial  8  split_binary  0
    256   binary        binary    0  split_binary  6
    512   binary        binary    0  chain         7297
    1024  split_binary  binary    7  chain         6094
    2048  split_binary  binary    4  chain         3227
    4096  split_binary  binary    9  chain         2568
""")  # fmt: skip
TABLE_3_GRISOU = _printed(3, "grisou", "gather", 90, """
    64    binomial      binomial  0  linear_sync   190
    128   binomial      binomial  0  linear_sync   104
    256   binomial      binomial  0  linear_sync   68
    512   binomial      binomial  0  linear_sync   36
    1024  binomial      binomial  0  linear_sync   19
""")  # fmt: skip
TABLE_3_GROS = _printed(3, "gros", "gather", 100, """
    64    binomial      binomial  0  linear_sync   524
    128   binomial      binomial  0  linear_sync   271
    256   binomial      binomial  0  linear_sync   2073
    512   binomial      binomial  0  linear_sync   71
    1024  binomial      binomial  0  linear_sync   36
""")  # fmt: skip
TABLE_8_SHAHEEN = _printed(8, "shaheen-ii", "bcast", 1024, """
    8     binomial      binomial      0  split_binary  44
    40    binary        binary        0  split_binary  6
    152   split_binary  split_binary  0  split_binary  0
    232   binary        binary        0  binary        0
    328   split_binary  binary        1  split_binary  0
    472   binary        binary        0  chain         101
    648   binary        binary        0  chain         146
    1032  split_binary  binary        1  chain         25
    2088  split_binary  binary        1  chain         27
    4840  binary        binary        0  chain         16
""")  # fmt: skip
TABLES = (TABLE_2_GRISOU, TABLE_2_GROS, TABLE_3_GRISOU, TABLE_3_GROS, TABLE_8_SHAHEEN)

# Tables 4, 5 and 7: alpha in seconds and beta in seconds per byte.
PARAMETERS = {
    (cluster, collective): {name: Hockney(*pairs[column]) for name, pairs in printed.items()}
    for collective, clusters, printed in (
        ("bcast", ("grisou", "gros", "shaheen-ii"), {
            "linear": ((2.2e-12, 1.8e-8), (1.4e-12, 1.1e-8), (2.6e-12, 2.1e-8)),
            "k_chain": ((5.7e-13, 4.7e-9), (5.4e-13, 4.5e-9), (2.5e-13, 2.1e-9)),
            "chain": ((6.1e-13, 4.9e-9), (4.7e-12, 3.8e-8), (2.1e-13, 1.8e-9)),
            "split_binary": ((3.7e-13, 3.6e-9), (5.5e-13, 4.5e-9), (3.4e-13, 2.8e-9)),
            "binary": ((5.8e-13, 4.7e-9), (5.8e-13, 4.7e-9), (3.1e-13, 2.5e-9)),
            "binomial": ((5.8e-13, 4.8e-9), (1.2e-13, 1.0e-9), (1.6e-13, 1.3e-9)),
        }),
        ("gather", ("grisou", "gros"), {
            "linear": ((1.5e-5, 1.5e-9), (1.3e-4, 3.4e-10)),
            "binomial": ((1.2e-4, 8.6e-10), (1.0e-4, 4.2e-10)),
            "linear_sync": ((5.9e-5, 9.4e-10), (9.5e-5, 3.9e-10)),
        }),
    )
    for column, cluster in enumerate(clusters)
}  # fmt: skip
BCAST_CLUSTERS = {"grisou": "Grisou", "gros": "Gros", "shaheen-ii": "Shaheen II"}


def _gamma(*values: float) -> Gamma:
    return Gamma((float(SEGMENT_BYTES),), (values,))


_GRISOU, _GROS = (1.0, 1.114, 1.219, 1.283, 1.451, 1.540), (1.0, 1.084, 1.170, 1.254, 1.339, 1.424)
GAMMAS = {
    cluster: {"table 6": _gamma(*known), "table 6, constant beyond 7": _gamma(*known, *(known[-1],) * 1000)}
    for cluster, known in (("grisou", _GRISOU), ("gros", _GROS))
} | {
    "shaheen-ii": {
        "Grisou's": _gamma(*_GRISOU),
        "Gros's": _gamma(*_GROS),
        "1, the lower bound of (2)": _gamma(1.0, 1.0),
        "p - 1, the upper bound of (2)": _gamma(1.0, 2.0),
    }
}
"""By cluster, gamma by name. Table 6 ends at p = 7; gamma continues as a straight line (section IV-B) or is constant.

That of Shaheen II is not published. Those of the other two, and the bounds that inequality (2) gives, stand in for it.
"""
