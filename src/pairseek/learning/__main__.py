"""Entry point of a process that learns: see `pairseek.learning.process`."""

from pairseek.learning.process import main

main()
