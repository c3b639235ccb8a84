"""The kind of target `simple-core`: a core without caches whose vectors have 16 bytes."""

import loopwright as lw

SIMPLE_CORE = lw.TargetKind(backend="simple_core.backend", options={"vector_bytes": 16, "vector_registers": 32})
