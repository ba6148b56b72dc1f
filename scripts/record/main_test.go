package main

import (
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLines(t *testing.T) {
	got := lines(strings.Repeat("word ", 30)+"\nshort\n\nlast\n", 4)
	if len(got) != 5 || got[2] != "short" || got[4] != "… and 1 more" {
		t.Errorf("lines = %q", got)
	}
	for _, line := range got {
		if utf8.RuneCountInString(line) > width {
			t.Errorf("a line has %d characters: %q", utf8.RuneCountInString(line), line)
		}
	}
	if got := lines("a\n", 4); !slices.Equal(got, []string{"a"}) {
		t.Errorf("lines = %q, want a", got)
	}
}

func TestDraw(t *testing.T) {
	picture := string(draw(`$ ken discover "a < b"`, []string{"✓ <script>", "-tea", "plain"}))
	if strings.Contains(picture, "<script>") || !strings.Contains(picture, "&lt;script&gt;") {
		t.Errorf("a line became markup:\n%s", picture)
	}
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}
