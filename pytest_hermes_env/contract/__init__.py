"""IS IT RIGHT? Rules, the evidence that they read, and the engines that judge classes by them."""
