//go:build !linux

package confine

// Main, Canary, Hold, Nest and Trial are never reached: only Linux has a helper.
func Main() { panic("confine: not supported on this system") }

// Canary is as [Main].
func Canary() { Main() }

// Hold is as [Main].
func Hold() { Main() }

// Nest is as [Main].
func Nest() { Main() }

// Trial is as [Main].
func Trial() { Main() }

// LandlockABI is 0: there is no Landlock.
func LandlockABI() int { return 0 }
