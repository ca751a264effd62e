"""Where Trinco keeps its own files, by the rules of the system."""

import os

from trinco.core.errors import ConfigError


def state_folder() -> str:
    """Where locks are when nobody says otherwise."""
    return os.path.join(_named("XDG_STATE_HOME") or _home(".local", "state"), "trinco")


def config_folder() -> str:
    """Where keys and the user's ``trinco.toml`` are."""
    return os.path.join(_named("XDG_CONFIG_HOME") or _home(".config"), "trinco")


def default_url() -> str:
    return f"sqlite:///{in_url(os.path.join(state_folder(), 'locks.db'))}"


def in_url(path: str) -> str:
    """A path as a URL spells it: a folder may be called 50% or why?."""
    return path.replace("%", "%25").replace("?", "%3F")


def _named(variable: str) -> str | None:
    """What the XDG Base Directory Specification makes of a variable: one that is relative is to be ignored. It would be
    another folder wherever somebody stands, and exclude nobody who stands elsewhere."""
    path = os.environ.get(variable, "")
    return path if os.path.isabs(path) else None


def _home(*parts: str) -> str:
    home = os.environ.get("HOME", os.path.expanduser("~"))
    if not os.path.isabs(home):
        what = f"is '{home}', which is no whole path" if "HOME" in os.environ else "is not set, and this user has none"
        raise ConfigError(f"HOME {what}: set it to the whole path of a folder")
    return os.path.join(home, *parts)
