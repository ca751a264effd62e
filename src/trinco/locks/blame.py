"""Whose fault it is that a link raised something: its store's, or somebody's who was in the middle of using it."""

from trinco.core.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType


def fault(url: str, error: Exception) -> str:
    """Why a link has to be given up. A driver should raise ``StoreUnavailable`` and nothing else; where an answer makes
    it raise something else, that is the store's fault, and one store of a quorum may have any. But the handler of a
    signal, too, may raise whatever it likes, wherever we are: that is raised again."""
    let_alarms_through(error)
    if isinstance(error, StoreUnavailable):
        return str(error)
    said = f"{type(error).__name__}: {error}"
    return f"{url}: its driver fails with {' '.join(said.split())}; is its data sound, and is it what the URL says?"


def let_alarms_through(error: BaseException) -> None:
    """Raise what the handler of a signal raised, if that is behind it. A store may have taken it for a trouble of its
    files or of its connection: a time-out is an ``OSError``, too."""
    cause: BaseException | None = error
    while cause is not None:
        if _is_out_of_a_handler(cause):
            raise cause from cause.__cause__
        cause = cause.__cause__


def _is_out_of_a_handler(error: BaseException) -> bool:
    import signal

    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    trace, interrupted = error.__traceback__, None
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code in handlers or _was_handed(frame, interrupted):
            return True
        trace, interrupted = trace.tb_next, frame
    return False


def _was_handed(frame: "FrameType", interrupted: "FrameType | None") -> bool:
    """Whether it was called with its own caller's frame, as only handlers are: one that lets the next signal end the
    process is none any more when we look."""
    if interrupted is None:
        return False
    known = [*frame.f_locals.values()]
    given = (each for several in known if type(several) is tuple for each in several)
    return any(each is interrupted for each in (*known, *given))


def _code(handler: object) -> "CodeType | None":
    """Of a function, a method, a partial of these, or an object that can be called."""
    for inside in ("func", "__func__"):
        handler = getattr(handler, inside, handler)
    function = handler if hasattr(handler, "__code__") else vars(type(handler)).get("__call__")
    return getattr(function, "__code__", None)
