"""A real browser, Chromium without a window, that opens pages, answers questions about them and takes pictures.

It is driven over its DevTools protocol. docs/screenshots.py uses it too.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.waiting import PATIENCE_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome")
_LARGEST_MESSAGE = 2**28


def executable() -> str | None:
    """The path of an installed browser, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser. `requests` are the addresses that it asked for, without those that hold their data."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: WebSocketClientConnection) -> None:
        self._loop, self._socket, self._number = loop, socket, 0
        self._events: list[dict[str, Any]] = []
        self.requests: list[str] = []

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and returns its result. Raises RuntimeError for one that fails."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self._loop.run_until_complete(self._send(json.dumps(message)))
        while True:
            answer = self._read()
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    async def _send(self, text: str) -> None:
        await self._socket.write_message(text)

    async def _receive(self) -> str | bytes | None:
        return await asyncio.wait_for(self._socket.read_message(), PATIENCE_SECONDS)

    def _read(self) -> dict[str, Any]:
        text = self._loop.run_until_complete(self._receive())
        if text is None:
            raise RuntimeError("the browser has gone")
        answer = json.loads(text)
        if answer.get("method") == "Network.requestWillBeSent":
            address = answer["params"]["request"]["url"]
            if not address.startswith("data:"):
                self.requests.append(address)
        self._events.append(answer)
        return answer

    def open(self, address: str, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        """Opens a page in a window of this size, and waits until it is loaded."""
        for part in ("Network", "Page", "Runtime"):
            self.ask(f"{part}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.resize(width, height)
        self.requests.clear()
        self._events.clear()
        self.ask("Page.navigate", url=address)
        while not any(one.get("method") == "Page.loadEventFired" for one in self._events):
            self._read()

    def resize(self, width: int, height: int = 900) -> None:
        """Gives the window another size in CSS pixels."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page, awaited if it is a promise."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait_for(self, expression: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Waits until an expression is true. Raises TimeoutError when it does not become so."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.1)

    def click(self, element: str, times: int = 1) -> None:
        """Clicks, as the mouse does, in the middle of what a JavaScript expression finds once it is there."""
        box = f"(() => {{ const one = {element}; return one && one.getBoundingClientRect(); }})()"
        self.wait_for(f"!!{element}")
        self.evaluate(f"{element}.scrollIntoView({{block: 'center'}})")
        x, y = self.evaluate(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({box})")
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def press(self, key: str, code: int) -> None:
        """Presses and releases a key, for what has the focus."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, whole: bool = False) -> bytes:
        """What the window shows, or the whole page, as a PNG file's bytes."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    def printed(self) -> bytes:
        """The page in print, as a PDF file's bytes."""
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True, paperWidth=8.27)["data"])


@contextmanager
def browser() -> Iterator[Browser]:
    """Starts a browser with a fresh profile, and ends it. Raises RuntimeError where there is none."""
    found = executable()
    if found is None:
        raise RuntimeError(f"no browser; install one of {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory(prefix="collwise-browser-", ignore_cleanup_errors=True) as folder:
        command = [found, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        command += ["--no-first-run", "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={folder}"]
        process = subprocess.Popen([*command, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        loop = asyncio.new_event_loop()
        try:
            socket = loop.run_until_complete(_connected(_page_of(Path(folder, "DevToolsActivePort"), process)))
            yield Browser(loop, socket)
            loop.run_until_complete(_closed(socket))
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
            loop.close()


async def _connected(address: str) -> WebSocketClientConnection:
    return await websocket_connect(address, max_message_size=_LARGEST_MESSAGE)


async def _closed(socket: WebSocketClientConnection) -> None:
    socket.close()


def _page_of(port_file: Path, process: subprocess.Popen[bytes]) -> str:
    """The address of the only page's protocol, once the browser listens."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if port_file.exists() and (lines := port_file.read_text().splitlines()):
            with urlopen(f"http://127.0.0.1:{lines[0]}/json/list") as answer:
                pages = [one for one in json.load(answer) if one["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.05)
    raise RuntimeError("the browser did not start")
