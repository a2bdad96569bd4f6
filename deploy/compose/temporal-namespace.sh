#!/bin/sh
# Creates the namespace TEMPORAL_NAMESPACE at TEMPORAL_ADDRESS, unless it exists. It keeps closed chains for RETENTION.
set -eu
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
