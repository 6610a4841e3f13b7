"""What authors declare: cases in YAML or Python, found beside a class or given by a test."""
