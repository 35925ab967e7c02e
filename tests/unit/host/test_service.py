"""Units on disk, in a directory of the test's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.errors import PerdureError, Refused
from perdure.host import service
from perdure.host.unit_program import Program
from perdure.host.units import FileState, UnitFile, units

UNITS = units("linux", Program(words=("/usr/bin/perdure",), environment={}), system=False, home="/home/dev")
OTHERS = units("linux", Program(words=("/opt/perdure",), environment={}), system=False, home="/home/dev")


def write(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)


def install(folder: Path, wanted: tuple[UnitFile, ...] = UNITS) -> set[FileState]:
    return {each.state for each in service.install(wanted, str(folder), write)}


def states(folder: Path) -> set[FileState]:
    return {each.state for each in service.look(UNITS, str(folder))}


def test_in_and_out(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert install(folder) == {FileState.MISSING}
    assert install(folder) == {FileState.INSTALLED}
    assert states(folder) == {FileState.INSTALLED}
    service.remove(service.look(UNITS, str(folder)))
    assert states(folder) == {FileState.MISSING}
    assert os.listdir(folder) == []


def test_another_version_of_ours_is_replaced(tmp_path: Path) -> None:
    install(tmp_path, OTHERS)
    assert install(tmp_path) == {FileState.OUTDATED}
    assert states(tmp_path) == {FileState.INSTALLED}


@pytest.mark.parametrize("what", ["foreign", "edited", "masked", "directory"])
def test_nothing_of_others_is_touched(tmp_path: Path, what: str) -> None:
    path = tmp_path / "perdure-restore.service"
    if what == "foreign":
        path.write_text("[Unit]\n")
    elif what == "edited":
        path.write_text(OTHERS[1].text + "Nice=5\n")
    elif what == "masked":
        path.symlink_to("/dev/null")
    else:
        path.mkdir()
    with pytest.raises(Refused, match=r"perdure-restore\.service"):
        install(tmp_path)
    assert os.listdir(tmp_path) == ["perdure-restore.service"]
    service.remove(service.look(UNITS, str(tmp_path)))
    assert os.path.lexists(path)


def test_the_links_of_an_enabled_unit_go_with_it(tmp_path: Path) -> None:
    install(tmp_path)
    for wants, name in (("default.target.wants", "perdure-up.service"), ("x.wants", "perdure-restore.service")):
        (tmp_path / wants).mkdir()
        (tmp_path / wants / name).symlink_to(tmp_path / name)
    (tmp_path / "x.wants" / "other.service").symlink_to("/usr/lib/other.service")
    service.remove(service.look(UNITS, str(tmp_path)))
    assert sorted(os.listdir(tmp_path)) == ["x.wants"]
    assert os.listdir(tmp_path / "x.wants") == ["other.service"]


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PerdureError, match="could not be"):
        install(tmp_path / "file" / "x")


def test_another_users_home_is_refused(tmp_path: Path) -> None:
    service.refuse_other_home(str(tmp_path / "not" / "there"))
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(Refused, match="another user"):
        service.refuse_other_home(str(tmp_path / "not" / "there"))


def test_root_runs_nothing_that_others_can_change(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root owns files that are root's")
    path = tmp_path / "perdure"
    path.write_text("")
    service.refuse_what_others_can_change([str(path)])
    link = tmp_path / "link"
    link.symlink_to(path)
    os.chmod(path, 0o666)
    with pytest.raises(Refused, match="as root"):
        service.refuse_what_others_can_change([str(link)])
    os.chmod(path, 0o644)
    os.chown(tmp_path, 65534, -1)
    with pytest.raises(Refused, match="as root"):
        service.refuse_what_others_can_change([str(path)])
