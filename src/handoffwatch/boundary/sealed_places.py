"""What of a state a seal speaks of: the places of each path that a policy names, and the rest."""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

import orjson

from handoffwatch.boundary.comparison import Capture
from handoffwatch.boundary.policy import BoundaryPolicy
from handoffwatch.values.canonical_tree import BYTES, Form, Tree, json_of, kinds_in
from handoffwatch.values.difference import Traced, trace
from handoffwatch.values.paths import Rests, is_reached, rests_below


class Digests(NamedTuple):
    """Keyed digests of a state.

    Attributes:
        paths: By exact or transformed path; None where nothing is.
        rest: Of what no such path names.
    """

    paths: dict[str, str | None]
    rest: str


class SealedPlaces(NamedTuple):
    """A state, cut along the paths of a policy.

    Attributes:
        traced: Where each exact or transformed path leads, in the order of the policy.
        rest: The tree without those places.
    """

    traced: dict[str, Traced]
    rest: Tree

    def digests(self, key: bytes) -> Digests:
        """Return the keyed digests of what stands there."""
        paths = {
            pattern: None
            if traced.absent and not traced.found
            else _digest(key, pattern, [[list(place), value] for place, value in traced.found.items()])
            for pattern, traced in self.traced.items()
        }
        return Digests(paths, _digest(key, "", self.rest))


def sealed_places(side: Capture, policy: BoundaryPolicy) -> SealedPlaces:
    """Return what of a captured state a seal under a policy speaks of. It must have a canonical form."""
    whole = side.form.tree
    patterns = (*policy.exact.patterns, *policy.transforms)
    return SealedPlaces({pattern: trace(whole, pattern) for pattern in patterns}, _without(whole, policy.named_places))


def policy_digest(policy: BoundaryPolicy) -> str:
    """Return a digest of what decides how a state is cut and read: equal for policies that read it alike."""
    named = policy.exact_paths, policy.transforms, policy.ignore_paths, policy.sets, policy.times, policy.non_finite
    return hashlib.sha256(orjson.dumps([sorted(set(paths)) for paths in named])).hexdigest()


def _digest(key: bytes, what: str, tree: Tree) -> str:
    text = b"\n".join((orjson.dumps(what), json_of(tree), orjson.dumps(kinds_in(tree))))
    return hmac.digest(key, text, hashlib.sha256).hex()


def _without(tree: Tree, rests: Rests) -> Tree:
    """Return a tree without the places that paths lead to. It is at most 64 levels deep, as every canonical form."""
    if not rests:
        return tree
    if type(tree) is Form and tree.kind != BYTES:
        return Form(tree.kind, _without(tree.value, rests))
    if type(tree) is dict:
        below = ((key, child, rests_below(rests, key)) for key, child in tree.items())
        return {key: _without(child, left) for key, child, left in below if not is_reached(left)}
    if type(tree) is list:
        parts = ((child, rests_below(rests, index)) for index, child in enumerate(tree))
        return [_without(child, left) for child, left in parts if not is_reached(left)]
    return tree
