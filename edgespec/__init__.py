"""edgespec: a local language model, faster, without changing what it says.

import edgespec

with edgespec.load() as model:
    chat = model.chat(system="Answer in one sentence.")
    for event in chat.send("Why is the sky blue?"):
        print(event.text, end="", flush=True)
    print(model.stats.tokens_per_second)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from edgespec.api import Chat, Model, Settings, TextMemory, load
    from edgespec.errors import EdgespecError
    from edgespec.proposers.registry import named_proposers, proposer_names
    from edgespec.text.prompt import Message
    from edgespec.types import SamplingSettings, StepEvent

_HOME = {
    **dict.fromkeys(("Chat", "Model", "Settings", "TextMemory", "load"), "edgespec.api"),
    "EdgespecError": "edgespec.errors",
    "Message": "edgespec.text.prompt",
    **dict.fromkeys(("named_proposers", "proposer_names"), "edgespec.proposers.registry"),
    "SamplingSettings": "edgespec.types",
    "StepEvent": "edgespec.types",
}
__all__ = [
    "Chat",
    "EdgespecError",
    "Message",
    "Model",
    "SamplingSettings",
    "Settings",
    "StepEvent",
    "TextMemory",
    "load",
    "named_proposers",
    "proposer_names",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import edgespec` costs nothing."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'edgespec' has no attribute {name!r}")
