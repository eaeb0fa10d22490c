"""The schemas of the OpenAI API that the gateway's answers are held against, taken out of the published file:

    git clone https://github.com/openai/openai-openapi && python3 tools/openai_schemas.py openai-openapi/openapi.json COMMIT

writes tests/openai/schemas.json: one schema a line, with all that it refers to, without texts for people."""

import json
import pathlib
import sys

ROOTS = ["Batch", "CreateChatCompletionResponse", "CreateChatCompletionStreamResponse", "CreateCompletionResponse", "CreateEmbeddingResponse",
         "DeleteFileResponse", "ErrorResponse", "ImagesResponse", "ListBatchesResponse", "ListFilesResponse", "ListModelsResponse", "Model", "OpenAIFile",
         "Response", "ResponseCompletedEvent", "ResponseCreatedEvent", "ResponseErrorEvent", "ResponseTextDeltaEvent"]
FOR_PEOPLE = ("description", "example", "examples", "title", "deprecated", "externalDocs")


def referred(value, out):
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key == "$ref":
            out.add(inner.rsplit("/", 1)[1])
        else:
            referred(inner, out)
    return out


def bare(value, names=False):
    """names: the keys are names of properties, not words of JSON Schema."""
    if isinstance(value, dict):
        return {k: bare(v, k in ("properties", "$defs") and not names) for k, v in value.items()
                if names or k not in FOR_PEOPLE and not k.startswith("x-")}
    return [bare(v) for v in value] if isinstance(value, list) else value


def main():
    published = json.loads(pathlib.Path(sys.argv[1]).read_text())
    schemas, taken, todo = published["components"]["schemas"], {}, list(ROOTS)
    while todo:
        name = todo.pop()
        if name not in taken:
            taken[name] = bare(schemas[name])
            todo += referred(taken[name], set())
    head = {"source": "https://github.com/openai/openai-openapi", "commit": sys.argv[2], "version": published["info"]["version"], "licence": "MIT"}
    lines = [json.dumps(k) + ": " + json.dumps(v) for k, v in head.items()]
    lines.append('"schemas": {\n' + ",\n".join(json.dumps(k) + ": " + json.dumps(v, separators=(",", ":"), sort_keys=True) for k, v in sorted(taken.items())) + "\n}")
    out = pathlib.Path(__file__).resolve().parents[1] / "tests" / "openai" / "schemas.json"
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(taken)} schemas, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
