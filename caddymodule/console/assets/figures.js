// What was counted since the start, in numbers that lead to their lists.
import { el, link, setText } from "./dom.js";

// figures makes the figures of an overview: those of one agent, if the query of the page names one, and else of all.
export function figures({ partner }) {
  const tasks = (state) => link("tasks", { partner, state });
  const open = (state) => number(link("tasks", { state }), (o) => `${count(o.now.tasks[state])} ${state}`);
  const all = [
    figure("Calls", [number(tasks(), (o) => count(o.calls))],
      (o) => `${percent(o.errors, o.calls)} answered with an error`),
    figure("Failed tasks", [number(tasks("failed"), (o) => count(o.failed_tasks))],
      (o) => `${count(o.rest.count)} turns came to rest`),
    figure("Time to the first event", tookNumbers(tasks(), "first_event")),
    figure("Time to rest", tookNumbers(tasks(), "rest")),
  ];
  if (!partner) {
    all.push(
      figure("Tasks in work", ["working", "accepted", "pending"].map(open)),
      figure("Tasks that wait for their Leader", ["awaiting-input", "awaiting-completion"].map(open)),
      figure("Webhooks", [
        number(link("deliveries", { status: "pending" }), (o) => `${count(o.now.pending)} pending`),
        number(link("deliveries", { status: "dead" }), (o) => `${count(o.dead)} dead`),
      ]),
      figure("Open streams", [number(link("streams"), (o) => count(o.now.streams))]),
    );
  }
  return {
    element: el("div", { class: "figures" }, all.map((one) => one.element)),
    update: (overview) => all.forEach((one) => one.update(overview)),
  };
}

// number makes a number that leads to its list.
function number(href, text) {
  const element = el("a", { href, "data-row": true });
  return { element, update: (overview) => setText(element, text(overview)) };
}

const tookNumbers = (href, name) => [["p50", 50], ["p99", 99]].map(([part, n]) =>
  number(href, (o) => o[name].count === 0 ? `p${n} –` : `p${n} ${seconds(o[name][part] ?? 0)}`));

// figure makes numbers, and a line that says more. Its elements stay the same when it is updated.
function figure(title, numbers, note = () => "") {
  const line = el("p", { class: "count" });
  const element = el("article", { class: "card figure" }, el("h2", {}, title),
    el("p", { class: "numbers" }, numbers.map((one) => [one.element, " "]).flat()), line);
  return {
    element,
    update(overview) {
      numbers.forEach((one) => one.update(overview));
      setText(line, note(overview));
    },
  };
}

const digits = new Intl.NumberFormat("en");

// count writes how many there are.
export const count = (n) => digits.format(n ?? 0);

// percent writes a part of a whole.
export function percent(part, whole) {
  if (!part) return "none";
  const of = part / whole * 100;
  return `${of < 10 ? of.toFixed(1) : Math.round(of)} %`;
}

// seconds writes a time that something took.
export function seconds(s) {
  if (s < 0.01) return `${(s * 1000).toFixed(1)} ms`;
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  return s < 60 ? `${s.toFixed(1)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

// both writes the median and the 99th percentile of a time.
export const both = (took) => took.count === 0 ? "–" : `${seconds(took.p50 ?? 0)} · ${seconds(took.p99 ?? 0)}`;
