"""Methods to compare pairseek with, each as its own users would set it up."""
