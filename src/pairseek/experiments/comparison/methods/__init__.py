"""Methods to compare pairseek with, each set up as its own users would."""
