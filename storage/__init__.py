"""Files that this package writes: whole or not at all, kept between runs, and this user's key."""
