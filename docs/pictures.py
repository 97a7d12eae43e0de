"""Take the pictures of the web app: `python docs/pictures.py`, about ten minutes.

A study of 800 sentences of the embedded film reviews, with 1,500 other reviews as text without
labels, goes through the app from the file to the classifier. Needs Chromium with its driver, and
selenium.
"""

import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from itertools import islice
from pathlib import Path
from typing import Any

from selenium import webdriver

from headstart.data.readers import LINE_BREAKS, embedded_file

DOCS = Path(__file__).parent
ROWS, REVIEWS = 800, 1_500
SETTINGS = {
    "minutes": 8,
    "seeds": 3,
    "labels": "100 all",
    "arms": ["tfidf", "scratch", "pretrained"],
}
TEXT = "A slow start, but the cast is wonderful and the last half hour is a delight."
LABELS = {"0": "negative", "1": "positive"}
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
DESKTOP, PHONE = (1280, 1000), (390, 844)


def write_files(folder: Path) -> tuple[Path, Path]:
    """Write labelled sentences and a corpus from the embedded reviews."""
    with embedded_file().open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sentences = [row for row in rows if row["source"] == "rotten_tomatoes"]
    reviews = (row["text"] for row in rows if row["source"] == "imdb")
    data, corpus = folder / "reviews.csv", folder / "more-reviews.txt"
    with data.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        step = len(sentences) // ROWS
        for row in islice(sentences[::step], ROWS):
            writer.writerow([row["text"], LABELS[row["label"]]])
    lines = (
        LINE_BREAKS.sub("\n", text).replace(" \n", "\n").replace("\n", " ")
        for text in islice(reviews, REVIEWS)
    )
    corpus.write_text("\n".join(lines), encoding="utf-8")
    return data, corpus


class App:
    """The app of a folder, and a browser that shows it."""

    def __init__(self, folder: Path) -> None:
        options = ["--folder", str(folder / "app"), "--no-browser", "--port", "0", "--json"]
        command = [sys.executable, "-m", "headstart", "app", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        lines = iter(self.process.stdout.readline, "")
        printed = ""
        while not printed.endswith("}\n"):
            printed += next(lines)
        self.address = json.loads(printed)["address"]
        self.origin, _, self.key = self.address.partition("/#key=")
        chosen = webdriver.ChromeOptions()
        chosen.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            chosen.add_argument(flag)
        service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        self.browser = webdriver.Chrome(options=chosen, service=service)
        self.browser.get(self.address)
        time.sleep(2)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
        """Send a request with the key."""
        headers |= {"Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(self.origin + path, body, headers, method=method)
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def run(self, path: str, step: str, **settings: Any) -> None:
        """Start a command of a study."""
        body = json.dumps(settings).encode()
        self.ask("POST", f"{path}/{step}", body, **{"Content-Type": "application/json"})

    def wait(self, path: str, job: str) -> None:
        """Wait for the end of a command."""
        while (found := self.ask("GET", path)["jobs"][job])["state"] == "running":
            time.sleep(1)
        assert found["state"] == "done", found

    def picture(self, path: str, name: str, size: tuple[int, int], *, dark: bool = False) -> None:
        """Open a step of the page and take its picture."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        theme = "dark" if dark else "light"
        self.browser.execute_script(f"localStorage.setItem('headstart-theme', '{theme}')")
        self.browser.get("about:blank")
        self.browser.get(self.origin + path)
        time.sleep(4)
        if path.endswith("#try"):
            self.browser.find_element("css selector", "textarea").send_keys(TEXT)
            self.browser.find_element("css selector", "form.try button").click()
            time.sleep(3)
        self.browser.save_screenshot(str(DOCS / name))

    def close(self) -> None:
        self.browser.quit()
        self.process.terminate()
        self.process.wait(60)


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        data, corpus = write_files(Path(place))
        app = App(Path(place))
        try:
            named = {"X-File-Name": data.name}
            study = app.ask("POST", "/api/studies", data.read_bytes(), **named)["id"]
            path, page = f"/api/studies/{study}", f"/study/{study}"
            app.ask("PUT", f"{path}/corpus", corpus.read_bytes(), **{"X-File-Name": corpus.name})
            app.run(path, "inspect")
            app.wait(path, "inspect")
            app.picture(f"{page}#data", "app-data.png", DESKTOP)
            app.run(path, "plan", **SETTINGS)
            app.wait(path, "plan")
            app.run(path, "start")
            live: dict[str, Any] = {"trainings": None}
            while live["trainings"] is None or live["finished"] < 0.6 * live["trainings"]:
                time.sleep(1)
                live = app.ask("GET", f"{path}/live")
            app.picture(f"{page}#watch", "app-watch.png", DESKTOP)
            app.picture(f"{page}#watch", "app-phone-dark.png", PHONE, dark=True)
            app.wait(path, "study")
            app.picture(f"{page}#report", "app-phone.png", PHONE)
            app.picture(f"{page}#try", "app-try-dark.png", DESKTOP, dark=True)
        finally:
            app.close()


if __name__ == "__main__":
    main()
