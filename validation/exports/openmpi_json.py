"""Tables as Open MPI's dynamic rules in JSON, which it reads from version 6.0 on (rule_file_version 3).

The first entry whose range of communicator sizes fits is taken, in it the first rule whose range of message sizes fits;
where none does, Open MPI decides. Ranges include their ends. Message sizes have the units of the classic rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from collwise.algorithms.catalogue import Catalogue
from collwise.validation.openmpi.rules import rules_by_id
from collwise.validation.openmpi.rules_file import OPENMPI_DECIDES, Rule
from collwise.validation.selection.decision_table import DecisionTable, spans

VERSION = "6.0"


def json_rules(tables: Sequence[DecisionTable]) -> str:
    """The text of a file for `coll_tuned_dynamic_rules_filename`. Raises UsageError as `openmpi_rules` does."""
    names = {entry.openmpi_collective: name for name, entry in Catalogue.load().collectives.items()}
    document = {
        "rule_file_version": 3,
        "module": "tuned",
        "collectives": {names[identity]: _entries(sizes) for identity, sizes in rules_by_id(tables, VERSION).items()},
    }
    return json.dumps(document, indent=1) + "\n"


def _entries(sizes: Mapping[int, tuple[Rule, ...]]) -> list[dict[str, Any]]:
    return [
        {"comm_size_min": first, "comm_size_max": "inf" if end is None else end - 1, "rules": rules}
        for first, end, held in spans(list(sizes.items()))
        if (rules := _rules(held))
    ]


def _rules(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    return [
        {
            "msg_size_min": rule.start,
            "msg_size_max": "inf" if following is None else following.start - 1,
            "alg": rule.algorithm,
            **({"faninout": rule.fanout} if rule.fanout else {}),
            **({"seg_size": rule.segment_bytes} if rule.segment_bytes else {}),
        }
        for rule, following in zip(rules, [*rules[1:], None], strict=True)
        if rule.algorithm != OPENMPI_DECIDES
    ]
