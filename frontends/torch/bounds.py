"""Sizes on CUDA devices from which on PyTorch's kernels are faster than untuned ones of ours."""

MOST_HALF_TERMS = 1 << 30
"""Terms of a product of 16-bit floats, from which on it stays PyTorch's. On an H200 1024^3 takes 10.4 us where theirs
take 5.4, and larger ones alike, 16 x 4096 x 4096 11.0 and 9.2, layers of ResNet-50 half of theirs
(benchmarks/results/tensor-search-h200-2026-11-23.md)."""
MOST_HALF_ATTENTION_TERMS = 1 << 28
"""Terms of each product of attention of 16-bit floats that is one kernel of ours (heads of all samples x queries x keys
x elements of a head), from which on it stays PyTorch's. The time of theirs over ours on an H200, 64 elements a head: 12
heads of 128 queries and keys (2^23.6 terms) 1.5, of 512 (2^27.6) 1.17, of 1024 (2^29.6) 0.63, 192 heads of 512 (2^31.6)
0.61, 32 of 4096 (2^35) 0.5."""
MOST_SCORES = 1 << 20
"""Scores of attention (heads of all samples x queries x keys) that is several kernels of ours, which write them to
memory where PyTorch's does not: with more it stays PyTorch's. In float32 on an H200 a layer takes as long either way
with 2^20 scores, 2% longer in several kernels with 2^22, 10% with 2^24; a call with 2^16 takes half as long
(benchmarks/results/torch-h200-2026-11-23.md). Nobody measured 16-bit floats whose extents our one kernel does not
take."""
