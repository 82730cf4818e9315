"""Contracts without a class: a plain function, or a JSON Schema, over the payload as a dict."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from handoffwatch.decision import Finding
from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.context import HandoffContext
from handoffwatch.handoffs.contract import LooseContract
from handoffwatch.handoffs.options import Options
from handoffwatch.handoffs.own_rules import FINDINGS_MAX, own_reason, rule_of_function
from handoffwatch.handoffs.structure import finding
from handoffwatch.reasons import Reason
from handoffwatch.values.json_text import kind_of
from handoffwatch.values.paths import dotted

_EMPTY: Final = frozenset({"minLength", "minItems", "minProperties"})


def contract_from_function(
    function: Callable[..., object], *, code: str, reason: str, path: str = "payload", **keywords: Any
) -> LooseContract:
    """Return a contract whose one rule is a plain function over the payload.

    Args:
        function: Called with the payload as a dict; says True, or False or the paths that break the rule. It may take
            `handoff` and `context` beside it.
        code: The reason code of its findings.
        reason: One line that says what the receiver needs.
        path: Where a function that only says no found it.
        keywords: The class keywords of `Contract`, such as `version="2"`.

    Raises:
        RegistrationError: The code, the reason or a keyword breaks its rule, or the function cannot be called so.
    """
    made = own_reason(code, reason)
    name = getattr(function, "__name__", "function")
    return LooseContract(name, Options().changed(keywords, contract=name), (rule_of_function(function, made, path),))


def contract_from_json_schema(schema: Mapping[str, Any], **keywords: Any) -> LooseContract:
    """Return a contract that judges the payload by a JSON Schema (extra `jsonschema`).

    Args:
        schema: The schema; its `$schema` says which draft, else the newest.
        keywords: The class keywords of `Contract`, such as `version="2"`.

    Raises:
        RegistrationError: The schema is none, a keyword breaks its rule, or the extra is not installed.
    """
    try:
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.validators import validator_for
        from jsonschema_specifications import REGISTRY
    except ImportError:
        raise RegistrationError(
            "contract from a JSON Schema: needs the package jsonschema", hint='pip install "handoffwatch[jsonschema]"'
        ) from None
    if not isinstance(schema, Mapping):
        raise RegistrationError(
            f"contract from a JSON Schema: must be an object, got {type(schema).__name__}",
            hint="pass the schema as a dict",
        )
    kept = deepcopy(dict(schema))
    draft = kept.get("$schema", "")
    judge: Any = Draft202012Validator
    if draft != "":
        judge = validator_for(kept, default=None) if isinstance(draft, str) else None  # type: ignore[arg-type]
    if judge is None:
        raise RegistrationError(
            "contract from a JSON Schema: $schema: must name a draft that is known",
            hint="leave $schema out for the newest",
        )
    try:
        judge.check_schema(kept)
    except SchemaError as error:
        raise RegistrationError(
            f"contract from a JSON Schema: {dotted(error.path)}: is no valid schema", hint="see json-schema.org"
        ) from None
    required = kept.get("required", ())
    options = Options().changed(keywords, contract="JSON Schema")
    named = frozenset(required) if isinstance(required, list) else frozenset[str]()
    rules = (_SchemaRule(judge(kept, registry=REGISTRY)),)
    return LooseContract("JSON Schema", options, rules, named, kept)


class _SchemaRule:
    """The rule of a whole schema: each error becomes the finding of its kind; no message of the library is quoted."""

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """None of its own: a schema yields the product's codes."""
        return ()

    def judge(self, found: list[Finding], payload: Any, *, handoff: Mapping[str, Any], context: HandoffContext) -> None:
        """Add to `found` where the payload breaks the schema."""
        try:
            errors = list(_first(self._validator.iter_errors(payload)))
        except Exception as fault:  # noqa: BLE001 - a schema that cannot be applied proves nothing: it fails closed
            sentence = f"the schema raised {kind_of(fault)}, so nothing was proven"
            found.append(finding("check_failed", "payload", sentence))
            return
        named = {item.path for item in found}
        places = {(code, path): error.validator for error in errors for code, path in _places(error)}
        for (code, path), validator in itertools.islice(places.items(), FINDINGS_MAX):
            if path not in named:
                found.append(finding(code, path, f"{path} must satisfy the schema ({validator})"))


def _first(errors: Iterator[Any]) -> Iterator[Any]:
    for _, error in zip(range(FINDINGS_MAX), errors, strict=False):
        yield error


def _places(error: Any) -> Iterator[tuple[str, str]]:
    path = ("payload", *error.absolute_path)
    if error.validator == "required" and isinstance(error.validator_value, list):
        for name in error.validator_value:
            if isinstance(error.instance, Mapping) and name not in error.instance:
                yield "missing_field", dotted((*path, name))
    elif error.validator == "required":
        yield "missing_field", dotted(path)
    elif error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
        for name in error.instance:
            if name not in known and not any(re.search(pattern, name) for pattern in patterns):
                yield "unknown_field", dotted((*path, name))
    elif error.validator == "type":
        yield "null_field" if error.instance is None else "type_mismatch", dotted(path)
    elif error.validator in _EMPTY and not error.instance:
        yield "empty_field", dotted(path)
    else:
        yield "bad_format", dotted(path)
