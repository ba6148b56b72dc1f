package main

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/internal/know/embed"
)

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun(t *testing.T) {
	var numbers []float32
	var raw []byte
	for i := range 2 * 16 {
		numbers = append(numbers, (float32(i)-7)/2)
		raw = append(raw, byte(int8(i-7)))
	}
	for range 2 {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(0.5))
	}
	weights := write(t, "weights.i8", raw)
	var want bytes.Buffer
	if _, err := embed.Pack(&want, "m", []string{"find", "##s"}, numbers, map[embed.Field]float64{embed.Prose: 1, embed.Name: 2, embed.Category: 1, embed.Parameters: 0.5}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"find\n##s\n", "find\n##s", "find\r\n##s\r\n"} {
		out := filepath.Join(t.TempDir(), "model.bin")
		if err := run(write(t, "vocab.txt", []byte(text)), weights, "1,2,1,0.5", "m", out, ""); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("the vocabulary %q gives another file than Pack (%v)", text, err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	vocab, weights := write(t, "vocab.txt", []byte("a\n")), write(t, "weights.i8", []byte("123"))
	out := filepath.Join(t.TempDir(), "model.bin")
	for _, tt := range []struct{ vocab, weights, name, out, want string }{
		{vocab, weights, "m", "", "-out is missing"},
		{vocab, weights, "", out, "all needed"},
		{vocab, weights, "m", out, "3 bytes"},
		{vocab + "x", weights, "m", out, "no such file"},
		{vocab, weights + "x", "m", out, "no such file"},
	} {
		if err := run(tt.vocab, tt.weights, "1,1,1,1", tt.name, tt.out, ""); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("run(%q, %q, %q, %q) = %v, want an error with %q", tt.vocab, tt.weights, tt.name, tt.out, err, tt.want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refusal left a file")
	}
}

func TestMeaning(t *testing.T) {
	for _, tt := range []struct {
		c     rune
		words []string
		entry int
		to    string
	}{
		{'\u200b', []string{"ab"}, drop, ""},
		{'\u00a0', []string{"a", "b"}, space, ""},
		{'!', []string{"a", "!", "b"}, alone, ""},
		{'ß', []string{"aßb"}, self, ""},
		{'É', []string{"aeb"}, mapped, "e"},
		{'\u037e', []string{"a", ";", "b"}, mapped, ";"},
		{'a', []string{"aab"}, self, ""},
	} {
		if entry, to := meaning(tt.c, tt.words); entry != tt.entry || !slices.Equal(to, []rune(tt.to)) {
			t.Errorf("meaning(%q, %q) = %d, %q, want %d, %q", tt.c, tt.words, entry, to, tt.entry, tt.to)
		}
	}
}

func TestPackChars(t *testing.T) {
	out := filepath.Join(t.TempDir(), "chars.bin")
	answers := write(t, "answers.jsonl", []byte("[33,[\"a\",\"!\",\"b\"]]\n[65,[\"aab\"]]\n[44032,[\"a가b\"]]\n"))
	if err := run("", "", "", "", out, answers); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	const blocks = chars / blockSize
	at := 2*blocks + 2
	entry := func(c int) uint16 {
		block := binary.LittleEndian.Uint16(got[2*(c/blockSize):])
		return binary.LittleEndian.Uint16(got[at+2*(int(block)*blockSize+c%blockSize):])
	}
	if entry('!') != alone || entry('A') != mapped || entry('a') != self || entry(44032) != self {
		t.Errorf("entries of ! A a 가 = %d %d %d %d, want %d %d %d %d", entry('!'), entry('A'), entry('a'), entry(44032), alone, mapped, self, self)
	}
	if want := []byte{'a', 0, 0, 1}; !bytes.HasSuffix(got, want) {
		t.Errorf("the targets end with %v, want %v", got[len(got)-4:], want)
	}
}
