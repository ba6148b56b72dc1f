// Package pattern compiles regular expressions when they are first used.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles an expression at its first call. A
// process that reads no catalog, such as the sandbox's helper, does not pay for
// forty of them. Lazy takes only constants; a test compiles all of them.
func Lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
