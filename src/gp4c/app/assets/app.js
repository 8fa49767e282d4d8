// The page: shows what the server says, and marks results that the fields no longer stand for.
"use strict";
(function () {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const wide = window.matchMedia("(min-width: 60rem)");
  let figures = {}, level = "0.95";

  const place = (id) => document.getElementById(id);

  function draw(some) {
    document.querySelectorAll("[data-level]").forEach((span) => { span.textContent = gp4cFigures.percent(level); });
    return gp4cFigures.draw(some, level).then(() => { root.dataset.drawn = Object.keys(figures).length; });
  }

  function say(text) { place("progress").textContent = text || ""; }

  function state(name) {
    root.dataset.state = name;
    document.querySelectorAll(".settings .step").forEach((step) => { step.inert = name === "fitting" && !step.matches(".needs-data"); });
    document.querySelectorAll(".needs-data :is(select, input)").forEach((field) => { field.disabled = name === "fitting"; });
    place("fit").disabled = name === "fitting" || root.dataset.ready !== "yes";
  }

  function clear() {
    Object.keys(figures).forEach((id) => { if (place(id)) Plotly.purge(place(id)); });
    figures = {};
    place("shown").replaceChildren();
    delete root.dataset.drawn;
    delete root.dataset.stale;
  }

  // the header has no heading of its own; others follow in the order of the report
  function part(message) {
    const section = document.createElement("section");
    section.id = message.key;
    if (message.heading) {
      const heading = document.createElement("h2");
      heading.id = message.key + "-h";
      heading.textContent = message.heading;
      section.append(heading);
      section.setAttribute("aria-labelledby", heading.id);
    }
    section.insertAdjacentHTML("beforeend", message.html);
    place("shown").append(section);
    if (message.key === "header") {
      level = message.level;
      place("shown").scrollIntoView({ behavior: "smooth", block: "start" });
    }
    Object.assign(figures, message.figures);
    return draw(message.figures);
  }

  const told = {
    clear: () => { clear(); state("reading"); },
    stale: () => { if (Object.keys(figures).length) root.dataset.stale = "yes"; state("reading"); },
    looked: (message) => {
      root.dataset.columns = message.columns ? "yes" : "no";
      root.dataset.ready = message.ready ? "yes" : "no";
      state("ready");
    },
    begin: () => { clear(); state("fitting"); place("cancel").focus(); },
    progress: () => {},
    part: part,
    failed: (message) => {
      place("shown").insertAdjacentHTML("beforeend", message.html);
      place("shown").scrollIntoView({ block: "nearest" });
      state("ready");
    },
    stopped: () => { state("ready"); say("Stopped."); place("fit").focus(); },
    done: () => {
      state("ready");
      // beside the results, where the fields scroll by themselves
      if (wide.matches) setTimeout(() => place("downloads").scrollIntoView({ block: "nearest" }), 300);
    },
  };

  function changed(event) {
    if (event.target.matches('input[name="level"]')) {
      level = event.target.value;
      draw(figures);
    } else if (event.target.closest(".settings") && Object.keys(figures).length && event.target.type !== "file") {
      root.dataset.stale = "yes";
    }
  }

  function copy(event) {
    const button = event.target.closest("[data-copies]");
    if (!button) return;
    navigator.clipboard.writeText(place(button.dataset.copies).textContent).then(() => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  // a data set takes the place of a file: its name would say otherwise
  function forget(event) {
    if (!event.target.closest('[id^="example_"]')) return;
    document.querySelector('.input-group input[type="text"]').value = "";
    document.querySelector(".shiny-file-input-progress").style.visibility = "hidden";
    place("file").value = "";
  }

  document.addEventListener("change", changed);
  document.addEventListener("click", forget);
  document.addEventListener("click", copy);
  dark.addEventListener("change", () => draw(figures));
  Shiny.addCustomMessageHandler("gp4c", (message) => {
    say(message.busy);
    return told[message.kind](message);
  });
  state("empty");
})();
