package main

func Example() {
	main()
	// Output:
	// tool:weather: Rain in Oslo
	// 2 calls: Take an umbrella: rain in Oslo.
}
