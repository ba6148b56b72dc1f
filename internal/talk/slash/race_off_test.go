//go:build !race

package slash

const raceEnabled = false
