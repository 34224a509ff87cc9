// The page: what is shown, what is done, and which key does it.

import { ask, listen, tell } from "./api.js";
import { setUpDialogs } from "./dialogs.js";
import { Naming } from "./naming.js";
import { Pad } from "./pad.js";
import { $, make, many, percent, showGuess, showRanking, thumb, toast } from "./parts.js";
import { setUpTheme } from "./theme.js";

if (location.search) history.replaceState(null, "", "/"); // the token is in a cookie by now

let state = null;
let look = null;
let revisited = null; // the id of a picture of the past that is being decided again
let busy = false;
let asked = 0; // questions for the whole state so far: only the answer to the last one counts
let heard = null; // the newest version the server has told of
let version = -1;

// Showing ---------------------------------------------------------------------------------------------

function showState() {
  const { tally } = state;
  const total = state.pictures;
  const done = state.decided + state.skipped + state.broken;
  $("where").textContent = state.folder ? state.folder.split(/[\\/]/).filter(Boolean).pop() || "/" : "Drawing pad";
  $("where").title = state.folder || "";
  document.title = state.folder ? `${many(state.waiting)} to go · wander` : "wander";
  $("figure-done").replaceChildren(many(state.decided), make("small", { textContent: ` of ${many(total)}${state.listing ? "…" : ""}` }));
  $("figure-right").replaceChildren(
    tally.accuracy === null ? "–" : percent(tally.accuracy), make("small", { textContent: tally.judged ? ` of ${many(tally.judged)}` : "" }),
  );
  $("figure-asked").textContent = tally.asked === null ? "–" : percent(tally.asked);
  const share = total ? (100 * done) / total : 0;
  $("progress").firstElementChild.style.width = `${share}%`;
  $("progress").setAttribute("aria-valuenow", Math.round(share));
  $("undo-button").disabled = $("pad-undo").disabled = !state.undo;
  $("broken-says").textContent = brokenWords();
  showAuto();
  showPast();
  showClasses(state.classes);
  $("class-count").textContent = many(state.class_count);
  if (state.problem) banner(state.problem);
}

function brokenWords() {
  const parts = [];
  if (state.skipped) parts.push(`${many(state.skipped)} skipped`);
  if (state.broken) parts.push(`${many(state.broken)} could not be read as pictures and were passed over`);
  return parts.length ? `${parts.join("; ")}.` : "";
}

function showAuto() {
  const { auto, tally } = state;
  $("auto").value = auto.error === null ? "" : String(auto.error);
  let words = "";
  if (auto.error !== null && !state.waking) {
    const from = auto.source === "calibration" ? "calibrated for these weights" : "from your answers so far";
    if (auto.threshold !== null) words = `Accepts from ${percent(auto.threshold)} confidence on (${from}).`;
    else if (auto.source === "calibration") words = "These weights are never sure enough for that: you are asked.";
    else if (auto.judged < auto.needed) words = `Accepts once you judged ${auto.needed} named guesses (${auto.judged} so far).`;
    else words = "Your answers so far do not allow that error yet: you are asked.";
  }
  if (tally.auto) words += ` ${many(tally.auto)} accepted${tally.corrected ? `, ${many(tally.corrected)} corrected` : ""}.`;
  $("auto-says").textContent = words.trim();
}

function showPast() {
  const rows = state.past.map((one) => {
    const label = one.label || (one.state === "skipped" ? "skipped" : "?");
    const button = make(
      "button",
      { title: `${one.name}: ${label}${one.by === "auto" ? " (accepted without asking)" : ""}`, onclick: () => revisit(one.id) },
      thumb(one.id), make("span", { textContent: label }),
    );
    const kind = [one.state, one.by === "auto" ? "auto-made" : "", one.id === revisited ? "here" : ""].join(" ").trim();
    return make("li", { className: kind }, button);
  });
  if (!rows.length) rows.push(make("li", { className: "none", textContent: "What you decide appears here." }));
  $("strip").replaceChildren(...rows);
}

function showClasses(classes) {
  const rows = classes.map((one) =>
    make("li", {}, make(
      "button",
      { onclick: () => dialogs.openClass(one), attributes: { "aria-label": `${one.label}, ${one.count} pictures: change` } },
      ...(one.examples.length ? [thumb(one.examples[0])] : [make("span")]),
      make("span", { textContent: one.label }), make("i", { textContent: many(one.count) }),
    )));
  if (!rows.length) rows.push(make("li", { className: "none", textContent: "No class yet." }));
  $("classes").replaceChildren(...rows);
}

function showLook() {
  const { picture, answer } = look;
  const img = $("picture");
  $("back-button").hidden = revisited === null;
  $("picture-name").textContent = picture ? picture.name : "";
  img.hidden = !picture;
  $("empty").hidden = !!picture;
  if (picture && img.dataset.id !== String(picture.id)) {
    img.dataset.id = picture.id;
    img.src = `/picture/${picture.id}`;
    img.alt = `The picture to be named: ${picture.name}`;
  }
  for (const id of ["accept-button", "name-button", "skip-button"]) $(id).disabled = !picture || !answer;
  if (picture && picture.state !== "waiting") $("skip-button").disabled = true;
  $("accept-words").textContent = !answer || !answer.new ? "Accept" : "Name it";
  showRanking($("ranking"), answer, (label) => decide(label));
  if (!picture) return showNothing();
  if (!answer) {
    $("verdict-eyebrow").textContent = "One moment";
    $("guess").className = "guess";
    $("guess").textContent = "Waking up…";
    $("reason").textContent = "The agent is being loaded. You can look already.";
    return;
  }
  showGuess($("guess"), $("verdict-eyebrow"), answer);
  $("reason").textContent = picture.label ? `You said “${picture.label}”. ${answer.reason}` : answer.reason;
  for (const id of look.ahead) new Image().src = `/picture/${id}`;
}

function showNothing() {
  $("guess").className = "guess";
  $("verdict-eyebrow").textContent = "";
  $("reason").textContent = "";
  const empty = $("empty");
  if (look.listing) {
    $("guess").textContent = "…";
    empty.replaceChildren(make("strong", { textContent: "Reading the folder" }), "The first pictures come in a moment.");
  } else if (!state || !state.folder) {
    $("guess").textContent = "No folder";
    empty.replaceChildren(make("strong", { textContent: "There is no folder here" }), "Draw, or start again with a folder: wander serve FOLDER");
  } else if (!state.pictures) {
    $("guess").textContent = "Nothing here";
    empty.replaceChildren(make("strong", { textContent: "No pictures in this folder" }), "PNG, JPEG, WebP, GIF, TIFF and BMP are found, in folders within it too.");
  } else {
    $("guess").textContent = "All done";
    const again = make("button", { className: "link", textContent: "Look at the skipped ones", onclick: nextSkipped });
    const some = state.skipped ? [" ", again] : [];
    empty.replaceChildren(make("strong", { textContent: "Every picture is sorted" }), "Export them, or click one of the past to change it.", ...some);
  }
}

function banner(words) {
  $("banner").textContent = words || "";
  $("banner").hidden = !words;
}

// Asking and doing ------------------------------------------------------------------------------------

function take(answer) {
  if (answer.state) {
    state = answer.state;
    version = state.version;
    showState();
  }
  if (answer.look && revisited === null) {
    look = answer.look;
    showLook();
  }
}

async function refresh() {
  const path = revisited === null ? "/api/look" : `/api/look?picture=${revisited}`;
  const mine = ++asked;
  const [newState, newLook] = await Promise.all([ask("/api/state"), ask(path)]);
  if (state && mine !== asked) return; // a later question has a newer answer
  version = newState.version;
  state = newState;
  look = newLook;
  showState();
  showLook();
}

export async function act(name, fields) {
  if (busy) return null;
  busy = true;
  try {
    const answer = await tell(name, fields);
    asked += 1;
    take(answer);
    return answer;
  } catch (error) {
    toast(error.status ? error.message : "The assistant does not answer. Is it still running?");
    if (error.status) await refresh().catch(() => {});
    return null;
  } finally {
    busy = false;
    if (heard !== null && heard !== version) refresh().catch(() => {});
  }
}

async function decide(label, fresh = false) {
  if (!look || !look.picture || !look.answer || busy) return;
  const { id, entry } = look.picture;
  revisited = null;
  await act("decide", { picture: id, label, new: fresh, seen: entry });
}

function accept() {
  if (!look || !look.answer || !look.picture) return;
  if (look.answer.new) naming.show();
  else decide(look.answer.label);
}

function skip() {
  if (!look || !look.picture || $("skip-button").disabled) return;
  act("skip", { picture: look.picture.id, seen: look.picture.entry });
}

async function undo() {
  revisited = null;
  const answer = await act("undo");
  if (answer) toast(answer.undone.label ? `Taken back: ${answer.undone.kind} “${answer.undone.label}”` : "Taken back.");
}

async function revisit(id) {
  revisited = id;
  dialogs.closeAll();
  naming.hide();
  await refresh().catch((error) => {
    revisited = null;
    toast(error.message);
  });
  if (state) showPast();
}

async function nextSkipped() {
  const { pictures } = await ask("/api/pictures?state=skipped");
  if (pictures.length) revisit(pictures[0].id);
}

async function back() {
  revisited = null;
  await refresh();
}

// Setting up ------------------------------------------------------------------------------------------

const naming = new Naming($("naming"), { choose: decide, closed: () => $("stage").focus({ preventScroll: true }) });
const pad = new Pad({ act, undo });
const dialogs = setUpDialogs({ act, revisit, state: () => state });
setUpTheme($("theme-button"));

$("accept-button").onclick = accept;
$("name-button").onclick = () => naming.show();
$("skip-button").onclick = skip;
$("undo-button").onclick = undo;
$("back-button").onclick = back;
$("auto").onchange = (event) => {
  act("auto", { error: event.target.value ? Number(event.target.value) : null });
  event.target.blur();
};
$("picture").onload = (event) => event.target.classList.toggle("tiny", Math.max(event.target.naturalWidth, event.target.naturalHeight) <= 64);
$("class-search").oninput = async (event) => {
  const search = event.target.value;
  const { classes } = await ask(`/api/classes?search=${encodeURIComponent(search)}`);
  if (event.target.value === search) showClasses(classes);
};

function choosePanel(name) {
  for (const one of ["sort", "draw"]) {
    $(one).hidden = one !== name;
    $(`tab-${one}`).setAttribute("aria-selected", String(one === name));
    $(`tab-${one}`).tabIndex = one === name ? 0 : -1;
  }
  if (name === "draw") pad.shown();
}
for (const name of ["sort", "draw"]) {
  $(`tab-${name}`).onclick = () => choosePanel(name);
  $(`tab-${name}`).onkeydown = (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = name === "sort" ? "draw" : "sort";
    choosePanel(other);
    $(`tab-${other}`).focus();
  };
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.target.matches("input, select, textarea")) return;
  const key = event.key;
  const pressed = event.target.closest("button, a");
  if (pressed && (key === "Enter" || key === " ")) return; // the focused button is meant
  if (key === "?") return dialogs.help();
  if (!$("draw").hidden) return pad.key(event);
  if (key === "Enter" || key === " ") {
    event.preventDefault();
    accept();
  } else if (/^[1-9]$/.test(key)) {
    const near = look?.answer?.ranking[Number(key) - 1];
    if (near) decide(near.label);
  } else if (key === "s") skip();
  else if (key === "u") undo();
  else if (key === "Escape") {
    if (revisited !== null) back();
  } else if (key === "/" || (key.length === 1 && /\p{L}/u.test(key))) {
    if ($("name-button").disabled) return;
    event.preventDefault();
    naming.show(key === "/" ? "" : key);
  }
});

listen({
  changed: (now) => {
    heard = now;
    if (now !== version && !busy) refresh().catch(() => {});
  },
  away: (refused) => banner(refused
    ? "The assistant was started anew elsewhere. Open the address that wander serve printed."
    : "The assistant is not running. Start it again, and this page goes on where you stopped."),
  back: () => {
    banner("");
    refresh().catch(() => {});
  },
});

refresh().then(() => {
  if (!state.folder) choosePanel("draw");
});
