"""The model card: what a run is, on one page that travels with it."""

from pathlib import Path
from typing import Any

from headstart.files import write_text
from headstart.training.recipe import PretrainRecipe

CARD = "README.md"


def write_pretraining_card(recipe: PretrainRecipe, summary: dict[str, Any], folder: Path) -> None:
    """Say what the base was trained on, how, and how well it does."""
    found = summary["held_out"]
    rows = {
        "corpus": ", ".join(Path(source).name for source in recipe.corpus),
        "objective": recipe.objective,
        "network": f"preset `{recipe.preset}`, {summary['parameters']:,} parameters",
        "embedding start": recipe.embedding_start,
        "tokens seen": f"{summary['tokens']:,} in {summary['steps']:,} steps",
        "learning rate": f"{recipe.learning_rate:g}",
        "seed": str(recipe.seed),
        "held-out loss": f"{found['loss']:.3f} (best at step {summary['best_step']:,})",
        "held-out perplexity": f"{found['perplexity']:,.1f}; "
        f"a unigram model has {summary['unigram_perplexity']:,.1f}",
    }
    if "bits_per_byte" in found:
        rows["bits per byte"] = f"{found['bits_per_byte']:.3f}"
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    use = "write on (`headstart generate`)" if recipe.objective == "causal" else "fill gaps"
    write_text(
        folder / CARD,
        f"# A base pretrained with Headstart\n\n| | |\n|---|---|\n{table}\n\n"
        f"It can {use} and be fine-tuned (`headstart finetune --base`). It repeats what its corpus "
        "says, true or not, and has seen nothing else. Every setting is in `recipe.toml`.\n",
    )
