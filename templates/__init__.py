"""Templates that come with the package, one file each: `lw.TemplateTask("dense", args, target)` finds `dense_cpu`."""
