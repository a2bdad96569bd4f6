# Usage: sh release.sh TOOLS VERSION BUILD_FLAG...
#
# Builds both programs of a tagged commit for each platform into dist, each with its bill of materials, packages for Linux,
# and checksums. The same commit and the same Go version give the same bytes on every machine. PLATFORMS limits the
# platforms; the one of this machine must be among them. TOOLS is the directory of nfpm and cyclonedx-gomod.
set -eu
tools=$1
version=$2
shift 2
cd "$(dirname "$0")/.."
go=${GO:-go}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/arm64}

fail() {
	echo "release: $1" >&2
	exit 1
}

printf '%s\n' "$version" | grep -Eq '^v[0-9]+\.[0-9]+\.[0-9]+$' || fail "$version is no version; write VERSION=v1.2.3"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
git tag --points-at HEAD | grep -qxF "$version" || fail "this commit has no tag $version; see docs/releasing.md"
grep -qF "## [${version#v}] - " CHANGELOG.md || fail "CHANGELOG.md has no section [${version#v}] with a date"
[ -e "workflows/testdata/releases/$version.tar.gz" ] || fail "the histories of $version are not kept; run make freeze before the tag"

# Unset the settings of this machine that would change the bytes.
unset GOFLAGS GOAMD64 GOARM64 GOEXPERIMENT
export CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off

umask 022
rm -rf dist
mkdir dist
for platform in $platforms; do
	for main in worker starter; do
		name=claudeops
		[ "$main" = starter ] || name=claudeops-$main
		GOOS=${platform%/*} GOARCH=${platform#*/} "$go" build -buildvcs=true "$@" \
			-o "dist/$name-$version-${platform%/*}-${platform#*/}" "./$main"
	done
done
built=$("$go" version -m "dist/claudeops-worker-$version-$(echo "$platforms" | cut -d ' ' -f 1 | tr / -)" | awk '$1 == "mod" { print $3 }')
[ "$built" = "$version" ] || fail "the programs say that they are $built"

for program in dist/*; do
	"$tools/cyclonedx-gomod" bin -json -noserial -notimestamp -output "$program.cdx.json" "$program" 2>/dev/null ||
		fail "there is no bill of materials of $program"
done

# Every file of a package has the time of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
here=$("$go" env GOHOSTOS)-$("$go" env GOHOSTARCH)
for platform in $platforms; do
	[ "${platform%/*}" = linux ] || continue
	arch=${platform#*/}
	stage=$(mktemp -d)
	mkdir "$stage/bin"
	# The completions are those of the program of this machine. They are the same on all.
	cp "dist/claudeops-$version-$here" "$stage/bin/claudeops"
	cp "dist/claudeops-worker-$version-linux-$arch" "$stage/bin/worker"
	make -s install BIN="$stage/bin" DESTDIR="$stage/root" PREFIX=/usr WORKER=/usr/lib/claudeops/worker \
		UNITS=/usr/lib/systemd/system SYSUSERS=/usr/lib/sysusers.d
	install -m 0755 "dist/claudeops-$version-linux-$arch" "$stage/root/usr/bin/claudeops"
	find "$stage/root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	for packager in deb rpm; do
		STAGE=$stage/root ARCH=$arch VERSION=${version#v} "$tools/nfpm" package -f deploy/packages/nfpm.yaml -p "$packager" -t dist
	done
	rm -r "$stage"
done
cd dist
if command -v sha256sum >/dev/null; then sha256sum claudeops* >SHA256SUMS; else shasum -a 256 claudeops* >SHA256SUMS; fi
echo "release: built by $("$go" version | cut -d ' ' -f 3)"
cat SHA256SUMS
