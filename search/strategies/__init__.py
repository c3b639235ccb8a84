"""Search strategies: what proposes the candidates to measure next."""
