"""Sphinx builds the documentation as a site, and the manual page, from the pages in this folder."""

from __future__ import annotations

import tomllib
from importlib.metadata import version as version_of
from pathlib import Path

project = "collwise"
about = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
author = about["authors"][0]["name"]
project_copyright = author
version = release = version_of("collwise")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "sphinx_copybutton"]
myst_heading_anchors = 4
exclude_patterns = ["*.py"]
# Blocks of code without a language are shown as they are.
highlight_language = "none"
suppress_warnings = ["myst.header"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = f"collwise {version}"
if source := about["urls"].get("Source"):
    html_theme_options = {
        "footer_icons": [{"name": "Source", "url": source, "html": "Source", "class": ""}],
    }
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = "$ "

man_pages = [("commands", "collwise", "choose MPI collective algorithms for a cluster by simulation", author, 1)]
