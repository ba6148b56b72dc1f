//go:build !amd64

package reader

// class returns the kernels that this processor can run: none.
func class() *kernels { return nil }

// every returns all kernels that this processor can run, for tests.
func every() []*kernels { return nil }
