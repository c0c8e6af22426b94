#!/usr/bin/env bash
# kafka.sh JARS DIR PORT [NAME=VALUE]...: format and run one node of Apache Kafka in the foreground, with its defaults but for what
# one node alone needs. Used by the side-by-side run; formatting counts as start time, as it does for kwire.
set -euo pipefail
libs=$1 dir=$2 port=$3
shift 3
cat > "$dir/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
log.dirs=$dir/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
PROPERTIES
[ $# -eq 0 ] || printf '%s\n' "$@" >> "$dir/server.properties"
java -cp "$libs/*" -Xmx256m -Dlog4j2.level=ERROR kafka.tools.StorageTool format --standalone -t a3dpcmUtYmVuY2gta2Fma2E \
  -c "$dir/server.properties" >/dev/null
exec java -Xms1g -Xmx1g -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 -Djava.awt.headless=true \
  -Dlog4j2.level=ERROR -cp "$libs/*" kafka.Kafka "$dir/server.properties"
