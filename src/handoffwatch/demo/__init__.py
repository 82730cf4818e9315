"""Northwind: a small multi-agent system whose faults are seeded, so that what must be seen is known beforehand.

Its agents are scripted; everything they touch is real. `handoffwatch demo` runs it, and the tests hold the product's
numbers against Northwind's own record.
"""
