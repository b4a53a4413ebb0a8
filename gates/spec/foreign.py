"""YAML that others write for other programs, anchors and merges included: read as data, within bounds."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import JsonValue

from gates.errors import UsageError
from gates.spec.source import printable, read_text
from gates.spec.tree import MAX_VALUES

_NEXT = "name a YAML file that its own program reads"


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
