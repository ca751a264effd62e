"""A task that belongs to the event loop and to no task group, on asyncio and on trio."""

from collections.abc import Awaitable, Callable
from typing import Any

import sniffio

_running: set[Any] = set()
"""asyncio keeps only weak references to its tasks."""


def start_in_background(work: Callable[[], Awaitable[None]]) -> None:
    if sniffio.current_async_library() == "trio":
        import trio

        trio.lowlevel.spawn_system_task(work)
        return
    import asyncio

    async def run() -> None:
        await work()

    task = asyncio.get_running_loop().create_task(run())
    _running.add(task)
    task.add_done_callback(_running.discard)
