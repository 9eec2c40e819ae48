"""O'Flynn 2009: the thesis that introduces the LMO model."""
