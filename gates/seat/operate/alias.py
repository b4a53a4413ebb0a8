"""LiteLLM's entry for a voice: one alias, one target."""

from __future__ import annotations

import yaml


def alias_entry(alias: str, model: str, base_url: str, api_key_env: str | None) -> str:
    """The `model_list` entry (YAML) that routes `alias` to a served name.

    `hosted_vllm/` is LiteLLM's provider for vLLM; the key is named, never written.
    """
    target = {"model": f"hosted_vllm/{model}", "api_base": base_url}
    if api_key_env is not None:
        target["api_key"] = f"os.environ/{api_key_env}"
    return yaml.safe_dump([{"model_name": alias, "litellm_params": target}], sort_keys=False, allow_unicode=True)
