"""Processes for swarms, that leave nothing running behind them."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker

from trinco.core.errors import WorkersLost

LOOK_EVERY_SECONDS = 0.5
SILENCE = "ignore:resource_tracker"


@contextmanager
def process_pool(jobs: int) -> Iterator[Executor]:
    """Workers that are started afresh (a process with threads must not fork), leave Ctrl-C to whoever started them,
    stop after what they have in hand when it comes, and end by themselves when that process is gone, even if killed."""
    with _room_for(jobs):
        _start_the_tracker()
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=fresh, initializer=_watch, initargs=(os.getpid(),))
    try:
        with _room_for(jobs), _ctrl_c_held_back():
            for _ in range(jobs):  # each of these tasks starts a worker
                pool.submit(os.getpid)
        yield pool
    except BrokenProcessPool:
        pool.shutdown(wait=False, cancel_futures=True)
        raise WorkersLost(
            "a process that did a part of the work was killed, so there is no verdict: where memory runs out, the "
            "system does that, and fewer --jobs take less"
        ) from None
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _start_the_tracker() -> None:
    """What ``multiprocessing`` starts first, to clean up behind whoever is killed, and would undo what holds Ctrl-C
    back. When it cleans up it warns of it, in words for programmers: whoever kills us or presses Ctrl-C twice needs no
    such warning."""
    sys.warnoptions.append(SILENCE)  # what Python starts for itself has these options, too
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(SILENCE)


@contextmanager
def _room_for(jobs: int) -> Iterator[None]:
    try:
        yield
    except (BlockingIOError, RuntimeError):  # no process more, no thread more, or a worker that got none
        raise WorkersLost(
            f"{jobs} processes are more than may be started here: give fewer --jobs, or allow more (ulimit -u)"
        ) from None


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """For the moment in which workers are started. They inherit it, and so never see Ctrl-C, not even while they still
    load; here it arrives a moment later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(parent: int) -> None:
    try:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    except RuntimeError:
        os._exit(1)  # there is no room for a thread; whoever started us says so


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_SECONDS)
    os._exit(1)
