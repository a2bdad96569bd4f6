#!/bin/sh
# Usage: with-secrets DIRECTORY PROGRAM [ARGUMENT...]
#
# Sets one environment variable for each file in DIRECTORY, then becomes PROGRAM. The variable has the name of the file, and its
# value is the content without line breaks at the end. Files whose names cannot be variables are skipped. An unreadable file
# is an error. Without DIRECTORY, nothing is set.
set -eu
directory=$1
shift
for file in "$directory"/*; do
	name=${file##*/}
	case $name in
	[0-9]* | *[!A-Za-z0-9_]*) continue ;;
	esac
	value=$(cat "$file")
	export "$name=$value"
done
exec "$@"
