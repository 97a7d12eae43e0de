"""The forms of requests and answers, as the OpenAPI document shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, examples=["a fine film"])]


class RequestForm(BaseModel):
    """An object without other fields than its own."""

    model_config = ConfigDict(extra="forbid")


class TextInput(RequestForm):
    """One text; a plain string is the same."""

    text: Text


class PairInput(RequestForm):
    """Two texts, for the task pairs."""

    text: Text
    text_pair: Text


class QuestionInput(RequestForm):
    """A question about a text, for the task spans."""

    question: Text
    context: Text


class Parameters(RequestForm):
    """How the answer should look."""

    top_k: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Only the most probable labels; by default all of them."
    )
    explain: bool | None = Field(
        None, description="Also say which words moved the answer, and by how much."
    )
    aggregation_strategy: Literal["simple", "none"] | None = Field(
        None, description="Of tags: entities (simple), or every word with its tag (none)."
    )


Input = Text | TextInput | PairInput | QuestionInput


class PredictRequest(RequestForm):
    """Hugging Face's form: one input or a list of them."""

    inputs: Input | list[Input]
    parameters: Parameters | None = None
    options: dict[str, Any] | None = Field(None, description="Accepted and not used.")


class Refusal(BaseModel):
    """Why there is no answer: what, where in the request, and how to fix it."""

    error: str
    where: str | None = None
    fix: str | None = None


class Health(BaseModel):
    """Whether requests are answered."""

    status: str
    model: str
