// Curves of what was counted in the last time.
import { svg } from "./dom.js";

const width = 120, height = 32;

// chart makes an image of curves over the same time, from 0 to the highest value of all. Each has a class.
export function chart(label, ...classes) {
  const curves = classes.map((name) => svg("path", { class: name }));
  const element = svg("svg", {
    class: "chart", viewBox: `-1 -2 ${width + 2} ${height + 3}`, preserveAspectRatio: "none", role: "img", "aria-label": label,
  }, curves);
  return {
    element,
    // update draws values, null where nothing is known, and says in words what they show.
    update(lines, text) {
      const top = Math.max(0, ...lines.flat().filter((value) => value !== null)) || 1;
      lines.forEach((values, i) => curves[i].setAttribute("d", path(values, top)));
      element.setAttribute("aria-label", `${label}: ${text}`);
    },
  };
}

// path draws values from left to right. Nothing is drawn between a value and one that is not known.
function path(values, top) {
  let d = "", pen = "M";
  values.forEach((value, i) => {
    if (value === null) {
      pen = "M";
      return;
    }
    const x = values.length < 2 ? width : i / (values.length - 1) * width;
    d += `${pen}${x.toFixed(1)} ${(height - value / top * height).toFixed(1)}`;
    if (pen === "M") d += "h0"; // a value without neighbors is a dot
    pen = "L";
  });
  return d;
}
