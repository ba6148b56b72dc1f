//go:build race

package result

const raceEnabled = true
