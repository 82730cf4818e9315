"""The seal: a manifest that travels beside a state and tells another process what of it was changed on the way.

A seal is compact JSON. It carries a keyed digest (HMAC-SHA256) of the canonical form at each exact path and of the
rest, never a value, and a MAC over all of it. The digests of each handoff and attempt have a key of their own, so that
nobody can find a small secret by trying, nor see that two handoffs hold the same one.

A transform cannot be judged without the state before it. So the seal is made after what the sender transforms, and
opened before what the receiver transforms: a path of `transforms` must arrive as it was sealed.

Source: DESIGN section 3 rule 10; RFC 2104 (HMAC); W3C Trace Context (traceparent).
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable
from typing import Any, Final, NamedTuple

import orjson

from handoffwatch.boundary.comparison import PLACES_MAX, Capture, Comparison, Found, capture, found_alone
from handoffwatch.boundary.findings import finding_of
from handoffwatch.boundary.policy import REST, BoundaryPolicy
from handoffwatch.boundary.seal_keys import SealKey, is_same
from handoffwatch.boundary.sealed_places import Digests, policy_digest, sealed_places
from handoffwatch.decision import Finding
from handoffwatch.values.canonical_tree import Tree
from handoffwatch.values.difference import in_words
from handoffwatch.values.names import is_id, is_name
from handoffwatch.values.paths import dotted
from handoffwatch.vocabulary import Stage

SEAL_CHARACTERS_MAX: Final = 262_144
"""The longest seal: that of a policy with some 2,000 exact paths."""

_VERSION: Final = 1
_SEAL: Final = "seal"
_MAC: Final = "mac"
_PATHS: Final = "paths"
_REST: Final = "rest"

_FIELDS: Final[dict[str, tuple[type, ...]]] = {
    _SEAL: (int,),
    "key": (str,),
    "route": (str,),
    "handoff_id": (str,),
    "attempt": (int,),
    "schema_version": (str,),
    "traceparent": (str,),
    "expires_unix_s": (int, float),
    "policy": (str,),
    _PATHS: (dict,),
    _REST: (str,),
    _MAC: (str,),
}

_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class OpenedSeal(NamedTuple):
    """What a seal says about the state that arrived with it.

    The caller compares `handoff_id` with the envelope's: a seal that is right may lie beside another message.

    Attributes:
        handoff_id: Empty when the seal is missing or cannot be trusted, and so are the next three.
        attempt: 1-based number of the try; 0 then.
        schema_version: That of the state when it was sealed.
        traceparent: Of the sender's span; empty when nothing recorded it.
        comparison: What the policy says, as between two states. Findings about the seal itself stand at the path `seal`
            with the pattern `**`; nothing else is compared then.
    """

    handoff_id: str
    attempt: int
    schema_version: str
    traceparent: str
    comparison: Comparison

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why the receiver must not start, and a warning for each local path that came along."""
        return self.comparison.findings


def seal(
    state: object,
    policy: BoundaryPolicy,
    *,
    key: SealKey,
    route: str,
    handoff_id: str,
    attempt: int,
    schema_version: str,
    traceparent: str,
    expires_unix_s: float,
) -> str:
    """Return the seal of a state, as compact JSON. Equal arguments give equal seals.

    Args:
        state: What leaves, or its `Capture` under the same policy.
        policy: That of the route; the receiver must have the same paths.
        key: One that the receiver holds.
        route: Of the handoff; a seal is good for one route.
        handoff_id: Of the handoff.
        attempt: 1-based number of this try.
        schema_version: That of the state.
        traceparent: Of the sender's span; empty when nothing records it.
        expires_unix_s: From when on the receiver refuses the seal.

    Raises:
        ValueError: An argument breaks its rule, the state has no canonical form or says another schema version, or the
            policy has too many paths. The message holds no value.
    """
    side = state if type(state) is Capture else capture(state, policy)
    for name, is_right, rule in (
        ("route", is_name(route), "must be a text of 1 to 100 printable characters"),
        ("handoff_id", is_id(handoff_id), "must be an id of 1 to 255 characters"),
        ("attempt", type(attempt) is int and attempt >= 1, "must be a whole number of at least 1"),
        ("schema_version", is_name(schema_version), "must be a text of 1 to 100 printable characters"),
        ("traceparent", traceparent == "" or _is_traceparent(traceparent), "must be as W3C Trace Context has it"),
        ("expires_unix_s", _is_time(expires_unix_s), "must be a finite number of seconds"),
        ("state", not side.form.faults, "must have a canonical form"),
        (
            "state",
            side.schema_version is None or str(side.schema_version) == schema_version,
            "must say the version that is sealed",
        ),
    ):
        if not is_right:
            raise ValueError(f"seal: {name}: {rule}")
    head: dict[str, Any] = {
        _SEAL: _VERSION,
        "key": key.key_id,
        "route": route,
        "handoff_id": handoff_id,
        "attempt": attempt,
        "schema_version": schema_version,
        "traceparent": traceparent,
        "expires_unix_s": expires_unix_s,
        "policy": policy_digest(policy),
    }
    body = head | sealed_places(side, policy).digests(key.own_of(head))._asdict()
    text = orjson.dumps(body | {_MAC: key.mac_of(body)}).decode()
    if len(text) > SEAL_CHARACTERS_MAX:
        raise ValueError(
            f"seal: policy: must make a seal of at most {SEAL_CHARACTERS_MAX} characters: name fewer paths"
        )
    return text


def open_seal(
    text: str | None,
    state: object,
    policy: BoundaryPolicy,
    *,
    keys: Iterable[SealKey],
    route: str,
    now_unix_s: float,
    consumed: Container[str] = frozenset(),
    required: bool = True,
) -> OpenedSeal:
    """Return what a seal says about the state that arrived. No text makes it raise.

    Args:
        text: The seal; None or empty when none came.
        state: What arrived, or its `Capture` under the same policy.
        policy: That of the route.
        keys: All that a sender may use.
        route: On which the state arrived.
        now_unix_s: The time on the receiver's clock.
        consumed: Ids of the handoffs that were accepted before.
        required: Whether a missing seal blocks; else nothing is compared without one.
    """
    if not text:
        sentence = "the seal must be there: this route requires one"
        missing = [(finding_of("seal_missing", _SEAL, sentence, stage=Stage.DESERIALIZE), REST)]
        return OpenedSeal("", 0, "", "", Comparison.of(missing if required else []))
    body = _read(text)
    if body is None:
        return _untrusted("must be a seal of version 1, and is none")
    known = [key for key in keys if key.key_id == body["key"]]
    if not known:
        return _untrusted("must be made with a key that the receiver holds")
    mac = body.pop(_MAC)
    key = next((key for key in known if is_same(mac, key.mac_of(body))), None)
    if key is None:
        return _untrusted("must be as the sender made it: it is forged, or was changed")
    refusals = (
        (now_unix_s >= body["expires_unix_s"], "must not have expired"),
        (body["route"] != route, "must be made for this route"),
        (body["handoff_id"] in consumed, "must be used once: its handoff was accepted before"),
        (body["policy"] != policy_digest(policy), "must be made under the paths of the receiver's policy"),
    )
    found = [_invalid(rule) for is_broken, rule in refusals if is_broken]
    if not found:
        side = state if type(state) is Capture else capture(state, policy)
        found = [*_changes(side, policy, body, key), *found_alone(side, policy)]
    says = body["handoff_id"], body["attempt"], body["schema_version"], body["traceparent"]
    return OpenedSeal(*says, Comparison.of(found))


def _changes(side: Capture, policy: BoundaryPolicy, body: dict[str, Any], key: SealKey) -> Found:
    if side.form.faults:
        return
    places = sealed_places(side, policy)
    sealed = Digests(body[_PATHS], body[_REST])
    arrived = places.digests(key.own_of({name: body[name] for name in body if name not in Digests._fields}))
    for pattern, traced in places.traced.items():
        before, after = sealed.paths.get(pattern), arrived.paths[pattern]
        if traced.absent:
            for place in traced.absent[:PLACES_MAX]:
                path = policy.shown(place)
                yield finding_of("value_missing", path, f"{path} must be there, and is not"), pattern
        elif before is None:
            path = dotted((pattern,))
            yield finding_of("value_added", path, f"{path} must not be there: it was not sealed"), pattern
        elif after is None or not is_same(before, after):
            yield _changed(dotted((pattern,)), [*traced.found.values()]), pattern
    if not is_same(sealed.rest, arrived.rest):
        yield finding_of("rest_changed", "$", "what no exact path names must be as it was sealed"), REST


def _changed(path: str, found: list[Tree]) -> Finding:
    now = in_words(found[0]) if len(found) == 1 else ""
    emptied = f", and is {now}" if now == "null" or now.startswith("an empty") else ""
    return finding_of("value_changed", path, f"{path} must have the value that was sealed{emptied}")


def _read(text: str) -> dict[str, Any] | None:
    """Return the fields of a seal; None when a text is none that this version can have made."""
    if not isinstance(text, str) or len(text) > SEAL_CHARACTERS_MAX:
        return None
    try:
        body = orjson.loads(text)
    except ValueError:
        return None
    if not isinstance(body, dict) or body.keys() != _FIELDS.keys() or body[_SEAL] != _VERSION:
        return None
    is_right = all(type(body[name]) in kinds for name, kinds in _FIELDS.items())
    return body if is_right and all(type(digest) in (str, type(None)) for digest in body[_PATHS].values()) else None


def _untrusted(rule: str) -> OpenedSeal:
    return OpenedSeal("", 0, "", "", Comparison.of([_invalid(rule)]))


def _invalid(rule: str) -> tuple[Finding, str]:
    return finding_of("seal_invalid", _SEAL, f"the seal {rule}", stage=Stage.DESERIALIZE), REST


def _is_traceparent(text: object) -> bool:
    return isinstance(text, str) and _TRACEPARENT.fullmatch(text) is not None


def _is_time(number: object) -> bool:
    return type(number) in (int, float) and math.isfinite(number)  # type: ignore[arg-type]
