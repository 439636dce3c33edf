// The states of a task on a time line.
import { badge, clean, duration, el, time } from "./dom.js";

// timeline draws states, as pairs of a time and a state, and the Leader's commands. A state that lasts longer is wider,
// but by the logarithm: one that lasted for days leaves room for one of milliseconds.
export function timeline(states, commands, isEnded) {
  const at = states.map(([text, state]) => ({ at: Date.parse(text), text, state })).sort((a, b) => a.at - b.at);
  const now = Math.max(Date.now(), at.at(-1)?.at ?? 0);
  const spans = at.map((one, i) => {
    const last = i === at.length - 1;
    const end = last ? (isEnded ? one.at : now) : at[i + 1].at;
    return { ...one, ms: end - one.at, open: last && !isEnded, weight: 1 + Math.log2(1 + (end - one.at)) };
  });
  const total = spans.reduce((sum, span) => sum + span.weight, 0);
  let left = 0;
  for (const span of spans) {
    span.left = left / total * 100;
    span.width = span.weight / total * 100;
    left += span.weight;
  }
  const lane = el("div", { class: "lane" }, spans.map((span) => {
    const bar = el("div", { class: "bar", "data-state": clean(span.state), title: `${clean(span.state)}: ${duration(span.ms)}` },
      el("span", {}, clean(span.state)));
    place(bar, span.left, span.width);
    return bar;
  }));
  const marks = el("div", { class: "lane marks" }, commands.map((command) => {
    const mark = el("div", { class: "mark", title: `Leader: ${clean(command.text)}` }, clean(command.text));
    place(mark, positionOf(Date.parse(command.at), spans));
    return mark;
  }));
  return el("figure", { class: "timeline" },
    el("div", { class: "lanes", "aria-hidden": "true" }, marks, lane),
    el("figcaption", {}, el("ol", { class: "states" }, spans.map((span) =>
      el("li", {}, badge(span.state), " ", time(span.text), " ",
        span.open ? `for ${duration(span.ms)} so far` : span.ms > 0 ? `for ${duration(span.ms)}` : "")))));
}

function place(element, left, width) {
  element.style.left = `${left}%`;
  if (width !== undefined) element.style.width = `${width}%`;
}

// positionOf returns where a time is, in percent.
function positionOf(at, spans) {
  const span = spans.findLast((one) => one.at <= at) ?? spans[0];
  if (!span || at < span.at) return 0;
  return Math.min(span.left + span.width * (span.ms > 0 ? Math.min((at - span.at) / span.ms, 1) : 0), 96);
}
