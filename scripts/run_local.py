"""Start LoCAL2: `python3 scripts/run_local.py --headless --api`. Sets itself up at the first start."""

if __name__ == "__main__":
    import python_version

    python_version.check()

    import set_up

    set_up.run_command("run")
