"use strict";
// Zooms into a node on a click, and finds names by a regular expression. Every node of the drawing is a group with its
// depth, and with its left end and its width as parts of the total width.
(() => {
  const svg = document.documentElement;
  const nodes = [...svg.querySelectorAll("g[data-depth]")].map((group) => ({
    group,
    name: group.dataset.name,
    depth: +group.dataset.depth,
    left: +group.dataset.left,
    width: +group.dataset.width,
    rect: group.querySelector("rect"),
    text: group.querySelector("text"),
  }));
  const status = svg.getElementById("status");
  const frame = { width: +svg.dataset.width, letter: +svg.dataset.letter };
  let shown = nodes[0];
  let searched = null;

  function draw() {
    for (const node of nodes) {
      const above = node.depth < shown.depth;
      const inside = node.left >= shown.left - 1e-9 && node.left + node.width <= shown.left + shown.width + 1e-9;
      const holds = node.left <= shown.left + 1e-9 && node.left + node.width >= shown.left + shown.width - 1e-9;
      const visible = above ? holds : inside;
      node.group.style.display = visible ? "" : "none";
      if (!visible) continue;
      const x = above ? 0 : ((node.left - shown.left) / shown.width) * frame.width;
      const width = above ? frame.width : (node.width / shown.width) * frame.width;
      node.rect.setAttribute("x", x);
      node.rect.setAttribute("width", Math.max(width - 0.3, 0.2));
      const letters = Math.floor((width - 6) / frame.letter);
      node.text.setAttribute("x", x + 3);
      node.text.textContent = letters < 3 ? "" : node.name.length <= letters ? node.name : node.name.slice(0, letters - 2) + "..";
      node.group.classList.toggle("above", above);
    }
  }

  function find(pattern) {
    searched = pattern || null;
    let expression = null;
    try {
      expression = searched && new RegExp(searched, "i");
    } catch (error) {
      status.textContent = error.message;
      return;
    }
    // A node below a matching node is not counted twice.
    let sum = 0;
    let end = -1;
    for (const node of nodes) {
      const found = expression !== null && node.depth > 0 && expression.test(node.name);
      node.group.classList.toggle("found", found);
      if (found && node.left >= end - 1e-9) {
        sum += node.width;
        end = node.left + node.width;
      }
    }
    status.textContent = expression ? `/${searched}/: ${(100 * sum).toFixed(2)}%` : "";
  }

  svg.addEventListener("click", (event) => {
    const group = event.target.closest("g[data-depth]");
    const node = group && nodes.find((one) => one.group === group);
    if (node) {
      shown = node;
      draw();
    } else if (event.target.closest("#search")) {
      find(prompt("Find names (a regular expression, nothing clears):", searched || ""));
    } else if (event.target.closest("#reset")) {
      shown = nodes[0];
      draw();
    }
  });
  svg.addEventListener("keydown", (event) => {
    if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      find(prompt("Find names (a regular expression, nothing clears):", searched || ""));
    } else if (event.key === "Escape") {
      shown = nodes[0];
      draw();
    }
  });
  draw();
})();
