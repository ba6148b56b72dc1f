package confine

// Environment is what a process of the sandbox's own gets, and nothing else. One
// that was built to find races would otherwise sleep a second at its end.
func Environment(more ...string) []string {
	env := append([]string{"GOMAXPROCS=1"}, more...)
	if raceDetector {
		env = append(env, "GORACE=atexit_sleep_ms=0")
	}
	return env
}
