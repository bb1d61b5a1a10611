"""Whether a draft model's tokens mean what the target's mean."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from edgespec.backends.base import Vocabulary
from edgespec.errors import DraftError

FIRST_COMPARED = 5
MOST_PADDING = 128


def _texts(vocabulary: Vocabulary) -> Iterable[str]:
    """All token texts; a vocabulary may offer `texts()` where asking one by one is slow."""
    listed = getattr(vocabulary, "texts", None)
    return listed() if listed is not None else map(vocabulary.text, range(vocabulary.n_vocab))


def _first_difference(target: Vocabulary, draft: Vocabulary) -> int:
    """The first id from `FIRST_COMPARED` on whose texts differ, else the smaller size."""
    shared = min(target.n_vocab, draft.n_vocab)
    pairs = zip(
        islice(_texts(target), FIRST_COMPARED, shared),
        islice(_texts(draft), FIRST_COMPARED, shared),
        strict=True,
    )
    return next((token for token, (a, b) in enumerate(pairs, FIRST_COMPARED) if a != b), shared)


def compare(target: Vocabulary, draft: Vocabulary, target_name: str, draft_name: str) -> int:
    """How many ids both models share; ids from there on must never be drafted.

    The rule is llama.cpp's: same tokenizer type, same BOS and EOS, sizes that differ by padding only,
    same texts from id 5 on. Raises DraftError naming both files, both sizes and the first difference.
    """
    shared = min(target.n_vocab, draft.n_vocab)
    first = _first_difference(target, draft)
    reason = ""
    if target.kind != draft.kind:
        reason = f"tokenizer {draft.kind} is not {target.kind}"
    elif (target.bos, target.add_bos) != (draft.bos, draft.add_bos):
        reason = f"BOS {_handling(draft.bos, draft.add_bos)} is not {_handling(target.bos, target.add_bos)}"
    elif target.eos != draft.eos:
        reason = f"EOS {draft.eos} is not {target.eos}"
    elif abs(target.n_vocab - draft.n_vocab) > MOST_PADDING:
        reason = f"the sizes differ by more than {MOST_PADDING}"
    elif first < shared:
        reason = f"token {first} is {draft.text(first)!r}, not {target.text(first)!r}"
    if reason:
        raise DraftError(
            f"{draft_name} ({draft.n_vocab} tokens) cannot draft for "
            f"{target_name} ({target.n_vocab} tokens): {reason}; {_where(first, shared)}"
        )
    return shared


def _handling(bos: int | None, add_bos: bool) -> str:
    return f"{bos} ({'added' if add_bos else 'not added'})"


def _where(first: int, shared: int) -> str:
    return f"first differing id {first}" if first < shared else f"no id below {shared} differs"
