"""Play the acceptance stories against a running system: `python3 scripts/run_stories.py [S1 …] [--live]`."""

if __name__ == "__main__":
    import python_version

    python_version.check()

    import set_up

    set_up.run_command("stories")
