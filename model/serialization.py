"""model.safetensors: a decoder, its music's vocabulary and style, and its run, in one file.

This is the file that people share. Its tensors are safetensors, and everything else is JSON in the
header, so nothing that is loaded can run code.
"""

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from common.arrays import Floats
from common.files import write_file
from common.typed_json import from_json, to_json
from model.config import DecoderConfig
from model.engine import gather
from model.network import Network
from model.record import TrainingRecord

FORMAT = "etude"
VERSION = "14"
_ADVICE = "use a model.safetensors that train.py wrote"
_DTYPES = ("F32", "F16")  # as safetensors names them
_LARGEST = 2.0**14  # of a weight: trained ones are below 10, and sums of products must stay finite


class ModelFileError(ValueError):
    """Raised if a file is no model of this project; the message is one line, for people."""


@dataclass(frozen=True)
class ModelFile:
    """What a model file has in it. Vocabulary and style are kept as the JSON that they are."""

    network: Network
    vocabulary_json: str
    style_json: str
    record: TrainingRecord = field(default_factory=TrainingRecord)


def save_model_file(
    path: str | Path, content: ModelFile, dtype: type[np.floating] = np.float32
) -> None:
    """Write a model file. Equal models make equal files, byte by byte.

    Args:
        path: of the file. A reader finds either the old file or the whole new one.
        content: of the file.
        dtype: of the weights in the file; float16 halves its size.

    Raises:
        OSError: the file cannot be written; an older file at the path is untouched.
    """
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "config": to_json(content.network.config),
        "vocabulary": content.vocabulary_json,
        "style": content.style_json,
        "training": to_json(content.record),
    }
    weights = {n: np.asarray(w, dtype, order="C") for n, w in content.network.weights.items()}
    write_file(_with_sorted_header(save(weights, metadata)), path)


def _with_sorted_header(content: bytes) -> bytes:
    """Sort the keys, which are in random order, in a header: length (8 bytes), JSON, data."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)  # the data begin at a multiple of 8
    return len(header).to_bytes(8, "little") + header + content[end:]


def load_model_file(path: str | Path) -> ModelFile:
    """Read a model file. Its weights become float32, however they were stored.

    Raises:
        ModelFileError: the file does not exist, is not whole, or is not a model of this program.
    """
    path = Path(path)
    if not path.is_file():
        reason = "no model.safetensors in it" if path.is_dir() else "no such file"
        raise ModelFileError(f"{path}: {reason}; {_ADVICE}")
    try:
        with safe_open(path, framework="np") as file:
            metadata: dict[str, str] = file.metadata() or {}
            names = [*file.keys()]
            dtypes = {name: file.get_slice(name).get_dtype() for name in names}
            known = [name for name in names if dtypes[name] in _DTYPES]
            weights = {name: file.get_tensor(name).astype(np.float32) for name in known}
    except SafetensorError:
        if zipfile.is_zipfile(path):
            raise ModelFileError(_of_checkpoint(path)) from None
        raise ModelFileError(f"{path} is damaged or not a safetensors file; {_ADVICE}") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from None
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} holds a model of another program; {_ADVICE}")
    if metadata.get("version") != VERSION:
        raise ModelFileError(
            f"{path} has format version {metadata.get('version')!r}, this program reads "
            f"{VERSION!r}: train it anew with `python train.py fit --config configs/bach.yaml`"
        )
    try:
        config = from_json(DecoderConfig, metadata["config"])
        vocabulary, style = metadata["vocabulary"], metadata["style"]
        record = from_json(TrainingRecord, metadata["training"])
    except KeyError as error:
        raise ModelFileError(f"{path} lacks its {error}; {_ADVICE}") from None
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}; {_ADVICE}") from None
    for name, dtype in dtypes.items():
        if dtype not in _DTYPES:
            raise ModelFileError(f"{path}: {name} holds {dtype}, no weights; {_ADVICE}")
    _check(config, weights, path)
    return ModelFile(Network(config, weights), vocabulary, style, record)


def _of_checkpoint(path: Path) -> str:
    """Return the message about a checkpoint, which is for training to go on from."""
    beside = path.absolute().parent.parent / "model.safetensors"
    advice = f"use {beside}" if beside.is_file() else _ADVICE
    return f"{path} is a training checkpoint, from which only train.py goes on; {advice}"


def _check(config: DecoderConfig, weights: dict[str, Floats], path: Path) -> None:
    """Refuse weights that do not fit the config, or that cannot give probabilities."""
    misfit = f"{path}: the weights do not fit the config beside them"
    # a false header must not make us list a million layers
    if config.n_layer > len(weights):
        raise ModelFileError(f"{misfit} ({config.n_layer} layers); {_ADVICE}")
    try:
        gather(config, weights)
    except ValueError as misfitting:
        raise ModelFileError(f"{misfit} ({misfitting}); {_ADVICE}") from None
    for name, weight in weights.items():
        least = 2.0**-14 if name == "temperature" else 0.0  # logits are divided by it
        size = np.abs(weight)
        if not (size.size and least <= size.min() and size.max() <= _LARGEST):  # or NaN
            raise ModelFileError(f"{path}: {name} is not finite, or is out of range; {_ADVICE}")
