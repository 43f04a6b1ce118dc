"""File formats of sounds and videos: checks that a file is whole and that browsers can play it."""
