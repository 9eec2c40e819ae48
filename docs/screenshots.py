"""Takes the documentation's pictures of the report and of two notebooks, in a real browser.

    .venv/bin/python docs/screenshots.py [report [REPORT.html]] [notebooks]

Without a page it makes the report first, by `collwise demo` with the usual store. The notebooks run in JupyterLab, as
`collwise setup studio` opens them, from an empty store.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.browser import Browser, browser  # noqa: E402
from tests.waiting import wait_for  # noqa: E402

# The picture, and the beginning of the heading that it shows first.
PICTURES = (("report-first", ""), ("report-collective", "bcast"))
# The notebook, its heading that the picture shows first, and how often its first slider is moved to the left.
NOTEBOOKS = (("whatif", "Sliders", 8), ("model_accuracy", "What choices cost", 0))
WIDTH, HEIGHT = 1100, 900
NOTEBOOK_HEIGHT = 1150
NOTEBOOK_SECONDS = 600


def main() -> int:
    words = sys.argv[1:] or ["report", "notebooks"]
    pages = [Path(word) for word in words if word.endswith(".html")]
    if "report" in words and not pages:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "collwise.studies", "demo", "-o", folder], check=True)
            take_report(Path(folder, "jupiter.html"))
    for page in pages:
        take_report(page)
    if "notebooks" in words:
        with studio() as address:
            for notebook in NOTEBOOKS:
                with browser() as window:
                    take_notebook(window, address, *notebook)
    return 0


def take_report(page: Path) -> None:
    """Takes the pictures of a report, as if it were in a user's folder."""
    with tempfile.TemporaryDirectory() as folder, browser() as window:
        text = page.read_text(encoding="utf-8").replace(str(page.resolve().parent), "/home/me/report")
        page = Path(folder, page.name)
        page.write_text(text, encoding="utf-8")
        for name, heading in PICTURES:
            window.open(page.resolve().as_uri(), WIDTH, HEIGHT, dark=False)
            if heading:
                window.evaluate(f"document.querySelector('[id^=\"{heading}\"]').scrollIntoView()")
            save(name, window)


@contextmanager
def studio() -> Iterator[str]:
    """The address at which JupyterLab listens, in an empty folder, with settings that let a script run its commands."""
    with tempfile.TemporaryDirectory(prefix="collwise-studio-", ignore_cleanup_errors=True) as folder:
        settings = {"LabApp": {"expose_app_in_browser": True, "news_url": None}}
        Path(folder, "jupyter_lab_config.json").write_text(json.dumps(settings))
        # Notebooks are not saved: they are those of the repository.
        saving = Path(folder, "settings", "@jupyterlab", "docmanager-extension", "plugin.jupyterlab-settings")
        saving.parent.mkdir(parents=True)
        saving.write_text(json.dumps({"autosave": False}))
        command = [sys.executable, "-P", "-m", "collwise.studies", "setup", "studio", "--no-browser"]
        process = subprocess.Popen(
            command,
            env=os.environ
            | {
                "JUPYTER_CONFIG_DIR": folder,
                "JUPYTER_PREFER_ENV_PATH": "0",
                "JUPYTERLAB_SETTINGS_DIR": str(Path(folder, "settings")),
                "COLLWISE_HOME": folder,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        try:
            said = next(line for line in process.stdout if "listens on" in line)
            address = said.split()[-1]
            wait_for(lambda: answers(address))
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            process.stdout.close()


def answers(address: str) -> bool:
    try:
        with urlopen(address):
            return True
    except OSError:
        return False


def take_notebook(window: Browser, address: str, name: str, heading: str, moves: int) -> None:
    """Runs a notebook, moves its slider, and takes a picture from a heading on."""
    window.open(address.replace("/lab?", "/lab?reset&"), 1400, NOTEBOOK_HEIGHT)
    window.wait_for("window.jupyterapp !== undefined")
    window.evaluate("jupyterapp.restored.then(() => true)")
    # JupyterLab's commands are for the notebook that has the focus.
    window.ask("Emulation.setFocusEmulationEnabled", enabled=True)
    window.evaluate(
        f"jupyterapp.commands.execute('docmanager:open', {{path: 'notebooks/{name}.py', factory: 'Jupytext Notebook'}})"
        ".then(found => { jupyterapp.shell.activateById(found.id); })"
    )
    window.wait_for("jupyterapp.shell.currentWidget?.content?.model?.cells?.length > 0")
    window.evaluate("jupyterapp.shell.currentWidget.sessionContext.ready.then(() => true)")
    window.evaluate("jupyterapp.shell.leftCollapsed || jupyterapp.commands.execute('application:toggle-left-area')")
    window.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.ran = true; })")
    window.wait_for("window.ran === true", NOTEBOOK_SECONDS)
    window.evaluate(
        "{ const notebook = jupyterapp.shell.currentWidget.content; notebook.activeCellIndex = "
        f"notebook.widgets.findIndex(one => one.model.sharedModel.source.includes('## {heading}')); "
        "notebook.scrollToItem(notebook.activeCellIndex, 'start'); }"
    )
    if moves:
        window.evaluate("document.querySelector('.noUi-handle').focus()")
    for _ in range(moves):
        for kind in ("keyDown", "keyUp"):
            window.ask("Input.dispatchKeyEvent", type=kind, key="ArrowLeft", code="ArrowLeft", windowsVirtualKeyCode=37)
    window.evaluate("document.querySelectorAll('.Toastify').forEach(one => one.remove())")
    window.evaluate("new Promise(done => setTimeout(() => done(true), 3000))")
    save(f"studio-{name}", window)


def save(name: str, window: Browser) -> None:
    (DOCS / "figures" / f"{name}.png").write_bytes(window.picture())


if __name__ == "__main__":
    sys.exit(main())
