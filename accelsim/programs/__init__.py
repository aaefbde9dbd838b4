"""Programs: small and random ones that no compiler made, for tests, campaigns and benches.

What comes in: a generator and a configuration. What goes out: steps, programs and launches, legal
or broken on purpose. It must not know networks, and nothing of what a program's result should be.
"""
