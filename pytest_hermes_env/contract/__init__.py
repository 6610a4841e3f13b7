"""IS IT RIGHT? Rules, the evidence that they read, and the engines that check classes by them."""
