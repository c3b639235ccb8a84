"""Assembly formats of operations that xDSL has no dialect for, by dialect: each file reads those of one.

They make what the generic form of the same operation makes: an operation that is registered nowhere, so that no
dialect of ours stands in the way of another plug-in's of the same name.
"""
