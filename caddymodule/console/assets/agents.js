// The agents behind the gateway, with their cards, and whether the gateway accepts new tasks.
import { follow, get, RequestError } from "./api.js";
import { badge, clean, differs, el, fold, id, link, message, time } from "./dom.js";

export const title = "Agents";

export async function show(main, query, signal) {
  const gateway = el("div", { "aria-live": "polite" });
  const agents = el("div", { class: "cards" });
  const cards = new Map(); // what is unfolded stays so
  const cardOf = ({ partner }) => {
    if (!cards.has(partner)) cards.set(partner, foldedCard(partner, signal));
    return cards.get(partner);
  };
  main.append(el("h1", {}, title), gateway, agents);
  await follow(signal, 3000, async () => {
    const health = await get("health/ready", {}, signal);
    if (!differs(gateway, health)) return;
    gateway.replaceChildren(...gatewayHealth(health));
    agents.replaceChildren(...(health.agents ?? []).map((agent) => agentHealth(agent, cardOf(agent))));
    if (!health.agents?.length) agents.replaceChildren(message("No aip_gateway is configured."));
  }, (text) => {
    if (differs(gateway, text)) gateway.replaceChildren(message(text, "error"));
  });
}

function gatewayHealth(health) {
  const streams = health.streams ?? 0;
  const out = [el("p", {}, "The gateway is ", badge(health.status),
    health.store ? `; it stores tasks by ${clean(health.store.driver)}.` : ".",
    " ", el("a", { href: link("streams") },
      streams === 0 ? "No stream" : streams === 1 ? "1 stream" : `${clean(streams)} streams`),
    ` ${streams === 0 || streams === 1 ? "is" : "are"} open.`)];
  for (const reason of health.reasons ?? []) out.push(message(reason, "error"));
  for (const roots of health.roots ?? []) out.push(...rootsHealth(roots));
  if (health.revocation?.length) {
    out.push(el("h2", {}, "Revoked certificates"), el("div", { class: "cards" }, health.revocation.map(sourceHealth)));
  }
  return out;
}

function rootsHealth(roots) {
  const out = [];
  if (roots.removed?.length) {
    out.push(message(`Roots that were taken out of ${roots.files}: ${roots.removed.join(", ")}.`));
  }
  if (roots.not_in_use?.length) {
    out.push(message(`Roots in ${roots.files} that need caddy reload --force: ${roots.not_in_use.join(", ")}.`, "error"));
  }
  if (roots.reason) out.push(message(`The roots cannot be read again: ${roots.reason}`, "error"));
  return out;
}

function sourceHealth(source) {
  const facts = [
    ["Issuer", clean(source.issuer || "none yet")],
    ["Revoked", clean(source.entries ?? 0)],
    ["Last good answer", time(source.good)],
    ["Next one due", time(source.next_update)],
  ];
  if (source.reason) facts.push(["Why nothing newer", clean(source.reason)]);
  return el("article", { class: "card" },
    el("h3", { class: "id" }, clean(source.location), " ", badge(source.reason ? "down" : "up")), list(facts));
}

function agentHealth(agent, card) {
  const facts = [
    ["Tasks", el("a", { href: link("tasks", { partner: agent.name }), "data-row": true }, "of this agent")],
    ...agentFacts(agent),
  ];
  return el("article", { class: "card" }, el("h2", {},
    el("a", { href: link("agent", { partner: agent.name }) }, clean(agent.name)), " ", badge(agent.state)), list(facts), card);
}

// agentFacts are what the gateway knows of an agent, in terms and values.
export function agentFacts(agent) {
  const facts = [
    ["Partner", id(agent.partner, 40)],
    ["Agent", el("span", { class: "id" }, clean(agent.agent))],
    ["Dialect", clean(agent.dialect || "not found out yet")],
    ["Last answered", time(agent.answered)],
    ["Last failed", time(agent.failed)],
  ];
  if (agent.reason) facts.push(["Why", clean(agent.reason)]);
  return facts;
}

// list shows terms and values.
export function list(facts) {
  return el("dl", { class: "facts" }, facts.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
}

// foldedCard reads and shows the agent's card when it is unfolded.
export function foldedCard(partner, signal) {
  const contents = el("div", { "aria-live": "polite" });
  const details = el("details", { class: "agent-card" }, el("summary", {}, "Card"), contents);
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    try {
      const card = await get("agents/card", { partner }, signal);
      if (differs(contents, card)) contents.replaceChildren(...cardContents(card));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof RequestError)) throw error;
      if (differs(contents, error.message)) contents.replaceChildren(message(error.message, "error"));
    }
  });
  return details;
}

function cardContents(card) {
  if (card.reason) return [message(`There is no card: ${card.reason}.`)];
  const can = [card.streaming && "streams", card.push && "notifies webhooks"].filter(Boolean).join(", ");
  const facts = [
    ["Name", clean(card.name)], ["Description", clean(card.description)], ["Version", clean(card.version)],
    ["Provider", clean(card.provider || "none named")], ["Can", can || "neither stream nor notify"],
    ["Signed", card.signed ? "yes" : "no"], ["Changed", time(card.changed)],
    ["Interfaces", el("ul", {}, (card.interfaces ?? []).map((one) =>
      el("li", { class: "id" }, clean([one.binding, one.version, one.url].filter(Boolean).join(" ")))))],
    ["Skills", el("ul", {}, (card.skills ?? []).map((skill) =>
      el("li", {}, el("strong", {}, clean(skill.name || skill.id)), ` ${clean(skill.description)}`,
        skill.tags?.length ? ` (${skill.tags.map(clean).join(", ")})` : "")))],
  ];
  return [list(facts), fold("card", el("summary", {}, "As the agent has sent it"), card.card)];
}
