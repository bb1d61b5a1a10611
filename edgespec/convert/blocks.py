"""Blocks of weights as GGUF files and as MatMulNBits hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgespec.convert.weights import Bytes, Tensor
from edgespec.errors import ModelFileError
from edgespec.types import FloatArray

BLOCK = 32
_ROUNDED = 64
"""Weights that share a scale when they are rounded to 8 bits: fewer bytes than with 32, and at 128 rows would
no longer be independent of their number."""
_CHUNK = 1 << 22  # weights that are float32 at one time


@dataclass(frozen=True, slots=True)
class Blocks:
    """`quants`: unsigned, the middle stands for zero, `[rows, blocks, size * bits / 8]` bytes.

    `scales`: `[rows, blocks]`. `offsets`: added to every weight of a block, None for none. `error`: root
    mean square error relative to the weights' own root mean square, 0 for a copy without loss.
    """

    bits: int
    quants: Bytes
    scales: FloatArray
    offsets: FloatArray | None = None
    error: float = 0.0

    @property
    def size(self) -> int:
        """Weights in a block."""
        return int(self.quants.shape[2]) * 8 // self.bits

    @property
    def form(self) -> tuple[int, int, bool]:
        """What two matrices must have in common to be one above the other."""
        return self.bits, self.size, self.offsets is not None

    def empty(self, n_rows: int) -> Blocks:
        """Room for so many rows of this form."""
        quants = np.empty((n_rows, *self.quants.shape[1:]), np.uint8)
        scales = np.empty((n_rows, *self.scales.shape[1:]), np.float32)
        return Blocks(self.bits, quants, scales, None if self.offsets is None else np.empty_like(scales))

    def rows(self, order: NDArray[np.intp]) -> Blocks:
        """The same rows in another order."""
        offsets = None if self.offsets is None else self.offsets[order]
        return Blocks(self.bits, self.quants[order], self.scales[order], offsets, self.error)


def blocks(tensor: Tensor, check: Callable[[], None] = lambda: None) -> Blocks:
    """The weights of a matrix: copied without loss where `_EXACT` has its type, else rounded to 8 bits.

    `check` is called several times a second, and may raise.
    """
    exact = _EXACT.get(tensor.kind)
    return _copy(tensor, exact, check) if exact else _round(tensor, check)


def joined(parts: list[Blocks]) -> Blocks:
    """One matrix above the other. All have the same form."""
    offsets = [part.offsets for part in parts if part.offsets is not None]
    return Blocks(
        parts[0].bits,
        np.concatenate([part.quants for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate(offsets) if offsets else None,
        max(part.error for part in parts),
    )


def _copy(tensor: Tensor, exact: Callable[[Bytes], Blocks], check: Callable[[], None]) -> Blocks:
    """Some rows at a time, which bounds the memory beside the result."""
    n_rows, n = tensor.shape
    whole: Blocks | None = None
    step = max(1, _CHUNK // n)
    for start in range(0, n_rows, step):
        check()
        rows = slice(start, start + step)
        part = exact(tensor.blocks[rows])
        if whole is None:
            whole = part.empty(n_rows)
        whole.quants[rows], whole.scales[rows] = part.quants, part.scales
        if whole.offsets is not None:
            whole.offsets[rows] = part.offsets
    if whole is None:
        raise ModelFileError(f"{tensor.name} is empty")
    return whole


def _halves(data: Bytes) -> FloatArray:
    """Float16 numbers in the last axis of bytes."""
    return np.ascontiguousarray(data).view("<f2").astype(np.float32)


def _interleaved(nibbles: Bytes) -> Bytes:
    """From weights i and i + 16 in byte i to weights 2i and 2i + 1 in it; the last axis has 16 bytes."""
    pairs = np.ascontiguousarray(nibbles).view("<u2")
    out = np.empty_like(pairs)
    low, high = out.view(np.uint8)[..., :8], out.view(np.uint8)[..., 8:]
    np.bitwise_or(pairs & 0x0F, (pairs >> 4) & 0xF0, out=low, casting="unsafe")
    np.bitwise_or((pairs >> 4) & 0x0F, (pairs >> 8) & 0xF0, out=high, casting="unsafe")
    return out.view(np.uint8)


def _q4_0(data: Bytes) -> Blocks:
    parts = data.reshape(len(data), -1, 18)
    return Blocks(4, _interleaved(parts[..., 2:]), _halves(parts[..., :2])[..., 0])


def _q4_1(data: Bytes) -> Blocks:
    """w = d * q + m = d * (q - 8) + (m + 8 * d)."""
    parts = data.reshape(len(data), -1, 20)
    numbers = _halves(parts[..., :4])
    scales = np.ascontiguousarray(numbers[..., 0])
    return Blocks(4, _interleaved(parts[..., 4:]), scales, numbers[..., 1] + 8 * scales)


def _q5_0(data: Bytes) -> Blocks:
    """5 bits in the room of 8; the fifth ones lie together in front."""
    parts = data.reshape(len(data), -1, 22)
    fifth = np.unpackbits(parts[..., 2:6], axis=-1, bitorder="little") << 4
    low = np.concatenate([parts[..., 6:] & 15, parts[..., 6:] >> 4], -1)
    return Blocks(8, (low | fifth) + np.uint8(128 - 16), _halves(parts[..., :2])[..., 0])


def _q8_0(data: Bytes) -> Blocks:
    parts = data.reshape(len(data), -1, 34)
    return Blocks(8, parts[..., 2:] ^ np.uint8(0x80), _halves(parts[..., :2])[..., 0])


def _q4_k(data: Bytes) -> Blocks:
    """Eight blocks share two float16 numbers; each has 6 bits of scale and 6 of minimum."""
    parts = data.reshape(len(data), -1, 144)
    numbers, packed = _halves(parts[..., :4]), parts[..., 4:16]
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales6 = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], -1)
    minima6 = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], -1)
    scales = (numbers[..., :1] * scales6).reshape(len(data), -1)
    minima = (numbers[..., 1:] * minima6).reshape(len(data), -1)
    # 32 bytes hold two blocks: one in the low halves, one in the high.
    nibbles = parts[..., 16:].reshape(*parts.shape[:-1], 4, 1, 32)
    shift = np.array([0, 4], np.uint8).reshape(2, 1)
    quants = ((nibbles >> shift) & np.uint8(15)).reshape(len(data), -1, 32)
    return Blocks(4, quants[..., ::2] | quants[..., 1::2] << np.uint8(4), scales, 8 * scales - minima)


_EXACT = {"Q4_0": _q4_0, "Q4_1": _q4_1, "Q4_K": _q4_k, "Q5_0": _q5_0, "Q8_0": _q8_0}


def _round(tensor: Tensor, check: Callable[[], None]) -> Blocks:
    """To 8 bits, with the error measured."""
    n_rows, n = tensor.shape
    size = _ROUNDED if n % _ROUNDED == 0 else BLOCK
    quants = np.empty((n_rows, n // size, size), np.uint8)
    scales = np.empty((n_rows, n // size), np.float32)
    wrong = whole = 0.0
    step = max(1, _CHUNK // n)
    for start in range(0, n_rows, step):
        check()
        rows = slice(start, start + step)
        values = tensor.float32(rows).reshape(-1, n // size, size)
        scale = np.abs(values).max(-1) / np.float32(127)
        inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        rounded = np.rint(values * inverse[..., None])
        scales[rows], quants[rows] = scale, (rounded + 128).astype(np.uint8)
        difference = (values - rounded * scale[..., None]).ravel()
        wrong += float(difference @ difference)
        whole += float(values.ravel() @ values.ravel())
    return Blocks(8, quants, scales, None, (wrong / whole) ** 0.5 if whole else 0.0)
