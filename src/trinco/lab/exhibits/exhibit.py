"""An exhibit: a flaw as it was printed or built, kept alive, with the smallest instance that shows what it breaks."""

from collections.abc import Callable
from dataclasses import dataclass

from trinco.check.model import Model


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    name: str
    """``paper/ID`` for a flaw of a paper, ``protocol/what`` for one that no paper printed."""
    title: str
    printed: str
    """Where the flaw stands, or who makes it."""
    lesson: str
    """Why it breaks, in a sentence or two."""
    breaks: str
    """The kind of violation that the checker must find."""
    model: Callable[[], Model]
    mended: Callable[[], Model]
    """The same instance without the flaw: it must hold, or the exhibit shows nothing."""
