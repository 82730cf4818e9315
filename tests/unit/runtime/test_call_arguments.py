"""The arguments of a call: one name for each, one key for one call, and nothing secret where it is kept."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from handoffwatch import NeedsHuman, Settings, ToolRejected, Watch
from handoffwatch.runtime.call_arguments import CallArguments, Parameters
from support.telemetry import counted
from support.watched import Watched, new_watched
from unit.runtime.test_tool_runs import Status, watched_with_ledger


def keys_of(watched: Watched, *spellings: Any) -> list[str]:
    """Return the idempotency keys of calls of one function, each spelt in its own way."""
    keys: list[str] = []

    @watched.watch.tool("send", safety="idempotent")
    def send(a: int, b: int = 2, *rest: int, **more: int) -> None:
        call = watched.watch.current_call()
        assert call is not None
        keys.append(call.idempotency_key)

    with watched.watch.run("refunds") as run:
        for spelling in spellings:
            spelling(send, run)
    return keys


def test_one_call_has_one_key_however_it_is_spelt() -> None:
    """By position, by name, with a default said, told in steps as a mapping or as the model's JSON text."""
    keys = keys_of(
        new_watched(),
        lambda send, run: send(1),
        lambda send, run: send(a=1),
        lambda send, run: send(1, 2),
        lambda send, run: send(b=2, a=1),
        lambda send, run: (run.call("send", "c-1", {"a": 1}), send(1)),
        lambda send, run: (run.call("send", "c-1", '{"a": 1}'), send(a=1)),
    )
    assert len(keys) == 6
    assert len(set(keys)) == 1


def test_calls_that_differ_have_keys_that_differ() -> None:
    """Also where only the place of a value differs, or its type."""
    spellings = [
        lambda send, run: send(1, 3),
        lambda send, run: send(3, 1),
        lambda send, run: send(1, 3, 4),
        lambda send, run: send(1, 3, c=4),
        lambda send, run: send("1", 3),
        lambda send, run: send(True, 3),
        lambda send, run: send(1.0, 3),
    ]
    assert len(set(keys_of(new_watched(), *spellings))) == len(spellings)


def test_call_told_in_steps_has_the_key_of_the_decorated_one() -> None:
    """A framework that makes the request itself offers the same key."""
    watched = new_watched()
    keys: list[str] = []

    @watched.watch.tool("send", safety="idempotent")
    def send(a: int) -> None:
        keys.append(watched.watch.current_call().idempotency_key)  # type: ignore[union-attr]

    with watched.watch.run("refunds") as run:
        send(1)
        for told in ({"a": 1}, '{"a": 1}', ' {"a":1}'):
            call = run.call("send", "c-1", told)
            keys.append(call.idempotency_key)
            call.attempt()
            call.returned(None)
    assert len(set(keys)) == 1


@pytest.mark.parametrize("told", ["", "not json", "[1]", "\ud800", "[" * 500, {1: 2}, {"a": float("nan")}, [1], b"x"])
def test_odd_arguments_break_nothing(told: Any) -> None:
    """A primitive never raises."""
    watched = new_watched()
    with watched.watch.run("refunds") as run:
        call = run.call("find", "c-1", told)
        assert len(call.idempotency_key) == 32
        call.returned([])


def test_function_that_does_not_tell_its_parameters_is_called_all_the_same() -> None:
    """Its positional arguments have their places as names."""
    assert CallArguments((1,), {"b": 2}, Parameters(dict.fromkeys)).named == {"0": 1, "b": 2}
    assert CallArguments((1, 2, 3), {}, Parameters(lambda a: a)).named == {"0": 1, "1": 2, "2": 3}


def test_rejected_arguments_are_known_again_however_they_are_spelt() -> None:
    """Also of a method, of its own object only."""
    watched = new_watched()
    sent: list[tuple[str, int]] = []

    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        @watched.watch.tool("order", safety="safe")
        def order(self, number: int) -> None:
            sent.append((self.name, number))
            raise Status(422)

    first, second = Shop("first"), Shop("second")
    with watched.watch.run("refunds"):
        for call in (
            lambda: first.order(1), lambda: first.order(number=1), lambda: second.order(1), lambda: second.order(1),
        ):  # fmt: skip
            with pytest.raises(ToolRejected):
                call()
    assert sent == [("first", 1), ("second", 1)]


def test_tool_that_changes_its_arguments_is_refused_the_second_time() -> None:
    """They are remembered as they were, and stand so in a case."""
    watched = watched_with_ledger()
    sent: list[int] = []

    @watched.watch.tool("order", safety="safe")
    def order(items: list[str]) -> None:
        sent.append(len(items))
        items.clear()
        raise Status(422)

    @watched.watch.tool("pay", safety="unsafe")
    def pay(items: list[str]) -> None:
        items.clear()
        raise TimeoutError

    with watched.watch.run("refunds"):
        for _ in range(2):
            with pytest.raises(ToolRejected):
                order(["a", "b"])
        with pytest.raises(NeedsHuman):
            pay(["a", "b"])
    assert sent == [2]
    (case,) = watched.watch.ledger.cases()
    assert watched.watch.ledger.case(case.case_id).record == {"arguments": {"items": ["a", "b"]}}  # type: ignore[union-attr]


def test_secret_by_position_stands_in_no_case() -> None:
    """It is bound to its name; and the key, by which a small secret could be tried, is left out beside it."""
    watched = watched_with_ledger()
    keys: list[str] = []

    @watched.watch.tool("unlock", safety="unsafe")
    def unlock(account: str, pin: str, password: str) -> None:
        keys.append(watched.watch.current_call().idempotency_key)  # type: ignore[union-attr]
        raise TimeoutError

    with watched.watch.run("refunds"), pytest.raises(NeedsHuman):
        unlock("4417", "1234", "small")
    (case,) = watched.watch.ledger.cases()
    stored = watched.watch.ledger.case(case.case_id)
    assert stored is not None
    assert stored.record["arguments"]["account"] == "4417"
    assert stored.record["arguments"]["password"] == "[redacted]"
    assert keys[0] not in str((case.facts, stored.record))
    assert case.facts["idempotency_key"] == "[left out: the secret among the arguments could be tried by it]"


def test_secret_as_the_id_of_a_call_stands_nowhere() -> None:
    """On no span and in no case; and two such ids are two calls, not one that is repeated."""
    watched = watched_with_ledger()
    secrets = ["sk-live-9f8e7d6c5b4a39281706f5e4", "sk-live-00008d6c5b4a39281706f5e4"]

    @watched.watch.tool("pay", safety="unsafe")
    def pay(amount: int) -> None:
        raise TimeoutError

    with watched.watch.run("refunds") as run:
        for secret in secrets:
            run.call("pay", secret, {"amount": 1})
            with pytest.raises(NeedsHuman):
                pay(1)
    told = str([(case.facts, watched.watch.ledger.case(case.case_id)) for case in watched.watch.ledger.cases()])
    told += str([dict(span.attributes or {}) for span in watched.spans.ended])
    assert not [secret for secret in secrets if secret in told]


# two layers


def test_decorated_function_joins_the_call_of_its_own_arguments() -> None:
    """With parallel hooks the ids stay with their calls, in whatever order the functions run."""
    watched = watched_with_ledger()

    @watched.watch.tool("pay", safety="unsafe")
    def pay(order: str, amount: int = 1) -> None:
        raise TimeoutError

    with watched.watch.run("refunds") as run:
        for number in range(3):
            run.call("pay", f"c-{number}", {"order": f"o-{number}"})
        for number in (2, 0, 1):
            with pytest.raises(NeedsHuman):
                pay(f"o-{number}")
    found = {
        case.facts["call_id"]: watched.watch.ledger.case(case.case_id).record["arguments"]["order"]  # type: ignore[union-attr]
        for case in watched.watch.ledger.cases()
    }
    assert found == {"c-0": "o-0", "c-1": "o-1", "c-2": "o-2"}
    assert counted(watched.watch.registry, "tool_calls_total")['tool_calls_total{tool="pay"}'] == 3


def test_decorated_function_joins_a_call_whose_arguments_were_told_otherwise() -> None:
    """A framework turns the model's words into values: it is one call, and what was sent is what counts."""
    watched = watched_with_ledger()

    @watched.watch.tool("pay", safety="unsafe")
    def pay(order: str, amount: int) -> None:
        raise TimeoutError

    with watched.watch.run("refunds") as run:
        run.call("pay", "c-1", {"order": "o-1", "amount": "5"})
        with pytest.raises(NeedsHuman):
            pay("o-1", 5)
    (case,) = watched.watch.ledger.cases()
    stored = watched.watch.ledger.case(case.case_id)
    assert case.facts["call_id"] == "c-1"
    assert stored is not None
    assert stored.record == {"arguments": {"order": "o-1", "amount": 5}}
    assert counted(watched.watch.registry, "tool_calls_total")['tool_calls_total{tool="pay"}'] == 1


def test_each_outer_call_is_joined_once_from_many_threads() -> None:
    """Four threads at once, two hundred calls: each of them is counted once."""
    watch = Watch(settings=Settings())
    watch.workflow("refunds")

    @watch.tool("find", safety="safe")
    def find(number: int) -> int:
        return number

    with watch.run("refunds") as run:

        def work(first: int) -> None:
            for number in range(first, 200, 4):
                call = run.call("find", f"c-{number}", {"number": number})
                assert run.bound(find)(number) == number
                call.returned(number)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (run.tools.succeeded, run.tools.failed) == (200, 0)
    assert counted(watch.registry, "tool_calls_total")['tool_calls_total{tool="find"}'] == 200


def test_same_call_in_another_run_is_another_call() -> None:
    """Two layers of one function are one call in one run only."""
    watched = new_watched()
    inner_run = watched.watch.run("refunds")

    @watched.watch.tool("find", safety="safe")
    def find(number: int, *, deep: bool = False) -> int:
        if watched.watch.current() is not inner_run:
            with inner_run:
                return find(number)
        return number

    with watched.watch.run("refunds") as run:
        assert find(1) == 1
    assert (run.tools.succeeded, inner_run.tools.succeeded) == (1, 1)
