"""The public seam: load a model, chat with it, read what happened."""

from edgespec.api.chat import Chat
from edgespec.api.loading import Progress, Settings, load
from edgespec.api.model import Costs, Model, Speculation
from edgespec.api.texts import TextMemory

__all__ = ["Chat", "Costs", "Model", "Progress", "Settings", "Speculation", "TextMemory", "load"]
