"""Operations that do the same to several tensors become one operation: products of all time steps at once."""
