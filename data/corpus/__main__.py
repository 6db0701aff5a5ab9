"""The command `python -m data.corpus`."""

if __name__ == "__main__":
    import common.command  # noqa: F401  # Ctrl-C ends it at once while it starts

from argparse import SUPPRESS
from collections.abc import Sequence

from common.cli import Parser, ended_by_ctrl_c, fail, file_name, positive_integer, say
from common.options import comments_of, described, hints_of
from data.corpus.corpus import CorpusError, CorpusOptions, open_corpus
from data.corpus.options import OPEN


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = Parser(
        "name one folder, in quotes if there are spaces in its name",
        prog="python -m data.corpus",
        description="Builds the corpus of a folder of music files and says what is in it.",
    )
    parser.add_argument(
        "folder", type=file_name, help='a folder of music files; or "bach" or "folk"'
    )
    parser.add_argument("--datasets", default="datasets", type=file_name, help="where corpora lie")
    parser.add_argument("--workers", type=positive_integer, help="processes (default: all cores)")
    kinds = parser.add_argument_group("what train.py takes as --data.NAME too")
    hints = hints_of(CorpusOptions)
    for name, comment in comments_of(CorpusOptions).items():
        if name != "transpose":  # it only widens the vocabulary
            kinds.add_argument(
                f"--{name.replace('_', '-')}",
                nargs="+" if name in ("programs", "tracks") else None,
                type=int if name in ("programs", "steps_per_beat") else str,
                default=SUPPRESS,
                help=f"{comment}; {described(hints[name])}",
            )
    given = parser.parse_args(argv)
    try:
        options = CorpusOptions.from_settings(OPEN | vars(given))
        with ended_by_ctrl_c():
            corpus = open_corpus(given.folder, given.datasets, options, workers=given.workers)
            for line in [*corpus.full_report().splitlines(), "", f"in {corpus.folder}"]:
                say(line)
    except (CorpusError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
