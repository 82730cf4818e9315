"""Outcomes, judged without I/O: what was intended, what was claimed, and what a read-back says about it."""

from handoffwatch.outcomes.claim import Claim, settle_claim
from handoffwatch.outcomes.intent import Intent, business_key, intent_of_call, intent_of_expectation
from handoffwatch.outcomes.kind import OperationKind
from handoffwatch.outcomes.origin import origin_of
from handoffwatch.outcomes.policy import SettlementPolicy, is_sampled, next_poll_unix_s
from handoffwatch.outcomes.receipt import Receipt, receipt_of
from handoffwatch.outcomes.record import Look, judge_record
from handoffwatch.outcomes.texts import CUSTOMER_TEXTS, customer_text
from handoffwatch.outcomes.verification import ReadBack, Verification, Verifier

__all__ = [
    "CUSTOMER_TEXTS",
    "Claim",
    "Intent",
    "Look",
    "OperationKind",
    "ReadBack",
    "Receipt",
    "SettlementPolicy",
    "Verification",
    "Verifier",
    "business_key",
    "customer_text",
    "intent_of_call",
    "intent_of_expectation",
    "is_sampled",
    "judge_record",
    "next_poll_unix_s",
    "origin_of",
    "receipt_of",
    "settle_claim",
]
