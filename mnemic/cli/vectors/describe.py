"""Describe word vectors: how they were made, and which words are near each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mnemic.cli.render.console import Styled, print_json, print_table, print_text
from mnemic.cli.render.format import format_bytes

if TYPE_CHECKING:
    from mnemic.checkpoint.vectors import VectorTable

MIN_RANK, MAX_SAMPLES, NUM_NEIGHBORS = 100, 8, 5  # the most frequent words are like no other
Neighbors: TypeAlias = dict[str, list[tuple[str, float]]]


def describe_vectors(folder: Path) -> None:
    """Print how the vectors of a folder were made, after every file was verified."""
    from mnemic.checkpoint.vectors import load_vectors

    table = load_vectors(folder)
    neighbors = list_neighbors(table)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    report = {
        "vectors": str(folder),
        "whole": True,  # or loading would have raised
        "words": len(table.words),
        "width": table.width,
        "card": table.card,
        "files": files,
        "neighbors": neighbors,
    }
    print_json(report)
    corpus, versions = table.card["corpus"], table.card["versions"]
    options = ", ".join(f"{name} {value}" for name, value in table.card["options"].items())
    facts = {
        "vectors": f"{len(table.words):,} words of width {table.width}, {format_bytes(sum(files.values()))}",
        "files": "whole: every SHA-256 is the card's",
        "kind": f"{table.card['kind']}: {options}",
        "trained on": f"{corpus['words']:,} words of {', '.join(corpus['files'])}",
        "seed": str(table.card["seed"]),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    print_text("\n".join(f"{name:<12} {value}" for name, value in facts.items()))
    print_neighbors(neighbors)


def list_neighbors(table: "VectorTable") -> Neighbors:
    """List the nearest words of some words, from frequent ones to rare ones."""
    rank = min(MIN_RANK, len(table.words) // 4)
    ranks: list[int] = []
    while rank < len(table.words) and len(ranks) < MAX_SAMPLES:
        ranks.append(rank)
        rank = 2 * rank + 1
    return {table.words[rank]: table.find_nearest(table.words[rank], NUM_NEIGHBORS) for rank in ranks}


def print_neighbors(neighbors: Neighbors) -> None:
    """Print words beside their nearest ones, with cosines."""
    rows: list[list[Any] | None] = [
        [Styled(word, "bold"), ", ".join(f"{neighbor} {cosine:.2f}" for neighbor, cosine in nearest)]
        for word, nearest in neighbors.items()
    ]
    print_table(["word", "nearest by cosine"], rows)
