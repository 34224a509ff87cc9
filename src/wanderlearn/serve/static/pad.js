// The drawing pad: draw a character, hear whether it is new or which one it is, give it a name.

import { tell } from "./api.js";
import { Naming } from "./naming.js";
import { $, showGuess, showRanking, toast } from "./parts.js";

const WIDTH = 32; // of the pen, of 560: about two of the 28 pixels that the encoders for drawings see
const PAUSE = 350; // milliseconds after a stroke until the agent looks

export class Pad {
  constructor({ act, undo }) {
    this.act = act;
    this.canvas = $("pad");
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.answer = null;
    this.drawn = false;
    this.looks = 0;
    this.naming = new Naming($("pad-naming"), { choose: (label) => this.tell(label), closed: () => this.canvas.focus() });
    this.clear();
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.end(event));
    $("pad-clear").onclick = () => this.clear();
    $("pad-accept").onclick = () => this.accept();
    $("pad-name").onclick = () => this.drawn && this.naming.show();
    $("pad-undo").onclick = undo;
    this.undo = undo;
  }

  shown() {
    this.canvas.focus({ preventScroll: true });
  }

  clear() {
    const { context, canvas } = this;
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.strokeStyle = context.fillStyle = "#111";
    context.lineWidth = WIDTH;
    context.lineCap = context.lineJoin = "round";
    this.drawn = false;
    this.pen = null;
    this.setAnswer(null);
    $("pad-hint").hidden = false;
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  begin(event) {
    if (event.button || this.pen !== null) return;
    event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    this.pen = event.pointerId;
    this.drawn = true;
    this.looks++; // what is being looked at is not what is being drawn
    clearTimeout(this.timer);
    $("pad-hint").hidden = true;
    this.last = this.point(event);
    this.context.beginPath();
    this.context.arc(...this.last, WIDTH / 2, 0, 2 * Math.PI);
    this.context.fill();
  }

  move(event) {
    if (event.pointerId !== this.pen) return;
    const steps = event.getCoalescedEvents?.() || [];
    for (const step of steps.length ? steps : [event]) {
      const next = this.point(step);
      this.context.beginPath();
      this.context.moveTo(...this.last);
      this.context.lineTo(...next);
      this.context.stroke();
      this.last = next;
    }
  }

  end(event) {
    if (event.pointerId !== this.pen) return;
    this.pen = null;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), PAUSE);
  }

  // The drawing at half its size: enough for any encoder, and small to send.
  png() {
    const small = document.createElement("canvas");
    small.width = small.height = this.canvas.width / 2;
    small.getContext("2d").drawImage(this.canvas, 0, 0, small.width, small.height);
    return small.toDataURL("image/png").split(",")[1];
  }

  async look() {
    const looks = ++this.looks;
    try {
      const { answer } = await tell("draw", { png: this.png() });
      if (looks === this.looks) this.setAnswer(answer);
    } catch (error) {
      toast(error.status ? error.message : "The assistant does not answer. Is it still running?");
    }
  }

  setAnswer(answer) {
    this.answer = answer;
    $("pad-accept").disabled = $("pad-name").disabled = !answer;
    $("pad-accept-words").textContent = answer && answer.new ? "Name it" : "Accept";
    if (answer) {
      showGuess($("pad-guess"), $("pad-eyebrow"), answer);
      $("pad-reason").textContent = answer.reason;
    } else {
      $("pad-guess").className = "guess";
      $("pad-guess").textContent = "Draw something";
      $("pad-eyebrow").textContent = "Drawing pad";
      $("pad-reason").textContent = "It says which character it is, or that it is new. Give it a name, and it knows it from then on.";
    }
    showRanking($("pad-ranking"), answer, (label) => this.tell(label));
  }

  accept() {
    if (!this.answer) return;
    if (this.answer.new) this.naming.show();
    else this.tell(this.answer.label);
  }

  async tell(label) {
    if (!this.drawn) return;
    if (await this.act("name", { png: this.png(), label })) {
      toast(`Learnt: “${label}”. Draw it again, or another one.`);
      this.clear();
      this.canvas.focus({ preventScroll: true });
    }
  }

  key(event) {
    const { key } = event;
    if (key === "u") this.undo();
    else if (key === "Escape") this.clear();
    else if (!this.answer) return;
    else if (key === "Enter" || key === " ") {
      event.preventDefault();
      this.accept();
    } else if (/^[1-9]$/.test(key)) {
      const near = this.answer.ranking[Number(key) - 1];
      if (near) this.tell(near.label);
    } else if (key === "/" || (key.length === 1 && /\p{L}/u.test(key))) {
      event.preventDefault();
      this.naming.show(key === "/" ? "" : key);
    }
  }
}
