"""From answers to the rows of the table: one a category and configuration, and one over all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from edgespec.bench.answers import PLAIN, Answer, First, differences
from edgespec.bench.stats import Ratio, median, percentile, ratio_of_medians

ALL = "all"


@dataclass(frozen=True, slots=True)
class Row:
    """Times are seconds. None is not measured.

    `tokens_per_second`, `ttft`: medians. `speedup`: ratio of the medians of tok/s, this over plain.
    `itl_*`: time between tokens, those that arrive together sharing their wait; `pause_p99`: the wait
    itself. `acceptance_rate`: accepted of verified drafted tokens. `mean_acceptance_length`: emitted
    tokens a round. `differ`: answers that are not plain's, of `answers`.
    """

    category: str
    configuration: str
    answers: int
    tokens_per_second: float | None
    speedup: Ratio | None
    ttft: float | None
    itl_p50: float | None
    itl_p95: float | None
    itl_p99: float | None
    pause_p99: float | None
    acceptance_rate: float | None
    mean_acceptance_length: float | None
    joules_per_token: float | None
    differ: int

    def metrics(self) -> dict[str, float | None]:
        """Numbers by name, the interval as speedup_low and speedup_high."""
        values = asdict(self)
        for name in ("category", "configuration", "speedup"):
            del values[name]
        ratio = self.speedup
        return {
            **values,
            "speedup": ratio and ratio.value,
            "speedup_low": ratio and ratio.low,
            "speedup_high": ratio and ratio.high,
        }

    def as_dict(self) -> dict[str, object]:
        """One flat record."""
        return {"category": self.category, "configuration": self.configuration, **self.metrics()}


METRICS = (*(f.name for f in fields(Row)[2:]), "speedup_low", "speedup_high")
"""Names that `Row.metrics` has."""


def rows(answers: Sequence[Answer], firsts: Sequence[First]) -> list[Row]:
    """Categories in the order of their first answer, then all; configurations likewise."""
    categories = list(dict.fromkeys(a.place.category for a in answers))
    configurations = sorted(dict.fromkeys(a.configuration for a in answers), key=lambda c: c != PLAIN)
    scopes = categories if len(categories) == 1 else [*categories, ALL]
    return [
        _row(category, configuration, _in(answers, category, lambda a: a.place.category), firsts)
        for category in scopes
        for configuration in configurations
    ]


def _in(answers: Iterable[Answer], category: str, of: Callable[[Answer], str]) -> list[Answer]:
    return [a for a in answers if category == ALL or of(a) == category]


def _row(category: str, configuration: str, answers: list[Answer], firsts: Sequence[First]) -> Row:
    mine = [a.taken for a in answers if a.configuration == configuration]
    pauses = [pause for taken in mine for pause in taken.pauses()]
    each, weights = [seconds / n for seconds, n in pauses], [n for _, n in pauses]
    waits = [seconds for seconds, _ in pauses]
    drafted = sum(taken.draft_n or 0 for taken in mine)
    with_rounds = [taken for taken in mine if taken.rounds]
    energy = [taken for taken in mine if taken.joules is not None]
    return Row(
        category,
        configuration,
        len(mine),
        tokens_per_second=median([rate for taken in mine if (rate := taken.tokens_per_second)]),
        speedup=None if configuration == PLAIN else ratio_of_medians(pairs(answers, configuration)),
        ttft=median(
            [f.seconds for f in firsts if f.configuration == configuration and category in (ALL, f.category)]
        ),
        itl_p50=percentile(each, weights, 50),
        itl_p95=percentile(each, weights, 95),
        itl_p99=percentile(each, weights, 99),
        pause_p99=percentile(waits, [1] * len(waits), 99),
        acceptance_rate=sum(t.draft_n_accepted or 0 for t in mine) / drafted if drafted else None,
        mean_acceptance_length=_over(sum(t.n for t in with_rounds), sum(t.rounds or 0 for t in with_rounds)),
        joules_per_token=_over(sum(t.joules or 0.0 for t in energy), sum(t.n for t in energy)),
        differ=sum(d.configuration == configuration for d in differences(answers)),
    )


def _over(a: float, b: float) -> float | None:
    return a / b if b else None


def pairs(answers: Sequence[Answer], configuration: str, base: str = PLAIN) -> list[tuple[float, float]]:
    """(tok/s of the base, of the configuration) of every place that has both."""
    before = {a.place: a.taken.tokens_per_second for a in answers if a.configuration == base}
    return [
        (one, other)
        for a in answers
        if a.configuration == configuration
        and (one := before.get(a.place))
        and (other := a.taken.tokens_per_second)
    ]
