"""Measure the system beside its baselines: `python3 scripts/bench.py [NAME ...]`."""

if __name__ == "__main__":
    import python_version

    python_version.check()

    import sys

    import set_up

    set_up.enter()

    from benchmarks.command import main

    sys.exit(main(sys.argv[1:]))
