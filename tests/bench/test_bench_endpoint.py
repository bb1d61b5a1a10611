"""A server as a contender, over real sockets."""

import threading
import time

import pytest

from edgespec import Message
from edgespec.bench.endpoint import Endpoint, EndpointError
from edgespec.errors import Cancelled, UsageError
from edgespec.types import SamplingSettings

GREEDY = SamplingSettings(temperature=0.0, seed=5)
MESSAGES = [Message("system", "be short"), Message("user", "count")]


def endpoint(url):
    return Endpoint(url, lambda messages: " / ".join(m.content for m in messages))


@pytest.mark.parametrize("path", ["", "/v1", "/v1/", "/v1/chat/completions"])
def test_chat_completions(server, path):
    taken = endpoint(server.url + path).answer(MESSAGES, 9, GREEDY)
    assert (taken.text, taken.n, taken.tokens) == ("one two three", 3, None)
    assert (taken.draft_n, taken.draft_n_accepted) == (4, 1)
    assert [n for _, n in taken.arrivals] == [1, 1, 1]
    assert all(a[0] <= b[0] for a, b in zip(taken.arrivals, taken.arrivals[1:], strict=False))
    asked_path, body = server.asked[0]
    assert asked_path == "/v1/chat/completions"
    assert body["messages"] == [
        {"role": "system", "content": "be short"},
        {"role": "user", "content": "count"},
    ]
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("the-model", 9, 0, 5)


def test_llama_servers_completion(server):
    made = endpoint(server.url.removeprefix("http://") + "/completion")
    assert made.first(MESSAGES, GREEDY) > 0
    taken = made.answer(MESSAGES, 9, GREEDY)
    assert (taken.text, taken.n, taken.draft_n) == ("one two three", 3, 4)
    (_, cold), (path, body) = server.asked
    assert path == "/completion"
    assert (cold["cache_prompt"], cold["n_predict"]) == (False, 1)
    assert (body["cache_prompt"], body["n_predict"], body["prompt"]) == (True, 9, "be short / count")


def test_the_first_token_is_waited_for(server):
    server.wait = threading.Event()
    threading.Timer(0.15, server.wait.set).start()
    taken = endpoint(server.url).answer(MESSAGES, 9, GREEDY)
    assert taken.arrivals[1][0] - taken.arrivals[0][0] > 0.1


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["data: {no json}\n\n"], "not JSON"),
        (['data: {"error": {"message": "out of\\nslots"}}\n\n'], "failed"),
        ([], "without any text"),
        (['data: {"choices": [{"delta": {"content": "one"}}]}\n\n'], "broke off in the middle"),
        (['data: {"content": "one", "stop": false}\n\n'], "broke off in the middle"),
        ([": a comment\n\n", "event: x\n", "data: 5\n\n", 'data: {"choices": null}\n\n'], "without any text"),
    ],
)
def test_what_is_not_an_answer_is_told(server, lines, told):
    server.lines = lines
    with pytest.raises(EndpointError, match=told) as error:
        endpoint(server.url).first(MESSAGES, GREEDY)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "last", ['{"choices": [{"delta": {}, "finish_reason": "length"}]}', '{"stop": true}', "[DONE]"]
)
def test_each_sign_of_the_end_will_do(server, last):
    server.lines = ['data: {"choices": [{"delta": {"content": "one"}}]}\n\n', f"data: {last}\n\n"]
    assert endpoint(server.url).answer(MESSAGES, 9, GREEDY).text == "one"


def test_a_refusal_is_told_in_one_line(server):
    server.status = 404
    with pytest.raises(EndpointError, match=r"answered 404: .*no such model") as error:
        endpoint(server.url).answer(MESSAGES, 9, GREEDY)
    assert "\n" not in str(error.value)


def test_nobody_listens(server):
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(EndpointError, match="cannot measure"):
        endpoint(f"http://127.0.0.1:{port - 1 if port % 2 else port + 1}/").answer(MESSAGES, 9, GREEDY)


def test_cancelling_ends_an_answer_that_hangs(server):
    server.wait = threading.Event()
    made = endpoint(server.url)
    threading.Timer(0.1, made.cancel).start()
    started = time.perf_counter()
    with pytest.raises(Cancelled):
        made.answer(MESSAGES, 9, GREEDY)
    assert time.perf_counter() - started < 5
    with pytest.raises(Cancelled):
        made.answer(MESSAGES, 9, GREEDY)


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://host:port", "http://h:99999", "file:///etc/passwd"]
)
def test_addresses_that_cannot_be_meant(url):
    with pytest.raises(UsageError):
        endpoint(url)


def test_a_password_is_not_shown():
    assert endpoint("http://user:secret@example.org:81/v1").name == "example.org:81"
