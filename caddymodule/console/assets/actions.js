// What changes something: a button that waits for its answer, and the question before it.
import { RequestError } from "./api.js";
import { el } from "./dom.js";

// action makes a button. run changes something; failed is called with a sentence if that fails.
export function action(label, run, failed) {
  const button = el("button", { type: "button", class: "act" }, label);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await run();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      failed(error.message);
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

// reasonDialog asks whether, and why. It returns the reason, which may be empty, or null for no.
export function reasonDialog(title, text) {
  const input = el("input", { name: "reason", maxlength: "1000", autocomplete: "off" });
  return ask(title, [el("p", {}, text), el("label", {}, "Reason", input)], () => input.value);
}

// confirmDialog asks whether.
export function confirmDialog(title, text) {
  return ask(title, [el("p", {}, text)], () => true).then(Boolean);
}

function ask(title, contents, valueOf) {
  return new Promise((resolve) => {
    let result = null;
    const dialog = el("dialog", { "aria-label": title }, el("form", {},
      el("h2", {}, title), contents,
      el("p", { class: "actions" }, el("button", { type: "submit", class: "act" }, "Yes"),
        el("button", { type: "button", onclick: () => dialog.close() }, "No"))));
    dialog.addEventListener("submit", (event) => {
      event.preventDefault();
      result = valueOf();
      dialog.close();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
