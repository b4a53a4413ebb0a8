"""What can go wrong with one request to a seat: our exceptions, and the one table that maps the libraries' onto them.

FaultError                 a request brought no answer
├── UnreachableError       no connection: refused, no such host, TLS
├── TransientError         time-out, connection lost, 429, 5xx: worth another try
├── BrokenContractError    an answer that is none: error body under 200, truncated JSON, no choices, no text
├── NotCreditedError       an answer that is not the asked model's own: out of a cache, a fallback, cut short
└── RefusedRequestError    4xx: the seat will not answer this, however often it is asked
    ├── UnauthorisedError  401, 403: the API key
    └── UnknownModelError  the seat does not serve this model
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping

import httpx2

from gates.errors import SeatError, UnfitSeatError
from gates.spec.source import REDACTED, without_keys


class FaultError(SeatError):
    """A request brought no answer.

    `retryable`: another try may help. `stops`: every further request would fail alike. `answered`: the seat itself
    gave this result, so that it may belong to this prompt; without, the seat may simply be down.
    """

    retryable = False
    stops = False
    answered = False


class UnreachableError(FaultError):
    """There is no connection to the seat."""

    retryable = True


class TransientError(FaultError):
    """The seat, or something before it, failed in a way that may pass; `retry_after` is that header's value."""

    retryable = True

    def __init__(self, message: str, *, retry_after: str | None = None, answered: bool = False) -> None:
        super().__init__(message, next_step="see that the seat is up and answers within seat.timeout_s")
        self.retry_after = retry_after
        self.answered = answered


class BrokenContractError(FaultError):
    """The seat answered 200 with something that is no answer; `retryable` unless it would come again."""

    answered = True

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class NotCreditedError(FaultError):
    """A whole answer that is not the asked model's own, or not under the sealed conditions; `headers` told so."""

    answered = True

    def __init__(self, message: str, *, headers: Mapping[str, str], retryable: bool = False) -> None:
        super().__init__(message)
        self.headers = headers
        self.retryable = retryable


class RefusedRequestError(FaultError):
    """The seat refuses this request."""

    answered = True

    def __init__(self, message: str, *, next_step: str = "", stops: bool = False) -> None:
        super().__init__(message, next_step=next_step)
        self.stops = stops


class UnauthorisedError(RefusedRequestError):
    """The seat refuses the API key, or there is none."""


class UnknownModelError(RefusedRequestError, UnfitSeatError):
    """The seat does not serve the model that the request names."""


_KINDS: dict[type[Exception], type[UnreachableError | TransientError | BrokenContractError]] = {
    httpx2.HTTPError: TransientError,
    httpx2.RequestError: TransientError,
    httpx2.TransportError: TransientError,
    httpx2.TimeoutException: TransientError,
    httpx2.ConnectTimeout: UnreachableError,
    httpx2.NetworkError: TransientError,
    httpx2.ConnectError: UnreachableError,
    httpx2.ProtocolError: TransientError,
    httpx2.ProxyError: UnreachableError,
    httpx2.UnsupportedProtocol: UnreachableError,
    httpx2.DecodingError: BrokenContractError,
    httpx2.TooManyRedirects: BrokenContractError,
    httpx2.SSEError: BrokenContractError,
    httpx2.InvalidURL: UnreachableError,
    httpx2.CookieConflict: BrokenContractError,
    httpx2.StreamError: TransientError,
    ssl.SSLError: UnreachableError,
    TimeoutError: TransientError,
    OSError: TransientError,
}
"""What each exception of the libraries means."""

_BY_STATUS = (httpx2.HTTPStatusError,)
"""The exceptions that hold an answer, whose status decides."""

FOREIGN: tuple[type[Exception], ...] = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.CookieConflict,
    httpx2.StreamError,
    OSError,
)
"""The roots of every exception that the HTTP libraries raise."""

_WAIT = frozenset({408, 409, 425, 429})
_DOWN = frozenset({502, 503, 504})
_NO_MODEL = re.compile(r"(?is)model\b.{0,200}\b(does not exist|not found)|invalid model name|model_not_found")


def mapped_by(kind: type[BaseException]) -> type[BaseException] | None:
    """The entry that decides for an exception class: itself or its nearest ancestor; None when there is none."""
    return next((ancestor for ancestor in kind.__mro__ if ancestor in _KINDS or ancestor in _BY_STATUS), None)


def fault_of(error: Exception, *, secret: str | None) -> FaultError:
    """Our exception for one of the libraries'; `secret` never appears in it."""
    if isinstance(error, httpx2.HTTPStatusError):
        return fault_of_status(error.response, secret=secret)
    kind = next((_KINDS[ancestor] for ancestor in type(error).__mro__ if ancestor in _KINDS), TransientError)
    said = printable(without_keys(str(error)), secret=secret)
    return kind(f"{_MEANING[kind]}: {type(error).__name__} {said}".rstrip())


_MEANING = {
    UnreachableError: "no connection to the seat",
    TransientError: "the request got no complete answer",
    BrokenContractError: "the answer is not readable",
}


def fault_of_status(response: httpx2.Response, *, secret: str | None) -> FaultError:
    """Our exception for an answer whose status is not 2xx; its body has been read."""
    status, said = response.status_code, printable(without_keys(response.text), secret=secret)
    wait = response.headers.get("retry-after")
    asks = f" (Retry-After: {printable(wait, secret=secret, limit=60)})" if wait else ""
    message = f"the seat answered {status}{asks}: {said or 'without a body'}"
    if status in {401, 403, 407}:
        return UnauthorisedError(
            message, next_step="put the seat's key in the variable that seat.api_key_env names", stops=True
        )
    if status in {400, 404} and _NO_MODEL.search(response.text[:10_000]):
        return UnknownModelError(message, next_step="load the adapter under the name the gate gives it", stops=True)
    if status in _WAIT or status >= 500:
        answered = status >= 500 and status not in _DOWN
        return TransientError(message, retry_after=wait, answered=answered)
    if status < 400:
        return RefusedRequestError(
            f"the seat redirects ({status}); redirects are not followed, because they could lead to another seat",
            next_step="give the address it redirects to as seat.base_url",
            stops=True,
        )
    if status in {404, 405}:
        return RefusedRequestError(message, next_step="check seat.base_url: it usually ends in /v1", stops=True)
    return RefusedRequestError(message)


def printable(text: str, *, secret: str | None = None, limit: int = 300) -> str:
    """Foreign text as one safe line: no control characters, no secret, at most `limit` characters."""
    if secret:
        text = text.replace(secret, REDACTED)
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 10 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
