package reader

import "golang.org/x/sys/cpu"

// every returns all kernels that this processor can run.
func every() (all []*kernels) {
	switch class() {
	case vnni:
		all = append(all, vnni)
		fallthrough
	case avxVNNI:
		if cpu.X86.HasAVXVNNI {
			all = append(all, avxVNNI)
		}
		fallthrough
	case avx2:
		all = append(all, avx2)
	}
	return all
}
