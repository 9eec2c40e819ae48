"""Takes the documentation's pictures of the report and of the page with sliders, in a real browser.

    .venv/bin/python docs/screenshots.py [report [REPORT.html]] [studio]

Without a page it makes the report first, by `collwise demo` with the usual store. The other page is that to which
`collwise studio` leads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.browser import Browser, browser  # noqa: E402

# The picture, and the beginning of the heading that it shows first.
PICTURES = (("report-first", ""), ("report-collective", "bcast"))
WIDTH, HEIGHT = 1100, 980
SLIDERS_SECONDS = 600
MOVES = 8
"""How often the first slider is moved to the left."""


def main() -> int:
    words = sys.argv[1:] or ["report", "studio"]
    pages = [Path(word) for word in words if word.endswith(".html")]
    if "report" in words and not pages:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "collwise.studies", "demo", "-o", folder], check=True)
            take_report(Path(folder, "jupiter.html"))
    for page in pages:
        take_report(page)
    if "studio" in words:
        with studio() as address, browser() as window:
            take_sliders(window, address)
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
                one = f"document.querySelector('[id^=\"{heading}\"]')"
                window.evaluate(f"{one}.closest('details').open = true")
                window.evaluate(f"{one}.scrollIntoView()")
            save(name, window)


@contextmanager
def studio() -> Iterator[str]:
    """The address of the studio, in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="collwise-studio-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-P", "-m", "collwise.studies", "studio", "--no-browser"]
        environment = os.environ | {"COLLWISE_HOME": folder}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            yield next(line.strip() for line in process.stdout if line.startswith("http"))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            process.stdout.close()


def take_sliders(window: Browser, address: str) -> None:
    """Opens the page with sliders, moves the first one, and takes a picture."""
    window.open(address, 1250, 720)
    window.click("document.querySelector('a[href*=\"voila\"]')")
    picture = "[...document.querySelectorAll('img')].find(one => one.src.startsWith('blob') && one.naturalWidth)"
    window.wait_for(f"!!{picture}", SLIDERS_SECONDS)
    window.evaluate("document.querySelector('.noUi-handle').focus()")
    for _ in range(MOVES):
        window.press("ArrowLeft", 37)
    window.wait_for("document.body.innerText.includes('bandwidth x0.25: another choice')")
    save("studio-whatif", window)


def save(name: str, window: Browser) -> None:
    (DOCS / "figures" / f"{name}.png").write_bytes(window.picture())


if __name__ == "__main__":
    sys.exit(main())
