from __future__ import annotations

import os
import pwd

import psutil
import pytest

from perdure.errors import PerdureError, UsageError
from perdure.host.users import current_user, read_roster, run_as, shell_of, user_by_name, user_by_uid
from perdure.model.user import User


def written(text: str | bytes) -> str:
    path = os.path.join(os.environ["HOME"], "roster")
    with open(path, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("alice=dev\n", ("dev",)),
        ("alice=dev\nbob=dev\ncarol=ops\n", ("dev", "ops")),
        ("# comment\n\n  alice = dev  # hers\n", ("dev",)),
        ("alice\n=dev2\nbob=\n", ("dev2",)),
        ("a=b=c", ("b=c",)),
        ("alice=dev\r\nbob=ops\r\n", ("dev", "ops")),
    ],
)
def test_a_roster_names_accounts(text: str, names: tuple[str, ...]) -> None:
    assert read_roster(written(text)) == names


def test_a_roster_with_bytes_that_are_no_text_still_names_the_others() -> None:
    assert "dev" in read_roster(written(b"caf\xe9=x\xe9\nalice=dev\n"))


def test_no_roster_names_nobody_and_an_unreadable_one_is_said() -> None:
    assert read_roster("/nowhere/roster") == ()
    with pytest.raises(UsageError, match="cannot be read"):
        read_roster(os.environ["HOME"])


def test_accounts_by_number_and_name() -> None:
    root = user_by_uid(0)
    assert root is not None
    assert user_by_name(root.name) == root
    assert user_by_uid(4_242_424) is None
    assert user_by_name("nobody has this name") is None


def test_this_user_lives_where_home_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert current_user().home == os.environ["HOME"]
    assert current_user().uid == os.geteuid()
    monkeypatch.delenv("HOME")
    account = user_by_uid(os.geteuid())
    assert current_user().home == (account.home if account else "/")


def someone_else() -> User:
    nobody = user_by_uid(65534)
    if os.getuid() != 0 or nobody is None:
        pytest.skip("only root can be somebody else")
    return nobody


def test_whatever_runs_for_somebody_is_that_user_and_nobody_else() -> None:
    nobody = someone_else()

    def who() -> bytes:
        return repr((os.getresuid(), os.getresgid(), sorted(os.getgroups()), os.environ["HOME"])).encode()

    ids = (nobody.uid,) * 3, (nobody.gid,) * 3
    assert run_as(nobody, who) == repr((*ids, sorted(os.getgrouplist(nobody.name, nobody.gid)), nobody.home)).encode()
    assert os.getuid() == 0


def test_it_cannot_become_root_again() -> None:
    def climb() -> bytes:
        try:
            os.setuid(0)
        except PermissionError:
            return b"refused"
        return b"root"

    assert run_as(someone_else(), climb) == b"refused"


def test_an_account_that_is_only_a_number() -> None:
    someone_else()
    stranger = User("4242", 4242, 4242, "/")
    assert run_as(stranger, lambda: f"{os.getuid()} {os.getgid()} {os.getgroups()}".encode()) == b"4242 4242 [4242]"


def test_bytes_come_back_exactly_and_as_many_as_there_are() -> None:
    answer = bytes(range(256)) * 5000
    assert run_as(current_user(), lambda: answer) == answer
    assert run_as(current_user(), lambda: b"") == b""


def test_a_failure_is_raised_and_said(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> bytes:
        raise RuntimeError("some reason")

    with pytest.raises(PerdureError, match=current_user().name):
        run_as(current_user(), fail)
    assert "some reason" in capfd.readouterr().err


def test_what_a_user_may_not_do_is_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> bytes:
        os.mkdir("/proc/nothing/is/made/here")
        return b""

    with pytest.raises(PerdureError, match=r"^/proc/nothing/is/made/here: No such file or directory\.$"):
        run_as(current_user(), fail)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("shell", "found"),
    [
        ("/bin/sh", "/bin/sh"),
        ("/usr/bin/env", "/usr/bin/env"),
        ("/usr/sbin/nologin", "/bin/sh"),
        ("/bin/false", "/bin/sh"),
        ("/bin/no-such-shell", "/bin/sh"),
        ("", "/bin/sh"),
    ],
)
def test_a_shell_is_one_to_work_in(monkeypatch: pytest.MonkeyPatch, shell: str, found: str) -> None:
    entry = pwd.struct_passwd(("dev", "x", 4242, 4242, "", "/home/dev", shell))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    assert shell_of(User(name="dev", uid=4242, gid=4242, home="/home/dev")) == found


def test_one_that_is_killed_has_failed_whatever_it_wrote() -> None:
    def die() -> bytes:
        os.kill(os.getpid(), 9)
        return b"never"

    with pytest.raises(PerdureError):
        run_as(current_user(), die)


def test_leaving_is_no_answer() -> None:
    def leave() -> bytes:
        raise SystemExit(0)

    with pytest.raises(PerdureError):
        run_as(current_user(), leave)


def test_no_child_is_left_behind() -> None:
    # Others may have left theirs to this process.
    before = psutil.Process().children()
    run_as(current_user(), lambda: b"x")
    assert set(psutil.Process().children()) <= set(before)
