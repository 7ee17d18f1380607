"""The pages of a store in a database."""

import re

import parley
from tests.web.conftest import BOTS


def test_every_page_works_on_a_database(visit, postgres_url):
    secret = postgres_url.replace("parley@", "parley:planted@")
    ref = parley.run("public_goods", models=BOTS, repeats=3, store=secret, name="Three").ref
    with visit(secret) as client:
        seen = [
            client.get(address)
            for address in (
                "/",
                f"/run/{ref.id}",
                f"/run/{ref.id}/matches?order=score&metric=payoff",
                f"/run/{ref.id}/match/2",
            )
        ]
    assert [page.status_code for page in seen] == [200] * 4
    assert "Three" in seen[0].text
    assert len(re.findall(r"/match/\d", seen[2].text)) >= 3
    assert not any("planted" in page.text for page in seen)
