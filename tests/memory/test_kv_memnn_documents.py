"""Documents as a key-value memory: forms of key, entities in plain text, what is learnt."""

import json
from pathlib import Path

import pytest
import torch
from app_runs import run, sets

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeEncoder, KnowledgeFolder
from mnemic.data.knowledge.format import KnowledgeDocument, KnowledgeError, parse_document, read_documents
from mnemic.data.knowledge.slots import (
    EntityMarker,
    KeyValuePair,
    extract_windows,
    make_center_pairs,
    make_sentence_pair,
    make_sentence_slots,
    make_title_pairs,
    make_window_pairs,
    make_window_slots,
)
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.predict import ask_knowledge_base
from mnemic.recipe import build, load_recipe
from mnemic.text import WordTokenizer
from mnemic.train.run import fit

WORDS = ["a", "film", "by", "[ada]", "with", "[bo]", "in", "it"]
BAT = KnowledgeDocument("The Bat", "The Bat was made by Ada Berg. It won. Ada and Bo Carr (1959) met.")
NAMES = ("The Bat", "Bat", "Ada Berg", "Ada", "Bo Carr", "1959", "It")
FORMS = ("facts", "sentences", "windows", "centres", "titles")


def folder(place: Path, *, kb: str | None = None) -> Path:
    """A folder of documents; what kb.txt would name, titles and right answers name, too."""
    documents = [
        {"title": "The Bat", "text": "Ada Berg made The Bat. It won a prize."},
        {"title": "The Owl", "text": "Bo Carr made The Owl. It won nothing."},
    ]
    lines = "".join(json.dumps(own) + "\n\n" for own in documents)
    (place / "documents.jsonl").write_text(lines, encoding="utf-8")
    for name in ("dev.txt", "test.txt"):
        asked = "who made [The Bat]\tAda Berg\nwho made [The Owl]\tBo Carr\n"
        (place / name).write_text(asked * 8, encoding="utf-8")
    if kb is not None:
        (place / "kb.txt").write_text(kb, encoding="utf-8")
    return place


# Forms of key --------------------------------------------------------------------------------


def test_a_window_is_the_words_around_an_entity() -> None:
    found = list(extract_windows(WORDS, {"[ada]", "[bo]"}, radius=2))
    assert [(own.words, own.center, own.start) for own in found] == [(WORDS[1:6], 2, 1), (WORDS[3:8], 2, 3)]
    assert [own.words for own in extract_windows(["[ada]"], {"[ada]"})] == [["[ada]"]]
    assert not list(extract_windows(WORDS, set()))


def test_what_each_form_of_key_is_found_by_and_gives() -> None:
    window = next(extract_windows(["by", "[ada]", "with"], {"[ada]"}))
    assert make_window_pairs(window, "[the bat]") == [KeyValuePair("by [ada] with", "[ada]")]
    assert make_center_pairs(window, "[the bat]") == [KeyValuePair("by >[ada] with", "[ada]")]
    assert make_title_pairs(window, "[the bat]") == [
        KeyValuePair("<window> by >[ada] with", "[ada]"),
        KeyValuePair("<title> by [ada] with", "[the bat]"),
    ]
    assert make_sentence_pair("Owls hunt.") == KeyValuePair("Owls hunt.", "Owls hunt.")


def test_a_centre_is_another_word_than_the_same_entity_elsewhere() -> None:
    """So the slot that gives what is asked about is not found by it, and neighbours differ."""
    source = GeneratedKnowledge(films=9, keys="centres")
    sets_of = KnowledgeEncoder(source, source.load().tokenizer)
    film = source.load_facts()[0].subject
    one = sets_of.tokenizer.id_of(f"[{film}]")
    found = sets_of.select(torch.tensor([[one]]))[0]
    assert len(found)
    given = sets_of.base.values[found, 0]
    keys = sets_of.base.keys[found]
    assert (keys == one).any(1).all()
    centred = sets_of.tokenizer.id_of(f">[{film}]")
    assert torch.equal((keys == centred).any(1), given == one)


# Entities in plain text ----------------------------------------------------------------------


def test_entities_are_marked_longest_first_and_as_they_are_spelled() -> None:
    marked = EntityMarker(NAMES).mark_entities(BAT).text
    assert marked == ("[The Bat] was made by [Ada Berg]. [It] won. [Ada] and [Bo Carr] ([1959]) met.")
    plain = KnowledgeDocument("x", "the bat made it; ADA BERG's batty owl")
    assert EntityMarker(NAMES).mark_entities(plain) == plain
    assert marked.replace("[", "").replace("]", "") == BAT.text


def test_a_slot_is_shown_as_the_documents_own_words() -> None:
    marked = EntityMarker(NAMES).mark_entities(BAT)
    entities = {f"[{name.lower()}]" for name in NAMES}
    words = WordTokenizer.from_texts([marked.text], extra=entities)
    told = list(make_window_slots(marked, entities, words, key_form="windows", radius=2))
    assert [own.pair.value for own in told[:2]] == ["[the bat]", "[ada berg]"]
    assert told[1].text == "The Bat: made by [Ada Berg]. [It] won → Ada Berg"
    for own in told:
        quote, _, given = own.text.removeprefix("The Bat: ").partition(" → ")
        assert quote in marked.text
        assert own.pair.value == f"[{given.lower()}]"
    (_, title), *_ = zip(*[make_window_slots(marked, entities, words, key_form="titles", radius=2)] * 2)
    assert title.pair.value == "[The Bat]"
    assert title.text.endswith(" → The Bat")
    said = list(make_sentence_slots(marked, entities, words))
    assert [own.text for own in said] == [
        "The Bat: [The Bat] was made by [Ada Berg].",
        "The Bat: [It] won.",
        "The Bat: [Ada] and [Bo Carr] ([1959]) met.",
    ]
    assert [own.pair.key for own in said] == [own.text.partition(": ")[2] for own in said]


@pytest.mark.parametrize("line", ["[1]", "{", '{"title": "A"}', '{"title": " ", "text": "B"}', "1"])
def test_a_malformed_document_names_file_and_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text(f'{{"title": "A", "text": "B"}}\n\n{line}\n', encoding="utf-8")
    with pytest.raises(KnowledgeError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f'{path}, line 3: expected {{"title": "…", "text": "…"}}')
    assert parse_document('{"title": " A ", "text": "B", "id": 3}') == KnowledgeDocument("A", "B")


# A base of documents -------------------------------------------------------------------------


@pytest.mark.parametrize("keys", FORMS[1:])
def test_only_entities_are_answers_and_every_one_can_be_reached(keys: str, tmp_path: Path) -> None:
    """Also where kb.txt is not there; its names are entities, too, where it is."""
    place = folder(tmp_path)
    source = {"kind": "knowledge", "folder": str(place), "keys": keys}
    data = build(DATASETS, source).load()
    known = [word for word, is_one in zip(data.tokenizer.vocabulary, data.test.entities) if is_one]
    assert known == ["[ada berg]", "[bo carr]", "[the bat]", "[the owl]"]
    assert data.test.num_unknown == data.test.num_unreachable == 0
    batch = data.test.batch(torch.tensor([0]))
    assert {data.tokenizer.vocabulary[one] for one in batch.candidates.tolist()} <= set(known)
    more = build(DATASETS, source | {"folder": str(folder(place, kb="prize|is_a|thing\n"))}).load()
    assert "[prize]" in more.tokenizer


def test_a_folder_without_documents_says_so(tmp_path: Path) -> None:
    (folder(tmp_path) / "documents.jsonl").unlink()
    with pytest.raises(KnowledgeError, match=r"documents\.jsonl where data\.keys is not 'facts'"):
        KnowledgeFolder(folder=str(tmp_path), keys="titles").load()
    with pytest.raises(KnowledgeError, match=r"data\.reach is a number of words from 1 on, not 0"):
        GeneratedKnowledge(films=9, keys="windows", reach=0).load()


@pytest.mark.parametrize(("keys", "most"), [("windows", 25.0), ("titles", 12.0)])
def test_a_base_of_documents_is_learnt(keys: str, most: float, tmp_path: Path) -> None:
    """Questions it never saw; chance is 99 % error, one entity of about a hundred and fifty."""
    small = ("model.width=128", "train.epochs=6", "train.batch=32", "train.validate=0")
    data = f'data={{kind="generated-knowledge", keys="{keys}"}}'
    list(fit(load_recipe("kv-memnn", [data, *small]), tmp_path / "run", device="cpu"))
    checkpoint = load_checkpoint(tmp_path / "run")
    source = GeneratedKnowledge(keys=keys)  # type: ignore[arg-type]
    assert compute_task_errors(checkpoint.network, source.load().test)[1] <= most
    fact = next(own for own in source.load_facts() if own.relation == "directed_by")
    answer = ask_knowledge_base(checkpoint, f"who directed [{fact.subject}]")
    assert answer.text == fact.object
    assert f"[{fact.object}] directed [{fact.subject}]" in answer.best_evidence(1)[0].text
    assert answer.item == "window"


def test_from_the_command_line(tmp_path: Path) -> None:
    options = sets('data={kind="generated-knowledge", films=20, keys="sentences"}', "train.steps=3")
    out = ("--out", tmp_path / "run", "--device", "cpu")
    assert run("train", "kv-memnn", *options, *out).code == 0
    fact, picture = GeneratedKnowledge(films=20).load_facts()[0], tmp_path / "read.svg"
    asked = ("story", "ask", "--model", tmp_path / "run", f"who directed [{fact.subject}]")
    seen = run(*asked, "--plot", picture)
    assert seen.code == 0, seen.err
    assert f"{fact.subject}: " in seen.out
    assert "How much of each sentence was read" in picture.read_text(encoding="utf-8")
    place = folder(tmp_path)
    other = ("evaluate", tmp_path / "run", "--data", place, "--device", "cpu", "--json")
    told = run(*other).json["data"]
    assert (told["kind"], told["keys"]) == ("knowledge", "sentences")
    strange = run("train", "kv-memnn", *options, *sets("data.keys=pages"), *out, "--fresh")
    assert "one of 'facts', 'sentences', 'windows', 'centres', 'titles'" in strange.err


def test_more_slots_than_the_memory_holds_are_refused(tmp_path: Path) -> None:
    """Or those of the rarest word, which come first, would be the first to be pushed out."""
    many = ("data={kind='generated-knowledge', slots=300}", "train.steps=1", "model.width=8")
    out = ("--out", tmp_path / "run", "--device", "cpu")
    refused = run("train", "kv-memnn", *sets(*many), *out)
    assert refused.code == 2
    assert "but the memory holds 200: set model.memory.slots=300, too" in refused.err
    assert run("train", "kv-memnn", *sets(*many, "model.memory.slots=300"), *out).code == 0
