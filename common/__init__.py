"""What every floor uses: errors with one clear line, sizes and counts as people write them."""
