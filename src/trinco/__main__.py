"""The command ``trinco``, and ``python -m trinco``.

Before all is loaded and after all is done, Ctrl-C ends the process as it would end any other: nothing is held then, and
Python's own way is a traceback out of the middle of an import.
"""

import _signal as signal  # type: ignore[import-not-found]  # what signal is made of: to load that takes a millisecond
import sys


def main() -> int:
    _leave_interrupts_to_the_system()
    from trinco.cli.main import main as command

    try:
        code = command(loaded=_let_python_have_interrupts)
        _leave_interrupts_to_the_system()
    except KeyboardInterrupt:  # one that came when there was nothing left to end
        _leave_interrupts_to_the_system()
        return 130
    return code


def _leave_interrupts_to_the_system() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # what was ignored at our start stays so
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _let_python_have_interrupts() -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
