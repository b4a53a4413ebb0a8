"""What the end of every command's help shows: an example where the command gives none of its own, and exit codes."""

from __future__ import annotations

EXITS = """Exit codes: 0 PASS, 1 FAIL, 2 usage or bad gate, 3 INCONCLUSIVE, 4 INVALID, 5 TAMPERED;
70 internal error, 130 interrupted: neither is a verdict."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "gates check": ("gates check prereg/lv-bronte.yaml",),
    "gates seal": ("gates seal prereg/lv-bronte.yaml", "gates seal prereg/lv-bronte.yaml --yes --by ann"),
    "gates run": ("gates run prereg/lv-bronte.yaml", "gates run prereg/lv-bronte.yaml --arm ckpt475 --json"),
    "gates report": (
        "gates report reports/lv-bronte/001",
        "gates report reports/lv-bronte/001 --with-sources --out x.html",
    ),
    "gates compare": ("gates compare reports/lv-bronte/001 ckpt475 ckpt925",),
    "gates judge": ("gates judge values.csv --rule pairwise-range@1",),
    "gates schema": ("gates schema > gate.schema.json", "gates schema verdict"),
    "gates delta": ("gates delta novels/*.txt --mfw 500 --out distances.csv",),
    "gates corpora list": ("gates corpora list",),
    "gates corpora fetch": ("gates corpora fetch bronte", "gates corpora fetch my-author --from ~/texts --pin"),
    "gates corpora show": ("gates corpora show bronte",),
    "gates seat serve": ("gates seat serve --adapter lv-bronte=adapters/lv-bronte",),
    "gates seat status": ("gates seat status --compose compose.yaml",),
    "gates seat load": ("gates seat load lv-bronte /adapters/lv-bronte --max-lora-rank 32",),
    "gates seat unload": ("gates seat unload lv-bronte",),
    "gates seat compose": ("gates seat compose seat.yaml --out compose.yaml", "gates seat compose --lint compose.yaml"),
    "gates seat alias": ("gates seat alias bronte=lv-bronte --seat http://127.0.0.1:8027/v1",),
    "gates seat audit": ("gates seat audit --proxy http://127.0.0.1:4000 --key-env LITELLM_MASTER_KEY",),
    "gates seat bench": ("gates seat bench lv-bronte --rounds 30 --plot bench.svg",),
    "gates seat fit": ("gates seat fit models/carrier --adapter adapters/lv-bronte --card-total 24GiB",),
    "gates seat supports": ("gates seat supports LlamaForCausalLM",),
}


def epilog_of(path: str) -> str:
    """The end of the help of the command of that whole name."""
    examples = EXAMPLES.get(path, ())
    shown = "\n".join(["\b", "Example:", *(f"  {line}" for line in examples), "", ""]) if examples else ""
    return f"{shown}{EXITS}"
