"""Measuring adaptively: which cases are worth machine time, given what was measured and predicted so far."""
