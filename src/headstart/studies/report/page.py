"""The page: nine sections in one file that needs nothing else and lets nothing else in."""

import base64
import hashlib
from html import escape
from importlib.resources import files

from headstart.studies.report.evidence import (
    examples_section,
    pretraining_section,
    trust_section,
)
from headstart.studies.report.findings import epochs_section, labels_section, verdict_section
from headstart.studies.report.material import Material
from headstart.studies.report.setting import data_section, network_section, rerun_section

SECTIONS = (
    verdict_section,
    epochs_section,
    labels_section,
    pretraining_section,
    trust_section,
    examples_section,
    data_section,
    network_section,
    rerun_section,
)


def page(material: Material) -> str:
    """The whole report as HTML."""
    style, script = _part("style.css"), _part("script.js")
    study = material.study
    # The browser itself refuses every request and every script but ours, whatever the data holds.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash(script)}'"
    seeds = f"{len(study.seeds)} seed{'s' if len(study.seeds) != 1 else ''}"
    about = f"{seeds}, {study.splits.get('test', 0):,} test rows"
    if study.corpus:
        about = f"pretrained on {study.corpus} · {about}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(study.dataset)}: does pretraining help?</title>
<style>{style}</style></head><body>
<header><span><strong>{escape(study.dataset)}</strong> · {escape(about)}</span>
<label class="switch"><input type="checkbox" id="seeds"> single seeds</label>
<button id="theme" type="button">light / dark</button></header>
<main>{"".join(make(material) for make in SECTIONS)}</main>
<footer>Made by Headstart {escape(study.versions.get("headstart", ""))}. The pictures are in
<code>figures/</code>, the tables in <code>tables/</code>, every number in <code>results.csv</code>,
beside this file.</footer>
<div id="tip" hidden></div>
<script>{script}</script></body></html>
"""


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
