// Notifications that were not delivered, and the endpoints of webhooks.
import { follow, get, post } from "./api.js";
import { action, confirmDialog } from "./actions.js";
import { agentName, badge, clean, differs, duration, el, id, incomplete, link, message, shorten, table, time,
  withGateway } from "./dom.js";
import { Pager } from "./pager.js";

export const title = "Deliveries";

export async function show(main, query, signal, may) {
  const note = el("div", { "aria-live": "polite" });
  const list = el("div");
  const endpoints = el("div");
  const lacks = incomplete();
  const tools = el("p", { class: "actions" });
  const pager = new Pager(signal, run);
  const select = el("select", { name: "status" }, el("option", { value: "" }, "all"),
    ["pending", "failing", "dead", "disabled"].map((status) =>
      el("option", { value: status, selected: query.status === status }, status)));
  select.addEventListener("change", () => {
    query = { status: select.value };
    history.replaceState(null, "", link("deliveries", query));
    pager.turn("");
  });
  const failed = (text) => note.replaceChildren(message(text, "error"));
  if (may.has("replay")) {
    tools.append(action("Replay all dead letters", async () => {
      if (!await confirmDialog("Replay all dead letters?", "Each is sent to its webhook again.")) return;
      const { replayed } = await post("deliveries/replay", { status: "dead" });
      note.replaceChildren(message(replayed === 1 ? "1 notification is sent again." : `${replayed} notifications are sent again.`));
      pager.turn("");
    }, failed));
  }
  main.append(el("h1", {}, title), el("p", {}, "Notifications that were not delivered yet, or were given up (dead letters)."),
    el("form", { class: "filters", role: "search" }, el("label", {}, "Status", select)), tools, note, lacks.element, list,
    el("p", { class: "pager" }, pager.first, pager.more), el("h2", {}, "Endpoints"), endpoints);

  function run(view) {
    follow(view, 3000, async () => {
      const page = await get("deliveries", { ...query, after: pager.after, limit: 100 }, view);
      pager.shown(page.next);
      lacks.update(page.missing);
      if (differs(list, page)) list.replaceChildren(page.deliveries.length > 0 ? deliveryTable(page.deliveries, may, failed)
        : message(query.status ? "No delivery has this status." : "All notifications are delivered."));
    }, (text) => {
      if (differs(list, text)) list.replaceChildren(message(text, "error"));
    });
  }

  pager.turn("");
  await follow(signal, 3000, async () => {
    const { endpoints: all } = await get("endpoints", {}, signal);
    if (differs(endpoints, all)) endpoints.replaceChildren(all.length > 0 ? endpointTable(all, may, failed)
      : message("No endpoint is in use: no task has a webhook."));
  }, (text) => {
    if (differs(endpoints, text)) endpoints.replaceChildren(message(text, "error"));
  });
}

// deliveryTable shows deliveries with their attempts.
export function deliveryTable(deliveries, may, failed = () => {}) {
  return table(...withGateway(deliveries, ["Status", "Task", "Agent", "State", "Endpoint", "Attempts", "Last attempt",
    "Next attempt", ""], (d) => [
    badge(d.status),
    el("a", { href: link("task", { partner: d.partner, leader: d.leader, task: d.task }), class: "id", title: clean(d.task),
      "data-row": true }, `${shorten(d.task, 30)} · event ${d.event}`),
    agentName(d), badge(d.state), el("span", { class: "id" }, clean(d.endpoint)), attemptsOf(d),
    el("span", { title: lastAttempt(d) }, lastAttempt(d)), time(d.next),
    d.status === "dead" && may.has("replay")
      ? action("Replay", () => post("deliveries/replay", { id: d.id }), failed) : "",
  ]));
}

// webhookTable shows the webhooks of a task, and how far each is.
export function webhookTable(webhooks) {
  return table(["Webhook", "Endpoint", "States", "Status", "Up to event", "Pending", "Dead letters", "Attempts", "Last attempt",
    "Next attempt"], webhooks.map((w) => [
    id(w.webhook), el("span", { class: "id" }, clean(w.endpoint)),
    (w.states ?? []).length > 0 ? w.states.map(clean).join(", ") : "all",
    [badge(w.status), w.disabled_reason ? ` ${clean(w.disabled_reason)}` : ""],
    String(w.reached), String(w.pending), String(w.dead), String(w.attempts), el("span", { title: lastAttempt(w) }, lastAttempt(w)), time(w.next),
  ]));
}

// unfolded has the ids of deliveries whose attempts are unfolded: they stay so when the table changes.
const unfolded = new Set();

// attemptsOf shows how many attempts were made, and the last ones when it is unfolded.
function attemptsOf({ id: name, attempts, recent_attempts: recent = [] }) {
  if (recent.length === 0) return String(attempts);
  const details = el("details", { class: "attempts", open: unfolded.has(name) }, el("summary", {}, String(attempts)));
  const fill = () => {
    if (details.childElementCount > 1) return;
    details.append(el("ol", {}, recent.map((a) =>
      el("li", {}, time(a.at), ` for ${duration(a.duration_ms)}: `, result(a.status, a.error)))));
  };
  if (details.open) fill();
  details.addEventListener("toggle", () => {
    if (!details.open) {
      unfolded.delete(name);
      return;
    }
    unfolded.add(name);
    fill();
  });
  return details;
}

// lastAttempt says how the last attempt has ended.
function lastAttempt({ last_status: status, last_error: why }) {
  return result(status, why) || "none";
}

function result(status, why) {
  return (status ? `HTTP ${status} ` : "") + clean(why);
}

function endpointTable(endpoints, may, failed) {
  return table(...withGateway(endpoints, ["Endpoint", "State", "In flight", "Queued", "Failures", "Until", ""], (e) => [
    el("span", { class: "id" }, clean(e.endpoint)), badge(e.state), String(e.in_flight), String(e.queued),
    String(e.failures), time(e.until),
    !may.has("endpoints") ? "" : e.state === "disabled"
      ? action("Enable", () => post("endpoints/enable", {}, { endpoint: e.endpoint }), failed)
      : action("Disable", () => post("endpoints/disable", {}, { endpoint: e.endpoint }), failed),
  ]));
}
