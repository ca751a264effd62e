"""What a node must not do, told with the node, and the field, the message or the method at fault.

Every runtime asks here, so that the simulator and the checker refuse the same things in the same words.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from trinco.core import snapshot
from trinco.core.errors import ContractBroken, UsageError
from trinco.core.message import Message, describe
from trinco.core.node import Elector, Node, Process


def require_nodes(nodes: Iterable[Any]) -> None:
    for me, node in enumerate(nodes):
        if not isinstance(node, Node):
            raise UsageError(
                f"p{me} is a {type(node).__name__}, which is no node: derive the class from trinco.core.node.Process, "
                "or from Node if it never enters"
            )


def require_inputs(nodes: Iterable[Node], inputs: Iterable[str]) -> None:
    """Raise where an input is a slip of the pen. A name that is like no other may stand: models of a family offer the
    same inputs, and not every class of it has them all."""
    known = {name for node in nodes for name in dir(node) if callable(getattr(type(node), name, None))}
    for name in inputs:
        close = get_close_matches(name, known, n=1, cutoff=0.8)
        if close and name not in known:
            raise UsageError(f"no node has an input '{name}'; did you mean '{close[0]}'?")


def input_of(me: int, node: Node, name: str) -> Callable[..., None]:
    """The method that the environment calls, if the class has written it."""
    method = getattr(type(node), name, None)
    if method is None or method in _UNWRITTEN:
        raise ContractBroken(f"p{me} is asked to {name}, and {type(node).__name__} has no method {name}(self, ctx)")
    bound: Callable[..., None] = getattr(node, name)
    return bound


_UNWRITTEN = (Process.acquire, Process.release, Elector.elect)


def forbid_hidden_state(me: int, node: Any) -> None:
    """Raise if a node keeps something that no snapshot of it has."""
    hidden = snapshot.undeclared(node)
    if hidden:
        raise ContractBroken(
            f"p{me} keeps '{hidden}', which is no field: declare it in a dataclass, or the checker cannot see it"
        )


def require_choice(me: int, options: Any) -> None:
    if not isinstance(options, int) or options < 1:
        raise ContractBroken(f"p{me} is to choose one of {options!r}: choose(k) needs a whole number of at least 1")


def require_send(me: int, to: Any, message: Any, n: int) -> None:
    """Raise unless this is a message, and to one of n nodes."""
    if not isinstance(message, Message):
        raise ContractBroken(
            f"p{me} sent {message!r:.80} to p{to}, and a {type(message).__name__} is no message: derive it from Message"
        )
    if to not in range(n):
        raise ContractBroken(f"p{me} sent {describe(message)} to p{to}, and there is no such node")


def refuse_mutable(me: int, node: Any, stored: Any, messages: Iterable[Message]) -> NoReturn:
    """Say which value of a node cannot be compared and kept; called when one of them could not."""
    raise ContractBroken(f"{_mutable(me, node, stored, messages)}: {_VALUES}")


_VALUES = "state and messages are ints, strings, tuples, frozensets and other values that never change"


def _mutable(me: int, node: Any, stored: Any, messages: Iterable[Message]) -> str:
    for name, value in snapshot.leaves(node):
        if not _is_value(value):
            return f"p{me}.{name} is a {_culprit(value)}"
    if not _is_value(stored):
        return f"what p{me} stores is a {_culprit(stored)}"
    for message in messages:
        for name in message.__struct_fields__:
            if not _is_value(getattr(message, name)):
                return f"p{me} sent {describe(message)}, whose {name} is a {_culprit(getattr(message, name))}"
    return f"p{me} keeps something that cannot be compared"


def _culprit(value: Any) -> str:
    """The class of what cannot be hashed, and where it is."""
    inside = next((each for each in value if not _is_value(each)), None) if isinstance(value, tuple) else None
    return type(value).__name__ if inside is None else f"{type(value).__name__} with a {_culprit(inside)} in it"


def _is_value(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
