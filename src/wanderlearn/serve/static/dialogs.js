// The dialogues: help, one class (rename, merge, forget), export.

import { ask, tell } from "./api.js";
import { $, make, many, thumb, toast } from "./parts.js";

export function setUpDialogs({ act, revisit, state }) {
  const all = ["help", "class-dialog", "export-dialog"].map($);
  let shown = null; // the class whose dialogue is open

  for (const dialog of all) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close(); // outside
    });
  }

  function hint(words, bad = false) {
    $("class-hint").textContent = words;
    $("class-hint").classList.toggle("bad", bad);
  }

  async function openClass(one) {
    shown = one.label;
    $("class-title").textContent = one.label;
    $("rename-field").value = one.label;
    hint(`${many(one.count)} ${one.count === 1 ? "picture" : "pictures"}. Every change can be undone.`);
    $("class-examples").replaceChildren();
    $("class-dialog").showModal();
    $("rename-field").select();
    const [{ pictures }, { classes }] = await Promise.all([
      ask(`/api/pictures?label=${encodeURIComponent(one.label)}`), ask("/api/classes"),
    ]);
    $("class-examples").replaceChildren(...pictures.map((picture) => make("li", {}, make(
      "button", { title: picture.name, onclick: () => revisit(picture.id), attributes: { "aria-label": `Decide ${picture.name} again` } },
      thumb(picture.id)))));
    const others = classes.filter((other) => other.label !== one.label);
    $("merge-field").replaceChildren(...others.map((other) => make("option", { value: other.label, textContent: `${other.label} (${many(other.count)})` })));
    $("merge-button").disabled = !others.length;
  }

  async function change(name, fields, words) {
    if (await act(name, fields)) {
      $("class-dialog").close();
      toast(words);
    } else hint($("toast").textContent, true);
  }

  const rename = () => change("rename", { old: shown, new: $("rename-field").value }, `“${shown}” is “${$("rename-field").value.trim()}” now.`);
  $("rename-button").onclick = rename;
  $("rename-field").onkeydown = (event) => {
    if (event.key === "Enter" && !event.isComposing) rename();
  };
  $("merge-button").onclick = () => change(
    "merge", { kept: $("merge-field").value, gone: shown }, `“${shown}” is part of “${$("merge-field").value}” now.`);
  $("forget-button").onclick = () => change("forget", { label: shown }, `“${shown}” is forgotten; its pictures wait again.`);

  function openExport() {
    $("export-to").value = state()?.export.to || "";
    $("export-says").textContent = "";
    $("export-dialog").showModal();
  }

  async function doExport() {
    const says = $("export-says");
    says.classList.remove("bad");
    says.textContent = "Writing…";
    $("export-go").disabled = true;
    try {
      const made = await tell("export", { to: $("export-to").value, how: $("export-how").value });
      const missing = made.missing ? ` ${many(made.missing)} files were missing.` : "";
      says.textContent = `${many(made.pictures)} pictures in ${many(made.classes)} classes: ${made.to}.${missing}`;
    } catch (error) {
      says.classList.add("bad");
      says.textContent = error.message;
    } finally {
      $("export-go").disabled = false;
    }
  }

  $("export-button").onclick = openExport;
  $("export-go").onclick = doExport;
  $("export-to").onkeydown = (event) => {
    if (event.key === "Enter") doExport();
  };
  $("help-button").onclick = () => $("help").showModal();

  return { openClass, help: () => $("help").showModal(), closeAll: () => all.forEach((dialog) => dialog.close()) };
}
