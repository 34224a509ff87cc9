"""The figures: the numbers behind them are right."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.metric_records import law, records
from tests.tiny_figures import model, world
from tests.tiny_runs import CPM, PROTONET
from wanderlearn import WanderError
from wanderlearn.evaluate import offline_reference
from wanderlearn.figures.answers import said
from wanderlearn.figures.controls import control_curves, controls_of
from wanderlearn.figures.curve import Curve, mean_curve, to_lists
from wanderlearn.figures.embedding import memory_features, same_environment, tsne
from wanderlearn.figures.growth import classes_met, classes_named, growth_curve
from wanderlearn.figures.inside import look_inside
from wanderlearn.figures.over_time import accuracy_curve
from wanderlearn.figures.style import COLUMN, PAGE, canvas, note
from wanderlearn.learners.offline import OfflineLR
from wanderlearn.metrics import Record, accuracy_over_time
from wanderlearn.worlds.sequence import NEW, UNLABELED

# Accuracy over time


@law
@given(records)
def test_a_window_of_one_is_accuracy_over_time_with_the_binomial_error(record: Record) -> None:
    curve, known = accuracy_curve(record, 1), accuracy_over_time(record)
    np.testing.assert_allclose(curve.mean, 100 * known.accuracy, atol=1e-10)
    np.testing.assert_array_equal(curve.sequences, known.sequences)
    p, n = known.accuracy, np.maximum(known.sequences, 1)
    np.testing.assert_allclose(curve.high - curve.mean, 100 * np.sqrt(p * (1 - p) / n), atol=1e-10)
    np.testing.assert_array_equal(curve.t, np.arange(1, record.valid.shape[1] + 1))


@law
@given(records, st.integers(2, 7))
def test_a_window_pools_its_meetings(record: Record, window: int) -> None:
    curve = accuracy_curve(record, window)
    steps = record.valid.shape[1]
    assert len(curve.t) == -(-steps // window)
    for place, start in enumerate(range(0, steps, window)):
        inside = range(start, min(start + window, steps))
        assert curve.t[place] == pytest.approx(np.mean([t + 1 for t in inside]))
        rows = []  # hits and questions of every sequence
        for n in range(len(record)):
            asked = [t for t in inside if record.valid[n, t] and record.target[n, t] != NEW]
            rows.append((sum(int(record.predicted[n, t] == record.target[n, t]) for t in asked), len(asked)))
        questions = sum(a for _, a in rows)
        assert curve.sequences[place] == sum(a > 0 for _, a in rows)
        if not questions:
            assert np.isnan(curve.mean[place])
            continue
        p = sum(h for h, _ in rows) / questions
        error = sum((h - p * a) ** 2 for h, a in rows) ** 0.5 / questions
        assert curve.mean[place] == pytest.approx(100 * p)
        assert curve.low[place] == pytest.approx(100 * (p - error))


def test_the_offline_reference_judges_the_same_features() -> None:
    protonet = model(PROTONET)
    reference = offline_reference(protonet)
    assert reference.encoder is protonet.encoder
    assert isinstance(reference.learner, OfflineLR)
    assert reference.learner.config.features == PROTONET.features
    assert not reference.training


# Curves


def test_a_mean_is_over_the_sequences_that_go_on() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 6))
    lengths = [6, 3, 3, 1, 4]
    valid = np.arange(6) < np.array(lengths)[:, None]
    values[~valid] = np.nan  # padding is never looked at
    valid = np.pad(valid, ((0, 0), (0, 1)))
    curve = mean_curve(np.pad(values, ((0, 0), (0, 1))), valid)
    for t in range(6):
        there = [values[n, t] for n in range(5) if t < lengths[n]]
        assert curve.sequences[t] == len(there)
        assert curve.mean[t] == pytest.approx(np.mean(there))
        assert curve.high[t] - curve.mean[t] == pytest.approx(np.std(there))
        assert curve.mean[t] - curve.low[t] == pytest.approx(np.std(there))
    assert np.isnan(curve.mean[6])
    assert to_lists(curve)["mean"][6] is None
    assert len(curve.drawn().t) == 6


def test_what_rests_on_few_sequences_is_counted_but_not_drawn() -> None:
    flat = np.zeros(4)
    curve = Curve(np.arange(1.0, 5), flat, flat, flat, np.array([40, 39, 4, 3]))
    assert curve.drawn().t.tolist() == [1, 2, 3]
    assert len(curve._replace(sequences=np.zeros(4, dtype=np.int32)).drawn().t) == 0


# Growth


@pytest.mark.parametrize("semi", [False, True])
def test_growth_counts_classes_met_and_named(semi: bool) -> None:
    here = world(semi=semi)
    sequences = [here.meetings(1, i) for i in range(12)]
    for m in sequences:
        for t in range(len(m)):
            assert classes_met(m)[t] == len(set(m.truth[: t + 1]))
            assert classes_named(m)[t] == len(set(m.given[: t + 1]) - {UNLABELED})
        assert classes_met(m)[-1] == classes_named(m)[-1]  # every class is named at least once
    same = all((classes_met(m) == classes_named(m)).all() for m in sequences)
    assert same != semi
    curve = growth_curve([classes_met(m) for m in sequences])
    assert curve.mean[0] == 1
    assert curve.sequences[0] == 12
    assert curve.sequences[-1] == sum(len(m) == len(curve.t) for m in sequences)


# Inside a learner


@pytest.mark.parametrize("on_unlabelled", [True, False])
def test_what_is_seen_inside_is_what_the_learner_steps_through(on_unlabelled: bool) -> None:
    here = world(semi=True)
    cpm = model(replace(CPM, recurrent_on_unlabelled=on_unlabelled))
    learner: Any = cpm.learner
    sequences = [here.meetings(0, i) for i in range(3)]
    inside = look_inside(cpm, here, sequences, batch_size=2)
    assert inside.h_rnn is not None
    assert inside.beta is not None
    assert inside.gamma is not None
    for n, m in enumerate(sequences):
        assert inside.valid[n].sum() == len(m)
        images = here.batch([m]).images[0]
        context = learner.lstm.begin(1)
        for t in range(len(m)):
            with torch.inference_mode():
                h = cpm.encoder(images[t : t + 1])
                told = torch.tensor([bool(m.given[t] != UNLABELED)])
                output, context = learner.lstm.step(context, h, None if on_unlabelled else told)
                f, _, thresholds = learner.controls(h, output)
            np.testing.assert_allclose(inside.h[n, t], h[0], atol=1e-4)
            np.testing.assert_allclose(inside.f[n, t], f[0], atol=1e-4)
            np.testing.assert_allclose(inside.h_rnn[n, t], (f - h)[0], atol=1e-4)
            beta, gamma, beta_write, gamma_write = (float(x) for x in thresholds)
            assert inside.beta[n, t] == pytest.approx((beta, beta_write), abs=1e-4)
            assert inside.gamma[n, t] == pytest.approx((gamma, gamma_write), abs=1e-4)


def test_controls_are_thresholds_and_distances_from_the_mean() -> None:
    here = world()
    sequences = [here.meetings(0, i) for i in range(3)]
    inside = look_inside(model(), here, sequences)
    assert inside.beta is not None
    assert inside.h_rnn is not None
    controls = controls_of(inside)
    np.testing.assert_array_equal(controls["beta_write"], inside.beta[..., 1])
    seen = np.array([inside.h_rnn[n, t] for n, m in enumerate(sequences) for t in range(len(m))])
    away = np.sqrt(((inside.h_rnn[1, 4] - seen.mean(0)) ** 2).sum())
    assert controls["h_rnn"][1, 4] == pytest.approx(away, rel=1e-5)
    curves = control_curves(model(), here, sequences)
    assert curves["gamma_read"].mean[0] == pytest.approx(np.mean(controls["gamma_read"][:, 0]), rel=1e-5)
    with pytest.raises(WanderError, match="Only CPM"):
        control_curves(model(PROTONET), here, sequences)
    bare = control_curves(model(replace(CPM, context="none")), here, sequences)
    assert "h_rnn" not in bare


def test_features_have_length_one_where_directions_are_compared() -> None:
    here = world()
    m = here.meetings(0, 0)
    np.testing.assert_allclose(np.linalg.norm(memory_features(model(), here, m), axis=1), 1)
    protonet = model(PROTONET)
    np.testing.assert_array_equal(memory_features(protonet, here, m), look_inside(protonet, here, [m]).h[0])


def test_the_answers_are_those_of_a_live_learner() -> None:
    here, cpm = world(semi=True), model()
    learner: Any = cpm.learner
    m = here.meetings(0, 1)
    found, state = said(cpm, here, m), learner.begin(1, here.slots)
    images = here.batch([m]).images[0]
    for t in range(len(m)):
        with torch.inference_mode():
            answer, state = learner.step(state, cpm.encoder(images[t : t + 1]), torch.tensor([m.given[t]]))
        novelty = float(answer.novelty)
        assert found.novelty[t] == pytest.approx(novelty, abs=1e-3)
        expected = NEW if novelty > 0 else int(answer.scores.argmax())
        assert abs(novelty) < 1e-3 or found.answer[t] == expected
        assert found.right[t] == (found.answer[t] == m.target[t])


# Neighbours and t-SNE


def test_neighbours_of_the_same_class_do_not_count() -> None:
    # On a line: classes 0 0 | 1 | 2 | 3, environments A A | A | B | B.
    features = np.array([[0.0], [0.1], [1.0], [1.8], [9.0]])
    environment, truth = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 2, 3])
    share, chance = same_environment(features, environment, truth, neighbours=1)
    # Nearest of another class: 2 (A), 2 (A), 3 (B), 2 (A), 3 (B); right for the first two and the last.
    assert share == pytest.approx(3 / 5)
    # Ordered pairs of different classes: 20 - 2; of one environment: 4 from A, 2 from B.
    assert chance == pytest.approx(6 / 18)
    all_share, all_chance = same_environment(features, environment, truth, neighbours=99)
    assert all_share == pytest.approx(all_chance)
    with pytest.raises(WanderError, match="one class"):
        same_environment(features, environment, np.zeros(5, dtype=int))


def test_tsne_keeps_groups_apart_and_is_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 12)
    features = rng.normal(size=(24, 6)) + 30 * group[:, None]
    flat = tsne(features)
    assert flat.shape == (24, 2)
    apart = np.linalg.norm(flat[:, None] - flat[None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    assert (group[apart.argmin(1)] == group).all()
    np.testing.assert_array_equal(tsne(features), flat)
    with pytest.raises(WanderError, match="at least 4"):
        tsne(features[:3])


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_a_long_note_stays_inside_the_figure(width: float) -> None:
    with canvas(width, 2.0) as figure:
        figure.subplots()
        note(figure, "Words with WIDE letters, and others, that go on and on and on. " * 4 + "\nLast line.")
        figure.draw_without_rendering()
        [words] = figure.texts
        assert words.get_text().splitlines()[-1] == "Last line."
        box = words.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width
        assert box.y0 >= 0
