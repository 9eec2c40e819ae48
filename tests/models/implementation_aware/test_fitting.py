from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.models.implementation_aware import bcast
from collwise.models.implementation_aware.fitting import fit_algorithm, fit_gamma, fit_hockney
from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.interface import Points
from collwise.models.parameters import AlgorithmFit, ModelParameters, Observation
from collwise.models.registry import AS_PRINTED, BY_PARTS, IMPLEMENTATION_AWARE, MODELS, TRADITIONAL, models_of_family
from collwise.models.single_messages import Hockney

GAMMA = Gamma((1024.0, 8192.0, 65536.0), ((1.0, 1.02, 1.04, 1.06), (1.0, 1.11, 1.22, 1.28), (1.0, 1.5, 2.0, 2.5)))
LIMIT = 65536
SEGMENT = 8192
ALGORITHMS = [(collective, name) for collective, names in MODELS[BY_PARTS].formulas.items() for name in names]
TRUTH = {
    "main/eager": Hockney(2.1e-5, 1.1e-9),
    "main/rendezvous": Hockney(6.3e-5, 0.9e-9),
    "fill/eager": Hockney(2.6e-5, 1.4e-9),
    "fill/rendezvous": Hockney(6.6e-5, 1.35e-9),
    "inflow/eager": Hockney(0.9e-5, 1.15e-9),
    "inflow/rendezvous": Hockney(5.1e-5, 0.95e-9),
    "steady/eager": Hockney(1.2e-5, 1.9e-9),
    "exchange/eager": Hockney(3.2e-5, 1.3e-9),
    "scatter/eager": Hockney(2.4e-5, 1.2e-9),
    "scatter/rendezvous": Hockney(7.1e-5, 1.05e-9),
    "ring/eager": Hockney(2.7e-5, 1.5e-9),
    "ring/rendezvous": Hockney(6.8e-5, 1.25e-9),
    "exchange/rendezvous": Hockney(9.0e-5, 1.0e-9),
    "closing_gather/eager": Hockney(1.9e-5, 0.8e-9),
}


UNSEGMENTED = ("linear", "scatter_allgather", "scatter_ring_allgather")
SEGMENTED_COLLECTIVES = ("bcast", "reduce")


def seconds_of(model: str, collective: str, algorithm: str, one: Observation, truth: Mapping[str, Hockney]) -> float:
    """The seconds of the experiment with the true parameters, message by message."""
    points = Points.of(one.procs, one.message_bytes, one.segment_bytes, one.parameter, eager_limit_bytes=LIMIT)
    parts: list[tuple[str, float, float, str]] = []
    if one.experiment == "exchange":
        parts = [("exchange", 1.0, one.message_bytes / 2, "")]
    elif one.experiment != "gather":
        formula = MODELS[model].formulas[collective][algorithm]
        parts = [
            (part.name, float(part.count), float(part.bytes_each), part.protocol) for part in formula(points, GAMMA)
        ]
    if one.experiment in ("bcast_gather", "gather"):
        name = "main" if model == AS_PRINTED else "closing_gather"
        parts.append((name, one.procs - 1.0, float(one.gather_bytes), ""))
    total = 0.0
    for name, count, size, named in parts:
        whole = one.message_bytes if collective == "gather" else 0
        decides = size if model == BY_PARTS else whole
        protocol = named or ("rendezvous" if decides >= LIMIT else "eager")
        pair = truth[f"{name}/{protocol}"] if count else Hockney(0.0, 0.0)
        total += count * (pair.alpha_seconds + size * pair.beta_seconds_per_byte)
    return total


def experiments(collective: str, algorithm: str) -> list[Observation]:
    found = []
    for procs in (12, 25):
        if collective in ("gather", "scatter"):
            sizes = [64, 256, *(1024 * 2**k for k in range(11))]
            found += [Observation("collective", procs, size, 0, 0.0) for size in sizes]
            continue
        if collective == "reduce":
            found += [
                Observation("collective", procs, 64 * 4**k, segment, 0.0)
                for k in range(9)
                for segment in ((0,) if algorithm in UNSEGMENTED else (0, 2048, SEGMENT, 32768))
            ]
            continue
        segment = 0 if algorithm in UNSEGMENTED else SEGMENT
        for number in range(10):
            closing = (512, 1024, 4096, 16384)[number % 4]
            found.append(Observation("bcast_gather", procs, 8192 * 2**number, segment, 0.0, 0, closing))
            found.append(Observation("gather", procs, 0, 0, 0.0, 0, closing))
            if algorithm == "split_binary":
                found.append(Observation("exchange", procs, 8192 * 2**number, 0, 0.0))
        for size in (64, 1024, 4096):
            found.append(Observation("collective", procs, size, segment, 0.0))
        if segment:
            found += [
                Observation("collective", procs, other * count, other, 0.0)
                for other in (2048, 32768)
                for count in (2, 8, 32, 128)
            ]
    return found


def observed(model: str, collective: str, algorithm: str, truth: Mapping[str, Hockney] = TRUTH) -> list[Observation]:
    return [
        dataclasses.replace(one, seconds=seconds_of(model, collective, algorithm, one, truth))
        for one in experiments(collective, algorithm)
        if model == BY_PARTS or one.experiment != "exchange"
    ]


@pytest.mark.parametrize(
    ("model", "collective", "algorithm"),
    [
        (model, collective, algorithm)
        for model in (BY_PARTS, AS_PRINTED)
        for collective, algorithm in ALGORITHMS
        if algorithm in MODELS[model].formulas.get(collective, {})
    ],
)
def test_known_parameters_are_found_again(model: str, collective: str, algorithm: str) -> None:
    observations = observed(model, collective, algorithm)
    fit = fit_algorithm(model, collective, algorithm, observations, GAMMA, LIMIT)
    assert fit.worst_residual < 1e-6
    assert len(fit.residuals) == len(observations)
    assert fit.parameters
    for name, pair in fit.parameters.items():
        assert pair.alpha_seconds == pytest.approx(TRUTH[name].alpha_seconds, rel=1e-4), name
        assert pair.beta_seconds_per_byte == pytest.approx(TRUTH[name].beta_seconds_per_byte, rel=1e-4), name


@pytest.mark.parametrize(("collective", "algorithm"), [("bcast", "chain"), ("bcast", "binary"), ("gather", "linear")])
def test_outliers_hardly_matter_where_least_squares_fails(collective: str, algorithm: str) -> None:
    observations = observed(BY_PARTS, collective, algorithm)
    noise = np.random.default_rng(7)
    spoiled = [
        dataclasses.replace(one, seconds=one.seconds * (3.0 if index % 10 == 4 else 1 + 0.002 * noise.normal()))
        for index, one in enumerate(observations)
    ]
    assert sum(one.seconds > 2 * true.seconds for one, true in zip(spoiled, observations, strict=True)) >= 2
    fit = fit_algorithm(BY_PARTS, collective, algorithm, spoiled, GAMMA, LIMIT)

    def errors(parameters: Mapping[str, Hockney]) -> list[float]:
        return [
            abs(seconds_of(BY_PARTS, collective, algorithm, one, parameters) / one.seconds - 1) for one in observations
        ]

    assert max(errors(fit.parameters)) < 0.05
    # Plain least squares on the same relative residuals.
    names = sorted(fit.parameters)
    columns = []
    for name in names:
        for unit in (Hockney(1.0, 0.0), Hockney(0.0, 1.0)):
            only = {other: unit if other == name else Hockney(0.0, 0.0) for other in TRUTH}
            columns.append([seconds_of(BY_PARTS, collective, algorithm, one, only) for one in spoiled])
    matrix = np.array(columns).T / np.array([one.seconds for one in spoiled])[:, None]
    scale = np.linalg.norm(matrix, axis=0)
    plain = np.linalg.lstsq(matrix / scale, np.ones(len(matrix)), rcond=None)[0] / scale
    least = {name: Hockney(*plain[2 * i : 2 * i + 2]) for i, name in enumerate(names)}
    assert max(errors(least)) > 3 * max(errors(fit.parameters))


@pytest.mark.parametrize(("collective", "algorithm"), [("bcast", "binomial"), ("reduce", "chain")])
def test_every_segment_size_is_fitted_alone_and_so_are_whole_messages(collective: str, algorithm: str) -> None:
    """With other true parameters for each; what fits into a segment is the same for all that it fits into."""
    truths = {
        segment: {
            name: Hockney(scale * pair.alpha_seconds, pair.beta_seconds_per_byte / scale) for name, pair in all_of
        }
        for segment, scale in ((0, 1.0), (2048, 1.2), (SEGMENT, 1.5))
        for all_of in [TRUTH.items()]
    }
    observations = [
        dataclasses.replace(one, seconds=seconds_of(BY_PARTS, collective, algorithm, one, truths[segment]))
        for segment in truths
        for procs in (12, 25)
        for one in (
            Observation("collective", procs, size, segment, 0.0) for size in (10240, 40960, 163840, 655360, 2621440)
        )
    ]
    fit = fit_algorithm(BY_PARTS, collective, algorithm, observations, GAMMA, LIMIT)
    assert set(fit.by_segment_bytes) == set(truths)
    assert fit.worst_residual < 1e-6
    # alpha and beta of full segments appear as a sum only.
    assert "steady/eager" not in fit.by_segment_bytes[0]
    for name, pair in fit.by_segment_bytes[0].items():
        assert pair.alpha_seconds == pytest.approx(TRUTH[name].alpha_seconds, rel=1e-4), name
        assert pair.beta_seconds_per_byte == pytest.approx(TRUTH[name].beta_seconds_per_byte, rel=1e-4), name
    for segment in (2048, SEGMENT):
        for name, pair in fit.by_segment_bytes[segment].items():
            assert float(pair.predict(segment)) == pytest.approx(
                float(truths[segment][name].predict(segment)), rel=1e-4
            )


@pytest.mark.parametrize("collective", ["bcast", "reduce"])
def test_what_fits_into_one_segment_tells_about_whole_messages(collective: str) -> None:
    own = [Observation("collective", procs, size, 0, 0.0) for procs in (12, 25) for size in (16384, 65536, 1048576)]
    short = [
        Observation("collective", procs, size, SEGMENT, 0.0) for procs in (12, 25) for size in (1, 8192, 8193, 2**20)
    ]
    observations = [
        dataclasses.replace(one, seconds=seconds_of(BY_PARTS, collective, "binomial", one, TRUTH))
        for one in (*own, *short)
    ]
    fit = fit_algorithm(BY_PARTS, collective, "binomial", observations, GAMMA, LIMIT)
    eager = fit.by_segment_bytes[0]["fill/eager"]
    assert eager.alpha_seconds == pytest.approx(TRUTH["fill/eager"].alpha_seconds, rel=1e-4)
    slow = [
        dataclasses.replace(one, seconds=one.seconds * 2) if one in observations[6:] else one for one in observations
    ]
    slower = fit_algorithm(BY_PARTS, collective, "binomial", slow, GAMMA, LIMIT)
    assert slower.by_segment_bytes[0]["fill/eager"].alpha_seconds > 1.5 * eager.alpha_seconds
    rendezvous, of_slower = (one.by_segment_bytes[0]["fill/rendezvous"] for one in (fit, slower))
    assert of_slower.alpha_seconds == pytest.approx(rendezvous.alpha_seconds, rel=1e-6)


def test_parameters_are_never_negative() -> None:
    """Times that fall with the message would ask for a negative beta."""
    observations = [Observation("collective", 10, m, 0, 1e-3 / (1 + m / 1e5)) for m in (1024, 2048, 8192, 32768)]
    fit = fit_algorithm(BY_PARTS, "gather", "linear", observations, GAMMA, LIMIT)
    pair = fit.parameters["main/eager"]
    assert pair.alpha_seconds > 0
    assert pair.beta_seconds_per_byte >= 0


def test_residuals_are_relative_and_keep_the_order() -> None:
    observations = observed(BY_PARTS, "gather", "linear")
    slow = list(observations)
    slow[4] = dataclasses.replace(slow[4], seconds=slow[4].seconds * 2)
    fit = fit_algorithm(BY_PARTS, "gather", "linear", slow, GAMMA, LIMIT)
    assert fit.residuals[4] == pytest.approx(-0.5, abs=0.05)
    assert fit.worst_residual == max(map(abs, fit.residuals)) == pytest.approx(0.5, abs=0.05)
    assert fit.mean_residual == pytest.approx(sum(map(abs, fit.residuals)) / len(slow))
    assert AlgorithmFit({}, ()).mean_residual == AlgorithmFit({}, ()).worst_residual == 0.0


def test_a_fit_needs_experiments() -> None:
    with pytest.raises(CollwiseError, match="no experiments to fit bcast chain"):
        fit_algorithm(BY_PARTS, "bcast", "chain", [], GAMMA, LIMIT)


def test_gamma_is_the_time_over_that_of_two() -> None:
    seconds = {8192: {2: 5e-5, 4: 8e-5, 3: 6e-5}, 1024: {2: 2e-5, 3: 2.1e-5, 4: 2.3e-5}}
    gamma = fit_gamma(seconds)
    assert gamma.message_bytes == (1024.0, 8192.0)
    assert gamma.values[0] == pytest.approx((1.0, 1.05, 1.15))
    assert gamma.values[1] == pytest.approx((1.0, 1.2, 1.6))
    assert float(gamma(4, 8192)) == pytest.approx(1.6)


@pytest.mark.parametrize("procs", [(3, 4), (2, 4)])
def test_gamma_needs_every_process_count(procs: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="every p, starting at 2"):
        fit_gamma({8192: dict.fromkeys(procs, 1e-5)})


def test_hockney_from_roundtrips() -> None:
    sizes = np.array([0.0, 1024.0, 8192.0, 65536.0, 1048576.0, 4194304.0])
    truth = Hockney(3.3e-5, 8.9e-10)
    found = fit_hockney(sizes, truth.predict(sizes))
    assert found.alpha_seconds == pytest.approx(truth.alpha_seconds, rel=1e-6)
    assert found.beta_seconds_per_byte == pytest.approx(truth.beta_seconds_per_byte, rel=1e-6)
    assert truth.predict([1000.0])[0] == pytest.approx(3.3e-5 + 8.9e-7)


@pytest.fixture(scope="module")
def parameters() -> ModelParameters:
    fits = {
        model: {
            collective: {
                name: fit_algorithm(model, collective, name, observed(model, collective, name), GAMMA, LIMIT)
                for name in names
            }
            for collective, names in MODELS[model].formulas.items()
        }
        for model in (BY_PARTS, AS_PRINTED)
    }
    observations = {"bcast": {"chain": observed(BY_PARTS, "bcast", "chain")}}
    return ModelParameters(
        platform="grisou", made_by="SimGrid 3.32", processes_per_node=2, eager_limit_bytes=LIMIT,
        segment_bytes=SEGMENT, gamma=GAMMA, hockney=Hockney(3e-5, 9e-10), fits=fits, observations=observations,
    )  # fmt: skip


def every_algorithm(parameters: ModelParameters) -> list[tuple[str, str, str]]:
    return [
        (str(kind), collective, name)
        for kind in models_of_family(IMPLEMENTATION_AWARE)
        for collective in kind.formulas
        for name in ImplementationAware(parameters, str(kind)).algorithms(collective)
    ]


def test_predictions_over_arrays_are_the_times_the_fit_came_from(parameters: ModelParameters) -> None:
    """One process takes no time."""
    procs, sizes = [1, 2, 3, 50, 100], [8192, 65536, 131072, 4194304]
    for model in (BY_PARTS, AS_PRINTED):
        for collective, names in MODELS[model].formulas.items():
            for name in names:
                segment = SEGMENT if collective in SEGMENTED_COLLECTIVES and name not in UNSEGMENTED else 0
                made = ImplementationAware(parameters, model)
                found = made.predict(collective, name, np.array(procs)[:, None], sizes, segment)
                asked = [[Observation("collective", p, m, segment, 0.0) for m in sizes] for p in procs]
                expected = [[seconds_of(model, collective, name, one, TRUTH) for one in row] for row in asked]
                assert found == pytest.approx(np.array(expected), rel=1e-3), (model, collective, name)
                assert not found[0].any()


def test_traditional_predictions_use_the_roundtrips(parameters: ModelParameters) -> None:
    model, message = ImplementationAware(parameters, TRADITIONAL), 3e-5 + 1048576 * 9e-10
    found = {name: float(model.predict("bcast", name, 90, 1048576, SEGMENT)) for name in bcast.TRADITIONAL}
    assert found == pytest.approx({"binomial": 7 * message, "binary": 12 * message})
    assert model.algorithms("gather") == ()


def test_a_part_that_was_never_fitted_gives_nan(parameters: ModelParameters) -> None:
    eager_only = [one for one in observed(BY_PARTS, "gather", "linear") if one.message_bytes < LIMIT]
    fit = fit_algorithm(BY_PARTS, "gather", "linear", eager_only, GAMMA, LIMIT)
    partial = dataclasses.replace(parameters, fits={BY_PARTS: {"gather": {"linear": fit}}})
    found = ImplementationAware(partial, BY_PARTS).predict(
        "gather", "linear", [1, 8, 8, 8], [LIMIT, LIMIT - 1, LIMIT, 10**6]
    )
    assert np.isnan(found).tolist() == [False, False, True, True]


def test_the_number_of_chains_counts(parameters: ModelParameters) -> None:
    model = ImplementationAware(parameters, BY_PARTS)
    by_default, four, two = (model.predict("bcast", "k_chain", 100, 65536, SEGMENT, k) for k in (0, 4, 2))
    assert by_default == four
    assert two > four


def test_unknown_models_and_algorithms(parameters: ModelParameters) -> None:
    with pytest.raises(UsageError, match="unknown model 'by_part'; did you mean by_parts"):
        _ = ImplementationAware(parameters, "by_part").kind
    with pytest.raises(UsageError, match="unknown bcast algorithm 'chian'; did you mean chain"):
        ImplementationAware(parameters, BY_PARTS).predict("bcast", "chian", 4, 1)


def test_a_saved_file_is_read_as_it_was_written(parameters: ModelParameters, tmp_path: Path) -> None:
    """Residuals are rounded. What is read predicts the same, as parameters are kept to the last digit."""
    path = tmp_path / "grisou.toml"
    parameters.save(path)
    loaded = ModelParameters.load(path)
    assert list(tmp_path.iterdir()) == [path]
    for model, collective, name in every_algorithm(parameters):
        if model != TRADITIONAL:
            fit, again = (one.fits[model][collective][name] for one in (parameters, loaded))
            assert dataclasses.replace(again, residuals=()) == dataclasses.replace(fit, residuals=())
            assert again.residuals == pytest.approx(fit.residuals, abs=1e-6)
    without = [dataclasses.replace(one, fits={}, observations={}) for one in (parameters, loaded)]
    assert without[0] == without[1]


SPOILED = [
    ("platform = ", "plateau = "),
    ("eager_limit_bytes = 65536", 'eager_limit_bytes = "much"'),
    ("segment_bytes = 8192", "segment_bytes = true"),
    ("processes_per_node = 2", "processes_per_node = 0"),
    ("alpha_seconds = 3e-05", 'alpha_seconds = "short"'),
    ("alpha_seconds = 3e-05", "alpha = 3e-05"),
    ("[gamma]", "[gama]"),
    ("values = [\n    [", "values = [\n    [1.0], ["),
    ("values = [\n", "values = []\nother = [\n"),
    ("    8192.0,", "    512.0,"),
    ("    8192.0,", '    "8KiB",'),
    ("    8192.0,", "    nan,"),
    *(("", text) for text in ("", "alpha: 3\n", "format = 99\n", 'platform = "grisou"\n', "format = 1\n")),
    *(
        ("", f"format = 1\n{table}")
        for table in ("by_parts = 3\n", "[by_parts.bcast.chain]\nrelative_residuals = []\n")
    ),
]


@pytest.mark.parametrize(("text", "by"), SPOILED)
def test_a_spoiled_parameter_file_is_named(parameters: ModelParameters, tmp_path: Path, text: str, by: str) -> None:
    """One in which a text is replaced, or, without a text, one that has nothing else."""
    path = tmp_path / "spoiled.toml"
    parameters.save(path)
    right = path.read_text(encoding="utf-8")
    assert text in right
    path.write_text(right.replace(text, by, 1) if text else by, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        ModelParameters.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
