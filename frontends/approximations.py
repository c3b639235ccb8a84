"""Coefficients of approximations in single precision, of functions that front ends write out."""

ERF_INV_CENTRE = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
"""Of the inverse of erf(x) over x, for w = -log((1 - x)(1 + x)) below 5: of w - 2.5, the highest power first (M. Giles,
Approximating the erfinv function, 2010; 1e-6)."""
ERF_INV_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)
"""The same for larger w: of sqrt(w) - 3."""
LANCZOS_FIRST = 0.99999999999980993
"""Of the gamma function, for g = 7: the term that has no denominator."""
LANCZOS = (
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
"""The coefficients over z + 1, z + 2, ..., for gamma(z + 1) (Godfrey; Numerical Recipes, 3rd ed., 6.1): 1e-15."""
DIGAMMA_STEPS = 6
"""Steps by which an argument from 0.5 on is moved up: three terms of the asymptotic series are then within 2e-9."""
DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252)
"""Of -digamma(y) + log(y) - 1 / (2 y), in powers of 1 / y^2 from the first on (Abramowitz and Stegun, 6.3.18)."""
LEAST_FLOAT32 = 2.0**-149
"""The least positive number of single precision (IEEE 754)."""
