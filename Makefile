# Each target is one script or one cargo command; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help deps build page run install dist test test-dist guest test-all experiments verdicts bench soak fuzz fmt lint

# Where `make install` puts the program, its man pages and its completions; DESTDIR is put before it.
PREFIX ?= /usr/local

help: ## list the targets
	@sed -n 's/^\([a-z-]*\): ## /\1\t/p' Makefile | expand -t 14

deps: ## name the tools that are missing, and install them (NO_DEPS=1: only name them)
	@scripts/deps

build: ## build the program: target/debug/dashpot
	cargo build --workspace

page: ## build the page of web/src into web/dist, which the program embeds (needs Node)
	cd web && npm ci --silent --no-audit --no-fund && npm run --silent check && npm run --silent build

run: ## serve the default lab under a small load, with a live report (DEMO_SECONDS=N ends it)
	@scripts/run

install: ## build for release, install below PREFIX (/usr/local): program, man pages, completions
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install

dist: ## make a release in target/dist/out: tarballs, Debian packages, wheels, an image (see docs/releasing.md)
	@scripts/dist

test-dist: ## try what `make dist` has made: in empty roots, under emulation, by its checksums
	@scripts/test-dist

test: ## all tests: the crates', then real NBD clients against the built program
	@scripts/deps
	@scripts/test

guest: ## attach disks in a guest under QEMU, whose kernel has the drivers that this host may lack
	@scripts/deps
	@scripts/test guest

test-all: ## the tests of `make test` and those of `make guest`
	@scripts/deps
	@scripts/test crates program guest

experiments: ## repeat three articles' experiments, measure ways to a block device; fails when a claim does not hold
	@scripts/deps
	@scripts/experiments

verdicts: ## ask 20 times each whether rules were kept, idle and beside busy loops (ARGS='--runs 5')
	@scripts/deps
	@scripts/verdicts $(ARGS)

bench: ## measure beside nbdkit and QEMU (ARGS='accuracy --quick': some parts, fast)
	@scripts/deps
	@scripts/bench $(ARGS)

soak: ## watch (ARGS=--record: record) a busy disk for an hour, as root: nothing is missed, grows, or is left (--minutes 5); --daemon watches a daemon
	@scripts/deps
	@scripts/soak $(ARGS)

fuzz: ## run each fuzz target for a minute (ARGS='5 recording': seconds, and which)
	@scripts/fuzz $(ARGS)

fmt: ## format the source: Rust, Python, and the page
	cargo fmt --all
	cd web && npm run --silent fmt
	"$${CARGO_TARGET_DIR:-target}/clients/venv/bin/ruff" format --quiet

lint: ## check formatting, lints, house rules, documentation, dependencies, and the scripts
	@scripts/lint
