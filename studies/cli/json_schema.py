"""The JSON Schema of what commands print with --json: one form for all, and the columns of each command's rows.

`FORMS` has the keys of each command's rows and facts as words. The end of a key tells its type, as in all of
collwise; a word can name another one after a colon: `share:number`. A key with a question mark may be missing. Numbers
may be null, which stands for nan; so may what ends in `|null`. A star stands for keys that depend on what was asked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from collwise.common.errors import unknown_name

# Types by the end of a key. Without any of these a key is text.
_ENDS = {
    "number": ("seconds_per_byte", "bytes_per_second", "seconds", "slowdown", "error", "gain"),
    "integer": ("bytes", "procs", "nodes", "per_node", "fanout", "repetitions", "hosts"),
}
_CASE = "collective algorithm procs message_bytes segment_bytes fanout limit_bytes"
_CHOICE = "algorithm segment_bytes fanout limit_bytes"


class Form(NamedTuple):
    """The keys of a command's rows, and of its facts."""

    command: str
    rows: str
    facts: str = ""


_PLATFORM = (
    "name title hosts default_processes_per_node digest cpus_per_node? cores_per_node? link_bytes_per_second? "
    "link_latency_seconds? memory_bytes_per_node:integer|null? memory_bytes_per_second? topology:object|null? "
    "node_faults:array? node_types:array? wires:array?"
)
_BED = "name shape:object facts:object processes:integer slurm:object? check:object? *"
FORMS = (
    Form(
        "algorithms",
        "collective name title function topology parameters:array requires:array selectable:boolean openmpi:object "
        "reference defaults:object by_node:boolean guideline *",
    ),
    Form("simulate", f"{_CASE} processes_per_node nodes root:integer parameters:text seconds error:text"),
    Form(
        "schedule",
        "part count:integer bytes seconds share:number",
        "case:object messages:integer bytes rounds:integer rounds_with_synchronous_sends:integer seconds "
        "lost_packets:integer time_outs:integer",
    ),
    Form(
        "compare",
        "collective procs message_bytes best:object model:object|null baseline:object|null simulated_seconds:object "
        "predicted_seconds:object listed:object|null?",
    ),
    Form(
        "compare",
        "procs message_bytes best:object measured:object? simulated:object? predicted:object? smpi:object? "
        "schedule:object? ratios:object",
    ),
    Form("defaults", "baseline collective procs message_bytes algorithm choice:object|null"),
    Form(
        "decision-map",
        "procs message_bytes best:integer seconds picks:object slowdowns:object",
        "collective methods:array models:object libraries:object",
    ),
    Form("select", f"collective procs from_bytes {_CHOICE}", "tables:array"),
    Form(
        "whatif",
        "collective procs message_bytes before after changes:boolean before_seconds after_seconds ratio:number kept "
        "kept_slowdown kept_slowdown_before:number|null limited_before? share_before:number? limited_after? "
        "share_after:number?",
        "collective platform changes:array made_by kept_rules summary:array",
    ),
    Form(
        "whatif",
        "collective procs message_bytes factor:number choice seconds",
        "collective platform changes:array sweep unit made_by crossovers:array",
    ),
    Form(
        "whatif",
        "collective procs message_bytes calls:integer algorithm parameters default:object default_is tuned:object "
        "default_before:number tuned_before:number default_after:number tuned_after:number",
        "platform changes:array made_by totals:object left_out:array",
    ),
    Form(
        "hierarchy tasks",
        f"{_CHOICE} nodes processes_per_node message_bytes tasks:array seconds:array stabilised_seconds:array "
        "alone_and_at_once:object overlap:number",
    ),
    Form(
        "hierarchy model",
        f"nodes processes_per_node message_bytes {_CHOICE} modelled_seconds measured_seconds",
        "median_error model_machine_seconds whole_machine_seconds",
    ),
    Form(
        "hierarchy tune",
        "collective exhaustive_machine_seconds exhaustive_is_estimate:boolean searches:array decisions:object",
    ),
    Form(
        "profile",
        "collective communicator ranks processes:integer processes_per_node algorithm mpis_own least_bytes "
        "most_bytes mean_bytes:number calls:integer seconds shortest_seconds longest_seconds fastest_run_seconds "
        "slowest_run_seconds parameters share:number default? tuned? default_seconds? tuned_seconds? saving_seconds? "
        "saving_half_width_seconds?",
        "processes:integer seconds collective_seconds run_seconds:array saving_seconds saving_half_width_seconds "
        "made_by:text|null left_out:array",
    ),
    Form(
        "profile",
        "collective communicator processes:integer least_bytes:integer|null calls:integer ran seconds_before:number "
        "seconds_after:number achieved_seconds expected_seconds changed:boolean",
    ),
    Form(
        "application",
        "application collectives procs processes_per_node seconds mean_seconds most_seconds speedup:number "
        "algorithms error:text mean_share:number most_share:number",
    ),
    Form("platforms list", _PLATFORM),
    Form("platforms show", _PLATFORM),
    Form("platforms check", "problem", "file hosts engine"),
    Form("platforms describe", "what value:any how where", "file"),
    Form(
        "calibrate",
        "kind message_bytes within_node:boolean measured_seconds simulated_seconds relative_error:number",
        "platform file points figures:array link_bytes_per_second link_latency_seconds eager_limit_bytes "
        "segments:object",
    ),
    Form("calibrate", "name published:number simulated:number relative_error:number"),
    Form("testbed up", _BED),
    Form("testbed status", _BED),
    Form("models", "name what paper procedures:array"),
    Form("models", "collective algorithm formulas:object", "models:array"),
    Form("fit", "file format:integer platform made_by eager_limit_bytes reduce_seconds_per_byte *"),
    Form("predict", "collective algorithm segment_bytes procs message_bytes seconds", "model"),
    Form("predict", "message_bytes seconds", "model"),
    Form(
        "evaluate",
        "platform collective model predictions:integer mean_error worst_error worst_error_at:text picks:integer "
        "best_picks:integer mean_slowdown worst_slowdown worst_at:text left_out:array unpredicted:integer "
        "library:boolean",
    ),
    Form(
        "recover",
        "platform family procedure heterogeneous:boolean parameter true:number estimated:number worst_error ok:boolean",
    ),
    Form(
        "rank-mapping",
        "message_bytes mapping:array hosts:array predicted_default_seconds predicted_seconds "
        "simulated_default_seconds simulated_seconds predicted_gain simulated_gain",
        "platform collective model procs",
    ),
    Form(
        "measure",
        f"{_CASE} processes_per_node nodes root:integer parameters:text seconds half_width_seconds repetitions "
        "error:text median_seconds experiment launches:array? *",
    ),
    Form(
        "measure",
        "collective procs message_bytes loss:number candidates:integer measured:integer algorithm? segment_bytes? "
        "fanout? limit_bytes? seconds? half_width_seconds? repetitions?",
        "configuration stopped:text cases:integer measured:integer seconds rounds:integer repetitions launch_seconds "
        "full_seconds mean_loss:number",
    ),
    Form("import", "file failed:integer times:array"),
    Form(
        "results list",
        "configuration source platform maker collectives rows:integer failed:integer first_made last_made "
        "details:object",
    ),
    Form(
        "results show",
        f"configuration source platform maker {_CASE} processes_per_node nodes root:integer experiment gather_bytes "
        "peers reply_bytes count:integer delay_seconds seconds root_seconds half_width_seconds repetitions "
        "error:text median_seconds least_seconds greatest_seconds late_starts:integer clock_resolution_seconds "
        "precise:integer made_at details:object",
    ),
    Form(
        "experiment",
        "kind processes:array message_bytes reply_bytes count:integer delay_seconds seconds half_width_seconds "
        "repetitions",
        "engine procs effort:object",
    ),
    Form("irregular-regions", "target variant procs thresholds:object verdict series:array"),
    Form(
        "guidelines",
        "library place phase kind guideline collective procs message_bytes seconds against against_seconds "
        "p_value:number violated:boolean",
        "libraries:array",
    ),
    Form(
        "guidelines",
        "collective procs message_bytes choice:object seconds guideline parts:array parts_seconds",
        "broken:object checked:object others:array parts_from:object",
    ),
    Form(
        "gain",
        "collective procs message_bytes choice:object default:object rules:object|null libcollwise:object|null note "
        "instead:object|null rules_speedup:number libcollwise_speedup:number rules_significant:boolean "
        "libcollwise_significant:boolean",
        "checks:array",
    ),
    Form(
        "verify",
        "engine version collective algorithm cases:integer skipped:integer failures:integer first_failure:text|null "
        "procs:array",
    ),
    Form(
        "crosscheck",
        "library collective algorithm procs message_bytes:integer|array segment_bytes problem smpi? fanout? "
        "ours_seconds? theirs_seconds? ratio:number? differs:boolean? openmpi_id:integer? openmpi_name? "
        "calls:integer? results_agree:boolean? our_messages:integer? their_messages:integer? our_bytes? their_bytes? "
        "same_traffic:boolean?",
        "findings:array",
    ),
    Form(
        "validate",
        "point:object seconds half_width_seconds predicted:object *",
        "maker stages:array verdicts:array errors:array ranks:array slowdowns:array repeated:object "
        "checked:object|null causes:array builtin:array failed:array *",
    ),
    Form("study", "conclusions:array *"),
)
"""The forms of the commands' output; of several for one command one fits."""
COMMANDS = tuple(dict.fromkeys(form.command for form in FORMS))


def schema(command: str | None = None) -> dict[str, Any]:
    """The schema of every command's output, or of one's. Raises UsageError for a command that prints no JSON."""
    if command is not None and command not in COMMANDS:
        raise unknown_name("command with --json", command, COMMANDS)
    named = list(COMMANDS) if command is None else [command]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What collwise prints with --json",
        "type": "object",
        "required": ["collwise", "command", "call", "facts", "rows"],
        "additionalProperties": False,
        "properties": {
            "collwise": {"type": "string", "description": "The version of collwise."},
            "command": {"enum": named, "description": "The command's words."},
            "call": {"type": "string", "description": "The command line, as a shell takes it."},
            "facts": {"type": "object", "description": "What is true of all rows, or stands beside them."},
            "rows": {"type": "array", "items": {"type": "object"}, "description": "The rows of the command's table."},
        },
        "allOf": [
            {
                "if": {"properties": {"command": {"const": one}}},
                "then": {"anyOf": [_form(form) for form in FORMS if form.command == one]},
            }
            for one in named
        ],
    }


def _form(form: Form) -> dict[str, Any]:
    return {"properties": {"rows": {"items": _object(form.rows)}, "facts": _object(form.facts)}}


def _object(words: str) -> dict[str, Any]:
    """The schema of an object with these keys."""
    keys = {}
    required = []
    for word in (word for word in words.split() if word != "*"):
        name, _, kind = word.rstrip("?").partition(":")
        keys[name] = _type(kind or next((known for known, ends in _ENDS.items() if name.endswith(ends)), "text"))
        if not word.endswith("?"):
            required.append(name)
    return {"type": "object", "properties": keys, "required": required, "additionalProperties": "*" in words.split()}


def _type(words: str) -> dict[str, Any]:
    kinds = ["string" if word == "text" else word for word in words.split("|")]
    if kinds == ["any"]:
        return {}
    if "number" in kinds and "null" not in kinds:
        kinds.append("null")
    return {"type": kinds if len(kinds) > 1 else kinds[0]}
