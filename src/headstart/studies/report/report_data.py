"""What the sections are made from, and the small pieces of HTML that they share."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from headstart.lab import PRESET
from headstart.studies.analysis import Analysis, analyse
from headstart.studies.comparison import Series, series_of
from headstart.studies.costs import TrainingFacts, read_facts
from headstart.studies.recommendation import Recommendation, recommend
from headstart.studies.report.charts import Draw
from headstart.studies.report.svg import Frame, Picture, colour
from headstart.studies.results import (
    Predictions,
    Study,
    TestRow,
    read_measures,
    read_predictions,
    read_study,
    read_test_rows,
)
from headstart.studies.token_series import TokenSeries, read_token_series
from headstart.studies.verdict import Verdict, speaking_objective, verdict
from headstart.studies.words import series_name

WIDE = Frame(780, 380)
PHONE = Frame(350, 330, left=50, right=98)


@dataclass
class ReportData:
    """A study, its numbers, and the pictures and tables that the sections made on the way."""

    study: Study
    analysis: Analysis
    verdict: Verdict
    predictions: list[Predictions]
    test_rows: list[TestRow]
    facts: TrainingFacts = field(default_factory=dict)  # of each training
    advice: Recommendation | None = None
    tokens: list[TokenSeries] = field(default_factory=list)  # where several amounts were tried
    pictures: dict[str, Picture] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "ReportData":
        study, said, measures = read_study(folder), read_predictions(folder), read_measures(folder)
        analysis = analyse(study, measures, said)
        facts = read_facts(folder, [one.run for one in said])
        advice = recommend(folder, study, analysis, measures, said, facts)
        rows, tokens = read_test_rows(folder), read_token_series(folder, study, said)
        return cls(study, analysis, verdict(study, analysis), said, rows, facts, advice, tokens)

    @property
    def several(self) -> bool:
        """Whether there is more than one objective to tell apart."""
        return len(self.analysis.steps) > 1 or len(self.study.pretraining) > 1

    @property
    def is_lab(self) -> bool:
        """Whether this is the lab's experiment, whose picture is that of the curves by epoch."""
        return any(network.get("preset") == PRESET for network in self.study.parameters.values())

    @property
    def contenders(self) -> list[Series]:
        """The arms of the comparison, headline arm first, of the objective that speaks."""
        comparison = self.analysis.comparison
        if comparison is None or not self.analysis.steps:
            series = dict.fromkeys(score.series for score in self.analysis.scores)
            return list(series)[:2]
        objective = speaking_objective(self.analysis)
        return [series_of(arm, objective) for arm in reversed(comparison.chain)]

    @property
    def shown(self) -> list[Series]:
        """The arms that are looked at row by row: the two that are compared, and the one taken."""
        winner = [self.advice.series] if self.advice else []
        return list(dict.fromkeys([*winner, *self.contenders[:2]]))

    def figure(
        self, name: str, caption: str, draw: Draw, wide: Frame = WIDE, phone: Frame = PHONE
    ) -> str:
        """A picture in two sizes; the wide one becomes a file, too."""
        name = re.sub(r"[^a-z0-9+-]", "-", name)  # it becomes a file's name
        picture = self.pictures[name] = draw(wide)
        return figure(name, caption, picture, draw(phone))

    def key(self, series: Series) -> str:
        """A series' name with its colour."""
        mark = f'<span class="key" style="background:{colour(series[0])}"></span>'
        return mark + escape(series_name(series, self.study))


def figure(name: str, caption: str, wide: Picture, phone: Picture) -> str:
    """A picture in two sizes, so that its letters stay readable on a phone."""
    return (
        f'<figure id="{name}"><figcaption>{escape(caption)}</figcaption>'
        f'<div class="wide">{wide.svg()}</div><div class="phone">{phone.svg()}</div></figure>'
    )


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain words."""
    attribute = f' class="{kind}"' if kind else ""
    return f"<p{attribute}>{escape(words)}</p>"


def emphasised(sentence: str) -> str:
    """A sentence with its intervals, in brackets, kept together and set lighter."""
    return re.sub(r"\(([^()]*)\)", r'<span class="reach">(\1)</span>', escape(sentence))


def facts_table(name: str, facts: Iterable[tuple[str, str]]) -> str:
    """Names and what they stand for; plain words."""
    rows = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in facts)
    return f'<table class="facts"><thead><tr><th colspan="2">{name}</th></tr></thead>{rows}</table>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], spare: Sequence[int] = ()) -> str:
    """A table; cells are HTML already, `spare` columns are left out on a phone."""

    def cells(tag: str, row: Sequence[str]) -> str:
        hidden = [' class="spare"' if i in spare else "" for i in range(len(row))]
        return "".join(f"<{tag}{hidden[i]}>{cell}</{tag}>" for i, cell in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{cells("th", head)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def section(name: str, title: str, *parts: str) -> str:
    """One of the nine sections."""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'
