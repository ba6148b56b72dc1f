// Pack makes the file of an embedding model of what training gives: the
// vocabulary, one piece a line, and the weights, for each piece the numbers of
// its vector, float32 little-endian.
//
//	go run ./internal/know/embed/pack -vocab vocab.txt -weights weights.f32 -name ken-embed-1 -out internal/know/embed/model.bin
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
	"strings"

	"ken/internal/know/embed"
)

func main() {
	vocab := flag.String("vocab", "", "`file` of the vocabulary, one piece a line")
	weights := flag.String("weights", "", "`file` of the weights, float32 little-endian")
	name := flag.String("name", "", "name of the model")
	out := flag.String("out", "", "`file` to write")
	chars := flag.String("chars", "", "make the table of characters of the reference's answers in this `file`")
	flag.Parse()
	if err := run(*vocab, *weights, *name, *out, *chars); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(vocab, weights, name, out, chars string) error {
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
	if len(raw)%4 != 0 {
		return fmt.Errorf("%s has %d bytes, which are no float32 numbers; write it again", weights, len(raw))
	}
	numbers := make([]float32, len(raw)/4)
	for i := range numbers {
		numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	pieces := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
	var file bytes.Buffer
	report, err := embed.Pack(&file, name, pieces, numbers)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, file.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s: %s, %d bytes: %s\n", out, name, file.Len(), report)
	return nil
}
