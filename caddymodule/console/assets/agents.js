// The agents behind the gateway, and whether the gateway accepts new tasks.
import { follow, get } from "./api.js";
import { badge, clean, differs, el, link, message, time } from "./dom.js";

export const title = "Agents";

export async function show(main, query, signal) {
  const gateway = el("div", { "aria-live": "polite" });
  const agents = el("div", { class: "cards" });
  main.append(el("h1", {}, title), gateway, agents);
  await follow(signal, 3000, async () => {
    const health = await get("health/ready", {}, signal);
    if (!differs(gateway, health)) return;
    gateway.replaceChildren(...gatewayHealth(health));
    agents.replaceChildren(...(health.agents ?? []).map(agentCard));
    if (!health.agents?.length) agents.replaceChildren(message("No aip_gateway is configured."));
  }, (text) => {
    if (differs(gateway, text)) gateway.replaceChildren(message(text, "error"));
  });
}

function gatewayHealth(health) {
  const out = [el("p", {}, "The gateway is ", badge(health.status),
    health.store ? `; it stores tasks by ${clean(health.store.driver)}.` : ".")];
  for (const reason of health.reasons ?? []) out.push(message(reason, "error"));
  return out;
}

function agentCard(agent) {
  const facts = [
    ["Partner", el("a", { href: link("tasks", { partner: agent.partner }), "data-row": true }, clean(agent.partner))],
    ["Dialect", clean(agent.dialect || "not found out yet")],
    ["Last answered", time(agent.answered)],
    ["Last failed", time(agent.failed)],
  ];
  if (agent.reason) facts.push(["Why", clean(agent.reason)]);
  return el("article", { class: "card" }, el("h2", { class: "id" }, clean(agent.agent), " ", badge(agent.state)),
    el("dl", { class: "facts" }, facts.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)])));
}
