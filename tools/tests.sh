#!/bin/sh
# Prints a pattern for go test -run. It matches the tests in the directory DIRECTORY that call FUNCTION, directly or through
# one other function of the same file.
#
#	tests.sh FUNCTION DIRECTORY
set -eu
awk -v called="$1(" '
	/^func / { name = $2; sub(/\(.*/, "", name); if ($2 ~ /^\(/) { name = $4; sub(/\(.*/, "", name) } }
	index($0, called) && !/^func / { callers[FILENAME, name] = 1 }
	{ line[FILENAME, FNR] = $0; inside[FILENAME, FNR] = name; last[FILENAME] = FNR }
	END {
		for (key in callers) {
			split(key, part, SUBSEP)
			if (part[2] ~ /^Test/) { tests[part[2]] = 1; continue }
			for (i = 1; i <= last[part[1]]; i++)
				if (index(line[part[1], i], part[2] "(") && inside[part[1], i] ~ /^Test/) tests[inside[part[1], i]] = 1
		}
		for (test in tests) list = list "|" test
		if (list == "") exit 1
		printf "^(%s)$", substr(list, 2)
	}
' "$2"/*_test.go
