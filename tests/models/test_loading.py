"""The models that a parameter file of either kind holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.parameters import ModelParameters
from collwise.models.single_messages import Hockney as FittedHockney
from collwise.validation.fitting.models_by_name import load_model, load_models
from tests.models.parameter_examples import fitted


@pytest.mark.parametrize(
    ("example", "names"),
    [
        ("hockney", ["hockney", "hockney_as_printed"]),
        ("hockney of pairs", ["hockney_heterogeneous", "hockney", "hockney_as_printed"]),
        ("hockney by size", ["hockney_by_size", "hockney_by_size_as_printed"]),
        ("logp", ["logp", "logp_as_printed"]),
        ("logp of pairs", ["logp", "logp_as_printed"]),
        ("loggp of pairs", ["loggp", "loggp_as_printed"]),
        ("plogp of pairs", ["plogp", "plogp_as_printed"]),
        ("lmo", ["lmo"]),
        ("lmo of pairs", ["lmo_heterogeneous", "lmo"]),
    ],
)
def test_the_model_that_a_file_was_made_for_comes_first(example: str, names: list[str], tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    fitted(example).save(file)
    found = load_models(file)
    assert list(found) == names
    assert load_model(file).name == names[0]
    assert [load_model(file, name).name for name in names] == names
    assert {model.platform for model in found.values()} == {"gros"}


def test_a_model_that_is_not_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    fitted("hockney").save(file)
    with pytest.raises(
        UsageError, match=r"unknown model 'hockney_heterogeneous'.*Valid: hockney, .*those in .*p\.toml"
    ):
        load_model(file, "hockney_heterogeneous")


def test_both_formats_are_distinguished(tmp_path: Path) -> None:
    first, second = tmp_path / "algorithms.toml", tmp_path / "messages.toml"
    gamma = Gamma((8192,), ((1.0, 1.1),))
    ModelParameters("gros", "x", 1, 65536, 8192, gamma, FittedHockney(1e-5, 1e-9), {}).save(first)
    fitted("lmo").save(second)
    assert list(load_models(first)) == ["by_parts", "as_printed", "traditional"]
    assert list(load_models(second)) == ["lmo"]
    with pytest.raises(UsageError, match=r"messages\.toml: not a parameter file; make one with"):
        ModelParameters.load(second)
    with pytest.raises(UsageError, match=r"algorithms\.toml: not a parameter file; make one with"):
        type(fitted("lmo")).load(first)
