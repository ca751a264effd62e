"""Which lock service a command is about: ``-u`` and ``-c``, the same for all."""

import argparse

from trinco.cli.streams import say, say_nothing
from trinco.core.duration import in_words
from trinco.locks.inspection import LockInfo
from trinco.locks.service import LockService, connect

OWN_NAMES = "trinco/"
PROBES = (f"{OWN_NAMES}health/", f"{OWN_NAMES}doctor/")
"""Locks below these are what ``health`` and ``doctor`` probe with."""


def add_service(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-u", "--url", metavar="URL|@SERVICE", help="the store, or a service of trinco.toml (what trinco.toml says)")
    add("-c", "--config", metavar="FILE", help="a configuration other than trinco.toml")


def open_service(options: argparse.Namespace) -> LockService:
    """Nothing is contacted yet. Who asked for silence (``-q``) is told nothing but errors."""
    is_quiet = getattr(options, "quiet", False)
    return connect(options.url, config=options.config, tell=say_nothing if is_quiet else say)


def ago(age: float | None) -> str:
    return "-" if age is None else f"{in_words(age)} ago"


def lock_as_dict(info: LockInfo) -> dict[str, object]:
    return {
        "name": info.name,
        "held": info.held,
        "owner": info.owner,
        "token": info.token,
        "remaining": info.remaining if info.held else None,
        "age": info.age,
        "metadata": info.metadata,
        "waiters": list(info.waiters),
        "why": info.why,
    }
