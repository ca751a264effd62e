"""A paper's formula: prints as written, evaluates over n, m, k and f.

``Formula("2*(n-1)")`` is one number; ``Formula("0..2*(n-1)")`` is a range and ``Formula("1..inf")`` an open one.
"""

import ast
import math
import operator
from collections.abc import Callable

from trinco.core.errors import UsageError

_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "log2": math.log2,
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
}


class Formula:
    """A claim in the paper's own letters. Compare a measurement with ``admits``."""

    __slots__ = ("_high", "_low", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        low, dots, high = text.partition("..")
        self._low = _parse(low, text)
        self._high = _parse(high, text) if dots else self._low

    def low(self, **letters: float) -> float:
        return self._value(self._low, letters)

    def high(self, **letters: float) -> float:
        return self._value(self._high, letters)

    def _value(self, tree: ast.expr, letters: dict[str, float]) -> float:
        try:
            return _evaluate(tree, letters, self.text)
        except UsageError:
            raise
        except (ArithmeticError, ValueError) as error:
            raise UsageError(f"the formula '{self.text}' has no value for {letters}: {error}") from error

    def admits(self, measured: float, *, tolerance: float = 1e-9, **letters: float) -> bool:
        """Whether a measurement lies within the claim."""
        return self.low(**letters) - tolerance <= measured <= self.high(**letters) + tolerance

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"


def _parse(expression: str, text: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"the formula '{text}' cannot be read: {error.msg}") from error


def _evaluate(tree: ast.expr, letters: dict[str, float], text: str) -> float:
    match tree:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id="inf"):
            return math.inf
        case ast.Name(id=letter) if letter in letters:
            return letters[letter]
        case ast.Name(id=letter):
            raise UsageError(f"the formula '{text}' needs a value for {letter}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, letters, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(left, letters, text), _evaluate(right, letters, text))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluate(argument, letters, text) for argument in arguments))
    raise UsageError(f"the formula '{text}' uses '{ast.unparse(tree)}', which formulas do not have")
