"""A threshold that is declared before the measurement, such as `speedup>=1.1 and ttft<=0.5`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edgespec.bench.rows import METRICS
from edgespec.errors import UsageError

_LONGEST = 200
_OPERATORS: dict[type[ast.cmpop], tuple[str, Callable[[float, float], bool]]] = {
    ast.GtE: (">=", operator.ge),
    ast.Gt: (">", operator.gt),
    ast.LtE: ("<=", operator.le),
    ast.Lt: ("<", operator.lt),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A metric against a number."""

    metric: str
    sign: str
    holds: Callable[[float, float], bool]
    limit: float

    def __call__(self, metrics: Mapping[str, float | None]) -> bool:
        value = metrics.get(self.metric)
        return value is not None and self.holds(value, self.limit)

    def told(self, metrics: Mapping[str, float | None]) -> list[str]:
        value = metrics.get(self.metric)
        return [f"{self.metric} {'not measured' if value is None else f'{value:.4g}'}"]


@dataclass(frozen=True, slots=True)
class Both:
    """All of its parts, or any of them."""

    parts: tuple[Comparison | Both, ...]
    every: bool

    def __call__(self, metrics: Mapping[str, float | None]) -> bool:
        held = [part(metrics) for part in self.parts]
        return all(held) if self.every else any(held)

    def told(self, metrics: Mapping[str, float | None]) -> list[str]:
        return list(dict.fromkeys(text for part in self.parts for text in part.told(metrics)))


Criterion = Comparison | Both
"""Called with the metrics of a row: does it hold? What was not measured does not."""


def parse(text: str) -> Criterion:
    """Comparisons of a metric with a number, joined by `and`, `or` and brackets. Raises UsageError."""
    if len(text) > _LONGEST:
        raise UsageError(f"--accept-if is longer than {_LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"--accept-if {text!r} is no comparison such as speedup>=1.1") from error
    return _criterion(tree.body)


def _criterion(node: ast.expr) -> Criterion:
    if isinstance(node, ast.BoolOp):
        return Both(tuple(map(_criterion, node.values)), isinstance(node.op, ast.And))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        sign, holds = _OPERATORS[type(node.ops[0])]
        return Comparison(_metric(node.left), sign, holds, _limit(node.comparators[0]))
    raise UsageError(f"--accept-if takes comparisons of a metric with a number, not {_shown(node)!r}")


def _metric(node: ast.expr) -> str:
    if isinstance(node, ast.Name) and node.id in METRICS:
        return node.id
    raise UsageError(f"--accept-if knows no {_shown(node)!r}: choose among {', '.join(METRICS)}")


def _limit(node: ast.expr) -> float:
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    number = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    if isinstance(number, ast.Constant) and type(number.value) in (int, float):
        try:
            value = float(number.value)  # type: ignore[arg-type]
        except OverflowError:
            value = float("inf")
        return -value if negative else value
    raise UsageError(f"--accept-if compares with numbers only, not {_shown(node)!r}")


def _shown(node: ast.expr) -> str:
    return ast.unparse(node)[:60]
