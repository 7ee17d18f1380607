"""Voting in the browser: personal links, and the server that answers them."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, replace

import click
import orjson

from parley.cli.progress_line import say
from parley.config.extras import require_extra
from parley.store import RunRef, open_store

LOOPBACK = "127.0.0.1"
EARLIER_LINK = "the earlier link of {name} no longer works"
PAGES = ("vote_page", "verdict_page")  # people who vote see no scores and no runs


@dataclass(frozen=True)
class PersonalLink:
    """The link of one person. It is printed once: only a digest of its secret is stored."""

    annotator: str
    token: str
    path: str = "/vote/"

    def print(self, host: str, port: int, as_json: bool) -> None:
        """Print the link as others can open it, with a word of caution."""
        link = f"http://{name_server(host)}:{port}{self.path}{self.token}"
        data = {"annotator": self.annotator, "token": self.token, "link": link}
        click.echo(orjson.dumps(data).decode() if as_json else link)
        say("this link is shown only once; anyone who has it can vote under this name")


def name_server(host: str) -> str:
    """The name of this machine in a link, if it listens on all its addresses; else the address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return socket.gethostname()
    return f"[{host}]" if address.version == 6 else host


def serve_voters(
    ref: RunRef, bind: str, port: int, link: PersonalLink | None, as_json: bool
) -> None:
    """Answer the personal links of everybody who was invited to vote on runs of a folder, until
    the server is stopped."""
    require_extra("web", "voting in the browser")
    import asyncio

    from parley.web.app import make_app, make_site
    from parley.web.listening import make_server, open_address

    address = open_address(bind, port)
    # There is nothing but personal links, which are secrets themselves.
    safety = replace(address.safety, token="")
    app = make_app(make_site(open_store(ref.store)), safety, PAGES)
    if link is not None:
        link.print(address.host, address.port, as_json)
    place = f"http://{name_server(address.host)}:{address.port}/vote/…"
    say(f"people can open their links at {place} (Ctrl-C stops the server)")
    asyncio.run(make_server(app).serve(sockets=[address.socket]))
