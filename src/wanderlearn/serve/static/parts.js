// Small parts of the page that are made again and again.

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const { dataset, attributes, ...rest } = properties;
  const node = Object.assign(document.createElement(tag), rest);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  Object.assign(node.dataset, dataset || {});
  node.append(...children);
  return node;
}

export const thumb = (id, alt = "") => make("img", { src: `/thumb/${id}`, alt, loading: "lazy", draggable: false });

export const percent = (p) => (p > 0.995 && p < 1 ? "99 %" : p > 0 && p < 0.005 ? "<1 %" : `${Math.round(100 * p)} %`);

export const many = (n) => n.toLocaleString("en");

let fading;
export function toast(words) {
  const node = $("toast");
  node.textContent = words;
  node.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => (node.hidden = true), 3200);
}

const LARGE = 4; // of the nearest classes, so many are shown with examples

// The nearest classes, the first of them with their examples; `choose(label)` on a click.
export function showRanking(list, answer, choose) {
  const rows = (answer ? answer.ranking : []).map((near, n) => {
    const button = make(
      "button",
      { onclick: () => choose(near.label), attributes: { "aria-label": `${n + 1}: ${near.label}, ${percent(near.p)}` } },
      make("span", { className: "key", textContent: n + 1 }),
      ...(n < LARGE ? [make("span", { className: "thumbs" }, ...near.examples.slice(0, 2).map((id) => thumb(id)))] : []),
      make("span", { className: "label", textContent: near.label }),
      ...(n < LARGE ? [make("span", { className: "p", textContent: percent(near.p) })] : []),
    );
    return make("li", { className: n >= LARGE ? "small" : n === 0 && !answer.new ? "first" : "" }, button);
  });
  if (!rows.length) rows.push(make("li", { className: "none", textContent: answer ? "None yet: name the first." : "…" }));
  list.replaceChildren(...rows);
}

// What it says: a name with its confidence, or new.
export function showGuess(node, eyebrow, answer) {
  node.classList.toggle("new", answer.new);
  const words = answer.new ? "New?" : answer.label;
  node.replaceChildren(words, " ", make("small", { textContent: percent(answer.confidence) }));
  eyebrow.textContent = answer.new ? "It does not know this" : "It says";
}
