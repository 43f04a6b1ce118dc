"""Compiled quizzes: the questions of a search for every path of answers, as files that need no server."""
