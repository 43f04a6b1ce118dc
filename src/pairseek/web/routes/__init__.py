"""The addresses that the service answers, one small file a group."""
