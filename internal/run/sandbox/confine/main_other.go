//go:build !linux

package confine

// Main, Canary, Hold and Nest are never reached: only Linux has a helper.
func Main() { panic("confine: no helper on this system") }

// Canary is as [Main].
func Canary() { Main() }

// Hold is as [Main].
func Hold() { Main() }

// Nest is as [Main].
func Nest() { Main() }

// LandlockABI is 0: there is no Landlock.
func LandlockABI() int { return 0 }
