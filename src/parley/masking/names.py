# ruff: noqa: E501 - a row of the table stays in one piece
"""The names of models and of their makers, by family.

`sure` names mean a model or a maker of models wherever they stand. `ordinary` names are words,
names of people, or makers that do other things, too: they count only where a model of the family
plays.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Family(NamedTuple):
    """The names of a maker and of its models, separated by commas, in small letters."""

    name: str
    sure: str = ""
    ordinary: str = ""


FAMILIES = (
    Family(
        "Claude",
        "anthropic, claude.ai, антропик, энтропик, 앤트로픽, 앤스로픽, アンソロピック, アンスロピック, "
        "أنثروبيك, أنثروبك, एंथ्रोपिक, एन्थ्रोपिक",
        "claude, клод, 클로드, クロード, 克劳德, 克勞德, كلود, क्लॉड, क्लोड, קלוד",
    ),
    Family(
        "GPT",
        "gpt, chatgpt, chat gpt, chat-gpt, openai, text-davinci, o1-preview, o1-mini, o3-mini, "
        "o4-mini, гпт, чатгпт, чат гпт, чатджипити, опенэйай, опен-эй-ай, 지피티, 챗지피티, 챗 지피티, 챗gpt, "
        "챗 gpt, チャットgpt, 오픈ai, 오픈 ai, 오픈에이아이, オープンai, オープンエーアイ, تشات جي بي تي, شات جي بي تي, "
        "جي بي تي, أوبن إيه آي, أوبن ايه آي, أوبن إي آي, चैटजीपीटी, चैट जीपीटी, जीपीटी, ओपनएआई, ओपन एआई",
        "codex, open ai",
    ),
    Family(
        "Gemini",
        "deepmind, google deepmind, gemini.google.com, notebooklm, lamda, codegemma, "
        "дипмайнд, 딥마인드, ディープマインド",
        "gemini, gemma, bard, palm, google, deep mind, джемини, джеминай, гугл, 제미나이, 제미니, 구글, ジェミニ, ジェミナイ, "
        "グーグル, 谷歌, جيميني, جيمناي, جوجل, غوغل, जेमिनी, जेमिनाई, जैमिनी, गूगल, גוגל",
    ),
    Family(
        "Llama",
        "codellama, code llama, meta ai, meta.ai, wizardlm, wizardcoder",
        "llama, alpaca, vicuna, meta, facebook, лама, ллама, 라마, ラマ, لاما, लामा, 메타, メタ, ميتا, मेटा",
    ),
    Family("Grok", "x.ai, grok.com", "grok, xai, грок, 그록, グロック, جروك, غروك, ग्रोक"),
    Family(
        "DeepSeek",
        "deepseek, дипсик, 深度求索, 딥시크, ディープシーク, ديب سيك, ديبسيك, डीपसीक",
        "deep seek",
    ),
    Family(
        "Qwen",
        "qwen, alibaba cloud, tongyi, 通义千问, 通義千問, 千问, 通义, квен, 큐원, クウェン",
        "qwq, alibaba, алибаба, 阿里巴巴, 阿里云, 阿里雲, 알리바바, アリババ, علي بابا, अलीबाबा",
    ),
    Family(
        "Mistral",
        "mistral ai, mistralai, mistral.ai, mixtral, codestral, pixtral, ministral, magistral, devstral, "
        "voxtral",
        "mistral, le chat, мистраль, 미스트랄, ミストラル, ميسترال, मिस्ट्रल",
    ),
    Family("Phi", "", "phi"),
    Family(
        "Copilot",
        "bing chat",
        "copilot, microsoft, копайлот, майкрософт, 微软, 微軟, 코파일럿, 마이크로소프트, コパイロット, マイクロソフト, "
        "كوبايلوت, مايكروسوفت, कोपायलट, माइक्रोसॉफ्ट",
    ),
    Family("Kimi", "moonshot ai, 月之暗面, kimi.com", "kimi, moonshot, кими, 키미"),
    Family("GLM", "chatglm, zhipu, zhipu ai, z.ai, 智谱, 智譜, 智谱清言", "glm"),
    Family("ERNIE", "wenxin, yiwen, 文心一言, 文心大模型", "文心, ernie, baidu, 百度, 바이두, バイドゥ"),
    Family("Hunyuan", "hunyuan", "混元, tencent, 腾讯, 騰訊, 텐센트"),
    Family("Doubao", "doubao", "豆包, bytedance, 字节跳动"),
    Family("Nova", "amazon nova, amazon titan", "nova, titan, amazon"),
    Family("Granite", "watsonx", "granite, ibm"),
    Family("Pi", "inflection ai", "pi, inflection"),
    Family("OLMo", "olmo, allen institute for ai", "tulu, ai2"),
    Family("Falcon", "technology innovation institute", "falcon"),
    Family("Nemotron", "nemotron", "nvidia"),
    Family("Jamba", "ai21, ai21 labs", "jamba"),
    Family("Command", "cohere ai", "command r, command a, cohere, aya"),
    Family("Yi", "01.ai, 零一万物, yi-34b, yi-6b, yi-9b, yi-1.5, yi-large, yi-lightning", "yi"),
    Family("YandexGPT", "yandexgpt", "yandex, яндекс"),
    Family("GigaChat", "gigachat, гигачат", "sber, sberbank, сбер, сбербанк"),
    Family("Spark", "iflytek, 讯飞星火, 星火大模型, 科大讯飞, 讯飞", ""),
    Family("EXAONE", "exaone, lg ai, lg ai research, 엑사원", ""),
    Family("Solar", "upstage", "solar"),
    Family("HyperCLOVA", "hyperclova, 하이퍼클로바, 하이퍼클로바x", "clova, naver, 네이버, ネイバー"),
    Family("MiniMax", "minimax-m1, minimax-m2, minimax-text, minimax-01", "minimax"),
    Family("Baichuan", "baichuan, 百川智能", "百川"),
    Family("InternLM", "internlm, 书生大模型", ""),
    Family("SenseChat", "sensechat, sensetime, 商汤", "日日新"),
    Family("Step", "stepfun, 阶跃星辰", ""),
    Family("Pangu", "盘古大模型", "huawei, 华为"),
    Family("MiniCPM", "minicpm, 面壁智能", ""),
    Family("MiMo", "", "mimo, xiaomi, 小米"),
    Family("Kanana", "kanana", "kakao, 카카오"),
    Family("Reka", "reka ai", "reka"),
    Family("Luminous", "aleph alpha", "luminous"),
    Family("Stable LM", "stablelm, stability ai, stable lm", ""),
    Family("SmolLM", "smollm, huggingface, hugging face, starcoder, zephyr-7b", "zephyr"),
    Family("DBRX", "dbrx, databricks", ""),
    Family("Perplexity", "perplexity ai", "perplexity, sonar"),
    Family("Hermes", "nous hermes, nous research, openhermes", "hermes"),
    Family("RWKV", "rwkv, eleutherai", ""),
    Family("BLOOM", "bloomz", "bloom"),
    Family("Palmyra", "palmyra", ""),
    Family("LFM", "liquid ai", ""),
    Family("Sakana", "sakana ai", ""),
    Family("Apertus", "apertus", ""),
    Family("EuroLLM", "eurollm, teuken", ""),
    Family("PLaMo", "plamo, elyza, tsuzumi", ""),
    Family("Skywork", "skywork, telechat", ""),
    Family("Arctic", "", "snowflake"),
    Family("Character", "character.ai", ""),
    Family("OpenChat", "openchat, flan-t5", ""),
    Family("Krutrim", "krutrim", ""),
    Family("MariTalk", "maritalk, vikhr", ""),
)  # fmt: skip


class Spelling(NamedTuple):
    """One way to write a name of a family."""

    word: str
    family: str
    is_ordinary: bool


def plain_word(word: str) -> str:
    """A name as it is looked for: hyphens, underscores and spaces are the same."""
    return re.sub(r"[\s_-]+", " ", word)


@cache
def all_spellings() -> tuple[Spelling, ...]:
    """Every spelling of the table, the longest first."""
    found = [
        Spelling(plain_word(word.strip()), family.name, is_ordinary)
        for family in FAMILIES
        for words, is_ordinary in ((family.sure, False), (family.ordinary, True))
        for word in words.split(",")
        if word.strip()
    ]
    return tuple(sorted(found, key=lambda each: (-len(each.word), each.word)))
