package shim

// hungUp cannot tell here: the client ends us, or its daemon does.
func hungUp(int) bool { return false }
