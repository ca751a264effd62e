from errno import EAGAIN

import pytest

from trinco.core.errors import WorkersLost
from trinco.sim.workers import process_pool


def test_more_workers_than_may_be_started_are_no_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BlockingIOError(EAGAIN, "as fork does beyond ulimit -u")

    monkeypatch.setattr("multiprocessing.util.spawnv_passfds", refuse)
    with pytest.raises(WorkersLost, match="60 processes are more than may be started here"), process_pool(60):
        pass
