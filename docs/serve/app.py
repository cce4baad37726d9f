"""Serve a saved classifier: `MODEL=model.safetensors COSTS=costs.csv uvicorn app:app`."""

import hashlib
import os
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BeforeValidator, ConfigDict, Field, FiniteFloat, NonNegativeFloat, PositiveFloat, create_model

import bayesgen as bg
from bayesgen.tables.dates import moments

file = Path(os.environ["MODEL"])
classifier = bg.load(file)
schema, classes = classifier.schema_, classifier.classes_.tolist()
costs = pd.read_csv(os.environ["COSTS"], index_col=0, dtype=str, keep_default_na=False)  # a class may be NA, 01 or 1.0
costs = costs.astype(float).rename(index={str(label): label for label in classes})
LARGEST = 1 << 24  # bytes of a body: larger ones are refused before they are parsed
FAMILIES = {"log": PositiveFloat, "log1p": NonNegativeFloat, "bernoulli": bool}
COUNT = Annotated[int, Field(ge=0, le=1 << 53)]  # beyond it not every whole number is one of 64 bits
FAMILIES |= {"poisson": COUNT, "multinomial": COUNT}


def no_bool(value):
    if isinstance(value, bool):
        raise ValueError("true and false are no numbers here, nor categories")  # to Python they are 1 and 0
    return value


def number(name):
    """A number in JSON is one; a text is read as an entry of a later file."""

    def read(value):
        value = schema.number(value, name) if isinstance(value, str) else no_bool(value)
        if value != value:
            raise ValueError("a gap is null")
        return value

    return read


def category(name):
    """A text is the category that it meant at the fit."""
    meant = dict(schema.reading.numerals(name).meant)
    return lambda value: no_bool(meant.get(value.strip(), value) if isinstance(value, str) else value)


def moment(name):
    """A date is text, as the fit had it or 2024-01-31: a number might be days or seconds."""

    def read(value):
        if not isinstance(value, str):
            raise ValueError("a date is written as 2024-01-31 or 2024-01-31T12:30")
        return moments(schema.reading.days_of([value], name))[0].item()

    return read


def kind(block, name) -> Any:
    if block.leaf == "bernoulli" or (block.categories and any(isinstance(label, bool) for label in block.categories)):
        check = BeforeValidator(lambda value: value)
    else:
        check = BeforeValidator(category(name) if block.categories else number(name))
    if block.categories:  # others are refused
        return Annotated[Enum(block.name, {f"label {i}": label for i, label in enumerate(block.categories)}), check]
    return Annotated[FAMILIES.get(block.leaf, FiniteFloat) if isinstance(block.leaf, str) else FiniteFloat, check]


kinds = dict.fromkeys(schema.columns, Any) | {
    name: kind(block, name) for block in schema.blocks for name in block.columns
}
kinds |= {name: Annotated[datetime, BeforeValidator(moment(name))] for name in schema.dates}
fields = {f"column_{i}": (kinds[name] | None, Field(None, alias=name)) for i, name in enumerate(kinds)}
Row = create_model("Row", __config__=ConfigDict(extra="forbid", use_enum_values=True), **fields)  # absent: missing
Rows = Annotated[list[Row], Field(min_length=1, max_length=10_000)]
app = FastAPI(title="bayesgen")


class Bounded:
    """Refuses a body beyond LARGEST while it is read."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        came, size, more = [], 0, scope["type"] == "http"
        while more:
            came.append(message := await receive())
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
            if size > LARGEST:
                refusal = JSONResponse({"detail": f"a body of more than {LARGEST} bytes: send fewer rows at once"}, 413)
                return await refusal(scope, receive, send)
        messages = iter(came)

        async def again():
            return next(messages, None) or await receive()

        await self.app(scope, again, send)


app.add_middleware(Bounded)


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


@app.exception_handler(RequestValidationError)
def unfit(request, error) -> JSONResponse:  # what is wrong and where, without the body that was sent
    faults = error.errors()[:20]
    told = [
        {"type": e["type"], "loc": [p if isinstance(p, int) else p[:60] for p in e["loc"]], "msg": e["msg"]}
        for e in faults
    ]
    return JSONResponse({"detail": told}, 422)


@app.exception_handler(ValueError)
def refused(request, error) -> JSONResponse:  # what types cannot tell, such as a count that is too large
    return JSONResponse({"detail": str(error)}, 422)
