"""The name of an owner: a client for people to read, and an incarnation that nobody else has.

``ana@laptop:4242/5f0c...`` The 32 hex digits after the slash are the *address* of the process that asks (20 of them,
where a store sends its wake-ups) and the number of the handle within it (12). Two threads are two handles, so they
exclude each other like two hosts (errata E17).
"""

ADDRESS_DIGITS = 20
HANDLE_DIGITS = 12


def owner_name(client: str, address: str, handle: int) -> str:
    return f"{client}/{address}{handle:0{HANDLE_DIGITS}x}"


def address_of(owner: str) -> str:
    """Where to send a wake-up for this owner."""
    return owner.rpartition("/")[2][:ADDRESS_DIGITS]


def client_of(owner: str) -> str:
    """The part for people."""
    return owner.rpartition("/")[0]
