// A field for the name of another class, or of a new one, with the classes that fit.

import { ask } from "./api.js";
import { make, many, thumb } from "./parts.js";

let made = 0;

export class Naming {
  constructor(place, { choose, closed }) {
    this.place = place;
    this.choose = choose;
    this.closed = closed;
    this.options = [];
    this.marked = 0;
    this.asked = 0;
    const id = `names-${++made}`;
    this.list = make("ul", { id, attributes: { role: "listbox", "aria-label": "Classes that fit" } });
    this.field = make("input", {
      autocomplete: "off", spellcheck: false, maxLength: 100, placeholder: "Name of the class",
      attributes: { role: "combobox", "aria-label": "Name of the class", "aria-controls": id, "aria-expanded": "true", "aria-autocomplete": "list" },
    });
    this.field.addEventListener("input", () => this.search());
    this.field.addEventListener("keydown", (event) => this.key(event));
    place.replaceChildren(this.field, this.list);
  }

  get open() {
    return !this.place.hidden;
  }

  show(letters = "") {
    this.place.hidden = false;
    this.field.value = letters;
    this.field.focus();
    this.search();
  }

  hide() {
    if (!this.open) return;
    this.place.hidden = true;
    this.asked++;
    this.closed();
  }

  get typed() {
    return this.field.value.trim().replace(/\s+/g, " ");
  }

  async search() {
    const asked = ++this.asked;
    const typed = this.typed;
    const { classes } = await ask(`/api/classes?search=${encodeURIComponent(typed)}`);
    if (asked !== this.asked) return;
    this.answered = typed;
    const exact = classes.find((one) => one.label === typed);
    this.options = exact ? [exact, ...classes.filter((one) => one !== exact)] : classes;
    this.options = this.options.slice(0, 8).map((one) => ({ ...one, fresh: false }));
    if (typed && !exact) this.options.push({ label: typed, fresh: true });
    this.mark(0);
  }

  mark(n) {
    this.marked = Math.max(0, Math.min(n, this.options.length - 1));
    this.list.replaceChildren(
      ...this.options.map((one, at) => {
        const row = make("li", {
          id: `${this.list.id}-${at}`, onmousedown: (event) => event.preventDefault(), onclick: () => this.take(one),
          attributes: { role: "option", "aria-selected": String(at === this.marked) },
        });
        const words = make("span", { textContent: one.fresh ? `New class “${one.label}”` : one.label });
        const examples = one.fresh || !one.examples.length ? [] : [thumb(one.examples[0])];
        row.append(make("span", { className: "option" }, ...examples, words));
        row.append(make("small", { textContent: one.fresh ? "Shift+Enter" : many(one.count) }));
        return row;
      }),
    );
    this.field.setAttribute("aria-activedescendant", this.options.length ? `${this.list.id}-${this.marked}` : "");
    this.list.children[this.marked]?.scrollIntoView({ block: "nearest" });
  }

  async key(event) {
    event.stopPropagation();
    if (event.key === "Escape") return this.hide();
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      return this.mark(this.marked + (event.key === "ArrowDown" ? 1 : -1));
    }
    if (event.key === "Tab" && this.options[this.marked] && this.options[this.marked].label !== this.typed) {
      event.preventDefault();
      this.field.value = this.options[this.marked].label;
      return this.search();
    }
    if (event.key !== "Enter" || event.isComposing || !this.typed) return;
    event.preventDefault();
    if (event.shiftKey) return this.take({ label: this.typed, fresh: true });
    if (this.answered !== this.typed) await this.search(); // typed faster than it was searched
    const one = this.options[this.marked];
    if (one) this.take(one);
  }

  take(one) {
    this.hide();
    this.choose(one.label, one.fresh);
  }
}
