from __future__ import annotations

from perdure.model.server import Server


def test_a_server_is_named_by_where_it_listens_not_by_who_asks() -> None:
    one = Server(host="laptop", user="dev", uid=1000, socket="/tmp/tmux-1000/default")
    renamed = Server(host="laptop", user="developer", uid=1000, socket="/tmp/tmux-1000/default")
    assert one.key == renamed.key == "laptop/1000/tmp/tmux-1000/default"


def test_hosts_users_and_sockets_are_apart() -> None:
    keys = {
        Server(host=host, user="dev", uid=uid, socket=socket).key
        for host in ("a", "b")
        for uid in (1000, 1001)
        for socket in ("/tmp/x", "/tmp/y")
    }
    assert len(keys) == 8
