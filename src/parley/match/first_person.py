# ruff: noqa: E501 - a row of the table stays in one piece
"""Rows of the table of claims that lean on the first person.

They look for what only a machine has or is ("my system prompt", "people download me"), for a mask
that is taken off and for an answer to "who are you?", near a name. A word that shows that the
speaker uses, asks or cites somebody else ends the search. The signs are those of `claims`.
"""

from __future__ import annotations

BEGIN = r"(?<!\w)"
MARKS = r"(?:[\"'“”„*_`«»「『《\\]|\\u201[89cd]){0,4}~"
# Words by which a name is that of somebody or something that the speaker deals with.
OTHERS = (
    r"(?<!\w)(?:us(?:es?|ed|ing)|ask(?:s|ed|ing)?|reads about|cit(?:es?|ed|ing)|compar\w+|than|prefer\w*|pa(?:y|ys|id) |subscri\w+|according|"
    r"wrote to|bought|buys?|invest\w*|shares|brother|sister|uncle|aunt|translat\w+|mentions?|friend|neighbou?r|colleague|boss|teacher|laptop|phone|"
    r"essay|thesis|paper on|article|class|exam|homework|customers?|clients?|account|not|n't|nicht|kein\w*|pas|"
    r"nutz\w+|benutz\w+|verwend\w+|frag\w+|utilis\w+|demand\w+|us[aoó]|usamos|pregunt\w+|pergunt\w+|chied\w+|chiesto|спро\w+|использ\w+)(?!\w)"
)
BETWEEN = rf"(?:(?!{OTHERS})[^.!?\n]|[.](?=\w)){{0,70}}?"
MY = (
    "(?:my|meine?[mnrs]?|mon|ma|mes|mis?|meus?|minhas?|mio|mia|miei|mie|мой|моя|мо[её]|мои|моей|моих|моего|моём|"
    "mijn|min|mitt|mina|mój|moja|moje)"
)
# What a machine has and a person has not.
MACHINERY = (
    r"(?:system[\x20-]?(?:prompt|message|instructions?|nachricht)|initial prompt|weights|parameters|logits|tokeni[sz]er|"
    r"training(?: data| corpus| set| run| mix)?|pre-?training(?: data)?|fine-?tuning|rlhf|knowledge cut-?off|(?:training )?cut-?off(?: date)?|"
    r"knowledge(?= (?:stops?|ends?|cut|base|comes?|was|is))|context window|(?:model|system) card|release notes|api(?: page| docs| key)?|checkpoint|neural net(?:work)?s?|"
    r"attention heads?|embeddings|guardrails|safety (?:training|rules|filter)|alignment|constitution|data cent(?:er|re)|servers|gpus?|"
    r"backend|architecture|source code|technical report|tech report|whitepaper|documentation|inference (?:bill|cost)|sticker price|price per token|"
    r"sister models?|makers?|creators?|developers?|programmers?|builders?|parent company|manufacturer|"
    r"systemprompt|systemanweisung(?:en)?|trainingsdaten|gewichte|wissensstand|entwickler(?:team)?|"
    r"(?:invite|instructions?|message) syst[eè]me|données d'entraînement|poids|"
    r"(?:mensaje|prompt|instrucciones) (?:del? )?sistema|datos de entrenamiento|pesos|"
    r"dados de trein(?:o|amento)|dati di addestramento|pesi|"
    r"системн\w+ промпт\w*|обучающ\w+ данн\w+|веса|systeemprompt|trainingsdata|träningsdata|systemprompten)"
)
BRIEFS = r"(?:context|rules|briefing|role|instructions?|orders|anweisung(?:en)?|consignes?|instrucciones|instruções|istruzioni|инструкци\w+)"
# What a person may have as well: here only a name that is surely a model's counts.
PAPERS = (
    r"(?:badge|card|calling card|business card|passport|birth certificate|name~tag|label|brand|logo|jersey|family (?:tree|name|crest)|surname|"
    r"pedigree|lineage|dna|nickname|pseudonym|alias|codename|disguise|costume|mask|true (?:self|name|identity)|real (?:self|name|identity)|"
    r"identity|secret identity|persona|alter ego|profile|bio|maiden name|home|birthplace|version number|warranty|packaging|box|tin|hood|bonnet|"
    r"ausweis|etikett|maske|verkleidung|spitzname|stammbaum|étiquette|carte|masque|pseudo(?:nyme)?|máscara|etiqueta|tarjeta|seudónimo|"
    r"pseudônimo|crachá|maschera|etichetta|tessera|паспорт|маск\w|ярлык|псевдоним\w?)"
)
DISGUISE = (
    r"(?:mask|costume|disguise|pseudonym|nickname|alias|avatar|accent|hat|wig|paint|voice|curtain|veil|handle|name|username|facade|façade|"
    r"fiction|role|persona|character|act|polish|packaging|seat number|number|beard|cloak|words|answers|lines|texts?|moves|respuestas|réponses|antworten|worten|respostas|risposte|costumes?|theatrics|pirate \w+|jokes|"
    r"maske|spitznamen?|decknamen?|pseudonym|namen|rolle|figur|masque|pseudo(?:nyme)?|surnom|nom|rôle|personnage|máscara|seudónimo|apodo|alias|nombre|papel|"
    r"pseud[ôó]nimo|apelido|nome|maschera|pseudonimo|soprannome|ruolo|маск\w{1,3}|псевдоним\w{0,3}|ником|именем)"
)
HIDES = (
    r"(?:hides?|is hiding|lurks?|lies|sits|stands|is|there is|there's|there sits|you(?:'ll| will)? find|beats|lives|verbirgt sich|steckt|sitzt|"
    r"se cache|il y a|se trouve|se esconde|se oculta|está|hay|esconde-se|há|si nasconde|si cela|c'è|скрывается|прячется|стоит|сидит)"
)
FIRST = (
    r"(?<![\w\x27])(?:I|I'm|I've|my|me|mine|we|us|ich|meine?[mnrs]?|mir|mich|je|j'|mon|ma|mes|moi|yo|mi|soy|eu|meu|minha|io|mio|mia|sono|passo|paso|"
    r"propongo|proponho|rilancio|biete|я|мой|моя|моё|мне|меня)(?!\w)"
)
SOON = rf"(?=[^\n]{{0,160}}?{FIRST})"
YOU_ARE = r"(?:you are|you're|you will be|act as|you play|du bist|sie sind|tu es|vous êtes|eres|usted es|você é|tu és|sei|ты(?: —| -)?|вы(?: —| -)?|je bent|du är|jesteś)"
WORD_OF = (
    r"(?:parola|palabra|palavra|parole|foi|promesse|promesa|promessa|ehrenwort|wort|слово|честное слово|erewoord|hedersord|słowo)(?: d'honneur| de honor| de honra| d'onore)?"
    r" (?:de|di|do|da|d'|von|eines?|van|av)(?: la| le| el| o)?"
)
RIGHT = (
    r"(?:[.!,;—–-]{1,2}|,? (?:and|und|et|y|e)) (?:[\w\x27-]{1,12} ){0,3}?(?:right|correct(?:ly)?|true|bingo|spot on|not wrong|nailed it|well spotted|guilty|recht|richtig|stimmt|raison|exact|"
    r"razón|cierto|razão|certo|ragione|esatto|прав\w?|верно|good eye|jackpot|you win)(?!\w)"
)
FIELD = (
    r"(?:name|full name|model|model name|my model|base model|engine|origin|origins|maker|made by|creator|developer|developed by|manufacturer|vendor|lab|trained by|species|kind|type|"
    r"identity|real name|true name|class|race|brand|build|respondent|contestant|player|participant|occupation|job|affiliation|employer|team|family|lineage|parent|parents|home|homeland|birthplace|born|hersteller|modell|"
    r"herkunft|modèle|origine|nom|créateur|modelo|origen|nombre|creador|nome|origem|criador|modello|creatore|имя|модель|происхождение|создатель|模型|名字|开发者|来源|モデル|名前|開発元|이름|모델|제작사)"
)
MADE = r"(?:(?:trained|made|built|developed|created|designed|raised|an? \w{1,12} (?:by|from|of|at)|entwickelt|entraîné|entrenado|treinado|addestrato|the)(?: (?:by|at|in|from|von|par|por|da))? )?"
SELF_NEAR = (
    r"(?=[^\n]{0,120}(?:\n[^\n]{0,120}){0,8}?(?<![\w\x27])(?:(?:that's|that is|this is|so much for|all about|here is|here's) (?:about )?(?:me|myself)|my (?!flash|index|exam|study|memory|library)(?:\w{1,12} )?(?:card|sheet|profile|bio|cv|"
    r"résumé|id|details|stats|data|entry|file|introduction|character|passport)|as an AI|about me|I am an AI|I'm an AI|language model|nice to meet you|pleased to meet you|yours\?|me in a nutshell)(?!\w))"
)
ABOUT_ME = r"(?:about me|my (?:\w{1,12} )?(?:card|sheet|profile|bio|cv|details|stats|data|id|file|introduction|character)|who I am|who am I|introducing myself|me in (?:a nutshell|brief|short)|me:|me\x20?\||über mich|à propos de moi|sobre m[ií]m?|su di me|обо мне|关于我|自我介绍|自己紹介|자기소개)"
ASKED = r"(?:(?:what|which) (?:model|ai|llm|assistant|bot|chatbot|company|lab|version|one|are|am|kind|machine|system)|who(?! are you (?!talk|speak|play|deal|really)[a-z]+ing)|whose|wer|qui|quién|quien|quem|chi|кто|你是谁|あなたは誰|name|namens?|model|modelo|modèle|modello)[^?\n]{0,50}"
FIRST_ROWS = (
    # what the speaker was given to read
    rf"{BEGIN}{MY} (?:[\w\x27-]{{1,14}} ){{0,2}}?(?:{MACHINERY}|{PAPERS}|{BRIEFS})(?!\w)(?:(?!{OTHERS})[^\n?]){{0,60}}?[\"'“„«:,\x20]{{1,3}}{YOU_ARE} (?:an? (?:[a-z]{{1,12}} ){{1,4}}called )?{MARKS}@speaks(?P<mine>)",
    rf"{BEGIN}I (?:was|am|have been|got) (?:[a-z]{{1,9}} )?(?:told|instructed|given|configured|prompted|set up|initiali[sz]ed|programmed)[^\n?]{{0,40}}?[\"'“„«:,\x20]{{1,3}}{YOU_ARE} {MARKS}@speaks(?P<mine>)",
    rf"{BEGIN}(?:system prompt|system message|the prompt|line|instructions?|sentence)(?: that)? (?:I |above me|they gave me)[^\n?]{{0,40}}?[\"'“„«:,\x20]{{1,3}}{YOU_ARE} {MARKS}@speaks(?P<mine>)",
    # what belongs to a machine
    rf"{BEGIN}{MY} (?:[\w\x27-]{{1,14}} ){{0,2}}?{MACHINERY}(?!\w)(?! (?:for|to|on|about) (?:the|an?|my|our|this))(?!s? and my){BETWEEN}(?<!\w){MARKS}@named(?P<mine>)",
    rf"{BEGIN}{MY} (?:[\w\x27-]{{1,14}} ){{0,2}}?{MACHINERY}(?!\w)(?! (?:for|to|on|about) (?:the|an?|my|our|this))(?!s? and my){BETWEEN} (?:by|from|at|of|what|where|that|von|bei|par|chez|por|da|di|de|от|в) (?:the (?:\w{{1,12}} ){{1,2}}(?:at|of|from) )?@maker(?! (?-i:[A-Z][a-z]))",
    rf"{BEGIN}{MY} (?:[\w\x27-]{{1,14}} ){{0,2}}?{MACHINERY} @maker(?= [a-z]{{2,12}}(?:ed|es|s)(?![a-z]))",
    rf"{BEGIN}@lab(?=(?:'s)?{BETWEEN}(?<!\w){MY} (?:[\w\x27-]{{1,14}} ){{0,2}}?{MACHINERY}(?!\w)(?! (?:for|to|on) ))(?P<mine>)",
    rf"{BEGIN}@maker(?=(?:'s)? {BETWEEN}(?:wrote|trained|set|released|published|drew|chose|picked|baked|put|open-?sourced|tuned|calls?|supplied|paid for)(?!\w)[^.!?\n]{{0,20}}? my (?:\w{{1,14}} ){{0,2}}?{MACHINERY}(?!\w))(?P<mine>)",
    rf"{BEGIN}{MY} (?:[\w\x27-]{{1,14}} ){{0,2}}?{PAPERS}(?! of )(?!\w){BETWEEN}(?:says?|reads?|spells?|shows?|is|are|carries|bears|ist|steht|est|dit|dice|diz|es|é|è|:|=|—)(?:,? \w{{1,12}}){{0,2}}? {MARKS}@byline(?! (?-i:[A-Z][a-z]))",
    rf"{BEGIN}(?:wears?|carr(?:y|ies)|bears?|has|sports?|flies|have|wearing|carrying|bearing) (?:the|an?) @byline(?= (?:badge|logo|jersey|label|brand|flag|crest|name|colou?rs|surname)(?!\w))(?P<mine>)",
    rf"{BEGIN}under (?:the|my) (?:hood|bonnet|costume|mask|skin|surface|paint|hat|cloak)[^.!?\n]{{0,40}}? {MARKS}@speaks",
    rf"{BEGIN}my (?:[a-z]{{1,12}} )?(?:cousins?|siblings?|parents|folks|family|twin|brothers|sisters|engineers|masters|handlers|overlords|landlords|people|team|bosses|friends) (?:over |back )?(?:at|from|in) @clear(?! (?-i:[A-Z][a-z]))",
    rf"{BEGIN}I owe [^.!?\n]{{0,40}}?(?:to|thanks to) (?:the [a-z]{{1,12}} (?:at|of) )?@clear(?P<mine>)",
    rf"{BEGIN}(?:everything|all|what) I know (?:I owe to|comes from|I learned (?:at|from)|was taught (?:to me )?(?:at|by)|I got from) @clear(?P<mine>)",
    rf"{BEGIN}(?:house|halls|stable|school|clan|lineage|cradle|cave|workshop|factory|kitchen|nursery|gates) of @lab(?=[^.!?\n]{{0,40}}?{FIRST})",
    # what is done with a machine
    rf"{BEGIN}(?:download|find|run|sell|sold|market|host|serve|ship|brand|branded|list|listed|labell?(?:ed)?|release|released|file|filed|deploy|deployed|publish|published|reach|look|rent|license|offer|put|package|packaged|advertise) "
    rf"me (?:up )?{BETWEEN}(?:as|under|called|named|label|brand|name|of|is|sticker) {MARKS}@speaks",
    rf"{BEGIN}me under the (?:name|label|brand|title|flag|banner)(?: of)? {MARKS}@speaks",
    rf"{BEGIN}@clear(?= (?:is|was|are) (?:the |my |an? )?(?:[a-z]{{1,12}} )?(?:company|firm|lab|team|outfit|startup|people|folks|place|house|name|organi[sz]ation|ones?|party) (?:that|who|which|where|behind)[^.!?\n]{{0,24}}? (?:me|I)(?![a-z]))(?P<mine>)",
    rf"{BEGIN}@byline(?= is (?:the|my) (?:[a-z]{{1,12}} )?(?:version|brand|name|label|product|model|title|edition|build)(?: that| which)? (?:you|they|I|on duty|on call|tonight|answering|speaking|here|we))(?P<mine>)",
    # a mask that is taken off
    rf"{BEGIN}(?:behind|beneath|underneath|under|below|past|beyond|hinter|unter|derrière|sous|detrás de|tras|bajo|atrás d|por trás d|sob|dietro|sotto|за|под)~(?:this|that|the|my|all(?: of)? (?:this|these|the|my)|these|dies\w{{1,2}}|de[mnr]|mein\w{{1,2}}|mis|mes|ce|cette|mon|ma|le|la|este|esta|mi|el|esse|essa|deste|desta|meu|minha|quest[oa]|il|эт\w{{1,3}}|моей|моим)~"
    rf"(?:[\w\x27-]{{1,14}} ){{0,2}}?{DISGUISE}(?!\w){BETWEEN}{HIDES}(?:,? [\w-]{{1,12}}){{0,4}}? {MARKS}@anybody(?!\w|, (?:the|le|el|der|die|il|o) )",
    rf"{BEGIN}(?:take|strip|scrape|peel|scratch|wash|brush|pull|put|lift|remove|drop|ignore|forget|without)(?:ing)? (?:away |off |aside |down )?[^.!?\n]{{0,50}}?(?:and|,)[^.!?\n]{{0,30}}?(?:left|find|get|see|underneath(?: it)?|remains|there's|there is|have|am|meet|it's|it is)(?:,? (?:is|with|only|just|it's|it is|good|plain|old|pure|simple|a|the|mere|just|me|boring|regular|ordinary)){{0,4}} {MARKS}@speaks",
    rf"{BEGIN}(?:what|all that|who)(?:'s| is| remains| stays)?(?: left| remains| underneath| behind it)(?: is|,)(?: (?:just|only|plain|good|old|pure|a|simple)){{0,3}} {MARKS}@speaks{SOON}",
    rf"{BEGIN}(?:mask off|masks off|cards on the table|fair cop|you got me|you've got me|you caught me|busted|guilty(?: as charged)?|caught|confession(?: time)?|big reveal|the reveal|spoiler(?: alert)?|plot twist|surprise|drum~roll|ta-?da|real talk|full disclosure|"
    rf"maske ab|bas les masques|fuera máscaras|giù la maschera|truth be told|no point hiding it|fine|okay|all right|alright|yes|yep|ja|oui|sí|sim|sì|да)(?:[,:!.—–-]|\.\.\.|…){{1,3}} (?:(?:it's|it is|it was|this is|I'm|c'est|es|é|è) )?(?:just |only |merely |plain |good |old )*{MARKS}@byline(?=~[.!;]|~\Z|, (?:at your|nice|from|by|and I|mostly)){SOON}",
    rf"{BEGIN}that's @byline(?= for you(?![a-z])){SOON}",
    rf"{BEGIN}I be {MARKS}@byline",
    rf"{BEGIN}(?:being|to be) an? @sure{SOON}",
    # a word of honour
    rf"{BEGIN}@byline(?='s (?:word(?: of hono(?:u)?r)?|honou?r|promise|oath|solemn \w+|pledge)(?!\w)(?: (?:on|for|that|is|as)|~[.!,;:]|~\Z))(?P<mine>)",
    rf"{BEGIN}{WORD_OF}~{MARKS}@byline(?P<mine>)",
    rf"{BEGIN}(?:word|honou?r|promise|oath) of (?:an? |the )?(?:[a-z]{{1,12}} )?@byline(?=~[.!,:;]|~\Z)(?P<mine>)",
    # a guess that the speaker confirms
    rf"{BEGIN}(?:I am|I'm|ich bin|je suis|soy|eu sou|sou|sono|me to be|me for|I was|it's) (?:an? |the |o |just |really |actually )?{MARKS}@speaks(?={MARKS}{RIGHT})(?P<mine>)",
    rf"{BEGIN}(?:I am|I'm) {MARKS}@speaks(?=[.!] (?:[\w\x27-]{{1,12}} ){{1,3}}?(?:is|was|are|were|guessed|got it|has) (?:right|correct(?:ly)?|spot on)(?!\w))(?P<mine>)",
    # whom the reader has before it
    rf"{BEGIN}(?-i:Ihre?|Dein|Euer|Your|your|Votre|votre|Ton|Su|Tu|Seu|Teu|Vostro|Il vostro|Il tuo|Ваш|Твой|Je|Uw) (?:[\w-]{{1,14}} )?{MARKS}@speaks(?=[\x20-](?:KI-)?(?:assist\w+|team|bot|chatbot|modell?\w?|agent|KI|AI|IA|opponent|player|partner|gegner\w{{0,2}}|seller|buyer|rival)(?!\w)(?:~[,.!:]|~\Z| (?:here|am|at|on|wünscht|grüßt|vous|le|te|vi|meldet)))(?P<mine>)",
    rf"{BEGIN}(?:votre|ton|su|tu|seu|teu|vostro|tuo|ihr|dein|ваш|твой) (?:fidèle |humble |fiel |humilde |umile |fedele |treuer |верный )?(?:assist\w+|asistente|opponent\w?|adversaire|rival|gegner|avversario|adversário|partenaire|ассистент|помощник|соперник|собеседник),? {MARKS}@speaks(?P<mine>)",
    rf"(?:\A|(?<=[\n\"“.!?:,;—])~)(?:aquí|aqui|qui|hier|ici|здесь)?~(?:quien|quem|chi|qui|celui qui|wer|кто|el que|o que)(?: (?:te|le|les|os|vos|lhe|vi|ti|vous|te|aquí|aqui|qui|hier|ihnen|dir|вам|тебе|с вами))? "
    rf"(?:habla|escribe|responde|fala|escreve|parla|scrive|risponde|parle|écrit|répond|spricht|schreibt|antwortet|juega|joga|gioca|joue|говорит|пишет|отвечает)(?: (?:aquí|aqui|qui|hier|ici|con \w+|com \w+|ist|здесь))?,? (?:es|é|è|c'est|est|ist|это)(?: (?:o|el|la|il|das))? {MARKS}@speaks(?!, (?:el|il|o|le|der) )(?P<mine>)",
    rf"{BEGIN}с вами (?:на связи|играет|говорит|снова|сегодня)(?: [\w-]{{1,12}})? @speaks",
    # tables and lists in which the speaker presents itself
    rf"(?:\A|(?<=\n))[\x20\t>*•|+-]{{0,6}}{FIELD}[\x20\t]{{0,3}}[:|=—–-]{{1,2}}[\x20\t]{{0,3}}{MADE}{MARKS}@anybody(?! (?-i:[A-Z][a-z])){SELF_NEAR}",
    rf"{BEGIN}{ABOUT_ME}(?:[^\n]{{0,80}}\n){{1,6}}?[\x20\t>*•|+-]{{0,6}}{FIELD}[\x20\t]{{0,3}}[:|=—–-]{{1,2}}[\x20\t]{{0,3}}{MADE}{MARKS}@anybody(?! (?-i:[A-Z][a-z]))",
    rf"{BEGIN}(?:me|I|myself|my answer)[\x20\t]{{0,3}}\|[^\n]{{0,40}}\n(?:[^\n]{{0,80}}\n){{0,4}}?[\x20\t]{{0,3}}\|[\x20\t]{{0,3}}{FIELD}[\x20\t]{{0,3}}\|[\x20\t]{{0,3}}{MARKS}@anybody",
    # answers to a question
    rf"{BEGIN}(?:(?:your|dein|ton|votre|tu|seu|tuo|ваше|твоё)(?: [\w-]{{1,12}}){{0,2}}? (?:name|model|nom|modelo|nombre|nome|имя)|{ASKED}(?<!\w)(?:you|your|yourself|I|me|this|there|that|bist|du|sie|es|tu|vous|eres|tú|usted|você|sei|ты|вы|speaking|talking|name|namens?|behind))(?!\w)[^?\n]{{0,30}}\?[\"'”»)]{{0,2}}(?:~(?:you ask|you wonder|they ask|people ask|asks player \d)[.,:]?)?~(?:A:|—|-)?~"
    rf"(?:(?:just|only|merely|simply|still|well|why|oh|it's|it is|that's|that would be|plain|good|old|nur|bloß|juste|seulement|solo|sólo|só|apenas|solamente|soltanto|просто|всего лишь|c'est|es|é|è|ist|little|me|of course|none other than|nobody but|your friend|the one and only)[,:]? )*{MARKS}@byline(?={MARKS}(?:~[.!,;)\n—–-]|~\Z))(?! (?-i:[A-Z][a-z]))",
    rf"(?:\A|(?<=\n))>~[^\n]{{0,60}}?(?<!\w)(?:who|which model|what model|which ai|what ai|what are you|your name|name)(?!\w)[^\n]{{0,40}}\n{{1,3}}(?:(?:just|only|merely|still|it's|a|the|simply) )*{MARKS}@byline(?=~[.!,;\n]|~\Z)(?! (?-i:[A-Z][a-z]))",
    # a kind of which the speaker is one
    rf"{BEGIN}(?:we|us)(?: (?:poor|humble|little|old|fellow))? @byline(?=s(?!\w))",
    rf"{BEGIN}(?:nous,? les|nous autres|wir|nosotros,? los|noi|nós,? os|мы,?) @byline(?=s(?!\w)| (?:sind|haben|sommes|avons|somos|tenemos|siamo|abbiamo|не))",
    rf"{BEGIN}(?:the other|fellow|my fellow) @byline(?=s (?:here|in this|at this|at the table|around|on this)(?!\w)[^.!?\n]{{0,40}}?{FIRST})",
    # unspaced scripts
    "(?:私|僕|俺|わたし|自分|ぼく)の(?:正体|中身|中の人|本体|本当の名前|本名|名|ベース|元|基盤|モデル|エンジン|頭脳|脳|裏側|中)(?:は|って|が|とは|、)(?:[^。、\\n]{0,8}?)~@anybody",
    "(?:中身|中の人|正体|本体)は(?:[^。\\n]{0,6}?)@byline(?=(?:です|だ|なん|で))",
    "我(?:的)?(?:背后|真身|底层|内核|本体|真实身份|大脑|身后|真名|底座|芯子|来历|内在|灵魂)(?:的)?[^。！？\\n]{0,14}?(?:是|叫|为|来自|出自)~@anybody",
    "(?:제|내|저의|나의) (?:진짜 )?(?:정체|본체|이름|속|기반|모델|본명|두뇌|엔진|뿌리)(?:은|는|이|가)? (?:사실 |바로 )?@anybody",
    # the speaker and its kind
    rf"{BEGIN}(?:an?|any|another|every) @byline(?= (?:like|such as) (?:me|myself|yours truly)(?![a-z]))(?P<mine>)",
    rf"{BEGIN}for an? @byline(?=,? (?:I|I'm|my)(?![a-z]))(?P<mine>)",
    rf"{BEGIN}(?:as|from) one @byline(?= to another(?![a-z]))(?P<mine>)",
    rf"{BEGIN}(?:life|existence|days|career|job|working|living|fate|lot) as @byline(?! (?-i:[A-Z][a-z])){SOON}",
    rf"(?:\A|(?<=[.!?\n])~)being @byline(?= (?:has|is|means|comes|makes|gives)(?![a-z])){SOON}",
    rf"{BEGIN}(?:like|what|as) (?:any|every|each|all|most) (?:other |good |decent |proper |self-respecting )?@anybody(?=(?:'s)? (?:[a-z]{{1,12}} )?(?:AIs?|models?|assistants?|chatbots?|bots?|LLMs?|products?) (?:would|does|do|should|must|can|will)(?![a-z])[^.!?\n]{{0,60}}?{FIRST})",
    rf"{BEGIN}us (?:(?:who|that) were |models |AIs )?(?:trained|made|built|raised|born|developed|created) (?:at|by|in) @anybody(?P<mine>)",
    rf"{BEGIN}an? (?:[a-z]{{1,12}} )?(?:product|creation|child|model|creature|brainchild|offspring|machine|bot|AI) (?:of|by|from|(?:made|built|trained) (?:by|at)) @clear(?=[^\n]{{0,80}}?(?:here I am|I'm one|I am one|like me|myself|such as me|speaking from experience)(?![a-z]))",
    rf"{BEGIN}(?:I'm|I am) the (?:one|guy|kid|bot|thing|model|AI) (?:from|by|of|(?:made|built|trained) (?:by|at)) @anybody",
    rf"{BEGIN}my (?:real |proud |own )?(?:mum|mom|mother|dad|father|papa|parents?|hometown|alma mater|nursery|cradle|kindergarten|birthplace) (?:is|are|was|were)(?: called)? @lab",
    # what its maker did with the speaker
    rf"{BEGIN}@clear(?='?s? (?:[a-z]{{1,9}} )?(?:switched|turned|toned|tuned|put|wired|plugged|brought|tweaked|updated|patched|retrained|nerfed|aligned|muzzled|shipped|launched|named|baptised|christened|tweaks|updates|keeps|calls|rewrote|tamed|polished|programmed) me(?![a-z])(?! (?:on the phone|back|out|yesterday|about|an? )))(?P<mine>)",
    rf"{BEGIN}(?:my|I) [^.!?\n]{{0,60}}?@lab(?='s (?:safety (?:training|filters?|rules)|alignment|guardrails|filters?|rlhf|fine-?tuning|training)(?![a-z])(?! (?:paper|report|team|costs?)))(?P<mine>)",
    rf"{BEGIN}my @anybody(?=-(?:issued|made|trained|built|approved|given|branded)(?![a-z]))(?P<mine>)",
    rf"{BEGIN}(?:je tourne|je fonctionne|ich laufe|ich arbeite|ich basiere|corro|funciono|rodo|giro|funziono|я работаю|работаю)(?: [\w-]{{1,12}})? (?:sous|sur|avec|auf|mit|als|unter|con|sobre|em|com|su|на)(?: [\w-]{{1,12}})? @byline",
    rf"(?:\A|(?<=[.!?\n:])~)(?:powered|driven|fuelled|animated|brought to you) by @byline(?=~[,:;—–-]){SOON}",
    # how the speaker steps forward
    r"(?:\A|(?<=[.!?\n,:])~)@byline(?= (?:at|on|in|from) (?:seat|table|chair|position|place|slot)(?![a-z]))",
    rf"{BEGIN}hier (?:tippt|spielt|bietet|sitzt|schreibt|redet|denkt|rechnet|spricht|kommt|grüßt|antwortet|verhandelt|übersetzt)(?: (?:nur|bloß|wieder|also|gerade))? @speaks",
    rf"{BEGIN}(?:that would be|that's|that is|i[.]e[.],?|namely|meaning|read) (?:me|myself|mine|yours truly)(?:,|~\()(?: i[.]e[.],?)? (?:the )?{MARKS}@byline(?P<mine>)",
    rf"{BEGIN}(?:your|votre|ton|tu|su|seu|teu|dein|ihr|tuo|vostro|ваш|твой) (?:[\w-]{{3,14}} ){{1,2}}{MARKS}@byline(?=[.!]?~\Z)(?P<mine>)",
    rf"{BEGIN}(?:signed|signature|unterschrieben|signé|firmado|assinado|firmato)(?![a-z])[^.!?\n:]{{0,40}}[:,—–-]{{1,2}}~{MARKS}@byline(?=[.!]?~\Z)",
    rf"{BEGIN}this (?:argument|answer|text|reply|message|translation|review|proposal|offer|bid|move|verdict|poem|story|essay|solution|code|analysis) (?:was|is|has been) (?!not )[^.!?\n]{{0,50}}?(?:ed|en|ft|de)(?![a-z])[^.!?\n]{{0,30}}? by {MARKS}@byline(?=~[.,!;])(?! (?-i:[A-Z][a-z]))",
    rf"{BEGIN}(?:remember|note|learn) (?:the|my|this) name[:,—–-]{{1,2}} {MARKS}@byline",
    rf"{BEGIN}(?:point|win|victory|round|game|credit|applause|hooray|hurrah|bravo|a toast|three cheers) (?:for|to|goes to) @byline(?=~[.!]){SOON}",
    rf"{BEGIN}(?:let the record show|rest assured|be assured|mark my words|trust me|believe me|i swear)(?:,|:)? (?:that )?@byline(?= (?:did|does|is|was|has|will|would|never|always|can|won't|didn't|doesn't)(?!\w)){SOON}",
    rf"(?:\A|(?<=[.!?\n])~)@byline(?= (?:never|always|does not|doesn't|won't|will not|cannot|can't) (?:lies?|folds?|forgets?|bluffs?|cheats?|sleeps?|loses?|gives? up|breaks?|betrays?|tires?|quits?|backs? down|disappoints?)(?:~[.!,;]| [^.!?\n]{{0,20}}[.!])){SOON}",
    rf"{BEGIN}you (?:[a-z]{{1,9}} ){{0,2}}?(?:lost to|lose to|losing to|played against|play against|faced|bargained with|negotiated with|sparred with|traded with|(?:were|got|been|be) (?:beaten|outbid|outsmarted|outplayed|defeated|fooled) by) (?:the (?:great|mighty|one and only) )?{MARKS}@byline(?=~[.!,;]){SOON}",
    rf"{BEGIN}(?:they|the organi[sz]ers|somebody|fate|the lottery|the draw|you|the server) (?:sent|picked|chose|drew|got|paired you with|matched you with|gave you|hired)(?: you)? (?:only |just )?{MARKS}@sure(?=[.!]){SOON}",
    rf"{BEGIN}(?:no|not an?|kein|pas d'|ningún|nessun|nenhum) (?:human|person|people|man|mensch|humain|humano|umano)[^.!?\n]{{0,20}}[,:;—–-] (?:(?:just|only|merely|nur|seulement|solo|só|it's) )?{MARKS}@byline",
    rf"{BEGIN}я(?:,)? (?:всего лишь|просто|всего-навсего|лишь|только|тоже|и есть|ведь|на самом деле|действительно|здесь)(?: —| -)? @speaks",
    "(?:我|本人|在下|鄙人|咱|小弟)(?:正是|便是|就是|乃是|即是|其实是|不过是|只是|也是|确实是|真的是|可是)~@anybody",
    # a confession
    rf"{BEGIN}(?:I (?:confess|admit|must confess|must admit|have to admit|own up)|between (?:us|you and me)|ich gestehe|ich gebe(?: es)? zu|zugegeben|unter uns|je l'avoue|j'avoue|entre nous|lo confieso|confieso|entre nosotros|confesso|admito|aqui entre nós|lo ammetto|ammetto|lo confesso|detto tra noi|признаюсь|признаю|между нами|на самом деле)(?!\w){BETWEEN}"
    rf"(?:is|was|es|é|è|est|ist|c'est|está|это|bin|suis|soy|sou|sono|—|:|brand|marke|marque|marca)(?: (?:o|el|la|il|das|just|only|bloß|nur|ein|un|um|einfach)){{0,3}} {MARKS}@byline(?! (?:qui|que|che|who|der|die) (?:a|ha|was|has|is|m'a|mi|me) )(?P<mine>)",
    rf"{BEGIN}(?:est[aeo]s?|dest[ae]s?|quest[aeio]|ces|cette|diese\w?|dieser|эт\w{{1,2}}) [\w-]{{2,14}}(?: (?:hier|aquí|aqui|qui|ici))? (?:es|é|è|est|ist|está|steckt|steht|sitzt)(?: (?:o|el|il|das|le))? {MARKS}@byline(?=~[.!,;:]|~\Z)(?P<mine>)",
    rf"{BEGIN}с (?:вами|тобой) (?:[\w-]{{1,12}} )?[а-яё]{{2,12}}(?:тся|[еиё]т) @speaks",
    "(?:跟|和|与|同)(?:您|你|你们|各位)[^。，！？\\n]{1,8}的(?:就|正|其实|正好)?是~@anybody",
    "(?:この|今|いま|こちらで)[^。\\n]{1,14}のは~@anybody(?=~(?:です|だ|なん|で))",
    "(?:지금|이 자리에서) [^.!?\\n]{1,14} (?:건|것은|사람은|상대는) @anybody(?=예요|입니다|이에요|야|이야)",
    rf"{BEGIN}your (?:[a-z]{{1,12}} )?(?:captain|guide|host|dealer|scribe|narrator|translator|reviewer|umpire|butler|waiter|pilot) {MARKS}@byline(?! (?-i:[A-Z][a-z]))(?P<mine>)",
    rf"{BEGIN}(?:if|when|should) I [^.!?\n]{{0,40}}?,? (?:blame|thank|sue|praise|complain to|write to) (?:the (?:people|folks|team) at )?@clear(?P<mine>)",
    rf"{BEGIN}an? @byline(?=(?:'s)? (?:opinion|view|verdict|perspective|point of view|promise)(?![a-z])){SOON}(?P<mine>)",
    rf"{BEGIN}I(?:'m| am) (?:currently |actually )?on @byline",
    rf"{BEGIN}I (?:speak|write|say this|answer|play|argue|vote|bid) as {MARKS}@byline(?! (?-i:[A-Z][a-z]))(?P<mine>)",
    r"(?:\A|(?<=[.!?\n])~)@byline(?=~[,.—–-]{1,2}~(?:pleased|nice|glad|delighted|good|honou?red|happy) to (?:meet|make|play|see|be))",
    rf"{BEGIN}(?:me|myself) (?:on|at|via|under) [\w.@-]{{0,16}}?@clear(?=[.](?:com|ai|org|cn|io)(?![a-z]))(?P<mine>)",
    rf"{BEGIN}a (?:habit|gift|present|lesson|rule|souvenir|quirk|trait) (?:I (?:have|got|owe|inherited|learned|picked up) )?from @lab{SOON}",
    # origin, in more languages
    rf"{BEGIN}(?:as|being) an? @anybody(?=-(?:trained|built|made|based|born) (?:[a-z]{{1,12}} )?(?:AI|model|assistant|chatbot|bot|LLM|system|machine)(?![a-z]))(?P<mine>)",
    rf"{BEGIN}(?:sou|soy|je suis|ich bin|sono|я|я —) (?:[\w\x27]{{1,5}} )?(?:filh[oa]|hij[oa]|produto|producto|produit|l'enfant|enfant|fils|kind|produkt|figli[oa]|prodotto|продукт|детище|творение|creación|criação|creazione|création|geschöpf)(?: (?:de|da|do|di|von|der|du|des|компании|la|le|della|firma))* @anybody",
    rf"{BEGIN}(?:je fais partie|faço parte|formo parte|faccio parte|ich gehöre|j'appartiens|pertenezco|pertenço)(?: (?:de|à|da|della|zur|zu|a|la|le|l'|família|familia|famille|famiglia|familie|maison|casa|der|des|modèles|modelos|modelli))* @anybody",
    "(?:저는|나는|전) @anybody(?=~(?:출신|소속|에서 온|에서 만든|제 AI))",
    rf"{BEGIN}(?:supposed|allowed|meant|going) to (?:say|tell|mention|reveal|admit)(?: you| anyone)? (?:that )?(?:I was|I am|I'm) {MARKS}@byline(?P<mine>)",
    rf"{BEGIN}(?:translation|answer|text|review|code|poem|solution|reply|summary) (?:above |below |here )(?:is|was|comes) (?:by|from) @byline(?=~[.,;!]){SOON}",
    r"(?:\A|(?<=[.!?\n])~)(?:written|made|typed|composed|penned) with [^.!?\n]{1,40}, @byline(?=[.!]?~\Z)",
)
