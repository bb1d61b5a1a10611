"""GGUF blocks as MLX keeps quantised weights: words of packed bits, a scale and a bias for a group of 32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgespec.types import FloatArray

GROUP: Final = 32
DENSE: Final = frozenset({"F32", "F16", "BF16"})
"""Types without blocks."""

Bytes = NDArray[np.uint8]
_FOUR: Final = np.uint8(4)
_Parts = tuple[Bytes, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True)
class Affine:
    """A weight `[outputs, inputs]` with `w = scale * q + bias`; `q` has `bits` bits.

    `words`: uint32 `[outputs, inputs * bits / 32]`, lowest bits first. `scales`, `biases`: float32
    `[outputs, inputs / 32]`.
    """

    bits: int
    words: NDArray[np.uint32]
    scales: FloatArray
    biases: FloatArray

    def float32(self) -> FloatArray:
        """`[outputs, inputs]`."""
        groups = _unpack(self.words.view(np.uint8), self.bits).reshape(*self.scales.shape, GROUP)
        return (groups * self.scales[..., None] + self.biases[..., None]).reshape(len(self.words), -1)


def exact(kind: str, blocks: Bytes) -> Affine:
    """The same numbers as the blocks `[outputs, bytes of a row]`; `kind` is one of `EXACT`.

    Q4_1 and Q5_1 round once, in the last bit of float32, when they are multiplied out.
    """
    bits, read = _READERS[kind]
    values, scales, biases = read(np.ascontiguousarray(blocks))
    return _packed(bits, values, scales, biases)


def nearest(weight: FloatArray, bits: int) -> Affine:
    """`weight` `[outputs, inputs]` in `bits` bits, every group from its least to its greatest value."""
    groups = weight.reshape(len(weight), -1, GROUP)
    low, high = groups.min(-1), groups.max(-1)
    scales = ((high - low) / np.float32((1 << bits) - 1)).astype(np.float32)
    steps = np.where(scales > 0, scales, np.float32(1))
    values = np.rint((groups - low[..., None]) / steps[..., None]).astype(np.uint8)
    return _packed(bits, values, scales, low.astype(np.float32))


def _packed(bits: int, values: Bytes, scales: FloatArray, biases: FloatArray) -> Affine:
    rows = len(values)
    packed = _pack(values.reshape(rows, -1), bits)
    return Affine(bits, packed.view("<u4"), scales.reshape(rows, -1), biases.reshape(rows, -1))


def _pack(values: Bytes, bits: int) -> Bytes:
    """The low `bits` of every value, one behind the other, lowest first."""
    if bits == 8:
        return np.ascontiguousarray(values)
    if bits == 4:
        return values[:, 0::2] | values[:, 1::2] << _FOUR
    eights = values.reshape(len(values), -1, 8).astype(np.uint64)
    joined = np.zeros(eights.shape[:-1], "<u8")
    for i in range(8):
        joined |= eights[..., i] << np.uint64(bits * i)
    return np.ascontiguousarray(joined[..., None].view(np.uint8)[..., :bits]).reshape(len(values), -1)


def _unpack(packed: Bytes, bits: int) -> Bytes:
    if bits == 8:
        return packed
    if bits == 4:
        return np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1)
    single = np.unpackbits(packed, axis=-1, bitorder="little").reshape(len(packed), -1, bits)
    return np.packbits(single, axis=-1, bitorder="little")[..., 0]


def _halves(blocks: Bytes, at: int) -> FloatArray:
    """The float16 at byte `at` of every block, `[..., 1]`."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Bytes:
    """Low halves, then high halves: 16 bytes are 32 values."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _fifth_bits(packed: Bytes) -> Bytes:
    """Bit 4 of 32 values from 4 bytes."""
    return np.unpackbits(packed, axis=-1, bitorder="little") << _FOUR


def _blocks(rows: Bytes, size: int) -> Bytes:
    return rows.reshape(len(rows), -1, size)


def _q4_0(rows: Bytes) -> _Parts:
    blocks = _blocks(rows, 18)
    scale = _halves(blocks, 0)
    return _nibbles(blocks[..., 2:]), scale, -8 * scale


def _q4_1(rows: Bytes) -> _Parts:
    blocks = _blocks(rows, 20)
    return _nibbles(blocks[..., 4:]), _halves(blocks, 0), _halves(blocks, 2)


def _q5_0(rows: Bytes) -> _Parts:
    blocks = _blocks(rows, 22)
    scale = _halves(blocks, 0)
    return _nibbles(blocks[..., 6:]) | _fifth_bits(blocks[..., 2:6]), scale, -16 * scale


def _q5_1(rows: Bytes) -> _Parts:
    blocks = _blocks(rows, 24)
    values = _nibbles(blocks[..., 8:]) | _fifth_bits(blocks[..., 4:8])
    return values, _halves(blocks, 0), _halves(blocks, 2)


def _q8_0(rows: Bytes) -> _Parts:
    blocks = _blocks(rows, 34)
    scale = _halves(blocks, 0)
    return blocks[..., 2:] ^ np.uint8(128), scale, -128 * scale


def _six_bit_pairs(packed: Bytes) -> tuple[Bytes, Bytes]:
    """Scales and minima of the 8 groups of a super-block, from its 12 bytes."""
    first, second, last = packed[..., 0:4], packed[..., 4:8], packed[..., 8:12]
    scales = np.concatenate([first & 63, last & 15 | first >> 6 << 4], axis=-1)
    minima = np.concatenate([second & 63, last >> 4 | second >> 6 << 4], axis=-1)
    return scales, minima


def _k_scales(blocks: Bytes) -> tuple[FloatArray, FloatArray]:
    """Scale and bias of every group: products of a half and 6 bits, which float32 holds exactly."""
    scales, minima = _six_bit_pairs(blocks[..., 4:16])
    return _halves(blocks, 0) * scales, -_halves(blocks, 2) * minima


def _k_nibbles(packed: Bytes) -> Bytes:
    """128 bytes are 8 groups of 32: 32 bytes hold one group in their low halves, the next in the high."""
    quarters = packed.reshape(*packed.shape[:-1], 4, 1, 32)
    return np.concatenate([quarters & 15, quarters >> 4], axis=-2).reshape(*packed.shape[:-1], 8, 32)


def _q4_k(rows: Bytes) -> _Parts:
    blocks = _blocks(rows, 144)
    return _k_nibbles(blocks[..., 16:]), *_k_scales(blocks)


def _q5_k(rows: Bytes) -> _Parts:
    blocks = _blocks(rows, 176)
    groups = np.arange(8, dtype=np.uint8)[:, None]
    fifth = (blocks[..., None, 16:48] >> groups & np.uint8(1)) << _FOUR
    return _k_nibbles(blocks[..., 48:]) | fifth, *_k_scales(blocks)


_READERS: Final[dict[str, tuple[int, Callable[[Bytes], _Parts]]]] = {
    "Q4_0": (4, _q4_0),
    "Q4_1": (4, _q4_1),
    "Q5_0": (5, _q5_0),
    "Q5_1": (5, _q5_1),
    "Q8_0": (8, _q8_0),
    "Q4_K": (4, _q4_k),
    "Q5_K": (5, _q5_k),
}

EXACT: Final = {kind: bits for kind, (bits, _) in _READERS.items()}
"""Types whose blocks are such groups already, and the bits of their values."""
