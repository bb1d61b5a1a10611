"""The full-screen chat. `run` is its entrance; it stands on edgespec's public API, `hub` and `history`."""

from __future__ import annotations

from edgespec_tui.choices import Choices, Start

__all__ = ["Choices", "Start", "run"]


def run(start: Start) -> int:
    """Chat until the user leaves; the exit code."""
    import os
    import sys

    from edgespec_tui.app import ChatApp
    from edgespec_tui.pauses import short_pauses

    # The model's thread gets its turn soon while the screen is drawn.
    sys.setswitchinterval(0.0005)
    app = ChatApp(start)
    with short_pauses():
        code = app.run()
    if not app.close():
        os._exit(code or 0)
    return code or 0
