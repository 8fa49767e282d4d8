// Draws figures with Plotly from plain values, in the colours of the page; nothing is fetched.
"use strict";
const gp4cFigures = (function () {
  // pixels from the axis down to the numbers of observed subjects, and from line to line
  const BELOW = 48, LINE = 20;

  function css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function faint(colour, alpha) {
    const parts = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
    return "rgba(" + parts.join(",") + "," + alpha + ")";
  }

  // a time as Plotly takes it: a date where the data have dates
  function when(figure, time) {
    if (!figure.dates || time === null) return time;
    return new Date(Date.parse(figure.dates.origin.slice(0, 23) + "Z") + time * figure.dates.step).toISOString().slice(0, 23);
  }

  function curveTraces(figure, level) {
    const traces = [];
    figure.series.forEach((series, index) => {
      const colour = css("--series-" + (index % 7));
      const shape = figure.step ? "hv" : "linear";
      const band = series.bands[level], x = series.x.map((time) => when(figure, time));
      if (band) {
        const edge = { x: x, mode: "lines", line: { width: 0, shape: shape, simplify: false }, hoverinfo: "skip", showlegend: false };
        traces.push({ ...edge, y: band[0] });
        traces.push({ ...edge, y: band[1], fill: "tonexty", fillcolor: faint(colour, 0.22) });
      }
      traces.push({
        x: x, y: series.y, name: series.name, mode: "lines", showlegend: figure.series.length > 1,
        line: { color: colour, width: 2.6, dash: series.dash, shape: shape, simplify: false },
        customdata: band ? series.y.map((_, k) => [band[0][k], band[1][k]]) : undefined,
        hovertemplate: band
          ? "%{y:.3g} (" + percent(level) + ": %{customdata[0]:.3g} to %{customdata[1]:.3g})"
          : "%{y:.3g}",
      });
    });
    return traces;
  }

  function barTraces(figure) {
    const bars = {
      type: "bar", x: figure.x, y: figure.y, base: figure.base, name: figure.name, width: figure.width,
      marker: { color: faint(css("--series-0"), 0.55) }, hovertemplate: "%{customdata}<extra></extra>", customdata: figure.texts,
    };
    const line = {
      x: figure.x, y: figure.line, name: figure.lineName, mode: figure.markers ? "lines+markers" : "lines",
      line: { color: css("--series-1"), width: 2.4 }, hoverinfo: "skip",
    };
    return figure.line ? [bars, line] : [bars];
  }

  // axes keep their range when bands change, so that the change is seen
  function heights(figure) {
    if (figure.kind === "bars") return undefined;
    const values = figure.series.flatMap((series) => Object.values(series.bands).flat().concat([series.y]).flat());
    const shown = values.filter((v) => v !== null && (!figure.log || v > 0));
    const top = Math.max(...shown);
    if (!figure.log) return [0, 1.05 * top || 1];
    return [Math.log10(Math.min(...shown, 1) / 1.1), Math.log10(Math.max(top, 1) * 1.1)];
  }

  // numbers of observed subjects, a line for each group below the ticks they belong to
  function below(figure) {
    if (!figure.observed) return [];
    const plain = { yref: "paper", y: 0, yanchor: "top", showarrow: false };
    const notes = [{ ...plain, xref: "paper", x: 0, xanchor: "left", yshift: -BELOW, text: figure.observed.heading }];
    figure.observed.rows.forEach((row, index) => {
      const font = { color: css("--series-" + (index % 7)) };
      const line = { ...plain, yshift: -BELOW - LINE * (index + 1), font: font };
      notes.push({ ...line, xref: "paper", x: 0, xanchor: "right", xshift: -16, text: row.name });
      figure.ticks.forEach((time, k) => notes.push({ ...line, xref: "x", x: when(figure, time), xanchor: "center", text: row.numbers[k] }));
    });
    return notes;
  }

  function margin(figure) {
    const rows = figure.observed ? figure.observed.rows : [];
    const longest = figure.observed ? figure.observed.longest : 0;
    return { l: Math.max(60, 8.5 * longest + 24), r: 15, t: 15, b: rows.length ? BELOW + LINE * (rows.length + 1) + 10 : 50 };
  }

  // a day is told from its hours where the unit is an hour or less
  function dated(figure) {
    if (!figure.dates) return {};
    return { type: "date", hoverformat: figure.dates.step > 4e6 ? "%-d %b %Y" : "%-d %b %Y %H:%M" };
  }

  function layout(figure) {
    const ink = css("--ink"), grid = css("--grid"), muted = css("--muted");
    const axis = { gridcolor: grid, zerolinecolor: grid, linecolor: muted, tickcolor: muted, automargin: true };
    const shapes = (figure.lines || []).map((y) => ({
      type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: muted, width: 1.3, dash: "dash" },
    }));
    (figure.rug || []).forEach((x) => shapes.push({
      type: "line", x0: when(figure, x), x1: when(figure, x), yref: "paper", y0: 0, y1: 0.025, line: { color: ink, width: 1 }, opacity: 0.55,
    }));
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, family: getComputedStyle(document.body).fontFamily, size: 14 },
      margin: margin(figure), annotations: below(figure), hovermode: figure.kind === "bars" ? "closest" : "x unified", shapes: shapes,
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: ink } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: css("--accent") },
      legend: { orientation: "h", traceorder: "normal", y: 1.02, yanchor: "bottom", x: 0 }, bargap: 0.1, dragmode: "zoom", uirevision: "keep the zoom",
      xaxis: { ...axis, ...dated(figure), title: { text: figure.xlabel, standoff: figure.observed ? 8 : undefined }, showgrid: false, tickvals: figure.ticks && figure.ticks.map((time) => when(figure, time)), ticktext: figure.tickNames, range: figure.range },
      yaxis: { ...axis, title: { text: figure.ylabel }, range: heights(figure), type: figure.log ? "log" : "linear", tickvals: figure.yticks, ticktext: figure.yticks },
    };
  }

  function percent(value) {
    return parseFloat((100 * parseFloat(value)).toPrecision(4)) + "%";
  }

  const config = {
    responsive: true, displaylogo: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg", filename: "gp4c" },
  };

  // each figure in the element with its key as id, with bands of the level
  function draw(figures, level) {
    return Promise.all(Object.entries(figures).map(([id, figure]) => {
      const traces = figure.kind === "bars" ? barTraces(figure) : curveTraces(figure, level);
      const place = document.getElementById(id);
      if (figure.observed) place.style.height = "calc(24rem + " + LINE * (figure.observed.rows.length + 1) + "px)";
      return Plotly.react(place, traces, layout(figure), config);
    }));
  }

  return { draw: draw, percent: percent };
})();
