//go:build !unix

package dirs

import "ken/capability"

// Distrust knows no owners here.
func Distrust(string) []capability.Problem { return nil }
