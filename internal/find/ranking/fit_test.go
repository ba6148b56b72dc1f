package ranking

import (
	"os/exec"
	"testing"

	"ken/internal/testkit"
)

// TestFitBuilds: the command that makes weights.go can still be built. Its part in
// this package is left out of every other build.
func TestFitBuilds(t *testing.T) {
	testkit.CI(t, "builds a command of its own")
	if out, err := exec.Command("go", "vet", "-tags", "fit", ".", "../../../scripts/fit").CombinedOutput(); err != nil {
		t.Errorf("go vet -tags fit: %v\n%s", err, out)
	}
}
