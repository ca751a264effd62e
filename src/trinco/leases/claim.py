"""Who asks, told apart from everybody else and from its own past."""

from trinco.core.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Claim(Value):
    """One attempt of one owner: what a store keeps, compares and deletes.

    ``owner`` is a client *and* its incarnation: two threads, two processes or one process before and after a restart
    are different owners (E17). ``attempt`` rises with every acquire of an owner, so that a late message of an old
    attempt is known for what it is (E1, E4). ``nonce`` makes the claim unique in a store; in simulator and checker
    (owner, attempt) already is.
    """

    __slots__ = ("attempt", "nonce", "owner")

    def __init__(self, owner: "Any", attempt: int, nonce: bytes = b"") -> None:
        self.owner = owner
        self.attempt = attempt
        self.nonce = nonce

    def is_older_than(self, other: "Claim") -> bool:
        """Whether this is an earlier attempt of the same owner."""
        return self.owner == other.owner and self.attempt < other.attempt
