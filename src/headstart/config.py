"""Every setting of every command, declared once: type, default, bounds, choices, help and panel.

The commands of the command line, their help, `docs/reference.md`, TOML files and the parameters of
the scikit-learn estimators are generated from these classes. `None` means "not given": the
training scripts find a value and save the one that they used. Nothing heavy is imported here.
"""

import dataclasses
import json
import math
import operator
import tomllib
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from headstart.arms import ARMS, FOREIGN, Arm, arm_order, find_arm, usual_arms
from headstart.errors import HeadstartError
from headstart.files import CONFIG_FILE, write_text
from headstart.files import is_run as is_run

ORIGIN = "origin.json"  # in a copy of such a model: its name
# Of pretraining.
OBJECTIVES = (
    "causal", "masked", "masked+next-sentence", "contrastive", "causal+contrastive",
    "masked+contrastive",
)  # fmt: skip
LARGEST = 10**15  # of any number without a bound
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}

Precision = Literal["fp32", "bf16"]
Pooling = Literal["last", "mean", "first", "max", "mean+max"]

# The settings with which a preset is usually trained, by command. The lab's network norms after
# the sums: at twice this learning rate it does not get past the unigram model. Its fine-tuning is
# Adam at one rate with a random head; token dropout and weight averaging are ours (docs/lab.md).
PRESET_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "lab": {
        "pretrain": {"learning_rate": 1e-3, "embedding_learning_rate": 2e-3},
        "finetune": {
            "pooling": "last",
            "head_init": "random",
            "epochs": 15,
            "batch_size": 8,
            "learning_rate": 1e-4,
            "schedule": "constant",
            "weight_decay": 0.0,
            "token_dropout": 0.35,
            "average": 0.5,
        },
        "compare": {"selection": "none"},
    },
}
TOKEN_TASKS = ("tagging", "spans")
WHOLE_TEXT_SETTINGS = ("pooling", "class_weight", "token_dropout")  # not of TOKEN_TASKS
# Large pretrained models need lower learning rates than ours.
HUGGINGFACE_SETTINGS: dict[str, dict[str, Any]] = {
    "pretrain": {"learning_rate": 1e-4},
    "finetune": {"learning_rate": 5e-5},
}


@dataclass(frozen=True)
class Setting:
    """One setting, from which its option, help and checks are generated."""

    name: str
    kind: type  # of a value, or of an item of a list: `bool`, `int`, `float` or `str`
    default: Any
    help: str
    is_list: bool = False
    panel: str = "Training"  # the part of `--help` that lists it
    choices: tuple[str, ...] = ()
    minimum: float | None = None  # bounds, included
    maximum: float | None = None
    above: float | None = None  # bounds, excluded
    below: float | None = None
    advanced: bool = False  # listed apart, at the end
    argument: bool = False  # a positional argument of the command
    amount: bool = False  # the command line takes `2M` for 2,000,000
    in_identity: bool = True  # a resumed run must have the same value

    @property
    def option(self) -> str:
        """Its option on the command line."""
        return f"--{self.name.replace('_', '-')}"

    def problem(self, value: Any) -> str | None:
        """Describe what is wrong with a value, as in "is 0; it must be at least 1"."""
        if value is None:
            return None if self.default is None else "is missing"
        if self.is_list and not isinstance(value, list | tuple):
            return f"is {_short(repr(value))}; it must be a list"
        for item in value if self.is_list else [value]:
            if wrong := self._item_problem(item):
                shown = f"{item:,}" if type(item) in (int, float) else repr(item)
                return f"is {_short(shown)}; {wrong}"
        return None

    def _item_problem(self, value: Any) -> str | None:
        allowed = (int, float) if self.kind is float else self.kind
        if not isinstance(value, allowed) or (type(value) is bool and self.kind is not bool):
            return f"it must be {KINDS[self.kind]}"
        if self.choices and value not in self.choices:
            return f"choose {', '.join(self.choices)}"
        if isinstance(value, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
            return "it must be valid Unicode without NUL characters"
        if isinstance(value, float) and not math.isfinite(value):
            return "it must be a finite number"
        if self.kind in (int, float):
            for words, bound, holds in (
                ("greater than", self.above, operator.gt),
                ("at least", self.minimum, operator.ge),
                ("less than", self.below, operator.lt),
                ("at most", self.maximum or LARGEST, operator.le),
            ):
                if bound is not None and not holds(value, bound):  # type: ignore[arg-type]
                    return f"it must be {words} {bound:,}"
        return None


def value_problems(
    settings: Iterable[Setting], values: Mapping[str, Any], *, options: bool = False
) -> list[str]:
    """Describe the bad values of some settings, which `options` names as on the command line."""
    return [
        f"{one.option if options else one.name} {problem}"
        for one in settings
        if (problem := one.problem(values.get(one.name, one.default)))
    ]


def setting(default: Any, help: str, **more: Any) -> Any:
    """Declare a setting of a config class; `more` are parameters of `Setting`."""
    metadata = {"help": help, **more}
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Settings:
    """Base class of dataclasses whose fields are declared with `setting` or have a plain type."""

    command: ClassVar[str] = ""  # of the command line, if it has these settings

    @classmethod
    def settings(cls) -> list[Setting]:
        """List the settings in their order."""
        hints = get_type_hints(cls)
        found = []
        for one in dataclasses.fields(cls):  # type: ignore[arg-type]
            kind, is_list, choices = _parse_type(hints[one.name])
            more = {"help": "", "choices": choices, **one.metadata}
            is_made = one.default_factory is not dataclasses.MISSING
            default = one.default_factory() if is_made else one.default  # type: ignore[operator]
            found.append(Setting(one.name, kind, default, is_list=is_list, **more))
        return found

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: object = None) -> Self:
        """Make it from named values; unknown and missing names and bad values are one message."""
        known = {one.name: one.default for one in cls.settings()}
        problems = [f"unknown setting {_short(name)}" for name in sorted(values.keys() - known)]
        required = [name for name, one in known.items() if one is dataclasses.MISSING]
        problems += [f"{name} is missing" for name in required if name not in values]
        fix: str | None = f"the settings are {', '.join(known)}"
        if not problems:
            try:
                made = cls(**values)
                made.validate()
                return made
            except HeadstartError as error:
                problems, fix = [error.what], error.fix
        raise HeadstartError("; ".join(problems), where=where, fix=fix, code="config")

    def validate(self) -> None:
        """Raise one error that lists every problem."""
        if problems := value_problems(self.settings(), vars(self)) or self.problems():
            fix = self.command and f"headstart {self.command} --help lists the settings and values"
            raise HeadstartError("; ".join(problems), fix=fix or None, code="config")

    def problems(self) -> list[str]:
        """Describe settings that are valid one by one, but not together."""
        return []


@dataclass(kw_only=True)
class Config(Settings):
    """The settings of one command. Values are stored unchecked; `validate` checks them."""

    @classmethod
    def create(cls, **given: Any) -> Self:
        """Make a config from the given settings, with the preset's for those not given."""
        hub = HUGGINGFACE_SETTINGS if is_huggingface(given.get("base")) else {}
        usual = PRESET_SETTINGS.get(str(given.get("preset")), {})
        values = {**hub.get(cls.command, {}), **usual.get(cls.command, {})}
        if given.get("task") in TOKEN_TASKS:
            values = {name: one for name, one in values.items() if name not in WHOLE_TEXT_SETTINGS}
        values.update(given)
        return cls.from_dict(values)

    def replace(self, **changes: Any) -> Self:
        """Copy with other values."""
        return dataclasses.replace(self, **changes)

    def save(self, folder: Path) -> None:
        """Write `config.toml`; with it, the folder is a run."""
        # What JSON writes for these values is TOML, but for the character DEL.
        lines = [
            f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
            for name, value in vars(self).items()
            if value is not None
        ]
        write_text(folder / CONFIG_FILE, "".join(lines).replace("\x7f", "\\u007f"))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the config of a run."""
        return cls.from_dict(read_settings(folder), where=folder / CONFIG_FILE)

    def resumed(self, folder: Path) -> Self:
        """Return the config of the run in `folder`; settings that were given must agree with it."""
        saved = self.load(folder)
        given = {name: value for name, value in vars(self).items() if value is not None}
        free = {one.name for one in self.settings() if not one.in_identity}
        changed = [
            f"{name}: {getattr(saved, name)!r} in the run, {value!r} now"
            for name, value in given.items()
            if name not in free and value != getattr(saved, name)
        ]
        if changed:
            raise HeadstartError(
                "the run was started with other settings:\n  " + "\n  ".join(changed),
                where=folder / CONFIG_FILE,
                fix="resume with the settings of the run, or start another run",
                code="config",
            )
        return saved.replace(**{name: value for name, value in given.items() if name in free})


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of a run, whatever command it belongs to."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise HeadstartError(
            f"there is no {CONFIG_FILE} here: this is not a run",
            where=folder,
            fix="name the folder of a run",
            code="not-a-run",
        )
    return read_toml(path)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HeadstartError(
            f"{path.name} is not valid TOML: {error}",
            where=path,
            fix="correct it, or restore it from a copy",
            code="damaged",
        ) from None


def check_new(folder: Path) -> None:
    """Reject a folder that holds a run already."""
    if is_run(folder):
        raise HeadstartError(
            "there is a run in this folder already",
            where=folder,
            fix="resume it with --resume, or choose another folder",
        )


def hf_name(base: Path | str) -> str | None:
    """Return what follows `hf:`, or `None` where the base is a folder."""
    name = str(base)
    is_name = name.startswith(FOREIGN) and not Path(base).is_dir()
    return name.removeprefix(FOREIGN) if is_name else None


def is_huggingface(base: str | None) -> bool:
    """Whether a base comes from Hugging Face: `hf:NAME`, or the copy of such a model."""
    return base is not None and (hf_name(base) is not None or (Path(base) / ORIGIN).is_file())


def pin_base(base: str) -> str:
    """Add the revision to a name of the Hub, so that it means the same weights later."""
    name = hf_name(base)
    if name is None:
        return base
    from headstart.interop.huggingface import pin  # needs the Hub's packages

    return f"{FOREIGN}{pin(name)}"


def _parse_type(hint: Any) -> tuple[type, bool, tuple[str, ...]]:
    """Split an annotation into the type of a value, whether it is a list, and its choices."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is list:
        return get_args(hint)[0], True, ()
    if get_origin(hint) is Literal:
        return str, False, get_args(hint)
    return hint, False, ()


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


@dataclass(kw_only=True)
class DatasetSettings(Config):
    """Where labelled rows are, and how they are read and split."""

    dataset: list[str] = setting(
        [],
        "Labelled texts: CSV, TSV, JSON, JSON Lines or Parquet files, a folder with files called "
        "train, validation and test, one with a subfolder per class, or a name (rotten-tomatoes, "
        "hub:owner/name).",
        panel="Data",
        argument=True,
    )
    task: str = setting(
        "classification",
        "What to predict from a text; by default guessed from the files.",
        panel="Data",
        choices=("classification", "multi-label", "pairs", "tagging", "spans"),
    )
    validation: str | None = setting(None, "A separate file for validation.", panel="Data")
    test: str | None = setting(None, "A separate file for the test part.", panel="Data")
    text_column: str | None = setting(
        None, "The column of the text; by default found by name or guessed.", panel="Data"
    )
    second_column: str | None = setting(
        None, "For pairs and spans: the column of the second text.", panel="Data"
    )
    label_column: str | None = setting(
        None, "The column of the label; by default found by name or guessed.", panel="Data"
    )
    encoding: str = setting("utf-8", "The encoding of text files.", panel="Data", advanced=True)
    drop_overlap: bool = setting(
        False,
        "Drop training texts that overlap with the given validation and test files; where "
        "Headstart splits the dataset, they are always dropped.",
        panel="Data",
    )
    split_seed: int = setting(
        0, "The seed of the split, if the dataset is not split already.", panel="Data",
        advanced=True, minimum=0, maximum=2**31 - 1,
    )  # fmt: skip

    def read_options(self) -> dict[str, Any]:
        """How the dataset is read: arguments of `Task.read`."""
        names = ("validation", "test", "text_column", "second_column", "label_column")
        more = {"encoding": self.encoding, "drop_overlap": self.drop_overlap}
        return {name: getattr(self, name) for name in names} | more | {"seed": self.split_seed}

    def dataset_settings(self) -> dict[str, Any]:
        """Return the settings of the dataset alone, for another config about the same rows."""
        return {one.name: getattr(self, one.name) for one in DatasetSettings.settings()}


SIZES = ("vocab_size", "width", "layers", "heads", "feed_forward_width")


@dataclass(kw_only=True)
class NetworkSettings(Config):
    """The base, or the sizes of a network without a base."""

    base: str | None = setting(
        None, "Start from this pretrained run or from hf:NAME; by default from a new network.",
        panel="Model",
    )  # fmt: skip
    preset: Literal["small", "lab", "bert", "gpt2"] = setting(
        "small", "The network; lab also sets the lab's training settings.", panel="Model"
    )
    vocab_size: int | None = setting(
        None, "Vocabulary size; by default the preset's.", panel="Model", advanced=True,
        minimum=1, maximum=1_000_000,
    )  # fmt: skip
    width: int | None = setting(
        None, "Width of the hidden states; by default the preset's.", panel="Model",
        advanced=True, minimum=1, maximum=16_384,
    )  # fmt: skip
    layers: int | None = setting(
        None, "Number of layers; by default the preset's.", panel="Model", advanced=True,
        minimum=1, maximum=1_024,
    )  # fmt: skip
    heads: int | None = setting(
        None, "Number of attention heads; by default the preset's.", panel="Model",
        advanced=True, minimum=1, maximum=1_024,
    )  # fmt: skip
    feed_forward_width: int | None = setting(
        None, "Width of the feed-forward layers; by default the preset's.", panel="Model",
        advanced=True, minimum=1, maximum=131_072,
    )  # fmt: skip
    tokenizer: str | None = setting(
        None, "A tokenizer file or a run; by default one is trained.", panel="Model", advanced=True
    )

    def sizes(self) -> dict[str, int]:
        """Return the sizes that were given, for `preset`."""
        return {name: getattr(self, name) for name in SIZES if getattr(self, name) is not None}

    def base_problems(
        self, need_base: tuple[str, ...] = (), decided: tuple[str, ...] = ()
    ) -> list[str]:
        """List problems of settings that need a base, or that a base determines, like the sizes."""
        if self.base is None:
            return [f"{name} needs a base" for name in need_base if getattr(self, name)]
        names = (*SIZES, "tokenizer", *decided)
        given = [name for name in names if getattr(self, name) is not None]
        return [f"{', '.join(given)} cannot be set with a base"] if given else []


@dataclass(kw_only=True)
class MachineSettings(Config):
    """What a training runs on."""

    seed: int = setting(0, "The random seed.", minimum=0, maximum=2**31 - 1)
    device: str | None = setting(
        None, "cpu, cuda or mps; by default the fastest.", panel="Machine", advanced=True
    )
    threads: int | None = setting(
        None, "CPU threads; by default one per physical core.", panel="Machine", advanced=True,
        minimum=1, maximum=512,
    )  # fmt: skip
    precision: Precision | None = setting(
        None,
        "Number format; by default the faster one on this machine.",
        panel="Machine",
        advanced=True,
    )
    micro_batch_tokens: int = setting(
        8_192,
        "Tokens computed at once; fewer need less memory.",
        advanced=True,
        minimum=1,
        maximum=2**24,
    )
    save_seconds: float = setting(
        60.0, "Seconds between two checkpoints.", panel="Output", advanced=True,
        minimum=0, maximum=604_800, in_identity=False,
    )  # fmt: skip


@dataclass(kw_only=True)
class PretrainConfig(NetworkSettings, MachineSettings):
    """The settings of `headstart pretrain`."""

    command: ClassVar[str] = "pretrain"

    corpus: list[str] = setting(
        [], "Text files, folders or names (imdb).", panel="Data", argument=True
    )
    text_column: str | None = setting(
        None, "The column of the text; by default found by name or guessed.", panel="Data"
    )
    encoding: str = setting("utf-8", "The encoding of text files.", panel="Data", advanced=True)
    documents: Literal["line", "blank-line", "file"] | None = setting(
        None,
        "What one document of plain text is; by default a line of a file, a whole file of a "
        "folder.",
        panel="Data",
    )
    task_text: str | None = setting(
        None,
        "A labelled dataset: its training texts are added to the corpus, mostly at the end; its "
        "validation and test texts are removed from the corpus.",
        panel="Data",
    )
    test: list[str] = setting(
        [], "Labelled or plain text files; documents of the corpus that overlap with their texts "
        "are dropped.",
        panel="Data",
    )  # fmt: skip
    held_out: float | None = setting(
        None, "Share of the documents that is held out to measure the loss; by default 0.01, or "
        "0.1 of a small corpus.", panel="Data", advanced=True, above=0, maximum=0.5,
    )  # fmt: skip
    objective: str = setting(
        "causal", "What is learned: to predict the next token (causal) or hidden tokens (masked), "
        "to recognise spans of the same document (contrastive), or both.", panel="Model",
        choices=OBJECTIVES,
    )  # fmt: skip
    embedding_init: Literal["cooccurrence", "random"] = setting(
        "cooccurrence", "First values of the embedding: PPMI-SVD vectors of the corpus, or random.",
        panel="Model",
    )  # fmt: skip
    minutes: float | None = setting(
        None, "Minutes of training; 10 if no amount is given.", above=0, maximum=525_600
    )
    epochs: float | None = setting(
        None, "Passes over the corpus.", above=0, maximum=100_000
    )  # fmt: skip
    tokens: int | None = setting(
        None, "Tokens to train on: a number, or 2M.", minimum=1, maximum=10**13, amount=True
    )
    steps: int | None = setting(
        None, "Optimizer steps.", minimum=1, maximum=10**9, advanced=True
    )  # fmt: skip
    length: int = setting(128, "The sequence length, in tokens.", minimum=2, maximum=131_072)
    batch_tokens: int = setting(1_024, "Tokens of one optimizer step.", minimum=1, maximum=2**24)
    mask_share: float = setting(
        0.3, "Share of the tokens that a masked objective hides.", above=0, below=1, advanced=True
    )
    softmax: Literal["auto", "full", "sampled"] = setting(
        "auto", "Tokens that the output layer scores in training: all, or a sample of a large "
        "vocabulary.",
        advanced=True,
    )  # fmt: skip
    learning_rate: float = setting(2e-3, "The highest learning rate.", above=0, maximum=10)
    embedding_learning_rate: float | None = setting(
        None, "Learning rate of the embedding and the output layer; by default the same.",
        advanced=True,
        above=0, maximum=10,
    )  # fmt: skip
    warmup: float = setting(
        0.05, "Share of the steps in which the learning rate rises.", advanced=True,
        minimum=0, maximum=1,
    )  # fmt: skip
    weight_decay: float = setting(0.1, "Weight decay.", advanced=True, minimum=0, maximum=100)
    evaluations: int = setting(
        10, "Evaluations of the held-out loss.", advanced=True, minimum=1, maximum=1_000_000
    )

    def problems(self) -> list[str]:
        problems = [] if self.corpus else ["no corpus was given"]
        amounts = ("minutes", "epochs", "tokens", "steps")
        given = [name for name in amounts if getattr(self, name) is not None]
        if len(given) > 1:
            problems.append(f"{' and '.join(given)} exclude each other; give one of them")
        return problems + self.base_problems()

    @property
    def rows(self) -> int:
        """Sequences of a step."""
        return max(1, self.batch_tokens // self.length)


@dataclass(kw_only=True)
class FinetuneConfig(DatasetSettings, NetworkSettings, MachineSettings):
    """The settings of `headstart finetune` and of `HeadstartClassifier`."""

    command: ClassVar[str] = "finetune"

    labels: str | None = setting(
        None, "Use only this many labelled training rows (100 or 10%), sampled with the seed.",
        panel="Data",
    )  # fmt: skip
    fresh: bool = setting(
        False,
        "Use the base's sizes and tokenizer, but start from random weights.",
        panel="Model",
        advanced=True,
    )
    objective: Literal["causal", "masked"] | None = setting(
        None, "Without a base: causal, or masked for bidirectional attention; by default the "
        "preset's.",
        panel="Model", advanced=True,
    )  # fmt: skip
    pooling: Pooling | None = setting(
        None, "How a text's hidden states become one vector; by default as in the preset.",
        panel="Model", advanced=True,
    )  # fmt: skip
    head: Literal["auto", "stock"] = setting(
        "auto", "auto: the head of the preset; stock: the head that transformers has for this "
        "network, so that the export is exact.", panel="Model", advanced=True,
    )  # fmt: skip
    head_init: Literal["probe", "random"] = setting(
        "probe", "How the new head starts: as a linear probe of the frozen base, or random.",
        panel="Model", advanced=True,
    )  # fmt: skip
    freeze: bool = setting(False, "Train only the head.", panel="Model")
    epochs: int = setting(5, "Passes over the training rows.", minimum=1, maximum=100_000)
    batch_size: int = setting(16, "The batch size, in texts.", minimum=1, maximum=1_048_576)
    learning_rate: float = setting(3e-4, "The highest learning rate.", above=0, maximum=10)
    schedule: Literal["linear", "constant"] = setting(
        "linear", "Learning rate: linear warm-up and decay, or constant.", advanced=True
    )
    warmup: float = setting(
        0.1, "Share of the steps in which the learning rate rises.", advanced=True,
        minimum=0, maximum=1,
    )  # fmt: skip
    weight_decay: float = setting(0.01, "Weight decay.", advanced=True, minimum=0, maximum=100)
    length: int | None = setting(
        None, "Tokens of a window or of a truncated text; by default the length of pretraining.",
        minimum=1, maximum=131_072,
    )  # fmt: skip
    long: Literal["windows", "truncate"] | None = setting(
        None,
        "How to read longer texts: in windows whose states are pooled (default), or truncated.",
    )
    class_weight: Literal["balanced"] | None = setting(
        None, "balanced: rare classes count as much as common ones."
    )
    token_dropout: float | None = setting(
        None,
        "Share of the tokens of a text to drop, different ones in every epoch; by default 0.35 for "
        "texts that are longer than a window, and 0 for others.",
        minimum=0,
        below=1,
    )
    average: float = setting(
        0.0, "Share of the epochs, counted from the end, whose weights are averaged.",
        advanced=True, minimum=0, maximum=1,
    )  # fmt: skip
    selection_metric: Literal["metric", "loss", "last"] = setting(
        "metric", "Which epoch to save: the best by the metric or the loss on validation rows, or "
        "the last.", advanced=True,
    )  # fmt: skip

    def problems(self) -> list[str]:
        problems = [] if self.dataset else ["no dataset was given"]
        if self.labels and self.task != "classification":
            problems.append(f"labels is for classification, not for {self.task}")
        if self.task in TOKEN_TASKS:
            given = [name for name in WHOLE_TEXT_SETTINGS if getattr(self, name) is not None]
            problems += [f"{name} is for whole texts, not for {self.task}" for name in given]
        if self.long == "windows" and self.task == "pairs":
            problems.append("pairs cannot be read in windows: one would hold only one of the texts")
        return problems + self.base_problems(("fresh", "freeze"), ("objective",))

    @property
    def long_token_dropout(self) -> float:
        """The token dropout of texts that are longer than a window."""
        return 0.35 if self.token_dropout is None else self.token_dropout


STUDY_DATASET, STUDY_CORPUS = "rotten-tomatoes", "imdb"
# A study trains its network dozens of times: half as wide and half as deep as the preset, it takes
# a sixth of the time, and what it learns from a few million tokens transfers as well
# (research/recipes.md, "how deep?").
STUDY_WIDTH, STUDY_LAYERS = 128, 2


@dataclass(kw_only=True)
class StudyConfig(DatasetSettings, NetworkSettings):
    """The settings of `headstart compare`."""

    command: ClassVar[str] = "compare"

    name: str | None = setting(
        None, "The name of the dataset in the report; by default that of its file.", panel="Output"
    )
    corpus: list[str] = setting(
        [], "Text to pretrain on; can be repeated. By default the dataset's own training texts.",
        panel="Data",
    )  # fmt: skip
    documents: Literal["line", "blank-line", "file"] | None = setting(
        None,
        "What one document of plain text is; by default a line of a file, a whole file of a "
        "folder.",
        panel="Data",
    )
    task_text: bool = setting(
        True, "Add the training texts, without their labels, to the corpus.", panel="Data"
    )
    objectives: list[str] = setting(
        [], "Pretraining objectives, separated by commas; by default causal. "
        "Of several, each has its own arms, and the rows of the label budget select the best.",
        panel="Model", choices=OBJECTIVES,
    )  # fmt: skip
    arms: list[str] = setting(
        [], "What is compared, separated by commas: scratch, cooc-init, pretrained, frozen, "
        "tfidf, nb, cooc-lr, stack, linear (for multi-label and tagging), trivial, or hf:NAME.",
        panel="Study",
    )  # fmt: skip
    labels: list[str] = setting(
        [], "Label budgets, separated by commas; by default 100,400,all.", panel="Study"
    )
    seeds: int = setting(
        3, "Number of repetitions of each training.", panel="Study", minimum=1, maximum=1_000
    )
    folds: int | None = setting(
        None, "Folds in which every labelled row is evaluated once; 1: evaluate on a test part. By "
        "default 5 if a test part must be split off and would have fewer than 200 rows.",
        panel="Study", minimum=1, maximum=100,
    )  # fmt: skip
    selection: Literal["budget", "none"] = setting(
        "budget",
        "Which rows select epochs, regularisation and weights: those of the label budget, or none "
        "(all epochs, as in the lab).",
        panel="Study",
    )
    minutes: float | None = setting(
        None,
        "Time limit; tuning, seeds, pretraining and label budgets are reduced until the study "
        "fits.",
        panel="Study", above=0, maximum=525_600,
    )  # fmt: skip
    tokens: int | None = setting(
        None, "Tokens of pretraining, for example 2M.",
        panel="Study", minimum=1, maximum=10**13, amount=True,
    )  # fmt: skip
    epochs: int | None = setting(
        None,
        "Train for exactly this many epochs; by default selected for each network.",
        minimum=1,
        maximum=100_000,
    )
    length: int | None = setting(
        None, "Length of a window of a labelled text, in tokens.", minimum=1, maximum=131_072
    )
    threads: int | None = setting(
        None, "CPU threads of all jobs on this machine together.", panel="Machine",
        advanced=True, minimum=1, maximum=512,
    )  # fmt: skip
    precision: Precision | None = setting(
        None, "Number format; by default bf16 where it is faster here. fp32 gives nearly "
        "the same numbers on every machine.", panel="Machine", advanced=True,
    )  # fmt: skip
    executor: Literal["local", "ray", "dask", "slurm"] = setting(
        "local", "Where trainings run.", panel="Machine", advanced=True, in_identity=False
    )
    jobs: int | None = setting(
        None, "Trainings that run at the same time.", panel="Machine", advanced=True,
        minimum=1, maximum=512, in_identity=False,
    )  # fmt: skip
    address: str | None = setting(
        None, "Address of the Ray or Dask cluster: HOST:PORT; by default one is started here.",
        panel="Machine", advanced=True, in_identity=False,
    )  # fmt: skip
    cores: int | None = setting(
        None, "Cores of each training, on Ray, Dask or Slurm.", panel="Machine", advanced=True,
        minimum=1, maximum=4_096, in_identity=False,
    )  # fmt: skip
    memory: float | None = setting(
        None, "Memory of each training in GB, on Ray or Slurm.", panel="Machine", advanced=True,
        above=0, maximum=100_000, in_identity=False,
    )  # fmt: skip
    partition: str | None = setting(
        None, "The Slurm partition.", panel="Machine", advanced=True, in_identity=False
    )
    time_limit: int | None = setting(
        None, "Minutes of one Slurm job.", panel="Machine", advanced=True,
        minimum=1, maximum=525_600, in_identity=False,
    )  # fmt: skip

    @classmethod
    def create(cls, **given: Any) -> Self:
        """Make a config from the given settings; the usual data, arms and sizes fill the gaps."""
        given = {name: value for name, value in given.items() if value not in (None, [])}
        if given.setdefault("dataset", [STUDY_DATASET]) == [STUDY_DATASET]:
            given.setdefault("corpus", [STUDY_CORPUS])
        base, missing = given.get("base"), {"initial"}
        if base is None:
            missing = set()
            if given.get("preset", "small") == "small":
                given = {"width": STUDY_WIDTH, "layers": STUDY_LAYERS, **given}
        elif not given.get("corpus"):
            missing.add("vectors")  # there is nothing to count co-occurrences in
        arms = given.get("arms") or usual_arms(given.get("task", "classification"), missing=missing)
        own = _usual_objective(base)
        objectives = list(dict.fromkeys(given.get("objectives", [own])))
        if base is not None and objectives != [own]:
            what = f"the base was pretrained with {own}, not with {', '.join(objectives)}"
            raise HeadstartError(what, where=base, fix="omit --objectives")
        return super().create(**{**given, "arms": arm_order(arms), "objectives": objectives})

    def problems(self) -> list[str]:
        try:
            arms = self.arm_table
        except HeadstartError as error:
            return [error.what]
        problems = [
            f"{arm.name} is for {' and '.join(arm.tasks)}, not for {self.task}; choose "
            f"--arms {','.join(usual_arms(self.task))}"
            for arm in arms
            if self.task not in arm.tasks
        ]
        if self.uses_own_texts and not self.task_text:
            problems.append(
                "--no-task-text leaves no text to pretrain on; give --corpus FILE or choose "
                f"--arms {','.join(self.arms_without_corpus())}"
            )
        if any("arms" in arm.needs for arm in arms) and len(self.members) < 2:
            possible = ", ".join(name for name, arm in ARMS.items() if arm.stackable)
            problems.append(f"a stack combines two or more of {possible}; name them in --arms")
        problems += [
            f"{arm.name} is the network before pretraining; with --base nothing is pretrained"
            for arm in arms
            if self.base and arm.start == "initial"
        ]
        return problems + self.base_problems()

    @property
    def arm_table(self) -> list[Arm]:
        """The arms of the study."""
        return [find_arm(name) for name in self.arms]

    @property
    def members(self) -> list[Arm]:
        """The arms that a stack combines."""
        return [arm for arm in self.arm_table if arm.stackable]

    @property
    def has_networks(self) -> bool:
        """Whether an arm is a network."""
        return any(arm.is_network for arm in self.arm_table)

    @property
    def needs_base(self) -> bool:
        """Whether an arm starts from a base."""
        return any("base" in arm.needs for arm in self.arm_table)

    @property
    def uses_own_texts(self) -> bool:
        """Whether the training texts are the corpus, because none was given and an arm needs one.

        With a base, only arms that need co-occurrence vectors need a corpus.
        """
        needed = {"vectors"} if self.base else {"vectors", "base"}
        return not self.corpus and any(arm.needs & needed for arm in self.arm_table)

    def arms_without_corpus(self) -> list[str]:
        """List the usual arms that learn from labelled rows alone."""
        return usual_arms(self.task, missing=("vectors", "base", "arms"))


def _usual_objective(base: str | None) -> str:
    """Return the objective that a base was pretrained with; without one, the default."""
    if base is None:
        return PretrainConfig.objective
    from headstart.training.initialization import base_objective  # it imports PyTorch

    return base_objective(base)
