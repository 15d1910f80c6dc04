"""The HTTP side of one provider: a JSON object, or the reason why there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from local.errors import SearchUnavailable
from local.services.search.hit import plain_text

# Nobody limits by more than a month, so a larger number is a timestamp or a mistake.
LONGEST_SECONDS = 31 * 86_400.0


def pause_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the server may be asked again, or None if it does not say.

    `headers` must look up names without regard to case; `now` is aware. Read are Retry-After (RFC 9110: seconds or a
    date) and, without one, Brave's pair X-RateLimit-Remaining and X-RateLimit-Reset (seconds), a value for each window.
    """
    stated = headers.get("retry-after", "").strip()
    seconds = _seconds(stated)
    if seconds is None:
        seconds = _seconds_until(stated, now)
    if seconds is None:
        seconds = _exhausted_window(headers)
    return seconds if seconds is not None and seconds <= LONGEST_SECONDS else None


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:  # what "-0000" is parsed to; RFC 9110 knows GMT alone
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _exhausted_window(headers: Mapping[str, str]) -> float | None:
    remaining = headers.get("x-ratelimit-remaining", "").split(",")
    resets = headers.get("x-ratelimit-reset", "").split(",")
    waits = [_seconds(reset) for left, reset in zip(remaining, resets, strict=False) if left.strip() == "0"]
    return max((wait for wait in waits if wait is not None), default=None)


BODY_BYTES = 4 * 1024 * 1024
DETAIL_CHARS = 200
_KEY_HEADERS = {"authorization", "x-subscription-token"}


class ProviderClient:
    """Asks one provider's server. Every way to fail is a SearchUnavailable; no key is ever part of its text."""

    def __init__(self, provider: str, base_url: str, hints: Mapping[int, str]) -> None:
        """`hints` says for an HTTP status what a person can do about it."""
        self.name, self._hints = provider, hints
        self._address = str(httpx.URL(base_url).copy_with(userinfo=b"")).rstrip("/")
        # The chain bounds the time of a whole search; httpx bounds each read, which one byte a second satisfies.
        self._client = httpx.AsyncClient(
            base_url=base_url,
            timeout=None,
            trust_env=False,
            follow_redirects=False,
            verify=self._address.startswith("https:"),  # plain http has no use for certificates, which take 25 ms
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def get(
        self, path: str, params: Mapping[str, str | int], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """GET a JSON object. Raises SearchUnavailable."""
        return await self._ask(self._client.build_request("GET", path, params=params, headers=headers))

    async def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """POST a JSON object and get one back. Raises SearchUnavailable."""
        return await self._ask(self._client.build_request("POST", path, json=body, headers=headers))

    async def _ask(self, request: httpx.Request) -> dict[str, Any]:
        try:
            response = await self._client.send(request, stream=True)
            try:
                body = await self._read(response)
            finally:
                await response.aclose()
        except httpx.ConnectError as error:
            raise self._unavailable(f"no connection to {self._address} ({error})") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:  # the second one of a redirect to what is no address
            # Its text may quote a header, and a header may hold the key.
            raise self._unavailable(f"the exchange with {self._address} broke ({type(error).__name__})") from None
        payload = _parsed(body)
        if response.status_code != httpx.codes.OK:
            raise self._refused(response, payload)
        if not isinstance(payload, dict):
            raise self._unavailable(f"{self._address} answered something that is not a JSON object")
        return payload

    async def _read(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > BODY_BYTES:
                raise self._unavailable(f"{self._address} answered with more than {BODY_BYTES} bytes")
        return bytes(body)

    def _refused(self, response: httpx.Response, payload: object) -> SearchUnavailable:
        status = response.status_code
        said = f"HTTP {status} {response.reason_phrase}".strip()
        if response.has_redirect_location:
            said += f", a redirect to {plain_text(response.headers['location'], DETAIL_CHARS)}"
        parts = [said, _without_keys(_detail(payload), response.request), self._hints.get(status, "")]
        pause = pause_seconds(response.headers, datetime.now(UTC))
        return self._unavailable("; ".join(part for part in parts if part), pause)

    def _unavailable(self, reason: str, retry_after: float | None = None) -> SearchUnavailable:
        return SearchUnavailable(self.name, reason, retry_after)


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _without_keys(text: str, request: httpx.Request) -> str:
    """What a server says, without the key that it may have repeated."""
    for name in _KEY_HEADERS & request.headers.keys():
        for secret in {request.headers[name], request.headers[name].rpartition(" ")[2]}:
            text = text.replace(secret, "…")
    return text


def _detail(payload: object) -> str:
    """What Brave ({"error": {"detail"}}) or Tavily ({"detail": {"error"}}) says about its refusal, else ""."""
    for outer, inner in (("error", "detail"), ("detail", "error")):
        part = payload.get(outer) if isinstance(payload, dict) else None
        if isinstance(part, dict):
            return plain_text(part.get(inner), DETAIL_CHARS)
    return ""
