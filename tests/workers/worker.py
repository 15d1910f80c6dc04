"""What execnet starts for each worker, as `python worker.py <socket> -u -c <code>`: it hands its streams and the code
to the program that forks, and lives as long as the fork."""

from __future__ import annotations

import signal
import socket
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever has started it
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        socket.send_fds(connection, [sys.argv[-1].encode()], [0, 1, 2])
        for stream in (sys.stdin, sys.stdout):  # so that their other end sees when the fork has ended
            stream.close()
        connection.recv(1)
