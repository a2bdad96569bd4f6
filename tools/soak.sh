# Usage: sh soak.sh REPORT BUILD_TAGS [TEST FLAG...]
#
# Runs groups of tests, one after the other: the years, the other soak tests, on every pinned CLI the tests that make test
# runs on the newest CLI only, whole chains under the race detector, and all chains and a lost host with records in
# PostgreSQL. It writes their output to REPORT, prints their figures in one block at the end, and fails if a test has
# failed.
set -u
report=$1
tags=soak,$2
shift 2

failed=0
run() {
	"${GO:-go}" test -count=1 -v "$@" >>"$report" 2>&1 || failed=1
}

: >"$report"
echo "soak: takes two to three hours on an idle machine; watch $report"
packages=$(sh "$(dirname "$0")/packages.sh" TestSoak) || exit 1
# A test binary refuses a flag that its package does not declare, and not every package has something to repeat.
declares() { # PACKAGE FLAG...
	package=$1
	shift
	for flag; do
		name=${flag%%=*}
		case $name in
		-soak.*) grep -qF "\"${name#-}\"" "$package"/*_test.go || return 1 ;;
		esac
	done
}
with= without= plain=
for package in $packages; do
	[ "${package##*/}" != year ] || continue
	if declares "$package" "$@"; then with="$with $package"; else without="$without $package"; fi
done
for flag; do
	case $flag in
	-soak.*) ;;
	*) plain="$plain $flag" ;;
	esac
done
if [ -z "$with" ]; then
	echo "soak.sh: no package declares all of: $*" >&2
	exit 1
fi
# A year uses one processor, and leaves a gigabyte: the SDK's environment keeps the runs that have continued as new. So two
# lanes share the years, and each year has a process of its own.
lane() { # REPORT TEST...
	lane=$1
	shift
	for year; do
		"${GO:-go}" test -count=1 -v -tags "$tags" -timeout 60m -run "$year" ./internal/systemtest/year >>"$lane" 2>&1 || return 1
	done
}
seed='^TestSoakYears$/^seed_'
lane "$report.a" ${seed}100 ${seed}102 ${seed}104 ${seed}106 ${seed}108 ${seed}110 '^TestSoakHectic$' &
lane "$report.b" '^TestSoak(Settings|Mutants)$' ${seed}101 ${seed}103 ${seed}105 ${seed}107 ${seed}109 ${seed}111 || failed=1
wait $! || failed=1
cat "$report.a" "$report.b" >>"$report"
rm "$report.a" "$report.b"
# shellcheck disable=SC2086 # lists of packages and flags
[ -z "$without" ] || run -tags "$tags" -timeout 100m -run '^TestSoak' $without $plain
# shellcheck disable=SC2086 # a list of packages
run -tags "$tags" -timeout 100m -run '^TestSoak' $with "$@"
chains=$(sh "$(dirname "$0")/tests.sh" forRealCLIs internal/systemtest) || exit 1
run -tags "$tags" -timeout 20m -run "$chains" -skip '^TestSoak' ./internal/systemtest
run -race -timeout 20m -run '^TestChains$' ./internal/systemtest
run -timeout 40m ./internal/systemtest -postgres
run -tags "$tags" -timeout 20m -run '^TestSoakHostLost$' ./internal/systemtest -postgres

echo "== Figures"
sed -nE 's/^ *[a-z_]*_test\.go:[0-9]*: (soak|faults): //p' "$report"
echo "== Tests"
grep -E '^(--- |ok|FAIL|panic)' "$report"
exit "$failed"
