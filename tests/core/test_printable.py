import pytest

from trinco.core.printable import printable, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ana@laptop:1", "ana@laptop:1"),
        ("ünï ☃", "ünï ☃"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\u202egpj\u2028", r"\u202egpj\u2028"),
        ("\x9b1m\udc80\U000e0001", r"\x9b1m\udc80\U000e0001"),
    ],
)
def test_only_what_moves_no_cursor_is_shown_as_it_is(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_what_is_too_long_ends_with_a_sign_that_there_was_more() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "abc..."
