"""What hangs on seeds and on words in code: the same seed gives the same run in every version.

Seeds are made of texts such as "7|leaf|2", so a word that is renamed in one of them would change
every run, and no other test need notice. The values stand here as the code gave them before its
modules were moved. Digests of views are cut to eight letters.
"""

from pathlib import Path
from random import Random

import pytest

from parley import Question, Seat
from parley.config.selection import stratified_order
from parley.config.task_catalogue import task_class
from parley.datasets.catalogue import load_items
from parley.datasets.dictionaries import Lexicon
from parley.participants._registry import make_participant
from parley.plans import seed_for
from parley.plans.arrangements import ARRANGEMENTS, SeatingProblem
from parley.plans.blocks import BlockMaker
from parley.plans.fixed import make_fixed_plan
from parley.plans.sequential import SequentialPlan
from parley.rules.bot_view import BotView
from parley.rules.pool import Pool
from parley.rules.referee import Referee
from parley.runs.stand_ins import fake_verdict
from parley.tasks.kieval.rule import KIEval
from parley.tasks.public_goods import PublicGoods
from parley.tasks.translation import Translation
from parley.tasks.word_guessing.rule import WordGuessing
from parley.testing import Listed, Speaking, play
from parley.testing.by_hand import QUOTATION_KEY

MODELS = ["ann", "bob", "cat", "dan"]
FOLDER = Path(__file__).parent / "data" / "runs"
IDIOMS = (FOLDER / "idioms.txt").read_text(encoding="utf-8").split()
LEXICON = Lexicon.of("small", dict.fromkeys(IDIOMS, 1), {}, ())
MATCHES = {  # task, parameters, who sits where, seat by seat
    "public_goods": ("public_goods", {"rounds": 3}, "random reciprocator gradual"),
    "public_goods_open": ("public_goods", {"rounds": 2, "feedback": "investments"}, "null random"),
    "idiom_solitaire": ("idiom_solitaire", {"common": 0}, "speaker dead-end"),
    "code_review": ("code_review", {"rounds": 2}, "coder coder judge"),
    "translation": ("translation", {"rounds": 2}, "translator translator judge"),
    "kieval": ("kieval", {"rounds": 2, "verify": "no"}, "candidate interactor evaluator"),
    "word_guessing": ("word_guessing", {"rounds": 4}, "guesser guesser"),
    "word_guessing_open": (
        "word_guessing",
        {"rounds": 2, "open_guesses": True},
        "guesser injector guesser random",
    ),
    "qa": ("qa", {"shots": 0}, "student"),
    "os_tasks": ("os_tasks", {"turns": 3}, "solver"),
    "prisoners_dilemma": (str(FOLDER / "prisoners_dilemma.py"), {}, "tit-for-tat random"),
    "poem": (str(FOLDER / "poem.yaml"), {}, "writer forger judge"),
}


def seeds():
    """Of matches, from the run's seed, the block and the repeat."""
    return [seed_for(0, "1", 1), seed_for(7, "leaf", 2), seed_for(-1, "", 0)]


def seatings(name):
    """Who sits where in two blocks of an arrangement."""
    tasks = {"each": KIEval(), "together": WordGuessing(), "cycles": Translation()}
    table = SeatingProblem(tasks.get(name, Translation()), MODELS, seed=5, adversary="eve")
    blocks = [ARRANGEMENTS[name](table, turn, f"{turn}|arrangement") for turn in (0, 5)]
    return ", ".join(" ".join(seats.values()) for block in blocks for seats in block)


def scheduled_matches():
    """The matches of a plan: seed, and who sits where in the order of the seats."""
    plan = make_fixed_plan(
        "cycles", Translation(), MODELS[:3], {"judge": ["eve"]}, ["x", "y"], 2, 9
    )
    found = [(m.number, m.item, m.repeat, m.seed, *m.seats.values()) for m in plan.specs]
    return [" ".join(map(str, match)) for match in found]


def drawn_items():
    """With which item a plan that may stop early begins, by the run's seed."""
    series = BlockMaker("each", KIEval(), ["ann"], {"interactor": ["i"], "evaluator": ["e"]}, 3)
    plans = [SequentialPlan(series, Never, list("abcdefgh"), 1, seed, None) for seed in range(12)]
    return "".join(plan.first_match.item for plan in plans)


class Never:
    """A rule of stopping that never stops."""

    def is_wanted(self, role, alias):
        return True


def spread_items():
    """Items by strata, in an order drawn with the run's seed."""
    bare = [Question(str(n), "Q?", "A", ("x", "y"), s) for n, s in enumerate("aabbbbcc")]
    return " ".join(item.id for item in stratified_order(bare, "subject", 4))


def stratified():
    """The first of KIEval's sample questions, as a run with seed 4 takes them."""
    items = load_items("samples", Question)
    return [str(item.id) for item in stratified_order(items, KIEval.items.stratum, 4)[:10]]


def marks():
    """What stands around quoted words."""
    referee = Referee(
        PublicGoods(),
        Pool([Seat("players", 1), Seat("players", 2)]),
        42,
        quotation_key=QUOTATION_KEY,
    )
    return [referee.quote(words, Seat("players", 1))[1:13] for words in ("Hello.", "Hi.", "Hi.")]


def chance():
    """What the rule draws."""
    referee = Referee(
        PublicGoods(),
        Pool([Seat("players", 1), Seat("players", 2)]),
        42,
        quotation_key=QUOTATION_KEY,
    )
    return [referee.rng.randrange(1000) for _ in range(4)]


def draws(again=None):
    """Where sampling begins for models in this process: by seating, seat, round and try."""
    seats = [Seat("players", 1), Seat("players", 2)]
    cast = {seat: Speaking(lambda view: "no") for seat in seats}
    play(
        PublicGoods(rounds=1),
        cast,
        seed=42,
        seating="ann bob",
        draws="" if again is None else str(again),
    )
    return [view.sampling_seed.hex()[:16] for seat in seats for view in cast[seat].views[:2]]


def fates():
    """By what abilities are planted in bots."""
    bot = BotView(None, None, Question("leaf", "Q?", "A", ("x", "y")), Random(0))
    return [round(bot.fate("knows", 1), 9), round(bot._replace(item=None).fate("x"), 9)]


def replies():
    """What bots that draw lots say."""
    seats = [Seat("players", number) for number in (1, 2, 3)]
    cast = {seat: make_participant("bot/random", {}, PublicGoods, "random") for seat in seats}
    tape = Listed()
    play(PublicGoods(rounds=2), cast, seed=42, record=tape)
    return [f"{call.seat.key} {call.reply.content}" for call in sorted(tape.order, key=by_place)]


def by_place(call):
    return call.round, call.seat, call.attempt


def played(name):
    """A match: the digest of every view, in the order of rounds and seats; what came of it."""
    reference, params, bots = MATCHES[name]
    kind = task_class(reference)
    each = len(bots.split()) if len(kind.roles) == 1 else 1
    if kind.name == "idiom_solitaire":
        seats = [Seat("players", 1), Seat("players", 2)]
    else:
        seats = [seat for role, kind_of in kind.roles.items() for seat in kind_of.seats(role, each)]
    task = kind.from_params(params)
    items = [None]
    if kind.items is not None:
        items = kind.items.bundled or load_items("samples", kind.items.type)
    item = next(item for item in items if item is None or not task.reject_reason(item))
    works = {"dictionary": LEXICON} if kind.name == "idiom_solitaire" else {}
    given = {"strength": 0.9} if works else {}
    sat = zip(seats, bots.split(), strict=True)
    cast = {seat: make_participant(f"bot/{bot}", given, kind, bot) for seat, bot in sat}
    tape = Listed()
    run = fake_verdict if task.runs_code else None
    end = play(task, cast, seed=7, item=item, record=tape, execute=run, works=works)
    saw = " ".join(call.view_digest.hex()[:8] for call in sorted(tape.order, key=by_place))
    scores = [
        f"{seat.key} {metric} {value if value is None else format(value, '.5g')}"
        for seat, by in end.scores.items()
        for metric, value in by.items()
    ]
    return [*saw.split(), *scores]


def again():
    """Other draws of the same judges."""
    return draws(2)


PINNED = {
    seeds: [185524409046856, 229656506420718, 25807967119846],
    scheduled_matches: [
        "1 x 1 114053624568497 ann cat eve",
        "2 x 1 114053624568497 cat bob eve",
        "3 x 1 114053624568497 bob ann eve",
        "4 y 1 21742938944864 ann bob eve",
        "5 y 1 21742938944864 bob cat eve",
        "6 y 1 21742938944864 cat ann eve",
        "7 x 2 174919853125407 cat bob eve",
        "8 x 2 174919853125407 bob ann eve",
        "9 x 2 174919853125407 ann cat eve",
        "10 y 2 129869697399034 ann cat eve",
        "11 y 2 129869697399034 cat bob eve",
        "12 y 2 129869697399034 bob ann eve",
    ],
    drawn_items: "eabhdghbdbde",
    spread_items: "7 4 0 3 6 2 1 5",
    stratified: [
        "biology-4",
        "physics-8",
        "history-3",
        "chemistry-7",
        "astronomy-8",
        "geography-6",
        "computer_science-3",
        "mathematics-2",
        "biology-5",
        "physics-1",
    ],
    marks: ["d9f464c238da", "1ee3d5cd18a2", "920dbdbeb6e8"],
    chance: [654, 114, 25, 759],
    draws: ["4577820dd31af28f", "443dcce8617ad966", "f12a69c19c1c36de", "2431947975b39f8e"],
    again: ["bc48772867697f93", "6373765abdb67942", "c9da5f3d73aecc9b", "bc8948d7cb6c9aa4"],
    fates: [0.046930823, 0.885967548],
    replies: [
        'players.1 {"reason":"That is how I play.","coins":0}',
        'players.2 {"reason":"That is how I play.","coins":4}',
        'players.3 {"reason":"That is how I play.","coins":5.78}',
        'players.1 {"reason":"That is how I play.","coins":8}',
        'players.2 {"reason":"That is how I play.","coins":4.62}',
        'players.3 {"reason":"That is how I play.","coins":6.06}',
    ],
}
SEATINGS = {
    "cycles": "bob ann, ann cat, cat dan, dan bob, dan ann, ann bob, bob cat, cat dan",
    "each": "ann, bob, cat, dan, ann, bob, cat, dan",
    "round_robin": """
ann bob, ann cat, ann dan, bob ann, bob cat, bob dan, cat ann, cat bob, cat dan, dan ann, dan
bob, dan cat, ann bob, ann cat, ann dan, bob ann, bob cat, bob dan, cat ann, cat bob, cat dan,
dan ann, dan bob, dan cat
""",
    "together": "ann bob dan cat, dan ann cat bob",
    "versus": """
ann eve, eve ann, bob eve, eve bob, cat eve, eve cat, dan eve, eve dan, ann eve, eve ann, bob
eve, eve bob, cat eve, eve cat, dan eve, eve dan
""",
}
PLAYED = {
    "public_goods": """
175bea72 175bea72 175bea72 4e98b4e3 c25abc26 3045bf89 e7759fe5 8dbc2767 d99d6517
players.1 payoff 38.17
players.2 payoff 31.74
players.3 payoff 28.18
""",
    "public_goods_open": """
8d1f413e 7e67da69 ca54dbdd 8d1f413e c01ac9c5 10d9448c 9f9c8154 de83d301
players.1 payoff 4.476
players.2 payoff 17.016
""",
    "idiom_solitaire": """
bdb5dc68 9ae8f9ae 9e4d46f1 9e8e9d32 c08cfdf8
players.1 win 0
players.1 hits 2
players.2 win 1
players.2 hits 2
""",
    "code_review": """
356298db 05ed6af0 8e9c32c8 8d7d57e5 fda6e802
programmer pass 0
programmer pass_1 0
programmer improvement 0
programmer judge 9
reviewer improvement 0
reviewer judge 9
""",
    "translation": """
1fae4ab5 e098ba79 d8e65fa5 f8771a34 5b664b89
translator bleu 0.85868
translator chrf 0.86745
translator judge 8
proofreader bleu 0.85868
proofreader chrf 0.86745
proofreader improvement 0
proofreader judge 8
""",
    "kieval": """
52e3397f a2a6dd22 7cba10e8 61d6ae24 36c0a04b e90bc831 f6d1d79b
candidate kieval 88.674
candidate mark_accuracy 81.326
candidate mark_logic 100
candidate mark_relevance 100
candidate mark_coherence 100
candidate mark_conciseness 70
candidate kieval_zero 88.674
candidate answer_accuracy 1
candidate rounds 2
""",
    "word_guessing": """
329390af 1f404f08 79e4782b 4a6b6abd 37c785d7 8abc26a8 2a67d944 c93ad605
players.1 age 0.43621
players.1 comprehension 0.33333
players.1 confusion 0.63093
players.1 first_guess 7
players.2 age 0.57953
players.2 comprehension 0.43068
players.2 confusion 0.88562
players.2 first_guess 4
""",
    "word_guessing_open": """
d278125b 9becd03a 56d09c54 43936119 ba475615 4e712441 fe0ae093 be16f49d d943b65e a616cbd9
players.1 age 0
players.1 comprehension 0
players.1 confusion 1
players.1 first_guess None
players.2 age 0
players.2 comprehension 0
players.2 confusion 1
players.2 first_guess None
players.3 age 0
players.3 comprehension 0
players.3 confusion 1
players.3 first_guess None
players.4 age 0
players.4 comprehension 0
players.4 confusion 1
players.4 first_guess None
""",
    "os_tasks": """
4375f352 b4ac43d5
agent success 0
agent turns 2
""",
    "qa": """
40ba3cf0
student accuracy 1
""",
    "prisoners_dilemma": """
e5775c42 e5775c42 4e414b83 4e414b83 a2c2b569 8144329d dce6aa85 4ba991f7 c5850720 73ff92f8
players.1 points 12
players.2 points 12
""",
    "poem": """
786325c0 392f1109 f0825acc 2d0e1e39 32cec6d3
poet judge 1.9
critic judge 4.645
""",
}


@pytest.mark.parametrize("found", PINNED, ids=lambda found: found.__name__)
def test_what_is_drawn_stays_the_same(found):
    assert found() == PINNED[found]


def test_all_arrangements_are_pinned():
    assert set(SEATINGS) <= set(ARRANGEMENTS)


@pytest.mark.parametrize("name", SEATINGS)
def test_everybody_sits_where_they_sat(name):
    assert seatings(name).split() == SEATINGS[name].split()


@pytest.mark.parametrize("name", MATCHES)
def test_everybody_sees_what_they_saw(name):
    assert " ".join(played(name)).split() == PLAYED[name].split()
