package tracecontext_test

import (
	"strings"
	"testing"

	"ken/internal/tracecontext"
)

func TestParent(t *testing.T) {
	good := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, test := range []struct {
		text string
		want bool
	}{
		{good, true},
		{"", false},
		{good + "0", false},
		{good[1:], false},
		{strings.ToUpper(good), false},
		{strings.Replace(good, "-", "0", 1), false},
		{strings.Replace(good, "0af", "0-f", 1), false},
		{strings.Replace(good, "0af", "0é", 1), false},
	} {
		if got := tracecontext.Parent(test.text); got != test.want {
			t.Errorf("Parent(%q) = %t, want %t", test.text, got, test.want)
		}
	}
}

func TestHeader(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool
	}{
		{"rojo=00f067aa0ba902b7", true},
		{"", false},
		{"a=b\r\nX: y", false},
		{"ä=b", false},
		{strings.Repeat("a", 8192), true},
		{strings.Repeat("a", 8193), false},
	} {
		if got := tracecontext.Header(test.text); got != test.want {
			t.Errorf("Header(%.20q) = %t, want %t", test.text, got, test.want)
		}
	}
}
