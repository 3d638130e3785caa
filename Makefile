# One verb per need, thin over the presets of CMakePresets.json. `make` alone: build and unit tests.
.PHONY: default test check format asan tsan clang fuzz golden golden-update bench cov stats ci

default: test

# One room: make test ROOM=engine_net.
test:
	cmake --preset dev
	cmake --build --preset dev
	ctest --preset dev $(if $(ROOM),-L '^$(ROOM)$$')

# Format, laws of the house, layers and header self-containment, clang-tidy on what main has not.
check:
	./test format layers
	python3 -B scripts/tidy.py
	python3 -B scripts/tidy_test.py
	scripts/clang_tidy $(if $(ALL),--all)

format:
	git ls-files '*.cc' '*.h' | xargs clang-format-19 -i

asan:
	./test asan
tsan:
	./test tsan

# The second compiler, and its thread-safety analysis.
clang:
	cmake --workflow --preset clang

# One fuzzer for S seconds: make fuzz T=sse_fuzz S=60. What it finds new goes to build/fuzz/found/T.
S ?= 60
fuzz:
	$(if $(T),,$(error which fuzzer? make fuzz T=sse_fuzz S=60))
	cmake --preset fuzz
	cmake --build --preset fuzz --target $(T)
	mkdir -p build/fuzz/found/$(T)
	build/fuzz/fuzzers/$(T) -max_total_time=$(S) -timeout=5 build/fuzz/found/$(T) \
	  $(wildcard fuzz/corpus/$(T))

# Golden files: show how they differ, or accept what the code says now (then read the diff).
golden:
	cmake --preset dev
	cmake --build --preset dev
	ctest --preset dev -R '[Gg]olden'
golden-update: export ASSAY_UPDATE_GOLDEN = 1
golden-update: golden
	git --no-pager diff --stat

bench:
	cmake --preset release -DASSAY_BENCH=ON
	cmake --build --preset release
	bench/run

cov:
	scripts/install_packages cov
	cmake --workflow --preset cov
	gcovr --root . --filter src/ --exclude '.*_test\.cc' build/cov

stats:
	python3 -B scripts/stats.py

# The long form, before an issue is called resolved.
ci: check
	./test
	$(MAKE) clang cov
	scripts/clang_tidy --all
