"""Every exhibit by its name."""

from trinco.core.errors import UsageError
from trinco.lab.exhibits import ricart_agrawala, slides, token_ring
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.catalogue import suggest

EXHIBITS = (*slides.EXHIBITS, *ricart_agrawala.EXHIBITS, *token_ring.EXHIBITS)


def find(name: str) -> Exhibit:
    for exhibit in EXHIBITS:
        if exhibit.name.lower() == name.lower():
            return exhibit
    near = suggest(name, [exhibit.name for exhibit in EXHIBITS])
    raise UsageError(f"there is no exhibit '{name}'{near} ('trinco exhibit' lists them)")
