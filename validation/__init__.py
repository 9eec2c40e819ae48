"""The comparison layer: estimation on a platform, selection, Open MPI's decisions, exports, verification."""
