"""The report in a real browser: it renders, responds, and asks nothing of the network."""

import re

import pytest

import gp4c
from gp4c.analysis.compare_groups import compare
from gp4c.reporting.page.html_report import Report

GROUP = "<b>new</b> & $x$"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two groups, one of them with a name that looks like markup."""
    panel = gp4c.load_dataset("bladder")
    frame = panel.to_frame().replace({"treatment": {"thiotepa": GROUP}})
    panel = gp4c.PanelCounts.from_frame(frame, time_unit="months")
    quick = gp4c.GP4C(effect="gamma", count_term="pointwise", hyper="optimize", n_inducing=14)
    found = compare(panel, "treatment", quick, n_permutations=99)
    path = tmp_path_factory.mktemp("report") / "report.html"
    Report(found.models, panel, "treatment", found, title="Bladder").save(path)
    return path


@pytest.fixture
def opened(chromium, report):
    """Open the page; nothing may have gone wrong and nothing been fetched when the test ends."""
    contexts, complaints, requests = [], [], []

    def open_page(**options):
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-drawn]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    outside = [url for url in requests if not url.startswith(("data:", "blob:"))]
    assert outside == [report.as_uri()] * len(contexts)


def band_height(page, figure="cumulative"):
    """Height of the first band in pixels; the axes stay as they are."""
    box = page.locator(f"#{figure} .fills path").first.bounding_box()
    return box["height"]


def test_every_figure_is_drawn(opened):
    page = opened()
    keys = page.eval_on_selector_all(".plot", "all => all.map(e => e.id)")
    assert {"rate", "cumulative", "ratio-cumulative-0", "rootogram-0", "pit-1"} <= set(keys)
    for key in keys:
        drawn = page.locator(f"#{key} :is(.scatterlayer, .barlayer) path").count()
        assert drawn > 0, key
    assert page.locator("canvas").count() == 0
    assert page.title() == "Bladder"


def test_hovering_tells_values(opened):
    page = opened()
    plot = page.locator("#cumulative")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    label = page.locator("#cumulative .hoverlayer .legendtext")
    label.first.wait_for(state="attached")
    text = " ".join(label.all_text_contents())
    assert re.search(r"placebo : [\d.]+ \(95%: [\d.]+ to [\d.]+\)", text)
    assert GROUP in text  # shown as it is, not as markup


def test_the_policy_is_obeyed_while_everything_is_used(opened, tmp_path):
    page = opened()  # which fails on the browser's word about a style or a script it refused
    plot = page.locator("#cumulative")
    plot.scroll_into_view_if_needed()
    plot.hover()
    with page.expect_download() as waiting:  # the picture of a plot as a file
        page.locator("#cumulative .modebar-btn").first.click(force=True)
    waiting.value.save_as(tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text(encoding="utf-8")
    sheets = page.evaluate("Array.from(document.styleSheets).map(sheet => sheet.cssRules.length)")
    assert sum(rules > 20 for rules in sheets) == 2  # ours and the one that Plotly fills


def test_styles_and_scripts_that_are_not_ours_are_refused(chromium, report):
    page = chromium.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-drawn]")
    refused = page.evaluate(
        """async () => {
        const said = [];
        document.addEventListener("securitypolicyviolation", e => said.push(e.violatedDirective));
        const add = (name, text) => {
            const element = document.createElement(name);
            element.textContent = text;
            document.body.append(element);
        };
        add("style", "h1 { opacity: 0 }");
        add("script", "window.ran = true");
        document.querySelector("h1").innerHTML = "<i style='opacity: 0' onclick='ran = 1'>x</i>";
        document.querySelector("h1 i").click();
        await new Promise(done => setTimeout(done, 200));
        const shown = ["h1", "h1 i"].map(e => getComputedStyle(document.querySelector(e)).opacity);
        return [said.sort(), shown, window.ran === undefined];
        }"""
    )
    directives = ["script-src-attr", "script-src-elem", "style-src-attr", "style-src-elem"]
    assert refused == [directives, ["1", "1"], True]
    page.close()


def test_the_switch_changes_all_bands_with_mouse_and_keyboard(opened):
    page = opened()
    wide = band_height(page)
    page.get_by_label("50%", exact=True).check()
    page.wait_for_selector('html[data-drawn="0.5"]')
    narrow = band_height(page)
    assert narrow < wide
    captions = page.locator("figcaption [data-level]").all_text_contents()
    assert set(captions) == {"50%"}
    page.get_by_label("50%", exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('html[data-drawn="0.8"]')
    assert narrow < band_height(page) < wide


def contrast(first, second):
    """Contrast of two CSS colours as the accessibility guidelines (WCAG 2) define it."""

    def luminance(colour):
        parts = [float(x) / 255 for x in re.findall(r"[\d.]+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted([luminance(first), luminance(second)], reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_in_light_and_dark(opened, scheme):
    page = opened(color_scheme=scheme)

    def colour(selector, what):
        return page.eval_on_selector(selector, f"e => getComputedStyle(e).{what}")

    paper = colour("body", "backgroundColor")
    assert (contrast(paper, "rgb(255,255,255)") > 10) == (scheme == "dark")
    for selector in ("h1", ".lead", "figcaption", "nav a", "td"):
        assert contrast(colour(selector, "color"), paper) >= 4.5, selector
    assert contrast(colour(".warn li", "color"), colour(".warn", "backgroundColor")) >= 4.5
    assert contrast(colour(".card .name", "color"), colour(".card", "backgroundColor")) >= 4.5
    assert contrast(colour("#rate .lines path.js-line[style*='2.6px']", "stroke"), paper) >= 3
    assert contrast(colour("#rate .xtick text", "fill"), paper) >= 4.5


def test_the_colours_follow_the_screen(opened):
    page = opened(color_scheme="light")
    line = "#rate .lines path.js-line[style*='2.6px']"
    before = page.eval_on_selector(line, "e => getComputedStyle(e).stroke")
    page.emulate_media(color_scheme="dark")
    for _ in range(50):
        after = page.eval_on_selector(line, "e => getComputedStyle(e).stroke")
        if after != before:
            break
        page.wait_for_timeout(100)
    assert after != before


def test_it_fits_a_telephone_and_opens_its_tables(opened):
    page = opened(viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#results summary").first.click()
    assert page.locator("#results details table").first.is_visible()


def test_it_prints(opened, tmp_path):
    page = opened(color_scheme="dark")
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000
    page.emulate_media(media="print", color_scheme="light")
    assert not page.locator("nav").is_visible()
    assert not page.locator(".switch").is_visible()
