// What was counted in the last time: numbers that lead to their lists, and their curves.
import { chart } from "./chart.js";
import { el, link, setText } from "./dom.js";

const spans = { "5m": "5 min", "1h": "1 h", "6h": "6 h", "24h": "24 h" };

// Within which time the list of tasks has the tasks of a span; of the others it has all.
const ages = { "1h": "1h", "24h": "1d" };

// spanOf returns the time that a page shows.
export function spanOf(query) {
  return Object.hasOwn(spans, query.since) ? query.since : "1h";
}

// spanLinks lead to the same page for another time.
export function spanLinks(page, query) {
  return el("nav", { class: "spans", "aria-label": "Time" }, Object.entries(spans).map(([since, text]) =>
    el("a", { href: link(page, { ...query, since }), "aria-current": since === spanOf(query) ? "true" : null }, text)));
}

// figures makes the figures of an overview: those of one agent, if the query of the page names one, and else of all.
export function figures(query) {
  const since = spanOf(query);
  const { partner } = query;
  const tasks = (state) => link("tasks", { partner, state, max_age: state ? ages[since] : undefined });
  const open = (state) => number(link("tasks", { state }), (o) => `${count(o.now.tasks[state])} ${state}`);
  const all = [
    figure("Calls", [number(tasks(), (o) => rate(o.calls, counted(o)))], [["", rates("calls")], ["bad", rates("errors")]],
      (o) => `${count(o.calls)} calls, ${percent(o.errors, o.calls)} answered with an error`),
    figure("Failed tasks", [number(tasks("failed"), (o) => count(o.failed_tasks))], [["bad", rates("failed_tasks")]],
      (o) => `${count(o.rest.count)} turns came to rest`),
    figure("Time to the first event", tookNumbers(tasks(), "first_event"), [["", tooksOf("first_event")]],
      (o) => highest(o, tooksOf("first_event"), seconds)),
    figure("Time to rest", tookNumbers(tasks(), "rest"), [["", tooksOf("rest")]], (o) => highest(o, tooksOf("rest"), seconds)),
  ];
  if (!partner) {
    all.push(
      figure("Tasks in work", ["working", "accepted", "pending"].map(open), [["", levelsOf("working")]],
        (o) => highest(o, levelsOf("working"), count)),
      figure("Tasks that wait for their Leader", ["awaiting-input", "awaiting-completion"].map(open),
        [["", levelsOf("waiting")]], (o) => highest(o, levelsOf("waiting"), count)),
      figure("Webhooks", [
        number(link("deliveries", { status: "pending" }), (o) => `${count(o.now.pending)} pending`),
        number(link("deliveries", { status: "dead" }), (o) => `${count(o.dead)} dead in ${spans[since]}`),
      ], [["", levelsOf("pending")], ["bad", (o) => o.points.map((p) => known(p) ? p.dead : null)]],
      (o) => highest(o, levelsOf("pending"), count)),
      figure("Open streams", [number(link("streams"), (o) => count(o.now.streams))], [["", levelsOf("streams")]],
        (o) => highest(o, levelsOf("streams"), count)),
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

// figure makes numbers with their curves, and a line that says more. Its elements stay the same when it is updated.
function figure(title, numbers, curves, note) {
  const drawn = chart(title, ...curves.map(([name]) => name));
  const line = el("p", { class: "count" });
  const element = el("article", { class: "card figure" }, el("h2", {}, title),
    el("p", { class: "numbers" }, numbers.map((one) => [one.element, " "]).flat()), drawn.element, line);
  return {
    element,
    update(overview) {
      numbers.forEach((one) => one.update(overview));
      setText(line, note(overview));
      const texts = [...numbers.map((one) => one.element.textContent), line.textContent];
      drawn.update(curves.map(([, of]) => of(overview)), texts.join("; "));
    },
  };
}

// known reports whether enough is known of a point: of the last one, it is often only a moment.
const known = (point) => point.counted >= 2.5;

// ratesOf returns how often something happened in each second of a point, by how often it did in the point.
export const ratesOf = (series, overview) => overview.points.map((p, i) => known(p) ? series[i] / p.counted : null);

const rates = (name) => (o) => ratesOf(o.points.map((p) => p[name]), o);
const levelsOf = (name) => (o) => o.points.map((p) => known(p) ? p[name] : null);
const tooksOf = (name) => (o) => o.points.map((p) => p[name].count > 0 ? p[name].p99 ?? 0 : null);

function highest(overview, of, text) {
  const values = of(overview).filter((value) => value !== null);
  return values.length === 0 ? "nothing yet" : `at most ${text(Math.max(...values))}`;
}

// counted returns for how many seconds the gateway has counted.
export const counted = (overview) => overview.points.reduce((sum, point) => sum + point.counted, 0);

const digits = new Intl.NumberFormat("en");

// count writes how many there are.
export const count = (n) => digits.format(n ?? 0);

// rate writes how often something happens, for people.
export function rate(n, time) {
  if (!n || !time) return "0/s";
  const each = n / time;
  if (each < 1) return `${(each * 60).toFixed(each < 1 / 6 ? 1 : 0)}/min`;
  return `${each < 10 ? each.toFixed(1) : count(Math.round(each))}/s`;
}

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
