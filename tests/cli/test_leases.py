"""``trinco sim quorum-lease`` and ``trinco check quorum-lease``, as people call them."""

import json

import pytest

from trinco.cli.main import main
from trinco.leases.keys import Ed25519Key, Keyring, MacKey, dump

QUICK = ("--entries", "10", "--delay", "0.05", "--hold", "0.1")


def called(capsys, *words):
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-n", "3"), "3f+1 = 4 stores, not 3"),
        (("-n", "6", "-f", "2"), "3f+1 = 7 stores, not 6"),
        (("--ttl", "1", "--granularity", "1"), "leaves nothing to believe"),
        (("--ttl", "1", "--sigma", "2"), "leaves nothing to believe"),
        (("--byzantine", "sillent"), "did you mean 'silent'"),
        (("--byzantine", "0:silent"), "no store"),
        (("--byzantine", "x:silent"), "NODE:BEHAVIOUR"),
        (("--stores", "objet"), "did you mean 'object'"),
        (("--stores", "object,queue"), "3f+1"),
        (("-n", "4", "--stores", "object,queue"), "one for all or one each"),
        (("--stores", "queue", "--token"), "can keep one"),
        (("--rho", "2"), "rho"),
        (("--byzantine", "silent", "--byzantine", "silent"), "does not claim to survive 2 Byzantine"),
    ],
)
@pytest.mark.parametrize("command", ["sim", "check"])
def test_bad_input_gets_one_clear_line_and_exit_64(capsys, command, words, said):
    code, out, err = called(capsys, command, "quorum-lease", *words)
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert said in err


@pytest.mark.parametrize("words", [("--clients", "0"), ("--policy", "luck"), ("--ttl", "0"), ("-f", "-1")])
def test_what_the_parser_refuses_is_64_too(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(["sim", "quorum-lease", *words])
    assert ended.value.code == 64
    assert capsys.readouterr().err.count("\n") == 1


def test_other_protocols_have_no_stores(capsys):
    code, _, err = called(capsys, "sim", "coordinator", "--stores", "object")
    assert code == 64
    assert "--stores is for quorum-lease" in err


def test_a_keyring_without_our_own_key_is_77(capsys, tmp_path):
    path = tmp_path / "keyring.json"
    path.write_text(dump(Keyring(None, (Ed25519Key(b"k" * 32).verifier(),))))
    code, _, err = called(capsys, "sim", "quorum-lease", "--keyring", str(path))
    assert code == 77
    assert "no key of our own" in err


@pytest.mark.parametrize("content", [None, "not a keyring", "\udcff"])
def test_a_keyring_that_cannot_be_read_is_65(capsys, tmp_path, content):
    path = tmp_path / "keyring.json"
    if content is not None:
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert called(capsys, "sim", "quorum-lease", "--keyring", str(path))[0] == 65


@pytest.mark.parametrize("key", [MacKey(b"s" * 32), Ed25519Key(b"s" * 32)], ids=["mac", "ed25519"])
def test_entries_signed_for_real_hold_and_no_trace_shows_the_secret(capsys, tmp_path, key):
    path, trace = tmp_path / "keyring.json", tmp_path / "run.ndjson"
    path.write_text(dump(Keyring(key)))
    words = ("--keyring", str(path), "--trace", str(trace), "--byzantine", "replay-token", "--clients", "3")
    assert called(capsys, "sim", "quorum-lease", *QUICK, *words)[0] == 0
    written = trace.read_text()
    assert key.fingerprint in written
    assert (b"s" * 32).hex() not in written
    assert "ssssssss" not in written


def test_a_simulated_lease_tells_what_every_simulation_does(capsys):
    stores = "object,queue,conditional,transactional"
    code, out, _ = called(capsys, "sim", "quorum-lease", "--stores", stores, "--byzantine", "silent", "--json", *QUICK)
    told = json.loads(out)
    assert (code, told["verdict"], told["entries"], told["n"]) == (0, "no violation", 10, 6)


def test_its_trace_can_be_verified(capsys, tmp_path):
    trace = tmp_path / "run.ndjson"
    assert called(capsys, "sim", "quorum-lease", "--trace", str(trace), *QUICK)[0] == 0
    code, out, _ = called(capsys, "verify", str(trace))
    assert code == 0
    assert "TokenRises" in out


def test_many_seeds_of_it(capsys):
    code, out, _ = called(capsys, "sim", "quorum-lease", "--seeds", "5", "--jobs", "1", *QUICK)
    assert code == 0
    assert "no violation" in out


def test_one_liar_too_many_is_found_by_the_checker_and_kept_as_a_test(capsys, tmp_path):
    kept = tmp_path / "test_kept.py"
    words = ("--byzantine", "grant-all", "--byzantine", "grant-all", "--beyond-claims", "--no-time")
    code, out, _ = called(capsys, "check", "quorum-lease", *words, "--write-test", str(kept))
    assert code == 1
    assert "p0 and p1 are inside together" in out
    assert "ENTERS" in out
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(kept)]) == 0


def test_a_check_says_what_was_checked(capsys):
    code, out, _ = called(capsys, "check", "quorum-lease", "-n", "1", "-f", "0", "--renewals", "1", "--json")
    told = json.loads(out)
    assert (code, told["verdict"], told["n"], told["clients"], told["liars"]) == (0, "no violation", 1, 2, "none")
    assert told["states"] > 1000


def test_a_client_may_crash(capsys):
    assert called(capsys, "check", "quorum-lease", "-n", "1", "-f", "0", "--crashes", "1")[0] == 0
