"""What vLLM's source declares about LoRA for an architecture: read by parsing, never by importing."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

from gates.errors import InputError, UsageError
from gates.spec.explain import did_you_mean
from gates.spec.source import read_bytes, shown

MODELS = Path("model_executor", "models")
LARGEST = 4 << 20
"""A source file over this many bytes is not parsed."""

LONGEST = 2000
"""A statement of more nodes of syntax is not written out."""

ATTRIBUTES = ("packed_modules_mapping", "embedding_modules", "is_3d_moe_weight", "supports_lora")
EXPERTS = "get_expert_mapping"


@dataclass(frozen=True)
class Place:
    """Where something is declared: file within the source tree, line, and what stands there."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Support:
    """What the class of an architecture declares, itself or through a base class; None where nothing does.

    `unread` are files that could not be read: what is declared there is not known.
    """

    architecture: str
    declared: Place
    lora: Place | None
    attributes: dict[str, Place]
    experts: Place | None
    unread: tuple[str, ...] = field(default=())

    @property
    def supported(self) -> bool | None:
        """Whether LoRA is declared; None where that is not known."""
        return True if self.lora else None if self.unread else False


@dataclass(frozen=True)
class _Class:
    module: str
    node: ast.ClassDef


class Source:
    """A vLLM source tree: the folder that holds model_executor/, or one above it."""

    def __init__(self, folder: Path) -> None:
        self.root = next((root for root in (folder, folder / "vllm") if (root / MODELS).is_dir()), folder)
        if not (self.root / MODELS / "registry.py").is_file():
            raise UsageError(
                f"{folder}: no vLLM source: {MODELS}/registry.py is not in it",
                next_step="give the folder of an installed or cloned vllm with --source",
            )
        self._unread: dict[str, str] = {}
        # Once a module, for this source alone.
        self._tree = cache(self._parsed)
        self._classes = cache(self._declared)
        self._imports = cache(self._imported)

    def architectures(self) -> dict[str, tuple[str, str]]:
        """Architecture -> (module, class), from the registry's literal tables."""
        found: dict[str, tuple[str, str]] = {}
        tree = self._tree("registry")
        for node in ast.walk(tree) if tree else ():
            if not isinstance(node, ast.Dict):
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                pair = _strings(value)
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and len(pair) == 2:
                    found[key.value] = (pair[0], pair[1])
        return found

    def support(self, architecture: str) -> Support:
        """What the architecture's class declares. Raises UsageError when the registry or its module lacks it."""
        known = self.architectures()
        if not known:
            raise UsageError(
                f"{MODELS / 'registry.py'} names no architectures{self._why('registry')}",
                next_step="give a whole source tree with --source",
            )
        if architecture not in known:
            hint = did_you_mean(architecture, list(known))
            raise UsageError(
                f"{shown(architecture)} is no architecture of this vLLM{f' ({hint})' if hint else ''}",
                next_step="`architectures` in the model's config.json names it; another vLLM may know it",
            )
        start = self._class(*known[architecture])
        if start is None:
            module, name = known[architecture]
            raise UsageError(
                f"{shown(module)[1:-1]}.py declares no class {shown(name)[1:-1]}{self._why(module)}",
                next_step="the source is not whole, or of a newer kind: give that of the vLLM you run with --source",
            )
        family = list(self._ancestors(start))
        attributes: dict[str, Place] = {}
        lora = None
        for one in family:
            for statement in one.node.body:
                for name in _assigned(statement):
                    attributes.setdefault(name, self._place(one, statement, _text(statement)))
            bases = [_text(base) for base in one.node.bases]
            if lora is None and any(base.split(".")[-1] == "SupportsLoRA" for base in bases):
                lora = self._place(one, one.node, f"class {one.node.name}({', '.join(bases)})")
        if "supports_lora" in attributes and attributes["supports_lora"].text.endswith("= False"):
            lora = None
        return Support(
            architecture,
            declared=self._place(start, start.node, f"class {start.node.name}"),
            lora=lora,
            attributes=attributes,
            experts=self._experts(family),
            unread=tuple(self._unread.values()),
        )

    def _experts(self, family: list[_Class]) -> Place | None:
        """The expert mapping of a class of the family, or of another class in its module: often the inner model's."""
        near = [_Class(family[0].module, node) for node in self._classes(family[0].module).values()]
        for one in (*family, *near):
            for statement in one.node.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == EXPERTS:
                    return self._place(one, statement, f"class {one.node.name}: def {EXPERTS}")
        return None

    def _declared(self, module: str) -> dict[str, ast.ClassDef]:
        tree = self._tree(module)
        found: dict[str, ast.ClassDef] = {}
        for node in tree.body if tree else ():
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, node)
        return found

    def _ancestors(self, start: _Class) -> Iterator[_Class]:
        """The class and its base classes in this folder of the source, each once, nearest first."""
        waiting, seen = deque([start]), set[tuple[str, str]]()
        while waiting:
            one = waiting.popleft()
            if (one.module, one.node.name) in seen:
                continue
            seen.add((one.module, one.node.name))
            yield one
            imported = self._imports(one.module)
            for base in one.node.bases:
                name = _text(base).split("[")[0]
                module, original = imported.get(name, (one.module, name))
                found = self._class(module, original)
                # The interfaces say what support means, not that a model has it.
                if found is not None and module not in ("interfaces", "interfaces_base"):
                    waiting.append(found)

    def _imported(self, module: str) -> dict[str, tuple[str, str]]:
        tree = self._tree(module)
        found: dict[str, tuple[str, str]] = {}
        for node in tree.body if tree else ():
            if isinstance(node, ast.ImportFrom) and node.module:
                near = node.level == 1 or node.module.startswith("vllm.model_executor.models.")
                if near:
                    last = node.module.split(".")[-1]
                    found |= {alias.asname or alias.name: (last, alias.name) for alias in node.names}
        return found

    def _class(self, module: str, name: str) -> _Class | None:
        node = self._classes(module).get(name)
        return None if node is None else _Class(module, node)

    def _why(self, module: str) -> str:
        return f" ({self._unread[module]})" if module in self._unread else ""

    def _parsed(self, module: str) -> ast.Module | None:
        path = self.root / MODELS / f"{module}.py"
        # A module's name comes from the source itself: it may not lead out of its folder.
        if not module.isidentifier():
            return None
        try:
            return ast.parse(read_bytes(path, LARGEST))
        except InputError as error:
            self._unread[module] = f"{MODELS / path.name}: {error.problems[0].rule}"
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._unread[module] = f"{MODELS / path.name}: cannot be parsed: {type(error).__name__}"
        return None

    def _place(self, one: _Class, node: ast.stmt, text: str) -> Place:
        first = text.splitlines()[0]
        whole = first if first == text else " ".join(text.split())
        return Place((MODELS / f"{one.module}.py").as_posix(), node.lineno, whole)


def _text(node: ast.AST) -> str:
    """A node as source text, where it is of a size that anybody would read."""
    if sum(1 for _ in islice(ast.walk(node), LONGEST)) == LONGEST:
        return "(too long to be shown)"
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"


def _assigned(statement: ast.stmt) -> list[str]:
    """The attributes of interest that a statement of a class body sets."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    return [target.id for target in targets if isinstance(target, ast.Name) and target.id in ATTRIBUTES]


def _strings(node: ast.expr) -> list[str]:
    if not isinstance(node, ast.Tuple | ast.List):
        return []
    values = [item.value for item in node.elts if isinstance(item, ast.Constant)]
    return [value for value in values if isinstance(value, str)]
