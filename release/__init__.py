"""Packages of built programs: archives, Debian packages, images, wheels, and a list of what is in them.

Each module makes bytes of bytes, and equal bytes of equal ones: it reads no clock, no folder and no user. Only
`__main__` reads and writes files.
"""
