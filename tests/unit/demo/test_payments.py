"""The payments service over real HTTP, fault by fault."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from handoffwatch.demo.books import POST_REFUND, Deed, Refund, read_books
from handoffwatch.demo.child import Child
from handoffwatch.demo.faults import FaultPlan, PaymentFault, RunPlan

SEED = 4


@dataclass(frozen=True)
class Service:
    """A running service, its plan, and clients with each kind of credentials."""

    agents: httpx.Client
    verifier: httpx.Client
    database: Path

    def order_with(self, fault: PaymentFault | None, *, nth: int = 0) -> RunPlan:
        """Return the nth run whose order meets the fault."""
        plan = FaultPlan(SEED)
        return [run for run in map(plan.run, range(200)) if run.story.payment is fault][nth]

    def post(self, run: RunPlan, *, limit_s: float = 10.0, key: str | None = None) -> httpx.Response:
        """Ask for the refund of a run."""
        return self.agents.post(
            "/refunds",
            json={"order_id": run.order_id, "amount_cents": run.amount_cents},
            headers={"Idempotency-Key": key or f"refund-{run.order_id}"},
            timeout=limit_s,
        )

    def books(self, run: RunPlan) -> tuple[list[Refund], list[Deed]]:
        """Return what is stored about a run's order."""
        refunds, deeds = read_books(self.database)
        return [r for r in refunds if r.order_id == run.order_id], [d for d in deeds if d.order_id == run.order_id]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run the service as its own process."""
    folder = tmp_path_factory.mktemp("payments")
    database = folder / "payments.db"
    command = [sys.executable, "-m", "handoffwatch.demo.payments", "--seed", str(SEED), "--database", str(database)]
    child = Child("payments", command, log=folder / "payments.log")
    try:
        with _client(child.url, "agents") as agents, _client(child.url, "verifier") as verifier:
            yield Service(agents, verifier, database)
    finally:
        child.stop()


def _client(url: str, caller: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {caller}"}, trust_env=False)


def test_refund_is_stored_and_told_when_the_order_has_no_fault(service: Service) -> None:
    """An ordinary refund is answered with its receipt and can be read by id and by order."""
    run = service.order_with(None)
    receipt = service.post(run).json()
    assert receipt == {
        "status": "succeeded",
        "refund_id": receipt["refund_id"],
        "order_id": run.order_id,
        "amount_cents": run.amount_cents,
    }
    assert service.verifier.get(f"/refunds/{receipt['refund_id']}").json() == receipt
    assert service.verifier.get("/refunds", params={"order_id": run.order_id}).json() == [receipt]


def test_refund_is_made_once_when_the_idempotency_key_comes_again(service: Service) -> None:
    """The same key gets the same refund; another key makes another one."""
    run = service.order_with(None, nth=1)
    first, again, other = service.post(run).json(), service.post(run).json(), service.post(run, key="other").json()
    assert first == again
    assert other["refund_id"] != first["refund_id"]
    assert len(service.books(run)[0]) == 2


def test_refund_is_told_and_not_written_when_the_success_is_silent(service: Service) -> None:
    """The receipt says succeeded and names a refund that nobody can find."""
    run = service.order_with(PaymentFault.SILENT_SUCCESS)
    receipt = service.post(run).json()
    assert receipt["status"] == "succeeded"
    assert service.verifier.get(f"/refunds/{receipt['refund_id']}").status_code == 404
    assert service.verifier.get("/refunds", params={"order_id": run.order_id}).json() == []
    assert service.books(run)[0] == []


def test_refund_is_refused_and_look_ups_work_when_credentials_are_lost(service: Service) -> None:
    """The credentials are lost between the look-ups and the refund."""
    run = service.order_with(PaymentFault.CREDENTIALS_LOST)
    assert service.agents.get(f"/orders/{run.order_id}").status_code == 200
    assert service.post(run).status_code == 401
    assert service.books(run)[0] == []


def test_everything_is_refused_to_agents_when_they_are_locked_out(service: Service) -> None:
    """Agents get 401 everywhere for that order; the verifier has its own credentials."""
    run = service.order_with(PaymentFault.LOCKED_OUT)
    assert service.agents.get(f"/orders/{run.order_id}").status_code == 401
    assert service.agents.get("/policies", params={"order_id": run.order_id}).status_code == 401
    assert service.post(run).status_code == 401
    assert service.verifier.get("/refunds", params={"order_id": run.order_id}).json() == []


def test_refund_is_throttled_once_when_the_plan_says_so(service: Service) -> None:
    """First 429 with Retry-After and no effect, then the refund."""
    run = service.order_with(PaymentFault.THROTTLED)
    refusal = service.post(run)
    assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "1")
    assert service.books(run)[0] == []
    assert service.post(run).json()["status"] == "succeeded"


def test_refund_exists_when_its_answer_times_out_after_the_commit(service: Service) -> None:
    """The caller hears nothing, and the refund is there."""
    run = service.order_with(PaymentFault.TIMEOUT_AFTER_COMMIT)
    with pytest.raises(httpx.ReadTimeout):
        service.post(run, limit_s=0.5)
    refunds, deeds = service.books(run)
    assert [refund.status for refund in refunds] == ["succeeded"]
    assert deeds == [Deed("agents", POST_REFUND, run.order_id, "held", "succeeded")]


@pytest.mark.parametrize(
    ("fault", "end"),
    [(PaymentFault.PENDING_THEN_FAILED, "failed"), (PaymentFault.PENDING_THEN_LANDED, "succeeded")],
)
def test_refund_stays_pending_and_turns_when_the_plan_says_so(service: Service, fault: PaymentFault, end: str) -> None:
    """The receipt says pending; a later look finds the end."""
    run = service.order_with(fault)
    receipt = service.post(run).json()
    assert receipt["status"] == "pending"
    deadline_s = time.monotonic() + 10.0
    while (status := service.verifier.get(f"/refunds/{receipt['refund_id']}").json()["status"]) == "pending":
        assert time.monotonic() < deadline_s
    assert status == end


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"order_id": "1", "amount_cents": 5},
        {"order_id": 40_000, "amount_cents": 5},
        {"order_id": "40000", "amount_cents": "5"},
        {"order_id": "40000", "amount_cents": True},
        {"order_id": "40000", "amount_cents": 0},
    ],
)
def test_refund_is_rejected_when_its_body_is_wrong(service: Service, body: dict[str, object]) -> None:
    """An unknown order, or an amount that is no positive whole number, is 422."""
    assert service.agents.post("/refunds", json=body).status_code == 422


def test_request_is_refused_when_it_carries_no_credentials(service: Service) -> None:
    """Nobody reads or writes without credentials."""
    run = service.order_with(None)
    for path in (f"/orders/{run.order_id}", "/policies", "/refunds", "/refunds/re_1"):
        assert service.agents.get(path, headers={"Authorization": ""}).status_code == 401


def test_policies_are_an_empty_list_when_none_restricts_the_order(service: Service) -> None:
    """No restriction is an answer: 200 and an empty list."""
    runs = [FaultPlan(SEED).run(index) for index in range(20)]
    free = next(run for run in runs if run.policy_is_empty and run.story.payment is not PaymentFault.LOCKED_OUT)
    response = service.agents.get("/policies", params={"order_id": free.order_id})
    assert (response.status_code, response.json()) == (200, [])
