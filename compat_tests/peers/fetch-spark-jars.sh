#!/usr/bin/env bash
# Fill a folder with the jars that Spark 4.2 (Scala 2.13) needs for format("kafka"), format("delta") and from_avro, through Maven.
#   fetch-spark-jars.sh FOLDER  prints a comma-separated list for spark.jars; does nothing when already complete
set -euo pipefail
KAFKA=4.2.0
DELTA=4.4.0
WANTED="spark-kafka $KAFKA, delta-spark $DELTA, spark-avro $KAFKA"
[ $# -eq 1 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
mkdir -p "$1"; dir=$(cd "$1" && pwd)
exec 9>"$dir/.lock"; command -v flock >/dev/null && flock 9 # of several at once, one fetches
# These come with PySpark itself; a second copy on the class path only makes trouble.
provided='spark-core|spark-sql_|spark-catalyst|spark-sql-api|spark-tags|scala-library|hadoop-client|slf4j-api|jcl-over|log4j|snappy-java|lz4-java|zstd-jni|jspecify|jsr305'
list() { ls "$dir"/libs/*.jar | grep -Ev "/($provided)" | paste -sd, ; }
if [ "$(cat "$dir/complete" 2>/dev/null || true)" = "$WANTED" ]; then list; exit 0; fi
rm -rf "$dir/libs" "$dir/complete"
# Of Delta and spark-avro only their own jars: what else they name is in PySpark, in the versions that go with Spark.
cat > "$dir/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>peers</groupId><artifactId>spark-peer</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId><version>$KAFKA</version></dependency>
    <dependency><groupId>org.apache.spark</groupId><artifactId>spark-avro_2.13</artifactId><version>$KAFKA</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId><version>2.0.17</version></dependency>
    <dependency><groupId>io.delta</groupId><artifactId>delta-spark_4.2_2.13</artifactId><version>$DELTA</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
    <dependency><groupId>io.delta</groupId><artifactId>delta-storage</artifactId><version>$DELTA</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
  </dependencies>
</project>
POM
mvn -q -B -f "$dir/pom.xml" dependency:copy-dependencies -DoutputDirectory="$dir/libs" -DincludeScope=runtime >&2
for jar in "spark-sql-kafka-0-10_2.13-$KAFKA" "delta-spark_4.2_2.13-$DELTA" "spark-avro_2.13-$KAFKA"; do
  [ -f "$dir/libs/$jar.jar" ] || { echo "fetch-spark-jars: $jar.jar did not arrive" >&2; exit 1; }
done
echo "$WANTED" > "$dir/complete"
list
