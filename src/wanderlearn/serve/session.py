"""What a person does with the assistant, and how its two files stay in step through a crash.

There are two files: the store (listing, log of decisions) and the memory of the agent with its journal. Every
operation is first a line in the store, in one transaction, which names the number of the change that the
agent is about to make; then the agent makes that change, on file before in memory. A process killed between
the two leaves a line whose change the agent has not made: since looking is pure and the memory is as it was,
opening makes it then, with the same result. So nothing that was answered is lost, and nothing is half done.
"""

import io
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from wanderlearn.errors import WanderError
from wanderlearn.files import writing
from wanderlearn.serve.auto import Calibrated, Rule, from_record, is_check
from wanderlearn.serve.home import Home
from wanderlearn.serve.listing import Listing
from wanderlearn.serve.sight import MissingError, NotAPictureError, decode
from wanderlearn.serve.store import BROKEN, DECIDED, GONE, WAITING, Entry, Picture
from wanderlearn.serve.words import about_answer, about_picture, clean_label, reason

if TYPE_CHECKING:
    from PIL import Image

    from wanderlearn.agent import Agent, Answer

__all__ = ["ConflictError", "Session", "UnknownError"]

RECORD: Final = 1000  # judged guesses that the rule for accepting is made from, the latest
SAVED: Final = 1000  # changes after which the memory is saved and its journal begun afresh
AT_ONCE: Final = 0.04  # seconds of accepting within one request; the rest is done in the background
FIRST: Final = 2.0  # seconds that loading the agent waits for the first page, at most
WAKING: Final = 120.0  # seconds to wait for the agent, at most


class ConflictError(WanderError):
    """What was asked does not fit the state of now: somebody else was faster."""


class UnknownError(WanderError):
    """There is no such picture."""


class Session:
    """One person (or several tabs) sorting pictures with one agent."""

    def __init__(
        self, home: Home, wake: Callable[[], "Agent"], calibrate: Callable[[str], Calibrated | None]
    ) -> None:
        self.home, self.store, self.sight = home, home.store, home.sight
        self.lock = home.store.lock
        self.listing: Listing | None = None
        self.version = 0  # moves with every change that a page would show
        self.changed: Callable[[], None] = lambda: None
        self.error = float(error) if (error := home.store.meta("auto")) else None
        self.problem: WanderError | None = None
        self._wake, self._calibrate = wake, calibrate
        self._calibration: Calibrated | None = None
        self._agent: Agent | None = None
        self.seen = threading.Event()  # whether a page has shown its first picture
        self._awake, self._closing = threading.Event(), threading.Event()
        self._answers: tuple[int, dict[int, Answer]] = (-1, {})
        self._rule: Rule | None = None
        self._accepting = threading.Event()

    # Waking --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the agent and accept in the background, both from threads of their own."""

        def wake() -> None:
            self.seen.wait(FIRST)  # loading takes all the machine has
            self.wake()

        threading.Thread(target=wake, name="waking", daemon=True).start()
        threading.Thread(target=self._accept_all, name="accepting", daemon=True).start()

    def wake(self) -> None:
        """Load the agent, and finish what a crash interrupted."""
        try:
            agent = self._wake()
            with self.lock:
                self._finish(agent)
                self._agent = agent
                self._calibration = self._calibrate(str(agent.weights))
        except WanderError as error:
            self.problem = error
        self._awake.set()
        self._accepting.set()
        self.touch()

    @property
    def waking(self) -> bool:
        """Whether the agent is not there yet."""
        return not self._awake.is_set()

    @property
    def agent(self) -> "Agent":
        """The agent, once it is awake."""
        if not self._awake.wait(WAKING):
            raise WanderError("The agent is still being loaded. Try again in a moment.")
        if self._agent is None:
            raise self.problem or WanderError("The agent could not be loaded.")
        return self._agent

    @property
    def failed(self) -> bool:
        """Whether the agent could not be loaded."""
        return self._awake.is_set() and self._agent is None

    @contextmanager
    def _ready(self) -> Iterator["Agent"]:
        """The agent, for one thread at a time."""
        agent = self.agent  # waits for it, before the lock that waking needs
        with self.lock:
            yield agent

    def _finish(self, agent: "Agent") -> None:
        """Make the change that the last line names, if the agent was killed before it made it."""
        last = self.store.last()
        if last is None or last.change is None or last.n <= self.home.floor:
            return
        if agent.changes == last.change - 1:
            try:
                self._change(agent, last, None)
            except (
                MissingError,
                NotAPictureError,
            ):  # the picture has gone since then, and nobody was answered
                self.store.never_happened(last)
        elif agent.changes < last.change:
            raise WanderError(
                f"The memory {self.home.memory} is older than the decisions beside it: it has "
                f"{agent.changes} of {last.change} changes. Put the right file back, or let the agent learn "
                "anew from the decisions: start with --relearn."
            )

    def _change(self, agent: "Agent", entry: Entry, answer: "Answer | None") -> None:
        """Make in the memory what a line of the log says."""
        match entry.kind:
            case "decide" | "skip":
                if answer is None:
                    picture = self._picture(entry.picture or 0)
                    answer = agent.look(self.sight.read(picture), id=picture.id)
                agent.tell(answer, entry.label)
            case "rename":
                agent.rename(entry.was_label, entry.label)
            case "merge":
                agent.merge(entry.label, entry.was_label)
            case "forget":
                agent.forget(entry.label)
            case "undo":
                agent.undo()
        if agent.changes % SAVED == 0:
            agent.save()

    def _make(self, entry: Entry, answer: "Answer | None" = None) -> Entry:
        """First the log, then the memory. What the memory refuses is taken out of the log again."""
        made = self.store.append(entry)
        try:
            self._change(self.agent, made, answer)
        except BaseException:
            self.store.never_happened(made)
            raise
        self._rule = None
        self.touch()
        return made

    def close(self) -> None:
        """Save the memory, so that the next start is quick. Nothing is lost by not closing."""
        self._closing.set()
        self._accepting.set()
        if self.listing is not None:
            self.listing.stop()
        with self.lock:
            if self._agent is not None:
                self._agent.save()
                self._agent.close()
            self.home.close()

    def touch(self) -> None:
        """Something changed that pages show."""
        with self.lock:
            self.version += 1
        self.changed()

    # Looking -------------------------------------------------------------------------------------------

    def current(self) -> Picture | None:
        """The next picture that waits and can be read; broken ones are set aside."""
        before = self.listing.frontier if self.listing is not None else None
        while True:
            found = self.store.waiting(before)
            if not found:
                return None
            try:
                self.sight.read(found[0])
                return found[0]
            except (NotAPictureError, MissingError) as error:
                self.store.set_state(
                    found[0], GONE if isinstance(error, MissingError) else BROKEN, str(error)
                )

    def look(self, id: int | None = None) -> dict[str, Any]:
        """The picture to be decided (or another one) and what the agent says about it."""
        with self.lock:
            picture = self.current() if id is None else self._picture(id)
            said: dict[str, Any] = {"version": self.version, "waking": self.waking, "answer": None}
            said["listing"] = self.listing is not None and not self.listing.finished.is_set()
            if picture is None:
                return said | {"picture": None}
            said["picture"] = about_picture(self.store, picture)
            if self._agent is not None:
                answer = self._answer(picture)
                said["answer"] = about_answer(self.store, answer, reason(self._agent.explain(answer)))
            return said

    def ahead(self) -> list[int]:
        """The pictures that come after the current one."""
        before = self.listing.frontier if self.listing is not None else None
        return [picture.id for picture in self.store.waiting(before, 4)[1:]]

    def _answer(self, picture: Picture) -> "Answer":
        agent = self.agent
        if self._answers[0] != agent.changes:
            self._answers = (agent.changes, {})
        known = self._answers[1]
        if picture.id not in known:
            if len(known) > 8:
                known.clear()
            known[picture.id] = agent.look(self.sight.read(picture), id=picture.id)
        return known[picture.id]

    def _picture(self, id: int) -> Picture:
        if (picture := self.store.picture(id)) is None:
            raise UnknownError("There is no such picture.")
        return picture

    # Deciding ------------------------------------------------------------------------------------------

    def decide(self, id: int, label: str, *, new: bool = False, seen: int | None = None) -> Entry:
        """A person says what a picture shows. `new`: this may be the name of a new class."""
        label = clean_label(label)
        with self._ready():
            picture = self._expected(id, seen)
            if not new and self.store.classes.find(label) is None:
                raise ConflictError(f"There is no class {label!r} any more. Choose another one.")
            if picture.state == DECIDED and self._label(picture) == label:
                raise ConflictError(f"This picture is {label!r} already.")
            made = self._decide(picture, label, "person")
            self._accept(AT_ONCE)
            return made

    def skip(self, id: int, seen: int | None = None) -> Entry:
        """A person does not know: the agent meets it without a name."""
        with self._ready() as agent:
            picture = self._expected(id, seen)
            if picture.state != WAITING:
                raise ConflictError("This picture was decided before. Undo that, or give it another name.")
            answer = self._answer(picture)
            made = self._make(Entry("skip", picture=id, change=agent.changes + 1), answer)
            self._accept(AT_ONCE)
            return made

    def undo(self) -> Entry:
        """Take back the last operation."""
        with self._ready() as agent:
            last, newest = self.store.last_made(), self.store.last()
            if last is None or newest is None:
                raise ConflictError("There is nothing to undo.")
            if last.n <= self.home.floor or newest.change != agent.changes:
                raise ConflictError("The memory was changed by other means since then: it cannot be undone.")
            if _cannot_undo(agent):
                raise ConflictError("The agent can take back its latest changes only: this is too long ago.")
            return self._make(Entry("undo", other=last.n, picture=last.picture, change=agent.changes + 1))

    def rename(self, old: str, new: str) -> Entry:
        """Give a class another name. Its pictures have it at once."""
        new = clean_label(new)
        with self._ready() as agent:
            id = self._class(old)
            if new == old:
                raise ConflictError("That is its name already.")
            if self.store.classes.find(new) is not None:
                raise ConflictError(f"There is a class {new!r} already. If it is the same thing, merge them.")
            return self._make(Entry("rename", class_=id, label=new, was_label=old, change=agent.changes + 1))

    def merge(self, kept: str, gone: str) -> Entry:
        """Two classes are one."""
        with self._ready() as agent:
            into, away = self._class(kept), self._class(gone)
            if into == away:
                raise ConflictError("That is one class already.")
            change = agent.changes + 1
            return self._make(
                Entry("merge", class_=into, other=away, label=kept, was_label=gone, change=change)
            )

    def forget(self, label: str) -> Entry:
        """Drop a class. Its pictures wait to be decided again."""
        with self._ready() as agent:
            id = self._class(label)
            return self._make(Entry("forget", class_=id, label=label, change=agent.changes + 1))

    def _decide(self, picture: Picture, label: str, by: str) -> Entry:
        answer = self._answer(picture)
        guess = None if answer.label is None else str(answer.label)
        # An answer is right if it named the class, or said new of a class that was not known.
        right = (guess == label) if guess is not None else self.store.classes.find(label) is None
        entry = Entry(
            "decide", by=by, picture=picture.id, label=label, guess=guess, right=int(right),
            confidence=answer.confidence, p_new=answer.p_new, change=self.agent.changes + 1,
        )  # fmt: skip
        return self._make(entry, answer)

    def _expected(self, id: int, seen: int | None) -> Picture:
        """A picture, as the one who decides saw it: `seen` is the line of its last decision."""
        picture = self._picture(id)
        if seen is not None and seen != (picture.entry or 0):
            raise ConflictError("This picture was decided in another tab just now.")
        self.sight.read(picture)
        return picture

    def _class(self, label: str) -> int:
        if (id := self.store.classes.find(label)) is None:
            raise ConflictError(f"There is no class {label!r}.")
        return id

    def _label(self, picture: Picture) -> str | None:
        known = picture.state == DECIDED and picture.class_ is not None
        return self.store.classes.label(picture.class_) if known and picture.class_ is not None else None

    # Accepting without asking --------------------------------------------------------------------------

    def set_auto(self, error: float | None) -> None:
        """Accept guesses under this error without asking; None: always ask."""
        if error is not None and not 0 < error <= 0.5:
            raise WanderError("The error is a share between 0 and 0.5.")
        with self.lock:
            self.store.set_meta(auto="" if error is None else repr(error))
            self.error, self._rule = error, None
        self._accepting.set()
        self.touch()

    def rule(self) -> Rule | None:
        """What is accepted without asking; None: nothing."""
        if self.error is None:
            return None
        if self._rule is None:
            if self._calibration is not None:
                self._rule = Rule("calibration", self._calibration.threshold(self.error))
            else:
                self._rule = from_record(self.store.record(RECORD), self.error)
        return self._rule

    def _accept(self, seconds: float) -> bool:
        """Accept what may be accepted, for some time; True if there may be more."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rule = self.rule()
            if self._agent is None or rule is None or rule.threshold is None or self._closing.is_set():
                return False
            picture = self.current()
            if picture is None or picture.ask or is_check(picture.id):
                return False
            answer = self._answer(picture)
            if answer.label is None or answer.confidence < rule.threshold:
                return False
            self._decide(picture, str(answer.label), "auto")
        self._accepting.set()
        return True

    def _accept_all(self) -> None:
        """Accept in the background, in short turns so that others can come in between."""
        while not self._closing.is_set():
            self._accepting.wait()
            self._accepting.clear()
            more = True
            while more and not self._closing.is_set():
                with self.lock:
                    try:
                        more = self._accept(AT_ONCE)
                    except WanderError as error:
                        self.error, self.problem, more = None, error, False
                time.sleep(0.005)

    # Drawing -------------------------------------------------------------------------------------------

    def look_at_drawing(self, png: bytes) -> dict[str, Any]:
        """What the agent says about a drawing. Nothing is kept."""
        drawing = _drawing(png)
        with self._ready() as agent:
            answer = agent.look(drawing)
            return {"answer": about_answer(self.store, answer, reason(agent.explain(answer)))}

    def tell_drawing(self, png: bytes, label: str) -> Entry:
        """Keep a drawing and learn its name."""
        drawing, label = _drawing(png), clean_label(label)
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:8]}.png"
        with self._ready():
            with writing(self.home.drawings / name) as part:
                drawing.save(part, "PNG")
            return self._decide(self.store.add_drawing(name.encode()), label, "person")


def _cannot_undo(agent: "Agent") -> bool:
    from wanderlearn.agent.changes import Undo  # here, because it loads torch, and the page is to come first

    return agent._life.objection(Undo()) is not None


def _drawing(png: bytes) -> "Image.Image":
    return decode(io.BytesIO(png), formats=("PNG",))
