// A Leader to try a Partner with: the operator.
import { get, post } from "./api.js";
import { action } from "./actions.js";
import { clean, el, link, message } from "./dom.js";

export const title = "Try";

export async function show(main, query, signal, may) {
  main.append(el("h1", {}, title));
  if (!may.has("try")) {
    main.append(message("This console may not try Partners: its site has no allow try."));
    return;
  }
  const { agents = [] } = await get("health/ready", {}, signal);
  if (agents.length === 0) {
    main.append(message("No aip_gateway is configured."));
    return;
  }
  const said = el("div", { "aria-live": "polite" });
  const partner = el("select", { name: "partner" }, agents.map((agent) =>
    el("option", { value: agent.partner, selected: [agent.partner, agent.name].includes(query.partner) }, clean(agent.name))));
  const text = el("textarea", { name: "text", rows: "5", spellcheck: "false" });
  main.append(el("p", {}, "Start a task as the operator. Its page shows the answer while the agent writes it."),
    el("div", { class: "try" }, el("label", {}, "Agent", partner), el("label", {}, "Message", text),
      el("p", { class: "actions" }, action("Start the task", async () => {
        const task = await post("try", {}, { partner: partner.value, command: "start", text: text.value });
        location.hash = link("task", { partner: task.partner, leader: task.leader, task: task.task });
      }, (why) => said.replaceChildren(message(why, "error"))))), said);
  text.focus();
}

// answerForm continues and completes a task of the operator. update is called with the task's state.
export function answerForm(name, failed) {
  const text = el("textarea", { rows: "3", spellcheck: "false", "aria-label": "Message" });
  const send = (command) => async () => {
    await post("try", {}, { partner: name.partner, command, task: name.task, text: text.value });
    text.value = "";
  };
  const proceed = action("Continue", send("continue"), failed);
  const complete = action("Complete", send("complete"), failed);
  const element = el("div", { class: "try", hidden: true }, text, el("p", { class: "actions" }, proceed, complete));
  return {
    element,
    update(state) {
      element.hidden = !state.startsWith("awaiting-");
      complete.hidden = state !== "awaiting-completion";
    },
  };
}
