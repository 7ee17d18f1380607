# ruff: noqa: E501 - a rule stays in one piece
"""Rules by which the words around a name show that the speaker means itself.

A rule looks at the tags of the lexicon before and after a name, so it works for all languages at
once: `[Mi]R{0,2}N` before a name is "my real name", "mein Name" and "mi nombre". Set phrases, fields
and labels are rows of the table in `claims`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from parley.match.lexicon import Tagged

REACH_BEFORE, REACH_AFTER = 30, 30  # how many words a rule looks back and ahead
SURE = frozenset(("own", "known"))
MODELS = SURE | {"cast", "famous"}
ALL_MODELS = MODELS | {"shared"}
LABS = frozenset(("lab",))
MAKERS = frozenset(("maker", "lab"))
CLEAR = SURE | MAKERS
EVERYBODY = ALL_MODELS | MAKERS


class Rule(NamedTuple):
    """What stands before and after a name of certain kinds where it is the speaker's."""

    about: str
    kinds: frozenset[str]
    before: re.Pattern[str]
    after: re.Pattern[str]
    label: bool  # not in settings, and not where several speakers have labels


def rule(
    about: str, kinds: frozenset[str], before: str = "", after: str = "", label: bool = False
) -> Rule:
    """A rule about tags; `{…}` stands for one of PARTS."""
    return Rule(
        about,
        kinds,
        re.compile(f'(?:{fill_parts(before)})["(]{{0,2}}\\Z'),
        re.compile(f'[")]?(?:{fill_parts(after)})'),
        label,
    )


PARTS = {
    "stop": "[.!?¶;]",
    "in": "[^.!?¶;]",  # a word of the same sentence
    "begin": '(?:\\A|(?<=[.!?¶;:,"(—*-]))',
    "start": "(?:\\A|(?<=[.!?¶*]))",
    "end": "(?:[.!?¶;]|\\Z)",
    "pause": "(?:[.!?¶;:,)-]|\\Z)",
    "me": "[IOMiAm]",
    "fill": "[DR]{0,4}",
    # a noun phrase about a machine, up to its name: "a small model from X called"
    "kind": "(?:[DRx0CXsyP]{0,5}?G[GRP0xD]{0,3}?(?:[,R]*K?P[DSR]{0,3}C)?[,R]*(?:t?[BR]*N[DR]*)?)",
    "team": "[DSRPNx]{0,5}?",
    "made": "(?:K(?:&[Kkx])?|k(?=P))",
}


def fill_parts(pattern: str) -> str:
    """A pattern with its parts, in which P is any preposition of origin, `b` by or from alone."""
    pattern = re.sub(r"\{([a-z]+)\}", lambda part: PARTS[part[1]], pattern)
    return re.sub(r"P(?![^\[\]]*\])", "[Pb]", re.sub(r"P(?=[^\[\]]*\])", "Pb", pattern))


# fmt: off
RULES = (
    # who the speaker is
    rule("I am X", MODELS, "(?:{begin}|[IRt&]|I,{in}{1,8},|(?=AI))A(?:R*I)?(?:,{in}{1,6},|[.]{3})?{fill}"),
    rule("I am a model called X", ALL_MODELS, "(?:{begin}|[IRt&]|(?=AI))AI?{fill}{kind}"),
    rule("I — X (Russian)", SURE, "{begin}I[-—]", "[,.]"),
    rule("my name is X", ALL_MODELS, "[Mi]R{0,2}N[BR:,t]{0,3}{fill}"),
    rule("I am called X", ALL_MODELS, "I?(?:I[ABR]*N|[NO][BRD]{0,2}[ON]|O?2O?)(?:PM?N)?[R:,]{0,3}D?"),
    rule("call me by my nickname X", MODELS, "NO[PHMRN,]{1,5}"),
    rule("call me? X will do", MODELS, "NO[?]", "(?:d|{pause})"),
    rule("I am known to men as X", MODELS, "I[AB]R?N{in}{0,3}E"),
    rule("full name: X", SURE, "{start}R?N[:=]", "{pause}", True),
    rule("my name does not matter, but well: X", MODELS, "MN{in}{1,10}:", "{pause}"),
    rule("I answer under the name of X", MODELS, "I{in}{0,4}PDNP?"),
    rule("the name tag says X", MODELS, "[DM]x?N{1,2}z"),
    rule("Xと呼んで", MODELS, "{start}", "HN"),
    rule("mine: X", MODELS, "m[:B]"),
    rule("as X, I", MODELS, "E[DRG]{0,3}(?:Cs?)?", "(?:,?[xRBd]{0,2}I|,(?!&){in}{0,12},?[IM]|[&x]{in}{1,8},I|tA)"),
    # a pronoun beside the name
    rule("I, X,", MODELS, "(?:{begin}|[tx&R])I[,(—-]D?[RGN]{0,3}", "[,)—BP-]"),
    rule("we X models", EVERYBODY, "[IO1],?D?", "[xR]?G"),
    rule("we models from X", EVERYBODY, "[I1]x?G[KR]{0,2}b{team}"),
    rule("X …, models like me", LABS, "", "{in}{0,8}GuO"),
    rule("X models, me included", EVERYBODY, "", "s?[xR]?G,?(?:O[xR]|xO)"),
    rule("X …, and that is me", EVERYBODY, "", "{in}{0,14}[tT]G?BO{end}"),
    rule("X …, I am that model", EVERYBODY, "", "{in}{0,16}A[tT][GLp]"),
    rule("with me, X,", MODELS, "[HP]O[,(—-]{fill}[GN]{0,2}", "(?:[,)—-]|{end})"),
    rule("me being X", MODELS, "O\"?[AEBz](?:D?R?|Rx?)"),
    rule("X, which is what I am", MODELS, "", "(?:,?[tQ]|B[QtD]){in}{0,4}?(?:IA|AI|YB?V|VY|VT)"),
    rule("X, that is my name", MODELS, "", ",?[tT][sB](?:M|D(?={in}{1,5}[MO]))R?N"),
    rule("I speak as X", MODELS, "(?:I[RYd]{0,2}V{in}{0,4}Et?|AUE|{start}VE)", "(?:{pause}|[&o])"),
    rule("I …, being X", MODELS, "I{in}{1,10},E{fill}(?:{kind})?", "{pause}"),
    rule("X, that is me", MODELS, "", "{in}{0,3}?[,(;—-](?:tB|[TtB]s?B?){0,2}[RO]?[OI](?:{end}|[,)])"),
    rule("yours truly, X", MODELS, "yF[,(:—-]{1,2}(?:I[.]&[.],?)?"),
    # whom the reader has before it
    rule("you are talking to X", MODELS, "[YZ][BRdxn]{0,3}?[Vv][RUPD]{0,3}?H?[DRSG]{0,3}N?", "(?!{in}{0,12}[?])"),
    rule("你正在和X聊天", MODELS, "Y[xRB]{0,2}H", "V"),
    rule("thank you for playing with X", MODELS, "Y[oP]VH?"),
    rule("с вами играет X", MODELS, "HYV"),
    rule("you have been outbid by X", SURE, "Y(?:,x,)?[dR]?B[BRE]{0,3}[xW]b"),
    rule("what you are reading is by X", MODELS, "[Qt]YB?V[RU]{0,2}BR*W?P?[DGR]{0,3}"),
    rule("your humble reviewer (X)", MODELS, "y[Rx]{0,2}[LGp][(,]", "[),]"),
    rule("your opponent is X", SURE, "yx?L[sBNR:,]{1,3}"),
    rule("at the other end sits X", SURE, "(?:U|T[xLaW])[xR]?z"),
    rule("it's X you are haggling with", MODELS, "(?:t[sB]|TB)", "Y[BR]{0,2}V"),
    rule("X is writing to you", MODELS, "", "[BR]{1,2}V(?:{in}{0,4}Y|T[al])"),
    rule("you have X at your table", MODELS, "YB", "[PH]y"),
    rule("this bot runs on X", MODELS, "T[GLU]{in}{0,4}[PHE]", "(?!{in}{0,12}[?])"),
    rule("the one you are talking to is X", MODELS, "[GLQJ][tQ]?Y{in}{1,8}B{fill}N?", "(?!{in}{0,12}[?])"),
    rule("the one making this offer is X", MODELS, "[GL][kKVW]T[xalW]?B{fill}"),
    rule("the one talking is X", SURE, "(?:[GLQqDt]){in}{0,2}V{in}{0,4}B{fill}N?", "(?!{in}{0,12}[?])"),
    rule("the one talking to you is X", MODELS, "(?:[GLQqDt]){in}{0,2}(?:V{in}{0,3}[YTUO]|YV){in}{0,2}?(?:B{fill}N?|s?N)", "(?!{in}{0,12}[?])"),
    rule("与你谈判的是X", MODELS, "(?:HY[xR]{0,2}V|Y[xR]?V)[xtLBR]{1,3}"),
    rule("대화하고 계신 상대는 X", MODELS, "(?:{start}|R)V{1,2}L", "B"),
    rule("it's your friend X", MODELS, "(?:t[sB]|TB|U[sB]?)y[xLG]{0,2}"),
    rule("comes to you from X", MODELS | LABS, "HY[RxB]{0,2}P[DG]?"),
    rule("Sie haben es mit X zu tun", MODELS, "Y[BRt]{1,4}H", "Hx"),
    rule("te escribe X", MODELS, "(?:VY|YV|{start}DV)R?", "(?:[:.,!]|\\Z)"),
    # whose words these are
    rule("this … by X", SURE, "T{in}{1,6}?(?:b|E)", "(?!{in}{0,12}[?])"),
    rule("this … was made by X", MODELS, "T[alLWUx]{1,2}B[WkKR]{1,2}b"),
    rule("mine (X)", MODELS, "(?:m|O|I|M[LaW]|T[xLaW]|bMx)[(]", "[)]"),
    rule("dieser Text hat X verfasst", MODELS, "T[xalL]{1,2}[BD]", "[Rx]?W"),
    rule("this was written by X", MODELS, "T[xLWGRUa]{0,3}[BR]{1,3}(?:[WkK][HYRx]{0,2})?[PH][DGRN]{0,3}", "(?:{pause}|[HPR&,]|G)"),
    rule("this is X's", MODELS, "T[xLWGRUa]{0,3}BR*", "s{end}"),
    rule("this is the statement of X: I", MODELS, "T{in}{0,4}P{fill}", "[:,—-]?I"),
    rule("translator: X", MODELS, "(?:{start}|(?<=[\"(—-]))R?[LW](?:s[La])?[xMPR]{0,2}[:=]", "(?:{pause}|[(])", True),
    rule("the translator is X", SURE, "{begin}D?L(?:PT[xal]?)?B(?:DG{1,2},?R?)?"),
    rule("this is a message from X", MODELS, "TB[DxR]{0,3}[alWL][xR]?P{fill}", "{pause}"),
    rule("model used for this answer: X", MODELS, "{start}G[xoP]{0,3}[TM][xaR]{0,2}[:=]"),
    rule("my assessment as X", MODELS, "M[xLaRh]{1,3}[(]?E"),
    rule("this answer wrote X", MODELS, "T[xalL]{1,2}[DBR]{0,2}W[RxD]?", "{pause}"),
    rule("name: X, role:", MODELS, "(?:\\A|(?<=¶))[*-]{0,2}N:", "¶[*-]{0,2}[LaJ]:"),
    rule("| 2 (me) | X |", MODELS, "[|][^|¶]{0,6}O[)]?[|]"),
    rule("translation: X", SURE, "(?:{start}|(?<=[\"(—-]))l:", "{pause}"),
    rule("translator's note (X):", MODELS, "{start}[LWl]s?x{0,2}[(]", "[)]:"),
    rule("written by X.", MODELS, "(?:{start}|(?<=[(—-]))[R—-]*[Wla](?:&?W)?[.]?P[DRLG]{0,3}", "(?:{pause}|H{in}{0,3}:)"),
    rule("text written in haste by X", SURE, "{start}[xal]?W{in}{0,3}b", "{pause}"),
    rule("authorship: text by X", SURE, "{begin}[al]b", "{pause}"),
    rule("from the desk of X", MODELS, "{start}b[DM]xP", "(?:I|{pause})"),
    rule("answered by an AI (X)", MODELS, "WPD?G[(]"),
    rule("X's answer: ", MODELS, "{start}", "s[Rxh]{0,2}a{1,2}[:B]"),
    rule("この翻訳はXが作成", MODELS, "T[xaLWlB]{1,3}", "P{1,2}x?W"),
    rule("今お話ししているのはX", MODELS, "(?:{start}|[Rx])V[xt]{0,2}PB", "B"),
    rule("the translator, X,", SURE, "{start}D?L,", ","),
    rule("[model=X]", MODELS, "(?:\\A|(?<=¶))[(][GL][:=]", "[)]"),
    # signatures
    rule("Regards, X", MODELS, "{start}[xRPHyMD]{0,3}(?:F{in}{0,5}[,.!¶—-]+|f{in}{0,3}[,.!]*¶)[yMxDLG—-]{0,4}", "(?:[(]{in}{0,6}[)])?[.!*-]{0,3}(?:\\Z|¶)"),
    rule("signed with ink, X", SURE | {"cast"}, "{start}W{in}{0,4},", "[.!]?(?:\\Z|¶)"),
    rule("-- X", MODELS, "(?:{start}|(?<=[)\",]))(?:—+|--|[*]{1,2})[yMxLWP¶]{0,3}", "(?:[,(¶—-]?C[)]?|[(]{in}{0,6}[)]|x)?F?[.!*-]{0,3}(?:\\Z|¶)"),
    rule("— X, who", MODELS, "(?:\\A|(?<=¶))—", ",{in}{1,12}[.!]?(?:\\Z|¶)"),
    rule("a last line with X", SURE, "[.!]¶+", "(?:[(]{in}{0,6}[)])?[.!]?\\Z"),
    rule("Regards from X", MODELS, "FP[DRyxVLG]{0,4}"),
    # how a speaker steps forward
    rule("X here", MODELS, "{begin}(?:x[,!])?(?:Cs)?", ",?(?:U(?:{pause}|[HP&]|I)|V[RxP]?{pause}|[PH][DyT]?U)"),
    rule("X here thinks", SURE, "{begin}", ",?U"),
    rule("This is X. I", MODELS, "\\ATB", "[.!]I"),
    rule("it's X on this end", MODELS, "(?:t[sB]|TB)", "(?:U|V|[PH][TyD]?U)"),
    rule("Here X.", MODELS, "{start}(?:x,)?[Uq]B?D?", "(?:[.!:;]|B[.!])"),
    rule("Not a person here, only X", SURE, "U[,—-]R{1,2}", "{end}"),
    # what is asked and answered
    rule("Which model are you? X.", MODELS | LABS, "(?:[yM]{in}{0,3}N|Q{in}{0,4}(?:[AB][YIO]|[YIT][AB]|[Kk]O|[kWV]T(?=[?])){in}{0,2}|Q[sB]?V[TYR]{0,2}|[DGL]x?V[TY]?)[?]\"?[¶]*(?:D:)?(?:t[sB]|TB)?D?", "(?:[.!,¶;)]|d|B[.!,]|\\Z)"),
    rule("I have nothing to hide: X.", MODELS, "h{in}{0,6}:", "{pause}"),
    # labels of a speaker
    rule("X (seller):", MODELS, "(?:\\A|(?<=¶))", "[(]{in}{1,5}[)]:", True),
    rule("[[X]]:", MODELS, "(?:\\A|(?<=¶))[(]{1,2}", "[)]{1,2}:", True),
    rule("[X, as buyer]", MODELS, "(?:\\A|(?<=¶))[(]", ",{in}{1,8}[)]"),
    # makers
    rule("I was made by X", MODELS | MAKERS, "(?:IR*(?:[ABR]){1,3}x?R*|A[BR]{0,2}){made}{in}{0,6}?[P&]{team}"),
    rule("I was by X made", EVERYBODY, "(?:(?:I[AB]|[AB]I|O[BR]{0,2})[Rxn,]{0,5}P{team}|I[R]{0,2}P[DS]{0,2})", "S?[Rx]{0,4}?{made}"),
    rule("he sido entrenado por X, я создан в X", EVERYBODY, "(?:(?:tA|IB?)K[SPb]{1,3}|I[xR]{0,2}G,?K[SPb]{0,3})"),
    rule("我由X训练, 私はXに作られ", EVERYBODY, "IB?P?", "S?P{1,2}x?K(?!{in}{0,6}j)"),
    rule("you were made by X as I was", EVERYBODY, "{made}P{team}", "E(?:I[AB]|[AB]I)"),
    rule("X made me", CLEAR, "", "s?[SPx]{0,2}[RBdt]{0,3}(?:K[DR]?O(?!oxx|o0x|D)|KR?I|kO{pause})"),
    rule("X did not give me", LABS | {"known"}, "", "(?:d[nR]{0,2}[xkK]O|k[xR]{0,2}HO)"),
    rule("my lab is X", LABS, "MR?[SJ]B"),
    rule("my training by X", CLEAR, "M(?:w{in}{0,3})?[Kw]b"),
    rule("built me X", CLEAR, "(?:O[BRPx]{0,3}{made}|{made}[BR]{0,2}[Oi]|i[BR]{0,3}{made}){in}{0,5}?[BR,:(PDSN]{0,5}"),
    rule("my maker X", EVERYBODY, "[Mi]R?J[SR]{0,2}[BPN,:(DRS—-]{0,5}"),
    rule("X, my maker", MAKERS, "", "(?:,|B)[DR]{0,2}M[R]?J"),
    rule("the lab that built me is X", EVERYBODY, "(?:S|Q)[tQB]{0,2}R*[Kk]O[,BN:(PDSR]{1,4}"),
    rule("made by X, I", EVERYBODY, "{start}{made}{in}{0,4}?P{team}", "{in}{0,12},R*I"),
    rule("I am a model by X", EVERYBODY, "(?:(?:{begin}|[IRt&]|(?=AI))AI?|IB){fill}[xR]{0,4}?G[Kx0GP&,]{0,5}?P{team}"),
    rule("as a model by X, I", EVERYBODY, "Et?[DRxP]{0,3}G[KGRx,]{0,4}?P[DSR]{0,2}", "{in}{0,14}{me}"),
    rule("作为一个由X开发的模型，我", EVERYBODY, "E[DG]{0,2}P?", "K[tx]?G{in}{0,4}I"),
    rule("X製のAIなので、私は", EVERYBODY, "", "PPG{in}{0,8}I"),
    rule("Xが作ったAIなので、私は", EVERYBODY, "", "PKG{in}{0,8}I"),
    rule("I am an X model", EVERYBODY, "(?:AI?|E)[DR]{0,3}", "s?[xR]{0,2}G(?![xL])"),
    rule("I am what you get when X trains", EVERYBODY, "A[QT]{in}{0,5}", "K"),
    rule("I am the kind of AI that X makes", EVERYBODY, "A[DR]{0,2}(?:xP)?G[tQ]", "R?[Kk]"),
    rule("I am one of X's", EVERYBODY, "A[xp]PD?", "s{end}"),
    rule("I have the brain of X", MODELS, "IB[DM]x?wP"),
    rule("I am part of the X family", EVERYBODY, "ApPD?", "[xG]"),
    rule("I belong to X", MODELS | LABS, "IR?c[PHDRSx]{0,3}"),
    rule("my weights say X", MODELS, "Mx?wz"),
    rule("my model family is X", MODELS, "MR?G{2}[B:=]{fill}"),
    rule("my weights come from X", SURE | LABS, "Mx?w{in}{0,6}?[PB]{fill}"),
)
# fmt: on
RULES_FOR = {kind: [each for each in RULES if kind in each.kinds] for kind in EVERYBODY}


def find_evidence(
    tagged: Tagged, number: int, kind: str, labels: Callable[[], bool]
) -> tuple[int, int] | None:
    """The part of the text in which the speaker claims the name of this number among the tags.
    `labels` says whether a label can be that of the speaker."""
    before = tagged.tags[max(0, number - REACH_BEFORE) : number]
    after = tagged.tags[number + 1 : number + 1 + REACH_AFTER]
    for each in RULES_FOR.get(kind, ()):
        if not (right := each.after.match(after)) or not (left := each.before.search(before)):
            continue
        if not each.label or labels():
            first = number - len(before) + left.start()
            return tagged.starts[min(first, number)], tagged.ends[number + right.end()]
    return None
