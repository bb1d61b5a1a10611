"""What happened in an answer: for people as a line or a block, for programs as a dictionary."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgespec import Model
from edgespec.metrics import Summary

_INDENT = 13


def facts(model: Model) -> dict[str, Any]:
    """What the model is and how it runs."""
    info = model.info
    return {
        "model": info.name,
        "path": info.path,
        "quantization": info.quantization,
        "backend": info.backend,
        "device": info.device,
        "draft": model.draft_info.path if model.draft_info else None,
        "draft_reason": model.pairing,
        "cascade": model.cascade_info.path if model.cascade_info else None,
        "numerics": model.rows.mode,
        "numerics_reason": model.rows.reason,
        "exact_rows": list(model.rows.exact),
        "verify": model.verify,
    }


def summary(model: Model, seed: int) -> dict[str, Any]:
    """The counters of the last answer with everything needed to read them."""
    return {
        **model.stats.as_dict(),
        "shares": model.stats.shares,
        "seed": seed,
        **facts(model),
        "speculation": asdict(model.status),
    }


def status_line(model: Model) -> str:
    """One short line after an answer."""
    stats = model.stats
    parts = [_count(stats.tokens, "token")]
    if stats.tokens_per_second:
        parts.append(f"{stats.tokens_per_second:.1f} tok/s")
    parts.append(f"first after {stats.t_first:.2f} s")
    if stats.draft_n:
        parts.append(f"accepted {stats.draft_n_accepted}/{stats.draft_n} drafted")
    parts.append(f"{_proposer(model)}, {model.rows.mode}")
    if stats.finish == "length":
        full = model.context_used + 1 >= model.n_ctx
        parts.append("the context is full: /clear starts anew" if full else "cut at the limit (-n)")
    return " · ".join(parts)


def block(model: Model, seed: int) -> str:
    """A readable block; each ratio says of what."""
    stats, info, status = model.stats, model.info, model.status
    threads = info.settings.get("n_threads")
    rows = {
        "model": f"{Path(info.path).name}, {info.quantization}, seed {seed}",
        "device": f"{info.backend} on {info.device}, {_count(int(threads or 0), 'thread')}",
        "tokens": f"{stats.tokens} emitted, {stats.prompt_tokens} in the prompt"
        f" ({stats.cached_tokens} of them cached)",
        "speed": f"{stats.tokens_per_second:.1f} tok/s (tokens after the first / decode time),"
        f" first token after {stats.t_first:.2f} s",
        "rounds": f"{stats.rounds}, mean acceptance length {stats.mean_acceptance_length:.2f}"
        " (emitted tokens / rounds)",
        "drafts": _drafts(stats),
        "sources": _sources(stats),
        "numerics": f"{model.rows.mode}: {model.rows.reason}",
        "speculation": f"{'on' if status.on else 'off'}: {status.reason};"
        f" proposer {status.proposer}, depth {status.depth}, verify {model.verify}",
    }
    rows["draft model"] = model.pairing
    if model.draft_info is not None:
        named = f"{Path(model.draft_info.path).name}, {model.draft_info.quantization}"
        rows["draft model"] = f"{named} ({model.pairing})"
    if model.cascade_info is not None:
        rows["cascade"] = f"{Path(model.cascade_info.path).name}, {model.cascade_info.quantization}"
    return "\n".join(f"{label:<{_INDENT}}{text}" for label, text in rows.items())


def _drafts(stats: Summary) -> str:
    rate = stats.acceptance_rate
    if rate is None:
        return "draft_n 0, nothing was drafted"
    return (
        f"draft_n {stats.draft_n}, draft_n_accepted {stats.draft_n_accepted},"
        f" acceptance rate {rate:.1%} (accepted / verified drafted tokens)"
    )


def _sources(stats: Summary) -> str:
    total = sum(stats.sources.values())
    shares = ", ".join(f"{source} {share:.1%}" for source, share in stats.shares.items())
    return f"{shares or 'none'} (of {_count(total, 'shown token')})"


def _proposer(model: Model) -> str:
    status = model.status
    if not status.on:
        return "plain"
    drafted = {s: n for s, n in model.stats.sources.items() if s != "target"}
    return "+".join(drafted) if drafted else "no drafts accepted" if model.stats.draft_n else "no drafts"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
