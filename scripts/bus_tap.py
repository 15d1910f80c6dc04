"""Watch the bus: `python3 scripts/bus_tap.py --subject tool.`"""

if __name__ == "__main__":
    import python_version

    python_version.check()

    import set_up

    set_up.run_command("tap")
