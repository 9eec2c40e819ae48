"""What-if: the choices, times and limits of a platform that is changed."""
