"""A task that belongs to the event loop and to no task group, on asyncio and on trio."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

_running: set[Any] = set()
"""asyncio keeps only weak references to its tasks."""


def start_in_background(work: Callable[[], Awaitable[None]]) -> None:
    if is_trio():
        trio: Any = sys.modules["trio"]
        trio.lowlevel.spawn_system_task(work)
        return

    async def run() -> None:
        await work()

    task = asyncio.get_running_loop().create_task(run())
    _running.add(task)
    task.add_done_callback(_running.discard)


def is_trio() -> bool:
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_run())
