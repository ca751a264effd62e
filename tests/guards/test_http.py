"""Fencing for HTTP: ASGI and WSGI applications, called as a server calls them."""

import io
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guards.databases import SQLite
from trinco.core.errors import StoreUnavailable
from trinco.guards import (
    ConnectingSQLGuard,
    FencingMiddleware,
    FolderGuard,
    MemoryGuard,
    SQLGuard,
    StaleToken,
    WSGIFencingMiddleware,
)
from trinco.guards.http import Asked

Ask = Callable[..., tuple[int, str]]


def wsgi_app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [])
    return [b"done"]


async def asgi_app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


def ask_wsgi(
    app: Any, token: str | None = None, method: str = "PUT", path: str = "/", **headers: str
) -> tuple[int, str]:
    status: list[str] = []
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "wsgi.input": io.BytesIO()}
    environ |= {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    if token is not None:
        environ["HTTP_TRINCO_TOKEN"] = token
    body = app(environ, lambda line, headers: status.append(line))
    try:
        text = b"".join(body).decode()
    finally:
        getattr(body, "close", lambda: None)()
    return int(status[0].split()[0]), text


def ask_asgi(
    app: Any, token: str | None = None, method: str = "PUT", path: str = "/", **headers: str
) -> tuple[int, str]:
    return anyio.run(asked_asgi, app, token, method, path, headers)


async def asked_asgi(
    app: Any, token: str | None = None, method: str = "PUT", path: str = "/", headers: dict[str, str] | None = None
) -> tuple[int, str]:
    sent: list[dict[str, Any]] = []
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in (headers or {}).items()]
    raw += [] if token is None else [(b"trinco-token", token.encode())]

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    await app({"type": "http", "method": method, "path": path, "headers": raw}, receive, send)
    return sent[0]["status"], b"".join(message["body"] for message in sent[1:]).decode()


class Side:
    """One of the two kinds of application, with its middleware and a way to ask it."""

    def __init__(self, middleware: Any, app: Any, ask: Ask) -> None:
        self.middleware = middleware
        self.app = app
        self.ask = ask

    def fenced(self, guard: Any = None, **options: Any) -> Any:
        return self.middleware(self.app, guard or MemoryGuard(), **({"resource": "nightly"} | options))


SIDES = {
    "asgi": Side(FencingMiddleware, asgi_app, ask_asgi),
    "wsgi": Side(WSGIFencingMiddleware, wsgi_app, ask_wsgi),
}


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> Side:
    return SIDES[request.param]


def made(kind: str, folder: Path, timeout: float = 20) -> Any:
    if kind == "memory":
        return MemoryGuard(timeout)
    if kind == "folder":
        return FolderGuard(folder, timeout)
    database = SQLite(folder / "marks.db")
    with closing(database.connect()) as connection:
        SQLGuard(connection).create_table()
    return ConnectingSQLGuard(lambda: database.connect(timeout))


@pytest.fixture(params=["memory", "folder", "sql"])
def guard(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return made(request.param, tmp_path)


def test_a_late_token_is_answered_412_with_the_reason(side: Side, guard: Any) -> None:
    app = side.fenced(guard)
    assert [side.ask(app, token)[0] for token in ("5", "5", "7", "6", "7", "8")] == [200, 200, 200, 412, 200, 200]
    status, body = side.ask(app, "6")
    assert status == 412
    assert body == (
        "'nightly' refuses the token 6: it has seen 8, so somebody else has held the lock since; "
        "acquire it again and start over\n"
    )


def test_a_late_request_never_reaches_the_application(side: Side) -> None:
    guard = MemoryGuard()
    with guard.fenced("nightly", 6):
        pass
    app = side.middleware(None, guard, resource="nightly")
    assert side.ask(app, "5")[0] == 412


def test_without_a_token_it_is_428_unless_none_is_required(side: Side) -> None:
    status, body = side.ask(side.fenced())
    assert status == 428
    assert "Trinco-Token" in body
    assert side.ask(side.fenced(required=False)) == (200, "done")
    assert side.ask(side.fenced(required=False), "x")[0] == 400


@pytest.mark.parametrize("token", ["", "x", "-1", "1.5", " 5", "5 ", "5,6", "0x5", "٥", str(2**53), "9" * 400])
def test_what_is_no_token_is_400(token: str, side: Side) -> None:
    assert side.ask(side.fenced(), token)[0] == 400


def test_a_header_that_comes_twice_is_no_token() -> None:
    app = SIDES["asgi"].fenced()
    status, _ = anyio.run(asked_asgi, app, "5", "PUT", "/", {"Trinco_Token": "6"})
    assert status == 400


def test_a_resource_may_depend_on_the_request_and_carry_a_slot(side: Side) -> None:
    def name_of(asked: Asked) -> str | None:
        slot = asked.headers.get("trinco-slot", "0")
        return None if asked.method == "GET" else f"{asked.path}/{slot}"

    app = side.fenced(resource=name_of)
    assert side.ask(app, "9", path="/gpu", trinco_slot="0")[0] == 200
    assert side.ask(app, "3", path="/gpu", trinco_slot="1")[0] == 200
    assert side.ask(app, "8", path="/gpu", trinco_slot="0")[0] == 412
    assert side.ask(app, method="GET", path="/gpu")[0] == 200


def test_another_header_may_carry_the_token(side: Side) -> None:
    app = side.fenced(header="X-Fence")
    assert side.ask(app, x_fence="5")[0] == 200
    assert side.ask(app, x_fence="4")[0] == 412


@pytest.mark.parametrize("kind", ["memory", "folder", "sql"])
def test_a_guard_that_cannot_tell_in_time_is_503(side: Side, kind: str, tmp_path: Path) -> None:
    guard = made(kind, tmp_path, timeout=0.02)
    with guard.fenced("nightly", 5):
        status, body = side.ask(side.fenced(guard), "6")
    assert status == 503
    assert "inside" in body
    assert side.ask(side.fenced(guard), "6")[0] == 200


@pytest.mark.parametrize(("kind", "status"), [("memory", 200), ("folder", 503), ("sql", 503)])
def test_a_request_inside_a_request_with_its_token_passes_only_where_marks_are_in_memory(
    kind: str, status: int, tmp_path: Path
) -> None:
    def asks_again(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [])
        return [str(ask_wsgi(inner, "5")[0]).encode()]

    guard = made(kind, tmp_path, timeout=0.02)
    inner = WSGIFencingMiddleware(wsgi_app, guard, resource="nightly")
    outer = WSGIFencingMiddleware(asks_again, guard, resource="nightly")
    assert ask_wsgi(outer, "5") == (200, str(status))
    assert ask_wsgi(inner, "5")[0] == 200


def test_an_application_that_fails_is_inside_no_more(side: Side, guard: Any) -> None:
    def wsgi(environ: Any, start_response: Any) -> Iterable[bytes]:
        raise ZeroDivisionError

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    failing = side.middleware(wsgi if side is SIDES["wsgi"] else asgi, guard, resource="nightly")
    with pytest.raises(ZeroDivisionError):
        side.ask(failing, "5")
    assert side.ask(side.fenced(guard), "6")[0] == 200
    assert side.ask(side.fenced(guard), "5")[0] == 412


def test_an_applications_own_stale_token_is_its_own(side: Side) -> None:
    """It is an error of something behind the application: the middleware does not answer for it."""

    def wsgi(environ: Any, start_response: Any) -> Iterable[bytes]:
        raise StaleToken("elsewhere", 1, 2)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        raise StaleToken("elsewhere", 1, 2)

    with pytest.raises(StaleToken, match="elsewhere"):
        side.ask(side.middleware(wsgi if side is SIDES["wsgi"] else asgi, MemoryGuard(), resource="nightly"), "5")


# While a request is inside


class Watched(MemoryGuard):
    """Says when somebody has begun to wait, and when somebody has come in."""

    def __init__(self, timeout: float = 10) -> None:
        super().__init__(timeout)
        self.waits = threading.Event()
        self.came_in = threading.Event()
        self.passages: list[Any] = []
        wait = self._changed.wait

        def waiting(timeout: float | None = None) -> bool:
            self.waits.set()
            return wait(timeout)

        self._changed.wait = waiting  # type: ignore[method-assign]

    def fenced(self, resource: str, token: int) -> Any:
        """Kept, for a passage that is forgotten is left when it is collected: nobody should count on that."""
        self.passages.append(super().fenced(resource, token))
        return self.passages[-1]

    def _enter(self, resource: str, token: int) -> None:
        super()._enter(resource, token)
        self.came_in.set()


async def waited(guard: Watched) -> None:
    with anyio.fail_after(10):
        while not guard.waits.is_set():
            await anyio.sleep(0.001)


def entered(guard: MemoryGuard, token: int, order: list[int]) -> None:
    with guard.fenced("nightly", token):
        order.append(token)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def test_a_larger_token_waits_until_the_smaller_one_is_done_and_bars_it_from_coming_again(
    pool: ThreadPoolExecutor,
) -> None:
    guard, order = Watched(), list[int]()
    with guard.fenced("nightly", 5):
        later: Future[None] = pool.submit(entered, guard, 6, order)
        assert guard.waits.wait(10)
        with pytest.raises(StaleToken):
            guard.fenced("nightly", 5).__enter__()
        order.append(5)
    later.result(10)
    assert order == [5, 6]


def test_requests_with_one_token_pass_together_and_resources_apart() -> None:
    guard = MemoryGuard(timeout=0)
    with guard.fenced("nightly", 5), guard.fenced("nightly", 5), guard.fenced("weekly", 9):
        assert (guard.highest("nightly"), guard.highest("weekly")) == (5, 9)


def test_who_waits_and_is_overtaken_is_refused(pool: ThreadPoolExecutor) -> None:
    guard, order = Watched(), list[int]()
    with guard.fenced("nightly", 5):
        middle = pool.submit(entered, guard, 6, order)
        assert guard.waits.wait(10)
        guard.waits.clear()
        largest = pool.submit(entered, guard, 7, order)
        assert guard.waits.wait(10)
    largest.result(10)
    with pytest.raises(StaleToken):
        middle.result(10)
    assert order == [7]


def test_a_wsgi_request_is_inside_until_its_answer_is_closed() -> None:
    guard = MemoryGuard(timeout=0)
    app = WSGIFencingMiddleware(wsgi_app, guard, resource="nightly")
    answer: Any = app({"REQUEST_METHOD": "PUT", "HTTP_TRINCO_TOKEN": "5"}, lambda status, headers: None)
    with pytest.raises(StoreUnavailable):
        guard.fenced("nightly", 6).__enter__()
    assert list(answer) == [b"done"]
    answer.close()
    with guard.fenced("nightly", 6):
        pass


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_asgi_request_waits_without_holding_the_others_up(backend: str) -> None:
    order: list[str] = []
    guard = Watched()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        """The first request goes on only when the second waits: were the event loop held up, it never would."""
        token = dict(scope["headers"])[b"trinco-token"].decode()
        if token == "5":
            await waited(guard)
        order.append(token)
        await asgi_app(scope, receive, send)

    app = FencingMiddleware(slow, guard, resource="nightly")

    async def both() -> None:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(asked_asgi, app, "5")
                while guard.highest("nightly") is None:
                    await anyio.sleep(0.001)
                group.start_soon(asked_asgi, app, "6")

    anyio.run(both, backend=backend)
    assert order == ["5", "6"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_request_that_is_cancelled_while_it_waits_is_never_left_inside(backend: str) -> None:
    guard = Watched()
    app = FencingMiddleware(asgi_app, guard, resource="nightly")

    async def cancelled() -> None:
        older = guard.fenced("nightly", 5)
        older.__enter__()
        async with anyio.create_task_group() as group:
            group.start_soon(asked_asgi, app, "6")
            await waited(guard)
            group.cancel_scope.cancel()
            older.__exit__(None, None, None)

    anyio.run(cancelled, backend=backend)
    with guard.fenced("nightly", 7):
        assert guard.highest("nightly") == 7


def test_an_asyncio_task_that_is_cancelled_from_outside_is_never_left_inside() -> None:
    """A server may cancel without asking anyio: then the thread is still waiting when the request is gone."""
    import asyncio

    guard = Watched(timeout=2)
    app = FencingMiddleware(asgi_app, guard, resource="nightly")

    async def cancelled() -> None:
        with guard.fenced("nightly", 5):
            guard.came_in.clear()
            task = asyncio.create_task(asked_asgi(app, "6"))
            await waited(guard)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 10)

    asyncio.run(cancelled())
    assert guard.came_in.wait(10)
    with guard.fenced("nightly", 7):
        assert guard.highest("nightly") == 7


def test_a_connection_that_stays_open_cannot_be_fenced() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    app: Any = FencingMiddleware(asgi_app, MemoryGuard(), resource="nightly")
    scope = {"type": "websocket", "path": "/", "headers": [(b"trinco-token", b"5")]}
    anyio.run(app, scope, None, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_what_is_no_request_passes() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    fenced: Any = FencingMiddleware(app, MemoryGuard(), resource="nightly")
    anyio.run(fenced, {"type": "lifespan"}, None, None)
    assert seen == [{"type": "lifespan"}]


# Any interleaving


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=40))
def test_over_any_interleaving_the_tokens_inside_never_go_down(moves: list[tuple[int, int]]) -> None:
    """Five clients; each move of one either enters, with the token given, or leaves. Nobody can wait here: with others
    inside whose tokens are smaller the guard gives up at once, which must not let a smaller one in later."""
    guard = MemoryGuard(timeout=0)
    inside: dict[int, tuple[int, Any]] = {}
    accepted: list[int] = []
    for client, token in moves:
        if client in inside:
            inside.pop(client)[1].__exit__(None, None, None)
            continue
        passage = guard.fenced("nightly", token)
        try:
            passage.__enter__()
        except StaleToken:
            assert (guard.highest("nightly") or 0) > token
        except StoreUnavailable:
            assert any(other < token for other, _ in inside.values())
        else:
            inside[client] = (token, passage)
            accepted.append(token)
            assert len({other for other, _ in inside.values()}) == 1
    for _, passage in inside.values():
        passage.__exit__(None, None, None)
    assert accepted == sorted(accepted)
