"""Files from https addresses: bounded in size and time, checked, kept in the cache. Never plain http."""

from __future__ import annotations

import hashlib
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from io import BufferedIOBase
from pathlib import Path
from typing import IO, cast

from gates.corpora.cache import file_sha256, move_in, partial_folder, wrong_hash
from gates.errors import CorpusError

_STEP = 2**16


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only when it stays on https."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if not newurl.lower().startswith("https://"):
            raise OSError(f"redirected to {newurl}, which is not https")
        # The base class declares the headers as HTTPMessage, a Message without additions that matter here.
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def open_https(url: str, timeout_s: float) -> BufferedIOBase:
    """Open an https address for reading. Raises OSError."""
    return cast("BufferedIOBase", urllib.request.build_opener(_HttpsOnly).open(url, timeout=timeout_s))


@dataclass(frozen=True)
class Web:
    """How an address is read: opener, clock (seconds), and the limits in bytes and seconds."""

    opener: Callable[[str, float], BufferedIOBase] = open_https
    clock: Callable[[], float] = time.monotonic
    max_bytes: int = 2 * 2**30
    silence_s: float = 30.0
    total_s: float = 1800.0


WEB = Web()


def download(url: str, sha256: str, cache: Path, *, web: Web = WEB) -> Path:
    """The path in the cache of what stands at `url`, downloaded unless it is there already and right.

    Raises CorpusError when the address is not https, cannot be read, gives too much, takes too long, or gives bytes
    whose SHA-256 is not `sha256`.
    """
    if not url.lower().startswith("https://"):
        raise CorpusError(f"{url}: not an https address", next_step="use https, or hand the file over with --from")
    target = cache / "downloads" / sha256
    if file_sha256(target) == sha256:
        return target
    with partial_folder(cache) as folder:
        part = folder / "part"
        found = _copy(url, part, web)
        if found != sha256:
            raise CorpusError(
                wrong_hash(url, sha256, found),
                next_step="the file at this address has changed: find the old one, or pin the new one in the manifest",
            )
        move_in(part, target)
    return target


def _copy(url: str, part: Path, web: Web) -> str:
    digest, size, end = hashlib.sha256(), 0, web.clock() + web.total_s
    try:
        with web.opener(url, web.silence_s) as stream, part.open("wb") as out:
            while chunk := stream.read1(_STEP):  # one wait at most, so that the clock is looked at
                digest.update(chunk)
                size += len(chunk)
                out.write(chunk)
                if size > web.max_bytes:
                    raise CorpusError(f"{url}: larger than {web.max_bytes} bytes", next_step="hand it over with --from")
                if web.clock() > end:
                    raise CorpusError(
                        f"{url}: not finished after {web.total_s:g} s",
                        next_step="try again, or hand it over with --from",
                    )
    except (OSError, HTTPException) as error:
        raise CorpusError(
            f"{url}: cannot download: {error}",
            next_step="check the address and the network, or hand it over with --from",
        ) from None
    return digest.hexdigest()
