"""Moves bytes between two nodes by plain TCP, to measure a test bed. This separate program runs in a namespace.

stream.py receive PORT FROM UNTIL        prints how many bytes arrived between FROM and UNTIL of the monotonic clock
stream.py send ADDRESS PORT FROM UNTIL   sends from shortly before FROM to shortly after UNTIL
stream.py answer PORT COUNT              sends each byte back
stream.py ask ADDRESS PORT COUNT         prints the median roundtrip time of a byte, seconds
"""

from __future__ import annotations

import socket
import statistics
import sys
import time

_BLOCK_BYTES = 1 << 16
# Streams need some time to reach full speed, and all streams have to run while bytes are counted.
_MARGIN_SECONDS = 0.5
_PATIENCE_SECONDS = 10.0


def _accept(port: int) -> socket.socket:
    with socket.create_server(("", port)) as server:
        server.settimeout(_PATIENCE_SECONDS)
        return server.accept()[0]


def _connect(address: str, port: int) -> socket.socket:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return socket.create_connection((address, port), timeout=_PATIENCE_SECONDS)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def receive(port: int, begin: float, end: float) -> int:
    """Counts the bytes that arrive between `begin` and `end` of the monotonic clock, in a stream that lasts longer."""
    counted, buffer = 0, bytearray(_BLOCK_BYTES)
    with _accept(port) as peer:
        # Waking up for each packet would take more of the processor than the packets do.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _BLOCK_BYTES // 2)
        while count := peer.recv_into(buffer):
            if begin <= time.monotonic() < end:
                counted += count
    return counted


def send(address: str, port: int, begin: float, end: float) -> None:
    """Sends from half a second before `begin` until half a second after `end`."""
    block = bytes(_BLOCK_BYTES)
    with _connect(address, port) as peer:
        time.sleep(max(0.0, begin - _MARGIN_SECONDS - time.monotonic()))
        while time.monotonic() < end + _MARGIN_SECONDS:
            peer.sendall(block)


def answer(port: int, count: int) -> None:
    """Sends each of `count` single bytes back."""
    with _accept(port) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            peer.sendall(peer.recv(1))


def ask(address: str, port: int, count: int) -> float:
    """The median roundtrip time of a byte in seconds."""
    times = []
    with _connect(address, port) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            start = time.perf_counter()
            peer.sendall(b"x")
            peer.recv(1)
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(what: str, *words: str) -> None:
    """Runs one of the four roles that the module's docstring lists."""
    if what == "receive":
        print(receive(int(words[0]), float(words[1]), float(words[2])))
    elif what == "send":
        send(words[0], int(words[1]), float(words[2]), float(words[3]))
    elif what == "answer":
        answer(int(words[0]), int(words[1]))
    else:
        print(ask(words[0], int(words[1]), int(words[2])))


if __name__ == "__main__":
    main(*sys.argv[1:])
