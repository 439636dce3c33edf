// The open streams: which task each sends to whom, and how far behind it is.
import { follow, get } from "./api.js";
import { agentName, clean, columnClass, differs, el, head, id, incomplete, link, message, setText, shorten,
  time } from "./dom.js";
import { Pager } from "./pager.js";

export const title = "Streams";

const interval = 2000; // ms between two looks
const pageSize = 100;

export async function show(main, query, signal) {
  const note = el("div", { "aria-live": "polite" });
  const table = streamTable();
  const lacks = incomplete();
  const count = el("span", { class: "count", role: "status" });
  const pager = new Pager(signal, run);
  const form = el("form", { class: "filters", role: "search", "aria-label": "Filter streams" },
    [["task", "Task id"], ["leader", "Leader"], ["partner", "Agent"]].map(([name, label]) =>
      el("label", {}, label,
        el("input", { name, value: query[name] ?? "", autocomplete: "off", spellcheck: "false" }))),
    el("button", { type: "submit" }, "Filter"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    filter();
  });
  form.addEventListener("change", filter);
  main.append(el("h1", {}, title),
    el("p", {}, "The open streams, the oldest first. One that stays behind has a caller that reads slowly."),
    form, note, lacks.element, table.element, el("p", { class: "pager" }, pager.first, pager.more, count));

  function filter() {
    query = Object.fromEntries(new FormData(form));
    history.replaceState(null, "", link("streams", query));
    pager.turn("");
  }

  function run(view) {
    follow(view, interval, async () => {
      const page = await get("streams", { ...query, after: pager.after, limit: pageSize }, view);
      pager.shown(page.next);
      lacks.update(page.missing);
      const n = page.streams.length;
      table.update(page.streams);
      setText(count, n === 0 ? "" : `${n} stream${n === 1 ? "" : "s"} on this page`);
      const text = n > 0 ? "" : emptyText();
      if (differs(note, text)) note.replaceChildren(text ? message(text) : "");
    }, (text) => {
      if (differs(note, text)) note.replaceChildren(message(text, "error"));
    });
  }

  function emptyText() {
    if (Object.values(query).some(Boolean)) return "No open stream matches the filter.";
    if (pager.after) return "No stream is on this page any more. Go to the first page.";
    return "No stream is open.";
  }

  pager.turn("");
}

// followStreams shows the streams of a task in an element.
export function followStreams(element, name, signal) {
  const table = streamTable(true);
  const note = el("div", { "aria-live": "polite" });
  element.append(note, table.element);
  follow(signal, interval, async () => {
    const page = await get("streams", { ...name, limit: pageSize }, signal);
    table.update(page.streams);
    const text = page.streams.length === 0 ? "No caller follows the task by a stream now."
      : page.next ? `There are more than these ${pageSize}: see the page of streams.` : "";
    if (differs(note, text)) note.replaceChildren(text ? message(text) : "");
  }, (text) => {
    if (differs(note, text)) note.replaceChildren(message(text, "error"));
  });
}

// streamTable makes a table whose rows stay the same while their streams are shown. That of one task does not name it.
function streamTable(ofTask = false) {
  const names = ["Since", "Caller", "Call", "Transport", "Events sent", "Behind"];
  if (!ofTask) names.unshift("Task");
  if (!ofTask) names.push("Leader", "Agent");
  names.push("Gateway");
  const rows = new Map();
  const body = el("tbody");
  const table = el("table", { hidden: true },
    head(names), body);

  function update(streams) {
    const known = new Set(streams.map(keyOf));
    for (const [key, row] of rows) {
      if (known.has(key)) continue;
      row.element.remove();
      rows.delete(key);
    }
    table.toggleAttribute("data-shared", streams.some(({ gateway }) => gateway));
    streams.forEach((stream, i) => {
      let row = rows.get(keyOf(stream));
      if (!row) rows.set(keyOf(stream), row = makeRow(names, stream));
      row.update(stream);
      if (body.children[i] !== row.element) body.insertBefore(row.element, body.children[i] ?? null);
    });
    table.hidden = streams.length === 0;
  }

  return { element: el("div", { class: "scroll" }, table), update };
}

// keyOf tells streams apart: each gateway numbers its own.
function keyOf({ number, gateway }) {
  return `${number} ${gateway ?? ""}`;
}

function makeRow(names, stream) {
  const { partner, leader, task } = stream;
  const cells = {
    Task: () => el("a", { href: link("task", { partner, leader, task }), class: "id", title: clean(task), "data-row": true },
      shorten(task, 36)),
    Since: () => time(stream.since),
    Caller: () => [stream.user_id && stream.user_id !== leader ? [id(stream.user_id), " "] : [],
      el("span", { class: "id" }, clean(stream.address))].flat(),
    Call: () => clean(`${stream.dialect} ${stream.command}`),
    Leader: () => id(leader), Agent: () => agentName(stream), Gateway: () => clean(stream.gateway),
  };
  const changing = {};
  const element = el("tr", {}, names.map((name) => {
    const cell = el("td", { "data-label": name, class: columnClass(name) }, cells[name]?.());
    if (!cells[name]) changing[name] = cell;
    return cell;
  }));
  return {
    element,
    update(now) {
      setText(changing.Transport, clean(now.transport));
      setText(changing["Events sent"], clean(now.events));
      setText(changing.Behind, clean(now.behind ?? "–"));
    },
  };
}
