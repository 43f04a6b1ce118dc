"""Sessions of participants: state, schedule, access, prefetching. The only package in which search and store meet."""
