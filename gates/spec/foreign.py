"""Files that others write for other programs, YAML with anchors and merges included: read as data, within bounds."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from pydantic import JsonValue

from gates.errors import InputError, UsageError
from gates.spec.source import printable, read_bytes, read_text
from gates.spec.tree import MAX_VALUES

_NEXT = "name a YAML file that its own program reads"
MAX_JSON = 8_000_000


def read_object(path: Path, next_step: str) -> dict[str, JsonValue]:
    """The object in a JSON file, such as a model's config.json.

    Raises UsageError, with `next_step`, when it holds none, or is no regular file of at most 8 MB.
    """
    try:
        document = json.loads(read_bytes(path, MAX_JSON))
    except InputError as error:
        raise UsageError(f"{path}: cannot be read: {error.problems[0].rule}", next_step=next_step) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no JSON: {str(error)[:200]}", next_step=next_step) from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not a JSON object", next_step=next_step)
    return document


def read_foreign(path: Path) -> JsonValue:
    """The values of a YAML file. Raises UsageError when it is none, InputError when it is no small text file.

    A few lines of aliases can stand for more values than any memory holds: what they stand for is counted first.
    """
    loader = yaml.SafeLoader(read_text(path))
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}) > MAX_VALUES:
            said = f"{printable(str(path))}: its aliases stand for more than {MAX_VALUES:,} values"
            raise UsageError(said, next_step=_NEXT)
        document: JsonValue = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise UsageError(f"{printable(str(path))}: not YAML: {printable(str(error))[:300]}", next_step=_NEXT) from None
    except (ValueError, OverflowError) as error:
        # An escape, a date or a number that is out of range.
        raise UsageError(f"{printable(str(path))}: not YAML: {printable(str(error))[:300]}", next_step=_NEXT) from None
    except RecursionError:
        raise UsageError(f"{printable(str(path))}: nested too deeply", next_step=_NEXT) from None
    finally:
        loader.dispose()
    return document


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """How many values a node stands for, each alias counted as what it names; endless for one that holds itself."""
    if id(node) not in known:
        known[id(node)] = float("inf")
        inside = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
        parts = inside if isinstance(node, yaml.CollectionNode) else []
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]
