"""Nuriyev and Lastovetsky 2021: implementation-aware models."""
