"""Models that take an algorithm's implementation into account: Nuriyev & Lastovetsky 2021, as printed and by parts."""
