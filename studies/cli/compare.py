"""collwise compare: the best choices by some times beside what others choose, and what that costs."""

from __future__ import annotations

import collwise
from collwise.studies.cli.derive import derived

compare = derived(collwise.compare, "compare bcast.times bcast.json openmpi-4.1 --figures figures", figures=True)
