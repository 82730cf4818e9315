"""The Watch: what a program registers, and where its runs come from."""

from __future__ import annotations

import contextlib
import functools
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry

from handoffwatch.clock import Clock
from handoffwatch.errors import LedgerUnavailable, RegistrationError
from handoffwatch.events import InternalErrorCaught
from handoffwatch.runtime.registrations import Registrations, Workflow, member, named
from handoffwatch.runtime.tool_functions import F, refuse_async_rule, watched
from handoffwatch.values.names import is_id
from handoffwatch.vocabulary import (
    OTHER,
    Action,
    Approval,
    Component,
    Criticality,
    HoldThen,
    Keep,
    Mode,
    Reaction,
    RiskSignal,
    Safety,
    ToolsNeed,
    WhenFailed,
)

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider
    from pydantic import BaseModel

    from handoffwatch.boundary.artifacts import OpenArtifact
    from handoffwatch.boundary.migrations import Migrations
    from handoffwatch.boundary.policy import BoundaryPolicy
    from handoffwatch.boundary.seal_keys import SealKey
    from handoffwatch.handoffs.contract import AnyContract
    from handoffwatch.handoffs.critique import Critic, CriticPolicy
    from handoffwatch.ledger.ledger import Ledger
    from handoffwatch.outcomes.verification import Verifier
    from handoffwatch.runtime.call import Call
    from handoffwatch.runtime.metrics_server import MetricsServer
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.selftest import SelfTester
    from handoffwatch.runtime.settings import Settings
    from handoffwatch.settlement.settler import Settler
    from handoffwatch.tools.success import SuccessRule
    from handoffwatch.tools.tool import Tool


ENDED_RUNS_MAX: Final = 10_000
"""Runs that have ended and whose workflow is remembered, for evals that come later."""


class Watch:
    """Everything one program watches: its registrations, its metrics, its spans, its ledger.

    Register at start, from one thread; run from any. Two Watches in one process do not meet.

    Args:
        config: Path of `handoffwatch.yaml`; None takes HANDOFFWATCH_CONFIG, or the defaults. The environment
            (`HANDOFFWATCH_TOOLS__ATTEMPTS_MAX`) overrides the file.
        settings: Settings made in code; then neither file nor environment is read.
        clock: Time and chance; the real ones unless said.
        registry: Where the metrics are exposed; a registry of its own unless said.
        tracer_provider: The program's OpenTelemetry provider; None takes the global one, or one of our own when
            `recording.otlp_endpoint` is set.

    Raises:
        ConfigError: The file or the environment is wrong.

    Example:
        watch = Watch()
        watch.workflow("refunds", tools="required")
        watch.route("planner->executor", contract=Plan)
        with watch.run("refunds") as run:
            run.transfer("planner", "executor", handoff, receiver=execute)
    """

    def __init__(
        self,
        config: str | Path | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        from handoffwatch.handoffs.limits import TaskLimits
        from handoffwatch.handoffs.routes import Routes
        from handoffwatch.handoffs.watchdog import Watchdog
        from handoffwatch.recording.recorder import Recorder
        from handoffwatch.runtime.boundaries import Boundaries
        from handoffwatch.runtime.evidence import EvidenceKeeper
        from handoffwatch.runtime.settings import Settings
        from handoffwatch.runtime.tasks import Tasks

        self.settings = settings if settings is not None else Settings.load(config)
        self.clock = clock or Clock()
        self.registry = registry or CollectorRegistry()
        self.recorder = Recorder(
            registry=self.registry,
            tracer_provider=tracer_provider,
            clock=self.clock,
            settings=self.settings.recording,
        )
        self.registrations = Registrations()
        handoffs = self.settings.handoffs
        self.watchdog = Watchdog(
            Routes(),
            clock=self.clock,
            payload_bytes_max=handoffs.payload_bytes_max,
            limits=TaskLimits(handoffs.hops_max, handoffs.repeats_max),
        )
        self.tasks = Tasks()
        self.boundaries = Boundaries(self.settings.handoff, self.clock, failed=self._recording_failed)
        self.evidence = EvidenceKeeper(
            handoffs.redact,
            redact_of=self.boundaries.hidden_on,
            bytes_max=handoffs.evidence_bytes_max,
            payload_bytes_max=handoffs.payload_bytes_max,
            keep_sample=handoffs.keep_sample,
            review_sample=handoffs.review_sample,
            clock=self.clock,
        )
        self.current_run: ContextVar[Run | None] = ContextVar("handoffwatch_run", default=None)
        self.calls: ContextVar[Call | None] = ContextVar("handoffwatch_call", default=None)
        self._runs: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()
        self._ended: dict[str, str] = {}
        self._seen_versions: set[tuple[str, str]] = set()
        self._routes_checked = False
        self._ledger: Ledger | None = None
        self._selftest: SelfTester | None = None
        self._lock = threading.RLock()

    # registration

    def workflow(
        self, name: str, *, tools: str = "required", operations: Iterable[str] = (), guard: str = "enforce"
    ) -> None:
        """Register a workflow.

        Args:
            name: The label.
            tools: `required`: an answer needs one successful tool call; `if_called`: only if tools were called;
                `none`: it needs none.
            operations: Names of the operations that its runs may claim.
            guard: `enforce`, or `shadow` to only count what the guard would have refused.

        Raises:
            RegistrationError: A name is taken or no label, or a value is outside its set.
        """
        where = named("workflow", name)
        if isinstance(operations, str):
            raise RegistrationError(
                f"{where}: operations: must be a list of names, got text", hint=f'operations=["{operations}"]'
            )
        workflow = Workflow(
            name,
            member(where, "tools", tools, ToolsNeed),
            frozenset(operations),
            member(where, "guard", guard, Mode),
        )
        self.registrations.add_workflow(workflow)
        self.recorder.register_workflow(name, tools=workflow.tools)
        self._write_registrations()

    def route(
        self,
        name: str,
        *,
        contract: AnyContract | Sequence[AnyContract] = (),
        criticality: str = "routine",
        mode: str = "enforce",
        reactions: Mapping[str, str] | None = None,
        unchecked: bool = False,
        durable: bool | None = None,
        keep: str = "blocked",
        when_blocked: str | None = None,
        fallback: str | None = None,
        failure: str | None = None,
        approval: str = "none",
        hold_s: float = 900.0,
        hold_then: str = "stop",
        critic: Critic | None = None,
        critique: CriticPolicy | None = None,
        boundary: BoundaryPolicy | None = None,
        migrations: Migrations | None = None,
        open_artifact: OpenArtifact | None = None,
    ) -> None:
        """Register a route between two agents, with the contract that its receiver owns.

        Args:
            name: `source->target`.
            contract: One contract, or one for each schema version.
            criticality: `critical` or `routine`.
            mode: `enforce`, or `shadow` to only count what would have been blocked; the settings override it.
            reactions: By reason code: `block`, `hold`, `flag` or `warn`, where this route reacts otherwise than the
                code or the contract says; the settings override them.
            unchecked: Whether everything passes without a contract, and counts as bypassed.
            durable: Whether limits and duplicates hold over processes and restarts; None: on critical routes, and where
                a person must approve, so that an approval is for one delivery.
            keep: Which handoffs leave evidence: `blocked`, `sampled` (some others too) or `all`.
            when_blocked: What follows a block that is not repaired: `stop`, `hold` (for a person) or `divert`; None
                diverts where there is a fallback, and stops elsewhere.
            fallback: The agent to which a block is diverted.
            failure: The agent that takes valid handoffs of status failed, which are never repaired.
            approval: `required` holds what the contract allows until a person has decided; `none` does not.
            hold_s: How long a held handoff waits for a person; 0 does not wait.
            hold_then: What follows when nobody has decided in time: `stop`, `deliver` or `divert`.
            critic: Looks a second time when there is a risk. It may warn or flag, and never blocks.
            critique: When the critic is asked, and what it may cost; None takes the defaults.
            boundary: What must survive where a handoff crosses a boundary; None takes the settings `handoff`.
            migrations: Bring a state that crossed to the schema version of the boundary's policy.
            open_artifact: Opens an artefact that the policy names, on the far side: called with id and revision.

        The settings override mode, reactions, durable, keep, approval, hold_s and hold_then.

        Raises:
            RegistrationError: The route is registered, its names collide with others, two contracts have one version,
                no contract is given where one is needed, or a value is outside its set.
        """
        from handoffwatch.handoffs.conduct import Conduct
        from handoffwatch.handoffs.critique import CriticPolicy
        from handoffwatch.handoffs.settings import RouteSettings

        where = named("route", name)
        settings = self.settings.handoffs.routes.get(name, RouteSettings())
        wanted = {code: member(where, f"reactions: {code}", each, Reaction) for code, each in (reactions or {}).items()}
        cost = member(where, "criticality", criticality, Criticality)
        asks = member(where, "approval", approval, Approval) is Approval.REQUIRED
        asks = asks if settings.approval is None else settings.approval
        is_durable = (asks or cost is Criticality.CRITICAL) if durable is None else durable
        then = "divert" if fallback is not None else "stop"
        conduct = Conduct(
            durable=not unchecked and (is_durable if settings.durable is None else settings.durable),
            keep=settings.keep or member(where, "keep", keep, Keep),
            when_blocked=member(where, "when_blocked", when_blocked or then, Action),
            fallback=fallback,
            failure=failure,
            approval=asks,
            hold_s=hold_s if settings.hold_s is None else settings.hold_s,
            hold_then=settings.hold_then or member(where, "hold_then", hold_then, HoldThen),
            critic=critic,
            critique=critique or (None if critic is None else CriticPolicy(signals=frozenset(RiskSignal))),
        )
        route = self.watchdog.routes.add(
            name,
            contracts=contract if isinstance(contract, Sequence) else (contract,),
            criticality=cost,
            conduct=conduct,
            mode=settings.mode or member(where, "mode", mode, Mode),
            reactions=wanted | settings.reactions,
            unchecked=unchecked,
        )
        self.recorder.register_route(
            route.name,
            route.source,
            route.target,
            versions=list(route.contracts),
            mode=route.mode,
            criticality=route.criticality,
            codes=route.codes,
            bypasses=route.bypasses,
        )
        known = self.boundaries.add(route.name, boundary, migrations=migrations, open_artifact=open_artifact)
        self.recorder.register_boundary(route.name, known.policy.patterns)
        self._write_registrations()

    def seal_keys(self, *keys: SealKey) -> None:
        """Register the keys of seals, which all processes share: the first makes them, all open them.

        For a rotation the receivers get the new key first, behind the old one.
        """
        self.boundaries.seal_keys = keys

    def operation(
        self,
        name: str,
        *,
        key: str,
        compare: Sequence[str] = (),
        criticality: str = "critical",
        receipt: type[BaseModel] | None = None,
        receipt_id: str | None = None,
        verifier: Verifier | None = None,
        read_back_window_s: float | None = None,
        polls_s: Sequence[float] | None = None,
        deadline_s: float | None = None,
        sample: float | None = None,
    ) -> None:
        """Register a kind of intended effect, such as a refund.

        Args:
            name: The label.
            key: The field that is the business key, in the tool's arguments and in the stored record.
            compare: Further fields that the stored record must have as intended.
            criticality: `critical` (money, access rights) or `routine` (verified by sample).
            receipt: The model of what the tool returns.
            receipt_id: The receipt's field that holds the record's id.
            verifier: Reads the stored effect back, such as `RecordVerifier`.
            read_back_window_s: How long absence proves nothing after a write; None takes the setting.
            polls_s: Seconds after the claim at which the effect is read, ascending; None takes the setting.
            deadline_s: When an open operation is overdue; None takes the setting.
            sample: The share of runs whose routine operations are verified; None takes the setting.

        Raises:
            RegistrationError: The name is taken, or a value breaks its rule.
        """
        from handoffwatch.outcomes.kind import OperationKind

        kind = OperationKind(
            name=name,
            key=key,
            compare=compare,
            criticality=member(named("operation", name), "criticality", criticality, Criticality),
            receipt=receipt,
            receipt_id=receipt_id,
            verifier=verifier,
            read_back_window_s=read_back_window_s,
            polls_s=None if polls_s is None else tuple(polls_s),
            deadline_s=deadline_s,
            sample=sample,
        )
        self.registrations.add_operation(kind)
        self.recorder.register_operation(name)
        self._write_registrations()

    def tool(
        self,
        name: str,
        *,
        safety: str,
        success: SuccessRule | None = None,
        operation: str | None = None,
        attempts_max: int | None = None,
        deadline_s: float | None = None,
        limit_s: float | None = None,
        when_failed: str = "raise",
        statuses: Mapping[int, str] | None = None,
        errors: Mapping[type[Exception], str] | None = None,
    ) -> Callable[[F], F]:
        """Register a tool; the result decorates the function that makes the call: plain, async, or a generator.

        A tool with an operation is registered when it decorates its function, whose parameters must fit the operation.

        The decorated function returns what the function returned. It raises `ToolDown`, `ToolRejected`,
        `ToolConfirmed` or `NeedsHuman` when the call ends without a result, with the fixed text for the model in
        `text`. Of a generator each piece is judged, and nothing is repeated after the first.

        Args:
            name: The label.
            safety: `safe`, `idempotent` or `unsafe`: what repeating a call may do. It has no default.
            success: The tool's own rule: True, False, or a failure class, also as text; anything else is an error of
                the rule, and the call failed.
            operation: The kind of operation that a call opens; its key and compared fields are arguments.
            attempts_max: The most wire attempts of a call; None takes the setting.
            deadline_s: The longest a call may take in all; None takes the setting.
            limit_s: The longest one wire attempt may take, of a generator its first piece alone: what comes after it
                has no limit. A plain function, and a generator up to its first piece, then runs in a thread of its own.
                Work that goes on after it is left running: for an unsafe tool nobody knows then whether it happens.
            statuses: By HTTP status the failure class that it has here: `retryable`, `fatal`, `rejected`, `ambiguous`.
            errors: By class of exception the failure class that it has here.
            when_failed: `raise`, or `text` to return the fixed text for the model instead.

        Raises:
            RegistrationError: The name is taken or no label, the operation is unknown, or a value is outside its set.
        """
        from handoffwatch.tools.overrides import Overrides
        from handoffwatch.tools.retry import RetryPolicy
        from handoffwatch.tools.tool import Tool

        where = named("tool", name)
        if attempts_max is not None and attempts_max < 1:
            raise RegistrationError(
                f"{where}: attempts_max: must be at least 1, got {attempts_max}", hint="1 never repeats a call"
            )
        if deadline_s is not None and not deadline_s > 0:
            raise RegistrationError(
                f"{where}: deadline_s: must be above 0, got {deadline_s}", hint="remove it to use the setting"
            )
        if limit_s is not None and not 0 < limit_s <= 86_400:
            raise RegistrationError(
                f"{where}: limit_s: must be above 0 and at most 86400, got {limit_s}", hint="remove it for no limit"
            )
        settings = self.settings.tools
        policy = RetryPolicy(
            attempts_max=settings.attempts_max if attempts_max is None else attempts_max,
            wait_s_max=settings.wait_s_max,
            base_wait_s=settings.base_wait_s,
            deadline_s=settings.deadline_s if deadline_s is None else deadline_s,
        )
        tool = Tool(
            name,
            member(where, "safety", safety, Safety),
            success,
            policy,
            operation,
            limit_s,
            member(where, "when_failed", when_failed, WhenFailed),
            Overrides(statuses or {}, errors or {}, where),
        )
        refuse_async_rule(name, success)
        if operation is None:
            self._register_tool(tool)
            return lambda function: watched(self, tool, function)

        def decorate(function: F) -> F:
            decorated = watched(self, tool, function)
            self._register_tool(tool)
            return decorated

        self.registrations.check_tool(tool)
        return decorate

    def call(self, tool: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function as a registered tool, as the decorated function would: a plain one, a coroutine function
        (await the result), or a generator.

        Raises:
            RegistrationError: The tool is not registered.
            ToolFailed: As the decorated function.
        """
        known = self.registrations.tools.get(tool)
        if known is None:
            raise RegistrationError(
                f"tool {tool!r}: is not registered", hint=f'call watch.tool({tool!r}, safety="…") at start'
            )
        return watched(self, known, function)(*args, **kwargs)

    def current_call(self) -> Call | None:
        """Return the tool call that the code is in, else None; a tool finds its `idempotency_key` there."""
        return self.calls.get()

    # runs

    def run(
        self,
        workflow: str,
        *,
        run_id: str | None = None,
        task_id: str | None = None,
        context_version: int | None = None,
    ) -> Run:
        """Begin a run of a registered workflow; use it in a `with` or `async with` block, or end it with `finish`.

        Args:
            workflow: The registered name.
            run_id: The run's id; made when None.
            task_id: The task whose handoffs belong to this run.
            context_version: The version of the state that handoffs must rest on.

        Raises:
            RegistrationError: The workflow is not registered, an id is no text that can be stored, or the settings
                name a route that is not registered.
        """
        from handoffwatch.runtime.run import Run

        known = self.registrations.workflows.get(workflow)
        if known is None:
            raise RegistrationError(
                f"workflow {workflow!r}: is not registered", hint=f"call watch.workflow({workflow!r}) at start"
            )
        if not self._routes_checked:
            from handoffwatch.handoffs.settings import refuse_unknown_routes

            registered = {route.name for route in self.watchdog.routes}
            refuse_unknown_routes(self.settings.handoffs.routes, registered, section="handoffs")
            refuse_unknown_routes(self.settings.handoff.routes, registered, section="handoff")
            self._routes_checked = True
        for name, text in (("run_id", run_id), ("task_id", task_id)):
            if text is not None and not is_id(text):
                raise RegistrationError(
                    f"run of {workflow}: {name}: must be a text of 1 to 255 characters that can be written, got "
                    f"{type(text).__name__}",
                    hint=f"pass {name}=str(...), or leave it out",
                )
        run = Run(self, known, run_id=run_id or uuid.uuid4().hex, task_id=task_id, context_version=context_version)
        self._runs[run.run_id] = run
        return run

    def current(self, run_id: str | None = None) -> Run | None:
        """Return the run of an id, else the run whose block the code is in, else None; never one that has ended."""
        if run_id is not None:
            return self._runs.get(run_id)
        run = self.current_run.get()
        return run if run is not None and not run.is_finished else None

    def run_ended(self, run: Run) -> None:
        """Forget a run that has ended, but for the workflow of a run that was evaluated later."""
        with self._lock:
            if self._runs.get(run.run_id) is run:
                del self._runs[run.run_id]
            self._ended[run.run_id] = run.workflow.name
            if len(self._ended) > ENDED_RUNS_MAX:
                del self._ended[next(iter(self._ended))]

    def is_new_version(self, route: str, version: str) -> bool:
        """Return whether this is the first time that a schema version is seen on a route in this process."""
        with self._lock:
            is_new = (route, version) not in self._seen_versions
            self._seen_versions.add((route, version))
        return is_new

    def workflow_of(self, run_id: str) -> str | None:
        """Return the workflow of a run that goes on in this process, or was one of the last that ended in it."""
        run = self._runs.get(run_id)
        return run.workflow.name if run is not None else self._ended.get(run_id)

    def record_eval(self, run_id: str, *, passed: bool, workflow: str | None = None) -> bool:
        """Write what a final eval said about a run, at any time and from any process; each run is counted once.

        Args:
            run_id: The run.
            passed: What the eval said.
            workflow: Its workflow; needed where neither this process nor the ledger has seen the run.

        Returns:
            Whether it was written; False when the run was evaluated before.

        Raises:
            RegistrationError: The workflow of the run is not known or not registered, or a value is of the wrong kind.
            LedgerUnavailable: It cannot be written.
        """
        from handoffwatch.runtime import flows
        from handoffwatch.runtime.drivers import drive

        return drive(flows.record_eval(self, run_id, workflow, passed), self.clock)

    async def record_eval_async(self, run_id: str, *, passed: bool, workflow: str | None = None) -> bool:
        """Do as `record_eval` does, without blocking the event loop."""
        from handoffwatch.runtime import flows
        from handoffwatch.runtime.drivers import drive_async

        return await drive_async(flows.record_eval(self, run_id, workflow, passed), self.clock)

    def reopen(self, task_id: str, *, route: str | None = None) -> int:
        """Open the routes of a task again that a stop has latched, or one of them.

        Returns:
            How many were latched.

        Raises:
            LedgerUnavailable: A durable route cannot be opened again.
        """
        from handoffwatch.runtime import flows
        from handoffwatch.runtime.drivers import drive

        return drive(flows.reopen(self, task_id, route), self.clock)

    async def reopen_async(self, task_id: str, *, route: str | None = None) -> int:
        """Do as `reopen` does, without blocking the event loop."""
        from handoffwatch.runtime import flows
        from handoffwatch.runtime.drivers import drive_async

        return await drive_async(flows.reopen(self, task_id, route), self.clock)

    # the outside

    @property
    def ledger(self) -> Ledger:
        """The durable store; from its first use on its series stand in `registry`."""
        with self._lock:
            if self._ledger is None:
                from handoffwatch.ledger.collector import LedgerCollector
                from handoffwatch.ledger.ledger import Ledger

                self._ledger = Ledger(self.settings.ledger, policy=self.settings.settlement.policy(), clock=self.clock)
                self.registry.register(LedgerCollector(self._ledger))
                self._write_registrations()
            return self._ledger

    def settler(self) -> Settler:
        """Return what reads claimed effects back; the exporter runs it in a thread of its own."""
        from handoffwatch.settlement.settler import Settler

        return Settler(
            self.ledger, self.registrations.operations, self.recorder.emit, self.clock, self.settings.settlement
        )

    def serve_metrics(self, *, port: int = 0, address: str = "127.0.0.1") -> MetricsServer:
        """Serve `/metrics` from this process in a background thread; port 0 takes a free one.

        The self-test starts with it, as the settings say: whoever shows the gauge also moves it. The ledger is opened,
        so that its series are there before its first event.

        Raises:
            ConfigError: The port is taken, or address or port is none.
        """
        from handoffwatch.runtime.metrics_server import MetricsServer

        server = MetricsServer(self.registry, port=port, address=address)
        _ = self.ledger
        self.start_selftest()
        return server

    def start_selftest(self, *, every_s: float | None = None) -> None:
        """Judge a known-good and a known-bad handoff by every registered contract, now and again, until `close`.

        It runs in a daemon thread, one for a Watch however often it is started, that also ends with the Watch. A
        contract gives its good payload as `good_example`; else one is derived from its fields. Rules of the contracts
        are called with both handoffs.

        Args:
            every_s: Seconds between two rounds; None takes the setting `handoffs.selftest_every_s`. 0 starts nothing.

        Raises:
            RegistrationError: The seconds are below 0, above a day, or no number.
        """
        from handoffwatch.runtime.selftest import SelfTester

        wait_s = self.settings.handoffs.selftest_every_s if every_s is None else every_s
        if not 0 <= wait_s <= 86_400:
            raise RegistrationError(
                f"self-test: every_s: must be 0 to 86400 seconds, got {wait_s}",
                hint="leave it out to use handoffs.selftest_every_s",
            )
        with self._lock:
            if self._selftest is None and wait_s > 0:
                self._selftest = SelfTester(self.watchdog, self.recorder, self.clock)
                self._selftest.start(every_s=wait_s)
                weakref.finalize(self, self._selftest.stop.set).atexit = False

    def close(self) -> None:
        """End the self-test, send the spans that wait, within the configured time, and close the ledger."""
        with self._lock:
            selftest, self._selftest = self._selftest, None
        if selftest is not None:
            selftest.close()
        self.recorder.close_spans()
        with self._lock:
            if self._ledger is not None:
                self._ledger.close()

    @functools.cached_property
    def unknown_tool(self) -> Tool:
        """What a tool that nobody registered is taken for: its name is `other`, and nothing is known to be safe."""
        from handoffwatch.tools.retry import RetryPolicy
        from handoffwatch.tools.tool import Tool

        return Tool(OTHER, Safety.UNSAFE, None, RetryPolicy(), None)

    def _recording_failed(self, error: Exception) -> None:
        self.recorder.emit(InternalErrorCaught(Component.RUNTIME, type(error).__name__))

    def _register_tool(self, tool: Tool) -> None:
        self.registrations.add_tool(tool)
        self.recorder.register_tool(tool.name, codes=tool.codes)

    def _write_registrations(self) -> None:
        """Make workflows, operations and routes rows of the ledger, so that a separate exporter shows them at 0.

        A ledger that is down keeps them and writes them with its next transaction.
        """
        if self._ledger is not None:
            with contextlib.suppress(LedgerUnavailable):
                self._ledger.register(
                    self.registrations.workflows.values(),
                    self.registrations.operations.values(),
                    tuple(self.watchdog.routes),
                )
