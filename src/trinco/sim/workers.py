"""Processes for swarms, that leave nothing running behind them."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor

LOOK_EVERY_SECONDS = 0.5


def process_pool(jobs: int) -> ProcessPoolExecutor:
    """Workers that are started afresh (a process with threads must not fork), leave Ctrl-C to whoever started them,
    and end by themselves when that process is gone, even if it was killed."""
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=fresh, initializer=_settle_in, initargs=(os.getpid(),))


def _settle_in(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_SECONDS)
    os._exit(1)
