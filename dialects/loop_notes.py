"""Names of the notes on loops and blocks by which steps of a schedule tell lowerings what becomes of them."""

PIPELINE_STAGES = "pipeline_stages"
"""The annotation of a pipelined loop and of the copies that run ahead in it: in how many iterations a buffer lives."""

PIPELINE_REGISTERS = "pipeline_registers"
"""The annotation of copies that run ahead through registers, though the device may copy by itself."""

PIPELINE_BULK = "pipeline_bulk"
"""The annotation of copies that run ahead as boxes, which the copy engine of a device copies where it has one."""

PIPELINE_CLUSTER = "pipeline_cluster"
"""The annotation of a pipelined loop by the axes of blocks that are a cluster, which share the boxes that they want."""

BLOCKS_PER_SM = "blocks_per_sm"
"""The annotation of a loop of thread blocks by how many are to fit a multiprocessor at once."""

JOIN = "join"
"""The annotation of a nest that is part of the launch before, for the blocks of threads that are last to write."""

CLUSTER = "cluster"
"""The annotation of such a nest whose blocks are all those before: the axis along which they wait for each other."""

PREFETCH = "prefetch"
"""The annotation of a loop by how many iterations ahead the lines of which buffers are asked for."""

PREFETCH_PANEL = "prefetch_panel"
"""The annotation of a loop by the buffers of which the panel of its next iterations is asked for while one is used."""
