"""Rows of the table of pictures: encoders compared, alignment, and several tasks at once."""

from dataclasses import replace

from mnemic.checkpoint.folder import Checkpoint
from mnemic.encode.pictures import merge_repmlp
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.reproduce.pictures.rows import ROWS, Metrics, PictureRow, load_scenes, measure_captions

CAPTION_EPOCHS = "train.epochs=6"  # of encoders that are compared by captions
# Encoders by name: as in the digits' recipe, and for scenes.
DIGIT_ENCODERS = {
    "conv": '{kind="conv", halvings=2}',
    "patches": '{kind="patches", patch=2}',
    "external": '{kind="patches", patch=2, stack={kind="encoder", norm="pre", attention={kind="external", slots=16}}}',
    "mixer": '{kind="mixer", patch=2}',
    "repmlp": '{kind="repmlp", patch=1, tile=4, groups=4}',
}
SCENE_ENCODERS = {
    "conv": '{kind="conv"}',
    "patches": '{kind="patches"}',
    "mixer": '{kind="mixer"}',
    "repmlp": '{kind="repmlp", patch=8, tile=6}',
}


def measure_test(checkpoint: Checkpoint) -> Metrics:
    """Compute the metrics of a network on its test set."""
    return compute_metrics(checkpoint.network, load_scenes(checkpoint))


def measure_merged(checkpoint: Checkpoint) -> Metrics:
    """Measure the accuracy once more after RepMLP's layers are merged."""
    merged = replace(checkpoint, network=merge_repmlp(checkpoint.network))
    return {"accuracy, merged": measure_test(merged)["accuracy"]}


def list_encoder_rows() -> dict[str, PictureRow]:
    """List the rows, by name."""
    digits = {
        f"digits, {name}": PictureRow("mixer", (f"model.encode={spec}",), [measure_test, *extra])
        for name, spec in DIGIT_ENCODERS.items()
        for extra in [[measure_merged] if name == "repmlp" else []]
    }
    captions = {
        f"captions, {name}": PictureRow(
            "show-attend-tell", (f"model.encode={spec}", CAPTION_EPOCHS), [measure_captions]
        )
        for name, spec in SCENE_ENCODERS.items()
    }
    networks = {
        "alignment": PictureRow("alignment", (), [measure_test]),
        "unit, shared": PictureRow("unit", (), [measure_test]),
        "unit, separate": PictureRow("unit", ("model.respond.shared=false",), [measure_test]),
    }
    return {**networks, **digits, **captions}


ALL_ROWS = {**ROWS, **list_encoder_rows()}
