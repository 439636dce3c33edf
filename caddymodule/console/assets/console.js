// The frame of the console: which page is shown, its keys, and light or dark.
import { get, permissions, RequestError } from "./api.js";
import { el, link, message } from "./dom.js";
import * as agent from "./agent.js";
import * as agents from "./agents.js";
import * as cluster from "./cluster.js";
import * as deliveries from "./deliveries.js";
import * as groups from "./groups.js";
import * as overview from "./overview.js";
import * as policy from "./policy.js";
import * as streams from "./streams.js";
import * as task from "./task.js";
import * as tasks from "./tasks.js";
import * as trial from "./try.js";

// A page fills the main element by show(main, query, signal, may), until the signal aborts.
const pages = { overview, tasks, task, streams, deliveries, agents, agent, groups, policy, cluster, try: trial };

// The pages that belong to another one of the navigation.
const parts = { task: "tasks", agent: "agents" };

// The pages of the navigation, by their keys.
const keys = { v: "overview", t: "tasks", s: "streams", d: "deliveries", a: "agents", g: "groups", o: "policy", c: "cluster",
  y: "try" };

const main = document.getElementById("main");
const dialog = document.getElementById("keys");
let leaving = new AbortController();
let may = new Set();

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const name = Object.hasOwn(pages, path) ? path : "overview";
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  document.title = `${pages[name].title} · AIP console`;
  for (const a of document.querySelectorAll("#pages a")) {
    if (a.dataset.page === (parts[name] ?? name)) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  main.replaceChildren();
  pages[name].show(main, Object.fromEntries(new URLSearchParams(query)), signal, may).catch((error) => {
    if (signal.aborted) return;
    main.replaceChildren(message(error.message, "error"));
    if (!(error instanceof RequestError)) throw error;
  });
}

// Theme: that of the system, until the switch says otherwise.
const themes = ["system", "light", "dark"];
const themeButton = document.getElementById("theme");

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeButton.textContent = `Theme: ${theme}`;
}

function storedTheme() {
  try {
    const theme = localStorage.getItem("aip-console-theme");
    return themes.includes(theme) ? theme : "system";
  } catch {
    return "system"; // the browser keeps nothing
  }
}

function switchTheme() {
  const theme = themes[(themes.indexOf(storedTheme()) + 1) % themes.length];
  try {
    localStorage.setItem("aip-console-theme", theme);
  } catch {
    // It lasts as long as the page.
  }
  setTheme(theme);
}

// Rows are walked by the keyboard from link to link.
function walk(step) {
  const links = [...main.querySelectorAll("[data-row]")];
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? 0 : Math.min(Math.max(at + step, 0), links.length - 1)].focus();
}

function press(selector) {
  const target = main.querySelector(selector);
  if (target && !target.disabled) target.click();
}

const shortcuts = {
  j: ["the next row", () => walk(1)],
  k: ["the row before", () => walk(-1)],
  n: ["the next page of a list", () => press("[data-key=next]")],
  p: ["the first page of a list", () => press("[data-key=first]")],
  "/": ["to the filter", () => main.querySelector("input, select")?.focus()],
  l: ["light, dark, or as the system", switchTheme],
  "?": ["these keys", showKeys],
};

function showKeys() {
  if (dialog.open) return;
  dialog.showModal();
}

function keyDown(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || dialog.open) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (Object.hasOwn(keys, event.key)) location.hash = link(keys[event.key]);
  else if (Object.hasOwn(shortcuts, event.key)) shortcuts[event.key][1]();
  else return;
  event.preventDefault();
}

function frame() {
  document.getElementById("pages").append(...Object.entries(keys).map(([key, name]) =>
    el("a", { href: link(name), "data-page": name, "aria-keyshortcuts": key }, pages[name].title)));
  const rows = [...Object.entries(keys).map(([key, name]) => [key, pages[name].title.toLowerCase()]),
    ...Object.entries(shortcuts).map(([key, [text]]) => [key, text])];
  dialog.append(el("h2", { id: "keys-title" }, "Keys"),
    el("dl", { class: "facts" }, rows.map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]).flat()),
    el("form", { method: "dialog" }, el("button", {}, "Close")));
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault(); // the policy of the page submits no forms
    dialog.close();
  });
  document.getElementById("help").addEventListener("click", showKeys);
  themeButton.addEventListener("click", switchTheme);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment names the page
    main.focus();
  });
  document.addEventListener("keydown", keyDown);
  addEventListener("hashchange", () => {
    route();
    main.focus();
  });
  setTheme(storedTheme());
}

const [allowed, brief] = await Promise.allSettled([permissions(), get("cluster", { brief: true })]);
// Without an answer nothing may be changed; the page itself says that the gateway does not answer.
if (allowed.status === "fulfilled") may = allowed.value;
if (!may.has("try")) delete keys.y;
if (brief.value?.nodes.length === 0) delete keys.c; // the store is not shared
frame();
route();
