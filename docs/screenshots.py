"""Takes the documentation's pictures of the report, in a real browser.

    .venv/bin/python docs/screenshots.py [REPORT.html]

Without a page it makes one first, by `collwise demo` with the usual store.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.browser import browser  # noqa: E402

# The picture, the width of the window, the colours, and the beginning of the heading that it shows first.
PICTURES = (
    ("report-first", 1100, False, ""),
    ("report-collective", 1100, False, "broadcast-on-"),
    ("report-narrow-dark", 400, True, "what-to-do-first-on-"),
)
HEIGHT = 900


def main() -> int:
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "collwise.studies", "demo", "-o", folder], check=True)
        take(Path(folder, "report.html"))
    return 0


def take(page: Path) -> None:
    with browser() as window:
        for name, width, dark, heading in PICTURES:
            window.open(page.resolve().as_uri(), width, HEIGHT, dark)
            if heading:
                window.evaluate(f"document.querySelector('[id^=\"{heading}\"]').scrollIntoView()")
            (DOCS / "figures" / f"{name}.png").write_bytes(window.picture())


if __name__ == "__main__":
    sys.exit(main())
