"""FlexFlow's search: any task on any device, found by simulation."""
