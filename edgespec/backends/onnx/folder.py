"""A folder as onnxruntime-genai's model builder, optimum or `edgespec convert` leave it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from edgespec.backends.tokenizer_json import read_json
from edgespec.errors import ModelFileError

GENAI = "genai_config.json"


def find_graph(path: Path) -> Path | None:
    """The graph that a folder, or a path to an .onnx file, means; None where that is not clear."""
    if path.is_file():
        return path if path.suffix == ".onnx" else None
    named = read_json(path / GENAI).get("model", {}).get("decoder", {}).get("filename")
    if isinstance(named, str) and (path / named).is_file():
        return path / named
    for folder in (path, path / "onnx"):
        graphs = sorted(folder.glob("*.onnx"))
        usual = [graph for graph in graphs if graph.name == "model.onnx"]
        if len(usual or graphs) == 1:
            return (usual or graphs)[0]
    return None


def refusal(path: Path) -> str:
    """Why `find_graph` gave none."""
    if not path.exists():
        return f"{path}: no such file or folder; check the path"
    if not path.is_dir():
        return f"{path.name} is not a folder with an ONNX model"
    several = any(path.glob("*.onnx")) or any(path.glob("onnx/*.onnx"))
    return f"{path} has {'several .onnx files: give the path of one' if several else 'no .onnx file'}"


class Folder:
    """Raises ModelFileError where there is no graph."""

    def __init__(self, path: Path) -> None:
        graph = find_graph(path)
        if graph is None:
            raise ModelFileError(refusal(path))
        self.path, self.graph_file = path, graph
        self.root = path if path.is_dir() else path.parent

    def graph(self) -> Any:
        """The graph without the weights that lie beside it."""
        import onnx

        try:
            return onnx.load(self.graph_file, load_external_data=False)
        except Exception as error:  # protobuf's own kinds
            raise ModelFileError(f"{self.graph_file} is damaged: {str(error).splitlines()[0]}") from None

    @cached_property
    def config(self) -> dict[str, Any]:
        return read_json(self.root / "config.json")

    @cached_property
    def genai(self) -> dict[str, Any]:
        found = read_json(self.root / GENAI).get("model", {})
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        return str(self.config.get("edgespec", {}).get("name") or self.path.stem)

    @property
    def architecture(self) -> str:
        return str(self.config.get("model_type") or self.genai.get("type") or "unknown")

    @property
    def n_ctx_train(self) -> int | None:
        for value in (self.genai.get("context_length"), self.config.get("max_position_embeddings")):
            if isinstance(value, int) and value > 0:
                return value
        return None

    def size(self) -> int:
        """Bytes of the graph and of the data beside it."""
        data = [*self.graph_file.parent.glob("*.data"), *self.graph_file.parent.glob("*.onnx_data*")]
        return self.graph_file.stat().st_size + sum(file.stat().st_size for file in data)

    def find_data(self, model: Any) -> Path:
        """The folder of the data beside the graph, checked to be whole.

        The library refuses links that lead elsewhere, as in Hugging Face's cache: the graph comes to name
        what they lead to. Raises ModelFileError.
        """
        folders = {self.graph_file.parent}
        for tensor in model.graph.initializer:
            place = {entry.key: entry for entry in tensor.external_data}
            if "location" not in place:
                continue
            file = self.graph_file.parent / place["location"].value
            end = sum(int(place[key].value) for key in ("offset", "length") if key in place)
            if not file.is_file():
                raise ModelFileError(f"{file} is missing: the weights of {self.graph_file.name} lie in it")
            if file.stat().st_size < end:
                raise ModelFileError(f"{file} is cut off: convert or download the model again")
            if file.is_symlink():
                folders = folders - {self.graph_file.parent} | {file.resolve().parent}
                place["location"].value = file.resolve().name
        if len(folders) > 1:
            raise ModelFileError(f"{self.path}: the weights are links into several folders: copy them here")
        return folders.pop()


def description(model: Any) -> tuple[str, int]:
    """How the weights are quantised, such as "int4 + int8", and how many there are."""
    bits: set[int] = set()
    count = 0
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            values = {attribute.name: attribute.i for attribute in node.attribute}
            bits.add(values.get("bits", 4))
            count += values["K"] * values["N"]
    if bits:
        return " + ".join(f"int{n}" for n in sorted(bits)), count
    for tensor in model.graph.initializer:
        size = 1
        for extent in tensor.dims:
            size *= extent
        count += size
    return "float", count
