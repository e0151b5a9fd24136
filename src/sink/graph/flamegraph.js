"use strict";
// Zooms into a place on a click, finds names by a regular expression. Works on what is drawn: every place is a group with its depth, and where it begins and how wide it is in parts of the whole.
(() => {
  const svg = document.documentElement;
  const places = [...svg.querySelectorAll("g[data-depth]")].map((group) => ({
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
  let shown = places[0];
  let searched = null;

  function draw() {
    for (const place of places) {
      const above = place.depth < shown.depth;
      const inside = place.left >= shown.left - 1e-9 && place.left + place.width <= shown.left + shown.width + 1e-9;
      const holds = place.left <= shown.left + 1e-9 && place.left + place.width >= shown.left + shown.width - 1e-9;
      const visible = above ? holds : inside;
      place.group.style.display = visible ? "" : "none";
      if (!visible) continue;
      const x = above ? 0 : ((place.left - shown.left) / shown.width) * frame.width;
      const width = above ? frame.width : (place.width / shown.width) * frame.width;
      place.rect.setAttribute("x", x);
      place.rect.setAttribute("width", Math.max(width - 0.3, 0.2));
      const letters = Math.floor((width - 6) / frame.letter);
      place.text.setAttribute("x", x + 3);
      place.text.textContent = letters < 3 ? "" : place.name.length <= letters ? place.name : place.name.slice(0, letters - 2) + "..";
      place.group.classList.toggle("above", above);
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
    // A place below one that was found does not count twice.
    let sum = 0;
    let end = -1;
    for (const place of places) {
      const found = expression !== null && place.depth > 0 && expression.test(place.name);
      place.group.classList.toggle("found", found);
      if (found && place.left >= end - 1e-9) {
        sum += place.width;
        end = place.left + place.width;
      }
    }
    status.textContent = expression ? `/${searched}/: ${(100 * sum).toFixed(2)}%` : "";
  }

  svg.addEventListener("click", (event) => {
    const group = event.target.closest("g[data-depth]");
    const place = group && places.find((one) => one.group === group);
    if (place) {
      shown = place;
      draw();
    } else if (event.target.closest("#search")) {
      find(prompt("Find names (a regular expression, nothing clears):", searched || ""));
    } else if (event.target.closest("#reset")) {
      shown = places[0];
      draw();
    }
  });
  svg.addEventListener("keydown", (event) => {
    if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      find(prompt("Find names (a regular expression, nothing clears):", searched || ""));
    } else if (event.key === "Escape") {
      shown = places[0];
      draw();
    }
  });
  draw();
})();
