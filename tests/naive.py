"""A naive computation of statistics: it takes a list of I/Os, as `snoop --json` prints them, selects some of them,
and counts these one by one.

The computation shares no code with dashpot. It even parses the names of classes (`4K-8K`, `2ms-5ms`) that dashpot
prints, instead of making them.
"""

import re

TIMES = ["latency", "total", "recv", "throttle", "queue", "suspend", "store", "hold", "late", "reply"]
BYTES = ["size", "offset"]
COUNTS = ["depth", "rule", "lane", "pid", "tid", "inode"]
TXG = {None: None, True: "syncing", False: "open"}
NUMBERS = TIMES + BYTES + COUNTS
# Ids are not amounts, so they cannot be metrics.
MEASURES = TIMES + BYTES + ["depth"]
OPERATIONS = {"R": "read", "W": "write", "D": "trim"}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def of_zio(layer, io):
    """The facts about a zio; None for a fact that it does not have."""
    waits = {name.removesuffix("_ns"): ns for name, ns in io["waits"].items()}
    if layer == "disk":
        waits["throttle"] = None
    late = waits.pop("lateness")
    at_device = sum(waits[part] for part in ("store", "hold")) + late + (waits["throttle"] or 0)
    return {
        **waits,
        "late": late,
        "latency": at_device,
        "total": io["total_ns"],
        "device": io["device"],
        "op": io["op"],
        "type": io["op"],
        "fua": "yes" if io["fua"] else "no",
        "client": io["client"],
        "size": io["length_bytes"],
        "offset": io["offset_bytes"],
        "depth": io["depth"],
        "rule": io["rule"],
        "lane": io["lane"],
        "error": io["error"],
        "class": io["class"],
        "txg": TXG[io["txg_syncing"]],
        "bytes": 0 if io["error"] else io["length_bytes"],
    }


def of_kernel(io):
    """The facts about an I/O of the kernel. The process is left out for flushes and for write-back."""
    letters = io["rwbs"].lstrip("F")
    op = "zero" if letters.startswith("WZ") else OPERATIONS.get(letters[:1], "flush" if "F" in io["rwbs"] else "other")
    return {
        "device": io["device"],
        "op": op,
        "type": io["rwbs"],
        "size": io["bytes"],
        "offset": 512 * io["sector"],
        "latency": io["device_ns"],
        "total": io["total_ns"],
        "queue": io["queue_ns"],
        "pid": io["pid"],
        "tid": io["tid"],
        "error": io["error"],
        "bytes": io["bytes"],
    }


class Statistic:
    """A statistic with its name and its naive meaning."""

    def __init__(self, layer, metric, conditions, by):
        self.metric, self.conditions, self.by = metric, conditions, by
        parts = "".join(f"[{text}]" for text, _ in conditions) + (f"[{by}]" if by else "")
        self.name = f"{layer}.{metric}{parts}"

    def selected(self, ios):
        chosen = [io for io in ios if all(meets(io) for _, meets in self.conditions)]
        return [io for io in chosen if self.metric != "errors" or io["error"] is not None]

    def check(self, told, ios):
        """Compares the sum of an answer's intervals with the I/Os."""
        chosen = self.selected(ios)
        assert (told["count"], told["bytes"]) == amount(chosen), self.name
        breakdown = self.by or (self.metric if self.metric in MEASURES else None)
        for value, part in self.parts(breakdown, told["values"], chosen):
            assert (value["count"], value["bytes"]) == amount(part), (self.name, value)
            self.check_numbers(value, part)
        self.check_numbers(told, chosen)

    def check_numbers(self, told, ios):
        if self.metric not in MEASURES:
            return
        numbers = [io[self.metric] for io in ios if io[self.metric] is not None]
        most = max(numbers, default=None)
        assert (told["n"], told["max"]) == (len(numbers), most), (self.name, told)

    def parts(self, by, values, ios):
        """Each value in the answer, with its I/Os. Checks that each I/O has one of these values."""
        if by is None:
            return []
        assert len({value["value"] for value in values}) == len(values)
        parts = [(value, [io for io in ios if belongs(io[by], by, value["value"])]) for value in values]
        assert sum(len(part) for _, part in parts) == len(ios), (self.name, values)
        return parts


def amount(ios):
    return len(ios), sum(io["bytes"] for io in ios)


def belongs(fact, by, label):
    if fact is None:
        return label == ("none" if by in ("rule", "lane", "class", "txg", "error") else "unknown")
    if by not in NUMBERS:
        return label == fact
    if label in ("none", "unknown"):
        return False
    if by in COUNTS:
        return int(label) == fact
    if label.startswith("<"):
        return fact < number(label[1:])
    low, _, high = label.partition("-")
    return number(low) <= fact < number(high) if high else fact == number(low)


def number(text):
    digits, unit = re.fullmatch(r"(\d+)(\D*)", text).groups()
    return int(digits) * UNITS[unit]


def told(intervals):
    """The sum of the intervals of an answer."""
    figures = ("count", "bytes", "n")
    whole = {"count": 0, "bytes": 0, "n": 0, "max": None, "values": {}}

    def add(to, more):
        numbers = more.get("numbers", {"n": 0})
        longest = next((figure for name, figure in numbers.items() if name.startswith("max")), None)
        for figure, value in zip(figures, (more["count"], more["bytes"], numbers["n"])):
            to[figure] += value
        to["max"] = max((one for one in (to["max"], longest) if one is not None), default=None)

    for interval in intervals:
        add(whole, interval)
        for value in interval.get("values", []):
            empty = {"value": value["value"], "count": 0, "bytes": 0, "n": 0, "max": None}
            add(whole["values"].setdefault(value["value"], empty), value)
    return {**whole, "values": list(whole["values"].values())}


def some(random, count, layer, ios, dimensions):
    """Random statistics about these dimensions. The conditions use values that some of the I/Os have, so that they
    select something.
    """
    return [one(random, layer, ios, dimensions) for _ in range(count)]


def one(random, layer, ios, dimensions):
    known = [dimension for dimension in dimensions if any(io.get(dimension) is not None for io in ios)]
    measures = [dimension for dimension in known if dimension in MEASURES]
    metric = random.choice(["ops", "bytes", "errors", random.choice(measures), random.choice(measures)])
    by = random.choice([None, random.choice(dimensions), random.choice(dimensions)])
    if metric == "offset":
        by = None
    conditions = [condition(random, random.choice(known), ios) for _ in range(random.choice([0, 1, 1, 2, 3]))]
    return Statistic(layer, metric, conditions, by)


def condition(random, dimension, ios):
    """A random condition in words, and a function that says whether an I/O meets it."""
    value = random.choice([io[dimension] for io in ios if io.get(dimension) is not None])
    if dimension not in NUMBERS:
        start = value[: random.randrange(1, len(value) + 1)]
        words, meets = random.choice(
            [
                (f"={value}", lambda fact: fact == value),
                (f"!={value}", lambda fact: fact != value),
                (f"={start}*", lambda fact: fact.startswith(start)),
            ]
        )
    else:
        unit = "ns" if dimension in TIMES else ""
        more = value + random.randrange(1, 1_000_000)
        words, meets = random.choice(
            [
                (f">={value}{unit}", lambda fact: fact >= value),
                (f"<={value}{unit}", lambda fact: fact <= value),
                (f">{value}{unit}", lambda fact: fact > value),
                (f"={value}{unit}", lambda fact: fact == value),
                (f"!={value}{unit}", lambda fact: fact != value),
                (f"={value}{unit}..{more}{unit}", lambda fact: value <= fact < more),
            ]
        )
    return dimension + words, lambda io: io[dimension] is not None and meets(io[dimension])
