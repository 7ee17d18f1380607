"""Where a server listens, and how it stops."""

import errno
import signal
import socket
from dataclasses import replace

import pytest
from uvicorn import Config

from parley.cli.view import command
from parley.errors import UsageError
from parley.web.listening import PageServer, open_address
from tests.web.processes import start_server


@pytest.mark.parametrize(
    ("bind", "said"),
    [
        ("no.such.host.invalid", "--bind must be an address of this machine"),
        ("192.0.2.1", "--bind must be an address of this machine"),
        ("x" * 300, "--bind must be an address of this machine"),
    ],
)
def test_a_bad_address_is_explained(bind, said):
    with pytest.raises(UsageError, match=said):
        open_address(bind, 0)


def test_a_port_that_is_taken_or_reserved_is_explained(monkeypatch):
    taken = open_address("127.0.0.1", 0)
    with taken.socket, pytest.raises(UsageError, match="is already in use"):
        open_address("127.0.0.1", taken.port)

    def refuse(self, address):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(UsageError, match="port 80 is reserved for the system"):
        open_address("127.0.0.1", 80)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_stops_the_server_though_somebody_follows_a_run(folder, pretend_to_run, signum):
    id = pretend_to_run(folder)
    with start_server(folder) as (server, url):
        host, port = url.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as reader:
            request = f"GET /run/{id}/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
            reader.sendall(request.encode())
            received = b""
            while b"event: parts" not in received:
                received += reader.recv(65_536)
            server.send_signal(signum)
            while reader.recv(65_536):
                pass
        assert server.wait(30) == 0
        assert "Traceback" not in server.stderr.read()


def test_a_server_starts_where_there_is_no_sighup(monkeypatch):
    monkeypatch.delattr(signal, "SIGHUP")
    server = PageServer(Config(lambda: None), lambda: None, takes_signals=True)
    with server.capture_signals():
        assert signal.getsignal(signal.SIGINT) == server.handle_exit


@pytest.mark.parametrize(("bind", "warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_only_a_server_for_other_machines_names_a_reverse_proxy(
    monkeypatch, folder, capsys, bind, warned
):
    """The address is not opened: the server that would listen there ends at once."""
    ours = open_address("127.0.0.1", 0)
    token = "a" * 16 if warned else ""
    address = replace(ours, safety=replace(ours.safety, token=token))
    monkeypatch.setattr("parley.web.listening.open_address", lambda bind, port: address)

    async def serve(self, sockets):
        sockets[0].close()

    monkeypatch.setattr("parley.web.listening.PageServer.serve", serve)
    command.callback(store=str(folder), port=0, bind=bind)
    assert ("reverse proxy" in capsys.readouterr().err) == warned
