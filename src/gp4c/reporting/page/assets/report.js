// The report: draws its figures from the data block "figures", again when the level or the light changes.
"use strict";
(function () {
  const content = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let level = content.level;

  function draw() {
    document.querySelectorAll("[data-level]").forEach((span) => { span.textContent = gp4cFigures.percent(level); });
    return gp4cFigures.draw(content.figures, level).then(() => { document.documentElement.dataset.drawn = level; });
  }

  document.querySelectorAll('input[name="level"]').forEach((button) => {
    button.addEventListener("change", () => { level = button.value; draw(); });
  });
  dark.addEventListener("change", draw);
  // paper is white whatever the screen is
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; draw(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; draw(); });
  draw();
})();
