"""Strongly connected components of a graph that is given by its successor function."""

from collections.abc import Callable, Iterable, Iterator


def components(states: Iterable[int], successors: Callable[[int], Iterable[int]]) -> Iterator[set[int]]:
    """Every component, a single state without a loop too (Tarjan 1972, with a stack of its own for the recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    pending: list[int] = []
    closed: set[int] = set()
    for root in states:
        visits = [] if root in index else [(root, iter(successors(root)))]
        if visits:
            index[root] = low[root] = len(index)
            pending.append(root)
        while visits:
            state, ahead = visits[-1]
            successor = next(ahead, None)
            if successor is None:
                visits.pop()
                if visits:
                    caller = visits[-1][0]
                    low[caller] = min(low[caller], low[state])
                if low[state] == index[state]:
                    yield _close(state, pending, closed)
            elif successor not in index:
                index[successor] = low[successor] = len(index)
                pending.append(successor)
                visits.append((successor, iter(successors(successor))))
            elif successor not in closed:
                low[state] = min(low[state], index[successor])


def _close(state: int, pending: list[int], closed: set[int]) -> set[int]:
    """Everything opened since this state belongs to its component."""
    component: set[int] = set()
    while state not in component:
        component.add(pending.pop())
    closed |= component
    return component


def beyond_cycles(states: Iterable[int], successors: Callable[[int], Iterable[int]]) -> set[int]:
    """The states that some cycle leads to: what is left when states without predecessors are peeled off. Empty for a
    graph without cycles, and much cheaper than its components."""
    incoming = dict.fromkeys(states, 0)
    for state in incoming:
        for successor in successors(state):
            incoming[successor] += 1
    peeled = [state for state, count in incoming.items() if not count]
    for state in peeled:
        for successor in successors(state):
            incoming[successor] -= 1
            if not incoming[successor]:
                peeled.append(successor)
    return set(incoming).difference(peeled)
