"""How a piece ends."""

from data.cadences import final_chord, root_of_triad
from data.keys import estimate_key
from data.score import Score


def ends_on_tonic(score: Score) -> bool:
    """Return whether a piece ends on the tonic's triad in root position, major or minor.

    So a Picardy third counts. The key is that of the music before the last bar, so that an ending
    cannot speak for itself; where that has no key, as in a piece of one bar, it does not.
    """
    try:
        key = estimate_key(score.excerpt(0, len(score.bars) - 1))
    except ValueError:
        return False
    return root_of_triad(final_chord(score)) == key.tonic
