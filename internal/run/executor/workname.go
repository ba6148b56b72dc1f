package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"ken/capability"
)

// WorkName returns the name of the folder that a capability works in: its
// package's id, or its own where it came without one. Those that a project or
// others brought have a folder for each place they came from, since
// another project may use the same name.
func WorkName(c *capability.Capability) (string, error) {
	name, packaged := c.Extension()
	if !packaged {
		name = string(c.ID)
		if c.Trust < capability.TrustUser {
			sum := sha256.Sum256([]byte(c.Origin.Source))
			name += "-" + hex.EncodeToString(sum[:6])
		}
	}
	name = strings.NewReplacer(":", "_", "/", "_").Replace(name)
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return "", fmt.Errorf("the extension id contains %q; use only letters, digits, dots, dashes and underscores", r)
		}
	}
	if name == "" || strings.HasPrefix(name, ".") || len(name) > 128 {
		return "", errors.New("the extension id cannot be used as a folder name")
	}
	return name, nil
}
