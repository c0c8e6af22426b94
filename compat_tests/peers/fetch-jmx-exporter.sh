#!/usr/bin/env bash
# Fetch the JMX exporter for Prometheus, as a Java agent, through Maven.
#   fetch-jmx-exporter.sh FOLDER        does nothing when it is there already
set -euo pipefail
VERSION=1.0.1
[ $# -eq 1 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
[ -f "$1/jmx_prometheus_javaagent-$VERSION.jar" ] && exit 0
mkdir -p "$1"
mvn -q -B dependency:copy -Dartifact="io.prometheus.jmx:jmx_prometheus_javaagent:$VERSION" -DoutputDirectory="$1" >&2
