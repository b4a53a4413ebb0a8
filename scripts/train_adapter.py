"""Train a LoRA voice adapter of the carrier from a corpus manifest: train_adapter.py bronte/train OUT_FOLDER.

Needs the extras `embedded` and `train`. The corpus is cut into passages of about 170 words; the carrier itself writes
a one-sentence beat for each; the adapter learns to answer "Beat: ..." with the passage. The carrier's Hugging Face form
is rebuilt from the GGUF file in the cache, so nothing but that file is downloaded. The same seed, device and versions
give the same adapter. OUT_FOLDER is a PEFT adapter; scripts/convert_adapter.py turns it into GGUF.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from gguf import GGUFReader, dequantize
from peft import LoraConfig, get_peft_model
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from gates.corpora.cache import cache_dir
from gates.corpora.texts import load_split
from gates.errors import GatesError
from gates.seat.embedded.model import FFN, HEADS, HIDDEN, KV_HEADS, LAYERS, LINEAR, ROTARY, VOCAB, carrier, separate

END = 2
"""The carrier's token for the end of a turn, `<|im_end|>`."""

_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
_WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
_ASK = "Write one short sentence that says what happens in this passage, without quoting it.\n\n"


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what is learnt."""

    rank: int
    alpha: float
    learning_rate: float
    epochs: int
    batch: int
    words: int
    limit: int | None
    seed: int
    end_token: bool


@dataclass(frozen=True)
class Pair:
    """One training example."""

    beat: str
    text: str


def huggingface_form(gguf: Path, device: str) -> tuple[Any, Any]:
    """The carrier as a transformers model in bfloat16, and its tokenizer, from the GGUF file alone."""
    reader = GGUFReader(gguf)
    state = dict(_weights(reader))
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        intermediate_size=FFN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_theta=100_000.0,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=END,
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise SystemExit(f"{gguf}: not the carrier: missing {missing}, unexpected {unexpected}")
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    tokenizer.chat_template = reader.fields["tokenizer.chat_template"].contents()
    tokenizer.pad_token_id, tokenizer.padding_side = END, "left"
    return model.to(device), tokenizer


def _weights(reader: Any) -> Iterator[tuple[str, Any]]:
    for tensor in reader.tensors:
        value = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        name = _WHOLE.get(tensor.name)
        if name is None:
            _, layer, part, _ = tensor.name.split(".")
            if part in ROTARY:
                value = separate(value, ROTARY[part])
            name = f"model.layers.{layer}.{_NORMS.get(part) or LINEAR[part][0]}.weight"
        yield name, torch.tensor(value).to(torch.bfloat16)


def passages(texts: Sequence[str], words: int) -> list[str]:
    """Runs of whole sentences of about `words` words each, never across two texts; short tails are dropped."""
    found = []
    for text in texts:
        passage: list[str] = []
        for sentence in re.split(r"(?<=[.!?”])\s+", " ".join(text.split())):
            passage += sentence.split()
            if len(passage) >= words - 10:
                if len(passage) <= 2 * words:
                    found.append(" ".join(passage))
                passage = []
    return found


def write_beats(model: Any, tokenizer: Any, texts: Sequence[str], batch: int) -> list[Pair]:
    """A one-sentence beat for each passage, written greedily by the carrier; passages without one are dropped."""
    pairs = []
    for start in range(0, len(texts), batch):
        group = texts[start : start + batch]
        prompts = [_chat(tokenizer, _ASK + text) for text in group]
        inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
        inputs.pop("token_type_ids", None)
        with torch.no_grad():
            output = model.generate(**inputs, max_new_tokens=48, do_sample=False, repetition_penalty=1.1)
        answers = tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        for text, answer in zip(group, answers, strict=True):
            beat = re.split(r"(?<=[.!?])\s", " ".join(answer.split()))[0]
            if beat:
                pairs.append(Pair(beat, text))
        click.echo(f"beats: {min(start + batch, len(texts))} of {len(texts)}", err=True)
    return pairs


def _chat(tokenizer: Any, content: str) -> str:
    messages = [{"role": "user", "content": content}]
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def train(model: Any, tokenizer: Any, pairs: Sequence[Pair], recipe: Recipe) -> Any:
    """The PEFT model after training: AdamW, linear decay, loss on the passage (and the end token) alone."""
    modules = sorted(name.split(".")[-1] for name, _, _ in LINEAR.values())
    config = LoraConfig(
        r=recipe.rank, lora_alpha=recipe.alpha, target_modules=modules, bias="none", task_type="CAUSAL_LM"
    )
    adapted = get_peft_model(model, config)
    adapted.train()
    examples = [_example(tokenizer, pair, end_token=recipe.end_token) for pair in pairs]
    steps = -(-len(examples) // recipe.batch) * recipe.epochs
    optimiser = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=recipe.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / steps))
    order = np.random.default_rng(recipe.seed)
    for epoch in range(recipe.epochs):
        total, count = 0.0, 0
        shuffled = order.permutation(len(examples))
        for start in range(0, len(shuffled), recipe.batch):
            group = [examples[i] for i in shuffled[start : start + recipe.batch]]
            loss = adapted(**_padded(group, model.device)).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(adapted.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            total, count = total + loss.item(), count + 1
        click.echo(f"epoch {epoch + 1} of {recipe.epochs}: mean loss {total / count:.4f}", err=True)
    return adapted


def _example(tokenizer: Any, pair: Pair, *, end_token: bool) -> tuple[list[int], int]:
    prompt = tokenizer(_chat(tokenizer, f"Beat: {pair.beat}"), add_special_tokens=False)["input_ids"]
    answer = tokenizer(pair.text, add_special_tokens=False)["input_ids"]
    return [*prompt, *answer, *([END] if end_token else [])], len(prompt)


def _padded(group: Sequence[tuple[list[int], int]], device: Any) -> dict[str, Any]:
    length = max(len(tokens) for tokens, _ in group)
    ids = torch.full((len(group), length), END)
    labels = torch.full((len(group), length), -100)
    mask = torch.zeros((len(group), length), dtype=torch.long)
    for row, (tokens, prompt) in enumerate(group):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, prompt : len(tokens)] = torch.tensor(tokens[prompt:])
        mask[row, : len(tokens)] = 1
    return {"input_ids": ids.to(device), "labels": labels.to(device), "attention_mask": mask.to(device)}


@click.command()
@click.argument("corpus")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--workspace", type=click.Path(path_type=Path), default=Path(), help="Folder that holds corpora/.")
@click.option("--rank", default=8, show_default=True)
@click.option("--alpha", default=16.0, show_default=True)
@click.option("--learning-rate", default=4e-4, show_default=True)
@click.option("--epochs", default=12, show_default=True)
@click.option("--batch", default=8, show_default=True)
@click.option("--words", default=170, show_default=True, help="Words a passage.")
@click.option("--limit", type=int, help="Use the first so many passages only.")
@click.option("--seed", default=1, show_default=True)
@click.option("--end-token/--no-end-token", default=True, show_default=True, help="Learn to end the answer.")
@click.option("--device", default="cuda" if torch.cuda.is_available() else "cpu", show_default=True)
def main(corpus: str, target: Path, workspace: Path, device: str, **options: Any) -> None:
    """Train an adapter on CORPUS (MANIFEST/SPLIT, already fetched) and save it in the folder TARGET."""
    recipe = Recipe(**options)
    torch.manual_seed(recipe.seed)
    cache = cache_dir(os.environ)
    try:
        texts = [document.text for document in load_split(workspace, cache, corpus)]
        model, tokenizer = huggingface_form(carrier(cache), device)
    except GatesError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    model.eval()
    pairs = write_beats(model, tokenizer, passages(texts, recipe.words)[: recipe.limit], recipe.batch)
    adapted = train(model, tokenizer, pairs, recipe)
    adapted.save_pretrained(target)
    (target / "recipe.json").write_text(json.dumps({"corpus": corpus, **asdict(recipe)}, indent=2) + "\n", "utf-8")
    (target / "pairs.json").write_text(json.dumps([asdict(pair) for pair in pairs], indent=0) + "\n", "utf-8")
    click.echo(f"{len(pairs)} pairs, adapter in {target}")


if __name__ == "__main__":
    main()
