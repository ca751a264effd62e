"""The refusal that all guards share, and what counts as a token."""

from trinco.core.errors import TrincoError, UsageError
from trinco.leases.operation import TOKEN_LIMIT


class StaleToken(TrincoError):
    """Somebody has held the lock since: an effect with a larger token has been let through, so this one must not be.

    ``highest`` is None where the resource did not say. There is nothing to retry: acquire the lock again, look at what
    the others did, and start over.
    """

    def __init__(self, resource: str, token: int, highest: int | None) -> None:
        seen = "a larger one" if highest is None else str(highest)
        super().__init__(
            f"'{resource}' refuses the token {token}: it has seen {seen}, so somebody else has held the lock since; "
            "acquire it again and start over"
        )
        self.resource = resource
        self.token = token
        self.highest = highest

    def __reduce__(self) -> "tuple[type[StaleToken], tuple[str, int, int | None]]":
        """Pools of processes pass errors on."""
        return StaleToken, (self.resource, self.token, self.highest)


def require_token(token: object) -> int:
    """A guard without a token would let everything pass, so a lease that has none is an error and no exception."""
    if token is None:
        raise UsageError("this lease has no token: its stores cannot fence, so a guard cannot protect anything")
    if type(token) is not int or not 0 <= token < TOKEN_LIMIT:
        raise UsageError(f"a token is a whole number from 0 to below {TOKEN_LIMIT}, not {token!r}")
    return token


def require_current(resource: str, token: int, highest: int | None) -> None:
    """The rule: an effect passes if its token is not smaller than the largest seen. The same token may come often: one
    holder does many things."""
    if highest is not None and token < highest:
        raise StaleToken(resource, token, highest)
