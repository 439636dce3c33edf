// One task as a picture: its states on a time line, its events, the streams that send them, its webhooks and their
// notifications.
import { Alarm, follow, get, post, tail } from "./api.js";
import { action, reasonDialog } from "./actions.js";
import { agentName, badge, bytes, clean, differs, el, fold, id, message, time } from "./dom.js";
import { deliveryTable, webhookTable } from "./deliveries.js";
import { followStreams } from "./streams.js";
import { timeline } from "./timeline.js";
import { answerForm } from "./try.js";

export const title = "Task";

const pageSize = 200; // events that are read at once
const mostEvents = 1000; // that are shown while the task is followed
const running = ["accepted", "working"];
const operator = "operator:console"; // the Leader of the page "Try"
const mostText = 200_000; // characters of a product that are shown
const ended = ["completed", "canceled", "failed", "rejected"];

export async function show(main, query, signal, may) {
  const name = { partner: query.partner ?? "", leader: query.leader ?? "", task: query.task ?? "" };
  const facts = el("dl", { class: "facts" });
  const actions = el("p", { class: "actions" });
  const note = el("div", { "aria-live": "polite" });
  const said = el("div", { "aria-live": "polite" }); // by actions
  const picture = el("div");
  const list = el("ol", { class: "events" });
  const streams = el("div", { id: "streams" });
  const webhooks = el("div", { id: "webhooks" });
  const deliveries = el("div", { id: "deliveries" });
  const earlier = el("button", { type: "button", hidden: true }, "Show earlier events");
  const mine = name.leader === operator && may.has("try");
  const answers = el("div");
  const form = mine ? answerForm(name, (why) => said.replaceChildren(message(why, "error"))) : null;
  main.append(el("h1", { class: "id" }, clean(name.task)), actions, said, note, facts,
    mine ? el("h2", {}, "Answer") : "", answers, form?.element ?? "",
    el("h2", {}, "Time line"), picture, el("h2", {}, "Events"), earlier, list,
    el("h2", {}, "Streams"), streams, el("h2", {}, "Webhooks"), webhooks, el("h2", {}, "Notifications that were not delivered"), deliveries);

  let overview;
  let last = 0; // number of the last event that was read
  let firstShown = 0; // number of the first event in the list
  const history = new Map(); // all states that are known, by their time
  const commands = []; // of the Leader
  const products = new Map(); // elements with the texts of products, by their ids

  function learn(event, newest = true) {
    if (event.kind === "task") event.value?.statusHistory?.forEach(learnStatus);
    if (event.kind === "task" && event.value) learnStatus(event.value.status);
    if (event.kind === "status" && event.value) learnStatus(event.value);
    if (mine && newest && event.kind === "product" && event.value) learnProduct(event.value);
    if (event.cause) commands.push({ at: event.cause.sentAt, text: event.cause.command });
  }

  // learnProduct writes the text of a product as it grows.
  function learnProduct({ product, append: grows }) {
    let shown = products.get(product.id);
    if (!shown) {
      products.set(product.id, shown = el("pre", { class: "answer", tabindex: "0" }));
      answers.append(shown);
    }
    const text = (product.dataItems ?? []).map((item) => item.text ?? `[${item.type}]`).join("");
    if (!grows) shown.replaceChildren();
    if (shown.childNodes.length === 0) shown.size = 0;
    shown.append(clean(text).slice(0, mostText - shown.size));
    shown.size = Math.min(shown.size + text.length, mostText);
  }

  function learnStatus(status) {
    if (status && !history.has(status.stateChangedAt)) history.set(status.stateChangedAt, status.state);
  }

  async function events(after, limit) {
    const page = await get("tasks/events", { ...name, after, limit }, signal);
    overview = page.task;
    return page;
  }

  // begin reads the oldest event, which has the history before it, and the newest ones.
  async function begin() {
    let page = await events(0, 1);
    for (const event of page.events) learn(event);
    const oldest = page.events[0]?.seq ?? 0;
    if (overview.last - oldest < pageSize) {
      append(page.events);
      last = oldest;
    } else {
      last = overview.last - pageSize;
    }
  }

  async function load() {
    if (!overview) await begin();
    for (;;) {
      const page = await events(last, pageSize);
      for (const event of page.events) learn(event);
      append(page.events);
      last = page.events.at(-1)?.seq ?? last;
      if (!page.next) break;
    }
    render();
  }

  function append(some) {
    if (some.length > 0 && list.childElementCount === 0) firstShown = some[0].seq;
    list.append(...some.map(eventItem));
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
      for (const event of page.events) learn(event, false);
      list.prepend(...page.events.map(eventItem));
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
    const lines = [
      ["State", badge(overview.state)], ["Since", time(overview.since)], ["Session", clean(overview.session)],
      ["Leader", id(overview.leader, 40)], ["Agent", agentName(overview)], ["Partner", id(overview.partner, 40)],
      ["Events kept", overview.first > overview.last ? "none" : `${overview.first} to ${overview.last}`],
      ["Size", bytes(overview.bytes)],
    ];
    facts.replaceChildren(...lines.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
    earlier.hidden = firstShown <= overview.first;
    if (list.childElementCount === 0) picture.replaceChildren(message("The task is pending: it has no event yet."));
    else picture.replaceChildren(timeline([...history], commands, ended.includes(overview.state)));
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

// eventItem shows an event: a line, and its contents when it is unfolded.
function eventItem(event) {
  const summary = el("summary", { "data-row": true },
    el("span", { class: "number", title: "number of the event" }, String(event.seq)), " ", kindOf(event), " ",
    el("span", { class: "preview" }, previewOf(event)));
  return el("li", { "data-seq": event.seq },
    event.cause ? fold("leader", el("summary", {}, el("span", { class: "kind" }, `Leader: ${clean(event.cause.command)}`), " ",
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
