"""Tables of medians and ranges."""


def count(value):
    """A number to three digits, with k or M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def micros(value_ns):
    return f"{value_ns / 1000:.0f}" if abs(value_ns) >= 10_000 else f"{value_ns / 1000:.3g}"


def spread(value, form):
    """`median [least..most]`, or a dash."""
    if value is None:
        return "-"
    return f"{form(value.median)} [{form(value.least)}..{form(value.most)}]"


def print_table(title, columns, rows):
    """Prints columns as wide as their cells. The first column is text."""
    rows = [list(map(str, row)) for row in [columns, *rows]]
    widths = [max(map(len, column)) for column in zip(*rows)]
    print(f"\n{title}")
    for row in rows:
        first, *rest = (
            text.ljust(width) if at == 0 else text.rjust(width) for at, (text, width) in enumerate(zip(row, widths))
        )
        print("  ".join([first, *rest]).rstrip())
    print(flush=True)
