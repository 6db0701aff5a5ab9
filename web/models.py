"""The models that the page offers: shipped ones and those of runs, reloaded when a file changes."""

from __future__ import annotations

import glob
import os
from contextlib import suppress
from pathlib import Path

from data.corpus.corpus import Corpus, CorpusError
from generation.defaults import PROJECT
from generation.model import Model, load
from model.serialization import ModelFileError
from web.messages import MessageError

KEPT = 3  # models in memory


class Models:
    """The models under a folder, by name.

    Args:
        first: the model to list first, which may also lie elsewhere.
        folder: the folder that holds `models/` and `runs/`.

    Attributes:
        warm: the files of the models that have written something since the server began.
    """

    def __init__(self, first: Path, folder: Path = PROJECT) -> None:
        self._first, self._folder = first, folder
        self.warm: set[Path | None] = set()
        self._loaded: dict[tuple[Path, int, int], Model] = {}  # the most recently used comes last

    def paths(self) -> dict[str, Path]:
        """Return the file of each model by its name: shipped ones, then runs, the newest first.

        A model from elsewhere is named by its file and folder. No name is ever used as a path.
        """
        shipped = sorted(self._folder.glob("models/*.safetensors"))
        runs = list(self._folder.glob("runs/*/model.safetensors"))
        runs.sort(key=lambda path: -path.stat().st_mtime)
        named = {path.stem: path for path in shipped}
        named |= {f"runs/{path.parent.name}": path for path in runs}
        first = self._first.resolve()
        name = next((name for name, path in named.items() if path.resolve() == first), None)
        return {name or "/".join(first.parts[-2:]): self._first} | named

    def load(self, name: str) -> Model:
        """Return a model with the weights that its file holds now.

        Raises:
            MessageError: there is no model of that name.
            ModelFileError: its file is not a model that this program can use.
        """
        paths = self.paths()
        path = paths.get(name)
        if path is None:
            raise MessageError(f"there is no model {name[:80]!r}: choose from {', '.join(paths)}")
        try:
            return self.read(path)
        except ModelFileError as error:  # the page must not see the server's paths
            reason = str(error).replace(str(path), name)
            raise ModelFileError(reason.replace(f"{self._folder}{os.sep}", "")) from None

    def read(self, path: Path) -> Model:
        """Return the model in a file, with the weights that the file holds now.

        Raises:
            ModelFileError: the file is not a model that this program can use.
        """
        if not path.is_file():
            return load(path)  # raises the error
        status = path.stat()
        version = (path, status.st_mtime_ns, status.st_size)
        model = self._loaded.pop(version, None) or load(path)
        older = {key: kept for key, kept in self._loaded.items() if key[0] != path}
        self._loaded = dict([*older.items(), (version, model)][-KEPT:])
        return model

    def corpus_at_hand(self, model: Model) -> Corpus | None:
        """Return the corpus that a model was trained on, if it lies in `datasets/` already."""
        name = Path(str(model.record.data.get("path", ""))).name
        for folder in sorted(self._folder.glob(f"datasets/{glob.escape(name)}-*")):
            with suppress(FileNotFoundError, CorpusError):
                corpus = Corpus.open(folder)
                if corpus.vocabulary == model.vocabulary:
                    return corpus
        return None
