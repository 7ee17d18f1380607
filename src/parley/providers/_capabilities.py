"""The features that an endpoint supports, learned from its rejections: found once for an address
and a model, and remembered for the process."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from parley.providers._schemas import LIMITS

log = logging.getLogger(__name__)

NOTHING: frozenset[str] = frozenset()
# How rejections name a feature. If a rejection names several, the first of these is given up.
NAMED = {
    "json_schema": (
        r"response[ _]?format|schema|structured.output|output[ "
        r"_.](?:format|config)|grammar|guided|json mode|mime"
    ),
    "json_object": r"response[ _]?format|json[ _]?object|json mode|word 'json'|mime",
    "encrypted_content": r"encrypted.content",
    "max_tokens": r"\bmax_tokens\b",
    "max_completion_tokens": r"\bmax_completion_tokens\b",
    "system": r"system (?:role|message|prompt|instruction)|\brole\W+(?:\w+\W+){0,3}system|"
    r"developer (?:role|instruction)|only user and assistant|roles must alternate",
    "reasoning_effort": r"reasoning.?effort|thinking_?level",
    "display": r"\bdisplay\b",
    "temperature": r"\btemperature\b",
    "top_p": r"\btop_?p\b",
    "seed": r"\bseed\b",
    "stop": (
        r"['\"`.]stop\w*['\"`]|\bstop_?sequences?\b|\bstop "
        r"(?:sequence|word|parameter)|parameter:? stop\b|: stop\b"
    ),
}
PATTERNS = {feature: re.compile(pattern, re.IGNORECASE) for feature, pattern in NAMED.items()}
UNWANTED = re.compile(
    r"n.t support|not (?:yet "
    r")?(?:supported|allowed|permitted|available|accepted|implemented|enabled|recogni[sz]ed|one of)"
    r"|unsupported|unavailable|unknown|unexpected|unrecogni[sz]ed|extra_forbidden|extra "
    r"(?:inputs|fields)|deprecated|disabled|no longer|only the default|only supports?|only user "
    r"and assistant|must alternate|cannot be used|unset|instead",
    re.IGNORECASE,
)
# A number out of range is a fault of this one request; the endpoint has the feature.
SIZE = re.compile(
    r"too (?:large|long|big|high|small|low|many)|context (?:length|window)|exceed|at "
    r"most|greater than|less than|\brange\b",
    re.I,
)
FORMS = {"json_schema", "json_object"}  # complaints about a form have too many words to list
# A fault of one schema says nothing about others.
ONE_SCHEMA = re.compile(
    r"invalid (?:json )?schema|schema (?:is|contains|has|exceeds|must)\b|in "
    r"context=|\bkeyword|\bpropert(?:y|ies)\b|\brequired\b"
    rf"|additionalProperties|too (?:complex|large|many|deep)|for '\w+' "
    rf"type|\b(?:{'|'.join(sorted(LIMITS - {'format'}))})\b",
    re.IGNORECASE,
)
MOST_SCHEMAS = 8  # rejected schemas, after which no further one is tried
# features that can change a result
MEASURED = ("system", "temperature", "top_p", "seed", "stop", "reasoning_effort")


@dataclass(slots=True, eq=False)
class Capabilities:
    """The features that one endpoint does not support for one model."""

    model: str
    unsupported: frozenset[str] = NOTHING

    def add_unsupported(self, unsupported: frozenset[str], missed: Collection[str] = ()) -> None:
        """Remember the features that a request had to leave out, and warn about those that the user
        set."""
        for feature in sorted(unsupported - self.unsupported):
            level = logging.WARNING if feature in missed else logging.INFO
            log.log(
                level,
                "%s: the endpoint does not accept %s, so Parley leaves it out from now on",
                self.model,
                feature,
            )
        self.unsupported |= unsupported
        for form in FORMS - self.unsupported:
            if sum(feature.startswith(f"{form} ") for feature in self.unsupported) >= MOST_SCHEMAS:
                self.unsupported |= {form}


KNOWN: dict[tuple[str, str], Capabilities] = {}


def find_capabilities(url: str, model: str) -> Capabilities:
    """The capabilities of a model at an address, as far as they are known."""
    return KNOWN.setdefault((url, model), Capabilities(model))


def find_rejected_feature(rejection: str, offered: Iterable[str]) -> str | None:
    """The feature of a request that a rejection is about, if it names one."""
    found = set(offered)
    unwanted = UNWANTED.search(rejection) and not SIZE.search(rejection)
    for feature, pattern in PATTERNS.items():
        if feature in found and (unwanted or feature in FORMS) and pattern.search(rejection):
            return feature
    return None


def is_about_one_schema(rejection: str) -> bool:
    """Whether a rejection is about the schema that was sent, and not about schemas in general."""
    return bool(ONE_SCHEMA.search(rejection))
