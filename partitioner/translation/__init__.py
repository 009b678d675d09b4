"""Plans as other systems say them: placements of DTensor, partition specs of JAX."""
