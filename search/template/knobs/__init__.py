"""What a template may ask for: one file for each kind of knob."""
