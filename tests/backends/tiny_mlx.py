"""Tiny random models from mlx-lm's own classes: windows, recurrence and branches without a download."""

import mlx.core as mx
from mlx.utils import tree_map_with_path
from mlx_lm.utils import _get_classes

from edgespec.backends.mlx.backend import MlxBackend

N_VOCAB = 96
_COMMON = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rms_norm_eps": 1e-5,
    "vocab_size": N_VOCAB,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
_SPECIAL = {
    "qwen3": {"rope_theta": 10000.0},
    "gemma2": {"query_pre_attn_scalar": 8, "tie_word_embeddings": True},
    "granite": {
        "logits_scaling": 2.0,
        "attention_multiplier": 0.3,
        "embedding_multiplier": 2.0,
        "residual_multiplier": 0.5,
        "attention_bias": False,
        "mlp_bias": False,
        "rope_theta": 10000.0,
    },
}


def tiny(kind: str, **changes):
    """A model of this `model_type`, the same in every run."""
    config = {"model_type": kind, **_COMMON, **_SPECIAL.get(kind, {}), **changes}
    model_class, arguments = _get_classes(config)
    model = model_class(arguments.from_dict(config))
    key = iter(mx.random.split(mx.random.key(7), 500))

    def drawn(path, array):
        spread = 1.0 if "embed" in path else 0.4
        noise = mx.random.normal(array.shape, key=next(key)) * spread
        return 1 + noise / 10 if "norm" in path else noise

    model.update(tree_map_with_path(drawn, model.parameters()))
    mx.eval(model.parameters())
    return model


def windowed(window: int = 16):
    """Every second layer looks back at a window only."""
    return tiny("llama", layer_types=["sliding_attention", "full_attention"], sliding_window=window)


def recurrent():
    """A state that only moves forward."""
    return tiny(
        "mamba",
        state_size=4,
        conv_kernel=4,
        use_bias=False,
        use_conv_bias=True,
        time_step_rank=4,
        use_bcdt_rms=False,
    )


def backend(model, **changes):
    settings = {"n_vocab": N_VOCAB, "n_ctx": 256, "max_rows": 16, "n_batch": 32, "device": mx.cpu}
    return MlxBackend(model, **{**settings, **changes})
