"""Somebody who looks on while we wait, and says what there is to see."""

from trinco.cli.streams import say
from trinco.core.errors import TrincoError
from trinco.stores.clock import boottime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_EVERY = 2.0
SAY_EVERY = 10.0


class Onlooker:
    """``news`` gives who is in the way (a new one is told at once, the same again after a while; None: nobody), and
    all that there is to say. Whoever waits calls ``look`` whenever it is awake, at least every second; what ``news``
    looks with must share nothing with whoever waits."""

    def __init__(self, news: "Callable[[], tuple[object, str]]") -> None:
        self._news = news
        self._look_at = 0.0
        self._told: object = None
        self._told_at = 0.0

    def look(self) -> None:
        now = boottime()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY
        try:
            who, text = self._news()
        except TrincoError as error:
            who, text = "nobody can tell", f"waiting, though {error}"
        if who is not None and (who != self._told or now - self._told_at >= SAY_EVERY):
            self._told, self._told_at = who, now
            say(text)
