"""Errors of client libraries that wrap the one that says what was sent, raised by real calls on loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable

import aiohttp
import anthropic
import botocore.config as botocore_config
import botocore.session as botocore_session
import openai
import pytest
import requests
import urllib3

from handoffwatch.tools.classification import classify_exception
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode


def call_openai(url: str) -> None:
    with openai.OpenAI(base_url=url, api_key="x", max_retries=0, timeout=5) as client:
        client.models.list()


def call_anthropic(url: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key="x", max_retries=0, timeout=5) as client:
        client.models.list()


def call_requests(url: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.post(url, json={}, timeout=5)


def call_urllib3(url: str) -> None:
    with urllib3.PoolManager(retries=0) as pool:
        pool.request("POST", url, json={}, timeout=5)


def call_aiohttp(url: str) -> None:
    async def post() -> None:
        async with aiohttp.ClientSession() as session, session.post(url, json={}) as response:
            await response.read()

    asyncio.run(post())


def call_botocore(url: str) -> None:
    config = botocore_config.Config(retries={"max_attempts": 0}, read_timeout=5)
    client = botocore_session.Session().create_client(
        "dynamodb", "us-east-1", endpoint_url=url, aws_access_key_id="x", aws_secret_access_key="x", config=config
    )
    client.list_tables()


CALLS = [call_openai, call_anthropic, call_requests, call_urllib3, call_aiohttp, call_botocore]


@pytest.mark.parametrize("safety", Safety)
@pytest.mark.parametrize("call", CALLS)
def test_classify_exception_is_retryable_when_a_client_wraps_a_refused_connection(
    call: Callable[[str], None], safety: Safety
) -> None:
    """BR-063: nothing was sent, whatever the library calls it, so an unsafe tool may try again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each library has a class of its own
        call(url)

    failure = classify_exception(raised.value, safety)

    assert (failure.failure_class, failure.code) == (FailureClass.RETRYABLE, ToolCode.CONNECTION)


@pytest.mark.parametrize("call", CALLS)
def test_classify_exception_depends_on_the_safety_when_a_client_wraps_a_lost_answer(
    call: Callable[[str], None],
) -> None:
    """BR-057, BR-063: the request was read and not answered: an unsafe tool stops, an idempotent one goes on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each library has a class of its own
            call(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join(5)

    failures = [classify_exception(raised.value, safety) for safety in (Safety.UNSAFE, Safety.IDEMPOTENT)]

    assert [failure.failure_class for failure in failures] == [FailureClass.AMBIGUOUS, FailureClass.RETRYABLE]
    assert {failure.code for failure in failures} == {ToolCode.CONNECTION}


def test_classify_exception_ends_when_causes_go_in_a_circle() -> None:
    """A wrapper that is its own cause's cause is looked into a bounded number of times."""
    first, second = requests.RequestException("x"), requests.RequestException("y")
    first.__cause__, second.__cause__ = second, first

    assert classify_exception(first, Safety.UNSAFE).failure_class is FailureClass.AMBIGUOUS


def test_classify_exception_ignores_the_context_when_the_error_is_no_known_wrapper() -> None:
    """A fault in a handler proves nothing about what an unsafe tool had sent before."""
    try:
        try:
            raise ConnectionRefusedError
        except ConnectionRefusedError:
            raise ValueError("x")  # noqa: B904 - the context is what is tested
    except ValueError as error:
        failure = classify_exception(error, Safety.UNSAFE)

    assert failure.failure_class is FailureClass.AMBIGUOUS
