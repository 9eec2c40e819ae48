"""Notebooks as text, and the study from an empty store through the command line."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, meta

from collwise.common.errors import CollwiseError, UsageError
from collwise.common.experiments import Effort
from collwise.studies.cli.options import SimulationOptions
from collwise.studies.papers.notebook import document_of, known_studies, run
from collwise.studies.papers.pjesivac2007.analysis import CLAIMS
from collwise.studies.papers.published import row_of, tables_of
from collwise.studies.papers.study import environment
from collwise.studies.reports.start_page import EXECUTED
from tests.command_line import called, printed

QUESTIONS = ("getting_started", "model_accuracy", "own_cluster", "whatif")
STUDY = [sys.executable, "-m", "collwise.studies", "check", "study"]


def test_known_studies() -> None:
    papers = ["hunold2018", "luo2020", "nuriyev2021", "oflynn2009", "pjesivac2007"]
    assert list(known_studies()) == [*papers, *QUESTIONS, "whatif_sliders"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_executed_notebooks_have_the_cells_of_their_text(name: str) -> None:
    """`docs/regenerate.py notebooks` writes them; what cells show may differ from machine to machine."""
    text = document_of(known_studies()[name])
    executed = json.loads((EXECUTED / f"{name}.ipynb").read_text())
    assert [("".join(cell["source"]), cell["cell_type"]) for cell in executed["cells"]] == [
        (cell.source, cell.cell_type) for cell in text.cells
    ]
    codes = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in codes)
    shown = [output for cell in codes for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert not any(output["output_type"] == "error" for output in shown)
    imports = [line for cell in text.cells for line in cell.source.splitlines() if re.match("(from|import) ", line)]
    assert imports == ["import collwise"]


def test_a_name_that_a_paper_does_not_have() -> None:
    with pytest.raises(KeyError, match="serial"):
        tables_of("oflynn2009")["serial"]
    with pytest.raises(TypeError, match="seconds"):
        row_of(Effort, {"seconds_": 1.0})


def test_help_names_every_study() -> None:
    done = called("check", "study", "--help", cwd=Path())
    assert all(name in done.stdout for name in known_studies())


def run_small(
    code: str, folder: Path, monkeypatch: pytest.MonkeyPatch, quick: bool = False, more_headings: Sequence[str] = ()
) -> tuple[dict[str, Any], list[Path]]:
    notebook = folder / "small.py"
    notebook.write_text(
        "# %% [markdown]\n# # Small\n# %%\nfrom collwise.studies.papers.study import Study\nhere = Study()\n"
        f"# %% [markdown]\n# ## Second part\n# %%\n{code}\n"
    )
    monkeypatch.setattr("collwise.studies.papers.notebook.known_studies", lambda: {"small": notebook})
    headings: list[str] = []
    settings = environment(SimulationOptions(folder / "t.sqlite", "smpi", None, 3), quick)
    found = run("small", settings, folder / "out", lambda title, _: headings.append(title))
    assert headings == ["Small", "Small", "Second part", "Second part", *more_headings]
    return found


def test_page_figures_and_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import sys\nfrom matplotlib import pyplot as plt\n"
        "import pandas as pd\n"
        'here.table("T", pd.DataFrame([(1, "x|y", True, 0.126)], columns=["a", "b", "c", "d"]), "{:.2f}")\n'
        'here.figure(plt.figure(), "A figure.", "plain")\nhere.figure(plt.figure(), "Figure 2.1: the same.")\n'
        'print("17 cases", file=sys.stderr)\nhere.conclude("done")\n'
        'with here.context() as context:\n    here.publish({"answer": 42, "jobs": context.jobs})'
    )
    results, files = run_small(code, tmp_path, monkeypatch)
    assert [path.name for path in files] == ["small.md", "small.json", "plain.png", "figure-2-1.png", "small.ipynb"]
    assert files[0].read_text() == (
        "# Small\n\n## Second part\n\n**T**\n\n| a | b | c | d |\n| --- | --- | --- | --- |\n"
        "| 1 | x\\|y | yes | 0.13 |\n\n![A figure.](plain.png)\n\n"
        "A figure.\n\n![Figure 2.1](figure-2-1.png)\n\nFigure 2.1: the same.\n\n- done\n"
    )
    assert results == json.loads(files[1].read_text()) == {"answer": 42, "jobs": 3, "conclusions": ["done"]}
    assert files[2].read_bytes().startswith(b"\x89PNG")
    notebook = json.loads(files[4].read_text())
    assert (len(notebook["cells"]), notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    assert capsys.readouterr().err == "17 cases\n"


def test_conclusions_come_second_and_long_tables_are_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        'here.table("Long", [[n] for n in range(9)], columns=["n"])\n'
        '# %% [markdown]\n# ## Conclusions\n# %%\nhere.conclude("done")\n# %% [markdown]\n# ## More\n'
    )
    _, (page, *_) = run_small(code, tmp_path, monkeypatch, more_headings=["Conclusions", "Conclusions", "More"])
    rows = "".join(f"\n| {n} |" for n in range(9))
    assert page.read_text() == (
        "# Small\n\n## What to take away\n\n- done\n\n## Second part\n\n"
        f"<details>\n<summary>Long</summary>\n\n| n |\n| --- |{rows}\n\n</details>\n\n## More\n"
    )


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (
            "from collwise.common.errors import UsageError\nraise UsageError('no such thing')",
            UsageError,
            "no such thing",
        ),
        ("1 / 0", CollwiseError, "small.py failed: ZeroDivisionError: division by zero"),
        ("import os\nos._exit(3)", CollwiseError, "small.py failed: Kernel died"),
    ],
)
def test_a_cell_that_fails(
    code: str, kind: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(kind, match=message) as raised:
        run_small(code, tmp_path, monkeypatch)
    assert type(raised.value) is kind
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["small.ipynb"]


def test_settings_travel_and_the_schedule_engine_makes_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """import collwise
with here.context("schedule") as context:
    made = str(collwise.fit("exact", "hockney", context=context))
    here.publish({"jobs": context.jobs, "quick": here.quick, "made": made})"""
    results, _ = run_small(code, tmp_path, monkeypatch, quick=True)
    assert (results["jobs"], results["quick"], results["conclusions"]) == (3, True, [])
    assert results["made"].startswith("<FittedModel hockney on exact, simulated, schedule engine")
    assert (tmp_path / "t.sqlite").exists()


@pytest.mark.slow
def test_nuriyev2021_from_an_empty_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [*STUDY, "nuriyev2021", "-o", str(tmp_path / "out"), "--store", str(tmp_path / "store.sqlite")],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out" / "nuriyev2021.json").read_text())
    assert results["all_points"]["by parts"]["points"] == 90
    for name, costs in results["slowdown"].items():
        assert costs["by parts"]["mean"] <= 0.03, name
        assert costs["by parts"]["worst"] <= 0.10, name
    assert [sum(entry["rows"] for entry in of.values()) for of in results["agreement"].values()] == [30, 30]
    assert results["table_8"]["rows"] == 10
    assert results["table_8"]["engines_apart"]["median"] <= 0.10
    page = (tmp_path / "out" / "nuriyev2021.md").read_text()
    for figure in (
        "figure-3",
        "figure-7",
        "figure-5-bcast-grisou",
        "figure-5-gather-gros",
        "figure-6-grisou",
        "figure-6-gros",
    ):
        assert (tmp_path / "out" / f"{figure}.png").stat().st_size > 10_000
        assert f"({figure}.png)" in page
    for sentence in results["conclusions"]:
        assert sentence in page
        assert sentence in done.stdout


@pytest.mark.slow
def test_pjesivac2007_from_an_empty_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [*STUDY, "pjesivac2007", "--quick", "-o", str(tmp_path / "out"),
         "--store", str(tmp_path / "store.sqlite")],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out" / "pjesivac2007.json").read_text())
    assert set(results["claims"]) == set(CLAIMS)
    assert [sum(tally.values()) for tally in results["tallies"].values()] == [len(CLAIMS)] * 2
    for name, columns in results["loggp"].items():
        assert columns["published"]["g"] == columns["description"]["g"], name
        for procedure in ("culler", "kielmann"):
            for parameter, value in columns[procedure].items():
                assert value == pytest.approx(columns["description"][parameter], rel=0.02), (name, procedure, parameter)
    # Where there is no congestion Hockney is right about a pairwise exchange, and a message per segment about a chain.
    assert results["claims"]["alltoall-hockney"]["verdict"] == "no"
    for step in results["chain_steps"]:
        assert step["simulated_seconds"] == pytest.approx(step["message_seconds"], rel=0.01)
    sizes = [size for _, size in sorted((int(procs), size) for procs, size in results["last_switch_bytes"].items())]
    assert sizes == sorted(sizes)
    page = (tmp_path / "out" / "pjesivac2007.md").read_text()
    figures = [f"figure-{number}" for number in range(1, 6)]
    figures += ["figure-6-as-printed", "figure-7-as-printed", "figure-7-derived"]
    for figure in figures:
        assert (tmp_path / "out" / f"{figure}.png").stat().st_size > 10_000
        assert f"({figure}.png)" in page
    for sentence in results["conclusions"]:
        assert sentence in page
        assert sentence in done.stdout


@pytest.mark.slow
def test_oflynn2009_from_an_empty_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [*STUDY, "oflynn2009", "-o", str(tmp_path / "out"), "--store", str(tmp_path / "store.sqlite"),
         "--json"],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [shown] = printed(done.stdout).rows
    results = json.loads((tmp_path / "out" / "oflynn2009.json").read_text())
    assert len(results["table_7_1"]) == 25
    for cell in results["table_7_1"].values():
        assert cell["two_sizes"] == pytest.approx(cell["published"], rel=1e-4)
    assert results["table_5_1"]["Hockney"]["measurements"] == 1200
    assert results["side_by_side_seconds"] < results["one_after_another_seconds"] / 3

    mean = {key: {name: one["mean"] for name, one in of.items()} for key, of in results["errors"].items()}
    # The thesis's result, where simulation sends as its cluster did.
    for key in ("scatter linear below", "scatter linear_nonblocking above"):
        assert mean[key]["lmo_heterogeneous"] < 0.1
        assert mean[key]["lmo_heterogeneous"] < min(mean[key]["hockney_heterogeneous"], mean[key]["hockney"]) / 4
    assert mean["scatter binomial all"]["hockney_heterogeneous"] < mean["scatter binomial all"]["hockney"] / 1.5
    # And where it does not, which the study has to say.
    assert mean["scatter linear above"]["hockney_heterogeneous"] < mean["scatter linear above"]["lmo_heterogeneous"]
    assert mean["gather linear below"]["hockney_heterogeneous"] < 0.05
    assert results["thresholds"] == {"S": 65536, "M1": None, "M2": None}
    assert results["exact"]["worst_recovery"] < 0.05

    page = (tmp_path / "out" / "oflynn2009.md").read_text()
    for figure in ("5-2", "5-3", "5-4", "5-5", "7-1-and-7-2", "7-3"):
        assert (tmp_path / "out" / f"figure-{figure}.png").stat().st_size > 10_000
        assert f"(figure-{figure}.png)" in page
    for sentence in results["conclusions"]:
        assert sentence in page
        assert sentence in shown["conclusions"]


def test_sentences_find_what_they_say_among_the_variables_of_their_notebook() -> None:
    """Also of studies that take too long for tests; a paper without a template has its few sentences in its cells."""
    templates = [(path.with_suffix(".md.j2"), path) for path in known_studies().values()]
    found = [(template, notebook) for template, notebook in templates if template.exists()]
    assert len(found) == 4
    jinja = Environment()
    jinja.filters |= dict.fromkeys(("number", "percent", "seconds", "size"), str)
    for template, notebook in found:
        tree = ast.parse(notebook.read_text(encoding="utf-8"))
        names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        names |= {alias.asname or alias.name for one in ast.walk(tree) if hasattr(one, "names") for alias in one.names}
        names |= {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
        calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
        shown = [
            one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr in ("say", "conclude_all")
        ]
        names |= {str(word.arg) for one in shown for word in one.keywords}
        source = template.read_text(encoding="utf-8")
        assert meta.find_undeclared_variables(jinja.parse(source)) <= names, template.name
        blocks = re.findall(r"\{% block (\w+) %\}", source)
        assert sorted(blocks) == sorted(str(ast.literal_eval(one.args[0])) for one in shown), template.name
