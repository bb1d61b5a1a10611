"""Templates from model files are programs of strangers: they run with bounded time and memory."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sized
from datetime import datetime
from functools import wraps
from typing import Any, NoReturn, cast

from jinja2 import TemplateError as JinjaError
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edgespec.errors import TemplateError

SECONDS = 5.0
CHARACTERS = 5_000_000
_LARGEST = 1000
_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})
_HARMLESS = frozenset({"default", "d", "select", "reject", "selectattr", "rejectattr"})
_WIDE = re.compile(r"%[^a-zA-Z%]*(\*|\d{4})|\{[^{}]*[:{]")


class _Refused(Exception):
    """The template asked for more than it may have."""


class _Limits:
    """What is left of one rendering: characters and elements made, and time."""

    def __init__(self, characters: int) -> None:
        self.left = characters
        self.deadline = time.monotonic() + SECONDS

    def spend(self, amount: int) -> None:
        self.left -= amount + 1
        if self.left < 0:
            raise _Refused("it makes too much text")
        if time.monotonic() > self.deadline:
            raise _Refused(f"it takes longer than {SECONDS:.0f} s")

    def pay(self, value: Any) -> Any:
        """The value, after paying for all that is nested in it: a few doublings make a giant."""
        self.spend(_size(value))
        nested = [value]
        while nested:
            inner = nested.pop()
            for item in (
                inner.values()
                if isinstance(inner, dict)
                else inner
                if isinstance(inner, list | tuple)
                else ()
            ):
                if isinstance(item, list | tuple | dict | str):
                    self.spend(len(item))
                    nested.append(item)
        return value


class _Generation(Extension):
    """`{% generation %}` marks what the assistant wrote; here only its body counts."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _size(value: object) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _check_format(template: object) -> None:
    if isinstance(template, str) and _WIDE.search(template):
        raise _Refused("it formats with a width")


def _is_huge(number: object) -> bool:
    return isinstance(number, int) and abs(number) > _LARGEST


class _Environment(ImmutableSandboxedEnvironment):
    """Immutable sandbox in which every loop, call, filter and operator is paid for."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[_Generation, loopcontrols]
        )
        self.limits = _Limits(CHARACTERS)
        self.globals.pop("lipsum", None)
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
        self.filters["tojson"] = _to_json
        self.filters = {name: self._paid(name, filter_) for name, filter_ in self.filters.items()}
        self.filters["__each"] = self._each
        self.filters["__glue"] = lambda parts: self.concat(map(str, parts))
        self.filters["__made"] = lambda value: self.limits.pay(value)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for parent in [tree, *tree.find_all(nodes.Node)]:
            for field, value in parent.iter_fields():
                if isinstance(value, list):
                    value[:] = map(_paid_node, value)
                else:
                    setattr(parent, field, _paid_node(value))
            if isinstance(parent, nodes.For):
                parent.iter = _filtered("__each", parent.iter)
        return tree

    def concat(self, parts: Iterable[str]) -> str:
        """How blocks and macros join what they put out."""
        texts = list(parts)
        self.limits.spend(sum(map(len, texts)))
        return "".join(texts)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            _check_format(value.__self__)
        return wrapped

    def _each(self, values: Any) -> Any:
        if isinstance(values, Sized):
            self.limits.spend(len(values))
            return values
        out = []
        for value in values:
            self.limits.spend(1)
            out.append(value)
        return out

    def _paid(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The filter `name`, refused what would be huge and paid for."""
        first = int(hasattr(function, "jinja_pass_arg"))

        @wraps(function)
        def paid(*args: Any, **options: Any) -> Any:
            value, *rest = args[first:]
            if name not in _HARMLESS and any(_is_huge(arg) for arg in (*rest, *options.values())):
                raise _Refused("it asks for a huge width")
            if name == "format":
                _check_format(str(value))
            elif name == "replace" and len(rest) >= 2:
                self._pay_replace(str(value), *rest[:2])
            elif name == "join":
                self.limits.spend(_size(value) * len(str(rest[0] if rest else options.get("d", ""))))
            self.limits.spend(_size(value))
            return self.limits.pay(function(*args, **options))

        return paid

    def _pay_replace(self, text: str, old: object, new: object) -> None:
        self.limits.spend(text.count(str(old)) * len(str(new)))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            self._check_product(left, right)
        elif operator == "**" and not (abs(left) <= _LARGEST and abs(right) <= 64):
            raise _Refused("it computes a huge power")
        elif operator == "%":
            _check_format(left)
        return self.limits.pay(super().call_binop(context, operator, left, right))

    def _check_product(self, left: Any, right: Any) -> None:
        if isinstance(left, int) and isinstance(right, int):
            if left.bit_length() + right.bit_length() > 4096:
                raise _Refused("it computes a huge number")
            return
        for value, times in ((left, right), (right, left)):
            if isinstance(times, int):
                self.limits.spend(_size(value) * max(times, 0))

    def getitem(self, obj: Any, argument: Any) -> Any:
        result = super().getitem(obj, argument)
        if isinstance(argument, slice):
            self.limits.spend(_size(result))
        return result

    def call(self, context: Context, obj: Any, /, *args: Any, **options: Any) -> Any:
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, str):
            self._check_method(owner, obj.__name__, args)
        self.limits.spend(_size(owner))
        return self.limits.pay(super().call(context, obj, *args, **options))

    def _check_method(self, owner: str, name: str, args: tuple[Any, ...]) -> None:
        if name in _PADDING and any(map(_is_huge, args)):
            raise _Refused("it asks for a huge width")
        if name == "replace" and len(args) >= 2:
            self._pay_replace(owner, *args[:2])
        if name == "join" and args:
            self.limits.spend(len(owner) * _size(args[0]))


def _filtered(name: str, node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(cast(nodes.Expr, node), name, [], [], None, None, lineno=node.lineno)


def _paid_node(node: Any) -> Any:
    """Expressions that make something new, as a filter that pays for it."""
    if isinstance(node, nodes.Concat):
        return _filtered("__glue", nodes.List(node.nodes, lineno=node.lineno))
    if isinstance(node, nodes.List | nodes.Dict) or (isinstance(node, nodes.Tuple) and node.ctx == "load"):
        return _filtered("__made", node)
    return node


def _raise_exception(message: str) -> NoReturn:
    raise JinjaError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form[:100])


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _cause(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


class Sandbox:
    """One compiled template. Every failure is a TemplateError of one line."""

    def __init__(self, source: str) -> None:
        if len(source) > CHARACTERS // 5:
            raise TemplateError(f"the chat template is too long: {len(source)} characters")
        self._environment = _Environment()
        try:
            self._template = self._environment.from_string(source)
        except Exception as error:
            raise TemplateError(f"the chat template is broken: {_cause(error)}") from error

    def render(self, variables: Mapping[str, object], size: int) -> str:
        """The text for these variables, which hold about `size` characters."""
        self._environment.limits = limits = _Limits(CHARACTERS + 50 * size)
        parts = []
        try:
            for part in self._template.generate(**variables):
                limits.spend(len(part))
                parts.append(part)
        except Exception as error:
            raise TemplateError(f"the chat template failed: {_cause(error)}") from error
        return "".join(parts)
