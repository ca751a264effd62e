"""The paper's figure 3, the automaton by which a server of the Byzantine bakery judges a client, drawn from its table.

As text, one paragraph a state; and as SVG, where the states of a turn stand in a row. What leads on goes straight to
the next state, what leads back goes over the top, and the one way that has no return goes down.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from xml.sax.saxutils import escape

from trinco.protocols.bakery.automaton import BYZ, TABLE, Move, State, edges

BYZANTINE = "byz"
"""What the paper calls the state from which there is no way back."""


def name(state: State) -> str:
    return BYZANTINE if state is BYZ else state.name


def as_text() -> Iterator[str]:
    """Where a client goes from each state, and what leaves it there."""
    width = max(len(move.value) for _, move, _ in edges())
    for state in State:
        yield f"{name(state)}: {state.value}"
        for move, reached in _from(state):
            yield f"  {move.value:<{width}}  -> {name(reached)}"
        stays = [move.value for move in _leave_in(state)]
        yield f"  stays: {'; '.join(stays) or 'for ever'}"


def _from(state: State) -> Iterator[tuple[Move, State]]:
    return ((move, reached) for source, move, reached in edges() if source is state)


def _leave_in(state: State) -> list[Move]:
    return [move for (source, move), reached in TABLE.items() if source is reached is state]


@dataclass(frozen=True)
class Arrow:
    """All that leads from one state to another."""

    source: State
    reached: State
    moves: tuple[Move, ...]

    @property
    def label(self) -> str:
        return " or ".join(move.value for move in self.moves)


def arrows() -> Sequence[Arrow]:
    gathered: dict[tuple[State, State], tuple[Move, ...]] = {}
    for source, move, reached in edges():
        gathered[source, reached] = (*gathered.get((source, reached), ()), move)
    return [Arrow(*ends, moves) for ends, moves in gathered.items()]


STEP, RADIUS, LEVEL = 240, 46, 270
"""From one state to the next, the size of a state, and how far down they stand."""
ARCH, LANDING = 62, 20
"""How much higher a way back rises for each state that it goes back, and how far beside the last it ends."""
DEPTH, HALF, LINE = 210, 80, 20
"""How far below them ``byz`` stands, half of its width, and the height of a line of text."""
TURN = tuple(state for state in State if state is not BYZ)
WIDTH = STEP * len(TURN)
STYLE = """\
text { font-family: sans-serif; font-size: 13px; fill: #1a1a1a; text-anchor: middle }
.name { font-size: 19px; font-weight: bold }
.note { text-anchor: start }
.label { paint-order: stroke; stroke: white; stroke-width: 5px }
.state { fill: #eef3f8; stroke: #1a1a1a; stroke-width: 1.5 }
.last { fill: #fbe9e7; stroke: #1a1a1a; stroke-width: 1.5 }
.way { fill: none; stroke: #0072b2; stroke-width: 1.5; marker-end: url(#tip) }
.down { stroke: #d55e00; marker-end: url(#tip-down) }"""


def as_svg() -> str:
    notes = list(_notes())
    height = LEVEL + DEPTH + RADIUS + LINE * (len(notes) + 2)
    ways = [_way(arrow) for arrow in arrows()]
    labels = [_label(arrow) for arrow in arrows() if arrow.reached is not BYZ]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        "<title>What a server believes of a client (figure 3)</title>",
        f"<style>\n{STYLE}\n</style>",
        f"<defs>{_tip('tip', '#0072b2')}{_tip('tip-down', '#d55e00')}</defs>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *ways,
        *(_circle(state) for state in TURN),
        *_end(),
        *labels,
        *(_text(20, height - LINE * (len(notes) - place), note, "note") for place, note in enumerate(notes)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _notes() -> Iterator[str]:
    yield "A client stays where it is on:"
    stays = {state: _leave_in(state) for state in TURN}
    for move in dict.fromkeys(move for moves in stays.values() for move in moves):
        where = ", ".join(name(state) for state in TURN if move in stays[state])
        yield f"{move.value} (in {where})"


def _x(state: State) -> float:
    return WIDTH / 2 if state is BYZ else STEP * (TURN.index(state) + 0.5)


def _is_next(arrow: Arrow) -> bool:
    return arrow.reached is not BYZ and TURN.index(arrow.reached) == TURN.index(arrow.source) + 1


def _passes(arrow: Arrow) -> int:
    """How many states a way back goes back."""
    return TURN.index(arrow.source) - TURN.index(arrow.reached)


def _rise(arrow: Arrow) -> int:
    return ARCH * _passes(arrow)


def _way(arrow: Arrow) -> str:
    start, end = _x(arrow.source), _x(arrow.reached)
    if arrow.reached is BYZ:
        entry = end + (start - end) * HALF * 1.6 / WIDTH
        path = f"M {start:g} {LEVEL + RADIUS} L {entry:g} {LEVEL + DEPTH - RADIUS / 2 - 3:g}"
        return f'<path class="way down" d="{path}"/>'
    if _is_next(arrow):
        return f'<path class="way" d="M {start + RADIUS:g} {LEVEL} L {end - RADIUS - 3:g} {LEVEL}"/>'
    aside = LANDING * (2 - _passes(arrow))
    landing = LEVEL - sqrt(RADIUS**2 - aside**2) - 3
    over = LEVEL - RADIUS - _rise(arrow) * 4 / 3  # such a curve rises to three quarters of what it aims at
    bend = f"C {start:g} {over:g} {end + aside:g} {over:g} {end + aside:g} {landing:.1f}"
    return f'<path class="way" d="M {start:g} {LEVEL - RADIUS} {bend}"/>'


def _label(arrow: Arrow) -> str:
    middle = (_x(arrow.source) + _x(arrow.reached)) / 2
    if _is_next(arrow):
        return _text(middle, LEVEL - 10, arrow.label, "label")
    return _text(middle + LANDING, LEVEL - RADIUS - _rise(arrow) - 6, arrow.label, "label")


def _circle(state: State) -> str:
    circle = f'<circle class="state" cx="{_x(state):g}" cy="{LEVEL}" r="{RADIUS}"/>'
    return circle + _text(_x(state), LEVEL, name(state), "name") + _text(_x(state), LEVEL + 20, state.value)


def _end() -> Iterator[str]:
    """``byz``, and all that leads to it, which is the same everywhere."""
    left, top = _x(BYZ) - HALF, LEVEL + DEPTH - RADIUS / 2
    yield f'<rect class="last" x="{left:g}" y="{top:g}" width="{2 * HALF}" height="{RADIUS}" rx="12"/>'
    yield _text(_x(BYZ), LEVEL + DEPTH, name(BYZ), "name") + _text(_x(BYZ), LEVEL + DEPTH + 17, "for ever")
    labels = dict.fromkeys(arrow.label for arrow in arrows() if arrow.reached is BYZ)
    yield _text(_x(BYZ), LEVEL + RADIUS + 44, "; ".join(labels), "label")


def _tip(name: str, colour: str) -> str:
    shape = f'<path d="M 0 0 L 10 5 L 0 10 z" fill="{colour}"/>'
    size = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8"'
    return f'<marker id="{name}" {size} orient="auto">{shape}</marker>'


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    looks = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{looks}>{escape(words)}</text>'
