"""Processes for swarms, that leave nothing running behind them."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker

LOOK_EVERY_SECONDS = 0.5


@contextmanager
def process_pool(jobs: int) -> Iterator[Executor]:
    """Workers that are started afresh (a process with threads must not fork), leave Ctrl-C to whoever started them,
    stop after what they have in hand when it comes, and end by themselves when that process is gone, even if killed."""
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=fresh, initializer=_watch, initargs=(os.getpid(),))
    try:
        with _ctrl_c_held_back():
            for _ in range(jobs):  # each of these tasks starts a worker
                pool.submit(os.getpid)
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """For the moment in which workers are started. They inherit it, and so never see Ctrl-C, not even while they still
    load; here it arrives a moment later. The tracker that ``multiprocessing`` starts first would undo it."""
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(parent: int) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_SECONDS)
    os._exit(1)
