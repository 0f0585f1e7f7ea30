"""``mnemic inspect --layers``: show how far each layer of an encoder moves a text's states."""

from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.cli.networks.load import find_encoder, load_network
from mnemic.cli.render.console import print_json, print_table
from mnemic.cli.render.plot_story import check_plot_path

if TYPE_CHECKING:
    from mnemic.evaluate.layer_transitions import TextTransitions


def inspect_layers(folders: list[Path], text: str, plot: Path | None) -> None:
    """Show how much each layer of some networks changes the states of a text."""
    check_plot_path(plot)
    transitions = {str(folder): measure_network(folder, text) for folder in folders}
    networks = [
        {"name": name, "tokens": measured.tokens, "layers": [layer._asdict() for layer in measured.layers]}
        for name, measured in transitions.items()
    ]
    print_json({"networks": networks, "plot": None if plot is None else str(plot)})
    if plot is not None:
        from mnemic.cli.render.plot_layers import plot_layer_transitions

        plot_layer_transitions({name: measured.layers for name, measured in transitions.items()}, plot)
    for name, measured in transitions.items():
        rows = [
            [str(layer.layer), f"{layer.distance:.3f}", f"{layer.cosine:.3f}", f"{layer.angle:.1f}"]
            for layer in measured.layers
        ]
        title = f"{name}, {measured.tokens:,} tokens"
        print_table([">layer", ">L2 distance", ">cosine", ">angle, °"], rows, title=title)


def measure_network(folder: Path, text: str) -> "TextTransitions":
    """Measure the layers of a checkpoint's encoder, or of a Hugging Face folder's."""
    from mnemic.encode import load_encoder
    from mnemic.encode.huggingface.read import CONFIG_FILE
    from mnemic.evaluate.layer_transitions import measure_text_transitions
    from mnemic.text import SubwordTokenizer

    if (folder / CONFIG_FILE).is_file():
        pretrained = load_encoder(folder)
        encoder, tokenizer = pretrained.encoder, pretrained.tokenizer
    else:
        checkpoint, _ = load_network(folder)
        encoder = find_encoder(checkpoint, folder)
        tokenizer = checkpoint.tokenizer if isinstance(checkpoint.tokenizer, SubwordTokenizer) else None
    if tokenizer is None:
        raise ValueError(f"{folder} has no tokenizer of subwords, so it cannot read a text")
    return measure_text_transitions(encoder, tokenizer, text)
