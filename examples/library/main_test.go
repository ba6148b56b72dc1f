package main

import "os"

func Example() {
	home, err := os.MkdirTemp("", "ken")
	check(err)
	defer os.RemoveAll(home)
	check(os.Setenv("KEN_HOME", home)) // not the user's own
	main()
	// Output:
	// tool:weather: Rain in Oslo
	// 2 calls: Take an umbrella: rain in Oslo.
}
