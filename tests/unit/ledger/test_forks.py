"""Forks and transactions are kept apart."""

from __future__ import annotations

import threading

from handoffwatch.ledger.forks import ForkGate


def test_fork_waits_when_a_transaction_is_going_on() -> None:
    """It goes ahead when the last transaction has ended, and no new one begins meanwhile."""
    gate = ForkGate(wait_s_max=60)
    order: list[str] = []
    inside, leave = threading.Event(), threading.Event()

    def old() -> None:
        with gate.transaction():
            inside.set()
            leave.wait(60)
            order.append("old transaction")

    def new() -> None:
        with gate.transaction():
            order.append("new transaction")

    def fork() -> None:
        gate.before_fork()
        order.append("fork")
        gate.after_fork_in_parent()

    first, forking, second = (threading.Thread(target=body) for body in (old, fork, new))
    first.start()
    assert inside.wait(60)
    forking.start()
    while not gate._forks:
        assert forking.is_alive()
    second.start()
    leave.set()
    for thread in (first, forking, second):
        thread.join(60)
    assert order == ["old transaction", "fork", "new transaction"]


def test_fork_goes_ahead_when_a_transaction_does_not_end() -> None:
    """The wait is bounded."""
    gate = ForkGate(wait_s_max=0.001)
    with gate.transaction():
        gate.before_fork()
        gate.after_fork_in_parent()
    with gate.transaction():
        pass


def test_transactions_go_on_in_the_child_when_other_threads_were_inside() -> None:
    """The threads that were inside are not there, and the fork is over."""
    gate = ForkGate(wait_s_max=0.001)
    with gate.transaction():
        gate.before_fork()
    gate.after_fork_in_child()
    gate.before_fork()
    gate.after_fork_in_parent()
    with gate.transaction():
        pass


def test_transactions_are_many_at_a_time_when_nothing_forks() -> None:
    """The gate is no lock between writers."""
    gate = ForkGate(wait_s_max=0)
    met = threading.Barrier(2)

    def enter() -> None:
        with gate.transaction():
            met.wait(60)

    other = threading.Thread(target=enter)
    other.start()
    enter()
    other.join(60)
