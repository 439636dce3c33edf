// The states of a task on a time line.
import { absolute, badge, clean, duration, el, message, moment, time } from "./dom.js";

const scales = {
  linear: { weight: (ms) => ms, text: "Linear: a state is as wide as it was long, but is at least a line." },
  logarithmic: {
    weight: (ms) => 1 + Math.log2(1 + ms),
    text: "Logarithmic: short states are drawn wider than they were long, and long ones narrower.",
  },
};

// timelineView draws states with their times, the oldest first, and the Leader's commands.
export function timelineView() {
  let scale = "linear";
  let shown = null;
  const picture = el("div");
  const says = el("span", { class: "count" });
  const buttons = Object.keys(scales).map((name) => el("button", { type: "button", onclick: () => choose(name) },
    name[0].toUpperCase() + name.slice(1)));

  function choose(name) {
    scale = name;
    draw();
  }

  function draw() {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(Object.keys(scales)[i] === scale)));
    says.textContent = scales[scale].text;
    if (shown) picture.replaceChildren(shown.states.length === 0
      ? message("The task is pending: it has no event yet.") : figure(shown, scales[scale].weight));
  }

  draw();
  return {
    element: el("div", {}, el("p", { class: "scales" }, el("span", { role: "group", "aria-label": "Scale" }, buttons), " ",
      says), picture),
    // update takes what the admin API says of the states, and whether the task has ended.
    update(contents, isEnded) {
      shown = { ...contents, isEnded };
      draw();
    },
  };
}

function figure({ states, commands, earlier_states: earlier = 0, isEnded }, weight) {
  const at = states.map((one) => ({ ...one, ms: Date.parse(one.at) }));
  const end = isEnded ? at.at(-1).ms : Math.max(Date.now(), at.at(-1).ms);
  const spans = at.map(({ state, at: text, ms: from }, i) => {
    const last = i === at.length - 1;
    const ms = (last ? end : at[i + 1].ms) - from;
    return { state, text, from, ms, open: last && !isEnded, weight: last && isEnded ? 0 : weight(ms) };
  });
  const total = spans.reduce((sum, span) => sum + span.weight, 0) || 1;
  let left = 0;
  for (const span of spans) {
    span.left = left / total * 100;
    span.width = span.weight / total * 100;
    left += span.weight;
  }
  const lane = el("div", { class: "lane" }, spans.map((span) => {
    const bar = el("div", { class: "bar", "data-state": clean(span.state),
      title: `${clean(span.state)}: ${duration(span.ms)}` }, el("span", {}, clean(span.state)));
    place(bar, span.left, span.width);
    return bar;
  }));
  const marks = el("div", { class: "lane marks" }, commands.map((command) => {
    const mark = el("div", { class: "mark", title: `Leader: ${clean(command.command)}` }, clean(command.command));
    place(mark, positionOf(Date.parse(command.at), spans));
    return mark;
  }));
  return el("figure", { class: "timeline" },
    el("div", { class: "lanes", "aria-hidden": "true" }, marks, lane,
      el("div", { class: "axis" }, el("span", {}, moment(at[0].ms)), el("span", {}, duration(end - at[0].ms)),
        el("span", { title: absolute(end) }, moment(end)))),
    el("figcaption", {}, earlier > 0 ? message(`${earlier} earlier states are not shown.`) : "",
      el("ol", { class: "states" }, spans.map((span) =>
        el("li", {}, badge(span.state), " ", time(span.text), " ",
          span.open ? `for ${duration(span.ms)} so far` : span.ms > 0 ? `for ${duration(span.ms)}` : "")))));
}

function place(element, left, width) {
  element.style.left = `min(${left}%, calc(100% - 4px))`;
  if (width !== undefined) element.style.width = `${width}%`;
}

// positionOf returns where a time is, in percent.
function positionOf(at, spans) {
  const span = spans.findLast((one) => one.from <= at) ?? spans[0];
  if (!span || at < span.from) return 0;
  return Math.min(span.left + span.width * (span.ms > 0 ? Math.min((at - span.from) / span.ms, 1) : 0), 96);
}
