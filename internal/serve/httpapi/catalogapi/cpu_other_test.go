//go:build !unix

package catalogapi

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
