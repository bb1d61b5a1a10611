"""Answers of earlier runs, and files, kept on this machine for the memory proposer.

store = Store(fingerprint(path), "SmolLM2")
for number, tokens in store.load():
    ...
store.add(tokens)
"""

from edgespec.memory.store import MOST_BYTES, Ids, Kept, MemoryStoreError, Store, clear, kept, location

__all__ = ["MOST_BYTES", "Ids", "Kept", "MemoryStoreError", "Store", "clear", "kept", "location"]
