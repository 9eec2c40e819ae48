"""Calibration of a platform from point-to-point measurements alone: plan, points, segments, fit."""
