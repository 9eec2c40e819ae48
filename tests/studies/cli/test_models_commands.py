"""fit --model, predict, compare, recover and models: what a person types, what comes out, and the exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.models.parameters import FittedParameters
from collwise.models.registry import MODEL_NAMES
from collwise.platforms import description
from tests.command_line import Printed, printed
from tests.models.parameter_examples import fitted
from tests.needs import needs
from tests.studies.cli.model_commands import Capture, done, prepared, run

pytestmark = needs("smpi")

HERE = Path(description.__file__).parent


def document_of(arguments: str, capsys: Capture) -> Printed:
    output, _ = done(f"{arguments} --json", capsys)
    return printed(output)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return prepared(tmp_path, monkeypatch)


FIT = "fit --platform exact --model"
PREDICT = "predict --parameters"


@pytest.mark.parametrize("model", ["hockney", "hockney_by_size", "logp", "loggp", "plogp", "lmo"])
def test_every_family_is_fitted_and_predicts(model: str, here: Path, capsys: Capture) -> None:
    output, _ = done(f"{FIT} {model} --procs 3", capsys)
    assert re.search(r"\d+ measurements, .* on the platform\n", output)
    assert re.search(
        rf"{model} by .*, simulated, SimGrid .*\nwritten: results/exact\.{model}\.parameters\.toml", output
    )
    found = FittedParameters.load(here / f"results/exact.{model}.parameters.toml")
    assert (found.family, found.platform, found.procs) == (model, "exact", 3)
    # One way: 53 us and 10 ns a byte, which LogP, of one size, and LMO, of equal ends, take for something else.
    expected = {"logp": 53.01e-6}.get(model, 53e-6 + 4096e-8)
    asked = f"show message results/exact.{model}.parameters.toml 0,1 --sizes 4KiB"
    predicted = document_of(asked, capsys)
    assert predicted.facts["model"] == model
    assert [row["seconds"] for row in predicted.rows] == [pytest.approx(expected, rel=0.01)]


def test_a_fit_as_json_is_what_the_file_holds(here: Path, capsys: Capture) -> None:
    [found] = document_of(f"{FIT} hockney --procedure two-sizes --procs 2 -o h.toml", capsys).rows
    assert found == FittedParameters.load(here / "h.toml").as_document()
    assert found["effort"] == {"measurements": 2, "seconds": pytest.approx(2 * (106e-6 + 655.36e-6), rel=0.01)}


def test_lmo_on_the_heterogeneous_cluster(here: Path, capsys: Capture) -> None:
    output, _ = done("fit --model lmo --platform hcl16 -o lmo16.toml", capsys)
    found = FittedParameters.load(here / "lmo16.toml")
    assert (found.procs, found.parameters.heterogeneous) == (16, True)
    # Of C(16, 2) pairs two sizes, of 3 C(16, 3) one-to-twos two sizes, and series.
    assert found.measurements > 2 * 120 + 2 * 3 * 560
    assert "mean processor_seconds" in output
    assert "processor_seconds[15]" in output
    assert "108 more pairs in the file" in output
    assert "scatter_leap_bytes" in output


def test_homogeneous_parameters_of_a_heterogeneous_cluster(here: Path, capsys: Capture) -> None:
    each = document_of("fit --model hockney --procedure two-sizes --platform exact-heterogeneous -o a.toml", capsys)
    one = document_of(
        "fit --model hockney --procedure two-sizes --homogeneous --platform exact-heterogeneous -o b.toml", capsys
    )
    assert each.rows[0]["procs"] == one.rows[0]["procs"] == 16
    assert isinstance(FittedParameters.load(here / "b.toml").parameters.alpha_seconds, float)
    assert FittedParameters.load(here / "a.toml").parameters.heterogeneous


@needs("openmpi")
@pytest.mark.parametrize(
    "model", ["hockney", *(pytest.param(name, marks=pytest.mark.slow) for name in ("loggp", "lmo"))]
)
def test_fitted_on_this_machine(model: str, here: Path, capsys: Capture) -> None:
    output, _ = done(f"fit --library openmpi --model {model} --procs 3 --repetitions 2:3", capsys)
    assert re.search(r"\w+ by \w+, measured, Open MPI", output)
    (file,) = here.glob(f"results/*.{model}.parameters.toml")
    found = FittedParameters.load(file)
    assert (found.family, f"{found.platform}.{model}.parameters.toml", found.procs) == (model, file.name, 3)
    assert found.measurements > 6
    assert found.parameters.predict(65536) > 0


def test_algorithms_without_a_prediction_are_named(here: Path, capsys: Capture) -> None:
    asked = f"{PREDICT} lmo.toml --collective gather --procs 4 --sizes 1KiB,4KiB,1MiB"
    output, _ = done(asked, capsys)
    assert "gather: never chosen where model lmo has no prediction for them: linear" in output
    times = {
        row["message_bytes"]: row["seconds"] for row in document_of(asked, capsys).rows if row["algorithm"] == "linear"
    }
    assert times.keys() == {1024, 2**20}
    assert re.search(r"4 KiB │ +- │", output)


def test_what_has_no_formula_is_left_out_visibly(here: Path, capsys: Capture) -> None:
    fitted("hockney", platform="exact").save(here / "exact.toml")
    made = f"{PREDICT} exact.toml --collective bcast --procs 4 --sizes 1KiB"
    output, errors = done(made, capsys)
    said = [line for line in (output + errors).splitlines() if re.search("knomial", line)]
    assert any("formula" in line for line in said), (output, errors)
    assert not any("│" in line for line in said), said


@pytest.mark.slow
def test_recovery_succeeds_on_the_platforms_made_for_it(here: Path, capsys: Capture) -> None:
    output, _ = done("check recovery", capsys)
    assert "│ yes │" in re.sub(" +", " ", output)
    assert "NO │" not in output
    assert "exact: lmo by triplets assumes that sending and receiving cost the same; left out" in output


def test_recovery_fails_where_a_parameter_is_off(here: Path, capsys: Capture) -> None:
    """Beyond the eager limit SMPI charges no overheads: the description's parameters do not hold for long messages."""
    text = (HERE / "exact.toml").read_text().replace("eager_limit_bytes = 1073741824", "eager_limit_bytes = 16384")
    (here / "bent.toml").write_text(text.replace('name = "exact"', 'name = "bent"').replace("nodes = 8", "nodes = 2"))
    code, output, errors = run("check recovery --platform bent.toml", capsys)
    assert code == 1
    assert re.search(r"collwise: \d+ of \d+ parameters are off by more than 2 % \(LMO: 5 %\); first: bent, ", errors)
    assert len(errors.strip().splitlines()) == 1
    assert "NO │" in output


def test_coverage_names_every_model_and_algorithm(here: Path, capsys: Capture) -> None:
    rows = document_of("show models --collective all", capsys).rows
    known = [(one.collective, one.name) for one in Catalogue.load().algorithms() if not one.guideline]
    assert [(row["collective"], row["algorithm"]) for row in rows] == known
    formulas = {(row["collective"], row["algorithm"]): row["formulas"] for row in rows}
    assert all(tuple(row) == MODEL_NAMES for row in formulas.values())
    assert formulas["bcast", "knomial"] == {name: name in ("by_parts", "critical_path") for name in MODEL_NAMES}
    assert [name for name, has in formulas["allreduce", "ring"].items() if has] == ["critical_path"]
    assert {name for name, has in formulas["scatter", "binomial"].items() if not has} == {"as_printed", "traditional"}
    assert formulas["alltoall", "linear"]["hockney_as_printed"]
    assert not formulas["barrier", "tree"]["loggp"]


def test_predict_names_what_its_model_does_not_cover(here: Path, capsys: Capture) -> None:
    _, errors = done(f"{PREDICT} loggp.toml --collective bcast,scan --procs 4 -o loggp.times", capsys)
    assert re.search("collwise: model loggp has no formula for scan .*; left out\n", errors)
    done("select loggp.times -o tables.json", capsys)
    (table,) = json.loads((here / "tables.json").read_text())
    assert (table["collective"], table["made_by"]) == ("bcast", "model loggp")
    code, _, errors = run(f"{PREDICT} loggp.toml --collective scan,exscan --procs 4", capsys)
    assert code == 2
    assert errors.startswith("collwise: model loggp has no formula for scan")


def test_fit_takes_collectives_by_the_name_that_other_functions_have() -> None:
    with pytest.raises(UsageError, match="unknown collective 'bcst'; did you mean bcast"):
        collwise.fit("gros", "critical_path", collective="bcst")
