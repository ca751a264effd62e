"""What a Redis URL means, which ones are refused, and that none of them gives its password away."""

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stores.redis_caller import ADDRESS
from trinco.core.errors import ConfigError, StoreUnavailable
from trinco.stores.catalogue import open_store
from trinco.stores.redis import RedisStore
from trinco.stores.redis_url import Place, parse

LETTERS = "JZ"
"""No text of ours has them, so that a part of a password is seen, too."""
odd_passwords = st.text(LETTERS + "@/#?:%&=+;,. []\\'\"\t\né☃", min_size=4).filter(
    lambda text: set(LETTERS) & set(text)
)
places_of_a_password = st.sampled_from(
    [
        "redis://ana:{}@127.0.0.1:1/0",
        "redis://:{}@127.0.0.1:1",
        "rediss://ana:{}@127.0.0.1:1/0?ssl_cert_reqs=none",
        "unix://ana:{}@/nowhere/redis.sock",
        "redis://127.0.0.1:1?password={}",
        "rediss://127.0.0.1:1?ssl_p%61ssword={}&ssl_cert_reqs=none",
        "unix:///nowhere/redis.sock?db=3&password={}&t_max=2s",
        "redis://ana:{}@127.0.0.1:1/0?bogus=1",
        "redis://ana:{}@127.0.0.1:1/0?t_max=soon",
        "redis://ana:{}@127.0.0.1:1/locks",
        "redis:ana:{}@127.0.0.1:1",
    ]
)


def refusal(url: str) -> str:
    with pytest.raises(ConfigError) as refused:
        open_store(url)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def said_about(url: str) -> str:
    try:
        store = RedisStore(url)
    except ConfigError as error:
        return str(error)
    with pytest.raises(StoreUnavailable) as refused:
        store.connect(ADDRESS, timeout=2)
    return " ".join((store.url, store.domain, str(refused.value)))


# What a URL means


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://", Place("redis://", "redis://localhost:6379", "localhost:6379")),
        ("redis://h", Place("redis://h", "redis://h:6379", "h:6379")),
        ("redis://h:1/2?t_max=2s", Place("redis://h:1/2", "redis://h:1/2", "h:1", 2.0)),
        ("redis://ana:se%40cret@h/0", Place("redis://ana:se%40cret@h/0", "redis://ana@h:6379/0", "h:6379")),
        ("redis://:secret@h?fresh=1", Place("redis://:secret@h", "redis://h:6379", "h:6379", fresh=True)),
        ("rediss://[::1]:7?ssl_keyfile=%2F", Place("rediss://[::1]:7?ssl_keyfile=%2F", "rediss://[::1]:7", "[::1]:7")),
        ("unix:///r.sock?t_max=500ms&password=x", Place("unix:///r.sock?password=x", "unix:///r.sock", "/r.sock", 0.5)),
        ("redis://h?fresh=0&t_max=2", Place("redis://h", "redis://h:6379", "h:6379", 2.0)),
    ],
)  # fmt: skip
def test_a_url_is_understood_and_shown_without_its_password(url: str, place: Place) -> None:
    assert parse(url) == place
    store = RedisStore(url)
    assert (store.url, store.domain, store.t_max) == (place.shown, place.domain, place.t_max)
    assert (store.kind, store.local) == ("handing-over", False)


@pytest.mark.parametrize(
    "url",
    [
        "redis://h?decode_responses=True&protocol=3&health_check_interval=3&socket_timeout=1",
        "rediss://h?ssl_cert_reqs=none&ssl_ca_certs=ca.pem&ssl_min_version=772",
        "unix:///r.sock?db=3&client_name=x",
    ],
)
def test_options_that_the_vendor_takes_are_taken(url: str) -> None:
    assert parse(url).vendor == url
    assert RedisStore(url).url


# What stays secret


@settings(deadline=None)
@given(places_of_a_password, odd_passwords)
def test_not_a_letter_of_a_password_is_told(place: str, password: str) -> None:
    for written in (password, quote(password, safe="")):
        assert not set(LETTERS) & set(said_about(place.format(written)))


@pytest.mark.parametrize(
    "password", ["se/cret", "12/34", "12#34", "12?34", "12@34", "se[cret", "se\tcret", "se?x=1", "1234?t_max=cret"]
)
def test_a_url_that_cannot_be_read_says_how_to_write_a_password(password: str) -> None:
    line = refusal(f"redis://ana:{password}@h")
    assert "write the characters /?#@: as %2F %3F %23 %40 %3A" in line
    assert password not in line
    assert "cret" not in line


def test_a_password_of_the_query_that_is_cut_short_is_refused() -> None:
    assert "hunter" not in refusal("redis://h?password=hunter#2")
    assert "hunter" not in refusal("redis://h?password=a@hunter")


def test_a_duration_that_is_none_is_refused_without_the_query() -> None:
    assert "hunter2" not in refusal("redis://h?t_max=soon&password=hunter2")


def test_the_rest_of_a_password_is_not_taken_for_the_name_of_an_option() -> None:
    line = refusal("redis://h?password=hun&ter2=x")
    assert "ter2" not in line
    assert "write & as %26" in line


# What is refused when the store is made


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis:", "begins with redis://"),
        ("redis:h", "begins with redis://"),
        ("unix:", "begins with redis://"),
        ("unix:/r.sock", "begins with redis://"),
        ("unix://", "unix:///run/redis.sock"),
        ("unix://r.sock", "unix:///run/redis.sock"),
        ("unix://run/r.sock", "unix:///run/redis.sock"),
        ("redis://h:x", "its port must be a number"),
        ("redis://h:0", "its port must be a number"),
        ("redis:// h", "no host is called ' h'"),
        ("redis://h%20h:1", "no host is called"),
        ("redis://a,b:1/0", "a store is one server"),
        ("redis://a..b", "no host is called"),
        ("redis://" + 64 * "a", "no host is called"),
        ("redis://h/abc", "redis://h:6379/abc: behind the / is the number of a database"),
        ("redis://h/1/2", "behind the / is the number of a database"),
        ("redis://h/²", "behind the / is the number of a database"),
        ("redis://h?t_max=0", "t_max is a duration"),
        ("redis://h?t_max=soon", "t_max is a duration"),
        ("redis://h?fresh=yes", "fresh is 0 or 1"),
        ("redis://127.0.0.1:1?bogus=1", "redis://127.0.0.1:1: there is no option 'bogus'"),
        ("redis://h?bogus", "'bogus'"),
        ("redis://h?b%0Aogus=1", "'b\\nogus'"),
        ("redis://h?passwrd=x", "did you mean password?"),
        ("redis://h?ssl_cert_reqs=none", "'ssl_cert_reqs' for this kind of URL; with TLS it is rediss://"),
        ("redis://h?retry=3", "'retry'"),
        ("redis://h?connection_class=x", "'connection_class'"),
        ("redis://h?db=x", "'db'"),
        ("redis://h?protocol=7", "protocol"),
        ("rediss://h?ssl_cert_reqs=maybe", "maybe"),
        ("rediss://h?ssl_min_version=5", "TLSVersion"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused(url: str, says: str) -> None:
    assert says in refusal(url)


@pytest.mark.parametrize("url", ["redis://?host=elsewhere", "redis://h?port=7", "unix:///r.sock?path=/other.sock"])
def test_a_place_that_would_not_be_shown_is_refused(url: str) -> None:
    """The vendor would go there, and two stores of a quorum could be one server."""
    assert "there is no option" in refusal(url)


def test_another_kind_of_url_is_none_of_ours() -> None:
    with pytest.raises(ConfigError, match="begins with redis://"):
        RedisStore("http://h")
