"""Entry point of ``python -m pairseek``, which equals the command ``pairseek``."""

from pairseek.cli import main

if __name__ == "__main__":
    main()
