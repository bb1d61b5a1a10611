"""The transforms written plainly, in float64, over the whole vocabulary."""

from collections import Counter

import numpy as np

from edgespec.types import SamplingSettings


def distribution(row, s: SamplingSettings, history=()) -> dict[int, float]:
    logits = [float(x) for x in row]
    for token, bias in s.logit_bias.items():
        logits[token] += bias
    last = list(history) if s.penalty_last_n < 0 else list(history)[max(0, len(history) - s.penalty_last_n) :]
    for token, count in Counter(last if s.penalty_last_n else []).items():
        x = logits[token]
        x = x / s.repeat_penalty if x > 0 else x * s.repeat_penalty
        logits[token] = x - count * s.frequency_penalty - s.presence_penalty
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if s.temperature <= 0:
        return {order[0]: 1.0}
    if s.top_k > 0:
        order = order[: s.top_k]
    best = logits[order[0]]
    if s.top_p < 1.0:
        weights = [np.exp(logits[i] - best) for i in order]
        wanted, mass, keep = s.top_p * sum(weights), 0.0, 0
        while mass < wanted and keep < len(order):
            mass += weights[keep]
            keep += 1
        order = order[: max(keep, 1)]
    if s.min_p > 0.0:
        order = [i for i in order if np.exp(logits[i] - best) >= s.min_p]
    weights = [np.exp((logits[i] - best) / s.temperature) for i in order]
    total = sum(weights)
    return {i: w / total for i, w in zip(order, weights, strict=True) if w > 0}
