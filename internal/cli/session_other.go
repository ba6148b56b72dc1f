//go:build !unix

package cli

import (
	"fmt"
	"os"
)

// terminalSession names the session of this terminal. KEN_SESSION sets another.
func terminalSession() string {
	if name := os.Getenv("KEN_SESSION"); name != "" {
		return name
	}
	return fmt.Sprintf("terminal-%d", os.Getppid())
}
