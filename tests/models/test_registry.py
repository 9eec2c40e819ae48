"""The registry of models: names, families, procedures, and which collectives each model covers."""

from __future__ import annotations

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.fitting.procedures import PROCEDURES
from collwise.models.formulas import FORMULAS
from collwise.models.parameters import FAMILIES, ModelParameters, PathParameters
from collwise.models.registry import (
    CRITICAL_PATH,
    IMPLEMENTATION_AWARE,
    MODEL_NAMES,
    MODELS,
    PROCEDURE_NAMES,
    ModelKind,
    coverage,
    models_of_family,
)


def test_every_name_is_read_back() -> None:
    assert [str(ModelKind.parse(name)) for name in MODEL_NAMES] == list(MODEL_NAMES)
    pairs = ModelKind.parse("hockney_heterogeneous")
    assert (pairs.family, pairs.heterogeneous, pairs.printed) == ("hockney", True, False)
    printed = ModelKind.parse("hockney_by_size_as_printed")
    assert (printed.family, printed.heterogeneous, printed.printed) == ("hockney_by_size", False, True)
    # The implementation-aware model of this name is no second form of another one.
    assert not ModelKind.parse("as_printed").printed


def test_an_unknown_name() -> None:
    with pytest.raises(UsageError, match="unknown model 'hockney_printed'; did you mean hockney"):
        ModelKind.parse("hockney_printed")


def test_every_family_serves_a_model_that_says_what_it_is() -> None:
    assert {kind.family for kind in MODELS.values()} == {IMPLEMENTATION_AWARE, CRITICAL_PATH, *FAMILIES}
    assert all(kind.title and kind.paper and (kind.formulas or kind.by_schedule) for kind in MODELS.values())
    assert [str(kind) for kind in models_of_family("lmo")] == ["lmo_heterogeneous", "lmo"]
    assert [str(kind) for kind in models_of_family("hockney")] == [
        "hockney_heterogeneous", "hockney", "hockney_as_printed",
    ]  # fmt: skip


def test_files_have_the_models_names() -> None:
    assert {*ModelParameters.MODELS, PathParameters.MODEL} < set(MODEL_NAMES)


def test_procedures_and_formulas_are_those_of_the_registry() -> None:
    assert {family: tuple(found) for family, found in PROCEDURES.items()} == dict(PROCEDURE_NAMES)
    assert tuple(PROCEDURE_NAMES) == tuple(FAMILIES)
    assert FORMULAS.keys() == {name for name, kind in MODELS.items() if not kind.by_schedule}


def test_coverage_has_all_of_the_catalogue_but_for_mock_ups() -> None:
    catalogue = Catalogue.load()
    known = [one for one in catalogue.algorithms() if not one.guideline]
    found = coverage()
    assert set(found) == {(one.collective, one.name) for one in known}
    assert not found["bcast", "two_tree"]["hockney"]
    # Whatever has a formula is in the catalogue.
    for kind in MODELS.values():
        for collective, formulas in kind.formulas.items():
            assert {(collective, name) for name in formulas} <= found.keys()
    assert [algorithm for _, algorithm in coverage(["barrier"])] == list(catalogue.collective("barrier").algorithms)


def test_what_models_cover() -> None:
    def models_of(collective: str) -> set[str]:
        return {name for name in MODEL_NAMES if ModelKind.parse(name).algorithms(collective)}

    assert {"hockney"} <= models_of("barrier")
    assert "hockney_as_printed" in models_of("alltoall")
    assert "by_parts" not in models_of("alltoall")
    assert {"lmo_heterogeneous", "by_parts"} <= models_of("scatter")
    assert "traditional" in models_of("bcast")
    assert "lmo" not in models_of("bcast")
    assert "traditional" not in models_of("gather")
    assert models_of("allgather") == {"critical_path"}
    assert all(formulas["critical_path"] for formulas in coverage().values())
