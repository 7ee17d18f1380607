# ruff: noqa: E501 - a class of words stays in one piece
"""The words around a name as features, and their weights: how likely a speaker means itself.

The rules of `claims` and `evidence` are exact, and miss what nobody has thought of. Here every word
near a name counts a little for or against a claim, by itself, by its class and by its place. The
weights are learned from the corpus in tests/data/masking (logistic regression).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from math import fsum
from typing import NamedTuple

from parley.match.context_weights import WEIGHTS
from parley.match.lexicon import CLITICS, MARKS, PARTICLES, TAG_OF, tag_word

NEAR_WORDS = 14  # of the same sentence, on each side of a name
FAR_WORDS = 40  # of the text, on each side
KINDS = {
    "own": "s", "known": "s", "model": "s", "cast": "f", "famous": "f", "shared": "h", "maker": "m",
    "lab": "l", "odd": "o",
}  # fmt: skip
# Classes that the lexicon does not have. A word of the lexicon that stands here has this class.
CLASSES = {
    # the speaker and the reader, in more languages
    "I": "أنا انا मैं हम أني ja minä ben saya aku im i'm imma jestem",
    "O": "मुझे मुझको لي إليّ 我 俺を 僕を 自分 myself selbst",
    "M": "मेरा मेरी मेरे اسمي نموذجي うちの 俺の 我的 我家 저희 우리",
    "Y": "तुम आप आपसे आपको أنت معك لك إليك 各位 大家 ya y'all folks",
    "y": "आपका आपकी आपके yer",
    "N": "नाम اسم يدعى تسمى 呼ぶ 呼ばれ 呼ばれて 叫我 称呼 불러 부르는 부르 부릅니다 renamed rebranded baptised baptized rebaptisé umgetauft rebautizado ribattezzato переименовали назвали окрестили nazvali umbenannt bezeichnet answer-to atendo",
    "K": "बनाया बनाई प्रशिक्षित विकसित طورته طورتني دربتني طوّرتني صنعتني أنشأتني مدرب ausgebildet aufgezogen großgezogen gezüchtet crió criaron élevé forgé 育て 育てられ 喂 喂养 养大 растили вырастили воспитали cresciuto criou parido raised reared fed nurtured schooled wired assembled compiled spawned forged bred baked groomed coached brought-up tutored 孕育 出品 키운 길러",
    "G": "नमूना मॉडल نموذج مساعد chatbot chatbots gpt-model llms transformer neural-net parrot autocomplete 大模型 聊天机器人 チャットボット 챗봇이 ai模型",
    # what people do with models, and with each other
    "α": "use uses used using usage ask asks asked asking consult consulted prefer prefers preferred compare compares comparing try tries tried trying test tested tests testing subscribe subscribed pay pays paid buy bought buys install installed open opened query queried prompt prompted recommend recommended recommends google googled hate hates love loves like likes liked trust trusts admire read reads met meet invited invite visit visited saw see seen heard hear know knows knew call phoned emailed let lets cite cites cited quote quoted mention mentions mentioned benchmark benchmarked evaluate evaluated "
    "nutze nutzt nutzen benutze benutzt verwende verwendet frage fragt gefragt fragte bevorzuge mag liebe kenne lese las gelesen "
    "utilise utilises utilisé demande demandé préfère aime connais lu essayé "
    "uso usa usan usamos usar usé pregunto pregunté preguntar prefiero pedí pido probé leo leí conozco "
    "utilizo pedi perguntei prefiro gosto li conheço "
    "chiesto chiedo preferisco letto conosco provato "
    "использую использовал использовала спросил спросила спрашиваю люблю читал читала предпочитаю попробовал знаю "
    "用 使用 问 问了 喜欢 比较 觉得 使って 使う 使い 聞いた 聞いて 好き 比べ 사용 써서 쓰고 물어 물었 좋아 비교 أستخدم سألت أفضل पूछता पूछा इस्तेमाल पसंद",
    # people
    "β": "uncle aunt brother brothers sister sisters cousin nephew niece father mother dad mum mom grandfather grandmother grandpa grandma son daughter husband wife friend friends neighbour neighbor neighbours colleague colleagues boss teacher professor dentist doctor mr mrs ms dr sir lady monsieur madame herr frau señor señora baker gardener painter composer physicist singer actor farmer butler sailor captain inspector witness lawyer client clients customer student students child children baby pupil mentor roommate flatmate grandson "
    "onkel tante bruder schwester vetter nachbar nachbarin kollege kollegin chef lehrer freund freundin oma opa mutter vater "
    "oncle frère sœur cousin voisin voisine collègue ami amie père mère grand-mère tío hermano hermana primo vecino amigo jefe abuela abuelo padre madre tio irmão irmã primo vizinho avó avô pai mãe zio fratello sorella cugino vicino nonna nonno "
    "дядя брат сестра друг сосед коллега бабушка учитель 叔叔 哥哥 弟弟 姐姐 妹妹 朋友 邻居 同事 老师 先生 奶奶 おじ 兄 弟 姉 妹 友達 先生 さん 祖母 삼촌 형 누나 친구 선생님 이웃 씨 عمي أخي صديقي जी भाई चाचा दोस्त",
    # stars, winds, animals and things that bear such names
    "γ": "constellation zodiac horoscope star stars sign astrology twins born june may wind winds provence llama llamas alpaca wool zoo farm spat spits spit tree trees palm leaf beach bird birds falcon falconry cat dog horse ship boat car phone pixel sonnet poem haiku opus symphony sternbild sternzeichen zwillinge horoskop wind lama tier signe étoile vent animal zodiaque signo estrella viento animal horóscopo vento segno stella ветер звезда созвездие знак 星座 双子座 羊驼 风 動物 ラマ 별자리 동물 shakespeare monet debussy shannon novel film movie song river street restaurant village",
    # where machines are, and of what they are
    "ε": "server servers datacentre datacenter cluster gpu gpus chips chip silicon circuits tokens token tokenizer cutoff cut-off knowledge context memory neurons neural net parameters parametern billion transistors electricity power-plug fine-tuning rlhf dataset datasets corpus logits embeddings inference api endpoint deployment config rechenzentrum wissensstand serveur serveurs mémoire servidor servidores memoria memória server-farm сервер серверах серверы память отсечки 服务器 数据 训练数据 截止 参数 知识 サーバー データ 学習データ 知識 서버 데이터 지식 kernel firmware software hardware code-base release version",
    # roles and disguises
    "ζ": "mask masks costume disguise hat wig curtain curtains hood bonnet persona character pirate wizard dwarf knight detective role-play roleplay stage actor alter ego pseudonym pseudo nickname alias avatar act acting trench coat cape cloak robe beard screen fake pretend pretending play-acting theatre maske hut rolle kostüm haube vorhang masque chapeau rideau capot personnage máscara disfraz sombrero capó personaje chapéu maschera cappello sipario маска маской маске занавес шляпа 面具 屏幕 马甲 背后 幕后 仮面 中の人 正体 화면 가면 정체",
    # code
    "η": "def return returns assert import imports const enum class var let variable function client mock mocks string default key field constant import_ module package env environment todo fixme wrapper parser config.json yaml json array list dict loop null none true false print console log select option value test tests unit lint docstring branch commit merge hard-coded hardcoded",
    # texts
    "θ": "paper papers article articles blog report reports docs documentation news newspaper essay book books story stories page pages chapter exercise task question example dataset exam quiz text passage source press release study survey chart table figure title headline caption dialogue scene script play quote quotation artikel buch aufgabe frage beispiel livre article question exemple libro artículo pregunta tarea livro artigo pergunta libro domanda esempio книга статья вопрос задание текст 文章 题目 论文 新闻 书 例子 引用 小说 問題 記事 本 小説 문제 기사 책 소설",
    # guesses and doubts
    "ι": "think thinks guess guesses guessed suspect suspects believe believes doubt doubts bet assume assumes wonder wonders suppose maybe perhaps possibly probably seem seems sounds sound might looks guessing rumour rumor glaube denke vermute vielleicht crois pense peut-être creo pienso quizás tal-vez acho talvez credo penso forse думаю кажется может наверное 觉得 认为 猜 可能 也许 思う 多分 たぶん 생각 아마 أظن शायद",
    # greetings
    "κ": "hi hello hey hallo hola bonjour ciao olá oi salut привет здравствуйте 你好 大家好 こんにちは 안녕하세요 안녕 مرحبا नमस्ते greetings howdy yo dear welcome good-morning moin servus salve buongiorno bonsoir",
    # introductions
    "λ": "introduce introducing introduction present presenting presento pleasure pleased nice glad delighted acquaintance enchanté encantado prazer piacere vorstellen vorstelle angenehm freut myself-introduction представиться представлюсь познакомиться 自我介绍 介绍 请多关照 多多关照 自己紹介 よろしく 初めまして はじめまして 소개 반갑습니다 service checking reporting signing-off signing typing logging",
    # people, as opposed to machines
    "μ": "human humans person people man woman somebody someone mensch menschen person humain humaine personne humano humana persona umano persona человек люди человеком 人 人类 真人 人間 人 사람 인간 إنسان इंसान flesh blood mortal",
    # work for a company
    "ν": "work works worked working job jobs hired hire employed employee employees employer intern internship engineer engineers consultant consulted salary office manager ceo founder founded stock stocks share shares shareholder invest invested investor price prices revenue market lawsuit sued regulator antitrust announced announcement licence license subscription account arbeite arbeitet arbeitete firma aktie travaille travaillé bourse trabajo trabaja trabajé acciones trabalho trabalha trabalhei lavoro lavora lavorato azioni работаю работает работал акции 工作 上班 股票 員工 员工 働いて 働く 会社員 株 일해요 다녀요 주식",
    # others of the same kind
    "ξ": "rival rivals competition competitor competitors other others another else older newer younger elder next previous former formerly predecessor successor sibling siblings cousin-model sister-model generation generations upgrade replaced replacement deprecated retired early later middle biggest smallest twin namesake kin clan family relative relatives descendant ancestor ancestors konkurrenz vorgänger nachfolger geschwister prédécesseur successeur predecesor sucesor antecessor predecessore successore предшественник конкурент 前辈 后辈 兄弟 上一代 下一代 先代 後継 선배 후배",
    # somebody else
    "ο": "he she they him her them his their hers theirs himself herself er sie ihm seine il elle ils lui él ella ellos ele ela eles egli lui lei loro он она они его её им 他 她 他们 彼 彼女 그 그녀 그는 هو هي वह",
    # conditions
    "π": "whether if unless ob falls wenn si se если ли 如果 是否 もし かどうか 만약 إذا अगर were would-be",
    # behind something
    "σ": "behind beneath underneath under below beyond inside within hinter unter derrière sous dessous detrás tras bajo debajo atrás trás sob dietro sotto за под 背后 后面 底下 裏 奥 下 뒤에 안에 خلف पीछे",
    # comparisons
    "τ": "than vs versus compared comparison better worse faster slower cheaper smarter between both either neither superior inferior outperforms beats als-wie schneller besser mieux plus moins mejor peor melhor pior meglio peggio лучше хуже чем 比 更 より もっと 보다 더 أفضل بेहतर",
    # what is said by somebody
    "υ": "said says saying told tells tell wrote writes replied replies answered asked claims claimed claiming insists announced reads sagte sagt dit dijo dice disse diz сказал говорит 说 说道 写道 言った 言う 말했 말하",
    # houses and owners
    "φ": "belongs belong owned owns roof house stable lab labs laboratory headquarters kitchen crib cradle nursery birthplace hometown homepage campus factory workshop stall labor laboratoire laboratorio maison casa haus 实验室 家的 旗下 研究所 출신 소속 lawyers pr policy policies terms guidelines",
    # revealing
    "ρ": "oops whoops leak leaking leaked secret confess confession admit fine okay ok yes yep truth honestly spoiler reveal cat-out actually busted caught correct exactly right close nope wrong no",
}  # fmt: skip
CLASS_OF = {word: tag for tag, words in reversed(CLASSES.items()) for word in words.split()}
CJK = "\u3040-\u30ff\u3400-\u9fff"
_together = sorted(
    (word for word in {**TAG_OF, **CLASS_OF} if re.fullmatch(f"[{CJK}]+", word)),
    key=len,
    reverse=True,
)
TOKEN = re.compile(
    rf"(?P<name>[\ue000-\ue008]|\[name withheld\])|(?P<together>{'|'.join(_together)}|[{CJK}])|(?P<number>\d+)|"
    r"['’](?P<clitic>m|s|re|ve|d|ll|M|S)(?!\w)|"
    rf"(?P<word>(?:[^\W\d_{CJK}]|[\u0610-\u061a\u064b-\u065f\u0900-\u0963])+(?:['’](?=\w))?)|(?P<mark>[^\w\s]|\n)"
)
STOPS = frozenset(".!?¶;")


class Words(NamedTuple):
    """The words of a text, the class of each, and where each begins."""

    words: list[str]
    tags: str
    starts: list[int]


@lru_cache(maxsize=8192)
def classify_word(word: str) -> str:
    """The class of a word; that of the lexicon where no class here has it."""
    low = word.lower()
    if tag := CLASS_OF.get(low):
        return tag
    if len(low) > 1 and low[-1] in PARTICLES and (tag := CLASS_OF.get(low[:-1])):
        return tag
    return tag_word(word)


def split_for_context(signed: str, start: int, end: int) -> Words:
    """The words of a part of a text in which signs stand for names."""
    words: list[str] = []
    tags: list[str] = []
    starts: list[int] = []
    for found in TOKEN.finditer(signed, start, end):
        kind, word = found.lastgroup, found[0]
        if kind == "name":
            tag, word = "X", "\ue000"
        elif kind == "number":
            tag, word = "0", "0"
        elif kind == "mark":
            word = tag = MARKS.get(word) or (word if word.isascii() or word == "—" else "*")
        elif kind == "clitic":
            tag = CLITICS[found["clitic"].lower()]
        else:
            tag = classify_word(word.rstrip("'’"))
        words.append(word.lower())
        tags.append(tag)
        starts.append(found.start())
    return Words(words, "".join(tags), starts)


def list_features(text: Words, number: int, kind: str) -> Iterator[str]:
    """What the words around the name of this number show. A feature can occur twice."""
    words, tags = text.words, text.tags
    sort = KINDS[kind]
    left, right = tags[max(0, number - 6) : number], tags[number + 1 : number + 7]
    before, after = "^" * (6 - len(left)) + left, right + "$" * (6 - len(right))
    yield "k" + kind
    for place in range(1, 6):
        yield f"t-{place}{before[-place]}"
        yield f"t+{place}{after[place - 1]}"
    for place in range(1, 5):
        if number >= place:
            yield f"w-{place}{words[number - place]}"
        if number + place < len(words):
            yield f"w+{place}{words[number + place]}"
    for length in (2, 3, 4):
        yield f"T-{before[-length:]}"
        yield f"T+{after[:length]}"
        yield f"{sort}T-{before[-length:]}"
        yield f"{sort}T+{after[:length]}"
    yield "W-" + "_".join(words[max(0, number - 2) : number])
    yield "W+" + "_".join(words[number + 1 : number + 3])
    yield f"{sort}a{before[-1]}{after[0]}"
    yield f"a{before[-2:]}{after[0]}"
    yield f"a{before[-1]}{after[:2]}"
    yield f"a{before[-2:]}{after[:2]}"
    first = number
    while first > 0 and tags[first - 1] not in STOPS and number - first < NEAR_WORDS:
        first -= 1
    last = number + 1
    while last < len(tags) and tags[last] not in STOPS and last - number <= NEAR_WORDS:
        last += 1
    for side, part in (("-", range(first, number)), ("+", range(number + 1, last))):
        for at in part:
            yield f"b{side}{words[at]}"
            yield f"B{side}{tags[at]}"
            if len(words[at]) > 5:
                yield f"p{side}{words[at][:5]}"
    start = "^" if first == 0 else tags[first - 1]
    end = "$" if last == len(tags) else tags[last]
    yield f"l{start}{min(number - first, 3)}"
    yield f"r{end}{min(last - number - 1, 3)}"
    yield f"e{start}{min(number - first, 2)}{end}{min(last - number - 1, 2)}"
    for tag in set(tags[first:last]):
        yield f"{sort}s{tag}"
    far = slice(max(0, number - FAR_WORDS), number + FAR_WORDS)
    for tag in set(tags[far]):
        yield f"{sort}A{tag}"
    for word in set(words[far]):
        yield f"c{word}"
    yield f"n{min(tags[far].count('X'), 4)}"


@cache
def load_weights() -> dict[str, float]:
    """The weight of each feature; that of "bias" belongs to every name."""
    weights: dict[str, float] = {}
    for line in WEIGHTS.replace("”", '"').split("\n"):
        weight, *features = line.split()
        weights.update(dict.fromkeys(features, int(weight) / 100))
    return weights


def score_name(text: Words, number: int, kind: str) -> float:
    """How likely the name of this number is the speaker's, as log odds."""
    weights = load_weights()
    features = set(list_features(text, number, kind))
    return fsum([weights["bias"], *(weights[each] for each in features if each in weights)])
