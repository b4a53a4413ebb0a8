"""Where a gate's files may lie: the workspace, and paths that may not leave it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from gates.errors import UsageError
from gates.spec.source import printable, shown


def find_workspace(gate_path: Path) -> Path:
    """The nearest folder above the gate file that holds a `corpora/` folder, else the gate file's own folder."""
    home = gate_path.parent.resolve()
    return next((folder for folder in (home, *home.parents) if (folder / "corpora").is_dir()), home)


def resolve_inside(workspace: Path, gate_path: Path, value: str, *, field: str) -> Path:
    """The path that `value` names, relative to the gate file, links followed; it need not exist.

    Raises UsageError, naming `field`, for an absolute path and for one that leads out of the workspace.
    """
    rule = "a path in a gate file is relative to that file"
    _refuse_nonsense(value, field)
    if _absolute(value):
        raise UsageError(f"{field} = {shown(value)}: {rule}, this one is absolute", next_step=_inside(workspace))
    try:
        top = workspace.resolve()
        path = (gate_path.parent.resolve() / value).resolve()
    except (OSError, RuntimeError) as error:
        raise UsageError(
            f"{field} = {shown(value)}: the path cannot be followed: {printable(str(error))}",
            next_step="check the links on the way to it",
        ) from None
    if not path.is_relative_to(top):
        raise UsageError(
            f"{field} = {shown(value)}: {rule} and may not leave the workspace {printable(str(top))}",
            next_step=_inside(workspace),
        )
    return path


def adapter_path(workspace: Path, gate_path: Path, value: str, *, field: str = "adapter") -> Path:
    """The path of an adapter: an absolute one as it stands, for a remote seat keeps adapters where it likes.

    A relative one is relative to the gate file and must stay inside the workspace. Raises UsageError as
    `resolve_inside` does.
    """
    _refuse_nonsense(value, field)
    if _absolute(value):
        return Path(value)
    return resolve_inside(workspace, gate_path, value, field=field)


def _absolute(value: str) -> bool:
    windows = PureWindowsPath(value)
    return PurePosixPath(value).is_absolute() or bool(windows.drive or windows.root)


def _refuse_nonsense(value: str, field: str) -> None:
    if not value.strip() or not value.isprintable():
        raise UsageError(
            f"{field} = {shown(value)}: a path may not be empty or hold control characters",
            next_step=f"write the path of a file in {field}",
        )


def _inside(workspace: Path) -> str:
    return f"copy or move the file into {printable(str(workspace))} and name it relative to the gate file"
