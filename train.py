"""Train a model: as configs/*.yaml say.

    python train.py fit --config configs/bach.yaml
    python train.py fit --config configs/bach.yaml --model.n_layer 6 --run runs/six-layers
    python train.py fit --config configs/bach.yaml --ckpt_path last     # go on where it stopped
    python train.py test --config configs/bach.yaml --ckpt_path last

Where none of fit, validate and test stands, fit is meant. A run's folder holds config.yaml (all
settings, resolved), checkpoints/ (to resume), model.safetensors (to generate from: the weights that
did best on the validation pieces) and what TensorBoard shows. SIGTERM and Ctrl-C let the current
step end, save it, and stop.

    --config FILE           the settings: configs/bach.yaml, configs/folder.yaml, ...
    --data.path FOLDER      the MIDI files to learn from
    --run FOLDER            where the run is kept
    --model.n_layer N       the size of the model; likewise n_head, n_embd, context_length
    --trainer.max_steps N   how long it trains

Every setting of a configuration is such an option: `train.py fit --help` lists all.
"""

if __name__ == "__main__":
    import common.command  # noqa: F401  # Ctrl-C ends it at once while it starts

import sys
from collections.abc import Sequence

from common.cli import ended_by_ctrl_c, quick_imports, with_command_first


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command: check its options first, since to import torch and Lightning takes seconds.

    Args:
        argv: its words; None: those of the process.
    """
    with quick_imports():  # which say in a line that they are not there
        from training.arguments import SUBCOMMANDS, read

    words = with_command_first(sys.argv[1:] if argv is None else argv, SUBCOMMANDS)
    if words[:1] in (["-h"], ["--help"]):
        print((__doc__ or "").strip())
        return
    if words[:1] not in ([name] for name in SUBCOMMANDS):
        words = ["fit", *words]
    subcommand, options = read(words)

    with quick_imports():
        from training.command import run
    with ended_by_ctrl_c():
        run(subcommand, options)


if __name__ == "__main__":
    main()
