# Usage: sh freeze.sh VERSION
#
# Copies the recorded histories of a release and their checksum to workflows/testdata/releases. From then on,
# TestReleasedHistories replays these histories.
set -eu
version=$1
cd "$(dirname "$0")/../workflows/testdata"

if ! printf '%s\n' "$version" | grep -Eq '^v[0-9]+\.[0-9]+\.[0-9]+$'; then
	echo "freeze: $version is no version; write VERSION=v1.2.3" >&2
	exit 1
fi
if [ -e "releases/$version.tar.gz" ]; then
	echo "freeze: the histories of $version are kept already, and must not change" >&2
	exit 1
fi
mkdir -p releases
tar -cf - ./*.json | gzip -9 -n >"releases/$version.tar.gz"
cd releases
sum=$(sha256sum "$version.tar.gz" 2>/dev/null || shasum -a 256 "$version.tar.gz")
printf '%s\n' "$sum" >>SHA256SUMS
echo "freeze: commit workflows/testdata/releases"
