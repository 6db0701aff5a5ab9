"""Pieces that are learned from beside those of a corpus: such as trained models write."""

from data.corpus.options import CorpusError
from data.corpus.reader import read_paths
from data.corpus.store import Split
from data.midi.instruments import Instruments
from data.midi.quantize import MidiError
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Vocabulary, VocabularyError


def read_written(folder: str, vocabulary: Vocabulary, instruments: Instruments) -> Split:
    """Read the MIDI files in a folder and below, of which the vocabulary has every note.

    Raises:
        CorpusError: one is no piece, or holds what the vocabulary has not; or there is none.
        FileNotFoundError: no such folder.
    """
    try:
        read = read_paths([folder], vocabulary.grid, instruments)
        if read.left_out:
            raise MidiError(f"{read.messages[0]}; take it away")
        pieces = [encode(score, vocabulary) for score in read.scores]
    except MidiError as error:
        raise CorpusError(str(error)) from None
    except VocabularyError as error:
        raise CorpusError(
            f"{folder}: {error}: models of another corpus wrote them; leave them out"
        ) from None
    return Split.of_pieces(read.names, pieces, vocabulary)
