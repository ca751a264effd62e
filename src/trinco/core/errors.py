"""What can go wrong, in words for the person who typed the command. ``trinco.cli`` turns each into its exit code."""


class TrincoError(Exception):
    """The root of every error that Trinco raises on purpose."""


class UsageError(TrincoError, ValueError):
    """What was asked makes no sense: an unknown name, a number out of range."""


class BeyondClaims(UsageError):
    """A fault was asked for that the protocol's paper does not promise to survive."""


class DamagedData(TrincoError):
    """A file or a message is not what it should be."""


class ContractBroken(TrincoError):
    """A node did what the contract forbids: it forged a signature, or used an effect its runtime does not have."""


class WorkersLost(TrincoError):
    """Processes that were to do the work are gone, or could not be started: nobody knows what they would have found."""


class KeysMissing(TrincoError):
    """There is nothing to sign with."""


class ConfigError(UsageError):
    """A configuration cannot be used: a wrong URL, an unknown store, a file that does not say what it should."""


class AcquireTimeout(TrincoError, TimeoutError):
    """Somebody else held the lock for as long as we were willing to wait."""


class LeaseLost(TrincoError):
    """The lease is not ours any more. ``reason``: expired, stolen, revoked, unreachable, overtime (``max_hold``),
    forked, closed or released."""

    def __init__(self, message: str, reason: str = "expired") -> None:
        super().__init__(message)
        self.reason = reason


class NotHeld(TrincoError, RuntimeError):
    """Something was to be released that is not held."""


class StoreUnavailable(TrincoError, ConnectionError):
    """A store cannot be reached, or cannot do its work. ``reason``: the words, to be kept until somebody asks for what
    the store cannot do; ``unavailable`` makes the same error of them."""

    @property
    def reason(self) -> str:
        """Its words, to be told on."""
        return str(self)


class StoreForbidden(StoreUnavailable):
    """A store is there, and we may not use it: a password is wrong, or a permission is missing."""

    @property
    def reason(self) -> "Denial":
        """The same, and that it was a refusal."""
        return Denial(self)


class Denial(str):
    """The words of a ``StoreForbidden``."""

    __slots__ = ()


def unavailable(reason: str) -> StoreUnavailable:
    return StoreForbidden(reason) if isinstance(reason, Denial) else StoreUnavailable(reason)


class QuorumUnavailable(StoreUnavailable):
    """Too few stores are left to decide anything."""


class QuorumForbidden(QuorumUnavailable, StoreForbidden):
    """Too few stores are left because we may not use the others."""


def of_one_process(what: str, instead: str) -> TypeError:
    """For ``__reduce__`` of what there is only one of: a copy would go on where the first has ended."""
    article = "an" if what[0] in "aeiou" else "a"
    return TypeError(f"{article} {what} is of one process: it can neither be copied nor pickled; {instead}")
