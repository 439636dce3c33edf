// The result of a task: its products, each item by its type. All of it comes from an agent and may be hostile. It is
// shown as text, and nothing of it is loaded or opened by itself.
import { bytes, clean, differs, el, message, outside } from "./dom.js";

const mostText = 200_000; // characters of a text that are shown
const mostMembers = 100; // of an object or a list, until more are asked for
const sources = /^(text\/(plain|markdown|csv|html|xml|yaml)|application\/(json|xml|yaml))\b/i; // of files that are texts

// resultView shows what a task has said and its products. show takes the contents of the task; grow adds a piece of a
// product that has come since.
export function resultView() {
  const said = el("div", { class: "said" });
  const products = el("div", { class: "products" });
  const note = el("div");
  const shown = new Map(); // of products, by their ids

  function article(product) {
    let one = shown.get(product.id);
    if (!one) shown.set(product.id, one = { element: el("article", { class: "product" }), last: null });
    return one;
  }

  function fill(one, product) {
    one.last = null;
    one.element.replaceChildren(el("h3", {}, clean(product.name || product.id)));
    if (product.description) one.element.append(el("p", {}, clean(product.description)));
    for (const item of product.items ?? []) add(one, item);
    if (product.cut) {
      one.element.append(message(`Not all is shown: the product has ${bytes(product.bytes)}. The events have the pieces.`));
    }
  }

  // add adds an item to an article. A text that follows a text is joined to it, as its pieces are.
  function add(one, item) {
    if (item.type === "text" && one.last && !item.mime_type) {
      one.last.grow(item.text);
      return;
    }
    one.last = item.type === "text" ? textOf(item, "answer") : null;
    one.element.append(one.last?.element ?? itemOf(item));
  }

  return {
    element: el("section", { class: "result", "aria-label": "Result" }, said, products, note),
    show({ task, said: items = [], products: list = [], more_products: more = 0 }) {
      if (differs(said, [task.state, items])) {
        said.replaceChildren(...items.map((item) => item.type === "text" ? textOf(item, "status").element : itemOf(item)));
      }
      for (const id of shown.keys()) {
        if (!list.some((product) => product.id === id)) shown.delete(id);
      }
      const all = list.map((product) => {
        const one = article(product);
        if (differs(one.element, product)) fill(one, product);
        return one.element;
      });
      if (all.some((element, i) => products.children[i] !== element) || all.length !== products.childElementCount) {
        products.replaceChildren(...all);
      }
      const text = more > 0 ? `${more} more products are not shown.`
        : list.length + items.length > 0 ? "" : "There is no result yet.";
      if (differs(note, text)) note.replaceChildren(text ? message(text) : "");
    },
    grow({ product, append: grows }) {
      const one = article(product);
      if (!grows || !one.element.isConnected) fill(one, { ...product, items: [] });
      for (const { mimeType, ...item } of product.dataItems ?? []) add(one, { ...item, mime_type: mimeType });
      if (!one.element.isConnected) products.append(one.element);
      note.replaceChildren();
    },
  };
}

// textOf shows a text as it is: Markdown, and HTML too, as its source.
function textOf(item, kind) {
  const pre = el("pre", { class: kind, tabindex: "0" });
  const rest = el("p", { class: "count", hidden: true });
  const type = item.mime_type && item.mime_type !== "text/plain" ? typeOf(item.mime_type) : "";
  let size = 0;
  const grow = (text = "") => {
    if (size < mostText) pre.append(clean(text.slice(0, mostText - size)));
    size += text.length;
    rest.hidden = !item.cut && size <= mostText;
    rest.textContent = item.cut ? "The rest of the text is not shown." : `The first ${mostText} of ${size} characters.`;
  };
  grow(item.text);
  return { element: el("div", { class: "item" }, type ? el("p", { class: "count" }, type) : "", pre, rest), grow };
}

function typeOf(mime) {
  if (/^text\/markdown\b/i.test(mime)) return "Markdown, as its source";
  return clean(mime);
}

// itemOf shows an item that is no text.
function itemOf(item) {
  if (item.cut) return message(`A ${item.type === "file" ? `file ${clean(item.name)}` : "value"} that is too large to be shown.`);
  if (item.type === "data") return el("div", { class: "item tree" }, tree(item.data, null, true));
  const kind = /^image\//i.test(item.mime_type ?? "") ? "Image" : "File";
  const line = el("p", {}, `${kind} `, el("strong", {}, clean(item.name || "without a name")), " ",
    el("span", { class: "count" }, clean(item.mime_type)), " ");
  const shown = el("div", { class: "item file" }, line);
  if (item.uri) line.append(outside(item.uri, item.uri));
  if (item.bytes) {
    const content = decode(item.bytes);
    if (!content) {
      line.append("It is no base64.");
      return shown;
    }
    line.append(el("button", { type: "button", onclick: () => save(content, item.name) }, `Save ${bytes(content.length)}`));
    if (sources.test(item.mime_type ?? "")) shown.append(source(content, item.mime_type));
  }
  return shown;
}

// source shows a file that is a text: JSON as a tree, all else as it is.
function source(content, mime) {
  const text = new TextDecoder().decode(content);
  if (/json/i.test(mime)) {
    try {
      return el("div", { class: "tree" }, tree(JSON.parse(text), null, true));
    } catch {
      // It is shown as a text.
    }
  }
  return textOf({ text, mime_type: /markdown/i.test(mime) ? mime : "" }, "answer").element; // the line before names it
}

function decode(base64) {
  try {
    return Uint8Array.from(atob(base64.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}

// save has the browser save a file. It is of no type that a browser opens.
function save(content, name) {
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  el("a", { href: url, download: clean(name || "file").replace(/[/\\]/g, "_") }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// tree shows a value of JSON. What it holds is made when it is opened.
function tree(value, key, open) {
  const label = key === null ? [] : [el("span", { class: "key" }, clean(key)), ": "];
  if (value === null || typeof value !== "object") {
    const text = JSON.stringify(value) ?? "";
    const cut = text.length > mostText ? `${text.slice(0, mostText)}…` : text;
    return el("div", { class: "leaf" }, label, el("span", { class: typeof value }, clean(cut)));
  }
  const members = Object.entries(value);
  const [begin, end] = Array.isArray(value) ? "[]" : "{}";
  const of = Array.isArray(value) ? "entries" : "members";
  const details = el("details", { open },
    el("summary", {}, label, el("span", { class: "count" }, members.length === 0 ? begin + end
      : `${begin}…${end} ${members.length} ${members.length === 1 ? (of === "entries" ? "entry" : "member") : of}`)));
  let next = 0;
  const more = el("button", { type: "button", onclick: show });
  function show() {
    const some = members.slice(next, next + mostMembers);
    next += some.length;
    more.remove();
    details.append(...some.map(([name, one]) => tree(one, name, false)));
    more.textContent = `${Math.min(mostMembers, members.length - next)} more of ${members.length}`;
    if (next < members.length) details.append(more);
  }
  if (open) show();
  else details.addEventListener("toggle", () => next === 0 && show());
  return details;
}
