"""Questions about the choices, times and limits of a platform that is changed."""
