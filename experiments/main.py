"""Runs all experiments. The exit code tells whether every claim held."""

import sys

import attached
import dm_delay
import served
import throttle
import ways
import zinject
from lab import Claims

if __name__ == "__main__":
    claims = Claims()
    zinject.run(claims)
    dm_delay.run(claims)
    attached.run(claims)
    ways.run(claims)
    throttle.run(claims)
    served.run(claims)
    sys.exit(claims.verdict())
