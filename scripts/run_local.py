"""Start LoCAL2: `python3 scripts/run_local.py --headless --api`. Sets itself up at the first start."""

if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # there is nothing yet to end in order, and a traceback helps nobody

    import python_version

    python_version.check()

    import set_up

    set_up.run_command("run")
