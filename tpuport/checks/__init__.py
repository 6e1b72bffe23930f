"""Behaviour of the structural rules: one module a rule, named as the rule."""
