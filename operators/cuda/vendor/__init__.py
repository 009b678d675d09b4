"""Matrix products and convolutions by the libraries of the vendor."""
