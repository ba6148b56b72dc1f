//go:build race

package slash

const raceEnabled = true
