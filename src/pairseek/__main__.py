"""``python -m pairseek``: the same as the command."""

from pairseek.cli import main

if __name__ == "__main__":
    main()
