"""Programs for those who develop accelsim itself; nox calls them."""
