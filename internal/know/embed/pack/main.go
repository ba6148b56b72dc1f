// Pack makes the file of an embedding model of what training gives: the
// vocabulary, one piece a line, and the weights: for each piece a row of int8
// numbers; then for each piece a scale, float32 little-endian, which the numbers
// of its row are to be multiplied with.
//
//	go run ./internal/know/embed/pack -vocab vocab.txt -weights student-full.i8 -fields 1,1.2,1,0.7 \
//		-name ken-embed-1 -out internal/know/embed/model.bin
//
// The same input gives the same file on every machine. With -chars it makes the
// table of characters instead, see testdata/README.md of package embed.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"ken/internal/know/embed"
)

func main() {
	vocab := flag.String("vocab", "", "`file` of the vocabulary, one piece a line")
	weights := flag.String("weights", "", "`file` of the weights: int8 rows, then float32 scales")
	fields := flag.String("fields", "1,1,1,1", "how much prose, name, category and parameters count")
	name := flag.String("name", "", "name of the model")
	out := flag.String("out", "", "`file` to write")
	chars := flag.String("chars", "", "make the table of characters of the reference's answers in this `file`")
	flag.Parse()
	if err := run(*vocab, *weights, *fields, *name, *out, *chars); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(vocab, weights, fields, name, out, chars string) error {
	switch {
	case out == "":
		return errors.New("-out is missing: name the file to write")
	case chars != "":
		return packChars(chars, out)
	case vocab == "" || weights == "" || name == "":
		return errors.New("-vocab, -weights and -name are all needed")
	}
	text, err := os.ReadFile(vocab)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(weights)
	if err != nil {
		return err
	}
	pieces := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
	if len(raw)%len(pieces) != 0 || len(raw)/len(pieces) <= 4 {
		return fmt.Errorf("%s has %d bytes, which are not as many rows and scales as %s has pieces, %d; they belong to different runs", weights, len(raw), vocab, len(pieces))
	}
	counts, err := parseFields(fields)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	report, err := embed.Pack(&file, name, pieces, unpack(raw, len(pieces)), counts)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, file.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s: %s, %d bytes: %s\n", out, name, file.Len(), report)
	return nil
}

func parseFields(text string) (map[embed.Field]float64, error) {
	out := map[embed.Field]float64{}
	for i, word := range strings.Split(text, ",") {
		w, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("-fields %s: %w", text, err)
		}
		out[embed.Field(i)] = w
	}
	return out, nil
}

// unpack returns the rows as they were before they became int8, but for rounding.
func unpack(raw []byte, rows int) []float32 {
	dims := len(raw)/rows - 4
	out := make([]float32, rows*dims)
	for i := range out {
		scale := math.Float32frombits(binary.LittleEndian.Uint32(raw[rows*dims+4*(i/dims):]))
		out[i] = float32(int8(raw[i])) * scale
	}
	return out
}
