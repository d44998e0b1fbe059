"""Packages of built programs: archives, Debian packages, images, wheels, and a list of what is in them.

Each module makes bytes out of bytes, and from equal bytes makes equal bytes: its result does not depend on the
clock, the folder or the user. Only `__main__` reads and writes files.
"""
