"""Tests which nodes of a test bed answer the first one."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from collwise.common.errors import CollwiseError
from collwise.validation.testbed.bed import Bed, names
from collwise.validation.testbed.namespaces import command

_WAIT_SECONDS = 1.0
# Nothing listens on that port: a node that is reached refuses the connection, one that is not does not answer.
_PROGRAM = """
import errno, select, socket, sys, time
poller, waiting, silent = select.poll(), {}, set(sys.argv[2:])
for address in sys.argv[2:]:
    one = socket.socket()
    one.setblocking(False)
    if one.connect_ex((address, 9)) == errno.EINPROGRESS:
        waiting[one.fileno()] = one, address
        poller.register(one, select.POLLOUT)
deadline = time.monotonic() + float(sys.argv[1])
while silent and waiting and (left := deadline - time.monotonic()) > 0:
    for number, _ in poller.poll(left * 1000):
        one, address = waiting.pop(number)
        poller.unregister(one)
        if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in (0, errno.ECONNREFUSED):
            silent.remove(address)
print(*silent)
"""


def unreachable_nodes(bed: Bed, nodes: Iterable[int]) -> list[int]:
    """The nodes that do not answer the first one within a second; the first node alone if its own link is down.

    Raises CollwiseError when the bed was taken down.
    """
    others = {bed.address(node): node for node in nodes if node != 1}
    words = ["ip", "netns", "exec", bed.namespace("n1"), sys.executable, "-I", "-S", "-c", _PROGRAM]
    if bed.name not in names():
        raise CollwiseError(f"test bed '{bed.name}' was taken down")
    silent = [others[address] for address in command(*words, str(_WAIT_SECONDS), *others).split()]
    return [1] if len(silent) == len(others) > 1 else sorted(silent)
