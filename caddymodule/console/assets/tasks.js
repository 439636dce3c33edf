// The list of tasks: filtered, in pages, and live.
import { Alarm, follow, get, tail } from "./api.js";
import { agentName, badge, bytes, clean, el, head, id, incomplete, link, message, setText, shorten, time } from "./dom.js";
import { Pager } from "./pager.js";

export const title = "Tasks";

const states = ["pending", "accepted", "working", "awaiting-input", "awaiting-completion", "completed", "canceled",
  "failed", "rejected"];
const pageSize = 100;
const emptyPages = 20; // pages without a task that are skipped at most before the next look

const filters = [
  ["task", "Task id"], ["leader", "Leader"], ["partner", "Agent"],
];

export async function show(main, query, signal) {
  const rows = new Map();

  const note = el("div", { "aria-live": "polite" });
  const body = el("tbody");
  const lacks = incomplete();
  const count = el("span", { class: "count", role: "status" });
  const pager = new Pager(signal, run);
  const form = el("form", { class: "filters", role: "search", "aria-label": "Filter tasks" },
    el("label", {}, "State", el("select", { name: "state" }, el("option", { value: "" }, "all"),
      states.map((state) => el("option", { value: state, selected: query.state === state }, state)))),
    filters.map(([name, label]) =>
      el("label", {}, label, el("input", { name, value: query[name] ?? "", autocomplete: "off", spellcheck: "false" }))),
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
  }

  function render(list) {
    const known = new Set();
    list.forEach((task, i) => {
      const key = JSON.stringify([task.partner, task.leader, task.task]);
      known.add(key);
      let row = rows.get(key);
      if (!row) rows.set(key, row = makeRow(task));
      row.update(task);
      if (body.children[i] !== row.element) body.insertBefore(row.element, body.children[i] ?? null);
    });
    for (const [key, row] of rows) {
      if (!known.has(key)) {
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
    head(["Task", "State", "Since", "Agent", "Events", "Size", "Leader", "Gateway"]), body);
  main.append(el("h1", {}, title), form, note, lacks.element, el("div", { class: "scroll" }, table),
    el("p", { class: "pager" }, pager.first, pager.more, count));
  pager.turn("");
}

function makeRow(task) {
  const state = el("td", { "data-label": "State" });
  const since = el("td", { "data-label": "Since" });
  const events = el("td", { "data-label": "Events", class: "number" });
  const gateway = el("td", { "data-label": "Gateway", class: "shared" });
  const size = el("td", { "data-label": "Size", class: "number" });
  const { partner, leader, task: name } = task;
  const element = el("tr", {},
    el("td", { "data-label": "Task" },
      el("a", { href: link("task", { partner, leader, task: name }), class: "id", title: clean(name), "data-row": true },
        shorten(name, 36))),
    state, since, el("td", { "data-label": "Agent" }, agentName(task)), events, size,
    el("td", { "data-label": "Leader" }, id(leader)), gateway);
  let shown = "";
  return {
    element,
    update(now) {
      setText(events, String(now.last));
      setText(size, bytes(now.bytes));
      setText(gateway, clean(now.gateway));
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
