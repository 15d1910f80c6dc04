"""Measure LoCAL2 on a real model: `python3 scripts/real_models.py stories|questions|conversation|first-token --model
FILE.gguf`. Takes minutes; run it by hand."""

if __name__ == "__main__":
    import python_version

    python_version.check()

    import set_up

    from local.core.setup import TEST

    set_up.enter(TEST)

    import argparse
    import os
    import sys
    from pathlib import Path

    from benchmarks import real_measures as measures
    from benchmarks.figure import BenchmarkFailed
    from benchmarks.real_system import load

    parser = argparse.ArgumentParser(prog="real_models.py", description="Measure LoCAL2 on a real model.")
    parser.add_argument("measure", choices=["stories", "questions", "conversation", "first-token"])
    parser.add_argument("--model", type=Path, required=True, metavar="FILE.gguf")
    parser.add_argument("--threads", type=int, default=1, help="of the model server")
    parser.add_argument("--only", nargs="+", default=measures.STORY_NAMES, metavar="S1", help="which stories")
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between two turns of the conversation")
    parser.add_argument("--rounds", type=int, default=20, help="questions of first-token")
    options = parser.parse_args()
    if not options.model.is_file():
        parser.error(f"--model {options.model}: there is no such file; expected a GGUF file")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # or its threads fight for the processor with everybody else
    lines = {
        "stories": lambda: measures.stories(options.model, options.threads, options.only),
        "questions": lambda: measures.questions(options.model, options.threads),
        "conversation": lambda: measures.conversation(options.model, options.threads, options.pause),
        "first-token": lambda: measures.first_token(options.model, options.threads, options.rounds),
    }
    try:
        print(f"{options.measure}: {options.model.name}; {load()}", flush=True)
        for line in lines[options.measure]():
            print(line, flush=True)
    except BenchmarkFailed as error:
        sys.exit(f"real_models: {error}")
