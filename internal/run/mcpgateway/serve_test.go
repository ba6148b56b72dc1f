//go:build unix

package mcpgateway

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"ken/internal/testkit/mcptest/sample"
)

func TestMain(m *testing.M) {
	sample.Main()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
