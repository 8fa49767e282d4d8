"""A panel's HTML representation and picture, as a browser shows them."""

import re

import numpy as np
from matplotlib.colors import to_rgb

import gp4c
from gp4c.reporting.figures.panel_picture import ZERO_COLOUR, save_panel_picture

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>panel</title></head>
<body style="margin:0;background:#fff">{body}
<script>document.body.dataset.width = document.querySelector("{probe}").clientWidth;</script>
</body></html>"""


def write_page(path, body, probe):
    path.write_text(PAGE.format(body=body, probe=probe), encoding="utf-8")
    return path


def test_the_html_representation_is_shown_as_a_table(browser, tmp_path):
    panel = gp4c.load_dataset("bladder")
    page = write_page(tmp_path / "repr.html", panel._repr_html_(), "table")
    content = browser.content(page)
    assert int(re.search(r'data-width="(\d+)"', content).group(1)) > 50
    text = re.sub(r"<[^>]+>", " ", content)
    for number in (panel.n_subjects, panel.n_intervals, panel.n_events):
        assert str(number) in text
    shown = browser.screenshot(page)
    assert (shown < 0.5).any()  # ink on the page


def test_labels_cannot_smuggle_scripts_into_the_representation(browser, tmp_path):
    attack = "<script>document.title = 'taken over'</script><img src=x onerror=document.title='x'>"
    panel = gp4c.PanelCounts.from_frame(
        {"subject": [attack], "start": [0], "stop": [1], "count": [2], attack: [attack]},
        time_unit=attack,
    )
    content = browser.content(write_page(tmp_path / "repr.html", panel._repr_html_(), "table"))
    assert "<title>panel</title>" in content
    assert "<img" not in content


def test_the_picture_opens_as_svg(browser, tmp_path):
    save_panel_picture(gp4c.load_dataset("bladder"), tmp_path / "panel.svg")
    body = '<img src="panel.svg" alt="panel picture" width="800">'
    shown = browser.screenshot(write_page(tmp_path / "page.html", body, "img"))
    grey = np.isclose(shown, to_rgb(ZERO_COLOUR), atol=0.02).all(axis=2)
    assert 0.1 < grey.mean() < 0.6  # many intervals without events, but not the whole page
    dark = (shown.sum(axis=2) < 1.2) & (shown[..., 2] > shown[..., 1])
    assert dark.sum() > 100  # the intervals with most events
