// Roots prints the certificates of the authorities that Mozilla trusts, as the Go
// project packs them, in PEM. The image gets them: an image made here must not
// depend on what the machine that makes it trusts.
package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file cannot say which of its certificates count
		}
		if err := pem.Encode(out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			fail(err)
		}
	}
	if err := out.Flush(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "roots:", err)
	os.Exit(1)
}
