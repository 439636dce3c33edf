// The pages of a list, which have two buttons.
import { el } from "./dom.js";

export class Pager {
  after = ""; // where the page begins: empty for the first one
  #next = ""; // where the next one begins: empty on the last one
  #view = new AbortController();
  #signal;
  #show;

  // show is called with the signal of each page that is turned to, which is aborted when another one is.
  constructor(signal, show) {
    this.#signal = signal;
    this.#show = show;
    this.first = el("button", { type: "button", "data-key": "first", disabled: true, onclick: () => this.turn("") },
      "First page");
    this.more = el("button", { type: "button", "data-key": "next", disabled: true, onclick: () => this.turn(this.#next) },
      "Next page");
  }

  turn(to) {
    this.after = to;
    this.#view.abort();
    this.#view = new AbortController();
    this.#show(AbortSignal.any([this.#signal, this.#view.signal]));
  }

  // shown says where the page after the one that is shown begins.
  shown(next) {
    this.#next = next ?? "";
    this.first.disabled = this.after === "";
    this.more.disabled = this.#next === "";
  }
}
