#!/usr/bin/env bash
# Unpacks dashpot below $RUNNER_TEMP, and puts it on the PATH of the next steps. Refuses a tarball whose
# checksum differs from the second argument. usage: install.sh TARBALL SHA256
set -euo pipefail

tarball=$1
sha256=${2%% *}
place=${RUNNER_TEMP:-$(mktemp -d)}/dashpot
mkdir -p "$place"
case $tarball in
    https://*) curl --fail --silent --show-error --location --output "$place/dashpot.tar.gz" "$tarball" ;;
    *) cp "$tarball" "$place/dashpot.tar.gz" ;;
esac
if ! echo "$sha256  $place/dashpot.tar.gz" | sha256sum --check --status; then
    echo "::error title=setup-dashpot::$tarball has another checksum than $sha256: take the line of SHA256SUMS"
    exit 1
fi
tar --extract --gzip --file "$place/dashpot.tar.gz" --directory "$place" --strip-components 1
"$place/bin/dashpot" version
echo "$place/bin" >>"${GITHUB_PATH:-/dev/null}"
