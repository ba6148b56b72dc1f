//go:build !unix

package source

import (
	"errors"
	"testing"
)

func makeFIFO(*testing.T, string) error { return errors.New("no named pipes") }
