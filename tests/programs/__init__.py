"""Random programs and the forms that they hold."""
