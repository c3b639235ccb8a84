"""Converters of operations, by dialect: a module's name begins with it, a variable's is the operation's."""
