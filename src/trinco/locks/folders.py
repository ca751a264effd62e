"""Where Trinco keeps its own files, by the rules of the system."""

import os


def state_folder() -> str:
    """Where locks are when nobody says otherwise."""
    return os.path.join(os.environ.get("XDG_STATE_HOME") or _home(".local", "state"), "trinco")


def config_folder() -> str:
    """Where keys and the user's ``trinco.toml`` are."""
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or _home(".config"), "trinco")


def default_url() -> str:
    return f"sqlite:///{os.path.join(state_folder(), 'locks.db')}"


def _home(*parts: str) -> str:
    return os.path.join(os.path.expanduser("~"), *parts)
