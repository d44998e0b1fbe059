"""What the rounds gave: medians, ranges, and ratios within a round."""

import collections
import statistics


class Spread(collections.namedtuple("Spread", "median least most")):
    """The median of the rounds, and between what they lay."""

    @classmethod
    def of(cls, values):
        values = [value for value in values if value is not None]
        return cls(statistics.median(values), min(values), max(values)) if values else None


class Samples:
    """By cell and server, a mapping from the round to its figures."""

    def __init__(self):
        self.rounds = collections.defaultdict(dict)

    def add(self, cell, server, number, figures):
        if figures is not None:
            self.rounds[cell, server][number] = figures

    def spread(self, cell, server, figure):
        return Spread.of(figures.get(figure) for figures in self.rounds[cell, server].values())

    def ratio(self, cell, figure, one, other):
        """One server's figure over another's, taken round by round: what slows a whole round cancels out."""
        rounds = (self.rounds[cell, one], self.rounds[cell, other])
        pairs = ((rounds[0][n].get(figure), rounds[1][n].get(figure)) for n in rounds[0].keys() & rounds[1].keys())
        return Spread.of(a / b for a, b in pairs if a is not None and b)

    def best(self, cell, figure, servers, better=max):
        """The server with the best median."""
        medians = {server: spread.median for server in servers if (spread := self.spread(cell, server, figure))}
        return better(medians, key=medians.get) if medians else None

    def figures(self):
        """Everything, as JSON: cell, server, figure, [median, least, most]."""
        tree = {}
        for (cell, server), rounds in self.rounds.items():
            keys = sorted({key for figures in rounds.values() for key in figures})
            spreads = {key: self.spread(cell, server, key) for key in keys}
            if spreads:
                short = {key: [float(f"{value:.4g}") for value in spread] for key, spread in spreads.items() if spread}
                tree.setdefault(str(cell), {})[server] = short
        return tree
