// The groups in which Partners take part.
import { follow, get, post } from "./api.js";
import { action, confirmDialog } from "./actions.js";
import { agentName, badge, clean, differs, el, id, incomplete, link, message, time } from "./dom.js";

export const title = "Groups";

export async function show(main, query, signal, may) {
  const note = el("div", { "aria-live": "polite" });
  const list = el("div", { class: "cards" });
  const lacks = incomplete();
  main.append(el("h1", {}, title), query.group ? el("p", {}, el("a", { href: link("groups") }, "All groups")) : "", note, lacks.element, list);
  let lost = false; // the note says that the gateway does not answer
  const failed = (text) => note.replaceChildren(message(text, "error"));
  await follow(signal, 3000, async () => {
    const { groups: all, missing } = await get("groups", {}, signal);
    lacks.update(missing);
    const groups = query.group ? all.filter(({ group }) => group === query.group) : all;
    if (differs(list, groups)) list.replaceChildren(...(groups.length > 0 ? groups.map((group) => groupCard(group, may, failed))
      : [message(query.group ? "No Partner is in this group any more." : "No Partner is in a group. A Leader invites it: see the guide on groups.")]));
    if (lost) note.replaceChildren();
    lost = false;
  }, (text) => {
    lost = true;
    failed(text);
  });
}

function groupCard(g, may, failed) {
  const facts = [
    ["Agent", agentName(g)], ["Leader", id(g.leader_aic, 40)], ["Broker", `${clean(g.broker)} ${clean(g.vhost)}`],
    ["Members", el("ul", {}, g.members.map((member) => el("li", {}, id(member, 40))))],
    ["Since", time(g.since)], ["Tasks", String(g.tasks)],
    ["Lag", `${g.lag} task${g.lag === 1 ? "" : "s"} to be published, ${g.unconfirmed} messages unconfirmed`],
    ["Received", `${g.received} messages, ${g.executed} executed, ${g.ignored} ignored, ${g.poison} unreadable`],
    ["Published", `${g.published} messages, ${g.confirmed} confirmed`],
  ];
  if (g.gateway) facts.push(["Gateway", clean(g.gateway)]);
  if (g.muted) facts.push(["Muted", "yes"]);
  if (g.blocked) facts.push(["Blocked", "the broker takes no messages now"]);
  if (g.last_error) facts.push(["Last error", clean(g.last_error)], ["Next attempt", time(g.next_attempt)]);
  const card = el("article", { class: "card" }, el("h2", { class: "id" }, clean(g.group), " ", badge(g.state)),
    el("dl", { class: "facts" }, facts.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)])));
  if (may.has("leave")) {
    card.append(el("p", { class: "actions" }, action("Leave the group", async () => {
      if (!await confirmDialog("Leave the group?", "The Partner receives no more commands in it, until its Leader invites it again.")) return;
      await post("groups/leave", {}, { partner: g.partner, leader: g.leader, group: g.group });
    }, failed)));
  }
  return card;
}
