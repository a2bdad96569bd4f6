# Usage: sh retry.sh COMMAND [ARGUMENT...]
#
# Runs a command that needs the network, at most four times, until it succeeds. The pauses
# between the runs grow. The exit status is the status of the last run.
set -eu

attempt=1
until "$@"; do
	status=$?
	if [ "$attempt" -eq 4 ]; then
		echo "gave up after $attempt attempts: $*" >&2
		exit "$status"
	fi
	echo "attempt $attempt failed with status $status, trying again: $*" >&2
	sleep $((attempt * 5))
	attempt=$((attempt + 1))
done
