"""The numbers of O'Flynn's thesis that simulation can be compared with.

M. O'Flynn, PhD thesis, University College Dublin, 2009. Its cluster has 16 nodes of 7 types (appendix A), LAM 7.1.3 and
Gigabit Ethernet. Units are seconds and bytes unless a name says otherwise.
"""

from __future__ import annotations

from collwise.models.hockney import Hockney
from collwise.models.lmo import Thresholds

KIB = 1024

NODES_BY_TYPE = {1: 2, 2: 6, 3: 2, 4: 1, 5: 1, 6: 1, 7: 3}
"""Appendix A.2: the number of nodes of each type."""

TABLE_7_1_MICROSECONDS = {
    (1, 1): (63.9, 0.00967),
    (1, 2): (124.0, 0.00941),
    (1, 3): (61.2, 0.00932),
    (1, 4): (121.0, 0.0172),
    (1, 5): (60.7, 0.00948),
    (1, 6): (61.4, 0.00950),
    (1, 7): (61.3, 0.00939),
    (2, 2): (122.0, 0.00963),
    (2, 3): (58.3, 0.00932),
    (2, 4): (122.0, 0.017),
    (2, 5): (60.8, 0.00934),
    (2, 6): (57.9, 0.00941),
    (2, 7): (60.4, 0.00934),
    (3, 3): (39.4, 0.0151),
    (3, 4): (61.8, 0.00914),
    (3, 5): (43.1, 0.00918),
    (3, 6): (46.3, 0.00923),
    (3, 7): (38.1, 0.00908),
    (4, 5): (61.2, 0.0146),
    (4, 6): (60.9, 0.0143),
    (4, 7): (61.2, 0.0142),
    (5, 6): (59.0, 0.0488),
    (5, 7): (48.8, 0.00923),
    (6, 7): (53.3, 0.00923),
    (7, 7): (36.1, 0.00921),
}
"""Table 7.1: alpha (us) and beta (us per byte) between nodes of two types; none where a type has one node."""

HOMOGENEOUS_HOCKNEY = Hockney(63.9e-6, 0.00967e-6)
"""Section 7.1: the homogeneous model of the cluster."""

TABLE_5_1_FORMULAS = {
    "Hockney": "k C(n,2)",
    "LogGP": "3 s C(n,2) + 2 r C(n,2)",
    "PLogP": "s C(n,2) + 2 m r C(n,2), or with saturated gaps m s C(n,2) + 2 m r C(n,2)",
    "LMO": "k0 C(n,2) + k1 C(n,2) + 3 k2 C(n,3)",
}
"""Table 5.1: the number of measurements."""
TABLE_5_1_SECONDS = {"Hockney": 0.17, "PLogP": 63.11, "LMO": 0.33}
"""Table 5.1: the time that they took on 16 nodes; LogGP's parameters were made from PLogP's."""
HOCKNEY_SIZES = 10
"""Section 5.3: k, the number of message sizes from 0 to 100 kb."""

PARALLEL_SECONDS, SERIAL_SECONDS = 5.0, 16.0
"""Section 4.4: estimating heterogeneous Hockney to 2.5 % at 95 %, with pairs side by side and one after another."""

THRESHOLDS = Thresholds(64 * KIB, 5 * KIB, 64 * KIB)
"""Section 7.2: S, M1 and M2 of LAM on this cluster."""

FIGURE_5_5_BYTES = (100 * KIB, 200 * KIB)
"""Section 5.3.1: between these sizes the linear scatter was the faster one, and Hockney chose the binomial one."""
