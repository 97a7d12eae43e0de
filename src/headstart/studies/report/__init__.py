"""The report: what a study looks like to a person.

build.py    writes report.html, figures/ and tables/ (CSV); CSS and JavaScript go in
findings.py, evidence.py    the nine sections, as HTML, from `report_data.py`
charts.py   the pictures, each from the numbers of the analysis
svg.py      scales, axes and marks that the pictures are drawn with
rows.py     what is counted row by row: calibration, confusion, examples
"""

from headstart.studies.report.build import build_report

__all__ = ["build_report"]
