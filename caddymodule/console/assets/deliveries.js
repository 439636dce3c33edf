// Notifications that were not delivered, and the endpoints of webhooks.
import { follow, get, post } from "./api.js";
import { action, confirmDialog } from "./actions.js";
import { agentName, badge, bytes, clean, differs, duration, el, id, incomplete, link, message, shorten, table, time,
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
  const form = el("form", { class: "filters", role: "search", "aria-label": "Filter deliveries" });
  const select = el("select", { name: "status" }, el("option", { value: "" }, "all"),
    ["pending", "failing", "dead", "disabled"].map((status) =>
      el("option", { value: status, selected: query.status === status }, status)));
  form.append(el("label", {}, "Status", select), ...[["endpoint", "Endpoint or URL"], ["task", "Task id"], ["leader", "Leader"],
    ["since", "Since, such as 2h"]].map(([name, label]) =>
    el("label", {}, label, el("input", { name, value: query[name] ?? "", autocomplete: "off", spellcheck: "false" }))),
  el("button", { type: "submit" }, "Filter"));
  const filter = () => {
    query = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
    history.replaceState(null, "", link("deliveries", query));
    pager.turn("");
  };
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    filter();
  });
  const failed = (text) => note.replaceChildren(message(text, "error"));
  if (may.has("replay")) {
    tools.append(action("Replay dead letters of this filter", async () => {
      const of = { ...query, status: "dead" };
      const { selected = 0 } = await post("deliveries/replay", { ...of, dry_run: "true" });
      if (selected === 0) return failed("No dead letter matches the filter.");
      const title = selected === 1 ? "Replay 1 dead letter?" : `Replay ${selected} dead letters?`;
      if (!await confirmDialog(title, "Each is sent to its webhook again; at most 1000 at a time.")) return;
      const { replayed } = await post("deliveries/replay", of);
      note.replaceChildren(message(replayed === 1 ? "1 notification is sent again." : `${replayed} notifications are sent again.`));
      pager.turn("");
    }, failed));
  }
  main.append(el("h1", {}, title), el("p", {}, "Notifications that were not delivered yet, or were given up (dead letters)."),
    form, tools, note, lacks.element, list,
    el("p", { class: "pager" }, pager.first, pager.more), el("h2", {}, "Endpoints"), endpoints);

  function run(view) {
    follow(view, 3000, async () => {
      const page = await get("deliveries", { ...query, after: pager.after, limit: 100 }, view);
      pager.shown(page.next);
      lacks.update(page.missing);
      if (differs(list, page)) list.replaceChildren(page.deliveries.length > 0 ? deliveryTable(page.deliveries, may, failed)
        : message(Object.keys(query).length > 0 ? "No delivery matches the filter." : "All notifications are delivered."));
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
    [badge(d.status), d.disabled_reason ? ` ${clean(d.disabled_reason)}` : ""],
    el("a", { href: link("task", { partner: d.partner, leader: d.leader, task: d.task }), class: "id", title: clean(d.task),
      "data-row": true }, `${shorten(d.task, 30)} · event ${d.event}`),
    agentName(d), badge(d.state), el("span", { class: "id" }, clean(d.endpoint + (d.path ?? ""))), attemptsOf(d, may, failed),
    el("span", { title: lastAttempt(d) }, lastAttempt(d)), time(d.next),
    d.status === "dead" && may.has("replay")
      ? action("Replay", () => post("deliveries/replay", { id: d.id }), failed) : "",
  ]));
}

// webhookTable shows the webhooks of a task, and how far each is.
export function webhookTable(webhooks) {
  return table(["Webhook", "Endpoint", "States", "Status", "Up to event", "Pending", "Dead letters", "Attempts", "Last attempt",
    "Next attempt"], webhooks.map((w) => [
    id(w.webhook), el("span", { class: "id" }, clean(w.endpoint + (w.path ?? ""))),
    (w.states ?? []).length > 0 ? w.states.map(clean).join(", ") : "all",
    [badge(w.status), w.disabled_reason ? ` ${clean(w.disabled_reason)}` : ""],
    String(w.reached), String(w.pending), String(w.dead), String(w.attempts), el("span", { title: lastAttempt(w) }, lastAttempt(w)), time(w.next),
  ]));
}

// unfolded has the ids of deliveries whose attempts are unfolded: they stay so when the table changes.
const unfolded = new Set();

// attemptsOf shows how many attempts were made, and the last ones when it is unfolded.
function attemptsOf({ id: name, attempts, recent_attempts: recent = [] }, may, failed) {
  if (recent.length === 0) return String(attempts);
  const details = el("details", { class: "attempts", open: unfolded.has(name) }, el("summary", {}, String(attempts)));
  const fill = () => {
    if (details.childElementCount > 1) return;
    details.append(el("ol", {}, recent.map((a) =>
      el("li", {}, time(a.at), ` for ${duration(a.duration_ms)}: `, result(a.status, a.error)))));
    if (may.has("replay")) details.append(action("Bodies", () => showBodies(details, { id: name }), failed));
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

// showBodies shows what was sent and answered, as text.
async function showBodies(place, query) {
  const { kept, attempts } = await get("deliveries/attempts", query);
  const text = attempts.length > 0 ? null : kept ? "No attempt is kept any more."
    : "No bodies are kept: the configuration has no notify { keep_bodies }.";
  const list = text ? message(text) : el("ol", {}, attempts.map((a) => el("li", {}, time(a.at),
    ` ${result(a.status, a.error)}`, bodyOf("Request", a.request), bodyOf("Answer", a.answer))));
  place.querySelector(".bodies")?.remove();
  place.append(el("div", { class: "bodies" }, list));
}

function bodyOf(name, { text, bytes: size }) {
  return [el("p", {}, `${name}, ${bytes(size)}`), text ? el("pre", { tabindex: "0" }, clean(text)) : ""];
}

// lastAttempt says how the last attempt has ended.
function lastAttempt({ last_status: status, last_error: why }) {
  return result(status, why) || "none";
}

function result(status, why) {
  return (status ? `HTTP ${status} ` : "") + clean(why);
}

function endpointTable(endpoints, may, failed) {
  return table(...withGateway(endpoints, ["Endpoint", "State", "In flight", "Queued", "Failures", "Last attempts", ""], (e) => [
    el("a", { class: "id", href: link("deliveries", { endpoint: e.endpoint }) }, clean(e.endpoint)),
    [badge(e.state), e.until ? [" until ", time(e.until)] : "", e.since ? [" by the operator since ", time(e.since)] : ""].flat(),
    String(e.in_flight), String(e.queued), String(e.failures), el("ul", { class: "urls" }, (e.urls ?? []).map((u) => el("li", {},
      el("a", { class: "id", href: link("deliveries", { endpoint: e.endpoint + u.path }) }, clean(u.path)), ` ${rateOf(u)}`))),
    !may.has("endpoints") ? "" : e.state === "disabled"
      ? action("Enable", () => post("endpoints/enable", {}, { endpoint: e.endpoint }), failed)
      : action("Disable", () => post("endpoints/disable", {}, { endpoint: e.endpoint }), failed),
  ]));
}

// rateOf says how the last attempts at a URL have ended.
function rateOf({ attempts, delivered, dead, median_ms: median, p95_ms: p95 }) {
  const letters = dead > 0 ? `, ${dead} dead` : "";
  if (!attempts) return `none lately${letters}`;
  return `${Math.floor(100 * delivered / attempts)} % of ${attempts} delivered in ${duration(median)}, 95 % in ${duration(p95)}${letters}`;
}
