"""What the front knows besides the pool: names, paths as they were given, and the counters behind /metrics."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gates import __version__
from gates.records import digest
from gates.seat.embedded import inner
from gates.seat.embedded.engine import Engine
from gates.seat.embedded.model import GGUF_SHA256
from gates.seat.embedded.protocol import ApiError
from gates.seat.embedded.sampling import SAMPLERS


@dataclass
class State:
    """One seat's state. `roots` maps adapter names to their paths as the caller gave them, in load order."""

    engine: Engine
    cache: Path
    base_name: str
    roots: dict[str, str]
    runtime_lora: bool = False
    counters: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)

    @property
    def context(self) -> int:
        """Tokens a prompt and its answer may have together."""
        return self.engine.context

    def fingerprint(self) -> str:
        """Names version, model and settings; like vLLM's it is the same for the base and every adapter."""
        identity = {
            "model": GGUF_SHA256,
            "settings": inner.SETTINGS,
            "context": self.context,
            "samplers": list(SAMPLERS),
            "xllamacpp": version("xllamacpp"),
        }
        return f"gates-embedded-{__version__}-{digest(identity)[:8]}"

    def resolve(self, model: str | None) -> str | None:
        """The adapter a request's `model` names, None for the base. Raises ApiError 404 for an unknown name."""
        if not model or model == self.base_name:
            return None
        if model not in self.roots:
            message = f"The model `{model}` does not exist. Valid aliases: {self.base_name}."
            raise ApiError(404, message, kind="NotFoundError", param="model")
        return model

    def cards(self) -> list[dict[str, Any]]:
        """The model cards, base first."""
        base = self._card(self.base_name, str(self.engine.model), None, self.context)
        return [base, *(self._card(name, root, self.base_name, None) for name, root in self.roots.items())]

    def _card(self, name: str, root: str, parent: str | None, length: int | None) -> dict[str, Any]:
        now = int(time.time())
        allowed = {"allow_sampling": True, "allow_logprobs": True, "allow_view": True}
        denied = {"allow_create_engine": False, "allow_search_indices": False, "allow_fine_tuning": False}
        permission = {
            "id": f"modelperm-{secrets.token_hex(8)}",
            "object": "model_permission",
            "created": now,
            **allowed,
            **denied,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        return {
            "id": name,
            "object": "model",
            "created": now,
            "owned_by": "vllm",
            "root": root,
            "parent": parent,
            "max_model_len": length,
            "permission": [permission],
        }

    def metrics(self) -> str:
        """The series that clients of vLLM read, in Prometheus' text form."""
        base = f'{{model_name={json.dumps(self.base_name)},engine="0"}}'
        names = json.dumps(",".join(self.roots))
        lora = f'{{max_lora="{len(self.roots)}",running_lora_adapters={names},waiting_lora_adapters=""}}'
        tokens = self.context * self.engine.count
        cache = (
            f'{{block_size="1",num_gpu_blocks="{tokens}",kv_cache_size_tokens="{tokens}",cache_dtype="f16",'
            f'kv_cache_max_concurrency="{self.engine.count}",enable_prefix_caching="False",engine="0"}}'
        )
        lines = [
            ("vllm:lora_requests_info", "gauge", [f"{lora} {time.time()}"]),
            ("vllm:cache_config_info", "gauge", [f"{cache} 1.0"]),
            ("vllm:num_requests_running", "gauge", [f"{base} {self.engine.running}"]),
            ("vllm:num_requests_waiting", "gauge", [f"{base} {self.engine.waiting}"]),
            ("vllm:prefix_cache_queries_total", "counter", [f"{base} 0"]),
            ("vllm:prefix_cache_hits_total", "counter", [f"{base} 0"]),
            ("vllm:num_preemptions_total", "counter", [f"{base} 0"]),
            ("vllm:prompt_tokens_total", "counter", [f"{base} {self.counters['prompt']}"]),
            ("vllm:generation_tokens_total", "counter", [f"{base} {self.counters['generation']}"]),
            (
                "vllm:request_success_total",
                "counter",
                [f'{base[:-1]},finished_reason="{why}"}} {count}' for why, count in sorted(self.finished.items())],
            ),
        ]
        return "".join(
            f"# TYPE {name} {kind}\n" + "".join(f"{name}{sample}\n" for sample in samples)
            for name, kind, samples in lines
        )
