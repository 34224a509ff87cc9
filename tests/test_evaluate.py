"""What an evaluation gathers, what its result says, and how two of them are compared."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.tiny_world import tiny_pictures
from wanderlearn.answers import LONG_AGO, METRICS, SavedAnswers, compare, read_answers, write_answers
from wanderlearn.errors import WanderError
from wanderlearn.evaluate import Origin, evaluate, evaluate_with_answers, gather
from wanderlearn.learners.answer import UNUSED, Answers
from wanderlearn.metrics import Record, ap
from wanderlearn.metrics import summary as counted
from wanderlearn.worlds import NEW, UNLABELED, Manifest, Roaming, RoamingConfig, draw_manifest

CONFIG = RoamingConfig(environments=2, classes=8, length=24, per_class=4)


@dataclass(frozen=True)
class NearestConfig:
    width: int = 6
    trick: str = "none"


class Nearest(nn.Module):
    """A small stand-in for a trained model: nearest labelled example in a random projection."""

    def __init__(self, config: NearestConfig | None = None) -> None:
        super().__init__()
        self.config = config or NearestConfig()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.project = nn.Linear(28 * 28, self.config.width)
        self.normalise = nn.BatchNorm1d(self.config.width)
        self.frozen = nn.Dropout().eval()
        self.seen: list[tuple[bool, bool, int]] = []

    def forward(self, images: Tensor, given: Tensor, valid: Tensor, slots: int) -> Answers:
        self.seen.append((self.training, torch.is_inference_mode_enabled(), len(images)))
        B, T = given.shape
        features = self.normalise(self.project(images.flatten(2).flatten(0, 1))).view(B, T, -1)
        distance = torch.cdist(features, features)  # [B, T, T]
        scores = torch.full((B, T, slots), UNUSED)
        for b in range(B):
            for t in range(int(valid[b].sum())):
                for s in range(t):
                    if (k := int(given[b, s])) != UNLABELED:
                        scores[b, t, k] = torch.maximum(scores[b, t, k], -distance[b, t, s])
        novelty = -scores.amax(-1) - 3
        if self.config.trick == "ties":
            scores = torch.zeros_like(scores)
        return Answers(scores, novelty)


@pytest.fixture(scope="module")
def world() -> Roaming:
    return Roaming(tiny_pictures("test"), replace(CONFIG, semi=True))


@pytest.fixture(scope="module")
def manifest(world: Roaming) -> Manifest:
    return draw_manifest(world, seed=3, count=7)


@pytest.fixture(scope="module")
def record(world: Roaming, manifest: Manifest) -> Record:
    return gather(Nearest(), world, manifest.sequences, batch_size=3)


def test_every_answer_stands_beside_its_own_sequence(record: Record, manifest: Manifest) -> None:
    assert len(record) == 7
    for n, m in enumerate(manifest.sequences):
        assert record.valid[n].sum() == len(m)
        assert record.valid[n, : len(m)].all()
        for name in ("truth", "given", "target"):
            np.testing.assert_array_equal(getattr(record, name)[n, : len(m)], getattr(m, name))


def test_answers_are_those_of_the_model_on_the_sequence_alone(
    record: Record, world: Roaming, manifest: Manifest
) -> None:
    model = Nearest().eval()
    for n, m in enumerate(manifest.sequences):
        batch = world.batch([m])
        with torch.no_grad():
            answers = model(batch.images, batch.given, batch.valid, world.slots)
        scores = answers.scores[0].double().numpy()
        best = scores.max(axis=1)
        for t in range(len(m)):
            assert record.predicted[n, t] == list(scores[t]).index(best[t])  # the first of the highest
            sure = best[t] - np.log(np.exp(scores[t] - best[t]).sum()) - best[t]
            assert record.confidence[n, t] == pytest.approx(sure, abs=1e-5)
        np.testing.assert_allclose(record.novelty[n, : len(m)], answers.novelty[0].numpy(), atol=1e-5)


@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_the_figures_do_not_depend_on_the_batch_size(
    record: Record, world: Roaming, manifest: Manifest, batch_size: int
) -> None:
    other = gather(Nearest(), world, manifest.sequences, batch_size)
    np.testing.assert_array_equal(other.valid, record.valid)
    np.testing.assert_array_equal(other.predicted[other.valid], record.predicted[record.valid])
    for name in ("novelty", "confidence"):
        found, expected = getattr(other, name)[other.valid], getattr(record, name)[record.valid]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert counted(other)["ap"] == pytest.approx(counted(record)["ap"], abs=1e-6)


def test_equal_scores_go_to_the_lowest_slot(world: Roaming, manifest: Manifest) -> None:
    tied = gather(Nearest(NearestConfig(trick="ties")), world, manifest.sequences)
    assert (tied.predicted == 0).all()
    np.testing.assert_allclose(tied.confidence[tied.valid], -np.log(8), rtol=1e-6)


def test_the_model_is_put_back_as_it_was(world: Roaming, manifest: Manifest) -> None:
    model = Nearest().train()
    model.frozen.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gather(model, world, manifest.sequences[:4], batch_size=3)
    assert model.seen == [(False, True, 3), (False, True, 1)]  # evaluation mode, inference mode, both batches
    assert model.training
    assert model.normalise.training
    assert not model.frozen.training  # frozen on purpose, and still
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_model_is_put_back_even_when_it_fails(world: Roaming, manifest: Manifest) -> None:
    class Broken(Nearest):
        def forward(self, images: Tensor, given: Tensor, valid: Tensor, slots: int) -> Answers:
            raise RuntimeError("no")

    model = Broken().train()
    with pytest.raises(RuntimeError, match="no"):
        gather(model, world, manifest.sequences)
    assert model.training


def test_no_sequences_and_no_batch_are_refused(world: Roaming, manifest: Manifest) -> None:
    with pytest.raises(WanderError, match="no sequence was evaluated"):
        gather(Nearest(), world, [])
    with pytest.raises(WanderError, match="at least 1, not 0"):
        gather(Nearest(), world, manifest.sequences, 0)


def test_the_result_says_everything_it_depends_on(world: Roaming, manifest: Manifest, record: Record) -> None:
    origin = Origin(preset="small", learner="nearest", weights_sha256="ab" * 32, train={"steps": 5})
    result = evaluate(Nearest(), world, manifest, 3, origin=origin)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["metrics"] == counted(record)
    assert result["manifest_sha256"] == manifest.sha256
    assert result["weights_sha256"] == "ab" * 32
    assert result["parameters"] == 28 * 28 * 6 + 6 + 2 * 6
    assert result["seconds"] == pytest.approx(7 * result["seconds_per_sequence"])
    expected = {
        "format": 1, "kind": "evaluation", "preset": "small", "learner": "nearest", "world": "tiny",
        "split": "test", "semi": True, "shuffle": False, "sequences": 7, "seed": 3, "train": {"steps": 5},
        "config": {"kind": "nearest", "width": 6, "trick": "none"}, "threads": torch.get_num_threads(),
        "processes": 1,
    }  # fmt: skip
    assert {name: result[name] for name in expected} == expected
    assert result.keys() - expected.keys() == {
        "manifest_sha256", "weights_sha256", "commit", "version", "python", "torch", "seconds",
        "seconds_per_sequence", "parameters", "metrics",
    }  # fmt: skip


def test_a_manifest_of_another_world_is_refused(manifest: Manifest, world: Roaming) -> None:
    with pytest.raises(WanderError, match="not drawn from this world"):
        evaluate(Nearest(), Roaming(world.pictures, CONFIG), manifest)
    with pytest.raises(WanderError, match=r"of tiny/test, this is tiny/val"):
        evaluate(Nearest(), Roaming(tiny_pictures("val", per_class=9), world.config), manifest)


def test_answers_are_read_as_written(world: Roaming, manifest: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "answers.npz"
    result, answers = evaluate_with_answers(Nearest(), world, manifest, 3, origin=Origin(preset="small"))
    write_answers(path, answers)
    saved = read_answers(path)
    assert (saved.manifest_sha256, saved.name) == (manifest.sha256, "small")
    assert counted(saved.record) == result["metrics"]
    with np.load(path, allow_pickle=False) as file:
        assert {"novelty", "predicted", "confidence"} <= set(file.files)


def test_a_learner_compared_with_itself_does_not_differ(record: Record) -> None:
    saved = SavedAnswers("a" * 64, "nearest", record)
    for metric in METRICS:
        found = compare(saved, saved, metric, resamples=20)
        asked = metric not in LONG_AGO  # in so short sequences nothing is that long ago
        assert (found["difference"], found["low"], found["high"]) == ((0, 0, 0) if asked else (None,) * 3)


def test_a_better_learner_wins_by_the_difference_of_the_figures(
    record: Record, world: Roaming, manifest: Manifest
) -> None:
    right = replace(record, predicted=record.truth, novelty=np.where(record.target == NEW, 1.0, -1.0))
    found = compare(SavedAnswers("m", "oracle", right), SavedAnswers("m", "nearest", record), resamples=50)
    assert found["difference"] == pytest.approx(100 * (ap(right) - ap(record)))
    assert found["first"] - found["second"] == pytest.approx(found["difference"])
    assert 0 < found["low"] <= found["difference"] <= found["high"]
    assert (found["metric"], found["against"], found["sequences"]) == ("ap", "nearest", 7)
    back = compare(SavedAnswers("m", "nearest", record), SavedAnswers("m", "oracle", right), resamples=50)
    assert back["difference"] == -found["difference"]


def test_what_cannot_be_compared_says_why(record: Record) -> None:
    nothing_known = replace(record, target=np.full_like(record.target, NEW))
    saved = SavedAnswers("m", "nearest", nothing_known)
    found = compare(saved, saved, resamples=5)
    assert found["difference"] is None
    assert "NaN" in found["reason"]
    assert json.dumps(found, allow_nan=False)


def test_answers_to_different_manifests_are_not_compared(record: Record) -> None:
    with pytest.raises(WanderError, match="different sequences: one met manifest a, two met b"):
        compare(SavedAnswers("a", "one", record), SavedAnswers("b", "two", record))
    with pytest.raises(WanderError, match="no metric 'f1'"):
        compare(SavedAnswers("a", "one", record), SavedAnswers("a", "two", record), "f1")


def test_what_is_no_answers_file_is_refused_in_words(tmp_path: Path, record: Record) -> None:
    with pytest.raises(WanderError, match="no answers at"):
        read_answers(tmp_path / "none.npz")
    whole = tmp_path / "whole.npz"
    write_answers(whole, SavedAnswers("m", "nearest", record))
    broken = tmp_path / "broken.npz"
    broken.write_bytes(whole.read_bytes()[:200])
    with pytest.raises(WanderError, match="does not hold whole answers"):
        read_answers(broken)
    np.savez(tmp_path / "other.npz", novelty=np.zeros(3))
    with pytest.raises(WanderError, match="does not hold whole answers"):
        read_answers(tmp_path / "other.npz")
