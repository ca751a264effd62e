"""What can go wrong, in words for the person who typed the command. ``trinco.cli`` turns each into its exit code."""


class TrincoError(Exception):
    """The root of every error that Trinco raises on purpose."""


class UsageError(TrincoError):
    """What was asked makes no sense: an unknown name, a number out of range."""


class BeyondClaims(UsageError):
    """A fault was asked for that the protocol's paper does not promise to survive."""


class DamagedData(TrincoError):
    """A file or a message is not what it should be."""


class ContractBroken(TrincoError):
    """A node did what the contract forbids: it forged a signature, or used an effect its runtime does not have."""


class KeysMissing(TrincoError):
    """There is nothing to sign with."""
