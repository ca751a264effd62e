"""Fencing for HTTP: a request carries its token in a header, and a late one is answered 412.

    app = FencingMiddleware(app, MemoryGuard(), resource="nightly")            # ASGI
    app = WSGIFencingMiddleware(app, FolderGuard("/var/lib/app/fences"), resource=name_of)

To look at the token when a request comes in is not enough. It may be let in, be held up, and do its work after a
request with a larger token has done its own:

    token 5:  let in ............................. effect    <- too late, and nobody sees it
    token 6:            let in ── effect ── done

So a guard keeps the larger token waiting until those with smaller ones are done, and lets none of them in after it.
``guard.fenced(resource, token)`` is that: a context in which the request is handled. The mark is kept *before* the
effect, for the effect is out of the guard's sight: a crash in between refuses too much, never too little.

Answers: 412 the token is stale; 428 there is none; 400 it is no token; 503 the guard could not tell in time. A token is
a promise of the client, as good as the client: authenticate first. Whoever may send any number can shut others out.
"""

import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from time import monotonic
from typing import Any, Protocol, TypeAlias

from trinco.core.errors import StoreUnavailable
from trinco.core.value import Value
from trinco.guards.stale import StaleToken, require_current, require_token
from trinco.leases.operation import TOKEN_LIMIT

HEADER = "Trinco-Token"
TOKEN = re.compile(r"[0-9]{1,16}", re.ASCII)
BUSY_SECONDS = 30.0
MANY_WAITING = 100
"""So many requests of an ASGI application wait at their guard in threads; more wait for a thread."""

REASONS = {
    400: "Bad Request",
    412: "Precondition Failed",
    428: "Precondition Required",
    503: "Service Unavailable",
}

Scope: TypeAlias = dict[str, Any]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
StartResponse: TypeAlias = Callable[..., Any]


class Guard(Protocol):
    """Keeps marks: ``MemoryGuard``, ``files.FolderGuard``, ``sql.ConnectingSQLGuard`` or your own."""

    def fenced(self, resource: str, token: int) -> AbstractContextManager[Any]: ...


class Asked(Value):
    """What a request is, for you to say which resource it is about. The names of ``headers`` are in small letters."""

    __slots__ = ("headers", "method", "path")

    def __init__(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        self.method = method
        self.path = path
        self.headers = headers


Naming: TypeAlias = "str | Callable[[Asked], str | None]"
"""One resource for the whole application, or one for each request; None lets the request pass without a token. The
tokens of a semaphore rise slot by slot, so there the slot is part of the name: ``gpu/3``."""


class Refusal(Exception):
    def __init__(self, status: int, body: str) -> None:
        super().__init__(body)
        self.status = status
        self.body = f"{body}\n".encode()


class MemoryGuard:
    """Marks of one process, gone when it ends. Requests with the same token pass together: one holder may ask for many
    things at once."""

    def __init__(self, timeout: float = BUSY_SECONDS) -> None:
        self._timeout = timeout
        self._changed = threading.Condition()
        self._highest: dict[str, int] = {}
        self._inside: dict[str, list[int]] = {}

    @contextmanager
    def fenced(self, resource: str, token: int) -> Iterator[None]:
        """A block in which nobody with another token is inside, and this one is not older than any before. Or
        ``StaleToken``."""
        require_token(token)
        with self._changed:
            self._enter(resource, token)
        try:
            yield
        finally:
            with self._changed:
                self._leave(resource, token)

    def highest(self, resource: str) -> int | None:
        """The largest token accepted for it so far, None before the first."""
        return self._highest.get(resource)

    def _enter(self, resource: str, token: int) -> None:
        end = monotonic() + self._timeout
        while True:
            require_current(resource, token, self._highest.get(resource))
            self._highest[resource] = token
            inside = self._inside.setdefault(resource, [])
            if all(other == token for other in inside):
                inside.append(token)
                return
            if not self._changed.wait(end - monotonic()) and monotonic() >= end:
                raise StoreUnavailable(
                    f"a request with an older token has been inside '{resource}' for {self._timeout:g} s; try again"
                )

    def _leave(self, resource: str, token: int) -> None:
        inside = self._inside[resource]
        inside.remove(token)
        if not inside:
            del self._inside[resource]
        self._changed.notify_all()


class _Fencing:
    """What the two kinds of middleware share. ``required=False`` lets requests without a token pass."""

    def __init__(
        self, app: Any, guard: Guard, *, resource: Naming, header: str = HEADER, required: bool = True
    ) -> None:
        self.app = app
        self.guard = guard
        self.resource = resource
        self.header = header
        self.required = required

    def passage(self, asked: Asked) -> AbstractContextManager[Any] | None:
        """What a request has to go through; None if it need not."""
        resource = self.resource if isinstance(self.resource, str) else self.resource(asked)
        text = asked.headers.get(self.header.lower())
        if resource is None or (text is None and not self.required):
            return None
        if text is None:
            raise Refusal(428, f"send the token of your lease of '{resource}' in the header {self.header}")
        if not TOKEN.fullmatch(text) or int(text) >= TOKEN_LIMIT:
            raise Refusal(400, f"the header {self.header} is one whole number from 0 to below {TOKEN_LIMIT}")
        return self.guard.fenced(resource, int(text))


@contextmanager
def _refusals() -> Iterator[None]:
    """What a guard raises, as an answer. Only around the guard: an application's own errors are its own."""
    try:
        yield
    except StaleToken as error:
        raise Refusal(412, str(error)) from error
    except StoreUnavailable as error:
        raise Refusal(503, str(error)) from error


# WSGI


class WSGIFencingMiddleware(_Fencing):
    """The request is inside until the server has sent the answer and closed it: an application may work until then."""

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        with ExitStack() as stack:
            try:
                passage = self.passage(_asked_of_environ(environ))
                with _refusals():
                    if passage is not None:
                        stack.enter_context(passage)
            except Refusal as refusal:
                return _refuse(refusal, start_response)
            body = self.app(environ, start_response)
            return _Answer(body, stack.pop_all())


class _Answer:
    """The application's answer, which ends the passage when it is closed."""

    def __init__(self, body: Iterable[bytes], stack: ExitStack) -> None:
        self._body = body
        self._stack = stack

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        with self._stack:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()


def _asked_of_environ(environ: dict[str, Any]) -> Asked:
    prefix = "HTTP_"
    headers = {
        name[len(prefix) :].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith(prefix)
    }
    return Asked(environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), headers)


def _refuse(refusal: Refusal, start_response: StartResponse) -> Iterable[bytes]:
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(refusal.body)))]
    start_response(f"{refusal.status} {REASONS[refusal.status]}", headers)
    return [refusal.body]


# ASGI


class FencingMiddleware(_Fencing):
    """The request is inside until the application returns. Guards may block, so they are entered in a thread;
    to leave one is short work, and cannot be cancelled."""

    _limiter: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        holder = None
        try:
            try:
                passage = self.passage(_asked_of_scope(scope))
                if passage is not None:
                    holder = _Holder(passage)
                    await self._enter(holder, scope)
            except Refusal as refusal:
                await _answer(refusal, scope, send)
                return
            await self.app(scope, receive, send)
        finally:
            if holder is not None:
                holder.leave()

    async def _enter(self, holder: "_Holder", scope: Scope) -> None:
        from anyio import to_thread

        if scope["type"] == "websocket":
            raise Refusal(412, "a connection that stays open cannot be fenced: every message may be late")
        with _refusals():
            await to_thread.run_sync(holder.enter, limiter=self._own_threads())

    def _own_threads(self) -> Any:
        """Those that wait here must not take the threads that the application needs to go on."""
        if self._limiter is None:
            from anyio import CapacityLimiter

            self._limiter = CapacityLimiter(MANY_WAITING)
        return self._limiter


class _Holder:
    """A context that is entered in a thread and left elsewhere, perhaps before the thread is through: a request may be
    cancelled while it waits, and what it then still gets must be given back."""

    def __init__(self, passage: AbstractContextManager[Any]) -> None:
        self._passage = passage
        self._lock = threading.Lock()
        self._inside = False
        self._over = False

    def enter(self) -> None:
        self._passage.__enter__()
        with self._lock:
            inside = self._inside = not self._over
        if not inside:
            self._passage.__exit__(None, None, None)

    def leave(self) -> None:
        with self._lock:
            self._over = True
            inside, self._inside = self._inside, False
        if inside:
            self._passage.__exit__(None, None, None)


def _asked_of_scope(scope: Scope) -> Asked:
    """A header that comes twice is joined, as everywhere, and then is no token."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return Asked(scope.get("method", "GET"), scope["path"], headers)


async def _answer(refusal: Refusal, scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.body.decode().strip()})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(refusal.body)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body})
