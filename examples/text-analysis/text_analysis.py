"""The plugin `text_analysis`: how readable a text is, and what it is about."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

import snowballstemmer

from palisade_guest import Context, Field, InvalidInput, ReadPath, tool

Language = Literal["english", "french", "german", "italian", "spanish"]

# The most frequent words of each language, which say nothing about a text.
STOP_WORDS = {
    "english": "a about all also an and any are as at be been but by can could did do does for from "
    "had has have he her his how i if in into is it its just like more most my no not of on one "
    "only or other our out over she should so some such than that the their them then there these "
    "they this those through to too up us was we were what when where which while who will with "
    "would you your",
    "french": "a au aux avec ce ces cette comme dans de des du elle en est et eux il ils je la le les "
    "leur lui mais me même mes moi mon ne nos notre nous on ou où par pas pour qu que qui sa se ses "
    "son sont sur ta te tes ton tu un une vos votre vous y été être",
    "german": "aber alle als am an auch auf aus bei bin bis da damit das dass dem den der des die dies "
    "doch du durch ein eine einem einen einer er es für hat ich ihr im in ist ja kann man mit nach "
    "nicht noch nur ob oder sein sich sie sind so über um und uns von vor war was wenn wer wie wir "
    "wird zu zum zur",
    "italian": "a ad al alla anche che chi ci con da dal del della di e ed è era gli ha i il in io la "
    "le lo ma mi ne nel nella noi non o per più quello questo se si sono su sul tra tu un una uno vi",
    "spanish": "a al algo como con de del desde donde el ella en entre era es esta este fue ha hay la "
    "las le lo los más me mi muy no nos o para pero por que qué se sin sobre su sus también te "
    "tiene todo un una uno y ya",
}
WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
SENTENCE_END = re.compile(r"[.!?…]+(?:\s|$)")


@dataclass
class Keyword:
    """A word and its other forms.

    Attributes:
        word: The most frequent form.
        count: How often any of its forms occurs.
        forms: All forms in the text.
    """

    word: str
    count: int
    forms: list[str]


@dataclass
class Analysis:
    """What a text is like.

    Attributes:
        reading_minutes: At 230 words a minute.
        words_per_sentence: Above 20, a text is hard to read.
        keywords: The most frequent words, each with all its forms.
    """

    words: int
    sentences: int
    distinct_words: int
    reading_minutes: float
    words_per_sentence: float
    keywords: list[Keyword]


@tool(side_effects="read", idempotent=True)
def analyse_text(
    path: ReadPath,
    ctx: Context,
    language: Language = "english",
    keywords: Annotated[int, Field(ge=0, le=50)] = 10,
) -> Analysis:
    """Measures how readable a text file is, and finds what it is about.

    Forms of one word count together: "running" and "runs" are one keyword.

    Args:
        path: A text file in UTF-8, such as Markdown.
        language: The language of the text.
        keywords: How many keywords to list.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("path", f"{path} is not text in UTF-8") from None
    words = WORD.findall(text)
    if not words:
        raise InvalidInput("path", f"{path} has no words")
    sentences = max(1, len(SENTENCE_END.findall(text)))
    return Analysis(
        words=len(words),
        sentences=sentences,
        distinct_words=len({word.lower() for word in words}),
        reading_minutes=round(len(words) / 230, 1),
        words_per_sentence=round(len(words) / sentences, 1),
        keywords=_keywords(words, language, keywords, ctx),
    )


def _keywords(words: list[str], language: str, most: int, ctx: Context) -> list[Keyword]:
    stop_words = set(STOP_WORDS[language].split())
    stemmer = snowballstemmer.stemmer(language)
    counts = Counter(word.lower() for word in words)
    forms: dict[str, Counter[str]] = {}
    for at, (word, count) in enumerate(counts.items()):
        if at % 1000 == 0:
            ctx.checkpoint()
            ctx.progress(at, len(counts), "finding the keywords")
        if len(word) > 2 and word not in stop_words:
            forms.setdefault(stemmer.stemWord(word), Counter())[word] = count
    ranked = sorted(forms.values(), key=lambda of: (-of.total(), min(of)))
    return [Keyword(of.most_common(1)[0][0], of.total(), sorted(of)) for of in ranked[:most]]
