"""SIGTERM while a prompt waits: the terminal is put back, the chat ends in order."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_AGAIN = 0.05  # seconds


@contextlib.contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """Within: SIGTERM raises SystemExit with its exit code, also while `input` waits.

    A signal that comes just before readline begins to wait would be seen at the next key only, so a
    thread repeats it until Python's handler has run.
    """
    ran = threading.Event()

    def end(number: int, _: FrameType | None) -> None:
        if not ran.is_set():
            ran.set()
            sys.exit(128 + number)

    def repeat() -> None:
        while number := os.read(listening, 1):
            waits = number[0] == signal.SIGTERM
            while waits and not ran.wait(_AGAIN) and signal.getsignal(signal.SIGTERM) is end:
                signal.pthread_kill(main, signal.SIGTERM)

    if not hasattr(signal, "pthread_kill"):  # Windows
        yield
        return
    main = threading.main_thread().ident or 0
    listening, woken = os.pipe()
    os.set_blocking(woken, False)
    before = signal.signal(signal.SIGTERM, end)
    wakeup = signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    thread = threading.Thread(target=repeat, name="edgespec-sigterm", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ran.set()
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGTERM, before)
        os.close(woken)
        thread.join()
        os.close(listening)
