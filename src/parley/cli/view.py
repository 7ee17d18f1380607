"""`parley view`: the pages in a browser."""

from __future__ import annotations

from contextlib import suppress

import click

from parley.cli.progress_line import say
from parley.cli.shared_options import in_store
from parley.config.extras import require_extra
from parley.store import open_store

PORT = 8642


@click.command()
@in_store
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="Listen on this port; 0 takes any free port.",
)
@click.option(
    "--bind",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Listen on this address. Any address other than loopback needs a token, which is part of "
    "the printed link.",
)
def command(store: str | None, port: int, bind: str) -> None:
    """Show runs, results and transcripts in a browser, also while a run is being played.

    Set PARLEY_VIEW_TOKEN to choose the token; otherwise each start makes a new one.
    """
    require_extra("web", "parley view")
    import asyncio

    from parley.web.app import make_app, make_site
    from parley.web.listening import make_server, open_address

    place = open_store(store)
    address = open_address(bind, port)
    site = make_site(place, public=bool(address.safety.token))
    server = make_server(make_app(site, address.safety))
    say(f"{place.name} is shown at {address.link()} (Ctrl-C stops the server)")
    if address.safety.token:
        say(
            "other machines can reach this server, and it does not limit requests that arrive "
            "slowly: if you do not trust the network, keep the loopback address and put a reverse "
            "proxy in front of it"
        )
    with suppress(KeyboardInterrupt):  # the ordinary way to stop it
        asyncio.run(server.serve(sockets=[address.socket]))
