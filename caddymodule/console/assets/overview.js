// All at a glance: the agents, what they do, and what fails.
import { follow, get } from "./api.js";
import { agentName, badge, clean, differs, duration, el, head, incomplete, link, message, setText, shorten, table,
  time } from "./dom.js";
import { both, count, figures, percent } from "./figures.js";

export const title = "Overview";

export async function show(main, query, signal) {
  const state = el("div", { "aria-live": "polite" });
  const of = el("p", { class: "count" });
  const lacks = incomplete();
  const numbers = figures({});
  const agents = agentTable();
  const failures = el("div");
  main.append(el("h1", {}, title), state, lacks.element, of, numbers.element,
    el("h2", {}, "Agents"), agents.element, el("h2", {}, "Last failures"), failures);
  followFailures(failures, {}, signal);
  await follow(signal, 5000, async () => {
    const [overview, health] = await Promise.all(
      [get("overview", {}, signal), get("health/ready", {}, signal)]);
    const notes = health.status === "ready" ? [] : health.reasons ?? [health.status];
    if (differs(state, notes)) state.replaceChildren(...notes.map((text) => message(`Not ready: ${text}`, "error")));
    lacks.update(overview.missing);
    setText(of, whose(overview));
    numbers.update(overview);
    agents.update(overview);
  }, (text) => {
    if (differs(state, text)) state.replaceChildren(message(text, "error"));
  });
}

// whose says which gateways have counted, and for how long.
export function whose(overview) {
  const gateways = overview.gateways?.length > 1 ? `Of ${overview.gateways.map(clean).join(", ")} together. ` : "";
  return `${gateways}Counted since the start, ${duration(Date.now() - Date.parse(overview.since))} ago.`;
}

// agentTable makes a table of agents whose rows stay the same.
function agentTable() {
  const names = ["Agent", "Health", "Calls", "Errors", "Failed tasks", "Running", "Queued", "First event p50 · p99",
    "Rest p50 · p99"];
  const rows = new Map();
  const body = el("tbody");
  const note = el("div");
  const list = el("table", { hidden: true }, head(names), body);
  return {
    element: el("div", { class: "scroll" }, note, list),
    update(overview) {
      const known = new Set(overview.agents.map(({ partner }) => partner));
      for (const [partner, row] of rows) {
        if (known.has(partner)) continue;
        row.element.remove();
        rows.delete(partner);
      }
      overview.agents.forEach((agent, i) => {
        let row = rows.get(agent.partner);
        if (!row) rows.set(agent.partner, row = agentRow(names, agent));
        row.update(agent);
        if (body.children[i] !== row.element) body.insertBefore(row.element, body.children[i] ?? null);
      });
      list.hidden = known.size === 0;
      if (differs(note, list.hidden)) note.replaceChildren(list.hidden ? message("No aip_gateway is configured.") : "");
    },
  };
}

function agentRow(names, { name, partner }) {
  const failed = el("a", { href: link("tasks", { partner: name, state: "failed" }) });
  const cells = names.map((label) => el("td", { "data-label": label }));
  const [agent, health, calls, errors, failures, running, queued, first, rest] = cells;
  const shown = el("a", { href: link("agent", { partner: name }), title: clean(partner), "data-row": true });
  agent.append(shown);
  failures.append(failed);
  return {
    element: el("tr", {}, cells),
    update(now) {
      setText(shown, clean(now.name));
      if (differs(health, [now.state, now.reason])) {
        health.replaceChildren(el("span", { title: clean(now.reason) }, badge(now.state), " ",
          el("span", { class: "why" }, clean(now.reason))));
      }
      setText(calls, count(now.calls));
      setText(errors, percent(now.errors, now.calls));
      setText(failed, count(now.failed_tasks));
      setText(running, count(now.running));
      setText(queued, count(now.queued));
      setText(first, both(now.first_event));
      setText(rest, both(now.rest));
    },
  };
}

// followFailures shows the tasks of a query that have failed last, with the reason of each.
export function followFailures(element, query, signal) {
  const note = el("div", { "aria-live": "polite" });
  const list = el("div");
  element.append(note, list);
  follow(signal, 5000, async () => {
    const { tasks } = await get("tasks", { ...query, state: ["failed", "rejected"], limit: 10 }, signal);
    if (differs(note, "")) note.replaceChildren();
    if (!differs(list, tasks)) return;
    list.replaceChildren(tasks.length === 0 ? message("No task has failed.") : table(
      ["Task", "State", "Since", "Agent", "Reason"], tasks.map((t) => [
        el("a", { href: link("task", { partner: t.partner, leader: t.leader, task: t.task }), class: "id", title: clean(t.task),
          "data-row": true }, shorten(t.task, 36)),
        badge(t.state), time(t.since), agentName(t), el("span", { title: clean(t.reason) }, clean(t.reason || "–")),
      ])));
  }, (text) => {
    if (differs(note, text)) note.replaceChildren(message(text, "error"));
  });
}
