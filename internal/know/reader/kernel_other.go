//go:build !amd64 && !arm64

package reader

// class returns the kernels that this processor can run: none.
func class() *kernels { return nil }
