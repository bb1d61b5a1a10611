"""The command line: argv in, text out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """Ctrl-C ends the process with no traceback; `main` turns it into exit code 130 later."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


with _quiet_interrupt():
    from edgespec.cli.main import main

__all__ = ["main"]
