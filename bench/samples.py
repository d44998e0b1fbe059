"""The results of the rounds: medians, ranges, and ratios within a round."""

import collections
import math
import statistics


class Spread(collections.namedtuple("Spread", "median least most")):
    """The median of the rounds, and their range."""

    @classmethod
    def of(cls, values):
        values = [value for value in values if value is not None]
        return cls(statistics.median(values), min(values), max(values)) if values else None


class Samples:
    """For each cell and server, the figures of each round."""

    def __init__(self):
        self.rounds = collections.defaultdict(dict)

    def add(self, cell, server, number, figures):
        if figures is not None:
            self.rounds[cell, server][number] = figures

    def spread(self, cell, server, figure):
        return Spread.of(figures.get(figure) for figures in self.rounds[cell, server].values())

    def ratio(self, cell, figure, one, other):
        """The ratio of two servers' figures, taken round by round, so that noise that slows a whole round
        cancels out.
        """
        rounds = (self.rounds[cell, one], self.rounds[cell, other])
        pairs = ((rounds[0][n].get(figure), rounds[1][n].get(figure)) for n in rounds[0].keys() & rounds[1].keys())
        return Spread.of(a / b for a, b in pairs if a is not None and b)

    def best(self, cell, figure, servers, better=max):
        """The server with the best median."""
        medians = {server: spread.median for server in servers if (spread := self.spread(cell, server, figure))}
        return better(medians, key=medians.get) if medians else None

    def figures(self):
        """All results as JSON: by cell, server and figure, [median, least, most]."""
        tree = {}
        for (cell, server), rounds in self.rounds.items():
            keys = sorted({key for figures in rounds.values() for key in figures})
            spreads = {key: self.spread(cell, server, key) for key in keys}
            if spreads:
                short = {key: [float(f"{value:.4g}") for value in spread] for key, spread in spreads.items() if spread}
                tree.setdefault(str(cell), {})[server] = short
        return tree


def difference(samples, cell, figure, one, other):
    """The differences between the figures of two servers, taken round by round: their median, and the bounds of its 95
    % interval.
    """
    rounds = (samples.rounds[cell, one], samples.rounds[cell, other])
    pairs = rounds[0].keys() & rounds[1].keys()
    differences = sorted(rounds[0][number][figure] - rounds[1][number][figure] for number in pairs)
    if not differences:
        return None
    low = sign_test_rank(len(differences))
    return Spread(statistics.median(differences), differences[low], differences[-1 - low])


def sign_test_rank(count):
    """How many values can be left out at each end of `count` sorted values, so that the rest still encloses
    the true median with 95 % probability. The number follows from the binomial distribution of a fair coin,
    without assumptions about the noise.
    """
    tail, rank = 0.5**count, 0
    while rank < count // 2 and tail <= 0.025:
        rank += 1
        tail += math.comb(count, rank) * 0.5**count
    return max(rank - 1, 0)
