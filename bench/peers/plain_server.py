"""A minimal server for comparison: FastAPI around a `pipeline` of transformers.

    python bench/peers/plain_server.py EXPORTED PORT

The route is a plain function, so FastAPI calls it in its thread pool; the pipeline predicts one
text at a time.
"""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import pipeline


class Asked(BaseModel):
    inputs: str


def create(folder: str) -> FastAPI:
    app = FastAPI()
    classify = pipeline("text-classification", model=folder, device="cpu", top_k=None)

    @app.post("/predict")
    def predict(asked: Asked) -> list[dict[str, object]]:
        return classify([asked.inputs])[0]

    return app


if __name__ == "__main__":
    uvicorn.run(create(sys.argv[1]), port=int(sys.argv[2]), log_level="error", access_log=False)
