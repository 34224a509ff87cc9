"""An exported model answers and remembers as the learner does, wherever the graph is run."""

from typing import Any

import numpy as np
import onnx
import pytest
import torch

from tests.exported_models import KINDS, MORE_KINDS, SIDE, SLOTS, made, model_of
from wanderlearn import export
from wanderlearn.errors import WanderError
from wanderlearn.export import export_model, parity
from wanderlearn.export.graphs import OPSETS
from wanderlearn.export.parity import Life, difference, random_life
from wanderlearn.learners.answer import CERTAINLY_NEW, UNUSED, Answers
from wanderlearn.learners.offline import OfflineConfig
from wanderlearn.learners.state import tensors_of_state
from wanderlearn.model import ModelConfig, build

GROWING = ("matchingnet", "imp")
SETTINGS = {"labelled": 1.0, "mixed": 0.5, "unlabelled": 0.0}
TOLERANCE = 1e-4


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def live(kind: str, life: Life) -> list[float]:
    """Meeting by meeting, graph and learner each with its own memory; gives what was new."""
    model, runner = made(kind).model, made(kind).runner
    rows = life.given.shape[1]
    state: Any = model.learner.begin(rows, SLOTS)  # type: ignore[operator]
    ours, new = runner.begin(rows), []
    for image, given in zip(*life, strict=True):
        with torch.no_grad():
            answer, state = model.learner.step(  # type: ignore[operator]
                state, model.encoder(torch.from_numpy(image)), torch.from_numpy(given)
            )
        scores, novelty, ours = runner.step(image, given, ours)
        close(scores, answer.scores)
        close(novelty, answer.novelty)
        new += novelty.tolist()
        expected = tensors_of_state(state)
        assert list(ours) == list(expected)
        for name, tensor in expected.items():
            found = ours[name]
            if kind.startswith(GROWING) and name != "state.told":
                found = found[:, 1:]  # without the blank column it begins with
            assert found.shape == tuple(tensor.shape), name
            close(found, tensor)
    return new


def check_whole_lives(kind: str) -> None:
    for setting, told in SETTINGS.items():
        for rows in (1, 3):
            life = random_life(model_of(kind), SLOTS, rows, seed=rows + 1, told=told)
            new = live(kind, life)
            if setting == "unlabelled":
                assert min(new) == CERTAINLY_NEW, "nothing was named, so all is new"
            if setting == "labelled":
                assert {int(slot) for slot in life.given.ravel()} == set(range(SLOTS)), "all slots in use"


@pytest.mark.parametrize("kind", KINDS)
def test_whole_lives_are_as_the_learners(kind: str) -> None:
    check_whole_lives(kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MORE_KINDS)
def test_whole_lives_are_as_the_learners_for_every_variant(kind: str) -> None:
    check_whole_lives(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_state_is_the_learners(kind: str) -> None:
    for rows in (1, 4):
        expected = tensors_of_state(model_of(kind).learner.begin(rows, SLOTS))  # type: ignore[operator]
        found = made(kind).runner.begin(rows)
        assert list(found) == list(expected)
        for name, tensor in expected.items():
            if 0 in tensor.shape:  # a memory that grows: one blank column
                assert found[name].shape == (rows, 1, *tensor.shape[2:])
                assert (found[name] == (-1 if tensor.dtype == torch.int64 else 0)).all()
            else:
                np.testing.assert_array_equal(found[name], tensor)
                assert found[name].dtype == tensor.numpy().dtype


@pytest.mark.parametrize("kind", KINDS)
def test_looking_is_pure_and_does_not_depend_on_the_label(kind: str) -> None:
    runner, life = made(kind).runner, random_life(model_of(kind), SLOTS, 2, seed=9, meetings=8, told=0.7)
    state = runner.begin(2)
    for image, given in zip(*life, strict=True):
        before = {name: value.copy() for name, value in state.items()}
        looked = runner.step(image, np.full_like(given, -1), state)
        told = runner.step(image, given, state)
        np.testing.assert_array_equal(looked[0], told[0])
        np.testing.assert_array_equal(looked[1], told[1])
        for name, value in before.items():
            np.testing.assert_array_equal(state[name], value)
        state = told[2]


@pytest.mark.parametrize("kind", GROWING)
def test_a_memory_that_grows_keeps_no_blanks(kind: str) -> None:
    runner, life = made(kind).runner, random_life(model_of(kind), SLOTS, 1, seed=2, told=0.5)
    state, named = runner.begin(1), 0
    for image, given in zip(*life, strict=True):
        *_, state = runner.step(image, given, state)
        named += int(given[0] != -1)
    if kind == "matchingnet":
        assert state["state.labels"].shape == (1, 1 + named)
    else:
        assert (state["state.items"][:, 1:] > 0).all()
        assert 1 < state["state.items"].shape[1] < len(life.given), "some opened a cluster and some joined"


def test_rows_of_a_batch_do_not_touch_each_other() -> None:
    life = random_life(model_of("cpm"), SLOTS, 3, seed=4, told=0.5)
    runner = made("cpm").runner
    together, alone = runner.begin(3), runner.begin(1)
    for image, given in zip(*life, strict=True):
        scores, novelty, together = runner.step(image, given, together)
        own_scores, own_novelty, alone = runner.step(image[1:2], given[1:2], alone)
        close(own_scores, scores[1:2])
        close(own_novelty, novelty[1:2])


def test_inputs_and_outputs_are_named_and_their_sizes_too() -> None:
    exported = made("matchingnet").exported
    assert exported.inputs == {
        "image": f"float [batch, 1, {SIDE}, {SIDE}]",
        "given": "int64 [batch]",
        "state.features": "float [batch, kept, 8]",
        "state.labels": "int64 [batch, kept]",
        "state.told": f"bool [batch, {SLOTS}]",
    }
    assert list(exported.outputs) == ["scores", "novelty", "next.features", "next.labels", "next.told"]
    assert exported.outputs["next.features"] == "float [batch, kept_next, 8]"
    assert exported.largest_difference <= TOLERANCE


def test_the_file_is_plain_onnx_with_nothing_of_this_machine() -> None:
    for data in (made("cpm").step, made("cpm").begin):
        model = onnx.load_from_string(data)
        onnx.checker.check_model(model, full_check=True)
        assert [(each.domain, each.version) for each in model.opset_import] == [("", 18)]
        assert not model.functions
        assert model.ir_version == 8, "what opset 18 came with: older runtimes read it too"
        assert b".py" not in data
        assert b"wanderlearn/" not in data


@pytest.mark.slow
def test_exporting_twice_gives_the_same_bytes(tmp_path: Any) -> None:
    export_model(model_of("protonet"), tmp_path / "again.onnx", slots=SLOTS)
    assert (tmp_path / "again.onnx").read_bytes() == made("protonet").step
    assert (tmp_path / "again.begin.onnx").read_bytes() == made("protonet").begin


@pytest.mark.slow
@pytest.mark.parametrize("opset", OPSETS[1:])
@pytest.mark.parametrize("kind", ["cpm", "imp"])
def test_newer_opsets(kind: str, opset: int) -> None:
    assert made(kind, opset=opset).exported.opset == opset


def test_a_graph_that_says_something_else_is_not_kept(tmp_path: Any, monkeypatch: Any) -> None:
    old = tmp_path / "m.onnx"
    old.write_bytes(b"what was there before")
    whole = parity.Runner.step

    def off(self: Any, *arguments: Any) -> Any:
        scores, novelty, state = whole(self, *arguments)
        return scores, novelty + 2e-3 * np.abs(novelty), state

    monkeypatch.setattr(parity.Runner, "step", off)
    ready = made("cpm")
    monkeypatch.setattr(export, "step_graph", lambda *_: onnx.load_from_string(ready.step))
    with pytest.raises(WanderError, match=r"differ by up to 0\.002"):
        export_model(model_of("cpm"), old, slots=SLOTS)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    assert old.read_bytes() == b"what was there before"


def test_a_graph_that_the_runtime_has_no_kernel_for_is_not_kept(tmp_path: Any, monkeypatch: Any) -> None:
    ready = onnx.load_from_string(made("cpm").step)
    node = next(each for each in ready.graph.node if each.op_type == "Tanh")
    node.op_type, node.domain = "Unheard", "of"
    ready.opset_import.append(onnx.helper.make_opsetid("of", 1))
    monkeypatch.setattr(export, "step_graph", lambda *_: ready)
    with pytest.raises(WanderError, match=r"onnxruntime cannot run the graph in opset 18 .*Unheard"):
        export_model(model_of("cpm"), tmp_path / "m.onnx", slots=SLOTS)
    assert not list(tmp_path.iterdir())


def test_differences_are_relative_above_one_and_what_is_no_number_is_infinitely_off() -> None:
    answer = Answers(torch.tensor([[UNUSED, 0.5]]), torch.tensor([CERTAINLY_NEW]))
    same = answer.scores.numpy(), answer.novelty.numpy()
    assert difference(answer, *same) == 0
    assert difference(answer, same[0], same[1] + 1) == pytest.approx(1e-3)
    assert difference(answer, same[0] + np.array([[0, 0.25]], np.float32), same[1]) == pytest.approx(0.25)
    assert difference(answer, same[0] * np.nan, same[1]) == float("inf")
    assert difference(answer, same[0][:, :1], same[1]) == float("inf")


def test_what_fits_anew_every_time_is_refused(tmp_path: Any) -> None:
    model = build(ModelConfig(model_of("cpm").config.encoder, OfflineConfig(features=8)))
    with pytest.raises(WanderError, match="Offline logistic regression cannot be exported"):
        export_model(model, tmp_path / "m.onnx")


class _Counting(torch.nn.Module):
    """A learner that asks for a number in the middle of its step."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def begin(self, rows: int, slots: int) -> Any:
        return self.inner.begin(rows, slots)

    def step(self, state: Any, feature: Any, given: Any) -> Any:
        return self.inner.step(state, feature if feature.sum() > 0 else -feature, given)


def test_a_step_that_no_graph_can_hold_is_refused_with_the_reason(tmp_path: Any) -> None:
    inner = model_of("protonet")
    model = build(inner.config)
    model.learner = _Counting(inner.learner)
    with pytest.raises(WanderError, match=r"protonet cannot be exported.*graph cannot hold \(.+\)"):
        export_model(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
