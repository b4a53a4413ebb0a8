"""The stack's compose file, written from seat.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

import yaml
from pydantic import Field, StringConstraints, model_validator

from gates.errors import UsageError
from gates.records import Record
from gates.seat.operate.fit import LORA_RANKS
from gates.seat.operate.sizes import parse_size
from gates.spec.fields import Name, Variable

Line = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
Image = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$", max_length=500),
    Field(description="an image as Docker names it, with its version: vllm/vllm-openai:v0.33.0"),
]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00-\x1f\x7f:]*$", max_length=500)]

ADAPTERS = "/adapters"
MODEL = "/model"
RANK = 16
"""What --max-lora-rank is without the flag."""


class SeatFile(Record):
    """seat.yaml: one server with its adapters, as the operator wants it."""

    schema_: Literal["gates.seat-file/1"] = Field(alias="schema")
    image: Image
    port: int = Field(ge=1, le=65535, description="published on 127.0.0.1 alone")
    model: AbsolutePath = Field(description="the base model's folder on the server's machine, mounted read-only")
    served_name: Name = Field(description="the name that the base is asked for by")
    adapters_folder: AbsolutePath = Field(description="the folder that holds the adapters', mounted read-only")
    adapters: dict[Name, Name] = Field(description="served name -> folder under adapters_folder")
    kv_cache_bytes: str = Field(description="the KV cache's size, pinned: 2G as vLLM reads it, or 2GiB")
    gpu_memory_utilization: float = Field(gt=0, le=1, description="the fraction that `gates seat fit` says")
    max_model_len: int = Field(ge=1, le=10_000_000, description="tokens of prompt and answer together")
    max_loras: int = Field(default=1, ge=1, le=1000, description="adapters that one batch may hold")
    max_cpu_loras: int | None = Field(
        default=None, ge=1, le=10_000, description="adapters kept in memory; without it all that are listed"
    )
    max_lora_rank: int = Field(default=RANK, description="the largest rank that is served")
    api_key_env: Variable = Field(description="the environment variable that holds the API key; the key is not written")
    labels: dict[Line, Line] = Field(default_factory=dict, description="labels of the container")

    @model_validator(mode="after")
    def _can_be_served(self) -> SeatFile:
        try:
            parse_size(self.kv_cache_bytes)
        except UsageError as error:
            raise ValueError(error.message) from None
        if self.max_lora_rank not in LORA_RANKS:
            raise ValueError(f"max_lora_rank must be one of {', '.join(map(str, LORA_RANKS))}")
        if self.served_name in self.adapters:
            raise ValueError(f"adapter {self.served_name} has the base's own name")
        if not names_version(self.image):
            raise ValueError("image must name a version: IMAGE:TAG or IMAGE@sha256:DIGEST")
        return self


def names_version(image: str) -> bool:
    """Whether an image is the same one tomorrow, as far as its name says."""
    name, at, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return digest.startswith("sha256:") if at else tag not in {"", "latest", "nightly"}


def render(seat: SeatFile) -> str:
    """The compose file of one service, `seat`."""
    arguments = [
        *("--model", MODEL, "--served-model-name", seat.served_name, "--port", str(seat.port)),
        *("--max-model-len", str(seat.max_model_len)),
        *("--kv-cache-memory-bytes", str(parse_size(seat.kv_cache_bytes))),
        *("--gpu-memory-utilization", f"{seat.gpu_memory_utilization:g}"),
        *("--enable-lora", "--max-loras", str(seat.max_loras), "--max-lora-rank", str(seat.max_lora_rank)),
        *("--max-cpu-loras", str(seat.max_cpu_loras or max(seat.max_loras, len(seat.adapters), 1))),
    ]
    if seat.adapters:
        arguments += ["--lora-modules", *(lora_module(name, folder) for name, folder in seat.adapters.items())]
    probe = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{seat.port}/health', timeout=5)"
    service = {
        "image": seat.image,
        "command": arguments,
        # The value stays in the shell's environment: compose fills it in, and refuses to start without it.
        "environment": {"VLLM_API_KEY": f"${{{seat.api_key_env}:?set {seat.api_key_env}}}"},
        "ports": [f"127.0.0.1:{seat.port}:{seat.port}"],
        "volumes": [f"{_literal(seat.model)}:{MODEL}:ro", f"{_literal(seat.adapters_folder)}:{ADAPTERS}:ro"],
        "ipc": "host",
        "restart": "unless-stopped",
        "healthcheck": {
            "test": ["CMD", "python3", "-c", probe],
            "interval": "30s",
            "timeout": "10s",
            "retries": 3,
            "start_period": "300s",
        },
        **({"labels": {_literal(name): _literal(each) for name, each in seat.labels.items()}} if seat.labels else {}),
        "deploy": {
            "resources": {"reservations": {"devices": [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]}}
        },
    }
    return yaml.safe_dump({"services": {"seat": service}}, sort_keys=False, allow_unicode=True, width=120)


def _literal(text: str) -> str:
    """Text that compose puts no variable into."""
    return text.replace("$", "$$")


def lora_module(name: str, folder: str) -> str:
    """What --lora-modules takes for one adapter."""
    return f"{name}={ADAPTERS}/{folder}"
