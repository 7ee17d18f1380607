# ruff: noqa: E501 - a class of words stays in one piece
"""Classes of words that show who speaks, in the languages that models often write.

Every word of a text gets a tag of one character: "I was trained by" and "ich wurde von … trainiert"
become `IBKP` and `IBP…K`. So a rule about tags holds in every language of the lexicon. Marks such
as commas and quotation marks are their own tags, a line break is `¶`, and any other word is `x`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

OTHER, NUMBER, MODEL, MAKER, LINE_BREAK, SYMBOL = "x", "0", "X", "C", "¶", "*"
# Whole words. The first class that has a word wins.
WORDS = {
    # the speaker
    "I": "i ich je j yo eu io я ik jag jeg we wir nous 我 本人 在下 我们 私 私は 私が 僕 僕は 俺 俺は わたし わたしは 저 저는 제가 나는 내가 전 저희는",
    "A": "estou am sido zostałem m bin suis soy sou sono fui estoy jestem sommes somos remain",
    "O": "mig mij me mich mir moi myself m' mí mim меня мне мной мною 私を 僕を わたしを 저를 나를 절 제게",
    "1": "us uns",
    "i": "mi",  # "my" in Spanish, "me" in Italian
    "M": "my mein meine meiner meinem meinen meines mon ma mes mis meu meus minha minhas mio mia miei mie мой моя моё мое мои моей моего моим our unser unsere notre nos nuestro nuestra 我的 本模型 私の 僕の わたしの 제 내 저의 나의",
    "m": "mine meins míos mía mío",
    # the reader
    "Y": "you u du ti dich dir euch ihr vous tu te usted ustedes vosotros você vocês voi lei вы ты вам вас тебе тобой вами 你 您 你们 あなた あなたが 皆さん 당신 당신이 ye",
    "y": "your yours dein deine euer eure ihre ihrem ihren votre vos tu tus su sus seu sua vostro vostra suo tuo ваш ваша ваше твой твоя 您的 你的 あなたの 당신의",
    "Z": "estás estáis stai state estamos están está stehst",
    # what is said, and where
    "T": "this these those above following dies diese dieser dieses diesem ce cet cette ces este esta esto estos estas questo questa queste это этот эта эту этого этой isto 本 此 这 这个 这段 这份 这条 以上 この これ 本文 이 본",
    "U": "here ende bout extremo lado altro-capo hier ici aquí aqui keyboard wheel helm mic microphone controls line end side duty service appareil apparat clavier teclado tastatur leitung telefon teléfono telefone telefono aparelho apparecchio аппарате связи проводе здесь 这里 这边 这儿 こちら ここ 여기 여기는",
    "q": "qui",  # "who" in French, "here" in Italian
    "V": "saluda saluta salue réponds parla parlano rispondo respondo spreche schreibe antworte écris hablo escribo falo escrevo parlo scrivo говорю пишу отвечаю affaire moving holding defending translating reviewing explaining signing reporting logging checking selling buying betting voting guessing играет お話ししている お話している 話をしている 聊 谈 speaking talking writing typing answering replying responding chatting playing dealing interacting conversing corresponding debating arguing trading competing negotiating bargaining haggling interviewing facing reading hearing listening texting messaging sparring bidding questioning quizzing testing grading judging examining addressing bluffing discussing working sitting collaborating "
    "talk speak chat deal trade negotiate reden redest redet sprichst sprechen spricht schreiben schreibst schreibt chatten chattest verhandeln verhandelst spielen spielst spielt diskutieren diskutierst unterhalten handelst "
    "parlez parles discutez discutes négociez jouez échangez dialoguez conversez écrivez lisez lis écrit parle répond répondez "
    "hablando habla hablas hablan conversando charlando chateando negociando jugando tratando leyendo escribe responde escreve fala falando conversas jogando lidando lendo parlando parli parlate giocando trattando chattando negoziando leggendo scrive risponde "
    "говорите говоришь говорит разговариваете разговариваешь общаетесь общаешься играете играешь переписываетесь торгуетесь беседуете пишет отвечает "
    "对话 聊天 交谈 谈判 说话 交流 下棋 博弈 讨论 回答 話して 話している 交渉して 交渉している 対話して 対話している 会話して 会話している 話し お話し 대화하고 대화하는 이야기하는 협상하는 협상하고 말하는 얘기하는 상대하는 대화 중인 계신 있는",
    "v": "paired matched up facing against across opposite",
    # being and naming
    "B": "является är jag-är is are was were be been has have had got get gets re ve ist sind war wurde wurden worden werde hat haben habe wird est sont était été ai ont avons es fue fueron ha han son era é foi fomos são foram tem è stato stata stati state hanno ho есть был была было были 是 就是 正是 乃 は では です でした である なのは 입니다 이다 comes came come goes",
    "2": "heiße heisse llamo chamo chiamo nazywam heet heter hedder jmenuji",
    "N": "label labelled dub baptisé baptisée getauft bautizó bautizaron batizaram battezzato nannte tauften taufte name names named call calls called calling nickname nicknamed handle alias moniker dubbed christened aka known identity codename tag heißt heisst nenn nenne nennt nennen name namen namens genannt appelle appelles appellent appelez appelé appelée nom nomme nommé nommée prénom surnomme llaman llámame llamarme llamado nombre nombran chamam chame chamado chamada chiamano chiama chiamami chiamatemi chiamarmi chiamato nome зовут зовите называют называйте имя имени имене 叫 叫做 名字 名叫 名为 名称 称为 名前 という といいます と申します 申します 呼んで 이름 이름은 라고 이라고",
    "n": "not n't never no nicht kein keine keiner pas jamais nunca non não nie nein нет не 不是 没有 不 ない ではない 아니 아니라 isn wasn aren don doesn didn won can't neither nor hardly couldn wouldn shouldn",
    # making
    "k": "made make makes making teaches taught raised raise gave given gives brought put owns sells runs hosts",
    "J": "создателем maker makers creator creators developer developers inventor inventors builder builders programmer programmers designer designers trainer trainers manufacturer parent parents vendor provider owner owners engineers birthplace home "
    "entwickler entwicklerin entwicklerteam hersteller herstellerin schöpfer erfinder anbieter macher erbauer créateur créateurs créatrice développeur développeurs concepteur concepteurs fabricant creador creadores creadora desarrollador desarrolladores desarrolladora fabricante criador criadores criadora desenvolvedor desenvolvedores desenvolvedora creatore creatori sviluppatore sviluppatori produttore "
    "создатель создатели создателя разработчик разработчики разработчика разработчиком 开发者 开发商 创造者 开发团队 母公司 开发方 制造商 開発元 開発者 開発会社 生みの親 製作者 作り手 개발사 개발자 제작사 제작자",
    "S": "company lab labs laboratory team teams people folks engineers researchers scientists firm startup start group staff house organisation organization guys firma unternehmen hause haus team leute société entreprise équipe laboratoire gens maison empresa equipo laboratorio gente casa equipe azienda squadra laboratorio компания компании компанией компанию команда команде команды лаборатория лаборатории фирма сотрудники инженеры 公司 团队 社 회사 회사는 팀 연구소",
    # kinds of machines
    "G": "modelem taalmodel språkmodell entity ai ais a.i llm llms model models assistant assistants chatbot chatbots bot bots machine algorithm network program system systems agent intelligence version instance variant checkpoint family series product creation robot ki sprachmodell modell assistent assistentin sprachassistent maschine programm ki-modell modèle modèles ia assistante intelligence réseau modelo modelos asistente inteligencia assistente inteligência modello modelli intelligenza модель модели моделью ассистент ассистента нейросеть нейросети ии бот помощник 模型 大模型 语言模型 大语言模型 人工智能 助手 人工智能助手 机器人 智能助手 モデル 言語モデル アシスタント 人工知能 모델 언어모델 언어 인공지능 어시스턴트 챗봇",
    "w": "weights parameters training knowledge architecture prompt siblings sibling cousin cousins predecessor successor heritage roots origins origin upbringing instructions guidelines card metadata config backend engine brain circuits wiring pesos gewichte poids веса 权重",
    # writing and signing
    "W": "gjord gjort skriven översatt 書きました 書いた 書かれた 書きます 썼어요 escribió escreveu scrisse schrieb wrote написал написала перевёл перевела placed entered cast effectué effectuée réalisé réalisée durchgeführt выполнен выполнено realizado realizada eseguita 完成 作成した 作成された 작성했습니다 작성한 번역했습니다 번역한 생성한 썼습니다 written translated reviewed sent posted generated produced composed drafted prepared answered submitted typed signed authored penned rendered occupied held filled served delivered provided issued played checked approved done contributed thought dictated edited proofread co-authored coded transl "
    "geschrieben übersetzt verfasst erstellt generiert gesendet gesprochen beantwortet geprüft begutachtet besetzt signiert unterschrieben gezeichnet gez écrit traduit rédigé généré envoyé relu signé préparé escrito escrita traducido traducida redactado generado enviado revisado firmado traduzido traduzida redigido gerado assinado scritto tradotto tradotta generato inviato firmato redatto revisionato "
    "написан написано написана переведено переведён перевёл перевела подготовлено подготовлен создано сгенерировано отправлено проверено подписано 生成 撰写 翻译 编写 书写 回答 执笔 翻訳 作成 執筆 生成 번역 작성 생성",
    "L": "undersigned signer unterzeichnete unterzeichner soussigné soussignée firmante role rolle rôle rol papel ruolo gesprächspartner gesprächspartnerin interlocutora 对手 对方 translator author writer reviewer speaker player sender agent judge interviewee interviewer candidate bidder seller buyer critic editor narrator signatory respondent responder contributor voter negotiator debater opponent partner rival counterpart interlocutor seat signature sender side contestant participant adversary teammate competitor companion helper servant voice mind "
    "übersetzer übersetzerin autor autorin verfasser verfasserin prüfer gutachter gutachterin absender sprecher spieler gegner gegenüber unterschrift traducteur traductrice auteur autrice rédacteur rédactrice relecteur relectrice expéditeur interlocuteur adversaire joueur signataire traductor traductora autora redactor revisor remitente interlocutor jugador oponente rival tradutor tradutora revisor remetente jogador adversário traduttore traduttrice autore autrice revisore mittente giocatore avversario "
    "переводчик автор рецензент отправитель игрок собеседник соперник подпись 译者 作者 撰稿人 评审 审稿人 署名 签名 落款 发件人 回答者 玩家 翻译者 対戦相手 相手 相手は 訳者 著者 筆者 作者 査読者 担当 担当者 レビュー担当 翻訳担当 回答担当 レビュアー 回答者 発信者 번역자 작성자 저자 필자 검토자 리뷰어 상대 상대는 상대방 상대방은 서명 답변자",
    "a": "final answer answers response reply vote bid move turn verdict choice guess offer opinion proposal review solution contribution pick statement take message line text words post comment antwort réponse respuesta resposta risposta ответ 回答 답변 답변은",
    "p": "part member one child offspring descendant scion",
    "j": "を",
    "l": "relecture revue revisión review révision korrektur revisão revisione translation übersetzung traduction traducción tradução traduzione перевод vertaling 译文 訳文 訳",
    "F": "regards sincerely best lgtm wishes love xoxo hugs faithfully respectfully cordially warmly kindly truly grüße gruß grüßen grüssen gruss lg mfg vg hochachtungsvoll cordialement amicalement amitiés bises salutations sincèrement respectueusement saludos saludo atentamente abrazo abrazos cordialmente abraço abraços atenciosamente cumprimentos saluti cordiali saluto distinti уважением приветом пожеланиями 敬上 谨上 此致 敬礼 祝好 敬具 よろしく 올림 드림 배상",
    "f": "thanks cheers bien thank danke merci gracias obrigado grazie спасибо 谢谢",  # to a reader, too
    "h": "identify identity identification offenlegung declaration disclosure disclose transparency transparent hide hidden secret reveal confess confession admit introduce introduction record honest honesty candid frank truth spoiler offen ehrlich ehrlichkeit transparence franchise sinceridad transparencia transparência trasparenza честно признаюсь",
    # small words
    "E": "qualité calidad qualidade qualità eigenschaft capacity качестве as being als como come как jako 作为 身为 作為 tant quanto qua",
    "b": "przez av door od by from von vom par por pela pelo da dal dalla dall от 由 来自 出自 によって により から",
    "P": "at of in on under inside through von bei aus durch vom beim par chez de d del do du da dos das pela pelo por di dal dalla dall della alla presso от из в у 由 来自 出自 属于 に が から によって により で の 製 産 에서 의 가 이 에 의해",
    "H": "with to against mit gegen zu avec contre à con contra com с против 与 和 跟 同 と 와 과 랑 courtesy",
    "D": "en ett een het the a an der die das dem den ein eine einen einer einem le la l les un une el los las una o os as um uma il lo gli uno al 一个 一款 一名 한",
    "R": "了 namely specifically nämlich notamment actually really just indeed basically only simply also still currently now right all obviously honestly truly literally definitely certainly officially technically proudly originally initially first ever probably presumably apparently merely quite of-course course fact anyway well yes so too then today once already entirely largely nur eigentlich übrigens gerade eben ja auch hier nämlich tatsächlich ursprünglich einfach bloß wirklich aktuell juste seulement simplement actuellement en-fait vraiment donc bien maintenant solo sólo simplemente actualmente realmente ahora por-cierto apenas agora na-verdade soltanto davvero adesso semplicemente просто действительно сейчас всего лишь только 其实 实际上 只是 目前 现在 实は 실은 사실 지금 latest newest new little small humble big large good old friendly same famous very own real true full actual mere tiny so-called",
    "t": "that it he she they lo ça cela c eso esso dass daß que которые который которая что it's der-die-das 的 那 それ 그것",
    "Q": "who what which whom whose wer was welches welche welcher quel quelle quién qué cuál quem qual chi cosa quale кто что какая какой 谁 什么 何 誰 누구 무엇",
    "&": "and or but und oder aber et ou mais y o e ed ma pero и или а но 以及 そして 그리고 또는",
    "d": "did does do will would can could may might must shall should didn",
    "s": "s",
    "z": "sits sitzt steckt hides lurks says say reads states means heißt bedeutet steht lautet",
    "c": "gehöre appartiens pertenezco pertenço appartengo hail originate stem belong stamme komme viens vengo venho происхожу",
    "o": "for während pendant durante для seit",
    "u": "like unlike wie anders comme como-si",
}
# Beginnings of words, for verbs and nouns that are inflected.
STEMS = {
    "K": "built stworz utveckl ontwikkel opracow train creat develop design program engineer invent releas launch deploy fine-tun finetun distill distil assembl conceiv pretrain coded shipped cook loose unleash hatch "
    "entwick trainier gebaut erschaff geschaff programmier konzipier "
    "entraîn développ créé conç formé fabriqu programm mis-au-point "
    "cread creó crear entren desarroll diseñ hizo hech criad criou criar trein desenvolv projet feit creat addestr svilupp progett "
    "созда разработ обуч сдела натрен натрениров тренирова придума выпуст 开发 训练 研发 创造 创建 打造 推出 設計 開発 訓練 作った 作られ 作り 学習 トレーニング 生まれ 만든 만들 개발 훈련 학습 제작 탄생",
    "G": "sprachmodell ki-assist ki-model нейросет ассистент модел",
    "W": "перевед написа подготов сгенерир übersetz",
}
MARKS = {
    "，": ",", "、": ",", "。": ".", "！": "!", "？": "?", "：": ":", "；": ";", "（": "(", "）": ")",
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "「": '"', "」": '"', "『": '"', "』": '"',
    "–": "—", "―": "—", "‒": "—", "…": ".", "[": "(", "]": ")", "{": "(", "}": ")", "\n": LINE_BREAK,
    "~": "—", "【": "(", "】": ")", "<": "(", ">": ")", "/": "*", "#": "*", "_": "*", "✍": "—",
}  # fmt: skip
UNSPACED = "[\u3040-\u30ff\u3400-\u9fff]"
PARTICLES = "은는이가을를의와과도로"  # of Korean, written together with their word
FORMS = {
    "Sie": "Y",
    "Ihnen": "Y",
    "Ihr": "y",
    "AI": "G",
    "IA": "G",
    "KI": "G",
    "m'": "O",
}  # by their capitals
TAG_OF = {word: tag for tag, words in reversed(WORDS.items()) for word in words.split()} | FORMS
STEM_TAGS = {stem: tag for tag, stems in reversed(STEMS.items()) for stem in stems.split()}
LONGEST_STEM = max(map(len, STEM_TAGS))
_unspaced = sorted(
    (word for word in {**TAG_OF, **STEM_TAGS} if re.match(UNSPACED, word)), key=len, reverse=True
)
TOKEN = re.compile(
    r"(?P<elided>(?<!\w)(?:[CDJLMNSTcdjlmnst]|[Qq]u)['’])|"
    r"(?P<word>[^\W\d_\u3040-\u30ff\u3400-\u9fff]+(?:-[^\W\d_]+)*)|(?P<mark>[^\w\s'’\ue000-\ue008]|\n)|"
    r"(?P<name>[\ue000-\ue008])|['’](?P<clitic>m|s|re|ve|d|ll|M|S)(?!\w)|(?P<number>\d+)|"
    rf"(?P<unspaced>{'|'.join(_unspaced)})|(?P<run>{UNSPACED})"
)
CLITICS = {"m": "A", "s": "s", "re": "B", "ve": "B", "d": "d", "ll": "d"}


@lru_cache(maxsize=8192)
def tag_word(word: str) -> str:
    """The tag of a word; that of its stem if the word itself has none."""
    if tag := TAG_OF.get(word) or TAG_OF.get(word := word.lower()):
        return tag
    if len(word) > 1 and word[-1] in PARTICLES and (tag := TAG_OF.get(word[:-1])):
        return tag
    for length in range(min(len(word), LONGEST_STEM), 1, -1):
        if tag := STEM_TAGS.get(word[:length]):
            return tag
    return OTHER


class Tagged(NamedTuple):
    """The tags of a text, and where the word of each tag begins and ends."""

    tags: str
    starts: list[int]
    ends: list[int]


def tag_text(signed: str, start: int, end: int, makers: str) -> Tagged:
    """The tags of a part of a text in which signs stand for names."""
    tags: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for found in TOKEN.finditer(signed, start, end):
        kind, word = found.lastgroup, found[0]
        if kind == "word":
            tag = tag_word(word)
        elif kind == "mark":
            tag = MARKS.get(word) or (word if word.isascii() or word == "—" else SYMBOL)
        elif kind == "name":
            tag = MAKER if word in makers else MODEL
        elif kind == "clitic":
            tag = CLITICS[found["clitic"].lower()]
        elif kind == "number":
            tag = NUMBER
        elif kind == "run":
            if tags and tags[-1] == OTHER and ends[-1] == found.start():
                ends[-1] = found.end()
                continue
            tag = OTHER
        else:
            tag = tag_word(word.rstrip("'’") if kind == "elided" and word[0] not in "mM" else word)
        tags.append(tag)
        starts.append(found.start())
        ends.append(found.end())
    return Tagged("".join(tags), starts, ends)
