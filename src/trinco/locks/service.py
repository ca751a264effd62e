"""A lock service: the stores, and everything that can be locked on them."""

import os
from _thread import allocate_lock

from trinco.core.duration import in_words
from trinco.core.errors import AcquireTimeout, ConfigError, StoreUnavailable, TrincoError, UsageError, of_one_process
from trinco.core.printable import printable
from trinco.leases.terms import Terms
from trinco.locks.books import GLANCE
from trinco.locks.config import Service, find_service
from trinco.locks.desk import Desk
from trinco.locks.election import Election
from trinco.locks.endings import end_on_sigterm, leave_sigterm_alone
from trinco.locks.entries import PlainEntries
from trinco.locks.forking import reopened_in_children
from trinco.locks.hub import Hub
from trinco.locks.inspection import LockInfo, Look
from trinco.locks.keeper import Keeper
from trinco.locks.lock import Lock, Semaphore
from trinco.locks.names import is_name, require_client, require_name, require_prefix, require_token, shown, slot_names
from trinco.locks.options import Options, require_known, require_ttl
from trinco.locks.sole import SoleHub
from trinco.stores.catalogue import open_store
from trinco.stores.clock import boottime
from trinco.stores.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, NoReturn, TypeAlias, Unpack

    from trinco.leases.keys import Keyring
    from trinco.locks.aio.service import AsyncLockService
    from trinco.locks.health import StoreHealth
    from trinco.locks.options import LockOptions
    from trinco.locks.sealed import SealedEntries

    Healths: TypeAlias = list[StoreHealth]
    """By a name of its own: inside the service, ``list`` is what lists the locks."""

MAX_LIMIT = 1000
MAX_ID = 200
_making = reopened_in_children(allocate_lock())


class LockService:
    """Made by ``trinco.connect``. May be shared by any number of threads; a forked child gets a service of its own
    under the same name, and none of the leases."""

    def __init__(
        self,
        stores: "Sequence[Store]",
        f: int = 0,
        *,
        keyring: "Keyring | None" = None,
        ttl: float | None = None,
        client: str | None = None,
        clock: "Callable[[], float]" = boottime,
    ) -> None:
        Terms(len(stores), f)  # judges the numbers
        _judge_together(stores)
        self.stores = tuple(stores)
        self.f = f
        self._keyring = keyring
        self._ttl = ttl
        self._client = _client() if client is None else require_client(client)
        self._clock = clock
        self._aio: AsyncLockService | None = None
        self._desk: Desk | None = None
        self._process = os.getpid()
        end_on_sigterm(self)

    @property
    def desk(self) -> Desk:
        """Where leases are obtained; a forked child gets one of its own."""
        desk = self._desk
        return desk if desk is not None and self._process == os.getpid() else self._new_desk()

    def _new_desk(self) -> Desk:
        with _making:
            if self._process != os.getpid():
                if self._desk is not None:
                    self._desk.forget()
                self._desk, self._aio, self._process = None, None, os.getpid()
            if self._desk is None:
                self._desk = Desk(self.new_hub(), self.f)
                self._desk.keeper = Keeper(self._desk)
            return self._desk

    def new_hub(self) -> Hub:
        """Links of its own to the same stores."""
        entries = _entries(self._keyring, tuple(_base_id(store) for store in self.stores))
        kind = SoleHub if len(self.stores) == 1 else Hub
        return kind(
            self.stores, entries, client=self._client, address=os.urandom(10).hex(), chance=_chance, clock=self._clock
        )

    # What can be locked

    def options(self, given: "LockOptions") -> Options:
        """What ``lock`` and its relatives were given, judged, with the defaults of this service."""
        require_known(given)
        if self._ttl is not None and given.get("ttl") is None:
            given["ttl"] = self._ttl
        return Options(self.desk.hub, self.f, **given)

    def lock(self, name: str, **options: "Unpack[LockOptions]") -> Lock:
        """``ttl``: how long it outlives a crash of its holder (30 s). ``auto_renew``: in the background, at a third of
        the ttl. ``max_hold``: no longer than this, however often it is renewed. ``on_lost``: called with the lease.
        ``metadata``: up to 1 KiB of text for others to see. ``reentrant``: the same thread may acquire it again."""
        name = require_name(name)
        return Lock(self, name, (name,), self.options(options))

    def semaphore(self, name: str, limit: int, **options: "Unpack[LockOptions]") -> Semaphore:
        """``limit`` may hold it at once; options as for ``lock``."""
        return Semaphore(self, require_name(name), slots(name, limit), self.options(options))

    def election(self, name: str, **options: "Unpack[LockOptions]") -> Election:
        """One of those who run for it leads at a time; options as for ``lock``."""
        return Election(self.lock(name, **options))

    # Looking

    def inspect(self, name: str) -> LockInfo:
        """Who holds a lock, and who waits."""
        return self.look(require_name(name)).info(self.desk.hub, self.enough)

    def list(self, prefix: str = "") -> "Iterator[LockInfo]":
        """Every lock that a store knows of, held or not. What no lock can be called is none of ours."""
        for name in filter(is_name, self.names(prefix)):
            yield self.inspect(name)

    def names(self, prefix: str = "") -> "Sequence[str]":
        """What locks there are. A store that cannot be asked is left out, as long as a quorum can."""
        from trinco.locks.blame import let_alarms_through

        prefix = require_prefix(prefix)
        if not prefix.isprintable():
            return ()  # no lock is called so
        names: set[str] = set()
        failures: dict[int, str] = {}
        for base, store in enumerate(self.stores):
            try:
                link = store.connect(self.desk.hub.address)
                try:
                    names.update(link.names(prefix))
                finally:
                    link.close()
            except StoreUnavailable as error:
                let_alarms_through(error)
                failures[base] = error.reason
        if len(self.stores) - len(failures) < self.desk.quorum:
            raise self.desk.unavailable(failures, set())
        return sorted(names)

    def break_(self, name: str, *, token: int | None = None) -> bool:
        """Take a lock away from whoever holds it, if that one has this token; whether there was anything to take. Its
        holder learns of it at its next renewal: only a fenced resource is safe from it until then."""
        require_token(token)
        name = require_name(name)
        look = self.look(name)
        holder = look.holder(self.enough)
        if holder is None or (token is not None and holder.token != token):
            return False
        self.desk.banish(name, holder.claim, self.options({}).once)
        after = self.look(name).holder(self.enough)
        return after is None or after.claim != holder.claim

    def health(self) -> "Healths":
        """What each store is worth: reachable, how quick, when it answered last, and whether it was caught lying."""
        from trinco.locks.health import examine_all

        return examine_all(self.stores, self.desk.hub)

    @property
    def enough(self) -> int:
        """So many stores that at least one of them does not lie."""
        return self.f + 1

    def look(self, resource: str) -> Look:
        """What each store has about one lock; ``inspect`` makes one answer of it."""
        return self.desk.look(resource)

    def is_held(self, resources: "tuple[str, ...]") -> bool:
        return any(self.inspect(resource).held for resource in resources)

    def timed_out(self, name: str, resources: "tuple[str, ...]", timeout: float | None) -> AcquireTimeout:
        """The error that says who was in the way, or what."""
        troubles = tuple(self.desk.hub.troubles)
        try:
            looks = [self.desk.look(resource, GLANCE).info(self.desk.hub, self.enough) for resource in resources]
            holders = [info for info in looks if info.held]
        except TrincoError:
            holders = []
        return acquire_timeout(name, holders, timeout, troubles)

    # The rest

    @property
    def aio(self) -> "AsyncLockService":
        """The same for async code, on asyncio or trio."""
        desk = self.desk
        if self._aio is None or (self._aio.desk.is_closed and not desk.is_closed):
            from trinco.locks.aio.service import AsyncLockService

            self._aio = AsyncLockService(self)
            if desk.is_closed:
                self._aio.desk.shut()
        return self._aio

    def close(self) -> None:
        """Release everything that is held, and hang up. Idempotent."""
        self.desk.close()  # if it was never used, there is one now, which never will be
        if self._aio is not None and not self._aio.desk.is_closed:
            self._aio.desk.shut()
        leave_sigterm_alone(self)

    def __del__(self) -> None:
        """Nobody can lock with it any more. It is closed in the background, when what is still held was given back."""
        desk = getattr(self, "_desk", None)
        if desk is not None and desk.keeper is not None and self._process == os.getpid():
            desk.keeper.retire()

    def __enter__(self) -> "LockService":
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self.close()

    def __reduce__(self) -> "NoReturn":
        raise of_one_process("lock service", "connect again where it is needed: trinco.connect(...)")

    def __repr__(self) -> str:
        return f"<LockService {', '.join(store.url for store in self.stores)} f={self.f}>"


def connect(
    target: "str | dict[str, Any] | None" = None,
    *,
    stores: "Sequence[str | Store] | None" = None,
    f: int | None = None,
    config: str | None = None,
    keyring: "Keyring | None" = None,
    client: str | None = None,
    tell: "Callable[[str], object] | None" = None,
) -> LockService:
    """A lock service on a store's URL, on a named service (``"@backups"``), on a quorum (``"quorum:?f=1"`` with its
    ``stores``), or, without any of these, on what the configuration says. Nothing is contacted yet. ``tell``: called
    with what a person should know (a secret was made), instead of a warning or a line on standard error."""
    if target is not None and not isinstance(target, str | dict):
        raise ConfigError(f"connect() takes a URL, an @service or a table of settings, not {type(target).__name__}")
    _require_types(stores, f, config, keyring)
    service = _described(target, config)
    if stores is not None:
        named = service.stores if isinstance(target, str | dict) else ()
        service = service.but(stores=(*named, *stores))
    if f is not None:
        service = service.but(f=f)
    if not service.stores:
        raise ConfigError("there is no store to lock on: give URLs, as in quorum:?f=1&store=URL&store=URL...")
    opened = _opened(service)
    _warn_of_one_fate(opened, tell)
    if keyring is None:
        keyring = _keyring(service, len(opened), tell)  # which may be written: not before all else is judged
    return LockService(opened, service.f, keyring=keyring, ttl=service.ttl, client=client)


def _opened(service: Service) -> "list[Store]":
    """Judged one by one and together. What is wrong with them is told with the file that lists them."""
    try:
        opened = [open_store(store) if isinstance(store, str) else store for store in service.stores]
        Terms(len(opened), service.f)
        if service.ttl is not None:
            require_ttl(service.ttl, min(store.t_max for store in opened))
        _judge_together(opened)
    except UsageError as error:
        raise ConfigError(f"{service.where}: {error}" if service.where else str(error)) from None
    return opened


def _require_types(stores: "Any", f: "Any", config: "Any", keyring: "Any") -> None:
    if stores is not None and (isinstance(stores, str) or not all(isinstance(store, str | Store) for store in stores)):
        raise ConfigError("stores is a list of URLs, or of stores")
    if f is not None and type(f) is not int:
        raise ConfigError(f"f is how many stores may fail, a whole number, not {f!r}")
    if config is not None and not isinstance(config, str | os.PathLike):
        raise ConfigError(f"config is the path of a file, not {config!r}")
    if keyring is not None and not hasattr(keyring, "signing_key"):
        raise ConfigError(f"keyring is a Keyring, not {type(keyring).__name__}")


def _described(target: "str | dict[str, Any] | None", config: str | None) -> Service:
    if isinstance(target, dict):
        from trinco.locks.config import from_table

        return from_table(target, "the configuration", os.getcwd())
    return find_service(target, config)


def _keyring(service: Service, n: int, tell: "Callable[[str], object] | None") -> "Keyring | None":
    auth = service.auth or ("none" if n == 1 else "secret")
    if n == 1 and auth == "none":
        return None
    from trinco.locks.keyfile import keyring_for

    return keyring_for(auth, service.keys, tell)


def _entries(keyring: "Keyring | None", ids: tuple[str, ...]) -> "PlainEntries | SealedEntries":
    if keyring is None:
        return PlainEntries()
    from trinco.locks.sealed import SealedEntries

    return SealedEntries(keyring, ids, os.urandom)


def acquire_timeout(
    name: str, holders: "Sequence[LockInfo]", timeout: float | None, troubles: "Sequence[str | None]"
) -> AcquireTimeout:
    named = ((shown(info.owner), info.why) for info in holders)
    who = ", ".join(dict.fromkeys(f"{owner} ({why})" if why else owner for owner, why in named))
    told = "; ".join(filter(None, troubles))
    held = f"; it is held by {who}" if who else f"; {told}" if told else ""
    patience = "" if timeout is None else f" within {in_words(timeout)}"
    return AcquireTimeout(printable(f"the lock '{name}' could not be had{patience}{held}"))


def slots(name: str, limit: int) -> tuple[str, ...]:
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"a semaphore has 1 to {MAX_LIMIT} units, not {limit!r}")
    return slot_names(name, limit)


def _judge_together(stores: "Sequence[Store]") -> None:
    """What may stand together in a quorum."""
    urls = [store.url for store in stores]
    twice = next((url for url in urls if urls.count(url) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is listed twice: a store has one vote")
    local = [store for store in stores if store.local]
    if local and len(local) < len(stores):
        raise ConfigError(
            f"{local[0].url} is of this host only, and other hosts vote too: they would each count a file of their "
            f"own. Use stores that all hosts share, or only stores of this host"
        )


def _warn_of_one_fate(stores: "Sequence[Store]", tell: "Callable[[str], object] | None") -> None:
    domains = [_by_one_name(store.domain) for store in stores if not store.local]
    shared = next((domain for domain in domains if domains.count(domain) > 1), None)
    if shared is None:
        return
    what = f"several stores of this quorum are on {shared}"
    text = f"{what}: what befalls one befalls the others, so they count as one fault"
    if tell is not None:
        tell(text)
    else:
        import warnings

        warnings.warn(text, stacklevel=3)


def _by_one_name(domain: str) -> str:
    """A host has several names for itself."""
    host, _, port = domain.rpartition(":")
    is_loopback = host.lower() in ("localhost", "[::1]") or host.startswith("127.")
    return f"localhost:{port}" if is_loopback else domain


def _base_id(store: Store) -> str:
    """What a signed entry calls a store: its URL, or as much of it as fits and can be printed, and a digest."""
    if len(store.url) <= MAX_ID and store.url.isprintable():
        return store.url
    from hashlib import blake2b

    shown = "".join(character if character.isprintable() else "?" for character in store.url[: MAX_ID - 33])
    return f"{shown}#{blake2b(os.fsencode(store.url), digest_size=16).hexdigest()}"


def _client() -> str:
    """Who we are, for people to read: user@host:pid."""
    user = os.environ.get("LOGNAME") or os.environ.get("USER") or _user()
    host = os.uname().nodename if hasattr(os, "uname") else "host"
    name = f"{user}@{host}:{os.getpid()}".replace("/", "-")
    return "".join(character for character in name if character.isprintable())[:100]


def _user() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return str(os.getuid())


def _chance() -> float:
    return int.from_bytes(os.urandom(4)) / 2**32
