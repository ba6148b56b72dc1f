package main

import (
	"os"
	"testing"
)

// TestDocumentedKeys: the tables of docs/configuration.md are those that the
// settings make, and every key is in one of them.
func TestDocumentedKeys(t *testing.T) {
	old, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := page(string(old)); err != nil || now != string(old) {
		t.Errorf("%s is out of date; go run ./scripts/settings writes it (%v)", document, err)
	}
}
