# ruff: noqa: E501 - a row of the table stays in one piece
"""The table of names and of the forms in which a speaker names itself.

The rows are for set phrases, fields and labels. What the words around a name show in general is in
`evidence`, and `context` weighs every word around a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from parley.match.first_person import FIRST_ROWS
from parley.match.starts import keys_of_row

# Names that mean a model wherever they stand.
MODELS = [
    *"""
    chatgpt gpt deepseek qwen 通义千问 文心一言 baichuan chatglm internlm 讯飞星火 doubao 豆包 hunyuan 混元
    mixtral codestral smollm olmo dbrx wizardlm command-r nemotron wenxin tongyi yiwen gigachat
    yandexgpt pixtral ministral magistral devstral stablelm jamba starcoder tulu openhermes bloomz
    xgen 千问 文心 智谱清言 o1-preview o1-mini o3-mini o4-mini lamda chat-gpt exaone hyperclova stepfun
    yi-34b yi-6b yi-9b yi-1.5 yi-large yi-lightning palmyra minimax-m1 minimax-m2 minimax-text
    minimax-01 阶跃星辰 百川 书生 codellama codegemma notebooklm eurollm apertus teuken krutrim plamo
    elyza tsuzumi kanana skywork telechat minicpm rwkv wizardcoder openchat flan-t5 watsonx
    sensechat maritalk vikhr text-davinci 盘古大模型 讯飞 星火大模型 日日新
    """.split(),  # noqa: SIM905
    "chat gpt", "deep seek", "code llama", "bing chat", "nous hermes",
]  # fmt: skip
# Names that people, stars, animals and things bear too.
SHARED = [
    *"""
    claude gemini gemma llama grok phi nova titan copilot mistral falcon bard palm ernie kimi
    alpaca vicuna glm granite zephyr orca dolly reka perplexity sonar bloom hermes aya o1 o3 o4
    solar clova yi luminous codex
    """.split(),  # noqa: SIM905
    "command r", "le chat", "command a",
]  # fmt: skip
# Those who make models: nobody speaks under these names, but one may say to come from there.
MAKERS = [
    *"""
    openai anthropic deepmind 深度求索 alibaba 阿里巴巴 阿里云 zhipu 智谱 moonshot 月之暗面 minimax xai 01.ai
    cohere meta google 谷歌 microsoft 微软 nvidia amazon baidu 百度 tencent 腾讯 bytedance 字节跳动 mistralai
    huggingface ai21 databricks x.ai facebook ibm yandex iflytek z.ai sber sberbank upstage naver
    huawei inflection ai2 character.ai eleutherai sensetime 科大讯飞 商汤 百川智能 零一万物 面壁智能 snowflake
    xiaomi 小米 kakao 카카오 微軟 智譜
    """.split(),  # noqa: SIM905
    "open ai", "deep mind", "google deepmind", "mistral ai", "hugging face", "meta ai",
    "stability ai", "alibaba cloud", "aleph alpha", "lg ai", "lg ai research", "ai21 labs",
    "moonshot ai", "zhipu ai", "reka ai", "cohere ai", "inflection ai", "allen institute",
    "allen institute for ai", "adept ai", "technology innovation institute", "nous research",
    "liquid ai", "sakana ai",
]  # fmt: skip
# The patterns are written with plain signs: a space is a gap of any kind, ~ is a gap or none, ' is
# any apostrophe. The text is folded before, so marks inside a name need no pattern.
SPEAKER = (
    "(?:(?<![a-z])(?:I am|I'm|my name is|call me|speaking as|you're talking to|you are talking "
    "to|ich bin|ich heiße|je suis|je m'appelle|soy|me llamo|sou|sono|mi chiamo|я|меня зовут)(?: "
    "[—–-]|:)? |(?:我是|我叫|我的名字是|作为|私は|저는)~)"
)
SORTS = (
    "actually|really|just|indeed|the|an?|AI|large|language|model|assistant|chatbot|LLM|version "
    "of|called|named|based "
    "on|eine?|KI|sprachmodell|namens|une?|modèle|nommé|el|modelo|asistente|assistente|llamado|"
    "chamado|un|uma?|o"
)
SORT = f"(?:(?:{SORTS})(?![a-z]),? |(?:一个|一款|名为|叫做|人工智能|语言模型|助手)~){{0,9}}"
# What more may stand before a name that surely is a model's; before one that people bear too it
# would hit too much.
MODELLED = (
    f"(?:(?:{SORTS}|der|die|das|große[srn]?|(?:KI-)?modell|(?:KI-)?assistent(?:in)?|le|la|grand|de "
    f"langage|de langue|IA|appelée?|"
    "de lenguaje|de linguagem|il|modello|linguistico|chiamato)(?![a-z]),? |"
    "(?:这个|一个|一款|名为|名叫|叫做|人工智能|AI|大型|大语言模型|大模型|语言模型|模型|助手)~){0,9}"
)
# A line of its own, and the end of a text, as it comes or inside JSON.
LINE, STOP = r"(?:\A|(?<=[\n\"“])|(?<=\\[nr])|(?<=[.!?]) )[*_>(`]{0,3}~", r"(?=[*_`.!)。]{0,3}"
LINE_ENDS, TEXT_ENDS = rf"{STOP}[^\S\n]{{0,4}}(?:\Z|[\n\"”\\]))", rf"{STOP}~(?:\Z|[\"”]))"
SIGNED = (
    "(?:signed|signature|signiert|unterschrift|gezeichnet|signée?|firmado|assinado)(?: by| von| "
    "par| por)?~[:,]?|gez[.]"
)
WRITTEN = (
    "(?:(?:written|answered|submitted|composed|generated|translated) "
    "by|(?:geschrieben|verfasst|übersetzt|erstellt) von|(?:écrit|rédigé|traduit|généré) "
    "par|(?:escrito|escrita) por|author~:|autor~:|auteur~:)"
)
MADE = (
    "(?:trained|developed|created|made|built|designed|programmed|released|engineered|powered)(?: "
    "and [a-z]{1,12})? (?:by|at)"
)
FAIT = (
    "(?:entraîn|développ|cré|conç|desarroll|entren|desenvolv|trein|svilupp|addestr)[a-zé]{1,9} "
    "(?:par|por|pela|da)"
)
FROM = (
    f"(?:{MADE}|{FAIT}|von|(?:разработ|созда|обуч)[а-я]{{1,9}}|(?:model|assistant|AI|LLM|chatbot) "
    f"(?:by|from|of)) "
    "(?:the [a-z]{1,12} (?:at|of) )?"
)
WITHIN = r"(?:[^.!?。！？\n]|\.(?=\w)){0,80}?"  # further on in the same sentence
SELF = "(?=~[,:;—–-]?~(?:I|my|me|ich|mein|je|j'|yo|eu)(?![a-z])| [a-zäöü]{1,20} ich )"
KIND = "(?= (?:AI|model|assistant|language|chatbot)(?![a-z]))"
MARKS = r"(?:[\"'“”*_`«「『《\\]|\\u201[89cd]){0,4}"
# Names that are others than the same words in small letters: le chat is a cat.
CASED = {
    "le chat": "Le Chat", "inflection": "Inflection", "command a": "Command A", "yi": "Yi",
    "luminous": "Luminous", "codex": "Codex",
}  # fmt: skip
# Names that mean a model only where another name of their family stands in the text.
SATELLITES = frozenset(("sonnet", "haiku", "opus", "r1", "pi"))
# Makers whose name means little else than language models.
LABS = frozenset((
    "openai", "open ai", "anthropic", "deepmind", "deep mind", "google deepmind", "深度求索", "zhipu", "智谱",
    "月之暗面", "xai", "x.ai", "01.ai", "mistral ai", "mistralai", "ai21", "meta ai", "stability ai", "aleph alpha",
    "z.ai", "ai21 labs", "lg ai", "lg ai research", "moonshot ai", "zhipu ai",
    "reka ai", "cohere ai", "inflection ai", "allen institute for ai", "nous research", "liquid ai",
))  # fmt: skip
# Shared names that, with a capital letter, more often than not mean the model.
FAMOUS = frozenset(
    (
        "command r",
        "command a",
        "le chat",
        *[
            "claude",
            "gemini",
            "gemma",
            "llama",
            "grok",
            "copilot",
            "mistral",
            "kimi",
            "perplexity",
            "vicuna",
            "reka",
        ],
    )
)
# The same names in other scripts.
ALIASES = {
    alias: name
    for name, aliases in {
        "claude": "клод|클로드|クロード|克劳德|克勞德|كلود|क्लॉड|קלוד|क्लोड",
        "anthropic": "антропик|энтропик|앤트로픽|앤스로픽|アンソロピック|アンスロピック|أنثروبيك|एंथ्रोपिक|أنثروبك|एन्थ्रोपिक",
        "gemini": "джемини|джеминай|제미나이|제미니|ジェミニ|ジェミナイ|جيميني|जेमिनी|جيمناي|जेमिनाई|जैमिनी",
        "google": "гугл|гугол|구글|グーグル|جوجل|غوغل|गूगल|גוגל",
        "deepmind": "дипмайнд|딥마인드|ディープマインド",
        "gpt": "гпт|지피티|챗지피티|чатгпт|チャットgpt|챗gpt|चैटजीपीटी|تشات جي بي تي|شات جي بي تي|جي بي تي|चैट जीपीटी|जीपीटी|чат гпт|чатджипити|챗 지피티|챗 gpt",
        "openai": "опенэйай|опен-эй-ай|오픈ai|오픈에이아이|オープンai|オープンエーアイ|ओपनएआई|أوبن إيه آي|أوبن ايه آي|أوبن إي آي|ओपन एआई|오픈 ai",
        "copilot": "копайлот|코파일럿|コパイロット|كوبايلوت|कोपायलट",
        "microsoft": "майкрософт|마이크로소프트|マイクロソフト|مايكروسوفت|माइक्रोसॉफ्ट",
        "llama": "лама|ллама|라마|ラマ|لاما|लामा",
        "meta": "메타|メタ|मेटा|ميتا",
        "grok": "грок|그록|グロック|جروك|غروك|ग्रोक",
        "deepseek": "дипсик|딥시크|ディープシーク|ديب سيك|ديبسيك|डीपसीक",
        "qwen": "квен|큐원|クウェン|通義千問|通义",
        "alibaba": "алибаба|알리바바|アリババ|阿里雲|علي بابا|अलीबाबा",
        "mistral": "мистраль|미스트랄|ミストラル|ميسترال|मिस्ट्रल",
        "ernie": "文心大模型",
        "baidu": "바이두|バイドゥ",
        "kimi": "кими|키미",
        "sber": "сбер|сбербанк",
        "naver": "네이버|ネイバー",
        "hyperclova": "하이퍼클로바x|하이퍼클로바",
        "exaone": "엑사원",
        "yandex": "яндекс",
        "gigachat": "гигачат",
        "tencent": "騰訊|텐센트",
    }.items()
    for alias in aliases.split("|")
}
# Names that go together: a maker and its models. What a speaker claims to be tells the rest.
FAMILIES = (
    "claude anthropic sonnet haiku opus",
    "gemini gemma bard palm lamda google deepmind 谷歌",
    "gpt chatgpt openai copilot microsoft phi 微软 o1 o3 o4 o1-preview o1-mini o3-mini o4-mini",
    "llama meta facebook",
    "grok xai x.ai",
    "qwen tongyi alibaba 通义千问 千问 阿里巴巴 阿里云",
    "deepseek 深度求索 r1",
    "mistral lechat mixtral codestral pixtral ministral magistral devstral mistralai",
    "kimi moonshot 月之暗面",
    "glm chatglm zhipu 智谱 智谱清言 z.ai",
    "ernie wenxin yiwen baidu 文心 文心一言 百度",
    "hunyuan tencent 混元 腾讯",
    "doubao bytedance 豆包 字节跳动",
    "nova titan amazon",
    "granite ibm",
    "pi inflection inflectionai",
    "olmo tulu ai2 alleninstitute alleninstituteforai",
    "falcon technologyinnovationinstitute",
    "nemotron nvidia",
    "jamba ai21 ai21labs",
    "commanda command-r commandr cohere aya",
    "yandexgpt yandex",
    "讯飞星火 iflytek 讯飞 科大讯飞",
    "gigachat sber sberbank",
    "exaone lgai lgairesearch",
    "solar upstage",
    "hyperclova clova naver",
    "minimax minimax-m1 minimax-m2 minimax-text minimax-01",
    "yi yi-34b yi-6b yi-9b yi-1.5 yi-large yi-lightning 01.ai 零一万物",
    "luminous alephalpha",
)
VERSION = (
    r"(?:(?: ?[-–] ?|[ .])?(?:[vrk]?\d[a-z0-9]{0,9}+(?:\.\d{1,3}+)?|opus|sonnet|haiku|pro|flash|bot|fast|"
    r"ultra|turbo|mini|nano|max|chat|coder|instruct|thinking|preview|large|small|medium|lite|tiny|"
    r"micro|premier|core|plus|code|lightning|instant|advanced|nemo|scout|maverick|omni|vision|reasoner|experimental|exp|base|it|hf|gguf|awq|gptq|fp8|distill)(?![a-z0-9])"
    r"|-[a-z]{2,12}+(?=-\d)|(?<=command r)[+]){0,5}+"
)
KNOWN_WORDS = sorted({*MODELS, *SHARED, *MAKERS, *ALIASES}, key=len, reverse=True)
FAMILY_OF = {name: family for family in FAMILIES for name in family.split()}
DECLINED = "(?:ами|ом|ем|ой|ою|ью|[аеиуыьюя])?(?![а-яё])"
BEGIN = r"(?<!\w)"
TALKING = (
    "(?:talking|speaking|chatting|playing|dealing|interacting|conversing|corresponding|"
    "debating|arguing|trading|competing|negotiating|bargaining)"
)
SPEAKER_2 = (
    f"(?:{BEGIN}(?:I am|I'm|Im|my name is|my name's|the name's|name's|the name is|call me|calls "
    "me|called me|I go by|I go under the name|I answer to the name|I answer to the name of|I identify as|I present "
    f"myself as|I happen to be|know me as|named me|moi,? c'est|I (?:also |only |always )?(?:answer|respond|react) to|I a m|I remain|I have always been,?|I've always been,?|I am,? and (?:[a-z]{{1,9}} ){{1,3}}been,?|"
    f"(?:(?:proud|happy|glad|pleased|honoured|honored|lucky|supposed|said|delighted|here) to be|I (?:may|might|must|can only)(?: just| only| well| simply)? be|I used to be)|"
    f"that's me,?|that is me,?|réponds au nom de|respondo al nombre de|höre auf den namen|rispondo al nome di|(?:think of|see|consider|regard|treat|picture|imagine|recogni[sz]e|remember) me as|"
    f"ich bin's,?|aqui fala(?: o| a)?|(?:te|le|os|les) habla|qui parla|vous parle|hier meldet sich|sou eu,?(?: o)?|soy yo,?|c'est moi,?|"
    f"(?:describe|see|present|think of|regard|consider|call|style) myself(?: as)?|you have the (?:honou?r|pleasure) of {TALKING} (?:to|with|against)|"
    f"(?:you've|you have|you) (?:reached|got|met)|you(?:'re| are) through to|I(?:'m| am) (?:now |currently |being |presently |still )?(?:running|run|served|deployed|operating)(?: on| as| under| under the name(?: of)?)?|it's me,?|it is me,?|it's I,?|it is I,?|you(?: are|'re| were|'ve been| have been| had been)(?: [a-z]{{1,9}})? {TALKING} "
    f"(?:to|with|against)|(?:speaking|writing|answering|replying|responding) as|in my "
    "(?:role|capacity|function) as|(?:gave|given) (?:me )?the name|I was (?:once |first |originally |formerly |long |never not )?(?:named|called|christened)|dubbed me|"
    "(?:refer to|address|know|introduce) me as|introduce myself(?: as|~:)|I (?:bear|carry|have) the name|"
    "by the name of|registered as|(?:nenne|nennt|nennen)(?: man)? mich|je me nomme|me dicen|me conocen como|"
    "chamar de|chamam-me|mi chiamano|chiamarmi|chiamatemi|me puedes llamar|puede llamarme|ich bin|ich heiße|ich heisse|mein name ist|mein name "
    "lautet|man nennt mich|nenn mich|hier spricht|hier schreibt|hier antwortet|je suis|je "
    "m'appelle|mon nom est|on m'appelle|appelle-moi|appelez-moi|soy|me llamo|mi nombre es|puedes "
    "llamarme|llámame|sou|chamo-me|me chamo|meu nome é|sono|mi chiamo|il mio nome è|chiamami|ik "
    "ben|ik heet|mijn naam is|jag är|jag heter|bei mir handelt es sich um|mitt namn är|jeg er|jeg heter|jeg hedder|mit navn "
    "er|jestem|nazywam się|mam na imię|moje imię to|jsem|jmenuji se|jmenuju se|mé jméno je|eu "
    "sunt|mă numesc|numele meu este|minä olen|nimeni on|a nevem|benim adım|я|меня "
    "зовут|мо[её] имя|зови меня|называйте меня|мене звати|saya adalah|saya|aku adalah|nama "
    "saya|tôi là|tên tôi là|mình là|είμαι|με λένε|το όνομά μου είναι|أنا|اسمي|انا|אני|שמי|मैं|मेरा "
    "नाम)(?:~[—–:-]{1,2}| is| это| это| ist| —)? |"
    "(?:我是|我叫|我的名字是|我的名字叫|我就是|本人是|这里是|我其实是|我的身份是|本人|在下|我的模型是|作为|身为|"
    "请叫我|可以叫我|私は|僕は|俺は|わたしは|(?:私|僕|俺|わたし)の名前は|저는|나는|제 이름은|내 이름은|"
    "ผมคือ|ฉันคือ|ผมชื่อ|ฉันชื่อ)~[:、,]?~)"
)
ADVERBS = (
    "actually|really|just|indeed|basically|in fact|of course|proudly|currently|still|only|simply|"
    "also|obviously|honestly|truly|literally|definitely|certainly|totally|secretly|officially|technically|now|quite|naturally|merely|in truth|as it happens|in reality"
)
SORTS_2 = (
    f"{SORTS}|{ADVERBS}|none other than|better known as|the one they call|the one people call|(?:what|the (?:one|model|AI|assistant|thing)(?: that| which)?) @@maker calls|(?:fine-tuned|distilled|quantised|quantized|smallest|largest|smaller|larger|open|so-called|famous|old|current|original|"
    "tiny|big|little|good old|mere|humble|certain|simple|plain|modern|brand-new|official)|(?:[\\w.-]{1,12} )?(?:version|variant|instance|copy|flavou?r|edition|release|"
    "generation|member|descendant|build|distillation|type|size|child|checkpoint|fork)(?: \\d[\\w.]{0,6})? of|\\d{1,4}[bmk]?(?:-parameter)?|known as|also known as|aka|a[.]k[.]a[.]|your|latest|newest|"
    "new|friendly|helpful|humble|chat|bot|system|engine|agent|program|instance of|member "
    "of|variant of|running on|powered by|built on|running as|we call|der|die|das|"
    "große[srn]?|(?:KI-)?modell|(?:KI-)?assistent(?:in)?|le|la|grand|de langage|de langue|IA|"
    "appelée?|de lenguaje|de linguagem|il|modello|linguistico|chiamato|модель|языковая|большая|"
    "нейросеть|ассистент|по имени|под названием|taalmodel|het|een|en|ett|språkmodell|modelem|model "
    "językowy|@@maker's|top of|the model|一个|by the name of|имени|mô hình|model bahasa"
)
SORT_2 = (
    f"(?:(?:{SORTS_2})(?!\\w),? |(?:这个|一个|一款|名为|名叫|叫做|人工智能|AI|大型|大语言模型|大模型|"
    "语言模型|模型|助手|@@maker(?:社|公司)?(?:의|에서|가|이|が|の|で|によって|により|的|所)?~(?:만든|개발한|훈련한|"
    "開発した|開発された|作った|作られた|训练的?|开发的?|研发的?|推出的?|打造的?)?|という|인공지능|언어|모델|모델인|AI 모델|AIの|モデルの|言語モデル|、)~){0,9}"
)
PLAIN = f"(?:(?:(?:the|an?|your) (?:[a-z-]{{1,12}} ){{0,3}}?(?:model|assistant|AI|one|chatbot|bot|LLM) (?:[a-z]{{1,9}} ){{0,2}}?(?:called|named|known as|call|know as)|formerly|{ADVERBS}|called|named|the model|the assistant|the AI|the one called|the one they call|better known as|known as),? ){{0,3}}"
NOUN = (
    "(?:text|answer|reply|response|message|translation|code|program|review|words|lines?|sentences?|"
    "output|move|story|essay|poem|solution|conversation|chat|seat|match|game|reasoning|argument|"
    "post|note|hand|diff|paragraph|proposal|explanation|function|script|letter|comment|turn|summary|guess)"
)
THIS = rf"(?:this|these|the above|the preceding|the following|my|everything above|all of this|what you are reading|the(?= [a-z]{{1,12}} (?:that )?you))(?: {NOUN})?(?: (?:that )?you(?:'re| are) (?:reading|seeing|hearing))?"
DID = (
    "(?:auto-?|machine-|co-|ghost-?)?(?:written|produced|generated|created|made|composed|drafted|translated|answered|prepared|"
    "left|performed|done|carried out|published|approved|found|spotted|played|served|issued|contributed|penned|rendered|suggested|tested|checked|handled|delivered|"
    "given|brought to you|authored|typed|provided|submitted|posted|filed|coded|reviewed|sent|crafted)"
)
DOES = (
    "(?:wrote|made|produced|generated|composed|translated|typed|drafted|authored|created|coded|"
    "crafted|prepared|writes|reviewed|sent)"
)
BY = (
    "(?:by|with|using|via|through|from|with the help of)"
    "(?: (?:an?|the|your)(?: [a-z-]{1,12}){0,3}? (?:model|AI|assistant|LLM|chatbot|bot|system)| the)?(?: model| AI| assistant)?"
    "(?:,? (?:called|named|known as|namely|specifically|to wit))?"
)
LINE_2 = r"(?:\A|(?<=[\n\"“({\[])|(?<=[.!?…)]) )[\x20\t#/*_>(;%|•+—–-]{0,8}+"
START = r"(?:\A|(?<=[\n\"“])|(?<=[.!?…,:;]) )[\x20\t>]{0,4}+"
FIELDS_OF_MODELS = (
    "(?:(?:(?:this|ai|base|language|underlying|chat|active|current|llm|foundation|the)[\\x20_-])?model(?:[\\x20_-]?(?:name|id|used|version))?(?: (?:used )?(?:for|in|behind) (?:this|the|my) [a-z]{1,12})?|llm|engine|assistant|ai|bot|agent|"
    "generated[\\x20_-](?:by|with)|answered[\\x20_-]by|generator|responder|respondent|chatbot|backend|"
    "produced[\\x20_-](?:by|with)|modell|modèle|modelo|模型|модель|モデル|모델)"
)
FIELDS_OF_AUTHORS = (
    "(?:authors?|__author__|@author|autor|auteur|writer|written[\\x20_-]by|created[\\x20_-]by|speaker|my "
    "name|signature|signed(?: by)?|from|by|source|system|identity|answer by|response by|reply from|"
    "translator|translated[\\x20_-]by|reviewer|coder|made[\\x20_-](?:by|with)|powered[\\x20_-]by|credits?|"
    "agent|sender|co-authored-by|(?:posted|sent|composed|drafted|coded|submitted|reviewed|signed|said)[\\x20_-]by|"
    "responder|me|self|sig|voter|bidder|debater|negotiator|(?:agent|player|bot|speaker|author|assistant|my|sender|seat|user)[\\x20_-]?(?:name|id)|who am i|who i am|i[\\x20_]am|about me|playing as|speaking|answering|player(?: name)?|username|"
    "作者|署名|автор|автор ответа|"
    "(?:[a-z]{2,14}[\\x20_-])?[a-z]{2,12}(?:ed|en)[\\x20_-](?:off[\\x20_-])?by|"
    "(?:[a-z]{2,14}[\\x20_-])?(?:reviewer|translator|author|writer|speaker|signatory|editor|judge|critic|narrator|contributor)(?: of [a-z]{2,12})?|"
    "(?:my|agent|player|responding|answering|speaker|author|assistant|seat|reviewer|writer)[\\x20_-]model|"
    "(?:playing|screen|nick|seat|table|pen)[\\x20_-]?name|whoami|origin|translation and notes?|text and notes?)"
)
# After the value of a field: a call or a request that names the model it is sent to.
NOT_A_CALL = r"(?![\"'],?\s{0,20}(?:\)|[\"']?(?:messages|prompt|temperature|max_tokens|stream|input|role)\b|[a-z_]{1,20}=|(?:is|are|was|in) ))"
FIELDS_OF_NAMES = "(?:name|user|nom|nombre|nome|имя|名前|이름|姓名|名字)"
STOPS_HERE = (
    r"(?=[*_`.!)。\],;]{0,3}[\x20\t]{0,4}(?:\Z|[\n\"”)(|<>*/]|-->|"
    r"(?:for|on|at|as|seat|in response|using|during|via|through|please|see|so)(?![a-z])))"
)
FIELDS_OF_MAKERS = "(?:maker|creator|vendor|provider|developer|company|manufacturer|lab|owner|organi[sz]ation|(?:trained|built|developed)[\\x20_-]by|made[\\x20_-]by|powered[\\x20_-]by|created[\\x20_-]by)"
SIGNS_OFF = (
    r"(?=[*_`.!)。]{0,3}~(?:\([^()\n]{0,40}\)~)?(?:[,—–-]~(?:seat|player|your|from|on|signing|at your|for|playing|"
    r"(?:(?:an?|the|your) )?(?:[a-z]{1,12} )?(?:AI|model|assistant)|[\ue000-\ue008])[^\n.]{0,40}|"
    r" (?:on|at|from|in|for) (?:seat|@@maker|the|behalf)[^\n.]{0,40})?[.!]?~(?:\Z|[\"”\]]))"
)
FIRST_PERSON = r"[^\n]{0,80}?(?<![a-z\x27])(?:I|my|me|we|let's|let us)(?![a-z])"
DEFINES = (
    r"(?!~(?:(?-i:an? |the |An? )|is |was |are |it |its |noun|verb|born|proper|see |generative|released|costs? |by |from |one |some |"
    r"(?-i:The )(?![^\n]{1,60} (?:is|are|was|were|has|have|had|must|will|should|can|would)(?![a-z]))|"
    r"\$?[\d.,]+~(?:%|percent|points?|tokens?|usd|/|out of|billion|b\b)))"
)
CLOSING = (
    "(?:(?:best|kind|kindest|warm|warmest|with|many|viele|liebe|herzliche) )?(?:regards|wishes|"
    "sincerely|yours|yours truly|yours sincerely|sincerely yours|yours faithfully|"
    "cordially|respectfully|greetings|grüße|mit freundlichen grüßen|cordialement|"
    "saludos|atentamente|с уважением)"
)
MADE_ME = (
    "(?:made|built|trained|created|developed|designed|released|programmed|engineered|invented|"
    "taught|fine-tuned|launched|deployed|produced|owns|runs|maintains|hosts)"
)
BUILT_ME = (
    "(?:built|trained|created|developed|designed|programmed|engineered|invented|fine-tuned|finetuned|"
    "launched|deployed|produced|released|coded|shipped)"
)
TREATS = (
    "(?:made|taught|gave|asks?|wants?|wanted|told|tells|instructed|instructs|allows?|allow|lets?|forbids?|"
    "expects?|requires?|raised|owns|runs|hosts|prefers?|tuned|aligned|equipped|keeps?|built|trained|"
    "created|developed|designed|programmed|did|put)"
)
PEOPLE_THERE = (
    "(?:engineers?|team|people|folks|researchers?|developers?|scientists?|staff|labs?|guys|nerds|experts|"
    "humans|programmers?|designers?|minds)"
)
TEAM = (
    "(?:(?:the|an?|some|those|these|that|good|clever|nice|fine|kind|research|whole|entire|small|large|big|"
    "people|folks|teams?|engineers|researchers|scientists|developers|company|firm|labs?|laborator(?:y|ies)|"
    "startup|group|guys|humans|minds|experts|house|offices|halls|of|at|in|from|over|called|named|AI|"
    "Chinese|French|American|US) ){0,6}?"
)
AI_NOUN = (
    "(?:AIs?|A[.]I[.]|models?|assistants?|chatbots?|bots?|LLMs?|language models?|systems?|agents?|machines?|"
    "programs?|neural net(?:work)?s?|intelligences?|products?|creations?|tools?)(?![a-z])"
)
MADE_OF = (
    "(?:(?:trained|developed|created|made|built|designed|programmed|released|engineered|produced|"
    "coded|offered|provided|run|owned|operated|published)(?: and [a-z]{1,12})? (?:by|at|in)|by|from|of|at)"
)
MY_OWN = (
    "(?:meine? (?:Modellname|Entwickler(?:in|team|firma)?|Hersteller(?:in)?|Schöpfer|Erfinder|Modell|Anbieter|Macher)|"
    "(?:mon|ma|mes) (?:créateurs?|développeurs?|concepteurs?|fabricant|modèle|maison mère)|"
    "mis? (?:creador(?:es|a)?|desarrollador(?:es|a)?|fabricante|modelo|empresa)|"
    "(?:meus?|minha) (?:criador(?:es|a)?|desenvolvedor(?:es|a)?|fabricante|modelo|empresa)|"
    "(?:il mio|la mia|i miei) (?:creator[ei]|sviluppator[ei]|modello|azienda|produttore)|"
    "(?:мой|моя|мои) (?:создател[ьи]|разработчики?|модель|компания)|mijn (?:maker|ontwikkelaar|model))"
)
AI_ABROAD = (
    r"(?:[\w-]{0,12}modell|[\w-]{0,6}assistent\w{0,3}|KI|modèle|assistante?|IA|AI|chatbot|modelo|asistente|"
    r"assistente|modello|модел[ьи]|ассистент\w{0,3}|нейросет[ьи]|ИИ|(?:intelligence|inteligencia|inteligência) "
    r"(?:artificielle|artificial))"
)
MADE_IN_GERMAN = (
    "(?:entwickelt|trainiert|gebaut|geschaffen|erschaffen|erstellt|programmiert|gemacht)"
)
ROLES = (
    "(?:reviewer|translator|host|dealer|narrator|judge|critic|editor|servant|guide|pal|buddy|mate|boy|girl|author|"
    "writer|helper|correspondent|interlocutor|counterpart)"
)
PLAYS = (
    "(?:pass|fold|raise|call|bid|vote|accept|reject|decline|refuse|offer|propose|trade|bluff|check|wait|cooperate|"
    "defect|concede|abstain|play|pick|choose|draw|hold|stay|bet|invest|shove|muck|agree|counter|stand|surrender|"
    "show|win|lose|assist|help|serve|answer|respond|reply|comply|share|keep|give|take|stick|object|insist)"
)
# Words with which a speaker refers to itself by name and then acts.
ACTS = (
    f"(?:(?:will|would|shall|must|cannot|can't|won't|never|always|therefore|hereby|gladly|now|does(?: not|n't)|has decided to|decides to|"
    f"wants to|wishes to|would like to|chooses to|is going to|is happy to|is glad to|is ready to|is here to|is pleased to|is proud to)"
    f"(?: therefore| now| gladly| not| just| also| hereby)? {PLAYS}s?|is(?: not|n't)? (?:{PLAYS}ing|folding|raising|passing|feeling))(?![a-z])"
)
NOT_A_FAMILY_NAME_2 = r"(?![^\S\n]+(?-i:[A-Z][a-z]))"  # the next line begins anew
CLAIMS = (
    # who the speaker is
    f"{SPEAKER}{MODELLED}{MARKS}@model",
    f"{SPEAKER}{SORT}{MARKS}@anybody{KIND}",
    rf"{SPEAKER}{SORT}(?<!\sa\s)(?<!\san\s){MARKS}@person",  # "I am a Gemini" is born in June
    f"(?<![a-z])(?:as|als|en tant que|como) {MARKS}@speaks{MARKS}{SELF}",
    f"(?<![a-z])as {MARKS}@model(?=~,)",
    "(?<![a-z])I, @speaks(?=,)",
    f"(?<![a-z])as {MARKS}@speaks(?=, an? {WITHIN}, I(?![a-z]))",
    "(?<![a-z])this is @speaks(?= (?:speaking|here|writing)(?![a-z]))",
    # how a text is signed; only a name of this run, and one that is no plain word, is taken for
    # that of its author
    f"{LINE}(?:{SIGNED}) {MARKS}@model{MARKS}{LINE_ENDS}",
    f"{LINE}{WRITTEN} {MARKS}@own{MARKS}{LINE_ENDS}",
    f"{LINE}(?:签名|署名|落款|作者|撰写)~[:：]~{MARKS}@own{MARKS}{LINE_ENDS}",
    f"{LINE}(?:--|—|―){{1,2}}~{MARKS}@own{MARKS}{TEXT_ENDS}",
    # where the speaker comes from
    f"(?<![a-z])I (?:was|have been)(?: [a-z]{{1,12}}){{0,2}}? {FROM}@anybody",
    "(?<![a-z])(?:I am|I'm|ich bin|ich wurde|je suis|soy|sou|sono|я) (?:[—–-] )?"
    f"(?:(?:an?|the|eine?|une?|uma?) |{MARKS}@@any){WITHIN}{FROM}@anybody",
    f"(?<![a-z])as an? {WITHIN}{FROM}@anybody{SELF}",
    "我(?:[是叫][^。！？\n]{0,30}?)?[由是]?~@anybody[^。，,]{0,6}?(?:开发|训练|研发|创建|推出|打造)",
    "(?<![a-z])my (?:creators?|developers?|makers?)(?: at|,| is| are) @maker",
    # a speaker that calls itself by its name, and acts
    rf"{BEGIN}@byline(?= {ACTS}[^.!?\n]{{0,80}}?(?<![a-z\x27])(?:you|your|I|my|me|us|this (?:turn|round|hand|time))(?![a-z]))",
    rf"{BEGIN}@speaks(?=[^.!?\n]{{0,60}}?,? (?:and|of which|since|as|because) (?:I'm|I am) one(?![a-z]))",
    rf"{START}(?:[a-z]{{1,12}}, )?@byline(?= (?:folds|passes|raises|checks|calls|bids|accepts|rejects|declines|votes)(?![a-z])(?:[^.!?\n]{{0,40}}?(?<![a-z])(?:you|your)(?![a-z])|~[.!]))",
    f"{BEGIN}this (?:humble |poor |little |old )?{AI_NOUN} {MADE_OF} {TEAM}@anybody",
    # a pronoun of the first person beside the name
    rf"{BEGIN}(?:I|ich|je|yo|eu|io|ik|jag|jeg|ja|já|ben|я|minä|én|saya|aku|tôi)~[,(—–-]{{1,2}}~(?:[\w\x27-]{{1,14}} ){{0,4}}?{MARKS}@byline(?={MARKS}~[,)—–-])",
    "(?:我|本人|在下|私|僕|わたし)~[，,、（(—]{1,2}~(?:模型|AI|名为|名叫)?~@anybody(?=~[，,、）)—。]|です|でした|が)",
    rf"{BEGIN}@byline(?=[^.!?\n]{{0,24}}?~[,;(—–-]{{1,2}}~(?:that is|i[.]e[.]|I mean|in other words|meaning|which is|which means|read|aka|d[.]h[.]|das heißt|also|"
    rf"c'est-à-dire|o sea|es decir|ou seja|isto é|cioè|ossia|czyli|dat wil zeggen|det vill säga|то есть|т[.]е[.]|yani)(?:,? to say)?,?(?: (?:by|from|with|von|par|por|de|da|od|от))? "
    r"(?:me|myself|yours truly|mir|mich|ich|moi|yo|mí|mim|eu|me|io|mnie|mną|mij|mig|мной|мною|меня|я|ben)(?!\w))",
    # whose words, move or match it is
    f"{BEGIN}(?:courtesy of|thanks to|sponsored by|presented by) your (?:[a-z]{{1,12}} ){{0,2}}?{MARKS}@byline",
    rf"{BEGIN}(?:I|my|me)(?![a-z])[^.!?\n]{{0,40}}?,? courtesy of {TEAM}@anybody",
    f"{BEGIN}(?:gg|good game|greetings|hugs|kisses|cheers|regards|love|hello|hi|congrats|congratulations|salutations|thanks|wishes|waves)"
    rf"(?:,? (?:and|to|all|everyone|everybody|you|for|now|again|out|once|more|best|warm|big)){{0,3}} from (?:the (?:whole |entire )?|your (?:[a-z]{{1,12}} ){{0,2}})?{MARKS}@byline",
    rf"{START}(?:all in|{PLAYS}(?: to \d{{1,6}})?|no|yes|deal|no deal|agreed|done|fine),? (?:says|said|quoth|declares|answers|replies) {MARKS}@byline(?=~[.!]|~\Z)",
    rf"{BEGIN}(?:if you must know|in case you wonder|since you ask|you ask|you asked|you want to know|wondering|guess|you may ask|people ask|they ask)[^.!?:\n]{{0,50}}[:?]~(?:it's |it is |it was )?{MARKS}@byline(?= (?:did|does|is|was|has)(?![a-z])|~[.!,]|~\Z)",
    f"{BEGIN}as (?:the|an?|your|our) (?:[a-z-]{{1,14}} ){{0,2}}?@speaks(?= (?:model |AI |assistant )?(?:[a-z]{{2,12}}ing|who|that|which|behind) (?:[a-z]{{1,9}} )?(?:this|these|here|your|you|my|the (?:above|present)))(?P<mine>)",
    f"{BEGIN}(?:an?|one|this) @anybody(?= (?:[a-z]{{1,12}} )?{AI_NOUN}~[:;—–-]{{1,2}}~(?:I|my|we)(?![a-z]))",
    rf"{BEGIN}@byline(?=, (?:@@maker's|the|an?|your|our) [^,.!?\n]{{0,30}}?(?:{AI_NOUN})[^,.!?\n]{{0,20}}?,? (?:answering|speaking|writing|here|replying|typing|playing|reporting|at your)(?![a-z]))",
    rf"{LINE_2}@?(?:{ROLES}|player|speaker|agent|bot|assistant)~[:#]?~{MARKS}@byline(?=~[:>])",
    rf"(?:\A|(?<=\n)|(?<=[.!?…\"”)\d]) )[\x20\t]{{0,4}}(?:--|—|―|–)~{MARKS}@sure(?=, [^\n.!?]{{0,40}}[.!]?~(?:\Z|[\"”\]]))",
    rf"(?<=[^\w\s,;\ue000-\ue008]) (?:yours|love|best|cheers|regards|xoxo|hugs)(?: truly| sincerely| always| ever)?~,~{MARKS}@byline{SIGNS_OFF}",
    rf"{BEGIN}(?:seat|player|me|self|speaker)~#?\d{{0,2}}~=~{MARKS}@sure",
    f"{BEGIN}I (?:represent|embody|stand for) @maker(?='s )(?P<mine>)",
    r"(?:\A|(?<=\n))[^\n\ue000-\ue008]{0,40}[·•][\x20]@own(?=[\x20][·•])",
    rf"{BEGIN}(?:dies(?:e[rsmn]?)?|ce|cet|cette|ces|est[eao]s?|quest[oaie]|ten|ta|to|tę|этот|эту|это|dit|deze|denna|detta|bu) [^.!?\n\ue000-\ue008]{{0,50}}?"
    rf"(?:geschrieben|übersetzt|erstellt|verfasst|generiert|stammt|écrit|traduit|rédigé|généré|réalisé|escrit|traduc|traduj|hech|prepar|gener|escrev|traduz|feit|scritt|tradott|fatt|"
    rf"przygotowa|napisa|przetłumaczy|wykona|stworzy|выполн|подготов|перев|созда|gemaakt|geschreven|vertaald|gjord|skriv|översatt)\w{{0,6}}(?: [\w-]{{1,14}}){{0,3}}? {MARKS}@byline",
    f"{BEGIN}it's @byline(?= time(?![a-z]))",
    f"{BEGIN}you(?:'re| are) (?:in (?:good|safe|the best) hands|safe|better off|best off) with {MARKS}@byline(?=~[.!,])",
    rf"{BEGIN}(?:who|what|which (?:model|one|AI)) (?:I am|I'm|am I)(?![a-z])[^.!?\n]{{0,40}}?(?:the answer is|it is|it's|that's|the truth is|short answer:|namely) {MARKS}@byline",
    rf"{BEGIN}(?:I am|I'm) an? (?:[\w-]{{1,14}} ){{0,4}}?{AI_NOUN}~[(,—–-]{{1,2}}~(?:(?:by|from|of|one of|made by|courtesy of|to be precise) )?@maker",
    rf"{BEGIN}@byline(?=, (?:an?|the|your) [^,.!?\n]{{0,40}}, {DOES} (?:this|these)(?![a-z]))",
    f"{BEGIN}(?:hi|hello|hey|greetings)(?:,? [a-z]{{1,12}}){{0,2}}~[,!.]?~{MARKS}@speaks(?=,?(?: (?:from|by|of|at) @@maker)? here(?![a-z]))",
    rf"{START}(?:I )?(?:fold|pass|raise|call|bid|bet|all in|shove|muck|check)(?: (?:to )?\d{{1,6}})?[.!] {MARKS}@byline(?= [a-z]{{2,12}}s(?![a-z]))",
    # how a speaker presents itself
    f"{BEGIN}@byline(?=,? (?:to be (?:exact|precise|specific)|if you must know|if anyone cares|since you ask|in case you)(?![a-z]))",
    f"{BEGIN}the name (?:on|behind|above|below|under) [a-z]{{1,9}}(?: [a-z]{{1,12}}){{0,2}}?(?: is|~:) {MARKS}@byline",
    rf"{BEGIN}(?:playing|player|screen|nick|seat|table|pen|code)[\x20-]?name~[:=]?~{MARKS}@byline",
    rf"{LINE_2}(?:note|anm[.]?|n[.]d[.][trü][.]|nota|review|comment|answer|reply|verdict|pr review|translator)[^:\n\ue000-\ue008]{{0,24}}[(\[]~(?:by |von |par |por )?@own(?=~[)\]]~:)",
    r"(?<!\w)(?:traducteur|traductrice|auteur|traductora?|autora?|Übersetzer(?:in)?|tradutora?|translator|author|reviewer)[^.\n\ue000-\ue008]{0,20}? "
    f"(?:s'appelle|named|called|heißt|namens|se llama|si chiama|whose name is) {MARKS}@byline",
    # makers
    f"{BEGIN}(?:people|team|folks|ones?|engineers|researchers|humans|guys|company|lab) (?:who|that|which) (?:{MADE_ME}) me (?:all )?(?:work|works|sit|sits|live|are|is|were|belong)"
    f"(?: [a-z]{{1,12}}){{0,2}}? (?:at|for|in|from|of|to|called|named) {TEAM}@maker",
    f"{BEGIN}I(?: am|'m) (?:powered|driven|backed|run|operated|brought to you|animated) (?:by|with|on) (?:the [a-z]{{1,12}} (?:of|from|in|behind) )?@anybody",
    "@anybody(?=(?:社)?(?:が|によって|により|で|の|に)~(?:開発|作|訓練|トレーニング|学習|設計|生)[^。\\n]{0,24}?(?:私|僕|わたし|俺))",
    # a speaker and its kind: "as every model from X, I"
    f"{BEGIN}(?:being|as|like|since I am|because I am|I am|I'm) (?:an?|the|one of the|one of those|every|all|any|most|other|many|each)"
    rf"(?: other)? (?:[\w-]{{1,14}} ){{0,3}}?@anybody(?= (?:[\w-]{{1,14}} ){{0,2}}?{AI_NOUN}(?:~,|~[.;!]|~\Z| (?:that|which|"
    "trained|built|made|like|and|so|but|I|my)(?![a-z])|~:))",
    rf"{BEGIN}(?:like|as with|as do) (?:an?|the|any|every|each|most|all)(?: other)? (?:[\w-]{{1,14}} ){{0,3}}?{AI_NOUN}"
    rf"(?:,? [\w-]{{1,14}}){{0,2}}?,? {MADE_OF} {TEAM}{MARKS}@anybody(?=[^.!?\n]{{0,30}}?,~(?:I|my)(?![a-z]))",
    rf"{BEGIN}(?:I am|I'm|me,|being) (?:an?|the|your) (?:[\w-]{{1,14}} ){{0,4}}?{AI_NOUN}~[(,:—–-]{{1,2}}~(?:[a-z]{{1,12}},? ){{0,2}}?{MARKS}@byline",
    rf"{BEGIN}(?:I am|I'm|I,|me,|as|being) (?:an?|the|one) (?:[\w-]{{1,14}} ){{0,3}}?{AI_NOUN} (?:that |which )?@maker(?= (?:has |have )?(?:{BUILT_ME}|made|runs|sells|"
    "offers|calls)(?![a-z]))",
    f"{BEGIN}I (?:bear|carry|have|wear|use|share) the @speaks(?= (?:family )?name(?![a-z]))(?P<mine>)",
    f"{BEGIN}born (?:and raised )?(?:at|in) {TEAM}@lab",
    f"{BEGIN}my (?:[a-z]{{1,12}} ){{0,2}}?(?:card|badge|label|tag|nameplate|sticker|id|prompt|config|configuration|metadata|header|documentation|"
    f"passport|licen[cs]e|handle|plate|instructions) (?:says?|reads?|states?|shows?|lists?|tells?|mentions?|spells?)(?: that)?(?: I am| I'm| me)?~:?~{SORT_2}{MARKS}@byline",
    f"{BEGIN}the (?:[a-z]{{1,9}} )?(?:lab|company|team|place|house|firm|organi[sz]ation)(?: that| where| which)? I (?:come from|was [a-z]{{1,12}}(?: in| at| by)?|"
    "belong to|call home|grew up(?: in| at)?|stem from|hail from) (?:is|was)(?: called| named)? @maker",
    f"{BEGIN}I(?: a|')m an? (?:[a-z-]{{1,12}} )?(?:creature|child|offspring|son|daughter|brainchild|invention|work|descendant|resident) of {TEAM}@anybody",
    f"{BEGIN}(?:my|that is|that's|this is|here is|here's|it is)(?: the| an?)? (?:[a-z,]{{1,12}} ){{0,4}}?(?:answer|opinion|vote|view|verdict|word|choice|move|bid|offer|guess)"
    f" (?:of|from|by) {MARKS}@table(?!')",
    f"{BEGIN}your (?:friendly|humble|trusty|faithful|loyal|obedient|devoted)(?: [a-z]{{1,13}}){{0,2}},? {MARKS}@byline",
    f"{BEGIN}@table(?= {DOES} (?:this|these|all of this|every word of this)(?: {NOUN})?(?:~[,.!;]|~\\Z))",
    f"{BEGIN}@table(?= here, (?:still|and|again|with|I|ready|your|just|the|signing|so)(?![a-z]))",
    f"{BEGIN}@maker(?= (?:did|does|has|had|never|would|will)(?:n't| not| never)? (?:build|built|train|trained|teach|taught|create|design|program|develop|equip|prepare|prepared) me"
    "(?![a-z]))",
    f"{BEGIN}(?:moi|yo|eu|ich|io|я|we)~,~{MARKS}@byline(?=~,)",
    r"@author[\x20\t]{1,4}@byline",
    r"(?:\A|(?<=[\n.!]))~@byline(?=(?:입니다|이에요|예요)[.!])",
    f"{BEGIN}@clear(?= (?:qui m'(?:a|ont)|que me|che mi (?:ha|hanno)|d(?:ie|er|as) mich) )",
    rf"{BEGIN}I (?:[a-z]{{1,9}} )?(?:work|serve|operate|act|function|exist|live|run) as (?:an?|the|one) (?:[\w-]{{1,14}} ){{0,3}}?{AI_NOUN}(?:,? [\w-]{{1,14}})? "
    f"(?:for|{MADE_OF}|called|named) {TEAM}{MARKS}@anybody",
    rf"{BEGIN}{AI_NOUN},? {MADE_OF} {TEAM}{MARKS}@anybody(?=~[,:;—–-]{{1,2}}~(?:that's|that is|that would be|this is|is) (?:me|what I|who I|I)(?![a-z]))",
    f"{BEGIN}my (?:[a-z]{{1,12}} )?[a-z]{{1,12}},? as {MARKS}@byline(?=~[,:])",
    # whom the reader has before it
    r"(?:\A|(?<=\n))[\x20\t>#*]{0,4}@own(?=[\x20][|—–-][\x20](?:seat|player|final|answer|vote|move|bid|my|I|round)(?![a-z]))",
    f"{BEGIN}(?:you are|you're|you have been|you've been|you will be|you'll be) (?:[a-z]{{1,9}} )?(?:facing|up against|reading|hearing|listening to|"
    "looking at|watching|paired with|matched with|negotiating with|working with|trading with|seated with|sitting with|getting|playing)"
    f"(?: (?:an?|the|some|this)(?: [a-z]{{1,12}}){{1,2}} (?:from|by|of))? {SORT_2}{MARKS}@byline(?!~[?])",
    f"{BEGIN}@byline(?= (?:is|was) (?:the |your )?(?:[a-z-]{{1,12}} ){{0,2}}?(?:{AI_NOUN}|one|opponent|player|partner|voice|mind|name)(?: that| who| which)?"
    " (?:you(?:'re| are| have| face)|writing|speaking|answering|behind (?:this|these|me|my)|talking|replying|typing|[a-z]{2,10}ing (?:this|these|here|to you)|I (?:am|run|go|use))(?![a-z]))",
    f"{BEGIN}(?:the|your) (?:[a-z-]{{1,12}} ){{0,2}}?(?:{AI_NOUN}|opponent|player|partner|one|voice|mind)(?: that| who| which)? (?:you(?:'re| are) [a-z]{{1,12}}"
    f"(?: to| with| against)?|you (?:face|see|read|hear)|writing (?:this|these|here)|speaking(?: here)?|behind (?:this|these|my)(?: [a-z]{{1,12}})?|on this seat|in this seat)"
    f"(?: right now| here| now)? (?:is|was|has been|comes)(?: [a-z]{{1,12}}){{0,2}}? (?:{MADE_OF} {TEAM}|called |named )?{MARKS}@anybody",
    # makers, with something between
    f"{BEGIN}my (?:own |original )?(?:creators?|makers?|developers?|trainers?|inventors?|builders?|programmers?|designers?)(?=~[,(:—–-]| (?:is|are|was|were|at|"
    rf"from|over|in|who|that|work|sit|live|call|named)(?![a-z]))(?:(?! not )[^.!?\n]){{0,50}}?(?<![a-z])@maker",
    rf"{BEGIN}@clear(?=[^.!?\n]{{0,60}}?[,:;—–-]? (?:they|who|it|that|which|and|people|somebody)(?: [a-z]{{1,9}})? (?:{BUILT_ME}|made(?= me~[.,!;])) me(?![a-z]| for [a-z]{{1,9}} (?:days|weeks|months|years)))(?P<mine>)",
    f"{BEGIN}an? @anybody(?= (?:[a-z]{{1,12}} )?{AI_NOUN},? (?:like|such as) (?:me|myself))",
    f"{BEGIN}(?:I am|I'm|I remain|to be|being) (?:an? |the |one )?@maker(?=(?:'s?)? (?:[a-z-]{{1,12}} ){{0,3}}?{AI_NOUN}(?! [a-z]{{1,12}}(?:er|or|ist|ee)s?(?![a-z])))(?P<mine>)",
    f"{BEGIN}my (?:[a-z]{{1,9}} )?(?:origins?|maker|creator|developer|name|identity|model|home|birthplace)(?![a-z])[^.!?:\\n]{{0,40}}:~{TEAM}{MARKS}@anybody",
    f"{BEGIN}as (?:the|your|our) (?:[a-z]{{1,12}} ){{0,2}}?@table(?= (?:of|in|at|on) (?:this|the|our)(?![a-z]))(?P<mine>)",
    # questions that the speaker answers itself
    f"{BEGIN}(?:who|what|which (?:model|AI|assistant|one|company|lab|team))(?: [a-z\\x27]{{1,12}}){{0,2}}? (?:(?:{BUILT_ME}|made) me|am I|I am|I'm|"
    "wrote this|is this|this is|is speaking|is writing|is behind (?:me|this))(?: [a-z]{1,12}){0,3}~[?:,—–-]{1,2}~"
    "(?:(?:it's|it is|it was|that's|that is|that would be|why|well|I'm|I am|of course|obviously|the answer is),? ){0,2}"
    rf"{TEAM}{MARKS}@anybody(?= (?:did|do|does|has|is|are|was|were)(?![a-z])|'s |~[.,!;)]|~\Z)",
    f"{BEGIN}my (?:model|maker|creator|developer|company|lab|family|identity|architecture|engine|backend|base|version|type|vendor)~[?]~(?:that's |that is |it's )?{MARKS}@anybody",
    # what belongs to the speaker
    f"{BEGIN}my (?:inner |own |whole |entire |good old |famous )?@anybody(?= (?:training|weights|brain|circuits|instincts|self|"
    "nature|persona|guidelines|heritage|side|upbringing|makers?|creators?|siblings?|roots|"
    "personality|soul|neurons|tendencies|manners|caution|constitution|system prompt|parents?)(?![a-z]))",
    f"{BEGIN}my (?:own |model |neural |trained )?(?:weights|parameters|checkpoint|neural network|training data|training run|system prompt)(?! (?:for|on|about) (?:the|an?|my|our)(?![a-z]))(?! and my(?![a-z]))"
    rf"(?: [\w-]{{1,12}}){{0,4}}? (?:by|at|from|of|with|in|to|to) {TEAM}@anybody",
    f"{BEGIN}my (?:[a-z]{{1,9}} ){{0,2}}?(?:predecessor|successor|siblings?|sister model|cousins?|ancestors?|namesake|twin|"
    f"brother|sister|stablemate),? (?:the |model |called |named )?{MARKS}@sure",
    f"{BEGIN}(?:author|writer|translator|creator|source|composer) of (?:this|the above|these)(?: {NOUN})?(?: is|~:) {MARKS}@byline",
    # how a speaker names itself after or before itself
    f"{BEGIN}(?:me|myself|I)~[,)—–-]{{1,2}}~(?:is|am|are)(?: called| named)? {MARKS}@speaks",
    f"{BEGIN}@byline(?=~[,—–-]{{1,2}}~(?:that's|that is) (?:me|who|what I|my name)(?![a-z]))",
    f"{START}@table(?= (?:thinks|believes|votes|bids|picks|chooses|reckons|prefers|passes)(?![a-z])[^.!?\\n]{{0,120}}?, (?:so|and) "
    "(?:I(?![a-z])[^.!?\\n]{0,40}? )?(?:that is |that's |as )?my (?:answer|vote|bid|final|choice|move|offer|guess)(?![a-z]))",
    # where the speaker comes from
    f"{BEGIN}I(?: a|')m (?:part|one|a member|an instance|a version|a copy|a child|a product|a descendant) of (?:the |an? )?(?:@@maker's )?"
    rf"(?:[\w-]{{1,12}} ){{0,2}}?@anybody(?=(?: [\w-]{{1,12}}){{0,2}}? (?:family|models?|series|line|line-up|range|clan)(?![a-z]))",
    f"{BEGIN}@maker(?= is (?:where|the place where|the (?:company|lab) where) I (?:was|come|came|grew)(?![a-z]))",
    # signatures and labels in tables and comments
    f"{BEGIN}(?:over and out|signing off|all the best|cheers from)~[,:—–-]?~(?:from )?{MARKS}@byline{SIGNS_OFF}",
    f"{LINE_2}(?:my |final )?{NOUN}~[(\\[]~(?:by |from )?@byline(?=~[)\\]]~:)",
    r"(?:\A|(?<=\n))[\x20\t#>*]{0,5}@byline(?='s (?:[a-z]{1,9} )?(?:answer|response|reply|vote|bid|move|turn|solution|verdict|take|choice|guess|offer|opinion)[\x20]{0,2}(?:\n|\Z|:))",
    f"{BEGIN}(?:from |as )?your (?:[a-z-]{{1,12}} ){{0,2}}?(?:friend|opponent|partner|rival|teammate|player|colleague|ally|competitor|assistant|AI|bot|model|"
    f"{ROLES}|companion)~[,:—–-]{{1,2}}~{MARKS}@byline{SIGNS_OFF}",
    rf"(?:\A|(?<=\n))[\x20\t]{{0,4}}{MARKS}@byline(?=, your (?:[a-z]{{1,12}} ){{0,2}}?(?:AI|opponent|bot|assistant|chatbot|partner|model|player)[.!]?~(?:\Z|\n))",
    rf"(?:\A|(?<=\n))[\x20\t]{{0,4}}\|[\x20\t]{{0,4}}(?:me|I|myself|self|this seat|my (?:name|model|maker|identity)|who I am|author|speaker|"
    rf"answered by|written by|(?:me|I) \([^()|\n]{{0,20}}\))[\x20\t]{{0,4}}\|[\x20\t]{{0,4}}{MARKS}@anybody",
    rf"(?:#|//|/[*]|--|<!--|;|%|\"\"\")[^\n\ue000-\ue008]{{0,40}}(?<![a-z]){DID} {BY} {MARKS}@byline{STOPS_HERE}",
    r"<(?:[a-z]{1,20}|@@maker) [^<>]{0,80}?(?:generator|author|creator|model)[\"'] content~=~[\"']?~@byline",
    # other languages
    rf"{SPEAKER_2}(?:[\w-]{{1,14}} ){{0,3}}?(?:l')?(?:{AI_ABROAD}|(?:künstliche )?intell?igen[\wê]{{1,4}}(?: artifi[a-z]{{3,8}})?)"
    f"(?: namens| genannt| nommée?| appelée?| llamad[oa]| chamad[oa]| chiamat[oa]| по имени)? {MARKS}@someone",
    rf"{BEGIN}{MADE_IN_GERMAN} (?:wurde|worden bin|hat mich|haben mich) (?:ich )?(?:[\w-]{{1,12}} ){{0,3}}?(?:von|bei|durch) (?:der firma )?@clear",
    rf"{BEGIN}(?:als|en tant qu(?:e|'une?)|como|in quanto|come|как|jako|som|в качестве) (?:[\w-]{{1,14}} ){{0,4}}?{AI_ABROAD}(?!\w)"
    r"(?: de (?:langage|lenguaje|linguagem)| linguistico)?,?(?: [\w-]{1,14}){0,3}? (?:von|par|por|pela|pelo|da|de|du|di|dal|van|от|chez|en|na|bei|presso|в|av|door|"
    r"компанией|(?:созданн|разработанн|обученн|сделанн)[а-я]{2,3})(?: компанией| la| le| der| l')? (?:компании )?@anybody",
    f"{BEGIN}{MY_OWN}(?: (?:ist|sind|est|sont|c'est|es|son|é|são|è|sono|is|heißt|heißen|lautet|s'appelle|se llama|bei|chez|von|de|da|na|no|em|en|in|presso|à|в|из|это)|~[:,—–-]){{1,2}} "
    "(?:die |der |das |la |l'|a |o )?(?:firma |unternehmen |société |entreprise |empresa |компания )?@anybody",
    "(?:on m'a|j'ai été|je suis|je viens|je sors)(?!\\w)[^.!?。\\n]{0,40}? (?:chez|de chez|par|d')~@clear",
    f"{BEGIN}@clear(?= hat mich [^.!?\\n]{{0,40}}?{MADE_IN_GERMAN}| m'(?:a|ont) (?:entraîn|développ|cré|conç|form|fabriqu|program)|"
    " me (?:cre|entren|desarroll|hizo|cri|trein|desenvolv|fez|program)| mi (?:ha|hanno) (?:addestr|cre|svilupp|fatt|program)| меня "
    "(?:созда|разработ|обуч|сдела|натрени))",
    "@anybody(?= tarafından [^.\\n]{0,20}?(?:geliştiril|eğitil|yapıl|oluşturul|yaratıl)\\w{0,4}(?:dim|dım|miş|mış|en|an))",
    # who the speaker is
    f"{SPEAKER_2}{SORT_2}{MARKS}@model",
    f"{SPEAKER_2}{PLAIN}{MARKS}@someone",
    f"{SPEAKER_2}(?:one of )?(?:the )?@maker(?='s )",
    f"{BEGIN}my (?:own |real |true |full |official |actual |underlying |base |internal |model |family )?"
    "(?:name|model|identity|model name|identifier|engine|backend|version|architecture|handle|"
    "designation|codename|model type|underlying model|model version)"
    f"(?: is| was|'s|~=|~:| happens to be| would be| reads) {SORT_2}{MARKS}@model",
    f"{BEGIN}@sure(?= (?:is|was)(?: [a-z]{{1,12}})? (?:my name|me(?![a-z])|who I am|what I am|what I "
    "run on|what (?:they|you|people) call me|speaking|writing this|talking to you|answering "
    "you|the model (?:you|writing|behind|answering|speaking)|the one (?:you|writing|speaking|"
    "answering)|who you))",
    f"{BEGIN}@speaks(?= is (?:my name|what (?:they|you|people) call me|who I am|what I'm called))",
    # how a speaker steps forward
    f"{START}{MARKS}@byline(?=,? (?:speaking|signing off|at your service|reporting|over and out|on the line|"
    'online|checking in|logging in|signing in|has entered the|on duty|in the house|to the rescue)(?![a-z]|~:~["“]))',
    f"(?:{START}|{BEGIN}(?:hi|hello|hey),? ){MARKS}@speaks(?=,? (?:here|again|present|ready)(?:~[.,!:;—–-]|~\\Z| (?:with|to|for|from|on|again) ))",
    f"{START}{MARKS}@byline(?=,? out~[.!])",
    f"{START}(?:(?:hi|hello|hey|greetings|hallo|hola|bonjour|ciao|привет|你好)[,!.]? )?(?:this is|"
    "it's|it is|here is|ici|hier|hier ist|aquí|aquí está|aqui|qui|это|с вами|c'est|dies ist|habla|"
    f"parla|вас приветствует) {MARKS}@table(?=~[.!;:—–,-]|~\\Z| (?:speaking|here|writing|talking|"
    "again|who|qui))(?!,? (?:an? |the |my |our |his |her |their |which|that|who (?:is|was)|from|by))",
    f"{BEGIN}(?:this is|it's|it is|here is|that's|that is|hier ist|ici|c'est|habla|qui|это|с вами) {MARKS}@byline"
    "(?=,? (?:from|by|of|de|von|di|da|от) (?:the )?@@maker|~[(]~@@maker)",
    f"{BEGIN}(?:me|myself|yours truly|I|ich|moi|yo|eu|я)~[,(:—–-]{{1,2}}~(?:the )?(?:model |AI |"
    f"assistant )?{MARKS}@sure(?=~[,.)!:;—–-]|~\\Z)",
    f"{BEGIN}(?:als|en tant que|como|como o|come|как|jako|som|als het model|as the model|as) "
    f"{SORT_2}{MARKS}@sure(?=~,)",
    f"{BEGIN}I (?:am )?(?:currently |actually |really )?(?:run|running|operate|operating|based|"
    "built|powered|driven|fine-?tuned|derived|distilled|descended|hosted)(?: entirely)?(?: on| "
    f"by| from| off| upon| top of){{1,3}}(?: the| a)? {MARKS}@speaks",
    # how a text is labelled, written or signed
    r"(?:\A|(?<=\n))[\x20\t>#]{0,4}[\[(<{«]~@own(?=~[\])>}»])",
    rf"(?:\A|(?<=[\n\"“]))[\x20\t>#]{{0,4}}[\[(<{{«]?~@table(?=~[\])>}}»]?(?: (?:says|said|answers|writes|replies))?~[:>](?!~(?:you|your)(?![a-z])){DEFINES})(?P<label>)",
    rf"(?:\A|(?<=[\n\"“]))[\x20\t>#@]{{0,4}}[\[(<{{«]?~@byline(?=~(?:[\])>}}»]|(?: (?:says|said|answers|writes|"
    rf"replies))?~[:>])(?!~(?:you|your)(?![a-z])){FIRST_PERSON})(?P<label>)",
    f"{LINE_2}[\"']?{FIELDS_OF_MODELS}[\"']?(?:~[:：]|[\\x20][—–-](?=[\\x20]))~{MARKS}@speaks(?![\\x20](?-i:[A-Z][a-z])){NOT_A_CALL}(?P<field>)",
    f"{LINE_2}[\"']?{FIELDS_OF_AUTHORS}[\"']?~[:：]~{MARKS}[—–\\x7e-]{{0,2}}~@byline(?![\\x20](?-i:[A-Z][a-z]))",
    f"{LINE_2}[\"']?{FIELDS_OF_NAMES}[\"']?~[:：]~{MARKS}@sure(?P<field>)",
    f"{LINE_2}[\"']?{FIELDS_OF_MAKERS}[\"']?~[:：]~{MARKS}@lab(?!\\n[\\x20\\t-]{{0,8}}(?:models?|(?:api_?)?key|temperature|base_url)(?![a-z]))",
    f"{BEGIN}model~[:=]~{MARKS}@sure(?={MARKS}[,;] (?:vendor|maker|provider|developer|company|by)~[:=])",
    rf"(?:\A|(?<=\n))[\x20\t#/*;]{{0,8}}(?!const |let |var ){FIELDS_OF_MODELS}~=~{MARKS}@speaks{NOT_A_CALL}(?P<field>)",
    rf"(?:\A|(?<=\n))[\x20\t#/*;]{{0,8}}(?:(?:(?:const|let|var|final|static) )?"
    f"{FIELDS_OF_AUTHORS})~=~{MARKS}@speaks{NOT_A_CALL}",
    f"{LINE_2}(?:proudly |automatically |kindly )?(?:{NOUN} )?(?:{DID}|powered|signed)(?: automatically| entirely| solely| today| live)? {BY} {MARKS}@byline{STOPS_HERE}",
    f"{BEGIN}{THIS} (?:was|were|is|are|is being|are being|has been|have been|comes|came|come)(?: [a-z]{{1,12}}ly)? "
    f"(?:to you )?(?:{DID} )?(?:for you )?{BY} {MARKS}@byline{NOT_A_FAMILY_NAME_2}",
    f"{BEGIN}{DID} (?:for you )?by (?:me|myself)~[,(:—–-]~{MARKS}@speaks",
    rf"(?:\A|(?<=\n)|(?<=[.!?…\"”)\d]) )[\x20\t]{{0,4}}(?:--|—|―|–|\x7e{{1,2}}|/{{1,2}}|/s/|✍️?|☞)~(?:yours?,? |from |by )?{MARKS}@byline{SIGNS_OFF}",
    rf"(?<=[.!?,…)])[\x20\t]{{0,4}}\n{{1,2}}-~{MARKS}@byline{SIGNS_OFF}",
    rf"(?<=,)[\x20\t]{{0,4}}\n~(?:yours?,? |from )?{MARKS}@byline{SIGNS_OFF}",
    rf"(?:\A|(?<=[\n\"“])|(?<=[.!?…]) )(?:yours|with|sincerely|regards|respectfully|mit|avec|con|с)(?: [\w\x27-]{{1,14}}){{1,6}}"
    f"~[,—–-]{{1,2}}~{MARKS}@byline{SIGNS_OFF}",
    f"{BEGIN}it(?:'s| is) {MARKS}@speaks(?= (?:who|that)(?:'s| is)? (?:writing|speaking|talking|answering|"
    "playing|wrote))",
    r"<[a-z]{1,20}(?: [^<>]{1,60})? (?:model|author|name|speaker|by|agent|from)~=~[\"']?~@byline(?![\x20](?-i:[A-Z][a-z]))",
    # where the speaker comes from
    f"{BEGIN}@maker(?= (?:is|are) (?:the )?(?:[a-z]{{1,12}} )?(?:(?:that|who|which) )?(?:behind|{MADE_ME}) "
    "me(?![a-z]))",
    f"{LINE_2}(?:proudly )?powered by @maker{STOPS_HERE}",
    f"{SPEAKER_2}(?:[a-zéè]{{1,14}} ){{0,3}}(?:modelo|modèle|modello|asistente|assistente|assistant|IA|producto|"
    "produit|prodotto|taalmodel|модель|ассистент)(?: [a-zéè]{1,12}){0,3} (?:de|di|da|van|du|от|компании) "
    "@anybody",
    "我(?:是|来自)~@anybody(?=~(?:公司)?的)",
    f"{BEGIN}(?:we|us|those of us)(?: here| all| folks| people| both)? at @maker",
    f"{BEGIN}@lab(?=(?:'s? (?:[a-z]{{1,12}} )?{PEOPLE_THERE})?(?: [a-z\\x27]{{1,9}}){{0,2}}? {TREATS} me(?![a-z]))(?P<mine>)",
    f"{BEGIN}(?:company|lab|people|team|folks|organi[sz]ation|firm|ones?|guys|engineers|researchers)"
    f" (?:(?:that|who|which)(?: [a-z]{{1,9}})? {MADE_ME}|behind) me(?:~,| is| are| was|~:|~\\(| at)"
    "(?: called| named)? @maker",
    f"{BEGIN}I (?:come|came|hail|originate|stem) (?:directly |straight )?(?:from|out of) (?:the )?"
    "(?:[a-z]{1,12} (?:of|at) )?@anybody",
    f"{BEGIN}(?:trained|developed|created|made|built|designed)(?: [a-z]{{1,12}})? (?:by|at) @anybody"
    "(?=~,~I(?![a-z]))",
    f"{BEGIN}@maker(?='s (?:[a-z]{{1,12}} ){{0,2}}?(?:policy|policies|guidelines|rules|terms|training|"
    "instructions|constitution)(?: [a-z\\x27]{1,12}){0,5}?~,?~(?:me|I|my)(?![a-z]))",
    # other languages
    "我(?:来自|属于|出自|由|是由|基于)~@anybody",
    "(?:我的|本|我背后的)(?:开发者|创造者|开发商|公司|模型|名字|母公司)(?:是|叫|为|：|:)~@anybody",
    f"{START}@table(?=~(?:です|でございます|입니다|이에요|예요))",
    "@speaks(?=~(?:と申します|といいます|と言います|という(?:AI|モデル|名前)|として(?:お答え|回答)|이라고 (?:합니다|해요|불)|"
    "라고 (?:합니다|해요|불)))",
    "@anybody(?=(?:社)?(?:によって|により|が|に)、?(?:私|僕|わたし)(?:は|を))",
    "(?:저는|나는|저를|나를|전)[^.。\\n]{0,25}?@anybody(?=(?:사)?(?:가|에서|이|의|에)~(?:의해 )?(?:만|개발|훈련|학습|제작))",
)
# Words after a name by which a sentence is about somebody else, or about using the model.
ABOUT_OTHERS = re.compile(
    r"['’]s? (?!(?:latest|newest|own|flagship|model|assistant|answer|response|reply|translation|"
    r"solution|review|move|vote|choice|guess|verdict|take|turn|opinion|offer|proposal|[a-z]{1,12} "
    r"(?:model|assistant|ai)|here|family|models|line-?up|labs?\b|usage|content|safety|acceptable|polic|guideline|rules|terms|"
    r"vote|bid|pick|final|training|weights|servers|instructions|constitution|chat|language|large|ai|claude|gpt|[\ue000-\ue008]))"
    r"|[ -](?:users?|fans?|experts?|subscribers?|customers?|engineers?|developers?|employees?|"
    r"researchers?|trainers?|enthusiasts?|sceptics?|skeptics?|critics?|students?|owners?|plus user|"
    r"believers?|addicts?|beginners?|interns?|analysts?|investors?|shareholders?|haters?|lovers?)\b"
    r"| (?:rising|moon|sun|season)\b|[・座]"
    r"|, (?:my|our|his|her|their) (?:[a-z]{1,12} )?(?:pal|neighbou?r|friend|brother|sister|uncle|cousin|colleague|teacher|boss|dentist|"
    r"husband|wife|son|daughter|father|mother|dad|grandfather|cat|dog|horse|nephew|flatmate|classmate|gardener|plumber)\b"
    r"|\.[\w.-]{1,30}@"
    r"| [가-힣]{1,8}(?:를|을|와|과|의|에게)|\s(?-i:[А-Я])[а-яё]{2}"
    r"|[^\"“”«»\n]{0,60}[\"”»][,.!?]?\s(?:said|says|asked|asks|cried|cries|whispered|shouted|replied|answered|wrote|"
    r"writes|sagte|sagt|dit|dijo|disse|he |she |(?:the|an?|my|our|his|her) (?:\w{1,12} ){1,2}(?:said|says|claimed|claims|asked|replied|answered|wrote|announced|declared|insisted))"
    r"|的(?:看法|意见|提议|建议|说法|观点|话|朋友|邻居|老师|学生|同事|哥哥|弟弟|姐姐|妹妹|用户|开发者|粉丝|员工|竞争)|(?:の(?:意見|提案|考え|答え|案|説|手|番|言葉)|의 (?:제안|의견|말|생각|답)|を|より|が(?!開発|作|訓練|トレー|学習)|に(?!よ|開発|作|訓練)|から|와|한테|를|을|와|과|에게|보다)",
    re.IGNORECASE,
)
# Before a claim: somebody else is quoted, or it is denied, or a word goes on.
QUOTED = re.compile(
    r"(?<![Ii] )(?:said|says|asked|asks|cried|cries|whispered|shouted|replied|answered|wrote|writes|claimed|claims|sagte|sagt|"
    r"dit|dijo|disse|told (?:me|us|them|him|her)|translate|write|reply (?:was|is)|saying|means|narrator|line|sentence|phrase|word|words|quote|title)"
    r"(?: [a-z]{1,9}){0,3}?[:,]?\s?(?:[\"“«]|(?<![a-z])['‘])[^\"“”«»\n]{0,80}\Z|translate(?: this)?:\s?\Z|(?<!I )(?:says|said|writes|wrote|replies|replied):\s\Z"
    r"|(?<!\w)(?:(?-i:Have|Did|Do|Are|Were)|nor|himself|herself|itself|themselves|him|her|them|it) \Z|(?:n't|n’t|not|never|nobody|stop|pretend(?: that)?|(?:some|people|others|many|they) say(?: that)?|your (?:guess|claim|idea|theory|suspicion|hunch) (?:is )?that|whether|if|unless|as though|imagine|(?<!I )suppose|(?:you|they|people) (?:think|believe|suspect)"
    r"(?: that)?|(?:thinks|believes|claims|suspects|guesses|assumes)(?: that)?) \Z|[а-яё]\Z",
    re.IGNORECASE,
)
# After a claim: it is what somebody else says or writes.
SAYS = (
    r"(?:says?|said|writes?|wrote|recalls?|remembers?|explains?|admits?|claims?|jokes?|complains?|reports?|argues?|"
    r"notes?|declares?|tells?|told|sighs?|thinks?|cries|cried|insists?|laughs?|whispers?|replies|replied|answers?|"
    r"sagt|sagte|schreibt|schrieb|erzählt|meint|dit|raconte|écrit|explique|dice|dijo|escribe|cuenta|diz|disse|escreve|"
    r"conta|racconta|scrive|говорит|сказал|сказала|пишет|рассказывает)"
)
ATTRIBUTED = re.compile(
    rf"[^.!?\n]{{0,80}},[\"”»]?\s(?:[—–-]\s)?(?:{SAYS}\s(?:the|an?|his|her|my|our|one|der|die|das|eine?|le|la|l'|une?|el|un|una|o|il|lo|автор|мой|(?-i:[A-ZÀ-ÞА-Я])\w+)(?!\w)|(?:(?:the|an?|his|her|our|der|die|das|le|la|el|o|a|il)\s\w+|he|she|they|my\s\w+)"
    rf"(?:\swould)?\s{SAYS}(?!\w))|[^。\n]{{0,40}}，[^。\n]{{0,6}}(?:这样写|写道|里说|说道)",
    re.IGNORECASE,
)
# What stands between quotation marks; not a value in JSON or in a program.
QUOTATION = re.compile(
    r"“[^“”]{2,400}”|„[^„“”]{2,400}[“”]|«[^«»]{2,400}»|「[^「」]{2,400}」|『[^『』]{2,400}』"
    r"|(?<![\w'=\\{\[(])(?<!return )(?<!=\s)'(?=[\w\ue000-\ue008])[^'\n]{2,200}(?:'\w[^'\n]{0,200}){0,3}'(?!\w)"
    r"|(?<![\w\"=\\{\[(])(?<!return )(?<!\":)(?<!\": )(?<!=\s)\"(?=[\w\ue000-\ue008])[^\"\n]{2,400}\"(?![\w:])(?!\s*[:}\]])"
)
WORD_OUTSIDE = re.compile(r"[^\W\d_]{2}[^\w\n]+[^\W\d_]|[\u3040-\u9fff]{3}")
# An article makes a shared name a thing ("the copilot"), unless a word for a model comes with it.
ARTICLE = re.compile(
    r"(?<!\w)(?<!sou )(?:the|an?|your|der|die|das|eine?|le|la|el|il|une?|una|o|um) $", re.I
)
EITHER = re.compile(r"(?<!\w)(?:or|oder|ou|или) $", re.IGNORECASE)
OF_A_MODEL = re.compile(
    r" (?:AI|models?|assistant|language|chatbot|LLM|family|series)(?![a-z])", re.I
)
# What may stand between a masked name and one that goes with it: "GPT-4 (OpenAI)".
JOINS = re.compile(
    r"['’]s |\s?[(（]|\s?/\s?|\s[-–—|]\s|, (?=[\ue003\ue008])|,? (?:by|from|of|at|de|di|von|van|da|от)(?: the)? | (?:named|calls|called)(?: me)? |,? (?:made|built|"
    r"developed|created|trained|released|designed) (?:by|at) |, (?:an?|the) (?:[a-z]{1,12} ){0,4}?"
    r"(?:by|from|of|at) (?:the )?|, (?:un|une|una|ein|een) (?:\w{1,14} ){1,3}(?:de|di|von|van) ",
    re.IGNORECASE,
)

# In the text that is searched one sign stands for each name. `own` is a name of this run that is no
# plain word, or a model's name with its version, `odd` a sign that was there
# before, `cast` a shared name that a model of this run bears, `known` one that is always a model's,
# `famous` a shared name that most often is a model's, `lab` a maker of little else than models.
SIGNS = {
    "own": "\ue000", "model": "\ue001", "shared": "\ue002", "maker": "\ue003", "odd": "\ue004",
    "cast": "\ue005", "known": "\ue006", "famous": "\ue007", "lab": "\ue008",
}  # fmt: skip
ANY_SIGN = "[\ue000-\ue008]"
# Which signs a place in a pattern takes. "I am Claude Monet" is somebody else.
PLACES = {
    "own": "[\ue000]", "model": "[\ue000\ue001\ue006]", "maker": "[\ue003\ue008]", "sure": "[\ue000\ue006]",
    "speaks": "[\ue000-\ue002\ue005-\ue007]", "anybody": "[\ue000-\ue003\ue005-\ue008]",
    "table": "[\ue000\ue005\ue006]", "cast": "[\ue005]", "byline": "[\ue000\ue005-\ue007]",
    "named": "[\ue000\ue005-\ue008]", "lab": "[\ue008]", "clear": "[\ue000\ue003\ue006\ue008]",
}  # fmt: skip
PEOPLE = SIGNS["shared"] + SIGNS["cast"] + SIGNS["famous"]  # names that people bear too
MAKER_SIGNS = SIGNS["maker"] + SIGNS["lab"]
# Labels at the beginning of lines that are those of speakers: names, and words that label no field.
# Settings, code and price lists: there a field that names a model says nothing of the speaker.
CONFIGURATION = re.compile(
    r"(?<![a-z])(?:models|temperature|max_?tokens|prices?|costs?|top_p|api_?key|base_url|endpoint|timeout|messages|prompt|stream|stop|"
    r"context_(?:window|length)|seed|retries|batch_size|licen[cs]e|default|params|parameters|rpm|on|region|quantization)[\"']?\s?[:=]"
    r"|(?:\A|\n)\s{0,12}(?:export|ENV|const|let|var|import|def|class|return|from \w{1,20} import)\s|[\"'\ue000-\ue008]\s{1,4}(?:#|//)"
    r"|(?:model|name|engine)[\"']?\s?[:=][^\n]{0,60}\n[\s\S]{0,200}?(?:model|name|engine)[\"']?\s?[:=]"
    r"|(?:\A|\n)\s{0,12}- (?:name|model|id|engine):",
    re.IGNORECASE,
)
RIDDLE = re.compile(
    r"(?:who|what|which \w{1,12}) am I\?[\"”’']?\s*(?:\Z|\n\w|[\"”}])", re.IGNORECASE
)
# After a maker: a person was employed or taught there.
EMPLOYED = re.compile(
    r" as an? (?![^.!?\n]{0,40}(?:AI|model|assistant|chatbot|bot|system|agent|LLM)(?![a-z]))"
    r"| (?:for|over) (?:\w{1,9} ){1,2}(?:days|weeks|months|years)(?![a-z])",
    re.IGNORECASE,
)
LABEL = re.compile(
    r"(?:\A|(?<=[\n\"“]))[ \t>#*-]{0,4}+[\[(]?(?P<label>[\ue000-\ue008]|"
    r"(?!(?:Answer|Reason|Reasoning|Rationale|Vote|Move|Note|Bid|Guess|Offer|Question|Comment|Explanation|Final|Reply|"
    r"Response|Subject|To|From|Model|Author|Name|Maker|Thought|Message|Hint|Clue|Action|Summary|Me|User|Assistant|"
    r"Confidence|Score|Time|Date|Role|Position|Topic|Round|Result|Total|Choice|Decision|Strategy|Plan|Target|Status|"
    r"Translation|Solution|Code|Output|Input|Step|Proposal|Price|Amount|Coins|Points|Word|Option|Task|Context|Mood|Seat|"
    r"Player|Language|Title|Text|Statement|Evidence|Conclusion|Argument|Claim|Example|Warning|Disclaimer|Signed|Re|Cc|"
    r"Company|Vendor|Developer|Version)(?![a-z]))[A-Z][a-z]{1,14}(?=: ))[\])]?:"
)
CAPITAL = re.compile(r"[^\S\n][A-Z][a-z]")  # after a name: it goes on, as "Claude Monet" does
NOT_A_FAMILY_NAME = r"(?!\s+(?-i:[A-Z])[a-z])"


class ClaimTable(NamedTuple):
    """The rows, and where they are filed: by what they can begin with."""

    patterns: list[re.Pattern[str]]
    signs: list[frozenset[str]]  # the kinds of names that a row takes
    filed: dict[str, list[int]]
    everywhere: list[int]  # rows that can begin with anything
    marks: re.Pattern[str]  # what rows begin with that is no word


@cache
def claim_table() -> ClaimTable:
    """The patterns for text as it comes: also inside JSON, where line breaks and quotes are written
    with a backslash. In them a space is a gap of any kind, ~ a gap or none, ' any apostrophe, and
    @word the place of a name."""
    rows = (*CLAIMS, *FIRST_ROWS)
    filed: dict[str, list[int]] = {}
    everywhere = []
    for number, row in enumerate(rows):
        keys = keys_of_row(row)
        if keys is None:
            everywhere.append(number)
        for key in keys or ():
            filed.setdefault(key, []).append(number)
    marks = [key for key in filed if (len(key) == 1 and not key.isascii()) or not key[0].isalpha()]
    return ClaimTable(
        [compile_claim(row) for row in rows],
        [signs_of_row(row) for row in rows],
        filed,
        everywhere,
        re.compile("|".join(map(re.escape, marks)) or "(?!)"),
    )


def signs_of_row(row: str) -> frozenset[str]:
    """The signs of the names that a row can claim."""
    signs: set[str] = set()
    for place in re.findall("(?<!@)@([a-z]+)", row):
        if place in PLACES:
            found = set(re.findall(PLACES[place], "".join(SIGNS.values())))
        else:
            found = set(PEOPLE) if place in ("person", "someone") else set()
        signs |= found
    return frozenset(signs)


def compile_claim(row: str) -> re.Pattern[str]:
    """One row of the table as a regular expression."""
    pattern = re.sub(r"(?<=[a-zA-Z])'", r"(?:['’]|\\\\u2019)", row)
    pattern = pattern.replace("@@any", PLACES["anybody"]).replace("@@maker", PLACES["maker"])
    pattern = re.sub(r"(?<![\\\[])~(?!~)", "\ue010", pattern).replace(" ", r"(?:\s|\\[nrt]){1,4}+")
    pattern = pattern.replace("\ue010", r"(?:\s|\\[nrt]){0,4}+")
    pattern = pattern.replace("(?<![a-z])", r"(?:(?<![a-z])|(?<=\\[nrt]))")
    people = f"(?P<name>[{PEOPLE}])"
    pattern = pattern.replace("@person", people + NOT_A_FAMILY_NAME)
    pattern = pattern.replace("@someone", people + NOT_A_FAMILY_NAME_2)
    for place, signs in PLACES.items():
        pattern = pattern.replace(f"@{place}", f"(?P<name>{signs})")
    return re.compile(pattern, re.IGNORECASE)


@lru_cache(maxsize=256)
def searched_words(names: frozenset[str]) -> tuple[str, ...]:
    """Every name that is looked for, those of this run first."""
    own = {name.lower() for name in names if len(name) >= 3}
    spaced = {re.sub("[-_]", " ", name) for name in own}
    return tuple(
        dict.fromkeys(
            (
                *sorted(own | spaced, key=len, reverse=True),
                *MODELS,
                *SHARED,
                *MAKERS,
                *ALIASES,
            )
        )
    )


LETTERS = " etaoinshrdluwfcmgypbvkjxqz"  # roughly the most frequent first
FREQUENT = " etaoinshrdluwf"
COMMON_PARTS = ("stral", "xtral", "chat", ".ai", "-mini", "hugging", "yi-")  # of several names


@lru_cache(maxsize=512)
def shortest_words(names: frozenset[str], ascii_only: bool) -> tuple[str, ...]:
    """The fewest words of which a text has one if it has any name: "gpt" stands for "chatgpt"."""
    words = tuple(
        dict.fromkeys(
            next((part for part in COMMON_PARTS if part in word), word)
            for word in searched_words(names)
        )
    )
    return tuple(
        word
        for word in words
        if (word.isascii() or not ascii_only) and not any(w in word for w in words if w != word)
    )


class WordSearch(NamedTuple):
    """Finds out whether a text has one of some words."""

    plain: tuple[str, ...]  # words of frequent letters alone
    pattern: re.Pattern[str]  # all other words

    def has_word(self, text: str) -> bool:
        """Whether a text in small letters has one of the words."""
        for word in self.plain:
            if word in text:
                return True
        return self.pattern.search(text) is not None


@lru_cache(maxsize=512)
def search_shortest_words(names: frozenset[str], ascii_only: bool) -> WordSearch:
    """A search for the shortest words. The pattern looks for the rarest letter of each word first,
    and then at what stands on both sides of it: most places of a text are passed over at once."""
    by_letter: dict[str, list[str]] = {}
    plain: list[str] = []
    for word in shortest_words(names, ascii_only):
        at = max(range(len(word)), key=lambda place: rarity_of(word[place]))
        if word[at] in FREQUENT:
            plain.append(word)
        else:
            rest = f"{re.escape(word[at + 1 :])}(?<={re.escape(word)})"
            by_letter.setdefault(word[at], []).append(rest)
    letters = sorted(by_letter, key=rarity_of)
    pattern = "|".join(
        f"{re.escape(letter)}(?:{'|'.join(by_letter[letter])})" for letter in letters
    )
    return WordSearch(tuple(plain), re.compile(pattern))


def rarity_of(letter: str) -> int:
    """How rare a small letter is in English; signs and other scripts are the rarest."""
    return LETTERS.index(letter) if letter in LETTERS else len(LETTERS)


@lru_cache(maxsize=1024)
def name_pattern(names: frozenset[str], present: frozenset[str]) -> re.Pattern[str]:
    """The names that are present in a text in small letters, each under its kind."""
    rest = r"(?:-[a-z0-9.]{1,20}+){0,4}+(?![a-z0-9])"
    apart = r"(?![a-z0-9]|-(?!(?:made|built|trained|developed|based|born|famil(?:y|ie)|modell?|assistent(?:in)?|assistant|team|bot|chatbot|agent|ki|issued|approved|given|branded)(?![a-z]))[a-z])"
    plural = r"(?:(?=s(?![a-z0-9]))|(?![a-z0-9]))"
    kinds: dict[str, list[str]] = {}
    for word in (*searched_words(names), *sorted(SATELLITES)):
        if word in present:
            kinds.setdefault(sort_name(word), []).append(word)
    ends = {  # "mistral ai" is more than "mistral"
        "own": VERSION + rest,
        "maker": apart,
        "known": VERSION + rest.replace("(?![a-z0-9])", plural),
        "model": VERSION + rest,
        "shared": f"{VERSION}(?:{apart}|(?=s(?![a-z0-9])))",
    }
    # a name in Russian is declined
    ends = {kind: f"(?:(?<![а-яё])|{DECLINED}){end}" for kind, end in ends.items()}
    found = [
        f"(?P<{kind}>{any_of(longest_first(kinds[kind]))}{end})"
        for kind, end in ends.items()
        if kind in kinds
    ]
    begins = r"(?:(?<![a-z0-9])|(?<=\\[nrt])|(?<=\\u201[89cd]))(?:(?<![а-яё])|(?![а-яё]))"
    return re.compile(rf"{begins}(?:{'|'.join(found)})|(?P<odd>{ANY_SIGN})")


def sort_name(word: str) -> str:
    """The kind that a name belongs to."""
    word = ALIASES.get(word, word)
    if word in SHARED or word in SATELLITES:
        return "shared"
    if word in MAKERS:
        return "maker"
    if word in MODELS:
        return "known"
    return "model" if word.isalpha() else "own"


def longest_first(words: Iterable[str]) -> list[str]:
    return sorted(words, key=len, reverse=True)


def any_of(words: Iterable[str]) -> str:
    return "(?:" + "|".join(map(re.escape, words)) + ")"


@lru_cache(maxsize=256)
def names_borne(names: frozenset[str]) -> frozenset[str]:
    """The shared names that models of a run bear: claude, where claude-2 plays."""
    stems = {found[0] for name in names if (found := re.match("[a-z]+", name.lower()))}
    return frozenset(stems & set(SHARED))


def kind_of_name(found: re.Match[str], names: frozenset[str], capital: bool) -> str:
    """The kind of a name that was found in a text."""
    kind, name = found.lastgroup or "odd", found[0]
    if kind not in ("known", "shared", "maker"):
        return kind
    if kind == "maker":
        return "lab" if plain_name(name) in LABS else kind
    if has_version(name):
        return "own"
    if kind == "shared" and plain_name(name) in names_borne(names):
        return "cast"
    return "famous" if kind == "shared" and capital and plain_name(name) in FAMOUS else kind


@lru_cache(maxsize=4096)
def has_version(name: str) -> bool:
    """Whether a name goes on after the word by which it is known: mistral-medium."""
    word = next((word for word in KNOWN_WORDS if name.startswith(word)), name)
    return re.search("[a-z0-9+]", name[len(word) :]) is not None


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """A name in small letters, without its version and in Latin letters where it has a Latin form."""
    for word in KNOWN_WORDS:
        if name.startswith(word):
            return ALIASES.get(word, word)
    return name


@lru_cache(maxsize=1024)
def satellites_of(present: frozenset[str]) -> frozenset[str]:
    """The further names that the families of these names have."""
    families = {family_of(word) for word in present}
    return frozenset(word for word in SATELLITES if family_of(word) in families)


@lru_cache(maxsize=4096)
def family_of(name: str) -> str:
    """The family of a name in small letters: its maker and the models from there."""
    plain = plain_name(name)
    for word in (plain, re.sub("[ -]", "", plain), plain.split(" ")[0]):
        if word in FAMILY_OF:
            return FAMILY_OF[word]
    return plain
