"""Model files into other forms: weights block for block where the other form has the same blocks."""
