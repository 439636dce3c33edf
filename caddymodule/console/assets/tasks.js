// The list of tasks: filtered, in pages, and live.
import { bulkActions } from "./bulk.js";
import { Alarm, follow, get, RequestError, tail } from "./api.js";
import { agentName, badge, bytes, clean, differs, el, head, id, incomplete, link, message, setText, shorten, time } from "./dom.js";
import { Pager } from "./pager.js";

export const title = "Tasks";

const underWay = ["pending", "accepted", "working", "awaiting-input", "awaiting-completion"];
const states = [...underWay, "completed", "canceled", "failed", "rejected"];
const pageSize = 100;
const emptyPages = 20; // pages without a task that are skipped at most before the next look

const filters = [
  ["search", "Id, Leader or agent begins with"], ["leader", "Leader"], ["partner", "Agent"], ["session", "Session"],
];

// The columns, each with what its rows are sorted by when its head is pressed.
const columns = {
  Task: (t) => t.task, State: (t) => states.indexOf(t.state), Since: (t) => t.since, Agent: (t) => t.agent_name ?? t.partner,
  Events: (t) => t.last, Size: (t) => t.bytes, Leader: (t) => t.leader, Reason: (t) => t.reason ?? "",
  Gateway: (t) => t.gateway ?? "",
};

export async function show(main, query, signal, may) {
  const rows = new Map();

  const note = el("div", { "aria-live": "polite" });
  const body = el("tbody");
  const lacks = incomplete();
  const counts = el("p", { class: "counts" });
  const known = el("datalist", { id: "known" });
  const order = { column: "", up: true }; // of the rows that are shown; empty for the order of the gateway
  let agents = [];
  const count = el("span", { class: "count", role: "status" });
  const pager = new Pager(signal, run);
  const said = el("div", { "aria-live": "polite" }); // by actions
  const tools = el("p", { class: "actions" }, bulkActions(may, () => query,
    () => underWay.filter((state) => !query.state || state === query.state),
    (text, failed) => said.replaceChildren(message(text, failed ? "error" : undefined))));
  const form = el("form", { class: "filters", role: "search", "aria-label": "Filter tasks" },
    el("label", {}, "State", el("select", { name: "state" }, el("option", { value: "" }, "all"),
      states.map((state) => el("option", { value: state, selected: query.state === state }, state)))),
    filters.map(([name, label]) =>
      el("label", {}, label, el("input", { name, value: query[name] ?? "", autocomplete: "off", spellcheck: "false",
        list: "known" }))), known,
    el("label", {}, "Changed within", el("select", { name: "max_age" }, el("option", { value: "" }, "any time"),
      ["1m", "10m", "1h", "1d", "7d"].map((age) => el("option", { value: age, selected: query.max_age === age }, age)))),
    el("button", { type: "submit" }, "Filter"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    filter();
  });
  form.addEventListener("change", filter);

  function filter() {
    query = Object.fromEntries(new FormData(form));
    history.replaceState(null, "", link("tasks", query));
    pager.turn("");
  }

  function run(view) {
    const alarm = new Alarm();
    tail(view, { partner: query.partner, leader: query.leader }, alarm);
    follow(view, 10_000, () => load(view), (text) => note.replaceChildren(message(text, "error")), alarm);
  }

  async function load(view) {
    let page;
    let from = pager.after;
    for (let skipped = 0; ; skipped++) {
      page = await get("tasks", { ...query, after: from, limit: pageSize }, view);
      if (page.tasks.length > 0 || !page.next || skipped === emptyPages) break;
      from = page.next;
    }
    pager.shown(page.next);
    lacks.update(page.missing);
    render(page.tasks);
    const { search, leader, partner } = query;
    showCounts((await get("tasks/counts", { search, leader, partner }, view)).counts);
    if (page.tasks.length === 0 && Object.values(query).some(Boolean)) await sayWhatThereIs(view);
  }

  // showCounts shows how many tasks are in each state; a press selects these.
  function showCounts(list) {
    if (!differs(counts, [list, query.state])) return;
    counts.replaceChildren(...list.flatMap(({ state, count: n, more }) => [
      el("a", { href: link("tasks", { ...query, state: query.state === state ? "" : state }),
        "aria-current": query.state === state ? "true" : null }, badge(state), ` ${n}${more ? "+" : ""}`), " "]));
  }

  async function sayWhatThereIs(view) {
    const all = (await get("tasks/counts", {}, view)).counts;
    if (all.length === 0) return;
    const text = all.map(({ state, count: n, more }) => `${n}${more ? "+" : ""} ${state}`).join(", ");
    note.replaceChildren(message(`${emptyText()} There are ${text}; the agents are ${agents.join(", ") || "gone"}.`));
  }

  async function suggest(list) {
    const found = new Set([...agents, ...list.slice(0, 20).flatMap(({ leader, task }) => [leader, task])]);
    if (differs(known, [...found])) known.replaceChildren(...[...found].map((value) => el("option", { value: clean(value) })));
  }

  function sorted(list) {
    if (!order.column) return list;
    const of = columns[order.column];
    return [...list].sort((a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0) * (order.up ? 1 : -1));
  }

  function sortBy(name) {
    if (order.column !== name) Object.assign(order, { column: name, up: true });
    else if (order.up) order.up = false;
    else order.column = "";
    for (const head of table.querySelectorAll("th")) {
      const mine = head.textContent === order.column;
      if (mine) head.setAttribute("aria-sort", order.up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    render(shownTasks);
  }

  let shownTasks = [];

  function render(list) {
    shownTasks = list;
    suggest(list);
    list = sorted(list);
    const present = new Set();
    list.forEach((task, i) => {
      const key = JSON.stringify([task.partner, task.leader, task.task]);
      present.add(key);
      let row = rows.get(key);
      if (!row) rows.set(key, row = makeRow(task));
      row.update(task);
      if (body.children[i] !== row.element) body.insertBefore(row.element, body.children[i] ?? null);
    });
    for (const [key, row] of rows) {
      if (!present.has(key)) {
        row.element.remove();
        rows.delete(key);
      }
    }
    table.hidden = list.length === 0;
    table.toggleAttribute("data-shared", list.some(({ gateway }) => gateway));
    setText(count, list.length === 0 ? "" : `${list.length} task${list.length === 1 ? "" : "s"} on this page`);
    if (list.length > 0) note.replaceChildren();
    else note.replaceChildren(message(emptyText()));
  }

  function emptyText() {
    if (Object.values(query).some(Boolean)) return "No task matches the filter.";
    if (pager.after) return "No task is on this page any more. Go to the first page.";
    return "No task yet. Start one with: caddy aip call https://… start \"hello\"";
  }

  const table = el("table", { hidden: true },
    head(Object.keys(columns), (name) => el("button", { type: "button", class: "sort", onclick: () => sortBy(name) }, name)),
    body);
  try {
    agents = ((await get("health/ready", {}, signal)).agents ?? []).map(({ name }) => name);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error; // the names are suggestions only
  }
  main.append(el("h1", {}, title), form, counts, tools, said, note, lacks.element, el("div", { class: "scroll" }, table),
    el("p", { class: "pager" }, pager.first, pager.more, count));
  pager.turn("");
}

function makeRow(task) {
  const state = el("td", { "data-label": "State" });
  const since = el("td", { "data-label": "Since" });
  const events = el("td", { "data-label": "Events", class: "number" });
  const gateway = el("td", { "data-label": "Gateway", class: "shared" });
  const size = el("td", { "data-label": "Size", class: "number" });
  const reason = el("td", { "data-label": "Reason", class: "reason" });
  const { partner, leader, task: name } = task;
  const element = el("tr", {},
    el("td", { "data-label": "Task" },
      el("a", { href: link("task", { partner, leader, task: name }), class: "id", title: clean(name), "data-row": true },
        shorten(name, 36))),
    state, since, el("td", { "data-label": "Agent" }, agentName(task)), events, size,
    el("td", { "data-label": "Leader" }, id(leader)), reason, gateway);
  let shown = "";
  return {
    element,
    update(now) {
      setText(events, String(now.last));
      setText(size, bytes(now.bytes));
      setText(gateway, clean(now.gateway));
      if (setText(reason, clean(now.reason))) reason.title = clean(now.reason);
      if (shown === now.state + now.since) return;
      if (shown) flash(element);
      shown = now.state + now.since;
      state.replaceChildren(badge(now.state));
      since.replaceChildren(time(now.since));
    },
  };
}

// flash marks a row whose state has changed, for a moment.
function flash(element) {
  element.classList.remove("changed");
  requestAnimationFrame(() => element.classList.add("changed"));
}
