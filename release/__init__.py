"""Makes packages from built programs: archives, Debian packages, images, wheels, and a list of what is
in them.

Each module turns bytes into bytes, and equal input gives equal output: its result does not depend on the
clock, the folder or the user. Only `__main__` reads and writes files.
"""
