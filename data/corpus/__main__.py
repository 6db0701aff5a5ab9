"""The command `python -m data.corpus`."""

if __name__ == "__main__":
    import common.command  # noqa: F401  # Ctrl-C ends it at once while it starts

from collections.abc import Sequence

from common.cli import Parser, ended_by_ctrl_c, fail, file_name, positive_integer, say
from data.corpus.corpus import CorpusError, CorpusOptions, open_corpus
from data.midi.instruments import MODES


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = Parser(
        "name one folder, in quotes if there are spaces in its name",
        prog="python -m data.corpus",
        description="Builds the corpus of a folder of MIDI files and says what is in it.",
    )
    parser.add_argument(
        "folder", type=file_name, help='a folder of MIDI files; or "bach" or "folk"'
    )
    parser.add_argument("--datasets", default="datasets", type=file_name, help="where corpora lie")
    parser.add_argument("--workers", type=positive_integer, help="processes (default: all cores)")
    kinds = parser.add_argument_group("what train.py takes as --data.NAME too")
    kinds.add_argument("--grid", default="beats", choices=("beats", "seconds"))
    kinds.add_argument("--steps-per-beat", type=int, default=12, help="(default: 12)")
    kinds.add_argument("--instruments", default="original", choices=MODES)
    kinds.add_argument("--programs", type=int, nargs="+", help="the programs to keep, 128: drums")
    kinds.add_argument("--tracks", nargs="+", help="by name, or number from 1")
    kinds.add_argument("--parts", default="program", choices=("program", "track"))
    kinds.add_argument("--time-signature", help="such as 4/4, of files whose own is wrong")
    given = parser.parse_args(argv)
    try:
        options = CorpusOptions.from_settings(vars(given))
        with ended_by_ctrl_c():
            corpus = open_corpus(given.folder, given.datasets, options, workers=given.workers)
            print(f"{corpus.full_report()}\n")
            say(f"in {corpus.folder}")
    except (CorpusError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
