"""Sessions of participants: state, schedule, access and prefetching; the only place where search and store meet."""
