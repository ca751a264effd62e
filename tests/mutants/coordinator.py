"""The coordinator with one thing broken each, to see that the monitors notice."""

from trinco.protocols.coordinator import Client, Coordinator, Request


class IgnoresOne(Coordinator):
    """Never hears client 1, which starves."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if source != 1:
            Coordinator.on_message(self, ctx, source, message)


class ForgetsReleases(Coordinator):
    """Never learns that anybody left: after the first entry nobody gets in."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Request):
            Coordinator.on_message(self, ctx, source, message)


class ServesTheLast(Coordinator):
    """Last come, first served: early comers are overtaken again and again."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Request):
            self.queue = (source, *self.queue)
            self._serve_the_first(ctx)
        else:
            Coordinator.on_message(self, ctx, source, message)


class ServesTwo(Coordinator):
    """Lets everybody in who asks."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        self.holder = None
        Coordinator.on_message(self, ctx, source, message)


def ignores_one(n):
    return _under(IgnoresOne(), n)


def forgets_releases(n):
    return _under(ForgetsReleases(), n)


def serves_the_last(n):
    return _under(ServesTheLast(), n)


def serves_two(n):
    return _under(ServesTwo(), n)


def _under(coordinator, n):
    return [coordinator, *(Client(coordinator=0) for _ in range(1, n))]
