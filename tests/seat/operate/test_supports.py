"""What a source tree declares about LoRA: a small tree written here in the shape of vLLM's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gates.errors import UsageError
from gates.seat.operate.supports import Source
from tests.flow.conftest import gates

REGISTRY = """\
_TEXT_GENERATION_MODELS = {
    "PlainForCausalLM": ("plain", "PlainForCausalLM"),
    "ChildForCausalLM": ("child", "ChildForCausalLM"),
    "MixedForCausalLM": ("mixed", "MixedForCausalLM"),
    "BareForCausalLM": ("bare", "BareForCausalLM"),
    "BrokenForCausalLM": ("broken", "BrokenForCausalLM"),
    "EscapeForCausalLM": ("../../../outside", "EscapeForCausalLM"),
}
"""
MODELS = {
    "registry": REGISTRY,
    "interfaces": "class SupportsLoRA:\n    supports_lora = True\n    embedding_modules: dict = {}\n",
    "plain": """\
from torch import nn

from .interfaces import SupportsLoRA, SupportsPP


class PlainForCausalLM(nn.Module, SupportsLoRA, SupportsPP):
    packed_modules_mapping = {
        "qkv_proj": ["q_proj", "k_proj", "v_proj"],
    }
    embedding_modules: dict[str, str] = {"lm_head": "output_embeddings"}
""",
    "child": "from .plain import PlainForCausalLM as Parent\n\n\nclass ChildForCausalLM(Parent):\n    pass\n",
    "mixed": """\
from vllm.model_executor.models.interfaces import SupportsLoRA


class MixedForCausalLM(SupportsLoRA):
    pass


class MixedModel:
    def get_expert_mapping(self):
        raise SystemExit("parsed code is never run")
""",
    "bare": "class BareForCausalLM(BareForCausalLM):\n    pass\n\nraise SystemExit\n",
    "broken": "class BrokenForCausalLM(:\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    models = tmp_path / "vllm" / "model_executor" / "models"
    models.mkdir(parents=True)
    for name, text in MODELS.items():
        (models / f"{name}.py").write_text(text, "utf-8")
    return tmp_path


def test_declared_support_with_file_and_line(tree: Path) -> None:
    found = Source(tree).support("PlainForCausalLM")
    assert (
        str(found.lora)
        == "model_executor/models/plain.py:6: class PlainForCausalLM(nn.Module, SupportsLoRA, SupportsPP)"
    )
    assert found.attributes["packed_modules_mapping"].line == 7
    assert "'qkv_proj': ['q_proj', 'k_proj', 'v_proj']" in found.attributes["packed_modules_mapping"].text
    assert found.attributes["embedding_modules"].line == 10
    assert found.experts is None


def test_support_is_inherited_and_named_where_it_stands(tree: Path) -> None:
    found = Source(tree / "vllm").support("ChildForCausalLM")
    assert found.declared.file == "model_executor/models/child.py"
    assert found.lora is not None
    assert found.lora.file == "model_executor/models/plain.py"
    assert "packed_modules_mapping" in found.attributes


def test_expert_mapping_of_a_mixture(tree: Path) -> None:
    found = Source(tree).support("MixedForCausalLM")
    assert found.experts is not None
    assert str(found.experts) == "model_executor/models/mixed.py:9: class MixedModel: def get_expert_mapping"
    assert found.lora is not None
    assert found.attributes == {}


def test_a_class_that_declares_nothing_and_inherits_itself(tree: Path) -> None:
    found = Source(tree).support("BareForCausalLM")
    assert found.lora is None
    ended = gates("seat", "supports", "BareForCausalLM", "--source", tree)
    assert ended.returncode == 1
    assert "LoRA support: not declared" in ended.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PlainForCausalM", "no architecture of this vLLM .did you mean .?PlainForCausalLM"),
        ("BrokenForCausalLM", "broken.py declares no class"),
        ("EscapeForCausalLM", "outside.py declares no class"),
    ],
)
def test_what_is_not_there_is_said(tree: Path, name: str, message: str) -> None:
    (tree.parent / "outside.py").write_text("class EscapeForCausalLM: pass", "utf-8")
    with pytest.raises(UsageError, match=message):
        Source(tree).support(name)


def test_a_model_folder_names_its_architecture(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["PlainForCausalLM"]}), "utf-8")
    (found,) = json.loads(gates("seat", "supports", tmp_path, "--source", tree, "--json").stdout)
    assert found["supported"] is True
    (tmp_path / "config.json").write_text("[]", "utf-8")
    assert "not a JSON object" in gates("seat", "supports", tmp_path, "--source", tree).stderr
    (tmp_path / "config.json").write_text('{"architectures": ["X", 5]}', "utf-8")
    assert "not a list of names" in gates("seat", "supports", tmp_path, "--source", tree).stderr


def write(tree: Path, name: str, text: str) -> None:
    (tree / "vllm" / "model_executor" / "models" / f"{name}.py").write_text(text, "utf-8")


def test_what_cannot_be_read_is_not_said_to_be_missing(tree: Path) -> None:
    write(tree, "child", "from .broken import Broken\n\n\nclass ChildForCausalLM(Broken):\n    pass\n")
    ended = gates("seat", "supports", "ChildForCausalLM", "--source", tree)
    assert ended.returncode == 3
    assert "LoRA support: not known" in ended.stdout
    assert "not read: model_executor/models/broken.py: cannot be parsed: SyntaxError" in ended.stdout
    (found,) = json.loads(gates("seat", "supports", "ChildForCausalLM", "--source", tree, "--json").stdout)
    assert found["supported"] is None
    write(tree, "registry", "_MODELS = {")
    assert "registry.py names no architectures (" in gates("seat", "supports", "X", "--source", tree).stderr


def test_support_that_is_taken_back_is_none(tree: Path) -> None:
    write(tree, "child", MODELS["child"].replace("pass", "supports_lora = False"))
    assert Source(tree).support("ChildForCausalLM").supported is False


def test_a_file_that_is_no_file_or_endless_is_not_read(tree: Path, tmp_path: Path) -> None:
    module = tree / "vllm" / "model_executor" / "models" / "child.py"
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to(path.name)):
        module.unlink()
        make(module)
        with pytest.raises(UsageError, match=r"child\.py declares no class .*child\.py: (this is not|the file cannot)"):
            Source(tree).support("ChildForCausalLM")
    os.mkfifo(tmp_path / "config.json")
    assert "not a regular file" in gates("seat", "supports", tmp_path, "--source", tree).stderr


@pytest.mark.parametrize(
    "value",
    ["-" * 900 + "1", "1" + " + 1" * 900, "a" + "[0]" * 900, "[" + "1, " * 5000 + "]"],
    ids=["-", "+", "[", ","],
)
def test_what_nobody_would_read_is_not_written_out(tree: Path, value: str) -> None:
    write(tree, "child", f"class ChildForCausalLM(nn.Module):\n    supports_lora = {value}\n")
    place = Source(tree).support("ChildForCausalLM").attributes["supports_lora"]
    assert place.text in ("(too long to be shown)", "(nested too deeply to be shown)")


def test_many_ancestors_are_walked_once(tree: Path) -> None:
    wide = "".join(
        f"class C{n}({', '.join(f'C{m}' for m in range(max(0, n - 40), n))}):\n    pass\n" for n in range(400)
    )
    write(tree, "child", f"{wide}class ChildForCausalLM(C399):\n    pass\n")
    assert Source(tree).support("ChildForCausalLM").supported is False


def test_a_folder_without_vllm_is_refused(tmp_path: Path) -> None:
    ended = gates("seat", "supports", "X", "--source", tmp_path)
    assert ended.returncode == 2
    assert "no vLLM source" in ended.stderr
