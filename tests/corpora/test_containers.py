from __future__ import annotations

import io
import lzma
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from gates.corpora.containers import Limits, is_archive, members
from gates.errors import CorpusError


def tar(path: Path, *entries: tuple[tarfile.TarInfo, bytes], mode: str = "w:xz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]  # the mode is one of tarfile's own
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_wanted_members_of_a_tar_are_read(tmp_path: Path, mode: str) -> None:
    path = tar(tmp_path / "a", (tarfile.TarInfo("x/a.txt"), b"one"), (tarfile.TarInfo("x/b.txt"), b"two"), mode=mode)
    assert is_archive(path)
    assert list(members(path, ["x/b.txt", "x/c.txt"])) == [("x/b.txt", b"two")]


def test_wanted_members_of_a_zip_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", b"one")
    assert list(members(tmp_path / "a.zip", ["a.txt"])) == [("a.txt", b"one")]


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:evil.txt"])
def test_an_archive_with_a_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    path = tar(tmp_path / "a.tar.xz", (tarfile.TarInfo(name), b"x"), (tarfile.TarInfo("a.txt"), b"one"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", b"one")
        archive.writestr(name, b"x")
    for source in (path, tmp_path / "a.zip"):
        with pytest.raises(CorpusError, match="leads out of the archive"):
            list(members(source, ["a.txt"]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar.xz", "a.zip"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_a_wanted_member_that_is_no_plain_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    path = tar(tmp_path / "a.tar.xz", (tarfile.TarInfo("b.txt"), b"one"), link("a.txt", "b.txt", kind))
    with pytest.raises(CorpusError, match=r"a\.txt is a link, a folder or a device"):
        list(members(path, ["a.txt"]))
    assert list(members(path, ["b.txt"])) == [("b.txt", b"one")]


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("a.txt")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(CorpusError, match="is a link"):
        list(members(tmp_path / "a.zip", ["a.txt"]))


def test_a_link_that_leads_out_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(CorpusError, match="leads out of the folder"):
        list(members(tmp_path / "in", ["a.txt"]))


def test_bombs_are_refused_before_they_unpack(tmp_path: Path) -> None:
    limits = Limits(file=1000, total=20_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(10_000_000))
    unwanted = tar(tmp_path / "b.tar.xz", (tarfile.TarInfo("pad"), bytes(10_000_000)), (tarfile.TarInfo("a.txt"), b"x"))
    wanted = tar(tmp_path / "c.tar.xz", (tarfile.TarInfo("a.txt"), bytes(5000)))
    for source, why in (
        (tmp_path / "a.zip", "larger than 1000"),
        (unwanted, "more than 20000"),
        (wanted, "larger than"),
    ):
        assert source.stat().st_size < 20_000
        with pytest.raises(CorpusError, match=why):
            list(members(source, ["a.txt"], limits))


def test_many_files_that_are_too_much_together_are_refused(tmp_path: Path) -> None:
    names = [f"{number}.txt" for number in range(30)]
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, bytes(900))
    with pytest.raises(CorpusError, match="over 20000 unpacked bytes"):
        list(members(tmp_path / "a.zip", names, Limits(file=1000, total=20_000)))
    with pytest.raises(CorpusError, match="the archive holds more than 29 members"):
        list(members(tmp_path / "a.zip", names, Limits(members=29)))
    with pytest.raises(CorpusError, match="the archive has a list of members of 1550 bytes"):
        list(members(tmp_path / "a.zip", names, Limits(members=3)))
    assert len(list(members(tmp_path / "a.zip", names, Limits(members=30)))) == 30
    many = tar(tmp_path / "a.tar", *((tarfile.TarInfo(name), b"") for name in names), mode="w")
    with pytest.raises(CorpusError, match=r"29\.txt is one of more than 29 members"):
        list(members(many, names, Limits(members=29)))
    assert len(list(members(many, names, Limits(members=30)))) == 30


def test_a_zip_of_very_many_members_is_refused_before_its_list_is_made_objects_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end says that it holds one member."""
    member = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[0] * 6, 0, 0, 0, 1, *[0] * 4, 0, 0) + b"a"
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 1000 * len(member), 4, 0)
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04" + member * 1000 + end)
    monkeypatch.setattr(zipfile, "ZipInfo", None)  # what the library makes of each member
    with pytest.raises(CorpusError, match="the archive holds more than 999 members"):
        list(members(tmp_path / "a.zip", ["a"], Limits(members=999)))


@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04 broken", b"\xfd7zXZ\x00 broken", b"\x1f\x8b broken"])
def test_what_is_no_archive_is_an_error_with_a_next_step(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(CorpusError, match="not a readable folder, zip or tar archive") as caught:
        list(members(tmp_path / "a", ["a.txt"]))
    assert caught.value.next_step


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nowhere: cannot read: No such file"):
        list(members(tmp_path / "nowhere", ["a.txt"]))


def test_a_dictionary_of_half_a_gigabyte_is_refused(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", (tarfile.TarInfo("a.txt"), b"one"), mode="w")
    huge = lzma.compress(path.read_bytes(), filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 512 * 2**20}])
    (tmp_path / "a.tar.xz").write_bytes(huge)
    with pytest.raises(CorpusError, match="not a readable folder, zip or tar archive: Memory usage limit exceeded"):
        list(members(tmp_path / "a.tar.xz", ["a.txt"]))
