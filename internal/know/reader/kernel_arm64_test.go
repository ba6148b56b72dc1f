package reader

// every returns all kernels that this processor can run.
func every() []*kernels {
	if k := class(); k != nil {
		return []*kernels{k}
	}
	return nil
}
