"""The report of a study: build.py fills template.html, charts.py draws every figure as SVG."""
