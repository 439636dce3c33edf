// What the rules of policies have decided, and what quotas have counted.
import { follow, get } from "./api.js";
import { agentName, badge, bytes, clean, differs, el, id, message, table } from "./dom.js";
import { Pager } from "./pager.js";

export const title = "Policy";

export async function show(main, query, signal) {
  const rules = el("div", { "aria-live": "polite" });
  const quotas = el("div");
  const pager = new Pager(signal, run);
  main.append(el("h1", {}, title),
    el("p", {}, "Rules in the order in which they are asked, and quotas, with what they have decided since the process began."),
    rules, el("h2", {}, "Used of quotas"), quotas, el("p", { class: "pager" }, pager.first, pager.more));

  function run(view) {
    follow(view, 3000, async () => {
      const page = await get("quotas", { after: pager.after, limit: 100 }, view);
      pager.shown(page.next);
      if (differs(quotas, page)) quotas.replaceChildren(page.quotas.length > 0 ? useTable(page.quotas)
        : message("No quota has counted anything."));
    }, (text) => {
      if (differs(quotas, text)) quotas.replaceChildren(message(text, "error"));
    });
  }

  pager.turn("");
  await follow(signal, 3000, async () => {
    const list = await get("policy", {}, signal);
    if (differs(rules, list)) rules.replaceChildren(list.rules.length > 0 ? ruleTable(list.rules)
      : message("There are no rules and no quotas: every caller who is known may make every call."));
  }, (text) => {
    if (differs(rules, text)) rules.replaceChildren(message(text, "error"));
  });
}

function ruleTable(rules) {
  return table(["Agent", "Rule", "Kind", "Allowed", "Denied", "Would be denied"], rules.map((r) => [
    agentName(r), el("span", { class: "id" }, clean(r.name)),
    [badge(r.kind), r.tried ? " only tried" : ""], r.kind === "quota" ? "–" : clean(r.allowed), clean(r.denied), clean(r.dry_run),
  ]));
}

function useTable(uses) {
  return table(["Quota", "Of", "Day (UTC)", "Starts", "Bytes"], uses.map((u) => [
    el("span", { class: "id" }, clean(u.quota)), u.of ? id(u.of) : "all together",
    clean(u.day.slice(0, 10)), clean(u.starts), bytes(u.bytes),
  ]));
}
