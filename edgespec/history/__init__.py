"""Conversations kept on this machine, in SQLite.

with History() as history:
    for entry in history.search("tides"):
        print(entry.id, entry.title)
    conversation = history.load(entry.id)

with Recorder(conversation=conversation) as recorder:  # or a new one
    recorder.ask("Why is the sky blue?")
    recorder.answering("SmolLM2")
    for event in chat.send("Why is the sky blue?"):
        recorder.add(event.pieces)
    recorder.answered(chat.finish, Figures.of(model.stats))
"""

from edgespec.history.export import as_json, as_markdown, from_json
from edgespec.history.files import location
from edgespec.history.recorder import Recorder
from edgespec.history.records import Conversation, Entry, Figures, Run, Turn, shortened
from edgespec.history.schema import NewerHistoryError
from edgespec.history.store import History, HistoryError, NoConversationError

__all__ = [
    "Conversation",
    "Entry",
    "Figures",
    "History",
    "HistoryError",
    "NewerHistoryError",
    "NoConversationError",
    "Recorder",
    "Run",
    "Turn",
    "as_json",
    "as_markdown",
    "from_json",
    "location",
    "shortened",
]
