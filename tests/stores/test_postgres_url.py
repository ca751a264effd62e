"""What a PostgreSQL URL means, which ones are refused, and that none of them gives its password away."""

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trinco.core.errors import ConfigError, StoreUnavailable
from trinco.stores.catalogue import open_store
from trinco.stores.postgres import PostgresStore

HERE = "a" * 20
LETTERS = "JZ"
"""No text of ours has them, so that a part of a password is seen, too."""
odd_passwords = st.text(LETTERS + "@/#?:%&=+;,. []\\'\"\t\né☃", min_size=4).filter(
    lambda text: set(LETTERS) & set(text)
)
places_of_a_password = st.sampled_from(
    [
        "postgresql://ana:{}@127.0.0.1:1/locks",
        "postgres://:{}@127.0.0.1:1,127.0.0.1:1/locks?sslmode=disable",
        "postgresql://127.0.0.1:1/locks?password={}",
        "postgresql://127.0.0.1:1?t_max=2s&p%61ssword={}&sslmode=disable",
        "postgresql://ana:{}@127.0.0.1:1/locks?bogus=1",
        "postgresql://ana:{}@127.0.0.1:1/locks?t_max=soon",
        "postgresql://ana:{}@127.0.0.1:1/locks?sslmode=bogus",
        "postgresql:ana:{}@127.0.0.1:1/locks",
    ]
)


def refusal(url: str) -> str:
    with pytest.raises(ConfigError) as refused:
        open_store(url)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def said_about(url: str) -> str:
    try:
        store = PostgresStore(url)
    except ConfigError as error:
        return str(error)
    with pytest.raises(StoreUnavailable) as refused:
        store.connect(HERE, timeout=2)
    return " ".join((store.url, store.domain, store.problem("42501", "no"), str(refused.value)))


# What a URL means


def test_a_url_says_where_and_keeps_its_password() -> None:
    store = PostgresStore("postgres://ana:secret@db.example:6543/locks?t_max=2s&sslmode=require&password=secret")
    assert store.url == "postgres://ana@db.example:6543/locks?t_max=2s&sslmode=require"
    assert (store.domain, store.kind, store.local, store.t_max) == ("db.example:6543", "handing-over", False, 2)


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("postgresql://", "localhost:5432"),
        ("postgresql://a,[::1]:7/x", "a:5432,[::1]:7"),
        ("postgresql://a,b/x?port=7", "a:7,b:7"),
        ("postgresql:///x?host=/run/pg&port=7", "/run/pg:7"),
        ("postgresql://%2Frun%2Fpg/x", "/run/pg:5432"),
        ("postgresql://?hostaddr=10.0.0.1", "10.0.0.1:5432"),
    ],
)
def test_a_domain_is_where_the_servers_are(url: str, domain: str) -> None:
    assert PostgresStore(url).domain == domain


@pytest.mark.parametrize("password", ["hunter#2", "hun:ter", "a+b", "s3%2Fcret"])
def test_what_libpq_takes_for_a_password_gets_there_unchanged(password: str) -> None:
    store = PostgresStore(f"postgresql://ana:{password}@db.example/locks?fresh=1")
    assert store.conninfo == f"postgresql://ana:{password}@db.example/locks"
    assert store.url == "postgresql://ana@db.example/locks?fresh=1"


def test_hosts_of_the_environment_do_not_spoil_a_url_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "a,b")
    monkeypatch.setenv("PGPORT", "1,2")
    assert PostgresStore("postgresql:///locks").url == "postgresql:///locks"


# What stays secret


@settings(deadline=None)
@given(places_of_a_password, odd_passwords)
def test_not_a_letter_of_a_password_is_told(place: str, password: str) -> None:
    for written in (password, quote(password, safe="")):
        assert not set(LETTERS) & set(said_about(place.format(written)))


@pytest.mark.parametrize(
    "user_and_password",
    ["u:hunter#2", "u:s3/cret", "u:hunter2%ZZ", "u:my pass", "u:hun@ter2", "u:1234/5678", "u:a?b@c/d", "u:%FFhunter"],
)
def test_a_password_with_odd_characters_is_not_told(user_and_password: str) -> None:
    said = said_about(f"postgresql://{user_and_password}@127.0.0.1:1/x")
    assert user_and_password.removeprefix("u:") not in said
    assert "hunter" not in said


def test_a_password_that_cannot_be_read_is_answered_with_how_to_write_it() -> None:
    for password in ("s3/cret", "my pass", "100%", "p@ss", "hun?ter"):
        assert "%25 %2F %3F %23 %40 %3A %26 %3D" in refusal(f"postgresql://ana:{password}@db.example/locks")


def test_an_at_sign_of_the_query_is_refused_when_it_might_end_a_password() -> None:
    assert "hunter2" not in refusal("postgresql://?password=hunter2@db.example")
    assert "hunter2" not in refusal("postgresql://db.example:1?password=a@hunter2")
    assert "hunter2" not in refusal("postgresql://db.example/locks?password=a@hunter2")


@pytest.mark.parametrize("name", ["password", "sslpassword"])
def test_a_secret_option_is_not_shown_however_its_name_is_written(name: str) -> None:
    escaped = "".join(f"%{ord(letter):02x}" for letter in name)
    store = PostgresStore(f"postgresql://a,b:7/x?{name}=hunter2&{escaped}=hunter2&sslmode=prefer")
    assert store.url == "postgresql://a,b:7/x?sslmode=prefer"


def test_a_duration_that_is_none_is_refused_without_the_query() -> None:
    assert "hunter2" not in refusal("postgresql://db.example/locks?t_max=soon&password=hunter2")


def test_the_rest_of_a_password_is_not_taken_for_the_name_of_an_option() -> None:
    assert "ter2" not in refusal("postgresql://db.example/locks?password=hun&ter2=x")


# What is refused when the store is made


@pytest.mark.parametrize("options", ["fresh=maybe", "t_max=0", "t_max=soon", "schema="])
def test_options_that_make_no_sense_are_refused(options: str) -> None:
    assert "t_max is a duration" in refusal("postgresql://db.example/locks?" + options)


def test_an_option_that_is_not_known_is_named() -> None:
    line = refusal("postgresql://ana:secret@db.example/locks?bogus=1")
    assert "postgresql://ana@db.example/locks: there is no option 'bogus'" in line
    assert "did you mean sslmode?" in refusal("postgresql://db.example?sslmde=require")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql:", "begins with postgresql://"),
        ("postgresql:db.example/locks", "begins with postgresql://"),
        ("postgresql://db.example:x/locks", '"x"'),
        ("postgresql://a,b:99999/locks", '"99999"'),
        ("postgresql://a,b,c/locks?port=1,2", "2 port numbers to 3 hosts"),
        ("postgresql://db.example?sslmode=bogus", '"bogus"'),
        ("postgresql://db.example?target_session_attrs=bogus", '"bogus"'),
        ("postgresql://db.example?service=no-such-service", '"no-such-service"'),
        ("postgresql://db.example?connect_timeout=soon", "connect_timeout is a whole number"),
        ("postgresql://db.example?keepalives_idle=1.5", "keepalives_idle is a whole number"),
        ("postgresql://db.example?b%0Aogus=1", "'b\\nogus'"),
        ("postgresql://[::1/locks", "cannot be read"),
        ("postgresql://db.example/lo\ncks", "cannot be read"),
    ],
)
def test_a_url_that_no_connection_can_be_made_with_is_refused(url: str, says: str) -> None:
    assert says in refusal(url)


def test_a_store_is_made_without_asking_any_server() -> None:
    url = (
        "postgresql://no-such-host.invalid,also.invalid/locks?sslmode=verify-full&gssencmode=disable&passfile=/nowhere"
    )
    assert PostgresStore(url).url == url
