// One task: its result, its states on a time line, its events, the streams that send them, its webhooks and their
// notifications.
import { Alarm, follow, get, post, tail } from "./api.js";
import { action, reasonDialog } from "./actions.js";
import { agentName, badge, bytes, clean, differs, el, fold, id, link, message, moment, outside, time } from "./dom.js";
import { deliveryTable, webhookTable } from "./deliveries.js";
import { resultView } from "./result.js";
import { followStreams } from "./streams.js";
import { timelineView } from "./timeline.js";
import { answerForm } from "./try.js";

export const title = "Task";

const pageSize = 200; // events that are read at once
const mostEvents = 1000; // that are shown while the task is followed
const running = ["accepted", "working"];
const operator = "operator:console"; // the Leader of the page "Try"
const ended = ["completed", "canceled", "failed", "rejected"];

export async function show(main, query, signal, may) {
  const name = { partner: query.partner ?? "", leader: query.leader ?? "", task: query.task ?? "" };
  const facts = el("dl", { class: "facts" });
  const actions = el("p", { class: "actions" });
  const note = el("div", { "aria-live": "polite" });
  const said = el("div", { "aria-live": "polite" }); // by actions
  const result = resultView();
  const timeline = timelineView();
  const list = el("ol", { class: "events" });
  const streams = el("div", { id: "streams" });
  const webhooks = el("div", { id: "webhooks" });
  const deliveries = el("div", { id: "deliveries" });
  const earlier = el("button", { type: "button", hidden: true }, "Show earlier events");
  const mine = name.leader === operator && may.has("try");
  const form = mine ? answerForm(name, (why) => said.replaceChildren(message(why, "error"))) : null;
  main.append(el("h1", { class: "id" }, clean(name.task)), actions, said, note, facts,
    el("h2", {}, "Result"), result.element, form?.element ?? "",
    el("h2", {}, "Time line"), timeline.element, el("h2", {}, "Events"), earlier, list,
    el("h2", {}, "Streams"), streams, el("h2", {}, "Webhooks"), webhooks,
    el("h2", {}, "Notifications that were not delivered"), deliveries);

  let overview;
  let contents; // of the task, with all events up to contents.task.last
  let last = 0; // number of the last event that was read
  let firstShown = 0; // number of the first event in the list

  async function events(after, limit) {
    const page = await get("tasks/events", { ...name, after, limit }, signal);
    overview = page.task;
    return page;
  }

  async function read() {
    contents = await get("tasks/show", name, signal);
    result.show(contents);
  }

  // load reads what is new. A piece of a product is added to the result; what else has happened may have changed more.
  async function load() {
    if (!overview) {
      await read();
      last = Math.max(contents.task.first - 1, contents.task.last - pageSize, 0);
    }
    let stale = false;
    for (;;) {
      const page = await events(last, pageSize);
      for (const event of page.events) {
        if (event.seq <= contents.task.last) continue;
        if (event.kind === "product" && event.value) result.grow(event.value);
        else stale = true;
      }
      append(page.events);
      last = page.events.at(-1)?.seq ?? last;
      if (!page.next) break;
    }
    if (stale || overview.state !== contents.task.state) await read();
    render();
  }

  // start is when the task began; empty where that is not known.
  function start() {
    return contents.earlier_states ? "" : contents.states[0]?.at ?? "";
  }

  function append(some) {
    if (some.length > 0 && list.childElementCount === 0) firstShown = some[0].seq;
    list.append(...items(some, start()));
    while (list.childElementCount > mostEvents) {
      list.firstElementChild.remove();
      firstShown = Number(list.firstElementChild.dataset.seq);
    }
  }

  earlier.addEventListener("click", async () => {
    earlier.disabled = true;
    try {
      const from = Math.max(overview.first - 1, firstShown - 1 - pageSize);
      const page = await events(from, firstShown - 1 - from);
      list.prepend(...items(page.events, start()));
      firstShown = page.events[0]?.seq ?? overview.first;
      render();
    } catch (error) {
      if (!signal.aborted) note.replaceChildren(message(error.message, "error"));
    } finally {
      earlier.disabled = false;
    }
  });

  function render() {
    note.replaceChildren();
    const { partner, leader } = overview;
    const lines = [
      ["State", badge(overview.state)], ["Since", time(overview.since)],
      ["Session", [id(overview.session, 40), " ", to("tasks", { leader, session: overview.session }, "the session's tasks")]],
      ["Leader", [id(leader, 40), " ", to("tasks", { leader }, "the Leader's tasks")]],
      ["Agent", [agentName(overview), " ", to("agent", { partner: overview.agent_name || partner }, "the agent")]],
      ["Partner", id(partner, 40)],
      ["Events kept", overview.first > overview.last ? "none" : `${overview.first} to ${overview.last}`],
      ["Size", bytes(overview.bytes)],
    ];
    const { group } = contents;
    if (group) lines.push(["Group", [id(group, 40), " ", to("groups", { group }, "the group")]]);
    const { trace_id: trace } = overview;
    if (trace) lines.push(["Trace", contents.trace_link ? outside(contents.trace_link, trace) : id(trace, 40)]);
    if (differs(facts, [overview, contents.group, contents.trace_link])) {
      facts.replaceChildren(...lines.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
    }
    earlier.hidden = firstShown <= overview.first;
    timeline.update(contents, ended.includes(contents.task.state));
    form?.update(overview.state);
    renderActions();
  }

  function renderActions() {
    const wanted = [];
    if (may.has("cancel") && !ended.includes(overview.state)) {
      wanted.push(["Cancel the task", "tasks/cancel",
        "Its agent is asked to stop. The Leader sees that the operator has canceled the task, and the reason."]);
    }
    if (may.has("fail") && running.includes(overview.state)) {
      wanted.push(["Fail the task", "tasks/fail",
        "It ends as failed, whatever its agent answers. The Leader sees that the operator did it, and the reason."]);
    }
    const labels = wanted.map(([label]) => label).join();
    if (actions.dataset.labels === labels) return; // a button that has the focus keeps it
    actions.dataset.labels = labels;
    actions.replaceChildren();
    for (const one of wanted) steer(...one);
  }

  function steer(label, route, text) {
    actions.append(action(label, async () => {
      const reason = await reasonDialog(`${label}?`, text);
      if (reason !== null) await post(route, {}, { ...name, reason });
    }, (why) => said.replaceChildren(message(why, "error"))));
  }

  followStreams(streams, name, signal);
  follow(signal, 5000, async () => {
    const { webhooks: all } = await get("webhooks", name, signal);
    if (differs(webhooks, all)) {
      webhooks.replaceChildren(all.length === 0 ? message("The task has no webhook.") : webhookTable(all));
    }
    const page = await get("deliveries", { ...name, limit: 100 }, signal);
    if (differs(deliveries, page)) {
      deliveries.replaceChildren(page.deliveries.length === 0 ? message("None.")
        : deliveryTable(page.deliveries, may, (why) => said.replaceChildren(message(why, "error"))));
    }
  }, (text) => {
    if (differs(webhooks, text)) webhooks.replaceChildren(message(text, "error"));
  });
  const alarm = new Alarm();
  let tailed = false;
  await follow(signal, 10_000, async () => {
    await load();
    if (!tailed && !ended.includes(overview.state)) {
      tail(signal, { ...name, after: String(last) }, alarm);
      tailed = true;
    }
  }, (text) => note.replaceChildren(message(text, "error")), alarm);
}

function to(page, query, text) {
  return el("a", { href: link(page, query), class: "to" }, text);
}

// items shows events that follow one another. A piece of a product is stored without a time: it came after the event
// before it that has one.
function items(some, start) {
  let before = start;
  return some.map((event) => {
    const at = timeOf(event);
    before = at || before;
    return eventItem(event, before, !at);
  });
}

function timeOf({ value, cause }) {
  return value?.stateChangedAt ?? value?.status?.stateChangedAt ?? value?.sentAt ?? cause?.sentAt;
}

function when(at, after) {
  if (!at) return el("span", { class: "when", title: "Pieces of products are stored without their times." }, "–");
  return el("span", { class: "when" }, after ? "at most " : "", time(at),
    el("span", { class: "moment" }, ` ${after ? "from " : ""}${moment(new Date(at))}`));
}

// eventItem shows an event: a line, and its contents when it is unfolded.
function eventItem(event, at, after) {
  const summary = el("summary", { "data-row": true },
    el("span", { class: "number", title: "number of the event" }, String(event.seq)), " ", when(at, after), " ",
    kindOf(event), " ", el("span", { class: "preview" }, previewOf(event)));
  return el("li", { "data-seq": event.seq },
    event.cause ? fold("leader", el("summary", {}, el("span", { class: "number" }), " ", when(event.cause.sentAt), " ",
      el("span", { class: "kind" }, `Leader: ${clean(event.cause.command)}`), " ",
      el("span", { class: "preview" }, preview(event.cause.dataItems))), event.cause) : null,
    fold(event.kind, summary, event.value));
}

function kindOf(event) {
  if (event.kind === "status" && event.value) return badge(event.value.state);
  if (event.kind === "task" && event.value) return badge(event.value.status?.state);
  return el("span", { class: "kind" }, clean(event.kind));
}

function previewOf(event) {
  const value = event.value;
  if (!value) return `${bytes(event.bytes)}, too large to be shown`;
  if (event.kind === "product") {
    const { name, id, dataItems } = value.product ?? {};
    return `${clean(name || id)}: ${preview(dataItems)}`;
  }
  return preview(event.kind === "task" ? value.status?.dataItems : value.dataItems);
}

// preview returns the beginning of the contents, on one line.
function preview(items) {
  const text = (items ?? []).slice(0, 20).map((item) => {
    if (item.type === "text") return item.text;
    if (item.type === "file") return `[file ${item.name ?? item.uri ?? ""}]`;
    return "[data]";
  }).join(" ");
  return clean(text.slice(0, 300)).replace(/\s+/g, " ");
}
