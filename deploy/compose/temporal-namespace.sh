#!/bin/sh
# Creates the namespace TEMPORAL_NAMESPACE at TEMPORAL_ADDRESS, unless it exists. It keeps closed chains for RETENTION. All services of Temporal know
# the namespace when this ends, which takes some seconds.
set -eu
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
tries=60
until temporal operator search-attribute list --namespace "$TEMPORAL_NAMESPACE" >/dev/null; do
	tries=$((tries - 1))
	[ "$tries" -gt 0 ] || exit 1
	sleep 1
done
