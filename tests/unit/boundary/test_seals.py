"""The seal: what another process learns about a state without having seen it before."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.boundary.comparison import capture
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.boundary.seal_keys import SealKey
from handoffwatch.boundary.seals import SEAL_CHARACTERS_MAX, OpenedSeal, open_seal, seal
from handoffwatch.boundary.transforms import Transform
from handoffwatch.decision import Finding
from handoffwatch.errors import RegistrationError
from handoffwatch.vocabulary import Reaction, Severity, Stage
from support.crossings import POLICY, altered, policy, state

KEY = SealKey("2031-05", bytes(range(32)))
NEXT = SealKey("2031-06", bytes(range(32, 64)))
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOW, EXPIRES = 1_900_000_000.0, 1_900_000_060.5


def sealed(of: object | None = None, under: BoundaryPolicy = POLICY, **changed: Any) -> str:
    """Return the seal of a state; of the refund unless another is given."""
    options = {
        "key": KEY,
        "route": "planner->executor",
        "handoff_id": "h-1842",
        "attempt": 2,
        "schema_version": "1",
        "traceparent": TRACEPARENT,
        "expires_unix_s": EXPIRES,
    }
    return seal(state() if of is None else of, under, **{**options, **changed})


def opened(text: Any, of: object | None = None, under: BoundaryPolicy = POLICY, **changed: Any) -> OpenedSeal:
    """Return what a seal says about a state."""
    options = {"keys": (NEXT, KEY), "route": "planner->executor", "now_unix_s": NOW}
    return open_seal(text, state() if of is None else of, under, **{**options, **changed})


def said(seal: OpenedSeal) -> list[tuple[str, str, str]]:
    """Return code, path and pattern of each finding."""
    found = seal.comparison
    return [(each.code, each.path, pattern) for each, pattern in zip(found.findings, found.patterns, strict=True)]


def test_seal_opens_without_a_finding_when_the_state_is_the_same() -> None:
    """Who sent it, which try, which version and which trace go with it; a capture does as well as the state."""
    right = OpenedSeal("h-1842", 2, "1", TRACEPARENT, opened(sealed()).comparison)
    assert opened(sealed()) == right
    assert right.findings == ()
    assert opened(sealed(capture(state(), POLICY)), capture(state(), POLICY)) == right
    assert opened(sealed(traceparent="")).traceparent == ""


def test_seal_is_compact_json_that_depends_on_nothing_but_its_arguments() -> None:
    """The same state gives the same seal, whatever the order of its keys; proxies may write its JSON in another way."""
    text = sealed()
    body = json.loads(text)
    assert text == json.dumps(body, separators=(",", ":"))
    assert list(body) == [
        "seal", "key", "route", "handoff_id", "attempt", "schema_version", "traceparent", "expires_unix_s",
        "policy", "paths", "rest", "mac",
    ]  # fmt: skip
    assert (body["seal"], body["key"]) == (1, "2031-05")
    assert list(body["paths"]) == list(POLICY.exact.patterns)
    assert sealed(dict(reversed(state().items()))) == text
    assert opened(json.dumps(body, indent=2, sort_keys=True)).findings == ()


@pytest.mark.parametrize(
    ("change", "expected", "sentence"),
    [
        (
            lambda there: there["task"].pop("constraints"),
            ("value_missing", "task.constraints", "task.constraints"),
            "task.constraints must be there, and is not",
        ),
        (
            lambda there: there["task"].update(constraints=[]),
            ("value_changed", "task.constraints", "task.constraints"),
            "task.constraints must have the value that was sealed, and is an empty list",
        ),
        (
            lambda there: there["task"].update(goal=None),
            ("value_changed", "task.goal", "task.goal"),
            "task.goal must have the value that was sealed, and is null",
        ),
        (
            lambda there: there["artifacts"][0].update(revision=3.0),
            ("value_changed", "artifacts", "artifacts"),
            "artifacts must have the value that was sealed",
        ),
        (
            lambda there: there["task"]["constraints"].reverse(),
            ("value_changed", "task.constraints", "task.constraints"),
            "task.constraints must have the value that was sealed",
        ),
        (
            lambda there: there.update(schema_version="1"),
            ("value_changed", "schema_version", "schema_version"),
            "schema_version must have the value that was sealed",
        ),
        (
            lambda there: there.update(note="another"),
            ("rest_changed", "$", "**"),
            "what no exact path names must be as it was sealed",
        ),
        (
            lambda there: there["task"].update(owner=None),
            ("rest_changed", "$", "**"),
            "what no exact path names must be as it was sealed",
        ),
    ],
)
def test_seal_names_what_changed_without_the_state_before(
    change: Callable[[dict[str, Any]], object], expected: tuple[str, str, str], sentence: str
) -> None:
    """One finding at the path of the policy, that blocks and that no model can repair."""
    found = opened(sealed(), altered(change))
    assert said(found) == [expected]
    assert found.findings == (
        Finding(*expected[:2], sentence, Reaction.BLOCK, Severity.ERROR, retryable=False, stage=Stage.VALIDATE),
    )
    assert found.comparison.diverged == (expected[2],)
    assert found[:4] == ("h-1842", 2, "1", TRACEPARENT)


def test_seal_names_every_path_when_several_changed() -> None:
    """In the order of the policy."""
    there = altered(lambda there: there.update(handoff_id="h-1", decisions=None, note=1))
    assert [each[1] for each in said(opened(sealed(), there))] == ["handoff_id", "decisions", "$"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=5), parts, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(POLICY.exact_paths),
)
def test_seal_names_an_exact_path_when_anything_else_stands_there(value: Any, path: str) -> None:
    """Whatever the new value is; what has no canonical form blocks too, and the value that was there does not."""
    *above, last = path.split(".")
    there = altered(lambda there: (there[above[0]] if above else there).update({last: value}))
    was = state()
    for key in path.split("."):
        was = was[key]
    expected = [] if type(value) is type(was) and json.dumps(value) == json.dumps(was) else [path]
    assert [each[1] for each in said(opened(sealed(), there))] == expected


PARTS = st.recursive(
    st.sampled_from([None, True, 1, 1.0, "", "1", datetime(2031, 5, 6, tzinfo=UTC), b"1"]),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.frozensets(st.sampled_from([1, "1", None]))
        | st.dictionaries(st.sampled_from(["a", "b", "0", "1"]), parts, max_size=3)
    ),
    max_leaves=6,
)


@given(PARTS, PARTS, st.lists(st.sampled_from(["a", "a.b", "a.1", "*.0", "a.*.b", "**.b", "b"]), max_size=3))
def test_seal_stops_exactly_what_differs_in_its_canonical_form(one: Any, other: Any, paths: list[str]) -> None:
    """However the policy cuts the state, no difference falls between its paths, and equal states pass."""
    under = BoundaryPolicy(exact_paths=tuple(paths))
    before, after = ({"schema_version": "1", "a": part, "b": 1} for part in (one, other))
    sides = capture(before, under), capture(after, under)
    is_different = sides[0].form.digest != sides[1].form.digest or not sides[1].is_whole
    assert bool(opened(sealed(before, under), after, under).findings) == is_different
    assert bool(opened(sealed(after, under), after, under).findings) == (not sides[1].is_whole)


def test_seal_tells_kinds_apart_when_their_text_is_the_same() -> None:
    """A datetime is not its text, unless the policy says that times stand there."""
    there = state(due=datetime(2031, 5, 6, tzinfo=UTC))
    text = state(due="2031-05-06T00:00:00+00:00")
    for under, expected in ((policy(exact_paths=("due",)), ["due"]), (policy(times=("due",)), [])):
        assert [each[1] for each in said(opened(sealed(there, under), text, under))] == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, [("value_missing", "owner", "owner must be there, and is not")]),
        ({}, {"owner": 1}, [("value_added", "owner", "owner must not be there: it was not sealed")]),
    ],
)
def test_seal_names_an_exact_path_when_the_sender_had_none(
    before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    """What is on neither side is missing, and what an importer filled in was never sent."""
    under = policy(exact_paths=("owner",))
    found = opened(sealed(state(**before), under), state(**after), under).findings
    assert [finding[:3] for finding in found] == expected


def test_seal_names_the_element_when_a_part_of_many_is_lost() -> None:
    """A path with a star asks for its keys in each element."""
    under = policy(exact_paths=("artifacts.*.id",))
    two = state(artifacts=[{"id": "a"}, {"id": "b"}])
    lost = state(artifacts=[{"id": "a"}, {}])
    assert said(opened(sealed(two, under), lost, under)) == [("value_missing", "artifacts.1.id", "artifacts.*.id")]
    fewer = said(opened(sealed(two, under), state(artifacts=[{"id": "a"}]), under))
    assert fewer == [("value_changed", "artifacts.*.id", "artifacts.*.id"), ("rest_changed", "$", "**")]


def test_seal_covers_everything_when_the_policy_names_all_levels() -> None:
    """The path `**` is not the pattern of the rest."""
    under = policy(exact_paths=("**",))
    assert opened(sealed(under=under), under=under).findings == ()
    assert said(opened(sealed(under=under), state(note="another"), under)) == [("value_changed", "**", "**")]


def test_seal_holds_a_transformed_path_as_it_was_when_it_was_sealed() -> None:
    """Nobody can judge a transform without the state before it."""
    under = policy(transforms={"note": Transform("summary", lambda before, after: True)})
    assert opened(sealed(under=under), under=under).findings == ()
    assert said(opened(sealed(under=under), state(note="short"), under)) == [("value_changed", "note", "note")]


def test_seal_warns_when_local_values_came_along() -> None:
    """They are no part of the seal, and they should have stayed behind."""
    found = opened(sealed(), state(local_cache={"a": 1}))
    assert said(found) == [("value_added", "local_cache", "local_cache")]
    assert found.findings[0].reaction is Reaction.WARN
    assert opened(sealed(state(local_cache=1))).findings == ()


def test_seal_blocks_when_the_state_that_arrived_has_no_canonical_form() -> None:
    """The place is named as the comparison names it."""
    found = opened(sealed(), state(note=object()))
    assert [(each.code, each.path, each.stage) for each in found.findings] == [
        ("not_serialisable", "note", Stage.CAPTURE_AFTER)
    ]


def test_seal_names_the_version_when_the_policy_asks_for_another() -> None:
    """Whatever the state says."""
    found = opened(sealed(under=policy()), under=policy(schema_version="2"))
    assert said(found) == [("unknown_schema_version", "schema_version", "schema_version")]


def _changed(name: str, value: object) -> str:
    return json.dumps(json.loads(sealed()) | {name: value})


OF_VERSION_1 = "the seal must be a seal of version 1, and is none"
FORGED = "the seal must be as the sender made it: it is forged, or was changed"
UNKNOWN_KEY = "the seal must be made with a key that the receiver holds"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", OF_VERSION_1),
        ("null", OF_VERSION_1),
        ("not JSON", OF_VERSION_1),
        ("\ud800", OF_VERSION_1),
        ("[" * 100_000, OF_VERSION_1),
        (" " * SEAL_CHARACTERS_MAX + sealed(), OF_VERSION_1),
        (sealed()[:-1], OF_VERSION_1),
        (sealed().encode(), OF_VERSION_1),
        (7, OF_VERSION_1),
        (_changed("seal", 2), OF_VERSION_1),
        (_changed("seal", True), OF_VERSION_1),
        (_changed("more", 1), OF_VERSION_1),
        (_changed("paths", []), OF_VERSION_1),
        (_changed("paths", {"task.id": [[[]]]}), OF_VERSION_1),
        (_changed("attempt", "2"), OF_VERSION_1),
        (_changed("mac", None), OF_VERSION_1),
        (_changed("mac", ""), FORGED),
        (_changed("mac", "é"), FORGED),
        (_changed("mac", "0" * 64), FORGED),
        (_changed("handoff_id", "h-1"), FORGED),
        (_changed("attempt", 1), FORGED),
        (_changed("schema_version", "2"), FORGED),
        (_changed("traceparent", ""), FORGED),
        (_changed("expires_unix_s", EXPIRES + 1), FORGED),
        (_changed("expires_unix_s", 10**30), FORGED),
        (_changed("expires_unix_s", 10**400), OF_VERSION_1),
        (_changed("policy", ""), FORGED),
        (_changed("paths", {}), FORGED),
        (_changed("rest", "0" * 64), FORGED),
        (_changed("key", "2031-06"), FORGED),
        (_changed("key", "1999-01"), UNKNOWN_KEY),
        (sealed(key=SealKey("1999-01", b"k" * 32)), UNKNOWN_KEY),
        (sealed(key=SealKey("2031-05", b"k" * 32)), FORGED),
    ],
)
def test_seal_is_refused_when_it_cannot_be_trusted(text: object, sentence: str) -> None:
    """Nothing that it says is handed on, and nothing is compared; the sentence says why and holds nothing of it."""
    found = opened(text, object())
    assert found[:4] == ("", 0, "", "")
    assert said(found) == [("seal_invalid", "seal", "**")]
    assert found.findings[0].sentence == sentence
    assert found.findings[0].stage == Stage.DESERIALIZE


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_seal_is_refused_when_it_is_any_text(text: str) -> None:
    """No text raises, and none opens."""
    assert [finding.code for finding in opened(text).findings] == ["seal_invalid" if text else "seal_missing"]


@given(st.integers(min_value=0, max_value=len(sealed()) - 1), st.characters(codec="ascii"))
def test_seal_is_refused_when_one_character_of_it_is_another(at: int, character: str) -> None:
    """Each character of a seal counts."""
    text = sealed()
    changed = text[:at] + character + text[at + 1 :]
    codes = [finding.code for finding in opened(changed).findings]
    assert codes == ([] if changed == text else ["seal_invalid"])


def test_seal_is_missing_when_none_came() -> None:
    """Where the route requires one; else nothing is compared."""
    for none in (None, ""):
        found = opened(none)
        assert found[:4] == ("", 0, "", "")
        assert said(found) == [("seal_missing", "seal", "**")]
        assert found.findings[0].sentence == "the seal must be there: this route requires one"
        assert opened(none, required=False).findings == ()


@pytest.mark.parametrize(
    ("changed", "sentences"),
    [
        ({"now_unix_s": EXPIRES - 0.01}, []),
        ({"now_unix_s": EXPIRES}, ["the seal must not have expired"]),
        ({"consumed": {"h-1"}}, []),
        ({"consumed": {"h-1842"}}, ["the seal must be used once: its handoff was accepted before"]),
        (
            {"consumed": {"h-1842"}, "now_unix_s": EXPIRES},
            ["the seal must not have expired", "the seal must be used once: its handoff was accepted before"],
        ),
    ],
)
def test_seal_is_refused_when_it_is_expired_or_consumed(changed: dict[str, Any], sentences: list[str]) -> None:
    """Who sent it is known then, so that it can be recorded; the state is not compared."""
    found = opened(sealed(), **changed)
    assert found[:4] == ("h-1842", 2, "1", TRACEPARENT)
    assert [finding.sentence for finding in found.findings] == sentences
    assert {finding.code for finding in found.findings} <= {"seal_invalid"}


@pytest.mark.parametrize("other", [{"exact_paths": ("task.id",)}, {"sets": ("artifacts",)}, {"ignore_paths": ()}])
def test_seal_is_refused_when_the_receiver_has_another_policy(other: dict[str, Any]) -> None:
    """The digests of two policies cannot be compared; what is written does not matter, nor the order of paths."""
    found = opened(sealed(under=policy()), under=policy(**other))
    assert [finding.sentence for finding in found.findings] == [
        "the seal must be made under the paths of the receiver's policy"
    ]
    same = policy(exact_paths=POLICY.exact_paths[::-1], redact=("note",))
    assert opened(sealed(under=policy()), under=same).findings == ()


def test_seal_opens_with_the_old_and_the_new_key_when_keys_are_rotated() -> None:
    """The id in the seal says which; two keys of one id are both tried."""
    twin = SealKey("2031-05", bytes(range(64, 96)))
    for key in (KEY, NEXT, twin):
        assert opened(sealed(key=key), keys=iter([KEY, twin, NEXT])).findings == ()
    assert opened(sealed(), keys=()).findings[0].sentence == UNKNOWN_KEY


def test_seal_lets_nobody_find_a_small_secret_by_trying() -> None:
    """No bare digest of it is in the seal, no two seals hold the same digest, and without the key none can be made."""
    under = policy(exact_paths=("card.code",), secret=("card.code",))
    secret = state(card={"code": "493817"})
    text = sealed(secret, under)
    assert "493817" not in text
    tries = [b"493817", b'"493817"', b'[[["card","code"],"493817"]]', b'["card.code","493817"]', b'{"code":"493817"}']
    tries += [b'"card.code"\n[[["card","code"],"493817"]]\n[]', capture(secret, under).form.json]
    for tried in tries:
        assert hashlib.sha256(tried).hexdigest() not in text
        for public in (b"", b"2031-05", b"h-1842"):
            assert hmac.digest(public, tried, "sha256").hex() not in text
    digests = [
        json.loads(sealed(secret, under, **changed))["paths"]["card.code"]
        for changed in ({}, {"key": NEXT}, {"handoff_id": "h-1"}, {"attempt": 3}, {"expires_unix_s": NOW})
    ]
    assert len(set(digests)) == len(digests)
    assert said(opened(text, state(card={"code": "493818"}), under)) == [("value_changed", "card.code", "card.code")]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"handoff_id": ""}, "seal: handoff_id: must be an id of 1 to 255 characters"),
        ({"attempt": 0}, "seal: attempt: must be a whole number of at least 1"),
        ({"attempt": True}, "seal: attempt: must be a whole number of at least 1"),
        ({"schema_version": 1}, "seal: schema_version: must be a text of 1 to 100 printable characters"),
        ({"schema_version": "2"}, "seal: state: must say the version that is sealed"),
        ({"traceparent": "00-secret"}, "seal: traceparent: must be as W3C Trace Context has it"),
        (
            {"traceparent": f"00-{'0' * 32}-b7ad6b7169203331-01"},
            "seal: traceparent: must be as W3C Trace Context has it",
        ),
        ({"expires_unix_s": float("nan")}, "seal: expires_unix_s: must be a finite number of seconds"),
        ({"of": {"secret": object()}}, "seal: state: must have a canonical form"),
    ],
)
def test_seal_is_not_made_when_an_argument_breaks_its_rule(changed: dict[str, Any], message: str) -> None:
    """The message names the argument and the rule, never the value."""
    with pytest.raises(ValueError, match="seal") as raised:
        sealed(**changed)
    assert str(raised.value) == message


def test_seal_is_not_made_when_it_would_be_too_long_to_be_opened() -> None:
    """The policy is at fault then."""
    under = policy(exact_paths=tuple(f"path_{number}" for number in range(5_000)))
    with pytest.raises(
        ValueError, match="seal: policy: must make a seal of at most 262144 characters: name fewer paths"
    ):
        sealed({f"path_{number}": 1 for number in range(5_000)}, under)


@pytest.mark.parametrize(
    ("key_id", "secret", "message"),
    [
        ("a", b"", "seal key a: secret: must be at least 32 bytes, got 0 bytes"),
        ("a", b"hunter2", "seal key a: secret: must be at least 32 bytes, got 7 bytes"),
        ("a", "k" * 64, "seal key a: secret: must be at least 32 bytes, got str"),
        ("a", None, "seal key a: secret: must be at least 32 bytes, got NoneType"),
        ("", b"k" * 32, "seal key: key_id: must be 1 to 100 printable characters, got str"),
    ],
)
def test_seal_key_is_refused_when_it_is_empty_or_short(key_id: Any, secret: Any, message: str) -> None:
    """At registration, with what to type next, and without a byte of it."""
    with pytest.raises(RegistrationError) as raised:
        SealKey(key_id, secret)
    assert raised.value.message == message
    assert raised.value.hint
    assert "hunter2" not in str(raised.value)


def test_seal_key_shows_no_secret_when_it_is_printed() -> None:
    """Its id is enough to tell keys apart."""
    assert repr(KEY) == "SealKey(key_id='2031-05')"
