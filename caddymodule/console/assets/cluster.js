// The gateways that share a store, and which of them works on what.
import { follow, get } from "./api.js";
import { badge, bytes, clean, differs, el, incomplete, message, table, time } from "./dom.js";

export const title = "Cluster";

export async function show(main, query, signal) {
  const nodes = el("div", { "aria-live": "polite" });
  const shards = el("div");
  const lacks = incomplete();
  main.append(el("h1", {}, title),
    el("p", {}, "The gateways that share the store. Each shard is a part of the tasks, on which one gateway works."),
    lacks.element, nodes, el("h2", {}, "Shards"), shards);
  await follow(signal, 2000, async () => {
    const report = await get("cluster", {}, signal);
    lacks.update(report.missing);
    if (differs(nodes, report.nodes)) nodes.replaceChildren(nodeTable(report.nodes, report.node));
    if (differs(shards, report.shards)) shards.replaceChildren(shardTable(report.shards));
  }, (text) => {
    if (differs(nodes, text)) nodes.replaceChildren(message(text, "error"));
  });
}

function nodeTable(nodes, here) {
  return table(["Gateway", "State", "Shards", "Started", "Heard of", "Version", "Partners"], nodes.map((n) => [
    el("span", { class: "id" }, clean(n.name), n.name === here ? " (this one)" : ""), badge(n.state), clean(n.shards),
    time(n.started), time(n.heard), clean(n.version), el("span", { class: "id" }, clean((n.partners ?? []).join(" "))),
  ]));
}

function shardTable(shards) {
  return table(["Shard", "Owner", "Epoch", "Since", "Lag", "Size", "Stream"], shards.map((s) => [
    clean(s.shard), [s.owner ? el("span", { class: "id" }, clean(s.owner)) : badge("none"),
      s.should ? ` moves to ${clean(s.should)}` : ""], clean(s.epoch), time(s.since),
    [clean(s.lag), ...(s.down ?? []).map((server) => [" ", badge("down"), " ", clean(server)]).flat()], bytes(s.bytes),
    el("span", { class: "id" }, clean(s.stream)),
  ]));
}
