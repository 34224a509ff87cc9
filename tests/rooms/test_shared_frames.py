"""Frames that are convolved once give the features of whole pictures."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.rooms.made_walks import SMALL, made_walks
from wanderlearn.learners.protonet import ProtoNetConfig
from wanderlearn.learners.resnet12 import ResNet12, ResNet12Config
from wanderlearn.model import ModelConfig, build
from wanderlearn.rooms.world import Rooms
from wanderlearn.worlds.frames import Frames

CONFIG = ResNet12Config(
    image_size=12, in_channels=4, channels=(4, 6), pooling="attention", last_relu=False, scale=0.5
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def encoder(seed: int = 0, config: ResNet12Config = CONFIG) -> ResNet12:
    torch.manual_seed(seed)
    made = ResNet12(config)
    made.train()
    with torch.no_grad():  # averages that are not those of a new network
        for _ in range(3):
            made(torch.randn(5, 4, 12, 16))
    return made


def some_frames(seed: int, frames: int, of: list[int]) -> Frames:
    generator = torch.Generator().manual_seed(seed)
    masks = (torch.rand(len(of), 1, 12, 16, generator=generator) < 0.3).float()
    return Frames(torch.randn(frames, 3, 12, 16, generator=generator), masks, torch.tensor(of))


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 70), st.data())
def test_evaluation_is_the_same_frame_by_frame(seed: int, count: int, data: st.DataObject) -> None:
    of = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=90))
    made, frames = encoder().eval(), some_frames(seed, count, of)
    with torch.no_grad():
        torch.testing.assert_close(made(frames), made(frames.whole()), rtol=1e-4, atol=1e-5)


def test_training_is_the_same_if_no_frame_is_met_twice() -> None:
    one, other = encoder(), encoder()
    frames = some_frames(1, 7, [3, 0, 6, 1, 5, 2, 4])
    weights = torch.randn(7, CONFIG.feature_dim)
    for made, pictures in ((one, frames), (other, frames.whole())):
        (made(pictures) * weights).sum().backward()
    for (name, p), q in zip(one.named_parameters(), other.parameters(), strict=True):
        assert p.grad is not None
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-4, msg=name)
    for a, b in zip(one.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(a, b)


def test_in_training_a_frame_that_is_met_often_counts_once() -> None:
    """The k-th things of all frames, as whole pictures, have the statistics of the frames."""
    frames = some_frames(2, 5, [n for n in range(5) for _ in range(3)])
    shared, plain = encoder(), encoder()
    found: Tensor = shared(frames)
    for k in range(3):
        pictures = torch.cat([frames.rgb, frames.masks[k::3]], 1)
        torch.testing.assert_close(found[k::3], plain(pictures), rtol=1e-4, atol=1e-5)


def test_every_frame_is_convolved_once() -> None:
    sizes: list[int] = []
    made = encoder()
    made.blocks[0].register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    made(some_frames(3, 4, [0, 0, 1, 1, 1, 2, 3, 3]))
    assert sizes == [4]


def test_without_attention_the_mask_is_one_more_colour() -> None:
    config = ResNet12Config(image_size=12, in_channels=4, channels=(4, 6))
    made, frames = encoder(config=config).eval(), some_frames(4, 3, [2, 2, 0])
    with torch.no_grad():
        torch.testing.assert_close(made(frames), made(frames.whole()))


@pytest.mark.parametrize("evaluate_with", ["averages", "batch"])
def test_a_model_answers_to_frames_as_to_sequences_one_by_one(evaluate_with: str) -> None:
    """With the statistics of the batch, those of one sequence must not leak into another."""
    from dataclasses import replace

    config = replace(CONFIG, evaluate_with=evaluate_with)  # type: ignore[arg-type]
    torch.manual_seed(0)
    model = build(ModelConfig(config, ProtoNetConfig(features=config.feature_dim)))
    model.train()
    model.encoder(torch.randn(6, 4, 12, 16))
    model.eval()
    world = Rooms(made_walks(), SMALL)
    sequences = [world.meetings(0, i) for i in range(3)]
    with torch.no_grad():
        batch = world.batch(sequences)
        together = model(batch.seen, batch.given, batch.valid, world.slots)
        for n, m in enumerate(sequences):
            alone = world.batch([m])
            answers = model(alone.seen, alone.given, alone.valid, world.slots)
            torch.testing.assert_close(
                together.novelty[n, : len(m)], answers.novelty[0], rtol=1e-3, atol=1e-3
            )
            torch.testing.assert_close(together.scores[n, : len(m)], answers.scores[0], rtol=1e-3, atol=1e-3)


def test_frames_seen_by_several_sequences_are_there_once() -> None:
    world = Rooms(made_walks(walks=1), SMALL)
    batch = world.batch([world.meetings(0, i) for i in range(6)])
    assert batch.frames is not None
    distinct = {int(world.pictures.frame[p]) for i in range(6) for p in world.meetings(0, i).picture}
    assert len(batch.frames.rgb) == len(distinct)
    assert int(batch.valid.sum()) == len(batch.frames.of)


def test_frames_parted_are_the_same_pictures() -> None:
    frames = some_frames(5, 6, [5, 5, 1, 0, 1, 2, 2])
    parts = frames.parted([3, 0, 4])
    assert [len(part.rgb) for part in parts] == [2, 0, 3]
    torch.testing.assert_close(torch.cat([part.whole() for part in parts]), frames.whole())
