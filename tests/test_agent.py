"""The live agent answers as its learner does, changes only when it is told, and says what it cannot do."""

import re
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wanderlearn
from tests.live_agents import KINDS, SIDE, WIDTH, agent_of, feature, said, small_model
from wanderlearn import Agent, WanderError
from wanderlearn.bench.agent import bench_agent, knowing
from wanderlearn.learners.dnc import DNCConfig
from wanderlearn.learners.encoders import Conv4, Conv4Config
from wanderlearn.learners.lstm import LSTMConfig
from wanderlearn.learners.oml import OMLConfig
from wanderlearn.learners.wayfarer import Wayfarer
from wanderlearn.model import LearnerConfig, ModelConfig, build, load_model, save_model
from wanderlearn.shipped import DEFAULT_WEIGHTS, FOLDER
from wanderlearn.worlds.sequence import UNLABELED

ROOT = Path(__file__).parents[1]
MAIN = ("cpm", "protonet", "matchingnet", "imp", "wayfarer")


# As the learner ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), labelled=st.sampled_from([1.0, 0.5, 0.2]))
def test_look_then_tell_is_a_step_of_the_learner(kind: str, seed: int, labelled: float) -> None:
    random = np.random.default_rng(seed)
    agent, learner = agent_of(kind), deepcopy(small_model(kind).learner)
    if isinstance(learner, Wayfarer):
        learner.doubt = False  # an agent says apart what is new and which name is right
    slots: dict[str, int] = {}
    state = learner.begin(1, 10)  # type: ignore[operator]
    for t in range(25):
        met = feature(seed + int(random.integers(1000))) if t != 10 else np.zeros(WIDTH, np.float32)
        name = f"class {random.integers(8)}" if random.random() < labelled else None
        slot = UNLABELED if name is None else slots.setdefault(name, len(slots))
        known = len(agent)
        with torch.inference_mode():
            wanted, state = learner.step(state, torch.from_numpy(met)[None], torch.tensor([slot]))  # type: ignore[operator]
        answer = agent.look(met)
        reading = answer.meeting.reading
        assert reading is not None
        scale = 1 + wanted.scores[0, :known].abs().numpy()
        assert (
            np.abs((reading.scores - wanted.scores[0, :known].numpy()) / scale).max(initial=0) < 1e-4
        )  # the contract
        assert reading.novelty == pytest.approx(float(wanted.novelty), rel=1e-4, abs=1e-4)
        assert answer.new == (not known or reading.novelty > 0)
        agent.tell(answer, name)
    assert agent.labels == tuple(slots)


@pytest.mark.parametrize("kind", KINDS)
def test_looking_changes_nothing(kind: str) -> None:
    agent, twin = agent_of(kind), agent_of(kind)
    for t in range(12):
        for _ in range(3):
            agent.look(feature(100 + t))
        label = None if t % 3 == 2 else t % 4
        answer, other = agent.look(feature(t)), twin.look(feature(t))
        assert said(answer) == said(agent.look(feature(t))) == said(other)
        agent.tell(answer, label)
        twin.tell(other, label)
    assert agent.changes == twin.changes == 12


def test_an_answer_adds_up() -> None:
    agent = agent_of()
    assert agent.look(feature(0)).label is None
    assert agent.look(feature(0)).p_new == 1.0
    assert agent.look(feature(0)).ranking == ()
    for t in range(12):
        agent.tell(agent.look(feature(t)), t % 6)
    answer = agent.look(feature(18))
    assert sum(p for _, p in answer.ranking) == pytest.approx(1 - answer.p_new)
    assert [p for _, p in answer.ranking] == sorted((p for _, p in answer.ranking), reverse=True)
    distances = [near.distance for near in answer.neighbours]
    assert distances == sorted(distances)
    assert answer.distance == pytest.approx(distances[0])
    assert answer.label == answer.ranking[0][0] == answer.neighbours[0].label == 0
    assert answer.distance is not None
    assert answer.distance < answer.threshold
    assert not answer.new
    assert answer.p_new < 0.5


@pytest.mark.parametrize("kind", MAIN)
def test_memory_grows_with_the_classes(kind: str) -> None:
    agent, learner = agent_of(kind), small_model(kind).learner
    state = learner.begin(1, 200)  # type: ignore[operator]
    for k in range(200):  # a memory begins with room for 64
        met = feature(k)
        with torch.inference_mode():
            wanted, state = learner.step(state, torch.from_numpy(met)[None], torch.tensor([k]))  # type: ignore[operator]
        answer = agent.look(met)
        assert answer.meeting.reading is not None
        found = answer.meeting.reading.scores
        assert np.allclose(found, wanted.scores[0, :k].numpy(), rtol=1e-5, atol=1e-5)
        agent.tell(answer, k)
    assert agent.labels == tuple(range(200))


def test_the_frozen_encoder_is_the_encoder() -> None:
    for config in (
        Conv4Config(),
        Conv4Config(image_size=20, in_channels=3, channels=6, blocks=2),
        Conv4Config(16, 8),
    ):
        torch.manual_seed(0)
        encoder = Conv4(config)
        pictures = torch.rand(5, config.in_channels, config.image_size, config.image_size)
        for _ in range(3):
            encoder.train()(pictures)
        encoder.eval()
        with torch.inference_mode():
            assert torch.allclose(encoder.frozen()(pictures), encoder(pictures), atol=1e-5)


# Explaining, many streams ------------------------------------------------------------------------------


def test_an_explanation_names_examples_threshold_and_context() -> None:
    agent = agent_of("cpm")
    for t in range(30):
        agent.tell(agent.look(feature(t), id=f"photo-{t}.png"), "abc"[t % 3])
    answer = agent.look(feature(33), id="photo-33.png")
    why = agent.explain(answer)
    assert said(why.said) == said(why.now) == said(answer)
    nearest = why.now.neighbours[0]
    assert nearest.examples[-1] in {f"photo-{t}.png" for t in (27, 28, 29)}
    assert len(nearest.examples) == 8
    assert said(why.without_context) != said(answer)
    fresh = agent_of("cpm")
    fresh._life.memory.restore(  # the same memory with the context of one who has met nothing
        {
            **agent._life.memory.arrays(),
            **{name: np.zeros((1, 12), np.float32) for name in ("hidden", "cell")},
        },
        3,
    )
    for label in agent.labels:
        fresh._life.names.open(label)
    assert said(why.without_context) == said(fresh.look(feature(33)))
    words = str(why)
    assert "threshold" in words
    assert "With its context reset" in words
    assert str(nearest.examples[-1]) in words
    assert said(agent.explain(answer).said) == said(answer)


def test_even_an_empty_memory_can_explain() -> None:
    agent = agent_of()
    answer = agent.look(feature(0))
    assert str(agent.explain(answer)).startswith("It said new (100%)")
    agent.tell(answer, "kettle")
    assert "'kettle' at 0" in str(agent.explain(answer))


def test_ids_may_come_with_the_label() -> None:
    agent = agent_of()
    answer = agent.look(feature(0), id="first")
    agent.tell(answer)
    agent.tell(answer, "a", id="second")
    agent.tell(agent.look(feature(6), id="third"), "a")
    assert agent.look(feature(12)).neighbours[0].examples == ("second", "third")


@pytest.mark.parametrize("kind", MAIN)
def test_many_streams_are_as_many_agents(kind: str) -> None:
    begun = agent_of(kind)
    begun.tell(begun.look(feature(3)), "shared")
    agents, alone = begun.many(3), [begun._twin() for _ in range(3)]
    random = np.random.default_rng(0)
    for t in range(10):
        pictures = [random.random((SIDE, SIDE)), None if t % 3 else feature(t), feature(2 * t)]
        labels = [t % 2, "x", None]
        answers = agents.look(pictures, ids=[t, None, None])
        for n, agent in enumerate(alone):
            if pictures[n] is None:
                assert answers[n] is None
                continue
            answer = agent.look(pictures[n])
            assert said(answers[n]) == said(answer)
            agent.tell(answer, labels[n])
        agents.tell(answers, labels)
    assert [a.labels for a in agents] == [a.labels for a in alone]
    assert len(begun) == 1
    answers, unhashable = agents.look([feature(1)] * 3), cast(Any, [])
    with pytest.raises(WanderError, match="not hashable"):
        agents.tell(answers, ["fine", "fine", unhashable])
    assert "fine" not in agents[0]
    with pytest.raises(WanderError, match="3 streams, but 2 pictures"):
        agents.look([feature(1)] * 2)
    with pytest.raises(WanderError, match="at least 1 stream"):
        begun.many(0)


def test_the_benchmark_measures_what_it_says() -> None:
    threads = torch.get_num_threads()
    found = bench_agent(classes=5, many=70, meetings=1, few=1, rounds=1)
    assert torch.get_num_threads() == threads
    assert {"meeting_over_encoder", "ms_at_100000_classes"} <= found.keys()
    wayfarer = found.pop("wayfarer")
    assert all(figure > 0 for figure in (*found.values(), *wayfarer.values()))
    assert {"meeting_over_encoder", "look_seconds"} <= wayfarer.keys() <= found.keys()
    assert found["meeting_over_encoder"] == pytest.approx(found["meeting_seconds"] / found["encoder_seconds"])
    crowded = knowing(Agent(build(ModelConfig())), 70)
    told = Agent(crowded.model)
    with torch.inference_mode():  # a prototype that was told just now is all there is to it
        pull = crowded._life.memory.arrays()["pull"]
        row = torch.from_numpy(crowded._life.memory.arrays()["rows"][3])
        gate: Any = crowded.model.learner.memory.gate  # type: ignore[union-attr]
        assert pull[3] == pytest.approx(float(gate.weight[0, 64:] @ row), abs=1e-4)
    assert (len(crowded), len(told)) == (70, 0)


# Weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [LSTMConfig(), DNCConfig(), OMLConfig()], ids=lambda c: type(c).__name__)
def test_learners_with_fixed_slots_are_refused(config: LearnerConfig, tmp_path: Path) -> None:
    save_model(tmp_path / "w.safetensors", build(ModelConfig(learner=config)), {})
    with pytest.raises(WanderError, match=r"memory cannot grow.*Use weights of a CPM, Online ProtoNet"):
        wanderlearn.load(tmp_path / "w.safetensors")


def test_shipped_weights_are_listed_as_they_are() -> None:
    listed = wanderlearn.weights()
    assert set(listed) == set(wanderlearn.shipped_weights()), "run scripts/weights"
    for name, found in listed.items():
        assert found.path == wanderlearn.shipped_weights()[name]
        assert (found.world, found.licence) == (name.removesuffix("-semi").partition("-")[2], "MIT")
        assert 50 < found.ap < 100
        assert type(load_model(found.path).learner).__name__.lower().endswith(found.learner)
        agent = wanderlearn.load(name)
        assert agent.weights == name
        assert agent.look(np.zeros((105, 105), np.uint8)).new


def test_an_agent_begins_with_the_weights_of_the_assistant() -> None:
    agent = wanderlearn.load()
    assert agent.weights == DEFAULT_WEIGHTS
    assert isinstance(agent.model.learner, Wayfarer)


def test_weights_that_are_not_the_published_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FOLDER, tmp_path / "weights")
    model = build(load_model(FOLDER / "cpm-glyphs.safetensors").config)
    save_model(tmp_path / "weights" / "cpm-glyphs.safetensors", model, {})
    monkeypatch.setattr("wanderlearn.agent.catalogue.FOLDER", tmp_path / "weights")
    monkeypatch.setattr("wanderlearn.shipped.FOLDER", tmp_path / "weights")
    with pytest.raises(WanderError, match="not those that were published"):
        wanderlearn.load("cpm-glyphs")
    assert wanderlearn.load("protonet-glyphs").look(np.zeros((28, 28), np.uint8)).new


def test_load_says_what_it_cannot_begin_with(tmp_path: Path) -> None:
    with pytest.raises(WanderError, match="no run folder or file of weights nonsense"):
        wanderlearn.load("nonsense")
    agent_of().save(tmp_path / "a.agent")
    with pytest.raises(WanderError, match=r"is a saved agent\. Use wanderlearn\.Agent\.open"):
        wanderlearn.load(tmp_path / "a.agent")
    with pytest.raises(WanderError, match='ink is "auto"'):
        Agent(small_model("imp"), ink="blue")  # type: ignore[arg-type]


def test_the_example_of_the_page_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/agent.md").read_text(), re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/agent.md", "exec"), space)
