"""The big scripted races behind what the docs claim about locks. Part of ``make prove``."""

import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.locks.workers import Worker, worker
from tests.stores.servers import RedisServer

Figures = dict[str, Any]
STAYS_OUT = "t_max=2s"
LIMIT = 600.0


def races(count: int = 10_000, processes: int = 8, hold: float = 0.001, ttl: float = 2.0) -> Figures:
    """So many acquisitions over four Redis servers, of which one, always the same, is killed and comes back empty."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="trinco-races-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        victim = stack.enter_context(RedisServer(options=STAYS_OUT))
        others = [stack.enter_context(RedisServer(options=f"{STAYS_OUT}&fresh=1")) for _ in range(3)]
        urls = [server.url for server in (victim, *others)]
        (folder / "counter").write_text("0")
        rounds = -(-count // processes)
        arguments = ("race", str(folder), str(rounds), str(hold), str(ttl), *urls)
        env = {"TRINCO_KEYS": str(folder / "keys.json")}
        racers = [stack.enter_context(worker(*arguments, env=env)) for _ in range(processes)]
        began = time.monotonic()
        kills = _run(racers, victim)
        seconds = time.monotonic() - began
        losses = _losses(racers)
        return {
            "command": f"tests.prove_locks.races({count})",
            **judged(folder, victim.url.partition("?")[0]),
            "processes": processes,
            "restarts_of_one_store": kills,
            "losses": losses,
            "seconds": round(seconds, 1),
        }


def _run(racers: list[Worker], victim: RedisServer) -> int:
    """Kill one server again and again until everybody is done; how often."""
    chance = random.Random(4)
    for racer in racers:
        assert racer.hears() == "ready"
    for racer in racers:
        racer.tell()
    end = time.monotonic() + LIMIT
    kills = 0
    while any(racer.process.poll() is None for racer in racers):
        assert time.monotonic() < end, "a process never finished"
        _pause(racers, chance.choice((0.1, 0.5, 3.5)))
        victim.kill()
        kills += 1
        _pause(racers, chance.uniform(0, 0.4))
        victim.restart_empty()
    return kills


def _pause(racers: list[Worker], seconds: float) -> None:
    """For so long, or until everybody is done."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(racer.process.poll() is None for racer in racers):
        time.sleep(0.02)


def _losses(racers: list[Worker]) -> int:
    """Leases that were lost on the way. Everybody must have finished all the same."""
    said = [racer.finish() for racer in racers]
    for words in said:
        assert words.endswith("finished\n"), words
    return sum(words.count("lost ") for words in said)


def judged(folder: Path, victim: str = "") -> Figures:
    """What the logs of a race say: nobody overlapped anybody, and tokens rise from each to the next."""
    turns = sorted(
        (float(began), float(ended), int(token), float(waited), votes)
        for log in folder.glob("log-*")
        for token, began, ended, waited, *votes in map(str.split, log.read_text().splitlines())
    )
    overlaps = sum(later[0] < earlier[1] for earlier, later in pairwise(turns))
    falling = sum(later[2] <= earlier[2] for earlier, later in pairwise(turns))
    counted = int((folder / "counter").read_text())
    figures = {
        "acquisitions": len(turns),
        "overlaps": overlaps,
        "increments_lost": len(turns) - counted,
        "tokens_out_of_order": falling,
        "longest_wait": round(max(turn[3] for turn in turns), 2),
        "votes_of_that_store": sum(victim in turn[4] for turn in turns),
    }
    assert not overlaps, figures
    assert not falling, figures
    assert counted == len(turns), figures
    return figures


def proofs() -> dict[str, Callable[[], Figures]]:
    """What is proven, by name. Ordered as the docs show it."""
    return {"races, one store killed again and again": lambda: races(int(os.environ.get("TRINCO_RACES", "10000")))}
