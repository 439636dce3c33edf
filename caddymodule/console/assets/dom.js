// What is shown comes from agents and callers, and may be hostile. It becomes text nodes and attributes, never HTML.

// el makes an element. Attributes whose names begin with "on" are listeners; null and false leave an attribute out.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// setText changes the text of an element if it differs, so that nothing is painted in vain. It reports whether it did.
export function setText(element, text) {
  if (element.textContent === text) return false;
  element.textContent = text;
  return true;
}

// clean shows control characters and those that change the direction of text, instead of acting on them.
export function clean(text) {
  return String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

// shorten leaves out the middle of a text that is longer than most characters: the ends of ids tell them apart.
export function shorten(text, most = 20) {
  const all = [...clean(text)];
  if (all.length <= most) return all.join("");
  const tail = Math.ceil((most - 1) * 0.55);
  return `${all.slice(0, most - 1 - tail).join("")}…${all.slice(-tail).join("")}`;
}

// id shows an id, shortened in the middle. The whole is its title, and a click copies it.
export function id(text, most) {
  const whole = clean(text);
  const short = shorten(text, most);
  if (short === whole) return el("span", { class: "id" }, whole);
  const button = el("button", { type: "button", class: "id copy", title: `${whole} (a click copies it)` }, short);
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    if (!await copy(whole)) return;
    button.dataset.copied = "true";
    setTimeout(() => delete button.dataset.copied, 1200);
  });
  return button;
}

// copy reports whether the browser has let it put a text into the clipboard.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el("textarea", {}, text); // without TLS there is no other way
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

// agentName shows a Partner by its name for people, with the one under which its tasks are stored as the title.
export function agentName({ agent_name: name, partner }) {
  return name ? el("span", { class: "agent", title: clean(partner) }, clean(name)) : id(partner);
}

const shown = new WeakMap();

// differs reports whether a value is another one than at the last call for an element. What is shown already stays as it
// is: its focus, and what is selected or unfolded.
export function differs(element, value) {
  const text = JSON.stringify(value);
  if (shown.get(element) === text) return false;
  shown.set(element, text);
  return true;
}

// outside makes a link to another site, which is opened by a click only, and not told from where. What is no URL of the
// web is shown as text.
export function outside(url, text) {
  if (!/^https?:$/.test(URL.parse?.(url)?.protocol ?? "")) return el("span", { class: "id" }, clean(text));
  return el("a", { href: url, class: "id outside", target: "_blank", rel: "noopener noreferrer" }, clean(text));
}

// link returns the address of a page of the console.
export function link(page, query = {}) {
  const q = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined));
  return `#/${page}${q.size ? `?${q}` : ""}`;
}

const stamp = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
  fractionalSecondDigits: 3, timeZoneName: "short", hourCycle: "h23",
});

const short = new Intl.DateTimeFormat(undefined, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3,
  hourCycle: "h23",
});

// moment writes a time in the browser's zone where there is little room.
export function moment(at) {
  return Number.isNaN(Number(at)) ? "–" : short.format(at);
}

// absolute writes a time in the browser's zone.
export function absolute(at) {
  return Number.isNaN(Number(at)) ? "–" : stamp.format(at);
}

// relative writes a time as people say it now.
export function relative(at) {
  const ms = Date.now() - at;
  const s = Math.round(Math.abs(ms) / 1000);
  if (s < 1) return "now";
  const said = s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 48 * 3600 ? `${Math.floor(s / 3600)} h`
    : `${Math.floor(s / 86400)} d`;
  return ms > 0 ? `${said} ago` : `in ${said}`;
}

// time shows when something was or will be: relative to now, which it keeps up with, and absolute as the title. It is
// the only form of a time on a page, but for the absolute one where there is room for both.
export function time(text) {
  const at = new Date(text);
  if (!text || Number.isNaN(at.valueOf())) return el("span", {}, "–");
  return el("time", { datetime: at.toISOString(), title: absolute(at), class: "relative" }, relative(at));
}

setInterval(() => {
  for (const one of document.querySelectorAll("time.relative")) setText(one, relative(new Date(one.dateTime)));
}, 1000);

// duration writes milliseconds for people.
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// bytes writes a size for people.
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit ? n.toFixed(1) : n} ${units[unit]}`;
}

// badge shows the state of something.
export function badge(state) {
  return el("span", { class: "badge", "data-state": clean(state) }, clean(state));
}

// message shows a sentence instead of contents: nothing is there, or an error.
export function message(text, kind = "empty") {
  return el("p", { class: `message ${kind}`, role: kind === "error" ? "alert" : null }, clean(text));
}

// incomplete is a place where it is said what a list lacks that several gateways answer.
export function incomplete() {
  const element = el("div", { role: "status" });
  return {
    element,
    update(missing = []) {
      if (!differs(element, missing)) return;
      element.replaceChildren(...missing.length === 0 ? []
        : [message(`Not all is shown: no answer from ${missing.join(", ")}.`, "error")]);
    },
  };
}

// fold makes details whose contents, a value as JSON, are written when they are unfolded first.
export function fold(kind, summary, value) {
  const details = el("details", { "data-kind": kind }, summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(value === undefined ? message("The event is too large to be shown.")
      : el("pre", { tabindex: "0" }, clean(JSON.stringify(value, null, 2))));
  });
  return details;
}

// withGateway adds to the names of columns, and to the cells of each entry, which of several gateways has the entry.
// Where one is alone, it returns them as they are.
export function withGateway(entries, names, cells) {
  if (!entries.some((entry) => entry.gateway)) return [names, entries.map(cells)];
  return [[...names, "Gateway"],
    entries.map((entry) => [...cells(entry), el("span", { class: "id" }, clean(entry.gateway))])];
}

const numeric = new Set(["Events", "Events sent", "Behind", "Size"]);

// columnClass returns the class of the cells of a column. Those of the gateways are shown where several share a store.
export function columnClass(name) {
  return numeric.has(name) ? "number" : name === "Gateway" ? "shared" : null;
}

// head makes the head of a table whose rows stay and change. make makes the contents of a cell of a name.
export function head(names, make = (name) => name) {
  return el("thead", {}, el("tr", {}, names.map((name) =>
    el("th", { scope: "col", class: columnClass(name) }, make(name)))));
}

// table makes a table of rows of cells.
export function table(names, rows) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) => el("td", { "data-label": names[i] }, cell)))))));
}
