"""Every reader of the package, with whole files to begin from: what the tests fuzz a little and the script long."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import io
import json
import lzma
import shutil
import tarfile
import zipfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow
import pyarrow.parquet as pq
from safetensors.numpy import save

from gates.cli.seat.fit import _adapter
from gates.cli.seat.supports import _architectures
from gates.corpora.containers import Limits, members
from gates.corpora.files import read_prompts, read_texts
from gates.corpora.manifest import Manifest
from gates.corpora.streams.plan import plan
from gates.corpora.streams.read import documents_of, text_of
from gates.errors import GatesError
from gates.flow.finished import read_run
from gates.flow.history import history
from gates.flow.inputs import load_inputs
from gates.flow.received import Reader as Received
from gates.flow.values import read_values
from gates.flow.verifying import verify
from gates.flow.watching import status_of
from gates.judge.values import RANGES
from gates.judge.verdict import Verdict
from gates.measure.figures import Measurements
from gates.record.ledger import Ledger, Stamp
from gates.record.review import Review, Said
from gates.record.seal import Seal
from gates.record.share import read_share
from gates.record.signing import fingerprint, holds
from gates.record.store import RunStore
from gates.record.votes import Choice, Trial, Votes
from gates.records import canonical, sha256
from gates.report.card import updated
from gates.seat.answers import read_answer
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.embedded.lora import Lora, read_gguf, write_gguf
from gates.seat.embedded.peft import read_peft
from gates.seat.embedded.protocol import ApiError, ChatRequest, check_sampling, read
from gates.seat.operate.adapters import check_adapter
from gates.seat.operate.audit import audit
from gates.seat.operate.compose import SeatFile
from gates.seat.operate.lint import lint, rank_of
from gates.seat.operate.service import read_service
from gates.seat.operate.supports import Source
from gates.seat.streams import read_stream
from gates.spec.document import read_document
from gates.spec.labelled import read_labelled
from gates.spec.load import load_gate
from gates.spec.prompts import read_beats
from tests.finished import AT, finished_run
from tests.small import BEATS

KEY = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
PEFT = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "use_rslora": False, "modules_to_save": None}


@dataclass(frozen=True)
class Reader:
    """A reader: whole files that it takes, what kind of changes hurt it, and the call; `read` gets a folder, bytes."""

    name: str
    kind: str
    seeds: tuple[bytes, ...]
    read: Callable[[Path, bytes], object]


def survives(reader: Reader, folder: Path, data: bytes) -> GatesError | None:
    """Read hostile bytes. Whatever is raised that is not ours goes on to the test is handed back."""
    try:
        reader.read(folder, data)
    except GatesError as error:
        return error
    return None


def readers(home: Path) -> tuple[Reader, ...]:
    """Every reader; what they need besides the file under attack is made in `home`."""
    run = finished_run(home / "work", home / "cache")
    workspace = run.parents[2]
    return (
        *_of_gates(workspace),
        *_of_records(workspace, run),
        *_of_people(home, workspace),
        *_of_seats(),
        *_of_adapters(home),
        *_of_texts(home),
    )


def at(name: str, read_path: Callable[[Path], object]) -> Callable[[Path, bytes], object]:
    """Write the bytes to a file of that name in the folder and read it from there."""

    def written(folder: Path, data: bytes) -> object:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return read_path(path)

    return written


def _of_gates(workspace: Path) -> Sequence[Reader]:
    root = Path(__file__).parents[2]
    gate = (root / "prereg" / "demo.yaml").read_bytes()
    manifest = (root / "corpora" / "bronte.yaml").read_bytes()
    seat = (
        b"schema: gates.seat-file/1\nimage: vllm/vllm-openai:v0.9.0\nport: 8027\nmodel: /models/base\n"
        b"served_name: base\nadapters_folder: /adapters\nadapters: {lv-a: lv-a}\nkv_cache_bytes: 2G\n"
        b"gpu_memory_utilization: 0.2\n"
        b"max_model_len: 8192\napi_key_env: VOICES_API_KEY\n"
    )
    return (
        Reader("gate", "yaml", (gate,), at("gate.yaml", lambda path: load_gate(path).digest())),
        Reader("manifest", "yaml", (manifest,), at("bronte.yaml", lambda path: read_document(path, Manifest).digest())),
        Reader("seat file", "yaml", (seat,), at("seat.yaml", lambda path: read_document(path, SeatFile).digest())),
        Reader("beats", "text", ("\n".join(BEATS).encode(),), at("beats.txt", read_beats)),
    )


def _of_records(workspace: Path, run: Path) -> Sequence[Reader]:
    prereg = workspace / "prereg"
    (seal,) = (prereg / "seals").glob("*.json")
    seal_sha256 = Ledger(prereg).entries()[0].entry.body["seal"]

    def ledger(folder: Path, data: bytes) -> object:
        _fresh(folder / "prereg")
        (folder / "prereg" / "ledger.jsonl").write_bytes(data)
        shutil.copy(prereg / "ledger.head", folder / "prereg")
        return Ledger(folder / "prereg").entries()

    def head(folder: Path, data: bytes) -> object:
        _fresh(folder / "prereg")
        (folder / "prereg" / "ledger.head").write_bytes(data)
        shutil.copy(prereg / "ledger.jsonl", folder / "prereg")
        return Ledger(folder / "prereg").entries()

    def generations(folder: Path, data: bytes) -> object:
        store = RunStore(folder, "small", 1)
        _fresh(store.folder)
        store.generations_path.write_bytes(data)
        return [one.digest() for one in store.generations(str(seal_sha256))]

    def sessions(folder: Path, data: bytes) -> object:
        store = RunStore(folder, "small", 1)
        _fresh(store.folder)
        store.sessions_path.write_bytes(data)
        return [one.digest() for one in store.sessions()]

    return (
        Reader("seal", "json", (seal.read_bytes(),), lambda _, data: Seal.parse(data, where="seal").digest()),
        Reader("ledger", "json", ((prereg / "ledger.jsonl").read_bytes(),), ledger),
        Reader("ledger head", "json", ((prereg / "ledger.head").read_bytes(),), head),
        Reader("generations", "json", (_head_of(run / "generations.jsonl", 3),), generations),
        Reader("sessions", "json", ((run / "sessions.jsonl").read_bytes(),), sessions),
        *(
            Reader(
                name,
                "json",
                ((run / name).read_bytes(),),
                lambda _, data, kind=kind: kind.parse(data, where="it").digest(),
            )
            for name, kind in (("measurements.json", Measurements), ("verdict.json", Verdict))
        ),
        _relinked(workspace),
    )


def _relinked(workspace: Path) -> Reader:
    """Ledgers that hold together and say nonsense: mutated records linked and hashed again, then the run read."""
    entries = Ledger(workspace / "prereg").entries()
    seed = b"\n".join(canonical(stored.entry.as_json()) for stored in entries)

    def forged(folder: Path, data: bytes) -> object:
        target = folder / "forged"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(workspace, target)
        (target / "prereg" / "ledger.head").unlink()
        ledger = Ledger(target / "prereg")
        ledger.path.unlink()
        made: list[Any] = []
        for line in data.split(b"\n"):
            try:
                entry = json.loads(line)
                made.append((entry["kind"], entry["gate"], entry["body"], entry["at"], entry["by"]))
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
        _write_chain(ledger, made)
        run = target / "reports" / "small" / "001"
        asked = (read_run, status_of, lambda _: history(target), lambda _: verify(target, target / "no cache"))
        return [_tried(ask, run) for ask in asked]

    return Reader("forged ledger", "json", (seed,), forged)


def _tried(ask: Callable[[Path], object], run: Path) -> object:
    try:
        return ask(run)
    except GatesError as error:
        return error


def _write_chain(ledger: Ledger, made: Sequence[tuple[Any, Any, Any, Any, Any]]) -> None:
    """Write what a forger would: canonical lines, each after the one before, and their head."""
    previous: list[str] = []
    lines = []
    for kind, gate, body, when, by in made:
        document = {
            "schema": "gates.ledger/1",
            "previous": previous,
            "kind": kind,
            "at": when,
            "by": by,
            "gate": gate,
            "body": body,
        }
        try:
            line = canonical(document)
        except (ValueError, RecursionError):
            continue
        lines.append(line)
        previous = [sha256(line)]
    ledger.path.write_bytes(b"".join(line + b"\n" for line in lines))
    head = {"schema": "gates.ledger.head/1", "head": previous, "records": len(lines)}
    ledger.head_path.write_bytes(canonical(head) + b"\n")


def _of_people(home: Path, workspace: Path) -> Sequence[Reader]:
    folder = home / "people"
    for number in range(3):
        Review(folder).mark("a" * 64, "b" * 64, Said(mark="ok", note=f"note {number}"), Stamp(AT, "ann"))
    trial = Trial(
        arm="one", prompt=0, seed=1, words=20, author_file="t", author_start=0, order=("base", "candidate", "author")
    )
    Votes(folder).vote(trial, Choice(author=2, best=1), ("a" * 64, "b" * 64), Stamp(AT, "ann"))
    gate = workspace / "prereg" / "small.yaml"
    inputs = load_inputs(gate, home / "cache")
    rows = [
        {"arm": "base", "seed": 1, "prompt": 0, "text": "words", "finish_reason": "stop", "completion_tokens": 3},
        {"arm": "voice-one", "seed": 2, "prompt": BEATS[1], "text": "more words"},
    ]
    received = "\n".join(map(json.dumps, rows)).encode()
    values = b"arm,seed,axis,value,n\nbase,1,voice,0.81,\nbase,2,voice,0.83,\none,1,voice,0.61,\none,2,ran_on,0.5,12\n"
    labelled = b"".join(
        _json({"beat": f"Beat {n}", "text": "The dog barked.", "on_beat": bool(n % 2)}) + b"\n" for n in range(20)
    )
    share = canonical(
        {
            "schema": "gates.share/1",
            "run": "small/001",
            "texts_sha256": "a" * 64,
            "texts": 1,
            "omitted": 0,
            "withheld": [],
        }
    )
    armour = b"-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQ==\n-----END SSH SIGNATURE-----\n"
    card = b"---\nlicense: mit\n# gates:begin a\nx\n# gates:end a\n---\nA card\n"
    card += b"<!-- gates:begin a -->\ny\n<!-- gates:end a -->\n"

    def received_rows(_: Path, data: bytes) -> object:
        reader = Received(inputs, "0" * 64, {}, Path("received.jsonl"))
        return [one.digest() for one in reader.generations(data)]

    return (
        Reader(
            "review marks",
            "json",
            ((folder / "review.jsonl").read_bytes(),),
            at("review.jsonl", lambda path: (Review(path.parent).read(), Review(path.parent).state())),
        ),
        Reader(
            "votes",
            "json",
            ((folder / "votes.jsonl").read_bytes(),),
            at("votes.jsonl", lambda p: Votes(p.parent).read()),
        ),
        Reader("values.csv", "text", (values,), at("values.csv", lambda path: read_values(path, RANGES))),
        Reader("imported texts", "json", (received,), received_rows),
        Reader("labelled texts", "json", (labelled,), at("labelled.jsonl", read_labelled)),
        Reader("share", "json", (share,), at("share.json", lambda path: read_share(path.parent))),
        Reader(
            "model card", "text", (card,), lambda _, data: updated(data.decode("utf-8", "replace"), "a", "b", "c: 1")
        ),
        Reader(
            "signature",
            "text",
            (armour,),
            lambda _, data: (fingerprint(data.decode("utf-8", "replace")), holds(b"line", data, "ssh-ed25519 AAAA")),
        ),
    )


class _Canned(httpx2.AsyncBaseTransport):
    """A server that gives every request the same bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=self.data, headers={"content-type": "application/json"})


def _from_server(ask: Callable[[SeatClient], Any]) -> Callable[[Path, bytes], object]:
    """Ask the real client what a server with these bytes makes it say; one client, for it is slow to make."""
    client = SeatClient("http://127.0.0.1:9/v1", "key-0123456789", timeout_s=5)
    client._wire = None  # asked as through a proxy
    canned = client._http._transport = _Canned(b"")

    def asked(_: Path, data: bytes) -> object:
        canned.data = data
        return asyncio.run(ask(client))

    return asked


async def _lines(data: bytes) -> AsyncIterator[str]:
    for line in data.decode("utf-8", "replace").splitlines():
        yield line


def _of_seats() -> Sequence[Reader]:
    message = {"role": "assistant", "content": "words \U0001f600"}
    scores = {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": [{"token": "a", "logprob": -0.1}]}]}
    usage = {"prompt_tokens": 8, "completion_tokens": 3}
    chat = {
        "choices": [{"message": message, "finish_reason": "stop", "logprobs": scores}],
        "model": "m",
        "usage": usage,
    }
    columns = {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": [{"a": -1.0}]}
    plain = {"choices": [{"text": "words", "finish_reason": "length", "logprobs": columns}], "prompt_token_ids": [1, 2]}
    events = [{"choices": [{"delta": {"content": "a"}}]}, {"choices": [], "usage": usage}]
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    cards = {"object": "list", "data": [{"id": "base", "root": "org/x", "parent": None, "max_model_len": 8192}]}
    lite = {
        "data": [
            {
                "model_name": "lv",
                "litellm_params": {"model": "openai/lv", "api_base": "http://127.0.0.1:9/v1"},
                "model_info": {"access_groups": ["g"]},
            }
        ],
        "keys": ["a" * 64],
        "total_pages": 1,
        "total_count": 1,
        "info": {"key_alias": "k", "models": ["lv"], "aliases": {"x": "lv"}},
    }
    asked = SeatRequest("chat", {"model": "m"})
    request = {"model": "m", "messages": [message], "max_tokens": 3, "seed": 1, "stop": ["x"], "temperature": 0.9}

    def served(_: Path, data: bytes) -> object:
        try:
            body = read(ChatRequest, data, "application/json")
            check_sampling(body)
        except ApiError as error:
            return json.dumps(error.args).encode("utf-8", "strict")
        return body

    return (
        Reader("chat answer", "json", (_json(chat),), lambda _, data: read_answer("chat", data, {"Via": "x"})),
        Reader("completion", "json", (_json(plain),), lambda _, data: read_answer("completions", data, {})),
        Reader(
            "stream",
            "text",
            (stream,),
            lambda _, data: asyncio.run(read_stream(_lines(data), 0.0, iter(range(10**9)).__next__)),
        ),
        Reader("answer over http", "json", (_json(chat),), _from_server(lambda client: client.complete(asked))),
        Reader(
            "stream over http",
            "text",
            (stream,),
            _from_server(lambda client: client.timed(asked, iter(range(10**9)).__next__)),
        ),
        Reader("model cards", "json", (_json(cards),), _from_server(lambda client: client.models())),
        Reader("version", "json", (b'{"version": "0.9.0"}',), _from_server(lambda client: client.version())),
        Reader(
            "LiteLLM", "json", (_json(lite),), _from_server(lambda client: audit(client, frozenset({"lv"}), "http://x"))
        ),
        Reader("request to the embedded seat", "json", (_json(request),), served),
    )


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def _of_adapters(home: Path) -> Sequence[Reader]:
    rng = np.random.default_rng(5)
    products = {KEY.format("A"): rng.normal(size=(2, 576)), KEY.format("B"): rng.normal(size=(576, 2))}
    weights = save({name: value.astype(np.float32) for name, value in products.items()})
    tensors = {
        f"blk.0.attn_q.weight.lora_{side}": products[KEY.format(side.upper())].astype(np.float16) for side in "ab"
    }
    write_gguf(Lora(4.0, tensors), home / "one.gguf")
    compose = (
        b"services:\n  seat:\n    image: vllm/vllm-openai:v0.9.0\n    command: [--enable-lora, --lora-modules,"
        b' a=/adapters/a, \'{"name": "b", "path": "/b"}\']\n    environment: {VLLM_API_KEY: "${KEY}"}\n'
        b'    ports: ["127.0.0.1:8027:8000"]\n'
        b"    volumes: [./adapters:/adapters:ro]\n    healthcheck: {test: [CMD, x]}\n"
    )
    registry = b'_MODELS = {"A": ("a", "A"), "B": ("nowhere", "B")}\n'
    module = b"class A(Base, SupportsLoRA):\n    packed_modules_mapping = {'a': ['b']}\n    embedding_modules = {}\n"

    def peft(config: bytes | None) -> Callable[[Path, bytes], object]:
        def written(folder: Path, data: bytes) -> object:
            (folder / "adapter_config.json").write_bytes(data if config is None else config)
            (folder / "adapter_model.safetensors").write_bytes(weights if config is None else data)
            return read_peft(folder)

        return written

    def source(folder: Path, data: bytes) -> object:
        models = folder / "model_executor" / "models"
        models.mkdir(parents=True, exist_ok=True)
        registry_now, _, module_now = data.partition(b"\n#--\n")
        (models / "registry.py").write_bytes(registry_now)
        (models / "a.py").write_bytes(module_now)
        return Source(folder).support("A")

    return (
        Reader("GGUF", "binary", ((home / "one.gguf").read_bytes(),), at("one.gguf", read_gguf)),
        Reader("safetensors", "binary", (weights,), peft(_json(PEFT))),
        Reader("adapter_config.json", "json", (_json(PEFT),), peft(None)),
        Reader(
            "adapter for vLLM",
            "json",
            (_json(PEFT),),
            at(
                "adapter_config.json",
                lambda path: (check_adapter(path.parent), rank_of(path.parent), _adapter(path.parent)),
            ),
        ),
        Reader("compose file", "yaml", (compose,), at("compose.yaml", lambda path: lint(read_service(path)))),
        Reader(
            "config.json",
            "json",
            (b'{"architectures": ["A"]}',),
            at("config.json", lambda path: _architectures(str(path))),
        ),
        Reader("vLLM source", "text", (registry + b"\n#--\n" + module,), source),
    )


def _of_texts(home: Path) -> Sequence[Reader]:
    del home
    words = "“Well-\nknown” words, _and_ more.\n".encode() * 20
    rows = b"".join(json.dumps({"text": f"row {n}", "prompt": "p"}).encode() + b"\n" for n in range(5))
    table = io.BytesIO()
    pq.write_table(pyarrow.table({"text": ["one", None, "two"], "n": [1, 2, 3]}), table)
    other = io.BytesIO()
    pq.write_table(pyarrow.table({"words": ["one"], "text ": ["two"]}), other)
    archive = _tar({"x/a.txt": words, "x/b.txt": b"two"})
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x/a.txt", words)
    packed = {
        "gz": gzip.compress(words),
        "xz": lzma.compress(words),
        "bz2": bz2.compress(words),
        "zst": pyarrow.compress(words, codec="zstd", asbytes=True),
    }
    limits = Limits(file=2**20, total=2**22, members=1000)
    archives = (archive, gzip.compress(archive), lzma.compress(archive), bz2.compress(archive), zipped.getvalue())
    return (
        Reader(
            "archive", "binary", archives, at("archive", lambda path: list(members(path, ["x/a.txt", "a.txt"], limits)))
        ),
        *(
            Reader(f"text.{end}", "binary", (data,), at(f"text.txt.{end}", lambda path: _stream(path, None)))
            for end, data in packed.items()
        ),
        Reader("text in parts", "text", (words,), at("text.txt", lambda path: _stream(path, 64))),
        Reader("JSONL in parts", "json", (rows,), at("rows.jsonl", lambda path: _stream(path, 40))),
        Reader("JSONL", "json", (rows,), at("rows.jsonl", lambda path: (read_texts([path]), read_prompts(path, 5)))),
        Reader(
            "Parquet",
            "binary",
            (table.getvalue(), other.getvalue()),
            at("rows.parquet", lambda path: _stream(path, None)),
        ),
    )


def _stream(path: Path, part_bytes: int | None) -> int:
    parts = plan([str(path)], part_bytes)
    return sum(1 for part in parts for _ in (text_of(part) if part.kind == "text" else documents_of(part)))


def _tar(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.pax_headers = {"comment": "made up"}
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def _fresh(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _head_of(path: Path, lines: int) -> bytes:
    return b"".join(path.read_bytes().splitlines(keepends=True)[:lines])
