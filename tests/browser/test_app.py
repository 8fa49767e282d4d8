"""The page of ``gp4c app`` in a real browser, as a user without Python meets it."""

import re
import subprocess
import sys
import time
import zipfile
from importlib import resources

import pytest

import gp4c

TIMEOUT = 180_000  # a busy machine
BLADDER = resources.files("gp4c.data.datasets") / "bladder.csv"


@pytest.fixture(scope="module")
def address():
    """The program itself, as typed; it prints its address and ends with Ctrl-C."""
    command = [sys.executable, "-c", "from gp4c.cli import main; main()", "app", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield server.stdout.readline().strip()
    server.send_signal(subprocess.signal.SIGINT)
    _, complaints = server.communicate(timeout=30)
    assert server.returncode == 0
    assert complaints == "Ctrl-C ends it.\n"


@pytest.fixture
def opened(chromium, address):
    """Open tabs; no complaint and no request to anybody else may have been made at the end."""
    contexts, complaints, requests = [], [], []

    def open_page(context=None, **options):
        if context is None:
            context = chromium.new_context(**options)
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.on("websocket", lambda socket: requests.append(socket.url))
        page.goto(address)
        page.wait_for_selector('html[data-state="empty"]')
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    home = address.split("?")[0].removeprefix("http")
    ours = ("http" + home, "ws" + home, "data:", "blob:")
    assert [url for url in requests if not url.startswith(ours)] == []
    assert any(url.startswith("ws") for url in requests)


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """Twelve patients in two arms: quick to fit."""
    panel, _ = gp4c.simulate_panel(0.5, n_subjects=12, window=(0.0, 6.0), random_state=3)
    frame = panel.to_frame()
    frame["arm"] = ["new" if int(name) % 2 else "old" for name in frame["subject"]]
    frame["centre"] = ["x" if int(name) % 3 else "y" for name in frame["subject"]]
    path = tmp_path_factory.mktemp("app") / "trial.csv"
    frame.to_csv(path, index=False)
    return path


def upload(page, path):
    page.set_input_files("#file", path)
    page.wait_for_selector('html[data-state="ready"]')


def fit(page):
    page.click("#fit")
    page.wait_for_selector('html[data-state="fitting"]')
    page.wait_for_selector('html[data-state="ready"]')
    page.wait_for_selector("#code-section")


def download(page, kind, folder):
    with page.expect_download() as waiting:
        page.click(f"#download_{kind}")
    target = folder / waiting.value.suggested_filename
    waiting.value.save_as(target)
    return target


def test_from_a_file_to_results_and_another_group(opened, trial, tmp_path):
    page = opened()
    upload(page, trial)
    page.wait_for_selector("#panel-picture")
    assert page.locator("#column_subject option:checked").inner_text() == "subject (found)"
    fit(page)
    assert page.locator("#rate .scatterlayer path").count() > 0
    assert page.locator("#comparison").count() == 0
    model = gp4c.load_model(download(page, "model", tmp_path))
    expected = gp4c.GP4C(random_state=0).fit(gp4c.read_panel(trial))
    assert model.cumulative(6.0) == expected.cumulative(6.0)

    page.select_option("#by", "arm")
    page.wait_for_selector('html[data-stale="yes"]')  # what is shown is no longer what is chosen
    fit(page)
    assert page.locator("html[data-stale]").count() == 0
    assert "arm: new" in page.inner_text("#header")
    assert "--by arm" in page.inner_text("#code-commands")
    page.select_option("#by", "centre")
    fit(page)
    assert "centre: x" in page.inner_text("#header")
    assert "arm:" not in page.inner_text("#header")

    report = download(page, "report", tmp_path)
    assert "centre: x" in report.read_text(encoding="utf-8")
    with zipfile.ZipFile(download(page, "everything", tmp_path)) as archive:
        names = set(archive.namelist())
    assert {"report.html", "analysis.py", "commands.txt", "fit-x.json", "curves.csv"} <= names
    assert {"cumulative.svg", "cumulative.png", "ratios.csv"} <= names
    assert {"report.docx", "table-data.docx", "table-comparison.docx"} <= names
    assert download(page, "word", tmp_path).name == "report.docx"
    assert download(page, "script", tmp_path).read_text() == page.text_content("#code-script")


def test_columns_can_be_corrected(opened, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("who,when,seen\n" + "".join(f"{k},{t},1\n" for k in range(4) for t in (2, 5)))
    page = opened()
    upload(page, path)
    assert "no column that looks like the subject" in page.inner_text(".problem")
    assert not page.locator("#fit").is_visible()
    page.select_option("#column_subject", "who")
    page.select_option("#column_count", "seen")
    page.get_by_label("visit", exact=True).check()
    page.select_option("#column_time", "when")
    page.wait_for_selector("#panel-picture")
    assert page.locator(".problem").count() == 0
    assert page.locator("#fit").is_enabled()


def test_a_fleet_has_usage_and_units_out_of_service(opened, tmp_path):
    panel, _ = gp4c.simulate_panel(0.5, n_subjects=8, window=(0.0, 6.0), random_state=3)
    frame = panel.to_frame()
    frame["hours"] = 100.0 * (frame["stop"] - frame["start"])
    frame["retired"] = ["yes" if int(name) % 2 else "no" for name in frame["subject"]]
    path = tmp_path / "fleet.csv"
    frame.to_csv(path, index=False)
    page = opened()
    upload(page, path)
    page.wait_for_selector("#panel-picture")
    page.get_by_text("More columns").click()
    assert not page.get_by_label("Draw curves over usage").is_visible()
    page.select_option("#column_usage", "hours")
    page.select_option("#column_end", "retired")
    page.locator(".look th", has_text="out of service").wait_for(state="attached")
    assert page.get_by_label("Draw curves over usage").is_visible()
    page.get_by_text("More options").click()
    page.select_option("#bursts", "no")
    fit(page)
    command = page.inner_text("#code-commands")
    assert "--usage hours --end retired" in command
    assert "--bursts no" in command
    assert "usage='hours', end='retired'" in page.inner_text("#code-script")
    assert "per hour of usage" in page.inner_text("#models")


def test_a_fit_waits_for_the_column_that_was_just_chosen(opened, trial, tmp_path):
    import pandas as pd

    frame = pd.read_csv(trial)
    frame["twice"] = 2 * frame["count"]
    path = tmp_path / "two.csv"
    frame.to_csv(path, index=False)
    page = opened()
    upload(page, path)
    page.wait_for_selector("#panel-picture")
    page.select_option("#column_count", "twice")
    fit(page)  # before the page has looked at the table again
    assert "--count twice" in page.inner_text("#code-commands")


def test_a_comparison_within_strata_from_another_group(opened, trial):
    page = opened()
    upload(page, trial)
    page.wait_for_selector("#panel-picture")
    assert not page.get_by_text("Comparison", exact=True).is_visible()
    page.select_option("#by", "arm")
    page.get_by_text("Comparison", exact=True).click()
    page.wait_for_selector('#reference option[value="old"]', state="attached")
    page.select_option("#reference", "old")
    page.select_option("#strata", "centre")
    page.select_option("#test", "any")
    fit(page)
    command = page.inner_text("#code-commands")
    assert "--by arm --test any --reference old --strata centre" in command.splitlines()[0]
    assert "--strata" not in command.splitlines()[1]
    assert "reference='old', strata='centre'" in page.inner_text("#code-script")
    assert "new / old" in page.inner_text("#comparison")
    page.select_option("#by", "")  # what is not compared has no strata
    fit(page)
    assert "--strata" not in page.inner_text("#code-commands")


@pytest.mark.parametrize("text", ["", "a,b\n1\n", "\x00\x01\x02\x00", "subject,start,stop,count\n"])
def test_a_broken_file_is_a_sentence(opened, tmp_path, text):
    path = tmp_path / "broken.csv"
    path.write_bytes(text.encode())
    page = opened()
    upload(page, path)
    said = page.inner_text(".problem")
    assert "Traceback" not in page.content()
    assert len(list(filter(None, said.splitlines()))) == 2  # the heading and a sentence
    assert "0.csv" not in said  # which is what the server calls it
    assert not page.locator("#fit").is_visible()


def test_problems_are_named_by_row(opened, tmp_path, trial):
    path = tmp_path / "rows.csv"
    lines = trial.read_text().splitlines()
    lines[3] = re.sub(r"^([^,]*,[^,]*,[^,]*),\d+", r"\1,-1", lines[3])
    path.write_text("\n".join(lines))
    page = opened()
    upload(page, path)
    assert "(line 4)" in page.inner_text(".problem")
    upload(page, trial)  # a good file mends it
    page.wait_for_selector("#panel-picture")
    assert page.locator(".problem").count() == 0


def test_labels_are_not_markup(opened, tmp_path):
    attack = "<img src=x onerror=document.title='x'>"
    path = tmp_path / "attack.csv"
    path.write_text(
        f"subject,start,stop,count,{attack}\n1,0,1,1,{attack}\n2,0,1,0,{attack}\n3,0,1,1,b\n"
    )
    page = opened()
    upload(page, path)
    page.wait_for_selector("#panel-picture")
    page.select_option("#by", attack)
    fit(page)
    assert page.title() == "gp4c"
    assert page.locator("img[src=x]").count() == 0


def test_a_fit_can_be_cancelled(opened):
    page = opened()
    page.click("#example_nausea")
    page.wait_for_selector('html[data-state="ready"]')
    page.click("#fit")
    page.wait_for_selector('html[data-state="fitting"]')
    assert page.inner_text("#progress") != ""
    assert page.locator("#fit").is_disabled()
    began = time.monotonic()
    page.click("#cancel")
    page.wait_for_selector('html[data-state="ready"]')
    assert time.monotonic() - began < 30
    assert page.inner_text("#progress") == "Stopped."
    assert page.locator("#shown section").count() == 0
    page.click("#example_bladder")  # and the page goes on
    page.wait_for_selector("#panel-picture")


def test_two_tabs_are_two_sessions(opened, trial):
    first = opened()
    second = opened(context=first.context)
    upload(first, trial)
    second.click("#example_bladder")
    second.wait_for_selector("#panel-picture")
    first.select_option("#by", "arm")
    first.click("#fit")
    second.click("#fit")
    for page in (first, second):
        page.wait_for_selector("#code-section")
    assert "trial.csv" in first.inner_text(".look h2")
    assert "--by arm" in first.inner_text("#code-commands")
    assert "bladder" in second.inner_text(".look h2")
    assert "--by" not in second.inner_text("#code-commands")
    second.close()
    first.select_option("#by", "")
    fit(first)
    assert "--by" not in first.inner_text("#code-commands")


def chooser_of(page, tries=8):
    """What Enter opens on the field of files; headless Chromium ignores a key now and then."""
    from playwright.sync_api import TimeoutError

    for _ in range(tries):
        try:
            with page.expect_file_chooser(timeout=8_000) as chooser:
                page.keyboard.press("Enter")
            return chooser.value
        except TimeoutError:
            continue
    raise AssertionError("Enter opens no chooser of files")


def test_it_works_by_keyboard_alone(opened, trial):
    page = opened()
    page.wait_for_selector("#file.shiny-bound-input", state="attached")
    page.bring_to_front()  # a page in the background opens no chooser
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "file"
    chooser_of(page).set_files(trial)
    page.wait_for_selector('html[data-state="ready"]')
    page.wait_for_selector('#by option[value="arm"]', state="attached")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id"))
        if seen[-1] == "by":
            page.keyboard.press("a")  # arm
            page.wait_for_function("document.getElementById('by').value == 'arm'")
        if seen[-1] == "fit":
            break
    assert seen[-1] == "fit"
    assert {"column_subject", "column_count", "by"} <= set(seen)
    page.keyboard.press("Enter")
    page.wait_for_selector('html[data-state="fitting"]')
    assert page.evaluate("document.activeElement.id") == "cancel"
    page.wait_for_selector("#code-section")
    assert "--by arm" in page.inner_text("#code-commands")
    page.locator('input[name="level"]:checked').focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("document.querySelector('[data-level]').textContent == '80%'")


def contrast(page, selector):
    """Contrast of a text with what is behind it, as the accessibility guidelines define it."""
    return page.eval_on_selector(
        selector,
        """e => {
        const light = (c) => {
            const p = c.match(/[0-9.]+/g).slice(0, 3).map((v) => v / 255)
                .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * p[0] + 0.7152 * p[1] + 0.0722 * p[2];
        };
        let behind = e, colour = "";
        do { colour = getComputedStyle(behind).backgroundColor; behind = behind.parentElement; }
        while (/, 0\\)$/.test(colour) && behind);
        const both = [light(getComputedStyle(e).color), light(colour)].sort((a, b) => b - a);
        return (both[0] + 0.05) / (both[1] + 0.05);
        }""",
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_in_light_and_dark(opened, scheme, trial):
    page = opened(color_scheme=scheme)
    upload(page, trial)
    page.wait_for_selector("#panel-picture")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    for selector in (
        "h1", ".lead", ".step h2", ".step .number", ".hint", ".hint a", "#column_subject",
        "#layout label", "#fit", ".btn-file", ".facts dt", ".facts dd", "summary",
    ):  # fmt: skip
        assert contrast(page, selector) >= 4.5, selector


def test_it_fits_a_telephone(opened, trial):
    page = opened(viewport={"width": 390, "height": 800})
    upload(page, trial)
    page.wait_for_selector("#panel-picture")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.select_option("#by", "arm")
    fit(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for element in page.locator(".settings :is(button, select, .downloads a)").all():
        if element.is_visible():
            assert element.bounding_box()["height"] >= 32  # large enough for a finger


def test_without_the_token_nothing_is_answered(chromium, address, opened):
    home = address.split("?")[0]
    opened()  # another tab with the token does not help a stranger
    page = chromium.new_context().new_page()
    for place in ("", "lib/jquery-3.6.0/jquery-3.6.0.min.js", "?token=wrong"):
        answer = page.goto(home + place)
        assert answer.status == 403
        assert "Shiny" not in answer.text()
    closed = page.evaluate(
        """home => new Promise(done => {
        const socket = new WebSocket(home.replace("http", "ws") + "websocket/");
        socket.onopen = () => done(false);
        socket.onclose = () => done(true);
        })""",
        home,
    )
    assert closed
    page.context.close()


def test_the_first_picture_comes_soon_after_the_upload(opened):
    page = opened()
    page.wait_for_timeout(3000)  # the process behind the page has loaded its libraries
    began = time.monotonic()
    page.set_input_files("#file", str(BLADDER))
    page.wait_for_selector("#panel-picture")
    seconds = time.monotonic() - began
    print(f"first figure of the bladder data after {seconds:.2f} s")
    assert seconds < 20  # 3 s on a quiet machine; benchmarks do not belong here
