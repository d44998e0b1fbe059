#!/usr/bin/env bash
# Adds to the summary of the step what dashpot can do on this runner.
set -euo pipefail

{
    echo '## dashpot on this runner'
    echo '```'
    dashpot doctor || true
    echo '```'
} >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
