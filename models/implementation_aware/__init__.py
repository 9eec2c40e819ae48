"""Models that look at how an algorithm is implemented: Nuriyev & Lastovetsky 2021, as printed and by parts."""
