package source

import "ken/capability"

// Seal completes a capability of a source that lives in another package:
// trust, defaults, parameters, the hash over all that a model may see, and the
// findings of the text scan. Nothing may change in c or d afterwards.
func Seal(c *capability.Capability, d capability.Detail, trust capability.Trust) {
	c.Trust = trust
	seal(c, d)
}

// Unchanged fails with capability.Conflict when d is not the detail that c was
// sealed with.
func Unchanged(c *capability.Capability, d capability.Detail) error { return unchanged(c, d) }
