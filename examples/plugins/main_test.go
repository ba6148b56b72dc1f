package main

import (
	"log"
	"os"
)

func Example() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// good morning
	// tool:roll-dice failed: false
	// You rolled a 4.
	// the model read 10 and wrote 5 tokens
	// plugin curfew tool:shell: no commands at night (plugins.curfew); make a different call, or remove the plugin
	// the model read 10 and wrote 5 tokens
	// I may not.
	// good night
}
