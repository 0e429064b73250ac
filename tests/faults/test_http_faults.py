"""Every fault of a service ends as one of a few typed errors, in time, with bounded memory, at allowed addresses only."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import AsyncIterator

import anyio
import pytest

from astroresearch.config import Secret
from astroresearch.errors import AuthFailed, BadAnswer, Blocked, RateLimited, ServiceError, TimedOut, Unreachable
from astroresearch.sources.guard import AddressGuard, loopback_pairs
from astroresearch.sources.http import Http, Request
from tests.fakes.faulty import Faulty, http

CANARY = "canary-4711-token"


@pytest.fixture
async def faulty() -> AsyncIterator[Faulty]:
    async with Faulty() as server:
        yield server


@pytest.fixture
async def client(faulty: Faulty) -> AsyncIterator[Http]:
    async with Http([faulty.pair], intervals={}) as client:
        yield client


def ask(faulty: Faulty, path: str, **more: object) -> Request:
    values: dict[str, object] = {"deadline_s": 0.4, "attempts": 1, "max_bytes": 2_000_000} | more
    return Request(faulty.url(path), "svc", **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/hang", TimedOut),
        ("/hang_body", TimedOut),
        ("/drip", TimedOut),
        ("/short", Unreachable),
        ("/cut", Unreachable),
        ("/reset", Unreachable),
        ("/close", Unreachable),
        ("/not_http", Unreachable),
        ("/header_flood", Unreachable),
        ("/429_date", RateLimited),
        ("/429_absent", RateLimited),
        ("/429_day", RateLimited),
        ("/500", Unreachable),
        ("/503", Unreachable),
        ("/401", BadAnswer),
        ("/404", BadAnswer),
        ("/loop", BadAnswer),
        ("/to_link_local", Blocked),
        ("/to_private", Blocked),
        ("/to_file", Blocked),
        ("/to_other_loopback", Blocked),
        ("/to_loopback_name", Blocked),
        ("/gzip_cut", BadAnswer),
        ("/gzip_lie", BadAnswer),
        ("/brotli", BadAnswer),
        ("/gzip_bomb", BadAnswer),
        ("/claims_2gb", BadAnswer),
        ("/endless", BadAnswer),
    ],
)
async def test_every_fault_is_a_typed_error_in_time(
    faulty: Faulty, client: Http, path: str, error: type[ServiceError]
) -> None:
    with anyio.fail_after(1.4 + 1.0):  # the deadline and a second, and what a busy machine needs
        with pytest.raises(error) as caught:
            await client.fetch(ask(faulty, path))
    assert caught.value.source == "svc"
    assert caught.value.message.endswith(".")


@pytest.mark.parametrize(("path", "body"), [("/ok", b"ok"), ("/gzip", b"packed"), ("/to_ok", b"ok")])
async def test_good_answers_arrive_whole(faulty: Faulty, client: Http, path: str, body: bytes) -> None:
    answer = await client.fetch(ask(faulty, path))
    assert answer.body == body


@pytest.mark.parametrize("path", ["/latin", "/wrong_charset"])
async def test_charsets_never_raise(faulty: Faulty, client: Http, path: str) -> None:
    assert (await client.fetch(ask(faulty, path))).text() == "Könyves"


@pytest.mark.parametrize("path", ["/429_once", "/500_once"])
async def test_a_passing_fault_is_tried_again(faulty: Faulty, client: Http, path: str) -> None:
    answer = await client.fetch(ask(faulty, path, attempts=2, deadline_s=10))
    assert answer.body == b"ok"
    assert faulty.asked[path] == 2


async def test_a_lasting_fault_reports_its_last_cause_not_the_deadline(faulty: Faulty, client: Http) -> None:
    with pytest.raises(Unreachable) as caught:
        await client.fetch(ask(faulty, "/500", attempts=50, deadline_s=1.0))
    assert caught.value.status == 500
    assert faulty.asked["/500"] > 1


@pytest.mark.parametrize(("path", "least"), [("/429_date", 3500), ("/429_day", 86400)])
async def test_a_long_wait_is_told_and_not_waited_for(faulty: Faulty, client: Http, path: str, least: float) -> None:
    with pytest.raises(RateLimited) as caught:
        await client.fetch(ask(faulty, path, attempts=5))
    assert caught.value.retry_after_s is not None
    assert caught.value.retry_after_s >= least
    assert "h." in caught.value.hint or "min." in caught.value.hint
    assert faulty.asked[path] == 1


async def test_limits_with_requests_left_say_no_time(faulty: Faulty, client: Http) -> None:
    with pytest.raises(RateLimited) as caught:
        await client.fetch(ask(faulty, "/429_absent"))
    assert caught.value.retry_after_s is None


async def test_a_bomb_takes_little_memory(faulty: Faulty, client: Http) -> None:
    await client.fetch(ask(faulty, "/ok"))
    tracemalloc.start()
    try:
        with pytest.raises(BadAnswer):
            await client.fetch(ask(faulty, "/gzip_bomb", max_bytes=10_000_000, deadline_s=20))
        assert tracemalloc.get_traced_memory()[1] < 64_000_000
    finally:
        tracemalloc.stop()


async def test_the_token_goes_to_its_own_host_only(
    faulty: Faulty, client: Http, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with Faulty() as other:
        other.routes["/there"] = http(200, b"ok")
        faulty.routes["/away"] = http(302, b"", ("Location", other.url("/there?q=1")))
        async with Http([faulty.pair, other.pair], intervals={}) as both:
            await both.fetch(ask(faulty, "/away", token=Secret(CANARY), deadline_s=5))
        assert faulty.headers["/away"]["authorization"] == f"Bearer {CANARY}"
        assert "authorization" not in other.headers["/there"]
    for path in ("/401", "/500", "/to_private", "/close"):
        with pytest.raises(ServiceError) as caught:
            await client.fetch(ask(faulty, path, token=Secret(CANARY), params=(("q", "secret-query"),)))
        shown = f"{caught.value} {caught.value!r} {vars(caught.value)}"
        assert CANARY not in shown
        assert "secret-query" not in shown
    assert CANARY not in caplog.text


async def test_a_refused_token_is_its_own_error(faulty: Faulty, client: Http) -> None:
    with pytest.raises(AuthFailed):
        await client.fetch(ask(faulty, "/401", token=Secret(CANARY)))


async def test_redirects_stay_with_the_known_hosts(faulty: Faulty, client: Http) -> None:
    with pytest.raises(Blocked, match=r"127\.0\.0\.1"):
        await client.fetch(ask(faulty, "/to_ok", hosts=frozenset({"arxiv.org"})))
    assert faulty.asked["/ok"] == 0


async def test_no_loopback_without_a_grant(faulty: Faulty) -> None:
    async with Http(intervals={}) as production:
        assert production.guard.loopback == frozenset()
        with pytest.raises(Blocked):
            await production.fetch(ask(faulty, "/ok"))
    assert faulty.asked["/ok"] == 0


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "not an address",
    ],
)  # fmt: skip
async def test_names_that_lead_inside_are_refused_at_the_socket(address: str) -> None:
    async def lying(host: str, port: int) -> list[str]:
        return ["93.184.216.34", address]

    async with Http(resolver=lying, intervals={}) as client:
        with pytest.raises(Blocked):
            await client.fetch(Request("http://evil.example/", "svc", deadline_s=2, attempts=1))


async def test_the_checked_address_is_the_one_connected_to(faulty: Faulty) -> None:
    """A name that answers differently the second time is resolved once per connection, and never by the HTTP library."""
    asked: list[str] = []

    async def once(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    async with Http([("svc.example", faulty.port)], resolver=once, intervals={}) as client:
        answer = await client.fetch(Request(f"http://svc.example:{faulty.port}/ok", "svc", deadline_s=5))
    assert answer.body == b"ok"
    assert asked == ["svc.example"]
    assert faulty.headers["/ok"]["host"] == f"svc.example:{faulty.port}"


async def test_public_addresses_pass_the_guard() -> None:
    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "2606:2800:220:1::1"]

    assert await AddressGuard(resolver=public).addresses("example.org", 443) == ["93.184.216.34", "2606:2800:220:1::1"]


def test_only_loopback_urls_become_grants() -> None:
    urls = ["http://127.0.0.1:8080/v1", "http://localhost/x", "https://api.adsabs.harvard.edu/v1", "http://10.0.0.1:80"]
    assert loopback_pairs(urls) == {("127.0.0.1", 8080), ("localhost", 80)}


async def test_a_limited_source_has_one_connection_and_a_pause(faulty: Faulty) -> None:
    begun: list[float] = []
    async with Http([faulty.pair], intervals={"svc": 0.2}) as client, anyio.create_task_group() as group:

        async def one() -> None:
            await client.fetch(ask(faulty, "/ok", deadline_s=10))
            begun.append(anyio.current_time())

        for _ in range(3):
            group.start_soon(one)
    assert faulty.most_open == 1
    assert begun[2] - begun[0] >= 0.39


async def test_a_cancelled_request_closes_its_connection(faulty: Faulty, client: Http) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(client.fetch, ask(faulty, "/drip", deadline_s=60))
        await faulty.until(lambda: faulty.asked["/drip"] > 0)
        group.cancel_scope.cancel()
    with anyio.fail_after(5):
        await faulty.until(lambda: faulty.open == 0)
