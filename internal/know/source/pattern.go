package source

import (
	"regexp"
	"sync"
)

// lazily compiles a pattern when it is first asked for. A process that reads
// no catalog, such as the sandbox's helper, must not pay for forty of them.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
