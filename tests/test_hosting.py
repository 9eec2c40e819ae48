"""The files that a hosting site reads: citation, workflow, templates, links of the front pages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from collwise.common.program import __version__

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
FRONT_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def test_the_citation_is_of_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == __version__
    assert citation["title"] == project["name"]
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]


def test_the_change_log_has_this_version() -> None:
    versions = re.findall(r"^## \[?([\w.]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert __version__ in versions


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_runs_what_every_other_machine_runs(file: Path) -> None:
    for job in read(file)["jobs"].values():
        assert ".ci/run" in [step.get("run") for step in job["steps"]]
        assert job["strategy"]["matrix"]["image"] == ["debian:12", "ubuntu:24.04"]


def test_hooks_are_of_this_clone() -> None:
    for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        assert all(hook["language"] == "system" for hook in repository["hooks"])


@pytest.mark.parametrize("file", sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.md")), ids=lambda file: file.name)
def test_a_template_says_what_it_is_for(file: Path) -> None:
    _, head, body = file.read_text(encoding="utf-8").split("---\n", 2)
    assert {"name", "about"} <= yaml.safe_load(head).keys()
    assert body.strip()


@pytest.mark.parametrize("page", FRONT_PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """To files, and to headings as hosting sites name them."""
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if heading:
            lines = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}, target
