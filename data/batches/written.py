"""Pieces to learn from beside those of a corpus, such as those that trained models write."""

from data.corpus.options import CorpusError
from data.corpus.reader import read_paths
from data.corpus.store import Split
from data.midi.instruments import Instruments
from data.midi.quantize import MidiError
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Vocabulary, VocabularyError


def read_written(folder: str, vocabulary: Vocabulary, instruments: Instruments) -> Split:
    """Read all MIDI files in a folder and below it; the vocabulary must have all their notes.

    Raises:
        CorpusError: a file is no piece, or has what the vocabulary lacks; or there are no files.
        FileNotFoundError: there is no such folder.
    """
    try:
        read = read_paths([folder], vocabulary.grid, instruments)
        if read.left_out:
            raise MidiError(f"{read.messages[0]}; remove that file")
        pieces = [encode(score, vocabulary) for score in read.scores]
    except MidiError as error:
        raise CorpusError(str(error)) from None
    except VocabularyError as error:
        raise CorpusError(
            f"{folder}: {error}: a model of another corpus wrote these pieces; leave them out"
        ) from None
    return Split.of_pieces(read.names, pieces, vocabulary)
