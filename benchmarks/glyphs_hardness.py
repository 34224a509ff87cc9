"""Is the procedural world about as hard as Omniglot? Two simple learners on both, and both side by side.

    python benchmarks/glyphs_hardness.py                    # about five minutes on one core; needs Omniglot
    python benchmarks/glyphs_hardness.py --encoder-steps 0  # raw pixels only, seconds

Writes results/glyphs-hardness.json, the table of docs/glyphs.md and docs/images/glyphs-and-omniglot.png.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
import tyro
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor, nn

from wanderlearn.evaluate import gather
from wanderlearn.learners.answer import UNUSED, Answers
from wanderlearn.learners.encoders import Conv4
from wanderlearn.metrics import summary
from wanderlearn.pictures.collection import SPLITS, Pictures
from wanderlearn.pictures.glyphs import CHARACTERS, draw_alphabet
from wanderlearn.pictures.glyphs import VERSION as GLYPHS_VERSION
from wanderlearn.progress import track
from wanderlearn.results import commit, fill, markdown_table, write_result
from wanderlearn.worlds import Roaming, RoamingConfig, draw_manifest, open_pictures

ROOT = Path(__file__).parent.parent
WORLDS = ("omniglot", "glyphs")
ALLOWED = 8.0  # points of AP


@dataclass(frozen=True)
class Config:
    """What is measured."""

    sequences: int = 300
    """Test sequences of each world."""
    encoder_steps: int = 600
    """Steps of training of the encoder, one sequence each; 0 leaves it out."""
    seed: int = 0
    """Seed of the sequences and of the encoder."""


class NearestPrototype(nn.Module):
    """Known by cosine to the mean of the items told so far; new by the lack of it. Learns nothing else."""

    def __init__(self, encode: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.encode = encode

    def forward(self, images: Tensor, given: Tensor, valid: Tensor, slots: int) -> Answers:
        B, T = given.shape
        features = self.encode(images.flatten(0, 1)).view(B, T, -1)  # [B, T, D]
        unit = F.normalize(features, dim=-1)
        sums = features.new_zeros(B, slots, features.shape[-1])  # a mean has the direction of its sum
        seen = torch.zeros(B, slots, dtype=torch.bool)
        scores, novelty = [], []
        for t in range(T):
            cosine = (F.normalize(sums, dim=-1) @ unit[:, t, :, None])[..., 0]  # [B, K]
            novelty.append(-cosine.masked_fill(~seen, -1.0).max(-1).values)
            scores.append(cosine.masked_fill(~seen, UNUSED))
            told = F.one_hot(given[:, t].clamp_min(0), slots).bool() & (given[:, t, None] >= 0)  # [B, K]
            sums = sums + told[..., None] * features[:, t, None]
            seen = seen | told
        return Answers(scores=torch.stack(scores, 1), novelty=torch.stack(novelty, 1))


def pixels(images: Tensor) -> Tensor:
    """Grey values from 0 (paper) to 1 (ink), so that empty paper has no say in a cosine."""
    return (images.flatten(1) + 1) / 2


def trained_encoder(world: Roaming, steps: int, seed: int) -> nn.Module:
    """A Conv4 that has learned to tell the classes of a training sequence apart, by their prototypes.

    Far from converged: it is a yardstick of some minutes, the same for both worlds, not a result.
    """
    torch.manual_seed(seed)
    encoder = Conv4()
    optimizer = torch.optim.Adam(encoder.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
    for step in track(range(steps), f"training on {world.pictures.name}", steps):
        batch = world.batch([world.meetings(seed, step)])
        member = F.one_hot(batch.truth[0]).float()  # [T, K]
        features = encoder(batch.images[0])  # [T, D]
        sums = member.t() @ features  # [K, D]
        others = member @ sums - features  # [T, D] of the same class without the item itself
        unit = F.normalize(features, dim=-1)
        own = (unit * F.normalize(others, dim=-1)).sum(-1, keepdim=True)  # [T, 1]
        cosine = torch.where(member.bool(), own, unit @ F.normalize(sums, dim=-1).t())  # [T, K]
        repeated = (member @ member.sum(0)) > 1
        loss = F.cross_entropy(15 * cosine[repeated], batch.truth[0][repeated])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return encoder.eval()


def measure(config: Config) -> dict[str, Any]:
    """Every learner on every world."""
    start = time.perf_counter()
    drawing = _drawing()
    rows = []
    for name in WORLDS:
        test = open_pictures(name, "test")
        occluded = Roaming(test)
        rows.append(_row(name, "raw pixels", occluded, NearestPrototype(pixels), config))
        clear = Roaming(test, RoamingConfig(occlusion=0.0))
        rows.append(_row(name, "raw pixels, no occlusion", clear, NearestPrototype(pixels), config))
        if config.encoder_steps:
            began = time.perf_counter()
            encoder = trained_encoder(
                Roaming(open_pictures(name, "train")), config.encoder_steps, config.seed
            )
            taken = time.perf_counter() - began
            row = _row(name, "Conv4, briefly trained", occluded, NearestPrototype(encoder), config)
            rows.append(row | {"training_seconds": taken})
    return {
        "kind": "glyphs-hardness",
        "commit": commit(),
        "config": asdict(config),
        "glyphs_version": GLYPHS_VERSION,
        "glyphs_seed": 0,
        "allowed_difference": ALLOWED,
        "threads": torch.get_num_threads(),
        "drawing": drawing,
        "seconds": time.perf_counter() - start,
        "rows": rows,
    }


def _row(name: str, features: str, world: Roaming, model: nn.Module, config: Config) -> dict[str, Any]:
    start = time.perf_counter()
    manifest = draw_manifest(world, config.seed, config.sequences)
    figures = summary(gather(model, world, manifest.sequences, progress=True))
    return {
        "world": name,
        "features": features,
        "pictures_sha256": world.pictures.digest,
        "manifest_sha256": manifest.sha256,
        "ap": figures["ap"],
        "known_accuracy": figures["known_accuracy"],
        "seconds": time.perf_counter() - start,
    }


def _drawing() -> dict[str, float]:
    """How long it takes to draw everything when nothing is cached: one core's work, and the clock's."""
    work, clock = time.process_time(), time.perf_counter()
    for alphabet, count in enumerate(count for split in SPLITS for count in CHARACTERS[split]):
        draw_alphabet(alphabet, count)
    return {"processor_seconds": time.process_time() - work, "seconds": time.perf_counter() - clock}


def table(result: dict[str, Any]) -> str:
    """The figures as markdown."""
    rows = []
    kinds = list(dict.fromkeys(row["features"] for row in result["rows"]))
    for kind in kinds:
        omniglot, glyphs = (
            next(r for r in result["rows"] if (r["world"], r["features"]) == (name, kind)) for name in WORLDS
        )
        difference = f"{glyphs['ap'] - omniglot['ap']:+.1f}"
        accuracy = [f"{row['known_accuracy']:.1f}" for row in (omniglot, glyphs)]
        rows.append([kind, f"{omniglot['ap']:.1f}", f"{glyphs['ap']:.1f}", difference, *accuracy])
    columns = ["features", "AP Omniglot", "AP glyphs", "difference", "accuracy Omniglot", "accuracy glyphs"]
    config = result["config"]
    note = (
        f"{config['sequences']} supervised test sequences each, seed {config['seed']}; accuracy is that on "
        f"known classes, in percent. The encoder was trained on {config['encoder_steps']} sequences of the "
        f"world's own training alphabets. Drawing all glyphs took "
        f"{result['drawing']['processor_seconds']:.1f} s of one core."
    )
    return f"{markdown_table(columns, rows)}\n\n{note}"


def sheet(
    collections: dict[str, Pictures], alphabets: int = 8, characters: int = 5, drawers: int = 8
) -> Image.Image:
    """The worlds side by side: blocks are alphabets, rows characters, columns drawers."""
    scale, gap, head = 2, 12, 40
    columns = 2
    panels = {}
    for name, pictures in collections.items():
        blocks = [_block(pictures, f, characters, drawers) for f in range(alphabets)]
        height, width = blocks[0].shape
        lines = alphabets // columns
        panel = np.full((lines * (height + gap) - gap, columns * (width + gap) - gap), 255, dtype=np.uint8)
        for n, block in enumerate(blocks):
            top, left = n // columns * (height + gap), n % columns * (width + gap)
            panel[top : top + height, left : left + width] = block
        panels[name] = Image.fromarray(panel).resize((panel.shape[1] * scale, panel.shape[0] * scale), 0)
    some = next(iter(panels.values()))
    between = 4 * gap
    size = (len(panels) * (some.width + between), some.height + head + between)
    page = Image.new("L", size, 255)
    draw = ImageDraw.Draw(page)
    for n, (name, drawn) in enumerate(panels.items()):
        left = between // 2 + n * (some.width + between)
        draw.text((left, 12), name, fill=0, font=ImageFont.load_default(26))
        page.paste(drawn, (left, head + between // 4))
    return page


def _block(pictures: Pictures, family: int, characters: int, drawers: int) -> npt.NDArray[np.uint8]:
    """Some characters of one family, upright, by the first drawers."""
    upright = np.flatnonzero(pictures.family == family)[3::4]  # the fourth class of a character is not turned
    chosen = upright[np.linspace(0, len(upright) - 1, characters).astype(int)]
    rows = pictures.images[pictures.first[chosen][:, None] + np.arange(drawers), 0]
    framed = np.pad(rows, ((0, 0), (0, 0), (1, 0), (1, 0)), constant_values=70)
    block: npt.NDArray[np.uint8] = framed.transpose(0, 2, 1, 3).reshape(characters * 29, drawers * 29)
    return block


def main(config: Config) -> None:
    torch.set_num_threads(1)
    result = measure(config)
    write_result(ROOT / "results/glyphs-hardness.json", result)
    fill(ROOT / "docs/glyphs.md", "glyphs-hardness", table(result))
    images = ROOT / "docs/images"
    images.mkdir(parents=True, exist_ok=True)
    collections = {name: open_pictures(name, "test") for name in WORLDS}
    sheet({"Omniglot": collections["omniglot"], "glyphs": collections["glyphs"]}).save(
        images / "glyphs-and-omniglot.png", optimize=True
    )
    print(table(result))


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
