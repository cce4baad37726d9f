"""Serve a saved classifier: `MODEL=model.safetensors COSTS=costs.csv uvicorn app:app`."""

import hashlib
import os
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    create_model,
)

import bayesgen as bg

file = Path(os.environ["MODEL"])
classifier, costs = bg.load(file), pd.read_csv(os.environ["COSTS"], index_col=0)
schema, classes = classifier.schema_, classifier.classes_.tolist()
FAMILIES = {"log": PositiveFloat, "log1p": NonNegativeFloat, "bernoulli": bool}
FAMILIES |= {"poisson": NonNegativeInt, "multinomial": NonNegativeInt}


def written(moment) -> str:
    if isinstance(moment, str) and moment[4:5] == "-":
        return moment
    raise ValueError("a date is written as 2024-01-31 or 2024-01-31T12:30")  # a number might be days or seconds


def kind(block) -> Any:
    if block.categories:  # others are refused
        return Enum(block.name, {f"label {i}": label for i, label in enumerate(block.categories)})
    return FAMILIES.get(block.leaf, FiniteFloat) if isinstance(block.leaf, str) else FiniteFloat


kinds = dict.fromkeys(schema.columns, Any) | {name: kind(block) for block in schema.blocks for name in block.columns}
kinds |= dict.fromkeys(schema.dates, Annotated[datetime, BeforeValidator(written)])
fields = {f"column_{i}": (kinds[name] | None, Field(None, alias=name)) for i, name in enumerate(kinds)}
Row = create_model("Row", __config__=ConfigDict(extra="forbid", use_enum_values=True), **fields)  # absent: missing
Rows = Annotated[list[Row], Field(min_length=1, max_length=10_000)]
app = FastAPI(title="bayesgen")


def table(rows) -> pd.DataFrame:
    return pd.DataFrame([row.model_dump(by_alias=True) for row in rows], columns=list(schema.columns))


@app.post("/predict")
def predict(rows: Rows) -> list[dict[str, Any]]:
    probability = classifier.predict_proba(table(rows))
    return [
        {"class": classes[p.argmax()], "probability": dict(zip(classes, p.tolist(), strict=True))} for p in probability
    ]


@app.post("/explain")
def explain(row: Row, label: str | None = None) -> dict[str, Any]:
    known = {str(one): one for one in classes}
    return classifier.explain(table([row]), row=0, label=known.get(label, label)).to_dict()


@app.post("/decide")
def decide(rows: Rows) -> list[dict[str, Any]]:
    return bg.decision.act(classifier.predict_proba(table(rows)), costs, classes).to_dict("records")


@app.get("/health")
def health() -> dict[str, bool]:
    return {"ready": True}


@app.get("/version")
def version() -> dict[str, Any]:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"bayesgen": bg.__version__, "model": digest, "kind": type(classifier).__name__, "classes": classes}


@app.exception_handler(ValueError)
def refused(request, error) -> JSONResponse:  # what types cannot tell, such as a count that is too large
    return JSONResponse({"detail": str(error)}, 422)
