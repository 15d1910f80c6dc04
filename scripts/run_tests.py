"""Run every test: `python3 scripts/run_tests.py [pytest's arguments]`. Exit status is pytest's."""

if __name__ == "__main__":
    import python_version

    python_version.check()

    import set_up

    set_up.run_tests()
