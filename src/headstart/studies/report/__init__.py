"""The report: what a study looks like to a person.

build.py    gathers, writes report.html, figures/ and tables/
page.py     the nine sections, as HTML; style.css and script.js go into it
charts.py   the pictures, each from the numbers of the analysis
svg.py      scales, axes and marks that the pictures are drawn with
rows.py     what is counted row by row: calibration, confusion, examples
tables.py   the same numbers as CSV
"""

from headstart.studies.report.build import build_report

__all__ = ["build_report"]
