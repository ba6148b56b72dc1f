package reader

// every returns all kernels that this processor can run.
func every() []*kernels {
	switch class() {
	case vnni:
		return []*kernels{vnni, avx2}
	case avx2:
		return []*kernels{avx2}
	}
	return nil
}
