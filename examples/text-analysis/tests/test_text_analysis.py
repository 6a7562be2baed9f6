"""Tests of the tool, without a sandbox."""

import pytest
from text_analysis import analyse_text

from palisade_guest import Cancelled, InvalidInput, NotFound
from palisade_guest.testing import call

TEXT = "The runner runs. She was running: nobody runs like her! Rivers run, too."


def analyse(text: str | bytes, **options):
    return call(analyse_text, {"path": "a.md", **options}, files={"a.md": text}).json


def test_forms_of_a_word_are_one_keyword():
    first = analyse(TEXT)["keywords"][0]
    assert first == {"word": "runs", "count": 4, "forms": ["run", "running", "runs"]}


def test_text_is_measured():
    result = analyse(TEXT)
    assert (result["words"], result["sentences"], result["words_per_sentence"]) == (13, 3, 4.3)


def test_language_decides_about_words():
    german = analyse("Die Häuser und das Haus. Des Hauses Tür.", language="german")
    assert german["keywords"][0]["forms"] == ["haus", "hauses", "häuser"]


def test_keywords_are_limited():
    assert analyse(TEXT, keywords=0)["keywords"] == []
    with pytest.raises(InvalidInput, match="at most 50"):
        analyse(TEXT, keywords=51)


def test_file_without_a_text_is_refused():
    with pytest.raises(InvalidInput, match="not text in UTF-8"):
        analyse(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="has no words"):
        analyse("1 2 3")
    with pytest.raises(NotFound):
        call(analyse_text, {"path": "absent"})


def test_cancelled_call_stops():
    with pytest.raises(Cancelled):
        call(analyse_text, {"path": "a.md"}, files={"a.md": TEXT}, cancel_after=0)
