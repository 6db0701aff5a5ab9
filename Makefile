# make music    play in its first minute, then train on Bach, write music and judge it (ten minutes)
# make play     a page to play on, with the model that is there
# make test     the whole suite          make check   its quick part
# make install  what training needs      make watch   TensorBoard over runs/

# the first that is there; tinysoundfont has no wheel for 3.13 and newer: there is no sound with those
PYTHON ?= $(shell for python in python3.12 python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin/python
SHIPPED := models/bach.safetensors
FIRST := music/harmonized.mid music/written.mid
TUNE := "E4 E4 F4 G4 G4 F4 E4 D4 C4 C4 D4 E4 E4:1.5 D4:.5 D4:2"
RUN := runs/bach
MUSIC := $(RUN)/music
# held out: the model has not seen it
CHORALE := datasets/bach/midi/bwv153.5.mid

.PHONY: music play test check watch install
.DELETE_ON_ERROR:

music: $(RUN)/report.html
	@echo
	@echo "Your model wrote $(MUSIC)/melody and $(MUSIC)/chorale: each a .mid, a .wav, a .png"
	@echo "(the piano roll, where the seed is dark) and a .svg (notation). To look at the run: make watch"
	@echo "To hear and judge it beside the one that comes with Etude, open $(RUN)/report.html in a browser"

# The model that comes with Etude plays while yours has not learned yet.
music/harmonized.mid: .venv/installed
	@echo "The model that comes with Etude harmonizes a tune, and writes a piece:"
	@$(BIN) generate.py --checkpoint $(SHIPPED) --harmonize --seed-notes $(TUNE) --best-of 8 --out $@

music/written.mid: music/harmonized.mid
	@$(BIN) generate.py --checkpoint $(SHIPPED) --best-of 8 --out $@
	@echo "Listen to them. Now a model of your own learns, for about ten minutes."

# Training resumes where it was interrupted; `trained` says that it came to its end.
$(RUN)/trained: .venv/installed-train | $(FIRST)
	@$(BIN) train.py fit --config configs/bach.yaml --ckpt_path last
	@touch $@

$(MUSIC)/melody.mid: $(RUN)/trained
	@$(BIN) generate.py --checkpoint $(RUN)/model.safetensors --seed-notes "C4 E4 G4 C5" --out $(MUSIC)/melody

$(MUSIC)/chorale.mid: $(RUN)/trained
	@$(BIN) generate.py --checkpoint $(RUN)/model.safetensors \
		--seed-midi $(CHORALE) --seed-bars 2 --out $(MUSIC)/chorale

$(RUN)/report.html: $(FIRST) $(MUSIC)/melody.mid $(MUSIC)/chorale.mid
	@$(BIN) evaluate.py all $^ --checkpoint $(RUN)/model.safetensors --beside $(SHIPPED) \
		--html $@ --json $(RUN)/report.json

play: .venv/installed
	@$(BIN) play.py

test: .venv/installed-dev
	@$(BIN) -m ruff check .
	@$(BIN) -m ruff format --check .
	@$(BIN) -m mypy
	@$(BIN) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: .venv/installed-dev
	@$(BIN) -m ruff check .
	@$(BIN) -m mypy
	@$(BIN) -m pytest -m "not slow"

watch: .venv/installed-train
	@$(BIN) -m tensorboard.main --logdir runs

.venv/installed: requirements.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=path/to/python3"; exit 2; }
	@test -x $(BIN) || $(PYTHON) -m venv .venv
	$(BIN) -m pip install --quiet --requirement requirements.txt
	@# it asks for pyaudio, which only live playback needs and which has no Linux wheel
	$(BIN) -m pip install --quiet --no-deps tinysoundfont==0.3.7 || \
		echo "no sound: here tinysoundfont needs a C++ compiler, or make PYTHON=python3.12; all else works"
	@touch $@

install: .venv/installed-train

.venv/installed-train: .venv/installed requirements-train.txt
	$(BIN) -m pip install --quiet --requirement requirements-train.txt
	@touch $@

.venv/installed-dev: .venv/installed-train requirements-dev.txt
	$(BIN) -m pip install --quiet --requirement requirements-dev.txt
	@touch $@
