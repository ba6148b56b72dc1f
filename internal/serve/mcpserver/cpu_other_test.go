//go:build !unix

package mcpserver

import "time"

func cpuTime() time.Duration { return 0 }
