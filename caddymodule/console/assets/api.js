// The page. Credentials that were typed into its URL are left out: the browser sends them by itself, and refuses to fetch
// a URL that has some.
const page = new URL(document.baseURI);
page.username = page.password = "";

// The routes of the admin API, relative to the page, so that the console works below any path.
const base = new URL("../", page);

// get returns the JSON of a route. A query's value may be a list.
export function get(route, query = {}, signal) {
  return request("GET", route, query, undefined, signal);
}

// post changes something, and returns the JSON of the answer.
export function post(route, query = {}, body) {
  return request("POST", route, query, body);
}

export class RequestError extends Error {}

async function request(method, route, query, body, signal) {
  const url = new URL(route, base);
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) {
      if (one !== undefined && one !== "") url.searchParams.append(name, one);
    }
  }
  let answer;
  try {
    answer = await fetch(url, {
      method, signal, cache: "no-store", redirect: "error",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError("The gateway does not answer. It may be restarting; the page tries again.");
  }
  let content;
  try {
    content = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(`The server answers with HTTP ${answer.status}, and not as the admin API of a gateway does.`);
  }
  if (!answer.ok && content.error) throw new RequestError(`The gateway refuses: ${content.error} (HTTP ${answer.status}).`);
  return content;
}

// permissions returns what this console may change.
export async function permissions() {
  return new Set(await request("GET", new URL("permissions.json", page), {}));
}

const light = document.getElementById("live");

// Alarm wakes those that wait for it.
export class Alarm extends EventTarget {
  rings = 0;

  ring() {
    this.rings++;
    this.dispatchEvent(new Event("ring"));
  }
}

const shortest = 300; // ms between two loads

// follow calls load now, and again when the alarm rings, or some time after it has ended, until the signal aborts. A page
// in a hidden tab is not loaded, and one that takes long to load is loaded less often. What fails is passed to
// failed, and tried again.
export async function follow(signal, interval, load, failed, alarm = new Alarm()) {
  while (!signal.aborted) {
    const { rings } = alarm;
    let rest = shortest;
    const begun = performance.now();
    try {
      await load();
      if (signal.aborted) return;
      light.textContent = "live";
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof RequestError)) throw error;
      light.textContent = "not connected";
      failed(error.message);
      rest = 2000;
    }
    await pause(Math.max(rest, 5 * (performance.now() - begun)), signal);
    if (alarm.rings === rings) await pause(interval, signal, alarm);
    while (document.hidden && !signal.aborted) await pause(3600_000, signal, shown);
  }
}

const shown = new Alarm();
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) shown.ring();
});

// pause returns after some time, or when the alarm rings, or the signal aborts.
function pause(ms, signal, alarm) {
  return new Promise((resolve) => {
    const over = new AbortController();
    const end = () => {
      clearTimeout(timer);
      over.abort();
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true, signal: over.signal });
    alarm?.addEventListener("ring", end, { once: true, signal: over.signal });
    if (signal.aborted) end();
  });
}

// tail rings the alarm whenever a task of a query changes, while the page is looked at. A query that names a task is
// about its events. It loses nothing that is not read again after the alarm, and without it the page is only later.
export function tail(signal, query, alarm) {
  const url = new URL("tasks/tail", base);
  for (const [name, value] of Object.entries(query)) {
    if (value) url.searchParams.append(name, value);
  }
  let source = null;
  const close = () => {
    source?.close();
    source = null;
  };
  const open = () => {
    if (source || document.hidden || signal.aborted) return;
    const mine = source = new EventSource(url);
    for (const name of ["change", "event", "lost"]) source.addEventListener(name, () => alarm.ring());
    source.addEventListener("end", () => {
      mine.close(); // nothing follows
      alarm.ring();
    });
    source.addEventListener("error", () => {
      if (mine.readyState !== EventSource.CLOSED || mine !== source) return; // the browser connects again
      close();
      pause(5000, signal).then(open);
    });
  };
  open();
  document.addEventListener("visibilitychange", () => document.hidden ? close() : open(), { signal });
  signal.addEventListener("abort", close, { once: true });
}
