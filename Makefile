# kwire: `make run` serves a broker on 127.0.0.1:9092, `make test` runs every test that gates a change.
# Both set up what they need. Caches (Kafka's jars, client builds) are in KWIRE_CACHE.

PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	  command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
export KWIRE_CACHE ?= $(HOME)/.cache/kwire
SEED ?=
RUNS ?=
ARGS ?=

.PHONY: run demo test compat-gate lint format unit stress stores asan sim mutants chaos bench differential messages docs setup setup-test peers clean

run: setup
	$(BIN)/kwire serve --listen 127.0.0.1:9092 $(ARGS)

test: setup-test peers
	$(BIN)/python -m tests.run test

compat-gate: setup-test peers
	$(BIN)/python -m tests.run gate

setup: $(VENV)/.ready
setup-test: $(VENV)/.ready-test

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "kwire needs Python 3.11 or newer with venv"; exit 1; }
	@echo "kwire: making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Compiled kernels are kept in build/kernels: only the first installation takes its minutes.
PIP := $(BIN)/python -m pip install --disable-pip-version-check

$(VENV)/.ready: pyproject.toml $(wildcard setup.py kwire/protocol/records/*kernel.py) | $(BIN)/python
	@echo "kwire: installing it into $(VENV); compiling its kernels takes a minute or two, once"
	@$(PIP) -e ".[http,schemas,tls]"
	@$(BIN)/python -m compileall -q kwire
	@touch $@

# PySpark is only of use with Java. Compiled ahead, kwire starts quickly wherever Python may not write.
$(VENV)/.ready-test: pyproject.toml $(wildcard setup.py kwire/protocol/records/*kernel.py) | $(BIN)/python
	@echo "kwire: installing it and what its tests need into $(VENV); the first time takes minutes"
	@extras=test; if command -v java >/dev/null && command -v mvn >/dev/null; then extras=test,spark; fi; \
	$(PIP) -e ".[$$extras]"
	@$(BIN)/python -m compileall -q kwire
	@touch $(VENV)/.ready $@

# Apache Kafka's own jars, to be asked what is right. Without Java and Maven their tests are skipped.
peers:
	@if command -v java >/dev/null && command -v mvn >/dev/null; then \
	  [ -f "$(KWIRE_CACHE)/kafka/complete" ] || echo "kwire: fetching Apache Kafka's jars to $(KWIRE_CACHE)/kafka, once"; \
	  compat_tests/peers/fetch-kafka.sh "$(KWIRE_CACHE)/kafka" >/dev/null || echo "Kafka's jars could not be fetched"; \
	  compat_tests/peers/fetch-jmx-exporter.sh "$(KWIRE_CACHE)/jmx" || echo "the JMX exporter could not be fetched"; fi

# A click stream through kwire and Spark, with a kill in the middle. With Maven the connector's jars are
# fetched to the cache, else Spark brings them itself.
demo: setup-test
	@jars=""; if command -v mvn >/dev/null; then \
	  [ -d "$(KWIRE_CACHE)/spark-jars" ] || echo "kwire: fetching Spark's Kafka connector and Delta to $(KWIRE_CACHE)/spark-jars, once"; \
	  compat_tests/peers/fetch-spark-jars.sh "$(KWIRE_CACHE)/spark-jars" >/dev/null \
	  && jars="$(KWIRE_CACHE)/spark-jars"; fi; KWIRE_SPARK_JARS="$$jars" $(BIN)/python tools/demo.py $(ARGS)

lint: setup-test
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy --strict kwire/ tests/support/

format: setup-test
	$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format .

unit: setup-test
	$(BIN)/python -m pytest -q -n 2 tests/unit tests/bugs $(ARGS)

# Longer runs of the same tests: ten times the seeds, thousands of partitions, a gigabyte to compact
# beside Kafka's own cleaner, jobs on Spark killed at random moments, lakes on S3. `make sim SEED=42` replays one seed, with RUNS=m the m from there on.
EFFORT ?= 10
STRESS := $(if $(SEED),KWIRE_SIM_SEED=$(SEED)) KWIRE_EFFORT=$(EFFORT)
stress: setup-test peers
	$(STRESS) KWIRE_RAFT_SEEDS=$$((40 * $(EFFORT))) KWIRE_POWER_SEEDS=$$((12 * $(EFFORT))) \
	  $(BIN)/python -m pytest -q -n 2 tests/sim tests/hostile tests/unit/kraft tests/unit/log $(ARGS)
	$(STRESS) KWIRE_SCALE=$$((4 * $(EFFORT))) KWIRE_CLEANER_MB=$$((104 * $(EFFORT))) \
	  $(BIN)/python -m pytest -q tests/system/test_retention_at_scale.py \
	  tests/system/test_rest_document.py tests/differential/test_cleaner_live.py tests/differential/test_data_directories_live.py \
	  tests/differential/test_read_by_kafka.py tests/differential/rates \
	  tests/differential/test_fault_outcomes_live.py tests/differential/test_pair_outcomes_live.py $(ARGS)
	$(STRESS) $(BIN)/python -m pytest -q compat_tests/spark/jobs/test_random_kills.py \
	  compat_tests/spark/jobs/test_random_decoded_kills.py compat_tests/spark/jobs/test_versions.py \
	  compat_tests/spark/jobs/test_kills.py::test_archive_of_many_small_partitions_survives_a_kill \
	  compat_tests/spark/jobs/test_pipeline.py::test_random_records_survive $(ARGS)
	$(MAKE) stores

# Spark's jobs on S3: their connector and the store that they are tried on are large.
stores: setup-test peers
	@echo "kwire: installing a store that speaks S3 into $(VENV)"
	@$(PIP) -q -e ".[stress]"
	$(STRESS) $(BIN)/python -m pytest -q compat_tests/spark/jobs/test_jobs_on_s3.py \
	  compat_tests/spark/jobs/test_object_store.py $(ARGS)

# The kernels compiled with AddressSanitizer, which ends a run that leaves a buffer, under tests of records and hostile ones.
asan: setup-test
	$(BIN)/python tools/asan.py --effort $(EFFORT) $(ARGS)

sim: setup-test
	$(if $(SEED),$(BIN)/python -m tests.sim.history $(SEED) $(or $(RUNS),1) $(ARGS),\
	  KWIRE_SIM_RUNS=$(or $(RUNS),100) $(BIN)/python -m pytest -q tests/sim $(ARGS))

# Mutants drawn by a seed (300, or RUNS=m), and which of them the quick tests and the simulation find;
# with ARGS="--keep DIR" a run that was ended goes on where it was.
mutants: setup-test
	nice -n 10 $(BIN)/python -m tests.mutation.run --seed $(or $(SEED),1) $(if $(RUNS),--count $(RUNS)) $(ARGS)

# Power losses, kills and damaged files: simulated with many seeds, then with real processes, then
# every client's own tests while brokers are killed under them.
chaos: setup-test
	KWIRE_EFFORT=$(EFFORT) KWIRE_POWER_SEEDS=$$((12 * $(EFFORT))) $(BIN)/python -m pytest -q -n 2 \
	  tests/sim tests/unit/kraft/test_driver_power_loss.py tests/hostile/test_damaged_data_directories.py tests/system \
	  -k "loss or kill or crash or damage or torn" $(ARGS)
	KWIRE_EFFORT=$(EFFORT) $(BIN)/python -m pytest -q tests/chaos tests/system/cluster $(ARGS)
	$(BIN)/python -m tests.runner.kills

differential: setup-test peers
	$(BIN)/python -m pytest -q tests/differential $(ARGS)

bench: setup-test peers
	$(BIN)/python bench/run.py $(ARGS)

# The classes of the messages, from their schema.
messages: setup-test
	$(BIN)/python tools/generate_messages.py

docs: setup
	$(BIN)/python tools/generate_docs.py

clean:
	rm -rf build dist .cache .mypy_cache .ruff_cache .pytest_cache *.egg-info
