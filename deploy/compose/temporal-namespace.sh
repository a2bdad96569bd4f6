#!/bin/sh
# Creates the namespace TEMPORAL_NAMESPACE at TEMPORAL_ADDRESS, if it does not exist. Temporal keeps closed chains of the namespace for RETENTION.
# The script ends after some seconds, when all services of Temporal know the namespace.
set -eu
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
tries=60
until temporal operator search-attribute list --namespace "$TEMPORAL_NAMESPACE" >/dev/null; do
	tries=$((tries - 1))
	[ "$tries" -gt 0 ] || exit 1
	sleep 1
done
