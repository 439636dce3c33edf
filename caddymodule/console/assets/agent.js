// One agent: what the gateway knows of it, what it does, and the settings in force.
import { follow, get } from "./api.js";
import { agentFacts, foldedCard, list } from "./agents.js";
import { badge, clean, differs, el, id, incomplete, link, message, setText, table } from "./dom.js";
import { count, figures } from "./figures.js";
import { followFailures, whose } from "./overview.js";

export const title = "Agent";

export async function show(main, query, signal) {
  const { partner } = query;
  const heading = el("h1", {}, clean(partner));
  const note = el("div", { "aria-live": "polite" });
  const facts = el("div");
  const of = el("p", { class: "count" });
  const lacks = incomplete();
  const numbers = figures(query);
  const failures = el("div");
  const settings = el("div", { class: "settings" });
  main.append(heading, note, facts,
    el("p", { class: "links" }, el("a", { href: link("tasks", { partner }), "data-row": true }, "Its tasks"), " ",
      el("a", { href: link("streams", { partner }), "data-row": true }, "Its open streams"), " ",
      el("a", { href: link("deliveries", { partner }), "data-row": true }, "Its deliveries")),
    lacks.element, of, numbers.element,
    el("h2", {}, "Last failures"), failures, foldedCard(partner, signal),
    el("h2", {}, "Settings in force"), settings);
  followFailures(failures, { partner }, signal);
  follow(signal, 30_000, async () => {
    const { settings: all } = await get("agents/settings", { partner }, signal);
    if (differs(settings, all)) settings.replaceChildren(settingTable(all));
  }, (text) => {
    if (differs(settings, text)) settings.replaceChildren(message(text, "error"));
  });
  await follow(signal, 5000, async () => {
    const overview = await get("overview", { partner }, signal);
    const [agent] = overview.agents;
    if (differs(note, "")) note.replaceChildren();
    if (differs(heading, [agent.name, agent.state])) heading.replaceChildren(clean(agent.name), " ", badge(agent.state));
    const { calls, errors, failed_tasks: failed, first_event: first, rest, ...known } = agent;
    if (differs(facts, known)) facts.replaceChildren(list(allFacts(agent)));
    lacks.update(overview.missing);
    setText(of, whose(overview));
    numbers.update(overview);
  }, (text) => {
    if (differs(note, text)) note.replaceChildren(message(text, "error"));
  });
}

function allFacts(agent) {
  const facts = [...agentFacts(agent), ["Requests now", `${count(agent.running)} open, ${count(agent.queued)} queued`]];
  if (agent.url) facts.splice(1, 0, ["URL", id(agent.url, 60)]);
  return facts;
}

function settingTable(settings) {
  return table(["Setting", "Value"], settings.map((s) => [
    el("span", { class: "id" }, clean(s.name)), [el("span", { class: "id" }, clean(s.value)), s.secret ? " (secret)" : ""],
  ]));
}
