# The two commands are `make demo` and `make test`; both install what is missing themselves (cmake/packages.sh says what).
BUILD ?= build
JOBS ?= $(shell nproc)
RUN_CMAKE = cmake -S . -G Ninja

.PHONY: demo test wheel web site sanitized asan tsan fuzz mutants instructions golden gallery bench format coverage clean

# The program alone without what fits, LibTorch and CUDA, lightly optimised: a first look takes few packages and little time.
demo:
	@cmake/packages.sh program
	@$(RUN_CMAKE) -B $(BUILD)/demo -DFTAX_BUILD_TESTS=OFF -DFTAX_BUILD_FIT=OFF -DFTAX_UNITY=ON \
	            -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' --log-level=WARNING
	@cmake --build $(BUILD)/demo -j $(JOBS) --target ftax_program
	@examples/demo.sh $(BUILD)/demo/ftax

# WERROR=ON: warnings in the product's C++ fail the build, as in .ci/run; other compilers than Debian's warn of other things.
# A first build compiles the sources of a layer and the tests of a folder together, which halves its time; UNITY=OFF compiles each by
# itself, and later calls as well; with UNITY_TESTS=ON the tests of a folder stay together.
WERROR ?= OFF
UNITY_TESTS ?= $(UNITY)
UNITY ?= $(if $(wildcard $(BUILD)/test/CMakeCache.txt),,ON)
test:
	@cmake/packages.sh program fit tests python
	@cmake/venv.sh $(BUILD)/venv
	@cmake/libtorch.sh $(BUILD)/venv/bin/python $(BUILD)/libtorch
	$(RUN_CMAKE) -B $(BUILD)/test -DFTAX_BUILD_PYTHON=ON -DFTAX_PYTHON=$(abspath $(BUILD)/venv/bin/python) \
	             -DFTAX_BUILD_TORCH=ON -DFTAX_TORCH=$(abspath $(BUILD)/libtorch/torch) -DFTAX_WERROR=$(WERROR) \
	             $(UNITY:%=-DFTAX_UNITY=%) $(UNITY_TESTS:%=-DFTAX_UNITY_TESTS=%) \
	             -DFTAX_BUILD_CUDA=$$(command -v nvcc >/dev/null && echo ON || echo OFF)
	cmake --build $(BUILD)/test -j $(JOBS)
	ctest --test-dir $(BUILD)/test -j $(JOBS) --output-on-failure

# A wheel that runs on a bare machine, in $(BUILD)/wheel/dist: the module for WHEEL_PYTHON (from 3.12 on for all later ones too)
# and the program with all verbs but those of LibTorch and CUDA. Tested where nothing of the build is installed.
WHEEL_PYTHON ?= python3
wheel:
	@cmake/packages.sh program fit python wheel
	@cmake/wheel.sh $(WHEEL_PYTHON) $(BUILD)/wheel

# The program for browsers, as a folder of static files in $(BUILD)/web/site. The test `web` compares it with the program.
web:
	@cmake/packages.sh program python
	@web/build.sh $(BUILD)/web $(JOBS)

# The documentation as a site in $(BUILD)/site/site, its links checked.
site:
	@docs/site.sh $(BUILD)/site

# The fuzzer and the C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer share one build.
sanitized:
	@cmake/packages.sh program fit tests fuzz
	$(RUN_CMAKE) -B $(BUILD)/sanitized -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DFTAX_BUILD_FUZZER=ON \
	            -DFTAX_UNITY=ON -DCMAKE_CXX_FLAGS_RELEASE='-O1 -g1' --log-level=WARNING

# Feeds every reader of untrusted files with mutated ones for FUZZ_SECONDS each; findings go to $(BUILD)/sanitized/found.
FUZZ_SECONDS ?= 60
fuzz: sanitized
	cmake --build $(BUILD)/sanitized -j $(JOBS) --target ftax_fuzzer
	tests/fuzz/run.sh $(BUILD)/sanitized $(FUZZ_SECONDS)

# The C++ tests under the sanitizers, but for those that tests/CMakeLists.txt names and the fits of whole machines (15 minutes).
asan: sanitized
	cmake --build $(BUILD)/sanitized -j $(JOBS) --target ftax_tests
	ctest --test-dir $(BUILD)/sanitized -j $(JOBS) --output-on-failure --tests-regex '^(unit|process|slow):'

# Plants the faults of tests/mutants/table.tsv beside the build of `make test` and says which ones no test notices (docs/testing.md).
# MUTANTS="--pick 20" takes some by chance, "--only graphs/" those of a folder, "--quick" leaves out tests that start programs.
MUTANTS ?=
mutants:
	@cmake/packages.sh program fit tests
	$(RUN_CMAKE) -B $(BUILD)/test -DFTAX_UNITY=OFF --log-level=WARNING
	cmake --build $(BUILD)/test -j $(JOBS) --target ftax_program ftax_tests
	python3 tests/mutants/mutants.py $(BUILD)/test $(MUTANTS)

# What may run in parallel under ThreadSanitizer.
tsan:
	@cmake/packages.sh program tests
	$(RUN_CMAKE) -B $(BUILD)/tsan -DFTAX_BUILD_FIT=OFF -DCMAKE_CXX_FLAGS='-fsanitize=thread -O1 -g1'
	cmake --build $(BUILD)/tsan -j $(JOBS) --target ftax_threads
	$(BUILD)/tsan/tests/ftax_threads

# Records how many instructions loading, predicting, a kernel, serving, an architecture and five whole commands take (the test fails at +10 %).
instructions:
	$(RUN_CMAKE) -B $(BUILD)/test
	cmake --build $(BUILD)/test -j $(JOBS) --target ftax_instructions ftax_program
	tests/instructions/check.sh $(BUILD)/test/tests/ftax_instructions $(BUILD)/test/ftax --record

# Records anew what tests compare with: the texts and tables of tests/recorded, the table of tests/python, the gates of tests/regression
# and the instruction counts (the ledgers are calibration/refit.sh's); prints the numbers that moved most. Read them before committing.
golden: instructions
	@cmake/venv.sh $(BUILD)/venv
	cmake --build $(BUILD)/test -j $(JOBS)
	FTAX_UPDATE_GOLDEN=1 $(BUILD)/test/tests/ftax_tests --source-file='*/report/*,*/recorded/*'
	python3 tests/regression/gates.py $(BUILD)/test/ftax --record
	ctest --test-dir $(BUILD)/test --output-on-failure --tests-regex '^python_install$$'
	cd $(BUILD)/test/tests && PATH=$(abspath $(BUILD)/test):$$PATH FTAX_UPDATE_GOLDEN=1 $(abspath $(BUILD)/venv/bin/python) \
	    -m pytest -q $(abspath tests/python/test_recorded.py)
	python3 tests/recorded/changes.py

# Draws the pictures of docs/gallery.md anew, with a headless Chromium; look at them before committing them.
gallery:
	@cmake/packages.sh program tests
	$(RUN_CMAKE) -B $(BUILD)/test
	cmake --build $(BUILD)/test -j $(JOBS) --target ftax_program
	python3 tests/report/gallery.py $(BUILD)/test/ftax

bench:
	@cmake/packages.sh program benchmarks python
	@cmake/venv.sh $(BUILD)/venv
	$(RUN_CMAKE) -B $(BUILD)/bench -DFTAX_BUILD_TESTS=OFF -DFTAX_BUILD_FIT=OFF -DFTAX_BUILD_BENCHMARKS=ON \
	            -DFTAX_BUILD_PYTHON=ON -DFTAX_PYTHON=$(abspath $(BUILD)/venv/bin/python)
	cmake --build $(BUILD)/bench -j $(JOBS)
	$(BUILD)/bench/tests/benchmarks/ftax_benchmarks
	PYTHONPATH=$(BUILD)/bench/python $(BUILD)/venv/bin/python tests/benchmarks/nas_python.py
	tests/benchmarks/newcomer.sh

format:
	git ls-files '*.cpp' '*.hpp' | xargs clang-format -i

# Lines that the tests reach, as a table (gcovr) and as HTML in $(BUILD)/coverage/report.html. Fails where one of the folders
# that a prediction passes through has fewer than 90 % of its lines run. Counting opens files, which one of the tests watches,
# and takes time, which calibrating measures.
GCOVR = gcovr --root . --gcov-ignore-parse-errors
COVERED = $(BUILD)/coverage/lines.json
coverage:
	@cmake/packages.sh program fit tests python coverage
	@cmake/venv.sh $(BUILD)/venv
	@cmake/libtorch.sh $(BUILD)/venv/bin/python $(BUILD)/libtorch
	$(RUN_CMAKE) -B $(BUILD)/coverage -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=--coverage \
	             -DFTAX_BUILD_TORCH=ON -DFTAX_TORCH=$(abspath $(BUILD)/libtorch/torch)
	cmake --build $(BUILD)/coverage -j $(JOBS)
	$(BUILD)/coverage/tests/ftax_tests -tce='*only the files that the command names*'
	ctest --test-dir $(BUILD)/coverage --output-on-failure --exclude-regex '^(consumer|clean_.*|calibrate_.*)$$|:'
	$(GCOVR) --filter src/ --filter graphs/ --filter predictors/ --filter calibration/ --json $(COVERED) $(BUILD)/coverage
	$(GCOVR) --add-tracefile $(COVERED) --html $(BUILD)/coverage/report.html --txt -
	@failed=; for folder in graphs predictors calibration/rows; do \
	    lines=$$($(GCOVR) --add-tracefile $(COVERED) --filter $$folder/ --fail-under-line 90 --print-summary \
	             --output $(BUILD)/coverage/folder.txt 2>/dev/null) || failed=1; \
	    printf '%-10s %s\n' $$folder "$$(echo "$$lines" | grep '^lines')"; \
	done; [ -z "$$failed" ] || { echo 'coverage: less than 90 % of the lines of a folder'; exit 1; }

clean:
	rm -rf $(BUILD)
