"""The operators of networks: every `Operator` in a module of this folder is one, under its variable's name."""
