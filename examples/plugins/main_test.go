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
	// plugin curfew tool:shell: no commands at night (plugins.curfew); do it another way, or leave the plugin out
	// the model read 10 and wrote 5 tokens
	// I may not.
	// good night
}
