"""The live agent: looks at one picture at a time, says a name or "new", and learns what it is told."""

import logging
from collections.abc import Callable, Hashable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import torch
from torch import Tensor

from wanderlearn.agent.answer import Answer, Explanation, Neighbour
from wanderlearn.agent.changes import Change, Forget, Merge, Rename, Tell, Undo
from wanderlearn.agent.inputs import Ink, feature_or_pixels
from wanderlearn.agent.journal import Fsync, Journal, Replay, journal_of, read_journal
from wanderlearn.agent.kinds import live_memory
from wanderlearn.agent.life import UNTOLD, Life, Meeting
from wanderlearn.agent.memory import Floats, Reading, sigmoid_of, softmax
from wanderlearn.agent.names import Names, as_label
from wanderlearn.agent.saving import Saved, open_agent_file, save_agent_file
from wanderlearn.calibration import Calibration, shipped_calibration
from wanderlearn.errors import WanderError
from wanderlearn.model import Model

if TYPE_CHECKING:
    from wanderlearn.agent.many import Agents

__all__ = ["Agent"]

RANKED: Final = 10  # labels in an answer's ranking
NEAR: Final = 5  # neighbours in an answer
log: Final = logging.getLogger("wanderlearn")


class Agent:
    """A trained learner living outside the benchmark, with the user's own labels.

    A meeting is `look`, then `tell`. Looking changes nothing. Time moves when an answer is first told: then
    the meeting enters the context and the memory, with its label or without. Any hashable value but None can
    be a label; None stands for "new" in an answer and for "no label" in `tell`.

    Made by `wanderlearn.load`, `Agent.open` or from a model. What `forget`, `merge` and a late label do to
    the memory depends on the learner:

    ===============  ======================  ==============================  ===============================
    learner          forget                  merge                           late label
    ===============  ======================  ==============================  ===============================
    CPM, ProtoNet    the prototype goes      mean of the two prototypes,     written to its prototype alone:
                                             weighted by their counts        nothing else fades
    MatchingNet      its examples go         examples are relabelled         becomes an example
    IMP              its clusters go         clusters are relabelled         joins once more, by name
    Wayfarer         its sums and examples   sums are added, examples        added to its class, and becomes
                     go                      relabelled                      an example
    ===============  ======================  ==============================  ===============================

    None of these touches the context. An agent is for one thread at a time.
    """

    def __init__(self, model: Model, *, weights: str | None = None, ink: Ink = "auto") -> None:
        if ink not in ("auto", "bright", "dark"):
            raise WanderError(f'ink is "auto", "bright" or "dark", not {ink!r}.')
        self.model = model.eval()
        self.ink = ink
        self.weights = weights
        """What the weights are called."""
        self.notes: tuple[str, ...] = ()
        """What `open` had to say, such as that the end of a journal was torn."""
        freeze = getattr(model.encoder, "frozen", None)
        self._encoder: Callable[[Tensor], Tensor] = model.encoder if freeze is None else freeze()
        self._token = object()
        self._life = Life(live_memory(model.learner), Names())
        self._home: Path | None = None  # where this agent was opened or saved
        self._save: str | None = None  # names that save
        self._journal: Journal | None = None
        self._calibration: Calibration | None = None
        self._asked_for_calibration = False  # whether that of the shipped weights has been looked for

    # Looking -------------------------------------------------------------------------------------------

    def look(self, picture: Any, *, id: Hashable | None = None) -> Answer:
        """What this is, or that it is new. Changes nothing, however often one asks.

        `picture` is a file, a PIL picture, a numpy array (uint8, uint16, or floats from 0 to 1; [H, W] or
        [H, W, C]), a torch tensor ([H, W] or [C, H, W]), or a feature vector (1-D float). It is
        scaled to what the encoder was trained on; see `wanderlearn.load` for dark drawings on
        light paper. `id` is what you call it: examples are named by it in `explain`.
        """
        return self._answer(self._encode([picture])[0], None if id is None else as_label(id, "id"))

    def explain(self, answer: Answer) -> Explanation:
        """Why it said so: nearest classes with the ids of their examples, threshold, part of the context."""
        meeting = self._meeting(answer)
        memory = self._life.memory
        with torch.inference_mode():
            now = self._said(memory.read(meeting.trace), answer.id)
            afresh = self._said(memory.look(memory.feature_of(meeting.trace), afresh=True), answer.id)
        return Explanation(answer, now, afresh)

    def accepts(self, answer: Answer, error: float = 0.02) -> bool:
        """Whether the answer's label may be taken without asking a person, so that few of them are wrong.

        Of all labels that are accepted, at most the fraction `error` is wrong in the long run, as far as the
        pictures come like those that `calibration` was fitted on. What the agent calls new is never accepted.
        """
        self._meeting(answer)
        if self.calibration is None:
            raise WanderError(
                f"Nobody knows how far the confidences of {self.weights or 'these weights'} can be trusted. "
                "Set agent.calibration: wanderlearn.calibrate.calibrate(WEIGHTS) fits one in the world they "
                "were trained in, Calibration.fit on answers of your own."
            )
        threshold = self.calibration.threshold(error)
        return threshold is not None and answer.label is not None and answer.confidence >= threshold

    @property
    def calibration(self) -> Calibration | None:
        """How far its confidences can be trusted. Shipped weights come with one; it is kept by `save`."""
        if not self._asked_for_calibration:
            self._calibration = shipped_calibration(self.model, self.weights)
            self._asked_for_calibration = True
        return self._calibration

    @calibration.setter
    def calibration(self, calibration: Calibration | None) -> None:
        if calibration is not None and not isinstance(calibration, Calibration):
            raise WanderError(f"A {type(calibration).__name__} is no calibration.")
        self._calibration, self._asked_for_calibration = calibration, True

    @torch.inference_mode()
    def _encode(self, pictures: list[Any]) -> list[Floats]:
        """The features of pictures, encoded together."""
        config = self.model.config.encoder
        width = self.model.config.learner.features
        read = [
            feature_or_pixels(one, config.image_size, config.in_channels, width, self.ink) for one in pictures
        ]
        pixels = [part for _, part in read if part is not None]
        encoded = iter(self._encoder(torch.stack(pixels)).numpy() if pixels else ())
        return [next(encoded) if feature is None else feature for feature, _ in read]

    @torch.inference_mode()
    def _answer(self, feature: Floats, id: Hashable | None) -> Answer:
        return self._said(self._life.memory.look(feature), id)

    def _said(self, reading: Reading, id: Hashable | None) -> Answer:
        names, n = self._life.names, len(self._life.labels)
        p_new = sigmoid_of(reading.novelty)
        ranking: tuple[tuple[Hashable, float], ...] = ()
        near: tuple[Neighbour, ...] = ()
        if n:
            labels, examples, distances = names.labels, names.examples, reading.distances
            p = softmax(reading.scores)
            best = _largest(p, RANKED)
            shares = p[best].tolist()
            ranking = tuple((labels[k], share * (1 - p_new)) for k, share in zip(best, shares, strict=True))
            closest = best[:NEAR] if distances is None else _largest(-distances, NEAR)
            away = (-reading.scores[closest] if distances is None else distances[closest]).tolist()
            near = tuple(Neighbour(labels[k], d, examples[k]) for k, d in zip(closest, away, strict=True))
        return Answer(
            label=ranking[0][0] if ranking and reading.novelty <= 0 else None,
            p_new=p_new,
            ranking=ranking,
            neighbours=near,
            distance=reading.distance if n else None,
            threshold=reading.threshold,
            id=id,
            meeting=Meeting(self._token, reading),
        )

    # Learning ------------------------------------------------------------------------------------------

    def tell(self, answer: Answer, label: Hashable | None = None, *, id: Hashable | None = None) -> None:
        """Learn from a meeting: with its label, or (None) without one.

        An answer may be told some meetings later; it is written as it was met, in the context of then. One
        that was told without a label can be given its label later. Telling the same again changes
        nothing; telling another label is an error, unless the first was undone.
        """
        if (change := self._tell(answer, label, id)) is not None:
            self._change(change, answer.meeting)

    def _tell(self, answer: Answer, label: Hashable | None, id: Hashable | None) -> Tell | None:
        """The change that telling makes, if any."""
        meeting = self._meeting(answer)
        label = as_label(label)
        example = answer.id if id is None else as_label(id, "id")
        if label is None:
            return Tell(None, meeting.trace) if meeting.told is UNTOLD else None
        if meeting.told is UNTOLD or meeting.told is None:
            return Tell(label, meeting.trace, example, late=meeting.told is None)
        if meeting.told == label:
            return None
        raise WanderError(
            f"This answer was told {meeting.told!r} before, so it cannot be {label!r} too. "
            "Undo that first, rename or merge the classes, or look again."
        )

    def forget(self, label: Hashable) -> None:
        """Drop a class, as if it had never been told."""
        self._change(Forget(as_label(label)))

    def merge(self, kept: Hashable, gone: Hashable) -> None:
        """Two classes are one thing: what is kept of `gone` goes to `kept`, and the label `gone` is free."""
        self._change(Merge(as_label(kept), as_label(gone)))

    def rename(self, old: Hashable, new: Hashable) -> None:
        """Give a class another label, which must be free."""
        new = as_label(new)
        if new is None:
            raise WanderError("None stands for no label: it cannot be the name of a class.")
        self._change(Rename(as_label(old), new))

    def undo(self) -> None:
        """Take back the last change of any kind (tell, forget, merge, rename). Undoing is not undone.

        At least the last 32 changes can be taken back one after another, also after `save` and `open`.
        """
        self._change(Undo())

    def _change(self, change: Change, meeting: Meeting | None = None) -> None:
        if problem := self._life.objection(change):
            raise WanderError(problem)
        if self._journal is not None:
            self._journal.append(self._life.sequence + 1, change)
        self._life.apply(change, meeting)

    def _meeting(self, answer: Answer) -> Meeting:
        if not isinstance(answer, Answer):
            raise WanderError(f"A {type(answer).__name__} is no answer. Give what `look` gave.")
        if answer.meeting.owner is not self._token:
            raise WanderError("This is an answer of another agent (or of this one before it was opened).")
        return answer.meeting

    # What it knows -------------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The labels of all classes."""
        return tuple(self._life.labels)

    @property
    def counts(self) -> dict[Hashable, int]:
        """How often each label was told."""
        return dict(zip(self._life.labels, self._life.names.told, strict=True))

    @property
    def changes(self) -> int:
        """How many changes there have been, undoing included. It never goes back."""
        return self._life.sequence

    def __len__(self) -> int:
        return len(self._life.labels)

    def __bool__(self) -> bool:
        return True  # an agent that knows nothing yet is an agent

    def __contains__(self, label: object) -> bool:
        return label in self._life.names.slots

    def __repr__(self) -> str:
        learner = type(self.model.learner).__name__
        return f"<Agent {self.weights or learner}: {len(self)} classes after {self.changes} changes>"

    def many(self, streams: int) -> "Agents":
        """Several agents with these weights, each with a copy of this memory, that look in one batch."""
        from wanderlearn.agent.many import Agents

        return Agents(self, streams)

    def _twin(self) -> "Agent":
        twin = Agent(self.model, weights=self.weights, ink=self.ink)
        twin._calibration, twin._asked_for_calibration = self._calibration, self._asked_for_calibration
        with torch.inference_mode():
            twin._life = self._life.copy()
        return twin

    # Keeping -------------------------------------------------------------------------------------------

    def save(self, path: Path | str | None = None) -> None:
        """Write the agent (weights, memory, labels, what can be undone) to one file, whole or not at all.

        Without a path: where it was opened. A journal there starts afresh. Labels and ids must be strings,
        finite numbers, booleans, None or tuples of these.
        """
        if path is None and self._home is None:
            raise WanderError("This agent has no file yet. Give `save` a path.")
        target = self._home if path is None else Path(path)
        assert target is not None
        at_home = self._home is not None and target.absolute() == self._home.absolute()
        self._refuse_foreign_journal(target, at_home)
        about: dict[str, Any] = {"weights": self.weights, "ink": self.ink}
        if self._asked_for_calibration:
            about["calibration"] = None if self._calibration is None else self._calibration.to_json()
        save = save_agent_file(target, self.model, self._life, about, self._save if at_home else None)
        if at_home or self._home is None:
            self._home, self._save = target, save
            if self._journal is not None:
                self._journal.begin(save)

    def _refuse_foreign_journal(self, target: Path, at_home: bool) -> None:
        beside = journal_of(target)
        if (self._journal is not None and at_home) or not beside.exists():
            return
        save = read_journal(beside).save
        if save is not None and not (at_home and save == self._save):
            raise WanderError(
                f"Beside {target} lies the journal of another agent, {beside}: saving here would lose what "
                "is in it. Open that agent, or choose another path, or move the journal away."
            )

    @classmethod
    def open(cls, path: Path | str, *, journal: bool = False, fsync: Fsync = "always") -> Self:
        """The agent that was saved, with every change in the journal beside it.

        `journal`: keep a journal from now on: every change is on file before it is made. `fsync` says when
        it is forced to the disk: "always", after every so many changes (a number), or "never".
        """
        home = Path(path)
        writer = None
        if journal and home.exists():
            writer = Journal(journal_of(home), fsync)
        try:
            saved = open_agent_file(home)
            kept = saved.about.get("calibration")
            calibration = kept and Calibration.from_json(kept, f"The calibration in {home}")
            beside = journal_of(home)
            replay = read_journal(beside) if beside.exists() else Replay(None, [], 0, 0)
            notes = _replayed(home, saved, replay)
            if writer is not None:
                if replay.save == saved.save:
                    writer.go_on(replay.end)
                else:
                    writer.begin(saved.save)
        except BaseException:
            if writer is not None:
                writer.close()
            raise
        agent = cls(saved.model, weights=saved.about["weights"], ink=saved.about["ink"])
        if "calibration" in saved.about:
            agent.calibration = calibration
        agent._life, agent._home, agent._save, agent._journal = saved.life, home, saved.save, writer
        agent.notes = notes
        for note in notes:
            log.warning(note)
        return agent

    def keep_journal(self, path: Path | str, fsync: Fsync = "always") -> None:
        """Save this agent to a new file, and keep a journal beside it from now on."""
        target = Path(path)
        if self._journal is not None:
            raise WanderError(f"This agent keeps a journal already, {self._journal.path}.")
        if target.exists():
            raise WanderError(
                f"There is a file {target} already. Open it with Agent.open(path, journal=True)."
            )
        home, self._home = self._home, None
        try:
            self.save(target)
        except WanderError:
            self._home = home
            raise
        self._journal = Journal(journal_of(target), fsync)
        assert self._save is not None
        self._journal.begin(self._save)

    def close(self) -> None:
        """Close the journal, if there is one. Nothing is lost by not closing."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _largest(values: Floats, k: int) -> list[int]:
    """The places of the largest values, largest first."""
    if len(values) > 1000:  # sorting thousands for a few is slow
        some = np.argpartition(values, -k)[-k:]
        return some[np.argsort(-values[some], kind="stable")].tolist()  # type: ignore[no-any-return]
    return np.argsort(-values, kind="stable")[:k].tolist()  # type: ignore[no-any-return]


def _replayed(home: Path, saved: Saved, replay: Replay) -> tuple[str, ...]:
    """Make the changes of the journal; gives what is to be noted."""
    beside = journal_of(home)
    changes = [(number, change) for number, change in replay.changes if number > saved.life.sequence]
    continues = replay.save in (None, saved.save)
    # A save that was killed before it could begin its journal afresh leaves the old one: all of it is saved.
    left_over = replay.save == saved.previous and not changes
    if not continues and not left_over:
        raise WanderError(
            f"The journal {beside} does not continue the save in {home}: one of them was replaced. "
            "Put the right ones together, or move the journal away to go on without it."
        )
    for number, change in changes:
        problem = saved.life.objection(change)
        if problem is None and number != saved.life.sequence + 1:
            problem = f"change {saved.life.sequence + 1} is missing"
        if problem is not None:
            raise WanderError(f"The journal {beside} cannot be replayed at change {number}: {problem}")
        try:
            saved.life.apply(change)
        except (ValueError, IndexError, RuntimeError) as error:
            raise WanderError(
                f"The journal {beside} cannot be replayed at change {number}: it does not fit the weights "
                f"in {home} ({error})."
            ) from error
    if not replay.torn:
        return ()
    return (
        f"The journal {beside} ends in {replay.torn} bytes of a change that was cut off; it was left out.",
    )
