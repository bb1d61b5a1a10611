"""Logits -> distribution, and keyed noise."""

from edgespec.sampling.sampler import Sampler, confidence, draw

__all__ = ["Sampler", "confidence", "draw"]
