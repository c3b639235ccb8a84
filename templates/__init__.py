"""Operators that come with templates, one file each: `lw.TemplateTask("dense", args, target)` finds `dense_cpu`."""
