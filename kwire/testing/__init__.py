"""What users' tests run against: an in-process broker, a pytest fixture, a simulated cluster."""
