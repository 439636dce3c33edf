// The routes of the admin API, relative to the page, so that the console works below any path.
const base = new URL("../", document.baseURI);

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
  return new Set(await request("GET", new URL("permissions.json", document.baseURI), {}));
}

const light = document.getElementById("live");

// follow calls load now, and again some time after it has ended, until the signal aborts. A page that nobody looks at
// is not loaded. What fails is passed to failed, and tried again.
export async function follow(signal, interval, load, failed) {
  while (!signal.aborted) {
    let wait = interval;
    if (!document.hidden) {
      try {
        await load();
        if (!signal.aborted) light.textContent = "live";
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof RequestError)) throw error;
        light.textContent = "not connected";
        failed(error.message);
        wait = Math.max(2000, interval);
      }
    }
    await pause(wait, signal);
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
