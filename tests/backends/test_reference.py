"""The reference itself, against llama.cpp, which rounds activations to 8 bits."""

import pytest

from edgespec.backends.base import LoadOptions
from edgespec.backends.llamacpp import load
from tests.backends.reference import agreement, forced


@pytest.mark.model
@pytest.mark.parametrize("kind", ["q8_0", "q4_0"])
def test_llamacpp_agrees_with_the_reference(kind, forced_tokens, request):
    reference = request.getfixturevalue(f"{kind}_reference")
    loaded = load(request.getfixturevalue(f"{kind}_path"), LoadOptions(n_ctx=256))
    try:
        found = agreement(reference, forced(loaded.backend, forced_tokens))
    finally:
        loaded.backend.close()
    print(found)
    assert found.kl < 1e-2
    assert found.top1 > 0.9
