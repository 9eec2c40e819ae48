"""The choices, times and limits on a platform that is changed."""
