"""Sessions of participants: state, schedule, access and prefetching. Only here do search and store meet."""
