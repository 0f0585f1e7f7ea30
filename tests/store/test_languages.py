"""Languages that a network does not know: words alone find, and clauses answer."""

from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest

from mnemic import Memory
from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.store.answer.clauses import split_clauses, strip_question
from mnemic.store.contract import Vectors
from mnemic.store.retrieve.embedders import HashedNgrams
from mnemic.store.retrieve.languages import compute_known_share, embed_known_passages, knows_language
from mnemic.store.retrieve.query_words import extract_words, find_words, split_unknown_words
from mnemic.text import load_tokenizer
from mnemic.text.sentences import Span
from mnemic.text.tokenizers.trainers import train_byte_bpe, train_wordpiece

KNOWN = (
    "When does the lease end?",
    "IBAN",
    "PPP, XKCD?",
    "2019?",
    "What is 北京?",
    "Wofür waren die 320 Euro für Größe und Länge?",
    "Où est la clé du café à côté de l'hôtel ?",
    "¿Dónde está la llave del año pasado?",
)
UNKNOWN = (
    "中国的首都在哪里？",
    "火星上有水吗？",
    "iPhone手机是什么时候发布的？",
    "蒙古為在哪一年攻打屈出律的西遼政權?",
    "Когда заканчивается договор аренды?",
    "契約はいつ終わりますか",
    "임대 계약은 언제 끝납니까?",
    "Πότε λήγει η μίσθωση;",
    "متى ينتهي عقد الإيجار؟",
    "สัญญาเช่าสิ้นสุดเมื่อใด",
)


class EnglishEmbedder(HashedNgrams):
    """Hashed words with the vocabulary of the shipped reader; it refuses Chinese."""

    tokenizer = load_tokenizer(WEIGHTS / "reader")

    def embed(self, texts: Sequence[str]) -> Vectors:
        assert all("的" not in text for text in texts), "Chinese was embedded"
        return super().embed(texts)


@pytest.mark.parametrize("text", [*KNOWN, *UNKNOWN])
def test_a_vocabulary_says_which_languages_a_network_knows(text: str) -> None:
    assert knows_language(EnglishEmbedder(), text) == (text in KNOWN)
    assert knows_language(HashedNgrams(), text)  # without a vocabulary, all texts are alike


def test_a_chinese_vocabulary_knows_chinese() -> None:
    characters = "".join(chr(number) for number in range(0x4E00, 0x9FA6))
    chinese = train_wordpiece([" ".join(characters)], vocab=30_000)
    assert compute_known_share(chinese, UNKNOWN[0]) == 1.0
    byte_pieces = train_byte_bpe(["The key is under the mat."], vocab=300)
    assert compute_known_share(byte_pieces, UNKNOWN[0]) == 0.0


def test_passages_in_another_language_have_no_vector() -> None:
    embeddings = embed_known_passages(EnglishEmbedder(), ["北京是中国的首都。", "The key is here.", "长城的北边。"])
    assert [bool(embedding.vector.any()) for embedding in embeddings] == [False, True, False]
    numpy.testing.assert_array_equal(embeddings[1].vector, EnglishEmbedder().embed(["The key is here."])[0])
    assert embed_known_passages(EnglishEmbedder(), []) == []


def test_chinese_is_found_by_words_and_answered_with_a_clause(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder=EnglishEmbedder()) as memory:
        memory.note("北京是中国的首都。长城的总长很长，全长21196.18公里。")
        memory.note("图书馆的馆长是王小明，副馆长是李大为，建于1998年3月。")
        memory.note("Договор аренды заканчивается 30 июня, арендная плата составляет 700 евро.")
        memory.note("The lease ends on 30 June.")
        hits = memory.search("中国的首都是哪里？")
        assert [hit.text[:2] for hit in hits] == ["北京"]  # no passage without one of its words
        expected = {
            "中国的首都是哪里？": "北京",
            "长城全长多少公里？": "21196.18公里",
            "图书馆的馆长是谁？": "王小明",
            "图书馆建于哪一年？": "1998年3月",
            "Когда заканчивается договор аренды?": "30 июня",
        }
        for question, text in expected.items():
            answer = memory.ask(question)
            assert (answer.text, answer.kind) == (text, "span")
            assert answer.evidence[0].passage[answer.start : answer.end] == text
            assert [note.split(":")[0] for note in answer.notes] == [
                "the embedder does not know this language",
                "the reader does not know this language",
            ]
        for question in ("德国的总理是谁？", "图书馆有多少本日文的书和杂志？", "火星上有水吗？"):
            assert not memory.ask(question).has_answer  # weak matches
        assert memory.ask("图书馆有多少本日文的书和杂志？", confidence=0.0).has_answer
        assert memory.ask("When does the lease end?").notes == ()


def test_clauses_are_cut_at_marks_but_not_inside_numbers() -> None:
    text = "面积12,345.6平方公里，人口（2010年）：3:1；《红楼梦》、《西游记》。"
    clauses = [text[slice(*clause)] for clause in split_clauses(text, Span(0, len(text)))]
    assert clauses == ["面积12,345.6平方公里", "人口", "2010年", "3:1", "《红楼梦》、《西游记》"]


def test_words_of_the_question_are_no_part_of_the_answer() -> None:
    text = "他的作品是《红楼梦》和《西游记》"
    span = strip_question(text, Span(0, len(text)), {"作品"})
    assert text[slice(*span)] == "《红楼梦》和《西游记》"
    assert strip_question("他的作品", Span(0, 4), {"作品"}) == (0, 0)


def test_an_unknown_chinese_word_is_read_by_its_parts() -> None:
    words = extract_words("刘胜死后 lease")
    assert words == ["刘胜死", "后", "lease"]
    assert split_unknown_words(words, lambda word: False) == ["刘胜死", "后", "lease", "刘胜", "胜死"]
    assert split_unknown_words(words, lambda word: True) == words
    assert [text[slice(*span)] for text in ["刘胜死后 a-b"] for span in find_words(text)] == ["刘胜死", "后", "a", "b"]
