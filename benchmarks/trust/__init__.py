"""The long run behind `make trust`: random programs, graphs, faults and damaged inputs, one module a section."""
