"""Gather a study's numbers and write its report: the page, the figures, the tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.files import replacing, write_text
from headstart.studies.report.material import Material
from headstart.studies.report.page import page
from headstart.studies.report.svg import Picture
from headstart.studies.report.tables import write_tables

INSTALL = "pip install 'headstart[figures]'"


@dataclass(frozen=True)
class Report:
    """The files that were written, and the verdict they carry."""

    path: Path
    figures: list[Path]
    tables: list[Path]
    sentences: list[str]
    missing: str | None  # what would have been written too, and how to get it


def build_report(folder: Path) -> Path:
    """Write `report.html`, `figures/` and `tables/` into the study's folder."""
    return write_report(folder).path


def write_report(folder: Path) -> Report:
    """The same, telling every file."""
    material = Material.read(folder)
    if not material.analysis.scores:
        raise HeadstartError(
            "the study has no finished run to report on",
            where=folder / "results.csv",
            fix="run `headstart compare` again; it goes on where it stopped",
        )
    write_text(folder / "report.html", page(material))
    figures, missing = _write_figures(folder / "figures", material.pictures)
    tables = write_tables(folder / "tables", material)
    sentences = material.verdict.sentences
    return Report(folder / "report.html", figures, tables, sentences, missing)


def _write_figures(folder: Path, pictures: Mapping[str, Picture]) -> tuple[list[Path], str | None]:
    """Every picture as SVG, and as PNG where the optional renderer is there."""
    drawing = find_spec("resvg_py") is not None and find_spec("font_roboto") is not None
    written = []
    for name, picture in pictures.items():
        svg = picture.svg(standalone=True)
        write_text(folder / f"{name}.svg", svg)
        written.append(folder / f"{name}.svg")
        if drawing:
            with replacing(folder / f"{name}.png") as temporary:
                temporary.write_bytes(_png(svg))
            written.append(folder / f"{name}.png")
    return written, None if drawing else f"PNG figures are an extra: {INSTALL}"


def _png(svg: str) -> bytes:
    """Three pixels for one, for print; a font of our own, as a server may have none."""
    from resvg_py import svg_to_bytes

    fonts = find_spec("font_roboto")
    assert fonts is not None
    assert fonts.origin is not None
    return svg_to_bytes(
        svg_string=svg,
        zoom=3,
        skip_system_fonts=True,
        font_dirs=[str(Path(fonts.origin).parent / "files")],
        font_family="Roboto",
        sans_serif_family="Roboto",
    )
